/* SPDX-License-Identifier: MIT */
/*
 * plan_file.c - reads, checks, and writes plans; FORMAT.md specifies the bytes.
 *
 * Example: documents of 5, 3, and 2 tokens in rows of 6 tokens. Row 0 has the first document, and row 1 has the other
 * two:
 *
 *     first      0 1
 *     segment 0  first_token 0  tokens 5  ordered 0
 *     segment 1  first_token 5  tokens 3  ordered 1
 *     segment 2  first_token 8  tokens 2  ordered 2
 *
 * Token 9: a binary search through `ordered` finds that entry 2, segment 2, is the last one that begins at or before
 * it; a binary search in `first` finds row 1.
 *
 * Opening does not check rows and segments, because that would take time proportional to their number. Each function
 * therefore checks what it returns.
 */
#include "plan_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

#define LINE 64           /* bytes of a cache line */
#define PREFETCH_MOST 512 /* bytes of the segments of a row; those after them have time to come */
#define SEGMENTS_READ 128 /* of a row, that are read at once with pread */
#define REMEDY "restore this plan from a good copy, or make it again with `tokmap plan`"
#define NOT_A_PLAN                                                                                                     \
    "this is not a tokmap plan (it does not begin with the bytes of one); name a file that `tokmap plan` wrote"

#define CORRUPT(plan, error, offset, ...) error_set((error), TOKMAP_ERROR_CORRUPT, (plan)->path, offset, __VA_ARGS__)

static uint64_t segments_offset(uint64_t rows)
{
    return round_up(sizeof(struct plan_header) + 4 * rows, sizeof(struct plan_segment));
}

bool plan_is_file(const char *path)
{
    uint8_t start[8];
    size_t got;
    return os_head_read(path, start, sizeof start, &got) && got == sizeof start &&
           !memcmp(start, PLAN_MAGIC, sizeof start);
}

/* ---- opening ---- */

/* Checks the values of a header whose hash is right. */
static enum tokmap_status check_values(const struct plan *plan, uint64_t file_bytes, struct tokmap_error *error)
{
    const struct plan_header *header = &plan->header;
    if (header->major != PLAN_MAJOR || header->header_bytes != sizeof *header || header->identity < 1 ||
        header->identity > 2)
        return CORRUPT(plan, error, 8,
                       "the header's version, size, or kind of identity does not match version %u; " REMEDY,
                       PLAN_MAJOR);
    if (!header->seq_len || header->seq_len > PLAN_SEQ_LEN_MOST)
        return CORRUPT(plan, error, 48, "the header's seq_len is %" PRIu64 ", but it must be 1 to %" PRIu64 "; " REMEDY,
                       header->seq_len, PLAN_SEQ_LEN_MOST);
    if (header->pad == 1 || (header->pad && header->seq_len % header->pad))
        return CORRUPT(plan, error, 36,
                       "the header pads segments to multiples of %" PRIu32 ", but its seq_len, %" PRIu64
                       ", is not a multiple of that; " REMEDY,
                       header->pad, header->seq_len);
    if (!header->rows || header->rows > header->segments || header->segments > PLAN_SEGMENTS_MOST)
        return CORRUPT(plan, error, 56,
                       "the header counts %" PRIu64 " rows and %" PRIu64
                       " segments; a plan has a row or more, each of which has a segment or more, and fewer than 2^32 "
                       "segments; " REMEDY,
                       header->rows, header->segments);
    /* The product cannot overflow: 2^32 rows of 2^31 tokens. */
    if (header->tokens < header->segments || header->tokens > header->rows * header->seq_len ||
        header->tokens > PLAN_TOKENS_MOST)
        return CORRUPT(plan, error, 40,
                       "the header counts %" PRIu64 " tokens, which %" PRIu64 " segments in %" PRIu64
                       " rows of %" PRIu64 " tokens cannot hold; " REMEDY,
                       header->tokens, header->segments, header->rows, header->seq_len);
    if (!header->row_segments || header->row_segments > header->seq_len ||
        header->row_segments > header->segments - (header->rows - 1) ||
        header->segments > header->rows * header->row_segments ||
        (header->documents_most && header->row_segments > header->documents_most))
        return CORRUPT(plan, error, 72,
                       "the header says that a row has up to %" PRIu64
                       " segments, which contradicts its other counts; " REMEDY,
                       header->row_segments);
    if (!header->documents || header->documents > header->segments || header->cut > header->documents)
        return CORRUPT(plan, error, 88,
                       "the header counts %" PRIu64 " documents, of which %" PRIu64 " are cut, in %" PRIu64
                       " segments; " REMEDY,
                       header->documents, header->cut, header->segments);
    const uint64_t expected = segments_offset(header->rows) + sizeof(struct plan_segment) * header->segments;
    if (header->file_bytes != expected)
        return CORRUPT(plan, error, 104,
                       "the header says that the file has %" PRIu64 " bytes, but its counts make %" PRIu64 "; " REMEDY,
                       header->file_bytes, expected);
    if (header->file_bytes != file_bytes)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, plan->path, min64(header->file_bytes, file_bytes),
                         "the plan is %" PRIu64 " bytes long, but its header says %" PRIu64 "; " REMEDY, file_bytes,
                         header->file_bytes);
    return TOKMAP_OK;
}

