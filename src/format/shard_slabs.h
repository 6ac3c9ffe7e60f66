/* SPDX-License-Identifier: MIT */
/*
 * shard_slabs.h - the tokens of a shard on their way from the caller to NAME.bin: collects them in slabs of
 * SLAB_BYTES, hashes each slab, and writes it.
 *
 * With options.own_thread a second thread hashes and writes, while the caller fills the next slab. It is started when
 * the first slab is full. Where it cannot be started, the caller's thread does its work. All that depends on the
 * slabs that were written, such as writer->written and the hashes, may be used after shard_slabs_wait() only. The
 * bytes are the same.
 */
#ifndef TOKMAP_FORMAT_SHARD_SLABS_H
#define TOKMAP_FORMAT_SHARD_SLABS_H

#include "shard_writing.h"

/* Adds bytes at the end of the tokens. Returns 0, or errno of this or of an earlier call. */
int shard_slabs_add(struct shard_writer *writer, const uint8_t *bytes, uint64_t count);

/* Waits until all whole slabs are written. Returns 0, or errno of the first failure. */
int shard_slabs_wait(struct shard_writer *writer);

/* Writes all that was added, also a slab that is not whole. Returns 0, or errno of the first failure. */
int shard_slabs_flush(struct shard_writer *writer);

/* Ends the block that is being filled: adds its hash. Returns 0 or errno. */
int shard_slabs_end_block(struct shard_writer *writer);

/* Ends the thread. What it had not written yet, after a failure or before the writer is given up, is lost. */
void shard_slabs_free(struct shard_writer *writer);

#endif
