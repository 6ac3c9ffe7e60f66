/* SPDX-License-Identifier: MIT */
/* remote_stream.c - see remote_stream.h. */
#include "remote_stream.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "remote_account.h"
#include "remote_http.h"
#include "remote_sign.h"
#include "remote_url.h"

#define CLOCK_OFF_MOST 900 /* seconds; a signature that is further off is refused */
#define CLOCKS_APART 60    /* seconds; the clock of a server that does not say its time may be so much behind */
#define PAUSE_NS ((uint64_t)200 * 1000000u)
#define PAUSE_NS_MOST ((uint64_t)20 * 1000000000u)
#define RETRY_AFTER_MOST 60u         /* seconds that a server may ask for, at a time, */
#define RETRY_AFTER_ALL 300u         /* and for all failures without progress in between */
#define WAIT_TOLD 5u                 /* seconds; a longer wait is announced */
#define PAGE_STEP ((size_t)64 << 10) /* read at a time of a list */
#define HEADERS_MOST (REMOTE_SIGN_LINES + 1)
#define CHANGED "the file changed while it was read; run the command again when no program writes to it"

struct remote {
    bool (*stop)(void *user);
    void *user;
    struct http *http;             /* NULL until the first URL is opened */
    char *shown;                   /* the name, for messages */
    struct bytes_buffer url;       /* with a zero byte that does not count */
    struct remote_account account; /* of object storage, once it was needed */
    struct remote_object object;   /* that is open, in `shown` */
    struct bytes_buffer header;    /* the lines that sign a request, with zero bytes */
    const char *query;             /* of a request for the bucket, or NULL */
    bool moved;                    /* the region has been changed for this URL */
    uint64_t bytes;                /* of the file, or UINT64_MAX */
    uint64_t at;                   /* bytes that have been delivered */
    uint64_t skip;                 /* bytes of the answer that have been delivered before */
    bool running;                  /* an answer is being read */
    bool ended;
    char tag[HTTP_TAG_MOST], modified[HTTP_NAME_MOST]; /* the version of the first answer: one of them, or none */
    uint32_t failures, attempts;
    bool answered;  /* a server has answered since the URL was opened */
    uint64_t good;  /* bytes since the last failure */
    uint64_t asked; /* seconds that it has waited since `failures` was 0, because the server has asked for it */
    uint64_t begun_ns;
    const struct remote_watch *watch; /* or NULL */
};

/* Actions after an answer. */
enum verdict { ACCEPT, RETRY, FAIL };

enum tokmap_status remote_new(struct remote **remote, bool (*stop)(void *user), void *user,
                              const struct remote_watch *watch, struct tokmap_error *error)
{
    const char *given = secure_getenv("AWS_MAX_ATTEMPTS");
    *remote = calloc(1, sizeof **remote);
    if (!*remote)
        return error_set_memory(error, "the reader of URLs", sizeof **remote);
    (*remote)->stop = stop;
    (*remote)->user = user;
    (*remote)->watch = watch;
    const uint64_t attempts = given && strlen(given) < 4 ? strtoul(given, NULL, 10) : 0;
    (*remote)->attempts = attempts ? (uint32_t)attempts : REMOTE_ATTEMPTS;
    return TOKMAP_OK;
}

void remote_free(struct remote *remote)
{
    if (!remote)
        return;
    remote_close(remote);
    http_free(remote->http);
    remote_account_clear(&remote->account);
    if (remote->header.bytes)
        explicit_bzero(remote->header.bytes, remote->header.capacity);
    bytes_free(&remote->header);
    bytes_free(&remote->url);
    free(remote);
}

void remote_close(struct remote *remote)
{
    if (remote->http)
        http_end(remote->http);
    free(remote->shown);
    remote->shown = NULL;
    remote->url.count = 0;
    remote->running = false;
}

const char *remote_name(const struct remote *remote)
{
    return remote->shown;
}

uint64_t remote_bytes(const struct remote *remote)
{
    return remote->bytes;
}

/* ---- failures ---- */

static enum tokmap_status interrupted(const struct remote *remote, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_INTERRUPTED, remote->shown, remote->at, "interrupted");
}

static uint64_t offset_of(const struct remote *remote)
{
    return remote->at ? remote->at : TOKMAP_NO_OFFSET;
}

/* Counts a failure that may pass, and waits. most: how many are allowed. Statuses: OK (try again), ERROR_IO,
 * ERROR_INTERRUPTED. */
