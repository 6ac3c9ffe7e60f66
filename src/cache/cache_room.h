/* SPDX-License-Identifier: MIT */
/* cache_room.h - the structs that the files of this room share. */
#ifndef TOKMAP_CACHE_CACHE_ROOM_H
#define TOKMAP_CACHE_CACHE_ROOM_H

#include "cache_state.h"
#include "cache_types.h"
#include "format/index_reader.h"
#include "format/sealed.h"
#include "platform/os.h"
#include "remote/remote_range.h"

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

#endif
