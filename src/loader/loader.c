/*
 * loader.c - joins the rooms: run -> schedule and prefetch -> gather -> ring -> outputs.
 *
 * fill() makes one batch in one slot. With a producer thread, produce() calls it in a loop and next() takes what is
 * filled; without one, next() calls it just before it takes. Nothing else differs, so both deliver the same.
 *
 * A failure is a slot like any other. The producer then waits until the consumer has given it back, which is at the
 * following call of next(), and tries the same rows again: the schedule advances only when a batch is whole.
 */
#include <stdlib.h>
#include <string.h>

#include "batch/boundaries.h"
#include "batch/gather.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset/dataset.h"
#include "platform/os.h"
#include "prefetch.h"
#include "run/run.h"
#include "schedule.h"
#include "staging/backend.h"
#include "cuda/cuda_device.h"
#include "staging/ring.h"
#include "statistics.h"
#include "tokmap/cuda.h"

#define RING_BYTES ((uint64_t)64 << 20)
#define RING_SLOTS 32
#define RING_SLOTS_LEAST 4
#define RING_SLOTS_MOST 65536
#define READ_AHEAD 128
#define READ_AHEAD_LEAST 8
#define READ_AHEAD_BYTES ((uint64_t)16 << 20)
#define READ_AHEAD_MOST 65536
#define ALL_FIELDS                                                                                                     \
    (TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_POSITION_IDS | TOKMAP_ROWS | TOKMAP_DOCUMENT_IDS | TOKMAP_LOSS_MASK |     \
     TOKMAP_CU_SEQLENS)

struct tokmap_loader {
    const struct tokmap_run *run;
    struct tokmap_loader_options options;
    uint64_t seq_len, row_tokens, vocabulary;
    struct ring_shape shape;
    struct ring_layout layout;
    uint32_t width;
    enum tokmap_reading reading;
    bool on_host; /* out points to this machine's memory */

    /* the producer's */
    struct schedule schedule;
    struct prefetch prefetch;
    struct gather **gathers; /* of the sources */
    uint64_t *source_tokens;
    uint64_t sources;
    struct tokmap_cursor cursor; /* at the start of the step that is being delivered */
    uint64_t cold_reads;

    struct backend *backend;
    struct ring *ring;
    uint64_t ring_bytes;
    struct os_thread *producer;
    uint32_t first_claimed, first_done; /* of the first batch, see claim_first() */
    enum tokmap_status first_status;
    void *here; /* memory that is zero in a child after fork(); NULL where the child may go on */

    /* the consumer's */
    struct slot *held; /* what the last next() took */
    bool again;        /* its rows did not reach the caller */
    bool ended;
    uint64_t waited_ns; /* by tokmap_loader_wait(), for the next call of next() */
    struct run_walk named; /* to the rows of tokmap_loader_read() */
    struct statistics statistics;
};

/* Tokens of a row whose marks some field needs: the next document may begin with the last target. */
static uint64_t marked_tokens(const struct tokmap_loader *loader)
{
    return loader->seq_len + (loader->row_tokens > loader->seq_len);
}

/* ---- the producer's side ---- */

/* Row i of a slot shows `place`. *cold: set if that was not in the page cache. */
static enum tokmap_status fill_row(struct tokmap_loader *loader, struct slot *slot, uint64_t i,
                                   const struct tokmap_place *place, bool *cold, struct tokmap_error *error)
{
    void *row = (void *)(uintptr_t)slot->rows[i];
    enum tokmap_status status = gather_window(loader->gathers[place->source], place->first_token, row, cold, error);
    if (*cold)
        __atomic_store_n(&loader->cold_reads, loader->cold_reads + 1, __ATOMIC_RELAXED);
    if (status)
        return status;
    slot->places[i] = *place;
    if (!slot->marks)
        return TOKMAP_OK;
    struct mark *marks = slot->marks + i * loader->shape.row_marks;
    status = boundaries_mark(run_dataset(loader->run, place->source), loader->source_tokens[place->source],
                             place->first_token, marked_tokens(loader), marks, error);
    if (!status && !loader->on_host)
        boundaries_sum(marks, loader->shape.row_marks);
    return status;
}

