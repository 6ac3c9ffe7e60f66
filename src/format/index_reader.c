/* SPDX-License-Identifier: MIT */
/*
 * index_reader.c - opens an index and makes every check whose cost does not depend on its size: rules 1 to 13 of
 * FORMAT.md. (Rules 14 and 15 concern the tokens and the mask; src/dataset checks them.)
 *
 * Opening reads the first page of the file, which holds the header, and the last page, which as tokmap writes it holds
 * the table and the shard section. Then it maps the file; the other sections are read on demand. A small file is read
 * completely and kept as a copy, because making and removing a mapping takes as long as everything else that opening
 * does, and datasets with many shards have small ones. The sections must follow each other without gaps, so
 * the table alone determines which section each byte belongs to, and no byte can be hidden from verify.
 *
 * An index that is to be read with pread keeps its descriptor instead of a mapping, which costs the same two calls.
 */
#include "index_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "element.h"
#include "platform/os.h"
#include "text/path.h"

/* The size limit of a .bin. It keeps sums of offsets and sizes from overflowing. */
#define TOKEN_BYTES_MAX ((uint64_t)1 << 62)

#define PATH_BYTES_MAX 4096 /* of a path in the store section, as for the kernel */

#define COPY_BYTES ((uint64_t)16384) /* a file of this size is copied */
#define PAGE_BYTES ((uint64_t)4096)  /* of another file, read at its start and at its end */

/* A part of the file that has been read. */
struct page {
    uint64_t offset, count;
    uint8_t bytes[COPY_BYTES];
};

#define REMEDY "restore this index from a good copy, or pack the shard again"

struct opening {
    struct index *index;
    int fd; /* -1 once the index owns it */
    enum tokmap_reading reading;
    struct index_header header;
    struct index_entry table[INDEX_SECTIONS_MAX];
    struct page start, end;
    struct tokmap_error *error;
};

#define CORRUPT(opening, offset, ...)                                                                                  \
    error_set((opening)->error, TOKMAP_ERROR_CORRUPT, (opening)->index->path, offset, __VA_ARGS__)

/* Reads a part of the file. What cannot be read is left to read_part(), which reports it. */
static void read_page(struct opening *opening, struct page *page, uint64_t offset, uint64_t bytes)
{
    size_t got = 0;
    page->offset = offset;
    page->count = 0;
    if (bytes && !os_pread(opening->fd, page->bytes, (size_t)bytes, offset, &got))
        page->count = got;
}

static bool page_copy(const struct page *page, uint64_t offset, void *into, size_t count)
{
    if (offset < page->offset || offset - page->offset > page->count || count > page->count - (offset - page->offset))
        return false;
    memcpy(into, page->bytes + (offset - page->offset), count);
    return true;
}

static enum tokmap_status read_part(struct opening *opening, uint64_t offset, void *into, size_t count)
{
    size_t got = 0;
    if (page_copy(&opening->start, offset, into, count) || page_copy(&opening->end, offset, into, count))
        return TOKMAP_OK;
    int system = os_pread(opening->fd, into, count, offset, &got);
    if (system)
        return error_set_system(opening->error, system, opening->index->path, offset, "the index cannot be read");
    if (got < count)
        return error_set(opening->error, TOKMAP_ERROR_TRUNCATED, opening->index->path, offset + got,
                         "the index ends at this byte, although it was longer when it was opened; " REMEDY);
    return TOKMAP_OK;
}

