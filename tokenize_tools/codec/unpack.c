/* SPDX-License-Identifier: MIT */
/* unpack.c - see unpack.h. */
#include "unpack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec_libraries.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/zstd_library.h"

#define ZSTD_WINDOW_LOG 27              /* 128 MiB, which is also the default limit of 'zstd -d' */
#define XZ_MEMORY ((uint64_t)144 << 20) /* for a dictionary of 128 MiB; 'xz -9' makes one of 64 MiB */

struct unpacker {
    enum file_type type;
    bool inside;      /* a frame has begun and is not complete */
    uint32_t padding; /* bytes after the last xz frame, modulo 4 */
    bool filled;      /* zero bytes follow the last gzip member, as on tapes: gzip(1) ignores them, too */
    char reason[160];
    ZSTD_DCtx *zstd;
#ifdef HAVE_ISAL
    struct inflate_state *gzip;
#endif
#ifdef HAVE_BZIP2
    bz_stream bzip2;
    bool bzip2_open;
#endif
#ifdef HAVE_XZ
    lzma_stream xz;
#endif
#ifdef HAVE_LZ4
    LZ4F_dctx *lz4;
#endif
};

static const struct {
    const char *name, *article, *library, *command, *package;
} kinds[] = {
    [FILE_TYPE_GZIP] = {"gzip", "a", "ISA-L", "gzip", "libisal-dev"},
    [FILE_TYPE_ZSTD] = {"zstd", "a", "zstd", "zstd", "libzstd-dev"},
    [FILE_TYPE_BZIP2] = {"bzip2", "a", "bzip2", "bzip2", "libbz2-dev"},
    [FILE_TYPE_XZ] = {"xz", "an", "xz", "xz", "liblzma-dev"},
    [FILE_TYPE_LZ4] = {"LZ4", "an", "LZ4", "lz4", "liblz4-dev"},
};

const char *unpack_name(enum file_type type)
{
    assert(file_type_is_packed(type));
    return kinds[type].name;
}

bool unpack_is_built(enum file_type type)
{
    assert(file_type_is_packed(type));
    if (type == FILE_TYPE_ZSTD)
        return true;
#ifdef HAVE_ISAL
    if (type == FILE_TYPE_GZIP)
        return true;
#endif
#ifdef HAVE_BZIP2
    if (type == FILE_TYPE_BZIP2)
        return true;
#endif
#ifdef HAVE_XZ
    if (type == FILE_TYPE_XZ)
        return true;
#endif
#ifdef HAVE_LZ4
    if (type == FILE_TYPE_LZ4)
        return true;
#endif
    return false;
}

/* Returns the library that decompresses the type, which unpack_is_built(). */
static struct library *library_of(enum file_type type)
{
    switch ((int)type) {
#ifdef HAVE_ISAL
    case FILE_TYPE_GZIP:
        return &libisal_library;
#endif
#ifdef HAVE_BZIP2
    case FILE_TYPE_BZIP2:
        return &libbz2_library;
#endif
#ifdef HAVE_XZ
    case FILE_TYPE_XZ:
        return &liblzma_library;
#endif
#ifdef HAVE_LZ4
    case FILE_TYPE_LZ4:
        return &liblz4_library;
#endif
    default:
        return &libzstd_library;
    }
}

/* Allocates what frames of the type need; what later frames allocate depends on them. Returns false without memory. */
static bool prepare(struct unpacker *unpacker)
{
    if (unpacker->type == FILE_TYPE_ZSTD) {
        if (!unpacker->zstd)
            unpacker->zstd = libzstd.ZSTD_createDCtx();
        return unpacker->zstd &&
               !libzstd.ZSTD_isError(libzstd.ZSTD_DCtx_reset(unpacker->zstd, ZSTD_reset_session_only)) &&
               !libzstd.ZSTD_isError(
                   libzstd.ZSTD_DCtx_setParameter(unpacker->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG));
    }
#ifdef HAVE_ISAL
    if (unpacker->type == FILE_TYPE_GZIP) {
        if (!unpacker->gzip)
            unpacker->gzip = malloc(sizeof *unpacker->gzip);
        return unpacker->gzip != NULL;
    }
#endif
#ifdef HAVE_LZ4
    if (unpacker->type == FILE_TYPE_LZ4) {
        if (!unpacker->lz4 && liblz4.LZ4F_isError(liblz4.LZ4F_createDecompressionContext(&unpacker->lz4, LZ4F_VERSION)))
            return false;
        liblz4.LZ4F_resetDecompressionContext(unpacker->lz4);
    }
#endif
    return true;
}

