/* SPDX-License-Identifier: MIT */
/*
 * shard_mask.h - writes NAME.mask, one bit for each token of a shard, and the section of the index that describes it;
 * and gives an existing shard a mask. For one thread at a time.
 */
#ifndef TOKMAP_FORMAT_SHARD_MASK_H
#define TOKMAP_FORMAT_SHARD_MASK_H

#include <stdbool.h>

#include "index_writer.h"

/* Functions of a mask writer that return int return 0 or an errno. */
struct mask_writer {
    int fd;              /* of the mask; owned by the caller */
    uint64_t tokens;     /* bits so far */
    uint64_t written;    /* bytes in the file */
    uint8_t *block;      /* BLOCK_BYTES: the block that is being filled */
    struct spill hashes; /* of the blocks before it */
};

/* fd: an empty file; -1 only counts and hashes. folder: see spill_init(). After a failure there is nothing to free. */
int mask_writer_init(struct mask_writer *writer, int fd, const char *folder);
void mask_writer_free(struct mask_writer *writer); /* a zeroed writer is allowed */

/* Appends `count` bits, from bit `first` of `bits` on: bit i is bit i mod 8 of byte i / 8. */
int mask_writer_add(struct mask_writer *writer, const uint8_t *bits, uint64_t first, uint64_t count);

/* Writes the bits of the block that is being filled to the file, and keeps them, so that mask_writer_restore() finds
 * them. */
int mask_writer_flush(const struct mask_writer *writer);
/* Continues a file with so many bits, whose earlier blocks' hashes have been added to `hashes` again. Cuts the file
 * after them. EINVAL: the file or the hashes are too short. */
int mask_writer_restore(struct mask_writer *writer, uint64_t tokens);

/* Writes the rest of the mask, and the section streams. To be called once. */
int mask_writer_finish(struct mask_writer *writer, struct index_writer *index);

struct shard_mask_result {
    uint64_t tokens;
    uint64_t counted; /* those that count as targets */
};

/* Writes NAME.mask and a new NAME.tmx that describes it. The tokens, and the other sections of the index, stay.
 *   index_path  NAME.tmx
 *   mask_path   a file with one byte for each token, 0 or 1, or with one bit for each token, as in NAME.mask. Its
 *               length decides which of them it is
 *   replace     a mask that the shard has is replaced; otherwise it is ERROR_EXISTS
 * Until the new index is renamed, readers see the shard without the mask. While an old mask is replaced, there is a
 * moment without an index. A dataset that is open continues to read what it has opened.
 * Statuses: OK, ERROR_EXISTS, ERROR_BUSY (another process writes this shard), ERROR_FORMAT (the length of the mask does
 * not fit the tokens, a byte is neither 0 nor 1, or a spare bit is not 0), ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY, and
 * those of opening an index. */
enum tokmap_status shard_mask_add(const char *index_path, const char *mask_path, bool replace,
                                  struct shard_mask_result *result, struct tokmap_error *error);

#endif
