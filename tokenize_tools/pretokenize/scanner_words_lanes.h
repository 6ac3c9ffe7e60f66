/* SPDX-License-Identifier: MIT */
/*
 * scanner_words_lanes.h - the same as scanner_words.c, several words at once: 8 with AVX-512 (512 bytes of text), 4
 * with AVX2.
 *
 * The idea. A vector holds LANES words as its lanes, and functions have the names of scanner_words.c with _all. Boolean
 * operations need no change. What a word passes on to the next word in scanner_words.c now goes from lane to lane, and
 * from the last lane to lane 0 of the next vector:
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
 * Only scanner_words_vbmi.c and scanner_words_avx2.c include this header. Each is compiled for its own instructions,
 * and has defined before:
 *
 *     LANES                 words of a vector
 *     vector                its type
 *     lane_mask             the type of a choice of lanes
 *     and_all, or_all, xor_all
 *     zeros()               no bits
 *     any(x)                whether a bit is set
 *     without(a, b)         the bits of a that are not in b
 *     up(x, before)         moves the bits of x to the next byte of text; `before` is the same row of the words before
 *     up_by(x, before, n)   the same by n bytes of text, 1 to 63
 *     down(x, words, i)     moves the bits of x, which are words[i] and the next ones, to the previous byte of text;
 *                           the row must be stored already, with a 0 after its last word
 *     add_all(a, b, carry)  adds two numbers and *carry (0 or 1), and sets *carry to the carry out
 *     lanes_at(w, i)        the lanes that hold words of the chunk, if lane 0 holds word i
 *     valid_at(w, i, last)  the bits that belong to the text; `last` has those of the last word
 *     load(words, i, lanes) words from number i on; the other lanes are 0
 *     load_all(words)       all lanes
 *     store(words, x)       all lanes
 *     store_lanes(words, lanes, x)  at least the chosen lanes; the others of x are 0
 */
#ifndef TOKMAP_PRETOKENIZE_SCANNER_WORDS_LANES_H
#define TOKMAP_PRETOKENIZE_SCANNER_WORDS_LANES_H

#include "scanner_words_work.h"

/* State that LANES words pass on to the next: vectors, of which only the last lane is used, and carries, 0 or 1. */
struct before {
    vector group, first[4];
    vector letters, symbols, spaces, numbers, lower, upper, both, ends, blank_ends, newlines, low_part;
    vector apart, apart_low;
    uint32_t cased, blank_lines;
};

/* fill_runs of scanner_words_work.h */
VECTOR(fill_runs_all)(vector run, vector from, uint32_t *carry)
{
    const vector sum = add_all(and_all(run, from), run, carry);
    return and_all(or_all(xor_all(sum, run), from), run);
}

INLINE void split_all(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    const vector zero = zeros();
    vector before = zero;
    uint32_t carry = 0;
    for (size_t i = 0; i < w->words; i += LANES) {
        const lane_mask lanes = lanes_at(w, i);
        vector letters = load(KIND(LETTER), i, lanes), spaces = load(KIND(SPACE), i, lanes), symbols, tail = zero;
        if (rules->deepseek) {
            symbols = load(KIND(EXTRA), i, lanes);
        } else {
            if (rules->letters == LETTERS_CASED) {
                const vector marks = without(load(KIND(EXTRA), i, lanes), load(SCAN_ROW(w->swallowed), i, lanes));
                letters =
                    or_all(or_all(letters, marks), or_all(load(KIND(UPPER), i, lanes), load(KIND(LOWER), i, lanes)));
            }
            const vector covered = or_all(or_all(letters, spaces), load(KIND(NUMBER), i, lanes));
            symbols = without(valid_at(w, i, valid), covered);
        }
        if (rules->tail != TAIL_NONE) {
            const vector newlines = load(KIND(NEWLINE), i, lanes), from = and_all(newlines, up(symbols, before));
            tail = fill_runs_all(or_all(newlines, load(KIND(SLASH), i, lanes)), from, &carry);
            symbols = without(symbols, tail);
            spaces = without(spaces, tail);
        }
        before = symbols;
        store(SCAN_ROW(w->letters) + i, letters);
        store(SCAN_ROW(w->symbols) + i, symbols);
        store(SCAN_ROW(w->spaces) + i, spaces);
        store(SCAN_ROW(w->tail) + i, tail);
    }
}

VECTOR(follow_first_all)(vector from, vector start, struct before *before)
{
    vector found = zeros();
    for (int k = 0; k < 4; k++) {
        const vector shifted = up(from, before->first[k]);
        before->first[k] = from;
        found = or_all(found, and_all(shifted, start));
        from = without(shifted, start);
    }
    return found;
}

VECTOR(group_all)(vector numbers, vector starts, uint32_t size, struct before *before)
{
    const vector one = up(numbers, before->numbers), two = up_by(numbers, before->numbers, 2);
    vector inside = and_all(and_all(numbers, one), two), carry = zeros(), found = carry;
    if (size == 3)
        inside = and_all(inside, up_by(numbers, before->numbers, 3));
    vector from = or_all(starts, and_all(up_by(carry, before->group, size), inside));
    do {
        found = or_all(found, from);
        carry = or_all(carry, from);
        from = and_all(up_by(from, zeros(), size), inside);
    } while (any(from));
    before->group = carry;
    return found;
}

