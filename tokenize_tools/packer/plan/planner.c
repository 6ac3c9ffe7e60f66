/* SPDX-License-Identifier: MIT */
/*
 * planner.c - best-fit decreasing packing; planner.h says what it does, and row_shelf.h how the fullest row is found.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "row_shelf.h"

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