enum tokmap_status unpacker_open(struct unpacker **unpacker, enum file_type type, const char *path,
                                 struct tokmap_error *error)
{
    assert(file_type_is_packed(type));
    if (!unpack_is_built(type))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "the input is %s %s file, and this tokmap was built without %s, the library that reads %s; "
                         "pipe the output of '%s -dc' into tokmap, or install %s and build tokmap again",
                         kinds[type].article, kinds[type].name, kinds[type].library, kinds[type].name,
                         kinds[type].command, kinds[type].package);
    char reason[LIBRARY_REASON];
    struct library *library = library_of(type);
    if (!library_load(library, reason, sizeof reason))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, path, TOKMAP_NO_OFFSET,
                         "the input is %s %s file, and the library that reads it cannot be loaded (%s); install it "
                         "(apt-get install %s), or pipe the output of '%s -dc' into tokmap",
                         kinds[type].article, kinds[type].name, reason, library->package, kinds[type].command);
    if (!*unpacker)
        *unpacker = calloc(1, sizeof **unpacker);
    if (!*unpacker)
        return error_set_memory(error, "decompression", sizeof **unpacker);
    (*unpacker)->type = type;
    (*unpacker)->inside = false;
    (*unpacker)->padding = 0;
    (*unpacker)->filled = false;
    return prepare(*unpacker) ? TOKMAP_OK : error_set_memory(error, "decompression", UINT64_MAX);
}

void unpacker_free(struct unpacker *unpacker)
{
    if (!unpacker)
        return;
    if (unpacker->zstd)
        (void)libzstd.ZSTD_freeDCtx(unpacker->zstd);
#ifdef HAVE_ISAL
    free(unpacker->gzip);
#endif
#ifdef HAVE_BZIP2
    if (unpacker->bzip2_open)
        (void)libbz2.BZ2_bzDecompressEnd(&unpacker->bzip2);
#endif
#ifdef HAVE_XZ
    if (unpacker->xz.internal)
        liblzma.lzma_end(&unpacker->xz);
#endif
#ifdef HAVE_LZ4
    if (unpacker->lz4)
        (void)liblz4.LZ4F_freeDecompressionContext(unpacker->lz4);
#endif
    free(unpacker);
}

bool unpacker_is_between(const struct unpacker *unpacker)
{
    return !unpacker->inside;
}

bool unpacker_may_end(const struct unpacker *unpacker)
{
    return !unpacker->inside && !unpacker->padding;
}

static enum unpack_result damaged(struct unpack_step *step, const char *reason)
{
    step->reason = reason;
    return UNPACK_DAMAGED;
}

static enum unpack_result step_zstd(struct unpacker *unpacker, struct unpack_step *step)
{
    ZSTD_inBuffer in = {step->in, step->in_bytes, 0};
    ZSTD_outBuffer out = {step->out, step->out_room, 0};
    const size_t result = libzstd.ZSTD_decompressStream(unpacker->zstd, &out, &in);
    step->used = in.pos;
    step->made = out.pos;
    if (!libzstd.ZSTD_isError(result))
        return result ? UNPACK_MORE : UNPACK_END;
    if (libzstd.ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge) {
        step->reason =
            "the zstd frame needs a window larger than 128 MiB; pipe the output of 'zstd -dc --long=31' into "
            "tokmap";
        return UNPACK_LIMIT;
    }
    step->reason = libzstd.ZSTD_getErrorName(result);
    return unpacker->inside ? UNPACK_DAMAGED : UNPACK_FOREIGN;
}

