/*
 * loader_open.c - opens a loader, which joins the rooms, and closes it:
 *
 *     run -> schedule, row queue -> residency, gather -> ring -> backend -> outputs
 *     |------------- producer.c ----------------|         |--- consumer.c ---|
 */
#include <stdlib.h>
#include <string.h>

#include "batch/mark.h"
#include "capacity.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "consumer.h"
#include "cuda/backend_cuda.h"
#include "cuda/cuda_device.h"
#include "dataset/dataset.h"
#include "loader_state.h"
#include "producer.h"
#include "run/run.h"
#include "staging/backend_host.h"

/* Defaults and limits of options.ring_bytes and options.read_ahead. */
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
     TOKMAP_CU_SEQLENS | TOKMAP_TARGETS_AHEAD)

static enum tokmap_status check_options(const struct tokmap_loader_options *options, const struct tokmap_run_info *info,
                                        struct tokmap_error *error)
{
    if (!options->world || options->rank >= options->world)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "options.rank is %" PRIu64 " and options.world is %" PRIu64 "; the rank must be below the "
                         "world",
                         options->rank, options->world);
    if (options->world > info->batch)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "options.world is %" PRIu64 ", but the global batch has only %" PRIu64 " rows, and each rank "
                         "needs at least one; use fewer ranks or a larger batch",
                         options->world, info->batch);
    if (options->fields & ~(uint32_t)ALL_FIELDS)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.fields is 0x%" PRIx32 ", of which 0x%" PRIx32 " is not a field; combine "
                         "TOKMAP_INPUTS to TOKMAP_TARGETS_AHEAD",
                         options->fields, options->fields & ~(uint32_t)ALL_FIELDS);
    if ((options->fields & (TOKMAP_TARGETS | TOKMAP_LOSS_MASK | TOKMAP_TARGETS_AHEAD)) && !info->lookahead)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "the run has lookahead 0, so the last token of a row has no target; set lookahead 1 in the "
                         "run, or remove %s from options.fields",
                         options->fields & TOKMAP_TARGETS     ? "TOKMAP_TARGETS"
                         : options->fields & TOKMAP_LOSS_MASK ? "TOKMAP_LOSS_MASK"
                                                              : "TOKMAP_TARGETS_AHEAD");
    if ((options->fields & TOKMAP_TARGETS_AHEAD) && info->seq_len > INT32_MAX / info->lookahead)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a row of %" PRIu64 " tokens with lookahead %" PRIu64 " has more than the 2^31 - 1 elements "
                         "that targets_ahead can have; lower one of the two",
                         info->seq_len, info->lookahead);
    const bool targets = options->fields & (TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD);
    if (options->mask_targets > 1 || (options->mask_targets && !targets))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.mask_targets is %" PRIu32 "%s; set it to 0, or to 1 together with TOKMAP_TARGETS",
                         options->mask_targets, targets ? "" : " without TOKMAP_TARGETS in options.fields");
    if (options->threads > 1)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.threads is %" PRIu32 "; set it to 1 for a producer thread, or to 0 for none",
                         options->threads);
    if (options->read_ahead > READ_AHEAD_MOST)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.read_ahead is %" PRIu32 " windows; the limit is %d", options->read_ahead,
                         READ_AHEAD_MOST);
    return TOKMAP_OK;
}

/* Sets *step to the step at which the loader begins, and loader->cursor to the cursor of that step. */
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

/* Returns the number of windows to ask the storage for ahead: enough to keep it busy while one of them is late. */
static uint32_t read_ahead(const struct tokmap_loader *loader)
{
    if (loader->options.read_ahead)
        return loader->options.read_ahead;
    uint64_t fitting = READ_AHEAD_BYTES / (loader->row_tokens * loader->width);
    return (uint32_t)max64(min64(fitting, READ_AHEAD), READ_AHEAD_LEAST);
}

