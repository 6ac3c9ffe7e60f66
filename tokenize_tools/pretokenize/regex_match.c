/*
 * regex_match.c - patterns that no scanner implements, compiled and matched by PCRE2.
 *
 * The idea. A tokenizer file names its pattern in the language of its own engine (Oniguruma or Rust's), and ids must
 * not depend on which Unicode version PCRE2 was built with. So PCRE2 never sees a character. A pattern takes two
 * translations, and the text takes one:
 *
 *     pattern   \p{N}{1,3}|[ab]+          regex_rewrite.c: each class becomes a marker for a set of code points
 *               (set 0){1,3}|(set 1)+      regex_kinds.c: 3 kinds of characters: 0 others, 1 numbers, 2 a and b
 *               [\x01]{1,3}|[\x02]+        what PCRE2 compiles: a pattern over bytes, without Unicode mode
 *     text      "ab 42"                    regex_kinds.c, at regex_begin: one byte per character
 *               2 2 0 1 1                  what PCRE2 searches: the matches are 0-2 and 3-5
 *
 * Offsets of matches count characters; regex_next translates them back to bytes of the text, going forward only
 * (byte_of).
 *
 * The obvious way is PCRE2's UTF mode with \p{..} of its own. It would give wrong ids for characters whose properties
 * changed between Unicode versions, and it is slower: PCRE2 searches tables or lists of ranges for each character,
 * where the translated pattern tests one bit.
 *
 * Limits. PCRE2 backtracks, so that a pattern may need time that is exponential in the text, and it counts steps only
 * within one start of a match, and without reporting the count. So each place gets STEPS_FREE steps at first, which are
 * enough for nearly every match. Where they are not, the place is tried again with 16 times as many, and so on, and
 * each try is charged. A match may take STEPS_MATCH steps and STEPS_BYTE for each byte of the text, and all matches of
 * a text together may be charged STEPS_TEXT and 4 * STEPS_BYTE for each byte. Steps that are many for a short text are
 * charged several times, since they are the slow ones: a step may be a run of "a*" over the text. Measured: a step
 * takes 1 to 100 ns. \s*[\r\n]+ takes 1 to 10 steps for each space of a run. The quadratic \d{1,3}(?=(?:\d{3})*(?!\d))
 * is charged 7e8 steps for 100,000 digits and takes 0.8 s; 10^6 digits end at the limit after 1.6 s, where they took 80
 * s.
 *
 * Cost: one table lookup per character for the kinds, then PCRE2's search. PCRE2 compiles the pattern to machine code
 * where it can (JIT). This is still much slower than the scanners; it is for patterns that they do not implement, and
 * it tests them.
 */
#include "regex_match.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/utf8.h"

#ifndef HAVE_PCRE2

struct regex {
    int unused;
};

enum tokmap_status regex_new(struct regex **regex, const char *pattern, size_t bytes, enum regex_dialect dialect,
                             const char *path, const char *field, struct tokmap_error *error)
{
    *regex = NULL;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                     "%s: no built-in scanner supports this pattern, and this build has no PCRE2; install libpcre2-dev "
                     "and build tokmap again",
                     field);
}

void regex_free(struct regex *regex)
{
}

bool regex_may_be_empty(const struct regex *regex)
{
    return false;
}

enum tokmap_status regex_state_new(struct regex_state **state, const struct regex *regex, struct tokmap_error *error)
{
    *state = NULL;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                     "this build has no PCRE2, which this tokenizer's pattern needs");
}

void regex_state_free(struct regex_state *state)
{
}

bool regex_begin(struct regex_state *state, const uint8_t *text, size_t count, bool mapped)
{
    return false;
}

enum regex_found regex_next(struct regex_state *state, size_t *from, size_t *to)
{
    return REGEX_FAILED;
}

void regex_state_stop(struct regex_state *state, bool (*stop)(void *user), void *user)
{
}

const char *regex_text(const struct regex *regex, int *bytes)
{
    *bytes = 0;
    return "";
}

uint64_t regex_charged(const struct regex_state *state)
{
    return 0;
}

void regex_trim(struct regex_state *state)
{
}

#else
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define STACK_FIRST ((size_t)32 << 10)
#define STACK_MOST ((size_t)32 << 20) /* limits the memory for backtracking, with and without JIT */
#define STEPS_FREE UINT64_C(256)
#define STEPS_MORE 16u
#define STEPS_TRIED 65536u
#define STEPS_MATCH UINT64_C(10000000)
#define STEPS_BYTE 16u
#define STEPS_TEXT UINT64_C(1000000000)
#define PLACES ((size_t)16384) /* that one search passes over */
#define PATTERN_SHOWN 80u

struct regex {
    pcre2_code *code;
    bool jit; /* compiled to machine code */
    char text[PATTERN_SHOWN];
    int text_bytes;
    struct regex_kinds kinds;
};

