/* SPDX-License-Identifier: MIT */
/*
 * planner.c - best-fit decreasing packing; see planner.h.
 *
 * A segment is an item. Items are numbered in the order of the dataset, so item i has the tokens [first[i],
 * first[i + 1]), and the inverse that the file stores (the i-th segment by first token) is the place of item i in the
 * rows. Steps: sort the items by length (a radix sort, stable, so equal lengths keep their order); give each a row;
 * count the segments of the rows; give each item its place. That takes 8 + 4 + 4 + 4 bytes an item and 20 a row.
 *
 * Example: rows of 10 tokens and documents of 4, 13, 6, and 3. The items are 4, 10, 3, 6, and 3. Row 0 takes the 10,
 * row 1 the 6 and the 4, and row 2 both 3s.
 */
#include "planner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#define RADIX_BITS 11
#define RADIX ((uint32_t)1 << RADIX_BITS)
#define PROGRESS_STEP ((uint64_t)1 << 16)

struct planner {
    struct planner_options options;
    struct planner_result result;
    uint64_t *first; /* items + 1: the tokens before each item */
    uint64_t items, capacity;
    uint32_t *order;     /* items, longest first; when they are packed: the item that is segment i */
    uint32_t *spare;     /* for sorting; when they are packed: the segment that item i is */
    uint32_t *row;       /* of item i */
    uint32_t *row_first; /* the first segment of each row */
    struct shelf_row *rows;
    uint64_t rows_capacity;
};

/* ---- the rows that have room ---- */

/*
 * A shelf has the rows that have room: it finds the row with the least room that is enough, and of several such rows
 * the one with the lowest number.
 *
 * Room is an integer below 2^32. It is divided into up to 2^22 bins of equal width (of width 1 while the largest room
 * is below 2^22). A tree of bitmaps, 64 bits a word, finds the next bin that is not empty in O(log bins). The rows of a
 * bin are a treap: a binary search tree by (room, number) whose shape depends on a hash of the row's number, so it is
 * balanced whatever the order in which rows come and go. Example: rows 4 and 7 have 10 tokens of room, and row 2 has
 * 12. A request for 9 tokens goes to bin 10, whose lowest row is 4.
 *
 * A list of rows per bin would be faster, but could not find the lowest row: rows reach the same room in any order.
 */

#define SHELF_LEVELS 4
#define SHELF_NONE UINT32_MAX

struct shelf_row {
    uint32_t room;
    uint32_t left, right; /* rows below it in the treap of its bin, or SHELF_NONE */
    uint32_t segments;    /* for the caller */
};

struct row_shelf {
    struct shelf_row *rows; /* the caller's, which may move it between calls */
    uint32_t shift;         /* a bin holds 2^shift values of room */
    uint64_t bins;
    uint32_t *roots;              /* per bin, or SHELF_NONE */
    uint64_t *bits[SHELF_LEVELS]; /* level 0 has a bit per bin, each level above it a bit per word */
};

#define BINS_MOST ((uint64_t)1 << 22)

static void row_shelf_free(struct row_shelf *shelf)
{
    free(shelf->roots);
    for (int level = 0; level < SHELF_LEVELS; level++)
        free(shelf->bits[level]);
    *shelf = (struct row_shelf){0};
}

/* Makes an empty shelf for rooms up to `most`. Returns false without memory; there is then nothing to free. */
static bool row_shelf_new(struct row_shelf *shelf, uint32_t most)
{
    *shelf = (struct row_shelf){0};
    while ((most >> shelf->shift) >= BINS_MOST)
        shelf->shift++;
    shelf->bins = ((uint64_t)most >> shelf->shift) + 1;
    shelf->roots = malloc(shelf->bins * sizeof *shelf->roots);
    bool complete = shelf->roots != NULL;
    uint64_t count = shelf->bins;
    for (int level = 0; level < SHELF_LEVELS; level++) {
        count = (count + 63) / 64;
        complete = (shelf->bits[level] = calloc(count, sizeof(uint64_t))) && complete;
    }
    if (!complete) {
        row_shelf_free(shelf);
        return false;
    }
    memset(shelf->roots, 0xff, shelf->bins * sizeof *shelf->roots);
    return true;
}

