/* SPDX-License-Identifier: MIT */
/*
 * fuzz_plan.c - the reader of plans, with hostile bytes under valid checksums.
 *
 * The first byte of an input chooses whether the hashes and the length in the header are computed again. The remaining
 * bytes are the plan. If it opens, every function is called on its rows, segments, and tokens. They may fail, but must
 * not crash, read out of bounds, or return a row or segment that is outside the dataset or longer than a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "format/plan_file.h"
#include "fuzz_case.h"
#include "platform/os.h"

static void rows_exercise(const struct plan *plan)
{
    const struct plan_header *header = &plan->header;
    struct tokmap_error error;
    const uint64_t capacity = header->row_segments * (header->pad ? 2 : 1); /* padding may follow each segment */
    struct tokmap_extent *extents = malloc(capacity * sizeof *extents);
    for (uint64_t row = 0; row < header->rows && extents; row++) {
        uint64_t first, count, sum = 0, padding = 0;
        if (plan_row(plan, row, &first, &count, &error))
            continue;
        REQUIRE(count && count <= header->row_segments && first + count <= header->segments);
        uint64_t counted, tokens, found = 0;
        if (plan_row_extents(plan, row, extents, capacity, &counted, &tokens, &error))
            continue;
        REQUIRE(counted <= capacity);
        for (uint64_t i = 0; i < counted; i++) {
            struct plan_segment segment;
            const uint64_t from = extents[i].first_token, held = extents[i].tokens;
            if (from == TOKMAP_NO_OFFSET) {
                REQUIRE(i && extents[i - 1].first_token != from && held < header->pad &&
                        (extents[i - 1].tokens + held) % header->pad == 0);
                padding += held;
                continue;
            }
            if (!plan_segment(plan, first + found++, &segment, &error)) /* which also looks at the order by token */
                REQUIRE(from == segment.first_token && held == segment.tokens);
            REQUIRE(held && from + held <= header->tokens);
            sum += held;
        }
        REQUIRE(found == count && sum + padding <= header->seq_len && sum == tokens);
    }
    free(extents);
}

static void segments_exercise(const struct plan *plan)
{
    const struct plan_header *header = &plan->header;
    struct tokmap_error error;
    for (uint64_t i = 0; i < header->segments; i++) {
        struct plan_segment segment;
        uint64_t number, row, found;
        if (!plan_row_of(plan, i, &row, &error))
            REQUIRE(row < header->rows);
        if (plan_ordered(plan, i, &number, &segment, &error))
            continue;
        REQUIRE(number < header->segments);
        if (!plan_find(plan, segment.first_token, &found, &error))
            REQUIRE(found < header->segments);
    }
    uint64_t found;
    (void)plan_find(plan, 0, &found, &error);
    (void)plan_find(plan, header->tokens - 1, &found, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_header header;
    struct tokmap_error error = {0};
    struct plan plan;
    int fd;
    if (!size || size > (size_t)1 << 16)
        return 0;
    (void)fuzz_file("plan");
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, size - 1);
    size--;
    if (!(data[0] & 1) && size >= sizeof header) {
        memcpy(&header, bytes, sizeof header);
        header.body_hash = hash64(bytes + sizeof header, size - sizeof header);
        if (data[0] & 2)
            header.file_bytes = size;
        header.header_hash = hash64(&header, offsetof(struct plan_header, header_hash));
        memcpy(bytes, &header, sizeof header);
    }
    (void)os_unlink(fuzz_path);
    REQUIRE(!os_open(fuzz_path, OS_WRITE_NEW, &fd) && !os_pwrite(fd, bytes, size, 0));
    os_close(fd);
    free(bytes);
    const enum tokmap_status status = plan_open(&plan, fuzz_path, &error);
    if (status) {
        REQUIRE(error.status == status && error.message[0]);
        return 0;
    }
    rows_exercise(&plan);
    segments_exercise(&plan);
    (void)plan_verify(&plan, NULL, NULL, &error);
    plan_close(&plan);
    return 0;
}
