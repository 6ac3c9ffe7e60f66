/* SPDX-License-Identifier: MIT */
/* skip_limit.c - see skip_limit.h. */
#include "skip_limit.h"

#include <string.h>

#include "text/decimal.h"

/* "0.1" becomes 100000 of SKIP_LIMIT_SHARES. */
static bool share_parse(const char *text, size_t bytes, uint64_t *share)
{
    const char *point = memchr(text, '.', bytes);
    const size_t whole_bytes = point ? (size_t)(point - text) : bytes, digits = point ? bytes - whole_bytes - 1 : 0;
    uint64_t whole, part = 0, unit = SKIP_LIMIT_SHARES / 100;
    if (!decimal_parse(text, whole_bytes, &whole) || whole > 100 || digits > 6 || (point && !digits))
        return false;
    if (digits && !decimal_parse(point + 1, digits, &part))
        return false;
    *share = whole * unit;
    for (size_t i = 0; i < digits; i++)
        unit /= 10;
    *share += part * unit;
    return *share <= SKIP_LIMIT_SHARES;
}

bool skip_limit_parse(const char *text, struct skip_limit *limit)
{
    const size_t bytes = strlen(text);
    struct skip_limit read = {.given = true, .text = text};
    read.is_share = bytes && text[bytes - 1] == '%';
    if (read.is_share ? !share_parse(text, bytes - 1, &read.most) : !decimal_parse(text, bytes, &read.most))
        return false;
    *limit = read;
    return true;
}

bool skip_limit_passed(const struct skip_limit *limit, uint64_t left_out, uint64_t kept, bool at_end)
{
    if (!limit->given)
        return false;
    if (!limit->is_share)
        return left_out > limit->most;
    const unsigned __int128 all = (unsigned __int128)left_out + kept;
    if (!at_end && all < SKIP_LIMIT_EARLY)
        return false;
    return (unsigned __int128)left_out * SKIP_LIMIT_SHARES > all * limit->most * (at_end ? 1 : 2);
}
