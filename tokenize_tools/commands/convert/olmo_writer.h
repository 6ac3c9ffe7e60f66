/* SPDX-License-Identifier: MIT */
/* olmo_writer.h - writes the .csv.gz of Dolma and OLMo-core (olmo.h): a line "START,END,ID,SOURCE,LINE" per document.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_OLMO_WRITER_H
#define TOKMAP_COMMANDS_CONVERT_OLMO_WRITER_H

#include "gzip_stored.h"

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
