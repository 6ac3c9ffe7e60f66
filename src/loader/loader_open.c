/* SPDX-License-Identifier: MIT */
/*
 * loader_open.c - opens a loader, which joins the rooms, moves it, and closes it:
 *
 *     run -> schedule, row queue -> residency, gather -> ring -> backend -> outputs
 *     |------------- producer.c ----------------|         |--- consumer.c ---|
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capacity.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "consumer.h"
#include "counted.h"
#include "cuda/backend_cuda.h"
#include "cuda/cuda_device.h"
#include "dataset/dataset.h"
#include "fetch_plan.h"
#include "producer.h"
#include "row_values.h"
#include "run/cursor.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/row_cost.h"
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
     TOKMAP_CU_SEQLENS | TOKMAP_TARGETS_AHEAD | TOKMAP_LABELS | TOKMAP_SOURCE_IDS | TOKMAP_CU_SEQLENS_SLICE)
#define IO_THREADS_MOST 256

static enum tokmap_status check_options(const struct tokmap_loader_options *options, const struct tokmap_run_info *info,
                                        struct tokmap_error *error)
{
    if (!options->world || options->rank >= options->world)
        return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "rank",
                               " is %" PRIu64 "; it must be below world, %" PRIu64, options->rank, options->world);
    if (options->fields & ~(uint32_t)ALL_FIELDS)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "fields",
                               " is 0x%" PRIx32 ", of which 0x%" PRIx32
                               " is not a field; combine fields from \"inputs\" to \"cu_seqlens_slice\"",
                               options->fields, options->fields & ~(uint32_t)ALL_FIELDS);
    if ((options->fields & (TOKMAP_TARGETS | TOKMAP_LOSS_MASK | TOKMAP_TARGETS_AHEAD)) && !info->lookahead)
        return error_set(error, TOKMAP_ERROR_RANGE, NULL, TOKMAP_NO_OFFSET,
                         "the run has lookahead 0, so the last token of a row has no target; set lookahead 1 in the "
                         "run, or remove \"%s\" from fields",
                         options->fields & TOKMAP_TARGETS     ? "targets"
                         : options->fields & TOKMAP_LOSS_MASK ? "loss_mask"
                                                              : "targets_ahead");
    if ((options->fields & TOKMAP_TARGETS_AHEAD) && info->seq_len_most > INT32_MAX / info->lookahead)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a row of %" PRIu64 " tokens with lookahead %" PRIu64 " has more than the 2^31 - 1 elements "
                         "that targets_ahead can have; lower one of the two",
                         info->seq_len_most, info->lookahead);
    const bool has_targets = options->fields & (TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD | TOKMAP_LABELS);
    if (options->mask_targets > 1 || (options->mask_targets && !has_targets))
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "mask_targets",
                               " is %" PRIu32 "%s; set it to 0, or to 1 together with \"targets\"",
                               options->mask_targets, has_targets ? "" : " without \"targets\" in fields");
    if (options->threads > 1)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "threads",
                               " is %" PRIu32 "; set it to 1 for a producer thread, or to 0 for none",
                               options->threads);
    if (options->read_ahead > READ_AHEAD_MOST)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "read_ahead",
                               " is %" PRIu32 " windows; the limit is %d", options->read_ahead, READ_AHEAD_MOST);
    if (options->io_threads > IO_THREADS_MOST)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "io_threads", " is %" PRIu32 "; the limit is %d",
                               options->io_threads, IO_THREADS_MOST);
    if (options->alarm_percent > 100)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "alarm_percent",
                               " is %" PRIu32 "; set it to 1 to 100", options->alarm_percent);
    return TOKMAP_OK;
}

/* Sets loader->fill->cursor to the cursor of the step at which the loader begins. */
static enum tokmap_status find_start(struct tokmap_loader *loader, const char *resume,
                                     const struct tokmap_cursor *given, struct tokmap_error *error)
{
    struct tokmap_cursor cursor = {0};
    enum tokmap_status status = TOKMAP_OK;
    if (given)
        cursor = *given;
    else if (resume)
        status = cursor_parse(&cursor, resume, error);
    if (!status && (given || resume))
        status = run_check_cursor(loader->run, &cursor, error);
    if (!status)
        run_cursor(loader->run, cursor.step, &loader->fill->cursor);
    return status;
}

/* ---- the forms of batches ---- */

/* Computes the rows and elements of the largest calls, and checks that every phase has a row for each rank from the
 * loader's first step on. (A run whose batch grows may have had fewer ranks at first.) */
