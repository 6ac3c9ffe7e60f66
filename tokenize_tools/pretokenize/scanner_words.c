/* SPDX-License-Identifier: MIT */
/*
 * scanner_words.c - turns masks of classes into starts of pieces, one word (64 bytes of text) after another. The
 * portable implementation; scanner.c explains the method with an example.
 *
 * A first pass over the chunk finds letters, symbols, spaces, and tails; the second pass finds the starts. They are
 * separate because a start depends on the bits of the following byte, which may be in the next word.
 */
#include "scanner_words_work.h"

/* State that one word passes on to the next word, apart from masks. */
struct carries {
    uint64_t tail, blank_lines, cased; /* of additions: 0 or 1 */
    uint64_t group;                    /* starts of groups of numbers, shifted into the next word */
    uint64_t first[4];                 /* follow_first: bits shifted out of the previous word, by step */
};

/* Finds the letters, the symbols, the tails, and the spaces that are not part of a tail. */
static inline void split_word(struct scan_work *w, const struct scan_masks *masks, size_t i, uint64_t valid,
                              struct carries *carries)
{
    const struct split_rules *rules = w->rules;
    uint64_t letters = KIND(LETTER)[i];
    uint64_t covered = KIND(NUMBER)[i] | KIND(SPACE)[i];
    uint64_t symbols;
    if (rules->deepseek) {
        symbols = KIND(EXTRA)[i];
    } else {
        if (rules->letters == LETTERS_CASED)
            letters |= KIND(UPPER)[i] | KIND(LOWER)[i] | (KIND(EXTRA)[i] & ~SCAN_ROW(w->swallowed)[i]);
        symbols = ~(letters | covered) & valid;
    }
    uint64_t spaces = KIND(SPACE)[i], tail = 0;
    if (rules->tail != TAIL_NONE) {
        const uint64_t newlines = KIND(NEWLINE)[i];
        const uint64_t from = newlines & (symbols << 1 | (SCAN_ROW(w->symbols) + i)[-1] >> 63);
        if (from | carries->tail) {
            tail = fill_runs(newlines | KIND(SLASH)[i], from, &carries->tail);
            symbols &= ~tail;
            spaces &= ~tail;
        }
    }
    SCAN_ROW(w->letters)[i] = letters;
    SCAN_ROW(w->symbols)[i] = symbols;
    SCAN_ROW(w->spaces)[i] = spaces;
    SCAN_ROW(w->tail)[i] = tail;
}

/* Returns the first bytes of the characters that follow the first characters of runs of symbols; `from` has the first
 * bytes of the runs. A character has up to four bytes, so this takes four shifts. */
static inline uint64_t follow_first(uint64_t from, uint64_t start, struct carries *carries)
{
    uint64_t found = 0;
    for (int i = 0; i < 4; i++) {
        const uint64_t shifted = from << 1 | carries->first[i];
        carries->first[i] = from >> 63;
        found |= shifted & start;
        from = shifted & ~start;
    }
    return found;
}

/* \p{N}{1,2} and \p{N}{1,3}: returns the starts of the groups inside of runs of numbers, of which all are single bytes;
 * `starts` has the starts of the runs. */
static inline uint64_t group_numbers(const uint64_t *numbers, uint64_t starts, uint32_t size, struct carries *carries)
{
    const uint64_t one = previous(numbers), two = numbers[0] << 2 | numbers[-1] >> 62;
    uint64_t inside = numbers[0] & one & two;
    if (size == 3)
        inside &= numbers[0] << 3 | numbers[-1] >> 61;
    uint64_t from = starts | (carries->group & inside), found = 0, carry = 0;
    do {
        found |= from;
        carry |= from >> (64 - size);
        from = from << size & inside;
    } while (from);
    carries->group = carry;
    return found;
}

/* LETTERS_CASED: returns the starts inside of words, "Is" and "ABC" in "thisIsABC". An upper-case letter starts a piece
 * after a lower-case one. After letters without case, which are both U and L, it depends on what is before and after
 * them: if they follow a lower-case letter, they belong to L+, so it starts a piece; otherwise it is marked as
 * uncertain. */
static inline uint64_t cased_starts(struct scan_work *w, const struct scan_masks *masks, size_t i,
                                    struct carries *carries)
{
    const uint64_t *upper = KIND(UPPER) + i, *lower = KIND(LOWER) + i;
    const uint64_t first = upper[0] & previous(lower);
    const uint64_t both = (KIND(LETTER)[i] | KIND(EXTRA)[i]) & SCAN_ROW(w->letters)[i];
    const uint64_t both_before = i ? (KIND(LETTER)[i - 1] | KIND(EXTRA)[i - 1]) & SCAN_ROW(w->letters)[i - 1] : 0;
    const uint64_t had = carries->cased;
    uint64_t low_part = 0;
    if ((both & previous(lower)) | (had & both))
        low_part = fill_runs(both, both & previous(lower), &carries->cased);
    else
        carries->cased = 0;
    const uint64_t after_both = upper[0] & (both << 1 | both_before >> 63);
    const uint64_t after_low = upper[0] & (low_part << 1 | had);
    SCAN_ROW(w->uncertain)[i] = after_both & ~after_low;
    return first | after_low;
}

