/* SPDX-License-Identifier: MIT */
/* index_copy.c - see index_copy.h. */
#include "index_copy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "common/hash.h"

uint32_t index_sections(const struct index *index)
{
    struct index_header header;
    assert(!index->pages);
    memcpy(&header, index->bytes, sizeof header);
    return header.sections;
}

void index_section_entry(const struct index *index, uint32_t number, struct index_entry *entry)
{
    struct index_header header;
    memcpy(&header, index->bytes, sizeof header);
    memcpy(entry, index->bytes + header.table_offset + number * sizeof *entry, sizeof *entry);
}

enum tokmap_status index_copy_section(const struct index *from, const struct index_entry *entry,
                                      struct index_writer *into, int *system, struct tokmap_error *error)
{
    assert(!from->pages);
    const uint8_t *bytes = from->bytes + entry->offset;
    *system = 0;
    const enum tokmap_status status = index_present(from, entry->offset, entry->bytes, error);
    if (status)
        return status;
    if (hash64(bytes, entry->bytes) != entry->hash)
        return error_set(error, TOKMAP_ERROR_CORRUPT, from->path, entry->offset,
                         "the hash of a section does not match its bytes; run `tokmap verify` on the shard");
    *system = index_writer_begin(into, (enum section_type)entry->type);
    if (!*system)
        *system = index_writer_add(into, bytes, (size_t)entry->bytes);
    if (!*system)
        *system = index_writer_end(into);
    return TOKMAP_OK;
}

enum tokmap_status index_copy_failed(int system, const char *path, const char *what, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "%s cannot be written%s", what,
                            system == EACCES || system == EPERM
                                ? "; its folder, that of the shard, may not be writable for you, or the file may "
                                  "belong to another user: run the command as the owner of the shard, or copy it with "
                                  "`tokmap convert`, and name the copy"
                                : "");
}
