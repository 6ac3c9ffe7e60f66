/* SPDX-License-Identifier: MIT */
/* zstd_library.h - the functions of libzstd, which is loaded when the first compressed data is read or written. */
#ifndef TOKMAP_PLATFORM_ZSTD_LIBRARY_H
#define TOKMAP_PLATFORM_ZSTD_LIBRARY_H

#define ZSTD_STATIC_LINKING_ONLY /* declares ZSTD_compressSequences() */
#include <zstd.h>
#include <zstd_errors.h>

#include "library.h"

#define LIBZSTD_FUNCTIONS(X)                                                                                           \
    X(ZSTD_CCtx_setParameter)                                                                                          \
    X(ZSTD_CStreamOutSize)                                                                                             \
    X(ZSTD_DCtx_loadDictionary)                                                                                        \
    X(ZSTD_DCtx_reset)                                                                                                 \
    X(ZSTD_DCtx_setParameter)                                                                                          \
    X(ZSTD_DStreamOutSize)                                                                                             \
    X(ZSTD_compress)                                                                                                   \
    X(ZSTD_compress2)                                                                                                  \
    X(ZSTD_compressBound)                                                                                              \
    X(ZSTD_compressSequences)                                                                                          \
    X(ZSTD_compressStream2)                                                                                            \
    X(ZSTD_createCCtx)                                                                                                 \
    X(ZSTD_createDCtx)                                                                                                 \
    X(ZSTD_decompressDCtx)                                                                                             \
    X(ZSTD_decompressStream)                                                                                           \
    X(ZSTD_findFrameCompressedSize)                                                                                    \
    X(ZSTD_freeCCtx)                                                                                                   \
    X(ZSTD_freeDCtx)                                                                                                   \
    X(ZSTD_getDictID_fromFrame)                                                                                        \
    X(ZSTD_getErrorCode)                                                                                               \
    X(ZSTD_getErrorName)                                                                                               \
    X(ZSTD_isError)

LIBRARY_DECLARE(libzstd, LIBZSTD_FUNCTIONS)

#endif
