/* SPDX-License-Identifier: MIT */
/*
 * parquet_codec.c - see parquet_codec.h.
 *
 * A page header claims how many bytes come out. `bytes` is this claim, and three rules keep it from costing memory:
 *
 * - Snappy makes at most 22 bytes of one (a copy of 64 bytes takes 3), and LZ4 at most 255 (each byte of a length adds
 *   255). A larger claim is refused before anything is allocated.
 * - gzip, zstd, and Brotli can make thousands of bytes of one. A claim of up to 64 bytes for each stored byte, and 1
 * MiB more, gets its memory at once. This is the usual case, and the fast one.
 * - A larger claim begins with that memory, and the memory doubles each time it is full. So 100 bytes that claim 2 GiB
 *   cost 1 MiB unless they really contain more.
 *
 * The libraries are offered one byte more than the claim (the slack has room for it), so a page that contains more than
 * it claims is noticed.
 */
#include "parquet_codec.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec_libraries.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/zstd_library.h"

#define TRUSTED_RATIO 64
#define TRUSTED_BYTES ((size_t)1 << 20)
#define SNAPPY_RATIO 22
#define LZ4_RATIO 255

struct parquet_codec {
    ZSTD_DCtx *zstd;
#ifdef HAVE_ISAL
    struct inflate_state *gzip;
#endif
#ifdef HAVE_LZ4
    LZ4F_dctx *lz4;
#endif
};

/* A page that is being decompressed. */
struct page {
    struct parquet_codec *codecs;
    const char *name; /* of the codec */
    const uint8_t *from;
    size_t stored;
    struct bytes_buffer *into; /* its first `count` bytes are decompressed */
    size_t bytes;              /* that the page claims to have */
    size_t room;               /* bytes for which `into` has memory now, at most `bytes`; the slack is besides */
    struct tokmap_error *error;
};

static const struct {
    const char *name;
    struct library *reader; /* NULL: none is needed, or not in this build */
    const char *library, *package;
} kinds[PARQUET_CODEC_COUNT] = {
    [PARQUET_CODEC_NONE] = {"no compression", NULL, "", ""},
    [PARQUET_CODEC_SNAPPY] = {"Snappy", SNAPPY_LIBRARY, "Snappy", "libsnappy-dev"},
    [PARQUET_CODEC_GZIP] = {"gzip", ISAL_LIBRARY, "ISA-L", "libisal-dev"},
    [PARQUET_CODEC_LZO] = {"LZO", NULL, NULL, NULL},
    [PARQUET_CODEC_BROTLI] = {"Brotli", BROTLI_LIBRARY, "Brotli", "libbrotli-dev"},
    [PARQUET_CODEC_LZ4_OLD] = {"LZ4", LZ4_LIBRARY, "LZ4", "liblz4-dev"},
    [PARQUET_CODEC_ZSTD] = {"zstd", &libzstd_library, "", ""},
    [PARQUET_CODEC_LZ4_RAW] = {"LZ4", LZ4_LIBRARY, "LZ4", "liblz4-dev"},
};

const char *parquet_codec_name(int64_t codec)
{
    return codec < 0 || codec >= PARQUET_CODEC_COUNT ? NULL : kinds[codec].name;
}

bool parquet_codec_is_built(int64_t codec)
{
    return codec == PARQUET_CODEC_NONE || (parquet_codec_name(codec) && kinds[codec].reader);
}

/* Loads the library of a codec that is built. */
static enum tokmap_status codec_load(int64_t codec, struct tokmap_error *error)
{
    char reason[LIBRARY_REASON];
    struct library *library = kinds[codec].reader;
    if (!library || library_load(library, reason, sizeof reason))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                     "the column is compressed with %s, and the library that reads it cannot be loaded (%s); install "
                     "it (apt-get install %s)",
                     kinds[codec].name, reason, library->package);
}

enum tokmap_status parquet_codec_check(int64_t codec, struct tokmap_error *error)
{
    const char *name = parquet_codec_name(codec);
    if (!name)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "the column is compressed with codec number %" PRId64
                         ", which tokmap does not know; write the file again with zstd",
                         codec);
    if (parquet_codec_is_built(codec))
        return codec_load(codec, error);
    if (!kinds[codec].library)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                         "the column is compressed with %s, which tokmap cannot read; write the file again with zstd",
                         name);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                     "the column is compressed with %s, and this tokmap was built without the library %s; "
                     "install %s and build tokmap again",
                     name, kinds[codec].library, kinds[codec].package);
}