/* Checks that the sources agree, and opens the residency and the gathers. */
static enum tokmap_status open_sources(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                       struct tokmap_error *error)
{
    const uint64_t sources = info->sources;
    const struct tokmap_dataset **datasets = malloc(sources * sizeof *datasets);
    loader->gathers = calloc(sources, sizeof *loader->gathers);
    loader->source_tokens = calloc(sources, sizeof *loader->source_tokens);
    enum tokmap_status status = TOKMAP_OK;
    if (!datasets || !loader->gathers || !loader->source_tokens)
        status = error_set_memory(error, "a loader", sources * 24);
    else
        loader->sources = sources;
    for (uint64_t i = 0; i < sources && !status; i++) {
        struct tokmap_dataset_info found;
        datasets[i] = run_dataset(loader->run, i);
        dataset_describe(datasets[i], &found);
        if (i && found.width != loader->width)
            status = error_set(error, TOKMAP_ERROR_MISMATCH, NULL, TOKMAP_NO_OFFSET,
                               "source %" PRIu64 " has tokens of %" PRIu32 " bytes, but source 0 has tokens of %" PRIu32
                               " bytes; all sources of a run must have tokens of the same width",
                               i, found.width, loader->width);
        loader->width = found.width;
        loader->vocabulary = max64(loader->vocabulary, found.vocabulary);
        loader->source_tokens[i] = found.tokens;
    }
    if (status) {
        free(datasets);
        return status;
    }
    const struct residency_options options = {
        .datasets = datasets,
        .sources = sources,
        .window = read_ahead(loader),
        .drop_behind = loader->options.drop_behind,
        .in_order = info->ordering == TOKMAP_SEQUENTIAL,
        .order = row_queue_window,
        .user = &loader->queue,
    };
    status = residency_open(&loader->residency, &options, error);
    free(datasets);
    const struct gather_options how = {.unchecked = loader->options.unchecked};
    for (uint64_t i = 0; i < sources && !status; i++)
        status = gather_open(&loader->gathers[i], &loader->residency->sources[i], &how, error);
    return status;
}

static enum tokmap_status open_queue(struct tokmap_loader *loader, struct tokmap_error *error)
{
    const struct schedule *schedule = &loader->schedule;
    enum tokmap_status status = row_queue_init(&loader->queue, loader->run, schedule->first, schedule->rows,
                                               schedule_rows(schedule), schedule->step, read_ahead(loader), error);
    loader->queue.residency = loader->residency;
    loader->queue.gathers = loader->gathers;
    return status;
}

/* Computes how many elements cu_seqlens needs, so that it has room for any batch of the run. */
static enum tokmap_status count_cu(struct tokmap_loader *loader, uint64_t rows, uint64_t *elements,
                                   struct tokmap_error *error)
{
    uint64_t most = 1, tokens;
    if (mul_overflows(rows, loader->seq_len, &tokens) || tokens > INT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " rows of %" PRIu64 " tokens have more than the 2^31 - 1 tokens that cu_seqlens "
                         "can count; lower options.rows",
                         rows, loader->seq_len);
    for (uint64_t i = 0; i < loader->sources; i++) {
        uint64_t of_source;
        enum tokmap_status status =
            capacity_documents_most(run_dataset(loader->run, i), loader->seq_len, &of_source, error);
        if (status)
            return status;
        most = max64(most, of_source);
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
        shape->row_marks = mark_words(loader_marked_tokens(loader));
    if (loader->options.fields & TOKMAP_CU_SEQLENS) {
        enum tokmap_status status = count_cu(loader, shape->rows, &shape->cu_elements, error);
        if (status)
            return status;
    }
    if (!ring_layout_of(shape, &loader->layout))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " rows of %" PRIu64 " bytes do not fit any memory; lower options.rows", shape->rows,
                         shape->row_bytes);
    return TOKMAP_OK;
}

