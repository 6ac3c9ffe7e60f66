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
           : begins(name, "hf://")                             ? REMOTE_HUB
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

static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";

/* Returns true if a path, which may be empty or end with a slash, has no control character, and no part that is empty,
 * ".", or "..". */
static bool is_plain_path(const char *path, size_t bytes)
{
    for (size_t at = 0, part; at < bytes; at += part + 1) {
        for (part = 0; at + part < bytes && path[at + part] != '/'; part++)
            if ((unsigned char)path[at + part] < ' ' || path[at + part] == '\x7f')
                return false;
        if (part < 3 && !memcmp(path + at, "..", part))
            return false;
    }
    return true;
}

bool hub_is_commit(const char *text)
{
    return strspn(text, "0123456789abcdef") >= HUB_COMMIT;
}

/* Finds the parts of an hf:// name. A revision ends at a slash, but refs/convert/parquet and refs/pr/1 have two. */
static enum tokmap_status hub_object_of(const char *name, struct remote_object *object, struct tokmap_error *error)
{
    const char *bucket = name + 5, *end = bucket + (begins(bucket, "datasets/") ? 9 : 0);
    bool good = strlen(name) < REMOTE_URL_MOST / 4;
    for (int part = 0; part < 2; part++) { /* OWNER and NAME */
        const size_t bytes = strspn(end, allowed);
        good = good && bytes && bytes < 97 && *end != '.' && *end != '-' && (part || end[bytes] == '/');
        end += bytes + (good && !part);
    }
    *object = (struct remote_object){.bucket = bucket, .bucket_bytes = (size_t)(end - bucket), .revision = ""};
    if (*end == '@') {
        object->revision = ++end;
        for (int slashes = begins(end, "refs/convert/") || begins(end, "refs/pr/") ? 2 : 0;
             *end && (*end != '/' || slashes); end++)
            slashes -= *end == '/';
        object->revision_bytes = (size_t)(end - object->revision);
        good =
            good && object->revision_bytes && end[-1] != '/' && is_plain_path(object->revision, object->revision_bytes);
    }
    object->root_bytes = (size_t)(end - name);
    object->pinned = object->revision_bytes == HUB_COMMIT && hub_is_commit(object->revision);
    good = good && (!*end || *end == '/');
    object->key = end + (*end == '/');
    if (good && is_plain_path(object->key, strlen(object->key)))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
                     "a name on the Hugging Face Hub is hf://datasets/OWNER/NAME/PATH or "
                     "hf://datasets/OWNER/NAME@REVISION/PATH (of a tokenizer: hf://OWNER/NAME), and no part of PATH is "
                     "empty or consists of dots");
}

enum tokmap_status remote_object_of(const char *name, struct remote_object *object, struct tokmap_error *error)
{
    if (remote_kind(name) == REMOTE_HUB)
        return hub_object_of(name, object, error);
    const char *bucket = name + 5;
    const size_t bytes = strcspn(bucket, "/");
    if (!bytes || strspn(bucket, allowed) < bytes || *bucket == '.' || *bucket == '-' || bytes > 222)
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, name, TOKMAP_NO_OFFSET,
            "this does not begin with the name of a bucket; write %.2s://BUCKET/KEY, with letters, digits, "
            "dots, and hyphens in BUCKET",
            name);
    *object = (struct remote_object){.bucket = bucket,
                                     .key = bucket + bytes + (bucket[bytes] == '/'),
                                     .bucket_bytes = bytes,
                                     .root_bytes = 5 + bytes};
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
