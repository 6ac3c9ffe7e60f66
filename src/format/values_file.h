/* SPDX-License-Identifier: MIT */
/*
 * values_file.h - NAME.WHAT.values, numbers that belong to the tokens of a shard, such as weights or a teacher's
 * probabilities: names of arrays, the header, and opening. FORMAT.md, "Values", specifies the bytes.
 *
 * An array has the same elements and shape for every token: f16[32] is 64 bytes a token. Its file describes itself, so
 * no index changes when values come or go, and readers that do not ask for them never see them.
 */
#ifndef TOKMAP_FORMAT_VALUES_FILE_H
#define TOKMAP_FORMAT_VALUES_FILE_H

#include <stdbool.h>

#include "index_reader.h"
#include "tokmap/tokmap.h"

#define VALUES_MAGIC "\x89TVL\r\n\x1a\n"
#define VALUES_VERSION 1
#define VALUES_AT ((uint64_t)4096) /* the header's bytes, and what the bitmap's place is a multiple of */
#define VALUES_DIMENSIONS_MOST 4
#define VALUES_TOKEN_MOST ((uint64_t)65536) /* bytes of a token's values */
#define VALUES_NAME_MOST 32
#define VALUES_ARRAYS_MOST 8

enum values_element { VALUES_U8 = 1, VALUES_U16, VALUES_U32, VALUES_F16, VALUES_BF16, VALUES_F32 };

uint32_t values_element_bytes(enum values_element element);
const char *values_element_name(enum values_element element); /* "bf16" */

/* What a token has in one array. */
struct values_array {
    char name[VALUES_NAME_MOST + 1]; /* WHAT */
    enum values_element element;
    uint32_t dimensions; /* 0: a number for each token */
    uint64_t shape[VALUES_DIMENSIONS_MOST];
    uint32_t value_bytes; /* of a token, 1 to VALUES_TOKEN_MOST */
};

/* Statuses: OK, ERROR_ARGUMENT (no file may be called so). */
enum tokmap_status values_file_name_check(const char *what, struct tokmap_error *error);

/* Reads arrays as a text, such as "teacher_ids:u32[32] teacher:f16[32] weights:f32", with [A,B] for more dimensions.
 * Statuses: OK, ERROR_ARGUMENT (the error's field is "arrays"). */
enum tokmap_status values_arrays_parse(const char *text, struct values_array arrays[VALUES_ARRAYS_MOST],
                                       uint32_t *count, struct tokmap_error *error);

bool values_type_equals(const struct values_array *one, const struct values_array *other);

/* Writes the element and the shape, such as "f16[32]". */
#define VALUES_TYPE_TEXT 96
const char *values_type_print(const struct values_array *array, char text[VALUES_TYPE_TEXT]);
#define VALUES_TYPE(array) values_type_print((array), (char[VALUES_TYPE_TEXT]){0})

/* Returns whether a name or a path is that of final values. */
bool values_file_is(const char *name);

/* Returns the path of the values of a shard, or of the file that a writer fills, which the caller frees; NULL without
 * memory. */
enum values_state { VALUES_FINAL, VALUES_PARTIAL };
char *values_file_path(const char *index_path, const char *what, enum values_state state);

struct values_header {
    uint8_t magic[8];
    uint32_t version, element, dimensions, value_bytes;
    uint64_t shape[VALUES_DIMENSIONS_MOST]; /* 0 after the last dimension */
    uint64_t tokens;
    uint8_t content[16]; /* content id of the shard */
    uint64_t present;    /* tokens that have values */
    uint64_t bitmap_at, file_bytes;
    uint64_t table_hash; /* XXH3-64 of the table of hashes */
    uint64_t work;       /* a random number, to which notes of writers refer; readers ignore it */
    uint8_t zeros[VALUES_AT - 128];
    uint64_t header_hash; /* XXH3-64 of the bytes before it */
};
_Static_assert(sizeof(struct values_header) == VALUES_AT, "as in FORMAT.md");

