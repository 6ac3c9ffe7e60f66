/* SPDX-License-Identifier: MIT */
/* values_report.c - see values_report.h. */
#include "values_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "dataset/dataset_values.h"
#include "dataset/open_shards.h"
#include "dataset/values_names.h"

/* The values of one name, in all shards that have them. */
struct summary {
    struct values_array array; /* of the first one */
    uint64_t tokens, present, files;
    char *file; /* the first one */
};

struct summaries {
    struct summary *of;
    uint64_t count, room;
};

static void summaries_free(struct summaries *all)
{
    for (uint64_t i = 0; i < all->count; i++)
        free(all->of[i].file);
    free(all->of);
}

static enum tokmap_status summary_add(struct summaries *all, struct values_file *values, struct tokmap_error *error)
{
    struct summary *at = all->of;
    while (at < all->of + all->count && strcmp(at->array.name, values->array.name) != 0)
        at++;
    if (at == all->of + all->count) {
        if (!list_room(&all->of, all->count, &all->room, sizeof *all->of))
            return error_set_memory(error, "the list of values", all->count * sizeof *all->of);
        at = &all->of[all->count++];
        *at = (struct summary){.array = values->array, .file = values->path};
        values->path = NULL;
    }
    at->tokens += values->tokens;
    at->present += values->present;
    at->files++;
    return TOKMAP_OK;
}

/* Adds the values of a shard, which is held. What cannot be found or opened is a warning. */
static enum tokmap_status shard_add(struct summaries *all, const char *program, const struct tokmap_dataset *dataset,
                                    const struct shard *shard, struct values_names *names, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    struct tokmap_error reason = {0};
    char what[VALUES_NAME_MOST + 1], text[1500];
    if (values_names_begin(names, dataset->cache ? shard->store.path : shard->index_path, &reason))
        cli_warn(program, "%s", tokmap_error_print(&reason, text, sizeof text));
    while (!reason.status && !status && values_names_next(names, what)) {
        struct values_file values;
        struct values_ranges *ranges;
        struct tokmap_error damaged;
        if (dataset_values_file(&values, &ranges, dataset, shard, what, &damaged)) {
            cli_warn(program, "%s", tokmap_error_print(&damaged, text, sizeof text));
            continue;
        }
        status = summary_add(all, &values, error);
        values_file_close(&values);
        free(ranges);
    }
    return status;
}

static enum tokmap_status summaries_make(const char *program, const struct tokmap_dataset *dataset,
                                         struct summaries *all, struct tokmap_error *error)
{
    struct values_names names = {0};
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t s = 0; s < dataset->shard_count && !status; s++) {
        const struct shard *shard;
        status = shard_hold(dataset, s, &shard, error);
        if (status)
            break;
        if (shard->index.bytes)
            status = shard_add(all, program, dataset, shard, &names, error);
        shard_release(dataset, s);
    }
    values_names_free(&names);
    return status;
}

enum tokmap_status values_report(const char *program, const struct tokmap_dataset *dataset, struct cli_report *report,
                                 struct tokmap_error *error)
{
    struct summaries all = {0};
    const enum tokmap_status status = summaries_make(program, dataset, &all, error);
    if (all.count)
        cli_report_list(report, "values", NULL);
    for (uint64_t i = 0; i < all.count; i++) {
        const struct summary *at = &all.of[i];
        cli_report_item(report);
        cli_member(report, "name", cli_text(at->array.name));
        cli_member(report, "element", cli_text(values_element_name(at->array.element)));
        cli_report_array(report, "shape");
        for (uint32_t d = 0; d < at->array.dimensions; d++)
            cli_member(report, NULL, cli_number(at->array.shape[d]));
        cli_report_close(report);
        cli_numbers(report, "tokens|files", at->present, at->files);
        cli_member(report, "file", cli_text(at->file));
        cli_report_close(report);
    }
    if (all.count)
        cli_report_close(report);
    for (uint64_t i = 0; i < all.count; i++)
        cli_row(report, "values", "%s, %s, of %s tokens (%.2f%%) in %s", all.of[i].array.name,
                VALUES_TYPE(&all.of[i].array), CLI_COUNT(all.of[i].present),
                cli_percent(all.of[i].present, all.of[i].tokens), CLI_COUNTED(all.of[i].files, "file"));
    summaries_free(&all);
    return status;
}

void values_left_out(const char *program, const struct tokmap_dataset *dataset, const char *advice)
{
    struct summaries all = {0};
    (void)summaries_make(program, dataset, &all, NULL);
    for (uint64_t i = 0; i < all.count; i++)
        cli_warn(program, "the values '%s' beside the shards are left out (%s%s); %s", all.of[i].array.name,
                 all.of[i].file, all.of[i].files > 1 ? ", ..." : "", advice);
    summaries_free(&all);
}
