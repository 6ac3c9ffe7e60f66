/* SPDX-License-Identifier: MIT */
/*
 * json_scan.c - see json_scan.h.
 *
 * The text is read once, from front to back. The only state is the position and, for each level of nesting, one bit
 * that says whether the container is an object, so deep nesting costs neither recursion nor memory.
 *
 * Nearly all bytes of real JSON are inside strings, and nearly all of those are plain. So strings are examined 64 bytes
 * at a time: a bit mask marks each quote, backslash, and control character (a *stop*), and the loop visits only the
 * bits that are set. Text with an escape every few words, such as one with \n, still needs one mask per 64 bytes,
 * whereas a search for the next stop would begin again after every escape. Example: in  say \"hi\"  the mask has bits
 * for four characters. The first backslash is an escape, which covers the quote after it, so that bit is cleared, and
 * the scan continues with the second backslash.
 */
#include "json_scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "json_fast.h"
#include "stand_in.h"
#include "utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

const char json_escape_values[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
};

bool json_wrong(struct json_scan *scan, const char *reason)
{
    if (!scan->fault.reason) {
        scan->fault.offset = (size_t)(scan->at - scan->start);
        scan->fault.reason = reason;
    }
    return false;
}

static void skip_space(struct json_scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r' || *scan->at == '\n'))
        scan->at++;
}

#define STEP 64 /* bytes of a string that are examined together */

#if defined(__SSE2__)
/* Bit i of the result is set if byte i of 16 is a quote, a backslash, or a control character. */
static inline uint64_t stops_16(const char *at)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    const __m128i ends =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    return (uint64_t)(unsigned)_mm_movemask_epi8(_mm_or_si128(ends, control));
}

static inline uint64_t stops_find(const char *at)
{
    return stops_16(at) | stops_16(at + 16) << 16 | stops_16(at + 32) << 32 | stops_16(at + 48) << 48;
}

/* Returns the closing quote of a plain string of fewer than 16 bytes, as names and tokens mostly are, or NULL. */
static inline const char *short_end(const char *at, const char *end)
{
    const uint64_t stops = end - at >= 16 ? stops_16(at) : 0;
    const char *stop = at + (stops ? __builtin_ctzll(stops) : 0);
    return stops && *stop == '"' ? stop : NULL;
}
#else
static inline const char *short_end(const char *at, const char *end)
{
    return NULL;
}

static inline uint64_t stops_find(const char *at)
{
    uint64_t stops = 0;
    for (int i = 0; i < STEP; i++)
        stops |= (uint64_t)(at[i] == '"' || at[i] == '\\' || (uint8_t)at[i] < 0x20) << i;
    return stops;
}
#endif

/* Returns the first quote, backslash, or control character, or the end. */
static const char *string_stop(const char *at, const char *end)
{
    while (at < end && *at != '"' && *at != '\\' && (uint8_t)*at >= 0x20)
        at++;
    return at;
}

/* 16 plus the value of a hexadecimal digit; 0 for every other byte. */
static const uint8_t hex_digits[256] = {
    ['0'] = 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, ['A'] = 26, 27, 28, 29, 30, 31, ['a'] = 26, 27, 28, 29, 30, 31,
};

/* Returns the value of four hexadecimal digits, or -1. */
static inline int hex_four(const char *at, const char *end)
{
    if (end - at < 4)
        return -1;
    const int a = hex_digits[(uint8_t)at[0]], b = hex_digits[(uint8_t)at[1]];
    const int c = hex_digits[(uint8_t)at[2]], d = hex_digits[(uint8_t)at[3]];
    return a & b & c & d & 16 ? (a & 15) << 12 | (b & 15) << 8 | (c & 15) << 4 | (d & 15) : -1;
}

