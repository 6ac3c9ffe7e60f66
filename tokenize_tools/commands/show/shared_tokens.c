/* SPDX-License-Identifier: MIT */
/* shared_tokens.c - see shared_tokens.h. */
#include "shared_tokens.h"

#include "common/bytes.h"

uint64_t tokens_shared(uint64_t first, uint64_t count, uint64_t start, uint64_t tokens, uint64_t all)
{
    uint64_t shared = 0;
    /* A row is at most two spans of the dataset. One that is longer than the dataset counts each token once. */
    const uint64_t reach = min64(tokens, all);
    const uint64_t head = min64(reach, all - start);
    const uint64_t spans[2][2] = {{start, start + head}, {0, reach - head}};
    for (int i = 0; i < 2; i++) {
        const uint64_t from = max64(first, spans[i][0]), to = min64(first + count, spans[i][1]);
        shared += to > from ? to - from : 0;
    }
    return shared;
}
