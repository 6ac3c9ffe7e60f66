/* origin_shares.c - see origin_shares.h. The hash table is at most half full, and is searched from a path's slot on. */
#include "origin_shares.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

static bool same_path(const struct origin_share *a, const struct origin_share *b)
{
    return a->path_bytes == b->path_bytes && (a->path == b->path || !memcmp(a->path, b->path, a->path_bytes));
}

/* Returns the slot of a path, or the empty slot where it belongs. */
static uint64_t *slot_find(const struct origin_shares *shares, const struct origin_share *wanted)
{
    uint64_t at = table_hash(shares->key, (const uint8_t *)wanted->path, wanted->path_bytes) & (shares->slot_count - 1);
    while (shares->slots[at] && !same_path(&shares->files[shares->slots[at] - 1], wanted))
        at = (at + 1) & (shares->slot_count - 1);
    return &shares->slots[at];
}

static bool shares_grow(struct origin_shares *shares)
{
    if (shares->count < shares->capacity)
        return true;
    const uint64_t capacity = shares->capacity ? 2 * shares->capacity : 16;
    if (!shares->capacity)
        shares->key = table_key_new();
    struct origin_share *files = realloc(shares->files, capacity * sizeof *files);
    if (!files)
        return false;
    shares->files = files;
    uint64_t *slots = calloc(2 * capacity, sizeof *slots);
    if (!slots)
        return false;
    free(shares->slots);
    shares->slots = slots;
    shares->capacity = capacity;
    shares->slot_count = 2 * capacity;
    for (uint64_t i = 0; i < shares->count; i++)
        *slot_find(shares, &files[i]) = i + 1;
    return true;
}

bool origin_shares_add(struct origin_shares *shares, const struct origin_share *more)
{
    if (!shares->count || !same_path(&shares->files[shares->last], more)) {
        if (!shares_grow(shares))
            return false;
        uint64_t *slot = slot_find(shares, more);
        if (!*slot) {
            shares->files[shares->count] = (struct origin_share){.path = more->path, .path_bytes = more->path_bytes};
            *slot = ++shares->count;
        }
        shares->last = *slot - 1;
    }
    shares->files[shares->last].documents += more->documents;
    shares->files[shares->last].tokens += more->tokens;
    return true;
}

static int share_order(const void *a, const void *b)
{
    const struct origin_share *left = a, *right = b;
    if (left->tokens != right->tokens)
        return left->tokens < right->tokens ? 1 : -1;
    if (left->documents != right->documents)
        return left->documents < right->documents ? 1 : -1;
    const int order = memcmp(left->path, right->path, min64(left->path_bytes, right->path_bytes));
    if (order)
        return order;
    return left->path_bytes == right->path_bytes ? 0 : left->path_bytes < right->path_bytes ? -1 : 1;
}

void origin_shares_sort(struct origin_shares *shares)
{
    free(shares->slots);
    shares->slots = NULL;
    if (shares->count)
        qsort(shares->files, shares->count, sizeof *shares->files, share_order);
}

void origin_shares_free(struct origin_shares *shares)
{
    free(shares->files);
    free(shares->slots);
    memset(shares, 0, sizeof *shares);
}
