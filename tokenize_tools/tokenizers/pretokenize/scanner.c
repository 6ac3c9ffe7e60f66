/* SPDX-License-Identifier: MIT */
/*
 * scanner.c - finds the starts of pieces with arithmetic on bit masks, 64 bytes of text per word.
 *
 * The idea. The obvious way is to run the pattern on one character after another, as scanner_piece.c does. A piece of
 * English text has four or five bytes on average, and at its end the loop takes a branch that the processor cannot
 * predict. Here, a class such as "letters" is a mask with one bit per byte of text, and whether a piece starts at a
 * byte is a Boolean function of the masks and of the masks shifted by one byte. The same instructions run for every
 * text, and each handles 64 bytes or more.
 *
 * Example: a text under the pattern cl100k_base. N stands for a newline. Bits are in the order of the text.
 *
 *     text             So it's  42!NOK
 *     letters          11.11.1......11
 *     numbers          .........11....
 *     symbols          .....1.....1...    all characters that are not letters, numbers, or spaces
 *     newlines         ............1..
 *     tail             ............1..    newlines directly after symbols; they belong to the piece of the symbols
 *     spaces           ..1....11......    without those of the tail
 *     starts of runs   1.11.111.1.1.1.    letters & ~(letters << 1), and the same for numbers, symbols, and spaces
 *     ends             ..1.....1......    last spaces of runs: \s+(?!\S) leaves the last space to the next match
 *     joined           ...1..1........    letters directly after a prefix: after `ends`, or after a single symbol
 *     starts           1.1..1.111.1.1.    (starts of runs | ends) & ~joined
 *     pieces           [So][ it]['s][ ][ ][42][!N][OK]
 *
 * Some rules need the far end of a run: a tail extends over any number of newlines. An addition finds it: the carry
 * that starts at the first newline of the run travels to the end of the run, also across words (fill_runs in
 * scanner_words.h).
 *
 * A chunk has three steps: the masks of classes (scanner_classify*.c), the starts (scanner_words*.c), and the
 * corrections in this file. The corrections serve rules that rarely apply, such as contractions, and DeepSeek's;
 * most of them look at single bits, and only if the chunk contains the characters in question. A few combinations are
 * so rare that the whole chunk goes to scan_piece instead.
 *
 * A chunk begins where a piece begins, so nothing before it matters. Its last pieces may depend on text after the
 * chunk; scan_chunk drops them, and the next call finds them again.
 *
 * Cost. The first two steps take time in proportion to bytes, not to pieces. They process 64 bytes per step of
 * classification and per word; the second step processes 256 bytes at once with AVX2, and 512 with AVX-512. The cost
 * per piece arises in the caller, which extracts the bits.
 */
#include "scanner.h"

#include <assert.h>
#include <string.h>

#include "scanner_piece.h"
#include "scanner_words.h"

/* Returns the offset of the first byte of the character that contains text[at]. */
static size_t character_start(const struct scan_masks *masks, size_t at)
{
    while (at && !bit(SCAN_ROW(masks->start), at))
        at--;
    return at;
}

/* Returns the first offset from `at` on whose bit is 0; `count` if there is none before it. */
static size_t run_end(const uint64_t *words, size_t at, size_t count)
{
    size_t word = at / 64;
    uint64_t zeros = ~words[word] & ~(uint64_t)0 << (at % 64);
    while (!zeros && (word + 1) * 64 < count)
        zeros = ~words[++word];
    const size_t end = zeros ? word * 64 + (size_t)__builtin_ctzll(zeros) : count;
    return end < count ? end : count;
}

/* LETTERS_CASED: finds the marks that belong to a run of symbols. A mark counts as a letter for the first two
 * alternatives and as a symbol for the fourth. After a single symbol, the mark begins letters and the symbol is their
 * prefix. After two or more symbols, or a space and a symbol, only the alternative of symbols matches, and it takes the
 * mark, too. */
