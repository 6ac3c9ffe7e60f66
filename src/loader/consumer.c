/* SPDX-License-Identifier: MIT */
/*
 * consumer.c - see consumer.h.
 *
 * next() takes the next filled slot of the ring, has the backend write the outputs from it, and keeps it until the
 * following call, because the caller reads the rows in it. Without a producer thread, next() first fills the slot
 * itself.
 */
#include "consumer.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "counted.h"
#include "fetch_plan.h"
#include "platform/os.h"
#include "producer.h"
#include "row_values.h"
#include "run/run.h"
#include "tokmap/cuda.h"

/* ---- whether the producer helps ---- */

/*
 * A consumer that does nothing between two calls of next() may wait for each batch: then a producer only adds its
 * hand-over, in which the lines of a slot pass from one processor to another, and a second copy. Such a consumer fills
 * its batches itself, straight from the mapping (gather_direct()), while the producer is paused. As soon as it has
 * other work between two calls, or a row comes from storage, the producer continues, and is ahead again.
 *
 * Example: with threads = 1, a benchmark calls next() in a loop. When PACE_CALLS more calls had to wait, and came
 * within PACE_NS, than others did, the producer is paused; what it has filled is delivered, and then each call fills a
 * batch. When the program saves a checkpoint, the next call comes late: it still fills its batch. If the call after it
 * is late, too, it begins a turn of the producer before it returns. In a training loop, where each step takes longer
 * than PACE_NS, the producer is never paused, nor is it where it is faster than the consumer, which then does not wait.
 * Each return doubles the calls that it takes until the producer is paused again, so a machine whose other programs
 * interrupt the consumer now and then does not pay for many turns.
 *
 * PACE_NS was measured on two processors of an Emerald Rapids: 8 rows of 2,048 tokens as int32, us a batch without the
 * pause (medians of 3 to 5 runs). Machines that train are busy, so the second pair of lines decides: a producer that
 * has no processor of its own costs the consumer of the first three columns half of its rate.
 *
 *     pause between two calls, us               0     1     2     4     6     8    12
 *     no producer                            10.4   9.8   9.9   9.9  10.1   9.9  10.4
 *     a producer always                       8.6   8.2   8.0   6.1   6.2   6.0   6.1
 *     no producer, another program runs       7.9   9.8  10.5   8.9   9.4   9.2   9.4
 *     a producer always, so does another     13.2  15.0  17.4  11.4   8.4   8.0   7.8
 *
 * As int64, the consumer takes longer for a batch than the producer, and does not wait: 9.9 us with a producer, and
 * 12.6 without.
 */
#define PACE_NS UINT64_C(6000)
#define PACE_CALLS 64U
#define PACE_RETURNS_MOST 12

static uint64_t cold_reads(const struct tokmap_loader *loader)
{
    return __atomic_load_n(&loader->fill->cold_reads, __ATOMIC_RELAXED);
}

/* Returns whether the loader has a producer without which it could do. Where threads read, storage is slow. */
static bool has_choice(const struct tokmap_loader *loader)
{
    return loader->thread.producer && !loader->fill->pool;
}

/* Begins a call of next() whose outputs can be written directly. It may pause the producer, if there is one. */
static void pace_begin(struct tokmap_loader *loader)
{
    struct pace *pace = &loader->next.pace;
    if (!has_choice(loader))
        return;
    const uint64_t away = os_clock_ns() - pace->returned_ns, cold = cold_reads(loader);
    const bool late = away >= PACE_NS + loader->next.waited_ns || cold != pace->cold_reads;
    pace->cold_reads = cold;
    pace->wanted = late && pace->late; /* one call alone is late if another program interrupts the consumer */
    pace->late = late;
    if (pace->alone || pace->waits < PACE_CALLS << pace->returns)
        return;
    producer_pause(loader);
    ring_continue(loader->ring);
    pace->alone = true;
    pace->waits = 0;
}

