/* SPDX-License-Identifier: MIT */
/*
 * producer.c - see producer.h.
 *
 * A failure is a slot like any other. The producer then waits until the consumer has released it, which happens at the
 * next call of next(), and tries the same rows again: the schedule advances only when a batch is complete.
 */
#include "producer.h"

#include <assert.h>

#include "batch/boundaries.h"
#include "common/error.h"
#include "excluded.h"
#include "platform/os.h"
#include "run/cursor.h"
#include "run/run.h"

/* Fills what marks, masks, and bounds say of row i, if the loader delivers anything that needs it. */
static enum tokmap_status describe_row(const struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                       const struct tokmap_place *place, uint64_t extents, struct tokmap_error *error)
{
    const struct loader_source *source = place->source == TOKMAP_NO_SOURCE ? NULL : &loader->source[place->source];
    enum tokmap_status status = TOKMAP_OK;
    if (slot->sources)
        slot->sources[i] = source ? (int32_t)place->source : TOKMAP_IGNORE;
    if (slot->bounds) {
        const uint64_t stride = source && !source->plan && place->window ? loader->stride : 0;
        slot->bounds[i].tokens = source ? place->tokens : 0;
        slot->bounds[i].scored_from = stride && stride < slot->seq_len ? slot->seq_len - stride : 0;
    }
    if (slot->uncounted)
        status = uncounted_fill(source ? gather_uncounted(loader->fill.gathers[place->source]) : NULL,
                                loader->fill.extents, extents, form_masked_targets(&loader->needs, slot->seq_len),
                                slot->uncounted + i * slot->shape.row_bits, error);
    if (status || !slot->marks)
        return status;
    struct mark *marks = slot->marks + i * slot->shape.row_marks;
    const struct boundaries_row row = {
        .dataset = source ? source->dataset : NULL,
        .dataset_tokens = source ? source->tokens : 0,
        .extents = loader->fill.extents,
        .count = extents,
        .segments = source && source->plan,
    };
    status = boundaries_mark_extents(&row, form_marked_tokens(&loader->needs, slot->seq_len), marks, error);
    if (!status && !loader->on_host)
        boundaries_sum(marks, slot->shape.row_marks);
    return status;
}

/* Returns where the outputs of row i are written, and how, from tokens of `width` bytes. */
static struct gather_outputs outputs_of(const struct tokmap_loader *loader, const struct slot *slot, uint64_t i,
                                        uint32_t width)
{
    const struct tokmap_out *out = loader->fill.out;
    const bool wide = width == 4, i64 = out->type == TOKMAP_ID_I64, targets = loader->options.fields & TOKMAP_TARGETS;
    const uint64_t at = i * slot->seq_len * (i64 ? 8 : 4);
    return (struct gather_outputs){
        .pair = loader->kernels->pair[wide][i64],
        .one = loader->kernels->one[wide][i64],
        .seq_len = slot->seq_len,
        .after = loader->fill.after,
        .inputs = (uint8_t *)out->inputs + at,
        .targets = targets ? (uint8_t *)out->targets + at : NULL,
    };
}

/* Fills row i, whose extents are in loader->fill.extents. With loader->fill.out its outputs are written in its place:
 * straight from the mapping where that is possible, else from the slot, while the row is in the processor's cache. */
static enum tokmap_status fill_tokens(struct tokmap_loader *loader, struct slot *slot, uint64_t i, uint64_t source,
                                      uint64_t extents, bool *cold, struct tokmap_error *error)
{
    void *row = (void *)(uintptr_t)slot->rows[i];
    enum tokmap_status status = TOKMAP_OK;
    struct gather_outputs outputs;
    bool done = false;
    if (source == TOKMAP_NO_SOURCE) {
        assert(!loader->fill.out); /* see form_is_direct() */
        gather_padding(loader->pad_id, loader->needs.width, slot->row_tokens, row);
        return TOKMAP_OK;
    }
    struct gather *gather = loader->fill.gathers[source];
    if (loader->fill.out) {
        outputs = outputs_of(loader, slot, i, loader->source[source].width);
        status = gather_direct(gather, loader->fill.extents, extents, &outputs, &done, error);
    }
    if (!status && !done)
        status = gather_row(gather, loader->fill.extents, extents, slot->row_tokens, row, cold, error);
    if (status || done || !loader->fill.out)
        return status;
    outputs = outputs_of(loader, slot, i, loader->needs.width);
    if (outputs.targets)
        outputs.pair(row, outputs.seq_len, outputs.after, outputs.inputs, outputs.targets);
    else
        outputs.one(row, outputs.seq_len, outputs.inputs);
    return TOKMAP_OK;
}

enum tokmap_status producer_fill_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                     const struct tokmap_place *place, bool *cold, struct tokmap_error *error)
{
    uint64_t extents = 0;
    enum tokmap_status status = TOKMAP_OK;
    assert(i < slot->shape.rows && (place->source < loader->sources || place->source == TOKMAP_NO_SOURCE));
    if (place->source != TOKMAP_NO_SOURCE)
        status =
            run_row_extents(loader->run, place, loader->fill.extents, loader->fill.queue.extents_most, &extents, error);
    if (!status)
        status = fill_tokens(loader, slot, i, place->source, extents, cold, error);
    if (*cold)
        __atomic_store_n(&loader->fill.cold_reads, loader->fill.cold_reads + 1, __ATOMIC_RELAXED);
    if (status)
        return status;
    struct tokmap_place *placed = &slot->places[i];
    *placed = *place;
    if (extents && !place->tokens) { /* the plan could not be read when this row was looked up, but now it could */
        placed->first_token = loader->fill.extents[0].first_token;
        for (uint64_t k = 0; k < extents; k++)
            placed->tokens += loader->fill.extents[k].tokens;
    }
    status = describe_row(loader, slot, i, placed, extents, error);
    if (!status && loader->exclusions)
        excluded_take_out(loader, slot, i, extents);
    return status;
}