static void find_swallowed_marks(struct scan_work *w, const struct scan_masks *masks)
{
    const uint64_t *mark = KIND(EXTRA);
    uint64_t symbol_before = 0;
    for (size_t i = 0; i < w->words; i++) {
        const uint64_t symbol =
            ~(KIND(UPPER)[i] | KIND(LOWER)[i] | KIND(LETTER)[i] | KIND(NUMBER)[i] | KIND(SPACE)[i] | mark[i]);
        uint64_t found = mark[i] & SCAN_ROW(masks->start)[i] & (symbol << 1 | symbol_before >> 63);
        symbol_before = symbol;
        for (; found; found &= found - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(found);
            const size_t symbol_at = character_start(masks, at - 1);
            if (bit(SCAN_ROW(w->swallowed), at))
                continue;
            /* The slash may belong to the tail of an earlier symbol. */
            if (w->text[symbol_at] == '/' || (symbol_at && w->text[symbol_at - 1] == '/')) {
                w->by_piece = true;
                return;
            }
            bool inside = false;
            if (symbol_at) {
                const size_t before = symbol_at - 1;
                if (bit(mark, before))
                    inside = bit(SCAN_ROW(w->swallowed), before);
                else
                    inside = bit(SCAN_ROW(masks->blank), before) ||
                             !(bit(KIND(UPPER), before) || bit(KIND(LOWER), before) || bit(KIND(LETTER), before) ||
                               bit(KIND(NUMBER), before) || bit(KIND(SPACE), before));
            }
            if (inside)
                for (size_t end = run_end(mark, at, w->count), k = at; k < end; k++)
                    set_bit(SCAN_ROW(w->swallowed), k);
        }
    }
}

/* ---- corrections, bit by bit ---- */

/* \s*[\r\n]+ ends after the last newline of a run of spaces. scanner_words.c has put a start after each newline:
 * removes those that another newline of the same run follows. */
static void join_lines(struct scan_work *w)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = SCAN_ROW(w->line_ends)[i]; rest; rest &= rest - 1) {
            size_t at = 64 * i + (size_t)__builtin_ctzll(rest) - 1;
            while (!bit(SCAN_ROW(w->after_line), at))
                at--;
            clear_bit(w->starts, at);
        }
}

/* Adds the last of several spaces, which is a start. If it has more than one byte, scanner_words.c has seen only its
 * last byte: adds the start at its first byte. */
static void add_wide_ends(struct scan_work *w, const struct scan_masks *masks)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = SCAN_ROW(w->ends)[i] & ~SCAN_ROW(masks->start)[i]; rest; rest &= rest - 1)
            set_bit(w->starts, character_start(masks, 64 * i + (size_t)__builtin_ctzll(rest)));
}

/* \p{N}{1,2} and \p{N}{1,3} in a chunk with numbers of more than one byte: groups all numbers again, character by
 * character. */
static void group_wide_numbers(struct scan_work *w, const struct scan_masks *masks)
{
    const uint64_t *numbers = KIND(NUMBER);
    uint32_t in_group = 0;
    size_t expected = SIZE_MAX;
    for (size_t i = 0; i < w->words; i++) {
        w->starts[i] &= ~numbers[i];
        for (uint64_t rest = numbers[i] & SCAN_ROW(masks->start)[i]; rest; rest &= rest - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
            if (at != expected || in_group == w->rules->numbers)
                in_group = 0;
            if (!in_group++)
                set_bit(w->starts, at);
            expected = at + character_bytes(w->text[at]);
        }
    }
}

/* Resolves the uncertain starts: an upper-case letter after letters without case starts a piece if only upper-case
 * letters follow up to the end of the word: U*L+ must end with a letter of L and therefore ends before them. If another
 * letter follows them, U* takes them and nothing starts. */
static void resolve_uncertain(struct scan_work *w, const struct scan_masks *masks)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = SCAN_ROW(w->uncertain)[i]; rest; rest &= rest - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
            const size_t end = run_end(KIND(UPPER), at, w->count);
            if (end >= w->count || !bit(SCAN_ROW(w->letters), end))
                set_bit(w->starts, at);
        }
}

/* Returns the number of bytes that the letters of a contraction have at text[at], without the apostrophe; 0 if it is
 * not a contraction. */
