/* SPDX-License-Identifier: MIT */
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
#include "format/shard_file.h"
#include "platform/os.h"
#include "run_state.h"
#include "run_text.h"
#include "text/path.h"

/* ---- steps ---- */

uint64_t run_delivered_before(const struct tokmap_run *run, uint64_t step)
{
    return step - skips_before(&run->skips, step);
}

uint64_t run_next_step(const struct tokmap_run *run, uint64_t step)
{
    step = skips_next_delivered(&run->skips, step);
    return step < run->phases.steps_most ? step : TOKMAP_FOREVER;
}

/* Returns the tokens delivered in the steps [phase->first_step, end) of a phase; UINT64_MAX if the number is larger. */
static uint64_t tokens_in_phase(const struct tokmap_run *run, const struct phase *phase, uint64_t end)
{
    const uint64_t steps = run_delivered_before(run, end) - run_delivered_before(run, phase->first_step);
    uint64_t tokens; /* rows are below 2^63 */
    return mul_overflows(steps * phase->batch, phase->seq_len, &tokens) ? UINT64_MAX : tokens;
}

uint64_t run_tokens_before(const struct tokmap_run *run, uint64_t step)
{
    const struct phase *phase = phases_of_step(&run->phases, step);
    uint64_t tokens;
    return add_overflows(run->tokens_before[phase - run->phases.phases], tokens_in_phase(run, phase, step), &tokens)
               ? UINT64_MAX
               : tokens;
}

const struct skips *run_skips(const struct tokmap_run *run)
{
    return &run->skips;
}

const struct exclusions *run_exclusions(const struct tokmap_run *run)
{
    return &run->exclusions;
}

const char *run_path(const struct tokmap_run *run)
{
    return run->path;
}

void run_phase_of(const struct tokmap_run *run, uint64_t step, struct run_step *out)
{
    const struct phases *phases = &run->phases;
    const struct phase *phase = phases_of_step(phases, step);
    out->phase = (uint64_t)(phase - phases->phases);
    out->seq_len = phase->seq_len;
    out->batch = phase->batch;
    out->end_step = out->phase + 1 < phases->count ? phase[1].first_step : TOKMAP_FOREVER;
    out->valid = 0;
    out->same_end = step + 1;
    if (step < phases->steps_most)
        out->valid =
            min64(phase->batch, phases->end_draw - phase->first_draw - (step - phase->first_step) * phase->batch);
    if (step + 1 < phases->steps_most) /* only the last step may have padding */
        out->same_end = min64(out->end_step, phases->steps_most - 1);
}

/* ---- opening ---- */

/* Computes the phases of a run from its text and the sizes of its datasets. */
static enum tokmap_status make_phases(struct tokmap_run *run, struct tokmap_error *error)
{
    const uint64_t count = run->sources.count;
    struct phase_source *facts = calloc(count, sizeof *facts);
    if (!facts)
        return error_set_memory(error, "the run's sources", count * sizeof *facts);
    for (uint64_t i = 0; i < count; i++) {
        const struct run_source *source = &run->sources.of[i];
        const struct source_line *line = &run->spec.sources[i];
        facts[i] = (struct phase_source){
            .name = line->name,
            .data = line->data,
            .tokens = source->tokens,
            .plan_rows = source->plan_path ? source->plan.header.rows : 0,
            .plan_seq_len = source->plan_path ? source->plan.header.seq_len : 0,
            .epochs_most = line->epochs_most,
            .line = line->line,
        };
    }
    const enum tokmap_status status = phases_make(&run->phases, &run->spec, facts, run->path, run->from_text, error);
    free(facts);
    return status;
}

enum tokmap_status run_trained(const struct tokmap_run *run, struct dataset_extents *trained,
                               struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    *trained = (struct dataset_extents){.of = NULL};
    for (uint64_t i = 0; i < run->sources.count && !status; i++)
        if (phases_have(&run->phases, i))
            status = dataset_extents_add(trained, run->sources.of[i].dataset, i, error);
    dataset_extents_sort(trained);
    return status;
}

