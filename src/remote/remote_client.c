/* SPDX-License-Identifier: MIT */
#include "remote_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "remote_sign.h"
#include "remote_xml.h"

#define CLOCK_OFF_MOST 900 /* seconds; a signature that is further off is refused */
#define PAUSE_NS ((uint64_t)200 * 1000000u)
#define PAUSE_NS_MOST ((uint64_t)20 * 1000000000u)
#define RETRY_AFTER_MOST 60u                   /* seconds that a server may ask for, at a time */
#define ATTEMPT_NS ((uint64_t)5 * 1000000000u) /* that each attempt has, also the last one */
#define WAIT_TOLD 5u                           /* seconds; a longer wait is announced */
#define PAGE_STEP ((size_t)64 << 10)           /* read at a time of an answer */
#define CODE_MOST sizeof(((struct remote_client *)0)->code)
#define ERROR_MOST ((size_t)256 << 10) /* of a document with an error */
#define HEADERS_MOST (REMOTE_SIGN_LINES + 3)
#define HOPS_MOST 10 /* redirections in a row */

static bool answered[REMOTE_HUB + 1]; /* a server of the kind has answered this process; accessed atomically */

void remote_client_init(struct remote_client *client, bool (*stop)(void *user), void *user,
                        const struct remote_watch *watch)
{
    const char *given = secure_getenv("AWS_MAX_ATTEMPTS");
    const uint64_t attempts = given && strlen(given) < 4 ? strtoul(given, NULL, 10) : 0;
    *client = (struct remote_client){.stop = stop,
                                     .user = user,
                                     .watch = watch,
                                     .attempts = attempts ? (uint32_t)attempts : REMOTE_ATTEMPTS,
                                     .endless = attempts != 0};
}

void remote_client_free(struct remote_client *client)
{
    remote_client_close(client);
    http_free(client->http);
    remote_account_clear(&client->account);
    if (client->header.bytes)
        explicit_bzero(client->header.bytes, client->header.capacity);
    bytes_free(&client->header);
    bytes_free(&client->url);
    free(client->placed);
}

void remote_client_close(struct remote_client *client)
{
    if (client->http)
        http_end(client->http);
    if (client->shown) {
        free(client->placed);
        client->placed = client->shown;
    }
    client->shown = NULL;
    client->url.count = 0;
}

/* ---- failures ---- */

static enum tokmap_status interrupted(const struct remote_client *client, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_INTERRUPTED, client->shown, client->at, "interrupted");
}

static uint64_t offset_of(const struct remote_client *client)
{
    return client->at ? client->at : TOKMAP_NO_OFFSET;
}

/* Returns how much longer a request may fail. */
static uint64_t patience(const struct remote_client *client)
{
    const uint64_t since = client->since_ns ? client->since_ns : client->begun_ns, waited = os_clock_ns() - since;
    return client->endless ? UINT64_MAX : REMOTE_PATIENCE_NS - min64(waited, REMOTE_PATIENCE_NS);
}

void remote_client_came(struct remote_client *client, size_t bytes, bool kept)
{
    client->good += kept ? bytes : 0;
    if (client->good >= REMOTE_PROGRESS)
        client->failures = 0;
    if (bytes && !client->failures)
        client->begun_ns = os_clock_ns();
}

/* Counts a failure that may pass, and waits. most: how many are allowed. Statuses: OK (try again), ERROR_IO,
 * ERROR_INTERRUPTED. */
static enum tokmap_status failed(struct remote_client *client, const char *reason, uint64_t wait_seconds, uint32_t most,
                                 struct tokmap_error *error)
{
    uint16_t chance = 0;
    http_end(client->http);
    client->good = 0;
    if (++client->failures >= most || !patience(client))
        return error_set(error, TOKMAP_ERROR_IO, client->shown, offset_of(client),
                         "%.300s; this was attempt %" PRIu32 " in %" PRIu64
                         " s: check the name and the network, and run the command again",
                         reason, client->failures, (os_clock_ns() - client->begun_ns) / 1000000000u);
    const uint32_t doublings = client->failures - 1 < 10 ? client->failures - 1 : 10;
    uint64_t pause = min64(PAUSE_NS << doublings, PAUSE_NS_MOST);
    (void)os_random(&chance, sizeof chance);
    pause -= pause / 2 * chance / 65536;
    wait_seconds = min64(wait_seconds, RETRY_AFTER_MOST);
    pause = min64(max64(pause, wait_seconds * 1000000000u), patience(client));
    const struct remote_watch *watch = client->watch;
    if (watch && watch->waits && wait_seconds >= WAIT_TOLD)
        watch->waits(watch->user, client->shown, reason, wait_seconds);
    return http_wait(client->http, pause) ? interrupted(client, error) : TOKMAP_OK;
}

