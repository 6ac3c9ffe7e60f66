/* SPDX-License-Identifier: MIT */
/*
 * match_table.c - a filter, a small trie, and an automaton, each used only where the one before it finds
 * something.
 *
 *     filter     where do the first two bytes of some text occur? Most texts have no such place, so the search for
 * these two bytes determines the cost. trie       which texts of at most MATCH_WALK bytes begin there, and do the first
 * MATCH_WALK bytes of a longer one? It costs at most MATCH_WALK bytes a place. automaton  which longer text begins
 * there? It is asked for a block of places at once, the result is kept, and blocks do not overlap. So a text of a's and
 * the text "aaa..ab" cost some bytes per place, and not as many as the text is long.
 *
 * The trie has nodes only where texts branch or end: at most two per text, however long the texts are. A node knows a
 * text that begins with its bytes. Example: "<s>", "</s>", "<pad>":
 *
 *     0: ""  ->  1: "<"  ->  2: "</s>" (text)   3: "<pad>" (text)   4: "<s>" (text)
 */
#include "match_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define BYTES_MOST (UINT32_C(1) << 30)
#define FEW_FIRSTS 4
#define PLACES_LEAST ((size_t)4096) /* of a block for the automaton */

/*
 * ---- texts that are too long to compare them at each place ----
 *
 * The automaton of Aho and Corasick, over texts that are read from their last byte to their first, finds for each place
 * the longest text that begins there, in time that is linear whatever the texts are.
 *
 * The automaton reads a text from right to left. Its state is the longest stretch of bytes from the current place on
 * that is the end of one of the texts: a node of the trie of the reversed texts. If no edge of the node has the next
 * byte, the node's `fail` is the longest other node whose bytes the node's bytes end with. Example: the texts "ab" and
 * "aab" are reversed to "ba" and "baa".
 *
 *     nodes      0: (root)   1: b   2: ba (text "ab")   3: baa (text "aab")
 *     text       x  a  a  b
 *     state      0  3  2  1      read from the right
 *     longest    -  aab ab -     what begins at each place
 *
 * Why backward: which text begins at a place is then known at that place. Read forward, an automaton knows which texts
 * end at a place; to know that "a" is the longest text that begins somewhere, it has to read until a text "aaa..b" is
 * ruled out, and to do so again after each "a".
 *
 * The children of a node have consecutive numbers, in the order of their bytes, so a node needs only the number of its
 * first child.
 */
struct match_long { /* immutable; shared by threads */
    uint32_t nodes, longest;
    uint8_t *byte;         /* of the edge that leads to the node */
    uint32_t *first_child; /* nodes + 1 numbers: the children of n are first_child[n] up to first_child[n + 1] */
    uint32_t *fail;
    uint32_t *text; /* 1 plus the index of the longest text that the node's bytes begin with when read forward; or 0 */
};

static void match_long_free(struct match_long *automaton)
{
    if (!automaton)
        return;
    free(automaton->byte);
    free(automaton->first_child);
    free(automaton->fail);
    free(automaton->text);
    free(automaton);
}

/* A text to be added. */
struct entry {
    const uint8_t *bytes;
    uint32_t count, index;
};

static int by_end(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    const uint32_t shorter = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 1; i <= shorter; i++)
        if (a->bytes[a->count - i] != b->bytes[b->count - i])
            return a->bytes[a->count - i] < b->bytes[b->count - i] ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

