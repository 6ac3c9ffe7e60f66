/* SPDX-License-Identifier: MIT */
/*
 * code_sets.h - sets, scripts, and lower case of code points, for normalizers, pre-tokenizer steps, and patterns, as
 * Hugging Face tokenizers defines them, and what str.lower() of Python asks for. make_unicode.py generates
 * code_tables.c by asking both.
 */
#ifndef TOKMAP_UNICODE_CODE_SETS_H
#define TOKMAP_UNICODE_CODE_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/code_point.h"

/* clang-format off */
enum code_set_name {
    /* Categories and scripts in patterns, of Unicode 16: */
    CODE_LU, CODE_LL, CODE_LT, CODE_LM, CODE_LO, CODE_MN, CODE_MC, CODE_ME, CODE_ND, CODE_NL, CODE_NO, CODE_PC, CODE_PD,
    CODE_PS, CODE_PE, CODE_PI, CODE_PF, CODE_PO, CODE_SM, CODE_SC, CODE_SK, CODE_SO, CODE_ZS, CODE_ZL, CODE_ZP, CODE_CC,
    CODE_CF, CODE_CO, CODE_CN,
    CODE_NUMERIC,      /* of the step Digits: \p{N} of Unicode 17 */
    CODE_PUNCTUATION,  /* of the step Punctuation: ASCII punctuation and symbols, and \p{P} of Unicode 8 */
    CODE_WORD,         /* \w in brackets of a pattern */
    CODE_WORD_RUST,    /* \w of the step Whitespace and for the neighbors of single_word tokens */
    CODE_BERT_CONTROL, /* what clean_text of BertNormalizer takes out */
    CODE_BERT_MARKS,   /* what its strip_accents takes out of decomposed text */
    CODE_MARKS,        /* what StripAccents takes out */
    CODE_NMT,          /* what Nmt takes out or makes a space of */
    CODE_NMT_REMOVED,  /* what Nmt takes out */
    /* Of Unicode 14, for str.lower(): */
    CODE_CASED,        /* cased, and not case-ignorable */
    CODE_CASE_IGNORED, /* case-ignorable */
    CODE_LOWER_LATER,  /* what Lowercase changes, and str.lower() does not */
    CODE_ARABIC, CODE_ARMENIAN, CODE_BENGALI, CODE_BOPOMOFO, CODE_CYRILLIC, CODE_DEVANAGARI, CODE_GEORGIAN, CODE_GREEK,
    CODE_HAN, CODE_HANGUL, CODE_HEBREW, CODE_HIRAGANA, CODE_KATAKANA, CODE_KHMER, CODE_LATIN, CODE_TAMIL, CODE_THAI,
    CODE_SETS
};
/* clang-format on */

struct code_range {
    uint32_t first, last; /* both included */
};
/* The characters of some categories, with the opposite for those in the ranges. */
struct code_set {
    uint32_t categories; /* bits of CODE_LU to CODE_CN */
    const struct code_range *others;
    size_t count;
};
struct code_span {
    uint32_t first, last;
    uint8_t number;
};
/* The characters first, first + step, ..., last become themselves + delta. */
struct case_range {
    uint32_t first, last;
    int32_t delta;
    uint32_t step;
};

#define CATEGORY_SPANS 626
#define SCRIPT_SPANS 852
#define CASE_RANGES 186
#define SCRIPT_ANY 0 /* of the space, and of characters without a script */

/* The tables, each ascending and disjoint. */
extern const struct code_set code_sets[CODE_SETS];
extern const struct code_span category_spans[CATEGORY_SPANS]; /* for what its class does not tell; see code_sets.c */
extern const struct code_span script_spans[SCRIPT_SPANS];     /* what is in none has SCRIPT_ANY */
extern const struct case_range case_ranges[CASE_RANGES];

/* Returns the first of these ascending ranges that ends at `code` or after it, or NULL. A range is a struct of `size`
 * bytes that begins with the first code point and the last one. */
static inline const void *code_find(const void *ranges, size_t size, size_t count, uint32_t code)
{
    const uint8_t *bytes = ranges;
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        uint32_t last;
        memcpy(&last, bytes + middle * size + sizeof last, sizeof last);
        if (last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? bytes + low * size : NULL;
}

/* Returns whether the set contains the code point. */
bool code_set_has(enum code_set_name name, uint32_t code);

/* Does the same, and reduces *end: the code points before it are like this one. */
bool code_set_run(const struct code_set *set, uint32_t code, uint32_t *end);

/* Returns the number of a character's script, for the step UnicodeScripts: Hiragana, Katakana, and Han are one. */
uint8_t code_script(uint32_t code);

/* Returns the lower case of one character, or the character itself. That of U+0130 is i, without the dot that would be
 * a second character (U+0307). */
uint32_t code_lower(uint32_t code);

/* \s in all engines: the property White_Space. */
static inline bool code_is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
           code == 0x3000;
}

/* Returns whether handle_chinese_chars of BertNormalizer puts spaces around a character. */
static inline bool code_is_chinese(uint32_t code)
{
    return (code >= 0x3400 && code <= 0x4DBF) || (code >= 0x4E00 && code <= 0x9FFF) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x20000 && code <= 0x2A6DF) ||
           (code >= 0x2A700 && code <= 0x2B73F) || (code >= 0x2B740 && code <= 0x2B81F) ||
           (code >= 0x2B920 && code <= 0x2CEAF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

/* Returns how many bytes of a text are left without the white space at its end. */
size_t code_spaces_trimmed(const uint8_t *text, size_t count);

/* ---- lower case of texts as Python's str.lower() has it, for `pack --dedup minhash`, which reproduces what datatrove
 * compares ---- */

#define LOWER_SIGMA 0x3A3u /* it becomes U+03C3, or U+03C2 at the end of a word */

/* Returns the lower case of one character, or the character itself. Of U+0130 it is i, without the dot that Python adds
 * as a second character (U+0307); of LOWER_SIGMA it is U+03C3. */
uint32_t lower_case(uint32_t code);

/* Returns true if a sigma at text[at .. at + 2) becomes U+03C2: characters that have no influence are passed over
 * (quotes, marks, and others), then a letter with case is before it and none after it. The text is valid UTF-8. */
bool lower_sigma_is_final(const uint8_t *text, size_t count, size_t at);

#endif
