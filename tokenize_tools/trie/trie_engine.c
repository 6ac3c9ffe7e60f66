/* SPDX-License-Identifier: MIT */
/*
 * trie_engine.c - the tokens as a trie, in the form of a double array: a node is a slot, and its child for a byte is in
 * the slot `base ^ byte`, if that slot names the node as its parent. So a step costs one load, and each byte of the
 * text is read once for each token that it is tried for: at most as often as the longest token has bytes.
 *
 * Slots come in blocks of 256, so that all children of a node are in one block: one of the last few that has room for
 * them.
 */
#include "trie_engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define NO_ID UINT32_MAX
#define NO_PARENT UINT32_MAX
#define BLOCK 256u
#define SLOTS_MOST (1u << 23)           /* 96 MiB; RWKV's tokens take 2 */
#define BLOCKS_TRIED 8u                 /* blocks in which a place for a node's children is looked for */
#define STOP_BYTES ((uint64_t)64 << 10) /* between two looks at whether to stop */

struct slot {
    uint32_t parent, base; /* parent: a slot; NO_PARENT: free. base: 0 if the node has no children */
    uint32_t id;           /* the token that ends here, or NO_ID */
};

struct trie_engine {
    struct text_engine head;
    uint32_t vocabulary;
    uint8_t *bytes;
    uint32_t *offsets;
    struct slot *slots; /* the first one is the root */
    uint32_t slot_count, slot_room;
    uint64_t joined[256][4]; /* [left]: bits of the first bytes of characters that some token has after such a left */
};

struct trie_state {
    const struct trie_engine *engine;
    bool (*stop)(void *user);
    void *user;
};

static void engine_free(struct text_engine *engine)
{
    struct trie_engine *own = (struct trie_engine *)engine;
    free(own->bytes);
    free(own->offsets);
    free(own->slots);
    free(own);
}

/* ---- building ---- */

static const uint8_t *text_of(const struct trie_engine *own, uint32_t id)
{
    return own->bytes + own->offsets[id];
}

static uint32_t bytes_of(const struct trie_engine *own, uint32_t id)
{
    return own->offsets[id + 1] - own->offsets[id];
}

struct sorted {
    const uint8_t *text;
    uint32_t bytes, id;
};

static int by_text(const void *a, const void *b)
{
    const struct sorted *left = a, *right = b;
    const int order = memcmp(left->text, right->text, min64(left->bytes, right->bytes));
    return order ? order : left->bytes < right->bytes ? -1 : left->bytes > right->bytes;
}

/* A node whose children are to be made: the tokens [from, to) begin with its text, of `depth` bytes. */
struct open_node {
    uint32_t slot, from, to, depth;
};

struct building {
    struct trie_engine *own;
    struct sorted *tokens;
    uint32_t count;
    struct open_node *open; /* a stack */
    size_t open_count, open_room;
    uint64_t free_slots[BLOCKS_TRIED][BLOCK / 64]; /* bits of the last blocks, by their number modulo BLOCKS_TRIED */
};

/* Returns false if memory ran out, or if there are too many. */
static bool block_add(struct trie_engine *own)
{
    if (own->slot_count == SLOTS_MOST)
        return false;
    if (own->slot_count == own->slot_room) {
        const uint32_t room = own->slot_room ? 2 * own->slot_room : 64 * BLOCK;
        struct slot *grown = realloc(own->slots, room * sizeof *grown);
        if (!grown)
            return false;
        own->slots = grown;
        own->slot_room = room;
    }
    for (uint32_t i = 0; i < BLOCK; i++)
        own->slots[own->slot_count++] = (struct slot){NO_PARENT, 0, NO_ID};
    return true;
}

/* Returns whether the slots of all children are free. */
static bool base_fits(const struct trie_engine *own, uint32_t base, const uint8_t *children, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (own->slots[base ^ children[i]].parent != NO_PARENT)
            return false;
    return true;
}

/* Finds a base for children: of the last blocks, one where the first child gets a free slot, and all others do, too.
 * Returns 0 if there is no more room. No base is 0, because the root is there. */
static uint32_t base_find(struct building *building, const uint8_t *children, uint32_t count)
{
    struct trie_engine *own = building->own;
    const uint32_t blocks = own->slot_count / BLOCK;
    for (uint32_t block = blocks - (uint32_t)min64(blocks, BLOCKS_TRIED); block < blocks; block++) {
        const uint64_t *free_slots = building->free_slots[block % BLOCKS_TRIED];
        for (uint32_t word = 0; word < BLOCK / 64; word++)
            for (uint64_t rest = free_slots[word]; rest; rest &= rest - 1) {
                const uint32_t slot = block * BLOCK + 64 * word + (uint32_t)__builtin_ctzll(rest);
                if (slot != children[0] && base_fits(own, slot ^ children[0], children, count))
                    return slot ^ children[0];
            }
    }
    if (!block_add(own))
        return 0;
    memset(building->free_slots[blocks % BLOCKS_TRIED], 0xFF, sizeof building->free_slots[0]);
    return blocks * BLOCK;
}