static enum tokmap_status measure_phases(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                         struct tokmap_error *error)
{
    const struct tokmap_loader_options *options = &loader->options;
    for (uint64_t i = 0; i < info->phases; i++) {
        struct slice slice = {0};
        uint64_t elements;
        const struct tokmap_phase_info phase = info_of_phase(loader->run, i);
        if (options->world > phase.batch && phase.end_step > loader->fill->cursor.step) {
            char since[64] = "";
            if (info->phases > 1)
                (void)snprintf(since, sizeof since, " from step %" PRIu64 " on", phase.first_step);
            return error_set_line(error, TOKMAP_ERROR_RANGE, phase.line ? run_path(loader->run) : NULL, phase.line,
                                  "there are %" PRIu64 " ranks (world), but the global batch has only %" PRIu64
                                  " row%s%s, and "
                                  "each rank needs at least one; use fewer ranks or a larger batch",
                                  options->world, phase.batch, phase.batch == 1 ? "" : "s", since);
        }
        slice_of_step(&slice, loader->run, options->rank, options->world, options->rows, phase.first_step);
        if (mul_overflows(slice.most, phase.seq_len, &elements))
            elements = UINT64_MAX;
        loader->rows_most = max64(loader->rows_most, slice.most);
        loader->elements_most = max64(loader->elements_most, elements / options->context_world);
    }
    return TOKMAP_OK;
}

/* Returns the bytes of the largest row of any phase. */
static uint64_t row_bytes_most(const struct tokmap_loader *loader, const struct tokmap_run_info *info)
{
    return (info->seq_len_most / loader->needs.slices + info->lookahead) * loader->needs.width;
}

/* Returns the bytes of its values. */
static uint64_t row_values_most(const struct tokmap_loader *loader, const struct tokmap_run_info *info)
{
    return info->seq_len_most / loader->needs.slices * loader->fill->values.column_bytes;
}

/* Returns the number of rows to ask the storage for ahead: enough to keep it busy while one of them is late. */
static uint32_t read_ahead(const struct tokmap_loader *loader, const struct tokmap_run_info *info)
{
    if (loader->options.read_ahead)
        return loader->options.read_ahead;
    uint64_t fitting = READ_AHEAD_BYTES / (row_bytes_most(loader, info) + row_values_most(loader, info));
    return (uint32_t)max64(min64(fitting, READ_AHEAD), READ_AHEAD_LEAST);
}

/* ---- sources ---- */

/* Collects what the sources are. */
static enum tokmap_status describe_sources(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                           struct tokmap_error *error)
{
    loader->fill->gathers = calloc(info->sources, sizeof *loader->fill->gathers);
    loader->source = calloc(info->sources, sizeof *loader->source);
    loader->statistics.sources = calloc(info->sources, sizeof *loader->statistics.sources);
    loader->fill->extents = calloc(run_extents_most(loader->run), sizeof *loader->fill->extents);
    if (!loader->fill->gathers || !loader->source || !loader->statistics.sources || !loader->fill->extents)
        return error_set_memory(error, "a loader", info->sources * sizeof *loader->source);
    loader->sources = info->sources;
    loader->kernels = expand_variant(0);
    loader->needs.width = 2;
    loader->needs.bounds = info->tail_pad || info->stride;
    loader->exclusions = exclusions_any(run_exclusions(loader->run)) ? run_exclusions(loader->run) : NULL;
    loader->needs.masked = loader->exclusions != NULL;
    for (uint64_t i = 0; i < info->sources; i++) {
        const struct tokmap_source_info source = info_of_source(loader->run, i);
        const struct tokmap_dataset_info found = info_of_dataset(source.dataset);
        loader->source[i] = (struct loader_source){
            .dataset = source.dataset,
            .name = source.name,
            .tokens = found.tokens,
            .width = found.width,
            .plan = source.plan != NULL,
        };
        loader->needs.width = found.width > loader->needs.width ? found.width : loader->needs.width;
        loader->needs.masked =
            loader->needs.masked || dataset_has_mask(source.dataset) || run_source_pad(loader->run, i) > 1;
        loader->needs.bounds = loader->needs.bounds || source.plan;
        loader->vocabulary = max64(loader->vocabulary, found.vocabulary);
    }
    return TOKMAP_OK;
}

/* Refuses targets of which some must not be trained on, or be scored twice, if the program could not know which; and
 * inputs alone, from which a program makes targets. Targets in padding are TOKMAP_IGNORE anyway, but inputs are ids. */