enum tokmap_status parquet_codec_new(struct parquet_codec **codecs, struct tokmap_error *error)
{
    *codecs = calloc(1, sizeof **codecs);
    return *codecs ? TOKMAP_OK : error_set_memory(error, "decompression of pages", sizeof **codecs);
}

void parquet_codec_free(struct parquet_codec *codecs)
{
    if (!codecs)
        return;
    if (codecs->zstd)
        (void)libzstd.ZSTD_freeDCtx(codecs->zstd);
#ifdef HAVE_ISAL
    free(codecs->gzip);
#endif
#ifdef HAVE_LZ4
    if (codecs->lz4)
        (void)liblz4.LZ4F_freeDecompressionContext(codecs->lz4);
#endif
    free(codecs);
}

static enum tokmap_status damaged(const struct page *page, const char *reason)
{
    return error_set(page->error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                     "the %s data of the page is damaged (%s)", page->name, reason);
}

static enum tokmap_status wrong_size(const struct page *page, const char *than)
{
    return error_set(page->error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                     "the %s data of the page (%zu bytes) decompresses to %s than the %zu bytes that its header says",
                     page->name, page->stored, than, page->bytes);
}

/* Gives page->into memory for `room` bytes and the slack. The decompressed bytes stay. */
static enum tokmap_status page_room(struct page *page, size_t room)
{
    struct bytes_buffer *into = page->into;
    if (into->capacity < room + PARQUET_CODEC_SLACK) {
        if (!into->count)
            bytes_free(into);
        /* A quarter more, which costs nothing until it is used: the next page may be a little larger. */
        const size_t capacity = room + room / 4 + PARQUET_CODEC_SLACK;
        uint8_t *grown = realloc(into->bytes, capacity);
        if (!grown)
            return error_set_memory(page->error, "a decompressed page", capacity);
        into->bytes = grown;
        into->capacity = capacity;
    }
    page->room = room;
    return TOKMAP_OK;
}

/* Returns how much of the claim gets its memory at once. */
static size_t page_trusted(const struct page *page)
{
    uint64_t trusted;
    if (mul_overflows(page->stored, TRUSTED_RATIO, &trusted) || add_overflows(trusted, TRUSTED_BYTES, &trusted))
        return page->bytes;
    return (size_t)min64(trusted, page->bytes);
}

/* Called when the memory for decompressed bytes is full, and one byte of the slack with it: doubles it. */
static enum tokmap_status page_grow(struct page *page)
{
    return page->room == page->bytes ? wrong_size(page, "more")
                                     : page_room(page, (size_t)min64(page->bytes, 2 * (uint64_t)page->room));
}

/* ---- zstd ---- */

static enum tokmap_status decode_zstd(struct page *page)
{
    struct parquet_codec *codecs = page->codecs;
    struct bytes_buffer *into = page->into;
    if (!codecs->zstd)
        codecs->zstd = libzstd.ZSTD_createDCtx();
    if (!codecs->zstd || libzstd.ZSTD_isError(libzstd.ZSTD_DCtx_reset(codecs->zstd, ZSTD_reset_session_only)))
        return error_set_memory(page->error, "zstd decompression", libzstd.ZSTD_DStreamOutSize());
    if (page->room == page->bytes) {
        const size_t made =
            libzstd.ZSTD_decompressDCtx(codecs->zstd, into->bytes, page->room + 1, page->from, page->stored);
        if (libzstd.ZSTD_isError(made))
            return libzstd.ZSTD_getErrorCode(made) == ZSTD_error_dstSize_tooSmall
                       ? wrong_size(page, "more")
                       : damaged(page, libzstd.ZSTD_getErrorName(made));
        into->count = made;
        return TOKMAP_OK;
    }
    ZSTD_inBuffer in = {page->from, page->stored, 0};
    for (;;) {
        ZSTD_outBuffer out = {into->bytes, page->room + 1, into->count};
        const size_t result = libzstd.ZSTD_decompressStream(codecs->zstd, &out, &in);
        if (libzstd.ZSTD_isError(result))
            return damaged(page, libzstd.ZSTD_getErrorName(result));
        into->count = out.pos;
        if (!result && in.pos == in.size)
            return TOKMAP_OK;
        if (out.pos < out.size && in.pos == in.size)
            return damaged(page, "it ends in the middle");
        if (out.pos == out.size) {
            const enum tokmap_status status = page_grow(page);
            if (status)
                return status;
        }
    }
}

