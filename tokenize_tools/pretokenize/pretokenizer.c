#include "pretokenizer.h"

#include "unicode/code_sets.h"
#include "text/code_point.h"
#include "common/error.h"
#include "scanner_piece.h"
#include "unicode/byte_alphabet.h"

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
        bytes_free(&state->prefixed[i]);
    }
}

void pretokenizer_trim(struct pretokenizer_state *state)
{
    for (uint32_t i = 0; i < PRETOKENIZER_STEPS_MOST; i++) {
        bytes_trim(&state->prefixed[i]);
        if (state->regexes[i])
            regex_trim(state->regexes[i]);
    }
}

static bool cut(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count);

static bool lacks_memory(struct pretokenizer_state *state, size_t bytes)
{
    state->status = error_set_memory(state->error, "a piece of text", bytes);
    return false;
}

/* ---- behaviors: matches and gaps, front to back, to pieces ---- */

struct joining {
    struct pretokenizer_state *state;
    const struct pretokenizer_step *step;
    uint32_t number;
    const uint8_t *text;
    bool holds, held_match;     /* something is held back, since what follows may join it */
    size_t held_from, held_to;
    bool any, last_match;
};

static bool hand_on(struct joining *j, size_t from, size_t to)
{
    return from == to || cut(j->state, j->number + 1, j->text + from, to - from);
}

static bool release(struct joining *j)
{
    const bool holds = j->holds;
    j->holds = false;
    return !holds || hand_on(j, j->held_from, j->held_to);
}

static void hold(struct joining *j, size_t from, size_t to, bool match)
{
    j->holds = true;
    j->held_match = match;
    j->held_from = from;
    j->held_to = to;
}

/* A match or a gap. */
static bool join(struct joining *j, size_t from, size_t to, bool match)
{
    match ^= j->step->invert;
    const bool last_match = j->last_match, first = !j->any;
    j->last_match = match;
    j->any = true;
    switch (j->step->behavior) {
    case SPLIT_REMOVED:
        return match || hand_on(j, from, to);
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
            return hand_on(j, start, to);
        }
        break;
    case SPLIT_ISOLATED:
    default:
        return hand_on(j, from, to);
    }
    if (!release(j))
        return false;
    hold(j, from, to, match);
    return true;
}

/* ---- finding matches ---- */

static bool is_member(enum step_kind kind, uint32_t code)
{
    if (kind == STEP_NUMERIC)
        return code < 0x80 ? code - '0' < 10 : code_set_has(CODE_NUMERIC, code);
    if (kind == STEP_PUNCTUATION)
        return code < 0x80 ? code > 32 && code < 127 && code - '0' >= 10 && (code | 32) - 'a' >= 26
                           : code_set_has(CODE_PUNCTUATION, code);
    return code_is_space(code);
}

static bool cut_members(struct joining *j, size_t count)
{
    const struct pretokenizer_step *step = j->step;
    size_t done = 0;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        bytes = 1;
        const uint32_t code = step->mapped ? byte_character(j->text[at]) : code_point_get(j->text + at, &bytes);
        if (!is_member(step->kind, code))
            continue;
        if ((done < at && !join(j, done, at, false)) || !join(j, at, at + bytes, true))
            return false;
        done = at + bytes;
    }
    return done == count || join(j, done, count, false);
}

static bool cut_words(struct joining *j, size_t count)
{
    size_t from = 0;
    enum { SPACES, WORDS, OTHERS } run = SPACES;
    for (size_t at = 0, bytes; at < count; at += bytes) {
        bytes = 1;
        const uint32_t code = j->step->mapped ? byte_character(j->text[at]) : code_point_get(j->text + at, &bytes);
        const bool space = code_is_space(code);
        if ((space ? SPACES : code_set_has(CODE_WORD_RUST, code) ? WORDS : OTHERS) == run)
            continue;
        if (from < at && !join(j, from, at, run != SPACES))
            return false;
        from = at;
        run = space ? SPACES : code_set_has(CODE_WORD_RUST, code) ? WORDS : OTHERS;
    }
    return from == count || join(j, from, count, run != SPACES);
}

