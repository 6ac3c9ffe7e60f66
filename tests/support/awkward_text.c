/* SPDX-License-Identifier: MIT */
/* awkward_text.c - see awkward_text.h. */
#include "awkward_text.h"

#include <stdlib.h>
#include <string.h>

#include "text/code_point.h"

static uint64_t random_state;

void awkward_seed(uint64_t seed)
{
    random_state = seed;
}

uint32_t awkward_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) * n >> 31);
}

/* Characters of each class that the rules of pre-tokenizers name, with one to four bytes; strings that the rules name;
 * and characters that look like these. */
/* clang-format off */
const char *const awkward_atoms[] = {
    "a", "b", "s", "t", "l", "e", "re", "S", "LL", "A", "B", "Zz", "the", " ", "  ", "\n", "\r\n", "\t", "\n\n",
    "   ", "/", "//", "'", "'s", "'S", "'ll", "'Re", "'t", "'ve", "'d", "'m", "\xC5\xBF", "'\xC5\xBF", "1", "22",
    "333", "4444", "\xD9\xA3", "\xE0\xA5\xA7", "\xEF\xBC\x91", "\xF0\x9D\x9F\x98", "\xC2\xBD", ".", ",", "(", ")",
    "!!", "--", "\"", "_", "$", "+", "\xC3\xA9", "\xC3\x89", "\xC3\x9F", "\xC7\x85", "\xCA\xB0", "\xC2\xAA",
    "\xD0\x96", "\xD0\xB6", "\xD8\xB9", "\xE4\xB8\xAD", "\xE6\x96\x87", "\xE3\x81\x82", "\xE3\x82\xAB",
    "\xE3\x83\xBC", "\xE3\x80\x82", "\xE3\x80\x80", "\xE3\x80\x85",
    "\xE3\x83\xBB", "\xE3\x82\xA0", "\xE3\x82\x9B", "\xE3\x82\x99", "\xE3\x82\x97", "\xEA\xB0\x80", "\xE0\xB8\x81", "\xE0\xB8\xB1",
    "\xE0\xA4\x95", "\xE0\xA5\x8D", "\xCC\x81", "\xCC\x88", "\xE2\x83\xA3", "\xEF\xB8\x8F", "\xF0\x9F\x98\x80",
    "\xF0\x9F\x87\xA9", "\xE2\x80\x8D", "\xE2\x80\x8B", "\xEF\xBB\xBF", "\xC2\xA0", "\xC2\x85", "\xE2\x80\x83",
    "\xE2\x80\xA8", "\xE2\x80\x94", "\xE2\x88\x91", "\xC2\xAB", "\x01", "\x7F", "\xC2\xAD", "\xF0\xA0\x80\x80",
    "\xF0\x90\x90\x80", "\xF0\x90\x90\xA8", "\xEE\x80\x80", "\xE2\x85\xA3", "\xE2\x93\x90",
};
/* clang-format on */
const size_t awkward_atom_count = sizeof awkward_atoms / sizeof awkward_atoms[0];

void awkward_text(uint8_t *text, size_t count)
{
    const uint32_t chosen = 1 + awkward_below(12);
    const char *choice[12];
    for (uint32_t i = 0; i < chosen; i++)
        choice[i] = awkward_atoms[awkward_below((uint32_t)awkward_atom_count)];
    const uint32_t longest = awkward_below(20) ? 3 : 1 + awkward_below(3000);
    for (size_t at = 0; at < count;) {
        const char *atom = choice[awkward_below(chosen)];
        const size_t bytes = strlen(atom);
        for (uint32_t repeat = awkward_below(6) ? 1 : 1 + awkward_below(longest); repeat && at < count; repeat--) {
            if (at + bytes > count) {
                memset(text + at, 'x', count - at);
                at = count;
                break;
            }
            memcpy(text + at, atom, bytes);
            at += bytes;
        }
    }
}

int awkward_share(void)
{
    const char *given = getenv("TEST_SHARE");
    const int share = given ? atoi(given) : 1;
    return share > 1 ? share : 1;
}

int awkward_rounds(int usual)
{
    const int share = awkward_share();
    return share > 1 ? (usual + share - 1) / share : usual;
}

size_t awkward_every_character(uint8_t *text, uint32_t first, uint32_t step)
{
    size_t count = 0;
    for (uint32_t i = 0; i < AWKWARD_CODES; i++) {
        const uint32_t code = (uint32_t)((first + (uint64_t)i * step) % AWKWARD_CODES);
        if (code < 0xD800 || code > 0xDFFF)
            count += code_point_put(text + count, code);
    }
    return count;
}
