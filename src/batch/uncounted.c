/*
 * uncounted.c - see uncounted.h.
 *
 * Bits of the stream say which tokens count, and bits of the row which targets do not, so they are copied with one
 * token's offset and inverted. Example: a row of two pieces, tokens 100 to 104 and 7 to 9 of the dataset, in which the
 * stream says that tokens 102, 103, and 8 count. Target t is token t + 1 of the row, so the first token of the row is
 * no target at all:
 *
 *     row           100  101  102  103  104 |  7    8    9
 *     stream              0    1    1    0     0    1    0
 *     target              0    1    2    3     4    5    6       bits 0, 3, 4, and 6 are set
 */
#include "uncounted.h"

#include <assert.h>
#include <string.h>

#include "dataset/dataset.h"
#include "common/bytes.h"
#include "mark.h"

#define AT_ONCE 8192 /* bits that are read at once; a multiple of 64 */

/* Fills the bits of targets [at, at + count), which are the tokens of the dataset from `first` on, without a seam. */
static enum tokmap_status fill_range(const struct tokmap_dataset *dataset, uint64_t first, uint64_t at, uint64_t count,
                                     uint64_t *words, struct tokmap_error *error)
{
    uint8_t bits[AT_ONCE / 8];
    for (uint64_t part; count; first += part, at += part, count -= part) {
        part = min64(count, AT_ONCE);
        enum tokmap_status status = tokmap_dataset_mask(dataset, first, part, bits, error);
        if (status)
            return status;
        for (uint64_t i = 0; i < part; i += 64) {
            const uint64_t valid = min64(part - i, 64);
            uint64_t word = 0;
            memcpy(&word, bits + i / 8, (size_t)(valid + 7) / 8);
            word = ~word & ~(uint64_t)0 >> (64 - valid);
            const uint64_t to = at + i, shift = to % 64;
            words[to / 64] |= word << shift;
            if (shift + valid > 64)
                words[to / 64 + 1] |= word >> (64 - shift);
        }
    }
    return TOKMAP_OK;
}

enum tokmap_status uncounted_fill(const struct tokmap_dataset *dataset, uint64_t tokens, const struct row_piece *pieces,
                                  uint64_t count, uint64_t targets, uint64_t *words, struct tokmap_error *error)
{
    uint64_t row = 0; /* the piece's first token in the row */
    memset(words, 0, mark_words(targets) * sizeof *words);
    if (!dataset || !dataset_has_mask(dataset))
        return TOKMAP_OK;
    for (uint64_t i = 0; i < count && row <= targets; row += pieces[i++].tokens) {
        /* The row's first token is no target, and tokens beyond the last target do not matter. */
        uint64_t skip = row ? 0 : 1, first = pieces[i].first_token + skip;
        uint64_t left = min64(pieces[i].tokens, targets + 1 - row) - skip, at = row + skip - 1;
        assert(pieces[i].first_token < tokens && pieces[i].tokens && pieces[i].tokens <= tokens);
        if (first == tokens)
            first = 0;
        const uint64_t before_seam = min64(left, tokens - first);
        enum tokmap_status status = fill_range(dataset, first, at, before_seam, words, error);
        if (!status && before_seam < left)
            status = fill_range(dataset, 0, at + before_seam, left - before_seam, words, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}