static enum tokmap_status fill_cu(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct boundaries_cu cu;
    if (!slot->cu)
        return TOKMAP_OK;
    boundaries_cu_begin(&cu, slot->cu, loader->shape.cu_elements);
    for (uint64_t i = 0; i < slot->count; i++)
        if (!boundaries_cu_row(&cu, slot->marks + i * loader->shape.row_marks, loader->seq_len))
            return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                             "row %" PRIu64 " of step %" PRIu64 " shows more documents than any could when the loader was "
                             "opened: an index was changed under it; restore it, and go on from the last cursor",
                             slot->places[i].row, slot->places[i].step);
    boundaries_cu_end(&cu);
    slot->documents = cu.documents;
    slot->max_seqlen = cu.longest;
    return TOKMAP_OK;
}

/* What of a filled slot must reach the device: all up to the last byte that a field is made of. */
static uint64_t used_bytes(const struct tokmap_loader *loader, const struct slot *slot)
{
    if (slot->cu)
        return loader->layout.cu_at + loader->shape.cu_elements * sizeof(int32_t);
    if (!slot->count)
        return 0;
    if (slot->marks)
        return loader->layout.marks_at + slot->count * loader->shape.row_marks * sizeof(struct mark);
    return (slot->count - 1) * loader->layout.row_stride + loader->row_tokens * loader->width;
}

static enum tokmap_status fill(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    struct call call;
    if (!schedule_call(&loader->schedule, &call))
        return error_set(error, TOKMAP_END, NULL, TOKMAP_NO_OFFSET, "the run is at its end");
    enum tokmap_status status = loader->backend->calls->await(loader->backend, slot->number, error);
    if (status)
        return status;
    slot->step = call.step;
    slot->first_row = call.first_row;
    slot->count = call.count;
    slot->last_in_step = call.last_in_step;
    for (uint64_t i = 0; i < loader->sources; i++)
        gather_begin(loader->gathers[i], call.count);
    for (uint64_t i = 0; i < call.count; i++) {
        bool cold = false;
        const struct tokmap_place *place = prefetch_row(&loader->prefetch, i, call.count);
        status = fill_row(loader, slot, i, place, &cold, error);
        if (cold)
            prefetch_was_cold(&loader->prefetch, i);
        if (status)
            return status;
    }
    status = fill_cu(loader, slot, error);
    if (status)
        return status;
    struct tokmap_cursor cursor = loader->cursor;
    if (call.last_in_step) {
        status = tokmap_run_cursor(loader->run, call.step + 1, &cursor, error);
        if (status)
            return status;
    }
    slot->cursor = cursor;
    uint64_t bytes = loader->options.fields ? used_bytes(loader, slot) : 0;
    status = loader->backend->calls->copy(loader->backend, slot->number, bytes, error);
    if (status)
        return status;
    loader->cursor = cursor;
    schedule_advance(&loader->schedule);
    prefetch_done(&loader->prefetch, call.count);
    return TOKMAP_OK;
}

static enum tokmap_status fill_and_publish(struct tokmap_loader *loader, struct slot *vacant)
{
    enum tokmap_status status = fill(loader, vacant, ring_error(loader->ring));
    vacant->status = status;
    ring_publish(loader->ring);
    return status;
}

/* The first batch is made by whoever comes first: a new thread may have to wait for a processor longer than the batch
 * takes, and a consumer that is there already has nothing else to do. True for the one who is to make it. */
static bool claim_first(struct tokmap_loader *loader)
{
    return !__atomic_exchange_n(&loader->first_claimed, 1, __ATOMIC_ACQ_REL);
}

static void fill_first(struct tokmap_loader *loader)
{
    struct slot *vacant = ring_vacant(loader->ring); /* none if the loader is being closed */
    loader->first_status = vacant ? fill_and_publish(loader, vacant) : TOKMAP_END;
    __atomic_store_n(&loader->first_done, 1, __ATOMIC_RELEASE);
    os_word_wake(&loader->first_done);
}

/* Whether there is a next batch to make: after a failure, once the consumer has seen it. */
static bool goes_on(struct tokmap_loader *loader, enum tokmap_status status)
{
    return status != TOKMAP_END && (!status || ring_await_empty(loader->ring));
}

