/* also_arguments.c - see also_arguments.h. */
#include "also_arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "platform/os.h"
#include "text/path.h"

int also_parse(const struct cli_command *command, struct also_arguments *also)
{
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
            if ((int)also->targets[i] == found)
                return cli_misused(command, "--also: '%.*s' is named twice", (int)bytes, at);
        also->targets[also->count++] = (enum foreign_target)found;
        at += bytes;
        if (*at && !*++at)
            return cli_misused(command, "--also: the list ends in a comma");
    }
    return also->typed && !also->count ? cli_misused(command, "--also: the list of formats is empty") : 0;
}

/* llm.c's file is a copy with a header, so it needs a name of its own. */
static char *prefix_of(enum foreign_target target, const char *prefix)
{
    return path_join("", 0, prefix, strlen(prefix), target == TARGET_LLMC ? ".llmc" : "");
}

/* Calls `each` for the path of each file that the formats would have beside the shard. Only their own files are named:
 * not the .bin, which is the shard's. */
static enum tokmap_status files_visit(const struct also_arguments *also, const char *prefix,
                                      enum tokmap_status (*each)(const char *path, struct tokmap_error *error),
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < also->count && !status; i++) {
        char *own = prefix_of(also->targets[i], prefix);
        if (!own)
            return error_set_memory(error, "a path", strlen(prefix));
        const struct foreign_writer_options options = {.target = also->targets[i],
                                                       .prefix = own,
                                                       .mask = foreign_target_has_mask(also->targets[i]),
                                                       .shared_tokens =
                                                           also->targets[i] == TARGET_LLMC ? NULL : prefix};
        char *path;
        for (uint32_t n = 0; !status && (path = foreign_writer_path(&options, n)); n++) {
            status = each(path, error);
            free(path);
        }
        free(own);
    }
    return status;
}

static enum tokmap_status refuse_existing(const char *path, struct tokmap_error *error)
{
    struct os_stat found;
    return os_lstat(path, &found) ? TOKMAP_OK
                                  : error_set(error, TOKMAP_ERROR_EXISTS, path, TOKMAP_NO_OFFSET,
                                              "the file already exists; choose another name, or use options.replace");
}

static enum tokmap_status remove_existing(const char *path, struct tokmap_error *error)
{
    const int system = os_unlink(path);
    return system && system != ENOENT
               ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the old file cannot be removed")
               : TOKMAP_OK;
}

static bool has_target(const struct also_arguments *also, enum foreign_target target)
{
    for (size_t i = 0; i < also->count; i++)
        if (also->targets[i] == target)
            return true;
    return false;
}

enum tokmap_status also_check(const struct also_arguments *also, const char *prefix, uint32_t width, bool masked,
                              bool replace, struct tokmap_error *error)
{
    struct os_stat found;
    char *index = path_join("", 0, prefix, strlen(prefix), ".idx");
    enum tokmap_status status = index ? TOKMAP_OK : error_set_memory(error, "a path", strlen(prefix));
    if (!status && replace && !has_target(also, TARGET_MEGATRON) && !os_lstat(index, &found))
        status = error_set(error, TOKMAP_ERROR_EXISTS, index, TOKMAP_NO_OFFSET,
                           "this is an index of Megatron for tokens that would be replaced; write it again with "
                           "--also megatron, or remove it first");
    free(index);
    for (size_t i = 0; i < also->count && !status; i++) {
        const char *name = foreign_target_name(also->targets[i]);
        if (masked && !foreign_target_has_mask(also->targets[i]))
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                               "the documents have masks, and the files of %s cannot have one; leave it out of --also, "
                               "or convert the shard later with `tokmap convert --drop-mask`",
                               name);
        else if (also->targets[i] == TARGET_NANOGPT && width != 2)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                               "nanogpt's tokens have 2 bytes, but those of this tokenizer have %u; leave it out of "
                               "--also",
                               width);
    }
    return status || replace ? status : files_visit(also, prefix, refuse_existing, error);
}

enum tokmap_status also_remove_old(const struct also_arguments *also, const char *prefix, struct tokmap_error *error)
{
    return files_visit(also, prefix, remove_existing, error);
}

static enum tokmap_status one_write(struct also_arguments *also, size_t number, const struct tokmap_dataset *dataset,
                                    const struct convert_options *shared, struct tokmap_error *error)
{
    const enum foreign_target target = also->targets[number];
    struct convert_options options = *shared;
    char *own = prefix_of(target, shared->prefix);
    char *tokens = path_join("", 0, shared->prefix, strlen(shared->prefix), ".bin");
    enum tokmap_status status = own && tokens ? TOKMAP_OK : error_set_memory(error, "a path", strlen(shared->prefix));
    options.target = target;
    options.prefix = own;
    options.shared_tokens = target == TARGET_LLMC ? NULL : tokens;
    if (!status)
        status = dataset_convert(dataset, &options, &also->results[number], error);
    free(own);
    free(tokens);
    return status;
}

enum tokmap_status also_write(struct also_arguments *also, const struct convert_options *options,
                              struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    if (!also->count)
        return TOKMAP_OK;
    enum tokmap_status status = tokmap_dataset_open(&dataset, options->prefix, NULL, error);
    size_t done = 0;
    while (done < also->count && !status)
        if (!(status = one_write(also, done, dataset, options, error)))
            done++;
    tokmap_dataset_close(dataset);
    for (; done < also->count && status; done++)
        cli_say(options->program,
                "the shard is complete, but not its files for %s; write them with 'tokmap convert --to %s -o %s%s %s'",
                foreign_target_name(also->targets[done]), foreign_target_name(also->targets[done]), options->prefix,
                also->targets[done] == TARGET_LLMC ? ".llmc" : "", options->prefix);
    return status;
}

/* ---- report ---- */

void also_print(const struct also_arguments *also, const char *program)
{
    char a[32], b[32];
    for (size_t i = 0; i < also->count; i++) {
        const struct foreign_written *written = &also->results[i].written;
        const char *name = foreign_target_name(also->targets[i]);
        if (written->shared_bytes)
            cli_print("also %s: wrote %s, and shares the %s of tokens\n", name, cli_bytes(written->written_bytes, a),
                      cli_bytes(written->shared_bytes, b));
        else
            cli_print("also %s: wrote %s, a copy of the tokens included\n", name, cli_bytes(written->written_bytes, a));
        if (written->lost)
            cli_warn(program,
                     "%s has no index of documents, and %s of them cannot be found by their EOD or BOS: they lack it, "
                     "or contain it elsewhere",
                     name, cli_count(written->lost, a));
    }
}

void also_json(const struct also_arguments *also, struct cli_json *json)
{
    if (!also->count)
        return;
    cli_json_array(json, "also");
    for (size_t i = 0; i < also->count; i++) {
        const struct foreign_written *written = &also->results[i].written;
        cli_json_object(json, NULL);
        cli_json_text(json, "format", foreign_target_name(also->targets[i]));
        cli_json_number(json, "documents_lost", written->lost);
        cli_json_number(json, "written_bytes", written->written_bytes);
        cli_json_number(json, "shared_bytes", written->shared_bytes);
        cli_json_end(json);
    }
    cli_json_end(json);
}