/* At a stop: moves past it if it is an escape. Returns false at the quote that ends the string, and after a fault. */
static inline bool escape_skip(struct json_scan *scan)
{
    if (*scan->at == '"')
        return false;
    if (*scan->at != '\\')
        return json_wrong(scan, "a string contains a control character that is not escaped");
    if (scan->end - scan->at < 2)
        return json_wrong(scan, "a string has no closing quote");
    const char kind = scan->at[1];
    if (json_escape_values[(uint8_t)kind]) {
        scan->at += 2;
        return true;
    }
    if (kind != 'u')
        return json_wrong(scan, "a string contains an escape that JSON does not have");
    if (hex_four(scan->at + 2, scan->end) < 0)
        return json_wrong(scan, "\\u is not followed by four hexadecimal digits");
    scan->at += 6;
    return true;
}

/* Begins at the opening quote and ends after the closing one. */
static bool string_skip(struct json_scan *scan, struct json_string *string)
{
    const char *first = ++scan->at, *end = short_end(first, scan->end);
    string->escaped = false;
    if (end)
        scan->at = end;
    for (bool going = !end; going;) {
        if (scan->end - scan->at < STEP) {
            scan->at = string_stop(scan->at, scan->end);
            if (scan->at == scan->end)
                return json_wrong(scan, "a string has no closing quote");
            going = escape_skip(scan);
            string->escaped |= going;
            continue;
        }
        const char *from = scan->at, *to = from + STEP;
        for (uint64_t stops = stops_find(from); stops && going;) {
            scan->at = from + __builtin_ctzll(stops);
            going = escape_skip(scan);
            string->escaped |= going;
            /* Bytes that belong to the escape are not stops. */
            stops = scan->at < to ? stops & ~(uint64_t)0 << (scan->at - from) : 0;
        }
        if (going && scan->at < to)
            scan->at = to;
        if (going && json_has_fast() && scan->at < scan->end && *scan->at != '\\') /* the string is long */
            scan->at = json_skip_plain(scan->at, scan->end, &string->escaped);
    }
    if (scan->fault.reason)
        return false;
    string->bytes = first;
    string->count = (size_t)(scan->at - first);
    scan->at++;
    return true;
}

static bool digits_skip(struct json_scan *scan)
{
    const char *first = scan->at;
    while (scan->at < scan->end && decimal_is_digit(*scan->at))
        scan->at++;
    return scan->at > first || json_wrong(scan, "a number lacks digits");
}

/* Bytes of the NaN or Infinity that begins here; 0 if neither does. */
static size_t not_finite_bytes(const char *at, const char *end)
{
    static const char *const words[] = {"NaN", "Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((size_t)(end - at) >= strlen(words[i]) && !memcmp(at, words[i], strlen(words[i])))
            return strlen(words[i]);
    return 0;
}

/* Describes bytes that are not what JSON expects here. What other programs write most often has reasons of its own. */
static bool not_json(struct json_scan *scan, const char *reason)
{
    const char *at = scan->at;
    const size_t left = (size_t)(scan->end - at);
    if ((left && !*at) || (left > 1 && !at[1]))
        reason = "there is a zero byte, as UTF-16 has them; convert the file with 'iconv -t UTF-8'";
    else if (not_finite_bytes(at, scan->end))
        reason = JSON_NOT_FINITE;
    else if (left && *at == '\'')
        reason = "strings have double quotes; Python's json.dumps() writes them so, and str() does not";
    else if (stand_in_of(at, left) == STAND_IN_POINTER)
        reason = STAND_IN_POINTER_MESSAGE;
    return json_wrong(scan, reason);
}

/* Takes a value that is not JSON: a NaN or Infinity, where that is allowed. */
static bool other_skip(struct json_scan *scan, const char *reason)
{
    const size_t bytes = scan->not_finite_allowed ? not_finite_bytes(scan->at, scan->end) : 0;
    scan->at += bytes;
    scan->not_finite += bytes > 0;
    return bytes || not_json(scan, reason);
}

static bool number_skip(struct json_scan *scan)
{
    if (*scan->at == '-')
        scan->at++;
    if (scan->at < scan->end && *scan->at == 'I')
        return other_skip(scan, "a number lacks digits");
    if (scan->at < scan->end && *scan->at == '0') {
        scan->at++;
        if (scan->at < scan->end && decimal_is_digit(*scan->at))
            return json_wrong(scan, "a number has a leading zero");
    } else if (!digits_skip(scan)) {
        return false;
    }
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!digits_skip(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        return digits_skip(scan);
    }
    return true;
}

static bool word_skip(struct json_scan *scan, const char *word, size_t length)
{
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length))
        return not_json(scan, "this is not a JSON value");
    scan->at += length;
    return true;
}

