/* SPDX-License-Identifier: MIT */
/*
 * wp_characters.c - makes the table of wp_characters.h. Most blocks of characters have one entry for all of them, such
 * as Chinese characters or those that are not assigned. Such blocks are shared, and only the others are filled
 * character by character.
 */
#include "wp_characters.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "unicode/nfc_tables.h"

#define BLOCK (1u << WP_BLOCK_BITS)
#define ALWAYS_MIXED 0x3100u /* below it, blocks are filled character by character: white space is below it */
#define SEVERAL_MOST 8       /* characters that one becomes, at most; more than Unicode has */

static bool is_syllable(uint32_t code)
{
    return code >= 0xAC00 && code < 0xAC00 + 11172;
}

static uint32_t entry_of(enum wp_action action, uint32_t rest)
{
    return (uint32_t)action | rest << WP_ACTION_BITS;
}

/* Returns the entry of a character that normalizing has left in place of `code`. */
static uint32_t left_entry(uint32_t code, uint32_t left, bool alone, bool sorts)
{
    if (code_is_space(left))
        return WP_SPACE;
    if (alone || code_set_has(CODE_PUNCTUATION, left))
        return left == code ? WP_ALONE : entry_of(WP_PUT_ALONE, left);
    if (sorts && nfc_kinds[nfc_blocks[nfc_first[left / 64]][left % 64]].combining_class)
        return entry_of(WP_MARK, left);
    return left == code ? WP_KEEP : entry_of(WP_PUT, left);
}

/* Appends the characters that a character becomes, in small letters if `lower`. Returns how many. */
static uint32_t lower_put(uint32_t code, bool lower, uint32_t *into)
{
    into[0] = lower ? code_lower(code) : code;
    into[1] = 0x307;
    return lower && code == 0x130 ? 2 : 1; /* the only one that becomes several */
}

/* Adds a list of entries. Returns its place, or WP_LIST_END if memory ran out. */
static uint32_t list_add(struct wp_characters *own, const uint32_t *entries, uint32_t count)
{
    if (own->list_count + count + 1 > own->list_room) {
        const uint32_t room = 2 * own->list_room + 64;
        uint32_t *grown = realloc(own->lists, room * sizeof *grown);
        if (!grown)
            return WP_LIST_END;
        own->lists = grown;
        own->list_room = room;
    }
    const uint32_t place = own->list_count;
    memcpy(own->lists + place, entries, count * sizeof *entries);
    own->lists[place + count] = WP_LIST_END;
    own->list_count += count + 1;
    return place;
}

/* Sets the entry of a character. Returns false if memory ran out. */
static bool entry_find(struct wp_characters *own, struct wp_rules rules, uint32_t code, uint32_t *entry)
{
    uint32_t left[SEVERAL_MOST], count = 0, parts = 1;
    const uint32_t *decomposed = rules.strip ? nfc_decomposition(code, &parts) : NULL;
    const bool alone = rules.chinese && code_is_chinese(code);
    *entry = WP_DROP;
    if (rules.clean && code_set_has(CODE_BERT_CONTROL, code))
        return true;
    *entry = WP_SYLLABLE;
    if (rules.strip && is_syllable(code))
        return true;
    for (uint32_t i = 0; i < parts; i++) {
        const uint32_t part = decomposed ? decomposed[i] : code;
        if (!rules.strip || !code_set_has(CODE_BERT_MARKS, part))
            count += lower_put(part, rules.lower, left + count);
        assert(count + 2 <= SEVERAL_MOST);
    }
    for (uint32_t i = 0; i < count; i++)
        left[i] = left_entry(count == 1 ? code : UINT32_MAX, left[i], alone, rules.strip);
    *entry = count ? left[0] : WP_DROP;
    if (count < 2)
        return true;
    const uint32_t place = list_add(own, left, count);
    *entry = entry_of(WP_SEVERAL, place);
    return place != WP_LIST_END;
}

