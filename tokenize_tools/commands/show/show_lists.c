/* SPDX-License-Identifier: MIT */
#include "show_lists.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "platform/process.h"
#include "run/exclusion.h"
#include "run/run.h"
#include "step_rows.h"
#include "text/path.h"
#include "work/dropped_file.h"

struct exposing {
    const struct exposures_arguments *given;
    const char *name;
    const struct tokmap_run *run;
    const struct exclusions *exclusions;
    struct tokmap_run_info info;
    const struct exclusion_item *item; /* the document at hand */
    uint64_t documents, shown, excluded;
    uint64_t rows, first, last; /* found: how many, and their first and last step */
};

static void row_print(struct exposing *exposing, const struct sharing_row *row)
{
    const struct tokmap_place *place = &row->place;
    const struct tokmap_document *document = &exposing->item->document;
    const char *source = exposing->exclusions->sources->of[place->source].name;
    struct cli_report report;
    exposing->first = exposing->rows ? min64(exposing->first, place->step) : place->step;
    exposing->last = max64(exposing->last, place->step);
    exposing->rows++;
    if (!exposing->given->json)
        cli_print("%s %" PRIu64 ": step %" PRIu64 " row %" PRIu64 " epoch %" PRIu64 " window %" PRIu64 " shows %" PRIu64
                  " of %" PRIu64 " tokens\n",
                  source, document->number, place->step, place->row, place->epoch, place->window, row->shared,
                  document->tokens);
    cli_report_begin(&report, exposing->given->json, NULL);
    cli_member(&report, "source", cli_text(source));
    cli_numbers(&report, "document|step|row|draw|epoch|window|shared|tokens", document->number, place->step, place->row,
                place->draw, place->epoch, place->window, row->shared, document->tokens);
    cli_report_end(&report);
}

static enum tokmap_status item_show(void *user, const struct exclusion_item *item, struct tokmap_error *error)
{
    struct exposing *exposing = user;
    const struct cli_range *steps = &exposing->given->steps;
    const struct tokmap_document *document = &item->document;
    const uint64_t from = exclusion_step(exposing->exclusions, item->source, document->first_token);
    const bool excluded = document->tokens && from != TOKMAP_FOREVER;
    uint64_t end = min64(steps->given ? steps->end : TOKMAP_FOREVER, exposing->info.steps);
    exposing->documents++;
    exposing->excluded += excluded;
    if (excluded)
        end = min64(end, from);
    if (end == TOKMAP_FOREVER)
        return error_set(error, TOKMAP_ERROR_RANGE, exposing->name, TOKMAP_NO_OFFSET,
                         "the run has no end, and it does not exclude document %" PRIu64
                         " of source '%s'; choose the steps to search with --steps A..B",
                         document->number, exposing->exclusions->sources->of[item->source].name);
    const uint64_t first = min64(steps->given ? steps->first : 0, end);
    exposing->item = item;
    if (!document->tokens)
        return TOKMAP_OK;
    struct sharing found = {.run = exposing->run};
    const enum tokmap_status status =
        sharing_find(&found, item->source, document->first_token, document->tokens, first, end, UINT64_MAX, error);
    for (uint64_t i = 0; i < found.count && !status && !ferror(stdout); i++)
        row_print(exposing, &found.rows[i]);
    exposing->shown += found.count != 0;
    sharing_free(&found);
    return status || !ferror(stdout) ? status : TOKMAP_ERROR_INTERRUPTED;
}

static void summary_print(const struct exposing *exposing, const char *program)
{
    (void)cli_flush();
    if (exposing->rows)
        cli_say(program, "the run shows %s of %s, %s in steps %" PRIu64 " to %" PRIu64, CLI_COUNT(exposing->shown),
                CLI_COUNTED(exposing->documents, "document"), CLI_COUNTED(exposing->rows, "time"), exposing->first,
                exposing->last);
    else
        cli_say(program, "the run shows none of %s", CLI_COUNTED(exposing->documents, "document"));
    if (exposing->excluded)
        cli_say(program, "the run excludes %s of them, and only steps before that were searched",
                exposing->excluded == exposing->documents ? "all" : CLI_COUNT(exposing->excluded));
}

