/* bpe_cut_avx2.c - bpe_cut.h with BMI1 and BMI2, which every processor with AVX2 has: shifts and lowest bits in one
 * instruction. */
#include "bpe_cut_words.h"

#if defined(__x86_64__)

void bpe_cut_avx2(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    cut_words(cutting, text, done);
}

#endif
