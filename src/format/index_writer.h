/* SPDX-License-Identifier: MIT */
/*
 * index_writer.h - writes an index, NAME.tmx, from front to back: sections as streams, then the table and the header.
 *
 * Only one section can be written at a time. The bytes of a section that become known while another one is being
 * written are kept in a spill: a buffer that overflows into an unnamed file.
 */
#ifndef TOKMAP_FORMAT_INDEX_WRITER_H
#define TOKMAP_FORMAT_INDEX_WRITER_H

#include <stddef.h>

#include "index_reader.h"
#include "layout.h"

/* All functions that return int return 0 or an errno. A writer or spill belongs to one thread at a time. */

enum { SPILL_BUFFER = 1 << 16 };

struct spill {
    const char *folder; /* folder of the unnamed file; must outlive the spill */
    int fd;             /* -1 until the buffer is full for the first time */
    size_t used;        /* bytes in the buffer */
    uint64_t stored;    /* bytes in the file */
    uint64_t saved;     /* bytes that spill_save() has passed on */
    uint8_t *buffer;    /* SPILL_BUFFER bytes, allocated at the first use */
};

void spill_init(struct spill *spill, const char *folder);
void spill_free(struct spill *spill);
int spill_add(struct spill *spill, const void *bytes, size_t count);
/* Reads bytes back; offset + count is at most spill_bytes(). */
int spill_read(const struct spill *spill, uint64_t offset, void *into, size_t count);
/* Receiver of a writer's state when it is saved, so that a later process continues: increments of at most SPILL_BUFFER
 * bytes, of a kind that the writer's file defines. put() returns 0 or an errno. */
struct state_sink {
    int (*put)(void *user, uint32_t kind, const void *bytes, size_t count);
    void *user;
    int failed; /* errno of put(), or of reading what is saved: nothing is passed on any more */
};
void state_put(struct state_sink *sink, uint32_t kind, const void *bytes, size_t count);
/* Passes on the bytes that were added since the last call; spill_add() with them restores the spill, and
 * spill_restored() says that they are saved already. */
void spill_save(struct spill *spill, uint32_t kind, struct state_sink *sink);
static inline void spill_restored(struct spill *spill)
{
    spill->saved = spill->stored + spill->used;
}
static inline uint64_t spill_bytes(const struct spill *spill)
{
    return spill->stored + spill->used;
}

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
/* Adds the contents of the spill to the open section and empties the spill. */
int index_writer_add_spill(struct index_writer *writer, struct spill *spill);
/* Adds zeros until the length of the open section is a multiple of `power`, a power of two. */
int index_writer_pad(struct index_writer *writer, uint64_t power);
/* Passes on bytes [from, end) of the file, where end is that of the open section so far: index_writer_add() with them
 * restores them. */
void index_writer_save(const struct index_writer *writer, uint64_t from, uint32_t kind, struct state_sink *sink);
/* Ends the open section. Afterwards, the last entry of the table has its hash. */
int index_writer_end(struct index_writer *writer);
/* Writes a whole section: the bytes, then the contents of the spill, or nothing if it is NULL. */
int index_writer_section(struct index_writer *writer, enum section_type type, const void *bytes, size_t count,
                         struct spill *spill);
/* Writes the table and the header, whose minor version is the lowest one that has all sections. */
int index_writer_finish(struct index_writer *writer);

/* Appends ends of documents, each plus `base`, to the open section of documents: their low halves, and, to
 * *carry_spill, the first document of each high half. *carries: the high half so far. documents: those before. */
int index_writer_ends(struct index_writer *writer, struct spill *carry_spill, uint64_t *carries, uint64_t documents,
                      uint64_t base, const uint64_t *ends, uint64_t count);

/* ---- sections of another index ---- */

/* Returns the number of sections of an open index, and fills *entry with the entry of one of them. */
uint32_t index_sections(const struct index *index);
void index_section_entry(const struct index *index, uint32_t number, struct index_entry *entry);

/* Copies a section whose hash is right. *system: 0, or the errno of a failed write, with any status. The index is
 * mapped or a copy. Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_TRUNCATED (all of the index that is read). */
enum tokmap_status index_copy_section(const struct index *from, const struct index_entry *entry,
                                      struct index_writer *into, int *system, struct tokmap_error *error);

/* Reports the errno of a file of the shard that cannot be written, and what to do if its folder is not writable. what:
 * "the file". */
enum tokmap_status index_copy_failed(int system, const char *path, const char *what, struct tokmap_error *error);

#endif
