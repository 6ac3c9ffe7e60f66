/* SPDX-License-Identifier: MIT */
/* dataset_values.c - see dataset_values.h. */
#include "dataset_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache_attach.h"
#include "cache/cache_folder.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset.h"
#include "format/shard_file.h"
#include "open_shards.h"
#include "platform/os.h"

/* Makes the shard of an open file of values, which it owns from now on, and of another descriptor of it for the bitmap,
 * which is opened if it is not. */
static enum tokmap_status shard_make(struct shard_slot *slot, struct values_file *file, struct values_file *bits,
                                     const struct shard *of, struct tokmap_error *error)
{
    const uint64_t unit = file->array.value_bytes;
    struct shard *made = slot->open = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "values", sizeof *made);
    made->store = (struct store){.path = file->path,
                                 .fd = file->fd,
                                 .element = ELEMENT_U8,
                                 .offset = VALUES_AT,
                                 .tokens = file->tokens * unit,
                                 .bytes = file->bytes};
    made->mask.fd = -1;
    file->fd = -1;
    file->path = NULL;
    made->place = (struct shard_place){.skipped_tokens = of->place.skipped_tokens * unit,
                                       .tokens = of->place.tokens * unit,
                                       .first_token = of->place.first_token * unit};
    slot->place = made->place;
    if (file->present == file->tokens)
        return TOKMAP_OK;
    int system = 0;
    if (bits->fd < 0)
        system = (bits->path = strdup(made->store.path)) ? os_open(bits->path, OS_READ_NOW, &bits->fd) : ENOMEM;
    if (system)
        return error_set_system(error, system, made->store.path, TOKMAP_NO_OFFSET, "the values cannot be opened");
    made->mask =
        (struct mask_file){.fd = bits->fd, .path = bits->path, .bytes = file->bytes, .first_bit = 8 * file->bitmap_at};
    bits->fd = -1;
    bits->path = NULL;
    return TOKMAP_OK;
}

/* Opens a descriptor that the cache fills. */
static enum tokmap_status cached_open(struct cache_shard *cached, int *fd, char **name, struct tokmap_error *error)
{
    char *path = shard_file_beside(cache_shard_index(cached), SHARD_TOKENS, SHARD_FINAL);
    const int system = path ? os_open(path, OS_READ_NOW, fd) : ENOMEM;
    enum tokmap_status status =
        system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "values in the cache cannot be opened")
               : cache_shard_attach(cached, CACHE_TOKENS, *fd, name, error);
    free(path);
    return status;
}

/* Opens values in object storage. `bits`, unless NULL, receives a second descriptor and name, for the bitmap. */
static enum tokmap_status object_open(struct values_file *file, struct values_file *bits, struct values_ranges **ranges,
                                      const struct shard *of, struct cache *cache, const char *what,
                                      struct tokmap_error *error)
{
    char *name = values_file_path(of->store.path, what, VALUES_FINAL);
    struct cache_shard *cached = NULL;
    enum tokmap_status status = name ? cache_shard_find(cache, name, NULL, 0, &cached, error)
                                     : error_set_memory(error, "the name of an object", 0);
    if (!status)
        status = values_ranges_load(ranges, cache_shard_index(cached), error);
    if (!status)
        status = values_file_describe(file, &(*ranges)->header, &of->index, what, name, error);
    if (!status)
        status = cached_open(cached, &file->fd, &file->path, error);
    if (!status && bits && file->present < file->tokens)
        status = cached_open(cached, &bits->fd, &bits->path, error);
    free(name);
    cache_shard_free(cached);
    return status;
}

enum tokmap_status dataset_values_file(struct values_file *file, struct values_ranges **ranges,
                                       const struct tokmap_dataset *dataset, const struct shard *shard,
                                       const char *what, struct tokmap_error *error)
{
    *file = (struct values_file){.fd = -1};
    *ranges = NULL;
    enum tokmap_status status = dataset->cache ? object_open(file, NULL, ranges, shard, dataset->cache, what, error)
                                               : values_file_open(file, shard->index_path, &shard->index, what, error);
    if (!status && !*ranges)
        status = values_ranges_load(ranges, file->path, error);
    if (!status)
        return TOKMAP_OK;
    values_file_close(file);
    free(*ranges);
    *ranges = NULL;
    return status;
}

