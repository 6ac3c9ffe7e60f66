/* SPDX-License-Identifier: MIT */
/* expand_case.c - see expand_case.h. */
#include "expand_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/mark.h"
#include "common/bytes.h"
#include "tokmap/tokmap.h"

#define AROUND 128 /* bytes before and after an output that must not change */
#define UNTOUCHED 0xa5

static const char *const names[EXPAND_OUTPUTS] = {"inputs",    "targets",    "position_ids",  "rows",   "document_ids",
                                                  "loss_mask", "cu_seqlens", "targets_ahead", "labels", "source_ids"};

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t mixed = (*seed ^ *seed >> 29) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 32;
}

static void *allocate(uint64_t bytes)
{
    void *memory = aligned_alloc(64, round_up(bytes + 64, 64));
    if (!memory)
        abort();
    memset(memory, UNTOUCHED, round_up(bytes + 64, 64));
    return memory;
}

static bool starts_at(enum expand_documents kind, uint64_t j, uint64_t seq_len, uint64_t *seed)
{
    uint64_t drawn = draw(seed);
    switch (kind) {
    case EXPAND_ALL:
        return true;
    case EXPAND_FEW:
        return drawn % 150 == 0;
    case EXPAND_MANY:
        return drawn % 3 == 0;
    case EXPAND_EDGES:
        return (j % 64 < 2 || j % 64 > 61) && drawn % 2;
    case EXPAND_LAST:
        return j + 1 >= seq_len;
    case EXPAND_NONE:
    case EXPAND_KINDS:
        break;
    }
    return false;
}

static void put(struct expand_case *made, unsigned output, uint64_t element, int64_t value)
{
    if (made->bytes[output])
        memcpy(made->expected[output] + element * made->shape.element, &value, made->shape.element);
}

static uint64_t *bits_of(const struct expand_case *made, uint64_t i)
{
    return (uint64_t *)(void *)((uint8_t *)made->slot + made->work.bits_at) + i * made->work.row_bits;
}

static struct row_bounds *bounds_of(const struct expand_case *made, uint64_t i)
{
    return (struct row_bounds *)(void *)((uint8_t *)made->slot + made->work.bounds_at) + i;
}

static void fill_bits(const struct expand_case *made, uint64_t i, uint64_t *seed)
{
    uint64_t left = 0;
    bool set = false;
    for (uint64_t t = 0; t < made->work.row_bits * 64; t++) {
        if (made->shape.bits == EXPAND_BITS_RUNS && !left--) {
            left = draw(seed) % 100;
            set = !set;
        } else if (made->shape.bits != EXPAND_BITS_RUNS) {
            set = made->shape.bits == EXPAND_BITS_ALL || (made->shape.bits == EXPAND_BITS_RANDOM && draw(seed) % 2);
        }
        bits_of(made, i)[t / 64] &= ~((uint64_t)1 << t % 64);
        bits_of(made, i)[t / 64] |= (uint64_t)set << t % 64;
    }
}

static struct row_bounds draw_bounds(const struct expand_shape *shape, uint64_t *seed)
{
    const uint64_t tokens = shape->seq_len + shape->lookahead;
    struct row_bounds bounds = {0, tokens};
    if (shape->bounds == EXPAND_PADDED || shape->bounds == EXPAND_BOTH)
        bounds.tokens = draw(seed) % 4 ? draw(seed) % (tokens + 1) : 0;
    if (shape->bounds == EXPAND_SCORED || shape->bounds == EXPAND_BOTH)
        bounds.scored_from = draw(seed) % (shape->seq_len + 1);
    return bounds;
}

/* Returns target `ahead` of input j of a row, which is `token`, as it is delivered: starts[] and the row's bits and
 * bounds say whether it counts. */
static int64_t target_of(const struct expand_case *made, uint64_t i, const bool *starts, uint64_t j, uint64_t ahead,
                         int64_t token, bool *counts)
{
    const struct row_bounds bounds =
        made->work.bounds ? *bounds_of(made, i) : (struct row_bounds){0, made->work.row_tokens};
    const uint64_t target = j + ahead;
    const bool padding = target + 1 >= bounds.tokens;
    *counts = !padding && j >= bounds.scored_from;
    if (made->work.row_bits && bits_of(made, i)[target / 64] >> target % 64 & 1)
        *counts = false;
    for (uint64_t t = j + 1; t <= target + 1; t++)
        *counts = *counts && !starts[t];
    return padding || (made->shape.mask_targets && !*counts) ? -100 : token;
}

/* Fills the expected targets_ahead of a row. */
static void expect_ahead(struct expand_case *made, uint64_t i, const bool *starts)
{
    const struct expand_arguments *work = &made->work;
    const uint64_t many = work->row_tokens - work->seq_len;
    for (uint64_t j = 0; j < work->seq_len; j++)
        for (uint64_t k = 0; k < many; k++) {
            int64_t token = 0;
            bool counts;
            memcpy(&token, (uint8_t *)made->slot + i * work->row_stride + (j + 1 + k) * work->width, work->width);
            put(made, 7, (i * work->seq_len + j) * many + k, target_of(made, i, starts, j, k, token, &counts));
        }
}

