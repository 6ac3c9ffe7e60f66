/* SPDX-License-Identifier: MIT */
/*
 * nfc.h - the Unicode normal forms NFC, NFD, NFKC, and NFKD as Hugging Face tokenizers computes them, which is with the
 * tables of Unicode 9. Characters of later versions are therefore not changed or reordered. nfc.c explains the method.
 */
#ifndef TOKMAP_UNICODE_NFC_H
#define TOKMAP_UNICODE_NFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code_search.h"
#include "common/bytes_buffer.h"
#include "nfc_tables.h"

/* The working memory of one thread, kept between calls. Initialize with zeros. */
struct nfc_scratch {
    struct bytes_buffer codes, sorted; /* uint64_t each: combining class << 32 | code point */
    struct bytes_buffer made;          /* the result of nfc_find, UTF-8 */
    bool lacks_memory;                 /* set by nfc_find; the caller resets it */
    enum normal_form form;             /* set before the first use; zero, the default, is FORM_NFC */
    bool fine;                         /* set by the caller: nfc_find returns the smallest parts, in more time */
    bool ready;                        /* `search` is filled */
    struct code_search search;         /* for unstable characters */
    struct code_block block;           /* of the text that nfc_find was last called with */
};
/* To be called between documents: frees memory that an unusually long run of marks needed. */
void nfc_scratch_trim(struct nfc_scratch *scratch);
void nfc_scratch_free(struct nfc_scratch *scratch);

/* Finds the first part of text[at..count) that is not in the normal form. Returns the offset where it begins, sets *end
 * to the offset where it ends, and writes its normal form to scratch->made, valid until the next call. Returns `count`
 * if there is no such part, and also if memory is lacking (scratch->lacks_memory). The text is valid UTF-8, and `at` is
 * 0 or an *end of an earlier call: text before and after the part does not influence its normal form. */
size_t nfc_find(struct nfc_scratch *scratch, const uint8_t *text, size_t at, size_t count, size_t *end);

/* Returns the characters that the characters before them can change, or that have no place in the normal form. */
const struct code_bits *nfc_unstable(enum normal_form form);

/* Appends the normal form of `count` bytes of valid UTF-8. Returns false if memory is lacking. */
bool nfc_append(struct nfc_scratch *scratch, struct bytes_buffer *into, const uint8_t *text, size_t count);

#endif
