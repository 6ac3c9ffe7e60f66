/* SPDX-License-Identifier: MIT */
/*
 * trace_file.c - see trace_file.h.
 *
 * A file is read in units of 16 bytes. A unit that begins with the magic begins a header of 4 or 6 units; any other
 * unit is a record. The magic, read as a number, is above 2^63, and steps are below, so the two cannot be confused.
 */
#include "trace_file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

#define AT_ONCE ((size_t)1 << 16) /* bytes read at once */
#define STEPS_MOST ((uint64_t)1 << 63)
#define BALANCE_MOST ((uint64_t)1 << 40) /* a q of 1 */

struct trace_writer {
    const char *path;
    int fd;
    uint64_t end; /* of what is complete */
};

uint64_t trace_hash(const void *row, uint64_t bytes, uint64_t number)
{
    return hash64_seeded(row, bytes, number);
}

/* ---- bytes ---- */

/* Writes a header, and returns its bytes. */
static size_t header_store(const struct trace_header *header, uint8_t into[TRACE_HEADER_BYTES_MOST])
{
    const uint32_t version = header->nodes               ? TRACE_VERSION_NODES
                             : header->balance           ? TRACE_VERSION_BALANCED
                             : header->context_world > 1 ? TRACE_VERSION_SLICES
                                                         : TRACE_VERSION;
    const bool slices = version != TRACE_VERSION;
    memcpy(into, TRACE_MAGIC, 8);
    store32(into + 8, version);
    store32(into + 12, header->width | (slices ? header->context_layout << 8 : 0));
    store64(into + 16, header->rank);
    store64(into + 24, header->world);
    if (slices) {
        store32(into + 20, (uint32_t)header->context_rank);
        store32(into + 28, (uint32_t)header->context_world);
    }
    store64(into + 32, header->first_step);
    store64(into + 40, header->past[0]);
    store64(into + 48, header->past[1]);
    store64(into + 56, hash64(into, 56));
    if (!header->balance && !header->nodes)
        return TRACE_HEADER_BYTES;
    store64(into + 64, header->balance);
    store64(into + 72, header->rows);
    store64(into + 80, header->nodes);
    store64(into + 88, hash64(into, 88));
    return TRACE_HEADER_BYTES_MOST;
}

/* Returns the bytes of a header, from its first TRACE_HEADER_BYTES bytes. */
static size_t header_bytes(const uint8_t *from)
{
    const uint32_t version = load32(from + 8);
    return version == TRACE_VERSION_BALANCED || version == TRACE_VERSION_NODES ? TRACE_HEADER_BYTES_MOST
                                                                               : TRACE_HEADER_BYTES;
}

static bool is_magic(const uint8_t *unit)
{
    return memcmp(unit, TRACE_MAGIC, 8) == 0;
}

