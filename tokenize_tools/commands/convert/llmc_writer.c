/* SPDX-License-Identifier: MIT */
/* llmc_writer.c - see llmc_writer.h. */
#include "llmc_writer.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

void llmc_head(uint8_t head[LLMC_HEAD_BYTES], uint32_t width, uint64_t tokens)
{
    assert(tokens <= LLMC_TOKENS_MOST);
    memset(head, 0, LLMC_HEAD_BYTES);
    store32(head, width == 2 ? LLMC_GPT2_MAGIC : LLMC_LLAMA3_MAGIC);
    store32(head + 4, width == 2 ? LLMC_GPT2_VERSION : LLMC_LLAMA3_VERSION);
    store32(head + 8, (uint32_t)tokens);
}
