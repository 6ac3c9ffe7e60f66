/* SPDX-License-Identifier: MIT */
/*
 * cache_state.h - what the processes that use a cache folder share: who they are, and of each shard, which cells are
 * in its files, and when each process needs them next.
 *
 * CACHE.md says what a cell is, what the bits of its word mean, and which claims count.
 */
#ifndef TOKMAP_CACHE_CACHE_STATE_H
#define TOKMAP_CACHE_CACHE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cache_types.h"
#include "tokmap/tokmap.h"

#define CACHE_PROCESSES 256 /* that use a folder at once */
#define CACHE_PROCESSES_FILE "processes"

#define CELL_PRESENT ((uint64_t)1)
#define CELL_STORED ((uint64_t)2)
#define CELL_CLAIM (((uint64_t)0xFFFFFFFF) << 2)
#define CELL_GIVEN ((uint64_t)1 << 17)
#define CELL_TIMES ((uint64_t)1 << 34)

struct cache_process {
    uint32_t times;    /* processes that have had this number */
    uint32_t now;      /* the row at hand; accessed atomically */
    uint64_t reserved; /* bytes of `used` that are not stored yet; accessed atomically */
};

/* The file `processes`. */
struct cache_table {
    uint64_t magic;
    /* Accessed atomically. */
    uint64_t used; /* bytes of storage of all files, and those that are reserved */
    uint64_t evictions,
        reach; /* times that cells were given up; the last time, those needed in so many rows or later */
    struct cache_process of[CACHE_PROCESSES];
};

struct cache_processes {
    int fd;
    struct cache_table *table;
    uint32_t process; /* the operating system's number of the process that has `number` */
    uint32_t number;
    uint32_t evicting; /* the process a thread of which evicts; accessed atomically */
};

/* Opens the file at `path`, or makes it. Statuses: OK, ERROR_IO, ERROR_LIMIT (there are too many processes). */
enum tokmap_status cache_processes_open(struct cache_processes *processes, const char *path,
                                        struct tokmap_error *error);
void cache_processes_close(struct cache_processes *processes);
/* Returns whether the file of a folder is still the one that was opened: the folder may be removed while it is used,
 * and made again by other processes, whose numbers this one would not know. */
bool cache_processes_kept(const struct cache_processes *processes, const char *folder);
/* Returns the claim of this process. A child after fork() gets a number of its own. 0: there are too many. */
uint64_t cache_claim(struct cache_processes *processes);
bool cache_claim_lives(const struct cache_processes *processes, uint64_t word);
bool cache_process_lives(const struct cache_processes *processes, uint32_t number);
/* Begin and end what only one thread of all processes does at a time: it gives cells up, or makes the files of a shard.
 * The first returns false if another one does it. */
bool cache_evict_begin(struct cache_processes *processes);
void cache_evict_end(struct cache_processes *processes);

/* A cell in the file ID.state. What the file says of its place is for giving it up; a fetch finds the place by the
 * index. */
struct cache_cell {
    uint64_t word; /* accessed atomically */
    uint64_t from;
    uint32_t bytes, part; /* enum cache_part */
};

struct cache_state {
    int fd;
    uint64_t count, bytes; /* cells; of the file */
    uint64_t files;        /* cache_files() of those that it is about; of a copy of a state, anything */
    struct cache_state_head *head;
    struct cache_cell *cells;
    uint32_t *next; /* [process][cell]: the row that needs it next, + 1; 0: unknown; accessed atomically */
    uint64_t *rows; /* a bit for each process whose row of `next` was filled: others may be holes, for which a full
                       tmpfs has no memory, not even to read them; accessed atomically */
};

/* Returns a number for open files, of which one may be -1: it changes if one of them is replaced. */
uint64_t cache_files(const int fds[2]);

/* Opens the state of a shard. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT (it is not a state, or is damaged).
 */
enum tokmap_status cache_state_open(struct cache_state *state, const char *path, struct tokmap_error *error);
/* Returns whether the path still leads to the state that was opened, and closes its descriptor. Call it once. */
bool cache_state_kept(struct cache_state *state, const char *path);
/* Makes one of cells that are filled in, about files of that number; the caller is between cache_evict_begin() and
 * cache_evict_end(). Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status cache_state_make(const char *path, const struct cache_cell *cells, uint64_t count, uint64_t files,
                                    struct tokmap_error *error);
void cache_state_close(struct cache_state *state);

static inline uint64_t cell_word(const struct cache_cell *cell)
{
    return __atomic_load_n(&cell->word, __ATOMIC_ACQUIRE);
}

static inline bool cell_change(struct cache_cell *cell, uint64_t *from, uint64_t to)
{
    return __atomic_compare_exchange_n(&cell->word, from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#endif
