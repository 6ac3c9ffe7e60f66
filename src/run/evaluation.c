/* SPDX-License-Identifier: MIT */
/*
 * evaluation.c - a run that evaluates on data which another run leaves out.
 *
 * Sources of a run may be parts of the same dataset, under any of its names. So the sources are grouped by the content
 * id of the whole dataset (struct base), and what the run trains on is a list of ranges of its documents, or of its
 * tokens for parts in tokens. What it leaves out is everything between them. Example: with sources
 * data/web#docs=0..90% and data/web#docs=95..99% of 1,000 documents, documents 900 to 949 and 990 to 999 are left out.
 * The evaluation has a source for each of these ranges, in the proportions of their windows.
 *
 * A run with validation sets leaves out these, and nothing else is looked for unless a source is named. Whatever the
 * evaluation reads is compared with what the run trains on (run_trained()), because the same shards may be in several
 * datasets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/struct_copy.h"
#include "dataset/dataset.h"
#include "dataset/dataset_name.h"
#include "dataset/documents.h"
#include "run.h"
#include "run_state.h"

struct range {
    uint64_t from, to; /* documents, or tokens */
    bool trained;      /* the run draws it */
};

/* A dataset of which sources or validation sets of the run are parts. */
struct base {
    char *name;                    /* the name of the first source, without its part */
    struct tokmap_dataset *opened; /* NULL: it is a source's own dataset */
    const struct tokmap_dataset *dataset;
    uint64_t tokens, documents;
    uint8_t content[16];
    struct range *ranges; /* one for each source, as many as the run has sources */
    uint64_t count;
    bool by_tokens; /* the ranges are of tokens; otherwise of documents */
};

struct evaluation {
    const struct tokmap_run *run;
    struct tokmap_evaluation_options options;
    struct tokmap_error *error;
    struct base *bases;
    uint64_t base_count;
    uint64_t *base_of;          /* of each source */
    struct dataset_part *parts; /* of each source */
    struct run_spec spec;
};

#define wrong(evaluation, status, ...)                                                                                 \
    error_set((evaluation)->error, (status), (evaluation)->run->path, TOKMAP_NO_OFFSET, __VA_ARGS__)

static const char *source_name(const struct evaluation *evaluation, uint64_t source)
{
    return evaluation->run->sources.of[source].name;
}

/* ---- what the run trains on ---- */

/* Finds the documents that a part holds. */
static void part_documents(const struct base *base, const struct dataset_part *part, uint64_t *from, uint64_t *to)
{
    *from = part->from;
    *to = part->to;
    if (part->unit == PART_WHOLE) {
        *from = 0;
        *to = base->documents;
    } else if (part->unit == PART_PERCENT) {
        *from = dataset_part_document(part, base->documents, part->from);
        *to = dataset_part_document(part, base->documents, part->to);
    }
}

/* Counts the tokens that a part holds. */
static enum tokmap_status part_tokens(const struct base *base, const struct dataset_part *part, uint64_t *from,
                                      uint64_t *to, struct tokmap_error *error)
{
    struct tokmap_document document;
    *from = part->unit == PART_WHOLE ? 0 : part->from;
    *to = part->unit == PART_WHOLE ? base->tokens : part->to;
    if (part->unit == PART_WHOLE || part->unit == PART_TOKENS)
        return TOKMAP_OK;
    uint64_t first, end;
    part_documents(base, part, &first, &end);
    *from = *to = 0;
    if (first >= end)
        return TOKMAP_OK;
    enum tokmap_status status = dataset_document(base->dataset, first, &document, error);
    if (status)
        return status;
    *from = document.first_token;
    status = dataset_document(base->dataset, end - 1, &document, error);
    *to = document.first_token + document.tokens;
    return status;
}

/* Finds the base of a source, and adds it if it is new. */
static enum tokmap_status add_base(struct evaluation *evaluation, uint64_t source)
{
    const struct run_source *of = &evaluation->run->sources.of[source];
    struct base *base = &evaluation->bases[evaluation->base_count];
    enum tokmap_status status =
        dataset_name_split(of->data, &base->name, &evaluation->parts[source], evaluation->error);
    if (status)
        return status;
    base->dataset = of->dataset;
    if (evaluation->parts[source].unit != PART_WHOLE) {
        if ((status = dataset_open_as(&base->opened, base->name, evaluation->options.reading, evaluation->error))) {
            evaluation->base_count++;
            return status;
        }
        base->dataset = base->opened;
    }
    const struct tokmap_dataset_info info = info_of_dataset(base->dataset);
    base->tokens = info.tokens;
    base->documents = info.documents;
    memcpy(base->content, info.content, sizeof base->content);
    evaluation->base_of[source] = evaluation->base_count++;
    for (uint64_t i = 0; i + 1 < evaluation->base_count; i++)
        if (memcmp(evaluation->bases[i].content, base->content, sizeof base->content) == 0) {
            evaluation->base_of[source] = i;
            tokmap_dataset_close(base->opened);
            free(base->name);
            *base = (struct base){0};
            evaluation->base_count--;
            return TOKMAP_OK;
        }
    return TOKMAP_OK;
}

