/* SPDX-License-Identifier: MIT */
/*
 * bench_text.h - the text and the tokenizer that the case `tokenize` measures with, and text of made-up words.
 */
#ifndef TOKMAP_BENCH_HARNESS_BENCH_TEXT_H
#define TOKMAP_BENCH_HARNESS_BENCH_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "harness.h"
#include "tokenizer/tokenizer.h"

#define BENCH_DOCUMENT ((size_t)4096) /* bytes of a document, at most */

struct bench_text {
    const char *path;
    char *text; /* valid UTF-8 */
    uint64_t bytes;
    struct tokmap_text *documents; /* the text in pieces of up to BENCH_DOCUMENT bytes that end between characters */
    uint64_t document_count;
};

/* Reads the text file that the command names (options.dataset). Returns CLI_DONE, or CLI_FAILED after a message if the
 * file is empty or is not valid UTF-8. Close it in either case; *text must be all zeros before. */
int bench_text_open(struct bench *bench, struct bench_text *text);
/* Does the same for a text in memory that malloc() has made, which is freed in the end, even after a failure. bytes: at
 * least 1, and valid UTF-8. */
int bench_text_take(struct bench *bench, struct bench_text *text, char *content, uint64_t bytes);
void bench_text_close(struct bench_text *text);

/* Opens the tokenizer of --tokenizer, --pattern and --special-tokens. Returns CLI_DONE, or CLI_FAILED after a
 * message. */
int bench_tokenizer_open(struct bench *bench, struct tokenizer **tokenizer);

/* ==== text of made-up words ==== */

/*
 * Text of made-up words, for cases that need any amount of it. For one thread at a time.
 */

struct made_text;

/* Makes the vocabulary, which the seed determines as it does the text. NULL without memory. */
struct made_text *made_text_new(uint64_t seed);
void made_text_free(struct made_text *text); /* accepts NULL */

/* Fills a block with the next sentences and lines: letters, points, spaces, and newlines. */
void made_text_fill(struct made_text *text, uint8_t *block, size_t bytes);

#endif
