/* SPDX-License-Identifier: MIT */
/*
 * stream.c - see stream.h.
 *
 * Compressed bytes pass through two buffers: `input` has stored bytes that are not decompressed yet, and `output` has
 * decompressed bytes that the caller has not read yet. Plain text is read directly into the caller's memory.
 *
 * Both buffers of a regular file end at multiples of their sizes, in the file and in the stream, wherever reading
 * began. So a process that continues at a frame decompresses in the same steps as one that began with the first frame,
 * and drops the same bytes where the data is damaged.
 */
#include "stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "byte_source.h"
#include "codec/file_type.h"
#include "codec/unpack.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/visible.h"
#include "text/stand_in.h"

#define INPUT_BYTES ((size_t)256 << 10)   /* size of the buffer of stored bytes */
#define OUTPUT_BYTES ((size_t)128 << 10)  /* decompressed per step */
#define SHOWN_BYTES 24                    /* of the beginning of a file, in messages */
#define FRAMES_KEPT 64                    /* beginnings of frames that stream_frame_before() knows, */
#define FRAMES_APART ((uint64_t)64 << 10) /* each at least so many bytes of the stream after the one before */

struct stream {
    struct byte_source source; /* of the stored bytes */
    bool begun;
    enum file_type type;
    uint64_t delivered; /* bytes that the caller has read */
    char *input;        /* bytes [input_at, input_end) are not decompressed yet */
    size_t input_at, input_end;
    char *output; /* bytes [output_at, output_end) are decompressed and not read by the caller yet */
    size_t output_at, output_end;
    enum tokmap_status failed; /* the error that follows the bytes of `output`; its text is in `failure` */
    struct tokmap_error failure;
    struct unpacker *unpacker;
    struct frame_begin {
        uint64_t stored, begins; /* in the file, and in the stream */
    } frames[FRAMES_KEPT];       /* of a regular file: where the last frames begin; number n is at n % FRAMES_KEPT */
    uint64_t frame_count;        /* number of frames that began behind others */
};

enum tokmap_status stream_new(struct stream **stream, bool (*stop)(void *user), void *user, struct tokmap_error *error)
{
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return error_set_memory(error, "an input", sizeof **stream);
    (*stream)->source.stop = stop;
    (*stream)->source.user = user;
    return TOKMAP_OK;
}

void stream_feed(struct stream *stream, uint32_t feeder, uint64_t feed)
{
    assert(!stream->source.open);
    stream->source.feeder = feeder;
    stream->source.feed_id = feed;
}

void stream_watch(struct stream *stream, const struct remote_watch *watch)
{
    stream->source.watch = watch;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    byte_source_free(&stream->source);
    free(stream->input);
    free(stream->output);
    unpacker_free(stream->unpacker);
    free(stream);
}

const char *stream_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

enum tokmap_status stream_open(struct stream *stream, const char *path, struct tokmap_error *error)
{
    assert(path);
    stream->begun = false;
    stream->type = FILE_TYPE_PLAIN;
    stream->delivered = 0;
    stream->input_at = stream->input_end = 0;
    stream->output_at = stream->output_end = 0;
    stream->frame_count = 0;
    stream->failed = TOKMAP_OK;
    return byte_source_open(&stream->source, path, stream_name(path), error);
}

void stream_close(struct stream *stream)
{
    byte_source_close(&stream->source);
}

void stream_stand_for(struct stream *stream, uint64_t version, uint64_t bytes)
{
    byte_source_stand_for(&stream->source, version, bytes);
}

const struct byte_source *stream_source(const struct stream *stream)
{
    return &stream->source;
}

uint64_t stream_stored(const struct stream *stream)
{
    return stream->source.stored - (stream->input_end - stream->input_at);
}

bool stream_is_regular(const struct stream *stream)
{
    return stream->source.kind && stream->source.kind->seekable;
}

bool stream_is_feed(const struct stream *stream)
{
    return stream->source.open && stream->source.kind->is_feed;
}

bool stream_is_compressed(const struct stream *stream)
{
    return file_type_is_packed(stream->type);
}

/* Returns true if the next read of stored bytes would have to wait. */
static bool pipe_is_empty(const struct stream *stream)
{
    return stream->input_at == stream->input_end && byte_source_waits(&stream->source);
}

bool stream_is_parquet(const struct stream *stream)
{
    const bool in_any_order = stream->source.kind && (stream->source.kind->seekable || stream->source.kind->ranges);
    return in_any_order && stream->begun && stream->type == FILE_TYPE_PARQUET;
}

