/* SPDX-License-Identifier: MIT */
#include "cache_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "format/shard_ranges.h"
#include "text/path.h"

#define TABLE_MAGIC UINT64_C(0x31706d7463616870) /* of this layout */
#define STATE_MAGIC UINT64_C(0x32706d7463617374)
#define LOCKS_AT ((uint64_t)1 << 20) /* bytes of the file that are locked, and that it does not have */
#define EVICT_AT (LOCKS_AT + CACHE_PROCESSES)
#define CELLS_MOST ((uint64_t)1 << 42)

struct cache_state_head {
    uint64_t magic, count;
    uint64_t boot;  /* the run of the machine in which cells became present; accessed atomically */
    uint64_t files; /* cache_files() plus the inode of this file */
    uint64_t rows[CACHE_PROCESSES / 64];
};

static enum tokmap_status failed(int system, const char *path, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET,
                            "the state of the cache cannot be used; check the folder, or name another one (cache=)");
}

/* Returns whether a path leads to the file that is open. */
static bool is_named(int fd, const char *path)
{
    struct os_stat opened, named;
    return !os_fstat(fd, &opened) && !os_stat(path, &named) && opened.inode == named.inode &&
           opened.device == named.device;
}

/* ---- processes ---- */

enum tokmap_status cache_processes_open(struct cache_processes *processes, const char *path, struct tokmap_error *error)
{
    struct os_stat found;
    void *table = NULL;
    *processes = (struct cache_processes){.fd = -1};
    int system = os_open(path, OS_WRITE_OPEN, &processes->fd);
    if (!system)
        system = os_fstat(processes->fd, &found);
    if (!system && found.bytes < sizeof *processes->table)
        system = os_truncate(processes->fd, sizeof *processes->table);
    if (!system)
        system = os_map_shared(processes->fd, sizeof *processes->table, &table);
    processes->table = table;
    if (!system)
        system = os_map_fill(table, sizeof *processes->table);
    if (system)
        return failed(system, path, error);
    uint64_t magic = 0;
    if (!__atomic_compare_exchange_n(&processes->table->magic, &magic, TABLE_MAGIC, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        magic != TABLE_MAGIC)
        return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                         "this is not the table of a cache of this tokmap; remove the folder, or name another one "
                         "(cache=)");
    return cache_claim(processes) ? TOKMAP_OK
                                  : error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                                              "%d processes use the cache folder, which is the limit; name another "
                                              "folder (cache=) for the others",
                                              CACHE_PROCESSES);
}

void cache_processes_close(struct cache_processes *processes)
{
    os_unmap(processes->table, sizeof *processes->table);
    os_close(processes->fd);
    processes->table = NULL;
    processes->fd = -1;
}

bool cache_processes_kept(const struct cache_processes *processes, const char *folder)
{
    char *path = path_in(folder, CACHE_PROCESSES_FILE);
    const bool kept = path && is_named(processes->fd, path);
    free(path);
    return kept;
}

/* Takes a number. The search begins anywhere, so that a number is not used again soon. */
static void number_take(struct cache_processes *processes)
{
    uint32_t start = 0;
    (void)os_random(&start, sizeof start);
    processes->number = CACHE_PROCESSES;
    for (uint32_t i = 0; i < CACHE_PROCESSES; i++) {
        const uint32_t number = (start + i) % CACHE_PROCESSES;
        if (os_byte_lock(processes->fd, LOCKS_AT + number))
            continue;
        (void)__atomic_add_fetch(&processes->table->of[number].times, 1, __ATOMIC_ACQ_REL);
        __atomic_store_n(&processes->table->of[number].now, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&processes->table->of[number].reserved, 0, __ATOMIC_RELEASE);
        processes->number = number;
        return;
    }
}

uint64_t cache_claim(struct cache_processes *processes)
{
    const uint32_t process = os_process_id();
    if (__atomic_load_n(&processes->process, __ATOMIC_ACQUIRE) != process) {
        os_process_lock();
        if (processes->process != process) {
            number_take(processes);
            __atomic_store_n(&processes->process, process, __ATOMIC_RELEASE);
        }
        os_process_unlock();
    }
    if (processes->number == CACHE_PROCESSES)
        return 0;
    const uint64_t times = __atomic_load_n(&processes->table->of[processes->number].times, __ATOMIC_ACQUIRE);
    return (times & 0xFFFF) << 18 | ((uint64_t)processes->number + 1) << 2;
}

bool cache_process_lives(const struct cache_processes *processes, uint32_t number)
{
    return (os_process_id() == __atomic_load_n(&processes->process, __ATOMIC_ACQUIRE) && number == processes->number) ||
           os_byte_is_locked(processes->fd, LOCKS_AT + number);
}

bool cache_claim_lives(const struct cache_processes *processes, uint64_t word)
{
    const uint64_t number = (word >> 2 & 0x7FFF) - 1;
    return number < CACHE_PROCESSES &&
           (__atomic_load_n(&processes->table->of[number].times, __ATOMIC_ACQUIRE) & 0xFFFF) == (word >> 18 & 0xFFFF) &&
           cache_process_lives(processes, (uint32_t)number);
}

