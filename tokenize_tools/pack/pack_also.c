/* pack_also.c - see pack_also.h. */
#include "pack_also.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "pack_output.h"
#include "platform/os.h"
#include "stage_file.h"
#include "text/path.h"
#include "unit_record.h"

/* The section of also-000000. */
struct kept {
    uint64_t next;             /* number of the next file */
    struct pack_result result; /* with the sums of the files before it */
};

static enum tokmap_status no_memory(struct tokmap_error *error)
{
    return error_set_memory(error, "the files of other projects", sizeof(struct kept));
}

bool pack_also_begun(const char *prefix)
{
    struct os_stat found;
    char *folder = path_join("", 0, prefix, strlen(prefix), ".work");
    const struct stage_id id = stage_also_id(folder ? folder : "", 0);
    char *path = folder ? stage_path(&id) : NULL;
    const bool begun = path && !os_lstat(path, &found);
    free(path);
    free(folder);
    return begun;
}

/* ---- also-000000 ---- */

static enum tokmap_status kept_write(const struct stage_id *id, const struct kept *kept, bool sync,
                                     struct tokmap_error *error)
{
    struct stage_writer *writer = NULL;
    enum tokmap_status status = stage_writer_open(&writer, id, error);
    if (!status)
        status = stage_writer_add(writer, kept, sizeof *kept, error);
    if (!status)
        status = stage_writer_commit(writer, sync, error);
    stage_writer_free(writer);
    return status;
}

static enum tokmap_status kept_read(struct kept *kept, const struct stage_id *id, struct tokmap_error *error)
{
    struct bytes_buffer bytes = {0};
    enum tokmap_status status = stage_section_load(&bytes, id, 0, sizeof *kept, error);
    if (!status && bytes.count != sizeof *kept)
        status = stage_corrupt(id, error);
    if (!status)
        memcpy(kept, bytes.bytes, sizeof *kept);
    bytes_free(&bytes);
    return status;
}

static bool id_make(struct stage_id *id, const struct pack_options *options, const char *folder)
{
    uint64_t key;
    const bool made = unit_record_key(options, &key);
    *id = stage_also_id(folder, made ? key : 0);
    return made;
}

enum tokmap_status pack_also_begin(const struct pack_options *options, const char *folder,
                                   const struct pack_result *result, struct tokmap_error *error)
{
    struct stage_id id;
    struct kept *kept = calloc(1, sizeof *kept);
    enum tokmap_status status = kept && id_make(&id, options, folder) ? TOKMAP_OK : no_memory(error);
    if (!status) {
        kept->result = *result;
        memset(kept->result.also, 0, sizeof kept->result.also);
        status = kept_write(&id, kept, options->sync, error);
    }
    free(kept);
    return status;
}

enum tokmap_status pack_also_read(const struct pack_options *options, const char *folder, struct pack_result *result,
                                  struct tokmap_error *error)
{
    struct stage_id id;
    struct kept *kept = malloc(sizeof *kept);
    enum tokmap_status status = kept && id_make(&id, options, folder) ? TOKMAP_OK : no_memory(error);
    if (!status)
        status = kept_read(kept, &id, error);
    if (!status)
        *result = kept->result;
    free(kept);
    return status;
}

/* ---- write ---- */

struct also_writing {
    const struct pack_options *options;
    const char *folder; /* NULL: nothing is kept */
    struct stage_id id;
    struct kept *kept;
    uint64_t number; /* of the file that is looked at */
    bool saved;      /* also-000000 says kept->next */
    bool begun;      /* another process may have written the file kept->next */
};

/* Writes the file with the number kept->next. */
static enum tokmap_status file_write(struct also_writing *writing, uint32_t format, const char *prefix,
                                     struct tokmap_error *error)
{
    const struct pack_options *options = writing->options;
    struct kept *kept = writing->kept;
    struct also_written written = {0}, *sum = &kept->result.also[format];
    enum tokmap_status status = TOKMAP_OK;
    if (writing->folder && !writing->saved)
        status = kept_write(&writing->id, kept, options->sync, error);
    writing->saved = true;
    if (!status)
        status =
            options->also->write(options->user, format, prefix, options->replace || writing->begun, &written, error);
    if (status)
        return status;
    sum->written_bytes += written.written_bytes;
    sum->shared_bytes += written.shared_bytes;
    sum->lost += written.lost;
    sum->tokens += written.tokens;
    kept->next++;
    writing->saved = writing->begun = false;
    return TOKMAP_OK;
}

static enum tokmap_status shard_write(struct also_writing *writing, const char *prefix, struct tokmap_error *error)
{
    const struct pack_options *options = writing->options;
    enum tokmap_status status = TOKMAP_OK;
    for (uint32_t format = 0; format < options->also->count && !status; format++, writing->number++) {
        if (writing->number < writing->kept->next) /* by a process that was killed */
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
    const struct shard_set_result *found = &writing->kept->result.sets[set];
    const bool numbered = options->shard_tokens || options->split;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t k = 0; k < (numbered ? found->shards : 1) && found->tokens && !status; k++) {
        char ending[SPLIT_NAME_MOST + 32] = "";
        if (numbered)
            (void)snprintf(ending, sizeof ending, "%s%s-%05" PRIu64, options->split ? "." : "",
                           options->split ? options->split->sets[set].name : "", k);
        char *prefix = path_join("", 0, options->prefix, strlen(options->prefix), ending);
        status = prefix ? shard_write(writing, prefix, error) : no_memory(error);
        free(prefix);
    }
    return status;
}

enum tokmap_status pack_also_write(const struct pack_options *options, const char *folder, struct pack_result *result,
                                   struct tokmap_error *error)
{
    struct also_writing writing = {.options = options, .folder = folder, .kept = calloc(1, sizeof(struct kept))};
    assert(options->also->count <= PACK_ALSO_MOST);
    enum tokmap_status status =
        writing.kept && id_make(&writing.id, options, folder ? folder : "") ? TOKMAP_OK : no_memory(error);
    if (!status && folder)
        status = kept_read(writing.kept, &writing.id, error);
    writing.saved = writing.begun = folder && !status;
    if (status == TOKMAP_ERROR_NOT_FOUND)
        status = TOKMAP_OK;
    if (!status) {
        struct also_written sums[PACK_ALSO_MOST];
        memcpy(sums, writing.kept->result.also, sizeof sums);
        writing.kept->result = *result;
        memcpy(writing.kept->result.also, sums, sizeof sums);
    }
    for (uint32_t set = 0; set < pack_output_sets(options) && !status; set++)
        status = set_write(&writing, set, error);
    if (writing.kept)
        memcpy(result->also, writing.kept->result.also, sizeof result->also);
    free(writing.kept);
    return status;
}