static enum tokmap_status header_load(const uint8_t *from, const char *path, uint64_t offset,
                                      struct trace_header *header, struct tokmap_error *error)
{
    const uint32_t version = load32(from + 8);
    const bool balanced = version == TRACE_VERSION_BALANCED, by_node = version == TRACE_VERSION_NODES;
    const bool slices = balanced || by_node || version == TRACE_VERSION_SLICES;
    if (load64(from + 56) != hash64(from, 56) || ((balanced || by_node) && load64(from + 88) != hash64(from, 88)))
        return error_set(
            error, TOKMAP_ERROR_CORRUPT, path, offset,
            "the header of a section of the trace does not have its hash: the file was damaged; use a copy "
            "that is sound");
    if (version != TRACE_VERSION && !slices)
        return error_set(error, TOKMAP_ERROR_VERSION, path, offset,
                         "the trace has version %" PRIu32 ", and this version of tokmap reads versions %d to %d; use a "
                         "newer tokmap",
                         version, TRACE_VERSION, TRACE_VERSION_NODES);
    *header = (struct trace_header){
        .width = slices ? from[12] : load32(from + 12),
        .rank = slices ? load32(from + 16) : load64(from + 16),
        .world = slices ? load32(from + 24) : load64(from + 24),
        .context_rank = slices ? load32(from + 20) : 0,
        .context_world = slices ? load32(from + 28) : 1,
        .context_layout = slices ? load32(from + 12) >> 8 : 0,
        .first_step = load64(from + 32),
        .past = {load64(from + 40), load64(from + 48)},
        .balance = balanced ? load64(from + 64) : 0,
        .rows = balanced ? load64(from + 72) : 0,
        .nodes = by_node ? load64(from + 80) : 0,
    };
    if ((header->width != 2 && header->width != 4) || header->rank >= header->world ||
        header->first_step > STEPS_MOST || header->world > STEPS_MOST ||
        header->context_rank >= header->context_world || header->context_layout > TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS ||
        (balanced && (!header->balance || header->balance > BALANCE_MOST || header->rows > STEPS_MOST)) ||
        (by_node && (header->nodes < 2 || header->world % header->nodes)))
        return error_set(error, TOKMAP_ERROR_CORRUPT, path, offset,
                         "a section of the trace is of rank %" PRIu64 " of %" PRIu64 ", from step %" PRIu64 ", with "
                         "tokens of %" PRIu32 " bytes, which no loader has: the file was damaged; use a copy that is "
                         "sound",
                         header->rank, header->world, header->first_step, header->width);
    return TOKMAP_OK;
}

static enum tokmap_status not_a_trace(const char *path, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_FORMAT, path, 0,
                     "the file is not a trace, because it does not begin like one; name a file that a loader wrote as "
                     "its trace, or one that does not exist yet");
}

/* ---- scanning ---- */

struct scan {
    const char *path;
    int fd;
    uint64_t bytes;         /* of the file, without an incomplete unit at its end */
    uint64_t at, from, end; /* the next unit, and what is in the buffer */
    uint64_t zeros;         /* units of zeros directly before `at` */
    bool in_section;
    struct trace_section section;
    int (*found)(void *user, const struct trace_section *section);
    void *user;
    uint8_t *buffer;
};

/* Returns `bytes` bytes at scan->at, at most TRACE_HEADER_BYTES_MOST, in *unit. */
static enum tokmap_status scan_bytes(struct scan *scan, size_t bytes, const uint8_t **unit, struct tokmap_error *error)
{
    if (scan->at < scan->from || scan->at + bytes > scan->end) {
        size_t got, wanted = (size_t)min64(AT_ONCE, scan->bytes - scan->at);
        int system = os_pread(scan->fd, scan->buffer, wanted, scan->at, &got);
        if (system || got < wanted)
            return system ? error_set_system(error, system, scan->path, scan->at, "cannot read the trace")
                          : error_set(error, TOKMAP_ERROR_TRUNCATED, scan->path, scan->at + got,
                                      "the trace was cut shorter while it was read; read it again");
        scan->from = scan->at;
        scan->end = scan->at + wanted;
    }
    *unit = scan->buffer + (scan->at - scan->from);
    return TOKMAP_OK;
}

static enum tokmap_status scan_report(struct scan *scan, struct tokmap_error *error)
{
    if (!scan->in_section || !scan->found || !scan->found(scan->user, &scan->section))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_INTERRUPTED, scan->path, TOKMAP_NO_OFFSET, "the caller ended the scan");
}

static enum tokmap_status scan_header(struct scan *scan, const uint8_t *unit, struct tokmap_error *error)
{
    enum tokmap_status status = scan_report(scan, error);
    if (!status)
        status = header_load(unit, scan->path, scan->at, &scan->section.header, error);
    scan->in_section = true;
    scan->section.offset = scan->at + header_bytes(unit);
    scan->section.records = 0;
    scan->section.end_step = scan->section.header.first_step;
    return status;
}

