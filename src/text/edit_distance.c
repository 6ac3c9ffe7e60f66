/* SPDX-License-Identifier: MIT */
#include "edit_distance.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Computes the distance. The usual table has one row for each byte of `a` and one column for each byte of `b`. Each row
 * depends only on the row above it, so one row is kept and overwritten from left to right. */
size_t edit_distance(const char *a, const char *b)
{
    size_t row[EDIT_DISTANCE_BYTES_MOST + 1];
    assert(a && b);
    const size_t a_bytes = strlen(a), b_bytes = strlen(b);
    if (a_bytes > EDIT_DISTANCE_BYTES_MOST || b_bytes > EDIT_DISTANCE_BYTES_MOST)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_bytes; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            const size_t changed = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            const size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = changed < shorter ? changed : shorter;
        }
    }
    return row[b_bytes];
}
