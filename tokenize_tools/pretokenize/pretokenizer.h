/*
 * pretokenizer.h - the pre-tokenizer of a byte-level vocabulary as a sequence of steps, each of which cuts further what
 * the one before made.
 *
 * Whatever the steps are, they run one piece at a time, the first into the second and so on, so memory does not grow
 * with the text. Known patterns do not come here: the fast scanner of the engine takes what the last step leaves.
 */
#ifndef TOKMAP_PRETOKENIZE_PRETOKENIZER_H
#define TOKMAP_PRETOKENIZE_PRETOKENIZER_H

#include "common/bytes_buffer.h"
#include "split_rules.h"
#include "regex_match.h"

#define PRETOKENIZER_STEPS_MOST 16

enum step_kind {
    STEP_REGEX,
    STEP_LITERAL,     /* a string */
    STEP_RULES,       /* a known pattern, which covers every text */
    STEP_NUMERIC,     /* characters, as Digits ... */
    STEP_PUNCTUATION, /* ... Punctuation ... */
    STEP_SPACE,       /* ... and WhitespaceSplit have them */
    STEP_WORDS,       /* \w+ and [^\w\s]+, as Whitespace has them */
    STEP_METASPACE,   /* spaces become `literal`, which may be put before, and is cut at */
    STEP_NOTHING      /* only the space before */
};

/* What becomes of matches and of what is between them. */
enum split_behavior { SPLIT_REMOVED, SPLIT_ISOLATED, SPLIT_MERGED_PREVIOUS, SPLIT_MERGED_NEXT, SPLIT_CONTIGUOUS };

enum step_prepend { PREPEND_NEVER, PREPEND_FIRST /* in the document */, PREPEND_ALWAYS };

struct pretokenizer_step {
    enum step_kind kind;
    enum split_behavior behavior;
    bool invert;       /* what is between matches is the match */
    bool prefix_space; /* first a space is put before a text that begins with none */
    bool mapped;       /* it sees the 256 characters that stand for bytes, not the text */
    bool splits;       /* of STEP_METASPACE: pieces begin at `literal` ... */
    enum step_prepend prepend; /* ... which is put before a text that does not begin with it */
    struct regex *regex;
    uint8_t *literal;
    size_t literal_bytes;
    struct split_rules rules;
};

/* Zeroed: one piece. */
struct pretokenizer {
    struct pretokenizer_step steps[PRETOKENIZER_STEPS_MOST];
    uint32_t count;
};
void pretokenizer_free(struct pretokenizer *pretokenizer);

struct pretokenizer_state {
    const struct pretokenizer *pretokenizer;
    struct regex_state *regexes[PRETOKENIZER_STEPS_MOST];
    struct bytes_buffer prefixed[PRETOKENIZER_STEPS_MOST];
    bool first; /* the text begins the document */
    /* Where pieces go; false: stop. */
    bool (*take)(void *user, const uint8_t *bytes, size_t count);
    void *user;
    enum tokmap_status status;
    struct tokmap_error *error;
};
/* Statuses: OK, ERROR_MEMORY. pretokenizer_state_free after either. */
enum tokmap_status pretokenizer_state_init(struct pretokenizer_state *state, const struct pretokenizer *pretokenizer,
                                     struct tokmap_error *error);
void pretokenizer_state_free(struct pretokenizer_state *state);
void pretokenizer_trim(struct pretokenizer_state *state);

/* Gives all pieces of a text (not empty) to state->take, in order, none of them empty. False: it stopped; state->status
 * is then OK if take() stopped it, else ERROR_LIMIT or ERROR_MEMORY with state->error. */
bool pretokenizer_run(struct pretokenizer_state *state, const uint8_t *text, size_t count);

#endif
