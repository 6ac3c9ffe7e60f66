/* SPDX-License-Identifier: MIT */
/* cache_folder.c - see cache_folder.h: the name of a cache, its folder, and the caches of this process. */
#include "cache_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache_pool.h"
#include "cache_state.h"
#include "common/bytes.h"
#include "common/error.h"
#include "remote/remote_url.h"
#include "text/decimal.h"
#include "text/path.h"

#define BLOCK_LEAST ((uint64_t)1 << 20)
#define BLOCK_MOST ((uint64_t)16 << 20)
#define BLOCK_DEFAULT ((uint64_t)4 << 20)
#define SIZE_LEAST ((uint64_t)64 << 20)
#define RESERVE_MOST ((uint64_t)256 << 20)
#define RESERVE_SHARE 20 /* of the disk: 1/20 */
#define CONNECTIONS_DEFAULT 32
#define CONNECTIONS_MOST 128
#define FORM "a cache is named NAME?cache=FOLDER&block=4M&size=2T&connections=32"

/* ---- the name ---- */

struct wanted {
    char *folder;
    uint64_t block, size, connections;
};

/* Reads "64M" or "2TiB": powers of 1024. */
static bool size_read(const char *text, const char *end, uint64_t *size)
{
    static const char units[] = "KMGT";
    if (!decimal_read(&text, end, size))
        return false;
    const char *unit = text < end ? strchr(units, *text) : NULL;
    for (const char *at = units; unit && *unit && at <= unit; at++)
        if (mul_overflows(*size, 1024, size))
            return false;
    text += unit != NULL;
    if (unit && end - text == 2 && !memcmp(text, "iB", 2))
        text += 2;
    return text == end;
}

static enum tokmap_status word_read(struct wanted *wanted, const char *name, const char *word, size_t bytes,
                                    struct tokmap_error *error)
{
    const char *value = memchr(word, '=', bytes), *end = word + bytes;
    const size_t key = value ? (size_t)(value++ - word) : bytes;
    uint64_t number = 0;
    if (value && key == 5 && !memcmp(word, "cache", 5) && value < end) {
        free(wanted->folder);
        wanted->folder = strndup(value, (size_t)(end - value));
        return wanted->folder ? TOKMAP_OK : error_set_memory(error, "the name of a folder", bytes);
    }
    const bool block = key == 5 && !memcmp(word, "block", 5), size = key == 4 && !memcmp(word, "size", 4);
    if (!(block || size || (key == 11 && !memcmp(word, "connections", 11))))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET, "'%.*s' is not a word of a cache; " FORM,
                         (int)min64(bytes, 100), word);
    if (!value || !size_read(value, end, &number) ||
        (block && (number < BLOCK_LEAST || number > BLOCK_MOST || number & (number - 1))) ||
        (size && number < SIZE_LEAST) || (!block && !size && (!number || number > CONNECTIONS_MOST)))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET, "'%.*s': %s; " FORM,
                         (int)min64(bytes, 100), word,
                         block  ? "a block has 1M, 2M, 4M, 8M, or 16M bytes"
                         : size ? "a cache has at least 64M bytes"
                                : "there are 1 to 128 connections");
    *(block ? &wanted->block : size ? &wanted->size : &wanted->connections) = number;
    return TOKMAP_OK;
}

/* Splits a name: what it says of the data, and of the cache. */
static enum tokmap_status name_split(const char *name, char **rest, struct wanted *wanted, struct tokmap_error *error)
{
    static const char *const words[] = {"cache=", "block=", "size=", "connections="};
    const char *mark = strrchr(name, '?');
    bool ours = false;
    for (size_t i = 0; mark && i < sizeof words / sizeof words[0]; i++)
        ours = ours || !strncmp(mark + 1, words[i], strlen(words[i]));
    if (!ours)
        mark = NULL;
    *rest = strndup(name, mark ? (size_t)(mark - name) : strlen(name));
    if (!*rest)
        return error_set_memory(error, "the name of a dataset", strlen(name));
    if (remote_kind(name) == REMOTE_WEB && strpbrk(*rest, "?#"))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                         "a dataset has several files, whose URLs are made of this one, so it has no query; name "
                         "https://HOST/PATH, or use s3:// with keys");
    enum tokmap_status status = TOKMAP_OK;
    for (const char *word = mark ? mark + 1 : NULL; word && !status;) {
        const size_t bytes = strcspn(word, "&");
        status = word_read(wanted, name, word, bytes, error);
        word = word[bytes] ? word + bytes + 1 : NULL;
    }
    return status;
}

