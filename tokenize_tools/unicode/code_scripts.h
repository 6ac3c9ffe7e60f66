/* SPDX-License-Identifier: MIT */
/*
 * code_scripts.h - the scripts of characters, for the step UnicodeScripts. make_unicode.py generates scripts_tables.c
 * by asking Hugging Face tokenizers, where Hiragana, Katakana, and Han are one script.
 */
#ifndef TOKMAP_UNICODE_CODE_SCRIPTS_H
#define TOKMAP_UNICODE_CODE_SCRIPTS_H

#include "scripts_tables.h"

/* Returns the number of a character's script. */
uint8_t code_script(uint32_t code);

#endif