bool stream_would_wait(const struct stream *stream)
{
    return stream->output_at == stream->output_end && !stream->failed && pipe_is_empty(stream);
}

enum tokmap_status stream_parquet_refused(const struct stream *stream, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->source.name, TOKMAP_NO_OFFSET,
                     "the input is a Parquet file%s", stream->source.kind->parquet);
}

static enum tokmap_status type_refused(const struct stream *stream, const char *name, const char *advice,
                                       struct tokmap_error *error)
{
    if (stream->type == FILE_TYPE_PARQUET)
        return stream_parquet_refused(stream, error);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->source.name, TOKMAP_NO_OFFSET,
                     "the input is %s, which tokmap cannot read; %s", name, advice);
}

/* Returns true if a regular file, of which `head` is the beginning, has the magic of a Parquet file at both ends. The
 * magic alone could be the beginning of a text. */
static bool ends_like_parquet(const struct stream *stream, const char *head, size_t count)
{
    char tail[4];
    size_t got = 0;
    return stream_is_regular(stream) && count >= 12 && !memcmp(head, "PAR1", 4) &&
           !os_pread(stream->source.fd, tail, sizeof tail, stream->source.stat.bytes - sizeof tail, &got) &&
           got == sizeof tail && !memcmp(tail, "PAR1", 4);
}

/* Refuses an input whose name is that of a compressed file, and which does not begin as one. It is often what a server
 * said in place of the file, and would become a document. */
static enum tokmap_status not_packed(const struct stream *stream, const char *head, size_t count,
                                     struct tokmap_error *error)
{
    const struct byte_source *source = &stream->source;
    const enum stand_in stand_in = stand_in_of(head, count);
    if (stand_in == STAND_IN_POINTER)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, source->name, TOKMAP_NO_OFFSET, STAND_IN_POINTER_MESSAGE);
    char shown[SHOWN_BYTES + 1];
    (void)visible_copy(shown, sizeof shown, head, (size_t)min64(count, 4 * SHOWN_BYTES), "");
    const size_t length = strlen(source->name);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, source->name, TOKMAP_NO_OFFSET,
                     "the name ends in %s, but the input is not compressed: it begins with '%s'; %s",
                     source->name + length - file_type_packed_ending(source->name, length), shown,
                     stand_in == STAND_IN_PAGE ? source->kind->page : source->kind->plain);
}

/* Reads the first bytes and recognizes the type of the file. They are read into the caller's buffer, which is where
 * plain text belongs. */
static enum tokmap_status stream_begin(struct stream *stream, char *into, size_t capacity, size_t *got,
                                       struct tokmap_error *error)
{
    size_t count = 0;
    enum tokmap_status status;
    do {
        size_t part;
        status = byte_source_read(&stream->source, into + count, capacity - count, &part, error);
        if (status)
            return status;
        count += part;
    } while (!stream->source.ended && file_type_is_undecided(into, count));
    const char *name, *advice;
    stream->begun = true;
    stream->type = file_type_of(into, count, &name, &advice);
    if (stream->type == FILE_TYPE_PLAIN && ends_like_parquet(stream, into, count)) {
        stream->type = FILE_TYPE_PARQUET;
        (void)file_type_of("PAR1\x15", 5, &name, &advice);
    }
    if (stream->type == FILE_TYPE_REFUSED || stream->type == FILE_TYPE_PARQUET) {
        stream->source.stored = 0; /* none of these bytes is used, so none is counted */
        return type_refused(stream, name, advice, error);
    }
    const char *path = stream->source.name;
    if (stream->type == FILE_TYPE_PLAIN && count && file_type_packed_ending(path, strlen(path))) {
        stream->source.stored = 0; /* none of these bytes is used */
        return not_packed(stream, into, count, error);
    }
    if (stream->type == FILE_TYPE_PLAIN) {
        *got = count;
        return TOKMAP_OK;
    }
    status = unpacker_open(&stream->unpacker, stream->type, stream->source.name, error);
    if (status)
        return status;
    /* The bytes move to the input buffer. A regular file is read again instead, because they may be more than fit in
     * it. */
    if (!stream->input)
        stream->input = malloc(INPUT_BYTES);
    if (!stream->output)
        stream->output = malloc(OUTPUT_BYTES);
    if (!stream->input || !stream->output)
        return error_set_memory(error, "compressed input", INPUT_BYTES + OUTPUT_BYTES);
    if (stream_is_regular(stream)) {
        stream->source.stored = 0;
        stream->source.ended = false;
        count = 0;
    } else if (count > INPUT_BYTES) {
        char *larger = realloc(stream->input, count);
        if (!larger)
            return error_set_memory(error, "compressed input", count);
        stream->input = larger;
    }
    memcpy(stream->input, into, count);
    stream->input_at = 0;
    stream->input_end = count;
    *got = 0;
    return TOKMAP_OK;
}

