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
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/file_type.h"
#include "codec/unpack.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/visible.h"
#include "document_feed.h"
#include "remote/remote_stream.h"
#include "remote/remote_url.h"
#include "text/stand_in.h"

#define INPUT_BYTES ((size_t)256 << 10)   /* size of the buffer of stored bytes */
#define OUTPUT_BYTES ((size_t)128 << 10)  /* decompressed per step */
#define WAIT_NS 100000000u                /* between two calls of stop() */
#define SHOWN_BYTES 24                    /* of the beginning of a file, in messages */
#define FRAMES_KEPT 64                    /* beginnings of frames that stream_frame_before() knows, */
#define FRAMES_APART ((uint64_t)64 << 10) /* each at least so many bytes of the stream after the one before */

struct stream {
    bool (*stop)(void *user);
    void *user;
    const char *path; /* for messages */
    int fd;
    struct remote *remote;            /* the reader of URLs, or NULL before the first one */
    const struct remote_watch *watch; /* of stream_watch(), or NULL */
    bool is_remote;                   /* the open input is a URL */
    bool open, regular, begun;
    bool stored_end; /* the file has been read to its end */
    enum file_type type;
    struct os_stat stat;
    uint32_t feeder; /* of stream_feed(), or 0 */
    struct document_feed feed;
    uint64_t stored;    /* bytes read from the file, or in the frames of a feed */
    uint64_t end;       /* of what is read of a regular file; 0: its end */
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
    uint64_t frame_count;        /* how many began behind others */
};

enum tokmap_status stream_new(struct stream **stream, bool (*stop)(void *user), void *user, struct tokmap_error *error)
{
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return error_set_memory(error, "an input", sizeof **stream);
    (*stream)->stop = stop;
    (*stream)->user = user;
    (*stream)->fd = -1;
    return TOKMAP_OK;
}

void stream_feed(struct stream *stream, uint32_t feeder)
{
    assert(!stream->open);
    stream->feeder = feeder;
}

void stream_watch(struct stream *stream, const struct remote_watch *watch)
{
    stream->watch = watch;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    stream_close(stream);
    free(stream->input);
    free(stream->output);
    unpacker_free(stream->unpacker);
    remote_free(stream->remote);
    free(stream);
}

const char *stream_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

static enum tokmap_status url_open(struct stream *stream, const char *name, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!stream->remote)
        status = remote_new(&stream->remote, stream->stop, stream->user, stream->watch, error);
    if (!status)
        status = remote_open(stream->remote, name, error);
    if (status)
        return status;
    const uint64_t bytes = remote_bytes(stream->remote);
    stream->stat = (struct os_stat){.kind = OS_KIND_FILE, .bytes = bytes == UINT64_MAX ? 0 : bytes};
    stream->path = remote_name(stream->remote);
    stream->is_remote = true;
    return TOKMAP_OK;
}

static enum tokmap_status path_open(struct stream *stream, const char *path, struct tokmap_error *error)
{
    const bool standard = !strcmp(path, "-");
    stream->path = stream_name(path);
    int fd = 0;
    /* A named pipe may not have a writer yet. Opening it does not wait for one; read_pipe() does, where stop() can end
     * the wait. */
    int system = standard ? 0 : os_open(path, OS_READ_NOW, &fd);
    if (system == ENOENT && strstr(path, "://"))
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
                         "URLs begin with https://, http://, s3://, or gs:// (what hf://datasets/OWNER/NAME/ names, "
                         "is below https://huggingface.co/datasets/OWNER/NAME/resolve/main/)");
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be opened");
    system = os_fstat(fd, &stream->stat);
    if (!system && stream->stat.kind == OS_KIND_FOLDER)
        system = EISDIR;
    if (system) {
        if (!standard)
            os_close(fd);
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be read");
    }
    stream->fd = fd;
    /* Standard input can be a file that other processes share, read from any position: it is treated as a pipe. */
    stream->regular = !standard && stream->stat.kind == OS_KIND_FILE;
    return TOKMAP_OK;
}

