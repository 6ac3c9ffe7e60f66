/* SPDX-License-Identifier: MIT */
/* exposures.c - see exposures.h. */
#include "exposures.h"

#include <inttypes.h>
#include <stdlib.h>

#include "commands/options/error_options.h"
#include "common/bytes.h"
#include "common/error.h"
#include "row_tokens.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/run.h"

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
    cli_member(&report, "document", cli_number(document->number));
    cli_member(&report, "step", cli_number(place->step));
    cli_member(&report, "row", cli_number(place->row));
    cli_member(&report, "draw", cli_number(place->draw));
    cli_member(&report, "epoch", cli_number(place->epoch));
    cli_member(&report, "window", cli_number(place->window));
    cli_member(&report, "shared", cli_number(row->shared));
    cli_member(&report, "tokens", cli_number(document->tokens));
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
    struct exposing exposing = {.given = given, .name = name, .info = TOKMAP_RUN_INFO_INIT};
    int exit_status = target_open(&target, command, name, run, true);
    if (exit_status < 0) {
        exposing.run = target.run;
        exposing.exclusions = run_exclusions(target.run);
        enum tokmap_status status = tokmap_run_info(target.run, &exposing.info);
        if (!status)
            status = exclusion_list_read(given->list, exposing.exclusions->sources, item_show, &exposing, &error);
        if (status == TOKMAP_ERROR_INTERRUPTED && ferror(stdout))
            status = TOKMAP_OK; /* cli_finish() reports that standard output cannot be written */
        if (!status && !given->quiet)
            summary_print(&exposing, command->program);
        exit_status = status ? command_failed(command, &error) : CLI_DONE;
    }
    target_close(&target);
    return exit_status;
}
