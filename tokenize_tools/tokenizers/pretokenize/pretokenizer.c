/* SPDX-License-Identifier: MIT */
/*
 * pretokenizer.c - runs the steps of a pre-tokenizer, each inside of the previous one.
 *
 * The obvious way, which Hugging Face tokenizers takes, runs the first step over the whole text, keeps a list of all
 * pieces, and runs the next step over the list. Its memory grows with the text. Here, each piece that a step finds goes
 * through all further steps before the step looks for its next piece: run_from calls step k for a text, step k calls
 * run_from for each piece, with step k + 1, and after the last step the piece is emitted. The pieces come out in the
 * same order, nothing is stored, and the recursion is at most PRETOKENIZER_STEPS_MOST deep. Only a step that changes
 * the text, by a prefix or by Metaspace, needs a copy of its text.
 *
 * Example: the text "ab 12", where step 0 isolates matches of \p{N}{1,3} and step 1 isolates matches of \p{L}+:
 *
 *     step 0 finds the gap "ab "      step 1 finds the match "ab"   -> emit "ab"
 *                                     step 1 finds the gap " "      -> emit " "
 *     step 0 finds the match "12"     step 1 finds the gap "12"     -> emit "12"
 *
 * A step reports matches and gaps from front to back, and its behavior turns them into pieces. For the text "a-b--c"
 * and the literal "-":
 *
 *     SPLIT_REMOVED            a   b   c              drops matches
 *     SPLIT_ISOLATED           a - b - - c            every match and every gap is a piece
 *     SPLIT_MERGED_PREVIOUS    a- b- - c              a match joins the gap before it
 *     SPLIT_MERGED_NEXT        a -b - -c              a match joins the gap after it
 *     SPLIT_CONTIGUOUS         a - b -- c             adjacent matches join
 *
 * The last three must see what follows before they can emit, so they hold one piece back (struct joiner).
 */
#include "pretokenizer.h"

#include <assert.h>

#include "common/error.h"
#include "scanner_piece.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "unicode/code_sets.h"

void pretokenizer_free(struct pretokenizer *pretokenizer)
{
    for (uint32_t i = 0; i < pretokenizer->count; i++) {
        regex_free(pretokenizer->steps[i].regex);
        free(pretokenizer->steps[i].literal);
    }
    pretokenizer->count = 0;
}

enum tokmap_status pretokenizer_state_init(struct pretokenizer_state *state, const struct pretokenizer *pretokenizer,
                                           struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    assert(pretokenizer->count <= PRETOKENIZER_STEPS_MOST);
    memset(state, 0, sizeof *state);
    state->pretokenizer = pretokenizer;
    for (uint32_t i = 0; i < pretokenizer->count && !status; i++)
        if (pretokenizer->steps[i].regex)
            status = regex_state_new(&state->regexes[i], pretokenizer->steps[i].regex, error);
    return status;
}

void pretokenizer_state_free(struct pretokenizer_state *state)
{
    for (uint32_t i = 0; i < PRETOKENIZER_STEPS_MOST; i++) {
        regex_state_free(state->regexes[i]);
        bytes_free(&state->changed[i]);
    }
}

void pretokenizer_trim(struct pretokenizer_state *state)
{
    for (uint32_t i = 0; i < PRETOKENIZER_STEPS_MOST; i++) {
        bytes_trim(&state->changed[i]);
        if (state->regexes[i])
            regex_trim(state->regexes[i]);
    }
}

static bool run_from(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count);

static bool out_of_memory(struct pretokenizer_state *state, size_t bytes)
{
    state->status = error_set_memory(state->error, "a piece of text", bytes);
    return false;
}

/* ---- behaviors: from matches and gaps to pieces ---- */

struct joiner {
    struct pretokenizer_state *state;
    const struct pretokenizer_step *step;
    uint32_t number; /* of the step */
    const uint8_t *text;
    bool holds, held_match; /* text[held_from..held_to) is held back because the next part may join it */
    size_t held_from, held_to;
    bool any, last_match; /* of the parts so far: whether there are any, and whether the last one is a match */
};

/* Passes text[from..to) to the next step. */
static bool pass_on(struct joiner *j, size_t from, size_t to)
{
    return from == to || run_from(j->state, j->number + 1, j->text + from, to - from);
}

static bool release(struct joiner *j)
{
    const bool holds = j->holds;
    j->holds = false;
    return !holds || pass_on(j, j->held_from, j->held_to);
}

static void hold(struct joiner *j, size_t from, size_t to, bool match)
{
    j->holds = true;
    j->held_match = match;
    j->held_from = from;
    j->held_to = to;
}

