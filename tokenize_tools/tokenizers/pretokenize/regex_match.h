/* SPDX-License-Identifier: MIT */
/*
 * regex_match.h - matches the patterns of tokenizer files that no scanner implements, with PCRE2.
 *
 * A pattern is not passed to PCRE2 as it is, because engines differ. It is rewritten with explicit sets of characters
 * (regex_rewrite.h); then both the pattern and the text are translated from characters to kinds of characters
 * (regex_kinds.h), which PCRE2 matches as plain bytes. In a build without PCRE2, regex_new refuses every pattern.
 */
#ifndef TOKMAP_PRETOKENIZE_REGEX_MATCH_H
#define TOKMAP_PRETOKENIZE_REGEX_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "regex_rewrite.h"
#include "tokmap/tokmap.h"

struct regex;       /* a compiled pattern; immutable, shared by threads */
struct regex_state; /* the matcher of one thread */

/* Compiles a pattern, `bytes` bytes of valid UTF-8. For error messages, `path` is the file that contains it (or NULL)
 * and `field` its place in the file. On failure *regex is NULL. Statuses: OK, ERROR_UNSUPPORTED (the message says where
 * in the pattern and why), ERROR_MEMORY. */
enum tokmap_status regex_new(struct regex **regex, const char *pattern, size_t bytes, enum regex_dialect dialect,
                             const char *path, const char *field, struct tokmap_error *error);
/* `regex` may be NULL. */
void regex_free(struct regex *regex);
/* Returns whether a match can be empty. */
bool regex_may_be_empty(const struct regex *regex);

/* Makes the state of one thread for a pattern, which must outlive it. On failure *state is NULL.
 * Statuses: OK, ERROR_UNSUPPORTED (this build has no PCRE2), ERROR_MEMORY. */
enum tokmap_status regex_state_new(struct regex_state **state, const struct regex *regex, struct tokmap_error *error);
/* `state` may be NULL. */
void regex_state_free(struct regex_state *state);

/* Begins a document, of which the texts that follow are parts: what their searches may cost is limited together, by the
 * bytes of these texts and a constant. A new state has begun one. */
void regex_document(struct regex_state *state);

/* Starts to match a text, `count` bytes of valid UTF-8 that must stay until the last match. If `mapped`, the pattern
 * sees the characters that represent the text's bytes (byte_alphabet.h) instead of the text's characters. Returns false
 * if memory is lacking. */
bool regex_begin(struct regex_state *state, const uint8_t *text, size_t count, bool mapped);

enum regex_found { REGEX_END, REGEX_MATCH, REGEX_FAILED, REGEX_STOPPED };
/* Finds the next match, text[*from] up to, not including, text[*to]. Matches are in order and do not overlap; a match
 * may be empty, but not at the end of the previous match. Returns REGEX_MATCH; REGEX_END if no match is left;
 * REGEX_STOPPED if state_stop asked for it; or REGEX_FAILED if the pattern needs more steps for the document, or more
 * memory for this text, than is allowed (see regex_match.c; 32 MiB). After REGEX_STOPPED and REGEX_FAILED, *from is the
 * byte where the search stands, and the text cannot be continued. */
enum regex_found regex_next(struct regex_state *state, size_t *from, size_t *to);

/* Makes regex_next() look at `stop` at least once a second or so; if it returns true, the search ends with
 * REGEX_STOPPED. NULL, with which a state begins: never. */
void regex_state_stop(struct regex_state *state, bool (*stop)(void *user), void *user);

/* Do the same for a list that may have NULLs. */
void regexes_document(struct regex_state *const *states, uint32_t count);
void regexes_stop(struct regex_state *const *states, uint32_t count, bool (*stop)(void *user), void *user);

/* For messages: the pattern's first bytes, not ended by a 0. */
const char *regex_text(const struct regex *regex, int *bytes);

/* For tests: how many steps the searches of the current document were charged for. */
uint64_t regex_charged(const struct regex_state *state);

/* To be called between documents: frees memory that an unusually long document needed, and does what regex_document()
 * does. */
void regex_trim(struct regex_state *state);

#endif