enum tokmap_status remote_client_failed(struct remote_client *client, const char *reason, uint64_t wait_seconds,
                                        struct tokmap_error *error)
{
    return failed(client, reason, wait_seconds, client->attempts, error);
}

enum tokmap_status remote_client_broke(struct remote_client *client, enum http_result result,
                                       struct tokmap_error *error)
{
    char reason[HTTP_REASON_MOST + 64];
    if (result == HTTP_STOPPED)
        return interrupted(client, error);
    if (result == HTTP_MEMORY)
        return error_set_memory(error, "the reader of URLs", 0);
    (void)snprintf(reason, sizeof reason, "%s", http_reason(client->http));
    if (result == HTTP_FAILED)
        return error_set(error, TOKMAP_ERROR_IO, client->shown, offset_of(client),
                         "%s; correct the name, or what the message names", reason);
    const bool first = result == HTTP_UNREACHED && !client->known &&
                       !__atomic_load_n(&answered[remote_kind(client->shown)], __ATOMIC_RELAXED);
    return failed(client, reason, 0,
                  first ? (uint32_t)min64(REMOTE_ATTEMPTS_FIRST, client->attempts) : client->attempts, error);
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

/* Copies the code of an error document, such as "SlowDown"; "" if the document is another one. */
static void error_code_copy(const char *body, size_t bytes, char code[CODE_MOST])
{
    struct xml_scan scan;
    bool inside = false;
    *code = '\0';
    xml_begin(&scan, body, bytes);
    for (enum xml_event event; (event = xml_next(&scan)) != XML_END && event != XML_WRONG;) {
        if (event == XML_OPEN && scan.depth == 1 && !xml_is(&scan, "Error"))
            return;
        if (event == XML_OPEN)
            inside = scan.depth == 2 && xml_is(&scan, "Code");
        else if (event == XML_TEXT && inside && scan.count < CODE_MOST &&
                 strspn(scan.bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.") >= scan.count)
            (void)snprintf(code, CODE_MOST, "%.*s", (int)scan.count, scan.bytes);
    }
}

/* Returns whether an error is about the key or its session. Others come with 403, too, such as QuotaExceeded. */
static bool code_is_of_key(const char *code)
{
    return !strcmp(code, "AccessDenied") || !strcmp(code, "InvalidAccessKeyId") ||
           !strcmp(code, "SignatureDoesNotMatch") || !strcmp(code, "RequestTimeTooSkewed") ||
           !strcmp(code, "ExpiredToken") || !strcmp(code, "InvalidToken");
}

/* Finds the code of an answer whose body was read, or can be read now. */
static void code_read(const struct remote_client *client, char code[CODE_MOST])
{
    struct bytes_buffer body = {0};
    memcpy(code, client->code, CODE_MOST);
    for (bool end = *code || !client->http; !end && body.count < ERROR_MOST && bytes_reserve(&body, PAGE_STEP);) {
        size_t got;
        end = http_read(client->http, (char *)body.bytes + body.count, PAGE_STEP, &got, &end) || end;
        body.count += got;
    }
    if (body.count)
        error_code_copy((const char *)body.bytes, body.count, code);
    bytes_free(&body);
}

/* Reports that a server of objects refuses access, or what its code says. */
static enum tokmap_status object_refused(const struct remote_client *client, uint32_t status, const char *code,
                                         struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_IO, client->shown, offset_of(client),
                     "the server refuses %s (HTTP status %" PRIu32 "%s%s, region %s): %s",
                     status == 400                    ? "access or this name"
                     : status == 401 || status == 403 ? "access"
                                                      : "this request",
                     status, *code ? ", " : "", code, client->account.region,
                     !strcmp(code, "RequestTimeTooSkewed") ? "set the clock of this machine"
                     : *code && !code_is_of_key(code)      ? "look that code up in the manual of the storage"
                                                           : remote_account_advice(&client->account));
}

/* Reports that the Hub refuses a request. Without a token it says of private repositories what it says of absent ones.
 */
static enum tokmap_status hub_refused(const struct remote_client *client, const struct http_answer *answer,
                                      struct tokmap_error *error)
{
    const struct remote_account *account = &client->account;
    char place[512], what[128];
    (void)snprintf(what, sizeof what, "HTTP status %" PRIu32 "%s%s", answer->status, *answer->code ? ", " : "",
                   answer->code);
    (void)snprintf(place, sizeof place, "%.200s/%.*s", account->endpoint, (int)client->object.bucket_bytes,
                   client->object.bucket);
    if (!strcmp(answer->code, "GatedRepo"))
        return error_set(error, TOKMAP_ERROR_IO, client->shown, offset_of(client),
                         "the repository is gated (%s): accept its conditions at %s%s", what, place,
                         account->token
                             ? " with the account of the token that was found"
                             : ", and set HF_TOKEN to a token of your account, or log in with 'hf auth login'");
    if (answer->status == 404 && strcmp(answer->code, "RepoNotFound") != 0)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, client->shown, TOKMAP_NO_OFFSET,
                         "%s has no such %s (%s); correct the name, or end it with a slash if it is a folder", place,
                         strcmp(answer->code, "RevisionNotFound") ? "file" : "branch, tag, or commit", what);
    return error_set(error, TOKMAP_ERROR_IO, client->shown, TOKMAP_NO_OFFSET,
                     "there is no %s, or not for %s (%s); correct the name, or set HF_TOKEN to a valid token of an "
                     "account that may read it",
                     place, account->token ? "the account of the token that was found" : "everybody", what);
}

enum tokmap_status remote_client_refused(const struct remote_client *client, const struct http_answer *answer,
                                         struct tokmap_error *error)
{
    const uint32_t status = answer->status;
    const uint64_t at = offset_of(client);
    enum remote_kind kind = remote_kind(client->shown);
    if (kind == REMOTE_HUB && !client->away && (status == 401 || status == 403 || status == 404))
        return hub_refused(client, answer, error);
    kind = kind == REMOTE_HUB ? REMOTE_WEB : kind;
    if (kind != REMOTE_WEB && status == 404)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, client->shown, at,
                         "there is no such bucket%s (HTTP status 404); correct the name%s",
                         client->query && !client->query_of_object ? "" : " or object",
                         client->query ? "" : ", or end it with a slash if it is the beginning of keys");
    bool ahead;
    const uint64_t off = kind == REMOTE_WEB ? 0 : clock_off(answer, &ahead);
    if (off && client->account.key && (status == 400 || status == 401 || status == 403))
        return error_set(error, TOKMAP_ERROR_IO, client->shown, at,
                         "the server refuses access (HTTP status %" PRIu32
                         "), and the clock of this machine is %" PRIu64 " s (%" PRIu64
                         " minutes) %s the server's: signatures are valid for %d minutes only; set "
                         "the clock",
                         status, off, off / 60, ahead ? "ahead of" : "behind", CLOCK_OFF_MOST / 60);
    char code[CODE_MOST] = "";
    if (kind != REMOTE_WEB && status / 100 != 3)
        code_read(client, code);
    if (kind != REMOTE_WEB && (*code || status == 400 || status == 401 || status == 403))
        return object_refused(client, status, code, error);
    if (kind != REMOTE_WEB && status > 301 && status < 400 && !*answer->region)
        return error_set(error, TOKMAP_ERROR_IO, client->shown, at,
                         "the server sends this request to another host (HTTP status %" PRIu32
                         "), which is not followed, because it is signed for this one; set AWS_ENDPOINT_URL to the "
                         "other host, or AWS_REGION to the bucket's region",
                         status);
    if (kind == REMOTE_S3 && status >= 300 && status < 400)
        return error_set(error, TOKMAP_ERROR_IO, client->shown, at,
                         "the bucket is in another region than %s (HTTP status %" PRIu32
                         "); set AWS_REGION to the bucket's",
                         client->account.region, status);
    if (status == 404 || status == 410)
        return error_set(error, TOKMAP_ERROR_NOT_FOUND, client->shown, at,
                         "the server has no such file (HTTP status %" PRIu32 "); correct the name", status);
    if (status == 401 || status == 403)
        return error_set(error, TOKMAP_ERROR_IO, client->shown, at,
                         "the server refuses access (HTTP status %" PRIu32
                         "); if it wants a password, write it to ~/.netrc (machine HOST login USER password PASSWORD), "
                         "and if the URL is a signed one, make a new one",
                         status);
    if (status >= 300 && status < 400)
        return error_set(error, TOKMAP_ERROR_IO, client->shown, at,
                         "the server names another place (HTTP status %" PRIu32 ") in a way that cannot be followed; "
                         "name the place itself",
                         status);
    return error_set(error, TOKMAP_ERROR_IO, client->shown, at,
                     "the server answers with HTTP status %" PRIu32 "; correct the name, or download the file and name "
                     "that",
                     status);
}

