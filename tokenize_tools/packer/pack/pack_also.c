/* SPDX-License-Identifier: MIT */
#include "pack_also.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "pack_output.h"
#include "platform/os.h"
#include "text/path.h"
#include "unit_record.h"
#include "work/stage_file.h"

enum { BEGUN, NEXT }; /* numbers of the files: also-000000 has a pack_result, also-000001 this: */

struct also_next {
    uint64_t number;                          /* number of the next file */
    uint64_t refused;                         /* 1: the file is there, and belongs to somebody else */
    uint64_t replaces;                        /* 1: an earlier process may have written any of the files */
    struct also_written sums[PACK_ALSO_MOST]; /* sums of the files before it */
};

bool pack_also_begun(const char *prefix)
{
    struct os_stat found;
    char *folder = path_ended(prefix, ".work");
    const struct stage_id id = {.folder = folder ? folder : "", .kind = STAGE_ALSO, .number = BEGUN, .sections = 1};
    char *path = folder ? stage_path(&id) : NULL;
    const bool begun = path && !os_lstat(path, &found);
    free(path);
    free(folder);
    return begun;
}

/* ---- files of stages ---- */

static bool id_make(struct stage_id *id, const struct pack_options *options, const char *folder, uint64_t number)
{
    uint64_t key;
    const bool made = unit_record_key(options, &key);
    *id =
        (struct stage_id){.folder = folder, .key = made ? key : 0, .kind = STAGE_ALSO, .number = number, .sections = 1};
    return made;
}

enum tokmap_status pack_also_begin(const struct pack_options *options, const char *folder,
                                   const struct pack_result *result, struct tokmap_error *error)
{
    struct stage_id begun, next;
    assert(options->also && folder);
    if (!id_make(&begun, options, folder, BEGUN) || !id_make(&next, options, folder, NEXT))
        return error_set_memory(error, "the files of other projects", sizeof(struct pack_result));
    stage_remove(&next);
    return stage_write(&begun, result, sizeof *result, options->sync, error);
}

enum tokmap_status pack_also_read(const struct pack_options *options, const char *folder, struct pack_result *result,
                                  struct tokmap_error *error)
{
    struct stage_id id;
    return id_make(&id, options, folder, BEGUN)
               ? stage_section_read(&id, 0, result, sizeof *result, error)
               : error_set_memory(error, "the files of other projects", sizeof(struct pack_result));
}

enum tokmap_status pack_also_end(const struct pack_options *options, const char *folder, struct tokmap_error *error)
{
    struct stage_id begun, next;
    char *path = id_make(&begun, options, folder, BEGUN) ? stage_path(&begun) : NULL;
    if (!path || !id_make(&next, options, folder, NEXT)) {
        free(path);
        return error_set_memory(error, "the files of other projects", sizeof(struct pack_result));
    }
    int system = os_unlink(path);
    if (!system && options->sync)
        system = os_sync_folder(path);
    stage_remove(&next);
    const enum tokmap_status status =
        system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                                  "all files are written, but this one of the unfinished work cannot be removed")
               : TOKMAP_OK;
    free(path);
    return status;
}

/* ---- write ---- */

struct also_writing {
    const struct pack_options *options;
    const struct pack_result *result;
    struct stage_id id; /* of also-000001 */
    bool keeps;         /* true if also-000001 is written */
    bool saved;         /* true if it says next.number */
    bool replaces_all;  /* true if another process may have written any file, */
    bool replaces_next; /* or the file next.number */
    uint64_t at;        /* number of the file that is looked at */
    struct also_next next;
};

