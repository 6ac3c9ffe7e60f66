/* SPDX-License-Identifier: MIT */
/* remote_object.c - see remote_object.h. */
#include "remote_object.h"

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#define REPLACED "the object was replaced while it was read; run the command again when no program writes to it"

/* ---- reading ---- */

static enum tokmap_status facts_take(const struct remote_client *client, const struct http_answer *answer,
                                     struct remote_facts *facts, struct tokmap_error *error)
{
    facts->bytes = answer->length;
    *facts->tag = '\0';
    if (strncmp(answer->tag, "W/", 2) != 0)
        memcpy(facts->tag, answer->tag, sizeof facts->tag);
    return answer->length != UINT64_MAX
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_UNSUPPORTED, client->shown, TOKMAP_NO_OFFSET,
                           "the server does not say how large the file is; download it, and name the copy");
}

enum tokmap_status remote_object_find(struct remote_client *client, const char *name, struct remote_facts *facts,
                                      struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_HEAD};
    struct http_answer answer;
    enum tokmap_status status = remote_client_name(client, name, NULL, false, error);
    if (!status)
        status = remote_client_send(client, &ask, &answer, error);
    if (!status)
        status = answer.status == 200 ? facts_take(client, &answer, facts, error)
                                      : remote_client_refused(client, &answer, error);
    if (client->http)
        http_end(client->http);
    return status;
}

/* Judges the answer to a request for a range. *good: its body has the wanted bytes. */
static enum tokmap_status range_check(struct remote_client *client, const struct http_answer *answer,
                                      const struct remote_facts *facts, uint64_t at, size_t count, bool *good,
                                      struct tokmap_error *error)
{
    *good = false;
    if (answer->status == 412 ||
        ((answer->status == 200 || answer->status == 206) && *facts->tag && strcmp(answer->tag, facts->tag) != 0))
        return error_set(error, TOKMAP_ERROR_MISMATCH, client->shown, at, REPLACED);
    if (answer->status == 416 || (answer->status == 200 && answer->length < at + count))
        return error_set(error, TOKMAP_ERROR_TRUNCATED, client->shown, at,
                         "the object ends before byte %" PRIu64 "; " REPLACED, at + count);
    if (answer->status != 206 && answer->status != 200)
        return remote_client_refused(client, answer, error);
    *good = answer->status == 206
                ? answer->has_range && answer->range_first == at && answer->range_last == at + count - 1
                : !at && answer->length == count;
    return *good ? TOKMAP_OK
                 : remote_client_failed(client, "the server sends other bytes than it was asked for", 0, error);
}

enum tokmap_status remote_object_read(struct remote_client *client, const char *name, const struct remote_facts *facts,
                                      uint64_t at, size_t count, void *into, struct tokmap_error *error)
{
    char match[HTTP_TAG_MOST + 16];
    (void)snprintf(match, sizeof match, "if-match: %s", facts->tag);
    const struct remote_ask ask = {.method = HTTP_GET,
                                   .ranged = true,
                                   .first = at,
                                   .last = at + count - 1,
                                   .condition = *facts->tag ? match : NULL,
                                   .into = into,
                                   .into_bytes = count};
    enum tokmap_status status = count ? remote_client_name(client, name, NULL, false, error) : TOKMAP_OK;
    for (size_t done = 0; !status && done < count;) {
        struct http_answer answer;
        enum http_result result = HTTP_OK;
        bool good, end = false;
        status = remote_client_send(client, &ask, &answer, error);
        if (!status)
            status = range_check(client, &answer, facts, at, count, &good, error);
        if (status || !good)
            continue;
        for (done = 0; !result && !end;) {
            size_t got;
            char spare;
            const bool full = done == count;
            result = http_read(client->http, full ? &spare : (char *)into + done, full ? 1 : count - done, &got, &end);
            done += got;
            client->good += got;
        }
        if (result)
            status = remote_client_broke(client, result, error);
        else if (done != count)
            status = remote_client_failed(client, "the server sent less, or more, than it announced", 0, error);
        if (result || done > count)
            done = 0;
    }
    if (client->http)
        http_end(client->http);
    return status;
}

enum tokmap_status remote_object_get(struct remote_client *client, const char *name, size_t most,
                                     struct bytes_buffer *into, struct remote_facts *facts, struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_GET};
    const size_t before = into->count;
    struct http_answer answer;
    enum tokmap_status status = remote_client_name(client, name, NULL, false, error);
    if (!status)
        status = remote_client_fetch(client, &ask, most, into, &answer, error);
    if (!status && answer.status != 200)
        status = remote_client_refused(client, &answer, error);
    answer.length = status ? 0 : into->count - before;
    return status ? status : facts_take(client, &answer, facts, error);
}
