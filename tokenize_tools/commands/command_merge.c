/* SPDX-License-Identifier: MIT */
/*
 * command_merge.c - tokmap merge (also: tokmap cat): writes a manifest, which makes one dataset of the shards of
 * several without copying a token.
 *
 * A manifest's names start from its own folder (FORMAT.md), and the user's from the current one. Both are compared as
 * text, part by part, which is wrong where a part is a symbolic link. So the manifest is opened before it gets its
 * name, and its shards are compared with those that were named; if they are not the same, it is written again with
 * absolute names. The sizes of the shards are stated last, because a dataset of stated shards opens without them.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/output_file.h"
#include "commands/options/target.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/manifest.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "text/path.h"

static const char program[] = "tokmap merge";

/* A shard of an operand. */
struct named {
    const char *operand;
    char *index; /* the path of its index */
    uint64_t tokens, documents;
    uint8_t content[16];
};

struct merging {
    const char *output;
    bool absolute, force, json, quiet;
    char *here; /* the current folder */
    struct named *shards;
    size_t count, capacity;
    size_t repeated; /* shards that were named before */
};

/* ---- the shards ---- */

static enum tokmap_status shard_take(struct merging *merging, const char *operand,
                                     const struct tokmap_shard_info *shard, struct tokmap_error *error)
{
    if (!list_room(&merging->shards, merging->count, &merging->capacity, sizeof *merging->shards))
        return error_set_memory(error, "the names of shards", merging->capacity * sizeof *merging->shards);
    struct named *taken = &merging->shards[merging->count];
    *taken = (struct named){operand, strdup(shard->index_path), shard->tokens, shard->documents, {0}};
    if (!taken->index)
        return error_set_memory(error, "the name of a shard", strlen(shard->index_path) + 1);
    memcpy(taken->content, shard->content, sizeof taken->content);
    merging->count++;
    return TOKMAP_OK;
}

static enum tokmap_status operand_take(struct merging *merging, const char *name, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    enum tokmap_status status = local_dataset_open(&dataset, name, error);
    if (!status)
        status = tokmap_dataset_info(dataset, &info);
    if (!status && !info.shards)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                           "a synthetic dataset has no shards that a manifest could name");
    if (!status && strcmp(info.kind, "shards") != 0)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                           "a manifest names shards, and these files of another project (%s) have no index; make them "
                           "shards with `tokmap index`, or name them in a run",
                           info.kind);
    for (uint64_t number = 0; number < info.shards && !status; number++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        status = tokmap_dataset_shard(dataset, number, &shard, error);
        if (!status)
            status = shard_take(merging, name, &shard, error);
    }
    tokmap_dataset_close(dataset);
    return status;
}

static int paths_compare(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->index, ((const struct named *)b)->index);
}

/* Counts the shards that occur again. */
static enum tokmap_status repeated_count(struct merging *merging, struct tokmap_error *error)
{
    struct named *sorted = malloc(merging->count * sizeof *sorted);
    if (!sorted)
        return error_set_memory(error, "the names of shards", merging->count * sizeof *sorted);
    memcpy(sorted, merging->shards, merging->count * sizeof *sorted);
    qsort(sorted, merging->count, sizeof *sorted, paths_compare);
    for (size_t i = 1; i < merging->count; i++)
        merging->repeated += strcmp(sorted[i - 1].index, sorted[i].index) == 0;
    free(sorted);
    return TOKMAP_OK;
}

/* ---- names in the manifest ---- */

static char *absolute_path(const struct merging *merging, const char *path)
{
    return path_in(path_is_absolute(path) ? "" : merging->here, path);
}

/* Returns the name that stands for an index in the manifest; the caller frees it. An absolute one stays as it is. NULL:
 * no memory. */
static char *name_make(const struct merging *merging, const char *folder, const char *index, bool absolute)
{
    char *name = NULL;
    if (path_is_absolute(index)) {
        name = strdup(index);
    } else if (!absolute) {
        char *whole = absolute_path(merging, index);
        const bool related = whole && path_relative(folder, whole, &name);
        const bool lacking = !whole || (related && !name);
        free(whole);
        if (lacking)
            return NULL;
    }
    if (!name) {
        char *holder = path_folder(index), *real = NULL;
        if (holder && !os_real_path(holder, &real))
            name = path_in(real, path_name(index));
        free(holder);
        free(real);
    }
    if (!name)
        return NULL;
    /* "web.tmx" is written as "web", unless what remains would be read in another way: trailing blanks are cut off, and
     * ".bin" and ".tmx" are taken for endings. */
    const size_t length = strlen(name);
    if (length > 4 && !strchr(" \t\r/", name[length - 5]) &&
        !(length > 8 && (!strncmp(name + length - 8, ".bin", 4) || !strncmp(name + length - 8, ".tmx", 4))))
        name[length - 4] = '\0';
    return name;
}

