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

#include "common/bytes.h"

/* ---- gzip ----
 *
 * RFC 1952 describes the file, and RFC 1951, section 3.2.4, the blocks: a byte that is 1 for the last block, the number
 * of bytes as u16, its complement, and the bytes. */

#define POLYNOMIAL UINT32_C(0xEDB88320)

/* Continues the CRC-32 of gzip, half a byte at a time. */
static uint32_t crc_add(uint32_t crc, const uint8_t *bytes, size_t count)
{
    uint32_t table[16];
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = (table[i] >> 1) ^ (table[i] & 1 ? POLYNOMIAL : 0);
    }
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc = table[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
        crc = table[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

static enum tokmap_status block_write(struct gzip_stored *gzip, bool last, struct output_group *group, uint32_t part,
                                      struct tokmap_error *error)
{
    uint8_t head[5] = {last};
    store16(head + 1, (uint16_t)gzip->used);
    store16(head + 3, (uint16_t)~gzip->used);
    enum tokmap_status status = output_group_add(group, part, head, sizeof head, error);
    if (!status)
        status = output_group_add(group, part, gzip->block, gzip->used, error);
    gzip->crc = crc_add(gzip->crc, gzip->block, gzip->used);
    gzip->bytes += gzip->used;
    gzip->used = 0;
    return status;
}

enum tokmap_status gzip_stored_begin(struct gzip_stored *gzip, uint8_t *block, struct output_group *group,
                                     uint32_t part, struct tokmap_error *error)
{
    static const uint8_t head[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF}; /* no time, unknown system */
    *gzip = (struct gzip_stored){.block = block};
    return output_group_add(group, part, head, sizeof head, error);
}

enum tokmap_status gzip_stored_add(struct gzip_stored *gzip, const void *bytes, size_t count,
                                   struct output_group *group, uint32_t part, struct tokmap_error *error)
{
    const uint8_t *from = bytes;
    enum tokmap_status status = TOKMAP_OK;
    while (count && !status) {
        const size_t some = (size_t)min64(count, GZIP_BLOCK - gzip->used);
        memcpy(gzip->block + gzip->used, from, some);
        gzip->used += some;
        from += some;
        count -= some;
        if (gzip->used == GZIP_BLOCK)
            status = block_write(gzip, false, group, part, error);
    }
    return status;
}

enum tokmap_status gzip_stored_end(struct gzip_stored *gzip, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error)
{
    uint8_t tail[8];
    enum tokmap_status status = block_write(gzip, true, group, part, error);
    store32(tail, gzip->crc);
    store32(tail + 4, (uint32_t)gzip->bytes);
    return status ? status : output_group_add(group, part, tail, sizeof tail, error);
}

/* ---- lines ---- */

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