/* ---- requests ---- */

static bool may_pass(uint32_t status)
{
    return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

/* Makes the URL of the open name: of the object, or of its bucket with a query. */
static enum tokmap_status url_make(struct remote_client *client, struct tokmap_error *error)
{
    client->url.count = 0;
    return remote_account_url(&client->account, &client->object, client->query, client->query_of_object, &client->url)
               ? TOKMAP_OK
               : error_set_memory(error, "the name of an input", 0);
}

/* Makes a request, signed now if there is a key. headers is memory for it. */
static enum tokmap_status request_make(struct remote_client *client, const struct remote_ask *ask, const char **headers,
                                       struct http_request *request, struct tokmap_error *error)
{
    const struct remote_account *account = &client->account;
    *request = (struct http_request){.method = ask->method,
                                     .url = (const char *)client->url.bytes,
                                     .ranged = ask->ranged,
                                     .first = ask->first,
                                     .last = ask->last,
                                     .body = ask->body,
                                     .body_bytes = ask->body_bytes,
                                     .into = ask->into,
                                     .into_bytes = ask->into_bytes,
                                     .headers = headers,
                                     .within_ns = max64(patience(client), ATTEMPT_NS)};
    const enum remote_kind kind = remote_kind(client->shown);
    if (ask->condition && kind != REMOTE_HUB)
        headers[request->header_count++] = ask->condition;
    if (ask->body_check)
        headers[request->header_count++] = ask->body_check;
    if (kind == REMOTE_WEB) {
        headers[request->header_count++] = "accept-encoding: identity";
        return TOKMAP_OK;
    }
    request->keep_host = true;
    if (kind == REMOTE_HUB && account->token && !client->away) {
        static const char bearer[] = "authorization: Bearer ";
        client->header.count = 0;
        if (!bytes_append(&client->header, bearer, sizeof bearer - 1) ||
            !bytes_append(&client->header, account->token, strlen(account->token) + 1))
            return error_set_memory(error, "a request", 0);
        headers[request->header_count++] = (const char *)client->header.bytes;
    }
    if (!account->key)
        return TOKMAP_OK;
    const struct remote_signer signer = {account->key, account->secret, account->region, account->token,
                                         ask->body_check && !strncmp(request->url, "https:", 6)};
    unsigned lines;
    client->header.count = 0;
    if (!remote_sign(&signer, http_method_name(ask->method), request->url, ask->body, ask->body_bytes,
                     os_wall_seconds(), &client->header, &lines))
        return error_set_memory(error, "a signature", 0);
    const char *line = (const char *)client->header.bytes;
    for (; lines; lines--, line += strlen(line) + 1)
        headers[request->header_count++] = line;
    return TOKMAP_OK;
}

/* Takes the region that an answer names, the first time. Returns false if it names none, or the same. */
static bool region_take(struct remote_client *client, const struct http_answer *answer)
{
    if (answer->status < 300 || answer->status >= 500 || !*answer->region || client->moved ||
        client->account.kind != REMOTE_S3 || !remote_account_move(&client->account, answer->region))
        return false;
    client->moved = true;
    return true;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Reads the keys again after a refusal: those of a session end, and a program then writes new ones to the files in
 * which they are looked for. Returns whether there are others. */
static bool keys_renew(struct remote_client *client, const struct http_answer *answer)
{
    struct remote_account *account = &client->account, now = {.kind = REMOTE_NONE};
    if ((answer->status != 400 && answer->status != 401 && answer->status != 403) || !account->key ||
        remote_account_load(&now, account->kind, client->shown, NULL))
        return false;
    const bool others = now.key && (!same_text(now.key, account->key) || !same_text(now.secret, account->secret) ||
                                    !same_text(now.token, account->token));
    if (others) {
        const struct remote_account before = *account;
        *account = now;
        memcpy(account->region, before.region, sizeof before.region); /* perhaps that of the bucket */
        now = before;
    }
    remote_account_clear(&now);
    return others;
}

/* ---- the Hub ---- */

/* Goes back to the Hub, because the address that it has named does not work. */
static enum tokmap_status hub_return(struct remote_client *client, struct tokmap_error *error)
{
    client->away = false;
    client->hops = 0;
    return url_make(client, error);
}

/* Takes the address to which an answer sends. Returns false if it names none that can be followed. */
static bool location_take(struct remote_client *client)
{
    char unread[4096];
    struct bytes_buffer url = {0};
    const char *location = http_address(client->http, false);
    const bool secure = !strncmp((const char *)client->url.bytes, "https:", 6);
    if (!location || ++client->hops > HOPS_MOST ||
        (strncmp(location, "https://", 8) != 0 && (secure || strncmp(location, "http://", 7) != 0)) ||
        !bytes_append(&url, location, strlen(location) + 1))
        return false;
    bool end = false;
    for (size_t i = 0, got; i < 16 && !end && !http_read(client->http, unread, sizeof unread, &got, &end); i++)
        ; /* so that the connection can be kept */
    bytes_free(&client->url);
    client->url = url;
    client->away = client->away || !remote_account_is_at(&client->account, (const char *)url.bytes);
    return true;
}

/* Judges an answer of the Hub, or of the host that it has named. *again: a request is to be sent to client->url. */
static enum tokmap_status hub_judge(struct remote_client *client, const struct remote_ask *ask,
                                    struct http_answer *answer, bool *again, struct tokmap_error *error)
{
    const uint32_t status = answer->status;
    if (status / 100 == 3 && ask->method == HTTP_HEAD && answer->linked != UINT64_MAX) {
        answer->status = 200; /* the address is often one for GET alone */
        answer->length = answer->linked;
    } else if (status / 100 == 3) {
        *again = location_take(client);
    } else if (client->away && (status == 400 || status == 401 || status == 403 || status == 404 || status == 410)) {
        const bool old = !client->hops; /* it has worked before, and may have ended since */
        *again = true;
        const enum tokmap_status made = hub_return(client, error);
        return old || made ? made
                           : remote_client_failed(client, "the Hub names an address for this file that does not work",
                                                  answer->wait_seconds, error);
    }
    if (!client->query && answer->status / 100 == 2)
        (void)snprintf(answer->tag, sizeof answer->tag, "\"%.*s\"", HUB_COMMIT, client->object.revision);
    return TOKMAP_OK;
}

enum tokmap_status remote_client_send(struct remote_client *client, const struct remote_ask *ask,
                                      struct http_answer *answer, struct tokmap_error *error)
{
    const bool hub = remote_kind(client->shown) == REMOTE_HUB;
    *client->code = '\0';
    client->hops = 0;
    if (!client->failures)
        client->begun_ns = os_clock_ns();
    for (bool renewed = false;;) {
        const char *headers[HEADERS_MOST];
        struct http_request request;
        char reason[128];
        bool again = false;
        enum tokmap_status status = request_make(client, ask, headers, &request, error);
        if (status)
            return status;
        const enum http_result result = http_begin(client->http, &request, answer);
        if (!result)
            __atomic_store_n(&answered[remote_kind(client->shown)], true, __ATOMIC_RELAXED);
        if (hub && !result)
            status = hub_judge(client, ask, answer, &again, error);
        if (status)
            return status;
        if (again)
            continue;
        if (result) {
            status = remote_client_broke(client, result, error);
        } else if (region_take(client, answer)) {
            status = url_make(client, error);
        } else if (!renewed && keys_renew(client, answer)) {
            renewed = true;
        } else if (may_pass(answer->status)) {
            const int used =
                snprintf(reason, sizeof reason, "the server answers with HTTP status %" PRIu32, answer->status);
            if (answer->wait_seconds)
                (void)snprintf(reason + used, sizeof reason - (size_t)used,
                               " and asks to wait %" PRIu64 " s (Retry-After)", answer->wait_seconds);
            status = remote_client_failed(client, reason, answer->wait_seconds, error);
        } else {
            return TOKMAP_OK;
        }
        if (!status && client->away)
            status = hub_return(client, error);
        if (status)
            return status;
    }
}

/* Finds out who reads an object, and makes its URL. */
static enum tokmap_status object_prepare(struct remote_client *client, enum remote_kind kind,
                                         struct tokmap_error *error)
{
    enum tokmap_status status = remote_object_of(client->shown, &client->object, error);
    if (!status && client->account.kind != kind)
        status = remote_account_load(&client->account, kind, client->shown, error);
    if (!status && kind == REMOTE_HUB && !client->query)
        status = client->object.pinned
                     ? TOKMAP_OK
                     : error_set(error, TOKMAP_ERROR_ARGUMENT, client->shown, TOKMAP_NO_OFFSET,
                                 "a branch of the Hub may change at any time; name a commit of %d digits after the @",
                                 HUB_COMMIT);
    client->away = client->away && !status && !client->query && same_text(client->placed, client->shown);
    return status || client->away ? status : url_make(client, error);
}

enum tokmap_status remote_client_name(struct remote_client *client, const char *name, const char *query,
                                      bool query_of_object, struct tokmap_error *error)
{
    const enum remote_kind kind = remote_kind(name);
    enum tokmap_status status = kind == REMOTE_WEB ? remote_web_check(name, error) : TOKMAP_OK;
    remote_client_close(client);
    if (status)
        return status;
    client->shown = remote_shown(name);
    if (!client->shown)
        return error_set_memory(error, "the name of an input", 0);
    if (!client->http)
        status = http_new(&client->http, client->stop, client->user, client->shown, error);
    if (status)
        return status;
    client->query = query;
    client->query_of_object = query_of_object;
    client->moved = client->known = false;
    client->at = client->good = client->since_ns = 0;
    client->failures = 0;
    if (kind != REMOTE_WEB)
        return object_prepare(client, kind, error);
    return bytes_append(&client->url, name, strlen(name) + 1) ? TOKMAP_OK
                                                              : error_set_memory(error, "the name of an input", 0);
}

/* Reads the whole body of an answer. */
static enum tokmap_status body_read(struct remote_client *client, const struct http_answer *answer, size_t most,
                                    struct bytes_buffer *into, bool *again, struct tokmap_error *error)
{
    const size_t before = into->count;
    for (bool end = false;;) {
        size_t got;
        if (into->count - before > most || (answer->length > most && answer->length != UINT64_MAX))
            return error_set(error, TOKMAP_ERROR_LIMIT, client->shown, TOKMAP_NO_OFFSET,
                             "the server's answer is longer than %zu bytes; name the objects themselves", most);
        if (end)
            return TOKMAP_OK;
        if (!bytes_reserve(into, PAGE_STEP))
            return error_set_memory(error, "an answer", into->count);
        const enum http_result result =
            http_read(client->http, (char *)into->bytes + into->count, PAGE_STEP, &got, &end);
        into->count += got;
        remote_client_came(client, got, false);
        *again = result != HTTP_OK;
        if (result)
            return remote_client_broke(client, result, error);
    }
}

enum tokmap_status remote_client_fetch(struct remote_client *client, const struct remote_ask *ask, size_t most,
                                       struct bytes_buffer *into, struct http_answer *answer,
                                       struct tokmap_error *error)
{
    const size_t before = into->count;
    enum tokmap_status status = TOKMAP_OK;
    for (bool again = true; again && !status;) {
        again = false;
        into->count = before;
        status = remote_client_send(client, ask, answer, error);
        if (!status)
            status = body_read(client, answer, most, into, &again, error);
    }
    if (!status)
        error_code_copy((const char *)into->bytes + before, into->count - before, client->code);
    if (client->http)
        http_end(client->http);
    return status;
}
