/* SPDX-License-Identifier: MIT */
/*
 * raw_tokens.h - token files without a header: nanoGPT's train.bin, arrays written with tofile(), and OLMo's .npy
 * files. Only the words of the name say what is in them.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_RAW_TOKENS_H
#define TOKMAP_FORMAT_FOREIGN_RAW_TOKENS_H

#include <stddef.h>

#include "foreign_layout.h"
#include "foreign_name.h"

/* Computes the layout from the words and the size of the file. kind: RAW or OLMO. head: the first bytes of the file, to
 * recognize a format that has a header (an index, a NumPy array, a file of llm.c), which would be read as tokens.
 * Statuses: OK, ERROR_ARGUMENT (no width), ERROR_FORMAT (another format), ERROR_TRUNCATED (the size is not a multiple
 * of the width). */
enum tokmap_status raw_parse(struct foreign_layout *layout, enum foreign_kind kind, const struct foreign_words *words,
                             const char *path, const uint8_t *head, size_t bytes, uint64_t file_bytes,
                             struct tokmap_error *error);

#endif