static enum tokmap_status check_header(struct opening *opening)
{
    struct index *index = opening->index;
    const struct index_header *header = &opening->header;
    if (index->file_bytes < sizeof *header) {
        /* A file this short is either a truncated index or another kind of file; its first bytes tell which. */
        uint8_t start[8] = {0};
        size_t got = 0;
        (void)os_pread(opening->fd, start, sizeof start, 0, &got);
        if (got && memcmp(start, INDEX_MAGIC, got))
            return error_set(
                opening->error, TOKMAP_ERROR_FORMAT, index->path, 0,
                "this is not a tokmap index (it does not begin with the bytes of a .tmx); give the name of a shard");
        return error_set(opening->error, TOKMAP_ERROR_TRUNCATED, index->path, index->file_bytes,
                         "the index is %" PRIu64 " bytes long, but its header alone needs %zu; " REMEDY,
                         index->file_bytes, sizeof *header);
    }
    enum tokmap_status status = read_part(opening, 0, &opening->header, sizeof opening->header);
    if (status)
        return status;
    if (memcmp(header->magic, INDEX_MAGIC, sizeof header->magic))
        return error_set(
            opening->error, TOKMAP_ERROR_FORMAT, index->path, 0,
            "this is not a tokmap index (it does not begin with the bytes of a .tmx); give the name of a shard");
    bool sound = hash64(header, offsetof(struct index_header, header_hash)) == header->header_hash;
    if (header->major > INDEX_MAJOR)
        return error_set(opening->error, TOKMAP_ERROR_VERSION, index->path, 8,
                         "the index has major version %u, but this tokmap reads version %u; %s", header->major,
                         INDEX_MAJOR,
                         sound ? "use a newer tokmap" : "use a newer tokmap, or, if no newer tokmap wrote it, " REMEDY);
    if (!sound)
        return CORRUPT(opening, 0, "the hash of the header does not match its bytes; " REMEDY);
    if (header->major != INDEX_MAJOR || header->header_bytes != sizeof *header ||
        header->entry_bytes != sizeof(struct index_entry) || header->reserved)
        return CORRUPT(opening, 8, "the header's version, sizes, or reserved field do not match version %u; " REMEDY,
                       INDEX_MAJOR);
    if (header->file_bytes != index->file_bytes)
        return error_set(opening->error, TOKMAP_ERROR_TRUNCATED, index->path,
                         min64(header->file_bytes, index->file_bytes),
                         "the index is %" PRIu64 " bytes long, but its header says %" PRIu64 "; " REMEDY,
                         index->file_bytes, header->file_bytes);
    if (header->sections > INDEX_SECTIONS_MAX)
        return CORRUPT(opening, 20, "the header counts %u sections, but the limit is %u; " REMEDY, header->sections,
                       INDEX_SECTIONS_MAX);
    uint64_t table_bytes = (uint64_t)header->sections * sizeof(struct index_entry);
    if (header->table_offset < sizeof *header || header->table_offset % INDEX_ALIGN ||
        header->table_offset > index->file_bytes || index->file_bytes - header->table_offset != table_bytes)
        return CORRUPT(opening, 24,
                       "the header places the table at byte %" PRIu64 ", where it cannot end with the file; " REMEDY,
                       header->table_offset);
    return TOKMAP_OK;
}

/* Returns the place where a section of known type is recorded, or NULL for an unknown type. */
static struct index_section *section_slot(struct index *index, uint32_t type, struct index_section *shard)
{
    switch (type) {
    case SECTION_SHARD:
        return shard;
    case SECTION_DOCUMENTS:
        return &index->documents;
    case SECTION_BLOCKS:
        return &index->blocks;
    case SECTION_ORIGIN:
        return &index->origin;
    case SECTION_ABOUT:
        return &index->about;
    case SECTION_STORE:
        return &index->store;
    case SECTION_STREAMS:
        return &index->streams;
    case SECTION_COLUMNS:
        return &index->columns;
    case SECTION_PAGES:
        return &index->token_pages;
    case SECTION_FRAMES:
        return &index->frames;
    default:
        return NULL;
    }
}

static enum tokmap_status check_entry(struct opening *opening, uint32_t number, uint64_t expected,
                                      struct index_section *shard)
{
    const struct index_header *header = &opening->header;
    const struct index_entry *entry = &opening->table[number];
    uint64_t at = header->table_offset + number * sizeof *entry;
    if (entry->offset != expected || entry->bytes > header->table_offset - entry->offset)
        return CORRUPT(opening, at,
                       "section %u begins at byte %" PRIu64 " and has %" PRIu64
                       " bytes, but the previous section requires it to begin at %" PRIu64
                       " and the table begins at %" PRIu64 "; " REMEDY,
                       number, entry->offset, entry->bytes, expected, header->table_offset);
    if (entry->reserved || entry->flags & ~(uint32_t)SECTION_REQUIRED || !entry->type)
        return CORRUPT(opening, at, "entry %u of the table has type 0 or a reserved bit that is set; " REMEDY, number);
    for (uint32_t before = 0; before < number; before++)
        if (opening->table[before].type == entry->type)
            return CORRUPT(opening, at, "two sections have type %u; " REMEDY, entry->type);
    struct index_section *slot = section_slot(opening->index, entry->type, shard);
    if (slot && entry->flags != (section_is_required(entry->type) ? SECTION_REQUIRED : 0))
        return CORRUPT(opening, at, "entry %u of the table has flags that its type does not allow; " REMEDY, number);
    if (slot)
        *slot = (struct index_section){entry->offset, entry->bytes, entry->hash};
    else if (entry->flags & SECTION_REQUIRED)
        return error_set(
            opening->error, TOKMAP_ERROR_UNSUPPORTED, opening->index->path, at,
            "the index has a section of type %u, which this tokmap does not know and which is required to read "
            "the shard; use a newer tokmap",
            entry->type);
    return TOKMAP_OK;
}

