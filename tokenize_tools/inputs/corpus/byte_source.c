/* SPDX-License-Identifier: MIT */
/* byte_source.c - see byte_source.h. Each kind is a few functions and, at the end of them, its struct
 * byte_source_kind. */
#include "byte_source.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "record_scan.h"
#include "remote/remote_url.h"

#define WAIT_NS 100000000u /* between two calls of stop() */
#define SIZE_BYTES 4       /* of the head of a frame */

#define RESOLVE "(on huggingface.co its URL has /resolve/, not /blob/)"
#define PAGE "it is a web page: download the file itself " RESOLVE ", or rename it if the page is wanted"
#define PLAIN "rename it if it is plain text; otherwise download it again"
#define FROM_PIPE "; it is read from its end, which a pipe does not allow: save it to a file, and name that"

static void fd_close(struct byte_source *source)
{
    if (source->fd > 0)
        os_close(source->fd);
}

static enum tokmap_status cannot_read(const struct byte_source *source, int system, struct tokmap_error *error)
{
    return error_set_system(error, system, source->name, source->stored, "the input cannot be read");
}

/* ---- files ---- */

/* Returns where the reading of a file ends, as far as its size is known. */
static uint64_t file_end(const struct byte_source *source)
{
    return source->end ? min64(source->end, source->stat.bytes) : source->stat.bytes;
}

/* At the end: checks that size and time of modification are the same as when the file was opened. */
static enum tokmap_status check_unchanged(const struct byte_source *source, struct tokmap_error *error)
{
    struct os_stat now;
    const int system = os_fstat(source->fd, &now);
    if (system)
        return error_set_system(error, system, source->name, source->stored, "the input cannot be examined");
    if (now.bytes != source->stat.bytes || now.modified_ns != source->stat.modified_ns ||
        (source->stat.bytes && source->stored != file_end(source)))
        return error_set(error, TOKMAP_ERROR_MISMATCH, source->name, source->stored,
                         "the file changed while it was read; run the command again when no program writes to it");
    return TOKMAP_OK;
}

static enum tokmap_status file_read(struct byte_source *source, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    /* The size from stat tells where the end is, so that no extra read is needed. Files in /proc have size 0 and
     * content: they are read until a read returns less. */
    size_t wanted = capacity;
    if (source->stat.bytes)
        wanted = (size_t)min64(capacity, file_end(source) - source->stored);
    const int system = os_pread(source->fd, into, wanted, source->stored, got);
    if (system)
        return cannot_read(source, system, error);
    source->stored += *got;
    if (*got < wanted || (source->stat.bytes && source->stored == file_end(source))) {
        source->ended = true;
        return check_unchanged(source, error);
    }
    return TOKMAP_OK;
}

static const struct byte_source_kind file_kind = {
    .read = file_read,
    .close = fd_close,
    .seekable = true,
    .parquet = "; read it as what it is, with --input-format parquet or auto",
    .page = PAGE,
    .plain = PLAIN,
};

/* ---- pipes, devices, and redirected files ---- */

/* Returns true if the process that writes a feed is gone, and the pipe has nothing more of it. */
static bool feed_is_left(const struct byte_source *source)
{
    /* A parent in another namespace of processes has the number 0 here, gone or not. */
    const uint32_t parent = os_parent_id();
    return source->kind->is_feed && parent && parent != source->feeder && os_wait_readable(source->fd, 0) == ETIMEDOUT;
}

/* Reads what a pipe has, or waits for it; *got is 0 at the end. */
static enum tokmap_status pipe_take(const struct byte_source *source, void *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    for (;;) {
        int system = source->stat.kind == OS_KIND_FILE ? 0 : os_wait_readable(source->fd, WAIT_NS);
        const bool stopped = system == ETIMEDOUT && source->stop && source->stop(source->user);
        if (system == ETIMEDOUT && !stopped && feed_is_left(source)) {
            *got = 0; /* its children hold the pipe open */
            return TOKMAP_OK;
        }
        if (!system)
            system = os_read(source->fd, into, capacity, got);
        if (system == EINTR || stopped)
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, source->name, source->stored, "interrupted");
        if (system == EAGAIN || system == ETIMEDOUT)
            continue;
        return system ? cannot_read(source, system, error) : TOKMAP_OK;
    }
}

