/* SPDX-License-Identifier: MIT */
/* datatrove_writer.c - see datatrove_writer.h. */
#include "datatrove_writer.h"

#include <inttypes.h>
#include <stdio.h>

/* Writes the number as datatrove does for people, with three digits and the unit T, for tokens: "950 T", "1.25 kT",
 * "60.1 kT", "7.00 MT", and "1.00 MT" for 999,999. */
static void number_print(uint64_t number, char *text, size_t room)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    double value = (double)number;
    int unit = 0, before = 1; /* digits before the point */
    for (; value >= 999.5; unit++)
        value /= 1000;
    before += (value >= 9.995) + (value >= 99.95);
    (void)snprintf(text, room, "%.*f %sT", 3 - before, value, prefixes[unit]);
}

size_t datatrove_metadata(char text[DATATROVE_TEXT_MOST], const char *tokenizer, uint32_t width, uint64_t tokens)
{
    char number[32];
    number_print(tokens, number, sizeof number);
    const int bytes = snprintf(text, DATATROVE_TEXT_MOST, "%.*s|%u\n%" PRIu64 "\n%s", DATATROVE_NAME_MOST,
                               tokenizer && *tokenizer ? tokenizer : "Unknown Tokenizer", width, tokens, number);
    for (int i = 0; text[i] && text[i] != '|'; i++) /* the name is one line; control characters would break it */
        if ((unsigned char)text[i] < ' ')
            text[i] = '?';
    return (size_t)bytes;
}