/* Ends it. The producer may begin another turn. waited: the ns that the call has waited for a filled slot. */
static void pace_end(struct tokmap_loader *loader, uint64_t waited)
{
    struct pace *pace = &loader->next.pace;
    if (!has_choice(loader))
        return;
    if (!pace->alone && waited && !pace->late)
        pace->waits++;
    else if (pace->waits)
        pace->waits--;
    if (pace->alone && (pace->wanted || cold_reads(loader) != pace->cold_reads)) {
        pace->returns = (uint32_t)min64(pace->returns + 1, PACE_RETURNS_MOST);
        producer_resume(loader);
    }
    pace->returned_ns = os_clock_ns();
}

/* ---- statistics ---- */

#define ALARM_CALLS 100
#define ALARM_PERCENT 10

/* Adds to a counter. There is one writer, so a plain sum is enough. It is stored atomically, so that a reader sees the
 * old or the new number. */
static void counter_add(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

static void raise_to(uint64_t *counter, uint64_t value)
{
    if (value > *counter)
        __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

/* Counts a call of next() that waited `ns` for its slot; 0: the slot was filled. */
static void count_wait(struct tokmap_stats *stats, uint64_t ns)
{
    unsigned bucket = ns ? 64 - (unsigned)__builtin_clzll(ns) : 0;
    counter_add(&stats->wait_histogram[bucket < TOKMAP_WAIT_BUCKETS ? bucket : TOKMAP_WAIT_BUCKETS - 1], 1);
    if (!ns)
        return;
    counter_add(&stats->waits, 1);
    counter_add(&stats->wait_ns, ns);
    raise_to(&stats->wait_ns_largest, ns);
}

/* Counts how many slots were filled when next() was called. Only after the ring was full for the first time. */
static void count_ready(struct tokmap_stats *stats, uint32_t ready)
{
    if (ready < stats->ring_ready_lowest)
        __atomic_store_n(&stats->ring_ready_lowest, ready, __ATOMIC_RELAXED);
}

/* Counts a batch that was delivered. */
static void count_batch(struct statistics *statistics, const struct slot *slot, const struct tokmap_batch *batch)
{
    struct tokmap_stats *all = &statistics->all;
    counter_add(&all->batches, 1);
    counter_add(&all->rows, batch->count);
    counter_add(&all->tokens, batch->tokens);
    if (batch->real_rows < batch->count)
        counter_add(&all->padding, batch->count - batch->real_rows);
    if (slot->excluded || slot->excluded_rows) {
        counter_add(&all->excluded, slot->excluded);
        counter_add(&all->excluded_rows, slot->excluded_rows);
    }
    __atomic_store_n(&statistics->step, batch->cursor.step, __ATOMIC_RELAXED);
    const uint64_t slices = batch->seq_len / batch->columns;
    for (uint64_t i = 0, next; i < batch->real_rows; i = next) { /* rows of one source and epoch at once */
        const struct tokmap_place *first = &batch->places[i];
        struct tokmap_source_stats *source = &statistics->sources[first->source];
        uint64_t tokens = 0;
        for (next = i; next < batch->real_rows; next++) {
            const struct tokmap_place *place = &batch->places[next];
            if (place->source != first->source || place->epoch != first->epoch)
                break;
            tokens +=
                slices == 1 ? min64(place->tokens, batch->seq_len) : min64(place->tokens, batch->seq_len) / slices;
        }
        counter_add(&source->rows, next - i);
        counter_add(&source->tokens, tokens);
        raise_to(&source->epoch, first->epoch);
        raise_to(&all->epoch, first->epoch);
    }
}

/* Counts a call that delivered a batch of `step`, and that waited `ns` for its slot (0: it was filled). Returns true,
 * and fills *stall, if the alarm is raised. */
static bool count_stall(struct tokmap_loader *loader, uint64_t step, uint64_t ns, struct tokmap_stall *stall)
{
    const struct tokmap_loader_options *options = &loader->options;
    struct stalls *stalls = &loader->stalls;
    const uint64_t calls = options->alarm_calls ? options->alarm_calls : ALARM_CALLS;
    const uint64_t percent = options->alarm_percent ? options->alarm_percent : ALARM_PERCENT;
    if (!stalls->opened) {
        stalls->opened = true;
        return false;
    }
    stalls->calls++;
    stalls->stalled += ns != 0;
    stalls->wait_ns += ns;
    if (stalls->calls < calls)
        return false;
    const bool before = stalls->above;
    stalls->above = stalls->stalled * 100 >= percent * calls;
    *stall = (struct tokmap_stall){sizeof *stall, step, calls, stalls->stalled, stalls->wait_ns};
    stalls->calls = stalls->stalled = stalls->wait_ns = 0;
    if (!stalls->above || before)
        return false;
    counter_add(&loader->statistics.all.alarms, 1);
    return true;
}

/* ---- arguments ---- */

static enum tokmap_status check_out(const struct tokmap_loader *loader, const struct tokmap_out *out,
                                    struct tokmap_error *error)
{
    const struct {
        uint32_t field;
        const char *name;
        const void *given;
    } outputs[] = {
        {TOKMAP_INPUTS, "inputs", out->inputs},
        {TOKMAP_TARGETS, "targets", out->targets},
        {TOKMAP_POSITION_IDS, "position_ids", out->position_ids},
        {TOKMAP_ROWS, "rows", out->rows},
        {TOKMAP_DOCUMENT_IDS, "document_ids", out->document_ids},
        {TOKMAP_LOSS_MASK, "loss_mask", out->loss_mask},
        {TOKMAP_CU_SEQLENS, "cu_seqlens", out->cu_seqlens},
        {TOKMAP_TARGETS_AHEAD, "targets_ahead", out->targets_ahead},
        {TOKMAP_LABELS, "labels", out->labels},
        {TOKMAP_SOURCE_IDS, "source_ids", out->source_ids},
        {TOKMAP_CU_SEQLENS_SLICE, "cu_seqlens_slice", out->cu_seqlens_slice},
    };
    const char *missing = NULL;
    for (size_t i = 0; !missing && i < sizeof outputs / sizeof outputs[0]; i++)
        if ((loader->options.fields & outputs[i].field) && !outputs[i].given)
            missing = outputs[i].name;
    if (missing)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, missing,
                               " is NULL, but the loader was opened with that field; set it to memory for %" PRIu64
                               " rows",
                               loader->rows_most);
    if (out->type != TOKMAP_ID_I32 && out->type != TOKMAP_ID_I64)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "type", " is %d; set it to int32 or int64",
                               (int)out->type);
    if (out->type == TOKMAP_ID_I32 && loader->vocabulary > (uint64_t)INT32_MAX + 1)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "type",
                               " is int32, which a vocabulary of %" PRIu64 " ids does not fit; set it to int64",
                               loader->vocabulary);
    return TOKMAP_OK;
}

