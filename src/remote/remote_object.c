/* SPDX-License-Identifier: MIT */
/* remote_object.c - see remote_object.h. */
#include "remote_object.h"

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "remote_range.h"

/* ---- reading ---- */

static enum tokmap_status facts_take(const struct remote_client *client, const struct http_answer *answer,
                                     struct remote_facts *facts, struct tokmap_error *error)
{
    facts->bytes = answer->length;
    facts->keyed = answer->keyed;
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
    if (!status && remote_kind(name) != REMOTE_WEB && answer.status >= 400 && answer.status <= 403) {
        const struct remote_ask one = {.ranged = true}; /* the answer to HEAD has no body, and so no code */
        struct http_answer again;
        if (!remote_client_send(client, &one, &again, NULL) && again.status >= 400)
            answer = again;
    }
    if (!status)
        status = answer.status == 200 ? facts_take(client, &answer, facts, error)
                                      : remote_client_refused(client, &answer, error);
    if (client->http)
        http_end(client->http);
    return status;
}

enum tokmap_status remote_object_read(struct remote_client *client, const char *name, const struct remote_facts *facts,
                                      uint64_t at, size_t count, void *into, struct tokmap_error *error)
{
    char tag[HTTP_TAG_MOST];
    struct remote_range range = {.first = at, .count = count, .total = facts->bytes, .into = into, .tag = tag};
    memcpy(tag, facts->tag, sizeof tag);
    return count ? remote_range_read(client, name, &range, error) : TOKMAP_OK;
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
