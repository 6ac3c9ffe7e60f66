/* SPDX-License-Identifier: MIT */
/*
 * cache_folder.h - the shards of datasets in object storage, as files of this machine that are filled when they are
 * read.
 *
 * A shard has three files in the cache folder, under its id: its index, which is complete; its tokens, and its mask,
 * which have the size that they have in the storage, and holes where nothing was fetched yet. Their users read
 * them with os_pread() as any other file. cache_shard_attach() puts the cache before the descriptors: it fetches what a
 * read needs, compares it with the hashes of the index, and stores it, before the read is made.
 *
 * All processes of a machine that use a folder share it: one fetches a block, and the others wait for it. Blocks are
 * given up for others when the folder is full: those first that are needed last, as far as the loaders know the order
 * of their rows (cache_plan()).
 *
 * CACHE.md describes the folder. Any thread may use a cache, and a child after fork() too.
 */
#ifndef TOKMAP_CACHE_CACHE_FOLDER_H
#define TOKMAP_CACHE_CACHE_FOLDER_H

#include "cache_types.h"
#include "tokmap/tokmap.h"

struct cache;

/* Opens the cache that a name asks for, NAME?cache=FOLDER&block=BYTES&size=BYTES&connections=N, or the variable
 * TOKMAP_CACHE, and sets *rest to the name without that, which the caller frees. Statuses: OK, ERROR_ARGUMENT,
 * ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED (the folder's file system is not local, or has no holes; no libcurl),
 * ERROR_LIMIT (too many processes use the folder), ERROR_MEMORY. */
enum tokmap_status cache_open(struct cache **cache, char **rest, const char *name, struct tokmap_error *error);
/* Uses a cache that is open once more, until another cache_close(). */
struct cache *cache_again(struct cache *cache);
/* Ends the use of a cache, whose shards are closed. Accepts NULL. */
void cache_close(struct cache *cache);

/* Returns how many requests are sent at once. */
uint32_t cache_connections(const struct cache *cache);

/* Copies what this process has done. */
void cache_count(const struct cache *cache, struct cache_counts *counts);

#endif
