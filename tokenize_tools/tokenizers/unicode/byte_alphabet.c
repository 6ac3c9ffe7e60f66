/* SPDX-License-Identifier: MIT */
/* byte_alphabet.c - see byte_alphabet.h. 0x00-0x20, 0x7F-0xA0, and 0xAD are the bytes that do not represent
 * themselves. */
#include "byte_alphabet.h"

#include <string.h>

uint32_t byte_character(uint8_t byte)
{
    if ((byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD))
        return byte;
    return byte <= 0x20 ? 0x100u + byte : byte < 0xA1 ? 0x121u + byte - 0x7F : 0x143u;
}

int character_byte(uint32_t code)
{
    if (code < 0x100)
        return byte_character((uint8_t)code) == code ? (int)code : -1;
    if (code > 0x143)
        return -1;
    return code < 0x121 ? (int)code - 0x100 : code < 0x143 ? (int)code - 0x121 + 0x7F : 0xAD;
}

static int hexadecimal(uint8_t digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

int byte_named(const uint8_t *text, uint32_t count)
{
    if (count != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    const int high = hexadecimal(text[3]), low = hexadecimal(text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}