static enum unpack_result step_gzip(struct unpacker *unpacker, struct unpack_step *step)
{
#ifdef HAVE_ISAL
    struct inflate_state *gzip = unpacker->gzip;
    if (!unpacker->inside) {
        if (!step->in[0]) { /* only zero bytes may follow these */
            unpacker->filled = true;
            while (step->used < step->in_bytes && !step->in[step->used])
                step->used++;
            return UNPACK_END;
        }
        if ((uint8_t)step->in[0] != 0x1f || unpacker->filled)
            return UNPACK_FOREIGN;
        libisal.isal_inflate_init(gzip);
        gzip->crc_flag = ISAL_GZIP;
    }
    const size_t in_bytes = (size_t)min64(step->in_bytes, UINT32_MAX);
    const size_t out_room = (size_t)min64(step->out_room, UINT32_MAX);
    gzip->next_in = (uint8_t *)(uintptr_t)step->in;
    gzip->avail_in = (uint32_t)in_bytes;
    gzip->next_out = (uint8_t *)step->out;
    gzip->avail_out = (uint32_t)out_room;
    const int result = libisal.isal_inflate(gzip);
    step->used = in_bytes - gzip->avail_in;
    step->made = out_room - gzip->avail_out;
    if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT)
        return damaged(step, result == ISAL_INCORRECT_CHECKSUM ? "the checksum does not match the data"
                                                               : "the compressed data is not valid");
    return gzip->block_state == ISAL_BLOCK_FINISH ? UNPACK_END : UNPACK_MORE;
#else
    return UNPACK_FOREIGN;
#endif
}

static enum unpack_result step_bzip2(struct unpacker *unpacker, struct unpack_step *step)
{
#ifdef HAVE_BZIP2
    bz_stream *bzip2 = &unpacker->bzip2;
    if (!unpacker->inside) {
        if (step->in[0] != 'B')
            return UNPACK_FOREIGN;
        if (unpacker->bzip2_open)
            (void)libbz2.BZ2_bzDecompressEnd(bzip2);
        unpacker->bzip2_open = false;
        memset(bzip2, 0, sizeof *bzip2);
        if (libbz2.BZ2_bzDecompressInit(bzip2, 0, 0) != BZ_OK)
            return UNPACK_MEMORY;
        unpacker->bzip2_open = true;
    }
    const size_t in_bytes = (size_t)min64(step->in_bytes, UINT32_MAX);
    const size_t out_room = (size_t)min64(step->out_room, UINT32_MAX);
    bzip2->next_in = (char *)(uintptr_t)step->in;
    bzip2->avail_in = (unsigned)in_bytes;
    bzip2->next_out = step->out;
    bzip2->avail_out = (unsigned)out_room;
    const int result = libbz2.BZ2_bzDecompress(bzip2);
    step->used = in_bytes - bzip2->avail_in;
    step->made = out_room - bzip2->avail_out;
    if (result == BZ_OK)
        return UNPACK_MORE;
    if (result == BZ_STREAM_END)
        return UNPACK_END;
    if (result == BZ_MEM_ERROR)
        return UNPACK_MEMORY;
    return damaged(step, result == BZ_DATA_ERROR_MAGIC ? "a bzip2 header was expected"
                                                       : "a checksum does not match, or the data is not valid");
#else
    return UNPACK_FOREIGN;
#endif
}

#ifdef HAVE_XZ
/* Between xz frames there may be zero bytes, a multiple of four. */
static enum unpack_result skip_padding(struct unpacker *unpacker, struct unpack_step *step)
{
    while (step->used < step->in_bytes && !step->in[step->used])
        step->used++;
    unpacker->padding = (uint32_t)((unpacker->padding + step->used) % 4);
    return UNPACK_END;
}

