/* SPDX-License-Identifier: MIT */
/*
 * added_tokens.c - a table of texts to search for (match_table.h) per pass, and what the flags of a token do to a
 * match.
 */
#include "added_tokens.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "text/code_point.h"
#include "unicode/code_sets.h"

/* The tokens of one pass. */
struct finder {
    struct match_table *table; /* NULL if there are no tokens */
    struct match_text *texts;
    const struct added_token **tokens; /* of each text */
    bool any_plain;                    /* there are tokens that are not special */
};

struct added_tokens {
    struct added_token *tokens; /* ascending by id */
    size_t count;
    uint8_t *texts;
    struct finder finders[ADDED_PASSES];
};

/* ---- construction ---- */

static int by_id(const void *one, const void *other)
{
    const struct added_token *a = one, *b = other;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_match(const void *one, const void *other)
{
    const struct added_token *a = *(const struct added_token *const *)one;
    const struct added_token *b = *(const struct added_token *const *)other;
    return match_text_compare(&(struct match_text){a->match, a->match_bytes},
                              &(struct match_text){b->match, b->match_bytes});
}

/* Refuses a token whose match is empty or equals that of the token before it. */
static enum tokmap_status check_matches(const struct finder *finder, size_t count, const char *path,
                                        struct tokmap_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct added_token *token = finder->tokens[i];
        if (token->match_bytes && (!i || by_match(&finder->tokens[i - 1], &finder->tokens[i])))
            continue;
        return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                         "the added token '%.*s' (id %" PRIu32 ") %s after normalization, and what the "
                         "reference does then depends on its version; remove the token, or set its "
                         "\"normalized\" to false",
                         (int)(token->bytes < 64 ? token->bytes : 64), (const char *)token->text, token->id,
                         token->match_bytes ? "equals another token" : "is empty");
    }
    return TOKMAP_OK;
}

static enum tokmap_status finder_make(struct added_tokens *added, enum added_pass pass, const char *path,
                                      struct tokmap_error *error)
{
    struct finder *finder = &added->finders[pass];
    size_t count = 0;
    for (size_t i = 0; i < added->count; i++)
        count += added->tokens[i].normalized == (pass == ADDED_NORMALIZED);
    if (!count)
        return TOKMAP_OK;
    finder->tokens = malloc(count * sizeof *finder->tokens);
    finder->texts = malloc(count * sizeof *finder->texts);
    if (!finder->tokens || !finder->texts)
        return error_set_memory(error, "added tokens", count * sizeof *finder->texts);
    count = 0;
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].normalized == (pass == ADDED_NORMALIZED)) {
            finder->tokens[count++] = &added->tokens[i];
            finder->any_plain |= !added->tokens[i].special;
        }
    qsort(finder->tokens, count, sizeof(const struct added_token *), by_match);
    enum tokmap_status status = check_matches(finder, count, path, error);
    for (size_t i = 0; i < count; i++)
        finder->texts[i] = (struct match_text){finder->tokens[i]->match, finder->tokens[i]->match_bytes};
    if (!status)
        status = match_table_new(&finder->table, finder->texts, count, path, error);
    return status;
}

/* Returns true if a token's match, or what it decodes to, equals its text. Then it needs no copy of its own. */
static bool match_is_text(const struct added_token *token)
{
    return token->match_bytes == token->bytes && !memcmp(token->match, token->text, token->bytes);
}

static bool decoded_is_text(const struct added_token *token)
{
    return !token->decoded ||
           (token->decoded_bytes == token->bytes && !memcmp(token->decoded, token->text, token->bytes));
}

/* Copies bytes to *into, which advances. Returns the copy. */
static const uint8_t *copy_bytes(uint8_t **into, const uint8_t *bytes, uint32_t count)
{
    uint8_t *copy = *into;
    memcpy(copy, bytes, count);
    *into += count;
    return copy;
}

enum tokmap_status added_tokens_new(struct added_tokens **added, const struct added_token *tokens, size_t count,
                                    const char *path, struct tokmap_error *error)
{
    size_t total = 1;
    for (size_t i = 0; i < count; i++)
        total += (size_t)tokens[i].bytes + (match_is_text(&tokens[i]) ? 0 : tokens[i].match_bytes) +
                 (decoded_is_text(&tokens[i]) ? 0 : tokens[i].decoded_bytes);
    struct added_tokens *made = calloc(1, sizeof *made);
    *added = NULL;
    if (made) {
        made->tokens = malloc((count + 1) * sizeof *made->tokens);
        made->texts = malloc(total);
    }
    if (!made || !made->tokens || !made->texts) {
        added_tokens_free(made);
        return error_set_memory(error, "added tokens", total);
    }
    uint8_t *into = made->texts;
    for (size_t i = 0; i < count; i++) {
        struct added_token *token = &made->tokens[i];
        *token = tokens[i];
        token->text = copy_bytes(&into, tokens[i].text, token->bytes);
        token->match = match_is_text(&tokens[i]) ? token->text : copy_bytes(&into, tokens[i].match, token->match_bytes);
        token->decoded =
            decoded_is_text(&tokens[i]) ? token->text : copy_bytes(&into, tokens[i].decoded, token->decoded_bytes);
        if (!tokens[i].decoded) {
            token->decoded_bytes = token->bytes;
            token->hidden = token->special;
        }
    }
    made->count = count;
    if (count)
        qsort(made->tokens, count, sizeof *made->tokens, by_id);
    enum tokmap_status status = finder_make(made, ADDED_RAW, path, error);
    if (!status)
        status = finder_make(made, ADDED_NORMALIZED, path, error);
    if (status) {
        added_tokens_free(made);
        return status;
    }
    *added = made;
    return TOKMAP_OK;
}