/* Returns the child of a node by a byte, or 0. */
static inline uint32_t edge_by(const struct match_long *automaton, uint32_t node, uint8_t byte)
{
    uint32_t low = automaton->first_child[node];
    const uint32_t end = automaton->first_child[node + 1];
    for (uint32_t high = end; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (automaton->byte[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && automaton->byte[low] == byte ? low : 0;
}

/* Returns the node after reading a byte. */
static inline uint32_t step(const struct match_long *automaton, uint32_t node, uint8_t byte, uint64_t *steps)
{
    uint32_t child;
    while (++*steps, !(child = edge_by(automaton, node, byte)) && node)
        node = automaton->fail[node];
    return child;
}

/* Makes the nodes, level by level, of entries that are sorted by by_end. ends: room for a number per node. */
static void make_nodes(struct match_long *automaton, const struct entry *entries, uint32_t count, uint32_t *ends)
{
    /* The entries of a node are those from first_child[node] up to ends[node], until the node is reached. */
    uint32_t next = 1, depth = 0, level_end = 1;
    automaton->first_child[0] = 0;
    ends[0] = count;
    for (uint32_t node = 0; node < next; node++) {
        if (node == level_end) {
            depth++;
            level_end = next;
        }
        uint32_t from = automaton->first_child[node];
        const uint32_t to = ends[node];
        if (entries[from].count == depth)
            automaton->text[node] = entries[from++].index + 1;
        automaton->first_child[node] = next;
        while (from < to) {
            const uint8_t byte = entries[from].bytes[entries[from].count - 1 - depth];
            automaton->byte[next] = byte;
            automaton->first_child[next] = from;
            while (from < to && entries[from].bytes[entries[from].count - 1 - depth] == byte)
                from++;
            ends[next++] = from;
        }
    }
    automaton->nodes = next;
    automaton->first_child[next] = next;
}

static void make_fails(struct match_long *automaton)
{
    uint64_t steps = 0;
    for (uint32_t node = 0; node < automaton->nodes; node++)
        for (uint32_t child = automaton->first_child[node]; child < automaton->first_child[node + 1]; child++) {
            automaton->fail[child] = node ? step(automaton, automaton->fail[node], automaton->byte[child], &steps) : 0;
            if (!automaton->text[child])
                automaton->text[child] = automaton->text[automaton->fail[child]];
        }
}

/* Makes the automaton of those of `count` texts that have more than `shortest` bytes. No two texts are equal. The texts
 * are not needed afterwards. *made is NULL on failure, and if no text is that long. The automaton takes 13 bytes per
 * byte of these texts. Statuses: OK, ERROR_LIMIT (they have more than 2^30 bytes), ERROR_MEMORY. */
static enum tokmap_status match_long_new(struct match_long **made, const struct match_text *texts, size_t count,
                                         uint32_t shortest, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    uint32_t longs = 0, longest = 0;
    *made = NULL;
    for (size_t i = 0; i < count; i++)
        if (texts[i].count > shortest) {
            longs++;
            bytes += texts[i].count;
            longest = texts[i].count > longest ? texts[i].count : longest;
        }
    if (!longs)
        return TOKMAP_OK;
    if (bytes > BYTES_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the long texts have %" PRIu64 " bytes, but at most %" PRIu32 " are supported", bytes,
                         BYTES_MOST);
    const size_t room = (size_t)bytes + 2;
    struct match_long *automaton = calloc(1, sizeof *automaton);
    struct entry *entries = malloc(longs * sizeof *entries);
    if (automaton) {
        automaton->byte = malloc(room);
        automaton->first_child = malloc(room * sizeof *automaton->first_child);
        automaton->fail = calloc(room, sizeof *automaton->fail);
        automaton->text = calloc(room, sizeof *automaton->text);
    }
    if (!automaton || !entries || !automaton->byte || !automaton->first_child || !automaton->fail || !automaton->text) {
        match_long_free(automaton);
        free(entries);
        return error_set_memory(error, "long texts", room * 13);
    }
    automaton->longest = longest;
    for (size_t i = 0, next = 0; i < count; i++)
        if (texts[i].count > shortest)
            entries[next++] = (struct entry){texts[i].bytes, texts[i].count, (uint32_t)i};
    qsort(entries, longs, sizeof *entries, by_end);
    make_nodes(automaton, entries, longs, automaton->fail); /* `fail` is filled only afterwards */
    automaton->fail[0] = 0;
    make_fails(automaton);
    free(entries);
    *made = automaton;
    return TOKMAP_OK;
}

/* Writes to found[i], for each i below `places`, 1 plus the index of the longest text that begins at text[i], or 0 if
 * none does. count: bytes of the text, at least `places`. Adds to *steps the work, which is at most twice the number of
 * bytes that are read: places + longest, and not more than `count`. */
static void match_long_find(const struct match_long *automaton, const uint8_t *text, size_t places, size_t count,
                            uint32_t *found, uint64_t *steps)
{
    assert(places <= count);
    uint32_t node = 0;
    size_t at = count - places > automaton->longest ? places + automaton->longest : count;
    while (at-- > 0) {
        node = step(automaton, node, text[at], steps);
        if (at < places)
            found[at] = automaton->text[node];
    }
}

struct node {
    uint32_t sample;      /* the index of a text that begins with the node's bytes */
    uint32_t first_child; /* children have consecutive numbers, in the order of their bytes */
    uint32_t text;        /* 1 + the index of the text that ends here; 0: none */
    uint16_t children;
    uint8_t depth; /* bytes of the node, at most MATCH_WALK */
    uint8_t deep;  /* longer texts begin with the node's MATCH_WALK bytes */
};

struct match_table {
    const struct match_text *texts;
    struct node *nodes;
    uint8_t *bytes; /* of each node: the first byte after those of its parent */
    struct match_long *longs;
    uint8_t firsts[FEW_FIRSTS];  /* the first bytes of all texts, if they are few; unused entries repeat the first */
    uint8_t seconds[FEW_FIRSTS]; /* the same for second bytes, if all texts have one */
    bool few, few_seconds;
    bool one_first; /* all texts begin with the same byte, which is not a space */
    bool first[256];
    uint64_t pairs[65536 / 64]; /* bit second << 8 | first: a text begins with these two bytes */
};

/* ---- construction ---- */

int match_text_compare(const struct match_text *one, const struct match_text *other)
{
    const uint32_t shorter = one->count < other->count ? one->count : other->count;
    const int order = memcmp(one->bytes, other->bytes, shorter);
    return order ? order : one->count < other->count ? -1 : one->count > other->count;
}

/* Returns how many bytes, at most MATCH_WALK, two texts have in common; they have `from` in common. */
static uint32_t common_bytes(const struct match_text *one, const struct match_text *other, uint32_t from)
{
    const uint32_t most = (uint32_t)min64(MATCH_WALK, min64(one->count, other->count));
    while (from < most && one->bytes[from] == other->bytes[from])
        from++;
    return from;
}

/* Adds the children of a node, whose texts are [from, to), to the end of the trie. Returns the new number of nodes. */
static uint32_t add_children(struct match_table *table, struct node *node, uint32_t from, uint32_t to, uint32_t nodes,
                             uint32_t *ends)
{
    const struct match_text *texts = table->texts;
    const uint32_t depth = node->depth;
    if (from < to && texts[from].count == depth)
        node->text = ++from;
    node->first_child = nodes;
    node->deep = depth == MATCH_WALK && from < to;
    while (!node->deep && from < to) {
        const uint8_t byte = texts[from].bytes[depth];
        const uint32_t begin = from;
        while (from < to && texts[from].bytes[depth] == byte)
            from++;
        table->bytes[nodes] = byte;
        table->nodes[nodes] =
            (struct node){.sample = begin, .depth = (uint8_t)common_bytes(&texts[begin], &texts[from - 1], depth + 1)};
        ends[nodes++] = from;
    }
    node->children = (uint16_t)(nodes - node->first_child);
    return nodes;
}

static bool make_trie(struct match_table *table, size_t count)
{
    const size_t room = 2 * count + 1; /* each node but the root branches, ends a text, or is deep */
    table->nodes = malloc(room * sizeof *table->nodes);
    table->bytes = malloc(room);
    uint32_t *ends = malloc(room * sizeof *ends);
    if (!table->nodes || !table->bytes || !ends) {
        free(ends);
        return false;
    }
    uint32_t nodes = 1;
    table->nodes[0] = (struct node){.sample = 0};
    table->bytes[0] = 0;
    ends[0] = (uint32_t)count;
    for (uint32_t n = 0; n < nodes; n++)
        nodes = add_children(table, &table->nodes[n], table->nodes[n].sample, ends[n], nodes, ends);
    assert(nodes <= room);
    free(ends);
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

static void make_filter(struct match_table *table, size_t count)
{
    size_t firsts = 0, seconds = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = table->texts[i].bytes;
        const bool one = table->texts[i].count == 1;
        table->first[bytes[0]] = true;
        firsts = firsts > FEW_FIRSTS ? firsts : few_add(table->firsts, firsts, bytes[0]);
        seconds = one || seconds > FEW_FIRSTS ? FEW_FIRSTS + 1 : few_add(table->seconds, seconds, bytes[1]);
        for (uint32_t second = one ? 0 : bytes[1]; second <= (one ? 255u : bytes[1]); second++)
            table->pairs[(second << 8 | bytes[0]) / 64] |= UINT64_C(1) << bytes[0] % 64;
    }
    table->few = firsts <= FEW_FIRSTS;
    table->one_first = firsts == 1 && table->firsts[0] != ' ';
    table->few_seconds = seconds <= FEW_FIRSTS;
    for (size_t i = firsts; i && i < FEW_FIRSTS; i++)
        table->firsts[i] = table->firsts[0];
    for (size_t i = seconds; i && i < FEW_FIRSTS; i++)
        table->seconds[i] = table->seconds[0];
}

enum tokmap_status match_table_new(struct match_table **table, const struct match_text *texts, size_t count,
                                   const char *path, struct tokmap_error *error)
{
    uint64_t bytes = 0;
    *table = NULL;
    assert(count);
    for (size_t i = 0; i < count; i++) {
        assert(texts[i].count && (!i || match_text_compare(&texts[i - 1], &texts[i]) < 0));
        bytes += texts[i].count > MATCH_WALK ? texts[i].count : 0;
    }
    if (bytes > MATCH_LONG_MOST || count > UINT32_MAX / 4)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the added tokens of more than %u bytes have %" PRIu64 " bytes in total, but at most %" PRIu64
                         " are supported; remove some of them",
                         MATCH_WALK, bytes, MATCH_LONG_MOST);
    struct match_table *made = calloc(1, sizeof *made);
    if (made)
        made->texts = texts;
    if (!made || !make_trie(made, count)) {
        match_table_free(made);
        return error_set_memory(error, "added tokens", count * 2 * sizeof(struct node));
    }
    make_filter(made, count);
    const enum tokmap_status status = match_long_new(&made->longs, texts, count, MATCH_WALK, error);
    if (status)
        match_table_free(made);
    else
        *table = made;
    return status;
}

void match_table_free(struct match_table *table)
{
    if (!table)
        return;
    free(table->nodes);
    free(table->bytes);
    match_long_free(table->longs);
    free(table);
}

/* ---- search ---- */

#if defined(__SSE2__)
/* Returns one bit for each of 16 bytes: 1 if it is one of the four. */
static inline int any_of(const uint8_t *text, const uint8_t four[FEW_FIRSTS])
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i hit = _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)four[0]));
    for (int i = 1; i < FEW_FIRSTS; i++)
        hit = _mm_or_si128(hit, _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)four[i])));
    return _mm_movemask_epi8(hit);
}
#endif