/* ---- gzip ---- */

static enum tokmap_status decode_gzip(struct page *page)
{
#ifdef HAVE_ISAL
    struct bytes_buffer *into = page->into;
    struct inflate_state **state = &page->codecs->gzip;
    if (!*state)
        *state = malloc(sizeof **state);
    if (!*state)
        return error_set_memory(page->error, "gzip decompression", sizeof **state);
    struct inflate_state *gzip = *state;
    /* Several gzip members in a row are one page. Some old writers wrote zlib's header instead of gzip's. */
    for (size_t at = 0; at < page->stored || !at;) {
        const uint8_t *head = page->from + at;
        const bool zlib = page->stored - at >= 2 && (head[0] & 15) == 8 && ((uint32_t)head[0] << 8 | head[1]) % 31 == 0;
        if (!zlib && page->stored - at > 3 && (head[3] & 0xe0))
            return damaged(page, "its header has a reserved flag");
        libisal.isal_inflate_init(gzip);
        gzip->crc_flag = zlib ? ISAL_ZLIB : ISAL_GZIP;
        do {
            if (into->count > page->room) {
                const enum tokmap_status status = page_grow(page);
                if (status)
                    return status;
            }
            const size_t offered_in = (size_t)min64(page->stored - at, UINT32_MAX);
            const size_t offered_out = (size_t)min64(page->room + 1 - into->count, UINT32_MAX);
            gzip->next_in = (uint8_t *)(uintptr_t)page->from + at;
            gzip->avail_in = (uint32_t)offered_in;
            gzip->next_out = into->bytes + into->count;
            gzip->avail_out = (uint32_t)offered_out;
            const int result = libisal.isal_inflate(gzip);
            const size_t made = offered_out - gzip->avail_out, used = offered_in - gzip->avail_in;
            into->count += made;
            at += used;
            if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT)
                return damaged(page,
                               result == ISAL_INCORRECT_CHECKSUM ? "its checksum does not match" : "it is not valid");
            if (gzip->block_state != ISAL_BLOCK_FINISH && !made && !used)
                return damaged(page, "it ends in the middle");
        } while (gzip->block_state != ISAL_BLOCK_FINISH);
        at -= (size_t)(gzip->read_in_length > 0 ? gzip->read_in_length / 8 : 0); /* read ahead, and not used */
    }
    return TOKMAP_OK;
#else
    return parquet_codec_check(PARQUET_CODEC_GZIP, page->error);
#endif
}

/* ---- Brotli ---- */

static enum tokmap_status decode_brotli(struct page *page)
{
#ifdef HAVE_BROTLI
    struct bytes_buffer *into = page->into;
    BrotliDecoderState *brotli = libbrotli.BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (!brotli)
        return error_set_memory(page->error, "Brotli decompression", UINT64_MAX);
    size_t left = page->stored;
    const uint8_t *from = page->from;
    enum tokmap_status status = TOKMAP_OK;
    for (bool done = false; !done && !status;) {
        size_t out = page->room + 1 - into->count;
        uint8_t *at = into->bytes + into->count;
        const BrotliDecoderResult result =
            libbrotli.BrotliDecoderDecompressStream(brotli, &left, &from, &out, &at, NULL);
        into->count = (size_t)(at - into->bytes);
        if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT)
            status = page_grow(page);
        else if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT)
            status = damaged(page, "it ends in the middle");
        else if (result != BROTLI_DECODER_RESULT_SUCCESS)
            status = damaged(page, libbrotli.BrotliDecoderErrorString(libbrotli.BrotliDecoderGetErrorCode(brotli)));
        else if (left)
            status = damaged(page, "it ends before the page does");
        else
            done = true;
    }
    libbrotli.BrotliDecoderDestroyInstance(brotli);
    return status;
#else
    return parquet_codec_check(PARQUET_CODEC_BROTLI, page->error);
#endif
}

/* ---- Snappy ---- */