static enum tokmap_status check_table(struct opening *opening, struct index_section *shard)
{
    const struct index_header *header = &opening->header;
    size_t table_bytes = header->sections * sizeof(struct index_entry);
    enum tokmap_status status = read_part(opening, header->table_offset, opening->table, table_bytes);
    if (status)
        return status;
    if (hash64(opening->table, table_bytes) != header->table_hash)
        return CORRUPT(opening, header->table_offset, "the hash of the table does not match its bytes; " REMEDY);
    uint64_t expected = sizeof *header;
    for (uint32_t i = 0; i < header->sections; i++) {
        status = check_entry(opening, i, expected, shard);
        if (status)
            return status;
        /* This cannot exceed table_offset: the section ends at or before it, and it is a multiple of the alignment. */
        expected = round_up(opening->table[i].offset + opening->table[i].bytes, INDEX_ALIGN);
    }
    if (expected != header->table_offset)
        return CORRUPT(opening, header->table_offset,
                       "the sections end at byte %" PRIu64 ", but the table begins at %" PRIu64 "; " REMEDY, expected,
                       header->table_offset);
    if (!shard->offset || !opening->index->documents.offset || !opening->index->blocks.offset)
        return CORRUPT(opening, header->table_offset, "the index has no %s section; " REMEDY,
                       !shard->offset                      ? "shard"
                       : !opening->index->documents.offset ? "documents"
                                                           : "blocks");
    return TOKMAP_OK;
}

static bool id_is_sound(uint64_t id, uint64_t vocabulary)
{
    return id == NO_ID || id < vocabulary;
}

static enum tokmap_status check_shard(struct opening *opening, const struct index_section *section)
{
    struct index *index = opening->index;
    struct section_shard *shard = &index->shard;
    if (section->bytes != sizeof *shard)
        return CORRUPT(opening, section->offset, "the shard section has %" PRIu64 " bytes instead of %zu; " REMEDY,
                       section->bytes, sizeof *shard);
    enum tokmap_status status = read_part(opening, section->offset, shard, sizeof *shard);
    if (status)
        return status;
    if (hash64(shard, sizeof *shard) != section->hash)
        return CORRUPT(opening, section->offset, "the hash of the shard section does not match its bytes; " REMEDY);
    if (shard->width != 2 && shard->width != 4)
        return CORRUPT(opening, section->offset + 16,
                       "the width of a token is %u bytes, but it must be 2 or 4; " REMEDY, shard->width);
    if (shard->block_bytes != BLOCK_BYTES)
        return CORRUPT(opening, section->offset + 20, "the size of a block is %u bytes, but it must be %u; " REMEDY,
                       shard->block_bytes, (uint32_t)BLOCK_BYTES);
    if (shard->vocabulary > (uint64_t)1 << 8 * shard->width)
        return CORRUPT(opening, section->offset + 24,
                       "a vocabulary of %" PRIu64 " ids does not fit in tokens of %u bytes; " REMEDY, shard->vocabulary,
                       shard->width);
    if (shard->tokens ? shard->largest_id >= shard->vocabulary : shard->largest_id != 0)
        return CORRUPT(opening, section->offset + 32,
                       "the largest id is %" PRIu64 ", but the vocabulary has %" PRIu64 " ids; " REMEDY,
                       shard->largest_id, shard->vocabulary);
    if (!id_is_sound(shard->eod_id, shard->vocabulary) || !id_is_sound(shard->bos_id, shard->vocabulary))
        return CORRUPT(opening, section->offset + 40, "the EOD or BOS id is not in the vocabulary; " REMEDY);
    for (size_t i = 0; i < sizeof shard->reserved / sizeof shard->reserved[0]; i++)
        if (shard->reserved[i])
            return CORRUPT(opening, section->offset + 88 + 8 * i, "a reserved field is not zero; " REMEDY);
    return TOKMAP_OK;
}