static enum tokmap_status check_masks(const struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                      struct tokmap_error *error)
{
    const uint32_t fields = loader->options.fields, targets = TOKMAP_TARGETS | TOKMAP_TARGETS_AHEAD;
    const bool alone = (fields & TOKMAP_INPUTS) && !(fields & (targets | TOKMAP_LABELS));
    const char *what = alone ? "inputs" : "targets";
    const char *remedy = alone ? "add \"labels\" or \"loss_mask\" to fields, or set mask_targets "
                                 "to 1 where the program itself knows which tokens count"
                               : "set mask_targets to 1, or add \"loss_mask\" to fields";
    if (!(alone || (fields & targets)) || (fields & TOKMAP_LOSS_MASK) || loader->options.mask_targets)
        return TOKMAP_OK;
    for (uint64_t i = 0; i < loader->sources; i++)
        if (dataset_has_mask(loader->source[i].dataset))
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "source '%s' has a mask of the targets that count, but %s are requested without it; %s",
                             loader->source[i].name, what, remedy);
    if (loader->exclusions)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the run excludes documents from step %" PRIu64 " on, whose tokens are the pad id, but %s are "
                         "requested without what says which count; %s",
                         loader->exclusions->events[0].step, what, remedy);
    for (uint64_t i = 0; i < loader->sources; i++)
        if (run_source_pad(loader->run, i) > 1)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "the plan of source '%s' pads documents, but %s are requested without what says which "
                             "tokens count; %s",
                             loader->source[i].name, what, remedy);
    if (info->stride && info->stride < info->seq_len_most)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "windows of the run overlap (stride %" PRIu64 "), so some %s come twice; to count each once, "
                         "%s",
                         info->stride, what, remedy);
    for (uint64_t i = 0; alone && i < loader->sources; i++)
        if (loader->source[i].plan)
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "source '%s' has a plan, whose rows can end in padding, but inputs are requested without "
                             "what says which tokens count; %s",
                             loader->source[i].name, remedy);
    if (alone && info->tail_pad)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "the last rows of the run are padded (tail pad), but inputs are requested without what says "
                         "which tokens count; %s",
                         remedy);
    return TOKMAP_OK;
}

/* Opens the residency and the gathers. */
static enum tokmap_status open_sources(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                       struct tokmap_error *error)
{
    const struct tokmap_dataset **datasets = malloc(loader->sources * sizeof *datasets);
    if (!datasets)
        return error_set_memory(error, "a loader", loader->sources * sizeof *datasets);
    for (uint64_t i = 0; i < loader->sources; i++)
        datasets[i] = loader->source[i].dataset;
    const struct residency_options options = {
        .datasets = datasets,
        .sources = loader->sources,
        .window = read_ahead(loader, info),
        .drop_behind = loader->options.drop_behind,
        .trust_files = loader->options.trust_files,
        .unmapped = loader->options.deadline_ns != 0,
        .in_order = info->order == TOKMAP_SEQUENTIAL,
        .order = row_queue_window,
        .user = &loader->fill->queue,
    };
    enum tokmap_status status = residency_open(&loader->fill->residency, &options, error);
    free(datasets);
    const struct gather_options how = {
        .trust_files = loader->options.trust_files,
        .row_width = loader->needs.width,
        .pad_id = loader->pad_id,
    };
    for (uint64_t i = 0; i < loader->sources && !status; i++)
        status = gather_open(&loader->fill->gathers[i], &loader->fill->residency->sources[i], &how, error);
    return status;
}

/* Opens the queue of rows, and the plans of what is fetched for it. */
static enum tokmap_status open_queue(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                     struct tokmap_error *error)
{
    const struct assignment_rule rule = {loader->options.world, loader->options.rows, loader->balance,
                                         loader->options.nodes};
    enum tokmap_status status = row_queue_init(&loader->fill->queue, &loader->fill->schedule, &rule, loader->rows_most,
                                               read_ahead(loader, info), &loader->fill->context, error);
    loader->fill->queue.residency = loader->fill->residency;
    loader->fill->queue.gathers = loader->fill->gathers;
    if (!status)
        status = fetch_plan_new(&loader->fill->fetches, loader->fill->residency, &loader->fill->schedule, &rule,
                                &loader->fill->context, loader->fill->gathers, NULL, error);
    return status ? status : row_values_open_files(loader, read_ahead(loader, info), &rule, error);
}

/* ---- slots ---- */

