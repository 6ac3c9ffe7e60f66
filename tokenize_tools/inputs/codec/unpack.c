/* SPDX-License-Identifier: MIT */
#include "unpack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec_libraries.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/zstd_library.h"

#define ZSTD_WINDOW_LOG 27              /* 128 MiB, which is also the default limit of 'zstd -d' */
#define XZ_MEMORY ((uint64_t)144 << 20) /* for a dictionary of 128 MiB; 'xz -9' makes one of 64 MiB */
#define DICTIONARY_FRAME 0x5d           /* the first byte of a skippable frame that may have a dictionary */
#define DICTIONARY_MOST ((size_t)16 << 20)

struct unpacker {
    enum file_type type;
    bool inside;      /* a frame has begun and is not complete */
    uint32_t padding; /* bytes after the last xz frame, modulo 4 */
    bool filled;      /* zero bytes follow the last gzip member, as on tapes: gzip(1) ignores them, too */
    char reason[200];
    ZSTD_DCtx *zstd;
    struct bytes_buffer dictionary;     /* the skippable frame that is being read, if it may have one */
    bool frames_begun, late_dictionary; /* a frame came before a dictionary */
    uint64_t head;                      /* of the gzip member: bytes that have been read */
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
    struct library *reader; /* NULL: not in this build */
} kinds[] = {
    [FILE_TYPE_GZIP] = {"gzip", "a", "ISA-L", "gzip", "libisal-dev", ISAL_LIBRARY},
    [FILE_TYPE_ZSTD] = {"zstd", "a", "zstd", "zstd", "libzstd-dev", &libzstd_library},
    [FILE_TYPE_BZIP2] = {"bzip2", "a", "bzip2", "bzip2", "libbz2-dev", BZIP2_LIBRARY},
    [FILE_TYPE_XZ] = {"xz", "an", "xz", "xz", "liblzma-dev", XZ_LIBRARY},
    [FILE_TYPE_LZ4] = {"LZ4", "an", "LZ4", "lz4", "liblz4-dev", LZ4_LIBRARY},
};

const char *unpack_name(enum file_type type)
{
    assert(file_type_is_packed(type));
    return kinds[type].name;
}

bool unpack_is_built(enum file_type type)
{
    assert(file_type_is_packed(type));
    return kinds[type].reader != NULL;
}

/* Allocates what frames of the type need; what later frames allocate depends on them. again: a dictionary stays.
 * Returns false without memory. */
