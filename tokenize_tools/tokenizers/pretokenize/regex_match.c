/* SPDX-License-Identifier: MIT */
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
 * a document together may be charged STEPS_TEXT and 4 * STEPS_BYTE for each byte. Steps that are many for a short text
 * are charged several times.
 *
 * A step may be a run of "a*" over the text, which PCRE2 does not count: a*b|. reads each letter of a run of a's once
 * for each letter. So a place is tried with the WINDOW characters after it first, as a partial match; if PCRE2 needs
 * to see more, or more than STEPS_FREE steps, a second translation of the pattern is used, in which "a*" has a callout
 * at each end. The callouts charge themselves and the characters between them, RUN characters like one step, because a
 * run takes some 0.3 ns a character. So each place costs a constant, and the charges are limited for the document.
 *
 * Measured: a step takes 1 to 10 ns. \s*[\r\n]+ takes 1 to 10 steps for each space of a run. The quadratic
 * \d{1,3}(?=(?:\d{3})*(?!\d)) takes 1.4 s for 100,000 digits on a quiet machine and 3.3 s on a busy one; 10^6 digits
 * end at the limit after 6.3 s on the busy one, where they took 80 s.
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
#include "pcre2_library.h"
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

void regex_document(struct regex_state *state)
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
#define STACK_FIRST ((size_t)32 << 10)
#define STACK_MOST ((size_t)32 << 20) /* limits the memory for backtracking, with and without JIT */
#define STEPS_FREE UINT64_C(256)
#define STEPS_MORE 16u
#define STEPS_TRIED 65536u
#define STEPS_MATCH UINT64_C(10000000)
#define STEPS_BYTE 16u
#define STEPS_TEXT UINT64_C(1000000000)
#define PLACES ((size_t)256)     /* that one search passes over */
#define WINDOW ((size_t)128)     /* characters after its last place that it sees */
#define RUN 8u                   /* characters of a window that are charged like one step */
#define LOOK (UINT64_C(1) << 24) /* steps between two looks at `stop` */
#define CALLOUT 2u               /* steps that a callout is charged */
#define PATTERN_SHOWN 80u

enum { RUN_BEGINS = 1, RUN_ENDS = 2 }; /* callouts */

struct regex {
    pcre2_code *code, *counted; /* counted: with callouts */
    bool jit;                   /* both compiled to machine code */
    char text[PATTERN_SHOWN];
    int text_bytes;
    struct regex_kinds kinds;
};

struct regex_state {
    const struct regex *regex;
    const uint8_t *text;
    bool bytes;                /* the text has one kind per byte; otherwise one per character */
    struct bytes_buffer kinds; /* of the text */
    size_t at;                 /* place where the search continues, in kinds */
    size_t last_end;           /* end of the last match; SIZE_MAX if there is none */
    size_t known, known_byte;  /* the same place in kinds and in the text: byte_of continues here */
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    uint64_t charged, allowed; /* steps, for the current document */
    size_t counted_at;         /* place of the last callout */
    uint64_t look_at;          /* the charge from which on a callout looks at `stop` */
    bool stopped;              /* inside of a match */
    bool (*stop)(void *user);
    void *user;
};

/* Returns the bytes of a quantifier without an upper limit, with its "?" or "+"; 0: there is none. */
static size_t unbounded(const uint8_t *text, size_t count)
{
    size_t at = 1;
    if (!count || (*text != '*' && *text != '+' && *text != '{'))
        return 0;
    if (*text == '{') {
        while (at < count && text[at] >= '0' && text[at] <= '9')
            at++;
        if (count - at < 2 || text[at] != ',' || text[at + 1] != '}')
            return 0;
        at += 2;
    }
    return at + (at < count && (text[at] == '?' || text[at] == '+'));
}

/* Copies a translated pattern, in which each character is a class, and puts callouts at both ends of each class that
 * is repeated without an upper limit. Returns false if memory is lacking. */
static bool add_callouts(struct bytes_buffer *into, const struct bytes_buffer *text)
{
    static const char begins[] = "(?C1)", ends[] = "(?C2)";
    _Static_assert(RUN_BEGINS == 1 && RUN_ENDS == 2, "the numbers of the callouts");
    bool good = true;
    for (size_t at = 0, next; at < text->count && good; at = next) {
        const uint8_t *class = text->bytes + at, *end = memchr(class, ']', text->count - at);
        next = at + 1;
        if (*class == '[' && end)
            next = (size_t)(end - text->bytes) + 1;
        const size_t repeated = *class == '[' ? unbounded(text->bytes + next, text->count - next) : 0;
        next += repeated;
        good = (!repeated || bytes_append(into, begins, sizeof begins - 1)) && bytes_append(into, class, next - at) &&
               (!repeated || bytes_append(into, ends, sizeof ends - 1));
    }
    return good;
}

