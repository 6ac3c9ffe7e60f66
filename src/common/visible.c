/* SPDX-License-Identifier: MIT */
#include "visible.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Returns the length of the character that is all valid UTF-8 at the start of the text, and its code point. Returns
 * 0 for any other start. */
static size_t character(const unsigned char *at, size_t count, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    *code = at[0];
    if (at[0] < 0x80)
        return 1;
    const size_t bytes = at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;
    if (!bytes || count < bytes)
        return 0;
    *code = at[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3fu);
    }
    return *code < least[bytes] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : bytes;
}

size_t visible_step(const char *text, size_t count, bool *plain)
{
    uint32_t code;
    assert(count);
    const size_t bytes = character((const unsigned char *)text, count, &code);
    *plain = bytes && code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0x2028 || code > 0x202e) &&
             (code < 0x2066 || code > 0x2069);
    return bytes ? bytes : 1;
}

bool visible_all(const char *text, size_t count)
{
    bool plain = true;
    for (size_t at = 0; at < count && plain;)
        at += visible_step(text + at, count - at, &plain);
    return plain;
}

size_t visible_form(char into[VISIBLE_MOST + 1], unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    if (byte < 0x20 || byte == 0x7f) {
        into[0] = '^';
        into[1] = (char)(byte ^ 0x40);
        return 2;
    }
    into[0] = '\\';
    into[1] = 'x';
    into[2] = digits[byte >> 4];
    into[3] = digits[byte & 15];
    return 4;
}

size_t visible_copy(char *into, size_t capacity, const char *text, size_t count, const char *kept)
{
    size_t out = 0, bytes;
    assert(capacity);
    for (size_t at = 0; at < count; at += bytes) {
        bool plain;
        char form[4 * VISIBLE_MOST + 1];
        size_t length = 0;
        bytes = visible_step(text + at, count - at, &plain);
        plain = plain || (text[at] && strchr(kept, text[at]));
        for (size_t i = 0; !plain && i < bytes; i++)
            length += visible_form(form + length, (unsigned char)text[at + i]);
        if (plain)
            length = bytes;
        if (length >= capacity - out)
            break;
        memcpy(into + out, plain ? text + at : form, length);
        out += length;
    }
    into[out] = '\0';
    return out;
}