static bool prepare(struct unpacker *unpacker, bool again)
{
    unpacker->inside = unpacker->filled = false;
    unpacker->padding = 0;
    unpacker->dictionary.count = 0;
    unpacker->frames_begun = again;
    unpacker->late_dictionary = false;
    if (unpacker->type == FILE_TYPE_ZSTD) {
        if (!unpacker->zstd)
            unpacker->zstd = libzstd.ZSTD_createDCtx();
        return unpacker->zstd &&
               !libzstd.ZSTD_isError(libzstd.ZSTD_DCtx_reset(
                   unpacker->zstd, again ? ZSTD_reset_session_only : ZSTD_reset_session_and_parameters)) &&
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
    struct library *library = kinds[type].reader;
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
    return prepare(*unpacker, false) ? TOKMAP_OK : error_set_memory(error, "decompression", UINT64_MAX);
}

bool unpacker_continue(struct unpacker *unpacker)
{
    return prepare(unpacker, true);
}

bool unpacker_may_continue(const struct unpacker *unpacker)
{
    return !unpacker->late_dictionary;
}

void unpacker_free(struct unpacker *unpacker)
{
    if (!unpacker)
        return;
    if (unpacker->zstd)
        (void)libzstd.ZSTD_freeDCtx(unpacker->zstd);
    bytes_free(&unpacker->dictionary);
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

/* Takes what was read of a skippable frame as the dictionary of the frames after it, if it is one, perhaps compressed
 * (.warc.zst). */
static enum unpack_result dictionary_take(struct unpacker *unpacker, struct unpack_step *step)
{
    const uint8_t *found = unpacker->dictionary.bytes + 8;
    const size_t bytes = unpacker->dictionary.count - 8;
    const bool whole = bytes >= 4 && bytes == load32(found - 4), packed = whole && load32(found) == ZSTD_MAGICNUMBER;
    size_t result = bytes;
    unpacker->dictionary.count = 0;
    if (!whole || (!packed && load32(found) != ZSTD_MAGIC_DICTIONARY))
        return UNPACK_END;
    uint8_t *made = packed ? malloc(DICTIONARY_MOST) : NULL;
    if (packed && !made)
        return UNPACK_MEMORY;
    if (packed)
        result = libzstd.ZSTD_decompressDCtx(unpacker->zstd, made, DICTIONARY_MOST, found, bytes);
    if (!libzstd.ZSTD_isError(result))
        result = libzstd.ZSTD_DCtx_loadDictionary(unpacker->zstd, packed ? made : found, result);
    free(made);
    unpacker->late_dictionary |= unpacker->frames_begun;
    return libzstd.ZSTD_isError(result) ? damaged(step, "the dictionary is not valid") : UNPACK_END;
}

static enum unpack_result step_zstd(struct unpacker *unpacker, struct unpack_step *step)
{
    ZSTD_inBuffer in = {step->in, step->in_bytes, 0};
    ZSTD_outBuffer out = {step->out, step->out_room, 0};
    struct bytes_buffer *frame = &unpacker->dictionary;
    const bool dictionary = frame->count || (!unpacker->inside && step->in[0] == DICTIONARY_FRAME);
    const size_t result = libzstd.ZSTD_decompressStream(unpacker->zstd, &out, &in);
    const ZSTD_ErrorCode error = libzstd.ZSTD_getErrorCode(result);
    step->used = in.pos;
    step->made = out.pos;
    unpacker->frames_begun |= !dictionary;
    if (dictionary && !error && frame->count <= DICTIONARY_MOST && !bytes_append(frame, step->in, in.pos))
        return UNPACK_MEMORY;
    if (!error && !result && dictionary)
        return dictionary_take(unpacker, step);
    if (!error)
        return result ? UNPACK_MORE : UNPACK_END;
    step->reason = libzstd.ZSTD_getErrorName(result);
    if (error == ZSTD_error_frameParameter_windowTooLarge) {
        step->reason =
            "the zstd frame needs a window larger than 128 MiB; pipe the output of 'zstd -dc --long=31' into "
            "tokmap";
        return UNPACK_LIMIT;
    }
    if (error == ZSTD_error_dictionary_wrong) {
        (void)snprintf(unpacker->reason, sizeof unpacker->reason,
                       "the zstd data was made with a dictionary (id %u) that is not in the file; pipe the "
                       "output of 'zstd -dc -D DICTIONARY' into tokmap, where DICTIONARY is the file of the dictionary",
                       unpacker->inside ? 0 : libzstd.ZSTD_getDictID_fromFrame(step->in, step->in_bytes));
        step->reason = unpacker->reason;
        return UNPACK_REFUSED;
    }
    return error == ZSTD_error_prefix_unknown && !unpacker->inside ? UNPACK_FOREIGN : UNPACK_DAMAGED;
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
        unpacker->head = 0;
    }
    const size_t in_bytes = (size_t)min64(step->in_bytes, UINT32_MAX);
    if (unpacker->head < 4 && in_bytes > 3 - unpacker->head && (step->in[3 - unpacker->head] & 0xe0)) {
        step->reason = "the header of the gzip data has a reserved flag, which may change what follows, so RFC 1952 "
                       "forbids to read on; compress the file again with 'gzip'";
        return UNPACK_REFUSED;
    }
    const size_t out_room = (size_t)min64(step->out_room, UINT32_MAX);
    gzip->next_in = (uint8_t *)(uintptr_t)step->in;
    gzip->avail_in = (uint32_t)in_bytes;
    gzip->next_out = (uint8_t *)step->out;
    gzip->avail_out = (uint32_t)out_room;
    const int result = libisal.isal_inflate(gzip);
    step->used = in_bytes - gzip->avail_in;
    unpacker->head += step->used;
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