int exposures_show(const struct cli_command *command, const char *name, const struct run_arguments *run,
                   const struct exposures_arguments *given)
{
    struct target target = {0};
    struct tokmap_error error = {0};
    struct exposing exposing = {.given = given, .name = name};
    int exit_status = target_open(&target, command, name, run, true);
    if (exit_status < 0) {
        exposing.run = target.run;
        exposing.exclusions = run_exclusions(target.run);
        exposing.info = info_of_run(target.run);
        enum tokmap_status status =
            exclusion_list_read(given->list, exposing.exclusions->sources, item_show, &exposing, &error);
        if (status == TOKMAP_ERROR_INTERRUPTED && ferror(stdout))
            status = TOKMAP_OK; /* cli_finish() reports that standard output cannot be written */
        if (!status && !given->quiet)
            summary_print(&exposing, command->program);
        exit_status = status ? command_failed(command, &error) : CLI_DONE;
    }
    target_close(&target);
    return exit_status;
}

/* ---- dropped documents ---- */

static void document_report(const struct dropped_document *document, bool json)
{
    const bool is_duplicate = document->type != DROPPED_EXCLUDED;
    const char *reason = document->type == DROPPED_NEAR_DUPLICATE ? "near-duplicate" : "duplicate";
    const int path = (int)document->path_bytes, other = (int)document->other_path_bytes;
    struct cli_report report;
    cli_report_begin(&report, json, NULL);
    cli_member(&report, "input", cli_bytes_text(document->path, document->path_bytes));
    cli_member(&report, "record", cli_number(document->record));
    cli_member(&report, "reason", cli_text(is_duplicate ? reason : "excluded"));
    cli_report_object(&report, is_duplicate ? "kept" : "listed");
    cli_member(&report, is_duplicate ? "input" : "file",
               cli_bytes_text(document->other_path, document->other_path_bytes));
    cli_member(&report, "record", cli_number(document->other_record));
    if (!is_duplicate)
        cli_member(&report, "ngram", cli_bytes_text(document->ngram, document->ngram_bytes));
    cli_report_close(&report);
    cli_report_end(&report);
    if (!json && is_duplicate)
        cli_print("%.*s record %" PRIu64 ": %s of %.*s record %" PRIu64 "\n", path, document->path, document->record,
                  reason, other, document->other_path, document->other_record);
    else if (!json)
        cli_print("%.*s record %" PRIu64 ": excluded by %.*s record %" PRIu64 ": %.*s\n", path, document->path,
                  document->record, other, document->other_path, document->other_record, (int)document->ngram_bytes,
                  document->ngram);
}

/* Returns the path of the list, which the caller frees; NULL without memory. */
static char *list_path(const char *name)
{
    return shard_file_is(name, SHARD_DROPPED) ? strdup(name) : shard_file_path(name, SHARD_DROPPED, SHARD_FINAL);
}

/* Prints a hint: the sets of a split, PREFIX.SET, have one list, PREFIX.dropped. */
static void split_hint(const struct cli_command *command, const char *name)
{
    struct os_stat stat;
    const size_t length = strlen(name) - strlen(path_name(name));
    const char *dot = strrchr(name + length, '.');
    char *prefix = dot ? strndup(name, (size_t)(dot - name)) : NULL, *path = prefix ? list_path(prefix) : NULL;
    if (path && !os_stat(path, &stat))
        cli_say(command->program, "the sets of a split have one list: name it with --dropped %s", prefix);
    free(path);
    free(prefix);
}

int dropped_list_show(const struct cli_command *command, const char *name, bool json, bool quiet)
{
    struct tokmap_error error;
    struct dropped_file *file = NULL;
    struct dropped_document document;
    char *path = list_path(name);
    enum tokmap_status status = path ? dropped_open(&file, path, os_is_stopped, NULL, &error)
                                     : error_set_memory(&error, "a path", strlen(name));
    while (!status && !ferror(stdout)) {
        status = dropped_next(file, &document, &error);
        if (!status)
            document_report(&document, json);
    }
    if (status == TOKMAP_END) {
        const struct dropped_header *header = dropped_header(file);
        status = TOKMAP_OK;
        (void)cli_flush();
        if (!quiet)
            cli_say(command->program, "dropped %s of %s documents: %s %s, excluded %s",
                    CLI_COUNT(header->duplicates + header->excluded), CLI_COUNT(header->documents),
                    header->minor >= DROPPED_MINOR_NEAR ? "near-duplicates" : "duplicates",
                    CLI_COUNT(header->duplicates), CLI_COUNT(header->excluded));
    }
    dropped_close(file);
    free(path);
    const int done = status ? command_failed(command, &error) : CLI_DONE;
    if (status == TOKMAP_ERROR_NOT_FOUND)
        split_hint(command, name);
    return done;
}