/* Fails if the run trains on any of its validation sets. */
static enum tokmap_status check_validations(const struct tokmap_run *run, struct tokmap_error *error)
{
    const struct run_sources *sources = &run->sources;
    struct dataset_extents trained;
    if (sources->opened == sources->count)
        return TOKMAP_OK;
    enum tokmap_status status = run_trained(run, &trained, error);
    for (uint64_t i = sources->count; !status && i < sources->opened; i++) {
        const struct source_line *line = run_spec_line(&run->spec, i);
        char *path;
        const uint64_t source = dataset_extents_find(&trained, sources->of[i].dataset, &path);
        if (source != UINT64_MAX)
            status = error_set_line(
                error, TOKMAP_ERROR_RANGE, run->path, run->from_text ? line->line : 0,
                "the run trains on data of validation set '%s' (%.200s): source '%s' (%.200s) has%s%.200s%s too; take "
                "it out of that source, or hold out other data",
                line->name, line->data, sources->of[source].name, run->spec.sources[source].data,
                path ? " tokens of " : " its tokens", path ? path : "", path ? "," : "");
        free(path);
    }
    dataset_extents_free(&trained);
    return status;
}

/* Sums the tokens that are delivered before each phase. */
static enum tokmap_status sum_tokens(struct tokmap_run *run, struct tokmap_error *error)
{
    const struct phases *phases = &run->phases;
    run->tokens_before = calloc(phases->count, sizeof *run->tokens_before);
    if (!run->tokens_before)
        return error_set_memory(error, "the run's phases", phases->count * sizeof *run->tokens_before);
    for (uint64_t i = 1; i < phases->count; i++)
        if (add_overflows(run->tokens_before[i - 1],
                          tokens_in_phase(run, &phases->phases[i - 1], phases->phases[i].first_step),
                          &run->tokens_before[i]))
            run->tokens_before[i] = UINT64_MAX;
    return TOKMAP_OK;
}

/* Sets the text of the run, in which datasets and lists have the names with which they were opened. */
static enum tokmap_status print_text(struct tokmap_run *run, struct tokmap_error *error)
{
    const size_t bytes = run->sources.opened * sizeof(struct source_line);
    struct run_spec spec = run->spec;
    if (!(spec.sources = malloc(bytes)))
        return error_set_memory(error, "the run's text", bytes);
    spec.validations = spec.sources + run->sources.count;
    for (uint64_t i = 0; i < run->sources.opened; i++) {
        spec.sources[i] = *run_spec_line(&run->spec, i);
        spec.sources[i].data = run->sources.of[i].data;
        spec.sources[i].plan = run->sources.of[i].plan_path;
    }
    if (spec.exclude_count) {
        if (!(spec.excludes = malloc(spec.exclude_count * sizeof *spec.excludes))) {
            free(spec.sources);
            return error_set_memory(error, "the run's text", spec.exclude_count * sizeof *spec.excludes);
        }
        for (size_t i = 0; i < spec.exclude_count; i++) {
            spec.excludes[i] = run->spec.excludes[i];
            spec.excludes[i].file = run->exclusions.lists[i].path;
        }
    }
    run->text = run_spec_print(&spec);
    if (spec.exclude_count)
        free(spec.excludes);
    free(spec.sources);
    return TOKMAP_OK;
}

enum tokmap_status run_new(struct tokmap_run **out, struct run_spec *spec, const char *path, const char *folder,
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
    if (path && !(run->path = strdup(path)))
        status = error_set_memory(error, "the run's path", strlen(path) + 1);
    if (!status)
        status = run_sources_open(&run->sources, &run->spec, folder, run->path, from_text, error);
    if (!status)
        status = make_phases(run, error);
    if (!status)
        status = check_validations(run, error);
    if (!status)
        status = skips_merge(&run->skips, run->spec.skips, run->spec.skip_count, error);
    if (!status)
        status = exclusions_open(&run->exclusions, &run->sources, &run->spec, folder, run->path, from_text, error);
    if (!status)
        status = sum_tokens(run, error);
    if (!status) {
        run->past = (struct past){
            .spec = &run->spec,
            .sources = &run->sources,
            .phases = &run->phases,
            .skips = &run->skips,
            .exclusions = &run->exclusions,
            .path = run->path,
            .from_text = from_text,
        };
        status = past_init(&run->past, error);
    }
    if (!status)
        status = print_text(run, error);
    if (status) {
        tokmap_run_close(run);
        return status;
    }
    *out = run;
    return TOKMAP_OK;
}