static bool is_validation(const struct tokmap_run *run, uint64_t source)
{
    return source >= run->sources.count;
}

static bool is_trained(const struct tokmap_run *run, uint64_t source)
{
    return !is_validation(run, source) && phases_have(&run->phases, source);
}

/* Fills the bases. */
static enum tokmap_status find_bases(struct evaluation *evaluation)
{
    const uint64_t sources = evaluation->run->sources.opened;
    enum tokmap_status status;
    evaluation->bases = calloc(sources, sizeof *evaluation->bases);
    evaluation->base_of = calloc(sources, sizeof *evaluation->base_of);
    evaluation->parts = calloc(sources, sizeof *evaluation->parts);
    if (!evaluation->bases || !evaluation->base_of || !evaluation->parts)
        return error_set_memory(evaluation->error, "the datasets of the run", sources * sizeof *evaluation->bases);
    for (uint64_t i = 0; i < sources; i++)
        if ((status = add_base(evaluation, i)))
            return status;
    for (uint64_t i = 0; i < sources; i++)
        if (is_trained(evaluation->run, i) && evaluation->parts[i].unit == PART_TOKENS)
            evaluation->bases[evaluation->base_of[i]].by_tokens = true;
    uint64_t *counts = calloc(sources, sizeof *counts);
    if (!counts)
        return error_set_memory(evaluation->error, "the datasets of the run", sources * sizeof *counts);
    for (uint64_t i = 0; i < sources; i++)
        counts[evaluation->base_of[i]]++;
    for (uint64_t i = 0; i < evaluation->base_count; i++)
        if (!(evaluation->bases[i].ranges = calloc(counts[i], sizeof(struct range)))) {
            free(counts);
            return error_set_memory(evaluation->error, "the datasets of the run", sources * sizeof(struct range));
        }
    free(counts);
    for (uint64_t i = 0; i < sources; i++) {
        struct base *base = &evaluation->bases[evaluation->base_of[i]];
        struct range *range = &base->ranges[base->count++];
        *range = (struct range){.trained = is_trained(evaluation->run, i)};
        if (base->by_tokens)
            status = part_tokens(base, &evaluation->parts[i], &range->from, &range->to, evaluation->error);
        else
            part_documents(base, &evaluation->parts[i], &range->from, &range->to);
        if (base->by_tokens && status)
            return status;
    }
    return TOKMAP_OK;
}

/* ---- what the evaluation reads ---- */

/* Adds a source to the evaluation: a dataset's name and "#part", or only the name if `part` is empty. It is called like
 * the run's source, with a number if that name is taken. */
