/*
 * mark.h - where documents start inside a row, in words of 64 tokens with running sums. The position and the document
 * of any token follow from one word. The producer makes marks; the host and the GPU expand batches from them. This
 * header is plain C that a CUDA compiler accepts too.
 */
#ifndef TOKMAP_BATCH_MARK_H
#define TOKMAP_BATCH_MARK_H

#include <stdint.h>

/* Tokens [64 w, 64 w + 64) of a row, w being the number of the mark. Marks are stored in slots and copied to the
 * device, so the device has the same layout. */
struct mark {
    uint64_t starts; /* bit j: a document starts at token 64 w + j. Bit 0 of word 0 is always set */
    uint32_t last;   /* the row's last start before token 64 w; 0 in word 0 */
    uint32_t before; /* number of starts in the row before token 64 w */
};

/* Returns the number of words that hold the marks of `tokens` tokens. */
static inline uint64_t mark_words(uint64_t tokens)
{
    return tokens / 64 + (tokens % 64 != 0);
}

#endif
