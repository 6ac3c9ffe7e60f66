/* SPDX-License-Identifier: MIT */
/*
 * cache.h - the shards of datasets in object storage, as files of this machine that are filled when they are read.
 *
 * A shard has three files in the cache folder, under its id: its index, which is complete; its tokens, and its mask,
 * which have the size that they have in the storage, and holes where nothing was fetched yet. Whoever opens them reads
 * them with os_pread() as any other file. cache_shard_attach() puts the cache before the descriptors: it fetches what a
 * read needs, compares it with the hashes of the index, and stores it, before the read is made.
 *
 * All processes of a machine that use a folder share it: one fetches a block, and the others wait for it. Blocks are
 * given up for others when the folder is full: those first that are needed last, as far as the loaders know the order
 * of their rows (cache_plan()).
 *
 * CACHE.md describes the folder. Any thread may use a cache, and a child after fork() too.
 */
#ifndef TOKMAP_CACHE_CACHE_H
#define TOKMAP_CACHE_CACHE_H

#include <stdbool.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

struct cache;
struct cache_shard;

/* Returns whether a name is that of a dataset in object storage, or behind a URL. */
bool cache_names(const char *name);

/* Opens the cache that a name asks for, NAME?cache=FOLDER&block=BYTES&size=BYTES&connections=N, or the variable
 * TOKMAP_CACHE, and sets *rest to the name without that, which the caller frees. Statuses: OK, ERROR_ARGUMENT,
 * ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED (the folder's file system is not local, or has no holes; no libcurl),
 * ERROR_LIMIT (too many processes use the folder), ERROR_MEMORY. */
enum tokmap_status cache_open(struct cache **cache, char **rest, const char *name, struct tokmap_error *error);
/* Ends the use of a cache, whose shards are closed. Accepts NULL. */
void cache_close(struct cache *cache);

/* Appends the text of a manifest of at most `most` bytes, which is kept in the folder and read again only when it has
 * changed; of an object that does not begin like one, only its first bytes. Statuses: OK, ERROR_NOT_FOUND, ERROR_LIMIT,
 * ERROR_IO, ERROR_MISMATCH, ERROR_MEMORY. */
enum tokmap_status cache_text(struct cache *cache, const char *name, uint64_t most, struct bytes_buffer *text,
                              struct tokmap_error *error);

/* Returns whether the folder has a manifest of that name. */
bool cache_text_is_kept(struct cache *cache, const char *name);

/* Finds the shard whose index has a name in the storage, and brings its index into the folder. content: its content id
 * and index_bytes, as a manifest states them, so that an index that is in the folder is not asked for; or NULL. Free
 * the shard, also after a failure. Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_MISMATCH, those of index_open(). */
enum tokmap_status cache_shard_find(struct cache *cache, const char *index_name, const uint8_t *content,
                                    uint64_t index_bytes, struct cache_shard **shard, struct tokmap_error *error);
void cache_shard_free(struct cache_shard *shard); /* accepts NULL. Attached descriptors stay attached */

/* Says that cache_shard_find() has just found an index, so that the next one of that name, which follows at once, does
 * not ask the storage again. */
void cache_shard_confirm(struct cache *cache, const char *index_name);

/* Returns the path of the shard's index in the folder, beside which its other files are. */
const char *cache_shard_index(const struct cache_shard *shard);

enum cache_part { CACHE_TOKENS, CACHE_MASK };
/* Puts the cache before a descriptor of the shard's tokens or mask, until it is closed, and sets *name to the name of
 * the object, which the caller frees. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status cache_shard_attach(struct cache_shard *shard, enum cache_part part, int fd, char **name,
                                      struct tokmap_error *error);

/* ---- attached descriptors ---- */

/* What one hash covers, and what is fetched or given up as a whole: bytes of tokens, uncompressed, or of a mask. */
#define CACHE_UNIT ((uint64_t)1 << 20)

/* Says that whoever reads the descriptor compares the bytes with hashes of their own. Otherwise each unit is compared
 * when this process uses it for the first time, as a whole. Returns false if no cache is before the descriptor. */
bool cache_compared_later(int fd);
/* Says that bytes of the file were read and do not match, so they are fetched again when they are read next. Returns
 * false if that was done before: the object itself is damaged. */
bool cache_distrust(int fd, uint64_t at, uint64_t bytes);

/* Bytes below are those of the tokens, uncompressed, or of the mask.
 *
 * Rows of the calling loader are counted from 0 on. cache_plan() says that bytes are needed at row `when`, the next
 * time; UINT64_MAX: not as far as is known. cache_now() says which row is at hand, and for
 * how many rows after it the loader has asked. */
void cache_plan(int fd, uint64_t at, uint64_t bytes, uint64_t when);
void cache_now(struct cache *cache, uint64_t row, uint64_t ahead);
/* Fetches bytes ahead, on the threads of the cache. *absent is set if some are not there. Returns false if the threads
 * have enough to do. */
bool cache_ask(int fd, uint64_t at, uint64_t bytes, uint64_t when, bool *absent);
/* Returns in how many rows at most something may be needed that there is room for; UINT64_MAX if nothing was given up
 * yet. *changes is another number than before when something was given up, or was asked for and found no room. */
uint64_t cache_reach(const struct cache *cache, uint64_t *changes);
/* Fetches bytes, and returns when they are there, when somebody else fetches them, or when that fails. */
void cache_fetch_now(int fd, uint64_t at, uint64_t bytes);
/* Calls work(user, number) on one of the threads: to open a shard ahead. Returns false likewise. */
bool cache_ask_work(struct cache *cache, void (*work)(void *user, uint64_t number), void *user, uint64_t number);
/* Forgets such work of a user, and waits for what is being done. */
void cache_forget(struct cache *cache, void *user);

/* What this process has done since the cache was opened. */
struct cache_counts {
    uint64_t requests, bytes;   /* to the storage, of blocks and indexes */
    uint64_t repeated;          /* requests of these that took too long, and were sent again on another connection */
    uint64_t evicted;           /* bytes of blocks that were given up */
    uint64_t waited_storage_ns; /* reads waited for the first byte of an answer, */
    uint64_t waited_bytes_ns;   /* for the rest of it, */
    uint64_t waited_disk_ns;    /* for the folder's disk */
};
void cache_count(const struct cache *cache, struct cache_counts *counts);

#endif
