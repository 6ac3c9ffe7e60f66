/* SPDX-License-Identifier: MIT */
/* train_memory.c - see train_memory.h. */
#include "train_memory.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"

enum tokmap_status train_take(struct train_budget *budget, void **into, uint64_t count, uint64_t each,
                              struct tokmap_error *error)
{
    uint64_t bytes;
    *into = NULL;
    if (mul_overflows(count, each, &bytes) || bytes > SIZE_MAX / 2)
        return error_set_memory(error, "training", UINT64_MAX);
    const enum tokmap_status status = train_budget_reserve(budget, bytes, error);
    if (status)
        return status;
    *into = calloc(count ? (size_t)count : 1, (size_t)each);
    if (*into)
        return TOKMAP_OK;
    train_budget_release(budget, bytes);
    return error_set_memory(error, "training", bytes);
}

void train_give(struct train_budget *budget, void *memory, uint64_t count, uint64_t each)
{
    if (memory)
        train_budget_release(budget, count * each);
    free(memory);
}

enum tokmap_status train_grow(struct train_budget *budget, void **memory, uint64_t count, uint64_t wanted,
                              uint64_t each, struct tokmap_error *error)
{
    uint64_t bytes;
    if (mul_overflows(wanted, each, &bytes) || bytes > SIZE_MAX / 2)
        return error_set_memory(error, "training", UINT64_MAX);
    const uint64_t more = bytes - count * each;
    const enum tokmap_status status = train_budget_reserve(budget, more, error);
    if (status)
        return status;
    void *grown = realloc(*memory, (size_t)bytes);
    if (!grown) {
        train_budget_release(budget, more);
        return error_set_memory(error, "training", bytes);
    }
    *memory = grown;
    return TOKMAP_OK;
}
