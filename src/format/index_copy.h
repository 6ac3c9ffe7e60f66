/* SPDX-License-Identifier: MIT */
/* index_copy.h - what writers have in common that write the index of an existing shard again, with other sections. */
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

/* Reports the errno of a file of the shard that cannot be written, and what to do if its folder is not writable. what:
 * "the file". */
enum tokmap_status index_copy_failed(int system, const char *path, const char *what, struct tokmap_error *error);

#endif
