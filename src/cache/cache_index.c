/* SPDX-License-Identifier: MIT */
/*
 * cache_index.c - the objects that are kept whole: the indexes of shards, and manifests.
 *
 * What is known of an object is its *entry*, the file names/HASH (CACHE.md). A second opening sends one request that
 * says the ETag; the server answers that the object is still the same, or sends the new one. An index that a manifest
 * states, with its content id, is not asked for at all.
 */
#include "cache_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_verify.h"
#include "format/manifest.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "format/shard_file.h"
#include "format/values_file.h"
#include "remote/remote_url.h"
#include "text/path.h"

#define PART_BYTES ((uint64_t)4 << 20) /* of an object that are read at once */
#define INDEX_MOST ((uint64_t)1 << 40)
#define HEAD_BYTES 4096
#define WAIT_NS ((uint64_t)2 * 1000000)
#define ID_CHARS (32 + 1 + 16)
#define ENTRY_MOST 20000

struct entry {
    char *path; /* of the file that says it */
    char tag[HTTP_TAG_MOST];
    uint64_t bytes;
    char id[ID_CHARS + 1];    /* "": nothing is known */
    char known[ID_CHARS + 1]; /* the id when the file was read, if the folder had the index */
};

/* Reads what is known of an object. A file that is not whole, or is that of another name, says nothing. */
static enum tokmap_status entry_read(const struct cache *cache, const char *name, struct entry *entry,
                                     struct tokmap_error *error)
{
    char hex[33], text[ENTRY_MOST + 1], *lines[4] = {NULL};
    uint8_t stored[16];
    size_t got = 0, count = 0;
    int fd;
    *entry = (struct entry){.path = NULL};
    hash128_store(hash128(name, strlen(name)), stored);
    hash128_hex(stored, hex);
    char *folder = path_in(cache->folder, "names");
    entry->path = folder ? path_in(folder, hex) : NULL;
    free(folder);
    if (!entry->path)
        return error_set_memory(error, "the name of a file", 0);
    if (os_open(entry->path, OS_READ_OWN, &fd))
        return TOKMAP_OK;
    const int system = os_pread(fd, text, ENTRY_MOST, 0, &got);
    os_close(fd);
    text[got] = '\0';
    for (char *at = text; count < 4 && (lines[count] = at) && (at = strchr(at, '\n')); count++)
        *at++ = '\0';
    if (system || count < 4 || strcmp(lines[0], name) != 0 || strlen(lines[1]) >= sizeof entry->tag ||
        strlen(lines[3]) > ID_CHARS || lines[3][strspn(lines[3], "0123456789abcdef-")])
        return TOKMAP_OK;
    memcpy(entry->tag, lines[1], strlen(lines[1]) + 1);
    entry->bytes = strtoull(lines[2], NULL, 10);
    memcpy(entry->id, lines[3], strlen(lines[3]) + 1);
    memcpy(entry->known, entry->id, sizeof entry->known);
    return TOKMAP_OK;
}

/* Returns the path of an index in the folder. */
static char *index_place(const struct cache *cache, const char *id)
{
    return path_join(cache->folder, strlen(cache->folder), id, strlen(id), ".tmx");
}

static enum tokmap_status file_finish(const char *partial, const char *path, struct tokmap_error *error)
{
    const int system = name_file(-1, partial, path, false, NULL);
    return system ? error_set_system(error, system, path, TOKMAP_NO_OFFSET, "a file of the cache cannot be renamed")
                  : TOKMAP_OK;
}

/* Creates the partial file of a path, when nobody else writes it any more. It must be renamed before it is closed. */
static enum tokmap_status partial_open(const char *path, char **partial, int *fd, struct tokmap_error *error)
{
    int system;
    *fd = -1;
    *partial = path_ended(path, ".partial");
    if (!*partial)
        return error_set_memory(error, "the name of a file", 0);
    while ((system = partial_file_open(*partial, NULL, NULL, fd)) == EWOULDBLOCK)
        if (os_wait_readable(-1, WAIT_NS) == EINTR)
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, path, TOKMAP_NO_OFFSET, "interrupted");
    return system
               ? error_set_system(error, system, *partial, TOKMAP_NO_OFFSET,
                                  "a file of the cache cannot be made; check the folder, or name another one (cache=)")
               : TOKMAP_OK;
}

static enum tokmap_status entry_write(const struct entry *entry, const char *name, struct tokmap_error *error)
{
    char *partial = NULL, *text = NULL;
    int fd = -1;
    const int bytes = asprintf(&text, "%s\n%s\n%" PRIu64 "\n%s\n", name, entry->tag, entry->bytes, entry->id);
    enum tokmap_status status =
        bytes < 0 ? error_set_memory(error, "the name of a file", 0) : partial_open(entry->path, &partial, &fd, error);
    const int system = status ? 0 : os_pwrite(fd, text, (size_t)bytes, 0);
    if (system)
        status = error_set_system(error, system, partial, TOKMAP_NO_OFFSET, "a file of the cache cannot be written");
    if (!status)
        status = file_finish(partial, entry->path, error);
    if (status && fd >= 0)
        (void)os_unlink(partial);
    os_close(fd);
    free(partial);
    if (bytes >= 0)
        free(text);
    return status;
}

