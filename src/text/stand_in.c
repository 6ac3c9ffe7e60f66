/* SPDX-License-Identifier: MIT */
#include "stand_in.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Returns true if the bytes begin with the text, in letters of either case. */
static bool begins_with(const char *bytes, uint64_t count, const char *text)
{
    return count >= strlen(text) && !strncasecmp(bytes, text, strlen(text));
}

enum stand_in stand_in_of(const char *bytes, uint64_t count)
{
    if (count >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) {
        bytes += 3;
        count -= 3;
    }
    if (begins_with(bytes, count, "version https://git-lfs.github.com/spec/"))
        return STAND_IN_POINTER;
    uint64_t blank = 0;
    while (blank < count && (bytes[blank] == ' ' || (bytes[blank] >= '\t' && bytes[blank] <= '\r')))
        blank++;
    bytes += blank;
    count -= blank;
    return begins_with(bytes, count, "<!doctype html") || begins_with(bytes, count, "<html") ? STAND_IN_PAGE
                                                                                             : STAND_IN_NONE;
}
