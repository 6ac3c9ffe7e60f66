/* SPDX-License-Identifier: MIT */
/*
 * remote_sign.c - see remote_sign.h.
 *
 * A signature is HMAC-SHA256 of a text that holds the hash of a second one, the canonical request. For the list of the
 * bucket "b" with the prefix "J":
 *
 *     GET                                                          the method
 *     /b                                                           the path and the query, as they are sent
 *     list-type=2&prefix=J
 *     host:s3.us-east-1.amazonaws.com                              the headers that are signed, sorted
 *     x-amz-content-sha256:e3b0c442...
 *     x-amz-date:20130524T000000Z
 *                                                                  an empty line
 *     host;x-amz-content-sha256;x-amz-date                         their names
 *     e3b0c442...                                                  the hash of the body, here of nothing
 *
 *     AWS4-HMAC-SHA256                                             the text that is signed
 *     20130524T000000Z
 *     20130524/us-east-1/s3/aws4_request
 *     (the hash of the canonical request)
 *
 * The key of the last HMAC is made of the secret by four others, of the date, region, service, and "aws4_request".
 * Requests may have headers that are not signed, such as Range and If-Match.
 */
#include "remote_sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "digests.h"

#define HEX_MOST (2 * SHA256_BYTES + 1)

/* The parts of https://HOST/PATH?QUERY that are signed. */
struct url_parts {
    const char *host, *path, *query;
    size_t host_bytes, path_bytes;
};

/* Appends texts up to a NULL. */
static bool texts_append(struct bytes_buffer *into, const char *const *texts)
{
    for (; *texts; texts++)
        if (!bytes_append(into, *texts, strlen(*texts)))
            return false;
    return true;
}
#define APPEND(into, ...) texts_append(into, (const char *const[]){__VA_ARGS__, NULL})

static void hex(const uint8_t digest[SHA256_BYTES], char text[HEX_MOST])
{
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(text + 2 * (size_t)i, 3, "%02x", digest[i]);
}

static void hash_hex(const void *bytes, size_t count, char text[HEX_MOST])
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_begin(&hash);
    sha256_add(&hash, bytes, count);
    sha256_end(&hash, digest);
    hex(digest, text);
}

/* Splits a URL. The scheme's own port is not part of a Host line. */
static struct url_parts url_split(const char *url)
{
    struct url_parts parts = {.host = strstr(url, "://") + 3, .query = ""};
    const char *const port = strncmp(url, "https:", 6) ? ":80" : ":443";
    const size_t port_bytes = strlen(port);
    parts.host_bytes = strcspn(parts.host, "/?");
    const char *rest = parts.host + parts.host_bytes;
    parts.path = *rest == '/' ? rest : "/";
    parts.path_bytes = *rest == '/' ? strcspn(rest, "?") : 1;
    rest += *rest == '/' ? parts.path_bytes : 0;
    if (*rest == '?')
        parts.query = rest + 1;
    if (parts.host_bytes > port_bytes && !memcmp(parts.host + parts.host_bytes - port_bytes, port, port_bytes))
        parts.host_bytes -= port_bytes;
    return parts;
}

/* Hashes the canonical request. */
static bool request_hash(const struct remote_signer *signer, const char *method, const struct url_parts *parts,
                         const char *body, const char *time, const char *names, char text[HEX_MOST])
{
    struct bytes_buffer request = {0};
    bool good = APPEND(&request, method, "\n") && bytes_append(&request, parts->path, parts->path_bytes) &&
                APPEND(&request, "\n", parts->query, "\nhost:") &&
                bytes_append(&request, parts->host, parts->host_bytes) &&
                APPEND(&request, "\nx-amz-content-sha256:", body, "\nx-amz-date:", time, "\n");
    if (signer->token)
        good = good && APPEND(&request, "x-amz-security-token:", signer->token, "\n");
    good = good && APPEND(&request, "\n", names, "\n", body);
    hash_hex(request.bytes, request.count, text);
    if (request.bytes)
        explicit_bzero(request.bytes, request.capacity);
    bytes_free(&request);
    return good;
}

/* Signs a text with the key of a day (8 digits) and region. */
static bool text_sign(const struct remote_signer *signer, const char *day, const struct bytes_buffer *text,
                      char signature[HEX_MOST])
{
    const char *const steps[] = {signer->region, "s3", "aws4_request"};
    const size_t bytes = strlen(signer->secret);
    uint8_t key[SHA256_BYTES];
    char *first = malloc(bytes + 5);
    if (!first)
        return false;
    memcpy(first, "AWS4", 4);
    memcpy(first + 4, signer->secret, bytes + 1);
    sha256_hmac(first, bytes + 4, day, 8, key);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        sha256_hmac(key, sizeof key, steps[i], strlen(steps[i]), key);
    sha256_hmac(key, sizeof key, text->bytes, text->count, key);
    hex(key, signature);
    explicit_bzero(first, bytes + 4);
    free(first);
    explicit_bzero(key, sizeof key);
    return true;
}

bool remote_sign(const struct remote_signer *signer, const char *method, const char *url, const void *body,
                 size_t body_bytes, uint64_t seconds, struct bytes_buffer *header, unsigned *lines)
{
    const struct url_parts parts = url_split(url);
    const char *const names = signer->token ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                                            : "host;x-amz-content-sha256;x-amz-date";
    const time_t clock = (time_t)seconds;
    struct tm now;
    char time[32], day[9] = "", scope[160], payload[HEX_MOST], hashed[HEX_MOST], signature[HEX_MOST];
    if (!gmtime_r(&clock, &now) || !strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &now))
        return false;
    memcpy(day, time, 8);
    if (signer->unsigned_body)
        (void)snprintf(payload, sizeof payload, "UNSIGNED-PAYLOAD");
    else
        hash_hex(body, body ? body_bytes : 0, payload);
    (void)snprintf(scope, sizeof scope, "%s/%.100s/s3/aws4_request", day, signer->region);
    struct bytes_buffer text = {0};
    bool good = request_hash(signer, method, &parts, payload, time, names, hashed) &&
                APPEND(&text, "AWS4-HMAC-SHA256\n", time, "\n", scope, "\n", hashed) &&
                text_sign(signer, day, &text, signature);
    bytes_free(&text);
    good = good && APPEND(header, "Host: ") && bytes_append(header, parts.host, parts.host_bytes) &&
           bytes_append(header, "", 1) && APPEND(header, "x-amz-content-sha256: ", payload) &&
           bytes_append(header, "", 1) && APPEND(header, "x-amz-date: ", time) && bytes_append(header, "", 1);
    if (signer->token)
        good = good && APPEND(header, "x-amz-security-token: ", signer->token) && bytes_append(header, "", 1);
    *lines = signer->token ? 5 : 4;
    return good &&
           APPEND(header, "Authorization: AWS4-HMAC-SHA256 Credential=", signer->key, "/", scope,
                  ", SignedHeaders=", names, ", Signature=", signature) &&
           bytes_append(header, "", 1);
}