static void produce(void *user)
{
    struct tokmap_loader *loader = user;
    loader->backend->calls->begin(loader->backend);
    if (claim_first(loader))
        fill_first(loader);
    while (!__atomic_load_n(&loader->first_done, __ATOMIC_ACQUIRE))
        os_word_wait(&loader->first_done, 0);
    enum tokmap_status status = loader->first_status;
    for (struct slot *slot; goes_on(loader, status) && (slot = ring_vacant(loader->ring));)
        status = fill_and_publish(loader, slot);
}

/* ---- opening ---- */

static enum tokmap_status check_options(const struct tokmap_loader_options *options, const struct tokmap_run_info *info,
                                        struct tokmap_error *error)
{
    if (!options->world || options->rank >= options->world)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "rank %" PRIu64 " of %" PRIu64 " ranks: ranks are 0 up to, not including, world", options->rank,
                         options->world);
    if (options->world > info->batch)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " ranks share a global batch of %" PRIu64 " rows: each needs at least one; use fewer "
                         "ranks or a larger batch",
                         options->world, info->batch);
    if (options->fields & ~(uint32_t)ALL_FIELDS)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "fields is 0x%" PRIx32 ": 0x%" PRIx32 " is none of TOKMAP_INPUTS .. TOKMAP_CU_SEQLENS",
                         options->fields, options->fields & ~(uint32_t)ALL_FIELDS);
    if ((options->fields & (TOKMAP_TARGETS | TOKMAP_LOSS_MASK)) && !info->lookahead)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "the run has lookahead 0, so a row's last token has no target: give the run lookahead 1, or do "
                         "not ask for %s",
                         options->fields & TOKMAP_TARGETS ? "TOKMAP_TARGETS" : "TOKMAP_LOSS_MASK");
    if (options->mask_targets > 1 || (options->mask_targets && !(options->fields & TOKMAP_TARGETS)))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "mask_targets is %" PRIu32 "%s: it is 0 or, with TOKMAP_TARGETS, 1", options->mask_targets,
                         options->fields & TOKMAP_TARGETS ? "" : " and fields has no TOKMAP_TARGETS");
    if (options->threads > 1)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "threads is %" PRIu32 ": 1 is a producer thread, 0 none", options->threads);
    if (options->read_ahead > READ_AHEAD_MOST)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "read_ahead is %" PRIu32 " windows, at most %d will do", options->read_ahead, READ_AHEAD_MOST);
    return TOKMAP_OK;
}

