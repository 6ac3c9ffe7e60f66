/* awkward_text.h - text made to be awkward for tokenizers: characters of every class, alike ones, long runs. */
#ifndef TOKMAP_TESTS_AWKWARD_TEXT_H
#define TOKMAP_TESTS_AWKWARD_TEXT_H

#include <stddef.h>
#include <stdint.h>

extern const char *const awkward_atoms[];
extern const size_t awkward_atom_count;

void awkward_seed(uint64_t seed);
uint32_t awkward_below(uint32_t n);
/* How many rounds a test goes: as many as usual, or, where TEST_SHARE=N says that the machine is slow, an N-th of them. */
int awkward_rounds(int usual);
/* A text of `count` bytes: atoms from a small random choice (so that rare ones meet), some repeated. Valid UTF-8. */
void awkward_text(uint8_t *text, size_t count);

#endif
