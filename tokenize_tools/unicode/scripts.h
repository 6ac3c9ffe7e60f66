/* SPDX-License-Identifier: MIT */
/*
 * scripts.h - the scripts of characters, for the step UnicodeScripts. make_unicode.py generates scripts_tables.c by
 * asking Hugging Face tokenizers, where Hiragana, Katakana, and Han are one script.
 */
#ifndef TOKMAP_UNICODE_SCRIPTS_H
#define TOKMAP_UNICODE_SCRIPTS_H

#include <stdint.h>

#define SCRIPT_SPANS 852
#define SCRIPT_ANY 0 /* of the space, and of characters without a script */

struct script_span {
    uint32_t first, last; /* both included */
    uint8_t script;
};
extern const struct script_span script_spans[SCRIPT_SPANS]; /* ascending; what is in none has SCRIPT_ANY */

/* Returns the number of a character's script. */
uint8_t code_script(uint32_t code);

#endif