/* Reads an object in parts, each of which is given to take(), which may set *next, the byte from which to read on; the
 * first part has at most `first` bytes. *same: it still has the ETag of the entry, and was not read. The entry has the
 * new ETag and size. most: of its bytes. since_ns: when whoever needs it began to wait. */
static enum tokmap_status object_read(struct cache *cache, const char *name, struct entry *entry, uint64_t first,
                                      uint64_t most, uint64_t since_ns,
                                      enum tokmap_status (*take)(void *user, const uint8_t *bytes, uint64_t count,
                                                                 uint64_t *next, struct tokmap_error *error),
                                      void *user, bool *same, struct tokmap_error *error)
{
    struct cache_client *client;
    uint8_t *part = malloc(PART_BYTES);
    enum tokmap_status status =
        part ? cache_client_take(cache, &client, error) : error_set_memory(error, "an index", PART_BYTES);
    uint64_t at = 0, size = 0;
    *same = false;
    if (status) {
        free(part);
        return status;
    }
    while (!status && (!at || at < size)) {
        struct remote_range read = {.first = at,
                                    .count = at ? min64(PART_BYTES, size - at) : first,
                                    .total = size,
                                    .into = part,
                                    .tag = entry->tag,
                                    .since_ns = at ? 0 : since_ns,
                                    .unless = !at && *entry->id};
        if (!at && !read.unless)
            *entry->tag = '\0';
        status = remote_range_read(&client->client, name, &read, error);
        *same = !status && read.same;
        if (status || *same)
            break;
        (void)__atomic_add_fetch(&cache->counts.requests, 1, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&cache->counts.bytes, read.got, __ATOMIC_RELAXED);
        size = entry->bytes = read.size;
        at += read.got;
        status = take(user, part, read.got, &at, error);
        if (!status && at < size && size > most)
            status = error_set(error, TOKMAP_ERROR_LIMIT, name, TOKMAP_NO_OFFSET,
                               "the object has %" PRIu64 " bytes, but the limit is %" PRIu64, size, most);
    }
    cache_client_return(cache, client);
    free(part);
    return status;
}

/* ---- manifests ---- */

static enum tokmap_status text_take(void *user, const uint8_t *bytes, uint64_t count, uint64_t *next,
                                    struct tokmap_error *error)
{
    struct bytes_buffer *text = user;
    if (!text->count && !shard_manifest_begins((const char *)bytes, count)) {
        *next = UINT64_MAX;
        count = min64(count, HEAD_BYTES);
    }
    return bytes_append(text, bytes, count) ? TOKMAP_OK : error_set_memory(error, "the manifest", count);
}

/* Reads the text that is kept beside the entry. */
static bool text_kept(const struct entry *entry, struct bytes_buffer *text)
{
    char *path = path_ended(entry->path, ".text");
    struct os_stat found = {.bytes = 0};
    size_t got = 0;
    int fd = -1;
    const bool good = path && !strcmp(entry->id, "-") && !os_open(path, OS_READ_OWN, &fd) && !os_fstat(fd, &found) &&
                      found.bytes >= 8 && found.bytes == entry->bytes + 8 && bytes_reserve(text, found.bytes) &&
                      !os_pread(fd, text->bytes + text->count, found.bytes, 0, &got) && got == found.bytes;
    os_close(fd);
    free(path);
    if (!good || load64(text->bytes + text->count) != hash64(text->bytes + text->count + 8, got - 8))
        return false;
    memmove(text->bytes + text->count, text->bytes + text->count + 8, got - 8);
    text->count += got - 8;
    return true;
}

/* Keeps a text, after its hash, beside the entry. */
static void text_keep(struct entry *entry, const char *name, const uint8_t *bytes, uint64_t count)
{
    char *path = path_ended(entry->path, ".text"), *partial = NULL;
    const uint64_t hash = hash64(bytes, count);
    int fd = -1;
    const bool good = path && !partial_open(path, &partial, &fd, NULL) && !os_pwrite(fd, &hash, sizeof hash, 0) &&
                      !os_pwrite(fd, bytes, count, sizeof hash) && !name_file(-1, partial, path, false, NULL);
    if (!good && fd >= 0)
        (void)os_unlink(partial);
    os_close(fd);
    memcpy(entry->id, "-", 2);
    if (good)
        (void)entry_write(entry, name, NULL);
    free(partial);
    free(path);
}

