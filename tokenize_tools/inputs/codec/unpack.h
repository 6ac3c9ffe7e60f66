/* SPDX-License-Identifier: MIT */
/*
 * unpack.h - decompresses files that are read from beginning to end: gzip, zstd, bzip2, xz, and LZ4. A file is one or
 * more *frames* in a row (gzip calls them members; bzip2 and xz, streams). A skippable frame 0x184D2A5D of zstd may
 * have the dictionary of those after it, as in .warc.zst. The libraries but zstd are optional at build time. An
 * unpacker is reused for file after file. Thread rule: one thread at a time.
 */
#ifndef TOKMAP_CODEC_UNPACK_H
#define TOKMAP_CODEC_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file_type.h"
#include "tokmap/tokmap.h"

struct unpacker;

/* Returns the name of the compression ("gzip") of a type that file_type_is_packed(). */
const char *unpack_name(enum file_type type);

/* Returns true if this build decompresses files of the type, which file_type_is_packed(). */
bool unpack_is_built(enum file_type type);

/* Prepares *unpacker for a file of the type, which file_type_is_packed(). It is created if it is NULL. Statuses: OK,
 * ERROR_UNSUPPORTED (built without the library; the message has `path` and says what to do), ERROR_MEMORY. */
enum tokmap_status unpacker_open(struct unpacker **unpacker, enum file_type type, const char *path,
                                 struct tokmap_error *error);
void unpacker_free(struct unpacker *unpacker); /* accepts NULL */

/* Prepares the unpacker for another frame of the file. Returns false without memory. */
bool unpacker_continue(struct unpacker *unpacker);
/* Returns false if the frames from here on need a dictionary that does not precede all frames. */
bool unpacker_may_continue(const struct unpacker *unpacker);

enum unpack_result {
    UNPACK_MORE,    /* the frame is not complete: the step needs more input, or more room */
    UNPACK_END,     /* the frame is complete: the next step begins another */
    UNPACK_FOREIGN, /* these bytes do not begin a frame; no byte is used */
    UNPACK_DAMAGED, /* *reason says why */
    UNPACK_LIMIT,   /* the frame needs more memory than is allowed; *reason says how much and what to do */
    UNPACK_REFUSED, /* *reason says what is not read, and what to do */
    UNPACK_MEMORY   /* there is no memory */
};

/* One step of a frame. */
struct unpack_step {
    const char *in;     /* the next bytes of the file */
    size_t in_bytes;    /* their number; 0 at the end of the file */
    char *out;          /* the place for decompressed bytes */
    size_t out_room;    /* at least 1 */
    size_t used, made;  /* result: bytes of `in` that were used, and bytes of `out` */
    const char *reason; /* result: a text that is valid until the next step */
};

/* Decompresses some bytes. After a result other than MORE and END, the unpacker must be opened again. A step that is
 * given input and room makes progress. */
enum unpack_result unpacker_step(struct unpacker *unpacker, struct unpack_step *step);

/* Returns true if no frame has begun that is not complete. A step needs input then. */
bool unpacker_is_between(const struct unpacker *unpacker);

/* Returns true if the bytes so far may be the end of the file: it is not in the middle of a frame, or of the padding
 * between frames. */
bool unpacker_may_end(const struct unpacker *unpacker);

#endif