/* Takes the next part of the text: a match or, if not `match`, a gap. Returns false to stop. */
static bool join(struct joiner *j, size_t from, size_t to, bool match)
{
    match ^= j->step->invert;
    const bool last_match = j->last_match, first = !j->any;
    j->last_match = match;
    j->any = true;
    switch (j->step->behavior) {
    case SPLIT_REMOVED:
        return match || pass_on(j, from, to);
    case SPLIT_CONTIGUOUS:
        if (!first && match == last_match) {
            j->held_to = to;
            return true;
        }
        break;
    case SPLIT_MERGED_PREVIOUS:
        if (!first && match && !last_match) {
            j->held_to = to;
            return true;
        }
        break;
    case SPLIT_MERGED_NEXT:
        if (j->holds && j->held_match && !match) {
            const size_t start = j->held_from;
            j->holds = false;
            return pass_on(j, start, to);
        }
        break;
    case SPLIT_ISOLATED:
    default:
        return pass_on(j, from, to);
    }
    if (!release(j))
        return false;
    hold(j, from, to, match);
    return true;
}

/* ---- finding matches ---- */

static inline bool is_member(enum step_kind kind, uint32_t code)
{
    if (kind == STEP_NUMERIC)
        return code < 0x80 ? code - '0' < 10 : code_set_has(CODE_NUMERIC, code);
    if (kind == STEP_PUNCTUATION)
        return code < 0x80 ? code > 32 && code < 127 && code - '0' >= 10 && (code | 32) - 'a' >= 26
                           : code_set_has(CODE_PUNCTUATION, code);
    return code_is_space(code);
}

/* Returns the character at an offset, and sets its bytes. */
static inline uint32_t character_at(const struct joiner *j, size_t at, size_t *bytes)
{
    *bytes = 1;
    return j->step->mapped ? byte_character(j->text[at]) : code_point_get(j->text + at, bytes);
}

static bool find_members(struct joiner *j, size_t count)
{
    size_t done = 0;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        if (!is_member(j->step->kind, character_at(j, at, &bytes)))
            continue;
        if ((done < at && !join(j, done, at, false)) || !join(j, at, at + bytes, true))
            return false;
        done = at + bytes;
    }
    return done == count || join(j, done, count, false);
}

static bool find_words(struct joiner *j, size_t count)
{
    size_t from = 0;
    enum run { SPACES, WORDS, OTHERS } run = SPACES;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        const uint32_t code = character_at(j, at, &bytes);
        const enum run now = code_is_space(code) ? SPACES : code_set_has(CODE_WORD_RUST, code) ? WORDS : OTHERS;
        if (now == run)
            continue;
        if (from < at && !join(j, from, at, run != SPACES))
            return false;
        from = at;
        run = now;
    }
    return from == count || join(j, from, count, run != SPACES);
}

/* Cuts where the script changes. A character of SCRIPT_ANY belongs to the piece before it; if there is none, it is
 * dropped, as the reference does. */
static bool find_scripts(struct joiner *j, size_t count)
{
    uint8_t last = SCRIPT_ANY;
    size_t from = 0;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        const uint8_t script = code_script(character_at(j, at, &bytes));
        if (script == SCRIPT_ANY || script == last)
            continue;
        if (last != SCRIPT_ANY && !join(j, from, at, true))
            return false;
        from = at;
        last = script;
    }
    return last == SCRIPT_ANY || join(j, from, count, true);
}

static bool find_fixed(struct joiner *j, size_t count)
{
    size_t from = 0, characters = 0;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        if (characters++ == j->step->length) {
            if (!join(j, from, at, true))
                return false;
            from = at;
            characters = 1;
        }
        (void)character_at(j, at, &bytes);
    }
    return join(j, from, count, true);
}

static bool find_literal(struct joiner *j, size_t count)
{
    const struct pretokenizer_step *step = j->step;
    size_t done = 0;
    const uint8_t *found;
    while ((found = memmem(j->text + done, count - done, step->literal, step->literal_bytes))) {
        const size_t at = (size_t)(found - j->text);
        if ((done < at && !join(j, done, at, false)) || !join(j, at, at + step->literal_bytes, true))
            return false;
        done = at + step->literal_bytes;
    }
    return done == count || join(j, done, count, false);
}

/* Writes the text to the step's buffer, with spaces replaced by the literal and with the literal before it where the
 * step wants it. Returns false if memory is lacking. */
static bool metaspace_write(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count)
{
    const struct pretokenizer_step *step = &state->pretokenizer->steps[number];
    struct bytes_buffer *into = &state->changed[number];
    const uint8_t *end = text + count;
    const bool has_literal = count >= step->literal_bytes && !memcmp(text, step->literal, step->literal_bytes);
    const bool prefixed =
        *text != ' ' && !has_literal &&
        (step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && state->first && text == state->begin));
    into->count = 0;
    state->sources[number] = (struct pretokenizer_source){text, prefixed ? step->literal_bytes : 0, 0};
    if (prefixed && !bytes_append(into, step->literal, step->literal_bytes))
        return false;
    for (;;) {
        const uint8_t *space = memchr(text, ' ', (size_t)(end - text));
        if (!bytes_append(into, text, (size_t)((space ? space : end) - text)))
            return false;
        if (!space)
            return true;
        if (!bytes_append(into, step->literal, step->literal_bytes))
            return false;
        text = space + 1;
    }
}

static bool run_metaspace(struct joiner *j, size_t count)
{
    const struct pretokenizer_step *step = j->step;
    if (!metaspace_write(j->state, j->number, j->text, count))
        return out_of_memory(j->state, count);
    j->text = j->state->changed[j->number].bytes;
    count = j->state->changed[j->number].count;
    return step->splits ? find_literal(j, count) : pass_on(j, 0, count);
}

