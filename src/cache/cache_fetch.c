/* SPDX-License-Identifier: MIT */
/*
 * cache_fetch.c - brings cells from the storage into the folder.
 *
 * Whoever needs a cell that is absent claims it and those beside it that are absent, up to a block, and sends one
 * request for all of them. The bytes are compared in memory, stored, and then the words of the cells say that they are
 * present. Whoever finds a cell claimed waits for that, or, if only the future needs it, continues.
 *
 * A request that takes too long (CACHE.md) is sent again by whoever waits for it, or by a thread that has nothing else
 * to do.
 */
#include "cache_fetch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache_evict.h"
#include "cache_shard.h"
#include "common/bytes.h"
#include "common/error.h"

#define REPEAT_NS ((uint64_t)500 * 1000000)
#define SLEEP_NS ((uint64_t)100000)
#define SLEEP_NS_MOST ((uint64_t)2000000)
#define GIVEN_NS_MOST ((uint64_t)60 * 1000000000)
#define CELLS_MOST 16 /* of a block */

/* Cells that are fetched by one request. */
struct range {
    struct cache_shard *shard;
    uint64_t first, end;
    uint64_t claim;             /* of this process; 0: another one's, whose request this one repeats, */
    uint64_t words[CELLS_MOST]; /* when the cells have these words */
    uint64_t cell;              /* that was asked for, */
    uint64_t distance;          /* and is needed in so many rows, */
    uint64_t farthest;          /* and the others in at most so many */
    uint64_t since_ns;          /* when whoever needs it began to wait */
    uint64_t from, bytes;
    uint64_t ns[4]; /* by enum cache_phase, how long it took */
};

static void count_add(uint64_t *count, uint64_t add)
{
    (void)__atomic_add_fetch(count, add, __ATOMIC_RELAXED);
}

/* ---- how long requests take ---- */

/* Returns how long nearly all requests took. */
static uint64_t usual_ns(const struct cache *cache)
{
    uint64_t most[4] = {0}; /* the largest, in falling order: 4 of 64 are above the 94th percentile */
    const uint64_t count = min64(__atomic_load_n(&cache->time_count, __ATOMIC_RELAXED), CACHE_TIMES);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t time = __atomic_load_n(&cache->times[i], __ATOMIC_RELAXED);
        for (int k = 0; k < 4; k++)
            if (time > most[k]) {
                const uint64_t smaller = most[k];
                most[k] = time;
                time = smaller;
            }
    }
    return count < 16 ? most[0] : most[3];
}

static uint64_t slow_ns(const struct cache *cache)
{
    return max64(REPEAT_NS, 4 * usual_ns(cache));
}

/* Forgets the requests of the parent, in a child after fork(). The lock is held. */
static void running_own(struct cache *cache)
{
    if (cache->running_process != os_process_id())
        memset(cache->running, 0, sizeof cache->running);
    cache->running_process = os_process_id();
}

/* Returns the place of a request among those that run, or NULL if there are too many to be repeated. */
static struct cache_running *running_begin(const struct range *range)
{
    struct cache *cache = range->shard->cache;
    struct cache_running *found = NULL;
    os_process_lock();
    running_own(cache);
    for (uint32_t i = 0; i < CACHE_RUNNING && !found; i++)
        if (!cache->running[i].shard)
            found = &cache->running[i];
    if (found)
        *found = (struct cache_running){range->shard, range->first, range->end, os_clock_ns(), !range->claim, 0, 0};
    os_process_unlock();
    return found;
}

static void running_end(struct cache_running *running)
{
    os_process_lock();
    if (running)
        running->shard = NULL;
    os_process_unlock();
}

/* Returns what a request of this process for a cell is waiting for. *slow: it takes too long, and is repeated now, for
 * these cells. */
static enum cache_phase running_find(const struct cache_shard *shard, uint64_t cell, bool *slow, struct range *again)
{
    struct cache *cache = shard->cache;
    const uint64_t limit = slow_ns(cache), now = os_clock_ns();
    enum cache_phase phase = PHASE_NONE;
    *slow = false;
    os_process_lock();
    running_own(cache);
    for (uint32_t i = 0; i < CACHE_RUNNING && !phase; i++) {
        struct cache_running *running = &cache->running[i];
        if (running->shard != shard || cell < running->first || cell >= running->end)
            continue;
        phase = __atomic_load_n(&running->stores, __ATOMIC_RELAXED)     ? PHASE_DISK
                : __atomic_load_n(&running->answered, __ATOMIC_RELAXED) ? PHASE_BYTES
                                                                        : PHASE_STORAGE;
        *slow = !running->repeated && now - running->since_ns > limit;
        running->repeated = running->repeated || *slow;
        again->first = running->first;
        again->end = running->end;
    }
    os_process_unlock();
    return phase;
}