static enum tokmap_status pipe_read(struct byte_source *source, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    const enum tokmap_status status = pipe_take(source, into, capacity, got, error);
    source->stored += *got;
    source->ended = !status && !*got;
    return status;
}

static const struct byte_source_kind pipe_kind = {
    .read = pipe_read, .close = fd_close, .parquet = FROM_PIPE, .page = PAGE, .plain = PLAIN};

/* Standard input can be a file that other processes share, read from any position: it is treated as a pipe. */
static const struct byte_source_kind redirected_kind = {
    .read = pipe_read,
    .close = fd_close,
    .parquet = "; it is read from its end: name the file instead of redirecting standard input",
    .page = PAGE,
    .plain = PLAIN,
};

/* ---- feeds ---- */

/* Takes the next bytes of the head of a frame, or of the end. */
static enum tokmap_status feed_head(struct byte_source *source, size_t bytes, struct tokmap_error *error)
{
    struct feed_state *feed = &source->feed;
    feed->head_bytes += bytes;
    if (feed->head_bytes == SIZE_BYTES) {
        feed->left = load32(feed->head);
        feed->head_bytes = feed->left ? 0 : SIZE_BYTES;
    }
    if (feed->head_bytes < sizeof feed->head)
        return TOKMAP_OK;
    const uint64_t written = load64(feed->head + SIZE_BYTES);
    source->ended = written == feed->lines;
    if (source->ended)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_CORRUPT, source->name, source->stored,
                     "%" PRIu64 " lines of documents came, but the program that writes them has written %" PRIu64
                     ", so the output would not be what it wrote, and is given up; another process probably writes to "
                     "this pipe, or reads from it",
                     feed->lines, written);
}

/* Reports a pipe that ended before its feed did. */
static enum tokmap_status feed_cut_off(const struct byte_source *source, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, source->name, source->stored,
                     "the program that writes the documents ended before it had written all of them, after %" PRIu64
                     ": it was probably killed; %srun the program again",
                     source->feed.lines,
                     source->feed_id ? "" : "the output is given up, so that it does not lack the others: ");
}

/* Reads bytes of the next frame, or the end. */
static enum tokmap_status feed_read(struct byte_source *source, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    struct feed_state *feed = &source->feed;
    while (!*got && !source->ended) {
        const bool head = !feed->left;
        const size_t head_bytes = (feed->head_bytes < SIZE_BYTES ? SIZE_BYTES : sizeof feed->head) - feed->head_bytes;
        const size_t wanted = head ? head_bytes : (size_t)min64(capacity, feed->left);
        size_t part = 0;
        enum tokmap_status status =
            pipe_take(source, head ? (void *)(feed->head + feed->head_bytes) : into, wanted, &part, error);
        if (!status && !part)
            status = feed_cut_off(source, error);
        if (!status && head)
            status = feed_head(source, part, error);
        if (status)
            return status;
        if (head)
            continue;
        assert(part <= feed->left);
        feed->left -= part;
        feed->lines += record_scan_lines(into, part);
        *got = part;
    }
    source->stored += *got;
    return TOKMAP_OK;
}

static const struct byte_source_kind feed_kind = {
    .read = feed_read, .close = fd_close, .is_feed = true, .parquet = FROM_PIPE, .page = PAGE, .plain = PLAIN};

/* ---- URLs ---- */

static enum tokmap_status url_read(struct byte_source *source, char *into, size_t capacity, size_t *got,
                                   struct tokmap_error *error)
{
    const enum tokmap_status status = remote_read(source->remote, into, capacity, got, error);
    source->stored += *got;
    source->ended = !status && !*got;
    return status;
}

