/* snapshot.c - see snapshot.h. */
#include "snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

#define HASHED_FROM offsetof(struct snapshot_header, key)
#define READ_AT_ONCE ((size_t)256 << 10) /* hashed while it is in the second-level cache */

static const char magic[16] = SNAPSHOT_MAGIC;

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + SNAPSHOT_PAGE - 1) / SNAPSHOT_PAGE * SNAPSHOT_PAGE;
}

/* ---- writing ---- */

void snapshot_put(struct snapshot_writer *writer, uint64_t number)
{
    writer->failed |= !bytes_append(&writer->fields, &number, sizeof number);
}

void snapshot_put_text(struct snapshot_writer *writer, const void *bytes, uint64_t count)
{
    static const uint8_t zeros[8];
    snapshot_put(writer, count);
    writer->failed |= writer->failed || !bytes_append(&writer->fields, bytes, (size_t)count) ||
                      !bytes_append(&writer->fields, zeros, (size_t)(-count & 7));
}

void snapshot_put_array(struct snapshot_writer *writer, const void *bytes, uint64_t count)
{
    if (writer->failed || writer->array_count == SNAPSHOT_ARRAYS) {
        writer->failed = true;
        return;
    }
    writer->arrays[writer->array_count].bytes = bytes;
    writer->arrays[writer->array_count++].count = count;
}

void *snapshot_put_room(struct snapshot_writer *writer, uint64_t count)
{
    void *room = os_memory_large_zeros((size_t)count + 1, 1);
    const uint32_t number = writer->array_count;
    writer->failed |= !room;
    snapshot_put_array(writer, room, count);
    if (writer->failed) {
        free(room);
        return NULL;
    }
    writer->arrays[number].owned = room;
    return room;
}

static bool rules_equal(const struct split_rules *a, const struct split_rules *b)
{
    return a->letters == b->letters && a->contraction == b->contraction && a->prefix == b->prefix &&
           a->tail == b->tail && a->numbers == b->numbers && a->newlines == b->newlines && a->deepseek == b->deepseek;
}

void snapshot_put_rules(struct snapshot_writer *writer, const struct split_rules *rules)
{
    const char *const *name = split_rules_names();
    while (*name && !rules_equal(split_rules_named(*name), rules))
        name++;
    if (*name)
        snapshot_put_text(writer, *name, strlen(*name) + 1);
    else
        writer->failed = true;
}

/* Writes a part and what fills it up to a page, and adds both to the hash. */
static int part_write(struct hash_state *hash, int fd, const void *bytes, uint64_t count, uint64_t offset)
{
    static const uint8_t zeros[4096];
    hash_state_add(hash, bytes, (size_t)count);
    hash_state_add(hash, zeros, (size_t)(page_up(count) - count));
    return count ? os_pwrite(fd, bytes, (size_t)count, offset) : 0;
}

int snapshot_write(const struct snapshot_writer *writer, int fd, const uint8_t key[16])
{
    struct snapshot_header header = {.format = SNAPSHOT_FORMAT, .arrays = writer->array_count};
    if (writer->failed)
        return ENOMEM;
    memcpy(header.magic, magic, sizeof magic);
    memcpy(header.key, key, sizeof header.key);
    header.fields = (struct snapshot_place){SNAPSHOT_PAGE, writer->fields.count};
    header.bytes = SNAPSHOT_PAGE + page_up(writer->fields.count);
    for (uint32_t i = 0; i < writer->array_count; i++) {
        header.places[i] = (struct snapshot_place){header.bytes, writer->arrays[i].count};
        header.bytes += page_up(writer->arrays[i].count);
    }
    /* Programs that use the library need not expect the signal that writing beyond the limit of a process is. */
    if (header.bytes > SNAPSHOT_MOST || header.bytes > os_file_most())
        return EFBIG;
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return ENOMEM;
    static const uint8_t zeros[4096];
    hash_state_add(hash, header.key, sizeof header - HASHED_FROM);
    hash_state_add(hash, zeros, SNAPSHOT_PAGE - sizeof header);
    int failed = os_truncate(fd, header.bytes);
    if (!failed)
        failed = part_write(hash, fd, writer->fields.bytes, writer->fields.count, header.fields.offset);
    for (uint32_t i = 0; i < writer->array_count && !failed; i++)
        failed = part_write(hash, fd, writer->arrays[i].bytes, writer->arrays[i].count, header.places[i].offset);
    hash128_store(hash_state_128(hash), header.hash);
    hash_state_free(hash);
    return failed ? failed : os_pwrite(fd, &header, sizeof header, 0);
}

void snapshot_writer_free(struct snapshot_writer *writer)
{
    for (uint32_t i = 0; i < writer->array_count; i++)
        free(writer->arrays[i].owned);
    bytes_free(&writer->fields);
    *writer = (struct snapshot_writer){.failed = true};
}

/* ---- reading ---- */

/* Reads `bytes` bytes, and their hash from HASHED_FROM on. */
static bool file_read(uint8_t *into, int fd, uint64_t bytes, uint8_t stored[16])
{
    struct hash_state *hash = hash_state_new();
    bool good = hash != NULL;
    for (uint64_t at = 0; at < bytes && good; at += READ_AT_ONCE) {
        const size_t wanted = (size_t)min64(bytes - at, READ_AT_ONCE), skip = at ? 0 : HASHED_FROM;
        size_t got = 0;
        good = !os_pread(fd, into + at, wanted, at, &got) && got == wanted;
        if (good)
            hash_state_add(hash, into + at + skip, wanted - skip);
    }
    if (good)
        hash128_store(hash_state_128(hash), stored);
    hash_state_free(hash);
    return good;
}