/* Reads the whole file, which may be a pipe. Free *text with free(). */
static enum tokmap_status read_text(const char *path, char **text, size_t *bytes, struct tokmap_error *error)
{
    int fd;
    int failed = os_open(path, OS_READ, &fd);
    if (failed && strstr(path, "://"))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "a run file cannot be read from a URL; copy it to a disk of this machine");
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

/* ---- a file that is not a run ---- */

/* Returns whether PATH.tmx exists. */
static bool is_prefix(const char *path)
{
    struct os_stat found;
    char *index = shard_file_path(path, SHARD_INDEX, SHARD_FINAL);
    const bool exists = index && !os_stat(index, &found);
    free(index);
    return exists;
}

/* Returns whether a line begins with one of the directives that every run file has. */
static bool has_directive(const char *text, size_t bytes)
{
    static const char *const needed[] = {"seq_len", "batch", "source"};
    for (const char *line = text, *const end = text + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        while (line < end && (*line == ' ' || *line == '\t'))
            line++;
        for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
            if ((size_t)(end - line) > strlen(needed[i]) && !memcmp(line, needed[i], strlen(needed[i])))
                return true;
        line = stop ? stop + 1 : end;
    }
    return false;
}

/* Says what a file is that was to be opened as a run. To be called after a path could not be opened or read as a run
 * file. If it names something else that people mistake for one (a dataset, JSON), replaces *error by a message that
 * says what it is and what to do, and returns ERROR_FORMAT. Otherwise returns `failed` and leaves *error as it is.
 *   text    the beginning of the file, `bytes` bytes; NULL if it could not be read */
static enum tokmap_status not_a_run(const char *path, const char *text, size_t bytes, enum tokmap_status failed,
                                    struct tokmap_error *error)
{
    struct os_stat found;
    const bool exists = os_stat(path, &found) == 0;
    const bool folder = exists && found.kind == OS_KIND_FOLDER;
    const bool is_manifest = text && shard_manifest_begins(text, bytes);
    const bool is_shard = exists && shard_file_is_main(path);
    const char *dataset = is_prefix(path) ? "a dataset (the prefix of a shard)"
                          : is_shard      ? "a dataset (a shard)"
                          : is_manifest   ? "a dataset (a manifest of shards)"
                          : folder        ? "a folder"
                                          : NULL;
    if (dataset)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                         "this is %s, not a run file; to open a run of a dataset, set data, or write a run file "
                         "with the line 'source NAME PATH'",
                         dataset);
    size_t at = 0;
    while (text && at < bytes && strchr(" \t\r\n", text[at]))
        at++;
    if (text && at < bytes && (text[at] == '{' || text[at] == '['))
        return error_set(
            error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
            "this is JSON, not a run file and not a dataset; `tokmap tokenizer` describes a tokenizer.json, "
            "and `tokmap pack` makes a dataset of JSONL");
    if (failed == TOKMAP_ERROR_RUN && error && text && !has_directive(text, bytes)) {
        char message[sizeof error->message];
        memcpy(message, error->message, sizeof message);
        return error_set_line(error, failed, path, error->line,
                              "%.500s. No line of this file begins with a directive, so it is probably not a run file; "
                              "`tokmap pack` makes a dataset of text",
                              message);
    }
    return failed;
}

/* ---- opening ---- */

/* Fills *options from what the caller gave; NULL: the defaults. */
static enum tokmap_status take_options(struct tokmap_run_options *options, const struct tokmap_run_options *given,
                                       struct tokmap_error *error)
{
    const struct tokmap_run_options defaults = TOKMAP_RUN_OPTIONS_INIT;
    enum tokmap_status status = struct_copy_in(options, given, &defaults, sizeof *options, "tokmap_run_options", error);
    if (!status && options->reading != TOKMAP_READ_AUTO && options->reading != TOKMAP_READ_MAPPED &&
        options->reading != TOKMAP_READ_PREAD)
        status = error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "reading",
                                 " is %d; set it to auto, mapped, or pread", (int)options->reading);
    return status;
}

