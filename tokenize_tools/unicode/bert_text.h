/* SPDX-License-Identifier: MIT */
/*
 * bert_text.h - the characters that the BertNormalizer of Hugging Face tokenizers tells apart.
 */
#ifndef TOKMAP_UNICODE_BERT_TEXT_H
#define TOKMAP_UNICODE_BERT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code_sets.h"

#define BERT_CONTROL_RANGES 25
#define BERT_MARK_RANGES 266

extern const struct code_range bert_control[BERT_CONTROL_RANGES]; /* what clean_text takes out */
extern const struct code_range bert_marks[BERT_MARK_RANGES];      /* what strip_accents takes out of decomposed text */

/* Returns the first of these ascending ranges that ends at `code` or after it, or NULL. */
static inline const struct code_range *bert_range_from(const struct code_range *ranges, size_t count, uint32_t code)
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

static inline bool bert_is_control(uint32_t code)
{
    const struct code_range *range = bert_range_from(bert_control, BERT_CONTROL_RANGES, code);
    return range && range->first <= code;
}

static inline bool bert_is_mark(uint32_t code)
{
    const struct code_range *range = bert_range_from(bert_marks, BERT_MARK_RANGES, code);
    return range && range->first <= code;
}

/* Returns whether handle_chinese_chars puts spaces around a character. */
static inline bool bert_is_chinese(uint32_t code)
{
    return (code >= 0x3400 && code <= 0x4DBF) || (code >= 0x4E00 && code <= 0x9FFF) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x20000 && code <= 0x2A6DF) ||
           (code >= 0x2A700 && code <= 0x2B73F) || (code >= 0x2B740 && code <= 0x2B81F) ||
           (code >= 0x2B920 && code <= 0x2CEAF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

#endif
