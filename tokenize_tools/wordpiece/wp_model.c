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

static void edge_put(struct wp_model *model, uint32_t node, uint8_t byte, uint32_t next)
{
    const uint64_t key = edge_key(node, byte), mask = ((uint64_t)1 << model->edge_bits) - 1;
    uint64_t at = edge_place(model, key);
    while (model->edges[at] != UINT64_MAX)
        at = (at + 1) & mask;
    model->edges[at] = key << NODE_BITS | next;
}

/* ---- making a model ---- */

struct building {
    struct wp_model *model;
    const struct wp_source *source;
    uint32_t *parents; /* by node */
    uint8_t *bytes;    /* by node: the byte that leads to it */
    uint32_t *tokens;  /* by node: the token that ends there, or BPE_NONE */
    uint32_t *depths;  /* by node */
    uint32_t node_room, link_room;
};

static uint32_t node_new(struct building *own, uint32_t parent, uint8_t byte)
{
    struct wp_model *model = own->model;
    const uint32_t node = model->node_count++;
    assert(node < own->node_room);
    own->parents[node] = parent;
    own->bytes[node] = byte;
    own->tokens[node] = BPE_NONE;
    own->depths[node] = parent == WP_NO_NODE ? 0 : own->depths[parent] + 1;
    return node;
}

/* Adds a text to the trie that begins with a node. */
static void text_add(struct building *own, uint32_t node, const uint8_t *text, uint32_t count, uint32_t id)
{
    struct wp_model *model = own->model;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = edge_find(model, node, text[i]);
        if (next == WP_NO_NODE) {
            next = node_new(own, node, text[i]);
            if (node == 0)
                model->firsts[0][text[i]] = next;
            if (node == model->rest)
                model->firsts[1][text[i]] = next;
            if (node != 0 && node != model->rest)
                edge_put(model, node, text[i], next);
        }
        node = next;
    }
    own->tokens[node] = id;
}

/* Returns the bytes of a token without the prefix of tokens that continue words, or 0 if it does not continue any. */
static uint32_t rest_bytes(const struct wp_source *source, uint32_t id)
{
    const uint32_t count = source->offsets[id + 1] - source->offsets[id];
    const bool continues = source->prefix && count > source->prefix_bytes &&
                           !memcmp(source->bytes + source->offsets[id], source->prefix, source->prefix_bytes);
    return continues ? count - (uint32_t)source->prefix_bytes : 0;
}

static void tries_fill(struct building *own)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    const bool same = source->prefix && !source->prefix_bytes; /* any token may continue a word */
    memset(model->firsts, 0xFF, sizeof model->firsts);
    (void)node_new(own, WP_NO_NODE, 0);
    model->rest = same ? 0 : node_new(own, WP_NO_NODE, 0);
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint32_t from = source->offsets[id], to = source->offsets[id + 1], rest = same ? 0 : rest_bytes(source, id);
        if (to > from)
            text_add(own, 0, source->bytes + from, to - from, id);
        if (rest)
            text_add(own, model->rest, source->bytes + to - rest, rest, id);
    }
}

/* Returns a list with one more token at its end. */
static uint32_t link_add(struct building *own, uint32_t before, uint32_t token)
{
    struct wp_model *model = own->model;
    const uint32_t link = model->link_count++;
    assert(link < own->link_room);
    model->links[link] = (struct wp_link){token, before, before ? model->links[before].count + 1 : 1};
    return link;
}

/* Returns a list with those tokens of `more` at its end that come after its first `skip` ones. */
static uint32_t links_join(struct building *own, uint32_t before, uint32_t more)
{
    struct wp_model *model = own->model;
    const uint32_t count = more ? model->links[more].count : 0, base = before ? model->links[before].count : 0;
    if (!count)
        return before;
    const uint32_t first = model->link_count;
    assert(count <= own->link_room - first);
    model->link_count += count;
    for (uint32_t i = count; i-- > 0; more = model->links[more].before)
        model->links[first + i] = (struct wp_link){model->links[more].token, i ? first + i - 1 : before, base + i + 1};
    return first + count - 1;
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

/* Finds them for all nodes, in the order of their depths. Returns false if memory ran out. */
static bool failures_find(struct building *own)
{
    const uint32_t count = own->model->node_count;
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < count; i++)
        deepest = own->depths[i] > deepest ? own->depths[i] : deepest;
    uint32_t *order = malloc(count * sizeof *order), *starts = calloc((size_t)deepest + 2, sizeof *starts);
    const bool good = order && starts;
    if (good) {
        for (uint32_t i = 0; i < count; i++)
            starts[own->depths[i] + 1]++;
        for (uint32_t depth = 0; depth < deepest; depth++)
            starts[depth + 1] += starts[depth];
        for (uint32_t i = 0; i < count; i++)
            order[starts[own->depths[i]]++] = i;
        for (uint32_t i = 0; i < count; i++)
            failure_find(own, order[i]);
    }
    free(order);
    free(starts);
    return good;
}