static void url_close(struct byte_source *source)
{
    remote_close(source->remote);
}

static const struct byte_source_kind url_kind = {
    .read = url_read,
    .close = url_close,
    .ranges = true,
    .parquet = "; read it as what it is, with --input-format parquet or auto",
    .page = "it is a web page: name the file itself " RESOLVE,
    .plain = "if it is plain text, download it into a pipe, and name the input -, which is standard input",
};

static enum tokmap_status url_open(struct byte_source *source, const char *name, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    if (!source->remote)
        status = remote_new(&source->remote, source->stop, source->user, source->watch, error);
    if (!status)
        status = remote_open(source->remote, name, error);
    if (status)
        return status;
    source->bytes = remote_bytes(source->remote);
    source->version = remote_version(source->remote);
    source->stat = (struct os_stat){.kind = OS_KIND_FILE, .bytes = source->bytes == UINT64_MAX ? 0 : source->bytes};
    source->name = remote_name(source->remote);
    source->kind = &url_kind;
    return TOKMAP_OK;
}

void byte_source_stand_for(struct byte_source *source, uint64_t version, uint64_t bytes)
{
    byte_source_close(source);
    source->kind = &url_kind;
    source->bytes = bytes;
    source->version = version;
    source->stat = (struct os_stat){.kind = OS_KIND_FILE, .bytes = bytes};
}

/* ---- all kinds ---- */

static enum tokmap_status path_open(struct byte_source *source, const char *path, struct tokmap_error *error)
{
    const bool standard = !strcmp(path, "-");
    int fd = 0;
    /* A named pipe may not have a writer yet. Opening it does not wait for one; pipe_take() does, where stop() can end
     * the wait. */
    int system = standard ? 0 : os_open(path, OS_READ_NOW, &fd);
    if (system == ENOENT && strstr(path, "://"))
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, path, TOKMAP_NO_OFFSET,
                         "URLs begin with https://, http://, s3://, gs://, or hf://");
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be opened");
    system = os_fstat(fd, &source->stat);
    if (!system && source->stat.kind == OS_KIND_FOLDER)
        system = EISDIR;
    if (system) {
        if (!standard)
            os_close(fd);
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be read");
    }
    source->fd = fd;
    const bool file = source->stat.kind == OS_KIND_FILE;
    source->kind = standard && source->feeder ? &feed_kind
                   : standard && file         ? &redirected_kind
                   : file                     ? &file_kind
                                              : &pipe_kind;
    source->version = source->kind->is_feed ? source->feed_id : 0;
    return TOKMAP_OK;
}

enum tokmap_status byte_source_open(struct byte_source *source, const char *path, const char *name,
                                    struct tokmap_error *error)
{
    byte_source_close(source);
    source->kind = NULL;
    source->name = name;
    source->version = source->bytes = source->stored = source->end = 0;
    source->ended = false;
    source->feed = (struct feed_state){0};
    const enum tokmap_status status =
        remote_kind(path) ? url_open(source, path, error) : path_open(source, path, error);
    source->open = !status;
    return status;
}

void byte_source_close(struct byte_source *source)
{
    if (source->open)
        source->kind->close(source);
    source->open = false;
}

void byte_source_free(struct byte_source *source)
{
    byte_source_close(source);
    remote_free(source->remote);
}

enum tokmap_status byte_source_read(struct byte_source *source, char *into, size_t capacity, size_t *got,
                                    struct tokmap_error *error)
{
    *got = 0;
    return source->ended ? TOKMAP_OK : source->kind->read(source, into, capacity, got, error);
}

bool byte_source_waits(const struct byte_source *source)
{
    /* A URL and a redirected file look like files. */
    return source->open && !source->ended && source->stat.kind != OS_KIND_FILE && os_wait_readable(source->fd, 0) != 0;
}

bool byte_source_is_resumable(const struct byte_source *source)
{
    return source->kind && (source->kind->seekable || source->version);
}
