/* SPDX-License-Identifier: MIT */
/* llmc_writer.h - the header of the token files of llm.c (llmc.h). */
#ifndef TOKMAP_COMMANDS_CONVERT_LLMC_WRITER_H
#define TOKMAP_COMMANDS_CONVERT_LLMC_WRITER_H

#include "format/foreign/llmc.h"

#define LLMC_TOKENS_MOST ((uint64_t)INT32_MAX)

/* Makes the header for `tokens` tokens, at most LLMC_TOKENS_MOST, of `width` bytes: 2 gives the kind of GPT-2, 4 that
 * of Llama 3. */
void llmc_head(uint8_t head[LLMC_HEAD_BYTES], uint32_t width, uint64_t tokens);

#endif
