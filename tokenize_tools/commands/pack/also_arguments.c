/* SPDX-License-Identifier: MIT */
#include "also_arguments.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "pack/pack_also.h"
#include "pack/pack_output.h"
#include "platform/os.h"
#include "text/path.h"

/* Returns true if a format has a copy of the tokens: llm.c's file has a header, and a sealed shard has no .bin to
 * share. */
static bool is_copy(enum foreign_target target, bool sealed)
{
    return sealed || target == TARGET_LLMC;
}

/* Returns the ending of a copy. A copy that is a .bin needs a name of its own: PREFIX.bin is the shard's, also if the
 * shard is sealed. */
static const char *ending_of(enum foreign_target target, bool sealed)
{
    return target == TARGET_LLMC                 ? ".llmc"
           : sealed && target == TARGET_MEGATRON ? ".megatron"
           : sealed && target == TARGET_NANOGPT  ? ".nanogpt"
                                                 : "";
}

static char *prefix_of(enum foreign_target target, bool sealed, const char *prefix)
{
    return path_ended(prefix, ending_of(target, sealed));
}

uint32_t also_copies(const struct also_arguments *also)
{
    uint32_t copies = 0;
    for (size_t i = 0; i < also->count; i++)
        copies += is_copy(also->targets[i], also->sealed);
    return copies;
}

/* Sorts the formats, so that their order on the command line does not matter, and lists them as they were typed. */
static void order_make(struct also_arguments *also, const enum foreign_target *typed)
{
    size_t sorted = 0;
    also->formats[0] = '\0';
    for (int target = 0; target < FOREIGN_TARGETS; target++)
        for (size_t i = 0; i < also->count; i++)
            if ((int)typed[i] == target) {
                const size_t used = strlen(also->formats);
                (void)snprintf(also->formats + used, sizeof also->formats - used, "%s%s", sorted ? "," : "",
                               foreign_target_name(typed[i]));
                also->shown[i] = sorted;
                also->targets[sorted++] = typed[i];
            }
}

/* Receiver of the files of a format, one by one. own: if a file does not have the name of the shard, the prefix that it
 * has, such as "web.megatron"; else NULL. */
struct file_taker {
    enum tokmap_status (*take)(void *user, const char *own, const char *path, struct tokmap_error *error);
    void *user;
};

static enum tokmap_status format_visit(enum foreign_target target, bool sealed, const char *prefix,
                                       const struct file_taker *taker, struct tokmap_error *error);

static enum tokmap_status ending_add(void *user, const char *own, const char *ending, struct tokmap_error *error)
{
    struct also_arguments *also = user;
    (void)own;
    (void)error;
    assert(also->ending_count < ALSO_ENDINGS_MOST && strlen(ending) < ALSO_ENDING_BYTES);
    char *into = also->endings[also->ending_count];
    (void)snprintf(into, ALSO_ENDING_BYTES, "%s", ending);
    also->ending_list[also->ending_count++] = into;
    return TOKMAP_OK;
}

int also_parse(const struct cli_command *command, struct also_arguments *also)
{
    enum foreign_target typed[FOREIGN_TARGETS];
    struct tokmap_error error;
    for (const char *at = also->typed; at && *at;) {
        const size_t bytes = strcspn(at, ",");
        int found = -1;
        for (int target = 0; target < FOREIGN_TARGETS; target++) {
            const char *name = foreign_target_name((enum foreign_target)target);
            if (strlen(name) == bytes && !memcmp(name, at, bytes))
                found = target;
        }
        if (found < 0)
            return cli_misused(command,
                               "--also: '%.*s' is not a format; name some of megatron, llmc, datatrove, olmo, "
                               "nanogpt, separated by commas",
                               (int)bytes, at);
        for (size_t i = 0; i < also->count; i++)
            if ((int)typed[i] == found)
                return cli_misused(command, "--also: '%.*s' is named twice", (int)bytes, at);
        typed[also->count++] = (enum foreign_target)found;
        at += bytes;
        if (*at && !*++at)
            return cli_misused(command, "--also: the list ends in a comma");
    }
    const struct file_taker endings = {ending_add, also};
    order_make(also, typed);
    for (size_t i = 0; i < also->count; i++)
        if (format_visit(also->targets[i], also->sealed, "", &endings, &error))
            return cli_failed(command->program, &error);
    return also->typed && !also->count ? cli_misused(command, "--also: the list of formats is empty") : 0;
}