static enum tokmap_status check_header(struct plan *plan, int fd, uint64_t file_bytes, struct tokmap_error *error)
{
    struct plan_header *header = &plan->header;
    size_t got = 0;
    memset(header, 0, sizeof *header);
    const int system = os_pread(fd, header, sizeof *header, 0, &got);
    if (system)
        return error_set_system(error, system, plan->path, 0, "the plan cannot be read");
    if (!got || memcmp(header->magic, PLAN_MAGIC, min64(got, sizeof header->magic)) != 0)
        return error_set(error, TOKMAP_ERROR_FORMAT, plan->path, 0, NOT_A_PLAN);
    if (got < sizeof *header)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, plan->path, got,
                         "the plan is %zu bytes long, but its header alone needs %zu; " REMEDY, got, sizeof *header);
    const bool sound = hash64(header, offsetof(struct plan_header, header_hash)) == header->header_hash;
    if (header->major > PLAN_MAJOR)
        return error_set(error, TOKMAP_ERROR_VERSION, plan->path, 8,
                         "the plan has major version %u, but this tokmap reads version %u; %s", header->major,
                         PLAN_MAJOR,
                         sound ? "use a newer tokmap" : "use a newer tokmap, or, if no newer tokmap wrote it, " REMEDY);
    if (!sound)
        return CORRUPT(plan, error, 0, "the hash of the header does not match its bytes; " REMEDY);
    return check_values(plan, file_bytes, error);
}

enum tokmap_status plan_open(struct plan *plan, const char *path, struct tokmap_error *error)
{
    return plan_open_as(plan, path, TOKMAP_READ_MAPPED, error);
}

enum tokmap_status plan_open_as(struct plan *plan, const char *path, enum tokmap_reading reading,
                                struct tokmap_error *error)
{
    int fd;
    struct os_stat stat;
    *plan = (struct plan){.path = path, .fd = -1};
    int system = os_open(path, OS_READ_NOW, &fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the plan cannot be opened");
    system = os_fstat(fd, &stat);
    enum tokmap_status status = TOKMAP_OK;
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the plan cannot be examined");
    else if (stat.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET, NOT_A_PLAN);
    else
        status = check_header(plan, fd, stat.bytes, error);
    const void *address = NULL;
    if (!status && reading == TOKMAP_READ_PREAD)
        plan->fd = fd;
    else if (!status && (system = os_map_file(fd, stat.bytes, &address)))
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the plan cannot be mapped into memory");
    if (plan->fd < 0)
        os_close(fd);
    plan->bytes = address;
    if (!status)
        plan->segments_at = segments_offset(plan->header.rows);
    return status;
}

void plan_close(struct plan *plan)
{
    if (plan->bytes)
        os_unmap(plan->bytes, plan->header.file_bytes);
    else if (plan->header.file_bytes) /* it is open */
        os_close(plan->fd);
    *plan = (struct plan){.fd = -1};
}

/* ---- use ---- */

/* Copies bytes [at, at + count) of the file with pread. */
static enum tokmap_status bytes_read(const struct plan *plan, uint64_t at, void *into, size_t count,
                                     struct tokmap_error *error)
{
    size_t got = 0;
    const int system = os_pread(plan->fd, into, count, at, &got);
    if (system)
        return error_set_system(error, system, plan->path, at, "the plan cannot be read");
    if (got < count)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, plan->path, at + got,
                         "the plan has been truncated since it was opened; " REMEDY);
    return TOKMAP_OK;
}

