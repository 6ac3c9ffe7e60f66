/* SPDX-License-Identifier: MIT */
/*
 * remote_sign.h - signs requests for object storage: AWS Signature Version 4, service s3. Amazon's S3 and all that
 * speak its protocol take it, and Google's storage with an HMAC key.
 *
 * libcurl signs, too (CURLOPT_AWS_SIGV4), but what it signs depends on its version, and is not always what it sends:
 * before 7.88 the headers that object storage demands were left out, and 8.14 signs another text than the server sees
 * if the path is sent as it is (CURLOPT_PATH_AS_IS), which keys with ".." need, or if the query contains %2B, as the
 * tokens that continue a list do. Here exactly what is sent is signed.
 */
#ifndef TOKMAP_REMOTE_REMOTE_SIGN_H
#define TOKMAP_REMOTE_REMOTE_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes_buffer.h"

#define REMOTE_SIGN_LINES 5 /* at most */

struct remote_signer {
    const char *key, *secret, *region;
    const char *token;  /* of a session, or NULL */
    bool unsigned_body; /* the signature does not have the hash of the body */
};

/* Appends the lines of the header that sign a request, each with a zero byte at its end, and sets *lines to their
 * number. The host is one of them. method: "GET" and so on. body: what the request
 * sends, or NULL. url: https://HOST/PATH?QUERY, escaped by remote_escape(),
 * with the names of the query in byte order and a "=" after each. seconds: the time, since 1970. Returns false if
 * there is no memory. */
bool remote_sign(const struct remote_signer *signer, const char *method, const char *url, const void *body,
                 size_t body_bytes, uint64_t seconds, struct bytes_buffer *header, unsigned *lines);

#endif