static size_t contraction_bytes(const struct scan_work *w, size_t at, size_t readable)
{
    const bool folded = w->rules->contraction != CONTRACTION_EXACT;
    const uint8_t fold = folded ? 0x20 : 0;
    const size_t left = readable - at;
    if (!left)
        return 0;
    const uint8_t one = w->text[at] | fold, two = left > 1 ? w->text[at + 1] | fold : 0;
    if (one == 's' || one == 't' || one == 'm' || one == 'd')
        return 1;
    if ((one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l'))
        return 2;
    return folded && left > 1 && w->text[at] == 0xC5 && w->text[at + 1] == 0xBF ? 2 : 0;
}

/* Contractions: makes 's and its like one piece (CONTRACTION_EXACT, _FOLDED) or part of the piece before (_SUFFIX), and
 * starts a piece after them. A candidate is an apostrophe before a letter that, for a suffix, follows a letter, and
 * otherwise begins a piece: it follows neither a symbol nor a space that is its prefix. */
static void apply_contractions(struct scan_work *w, const struct scan_masks *masks, size_t readable)
{
    const bool suffix = w->rules->contraction == CONTRACTION_SUFFIX;
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < w->words; i++) {
        if (!SCAN_ROW(masks->quote)[i])
            continue;
        const uint64_t letters_before = previous(SCAN_ROW(w->letters) + i);
        const uint64_t blank_before = previous(SCAN_ROW(masks->blank) + i) & previous(SCAN_ROW(w->spaces) + i);
        uint64_t found = SCAN_ROW(masks->quote)[i] & next_bits(SCAN_ROW(w->letters) + i) & SCAN_ROW(w->symbols)[i];
        found &= suffix ? letters_before : ~previous(SCAN_ROW(w->symbols) + i) & ~blank_before;
        for (; found; found &= found - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(found);
            const size_t bytes = contraction_bytes(w, at + 1, readable);
            if (!bytes)
                continue;
            const size_t end = at + 1 + bytes;
            if (suffix && at == last) { /* directly after a contraction, the apostrophe is a prefix */
                w->by_piece = true;
                return;
            }
            for (size_t k = at + 1; k < end && k < w->count; k++)
                clear_bit(w->starts, k);
            if (suffix)
                clear_bit(w->starts, at);
            if (end < w->count) {
                /* For letters without case, scanner_words.c has looked back to the letters of the contraction. */
                if (suffix && (bit(KIND(LETTER), end) || bit(KIND(EXTRA), end))) {
                    w->by_piece = true;
                    return;
                }
                set_bit(w->starts, end);
            }
            last = end;
        }
    }
}

/* DeepSeek: bytes that no alternative matches. */
static inline uint64_t uncovered_word(const struct scan_work *w, const struct scan_masks *masks, size_t i)
{
    return ~(SCAN_ROW(w->letters)[i] | SCAN_ROW(w->symbols)[i] | SCAN_ROW(w->tail)[i] | KIND(NUMBER)[i] |
             KIND(SPACE)[i] | KIND(UPPER)[i]);
}

/* DeepSeek: whether a character of CLASS_CJK is unassigned. Letters after it would take it as their prefix, which
 * scanner_words.c does not know. */
static bool has_unassigned(const struct scan_work *w, const struct scan_masks *masks, size_t count)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = KIND(LOWER)[i] & SCAN_ROW(masks->start)[i]; rest; rest &= rest - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
            if (count - at < 3 || (character_class(w->text + at) & CLASS_KIND) == CLASS_OTHER)
                return true;
        }
    return false;
}

/* DeepSeek: starts a piece at each run of bytes that no alternative matches, and makes the last character of such a run
 * the prefix of letters that follow it. */
static void start_uncovered(struct scan_work *w, const struct scan_masks *masks, size_t i, uint64_t uncovered)
{
    const uint64_t before = i ? uncovered_word(w, masks, i - 1) : 0;
    w->starts[i] |= uncovered & ~(uncovered << 1 | before >> 63);
    for (uint64_t rest = uncovered & next_bits(SCAN_ROW(w->letters) + i); rest; rest &= rest - 1) {
        const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
        set_bit(w->starts, character_start(masks, at));
        clear_bit(w->starts, at + 1);
    }
}

