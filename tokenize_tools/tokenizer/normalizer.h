/* normalizer.h - what is done to text before it is cut: NFC, text put before it, text replaced; in any order. */
#ifndef TOKMAP_TOKENIZER_NORMALIZER_H
#define TOKMAP_TOKENIZER_NORMALIZER_H

#include "common/bytes_buffer.h"
#include "unicode/nfc.h"
#include "pretokenize/regex_match.h"

#define NORMALIZER_STEPS_MOST 16

enum normalizer_kind { NORMALIZE_NFC, NORMALIZE_PREPEND, NORMALIZE_REPLACE };

struct normalizer_step {
    enum normalizer_kind kind;
    uint8_t *pattern; /* what is replaced, or with a regex how it is written */
    size_t pattern_bytes;
    struct regex *regex;
    uint8_t *content; /* what is put there */
    size_t content_bytes;
};

/* Zeroed: nothing is done. */
struct normalizer {
    struct normalizer_step steps[NORMALIZER_STEPS_MOST];
    uint32_t count;
};
void normalizer_free(struct normalizer *normalizer);
/* How many times as many bytes a text can become, at most; UINT64_MAX if more than 2^32. */
uint64_t normalizer_growth(const struct normalizer *normalizer);

struct normalizer_state {
    const struct normalizer *normalizer;
    struct nfc_scratch nfc;
    struct bytes_buffer made[2];
    struct regex_state *regexes[NORMALIZER_STEPS_MOST];
};
/* Statuses: OK, ERROR_MEMORY. normalizer_state_free after either. */
enum tokmap_status normalizer_state_init(struct normalizer_state *state, const struct normalizer *normalizer,
                                         struct tokmap_error *error);
void normalizer_state_free(struct normalizer_state *state);
void normalizer_trim(struct normalizer_state *state); /* between documents: gives back what a long one took */

/* *made is the text itself if nothing changes, else lives until the next call. Statuses: OK, ERROR_LIMIT (a pattern
 * that needs too much for this text), ERROR_MEMORY. */
enum tokmap_status normalizer_run(struct normalizer_state *state, const uint8_t *text, size_t count,
                                  const uint8_t **made, size_t *made_count, struct tokmap_error *error);

#endif
