/* SPDX-License-Identifier: MIT */
/*
 * fuzz_dropped.c - the reader of lists of dropped documents, with hostile bytes under valid checksums.
 *
 * The first byte of an input chooses whether the hashes and the length in the header are computed again. The remaining
 * bytes are the list. If it opens, all documents are read. That may fail, but must not crash, read out of bounds, or
 * return a text that is not there or documents out of order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "fuzz_case.h"
#include "platform/os.h"
#include "work/dropped_file.h"

static uint64_t text_sum(const char *text, uint64_t bytes)
{
    REQUIRE(bytes && bytes <= DROPPED_TEXT_MOST);
    return hash64(text, bytes);
}

static void documents_exercise(struct dropped_file *file)
{
    struct tokmap_error error;
    struct dropped_document document;
    uint64_t duplicates = 0, excluded = 0, sum = 0;
    enum tokmap_status status;
    while (!(status = dropped_next(file, &document, &error))) {
        sum += text_sum(document.path, document.path_bytes) + text_sum(document.other_path, document.other_path_bytes);
        if (document.type == DROPPED_EXCLUDED)
            sum += text_sum(document.ngram, document.ngram_bytes);
        duplicates += document.type != DROPPED_EXCLUDED;
        excluded += document.type == DROPPED_EXCLUDED;
    }
    REQUIRE(status != TOKMAP_END ||
            (duplicates == dropped_header(file)->duplicates && excluded == dropped_header(file)->excluded));
    REQUIRE(sum || !(duplicates + excluded));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dropped_header header;
    struct tokmap_error error = {0};
    struct dropped_file *file;
    int fd;
    if (!size || size > (size_t)1 << 16)
        return 0;
    (void)fuzz_file("dropped");
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
        header.header_hash = hash64(&header, offsetof(struct dropped_header, header_hash));
        memcpy(bytes, &header, sizeof header);
    }
    (void)os_unlink(fuzz_path);
    REQUIRE(!os_open(fuzz_path, OS_WRITE_NEW, &fd) && !os_pwrite(fd, bytes, size, 0));
    os_close(fd);
    free(bytes);
    const enum tokmap_status status = dropped_open(&file, fuzz_path, NULL, NULL, &error);
    if (status) {
        REQUIRE(error.status == status && error.message[0]);
        return 0;
    }
    documents_exercise(file);
    dropped_close(file);
    return 0;
}
