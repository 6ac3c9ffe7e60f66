/* SPDX-License-Identifier: MIT */
/*
 * scanner_piece.h - the reference scanner: finds the end of one piece, character by character.
 *
 * It tries the alternatives of the pattern in their order, as a regular expression engine does, so it is slow but easy
 * to check. The fast scanner (scanner.h) is tested against it and hands it the rare texts that it cannot process
 * itself.
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_PIECE_H
#define TOKMAP_PRETOKENIZE_SCANNER_PIECE_H

#include <stddef.h>
#include <stdint.h>

#include "split_rules.h"

/* Returns the offset at which the piece that starts at text[at] ends: at least at + 1 and at most `count`. `at` must be
 * less than `count` and must be 0 or the end of the previous piece. The text should be UTF-8; on other bytes the result
 * is some offset in the same range. The function reads no byte outside of the text. Any thread may call it. */
size_t scan_piece(const struct split_rules *rules, const uint8_t *text, size_t at, size_t count);

#endif
