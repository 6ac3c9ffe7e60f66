/* SPDX-License-Identifier: MIT */
/* test_parquet_codec.c - pages of every codec: round trips, wrong sizes, truncated and damaged pages, claims of sizes
 * that a page cannot have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "codec/codec_libraries.h"
#include "common/bytes.h"
#include "parquet/parquet_codec.h"
#include "support/guarded.h"
#include "support/scratch.h"

#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif
#ifdef HAVE_SNAPPY
#include <snappy-c.h>
#endif
#ifdef HAVE_LZ4
#include <lz4.h>
#include <lz4frame.h>
#endif
#ifdef HAVE_BROTLI
#include <brotli/encode.h>
#endif

static struct parquet_codec *codecs;
static struct bytes_buffer page;
static uint64_t seed = 5;

static int start(void **state)
{
    struct tokmap_error error;
    return parquet_codec_new(&codecs, &error) != TOKMAP_OK;
}

static int stop(void **state)
{
    parquet_codec_free(codecs);
    parquet_codec_free(NULL);
    bytes_free(&page);
    return 0;
}

/* ---- writers of pages: bytes into `into`, which is large enough; they return the stored size ---- */

typedef size_t page_writer(uint8_t *into, size_t room, const uint8_t *bytes, size_t count);

static size_t store_none(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    memcpy(into, bytes, count);
    return count;
}

static size_t store_zstd(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    const size_t made = ZSTD_compress(into, room, bytes, count, 3);
    assert_false(ZSTD_isError(made));
    return made;
}

/* As parquet-mr writes it: without the size in the frame's header. */
static size_t store_zstd_stream(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    ZSTD_outBuffer out = {into, room, 0};
    assert_non_null(zstd);
    for (size_t at = 0; at < count; at += 4000) {
        ZSTD_inBuffer in = {bytes + at, (size_t)min64(4000, count - at), 0};
        assert_int_equal(ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush), 0);
    }
    ZSTD_inBuffer none = {NULL, 0, 0};
    assert_int_equal(ZSTD_compressStream2(zstd, &out, &none, ZSTD_e_end), 0);
    (void)ZSTD_freeCCtx(zstd);
    return out.pos;
}

#ifdef HAVE_ISAL
static size_t store_deflate(uint16_t wrapper, uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    struct isal_zstream *gzip = malloc(sizeof *gzip);
    assert_non_null(gzip);
    isal_deflate_stateless_init(gzip);
    gzip->gzip_flag = wrapper;
    gzip->end_of_stream = 1;
    gzip->next_in = (uint8_t *)(uintptr_t)bytes;
    gzip->avail_in = (uint32_t)count;
    gzip->next_out = into;
    gzip->avail_out = (uint32_t)room;
    assert_int_equal(isal_deflate_stateless(gzip), COMP_OK);
    const size_t made = room - gzip->avail_out;
    free(gzip);
    return made;
}

static size_t store_gzip(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    return store_deflate(IGZIP_GZIP, into, room, bytes, count);
}

static size_t store_zlib(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    return store_deflate(IGZIP_ZLIB, into, room, bytes, count);
}

static size_t store_gzip_members(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    const size_t first = store_gzip(into, room, bytes, count / 3);
    return first + store_gzip(into + first, room - first, bytes + count / 3, count - count / 3);
}
#endif

#ifdef HAVE_SNAPPY
static size_t store_snappy(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    assert_int_equal(snappy_compress((const char *)bytes, count, (char *)into, &room), SNAPPY_OK);
    return room;
}
#endif

#ifdef HAVE_LZ4
static size_t store_lz4(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    const int made = LZ4_compress_default((const char *)bytes, (char *)into, (int)count, (int)room);
    assert_true(made > 0);
    return (size_t)made;
}

static size_t store_lz4_frame(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    const size_t made = LZ4F_compressFrame(into, room, bytes, count, NULL);
    assert_false(LZ4F_isError(made));
    return made;
}

static void store32_big(uint8_t *into, size_t value)
{
    store32(into, __builtin_bswap32((uint32_t)value));
}

/* Two pieces; the second one has two blocks, or as many as it has bytes. */
static size_t store_lz4_hadoop(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    const size_t ends[] = {count / 2, count / 2 + (count - count / 2) / 2, count};
    size_t made = 0, at = 0;
    for (size_t i = 0; i < 3; i++) {
        if (i < 2) {
            store32_big(into + made, i == 0 ? ends[0] : count - ends[0]);
            made += 4;
        }
        if (ends[i] == at)
            continue;
        const size_t stored = store_lz4(into + made + 4, room - made - 4, bytes + at, ends[i] - at);
        store32_big(into + made, stored);
        made += 4 + stored;
        at = ends[i];
    }
    return made;
}
#endif

