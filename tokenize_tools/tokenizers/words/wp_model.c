/* SPDX-License-Identifier: MIT */
/*
 * wp_model.c - the trie of a vocabulary, and words to ids.
 *
 * The obvious way looks up the longest text that fits, then a shorter one, and so on: n^2 lookups for a word of n
 * bytes, and even with a trie each token may read the bytes that the next one reads again. Here, after the first token,
 * each byte is read once, as in LinMaxMatch (Song, Salcianu, Song, Dopson, Zhou: Fast WordPiece Tokenization, 2021).
 *
 * The trie has all tokens as they are in the file. So it has a trie of those that continue words in it, which begins at
 * the node of their prefix, `rest`. A node there knows what to do if the next byte leads nowhere: the tokens that are
 * certain then, and the node for the bytes that they leave over. Example: the tokens are "a", "##b", "##bcde", "##c",
 * and "##cdx". The word "abcdx" begins with "a", and bcd leads from `rest` to the node of "##bcd". There x leads
 * nowhere: "##b" is certain, and the node for "cd" is that of "##cd", where x leads to "##cdx". In "abcdz" z leads
 * nowhere from there, too: "##c" is certain, and no token begins with "d", so the word is unknown. In "abc" the word
 * ends where nothing fits: "##b" is certain, then "##c", and the node for what is left, nothing, is `rest`.
 *
 * These tokens and nodes are found when the model is made, shorter texts first: what a text of n bytes needs follows
 * from that of its first n - 1 bytes. Lists of tokens share their beginnings, so they have at most one link for each
 * byte of the vocabulary.
 */
#include "wp_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"

/* ---- making a model ---- */

struct building {
    struct wp_model *model;
    const struct wp_source *source;
    struct byte_trie_key *keys;
    uint64_t link_room;
    bool lacks_memory, too_large;
};

/* Returns a list with one more token at its end; 0 if there are too many or memory ran out. */
static uint32_t link_add(struct building *own, uint32_t before, uint32_t token)
{
    struct wp_model *model = own->model;
    own->too_large |= model->link_count == WP_LINKS_MOST;
    own->lacks_memory |=
        !own->too_large && !list_room(&model->links, model->link_count, &own->link_room, sizeof *model->links);
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

/* Finds the failure and the tokens of a node that a byte leads to, from those of shorter texts. */
static void failure_find(struct building *own, uint32_t node, uint8_t byte)
{
    struct wp_model *model = own->model;
    const struct byte_trie_node *at = &model->trie.nodes[node];
    struct wp_node *found = &model->nodes[node];
    uint32_t from = model->nodes[at->parent].failure, next = BYTE_TRIE_NONE, tokens = model->nodes[at->parent].tokens;
    if (found->failure || found->tokens)
        return; /* another token begins with this text, too */
    if (at->value != BYTE_TRIE_NONE) {
        *found = (struct wp_node){model->rest, link_add(own, 0, at->value)};
        return;
    }
    while (from != BYTE_TRIE_NONE && (next = byte_trie_step(&model->trie, from, byte)) == BYTE_TRIE_NONE) {
        tokens = links_join(own, tokens, model->nodes[from].tokens);
        from = model->nodes[from].failure;
    }
    *found = from == BYTE_TRIE_NONE ? (struct wp_node){BYTE_TRIE_NONE, 0} : (struct wp_node){next, tokens};
}

/* Finds them for all nodes after `rest`. The keys become the tokens that continue words, without what they share with
 * the node that is their value; and each step makes them a byte shorter. */
static void failures_find(struct building *own, size_t count)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    struct byte_trie_key *keys = own->keys;
    const uint32_t prefix = model->prefix_bytes;
    size_t kept = 0;
    model->rest = source->prefix ? BYTE_TRIE_ROOT : BYTE_TRIE_NONE;
    for (uint32_t i = 0; i < prefix && model->rest != BYTE_TRIE_NONE; i++)
        model->rest = byte_trie_step(&model->trie, model->rest, source->prefix[i]);
    if (model->rest == BYTE_TRIE_NONE)
        return;
    model->nodes[model->rest].failure = BYTE_TRIE_NONE;
    for (size_t i = 0; i < count; i++)
        if (keys[i].count > prefix && !memcmp(keys[i].bytes, source->prefix, prefix))
            keys[kept++] = (struct byte_trie_key){keys[i].bytes + prefix, keys[i].count - prefix, model->rest};
    while ((count = kept)) {
        kept = 0;
        for (size_t i = 0; i < count && !own->too_large && !own->lacks_memory; i++) {
            struct byte_trie_key key = keys[i];
            key.value = byte_trie_step(&model->trie, key.value, *key.bytes);
            failure_find(own, key.value, *key.bytes++);
            if (--key.count)
                keys[kept++] = key;
        }
    }
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

static bool trie_make(struct building *own)
{
    struct wp_model *model = own->model;
    const struct wp_source *source = own->source;
    size_t count = 0;
    own->keys = os_memory_large(source->vocabulary * sizeof *own->keys);
    if (!own->keys)
        return false;
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint32_t from = source->offsets[id], to = source->offsets[id + 1];
        if (to > from)
            own->keys[count++] = (struct byte_trie_key){source->bytes + from, to - from, id};
    }
    const enum tokmap_status status = byte_trie_build(&model->trie, own->keys, count, false);
    own->too_large = status == TOKMAP_ERROR_LIMIT || model->trie.count > WP_NODES_MOST;
    if (status || own->too_large)
        return false;
    model->nodes = os_memory_large_zeros(model->trie.count, sizeof *model->nodes);
    model->link_count = 1; /* number 0 means an empty list */
    if (!model->nodes)
        return false;
    failures_find(own, count);
    return !own->too_large && !own->lacks_memory;
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
    const bool good = trie_make(&own) && texts_copy(&own);
    free(own.keys);
    if (good) {
        seeds_fill(model);
        *out = model;
        return TOKMAP_OK;
    }
    wp_model_free(model);
    if (!own.too_large)
        return error_set_memory(error, "a vocabulary", source->offsets[source->vocabulary]);
    return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                     "the tokens of the vocabulary need a trie of more than %u nodes, or the rests of words have more "
                     "than %u tokens, which is the most that tokmap can read of WordPiece and WordLevel; use a smaller "
                     "vocabulary",
                     WP_NODES_MOST, WP_LINKS_MOST);
}

void wp_model_free(struct wp_model *model)
{
    if (!model)
        return;
    byte_trie_free(&model->trie);
    free(model->nodes);
    free(model->links);
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
    uint32_t id, node = model->rest;
    size_t i = byte_trie_longest(&model->trie, bytes, count, &id), made = 1;
    if (!i || is_longer(bytes, count, model->characters_most))
        return 0;
    if (ids)
        ids[0] = id;
    while (i < count || node != model->rest) {
        if (node == BYTE_TRIE_NONE)
            return 0;
        const uint32_t next = i < count ? byte_trie_step(&model->trie, node, bytes[i]) : BYTE_TRIE_NONE;
        if (next != BYTE_TRIE_NONE) {
            node = next;
            i++;
            continue;
        }
        made += list_write(model, model->nodes[node].tokens, ids ? ids + made : NULL);
        node = model->nodes[node].failure;
    }
    return made;
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