static enum tokmap_status decode_snappy(struct page *page)
{
#ifdef HAVE_SNAPPY
    const char *from = (const char *)page->from;
    size_t bytes;
    if (libsnappy.snappy_uncompressed_length(from, page->stored, &bytes) != SNAPPY_OK)
        return damaged(page, "it has no length");
    if (bytes != page->bytes)
        return error_set(page->error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                         "the Snappy data of the page says that it has %zu bytes, and the page's header says %zu",
                         bytes, page->bytes);
    if (bytes / SNAPPY_RATIO > page->stored)
        return wrong_size(page, "fewer bytes");
    const enum tokmap_status status = page_room(page, bytes);
    if (status)
        return status;
    if (libsnappy.snappy_uncompress(from, page->stored, (char *)page->into->bytes, &bytes) != SNAPPY_OK)
        return damaged(page, "it is not valid");
    page->into->count = bytes;
    return TOKMAP_OK;
#else
    return parquet_codec_check(PARQUET_CODEC_SNAPPY, page->error);
#endif
}

/* ---- LZ4 ---- */

#ifdef HAVE_LZ4
static enum tokmap_status lz4_room(struct page *page)
{
    if (page->bytes / LZ4_RATIO > page->stored || page->bytes >= INT_MAX || page->stored > INT_MAX)
        return wrong_size(page, "fewer bytes");
    return page_room(page, page->bytes);
}

/* Decompresses one block to the end of page->into. Returns false if it is damaged or larger than `most`. */
static bool lz4_block(struct page *page, const uint8_t *from, size_t stored, size_t most)
{
    const int made = liblz4.LZ4_decompress_safe((const char *)from, (char *)page->into->bytes + page->into->count,
                                                (int)stored, (int)most);
    if (made < 0)
        return false;
    page->into->count += (size_t)made;
    return true;
}

static uint32_t load32_big(const uint8_t *from)
{
    return __builtin_bswap32(load32(from));
}

/* Hadoop's framing: the size of a frame, then blocks, each after its stored size, until the frame is complete; then the
 * next frame. All numbers are big-endian. Example, a page of 300 bytes in two frames, of one block and of two:
 *
 *     0 0 0 200   0 0 0 90  BLOCK    0 0 0 100   0 0 0 40  BLOCK   0 0 0 5  BLOCK
 *
 * Returns false if this is something else. */
static bool lz4_hadoop(struct page *page)
{
    size_t at = 0;
    page->into->count = 0;
    while (at < page->stored) {
        if (page->stored - at < 4)
            return false;
        const size_t begin = page->into->count, frame = load32_big(page->from + at);
        at += 4;
        if (frame > page->bytes - begin)
            return false;
        while (page->into->count < begin + frame) {
            if (page->stored - at < 4)
                return false;
            const size_t stored = load32_big(page->from + at);
            at += 4;
            if (!stored || stored > page->stored - at ||
                !lz4_block(page, page->from + at, stored, begin + frame - page->into->count))
                return false;
            at += stored;
        }
    }
    return page->into->count == page->bytes;
}

static bool lz4_frame(struct page *page)
{
    LZ4F_dctx **lz4 = &page->codecs->lz4;
    if (!*lz4 && liblz4.LZ4F_isError(liblz4.LZ4F_createDecompressionContext(lz4, LZ4F_VERSION)))
        return false;
    liblz4.LZ4F_resetDecompressionContext(*lz4);
    size_t at = 0, result = 1;
    page->into->count = 0;
    while (at < page->stored) {
        size_t out = page->bytes + 1 - page->into->count, in = page->stored - at;
        result = liblz4.LZ4F_decompress(*lz4, page->into->bytes + page->into->count, &out, page->from + at, &in, NULL);
        page->into->count += out;
        at += in;
        if (liblz4.LZ4F_isError(result) || (!in && !out) || page->into->count > page->bytes)
            return false;
    }
    return !result && page->into->count == page->bytes;
}
#endif

static enum tokmap_status decode_lz4_raw(struct page *page)
{
#ifdef HAVE_LZ4
    const enum tokmap_status status = lz4_room(page);
    if (status)
        return status;
    return lz4_block(page, page->from, page->stored, page->bytes + 1)
               ? TOKMAP_OK
               : damaged(page, "it is not valid, or has more bytes than the header says");
#else
    return parquet_codec_check(PARQUET_CODEC_LZ4_RAW, page->error);
#endif
}

