#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/bytes.h"

/* Reads digits up to the first byte that is none; false if there are none or the number does not fit. */
static bool digits_read(const char **text, uint64_t *number)
{
    const char *at = *text;
    uint64_t value = 0;
    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++)
        if (mul_overflows(value, 10, &value) || add_overflows(value, (uint64_t)(*at - '0'), &value))
            return false;
    *text = at;
    *number = value;
    return true;
}

bool cli_parse_number(const char *text, uint64_t *number)
{
    uint64_t value;
    if (!digits_read(&text, &value) || *text)
        return false;
    *number = value;
    return true;
}

bool cli_parse_size(const char *text, uint64_t *size)
{
    static const char letters[] = "kmgt";
    uint64_t value;
    if (!digits_read(&text, &value))
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
    if (!digits_read(&text, &first) || text[0] != '.' || text[1] != '.')
        return false;
    text += 2;
    if (!digits_read(&text, &end) || *text || end < first)
        return false;
    *range = (struct cli_range){first, end, true};
    return true;
}

size_t cli_digits(uint64_t number, char text[20])
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char reversed[20];
    size_t at = sizeof reversed;
    while (number >= 100) {
        at -= 2;
        memcpy(reversed + at, pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10) {
        at -= 2;
        memcpy(reversed + at, pairs + number * 2, 2);
    } else {
        reversed[--at] = (char)('0' + number);
    }
    memcpy(text, reversed + at, sizeof reversed - at);
    return sizeof reversed - at;
}

/* Three significant digits, never in exponent form. */
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
    /* 999.5 would be printed as 1000. */
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1000;
    three_digits(value, units[unit], text);
    return text;
}

const char *cli_count(uint64_t count, char text[32])
{
    char digits[20];
    const size_t length = cli_digits(count, digits);
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
        const uint64_t whole = (uint64_t)(seconds + 0.5);
        if (whole < 3600)
            snprintf(text, 32, "%" PRIu64 " min %02" PRIu64 " s", whole / 60, whole % 60);
        else
            snprintf(text, 32, "%" PRIu64 " h %02" PRIu64 " min", whole / 3600, whole % 3600 / 60);
    } else {
        snprintf(text, 32, "%.3g s", seconds);
    }
    return text;
}