/* DeepSeek: the ASCII letters among 64 bytes: letters after which a character starts, or the chunk ends. That is also
 * true of the first byte of a longer character that the chunk cuts off, and pieces there are dropped, or of one in text
 * that is not valid UTF-8, which may be split in any way. valid: of the last word. */
static inline uint64_t ascii_letters(const struct scan_work *w, const struct scan_masks *masks, size_t i,
                                     uint64_t valid)
{
    const uint64_t *start = SCAN_ROW(masks->start) + i;
    if (i >= w->words)
        return 0;
    const uint64_t after =
        i + 1 < w->words ? start[0] >> 1 | start[1] << 63 : (start[0] | ~valid) >> 1 | (uint64_t)1 << 63;
    return SCAN_ROW(w->letters)[i] & start[0] & after;
}

/* DeepSeek: joins one ASCII symbol with the ASCII letters after it, and starts a piece at a letter of several bytes
 * that follows them. Adding a bit to the first of a run of bits clears them and sets the bit after them, which is where
 * the ASCII letters end; the carry leads into the next word. Bytes that no alternative matches start pieces, too. */
static void apply_deepseek(struct scan_work *w, const struct scan_masks *masks, uint64_t valid_last)
{
    uint64_t first_before = 0, ascii_after = ascii_letters(w, masks, 0, valid_last);
    uint32_t carry = 0;
    for (size_t i = 0; i < w->words; i++) {
        const uint64_t *letters = SCAN_ROW(w->letters) + i, *symbols = SCAN_ROW(w->symbols) + i;
        const uint64_t valid = i + 1 < w->words ? ~(uint64_t)0 : valid_last;
        const uint64_t uncovered = uncovered_word(w, masks, i) & valid;
        if (uncovered)
            start_uncovered(w, masks, i, uncovered);
        const uint64_t ascii = ascii_after, blank_before = previous(SCAN_ROW(masks->blank) + i);
        ascii_after = ascii_letters(w, masks, i + 1, valid_last);
        const uint64_t first = symbols[0] & ~previous(symbols) & ~blank_before & (ascii >> 1 | ascii_after << 63);
        const uint64_t joined = first << 1 | first_before >> 63;
        w->starts[i] = (w->starts[i] & ~joined) | (add_carry(ascii, joined, &carry) & ~ascii & letters[0]);
        first_before = first;
    }
}

/* Scans the whole chunk with scan_piece. */
static size_t scan_by_piece(const struct scan_work *w, size_t count)
{
    memset(w->starts, 0, (SCAN_WORDS + 1) * sizeof *w->starts);
    for (size_t at = 0;;) {
        const size_t end = scan_piece(w->rules, w->text, at, count);
        if (end > w->count && at)
            return at;
        set_bit(w->starts, at);
        if (end >= w->count)
            return end;
        at = end;
    }
}

/* Returns the last start before `at`; 0 if there is none. */
static size_t last_start(const uint64_t *starts, size_t at)
{
    size_t word = at / 64;
    uint64_t found = starts[word] & (((uint64_t)1 << (at % 64)) - 1);
    while (!found && word)
        found = starts[--word];
    return found ? 64 * word + 63 - (size_t)__builtin_clzll(found) : 0;
}

/* For a chunk that more text follows: the last start that does not depend on this text; 0 if only the first one does
 * not. Most rules look less than 8 bytes ahead. The exceptions are runs that reach the end of the chunk: spaces, so the
 * result is before the last byte that is not a space; and upper-case letters, inside of which nothing starts, so the
 * last start may be wrong but the one before it is right. */
static size_t certain_end(const struct scan_work *w, const struct scan_masks *masks)
{
    const size_t limit = w->count - 8;
    const uint64_t *spaces = KIND(SPACE);
    size_t word = limit / 64;
    uint64_t solid = ~spaces[word] & (((uint64_t)1 << (limit % 64)) - 1);
    while (!solid && word)
        solid = ~spaces[--word];
    if (!solid)
        return 0;
    return last_start(w->starts, last_start(w->starts, 64 * word + 64 - (size_t)__builtin_clzll(solid)));
}

