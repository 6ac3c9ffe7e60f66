/* SPDX-License-Identifier: MIT */
/*
 * fuzz_values.c - the readers of values and of notes about them, with hostile bytes under valid checksums.
 *
 * The first byte of an input chooses whether hashes are computed again, and whether the rest is a file of values, whose
 * index says the tokens and the content id that the file claims, or a note. What is opened has its parts inside the
 * file, one after another; a note has no more records than it has bytes for.
 */
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "dataset/values_notes.h"
#include "format/values_file.h"
#include "fuzz_case.h"
#include "platform/os.h"

enum { CHUNK_HEAD = 16, RECORD = 24, NOTE_HEAD = 8 };

static enum tokmap_status record_found(void *user, const struct values_record *record, struct tokmap_error *error)
{
    (void)record;
    (void)error;
    ++*(uint64_t *)user;
    return TOKMAP_OK;
}

static void note_hash(uint8_t *bytes, size_t size)
{
    for (size_t at = NOTE_HEAD; at + CHUNK_HEAD <= size;) {
        const uint64_t count = load64(bytes + at), records = count * RECORD;
        if (count > VALUES_CHUNK_MOST || records > size - at - CHUNK_HEAD)
            return;
        store64(bytes + at + 8, hash64_seeded(bytes + at + CHUNK_HEAD, (size_t)records, count));
        at += CHUNK_HEAD + (size_t)records;
    }
}

static void note_check(size_t size)
{
    struct tokmap_error error = {0};
    uint64_t records = 0;
    bool locked;
    const enum tokmap_status status = values_note_scan(fuzz_path, &locked, record_found, &records, &error);
    REQUIRE(error.status == status && !locked);
    REQUIRE(records * RECORD <= size);
}

static void values_check(const uint8_t *bytes, size_t size)
{
    struct index index = {.path = "x.tmx"};
    struct values_file values;
    struct tokmap_error error = {0};
    char index_path[sizeof fuzz_path];
    if (size >= 80) {
        index.shard.tokens = load64(bytes + 56);
        memcpy(index.shard.content, bytes + 64, 16);
    }
    REQUIRE(snprintf(index_path, sizeof index_path, "%s", fuzz_path) > 0);
    strcpy(strstr(index_path, ".w.values"), ".tmx");
    const enum tokmap_status status = values_file_open(&values, index_path, &index, "w", &error);
    REQUIRE(error.status == status && (!status || error.message[0]));
    if (status)
        return;
    const uint64_t value_bytes = values.array.value_bytes;
    REQUIRE(value_bytes && value_bytes <= VALUES_TOKEN_MOST && values.array.dimensions <= VALUES_DIMENSIONS_MOST);
    REQUIRE(values.tokens <= size && values.present <= values.tokens && values.bytes == size);
    REQUIRE(VALUES_AT + values.tokens * value_bytes <= values.bitmap_at);
    REQUIRE(values_hashed_end(&values) <= values.hashes_at && values.hashes_at <= size);
    REQUIRE(strlen(VALUES_TYPE(&values.array)) > 1);
    values_file_close(&values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd;
    if (!size || size > (size_t)1 << 17)
        return 0;
    (void)fuzz_file("w.values");
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data + 1, --size);
    const bool note = data[0] & 2;
    if (!(data[0] & 1) && note)
        note_hash(bytes, size);
    else if (!(data[0] & 1) && size >= VALUES_AT)
        store64(bytes + VALUES_AT - 8, hash64(bytes, VALUES_AT - 8));
    (void)os_unlink(fuzz_path);
    REQUIRE(!os_open(fuzz_path, OS_WRITE_NEW, &fd) && !os_pwrite(fd, bytes, size, 0));
    os_close(fd);
    if (note)
        note_check(size);
    else
        values_check(bytes, size);
    free(bytes);
    return 0;
}
