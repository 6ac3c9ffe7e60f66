/* SPDX-License-Identifier: MIT */
/*
 * pipeline.h - builds a tokenizer from its parts. Text goes through them in this order: added tokens are taken out, the
 * rest is normalized, the pre-tokenizer splits it into pieces, and the engine turns the pieces into ids. The readers of
 * all vocabulary formats build their tokenizers with this function.
 */
#ifndef TOKMAP_ENGINE_PIPELINE_H
#define TOKMAP_ENGINE_PIPELINE_H

#include "pipeline_parts.h"
#include "tokenizer.h"

/* Builds a tokenizer. The function takes what the parts own, also if it fails, and sets *parts to zeros. `path` is for
 * messages and may be NULL. On failure *tokenizer is NULL. Statuses: OK, ERROR_LIMIT (one byte of text may become too
 * many tokens), ERROR_MEMORY. */
enum tokmap_status pipeline_new(struct tokenizer **tokenizer, struct pipeline_parts *parts, enum tokmap_special special,
                                const char *path, struct tokmap_error *error);

#endif
