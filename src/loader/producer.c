/* SPDX-License-Identifier: MIT */
/*
 * producer.c - see producer.h.
 *
 * A failure is a slot like any other. The producer then waits until the consumer has released it, which happens at the
 * next call of next(), and tries the same rows again: the schedule advances only when a batch is complete.
 */
#include "producer.h"

#include <assert.h>
#include <string.h>

#include "batch/boundaries.h"
#include "common/bit_copy.h"
#include "common/bits.h"
#include "common/bytes.h"
#include "common/error.h"
#include "counted.h"
#include "dataset/row_extents.h"
#include "fetch_plan.h"
#include "platform/os.h"
#include "row_targets.h"
#include "row_values.h"
#include "run/cursor.h"
#include "run/exclusion.h"

#define CHUNKS_AHEAD 6 /* chunks of documents whose tokens are prefetched */

bool form_make(struct form *form, const struct form_needs *needs, uint64_t rows, uint64_t seq_len)
{
    const uint32_t masking = TOKMAP_LOSS_MASK | TOKMAP_LABELS;
    const uint32_t marked = TOKMAP_POSITION_IDS | TOKMAP_DOCUMENT_IDS | FORM_CU | masking;
    const uint32_t of_targets = TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD | masking;
    const bool masks = (needs->fields & masking) || needs->mask_targets;
    const uint64_t columns = seq_len / needs->slices / needs->chunks, ahead = form_ahead(needs);
    const uint64_t lists = needs->chunks_most, tokens_of_lists = lists * ahead;
    *form = (struct form){.seq_len = seq_len, .columns = columns, .row_tokens = columns + ahead};
    struct ring_shape *shape = &form->shape;
    if (mul_overflows(rows, needs->chunks, &shape->rows))
        return false;
    /* Each chunk of a list begins at a multiple of 64 bytes, and its marks and bits at a word. */
    shape->row_bytes = (form->row_tokens + tokens_of_lists) * needs->width + lists * FORM_ALIGN;
    if ((needs->fields & marked) || needs->mask_targets)
        shape->row_marks = mark_words(form_marked_tokens(needs, columns) + tokens_of_lists) + lists;
    if (masks && (needs->masked || form_first_labels(needs)))
        shape->row_bits = mark_words(max64(form_masked_targets(needs, columns), columns) +
                                     (needs->slices > 1) * (lists + 1) + tokens_of_lists) +
                          lists;
    shape->row_chunks = lists;
    shape->bounds = needs->bounds && (needs->fields & of_targets); /* targets in padding are always ignored */
    shape->sources = needs->fields & TOKMAP_SOURCE_IDS;
    shape->cu_elements = needs->cu_elements;
    const uint32_t parts = needs->values->count << needs->values->present;
    uint64_t values;
    if (mul_overflows(shape->rows, columns, &values) ||
        mul_overflows(values, needs->values->column_bytes + parts, &values))
        return false;
    shape->values_bytes = parts ? row_values_part_at(needs->values, shape->rows * columns, parts) : 0;
    if (needs->fields & TOKMAP_CU_SEQLENS_SLICE)
        shape->cu_elements += form_cu_slice_at(needs);
    return ring_layout_of(shape, &form->layout);
}

/* ---- what a slot has of all its rows ---- */

void producer_begin_rows(struct tokmap_loader *loader, struct slot *slot)
{
    struct context *context = &loader->fill->context;
    context->slice_tokens = context->trace = slot->max_seqlen_slice = 0;
    if (loader->options.fields & TOKMAP_CU_SEQLENS_SLICE)
        slot->cu[form_cu_slice_at(&loader->needs)] = 0;
    if (slot->cu)
        boundaries_cu_begin(&loader->fill->cu, slot->cu, loader->needs.cu_elements);
}

/* Adds the ends of the documents of a row, from number `before` on, in the slice. Ends of rows before it are below
 * row_at. */
