/* SPDX-License-Identifier: MIT */
#include "remote_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "remote_version.h"

struct remote {
    struct remote_client client;
    uint64_t bytes; /* of the file, or UINT64_MAX */
    uint64_t at;    /* bytes that have been delivered */
    uint64_t skip;  /* bytes of the answer that have been delivered before */
    bool running;   /* an answer is being read */
    bool ended;
    struct remote_version version; /* of the first answer */
};

enum tokmap_status remote_new(struct remote **remote, bool (*stop)(void *user), void *user,
                              const struct remote_watch *watch, struct tokmap_error *error)
{
    *remote = calloc(1, sizeof **remote);
    if (!*remote)
        return error_set_memory(error, "the reader of URLs", sizeof **remote);
    remote_client_init(&(*remote)->client, stop, user, watch);
    return TOKMAP_OK;
}

void remote_free(struct remote *remote)
{
    if (remote)
        remote_client_free(&remote->client);
    free(remote);
}

void remote_close(struct remote *remote)
{
    remote_client_close(&remote->client);
    remote->running = false;
}

const char *remote_name(const struct remote *remote)
{
    return remote->client.shown;
}

uint64_t remote_bytes(const struct remote *remote)
{
    return remote->bytes;
}

uint64_t remote_version(const struct remote *remote)
{
    return remote_version_number(&remote->version);
}

static enum tokmap_status changed(const struct remote *remote, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_MISMATCH, remote->client.shown, remote->at, REMOTE_CHANGED);
}

/* Judges the answer to the first request. */
static enum tokmap_status judge_first(struct remote *remote, const struct http_answer *answer,
                                      struct tokmap_error *error)
{
    if (answer->status != 200)
        return remote_client_refused(&remote->client, answer, error);
    if (!answer->framed)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, remote->client.shown, TOKMAP_NO_OFFSET,
                         "the server says neither how long the file is nor where it ends (no Content-Length and no "
                         "chunks), so a broken connection would look like its end; download the file and name that");
    remote->bytes = answer->length;
    remote_version_take(&remote->version, answer);
    return TOKMAP_OK;
}

/* Judges the answer to a request for the bytes from remote->at on. *reason: why another attempt is to be made. */
static enum tokmap_status judge_rest(struct remote *remote, const struct http_answer *answer, const char **reason,
                                     struct tokmap_error *error)
{
    if (answer->status == 412 || answer->status == 416)
        return changed(remote, error);
    if (answer->status != 206 && answer->status != 200)
        return remote_client_refused(&remote->client, answer, error);
    if (!remote_version_is(&remote->version, answer))
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

/* ---- reading ---- */

/* Sends requests until an answer has the bytes from remote->at on. */
static enum tokmap_status reach(struct remote *remote, struct tokmap_error *error)
{
    char condition[REMOTE_CONDITION_MOST];
    struct remote_ask ask = {.ranged = remote->at > 0, .first = remote->at, .last = UINT64_MAX};
    remote->skip = 0;
    remote->client.at = remote->at;
    if (remote->at) {
        if (!remote_version(remote))
            return error_set(
                error, TOKMAP_ERROR_IO, remote->client.shown, remote->at,
                "the connection broke, and the server names no version of the file (an ETag that is not weak, or "
                "Last-Modified), so the rest could be of another one; download the file and name that");
        remote_version_condition(&remote->version, condition);
        ask.condition = condition;
    }
    for (;;) {
        struct http_answer answer;
        const char *reason = NULL;
        enum tokmap_status status = remote_client_send(&remote->client, &ask, &answer, error);
        if (!status)
            status = remote->at ? judge_rest(remote, &answer, &reason, error) : judge_first(remote, &answer, error);
        if (status)
            return status;
        remote->running = !reason;
        if (!reason)
            return TOKMAP_OK;
        status = remote_client_failed(&remote->client, reason, answer.wait_seconds, error);
        if (status)
            return status;
    }
}

enum tokmap_status remote_open(struct remote *remote, const char *name, struct tokmap_error *error)
{
    const struct remote_watch *watch = remote->client.watch;
    enum tokmap_status status = remote_client_name(&remote->client, name, NULL, false, error);
    remote->bytes = UINT64_MAX;
    remote->at = 0;
    remote->running = remote->ended = false;
    remote->version = (struct remote_version){.tag = ""};
    if (!status)
        status = reach(remote, error);
    if (!status && watch && watch->unversioned && !remote_version(remote))
        watch->unversioned(watch->user, remote->client.shown);
    return status;
}

/* Reads bytes of the answer. Those that have been delivered before are passed over. */
static enum http_result answer_read(struct remote *remote, char *into, size_t capacity, size_t *got, bool *end)
{
    enum http_result result = HTTP_OK;
    *got = 0;
    *end = false;
    while (remote->skip && !result && !*end) {
        result = http_read(remote->client.http, into, (size_t)min64(capacity, remote->skip), got, end);
        remote->skip -= *got;
        *got = 0;
    }
    return result || *end ? result : http_read(remote->client.http, into, capacity, got, end);
}

enum tokmap_status remote_read(struct remote *remote, char *into, size_t capacity, size_t *got,
                               struct tokmap_error *error)
{
    assert(remote->client.shown && capacity);
    for (*got = 0; !remote->ended;) {
        enum tokmap_status status = remote->running ? TOKMAP_OK : reach(remote, error);
        if (status)
            return status;
        bool end;
        const enum http_result result = answer_read(remote, into, capacity, got, &end);
        remote->at += *got;
        remote->client.at = remote->at;
        remote_client_came(&remote->client, *got, true);
        if (remote->bytes != UINT64_MAX && remote->at > remote->bytes)
            return changed(remote, error);
        remote->ended = remote->bytes == UINT64_MAX ? !result && end : remote->at == remote->bytes;
        if (*got || remote->ended)
            return TOKMAP_OK;
        if (result)
            status = remote_client_broke(&remote->client, result, error);
        else if (end)
            status = remote_client_failed(&remote->client, "the server sent less than it announced", 0, error);
        remote->running = false;
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

uint64_t remote_size(struct remote *remote, const char *name)
{
    const struct remote_ask ask = {.method = HTTP_HEAD};
    const uint32_t attempts = remote->client.attempts;
    struct http_answer answer;
    remote->client.attempts = 1; /* only progress is shown by it */
    const bool good = !remote_client_name(&remote->client, name, NULL, false, NULL) &&
                      !remote_client_send(&remote->client, &ask, &answer, NULL) && answer.status == 200;
    remote->client.attempts = attempts;
    remote_close(remote);
    return good ? answer.length : UINT64_MAX;
}