static inline void start_word(struct scan_work *w, const struct scan_masks *masks, size_t i, uint64_t valid,
                              struct carries *carries)
{
    const struct split_rules *rules = w->rules;
    const uint64_t *letters = SCAN_ROW(w->letters) + i, *symbols = SCAN_ROW(w->symbols) + i;
    const uint64_t *spaces = SCAN_ROW(w->spaces) + i;
    const uint64_t *numbers = KIND(NUMBER) + i, *blank = SCAN_ROW(masks->blank) + i, *newline = KIND(NEWLINE) + i;
    const uint64_t start = SCAN_ROW(masks->start)[i];
    const uint64_t letter_starts = letters[0] & ~previous(letters);
    const uint64_t symbol_starts = symbols[0] & ~previous(symbols);
    const uint64_t number_starts = numbers[0] & ~previous(numbers);
    uint64_t starts = letter_starts | symbol_starts | (spaces[0] & ~previous(spaces));

    /* The last of several spaces is a prefix or a piece of its own, unless the end of the text or (DeepSeek) a piece of
     * an earlier expression follows, where (?!\S) is satisfied. */
    uint64_t solid = ~next_bits(spaces) & ~next_bits(SCAN_ROW(w->tail) + i);
    if (rules->deepseek)
        solid &= ~next_bits(numbers) & ~next_bits(KIND(UPPER) + i);
    const uint64_t valid_next = i + 1 < w->words ? ~(uint64_t)0 : valid >> 1;
    uint64_t ends = spaces[0] & solid & valid_next;
    if (rules->newlines)
        ends &= ~newline[0];
    starts |= ends & start;
    SCAN_ROW(w->ends)[i] = ends;

    const uint64_t after_ends = ends << 1 | (SCAN_ROW(w->ends) + i)[-1] >> 63;
    const uint64_t blank_ends = ends & blank[0];
    const uint64_t after_blank = blank_ends << 1 | ((SCAN_ROW(w->ends) + i)[-1] & blank[-1]) >> 63;
    uint64_t joined = symbols[0] & after_blank;
    if (rules->prefix == PREFIX_SPACE) {
        joined |= (letters[0] | numbers[0]) & after_blank;
    } else {
        joined |= letters[0] & after_ends;
        if (!rules->deepseek)
            joined |= letters[0] & follow_first(symbol_starts & ~after_blank, start, carries);
    }
    if (rules->newlines) {
        /* A piece of spaces ends after its last newline. This adds a start at the first space after each newline.
         * line_ends has the newlines that follow such spaces; join_lines (scanner.c) removes the starts before them. */
        const uint64_t newlines = newline[0] & spaces[0];
        const uint64_t before = i ? newline[-1] & spaces[-1] : 0;
        const uint64_t after = spaces[0] & ~newline[0] & (newlines << 1 | before >> 63);
        const uint64_t plain = spaces[0] & ~newline[0];
        const uint64_t line_ends = add_carry(plain, after, &carries->blank_lines) & ~plain & newlines;
        SCAN_ROW(w->after_line)[i] = after;
        SCAN_ROW(w->line_ends)[i] = line_ends;
        w->any_line_ends |= line_ends != 0;
        starts |= after;
    }
    if (rules->letters == LETTERS_CASED)
        starts |= cased_starts(w, masks, i, carries);
    if (rules->deepseek)
        starts |= KIND(UPPER)[i] & (~previous(KIND(UPPER) + i) | (KIND(LOWER)[i] ^ previous(KIND(LOWER) + i)));
    switch (rules->numbers) {
    case 0:
        starts |= number_starts;
        break;
    case 1:
        starts |= numbers[0] & start;
        break;
    default:
        starts |= group_numbers(numbers, number_starts, rules->numbers, carries);
    }
    w->starts[i] = starts & ~joined;
}

void scan_words_scalar(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    struct carries carries = {0};
    uint64_t wide_spaces = 0, wide_numbers = 0;
    for (size_t i = 0; i < w->words; i++)
        split_word(w, masks, i, i + 1 < w->words ? ~(uint64_t)0 : valid, &carries);
    for (size_t i = 0; i < w->words; i++) {
        start_word(w, masks, i, i + 1 < w->words ? ~(uint64_t)0 : valid, &carries);
        wide_spaces |= KIND(SPACE)[i] & ~SCAN_ROW(masks->start)[i];
        wide_numbers |= KIND(NUMBER)[i] & ~SCAN_ROW(masks->start)[i];
    }
    w->wide_spaces = wide_spaces != 0;
    w->wide_numbers = wide_numbers != 0;
}

scan_words_function *scan_words_choose(enum cpu_variant variant)
{
#if defined(__x86_64__)
    if (variant == CPU_VBMI)
        return scan_words_vbmi;
    if (variant >= CPU_AVX2)
        return scan_words_avx2;
#endif
    return scan_words_scalar;
}
