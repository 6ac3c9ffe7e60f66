/* id_kind.h - ids in a program's memory, of any integer type: finding the largest one, and storing them as tokens. Any
 * thread may call these functions. */
#ifndef TOKMAP_FORMAT_ID_KIND_H
#define TOKMAP_FORMAT_ID_KIND_H

#include <stdbool.h>

#include "tokmap/pack.h"

bool id_kind_is_known(enum tokmap_id_kind kind);

/* Bytes of an id. */
uint32_t id_kind_bytes(enum tokmap_id_kind kind);

/* The number of ids that are not negative and that the type can hold; UINT64_MAX for TOKMAP_ID_U64. */
uint64_t id_kind_limit(enum tokmap_id_kind kind);

/* Returns the largest of the ids, as unsigned numbers of their size: a negative id is at least id_kind_limit(). 0 if
 * there are none. The ids may have any alignment. */
uint64_t id_kind_largest(enum tokmap_id_kind kind, const void *ids, uint64_t count);

/* Returns id number `at` as an unsigned number of its size, as id_kind_largest() compares it. */
uint64_t id_kind_get(enum tokmap_id_kind kind, const void *ids, uint64_t at);

/* Stores `count` ids from number `first` on as tokens of `width` bytes (2 or 4), which must be able to hold them. */
void id_kind_store(enum tokmap_id_kind kind, const void *ids, uint64_t first, uint64_t count, uint32_t width,
                   void *into);

#endif
