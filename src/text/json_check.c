/* json_check.c - whether bytes are one JSON value (RFC 8259), so that what a file says can be put into output as it is.
 */
#include "cli/cli.h"

#include <string.h>

#define DEPTH_MAX 64

struct check {
    const unsigned char *at, *end;
};

static void blanks_skip(struct check *check)
{
    while (check->at < check->end && memchr(" \t\r\n", *check->at, 4))
        check->at++;
}

static bool take(struct check *check, char wanted)
{
    if (check->at == check->end || *check->at != (unsigned char)wanted)
        return false;
    check->at++;
    return true;
}

static bool word(struct check *check, const char *wanted)
{
    const size_t length = strlen(wanted);
    if ((size_t)(check->end - check->at) < length || memcmp(check->at, wanted, length) != 0)
        return false;
    check->at += length;
    return true;
}

static size_t digits(struct check *check)
{
    const unsigned char *start = check->at;
    while (check->at < check->end && *check->at >= '0' && *check->at <= '9')
        check->at++;
    return (size_t)(check->at - start);
}

static bool number(struct check *check)
{
    (void)take(check, '-');
    const bool zero = check->at < check->end && *check->at == '0';
    const size_t whole = digits(check);
    if (!whole || (zero && whole > 1))
        return false;
    if (take(check, '.') && !digits(check))
        return false;
    if (take(check, 'e') || take(check, 'E')) {
        if (!take(check, '+'))
            (void)take(check, '-');
        return digits(check) > 0;
    }
    return true;
}

/* UTF-8 is not looked into: what prints the bytes need not decode them to find where the string ends. */
static bool string(struct check *check)
{
    if (!take(check, '"'))
        return false;
    while (check->at < check->end) {
        const unsigned char byte = *check->at++;
        if (byte == '"')
            return true;
        if (byte < 0x20)
            return false;
        if (byte != '\\')
            continue;
        if (check->at == check->end)
            return false;
        const unsigned char escape = *check->at++;
        if (escape == 'u') {
            for (int i = 0; i < 4; i++, check->at++)
                if (check->at == check->end || !*check->at || !strchr("0123456789abcdefABCDEF", *check->at))
                    return false;
        } else if (!escape || !strchr("\"\\/bfnrt", escape)) {
            return false;
        }
    }
    return false;
}

static bool value(struct check *check, unsigned depth);

static bool members(struct check *check, unsigned depth, bool object)
{
    const char end = object ? '}' : ']';
    blanks_skip(check);
    if (take(check, end))
        return true;
    do {
        blanks_skip(check);
        if (object) {
            if (!string(check))
                return false;
            blanks_skip(check);
            if (!take(check, ':'))
                return false;
        }
        if (!value(check, depth + 1))
            return false;
        blanks_skip(check);
    } while (take(check, ','));
    return take(check, end);
}

static bool value(struct check *check, unsigned depth)
{
    blanks_skip(check);
    if (depth > DEPTH_MAX || check->at == check->end)
        return false;
    switch (*check->at) {
    case '{':
    case '[':
        return members(check, depth, *check->at++ == '{');
    case '"':
        return string(check);
    case 't':
        return word(check, "true");
    case 'f':
        return word(check, "false");
    case 'n':
        return word(check, "null");
    default:
        return number(check);
    }
}

bool cli_json_valid(const char *text, size_t bytes)
{
    struct check check = {(const unsigned char *)text, (const unsigned char *)text + bytes};
    if (!value(&check, 0))
        return false;
    blanks_skip(&check);
    return check.at == check.end;
}
