/* datatrove_writer.c - see datatrove_writer.h. */
#include "datatrove_writer.h"

#include <inttypes.h>
#include <stdio.h>

/* Writes the number as datatrove does for people: "950", "1.25 K", "60.05 K", "7.00 M". */
static void number_print(uint64_t number, char *text, size_t room)
{
    static const char *const units[] = {"", " K", " M", " B", " T", " P", " E"};
    double value = (double)number;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1000;
    (void)snprintf(text, room, unit ? "%.2f%s" : "%.0f%s", value, units[unit]);
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
