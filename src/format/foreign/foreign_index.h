/* SPDX-License-Identifier: MIT */
/*
 * foreign_index.h - the document index of another project: Megatron's .idx or datatrove's .ds.index, read in place.
 *
 * Opening compares every number of an index with its neighbors, because an index that contradicts itself means other
 * tokens than those that it would give; foreign_file.h says what that costs. The file can change afterwards, so each
 * function here compares a number with its bounds before it uses it, and its caller (src/dataset) compares the answer
 * with its neighbors. A hostile index results in ERROR_CORRUPT, never in an access outside it.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_INDEX_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "foreign_name.h"

/*
 * The bytes of another project's document index: mapped, or read with pread. With pread, a file that is cut while it is
 * in use, or that its storage loses, is a status and never a signal. Nothing that was read is kept, because an index
 * can have gigabytes; the page cache has it.
 */
struct foreign_bytes {
    const char *path;   /* owned by the caller */
    const uint8_t *map; /* all bytes; NULL: they are read with pread */
    uint64_t count;
    int fd; /* if they are read with pread */
};

/* Maps the file, if it has bytes; foreign_bytes_unmap() ends that. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status foreign_bytes_map(struct foreign_bytes *bytes, struct tokmap_error *error);
void foreign_bytes_unmap(struct foreign_bytes *bytes);

/* Loads the little-endian number at byte `at`, which is within the file. Statuses: OK, ERROR_IO, ERROR_TRUNCATED. */
enum tokmap_status foreign_load64(const struct foreign_bytes *bytes, uint64_t at, uint64_t *value,
                                  struct tokmap_error *error);

/*
 * The index of Megatron's token files, PREFIX.idx; PREFIX.bin has the tokens and nothing else.
 *
 *     0   "MMIDIDX\0\0"
 *     9   u64 version, 1
 *     17  u8 type of the tokens
 *     18  u64 S, number of sequences
 *     26  u64 D, number of documents and one more
 *     34  i32 tokens of each sequence[S]
 *     ..  i64 byte in the .bin at which each sequence begins[S]
 *     ..  i64 first sequence of each document[D]; the first is 0, the last S
 *     ..  i8 modes[S], in multimodal files only
 *
 * Nothing is aligned. Megatron never compares the index with the size of the .bin, and reads what is missing there as
 * garbage. Sequences are written back to back, so a sequence must begin where the one before it ends: an index with
 * gaps, overlaps, or another order means other tokens than the stream of the .bin, and is refused.
 */
#define MEGATRON_HEAD_BYTES 34
#define MEGATRON_MAGIC "MMIDIDX\0" /* and one more zero byte, the literal's own */
#define MEGATRON_VERSION 1

struct megatron_index {
    enum element element;
    uint64_t sequences, documents;
    uint64_t lengths_at, pointers_at, documents_at; /* offsets in the index */
    uint64_t bytes;                                 /* of the index */
};

/* Returns whether the first bytes of a file are the magic of an index. */
bool megatron_is(const uint8_t *head, size_t bytes);

/* Reads the head of an index. head: the first `bytes` bytes, MEGATRON_HEAD_BYTES of them if the file is so long.
 * Statuses: OK, ERROR_FORMAT, ERROR_VERSION, ERROR_UNSUPPORTED (floating-point or multimodal), ERROR_TRUNCATED (the
 * counts do not give the size of the index). */
enum tokmap_status megatron_parse(struct megatron_index *index, const char *path, const uint8_t *head, size_t bytes,
                                  uint64_t index_bytes, struct tokmap_error *error);

/* Compares the ends of the arrays with each other and with the size of the .bin, at a cost that does not grow. bytes:
 * those of the index. Statuses: OK, ERROR_CORRUPT (the arrays contradict each other), ERROR_TRUNCATED (the .bin has
 * another size), and those of foreign_load64(). */
enum tokmap_status megatron_check_ends(const struct megatron_index *index, const struct foreign_bytes *bytes,
                                       const char *bin_path, uint64_t bin_bytes, struct foreign_layout *layout,
                                       struct tokmap_error *error);

/* Compares every number of the index with its neighbors: each sequence begins where the one before it ends, and
 * documents are in order. Reads the index once, 12 bytes a sequence and 8 a document. Statuses: OK, ERROR_CORRUPT (with
 * the byte of the first fault), ERROR_MEMORY, and those of foreign_load64(). */
enum tokmap_status megatron_check(const struct megatron_index *index, const struct foreign_bytes *bytes,
                                  struct tokmap_error *error);

/* An index. It is immutable, so any thread may use it. */
struct foreign_index {
    struct foreign_bytes bytes; /* of the index; its count is 0 if there is no index, and then so is `count` */
    uint64_t count;             /* number of documents */
    uint64_t tokens;            /* the end of the last one */
    bool is_megatron;           /* otherwise the index has a u64 per document, its end */
    struct megatron_index megatron;
};

/* Finds the end of a document (< count), which is at most `tokens`. Statuses: OK, ERROR_CORRUPT, and, if the index is
 * read with pread, ERROR_IO and ERROR_TRUNCATED. */
enum tokmap_status foreign_index_end(const struct foreign_index *index, uint64_t document, uint64_t *end,
                                     struct tokmap_error *error);

/* Compares every number of the index with its bounds and neighbors. Statuses: OK, ERROR_CORRUPT (with the byte of the
 * first fault), ERROR_MEMORY, and those of foreign_load64(). */
enum tokmap_status foreign_index_check(const struct foreign_index *index, struct tokmap_error *error);

#endif