/* Returns how many bytes of the stream have been decompressed, in a step that has an error now. */
static uint64_t decompressed(const struct stream *stream)
{
    return stream->delivered + stream->output_end;
}

static enum tokmap_status truncated(const struct stream *stream, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, stream->source.name, decompressed(stream),
                     "the %s file is truncated: it ends in the middle of its data, at byte %" PRIu64
                     " before decompression; copy the file again from its source",
                     unpack_name(stream->type), stream_stored(stream));
}

static enum tokmap_status damaged(const struct stream *stream, const char *reason, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, stream->source.name, decompressed(stream),
                     "the %s data is damaged near byte %" PRIu64
                     " before decompression (%s); copy the file again from its source",
                     unpack_name(stream->type), stream_stored(stream), reason);
}

static enum tokmap_status trailing_data(const struct stream *stream, struct tokmap_error *error)
{
    const char *what = unpack_name(stream->type);
    return error_set(error, TOKMAP_ERROR_CORRUPT, stream->source.name, decompressed(stream),
                     "the %s data ends at byte %" PRIu64
                     " before decompression, and the bytes that follow are not %s data; "
                     "remove them, or copy the file again from its source",
                     what, stream_stored(stream), what);
}

static enum tokmap_status input_refill(struct stream *stream, struct tokmap_error *error)
{
    if (stream->input_at < stream->input_end || stream->source.ended)
        return TOKMAP_OK;
    stream->input_at = stream->input_end = 0;
    const size_t room = INPUT_BYTES - (stream_is_regular(stream) ? (size_t)(stream->source.stored % INPUT_BYTES) : 0);
    return byte_source_read(&stream->source, stream->input, room, &stream->input_end, error);
}

/* Ends a frame. Another one may begin behind it. */
static void frame_ended(struct stream *stream)
{
    const struct frame_begin next = {stream_stored(stream), decompressed(stream)};
    const uint64_t last = stream->frame_count ? stream->frames[(stream->frame_count - 1) % FRAMES_KEPT].begins : 0;
    if (stream_is_regular(stream) && next.begins - last >= FRAMES_APART && unpacker_may_continue(stream->unpacker))
        stream->frames[stream->frame_count++ % FRAMES_KEPT] = next;
}

/* Fills stream->output. Fills less only at the end of the file, or if a pipe has no more bytes at the moment. */
static enum tokmap_status decompress(struct stream *stream, struct tokmap_error *error)
{
    const size_t room = OUTPUT_BYTES - (stream_is_regular(stream) ? (size_t)(stream->delivered % OUTPUT_BYTES) : 0);
    while (stream->output_end < room) {
        const enum tokmap_status status = input_refill(stream, error);
        if (status)
            return status;
        const bool input_ended = stream->input_at == stream->input_end;
        if (input_ended && unpacker_is_between(stream->unpacker))
            return unpacker_may_end(stream->unpacker) ? TOKMAP_OK : trailing_data(stream, error);
        struct unpack_step step = {.in = stream->input + stream->input_at,
                                   .in_bytes = stream->input_end - stream->input_at,
                                   .out = stream->output + stream->output_end,
                                   .out_room = room - stream->output_end};
        /* Between frames there may be zero bytes, which are read again with the frame that precedes them. */
        const bool padding = unpacker_is_between(stream->unpacker) && !*step.in;
        const enum unpack_result result = unpacker_step(stream->unpacker, &step);
        if (result == UNPACK_FOREIGN && stream_stored(stream))
            return trailing_data(stream, error);
        if (result == UNPACK_MEMORY)
            return error_set_memory(error, "decompression", UINT64_MAX);
        stream->input_at += step.used;
        if (result == UNPACK_LIMIT || result == UNPACK_REFUSED)
            return error_set(error, result == UNPACK_LIMIT ? TOKMAP_ERROR_LIMIT : TOKMAP_ERROR_UNSUPPORTED,
                             stream->source.name, decompressed(stream), "%s", step.reason);
        if (result == UNPACK_DAMAGED || result == UNPACK_FOREIGN)
            return damaged(stream, step.reason, error);
        stream->output_end += step.made;
        if (result == UNPACK_END && !padding)
            frame_ended(stream);
        if (input_ended && !step.made && result == UNPACK_MORE)
            return truncated(stream, error);
        if (stream->output_end && pipe_is_empty(stream))
            return TOKMAP_OK;
    }
    return TOKMAP_OK;
}