/* Fills a row of the slot and of every expected output. starts[j]: token j starts a document, j = 0 .. row_tokens. */
static void fill_row(struct expand_case *made, uint64_t i, const bool *starts, uint64_t *seed)
{
    const struct expand_shape *shape = &made->shape;
    const struct expand_arguments *work = &made->work;
    uint8_t *row = (uint8_t *)made->slot + i * work->row_stride;
    int64_t before = 0, position = 0, document = 0;
    for (uint64_t j = 0; j < work->row_tokens; j++) {
        int64_t token = shape->width == 2 ? (uint16_t)draw(seed) : (uint32_t)draw(seed);
        memcpy(row + j * shape->width, &token, shape->width);
        if (made->bytes[3])
            memcpy(made->expected[3] + (i * work->row_tokens + j) * shape->width, &token, shape->width);
        uint64_t at = i * shape->seq_len + j;
        if (j && j <= shape->seq_len) {
            bool counts;
            put(made, 1, at - 1, target_of(made, i, starts, j - 1, 0, token, &counts));
            put(made, 5, at - 1, counts);
            if (j < shape->seq_len)
                put(made, 8, at, counts ? token : -100);
        }
        if (j >= shape->seq_len)
            continue;
        document += j && starts[j];
        position = j - (uint64_t)before;
        if (starts[j]) {
            before = (int64_t)j;
            position = 0;
        }
        if (!j)
            put(made, 8, at, -100);
        put(made, 0, at, token);
        put(made, 2, at, position);
        put(made, 4, at, document);
    }
}

static void fill_marks(struct expand_case *made, uint64_t i, const bool *starts)
{
    const struct expand_arguments *work = &made->work;
    struct mark *marks = (struct mark *)(void *)((uint8_t *)made->slot + work->marks_at) + i * work->row_marks;
    uint64_t marked = work->seq_len + (work->row_tokens > work->seq_len);
    if (work->targets_ahead)
        marked = work->row_tokens;
    for (uint64_t word = 0; word < work->row_marks; word++) {
        marks[word] = (struct mark){0};
        for (uint64_t j = 0; j < word * 64; j++)
            if (starts[j]) {
                marks[word].last = (uint32_t)j;
                marks[word].before++;
            }
        /* Bits after the marked tokens have no meaning, so they are set here. */
        for (uint64_t j = word * 64; j < word * 64 + 64; j++)
            if (j >= marked || starts[j])
                marks[word].starts |= (uint64_t)1 << j % 64;
    }
}

static void lay_out(struct expand_case *made, uint64_t documents)
{
    const struct expand_shape *shape = &made->shape;
    struct expand_arguments *work = &made->work;
    work->count = shape->rows;
    work->seq_len = shape->seq_len;
    work->row_tokens = shape->seq_len + shape->lookahead;
    work->width = shape->width;
    work->element = shape->element;
    work->mask_targets = shape->mask_targets;
    work->row_stride = round_up(work->row_tokens * shape->width, 64);
    bool ahead = shape->fields & TOKMAP_TARGETS_AHEAD;
    work->row_marks = mark_words(shape->seq_len + (ahead ? shape->lookahead : shape->lookahead > 0));
    if (shape->bits && (shape->lookahead || (shape->fields & TOKMAP_LABELS)))
        work->row_bits = mark_words(shape->seq_len + (ahead ? shape->lookahead - 1 : 0));
    work->bounds = shape->bounds != EXPAND_NO_EXTENTS;
    work->marks_at = work->count * work->row_stride;
    work->bits_at = round_up(work->marks_at + work->count * work->row_marks * sizeof(struct mark), 64);
    work->bounds_at = round_up(work->bits_at + work->count * work->row_bits * sizeof(uint64_t), 64);
    work->sources = work->count;
    work->sources_at = round_up(work->bounds_at + work->count * sizeof(struct row_bounds), 64);
    work->cu_at = round_up(work->sources_at + work->count * sizeof(int32_t), 64);
    work->cu_elements = shape->fields & TOKMAP_CU_SEQLENS ? documents + 1 + shape->cu_spare : 0;
    made->slot_bytes = work->cu_at + work->cu_elements * 4;
    made->slot = allocate(made->slot_bytes);
    work->slot = (uintptr_t)made->slot;
    for (unsigned k = 0; k < EXPAND_OUTPUTS; k++) {
        if (!(shape->fields >> k & 1))
            continue;
        uint64_t cells = work->count * work->seq_len;
        made->bytes[k] = k == 3   ? work->count * work->row_tokens * shape->width
                         : k == 6 ? work->cu_elements * 4
                         : k == 7 ? cells * shape->lookahead * shape->element
                         : k == 9 ? work->count * shape->element
                                  : cells * shape->element;
        made->bytes[k] = max64(made->bytes[k], 1); /* without rows the output is empty, but requested */
        made->memory[k] = allocate(made->bytes[k] + 2 * AROUND + 64 + shape->skew + k * shape->skew_more);
        made->output[k] = made->memory[k] + AROUND + shape->skew + k * shape->skew_more;
        made->expected[k] = allocate(made->bytes[k]);
    }
    uint64_t *addresses[EXPAND_OUTPUTS] = {
        &work->inputs,    &work->targets,    &work->position_ids,  &work->rows,   &work->document_ids,
        &work->loss_mask, &work->cu_seqlens, &work->targets_ahead, &work->labels, &work->source_ids};
    for (unsigned k = 0; k < EXPAND_OUTPUTS; k++)
        *addresses[k] = (uintptr_t)made->output[k];
}

