/* SPDX-License-Identifier: MIT */
/*
 * stage_file.c - see stage_file.h.
 *
 *     header      64 bytes: magic, key, kind and number, sections, bytes of the file, part, XXH3-64 of the bytes before
 *     sections    32 bytes each: offset, bytes, XXH3-64 of them, XXH3-64 of the three numbers seeded with key + section
 *     bodies      of the sections, in order
 *
 * An entry of a section has a hash of its own, so that a reader of one section of a file with a million reads 96 bytes
 * before it.
 *
 * An unfinished file that another process may continue has no header yet, but a table: its entries have another hash,
 * which has the token of stage_writer_keep(), and the entry of the open section describes the bytes that it has. They
 * are written after the bodies were synced, so an entry that can be read is one whose bytes are on storage.
 */
#include "stage_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/name_files.h"
#include "format/partial_file.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "text/path.h"

#define MAGIC "tokmap-stage 1\n"
#define BUFFER ((size_t)256 << 10)
#define DIGITS 6
#define PART ".part-"

struct header {
    char magic[16];
    uint64_t key;
    uint64_t kind_number; /* kind << 56 | number */
    uint64_t sections, file_bytes, part;
    uint64_t hash;
};
_Static_assert(sizeof(struct header) == 64, "as above");

struct section {
    uint64_t offset, bytes, hash, entry_hash;
};

struct stage_writer {
    struct stage_id id;
    char *path, *partial;
    int fd;
    bool named, kept;
    struct section *sections;
    uint64_t section; /* number of the open section */
    uint8_t *buffer;
    size_t used;
    uint64_t stored; /* bytes of the file */
    struct hash_state *hash;
    uint64_t found;          /* bytes that another process has left */
    uint64_t token, kept_to; /* of stage_writer_keep(): its entries before that section need not be written again */
};

static const char *const names[STAGES] = {"scan-", "drops-", "packed-", "cuts-", "merged-", "also-", "tail-"};

/* Returns where a prefix and a number end that an entry begins with, or NULL. */
static const char *number_end(const char *entry, const char *prefix)
{
    const size_t begin = strlen(prefix);
    const size_t digits = strncmp(entry, prefix, begin) != 0 ? 0 : strspn(entry + begin, "0123456789");
    return digits >= DIGITS ? entry + begin + digits : NULL;
}

bool stage_is_name(const char *entry)
{
    for (int i = 0; i < STAGES; i++) {
        const char *end = number_end(entry, names[i]);
        const char *part = end ? number_end(end, PART) : NULL;
        end = part ? part : end;
        if (end && (!*end || !strcmp(end, ".partial")))
            return true;
    }
    return false;
}

bool stage_is_ours(const char *folder, const char *entry, bool journal)
{
    static const char nothing[sizeof(struct header)];
    char head[sizeof(struct header)];
    const char *end = strstr(entry, ".partial");
    size_t got = 0;
    int fd = -1;
    char *path = stage_is_name(entry) ? path_join(folder, strlen(folder), entry, strlen(entry), "") : NULL;
    const bool read = path && !os_open(path, OS_READ_NOW, &fd) && !os_pread(fd, head, sizeof head, 0, &got);
    if (fd >= 0)
        os_close(fd);
    free(path);
    if (!read)
        return false;
    const bool made = got >= sizeof MAGIC && !memcmp(head, MAGIC, sizeof MAGIC);
    return made || ((journal || end) && !memcmp(head, nothing, got));
}

struct stage_listing {
    enum stage_kind kind;
    uint64_t count;
    bool *there;
};

static int entry_mark(void *user, const char *entry)
{
    const struct stage_listing *listing = user;
    const size_t begin = strlen(names[listing->kind]);
    uint64_t number;
    if (!strncmp(entry, names[listing->kind], begin) && strlen(entry + begin) >= DIGITS &&
        decimal_parse(entry + begin, strlen(entry + begin), &number) && number < listing->count)
        listing->there[number] = true;
    return 0;
}

enum tokmap_status stage_list(const char *folder, enum stage_kind kind, uint64_t count, bool *there,
                              struct tokmap_error *error)
{
    struct stage_listing listing = {kind, count, there};
    const int system = os_folder_list(folder, entry_mark, &listing);
    return system ? error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                     "the folder of unfinished work cannot be read")
                  : TOKMAP_OK;
}