struct regex_state {
    const struct regex *regex;
    const uint8_t *text;
    bool bytes;                /* the text has one kind per byte; otherwise one per character */
    struct bytes_buffer kinds; /* of the text */
    size_t at;                 /* where the search continues, in kinds */
    size_t last_end;           /* where the last match ends; SIZE_MAX if there is none */
    size_t known, known_byte;  /* the same place in kinds and in the text: byte_of continues here */
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    uint64_t charged; /* steps, for the current text */
    bool (*stop)(void *user);
    void *user;
};

static enum tokmap_status compile(struct regex *regex, const struct bytes_buffer *text, const char *path,
                                  const char *field, struct tokmap_error *error)
{
    int code;
    PCRE2_SIZE offset;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return error_set_memory(error, "a pattern", text->count);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    regex->code =
        pcre2_compile(text->bytes, text->count, PCRE2_DOLLAR_ENDONLY | PCRE2_USE_OFFSET_LIMIT, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!regex->code) {
        PCRE2_UCHAR reason[160];
        pcre2_get_error_message(code, reason, sizeof reason);
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET, "%s: PCRE2 rejects the pattern: %s",
                         field, (const char *)reason);
    }
    regex->jit = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) == 0; /* otherwise slower, with the same matches */
    return TOKMAP_OK;
}

enum tokmap_status regex_new(struct regex **regex, const char *pattern, size_t bytes, enum regex_dialect dialect,
                             const char *path, const char *field, struct tokmap_error *error)
{
    struct bytes_buffer marked = {NULL, 0, 0}, text = {NULL, 0, 0};
    struct regex_sets sets = {.count = 0};
    struct regex_fault fault;
    bool too_many = false;
    enum tokmap_status status;
    struct regex *made = calloc(1, sizeof *made);
    *regex = NULL;
    if (!made)
        return error_set_memory(error, "a pattern", sizeof *made);
    made->text_bytes = (int)utf8_valid_prefix(pattern, min64(bytes, PATTERN_SHOWN));
    memcpy(made->text, pattern, (size_t)made->text_bytes);
    if (regex_rewrite(&marked, &sets, pattern, bytes, dialect, &fault) &&
        regex_kinds_make(&made->kinds, &sets, &marked, &text, &too_many))
        status = compile(made, &text, path, field, error);
    else if (fault.reason)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                           "%s: the pattern is not supported: %s (byte %zu of the pattern)", field, fault.reason,
                           fault.offset);
    else if (too_many)
        status =
            error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                      "%s: the pattern distinguishes more than 256 kinds of characters, which is not supported", field);
    else
        status = error_set_memory(error, "a pattern", text.count);
    bytes_free(&marked);
    bytes_free(&text);
    regex_sets_free(&sets);
    if (status) {
        regex_free(made);
        return status;
    }
    *regex = made;
    return TOKMAP_OK;
}

void regex_free(struct regex *regex)
{
    if (regex) {
        pcre2_code_free(regex->code);
        regex_kinds_free(&regex->kinds);
    }
    free(regex);
}

bool regex_may_be_empty(const struct regex *regex)
{
    uint32_t may = 1;
    return pcre2_pattern_info(regex->code, PCRE2_INFO_MATCHEMPTY, &may) != 0 || may;
}

enum tokmap_status regex_state_new(struct regex_state **state, const struct regex *regex, struct tokmap_error *error)
{
    struct regex_state *made = calloc(1, sizeof *made);
    *state = NULL;
    if (made) {
        made->regex = regex;
        made->data = pcre2_match_data_create(1, NULL);
        made->context = pcre2_match_context_create(NULL);
        made->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL);
    }
    if (!made || !made->data || !made->context) {
        regex_state_free(made);
        return error_set_memory(error, "the state of a pattern", sizeof *made);
    }
    pcre2_set_heap_limit(made->context, STACK_MOST >> 10);
    pcre2_set_depth_limit(made->context, UINT32_MAX);
    if (made->stack)
        pcre2_jit_stack_assign(made->context, NULL, made->stack);
    *state = made;
    return TOKMAP_OK;
}

void regex_state_free(struct regex_state *state)
{
    if (!state)
        return;
    pcre2_match_data_free(state->data);
    pcre2_match_context_free(state->context);
    pcre2_jit_stack_free(state->stack);
    bytes_free(&state->kinds);
    free(state);
}

bool regex_begin(struct regex_state *state, const uint8_t *text, size_t count, bool mapped)
{
    assert(text || !count);
    state->text = text;
    state->kinds.count = state->at = state->known = state->known_byte = 0;
    state->last_end = SIZE_MAX;
    state->charged = 0;
    const bool good = mapped ? regex_kinds_of_bytes(&state->regex->kinds, text, count, &state->kinds)
                             : regex_kinds_of_text(&state->regex->kinds, text, count, &state->kinds);
    state->bytes = state->kinds.count == count;
    return good;
}