/* ---- the folder ---- */

/* Makes a folder and, if it is missing, the one that it is in. */
static int folder_make(const char *path)
{
    int system = os_make_folder(path);
    if (system == ENOENT) {
        char *parent = path_folder(path);
        system = parent ? os_make_folder(parent) : ENOMEM;
        free(parent);
        if (!system || system == EEXIST)
            system = os_make_folder(path);
    }
    if (!system)
        (void)os_make_private(path); /* the data may be secret, and a wide umask would let others write */
    return system == EEXIST ? 0 : system;
}

/* Tries whether a file of the folder can have holes. */
static enum tokmap_status holes_try(const char *folder, struct tokmap_error *error)
{
    static const uint8_t bytes[4 * 65536] = {1};
    struct os_stat before = {.bytes = 0}, after = {.bytes = 0};
    int fd;
    int system = os_open(folder, OS_WRITE_UNNAMED, &fd);
    if (system)
        return error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                "no file can be made in the cache folder; name one that may be written (cache=)");
    system = os_pwrite(fd, bytes, sizeof bytes, 0);
    if (!system)
        system = os_fstat(fd, &before);
    if (!system)
        system = os_punch(fd, 0, sizeof bytes);
    if (!system)
        system = os_fstat(fd, &after);
    os_close(fd);
    if (!system && after.allocated >= before.allocated && before.allocated)
        system = ENOTSUP;
    if (system == ENOTSUP)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, folder, TOKMAP_NO_OFFSET,
                         "the file system of the cache folder cannot free a part of a file (holes); name a folder "
                         "on ext4, xfs, btrfs, or tmpfs (cache=)");
    return system ? error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                     "the cache folder cannot be used; give it more room, or name another one (cache=)")
                  : TOKMAP_OK;
}

static enum tokmap_status folder_check(const char *folder, struct tokmap_error *error)
{
    int fd;
    const int system = os_open(folder, OS_READ_NOW, &fd);
    if (system)
        return error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                "the cache folder cannot be opened; name another one (cache=)");
    const bool private = os_is_private(fd), local = os_file_is_local(fd);
    os_close(fd);
    if (!private)
        return error_set(error, TOKMAP_ERROR_IO, folder, TOKMAP_NO_OFFSET,
                         "the cache folder belongs to another user, or others may write it, so its content cannot be "
                         "trusted; name a folder of your own (cache=, or TOKMAP_CACHE), of mode 700");
    if (!local)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, folder, TOKMAP_NO_OFFSET,
                         "the cache folder is on a network file system, or one that another process implements; name "
                         "a folder on a disk of this machine (cache=, or TOKMAP_CACHE)");
    return holes_try(folder, error);
}

/* Makes the folder what it has to be, and opens what processes share. */
static enum tokmap_status folder_open(struct cache *cache, struct tokmap_error *error)
{
    enum tokmap_status status = folder_check(cache->folder, error);
    char *names = path_in(cache->folder, "names"), *table = path_in(cache->folder, CACHE_PROCESSES_FILE);
    const int system = status || !names ? 0 : os_make_folder(names);
    if (!names || !table)
        status = error_set_memory(error, "the name of a file", 0);
    else if (system && system != EEXIST)
        status = error_set_system(error, system, names, TOKMAP_NO_OFFSET, "the cache folder cannot be written");
    if (!status)
        status = cache_processes_open(&cache->processes, table, error);
    uint64_t disk = 0;
    (void)os_disk_size(cache->folder, &disk);
    cache->reserve = min64(disk / RESERVE_SHARE, RESERVE_MOST);
    free(names);
    free(table);
    return status;
}

/* ---- the caches of this process ---- */

static struct cache *caches; /* below os_process_lock() */
static uint32_t opening;     /* the process a thread of which opens a cache; accessed atomically */

