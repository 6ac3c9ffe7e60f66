/* SPDX-License-Identifier: MIT */
/*
 * scanner_words_lanes.h - turns masks of classes into starts of pieces, LANES words at once: 8 with AVX-512 (512 bytes
 * of text), 4 with AVX2, 1 in plain C. scanner.c explains the method with an example.
 *
 * A first pass over the chunk finds letters, symbols, spaces, and tails; the second pass finds the starts. They are
 * separate because a start depends on the bits of the following byte, which may be in the next word.
 *
 * The idea of lanes. A vector holds LANES words as its lanes. Boolean operations are the operators of C
 * (common/lanes.h). What a word passes on to the next word goes from lane to lane, and from the last lane to lane 0 of
 * the next vector:
 *
 * - A shift by one byte of text (`up`) must move bit 63 of each lane to bit 0 of the next lane. The lanes are rotated,
 *   with the last lane of the previous vector first, and then pairs of lanes are shifted. With eight lanes:
 *
 *       lanes of x               x0 x1 x2 x3 x4 x5 x6 x7      `before`: b0 ... b7
 *       rotated                  b7 x0 x1 x2 x3 x4 x5 x6
 *       shifted                  lane i: x[i] << 1 | (lane i of the line above) >> 63
 *
 * - An addition (`add_all`) must carry from lane to lane, as if the vector were one number. The lanes are added
 *   without carries first. `over` has a bit for each lane that receives a carry from the lane before it, `full` one for
 *   each lane that is all ones and would pass a carry on. Adding these two small numbers moves the carries through the
 *   full lanes, so a vector costs one scalar addition. Example, lane 0 at the right: lane 0 overflowed (over =
 *   00000010), and lanes 1 and 2 are full (00000110). over + full = 00001000, and exclusive-or with full gives
 *   00001110: lanes 1, 2, and 3 are incremented.
 *
 * The obvious alternative, the scalar loop, is a chain of carries from word to word; here the chain has one link per
 * vector.
 *
 * A file that includes this header has defined LANES_BYTES, SCAN_WORDS_FUNCTION, which is the name of its function,
 * and:
 *
 *     lane_mask             the type of a choice of lanes
 *     lanes_any(x)                whether a bit is set
 *     up(x, before)         moves the bits of x to the next byte of text; `before` is the same row of the words before
 *     up_by(x, before, n)   the same by n bytes of text, 1 to 63
 *     down(x, words, i)     moves the bits of x, which are words[i] and the next ones, to the previous byte of text;
 *                           the row must be stored already, with a 0 after its last word
 *     add_all(a, b, carry)  adds two numbers and *carry (0 or 1), and sets *carry to the carry out
 *     lanes_at(w, i)        the lanes that hold words of the chunk, if lane 0 holds word i
 *     valid_at(w, i, last)  the bits that belong to the text; `last` has those of the last word
 *     load(words, i, lanes) words from number i on; the other lanes are 0
 *     store_lanes(words, lanes, x)  at least the chosen lanes; the others of x are 0
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_WORDS_LANES_H
#define TOKMAP_PRETOKENIZE_SCANNER_WORDS_LANES_H

#include "common/lanes.h"
#include "scanner_words.h"

enum { LANES = LANES_BYTES / 8 };

/* State that LANES words pass on to the next: vectors, of which only the last lane is used, and carries, 0 or 1. */
struct before {
    lanes64 group, first[4];
    lanes64 letters, symbols, spaces, numbers, lower, both, ends, blank_ends, newlines, low_part;
    lanes64 apart, apart_low;
    uint32_t cased, blank_lines;
};

/* Returns, for each run of ones in `run` that contains bits of `from`, the bits from the first of these to the end of
 * the run. Bits of `from` outside of runs are ignored. Example, in the order of the text: run 0111011 and from 0010001
 * give 0011001. The sum `run + from` clears exactly these bits, and its carry continues a run in the next words through
 * *carry (0 or 1). Few words have bits of `from`, but a branch can be predicted only for one word at a time. */
LANES_INLINE lanes64 fill_runs_all(lanes64 run, lanes64 from, uint32_t *carry)
{
    if (LANES_BYTES == 8 && !*carry && !lanes_any(from))
        return lanes_all(0);
    const lanes64 sum = add_all(run & from, run, carry);
    return ((sum ^ run) | from) & run;
}

