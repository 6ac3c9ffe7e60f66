/* SPDX-License-Identifier: MIT */
/*
 * remote_put.h - objects that are written in one request, and what all writing shares. remote_upload.h has larger ones.
 *
 * The server compares what it receives with an MD5 in the header, and without TLS also with the SHA-256 in the
 * signature. What it answers, and what it then says of the object, is compared with the size and the MD5 of what was
 * sent: an ETag is made of that, unless a key of the user's encrypts the bucket. A request whose answer was lost is
 * known again by the object that it has left.
 *
 * Statuses of all functions: those of remote_object.h; ERROR_UNSUPPORTED also for http:// and https://, which are not
 * written.
 */
#ifndef TOKMAP_REMOTE_REMOTE_PUT_H
#define TOKMAP_REMOTE_REMOTE_PUT_H

#include <stdbool.h>

#include "md5.h"
#include "remote_object.h"

/* Returns ERROR_UNSUPPORTED, with what to do, if a name is that of a file of a web server. */
enum tokmap_status remote_written_check(const char *name, struct tokmap_error *error);

/* Makes the ETag that a server gives an object by its MD5, or an upload by those of its parts: "\"HEX\"", "\"HEX-N\"".
 */
void remote_tag_of(const uint8_t (*parts)[MD5_BYTES], uint64_t count, bool upload, char tag[HTTP_TAG_MOST]);
#define BODY_CHECK_MOST 48
/* Makes the line of the header with the MD5 of a body: see struct remote_ask. */
void remote_body_check(const uint8_t hash[MD5_BYTES], char line[BODY_CHECK_MOST]);
/* Returns whether a tag says that an object has other bytes than that: false also of a tag in another form. */
bool remote_tag_denies(const char *tag, const char *wanted);

/* Writes an object. old: what there was of it; the server then refuses if there is something else by now, if it knows
 * such conditions; NULL: whatever there is. Statuses: also ERROR_EXISTS (another process has written the object),
 * ERROR_CORRUPT (the server has stored other bytes). */
enum tokmap_status remote_object_put(struct remote_client *client, const char *name, const void *bytes, size_t count,
                                     const struct remote_facts *old, struct tokmap_error *error);

/* Removes an object, if there is one. */
enum tokmap_status remote_object_remove(struct remote_client *client, const char *name, struct tokmap_error *error);

struct remote_written {
    struct http_answer answer; /* its status is 2xx, 404, 409, or 412 */
    struct bytes_buffer body;
};

/* For modules that write. Sends a request for an object until the answer is one of those above. A document with an
 * error, which the server may also send with the status 200, counts as that error. query: of the object, or NULL. The
 * caller frees written->body with every status. */
enum tokmap_status remote_write(struct remote_client *client, const char *name, const char *query,
                                const struct remote_ask *ask, struct remote_written *written,
                                struct tokmap_error *error);

/* For modules that write. Compares what the server says of an object with what was sent. Statuses: also
 * ERROR_CORRUPT. */
enum tokmap_status remote_stored_check(struct remote_client *client, const char *name, uint64_t bytes,
                                       const char *wanted, struct tokmap_error *error);
enum tokmap_status remote_stored_wrong(const struct remote_client *client, struct tokmap_error *error);

#endif
