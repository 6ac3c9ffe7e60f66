/* SPDX-License-Identifier: MIT */
#include "foreign_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

enum tokmap_status foreign_bytes_map(struct foreign_bytes *bytes, struct tokmap_error *error)
{
    const void *mapped = NULL;
    if (bytes->map || !bytes->count)
        return TOKMAP_OK;
    const int system = os_map_file(bytes->fd, bytes->count, &mapped);
    if (system)
        return error_set_system(error, system, bytes->path, TOKMAP_NO_OFFSET,
                                "the index cannot be mapped; raise vm.max_map_count or ulimit -v");
    bytes->map = mapped;
    return TOKMAP_OK;
}

void foreign_bytes_unmap(struct foreign_bytes *bytes)
{
    os_unmap(bytes->map, bytes->count);
    bytes->map = NULL;
}

/* Copies `count` bytes from byte `at` on, which are within the file. */
static enum tokmap_status foreign_load(const struct foreign_bytes *bytes, uint64_t at, void *into, size_t count,
                                       struct tokmap_error *error)
{
    size_t got = 0;
    assert(at <= bytes->count && count <= bytes->count - at);
    if (bytes->map) {
        memcpy(into, bytes->map + at, count);
        return TOKMAP_OK;
    }
    const int system = os_pread(bytes->fd, into, count, at, &got);
    if (system)
        return error_set_system(error, system, bytes->path, at, "the index cannot be read");
    if (got < count)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, bytes->path, at + got,
                         "the index ends at this byte, but it was longer when it was opened; copy it again");
    return TOKMAP_OK;
}

static enum tokmap_status foreign_load32(const struct foreign_bytes *bytes, uint64_t at, uint32_t *value,
                                         struct tokmap_error *error)
{
    uint8_t loaded[4] = {0};
    const enum tokmap_status status = foreign_load(bytes, at, loaded, sizeof loaded, error);
    *value = load32(loaded);
    return status;
}

enum tokmap_status foreign_load64(const struct foreign_bytes *bytes, uint64_t at, uint64_t *value,
                                  struct tokmap_error *error)
{
    uint8_t loaded[8] = {0};
    const enum tokmap_status status = foreign_load(bytes, at, loaded, sizeof loaded, error);
    *value = load64(loaded);
    return status;
}

/* ---- Megatron ---- */

#define MAGIC_BYTES 9
#define OLD_MAGIC "TNTIDX\0" /* fairseq's "cached" index */
#define REMEDY "make both files again with preprocess_data.py, or copy them from a good copy"

bool megatron_is(const uint8_t *head, size_t bytes)
{
    return bytes >= MAGIC_BYTES && !memcmp(head, MEGATRON_MAGIC, MAGIC_BYTES);
}

/* Computes where the arrays begin. Returns false if their size is not the rest of the index. */
static bool arrays_place(struct megatron_index *index, bool *modes)
{
    uint64_t end = MEGATRON_HEAD_BYTES, bytes;
    index->lengths_at = end;
    if (mul_overflows(index->sequences, 4, &bytes) || add_overflows(end, bytes, &end))
        return false;
    index->pointers_at = end;
    if (mul_overflows(index->sequences, 8, &bytes) || add_overflows(end, bytes, &end))
        return false;
    index->documents_at = end;
    if (mul_overflows(index->documents + 1, 8, &bytes) || add_overflows(end, bytes, &end))
        return false;
    *modes = end < index->bytes && index->bytes - end == index->sequences;
    return end == index->bytes || *modes;
}

