/* SPDX-License-Identifier: MIT */
#include "numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "text/decimal.h"

bool cli_parse_number(const char *text, uint64_t *number)
{
    return decimal_parse(text, strlen(text), number);
}

bool cli_parse_size(const char *text, uint64_t *size)
{
    static const char letters[] = "kmgt";
    uint64_t value;
    if (!decimal_read(&text, NULL, &value))
        return false;
    const char lower = *text >= 'A' && *text <= 'Z' ? (char)(*text + 32) : *text;
    const char *letter = lower ? strchr(letters, lower) : NULL;
    if (letter) {
        const uint64_t base = text[1] == 'i' ? 1024 : 1000;
        text += base == 1024 ? 2 : 1;
        for (ptrdiff_t i = 0; i <= letter - letters; i++)
            if (mul_overflows(value, base, &value))
                return false;
    }
    if (*text == 'B')
        text++;
    if (*text)
        return false;
    *size = value;
    return true;
}

bool cli_parse_range(const char *text, struct cli_range *range)
{
    uint64_t first, end;
    if (!decimal_read(&text, NULL, &first) || text[0] != '.' || text[1] != '.')
        return false;
    text += 2;
    if (!decimal_read(&text, NULL, &end) || *text || end < first)
        return false;
    *range = (struct cli_range){first, end, true};
    return true;
}

/* Prints three significant digits, without an exponent. */
static void three_digits(double value, const char *unit, char text[32])
{
    const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, 32, "%.*f %s", decimals, value, unit);
}

const char *cli_bytes(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) {
        snprintf(text, 32, "%" PRIu64 " B", bytes);
        return text;
    }
    double value = (double)bytes;
    size_t unit = 0;
    /* From 999.5 on, three digits would print as 1000. */
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1000;
    three_digits(value, units[unit], text);
    return text;
}

const char *cli_count(uint64_t count, char text[32])
{
    char digits[20];
    const size_t length = decimal_write(count, digits);
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

const char *cli_counted(uint64_t count, const char *noun, char text[64])
{
    char digits[32];
    const size_t length = strlen(noun);
    const char *ending = count == 1 ? "" : length > 3 && !strcmp(noun + length - 3, "tch") ? "es" : "s";
    snprintf(text, 64, "%s %s%s", cli_count(count, digits), noun, ending);
    return text;
}

static void minutes_and_hours(uint64_t seconds, char text[32])
{
    if (seconds < 3600)
        snprintf(text, 32, "%" PRIu64 " min %02" PRIu64 " s", seconds / 60, seconds % 60);
    else
        snprintf(text, 32, "%" PRIu64 " h %02" PRIu64 " min", seconds / 3600, seconds % 3600 / 60);
}

const char *cli_seconds(double seconds, char text[32])
{
    if (!(seconds >= 0) || !isfinite(seconds)) {
        snprintf(text, 32, "?");
    } else if (seconds < 999.5e-9) {
        three_digits(seconds * 1e9, "ns", text);
    } else if (seconds < 999.5e-6) {
        three_digits(seconds * 1e6, "us", text);
    } else if (seconds < 999.5e-3) {
        three_digits(seconds * 1e3, "ms", text);
    } else if (seconds < 59.5) {
        three_digits(seconds, "s", text);
    } else if (seconds < 1e15) {
        minutes_and_hours((uint64_t)(seconds + 0.5), text);
    } else {
        snprintf(text, 32, "%.3g s", seconds);
    }
    return text;
}

const char *cli_duration(double seconds, char text[32])
{
    if (!(seconds >= 0) || !(seconds < 1000 * 366 * 86400.0)) {
        snprintf(text, 32, "?");
        return text;
    }
    const uint64_t whole = (uint64_t)(seconds + 0.5);
    if (seconds < 1)
        snprintf(text, 32, "less than 1 s");
    else if (whole < 60)
        snprintf(text, 32, "%" PRIu64 " s", whole);
    else if (whole < 86400)
        minutes_and_hours(whole, text);
    else
        snprintf(text, 32, "%" PRIu64 " d %02" PRIu64 " h", whole / 86400, whole % 86400 / 3600);
    return text;
}
