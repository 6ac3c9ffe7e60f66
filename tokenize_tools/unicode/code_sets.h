/* SPDX-License-Identifier: MIT */
/*
 * code_sets.h - sets of code points, for normalizers, pre-tokenizer steps, and patterns, as Hugging Face tokenizers defines them.
 * make_unicode.py generates code_sets.c by asking that library.
 */
#ifndef TOKMAP_UNICODE_CODE_SETS_H
#define TOKMAP_UNICODE_CODE_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
enum code_set_name {
    CODE_NUMERIC,      /* of the step Digits: \p{N} of Unicode 17 */
    CODE_PUNCTUATION,  /* of the step Punctuation: ASCII punctuation and symbols, and \p{P} of Unicode 8 */
    CODE_WORD_RUST,    /* \w of the step Whitespace and for the neighbors of single_word tokens */
    CODE_BERT_CONTROL, /* what clean_text of BertNormalizer takes out */
    CODE_BERT_MARKS,   /* what its strip_accents takes out of decomposed text */
    /* Categories and scripts in patterns, of Unicode 16: */
    CODE_LU, CODE_LL, CODE_LT, CODE_LM, CODE_LO, CODE_MN, CODE_MC, CODE_ME, CODE_ND, CODE_NL, CODE_NO, CODE_PC, CODE_PD,
    CODE_PS, CODE_PE, CODE_PI, CODE_PF, CODE_PO, CODE_SM, CODE_SC, CODE_SK, CODE_SO, CODE_ZS, CODE_ZL, CODE_ZP, CODE_CC,
    CODE_CF, CODE_CO, CODE_CN,
    CODE_ARABIC, CODE_ARMENIAN, CODE_BENGALI, CODE_BOPOMOFO, CODE_CYRILLIC, CODE_DEVANAGARI, CODE_GEORGIAN, CODE_GREEK,
    CODE_HAN, CODE_HANGUL, CODE_HEBREW, CODE_HIRAGANA, CODE_KATAKANA, CODE_KHMER, CODE_LATIN, CODE_TAMIL, CODE_THAI,
    CODE_SETS
};
/* clang-format on */

struct code_range {
    uint32_t first, last; /* both included */
};
struct code_set {
    const struct code_range *ranges; /* ascending, disjoint, not adjacent */
    size_t count;
};

extern const struct code_set code_sets[CODE_SETS];

/* Returns the first of these ascending ranges that ends at `code` or after it, or NULL. */
static inline const struct code_range *code_range_from(const struct code_range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? &ranges[low] : NULL;
}

/* Returns whether the set contains the code point. */
static inline bool code_set_has(enum code_set_name name, uint32_t code)
{
    const struct code_range *range = code_range_from(code_sets[name].ranges, code_sets[name].count, code);
    return range && range->first <= code;
}

/* \s in all engines: the property White_Space. */
static inline bool code_is_space(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
           code == 0x3000;
}

/* The characters around which handle_chinese_chars of BertNormalizer puts spaces. */
static inline bool code_is_chinese(uint32_t code)
{
    return (code >= 0x3400 && code <= 0x4DBF) || (code >= 0x4E00 && code <= 0x9FFF) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x20000 && code <= 0x2A6DF) ||
           (code >= 0x2A700 && code <= 0x2B73F) || (code >= 0x2B740 && code <= 0x2B81F) ||
           (code >= 0x2B920 && code <= 0x2CEAF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

#endif