static void add_cu_slice(struct tokmap_loader *loader, struct slot *slot, uint64_t before, uint64_t row_at)
{
    struct context *context = &loader->fill->context;
    int32_t *ends = slot->cu + form_cu_slice_at(&loader->needs);
    const struct chunk all = {0, slot->seq_len}, *chunk = context_cuts(context) ? context->chunks : &all;
    const struct chunk *end_chunk = chunk + (context_cuts(context) ? context->count : 1);
    uint64_t passed = context->slice_tokens; /* in chunks before this one */
    for (uint64_t i = before; i < loader->fill->cu.documents; i++) {
        const uint64_t end = (uint64_t)slot->cu[i + 1] - row_at;
        for (; chunk < end_chunk && chunk->first + chunk->count <= end; chunk++)
            passed += chunk->count;
        ends[i + 1] = (int32_t)(passed + (chunk < end_chunk && chunk->first < end ? end - chunk->first : 0));
        slot->max_seqlen_slice = max64(slot->max_seqlen_slice, (uint64_t)(ends[i + 1] - ends[i]));
    }
    context->slice_tokens += slot->seq_len / context->columns.world;
}

/* Adds the ends of documents of row i, which has these marks. */
static enum tokmap_status add_cu(struct tokmap_loader *loader, struct slot *slot, uint64_t i, const struct mark *marks,
                                 struct tokmap_error *error)
{
    const uint64_t before = loader->fill->cu.documents, row_at = loader->fill->cu.tokens;
    if (!slot->cu)
        return TOKMAP_OK;
    if (boundaries_cu_row(&loader->fill->cu, marks, slot->seq_len)) {
        if (loader->options.fields & TOKMAP_CU_SEQLENS_SLICE)
            add_cu_slice(loader, slot, before, row_at);
        return TOKMAP_OK;
    }
    return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                     "row %" PRIu64 " of step %" PRIu64 " contains more documents than any row could when the "
                     "loader was opened: an index was changed while it was open; restore it, then continue "
                     "from the last cursor",
                     slot->places[i].row, slot->places[i].step);
}

void producer_end_rows(struct tokmap_loader *loader, struct slot *slot)
{
    if (!slot->cu)
        return;
    boundaries_cu_end(&loader->fill->cu);
    slot->documents = loader->fill->cu.documents;
    slot->max_seqlen = loader->fill->cu.longest;
    if (!(loader->options.fields & TOKMAP_CU_SEQLENS_SLICE))
        return;
    for (uint64_t i = slot->documents + 1; i < loader->needs.cu_elements; i++)
        slot->cu[form_cu_slice_at(&loader->needs) + i] = (int32_t)loader->fill->context.slice_tokens;
}

/* ---- rows ---- */

/* Fills what marks, masks, and bounds say of row i, if the loader delivers anything that needs it. */
static enum tokmap_status describe_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                       const struct tokmap_place *place, uint64_t extents, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (slot->bounds)
        slot->bounds[i] = row_targets_bounds(loader, slot->seq_len, place, extents);
    if (slot->uncounted)
        status = row_targets_bits(loader, place, loader->fill->extents, extents,
                                  form_masked_targets(&loader->needs, slot->seq_len),
                                  slot->uncounted + i * slot->shape.row_bits, error);
    if (status || !slot->marks)
        return status;
    struct mark *marks = slot->marks + i * slot->shape.row_marks;
    status = row_targets_marks(loader, place, extents, form_marked_tokens(&loader->needs, slot->seq_len), marks, error);
    if (!status && !loader->on_host)
        boundaries_sum(marks, slot->shape.row_marks);
    return status ? status : add_cu(loader, slot, i, marks, error);
}

/* Sets where the outputs of row i are written, and how, from tokens of `width` bytes. */
static inline void outputs_of(const struct tokmap_loader *loader, const struct slot *slot, uint64_t i, uint32_t width,
                              struct gather_outputs *outputs)
{
    const struct tokmap_out *out = loader->fill->out;
    const bool wide = width == 4, i64 = out->type == TOKMAP_ID_I64;
    const uint64_t at = i * slot->columns * (i64 ? 8 : 4);
    outputs->pair = loader->kernels->pair[wide][i64];
    outputs->one = loader->kernels->one[wide][i64];
    outputs->seq_len = slot->columns;
    outputs->after = loader->fill->after;
    outputs->inputs = (uint8_t *)out->inputs + at;
    outputs->targets = loader->options.fields & TOKMAP_TARGETS ? (uint8_t *)out->targets + at : NULL;
}