/* ---- claims ---- */

/* Claims a cell that is absent. Returns false if it is present, or claimed by a process that lives. Where the table of
 * processes was replaced, those of the new one only seem to be dead. */
static bool cell_claim(struct cache_shard *shard, uint64_t cell, uint64_t claim)
{
    struct cache_cell *of = &shard->state.cells[cell];
    const struct cache_processes *processes = &shard->cache->processes;
    uint64_t word = cell_word(of);
    while (!(word & CELL_PRESENT) && (!(word & CELL_CLAIM) || (!cache_claim_lives(processes, word) &&
                                                               cache_processes_kept(processes, shard->cache->folder))))
        if (cell_change(of, &word, (word & ~CELL_CLAIM) | claim))
            return true;
    return false;
}

/* Ends the claims of a range. present: its cells are; but a cell that is not claimed any more as it was may just be
 * given up, so that its word stays. */
static void cells_end(const struct range *range, bool present)
{
    for (uint64_t i = range->first; i < range->end; i++) {
        struct cache_cell *cell = &range->shard->state.cells[i];
        uint64_t word = cell_word(cell), to;
        do {
            const bool claimed = range->claim && (word & CELL_CLAIM) == range->claim;
            to = claimed ? word & ~CELL_CLAIM : word;
            const bool same = !range->claim && word == range->words[i - range->first];
            if (present && !(word & CELL_PRESENT) && (claimed || same))
                to = ((to & ~CELL_STORED) | CELL_PRESENT) + CELL_TIMES;
        } while (!cell_change(cell, &word, to));
        if (present)
            (void)__atomic_fetch_or(&range->shard->compared[i / 64], (uint64_t)1 << i % 64, __ATOMIC_ACQ_REL);
    }
}

/* Adds a cell to a range that is beside it. When the cache is full, one that is not needed as soon as others that are
 * asked for stays out. A process without a plan takes whole blocks. */
static bool add_beside(struct range *range, uint64_t cell)
{
    const struct cache_shard *shard = range->shard;
    const struct cache_processes *processes = &shard->cache->processes;
    uint64_t changes, rows = range->distance;
    const uint64_t reach = cache_reach(shard->cache, &changes);
    if (reach != UINT64_MAX && __atomic_load_n(&shard->planned, __ATOMIC_ACQUIRE) == range->claim) {
        const uint32_t next =
            __atomic_load_n(&shard->state.next[processes->number * shard->state.count + cell], __ATOMIC_RELAXED);
        rows = (uint32_t)(next - 1 - __atomic_load_n(&processes->table->of[processes->number].now, __ATOMIC_RELAXED));
        if (!next || rows >= reach ||
            rows > max64(range->distance, __atomic_load_n(&shard->cache->ahead, __ATOMIC_RELAXED)))
            return false;
    }
    if (!cell_claim(range->shard, cell, range->claim))
        return false;
    range->farthest = max64(range->farthest, rows);
    return true;
}

/* Claims the cells of the block of a cell, which is claimed, beside it. */
static void claim_beside(struct range *range)
{
    const struct cache_shard *shard = range->shard;
    const bool mask = cache_part_of(shard, range->first) == CACHE_MASK;
    const uint64_t base = mask ? shard->token_cells : 0, most = mask ? shard->state.count : shard->token_cells;
    const uint64_t cells = max64(__atomic_load_n(&shard->cache->block, __ATOMIC_RELAXED) / CACHE_CELL, 1);
    const uint64_t begin = base + (range->first - base) / cells * cells, stop = min64(begin + cells, most);
    while (range->end < stop && add_beside(range, range->end))
        range->end++;
    while (range->first > begin && add_beside(range, range->first - 1))
        range->first--;
}

/* ---- a request ---- */