/* The end of struct tokmap_batch in the first version of the interface. No caller's struct is smaller. */
#define BATCH_SIZE_FIRST (offsetof(struct tokmap_batch, cursor) + sizeof(struct tokmap_cursor))

/* Writes a batch to the caller's struct, up to the caller's size, and leaves that size unchanged. prepare() has checked
 * it. */
static void batch_write(struct tokmap_batch *into, const struct tokmap_batch *from)
{
    memcpy((char *)into + sizeof into->size, (const char *)from + sizeof from->size, into->size - sizeof into->size);
}

/* Checks the arguments that next() and read() share, clears *batch, and copies *out, if it is given, to *where. */
static enum tokmap_status prepare(struct tokmap_loader *loader, const struct tokmap_out *out, struct tokmap_out *where,
                                  struct tokmap_batch *batch, struct tokmap_error *error)
{
    static const struct tokmap_out no_out = TOKMAP_OUT_INIT;
    static const struct tokmap_batch nothing = TOKMAP_BATCH_INIT;
    if (!loader || !batch)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL; pass one",
                         loader ? "batch" : "loader");
    if (batch->size < BATCH_SIZE_FIRST || batch->size > sizeof *batch)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "batch.size is %zu, but struct tokmap_batch of this library has %zu bytes; initialize the "
                         "batch with its macro",
                         batch->size, sizeof *batch);
    batch_write(batch, &nothing);
    enum tokmap_status status = struct_copy_in(where, out, &no_out, sizeof *where, "tokmap_out", error);
    if (!status && out)
        status = check_out(loader, where, error);
    return status || !out ? status : row_values_check_out(loader, where, error);
}

