/*
 * added_tokens.c - one trie per pass. The trie is entered only where the first two bytes of some token occur. Most
 * texts have no such place, so the search for these two bytes determines the cost.
 */
#include "added_tokens.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "unicode/code_sets.h"
#include "common/bytes.h"
#include "text/code_point.h"
#include "common/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define FEW_FIRSTS 4

struct edge {
    uint8_t byte;
    uint32_t node;
};

struct node {
    uint32_t first_edge, edges; /* ascending by byte */
    const struct added_token *token;
};

struct trie {
    struct node *nodes;
    struct edge *all_edges;
    size_t node_count;
    uint8_t firsts[FEW_FIRSTS]; /* the first bytes of all tokens, if they are few; unused entries repeat the first */
    uint8_t seconds[FEW_FIRSTS]; /* the same for second bytes, if all tokens have one */
    bool few, few_seconds;
    bool one_first;             /* all tokens begin with the same byte, which is not a space */
    bool first[256];
    uint64_t pairs[65536 / 64]; /* bit second << 8 | first: a token begins with these two bytes */
    bool any, any_plain;        /* there are tokens; there are tokens that are not special */
};

struct added_tokens {
    struct added_token *tokens; /* ascending by id */
    size_t count;
    uint8_t *texts;
    struct trie tries[ADDED_PASSES];
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
    const uint32_t shorter = a->match_bytes < b->match_bytes ? a->match_bytes : b->match_bytes;
    const int order = memcmp(a->match, b->match, shorter);
    return order ? order : a->match_bytes < b->match_bytes ? -1 : a->match_bytes > b->match_bytes;
}

/* A node while the trie is built: the tokens sorted[from..to) share their first `depth` bytes. */
struct span {
    uint32_t from, to, depth;
};

/* Builds the trie, level by level. `total` is at least the number of nodes. Returns false if memory is lacking. */
static bool trie_fill(struct trie *trie, const struct added_token **sorted, size_t count, size_t total)
{
    trie->nodes = calloc(total + 1, sizeof *trie->nodes);
    trie->all_edges = malloc((total + 1) * sizeof *trie->all_edges);
    struct span *spans = malloc((total + 1) * sizeof *spans);
    if (!trie->nodes || !trie->all_edges || !spans) {
        free(spans);
        return false;
    }
    uint32_t edges = 0;
    spans[0] = (struct span){0, (uint32_t)count, 0};
    trie->node_count = 1;
    for (size_t n = 0; n < trie->node_count; n++) {
        struct node *node = &trie->nodes[n];
        struct span span = spans[n];
        if (sorted[span.from]->match_bytes == span.depth)
            node->token = sorted[span.from++];
        node->first_edge = edges;
        while (span.from < span.to) {
            const uint8_t byte = sorted[span.from]->match[span.depth];
            uint32_t end = span.from;
            while (end < span.to && sorted[end]->match[span.depth] == byte)
                end++;
            spans[trie->node_count] = (struct span){span.from, end, span.depth + 1};
            trie->all_edges[edges++] = (struct edge){byte, (uint32_t)trie->node_count++};
            span.from = end;
        }
        node->edges = edges - node->first_edge;
    }
    assert(trie->node_count <= total + 1);
    free(spans);
    return true;
}

/* Adds a byte to a list of `count` different bytes. Returns the new count, which exceeds FEW_FIRSTS if the list is
 * full. */
static size_t few_add(uint8_t few[FEW_FIRSTS], size_t count, uint8_t byte)
{
    for (size_t i = 0; i < count && i < FEW_FIRSTS; i++)
        if (few[i] == byte)
            return count;
    if (count < FEW_FIRSTS)
        few[count] = byte;
    return count + 1;
}