/* Finds the most documents that a row of a phase can contain. */
static enum tokmap_status documents_of_phase(const struct tokmap_loader *loader, uint64_t number,
                                             const struct tokmap_phase_info *phase, uint64_t *most,
                                             struct tokmap_error *error)
{
    *most = 1;
    for (uint64_t i = 0; i < phase->shares; i++) {
        uint64_t of_source = 1;
        enum tokmap_status status = TOKMAP_OK;
        const struct loader_source *source = &loader->source[run_share_source(loader->run, number, i)];
        if (source->plan)
            of_source = min64(run_segments_most(loader->run), phase->seq_len);
        else
            status = capacity_documents_most(source->dataset, min64(phase->seq_len, source->tokens), &of_source, error);
        if (status)
            return status;
        *most = max64(*most, of_source);
    }
    *most += loader->needs.bounds; /* padding is a document too */
    return TOKMAP_OK;
}

/* Computes how many elements cu_seqlens needs, so that it has room for any batch of the run. */
static enum tokmap_status count_cu(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                   struct tokmap_error *error)
{
    uint64_t before_seq_len = 0, before_mixture = UINT64_MAX, documents = 1;
    uint64_t tokens;
    if (mul_overflows(loader->elements_most, loader->needs.slices, &tokens) || tokens > INT32_MAX)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " tokens of a batch are more than the 2^31 - 1 tokens that cu_seqlens can count; "
                         "lower rows",
                         loader->elements_most);
    for (uint64_t i = 0; i < info->phases; i++) {
        struct slice slice = {0};
        const struct tokmap_phase_info phase = info_of_phase(loader->run, i);
        /* If only the batch differs, the documents of the phase before are counted already. */
        if (phase.seq_len != before_seq_len || phase.mixture_step != before_mixture) {
            enum tokmap_status status = documents_of_phase(loader, i, &phase, &documents, error);
            if (status)
                return status;
        }
        before_seq_len = phase.seq_len;
        before_mixture = phase.mixture_step;
        slice_of_step(&slice, loader->run, loader->options.rank, loader->options.world, loader->options.rows,
                      phase.first_step);
        loader->needs.cu_elements = max64(loader->needs.cu_elements, slice.most * documents + 1);
    }
    return TOKMAP_OK;
}

/* Computes what slots need: *shape, that of the largest batch, says so for all. */
static enum tokmap_status shape_slots(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                      struct ring_shape *shape, struct tokmap_error *error)
{
    uint64_t bytes = 0, outputs = 0;
    if (loader->options.fields & FORM_CU) {
        enum tokmap_status status = count_cu(loader, info, error);
        if (status)
            return status;
    }
    for (uint64_t i = 0; i < info->phases; i++) {
        struct slice slice = {0};
        struct form form;
        uint64_t of_form;
        const struct tokmap_phase_info phase = info_of_phase(loader->run, i);
        slice_of_step(&slice, loader->run, loader->options.rank, loader->options.world, loader->options.rows,
                      phase.first_step);
        if (!form_make(&form, &loader->needs, slice.most, phase.seq_len) ||
            mul_overflows(slice.most, form.row_tokens, &of_form))
            return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                             "%" PRIu64 " rows of %" PRIu64 " bytes do not fit any memory; lower rows", slice.most,
                             (phase.seq_len + info->lookahead) * loader->needs.width);
        if (form.layout.bytes > bytes)
            *shape = form.shape;
        if (of_form >= outputs)
            loader->widest = form;
        bytes = max64(bytes, form.layout.bytes);
        outputs = max64(outputs, of_form);
    }
    shape->rows_most = loader->rows_most * loader->needs.chunks;
    shape->bytes_least = bytes;
    return TOKMAP_OK;
}

static enum tokmap_status open_backend(struct tokmap_loader *loader, struct tokmap_error *error)
{
    /* The addresses do not matter, only which fields are asked for. */
    int32_t any = 0;
    const struct tokmap_out all = {sizeof all, TOKMAP_ID_I64, &any, &any, &any, &any,   &any,  &any,
                                   &any,       &any,          &any, &any, &any, {NULL}, {NULL}};
    struct expand_arguments largest;
    if (loader->on_host)
        return backend_host_open(&loader->backend, error);
    consumer_describe_work(loader, &loader->widest, loader->widest.shape.rows / loader->needs.chunks, &all, &largest);
    const char *on_host = loader->needs.chunks_most ? "the kernel has no chunks of documents" : NULL;
    return backend_cuda_open(&loader->backend, loader->options.device,
                             backend_cuda_output_bytes(&largest) + loader->widest.shape.values_bytes, on_host, error);
}