enum tokmap_status cache_text(struct cache *cache, const char *name, uint64_t most, uint64_t since_ns,
                              struct bytes_buffer *text, struct tokmap_error *error)
{
    struct entry entry;
    struct bytes_buffer kept = {0}, read = {0};
    bool same = false;
    enum tokmap_status status = entry_read(cache, name, &entry, error);
    if (!status && *entry.id && !text_kept(&entry, &kept))
        *entry.id = '\0';
    if (!status)
        status = object_read(cache, name, &entry, PART_BYTES, most, since_ns, text_take, &read, &same, error);
    const struct bytes_buffer *use = same ? &kept : &read;
    if (!status && !same && shard_manifest_begins((const char *)read.bytes, read.count))
        text_keep(&entry, name, read.bytes, read.count);
    if (!status && !bytes_append(text, use->bytes, use->count))
        status = error_set_memory(error, "the manifest", use->count);
    bytes_free(&kept);
    bytes_free(&read);
    free(entry.path);
    return status;
}

void cache_shard_confirm(struct cache *cache, const char *index_name)
{
    char *name = strdup(index_name);
    os_process_lock();
    char *before = cache->confirmed;
    cache->confirmed = name;
    os_process_unlock();
    free(before);
}

/* Returns whether it was just seen that an index is still the same, once. */
static bool confirmed_take(struct cache *cache, const char *name)
{
    os_process_lock();
    char *same = cache->confirmed && !strcmp(cache->confirmed, name) ? cache->confirmed : NULL;
    cache->confirmed = same ? NULL : cache->confirmed;
    os_process_unlock();
    free(same);
    return same != NULL;
}

bool cache_text_is_kept(struct cache *cache, const char *name)
{
    struct entry entry;
    const bool kept = !entry_read(cache, name, &entry, NULL) && !strcmp(entry.id, "-");
    free(entry.path);
    return kept;
}

/* ---- indexes ---- */

struct index_file {
    const struct entry *entry;
    bool values; /* it is the header and the table of a file of values, which stand for an index */
    int fd;
    uint64_t at;
    const char *path;
};

static enum tokmap_status index_take(void *user, const uint8_t *bytes, uint64_t count, uint64_t *next,
                                     struct tokmap_error *error)
{
    struct index_file *file = user;
    const struct index_header *header = (const struct index_header *)(const void *)bytes;
    const bool good =
        file->values || (count >= sizeof *header && !memcmp(header->magic, INDEX_MAGIC, sizeof header->magic) &&
                         header->file_bytes == file->entry->bytes);
    if (!file->at && !good)
        *next = UINT64_MAX; /* index_check() says why it is not read on */
    if (!file->at && file->values && (count < VALUES_AT || !values_summary_bytes(bytes, next)))
        *next = UINT64_MAX;
    const int system = os_pwrite(file->fd, bytes, count, file->at);
    file->at += count;
    return system ? error_set_system(error, system, file->path, TOKMAP_NO_OFFSET,
                                     "an index cannot be stored in the cache; give the folder more room")
                  : TOKMAP_OK;
}

static int fault_take(void *user, const struct tokmap_error *fault)
{
    *(struct tokmap_error *)user = *fault;
    return 1;
}

/* Returns whether this process has verified an index; known: it has just done so. */
static bool verified(struct cache *cache, const char *id, bool known)
{
    const uint64_t hash = hash64(id, strlen(id));
    uint64_t *slot = &cache->verified[hash % CACHE_VERIFIED];
    if (known)
        __atomic_store_n(slot, hash, __ATOMIC_RELAXED);
    return __atomic_load_n(slot, __ATOMIC_RELAXED) == hash;
}

enum tokmap_status cache_index_verify(struct cache *cache, const char *path, struct index *index,
                                      struct tokmap_error *error)
{
    struct tokmap_error fault = {0};
    char id[ID_CHARS + 1];
    (void)snprintf(id, sizeof id, "%s", path_name(path));
    if (verified(cache, id, false))
        return TOKMAP_OK;
    if (index_verify(index, fault_take, &fault))
        return error_set(error, fault.status, path, fault.offset, "%s", fault.message);
    (void)verified(cache, id, true);
    return TOKMAP_OK;
}

/* Checks what stands for the index of values, and finds its ID: the hash of the header, which has the content id of the
 * shard, and that of the table. */
static enum tokmap_status values_check(const char *path, const char *name, char id[ID_CHARS + 1],
                                       struct tokmap_error *error)
{
    struct tokmap_error fault = {0};
    struct values_ranges *ranges;
    uint8_t stored[16];
    char hex[33];
    const enum tokmap_status status = values_ranges_load(&ranges, path, &fault);
    if (status)
        return error_set(error, status, name, fault.offset, "%s", fault.message);
    hash128_store(hash128(&ranges->header, sizeof ranges->header), stored);
    hash128_hex(stored, hex);
    (void)snprintf(id, ID_CHARS + 1, "%s-%016" PRIx64, hex, ranges->header.table_hash);
    free(ranges);
    return TOKMAP_OK;
}