size_t also_mask_endings(const struct also_arguments *also)
{
    size_t count = 0;
    for (size_t i = 0; i < also->count; i++)
        count += foreign_target_has_mask(also->targets[i]);
    return count;
}

/* ---- older files ---- */

/* Passes on the path of each file that the format has beside a shard `prefix`, sealed or not. The prefix may be
 * "": then these are the endings of the names. Only its own files are named: not the .bin, which is the shard's. */
static enum tokmap_status format_visit(enum foreign_target target, bool sealed, const char *prefix,
                                       const struct file_taker *taker, struct tokmap_error *error)
{
    char *own = prefix_of(target, sealed, prefix);
    const struct foreign_writer_options options = {.target = target,
                                                   .prefix = own,
                                                   .mask = foreign_target_has_mask(target),
                                                   .shared_tokens = is_copy(target, sealed) ? NULL : prefix};
    enum tokmap_status status = own ? TOKMAP_OK : error_set_memory(error, "a path", strlen(prefix));
    for (uint32_t n = 0; !status && n < foreign_writer_files(&options); n++) {
        char *path = foreign_writer_path(&options, n);
        status = path ? taker->take(taker->user, *ending_of(target, sealed) ? own : NULL, path, error)
                      : error_set_memory(error, "a path", strlen(prefix));
        free(path);
    }
    free(own);
    return status;
}

/* Passes on the names of an index that a shard has which is called like a copy: web.megatron.tmx. The tokens of such a
 * shard are where those of the copy would be. */
static enum tokmap_status owner_visit(enum foreign_target target, bool sealed, const char *prefix,
                                      const struct file_taker *taker, struct tokmap_error *error)
{
    static const enum shard_state states[] = {SHARD_FINAL, SHARD_PARTIAL};
    if (!*ending_of(target, sealed))
        return TOKMAP_OK;
    char *own = prefix_of(target, sealed, prefix);
    enum tokmap_status status = own ? TOKMAP_OK : error_set_memory(error, "a path", strlen(prefix));
    for (size_t i = 0; i < sizeof states / sizeof states[0] && !status; i++) {
        char *path = shard_file_path(own, SHARD_INDEX, states[i]);
        status = path ? taker->take(taker->user, own, path, error) : error_set_memory(error, "a path", strlen(own));
        free(path);
    }
    free(own);
    return status;
}

/* A walk through the folder of the output. */
struct also_visit {
    const enum foreign_target *targets;
    size_t count;
    bool sealed;               /* the files beside sealed shards */
    bool owners;               /* not these, but the indexes of shards that have the name of a copy */
    const char *folder, *name; /* of a shard set */
    const char *entry;         /* the path of an entry of the folder */
    enum tokmap_status (*action)(struct also_visit *visit, const char *own, const char *path);
    bool removes; /* also unfinished files */
    bool written; /* such files are written next */
    bool removed; /* a file, by remove_file() */
    enum tokmap_status status;
    struct tokmap_error *error;
};

static enum tokmap_status shard_visit(struct also_visit *visit, const char *prefix, const struct file_taker *taker)
{
    for (size_t i = 0; i < visit->count && !visit->status; i++)
        visit->status =
            (visit->owners ? owner_visit : format_visit)(visit->targets[i], visit->sealed, prefix, taker, visit->error);
    return visit->status;
}

/* Returns true if there is an index, or an unfinished one, by which PREFIX.megatron.bin belongs to a shard
 * PREFIX.megatron. */
static bool is_shard(const char *prefix)
{
    struct os_stat found;
    char *index = shard_file_path(prefix, SHARD_INDEX, SHARD_FINAL);
    char *partial = shard_file_path(prefix, SHARD_INDEX, SHARD_PARTIAL);
    const bool is = !index || !partial || !os_lstat(index, &found) || !os_lstat(partial, &found);
    free(index);
    free(partial);
    return is;
}

/* Removes what a process that was killed has left of a file: there may be no such file in the new output. One that is
 * being written stays. */
static void partial_remove(const char *own, const char *path)
{
    int fd;
    if ((own && is_shard(own)) || partial_file_take(path, &fd))
        return;
    (void)os_unlink(path);
    os_close(fd);
}

static enum tokmap_status entry_compare(void *user, const char *own, const char *path, struct tokmap_error *error)
{
    struct also_visit *visit = user;
    (void)error;
    const size_t bytes = strlen(path);
    if (strncmp(visit->entry, path, bytes) != 0)
        return TOKMAP_OK;
    if (visit->removes && !strcmp(visit->entry + bytes, ".partial"))
        partial_remove(own, visit->entry);
    return visit->entry[bytes] ? TOKMAP_OK : visit->action(visit, own, path);
}