static enum tokmap_status failed(struct remote *remote, const char *reason, uint64_t wait_seconds, uint32_t most,
                                 struct tokmap_error *error)
{
    uint16_t chance = 0;
    http_end(remote->http);
    remote->running = false;
    if (remote->good >= REMOTE_PROGRESS)
        remote->failures = 0;
    if (!remote->failures) {
        remote->begun_ns = os_clock_ns();
        remote->asked = 0;
    }
    remote->good = 0;
    if (++remote->failures >= most)
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, offset_of(remote),
                         "%.300s; this was attempt %" PRIu32 " in %" PRIu64
                         " s: check the name and the network, and run the command again",
                         reason, remote->failures, (os_clock_ns() - remote->begun_ns) / 1000000000u);
    const uint32_t doublings = remote->failures - 1 < 10 ? remote->failures - 1 : 10;
    uint64_t pause = min64(PAUSE_NS << doublings, PAUSE_NS_MOST);
    (void)os_random(&chance, sizeof chance);
    pause -= pause / 2 * chance / 65536;
    wait_seconds = min64(min64(wait_seconds, RETRY_AFTER_MOST), RETRY_AFTER_ALL - remote->asked);
    remote->asked += wait_seconds;
    pause = max64(pause, wait_seconds * 1000000000u);
    const struct remote_watch *watch = remote->watch;
    if (watch && watch->waits && wait_seconds >= WAIT_TOLD)
        watch->waits(watch->user, remote->shown, reason, wait_seconds);
    return http_wait(remote->http, pause) ? interrupted(remote, error) : TOKMAP_OK;
}

/* Does the same for a request that libcurl could not finish. */
static enum tokmap_status broke(struct remote *remote, enum http_result result, struct tokmap_error *error)
{
    char reason[HTTP_REASON_MOST + 64];
    if (result == HTTP_STOPPED)
        return interrupted(remote, error);
    if (result == HTTP_MEMORY)
        return error_set_memory(error, "the reader of URLs", 0);
    (void)snprintf(reason, sizeof reason, "%s", http_reason(remote->http));
    if (result == HTTP_FAILED)
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, offset_of(remote),
                         "%s; correct the name, or what the message names", reason);
    const bool first = result == HTTP_UNREACHED && !remote->answered;
    return failed(remote, reason, 0,
                  first ? (uint32_t)min64(REMOTE_ATTEMPTS_FIRST, remote->attempts) : remote->attempts, error);
}

/* Returns how many seconds the clock of this machine is off, as a server says whose signatures have a time; 0: too few
 * to matter, or unknown. */
static uint64_t clock_off(const struct http_answer *answer, bool *ahead)
{
    const uint64_t now = os_wall_seconds();
    *ahead = now > answer->date;
    const uint64_t off = *ahead ? now - answer->date : answer->date - now;
    return answer->date && off > CLOCK_OFF_MOST ? off : 0;
}

/* Reports an answer that no further attempt would change. */
static enum tokmap_status refused(const struct remote *remote, const struct http_answer *answer,
                                  struct tokmap_error *error)
{
    const uint32_t status = answer->status;
    const uint64_t at = offset_of(remote);
    const enum remote_kind kind = remote_kind(remote->shown);
    if (kind != REMOTE_WEB && status == 404)
        return error_set(
            error, TOKMAP_ERROR_NOT_FOUND, remote->shown, at,
            "there is no such bucket or object (HTTP status 404); correct the name, or end it with a slash "
            "if it is the beginning of keys");
    bool ahead;
    const uint64_t off = kind == REMOTE_WEB ? 0 : clock_off(answer, &ahead);
    if (off && remote->account.key && (status == 400 || status == 401 || status == 403))
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, at,
                         "the server refuses access (HTTP status %" PRIu32
                         "), and the clock of this machine is %" PRIu64 " s (%" PRIu64
                         " minutes) %s the server's: signatures are valid for %d minutes only; set "
                         "the clock",
                         status, off, off / 60, ahead ? "ahead of" : "behind", CLOCK_OFF_MOST / 60);
    if (kind != REMOTE_WEB && (status == 400 || status == 401 || status == 403))
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, at,
                         "the server refuses access (HTTP status %" PRIu32 ", region %s): %s", status,
                         remote->account.region, remote_account_advice(&remote->account));
    if (kind == REMOTE_S3 && status >= 300 && status < 400)
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, at,
                         "the bucket is in another region than %s (HTTP status %" PRIu32
                         "); set AWS_REGION to the bucket's",
                         remote->account.region, status);
    if (status == 404 || status == 410)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, remote->shown, at,
                         "the server has no such file (HTTP status %" PRIu32 "); correct the name", status);
    if (status == 401 || status == 403)
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, at,
                         "the server refuses access (HTTP status %" PRIu32
                         "); if it wants a password, write it to ~/.netrc (machine HOST login USER password PASSWORD), "
                         "and if the URL is a signed one, make a new one",
                         status);
    if (status >= 300 && status < 400)
        return error_set(error, TOKMAP_ERROR_IO, remote->shown, at,
                         "the server names another place (HTTP status %" PRIu32 ") in a way that cannot be followed; "
                         "name the place itself",
                         status);
    return error_set(error, TOKMAP_ERROR_IO, remote->shown, at,
                     "the server answers with HTTP status %" PRIu32 "; correct the name, or download the file and name "
                     "that",
                     status);
}