enum tokmap_status stream_open(struct stream *stream, const char *path, struct tokmap_error *error)
{
    assert(path);
    stream_close(stream);
    stream->regular = stream->is_remote = false;
    const enum tokmap_status status =
        remote_kind(path) ? url_open(stream, path, error) : path_open(stream, path, error);
    if (status)
        return status;
    stream->open = true;
    document_feed_begin(&stream->feed, strcmp(path, "-") ? 0 : stream->feeder);
    stream->begun = stream->stored_end = false;
    stream->type = FILE_TYPE_PLAIN;
    stream->stored = stream->delivered = stream->end = 0;
    stream->input_at = stream->input_end = 0;
    stream->output_at = stream->output_end = 0;
    stream->frame_count = 0;
    stream->failed = TOKMAP_OK;
    return TOKMAP_OK;
}

void stream_close(struct stream *stream)
{
    if (stream->open && stream->is_remote)
        remote_close(stream->remote);
    if (stream->open && stream->fd > 0)
        os_close(stream->fd);
    stream->fd = -1;
    stream->open = false;
}

const struct os_stat *stream_stat(const struct stream *stream)
{
    return &stream->stat;
}

uint64_t stream_stored(const struct stream *stream)
{
    return stream->stored - (stream->input_end - stream->input_at);
}

bool stream_is_regular(const struct stream *stream)
{
    return stream->regular;
}

bool stream_is_resumable(const struct stream *stream)
{
    return stream->regular || (stream->is_remote && remote_version(stream->remote));
}

uint64_t stream_version(const struct stream *stream, uint64_t *bytes)
{
    *bytes = stream->is_remote ? remote_bytes(stream->remote) : 0;
    return stream->is_remote ? remote_version(stream->remote) : 0;
}

bool stream_is_feed(const struct stream *stream)
{
    return stream->open && stream->feed.feeder;
}

bool stream_is_compressed(const struct stream *stream)
{
    return file_type_is_packed(stream->type);
}

/* Returns true if the next read of stored bytes would have to wait. */
static bool pipe_is_empty(const struct stream *stream)
{
    return stream->open && !stream->regular && !stream->is_remote && !stream->stored_end &&
           stream->input_at == stream->input_end && stream->stat.kind != OS_KIND_FILE &&
           os_wait_readable(stream->fd, 0) != 0;
}

bool stream_is_parquet(const struct stream *stream)
{
    return stream->regular && stream->begun && stream->type == FILE_TYPE_PARQUET;
}

bool stream_would_wait(const struct stream *stream)
{
    return stream->output_at == stream->output_end && !stream->failed && pipe_is_empty(stream);
}

/* Where the reading of a regular file ends, as far as its size is known. */
static uint64_t regular_end(const struct stream *stream)
{
    return stream->end ? min64(stream->end, stream->stat.bytes) : stream->stat.bytes;
}

/* At the end of a regular file: checks that size and time of modification are the same as when it was opened. */
static enum tokmap_status check_unchanged(const struct stream *stream, struct tokmap_error *error)
{
    struct os_stat now;
    const int system = os_fstat(stream->fd, &now);
    if (system)
        return error_set_system(error, system, stream->path, stream->stored, "the input cannot be examined");
    if (now.bytes != stream->stat.bytes || now.modified_ns != stream->stat.modified_ns ||
        (stream->stat.bytes && stream->stored != regular_end(stream)))
        return error_set(error, TOKMAP_ERROR_MISMATCH, stream->path, stream->stored,
                         "the file changed while it was read; run the command again when no program writes to it");
    return TOKMAP_OK;
}

static enum tokmap_status read_regular(struct stream *stream, char *into, size_t capacity, size_t *got,
                                       struct tokmap_error *error)
{
    /* The size from stat tells where the end is, so that no extra read is needed. Files in /proc have size 0 and
     * content: they are read until a read returns less. */
    size_t wanted = capacity;
    if (stream->stat.bytes)
        wanted = (size_t)min64(capacity, regular_end(stream) - stream->stored);
    const int system = os_pread(stream->fd, into, wanted, stream->stored, got);
    if (system)
        return error_set_system(error, system, stream->path, stream->stored, "the input cannot be read");
    stream->stored += *got;
    if (*got < wanted || (stream->stat.bytes && stream->stored == regular_end(stream))) {
        stream->stored_end = true;
        return check_unchanged(stream, error);
    }
    return TOKMAP_OK;
}

