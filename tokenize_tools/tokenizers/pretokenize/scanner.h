/* SPDX-License-Identifier: MIT */
/*
 * scanner.h - the fast scanner: finds the starts of all pieces of a chunk of text at once.
 *
 * It follows the same rules as scan_piece (scanner_piece.h) and finds the same pieces, but with arithmetic on bit masks
 * of 64 bytes of text. scanner.c explains the method.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_H
#define TOKMAP_PRETOKENIZE_SCANNER_H

#include <stddef.h>
#include <stdint.h>

#include "common/cpu.h"
#include "scanner_classify.h"
#include "scanner_words.h"
#include "split_rules.h"

/* Read only after scanner_init; any number of threads may share it. */
struct scanner {
    struct split_rules rules;
    scan_classify_function *classify;
    scan_words_function *words;
    struct scan_tables tables;
};

/* Prepares a scanner for these rules and this CPU variant, which the processor must have (cpu_variant_best() or
 * less). */
void scanner_init(struct scanner *scanner, const struct split_rules *rules, enum cpu_variant variant);

/* Memory for one call of scan_chunk, and its result. About 14 KiB; each thread needs its own. */
struct scan_chunk {
    uint64_t starts[SCAN_WORDS + 8]; /* bit i: a piece starts at text[i]. One word more is used than the text has; the
                                        others are there so that the rows of masks begin at a multiple of 64 bytes */
    struct scan_masks masks;         /* the masks of the text that was scanned */
};

/* Finds the pieces of `count` bytes of text, count > 0. A piece must start at text[0].
 *
 * Returns the number of bytes that belong to the pieces found. These are whole pieces, at least one, and the next call
 * begins after them. chunk->starts has a bit for each start, including bit 0, but none for the end of the last piece.
 * The bits from the returned number up to the end of its word are 0. A piece longer than SCAN_BYTES is found alone: the
 * function then returns its length and sets only bit 0. */
size_t scan_chunk(const struct scanner *scanner, struct scan_chunk *chunk, const uint8_t *text, size_t count);

#endif
