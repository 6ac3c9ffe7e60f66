/* SPDX-License-Identifier: MIT */
/* pack_same.c - see pack_same.h. */
#include "pack_same.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "encode/document_encode.h"
#include "format/index_reader.h"
#include "format/shard_file.h"
#include "format/shard_ranges.h"
#include "pack_finish.h"
#include "pack_output.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "text/path.h"
#include "work/set_commit.h"

bool pack_inputs_hash(const struct work_units *units, char hex[33])
{
    struct hash_state *state = hash_state_new();
    bool good = state != NULL;
    for (uint64_t i = 0; i < units->file_count && good; i++) {
        char *shown = remote_shown(units->paths[i]);
        good = shown != NULL;
        if (good)
            hash_state_add(state, shown, strlen(shown) + 1);
        free(shown);
    }
    if (good) {
        uint8_t stored[16];
        hash128_store(hash_state_128(state), stored);
        hash128_hex(stored, hex);
    }
    hash_state_free(state);
    return good;
}

/* Returns true if no input has changed since the output got its name. */
static bool inputs_are_older(const struct work_units *units, uint64_t named_ns)
{
    struct os_stat stat;
    for (uint64_t i = 0; i < units->file_count; i++) /* an older file may replace one: its change is newer */
        if (!remote_kind(units->paths[i]) &&
            (os_stat(units->paths[i], &stat) || stat.modified_ns > named_ns || stat.changed_ns > named_ns))
            return false;
    return true;
}

/* Returns true if a shard of set `set` was made with these options: its about section is that of such a shard, up to
 * the totals, which are its last member. */
static bool about_is_same(const struct pack_options *options, uint32_t set, const struct index *index)
{
    static const struct pack_result no_result;
    static const struct shard_totals no_totals;
    const char *there;
    uint64_t there_bytes, bytes;
    char *own = pack_output_about(options, &no_result, set, &no_totals, &bytes);
    const char *totals = own;
    for (const char *next = own; next && (next = strstr(next, "\"totals\""));)
        totals = next++;
    const size_t same = own ? (size_t)(totals - own) : 0;
    const bool good = same && !index_about(index, &there, &there_bytes, NULL) && there_bytes > same &&
                      !memcmp(there, own, same) && (options->seal != NULL) == (index->sealed_bytes != 0);
    free(own);
    return good;
}

/* Returns true if a file exists, and its size. Frees the path. */
static bool exists(char *path, uint64_t *bytes)
{
    struct os_stat found = {0};
    const bool there = path && !os_stat(path, &found);
    *bytes = found.bytes;
    free(path);
    return there;
}

/* Returns true if the tokens and the mask of a shard are there, whole. */
static bool tokens_are_there(const char *path, const struct index *index)
{
    uint64_t bytes;
    for (enum shard_file file = 0; file < SHARD_FILES; file++)
        if (shard_has_file(index, file) &&
            !(exists(shard_file_beside(path, file, SHARD_FINAL), &bytes) && bytes == shard_file_size(index, file)))
            return false;
    return true;
}

/* Returns true if the first shard of a set has the files of other projects. */
static bool also_is_there(const struct pack_options *options, const char *name)
{
    const struct pack_also *also = options->also;
    size_t there = 0;
    uint64_t bytes;
    for (size_t i = 0; also && i < also->ending_count; i++) {
        char *shard = path_ended(name, "-00000");
        there += shard && exists(path_ended(shard, also->endings[i]), &bytes);
        free(shard);
    }
    return !also || there == also->ending_count - (document_is_masked(&options->corpus) ? 0 : also->mask_endings);
}

static bool set_is_same(const struct pack_options *options, uint32_t set, const char *name)
{
    uint64_t shards;
    bool good = !set_shards_count(name, &shards, NULL);
    for (uint64_t i = 0; good && i < shards; i++) {
        struct index index;
        char *path = shard_file_numbered(name, i, SHARD_INDEX, SHARD_FINAL);
        good = path && !index_open(&index, path, NULL);
        if (good) {
            good = (i || about_is_same(options, set, &index)) && tokens_are_there(path, &index);
            index_close(&index);
        }
        free(path);
    }
    return good && also_is_there(options, name);
}

bool pack_output_is_same(const struct pack_options *options, const struct work_units *units)
{
    struct os_stat manifest;
    bool good = options->inputs_hash && (!options->other_output || !os_stat(options->other_output, &manifest));
    for (uint32_t set = 0; set < pack_output_sets(options) && good; set++) {
        char *name = pack_set_name(options, set);
        good = name && !os_lstat(name, &manifest) && manifest.kind == OS_KIND_FILE &&
               (set || inputs_are_older(units, manifest.modified_ns)) && set_is_same(options, set, name);
        free(name);
    }
    return good;
}