/* Whether the process that writes a feed is gone, and the pipe has nothing more of it. */
static bool feed_is_left(const struct stream *stream)
{
    return stream->feed.feeder && document_feed_is_left(&stream->feed) && os_wait_readable(stream->fd, 0) == ETIMEDOUT;
}

/* Reads what a pipe has, or waits for it; *got is 0 at the end. */
static enum tokmap_status pipe_take(const struct stream *stream, void *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    for (;;) {
        int system = stream->stat.kind == OS_KIND_FILE ? 0 : os_wait_readable(stream->fd, WAIT_NS);
        const bool stopped = system == ETIMEDOUT && stream->stop && stream->stop(stream->user);
        if (system == ETIMEDOUT && !stopped && feed_is_left(stream)) {
            *got = 0; /* its children hold the pipe open */
            return TOKMAP_OK;
        }
        if (!system)
            system = os_read(stream->fd, into, capacity, got);
        if (system == EINTR || stopped)
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, stream->path, stream->stored, "interrupted");
        if (system == EAGAIN || system == ETIMEDOUT)
            continue;
        if (system)
            return error_set_system(error, system, stream->path, stream->stored, "the input cannot be read");
        return TOKMAP_OK;
    }
}

static enum tokmap_status read_pipe(struct stream *stream, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    const enum tokmap_status status = pipe_take(stream, into, capacity, got, error);
    stream->stored += *got;
    stream->stored_end = !status && !*got;
    return status;
}

/* Reads bytes of the next frame of a feed, or its end. */
static enum tokmap_status read_feed(struct stream *stream, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    struct document_feed *feed = &stream->feed;
    while (!*got && !feed->over) {
        size_t head_bytes, part = 0;
        uint8_t *const head = document_feed_head(feed, &head_bytes);
        const size_t wanted = head ? head_bytes : (size_t)min64(capacity, feed->left);
        enum tokmap_status status = pipe_take(stream, head ? (void *)head : into, wanted, &part, error);
        if (!status && !part)
            status = document_feed_cut_off(feed, stream->path, stream->stored, error);
        if (!status)
            status = document_feed_take(feed, head ? NULL : into, part, stream->path, stream->stored, error);
        if (status)
            return status;
        *got = head ? 0 : part;
    }
    stream->stored += *got;
    stream->stored_end = feed->over;
    return TOKMAP_OK;
}

static enum tokmap_status read_url(struct stream *stream, char *into, size_t capacity, size_t *got,
                                   struct tokmap_error *error)
{
    const enum tokmap_status status = remote_read(stream->remote, into, capacity, got, error);
    stream->stored += *got;
    stream->stored_end = !status && !*got;
    return status;
}

static enum tokmap_status read_stored(struct stream *stream, char *into, size_t capacity, size_t *got,
                                      struct tokmap_error *error)
{
    *got = 0;
    if (stream->stored_end)
        return TOKMAP_OK;
    return stream->regular       ? read_regular(stream, into, capacity, got, error)
           : stream->is_remote   ? read_url(stream, into, capacity, got, error)
           : stream->feed.feeder ? read_feed(stream, into, capacity, got, error)
                                 : read_pipe(stream, into, capacity, got, error);
}

enum tokmap_status stream_parquet_refused(const struct stream *stream, struct tokmap_error *error)
{
    const bool redirected = !stream->regular && stream->stat.kind == OS_KIND_FILE;
    if (stream->is_remote)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                         "the input is a Parquet file, which is read from its end, and tokmap reads URLs from their "
                         "beginning: download it, and name the file");
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET, "the input is a Parquet file; %s",
                     redirected ? "it is read from its end: name the file instead of redirecting standard input"
                     : stream->regular
                         ? "read it as what it is, with options.format parquet or auto"
                         : "it is read from its end, which a pipe does not allow: save it to a file, and name that");
}

static enum tokmap_status type_refused(const struct stream *stream, const char *name, const char *advice,
                                       struct tokmap_error *error)
{
    if (stream->type == FILE_TYPE_PARQUET)
        return stream_parquet_refused(stream, error);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                     "the input is %s, which tokmap cannot read; %s", name, advice);
}

