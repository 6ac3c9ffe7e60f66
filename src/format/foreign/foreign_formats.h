/* SPDX-License-Identifier: MIT */
/*
 * foreign_formats.h - token files of other projects with a short header, or with none: those of llm.c, datatrove, OLMo,
 * and nanoGPT.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_FORMATS_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "foreign_name.h"

/* The token files of llm.c and modded-nanogpt: a header of 256 int32 (magic, version, number of tokens, zeros) and then
 * the tokens. Magic 20240520, version 1: uint16, GPT-2. Magic 20240801, version 7: uint32, Llama 3. Each document
 * begins with the end-of-text token (50256, 128000). */
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

/* Computes the layout of tokens without a header, such as those of nanoGPT's train.bin, of arrays written with
 * tofile(), and of OLMo's .npy files: from the words of the name, which alone say what is in them, and the size of the
 * file. kind: RAW or OLMO. head: the first bytes of the file, to recognize a format that has a header (an index, a
 * NumPy array, a file of llm.c), which would be read as tokens. Statuses: OK, ERROR_ARGUMENT (no width), ERROR_FORMAT
 * (another format), ERROR_TRUNCATED (the size is not a multiple of the width). */
enum tokmap_status raw_parse(struct foreign_layout *layout, enum foreign_kind kind, const struct foreign_words *words,
                             const char *path, const uint8_t *head, size_t bytes, uint64_t file_bytes,
                             struct tokmap_error *error);

/* Reads one line, without its line end, of the .csv.gz beside the token files of Dolma and OLMo-core, which has a line
 * "START,END[,ID,SOURCE,LINE]" per document, in tokens, END not included. The token file itself has no header. before:
 * the end of the document before it. A document begins where the one before it ends, because tokens between documents
 * would belong to none. Statuses: OK, ERROR_CORRUPT (with the line's number). */
enum tokmap_status olmo_parse_line(const char *path, uint64_t line, const char *text, size_t bytes, uint64_t before,
                                   uint64_t tokens, uint64_t *end, struct tokmap_error *error);

/* Compares the end of the last document, of line `line`, with the tokens of the file: a list that ends early has lost
 * its last lines, or belongs to another file. Statuses: OK, ERROR_TRUNCATED (with the line's number). */
enum tokmap_status olmo_check_end(const char *path, uint64_t line, uint64_t end, uint64_t tokens,
                                  struct tokmap_error *error);

/* The files of datatrove's DocumentTokenizer: X.ds has the tokens and nothing else; X.ds.index a u64 per document, its
 * end in tokens; X.ds.loss a byte per token, 1 if the token counts for the loss; X.ds.metadata three lines of text:
 * "TOKENIZER|BYTES OF A TOKEN", the number of tokens, and that number for people. All but X.ds can be missing. */
#define DATATROVE_METADATA_MOST 65536 /* bytes of the file that are read; it has about 50 */

/* Reads X.ds.metadata. *width: 2 or 4. *tokens: TOKMAP_NO_ID if the text does not count them. Statuses: OK,
 * ERROR_CORRUPT (with the line). */
enum tokmap_status datatrove_parse(const char *path, const char *text, size_t bytes, uint64_t *width, uint64_t *tokens,
                                   struct tokmap_error *error);

/* Computes the layout of X.ds. width: from the metadata, or from the word width. tokens: from the metadata, or
 * TOKMAP_NO_ID. Statuses: OK, ERROR_TRUNCATED. */
enum tokmap_status datatrove_layout(struct foreign_layout *layout, const char *path, uint64_t width, uint64_t tokens,
                                    uint64_t file_bytes, struct tokmap_error *error);

/* Checks what the size of X.ds.index and its last end say. last_end is not used if the file is empty. Statuses: OK,
 * ERROR_TRUNCATED, ERROR_CORRUPT. */
enum tokmap_status datatrove_check_index(const char *path, uint64_t index_bytes, uint64_t last_end, uint64_t tokens,
                                         struct tokmap_error *error);

#endif
