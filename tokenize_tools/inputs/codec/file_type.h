/* SPDX-License-Identifier: MIT */
/* file_type.h - recognizes the type of a file by its first bytes: plain text, compressed text, or a file that is not
 * text. */
#ifndef TOKMAP_CODEC_FILE_TYPE_H
#define TOKMAP_CODEC_FILE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PARQUET: not read as a stream of bytes. REFUSED: a known type that tokmap cannot read as text. PLAIN: everything that
 * is not recognized. */
enum file_type {
    FILE_TYPE_PLAIN,
    FILE_TYPE_GZIP,
    FILE_TYPE_ZSTD,
    FILE_TYPE_BZIP2,
    FILE_TYPE_XZ,
    FILE_TYPE_LZ4,
    FILE_TYPE_PARQUET,
    FILE_TYPE_REFUSED
};

/* Returns true for the types that unpack.h decompresses. */
static inline bool file_type_is_packed(enum file_type type)
{
    return type >= FILE_TYPE_GZIP && type <= FILE_TYPE_LZ4;
}

/* Returns the type of a file that begins with these bytes; 512 bytes, or the whole file if it is shorter, are enough.
 * For FILE_TYPE_REFUSED and FILE_TYPE_PARQUET, *name is the type for messages ("a Parquet file") and *advice says what
 * to do; both are static texts. */
enum file_type file_type_of(const char *head, size_t count, const char **name, const char **advice);

/* Returns the length of the ending of a path that says that the file is compressed (".gz"), or 0. */
size_t file_type_packed_ending(const char *path, uint64_t bytes);

/* Returns true if these bytes are too few to recognize the type: they are the beginning of a signature. */
bool file_type_is_undecided(const char *head, size_t count);

#endif
