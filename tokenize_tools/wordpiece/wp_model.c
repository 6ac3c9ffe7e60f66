/* SPDX-License-Identifier: MIT */
/*
 * wp_model.c - the tries of a vocabulary, and words to ids.
 *
 * The obvious way looks up the longest text that fits, then a shorter one, and so on: n^2 lookups for a word of n
 * bytes, and even with a trie each token may read the bytes that the next one reads again. Here each byte is read once,
 * as in LinMaxMatch (Song, Salcianu, Song, Dopson, Zhou: Fast WordPiece Tokenization, 2021).
 *
 * There are two tries: of all tokens, for the beginning of a word, and of those that continue words, without their
 * prefix. A node knows what to do if the next byte leads nowhere: the tokens that are certain then, and the node for
 * the bytes that they leave over. Example: the tokens are "a", "abcd", "##b", "##c", "##cdx". The word "abcdx" goes to
 * the node of "abcd", which is a token; x leads nowhere, so "abcd" is certain and the node for what is left, nothing,
 * is the root of the second trie. There x leads nowhere, and nothing is certain: the word is unknown. In "abcz" z leads
 * nowhere from the node of "abc". Certain are "a" and "##b", and "c" is left over, whose node in the second trie is
 * where the word continues.
 *
 * These tokens and nodes are found when the model is made, shorter texts first: what a text of n bytes needs follows
 * from that of its first n - 1 bytes. Lists of tokens share their beginnings, so they have at most one link for each
 * byte of the vocabulary.
 */
#include "wp_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"

#define NODE_BITS 28
#define NODES_MOST (1u << NODE_BITS)

/* ---- steps from node to node ---- */

static inline uint64_t edge_key(uint32_t node, uint8_t byte)
{
    return (uint64_t)node << 8 | byte;
}

static inline uint64_t edge_place(const struct wp_model *model, uint64_t key)
{
    return key * model->edge_factor >> (64 - model->edge_bits);
}

/* Returns the node that a byte leads to, or WP_NO_NODE. */
static inline uint32_t edge_find(const struct wp_model *model, uint32_t node, uint8_t byte)
{
    const uint64_t key = edge_key(node, byte), mask = ((uint64_t)1 << model->edge_bits) - 1;
    if (node == 0)
        return model->firsts[0][byte];
    if (node == model->rest)
        return model->firsts[1][byte];
    for (uint64_t at = edge_place(model, key);; at = (at + 1) & mask) {
        const uint64_t found = model->edges[at];
        if (found >> NODE_BITS == key)
            return (uint32_t)found & (NODES_MOST - 1);
        if (found == UINT64_MAX)
            return WP_NO_NODE;
    }
}

/* Adds a step to a table that has room. */
static void edge_put(uint64_t *edges, uint32_t bits, uint64_t factor, uint64_t edge)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t at = (edge >> NODE_BITS) * factor >> (64 - bits);
    while (edges[at] != UINT64_MAX)
        at = (at + 1) & mask;
    edges[at] = edge;
}

/* ---- making a model ---- */

struct building {
    struct wp_model *model;
    const struct wp_source *source;
    uint32_t *ends[2]; /* by id: the nodes where the token ends as a beginning and as a rest, or WP_NO_NODE */
    uint32_t *parents; /* by node */
    uint8_t *bytes;    /* by node: the byte that leads to it */
    uint32_t *tokens;  /* by node: the token that ends there, or BPE_NONE */
    uint32_t *depths;  /* by node */
    uint32_t link_room;
    bool lacks_memory, too_large;
};

/* Doubles the table of steps. */
static bool edges_grow(struct building *own)
{
    struct wp_model *model = own->model;
    const uint32_t bits = model->edge_bits + 1;
    uint64_t *edges = os_memory_large(sizeof *edges << bits);
    if (!edges)
        return false;
    memset(edges, 0xFF, sizeof *edges << bits);
    for (uint64_t at = 0; model->edges && at < (uint64_t)1 << model->edge_bits; at++)
        if (model->edges[at] != UINT64_MAX)
            edge_put(edges, bits, model->edge_factor, model->edges[at]);
    free(model->edges);
    model->edges = edges;
    model->edge_bits = bits;
    return true;
}