static void trie_firsts(struct trie *trie, const struct added_token **sorted, size_t count)
{
    size_t firsts = 0, seconds = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *match = sorted[i]->match;
        trie->first[match[0]] = true;
        firsts = few_add(trie->firsts, firsts, match[0]);
        seconds = sorted[i]->match_bytes > 1 ? few_add(trie->seconds, seconds, match[1]) : FEW_FIRSTS + 1;
        for (uint32_t second = 0; second < 256; second++)
            if (sorted[i]->match_bytes == 1 || match[1] == second)
                trie->pairs[(second << 8 | match[0]) / 64] |= UINT64_C(1) << match[0] % 64;
        trie->any = true;
        trie->any_plain |= !sorted[i]->special;
    }
    trie->few = firsts <= FEW_FIRSTS;
    trie->one_first = firsts == 1 && trie->firsts[0] != ' ';
    trie->few_seconds = seconds <= FEW_FIRSTS;
    for (size_t i = firsts; i && i < FEW_FIRSTS; i++)
        trie->firsts[i] = trie->firsts[0];
    for (size_t i = seconds; i && i < FEW_FIRSTS; i++)
        trie->seconds[i] = trie->seconds[0];
}

static enum tokmap_status trie_make(struct added_tokens *added, enum added_pass pass, const char *path,
                                    struct tokmap_error *error)
{
    struct trie *trie = &added->tries[pass];
    const struct added_token **sorted = malloc((added->count + 1) * sizeof *sorted);
    size_t count = 0, total = 1;
    if (!sorted)
        return error_set_memory(error, "added tokens", added->count * sizeof *sorted);
    for (size_t i = 0; i < added->count; i++)
        if (added->tokens[i].normalized == (pass == ADDED_NORMALIZED)) {
            sorted[count++] = &added->tokens[i];
            total += added->tokens[i].match_bytes;
        }
    enum tokmap_status status = TOKMAP_OK;
    if (count)
        qsort(sorted, count, sizeof(const struct added_token *), by_match);
    for (size_t i = 0; i < count && !status; i++)
        if (sorted[i]->match_bytes == 0 || (i && !by_match(&sorted[i - 1], &sorted[i])))
            status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                               "the added token '%.*s' (id %" PRIu32 ") %s after normalization, and what the "
                               "reference does then depends on its version; remove the token, or set its "
                               "\"normalized\" to false",
                               (int)(sorted[i]->bytes < 64 ? sorted[i]->bytes : 64), (const char *)sorted[i]->text,
                               sorted[i]->id, sorted[i]->match_bytes ? "equals another token" : "is empty");
    if (!status && count && !trie_fill(trie, sorted, count, total))
        status = error_set_memory(error, "added tokens", total * sizeof(struct node));
    if (!status)
        trie_firsts(trie, sorted, count);
    free(sorted);
    return status;
}

enum tokmap_status added_tokens_new(struct added_tokens **added, const struct added_token *tokens, size_t count,
                                    const char *path, struct tokmap_error *error)
{
    size_t total = 1;
    for (size_t i = 0; i < count; i++)
        total += (size_t)tokens[i].bytes + tokens[i].match_bytes + (tokens[i].decoded ? tokens[i].decoded_bytes : 0);
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
        memcpy(into, tokens[i].text, tokens[i].bytes);
        token->text = into;
        into += token->bytes;
        memcpy(into, tokens[i].match, tokens[i].match_bytes);
        token->match = into;
        into += token->match_bytes;
        if (tokens[i].decoded) {
            memcpy(into, tokens[i].decoded, tokens[i].decoded_bytes);
            token->decoded = into;
            into += token->decoded_bytes;
        } else {
            token->decoded = token->text;
            token->decoded_bytes = token->bytes;
            token->hidden = token->special;
        }
    }
    made->count = count;
    if (count)
        qsort(made->tokens, count, sizeof *made->tokens, by_id);
    enum tokmap_status status = trie_make(made, ADDED_RAW, path, error);
    if (!status)
        status = trie_make(made, ADDED_NORMALIZED, path, error);
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
        free(added->tries[pass].nodes);
        free(added->tries[pass].all_edges);
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
    return added && (specials ? added->tries[pass].any : added->tries[pass].any_plain);
}

/* ---- search ---- */

#if defined(__SSE2__)
/* One bit for each of 16 bytes: whether it is one of the four. */
static inline int any_of(const uint8_t *text, const uint8_t four[FEW_FIRSTS])
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i hit = _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)four[0]));
    for (int i = 1; i < FEW_FIRSTS; i++)
        hit = _mm_or_si128(hit, _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)four[i])));
    return _mm_movemask_epi8(hit);
}
#endif

/* The first offset from `at` on at which the first byte of a token is, or `count`. If there are few second bytes, they
 * are compared, too: the tokens of Llama-2 all begin with a space. */