/* The gathers of all sources, and what the sources must agree on. */
static enum tokmap_status open_gathers(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                       struct tokmap_error *error)
{
    loader->sources = info->sources;
    loader->gathers = calloc(info->sources, sizeof *loader->gathers);
    loader->source_tokens = calloc(info->sources, sizeof *loader->source_tokens);
    if (!loader->gathers || !loader->source_tokens)
        return error_set_memory(error, "a loader", info->sources * 16);
    for (uint64_t i = 0; i < info->sources; i++) {
        const struct tokmap_dataset *dataset = run_dataset(loader->run, i);
        struct tokmap_dataset_info found;
        dataset_describe(dataset, &found);
        if (i && found.width != loader->width)
            return error_set(error, TOKMAP_ERROR_MISMATCH, NULL, TOKMAP_NO_OFFSET,
                             "the sources of a run must have tokens of one width: source 0 has %" PRIu32
                             " bytes a token, source %" PRIu64 " has %" PRIu32,
                             loader->width, i, found.width);
        loader->width = found.width;
        loader->vocabulary = max64(loader->vocabulary, found.vocabulary);
        loader->source_tokens[i] = found.tokens;
        struct gather_options options = {
            .row_tokens = loader->row_tokens,
            .reading = loader->options.drop_behind ? TOKMAP_READ_PREAD : dataset_reading(dataset),
            .unchecked = loader->options.unchecked,
            .drop_behind = loader->options.drop_behind,
            .in_order = info->ordering == TOKMAP_SEQUENTIAL,
        };
        if (!i)
            loader->reading = options.reading;
        enum tokmap_status status = gather_open(&loader->gathers[i], dataset, &options, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

/* Sets *step to where the loader begins, and the cursor there. */
static enum tokmap_status find_start(struct tokmap_loader *loader, uint64_t *step, struct tokmap_error *error)
{
    struct tokmap_cursor cursor = {0};
    if (loader->options.resume) {
        enum tokmap_status status = tokmap_cursor_parse(&cursor, loader->options.resume, error);
        if (!status)
            status = tokmap_run_check(loader->run, &cursor, error);
        if (status)
            return status;
    }
    *step = cursor.step;
    return tokmap_run_cursor(loader->run, cursor.step, &loader->cursor, error);
}

/* The elements of cu_seqlens: room for the rows with the most documents that there are. */
static enum tokmap_status count_cu(struct tokmap_loader *loader, uint64_t rows, uint64_t *elements,
                                   struct tokmap_error *error)
{
    uint64_t most = 1, tokens;
    if (mul_overflows(rows, loader->seq_len, &tokens) || tokens > INT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " rows of %" PRIu64 " tokens are more than the 2^31 - 1 that cu_seqlens can count: ask "
                         "for fewer rows a call",
                         rows, loader->seq_len);
    for (uint64_t i = 0; i < loader->sources; i++) {
        uint64_t here;
        enum tokmap_status status = boundaries_most(run_dataset(loader->run, i), loader->seq_len, &here, error);
        if (status)
            return status;
        most = max64(most, here);
    }
    *elements = rows * most + 1;
    return TOKMAP_OK;
}

static enum tokmap_status shape_slots(struct tokmap_loader *loader, struct tokmap_error *error)
{
    struct ring_shape *shape = &loader->shape;
    uint32_t marked = TOKMAP_POSITION_IDS | TOKMAP_DOCUMENT_IDS | TOKMAP_LOSS_MASK | TOKMAP_CU_SEQLENS;
    shape->rows = schedule_rows(&loader->schedule);
    shape->row_bytes = loader->row_tokens * loader->width;
    if ((loader->options.fields & marked) || loader->options.mask_targets)
        shape->row_marks = mark_words(marked_tokens(loader));
    if (loader->options.fields & TOKMAP_CU_SEQLENS) {
        enum tokmap_status status = count_cu(loader, shape->rows, &shape->cu_elements, error);
        if (status)
            return status;
    }
    if (!ring_layout_of(shape, &loader->layout))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " rows of %" PRIu64 " bytes are more than any memory: ask for fewer rows a call",
                         shape->rows, shape->row_bytes);
    return TOKMAP_OK;
}

static void describe_work(const struct tokmap_loader *loader, uint64_t count, const struct tokmap_out *out,
                          struct expand_arguments *work)
{
    uint32_t fields = loader->options.fields;
    *work = (struct expand_arguments){
        .inputs = fields & TOKMAP_INPUTS ? (uintptr_t)out->inputs : 0,
        .targets = fields & TOKMAP_TARGETS ? (uintptr_t)out->targets : 0,
        .position_ids = fields & TOKMAP_POSITION_IDS ? (uintptr_t)out->position_ids : 0,
        .document_ids = fields & TOKMAP_DOCUMENT_IDS ? (uintptr_t)out->document_ids : 0,
        .loss_mask = fields & TOKMAP_LOSS_MASK ? (uintptr_t)out->loss_mask : 0,
        .rows = fields & TOKMAP_ROWS ? (uintptr_t)out->rows : 0,
        .cu_seqlens = fields & TOKMAP_CU_SEQLENS ? (uintptr_t)out->cu_seqlens : 0,
        .row_stride = loader->layout.row_stride,
        .marks_at = loader->layout.marks_at,
        .cu_at = loader->layout.cu_at,
        .cu_elements = loader->shape.cu_elements,
        .row_marks = loader->shape.row_marks,
        .count = count,
        .seq_len = loader->seq_len,
        .row_tokens = loader->row_tokens,
        .width = loader->width,
        .element = out->type == TOKMAP_I64 ? 8 : 4,
        .mask_targets = loader->options.mask_targets,
    };
}

static enum tokmap_status open_backend(struct tokmap_loader *loader, struct tokmap_error *error)
{
    /* Any address: what counts is which fields are asked for. */
    int32_t any = 0;
    const struct tokmap_out all = {sizeof all, TOKMAP_I64, &any, &any, &any, &any, &any, &any, &any};
    struct expand_arguments largest;
    if (loader->on_host)
        return backend_host_open(&loader->backend, error);
    describe_work(loader, loader->shape.rows, &all, &largest);
    return backend_cuda_open(&loader->backend, loader->options.device, backend_cuda_output_bytes(&largest), error);
}

static enum tokmap_status open_ring(struct tokmap_loader *loader, struct tokmap_error *error)
{
    enum tokmap_status status = shape_slots(loader, error);
    if (status)
        return status;
    const struct ring_shape shape = loader->shape;
    uint64_t one = ring_slot_bytes(&shape), given = loader->options.ring_bytes, slots, bytes;
    if (given && one > given)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a batch of %" PRIu64 " rows needs %" PRIu64 " bytes, %" PRIu64 " of them for cu_seqlens, "
                         "ring_bytes is %" PRIu64 ": ask for fewer rows a call, or give more memory",
                         shape.rows, one, shape.cu_elements * (uint64_t)sizeof(int32_t), given);
    slots = given ? given / one : max64(min64(RING_BYTES / one, RING_SLOTS), RING_SLOTS_LEAST);
    /* Without a producer one slot does, but not where a copy of it may still be under way. */
    slots = min64(slots, loader->options.threads ? RING_SLOTS_MOST : loader->on_host ? 1 : RING_SLOTS_LEAST);
    /* Memory is only promised until it is touched, so what can never be had is refused here. */
    if (mul_overflows(slots, one, &bytes) || (bytes > RING_BYTES && bytes > os_memory_limit()))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " batches of %" PRIu64 " rows, %" PRIu64 " bytes each, do not fit the memory of this "
                         "machine: ask for fewer rows a call",
                         slots, shape.rows, one);
    loader->ring_bytes = bytes;
    status = open_backend(loader, error);
    if (!status)
        status = ring_new(&loader->ring, loader->backend, &shape, (uint32_t)slots, error);
    loader->statistics.ready_lowest = (uint32_t)slots;
    return status;
}

