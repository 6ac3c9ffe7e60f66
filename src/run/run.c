/*
 * run.c - opens a run from its text or its arguments: its dataset, its end, its skipped steps, its past.
 */
#include "run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset/dataset.h"
#include "platform/os.h"
#include "not_a_run.h"
#include "text/path.h"
#include "run_state.h"

/* An error names the line of the run file that is wrong. A run made from arguments has no lines. */
#define range_wrong(run, error, line, ...)                                                                             \
    error_set_line((error), TOKMAP_ERROR_RANGE, (run)->path, (run)->from_text ? (line) : 0, __VA_ARGS__)

/* Written before the name of a value in a message: directives have plain names, and arguments are fields of options. */
static const char *options_prefix(const struct tokmap_run *run)
{
    return run->from_text ? "" : "options.";
}

/* ---- steps ---- */

uint64_t run_delivered_before(const struct tokmap_run *run, uint64_t step)
{
    return step - skips_before(&run->skips, step);
}

uint64_t run_next_step(const struct tokmap_run *run, uint64_t step)
{
    step = skips_next_delivered(&run->skips, step);
    return step < run->steps_most ? step : TOKMAP_FOREVER;
}

/* ---- opening ---- */

/* Sets the number of windows of an epoch. */
static enum tokmap_status count_windows(struct tokmap_run *run, struct tokmap_error *error)
{
    const struct run_spec *spec = &run->spec;
    run->row_tokens = spec->seq_len + spec->lookahead;
    if (run->tokens < run->row_tokens) {
        if (run->tokens > spec->lookahead)
            return range_wrong(run, error, spec->lines[RUN_SEQ_LEN],
                               "a sequence of %" PRIu64 " tokens plus a lookahead of %" PRIu64 " is longer than "
                               "dataset '%s', which has %" PRIu64 " tokens; lower %sseq_len to %" PRIu64 " or less, or "
                               "use a larger dataset",
                               spec->seq_len, spec->lookahead, spec->sources[0].data, run->tokens, options_prefix(run),
                               run->tokens - spec->lookahead);
        return range_wrong(run, error, spec->lines[RUN_SEQ_LEN],
                           "a sequence of %" PRIu64 " tokens plus a lookahead of %" PRIu64 " is longer than dataset "
                           "'%s', which has %" PRIu64 " tokens; use a larger dataset",
                           spec->seq_len, spec->lookahead, spec->sources[0].data, run->tokens);
    }
    run->windows = (run->tokens - spec->lookahead) / spec->seq_len;
    assert(run->windows > 0);
    return TOKMAP_OK;
}

/* Sets the end of the run. */
static enum tokmap_status count_steps(struct tokmap_run *run, struct tokmap_error *error)
{
    const struct run_spec *spec = &run->spec;
    uint64_t most = RUN_DRAWS_MOST / spec->batch;
    run->steps = spec->steps;
    if (spec->passes != TOKMAP_FOREVER) {
        unsigned __int128 draws = (unsigned __int128)spec->passes * run->windows;
        if (draws > RUN_DRAWS_MOST)
            return range_wrong(run, error, spec->lines[RUN_PASSES],
                               "%" PRIu64 " passes over %" PRIu64 " windows have more than 2^63 rows; lower %spasses",
                               spec->passes, run->windows, options_prefix(run));
        run->steps = (uint64_t)draws / spec->batch;
        run->remainder = (uint64_t)draws % spec->batch;
        if (run->steps == 0)
            return range_wrong(run, error, spec->lines[RUN_BATCH],
                               "%" PRIu64 " passes over %" PRIu64 " windows do not fill a global batch of %" PRIu64 " "
                               "rows; lower %sbatch or %sseq_len, or raise %spasses",
                               spec->passes, run->windows, spec->batch, options_prefix(run), options_prefix(run),
                               options_prefix(run));
    }
    if (spec->steps != TOKMAP_FOREVER && spec->steps > most)
        return range_wrong(run, error, spec->lines[RUN_STEPS],
                           "%" PRIu64 " steps of %" PRIu64 " rows have more than 2^63 rows; lower %ssteps to %" PRIu64
                           " or less",
                           spec->steps, spec->batch, options_prefix(run), most);
    run->steps_most = min64(run->steps, most);
    return TOKMAP_OK;
}