/* ---- requests ---- */

/* Returns true if the date of the last modification names one version (RFC 9110, 8.8.2.2): it has no fractions of
 * seconds, so the file could change once more in the second in which it was sent. */
static bool date_is_strong(const struct http_answer *answer)
{
    const uint64_t now = answer->date ? answer->date : os_wall_seconds() - CLOCKS_APART;
    return answer->changed && answer->changed < now;
}

/* Keeps what names the version of the first answer. Two files may have the same weak ETag (W/"x"), so it names none. */
static void version_take(struct remote *remote, const struct http_answer *answer)
{
    *remote->tag = *remote->modified = '\0';
    if (*answer->tag == '"')
        memcpy(remote->tag, answer->tag, sizeof remote->tag);
    else if (date_is_strong(answer))
        memcpy(remote->modified, answer->modified, sizeof remote->modified);
}

/* Returns true if an answer is of the version that is being read. */
static bool same_version(const struct remote *remote, const struct http_answer *answer)
{
    return *remote->tag ? !strcmp(remote->tag, answer->tag) : !strcmp(remote->modified, answer->modified);
}

uint64_t remote_version(const struct remote *remote)
{
    const char *version = *remote->tag ? remote->tag : remote->modified;
    return *version ? hash64(version, strlen(version)) | 1 : 0;
}

static enum tokmap_status changed(const struct remote *remote, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_MISMATCH, remote->shown, remote->at, CHANGED);
}

/* Judges the answer to the first request. */
static enum tokmap_status judge_first(struct remote *remote, const struct http_answer *answer,
                                      struct tokmap_error *error)
{
    if (answer->status != 200)
        return refused(remote, answer, error);
    if (!answer->framed)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, remote->shown, TOKMAP_NO_OFFSET,
                         "the server says neither how long the file is nor where it ends (no Content-Length and no "
                         "chunks), so a broken connection would look like its end; download the file and name that");
    remote->bytes = answer->length;
    version_take(remote, answer);
    return TOKMAP_OK;
}

/* Judges the answer to a request for the bytes from remote->at on. *reason: why another attempt is to be made. */
static enum tokmap_status judge_rest(struct remote *remote, const struct http_answer *answer, const char **reason,
                                     struct tokmap_error *error)
{
    if (answer->status == 412 || answer->status == 416)
        return changed(remote, error);
    if (answer->status != 206 && answer->status != 200)
        return refused(remote, answer, error);
    if (!same_version(remote, answer))
        return changed(remote, error);
    if (answer->status == 200) {
        if (answer->length != remote->bytes)
            return changed(remote, error);
        remote->skip = remote->at;
        return TOKMAP_OK;
    }
    if (!answer->has_range || answer->range_first != remote->at)
        *reason = "the server answers with other bytes than those that were asked for (Content-Range)";
    else if (remote->bytes != UINT64_MAX && answer->range_total != UINT64_MAX && answer->range_total != remote->bytes)
        return changed(remote, error);
    else if (remote->bytes == UINT64_MAX)
        remote->bytes = answer->range_total;
    return TOKMAP_OK;
}

