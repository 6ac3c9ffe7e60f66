/* SPDX-License-Identifier: MIT */
/* base64.h - decodes the base64 texts in which rank files and tekken.json store the bytes of tokens. */
#ifndef TOKMAP_VOCABULARY_BASE64_H
#define TOKMAP_VOCABULARY_BASE64_H

#include <stdint.h>

/* Decodes `count` characters of base64 into `into`, which must have room for count / 4 * 3 bytes. Returns the number of
 * bytes decoded, or 0 if the text is empty, longer than 16 MiB, or not base64. */
uint32_t base64_decode(uint8_t *into, const uint8_t *text, uint64_t count);

#endif