/* NAME-00012.idx and the like. Numbers of shards have five digits: NAME-20260101.csv.gz is a file of the user. */
static int entry_visit(void *user, const char *entry)
{
    enum { DIGITS = 5 };
    struct also_visit *visit = user;
    const size_t name = strlen(visit->name), folder = strlen(visit->folder);
    if (strncmp(entry, visit->name, name) != 0 || entry[name] != '-' ||
        strspn(entry + name + 1, "0123456789") != DIGITS)
        return 0;
    char *path = path_join(visit->folder, folder, entry, strlen(entry), "");
    char *shard = path_join(visit->folder, folder, entry, name + 1 + DIGITS, "");
    visit->entry = path;
    if (!path || !shard)
        visit->status = error_set_memory(visit->error, "a path", strlen(entry));
    if (!visit->status)
        (void)shard_visit(visit, shard, &(const struct file_taker){entry_compare, visit});
    free(path);
    free(shard);
    return visit->status ? ECANCELED : 0;
}

static enum tokmap_status set_visit(struct also_visit *visit, const char *prefix, const char *ending)
{
    char *folder = path_folder(prefix);
    const char *base = path_name(prefix);
    char *name = path_ended(base, ending);
    visit->folder = folder;
    visit->name = name;
    if (!folder || !name)
        visit->status = error_set_memory(visit->error, "a path", strlen(prefix));
    const int system = visit->status ? 0 : os_folder_list(folder, entry_visit, visit);
    if (system && system != ENOENT && !visit->status) /* a folder that does not exist is reported later */
        visit->status =
            error_set_system(visit->error, system, folder, TOKMAP_NO_OFFSET, "the output's folder cannot be listed");
    free(folder);
    free(name);
    return visit->status;
}

static enum tokmap_status single_act(void *user, const char *own, const char *path, struct tokmap_error *error)
{
    struct also_visit *visit = user;
    (void)error;
    char *partial = visit->removes ? path_ended(path, ".partial") : NULL;
    if (partial)
        partial_remove(own, partial);
    free(partial);
    return visit->action(visit, own, path);
}

/* Calls visit->action for what it is about: of a shard set for the files that exist, whatever number they have; of one
 * shard for all that it could have. */
static enum tokmap_status files_visit(const struct also_output *output, struct also_visit *visit)
{
    if (!visit->count)
        return TOKMAP_OK;
    if (!output->numbered)
        return shard_visit(visit, output->prefix, &(const struct file_taker){single_act, visit});
    for (uint32_t i = 0; i < (output->split ? output->split->count : 1) && !visit->status; i++) {
        const struct pack_options names = {.split = output->split};
        char ending[SPLIT_NAME_MOST + 2];
        pack_set_ending(&names, i, ending);
        (void)set_visit(visit, output->prefix, ending);
    }
    return visit->status;
}

static enum tokmap_status refuse_existing(struct also_visit *visit, const char *own, const char *path)
{
    struct os_stat found;
    (void)own;
    return os_lstat(path, &found) ? TOKMAP_OK
                                  : error_set(visit->error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                                              "the file already exists; choose another name, or use --force");
}

/* With options.replace: a folder could not be removed, after all the work. */
static enum tokmap_status refuse_folder(struct also_visit *visit, const char *own, const char *path)
{
    struct os_stat found;
    (void)own;
    return os_lstat(path, &found) || found.kind == OS_KIND_FILE || found.kind == OS_KIND_LINK
               ? TOKMAP_OK
               : error_set(visit->error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                           "a file of this name would be replaced, but this is not a file; remove it, or choose "
                           "another name");
}

static enum tokmap_status refuse_long(struct also_visit *visit, const char *own, const char *path)
{
    struct os_stat found;
    char *partial = path_ended(path, ".partial");
    const int system = partial ? os_lstat(partial, &found) : ENOMEM;
    (void)own;
    free(partial);
    return system == ENAMETOOLONG ? error_set_system(visit->error, system, path, TOKMAP_NO_OFFSET,
                                                     "while it is written, this file for --also has a name that is "
                                                     "%zu bytes longer; choose a shorter name for the output",
                                                     strlen(".partial"))
                                  : TOKMAP_OK;
}