static enum tokmap_status open_ring(struct tokmap_loader *loader, const struct tokmap_run_info *info,
                                    struct tokmap_error *error)
{
    struct ring_shape shape;
    enum tokmap_status status = shape_slots(loader, info, &shape, error);
    if (status)
        return status;
    uint64_t one = ring_slot_bytes(&shape), given = loader->options.ring_bytes, slots, bytes;
    if (given && one > given)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "a batch of %" PRIu64 " rows needs %" PRIu64 " bytes (%" PRIu64 " of them for cu_seqlens), "
                         "but ring_bytes is %" PRIu64 "; raise it, or lower rows",
                         shape.rows, one, shape.cu_elements * (uint64_t)sizeof(int32_t), given);
    slots = given ? given / one : max64(min64(RING_BYTES / one, RING_SLOTS), RING_SLOTS_LEAST);
    /* Without a producer thread one slot is enough, unless a copy from it to a GPU may still be under way. */
    slots = min64(slots, loader->options.threads ? RING_SLOTS_MOST : loader->on_host ? 1 : RING_SLOTS_LEAST);
    /* The system promises memory that it does not have until it is touched, so an impossible size is refused here. */
    if (mul_overflows(slots, one, &bytes) || (bytes > RING_BYTES && bytes > os_memory_limit()))
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " batches of %" PRIu64 " rows, with %" PRIu64 " bytes each, do not fit the memory "
                         "of this machine; lower rows or ring_bytes",
                         slots, shape.rows, one);
    loader->ring_bytes = bytes;
    status = open_backend(loader, error);
    if (!status)
        status = ring_new(&loader->ring, loader->backend, &shape, (uint32_t)slots, error);
    loader->statistics.all.ring_ready_lowest = (uint32_t)slots;
    return status;
}

/* ---- other threads ---- */

/* Notes the process that has opened the loader, unless a child after fork() may use it. pool: threads read for it. */
static void loader_mark_process(struct tokmap_loader *loader, bool pool)
{
    if (loader->options.threads || !loader->on_host || loader->trace || pool)
        loader->thread.process = os_process_id();
}

static enum tokmap_status start_producer(struct tokmap_loader *loader, struct tokmap_error *error)
{
    if (!loader->options.threads)
        return TOKMAP_OK;
    int system = os_thread_start(&loader->thread.producer, "tokmap-loader", producer_run, loader);
    if (system)
        return error_set_system(error, system, NULL, TOKMAP_NO_OFFSET,
                                "cannot start the producer thread; raise the limit on threads, or set threads "
                                "to 0");
    return TOKMAP_OK;
}

/* ---- slow storage ---- */

/* The probe reads one page of a row that is delivered soon and that is not in the page cache, and measures the time. If
 * all of the first rows are in the page cache, or the kernel does not say, the read tells little; then a file system
 * that is not local counts as slow. */
#define PROBE_ROWS 16
#define PROBE_BYTES 4096
#define SLOW_NS 1000000
#define DEADLINE_THREADS 2 /* a read that hangs holds a thread, and another one may hang, too */

/* Finds a stretch to probe: the first one that is not in the page cache, or else the first one. Returns false if
 * the run has no stretch of a file, because its data is synthetic or padding. */
static bool find_stretch(struct tokmap_loader *loader, struct stretch *found, bool *cold)
{
    struct row_extents row;
    bool any = false;
    *cold = false;
    for (uint64_t n = 0; n < PROBE_ROWS && n < loader->rows_most && !*cold; n++) {
        struct stretch stretch;
        if (!row_queue_window(&loader->fill->queue, n, &row))
            break;
        if (!row.count)
            continue;
        struct residency_source *source = &loader->fill->residency->sources[row.source];
        if (!source->views.views || source->remote ||
            shard_views_stretch(&source->views, row.extents[0].first_token, row.extents[0].tokens, &stretch, NULL))
            continue;
        *cold = !residency_is_cached(source, &row.extents[0]);
        if (!any || *cold)
            *found = stretch;
        any = true;
    }
    return any;
}

/* Returns whether the storage is slow. */
static bool probe(struct tokmap_loader *loader)
{
    struct stretch stretch;
    uint8_t page[PROBE_BYTES];
    bool cold;
    size_t got;
    if (!find_stretch(loader, &stretch, &cold))
        return false;
    const struct page_check *check = &loader->fill->residency->sources[0].check; /* any: no pool is set yet */
    uint64_t offset, end;
    if (!sealed_rows_place(check, &stretch, &offset, &end))
        return false;
    const uint64_t bytes = min64(sizeof page, end - offset);
    const uint64_t from = os_clock_ns();
    int system = read_pool_read(loader->fill->pool, stretch.view->file.fd, page, bytes, offset, &got);
    loader->fill->probe_ns = max64(os_clock_ns() - from, 1);
    /* A read that fails is reported by the row that needs it. */
    return system || loader->fill->probe_ns >= SLOW_NS || (!cold && !os_file_is_local(stretch.view->file.fd));
}