/* Returns the path of a source's dataset: `data` in `folder`, or only `data` if it is absolute or synthetic or folder
 * is NULL. Free it with free(). NULL: out of memory. */
static char *data_path(const char *folder, const char *data)
{
    const bool complete = path_is_absolute(data) || strncmp(data, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0;
    return path_in(folder && !complete ? folder : "", data);
}

/* Reports that the dataset that a line of a run names does not exist. */
static enum tokmap_status no_dataset(const struct tokmap_run *run, const char *name, struct tokmap_error *error)
{
    const struct run_spec *spec = &run->spec;
    const bool moved = strcmp(name, spec->sources[0].data) != 0;
    return error_set_line(error, TOKMAP_ERROR_NOT_FOUND, run->path, spec->lines[RUN_SOURCE],
                          "source '%s' is the dataset '%.200s', which was looked for as '%.300s' and does not exist%s; "
                          "correct the line, or put the dataset there",
                          spec->sources[0].name, spec->sources[0].data, name,
                          moved ? " (a relative name starts from the folder of the run file)" : "");
}

/* Opens the dataset of a run whose spec is complete, and derives the rest. */
static enum tokmap_status open_dataset(struct tokmap_run *run, const char *name, struct tokmap_error *error)
{
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    struct tokmap_dataset_info info;
    options.reading = run->spec.reading;
    struct tokmap_error reason = {0};
    enum tokmap_status status = tokmap_dataset_open(&run->dataset, name, &options, &reason);
    /* A run of arguments has no line, and the message about the dataset's name says all. What is missing may also be a
     * shard that a manifest names, which is reported with the manifest's line. */
    if (status == TOKMAP_ERROR_NOT_FOUND && run->from_text && !reason.line && reason.system)
        return no_dataset(run, name, error);
    if (status && error)
        *error = reason;
    if (status)
        return status;
    dataset_describe(run->dataset, &info);
    run->tokens = info.tokens;
    if ((status = count_windows(run, error)) || (status = count_steps(run, error)) ||
        (status = skips_merge(&run->skips, run->spec.skips, run->spec.skip_count, error)))
        return status;
    past_init(&run->past, &run->spec, &run->skips, info.content);
    return TOKMAP_OK;
}

/* Refuses what the text of a run may say and this version cannot do. */
static enum tokmap_status check_supported(const struct run_spec *spec, const char *path, struct tokmap_error *error)
{
    const struct source_line *source = &spec->sources[spec->source_count > 1];
    const struct {
        bool used;
        uint64_t line;
        const char *what;
    } later[] = {
        {spec->source_count > 1, source->line, "runs of more than one source"},
        {spec->phase_count > 0, spec->lines[RUN_PHASE], "'phase'"},
        {source->plan != NULL, source->line, "plans of rows"},
        {source->epochs_most != 0, source->line, "'epochs<='"},
        {spec->stride != 0, spec->lines[RUN_STRIDE], "'stride'"},
        {spec->tail_pad, spec->lines[RUN_TAIL], "'tail pad'"},
        {spec->ordering == TOKMAP_BLOCKS, spec->lines[RUN_ORDER], "'order blocks'"},
    };
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (later[i].used)
            return error_set_line(error, TOKMAP_ERROR_UNSUPPORTED, path, later[i].line,
                                  "this version does not support %s; remove it, or use a newer version", later[i].what);
    return TOKMAP_OK;
}

/* Takes ownership of *spec, whatever the status. */
static enum tokmap_status run_new(struct tokmap_run **out, struct run_spec *spec, const char *path, const char *folder,
                                  bool from_text, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    struct tokmap_run *run = calloc(1, sizeof *run);
    if (!run) {
        run_spec_free(spec);
        return error_set_memory(error, "the run", sizeof *run);
    }
    run->spec = *spec;
    run->from_text = from_text;
    if (path && !(run->path = strdup(path))) {
        status = error_set_memory(error, "the run's path", strlen(path) + 1);
        goto fail;
    }
    if ((status = check_supported(&run->spec, path, error)))
        goto fail;
    run->data = data_path(folder, run->spec.sources[0].data);
    if (!run->data) {
        status = error_set_memory(error, "the dataset's path", strlen(run->spec.sources[0].data) + 1);
        goto fail;
    }
    status = open_dataset(run, run->data, error);
    if (status)
        goto fail;
    *out = run;
    return TOKMAP_OK;
fail:
    tokmap_run_close(run);
    return status;
}

/* Reads the whole file, which may be a pipe. Free *text with free(). */
static enum tokmap_status read_text(const char *path, char **text, size_t *bytes, struct tokmap_error *error)
{
    int fd;
    int failed = os_open(path, OS_READ, &fd);
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "cannot open the run file");
    size_t used = 0, capacity = 16384;
    char *buffer = malloc(capacity);
    enum tokmap_status status = TOKMAP_OK;
    while (buffer) {
        size_t got = 0;
        failed = os_read(fd, buffer + used, capacity - used, &got);
        if (failed) {
            status = error_set_system(error, failed, path, used, "cannot read the run file");
            break;
        }
        used += got;
        if (got == 0 || used > RUN_TEXT_MOST)
            break; /* the parser refuses a text that is too long */
        if (used == capacity) {
            char *grown = realloc(buffer, capacity *= 2);
            if (!grown)
                free(buffer);
            buffer = grown;
        }
    }
    os_close(fd);
    if (!buffer)
        return error_set_memory(error, "the run's text", capacity);
    if (status) {
        free(buffer);
        return status;
    }
    *text = buffer;
    *bytes = used;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_run_open(struct tokmap_run **run, const char *path, struct tokmap_error *error)
{
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "run is NULL; pass the address of a handle");
    *run = NULL;
    if (!path)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "path is NULL; pass the path of a run file");
    char *text = NULL, *folder = NULL;
    size_t bytes = 0;
    struct run_spec spec;
    enum tokmap_status status = read_text(path, &text, &bytes, error);
    if (!status)
        status = run_text_read(&spec, text, bytes, path, error);
    if (status)
        status = not_a_run(path, text, bytes, status, error);
    free(text);
    if (status)
        return status;
    const size_t folder_bytes = path_folder_bytes(path);
    if (folder_bytes && !(folder = strndup(path, folder_bytes))) {
        run_spec_free(&spec);
        return error_set_memory(error, "the run's folder", folder_bytes + 1);
    }
    status = run_new(run, &spec, path, folder, true, error);
    free(folder);
    return status;
}