/* Writes the file next.number. */
static enum tokmap_status file_write(struct also_writing *writing, uint32_t format, const char *prefix,
                                     struct tokmap_error *error)
{
    const struct pack_options *options = writing->options;
    struct also_next *next = &writing->next;
    struct also_written written = {0}, *sum = &next->sums[format];
    const bool equal = writing->replaces_all || writing->replaces_next;
    const enum also_replace replace = options->replace ? ALSO_REPLACE_ALL
                                      : equal          ? ALSO_REPLACE_EQUAL
                                                       : ALSO_REPLACE_NONE;
    enum tokmap_status status = TOKMAP_OK;
    if (writing->keeps && !writing->saved)
        status = stage_write(&writing->id, next, sizeof *next, options->sync, error);
    writing->saved = true;
    if (!status)
        status = options->also->write(options->user, format, prefix, replace, &written, error);
    if (status == TOKMAP_ERROR_EXISTS && writing->keeps && replace == ALSO_REPLACE_NONE) {
        next->refused = 1; /* if this cannot be kept, the next process may replace the file by an equal one */
        (void)stage_write(&writing->id, next, sizeof *next, options->sync, NULL);
    }
    if (status)
        return status;
    next->refused = 0;
    sum->written_bytes += written.written_bytes;
    sum->shared_bytes += written.shared_bytes;
    sum->lost += written.lost;
    sum->tokens += written.tokens;
    next->number++;
    writing->saved = writing->replaces_next = false;
    return TOKMAP_OK;
}

static enum tokmap_status shard_write(struct also_writing *writing, const char *prefix, struct tokmap_error *error)
{
    const struct pack_options *options = writing->options;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t format = 0; format < options->also->count && !status; format++, writing->at++) {
        if (writing->at < writing->next.number) /* written by a process that was killed */
            continue;
        status = options->stop && options->stop(options->user)
                     ? error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted")
                     : file_write(writing, format, prefix, error);
    }
    return status;
}

/* Writes the files of one set. A set without tokens has an empty shard, which no other project can read. */
static enum tokmap_status set_write(struct also_writing *writing, uint32_t set, struct tokmap_error *error)
{
    const struct pack_options *options = writing->options;
    const struct shard_set_result *found = &writing->result->sets[set];
    const bool numbered = options->shard_tokens || options->split;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t k = 0; k < (numbered ? found->shards : 1) && found->tokens && !status; k++) {
        char ending[SPLIT_NAME_MOST + 32] = "";
        if (numbered)
            (void)snprintf(ending, sizeof ending, "%s%s-%05" PRIu64, options->split ? "." : "",
                           options->split ? options->split->sets[set].name : "", k);
        char *prefix = path_ended(options->prefix, ending);
        status = prefix ? shard_write(writing, prefix, error)
                        : error_set_memory(error, "the files of other projects", sizeof(struct pack_result));
        free(prefix);
    }
    return status;
}

enum tokmap_status pack_also_write(const struct pack_options *options, const char *folder, bool again,
                                   struct pack_result *result, struct tokmap_error *error)
{
    struct also_writing writing = {.options = options, .result = result, .keeps = folder != NULL};
    assert(options->also->count <= PACK_ALSO_MOST);
    enum tokmap_status status = TOKMAP_OK;
    const bool begun = folder && pack_also_begun(options->prefix);
    if (folder && !id_make(&writing.id, options, folder, NEXT))
        status = error_set_memory(error, "the files of other projects", sizeof(struct pack_result));
    if (!status && begun)
        status = stage_section_read(&writing.id, 0, &writing.next, sizeof writing.next, error);
    writing.saved = begun && !status && !writing.next.refused;
    writing.replaces_next = writing.saved;
    writing.replaces_all = again && (!begun || status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_CORRUPT);
    if (status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_CORRUPT)
        status = TOKMAP_OK;
    writing.replaces_all = writing.replaces_all || writing.next.replaces;
    writing.next.replaces = writing.replaces_all; /* so that this holds also if this process is killed */
    writing.next.refused = 0;
    if (!status && folder && !begun)
        status = pack_also_begin(options, folder, result, error);
    for (uint32_t set = 0; set < pack_output_sets(options) && !status; set++)
        status = set_write(&writing, set, error);
    if (!status && writing.next.number > writing.at) /* there are fewer: nothing was written */
        status = stage_corrupt(&writing.id, error);
    memcpy(result->also, writing.next.sums, sizeof result->also);
    return status;
}