/* ---- slots ---- */

void consumer_describe_work(const struct tokmap_loader *loader, const struct form *form, uint64_t count,
                            const struct tokmap_out *out, struct expand_arguments *work)
{
    const uint32_t fields = loader->options.fields;
    const struct ring_shape *shape = &form->shape;
    const struct ring_layout *layout = &form->layout;
    *work = (struct expand_arguments){
        .inputs = fields & TOKMAP_INPUTS ? (uintptr_t)out->inputs : 0,
        .targets = fields & TOKMAP_TARGETS ? (uintptr_t)out->targets : 0,
        .position_ids = fields & TOKMAP_POSITION_IDS ? (uintptr_t)out->position_ids : 0,
        .document_ids = fields & TOKMAP_DOCUMENT_IDS ? (uintptr_t)out->document_ids : 0,
        .loss_mask = fields & TOKMAP_LOSS_MASK ? (uintptr_t)out->loss_mask : 0,
        .rows = fields & TOKMAP_ROWS ? (uintptr_t)out->rows : 0,
        .cu_seqlens = fields & TOKMAP_CU_SEQLENS ? (uintptr_t)out->cu_seqlens : 0,
        .targets_ahead = fields & TOKMAP_TARGETS_AHEAD ? (uintptr_t)out->targets_ahead : 0,
        .labels = fields & TOKMAP_LABELS ? (uintptr_t)out->labels : 0,
        .source_ids = fields & TOKMAP_SOURCE_IDS ? (uintptr_t)out->source_ids : 0,
        .cu_seqlens_slice = fields & TOKMAP_CU_SEQLENS_SLICE ? (uintptr_t)out->cu_seqlens_slice : 0,
        .row_stride = layout->row_stride,
        .marks_at = layout->marks_at,
        .bits_at = layout->bits_at,
        .bounds_at = layout->bounds_at,
        .sources_at = layout->sources_at,
        .sources = count,
        .cu_at = layout->cu_at,
        .cu_slice_at = layout->cu_at + form_cu_slice_at(&loader->needs) * sizeof(int32_t),
        .cu_elements = loader->needs.cu_elements,
        .row_marks = shape->row_marks,
        .row_bits = shape->row_bits,
        .count = count * loader->needs.chunks,
        .seq_len = form->columns,
        .row_tokens = form->row_tokens,
        .chunks_at = layout->chunks_at,
        .row_chunks = shape->row_chunks,
        .width = loader->needs.width,
        .element = out->type == TOKMAP_ID_I64 ? 8 : 4,
        .mask_targets = loader->options.mask_targets,
        .bounds = shape->bounds,
        .first_labels = form_first_labels(&loader->needs),
    };
}

static enum tokmap_status expand(struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_out *out,
                                 void *stream, struct tokmap_error *error)
{
    struct expand_arguments work;
    struct backend_copy copies[BACKEND_COPIES_MOST];
    const uint32_t copied = slot->values_written ? 0 : row_values_copies(loader, slot, out, copies);
    const struct form form = {slot->seq_len, slot->columns, slot->row_tokens, slot->shape, slot->layout};
    consumer_describe_work(loader, &form, slot->count, out, &work);
    if (slot->direct) /* these are written */
        work.inputs = work.targets = 0;
    return loader->backend->calls->expand(loader->backend, slot->number, &work, copies, copied, stream, error);
}

/* Returns whether a batch has its outputs alone, and no rows. */
static bool has_outputs_alone(const struct tokmap_loader *loader, const struct tokmap_out *out)
{
    return out && loader->on_host && form_is_direct(&loader->needs);
}

/* Returns the outputs that the caller's thread writes while it fills rows; NULL: the rows are stored first. A trace
 * hashes the rows, so it needs them. */