/* Does the same, from the mapping if there is one. */
static inline enum tokmap_status bytes_copy(const struct plan *plan, uint64_t at, void *into, size_t count,
                                            struct tokmap_error *error)
{
    if (!plan->bytes)
        return bytes_read(plan, at, into, count, error);
    memcpy(into, plan->bytes + at, count);
    return TOKMAP_OK;
}

/* Finds the number of the first segment of a row, and of the row after it, which is the number of segments for row
 * `rows`. They are not checked. */
static inline enum tokmap_status firsts_of(const struct plan *plan, uint64_t row, uint64_t *first, uint64_t *next,
                                           struct tokmap_error *error)
{
    uint8_t both[8];
    const bool last = row + 1 == plan->header.rows;
    const enum tokmap_status status = bytes_copy(plan, sizeof(struct plan_header) + 4 * row, both, last ? 4 : 8, error);
    if (status)
        return status;
    *first = load32(both);
    *next = last ? plan->header.segments : load32(both + 4);
    return TOKMAP_OK;
}

static uint64_t segment_at(const struct plan *plan, uint64_t number)
{
    return plan->segments_at + sizeof(struct plan_segment) * number;
}

static enum tokmap_status bad_row(const struct plan *plan, uint64_t row, struct tokmap_error *error)
{
    return CORRUPT(plan, error, sizeof(struct plan_header) + 4 * row,
                   "row %" PRIu64 " of the plan contradicts its neighbors or the header; " REMEDY, row);
}

static enum tokmap_status bad_segment(const struct plan *plan, uint64_t number, struct tokmap_error *error)
{
    return CORRUPT(plan, error, segment_at(plan, number),
                   "segment %" PRIu64 " of the plan contradicts its neighbors or the header; " REMEDY, number);
}

enum tokmap_status plan_row(const struct plan *plan, uint64_t row, uint64_t *first, uint64_t *count,
                            struct tokmap_error *error)
{
    assert(row < plan->header.rows);
    uint64_t from, to;
    const enum tokmap_status status = firsts_of(plan, row, &from, &to, error);
    if (status)
        return status;
    if (from >= to || to > plan->header.segments || to - from > plan->header.row_segments || (!row && from))
        return bad_row(plan, row, error);
    *first = from;
    *count = to - from;
    return TOKMAP_OK;
}

void plan_prefetch_row(const struct plan *plan, uint64_t row)
{
    if (plan->bytes)
        __builtin_prefetch(plan->bytes + sizeof(struct plan_header) + 4 * row, 0, 3);
}

void plan_prefetch_segments(const struct plan *plan, uint64_t row)
{
    uint64_t first, count;
    if (!plan->bytes || plan_row(plan, row, &first, &count, NULL))
        return;
    const uint64_t begin = segment_at(plan, first);
    const uint64_t end = begin + min64(sizeof(struct plan_segment) * count, PREFETCH_MOST);
    for (uint64_t at = round_down(begin, LINE); at < end; at += LINE)
        __builtin_prefetch(plan->bytes + at, 0, 3);
}