/* Probes the storage and opens the pool, as options.io_threads and options.deadline_ns ask. The queue and the residency
 * are open.
 *   window     rows to ask for ahead
 *   row_bytes  of the largest row
 * Statuses: OK, ERROR_MEMORY, ERROR_IO (a thread could not be started). */
static enum tokmap_status storage_open(struct tokmap_loader *loader, uint32_t window, uint64_t row_bytes,
                                       struct tokmap_error *error)
{
    const uint32_t threads = loader->options.io_threads;
    const uint64_t deadline = loader->options.deadline_ns;
    if (!threads && !deadline)
        return TOKMAP_OK;
    const struct read_pool_options options = {
        .threads = deadline && threads < DEADLINE_THREADS ? DEADLINE_THREADS : threads,
        .buffers = threads ? window * (1 + loader->fill->values.count) + threads : 2 * DEADLINE_THREADS,
        .buffer_bytes = max64(row_bytes + 2 * TOKEN_PAGE_BYTES, /* a row has parts of two pages that are compared */
                              row_values_bytes(&loader->fill->values, info_of_run(loader->run).seq_len_most)),
        .deadline_ns = deadline,
    };
    enum tokmap_status status = read_pool_open(&loader->fill->pool, &options, error);
    if (status)
        return status;
    const bool slow = threads && probe(loader);
    if (!slow && !deadline) {
        read_pool_close(loader->fill->pool);
        loader->fill->pool = NULL;
    }
    residency_set_pool(loader->fill->residency, loader->fill->pool, slow, deadline != 0);
    row_values_set_pool(&loader->fill->values, loader->fill->pool, slow, deadline != 0);
    row_queue_restart(&loader->fill->queue);
    return TOKMAP_OK;
}

/* ---- opening ---- */

static enum tokmap_status make(struct tokmap_loader *loader, const struct tokmap_cursor *cursor,
                               struct tokmap_error *error)
{
    struct cuda_device device;
    const struct tokmap_run_info info = info_of_run(loader->run);
    loader->on_host = cuda_device_is_host(loader->options.device);
    enum tokmap_status status = check_options(&loader->options, &info, error);
    if (!status)
        status = context_check(&loader->options, loader->run, error);
    if (!status)
        status = find_start(loader, loader->options.resume, cursor, error);
    /* Looked for before the documents are counted, which takes a while, so that a missing device is reported at
     * once. */
    if (!status && !loader->on_host)
        status = cuda_device_find(&device, loader->options.device, error);
    if (!status)
        status = measure_phases(loader, &info, error);
    if (status)
        return status;
    if (loader->options.balance != 0 && (status = row_cost_scale(loader->options.balance, &loader->balance, error)))
        return status;
    loader->needs.lookahead = info.lookahead;
    loader->needs.fields = loader->options.fields;
    loader->needs.slices = loader->options.context_world;
    loader->needs.mask_targets = loader->options.mask_targets;
    loader->needs.values = &loader->fill->values;
    status = context_open(&loader->fill->context, &loader->options, loader->run, form_ahead(&loader->needs), error);
    if (status)
        return status;
    const struct context *context = &loader->fill->context;
    const bool fixed = columns_are_fixed(&context->columns);
    loader->needs.chunks = fixed && context_cuts(context) ? context->chunks_most : 1;
    loader->needs.chunks_most = fixed ? 0 : context->chunks_most;
    loader->stride = info.stride;
    loader->pad_id = (uint32_t)info.pad_id;
    schedule_init(&loader->fill->schedule, loader->run, loader->options.rank, loader->options.world,
                  loader->options.rows, loader->fill->cursor.step);
    loader->next.taken = loader->start.schedule = loader->fill->schedule;
    loader->next.position = loader->start.cursor = loader->fill->cursor;
    loader->statistics.step = loader->next.position.step;
    status = describe_sources(loader, &info, error);
    if (!status)
        status = check_masks(loader, &info, error);
    if (!status)
        status = row_values_open(loader, loader->options.values, error);
    if (!status)
        status = open_sources(loader, &info, error);
    if (!status)
        status = open_ring(loader, &info, error);
    if (!status)
        status = open_queue(loader, &info, error);
    if (!status)
        status = counted_open(loader, error);
    return status ? status : storage_open(loader, read_ahead(loader, &info), row_bytes_most(loader, &info), error);
}

/* Makes a loader that delivers nothing yet: it has neither a producer thread nor a trace. options: complete, with its
 * pointers. cursor: where it begins, whose past is checked; NULL: at options->resume.
 * Statuses: those of tokmap_loader_open(). */
