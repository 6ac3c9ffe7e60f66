/* SPDX-License-Identifier: MIT */
#include "folder_list.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/options/target.h"
#include "commands/report/dataset_about.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

/* Returns whether a folder was refused because its shards differ. That error names the index of a shard; a .bin whose
 * index is missing is ERROR_MISMATCH as well, but then the error names the .bin, and nothing may be listed in its
 * place. */
static bool shards_differ(const struct tokmap_error *why)
{
    return why->status == TOKMAP_ERROR_MISMATCH && shard_file_is(why->path, SHARD_INDEX);
}

bool folder_is_several(const char *name)
{
    struct os_stat found;
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_error why = {0};
    if (os_stat(name, &found) || found.kind != OS_KIND_FOLDER)
        return false;
    const enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, &why);
    tokmap_dataset_close(dataset);
    return status && shards_differ(&why);
}

/* ---- the names ---- */

struct names {
    const char *folder;
    char **paths;
    size_t count, capacity;
    bool failed; /* out of memory */
};

/* Takes an entry of the folder if it can be a dataset. An index stands for its prefix. */
static int entry_take(void *user, const char *name)
{
    struct names *names = user;
    struct os_stat found;
    char *path = path_in(names->folder, name);
    names->failed = !path;
    if (!path)
        return -1;
    struct shard_name file;
    const bool is_index =
        shard_file_find(path, strlen(path), &file) && file.file == SHARD_INDEX && file.state == SHARD_FINAL;
    const bool known = !os_stat(path, &found);
    if (known && found.kind == OS_KIND_FILE && is_index) {
        path[file.stem] = '\0';
    } else if (!known || (found.kind != OS_KIND_FOLDER && (found.kind != OS_KIND_FILE || !cli_is_manifest(path)))) {
        free(path);
        return 0;
    }
    names->failed = !list_room(&names->paths, names->count, &names->capacity, sizeof *names->paths);
    if (names->failed) {
        free(path);
        return -1;
    }
    names->paths[names->count++] = path;
    return 0;
}

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->paths[i]);
    free(names->paths);
}

/* ---- the list ---- */

struct listing {
    struct cli_report report;
    enum tokmap_status failed; /* of the first dataset that cannot be opened */
    struct tokmap_error *error;
};

static void opened_list(struct listing *listing, const char *name, const struct tokmap_dataset *dataset)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_error unused;
    struct about_facts facts = {.name = ""};
    char title[ABOUT_TITLE];
    struct cli_report *report = &listing->report;
    if (!tokmap_dataset_shard(dataset, 0, &shard, &unused))
        (void)about_read(&shard, &facts, &unused);
    cli_fact_text(report, "dataset", "dataset", name);
    cli_fact_number(report, "tokens", "tokens", info.tokens);
    cli_fact_number(report, "documents", "documents", info.documents);
    cli_numbers(report, "shards|width|vocabulary", info.shards, info.width, info.vocabulary);
    cli_fact(report, "token_bytes", "size", cli_number(info.tokens * info.width), "%s",
             CLI_BYTES(info.tokens * info.width));
    cli_fact(report, "tokenizer_name", "tokenizer", cli_text(facts.name[0] ? facts.name : NULL), "%s",
             *about_title(&facts, title) ? title : "not recorded");
    cli_member(report, "tokenizer", cli_text(ID_HEX(info.tokenizer)));
    cli_member(report, "error", cli_null());
    about_free(&facts);
}

static void refused_list(struct listing *listing, const char *name, const struct tokmap_error *why)
{
    /* A subfolder may be several datasets, like the folder itself: that is not a fault. */
    const bool several = shards_differ(why);
    char text[sizeof why->path + sizeof why->message + 256];
    const char *reason = several ? "several datasets; list them with 'tokmap info'" : "cannot be opened";
    cli_fact_text(&listing->report, "dataset", "dataset", name);
    cli_fact(&listing->report, "error", "tokenizer", cli_text(tokmap_error_print(why, text, sizeof text)), "%s",
             reason);
    if (!several && !listing->failed) {
        listing->failed = why->status;
        if (listing->error)
            *listing->error = *why;
    }
}

static void dataset_list(struct listing *listing, const char *name)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_error why = {0};
    struct os_stat found;
    const enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, &why);
    if (status == TOKMAP_ERROR_NOT_FOUND && !os_stat(name, &found) && found.kind == OS_KIND_FOLDER)
        return; /* a folder without shards */
    cli_report_item(&listing->report);
    if (status)
        refused_list(listing, name, &why);
    else
        opened_list(listing, name, dataset);
    cli_report_close(&listing->report);
    tokmap_dataset_close(dataset);
}

enum tokmap_status folder_list(const char *folder, bool as_json, struct tokmap_error *error)
{
    struct names names = {.folder = folder};
    struct listing listing = {.error = error};
    const int system = os_folder_list(folder, entry_take, &names);
    if (system) {
        names_free(&names);
        return names.failed ? error_set_memory(error, "the names in a folder", 0)
                            : error_set_system(error, system, folder, TOKMAP_NO_OFFSET, "the folder cannot be listed");
    }
    qsort(names.paths, names.count, sizeof *names.paths, path_compare);
    cli_report_begin(&listing.report, as_json, NULL);
    cli_member(&listing.report, "folder", cli_text(folder));
    if (!as_json)
        cli_print("%s holds datasets that cannot be one, because their tokenizers or widths differ:\n\n", folder);
    cli_report_list(&listing.report, "datasets", "dataset|>tokens|>documents|>size|tokenizer");
    for (size_t i = 0; i < names.count; i++)
        dataset_list(&listing, names.paths[i]);
    cli_report_close(&listing.report);
    cli_report_end(&listing.report);
    names_free(&names);
    return listing.failed;
}