static size_t next_first(const struct trie *trie, const uint8_t *text, size_t at, size_t count)
{
    if (trie->one_first) {
        const uint8_t *found = at < count ? memchr(text + at, trie->firsts[0], count - at) : NULL;
        return found ? (size_t)(found - text) : count;
    }
#if defined(__SSE2__)
    for (; trie->few && count - at >= 17; at += 16) {
        int mask = any_of(text + at, trie->firsts);
        if (mask && trie->few_seconds)
            mask &= any_of(text + at + 1, trie->seconds);
        if (mask)
            return at + (size_t)__builtin_ctz((unsigned)mask);
    }
#endif
    while (at < count && !trie->first[text[at]])
        at++;
    return at;
}

/* The longest token at `at`, or NULL. */
static const struct added_token *longest_at(const struct trie *trie, const uint8_t *text, size_t at, size_t count)
{
    const struct added_token *found = NULL;
    const struct node *node = &trie->nodes[0];
    for (; at < count; at++) {
        const struct edge *edges = trie->all_edges + node->first_edge;
        uint32_t low = 0, high = node->edges;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (edges[middle].byte < text[at])
                low = middle + 1;
            else
                high = middle;
        }
        if (low == node->edges || edges[low].byte != text[at])
            break;
        node = &trie->nodes[edges[low].node];
        if (node->token)
            found = node->token;
    }
    return found;
}

/* The first token from *at on; *at becomes its offset. NULL if there is none. */
static const struct added_token *find(const struct trie *trie, const uint8_t *text, size_t *at, size_t count)
{
    for (size_t place = *at; (place = next_first(trie, text, place, count)) < count; place++) {
        const uint32_t pair = place + 1 < count ? load16(text + place) : text[place];
        if (place + 1 < count && !(trie->pairs[pair / 64] >> pair % 64 & 1))
            continue;
        const struct added_token *token = longest_at(trie, text, place, count);
        if (token) {
            *at = place;
            return token;
        }
    }
    return NULL;
}

/* The offset of the character before `at`, at > 0. */
static size_t character_before(const uint8_t *text, size_t at)
{
    do
        at--;
    while (at && (text[at] & 0xC0) == 0x80);
    return at;
}

static bool is_single_word(const uint8_t *text, size_t from, size_t to, size_t count)
{
    size_t bytes;
    if (from && code_set_has(CODE_WORD_RUST, code_point_get(text + character_before(text, from), &bytes)))
        return false;
    return to == count || !code_set_has(CODE_WORD_RUST, code_point_get(text + to, &bytes));
}

void added_split_begin(struct added_split *split, const struct added_tokens *added, enum added_pass pass, bool specials,
                       const uint8_t *text, size_t count)
{
    assert(added && pass < ADDED_PASSES && (text || !count));
    *split = (struct added_split){added, pass, specials, text, count, 0, 0, NULL, 0};
}

bool added_split_next(struct added_split *split, struct added_part *part)
{
    const uint8_t *text = split->text;
    if (split->waiting) {
        *part = (struct added_part){split->waiting, split->done, split->waiting_end};
        split->done = split->waiting_end;
        split->waiting = NULL;
        return true;
    }
    const struct trie *trie = &split->added->tries[split->pass];
    const struct added_token *token;
    size_t from = split->at;
    while (trie->any && (token = find(trie, text, &from, split->count))) {
        size_t to = from + token->match_bytes;
        split->at = to;
        size_t start = from;
        from = to;
        if ((token->special && !split->specials) ||
            (token->single_word && !is_single_word(text, start, to, split->count)))
            continue;
        if (token->lstrip) {
            size_t bytes;
            while (start > split->done && code_is_space(code_point_get(text + character_before(text, start), &bytes)))
                start = character_before(text, start);
            if (start < split->done) /* an earlier token took some of these spaces */
                start = split->done;
        }
        if (token->rstrip)
            for (size_t bytes; to < split->count && code_is_space(code_point_get(text + to, &bytes));)
                to += bytes;
        if (start == to) { /* an earlier token took all of it, so nothing is left for this one */
            split->done = to;
            continue;
        }
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
    if (split->done >= split->count)
        return false;
    *part = (struct added_part){NULL, split->done, split->count};
    split->done = split->count;
    return true;
}
