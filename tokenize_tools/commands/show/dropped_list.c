/* SPDX-License-Identifier: MIT */
/* dropped_list.c - see dropped_list.h. */
#include "dropped_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/options/error_options.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"
#include "work/dropped_file.h"

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
