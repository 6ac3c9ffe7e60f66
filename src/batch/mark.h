/* SPDX-License-Identifier: MIT */
/*
 * mark.h - what is known about the tokens of a row besides their ids: where documents start, which targets do not
 * count, and where padding begins. The producer fills these arrays; the host and the GPU expand batches from them. This
 * header is plain C that a CUDA compiler accepts too.
 *
 *     marks      where documents start, in words of 64 tokens with running sums. The position and the document of any
 *                token follow from one word
 *     uncounted  bit j mod 64 of word j / 64 is 1 if target j of the row, which is token j + 1, does not count
 * according to the dataset's mask stream bounds     of each row: which inputs are scored here, and where padding begins
 *
 * Target j of a row counts if tokens j and j + 1 are in the same document, its bit in `uncounted` is 0, and
 * scored_from <= j and j + 1 < tokens of the row's bounds.
 */
#ifndef TOKMAP_BATCH_MARK_H
#define TOKMAP_BATCH_MARK_H

#include <stdint.h>

/* Tokens [64 w, 64 w + 64) of a row, w being the number of the mark. Marks are stored in slots and copied to the
 * device, so the device has the same layout. Padding starts like a document. */
struct mark {
    uint64_t starts; /* bit j: a document starts at token 64 w + j. Bit 0 of word 0 is set, but for chunks of a row */
    uint32_t last;   /* the row's last start before token 64 w; 0 in word 0. Of a chunk whose first document began
                        before it, modulo 2^32: -7, if 7 tokens before */
    uint32_t before; /* number of starts in the row before token 64 w */
};

/* The part of a row that counts. Stored in slots like marks. */
struct row_bounds {
    uint64_t scored_from; /* targets of inputs before this one were scored in an earlier window; usually 0 */
    uint64_t tokens;      /* the row's tokens that are data; all further ones are padding */
};

/* Returns the number of words that hold the marks, or the bits, of `tokens` tokens. */
static inline uint64_t mark_words(uint64_t tokens)
{
    return tokens / 64 + (tokens % 64 != 0);
}

#endif