/* Returns true if a regular file, of which `head` is the beginning, has the magic of a Parquet file at both ends. The
 * magic alone could be the beginning of a text. */
static bool ends_like_parquet(const struct stream *stream, const char *head, size_t count)
{
    char tail[4];
    size_t got = 0;
    return stream->regular && count >= 12 && !memcmp(head, "PAR1", 4) &&
           !os_pread(stream->fd, tail, sizeof tail, stream->stat.bytes - sizeof tail, &got) && got == sizeof tail &&
           !memcmp(tail, "PAR1", 4);
}

#define RESOLVE "(on huggingface.co its URL has /resolve/, not /blob/)"

/* What to do about an input that is not compressed, though its name says so. */
static const char *not_packed_advice(const struct stream *stream, bool page)
{
    if (stream->is_remote)
        return page ? "it is a web page: name the file itself " RESOLVE
                    : "if it is plain text, download it into a pipe, and name the input -, which is standard input";
    return page ? "it is a web page: download the file itself " RESOLVE ", or rename it if the page is wanted"
                : "rename it if it is plain text; otherwise download it again";
}

/* Refuses an input whose name is that of a compressed file, and which does not begin as one. It is often what a server
 * said in place of the file, and would become a document. */
static enum tokmap_status not_packed(const struct stream *stream, const char *head, size_t count,
                                     struct tokmap_error *error)
{
    const enum stand_in stand_in = stand_in_of(head, count);
    if (stand_in == STAND_IN_POINTER)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET, STAND_IN_POINTER_MESSAGE);
    char shown[SHOWN_BYTES + 1];
    (void)visible_copy(shown, sizeof shown, head, (size_t)min64(count, 4 * SHOWN_BYTES), "");
    const size_t length = strlen(stream->path);
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                     "the name ends in %s, but the input is not compressed: it begins with '%s'; %s",
                     stream->path + length - file_type_packed_ending(stream->path, length), shown,
                     not_packed_advice(stream, stand_in == STAND_IN_PAGE));
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
        status = read_stored(stream, into + count, capacity - count, &part, error);
        if (status)
            return status;
        count += part;
    } while (!stream->stored_end && file_type_is_undecided(into, count));
    const char *name, *advice;
    stream->begun = true;
    stream->type = file_type_of(into, count, &name, &advice);
    if (stream->type == FILE_TYPE_PLAIN && ends_like_parquet(stream, into, count)) {
        stream->type = FILE_TYPE_PARQUET;
        (void)file_type_of("PAR1\x15", 5, &name, &advice);
    }
    if (stream->type == FILE_TYPE_REFUSED || stream->type == FILE_TYPE_PARQUET) {
        stream->stored = 0; /* none of these bytes is used, so none is counted */
        return type_refused(stream, name, advice, error);
    }
    if (stream->type == FILE_TYPE_PLAIN && count && file_type_packed_ending(stream->path, strlen(stream->path))) {
        stream->stored = 0; /* none of these bytes is used */
        return not_packed(stream, into, count, error);
    }
    if (stream->type == FILE_TYPE_PLAIN) {
        *got = count;
        return TOKMAP_OK;
    }
    status = unpacker_open(&stream->unpacker, stream->type, stream->path, error);
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
    if (stream->regular) {
        stream->stored = 0;
        stream->stored_end = false;
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

/* How many bytes of the stream have been decompressed, in a step that has an error now. */
static uint64_t decompressed(const struct stream *stream)
{
    return stream->delivered + stream->output_end;
}

static enum tokmap_status truncated(const struct stream *stream, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, stream->path, decompressed(stream),
                     "the %s file is truncated: it ends in the middle of its data, at byte %" PRIu64
                     " before decompression; copy the file again from its source",
                     unpack_name(stream->type), stream_stored(stream));
}

static enum tokmap_status damaged(const struct stream *stream, const char *reason, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, stream->path, decompressed(stream),
                     "the %s data is damaged near byte %" PRIu64
                     " before decompression (%s); copy the file again from its source",
                     unpack_name(stream->type), stream_stored(stream), reason);
}

