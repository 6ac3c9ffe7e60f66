/* SPDX-License-Identifier: MIT */
/*
 * parquet_codec.h - decompresses the pages of Parquet files.
 *
 * The header of a page says how many bytes it has when decompressed. A page that has fewer or more is damaged. The
 * header may lie, so memory grows with the bytes that really come out of the page, and a claim that no page of this
 * size can fulfill is refused before anything is allocated for it.
 *
 * Snappy, gzip, LZ4, and Brotli are read by libraries that a build may lack, or the machine that it runs on;
 * parquet_codec_check() says so.
 */
#ifndef TOKMAP_PARQUET_PARQUET_CODEC_H
#define TOKMAP_PARQUET_PARQUET_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

/* The numbers of CompressionCodec in parquet.thrift. */
enum parquet_codec_kind {
    PARQUET_CODEC_NONE,
    PARQUET_CODEC_SNAPPY,
    PARQUET_CODEC_GZIP,
    PARQUET_CODEC_LZO,
    PARQUET_CODEC_BROTLI,
    PARQUET_CODEC_LZ4_OLD, /* "LZ4": in blocks with Hadoop's headers, or without them, or an LZ4 frame */
    PARQUET_CODEC_ZSTD,
    PARQUET_CODEC_LZ4_RAW,
    PARQUET_CODEC_COUNT
};

/* Bytes after the decompressed ones that the reader of a page may read. They are 0. */
#define PARQUET_CODEC_SLACK 64

/* Returns the name of a codec for messages ("Snappy"), or NULL for a number that is not one. */
const char *parquet_codec_name(int64_t codec);

/* Returns true if this build reads the codec. Its library may still be missing on this machine. */
bool parquet_codec_is_built(int64_t codec);

/* Returns OK if the codec can be read now, for which its library is loaded. Otherwise returns ERROR_UNSUPPORTED with
 * what to do: install a package, and build again where this build lacks the codec; or, for LZO and unknown numbers,
 * write the file with another codec. The message has no path. */
enum tokmap_status parquet_codec_check(int64_t codec, struct tokmap_error *error);

/* The decompressors, which are reused from page to page. Thread rule: one thread at a time. */
struct parquet_codec;

/* Creates them; each allocates its memory when it is first used. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status parquet_codec_new(struct parquet_codec **codecs, struct tokmap_error *error);
void parquet_codec_free(struct parquet_codec *codecs); /* accepts NULL */

/* Decompresses the `stored` bytes at `from`, with a codec that parquet_codec_check() accepts, and makes them the
 * content of `into`: exactly `bytes` bytes, and PARQUET_CODEC_SLACK zero bytes after them. What `into` had is lost; its
 * memory is reused. PARQUET_CODEC_NONE copies; a caller that can use the bytes in place need not call this. `from` may
 * be NULL if `stored` is 0. The message has neither path nor position, which the caller knows. Statuses: OK,
 * ERROR_CORRUPT (damaged, truncated, or not of `bytes` bytes), ERROR_MEMORY, ERROR_UNSUPPORTED. After an error `into`
 * is empty. */
enum tokmap_status parquet_codec_decode(struct parquet_codec *codecs, int64_t codec, const void *from, size_t stored,
                                        struct bytes_buffer *into, size_t bytes, struct tokmap_error *error);

/* Returns the CRC-32 of the bytes, which is also that of gzip: polynomial 04c11db7, reflected. Any thread. */
uint32_t parquet_crc(const void *bytes, uint64_t count);

#endif
