/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "sealed.h"

#define CONVERT_BYTES 16384 /* of a file that are read at once to be converted */

enum tokmap_status store_open(struct store *store, struct tokmap_error *error)
{
    struct os_stat found;
    assert(store->sealed || (store->offset <= store->bytes &&
                             store->tokens <= (store->bytes - store->offset) >> element_shift(store->element)));
    store->map = NULL;
    const enum tokmap_status status = store->sealed ? sealed_load(store->path, error) : TOKMAP_OK;
    if (status)
        return status;
    int system = os_open(store->path, OS_READ_NOW, &store->fd);
    if (system) {
        store->fd = -1;
        return error_set_system(error, system, store->path, TOKMAP_NO_OFFSET,
                                "the tokens that belong to the index cannot be opened");
    }
    system = os_fstat(store->fd, &found);
    if (system)
        return error_set_system(error, system, store->path, TOKMAP_NO_OFFSET, "the tokens cannot be examined");
    if (found.kind != OS_KIND_FILE)
        return error_set(error, TOKMAP_ERROR_FORMAT, store->path, TOKMAP_NO_OFFSET,
                         "this is not a regular file; tokens must be stored in a regular file");
    if (found.bytes != store->bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, store->path, min64(found.bytes, store->bytes),
                         "the file is %" PRIu64 " bytes long, but its index says %" PRIu64 " (%" PRIu64
                         " tokens of %u bytes%s); restore the file or pack the shard again",
                         found.bytes, store->bytes, store->tokens, 1u << element_shift(store->element),
                         store->sealed ? ", sealed" : "");
    return TOKMAP_OK;
}

void store_close(struct store *store)
{
    os_unmap(store->map, store->bytes);
    os_close(store->fd);
    free(store->path);
    store->map = NULL;
    store->fd = -1;
    store->path = NULL;
}

/* Maps the file. The mapping is the only field of an open store that changes; it is published once. */
static enum tokmap_status map(struct store *store, uint32_t width, const uint8_t **file, struct tokmap_error *error)
{
    const void *mapped = NULL;
    *file = NULL;
    if (store->sealed)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, store->path, 0,
                         "the shard is sealed: its tokens are compressed, so there is no view of them; copy "
                         "them instead, or use `tokmap unseal`");
    if (!store_has_views(store, width))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, store->path, store->offset,
                         "the file's tokens of %u bytes are converted to %u bytes when they are read, or begin at an "
                         "address that is not a multiple of their size, so there is no view of them; copy "
                         "them instead",
                         1u << element_shift(store->element), width);
    if (!store->tokens)
        return error_set(error, TOKMAP_ERROR_RANGE, store->path, 0, "the shard has no tokens to map");
    int system = os_map_file(store->fd, store->bytes, &mapped);
    if (system)
        return error_set_system(error, system, store->path, TOKMAP_NO_OFFSET,
                                "the tokens cannot be mapped; set reading to pread, or raise "
                                "vm.max_map_count or ulimit -v");
    const uint8_t *ours = mapped, *theirs = NULL;
    if (__atomic_compare_exchange_n(&store->map, &theirs, ours, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        *file = ours;
    } else {
        os_unmap(ours, store->bytes); /* another thread has mapped the file in the meantime */
        *file = theirs;
    }
    return TOKMAP_OK;
}

enum tokmap_status store_map_any(struct store *store, uint32_t width, const uint8_t **file, struct tokmap_error *error)
{
    *file = __atomic_load_n(&store->map, __ATOMIC_ACQUIRE);
    return *file ? TOKMAP_OK : map(store, width, file, error);
}

enum tokmap_status store_map(struct store *store, uint32_t width, const uint8_t **file, struct tokmap_error *error)
{
    *file = NULL;
    if (store->sealed || !os_fetched_of(store->fd))
        return store_map_any(store, width, file, error);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, store->path, TOKMAP_NO_OFFSET,
                     "the shard is in object storage, and this machine may have a part of it only, so there is no "
                     "view of its tokens; copy them instead");
}

static enum tokmap_status read_bytes(const struct store *store, uint64_t offset, size_t bytes, void *into,
                                     struct tokmap_error *error)
{
    size_t got = 0;
    int system = os_pread(store->fd, into, bytes, offset, &got);
    if (system)
        return error_set_system(error, system, store->path, offset, "the tokens cannot be read");
    if (got < bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, store->path, offset + got,
                         "the file ends at this byte, but its index says %" PRIu64
                         " bytes; it has been truncated since it was opened: restore it, or pack the shard again",
                         store->bytes);
    return TOKMAP_OK;
}

static enum tokmap_status read_sealed(const struct store *store, uint64_t first, uint64_t count, void *into,
                                      struct tokmap_error *error)
{
    const uint32_t shift = element_shift(store->element);
    struct sealed_reader *reader = sealed_reader_new();
    if (!reader)
        return error_set_memory(error, "a reader of sealed tokens", FRAME_BYTES);
    const enum tokmap_status status =
        sealed_read(reader, store->sealed, store->path, store->fd, first << shift, count << shift, into, error);
    sealed_reader_free(reader);
    return status;
}

enum tokmap_status store_bad_element(const char *path, enum element element, const void *value, uint64_t at,
                                     struct tokmap_error *error)
{
    const int64_t number = element_value(element, value);
    return error_set(error, TOKMAP_ERROR_TOKEN, path, at,
                     "the number %" PRId64 " is %s; the file was damaged, or its element type is another one than was "
                     "stated",
                     number, number < 0 ? "negative, so it is not a token id" : "above 2^32 - 1, the largest token id");
}

enum tokmap_status store_read(const struct store *store, uint64_t first, uint64_t count, uint32_t width, void *into,
                              struct tokmap_error *error)
{
    const uint32_t shift = element_shift(store->element);
    uint64_t offset = store->offset + (first << shift);
    uint8_t buffer[CONVERT_BYTES], *to = into;
    assert(first <= store->tokens && count <= store->tokens - first);
    if (store->sealed) {
        assert(width == 1u << shift);
        return count ? read_sealed(store, first, count, into, error) : TOKMAP_OK;
    }
    if (width == 1u << shift)
        return read_bytes(store, offset, (size_t)(count << shift), into, error);
    while (count) {
        const uint64_t part = min64(count, CONVERT_BYTES >> shift);
        const enum tokmap_status status = read_bytes(store, offset, (size_t)(part << shift), buffer, error);
        if (status)
            return status;
        const uint64_t good = element_convert(store->element, buffer, part, width, to);
        if (good < part)
            return store_bad_element(store->path, store->element, buffer + (good << shift), offset + (good << shift),
                                     error);
        to += part * width;
        offset += part << shift;
        count -= part;
    }
    return TOKMAP_OK;
}