static enum tokmap_status trailing_data(const struct stream *stream, struct tokmap_error *error)
{
    const char *what = unpack_name(stream->type);
    return error_set(error, TOKMAP_ERROR_CORRUPT, stream->path, decompressed(stream),
                     "the %s data ends at byte %" PRIu64
                     " before decompression, and the bytes that follow are not %s data; "
                     "remove them, or copy the file again from its source",
                     what, stream_stored(stream), what);
}

static enum tokmap_status input_refill(struct stream *stream, struct tokmap_error *error)
{
    if (stream->input_at < stream->input_end || stream->stored_end)
        return TOKMAP_OK;
    stream->input_at = stream->input_end = 0;
    const size_t room = INPUT_BYTES - (stream->regular ? (size_t)(stream->stored % INPUT_BYTES) : 0);
    return read_stored(stream, stream->input, room, &stream->input_end, error);
}

/* A frame is complete, and another one may begin behind it. */
static void frame_ended(struct stream *stream)
{
    const struct frame_begin next = {stream_stored(stream), decompressed(stream)};
    const uint64_t last = stream->frame_count ? stream->frames[(stream->frame_count - 1) % FRAMES_KEPT].begins : 0;
    if (stream->regular && next.begins - last >= FRAMES_APART)
        stream->frames[stream->frame_count++ % FRAMES_KEPT] = next;
}

/* Fills stream->output. Fills less only at the end of the file, or if a pipe has no more bytes at the moment. */
static enum tokmap_status decompress(struct stream *stream, struct tokmap_error *error)
{
    const size_t room = OUTPUT_BYTES - (stream->regular ? (size_t)(stream->delivered % OUTPUT_BYTES) : 0);
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
        if (result == UNPACK_LIMIT)
            return error_set(error, TOKMAP_ERROR_LIMIT, stream->path, decompressed(stream), "%s", step.reason);
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
    assert(stream->open && capacity >= 512 && error);
    *got = 0;
    *end = false;
    const bool first = !stream->begun;
    enum tokmap_status status = TOKMAP_OK;
    if (first)
        status = stream_begin(stream, into, capacity, got, error);
    if (!status && stream->type == FILE_TYPE_PLAIN && !first)
        status = read_stored(stream, into, capacity, got, error);
    else if (!status && stream_is_compressed(stream))
        status = read_compressed(stream, into, capacity, got, error);
    if (!status && first && stream->type != FILE_TYPE_PLAIN) {
        const char *name, *advice;
        const enum file_type inside = file_type_of(into, *got, &name, &advice);
        if (inside == FILE_TYPE_PARQUET)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                               "the compressed file contains a Parquet file, which is read from its end: decompress it "
                               "to a file, and name that");
        else if (inside != FILE_TYPE_PLAIN)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                               "the compressed file contains %s, which tokmap cannot read; %s", name,
                               *advice ? advice : "unpack it first");
    }
    if (!stream_is_compressed(stream))
        stream->delivered += *got;
    *end = !status && stream->stored_end && stream->input_at == stream->input_end &&
           stream->output_at == stream->output_end && !stream->failed &&
           (!stream_is_compressed(stream) || unpacker_may_end(stream->unpacker));
    return status;
}

void stream_end_at(struct stream *stream, uint64_t end)
{
    assert(stream->open && !stream->begun);
    stream->end = end;
}

bool stream_seek(struct stream *stream, uint64_t offset)
{
    assert(stream->open);
    if (!stream->begun || !stream->regular || stream->type != FILE_TYPE_PLAIN || offset > stream->stat.bytes)
        return false;
    stream->stored = stream->delivered = offset;
    stream->stored_end = false;
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
    struct tokmap_error ignored;
    assert(stream->open);
    if (!stream->begun || !stream->regular || !stream_is_compressed(stream) || stored > stream->stat.bytes ||
        unpacker_open(&stream->unpacker, stream->type, stream->path, &ignored))
        return false;
    stream->stored = stored;
    stream->delivered = begins;
    stream->stored_end = false;
    stream->input_at = stream->input_end = 0;
    stream->output_at = stream->output_end = 0;
    stream->failed = TOKMAP_OK;
    stream->frames[0] = (struct frame_begin){stored, begins};
    stream->frame_count = 1;
    return true;
}
