#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "common/bytes.h"
#include "common/error.h"
#include "form.h"

#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#endif

#define STORED_BYTES ((size_t)256 << 10) /* compressed bytes held */
#define STEP_BYTES ((size_t)128 << 10)   /* that are decompressed at a time */
#define ZSTD_WINDOW_LOG 27               /* 128 MiB: what 'zstd -d' takes too, unless told otherwise */
#define WAIT_NS 100000000u

struct stream {
    bool (*stop)(void *user);
    void *user;
    const char *path; /* for messages */
    int fd;
    bool open, regular, begun;
    bool stored_end; /* all of the file as stored has been read */
    enum form form;
    struct os_stat stat;
    uint64_t stored;    /* bytes read of the file */
    uint64_t delivered; /* bytes given to the caller */
    char *held;         /* stored bytes [held_at, held_end) that the decompressor has not taken */
    size_t held_at, held_end;
    bool inside; /* in the midst of a member or frame */
    char *made;  /* decompressed bytes [made_at, made_end) that the caller has not taken */
    size_t made_at, made_end;
    enum tokmap_status failed; /* what is to be said behind them */
    struct tokmap_error failure;
    ZSTD_DCtx *zstd;
#ifdef HAVE_ISAL
    struct inflate_state *gzip;
#endif
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

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    stream_close(stream);
    free(stream->held);
    free(stream->made);
    (void)ZSTD_freeDCtx(stream->zstd);
#ifdef HAVE_ISAL
    free(stream->gzip);
#endif
    free(stream);
}

const char *stream_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

enum tokmap_status stream_open(struct stream *stream, const char *path, struct tokmap_error *error)
{
    stream_close(stream);
    const bool standard = !strcmp(path, "-");
    stream->path = stream_name(path);
    int fd = 0;
    /* Of a named pipe nobody may have the other end yet: that is waited for where a signal can end the wait. */
    int system = standard ? 0 : os_open(path, OS_READ_NOW, &fd);
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
    stream->open = true;
    /* Standard input may stand anywhere in its file and be shared with others: it is read as a pipe is. */
    stream->regular = !standard && stream->stat.kind == OS_KIND_FILE;
    stream->begun = stream->stored_end = stream->inside = false;
    stream->form = FORM_PLAIN;
    stream->stored = stream->delivered = 0;
    stream->held_at = stream->held_end = 0;
    stream->made_at = stream->made_end = 0;
    stream->failed = TOKMAP_OK;
    return TOKMAP_OK;
}

void stream_close(struct stream *stream)
{
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
    return stream->stored - (stream->held_end - stream->held_at);
}

bool stream_is_regular(const struct stream *stream)
{
    return stream->regular;
}

bool stream_is_compressed(const struct stream *stream)
{
    return stream->form == FORM_GZIP || stream->form == FORM_ZSTD;
}

/* What is read next must be waited for. */
static bool flow_is_dry(const struct stream *stream)
{
    return stream->open && !stream->regular && !stream->stored_end && stream->held_at == stream->held_end &&
           stream->stat.kind != OS_KIND_FILE && os_wait_readable(stream->fd, 0) != 0;
}

bool stream_would_wait(const struct stream *stream)
{
    return stream->made_at == stream->made_end && !stream->failed && flow_is_dry(stream);
}

/* At the end of a regular file: it must be what it was when it was opened. */
static enum tokmap_status unchanged_check(const struct stream *stream, struct tokmap_error *error)
{
    struct os_stat now;
    const int system = os_fstat(stream->fd, &now);
    if (system)
        return error_set_system(error, system, stream->path, stream->stored, "the input cannot be examined");
    if (now.bytes != stream->stat.bytes || now.modified_ns != stream->stat.modified_ns ||
        (stream->stat.bytes && stream->stored != stream->stat.bytes))
        return error_set(error, TOKMAP_ERROR_MISMATCH, stream->path, stream->stored,
                         "the file changed while it was read; pack it when nothing writes to it any more");
    return TOKMAP_OK;
}

static enum tokmap_status read_regular(struct stream *stream, char *into, size_t capacity, size_t *got,
                                       struct tokmap_error *error)
{
    /* By the size known, so that no read is needed to see the end. Files of the kernel's have the size 0 and content.
     */
    size_t wanted = capacity;
    if (stream->stat.bytes)
        wanted = (size_t)min64(capacity, stream->stat.bytes - stream->stored);
    const int system = os_pread(stream->fd, into, wanted, stream->stored, got);
    if (system)
        return error_set_system(error, system, stream->path, stream->stored, "the input cannot be read");
    stream->stored += *got;
    if (*got < wanted || (stream->stat.bytes && stream->stored == stream->stat.bytes)) {
        stream->stored_end = true;
        return unchanged_check(stream, error);
    }
    return TOKMAP_OK;
}

