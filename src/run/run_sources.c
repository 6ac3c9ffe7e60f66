/* SPDX-License-Identifier: MIT */
/*
 * run_sources.c - see run_sources.h.
 *
 * Opening a dataset is a few system calls for each of its shards, which mostly wait for the file system. So threads
 * open the sources, each taking the next one that is not taken. The first source is opened before, to estimate from its
 * number of shards how many files there will be in all. If one fails, the first in the order of the text that
 * is not open is opened again by the caller, whose error is the run's. So the error does not depend on the threads.
 */
#include "run_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "format/foreign/foreign_name.h"
#include "platform/os.h"
#include "text/path.h"

#define SOURCES_PER_THREAD ((uint64_t)4) /* at least, for a thread to be started */
#define THREADS_MOST ((uint64_t)8)

#define FILES_MOST ((uint64_t)1 << 20) /* that the kernel is prepared for */

struct opening {
    struct run_sources *sources;
    const struct run_spec *spec;
    const char *path;
    bool from_text;
    uint64_t next;  /* the next source that no thread has taken; accessed atomically */
    uint32_t ended; /* a source failed; accessed atomically */
};

#define wrong_at(opening, status, line, ...)                                                                           \
    error_set_line((error), (status), (opening)->path, (opening)->from_text ? (line) : 0, __VA_ARGS__)

/* Returns the name of a source's dataset: `data` in `folder`, or only `data` if it is absolute or synthetic or folder
 * is NULL. A name that begins with a kind of file, KIND:PATH, keeps it in front. Free it with free(). NULL: out of
 * memory. */