/* Takes a value that is not a container. */
static bool scalar_skip(struct json_scan *scan)
{
    struct json_string ignored;
    if (scan->at == scan->end)
        return json_wrong(scan, "the text ends where a value is expected");
    switch (*scan->at) {
    case '"':
        return string_skip(scan, &ignored);
    case 't':
        return word_skip(scan, "true", 4);
    case 'f':
        return word_skip(scan, "false", 5);
    case 'n':
        return word_skip(scan, "null", 4);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return number_skip(scan);
    default:
        return other_skip(scan, "this is not a JSON value");
    }
}

static bool push(struct json_scan *scan, bool object)
{
    if (scan->depth == scan->depth_most)
        return json_wrong(scan, "objects and arrays are nested more than 1024 deep");
    const uint64_t bit = UINT64_C(1) << scan->depth % 64;
    if (object)
        scan->in_object[scan->depth / 64] |= bit;
    else
        scan->in_object[scan->depth / 64] &= ~bit;
    scan->depth++;
    scan->at++;
    return true;
}

static bool top_is_object(const struct json_scan *scan)
{
    assert(scan->depth > 0);
    return scan->in_object[(scan->depth - 1) / 64] >> (scan->depth - 1) % 64 & 1;
}

/* Takes the name of a member and the colon after it. */
static bool name_skip(struct json_scan *scan, struct json_string *name)
{
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != '"')
        return not_json(scan, "the name of a field is not a string");
    if (!string_skip(scan, name))
        return false;
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != ':')
        return json_wrong(scan, "the name of a field is not followed by a colon");
    scan->at++;
    skip_space(scan);
    return true;
}

/* Takes the end of the innermost container, or returns false if something else follows. */
static bool container_ends(struct json_scan *scan)
{
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != (top_is_object(scan) ? '}' : ']'))
        return false;
    scan->at++;
    scan->depth--;
    return true;
}

/* Takes tokens until the depth is what it was at the start. */
bool json_skip(struct json_scan *scan)
{
    const unsigned floor = scan->depth;
    struct json_string name;
    if (scan->fault.reason)
        return false;
    skip_space(scan);
    for (;;) {
        bool opened = false;
        if (scan->at < scan->end && (*scan->at == '{' || *scan->at == '[')) {
            if (!push(scan, *scan->at == '{'))
                return false;
            opened = true;
        } else if (!scalar_skip(scan)) {
            return false;
        }
        while (scan->depth > floor && container_ends(scan))
            opened = false;
        if (scan->depth == floor)
            return true;
        if (!opened) {
            if (scan->at == scan->end || *scan->at != ',')
                return json_wrong(scan, "a comma or the end of an object or array is missing");
            scan->at++;
            skip_space(scan);
        }
        if (top_is_object(scan) && !name_skip(scan, &name))
            return false;
    }
}

/* ---- whole documents ---- */

void json_begin(struct json_scan *scan, const char *text, size_t count)
{
    assert(text || !count);
    scan->start = scan->at = text;
    scan->end = text + count;
    scan->fault = (struct json_fault){0, NULL};
    scan->depth = 0;
    scan->depth_most = JSON_DEPTH;
    scan->fresh = scan->not_finite_allowed = false;
    scan->not_finite = 0;
}

enum json_kind json_kind(struct json_scan *scan)
{
    skip_space(scan);
    if (scan->fault.reason || scan->at == scan->end)
        return JSON_NOTHING;
    switch (*scan->at) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        if (scan->not_finite_allowed && not_finite_bytes(scan->at + (*scan->at == '-'), scan->end))
            return JSON_NAN;
        return *scan->at == '-' || decimal_is_digit(*scan->at) ? JSON_NUMBER : JSON_NOTHING;
    }
}

static bool expect(struct json_scan *scan, enum json_kind kind, const char *reason)
{
    return json_kind(scan) == kind || json_wrong(scan, reason);
}

