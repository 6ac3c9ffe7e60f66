/* SPDX-License-Identifier: MIT */
/* shard_mask.h - gives an existing shard a mask. For one thread at a time. */
#ifndef TOKMAP_FORMAT_SHARD_MASK_H
#define TOKMAP_FORMAT_SHARD_MASK_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct shard_mask_result {
    uint64_t tokens;
    uint64_t counted; /* those that count as targets */
};

/* Writes NAME.mask and a new NAME.tmx that describes it. The tokens, and the other sections of the index, stay.
 *   index_path  NAME.tmx
 *   mask_path   a file with one byte for each token, 0 or 1, or with one bit for each token, as in NAME.mask. Its
 *               length decides which of them it is
 *   replace     a mask that the shard has is replaced; otherwise it is ERROR_EXISTS
 * Until the new index is renamed, readers see the shard without the mask. While an old mask is replaced, there is a
 * moment without an index. A dataset that is open continues to read what it has opened.
 * Statuses: OK, ERROR_EXISTS, ERROR_BUSY (another process writes this shard), ERROR_FORMAT (the length of the mask does
 * not fit the tokens, a byte is neither 0 nor 1, or a spare bit is not 0), ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY, and
 * those of opening an index. */
enum tokmap_status shard_mask_add(const char *index_path, const char *mask_path, bool replace,
                                  struct shard_mask_result *result, struct tokmap_error *error);

#endif