static enum unpack_result step_xz_failed(struct unpacker *unpacker, struct unpack_step *step, lzma_ret result)
{
    if (result == LZMA_MEM_ERROR)
        return UNPACK_MEMORY;
    if (result == LZMA_MEMLIMIT_ERROR) {
        (void)snprintf(unpacker->reason, sizeof unpacker->reason,
                       "the xz data needs %" PRIu64 " MiB of memory, and the limit is %" PRIu64
                       " MiB; pipe the output of 'xz -dc' into tokmap",
                       div_ceil(liblzma.lzma_memusage(&unpacker->xz), 1 << 20), XZ_MEMORY >> 20);
        step->reason = unpacker->reason;
        return UNPACK_LIMIT;
    }
    return damaged(step, result == LZMA_OPTIONS_ERROR  ? "it uses a feature that liblzma does not know"
                         : result == LZMA_FORMAT_ERROR ? "an xz header was expected"
                                                       : "a checksum does not match, or the data is not valid");
}
#endif

static enum unpack_result step_xz(struct unpacker *unpacker, struct unpack_step *step)
{
#ifdef HAVE_XZ
    lzma_stream *xz = &unpacker->xz;
    if (!unpacker->inside) {
        if (!step->in[0])
            return skip_padding(unpacker, step);
        if ((uint8_t)step->in[0] != 0xfd || unpacker->padding)
            return UNPACK_FOREIGN;
        if (liblzma.lzma_stream_decoder(xz, XZ_MEMORY, 0) != LZMA_OK)
            return UNPACK_MEMORY;
    }
    xz->next_in = (const uint8_t *)step->in;
    xz->avail_in = step->in_bytes;
    xz->next_out = (uint8_t *)step->out;
    xz->avail_out = step->out_room;
    const lzma_ret result = liblzma.lzma_code(xz, LZMA_RUN);
    step->used = step->in_bytes - xz->avail_in;
    step->made = step->out_room - xz->avail_out;
    if (result == LZMA_STREAM_END)
        return UNPACK_END;
    /* BUF_ERROR: no progress was possible, which at the end of the file is for the caller to report. */
    return result == LZMA_OK || result == LZMA_BUF_ERROR ? UNPACK_MORE : step_xz_failed(unpacker, step, result);
#else
    return UNPACK_FOREIGN;
#endif
}

static enum unpack_result step_lz4(struct unpacker *unpacker, struct unpack_step *step)
{
#ifdef HAVE_LZ4
    /* A frame, or one of the skippable frames that LZ4 and zstd share. */
    if (!unpacker->inside && step->in[0] != 0x04 && ((uint8_t)step->in[0] & 0xf0) != 0x50)
        return UNPACK_FOREIGN;
    size_t used = step->in_bytes, made = step->out_room;
    const size_t result = liblz4.LZ4F_decompress(unpacker->lz4, step->out, &made, step->in, &used, NULL);
    if (liblz4.LZ4F_isError(result))
        return damaged(step, liblz4.LZ4F_getErrorName(result));
    step->used = used;
    step->made = made;
    return result ? UNPACK_MORE : UNPACK_END;
#else
    return UNPACK_FOREIGN;
#endif
}

enum unpack_result unpacker_step(struct unpacker *unpacker, struct unpack_step *step)
{
    static enum unpack_result (*const steps[])(struct unpacker * unpacker, struct unpack_step * step) = {
        [FILE_TYPE_GZIP] = step_gzip, [FILE_TYPE_ZSTD] = step_zstd, [FILE_TYPE_BZIP2] = step_bzip2,
        [FILE_TYPE_XZ] = step_xz,     [FILE_TYPE_LZ4] = step_lz4,
    };
    assert(step->out_room && (step->in_bytes || unpacker->inside));
    step->used = step->made = 0;
    step->reason = "";
    const enum unpack_result result = steps[unpacker->type](unpacker, step);
    if (result == UNPACK_MORE || result == UNPACK_END)
        unpacker->inside = result == UNPACK_MORE;
    return result;
}