#ifdef HAVE_BROTLI
static size_t store_brotli(uint8_t *into, size_t room, const uint8_t *bytes, size_t count)
{
    assert_true(BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, count, bytes, &room, into));
    return room;
}
#endif

static const struct {
    enum parquet_codec_kind codec;
    page_writer *store;
    bool checked; /* every changed bit of the data is noticed, because there is a checksum */
} writers[] = {
    {PARQUET_CODEC_NONE, store_none, false},          {PARQUET_CODEC_ZSTD, store_zstd, false},
    {PARQUET_CODEC_ZSTD, store_zstd_stream, false},
#ifdef HAVE_ISAL
    {PARQUET_CODEC_GZIP, store_gzip, true},           {PARQUET_CODEC_GZIP, store_zlib, true},
    {PARQUET_CODEC_GZIP, store_gzip_members, true},
#endif
#ifdef HAVE_SNAPPY
    {PARQUET_CODEC_SNAPPY, store_snappy, false},
#endif
#ifdef HAVE_LZ4
    {PARQUET_CODEC_LZ4_RAW, store_lz4, false},        {PARQUET_CODEC_LZ4_OLD, store_lz4, false},
    {PARQUET_CODEC_LZ4_OLD, store_lz4_hadoop, false}, {PARQUET_CODEC_LZ4_OLD, store_lz4_frame, false},
#endif
#ifdef HAVE_BROTLI
    {PARQUET_CODEC_BROTLI, store_brotli, false},
#endif
};
#define WRITERS (sizeof writers / sizeof writers[0])

/* Bytes of four kinds: random, text-like, long runs, and all equal. */
static void make_bytes(uint8_t *bytes, size_t count, size_t kind)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t random = random_next(&seed);
        bytes[i] = kind == 0   ? (uint8_t)random
                   : kind == 1 ? "etaoin shrdlu"[random % 13]
                   : kind == 2 ? (uint8_t)(i >> 14)
                               : 'x';
        if (kind == 1 && random % 5 == 0 && i >= 40)
            bytes[i] = bytes[i - 40];
    }
}

/* Decodes the page from memory that ends with it. */
static enum tokmap_status decode(size_t w, const uint8_t *stored, size_t count, size_t bytes,
                                 struct tokmap_error *error)
{
    struct guarded memory = guarded_new(count ? count : 1);
    if (count)
        memcpy(memory.at, stored, count);
    const enum tokmap_status status =
        parquet_codec_decode(codecs, writers[w].codec, count ? memory.at : NULL, count, &page, bytes, error);
    guarded_free(memory);
    if (status) {
        assert_true(page.count == 0 && error->message[0] && error->status == status);
        return status;
    }
    assert_true(page.count == bytes && page.capacity >= bytes + PARQUET_CODEC_SLACK);
    for (size_t i = 0; i < PARQUET_CODEC_SLACK; i++)
        assert_int_equal(page.bytes[bytes + i], 0);
    return TOKMAP_OK;
}

static void test_round_trips(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 5, 63, 64, 65, 1000, 4096, 65537, 300000, 1u << 20, 5000003};
    struct tokmap_error error;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t count = sizes[i], room = 2 * count + 1000;
        uint8_t *bytes = malloc(count + 1), *stored = malloc(room);
        assert_true(bytes && stored);
        for (size_t kind = 0; kind < 4; kind++) {
            make_bytes(bytes, count, kind);
            for (size_t w = 0; w < WRITERS; w++) {
                const size_t made = writers[w].store(stored, room, bytes, count);
                if (decode(w, stored, made, count, &error))
                    fail_msg("writer %zu, kind %zu, %zu bytes: %s", w, kind, count, error.message);
                assert_true(!count || !memcmp(page.bytes, bytes, count));
            }
        }
        free(bytes);
        free(stored);
    }
}

/* A page that has one byte more or one less than its header says, or twice as many, is damaged. The page may be so
 * compressible that its memory grows. */