static enum tokmap_status place(struct range *range, struct cache_client *client, struct tokmap_error *error)
{
    const enum tokmap_status status =
        cache_cells_place(range->shard, range->first, range->end, &range->from, &range->bytes, error);
    if (status || range->bytes <= client->block_bytes)
        return status;
    free(client->block);
    client->block_bytes = 0;
    client->block = os_memory_large(range->bytes);
    if (!client->block)
        return error_set_memory(error, "a block", range->bytes);
    client->block_bytes = range->bytes;
    return TOKMAP_OK;
}

/* Makes room for the range, or, where that would take the place of something that is needed sooner, for the cell alone.
 * Returns false if there is none, and the cell is not needed at once. */
static bool room_make(struct range *range, struct cache_client *client)
{
    struct cache *cache = range->shard->cache;
    const uint64_t before = os_clock_ns();
    bool room = cache_room(cache, range->bytes, range->farthest);
    if (!room && range->claim && range->end - range->first > 1) {
        struct range left = *range, right = *range;
        if (!range->farthest)
            cache_room_end(cache, range->bytes, false);
        left.end = range->first = range->cell;
        right.first = range->end = range->cell + 1;
        cells_end(&left, false);
        cells_end(&right, false);
        (void)place(range, client, NULL); /* it has worked for more */
        room = cache_room(cache, range->bytes, range->distance);
        range->farthest = range->distance;
    }
    range->ns[PHASE_DISK] += os_clock_ns() - before;
    return room || !range->distance;
}

/* Finds the first cell of the range whose bytes are not those that the index says. Returns range->end if there is
 * none. */
static uint64_t mismatch(const struct range *range, struct cache_client *client)
{
    uint64_t cell = range->first;
    for (; cell < range->end; cell++) {
        uint64_t from, bytes;
        if (cache_cells_place(range->shard, cell, cell + 1, &from, &bytes, NULL) ||
            !cache_cell_matches(range->shard, cell, client->block + (from - range->from), &client->reader))
            break;
    }
    return cell;
}

/* Looks whether the range was stored before the machine was started, and is still sound. */
static bool is_stored(const struct range *range, struct cache_client *client)
{
    size_t got;
    for (uint64_t cell = range->first; cell < range->end; cell++)
        if (!(cell_word(&range->shard->state.cells[cell]) & CELL_STORED))
            return false;
    return !os_pread(range->shard->fds[cache_part_of(range->shard, range->first)], client->block, range->bytes,
                     range->from, &got) &&
           got == range->bytes && mismatch(range, client) == range->end;
}

/* Reads the range into memory and compares it. An object that does not match is read once more, whatever its version.
 */
static enum tokmap_status receive(struct range *range, struct cache_client *client, struct cache_running *running,
                                  struct tokmap_error *error)
{
    struct cache_shard *shard = range->shard;
    struct cache *cache = shard->cache;
    const enum cache_part part = cache_part_of(shard, range->first);
    uint64_t cell = range->first;
    bool replaced = false;
    for (int try = 0; try < 2; try++) {
        char tag[HTTP_TAG_MOST];
        const uint64_t began = os_clock_ns();
        os_process_lock();
        memcpy(tag, shard->tags[part], sizeof tag);
        os_process_unlock();
        struct remote_range read = {.first = range->from,
                                    .count = range->bytes,
                                    .total = shard->bytes[part],
                                    .into = client->block,
                                    .tag = tag,
                                    .known = true,
                                    .since_ns = range->since_ns,
                                    .answered = running ? &running->answered : NULL};
        client->wanted = &shard->state.cells[range->first];
        const enum tokmap_status status = remote_range_read(&client->client, shard->names[part], &read, error);
        client->wanted = NULL;
        if (status == TOKMAP_ERROR_MISMATCH && *tag && !try) { /* perhaps by the same bytes: the hashes say it */
            replaced = true;
            os_process_lock();
            *shard->tags[part] = '\0';
            os_process_unlock();
            continue;
        }
        if (status)
            return status;
        const uint64_t now = os_clock_ns();
        range->ns[PHASE_STORAGE] += read.first_ns - began;
        range->ns[PHASE_BYTES] += now - read.first_ns;
        count_add(&cache->counts.requests, 1);
        count_add(&cache->counts.bytes, range->bytes);
        __atomic_store_n(&cache->times[__atomic_fetch_add(&cache->time_count, 1, __ATOMIC_RELAXED) % CACHE_TIMES],
                         now - began, __ATOMIC_RELAXED);
        cell = mismatch(range, client);
        if (cell == range->end) {
            os_process_lock();
            memcpy(shard->tags[part], tag, sizeof tag);
            os_process_unlock();
            return TOKMAP_OK;
        }
    }
    uint64_t from = range->from, bytes = 0;
    (void)cache_cells_place(shard, cell, cell + 1, &from, &bytes, NULL);
    if (replaced)
        return error_set(error, TOKMAP_ERROR_MISMATCH, shard->names[part], from,
                         "bytes %" PRIu64 " to %" PRIu64
                         ": the object was replaced since the dataset was opened, and does not match the index any "
                         "more; open the dataset again, and write new data under a new name",
                         from, from + bytes - 1);
    return error_set(error, TOKMAP_ERROR_CORRUPT, shard->names[part], from,
                     "bytes %" PRIu64 " to %" PRIu64
                     " of the object do not match their hash in the index, twice: the object is damaged or was "
                     "replaced; run `tokmap verify`, and write the dataset again",
                     from, from + bytes - 1);
}