VECTOR(cased_all)
(struct scan_work *w, const struct scan_masks *masks, size_t i, lane_mask lanes, vector letters, struct before *before)
{
    const vector upper = load(KIND(UPPER), i, lanes), lower = load(KIND(LOWER), i, lanes);
    const vector after_lower = up(lower, before->lower), first = and_all(upper, after_lower);
    const vector both = and_all(or_all(load(KIND(LETTER), i, lanes), load(KIND(EXTRA), i, lanes)), letters);
    const vector low_part = fill_runs_all(both, and_all(both, after_lower), &before->cased);
    const vector after_low = and_all(upper, up(low_part, before->low_part));
    const vector uncertain = without(and_all(upper, up(both, before->both)), after_low);
    store(SCAN_ROW(w->uncertain) + i, uncertain);
    before->lower = lower;
    before->both = both;
    before->low_part = low_part;
    return or_all(first, after_low);
}

VECTOR(apart_all)(const struct scan_masks *masks, size_t i, lane_mask lanes, struct before *before)
{
    const vector apart = load(KIND(UPPER), i, lanes), low = load(KIND(LOWER), i, lanes);
    const vector other = xor_all(low, up(low, before->apart_low));
    const vector starts = and_all(apart, or_all(without(apart, up(apart, before->apart)), other));
    before->apart = apart;
    before->apart_low = low;
    return starts;
}

INLINE void start_all(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    const vector zero = zeros();
    struct before before = {.group = zero,
                            .first = {zero, zero, zero, zero},
                            .letters = zero,
                            .symbols = zero,
                            .spaces = zero,
                            .numbers = zero,
                            .lower = zero,
                            .both = zero,
                            .ends = zero,
                            .blank_ends = zero,
                            .newlines = zero,
                            .low_part = zero,
                            .apart = zero,
                            .apart_low = zero};
    vector line_ends = zero, wide_spaces = zero, wide_numbers = zero;
    for (size_t i = 0; i < w->words; i += LANES) {
        const lane_mask lanes = lanes_at(w, i);
        const vector letters = load_all(SCAN_ROW(w->letters) + i);
        const vector symbols = load_all(SCAN_ROW(w->symbols) + i);
        const vector spaces = load_all(SCAN_ROW(w->spaces) + i);
        const vector numbers = load(KIND(NUMBER), i, lanes), newline = load(KIND(NEWLINE), i, lanes);
        const vector start = load(SCAN_ROW(masks->start), i, lanes);
        const vector symbol_starts = without(symbols, up(symbols, before.symbols));
        const vector number_starts = without(numbers, up(numbers, before.numbers));
        vector starts = or_all(without(letters, up(letters, before.letters)),
                               or_all(symbol_starts, without(spaces, up(spaces, before.spaces))));

        const vector tail = load_all(SCAN_ROW(w->tail) + i);
        vector followed = or_all(down(spaces, SCAN_ROW(w->spaces), i), down(tail, SCAN_ROW(w->tail), i));
        if (rules->deepseek)
            followed = or_all(
                followed, or_all(down(numbers, KIND(NUMBER), i), down(load(KIND(UPPER), i, lanes), KIND(UPPER), i)));
        vector ends = and_all(without(spaces, followed), valid_at(w, i, valid >> 1));
        if (rules->newlines)
            ends = without(ends, newline);
        starts = or_all(starts, and_all(ends, start));
        store(SCAN_ROW(w->ends) + i, ends);

        const vector blank_ends = and_all(ends, load(SCAN_ROW(masks->blank), i, lanes));
        const vector after_blank = up(blank_ends, before.blank_ends);
        vector joined = and_all(symbols, after_blank);
        if (rules->prefix == PREFIX_SPACE) {
            joined = or_all(joined, and_all(or_all(letters, numbers), after_blank));
        } else {
            joined = or_all(joined, and_all(letters, up(ends, before.ends)));
            if (!rules->deepseek)
                joined = or_all(
                    joined, and_all(letters, follow_first_all(without(symbol_starts, after_blank), start, &before)));
        }
        if (rules->newlines) {
            const vector newlines = and_all(newline, spaces);
            const vector plain = without(spaces, newline), after = and_all(plain, up(newlines, before.newlines));
            const vector ended = and_all(without(add_all(plain, after, &before.blank_lines), plain), newlines);
            store(SCAN_ROW(w->after_line) + i, after);
            store(SCAN_ROW(w->line_ends) + i, ended);
            line_ends = or_all(line_ends, ended);
            starts = or_all(starts, after);
            before.newlines = newlines;
        }
        if (rules->letters == LETTERS_CASED)
            starts = or_all(starts, cased_all(w, masks, i, lanes, letters, &before));
        if (rules->deepseek)
            starts = or_all(starts, apart_all(masks, i, lanes, &before));
        starts = or_all(starts, rules->numbers == 0   ? number_starts
                                : rules->numbers == 1 ? and_all(numbers, start)
                                                      : group_all(numbers, number_starts, rules->numbers, &before));
        store_lanes(w->starts + i, lanes, without(starts, joined));
        wide_spaces = or_all(wide_spaces, without(load(KIND(SPACE), i, lanes), start));
        wide_numbers = or_all(wide_numbers, without(numbers, start));
        before.letters = letters;
        before.symbols = symbols;
        before.spaces = spaces;
        before.numbers = numbers;
        before.ends = ends;
        before.blank_ends = blank_ends;
    }
    w->any_line_ends = any(line_ends);
    w->wide_spaces = any(wide_spaces);
    w->wide_numbers = any(wide_numbers);
}

#endif