static char *path_of(const struct stage_id *id, const char *ending)
{
    char name[96];
    assert(id->kind < STAGES && !(id->number >> 56));
    const int used = snprintf(name, sizeof name, "%s%0*" PRIu64, names[id->kind], DIGITS, id->number);
    if (id->part)
        (void)snprintf(name + used, sizeof name - (size_t)used, PART "%0*" PRIu64, DIGITS, id->part - 1);
    return path_join(id->folder, strlen(id->folder), name, strlen(name), ending);
}

char *stage_path(const struct stage_id *id)
{
    return path_of(id, "");
}

static uint64_t kind_number(const struct stage_id *id)
{
    return (uint64_t)(id->kind + 1) << 56 | id->number;
}

static uint64_t entry_hash(const struct stage_id *id, const struct section *section, uint64_t number)
{
    return hash64_seeded(section, offsetof(struct section, entry_hash), id->key + number);
}

static const char lacking[] = "a file of a stage"; /* in messages about memory */

static enum tokmap_status corrupt(const char *path, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, path, TOKMAP_NO_OFFSET,
                     "this file of unfinished work is damaged, or of work with other options; remove it, and run all "
                     "tasks again; without tasks, start over with --no-resume");
}

enum tokmap_status stage_corrupt(const struct stage_id *id, struct tokmap_error *error)
{
    char *path = path_of(id, "");
    const enum tokmap_status status = path ? corrupt(path, error) : error_set_memory(error, lacking, BUFFER);
    free(path);
    return status;
}

static enum tokmap_status busy(const char *partial, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_BUSY, partial, TOKMAP_NO_OFFSET,
                     "another process is writing this file; wait for it");
}

enum tokmap_status stage_busy(const struct stage_id *id, struct tokmap_error *error)
{
    char *partial = path_of(id, ".partial");
    const enum tokmap_status status = partial ? busy(partial, error) : error_set_memory(error, lacking, BUFFER);
    free(partial);
    return status;
}

/* ---- read ---- */

static enum tokmap_status read_failed(const char *path, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "a file of unfinished work cannot be read");
}

/* Opens a file and checks its header. After a failure *fd is -1. */
static enum tokmap_status file_open(const struct stage_id *id, int *fd, uint64_t *bytes, struct tokmap_error *error)
{
    struct header header;
    struct os_stat found;
    size_t got = 0;
    char *path = path_of(id, "");
    int system = path ? os_open(path, OS_READ_NOW, fd) : ENOMEM;
    const bool opened = !system;
    if (!system)
        system = os_fstat(*fd, &found);
    if (!system && found.kind == OS_KIND_FILE)
        system = os_pread(*fd, &header, sizeof header, 0, &got);
    const bool good = !system && got == sizeof header && !memcmp(header.magic, MAGIC, sizeof MAGIC) &&
                      header.key == id->key && header.kind_number == kind_number(id) &&
                      header.sections == id->sections && header.part == id->part && header.file_bytes == found.bytes &&
                      header.hash == hash64(&header, offsetof(struct header, hash));
    enum tokmap_status status = good ? TOKMAP_OK : corrupt(path, error);
    if (system)
        status = path ? read_failed(path, system, error) : error_set_memory(error, lacking, BUFFER);
    if (status && opened)
        os_close(*fd);
    *fd = status ? -1 : *fd;
    *bytes = status ? 0 : found.bytes;
    free(path);
    return status;
}

/* Reads bytes of an open file; fewer are an error. */
static enum tokmap_status file_read(const struct stage_id *id, int fd, void *into, size_t bytes, uint64_t offset,
                                    struct tokmap_error *error)
{
    size_t got = 0;
    const int system = os_pread(fd, into, bytes, offset, &got);
    char *path = system ? path_of(id, "") : NULL;
    const enum tokmap_status status = system         ? read_failed(path, system, error)
                                      : got != bytes ? stage_corrupt(id, error)
                                                     : TOKMAP_OK;
    free(path);
    return status;
}