/* Decompresses in steps of a fixed size, into a buffer. When a decompressor finds damage, it does not report how many
 * bytes it produced in that call, so the bytes of that step are dropped. With fixed steps, the number of dropped bytes
 * does not depend on how many bytes the caller asks for at a time. */
static enum tokmap_status read_compressed(struct stream *stream, char *into, size_t capacity, size_t *got,
                                          struct tokmap_error *error)
{
    *got = 0;
    while (*got < capacity) {
        const size_t part = (size_t)min64(capacity - *got, stream->output_end - stream->output_at);
        if (part) {
            memcpy(into + *got, stream->output + stream->output_at, part);
            stream->output_at += part;
            stream->delivered += part;
            *got += part;
            continue;
        }
        if (stream->failed && *got)
            return TOKMAP_OK;
        if (stream->failed) {
            *error = stream->failure;
            return stream->failed;
        }
        if (*got && pipe_is_empty(stream))
            return TOKMAP_OK;
        stream->output_at = stream->output_end = 0;
        stream->failed = decompress(stream, &stream->failure);
        if (!stream->failed && !stream->output_end)
            return TOKMAP_OK;
    }
    return TOKMAP_OK;
}

enum tokmap_status stream_read(struct stream *stream, char *into, size_t capacity, size_t *got, bool *end,
                               struct tokmap_error *error)
{
    assert(stream->source.open && capacity >= 512 && error);
    *got = 0;
    *end = false;
    const bool first = !stream->begun;
    enum tokmap_status status = TOKMAP_OK;
    if (first)
        status = stream_begin(stream, into, capacity, got, error);
    if (!status && stream->type == FILE_TYPE_PLAIN && !first)
        status = byte_source_read(&stream->source, into, capacity, got, error);
    else if (!status && stream_is_compressed(stream))
        status = read_compressed(stream, into, capacity, got, error);
    if (!status && first && stream->type != FILE_TYPE_PLAIN) {
        const char *name, *advice;
        const enum file_type inside = file_type_of(into, *got, &name, &advice);
        if (inside == FILE_TYPE_PARQUET)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->source.name, TOKMAP_NO_OFFSET,
                               "the compressed file contains a Parquet file, which is read from its end: decompress it "
                               "to a file, and name that");
        else if (inside != FILE_TYPE_PLAIN)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->source.name, TOKMAP_NO_OFFSET,
                               "the compressed file contains %s, which tokmap cannot read; %s", name,
                               *advice ? advice : "unpack it first");
    }
    if (!stream_is_compressed(stream))
        stream->delivered += *got;
    *end = !status && stream->source.ended && stream->input_at == stream->input_end &&
           stream->output_at == stream->output_end && !stream->failed &&
           (!stream_is_compressed(stream) || unpacker_may_end(stream->unpacker));
    return status;
}

void stream_end_at(struct stream *stream, uint64_t end)
{
    assert(stream->source.open && !stream->begun);
    stream->source.end = end;
}

bool stream_seek(struct stream *stream, uint64_t offset)
{
    assert(stream->source.open);
    if (!stream->begun || !stream_is_regular(stream) || stream->type != FILE_TYPE_PLAIN ||
        offset > stream->source.stat.bytes)
        return false;
    stream->source.stored = stream->delivered = offset;
    stream->source.ended = false;
    return true;
}

void stream_frame_before(const struct stream *stream, uint64_t offset, uint64_t *stored, uint64_t *begins)
{
    *stored = *begins = 0;
    for (uint64_t i = 0; i < min64(stream->frame_count, FRAMES_KEPT); i++) {
        const struct frame_begin *frame = &stream->frames[(stream->frame_count - 1 - i) % FRAMES_KEPT];
        if (frame->begins > offset)
            continue;
        *stored = frame->stored;
        *begins = frame->begins;
        return;
    }
}

bool stream_seek_frame(struct stream *stream, uint64_t stored, uint64_t begins)
{
    assert(stream->source.open);
    if (!stream->begun || !stream_is_regular(stream) || !stream_is_compressed(stream) ||
        stored > stream->source.stat.bytes || !unpacker_continue(stream->unpacker))
        return false;
    stream->source.stored = stored;
    stream->delivered = begins;
    stream->source.ended = false;
    stream->input_at = stream->input_end = 0;
    stream->output_at = stream->output_end = 0;
    stream->failed = TOKMAP_OK;
    stream->frames[0] = (struct frame_begin){stored, begins};
    stream->frame_count = 1;
    return true;
}
