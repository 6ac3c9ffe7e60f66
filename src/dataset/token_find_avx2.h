/* token_find_avx2.h - token_find() for processors with AVX2 (CPU_AVX2). */
#ifndef TOKMAP_DATASET_TOKEN_FIND_AVX2_H
#define TOKMAP_DATASET_TOKEN_FIND_AVX2_H

#include <stdint.h>

#if defined(__x86_64__)
/* As token_find(); the id fits in the width. */
uint64_t token_find_avx2(const uint8_t *tokens, uint32_t width, uint64_t from, uint64_t count, uint32_t id);
#endif

#endif