bool cache_evict_begin(struct cache_processes *processes)
{
    if (__atomic_exchange_n(&processes->evicting, os_process_id(), __ATOMIC_ACQ_REL) == os_process_id())
        return false;
    if (!os_byte_lock(processes->fd, EVICT_AT))
        return true;
    __atomic_store_n(&processes->evicting, 0, __ATOMIC_RELEASE);
    return false;
}

void cache_evict_end(struct cache_processes *processes)
{
    assert(__atomic_load_n(&processes->evicting, __ATOMIC_RELAXED) == os_process_id());
    os_byte_unlock(processes->fd, EVICT_AT);
    __atomic_store_n(&processes->evicting, 0, __ATOMIC_RELEASE);
}

/* ---- cells ---- */

uint64_t cache_files(const int fds[2])
{
    uint64_t inodes[2] = {0};
    for (int part = 0; part < 2; part++) {
        struct os_stat found;
        if (fds[part] >= 0 && !os_fstat(fds[part], &found))
            inodes[part] = found.inode;
    }
    return hash64(inodes, sizeof inodes);
}

/* Returns where `next` begins: at a page, so that the rows of a process that has none take no storage. */
static uint64_t next_at(uint64_t count)
{
    return round_up(sizeof(struct cache_state_head) + count * sizeof(struct cache_cell), 4096);
}

static uint64_t state_bytes(uint64_t count)
{
    return next_at(count) + count * sizeof(uint32_t) * CACHE_PROCESSES;
}

/* After a restart of the machine, what was present is compared again: its bytes may not have reached the disk. */
static void boot_check(struct cache_state *state)
{
    const uint64_t boot = os_boot_id();
    uint64_t before = __atomic_load_n(&state->head->boot, __ATOMIC_ACQUIRE);
    if (before == boot)
        return;
    for (uint64_t i = 0; i < state->count; i++) {
        uint64_t word = cell_word(&state->cells[i]);
        while (word & (CELL_PRESENT | CELL_CLAIM) &&
               !cell_change(&state->cells[i], &word, (word & ~(CELL_PRESENT | CELL_CLAIM)) | CELL_STORED))
            ;
    }
    __atomic_store_n(&state->head->boot, boot, __ATOMIC_RELEASE);
}

enum tokmap_status cache_state_open(struct cache_state *state, const char *path, struct tokmap_error *error)
{
    struct os_stat found;
    struct cache_state_head head;
    size_t got;
    *state = (struct cache_state){.fd = -1};
    int system = os_open(path, OS_WRITE_OLD, &state->fd);
    if (!system)
        system = os_fstat(state->fd, &found);
    if (!system)
        system = os_pread(state->fd, &head, sizeof head, 0, &got);
    if (system)
        return failed(system, path, error);
    if (got < sizeof head || head.magic != STATE_MAGIC || head.count > CELLS_MOST ||
        found.bytes != state_bytes(head.count))
        return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                         "this is not the state of a shard of this tokmap's cache; remove the file");
    void *mapped;
    system = os_map_shared(state->fd, found.bytes, &mapped);
    if (system)
        return failed(system, path, error);
    state->count = head.count;
    state->bytes = found.bytes;
    state->files = head.files - found.inode;
    state->head = mapped;
    state->rows = state->head->rows;
    state->cells = (struct cache_cell *)(void *)(state->head + 1);
    state->next = (uint32_t *)(void *)((char *)mapped + next_at(head.count));
    boot_check(state);
    return TOKMAP_OK;
}

bool cache_state_kept(struct cache_state *state, const char *path)
{
    assert(state->fd >= 0);
    const bool kept = is_named(state->fd, path);
    os_close(state->fd);
    state->fd = -1;
    return kept;
}

enum tokmap_status cache_state_make(const char *path, const struct cache_cell *cells, uint64_t count, uint64_t files,
                                    struct tokmap_error *error)
{
    struct cache_state_head head = {.magic = STATE_MAGIC, .count = count, .boot = os_boot_id()};
    struct os_stat made;
    char *partial = path_ended(path, ".partial");
    int fd = -1;
    if (!partial)
        return error_set_memory(error, "the name of a file", strlen(path));
    int system = partial_file_open(partial, NULL, NULL, &fd);
    if (!system)
        system = os_truncate(fd, state_bytes(count));
    if (!system)
        system = os_fstat(fd, &made);
    if (!system)
        head.files = files + made.inode;
    if (!system)
        system = os_pwrite(fd, cells, count * sizeof *cells, sizeof head);
    if (!system)
        system = os_pwrite(fd, &head, sizeof head, 0);
    if (!system)
        system = name_file(-1, partial, path, false, NULL);
    if (system && fd >= 0)
        (void)os_unlink(partial);
    os_close(fd);
    free(partial);
    return system ? failed(system, path, error) : TOKMAP_OK;
}

void cache_state_close(struct cache_state *state)
{
    os_unmap(state->head, state->bytes);
    os_close(state->fd);
    *state = (struct cache_state){.fd = -1};
}

/* ---- where the cells of a shard are, and what their bytes must be ---- */

