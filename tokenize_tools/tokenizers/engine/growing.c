/* SPDX-License-Identifier: MIT */
#include "growing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append(struct growing *g, const void *bytes, size_t count)
{
    if (g->room - g->count < count && !g->failed) {
        const size_t wanted = g->count + count + g->room + 4096;
        char *grown = realloc(g->bytes, wanted);
        g->failed = !grown;
        if (grown) {
            g->bytes = grown;
            g->room = wanted;
        }
    }
    if (g->failed || !count)
        return;
    memcpy(g->bytes + g->count, bytes, count);
    g->count += count;
}

void append_text(struct growing *g, const char *text)
{
    append(g, text, strlen(text));
}

void append_number(struct growing *g, uint64_t number)
{
    char text[24];
    append(g, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, number));
}

void append_escaped(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; i++) {
        char text[8];
        if (bytes[i] >= 0x20 && bytes[i] != '"' && bytes[i] != '\\')
            continue;
        append(g, bytes + done, i - done);
        append(g, text, (size_t)snprintf(text, sizeof text, bytes[i] < 0x20 ? "\\u%04x" : "\\%c", bytes[i]));
        done = i + 1;
    }
    append(g, bytes + done, count - done);
}

void append_string(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    append(g, "\"", 1);
    append_escaped(g, bytes, count);
    append(g, "\"", 1);
}

void append_base64(struct growing *g, const uint8_t *bytes, uint64_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (uint64_t i = 0; i < count; i += 3) {
        const uint64_t left = count - i;
        const uint32_t three =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0u);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63], left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};
        append(g, four, 4);
    }
}