static enum tokmap_status read_flow(struct stream *stream, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    for (;;) {
        int system = stream->stat.kind == OS_KIND_FILE ? 0 : os_wait_readable(stream->fd, WAIT_NS);
        const bool over = system == ETIMEDOUT && stream->stop && stream->stop(stream->user);
        if (!system)
            system = os_read(stream->fd, into, capacity, got);
        if (system == EINTR || over)
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, stream->path, stream->stored, "interrupted");
        if (system == EAGAIN || system == ETIMEDOUT)
            continue;
        if (system)
            return error_set_system(error, system, stream->path, stream->stored, "the input cannot be read");
        stream->stored += *got;
        stream->stored_end = *got == 0;
        return TOKMAP_OK;
    }
}

static enum tokmap_status read_stored(struct stream *stream, char *into, size_t capacity, size_t *got,
                                      struct tokmap_error *error)
{
    *got = 0;
    if (stream->stored_end)
        return TOKMAP_OK;
    return stream->regular ? read_regular(stream, into, capacity, got, error)
                           : read_flow(stream, into, capacity, got, error);
}

static enum tokmap_status refuse(const struct stream *stream, const char *name, const char *advice,
                                 struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                     "this is %s, which cannot be read; %s", name, advice);
}

static enum tokmap_status zstd_begin(struct stream *stream, struct tokmap_error *error)
{
    if (!stream->zstd)
        stream->zstd = ZSTD_createDCtx();
    if (!stream->zstd || ZSTD_isError(ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only)) ||
        ZSTD_isError(ZSTD_DCtx_setParameter(stream->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
        return error_set_memory(error, "zstd decompression", ZSTD_DStreamOutSize());
    return TOKMAP_OK;
}

static enum tokmap_status gzip_begin(struct stream *stream, struct tokmap_error *error)
{
#ifdef HAVE_ISAL
    if (!stream->gzip)
        stream->gzip = malloc(sizeof *stream->gzip);
    if (!stream->gzip)
        return error_set_memory(error, "gzip decompression", sizeof *stream->gzip);
    isal_inflate_init(stream->gzip);
    stream->gzip->crc_flag = ISAL_GZIP;
    return TOKMAP_OK;
#else
    return error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                     "this is a gzip file, and this tokmap was built without ISA-L, which reads them; pipe 'gzip -dc' "
                     "into it, or install libisal-dev and build again");
#endif
}

/* Reads the head into the caller's own buffer, where plain text already lies where it belongs. */
static enum tokmap_status begin(struct stream *stream, char *into, size_t capacity, size_t *got,
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
    } while (!stream->stored_end && form_undecided(into, count));
    const char *name, *advice;
    stream->begun = true;
    stream->form = form_of(into, count, &name, &advice);
    if (stream->form == FORM_REFUSED) {
        stream->stored = 0; /* nothing of it is used, however much was looked at */
        return refuse(stream, name, advice, error);
    }
    if (stream->form == FORM_PLAIN) {
        *got = count;
        return TOKMAP_OK;
    }
    status = stream->form == FORM_ZSTD ? zstd_begin(stream, error) : gzip_begin(stream, error);
    if (status)
        return status;
    /* What was read may be more than the usual room for stored bytes; it is taken back and read again. */
    if (!stream->held)
        stream->held = malloc(STORED_BYTES);
    if (!stream->made)
        stream->made = malloc(STEP_BYTES);
    if (!stream->held || !stream->made)
        return error_set_memory(error, "compressed input", STORED_BYTES + STEP_BYTES);
    if (stream->regular) {
        stream->stored = 0;
        stream->stored_end = false;
        count = 0;
    } else if (count > STORED_BYTES) {
        char *larger = realloc(stream->held, count);
        if (!larger)
            return error_set_memory(error, "compressed input", count);
        stream->held = larger;
    }
    memcpy(stream->held, into, count);
    stream->held_at = 0;
    stream->held_end = count;
    *got = 0;
    return TOKMAP_OK;
}

static enum tokmap_status truncated(const struct stream *stream, const char *what, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, stream->path, stream->delivered,
                     "the %s file ends in the midst of its data (byte %" PRIu64
                     " of the file as stored); copy it again from where it came",
                     what, stream_stored(stream));
}

static enum tokmap_status damaged(const struct stream *stream, const char *what, const char *reason,
                                  struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, stream->path, stream->delivered,
                     "the %s data is damaged near byte %" PRIu64
                     " of the file as stored (%s); copy it again from where it came",
                     what, stream_stored(stream), reason);
}

static enum tokmap_status garbage(const struct stream *stream, const char *what, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CORRUPT, stream->path, stream->delivered,
                     "after the %s data, at byte %" PRIu64 " of the file as stored, something follows that is not %s; cut it off "
                     "there, or copy the file again from where it came",
                     what, stream_stored(stream), what);
}

static enum tokmap_status refill(struct stream *stream, struct tokmap_error *error)
{
    if (stream->held_at < stream->held_end || stream->stored_end)
        return TOKMAP_OK;
    stream->held_at = stream->held_end = 0;
    return read_stored(stream, stream->held, STORED_BYTES, &stream->held_end, error);
}