static enum tokmap_status loader_make(struct tokmap_loader **made, const struct tokmap_run *run,
                                      const struct tokmap_loader_options *options, const struct tokmap_cursor *cursor,
                                      struct tokmap_error *error)
{
    struct tokmap_loader *loader = calloc(1, sizeof *loader);
    struct loader_fill *fill = calloc(1, sizeof *fill);
    *made = NULL;
    if (!loader || !fill) {
        free(loader);
        free(fill);
        return error_set_memory(error, "a loader", sizeof *loader + sizeof *fill);
    }
    loader->fill = fill;
    loader->run = run;
    loader->options = *options;
    run_walk_init(&loader->next.named, run);
    enum tokmap_status status = run_walk_keep(&loader->next.named, error);
    if (!status)
        status = make(loader, cursor, error);
    /* The caller's memory. */
    loader->options.resume = loader->options.device = loader->options.trace = loader->options.values = NULL;
    if (status)
        tokmap_loader_close(loader);
    else
        *made = loader;
    return status;
}

enum tokmap_status tokmap_loader_open(struct tokmap_loader **made, const struct tokmap_run *run,
                                      const struct tokmap_loader_options *options, struct tokmap_error *error)
{
    static const struct tokmap_loader_options defaults = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader_options given;
    struct tokmap_loader *loader;
    if (!made)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "loader is NULL; pass the address of a handle");
    *made = NULL;
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run is NULL; open a run first");
    enum tokmap_status status =
        struct_copy_in(&given, options, &defaults, sizeof defaults, "tokmap_loader_options", error);
    if (!status && !given.context_world)
        given.context_world = 1;
    if (!status)
        status = loader_make(&loader, run, &given, NULL, error);
    if (status)
        return status;
    if (given.trace) {
        const struct trace_header header = loader_trace_header(loader, &loader->start.cursor);
        status = trace_open(&loader->trace, given.trace, &header, error);
    }
    loader_mark_process(loader, loader->fill->pool);
    if (!status)
        status = start_producer(loader, error);
    if (status)
        tokmap_loader_close(loader);
    else
        *made = loader;
    return status;
}

void tokmap_loader_close(struct tokmap_loader *loader)
{
    if (!loader)
        return;
    if (loader->thread.producer && !loader_is_forked(loader))
        producer_end(loader);
    trace_close(loader->trace, loader_is_forked(loader));
    if (!loader_is_forked(loader))
        read_pool_close(loader->fill->pool);
    ring_free(loader->ring);
    if (loader->backend)
        loader->backend->calls->close(loader->backend, loader_is_forked(loader));
    run_walk_free(&loader->next.named);
    row_queue_free(&loader->fill->queue);
    fetch_plan_free(loader->fill->fetches);
    for (uint64_t i = 0; i < loader->sources; i++)
        gather_close(loader->fill->gathers[i]);
    residency_close(loader->fill->residency);
    context_close(&loader->fill->context);
    counted_close(&loader->fill->counted);
    row_values_close(loader);
    free(loader->fill->gathers);
    free(loader->source);
    free(loader->fill->extents);
    free(loader->statistics.sources);
    free(loader->fill);
    free(loader);
}

/* ---- moving ---- */

/*
 * An open loader continues as another rank, or with another run, at a step boundary.
 *
 * A second loader is made for the new place, and the first one delivers until that has succeeded. Then the two exchange
 * everything except what stays with the handle: the producer thread, which is paused meanwhile, the trace, and the
 * statistics. The second one is closed with the old parts. So a failure changes nothing, and there is no part of a
 * loader that opening sets up and moving forgets.
 */

/* Counts what belongs to the old parts into what is kept. */
static void keep_counts(struct tokmap_loader *loader)
{
    struct tokmap_stats *all = &loader->statistics.all;
    struct read_pool_counts pool = {0};
    struct backend_facts facts;
    loader->backend->calls->facts(loader->backend, &facts);
    if (loader->fill->pool)
        read_pool_counts(loader->fill->pool, &pool);
    for (uint64_t i = 0; i < loader->sources; i++) {
        const uint64_t bytes = gather_bytes(loader->fill->gathers[i]);
        all->bytes += bytes;
        loader->statistics.sources[i].bytes += bytes;
    }
    all->cold_reads += loader->fill->cold_reads;
    all->host_expanded += facts.host_expanded;
    all->late_copies += facts.late_copies;
    all->timeouts += pool.timeouts;
    all->io_reads += pool.ahead;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct loader_source *const *)a)->name, (*(const struct loader_source *const *)b)->name);
}