static pcre2_code *compile_text(const struct bytes_buffer *text, int *code, bool *memory)
{
    PCRE2_SIZE offset;
    pcre2_compile_context *context = libpcre2.pcre2_compile_context_create(NULL);
    *memory = context != NULL;
    if (!context)
        return NULL;
    libpcre2.pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    const uint8_t *bytes = text->count ? text->bytes : (const uint8_t *)""; /* older versions refuse NULL */
    pcre2_code *made = libpcre2.pcre2_compile(bytes, text->count, PCRE2_DOLLAR_ENDONLY | PCRE2_USE_OFFSET_LIMIT, code,
                                              &offset, context);
    libpcre2.pcre2_compile_context_free(context);
    return made;
}

static enum tokmap_status compile(struct regex *regex, const struct bytes_buffer *text, const char *path,
                                  const char *field, struct tokmap_error *error)
{
    int code;
    bool memory;
    struct bytes_buffer counted = {NULL, 0, 0};
    regex->code = compile_text(text, &code, &memory);
    if (regex->code && (memory = add_callouts(&counted, text)))
        regex->counted = compile_text(&counted, &code, &memory);
    bytes_free(&counted);
    if (!memory)
        return error_set_memory(error, "a pattern", text->count);
    if (!regex->code || !regex->counted) {
        PCRE2_UCHAR reason[160];
        libpcre2.pcre2_get_error_message(code, reason, sizeof reason);
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET, "%s: PCRE2 rejects the pattern: %s",
                         field, (const char *)reason);
    }
    regex->jit = libpcre2.pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) ==
                     0 && /* otherwise slower */
                 libpcre2.pcre2_jit_compile(regex->counted, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
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
    char reason[LIBRARY_REASON];
    *regex = NULL;
    if (!library_load(&libpcre2_library, reason, sizeof reason))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "%s: the pattern has no scanner of its own, and PCRE2, the library for such patterns, cannot "
                         "be loaded (%s); install it (apt-get install %s)",
                         field, reason, libpcre2_library.package);
    struct regex *made = calloc(1, sizeof *made);
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
        libpcre2.pcre2_code_free(regex->code);
        libpcre2.pcre2_code_free(regex->counted);
        regex_kinds_free(&regex->kinds);
    }
    free(regex);
}

bool regex_may_be_empty(const struct regex *regex)
{
    uint32_t may = 1;
    return libpcre2.pcre2_pattern_info(regex->code, PCRE2_INFO_MATCHEMPTY, &may) != 0 || may;
}

/* Called by PCRE2 at both ends of a run: charges its characters. Where PCRE2 returns to a shorter run, only the
 * difference is charged. */
static int count_callout(pcre2_callout_block *block, void *user)
{
    struct regex_state *state = user;
    const size_t now = block->current_position, before = state->counted_at;
    state->counted_at = now;
    state->charged += CALLOUT;
    if (block->callout_number == RUN_ENDS)
        state->charged += (now > before ? now - before : before - now) / RUN;
    if (state->charged >= state->look_at && state->stop) {
        state->look_at = state->charged + LOOK;
        state->stopped = state->stop(state->user);
    }
    return state->stopped ? PCRE2_ERROR_CALLOUT : state->charged > state->allowed ? PCRE2_ERROR_MATCHLIMIT : 0;
}

enum tokmap_status regex_state_new(struct regex_state **state, const struct regex *regex, struct tokmap_error *error)
{
    struct regex_state *made = calloc(1, sizeof *made);
    *state = NULL;
    if (made) {
        made->regex = regex;
        made->data = libpcre2.pcre2_match_data_create(1, NULL);
        made->context = libpcre2.pcre2_match_context_create(NULL);
        made->stack = libpcre2.pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL);
    }
    if (!made || !made->data || !made->context) {
        regex_state_free(made);
        return error_set_memory(error, "the state of a pattern", sizeof *made);
    }
    libpcre2.pcre2_set_heap_limit(made->context, STACK_MOST >> 10);
    libpcre2.pcre2_set_depth_limit(made->context, UINT32_MAX);
    libpcre2.pcre2_set_callout(made->context, count_callout, made);
    regex_document(made);
    if (made->stack)
        libpcre2.pcre2_jit_stack_assign(made->context, NULL, made->stack);
    *state = made;
    return TOKMAP_OK;
}

void regex_state_free(struct regex_state *state)
{
    if (!state)
        return;
    libpcre2.pcre2_match_data_free(state->data);
    libpcre2.pcre2_match_context_free(state->context);
    libpcre2.pcre2_jit_stack_free(state->stack);
    bytes_free(&state->kinds);
    free(state);
}

void regex_document(struct regex_state *state)
{
    state->charged = state->look_at = 0;
    state->allowed = STEPS_TEXT;
}

bool regex_begin(struct regex_state *state, const uint8_t *text, size_t count, bool mapped)
{
    assert(text || !count);
    state->text = text;
    state->kinds.count = state->at = state->known = state->known_byte = 0;
    state->last_end = SIZE_MAX;
    state->stopped = false;
    state->allowed += 4 * STEPS_BYTE * (uint64_t)count;
    const bool good = mapped ? regex_kinds_of_bytes(&state->regex->kinds, text, count, &state->kinds)
                             : regex_kinds_of_text(&state->regex->kinds, text, count, &state->kinds);
    state->bytes = state->kinds.count == count;
    return good;
}

