/* SPDX-License-Identifier: MIT */
/*
 * shingles.h - the shingles of a text for `pack --dedup minhash`: hashes of all N consecutive words, as the MinHash of
 * datatrove has them. Near-duplicates are texts that have most of them in common.
 *
 * Words are those of datatrove's simplify_text() (version 0.10) between blanks:
 *
 *     1. The text is in lower case, as by Python's str.lower().
 *     2. A number, digits with perhaps one . or , and more digits, becomes 0. Digits are those of all scripts (Nd).
 *     3. Punctuation, as datatrove lists it, and control characters become blanks, and so does white space.
 *     4. The text is decomposed (NFD), and marks (Mn) are removed.
 *
 * A shingle is the XXH64 of N words in UTF-8 with one blank between two. Example, with N = 3: "It's 3.50 at the CAFÉ!"
 * has the words it s 0 at the cafe and four shingles, the first one of "it s 0". A text with fewer words than N has
 * none.
 *
 * What differs from datatrove: it cuts words further with spaCy, by rules of each language (for English mainly "cannot"
 * into can and not, "dont" into do and nt, and symbols such as the bullet from the word beside them). Here words end at
 * blanks, as they do in datatrove if its word tokenizer is str.split(). And its decomposition knows a few letters of
 * rare scripts that came with Unicode 10 and later, and it sorts other marks than Mn, such as two
 * musical ones in a row.
 */
#ifndef TOKMAP_DEDUP_SHINGLES_H
#define TOKMAP_DEDUP_SHINGLES_H

#include <stdbool.h>
#include <stdint.h>

#include "word_grams.h"

#define SHINGLE_WORDS_MOST 100

struct shingle_table; /* replacement of each character; immutable, for any thread */

struct shingle_table *shingle_table_new(void); /* NULL: no memory */
void shingle_table_free(struct shingle_table *table);

/* The words of one text after the other, for one thread. Begins as zero bytes. */
struct shingle_scan {
    const struct shingle_table *table;
    uint32_t words_each; /* N, 1 to SHINGLE_WORDS_MOST */
    /* Called with the shingles of a text, up to GRAM_BLOCK at once. */
    void (*found)(void *user, const uint64_t *shingles, uint32_t count);
    void *user;
    /* private */
    struct word_grams grams;
    uint64_t shingles[GRAM_BLOCK];
};

/* Finds the shingles of a text, and of a second one that follows it, or NULL. The texts are valid UTF-8. Memory: the
 * last N words, and 64 KiB. Returns false if there is no memory. */
bool shingles_find(struct shingle_scan *scan, const char *text, uint64_t bytes, const char *second,
                   uint64_t second_bytes);

void shingle_scan_free(struct shingle_scan *scan);

/* Kernels for each instruction set. They compute XXH64 of up to GRAM_BLOCK grams (word_grams.h), in any order. After
 * the words, GRAM_SLACK bytes can be read. */
typedef void gram_hashes_kernel(const uint8_t *words, const uint64_t *begins, uint32_t each, uint32_t count,
                                uint64_t *hashes);
extern gram_hashes_kernel gram_hashes_plain;
#if defined(__x86_64__)
extern gram_hashes_kernel gram_hashes_avx512; /* needs CPU_AVX512 */
#endif

#endif