/*
 * A cell is a range of a file that has a hash, or, of a sealed shard, 16 of them.
 *
 * Example: a shard of 2,500,000 tokens of 2 bytes, with a mask. Cells 0 to 4 are its tokens, 1 MiB each and the last
 * one 805,696 bytes; cell 5 is the mask, of 312,500 bytes. If the shard is sealed, cell 0 is frames 0 to 15 of its
 * file, and what follows the last frame, the seek table for other programs, belongs to the last cell.
 */
_Static_assert(CACHE_CELL == BLOCK_BYTES && CACHE_CELL % FRAME_BYTES == 0, "a cell is whole ranges");

/* The cells of a file. */
struct file_cells {
    enum shard_file file;
    uint64_t base, end; /* its first cell, and the one after its last */
    uint64_t per;       /* ranges of a cell */
};

static struct file_cells cells_of_part(const struct cache_shard *shard, enum cache_part part)
{
    const bool sealed = index_is_sealed(&shard->index);
    return part == CACHE_MASK ? (struct file_cells){SHARD_MASK, shard->token_cells, shard->state.count, 1}
                              : (struct file_cells){sealed ? SHARD_SEALED : SHARD_TOKENS, 0, shard->token_cells,
                                                    sealed ? CACHE_CELL / FRAME_BYTES : 1};
}

/* Finds the ranges of cells [first, end), which are of one file. */
static struct file_cells ranges_of(const struct cache_shard *shard, uint64_t *first, uint64_t *end)
{
    const struct file_cells of = cells_of_part(shard, cache_part_of(shard, *first));
    *first = (*first - of.base) * of.per;
    *end = min64((*end - of.base) * of.per, shard_ranges(&shard->index, of.file));
    return of;
}

enum tokmap_status cache_cells_place(const struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t *from,
                                     uint64_t *bytes, struct tokmap_error *error)
{
    assert(first < end && end <= shard->state.count);
    assert(cache_part_of(shard, first) == cache_part_of(shard, end - 1));
    const struct file_cells of = ranges_of(shard, &first, &end);
    return shard_ranges_place(&shard->index, of.file, first, end, from, bytes, error);
}

void cache_cells_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end)
{
    const struct file_cells of = cells_of_part(shard, part);
    (void)shard_ranges_find(&shard->index, of.file, at, count, first, end, NULL);
    *first = of.base + *first / of.per;
    *end = of.base + div_ceil(*end, of.per);
}

void cache_cells_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end)
{
    const struct file_cells of = cells_of_part(shard, part);
    *first = min64(of.base + at / CACHE_CELL, of.end);
    *end = count ? min64(of.base + (at + count - 1) / CACHE_CELL + 1, of.end) : *first;
}

bool cache_cell_matches(const struct cache_shard *shard, uint64_t cell, const uint8_t *bytes,
                        struct sealed_reader **reader)
{
    assert(cell < shard->state.count);
    uint64_t end = cell + 1;
    const struct file_cells of = ranges_of(shard, &cell, &end);
    return !shard_ranges_check(&shard->index, of.file, cell, end, shard->path, bytes, reader, NULL);
}

/* ---- the connections, which threads take in turn ---- */

/* the connections of a cache, which threads take in turn. */
static _Thread_local const uint32_t *stops; /* see cache_client_stops() */

void cache_client_stops(const uint32_t *word)
{
    stops = word;
}

/* Ends a request that another one has made superfluous, or that nobody waits for any more. */
static bool is_superfluous(void *user)
{
    const struct cache_client *client = user;
    return (stops && __atomic_load_n(stops, __ATOMIC_RELAXED)) ||
           (client->wanted && cell_word(client->wanted) & CELL_PRESENT);
}

enum tokmap_status cache_client_take(struct cache *cache, struct cache_client **client, struct tokmap_error *error)
{
    const uint32_t process = os_process_id();
    do {
        os_process_lock();
        *client = cache->clients;
        if (*client) {
            cache->clients = (*client)->next;
            cache->client_count--;
        }
        os_process_unlock();
    } while (*client && (*client)->process != process); /* after fork(): the parent uses its connections */
    if (*client)
        return TOKMAP_OK;
    struct cache_client *made = *client = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "a connection", sizeof *made);
    made->process = process;
    remote_client_init(&made->client, is_superfluous, made, NULL);
    return TOKMAP_OK;
}

static void client_free(struct cache_client *client)
{
    if (!client || client->process != os_process_id())
        return;
    remote_client_free(&client->client);
    sealed_reader_free(client->reader);
    free(client->block);
    free(client);
}

void cache_client_return(struct cache *cache, struct cache_client *client)
{
    client->wanted = NULL;
    os_process_lock();
    const bool kept = cache->client_count < CACHE_CLIENTS;
    if (kept) {
        client->next = cache->clients;
        cache->clients = client;
        cache->client_count++;
    }
    os_process_unlock();
    if (!kept)
        client_free(client);
}

void cache_clients_free(struct cache *cache)
{
    while (cache->clients) {
        struct cache_client *client = cache->clients;
        cache->clients = client->next;
        client_free(client);
    }
    cache->client_count = 0;
}