static bool cut_literal(struct joining *j, size_t count)
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

/* Into the step's buffer: spaces as the literal, and the literal before. False: no memory. */
static bool metaspace_write(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count)
{
    const struct pretokenizer_step *step = &state->pretokenizer->steps[number];
    struct bytes_buffer *into = &state->prefixed[number];
    const uint8_t *end = text + count;
    const bool lacks = *text != ' ' && (count < step->literal_bytes || memcmp(text, step->literal, step->literal_bytes));
    into->count = 0;
    if (lacks && (step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && state->first)) &&
        !bytes_append(into, step->literal, step->literal_bytes))
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

static bool cut_metaspace(struct joining *j, size_t count)
{
    const struct pretokenizer_step *step = j->step;
    if (!metaspace_write(j->state, j->number, j->text, count))
        return lacks_memory(j->state, count);
    j->text = j->state->prefixed[j->number].bytes;
    count = j->state->prefixed[j->number].count;
    return step->splits ? cut_literal(j, count) : hand_on(j, 0, count);
}

static bool cut_rules(struct joining *j, size_t count)
{
    for (size_t at = 0, end; at < count; at = end) {
        end = scan_piece(&j->step->rules, j->text, at, count);
        if (!join(j, at, end, true))
            return false;
    }
    return true;
}

static bool cut_regex(struct joining *j, size_t count)
{
    struct pretokenizer_state *state = j->state;
    struct regex_state *regex = state->regexes[j->number];
    size_t done = 0, from, to;
    if (!regex_begin(regex, j->text, count, j->step->mapped))
        return lacks_memory(state, count);
    enum regex_found found;
    while ((found = regex_next(regex, &from, &to)) == REGEX_MATCH) {
        if ((done != from && !join(j, done, from, false)) || !join(j, from, to, true))
            return false;
        done = to;
    }
    if (found == REGEX_FAILED) {
        state->status = error_set(state->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                                  "the tokenizer's pattern needs too many steps or too much memory for a text of %zu "
                                  "bytes", count);
        return false;
    }
    return done == count || join(j, done, count, false);
}

static bool pretokenizer_step(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count)
{
    const struct pretokenizer_step *step = &state->pretokenizer->steps[number];
    struct joining j = {state, step, number, text, false, false, 0, 0, false, false};
    bool good;
    switch (step->kind) {
    case STEP_REGEX:
        good = cut_regex(&j, count);
        break;
    case STEP_LITERAL:
        good = cut_literal(&j, count);
        break;
    case STEP_RULES:
        good = cut_rules(&j, count);
        break;
    case STEP_NUMERIC:
    case STEP_PUNCTUATION:
    case STEP_SPACE:
        good = cut_members(&j, count);
        break;
    case STEP_WORDS:
        good = cut_words(&j, count);
        break;
    case STEP_METASPACE:
        good = cut_metaspace(&j, count);
        break;
    case STEP_NOTHING:
    default:
        return cut(state, number + 1, text, count);
    }
    return good && release(&j);
}

/* The steps from `number` on. */
static bool cut(struct pretokenizer_state *state, uint32_t number, const uint8_t *text, size_t count)
{
    if (number == state->pretokenizer->count)
        return state->take(state->user, text, count);
    if (state->pretokenizer->steps[number].prefix_space && text[0] != ' ') {
        struct bytes_buffer *prefixed = &state->prefixed[number];
        prefixed->count = 0;
        if (!bytes_append(prefixed, " ", 1) || !bytes_append(prefixed, text, count))
            return lacks_memory(state, count);
        return pretokenizer_step(state, number, prefixed->bytes, prefixed->count);
    }
    return pretokenizer_step(state, number, text, count);
}

bool pretokenizer_run(struct pretokenizer_state *state, const uint8_t *text, size_t count)
{
    state->status = TOKMAP_OK;
    return cut(state, 0, text, count);
}