/* A row to the backend, which is filled with tokens: a row of the run, or a chunk of one. */
struct filling {
    uint64_t i;                          /* its number in the slot */
    void *row;                           /* memory for its tokens */
    uint64_t tokens;                     /* their number */
    const struct tokmap_extent *extents; /* `count` of them */
    uint64_t count;
};

/* Fills a row with tokens. With loader->fill->out its outputs are written in its place: straight from the mapping where
 * that is possible, else from the slot, while the row is in the processor's cache. */
static enum tokmap_status fill_tokens(struct tokmap_loader *loader, const struct slot *slot,
                                      const struct filling *filling, uint64_t source, bool *cold,
                                      struct tokmap_error *error)
{
    const struct tokmap_extent *extents = filling->extents;
    const uint64_t count = filling->count, i = filling->i;
    enum tokmap_status status = TOKMAP_OK;
    struct gather_outputs outputs;
    bool done = false;
    if (source == TOKMAP_NO_SOURCE) {
        assert(!loader->fill->out); /* see form_is_direct() */
        gather_padding(loader->pad_id, loader->needs.width, filling->tokens, filling->row);
        return TOKMAP_OK;
    }
    struct gather *gather = loader->fill->gathers[source];
    if (loader->fill->out) {
        outputs_of(loader, slot, i, loader->source[source].width, &outputs);
        status = gather_direct(gather, extents, count, &outputs, &done, error);
    }
    if (!status && !done)
        status = gather_row(gather, extents, count, filling->tokens, filling->row, cold, error);
    if (status || done || !loader->fill->out)
        return status;
    outputs_of(loader, slot, i, loader->needs.width, &outputs);
    if (outputs.targets)
        outputs.pair(filling->row, outputs.seq_len, outputs.after, outputs.inputs, outputs.targets);
    else
        outputs.one(filling->row, outputs.seq_len, outputs.inputs);
    return TOKMAP_OK;
}

/* ---- excluded documents ---- */

/* A row, or a chunk of one, in the slot. */
struct excluded_part {
    uint64_t first, columns; /* of the row */
    uint64_t tokens;         /* from column `first` on: those of the columns, and what follows them */
    uint64_t targets;        /* of the columns, and those ahead */
    uint8_t *row;            /* the tokens */
    uint64_t *bits;          /* of the targets that do not count; NULL: nothing asks for them */
    bool begins;             /* it is the first part of its row */
    bool first_label;        /* the bit after those of the targets is that of the label of the first column */
};

/* Replaces the excluded tokens of a part of row i by the pad id, sets the bits of the targets that do not count because
 * of them, and counts them in the slot. The row's place is slot->places[i], and its extents are in
 * loader->fill->extents. The slot is changed, so all that is made of it is made without them. Example: of a row of 8
 * tokens, tokens 3 to 5 are excluded. Target j is token j + 1:
 *
 *     row         11  12  13 PAD PAD PAD  24  25
 *     target       0   1   2   3   4   5   6         bits 2 to 5 are set: target 2 is
 *                                                        excluded, and so is the input of target 5
 */
static void excluded_take_out(const struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t extents,
                              const struct excluded_part *part)
{
    const uint32_t width = loader->needs.width;
    const uint64_t part_end = part->first + part->tokens;
    struct exclusion_walk walk;
    uint64_t first, count, all = 0, data = 0;
    assert(!loader->fill->out); /* see check_masks() in loader_open.c */
    exclusion_walk_begin(&walk, loader->exclusions, &slot->places[i], loader->fill->extents, extents);
    while (exclusion_walk_next(&walk, &first, &count)) {
        const uint64_t end = first + count, from = max64(first, part->first), to = min64(end, part_end);
        const uint64_t column_end = min64(end, part->first + part->columns);
        const uint64_t target = max64(from, 1) - 1; /* of token `from`; it may be before the part */
        const uint64_t target_end = min64(end, part->first + part->targets);
        all += count;
        if (from < to)
            gather_padding(loader->pad_id, width, to - from, part->row + (from - part->first) * width);
        slot->excluded += from < column_end ? column_end - from : 0;
        if (part->bits && max64(target, part->first) < target_end)
            bits_set(part->bits, max64(target, part->first) - part->first, target_end - part->first);
        if (part->bits && part->first_label && first <= part->first && part->first <= end)
            bits_set(part->bits, part->tokens - 1, part->tokens);
    }
    for (uint64_t k = 0; k < extents && all && part->begins; k++)
        data += extent_is_padding(&loader->fill->extents[k]) ? 0 : loader->fill->extents[k].tokens;
    slot->excluded_rows += all && part->begins && all == data;
}

