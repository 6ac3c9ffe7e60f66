/* SPDX-License-Identifier: MIT */
/*
 * cache_state.h - what the processes that use a cache folder share: who they are, and of each shard, which cells are
 * in its files, and when each process needs them next. At the end are the structs that the files of this room share.
 *
 * CACHE.md says what a cell is, what the bits of its word mean, and which claims count.
 */
#ifndef TOKMAP_CACHE_CACHE_STATE_H
#define TOKMAP_CACHE_CACHE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cache_types.h"
#include "format/index_reader.h"
#include "format/sealed.h"
#include "platform/os.h"
#include "remote/remote_range.h"
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

#define CACHE_CLIENTS 64    /* that are kept */
#define CACHE_VERIFIED 4096 /* indexes */
#define CACHE_TIMES 64      /* of requests that are remembered */

/* One connection to the storage, and the memory of a block. */
struct cache_client {
    struct remote_client client;
    uint32_t process; /* a child after fork() leaves those of its parent alone */
    uint8_t *block;   /* memory of `block_bytes` */
    uint64_t block_bytes;
    struct sealed_reader *reader;
    const struct cache_cell *wanted; /* while it fetches: when it becomes present in another way, this stops */
    struct cache_client *next;
};

enum cache_phase { PHASE_NONE, PHASE_STORAGE, PHASE_BYTES, PHASE_DISK };

/* A request that runs. */
struct cache_running {
    struct cache_shard *shard; /* NULL: none */
    uint64_t first, end;       /* cells */
    uint64_t since_ns;
    bool repeated;
    uint32_t answered, stores; /* 1 if the answer has begun, and if it is being stored; accessed atomically */
};
#define CACHE_RUNNING 256
#define CACHE_DISTRUST 64 /* times that a cell is fetched again: each of many threads may find the same damage */

/* Fetches a cell of a shard, which is held, for row `when`; or, with shard NULL, calls work(user, cell). */
struct cache_job {
    struct cache_shard *shard;
    void (*work)(void *user, uint64_t number);
    void *user;
    uint64_t cell, when;
};

struct cache_pool;

struct cache {
    char *folder;
    uint64_t block, size; /* size: UINT64_MAX: what the disk has; both, and `connections`, are accessed atomically */
    uint64_t reserve;     /* bytes of the disk that stay free */
    uint32_t connections;
    uint32_t users;
    struct cache_processes processes;
    struct cache_client *clients; /* that are idle; below os_process_lock() */
    uint32_t client_count;
    struct cache_pool *pool;                     /* NULL until the first cache_ask(); below os_process_lock() */
    struct cache_running running[CACHE_RUNNING]; /* of `running_process`; below os_process_lock() */
    uint32_t running_process;
    uint64_t times[CACHE_TIMES], time_count; /* of requests, in ns; accessed atomically */
    uint64_t verified[CACHE_VERIFIED];       /* hashes of the names of indexes; accessed atomically */
    char *confirmed;               /* the name of an index: see cache_shard_confirm(); below os_process_lock() */
    struct cache_counts counts;    /* accessed atomically */
    uint64_t evict_ns, evict_rows; /* when the last eviction found too little, or 0, and for which distance */
    uint64_t ahead;                /* of cache_now(); accessed atomically */
    uint64_t evictions;            /* of all processes, when the cache was opened */
    uint64_t left_out, room_rows;  /* requests that found no room, and their least distance; accessed atomically */
    struct cache *next;
};

struct cache_attached {
    struct os_fetched fetched; /* the first member */
    struct cache_shard *shard;
    enum cache_part part;
    bool compared_later; /* accessed atomically */
};

struct cache_shard {
    struct cache *cache;
    char *index_name;            /* in the storage */
    char *path;                  /* of the index in the folder; its state and files are beside it */
    char *names[2];              /* of the objects, by enum cache_part; a part that the shard lacks has NULL */
    char tags[2][HTTP_TAG_MOST]; /* the versions of the objects; below os_process_lock() */
    uint64_t bytes[2];           /* their sizes */
    int fds[2];                  /* of the files, for writing */
    struct index index;
    struct cache_state state;
    uint64_t token_cells;
    uint64_t *compared;  /* one bit per cell; accessed atomically */
    uint8_t *distrusted; /* times of each cell; accessed atomically */
    uint64_t planned;    /* the claim of the process whose plan state.next has; accessed atomically */
    uint32_t users;      /* accessed atomically */
};

/* Returns whether a shard is one that cache_shard_find() has found, and somebody holds it: it has its state, with a bit
 * and a count for each cell. */
static inline bool cache_shard_is_open(const struct cache_shard *shard)
{
    return shard->state.cells && shard->token_cells <= shard->state.count && shard->compared && shard->distrusted &&
           __atomic_load_n(&shard->users, __ATOMIC_RELAXED);
}

static inline enum cache_part cache_part_of(const struct cache_shard *shard, uint64_t cell)
{
    return cell < shard->token_cells ? CACHE_TOKENS : CACHE_MASK;
}

/* Returns the cells of bytes [at, at + count) of a part: [*first, *end). */
void cache_cells_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);

/* Finds the place of cells [first, end), at least one, in their file. Statuses: OK, ERROR_CORRUPT, ERROR_IO (the
 * index). */
enum tokmap_status cache_cells_place(const struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t *from,
                                     uint64_t *bytes, struct tokmap_error *error);

/* Returns the cells of bytes of the tokens, uncompressed, or of the mask. */
void cache_cells_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);

/* Returns whether bytes, as many as a cell has, are its own. reader: for sealed tokens; made when it is NULL. */
bool cache_cell_matches(const struct cache_shard *shard, uint64_t cell, const uint8_t *bytes,
                        struct sealed_reader **reader);

/* ---- the connections, which threads take in turn ---- */

/* Takes an idle connection, or makes one. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status cache_client_take(struct cache *cache, struct cache_client **client, struct tokmap_error *error);
void cache_client_return(struct cache *cache, struct cache_client *client);
void cache_clients_free(struct cache *cache);

/* Says which word is not 0 when what this thread does is not wanted any more; or NULL. Its requests then end. */
void cache_client_stops(const uint32_t *word);

#endif
