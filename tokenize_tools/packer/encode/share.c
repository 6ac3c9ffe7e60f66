/* SPDX-License-Identifier: MIT */
/* share.c - see share.h. */
#include "share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text/decimal.h"

#define DECIMALS_MOST 18

bool share_read(const char *text, size_t bytes, char into[SHARE_TEXT_MOST + 1], uint64_t *share)
{
    uint64_t number, one = 1;
    uint32_t decimals;
    const bool percent = bytes && bytes <= SHARE_TEXT_MOST && text[bytes - 1] == '%';
    if (bytes > SHARE_TEXT_MOST ||
        !decimal_parse_point(text, bytes - percent, DECIMALS_MOST - 2 * percent, &number, &decimals))
        return false;
    memcpy(into, text, bytes);
    into[bytes] = '\0';
    for (decimals += 2 * percent; percent && decimals && number % 10 == 0; decimals--)
        number /= 10;
    for (uint32_t i = 0; i < decimals; i++)
        one *= 10;
    if (percent && number > one)
        return false;
    if (percent)
        (void)snprintf(into, SHARE_TEXT_MOST + 1, "%s%0*" PRIu64, number == one ? "" : "0.", (int)decimals, number);
    const unsigned __int128 exact = (unsigned __int128)number * (SHARE_ONE / one);
    *share = exact < 2 * SHARE_ONE ? (uint64_t)exact : 2 * SHARE_ONE;
    return true;
}

uint64_t share_bound(uint64_t share)
{
    return (uint64_t)(((unsigned __int128)share << 64) / SHARE_ONE);
}
