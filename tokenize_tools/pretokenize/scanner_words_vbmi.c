/*
 * scanner_words_vbmi.c - the same as scanner_words.c, eight words (512 bytes of text) at once, for AVX-512 with VBMI2.
 *
 * The idea. A register holds eight words as eight lanes, and functions have the names of scanner_words.c with _all.
 * Boolean operations need no change. What a word passes on to the next word in scanner_words.c now goes from lane to
 * lane, and from lane 7 to lane 0 of the next eight words:
 *
 * - A shift by one byte of text (`up`) must move bit 63 of each lane to bit 0 of the next lane. One instruction rotates
 *   the lanes, with lane 7 of the previous register first, and another one shifts pairs of lanes:
 *
 *       lanes of x               x0 x1 x2 x3 x4 x5 x6 x7      `before`: b0 ... b7
 *       alignr(x, before, 7)     b7 x0 x1 x2 x3 x4 x5 x6
 *       shldi                    lane i: x[i] << 1 | (lane i of the line above) >> 63
 *
 * - An addition (`add_all`) must carry from lane to lane, as if the register were one number of 512 bits. The lanes are
 *   added without carries first. `over` has a bit for each lane that receives a carry from the lane before it, `full`
 *   one for each lane that is all ones and would pass a carry on. Adding these two small numbers moves the carries
 *   through the full lanes, so eight lanes cost one scalar addition. Example, lane 0 at the right: lane 0 overflowed
 *   (over = 00000010), and lanes 1 and 2 are full (00000110). over + full = 00001000, and exclusive-or with full gives
 *   00001110: lanes 1, 2, and 3 are incremented.
 *
 * The obvious alternative, the scalar loop, is a chain of carries from word to word; here the chain has one link per
 * 512 bytes. It takes VBMI2, whose shldi, shrdi, and shldv shift two lanes as one number of 128 bits. AVX2 needs
 * several instructions for each of these shifts and has no masks of lanes for the addition.
 */
#include "scanner_words_work.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define EIGHT(name) INLINE __m512i name

/* What eight words pass on to the next eight: vectors, of which only the last lane is used, and carries, 0 or 1. */
struct before {
    __m512i group, first[4];
    __m512i letters, symbols, spaces, numbers, lower, upper, both, ends, blank_ends, newlines, low_part;
    __m512i apart, apart_low;
    uint32_t cased, blank_lines;
};

/* Moves the bits of x to the next byte of text; `before` is the same row of the previous eight words. */
EIGHT(up)(__m512i x, __m512i before)
{
    return _mm512_shldi_epi64(x, _mm512_alignr_epi64(x, before, 7), 1);
}

/* The same by `bits` bytes of text, 1 to 63. */
EIGHT(up_by)(__m512i x, __m512i before, uint32_t bits)
{
    return _mm512_shldv_epi64(x, _mm512_alignr_epi64(x, before, 7), _mm512_set1_epi64(bits));
}

EIGHT(and)(__m512i a, __m512i b)
{
    return _mm512_and_si512(a, b);
}

EIGHT(or)(__m512i a, __m512i b)
{
    return _mm512_or_si512(a, b);
}

/* The bits of a that are not in b. */
EIGHT(without)(__m512i a, __m512i b)
{
    return _mm512_andnot_si512(b, a);
}

INLINE bool any(__m512i x)
{
    return _mm512_test_epi64_mask(x, x) != 0;
}

/* Adds two numbers of 512 bits and *carry (0 or 1); sets *carry to the carry out. See the head of this file. */
EIGHT(add_all)(__m512i a, __m512i b, uint32_t *carry)
{
    const __m512i sum = _mm512_add_epi64(a, b), ones = _mm512_set1_epi64(-1);
    const uint32_t full = _mm512_cmpeq_epi64_mask(sum, ones);
    const uint32_t over = (uint32_t)_mm512_cmplt_epu64_mask(sum, a) << 1 | *carry;
    const uint32_t again = (over + full) ^ full;
    *carry = again >> 8;
    return _mm512_mask_sub_epi64(sum, (__mmask8)again, sum, ones);
}

/* fill_runs of scanner_words_work.h */
EIGHT(fill_runs_all)(__m512i run, __m512i from, uint32_t *carry)
{
    const __m512i sum = add_all(and(run, from), run, carry);
    return and(or(_mm512_xor_si512(sum, run), from), run);
}

/* Loads eight words from number i on; lanes after the last word of the chunk are 0. */
EIGHT(eight)(const uint64_t *words, size_t i, __mmask8 lanes)
{
    return _mm512_maskz_loadu_epi64(lanes, words + i);
}

/* Moves the bits of x, which are words[i] to words[i + 7], to the previous byte of text. The row must be stored
 * already, with a 0 after its last word. */