enum tokmap_status stage_find(const struct stage_id *id, struct tokmap_error *error)
{
    int fd = -1;
    uint64_t bytes;
    const enum tokmap_status status = file_open(id, &fd, &bytes, error);
    os_close(fd);
    return status;
}

/* Reads the entry of a section. fd: gets the file, which stays open; or NULL. */
static enum tokmap_status entry_read(const struct stage_id *id, uint64_t number, struct section *section, int *fd,
                                     struct tokmap_error *error)
{
    int own = -1;
    uint64_t bytes;
    assert(number < id->sections);
    enum tokmap_status status = file_open(id, &own, &bytes, error);
    if (!status)
        status = file_read(id, own, section, sizeof *section, sizeof(struct header) + number * sizeof *section, error);
    if (fd)
        *fd = own;
    else
        os_close(own);
    const bool good = !status && section->entry_hash == entry_hash(id, section, number) && section->offset <= bytes &&
                      section->bytes <= bytes - section->offset;
    return status || good ? status : stage_corrupt(id, error);
}

enum tokmap_status stage_reader_open(struct stage_reader *reader, const struct stage_id *id, uint64_t section,
                                     uint32_t record_bytes, uint32_t buffer_bytes, struct tokmap_error *error)
{
    struct section entry;
    assert(section < id->sections && record_bytes && buffer_bytes >= record_bytes);
    *reader = (struct stage_reader){.path = path_of(id, ""), .record_bytes = record_bytes};
    if (!reader->path)
        return error_set_memory(error, lacking, BUFFER);
    const enum tokmap_status status = entry_read(id, section, &entry, NULL, error);
    if (status)
        return status;
    if (entry.bytes % record_bytes)
        return corrupt(reader->path, error);
    reader->next = entry.offset;
    reader->end = entry.offset + entry.bytes;
    reader->expected = entry.hash;
    reader->buffer_bytes = (uint32_t)min64(buffer_bytes / record_bytes * record_bytes, max64(entry.bytes, 1));
    reader->hash = hash_state_new();
    return reader->hash ? TOKMAP_OK : error_set_memory(error, lacking, BUFFER);
}

enum tokmap_status stage_reader_next(struct stage_reader *reader, const void **record, struct tokmap_error *error)
{
    *record = NULL;
    if (reader->at == reader->filled && reader->next == reader->end)
        return hash_state_64(reader->hash) == reader->expected ? TOKMAP_OK : corrupt(reader->path, error);
    if (reader->at == reader->filled) {
        int fd = -1;
        size_t got = 0;
        const size_t wanted = (size_t)min64(reader->buffer_bytes, reader->end - reader->next);
        if (!reader->buffer && !(reader->buffer = malloc(reader->buffer_bytes)))
            return error_set_memory(error, lacking, BUFFER);
        int system = os_open(reader->path, OS_READ_NOW, &fd);
        if (!system)
            system = os_pread(fd, reader->buffer, wanted, reader->next, &got);
        if (fd >= 0)
            os_close(fd);
        if (system)
            return read_failed(reader->path, system, error);
        if (got != wanted)
            return corrupt(reader->path, error);
        hash_state_add(reader->hash, reader->buffer, wanted);
        reader->next += wanted;
        reader->at = 0;
        reader->filled = (uint32_t)wanted;
    }
    *record = reader->buffer + reader->at;
    reader->at += reader->record_bytes;
    return TOKMAP_OK;
}

void stage_reader_free(struct stage_reader *reader)
{
    free(reader->path);
    free(reader->buffer);
    hash_state_free(reader->hash);
    *reader = (struct stage_reader){.path = NULL};
}

enum tokmap_status stage_section_load(struct bytes_buffer *into, const struct stage_id *id, uint64_t section,
                                      uint64_t most, struct tokmap_error *error)
{
    struct stage_reader reader;
    const void *byte = NULL;
    enum tokmap_status status = stage_reader_open(&reader, id, section, 1, (uint32_t)BUFFER, error);
    const uint64_t bytes = status ? 0 : reader.end - reader.next;
    into->count = 0;
    if (!status && bytes > most)
        status = corrupt(reader.path, error);
    if (!status && !bytes_reserve(into, (size_t)bytes + 1))
        status = error_set_memory(error, lacking, BUFFER);
    while (!status) {
        status = stage_reader_next(&reader, &byte, error);
        if (status || !byte)
            break;
        const uint32_t there = reader.filled - reader.at + 1; /* with the byte itself */
        (void)bytes_append(into, byte, there);
        reader.at = reader.filled;
    }
    stage_reader_free(&reader);
    return status;
}