bool json_enter_object(struct json_scan *scan)
{
    scan->fresh = true;
    return expect(scan, JSON_OBJECT, "an object is expected here") && push(scan, true);
}

bool json_enter_array(struct json_scan *scan)
{
    scan->fresh = true;
    return expect(scan, JSON_ARRAY, "an array is expected here") && push(scan, false);
}

/* Takes the comma before the next item. Returns false after the end of the container, which it takes, and after a
 * fault. */
static bool next_item(struct json_scan *scan)
{
    const bool fresh = scan->fresh;
    scan->fresh = false;
    if (scan->fault.reason || container_ends(scan))
        return false;
    if (!fresh) {
        if (scan->at == scan->end || *scan->at != ',')
            return json_wrong(scan, "a comma or the end of an object or array is missing");
        scan->at++;
        skip_space(scan);
    }
    return true;
}

bool json_member(struct json_scan *scan, struct json_string *name)
{
    assert(scan->fault.reason || top_is_object(scan));
    return next_item(scan) && name_skip(scan, name);
}

bool json_element(struct json_scan *scan)
{
    assert(scan->fault.reason || !top_is_object(scan));
    return next_item(scan);
}

bool json_text(struct json_scan *scan, struct json_string *text)
{
    return expect(scan, JSON_STRING, "a string is expected here") && string_skip(scan, text);
}

bool json_unsigned(struct json_scan *scan, uint64_t *number)
{
    if (!expect(scan, JSON_NUMBER, "a number is expected here"))
        return false;
    const char *first = scan->at;
    if (!number_skip(scan))
        return false;
    if (decimal_parse(first, (size_t)(scan->at - first), number))
        return true;
    scan->at = first;
    return json_wrong(scan, "a whole number from 0 to 2^64 - 1 is expected here");
}

bool json_real(struct json_scan *scan, double *number)
{
    char digits[64];
    if (!expect(scan, JSON_NUMBER, "a number is expected here"))
        return false;
    const char *first = scan->at;
    if (!number_skip(scan))
        return false;
    const size_t count = (size_t)(scan->at - first);
    if (count >= sizeof digits) {
        scan->at = first;
        return json_wrong(scan, "a number has more than 63 characters");
    }
    memcpy(digits, first, count);
    digits[count] = '\0';
    *number = strtod(digits, NULL);
    return true;
}

bool json_bool(struct json_scan *scan, bool *value)
{
    const enum json_kind kind = json_kind(scan);
    *value = kind == JSON_TRUE;
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return json_wrong(scan, "true or false is expected here");
    return scalar_skip(scan);
}

bool json_null(struct json_scan *scan)
{
    return expect(scan, JSON_NULL, "null is expected here") && scalar_skip(scan);
}

bool json_end(struct json_scan *scan)
{
    if (scan->fault.reason)
        return false;
    skip_space(scan);
    return scan->at == scan->end || json_wrong(scan, "there is text after the value");
}

bool json_value(struct json_scan *scan, const char **bytes, size_t *count)
{
    skip_space(scan);
    *bytes = scan->at;
    if (!json_skip(scan))
        return false;
    *count = (size_t)(scan->at - *bytes);
    return true;
}

bool json_is_valid(const char *text, size_t count, unsigned depth_most)
{
    struct json_scan scan;
    assert(depth_most <= JSON_DEPTH);
    json_begin(&scan, text, count);
    scan.depth_most = depth_most;
    return json_skip(&scan) && json_end(&scan);
}

/* ---- strings ---- */

/* Decodes the escape at `at`, which string_skip() has checked. Returns the number of decoded bytes and stores the
 * length of the escape in *length. */
static size_t escape_decode(const char *at, const char *end, char into[4], size_t *length, bool *lone)
{
    *lone = false;
    *length = 2;
    if (at[1] != 'u') {
        into[0] = json_escape_values[(uint8_t)at[1]];
        return 1;
    }
    *length = 6;
    unsigned code = (unsigned)hex_four(at + 2, end);
    if (code >= 0xd800 && code < 0xe000) {
        const int low = code < 0xdc00 && end - at >= 12 && at[6] == '\\' && at[7] == 'u' ? hex_four(at + 8, end) : -1;
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + ((unsigned)low - 0xdc00);
            *length = 12;
        } else {
            code = 0xfffd;
            *lone = true;
        }
    }
    return utf8_put(into, code);
}