static char *data_path(const char *folder, const char *data)
{
    size_t kind = 0;
    if (strncmp(data, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0)
        return strdup(data);
    if (foreign_name_has_kind(data))
        kind = strcspn(data, ":") + 1;
    if (!folder || path_is_absolute(data + kind))
        return strdup(data);
    char *path = path_in(folder, data + kind);
    if (!path || kind == 0)
        return path;
    const size_t bytes = strlen(path) + 1;
    char *name = malloc(kind + bytes);
    if (name) {
        memcpy(name, data, kind);
        memcpy(name + kind, path, bytes);
    }
    free(path);
    return name;
}

/* ---- one source ---- */

static const char *kind_of(const struct run_sources *sources, uint64_t number)
{
    return number < sources->count ? "source" : "validation set";
}

/* Reports that the dataset, or the plan, that a line of a run names does not exist. */
static enum tokmap_status missing(const struct opening *opening, uint64_t number, bool plan, struct tokmap_error *error)
{
    const struct source_line *line = run_spec_line(opening->spec, number);
    const struct run_source *source = &opening->sources->of[number];
    const char *name = plan ? line->plan : line->data, *path = plan ? source->plan_path : source->data;
    return wrong_at(opening, TOKMAP_ERROR_NOT_FOUND, line->line,
                    "%s '%s' %s '%.200s', which was looked for as '%.300s' and does not exist%s; correct the line, or "
                    "%s",
                    kind_of(opening->sources, number), line->name, plan ? "has the plan" : "is the dataset", name, path,
                    strcmp(path, name) ? " (a relative name starts from the folder of the run file)" : "",
                    plan ? "make the plan with `tokmap plan`" : "put the dataset there");
}

static enum tokmap_status open_plan(const struct opening *opening, uint64_t number, struct run_source *source,
                                    struct tokmap_error *error)
{
    const struct source_line *line = &opening->spec->sources[number];
    struct plan *plan = &source->plan;
    enum tokmap_status status = plan_open_as(plan, source->plan_path, dataset_reading(source->dataset), error);
    if (status == TOKMAP_ERROR_NOT_FOUND && opening->from_text)
        return missing(opening, number, true, error);
    if (status)
        return status;
    const struct plan_header *header = &plan->header;
    char made_for[33], found[33];
    hash128_hex(header->dataset, made_for);
    hash128_hex(source->identity, found);
    if (memcmp(header->dataset, source->identity, sizeof header->dataset) != 0 || header->tokens != source->tokens)
        return wrong_at(opening, TOKMAP_ERROR_MISMATCH, line->line,
                        "the plan '%.150s' of source '%s' is of a dataset with the identity %s and %" PRIu64
                        " tokens, but '%.150s' has %s and %" PRIu64
                        " tokens; name the plan's dataset, or make the plan "
                        "again with `tokmap plan`",
                        line->plan, line->name, made_for, header->tokens, line->data, found, source->tokens);
    uint8_t identity[16];
    plan_identity(plan, source->identity, identity);
    memcpy(source->identity, identity, sizeof source->identity);
    return TOKMAP_OK;
}

static enum tokmap_status open_source(const struct opening *opening, uint64_t number, struct tokmap_error *error)
{
    struct run_source *source = &opening->sources->of[number];
    struct tokmap_error reason = {0};
    struct os_stat folder;
    enum tokmap_status status = dataset_open_as(&source->dataset, source->data, opening->spec->reading, &reason);
    /* A run of arguments has no line, and the message about the dataset's name says all. What is missing may also be a
     * shard that a manifest names, which is reported with the manifest's line, or one of a folder. */
    if (status == TOKMAP_ERROR_NOT_FOUND && opening->from_text && !reason.line && reason.system &&
        os_stat(source->data, &folder))
        return missing(opening, number, false, error);
    if (status && error)
        *error = reason;
    if (status)
        return status;
    const struct tokmap_dataset_info info = info_of_dataset(source->dataset);
    source->tokens = info.tokens;
    source->identity_kind = info.identity;
    memcpy(source->identity, info.content, sizeof source->identity);
    return source->plan_path ? open_plan(opening, number, source, error) : TOKMAP_OK;
}

static void close_source(struct run_source *source)
{
    plan_close(&source->plan);
    source->plan = (struct plan){0};
    tokmap_dataset_close(source->dataset);
    source->dataset = NULL;
}

/* ---- all sources ---- */

static void open_some(void *user, uint32_t number_of_thread)
{
    (void)number_of_thread;
    struct opening *opening = user;
    while (!__atomic_load_n(&opening->ended, __ATOMIC_RELAXED)) {
        const uint64_t number = __atomic_fetch_add(&opening->next, 1, __ATOMIC_RELAXED);
        if (number >= opening->sources->opened)
            return;
        if (open_source(opening, number, NULL)) {
            close_source(&opening->sources->of[number]);
            __atomic_store_n(&opening->ended, 1, __ATOMIC_RELAXED);
        }
    }
}

static enum tokmap_status open_all(struct opening *opening, struct tokmap_error *error)
{
    const uint64_t count = opening->sources->opened;
    if (count >= 2 * SOURCES_PER_THREAD) {
        const enum tokmap_status status = open_source(opening, 0, error);
        if (status)
            return status;
        const struct tokmap_dataset_info info = info_of_dataset(opening->sources->of[0].dataset);
        opening->next = 1;
        os_files_expect(info.shards < FILES_MOST / count ? info.shards * count : FILES_MOST);
        const uint64_t threads = min64(min64(os_processors(), THREADS_MOST), count / SOURCES_PER_THREAD);
        os_threads_share("tokmap-open", (uint32_t)threads, open_some, opening);
    }
    for (uint64_t i = 0; i < count; i++)
        if (!opening->sources->of[i].dataset) {
            const enum tokmap_status status = open_source(opening, i, error);
            if (status)
                return status;
        }
    return TOKMAP_OK;
}

/* ---- agreement ---- */

/* Values of the sources before. UINT64_MAX: no such source so far. */
struct agreement {
    uint64_t known;               /* the first one whose tokenizer is known */
    uint64_t ends;                /* the first source that ends documents with an id */
    uint64_t eod_id;              /* the id; 0 if there is none */
    bool unknown_said, ends_said; /* warnings, which are given once */
};

static enum tokmap_status add_warning(struct run_sources *sources, const char *text, struct tokmap_error *error)
{
    const size_t before = sources->warning ? strlen(sources->warning) : 0, bytes = before + strlen(text) + 3;
    char *grown = realloc(sources->warning, bytes);
    if (!grown)
        return error_set_memory(error, "a warning about the run", bytes);
    (void)snprintf(grown + before, bytes - before, "%s%s", before ? "; " : "", text);
    sources->warning = grown;
    return TOKMAP_OK;
}

static bool is_known(const struct tokmap_dataset_info *info)
{
    const uint8_t unknown[16] = {0};
    return memcmp(info->tokenizer, unknown, sizeof unknown) != 0;
}

/* Compares the tokenizer of a source, or of a validation set, with those before it. */
static enum tokmap_status agree_in_tokenizer(const struct opening *opening, uint64_t i,
                                             const struct tokmap_dataset_info *info, struct agreement *agreement,
                                             struct tokmap_error *error)
{
    struct run_sources *sources = opening->sources;
    const struct source_line *line = run_spec_line(opening->spec, i);
    char text[512];
    if (!is_known(info)) {
        if (sources->opened == 1 || dataset_is_synthetic(sources->of[i].dataset) || agreement->unknown_said)
            return TOKMAP_OK;
        agreement->unknown_said = true;
        (void)snprintf(text, sizeof text,
                       "it is not recorded which tokenizer made %s '%s' (%.200s), so it cannot be checked that "
                       "all sources of the run use the same ids",
                       kind_of(sources, i), line->name, line->data);
        return add_warning(sources, text, error);
    }
    if (agreement->known == UINT64_MAX) {
        agreement->known = i;
        return TOKMAP_OK;
    }
    const struct source_line *known = run_spec_line(opening->spec, agreement->known);
    const struct tokmap_dataset_info other = info_of_dataset(sources->of[agreement->known].dataset);
    if (memcmp(info->tokenizer, other.tokenizer, sizeof other.tokenizer) == 0)
        return TOKMAP_OK;
    return wrong_at(opening, TOKMAP_ERROR_MISMATCH, line->line,
                    "%s '%s' (%.150s) and %s '%s' (%.150s) were made with different tokenizers, so their "
                    "ids mean different things; pack both with one tokenizer",
                    kind_of(sources, i), line->name, line->data, kind_of(sources, agreement->known), known->name,
                    known->data);
}

/* Compares the id that ends documents. */
static enum tokmap_status agree_in_eod(const struct opening *opening, uint64_t i,
                                       const struct tokmap_dataset_info *info, struct agreement *agreement,
                                       struct tokmap_error *error)
{
    struct run_sources *sources = opening->sources;
    char text[512];
    if (info->eod_id == TOKMAP_NO_ID)
        return TOKMAP_OK;
    if (i < sources->count && agreement->ends == UINT64_MAX) {
        agreement->ends = i;
        agreement->eod_id = info->eod_id;
    }
    if (agreement->ends == UINT64_MAX || agreement->ends_said || info->eod_id == agreement->eod_id)
        return TOKMAP_OK;
    agreement->ends_said = true;
    (void)snprintf(text, sizeof text,
                   "source '%s' ends its documents with id %" PRIu64 ", and %s '%s' with id %" PRIu64,
                   run_spec_line(opening->spec, agreement->ends)->name, agreement->eod_id, kind_of(sources, i),
                   run_spec_line(opening->spec, i)->name, info->eod_id);
    return add_warning(sources, text, error);
}

static enum tokmap_status all_agree(const struct opening *opening, struct tokmap_error *error)
{
    struct run_sources *sources = opening->sources;
    const struct run_spec *spec = opening->spec;
    struct agreement agreement = {.known = UINT64_MAX, .ends = UINT64_MAX};
    sources->extents_most = sources->segments_most = 1;
    for (uint64_t i = 0; i < sources->opened; i++) {
        const struct tokmap_dataset_info info = info_of_dataset(sources->of[i].dataset);
        enum tokmap_status status = agree_in_tokenizer(opening, i, &info, &agreement, error);
        if (!status)
            status = agree_in_eod(opening, i, &info, &agreement, error);
        if (status)
            return status;
        sources->vocabulary = max64(sources->vocabulary, info.vocabulary);
        sources->width = i < sources->count && info.width > sources->width ? info.width : sources->width;
        if (!sources->of[i].plan_path)
            continue;
        sources->segments_most = max64(sources->segments_most, sources->of[i].plan.header.row_segments);
        sources->extents_most = max64(sources->extents_most, plan_extents_most(&sources->of[i].plan));
    }
    sources->pad_id = spec->pad_id == TOKMAP_NO_ID ? agreement.eod_id : spec->pad_id;
    if (sources->width == 2 && sources->pad_id > UINT16_MAX)
        return wrong_at(opening, TOKMAP_ERROR_RANGE, spec->lines[RUN_PAD],
                        "the pad id %" PRIu64 " does not fit in the run's tokens, which have 2 bytes; use an id up to "
                        "65535",
                        sources->pad_id);
    return TOKMAP_OK;
}

enum tokmap_status run_sources_open(struct run_sources *sources, const struct run_spec *spec, const char *folder,
                                    const char *path, bool from_text, struct tokmap_error *error)
{
    struct opening opening = {.sources = sources, .spec = spec, .path = path, .from_text = from_text};
    *sources = (struct run_sources){0};
    const size_t all = run_spec_lines(spec);
    sources->of = calloc(all, sizeof *sources->of);
    if (!sources->of)
        return error_set_memory(error, "the run's sources", all * sizeof *sources->of);
    sources->count = spec->source_count;
    sources->opened = all;
    for (size_t i = 0; i < all; i++) {
        struct run_source *source = &sources->of[i];
        const struct source_line *line = run_spec_line(spec, i);
        source->name = line->name;
        source->name_bytes = strlen(line->name);
        source->data = data_path(folder, line->data);
        if (line->plan)
            source->plan_path = path_in(folder && !path_is_absolute(line->plan) ? folder : "", line->plan);
        if (!source->data || (line->plan && !source->plan_path))
            return error_set_memory(error, "a dataset's path", strlen(line->data) + 1);
    }
    const enum tokmap_status status = open_all(&opening, error);
    return status ? status : all_agree(&opening, error);
}

void run_sources_close(struct run_sources *sources)
{
    for (uint64_t i = 0; i < sources->opened; i++) {
        close_source(&sources->of[i]);
        free(sources->of[i].data);
        free(sources->of[i].plan_path);
    }
    free(sources->of);
    free(sources->warning);
    *sources = (struct run_sources){0};
}