/* ---- slices of rows ---- */

/* Finds where the parts of chunk k of row i are, which are after those of the chunk before. */
static void place_chunk(const struct tokmap_loader *loader, const struct slot *slot, uint64_t i, uint64_t k,
                        struct expand_chunk *chunk)
{
    const struct ring_shape *shape = &slot->shape;
    const struct ring_layout *layout = &slot->layout;
    const struct context *context = &loader->fill->context;
    chunk->count = context->chunks[k].count;
    if (!slot->chunks || !k) {
        const uint64_t row = i * loader->needs.chunks + k;
        chunk->first = slot->chunks ? 0 : k * slot->columns;
        chunk->tokens_at = row * layout->row_stride;
        chunk->marks_at = layout->marks_at + row * shape->row_marks * sizeof(struct mark);
        chunk->bits_at = layout->bits_at + row * shape->row_bits * sizeof(uint64_t);
        return;
    }
    const uint64_t before = chunk[-1].count + context->ahead;
    chunk->first = chunk[-1].first + chunk[-1].count;
    chunk->tokens_at = chunk[-1].tokens_at + round_up(before * loader->needs.width, FORM_ALIGN);
    chunk->marks_at = chunk[-1].marks_at + mark_words(before) * sizeof(struct mark);
    chunk->bits_at = chunk[-1].bits_at + mark_words(before + 1) * sizeof(uint64_t);
}

/* Fills the bits of a chunk's targets, and that of the label of its first column, which is the target before them. */
static enum tokmap_status fill_chunk_bits(struct tokmap_loader *loader, const struct tokmap_place *place,
                                          const struct chunk *columns, struct columns_cut *cut, bool begins,
                                          const struct row_bounds *bounds, uint64_t *bits, struct tokmap_error *error)
{
    struct context *context = &loader->fill->context;
    const uint64_t from = columns->first > 0, targets = columns->count + context->ahead - (context->ahead > 0);
    const uint64_t count =
        columns_cut_next(cut, columns->first - from, columns->count + context->ahead + from, context->extents);
    const enum tokmap_status status =
        row_targets_bits(loader, place, context->extents, count, targets + from, context->bits, error);
    if (status)
        return status;
    memset(bits, 0, mark_words(targets + 1) * sizeof *bits);
    bit_copy((uint8_t *)bits, 0, (const uint8_t *)context->bits, from, targets);
    const bool counts = from && !begins && columns->first > bounds->scored_from && columns->first < bounds->tokens &&
                        !(*context->bits & 1);
    if (form_first_labels(&loader->needs) && !counts)
        bit_fill((uint8_t *)bits, columns->count + context->ahead - 1, 1);
    return TOKMAP_OK;
}

/* Fills what marks, masks, and bounds say of a chunk; those of its row are `whole`, and in context->marks. */
static enum tokmap_status describe_chunk(struct tokmap_loader *loader, const struct slot *slot,
                                         const struct tokmap_place *place, const struct chunk *columns,
                                         const struct row_bounds *whole, struct columns_cut *cut,
                                         struct expand_chunk *chunk, struct tokmap_error *error)
{
    const struct mark *row = loader->fill->context.marks;
    const bool begins = slot->marks && (row[columns->first / 64].starts >> columns->first % 64 & 1);
    chunk->scored_from = whole->scored_from > columns->first ? whole->scored_from - columns->first : 0;
    chunk->tokens = whole->tokens > columns->first ? whole->tokens - columns->first : 0;
    if (slot->marks) {
        struct mark *marks = (struct mark *)(void *)(slot->memory + chunk->marks_at);
        const uint64_t marked = columns->count + loader->fill->context.ahead;
        boundaries_cut(row, columns->first, marked, marks);
        if (!loader->on_host)
            boundaries_sum(marks, mark_words(marked));
    }
    if (!slot->uncounted)
        return TOKMAP_OK;
    return fill_chunk_bits(loader, place, columns, cut, begins, whole,
                           (uint64_t *)(void *)(slot->memory + chunk->bits_at), error);
}

