/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

#define EXACT 65536u
#define EXACT_BITS 16
#define CELL_BITS 9
#define CELLS (EXACT + ((64 - EXACT_BITS) << CELL_BITS))

static size_t cell_of(uint64_t number)
{
    if (number < EXACT)
        return (size_t)number;
    const unsigned power = 63u - (unsigned)__builtin_clzll(number);
    const uint64_t part = (number >> (power - CELL_BITS)) & ((1u << CELL_BITS) - 1);
    return EXACT + ((size_t)(power - EXACT_BITS) << CELL_BITS) + (size_t)part;
}

/* Returns the largest number that a cell covers. */
static uint64_t cell_top(size_t cell)
{
    if (cell < EXACT)
        return cell;
    const unsigned power = EXACT_BITS + (unsigned)((cell - EXACT) >> CELL_BITS);
    const uint64_t part = (cell - EXACT) & ((1u << CELL_BITS) - 1);
    return ((uint64_t)1 << power) + ((part + 1) << (power - CELL_BITS)) - 1;
}

bool histogram_new(struct histogram *histogram)
{
    memset(histogram, 0, sizeof *histogram);
    histogram->cells = calloc(CELLS, sizeof *histogram->cells);
    return histogram->cells != NULL;
}

void histogram_free(struct histogram *histogram)
{
    free(histogram->cells);
    memset(histogram, 0, sizeof *histogram);
}

void histogram_add(struct histogram *histogram, uint64_t number, uint64_t times)
{
    if (!times)
        return;
    histogram->cells[cell_of(number)] += times;
    histogram->count += times;
    histogram->sum += (unsigned __int128)number * times;
    histogram->largest = max64(histogram->largest, number);
}

void histogram_add_steps(struct histogram *histogram, uint64_t begin, const uint64_t *ends, uint64_t count)
{
    uint64_t *cells = histogram->cells, last = begin, largest = histogram->largest;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t step = ends[i] - last;
        last = ends[i];
        largest = max64(largest, step);
        cells[cell_of(step)]++;
    }
    histogram->largest = largest;
    histogram->count += count;
    histogram->sum += last - begin;
}

void histogram_merge(struct histogram *sum, const struct histogram *more)
{
    /* Cells grow with numbers, so that those above the largest one were never touched. */
    for (size_t cell = 0; more->count && cell <= cell_of(more->largest); cell++)
        sum->cells[cell] += more->cells[cell];
    sum->count += more->count;
    sum->sum += more->sum;
    sum->largest = max64(sum->largest, more->largest);
}

uint64_t histogram_percentile(const struct histogram *histogram, uint64_t per_thousand)
{
    const uint64_t wanted =
        max64(1, histogram->count - mul_div(histogram->count, 1000 - min64(per_thousand, 1000), 1000));
    uint64_t seen = 0;
    for (size_t cell = 0; cell < CELLS; cell++) {
        seen += histogram->cells[cell];
        if (seen >= wanted)
            return min64(cell_top(cell), histogram->largest);
    }
    return histogram->largest;
}

void lengths_of(const struct histogram *histogram, struct lengths *lengths)
{
    *lengths = (struct lengths){.documents = histogram->count, .largest = histogram->largest};
    if (!histogram->count)
        return;
    lengths->p50 = histogram_percentile(histogram, 500);
    lengths->p90 = histogram_percentile(histogram, 900);
    lengths->p99 = histogram_percentile(histogram, 990);
    lengths->mean = (double)histogram->sum / (double)histogram->count;
}

/* Numbers beside the cells, as they are saved: after the last cell. */
enum { SAVED_COUNT = CELLS, SAVED_LARGEST, SAVED_LOW, SAVED_HIGH };

static bool pair_save(struct bytes_buffer *into, uint64_t cell, uint64_t number)
{
    const uint64_t pair[] = {cell, number};
    return !number || bytes_append(into, pair, sizeof pair);
}

bool histogram_save(const struct histogram *histogram, struct bytes_buffer *into)
{
    bool good = pair_save(into, SAVED_COUNT, histogram->count) && pair_save(into, SAVED_LARGEST, histogram->largest) &&
                pair_save(into, SAVED_LOW, (uint64_t)histogram->sum) &&
                pair_save(into, SAVED_HIGH, (uint64_t)(histogram->sum >> 64));
    for (uint64_t cell = 0; cell < CELLS && good; cell++)
        good = pair_save(into, cell, histogram->cells[cell]);
    return good;
}

bool histogram_load(struct histogram *histogram, const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at + 16 <= count; at += 16) {
        const uint64_t cell = load64(bytes + at), number = load64(bytes + at + 8);
        if (cell < CELLS)
            histogram->cells[cell] = number;
        else if (cell == SAVED_COUNT)
            histogram->count = number;
        else if (cell == SAVED_LARGEST)
            histogram->largest = number;
        else if (cell == SAVED_LOW)
            histogram->sum = (histogram->sum >> 64 << 64) + number;
        else if (cell == SAVED_HIGH)
            histogram->sum = ((unsigned __int128)number << 64) + (uint64_t)histogram->sum;
        else
            return false;
    }
    return count % 16 == 0;
}