static bool node_push(struct building *building, struct open_node node)
{
    if (building->open_count == building->open_room) {
        const size_t room = building->open_room ? 2 * building->open_room : 1024;
        struct open_node *grown = realloc(building->open, room * sizeof *grown);
        if (!grown)
            return false;
        building->open = grown;
        building->open_room = room;
    }
    building->open[building->open_count++] = node;
    return true;
}

/* Makes the children of a node. Returns false if memory ran out. */
static bool node_fill(struct building *building, struct open_node node)
{
    struct trie_engine *own = building->own;
    uint8_t children[BLOCK];
    uint32_t ends[BLOCK], count = 0;
    for (uint32_t i = node.from; i < node.to; i++) {
        const uint8_t byte = building->tokens[i].text[node.depth];
        if (!count || children[count - 1] != byte)
            children[count++] = byte;
        ends[count - 1] = i + 1;
    }
    const uint32_t base = base_find(building, children, count);
    if (!base)
        return false;
    own->slots[node.slot].base = base;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = base ^ children[i];
        own->slots[slot].parent = node.slot;
        building->free_slots[slot / BLOCK % BLOCKS_TRIED][slot % BLOCK / 64] &= ~((uint64_t)1 << (slot % 64));
    }
    for (uint32_t i = 0, from = node.from; i < count; from = ends[i++]) {
        const uint32_t slot = base ^ children[i], depth = node.depth + 1;
        if (building->tokens[from].bytes == depth)
            own->slots[slot].id = building->tokens[from++].id;
        if (from < ends[i] && !node_push(building, (struct open_node){slot, from, ends[i], depth}))
            return false;
    }
    return true;
}

/* Sorts the tokens, and checks them. */
static enum tokmap_status tokens_sort(struct building *building, const struct trie_source *source,
                                      struct tokmap_error *error)
{
    bool has[256] = {false};
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint32_t bytes = bytes_of(building->own, id);
        if (bytes > TRIE_TOKEN_BYTES_MOST)
            return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                             "the token with the id %" PRIu32 " has %" PRIu32 " bytes; the longest that tokmap can "
                             "read has %u",
                             id, bytes, TRIE_TOKEN_BYTES_MOST);
        if (bytes)
            building->tokens[building->count++] = (struct sorted){text_of(building->own, id), bytes, id};
        if (bytes == 1)
            has[*text_of(building->own, id)] = true;
    }
    for (uint32_t byte = 0; byte < 0xF5; byte++)
        if (!has[byte] && byte != 0xC0 && byte != 0xC1)
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "the vocabulary has no token for the byte 0x%02" PRIx32 ", so a text with it could not be "
                             "encoded; the file is incomplete",
                             byte);
    qsort(building->tokens, building->count, sizeof *building->tokens, by_text);
    for (uint32_t i = 1; i < building->count; i++)
        if (!by_text(&building->tokens[i - 1], &building->tokens[i]))
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "the ids %" PRIu32 " and %" PRIu32 " have the same text; the file is damaged",
                             building->tokens[i - 1].id, building->tokens[i].id);
    return TOKMAP_OK;
}

/* Notes which characters are side by side in a token. What is before its first character may be the rest of any. */
static void joins_note(struct trie_engine *own, const uint8_t *text, uint32_t count)
{
    uint32_t left = (text[0] & 0xC0) == 0x80 ? BLOCK : text[0];
    for (uint32_t at = 1; at < count; at++) {
        if ((text[at] & 0xC0) == 0x80)
            continue;
        for (uint32_t any = left == BLOCK ? 0xC0 : left; any < (left == BLOCK ? BLOCK : left + 1); any++)
            own->joined[any][text[at] / 64] |= (uint64_t)1 << (text[at] % 64);
        left = text[at];
    }
}

static enum tokmap_status trie_build(struct trie_engine *own, const struct trie_source *source,
                                     struct tokmap_error *error)
{
    struct building building = {.own = own};
    building.tokens = os_memory_large(((size_t)source->vocabulary + 1) * sizeof *building.tokens);
    enum tokmap_status status = building.tokens ? tokens_sort(&building, source, error) : TOKMAP_OK;
    bool good = building.tokens && block_add(own);
    if (good && !status) {
        own->slots[0].parent = 0;
        memset(building.free_slots[0], 0xFF, sizeof building.free_slots[0]);
        building.free_slots[0][0] &= ~(uint64_t)1;
        good = node_push(&building, (struct open_node){0, 0, building.count, 0});
        while (good && building.open_count)
            good = node_fill(&building, building.open[--building.open_count]);
        for (uint32_t i = 0; i < building.count; i++)
            joins_note(own, building.tokens[i].text, building.tokens[i].bytes);
    }
    free(building.tokens);
    free(building.open);
    if (status || good)
        return status;
    return own->slot_count < SLOTS_MOST ? error_set_memory(error, "a vocabulary", source->offsets[source->vocabulary])
                                        : error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                                                    "the tokens of the vocabulary begin in more ways than tokmap can "
                                                    "read; use a smaller vocabulary");
}