enum tokmap_status stage_section_read(const struct stage_id *id, uint64_t section, void *into, size_t bytes,
                                      struct tokmap_error *error)
{
    struct bytes_buffer found = {0};
    enum tokmap_status status = stage_section_load(&found, id, section, bytes, error);
    if (!status && found.count != bytes)
        status = stage_corrupt(id, error);
    if (!status)
        memcpy(into, found.bytes, bytes);
    bytes_free(&found);
    return status;
}

enum tokmap_status stage_section_copy(struct stage_writer *into, const struct stage_id *id, uint64_t section,
                                      struct tokmap_error *error)
{
    struct stage_reader reader;
    const void *byte = NULL;
    enum tokmap_status status = stage_reader_open(&reader, id, section, 1, (uint32_t)BUFFER, error);
    while (!status) {
        status = stage_reader_next(&reader, &byte, error);
        if (status || !byte)
            break;
        status = stage_writer_add(into, byte, reader.filled - reader.at + 1, error); /* with the byte itself */
        reader.at = reader.filled;
    }
    stage_reader_free(&reader);
    return status;
}

/* Reads the entries of all sections; the caller frees *table in any case. */
static enum tokmap_status table_read(const struct stage_id *id, struct section **table, struct tokmap_error *error)
{
    const size_t count = (size_t)id->sections * sizeof **table;
    int fd = -1;
    uint64_t bytes;
    *table = malloc(count);
    enum tokmap_status status = *table ? file_open(id, &fd, &bytes, error) : error_set_memory(error, lacking, BUFFER);
    if (!status)
        status = file_read(id, fd, *table, count, sizeof(struct header), error);
    for (uint64_t i = 0; i < id->sections && !status; i++)
        if ((*table)[i].entry_hash != entry_hash(id, &(*table)[i], i))
            status = stage_corrupt(id, error);
    os_close(fd);
    return status;
}

enum tokmap_status stage_digest(const struct stage_id *id, uint64_t *digest, struct tokmap_error *error)
{
    struct section *table;
    const enum tokmap_status status = table_read(id, &table, error);
    *digest = status ? 0 : hash64_seeded(table, (size_t)id->sections * sizeof *table, id->key);
    free(table);
    return status;
}

enum tokmap_status stage_sections_filled(const struct stage_id *id, uint64_t first, uint64_t count, bool *filled,
                                         struct tokmap_error *error)
{
    struct section *table;
    assert(count <= id->sections && first <= id->sections - count);
    const enum tokmap_status status = table_read(id, &table, error);
    for (uint64_t i = 0; i < count && !status; i++)
        filled[i] = table[first + i].bytes != 0;
    free(table);
    return status;
}

bool stage_exists(const struct stage_id *id)
{
    struct os_stat found;
    char *path = path_of(id, "");
    const bool exists = path && !os_stat(path, &found);
    free(path);
    return exists;
}

void stage_remove(const struct stage_id *id)
{
    char *path = path_of(id, "");
    if (path)
        (void)os_unlink(path);
    free(path);
}

struct kind_removal {
    const char *folder;
    enum stage_kind kind;
    struct tokmap_error *error;
    enum tokmap_status status;
};

static int kind_entry_remove(void *user, const char *entry)
{
    struct kind_removal *removal = user;
    const char *prefix = names[removal->kind];
    if (strncmp(entry, prefix, strlen(prefix)) != 0 || !stage_is_name(entry))
        return 0;
    char *path = path_join(removal->folder, strlen(removal->folder), entry, strlen(entry), "");
    const int system = path ? os_unlink(path) : 0;
    if (!path)
        removal->status = error_set_memory(removal->error, lacking, BUFFER);
    else if (system && system != ENOENT)
        removal->status = error_set_system(removal->error, system, path, TOKMAP_NO_OFFSET,
                                           "a file of unfinished work cannot be removed");
    free(path);
    return removal->status ? ECANCELED : 0;
}