/* ---- bins ---- */

static void bin_mark(struct row_shelf *shelf, uint64_t bin)
{
    for (int level = 0; level < SHELF_LEVELS; level++, bin /= 64)
        shelf->bits[level][bin / 64] |= (uint64_t)1 << bin % 64;
}

static void bin_clear(struct row_shelf *shelf, uint64_t bin)
{
    for (int level = 0; level < SHELF_LEVELS; level++, bin /= 64) {
        shelf->bits[level][bin / 64] &= ~((uint64_t)1 << bin % 64);
        if (shelf->bits[level][bin / 64])
            return;
    }
}

/* Returns the first bin from `bin` on that is not empty, or UINT64_MAX. */
static uint64_t bin_next(const struct row_shelf *shelf, uint64_t bin)
{
    uint64_t at = bin, words = (shelf->bins + 63) / 64;
    for (int level = 0; level < SHELF_LEVELS; level++) {
        const uint64_t word = at / 64;
        const uint64_t left = word < words ? shelf->bits[level][word] >> at % 64 : 0;
        if (left) {
            at += (uint64_t)__builtin_ctzll(left);
            while (level--)
                at = at * 64 + (uint64_t)__builtin_ctzll(shelf->bits[level][at]);
            return at;
        }
        at = word + 1;
        words = (words + 63) / 64;
    }
    return UINT64_MAX;
}

/* ---- treaps ---- */

/* Returns a row's place in the heap order of a treap. Multiplication by an odd number is a bijection, so no two are
 * equal. */
static uint32_t priority(uint32_t row)
{
    return row * 0x9e3779b1u ^ (row * 0x9e3779b1u) >> 15;
}

static bool before(const struct row_shelf *shelf, uint32_t a, uint32_t room, uint32_t row)
{
    const uint32_t of_a = shelf->rows[a].room;
    return of_a != room ? of_a < room : a < row;
}

/* Adds a row that is not on the shelf, with the room that rows[row].room says. */
static void row_shelf_put(struct row_shelf *shelf, uint32_t row)
{
    struct shelf_row *rows = shelf->rows;
    const uint32_t room = rows[row].room, own = priority(row);
    const uint64_t bin = room >> shelf->shift;
    uint32_t *link = &shelf->roots[bin];
    if (*link == SHELF_NONE)
        bin_mark(shelf, bin);
    while (*link != SHELF_NONE && priority(*link) > own)
        link = before(shelf, *link, room, row) ? &rows[*link].right : &rows[*link].left;
    /* The treap at *link is split into the rows before and after this one. */
    uint32_t rest = *link, *less = &rows[row].left, *more = &rows[row].right;
    *link = row;
    while (rest != SHELF_NONE) {
        if (before(shelf, rest, room, row)) {
            *less = rest;
            less = &rows[rest].right;
            rest = *less;
        } else {
            *more = rest;
            more = &rows[rest].left;
            rest = *more;
        }
    }
    *less = *more = SHELF_NONE;
}

/* Removes the row at *link: the treaps below it are merged. */
static void unlink_row(struct row_shelf *shelf, uint32_t *link)
{
    struct shelf_row *rows = shelf->rows;
    uint32_t left = rows[*link].left, right = rows[*link].right;
    while (left != SHELF_NONE && right != SHELF_NONE) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &rows[left].right;
            left = *link;
        } else {
            *link = right;
            link = &rows[right].left;
            right = *link;
        }
    }
    *link = left != SHELF_NONE ? left : right;
}

