/* SPDX-License-Identifier: MIT */
#include "remote_range.h"

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

/* Returns whether an ETag names the bytes of a file. A weak one ("W/...") does not. */
static bool tag_is_strong(const char *tag)
{
    return *tag == '"';
}

static enum tokmap_status replaced(const struct remote_client *client, const struct remote_range *range,
                                   struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_MISMATCH, client->shown, range->first,
                     "bytes %" PRIu64 " to %" PRIu64 ": the object was replaced since it was opened (it has another "
                     "ETag); open the dataset again, and write new data under a new name",
                     range->first, range->first + range->count - 1);
}

/* Judges an answer. *reason: why another attempt is to be made. */
static enum tokmap_status judge(struct remote_client *client, const struct http_answer *answer,
                                struct remote_range *range, const char **reason, struct tokmap_error *error)
{
    *reason = NULL;
    range->same = answer->status == 304 && range->unless && *range->tag;
    if (range->same)
        return TOKMAP_OK;
    const bool sent = answer->status == 206 || answer->status == 200;
    if (range->version &&
        (answer->status == 412 || answer->status == 416 || (sent && !remote_version_is(range->version, answer)) ||
         (answer->has_range && answer->range_total != UINT64_MAX && answer->range_total != range->total)))
        return error_set(error, TOKMAP_ERROR_MISMATCH, client->shown, range->first, REMOTE_CHANGED);
    if (range->version && answer->status == 404)
        return remote_client_refused(client, answer, error);
    if (answer->status == 412)
        return replaced(client, range, error);
    if (answer->status == 416)
        return error_set(error, TOKMAP_ERROR_MISMATCH, client->shown, range->first,
                         "the server has no bytes %" PRIu64 " to %" PRIu64
                         " (HTTP status 416): the object is shorter than %s; write the dataset again, the index last",
                         range->first, range->first + range->count - 1,
                         range->total ? "its index says" : "any index of a shard");
    if (answer->status == 404)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, client->shown, TOKMAP_NO_OFFSET,
                         "the server has no object of this name (HTTP status 404)%s",
                         range->total ? ", although the dataset has one; write the dataset again, the index last"
                                      : "; correct the name");
    if (answer->status == 200 && !answer->ranges && !client->ranged && !range->version)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, client->shown, TOKMAP_NO_OFFSET,
                         "the server does not serve ranges of bytes: it answers with the whole file; use a server that "
                         "does, or copy the dataset to a disk of this machine");
    client->ranged = client->ranged || answer->status == 206;
    if (answer->status == 200)
        *reason = "the server answers with the whole file instead of the range that was asked for";
    else if (answer->status != 206)
        return remote_client_refused(client, answer, error);
    else if (!answer->has_range || answer->range_first != range->first || answer->range_total == UINT64_MAX ||
             answer->range_last != min64(range->first + range->count, answer->range_total) - 1)
        *reason = "the server answers with other bytes than those that were asked for (Content-Range)";
    else if (range->total && answer->range_total != range->total)
        return error_set(error, TOKMAP_ERROR_MISMATCH, client->shown, min64(range->total, answer->range_total),
                         "the object has %" PRIu64 " bytes, but its index says %" PRIu64
                         ": they do not belong together; write the dataset again, the index last",
                         answer->range_total, range->total);
    else if (!range->version && !range->unless && tag_is_strong(range->tag) && tag_is_strong(answer->tag) &&
             strcmp(range->tag, answer->tag) != 0)
        return replaced(client, range, error);
    range->size = answer->range_total;
    return TOKMAP_OK;
}

/* Reads the body of an answer, as far as it fits. */
static enum http_result body_read(struct remote_client *client, struct remote_range *range, uint64_t wanted,
                                  bool direct)
{
    range->got = 0;
    for (bool end = false; !end;) {
        size_t got;
        uint8_t beyond[4096];
        const bool fits = direct || range->got < wanted;
        const enum http_result result = http_read(client->http, (char *)(fits ? range->into + range->got : beyond),
                                                  fits ? (size_t)(wanted - range->got) : sizeof beyond, &got, &end);
        if (result)
            return result;
        range->got += got;
        remote_client_came(client, got, false);
        if (range->got > wanted)
            break;
    }
    return HTTP_OK;
}

enum tokmap_status remote_range_read(struct remote_client *client, const char *name, struct remote_range *range,
                                     struct tokmap_error *error)
{
    char condition[REMOTE_CONDITION_MOST];
    struct remote_ask ask = {.ranged = true,
                             .first = range->first,
                             .last = range->first + range->count - 1,
                             .into = (char *)range->into,
                             .into_bytes = range->count};
    enum tokmap_status status = remote_client_name(client, name, NULL, false, error);
    if (range->version) {
        remote_version_condition(range->version, condition);
        ask.condition = condition;
    } else if (range->unless ? *range->tag != '\0' : tag_is_strong(range->tag)) {
        (void)snprintf(condition, sizeof condition, "%s: %s", range->unless ? "if-none-match" : "if-match", range->tag);
        ask.condition = condition;
    }
    client->at = range->first;
    client->known = range->known;
    client->since_ns = range->since_ns;
    while (!status) {
        struct http_answer answer;
        const char *reason;
        status = remote_client_send(client, &ask, &answer, error);
        range->first_ns = os_clock_ns();
        if (range->answered)
            __atomic_store_n(range->answered, 1, __ATOMIC_RELAXED);
        if (!status)
            status = judge(client, &answer, range, &reason, error);
        if (status || range->same)
            break;
        const uint64_t wanted = min64(range->count, range->size - range->first);
        const enum http_result result = reason ? HTTP_OK : body_read(client, range, wanted, wanted == range->count);
        if (!reason && !result && range->got == wanted) {
            if (range->tag)
                memcpy(range->tag, answer.tag, sizeof answer.tag);
            break;
        }
        if (!reason && !result)
            reason = range->got < wanted ? "the server sent less than it announced"
                                         : "the server sent more than it announced";
        status = result ? remote_client_broke(client, result, error)
                        : remote_client_failed(client, reason, answer.wait_seconds, error);
    }
    remote_client_close(client);
    return status;
}
