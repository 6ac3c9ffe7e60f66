/* SPDX-License-Identifier: MIT */
/* made_text.h - text of made-up words, for cases that need any amount of it. For one thread at a time. */
#ifndef TOKMAP_BENCH_HARNESS_MADE_TEXT_H
#define TOKMAP_BENCH_HARNESS_MADE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct made_text;

/* Makes the vocabulary, which the seed determines as it does the text. NULL without memory. */
struct made_text *made_text_new(uint64_t seed);
void made_text_free(struct made_text *text); /* accepts NULL */

/* Fills a block with the next sentences and lines: letters, points, spaces, and newlines. */
void made_text_fill(struct made_text *text, uint8_t *block, size_t bytes);

#endif