/* Applies the rules that scanner_words.c leaves out: rare ones, and DeepSeek's. */
static void apply_rare_rules(struct scan_work *w, const struct scan_masks *masks, size_t count, uint64_t valid)
{
    const struct split_rules *rules = w->rules;
    if (w->any_line_ends)
        join_lines(w);
    if (w->wide_spaces)
        add_wide_ends(w, masks);
    if (w->wide_numbers && rules->numbers > 1)
        group_wide_numbers(w, masks);
    if (rules->letters == LETTERS_CASED && (ANY(LETTER) || ANY(EXTRA)))
        resolve_uncertain(w, masks);
    if (rules->contraction != CONTRACTION_NONE && masks->any_quote)
        apply_contractions(w, masks, count);
    if (rules->deepseek) {
        apply_deepseek(w, masks, valid);
        w->by_piece |= ANY(LOWER) && has_unassigned(w, masks, count);
    }
}

static void clear_guards(struct scan_row *row, size_t words)
{
    SCAN_ROW(*row)[-1] = 0;
    SCAN_ROW(*row)[words] = 0;
}

static void init_rows(struct scan_work *w, struct scan_masks *masks)
{
    memset(masks->wide_words, 0, sizeof masks->wide_words);
    memset(masks->any, 0, sizeof masks->any);
    masks->any_quote = 0;
    for (int kind = 0; kind < SCAN_KINDS; kind++)
        clear_guards(&masks->kind[kind], w->words);
    clear_guards(&masks->start, w->words);
    clear_guards(&masks->blank, w->words);
    clear_guards(&masks->quote, w->words);
    clear_guards(&masks->tall, w->words);
    struct scan_row *own[] = {&w->letters, &w->symbols, &w->spaces, &w->tail, &w->ends, &w->after_line};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        clear_guards(own[i], w->words);
}

void scanner_init(struct scanner *scanner, const struct split_rules *rules, enum cpu_variant variant)
{
    assert(variant <= cpu_variant_best());
    assert(!rules->deepseek || (rules->letters == LETTERS_MARKS && rules->contraction == CONTRACTION_NONE &&
                                rules->prefix == PREFIX_ANY && rules->tail == TAIL_NEWLINES && rules->newlines));
    scanner->rules = *rules;
    scanner->classify = scan_classify_choose(variant);
    scanner->words = scan_words_choose(variant);
    scan_tables_init(&scanner->tables, rules);
}

size_t scan_chunk(const struct scanner *scanner, struct scan_chunk *chunk, const uint8_t *text, size_t count)
{
    _Alignas(64) struct scan_work w;
    struct scan_masks *masks = &chunk->masks;
    assert(text && count > 0);
    w.rules = &scanner->rules;
    w.text = text;
    w.count = count < SCAN_BYTES ? count : SCAN_BYTES;
    w.words = (w.count + 63) / 64;
    w.by_piece = w.any_line_ends = false;
    w.starts = chunk->starts;
    w.starts[w.words] = 0;
    init_rows(&w, masks);
    scanner->classify(masks, &scanner->tables, text, w.count, count);
    if (scanner->rules.letters == LETTERS_CASED && ANY(EXTRA)) {
        memset(&w.swallowed, 0, sizeof w.swallowed);
        find_swallowed_marks(&w, masks);
    }
    const uint64_t valid = ~(uint64_t)0 >> (64 * w.words - w.count);
    scanner->words(&w, masks, valid);
    apply_rare_rules(&w, masks, count, valid);
    if (w.by_piece)
        return scan_by_piece(&w, count);
    w.starts[w.words - 1] &= valid;
    if (w.count == count)
        return count;
    const size_t end = certain_end(&w, masks);
    assert(end <= w.count);
    if (!end)
        return scan_by_piece(&w, count);
    w.starts[end / 64] &= ((uint64_t)1 << (end % 64)) - 1;
    memset(w.starts + end / 64 + 1, 0, (w.words - end / 64) * sizeof *w.starts);
    return end;
}