static void test_wrong_sizes(void **state)
{
    static const size_t sizes[] = {1, 2, 64, 3000, 4000000};
    struct tokmap_error error;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t count = sizes[i], room = 2 * count + 1000;
        uint8_t *bytes = malloc(count), *stored = malloc(room);
        assert_true(bytes && stored);
        for (size_t kind = 1; kind < 4; kind += 2) {
            make_bytes(bytes, count, kind);
            for (size_t w = 0; w < WRITERS; w++) {
                const size_t made = writers[w].store(stored, room, bytes, count);
                const size_t claims[] = {0, count - 1, count + 1, count / 2 + count % 2 - 1, 2 * count, count + 100000};
                for (size_t c = 0; c < sizeof claims / sizeof claims[0]; c++)
                    if (claims[c] != count)
                        assert_int_equal(decode(w, stored, made, claims[c], &error), TOKMAP_ERROR_CORRUPT);
            }
        }
        free(bytes);
        free(stored);
    }
}

/* A few bytes that claim up to 2 GiB cost no memory. */
static void test_claims(void **state)
{
    static const size_t claims[] = {100000000, INT32_MAX, UINT32_MAX, SIZE_MAX / 8, SIZE_MAX / 4 + 1, SIZE_MAX};
    struct tokmap_error error;
    uint8_t bytes[500], stored[2000];
    make_bytes(bytes, sizeof bytes, 3);
    for (size_t w = 0; w < WRITERS; w++) {
        const size_t made = writers[w].store(stored, sizeof stored, bytes, sizeof bytes);
        for (size_t c = 0; c < sizeof claims / sizeof claims[0]; c++) {
            bytes_free(&page);
            assert_int_equal(decode(w, stored, made, claims[c], &error), TOKMAP_ERROR_CORRUPT);
            assert_true(page.capacity < 3u << 20);
        }
    }
}

static void test_truncated(void **state)
{
    struct tokmap_error error;
    uint8_t bytes[700], stored[3000];
    for (size_t kind = 0; kind < 4; kind++) {
        make_bytes(bytes, sizeof bytes, kind);
        for (size_t w = 0; w < WRITERS; w++) {
            const size_t made = writers[w].store(stored, sizeof stored, bytes, sizeof bytes);
            for (size_t cut = 0; cut < made; cut++) {
                if (decode(w, stored, cut, sizeof bytes, &error) != TOKMAP_ERROR_CORRUPT)
                    fail_msg("writer %zu, kind %zu: %zu of %zu bytes", w, kind, cut, made);
            }
            memcpy(stored + made, "\x00\x01", 2);
            if (decode(w, stored, made + 2, sizeof bytes, &error) != TOKMAP_ERROR_CORRUPT)
                fail_msg("writer %zu, kind %zu: two bytes after its end", w, kind);
        }
    }
}

/* One changed bit, at each place; then many changed bytes. Nothing is read or written out of bounds, and a checksum is
 * honored where there is one. */
static void test_damaged(void **state)
{
    struct tokmap_error error;
    uint8_t bytes[400], stored[2000];
    for (size_t kind = 0; kind < 4; kind++) {
        make_bytes(bytes, sizeof bytes, kind);
        for (size_t w = 0; w < WRITERS; w++) {
            const size_t made = writers[w].store(stored, sizeof stored, bytes, sizeof bytes);
            for (size_t bit = 0; bit < 8 * made; bit++) {
                stored[bit / 8] ^= (uint8_t)(1u << bit % 8);
                const enum tokmap_status status = decode(w, stored, made, sizeof bytes, &error);
                assert_true(status == TOKMAP_OK || status == TOKMAP_ERROR_CORRUPT);
                if (!status && writers[w].checked)
                    assert_memory_equal(page.bytes, bytes, sizeof bytes);
                stored[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            for (size_t i = 0; i < 300; i++) {
                uint8_t copy[2000];
                memcpy(copy, stored, made);
                for (size_t n = 1 + random_below(&seed, 8); n; n--)
                    copy[random_below(&seed, made)] = (uint8_t)random_next(&seed);
                const enum tokmap_status status = decode(w, copy, made, sizeof bytes, &error);
                assert_true(status == TOKMAP_OK || status == TOKMAP_ERROR_CORRUPT);
            }
            /* The decompressor is sound after all of that. */
            assert_int_equal(decode(w, stored, made, sizeof bytes, &error), TOKMAP_OK);
            assert_memory_equal(page.bytes, bytes, sizeof bytes);
        }
    }
}

/* What the framing of old LZ4 looks like, byte by byte, without an encoder. */
static void test_hadoop(void **state)
{
#ifdef HAVE_LZ4
    struct tokmap_error error;
    static const uint8_t framed[] = "\0\0\0\3\0\0\0\4\x30"
                                    "abc"
                                    "\0\0\0\5\0\0\0\3\x20"
                                    "de"
                                    "\0\0\0\4\x30"
                                    "fgh";
    assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_LZ4_OLD, framed, sizeof framed - 1, &page, 8, &error),
                     TOKMAP_OK);
    assert_memory_equal(page.bytes, "abcdefgh", 8);
    assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_LZ4_RAW, framed, sizeof framed - 1, &page, 8, &error),
                     TOKMAP_ERROR_CORRUPT);
    static const uint8_t raw[] = "\x80"
                                 "abcdefgh";
    assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_LZ4_OLD, raw, 9, &page, 8, &error), TOKMAP_OK);
    assert_memory_equal(page.bytes, "abcdefgh", 8);
