/* SPDX-License-Identifier: MIT */
/*
 * scripts.h - the script of each character, as SentencePiece and Hugging Face tokenizers use it: Hiragana, Katakana and
 * U+30FC count as Han, and what has no script as Common. make_scripts.py generates the table.
 */
#ifndef TOKMAP_UNICODE_SCRIPTS_H
#define TOKMAP_UNICODE_SCRIPTS_H

#include <stdint.h>

enum script_number { SCRIPT_COMMON, SCRIPT_INHERITED, SCRIPT_HAN, SCRIPT_LATIN }; /* the others have only numbers */
#define SCRIPTS 163

struct script_run {
    uint32_t first; /* code point; the run ends where the next one begins, and the last one at U+10FFFF */
    uint32_t script;
};
#define SCRIPT_RUNS 1465
extern const struct script_run script_runs[SCRIPT_RUNS]; /* ascending; the first run begins at 0 */

#endif
