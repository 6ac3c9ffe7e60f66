/* xxh64.c - see xxh64.h. */
#include "xxh64.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t xxh64(const void *bytes, size_t count)
{
    return XXH64(bytes, count, 0);
}