/* Makes the header of a shard's values, without `present`, table_hash, and `work`, and with its hash. Statuses: OK,
 * ERROR_LIMIT (the file would be too large). */
enum tokmap_status values_header_make(struct values_header *header, const struct values_array *array,
                                      const struct index *index, struct tokmap_error *error);
void values_header_seal(struct values_header *header); /* computes its hash */

/* Values of a shard, open for reading. */
struct values_file {
    int fd;
    char *path; /* owned */
    struct values_array array;
    uint64_t tokens;    /* of the shard */
    uint64_t present;   /* those that have values */
    uint64_t bitmap_at; /* bit i mod 8 of byte i / 8: token i has values */
    uint64_t hashes_at; /* of each MiB of bytes [VALUES_AT, end of the bitmap) */
    uint64_t bytes;     /* of the file */
    uint64_t table_hash, work;
};

/* Returns the end of the bitmap, up to which bytes are hashed. */
static inline uint64_t values_hashed_end(const struct values_file *values)
{
    return values->bitmap_at + (values->tokens + 7) / 8;
}

/* Opens the values of the shard of an open index, whose path is index_path, and checks the whole header against the
 * index and the size of the file. After a failure there is nothing to close. Statuses: OK, ERROR_ARGUMENT (of the
 * name), ERROR_NOT_FOUND, ERROR_FORMAT, ERROR_VERSION, ERROR_TRUNCATED (the file has another size than the header
 * says), ERROR_MISMATCH (the values belong to other tokens), ERROR_CORRUPT, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status values_file_open(struct values_file *values, const char *index_path, const struct index *index,
                                    const char *what, struct tokmap_error *error);

/* Fills *values, but fd and path, from a header that was read from elsewhere, and checks it in the same way. name: for
 * messages. Statuses: ERROR_VERSION, ERROR_MISMATCH, ERROR_CORRUPT. */
enum tokmap_status values_file_describe(struct values_file *values, const struct values_header *header,
                                        const struct index *index, const char *what, const char *name,
                                        struct tokmap_error *error);

/* Does the same with a file that is being written, for reading and writing, whatever its size is. */
enum tokmap_status values_partial_open(struct values_file *values, const char *index_path, const struct index *index,
                                       const char *what, struct tokmap_error *error);

void values_file_close(struct values_file *values); /* a second call does nothing */

/* What says of a file of values whether its bytes are right: its header, and its table of hashes. Each hash is of a
 * range of the file: a MiB from byte VALUES_AT on. The first range has the header, too, and the last one the table. */
struct values_ranges {
    struct values_header header;
    uint64_t count; /* at least 1 */
    uint64_t end;   /* of what is hashed */
    uint64_t table_at;
    uint64_t hashes[];
};

/* Returns the bytes of the header and the table, without what is between them, or 0 if `head`, of VALUES_AT bytes, is
 * not a sound header. *table_at: where the table is in the file. */
uint64_t values_summary_bytes(const void *head, uint64_t *table_at);

/* Reads bytes of a file of values, which has them. */
struct values_reader {
    enum tokmap_status (*read)(void *user, uint64_t at, size_t bytes, void *into, struct tokmap_error *error);
    void *user;
};

/* Reads the two from a file of `size` bytes, or from one that has nothing else, one after the other. The caller frees
 * *ranges. name: for messages. Statuses: OK, ERROR_FORMAT, ERROR_CORRUPT, ERROR_MEMORY, those of the reader. */
enum tokmap_status values_ranges_read(struct values_ranges **ranges, const char *name, uint64_t size,
                                      const struct values_reader *reader, struct tokmap_error *error);
/* Does the same with a file at a path. Statuses: also ERROR_NOT_FOUND, ERROR_IO. */
enum tokmap_status values_ranges_load(struct values_ranges **ranges, const char *path, struct tokmap_error *error);

#endif