enum tokmap_status stage_kind_remove(const char *folder, enum stage_kind kind, struct tokmap_error *error)
{
    struct kind_removal removal = {.folder = folder, .kind = kind, .error = error};
    const int system = os_folder_list(folder, kind_entry_remove, &removal);
    return removal.status || !system ? removal.status
                                     : error_set_system(error, system, folder, TOKMAP_NO_OFFSET,
                                                        "the folder of unfinished work cannot be read");
}

enum tokmap_status stage_section_count(const struct stage_id *id, uint64_t section, uint32_t record_bytes,
                                       uint64_t *count, struct tokmap_error *error)
{
    struct section entry = {0};
    enum tokmap_status status = entry_read(id, section, &entry, NULL, error);
    if (!status && entry.bytes % record_bytes)
        status = stage_corrupt(id, error);
    *count = status ? 0 : entry.bytes / record_bytes;
    return status;
}

enum tokmap_status stage_bytes_from(const struct stage_id *id, uint64_t section, uint64_t *bytes,
                                    struct tokmap_error *error)
{
    struct section first = {0}, last = {0};
    enum tokmap_status status = entry_read(id, section, &first, NULL, error);
    if (!status)
        status = entry_read(id, id->sections - 1, &last, NULL, error);
    if (!status && last.offset < first.offset)
        status = stage_corrupt(id, error);
    *bytes = status ? 0 : last.offset + last.bytes - first.offset;
    return status;
}

enum tokmap_status stage_record_read(const struct stage_id *id, uint64_t section, uint64_t number, void *record,
                                     uint32_t record_bytes, struct tokmap_error *error)
{
    struct section entry;
    int fd = -1;
    enum tokmap_status status = entry_read(id, section, &entry, &fd, error);
    if (!status && number >= entry.bytes / record_bytes)
        status = stage_corrupt(id, error);
    if (!status)
        status = file_read(id, fd, record, record_bytes, entry.offset + number * record_bytes, error);
    os_close(fd);
    return status;
}

/* ---- write ---- */

static enum tokmap_status write_failed(const struct stage_writer *writer, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, writer->partial, TOKMAP_NO_OFFSET,
                            "a file of unfinished work cannot be written");
}

/* Makes a writer without a file. */
static enum tokmap_status writer_make(struct stage_writer **writer, const struct stage_id *id,
                                      struct tokmap_error *error)
{
    assert(id->sections);
    struct stage_writer *made = *writer = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, lacking, BUFFER);
    made->id = *id;
    made->fd = -1;
    made->path = path_of(id, "");
    made->partial = path_of(id, ".partial");
    made->buffer = malloc(BUFFER);
    made->hash = hash_state_new();
    made->sections = calloc((size_t)id->sections, sizeof *made->sections);
    if (!made->path || !made->partial || !made->buffer || !made->hash || !made->sections)
        return error_set_memory(error, lacking, BUFFER);
    made->stored = sizeof(struct header) + id->sections * sizeof *made->sections;
    made->sections[0].offset = made->stored;
    return TOKMAP_OK;
}