/* The offset in the text of a place in kinds. Places must not decrease from call to call. */
static size_t byte_of(struct regex_state *state, size_t place)
{
    if (state->bytes)
        return place;
    for (; state->known < place; state->known++) {
        const uint32_t lead = state->text[state->known_byte];
        state->known_byte += lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    }
    return state->known_byte;
}

/* Searches for a match that begins at place `at` or after it, up to `last`, with a limit of steps for each place. */
static int search(struct regex_state *state, size_t at, size_t last, uint64_t steps)
{
    static const uint8_t nothing[1];
    const pcre2_code *code = state->regex->code;
    const uint8_t *kinds = state->kinds.count ? state->kinds.bytes : nothing;
    pcre2_set_match_limit(state->context, (uint32_t)min64(steps, UINT32_MAX));
    pcre2_set_offset_limit(state->context, last);
    return state->regex->jit ? pcre2_jit_match(code, kinds, state->kinds.count, at, 0, state->data, state->context)
                             : pcre2_match(code, kinds, state->kinds.count, at, 0, state->data, state->context);
}

/* What a try with so many steps is charged: more than its steps if they are many for the text's length. */
static uint64_t charge_of(const struct regex_state *state, uint64_t steps)
{
    return steps * (1 + steps / (STEPS_TRIED + STEPS_BYTE * (uint64_t)state->kinds.count));
}

/* Tries a match at one place, for which STEPS_FREE are not enough. */
static int search_hard(struct regex_state *state, size_t at)
{
    const uint64_t most = STEPS_MATCH + STEPS_BYTE * (uint64_t)state->kinds.count;
    const uint64_t most_charged = STEPS_TEXT + 4 * STEPS_BYTE * (uint64_t)state->kinds.count;
    int found = PCRE2_ERROR_MATCHLIMIT;
    for (uint64_t steps = STEPS_FREE; found == PCRE2_ERROR_MATCHLIMIT && steps < most;) {
        /* The steps of the try that fails, at most a sixteenth of those of the try that follows. */
        state->charged += charge_of(state, steps);
        steps = min64(steps * STEPS_MORE, most);
        if (state->charged > most_charged)
            return found;
        found = search(state, at, at, steps);
        if (found != PCRE2_ERROR_MATCHLIMIT && steps > STEPS_FREE * STEPS_MORE)
            state->charged += charge_of(state, steps) / 4;
    }
    return found;
}

/* Searches the next PLACES places from state->at on. If there is no match, state->at moves on, at most one place past
 * the end of the text. */
static int search_some(struct regex_state *state)
{
    const size_t last = min64(state->at + PLACES - 1, state->kinds.count);
    int found = search(state, state->at, last, STEPS_FREE);
    if (found != PCRE2_ERROR_MATCHLIMIT) {
        state->at = found == PCRE2_ERROR_NOMATCH ? last + 1 : state->at;
        return found;
    }
    /* Some place needs more steps. PCRE2 does not report which. */
    while ((found = search(state, state->at, state->at, STEPS_FREE)) == PCRE2_ERROR_NOMATCH && state->at < last)
        state->at++;
    if (found == PCRE2_ERROR_MATCHLIMIT)
        found = search_hard(state, state->at);
    if (found == PCRE2_ERROR_NOMATCH)
        state->at++;
    return found;
}

enum regex_found regex_next(struct regex_state *state, size_t *from, size_t *to)
{
    while (state->at <= state->kinds.count) {
        const bool stopped = state->stop && state->stop(state->user);
        const int found = stopped ? 0 : search_some(state);
        if (found == PCRE2_ERROR_NOMATCH)
            continue;
        if (stopped || found < 0) {
            *from = byte_of(state, state->at);
            return stopped ? REGEX_STOPPED : REGEX_FAILED;
        }
        const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(state->data);
        if (pair[0] == pair[1] && pair[1] == state->last_end) { /* empty, at the last match's end: move on */
            state->at++;
            continue;
        }
        *from = byte_of(state, pair[0]);
        *to = byte_of(state, pair[1]);
        state->at = state->last_end = pair[1];
        return REGEX_MATCH;
    }
    return REGEX_END;
}

void regex_state_stop(struct regex_state *state, bool (*stop)(void *user), void *user)
{
    state->stop = stop;
    state->user = user;
}

const char *regex_text(const struct regex *regex, int *bytes)
{
    *bytes = regex->text_bytes;
    return regex->text;
}

uint64_t regex_charged(const struct regex_state *state)
{
    return state->charged;
}

void regex_trim(struct regex_state *state)
{
    bytes_trim(&state->kinds);
}
#endif
