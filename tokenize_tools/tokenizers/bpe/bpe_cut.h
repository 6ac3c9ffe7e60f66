/* SPDX-License-Identifier: MIT */
/*
 * bpe_cut.h - cuts pieces of Chinese, Japanese, and Korean text between characters that no token joins.
 *
 * Such text has few spaces, so its pieces are whole clauses, which seldom come up again. Where no token has bytes of
 * two neighboring characters side by side, no merge can cross their border. The piece is cut there, and the short parts
 * are found in the caches. Only borders after a character of three bytes, before one of three or four, are tried.
 *
 * Example: 0 of the vocabulary's tokens hold the characters C and D side by side, one holds B and C. The piece ABCD of
 * four characters of three bytes has borders at bytes 3, 6, and 9; byte 9 becomes a start.
 */
#ifndef TOKMAP_BPE_BPE_CUT_H
#define TOKMAP_BPE_BPE_CUT_H

#include "bpe_model.h"

struct bpe_cutting {
    const struct bpe_model *model;
    struct scan_chunk *chunk; /* result of scan_chunk(); cuts are added to chunk->starts */
    uint64_t *cuts;           /* result: the starts that were added; room for SCAN_WORDS + 1 words, the last of which
                                 that is written is 0 */
    const uint8_t *text_end;  /* nothing from here on may be read */
};

/* Adds the cuts of a chunk. done: the bytes of text that the chunk's pieces have, 1 to SCAN_BYTES. */
typedef void bpe_cut_function(const struct bpe_cutting *cutting, const uint8_t *text, size_t done);
bpe_cut_function bpe_cut_scalar;
#if defined(__x86_64__)
bpe_cut_function bpe_cut_avx2;
bpe_cut_function bpe_cut_vbmi;
#endif

/* Returns the borders of word i of the chunk that may become cuts. */
static inline uint64_t bpe_cut_borders(const struct scan_chunk *chunk, size_t i, size_t done)
{
    const uint64_t *tall = SCAN_ROW(chunk->masks.tall) + i;
    const uint64_t found = tall[0] & ~chunk->starts[i] & (tall[0] << 3 | tall[-1] >> 61);
    return done - 64 * i >= 64 ? found : found & (((uint64_t)1 << (done % 64)) - 1);
}

#endif
