/* SPDX-License-Identifier: MIT */
/* share.h - shares of documents, exact decimals such as 0.01 or 1%, and which hashes are below one. */
#ifndef TOKMAP_ENCODE_SHARE_H
#define TOKMAP_ENCODE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_TEXT_MOST 24
#define SHARE_ONE 1000000000000000000U /* shares are counted in units of 10^-18 */

/* Reads a share of `bytes` bytes: a decimal number with at most 18 decimals, or a percentage. `into` gets the decimal
 * number as it was given, or the one that a percentage means. *share is at most 2 SHARE_ONE, also if the number is
 * larger. Returns false if it is not such a number, or a percentage above 100. */
bool share_read(const char *text, size_t bytes, char into[SHARE_TEXT_MOST + 1], uint64_t *share);

/* Returns floor(2^64 * share), where `share` is below SHARE_ONE. */
uint64_t share_bound(uint64_t share);
/* Returns whether hash / 2^64 is below the share, which may be 0 or SHARE_ONE. */
static inline bool share_has(uint64_t share, uint64_t hash)
{
    return (unsigned __int128)hash * SHARE_ONE < (unsigned __int128)share << 64;
}

#endif
