/* SPDX-License-Identifier: MIT */
/*
 * index_verify.c - reads every byte of an index and checks hashes, padding, and the rules for the contents of sections.
 *
 * It reports at most one fault for the content of a section, because a first contradiction makes later ones
 * meaningless. If the hash of a section does not match, its content is not examined.
 */
#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "index_columns.h"
#include "index_documents.h"
#include "index_verify.h"
#include "platform/os.h"
#include "text/json_scan.h"
#include "text/utf8.h"

#define REMEDY "restore this index from a good copy, or pack the shard again"
#define POPULATE_BYTES ((uint64_t)16 << 20)

struct check {
    const struct index *index;
    int (*fault)(void *user, const struct tokmap_error *error);
    void *user;
    int ended; /* the value that fault() returned */
};

#define FAULT(check, status, at, ...)                                                                                  \
    do {                                                                                                               \
        struct tokmap_error found_;                                                                                    \
        (void)error_set(&found_, status, (check)->index->path, at, __VA_ARGS__);                                       \
        if (!(check)->ended)                                                                                           \
            (check)->ended = (check)->fault((check)->user, &found_);                                                   \
    } while (0)

static const char *section_name(uint32_t type)
{
    static const char *const names[] = {"?",      "shard", "documents", "blocks",  "origin", "streams",
                                        "frames", "about", "store",     "columns", "pages"};
    return type < sizeof names / sizeof names[0] ? names[type] : "of an unknown type";
}

static bool populate_all(struct check *check)
{
    const struct index *index = check->index;
    for (uint64_t at = 0; at < index->file_bytes; at += POPULATE_BYTES) {
        struct tokmap_error found;
        if (index_present(index, at, min64(POPULATE_BYTES, index->file_bytes - at), &found)) {
            check->ended = check->fault(check->user, &found);
            return false;
        }
    }
    return true;
}

enum tokmap_status index_blocks_check(const struct index *index, uint64_t first, uint64_t last,
                                      struct tokmap_error *error)
{
    assert(first <= last && last <= index_blocks(index));
    return index_present(index, index->blocks.offset + 8 * first, 8 * (last - first), error);
}

enum tokmap_status index_bytes_check(const struct index *index, uint64_t at, uint64_t bytes, struct tokmap_error *error)
{
    assert(at <= index->file_bytes && bytes <= index->file_bytes - at);
    return index_present(index, at, bytes, error);
}

bool index_was_cut(const struct index *index)
{
    struct os_stat now;
    return !os_stat(index->path, &now) && now.inode == index->inode && now.device == index->device &&
           now.bytes != index->file_bytes;
}

static void check_zeros(struct check *check, uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at++) {
        if (check->index->bytes[at]) {
            FAULT(check, TOKMAP_ERROR_CORRUPT, at, "a byte between two sections is not zero; " REMEDY);
            return;
        }
    }
}

/* Checks that carries are in order, that ends never decrease, and that the last end is the number of tokens. These
 * checks are sufficient: the high half of an end is the number of carries before it, so a wrong carry makes an end
 * decrease or makes the last end wrong. */
static void check_documents(struct check *check)
{
    const struct index *index = check->index;
    const uint8_t *section = index->bytes + index->documents.offset;
    uint64_t documents = index->shard.documents, lows = round_up(4 * documents, 8);
    uint64_t high = 0, before = 0;
    for (uint64_t k = 0; k < index->carries; k++) {
        uint64_t carry = load64(section + lows + 8 * k);
        if (carry >= documents || carry < high) {
            FAULT(check, TOKMAP_ERROR_CORRUPT, index->documents.offset + lows + 8 * k,
                  "carry %" PRIu64 " names document %" PRIu64 ", which is out of order or does not exist; " REMEDY, k,
                  carry);
            return;
        }
        high = carry;
    }
    high = 0;
    for (uint64_t i = 0; i < documents; i++) {
        while (high < index->carries && load64(section + lows + 8 * high) <= i)
            high++;
        uint64_t end = high << 32 | load32(section + 4 * i);
        if (end < before) {
            FAULT(check, TOKMAP_ERROR_CORRUPT, index->documents.offset + 4 * i,
                  "document %" PRIu64 " ends at token %" PRIu64 ", before it begins at token %" PRIu64 "; " REMEDY, i,
                  end, before);
            return;
        }
        before = end;
    }
    if (before != index->shard.tokens)
        FAULT(check, TOKMAP_ERROR_CORRUPT, index->documents.offset,
              "the last document ends at token %" PRIu64 ", but the shard has %" PRIu64 " tokens; " REMEDY, before,
              index->shard.tokens);
    else if (lows > 4 * documents && load32(section + 4 * documents))
        FAULT(check, TOKMAP_ERROR_CORRUPT, index->documents.offset + 4 * documents,
              "the padding of the documents section is not zero; " REMEDY);
}

