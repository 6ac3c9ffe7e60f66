/* SPDX-License-Identifier: MIT */
/* olmo_writer.h - writes the .csv.gz of Dolma and OLMo-core (foreign_formats.h): a line "START,END,ID,SOURCE,LINE" per
 * document. */
#ifndef TOKMAP_COMMANDS_CONVERT_OLMO_WRITER_H
#define TOKMAP_COMMANDS_CONVERT_OLMO_WRITER_H

#include "output_group.h"

/* A gzip file whose data is stored as it is, not compressed: for readers that expect gzip, without a library that
 * compresses, so that the bytes are the same whatever a build was made with. */
enum { GZIP_BLOCK = 65535 }; /* most bytes of a stored block */

struct gzip_stored {
    uint32_t crc;
    uint64_t bytes; /* of the data so far */
    size_t used;
    uint8_t *block; /* GZIP_BLOCK bytes, of the caller */
};

/* Begins a file, which is a part of the group, to which nothing was added. block: memory of GZIP_BLOCK bytes, until the
 * end. Statuses of all three: OK, ERROR_IO. */
enum tokmap_status gzip_stored_begin(struct gzip_stored *gzip, uint8_t *block, struct output_group *group,
                                     uint32_t part, struct tokmap_error *error);
enum tokmap_status gzip_stored_add(struct gzip_stored *gzip, const void *bytes, size_t count,
                                   struct output_group *group, uint32_t part, struct tokmap_error *error);
enum tokmap_status gzip_stored_end(struct gzip_stored *gzip, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);

struct olmo_writer {
    struct gzip_stored gzip;
    uint64_t documents;
    uint8_t block[GZIP_BLOCK];
};

/* Begins the file, which is a part of the group. Statuses of all three: OK, ERROR_IO. */
enum tokmap_status olmo_writer_begin(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                     struct tokmap_error *error);
/* Adds a document of tokens [start, end). Its ID is its number, from 0. origin: gives SOURCE and LINE, which is its
 * record + 1; NULL: they are empty. */
enum tokmap_status olmo_writer_add(struct olmo_writer *writer, uint64_t start, uint64_t end,
                                   const struct tokmap_origin *origin, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);
enum tokmap_status olmo_writer_end(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);

#endif