enum tokmap_status tokmap_run_open(struct tokmap_run **run, const char *path, const struct tokmap_run_options *given,
                                   struct tokmap_error *error)
{
    struct tokmap_run_options options;
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "run is NULL; pass the address of a handle");
    *run = NULL;
    if (!path)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "path is NULL; pass the path of a run file");
    char *text = NULL, *own = NULL;
    size_t bytes = 0;
    struct run_spec spec;
    enum tokmap_status status = take_options(&options, given, error);
    if (status)
        return status;
    status = read_text(path, &text, &bytes, error);
    if (!status)
        status = run_text_read(&spec, text, bytes, path, error);
    if (status)
        status = not_a_run(path, text, bytes, status, error);
    free(text);
    if (status)
        return status;
    const size_t folder_bytes = path_folder_bytes(path);
    if (!options.folder && folder_bytes && !(own = strndup(path, folder_bytes))) {
        run_spec_free(&spec);
        return error_set_memory(error, "the run's folder", folder_bytes + 1);
    }
    spec.reading = options.reading;
    status = run_new(run, &spec, path, options.folder ? options.folder : own, true, error);
    free(own);
    return status;
}

enum tokmap_status tokmap_run_parse(struct tokmap_run **run, const char *text, const struct tokmap_run_options *given,
                                    struct tokmap_error *error)
{
    struct tokmap_run_options options;
    if (!run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "run is NULL; pass the address of a handle");
    *run = NULL;
    if (!text)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "text is NULL; pass the text of a run");
    struct run_spec spec;
    enum tokmap_status status = take_options(&options, given, error);
    if (status || (status = run_text_read(&spec, text, strlen(text), NULL, error)))
        return status;
    spec.reading = options.reading;
    return run_new(run, &spec, NULL, options.folder, true, error);
}

static enum tokmap_status check_argument(const char *name, uint64_t value, uint64_t least, uint64_t most,
                                         struct tokmap_error *error)
{
    if (value >= least && value <= most)
        return TOKMAP_OK;
    return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, name,
                           " is %" PRIu64 "; it must be %" PRIu64 " to %" PRIu64, value, least, most);
}

static enum tokmap_status check_values(const struct run_values *options, struct tokmap_error *error)
{
    enum tokmap_status status;
    if (!options->data || !options->data[0])
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "data",
                               " is missing; set it to the name of a dataset: a prefix, a folder, or a manifest");
    if ((status = check_argument("seq_len", options->seq_len, 1, RUN_SEQ_LEN_MOST, error)) ||
        (status = check_argument("lookahead", options->lookahead, 0, RUN_SEQ_LEN_MOST, error)) ||
        (status = check_argument("batch", options->batch, 1, RUN_BATCH_MOST, error)))
        return status;
    if (options->order != TOKMAP_SHUFFLE && options->order != TOKMAP_SEQUENTIAL)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "order", " is %d; set it to shuffle or sequential",
                               (int)options->order);
    if (options->steps != TOKMAP_FOREVER && options->passes != TOKMAP_FOREVER)
        return error_set_field(error, TOKMAP_ERROR_ARGUMENT, NULL, "steps",
                               " and passes are both set; set one of them, and leave the other at its default");
    if (options->steps != TOKMAP_FOREVER &&
        (status = check_argument("steps", options->steps, 1, RUN_DRAWS_MOST, error)))
        return status;
    if (options->passes != TOKMAP_FOREVER)
        return check_argument("passes", options->passes, 1, RUN_DRAWS_MOST, error);
    return TOKMAP_OK;
}

enum tokmap_status run_of_values(struct tokmap_run **run, const struct run_values *options, struct tokmap_error *error)
{
    *run = NULL;
    enum tokmap_status status = check_values(options, error);
    if (status)
        return status;
    struct run_spec spec = {
        .seq_len = options->seq_len,
        .lookahead = options->lookahead,
        .batch = options->batch,
        .seed = options->seed,
        .steps = options->steps,
        .passes = options->passes,
        .order = options->order,
        .passes_of = SIZE_MAX,
        .pad_id = TOKMAP_NO_ID,
        .sources = calloc(1, sizeof *spec.sources),
    };
    spec.source_count = spec.sources ? 1 : 0;
    if (!spec.sources || !(spec.sources[0].name = strdup("data")) || !(spec.sources[0].data = strdup(options->data))) {
        run_spec_free(&spec);
        return error_set_memory(error, "the run's source", strlen(options->data) + 6);
    }
    return run_new(run, &spec, NULL, NULL, false, error);
}

void tokmap_run_close(struct tokmap_run *run)
{
    if (!run)
        return;
    exclusions_free(&run->exclusions);
    run_sources_close(&run->sources);
    phases_free(&run->phases);
    past_free(&run->past);
    skips_free(&run->skips);
    run_spec_free(&run->spec);
    free(run->tokens_before);
    free(run->path);
    free(run->text);
    free(run);
}

