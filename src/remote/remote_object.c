/* SPDX-License-Identifier: MIT */
#include "remote_object.h"

#include <stdio.h>
#include <string.h>

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

/* ---- requests that write ---- */

#define ANSWER_MOST ((size_t)16 << 20)

/* Returns whether an error may pass: bytes that were damaged or delayed on the way, and a server that has too much to
 * do. */
static bool code_passes(const char *code)
{
    static const char *const codes[] = {
        "RequestTimeout", "IncompleteBody",     "BadDigest",     "XAmzContentSHA256Mismatch",
        "SlowDown",       "ServiceUnavailable", "InternalError", "OperationAborted"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (!strcmp(code, codes[i]))
            return true;
    return false;
}

enum tokmap_status remote_write(struct remote_client *client, const char *name, const char *query,
                                const struct remote_ask *ask, struct remote_written *written,
                                struct tokmap_error *error)
{
    const uint32_t *http = &written->answer.status;
    const char *code = client->code;
    char reason[sizeof client->code + 64];
    *written = (struct remote_written){.body = {0}};
    enum tokmap_status status = remote_client_name(client, name, query, true, error);
    while (!status) {
        written->body.count = 0;
        status = remote_client_fetch(client, ask, ANSWER_MOST, &written->body, &written->answer, error);
        if (status)
            break;
        if (*http / 100 == 2 ? !*code : *http == 404 || *http == 412 || (*http == 409 && !code_passes(code)))
            break;
        (void)snprintf(reason, sizeof reason, "the server answers with HTTP status %" PRIu32 ", %s", *http, code);
        if (*code && code_passes(code))
            status = remote_client_failed(client, reason, written->answer.wait_seconds, error);
        else
            status = remote_client_refused(client, &written->answer, error);
    }
    return status;
}

/* ---- ETags ---- */

void remote_tag_of(const uint8_t (*parts)[MD5_BYTES], uint64_t count, bool upload, char tag[HTTP_TAG_MOST])
{
    uint8_t digest[MD5_BYTES];
    char *at = tag;
    memcpy(digest, parts[0], sizeof digest);
    if (upload)
        md5(parts, count * sizeof *parts, digest);
    *at++ = '"';
    for (size_t i = 0; i < sizeof digest; i++)
        at += snprintf(at, 3, "%02x", digest[i]);
    at += upload ? snprintf(at, 24, "-%" PRIu64, count) : 0;
    memcpy(at, "\"", 2);
}

void remote_body_check(const uint8_t hash[MD5_BYTES], char line[BODY_CHECK_MOST])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t at = (size_t)snprintf(line, BODY_CHECK_MOST, "content-md5: ");
    for (unsigned i = 0; i < MD5_BYTES; i += 3) {
        const bool last = i + 1 == MD5_BYTES;
        const uint32_t three =
            (uint32_t)hash[i] << 16 | (last ? 0 : (uint32_t)hash[i + 1] << 8 | (uint32_t)hash[i + 2]);
        line[at++] = digits[three >> 18];
        line[at++] = digits[three >> 12 & 63];
        line[at++] = last ? '=' : digits[three >> 6 & 63];
        line[at++] = last ? '=' : digits[three & 63];
    }
    line[at] = '\0';
}

bool remote_tag_denies(const char *tag, const char *wanted)
{
    const size_t bytes = strlen(tag), digits = strspn(tag + (*tag == '"'), "0123456789abcdef");
    const bool form = bytes == strlen(wanted) && *tag == '"' && digits == 2 * (size_t)MD5_BYTES &&
                      !strcmp(tag + 1 + digits, wanted + 1 + digits);
    return form && strcmp(tag, wanted) != 0;
}

/* ---- objects that are written in one request ---- */

enum tokmap_status remote_written_check(const char *name, struct tokmap_error *error)
{
    const enum remote_kind kind = remote_kind(name);
    return kind != REMOTE_WEB && kind != REMOTE_HUB
               ? TOKMAP_OK
               : error_set(error, TOKMAP_ERROR_UNSUPPORTED, NULL, TOKMAP_NO_OFFSET,
                           "files of %s are read and not written; name an object (s3://BUCKET/KEY or gs://BUCKET/KEY) "
                           "or a path",
                           kind == REMOTE_HUB ? "the Hugging Face Hub (hf://)" : "web servers (http://, https://)");
}

enum tokmap_status remote_stored_wrong(const struct remote_client *client, struct tokmap_error *error)
{
    return error_set(
        error, TOKMAP_ERROR_CORRUPT, client->shown, TOKMAP_NO_OFFSET,
        "what the server has stored is not what was sent: its size or ETag differs; run the command again");
}

enum tokmap_status remote_stored_check(struct remote_client *client, const char *name, uint64_t bytes,
                                       const char *wanted, struct tokmap_error *error)
{
    struct remote_facts facts;
    const enum tokmap_status status = remote_object_find(client, name, &facts, error);
    if (status)
        return status;
    return facts.bytes != bytes || (!facts.keyed && remote_tag_denies(facts.tag, wanted))
               ? remote_stored_wrong(client, error)
               : TOKMAP_OK;
}

enum tokmap_status remote_object_put(struct remote_client *client, const char *name, const void *bytes, size_t count,
                                     const struct remote_facts *old, struct tokmap_error *error)
{
    uint8_t digest[1][MD5_BYTES];
    char wanted[HTTP_TAG_MOST], match[HTTP_TAG_MOST + 16], check[BODY_CHECK_MOST];
    struct remote_written written;
    const bool s3 = remote_kind(name) == REMOTE_S3;
    md5(bytes, count, digest[0]);
    remote_tag_of(digest, 1, false, wanted);
    remote_body_check(digest[0], check);
    (void)snprintf(match, sizeof match, "if-match: %s", old ? old->tag : "");
    const struct remote_ask ask = {.method = HTTP_PUT,
                                   .body = count ? bytes : "",
                                   .body_bytes = count,
                                   .body_check = check,
                                   .condition = !s3 || !old   ? NULL
                                                : *old->tag   ? match
                                                : !old->bytes ? "if-none-match: *"
                                                              : NULL};
    enum tokmap_status status = remote_written_check(name, error);
    if (!status)
        status = remote_write(client, name, NULL, &ask, &written, error);
    const uint32_t http = written.answer.status;
    bytes_free(&written.body);
    if (status)
        return status;
    if (http == 409 || http == 412) { /* or this request was sent twice, and the first answer was lost */
        struct remote_facts now;
        status = remote_object_find(client, name, &now, error);
        return !status && now.bytes == count && !strcmp(now.tag, wanted)
                   ? TOKMAP_OK
                   : error_set(error, TOKMAP_ERROR_EXISTS, client->shown, TOKMAP_NO_OFFSET,
                               "another program has written this object meanwhile; look who writes there, and run the "
                               "command again");
    }
    if (!written.answer.keyed && remote_tag_denies(written.answer.tag, wanted))
        return remote_stored_wrong(client, error);
    return remote_stored_check(client, name, count, wanted, error);
}

enum tokmap_status remote_object_remove(struct remote_client *client, const char *name, struct tokmap_error *error)
{
    const struct remote_ask ask = {.method = HTTP_DELETE};
    struct remote_written written = {.body = {0}};
    enum tokmap_status status = remote_written_check(name, error);
    if (!status)
        status = remote_write(client, name, NULL, &ask, &written, error);
    bytes_free(&written.body);
    return status;
}
