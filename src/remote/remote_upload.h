/* SPDX-License-Identifier: MIT */
/*
 * remote_upload.h - large objects, which are written in parts: an *upload*.
 *
 * Parts are sent in any order and by any number of clients, and become an object with remote_upload_end(), so an object
 * appears whole or not at all, and an old one of its name is there until then. A process that is killed leaves its
 * uploads on the server: remote_uploads_find() and remote_parts_find() say what it has of them, so another process,
 * perhaps on another machine, continues.
 *
 * Statuses of all functions: those of remote_object.h.
 */
#ifndef TOKMAP_REMOTE_REMOTE_UPLOAD_H
#define TOKMAP_REMOTE_REMOTE_UPLOAD_H

#include "remote_object.h"

#define UPLOAD_PARTS_MOST 10000u

/* Begins an upload: appends its id to *upload, with a zero byte that counts. */
enum tokmap_status remote_upload_begin(struct remote_client *client, const char *name, struct bytes_buffer *upload,
                                       struct tokmap_error *error);
/* Sends part `number`, from 1 on, and copies its ETag to *tag. Statuses: also ERROR_CORRUPT. */
enum tokmap_status remote_upload_part(struct remote_client *client, const char *name, const char *upload,
                                      uint32_t number, const void *bytes, size_t count, const uint8_t hash[MD5_BYTES],
                                      char tag[HTTP_TAG_MOST], struct tokmap_error *error);
/* Makes the parts 1 to `count` an object of `bytes` bytes, and compares it with `wanted`, which is remote_tag_of() the
 * parts. tags: what the server has answered to each. Statuses: also ERROR_CORRUPT. */
enum tokmap_status remote_upload_end(struct remote_client *client, const char *name, const char *upload,
                                     char *const *tags, uint32_t count, uint64_t bytes, const char *wanted,
                                     struct tokmap_error *error);
/* Gives an upload up, and its parts. */
enum tokmap_status remote_upload_abort(struct remote_client *client, const char *name, const char *upload,
                                       struct tokmap_error *error);

/* Calls found() for each upload of objects whose names begin with `name`: key is that of its object. upload: its id. A
 * server without a list of them has none, and some say 404 for an empty one. A result other than OK ends the search. */
enum tokmap_status remote_uploads_find(struct remote_client *client, const char *name,
                                       enum tokmap_status (*found)(void *user, const char *key, const char *upload,
                                                                   struct tokmap_error *error),
                                       void *user, struct tokmap_error *error);
/* Calls found() for each part that the server has of an upload. Statuses: NOT_FOUND if there is no such upload. */
enum tokmap_status remote_parts_find(struct remote_client *client, const char *name, const char *upload,
                                     enum tokmap_status (*found)(void *user, uint32_t number, uint64_t bytes,
                                                                 const char *tag, struct tokmap_error *error),
                                     void *user, struct tokmap_error *error);

#endif