/* Compares the counts of the shard section with each other and with the sizes of the sections. */
static enum tokmap_status check_counts(struct opening *opening, const struct index_section *section)
{
    struct index *index = opening->index;
    const struct section_shard *shard = &index->shard;
    if (mul_overflows(shard->tokens, shard->width, &index->token_bytes) || index->token_bytes > TOKEN_BYTES_MAX)
        return CORRUPT(opening, section->offset,
                       "the shard section counts %" PRIu64 " tokens, which is more than a file can hold; " REMEDY,
                       shard->tokens);
    if (shard->tokens && !shard->documents)
        return CORRUPT(opening, section->offset + 8,
                       "the shard section counts %" PRIu64 " tokens but no document; " REMEDY, shard->tokens);
    index->carries = shard->tokens >> 32;
    if (shard->documents > index->documents.bytes / 4 ||
        index->documents.bytes != round_up(4 * shard->documents, 8) + 8 * index->carries)
        return CORRUPT(opening, index->documents.offset,
                       "the documents section has %" PRIu64 " bytes, which does not match %" PRIu64
                       " documents and %" PRIu64 " tokens; " REMEDY,
                       index->documents.bytes, shard->documents, shard->tokens);
    if (index->blocks.bytes != 8 * div_ceil(index->token_bytes, BLOCK_BYTES))
        return CORRUPT(opening, index->blocks.offset,
                       "the blocks section has %" PRIu64 " bytes, but %" PRIu64 " bytes of tokens need %" PRIu64
                       "; " REMEDY,
                       index->blocks.bytes, index->token_bytes, 8 * div_ceil(index->token_bytes, BLOCK_BYTES));
    if (index->token_pages.offset && index->store.offset)
        return CORRUPT(opening, index->token_pages.offset,
                       "the index has a store section and a pages section, which never occur together; " REMEDY);
    if (index->frames.offset && (index->store.offset || index->token_pages.offset))
        return CORRUPT(opening, index->frames.offset,
                       "the index has a frames section and a %s section, which never occur together; " REMEDY,
                       index->store.offset ? "store" : "pages");
    const uint64_t pages = div_ceil(index->token_bytes, TOKEN_PAGE_BYTES);
    if (index->token_pages.offset && index->token_pages.bytes != sizeof(uint32_t) * pages)
        return CORRUPT(opening, index->token_pages.offset,
                       "the pages section has %" PRIu64 " bytes, but %" PRIu64 " bytes of tokens need %" PRIu64
                       "; " REMEDY,
                       index->token_pages.bytes, index->token_bytes, sizeof(uint32_t) * pages);
    uint8_t content[16];
    index_content_id(shard->width, shard->tokens, shard->documents, index->blocks.hash, index->documents.hash, content);
    if (memcmp(content, shard->content, sizeof content))
        return CORRUPT(opening, section->offset + 56, "the content id does not match the content; " REMEDY);
    return TOKMAP_OK;
}

/* Checks the head of the frames section against the number of tokens. Entries are checked when they are used. */
static enum tokmap_status check_frames(struct opening *opening)
{
    struct index *index = opening->index;
    const struct index_section *section = &index->frames;
    struct frames_head head;
    if (!section->offset)
        return TOKMAP_OK;
    const uint64_t frames = div_ceil(index->token_bytes, FRAME_BYTES);
    if (frames > FRAMES_MOST || section->bytes != sizeof head + frames * sizeof(struct frame_entry))
        return CORRUPT(opening, section->offset,
                       "the frames section has %" PRIu64 " bytes, which does not match %" PRIu64
                       " bytes of tokens; " REMEDY,
                       section->bytes, index->token_bytes);
    const enum tokmap_status status = read_part(opening, section->offset, &head, sizeof head);
    if (status)
        return status;
    if (head.frame_bytes != FRAME_BYTES)
        return CORRUPT(opening, section->offset,
                       "the frames section has frames of %" PRIu64 " bytes, but they must have %" PRIu64 "; " REMEDY,
                       head.frame_bytes, FRAME_BYTES);
    const uint64_t table = SEEK_HEAD + frames * SEEK_ENTRY + SEEK_FOOT;
    if (head.file_bytes < table + frames || head.file_bytes - table > frames * FRAME_STORED_MOST)
        return CORRUPT(opening, section->offset + 8,
                       "the frames section says that the file has %" PRIu64 " bytes, which %" PRIu64
                       " frames cannot have; " REMEDY,
                       head.file_bytes, frames);
    index->sealed_bytes = head.file_bytes;
    return TOKMAP_OK;
}