/* So many windows that the storage is busy, also while it is late with one of them. */
static uint32_t read_ahead(const struct tokmap_loader *loader)
{
    if (loader->options.read_ahead)
        return loader->options.read_ahead;
    uint64_t fitting = READ_AHEAD_BYTES / (loader->row_tokens * loader->width);
    return (uint32_t)max64(min64(fitting, READ_AHEAD), READ_AHEAD_LEAST);
}

static enum tokmap_status start_producer(struct tokmap_loader *loader, struct tokmap_error *error)
{
    if (!loader->options.threads && loader->on_host)
        return TOKMAP_OK;
    if (os_memory_new(os_page_bytes(), false, &loader->here))
        return error_set_memory(error, "a loader", os_page_bytes());
    os_memory_zero_on_fork(loader->here, os_page_bytes());
    *(char *)loader->here = 1;
    if (!loader->options.threads)
        return TOKMAP_OK;
    int system = os_thread_start(&loader->producer, "tokmap-loader", produce, loader);
    if (system)
        return error_set_system(error, system, NULL, TOKMAP_NO_OFFSET,
                                "cannot start the producer thread; raise the limit on threads, or use threads = 0");
    return TOKMAP_OK;
}

static enum tokmap_status loader_open(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                      struct tokmap_error *error)
{
    uint64_t step;
    struct cuda_device device;
    loader->on_host = cuda_device_is_host(loader->options.device);
    enum tokmap_status status = check_options(&loader->options, info, error);
    if (!status)
        status = find_start(loader, &step, error);
    /* A device that is not there is said before the documents are counted, which reads all of their index. */
    if (!status && !loader->on_host)
        status = cuda_device_find(&device, loader->options.device, error);
    if (status)
        return status;
    loader->seq_len = info->seq_len;
    loader->row_tokens = info->seq_len + info->lookahead;
    schedule_init(&loader->schedule, loader->run, info->batch, loader->options.rank, loader->options.world,
                  loader->options.rows, step);
    status = open_gathers(loader, info, error);
    if (!status)
        status = open_ring(loader, error);
    if (!status)
        status = prefetch_init(&loader->prefetch, loader->run, loader->gathers, loader->sources, loader->schedule.first,
                               loader->schedule.rows, schedule_rows(&loader->schedule), loader->schedule.step,
                               read_ahead(loader), error);
    return status ? status : start_producer(loader, error);
}

