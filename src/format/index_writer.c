#include "index_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "platform/os.h"

enum { WRITER_BUFFER = 1 << 18, COPY_PIECE = 1 << 14 };

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

int index_writer_add_file(struct index_writer *writer, const struct append_file *file)
{
    const uint64_t bytes = append_file_bytes(file);
    int system = 0;
    for (uint64_t done = 0; done < bytes && !system;) {
        if (writer->used == WRITER_BUFFER && (system = flush(writer)))
            break;
        const size_t part = (size_t)min64(WRITER_BUFFER - writer->used, bytes - done);
        system = append_file_read(file, done, writer->buffer + writer->used, part);
        writer->used += part;
        writer->offset += part;
        done += part;
    }
    return system;
}

int index_writer_pad(struct index_writer *writer, uint64_t power)
{
    assert(writer->sections && power && power <= INDEX_ALIGN && !(power & (power - 1)));
    uint64_t start = writer->table[writer->sections - 1].offset;
    return add_zeros_to(writer, start + round_up(writer->offset - start, power));
}

int index_writer_copy(const struct index_writer *writer, uint64_t from, struct append_file *into)
{
    const uint64_t flushed = writer->offset - writer->used;
    uint8_t piece[COPY_PIECE];
    int system = 0;
    while (from < flushed && !system) {
        const size_t part = (size_t)min64(flushed - from, sizeof piece);
        size_t got = 0;
        system = os_pread(writer->fd, piece, part, from, &got);
        if (!system && got < part)
            system = EIO; /* our own file has become shorter */
        if (!system)
            system = append_file_add(into, piece, part);
        from += part;
    }
    const size_t rest = (size_t)(writer->offset - from);
    return system ? system : append_file_add(into, writer->buffer + (writer->used - rest), rest);
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