/* Decodes a page with the oldest codec number for LZ4, which never said how blocks are framed. parquet-mr wrote
 * Hadoop's framing; parquet-cpp wrote plain blocks, and for some time LZ4 frames. What decompresses to exactly the
 * claimed size is taken. */
static enum tokmap_status decode_lz4_old(struct page *page)
{
#ifdef HAVE_LZ4
    const enum tokmap_status status = lz4_room(page);
    if (status)
        return status;
    if (lz4_hadoop(page))
        return TOKMAP_OK;
    if (page->stored >= 4 && load32(page->from) == 0x184d2204 && lz4_frame(page))
        return TOKMAP_OK;
    page->into->count = 0;
    return decode_lz4_raw(page);
#else
    return parquet_codec_check(PARQUET_CODEC_LZ4_OLD, page->error);
#endif
}

/* ---- any codec ---- */

static enum tokmap_status decode_none(struct page *page)
{
    if (page->stored != page->bytes)
        return error_set(page->error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                         "the page is not compressed and has %zu bytes, and its header says %zu", page->stored,
                         page->bytes);
    const enum tokmap_status status = page_room(page, page->bytes);
    if (status)
        return status;
    if (page->stored)
        memcpy(page->into->bytes, page->from, page->stored);
    page->into->count = page->stored;
    return TOKMAP_OK;
}

static enum tokmap_status decode(struct page *page, int64_t codec)
{
    static enum tokmap_status (*const functions[PARQUET_CODEC_COUNT])(struct page * page) = {
        [PARQUET_CODEC_NONE] = decode_none,       [PARQUET_CODEC_SNAPPY] = decode_snappy,
        [PARQUET_CODEC_GZIP] = decode_gzip,       [PARQUET_CODEC_BROTLI] = decode_brotli,
        [PARQUET_CODEC_LZ4_OLD] = decode_lz4_old, [PARQUET_CODEC_ZSTD] = decode_zstd,
        [PARQUET_CODEC_LZ4_RAW] = decode_lz4_raw,
    };
    const bool grows = codec == PARQUET_CODEC_ZSTD || codec == PARQUET_CODEC_GZIP || codec == PARQUET_CODEC_BROTLI;
    enum tokmap_status status = parquet_codec_check(codec, page->error);
    if (!status && grows)
        status = page_room(page, page_trusted(page));
    if (!status)
        status = functions[codec](page);
    if (!status && page->into->count != page->bytes)
        status = wrong_size(page, page->into->count > page->bytes ? "more" : "fewer bytes");
    return status;
}

enum tokmap_status parquet_codec_decode(struct parquet_codec *codecs, int64_t codec, const void *from, size_t stored,
                                        struct bytes_buffer *into, size_t bytes, struct tokmap_error *error)
{
    assert(codecs && into && (from || !stored));
    struct page page = {codecs, parquet_codec_name(codec), from ? from : "", stored, into, bytes, 0, error};
    into->count = 0;
    if (bytes > SIZE_MAX / 4)
        return wrong_size(&page, "fewer bytes");
    /* Writers store a page without values as nothing at all, whatever the codec. */
    enum tokmap_status status = !stored && !bytes ? page_room(&page, 0) : decode(&page, codec);
    if (status) {
        into->count = 0;
        return status;
    }
    memset(into->bytes + bytes, 0, PARQUET_CODEC_SLACK);
    return TOKMAP_OK;
}

/* ---- the checksum of pages: ISA-L has a fast function; without it, 4 bits at a time ---- */

uint32_t parquet_crc(const void *bytes, uint64_t count)
{
#ifdef HAVE_ISAL
    /* Looking for a file that does not exist, for each page and in all threads, would cost more than the library saves.
     */
    static bool missing;
    char reason[LIBRARY_REASON];
    if (!__atomic_load_n(&missing, __ATOMIC_RELAXED)) {
        if (library_load(&libisal_library, reason, sizeof reason))
            return libisal.crc32_gzip_refl(0, bytes, count);
        __atomic_store_n(&missing, true, __ATOMIC_RELAXED);
    }
#endif
    /* The remainder of each number of 4 bits. */
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < count; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
