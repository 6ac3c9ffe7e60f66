/* SPDX-License-Identifier: MIT */
/*
 * colliding.c - prints inputs whose hashes collide in tables whose key is guessed: what someone would send who hopes
 * that the key is a constant of the source. The tables draw their keys, so these inputs cost no more than others.
 *
 *     colliding words  BITS COUNT SEED GUESS    words of a space and 7 letters, without line ends; for short pieces
 *     colliding long   BITS COUNT SEED GUESS    words of a space and 20 letters; for longer pieces
 *     colliding texts  BITS COUNT SEED GUESS    texts of 16 letters and digits, a line each
 *     colliding middle BITS COUNT SEED GUESS    the same, but the hashes have the same bits from bit 32 up
 *     colliding low    BITS COUNT SEED GUESS    the same, from bit 0 up
 *     colliding pairs  BITS COUNT SEED GUESS    COUNT left and COUNT right ids, a pair per line, whose products begin
 *                                               with zeros
 *
 * The highest BITS bits of all hashes are the same, or those that the list names. With BITS 0, the inputs have the same
 * form and do not collide. GUESS is the number of a key: constants that people choose.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/table_key.h"

static const struct table_key guesses[] = {
    {0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u},
    {0, 0},
    {0x9E3779B97F4A7C15u, 0x9E3779B97F4A7C15u},
    {1, 1},
};

static uint64_t state;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void letters(char *into, int count, const char *alphabet, uint64_t size)
{
    for (int i = 0; i < count;)
        for (uint64_t rest = draw(), at = 0; at < 10 && i < count; at++, rest /= size)
            into[i++] = alphabet[rest % size];
}

static void print_texts(const char *kind, unsigned bits, uint64_t count, struct table_key key)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const bool words = !strcmp(kind, "words"), texts = !words && strcmp(kind, "long") != 0;
    const unsigned down = !strcmp(kind, "middle") ? 32 - bits : !strcmp(kind, "low") ? 64 - bits : 0;
    const int length = words ? 8 : texts ? 16 : 21;
    uint64_t wanted = 0, made = 0;
    for (uint64_t tries = 0; made < count; tries++) {
        char text[32] = " ";
        uint64_t low;
        letters(text + !texts, length - !texts, alphabet, texts ? 62 : 26);
        memcpy(&low, text, 8);
        const uint64_t hash =
            words ? table_mix(key, low, (uint64_t)8 << 56) : table_hash(key, (const uint8_t *)text, (uint64_t)length);
        if (!tries)
            wanted = hash; /* with some keys, few hashes begin with zeros */
        if (bits && (hash ^ wanted) << down >> (64 - bits))
            continue;
        (void)printf(texts ? "%s\n" : "%s", text);
        made++;
    }
}

struct choice {
    uint64_t product;
    uint32_t id;
};

static int by_product(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;
    return left->product < right->product ? -1 : left->product > right->product;
}

/* The ids of one side whose product with the factor is smallest, shifted as in a key of two ids. */
static void choose(struct choice *choices, uint32_t ids, uint32_t first, unsigned shift, uint64_t factor,
                   bool colliding)
{
    for (uint32_t i = 0; i < ids; i++)
        choices[i] = (struct choice){colliding ? ((uint64_t)(first + 2 * i) << shift) * factor : i, first + 2 * i};
    qsort(choices, ids, sizeof *choices, by_product);
}

static void print_pairs(unsigned bits, uint32_t count, struct table_key key)
{
    enum { IDS = 400000 };
    struct choice *left = malloc(IDS * sizeof *left), *right = malloc(IDS * sizeof *right);
    if (!left || !right)
        exit(1);
    choose(left, IDS, 1000, 21, key.low | 1, bits);
    choose(right, IDS, 1001, 0, key.low | 1, bits);
    for (uint32_t i = 0; i < count; i++)
        (void)printf("%u %u\n", left[i].id, right[i].id);
    free(left);
    free(right);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        (void)fprintf(stderr, "usage: colliding words|long|texts|middle|low|pairs BITS COUNT SEED GUESS\n");
        return 2;
    }
    const unsigned bits = (unsigned)strtoul(argv[2], NULL, 10);
    const uint64_t count = strtoull(argv[3], NULL, 10);
    const struct table_key key = guesses[strtoull(argv[5], NULL, 10) % (sizeof guesses / sizeof guesses[0])];
    state = strtoull(argv[4], NULL, 10) * 0x2545f4914f6cdd1du + 1;
    if (!strcmp(argv[1], "pairs"))
        print_pairs(bits, (uint32_t)count, key);
    else
        print_texts(argv[1], bits, count, key);
    return 0;
}