/* Returns the offset in the text of a place in kinds. Places must not decrease from call to call. */
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

/* Searches for a match that begins at place `at` or after it, up to `last`, with a limit of steps for each place. If
 * PCRE2 must see more than `window` places after the last one, the result is PCRE2_ERROR_PARTIAL. */
static int search(struct regex_state *state, size_t at, size_t last, uint64_t steps, size_t window)
{
    static const uint8_t nothing[1];
    const size_t count = state->kinds.count, end = window < count - last ? last + window : count;
    const uint8_t *kinds = count ? state->kinds.bytes : nothing;
    const bool counts = steps > STEPS_FREE || window > WINDOW;
    const pcre2_code *code = counts ? state->regex->counted : state->regex->code;
    const uint32_t partial = end < count ? PCRE2_PARTIAL_HARD : 0;
    state->counted_at = at;
    libpcre2.pcre2_set_match_limit(state->context, (uint32_t)min64(steps, UINT32_MAX));
    libpcre2.pcre2_set_offset_limit(state->context, last);
    return state->regex->jit ? libpcre2.pcre2_jit_match(code, kinds, end, at, partial, state->data, state->context)
                             : libpcre2.pcre2_match(code, kinds, end, at, partial, state->data, state->context);
}

/* Returns what a try with so many steps is charged: more than its steps if they are many for the text's length. */
static uint64_t charge_of(const struct regex_state *state, uint64_t steps)
{
    return steps * (1 + steps / (STEPS_TRIED + STEPS_BYTE * (uint64_t)state->kinds.count));
}

/* Tries a match at one place, for which STEPS_FREE steps, or WINDOW characters, are not enough. */
static int search_hard(struct regex_state *state, size_t at)
{
    const size_t left = state->kinds.count - at;
    const uint64_t most = STEPS_MATCH + STEPS_BYTE * (uint64_t)state->kinds.count;
    uint64_t steps = STEPS_FREE, window = WINDOW;
    for (;;) {
        const int found = search(state, at, at, steps, (size_t)window);
        if (found == PCRE2_ERROR_PARTIAL) {
            window = min64(4 * window, left);
            state->charged += STEPS_FREE;
        } else if (found == PCRE2_ERROR_MATCHLIMIT && steps < most) {
            state->charged += charge_of(state, steps); /* at most a sixteenth of those of the try that follows */
            steps = min64(steps * STEPS_MORE, most);
        } else {
            if (found != PCRE2_ERROR_MATCHLIMIT && steps > STEPS_FREE)
                state->charged += charge_of(state, steps) / 4;
            return found;
        }
        if (state->charged > state->allowed)
            return PCRE2_ERROR_MATCHLIMIT;
    }
}

/* Searches the next PLACES places from state->at on. If there is no match, state->at moves on, at most one place past
 * the end of the text. */
static int search_some(struct regex_state *state)
{
    const size_t last = min64(state->at + PLACES - 1, state->kinds.count);
    int found = search(state, state->at, last, STEPS_FREE, WINDOW);
    if (found != PCRE2_ERROR_MATCHLIMIT && found != PCRE2_ERROR_PARTIAL) {
        state->at = found == PCRE2_ERROR_NOMATCH ? last + 1 : state->at;
        return found;
    }
    if (found == PCRE2_ERROR_PARTIAL)
        state->at = libpcre2.pcre2_get_ovector_pointer(state->data)[0]; /* at the places before it there is no match */
    else /* some place needs more steps; PCRE2 does not report which */
        while ((found = search(state, state->at, state->at, STEPS_FREE, WINDOW)) == PCRE2_ERROR_NOMATCH &&
               state->at < last)
            state->at++;
    if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_PARTIAL)
        found = search_hard(state, state->at);
    if (found == PCRE2_ERROR_NOMATCH)
        state->at++;
    return found;
}

enum regex_found regex_next(struct regex_state *state, size_t *from, size_t *to)
{
    while (state->at <= state->kinds.count) {
        bool stopped = state->stop && state->stop(state->user);
        const int found = stopped ? 0 : search_some(state);
        stopped |= state->stopped;
        if (found == PCRE2_ERROR_NOMATCH)
            continue;
        if (stopped || found < 0) {
            *from = byte_of(state, state->at);
            return stopped ? REGEX_STOPPED : REGEX_FAILED;
        }
        const PCRE2_SIZE *pair = libpcre2.pcre2_get_ovector_pointer(state->data);
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
    regex_document(state);
}
#endif

void regexes_document(struct regex_state *const *states, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (states[i])
            regex_document(states[i]);
}

void regexes_stop(struct regex_state *const *states, uint32_t count, bool (*stop)(void *user), void *user)
{
    for (uint32_t i = 0; i < count; i++)
        if (states[i])
            regex_state_stop(states[i], stop, user);
}