/* Refuses names that are longer than those of the shards, and too long for the file system. */
static enum tokmap_status lengths_check(const struct also_output *output, struct also_visit *visit)
{
    visit->action = refuse_long;
    for (uint32_t i = 0; i < (output->split ? output->split->count : 1) && !visit->status; i++) {
        const struct pack_options names = {.split = output->split};
        char set[SPLIT_NAME_MOST + 2], ending[sizeof set + 8];
        pack_set_ending(&names, i, set);
        (void)snprintf(ending, sizeof ending, "%s%s", set, output->numbered ? "-00000" : "");
        char *shard = path_ended(output->prefix, ending);
        visit->status = shard ? shard_visit(visit, shard, &(const struct file_taker){single_act, visit})
                              : error_set_memory(visit->error, "a path", strlen(output->prefix));
        free(shard);
    }
    return visit->status;
}

static enum tokmap_status refuse(struct also_visit *visit, const char *path, const char *why)
{
    struct os_stat found;
    return os_lstat(path, &found) ? TOKMAP_OK
                                  : error_set(visit->error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET, "%s", why);
}

static enum tokmap_status refuse_owner(struct also_visit *visit, const char *own, const char *path)
{
    return refuse(visit, path,
                  "this is the index of a shard whose name a copy of the tokens for --also would have; choose another "
                  "name, or remove this index and its tokens first");
}

static enum tokmap_status refuse_index(struct also_visit *visit, const char *own, const char *path)
{
    return refuse(
        visit, path,
        "this is an index of Megatron for tokens that would be replaced; write it again with --also megatron, "
        "or remove it first");
}

/* Removes a file of a copy, unless it belongs to another output that has this name. */
static enum tokmap_status remove_file(struct also_visit *visit, const char *own, const char *path)
{
    struct os_stat found;
    /* A folder cannot be ours. Where a file is written, it is refused. */
    const bool folder = !visit->written && !os_lstat(path, &found) && found.kind == OS_KIND_FOLDER;
    if (folder || (own && is_shard(own)))
        return TOKMAP_OK;
    const int system = os_unlink(path);
    visit->removed = visit->removed || !system;
    return system && system != ENOENT
               ? error_set_system(visit->error, system, path, TOKMAP_NO_OFFSET, "the old file cannot be removed")
               : TOKMAP_OK;
}

static enum tokmap_status remove_tokens(struct also_visit *visit, const char *own, const char *path)
{
    return shard_file_is(path, SHARD_TOKENS) ? remove_file(visit, own, path) : TOKMAP_OK;
}

static bool has_target(const struct also_arguments *also, enum foreign_target target)
{
    for (size_t i = 0; i < also->count; i++)
        if (also->targets[i] == target)
            return true;
    return false;
}

enum tokmap_status also_check(const struct also_arguments *also, const struct also_output *output, uint32_t width,
                              bool masked, struct tokmap_error *error)
{
    static const enum foreign_target megatron = TARGET_MEGATRON;
    enum tokmap_status status = TOKMAP_OK;
    if (output->replace && !has_target(also, TARGET_MEGATRON))
        status = files_visit(output, &(struct also_visit){&megatron, 1, .action = refuse_index, .error = error});
    for (size_t i = 0; i < also->count && !status; i++) {
        const enum foreign_target target = also->targets[also->shown[i]];
        const char *name = foreign_target_name(target);
        if (masked && !foreign_target_has_mask(target))
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                               "the documents have masks, and the files of %s cannot have one; leave it out of --also, "
                               "or convert the shard later with `tokmap convert --drop-mask`",
                               name);
        else if (target == TARGET_NANOGPT && width != 2)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                               "nanogpt's tokens have 2 bytes, but those of this tokenizer have %u; leave it out of "
                               "--also",
                               width);
    }
    struct also_visit visit = {also->targets,          also->count,   .sealed = also->sealed, .owners = true,
                               .action = refuse_owner, .error = error};
    if (!status)
        status = files_visit(output, &visit);
    visit.owners = false;
    if (!status)
        status = lengths_check(output, &visit);
    visit.action = refuse_folder;
    if (!status && output->replace)
        status = files_visit(output, &visit);
    /* If files are missing of shards that have their names, others are ours (pack_also.h). */
    if (status || output->replace || pack_also_begun(output->prefix))
        return status;
    visit.action = refuse_existing;
    return files_visit(output, &visit);
}

