/* SPDX-License-Identifier: MIT */
/*
 * olmo_writer.c - see olmo_writer.h.
 *
 * Lines are those of Python's module csv, but end in \n alone. Some readers cut a line at each comma and take the first
 * two numbers, so a line must not end inside a field: in SOURCE, control characters become '?'.
 */
#include "olmo_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_NUMBERS 96 /* bytes of three numbers in decimal and their commas */

enum tokmap_status olmo_writer_begin(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                     struct tokmap_error *error)
{
    writer->documents = 0;
    return gzip_stored_begin(&writer->gzip, writer->block, group, part, error);
}

/* Writes a field, in quotes if it needs them. */
static enum tokmap_status field_add(struct olmo_writer *writer, const char *text, uint64_t bytes,
                                    struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    char buffer[512];
    size_t used = 0;
    enum tokmap_status status = TOKMAP_OK;
    const bool quoted = bytes && (memchr(text, ',', bytes) || memchr(text, '"', bytes));
    if (quoted)
        buffer[used++] = '"';
    for (uint64_t i = 0; i < bytes && !status; i++) {
        if (text[i] == '"')
            buffer[used++] = '"';
        buffer[used++] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
        if (used > sizeof buffer - 4) {
            status = gzip_stored_add(&writer->gzip, buffer, used, group, part, error);
            used = 0;
        }
    }
    if (quoted)
        buffer[used++] = '"';
    return status ? status : gzip_stored_add(&writer->gzip, buffer, used, group, part, error);
}

enum tokmap_status olmo_writer_add(struct olmo_writer *writer, uint64_t start, uint64_t end,
                                   const struct tokmap_origin *origin, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error)
{
    char text[LINE_NUMBERS];
    int bytes = snprintf(text, sizeof text, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", start, end, writer->documents++);
    enum tokmap_status status = gzip_stored_add(&writer->gzip, text, (size_t)bytes, group, part, error);
    if (!status && origin)
        status = field_add(writer, origin->path, origin->path_bytes, group, part, error);
    if (status)
        return status;
    bytes =
        origin ? snprintf(text, sizeof text, ",%" PRIu64 "\n", origin->record + 1) : snprintf(text, sizeof text, ",\n");
    return gzip_stored_add(&writer->gzip, text, (size_t)bytes, group, part, error);
}

enum tokmap_status olmo_writer_end(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error)
{
    return gzip_stored_end(&writer->gzip, group, part, error);
}