/* Opens the values of one shard, which is held. */
static enum tokmap_status values_add(struct tokmap_dataset *made, uint64_t number, struct values_array *array,
                                     const struct shard *of, const char *what, struct tokmap_error *error)
{
    struct values_file file = {.fd = -1}, bits = {.fd = -1};
    if (!of->index.bytes)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, of->index_path, TOKMAP_NO_OFFSET,
                         "these tokens have no index of tokmap's, and only a shard with one has values; make it with "
                         "`tokmap index`");
    struct values_ranges *ranges = NULL;
    enum tokmap_status status = made->cache ? object_open(&file, &bits, &ranges, of, made->cache, what, error)
                                            : values_file_open(&file, of->index_path, &of->index, what, error);
    free(ranges);
    if (status) {
        values_file_close(&file);
        values_file_close(&bits);
        return status;
    }
    if (number && !values_type_equals(&file.array, array))
        status = error_set(error, TOKMAP_ERROR_MISMATCH, file.path, TOKMAP_NO_OFFSET,
                           "these values are %s, but those of the shards before are %s; make them with one type",
                           VALUES_TYPE(&file.array), VALUES_TYPE(array));
    *array = file.array;
    made->unit = array->value_bytes;
    made->masked = made->masked || file.present < file.tokens;
    if (!status)
        status = shard_make(&made->slots[number], &file, &bits, of, error);
    values_file_close(&file);
    values_file_close(&bits);
    return status;
}

enum tokmap_status dataset_values_open(struct tokmap_dataset **values, struct values_array *array,
                                       const struct tokmap_dataset *of, const char *what, struct tokmap_error *error)
{
    enum tokmap_status status = values_file_name_check(what, error);
    struct tokmap_dataset *made;
    *values = NULL;
    if (status)
        return status;
    if (!of->shard_count || of->shard_count > os_files_limit() / 4)
        return error_set(error, of->shard_count ? TOKMAP_ERROR_LIMIT : TOKMAP_ERROR_UNSUPPORTED, of->name,
                         TOKMAP_NO_OFFSET,
                         "values '%s' need an open file for each of the %" PRIu64
                         " shards%s, and this process may open %" PRIu64 " files",
                         what, of->shard_count, of->shard_count ? "; raise ulimit -n" : ", of which there must be one",
                         os_files_limit());
    made = calloc(1, sizeof *made);
    if (!made || !(made->name = strdup(of->name)) || !(made->slots = calloc(of->shard_count, sizeof *made->slots))) {
        tokmap_dataset_close(made);
        return error_set_memory(error, "values", of->shard_count * sizeof *made->slots);
    }
    made->shard_count = of->shard_count;
    made->cache = of->cache ? cache_again(of->cache) : NULL;
    os_files_expect(of->shard_count);
    for (uint64_t i = 0; i < of->shard_count && !status; i++) {
        const struct shard *shard;
        status = shard_hold(of, i, &shard, error);
        if (status)
            break;
        status = values_add(made, i, array, shard, what, error);
        shard_release(of, i);
    }
    if (!status && mul_overflows(of->tokens, made->unit, &made->tokens))
        status = error_set(error, TOKMAP_ERROR_LIMIT, of->name, TOKMAP_NO_OFFSET,
                           "the values '%s' have 2^64 bytes or "
                           "more",
                           what);
    if (status) {
        tokmap_dataset_close(made);
        return status;
    }
    made->width = 1;
    made->reading = of->reading;
    made->vocabulary = UINT64_MAX;
    made->documents_unknown = true;
    *values = made;
    return TOKMAP_OK;
}