enum tokmap_status plan_segment(const struct plan *plan, uint64_t number, struct plan_segment *segment,
                                struct tokmap_error *error)
{
    const struct plan_header *header = &plan->header;
    assert(number < header->segments);
    const enum tokmap_status status = bytes_copy(plan, segment_at(plan, number), segment, sizeof *segment, error);
    if (status)
        return status;
    if (!segment->tokens || segment->tokens > header->seq_len || segment->first_token > header->tokens ||
        segment->tokens > header->tokens - segment->first_token || segment->ordered >= header->segments)
        return bad_segment(plan, number, error);
    return TOKMAP_OK;
}

/* Returns the tokens that pad a segment of `held` tokens. */
static inline uint64_t missing_of(const struct plan *plan, uint64_t held)
{
    const uint64_t over = plan->header.pad ? held % plan->header.pad : 0;
    return over ? plan->header.pad - over : 0;
}

/* Reads the extents of a row, in the loop that loaders spend their time in: it reads segments one after another,
 * without a call for each. */
enum tokmap_status plan_row_extents(const struct plan *plan, uint64_t row, struct tokmap_extent *extents,
                                    uint64_t capacity, uint64_t *count, uint64_t *tokens, struct tokmap_error *error)
{
    const uint64_t seq_len = plan->header.seq_len, all = plan->header.tokens;
    uint64_t first, segments, sum = 0, made = 0, padding = 0;
    struct plan_segment read[SEGMENTS_READ];
    enum tokmap_status status = plan_row(plan, row, &first, &segments, error);
    if (status)
        return status;
    const uint8_t *at = plan->bytes ? plan->bytes + segment_at(plan, first) : NULL;
    for (uint64_t i = 0; i < segments; i++, at += sizeof(struct plan_segment)) {
        if (!plan->bytes && i % SEGMENTS_READ == 0) {
            const size_t bytes = (size_t)min64(segments - i, SEGMENTS_READ) * sizeof *read;
            if ((status = bytes_read(plan, segment_at(plan, first + i), read, bytes, error)))
                return status;
            at = (const uint8_t *)read;
        }
        const uint64_t begin = load64(at), held = load32(at + offsetof(struct plan_segment, tokens));
        const uint64_t missing = missing_of(plan, held);
        sum += held;
        padding += missing;
        if (!held || sum + padding > seq_len || begin > all || held > all - begin)
            return bad_row(plan, row, error);
        if (made < capacity)
            extents[made] = (struct tokmap_extent){begin, held};
        made++;
        if (missing && made < capacity)
            extents[made] = (struct tokmap_extent){TOKMAP_NO_OFFSET, missing};
        made += missing > 0;
    }
    *count = made;
    *tokens = sum;
    return TOKMAP_OK;
}

enum tokmap_status plan_ordered(const struct plan *plan, uint64_t i, uint64_t *number, struct plan_segment *segment,
                                struct tokmap_error *error)
{
    assert(i < plan->header.segments);
    uint8_t bytes[4];
    const enum tokmap_status status =
        bytes_copy(plan, segment_at(plan, i) + offsetof(struct plan_segment, ordered), bytes, sizeof bytes, error);
    if (status)
        return status;
    const uint64_t found = load32(bytes);
    if (found >= plan->header.segments)
        return bad_segment(plan, i, error);
    *number = found;
    return plan_segment(plan, found, segment, error);
}

enum tokmap_status plan_find(const struct plan *plan, uint64_t token, uint64_t *i, struct tokmap_error *error)
{
    assert(token < plan->header.tokens);
    uint64_t first = 0, last = plan->header.segments, number = 0; /* the entries before `first` begin at or before it */
    struct plan_segment segment;
    enum tokmap_status status;
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        status = plan_ordered(plan, middle, &number, &segment, error);
        if (status)
            return status;
        if (segment.first_token <= token)
            first = middle + 1;
        else
            last = middle;
    }
    if (!first)
        return bad_segment(plan, 0, error);
    status = plan_ordered(plan, first - 1, &number, &segment, error);
    if (status)
        return status;
    if (segment.first_token > token || token - segment.first_token >= segment.tokens)
        return bad_segment(plan, number, error);
    *i = first - 1;
    return TOKMAP_OK;
}