/* Checks what the store section says about the file with the tokens. */
static enum tokmap_status check_store(struct opening *opening)
{
    struct index *index = opening->index;
    const struct index_section *section = &index->store;
    struct store_head *head = &index->store_head;
    char path[PATH_BYTES_MAX];
    uint64_t bytes;
    if (!section->offset)
        return TOKMAP_OK;
    if (section->bytes <= sizeof *head || section->bytes - sizeof *head > sizeof path)
        return CORRUPT(opening, section->offset,
                       "the store section has %" PRIu64 " bytes, but its path needs 1 to %zu; " REMEDY, section->bytes,
                       sizeof path);
    enum tokmap_status status = read_part(opening, section->offset, head, sizeof *head);
    if (!status && head->path_bytes != section->bytes - sizeof *head)
        return CORRUPT(opening, section->offset + 24,
                       "the store section has a path of %" PRIu64 " bytes, which does not match its size; " REMEDY,
                       head->path_bytes);
    if (!status)
        status = read_part(opening, section->offset + sizeof *head, path, (size_t)head->path_bytes);
    if (status)
        return status;
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(opening->error, "the store section", 0);
    hash_state_add(hash, head, sizeof *head);
    hash_state_add(hash, path, (size_t)head->path_bytes);
    const bool sound = hash_state_64(hash) == section->hash;
    hash_state_free(hash);
    if (!sound)
        return CORRUPT(opening, section->offset, "the hash of the store section does not match its bytes; " REMEDY);
    if (memchr(path, '\0', (size_t)head->path_bytes))
        return CORRUPT(opening, section->offset + sizeof *head,
                       "the path in the store section has a zero byte; " REMEDY);
    if (!element_is_known(head->element) || element_width((enum element)head->element) != index->shard.width)
        return CORRUPT(opening, section->offset,
                       "the store section has tokens of type %" PRIu64
                       ", which do not become tokens of %u bytes; " REMEDY,
                       head->element, index->shard.width);
    if (head->file_bytes > TOKEN_BYTES_MAX || head->offset > head->file_bytes ||
        mul_overflows(index->shard.tokens, (uint64_t)1 << element_shift((enum element)head->element), &bytes) ||
        bytes > head->file_bytes - head->offset)
        return CORRUPT(opening, section->offset + 8,
                       "the store section says that %" PRIu64 " tokens begin at byte %" PRIu64 " of a file of %" PRIu64
                       " bytes, where they have no room; " REMEDY,
                       index->shard.tokens, head->offset, head->file_bytes);
    return TOKMAP_OK;
}

char *index_store_path(const struct index *index)
{
    const char *path = (const char *)(index->bytes + index->store.offset + sizeof index->store_head);
    assert(index->store.offset);
    if (index_need(index, index->store.offset, index->store.bytes, NULL)) /* hold() has read them */
        return NULL;
    return path_join(index->path, *path == '/' ? 0 : path_folder_bytes(index->path), path,
                     (size_t)index->store_head.path_bytes, "");
}

