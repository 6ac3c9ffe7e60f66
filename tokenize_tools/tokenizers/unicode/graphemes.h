/* SPDX-License-Identifier: MIT */
/*
 * graphemes.h - grapheme clusters as Hugging Face tokenizers cuts them for the normalizer Precompiled. Clusters of
 * regional indicators (flags) are not kept together, because there they make no difference (make_graphemes.py).
 */
#ifndef TOKMAP_UNICODE_GRAPHEMES_H
#define TOKMAP_UNICODE_GRAPHEMES_H

#include <stddef.h>
#include <stdint.h>

#include "grapheme_tables.h"

/* Returns the end of the cluster of text[at..count) that begins at `at` < count. The text is valid UTF-8. */
size_t grapheme_end(const uint8_t *text, size_t at, size_t count);

/* Returns the last offset in text[from..at] where a cluster begins, as far as two characters can say so; `from`, where
 * one begins, if there is no other. A character begins at `at`. */
size_t grapheme_begin(const uint8_t *text, size_t from, size_t at);

#endif
