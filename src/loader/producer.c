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
#include "run/run.h"

enum tokmap_status producer_fill_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                     const struct tokmap_place *place, bool *cold, struct tokmap_error *error)
{
    void *row = (void *)(uintptr_t)slot->rows[i];
    assert(i < loader->shape.rows && place->source < loader->sources);
    const struct row_piece piece = row_queue_piece(place);
    enum tokmap_status status =
        gather_row(loader->gathers[place->source], &piece, 1, loader->row_tokens, row, cold, error);
    if (*cold)
        __atomic_store_n(&loader->cold_reads, loader->cold_reads + 1, __ATOMIC_RELAXED);
    if (status)
        return status;
    slot->places[i] = *place;
    if (!slot->marks)
        return TOKMAP_OK;
    struct mark *marks = slot->marks + i * loader->shape.row_marks;
    const struct boundaries_row made = {
        .dataset = run_dataset(loader->run, place->source),
        .dataset_tokens = loader->source_tokens[place->source],
        .pieces = &piece,
        .count = 1,
        .tokens = row,
        .width = loader->width,
    };
    status = boundaries_mark_pieces(&made, loader_marked_tokens(loader), marks, error);
    if (!status && !loader->on_host)
        boundaries_sum(marks, loader->shape.row_marks);
    return status;
}

enum tokmap_status producer_fill_cu(const struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct boundaries_cu cu;
    if (!slot->cu)
        return TOKMAP_OK;
    assert(slot->marks && loader->shape.cu_elements);
    boundaries_cu_begin(&cu, slot->cu, loader->shape.cu_elements);
    for (uint64_t i = 0; i < slot->count; i++)
        if (!boundaries_cu_row(&cu, slot->marks + i * loader->shape.row_marks, loader->seq_len))
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
    if (!loader->options.fields)
        return 0;
    if (slot->cu)
        return loader->layout.cu_at + loader->shape.cu_elements * sizeof(int32_t);
    if (!slot->count)
        return 0;
    if (slot->marks)
        return loader->layout.marks_at + slot->count * loader->shape.row_marks * sizeof(struct mark);
    return (slot->count - 1) * loader->layout.row_stride + loader->row_tokens * loader->width;
}

static enum tokmap_status fill_rows(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    residency_begin(loader->residency, slot->count);
    for (uint64_t i = 0; i < slot->count; i++) {
        bool cold = false;
        const struct tokmap_place *place = row_queue_next(&loader->queue, i, slot->count);
        enum tokmap_status status = producer_fill_row(loader, slot, i, place, &cold, error);
        if (cold)
            residency_was_cold(loader->residency, loader->queue.taken + i + 1);
        if (status)
            return status;
    }
    return producer_fill_cu(loader, slot, error);
}

static enum tokmap_status fill(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct call call;
    if (!schedule_call(&loader->schedule, &call))
        return error_set(error, TOKMAP_END, NULL, TOKMAP_NO_OFFSET, "the run has ended");
    assert(call.count <= loader->shape.rows);
    enum tokmap_status status = loader->backend->calls->await(loader->backend, slot->number, error);
    if (status)
        return status;
    slot->step = call.step;
    slot->first_row = call.first_row;
    slot->count = call.count;
    slot->last_in_step = call.last_in_step;
    status = fill_rows(loader, slot, error);
    if (status)
        return status;
    struct tokmap_cursor cursor = loader->cursor;
    if (call.last_in_step) {
        status = tokmap_run_cursor(loader->run, call.step + 1, &cursor, error);
        if (status)
            return status;
    }
    slot->cursor = cursor;
    status = loader->backend->calls->copy(loader->backend, slot->number, used_bytes(loader, slot), error);
    if (status)
        return status;
    loader->before_last.schedule = loader->schedule;
    loader->before_last.cursor = loader->cursor;
    loader->before_last.count = call.count;
    loader->cursor = cursor;
    schedule_advance(&loader->schedule);
    row_queue_take(&loader->queue, call.count);
    return TOKMAP_OK;
}

enum tokmap_status producer_fill(struct tokmap_loader *loader, struct slot *vacant)
{
    enum tokmap_status status = fill(loader, vacant, ring_error(loader->ring));
    vacant->status = status;
    ring_publish(loader->ring);
    return status;
}

void producer_undo(struct tokmap_loader *loader)
{
    assert(!loader->producer);
    loader->schedule = loader->before_last.schedule;
    loader->cursor = loader->before_last.cursor;
    row_queue_untake(&loader->queue, loader->before_last.count);
}

/* ---- the producer thread ---- */

bool producer_claim_first(struct tokmap_loader *loader)
{
    return !__atomic_exchange_n(&loader->first_claimed, 1, __ATOMIC_ACQ_REL);
}

void producer_fill_first(struct tokmap_loader *loader)
{
    struct slot *vacant = ring_vacant(loader->ring); /* NULL if the loader is being closed */
    loader->first_status = vacant ? producer_fill(loader, vacant) : TOKMAP_END;
    __atomic_store_n(&loader->first_done, 1, __ATOMIC_RELEASE);
    os_word_wake(&loader->first_done);
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
    while (!__atomic_load_n(&loader->first_done, __ATOMIC_ACQUIRE))
        os_word_wait(&loader->first_done, 0);
    enum tokmap_status status = loader->first_status;
    for (struct slot *slot; goes_on(loader, status) && (slot = ring_vacant(loader->ring));)
        status = producer_fill(loader, slot);
}

void producer_run(void *user)
{
    struct tokmap_loader *loader = user;
    loader->backend->calls->begin(loader->backend);
    for (uint32_t turn = 0; !loader->closing; turn++) {
        work(loader);
        __atomic_store_n(&loader->turns_done, turn + 1, __ATOMIC_RELEASE);
        os_word_wake(&loader->turns_done);
        while (__atomic_load_n(&loader->turns_begun, __ATOMIC_ACQUIRE) == turn)
            os_word_wait(&loader->turns_begun, turn);
    }
}

static void begin_turn(struct tokmap_loader *loader)
{
    __atomic_add_fetch(&loader->turns_begun, 1, __ATOMIC_RELEASE);
    os_word_wake(&loader->turns_begun);
}

void producer_pause(struct tokmap_loader *loader)
{
    const uint32_t turn = loader->turns_begun; /* only this thread writes it */
    uint32_t done;
    ring_stop(loader->ring);
    while ((done = __atomic_load_n(&loader->turns_done, __ATOMIC_ACQUIRE)) == turn)
        os_word_wait(&loader->turns_done, done);
}

void producer_resume(struct tokmap_loader *loader)
{
    loader->first_claimed = loader->first_done = 0;
    begin_turn(loader);
}

void producer_end(struct tokmap_loader *loader)
{
    producer_pause(loader);
    loader->closing = true;
    begin_turn(loader);
    os_thread_join(loader->producer);
}
