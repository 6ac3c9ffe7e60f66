/* SPDX-License-Identifier: MIT */
/*
 * codec_libraries.h - the functions of the libraries that decompress inputs, each loaded when the first data in its
 * format is read. A build has those whose headers it found (HAVE_...), and NULL in place of others. zstd is in
 * platform/zstd_library.h.
 */
#ifndef TOKMAP_CODEC_CODEC_LIBRARIES_H
#define TOKMAP_CODEC_CODEC_LIBRARIES_H

#include "platform/library.h"

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#define LIBISAL_FUNCTIONS(X) X(crc32_gzip_refl) X(isal_inflate) X(isal_inflate_init)
LIBRARY_DECLARE(libisal, LIBISAL_FUNCTIONS)
#define ISAL_LIBRARY (&libisal_library)
#else
#define ISAL_LIBRARY NULL
#endif

#ifdef HAVE_SNAPPY
#include <snappy-c.h>
#define LIBSNAPPY_FUNCTIONS(X) X(snappy_uncompress) X(snappy_uncompressed_length)
LIBRARY_DECLARE(libsnappy, LIBSNAPPY_FUNCTIONS)
#define SNAPPY_LIBRARY (&libsnappy_library)
#else
#define SNAPPY_LIBRARY NULL
#endif

#ifdef HAVE_LZ4
#include <lz4.h>
#include <lz4frame.h>
#define LIBLZ4_FUNCTIONS(X)                                                                                            \
    X(LZ4F_createDecompressionContext)                                                                                 \
    X(LZ4F_decompress)                                                                                                 \
    X(LZ4F_freeDecompressionContext)                                                                                   \
    X(LZ4F_getErrorName)                                                                                               \
    X(LZ4F_isError)                                                                                                    \
    X(LZ4F_resetDecompressionContext)                                                                                  \
    X(LZ4_decompress_safe)
LIBRARY_DECLARE(liblz4, LIBLZ4_FUNCTIONS)
#define LZ4_LIBRARY (&liblz4_library)
#else
#define LZ4_LIBRARY NULL
#endif

#ifdef HAVE_BROTLI
#include <brotli/decode.h>
#define LIBBROTLI_FUNCTIONS(X)                                                                                         \
    X(BrotliDecoderCreateInstance)                                                                                     \
    X(BrotliDecoderDecompressStream)                                                                                   \
    X(BrotliDecoderDestroyInstance)                                                                                    \
    X(BrotliDecoderErrorString)                                                                                        \
    X(BrotliDecoderGetErrorCode)
LIBRARY_DECLARE(libbrotli, LIBBROTLI_FUNCTIONS)
#define BROTLI_LIBRARY (&libbrotli_library)
#else
#define BROTLI_LIBRARY NULL
#endif

#ifdef HAVE_BZIP2
#include <bzlib.h>
#define LIBBZ2_FUNCTIONS(X) X(BZ2_bzDecompress) X(BZ2_bzDecompressEnd) X(BZ2_bzDecompressInit)
LIBRARY_DECLARE(libbz2, LIBBZ2_FUNCTIONS)
#define BZIP2_LIBRARY (&libbz2_library)
#else
#define BZIP2_LIBRARY NULL
#endif

#ifdef HAVE_XZ
#include <lzma.h>
#define LIBLZMA_FUNCTIONS(X) X(lzma_code) X(lzma_end) X(lzma_memusage) X(lzma_stream_decoder)
LIBRARY_DECLARE(liblzma, LIBLZMA_FUNCTIONS)
#define XZ_LIBRARY (&liblzma_library)
#else
#define XZ_LIBRARY NULL
#endif

#endif