enum tokmap_status also_remove_old(struct also_arguments *also, const struct also_output *output,
                                   struct tokmap_error *error)
{
    /* The older shards may have been sealed, and the new ones not, or the other way around. Each copy goes before what
     * says that it is one: else a reader of the folder would take it for tokens that have lost their index. */
    struct also_visit visit = {
        also->targets,           also->count,   .sealed = true, .removes = true, .written = also->sealed,
        .action = remove_tokens, .error = error};
    enum tokmap_status status = files_visit(output, &visit);
    visit.action = remove_file;
    for (int sealed = 0; sealed < 2 && !status; sealed++) {
        visit.sealed = sealed;
        visit.written = also->sealed == visit.sealed;
        status = files_visit(output, &visit);
    }
    also->removed = also->removed || visit.removed;
    return status;
}

/* ---- write ---- */

enum tokmap_status also_write(struct also_arguments *also, uint32_t format, const struct convert_options *options,
                              struct also_written *written, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct convert_result result = {.columns = 0};
    const enum foreign_target target = also->targets[format];
    struct convert_options own = *options;
    char *prefix = prefix_of(target, also->sealed, options->prefix);
    char *tokens = shard_file_path(options->prefix, SHARD_TOKENS, SHARD_FINAL);
    enum tokmap_status status =
        prefix && tokens ? TOKMAP_OK : error_set_memory(error, "a path", strlen(options->prefix));
    also->begun = true;
    also->format = format;
    own.target = target;
    own.prefix = prefix;
    own.shared_tokens = is_copy(target, also->sealed) ? NULL : tokens;
    if (!status)
        status = tokmap_dataset_open(&dataset, options->prefix, NULL, error);
    if (!status)
        status = dataset_convert(dataset, &own, &result, error);
    tokmap_dataset_close(dataset);
    *written = (struct also_written){.written_bytes = result.written.written_bytes,
                                     .shared_bytes = result.written.shared_bytes,
                                     .lost = result.written.lost,
                                     .tokens = result.written.tokens};
    free(prefix);
    free(tokens);
    return status;
}

void also_advise(const struct also_arguments *also, const struct also_output *output, bool kept, const char *program)
{
    if (!also->begun && also->removed)
        cli_say(
            program,
            "the files of %s beside the old shards of %s have been removed; if those shards are still there, `tokmap "
            "convert` writes the files again",
            also->formats, output->prefix);
    if (!also->begun)
        return;
    if (kept) {
        cli_say(program,
                "the shards of %s are complete, but not all of their files for other projects: the same command writes "
                "the rest; remove the folder %s.work to do without them",
                output->prefix, output->prefix);
        return;
    }
    for (uint32_t i = output->numbered ? 0 : also->format; i < also->count; i++) {
        const char *name = foreign_target_name(also->targets[i]), *more = ending_of(also->targets[i], also->sealed);
        if (output->numbered)
            cli_say(program,
                    "the shards are complete, but not all of their files for %s; write them of each shard with 'tokmap "
                    "convert --to %s -o SHARD%s SHARD'",
                    name, name, more);
        else
            cli_say(program,
                    "the shard is complete, but not its files for %s; write them with 'tokmap convert --to %s -o %s%s "
                    "%s'",
                    name, name, output->prefix, more, output->prefix);
    }
}

/* ---- report ---- */

void also_report_to(const struct also_arguments *also, const struct also_written *sums, const char *program,
                    struct cli_report *report)
{
    if (!also->count)
        return;
    cli_report_array(report, "also");
    for (size_t i = 0; i < also->count; i++) {
        const struct also_written *written = &sums[also->shown[i]];
        const char *name = foreign_target_name(also->targets[also->shown[i]]);
        cli_report_item(report);
        cli_member(report, "format", cli_text(name));
        cli_numbers(report, "documents_lost|written_bytes|shared_bytes", written->lost, written->written_bytes,
                    written->shared_bytes);
        cli_member(report, "copy", cli_bool(written->tokens && !written->shared_bytes));
        cli_report_close(report);
        if (report->as_json)
            continue;
        if (written->shared_bytes)
            cli_print("also %s: wrote %s, and shares the %s of tokens\n", name, CLI_BYTES(written->written_bytes),
                      CLI_BYTES(written->shared_bytes));
        else
            cli_print("also %s: wrote %s, a copy of the tokens included\n", name, CLI_BYTES(written->written_bytes));
        if (written->lost)
            cli_warn(program,
                     "%s has no index of documents, and %s of them cannot be found by their EOD or BOS: they lack it, "
                     "or contain it elsewhere",
                     name, CLI_COUNT(written->lost));
    }
    cli_report_close(report);
}