enum tokmap_status tokmap_loader_open(struct tokmap_loader **made, const struct tokmap_run *run,
                                      const struct tokmap_loader_options *options, struct tokmap_error *error)
{
    static const struct tokmap_loader_options defaults = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_run_info info;
    if (!made)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "loader is NULL: there is nowhere to put it");
    *made = NULL;
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run is NULL: open a run first");
    struct tokmap_loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return error_set_memory(error, "a loader", sizeof *loader);
    loader->run = run;
    run_walk_init(&loader->named, run);
    enum tokmap_status status =
        struct_copy_in(&loader->options, options, &defaults, sizeof defaults, "tokmap_loader_options", error);
    run_describe(run, &info);
    if (!status)
        status = loader_open(loader, &info, error);
    loader->options.resume = NULL; /* the caller's memory, as is the device's name */
    loader->options.device = NULL;
    if (status) {
        tokmap_loader_close(loader);
        return status;
    }
    *made = loader;
    return TOKMAP_OK;
}

/* True in a child after fork(), which has no producer. */
static bool is_elsewhere(const struct tokmap_loader *loader)
{
    return loader->here && !*(const volatile char *)loader->here;
}

void tokmap_loader_close(struct tokmap_loader *loader)
{
    if (!loader)
        return;
    if (loader->producer && !is_elsewhere(loader)) {
        ring_stop(loader->ring);
        os_thread_join(loader->producer);
    }
    ring_free(loader->ring);
    if (loader->backend)
        loader->backend->calls->close(loader->backend, is_elsewhere(loader));
    prefetch_free(&loader->prefetch);
    for (uint64_t i = 0; loader->gathers && i < loader->sources; i++)
        gather_close(loader->gathers[i]);
    free(loader->gathers);
    free(loader->source_tokens);
    os_memory_free(loader->here, os_page_bytes());
    free(loader);
}

/* ---- the consumer's side ---- */

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
    };
    const char *missing = NULL;
    for (size_t i = 0; !missing && i < sizeof outputs / sizeof outputs[0]; i++)
        if ((loader->options.fields & outputs[i].field) && !outputs[i].given)
            missing = outputs[i].name;
    if (missing)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "out.%s is NULL, but the loader was opened with that field: give it memory for %" PRIu64 " rows",
                         missing, schedule_rows(&loader->schedule));
    if (out->type != TOKMAP_I32 && out->type != TOKMAP_I64)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "out.type is %d: TOKMAP_I32 and TOKMAP_I64 are known", (int)out->type);
    if (out->type == TOKMAP_I32 && loader->vocabulary > (uint64_t)INT32_MAX + 1)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "a vocabulary of %" PRIu64 " ids does not fit TOKMAP_I32: use TOKMAP_I64", loader->vocabulary);
    return TOKMAP_OK;
}

static enum tokmap_status expand(struct tokmap_loader *loader, const struct slot *slot, const struct tokmap_out *out,
                                 void *stream, struct tokmap_error *error)
{
    struct expand_arguments work;
    describe_work(loader, slot->count, out, &work);
    return loader->backend->calls->expand(loader->backend, slot->number, &work, stream, error);
}

/* The next slot, filled here and now where there is no producer. */
static struct slot *take(struct tokmap_loader *loader)
{
    uint64_t waited = 0;
    if (loader->again)
        return loader->held;
    if (loader->held)
        ring_release(loader->ring);
    loader->held = NULL;
    if (!loader->producer) {
        (void)fill_and_publish(loader, ring_vacant(loader->ring));
    } else if (!__atomic_load_n(&loader->first_done, __ATOMIC_RELAXED) && claim_first(loader)) {
        fill_first(loader);
    } else if (ring_was_full(loader->ring)) {
        statistics_ready(&loader->statistics, ring_ready(loader->ring));
    }
    loader->held = ring_filled(loader->ring, &waited);
    statistics_wait(&loader->statistics, waited + loader->waited_ns);
    loader->waited_ns = 0;
    return loader->held;
}