EIGHT(down)(__m512i x, const uint64_t *words, size_t i)
{
    return _mm512_shrdi_epi64(x, _mm512_loadu_si512(words + i + 1), 1);
}

/* The lanes that hold words of the chunk, if lane 0 holds word i. */
INLINE __mmask8 lanes_at(const struct scan_work *w, size_t i)
{
    return (__mmask8)(w->words - i >= 8 ? 0xFF : (1u << (w->words - i)) - 1);
}

/* The bits that belong to the text; `valid` has those of the last word. */
EIGHT(valid_at)(const struct scan_work *w, size_t i, uint64_t valid)
{
    const __m512i all = _mm512_maskz_set1_epi64(lanes_at(w, i), -1);
    return w->words - i > 8 ? all : _mm512_mask_set1_epi64(all, (__mmask8)(1u << (w->words - i - 1)), (long long)valid);
}

INLINE void split_all(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    const __m512i zero = _mm512_setzero_si512();
    __m512i before = zero;
    uint32_t carry = 0;
    for (size_t i = 0; i < w->words; i += 8) {
        const __mmask8 lanes = lanes_at(w, i);
        __m512i letters = eight(KIND(LETTER), i, lanes), spaces = eight(KIND(SPACE), i, lanes), symbols, tail = zero;
        if (rules->deepseek) {
            symbols = eight(KIND(EXTRA), i, lanes);
        } else {
            if (rules->letters == LETTERS_CASED) {
                const __m512i marks = without(eight(KIND(EXTRA), i, lanes), eight(SCAN_ROW(w->swallowed), i, lanes));
                letters = or(or(letters, marks), or(eight(KIND(UPPER), i, lanes), eight(KIND(LOWER), i, lanes)));
            }
            const __m512i covered = or(or(letters, spaces), eight(KIND(NUMBER), i, lanes));
            symbols = without(valid_at(w, i, valid), covered);
        }
        if (rules->tail != TAIL_NONE) {
            const __m512i newlines = eight(KIND(NEWLINE), i, lanes), from = and(newlines, up(symbols, before));
            tail = fill_runs_all(or(newlines, eight(KIND(SLASH), i, lanes)), from, &carry);
            symbols = without(symbols, tail);
            spaces = without(spaces, tail);
        }
        before = symbols;
        _mm512_storeu_si512(SCAN_ROW(w->letters) + i, letters);
        _mm512_storeu_si512(SCAN_ROW(w->symbols) + i, symbols);
        _mm512_storeu_si512(SCAN_ROW(w->spaces) + i, spaces);
        _mm512_storeu_si512(SCAN_ROW(w->tail) + i, tail);
    }
}

EIGHT(follow_first_all)(__m512i from, __m512i start, struct before *before)
{
    __m512i found = _mm512_setzero_si512();
    for (int k = 0; k < 4; k++) {
        const __m512i shifted = up(from, before->first[k]);
        before->first[k] = from;
        found = or(found, and(shifted, start));
        from = without(shifted, start);
    }
    return found;
}

EIGHT(group_all)(__m512i numbers, __m512i starts, uint32_t size, struct before *before)
{
    const __m512i one = up(numbers, before->numbers), two = up_by(numbers, before->numbers, 2);
    __m512i inside = and(and(numbers, one), two), carry = _mm512_setzero_si512(), found = carry;
    if (size == 3)
        inside = and(inside, up_by(numbers, before->numbers, 3));
    __m512i from = or(starts, and(up_by(carry, before->group, size), inside));
    do {
        found = or(found, from);
        carry = or(carry, from);
        from = and(up_by(from, _mm512_setzero_si512(), size), inside);
    } while (any(from));
    before->group = carry;
    return found;
}

EIGHT(cased_all)(struct scan_work *w, const struct scan_masks *masks, size_t i, __mmask8 lanes, __m512i letters,
                 struct before *before)
{
    const __m512i upper = eight(KIND(UPPER), i, lanes), lower = eight(KIND(LOWER), i, lanes);
    const __m512i after_lower = up(lower, before->lower), first = and(upper, after_lower);
    const __m512i both = and(or(eight(KIND(LETTER), i, lanes), eight(KIND(EXTRA), i, lanes)), letters);
    const __m512i low_part = fill_runs_all(both, and(both, after_lower), &before->cased);
    const __m512i after_low = and(upper, up(low_part, before->low_part));
    const __m512i uncertain = without(and(upper, up(both, before->both)), after_low);
    _mm512_storeu_si512(SCAN_ROW(w->uncertain) + i, uncertain);
    before->lower = lower;
    before->both = both;
    before->low_part = low_part;
    return or(first, after_low);
}

