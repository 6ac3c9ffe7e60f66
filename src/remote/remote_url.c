/* SPDX-License-Identifier: MIT */
#include "remote_url.h"

#include <string.h>

#include "common/error.h"

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

enum remote_kind remote_kind(const char *name)
{
    return begins(name, "https://") || begins(name, "http://") ? REMOTE_WEB
           : begins(name, "s3://")                             ? REMOTE_S3
           : begins(name, "gs://")                             ? REMOTE_GS
                                                               : REMOTE_NONE;
}

char *remote_shown(const char *name)
{
    if (remote_kind(name) != REMOTE_WEB)
        return strdup(name);
    const size_t begin = (size_t)(strstr(name, "://") + 3 - name);
    char *shown = strndup(name, begin + strcspn(name + begin, "?#"));
    if (!shown)
        return NULL;
    /* A password may contain an @, so the host begins after the last one. */
    char *host = shown + begin, *slash = strchr(host, '/');
    char *at = memrchr(host, '@', slash ? (size_t)(slash - host) : strlen(host));
    if (at)
        memmove(host, at + 1, strlen(at + 1) + 1);
    return shown;
}

enum tokmap_status remote_web_check(const char *name, struct tokmap_error *error)
{
    const char *host = strstr(name, "://") + 3;
    const size_t host_bytes = strcspn(host, "/?#");
    /* The message must not repeat a password, so it names no path. */
    if (memchr(host, '@', host_bytes))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "a URL names a user or password before its host, which would be recorded with the tokens; "
                         "write them to ~/.netrc (machine HOST login USER password PASSWORD), and leave them out here");
    if (!host_bytes || strlen(name) > REMOTE_URL_MOST)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, host_bytes ? NULL : name, TOKMAP_NO_OFFSET,
                         "the URL %s; write https://HOST/PATH", host_bytes ? "is longer than 16 KiB" : "names no host");
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '\x7f')
            return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                             "byte %zu of a URL is a space or control character; write it as %%%02X",
                             (size_t)(at - name), (unsigned char)*at);
    return TOKMAP_OK;
}

enum tokmap_status remote_object_of(const char *name, struct remote_object *object, struct tokmap_error *error)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    const char *bucket = name + 5;
    const size_t bytes = strcspn(bucket, "/");
    if (!bytes || strspn(bucket, allowed) < bytes || *bucket == '.' || *bucket == '-' || bytes > 222)
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
            "this does not begin with the name of a bucket; write %.2s://BUCKET/KEY, with letters, digits, "
            "dots, and hyphens in BUCKET",
            name);
    *object = (struct remote_object){bucket, bucket + bytes + (bucket[bytes] == '/'), bytes};
    return TOKMAP_OK;
}

bool remote_escape(struct bytes_buffer *into, const char *bytes, size_t count, bool slashes)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        const char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        const bool as_is = (byte && strchr(plain, byte)) || (slashes && byte == '/');
        if (!bytes_append(into, as_is ? &bytes[i] : escape, as_is ? 1 : 3))
            return false;
    }
    return true;
}
