/*
 * nfc.h - canonical composition (NFC) as Hugging Face tokenizers has it: by the tables of Unicode 9, which newer text may
 * differ from. Text is valid UTF-8.
 */
#ifndef TOKMAP_UNICODE_NFC_H
#define TOKMAP_UNICODE_NFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes_buffer.h"

/* What one thread keeps between calls. Zeroed at first. */
struct nfc_scratch {
    struct bytes_buffer codes, sorted; /* uint64_t each: combining class << 32 | code point */
    struct bytes_buffer made;          /* UTF-8 */
    bool lacks_memory;
};
void nfc_scratch_trim(struct nfc_scratch *scratch);
void nfc_scratch_free(struct nfc_scratch *scratch);

/* The first part of text, from `at` on, that is not NFC: where it begins; it ends at *end, and its NFC is scratch->made.
 * `count` if there is none, or if memory is lacking. What is before and behind cannot change it. */
size_t nfc_find(struct nfc_scratch *scratch, const uint8_t *text, size_t at, size_t count, size_t *end);

/* Appends the NFC of text. False: no memory. */
bool nfc_append(struct nfc_scratch *scratch, struct bytes_buffer *into, const uint8_t *text, size_t count);

#endif