int tokmap_loader_wait(struct tokmap_loader *loader, uint64_t timeout_ns)
{
    uint64_t waited;
    if (!loader || !loader->producer || is_elsewhere(loader) || loader->ended || loader->again)
        return 1;
    if (loader->held)
        ring_release(loader->ring);
    loader->held = NULL;
    bool ready = ring_wait(loader->ring, timeout_ns, &waited);
    /* The ring was empty when the caller came, which take() will not see any more. */
    if (waited && ring_was_full(loader->ring))
        statistics_ready(&loader->statistics, 0);
    loader->waited_ns += waited;
    return ready;
}

static void describe(const struct tokmap_loader *loader, const struct slot *slot, struct tokmap_batch *batch)
{
    *batch = (struct tokmap_batch){
        .step = slot->step,
        .first_row = slot->first_row,
        .count = slot->count,
        .tokens = slot->count * loader->seq_len,
        .last_in_step = slot->last_in_step,
        .width = loader->width,
        .row_tokens = loader->row_tokens,
        .rows = slot->rows,
        .places = slot->places,
        .cursor = slot->cursor,
        .documents = slot->cu ? slot->documents : 0,
        .max_seqlen = slot->cu ? slot->max_seqlen : 0,
    };
}

/* The end of struct tokmap_batch in the first version of the interface: no caller's struct is smaller. */
#define BATCH_SIZE_FIRST (offsetof(struct tokmap_batch, max_seqlen) + sizeof(uint64_t))

/* Writes a batch to the caller's struct, as far as that reaches, and leaves its size as it is. */
static void batch_write(struct tokmap_batch *into, const struct tokmap_batch *from)
{
    memcpy((char *)into + sizeof into->size, (const char *)from + sizeof from->size, into->size - sizeof into->size);
}

static enum tokmap_status fault_of(struct tokmap_loader *loader, enum tokmap_status status, struct tokmap_error *error)
{
    loader->ended = status == TOKMAP_END;
    if (error)
        *error = *ring_error(loader->ring);
    return status;
}

/* What next() and read() ask of their arguments; *where: a copy of *out. */
static enum tokmap_status prepare(struct tokmap_loader *loader, const struct tokmap_out *out, struct tokmap_out *where,
                                  struct tokmap_batch *batch, struct tokmap_error *error)
{
    static const struct tokmap_out no_out = TOKMAP_OUT_INIT;
    static const struct tokmap_batch nothing = TOKMAP_BATCH_INIT;
    if (!loader || !batch)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL", loader ? "batch" : "loader");
    if (batch->size < BATCH_SIZE_FIRST || batch->size > sizeof *batch)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "batch.size is %zu, but struct tokmap_batch of this library has %zu bytes: initialize the batch "
                         "with TOKMAP_BATCH_INIT",
                         batch->size, sizeof *batch);
    batch_write(batch, &nothing);
    enum tokmap_status status = struct_copy_in(where, out, &no_out, sizeof *where, "tokmap_out", error);
    return status || !out ? status : check_out(loader, where, error);
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
                         "stream is not NULL, but this loader delivers on the host");
    if (is_elsewhere(loader))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "this loader%s: after fork() open another loader, from a cursor%s",
                         loader->on_host ? "'s producer thread is in the parent process"
                                         : " and its use of the GPU belong to the parent process",
                         loader->on_host ? ", or use threads = 0" : ", in a process that was not forked");
    if (loader->ended)
        return fault_of(loader, TOKMAP_END, error);
    const struct slot *slot = take(loader);
    if (slot->status)
        return fault_of(loader, slot->status, error);
    if (out) {
        status = expand(loader, slot, &where, stream, error);
        loader->again = status != TOKMAP_OK;
        if (status)
            return status;
    }
    struct tokmap_batch made;
    describe(loader, slot, &made);
    batch_write(batch, &made);
    statistics_batch(&loader->statistics, &made);
    return TOKMAP_OK;
}

/* The rows of places that the slot holds already. Rows that come in no order of ours cannot be asked for before they are
 * named; where one was cold, the storage is asked for all that follow it at once. */