/* Takes what the run excludes out of a chunk. */
static void exclude_of_chunk(const struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t extents,
                             const struct chunk *columns, const struct expand_chunk *chunk)
{
    const uint64_t ahead = loader->fill->context.ahead;
    const struct excluded_part part = {columns->first,
                                       columns->count,
                                       columns->count + ahead,
                                       columns->count + ahead - 1,
                                       slot->memory + chunk->tokens_at,
                                       slot->uncounted ? (uint64_t *)(void *)(slot->memory + chunk->bits_at) : NULL,
                                       columns == loader->fill->context.chunks,
                                       form_first_labels(&loader->needs)};
    excluded_take_out(loader, slot, i, extents, &part);
}

/* Adds the tokens of a chunk, and the next one, to the trace. */
static void trace_chunk(struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_place *place,
                        const struct chunk *columns, const void *tokens)
{
    const uint64_t count = columns->count + (loader->needs.lookahead > 0);
    loader->fill->context.trace +=
        trace_hash(tokens, count * loader->needs.width, trace_chunk_number(place->row, slot->seq_len, columns->first));
}

/* Prefetches the tokens of chunk k of the row at hand, if it has so many: short chunks are over before the processor
 * sees where they lead. */
static void prefetch_chunk(const struct loader_source *source, struct gather *gather, const struct context *context,
                           uint64_t k, struct columns_cut *cut)
{
    if (!source || k >= context->count)
        return;
    const uint64_t count = columns_cut_next(cut, context->chunks[k].first, context->chunks[k].count, context->extents);
    for (uint64_t i = 0; i < count; i++)
        if (!extent_is_padding(&context->extents[i]))
            (void)gather_prefetch(gather, &context->extents[i]);
}

/* Fills the chunks of row i, whose extents are in loader->fill->extents, and what is known of them. */
static enum tokmap_status fill_slice(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                     const struct tokmap_place *place, uint64_t extents, bool *cold,
                                     struct tokmap_error *error)
{
    struct context *context = &loader->fill->context;
    const struct loader_source *source = loader_source_of(loader, place);
    const struct row_bounds bounds = row_targets_bounds(loader, slot->seq_len, place, extents);
    struct columns_cut cut = {loader->fill->extents, extents, source ? source->tokens : 0, 0, 0}, cut_bits = cut,
                       cut_ahead = cut;
    uint64_t prefetched = 0;
    enum tokmap_status status = TOKMAP_OK;
    struct expand_chunk one, *chunk = slot->chunks ? slot->chunks + i * slot->shape.row_chunks : &one;
    context->count = columns_of_row(&context->columns, slot->seq_len, loader->fill->extents, extents, context->chunks);
    if (slot->marks) {
        status = row_targets_marks(loader, place, extents, form_marked_tokens(&loader->needs, slot->seq_len),
                                   context->marks, error);
        boundaries_sum(context->marks, mark_words(form_marked_tokens(&loader->needs, slot->seq_len)));
        if (!status)
            status = add_cu(loader, slot, i, context->marks, error);
    }
    for (uint64_t k = 0; k < context->count && !status; k++, chunk += slot->chunks != NULL) {
        const struct chunk *columns = &context->chunks[k];
        for (; slot->chunks && prefetched < k + CHUNKS_AHEAD; prefetched++)
            prefetch_chunk(source, source ? loader->fill->gathers[place->source] : NULL, context, prefetched,
                           &cut_ahead);
        place_chunk(loader, slot, i, k, chunk);
        const uint64_t tokens = columns->count + context->ahead;
        const struct filling filling = {i * loader->needs.chunks + k, slot->memory + chunk->tokens_at, tokens,
                                        context->extents,
                                        columns_cut_next(&cut, columns->first, tokens, context->extents)};
        status = fill_tokens(loader, slot, &filling, place->source, cold, error);
        if (!status)
            status = describe_chunk(loader, slot, place, columns, &bounds, &cut_bits, chunk, error);
        if (!status && loader->exclusions)
            exclude_of_chunk(loader, slot, i, extents, columns, chunk);
        if (!status && loader->trace)
            trace_chunk(loader, slot, place, columns, filling.row);
        if (slot->bounds && !slot->chunks)
            slot->bounds[filling.i] = (struct row_bounds){chunk->scored_from, chunk->tokens};
    }
    if (slot->chunks && context->count < slot->shape.row_chunks)
        chunk->count = 0;
    return status;
}

