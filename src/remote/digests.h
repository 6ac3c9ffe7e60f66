/* SPDX-License-Identifier: MIT */
/*
 * digests.h - the hashes of object storage: SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104), for the signatures of
 * requests; MD5 (RFC 1321), which the servers compare what they receive with, and which their ETags are made of.
 *
 * SHA-256 has short texts, a few per request, and what is sent without TLS, so its code is plain. MD5 finds bytes that
 * were damaged on the way; it does not protect against anybody. Hashes of data are those of common/hash.h.
 */
#ifndef TOKMAP_REMOTE_DIGESTS_H
#define TOKMAP_REMOTE_DIGESTS_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_BLOCK 64

/* A text that is hashed step by step. */
struct sha256 {
    uint32_t words[8];
    uint64_t bytes; /* added so far; the last bytes mod SHA256_BLOCK of them are in `block` */
    uint8_t block[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *from, size_t count);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);

/* `digest` may be `key`. Wipes what it has stored of the key. */
void sha256_hmac(const void *key, size_t key_bytes, const void *text, size_t bytes, uint8_t digest[SHA256_BYTES]);

#define MD5_BYTES 16

void md5(const void *bytes, size_t count, uint8_t digest[MD5_BYTES]);

#endif
