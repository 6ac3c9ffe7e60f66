/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trace.c - the reader of traces, with hostile bytes under valid checksums.
 *
 * The first byte of an input chooses whether the hashes of each header are computed again. The remaining bytes are the
 * trace. What the scan finds must be inside the file, in order, and such that no loader contradicts it. Every record
 * can be read. A writer that continues the file must leave a trace that scans to the same sections and one more.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "format/trace_file.h"
#include "fuzz_case.h"
#include "platform/os.h"

/* What a scan has found. */
struct found {
    uint64_t file_bytes, end, sections, records;
};

static int exercise(void *user, const struct trace_section *section)
{
    struct found *found = user;
    const struct trace_header *header = &section->header;
    struct trace_record records[64];
    struct tokmap_error error;
    uint64_t least = header->first_step;
    REQUIRE(header->width == 2 || header->width == 4);
    REQUIRE(header->rank < header->world && header->context_rank < header->context_world);
    REQUIRE(header->context_layout <= TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS);
    REQUIRE(header->balance <= (uint64_t)1 << 40 && (header->balance || !header->rows));
    REQUIRE(!header->nodes || (header->nodes > 1 && header->world % header->nodes == 0 && !header->balance));
    REQUIRE(section->offset >= found->end + TRACE_HEADER_BYTES && section->offset <= found->file_bytes);
    REQUIRE(section->records <= (found->file_bytes - section->offset) / TRACE_RECORD_BYTES);
    for (uint64_t at = 0; at < section->records;) {
        const uint64_t count = min64(section->records - at, sizeof records / sizeof records[0]);
        REQUIRE(!trace_file_read(fuzz_path, section->offset + at * TRACE_RECORD_BYTES, count, records, &error));
        for (uint64_t i = 0; i < count; i++) {
            REQUIRE(records[i].step >= least && records[i].step < section->end_step);
            least = records[i].step + 1;
        }
        at += count;
    }
    REQUIRE(section->records ? least == section->end_step : section->end_step == header->first_step);
    found->end = section->offset + section->records * TRACE_RECORD_BYTES;
    found->sections++;
    found->records += section->records;
    return 0;
}

static enum tokmap_status scan(struct found *found, uint64_t bytes, uint64_t *torn)
{
    struct tokmap_error error = {0};
    *found = (struct found){.file_bytes = bytes};
    const enum tokmap_status status = trace_file_scan(fuzz_path, exercise, found, torn, &error);
    REQUIRE(status ? error.status == status && error.message[0] : *torn <= bytes);
    return status;
}

/* Continues a trace as a loader would. */
static void continue_it(const struct found *before, uint64_t complete)
{
    const bool balanced = before->records % 2, by_node = !balanced && before->records % 3 == 1;
    const struct trace_header header = {
        .width = 4,
        .rank = 1,
        .world = 2,
        .context_rank = balanced ? 2 : 0,
        .context_world = balanced ? 3 : 1,
        .first_step = 5,
        .balance = balanced ? 77 : 0,
        .rows = balanced ? 3 : 0,
        .nodes = by_node ? 2 : 0,
    };
    const struct trace_record record = {7, 1};
    struct trace_writer *writer;
    struct found after;
    uint64_t torn;
    REQUIRE(!trace_writer_open(&writer, fuzz_path, NULL));
    REQUIRE(!trace_writer_begin(writer, &header, NULL) && !trace_writer_add(writer, &record, 1, NULL));
    trace_writer_close(writer);
    const uint64_t header_bytes = balanced || by_node ? TRACE_HEADER_BYTES_MOST : TRACE_HEADER_BYTES;
    REQUIRE(!scan(&after, complete + header_bytes + TRACE_RECORD_BYTES, &torn) && !torn);
    REQUIRE(after.sections == before->sections + 1 && after.records == before->records + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct found found;
    struct trace_writer *writer;
    uint64_t torn;
    int fd;
    if (!size || size > (size_t)1 << 17)
        return 0;
    (void)fuzz_file("trace");
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, size - 1);
    size--;
    for (size_t at = 0; !(data[0] & 1) && at + TRACE_HEADER_BYTES <= size; at += TRACE_RECORD_BYTES)
        if (memcmp(bytes + at, TRACE_MAGIC, 8) == 0) {
            store64(bytes + at + 56, hash64(bytes + at, 56));
            if (load32(bytes + at + 8) == TRACE_VERSION_BALANCED && at + TRACE_HEADER_BYTES_MOST <= size)
                store64(bytes + at + 88, hash64(bytes + at, 88));
        }
    (void)os_unlink(fuzz_path);
    REQUIRE(!os_open(fuzz_path, OS_WRITE_NEW, &fd) && !os_pwrite(fd, bytes, size, 0));
    os_close(fd);
    free(bytes);
    if (!scan(&found, size, &torn)) {
        continue_it(&found, size - torn);
        return 0;
    }
    /* What is no trace, or was damaged, is not continued either, and stays as it is. */
    struct os_stat stat;
    REQUIRE(trace_writer_open(&writer, fuzz_path, NULL) != TOKMAP_OK);
    REQUIRE(!os_open(fuzz_path, OS_READ, &fd) && !os_fstat(fd, &stat) && stat.bytes == size);
    os_close(fd);
    return 0;
}
