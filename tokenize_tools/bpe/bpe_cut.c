/* bpe_cut.c - bpe_cut.h for any processor. */
#include "bpe_cut_words.h"

void bpe_cut_scalar(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    cut_words(cutting, text, done);
}