enum tokmap_status producer_fill_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                     const struct tokmap_place *place, bool *cold, struct tokmap_error *error)
{
    struct tokmap_place *placed = &slot->places[i];
    uint64_t extents = 0;
    enum tokmap_status status = TOKMAP_OK;
    assert(i < slot->rows_most && (place->source < loader->sources || place->source == TOKMAP_NO_SOURCE));
    *placed = *place;
    if (place->source != TOKMAP_NO_SOURCE)
        status = run_row_extents(loader->run, place, loader->fill->extents, loader->fill->queue.extents_most, &extents,
                                 error);
    if (!status && context_cuts(&loader->fill->context)) {
        status = fill_slice(loader, slot, i, place, extents, cold, error);
    } else if (!status) {
        const struct filling row = {i, (void *)(uintptr_t)slot->rows[i], slot->row_tokens, loader->fill->extents,
                                    extents};
        status = fill_tokens(loader, slot, &row, place->source, cold, error);
    }
    if (*cold)
        __atomic_store_n(&loader->fill->cold_reads, loader->fill->cold_reads + 1, __ATOMIC_RELAXED);
    if (status)
        return status;
    if (extents && !place->tokens) { /* the plan could not be read when this row was looked up, but now it could */
        placed->first_token = loader->fill->extents[0].first_token;
        for (uint64_t k = 0; k < extents; k++)
            placed->tokens += loader->fill->extents[k].tokens;
    }
    if (slot->sources)
        slot->sources[i] = place->source == TOKMAP_NO_SOURCE ? TOKMAP_IGNORE : (int32_t)place->source;
    if (context_cuts(&loader->fill->context))
        return TOKMAP_OK;
    status = describe_row(loader, slot, i, placed, extents, error);
    if (!status && loader->exclusions) {
        const struct excluded_part whole = {0,
                                            slot->seq_len,
                                            slot->row_tokens,
                                            form_masked_targets(&loader->needs, slot->seq_len),
                                            (uint8_t *)(uintptr_t)slot->rows[i],
                                            slot->uncounted ? slot->uncounted + i * slot->shape.row_bits : NULL,
                                            true,
                                            false};
        excluded_take_out(loader, slot, i, extents, &whole);
    }
    return status;
}

enum tokmap_status producer_arrange(struct tokmap_loader *loader, struct slot *slot, uint64_t rows, uint64_t seq_len,
                                    struct tokmap_error *error)
{
    struct form *form = &loader->fill->form;
    if (form->seq_len != seq_len || form->shape.rows != rows * loader->needs.chunks) {
        struct form wanted;
        if (!form_make(&wanted, &loader->needs, rows, seq_len) || wanted.shape.rows > slot->rows_most ||
            wanted.layout.bytes > slot->memory_bytes)
            return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                             "%" PRIu64 " rows of %" PRIu64
                             " tokens are more than this loader has room for; read fewer "
                             "at once",
                             rows, seq_len);
        *form = wanted;
    }
    if (slot->seq_len != form->seq_len || slot->shape.rows != form->shape.rows)
        ring_slot_arrange(slot, &form->shape, &form->layout);
    slot->seq_len = form->seq_len;
    slot->columns = form->columns;
    slot->row_tokens = form->row_tokens;
    return TOKMAP_OK;
}

/* Bytes of a filled slot that must reach the device: up to the last byte that some field is made of. */
static uint64_t used_bytes(const struct tokmap_loader *loader, const struct slot *slot)
{
    const struct ring_shape *shape = &slot->shape;
    const struct ring_layout *layout = &slot->layout;
    const uint64_t rows = slot->count * loader->needs.chunks; /* to the backend */
    if (shape->values_bytes && slot->count)
        return layout->values_at + shape->values_bytes;
    if (!loader->options.fields)
        return 0;
    if (slot->cu)
        return layout->cu_at + shape->cu_elements * sizeof(int32_t);
    if (!slot->count)
        return 0;
    if (slot->sources)
        return layout->sources_at + slot->count * sizeof *slot->sources;
    if (slot->bounds)
        return layout->bounds_at + rows * sizeof(struct row_bounds);
    if (slot->uncounted)
        return layout->bits_at + rows * shape->row_bits * sizeof(uint64_t);
    if (slot->marks)
        return layout->marks_at + rows * shape->row_marks * sizeof(struct mark);
    return (rows - 1) * layout->row_stride + slot->row_tokens * loader->needs.width;
}