static enum tokmap_status fill_named(struct tokmap_loader *loader, struct slot *slot, struct tokmap_error *error)
{
    bool asked = false;
    for (uint64_t i = 0; i < loader->sources; i++)
        gather_begin(loader->gathers[i], slot->count);
    for (uint64_t i = 0; i < slot->count; i++) {
        struct tokmap_place place = slot->places[i];
        bool cold = false;
        prefetch_named(&loader->prefetch, slot->places, i, slot->count);
        enum tokmap_status status = fill_row(loader, slot, i, &place, &cold, error);
        prefetch_named_was(&loader->prefetch, &place, cold);
        if (status)
            return status;
        if (!cold || asked)
            continue;
        asked = true;
        for (uint64_t k = i + 1; k < slot->count; k++)
            gather_ask(loader->gathers[slot->places[k].source], slot->places[k].first_token);
        for (uint64_t k = 0; k < loader->sources; k++)
            gather_flush(loader->gathers[k]);
    }
    return fill_cu(loader, slot, error);
}

static enum tokmap_status check_read(const struct tokmap_loader *loader, const uint64_t *steps, const uint64_t *rows,
                                     uint64_t count, struct tokmap_error *error)
{
    if (count && (!steps || !rows))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL", steps ? "rows" : "steps");
    if (loader->producer)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "this loader has a producer thread: rows are read by name with a loader of threads = 0");
    if (!loader->on_host)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "this loader delivers to a GPU: rows are read by name on the host");
    if (count > schedule_rows(&loader->schedule))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " rows are more than this loader has room for, %" PRIu64, count,
                         schedule_rows(&loader->schedule));
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
    if (status)
        return status;
    if (loader->held)
        ring_release(loader->ring);
    loader->held = NULL;
    struct slot *slot = ring_vacant(loader->ring); /* never published: the next fill() finds it vacant */
    slot->step = count ? steps[0] : 0;
    slot->first_row = count ? rows[0] : 0;
    slot->count = count;
    slot->last_in_step = false;
    slot->cursor = loader->cursor;
    for (uint64_t i = 0; i < count && !status; i++)
        status = run_walk_locate(&loader->named, steps[i], rows[i], &slot->places[i], error);
    if (!status)
        status = fill_named(loader, slot, error);
    if (!status && out)
        status = expand(loader, slot, &where, NULL, error);
    if (status)
        return status;
    struct tokmap_batch made;
    describe(loader, slot, &made);
    batch_write(batch, &made);
    return TOKMAP_OK;
}

uint64_t tokmap_loader_rows(const struct tokmap_loader *loader)
{
    return loader ? schedule_rows(&loader->schedule) : 0;
}

uint64_t tokmap_loader_cu_seqlens(const struct tokmap_loader *loader)
{
    return loader ? loader->shape.cu_elements : 0;
}

uint64_t tokmap_loader_calls(const struct tokmap_loader *loader)
{
    return loader ? loader->schedule.calls : 0;
}

enum tokmap_status tokmap_loader_stats(const struct tokmap_loader *loader, struct tokmap_stats *stats)
{
    struct tokmap_stats now = {.size = sizeof now};
    if (!loader || struct_size_check(stats, sizeof now, "tokmap_stats", NULL))
        return TOKMAP_ERROR_ARGUMENT;
    statistics_read(&loader->statistics, &now);
    for (uint64_t i = 0; i < loader->sources; i++)
        now.bytes += gather_bytes(loader->gathers[i]);
    now.cold_reads = __atomic_load_n(&loader->cold_reads, __ATOMIC_RELAXED);
    struct backend_facts facts;
    loader->backend->calls->facts(loader->backend, &facts);
    now.host_expanded = facts.host_expanded;
    now.late_copies = facts.late_copies;
    now.device_bytes = facts.device_bytes;
    now.ring_bytes = loader->ring_bytes;
    now.ring_slots = ring_slots(loader->ring);
    now.ring_ready = ring_ready(loader->ring);
    now.reading = loader->reading;
    return struct_copy_out(stats, &now, sizeof now, "tokmap_stats", NULL);
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
    found.pinned_bytes = facts.pinned_bytes;
    found.device_bytes = facts.device_bytes;
    for (size_t i = 0; i + 1 < sizeof found.reason && facts.reason[i]; i++)
        found.reason[i] = facts.reason[i];
    return struct_copy_out(info, &found, sizeof found, "tokmap_loader_device", NULL);
}
