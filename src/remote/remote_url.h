/* SPDX-License-Identifier: MIT */
/*
 * remote_url.h - the names of inputs that are not files of this machine, as text.
 *
 *     https://HOST/PATH, http://HOST/PATH    a file of a web server
 *     s3://BUCKET/KEY                        an object of Amazon S3, or of a server with its interface
 *     gs://BUCKET/KEY                        an object of Google Cloud Storage
 *     hf://datasets/OWNER/NAME@REVISION/KEY  a file of a dataset on the Hugging Face Hub; without datasets/, of a model
 *
 * A web URL may hold a secret from its ? on (a signed URL does), so that part is never shown or recorded: the name of
 * such an input ends before it. The bytes of a key mean themselves: % ? and # in it are no escapes.
 */
#ifndef TOKMAP_REMOTE_REMOTE_URL_H
#define TOKMAP_REMOTE_REMOTE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "tokmap/tokmap.h"

#define REMOTE_URL_MOST ((size_t)16 << 10)

enum remote_kind { REMOTE_NONE, REMOTE_WEB, REMOTE_S3, REMOTE_GS, REMOTE_HUB };

/* Returns what a name is. REMOTE_NONE: a path. */
enum remote_kind remote_kind(const char *name);
static inline bool remote_is(const char *name)
{
    return remote_kind(name) != REMOTE_NONE;
}
/* Returns a copy of the part of a name that may be shown and recorded: all of it, except in a web URL, which loses its
 * query, its fragment, and a user before its host. The caller frees it. NULL without memory. */
char *remote_shown(const char *name);

/* Checks a web URL. Statuses: OK, ERROR_ARGUMENT (no host; a user or password, which would be recorded; a space or
 * control character; too long). */
enum tokmap_status remote_web_check(const char *name, struct tokmap_error *error);

#define HUB_COMMIT 40 /* digits of a commit */

/* The bucket and the key in an s3:// or gs:// name. In an hf:// name the bucket is "datasets/OWNER/NAME" or
 * "OWNER/NAME", and the key the path in that repository. */
struct remote_object {
    const char *bucket, *key; /* key: to the end of the name */
    size_t bucket_bytes;
    const char *revision; /* of hf://; without one, revision_bytes is 0 */
    size_t revision_bytes;
    size_t root_bytes; /* of the name, up to the slash before the key, which may be missing */
    bool pinned;       /* the revision is a commit, so the name always means the same bytes */
};
bool hub_is_commit(const char *text); /* it begins with the digits of one */
/* Finds the parts of a name. Statuses: OK, ERROR_ARGUMENT (the bucket or repository is missing, or no name of one; a
 * path in a repository with an empty part, ".", or ".."). */
enum tokmap_status remote_object_of(const char *name, struct remote_object *object, struct tokmap_error *error);

/* Appends bytes in the escapes of a URL: all but A-Z a-z 0-9 - . _ ~ become %XX, and also slashes unless `slashes`.
 * Returns false if there is no memory. */
bool remote_escape(struct bytes_buffer *into, const char *bytes, size_t count, bool slashes);

#endif