static uint64_t trace_of(const struct tokmap_loader *loader, const struct slot *slot)
{
    uint64_t sum = 0;
    if (context_cuts(&loader->fill->context))
        return loader->fill->context.trace;
    for (uint64_t i = 0; i < slot->count; i++)
        sum += trace_hash(slot->rows[i], slot->row_tokens * loader->needs.width, slot->places[i].row);
    return sum;
}

/* Writes the outputs of row i, if that is all that is made of it: the row is one extent, whose pages are populated.
 * Otherwise, *done is false, and producer_fill_row() is the way, which takes three times as many instructions. */
static enum tokmap_status fill_outputs(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                       const struct tokmap_place *place, bool *done, struct tokmap_error *error)
{
    const struct tokmap_extent extent = {place->first_token, place->tokens};
    struct gather_outputs outputs;
    assert(i < slot->rows_most && place->source < loader->sources); /* no padding: see form_is_direct() */
    outputs_of(loader, slot, i, loader->source[place->source].width, &outputs);
    slot->places[i] = *place;
    return gather_direct(loader->fill->gathers[place->source], &extent, 1, &outputs, done, error);
}

static enum tokmap_status fill_rows(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    const bool outputs_alone =
        loader->fill->out && !loader->fill->queue.plans && !slot->sources && !context_cuts(&loader->fill->context);
    residency_begin(loader->fill->residency, slot->count);
    row_values_begin(&loader->fill->values, slot->count);
    producer_begin_rows(loader, slot);
    slot->valid = 0;
    for (uint64_t i = 0; i < slot->count; i++) {
        bool cold = false, done = false;
        enum tokmap_status status = TOKMAP_OK;
        const void **after = loader->fill->out ? &loader->fill->after : NULL;
        loader->fill->after = NULL;
        if (loader->fill->fetches)
            fetch_plan_next(loader->fill->fetches, loader->fill->queue.taken + i);
        const struct tokmap_place *place = row_queue_next(&loader->fill->queue, i, slot->count, after, error);
        if (!place)
            return loader->fill->queue.fault;
        if (outputs_alone)
            status = fill_outputs(loader, slot, i, place, &done, error);
        if (!status && !done)
            status = producer_fill_row(loader, slot, i, place, &cold, error);
        if (cold)
            residency_was_cold(loader->fill->residency, loader->fill->queue.taken + i + 1);
        if (!status && loader->fill->values.count)
            status = row_values_fill(loader, slot, i, false, error);
        if (status)
            return status; /* nobody reads the rows of a slot that failed */
        slot->valid += place->source != TOKMAP_NO_SOURCE;
    }
    if (slot->count)
        slot->first_row = slot->places[0].row;
    producer_end_rows(loader, slot);
    return TOKMAP_OK;
}

static enum tokmap_status fill(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct call call;
    if (!schedule_call(&loader->fill->schedule, &call))
        return error_set(error, TOKMAP_END, NULL, TOKMAP_NO_OFFSET, "the run has ended");
    enum tokmap_status status = loader->backend->calls->await(loader->backend, slot->number, error);
    if (!status)
        status = producer_arrange(loader, slot, loader->fill->schedule.slice.most, call.seq_len, error);
    if (status)
        return status;
    slot->step = call.step;
    slot->first_row = call.first; /* of no row, if there is none */
    slot->count = call.count;
    slot->last_in_step = call.last_in_step;
    slot->direct = loader->fill->out != NULL;
    slot->values_written = loader->fill->values.out != NULL;
    slot->excluded = slot->excluded_rows = 0;
    status = fill_rows(loader, slot, error);
    if (!status)
        status = counted_fill(loader, slot, error);
    if (status)
        return status;
    struct tokmap_cursor cursor = loader->fill->cursor;
    if (call.last_in_step)
        run_cursor(loader->run, call.step + 1, &cursor);
    slot->cursor = cursor;
    slot->trace = loader->trace ? trace_of(loader, slot) : 0;
    status = loader->backend->calls->copy(loader->backend, slot->number, used_bytes(loader, slot), error);
    if (status)
        return status;
    loader->fill->before_last.schedule = loader->fill->schedule;
    loader->fill->before_last.cursor = loader->fill->cursor;
    loader->fill->before_last.count = call.count;
    loader->fill->cursor = cursor;
    schedule_advance(&loader->fill->schedule);
    row_queue_take(&loader->fill->queue, call.count);
    return TOKMAP_OK;
}

