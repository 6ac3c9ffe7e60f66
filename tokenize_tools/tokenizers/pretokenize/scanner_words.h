/* SPDX-License-Identifier: MIT */
/*
 * scanner_words.h - the second half of the fast scanner: turns masks of classes into starts of pieces, with arithmetic
 * on whole words. There is one implementation per instruction set; all of them write the same bits.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_WORDS_H
#define TOKMAP_PRETOKENIZE_SCANNER_WORDS_H

#include <stdint.h>

#include "common/cpu.h"
#include "scanner_classify.h"

struct scan_work; /* scanner_words_work.h */

/* Fills all rows of the work except `swallowed`, which the caller has filled if the rules need it, and the starts of
 * pieces, except those that scanner.c corrects afterwards. Bit i of `valid` is 1 if byte i of the last word belongs to
 * the text. */
typedef void scan_words_function(struct scan_work *work, const struct scan_masks *masks, uint64_t valid);
scan_words_function scan_words_scalar;
#if defined(__x86_64__)
scan_words_function scan_words_avx2;
scan_words_function scan_words_vbmi;
#endif
/* Returns the implementation for a variant that the processor has. */
scan_words_function *scan_words_choose(enum cpu_variant variant);

#endif