/* ---- properties ---- */

struct tokmap_run_info info_of_run(const struct tokmap_run *run)
{
    const struct phases *phases = &run->phases;
    const struct run_spec *spec = &run->spec;
    struct run_step last = {.valid = 0};
    if (phases->steps != TOKMAP_FOREVER)
        run_phase_of(run, phases->steps_most - 1, &last);
    return (struct tokmap_run_info){
        .size = sizeof(struct tokmap_run_info),
        .seq_len = phases->phases[0].seq_len,
        .lookahead = spec->lookahead,
        .batch = phases->phases[0].batch,
        .seed = spec->seed,
        .order = spec->order,
        .sources = run->sources.count,
        .steps = phases->steps,
        .delivered = phases->steps == TOKMAP_FOREVER ? TOKMAP_FOREVER : run_delivered_before(run, phases->steps),
        .remainder = phases->remainder,
        .phases = phases->count,
        .stride = spec->stride,
        .batch_most = phases->batch_most,
        .seq_len_most = phases->seq_len_most,
        .pad_id = run->sources.pad_id,
        .tail_pad = spec->tail_pad,
        .blocks = run_spec_has_blocks(spec) ? spec->blocks : 0,
        .span = run_spec_has_blocks(spec) ? spec->span : 0,
        .real_rows_last = last.valid,
        .vocabulary = run->sources.vocabulary,
        .width = run->sources.width,
        .warning = run->sources.warning,
        .validations = run->sources.opened - run->sources.count,
    };
}

enum tokmap_status tokmap_run_info(const struct tokmap_run *run, struct tokmap_run_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    const struct tokmap_run_info filled = info_of_run(run);
    return struct_copy_out(info, &filled, sizeof filled, "tokmap_run_info", NULL);
}

struct tokmap_source_info info_of_source(const struct tokmap_run *run, uint64_t source)
{
    assert(source < run->sources.opened);
    const bool held_out = source >= run->sources.count;
    const struct run_source *of = &run->sources.of[source];
    const struct source_line *line = run_spec_line(&run->spec, source);
    const struct run_spec evaluation = {.lookahead = 1, .tail_pad = true};
    const uint64_t seq_len = held_out ? run->phases.seq_len_most : run->phases.phases[0].seq_len;
    const uint64_t stride = run->spec.stride ? run->spec.stride : seq_len;
    const uint64_t windows = of->plan_path
                                 ? of->plan.header.rows
                                 : windows_of_dataset(held_out ? &evaluation : &run->spec, of->tokens, seq_len);
    const uint64_t strides = windows <= of->tokens / stride ? windows * stride : of->tokens;
    return (struct tokmap_source_info){
        .size = sizeof(struct tokmap_source_info),
        .name = of->name,
        .dataset = of->dataset,
        .windows = windows,
        .tail = of->plan_path || run->spec.tail_pad || held_out ? 0 : of->tokens - strides,
        .data = of->data,
        .plan = of->plan_path,
        .epochs_most = line->epochs_most,
        .line = line->line,
    };
}

enum tokmap_status tokmap_run_source(const struct tokmap_run *run, uint64_t source, struct tokmap_source_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    if (source >= run->sources.opened)
        return TOKMAP_ERROR_RANGE;
    const struct tokmap_source_info filled = info_of_source(run, source);
    return struct_copy_out(info, &filled, sizeof filled, "tokmap_source_info", NULL);
}

struct tokmap_phase_info info_of_phase(const struct tokmap_run *run, uint64_t phase)
{
    const struct phases *phases = &run->phases;
    assert(phase < phases->count);
    const struct phase *of = &phases->phases[phase];
    return (struct tokmap_phase_info){
        .size = sizeof(struct tokmap_phase_info),
        .first_step = of->first_step,
        .end_step = phase + 1 < phases->count ? of[1].first_step : phases->steps,
        .first_draw = of->first_draw,
        .batch = of->batch,
        .seq_len = of->seq_len,
        .shares = phases->stretches[of->stretch].leaf_count,
        .mixture_step = phases->stretches[of->stretch].mixture_step,
        .line = of->line,
    };
}

