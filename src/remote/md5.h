/* SPDX-License-Identifier: MIT */
/*
 * md5.h - MD5 (RFC 1321), which object storage compares what it receives with, and which its ETags are made of. It
 * finds bytes that were damaged on the way; it does not protect against anybody.
 */
#ifndef TOKMAP_REMOTE_MD5_H
#define TOKMAP_REMOTE_MD5_H

#include <stddef.h>
#include <stdint.h>

#define MD5_BYTES 16

void md5(const void *bytes, size_t count, uint8_t digest[MD5_BYTES]);

#endif
