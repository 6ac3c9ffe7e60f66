/* SPDX-License-Identifier: MIT */
/* model_made.c - see model_made.h. */
#include "model_made.h"

#include <stdlib.h>
#include <string.h>

void made_put(struct made_bytes *made, const void *bytes, size_t count)
{
    if (made->count + count > made->room) {
        made->room = 2 * (made->count + count) + 64;
        made->bytes = realloc(made->bytes, made->room);
        if (!made->bytes)
            abort();
    }
    if (count)
        memcpy(made->bytes + made->count, bytes, count);
    made->count += count;
}

void made_text(struct made_bytes *made, const char *text)
{
    made_put(made, text, strlen(text));
}

void made_base64(struct made_bytes *made, const struct made_bytes *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes->count; i += 3) {
        const size_t count = bytes->count - i < 3 ? bytes->count - i : 3;
        uint32_t three = 0;
        char four[4];
        for (size_t j = 0; j < 3; j++)
            three = three << 8 | (j < count ? bytes->bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            four[j] = j <= count ? digits[three >> (18 - 6 * j) & 63] : '=';
        made_put(made, four, 4);
    }
}

static void put_varint(struct made_bytes *made, uint64_t value)
{
    uint8_t byte;
    for (; value > 127; value >>= 7) {
        byte = (uint8_t)(value | 128);
        made_put(made, &byte, 1);
    }
    byte = (uint8_t)value;
    made_put(made, &byte, 1);
}

static void put_number(struct made_bytes *made, uint32_t number, uint64_t value)
{
    put_varint(made, (uint64_t)number << 3);
    put_varint(made, value);
}

static void put_field(struct made_bytes *made, uint32_t number, const void *bytes, size_t count)
{
    put_varint(made, (uint64_t)number << 3 | 2);
    put_varint(made, count);
    made_put(made, bytes, count);
}

void made_piece(struct made_bytes *model, const void *text, size_t bytes, float score, enum made_kind kind)
{
    struct made_bytes inner = {0};
    put_field(&inner, 1, text, bytes);
    put_varint(&inner, 2 << 3 | 5);
    made_put(&inner, &score, sizeof score);
    if (kind != MADE_NORMAL)
        put_number(&inner, 3, kind);
    put_field(model, 1, inner.bytes, inner.count);
    free(inner.bytes);
}

void made_specs(struct made_bytes *model, enum made_type type, const struct made_bytes *charsmap)
{
    struct made_bytes trainer = {0}, normalizer = {0};
    put_number(&trainer, 3, type);
    put_field(model, 2, trainer.bytes, trainer.count);
    made_text(&normalizer, "\x0a\x04made");
    if (charsmap)
        put_field(&normalizer, 2, charsmap->bytes, charsmap->count);
    put_field(model, 3, normalizer.bytes, normalizer.count);
    free(trainer.bytes);
    free(normalizer.bytes);
}

uint32_t made_unit(uint32_t label, uint32_t offset, int ends)
{
    return offset << 10 | (ends ? 1u << 8 : 0) | label;
}

uint32_t made_value(uint32_t value)
{
    return value | 1u << 31;
}

void made_map_letter(struct made_map *map, char from, uint32_t value)
{
    /* The children of the root are at its index, 0, ^ 256 ^ their byte; those of a letter in the block after that. */
    const uint32_t letter = 256 ^ (uint8_t)from, block = 512;
    memset(map, 0, sizeof *map);
    map->count = 768;
    map->units[0] = made_unit(0, 256, 0);
    map->units[letter] = made_unit((uint8_t)from, letter ^ block, 1);
    map->units[block] = made_value(value);
}

void made_charsmap(struct made_bytes *charsmap, const struct made_map *map, uint32_t size, const void *texts,
                   size_t bytes)
{
    const uint32_t written = size == UINT32_MAX ? map->count * 4 : size;
    made_put(charsmap, &written, 4);
    made_put(charsmap, map->units, (size_t)map->count * 4);
    made_put(charsmap, texts, bytes);
}
