/* SPDX-License-Identifier: MIT */
/*
 * fuzz_megatron.c - a hostile Megatron index. The first 8 bytes of an input are the size of the .bin; the rest is the
 * .idx. What opens is asked for documents, which may fail, but must not read outside the index or run without end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/foreign/foreign_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static void ask(const struct foreign_index *index)
{
    uint64_t before = 0, end;
    bool good = true;
    struct tokmap_error error;
    for (uint64_t i = 0; i < index->count && good; i++) {
        good = !foreign_index_end(index, i, &end, &error);
        must(!good || end <= index->tokens);
        good = good && end >= before;
        before = end;
    }
    /* A check that passes means that the ends have no contradiction. */
    if (!foreign_index_check(index, &error))
        must(good && before == index->tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokmap_error error = {0};
    if (size < 8)
        return 0;
    const size_t bytes = size - 8;
    const uint64_t bin_bytes = load64(data);
    uint8_t *map = malloc(bytes ? bytes : 1); /* of exactly this size, so that a sanitizer sees a read beyond it */
    if (!map)
        return 0;
    if (bytes)
        memcpy(map, data + 8, bytes);
    struct foreign_index index = {.bytes = {"fuzzed.idx", map, bytes, -1}, .is_megatron = true};
    struct foreign_layout layout;
    enum tokmap_status status =
        megatron_parse(&index.megatron, "fuzzed.idx", map, bytes < 34 ? bytes : 34, bytes, &error);
    if (!status)
        status = megatron_check_ends(&index.megatron, &index.bytes, "fuzzed.bin", bin_bytes, &layout, &error);
    if (!status) {
        must(layout.bytes == bin_bytes && layout.tokens * element_bytes(layout.element) == bin_bytes);
        index.count = index.megatron.documents;
        index.tokens = layout.tokens;
        ask(&index);
    } else {
        must(error.message[0] && error.status == status);
    }
    free(map);
    return 0;
}