/* Checks an index that was read, and finds its ID. */
static enum tokmap_status index_check(const char *path, const char *name, char id[ID_CHARS + 1],
                                      struct tokmap_error *error)
{
    struct tokmap_error fault = {0};
    struct index index;
    if (values_file_is(name))
        return values_check(path, name, id, error);
    enum tokmap_status status = index_open(&index, path, &fault);
    if (status == TOKMAP_ERROR_NOT_FOUND) {
        if (error)
            *error = fault;
        return status;
    }
    if (!status) {
        char content[33];
        if (index_verify(&index, fault_take, &fault))
            status = fault.status;
        hash128_hex(index.shard.content, content);
        (void)snprintf(id, ID_CHARS + 1, "%s-%016" PRIx64, content, index.id);
        index_close(&index);
    }
    return status ? error_set(error, status, name, fault.offset, "%s", fault.message) : TOKMAP_OK;
}

/* Returns the path of the index that an entry names, or NULL if the folder does not have it. */
static char *index_path(const struct cache *cache, const struct entry *entry, const char *name)
{
    struct os_stat found;
    char *path = *entry->id ? index_place(cache, entry->id) : NULL;
    if (path && !os_lstat(path, &found) && (found.bytes == entry->bytes || values_file_is(name)))
        return path;
    free(path);
    return NULL;
}

/* Reads an index into the folder. *same: as for object_read(). The entry is written before the file has its name: with
 * the name, another process may lock the partial file, and must find that there is nothing left to do. */
static enum tokmap_status index_read_new(struct cache *cache, const char *name, struct entry *entry, uint64_t since_ns,
                                         bool *same, struct tokmap_error *error)
{
    char *partial = NULL, *path = NULL, *base = path_ended(entry->path, ".tmx");
    struct index_file file = {.entry = entry, .values = values_file_is(name), .path = cache->folder, .fd = -1};
    struct entry now = {.path = NULL};
    enum tokmap_status status =
        base ? partial_open(base, &partial, &file.fd, error) : error_set_memory(error, "the name of a file", 0);
    if (!status)
        status = entry_read(cache, name, &now, error);
    free(now.path);
    now.path = entry->path;
    if (!status && strcmp(now.id, entry->known) != 0 && (path = index_path(cache, &now, name))) {
        *entry = now; /* somebody else has brought it in the meantime */
        *same = true;
    } else if (!status) {
        status = object_read(cache, name, entry, file.values ? VALUES_AT : PART_BYTES, INDEX_MOST, since_ns, index_take,
                             &file, same, error);
    }
    if (!status && !*same) {
        status = index_check(partial, name, entry->id, error);
        path = status ? NULL : index_place(cache, entry->id);
        if (!status && !path)
            status = error_set_memory(error, "the name of a file", 0);
        if (!status)
            status = entry_write(entry, name, error);
        if (!status)
            status = file_finish(partial, path, error);
        if (!status)
            (void)verified(cache, entry->id, true);
    }
    if ((status || *same) && file.fd >= 0)
        (void)os_unlink(partial);
    os_close(file.fd);
    free(partial);
    free(path);
    free(base);
    return status;
}

enum tokmap_status cache_index_bring(struct cache *cache, const char *name, const uint8_t *content,
                                     uint64_t index_bytes, char **path, struct tokmap_error *error)
{
    struct entry entry;
    char hex[33] = "";
    const uint64_t since_ns = os_clock_ns(); /* others may be at it now, and fail */
    *path = NULL;
    enum tokmap_status status = entry_read(cache, name, &entry, error);
    const bool confirmed = !content && confirmed_take(cache, name);
    if (content)
        hash128_hex(content, hex);
    for (int try = 0; try < 2 && !status && !*path; try++) {
        bool same = false;
        *path = index_path(cache, &entry, name);
        if (!*path)
            *entry.id = *entry.known = '\0';
        if (*path && (confirmed || (content && entry.bytes == index_bytes && !strncmp(entry.id, hex, strlen(hex)))))
            break;
        free(*path);
        *path = NULL;
        status = index_read_new(cache, name, &entry, since_ns, &same, error);
        if (status == TOKMAP_ERROR_CORRUPT && !try) { /* perhaps on its way */
            *entry.id = '\0';
            status = TOKMAP_OK;
            continue;
        }
        if (!status && !(*path = index_place(cache, entry.id)))
            status = error_set_memory(error, "the name of a file", 0);
    }
    free(entry.path);
    return status;
}
