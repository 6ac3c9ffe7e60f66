/*
 * pretokenizer.h - the pre-tokenizer of a byte-level vocabulary as a sequence of steps, each of which cuts further what the one
 * before made.
 *
 * Whatever the steps are, they run one piece at a time, the first into the second and so on, so memory does not grow with
 * the text. Known patterns do not come here: the fast scanner of the engine takes what the last step leaves.
 */
#ifndef TOKMAP_PRETOKENIZE_PRETOKENIZER_H
#define TOKMAP_PRETOKENIZE_PRETOKENIZER_H

#include "common/bytes_buffer.h"
#include "split_rules.h"
#include "regex_match.h"

#define CUT_STEPS_MOST 16

enum cut_kind {
    CUT_REGEX,
    CUT_LITERAL,     /* a string */
    CUT_RULES,       /* a known pattern, which covers every text */
    CUT_NUMERIC,     /* characters, as Digits ... */
    CUT_PUNCTUATION, /* ... Punctuation ... */
    CUT_SPACE,       /* ... and WhitespaceSplit have them */
    CUT_WORDS,       /* \w+ and [^\w\s]+, as Whitespace has them */
    CUT_METASPACE,   /* spaces become `literal`, which may be put before, and is cut at */
    CUT_NOTHING      /* only the space before */
};

/* What becomes of matches and of what is between them. */
enum cut_behavior { CUT_REMOVED, CUT_ISOLATED, CUT_MERGED_PREVIOUS, CUT_MERGED_NEXT, CUT_CONTIGUOUS };

enum cut_prepend { CUT_PREPEND_NEVER, CUT_PREPEND_FIRST /* in the document */, CUT_PREPEND_ALWAYS };

struct cut_step {
    enum cut_kind kind;
    enum cut_behavior behavior;
    bool invert;       /* what is between matches is the match */
    bool prefix_space; /* first a space is put before a text that begins with none */
    bool mapped;       /* it sees the 256 characters that stand for bytes, not the text */
    bool splits;       /* of CUT_METASPACE: pieces begin at `literal` ... */
    enum cut_prepend prepend; /* ... which is put before a text that does not begin with it */
    struct split_regex *regex;
    uint8_t *literal;
    size_t literal_bytes;
    struct split_rules rules;
};

/* Zeroed: one piece. */
struct cutter {
    struct cut_step steps[CUT_STEPS_MOST];
    uint32_t count;
};
void cutter_free(struct cutter *cutter);

struct cutter_state {
    const struct cutter *cutter;
    struct split_regex_state *regexes[CUT_STEPS_MOST];
    struct bytes_buffer prefixed[CUT_STEPS_MOST];
    bool first; /* the text begins the document */
    /* Where pieces go; false: stop. */
    bool (*take)(void *user, const uint8_t *bytes, size_t count);
    void *user;
    enum tokmap_status status;
    struct tokmap_error *error;
};
/* Statuses: OK, ERROR_MEMORY. cutter_state_free after either. */
enum tokmap_status cutter_state_init(struct cutter_state *state, const struct cutter *cutter,
                                     struct tokmap_error *error);
void cutter_state_free(struct cutter_state *state);
void cutter_settle(struct cutter_state *state);

/* Gives all pieces of a text (not empty) to state->take, in order, none of them empty. False: it stopped; state->status
 * is then OK if take() stopped it, else ERROR_LIMIT or ERROR_MEMORY with state->error. */
bool cutter_run(struct cutter_state *state, const uint8_t *text, size_t count);

/* The character that stands for a byte in the vocabulary of a byte-level tokenizer. */
uint32_t byte_character(uint8_t byte);
/* The byte that a character stands for, or -1. */
int character_byte(uint32_t code);

#endif