#endif
}

static void test_unknown(void **state)
{
    static const int64_t numbers[] = {-1, PARQUET_CODEC_COUNT, INT64_MAX, INT64_MIN};
    struct tokmap_error error;
    for (size_t i = 0; i < 4; i++) {
        assert_null(parquet_codec_name(numbers[i]));
        assert_int_equal(parquet_codec_check(numbers[i], &error), TOKMAP_ERROR_UNSUPPORTED);
        assert_int_equal(parquet_codec_decode(codecs, numbers[i], "x", 1, &page, 1, &error), TOKMAP_ERROR_UNSUPPORTED);
    }
    assert_int_equal(parquet_codec_check(PARQUET_CODEC_LZO, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "LZO"));
    assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_LZO, "x", 1, &page, 1, &error),
                     TOKMAP_ERROR_UNSUPPORTED);
    for (int codec = 0; codec < PARQUET_CODEC_COUNT; codec++) {
        assert_non_null(parquet_codec_name(codec));
        bool written = false;
        for (size_t w = 0; w < WRITERS; w++)
            written |= (int)writers[w].codec == codec;
        const enum tokmap_status status = parquet_codec_check(codec, &error);
        assert_int_equal(status == TOKMAP_OK, written);
        if (status && codec != PARQUET_CODEC_LZO) {
            assert_non_null(strstr(error.message, "-dev and build tokmap again"));
            assert_int_equal(parquet_codec_decode(codecs, codec, "x", 1, &page, 1, &error), status);
        }
    }
}

/* The library of a codec that cannot be loaded, and then can. */
static void test_missing_library(void **state)
{
#if defined(HAVE_SNAPPY) && !defined(LIBRARIES_LINKED)
    static const uint8_t snappy[] = "\3\10abc";
    const struct library kept = libsnappy_library;
    struct tokmap_error error;
    libsnappy_library.file = "libtokmap_of_nobody.so.7";
    libsnappy_library.state = LIBRARY_UNOPENED;
    assert_int_equal(parquet_codec_check(PARQUET_CODEC_SNAPPY, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "compressed with Snappy, and the library that reads it cannot be loaded"));
    assert_non_null(strstr(error.message, "libtokmap_of_nobody.so.7"));
    assert_non_null(strstr(error.message, "apt-get install libsnappy"));
    assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_SNAPPY, snappy, 5, &page, 3, &error),
                     TOKMAP_ERROR_UNSUPPORTED);
    assert_true(parquet_codec_is_built(PARQUET_CODEC_SNAPPY));
    libsnappy_library.file = kept.file;
    assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_SNAPPY, snappy, 5, &page, 3, &error), TOKMAP_OK);
    assert_memory_equal(page.bytes, "abc", 3);
#endif
}

/* RFC 1952, 2.3.1.2: a reserved flag of a member, here also of the second one, is an error. */
static void test_reserved_flags(void **state)
{
#ifdef HAVE_ISAL
    uint8_t stored[400];
    struct tokmap_error error;
    for (uint8_t flag = 0x20; flag; flag = (uint8_t)(flag << 1)) {
        const size_t first = store_gzip(stored, 200, (const uint8_t *)"ab", 2);
        const size_t made = first + store_gzip(stored + first, 200, (const uint8_t *)"c", 1);
        assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_GZIP, stored, made, &page, 3, &error), TOKMAP_OK);
        stored[first + 3] |= flag;
        assert_int_equal(parquet_codec_decode(codecs, PARQUET_CODEC_GZIP, stored, made, &page, 3, &error),
                         TOKMAP_ERROR_CORRUPT);
        assert_non_null(strstr(error.message, "its header has a reserved flag"));
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),    cmocka_unit_test(test_wrong_sizes),
        cmocka_unit_test(test_claims),         cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_hadoop),
        cmocka_unit_test(test_unknown),        cmocka_unit_test(test_missing_library),
        cmocka_unit_test(test_reserved_flags),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