enum tokmap_status megatron_parse(struct megatron_index *index, const char *path, const uint8_t *head, size_t bytes,
                                  uint64_t index_bytes, struct tokmap_error *error)
{
    if (bytes >= sizeof OLD_MAGIC && !memcmp(head, OLD_MAGIC, sizeof OLD_MAGIC))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, 0,
                         "this is an index of fairseq's older kind (cached), which Megatron no longer writes; make "
                         "both files again with preprocess_data.py");
    if (!megatron_is(head, bytes))
        return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                         "this is not a Megatron index (it does not begin with the bytes MMIDIDX); name the prefix of "
                         "a .bin and an .idx that preprocess_data.py wrote");
    if (bytes < MEGATRON_HEAD_BYTES)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, bytes,
                         "the index ends inside its head of %d bytes; " REMEDY, MEGATRON_HEAD_BYTES);
    if (load64(head + 9) != 1)
        return error_set(error, TOKMAP_ERROR_VERSION, path, 9,
                         "the index has version %" PRIu64 ", but tokmap reads version 1", load64(head + 9));
    const uint8_t code = head[17];
    if (!element_is_known(code) || code == ELEMENT_U32)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, 17,
                         "the index says that its tokens have type %u (%s), but token ids are integers (types 1 to 5 "
                         "and 8); " REMEDY,
                         code, code == 6 || code == 7 ? element_name(code) : "unknown");
    const uint64_t ends = load64(head + 26);
    bool modes = false;
    *index = (struct megatron_index){
        .element = (enum element)code, .sequences = load64(head + 18), .documents = ends - 1, .bytes = index_bytes};
    if (!ends || ends == UINT64_MAX || !arrays_place(index, &modes))
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, 18,
                         "the index counts %" PRIu64 " sequences and %" PRIu64 " starts of documents, which does not "
                         "give its size of %" PRIu64 " bytes; " REMEDY,
                         index->sequences, ends, index_bytes);
    if (modes)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, index_bytes - index->sequences,
                         "the index has a mode for each sequence: the data is multimodal, which tokmap does not read");
    return TOKMAP_OK;
}

/* Arguments of megatron_check_ends(). */
struct ends {
    uint64_t first_document, last_document; /* the first and the last number of the documents */
    uint64_t first_pointer, last_pointer;   /* of the sequences, if there are any */
    uint32_t last_length;
};

static enum tokmap_status ends_load(const struct megatron_index *index, const struct foreign_bytes *bytes,
                                    struct ends *ends, struct tokmap_error *error)
{
    const uint64_t last = index->sequences - 1;
    *ends = (struct ends){0};
    enum tokmap_status status = foreign_load64(bytes, index->documents_at, &ends->first_document, error);
    if (!status)
        status = foreign_load64(bytes, index->documents_at + 8 * index->documents, &ends->last_document, error);
    if (status || !index->sequences)
        return status;
    status = foreign_load64(bytes, index->pointers_at, &ends->first_pointer, error);
    if (!status)
        status = foreign_load64(bytes, index->pointers_at + 8 * last, &ends->last_pointer, error);
    if (!status)
        status = foreign_load32(bytes, index->lengths_at + 4 * last, &ends->last_length, error);
    return status;
}

enum tokmap_status megatron_check_ends(const struct megatron_index *index, const struct foreign_bytes *index_bytes,
                                       const char *bin_path, uint64_t bin_bytes, struct foreign_layout *layout,
                                       struct tokmap_error *error)
{
    const char *path = index_bytes->path;
    const uint32_t width = element_bytes(index->element);
    const uint64_t last = index->sequences - 1;
    uint64_t bytes = 0;
    struct ends ends;
    const enum tokmap_status status = ends_load(index, index_bytes, &ends, error);
    if (status)
        return status;
    if (ends.first_document)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->documents_at,
                         "the first document begins at sequence %" PRIu64 " instead of 0; " REMEDY,
                         ends.first_document);
    if (ends.last_document != index->sequences)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->documents_at + 8 * index->documents,
                         "the last document ends at sequence %" PRIu64 ", but the index counts %" PRIu64 "; " REMEDY,
                         ends.last_document, index->sequences);
    if (index->sequences) {
        const uint32_t tokens = ends.last_length;
        if (ends.first_pointer)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->pointers_at,
                             "the first sequence begins at byte %" PRIu64 " of the tokens instead of 0; " REMEDY,
                             ends.first_pointer);
        bytes = ends.last_pointer;
        if (tokens >> 31 || bytes % width || bytes > FOREIGN_BYTES_MAX)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->pointers_at + 8 * last,
                             "the last sequence begins at byte %" PRId64
                             " of the tokens and has %d tokens of %u bytes, "
                             "which cannot be; " REMEDY,
                             (int64_t)bytes, (int32_t)tokens, width);
        bytes += (uint64_t)tokens * width;
    }
    if (bytes != bin_bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, bin_path, min64(bytes, bin_bytes),
                         "the file is %" PRIu64 " bytes long, but the sequences of its index (%.300s) end at byte "
                         "%" PRIu64 "; " REMEDY,
                         bin_bytes, path, bytes);
    if (bytes && !index->documents)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, 26, "the index has sequences, but no document; " REMEDY);
    *layout = (struct foreign_layout){index->element, 0, bytes / width, bytes, TOKMAP_NO_ID, TOKMAP_NO_ID};
    return TOKMAP_OK;
}

