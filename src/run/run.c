/*
 * run.c - opening a run: its text or its arguments, its dataset, its end, its skipped steps.
 */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"
#include "run_state.h"

/* ---- errors that name a line, or an argument ---- */

#define range_wrong(run, error, line, ...)                                                                             \
    error_set_line((error), TOKMAP_ERROR_RANGE, (run)->path, (run)->from_text ? (line) : 0, __VA_ARGS__)

/* ---- skipped steps ---- */

static int compare_skips(const void *a, const void *b)
{
    const struct skip_line *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static enum tokmap_status merge_skips(struct tokmap_run *run, struct tokmap_error *error)
{
    size_t count = run->spec.skip_count;
    if (count == 0)
        return TOKMAP_OK;
    struct skip_line *sorted = malloc(count * sizeof *sorted);
    run->skips = malloc(count * sizeof *run->skips);
    if (!sorted || !run->skips) {
        free(sorted);
        return error_set_memory(error, "the run's skipped steps", count * (sizeof *sorted + sizeof *run->skips));
    }
    memcpy(sorted, run->spec.skips, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_skips);
    uint64_t skipped = 0;
    for (size_t i = 0; i < count; i++) {
        struct skip_range *last = run->skip_count ? &run->skips[run->skip_count - 1] : NULL;
        if (last && sorted[i].first <= last->end) {
            skipped += max64(last->end, sorted[i].end) - last->end;
            last->end = max64(last->end, sorted[i].end);
        } else {
            run->skips[run->skip_count++] =
                (struct skip_range){.first = sorted[i].first, .end = sorted[i].end, .before = skipped};
            skipped += sorted[i].end - sorted[i].first;
        }
    }
    free(sorted);
    return TOKMAP_OK;
}

size_t run_skip_at(const struct tokmap_run *run, uint64_t step)
{
    size_t low = 0, high = run->skip_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->skips[middle].end > step)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t run_delivered_before(const struct tokmap_run *run, uint64_t step)
{
    size_t at = run_skip_at(run, step);
    uint64_t skipped = 0;
    if (at < run->skip_count) {
        const struct skip_range *range = &run->skips[at];
        skipped = range->before + (step > range->first ? step - range->first : 0);
    } else if (at > 0) {
        const struct skip_range *range = &run->skips[at - 1];
        skipped = range->before + (range->end - range->first);
    }
    return step - skipped;
}

uint64_t run_next_step(const struct tokmap_run *run, uint64_t step)
{
    size_t at = run_skip_at(run, step);
    if (at < run->skip_count && step >= run->skips[at].first)
        step = run->skips[at].end; /* ranges do not touch: the step after one is delivered */
    return step < run->steps_most ? step : TOKMAP_FOREVER;
}

/* ---- opening ---- */

/* The dataset's windows, and the end of the run. */
static enum tokmap_status measure(struct tokmap_run *run, struct tokmap_error *error)
{
    const struct run_spec *spec = &run->spec;
    struct tokmap_dataset_info info;
    dataset_describe(run->dataset, &info);
    run->tokens = info.tokens;
    memcpy(run->content, info.content, sizeof run->content);
    run->row_tokens = spec->seq_len + spec->lookahead;
    if (run->tokens < run->row_tokens) {
        if (run->tokens > spec->lookahead)
            return range_wrong(run, error, spec->lines[RUN_SEQ_LEN],
                               "a sequence of %" PRIu64 " tokens and a lookahead of %" PRIu64
                               " are longer than dataset '%s', which has %" PRIu64 " tokens; lower seq_len to %" PRIu64
                               " or less, or give it more data",
                               spec->seq_len, spec->lookahead, spec->data, run->tokens, run->tokens - spec->lookahead);
        return range_wrong(run, error, spec->lines[RUN_SEQ_LEN],
                           "a sequence of %" PRIu64 " tokens and a lookahead of %" PRIu64
                           " are longer than dataset '%s', which has %" PRIu64 " tokens; give it more data",
                           spec->seq_len, spec->lookahead, spec->data, run->tokens);
    }
    run->windows = (run->tokens - spec->lookahead) / spec->seq_len;

    uint64_t most = RUN_DRAWS_MOST / spec->batch;
    run->steps = spec->steps;
    if (spec->passes != TOKMAP_FOREVER) {
        unsigned __int128 draws = (unsigned __int128)spec->passes * run->windows;
        if (draws > RUN_DRAWS_MOST)
            return range_wrong(run, error, spec->lines[RUN_PASSES],
                               "%" PRIu64 " passes over %" PRIu64 " windows are more than 2^63 rows; lower passes",
                               spec->passes, run->windows);
        run->steps = (uint64_t)draws / spec->batch;
        run->remainder = (uint64_t)draws % spec->batch;
        if (run->steps == 0)
            return range_wrong(run, error, spec->lines[RUN_BATCH],
                               "%" PRIu64 " passes over %" PRIu64 " windows fill no global batch of %" PRIu64
                               " rows; lower batch or seq_len, or raise passes",
                               spec->passes, run->windows, spec->batch);
    }
    if (spec->steps != TOKMAP_FOREVER && spec->steps > most)
        return range_wrong(run, error, spec->lines[RUN_STEPS],
                           "%" PRIu64 " steps of %" PRIu64 " rows are more than 2^63 rows; lower steps to %" PRIu64
                           " or less",
                           spec->steps, spec->batch, most);
    run->steps_most = min64(run->steps, most);
    return TOKMAP_OK;
}

/* Returns the path of a source's data: `data` in `folder`, or `data` itself if it is absolute or synthetic or if there is no
 * folder. The caller frees it. */
static char *data_path(const char *folder, const char *data)
{
    const bool complete =
        path_is_absolute(data) || strncmp(data, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0;
    return path_in(folder && !complete ? folder : "", data);
}

/* Takes over *spec, whatever the status. */
static enum tokmap_status run_new(struct tokmap_run **out, struct run_spec *spec, const char *path, const char *folder,
                                  bool from_text, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    char *name = NULL;
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
    name = data_path(folder, run->spec.data);
    if (!name) {
        status = error_set_memory(error, "the dataset's path", strlen(run->spec.data) + 1);
        goto fail;
    }
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    options.reading = run->spec.reading;
    if ((status = tokmap_dataset_open(&run->dataset, name, &options, error)) || (status = measure(run, error)) ||
        (status = merge_skips(run, error)))
        goto fail;
    run_past_init(run);
    free(name);
    *out = run;
    return TOKMAP_OK;
fail:
    free(name);
    tokmap_run_close(run);
    return status;
}

/* The whole file, pipes too. */
static enum tokmap_status read_text(const char *path, char **text, size_t *bytes, struct tokmap_error *error)
{
    int fd;
    int failed = os_open(path, OS_READ, &fd);
    if (failed)
        return error_set_system(error, failed, path, TOKMAP_NO_OFFSET, "the run file cannot be opened");
    size_t used = 0, capacity = 16384;
    char *buffer = malloc(capacity);
    enum tokmap_status status = TOKMAP_OK;
    while (buffer) {
        size_t got = 0;
        failed = os_read(fd, buffer + used, capacity - used, &got);
        if (failed) {
            status = error_set_system(error, failed, path, used, "the run file cannot be read");
            break;
        }
        used += got;
        if (got == 0 || used > RUN_TEXT_MOST)
            break; /* the parser refuses what is too long */
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
                         "run is NULL; give the handle's address");
    *run = NULL;
    if (!path)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "path is NULL; name a run file");
    char *text = NULL, *folder = NULL;
    size_t bytes = 0;
    struct run_spec spec;
    enum tokmap_status status = read_text(path, &text, &bytes, error);
    if (!status)
        status = run_text_read(&spec, text, bytes, path, error);
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
                         "run is NULL; give the handle's address");
    *run = NULL;
    if (!text)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "text is NULL; give the run's text");
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
                     "%s is %" PRIu64 "; it can be %" PRIu64 " to %" PRIu64, name, value, least, most);
}

