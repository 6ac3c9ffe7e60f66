/* SPDX-License-Identifier: MIT */
#include "index_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

enum { WRITER_BUFFER = 1 << 18, SAVED_AT_ONCE = 1 << 14 };

/* ---- spill ---- */

void spill_init(struct spill *spill, const char *folder)
{
    memset(spill, 0, sizeof *spill);
    spill->folder = folder;
    spill->fd = -1;
}

void spill_free(struct spill *spill)
{
    os_close(spill->fd);
    spill->fd = -1;
    free(spill->buffer);
    spill->buffer = NULL;
}

static int spill_flush(struct spill *spill)
{
    int system = 0;
    if (spill->fd < 0)
        system = os_open(spill->folder, OS_WRITE_UNNAMED, &spill->fd);
    if (system) {
        spill->fd = -1;
        return system;
    }
    system = os_pwrite(spill->fd, spill->buffer, spill->used, spill->stored);
    if (system)
        return system;
    spill->stored += spill->used;
    spill->used = 0;
    return 0;
}

int spill_add(struct spill *spill, const void *bytes, size_t count)
{
    if (!spill->buffer && !(spill->buffer = malloc(SPILL_BUFFER)))
        return ENOMEM;
    while (count) {
        if (spill->used == SPILL_BUFFER) {
            int system = spill_flush(spill);
            if (system)
                return system;
        }
        size_t part = (size_t)min64(count, SPILL_BUFFER - spill->used);
        memcpy(spill->buffer + spill->used, bytes, part);
        spill->used += part;
        bytes = (const uint8_t *)bytes + part;
        count -= part;
    }
    return 0;
}

int spill_read(const struct spill *spill, uint64_t offset, void *into, size_t count)
{
    assert(offset <= spill_bytes(spill) && count <= spill_bytes(spill) - offset);
    const size_t part = offset < spill->stored ? (size_t)min64(count, spill->stored - offset) : 0;
    size_t got = 0;
    const int system = part ? os_pread(spill->fd, into, part, offset, &got) : 0;
    if (system || got < part)
        return system ? system : EIO; /* our own unnamed file has become shorter */
    if (count > part)
        memcpy((uint8_t *)into + part, spill->buffer + (offset + part - spill->stored), count - part);
    return 0;
}

void state_put(struct state_sink *sink, uint32_t kind, const void *bytes, size_t count)
{
    if (!sink->failed)
        sink->failed = sink->put(sink->user, kind, bytes, count);
}

void spill_save(struct spill *spill, uint32_t kind, struct state_sink *sink)
{
    assert(spill->saved <= spill_bytes(spill)); /* index_writer_add_spill() has not emptied it */
    uint8_t copy[SAVED_AT_ONCE];
    while (spill->saved < spill_bytes(spill) && !sink->failed) {
        const size_t part = (size_t)min64(spill_bytes(spill) - spill->saved, sizeof copy);
        sink->failed = spill_read(spill, spill->saved, copy, part);
        state_put(sink, kind, copy, part);
        spill->saved += part;
    }
}

/* ---- index ---- */

int index_writer_init(struct index_writer *writer, int fd)
{
    memset(writer, 0, sizeof *writer);
    writer->fd = fd;
    writer->buffer = calloc(1, WRITER_BUFFER);
    writer->hash = hash_state_new();
    if (!writer->buffer || !writer->hash) {
        index_writer_free(writer);
        return ENOMEM;
    }
    /* The space of the header is zero until the end, so an incomplete file is not a valid index. */
    writer->offset = writer->used = writer->hashed = sizeof(struct index_header);
    return 0;
}

void index_writer_free(struct index_writer *writer)
{
    free(writer->buffer);
    hash_state_free(writer->hash);
    writer->buffer = NULL;
    writer->hash = NULL;
}

/* Adds the bytes of the open section that are in the buffer to its hash. */
static void hash_buffered(struct index_writer *writer)
{
    hash_state_add(writer->hash, writer->buffer + writer->hashed, writer->used - writer->hashed);
    writer->hashed = writer->used;
}

static int flush(struct index_writer *writer)
{
    hash_buffered(writer);
    int system = os_pwrite(writer->fd, writer->buffer, writer->used, writer->offset - writer->used);
    writer->used = writer->hashed = 0;
    return system;
}

int index_writer_add(struct index_writer *writer, const void *bytes, size_t count)
{
    while (count) {
        if (writer->used == WRITER_BUFFER) {
            int system = flush(writer);
            if (system)
                return system;
        }
        size_t part = (size_t)min64(count, WRITER_BUFFER - writer->used);
        memcpy(writer->buffer + writer->used, bytes, part);
        writer->used += part;
        writer->offset += part;
        bytes = (const uint8_t *)bytes + part;
        count -= part;
    }
    return 0;
}

static int add_zeros_to(struct index_writer *writer, uint64_t offset)
{
    static const uint8_t zeros[INDEX_ALIGN];
    return index_writer_add(writer, zeros, (size_t)(offset - writer->offset));
}