/* Finds the end of a document (< documents), in tokens. Each number is compared with its bounds, but not with its
 * neighbors. */
static enum tokmap_status megatron_document_end(const struct megatron_index *index, const struct foreign_bytes *bytes,
                                                uint64_t tokens, uint64_t document, uint64_t *end,
                                                struct tokmap_error *error)
{
    assert(document < index->documents);
    const char *path = bytes->path;
    const uint32_t width = element_bytes(index->element);
    uint64_t sequence, pointer;
    enum tokmap_status status = foreign_load64(bytes, index->documents_at + 8 * (document + 1), &sequence, error);
    if (status)
        return status;
    if (sequence > index->sequences)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->documents_at + 8 * (document + 1),
                         "document %" PRIu64 " begins at sequence %" PRId64 ", but the index has %" PRIu64
                         " sequences; " REMEDY,
                         document + 1, (int64_t)sequence, index->sequences);
    if (sequence == index->sequences) {
        *end = tokens;
        return TOKMAP_OK;
    }
    if ((status = foreign_load64(bytes, index->pointers_at + 8 * sequence, &pointer, error)))
        return status;
    if (pointer % width || pointer / width > tokens)
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->pointers_at + 8 * sequence,
                         "sequence %" PRIu64 " begins at byte %" PRId64 " of the tokens, which is not the start of one "
                         "of the %" PRIu64 " tokens of %u bytes; " REMEDY,
                         sequence, (int64_t)pointer, tokens, width);
    *end = pointer / width;
    return TOKMAP_OK;
}

/* ---- every number ---- */

enum { AT_ONCE = 8192 }; /* numbers that are read and compared at once; they stay in the cache */

struct numbers {
    uint64_t wide[AT_ONCE]; /* pointers, or first sequences of documents */
    uint32_t lengths[AT_ONCE];
};

/* Compares `count` sequences from number `first` on, which have been read. *expected: where the first one begins. */
static enum tokmap_status sequences_check(const struct megatron_index *index, const char *path,
                                          const struct numbers *numbers, uint64_t first, size_t count,
                                          uint64_t *expected, struct tokmap_error *error)
{
    const uint32_t width = element_bytes(index->element);
    for (size_t i = 0; i < count; i++) {
        const uint32_t tokens = numbers->lengths[i];
        if (tokens >> 31)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->lengths_at + 4 * (first + i),
                             "sequence %" PRIu64 " has a negative number of tokens (%d); " REMEDY, first + i,
                             (int32_t)tokens);
        if (numbers->wide[i] != *expected)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->pointers_at + 8 * (first + i),
                             "sequence %" PRIu64 " begins at byte %" PRId64 " of the tokens, but the lengths of the "
                             "sequences before it give %" PRIu64 " (numpy 2 wraps these numbers beyond 2 GiB in older "
                             "versions of Megatron); " REMEDY,
                             first + i, (int64_t)numbers->wide[i], *expected);
        *expected += (uint64_t)tokens * width; /* at most 2^34 each, and the index has fewer than 2^62 bytes */
        if (*expected > FOREIGN_BYTES_MAX)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->lengths_at + 4 * (first + i),
                             "the sequences have more than 2^62 bytes; " REMEDY);
    }
    return TOKMAP_OK;
}

/* Compares `count` starts of documents, which have been read and of which the first is that of document `first`.
 * *before: the start of the document before it. */