static const struct tokmap_out *direct_out(const struct tokmap_loader *loader, const struct tokmap_out *out)
{
    return has_outputs_alone(loader, out) && !loader->trace ? out : NULL;
}

/* Returns the outputs in which the caller's thread writes values while it fills rows; NULL: there are none, or they are
 * copied from the slot. */
static const struct tokmap_out *values_out(const struct tokmap_loader *loader, const struct tokmap_out *out)
{
    return loader->on_host && loader->fill->values.count ? out : NULL;
}

/* Returns whether the outputs of a filled slot are complete already. */
static bool is_written(const struct tokmap_loader *loader, const struct slot *slot)
{
    return slot->direct && !slot->sources && (slot->values_written || !loader->fill->values.count);
}

static void release_held(struct tokmap_loader *loader)
{
    if (loader->next.held)
        ring_release(loader->ring);
    loader->next.held = NULL;
}

/* Takes the next slot, and fills it first if there is no producer thread: with outputs, unless `out` is NULL. *waited
 * receives the ns that the caller has waited for it, tokmap_loader_wait() included. */
static struct slot *take(struct tokmap_loader *loader, const struct tokmap_out *out, uint64_t *waited)
{
    *waited = 0;
    assert(!loader->next.again || loader->next.held);
    if (loader->next.again)
        return loader->next.held;
    release_held(loader);
    if (!loader->thread.producer || (loader->next.pace.alone && !ring_ready(loader->ring))) {
        loader->fill->out = direct_out(loader, out);
        loader->fill->values.out = values_out(loader, out);
        (void)producer_fill(loader, ring_vacant(loader->ring));
        loader->fill->out = loader->fill->values.out = NULL;
    } else if (!__atomic_load_n(&loader->first.done, __ATOMIC_RELAXED) && producer_claim_first(loader)) {
        producer_fill_first(loader);
    } else if (ring_was_full(loader->ring)) {
        count_ready(&loader->statistics.all, ring_ready(loader->ring));
    }
    loader_event(loader, "tokmap wait", true);
    loader->next.held = ring_filled(loader->ring, waited);
    loader_event(loader, "tokmap wait", false);
    *waited += loader->next.waited_ns;
    count_wait(&loader->statistics.all, *waited);
    loader->next.waited_ns = 0;
    return loader->next.held;
}

static void describe(const struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_out *out,
                     struct tokmap_batch *batch)
{
    const bool cut = context_cuts(&loader->fill->context);
    const uint64_t columns = slot->columns * loader->needs.chunks;
    *batch = (struct tokmap_batch){
        .step = slot->step,
        .first_row = slot->first_row,
        .count = slot->count,
        .tokens = slot->count * columns,
        .last_in_step = slot->last_in_step,
        .width = loader->needs.width,
        .row_tokens = slot->seq_len + loader->needs.lookahead,
        .rows = cut || has_outputs_alone(loader, out) ? NULL : slot->rows,
        .places = slot->places,
        .cursor = slot->cursor,
        .documents = slot->cu ? slot->documents : 0,
        .max_seqlen = slot->cu ? slot->max_seqlen : 0,
        .seq_len = slot->seq_len,
        .real_rows = slot->valid,
        .columns = columns,
        .max_seqlen_slice = loader->options.fields & TOKMAP_CU_SEQLENS_SLICE ? slot->max_seqlen_slice : 0,
        .counted = slot->counted,
        .counted_in_step = slot->counted_in_step,
    };
}

/* ---- the next batch ---- */

static enum tokmap_status report_fault(struct tokmap_loader *loader, enum tokmap_status status,
                                       struct tokmap_error *error)
{
    loader->next.ended = status == TOKMAP_END;
    if (error)
        *error = *ring_error(loader->ring);
    return status;
}

enum tokmap_status consumer_check_fork(const struct tokmap_loader *loader, struct tokmap_error *error)
{
    if (!loader_is_forked(loader))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     loader->on_host
                         ? "this process was forked, and the loader's threads or its trace are in the parent process; "
                           "open another loader here, from a cursor, or set threads, io_threads, and "
                           "deadline_ns to 0, without a trace"
                         : "this process was forked, and the loader's use of the GPU belongs to the parent process; "
                           "open another loader, from a cursor, in a process that was not forked");
}

