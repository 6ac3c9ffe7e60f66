/* SPDX-License-Identifier: MIT */
/* awkward_text.h - text that is awkward for tokenizers: characters of every class, characters that look alike, long
 * runs.
 *
 * All functions share one random state; call them from one thread. */
#ifndef TOKMAP_TESTS_AWKWARD_TEXT_H
#define TOKMAP_TESTS_AWKWARD_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Short UTF-8 strings: single characters, and sequences that rules name, such as "'ll". */
extern const char *const awkward_atoms[];
extern const size_t awkward_atom_count;

void awkward_seed(uint64_t seed);
/* Returns a pseudo-random number below n. */
uint32_t awkward_below(uint32_t n);
/* Returns N if the environment has TEST_SHARE=N, which slow machines set, and else 1. */
int awkward_share(void);
/* Returns the number of rounds that a test runs: `usual`, or an N-th of that with TEST_SHARE=N. */
int awkward_rounds(int usual);
/* Writes a text of `count` bytes of valid UTF-8. It consists of up to 12 different atoms, so that rare ones become
 * neighbors, and some atoms are repeated many times. */
void awkward_text(uint8_t *text, size_t count);

#define AWKWARD_CODES 0x110000 /* code points of Unicode */

/* Writes every character of Unicode once, `step` code points after the one before it, modulo their number: with 1
 * beside its neighbors, with a large step beside distant ones. step: has no factor in common with that number. text:
 * has room for 4 * AWKWARD_CODES bytes. Returns the number of bytes. */
size_t awkward_every_character(uint8_t *text, uint32_t first, uint32_t step);

#endif