/* Returns the link to the first row of a bin with at least `room`, or NULL. */
static uint32_t *link_find(struct row_shelf *shelf, uint64_t bin, uint32_t room)
{
    uint32_t *link = &shelf->roots[bin], *found = NULL;
    while (*link != SHELF_NONE) {
        struct shelf_row *at = &shelf->rows[*link];
        if (at->room >= room) {
            found = link;
            link = &at->left;
        } else {
            link = &at->right;
        }
    }
    return found;
}

/* Removes and returns the row with the least room that is at least `room`; SHELF_NONE if no row has it. */
static uint32_t row_shelf_take(struct row_shelf *shelf, uint32_t room)
{
    uint64_t bin = bin_next(shelf, room >> shelf->shift);
    uint32_t *link = bin == UINT64_MAX ? NULL : link_find(shelf, bin, room);
    /* The rows of the bin that `room` itself is in may all have less. */
    if (!link && bin != UINT64_MAX && (bin = bin_next(shelf, bin + 1)) != UINT64_MAX)
        link = link_find(shelf, bin, room);
    if (!link)
        return SHELF_NONE;
    const uint32_t row = *link;
    unlink_row(shelf, link);
    if (shelf->roots[bin] == SHELF_NONE)
        bin_clear(shelf, bin);
    return row;
}

/* Returns the largest multiple of the padding below seq_len, with " or ", if there is one. */
static const char *below_text(const struct planner_options *options, char text[32])
{
    const uint64_t below = options->seq_len / options->pad * options->pad;
    text[0] = 0;
    if (below)
        (void)snprintf(text, 32, "%" PRIu64 " or ", below);
    return text;
}

enum tokmap_status planner_new(struct planner **planner, const struct planner_options *options,
                               struct tokmap_error *error)
{
    char text[32];
    *planner = NULL;
    if (!options->seq_len || options->seq_len > PLAN_SEQ_LEN_MOST)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "--seq-len is %" PRIu64 "; it must be 1 to %" PRIu64, options->seq_len, PLAN_SEQ_LEN_MOST);
    if (options->pad > 1 && options->seq_len % options->pad)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "--seq-len is %" PRIu64 ", which is not a multiple of --pad-documents %" PRIu64
                         "; set --seq-len to %s%" PRIu64,
                         options->seq_len, options->pad, below_text(options, text),
                         div_ceil(options->seq_len, options->pad) * options->pad);
    struct planner *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the planner", sizeof *made);
    made->options = *options;
    *planner = made;
    return TOKMAP_OK;
}

void planner_free(struct planner *planner)
{
    if (!planner)
        return;
    free(planner->first);
    free(planner->order);
    free(planner->spare);
    free(planner->row);
    free(planner->row_first);
    free(planner->rows);
    free(planner);
}

/* ---- documents ---- */

/* Makes room for `more` items and the end of the last one. */
static enum tokmap_status items_reserve(struct planner *planner, uint64_t more, struct tokmap_error *error)
{
    if (more > PLAN_SEGMENTS_MOST - planner->items)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the plan would have 2^32 segments or more, which a plan cannot number; plan parts of the "
                         "dataset, or raise --seq-len");
    if (planner->items + more < planner->capacity)
        return TOKMAP_OK;
    const uint64_t capacity = planner->items + more + planner->items / 2 + 4096;
    uint64_t *grown = realloc(planner->first, capacity * sizeof *grown);
    if (!grown)
        return error_set_memory(error, "the documents", capacity * sizeof *grown);
    planner->first = grown;
    planner->capacity = capacity;
    return TOKMAP_OK;
}

