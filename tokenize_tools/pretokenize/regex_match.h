/*
 * regex_match.h - regular expressions of tokenizer files that no scanner serves, by PCRE2 where the build has it.
 *
 * The pattern is not handed over as it is: engines differ on Unicode versions, \w, ^ and $, case folding and possessive
 * intervals. It is rewritten (regex_rewrite.c) with every class as a set of code points; what has no exact equivalent
 * is refused by name. Pattern and text then go over kinds of characters (regex_kinds.h).
 */
#ifndef TOKMAP_PRETOKENIZE_REGEX_MATCH_H
#define TOKMAP_PRETOKENIZE_REGEX_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "regex_rewrite.h"
#include "tokmap/tokmap.h"

struct regex;
struct regex_state; /* of one thread */

/* field: where in the file the pattern stands, for errors. Statuses: OK, ERROR_FORMAT, ERROR_UNSUPPORTED,
 * ERROR_MEMORY. */
enum tokmap_status regex_new(struct regex **regex, const char *pattern, size_t bytes,
                                   enum regex_dialect dialect, const char *path, const char *field,
                                   struct tokmap_error *error);
void regex_free(struct regex *regex);
bool regex_may_be_empty(const struct regex *regex); /* whether a match may hold nothing */
/* Statuses: OK, ERROR_MEMORY. */
enum tokmap_status regex_state_new(struct regex_state **state, const struct regex *regex,
                                         struct tokmap_error *error);
void regex_state_free(struct regex_state *state);

/* All matches of a text, front to back; empty ones too, but for one just where the last match ended. mapped: of the
 * characters that stand for the text's bytes (pretokenizer.h). False: no memory. The text is to stay until the last
 * match. */
bool regex_begin(struct regex_state *state, const uint8_t *text, size_t count, bool mapped);
enum regex_found { REGEX_END, REGEX_MATCH, REGEX_FAILED };
/* Where in the text. REGEX_FAILED: the pattern needs more steps or memory for this text than it is given. */
enum regex_found regex_next(struct regex_state *state, size_t *from, size_t *to);
void regex_trim(struct regex_state *state); /* between documents: gives back what a long one took */

#endif