/* Adds a node that a byte leads to. Returns its number, or WP_NO_NODE if there are too many or memory ran out. */
static uint32_t node_add(struct building *own, uint32_t parent, uint8_t byte)
{
    struct wp_model *model = own->model;
    own->too_large |= model->node_count == WP_NODES_MOST;
    own->lacks_memory |=
        !own->too_large && model->node_count >= (UINT64_C(1) << model->edge_bits) / 2 && !edges_grow(own);
    if (own->too_large || own->lacks_memory)
        return WP_NO_NODE;
    const uint32_t node = model->node_count++;
    edge_put(model->edges, model->edge_bits, model->edge_factor, edge_key(parent, byte) << NODE_BITS | node);
    if (parent == 0)
        model->firsts[0][byte] = node;
    if (parent == model->rest)
        model->firsts[1][byte] = node;
    return node;
}

/* Adds a text to the trie that begins with a node. Returns the node where it ends, or WP_NO_NODE. */
static uint32_t text_add(struct building *own, uint32_t node, const uint8_t *text, uint32_t count)
{
    for (uint32_t i = 0; i < count && node != WP_NO_NODE; i++) {
        const uint32_t next = edge_find(own->model, node, text[i]);
        node = next == WP_NO_NODE ? node_add(own, node, text[i]) : next;
    }
    return node;
}

/* Returns the bytes of a token without the prefix of tokens that continue words, or 0 if it does not continue any. */
static uint32_t rest_bytes(const struct wp_source *source, uint32_t id)
{
    const uint32_t count = source->offsets[id + 1] - source->offsets[id];
    const bool continues = source->prefix && count > source->prefix_bytes &&
                           !memcmp(source->bytes + source->offsets[id], source->prefix, source->prefix_bytes);
    return continues ? count - (uint32_t)source->prefix_bytes : 0;
}

static bool tries_fill(struct building *own)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    const bool same = source->prefix && !source->prefix_bytes; /* any token may continue a word */
    memset(model->firsts, 0xFF, sizeof model->firsts);
    model->rest = same ? 0 : 1;
    model->node_count = model->rest + 1;
    for (uint32_t id = 0; id < source->vocabulary && !own->too_large && !own->lacks_memory; id++) {
        const uint32_t from = source->offsets[id], to = source->offsets[id + 1];
        const uint32_t rest = same ? 0 : rest_bytes(source, id);
        own->ends[0][id] = to > from ? text_add(own, 0, source->bytes + from, to - from) : WP_NO_NODE;
        own->ends[1][id] = rest ? text_add(own, model->rest, source->bytes + to - rest, rest) : WP_NO_NODE;
    }
    return !own->too_large && !own->lacks_memory;
}

/* Finds what is known of the nodes, by number. Returns false if memory ran out. */
static bool nodes_fill(struct building *own)
{
    struct wp_model *model = own->model;
    const size_t count = model->node_count;
    own->parents = os_memory_large(count * sizeof *own->parents);
    own->bytes = os_memory_large(count);
    own->tokens = os_memory_large(count * sizeof *own->tokens);
    own->depths = os_memory_large(count * sizeof *own->depths);
    model->nodes = os_memory_large(count * sizeof *model->nodes);
    if (!own->parents || !own->bytes || !own->tokens || !own->depths || !model->nodes)
        return false;
    own->parents[0] = own->parents[model->rest] = WP_NO_NODE;
    for (uint64_t at = 0; at < (uint64_t)1 << model->edge_bits; at++)
        if (model->edges[at] != UINT64_MAX) {
            const uint32_t node = (uint32_t)model->edges[at] & (NODES_MOST - 1);
            own->parents[node] = (uint32_t)(model->edges[at] >> (NODE_BITS + 8));
            own->bytes[node] = (uint8_t)(model->edges[at] >> NODE_BITS);
        }
    for (uint32_t node = 0; node < count; node++) { /* the number of a parent is smaller */
        own->depths[node] = own->parents[node] == WP_NO_NODE ? 0 : own->depths[own->parents[node]] + 1;
        own->tokens[node] = BPE_NONE;
    }
    for (uint32_t id = 0; id < own->source->vocabulary; id++)
        for (uint32_t trie = 0; trie < 2; trie++)
            if (own->ends[trie][id] != WP_NO_NODE)
                own->tokens[own->ends[trie][id]] = id;
    return true;
}

/* Returns a list with one more token at its end; 0 if there are too many or memory ran out. */
static uint32_t link_add(struct building *own, uint32_t before, uint32_t token)
{
    struct wp_model *model = own->model;
    own->too_large |= model->link_count == WP_LINKS_MOST;
    if (model->link_count >= own->link_room && !own->too_large) {
        const uint32_t room = own->link_room ? 2 * own->link_room : 1024;
        struct wp_link *grown = realloc(model->links, room * sizeof *grown);
        own->lacks_memory |= !grown;
        if (grown) {
            model->links = grown;
            own->link_room = room;
        }
    }
    if (own->too_large || own->lacks_memory)
        return 0;
    model->links[model->link_count] = (struct wp_link){token, before};
    return model->link_count++;
}

