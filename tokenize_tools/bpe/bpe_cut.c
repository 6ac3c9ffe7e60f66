/* bpe_cut.c - bpe_cut.h for any processor: one border after another. */
#include "bpe_cut.h"

#include <string.h>

void bpe_cut_scalar(const struct bpe_cutting *cutting, const uint8_t *text, size_t done)
{
    const size_t words = (done + 63) / 64;
    for (size_t i = 0; i < words; i++) {
        uint64_t cuts = 0;
        for (uint64_t found = bpe_cut_borders(cutting->chunk, i, done); found; found &= found - 1) {
            const uint32_t at = (uint32_t)__builtin_ctzll(found);
            const uint8_t *pair = text + 64 * i + at - 3;
            uint64_t six = 0;
            if (cutting->text_end - pair >= 8)
                six = load64(pair);
            else
                memcpy(&six, pair, (size_t)(cutting->text_end - pair));
            cuts |= (uint64_t)!bpe_may_join(cutting->model, six) << at;
        }
        cutting->chunk->starts[i] |= cuts;
        cutting->cuts[i] = cuts;
    }
    cutting->cuts[words] = 0;
}
