/*
 * mark.h - where documents start inside a row, in words of 64 tokens with running sums, so that the position and the
 * document of any token are found by looking at one word: by the producer that makes them, by the host that expands a
 * batch, and by the GPU. Plain C that a CUDA compiler takes too.
 */
#ifndef TOKMAP_BATCH_MARK_H
#define TOKMAP_BATCH_MARK_H

#include <stdint.h>

/* Of tokens [64 w, 64 w + 64) of a row; it lies in slots, so its layout is the device's too. */
struct mark {
    uint64_t starts; /* bit j: a document starts at token 64 w + j; bit 0 of word 0 is set always */
    uint32_t last;   /* the row's latest start before token 64 w; 0 in word 0 */
    uint32_t before; /* the row's starts before token 64 w */
};

/* Words that hold the marks of `tokens` tokens. */
static inline uint64_t mark_words(uint64_t tokens)
{
    return tokens / 64 + (tokens % 64 != 0);
}

#endif
