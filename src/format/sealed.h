/* SPDX-License-Identifier: MIT */
/*
 * sealed.h - reads the tokens of a sealed shard: NAME.bin.zst, in the zstd seekable format, with independent frames of
 * 64 KiB. The section frames of the index says where each frame is in the file, and has the hash of its tokens.
 *
 * No byte leaves these functions before its frame has been compared with that hash. Nothing in the file is trusted: a
 * frame is found by the index, is at most FRAME_STORED_MOST bytes long, and is unpacked to at most FRAME_BYTES.
 *
 * Positions are bytes of the tokens, as they are in NAME.bin, unless a comment says otherwise.
 */
#ifndef TOKMAP_FORMAT_SEALED_H
#define TOKMAP_FORMAT_SEALED_H

#include "index_reader.h"

/* Place of a frame in the file, and its tokens. */
struct sealed_frame {
    uint64_t number;
    uint64_t at;     /* its first byte in the file */
    uint32_t stored; /* its bytes in the file, at most FRAME_STORED_MOST */
    uint32_t bytes;  /* of tokens in it, at most FRAME_BYTES */
    uint64_t hash;   /* of these */
};

/* Checks the entry of a frame (below index_frames()) against the one before it and the bounds of the file, and fills
 * *frame. before: the end of the frame before it; 0 for frame 0. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status sealed_frame_check(const struct index *index, uint64_t number, uint64_t before,
                                      const struct frame_entry *entry, struct sealed_frame *frame,
                                      struct tokmap_error *error);

/* Does the same for an entry that this function reads. Any thread. Statuses: OK, ERROR_CORRUPT, ERROR_IO,
 * ERROR_TRUNCATED. */
enum tokmap_status sealed_frame_find(const struct index *index, uint64_t number, struct sealed_frame *frame,
                                     struct tokmap_error *error);

/* Loads libzstd, without which sealed tokens are neither read nor written. Any thread. Statuses: OK, ERROR_UNSUPPORTED
 * (with `path` and what to install). */
enum tokmap_status sealed_load(const char *path, struct tokmap_error *error);

/* The memory of one thread that unpacks frames: about 300 KiB. */
struct sealed_reader;
struct sealed_reader *sealed_reader_new(void);         /* NULL without memory or libzstd */
void sealed_reader_free(struct sealed_reader *reader); /* accepts NULL */

/* Unpacks a frame, whose frame->stored bytes are at `stored`, to `into`, which has room for frame->bytes, and compares
 * its hash. into: NULL only compares, with a reader that reads nothing else. path: for messages. Statuses: OK,
 * ERROR_CORRUPT (the content of `into` is then undefined). */
enum tokmap_status sealed_unpack(struct sealed_reader *reader, const char *path, const struct sealed_frame *frame,
                                 const uint8_t *stored, uint8_t *into, struct tokmap_error *error);

/* Reads tokens [at, at + count), which the shard has, from its open file. The reader keeps the last frame, for the next
 * call. Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status sealed_read(struct sealed_reader *reader, const struct index *index, const char *path, int fd,
                               uint64_t at, uint64_t count, void *into, struct tokmap_error *error);

/* Compares the seek table at the end of the file, which tokmap does not need but other programs do, with the index.
 * Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status sealed_table_check(const struct index *index, const char *path, int fd, struct tokmap_error *error);
/* Does the same with that part of it which is in bytes [at, at + count) of the file. Statuses: also those of
 * sealed_frame_find(). */
enum tokmap_status sealed_table_compare(const struct index *index, const char *path, uint64_t at, uint64_t count,
                                        const uint8_t *bytes, struct tokmap_error *error);

#endif
