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

static bool is_stopped(void *user)
{
    (void)user;
    return os_signal_caught() != 0;
}

static void document_json(const struct dropped_document *document)
{
    struct cli_json json;
    const bool is_duplicate = document->type != DROPPED_EXCLUDED;
    const bool is_near = document->type == DROPPED_NEAR_DUPLICATE;
    cli_json_begin(&json, stdout);
    cli_json_object(&json, NULL);
    cli_json_bytes(&json, "input", document->path, document->path_bytes);
    cli_json_number(&json, "record", document->record);
    cli_json_text(&json, "reason", is_near ? "near-duplicate" : is_duplicate ? "duplicate" : "excluded");
    cli_json_object(&json, is_duplicate ? "kept" : "listed");
    cli_json_bytes(&json, is_duplicate ? "input" : "file", document->other_path, document->other_path_bytes);
    cli_json_number(&json, "record", document->other_record);
    if (!is_duplicate)
        cli_json_bytes(&json, "ngram", document->ngram, document->ngram_bytes);
    cli_json_end(&json);
    cli_json_end(&json);
}

static void document_print(const struct dropped_document *document)
{
    const int path = (int)document->path_bytes, other = (int)document->other_path_bytes;
    if (document->type != DROPPED_EXCLUDED)
        cli_print("%.*s record %" PRIu64 ": %s of %.*s record %" PRIu64 "\n", path, document->path, document->record,
                  document->type == DROPPED_NEAR_DUPLICATE ? "near-duplicate" : "duplicate", other,
                  document->other_path, document->other_record);
    else
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
    char *path = list_path(name), a[32], b[32], c[32];
    enum tokmap_status status =
        path ? dropped_open(&file, path, is_stopped, NULL, &error) : error_set_memory(&error, "a path", strlen(name));
    while (!status && !ferror(stdout)) {
        status = dropped_next(file, &document, &error);
        if (!status && json)
            document_json(&document);
        else if (!status)
            document_print(&document);
    }
    if (status == TOKMAP_END) {
        const struct dropped_header *header = dropped_header(file);
        status = TOKMAP_OK;
        (void)cli_flush();
        if (!quiet)
            cli_say(command->program, "dropped %s of %s documents: %s %s, excluded %s",
                    cli_count(header->duplicates + header->excluded, a), cli_count(header->documents, b),
                    header->minor >= DROPPED_MINOR_NEAR ? "near-duplicates" : "duplicates",
                    cli_count(header->duplicates, c), cli_count(header->excluded, (char[32]){0}));
    }
    dropped_close(file);
    free(path);
    const int done = status ? command_failed(command, &error) : CLI_DONE;
    if (status == TOKMAP_ERROR_NOT_FOUND)
        split_hint(command, name);
    return done;
}