static enum tokmap_status open_failed(const struct stage_writer *writer, int system, struct tokmap_error *error)
{
    if (system == EWOULDBLOCK)
        return busy(writer->partial, error);
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

enum tokmap_status stage_writer_open(struct stage_writer **writer, const struct stage_id *id,
                                     struct tokmap_error *error)
{
    const enum tokmap_status status = writer_make(writer, id, error);
    return status ? status
                  : open_failed(*writer, partial_file_open((*writer)->partial, NULL, NULL, &(*writer)->fd), error);
}

enum tokmap_status stage_writer_reopen(struct stage_writer **writer, const struct stage_id *id,
                                       struct tokmap_error *error)
{
    struct os_stat found = {.bytes = 0};
    const enum tokmap_status status = writer_make(writer, id, error);
    if (status)
        return status;
    struct stage_writer *made = *writer;
    int system = partial_file_take(made->partial, &made->fd);
    if (!system)
        system = os_fstat(made->fd, &found);
    else if (system != EWOULDBLOCK) /* there is none, or one that must not be filled */
        system = partial_file_open(made->partial, NULL, NULL, &made->fd);
    made->found = found.bytes;
    made->kept = made->found != 0;
    return open_failed(made, system, error);
}

/* Returns the hash of an entry of an unfinished file. */
static uint64_t kept_hash(const struct stage_writer *writer, uint64_t token, const struct section *section,
                          uint64_t number, bool open)
{
    return hash64_seeded(section, offsetof(struct section, entry_hash), ~(writer->id.key ^ token) + 2 * number + open);
}

/* Reads the bytes of the section that was open into its hash. *good: they are those that it had. */
static int section_rehash(struct stage_writer *writer, const struct section *section, bool *good)
{
    uint64_t done = 0;
    int system = 0;
    while (done < section->bytes && !system) {
        size_t got = 0;
        const size_t wanted = (size_t)min64(section->bytes - done, BUFFER);
        system = os_pread(writer->fd, writer->buffer, wanted, section->offset + done, &got);
        hash_state_add(writer->hash, writer->buffer, got);
        done += got;
        if (got != wanted)
            break;
    }
    *good = !system && done == section->bytes && hash_state_64(writer->hash) == section->hash;
    if (!*good)
        hash_state_reset(writer->hash);
    return system;
}

enum tokmap_status stage_writer_resume(struct stage_writer *writer, uint64_t token, uint64_t *section, uint64_t *bytes,
                                       struct tokmap_error *error)
{
    const uint64_t sections = writer->id.sections, table = sections * sizeof *writer->sections;
    const uint64_t begin = sizeof(struct header) + table;
    uint64_t end = begin, at = 0;
    size_t got = 0;
    int system = 0;
    bool open = false;
    assert(!writer->used && !writer->section && writer->stored == begin);
    *section = *bytes = 0;
    if (writer->found >= begin)
        system = os_pread(writer->fd, writer->sections, (size_t)table, sizeof(struct header), &got);
    for (; at + 1 < sections && got == table; at++) {
        struct section *entry = &writer->sections[at];
        if (entry->entry_hash != kept_hash(writer, token, entry, at, false) || entry->offset != end ||
            entry->bytes > writer->found - end)
            break;
        end += entry->bytes;
        entry->entry_hash = entry_hash(&writer->id, entry, at);
    }
    struct section *last = &writer->sections[at];
    if (!system && got == table && last->entry_hash == kept_hash(writer, token, last, at, true) &&
        last->offset == end && last->bytes <= writer->found - end)
        system = section_rehash(writer, last, &open);
    *section = at;
    *bytes = open ? last->bytes : 0;
    *last = (struct section){.offset = end};
    writer->section = at;
    writer->stored = end + *bytes;
    writer->token = token;
    writer->kept_to = at;
    writer->kept = at || open;
    if (!system && writer->found)
        system = os_truncate(writer->fd, writer->kept ? writer->stored : 0);
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

enum tokmap_status stage_writer_last(const struct stage_writer *writer, void *record, uint32_t record_bytes,
                                     struct tokmap_error *error)
{
    size_t got = 0;
    assert(!writer->used && writer->stored - writer->sections[writer->section].offset >= record_bytes);
    const int system = os_pread(writer->fd, record, record_bytes, writer->stored - record_bytes, &got);
    return system || got != record_bytes ? write_failed(writer, system ? system : EIO, error) : TOKMAP_OK;
}

static enum tokmap_status buffer_write(struct stage_writer *writer, struct tokmap_error *error)
{
    const int system = writer->used ? os_pwrite(writer->fd, writer->buffer, writer->used, writer->stored) : 0;
    if (system)
        return write_failed(writer, system, error);
    hash_state_add(writer->hash, writer->buffer, writer->used);
    writer->stored += writer->used;
    writer->used = 0;
    return TOKMAP_OK;
}

enum tokmap_status stage_writer_add(struct stage_writer *writer, const void *bytes, size_t count,
                                    struct tokmap_error *error)
{
    while (count) {
        const enum tokmap_status status = writer->used == BUFFER ? buffer_write(writer, error) : TOKMAP_OK;
        const size_t part = (size_t)min64(count, BUFFER - writer->used);
        if (status)
            return status;
        memcpy(writer->buffer + writer->used, bytes, part);
        writer->used += part;
        bytes = (const uint8_t *)bytes + part;
        count -= part;
    }
    return TOKMAP_OK;
}

enum tokmap_status stage_writer_keep(struct stage_writer *writer, uint64_t token, bool sync, struct tokmap_error *error)
{
    const uint64_t from = token == writer->token ? writer->kept_to : 0, to = writer->section;
    const size_t count = (size_t)(to + 1 - from) * sizeof *writer->sections;
    const enum tokmap_status status = buffer_write(writer, error);
    int system = !status && sync ? os_sync(writer->fd) : 0;
    if (status || system)
        return status ? status : write_failed(writer, system, error);
    struct section *table = malloc(count);
    if (!table)
        return error_set_memory(error, lacking, BUFFER);
    memcpy(table, writer->sections + from, count);
    struct section *open = &table[to - from];
    open->bytes = writer->stored - open->offset;
    open->hash = hash_state_64(writer->hash);
    for (uint64_t i = from; i <= to; i++)
        table[i - from].entry_hash = kept_hash(writer, token, &table[i - from], i, i == to);
    system = os_pwrite(writer->fd, table, count, sizeof(struct header) + from * sizeof *table);
    free(table);
    writer->token = token;
    writer->kept_to = to;
    writer->kept = writer->kept || !system;
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

/* Describes the open section. */
static enum tokmap_status section_end(struct stage_writer *writer, struct tokmap_error *error)
{
    struct section *section = &writer->sections[writer->section];
    const enum tokmap_status status = buffer_write(writer, error);
    section->bytes = writer->stored - section->offset;
    section->hash = hash_state_64(writer->hash);
    section->entry_hash = entry_hash(&writer->id, section, writer->section);
    hash_state_reset(writer->hash);
    return status;
}

enum tokmap_status stage_writer_next(struct stage_writer *writer, struct tokmap_error *error)
{
    assert(writer->section + 1 < writer->id.sections);
    const enum tokmap_status status = section_end(writer, error);
    writer->sections[++writer->section].offset = writer->stored;
    return status;
}

enum tokmap_status stage_writer_commit(struct stage_writer *writer, bool sync, struct tokmap_error *error)
{
    struct header header = {.key = writer->id.key,
                            .kind_number = kind_number(&writer->id),
                            .sections = writer->id.sections,
                            .part = writer->id.part};
    assert(writer->section + 1 == writer->id.sections);
    const enum tokmap_status status = section_end(writer, error);
    if (status)
        return status;
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    header.file_bytes = writer->stored;
    header.hash = hash64(&header, offsetof(struct header, hash));
    int system =
        os_pwrite(writer->fd, writer->sections, (size_t)(header.sections * sizeof *writer->sections), sizeof header);
    if (!system)
        system = os_pwrite(writer->fd, &header, sizeof header, 0);
    if (!system)
        system = name_file(writer->fd, writer->partial, writer->path, sync, &writer->named);
    if (system && writer->named) /* after an error the caller may remove what the file says is there */
        (void)os_unlink(writer->path);
    return system ? write_failed(writer, system, error) : TOKMAP_OK;
}

void stage_writer_free(struct stage_writer *writer)
{
    if (!writer)
        return;
    if (writer->fd >= 0 && !writer->named && !writer->kept)
        (void)os_unlink(writer->partial);
    os_close(writer->fd);
    hash_state_free(writer->hash);
    free(writer->sections);
    free(writer->buffer);
    free(writer->path);
    free(writer->partial);
    free(writer);
}

enum tokmap_status stage_write(const struct stage_id *id, const void *bytes, size_t count, bool sync,
                               struct tokmap_error *error)
{
    struct stage_writer *writer;
    enum tokmap_status status = stage_writer_open(&writer, id, error);
    if (!status)
        status = stage_writer_add(writer, bytes, count, error);
    if (!status)
        status = stage_writer_commit(writer, sync, error);
    stage_writer_free(writer);
    return status;
}