bool json_equals(const struct json_string *string, const char *bytes, size_t count)
{
    if (!string->escaped)
        return string->count == count && !memcmp(string->bytes, bytes, count);
    const char *at = string->bytes, *end = at + string->count;
    size_t matched = 0;
    while (at < end) {
        char decoded[4] = {*at};
        size_t length = 1, got = 1;
        bool lone;
        if (*at == '\\')
            got = escape_decode(at, end, decoded, &length, &lone);
        if (count - matched < got || memcmp(bytes + matched, decoded, got))
            return false;
        matched += got;
        at += length;
    }
    return matched == count;
}

bool json_name_is(const struct json_string *string, const char *name)
{
    return json_equals(string, name, strlen(name));
}

/* Moves the bytes before the next backslash, or before the end, and advances both pointers. */
static inline void plain_move(char **into, const char **at, const char *end)
{
#if defined(__SSE2__)
    /* Once the gap between both is as long as a register, a store cannot overwrite unread bytes, so it may be too long.
     */
    while (end - *at >= 16 && *at - *into >= 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)*at);
        const int stops = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
        _mm_storeu_si128((__m128i *)(void *)*into, bytes);
        const int plain = stops ? __builtin_ctz((unsigned)stops) : 16;
        *into += plain;
        *at += plain;
        if (stops)
            return;
    }
#endif
    const char *stop = memchr(*at, '\\', (size_t)(end - *at));
    const size_t plain = (size_t)((stop ? stop : end) - *at);
    if (*into != *at)
        memmove(*into, *at, plain);
    *into += plain;
    *at += plain;
}

/* Decodes escapes of six bytes in a row, with single bytes between them, such as spaces: text that has been written
 * with nothing but ASCII. Leaves surrogates to the caller. */
static inline void units_decode(char **into, const char **at, const char *end)
{
    const char *from = *at;
    char *to = *into;
    while (end - from >= 7) {
        const bool between = *from != '\\';
        const char *unit = from + between;
        if (unit[0] != '\\' || unit[1] != 'u')
            break;
        const int code = hex_four(unit + 2, end);
        if (code < 0 || (code >= 0xd800 && code < 0xe000))
            break;
        *to = *from; /* without a byte between, the character is written over it */
        to += between;
        to += utf8_put(to, (unsigned)code);
        from = unit + 6;
    }
    *into = to;
    *at = from;
}

size_t json_unescape(char *text, size_t count, size_t *lone, size_t *first)
{
    char *into = text;
    const char *at = text, *end = text + count;
    const bool fast = json_has_fast();
    *lone = 0;
    *first = 0;
    for (;;) {
        units_decode(&into, &at, end);
        /* In text that consists of \\u escapes only, there is nothing to move between them. */
        if (fast && end - at > 64 && (*at != '\\' || at[1] != 'u'))
            json_unescape_plain(&into, &at, end);
        plain_move(&into, &at, end);
        if (at == end)
            break;
        const char value = end - at >= 2 ? json_escape_values[(uint8_t)at[1]] : '\0';
        if (value) {
            *into++ = value;
            at += 2;
            continue;
        }
        size_t length;
        bool alone;
        into += escape_decode(at, end, into, &length, &alone); /* which is not longer than the escape */
        if (alone && (*lone)++ == 0)
            *first = (size_t)(at - text);
        at += length;
    }
    return (size_t)(into - text);
}

bool json_says_nothing(const char *bytes, size_t count)
{
    if (count && (bytes[0] == '[' || bytes[0] == '{')) {
        for (size_t i = 1; i + 1 < count; i++)
            if (!strchr(" \t\r\n", bytes[i]))
                return false;
        return true;
    }
    return (count == 4 && !memcmp(bytes, "null", 4)) || (count == 2 && bytes[0] == '"');
}