enum tokmap_status planner_add(struct planner *planner, uint64_t tokens, struct tokmap_error *error)
{
    struct planner_result *result = &planner->result;
    const uint64_t seq_len = planner->options.seq_len;
    if (!tokens)
        return TOKMAP_OK;
    if (tokens > PLAN_TOKENS_MOST - result->tokens)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET, "the dataset has more than 2^62 tokens");
    enum tokmap_status status = items_reserve(planner, div_ceil(tokens, seq_len), error);
    if (status)
        return status;
    result->documents++;
    result->cut += tokens > seq_len;
    result->concatenation_cut += result->tokens / seq_len != (result->tokens + tokens - 1) / seq_len;
    for (uint64_t left = tokens; left;) {
        const uint64_t part = min64(left, seq_len);
        planner->first[planner->items++] = result->tokens;
        result->tokens += part;
        left -= part;
    }
    return TOKMAP_OK;
}

static uint32_t tokens_of(const struct planner *planner, uint64_t item)
{
    return (uint32_t)(planner->first[item + 1] - planner->first[item]);
}

/* Returns the tokens that an item takes of a row. */
static uint32_t room_of(const struct planner *planner, uint64_t item)
{
    const uint32_t tokens = tokens_of(planner, item), pad = (uint32_t)planner->options.pad;
    return pad > 1 ? (uint32_t)(div_ceil(tokens, pad) * pad) : tokens;
}

/* ---- packing ---- */

/* Sorts the items by length, longest first. Equal ones keep their order. */
static void items_sort(struct planner *planner)
{
    const uint32_t seq_len = (uint32_t)planner->options.seq_len;
    for (uint64_t i = 0; i < planner->items; i++)
        planner->order[i] = (uint32_t)i;
    for (int shift = 0; shift < 32 && seq_len >> shift; shift += RADIX_BITS) {
        uint64_t count[RADIX] = {0}, sum = 0;
        for (uint64_t i = 0; i < planner->items; i++)
            count[(seq_len - tokens_of(planner, i)) >> shift & (RADIX - 1)]++;
        for (uint32_t digit = 0; digit < RADIX; digit++) {
            const uint64_t here = count[digit];
            count[digit] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < planner->items; i++) {
            const uint32_t item = planner->order[i];
            planner->spare[count[(seq_len - tokens_of(planner, item)) >> shift & (RADIX - 1)]++] = item;
        }
        uint32_t *sorted = planner->spare;
        planner->spare = planner->order;
        planner->order = sorted;
    }
}

static enum tokmap_status row_begin(struct planner *planner, uint32_t *row, struct tokmap_error *error)
{
    if (planner->result.rows == planner->rows_capacity) {
        const uint64_t capacity = planner->rows_capacity + planner->rows_capacity / 2 + 4096;
        struct shelf_row *grown = realloc(planner->rows, capacity * sizeof *grown);
        if (!grown)
            return error_set_memory(error, "the rows", capacity * sizeof *grown);
        planner->rows = grown;
        planner->rows_capacity = capacity;
    }
    *row = (uint32_t)planner->result.rows++;
    planner->rows[*row] = (struct shelf_row){.room = (uint32_t)planner->options.seq_len};
    return TOKMAP_OK;
}

/* Gives each item its row. */
static enum tokmap_status rows_fill(struct planner *planner, struct row_shelf *shelf,
                                    int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                                    struct tokmap_error *error)
{
    const uint64_t items = planner->items;
    const uint64_t most = planner->options.documents_most ? planner->options.documents_most : PLAN_SEGMENTS_MOST;
    const uint32_t shortest = room_of(planner, planner->order[items - 1]);
    for (uint64_t i = 0; i < items;) {
        const uint32_t tokens = room_of(planner, planner->order[i]);
        enum tokmap_status status = TOKMAP_OK;
        shelf->rows = planner->rows;
        uint32_t row = row_shelf_take(shelf, tokens);
        if (row == SHELF_NONE)
            status = row_begin(planner, &row, error);
        if (status)
            return status;
        struct shelf_row *into = &planner->rows[row];
        /* No row with room is fuller than this one, and it only becomes fuller. So items of the same length follow
         * into the same row while they fit. */
        do {
            planner->row[planner->order[i]] = row;
            into->room -= tokens;
            into->segments++;
            if (i++ % PROGRESS_STEP == 0 && progress && progress(user, i - 1, items))
                return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET,
                                 "the caller stopped the plan");
        } while (i < items && into->segments < most && into->room >= tokens &&
                 room_of(planner, planner->order[i]) == tokens);
        shelf->rows = planner->rows;
        if (into->room >= shortest && into->segments < most)
            row_shelf_put(shelf, row);
    }
    return TOKMAP_OK;
}