static enum tokmap_status check_arguments(const struct tokmap_run_options *options, struct tokmap_error *error)
{
    enum tokmap_status status;
    if (!options->data || !options->data[0])
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "data is missing; name a dataset: a prefix, a folder or a manifest");
    if ((status = check_argument("seq_len", options->seq_len, 1, RUN_SEQ_LEN_MOST, error)) ||
        (status = check_argument("lookahead", options->lookahead, 0, RUN_SEQ_LEN_MOST, error)) ||
        (status = check_argument("batch", options->batch, 1, RUN_BATCH_MOST, error)))
        return status;
    if (options->ordering != TOKMAP_SHUFFLE && options->ordering != TOKMAP_SEQUENTIAL)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "ordering is %d; use TOKMAP_SHUFFLE or TOKMAP_SEQUENTIAL", (int)options->ordering);
    if (options->steps != TOKMAP_FOREVER && options->passes != TOKMAP_FOREVER)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "steps and passes both end the run; give one, the other is TOKMAP_FOREVER");
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
                         "run is NULL; give the handle's address");
    *run = NULL;
    const struct tokmap_run_options defaults = TOKMAP_RUN_OPTIONS_INIT;
    struct tokmap_run_options options;
    enum tokmap_status status = options_copy(&options, given, &defaults, sizeof options, "tokmap_run_options", error);
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
        .source = strdup("data"),
        .data = strdup(options.data),
    };
    if (!spec.source || !spec.data) {
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
    free(run->skips);
    free(run);
}

/* ---- what it holds ---- */

/* Fills a caller's `size`-first struct, of an older caller too. */
static enum tokmap_status info_copy(void *into, const void *from, size_t size)
{
    size_t given;
    memcpy(&given, into, sizeof given);
    if (given < sizeof given || given > size)
        return TOKMAP_ERROR_ARGUMENT;
    memcpy(into, from, given);
    memcpy(into, &given, sizeof given);
    return TOKMAP_OK;
}

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
    return info_copy(info, &filled, sizeof filled);
}

enum tokmap_status tokmap_run_source(const struct tokmap_run *run, uint64_t source, struct tokmap_source_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    if (source > 0)
        return TOKMAP_ERROR_RANGE;
    const struct tokmap_source_info filled = {
        .name = run->spec.source,
        .dataset = run->dataset,
        .windows = run->windows,
        .tail = run->tokens - run->windows * run->spec.seq_len,
    };
    return info_copy(info, &filled, sizeof filled);
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
    *first = mul_div(rows, rank, world);
    *count = mul_div(rows, rank + 1, world) - *first;
}
