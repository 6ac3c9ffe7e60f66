/* SPDX-License-Identifier: MIT */
/*
 * mask_writer.h - writes NAME.mask, one bit for each token of a shard, and the section of the index that describes it.
 * A mask writer belongs to one thread at a time. All functions that return int return 0 or an errno.
 */
#ifndef TOKMAP_FORMAT_MASK_WRITER_H
#define TOKMAP_FORMAT_MASK_WRITER_H

#include "index_writer.h"

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

#endif