/* Returns whether all characters of the block that begins with `code` are in the set, or none is. */
static bool is_even(enum code_set_name name, uint32_t code)
{
    uint32_t end = code + BLOCK;
    const bool has = code_set_run(&code_sets[name], code, &end);
    for (uint32_t at = end; at < code + BLOCK; at = end) {
        end = code + BLOCK;
        if (code_set_run(&code_sets[name], at, &end) != has)
            return false;
    }
    return true;
}

/* Returns whether the characters of a block may have different entries. */
static bool is_mixed(uint32_t code)
{
    if (code < ALWAYS_MIXED || is_syllable(code) != is_syllable(code + BLOCK - 1) ||
        code_is_chinese(code) != code_is_chinese(code + BLOCK - 1))
        return true;
    const struct case_range *lower = code_find(case_ranges, sizeof *lower, CASE_RANGES, code);
    if (lower && lower->first < code + BLOCK)
        return true;
    for (uint32_t i = 0; i < NFC_SPANS; i++)
        if (nfc_spans[i].first < code + BLOCK && nfc_spans[i].last >= code)
            return true;
    return !is_even(CODE_BERT_CONTROL, code) || !is_even(CODE_BERT_MARKS, code) || !is_even(CODE_PUNCTUATION, code) ||
           nfc_first[code / 64] != nfc_first[code / 64 + 1] || nfc_first[code / 64];
}

/* Adds a block. Returns false if memory ran out. */
static bool block_add(struct wp_characters *own)
{
    if (own->blocks == own->block_room) {
        const uint32_t room = own->block_room + 256;
        uint32_t *grown = realloc(own->entries, (size_t)room * BLOCK * sizeof *grown);
        if (!grown)
            return false;
        own->entries = grown;
        own->block_room = room;
    }
    own->blocks++;
    return true;
}

/* Sets the entries of the characters from `code` on. shared: by entry, the block + 1 in which all have it, for small
 * entries. */
static bool block_fill(struct wp_characters *own, struct wp_rules rules, uint32_t code, uint16_t shared[16])
{
    const bool mixed = is_mixed(code);
    uint32_t entry;
    if (!mixed) {
        if (!entry_find(own, rules, code, &entry))
            return false;
        assert(entry < 16);
        if (shared[entry]) {
            own->firsts[code >> WP_BLOCK_BITS] = (uint16_t)(shared[entry] - 1);
            return true;
        }
        shared[entry] = (uint16_t)(own->blocks + 1);
    }
    if (!block_add(own))
        return false;
    own->firsts[code >> WP_BLOCK_BITS] = (uint16_t)(own->blocks - 1);
    uint32_t *into = own->entries + (size_t)(own->blocks - 1) * BLOCK;
    for (uint32_t i = 0; i < BLOCK; i++)
        if (!entry_find(own, rules, code + i, &into[i]))
            return false;
    return true;
}

static void ascii_fill(struct wp_characters *own)
{
    for (uint32_t code = 0; code < 128; code++) {
        const uint32_t entry = wp_character(own, code), action = entry & ((1u << WP_ACTION_BITS) - 1);
        assert(action <= WP_PUT);
        own->ascii_put[code] = (uint8_t)(action == WP_PUT ? entry >> WP_ACTION_BITS : code);
        own->ascii_is[code] = action == WP_DROP    ? WP_ASCII_DROP
                              : action == WP_SPACE ? 0
                              : action == WP_ALONE ? WP_ASCII_WORD | WP_ASCII_ALONE
                                                   : WP_ASCII_WORD;
    }
}

enum tokmap_status wp_characters_new(struct wp_characters **characters, struct wp_rules rules,
                                     struct tokmap_error *error)
{
    struct wp_characters *own = calloc(1, sizeof *own);
    uint16_t shared[16] = {0};
    bool good = own != NULL;
    *characters = NULL;
    for (uint32_t code = 0; code < 0x110000 && good; code += BLOCK)
        good = block_fill(own, rules, code, shared);
    if (!good) {
        wp_characters_free(own);
        return error_set_memory(error, "a table of characters", sizeof *own);
    }
    ascii_fill(own);
    *characters = own;
    return TOKMAP_OK;
}

void wp_characters_free(struct wp_characters *characters)
{
    if (!characters)
        return;
    free(characters->entries);
    free(characters->lists);
    free(characters);
}