void added_tokens_free(struct added_tokens *added)
{
    if (!added)
        return;
    for (int pass = 0; pass < ADDED_PASSES; pass++) {
        match_table_free(added->finders[pass].table);
        free(added->finders[pass].texts);
        free(added->finders[pass].tokens);
    }
    free(added->tokens);
    free(added->texts);
    free(added);
}

size_t added_tokens_count(const struct added_tokens *added)
{
    return added ? added->count : 0;
}

const struct added_token *added_tokens_at(const struct added_tokens *added, size_t index)
{
    assert(index < added->count);
    return &added->tokens[index];
}

const struct added_token *added_tokens_by_id(const struct added_tokens *added, uint32_t id)
{
    size_t low = 0, high = added ? added->count : 0;
    const size_t count = high;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (added->tokens[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && added->tokens[low].id == id ? &added->tokens[low] : NULL;
}

const struct added_token *added_tokens_by_text(const struct added_tokens *added, const char *text, size_t bytes)
{
    for (size_t i = 0; added && i < added->count; i++)
        if (added->tokens[i].bytes == bytes && !memcmp(added->tokens[i].text, text, bytes))
            return &added->tokens[i];
    return NULL;
}

bool added_tokens_any(const struct added_tokens *added, enum added_pass pass, bool specials)
{
    return added && added->finders[pass].table && (specials || added->finders[pass].any_plain);
}

/* ---- search ---- */

static bool is_single_word(const uint8_t *text, size_t from, size_t to, size_t count)
{
    size_t bytes;
    if (from && code_set_has(CODE_WORD_RUST, code_point_get(text + code_point_before(text, from), &bytes)))
        return false;
    return to == count || !code_set_has(CODE_WORD_RUST, code_point_get(text + to, &bytes));
}

void added_split_begin(struct added_split *split, const struct added_tokens *added, enum added_pass pass, bool specials,
                       const uint8_t *text, size_t count)
{
    assert(added && pass < ADDED_PASSES && (text || !count));
    const struct finder *finder = &added->finders[pass];
    *split = (struct added_split){.finder = finder, .specials = specials, .text = text, .count = count};
    if (finder->table)
        match_search_begin(&split->search, finder->table, text, count);
}

enum tokmap_status added_split_end(struct added_split *split, struct tokmap_error *error)
{
    const bool lacks_memory = split->search.lacks_memory;
    match_search_end(&split->search);
    return lacks_memory ? error_set_memory(error, "finding long added tokens", split->count) : TOKMAP_OK;
}

/* Returns where the token that begins at `start` begins with the spaces before it, which no earlier token took. */
static size_t strip_left(struct added_split *split, size_t start)
{
    size_t bytes;
    while (start > split->done &&
           code_is_space(code_point_get(split->text + code_point_before(split->text, start), &bytes))) {
        start = code_point_before(split->text, start);
        split->search.steps++;
    }
    return start < split->done ? split->done : start; /* an earlier token took some of these spaces */
}

/* Returns where the token that ends at `to` ends with the spaces after it. The end of a run of spaces is kept, because
 * each of its spaces may be a token. */
static size_t strip_right(struct added_split *split, size_t to)
{
    if (to >= split->spaces_from && to <= split->spaces_to)
        return split->spaces_to;
    split->spaces_from = to;
    for (size_t bytes; to < split->count && code_is_space(code_point_get(split->text + to, &bytes)); to += bytes)
        split->search.steps++;
    split->spaces_to = to;
    return to;
}

bool added_split_next(struct added_split *split, struct added_part *part)
{
    if (split->waiting) {
        *part = (struct added_part){split->waiting, split->done, split->waiting_end};
        split->done = split->waiting_end;
        split->waiting = NULL;
        return true;
    }
    const struct finder *finder = split->finder;
    size_t from = split->at, found;
    while (finder->table && (found = match_search_next(&split->search, &from)) != MATCH_NONE) {
        const struct added_token *token = finder->tokens[found];
        size_t to = from + token->match_bytes;
        split->at = to;
        size_t start = from;
        from = to;
        if ((token->special && !split->specials) ||
            (token->single_word && !is_single_word(split->text, start, to, split->count)))
            continue;
        if (token->lstrip)
            start = strip_left(split, start);
        if (token->rstrip)
            to = strip_right(split, to);
        if (start >= to) /* an earlier token took all of it, so nothing is left for this one */
            continue;
        if (split->done < start) {
            *part = (struct added_part){NULL, split->done, start};
            split->done = start;
            split->waiting = token;
            split->waiting_end = to;
            return true;
        }
        *part = (struct added_part){token, start, to};
        split->done = to;
        return true;
    }
    split->at = split->count;
    if (split->search.lacks_memory || split->done >= split->count)
        return false;
    *part = (struct added_part){NULL, split->done, split->count};
    split->done = split->count;
    return true;
}
