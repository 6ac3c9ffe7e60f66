/* index_copy.h - copies a section of an index to another index that is being written. */
#ifndef TOKMAP_FORMAT_INDEX_COPY_H
#define TOKMAP_FORMAT_INDEX_COPY_H

#include "index_reader.h"
#include "index_writer.h"

/* Returns the number of sections of an open index, and fills *entry with the entry of one of them. */
uint32_t index_sections(const struct index *index);
void index_section_entry(const struct index *index, uint32_t number, struct index_entry *entry);

/* Copies a section whose hash is right. *system: 0, or the errno of a failed write, with any status. The index is
 * mapped or a copy. Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_TRUNCATED (all of the index that is read). */
enum tokmap_status index_copy_section(const struct index *from, const struct index_entry *entry,
                                      struct index_writer *into, int *system, struct tokmap_error *error);

#endif