/* Checks the streams section against the number of tokens, from which everything in it but the hashes follows. */
static enum tokmap_status check_streams(struct opening *opening)
{
    struct index *index = opening->index;
    const struct index_section *section = &index->streams;
    const uint64_t needed = div_ceil(index->shard.tokens, 8);
    struct {
        uint64_t count;
        struct stream_entry entry;
    } head;
    static const char mask[sizeof head.entry.name] = STREAM_MASK;
    if (!section->offset)
        return TOKMAP_OK;
    if (section->bytes < sizeof head.count)
        return CORRUPT(opening, section->offset, "the streams section has only %" PRIu64 " bytes; " REMEDY,
                       section->bytes);
    enum tokmap_status status = read_part(opening, section->offset, &head, (size_t)min64(section->bytes, sizeof head));
    if (status)
        return status;
    if (head.count > (section->bytes - sizeof head.count) / sizeof head.entry || !head.count)
        return CORRUPT(opening, section->offset,
                       "the streams section counts %" PRIu64 " streams, which do not fit in its %" PRIu64
                       " bytes; " REMEDY,
                       head.count, section->bytes);
    if (head.count > 1 || memcmp(head.entry.name, mask, sizeof mask))
        return error_set(
            opening->error, TOKMAP_ERROR_UNSUPPORTED, index->path, section->offset + 8,
            "the shard has a stream that this tokmap does not know, '%.16s', and training without it would "
            "not be what was meant; use a newer tokmap",
            head.count > 1 ? "a second one" : head.entry.name);
    if (head.entry.bits != 1)
        return CORRUPT(opening, section->offset + 24, "the mask has %" PRIu64 " bits per token instead of 1; " REMEDY,
                       head.entry.bits);
    if (head.entry.file_bytes != needed)
        return CORRUPT(opening, section->offset + 32,
                       "the mask has %" PRIu64 " bytes, but %" PRIu64 " tokens need %" PRIu64 "; " REMEDY,
                       head.entry.file_bytes, index->shard.tokens, needed);
    if (section->bytes != sizeof head + 8 * div_ceil(needed, BLOCK_BYTES))
        return CORRUPT(opening, section->offset,
                       "the streams section has %" PRIu64 " bytes, but a mask of %" PRIu64 " bytes needs %" PRIu64
                       "; " REMEDY,
                       section->bytes, needed, sizeof head + 8 * div_ceil(needed, BLOCK_BYTES));
    index->mask_bytes = needed;
    return TOKMAP_OK;
}

static enum tokmap_status check_all(struct opening *opening)
{
    struct index_section shard = {0, 0, 0};
    enum tokmap_status status = check_header(opening);
    if (!status)
        status = check_table(opening, &shard);
    if (!status)
        status = check_shard(opening, &shard);
    if (!status)
        status = check_counts(opening, &shard);
    if (!status)
        status = check_store(opening);
    if (!status)
        status = check_frames(opening);
    if (!status)
        status = check_streams(opening);
    return status;
}

/* Reads what the checks need, from cold storage both ends of the file at the same time. */
static void read_pages(struct opening *opening)
{
    const uint64_t bytes = opening->index->file_bytes;
    const bool small = bytes <= COPY_BYTES;
    if (!small)
        os_read_ahead(opening->fd, bytes - PAGE_BYTES, PAGE_BYTES);
    read_page(opening, &opening->start, 0, small ? bytes : PAGE_BYTES);
    read_page(opening, &opening->end, small ? bytes : bytes - PAGE_BYTES, small ? 0 : PAGE_BYTES);
}

/* Has the index, which has been checked, read with pread from now on. It owns the descriptor then. */
static enum tokmap_status use_pages(struct index *index, int fd, struct tokmap_error *error)
{
    struct index_pages *pages;
    if (index_pages_open(&pages, fd, index->file_bytes, index->shard.documents))
        return error_set_memory(error, "an index", index->file_bytes);
    index->pages = pages;
    index->bytes = index_pages_bytes(pages);
    return TOKMAP_OK;
}