static bool place_fits(const struct snapshot_header *header, const struct snapshot_place *place)
{
    return place->offset >= SNAPSHOT_PAGE && !(place->offset % SNAPSHOT_PAGE) && place->offset <= header->bytes &&
           place->bytes <= header->bytes - place->offset;
}

static bool header_fits(const struct snapshot_header *header, uint64_t bytes, const uint8_t key[16])
{
    if (memcmp(header->magic, magic, sizeof magic) != 0 || header->bytes != bytes ||
        header->format != SNAPSHOT_FORMAT || memcmp(header->key, key, sizeof header->key) != 0 ||
        header->arrays > SNAPSHOT_ARRAYS || !place_fits(header, &header->fields))
        return false;
    for (uint64_t i = 0; i < header->arrays; i++)
        if (!place_fits(header, &header->places[i]))
            return false;
    return true;
}

bool snapshot_read(struct snapshot_reader *reader, int fd, const uint8_t key[16])
{
    struct os_stat about;
    uint8_t hash[16];
    *reader = (struct snapshot_reader){.bytes = NULL};
    if (os_fstat(fd, &about) || about.kind != OS_KIND_FILE || about.bytes < 2 * SNAPSHOT_PAGE ||
        about.bytes > SNAPSHOT_MOST || about.bytes % SNAPSHOT_PAGE)
        return false;
    uint8_t *bytes = os_memory_large((size_t)about.bytes);
    if (!bytes)
        return false;
    const struct snapshot_header *header = (const struct snapshot_header *)(const void *)bytes;
    if (!file_read(bytes, fd, about.bytes, hash) || memcmp(hash, header->hash, sizeof hash) != 0 ||
        !header_fits(header, about.bytes, key)) {
        free(bytes);
        return false;
    }
    *reader = (struct snapshot_reader){.bytes = bytes,
                                       .at = bytes + header->fields.offset,
                                       .end = bytes + header->fields.offset + header->fields.bytes,
                                       .header = header};
    return true;
}

uint64_t snapshot_get(struct snapshot_reader *reader, uint64_t most)
{
    if (reader->failed || reader->end - reader->at < 8 || load64(reader->at) > most) {
        reader->failed = true;
        return 0;
    }
    reader->at += 8;
    return load64(reader->at - 8);
}

bool snapshot_get_flag(struct snapshot_reader *reader)
{
    return snapshot_get(reader, 1) != 0;
}

const uint8_t *snapshot_get_text(struct snapshot_reader *reader, uint64_t most, uint64_t *count)
{
    *count = snapshot_get(reader, most);
    const uint8_t *text = reader->at;
    if (reader->failed || *count > (uint64_t)(reader->end - text) ||
        (-*count & 7) > (uint64_t)(reader->end - text) - *count) {
        reader->failed = true;
        *count = 0;
        return (const uint8_t *)"";
    }
    reader->at += *count + (-*count & 7);
    return text;
}

uint8_t *snapshot_get_copy(struct snapshot_reader *reader, uint64_t most, size_t *count)
{
    uint64_t bytes;
    const uint8_t *text = snapshot_get_text(reader, most, &bytes);
    uint8_t *copy = reader->failed ? NULL : malloc((size_t)bytes + 1);
    *count = 0;
    if (!snapshot_require(reader, copy != NULL))
        return NULL;
    memcpy(copy, text, (size_t)bytes);
    copy[bytes] = 0;
    *count = (size_t)bytes;
    return copy;
}

void snapshot_get_exactly(struct snapshot_reader *reader, void *into, uint64_t count)
{
    uint64_t bytes;
    const uint8_t *text = snapshot_get_text(reader, count, &bytes);
    if (snapshot_require(reader, bytes == count) && count)
        memcpy(into, text, (size_t)count);
}

void *snapshot_get_array(struct snapshot_reader *reader, uint64_t count, uint64_t bytes)
{
    uint64_t wanted;
    if (reader->failed || reader->next == reader->header->arrays || mul_overflows(count, bytes, &wanted) ||
        reader->header->places[reader->next].bytes != wanted) {
        reader->failed = true;
        return NULL;
    }
    return reader->bytes + reader->header->places[reader->next++].offset;
}

void snapshot_get_rules(struct snapshot_reader *reader, struct split_rules *rules)
{
    uint64_t count;
    const char *name = (const char *)snapshot_get_text(reader, 64, &count);
    const struct split_rules *found =
        count && !name[count - 1] && strlen(name) == count - 1 ? split_rules_named(name) : NULL;
    if (snapshot_require(reader, found != NULL))
        *rules = *found;
}

void snapshot_get_end(struct snapshot_reader *reader)
{
    (void)snapshot_require(reader, reader->at == reader->end);
    (void)snapshot_require(reader, reader->failed || reader->next == reader->header->arrays);
}

bool snapshot_offsets_rise(const uint32_t *offsets, uint64_t count, uint64_t total)
{
    uint32_t falls = offsets[0];
    for (uint64_t i = 0; i < count; i++)
        falls |= offsets[i + 1] < offsets[i];
    return !falls && offsets[count] == total;
}
