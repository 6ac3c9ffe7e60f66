/* SPDX-License-Identifier: MIT */
#include "next_input.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format_choice.h"
#include "platform/os.h"
#include "remote/remote_url.h"

static void open_thread(void *user)
{
    struct next_input *next = user;
    next->opened = parquet_open(&next->source, next->path, next->options, NULL, next->shared, &next->opened_why);
    if (!next->opened)
        (void)parquet_source_begin(next->source, 0);
}

static void opening_end(struct next_input *next)
{
    os_thread_join(next->thread);
    next->thread = NULL;
    parquet_source_close(next->source);
    next->source = NULL;
    free(next->path);
    next->path = NULL;
}

void next_input_free(struct next_input *next)
{
    if (next->thread && next->shared->ahead)
        remote_ahead_stop(next->shared->ahead);
    opening_end(next);
}

enum tokmap_status next_input_ask(struct next_input *next, struct inputs *inputs, const struct corpus_options *options,
                                  struct parquet_shared *shared, struct tokmap_error *error)
{
    const char *path = NULL;
    /* A list may come from a pipe, whose writer may wait for the open file. */
    if (options->select.list_count || options->range.groups || next->asked)
        return TOKMAP_OK;
    opening_end(next);
    next->found = inputs_next(inputs, &path, &next->found_why);
    next->counts = *inputs_counts(inputs);
    next->asked = true;
    if (next->found)
        return TOKMAP_OK;
    next->path = strdup(path);
    if (!next->path)
        return error_set_memory(error, "the name of an input", 0);
    const enum corpus_format named = options->format;
    const enum corpus_format format = named == CORPUS_AUTO ? format_of_name(path) : named;
    if (remote_kind(path) == REMOTE_NONE || format != CORPUS_PARQUET)
        return TOKMAP_OK;
    next->options = options;
    next->shared = shared;
    if (os_thread_start(&next->thread, "tokmap-open", open_thread, next))
        next->thread = NULL; /* it is opened when its turn comes */
    return TOKMAP_OK;
}

enum tokmap_status next_input_take(struct next_input *next, struct inputs *inputs, const char **path,
                                   struct inputs_counts *counts, struct tokmap_error *error)
{
    if (!next->asked) {
        const enum tokmap_status found = inputs_next(inputs, path, error);
        *counts = *inputs_counts(inputs);
        return found;
    }
    next->asked = false;
    *counts = next->counts;
    *path = next->path;
    if (next->found && error)
        *error = next->found_why;
    return next->found;
}

bool next_input_opened(struct next_input *next, const char *path, struct parquet_source **source,
                       enum tokmap_status *status, struct tokmap_error *error)
{
    if (!next->thread || path != next->path)
        return false;
    os_thread_join(next->thread);
    next->thread = NULL;
    *source = next->source;
    next->source = NULL;
    *status = next->opened;
    if (next->opened)
        *error = next->opened_why;
    return true;
}
