/*
 * index_writer.h - writes a .tmx front to back: sections as streams, then the table and the header.
 *
 * A section whose bytes come to be known only while another is being written waits in a spill: a buffer that overflows
 * into an unnamed file.
 */
#ifndef TOKMAP_FORMAT_INDEX_WRITER_H
#define TOKMAP_FORMAT_INDEX_WRITER_H

#include <stddef.h>

#include "layout.h"

/* All functions return 0 or an errno. */

enum { SPILL_BUFFER = 1 << 16 };

struct spill {
    const char *folder; /* where the unnamed file goes; lives as long */
    int fd;             /* -1 until the buffer has been full */
    size_t used;
    uint64_t stored;    /* bytes in the file */
    uint8_t *buffer;    /* SPILL_BUFFER, made at the first use */
};

void spill_init(struct spill *spill, const char *folder);
void spill_free(struct spill *spill);
int spill_add(struct spill *spill, const void *bytes, size_t count);
static inline uint64_t spill_bytes(const struct spill *spill)
{
    return spill->stored + spill->used;
}

struct index_writer {
    int fd;
    uint64_t offset;          /* of the next byte, those in the buffer included */
    size_t used, hashed;      /* of the buffer */
    uint8_t *buffer;
    struct hash_state *hash;  /* of the open section */
    uint32_t sections;        /* finished ones, plus the open one */
    struct index_entry table[INDEX_SECTIONS_MAX];
};

/* Starts after the room for the header; fd stays the caller's. On failure there is nothing to free. */
int index_writer_init(struct index_writer *writer, int fd);
void index_writer_free(struct index_writer *writer);
int index_writer_begin(struct index_writer *writer, enum section_type type);
int index_writer_add(struct index_writer *writer, const void *bytes, size_t count);
/* Adds all that was spilled, and empties the spill. */
int index_writer_add_spill(struct index_writer *writer, struct spill *spill);
/* Zeros up to a multiple of `power` of the section's length. */
int index_writer_pad(struct index_writer *writer, uint64_t power);
/* The section's hash is in the table's last entry afterwards. */
int index_writer_end(struct index_writer *writer);
/* Table and header. */
int index_writer_finish(struct index_writer *writer);

#endif