enum tokmap_status tokmap_run_parse(struct tokmap_run **run, const char *text, const char *folder,
                                    struct tokmap_error *error)
{
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "run is NULL; pass the address of a handle");
    *run = NULL;
    if (!text)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "text is NULL; pass the text of a run");
    struct run_spec spec;
    enum tokmap_status status = run_text_read(&spec, text, strlen(text), NULL, error);
    return status ? status : run_new(run, &spec, NULL, folder, true, error);
}

static enum tokmap_status check_argument(const char *name, uint64_t value, uint64_t least, uint64_t most,
                                         struct tokmap_error *error)
{
    if (value >= least && value <= most)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                     "options.%s is %" PRIu64 "; it must be %" PRIu64 " to %" PRIu64, name, value, least, most);
}

static enum tokmap_status check_arguments(const struct tokmap_run_options *options, struct tokmap_error *error)
{
    enum tokmap_status status;
    if (!options->data || !options->data[0])
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.data is missing; set it to the name of a dataset: a prefix, a folder, or a manifest");
    if ((status = check_argument("seq_len", options->seq_len, 1, RUN_SEQ_LEN_MOST, error)) ||
        (status = check_argument("lookahead", options->lookahead, 0, RUN_SEQ_LEN_MOST, error)) ||
        (status = check_argument("batch", options->batch, 1, RUN_BATCH_MOST, error)))
        return status;
    if (options->ordering != TOKMAP_SHUFFLE && options->ordering != TOKMAP_SEQUENTIAL)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "options.ordering is %d; set it to TOKMAP_SHUFFLE or TOKMAP_SEQUENTIAL",
                         (int)options->ordering);
    if (options->steps != TOKMAP_FOREVER && options->passes != TOKMAP_FOREVER)
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
            "options.steps and options.passes are both set; set one of them, and leave the other at TOKMAP_FOREVER");
    if (options->steps != TOKMAP_FOREVER &&
        (status = check_argument("steps", options->steps, 1, RUN_DRAWS_MOST, error)))
        return status;
    if (options->passes != TOKMAP_FOREVER)
        return check_argument("passes", options->passes, 1, RUN_DRAWS_MOST, error);
    return TOKMAP_OK;
}