EIGHT(apart_all)(const struct scan_masks *masks, size_t i, __mmask8 lanes, struct before *before)
{
    const __m512i apart = eight(KIND(UPPER), i, lanes), low = eight(KIND(LOWER), i, lanes);
    const __m512i other = _mm512_xor_si512(low, up(low, before->apart_low));
    const __m512i starts = and(apart, or(without(apart, up(apart, before->apart)), other));
    before->apart = apart;
    before->apart_low = low;
    return starts;
}

INLINE void start_all(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    const __m512i zero = _mm512_setzero_si512();
    struct before before = {.group = zero, .first = {zero, zero, zero, zero}, .letters = zero, .symbols = zero,
                            .spaces = zero, .numbers = zero, .lower = zero, .both = zero, .ends = zero,
                            .blank_ends = zero, .newlines = zero, .low_part = zero, .apart = zero, .apart_low = zero};
    __m512i line_ends = zero, wide_spaces = zero, wide_numbers = zero;
    for (size_t i = 0; i < w->words; i += 8) {
        const __mmask8 lanes = lanes_at(w, i);
        const __m512i letters = _mm512_loadu_si512(SCAN_ROW(w->letters) + i);
        const __m512i symbols = _mm512_loadu_si512(SCAN_ROW(w->symbols) + i);
        const __m512i spaces = _mm512_loadu_si512(SCAN_ROW(w->spaces) + i);
        const __m512i numbers = eight(KIND(NUMBER), i, lanes), newline = eight(KIND(NEWLINE), i, lanes);
        const __m512i start = eight(SCAN_ROW(masks->start), i, lanes);
        const __m512i symbol_starts = without(symbols, up(symbols, before.symbols));
        const __m512i number_starts = without(numbers, up(numbers, before.numbers));
        __m512i starts = or(without(letters, up(letters, before.letters)),
                            or(symbol_starts, without(spaces, up(spaces, before.spaces))));

        const __m512i tail = _mm512_loadu_si512(SCAN_ROW(w->tail) + i);
        __m512i followed = or(down(spaces, SCAN_ROW(w->spaces), i), down(tail, SCAN_ROW(w->tail), i));
        if (rules->deepseek)
            followed = or(followed, or(down(numbers, KIND(NUMBER), i),
                                       down(eight(KIND(UPPER), i, lanes), KIND(UPPER), i)));
        __m512i ends = and(without(spaces, followed), valid_at(w, i, valid >> 1));
        if (rules->newlines)
            ends = without(ends, newline);
        starts = or(starts, and(ends, start));
        _mm512_storeu_si512(SCAN_ROW(w->ends) + i, ends);

        const __m512i blank_ends = and(ends, eight(SCAN_ROW(masks->blank), i, lanes));
        const __m512i after_blank = up(blank_ends, before.blank_ends);
        __m512i joined = and(symbols, after_blank);
        if (rules->prefix == PREFIX_SPACE) {
            joined = or(joined, and(or(letters, numbers), after_blank));
        } else {
            joined = or(joined, and(letters, up(ends, before.ends)));
            if (!rules->deepseek)
                joined = or(joined, and(letters, follow_first_all(without(symbol_starts, after_blank), start,
                                                                  &before)));
        }
        if (rules->newlines) {
            const __m512i newlines = and(newline, spaces);
            const __m512i plain = without(spaces, newline), after = and(plain, up(newlines, before.newlines));
            const __m512i ended = and(without(add_all(plain, after, &before.blank_lines), plain), newlines);
            _mm512_storeu_si512(SCAN_ROW(w->after_line) + i, after);
            _mm512_storeu_si512(SCAN_ROW(w->line_ends) + i, ended);
            line_ends = or(line_ends, ended);
            starts = or(starts, after);
            before.newlines = newlines;
        }
        if (rules->letters == LETTERS_CASED)
            starts = or(starts, cased_all(w, masks, i, lanes, letters, &before));
        if (rules->deepseek)
            starts = or(starts, apart_all(masks, i, lanes, &before));
        starts = or(starts, rules->numbers == 0 ? number_starts
                            : rules->numbers == 1 ? and(numbers, start)
                                                  : group_all(numbers, number_starts, rules->numbers, &before));
        _mm512_mask_storeu_epi64(w->starts + i, lanes, without(starts, joined));
        wide_spaces = or(wide_spaces, without(eight(KIND(SPACE), i, lanes), start));
        wide_numbers = or(wide_numbers, without(numbers, start));
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

void scan_words_vbmi(struct scan_work *w, const struct scan_masks *masks, uint64_t valid)
{
    split_all(w, masks, valid);
    start_all(w, masks, valid);
}

#endif