static enum tokmap_status add_source(struct evaluation *evaluation, uint64_t source, const char *data, const char *part)
{
    struct run_spec *spec = &evaluation->spec;
    const size_t bytes = strlen(data) + strlen(part) + 2;
    char name[RUN_NAME_MOST + 32];
    struct source_line *grown = realloc(spec->sources, (spec->source_count + 1) * sizeof *grown);
    if (!grown)
        return error_set_memory(evaluation->error, "the sources of the evaluation", sizeof *grown);
    spec->sources = grown;
    (void)snprintf(name, sizeof name, "%s", source_name(evaluation, source));
    for (uint64_t i = 0, number = 2; i < spec->source_count; i++)
        if (strcmp(spec->sources[i].name, name) == 0) {
            (void)snprintf(name, sizeof name, "%.40s-%" PRIu64, source_name(evaluation, source), number++);
            i = UINT64_MAX; /* from the first source again */
        }
    struct source_line *line = &spec->sources[spec->source_count++];
    *line = (struct source_line){.name = strdup(name), .data = malloc(bytes)};
    if (!line->name || !line->data)
        return error_set_memory(evaluation->error, "the sources of the evaluation", bytes);
    (void)snprintf(line->data, bytes, "%s%s%s", data, part[0] ? "#" : "", part);
    return TOKMAP_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Adds what the run leaves out of the dataset of a source. */
static enum tokmap_status add_left_out(struct evaluation *evaluation, uint64_t source)
{
    struct base *base = &evaluation->bases[evaluation->base_of[source]];
    const uint64_t end = base->by_tokens ? base->tokens : base->documents;
    uint64_t from = 0;
    qsort(base->ranges, base->count, sizeof *base->ranges, compare_ranges);
    for (uint64_t i = 0; i <= base->count; i++) {
        const struct range *range = i < base->count ? &base->ranges[i] : NULL;
        const uint64_t to = range ? range->from : end;
        if (range && !range->trained)
            continue;
        if (from < to) {
            char part[64];
            (void)snprintf(part, sizeof part, "%s=%" PRIu64 "..%" PRIu64, base->by_tokens ? "tokens" : "docs", from,
                           to);
            const enum tokmap_status status = add_source(evaluation, source, base->name, part);
            if (status)
                return status;
        }
        from = range ? max64(from, range->to) : from;
    }
    return TOKMAP_OK;
}

/* Adds what the options ask for of one source. first: of those that are looked at, it is the first with its base. */
static enum tokmap_status add_one(struct evaluation *evaluation, uint64_t source, bool first)
{
    const struct tokmap_evaluation_options *options = &evaluation->options;
    const struct base *base = &evaluation->bases[evaluation->base_of[source]];
    const char *data = evaluation->run->sources.of[source].data;
    bool trained = false;
    for (uint64_t i = 0; i < base->count; i++)
        trained = trained || base->ranges[i].trained;
    const bool named = options->source || is_validation(evaluation->run, source);
    if (options->part)
        return options->source || first
                   ? add_source(evaluation, source, base->name, options->part + (options->part[0] == '#'))
                   : TOKMAP_OK;
    if (options->trained || !trained || (named && !is_trained(evaluation->run, source)))
        return add_source(evaluation, source, data, "");
    return named || first ? add_left_out(evaluation, source) : TOKMAP_OK;
}

/* Returns the length of a dataset's name without its part, at most 200. */
static size_t without_part(const char *name)
{
    const char *docs = strstr(name, "#docs="), *tokens = strstr(name, "#tokens=");
    const char *end = docs ? docs : tokens ? tokens : name + strlen(name);
    return (size_t)min64((uint64_t)(end - name), 200);
}

static enum tokmap_status add_sources(struct evaluation *evaluation)
{
    const struct tokmap_run *run = evaluation->run;
    const struct tokmap_evaluation_options *options = &evaluation->options;
    const char *found = NULL; /* the dataset of the first source, as the run names it */
    enum tokmap_status status = TOKMAP_OK;
    const bool held_out = !options->source && run->sources.opened > run->sources.count;
    const uint64_t begin = held_out ? run->sources.count : 0;
    for (uint64_t i = begin; !status && i < run->sources.opened; i++) {
        if (options->source && strcmp(source_name(evaluation, i), options->source) != 0)
            continue;
        found = found ? found : run_spec_line(&run->spec, i)->data;
        bool first = true; /* of its base */
        for (uint64_t j = begin; j < i; j++)
            first = first && evaluation->base_of[j] != evaluation->base_of[i];
        status = add_one(evaluation, i, first);
    }
    if (status)
        return status;
    if (!found)
        return wrong(evaluation, TOKMAP_ERROR_NOT_FOUND,
                     "the run has no source '%.80s', and no validation set of that name; name one of them",
                     options->source);
    if (evaluation->spec.source_count == 0)
        return wrong(evaluation, TOKMAP_ERROR_NOT_FOUND,
                     "the run leaves out no data of %s%s%s; hold out a dataset with a line 'validation NAME DATASET', "
                     "or let it train on a part, such as '%.*s#docs=0..99%%'",
                     options->source ? "source '" : "its sources", options->source ? options->source : "",
                     options->source ? "'" : "", (int)without_part(found), found);
    return TOKMAP_OK;
}

/* ---- the run ---- */

/* Opens the run of evaluation->spec, whose sources are copied, so that it can be opened again. */
static enum tokmap_status open_copy(const struct evaluation *evaluation, uint64_t steps, struct tokmap_run **out)
{
    const struct run_spec *from = &evaluation->spec;
    struct run_spec spec = *from;
    spec.steps = steps;
    spec.passes = steps == TOKMAP_FOREVER ? 1 : TOKMAP_FOREVER;
    spec.sources = calloc(from->source_count, sizeof *spec.sources);
    spec.phases = calloc(1, sizeof *spec.phases);
    spec.phase_count = from->source_count > 1;
    bool complete = spec.sources && spec.phases;
    spec.source_count = spec.sources ? from->source_count : 0;
    for (uint64_t i = 0; complete && i < spec.source_count; i++) {
        spec.sources[i].name = strdup(from->sources[i].name);
        spec.sources[i].data = strdup(from->sources[i].data);
        complete = spec.sources[i].name && spec.sources[i].data;
    }
    if (!complete) {
        run_spec_free(&spec);
        return error_set_memory(evaluation->error, "the evaluation", from->source_count * sizeof *spec.sources);
    }
    spec.phases[0].kind = WEIGHTS_NATURAL;
    return run_new(out, &spec, NULL, NULL, false, evaluation->error);
}

static enum tokmap_status open_run(struct evaluation *evaluation, struct tokmap_run **out)
{
    const struct tokmap_evaluation_options *options = &evaluation->options;
    const struct tokmap_run *run = evaluation->run;
    struct run_spec *spec = &evaluation->spec;
    spec->seq_len = options->seq_len ? options->seq_len : run->phases.seq_len_most;
    spec->batch = options->batch ? options->batch : run->phases.phases[0].batch;
    spec->lookahead = options->lookahead != TOKMAP_DEFAULT ? options->lookahead : 1;
    spec->pad_id = options->pad_id != TOKMAP_DEFAULT ? options->pad_id : run->sources.pad_id;
    spec->stride = options->stride;
    spec->order = TOKMAP_SEQUENTIAL;
    spec->passes_of = SIZE_MAX;
    spec->tail_pad = true;
    spec->reading = options->reading;
    if (spec->seq_len > RUN_SEQ_LEN_MOST || spec->lookahead > RUN_SEQ_LEN_MOST || spec->batch > RUN_BATCH_MOST ||
        spec->pad_id > RUN_PAD_MOST || spec->stride > spec->seq_len || options->steps == 0)
        return error_set(evaluation->error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "seq_len, lookahead, and batch must be at most 2^31, pad_id below 2^32, stride at most "
                         "seq_len, and steps at least 1; they are %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
                         ", %" PRIu64 ", and %" PRIu64,
                         spec->seq_len, spec->lookahead, spec->batch, spec->pad_id, spec->stride, options->steps);
    const enum tokmap_status status = open_copy(evaluation, TOKMAP_FOREVER, out);
    if (status || options->steps >= (*out)->phases.steps)
        return status;
    tokmap_run_close(*out); /* fewer steps than one pass */
    *out = NULL;
    return open_copy(evaluation, options->steps, out);
}

/* Fails if the evaluation has no target, because none of its tokens has a token after it. */
static enum tokmap_status check_targets(const struct evaluation *evaluation, const struct tokmap_run *made)
{
    for (uint64_t i = 0; i < made->sources.count; i++)
        if (made->sources.of[i].tokens > 1)
            return TOKMAP_OK;
    return wrong(evaluation, TOKMAP_ERROR_RANGE,
                 "the evaluation has no target, because '%.200s' has 1 token; evaluate on 2 tokens or more",
                 made->sources.of[0].data);
}

/* Fails if the run trains on anything that the evaluation reads. */
static enum tokmap_status check_untrained(const struct evaluation *evaluation, const struct tokmap_run *made)
{
    const struct tokmap_run *run = evaluation->run;
    struct dataset_extents trained;
    enum tokmap_status status = run_trained(run, &trained, evaluation->error);
    for (uint64_t i = 0; !status && i < made->sources.count; i++) {
        char *path;
        const uint64_t source = dataset_extents_find(&trained, made->sources.of[i].dataset, &path);
        if (source != UINT64_MAX)
            status = wrong(evaluation, TOKMAP_ERROR_RANGE,
                           "the run trains on data of '%.200s'%s%.200s%s: source '%s' is '%.200s'; evaluate on a part "
                           "that no source has, or set trained to evaluate on training data",
                           made->sources.of[i].data, path ? " (tokens of " : "", path ? path : "", path ? ")" : "",
                           source_name(evaluation, source), run->spec.sources[source].data);
        free(path);
    }
    dataset_extents_free(&trained);
    return status;
}

enum tokmap_status tokmap_run_evaluation(struct tokmap_run **out, const struct tokmap_run *run,
                                         const struct tokmap_evaluation_options *given, struct tokmap_error *error)
{
    if (!out || !run)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "evaluation or run is NULL; pass the address of a handle, and an open run");
    *out = NULL;
    const struct tokmap_evaluation_options defaults = TOKMAP_EVALUATION_OPTIONS_INIT;
    struct evaluation evaluation = {.run = run, .error = error};
    enum tokmap_status status = struct_copy_in(&evaluation.options, given, &defaults, sizeof evaluation.options,
                                               "tokmap_evaluation_options", error);
    if (status)
        return status;
    status = find_bases(&evaluation);
    if (!status)
        status = add_sources(&evaluation);
    if (!status)
        status = open_run(&evaluation, out);
    if (!status)
        status = check_targets(&evaluation, *out);
    if (!status && !evaluation.options.trained)
        status = check_untrained(&evaluation, *out);
    if (status) {
        tokmap_run_close(*out);
        *out = NULL;
    }
    for (uint64_t i = 0; evaluation.bases && i < evaluation.base_count; i++) {
        tokmap_dataset_close(evaluation.bases[i].opened);
        free(evaluation.bases[i].name);
        free(evaluation.bases[i].ranges);
    }
    free(evaluation.bases);
    free(evaluation.base_of);
    free(evaluation.parts);
    run_spec_free(&evaluation.spec);
    return status;
}