void expand_case_new(struct expand_case *made, const struct expand_shape *shape)
{
    uint64_t tokens = shape->seq_len + shape->lookahead, documents = 0, seed = shape->seed;
    memset(made, 0, sizeof *made);
    made->shape = *shape;
    if (!shape->lookahead)
        made->shape.fields &= ~(uint32_t)(TOKMAP_TARGETS | TOKMAP_LOSS_MASK | TOKMAP_TARGETS_AHEAD);
    if (!(made->shape.fields & (TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD)))
        made->shape.mask_targets = 0;
    bool *starts = allocate(shape->rows * (tokens + 1) * sizeof *starts);
    int32_t *ends = allocate((shape->rows * shape->seq_len + 1) * sizeof *ends);
    for (uint64_t i = 0; i < shape->rows; i++) {
        bool *row = starts + i * (tokens + 1);
        enum expand_documents kind =
            shape->documents == EXPAND_KINDS ? (enum expand_documents)(i % EXPAND_KINDS) : shape->documents;
        row[0] = true;
        for (uint64_t j = 1; j <= tokens; j++)
            row[j] = starts_at(kind, j, shape->seq_len, &seed);
        for (uint64_t j = 1; j <= shape->seq_len; j++)
            if (j == shape->seq_len || row[j])
                ends[documents++] = (int32_t)(i * shape->seq_len + j);
    }
    lay_out(made, documents);
    for (uint64_t i = 0; i < shape->rows; i++) {
        fill_bits(made, i, &seed);
        if (made->work.bounds)
            *bounds_of(made, i) = draw_bounds(shape, &seed);
        fill_row(made, i, starts + i * (tokens + 1), &seed);
        expect_ahead(made, i, starts + i * (tokens + 1));
        fill_marks(made, i, starts + i * (tokens + 1));
    }
    for (uint64_t i = 0; i < shape->rows; i++) {
        const int32_t source = draw(&seed) % 4 ? (int32_t)(draw(&seed) % 1000) : -100;
        store32((uint8_t *)made->slot + made->work.sources_at + i * 4, (uint32_t)source);
        if (made->bytes[9] && shape->element == 8)
            store64(made->expected[9] + i * 8, (uint64_t)source);
        else if (made->bytes[9])
            store32(made->expected[9] + i * 4, (uint32_t)source);
    }
    if (made->bytes[6]) {
        memset(made->expected[6], 0, 4);
        for (uint64_t i = 1; i < made->work.cu_elements; i++)
            store32(made->expected[6] + i * 4,
                    i <= documents ? (uint32_t)ends[i - 1] : (uint32_t)(shape->rows * shape->seq_len));
        memcpy((uint8_t *)made->slot + made->work.cu_at, made->expected[6], made->bytes[6]);
    }
    free(starts);
    free(ends);
    expand_case_reset(made);
}

void expand_case_reset(struct expand_case *made)
{
    for (unsigned k = 0; k < EXPAND_OUTPUTS; k++)
        if (made->bytes[k])
            memset(made->output[k] - AROUND, UNTOUCHED, made->bytes[k] + 2 * AROUND);
}

void expand_case_free(struct expand_case *made)
{
    for (unsigned k = 0; k < EXPAND_OUTPUTS; k++) {
        free(made->memory[k]);
        free(made->expected[k]);
    }
    free(made->slot);
    memset(made, 0, sizeof *made);
}

const char *expand_case_check(const struct expand_case *made, char text[200])
{
    for (unsigned k = 0; k < EXPAND_OUTPUTS; k++) {
        for (uint64_t i = 0; made->bytes[k] && i < made->bytes[k] + 2 * AROUND; i++) {
            uint8_t found = made->output[k][(int64_t)i - AROUND];
            bool inside = i >= AROUND && i < AROUND + made->bytes[k];
            if (found == (inside ? made->expected[k][i - AROUND] : UNTOUCHED))
                continue;
            (void)snprintf(text, 200, "%s: byte %lld of %llu is 0x%02x, expected 0x%02x", names[k],
                           (long long)i - AROUND, (unsigned long long)made->bytes[k], found,
                           inside ? made->expected[k][i - AROUND] : UNTOUCHED);
            return text;
        }
    }
    return NULL;
}