enum tokmap_status plan_row_of(const struct plan *plan, uint64_t segment, uint64_t *row, struct tokmap_error *error)
{
    assert(segment < plan->header.segments);
    uint64_t first = 0, last = plan->header.rows, begin, count, next;
    enum tokmap_status status;
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        if ((status = firsts_of(plan, middle, &begin, &next, error)))
            return status;
        if (begin <= segment)
            first = middle + 1;
        else
            last = middle;
    }
    if (!first)
        return bad_row(plan, 0, error);
    status = plan_row(plan, first - 1, &begin, &count, error);
    if (!status && (segment < begin || segment - begin >= count))
        status = bad_row(plan, first - 1, error);
    *row = first - 1;
    return status;
}

void plan_identity(const struct plan *plan, const uint8_t dataset[16], uint8_t identity[16])
{
    uint8_t source[36] = "plan 1";
    memcpy(source + 8, dataset, 16);
    store64(source + 24, plan->header.body_hash);
    store32(source + 32, plan->header.pad);
    hash128_store(hash128(source, plan->header.pad ? 36 : 32), identity);
}

/* ---- verify ---- */

#define VERIFY_STEP ((uint64_t)1 << 16)

struct verifying {
    const struct plan *plan;
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    struct tokmap_error *error;
};

static enum tokmap_status report(const struct verifying *verifying, uint64_t done)
{
    const uint64_t total = 2 * verifying->plan->header.segments;
    if (done % VERIFY_STEP == 0 && verifying->progress && verifying->progress(verifying->user, done, total))
        return error_set(verifying->error, TOKMAP_ERROR_INTERRUPTED, verifying->plan->path, TOKMAP_NO_OFFSET,
                         "the caller stopped the check");
    return TOKMAP_OK;
}

/* Checks the rows, one after another, and that one of them has as many segments as the header says. */
static enum tokmap_status verify_rows(const struct verifying *verifying)
{
    const struct plan *plan = verifying->plan;
    const struct plan_header *header = &plan->header;
    uint64_t most = 0, done = 0;
    for (uint64_t row = 0; row < header->rows; row++) {
        uint64_t first, count, tokens = 0;
        enum tokmap_status status = plan_row(plan, row, &first, &count, verifying->error);
        if (status)
            return status;
        most = max64(most, count);
        for (uint64_t i = first; i < first + count; i++, done++) {
            struct plan_segment segment;
            if ((status = report(verifying, done)) || (status = plan_segment(plan, i, &segment, verifying->error)))
                return status;
            tokens += segment.tokens + missing_of(plan, segment.tokens);
        }
        if (tokens > header->seq_len)
            return CORRUPT(plan, verifying->error, sizeof *header + 4 * row,
                           "row %" PRIu64 " has %" PRIu64 " tokens, but rows have at most %" PRIu64 "; " REMEDY, row,
                           tokens, header->seq_len);
    }
    if (most != header->row_segments)
        return CORRUPT(plan, verifying->error, 72,
                       "a row has up to %" PRIu64 " segments, but the header says %" PRIu64 "; " REMEDY, most,
                       header->row_segments);
    return TOKMAP_OK;
}

/* Checks that the segments in order of their first tokens hold every token once. */
static enum tokmap_status verify_tokens(const struct verifying *verifying)
{
    const struct plan *plan = verifying->plan;
    const struct plan_header *header = &plan->header;
    uint64_t next = 0;
    for (uint64_t i = 0; i < header->segments; i++) {
        uint64_t number;
        struct plan_segment segment;
        enum tokmap_status status = report(verifying, header->segments + i);
        if (status || (status = plan_ordered(plan, i, &number, &segment, verifying->error)))
            return status;
        if (segment.first_token != next)
            return CORRUPT(plan, verifying->error, segment_at(plan, number),
                           "segment %" PRIu64 " begins at token %" PRIu64 ", but in order of their first tokens the "
                           "segment before it ends at token %" PRIu64 "; " REMEDY,
                           number, segment.first_token, next);
        next += segment.tokens;
    }
    if (next != header->tokens)
        return CORRUPT(plan, verifying->error, 40,
                       "the segments have %" PRIu64 " tokens, but the header says %" PRIu64 "; " REMEDY, next,
                       header->tokens);
    return TOKMAP_OK;
}

