/*
 * length_counts.c - see length_counts.h.
 *
 * A length of b > 12 binary digits is kept as its first 12 digits, which begin with 1 and therefore have 2048 values,
 * and the number b - 12 of digits after them. Example: 5001 has 13 digits, 1001110001001; its first 12 are
 * 100111000100 = 2500, so that it is counted with 5000, as the (2500 - 2048)th of the 2048 counts for 13 digits.
 */
#include "length_counts.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"

#define DIGITS 12
#define HALF ((uint64_t)1 << (DIGITS - 1))
#define COUNTS (2 * HALF + (64 - DIGITS) * HALF)

struct length_counts {
    uint64_t counts[COUNTS], all, most;
};

static uint64_t index_of(uint64_t length)
{
    if (length < 2 * HALF)
        return length;
    const uint64_t cut = 64 - DIGITS - (uint64_t)__builtin_clzll(length); /* digits that are lost, 1 to 52 */
    return cut * HALF + (length >> cut);
}

static uint64_t length_at(uint64_t index)
{
    if (index < 2 * HALF)
        return index;
    const uint64_t cut = index / HALF - 1;
    return (index - cut * HALF) << cut;
}

struct length_counts *length_counts_new(void)
{
    return calloc(1, sizeof(struct length_counts));
}

void length_counts_free(struct length_counts *counts)
{
    free(counts);
}

void length_counts_add(struct length_counts *counts, uint64_t length)
{
    counts->counts[index_of(length)]++;
    counts->all++;
    counts->most = max64(counts->most, length);
}

void length_counts_merge(struct length_counts *sum, const struct length_counts *more)
{
    /* Indexes grow with lengths. The rest was never touched, and is not touched here. */
    if (more->all)
        for (uint64_t i = 0; i <= index_of(more->most); i++)
            sum->counts[i] += more->counts[i];
    sum->all += more->all;
    sum->most = max64(sum->most, more->most);
}

uint64_t length_counts_most(const struct length_counts *counts)
{
    return counts->most;
}

uint64_t length_counts_percentile(const struct length_counts *counts, uint32_t percent)
{
    assert(percent <= 100);
    /* percent / 100 of all, rounded up; in two parts, because all * percent may overflow. */
    const uint64_t rank = max64(counts->all / 100 * percent + (counts->all % 100 * percent + 99) / 100, 1);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < COUNTS && counts->all; i++) {
        seen += counts->counts[i];
        if (seen >= rank)
            return length_at(i);
    }
    return 0;
}