enum tokmap_status producer_fill(struct tokmap_loader *loader, struct slot *vacant)
{
    loader_event(loader, "tokmap fill", true);
    enum tokmap_status status = fill(loader, vacant, ring_error(loader->ring));
    loader_event(loader, "tokmap fill", false);
    vacant->status = status;
    ring_publish(loader->ring);
    if (loader->trace && loader->options.threads) /* a new thread may run before loader->thread.producer is set */
        trace_drain(loader->trace); /* after the slot is filled, because writing a file may take a while */
    return status;
}

void producer_undo(struct tokmap_loader *loader)
{
    assert(!loader->thread.producer);
    loader->fill->schedule = loader->fill->before_last.schedule;
    loader->fill->cursor = loader->fill->before_last.cursor;
    row_queue_untake(&loader->fill->queue, loader->fill->before_last.count);
}

/* ---- the producer thread ---- */

bool producer_claim_first(struct tokmap_loader *loader)
{
    return !__atomic_exchange_n(&loader->first.claimed, 1, __ATOMIC_ACQ_REL);
}

void producer_fill_first(struct tokmap_loader *loader)
{
    struct slot *vacant = ring_vacant(loader->ring); /* NULL if the loader is being closed */
    loader->first.status = vacant ? producer_fill(loader, vacant) : TOKMAP_END;
    __atomic_store_n(&loader->first.done, 1, __ATOMIC_RELEASE);
    os_word_wake(&loader->first.done);
}

/* Returns whether there is another batch to fill. After a failure, waits until the consumer has seen it. */
static bool goes_on(struct tokmap_loader *loader, enum tokmap_status status)
{
    return status != TOKMAP_END && (!status || ring_await_empty(loader->ring));
}

/* Fills slots until the run ends or the ring is stopped. */
static void work(struct tokmap_loader *loader)
{
    if (producer_claim_first(loader))
        producer_fill_first(loader);
    while (!__atomic_load_n(&loader->first.done, __ATOMIC_ACQUIRE))
        os_word_wait(&loader->first.done, 0);
    enum tokmap_status status = loader->first.status;
    for (struct slot *slot; goes_on(loader, status) && (slot = ring_vacant(loader->ring));)
        status = producer_fill(loader, slot);
}

void producer_run(void *user)
{
    struct tokmap_loader *loader = user;
    for (uint32_t turn = 0; !loader->thread.closing; turn++) {
        loader->backend->calls->begin(loader->backend); /* in each turn, because a move replaces the backend */
        work(loader);
        __atomic_store_n(&loader->thread.turns_done, turn + 1, __ATOMIC_RELEASE);
        os_word_wake(&loader->thread.turns_done);
        while (__atomic_load_n(&loader->thread.turns_begun, __ATOMIC_ACQUIRE) == turn)
            os_word_wait(&loader->thread.turns_begun, turn);
    }
}

static void begin_turn(struct tokmap_loader *loader)
{
    __atomic_add_fetch(&loader->thread.turns_begun, 1, __ATOMIC_RELEASE);
    os_word_wake(&loader->thread.turns_begun);
}

void producer_pause(struct tokmap_loader *loader)
{
    const uint32_t turn = loader->thread.turns_begun; /* only this thread writes it */
    uint32_t done;
    ring_stop(loader->ring);
    while ((done = __atomic_load_n(&loader->thread.turns_done, __ATOMIC_ACQUIRE)) == turn)
        os_word_wait(&loader->thread.turns_done, done);
}

void producer_resume(struct tokmap_loader *loader)
{
    loader->next.pace.alone = false;
    loader->next.pace.waits = 0;
    loader->first.claimed = loader->first.done = 0;
    begin_turn(loader);
}

void producer_end(struct tokmap_loader *loader)
{
    producer_pause(loader);
    loader->thread.closing = true;
    begin_turn(loader);
    os_thread_join(loader->thread.producer);
}
