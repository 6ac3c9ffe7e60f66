/* SPDX-License-Identifier: MIT */
/*
 * llmc.h - the token files of llm.c and modded-nanogpt: a header of 256 int32 (magic, version, number of tokens, zeros)
 * and then the tokens. Magic 20240520, version 1: uint16, GPT-2. Magic 20240801, version 7: uint32, Llama 3. Each
 * document begins with the end-of-text token (50256, 128000).
 */
#ifndef TOKMAP_FORMAT_FOREIGN_LLMC_H
#define TOKMAP_FORMAT_FOREIGN_LLMC_H

#include <stdbool.h>
#include <stddef.h>

#include "foreign_layout.h"
#include "tokmap/tokmap.h"

#define LLMC_HEAD_BYTES 1024
#define LLMC_GPT2_MAGIC 20240520
#define LLMC_GPT2_VERSION 1
#define LLMC_LLAMA3_MAGIC 20240801
#define LLMC_LLAMA3_VERSION 7

/* Returns whether the first bytes of a file are the magic and version of one of the two. */
bool llmc_is(const uint8_t *head, size_t bytes);

/* Reads a header. head: the first `bytes` bytes of the file, LLMC_HEAD_BYTES of them if the file is so long.
 * Statuses: OK, ERROR_FORMAT, ERROR_VERSION, ERROR_TRUNCATED (the file is shorter or longer than its header says),
 * ERROR_UNSUPPORTED (an evaluation file). */
enum tokmap_status llmc_parse(struct foreign_layout *layout, const char *path, const uint8_t *head, size_t bytes,
                              uint64_t file_bytes, struct tokmap_error *error);

#endif