enum tokmap_status tokmap_run_phase(const struct tokmap_run *run, uint64_t phase, struct tokmap_phase_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    if (phase >= run->phases.count)
        return TOKMAP_ERROR_RANGE;
    const struct tokmap_phase_info filled = info_of_phase(run, phase);
    return struct_copy_out(info, &filled, sizeof filled, "tokmap_phase_info", NULL);
}

uint64_t tokmap_run_phase_at(const struct tokmap_run *run, uint64_t step)
{
    return run ? (uint64_t)(phases_of_step(&run->phases, step) - run->phases.phases) : 0;
}

enum tokmap_status tokmap_run_share(const struct tokmap_run *run, uint64_t phase, uint64_t share,
                                    struct tokmap_share_info *info)
{
    if (!run || !info)
        return TOKMAP_ERROR_ARGUMENT;
    const struct phases *phases = &run->phases;
    if (phase >= phases->count)
        return TOKMAP_ERROR_RANGE;
    const struct phase *of = &phases->phases[phase];
    const struct mixture_span *stretch = &phases->stretches[of->stretch];
    if (share >= stretch->leaf_count)
        return TOKMAP_ERROR_RANGE;
    const struct leaf *leaf = &stretch->leaves[share];
    const uint64_t end = phase + 1 < phases->count ? of[1].first_draw : phases->end_draw;
    const uint64_t before = stretch_count(stretch, share, of->first_draw);
    const uint64_t s = before + leaf->offset;
    const struct tokmap_share_info filled = {
        .source = leaf->source,
        .weight = leaf->weight,
        .weights = stretch->weights,
        .windows = leaf->windows,
        .first_epoch = leaf->epoch_first + s / leaf->windows,
        .first_draw = s % leaf->windows,
        .draws = stretch_count(stretch, share, end) - before,
    };
    return struct_copy_out(info, &filled, sizeof filled, "tokmap_share_info", NULL);
}

uint64_t run_share_source(const struct tokmap_run *run, uint64_t phase, uint64_t share)
{
    return run->phases.stretches[run->phases.phases[phase].stretch].leaves[share].source;
}

uint64_t run_drawn(const struct tokmap_run *run, uint64_t source, uint64_t step)
{
    assert(source < run->sources.count && step <= run->phases.steps_most);
    return phases_drawn(&run->phases, source, step);
}

enum tokmap_status tokmap_run_drawn(const struct tokmap_run *run, uint64_t source, uint64_t step, uint64_t *draws)
{
    if (!run || !draws)
        return TOKMAP_ERROR_ARGUMENT;
    if (source >= run->sources.count || step > run->phases.steps_most)
        return TOKMAP_ERROR_RANGE;
    *draws = run_drawn(run, source, step);
    return TOKMAP_OK;
}

const char *tokmap_run_text(const struct tokmap_run *run)
{
    return run ? run->text : NULL;
}

uint64_t tokmap_run_excluded(const struct tokmap_run *run, uint64_t source, uint64_t token)
{
    return run && source < run->sources.count ? exclusion_step(&run->exclusions, source, token) : TOKMAP_FOREVER;
}

int tokmap_run_delivers(const struct tokmap_run *run, uint64_t step)
{
    return run && step < run->phases.steps_most && run_next_step(run, step) == step;
}

uint64_t tokmap_run_rows(const struct tokmap_run *run, uint64_t step)
{
    return run && step < run->phases.steps_most ? phases_of_step(&run->phases, step)->batch : 0;
}

uint64_t tokmap_run_real_rows(const struct tokmap_run *run, uint64_t step)
{
    struct run_step of;
    if (!run || step >= run->phases.steps_most)
        return 0;
    run_phase_of(run, step, &of);
    return of.valid;
}

void run_rank_rows(uint64_t rows, uint64_t rank, uint64_t world, uint64_t *first, uint64_t *count)
{
    assert(rank < world);
    *first = mul_div(rows, rank, world);
    *count = mul_div(rows, rank + 1, world) - *first;
}

uint64_t run_calls(uint64_t batch, uint64_t world, uint64_t rows)
{
    const uint64_t widest = div_ceil(batch, world); /* rows of the largest slice */
    return rows ? div_ceil(widest, rows) : 1;
}

void run_call_rows(uint64_t slice, uint64_t call, uint64_t calls, uint64_t *first, uint64_t *count)
{
    assert(call < calls);
    *first = mul_div(call, slice, calls);
    *count = mul_div(call + 1, slice, calls) - *first;
}
