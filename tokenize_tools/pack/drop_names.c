/* drop_names.c - see drop_names.h. */
#include "drop_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"
#include "format/index_reader.h"
#include "format/shard_file.h"
#include "pack_output.h"
#include "platform/os.h"
#include "text/path.h"
#include "work/dropped_aside.h"
#include "work/set_commit.h"

/* Adds the id of an index to a hash, and sets *id to it. *found: it is there. One that cannot be read counts as absent:
 * such an output is removed before it is replaced. */
static enum tokmap_status index_add(struct hash_state *ids, const char *path, uint64_t *id, bool *found,
                                    struct tokmap_error *error)
{
    struct index index;
    if (!path)
        return error_set_memory(error, "a path", 0);
    const enum tokmap_status status = index_open(&index, path, error);
    *found = !status;
    if (!status) {
        *id = index.id;
        hash_state_add(ids, &index.id, sizeof index.id);
        index_close(&index);
    }
    return status == TOKMAP_ERROR_MEMORY || status == TOKMAP_ERROR_IO ? status : TOKMAP_OK;
}

/* Sets the number of the output that there is: the id of its index, or a hash of those of shard sets; 0: there is none.
 */
static enum tokmap_status output_number(const struct pack_options *options, uint64_t *number,
                                        struct tokmap_error *error)
{
    const bool numbered = options->shard_tokens || options->split;
    struct hash_state *ids = hash_state_new();
    enum tokmap_status status = ids ? TOKMAP_OK : error_set_memory(error, "a hash", 0);
    uint64_t id = 0;
    bool any = false;
    for (uint32_t i = 0; i < pack_output_sets(options) && !status; i++) {
        bool found = true;
        char *set = pack_set_name(options, i);
        for (uint64_t k = 0; k < (numbered ? SET_SHARDS_MOST : 1) && found && !status; k++) {
            char *path = set && numbered ? shard_file_numbered(set, k, SHARD_INDEX, SHARD_FINAL)
                         : set           ? shard_file_path(set, SHARD_INDEX, SHARD_FINAL)
                                         : NULL;
            status = index_add(ids, path, &id, &found, error);
            any = any || found;
            free(path);
        }
        free(set);
    }
    if (!status && any && numbered)
        id = hash_state_64(ids);
    *number = id;
    hash_state_free(ids);
    return status;
}

/* Whether a file of one kind is there: of the index of one shard, or the list of dropped documents. */
static bool has_file(const struct pack_options *options, enum shard_file file)
{
    struct os_stat found;
    char *path = shard_file_path(options->prefix, file, SHARD_FINAL);
    const bool has = !path || !os_lstat(path, &found);
    free(path);
    return has;
}

enum tokmap_status drop_names_settle(const struct pack_options *options, bool keeps, struct tokmap_error *error)
{
    uint64_t output = 0;
    /* Without options.replace, there is no old output. */
    enum tokmap_status status = dropped_aside_check(
        options->prefix, options->replace && options->drop && has_file(options, SHARD_INDEX), error);
    if (status || !options->replace || !dropped_find_aside(options->prefix))
        return status;
    status = output_number(options, &output, error);
    return status ? status : dropped_settle(options->prefix, output, keeps, error);
}

enum tokmap_status drop_names_begin(struct drop_names *names, const struct pack_options *options,
                                    struct dropped_writer *list, struct tokmap_error *error)
{
    /* Of an output without a list, and for one without, there is nothing to put aside, and no index need be read. */
    const bool listed = list || has_file(options, SHARD_DROPPED);
    enum tokmap_status status = listed ? output_number(options, &names->output, error) : TOKMAP_OK;
    names->aside = listed && !status;
    if (!status && !(list && dropped_writer_is_named(list)))
        status = dropped_aside(options->prefix, names->output, list != NULL, options->sync, error);
    /* The list is there before the shards, so that no shard is without one. */
    if (!status && list)
        status = dropped_writer_commit(list, error);
    if (!status)
        names->list = list;
    return status;
}

void drop_names_end(const struct drop_names *names, const struct pack_options *options, bool visible)
{
    if (!visible && names->list)
        dropped_writer_take_back(names->list);
    if (names->aside && visible)
        dropped_forget(options->prefix, names->output);
    else if (names->aside)
        dropped_restore(options->prefix, names->output);
}