/* Gives each item its place: rows in order, and in a row the items in the order in which they came. */
static enum tokmap_status segments_place(struct planner *planner, struct tokmap_error *error)
{
    struct planner_result *result = &planner->result;
    planner->row_first = malloc(result->rows * sizeof *planner->row_first);
    if (!planner->row_first)
        return error_set_memory(error, "the rows", result->rows * sizeof *planner->row_first);
    uint64_t sum = 0;
    for (uint64_t row = 0; row < result->rows; row++) {
        struct shelf_row *made = &planner->rows[row];
        planner->row_first[row] = (uint32_t)sum;
        sum += made->segments;
        result->row_segments = max64(result->row_segments, made->segments);
        result->full_rows += !made->room;
        made->left = planner->row_first[row]; /* the next place in the row */
    }
    assert(sum == planner->items);
    for (uint64_t i = 0; i < planner->items; i++) {
        const uint32_t item = planner->order[i];
        result->document_padding += room_of(planner, item) - tokens_of(planner, item);
        planner->spare[item] = planner->rows[planner->row[item]].left++;
    }
    for (uint64_t item = 0; item < planner->items; item++)
        planner->order[planner->spare[item]] = (uint32_t)item;
    return TOKMAP_OK;
}

enum tokmap_status planner_pack(struct planner *planner, int (*progress)(void *user, uint64_t done, uint64_t total),
                                void *user, struct planner_result *result, struct tokmap_error *error)
{
    const uint64_t items = planner->items;
    struct row_shelf shelf;
    assert(!planner->order);
    if (!items)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "the dataset has no tokens, so a plan of it would have no rows");
    planner->first[items] = planner->result.tokens;
    planner->order = malloc(items * sizeof *planner->order);
    planner->spare = malloc(items * sizeof *planner->spare);
    planner->row = malloc(items * sizeof *planner->row);
    if (!planner->order || !planner->spare || !planner->row)
        return error_set_memory(error, "the segments", 3 * items * sizeof *planner->row);
    if (!row_shelf_new(&shelf, (uint32_t)planner->options.seq_len))
        return error_set_memory(error, "the rows with room", 0);
    items_sort(planner);
    enum tokmap_status status = rows_fill(planner, &shelf, progress, user, error);
    row_shelf_free(&shelf);
    if (!status)
        status = segments_place(planner, error);
    planner->result.segments = items;
    *result = planner->result;
    return status;
}

/* ---- the file ---- */

static struct plan_segment segment_of(void *user, uint64_t number)
{
    const struct planner *planner = user;
    const uint32_t item = planner->order[number];
    return (struct plan_segment){planner->first[item], tokens_of(planner, item), planner->spare[number]};
}

int planner_write(struct planner *planner, int fd, const uint8_t dataset[16], uint32_t identity,
                  struct plan_header *made)
{
    const struct planner_result *result = &planner->result;
    *made = (struct plan_header){
        .identity = identity,
        .tokens = result->tokens,
        .seq_len = planner->options.seq_len,
        .rows = result->rows,
        .segments = result->segments,
        .row_segments = result->row_segments,
        .documents_most = planner->options.documents_most,
        .pad = planner->options.pad > 1 ? (uint32_t)planner->options.pad : 0,
        .documents = result->documents,
        .cut = result->cut,
    };
    memcpy(made->dataset, dataset, sizeof made->dataset);
    return plan_write(fd, made, planner->row_first, segment_of, planner);
}