/* Finds the letters, the symbols, the tails, and the spaces that are not part of a tail. */
LANES_INLINE void split_all(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    const lanes64 zero = {0};
    lanes64 before = zero;
    uint32_t carry = 0;
    for (size_t i = 0; i < w->words; i += LANES) {
        const lane_mask lanes = lanes_at(w, i);
        lanes64 letters = load(KIND(LETTER), i, lanes), spaces = load(KIND(SPACE), i, lanes), symbols, tail = zero;
        if (rules->deepseek) {
            symbols = load(KIND(EXTRA), i, lanes);
        } else {
            if (rules->letters == LETTERS_CASED) {
                const lanes64 marks = load(KIND(EXTRA), i, lanes) & ~load(SCAN_ROW(w->swallowed), i, lanes);
                letters |= marks | load(KIND(UPPER), i, lanes) | load(KIND(LOWER), i, lanes);
            }
            const lanes64 covered = letters | spaces | load(KIND(NUMBER), i, lanes);
            symbols = valid_at(w, i, valid) & ~covered;
        }
        if (rules->tail != TAIL_NONE) {
            const lanes64 newlines = load(KIND(NEWLINE), i, lanes), from = newlines & up(symbols, before);
            tail = fill_runs_all(newlines | load(KIND(SLASH), i, lanes), from, &carry);
            symbols &= ~tail;
            spaces &= ~tail;
        }
        before = symbols;
        lanes_store(SCAN_ROW(w->letters) + i, letters);
        lanes_store(SCAN_ROW(w->symbols) + i, symbols);
        lanes_store(SCAN_ROW(w->spaces) + i, spaces);
        lanes_store(SCAN_ROW(w->tail) + i, tail);
    }
}

/* Returns the first bytes of the characters that follow the first characters of runs of symbols; `from` has the first
 * bytes of the runs. A character has up to four bytes, so this takes four shifts. */
LANES_INLINE lanes64 follow_first_all(lanes64 from, lanes64 start, struct before *before)
{
    lanes64 found = {0};
    for (int k = 0; k < 4; k++) {
        const lanes64 shifted = up(from, before->first[k]);
        before->first[k] = from;
        found |= shifted & start;
        from = shifted & ~start;
    }
    return found;
}

/* \p{N}{1,2} and \p{N}{1,3}: returns the starts of the groups inside of runs of numbers, of which all are single bytes;
 * `starts` has the starts of the runs. */
LANES_INLINE lanes64 group_all(lanes64 numbers, lanes64 starts, uint32_t size, struct before *before)
{
    const lanes64 one = up(numbers, before->numbers), two = up_by(numbers, before->numbers, 2);
    lanes64 inside = numbers & one & two, carry = {0}, found = carry;
    if (size == 3)
        inside &= up_by(numbers, before->numbers, 3);
    lanes64 from = starts | (up_by(carry, before->group, size) & inside);
    do {
        found |= from;
        carry |= from;
        from = up_by(from, (lanes64){0}, size) & inside;
    } while (lanes_any(from));
    before->group = carry;
    return found;
}

/* LETTERS_CASED: returns the starts inside of words, "Is" and "ABC" in "thisIsABC". An upper-case letter starts a piece
 * after a lower-case one. After letters without case, which are both U and L, it depends on what is before and after
 * them: if they follow a lower-case letter, they belong to L+, so it starts a piece; otherwise it is marked as
 * uncertain. */
LANES_INLINE lanes64 cased_all(struct scan_work *w, const struct scan_masks *masks, size_t i, lane_mask lanes,
                               lanes64 letters, struct before *before)
{
    const lanes64 upper = load(KIND(UPPER), i, lanes), lower = load(KIND(LOWER), i, lanes);
    const lanes64 after_lower = up(lower, before->lower), first = upper & after_lower;
    const lanes64 both = (load(KIND(LETTER), i, lanes) | load(KIND(EXTRA), i, lanes)) & letters;
    const lanes64 low_part = fill_runs_all(both, both & after_lower, &before->cased);
    const lanes64 after_low = upper & up(low_part, before->low_part);
    const lanes64 uncertain = upper & up(both, before->both) & ~after_low;
    lanes_store(SCAN_ROW(w->uncertain) + i, uncertain);
    before->lower = lower;
    before->both = both;
    before->low_part = low_part;
    return first | after_low;
}

/* DeepSeek: returns the starts of Chinese and Japanese text, and where letters and other characters of it meet. */
LANES_INLINE lanes64 apart_all(const struct scan_masks *masks, size_t i, lane_mask lanes, struct before *before)
{
    const lanes64 apart = load(KIND(UPPER), i, lanes), low = load(KIND(LOWER), i, lanes);
    const lanes64 other = low ^ up(low, before->apart_low);
    const lanes64 starts = apart & ((apart & ~up(apart, before->apart)) | other);
    before->apart = apart;
    before->apart_low = low;
    return starts;
}