static void check_origin(struct check *check)
{
    const struct index *index = check->index;
    const uint8_t *section = index->bytes + index->origin.offset;
    struct origin_layout layout;
    if (!origin_layout_of(index, &layout)) {
        FAULT(check, TOKMAP_ERROR_CORRUPT, index->origin.offset,
              "the head of the origin section contradicts its size; " REMEDY);
        return;
    }
    if (!layout.runs != !index->shard.documents) {
        FAULT(check, TOKMAP_ERROR_CORRUPT, index->origin.offset,
              "the origin section has %" PRIu64 " runs for %" PRIu64 " documents; " REMEDY, layout.runs,
              index->shard.documents);
        return;
    }
    uint64_t before = 0;
    for (uint64_t i = 0; i < layout.runs; i++) {
        struct origin_run run;
        uint64_t at = layout.runs_at + i * sizeof run, last;
        memcpy(&run, section + at, sizeof run);
        bool ordered = i ? run.document > before : run.document == 0;
        if (!ordered || run.document >= index->shard.documents || run.file >= layout.files ||
            add_overflows(run.record, index->shard.documents, &last)) {
            FAULT(check, TOKMAP_ERROR_CORRUPT, index->origin.offset + at,
                  "run %" PRIu64 " of the origin section is out of order or out of bounds; " REMEDY, i);
            return;
        }
        before = run.document;
    }
    uint64_t end = 0;
    for (uint64_t i = 0; i < layout.files; i++) {
        uint64_t at = layout.files_at + i * sizeof(struct origin_file), next = load64(section + at);
        if (next < end || next > layout.path_bytes) {
            FAULT(check, TOKMAP_ERROR_CORRUPT, index->origin.offset + at,
                  "path %" PRIu64 " of the origin section is out of order or out of bounds; " REMEDY, i);
            return;
        }
        end = next;
    }
    if (end != layout.path_bytes)
        FAULT(check, TOKMAP_ERROR_CORRUPT, index->origin.offset,
              "the paths of the origin section end at byte %" PRIu64 " of %" PRIu64 "; " REMEDY, end,
              layout.path_bytes);
}

/* Checks that frames follow each other and end where the seek table begins. */
static void check_frames(struct check *check)
{
    const struct index *index = check->index;
    const uint64_t frames = index_frames(index);
    uint64_t before = 0;
    for (uint64_t i = 0; i < frames; i++) {
        const uint64_t at = index_frame_at(index, i), end = load64(index->bytes + at);
        if (end <= before || end - before > FRAME_STORED_MOST) {
            FAULT(check, TOKMAP_ERROR_CORRUPT, at,
                  "frame %" PRIu64 " of the tokens ends at byte %" PRIu64 ", but it begins at byte %" PRIu64
                  " and has 1 to %" PRIu64 " bytes; " REMEDY,
                  i, end, before, FRAME_STORED_MOST);
            return;
        }
        before = end;
    }
    const uint64_t table = SEEK_HEAD + frames * SEEK_ENTRY + SEEK_FOOT;
    if (before != index->sealed_bytes - table)
        FAULT(check, TOKMAP_ERROR_CORRUPT, index->frames.offset + 8,
              "the frames end at byte %" PRIu64 " of %" PRIu64 ", where the seek table has no place; " REMEDY, before,
              index->sealed_bytes);
}

static void check_about(struct check *check)
{
    const struct index_section *about = &check->index->about;
    const char *text = (const char *)check->index->bytes + about->offset;
    const uint64_t valid = utf8_valid_prefix(text, about->bytes);
    if (valid != about->bytes)
        FAULT(check, TOKMAP_ERROR_CORRUPT, about->offset + valid, "the about section is not UTF-8; " REMEDY);
    else if (!json_is_valid(text, about->bytes, JSON_DEPTH))
        FAULT(check, TOKMAP_ERROR_CORRUPT, about->offset, "the about section is not JSON; " REMEDY);
}

/* Checks that the minor version is the lowest one that has all sections. Of versions and types of sections that this
 * code does not know, it cannot tell. */
static void check_minor(struct check *check, const struct index_header *header)
{
    uint16_t lowest = 0;
    bool unknown = header->minor > INDEX_MINOR;
    for (uint32_t i = 0; i < header->sections; i++) {
        struct index_entry entry;
        memcpy(&entry, check->index->bytes + header->table_offset + i * sizeof entry, sizeof entry);
        unknown |= entry.type > SECTION_PAGES;
        lowest = section_minor(entry.type) > lowest ? section_minor(entry.type) : lowest;
    }
    if (header->minor < lowest || (header->minor > lowest && !unknown))
        FAULT(check, TOKMAP_ERROR_CORRUPT, offsetof(struct index_header, minor),
              "the minor version is %u, but the lowest one that has all sections is %u; " REMEDY, header->minor,
              lowest);
}