/* Adds the line of a shard, with what its index says if `state` says so. */
static enum tokmap_status line_add(struct manifest_text *text, const char *name, const char *index_path, bool state,
                                   struct tokmap_error *error)
{
    struct index index;
    if (strchr(name, '\n'))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, index_path, TOKMAP_NO_OFFSET,
                         "the name contains a line end, which a manifest cannot hold; rename the shard");
    enum tokmap_status status = state ? index_open_as(&index, index_path, TOKMAP_READ_PREAD, error) : TOKMAP_OK;
    const bool opened = state && !status;
    if (!status && !manifest_text_add(text, name, state ? &index : NULL))
        status = error_set_memory(error, "the manifest", 0);
    if (opened)
        index_close(&index);
    return status;
}

static enum tokmap_status names_write(const struct merging *merging, const struct output_file *file, bool absolute,
                                      bool state, struct tokmap_error *error)
{
    struct manifest_text text = {.about = 0};
    char *folder = path_folder(merging->output), *whole = folder ? absolute_path(merging, folder) : NULL;
    enum tokmap_status status = whole ? TOKMAP_OK : error_set_memory(error, "the manifest", 0);
    for (size_t i = 0; i < merging->count && !status; i++) {
        const char *index = merging->shards[i].index;
        char *name = name_make(merging, whole, index, absolute);
        status = name ? line_add(&text, name, index, state, error) : error_set_memory(error, "the manifest", 0);
        free(name);
    }
    int system = status ? 0 : os_truncate(file->fd, 0);
    if (!status && !system)
        system = os_pwrite(file->fd, text.text.bytes, text.text.count, 0);
    manifest_text_free(&text);
    free(folder);
    free(whole);
    if (system)
        return error_set_system(error, system, file->partial, TOKMAP_NO_OFFSET, "the manifest cannot be written");
    return status;
}

/* ---- the manifest ---- */

/* Compares the shards of the manifest with those that were named. A part of a shard has the shard's content id. */
static enum tokmap_status shards_compare(const struct merging *merging, struct tokmap_dataset *dataset, bool *same,
                                         struct tokmap_error *error)
{
    *same = true;
    for (size_t i = 0; i < merging->count && *same; i++) {
        const struct named *wanted = &merging->shards[i];
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        const enum tokmap_status status = tokmap_dataset_shard(dataset, i, &shard, error);
        if (status)
            return status;
        *same = !memcmp(shard.content, wanted->content, sizeof shard.content);
        if (*same && (shard.tokens != wanted->tokens || shard.documents != wanted->documents))
            return error_set(error, TOKMAP_ERROR_MISMATCH, wanted->operand, TOKMAP_NO_OFFSET,
                             "this is a part of a shard, and a manifest names whole shards; name the part in a run, as "
                             "a source or with `tokmap mix`");
    }
    return TOKMAP_OK;
}

/* Opens the manifest that was written, and compares its content with what was named. */
static enum tokmap_status manifest_check(const struct merging *merging, const struct output_file *file, bool *same,
                                         struct tokmap_dataset **dataset, struct tokmap_error *error)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    enum tokmap_status status = tokmap_dataset_open(dataset, file->partial, NULL, error);
    *same = false;
    if (!status)
        status = tokmap_dataset_info(*dataset, &info);
    return status || info.shards != merging->count ? status : shards_compare(merging, *dataset, same, error);
}

static enum tokmap_status manifest_make(const struct merging *merging, struct output_file *file,
                                        struct tokmap_dataset **dataset, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    bool same = false;
    int absolute = merging->absolute;
    for (;; absolute++) {
        tokmap_dataset_close(*dataset);
        *dataset = NULL;
        status = names_write(merging, file, absolute, false, error);
        if (status)
            return status;
        status = manifest_check(merging, file, &same, dataset, error);
        if (status == TOKMAP_ERROR_MISMATCH || status == TOKMAP_ERROR_MEMORY)
            return status; /* the shards differ in width or tokenizer, or one is a part; no names would help */
        if (same || absolute)
            break;
    }
    if (!status && !same)
        status = error_set(error, TOKMAP_ERROR_MISMATCH, merging->output, TOKMAP_NO_OFFSET,
                           "the shards were replaced while the manifest was made; try again");
    return status ? status : names_write(merging, file, absolute, true, error);
}