/* Does what is left when a batch has reached the caller of next(). */
static void delivered(struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_batch *batch,
                      uint64_t waited)
{
    struct tokmap_stall stall;
    loader->next.position = slot->cursor;
    schedule_advance(&loader->next.taken);
    count_batch(&loader->statistics, slot, batch);
    if (loader->trace) {
        trace_add(loader->trace, slot->step, slot->trace, slot->last_in_step);
        if (!loader->thread.producer)
            trace_drain(loader->trace);
    }
    if (loader->options.alarm && loader->thread.producer && count_stall(loader, slot->step, waited, &stall))
        loader->options.alarm(loader->options.alarm_user, &stall);
}

static enum tokmap_status next(struct tokmap_loader *loader, const struct tokmap_out *out, struct tokmap_out *where,
                               void *stream, struct tokmap_batch *batch, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    struct tokmap_batch made;
    uint64_t waited;
    if (loader->trace && (loader->next.ended || !trace_is_ready(loader->trace)) &&
        (status = (loader->next.ended ? trace_end : trace_flush)(loader->trace, error)))
        return status;
    if (loader->next.ended)
        return report_fault(loader, TOKMAP_END, error);
    const bool direct = direct_out(loader, out) != NULL;
    if (direct)
        pace_begin(loader);
    const struct slot *slot = take(loader, out ? where : NULL, &waited);
    if (slot->status == TOKMAP_END && loader->trace) {
        loader->next.ended = true;
        if ((status = trace_end(loader->trace, error)))
            return status;
    }
    if (slot->status)
        return report_fault(loader, slot->status, error);
    if (out && !is_written(loader, slot))
        status = expand(loader, slot, where, stream, error);
    loader->next.again = status != TOKMAP_OK;
    if (status)
        return status;
    describe(loader, slot, out, &made);
    batch_write(batch, &made);
    delivered(loader, slot, &made, waited);
    if (direct)
        pace_end(loader, waited);
    return TOKMAP_OK;
}

enum tokmap_status tokmap_loader_next(struct tokmap_loader *loader, const struct tokmap_out *out, void *stream,
                                      struct tokmap_batch *batch, struct tokmap_error *error)
{
    struct tokmap_out where;
    enum tokmap_status status = prepare(loader, out, &where, batch, error);
    if (status)
        return status;
    if (stream && loader->on_host)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "stream is not NULL, but this loader delivers on the host; pass NULL");
    status = consumer_check_fork(loader, error);
    if (status)
        return status;
    loader_event(loader, "tokmap next", true);
    status = next(loader, out, &where, stream, batch, error);
    loader_event(loader, "tokmap next", false);
    return status;
}

int tokmap_loader_wait(struct tokmap_loader *loader, uint64_t timeout_ns)
{
    uint64_t waited;
    if (!loader || !loader->thread.producer || loader_is_forked(loader) || loader->next.ended || loader->next.again ||
        loader->next.pace.alone)
        return 1;
    release_held(loader);
    bool ready = ring_wait(loader->ring, timeout_ns, &waited);
    /* The ring was empty when the caller came. take() will not see that any more. */
    if (waited && ring_was_full(loader->ring))
        count_ready(&loader->statistics.all, 0);
    loader->next.waited_ns += waited;
    return ready;
}

void consumer_restart(struct tokmap_loader *loader)
{
    loader->next.held = NULL;
    loader->next.again = loader->next.ended = false;
    loader->fill->schedule = loader->next.taken = loader->start.schedule;
    loader->fill->cursor = loader->next.position = loader->start.cursor;
    row_queue_restart(&loader->fill->queue);
    fetch_plan_restart(loader->fill->fetches);
    residency_restart(loader->fill->residency);
    row_values_restart(&loader->fill->values);
    loader->fill->counted.known = false;
    if (loader->fill->pool)
        read_pool_forget(loader->fill->pool);
    ring_restart(loader->ring);
    loader->stalls = (struct stalls){.above = loader->stalls.above}; /* the next call is passed */
    __atomic_store_n(&loader->statistics.step, loader->next.position.step, __ATOMIC_RELAXED);
}

