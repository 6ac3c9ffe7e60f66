/* SPDX-License-Identifier: MIT */
/*
 * cache_evict.c - gives cells up for others.
 *
 * CACHE.md ("What is given up") has the rule. Example: 3 cells fit, A, B, and C are present, and the rows to come are
 * C D A C. D is needed in 2 rows, B never, so B goes. If the next is E, needed in 5 rows, nothing is farther than that:
 * E is not fetched ahead, and comes when its row is at hand.
 *
 * A look takes milliseconds for a TB, so it frees enough for the next blocks, too.
 */
#include "cache_evict.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "text/path.h"

#define FREE_LEAST ((uint64_t)4 << 20)
#define FREE_MOST ((uint64_t)1 << 30)
#define VICTIMS_MOST ((uint64_t)1 << 20)  /* a TiB. A table that was damaged must not ask for more memory */
#define AGAIN_NS ((uint64_t)20 * 1000000) /* after a look that found too little */
#define WAITS 200                         /* of a millisecond, for another process that evicts */
#define AHEAD_MOST 2048                   /* cells */
#define AHEAD_FULL 64
#define AHEAD_LEAST 4
#define UNKNOWN UINT64_C(0xFFFFFFFF)

struct victim {
    uint64_t distance;
    uint32_t file, cell;
};

struct eviction {
    struct cache *cache;
    char **files; /* of states; the victims' names */
    uint64_t count, capacity;
    struct victim *heap; /* the nearest of the farthest is first */
    uint64_t filled, most;
    uint64_t used;     /* bytes of storage of all files, and those that are reserved */
    uint64_t distance; /* cells that are needed before that, or just then, stay */
    bool lives[CACHE_PROCESSES];
    uint32_t now[CACHE_PROCESSES];
};

static bool fits(const struct cache *cache, uint64_t bytes)
{
    uint64_t free_bytes;
    const uint64_t used = __atomic_load_n(&cache->processes.table->used, __ATOMIC_RELAXED);
    const uint64_t size = __atomic_load_n(&cache->size, __ATOMIC_RELAXED);
    return used <= size && bytes <= size - used &&
           (os_disk_free(cache->folder, &free_bytes) || free_bytes >= bytes + cache->reserve);
}

static void sift(struct eviction *eviction, uint64_t at)
{
    struct victim *heap = eviction->heap;
    for (;;) {
        uint64_t least = at;
        for (uint64_t child = 2 * at + 1; child <= 2 * at + 2 && child < eviction->filled; child++)
            if (heap[child].distance < heap[least].distance)
                least = child;
        if (least == at)
            return;
        const struct victim swap = heap[at];
        heap[at] = heap[least];
        heap[least] = swap;
        at = least;
    }
}

