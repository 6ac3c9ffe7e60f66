/*
 * fuzz_megatron.c - a hostile Megatron index. The first 8 bytes of an input are the size of the .bin; the rest is the
 * .idx. What opens is asked for documents, which may fail, but must not read outside the index or run without end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/foreign/foreign_documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static void ask(const struct foreign_documents *documents)
{
    uint64_t number, start, end, ends[5], used = 0;
    struct tokmap_error error;
    struct index_walk walk = {0};
    for (uint64_t i = 0; i < 40 && i < documents->count; i++)
        if (!foreign_document(documents, i, &start, &end, &error))
            must(start <= end && end <= documents->tokens);
    for (uint64_t i = 0; i < 40 && i < documents->tokens; i++) {
        const uint64_t token = i % 2 ? documents->tokens - 1 - i / 2 : i / 2;
        if (!foreign_document_at(documents, token, &number, &start, &end, &error))
            must(start <= token && token < end && number < documents->count);
    }
    (void)foreign_ends(documents, documents->count / 2, 0, documents->tokens, 0, ends, 5, &used, &error);
    enum tokmap_status status = TOKMAP_OK;
    uint64_t before = 0;
    do {
        status = foreign_walk_ends(documents, &walk, 0, ends, 5, &used, &error);
        for (uint64_t i = 0; i < used && !status; i++) {
            must(ends[i] > before && ends[i] <= documents->tokens);
            before = ends[i];
        }
    } while (!status && used);
    /* A check that passes means that the walk saw no contradiction. */
    if (!foreign_documents_check(documents, &error))
        must(!status && before == documents->tokens);
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
    struct foreign_documents documents = {.path = "fuzzed.idx", .map = map, .bytes = bytes, .is_megatron = true};
    struct foreign_layout layout;
    enum tokmap_status status =
        megatron_parse(&documents.megatron, "fuzzed.idx", map, bytes < 34 ? bytes : 34, bytes, &error);
    if (!status)
        status =
            megatron_check_ends(&documents.megatron, "fuzzed.idx", map, "fuzzed.bin", bin_bytes, &layout, &error);
    if (!status) {
        must(layout.bytes == bin_bytes && layout.tokens * element_bytes(layout.element) == bin_bytes);
        documents.count = documents.megatron.documents;
        documents.tokens = layout.tokens;
        ask(&documents);
    } else {
        must(error.message[0] && error.status == status);
    }
    free(map);
    return 0;
}
