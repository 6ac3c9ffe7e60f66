/* SPDX-License-Identifier: MIT */
/* origin_shift.c - see origin_shift.h. */
#include "origin_shift.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/index_writer.h"
#include "format/name_files.h"
#include "platform/os.h"
#include "text/path.h"

static enum tokmap_status damaged(const struct index *index, uint64_t at, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, index->path, at,
                     "the section origin of this index is damaged; pack the inputs again");
}

/* Writes the section origin with other record numbers. */
static enum tokmap_status origin_write(const struct index *from, const struct index_entry *entry, uint64_t records,
                                       struct index_writer *into, int *system, struct tokmap_error *error)
{
    struct origin_head head;
    const uint8_t *bytes = from->bytes + entry->offset;
    const enum tokmap_status status = index_present(from, entry->offset, entry->bytes, error);
    if (status)
        return status;
    if (entry->bytes < sizeof head || hash64(bytes, entry->bytes) != entry->hash)
        return damaged(from, entry->offset, error);
    memcpy(&head, bytes, sizeof head);
    if (head.runs > (entry->bytes - sizeof head) / sizeof(struct origin_run))
        return damaged(from, entry->offset, error);
    *system = index_writer_begin(into, SECTION_ORIGIN);
    if (!*system)
        *system = index_writer_add(into, bytes, sizeof head);
    uint64_t at = sizeof head;
    for (uint64_t i = 0; i < head.runs && !*system; i++, at += sizeof(struct origin_run)) {
        struct origin_run run;
        memcpy(&run, bytes + at, sizeof run);
        if (add_overflows(run.record, records, &run.record))
            return damaged(from, entry->offset + at, error);
        *system = index_writer_add(into, &run, sizeof run);
    }
    if (!*system)
        *system = index_writer_add(into, bytes + at, (size_t)(entry->bytes - at));
    if (!*system)
        *system = index_writer_end(into);
    return TOKMAP_OK;
}

static enum tokmap_status sections_write(const struct index *from, uint64_t records, int fd, int *system,
                                         struct tokmap_error *error)
{
    struct index_writer writer;
    enum tokmap_status status = TOKMAP_OK;
    *system = index_writer_init(&writer, fd);
    if (*system)
        return TOKMAP_OK;
    for (uint32_t i = 0; i < index_sections(from) && !status && !*system; i++) {
        struct index_entry entry;
        index_section_entry(from, i, &entry);
        status = entry.type == SECTION_ORIGIN ? origin_write(from, &entry, records, &writer, system, error)
                                              : index_copy_section(from, &entry, &writer, system, error);
    }
    if (!status && !*system)
        *system = index_writer_finish(&writer);
    index_writer_free(&writer);
    return status;
}

enum tokmap_status origin_shift(const char *from, const char *into, uint64_t records, bool sync,
                                struct tokmap_error *error)
{
    struct index index;
    int fd = -1, system = 0;
    enum tokmap_status status = index_open(&index, from, error);
    if (status)
        return status;
    char *partial = path_ended(into, ".partial");
    if (!partial)
        status = error_set_memory(error, "a path", 0);
    else
        (void)os_unlink(partial); /* of a process that was killed */
    if (!status)
        system = os_open(partial, OS_WRITE_NEW, &fd);
    if (!status && !system)
        status = sections_write(&index, records, fd, &system, error);
    if (!status && !system)
        system = name_file(fd, partial, into, sync, NULL);
    if (fd >= 0)
        os_close(fd);
    if (system)
        status = error_set_system(error, system, into, TOKMAP_NO_OFFSET, "the index cannot be written");
    if (status && partial && fd >= 0)
        (void)os_unlink(partial);
    index_close(&index);
    free(partial);
    return status;
}