/* Keeps a cell among the farthest. */
static void victim_add(struct eviction *eviction, struct victim victim)
{
    struct victim *heap = eviction->heap;
    if (eviction->filled == eviction->most) {
        if (victim.distance <= heap[0].distance)
            return;
        heap[0] = victim;
        sift(eviction, 0);
        return;
    }
    uint64_t at = eviction->filled++;
    for (; at && heap[(at - 1) / 2].distance > victim.distance; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = victim;
}

/* Returns in how many rows a cell is needed. */
static uint64_t distance_of(const struct eviction *eviction, const struct cache_state *state, uint64_t cell)
{
    uint64_t nearest = UNKNOWN;
    for (uint32_t i = 0; i < CACHE_PROCESSES; i++) {
        if (!eviction->lives[i] || !(__atomic_load_n(&state->rows[i / 64], __ATOMIC_ACQUIRE) >> i % 64 & 1))
            continue;
        const uint32_t next = __atomic_load_n(&state->next[i * state->count + cell], __ATOMIC_RELAXED);
        const uint32_t rows = next - 1 - eviction->now[i];
        if (next && rows < UNKNOWN / 2)
            nearest = min64(nearest, rows);
    }
    return nearest;
}

/* Opens the file with the tokens, or the mask, beside a state. */
static int part_open(const char *state_path, enum cache_part part)
{
    static const char *const endings[] = {".bin", ".bin.zst", ".mask"};
    int fd = -1;
    const size_t stem = strlen(state_path) - 6;
    for (int i = part ? 2 : 0; i < (part ? 3 : 2) && fd < 0; i++) {
        char *path = path_join("", 0, state_path, stem, endings[i]);
        if (!path || os_open(path, OS_WRITE_OLD, &fd))
            fd = -1;
        free(path);
    }
    return fd;
}

/* Opens a state and its files. Returns false if they do not belong together, because something replaced one of them:
 * processes that have opened them before would take a hole for bytes. */
static bool victims_open(const char *path, struct cache_state *state, int fds[2])
{
    fds[CACHE_TOKENS] = part_open(path, CACHE_TOKENS);
    fds[CACHE_MASK] = part_open(path, CACHE_MASK);
    return !cache_state_open(state, path, NULL) && state->files == cache_files(fds);
}

static void shard_close(struct cache_state *state, const int fds[2])
{
    cache_state_close(state);
    os_close(fds[CACHE_TOKENS]);
    os_close(fds[CACHE_MASK]);
}

static void state_look(struct eviction *eviction, uint32_t file)
{
    struct cache_state state;
    int fds[2];
    const bool good = victims_open(eviction->files[file], &state, fds);
    for (uint64_t i = 0; good && i < state.count && i <= UINT32_MAX; i++) {
        const uint64_t word = cell_word(&state.cells[i]);
        if (!(word & (CELL_PRESENT | CELL_STORED)) || word & CELL_CLAIM)
            continue;
        const uint64_t distance = distance_of(eviction, &state, i);
        if (distance > eviction->distance)
            victim_add(eviction, (struct victim){distance, file, (uint32_t)i});
    }
    shard_close(&state, fds);
}

static int look_entry(void *user, const char *name)
{
    struct eviction *eviction = user;
    const size_t bytes = strlen(name);
    struct os_stat found;
    char *path = path_join(eviction->cache->folder, strlen(eviction->cache->folder), name, bytes, "");
    if (!path)
        return ENOMEM;
    if (!os_lstat(path, &found) && found.kind == OS_KIND_FILE)
        eviction->used += found.allocated;
    if (bytes > 6 && !strcmp(name + bytes - 6, ".state")) {
        if (!list_room(&eviction->files, eviction->count, &eviction->capacity, sizeof *eviction->files)) {
            free(path);
            return ENOMEM;
        }
        eviction->files[eviction->count++] = path;
        return 0;
    }
    free(path);
    return 0;
}

static int file_compare(const void *a, const void *b)
{
    const struct victim *first = a, *second = b;
    return first->file != second->file ? (first->file < second->file ? -1 : 1)
                                       : (first->cell > second->cell) - (first->cell < second->cell);
}

/* Returns whether the place of a cell is sound: cells follow each other. A state that was damaged must not lead to a
 * hole where another cell is. */
static bool place_is_sound(const struct cache_state *state, uint64_t number)
{
    const struct cache_cell *cell = &state->cells[number];
    const struct cache_cell *before = number && cell[-1].part == cell->part ? &cell[-1] : NULL;
    const struct cache_cell *after = number + 1 < state->count && cell[1].part == cell->part ? &cell[1] : NULL;
    return cell->part <= CACHE_MASK && (!before || cell->from == before->from + before->bytes) &&
           (!after || after->from == cell->from + cell->bytes);
}

/* Gives one cell up: claims it, so that nobody reads or fetches it, returns its storage, and ends the claim. */
static uint64_t cell_evict(struct eviction *eviction, const int fds[2], struct cache_cell *cell)
{
    const uint64_t own = cache_claim(&eviction->cache->processes), claim = own | CELL_GIVEN;
    uint64_t word = cell_word(cell);
    if (!own || !(word & (CELL_PRESENT | CELL_STORED)) || word & CELL_CLAIM ||
        !cell_change(cell, &word, (word & ~(CELL_PRESENT | CELL_STORED)) | claim))
        return 0;
    const bool given = !os_punch(fds[cell->part], cell->from, cell->bytes);
    for (word = cell_word(cell); (word & CELL_CLAIM) == claim && !cell_change(cell, &word, word & ~CELL_CLAIM);)
        ;
    return given ? cell->bytes : 0;
}

static uint64_t victims_evict(struct eviction *eviction)
{
    uint64_t freed = 0;
    qsort(eviction->heap, eviction->filled, sizeof *eviction->heap, file_compare);
    for (uint64_t i = 0; i < eviction->filled;) {
        const uint32_t file = eviction->heap[i].file;
        struct cache_state state;
        int fds[2];
        const bool good = victims_open(eviction->files[file], &state, fds);
        for (; i < eviction->filled && eviction->heap[i].file == file; i++)
            if (good && eviction->heap[i].cell < state.count && place_is_sound(&state, eviction->heap[i].cell))
                freed += cell_evict(eviction, fds, &state.cells[eviction->heap[i].cell]);
        shard_close(&state, fds);
    }
    return freed;
}

/* Looks at all cells, and gives the farthest up. Returns the bytes. */
static uint64_t evict(struct cache *cache, uint64_t bytes, uint64_t distance)
{
    struct eviction eviction = {.cache = cache, .distance = distance + distance / 8};
    struct cache_table *table = cache->processes.table;
    const uint64_t before = __atomic_load_n(&table->used, __ATOMIC_ACQUIRE), full = before + bytes;
    const uint64_t size = __atomic_load_n(&cache->size, __ATOMIC_RELAXED);
    const uint64_t lacks = full > size ? full - size : bytes;
    const uint64_t wanted = max64(lacks, min64(max64(size / 128, FREE_LEAST), FREE_MOST));
    uint64_t freed = 0;
    eviction.most = min64(div_ceil(wanted, CACHE_CELL), VICTIMS_MOST);
    eviction.heap = malloc(eviction.most * sizeof *eviction.heap);
    for (uint32_t i = 0; i < CACHE_PROCESSES; i++) {
        eviction.lives[i] = cache_process_lives(&cache->processes, i);
        eviction.now[i] = __atomic_load_n(&table->of[i].now, __ATOMIC_RELAXED);
        eviction.used += eviction.lives[i] ? __atomic_load_n(&table->of[i].reserved, __ATOMIC_ACQUIRE) : 0;
    }
    if (eviction.heap && cache_processes_kept(&cache->processes, cache->folder) &&
        !os_folder_list(cache->folder, look_entry, &eviction)) {
        for (uint32_t i = 0; i < eviction.count; i++)
            state_look(&eviction, i);
        const uint64_t reach = eviction.filled ? eviction.heap[0].distance : UNKNOWN;
        /* Nothing is given up for what finds no room then. */
        if (!distance || eviction.filled * CACHE_CELL >= lacks)
            freed = victims_evict(&eviction);
        if (freed) {
            __atomic_store_n(&table->reach, reach, __ATOMIC_RELAXED);
            __atomic_store_n(&cache->room_rows, UINT64_MAX, __ATOMIC_RELAXED);
            (void)__atomic_add_fetch(&table->evictions, 1, __ATOMIC_RELEASE);
        }
        /* Others have stored and reserved in the meantime. What they added since `before` stays. */
        (void)__atomic_add_fetch(&table->used, eviction.used - before - freed, __ATOMIC_RELAXED);
    }
    for (uint32_t i = 0; i < eviction.count; i++)
        free(eviction.files[i]);
    free(eviction.files);
    free(eviction.heap);
    return freed;
}

static void reserve(struct cache *cache, uint64_t bytes)
{
    struct cache_table *table = cache->processes.table;
    (void)__atomic_add_fetch(&table->of[cache->processes.number].reserved, bytes, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&table->used, bytes, __ATOMIC_RELAXED);
}

void cache_room_end(struct cache *cache, uint64_t bytes, bool stored)
{
    struct cache_table *table = cache->processes.table;
    assert(cache->processes.number < CACHE_PROCESSES);
    (void)__atomic_sub_fetch(&table->of[cache->processes.number].reserved, bytes, __ATOMIC_RELAXED);
    if (!stored)
        (void)__atomic_sub_fetch(&table->used, bytes, __ATOMIC_RELAXED);
}

static bool room_make(struct cache *cache, uint64_t bytes, uint64_t distance)
{
    for (int i = 0; i < WAITS && !fits(cache, bytes); i++) {
        const uint64_t failed = __atomic_load_n(&cache->evict_ns, __ATOMIC_RELAXED);
        if (distance >= __atomic_load_n(&cache->evict_rows, __ATOMIC_RELAXED) && failed &&
            os_clock_ns() - failed < AGAIN_NS)
            return false;
        if (!cache_evict_begin(&cache->processes)) {
            os_sleep_ns(1000000);
            continue;
        }
        const uint64_t freed = fits(cache, bytes) ? bytes : evict(cache, bytes, distance);
        const bool fit = fits(cache, bytes);
        if (fit)
            reserve(cache, bytes);
        cache_evict_end(&cache->processes);
        (void)__atomic_add_fetch(&cache->counts.evicted, freed, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->evict_rows, max64(distance, 1), __ATOMIC_RELAXED);
        __atomic_store_n(&cache->evict_ns, freed < bytes ? os_clock_ns() : 0, __ATOMIC_RELAXED);
        if (fit || freed < bytes)
            return fit;
    }
    if (!fits(cache, bytes))
        return false;
    reserve(cache, bytes);
    return true;
}

bool cache_room(struct cache *cache, uint64_t bytes, uint64_t distance)
{
    assert(cache->processes.number < CACHE_PROCESSES);
    if (room_make(cache, bytes, distance))
        return true;
    if (distance) {
        if (distance < __atomic_load_n(&cache->room_rows, __ATOMIC_RELAXED))
            __atomic_store_n(&cache->room_rows, distance, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&cache->left_out, 1, __ATOMIC_RELEASE);
    } else {
        reserve(cache, bytes);
    }
    return false;
}

uint64_t cache_reach(const struct cache *cache, uint64_t *changes)
{
    const struct cache_table *table = cache->processes.table;
    const uint64_t evictions = __atomic_load_n(&table->evictions, __ATOMIC_ACQUIRE);
    *changes = evictions + __atomic_load_n(&cache->left_out, __ATOMIC_ACQUIRE);
    return min64(evictions == cache->evictions ? UINT64_MAX : __atomic_load_n(&table->reach, __ATOMIC_RELAXED),
                 __atomic_load_n(&cache->room_rows, __ATOMIC_RELAXED));
}

uint64_t cache_ahead(const struct cache *cache)
{
    uint64_t changes;
    const uint64_t used = __atomic_load_n(&cache->processes.table->used, __ATOMIC_RELAXED);
    return cache_reach(cache, &changes) == UINT64_MAX ? AHEAD_MOST
                                                      : max64(min64(used / CACHE_CELL / 8, AHEAD_FULL), AHEAD_LEAST);
}