enum tokmap_status producer_arrange(struct tokmap_loader *loader, struct slot *slot, uint64_t rows, uint64_t seq_len,
                                    struct tokmap_error *error)
{
    struct form *form = &loader->fill.form;
    if (form->seq_len != seq_len || form->shape.rows != rows) {
        struct form wanted;
        if (!form_make(&wanted, &loader->needs, rows, seq_len) || rows > slot->rows_most ||
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
    slot->row_tokens = form->row_tokens;
    return TOKMAP_OK;
}

enum tokmap_status producer_fill_cu(const struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct boundaries_cu cu;
    if (!slot->cu)
        return TOKMAP_OK;
    assert(slot->marks && slot->shape.cu_elements);
    boundaries_cu_begin(&cu, slot->cu, slot->shape.cu_elements);
    for (uint64_t i = 0; i < slot->count; i++)
        if (!boundaries_cu_row(&cu, slot->marks + i * slot->shape.row_marks, slot->seq_len))
            return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                             "row %" PRIu64 " of step %" PRIu64 " contains more documents than any row could when the "
                             "loader was opened: an index was changed while it was open; restore it, then continue "
                             "from the last cursor",
                             slot->places[i].row, slot->places[i].step);
    boundaries_cu_end(&cu);
    slot->documents = cu.documents;
    slot->max_seqlen = cu.longest;
    return TOKMAP_OK;
}

/* Bytes of a filled slot that must reach the device: up to the last byte that some field is made of. */
static uint64_t used_bytes(const struct tokmap_loader *loader, const struct slot *slot)
{
    const struct ring_shape *shape = &slot->shape;
    const struct ring_layout *layout = &slot->layout;
    if (!loader->options.fields)
        return 0;
    if (slot->cu)
        return layout->cu_at + shape->cu_elements * sizeof(int32_t);
    if (!slot->count)
        return 0;
    if (slot->sources)
        return layout->sources_at + slot->count * sizeof *slot->sources;
    if (slot->bounds)
        return layout->bounds_at + slot->count * sizeof(struct row_bounds);
    if (slot->uncounted)
        return layout->bits_at + slot->count * shape->row_bits * sizeof(uint64_t);
    if (slot->marks)
        return layout->marks_at + slot->count * shape->row_marks * sizeof(struct mark);
    return (slot->count - 1) * layout->row_stride + slot->row_tokens * loader->needs.width;
}

static uint64_t trace_of(const struct tokmap_loader *loader, const struct slot *slot)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < slot->count; i++)
        sum += trace_hash(slot->rows[i], slot->row_tokens * loader->needs.width, slot->places[i].row);
    return sum;
}

static enum tokmap_status fill_rows(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    residency_begin(loader->fill.residency, slot->count);
    slot->valid = 0;
    for (uint64_t i = 0; i < slot->count; i++) {
        bool cold = false;
        const void **after = loader->fill.out ? &loader->fill.after : NULL;
        loader->fill.after = NULL;
        const struct tokmap_place *place = row_queue_next(&loader->fill.queue, i, slot->count, after, error);
        if (!place)
            return loader->fill.queue.fault;
        enum tokmap_status status = producer_fill_row(loader, slot, i, place, &cold, error);
        if (cold)
            residency_was_cold(loader->fill.residency, loader->fill.queue.taken + i + 1);
        if (status)
            return status; /* nobody reads the rows of a slot that failed */
        slot->valid += place->source != TOKMAP_NO_SOURCE;
    }
    if (slot->count)
        slot->first_row = slot->places[0].row;
    return producer_fill_cu(loader, slot, error);
}

static enum tokmap_status fill(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct call call;
    if (!schedule_call(&loader->fill.schedule, &call))
        return error_set(error, TOKMAP_END, NULL, TOKMAP_NO_OFFSET, "the run has ended");
    enum tokmap_status status = loader->backend->calls->await(loader->backend, slot->number, error);
    if (!status)
        status = producer_arrange(loader, slot, loader->fill.schedule.slice.most, call.seq_len, error);
    if (status)
        return status;
    slot->step = call.step;
    slot->first_row = call.first; /* of no row, if there is none */
    slot->count = call.count;
    slot->last_in_step = call.last_in_step;
    slot->direct = loader->fill.out != NULL;
    slot->excluded = slot->excluded_rows = 0;
    status = fill_rows(loader, slot, error);
    if (status)
        return status;
    struct tokmap_cursor cursor = loader->fill.cursor;
    if (call.last_in_step)
        run_cursor(loader->run, call.step + 1, &cursor);
    slot->cursor = cursor;
    slot->trace = loader->trace ? trace_of(loader, slot) : 0;
    status = loader->backend->calls->copy(loader->backend, slot->number, used_bytes(loader, slot), error);
    if (status)
        return status;
    loader->fill.before_last.schedule = loader->fill.schedule;
    loader->fill.before_last.cursor = loader->fill.cursor;
    loader->fill.before_last.count = call.count;
    loader->fill.cursor = cursor;
    schedule_advance(&loader->fill.schedule);
    row_queue_take(&loader->fill.queue, call.count);
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
    loader->fill.schedule = loader->fill.before_last.schedule;
    loader->fill.cursor = loader->fill.before_last.cursor;
    row_queue_untake(&loader->fill.queue, loader->fill.before_last.count);
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