/* Makes each token that is a word by itself a seed of the caches. */
static void seeds_fill(struct wp_model *model)
{
    struct bpe_model *head = &model->head;
    for (uint32_t id = 0; id < head->vocabulary && head->seed_count < BPE_SEEDS; id++) {
        const uint8_t *text = head->bytes + head->offsets[id];
        const uint32_t count = bpe_token_bytes(head, id);
        if (!count || count > 15 || wp_is_unknown(model, text, count))
            continue;
        struct bpe_entry *seed = &head->seeds[head->seed_count++];
        seed->key = bpe_key_in(text, count); /* 16 bytes follow the last text */
        bpe_value_make(seed->value, head->wide, &id, 1);
    }
}

/* Copies the texts, and makes room for as many nodes, links and edges as there can be. Returns false if memory ran
 * out. */
static bool memory_new(struct building *own, uint64_t nodes)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    const size_t bytes = source->offsets[source->vocabulary];
    own->node_room = (uint32_t)nodes;
    own->link_room = (uint32_t)nodes + 1;
    for (model->edge_bits = 8; (uint64_t)1 << model->edge_bits < nodes + nodes / 2;)
        model->edge_bits++;
    model->head.bytes = os_memory_large(bytes + 16);
    model->head.offsets = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *model->head.offsets);
    model->head.seeds = os_memory_large(((size_t)min64(source->vocabulary, BPE_SEEDS) + 1) * sizeof *model->head.seeds);
    model->edges = os_memory_large(sizeof *model->edges << model->edge_bits);
    model->links = os_memory_large(own->link_room * sizeof *model->links);
    own->parents = os_memory_large(nodes * sizeof *own->parents);
    own->bytes = os_memory_large(nodes);
    own->tokens = os_memory_large(nodes * sizeof *own->tokens);
    own->depths = os_memory_large(nodes * sizeof *own->depths);
    if (!model->head.bytes || !model->head.offsets || !model->head.seeds || !model->edges || !model->links ||
        !own->parents || !own->bytes || !own->tokens || !own->depths)
        return false;
    memcpy(model->head.bytes, source->bytes, bytes);
    memset(model->head.bytes + bytes, 0, 16);
    memcpy(model->head.offsets, source->offsets, ((size_t)source->vocabulary + 1) * sizeof *source->offsets);
    memset(model->edges, 0xFF, sizeof *model->edges << model->edge_bits);
    model->link_count = 1; /* 0 is no list */
    return true;
}

enum tokmap_status wp_model_new(struct wp_model **out, const struct wp_source *source, struct tokmap_error *error)
{
    struct wp_model *model = calloc(1, sizeof *model);
    struct building own = {.model = model, .source = source};
    uint64_t nodes = 2 + (uint64_t)source->offsets[source->vocabulary];
    assert(source->vocabulary && source->vocabulary <= BPE_IDS - 2);
    *out = NULL;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        nodes += rest_bytes(source, id);
    if (nodes >= NODES_MOST) {
        free(model);
        return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                         "the tokens of the vocabulary have too many bytes; tokmap can read at most 128 MiB of them");
    }
    bool good = model && memory_new(&own, nodes);
    if (good) {
        model->head.merge = wp_merge;
        model->head.vocabulary = source->vocabulary;
        model->head.wide = source->vocabulary > 65536;
        model->edge_factor = table_key_new().low | 1;
        model->prefix_bytes = (uint32_t)source->prefix_bytes;
        model->characters_most = source->characters_most;
        model->unknown = source->unknown == BPE_NONE ? source->vocabulary : source->unknown;
        tries_fill(&own);
        model->nodes = os_memory_large(model->node_count * sizeof *model->nodes);
        good = model->nodes && failures_find(&own);
    }
    free(own.parents);
    free(own.bytes);
    free(own.tokens);
    free(own.depths);
    if (!good) {
        wp_model_free(model);
        return error_set_memory(error, "a vocabulary", nodes * 40);
    }
    seeds_fill(model);
    *out = model;
    return TOKMAP_OK;
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

/* Writes the tokens of a list, unless ids is NULL. Returns how many there are. */
static inline uint32_t list_write(const struct wp_model *model, uint32_t link, uint32_t *ids)
{
    const uint32_t count = link ? model->links[link].count : 0;
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
