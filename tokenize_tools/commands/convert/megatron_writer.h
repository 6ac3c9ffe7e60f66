/* SPDX-License-Identifier: MIT */
/*
 * megatron_writer.h - writes the index of Megatron's token files, PREFIX.idx (foreign_index.h), which begins with
 * arrays that are complete only in the end. So the lengths of sequences are kept in an unnamed file, 4 bytes each, from
 * which all arrays are computed.
 *
 * A document is one sequence, unless it has more tokens than the 2^31 - 1 that a length can hold: then it has several.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_MEGATRON_WRITER_H
#define TOKMAP_COMMANDS_CONVERT_MEGATRON_WRITER_H

#include "format/element.h"
#include "format/index_writer.h"
#include "output_group.h"

struct megatron_writer {
    struct spill lengths; /* u32 of each sequence; bit 31: the sequence continues the document of the one before it */
    uint64_t sequences, documents;
};

/* folder: see spill_init(). */
void megatron_writer_init(struct megatron_writer *writer, const char *folder);
void megatron_writer_free(struct megatron_writer *writer); /* a zeroed writer is allowed */

/* Adds a document of so many tokens. Returns 0 or an errno. */
int megatron_writer_add(struct megatron_writer *writer, uint64_t tokens);

/* Writes the index as a part of the group. To be called once. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status megatron_writer_finish(struct megatron_writer *writer, enum element element,
                                          struct output_group *group, uint32_t part, struct tokmap_error *error);

#endif
