/* SPDX-License-Identifier: MIT */
/* cache_room.h - the structs that the files of this room share. */
#ifndef TOKMAP_CACHE_CACHE_ROOM_H
#define TOKMAP_CACHE_CACHE_ROOM_H

#include "cache.h"
#include "cache_state.h"
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
    const struct cache_unit *wanted; /* while it fetches: when it becomes present in another way, this stops */
    struct cache_client *next;
};

enum cache_phase { PHASE_NONE, PHASE_STORAGE, PHASE_BYTES, PHASE_DISK };

/* A request that runs. */
struct cache_running {
    struct cache_shard *shard; /* NULL: none */
    uint64_t first, end;       /* units */
    uint64_t since_ns;
    bool repeated;
    uint32_t answered, stores; /* what it does: 1 if the answer has begun, and if it is stored; accessed atomically */
};
#define CACHE_RUNNING 256
#define CACHE_DISTRUST 64 /* times that a unit is fetched again: each of many threads may find the same damage */

struct cache_job {
    struct cache_shard *shard; /* that is held; NULL: */
    void (*work)(void *user, uint64_t number);
    void *user;
    uint64_t unit; /* or the number */
    uint64_t when;
};

struct cache_pool;

struct cache {
    char *folder;
    uint64_t block, size; /* size: UINT64_MAX: what the disk has */
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
    uint64_t left_out, room_rows;  /* how often something found no room, and for which distance; accessed atomically */
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
    uint64_t token_units;
    bool compares[2];    /* a part whose readers compare nothing: units are compared at the first use by this process */
    uint64_t *compared;  /* one bit per unit; accessed atomically */
    uint8_t *distrusted; /* how often, of each unit; accessed atomically */
    uint64_t planned;    /* the claim of the process whose plan state.next has; accessed atomically */
    uint32_t users;      /* accessed atomically */
};

/* ---- cache_client.c ---- */

/* Takes an idle connection, or makes one. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status cache_client_take(struct cache *cache, struct cache_client **client, struct tokmap_error *error);
void cache_client_return(struct cache *cache, struct cache_client *client);
void cache_clients_free(struct cache *cache);

/* ---- cache_unit.c ---- */

/* Returns the units of bytes [at, at + count) of a part: [*first, *end). */
void cache_units_of(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);
/* Returns the units of bytes of the tokens, uncompressed, or of the mask. */
void cache_units_in(const struct cache_shard *shard, enum cache_part part, uint64_t at, uint64_t count, uint64_t *first,
                    uint64_t *end);
/* Finds the place of a unit in its file. Statuses: OK, ERROR_CORRUPT, ERROR_IO (the index). */
enum tokmap_status cache_unit_place(const struct cache_shard *shard, uint64_t unit, uint64_t *from, uint64_t *bytes,
                                    struct tokmap_error *error);
/* Returns whether bytes are those of a unit. reader: for sealed tokens; made when it is NULL. */
bool cache_unit_matches(const struct cache_shard *shard, uint64_t unit, const uint8_t *bytes, uint64_t count,
                        struct sealed_reader **reader);
static inline enum cache_part cache_part_of(const struct cache_shard *shard, uint64_t unit)
{
    return unit < shard->token_units ? CACHE_TOKENS : CACHE_MASK;
}

/* ---- cache_fetch.c ---- */

/* Makes a unit present. wait: otherwise it is left to whoever fetches it now. when: how soon it is needed, in rows from
 * now on; 0: somebody waits. Statuses: OK, those of remote_range_read(), ERROR_CORRUPT (the object does not match its
 * index, twice), ERROR_IO (the folder). */
enum tokmap_status cache_fetch(struct cache_shard *shard, uint64_t unit, uint64_t distance, bool wait,
                               struct tokmap_error *error);
/* Repeats requests that take too long. */
void cache_repeat_slow(struct cache *cache);

/* ---- cache_evict.c ---- */

/* Makes and reserves room for `bytes` of units that are needed in `distance` rows, until cache_room_end(). Returns
 * false if nothing may be given up; with distance 0 the room is reserved all the same, and the disk may have it. */
bool cache_room(struct cache *cache, uint64_t bytes, uint64_t distance);
void cache_room_end(struct cache *cache, uint64_t bytes, bool stored); /* stored: they take the room now */

/* ---- cache_pool.c ---- */

void cache_pool_close(struct cache *cache);
/* Returns whether what this thread of a pool does is not wanted any more. */
bool cache_job_stops(void);
/* Asks for units [first, end): see cache_ask(). */
bool cache_units_ask(struct cache_shard *shard, uint64_t first, uint64_t end, uint64_t when, bool *absent);

/* ---- cache_index.c ---- */

/* Brings the index of a shard into the folder, unless it is there: see cache_shard_find(). *path: its path there, which
 * the caller frees. */
enum tokmap_status cache_index_bring(struct cache *cache, const char *name, const uint8_t *content,
                                     uint64_t index_bytes, char **path, struct tokmap_error *error);
/* Compares an index of the folder with its hashes, unless this process has just done so. Statuses: OK, those of
 * index_verify(). */
enum tokmap_status cache_index_verify(struct cache *cache, const char *path, struct index *index,
                                      struct tokmap_error *error);

/* ---- cache_shard.c ---- */

void cache_shard_hold(struct cache_shard *shard);

#endif
