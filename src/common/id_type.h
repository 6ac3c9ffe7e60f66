/* SPDX-License-Identifier: MIT */
/* id_type.h - ids in a program's memory, of any integer type: finding the largest one, and storing them as another
 * type. Any thread may call these functions. */
#ifndef TOKMAP_COMMON_ID_TYPE_H
#define TOKMAP_COMMON_ID_TYPE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Every other function takes only types that are known. */
bool id_type_is_known(enum tokmap_id_type type);

/* Bytes of an id. */
uint32_t id_type_bytes(enum tokmap_id_type type);

/* Returns the end of its constant's name, such as "U32". */
const char *id_type_name(enum tokmap_id_type type);

/* Returns the number of ids that are not negative and that the type can hold; UINT64_MAX for TOKMAP_ID_U64. */
uint64_t id_type_limit(enum tokmap_id_type type);

/* Returns the largest of the ids, as unsigned numbers of their size: a negative id is at least id_type_limit(). 0
 * without ids. The ids may have any alignment. */
uint64_t id_type_largest(enum tokmap_id_type type, const void *ids, uint64_t count);

/* Returns id number `at` as an unsigned number of its size, as id_type_largest() compares it. */
uint64_t id_type_get(enum tokmap_id_type type, const void *ids, uint64_t at);

/* Returns such a number as the type understands it, that is, negative from id_type_limit() on. */
int64_t id_type_signed(enum tokmap_id_type type, uint64_t id);

/* Stores `count` ids from number `first` on as numbers of `width` bytes (1, 2, 4, or 8), which must be able to hold
 * them. `into` may have any alignment, and must not overlap the ids. */
void id_type_store(enum tokmap_id_type type, const void *ids, uint64_t first, uint64_t count, uint32_t width,
                   void *into);

#endif