static enum tokmap_status store(const struct range *range, const struct cache_client *client,
                                struct tokmap_error *error)
{
    struct cache_shard *shard = range->shard;
    const int fd = shard->fds[cache_part_of(shard, range->first)];
    int system = os_pwrite(fd, client->block, range->bytes, range->from);
    if (system == ENOSPC || system == EDQUOT) {
        (void)cache_room(shard->cache, 4 * range->bytes, 0);
        system = os_pwrite(fd, client->block, range->bytes, range->from);
        cache_room_end(shard->cache, 4 * range->bytes, false);
    }
    if (system)
        return error_set_system(error, system, shard->path, TOKMAP_NO_OFFSET,
                                "a block cannot be stored in the cache folder %s; give the cache more room, or limit "
                                "it (size=)",
                                shard->cache->folder);
    return TOKMAP_OK;
}

/* Begins to repeat the request for a range that somebody has claimed. */
static void repeat_begin(struct range *range)
{
    range->end = min64(range->end, range->first + CELLS_MOST);
    for (uint64_t i = range->first; i < range->end; i++) {
        const uint64_t word = cell_word(&range->shard->state.cells[i]);
        range->words[i - range->first] = word & CELL_CLAIM && !(word & CELL_GIVEN) ? word : CELL_PRESENT;
    }
    count_add(&range->shard->cache->counts.repeated, 1);
}

/* Fetches a range that is claimed. *skipped: there is no room for it yet. */
static enum tokmap_status fetch_range(struct range *range, bool *skipped, struct tokmap_error *error)
{
    struct cache *cache = range->shard->cache;
    struct cache_client *client;
    enum tokmap_status status = cache_client_take(cache, &client, error);
    bool stored = false;
    *skipped = false;
    if (!status) {
        status = place(range, client, error);
        stored = !status && is_stored(range, client);
        *skipped = !status && !stored && !room_make(range, client);
        if (!status && !stored && !*skipped) {
            struct cache_running *running = running_begin(range);
            status = receive(range, client, running, error);
            const uint64_t began = os_clock_ns();
            if (running)
                __atomic_store_n(&running->stores, 1, __ATOMIC_RELAXED);
            if (!status)
                status = store(range, client, error);
            range->ns[PHASE_DISK] += os_clock_ns() - began;
            running_end(running);
            cache_room_end(cache, range->bytes, !status);
        }
        cache_client_return(cache, client);
    }
    if (status == TOKMAP_ERROR_INTERRUPTED && cell_word(&range->shard->state.cells[range->first]) & CELL_PRESENT) {
        cells_end(range, false); /* another request was faster */
        return TOKMAP_OK;
    }
    cells_end(range, !status && !*skipped);
    return status;
}

/* ---- what others do ---- */

static void waited(struct cache *cache, enum cache_phase phase, uint64_t ns)
{
    struct cache_counts *counts = &cache->counts;
    count_add(phase == PHASE_DISK    ? &counts->waited_disk_ns
              : phase == PHASE_BYTES ? &counts->waited_bytes_ns
                                     : &counts->waited_storage_ns,
              ns);
}

