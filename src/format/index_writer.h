/*
 * index_writer.h - writes an index, NAME.tmx, from front to back: sections as streams, then the table and the header.
 *
 * Only one section can be written at a time. The bytes of a section that become known while another one is being
 * written are kept in a file of their own (append_file.h).
 */
#ifndef TOKMAP_FORMAT_INDEX_WRITER_H
#define TOKMAP_FORMAT_INDEX_WRITER_H

#include <stddef.h>

#include "append_file.h"
#include "layout.h"

/* All functions that return int return 0 or an errno. A writer belongs to one thread at a time. */

struct index_writer {
    int fd;
    uint64_t offset;     /* of the next byte in the file, counting the bytes in the buffer */
    size_t used, hashed; /* bytes of the buffer that are filled, and that are part of `hash` */
    uint8_t *buffer;
    struct hash_state *hash; /* of the open section */
    uint32_t sections;       /* finished sections, plus the open one */
    struct index_entry table[INDEX_SECTIONS_MAX];
    uint64_t id; /* of the finished index, as in struct index */
};

/* Starts after the space of the header. The caller keeps ownership of fd. After a failure there is nothing to free. */
int index_writer_init(struct index_writer *writer, int fd);
void index_writer_free(struct index_writer *writer);
/* Begins a section; `streams` gets the required flag, which its type has. */
int index_writer_begin(struct index_writer *writer, enum section_type type);
int index_writer_add(struct index_writer *writer, const void *bytes, size_t count);
/* Adds all bytes of a file to the open section. */
int index_writer_add_file(struct index_writer *writer, const struct append_file *file);
/* Adds zeros until the length of the open section is a multiple of `power`, a power of two. */
int index_writer_pad(struct index_writer *writer, uint64_t power);
/* Appends what the open section has from byte `from` of the file on to another file: index_writer_add_file() with that
 * restores it. */
int index_writer_copy(const struct index_writer *writer, uint64_t from, struct append_file *into);
/* Ends the open section. Afterwards, the last entry of the table has its hash. */
int index_writer_end(struct index_writer *writer);
/* Writes the table and the header, whose minor version is the lowest one that has all sections. */
int index_writer_finish(struct index_writer *writer);

#endif
