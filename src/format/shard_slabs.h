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

#include "frames_writer.h"
#include "index_writer.h"
#include "path_table.h"
#include "shard_mask.h"
#include "write_behind.h"
#include "writer_options.h"

/* ---- the writer of a shard, which shard_writer.c, shard_save.c, and shard_slabs.c share ---- */

#define SLAB_BYTES ((size_t)1 << 18)
#define FILE_BYTES_MAX ((uint64_t)1 << 62)

enum path {
    TOKENS,
    INDEX,
    MASK,
    SEALED,
    LIST,
    TOKENS_PARTIAL,
    INDEX_PARTIAL,
    MASK_PARTIAL,
    SEALED_PARTIAL,
    LIST_PARTIAL,
    PATHS
};
struct origin_state {
    bool known;    /* the caller has stated an origin */
    bool changed;  /* the next document begins a run */
    bool new_file; /* that run is of a file that is not in the index yet */
    char *path;
    uint64_t path_bytes, path_capacity;
    uint64_t record;         /* of the next document */
    uint64_t file;           /* of this path in the index, if that has it */
    struct path_table table; /* with options.mixed: all files of the index */
    uint64_t runs, files, paths_bytes;
    struct spill run_spill, file_spill, path_spill;
};

struct shard_writer {
    struct shard_writer_options options;
    char *paths[PATHS];
    char *folder;
    int tokens_fd, index_fd, mask_fd;
    int sealed_fd;                                    /* while the commit seals, or -1 */
    bool locked, tokens_made, mask_made, sealed_made; /* true if the partial file is ours to remove */
    bool failed;
    bool finished;      /* only the names are left */
    bool document_open; /* tokens have been added since the last end */
    uint64_t tokens, documents, largest;

    uint8_t *buffer; /* SLAB_BYTES */
    size_t buffered;
    struct shard_slabs *slabs; /* the second thread, or NULL: see shard_slabs.h, which says who may use what follows
                                */
    uint64_t written;          /* bytes written to the .bin, without those in the buffer */
    struct write_behind behind;
    struct hash_state *block;
    size_t block_filled;
    uint64_t zero_block_hash; /* 0 until it is computed */
    bool holes;               /* whole blocks are holes: a pages section would be most of the shard, so it has none */

    struct index_writer index; /* the documents section, its first one, is open while tokens are added */
    uint64_t carries;
    struct spill carry_spill, block_spill, page_spill;
    struct origin_state origin;
    struct mask_writer mask;       /* zeroed without options.mask */
    struct columns_writer columns; /* zeroed without options.columns */

    struct frames frames; /* of the sealed tokens */

    bool saved;                      /* the state was saved: a failed commit leaves the files */
    uint64_t saved_documents;        /* whose ends shard_writer_save() has passed on */
    uint64_t saved_mask, saved_hash; /* while it is restored: bits of the mask, and the hash of the open block */
};

/* Returns whether the file and the buffer have all tokens, and the buffer is no whole slab: so it is between two calls
 * of a writer that has not failed, after shard_slabs_wait(). */
static inline bool shard_writing_is_sound(const struct shard_writer *writer)
{
    return writer->buffered < SLAB_BYTES && writer->block_filled < BLOCK_BYTES &&
           writer->written + writer->buffered == writer->tokens * writer->options.width;
}

/* ---- slabs ---- */

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
