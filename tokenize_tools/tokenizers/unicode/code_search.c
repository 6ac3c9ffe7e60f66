/* SPDX-License-Identifier: MIT */
/*
 * code_search.c - which characters of a text are in a set, first by their first two bytes.
 *
 * The idea. Whether a character is in the set is a bit of a large table, which has to be looked up for one character
 * after another. But characters that begin with the same two bytes are neighbors in Unicode, 64 of them if they have
 * three bytes, and mostly none of them is in the set. One bit for each pair of first bytes says so; the bits for all
 * characters of three bytes take 128 bytes, which are two registers of AVX-512, or eight tables for shuffles of AVX2.
 * So 64 bytes of text are looked up at once, and only a character whose pair has a bit needs a look at the large table.
 *
 * Example: the set of what NFC changes, and the letters of "\u3042\u2019", E3 81 82 and E2 80 99. No character from
 * E3 81 80 to E3 81 BF is in the set, so the first one needs no further look. U+2000, E2 80 80, is replaced by NFC, so
 * the second one is looked up; it is not in the set, either.
 */
#include "code_search.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "text/code_point.h"

void code_bits_add_runs(struct code_bits *set, bool (*run)(int which, uint32_t code, uint32_t *end), int which)
{
    for (uint32_t code = 0, end; code < CODES; code = end) {
        end = CODES;
        if (run(which, code, &end))
            for (uint32_t next = code; next < end; next++)
                code_bits_add(set, next);
    }
}

bool code_bits_have(const struct code_bits *set, const uint8_t *text)
{
    size_t bytes;
    const uint32_t code = code_point_get(text, &bytes);
    return set->words[code >> 6] >> (code & 63) & 1;
}

#if defined(__x86_64__)
uint64_t code_search_each(const struct code_bits *set, const uint8_t *text, uint64_t doubtful)
{
    uint64_t found = 0;
    for (; doubtful; doubtful &= doubtful - 1) {
        const uint32_t at = (uint32_t)__builtin_ctzll(doubtful);
        const uint8_t *bytes = text + at;
        uint64_t has;
        if (__builtin_expect(bytes[0] >= 0xF0, 0)) {
            has = code_bits_have(set, bytes);
        } else {
            const uint32_t three = bytes[0] >= 0xE0, first = bytes[0] & 31u;
            const uint32_t row = three ? (first & 15) << 6 | (bytes[1] & 63) : first;
            has = set->words[row] >> (bytes[1 + three] & 63) & 1;
        }
        found |= has << at;
    }
    return found;
}
#endif

void code_search_init(struct code_search *search, const struct code_bits *set, enum cpu_variant variant)
{
    memset(search, 0, sizeof *search);
    search->set = set;
    for (uint32_t code = 0; code < 128; code++)
        if (set->words[code >> 6] >> (code & 63) & 1) {
            search->any_ascii = true;
            search->ascii[code] = 255;
            search->ascii_rows[code & 15] |= (uint8_t)(1 << (code >> 4));
        }
    for (uint32_t pair = 0; pair < 0x10000 / 64; pair++) /* U+0000 to U+FFFF in blocks of 64 */
        search->three[pair / 8] |= (uint8_t)((set->words[pair] != 0) << (pair % 8));
    for (uint32_t lead = 2; lead < 32; lead++)
        search->two[lead] = set->words[lead] ? 255 : 0;
    for (uint32_t word = 0x10000 / 64; word < 0x40000 / 64; word++)
        search->four[word >> 9] |= (uint8_t)((set->words[word] != 0) << (word >> 6 & 7));
    for (uint32_t i = 8; i < sizeof search->four; i++)
        search->four[i] = search->four[i % 8];
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        search->find = code_search_vbmi;
    else if (variant >= CPU_AVX2)
        search->find = code_search_avx2;
#endif
    (void)variant;
}

static inline bool is_ascii_32(const uint8_t *text)
{
    return !((load64(text) | load64(text + 8) | load64(text + 16) | load64(text + 24)) & UINT64_C(0x8080808080808080));
}

/* Does the same as code_search_next, without `find`. */
static size_t next_one(const struct code_search *search, const uint8_t *text, size_t at, size_t count)
{
    const uint64_t *words = search->set->words;
    while (at < count) {
        const uint8_t lead = text[at];
        if (lead < 0x80) {
            if (search->any_ascii) {
                while (at < count && text[at] < 0x80 && !search->ascii[text[at]])
                    at++;
                if (at < count && text[at] < 0x80)
                    break;
                continue;
            }
            while (count - at >= 64 && is_ascii_32(text + at) && is_ascii_32(text + at + 32))
                at += 64;
            while (at < count && text[at] < 0x80)
                at++;
        } else if (lead < 0xE0) {
            if (words[lead & 31] >> (text[at + 1] & 63) & 1)
                break;
            at += 2;
        } else if (lead < 0xF0) {
            if (words[(lead & 15) << 6 | (text[at + 1] & 63)] >> (text[at + 2] & 63) & 1)
                break;
            at += 3;
        } else {
            if (code_bits_have(search->set, text + at))
                break;
            at += 4;
        }
    }
    return at;
}

static size_t next_found(const struct code_search *search, const uint8_t *text, size_t at, size_t count,
                         struct code_block *block)
{
    if (!search->find)
        return next_one(search, text, at, count);
    if (at - block->at < 64) {
        const uint64_t rest = block->found >> (at - block->at);
        if (rest)
            return at + (size_t)__builtin_ctzll(rest);
        at = block->at + 64;
    }
    const uint64_t found = search->find(search, text, &at, count);
    if (found) {
        block->at = at;
        block->found = found;
        return at + (size_t)__builtin_ctzll(found);
    }
    while (at < count && (text[at] & 0xC0) == 0x80) /* the rest of a character that began in the last block */
        at++;
    return next_one(search, text, at, count);
}

size_t code_search_next(const struct code_search *search, const uint8_t *text, size_t at, size_t count,
                        struct code_block *block)
{
    assert(search->set && at <= count);
    if (at < block->from || at > block->next) {
        block->from = at;
        block->next = next_found(search, text, at, count, block);
    }
    return block->next;
}
