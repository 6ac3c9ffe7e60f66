/* SPDX-License-Identifier: MIT */
/*
 * remote_object.h - objects, and files of web servers, that are read by ranges of one version; objects that are written
 * in one request, and what all writing shares. remote_upload.h has larger ones.
 *
 * remote_object_find() says which version there is, and remote_object_read() reads ranges of that version only
 * (If-Match). Requests are repeated as remote_client.h says.
 *
 * The server compares what it receives with an MD5 in the header, and without TLS also with the SHA-256 in the
 * signature. What it answers, and what it then says of the object, is compared with the size and the MD5 of what was
 * sent: an ETag is made of that, unless a key of the user's encrypts the bucket. A request whose answer was lost is
 * known again by the object that it has left.
 *
 * Statuses of all functions: OK, ERROR_ARGUMENT (the name), ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED (no libcurl;
 * to write a file of a web server), ERROR_INTERRUPTED, ERROR_MEMORY.
 */
#ifndef TOKMAP_REMOTE_REMOTE_OBJECT_H
#define TOKMAP_REMOTE_REMOTE_OBJECT_H

#include <stdbool.h>

#include "digests.h"
#include "remote_client.h"

struct remote_facts {
    uint64_t bytes;
    char tag[HTTP_TAG_MOST]; /* the ETag with its quotes; "" if the server names none that is strong */
    bool keyed;              /* it is no MD5 */
};

/* ---- reading ---- */

/* Fills *facts. */
enum tokmap_status remote_object_find(struct remote_client *client, const char *name, struct remote_facts *facts,
                                      struct tokmap_error *error);
/* Reads bytes [at, at + count) of the version that *facts says, which has them. Statuses: also ERROR_MISMATCH (there is
 * another version by now). */
enum tokmap_status remote_object_read(struct remote_client *client, const char *name, const struct remote_facts *facts,
                                      uint64_t at, size_t count, void *into, struct tokmap_error *error);
/* Appends all bytes of an object, at most `most`, and fills *facts. Statuses: also ERROR_LIMIT. */
enum tokmap_status remote_object_get(struct remote_client *client, const char *name, size_t most,
                                     struct bytes_buffer *into, struct remote_facts *facts, struct tokmap_error *error);

/* ---- writing ---- */

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