/* Returns the first offset from `at` on at which the first byte of a text is, or `count`. If there are few second
 * bytes, they are compared, too: the added tokens of Llama-2 all begin with a space. */
static size_t next_first(const struct match_table *table, const uint8_t *text, size_t at, size_t count)
{
    if (table->one_first) {
        const uint8_t *found = at < count ? memchr(text + at, table->firsts[0], count - at) : NULL;
        return found ? (size_t)(found - text) : count;
    }
#if defined(__SSE2__)
    for (; table->few && count - at >= 17; at += 16) {
        int mask = any_of(text + at, table->firsts);
        if (mask && table->few_seconds)
            mask &= any_of(text + at + 1, table->seconds);
        if (mask)
            return at + (size_t)__builtin_ctz((unsigned)mask);
    }
#endif
    while (at < count && !table->first[text[at]])
        at++;
    return at;
}

/* Returns the child of a node by a byte, or NULL. */
static inline const struct node *child_by(const struct match_table *table, const struct node *node, uint8_t byte)
{
    uint32_t low = node->first_child;
    const uint32_t end = low + node->children;
    for (uint32_t high = end; low < high;) {
        const uint32_t middle = (low + high) / 2;
        if (table->bytes[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && table->bytes[low] == byte ? &table->nodes[low] : NULL;
}

/* Returns 1 + the index of the longest text of at most MATCH_WALK bytes that begins at text[0], or 0. *deep: the first
 * MATCH_WALK bytes of a longer text are there. */
static uint32_t walk(const struct match_table *table, const uint8_t *text, size_t count, bool *deep, uint64_t *steps)
{
    const struct node *node = &table->nodes[0];
    uint32_t found = 0, depth = 0;
    while (depth < count && (node = child_by(table, node, text[depth])) && node->depth <= count &&
           !memcmp(text + depth, table->texts[node->sample].bytes + depth, node->depth - depth)) {
        depth = node->depth;
        found = node->text ? node->text : found;
        *deep |= node->deep;
    }
    *steps += (node ? node->depth : depth) + 1;
    return found;
}

/* Returns 1 + the index of the longest text of more than MATCH_WALK bytes that begins at the place, or 0. */
static uint32_t long_at(struct match_search *search, size_t place)
{
    if (place >= search->found_to) {
        const size_t most = max64(PLACES_LEAST, search->table->longs->longest);
        const size_t places = min64(most, search->count - place);
        if (!search->found) /* the first block is the largest */
            search->found = malloc(places * sizeof *search->found);
        search->lacks_memory = !search->found;
        if (search->lacks_memory)
            return 0;
        match_long_find(search->table->longs, search->text + place, places, search->count - place, search->found,
                        &search->steps);
        search->found_from = place;
        search->found_to = place + places;
    }
    assert(place >= search->found_from);
    return search->found[place - search->found_from];
}

const struct match_text *match_table_text(const struct match_table *table, size_t index)
{
    return &table->texts[index];
}

void match_search_begin(struct match_search *search, const struct match_table *table, const uint8_t *text, size_t count)
{
    *search = (struct match_search){.table = table, .text = text, .count = count};
}

size_t match_search_next(struct match_search *search, size_t *at)
{
    const struct match_table *table = search->table;
    const uint8_t *text = search->text;
    const size_t count = search->count;
    for (size_t place = *at; !search->lacks_memory && (place = next_first(table, text, place, count)) < count;
         place++) {
        if (place + 1 < count) {
            const uint32_t pair = load16(text + place);
            if (!(table->pairs[pair / 64] >> pair % 64 & 1))
                continue;
        }
        bool deep = false;
        uint32_t found = walk(table, text + place, count - place, &deep, &search->steps);
        const uint32_t longer = deep ? long_at(search, place) : 0;
        found = longer ? longer : found;
        if (found && !search->lacks_memory) {
            *at = place;
            return found - 1;
        }
    }
    return MATCH_NONE;
}

void match_search_end(struct match_search *search)
{
    free(search->found);
    search->found = NULL;
}
