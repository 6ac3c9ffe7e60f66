/* SPDX-License-Identifier: MIT */
/*
 * pretokenizer.h - splits text into pieces by a sequence of steps, as the "pre_tokenizer" of a tokenizer.json describes
 * them. Each step splits the pieces of the previous step further.
 *
 * This is the general way. For the patterns that the fast scanner (scanner.h) implements, a tokenizer has no steps, or
 * only those before the pattern, and its engine scans the pieces that the last step emits.
 */
#ifndef TOKMAP_PRETOKENIZE_PRETOKENIZER_H
#define TOKMAP_PRETOKENIZE_PRETOKENIZER_H

#include "common/bytes_buffer.h"
#include "regex_match.h"
#include "split_rules.h"

#define PRETOKENIZER_STEPS_MOST 16

/* Targets of a step's search. The names in comments are the types of tokenizer.json. */
enum step_kind {
    STEP_REGEX,       /* matches of `regex` (Split) */
    STEP_LITERAL,     /* the string `literal` (Split) */
    STEP_RULES,       /* pieces by `rules`, which cover every text (ByteLevel, Split with a known pattern) */
    STEP_NUMERIC,     /* single numeric characters (Digits) */
    STEP_PUNCTUATION, /* single punctuation characters (Punctuation) */
    STEP_SPACE,       /* single spaces (WhitespaceSplit) */
    STEP_WORDS,       /* \w+ and [^\w\s]+ (Whitespace) */
    STEP_METASPACE,   /* replaces spaces by `literal`, may put it first, and may split before it (Metaspace) */
    STEP_NOTHING,     /* only applies `prefix_space` */
    STEP_SCRIPTS,     /* pieces of one script; drops spaces before the first (UnicodeScripts) */
    STEP_FIXED        /* pieces of `length` characters (FixedLength) */
};

/* Treatment of the matches and of the gaps between them. pretokenizer.c has an example of each. */
enum split_behavior { SPLIT_REMOVED, SPLIT_ISOLATED, SPLIT_MERGED_PREVIOUS, SPLIT_MERGED_NEXT, SPLIT_CONTIGUOUS };

/* Times when STEP_METASPACE puts `literal` before its text: never, before a text that begins the document, or always.
 * No step before a STEP_METASPACE with PREPEND_FIRST changes text. */
enum step_prepend { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS };

struct pretokenizer_step {
    enum step_kind kind;
    enum split_behavior behavior;
    bool invert;               /* treat gaps as matches and matches as gaps */
    bool prefix_space;         /* first put a space before the text, unless it begins with one */
    bool mapped;               /* match the characters that represent the bytes (byte_alphabet.h) instead of the text */
    bool splits;               /* STEP_METASPACE: also split at `literal`, by `behavior` */
    enum step_prepend prepend; /* STEP_METASPACE; texts that begin with a space or with `literal` get none */
    struct regex *regex;       /* owned; NULL unless STEP_REGEX */
    uint8_t *literal;          /* owned; NULL unless STEP_LITERAL or STEP_METASPACE */
    size_t literal_bytes;
    size_t length; /* STEP_FIXED; at least 1 */
    struct split_rules rules;
};

/* Initialize with zeros: no steps, so the whole text is one piece. Immutable while states use it. */
struct pretokenizer {
    struct pretokenizer_step steps[PRETOKENIZER_STEPS_MOST];
    uint32_t count;
};
/* Frees what the steps own and removes them. */
void pretokenizer_free(struct pretokenizer *pretokenizer);

/* The text that a step has read last. */
struct pretokenizer_source {
    const uint8_t *text; /* NULL: the step has not changed it */
    size_t made, read;   /* progress of pretokenizer_origin along the change: offsets of its result, at first the bytes
                            that were put before the text, and of `text` */
};

/* The state of one thread. */
struct pretokenizer_state {
    const struct pretokenizer *pretokenizer;
    struct regex_state *regexes[PRETOKENIZER_STEPS_MOST];
    struct bytes_buffer changed[PRETOKENIZER_STEPS_MOST]; /* by step: its text, if it changes the text */
    struct pretokenizer_source sources[PRETOKENIZER_STEPS_MOST];
    bool first;           /* set by the caller before each run: the text begins the document */
    const uint8_t *begin; /* the text of this run */
    /* Set by the caller: receives the pieces. The bytes are valid only during the call. Returns false to stop. */
    bool (*emit)(void *user, const uint8_t *bytes, size_t count);
    void *user;
    enum tokmap_status status;  /* set by pretokenizer_run */
    struct tokmap_error *error; /* set by the caller; may be NULL */
};
/* Prepares a state for a pre-tokenizer, which must outlive it. The caller then sets `emit`, `user`, and `error`, and
 * calls pretokenizer_state_free in the end, also after a failure. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status pretokenizer_state_init(struct pretokenizer_state *state, const struct pretokenizer *pretokenizer,
                                           struct tokmap_error *error);
void pretokenizer_state_free(struct pretokenizer_state *state);
/* To be called between documents: frees memory that an unusually long document needed. */
void pretokenizer_trim(struct pretokenizer_state *state);

/* Passes all pieces of a text to state->emit, in the order of the text; no piece is empty. The text has count > 0 bytes
 * of valid UTF-8. Returns true at the end of the text, otherwise false: state->status is OK if `emit` stopped the run,
 * or ERROR_LIMIT (a pattern needs too many steps or too much memory) or ERROR_MEMORY, which state->error describes. */
bool pretokenizer_run(struct pretokenizer_state *state, const uint8_t *text, size_t count);

/* Returns whether the pieces of every text together are the text: no step changes text or drops a part of it. */
bool pretokenizer_keeps(const struct pretokenizer *pretokenizer);

/* For `emit`: finds the part of the text of pretokenizer_run that a part of the piece is made of, which is empty for
 * what a step has put in. *begin and *end, which may be equal, point into the piece, or to its end, and then into the
 * text. In a run, *begin never decreases from call to call. */
void pretokenizer_origin(struct pretokenizer_state *state, const uint8_t **begin, const uint8_t **end);

#endif