enum tokmap_status plan_verify(const struct plan *plan, int (*progress)(void *user, uint64_t done, uint64_t total),
                               void *user, struct tokmap_error *error)
{
    const struct plan_header *header = &plan->header;
    const struct verifying verifying = {plan, progress, user, error};
    assert(plan->bytes);
    if (hash64(plan->bytes + sizeof *header, header->file_bytes - sizeof *header) != header->body_hash)
        return CORRUPT(plan, error, sizeof *header,
                       "the hash of the rows and segments does not match their bytes; " REMEDY);
    for (uint64_t at = sizeof *header + 4 * header->rows; at < plan->segments_at; at++)
        if (plan->bytes[at])
            return CORRUPT(plan, error, at, "a byte between the rows and the segments is not zero; " REMEDY);
    enum tokmap_status status = verify_rows(&verifying);
    return status ? status : verify_tokens(&verifying);
}

/* ---- writing ---- */

#define WRITE_BYTES ((size_t)1 << 18)

struct plan_output {
    int fd;
    uint8_t *buffer; /* WRITE_BYTES */
    size_t used;
    uint64_t offset; /* of the buffer in the file */
    struct hash_state *hash;
};

static int output_flush(struct plan_output *output)
{
    hash_state_add(output->hash, output->buffer, output->used);
    const int system = os_pwrite(output->fd, output->buffer, output->used, output->offset);
    output->offset += output->used;
    output->used = 0;
    return system;
}

/* count is at most 16, which divides WRITE_BYTES. */
static int output_add(struct plan_output *output, const void *bytes, size_t count)
{
    const int system = output->used + count > WRITE_BYTES ? output_flush(output) : 0;
    memcpy(output->buffer + output->used, bytes, count);
    output->used += count;
    return system;
}

static int body_write(struct plan_output *output, const struct plan_header *header, const uint32_t *first,
                      struct plan_segment (*segment)(void *user, uint64_t number), void *user)
{
    int system = 0;
    for (uint64_t row = 0; row < header->rows && !system; row++)
        system = output_add(output, &first[row], sizeof first[row]);
    for (uint64_t at = sizeof *header + 4 * header->rows; at < segments_offset(header->rows) && !system; at++)
        system = output_add(output, "", 1);
    for (uint64_t i = 0; i < header->segments && !system; i++) {
        const struct plan_segment made = segment(user, i);
        system = output_add(output, &made, sizeof made);
    }
    return system ? system : output_flush(output);
}

int plan_write(int fd, struct plan_header *header, const uint32_t *first,
               struct plan_segment (*segment)(void *user, uint64_t number), void *user)
{
    assert(header->rows && header->rows <= header->segments && header->segments <= PLAN_SEGMENTS_MOST);
    assert(header->seq_len && header->seq_len <= PLAN_SEQ_LEN_MOST && header->pad != 1);
    struct plan_output output = {.fd = fd, .offset = sizeof *header};
    output.buffer = malloc(WRITE_BYTES);
    output.hash = hash_state_new();
    int system = output.buffer && output.hash ? body_write(&output, header, first, segment, user) : ENOMEM;
    if (!system) {
        memcpy(header->magic, PLAN_MAGIC, sizeof header->magic);
        header->major = PLAN_MAJOR;
        header->minor = PLAN_MINOR;
        header->header_bytes = sizeof *header;
        header->file_bytes = output.offset;
        header->body_hash = hash_state_64(output.hash);
        header->header_hash = hash64(header, offsetof(struct plan_header, header_hash));
        /* The header is written last, so an incomplete file is not a valid plan. */
        system = os_pwrite(fd, header, sizeof *header, 0);
    }
    free(output.buffer);
    hash_state_free(output.hash);
    return system;
}