static enum tokmap_status scan_record(struct scan *scan, const uint8_t *unit, struct tokmap_error *error)
{
    struct trace_section *section = &scan->section;
    const uint64_t step = load64(unit), sum = load64(unit + 8);
    /* Zeros are what a file system leaves where a machine stopped before the data was written. At the end of the file
     * they are ignored. No step has a sum of 0, except by a chance of 1 in 2^64. */
    if (!step && !sum) {
        scan->zeros++;
        return TOKMAP_OK;
    }
    if (scan->zeros || step < section->end_step || step >= STEPS_MOST)
        return error_set(error, TOKMAP_ERROR_CORRUPT, scan->path, scan->at,
                         "a record of step %" PRIu64 " follows where a step from %" PRIu64 " on is due: the file was "
                         "damaged; use a copy that is sound",
                         scan->zeros ? 0 : step, section->end_step);
    section->records++;
    section->end_step = step + 1;
    return TOKMAP_OK;
}

/* Reads the units up to the end. *complete receives the bytes up to the last header or record that is complete. */
static enum tokmap_status scan_units(struct scan *scan, uint64_t *complete, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    const uint8_t *unit;
    *complete = 0;
    while (!status && scan->at < scan->bytes) {
        status = scan_bytes(scan, TRACE_RECORD_BYTES, &unit, error);
        if (status)
            break;
        uint64_t bytes = TRACE_RECORD_BYTES;
        if (is_magic(unit)) {
            if (scan->bytes - scan->at < TRACE_HEADER_BYTES)
                break; /* torn */
            status = scan_bytes(scan, TRACE_HEADER_BYTES, &unit, error);
            if (status)
                break;
            bytes = header_bytes(unit);
            if (scan->bytes - scan->at < bytes)
                break; /* torn, too */
            scan->zeros = 0;
            status = scan_bytes(scan, bytes, &unit, error);
            if (!status)
                status = scan_header(scan, unit, error);
        } else if (!scan->in_section) {
            return not_a_trace(scan->path, error);
        } else {
            status = scan_record(scan, unit, error);
        }
        scan->at += bytes;
        if (!scan->zeros)
            *complete = scan->at;
    }
    return status ? status : scan_report(scan, error);
}

static enum tokmap_status scan_open(struct scan *scan, uint64_t bytes, uint64_t *complete, struct tokmap_error *error)
{
    scan->bytes = round_down(bytes, TRACE_RECORD_BYTES);
    scan->buffer = malloc(AT_ONCE);
    if (!scan->buffer)
        return error_set_memory(error, "the trace", AT_ONCE);
    uint8_t begin[8];
    size_t got = 0;
    int system = os_pread(scan->fd, begin, min64(bytes, sizeof begin), 0, &got);
    enum tokmap_status status = TOKMAP_OK;
    if (system)
        status = error_set_system(error, system, scan->path, 0, "cannot read the trace");
    else if (memcmp(begin, TRACE_MAGIC, got) != 0)
        status = not_a_trace(scan->path, error);
    if (!status)
        status = scan_units(scan, complete, error);
    free(scan->buffer);
    return status;
}

enum tokmap_status trace_file_scan(const char *path, int (*found)(void *user, const struct trace_section *section),
                                   void *user, uint64_t *torn, struct tokmap_error *error)
{
    struct scan scan = {.path = path, .found = found, .user = user};
    struct os_stat stat;
    uint64_t complete = 0;
    int system = os_open(path, OS_READ_NOW, &scan.fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "cannot open the trace");
    system = os_fstat(scan.fd, &stat);
    enum tokmap_status status = TOKMAP_OK;
    if (system)
        status = error_set_system(error, system, path, TOKMAP_NO_OFFSET, "cannot open the trace");
    else if (stat.kind != OS_KIND_FILE)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET, "this is not a file; name a trace");
    else
        status = scan_open(&scan, stat.bytes, &complete, error);
    os_close(scan.fd);
    *torn = status ? 0 : stat.bytes - complete;
    return status;
}