static struct cache *cache_find(const char *folder)
{
    os_process_lock();
    struct cache *cache = caches;
    while (cache && strcmp(cache->folder, folder) != 0)
        cache = cache->next;
    if (cache)
        cache->users++;
    os_process_unlock();
    return cache;
}

struct cache *cache_again(struct cache *cache)
{
    os_process_lock();
    cache->users++;
    os_process_unlock();
    return cache;
}

/* Lets one thread open caches at a time: closing a second descriptor of a folder's `processes` would end the lock that
 * this process has on it. In a child after fork() no thread of its parent opens any. */
static void opening_begin(void)
{
    const uint32_t process = os_process_id();
    for (uint32_t before = 0;
         !__atomic_compare_exchange_n(&opening, &before, process, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);) {
        if (before == process)
            os_sleep_ns(1000000);
        before = before == process ? 0 : before;
    }
}

static void opening_end(void)
{
    __atomic_store_n(&opening, 0, __ATOMIC_RELEASE);
}

static void cache_free(struct cache *cache)
{
    cache_pool_close(cache);
    cache_clients_free(cache);
    cache_processes_close(&cache->processes);
    free(cache->confirmed);
    free(cache->folder);
    free(cache);
}

enum tokmap_status cache_open(struct cache **cache, char **rest, const char *name, struct tokmap_error *error)
{
    struct wanted wanted = {.folder = NULL};
    char *folder = NULL;
    *cache = NULL;
    enum tokmap_status status = name_split(name, rest, &wanted, error);
    if (!status && !wanted.folder && !(wanted.folder = path_user_cache()))
        status = error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                           "no folder is named in which the data can be kept, and HOME is not set; set TOKMAP_CACHE, "
                           "or name one: " FORM);
    int system = status ? 0 : folder_make(wanted.folder);
    if (!status && !system)
        system = os_real_path(wanted.folder, &folder);
    if (system)
        status = error_set_system(error, system, wanted.folder, TOKMAP_NO_OFFSET,
                                  "the cache folder cannot be made; name another one (cache=, or TOKMAP_CACHE)");
    opening_begin();
    struct cache *found = status ? NULL : cache_find(folder);
    struct cache *made = status || found ? NULL : calloc(1, sizeof *made);
    if (!status && !found && !made)
        status = error_set_memory(error, "a cache", sizeof *made);
    if (made) {
        *made = (struct cache){.folder = folder,
                               .block = BLOCK_DEFAULT,
                               .size = UINT64_MAX,
                               .connections = CONNECTIONS_DEFAULT,
                               .users = 1,
                               .room_rows = UINT64_MAX,
                               .processes = {.fd = -1}};
        folder = NULL;
        status = folder_open(made, error);
        if (status) {
            cache_free(made);
        } else {
            made->evictions = __atomic_load_n(&made->processes.table->evictions, __ATOMIC_RELAXED);
            os_process_lock();
            made->next = caches;
            caches = found = made;
            os_process_unlock();
        }
    }
    if (found) { /* a folder has one cache, and the last word about it counts */
        if (wanted.block)
            __atomic_store_n(&found->block, wanted.block, __ATOMIC_RELAXED);
        if (wanted.size)
            __atomic_store_n(&found->size, wanted.size, __ATOMIC_RELAXED);
        if (wanted.connections)
            __atomic_store_n(&found->connections, (uint32_t)wanted.connections, __ATOMIC_RELAXED);
    }
    opening_end();
    *cache = found;
    free(folder);
    free(wanted.folder);
    if (status) {
        free(*rest);
        *rest = NULL;
    }
    return status;
}

void cache_close(struct cache *cache)
{
    if (!cache)
        return;
    opening_begin();
    os_process_lock();
    const bool last = !--cache->users;
    for (struct cache **at = &caches; last && *at; at = *at ? &(*at)->next : at)
        if (*at == cache)
            *at = cache->next;
    os_process_unlock();
    if (last)
        cache_free(cache);
    opening_end();
}

uint32_t cache_connections(const struct cache *cache)
{
    return __atomic_load_n(&cache->connections, __ATOMIC_RELAXED);
}

void cache_count(const struct cache *cache, struct cache_counts *counts)
{
    const uint64_t *from = &cache->counts.requests;
    uint64_t *to = &counts->requests;
    for (size_t i = 0; i < sizeof *counts / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
