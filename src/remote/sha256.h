/* SPDX-License-Identifier: MIT */
/*
 * sha256.h - SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for the signatures of requests for object storage.
 *
 * These are short texts, a few per request, and what is sent without TLS, so the code is plain. Hashes of data are
 * those of common/hash.h.
 */
#ifndef TOKMAP_REMOTE_SHA256_H
#define TOKMAP_REMOTE_SHA256_H

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

#endif