int index_writer_begin(struct index_writer *writer, enum section_type type)
{
    if (writer->sections == INDEX_SECTIONS_MAX)
        return EOVERFLOW;
    int system = add_zeros_to(writer, round_up(writer->offset, INDEX_ALIGN));
    if (system)
        return system;
    hash_buffered(writer);
    hash_state_reset(writer->hash);
    assert(writer->offset % INDEX_ALIGN == 0);
    struct index_entry *entry = &writer->table[writer->sections++];
    memset(entry, 0, sizeof *entry);
    entry->type = (uint32_t)type;
    entry->flags = section_is_required(entry->type) ? SECTION_REQUIRED : 0;
    entry->offset = writer->offset;
    return 0;
}

int index_writer_add_spill(struct index_writer *writer, struct spill *spill)
{
    assert(writer->sections);
    int system = 0;
    if (spill->fd >= 0 && spill->used)
        system = spill_flush(spill);
    for (uint64_t done = 0; !system && done < spill->stored;) {
        size_t part = (size_t)min64(SPILL_BUFFER, spill->stored - done), got = 0;
        system = os_pread(spill->fd, spill->buffer, part, done, &got);
        if (!system && got < part)
            system = EIO; /* our own unnamed file has become shorter */
        if (!system)
            system = index_writer_add(writer, spill->buffer, part);
        done += part;
    }
    if (!system && spill->used)
        system = index_writer_add(writer, spill->buffer, spill->used);
    spill->used = 0;
    spill->stored = 0;
    return system;
}

int index_writer_pad(struct index_writer *writer, uint64_t power)
{
    assert(writer->sections && power && power <= INDEX_ALIGN && !(power & (power - 1)));
    uint64_t start = writer->table[writer->sections - 1].offset;
    return add_zeros_to(writer, start + round_up(writer->offset - start, power));
}

void index_writer_save(const struct index_writer *writer, uint64_t from, uint32_t kind, struct state_sink *sink)
{
    assert(from >= sizeof(struct index_header) && from <= writer->offset);
    const uint64_t flushed = writer->offset - writer->used;
    uint8_t copy[SAVED_AT_ONCE];
    while (from < writer->offset && !sink->failed) {
        size_t part = (size_t)min64((from < flushed ? flushed : writer->offset) - from, sizeof copy), got = part;
        if (from < flushed)
            sink->failed = os_pread(writer->fd, copy, part, from, &got);
        if (!sink->failed && got < part)
            sink->failed = EIO; /* our own file has become shorter */
        state_put(sink, kind, from < flushed ? copy : writer->buffer + (from - flushed), part);
        from += part;
    }
}

int index_writer_end(struct index_writer *writer)
{
    assert(writer->sections && !writer->table[writer->sections - 1].bytes);
    struct index_entry *entry = &writer->table[writer->sections - 1];
    hash_buffered(writer);
    entry->bytes = writer->offset - entry->offset;
    entry->hash = hash_state_64(writer->hash);
    return 0;
}

int index_writer_section(struct index_writer *writer, enum section_type type, const void *bytes, size_t count,
                         struct spill *spill)
{
    int system = index_writer_begin(writer, type);
    if (!system)
        system = index_writer_add(writer, bytes, count);
    if (!system && spill)
        system = index_writer_add_spill(writer, spill);
    return system ? system : index_writer_end(writer);
}

/* Returns the lowest minor version that defines all sections of the file. */
static uint16_t minor_of(const struct index_writer *writer)
{
    uint16_t minor = 0;
    for (uint32_t i = 0; i < writer->sections; i++)
        if (section_minor(writer->table[i].type) > minor)
            minor = section_minor(writer->table[i].type);
    return minor;
}

int index_writer_finish(struct index_writer *writer)
{
    assert(!writer->id);
    int system = add_zeros_to(writer, round_up(writer->offset, INDEX_ALIGN));
    if (system)
        return system;
    assert(writer->sections && writer->sections <= INDEX_SECTIONS_MAX);
    size_t table_bytes = writer->sections * sizeof(struct index_entry);
    struct index_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, INDEX_MAGIC, sizeof header.magic);
    header.major = INDEX_MAJOR;
    header.minor = minor_of(writer);
    header.header_bytes = sizeof header;
    header.entry_bytes = sizeof(struct index_entry);
    header.sections = writer->sections;
    header.table_offset = writer->offset;
    header.file_bytes = writer->offset + table_bytes;
    header.table_hash = writer->id = hash64(writer->table, table_bytes);
    header.header_hash = hash64(&header, offsetof(struct index_header, header_hash));
    system = index_writer_add(writer, writer->table, table_bytes);
    if (!system)
        system = flush(writer);
    return system ? system : os_pwrite(writer->fd, &header, sizeof header, 0);
}

int index_writer_ends(struct index_writer *writer, struct spill *carry_spill, uint64_t *carries, uint64_t documents,
                      uint64_t base, const uint64_t *ends, uint64_t count)
{
    enum { BATCH = 512 };
    uint32_t lows[BATCH];
    int system = 0;
    for (uint64_t done = 0; done < count && !system;) {
        const size_t part = (size_t)min64(count - done, BATCH);
        for (size_t i = 0; i < part; i++) {
            const uint64_t end = base + ends[done + i], document = documents + done + i;
            lows[i] = (uint32_t)end;
            for (; *carries < end >> 32 && !system; ++*carries)
                system = spill_add(carry_spill, &document, sizeof document);
        }
        if (!system)
            system = index_writer_add(writer, lows, part * sizeof lows[0]);
        done += part;
    }
    return system;
}

/* ---- sections of another index ---- */

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