/* Copies the counts of the sources of `from` to the sources with the same names. order: room for from->sources. */
static void carry_sources(struct tokmap_loader *into, const struct tokmap_loader *from,
                          const struct loader_source **order)
{
    for (uint64_t i = 0; i < from->sources; i++)
        order[i] = &from->source[i];
    qsort(order, from->sources, sizeof *order, by_name);
    for (uint64_t i = 0; i < into->sources; i++) {
        const struct loader_source *wanted = &into->source[i];
        const struct loader_source **found = bsearch(&wanted, order, from->sources, sizeof *order, by_name);
        if (found)
            into->statistics.sources[i] = from->statistics.sources[*found - from->source];
    }
}

/* Exchanges the parts of two loaders, all but what stays with a handle. The producer thread may be on its way to sleep
 * and reads its turns, which are among the latter. */
static void exchange(struct tokmap_loader *loader, struct tokmap_loader *other)
{
    const size_t bytes = offsetof(struct tokmap_loader, thread);
    struct tokmap_loader before;
    struct tokmap_source_stats *counts = loader->statistics.sources;
    assert(!other->thread.producer && !other->trace && !other->thread.process);
    memcpy(&before, loader, bytes);
    memcpy(loader, other, bytes);
    memcpy(other, &before, bytes);
    loader->statistics.sources = other->statistics.sources;
    other->statistics.sources = counts;
}

/* `other` is made for where the loader is to continue. */
static enum tokmap_status replace(struct tokmap_loader *loader, struct tokmap_loader *other, struct tokmap_error *error)
{
    const struct loader_source **order = malloc(loader->sources * sizeof *order);
    if (!order)
        return error_set_memory(error, "a loader", loader->sources * sizeof *order);
    enum tokmap_status status = TOKMAP_OK;
    if (loader->trace) {
        const struct trace_header header = loader_trace_header(other, &other->start.cursor);
        status = trace_begin(loader->trace, &header, error);
    }
    if (status) {
        free(order);
        return status;
    }
    /* From here on nothing can fail. The storage may have become slow, and have threads that read since this move. */
    loader_mark_process(loader, other->fill->pool);
    if (loader->thread.producer)
        producer_pause(loader);
    keep_counts(loader);
    carry_sources(other, loader, order);
    free(order);
    exchange(loader, other);
    consumer_restart(loader);
    loader->statistics.all.ring_ready_lowest = ring_slots(loader->ring);
    if (loader->thread.producer)
        producer_resume(loader);
    return TOKMAP_OK;
}

static enum tokmap_status move(struct tokmap_loader *loader, const struct tokmap_run *run, uint64_t rank,
                               uint64_t world, struct tokmap_error *error)
{
    struct tokmap_loader_options options = loader->options;
    struct tokmap_loader *other;
    struct backend_facts facts;
    char device[32], names[ROW_VALUES_NAMES];
    loader->backend->calls->facts(loader->backend, &facts);
    (void)snprintf(device, sizeof device, "cuda:%d", facts.device);
    if (options.nodes) { /* a node keeps its number of ranks */
        const uint64_t per_node = options.world / options.nodes;
        if (world > per_node && world % per_node)
            return error_set_field(error, TOKMAP_ERROR_RANGE, NULL, "world",
                                   " is %" PRIu64 ", which is not a multiple of the %" PRIu64
                                   " ranks of a node; use such a number, or open another loader with the state",
                                   world, per_node);
        options.nodes = max64(world / per_node, 1);
    }
    options.rank = rank;
    options.world = world;
    options.device = loader->on_host ? NULL : device;
    options.values = row_values_names(&loader->fill->values, names);
    enum tokmap_status status = loader_make(&other, run, &options, &loader->next.position, error);
    if (status)
        return status;
    status = replace(loader, other, error);
    tokmap_loader_close(other);
    return status;
}

enum tokmap_status tokmap_loader_repartition(struct tokmap_loader *loader, uint64_t rank, uint64_t world,
                                             struct tokmap_error *error)
{
    if (!loader)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "loader is NULL; pass one");
    enum tokmap_status status = consumer_check_fork(loader, error);
    return status ? status : move(loader, loader->run, rank, world, error);
}

enum tokmap_status tokmap_loader_reload(struct tokmap_loader *loader, const struct tokmap_run *run,
                                        struct tokmap_error *error)
{
    if (!loader || !run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "%s is NULL; pass one",
                         loader ? "run" : "loader");
    enum tokmap_status status = consumer_check_fork(loader, error);
    return status ? status : move(loader, run, loader->options.rank, loader->options.world, error);
}
