/* SPDX-License-Identifier: MIT */
/*
 * fuzz_codec.c - decompressing hostile pages of Parquet files and hostile compressed files. The first byte chooses the
 * codec or the type of file. For a page, the next three bytes are the size that its header claims; for a file, they
 * choose how many bytes a step is given. A page has exactly the claimed size or is refused, its memory is bounded by
 * what is stored and what came out, and a file gives the same bytes in small steps as in large ones.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/unpack.h"
#include "common/bytes.h"
#include "common/hash.h"
#include "fuzz_case.h"
#include "parquet/parquet_codec.h"

#define MOST ((uint64_t)8 << 20) /* decompressed bytes of a file that are looked at */

static void page_try(int64_t codec, const uint8_t *stored, size_t count, size_t claim)
{
    static struct parquet_codec *codecs;
    struct bytes_buffer page = {NULL, 0, 0};
    struct tokmap_error error = {0};
    /* A copy of its own, so that a sanitizer sees a read beyond the end. */
    uint8_t *copy = malloc(count ? count : 1);
    REQUIRE(copy && (codecs || parquet_codec_new(&codecs, &error) == TOKMAP_OK));
    if (count)
        memcpy(copy, stored, count);
    const enum tokmap_status status = parquet_codec_decode(codecs, codec, copy, count, &page, claim, &error);
    REQUIRE(status == TOKMAP_OK || (page.count == 0 && error.message[0]));
    REQUIRE(status == TOKMAP_OK || status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_UNSUPPORTED);
    if (!status) {
        REQUIRE(page.count == claim && page.capacity >= claim + PARQUET_CODEC_SLACK);
        for (size_t i = 0; i < PARQUET_CODEC_SLACK; i++)
            REQUIRE(!page.bytes[claim + i]);
        uint64_t sum = 0;
        for (size_t i = 0; i < claim; i++)
            sum += page.bytes[i];
        REQUIRE(sum <= 255 * (uint64_t)claim);
    }
    bytes_free(&page);
    free(copy);
}

struct result {
    uint64_t bytes, hash;
    enum unpack_result last;
    bool complete;
};

/* Decompresses a file, `in_most` bytes at a time, into room for `out_most` bytes. */
static struct result file_try(enum file_type type, const uint8_t *stored, size_t count, size_t in_most, size_t out_most)
{
    static struct unpacker *unpacker;
    static char room[4096];
    struct tokmap_error error;
    struct result result = {0, 0, UNPACK_END, false};
    if (!unpack_is_built(type))
        return result;
    REQUIRE(unpacker_open(&unpacker, type, "file", &error) == TOKMAP_OK);
    struct hash_state *hash = hash_state_new();
    REQUIRE(hash);
    for (size_t at = 0; result.bytes < MOST;) {
        const size_t left = count - at;
        if (!left && unpacker_is_between(unpacker))
            break;
        struct unpack_step step = {.in = (const char *)stored + at,
                                   .in_bytes = (size_t)min64(left, in_most),
                                   .out = room,
                                   .out_room = (size_t)min64(out_most, sizeof room)};
        result.last = unpacker_step(unpacker, &step);
        REQUIRE(step.reason);
        if (result.last > UNPACK_END)
            break;
        REQUIRE(step.used <= step.in_bytes && step.made <= step.out_room);
        REQUIRE(step.used || step.made || !left || result.last == UNPACK_END);
        hash_state_add(hash, room, step.made);
        at += step.used;
        result.bytes += step.made;
        if (!left && !step.made && result.last == UNPACK_MORE)
            break;
    }
    result.complete = result.last == UNPACK_END && unpacker_may_end(unpacker);
    result.hash = hash_state_64(hash);
    hash_state_free(hash);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    const uint8_t *stored = data + 4;
    const size_t count = size - 4, number = load32(data) >> 8;
    if (data[0] % 16 < 9) {
        page_try(data[0] % 16, stored, count, number);
        page_try(data[0] % 16, stored, count, (size_t)INT32_MAX - number); /* a claim of about 2 GiB */
        return 0;
    }
    const enum file_type type = (enum file_type)(FILE_TYPE_GZIP + data[0] % 16 % 5);
    if (!count)
        return 0;
    const struct result large = file_try(type, stored, count, SIZE_MAX, SIZE_MAX);
    const struct result small = file_try(type, stored, count, 1 + number % 97, 1 + number / 97 % 997);
    REQUIRE(large.complete == small.complete || large.bytes >= MOST || small.bytes >= MOST);
    REQUIRE(!large.complete || large.bytes >= MOST || (large.bytes == small.bytes && large.hash == small.hash));
    return 0;
}
