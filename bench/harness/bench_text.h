/* SPDX-License-Identifier: MIT */
/*
 * bench_text.h - the text and the tokenizer that the case `tokenize` measures with, and text of made-up words.
 */
#ifndef TOKMAP_BENCH_HARNESS_BENCH_TEXT_H
#define TOKMAP_BENCH_HARNESS_BENCH_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/tokenizer.h"
#include "harness.h"

#define BENCH_DOCUMENT ((size_t)4096) /* bytes of a document, at most */

struct bench_text {
    const char *path;
    char *text; /* valid UTF-8 */
    uint64_t bytes;
    struct tokmap_text *documents; /* the text in pieces of up to BENCH_DOCUMENT bytes that end between characters */
    uint64_t document_count;
};

/* Reads the text file that the command names (options.dataset). Ends the program with a message if the file is empty or
 * is not valid UTF-8. */
void bench_text_open(struct bench *bench, struct bench_text *text);
/* Does the same for a text in memory that malloc() has made, which is freed in the end. bytes: at least 1, and valid
 * UTF-8. */
void bench_text_take(struct bench *bench, struct bench_text *text, char *content, uint64_t bytes);
void bench_text_close(struct bench_text *text);

#define TEXT_JSON_MOST(count) (6 * (count) + 32)
/* Writes the line {"text": "..."} of valid UTF-8, which takes up to TEXT_JSON_MOST(count) bytes. Returns its bytes. */
size_t text_json_line(char *line, const char *text, uint64_t count);
/* Opens the tokenizer of --tokenizer, --pattern and --special-tokens. */
struct tokenizer *bench_tokenizer_open(struct bench *bench);
/* ==== text of made-up words ==== */

/*
 * Text of made-up words, for cases that need any amount of it. For one thread at a time.
 */

struct made_text;

/* Makes the vocabulary, which the seed determines as it does the text. */
struct made_text *made_text_new(struct bench *bench, uint64_t seed);
void made_text_free(struct made_text *text);
/* Fills a block with the next sentences and lines: letters, points, spaces, and newlines. */
void made_text_fill(struct made_text *text, uint8_t *block, size_t bytes);

#endif
