/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "format/shard_file.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "run/run.h"
#include "text/path.h"

static enum tokmap_status target_run_make(struct target *target, const struct run_arguments *arguments,
                                          struct tokmap_error *error)
{
    const struct run_values values = {
        .data = target->name,
        .seq_len = arguments->seq_len,
        .lookahead = arguments->lookahead,
        .batch = arguments->batch,
        .seed = arguments->seed,
        .order = (enum tokmap_order_kind)arguments->order,
        .steps = arguments->steps,
        .passes = arguments->passes,
    };
    return run_of_values(&target->run, &values, error);
}

/* Returns the first option that would contradict a run file, which describes the whole run, or NULL. */
static const char *run_option_given(const struct run_arguments *arguments)
{
    return arguments->seq_len_given     ? "seq-len"
           : arguments->lookahead_given ? "lookahead"
           : arguments->batch_given     ? "batch"
           : arguments->seed_given      ? "seed"
           : arguments->ordering_given  ? "order"
                                        : NULL;
}

/* The sets of a split that a folder has beside a name. */
struct sets {
    const char *name; /* in its folder */
    char list[256];   /* "web.train, web.val" */
    size_t bytes;
};

/* Takes NAME.SET.tmx and NAME.SET-00000.tmx. */
static int set_take(void *user, const char *entry)
{
    struct sets *sets = user;
    const size_t own = strlen(sets->name);
    size_t length = strlen(entry);
    if (length < own + 6 || strncmp(entry, sets->name, own) != 0 || entry[own] != '.' ||
        !shard_file_is(entry, SHARD_INDEX))
        return 0;
    length -= 4;
    if (length > own + 7 && !memcmp(entry + length - 6, "-00000", 6))
        length -= 6;
    const size_t more = length + (sets->bytes ? 2 : 0);
    if (sets->bytes + more < sizeof sets->list) /* a few names are enough */
        sets->bytes += (size_t)snprintf(sets->list + sets->bytes, sizeof sets->list - sets->bytes, "%s%.*s",
                                        sets->bytes ? ", " : "", (int)length, entry);
    return 0;
}

static bool sets_find(const char *name, struct sets *sets)
{
    *sets = (struct sets){.name = path_name(name)};
    char *folder = path_folder(name);
    if (folder && *sets->name)
        (void)os_folder_list(folder, set_take, sets);
    free(folder);
    return sets->bytes > 0;
}

/* Replaces the message of a library that only knows datasets, if there is no file and no folder of that name. */
static void missing_name(const char *name, struct tokmap_error *error)
{
    struct os_stat found;
    struct sets sets;
    char work[4096];
    if (strcmp(error->path, name) != 0 || remote_is(name) || !os_stat(name, &found))
        return;
    int length = snprintf(work, sizeof work, "%s.bin", name);
    if (length > 0 && (size_t)length < sizeof work && !os_stat(work, &found) && found.kind == OS_KIND_FILE)
        return; /* the library has said what to do with a .bin alone */
    length = snprintf(work, sizeof work, "%s.work", name);
    if (length > 0 && (size_t)length < sizeof work && !os_stat(work, &found))
        (void)error_set(error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
                        "there is no dataset of this name yet, only the unfinished work of a `tokmap pack` (%.200s); "
                        "repeat that command to complete it",
                        work);
    else if (sets_find(name, &sets))
        (void)error_set(error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
                        "there is no dataset of this name, but the folder has %s, as --split names the sets; name one "
                        "of them",
                        sets.list);
    else
        (void)error_set(error, TOKMAP_ERROR_NOT_FOUND, name, TOKMAP_NO_OFFSET,
                        "there is no run file and no dataset of this name (no file has this name, or this name with "
                        ".tmx added); check the path");
}

int target_open(struct target *target, const struct cli_command *command, const char *name,
                const struct run_arguments *arguments, bool make_run)
{
    struct tokmap_error error = {0};
    enum tokmap_status status;
    *target = (struct target){.name = name, .is_run_file = cli_names_run(name)};
    if (target->is_run_file) {
        const char *given = run_option_given(arguments);
        if (given)
            return cli_misused(command, "--%s is only for datasets; the run file '%s' already sets it", given, name);
        status = tokmap_run_open(&target->run, name, NULL, &error);
    } else if (make_run && arguments->seq_len_given && arguments->batch_given) {
        status = target_run_make(target, arguments, &error);
    } else {
        status = tokmap_dataset_open(&target->dataset, name, NULL, &error);
    }
    if (status == TOKMAP_ERROR_NOT_FOUND)
        missing_name(name, &error);
    if (status)
        return command_failed(command, &error);
    if (make_run && !target->run) {
        target_close(target);
        return cli_misused(command, "'%s' is a dataset; a run of it needs --seq-len and --batch", name);
    }
    if (target->run) {
        run_warn(command->program, target->run, name);
        sources_warn(command->program, target->run, name);
    } else {
        dataset_warn(command->program, target->dataset, name);
    }
    return -1;
}

enum tokmap_status local_dataset_open(struct tokmap_dataset **dataset, const char *name, struct tokmap_error *error)
{
    if (remote_is(name))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, name, TOKMAP_NO_OFFSET,
                         "this command works on the files of a dataset, and object storage has no files that it could "
                         "change or name; bring the dataset to this machine (tokmap copy), run the command there, and "
                         "copy the result back");
    return tokmap_dataset_open(dataset, name, NULL, error);
}

void dataset_warn(const char *program, const struct tokmap_dataset *dataset, const char *name)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    if (info.warning)
        cli_warn(program, "%s: %s", name, info.warning);
}

void run_warn(const char *program, const struct tokmap_run *run, const char *name)
{
    const struct tokmap_run_info info = info_of_run(run);
    if (info.warning)
        cli_warn(program, "%s: %s", name, info.warning);
}

void sources_warn(const char *program, const struct tokmap_run *run, const char *name)
{
    const struct tokmap_run_info info = info_of_run(run);
    const uint64_t datasets = info.sources + info.validations;
    for (uint64_t i = 0; i < datasets; i++) {
        const struct tokmap_source_info source = info_of_source(run, i);
        dataset_warn(program, source.dataset, datasets > 1 ? source.data : name);
    }
}

void target_close(struct target *target)
{
    tokmap_run_close(target->run);
    tokmap_dataset_close(target->dataset);
    target->run = NULL;
    target->dataset = NULL;
}

const struct tokmap_dataset *target_dataset(const struct target *target, uint64_t source)
{
    return target->dataset ? target->dataset : info_of_source(target->run, source).dataset;
}

const char *id_hex(const uint8_t id[16], char text[33])
{
    static const uint8_t unknown[16];
    if (memcmp(id, unknown, 16) == 0)
        memcpy(text, "unknown", sizeof "unknown");
    else
        hash128_hex(id, text);
    return text;
}