/* ---- the engine ---- */

static enum tokmap_status engine_state_new(struct text_engine_state **state, const struct text_engine *engine,
                                           struct tokmap_error *error)
{
    struct trie_state *made = calloc(1, sizeof *made);
    *state = (struct text_engine_state *)made;
    if (!made)
        return error_set_memory(error, "the state of a tokenizer", sizeof *made);
    made->engine = (const struct trie_engine *)engine;
    return TOKMAP_OK;
}

static void engine_state_free(struct text_engine_state *state)
{
    free(state);
}

static void engine_state_stop(struct text_engine_state *state, bool (*stop)(void *user), void *user)
{
    struct trie_state *own = (struct trie_state *)state;
    own->stop = stop;
    own->user = user;
}

/* Returns the longest token at the front of a text, and sets *length. Every character of UTF-8 begins with one. */
static inline uint32_t longest(const struct slot *slots, const uint8_t *text, uint64_t count, uint64_t *length)
{
    uint32_t node = 0, found = NO_ID;
    *length = 1;
    for (uint64_t at = 0; at < count; at++) {
        const uint32_t next = slots[node].base ^ text[at];
        if (slots[next].parent != node || !next)
            break;
        node = next;
        if (slots[node].id != NO_ID) {
            found = slots[node].id;
            *length = at + 1;
        }
    }
    return found;
}

static enum tokmap_status engine_text(struct text_engine_state *state, const uint8_t *text, uint64_t count,
                                      enum engine_place place, struct ids_out *out, struct tokmap_error *error)
{
    const struct trie_state *own = (const struct trie_state *)state;
    const struct slot *slots = own->engine->slots;
    uint64_t look = STOP_BYTES, length;
    for (uint64_t at = 0; at < count; at += length) {
        const uint32_t id = longest(slots, text + at, count - at, &length);
        if (id != NO_ID)
            ids_append(out, id);
        if (at < look)
            continue;
        look = at + STOP_BYTES;
        if (own->stop && own->stop(own->user))
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    return TOKMAP_OK;
}

static bool engine_bytes(const struct text_engine *engine, uint32_t id, const uint8_t **bytes, uint32_t *count)
{
    const struct trie_engine *own = (const struct trie_engine *)engine;
    if (id >= own->vocabulary)
        return false;
    *bytes = text_of(own, id);
    *count = bytes_of(own, id);
    return *count != 0;
}

/* Returns whether no token has such characters side by side: then a token ends there, whatever is around. */
static bool engine_border(const struct text_engine *engine, uint8_t left, uint8_t right)
{
    const struct trie_engine *own = (const struct trie_engine *)engine;
    return !(own->joined[left][right / 64] >> (right % 64) & 1);
}

static bool engine_walk(const struct text_engine *engine, const uint8_t *text, uint64_t count, enum engine_place place,
                        struct id_walk *walk)
{
    uint64_t length;
    for (uint64_t at = 0; at < count; at += length) {
        const uint32_t id = longest(((const struct trie_engine *)engine)->slots, text + at, count - at, &length);
        if (walk->at == walk->count || id_walk_next(walk) != id)
            return false;
        walk->found(walk->user, walk->at++, at, at + length);
    }
    return true;
}

enum tokmap_status trie_engine_new(struct text_engine **engine, const struct trie_source *source,
                                   struct tokmap_error *error)
{
    static const struct text_engine_kind kind = {.free = engine_free,
                                                 .state_new = engine_state_new,
                                                 .state_free = engine_state_free,
                                                 .state_stop = engine_state_stop,
                                                 .encode_text = engine_text,
                                                 .id_bytes = engine_bytes,
                                                 .may_cut = engine_border,
                                                 .walk = engine_walk};
    struct trie_engine *made = calloc(1, sizeof *made);
    assert(source->bytes && source->offsets && source->vocabulary <= TRIE_IDS);
    *engine = NULL;
    if (!made) {
        free(source->bytes);
        free(source->offsets);
        return error_set_memory(error, "a tokenizer", sizeof *made);
    }
    made->head.kind = &kind;
    made->vocabulary = source->vocabulary;
    made->bytes = source->bytes;
    made->offsets = source->offsets;
    const enum tokmap_status status = trie_build(made, source, error);
    if (status)
        engine_free(&made->head);
    else
        *engine = &made->head;
    return status;
}