static void check_columns(struct check *check)
{
    struct tokmap_error found;
    if (index_columns_check(check->index, &found) && !check->ended)
        check->ended = check->fault(check->user, &found);
}

/* Checks that the header and the table have not changed since the index was opened. If they have, returns false,
 * because their offsets cannot be trusted. */
static bool check_frame(struct check *check, struct index_header *header)
{
    const struct index *index = check->index;
    if (index_was_cut(index)) {
        FAULT(check, TOKMAP_ERROR_TRUNCATED, 0,
              "the index is no longer %" PRIu64 " bytes long, as it was when it was opened; " REMEDY,
              index->file_bytes);
        return false;
    }
    if (!populate_all(check))
        return false;
    memcpy(header, index->bytes, sizeof *header);
    uint64_t table_bytes = (uint64_t)header->sections * sizeof(struct index_entry);
    if (hash64(header, offsetof(struct index_header, header_hash)) != header->header_hash ||
        header->file_bytes != index->file_bytes || header->table_offset > index->file_bytes ||
        table_bytes != index->file_bytes - header->table_offset ||
        hash64(index->bytes + header->table_offset, table_bytes) != header->table_hash) {
        FAULT(check, TOKMAP_ERROR_CORRUPT, 0,
              "the header or the table has changed since the index was opened; " REMEDY);
        return false;
    }
    return true;
}

static int verify_bytes(const struct index *index, int (*fault)(void *user, const struct tokmap_error *error),
                        void *user)
{
    struct check check = {index, fault, user, 0};
    struct index_header header;
    if (!check_frame(&check, &header))
        return check.ended;
    uint64_t end = sizeof header;
    check_minor(&check, &header);
    for (uint32_t i = 0; i < header.sections && !check.ended; i++) {
        struct index_entry entry;
        memcpy(&entry, index->bytes + header.table_offset + i * sizeof entry, sizeof entry);
        if (entry.offset < end || entry.offset > index->file_bytes || entry.bytes > index->file_bytes - entry.offset) {
            FAULT(&check, TOKMAP_ERROR_CORRUPT, header.table_offset + i * sizeof entry,
                  "the table has changed since the index was opened; " REMEDY);
            break;
        }
        check_zeros(&check, end, entry.offset);
        end = entry.offset + entry.bytes;
        if (hash64(index->bytes + entry.offset, entry.bytes) != entry.hash)
            FAULT(&check, TOKMAP_ERROR_CORRUPT, entry.offset,
                  "the hash of section %u (%s, bytes %" PRIu64 "..%" PRIu64 ") does not match its bytes; " REMEDY, i,
                  section_name(entry.type), entry.offset, end);
        else if (entry.type == SECTION_SHARD && memcmp(index->bytes + entry.offset, &index->shard, sizeof index->shard))
            FAULT(&check, TOKMAP_ERROR_CORRUPT, entry.offset,
                  "the shard section has changed since the index was opened; " REMEDY);
        else if (entry.type == SECTION_DOCUMENTS && entry.offset == index->documents.offset)
            check_documents(&check);
        else if (entry.type == SECTION_ORIGIN && entry.offset == index->origin.offset)
            check_origin(&check);
        else if (entry.type == SECTION_ABOUT && entry.offset == index->about.offset)
            check_about(&check);
        else if (entry.type == SECTION_COLUMNS && entry.offset == index->columns.offset)
            check_columns(&check);
        else if (entry.type == SECTION_FRAMES && entry.offset == index->frames.offset)
            check_frames(&check);
    }
    if (!check.ended)
        check_zeros(&check, end, header.table_offset);
    return check.ended;
}

/* Verifies an index. One that is read with pread is mapped for this one look at all of its bytes, because the memory of
 * its pages would keep them all. */
int index_verify(const struct index *index, int (*fault)(void *user, const struct tokmap_error *error), void *user)
{
    struct index mapped = *index;
    struct tokmap_error found;
    if (!index->pages)
        return verify_bytes(index, fault, user);
    mapped.pages = NULL;
    const int system = index_pages_map(index->pages, &mapped.bytes);
    if (system) {
        (void)error_set_system(&found, system, index->path, TOKMAP_NO_OFFSET,
                               "the index cannot be mapped; if the process has too many mappings, raise "
                               "vm.max_map_count");
        return fault(user, &found);
    }
    const int ended = verify_bytes(&mapped, fault, user);
    os_unmap(mapped.bytes, mapped.file_bytes);
    return ended;
}