/* Moves the loader. What next() has enqueued on streams stays valid: the outputs are the caller's memory, and the
 * backend's events keep a slot from being filled or copied again too early. So nothing here waits for a device. */
enum tokmap_status tokmap_loader_rewind(struct tokmap_loader *loader, struct tokmap_error *error)
{
    if (!loader)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "loader is NULL; pass one");
    enum tokmap_status status = consumer_check_fork(loader, error);
    if (status)
        return status;
    if (loader->trace) {
        const struct trace_header header = loader_trace_header(loader, &loader->start.cursor);
        if ((status = trace_begin(loader->trace, &header, error)))
            return status;
    }
    if (loader->thread.producer)
        producer_pause(loader);
    consumer_restart(loader);
    if (loader->thread.producer)
        producer_resume(loader);
    return TOKMAP_OK;
}

enum tokmap_status tokmap_loader_flush(struct tokmap_loader *loader, struct tokmap_error *error)
{
    if (!loader)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "loader is NULL; pass one");
    enum tokmap_status status = consumer_check_fork(loader, error);
    return status || !loader->trace ? status : trace_flush(loader->trace, error);
}

/* ---- rows by name ---- */

/* Fills the rows whose places the slot already has. The storage cannot be asked for rows before they are named. Once
 * one of them was not in the page cache, the storage is asked for all rows that follow it, at once. */
static enum tokmap_status fill_named(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    const uint64_t next = loader->fill->queue.taken;
    bool asked = false;
    residency_begin(loader->fill->residency, slot->count);
    row_values_begin(&loader->fill->values, slot->count);
    producer_begin_rows(loader, slot);
    for (uint64_t i = 0; i < slot->count; i++) {
        const struct tokmap_place place = slot->places[i];
        struct row_extents row = row_queue_extents(&loader->fill->queue, &place);
        bool cold = false;
        residency_named(loader->fill->residency, &row, next);
        loader->fill->after = NULL;
        row_queue_after_named(&loader->fill->queue, slot->places, i, slot->count,
                              loader->fill->out ? &loader->fill->after : NULL);
        enum tokmap_status status = producer_fill_row(loader, slot, i, &place, &cold, error);
        residency_named_was(loader->fill->residency, &row, cold, next);
        if (!status && loader->fill->values.count)
            status = row_values_fill(loader, slot, i, true, error);
        if (status)
            return status;
        if (!cold || asked)
            continue;
        asked = true;
        for (uint64_t k = i + 1; k < slot->count; k++) {
            const struct row_extents later = row_queue_extents(&loader->fill->queue, &slot->places[k]);
            residency_ask(loader->fill->residency, &later);
        }
        residency_flush(loader->fill->residency);
    }
    producer_end_rows(loader, slot);
    return slot->count ? counted_fill(loader, slot, error) : TOKMAP_OK;
}

/* Finds the places of named rows, and arranges the slot for them. */
static enum tokmap_status find_named(struct tokmap_loader *loader, struct slot *slot, const uint64_t *steps,
                                     const uint64_t *rows, uint64_t count, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    struct run_step first = {.seq_len = loader->fill->schedule.slice.seq_len}, phase;
    slot->valid = 0;
    for (uint64_t i = 0; i < count && !status; i++) {
        status = run_walk_locate(&loader->next.named, steps[i], rows[i], &slot->places[i], error);
        if (status)
            return status;
        run_phase_of(loader->run, steps[i], i ? &phase : &first);
        if (i && phase.seq_len != first.seq_len)
            return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                             "steps[0] has rows of %" PRIu64 " tokens and steps[%" PRIu64 "] has rows of %" PRIu64
                             ", but the rows of one batch have the same length; read them in two calls",
                             first.seq_len, i, phase.seq_len);
        slot->valid += slot->places[i].source != TOKMAP_NO_SOURCE;
    }
    return producer_arrange(loader, slot, count, first.seq_len, error);
}

