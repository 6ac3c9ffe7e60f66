/* SPDX-License-Identifier: MIT */
/*
 * parquet_pool.h - decompressors and memory that the pages of Parquet files use one after another.
 *
 * The threads that decode pages are not known here, so a thread borrows a decompressor for one page. Memory of pages is
 * kept for the next ones, because fresh memory would cost a page fault for every 4 KiB; at most POOL_KEPT_BYTES of it.
 *
 * Thread rule: any thread.
 */
#ifndef TOKMAP_PARQUET_PARQUET_POOL_H
#define TOKMAP_PARQUET_PARQUET_POOL_H

#include "parquet_codec.h"

#define POOL_KEPT_BYTES ((uint64_t)64 << 20)

struct parquet_pool;

/* Creates a pool, with one reference. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status parquet_pool_new(struct parquet_pool **pool, struct tokmap_error *error);
void parquet_pool_hold(struct parquet_pool *pool);    /* adds a reference */
void parquet_pool_release(struct parquet_pool *pool); /* the last one frees the pool; accepts NULL */

/* Borrows a decompressor. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status parquet_pool_codec(struct parquet_pool *pool, struct parquet_codec **codec,
                                      struct tokmap_error *error);
void parquet_pool_codec_back(struct parquet_pool *pool, struct parquet_codec *codec);

/* Returns a buffer with count 0: of those that were given back, the smallest with this capacity, or else the largest;
 * one without memory if all are out. So the buffers get the sizes that pages need, compressed and decompressed, and
 * their memory is not freed and touched for the first time again with each page. It allocates nothing. */
struct bytes_buffer parquet_pool_buffer(struct parquet_pool *pool, uint64_t capacity);
void parquet_pool_buffer_back(struct parquet_pool *pool, struct bytes_buffer *buffer); /* and empties it */

#endif