static bool find_pieces(struct joiner *j, size_t count)
{
    for (size_t at = 0, end; at < count; at = end) {
        end = scan_piece(&j->step->rules, j->text, at, count);
        if (!join(j, at, end, true))
            return false;
    }
    return true;
}

static bool find_matches(struct joiner *j, size_t count)
{
    struct pretokenizer_state *state = j->state;
    struct regex_state *regex = state->regexes[j->number];
    size_t done = 0, from, to;
    if (!regex_begin(regex, j->text, count, j->step->mapped))
        return out_of_memory(state, count);
    enum regex_found found;
    while ((found = regex_next(regex, &from, &to)) == REGEX_MATCH) {
        if ((done != from && !join(j, done, from, false)) || !join(j, from, to, true))
            return false;
        done = to;
    }
    if (found == REGEX_STOPPED)
        state->status = error_set(state->error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    if (found == REGEX_FAILED) {
        int shown;
        const char *pattern = regex_text(j->step->regex, &shown);
        state->status =
            error_set(state->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                      "the tokenizer's split pattern '%.*s' needs too many steps or too much memory at byte "
                      "%zu of a text of %zu bytes; shorten the document or skip it, or use a simpler pattern",
                      shown, pattern, from, count);
    }
    if (found != REGEX_END)
        return false;
    return done == count || join(j, done, count, false);
}

static bool (*const step_functions[])(struct joiner *j, size_t count) = {
    [STEP_REGEX] = find_matches,   [STEP_LITERAL] = find_literal,     [STEP_RULES] = find_pieces,
    [STEP_NUMERIC] = find_members, [STEP_PUNCTUATION] = find_members, [STEP_SPACE] = find_members,
    [STEP_WORDS] = find_words,     [STEP_METASPACE] = run_metaspace,  [STEP_SCRIPTS] = find_scripts,
    [STEP_FIXED] = find_fixed};

static bool run_step(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count)
{
    const struct pretokenizer_step *step = &state->pretokenizer->steps[number];
    struct joiner j = {state, step, number, text, false, false, 0, 0, false, false};
    if (step->kind == STEP_NOTHING)
        return run_from(state, number + 1, text, count);
    return step_functions[step->kind](&j, count) && release(&j);
}

/* Runs the steps from `number` on. */
static bool run_from(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count)
{
    if (number == state->pretokenizer->count)
        return state->emit(state->user, text, count);
    state->sources[number].text = NULL;
    if (state->pretokenizer->steps[number].prefix_space && text[0] != ' ') {
        struct bytes_buffer *changed = &state->changed[number];
        changed->count = 0;
        state->sources[number] = (struct pretokenizer_source){text, 1, 0};
        if (!bytes_append(changed, " ", 1) || !bytes_append(changed, text, count))
            return out_of_memory(state, count);
        return run_step(state, number, changed->bytes, changed->count);
    }
    return run_step(state, number, text, count);
}

bool pretokenizer_run(struct pretokenizer_state *state, const uint8_t *text, size_t count)
{
    assert(count > 0 && state->emit);
    state->status = TOKMAP_OK;
    state->begin = text;
    return run_from(state, 0, text, count);
}

/* ---- where pieces come from ---- */

bool pretokenizer_keeps(const struct pretokenizer *pretokenizer)
{
    for (uint32_t i = 0; i < pretokenizer->count; i++) {
        const struct pretokenizer_step *step = &pretokenizer->steps[i];
        if (step->prefix_space || step->kind == STEP_METASPACE || step->kind == STEP_SCRIPTS ||
            step->behavior == SPLIT_REMOVED)
            return false;
    }
    return true;
}

/* Does the same for one step: offsets [*begin,*end) of its result become offsets of its source. What was put before the
 * source, and an empty part between two characters, become an empty part. */
static void step_origin(const struct pretokenizer_step *step, struct pretokenizer_source *source, size_t *begin,
                        size_t *end)
{
    const size_t space = step->kind == STEP_METASPACE ? step->literal_bytes : 1; /* bytes that a space has become */
    size_t made = source->made, read = source->read, bytes;
    for (; made < *begin; made += bytes, read++) {
        bytes = source->text[read] == ' ' ? space : 1;
        if (made + bytes > *begin)
            break;
    }
    source->made = made;
    source->read = read;
    *begin = read;
    for (; made < *end; read++)
        made += source->text[read] == ' ' ? space : 1;
    *end = read;
}

void pretokenizer_origin(struct pretokenizer_state *state, const uint8_t **begin, const uint8_t **end)
{
    for (uint32_t number = state->pretokenizer->count; number-- > 0;) {
        struct pretokenizer_source *source = &state->sources[number];
        if (!source->text)
            continue;
        const uint8_t *changed = state->changed[number].bytes;
        size_t from = (size_t)(*begin - changed), to = (size_t)(*end - changed);
        step_origin(&state->pretokenizer->steps[number], source, &from, &to);
        *begin = source->text + from;
        *end = source->text + to;
    }
}