static void report(const struct merging *merging, const struct tokmap_dataset_info *info)
{
    struct cli_report report;
    cli_report_begin(&report, merging->json, NULL);
    cli_member(&report, "output", cli_text(merging->output));
    cli_numbers(&report, "shards|repeated|tokens|documents", info->shards, merging->repeated, info->tokens,
                info->documents);
    cli_member(&report, "content", cli_text(ID_HEX(info->content)));
    cli_member(&report, "warning", cli_text(info->warning));
    cli_report_end(&report);
    if (merging->json || merging->quiet)
        return;
    cli_print("%s: %s in %s and %s; nothing was copied, so keep them where they are\n", merging->output,
              CLI_COUNTED(info->tokens, "token"), CLI_COUNTED(info->documents, "document"),
              CLI_COUNTED(info->shards, "shard"));
    if (merging->repeated)
        printf("%s named again: a shard that is named N times is seen N times in each epoch\n",
               CLI_COUNTED(merging->repeated, "shard"));
}

static enum tokmap_status merge_operands(struct merging *merging, const char **operands, size_t count,
                                         struct tokmap_error *error)
{
    struct output_file file = {.fd = -1};
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct os_stat found;
    enum tokmap_status status = TOKMAP_OK;
    char *index = shard_file_path(merging->output, SHARD_INDEX, SHARD_FINAL);
    if (!index)
        return error_set_memory(error, "the output's name", strlen(merging->output) + 5);
    if (!os_stat(index, &found))
        status = error_set(error, TOKMAP_ERROR_EXISTS, index, TOKMAP_NO_OFFSET,
                           "this shard exists, so '%.200s' means it and would not mean the manifest; choose another "
                           "name",
                           merging->output);
    free(index);
    for (size_t i = 0; i < count && !status; i++)
        status = operand_take(merging, operands[i], error);
    if (!status)
        status = repeated_count(merging, error);
    if (!status)
        status = output_file_open(&file, merging->output, merging->force, error);
    if (status)
        return status;
    status = manifest_make(merging, &file, &dataset, error);
    if (!status)
        status = tokmap_dataset_info(dataset, &info);
    if (status)
        output_file_abort(&file);
    else
        status = output_file_commit(&file, error);
    if (!status) {
        dataset_warn(program, dataset, merging->output);
        report(merging, &info);
    }
    tokmap_dataset_close(dataset);
    return status;
}

static int merge(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct merging *merging = user;
    struct tokmap_error error = {0};
    if (!merging->output)
        return cli_misused(command, "no output given; name the manifest with -o FILE");
    if (!operand_count)
        return cli_misused(command, "expected one dataset or more");
    if (shard_file_is(merging->output, SHARD_INDEX) || shard_file_is(merging->output, SHARD_TOKENS))
        return cli_misused(command, "a manifest cannot be called '%s', because that ending means a shard",
                           merging->output);
    for (size_t i = 0; i < operand_count; i++)
        if (cli_names_run(operands[i]))
            return cli_misused(command, "'%s' is a run file; name datasets", operands[i]);
    enum tokmap_status status = TOKMAP_OK;
    const int system = os_real_path(".", &merging->here);
    if (system)
        status = error_set_system(&error, system, ".", TOKMAP_NO_OFFSET, "the current folder cannot be examined");
    if (!status)
        status = merge_operands(merging, operands, operand_count, &error);
    for (size_t i = 0; i < merging->count; i++)
        free(merging->shards[i].index);
    free(merging->shards);
    free(merging->here);
    return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
}

int command_merge(int argc, char **argv)
{
    struct merging merging = {0};
    const struct cli_option options[] = {
        {'o', "output", CLI_TEXT, &merging.output, NULL, "FILE", "the manifest to write", NULL},
        {0, "absolute", CLI_FLAG, &merging.absolute, NULL, NULL,
         "write absolute names, so that the manifest may be moved; by default names start from the manifest's folder, "
         "so that both may be moved together",
         NULL},
        {0, "force", CLI_FLAG, &merging.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "json", CLI_FLAG, &merging.json, NULL, NULL, "print the report as a JSON object", NULL},
        {'q', "quiet", CLI_FLAG, &merging.quiet, NULL, NULL, "print no report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "-o FILE [OPTION]... DATASET...",
        .summary = "Makes one dataset of several: writes a manifest, a text file that names their shards in the order "
                   "given. No token is copied. The shards must agree in width and tokenizer, and be whole.",
        .details = "A dataset that is named N times is seen N times in each epoch (upsampling). 'tokmap cat' is the "
                   "same command.\n\n"
                   "Examples:\n"
                   "  tokmap merge -o data/all data/web data/books\n"
                   "  tokmap merge -o data/mix data/web data/code data/code\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, merge, &merging);
}