static enum tokmap_status open_backend(struct tokmap_loader *loader, struct tokmap_error *error)
{
    /* The addresses do not matter, only which fields are asked for. */
    int32_t any = 0;
    const struct tokmap_out all = {sizeof all, TOKMAP_I64, &any, &any, &any, &any, &any, &any, &any, &any};
    struct expand_arguments largest;
    if (loader->on_host)
        return backend_host_open(&loader->backend, error);
    consumer_describe_work(loader, loader->shape.rows, &all, &largest);
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
                         "a batch of %" PRIu64 " rows needs %" PRIu64 " bytes (%" PRIu64 " of them for cu_seqlens), "
                         "but options.ring_bytes is %" PRIu64 "; raise it, or lower options.rows",
                         shape.rows, one, shape.cu_elements * (uint64_t)sizeof(int32_t), given);
    slots = given ? given / one : max64(min64(RING_BYTES / one, RING_SLOTS), RING_SLOTS_LEAST);
    /* Without a producer thread one slot is enough, unless a copy from it to a GPU may still be under way. */
    slots = min64(slots, loader->options.threads ? RING_SLOTS_MOST : loader->on_host ? 1 : RING_SLOTS_LEAST);
    /* The system promises memory that it does not have until it is touched, so an impossible size is refused here. */
    if (mul_overflows(slots, one, &bytes) || (bytes > RING_BYTES && bytes > os_memory_limit()))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " batches of %" PRIu64 " rows, with %" PRIu64 " bytes each, do not fit the memory "
                         "of this machine; lower options.rows or options.ring_bytes",
                         slots, shape.rows, one);
    loader->ring_bytes = bytes;
    status = open_backend(loader, error);
    if (!status)
        status = ring_new(&loader->ring, loader->backend, &shape, (uint32_t)slots, error);
    loader->statistics.ready_lowest = (uint32_t)slots;
    return status;
}

static enum tokmap_status start_producer(struct tokmap_loader *loader, struct tokmap_error *error)
{
    if (!loader->options.threads && loader->on_host)
        return TOKMAP_OK; /* a child after fork() may use it */
    if (os_memory_new(os_page_bytes(), false, &loader->fork_canary))
        return error_set_memory(error, "a loader", os_page_bytes());
    os_memory_zero_on_fork(loader->fork_canary, os_page_bytes());
    *(char *)loader->fork_canary = 1;
    if (!loader->options.threads)
        return TOKMAP_OK;
    int system = os_thread_start(&loader->producer, "tokmap-loader", producer_run, loader);
    if (system)
        return error_set_system(error, system, NULL, TOKMAP_NO_OFFSET,
                                "cannot start the producer thread; raise the limit on threads, or set options.threads "
                                "to 0");
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
    /* Looked for before the documents are counted, which takes a while, so that a missing device is reported at
     * once. */
    if (!status && !loader->on_host)
        status = cuda_device_find(&device, loader->options.device, error);
    if (status)
        return status;
    loader->seq_len = info->seq_len;
    loader->row_tokens = info->seq_len + info->lookahead;
    schedule_init(&loader->schedule, loader->run, info->batch, loader->options.rank, loader->options.world,
                  loader->options.rows, step);
    loader->start.schedule = loader->schedule;
    loader->start.cursor = loader->cursor;
    status = open_sources(loader, info, error);
    if (!status)
        status = open_ring(loader, error);
    if (!status)
        status = open_queue(loader, error);
    return status ? status : start_producer(loader, error);
}

enum tokmap_status tokmap_loader_open(struct tokmap_loader **made, const struct tokmap_run *run,
                                      const struct tokmap_loader_options *options, struct tokmap_error *error)
{
    static const struct tokmap_loader_options defaults = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_run_info info;
    if (!made)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "loader is NULL; pass the address of a handle");
    *made = NULL;
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run is NULL; open a run first");
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
    loader->options.resume = NULL; /* the caller's memory, as is the name of the device */
    loader->options.device = NULL;
    if (status) {
        tokmap_loader_close(loader);
        return status;
    }
    *made = loader;
    return TOKMAP_OK;
}

void tokmap_loader_close(struct tokmap_loader *loader)
{
    if (!loader)
        return;
    if (loader->producer && !loader_is_forked(loader))
        producer_end(loader);
    ring_free(loader->ring);
    if (loader->backend)
        loader->backend->calls->close(loader->backend, loader_is_forked(loader));
    row_queue_free(&loader->queue);
    for (uint64_t i = 0; i < loader->sources; i++)
        gather_close(loader->gathers[i]);
    residency_close(loader->residency);
    free(loader->gathers);
    free(loader->source_tokens);
    os_memory_free(loader->fork_canary, os_page_bytes());
    free(loader);
}