/* Waits for a cell that somebody else fetches, or repeats the request when it takes too long. */
static enum tokmap_status await(struct cache_shard *shard, uint64_t cell, uint64_t since_ns, struct tokmap_error *error)
{
    struct cache *cache = shard->cache;
    const uint64_t began = os_clock_ns();
    bool repeated = false;
    for (uint64_t sleep = SLEEP_NS;; sleep = min64(2 * sleep, SLEEP_NS_MOST)) {
        const uint64_t word = cell_word(&shard->state.cells[cell]);
        if (word & CELL_PRESENT || !(word & CELL_CLAIM))
            return TOKMAP_OK;
        if (!cache_claim_lives(&cache->processes, word))
            return cache_processes_kept(&cache->processes, cache->folder) ? TOKMAP_OK : cache_replaced(cache, error);
        bool slow, skipped;
        const uint64_t before = os_clock_ns();
        struct range range = {.shard = shard, .first = cell, .end = cell + 1, .cell = cell, .since_ns = since_ns};
        const enum cache_phase phase = running_find(shard, cell, &slow, &range);
        if (word & CELL_GIVEN && before - began > GIVEN_NS_MOST)
            return error_set(error, TOKMAP_ERROR_IO, cache->folder, TOKMAP_NO_OFFSET,
                             "another process has been giving a block of the cache folder up for a minute; end it if "
                             "it is stopped, or name another folder (cache=)");
        slow = slow || (!phase && before - began > slow_ns(cache)) || before - since_ns > REMOTE_PATIENCE_NS;
        if (!repeated && !(word & CELL_GIVEN) && slow) {
            repeated = true;
            repeat_begin(&range);
            const enum tokmap_status status = fetch_range(&range, &skipped, error);
            waited(cache, PHASE_STORAGE, os_clock_ns() - before);
            if (status)
                return status;
            continue;
        }
        if (os_wait_readable(-1, sleep) == EINTR)
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, shard->names[cache_part_of(shard, cell)],
                             TOKMAP_NO_OFFSET, "interrupted");
        waited(cache, phase, os_clock_ns() - before);
    }
}

enum tokmap_status cache_fetch(struct cache_shard *shard, uint64_t cell, uint64_t distance, bool wait,
                               struct tokmap_error *error)
{
    struct cache *cache = shard->cache;
    const uint64_t since_ns = os_clock_ns();
    assert(cache_shard_is_open(shard) && cell < shard->state.count && wait == !distance);
    while (!(cell_word(&shard->state.cells[cell]) & CELL_PRESENT)) {
        const uint64_t claim = cache_claim(&cache->processes);
        enum tokmap_status status;
        bool skipped = false;
        if (!claim)
            return error_set(error, TOKMAP_ERROR_LIMIT, cache->folder, TOKMAP_NO_OFFSET,
                             "%d processes use the cache folder, which is the limit; name another one (cache=)",
                             CACHE_PROCESSES);
        if (cell_claim(shard, cell, claim)) {
            struct range range = {.shard = shard,
                                  .first = cell,
                                  .end = cell + 1,
                                  .claim = claim,
                                  .cell = cell,
                                  .distance = distance,
                                  .farthest = distance,
                                  .since_ns = since_ns};
            claim_beside(&range);
            status = fetch_range(&range, &skipped, error);
            for (int phase = PHASE_STORAGE; wait && phase <= PHASE_DISK; phase++)
                waited(cache, (enum cache_phase)phase, range.ns[phase]);
        } else {
            status = wait ? await(shard, cell, since_ns, error) : TOKMAP_OK;
        }
        if (status || !wait)
            return status;
    }
    return TOKMAP_OK;
}

void cache_repeat_slow(struct cache *cache)
{
    const uint64_t limit = slow_ns(cache), now = os_clock_ns();
    struct range range = {.shard = NULL};
    os_process_lock();
    running_own(cache);
    for (uint32_t i = 0; i < CACHE_RUNNING && !range.shard; i++) {
        struct cache_running *running = &cache->running[i];
        if (!running->shard || running->repeated || now - running->since_ns <= limit)
            continue;
        running->repeated = true;
        range = (struct range){.shard = running->shard, .first = running->first, .end = running->end};
        cache_shard_hold(range.shard);
    }
    os_process_unlock();
    if (!range.shard)
        return;
    bool skipped;
    repeat_begin(&range);
    (void)fetch_range(&range, &skipped, NULL);
    cache_shard_free(range.shard);
}