static enum tokmap_status check_read(const struct tokmap_loader *loader, const uint64_t *steps, const uint64_t *rows,
                                     uint64_t count, struct tokmap_error *error)
{
    if (count && (!steps || !rows))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "%s is NULL; pass one number for each row", steps ? "rows" : "steps");
    if (loader->thread.producer)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "this loader has a producer thread; to read rows by name, open one with threads 0");
    if (!loader->on_host)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "this loader delivers to a GPU; to read rows by name, open one that delivers on the host");
    if (count > loader->rows_most)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " rows are more than the %" PRIu64 " that this loader has room for; read fewer at "
                         "once",
                         count, loader->rows_most);
    return TOKMAP_OK;
}

enum tokmap_status tokmap_loader_read(struct tokmap_loader *loader, const uint64_t *steps, const uint64_t *rows,
                                      uint64_t count, const struct tokmap_out *out, struct tokmap_batch *batch,
                                      struct tokmap_error *error)
{
    struct tokmap_out where;
    enum tokmap_status status = prepare(loader, out, &where, batch, error);
    if (!status)
        status = check_read(loader, steps, rows, count, error);
    if (!status)
        status = consumer_check_fork(loader, error);
    if (status)
        return status;
    /* The slot is needed for the named rows. If its rows did not reach the caller, next() must fill them again. */
    if (loader->next.again)
        producer_undo(loader);
    loader->next.again = false;
    release_held(loader);
    struct slot *slot = ring_vacant(loader->ring); /* never published, so it stays vacant for the next batch */
    slot->step = count ? steps[0] : 0;
    slot->first_row = count ? rows[0] : 0;
    slot->count = count;
    slot->counted = slot->counted_in_step = 0;
    slot->last_in_step = false;
    slot->cursor = loader->fill->cursor;
    status = find_named(loader, slot, steps, rows, count, error);
    loader->fill->out = out ? direct_out(loader, &where) : NULL;
    slot->direct = loader->fill->out != NULL;
    loader->fill->values.out = out ? values_out(loader, &where) : NULL;
    slot->values_written = loader->fill->values.out != NULL;
    if (!status)
        status = fill_named(loader, slot, error);
    loader->fill->out = loader->fill->values.out = NULL;
    if (!status && out && !is_written(loader, slot))
        status = expand(loader, slot, &where, NULL, error);
    if (status)
        return status;
    struct tokmap_batch made;
    describe(loader, slot, out, &made);
    batch_write(batch, &made);
    return TOKMAP_OK;
}

/* ---- properties ---- */

uint64_t tokmap_loader_rows(const struct tokmap_loader *loader)
{
    return loader ? loader->rows_most : 0;
}

uint64_t tokmap_loader_elements(const struct tokmap_loader *loader)
{
    return loader ? loader->elements_most : 0;
}

uint64_t tokmap_loader_cu_seqlens(const struct tokmap_loader *loader)
{
    return loader ? loader->needs.cu_elements : 0;
}

uint64_t tokmap_loader_calls_per_step(const struct tokmap_loader *loader)
{
    return loader ? loader->next.taken.slice.calls : 0;
}

uint64_t tokmap_loader_nodes(const struct tokmap_loader *loader)
{
    return loader ? loader->options.nodes : 0;
}

enum tokmap_status tokmap_loader_device(const struct tokmap_loader *loader, struct tokmap_loader_device *info)
{
    struct tokmap_loader_device found = {0};
    struct backend_facts facts;
    if (!loader || struct_size_check(info, sizeof found, "tokmap_loader_device", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    loader->backend->calls->facts(loader->backend, &facts);
    found.device = facts.device;
    found.numa_node = facts.numa_node;
    found.kernel = facts.kernel;
    found.coherent = facts.coherent;
    found.pinned_bytes = facts.pinned_bytes;
    found.device_bytes = facts.device_bytes;
    for (size_t i = 0; i + 1 < sizeof found.reason && facts.reason[i]; i++)
        found.reason[i] = facts.reason[i];
    return struct_copy_out(info, &found, sizeof found, "tokmap_loader_device", NULL);
}