enum tokmap_status trace_file_read(const char *path, uint64_t offset, uint64_t count, struct trace_record *records,
                                   struct tokmap_error *error)
{
    _Static_assert(sizeof *records == TRACE_RECORD_BYTES, "records are read as they are");
    size_t got = 0, wanted = count * TRACE_RECORD_BYTES;
    int fd, system = os_open(path, OS_READ_NOW, &fd);
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "cannot open the trace");
    system = os_pread(fd, records, wanted, offset, &got);
    os_close(fd);
    if (system)
        return error_set_system(error, system, path, offset, "cannot read the trace");
    if (got < wanted)
        return error_set(error, TOKMAP_ERROR_TRUNCATED, path, offset + got,
                         "the trace was cut shorter while it was read; read it again");
    return TOKMAP_OK;
}

/* ---- writing ---- */

/* Takes the lock, and finds the end of what is complete. */
static enum tokmap_status writer_continue(struct trace_writer *writer, struct tokmap_error *error)
{
    struct scan scan = {.path = writer->path, .fd = writer->fd};
    struct os_stat stat;
    int system = os_lock(writer->fd);
    if (system == EWOULDBLOCK)
        return error_set(error, TOKMAP_ERROR_BUSY, writer->path, TOKMAP_NO_OFFSET,
                         "another loader is writing this trace; give each rank a file of its own");
    if (!system)
        system = os_fstat(writer->fd, &stat);
    if (system)
        return error_set_system(error, system, writer->path, TOKMAP_NO_OFFSET, "cannot write the trace");
    if (stat.kind != OS_KIND_FILE)
        return error_set(error, TOKMAP_ERROR_FORMAT, writer->path, TOKMAP_NO_OFFSET,
                         "this is not a file; name one for the trace");
    enum tokmap_status status = scan_open(&scan, stat.bytes, &writer->end, error);
    if (!status && writer->end < stat.bytes && (system = os_truncate(writer->fd, writer->end)))
        status = error_set_system(error, system, writer->path, writer->end, "cannot write the trace");
    return status;
}

enum tokmap_status trace_writer_open(struct trace_writer **made, const char *path, struct tokmap_error *error)
{
    struct trace_writer *writer = calloc(1, sizeof *writer);
    *made = NULL;
    if (!writer)
        return error_set_memory(error, "the trace", sizeof *writer);
    writer->path = path;
    int system = os_open(path, OS_WRITE_OPEN, &writer->fd);
    if (system) {
        free(writer);
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "cannot write the trace");
    }
    enum tokmap_status status = writer_continue(writer, error);
    if (status) {
        trace_writer_close(writer);
        return status;
    }
    *made = writer;
    return TOKMAP_OK;
}

void trace_writer_close(struct trace_writer *writer)
{
    if (!writer)
        return;
    os_close(writer->fd);
    free(writer);
}

static enum tokmap_status writer_append(struct trace_writer *writer, const void *from, uint64_t bytes,
                                        struct tokmap_error *error)
{
    int system = os_pwrite(writer->fd, from, bytes, writer->end);
    if (system) {
        (void)os_truncate(writer->fd, writer->end); /* what was written of it would be overwritten anyway */
        return error_set_system(error, system, writer->path, writer->end,
                                "cannot write the trace; make room for it, then call again");
    }
    writer->end += bytes;
    return TOKMAP_OK;
}

enum tokmap_status trace_writer_begin(struct trace_writer *writer, const struct trace_header *header,
                                      struct tokmap_error *error)
{
    assert((header->width == 2 || header->width == 4) && header->rank < header->world);
    uint8_t bytes[TRACE_HEADER_BYTES_MOST];
    const size_t count = header_store(header, bytes);
    return writer_append(writer, bytes, count, error);
}

enum tokmap_status trace_writer_add(struct trace_writer *writer, const struct trace_record *records, uint64_t count,
                                    struct tokmap_error *error)
{
    assert(writer->end >= TRACE_HEADER_BYTES);
    return writer_append(writer, records, count * TRACE_RECORD_BYTES, error);
}