/* Both fill stream->made; less only at the end, or where a pipe would make them wait. */
static enum tokmap_status step_zstd(struct stream *stream, struct tokmap_error *error)
{
    ZSTD_outBuffer out = {stream->made, STEP_BYTES, 0};
    while (out.pos < out.size) {
        const enum tokmap_status status = refill(stream, error);
        if (status)
            return status;
        const bool dry = stream->held_at == stream->held_end;
        if (dry && !stream->inside)
            break;
        ZSTD_inBuffer in = {stream->held, stream->held_end, stream->held_at};
        const size_t before = out.pos;
        const size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
        stream->held_at = in.pos;
        if (ZSTD_isError(result)) {
            if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
                return error_set(error, TOKMAP_ERROR_LIMIT, stream->path, stream->delivered,
                                 "the zstd frame needs a window above 128 MiB; decompress it with 'zstd -dc --long=31' "
                                 "into a pipe");
            return !stream->inside && stream->delivered + before
                       ? garbage(stream, "zstd", error)
                       : damaged(stream, "zstd", ZSTD_getErrorName(result), error);
        }
        stream->inside = result != 0;
        stream->made_end = out.pos;
        if (dry && out.pos == before && stream->inside)
            return truncated(stream, "zstd", error);
        if (out.pos && flow_is_dry(stream))
            break;
    }
    return TOKMAP_OK;
}

static enum tokmap_status step_gzip(struct stream *stream, struct tokmap_error *error)
{
#ifdef HAVE_ISAL
    struct inflate_state *gzip = stream->gzip;
    for (size_t done = 0; done < STEP_BYTES;) {
        const enum tokmap_status status = refill(stream, error);
        if (status)
            return status;
        const bool dry = stream->held_at == stream->held_end;
        if (dry && !stream->inside)
            break;
        if (!stream->inside) {
            if ((uint8_t)stream->held[stream->held_at] != 0x1f)
                return garbage(stream, "gzip", error);
            isal_inflate_reset(gzip);
            gzip->crc_flag = ISAL_GZIP;
            stream->inside = true;
        }
        const size_t given = stream->held_end - stream->held_at;
        gzip->next_in = (uint8_t *)stream->held + stream->held_at;
        gzip->avail_in = (uint32_t)given;
        gzip->next_out = (uint8_t *)stream->made + done;
        gzip->avail_out = (uint32_t)(STEP_BYTES - done);
        const int result = isal_inflate(gzip);
        const size_t made = STEP_BYTES - done - gzip->avail_out;
        stream->held_at += given - gzip->avail_in;
        if (result != ISAL_DECOMP_OK && result != ISAL_END_INPUT)
            return damaged(stream, "gzip",
                           result == ISAL_INCORRECT_CHECKSUM ? "the checksum is not that of the data"
                                                             : "no valid compressed data",
                           error);
        done += made;
        stream->made_end = done;
        if (gzip->block_state == ISAL_BLOCK_FINISH)
            stream->inside = false;
        else if (dry && !made)
            return truncated(stream, "gzip", error);
        if (done && flow_is_dry(stream))
            break;
    }
    return TOKMAP_OK;
#else
    return gzip_begin(stream, error);
#endif
}

/* By steps of fixed size, through a buffer: of a call that meets damage a decompressor does not tell what it had made
 * until then, so that is dropped; and how much it is must not depend on how much the caller asks for at a time. */
static enum tokmap_status read_compressed(struct stream *stream, char *into, size_t capacity, size_t *got,
                                          struct tokmap_error *error)
{
    *got = 0;
    while (*got < capacity) {
        const size_t part = (size_t)min64(capacity - *got, stream->made_end - stream->made_at);
        if (part) {
            memcpy(into + *got, stream->made + stream->made_at, part);
            stream->made_at += part;
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
        if (*got && flow_is_dry(stream))
            return TOKMAP_OK;
        stream->made_at = stream->made_end = 0;
        stream->failed =
            stream->form == FORM_ZSTD ? step_zstd(stream, &stream->failure) : step_gzip(stream, &stream->failure);
        if (!stream->failed && !stream->made_end)
            return TOKMAP_OK;
    }
    return TOKMAP_OK;
}

enum tokmap_status stream_read(struct stream *stream, char *into, size_t capacity, size_t *got, bool *end,
                               struct tokmap_error *error)
{
    *got = 0;
    *end = false;
    const bool first = !stream->begun;
    enum tokmap_status status = TOKMAP_OK;
    if (first)
        status = begin(stream, into, capacity, got, error);
    if (!status && stream->form == FORM_PLAIN && !first)
        status = read_stored(stream, into, capacity, got, error);
    else if (!status && stream_is_compressed(stream))
        status = read_compressed(stream, into, capacity, got, error);
    if (!status && first && stream->form != FORM_PLAIN) {
        const char *name, *advice;
        if (form_of(into, *got, &name, &advice) != FORM_PLAIN)
            status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, stream->path, TOKMAP_NO_OFFSET,
                               "inside the compression is %s, which cannot be read; unpack it first", name);
    }
    if (!stream_is_compressed(stream))
        stream->delivered += *got;
    *end = stream->stored_end && !stream->inside && stream->held_at == stream->held_end &&
           stream->made_at == stream->made_end && !stream->failed;
    return status;
}