enum tokmap_status tokmap_run_make(struct tokmap_run **run, const struct tokmap_run_options *given,
                                   struct tokmap_error *error)
{
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "run is NULL; pass the address of a handle");
    *run = NULL;
    const struct tokmap_run_options defaults = TOKMAP_RUN_OPTIONS_INIT;
    struct tokmap_run_options options;
    enum tokmap_status status = struct_copy_in(&options, given, &defaults, sizeof options, "tokmap_run_options", error);
    if (status || (status = check_arguments(&options, error)))
        return status;
    struct run_spec spec = {
        .seq_len = options.seq_len,
        .lookahead = options.lookahead,
        .batch = options.batch,
        .seed = options.seed,
        .steps = options.steps,
        .passes = options.passes,
        .ordering = options.ordering,
        .reading = options.reading,
        .passes_of = SIZE_MAX,
        .pad_id = TOKMAP_NO_ID,
        .sources = calloc(1, sizeof *spec.sources),
    };
    spec.source_count = spec.sources ? 1 : 0;
    if (!spec.sources || !(spec.sources[0].name = strdup("data")) || !(spec.sources[0].data = strdup(options.data))) {
        run_spec_free(&spec);
        return error_set_memory(error, "the run's source", strlen(options.data) + 6);
    }
    return run_new(run, &spec, NULL, NULL, false, error);
}

void tokmap_run_close(struct tokmap_run *run)
{
    if (!run)
        return;
    tokmap_dataset_close(run->dataset);
    run_spec_free(&run->spec);
    free(run->path);
    free(run->data);
    skips_free(&run->skips);
    free(run);
}

/* ---- properties ---- */

void run_describe(const struct tokmap_run *run, struct tokmap_run_info *info)
{
    *info = (struct tokmap_run_info){
        .size = sizeof *info,
        .seq_len = run->spec.seq_len,
        .lookahead = run->spec.lookahead,
        .batch = run->spec.batch,
        .seed = run->spec.seed,
        .ordering = run->spec.ordering,
        .sources = 1,
        .steps = run->steps,
        .delivered = run->steps == TOKMAP_FOREVER ? TOKMAP_FOREVER : run_delivered_before(run, run->steps),
        .remainder = run->remainder,
    };
}

enum tokmap_status tokmap_run_info(const struct tokmap_run *run, struct tokmap_run_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    struct tokmap_run_info filled;
    run_describe(run, &filled);
    return struct_copy_out(info, &filled, sizeof filled, "tokmap_run_info", NULL);
}

enum tokmap_status tokmap_run_source(const struct tokmap_run *run, uint64_t source, struct tokmap_source_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    if (source > 0)
        return TOKMAP_ERROR_RANGE;
    const struct tokmap_source_info filled = {
        .name = run->spec.sources[0].name,
        .dataset = run->dataset,
        .windows = run->windows,
        .tail = run->tokens - run->windows * run->spec.seq_len,
        .data = run->data,
    };
    return struct_copy_out(info, &filled, sizeof filled, "tokmap_source_info", NULL);
}

const struct tokmap_dataset *run_dataset(const struct tokmap_run *run, uint64_t source)
{
    return source == 0 ? run->dataset : NULL;
}

int tokmap_run_delivers(const struct tokmap_run *run, uint64_t step)
{
    return run && step < run->steps_most && run_next_step(run, step) == step;
}

uint64_t tokmap_run_rows(const struct tokmap_run *run, uint64_t step)
{
    return run && step < run->steps_most ? run->spec.batch : 0;
}

void run_rank_rows(uint64_t rows, uint64_t rank, uint64_t world, uint64_t *first, uint64_t *count)
{
    assert(rank < world);
    *first = mul_div(rows, rank, world);
    *count = mul_div(rows, rank + 1, world) - *first;
}