/* Returns how many tokens a list has. */
static inline uint32_t list_count(const struct wp_model *model, uint32_t link)
{
    uint32_t count = 0;
    for (; link; link = model->links[link].before)
        count++;
    return count;
}

/* Returns a list with the tokens of `more` at its end. */
static uint32_t links_join(struct building *own, uint32_t before, uint32_t more)
{
    struct wp_model *model = own->model;
    const uint32_t count = list_count(model, more), first = model->link_count;
    for (uint32_t i = 0; i < count && !own->too_large && !own->lacks_memory; i++)
        before = link_add(own, before, BPE_NONE);
    for (uint32_t i = count; i-- > 0 && !own->too_large && !own->lacks_memory; more = model->links[more].before)
        model->links[first + i].token = model->links[more].token;
    return before;
}

/* Finds the failure and the tokens of a node, from those of shorter texts. */
static void failure_find(struct building *own, uint32_t node)
{
    struct wp_model *model = own->model;
    struct wp_node *found = &model->nodes[node];
    const uint32_t parent = own->parents[node];
    if (parent == WP_NO_NODE) {
        *found = (struct wp_node){WP_NO_NODE, 0};
        return;
    }
    if (own->tokens[node] != BPE_NONE) {
        *found = (struct wp_node){model->rest, link_add(own, 0, own->tokens[node])};
        return;
    }
    uint32_t from = model->nodes[parent].failure, next = WP_NO_NODE, tokens = model->nodes[parent].tokens;
    while (from != WP_NO_NODE && (next = edge_find(model, from, own->bytes[node])) == WP_NO_NODE) {
        tokens = links_join(own, tokens, model->nodes[from].tokens);
        from = model->nodes[from].failure;
    }
    *found = from == WP_NO_NODE ? (struct wp_node){WP_NO_NODE, 0} : (struct wp_node){next, tokens};
}

/* Finds them for all nodes, in the order of their depths. */
static bool failures_find(struct building *own)
{
    const uint32_t count = own->model->node_count;
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < count; i++)
        deepest = own->depths[i] > deepest ? own->depths[i] : deepest;
    uint32_t *order = os_memory_large(count * sizeof *order), *starts = calloc((size_t)deepest + 2, sizeof *starts);
    own->lacks_memory |= !order || !starts;
    own->model->link_count = 1; /* number 0 means an empty list */
    if (!own->lacks_memory) {
        for (uint32_t i = 0; i < count; i++)
            starts[own->depths[i] + 1]++;
        for (uint32_t depth = 0; depth < deepest; depth++)
            starts[depth + 1] += starts[depth];
        for (uint32_t i = 0; i < count; i++)
            order[starts[own->depths[i]]++] = i;
        for (uint32_t i = 0; i < count && !own->too_large && !own->lacks_memory; i++)
            failure_find(own, order[i]);
    }
    free(order);
    free(starts);
    return !own->too_large && !own->lacks_memory;
}

/* Returns whether a text has more characters than `most`. */
static bool is_longer(const uint8_t *bytes, size_t count, uint64_t most)
{
    uint64_t characters = 0;
    if (count <= most)
        return false;
    for (size_t i = 0; i < count; i++)
        characters += (bytes[i] & 0xC0) != 0x80;
    return characters > most;
}

/* Makes each token that is a word by itself a seed of the caches. */
static void seeds_fill(struct wp_model *model)
{
    struct bpe_model *head = &model->head;
    for (uint32_t id = 0; id < head->vocabulary && head->seed_count < BPE_SEEDS; id++) {
        const uint8_t *text = head->bytes + head->offsets[id];
        const uint32_t count = bpe_token_bytes(head, id);
        if (!count || count > 15 || is_longer(text, count, model->characters_most))
            continue;
        struct bpe_entry *seed = &head->seeds[head->seed_count++];
        seed->key = bpe_key_in(text, count); /* 16 bytes follow the last text */
        bpe_value_make(seed->value, head->wide, &id, 1);
    }
}