LANES_INLINE void start_all(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    const lanes64 zero = {0};
    struct before before = {.cased = 0};
    lanes64 line_ends = zero, wide_spaces = zero, wide_numbers = zero;
    for (size_t i = 0; i < w->words; i += LANES) {
        const lane_mask lanes = lanes_at(w, i);
        const lanes64 letters = lanes_load(SCAN_ROW(w->letters) + i);
        const lanes64 symbols = lanes_load(SCAN_ROW(w->symbols) + i);
        const lanes64 spaces = lanes_load(SCAN_ROW(w->spaces) + i);
        const lanes64 numbers = load(KIND(NUMBER), i, lanes), newline = load(KIND(NEWLINE), i, lanes);
        const lanes64 start = load(SCAN_ROW(masks->start), i, lanes);
        const lanes64 symbol_starts = symbols & ~up(symbols, before.symbols);
        const lanes64 number_starts = numbers & ~up(numbers, before.numbers);
        lanes64 starts =
            (letters & ~up(letters, before.letters)) | symbol_starts | (spaces & ~up(spaces, before.spaces));

        /* The last of several spaces is a prefix or a piece of its own, unless the end of the text or (DeepSeek) a
         * piece of an earlier expression follows, where (?!\S) is satisfied. */
        const lanes64 tail = lanes_load(SCAN_ROW(w->tail) + i);
        lanes64 followed = down(spaces, SCAN_ROW(w->spaces), i) | down(tail, SCAN_ROW(w->tail), i);
        if (rules->deepseek)
            followed |= down(numbers, KIND(NUMBER), i) | down(load(KIND(UPPER), i, lanes), KIND(UPPER), i);
        lanes64 ends = spaces & ~followed & valid_at(w, i, valid >> 1);
        if (rules->newlines)
            ends &= ~newline;
        starts |= ends & start;
        lanes_store(SCAN_ROW(w->ends) + i, ends);

        const lanes64 blank_ends = ends & load(SCAN_ROW(masks->blank), i, lanes);
        const lanes64 after_blank = up(blank_ends, before.blank_ends);
        lanes64 joined = symbols & after_blank;
        if (rules->prefix == PREFIX_SPACE) {
            joined |= (letters | numbers) & after_blank;
        } else {
            joined |= letters & up(ends, before.ends);
            if (!rules->deepseek)
                joined |= letters & follow_first_all(symbol_starts & ~after_blank, start, &before);
        }
        if (rules->newlines) {
            /* A piece of spaces ends after its last newline. This adds a start at the first space after each newline.
             * line_ends has the newlines that follow such spaces; join_lines (scanner.c) removes the starts before
             * them. */
            const lanes64 newlines = newline & spaces;
            const lanes64 plain = spaces & ~newline, after = plain & up(newlines, before.newlines);
            const lanes64 ended = add_all(plain, after, &before.blank_lines) & ~plain & newlines;
            lanes_store(SCAN_ROW(w->after_line) + i, after);
            lanes_store(SCAN_ROW(w->line_ends) + i, ended);
            line_ends |= ended;
            starts |= after;
            before.newlines = newlines;
        }
        if (rules->letters == LETTERS_CASED)
            starts |= cased_all(w, masks, i, lanes, letters, &before);
        if (rules->deepseek)
            starts |= apart_all(masks, i, lanes, &before);
        starts |= rules->numbers == 0   ? number_starts
                  : rules->numbers == 1 ? numbers & start
                                        : group_all(numbers, number_starts, rules->numbers, &before);
        store_lanes(w->starts + i, lanes, starts & ~joined);
        wide_spaces |= load(KIND(SPACE), i, lanes) & ~start;
        wide_numbers |= numbers & ~start;
        before.letters = letters;
        before.symbols = symbols;
        before.spaces = spaces;
        before.numbers = numbers;
        before.ends = ends;
        before.blank_ends = blank_ends;
    }
    w->any_line_ends = lanes_any(line_ends);
    w->wide_spaces = lanes_any(wide_spaces);
    w->wide_numbers = lanes_any(wide_numbers);
}

void SCAN_WORDS_FUNCTION(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    split_all(w, masks, valid);
    start_all(w, masks, valid);
}

#endif