/* Makes the bytes of the index, which has been checked, available. */
static enum tokmap_status hold(struct opening *opening)
{
    struct index *index = opening->index;
    index->copied = opening->start.count == index->file_bytes;
    if (index->copied) {
        uint8_t *copy = malloc((size_t)index->file_bytes);
        if (!copy)
            return error_set_memory(opening->error, "an index", index->file_bytes);
        memcpy(copy, opening->start.bytes, (size_t)index->file_bytes);
        index->bytes = copy;
        return TOKMAP_OK;
    }
    if (opening->reading == TOKMAP_READ_PREAD ||
        (opening->reading == TOKMAP_READ_AUTO && !os_file_is_local(opening->fd))) {
        enum tokmap_status status = use_pages(index, opening->fd, opening->error);
        opening->fd = status ? opening->fd : -1;
        if (!status && index->store.offset) /* so that index_store_path() cannot fail */
            status = index_read(index, index->store.offset, index->store.bytes, opening->error);
        if (status)
            index_close(index);
        return status;
    }
    const void *mapped = NULL;
    const int system = os_map_file(opening->fd, index->file_bytes, &mapped);
    if (system)
        return error_set_system(
            opening->error, system, index->path, TOKMAP_NO_OFFSET,
            "the index cannot be mapped; if the process has too many mappings, raise vm.max_map_count");
    index->bytes = mapped;
    return TOKMAP_OK;
}

enum tokmap_status index_open(struct index *index, const char *path, struct tokmap_error *error)
{
    return index_open_as(index, path, TOKMAP_READ_MAPPED, error);
}

enum tokmap_status index_open_as(struct index *index, const char *path, enum tokmap_reading reading,
                                 struct tokmap_error *error)
{
    int fd;
    const enum tokmap_status status = index_open_held(index, path, reading, &fd, error);
    os_close(fd);
    return status;
}

enum tokmap_status index_open_held(struct index *index, const char *path, enum tokmap_reading reading, int *fd,
                                   struct tokmap_error *error)
{
    *fd = -1;
    memset(index, 0, sizeof *index);
    index->path = path;
    struct opening opening;
    opening.index = index;
    opening.reading = reading;
    opening.error = error;
    struct os_stat found;
    int system = os_open(path, OS_READ_NOW, &opening.fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the index cannot be opened");
    enum tokmap_status status;
    system = os_fstat(opening.fd, &found);
    if (system) {
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the index cannot be examined");
        goto done;
    }
    if (found.kind != OS_KIND_FILE) {
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                           "an index must be a regular file, because it is mapped into memory");
        goto done;
    }
    index->file_bytes = found.bytes;
    index->device = found.device;
    index->inode = found.inode;
    read_pages(&opening);
    status = check_all(&opening);
    if (!status)
        status = hold(&opening);
    index->id = opening.header.table_hash;
done:
    if (status)
        os_close(opening.fd);
    else
        *fd = opening.fd;
    return status;
}

void index_close(struct index *index)
{
    if (index->copied)
        free((void *)(uintptr_t)index->bytes);
    else if (index->pages)
        index_pages_close(index->pages);
    else
        os_unmap(index->bytes, index->file_bytes);
    index->bytes = NULL;
    index->pages = NULL;
}

enum tokmap_status index_unmap(struct index *index, struct tokmap_error *error)
{
    struct os_stat now;
    int fd;
    if (!index->bytes || index->copied || index->pages)
        return TOKMAP_OK;
    const uint8_t *mapped = index->bytes;
    const int system = os_open(index->path, OS_READ_NOW, &fd);
    if (system == ENOENT)
        return TOKMAP_OK;
    if (system)
        return error_set_system(error, system, index->path, TOKMAP_NO_OFFSET, "the index cannot be opened");
    if (os_fstat(fd, &now) || now.device != index->device || now.inode != index->inode) {
        os_close(fd);
        return TOKMAP_OK;
    }
    const enum tokmap_status status = use_pages(index, fd, error);
    if (status)
        os_close(fd);
    else
        os_unmap(mapped, index->file_bytes);
    return status;
}

enum tokmap_status index_read_failed(const struct index *index, int system, uint64_t at, struct tokmap_error *error)
{
    if (system == ENODATA)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, index->path, at,
                         "the index has been truncated since it was opened; " REMEDY);
    return error_set_system(error, system, index->path, at, "the index cannot be read from storage; " REMEDY);
}

enum tokmap_status index_read(const struct index *index, uint64_t at, uint64_t bytes, struct tokmap_error *error)
{
    const int system = index_pages_need(index->pages, at, bytes);
    return system ? index_read_failed(index, system, at, error) : TOKMAP_OK;
}