static enum tokmap_status documents_check(const struct megatron_index *index, const char *path,
                                          const struct numbers *numbers, uint64_t first, size_t count, uint64_t *before,
                                          struct tokmap_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t next = numbers->wide[i];
        if (next < *before || next > index->sequences)
            return error_set(error, TOKMAP_ERROR_CORRUPT, path, index->documents_at + 8 * (first + i),
                             "document %" PRIu64 " ends at sequence %" PRId64 ", but begins at sequence %" PRId64
                             ", and the index has %" PRIu64 "; " REMEDY,
                             first + i - (first + i > 0), (int64_t)next, (int64_t)*before, index->sequences);
        *before = next;
    }
    return TOKMAP_OK;
}

enum tokmap_status megatron_check(const struct megatron_index *index, const struct foreign_bytes *bytes,
                                  struct tokmap_error *error)
{
    struct numbers *numbers = malloc(sizeof *numbers);
    enum tokmap_status status =
        numbers ? TOKMAP_OK : error_set_memory(error, "the numbers of an index", sizeof *numbers);
    uint64_t expected = 0, before = 0;
    for (uint64_t i = 0; i < index->sequences && !status; i += AT_ONCE) {
        const size_t count = (size_t)min64(AT_ONCE, index->sequences - i);
        status = foreign_load(bytes, index->lengths_at + 4 * i, numbers->lengths, 4 * count, error);
        if (!status)
            status = foreign_load(bytes, index->pointers_at + 8 * i, numbers->wide, 8 * count, error);
        if (!status)
            status = sequences_check(index, bytes->path, numbers, i, count, &expected, error);
    }
    for (uint64_t i = 0; i <= index->documents && !status; i += AT_ONCE) {
        const size_t count = (size_t)min64(AT_ONCE, index->documents + 1 - i);
        status = foreign_load(bytes, index->documents_at + 8 * i, numbers->wide, 8 * count, error);
        if (!status)
            status = documents_check(index, bytes->path, numbers, i, count, &before, error);
    }
    free(numbers);
    return status;
}

/* ---- any index ---- */

enum { ENDS_AT_ONCE = 4096 };

static enum tokmap_status bad_end(const struct foreign_index *index, uint64_t document, uint64_t start, uint64_t end,
                                  struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, index->bytes.path, 8 * document,
                     "document %" PRIu64 " ends at token %" PRIu64 ", but begins at token %" PRIu64
                     ", and the file has %" PRIu64 " tokens; copy the files of this .ds again from where datatrove "
                     "wrote them",
                     document, end, start, index->tokens);
}

enum tokmap_status foreign_index_end(const struct foreign_index *index, uint64_t document, uint64_t *end,
                                     struct tokmap_error *error)
{
    assert(document < index->count);
    uint64_t start = 0;
    if (index->is_megatron)
        return megatron_document_end(&index->megatron, &index->bytes, index->tokens, document, end, error);
    enum tokmap_status status = foreign_load64(&index->bytes, 8 * document, end, error);
    if (status || *end <= index->tokens)
        return status;
    status = document ? foreign_load64(&index->bytes, 8 * (document - 1), &start, error) : TOKMAP_OK;
    return status ? status : bad_end(index, document, start, *end, error);
}

enum tokmap_status foreign_index_check(const struct foreign_index *index, struct tokmap_error *error)
{
    uint64_t ends[ENDS_AT_ONCE], before = 0;
    if (index->is_megatron)
        return megatron_check(&index->megatron, &index->bytes, error);
    for (uint64_t i = 0; i < index->count; i += ENDS_AT_ONCE) {
        const size_t count = (size_t)min64(ENDS_AT_ONCE, index->count - i);
        const enum tokmap_status status = foreign_load(&index->bytes, 8 * i, ends, 8 * count, error);
        if (status)
            return status;
        for (size_t j = 0; j < count; before = ends[j++])
            if (ends[j] < before || ends[j] > index->tokens)
                return bad_end(index, i + j, before, ends[j], error);
    }
    return TOKMAP_OK;
}
