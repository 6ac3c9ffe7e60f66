/* SPDX-License-Identifier: MIT */
/* sp_spaces.c - see sp_spaces.h. */
#include "sp_spaces.h"

#include <string.h>

#include "common/bytes.h"

bool sp_spaces_copy(struct bytes_buffer *block, const uint8_t *text, size_t count)
{
    if (!bytes_reserve(block, count + 8))
        return false;
    const uint8_t *end = text + count;
    while (text < end) {
        const uint8_t *mark = memchr(text, 0xE2, (size_t)(end - text));
        size_t plain = mark ? (size_t)(mark - text) : (size_t)(end - text);
        memcpy(block->bytes + block->count, text, plain);
        block->count += plain;
        text += plain;
        if (!mark)
            break;
        if (end - text >= 3 && text[1] == 0x96 && text[2] == 0x81) {
            block->bytes[block->count++] = ' ';
            text += 3;
        } else {
            block->bytes[block->count++] = *text++;
        }
    }
    return true;
}

/* Returns the high bits of the bytes that are spaces. */
static inline uint64_t space_bits(uint64_t eight)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7F, other = eight ^ 0x2020202020202020;
    return ~(((other & low) + low) | other | low);
}

/* Appends the text without the spaces that are removed. */
static void strip(struct bytes_buffer *into, bool escape, const uint8_t *text, uint64_t count)
{
    const uint8_t *at = text, *end = at + count;
    uint8_t *made = into->bytes + into->count; /* not in *into, which bytes that are stored could be */
    for (bool after_space = true; at < end; at++) {
        while (end - at >= 8) { /* eight bytes in which no space comes after another one */
            const uint64_t eight = load64(at), spaces = space_bits(eight);
            if (spaces & (spaces << 8 | (uint64_t)after_space << 7))
                break;
            memcpy(made, at, 8);
            made += 8;
            at += 8;
            after_space = spaces >> 63;
        }
        if (at == end)
            break;
        if (!after_space || *at != ' ')
            *made++ = *at;
        after_space = *at == ' ';
    }
    for (;;) {
        if (made > into->bytes && made[-1] == ' ')
            made--;
        else if (escape && made - into->bytes >= 3 && !memcmp(made - 3, SP_MARK, 3))
            made -= 3;
        else
            break;
    }
    into->count = (size_t)(made - into->bytes);
}

bool sp_spaces_arrange(struct bytes_buffer *into, const struct sp_model *model, const uint8_t **text, uint64_t *count)
{
    if (!model->remove_spaces && !model->suffix)
        return true;
    into->count = 0;
    if (!bytes_reserve(into, (size_t)*count + 1))
        return false;
    if (model->remove_spaces) {
        uint64_t spaces = 0;
        while (spaces < *count && (*text)[spaces] == ' ')
            spaces++;
        strip(into, model->escape, *text, *count);
        if (model->suffix && (spaces < *count || !*count))
            into->bytes[into->count++] = ' ';
    } else {
        (void)bytes_append(into, *text, (size_t)*count); /* there is room */
        into->bytes[into->count++] = ' ';
    }
    *text = into->bytes;
    *count = into->count;
    return true;
}