/* Copies the texts. Returns false if memory ran out. */
static bool texts_copy(struct building *own)
{
    struct bpe_model *head = &own->model->head;
    const struct wp_source *source = own->source;
    const size_t bytes = source->offsets[source->vocabulary];
    head->bytes = os_memory_large(bytes + 16);
    head->offsets = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *head->offsets);
    head->seeds = os_memory_large(((size_t)min64(source->vocabulary, BPE_SEEDS) + 1) * sizeof *head->seeds);
    if (!head->bytes || !head->offsets || !head->seeds)
        return false;
    memcpy(head->bytes, source->bytes, bytes);
    memset(head->bytes + bytes, 0, 16);
    memcpy(head->offsets, source->offsets, ((size_t)source->vocabulary + 1) * sizeof *source->offsets);
    return true;
}

static bool tries_make(struct building *own)
{
    struct wp_model *model = own->model;
    const uint32_t vocabulary = own->source->vocabulary;
    model->edge_bits = 7;
    model->edge_factor = table_key_new().low | 1;
    own->ends[0] = os_memory_large(vocabulary * sizeof *own->ends[0]);
    own->ends[1] = os_memory_large(vocabulary * sizeof *own->ends[1]);
    const bool good = own->ends[0] && own->ends[1] && edges_grow(own) && tries_fill(own) && nodes_fill(own);
    free(own->ends[0]);
    free(own->ends[1]);
    return good && failures_find(own);
}

enum tokmap_status wp_model_new(struct wp_model **out, const struct wp_source *source, struct tokmap_error *error)
{
    struct wp_model *model = calloc(1, sizeof *model);
    struct building own = {.model = model, .source = source};
    assert(source->vocabulary && source->vocabulary <= BPE_IDS - 2);
    *out = NULL;
    if (!model)
        return error_set_memory(error, "a vocabulary", sizeof *model);
    model->head.merge = wp_merge;
    model->head.vocabulary = source->vocabulary;
    model->head.wide = source->vocabulary > 65536;
    model->prefix_bytes = (uint32_t)source->prefix_bytes;
    model->characters_most = source->characters_most;
    model->unknown = source->unknown == BPE_NONE ? source->vocabulary : source->unknown;
    const bool good = tries_make(&own) && texts_copy(&own);
    free(own.parents);
    free(own.bytes);
    free(own.tokens);
    free(own.depths);
    if (good) {
        seeds_fill(model);
        *out = model;
        return TOKMAP_OK;
    }
    wp_model_free(model);
    if (!own.too_large)
        return error_set_memory(error, "a vocabulary", source->offsets[source->vocabulary]);
    return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                     "the tokens of the vocabulary begin with more than %u different texts, or the rests of words have "
                     "more than %u tokens, which is the most that tokmap can read of WordPiece and WordLevel; use a "
                     "smaller vocabulary",
                     WP_NODES_MOST, WP_LINKS_MOST);
}

void wp_model_free(struct wp_model *model)
{
    if (!model)
        return;
    free(model->nodes);
    free(model->links);
    free(model->edges);
    bpe_model_free(&model->head);
}

/* ---- words ---- */

/* Writes the tokens of a list, unless ids is NULL. Returns how many there are. */
static inline uint32_t list_write(const struct wp_model *model, uint32_t link, uint32_t *ids)
{
    const uint32_t count = list_count(model, link);
    for (uint32_t i = count; ids && i-- > 0; link = model->links[link].before)
        ids[i] = model->links[link].token;
    return count;
}

/* Writes the tokens of a word, unless ids is NULL. Returns how many there are, or 0 if the word is unknown. */
static size_t match(const struct wp_model *model, const uint8_t *bytes, size_t count, uint32_t *ids)
{
    uint32_t node = 0;
    size_t made = 0;
    if (is_longer(bytes, count, model->characters_most))
        return 0;
    for (size_t i = 0; i <= count;) {
        if (i == count && node == model->rest && made)
            return made;
        const uint32_t next = i < count ? edge_find(model, node, bytes[i]) : WP_NO_NODE;
        if (next != WP_NO_NODE) {
            node = next;
            i++;
            continue;
        }
        if (model->nodes[node].failure == WP_NO_NODE)
            return 0;
        made += list_write(model, model->nodes[node].tokens, ids ? ids + made : NULL);
        node = model->nodes[node].failure;
    }
    return 0;
}

bool wp_is_unknown(const struct wp_model *model, const uint8_t *bytes, size_t count)
{
    return !match(model, bytes, count, NULL);
}

size_t wp_merge(const struct bpe_model *head, struct bpe_scratch *scratch, const uint8_t *bytes, size_t count,
                uint32_t *ids)
{
    const struct wp_model *model = (const struct wp_model *)head;
    const size_t made = match(model, bytes, count, ids);
    if (made)
        return made;
    ids[0] = model->unknown;
    return 1;
}