static bool may_pass(uint32_t status)
{
    return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

/* Makes the URL of the open name: of the object, or of its bucket with a query. */
static enum tokmap_status url_make(struct remote *remote, struct tokmap_error *error)
{
    remote->url.count = 0;
    return remote_account_url(&remote->account, &remote->object, remote->query, &remote->url)
               ? TOKMAP_OK
               : error_set_memory(error, "the name of an input", 0);
}

/* Makes the request for the bytes from remote->at on, signed now if there is a key. headers is memory for it. */
static enum tokmap_status request_make(struct remote *remote, bool head, const char **headers,
                                       struct http_request *request, struct tokmap_error *error)
{
    const struct remote_account *account = &remote->account;
    *request = (struct http_request){.url = (const char *)remote->url.bytes,
                                     .head = head,
                                     .first = remote->at,
                                     .last = UINT64_MAX,
                                     .headers = headers};
    if (remote_kind(remote->shown) == REMOTE_WEB) {
        headers[request->header_count++] = "accept-encoding: identity";
        return TOKMAP_OK;
    }
    request->keep_host = true;
    if (!account->key)
        return TOKMAP_OK;
    const struct remote_signer signer = {account->key, account->secret, account->region, account->token};
    unsigned lines;
    remote->header.count = 0;
    if (!remote_sign(&signer, head ? "HEAD" : "GET", request->url, os_wall_seconds(), &remote->header, &lines))
        return error_set_memory(error, "a signature", 0);
    const char *line = (const char *)remote->header.bytes;
    for (; request->header_count < lines; line += strlen(line) + 1)
        headers[request->header_count++] = line;
    return TOKMAP_OK;
}

/* Sends requests until an answer has the bytes from remote->at on. */
static enum tokmap_status reach(struct remote *remote, struct tokmap_error *error)
{
    for (;;) {
        char condition[HTTP_TAG_MOST + 32];
        const char *headers[HEADERS_MOST];
        struct http_request request;
        enum tokmap_status status = request_make(remote, false, headers, &request, error);
        if (status)
            return status;
        if (remote->at) {
            if (!remote_version(remote))
                return error_set(
                    error, TOKMAP_ERROR_IO, remote->shown, remote->at,
                    "the connection broke, and the server names no version of the file (an ETag that is not weak, or "
                    "Last-Modified), so the rest could be of another one; download the file and name that");
            (void)snprintf(condition, sizeof condition, *remote->tag ? "if-match: %s" : "if-unmodified-since: %s",
                           *remote->tag ? remote->tag : remote->modified);
            headers[request.header_count++] = condition;
        }
        struct http_answer answer;
        const char *reason = NULL;
        char text[128];
        const enum http_result result = http_begin(remote->http, &request, &answer);
        remote->skip = 0;
        if (result) {
            status = broke(remote, result, error);
            if (status)
                return status;
            continue;
        }
        remote->answered = true;
        if (answer.status >= 300 && answer.status < 500 && *answer.region && !remote->moved &&
            remote->account.kind == REMOTE_S3 && remote_account_move(&remote->account, answer.region)) {
            remote->moved = true;
            status = url_make(remote, error);
            if (status)
                return status;
            continue;
        }
        if (may_pass(answer.status)) {
            const int used = snprintf(text, sizeof text, "the server answers with HTTP status %" PRIu32, answer.status);
            if (answer.wait_seconds)
                (void)snprintf(text + used, sizeof text - (size_t)used, " and asks to wait %" PRIu64 " s (Retry-After)",
                               answer.wait_seconds);
            reason = text;
        } else {
            status = remote->at ? judge_rest(remote, &answer, &reason, error) : judge_first(remote, &answer, error);
        }
        if (!status && reason) {
            status = failed(remote, reason, answer.wait_seconds, remote->attempts, error);
            if (!status)
                continue;
        }
        remote->running = !status;
        return status;
    }
}

/* Finds out who reads an object, and makes its URL. */
static enum tokmap_status object_prepare(struct remote *remote, enum remote_kind kind, struct tokmap_error *error)
{
    enum tokmap_status status = remote_object_of(remote->shown, &remote->object, error);
    if (!status && remote->account.kind != kind)
        status = remote_account_load(&remote->account, kind, remote->shown, error);
    return status ? status : url_make(remote, error);
}

/* Prepares requests for a name, or with a query for its bucket. */
static enum tokmap_status prepare(struct remote *remote, const char *name, const char *query,
                                  struct tokmap_error *error)
{
    const enum remote_kind kind = remote_kind(name);
    enum tokmap_status status = kind == REMOTE_WEB ? remote_web_check(name, error) : TOKMAP_OK;
    remote_close(remote);
    if (status)
        return status;
    remote->shown = remote_shown(name);
    if (!remote->shown)
        return error_set_memory(error, "the name of an input", 0);
    if (!remote->http)
        status = http_new(&remote->http, remote->stop, remote->user, remote->shown, error);
    if (status)
        return status;
    remote->query = query;
    remote->moved = false;
    if (kind != REMOTE_WEB)
        status = object_prepare(remote, kind, error);
    else if (!bytes_append(&remote->url, name, strlen(name) + 1))
        status = error_set_memory(error, "the name of an input", 0);
    if (status)
        return status;
    remote->bytes = UINT64_MAX;
    remote->at = remote->good = 0;
    remote->failures = 0;
    remote->ended = remote->answered = false;
    *remote->tag = *remote->modified = '\0';
    return TOKMAP_OK;
}

enum tokmap_status remote_open(struct remote *remote, const char *name, struct tokmap_error *error)
{
    const struct remote_watch *watch = remote->watch;
    enum tokmap_status status = prepare(remote, name, NULL, error);
    if (!status)
        status = reach(remote, error);
    if (!status && watch && watch->unversioned && !remote_version(remote))
        watch->unversioned(watch->user, remote->shown);
    return status;
}

/* Reads bytes of the answer. Those that have been delivered before are passed over. */
static enum http_result answer_read(struct remote *remote, char *into, size_t capacity, size_t *got, bool *end)
{
    enum http_result result = HTTP_OK;
    *got = 0;
    *end = false;
    while (remote->skip && !result && !*end) {
        result = http_read(remote->http, into, (size_t)min64(capacity, remote->skip), got, end);
        remote->skip -= *got;
        *got = 0;
    }
    return result || *end ? result : http_read(remote->http, into, capacity, got, end);
}

enum tokmap_status remote_read(struct remote *remote, char *into, size_t capacity, size_t *got,
                               struct tokmap_error *error)
{
    assert(remote->shown && capacity);
    for (*got = 0; !remote->ended;) {
        enum tokmap_status status = remote->running ? TOKMAP_OK : reach(remote, error);
        if (status)
            return status;
        bool end;
        const enum http_result result = answer_read(remote, into, capacity, got, &end);
        remote->at += *got;
        remote->good += *got;
        if (remote->bytes != UINT64_MAX && remote->at > remote->bytes)
            return changed(remote, error);
        remote->ended = remote->bytes == UINT64_MAX ? !result && end : remote->at == remote->bytes;
        if (*got || remote->ended)
            return TOKMAP_OK;
        if (result)
            status = broke(remote, result, error);
        else if (end)
            status = failed(remote, "the server sent less than it announced", 0, remote->attempts, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

enum tokmap_status remote_fetch(struct remote *remote, const char *name, const char *query, size_t most,
                                struct bytes_buffer *page, struct tokmap_error *error)
{
    enum tokmap_status status = prepare(remote, name, query, error);
    const size_t before = page->count;
    bool end = false;
    while (!status && !end) {
        size_t got;
        if (!remote->running) { /* a page is not resumed but asked for again */
            page->count = before;
            remote->at = 0;
            status = reach(remote, error);
            continue;
        }
        if (!bytes_reserve(page, PAGE_STEP))
            return error_set_memory(error, "a list of objects", page->count);
        const enum http_result result =
            http_read(remote->http, (char *)page->bytes + page->count, PAGE_STEP, &got, &end);
        page->count += got;
        if (result)
            status = broke(remote, result, error);
        else if (page->count - before > most)
            status =
                error_set(error, TOKMAP_ERROR_LIMIT, remote->shown, TOKMAP_NO_OFFSET,
                          "the server's list of objects is longer than %zu bytes; name the objects themselves", most);
        end = end && !result;
    }
    if (remote->http)
        http_end(remote->http);
    remote->running = false;
    return status;
}

uint64_t remote_size(struct remote *remote, const char *name)
{
    const char *headers[HEADERS_MOST];
    struct http_request request;
    struct http_answer answer;
    const bool good = !prepare(remote, name, NULL, NULL) && !request_make(remote, true, headers, &request, NULL) &&
                      !http_begin(remote->http, &request, &answer) && answer.status == 200;
    remote_close(remote);
    return good ? answer.length : UINT64_MAX;
}