enum tokmap_status index_present(const struct index *index, uint64_t at, uint64_t bytes, struct tokmap_error *error)
{
    if (index->pages)
        return index_read(index, at, bytes, error);
    int system = index->copied ? 0 : os_map_populate(index->bytes + at, bytes);
    if (!system || system == ENOTSUP ||
        system == ENOMEM) /* the file is not at fault; the access itself will read the page */
        return TOKMAP_OK;
    if (system == EFAULT)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, index->path, at,
                         "the index has been truncated since it was opened; " REMEDY);
    return error_set_system(error, system, index->path, at, "the index cannot be read from storage; " REMEDY);
}

uint64_t index_block_hash(const struct index *index, uint64_t block)
{
    assert(block < index_blocks(index));
    return load64(index->bytes + index->blocks.offset + 8 * block);
}

enum tokmap_status index_token_pages(const struct index *index, uint64_t first, uint64_t count, uint32_t *hashes,
                                     struct tokmap_error *error)
{
    const uint64_t at = index->token_pages.offset + first * sizeof *hashes, bytes = count * sizeof *hashes;
    assert(index->token_pages.offset && count && first <= index->token_pages.bytes / sizeof *hashes &&
           count <= index->token_pages.bytes / sizeof *hashes - first);
    if (index->pages) {
        const int system = index_pages_read(index->pages, at, hashes, (size_t)bytes);
        return system ? index_read_failed(index, system, at, error) : TOKMAP_OK;
    }
    const enum tokmap_status status = index_present(index, at, bytes, error);
    if (!status)
        memcpy(hashes, index->bytes + at, (size_t)bytes);
    return status;
}

void index_token_pages_ask(const struct index *index, uint64_t first, uint64_t count)
{
    const uint64_t at = index->token_pages.offset + first * sizeof(uint32_t);
    if (index->pages)
        index_pages_ask(index->pages, at, count * sizeof(uint32_t));
    else if (!index->copied)
        os_map_ask(index->bytes + at, count * sizeof(uint32_t));
}

enum tokmap_status index_frame_entries(const struct index *index, uint64_t first, uint64_t count,
                                       struct frame_entry *entries, struct tokmap_error *error)
{
    const uint64_t at = index_frame_at(index, first), bytes = count * sizeof *entries;
    assert(index->frames.offset && first <= index_frames(index) && count <= index_frames(index) - first);
    if (index->pages) {
        const int system = index_pages_read(index->pages, at, entries, (size_t)bytes);
        return system ? index_read_failed(index, system, at, error) : TOKMAP_OK;
    }
    const enum tokmap_status status = index_present(index, at, bytes, error);
    if (!status)
        memcpy(entries, index->bytes + at, (size_t)bytes);
    return status;
}

void index_frames_ask(const struct index *index)
{
    if (index->pages)
        index_pages_ask(index->pages, index->frames.offset, index->frames.bytes);
    else if (!index->copied)
        os_map_ask(index->bytes + index->frames.offset, index->frames.bytes);
}

uint64_t index_mask_hash(const struct index *index, uint64_t block)
{
    assert(block < index_mask_blocks(index));
    return load64(index->bytes + index->streams.offset + 8 + sizeof(struct stream_entry) + 8 * block);
}

enum tokmap_status index_about(const struct index *index, const char **about, uint64_t *bytes,
                               struct tokmap_error *error)
{
    *about = index->about.offset ? (const char *)(index->bytes + index->about.offset) : "";
    *bytes = index->about.bytes;
    uint32_t *sound = (uint32_t *)(uintptr_t)&index->about_sound; /* the only member that changes */
    if (!index->about.offset || __atomic_load_n(sound, __ATOMIC_RELAXED))
        return TOKMAP_OK;
    const enum tokmap_status status = index_need(index, index->about.offset, index->about.bytes, error);
    if (status)
        return status;
    if (hash64(*about, *bytes) != index->about.hash)
        return error_set(error, TOKMAP_ERROR_CORRUPT, index->path, index->about.offset,
                         "the hash of the about section does not match its bytes; " REMEDY);
    __atomic_store_n(sound, 1, __ATOMIC_RELAXED);
    return TOKMAP_OK;
}

void index_content_id(uint32_t width, uint64_t tokens, uint64_t documents, uint64_t blocks_hash,
                      uint64_t documents_hash, uint8_t content[16])
{
    struct content_source source = {width, tokens, documents, blocks_hash, documents_hash};
    hash128_store(hash128(&source, sizeof source), content);
}
