/*
 * scan.c - starts of pieces by arithmetic on masks of classes, 64 bytes of text a word.
 *
 * A chunk begins where a piece does, so nothing before it matters. First the classes (scan_classify*.c), then words from
 * left to right: runs of letters, numbers, symbols and spaces begin pieces; then the parts of the rules take starts away
 * (a prefix joins what follows) or add some (the last of several spaces). What needs a run's far end uses an addition
 * whose carry goes along the run and over words. What is rare (a contraction, a line of spaces between newlines, an
 * upper-case letter behind a letter without case) is done bit by bit on the finished bitmap. What is rarer still gives
 * the chunk to scan_piece. Starts near the end of a chunk may depend on what follows: they are found again in the next.
 */
#include "scan.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

/* What the words before leave to the next one, apart from masks: carries of additions, characters begun. */
struct carries {
    uint64_t tail, blank_lines, cased, ascii_letters; /* additions: 0 or 1 */
    uint64_t group;                                   /* group starts shifted into the next word */
    uint64_t first[4];                                /* bytes of single symbols, shifted */
};

struct work {
    const struct scanner *scanner;
    const uint8_t *text;
    size_t count, words;
    bool odd;   /* scan_piece must do it */
    struct scan_row letters, symbols, spaces, tail, swallowed;
    struct scan_row ends;       /* last bytes of runs of spaces that something follows */
    struct scan_row after_line; /* first spaces behind newlines */
    struct scan_row uncertain;  /* upper-case letters behind letters without case */
    uint64_t *starts;
};

static inline uint64_t previous(const uint64_t *word)
{
    return word[0] << 1 | word[-1] >> 63;
}

static inline uint64_t next(const uint64_t *word)
{
    return word[0] >> 1 | word[1] << 63;
}

static inline uint64_t add(uint64_t a, uint64_t b, uint64_t *carry)
{
    uint64_t sum;
    const uint64_t over = __builtin_add_overflow(a, b, &sum);
    const uint64_t again = __builtin_add_overflow(sum, *carry, &sum);
    *carry = over | again;
    return sum;
}

/* All bits of `run` from those of `from` on (themselves included where they are in it) up to the end of each run. */
static inline uint64_t along(uint64_t run, uint64_t from, uint64_t *carry)
{
    const uint64_t entered = *carry & run; /* bit 0 */
    return ((add(run & from, run, carry) ^ run) | from | entered) & run;
}

static inline bool bit(const uint64_t *words, size_t at)
{
    return words[at / 64] >> (at % 64) & 1;
}

static inline void set_bit(uint64_t *words, size_t at)
{
    words[at / 64] |= (uint64_t)1 << (at % 64);
}

static inline void clear_bit(uint64_t *words, size_t at)
{
    words[at / 64] &= ~((uint64_t)1 << (at % 64));
}

/* The first byte of the character that holds `at`. */
static size_t character_start(const struct scan_masks *masks, size_t at)
{
    while (at && !bit(SCAN_ROW(masks->start), at))
        at--;
    return at;
}

/* The first position from `at` on whose bit is 0; at most the chunk's end. */
static size_t run_end(const uint64_t *words, size_t at, size_t count)
{
    size_t word = at / 64;
    uint64_t zeros = ~words[word] & ~(uint64_t)0 << (at % 64);
    while (!zeros && (word + 1) * 64 < count)
        zeros = ~words[++word];
    const size_t end = zeros ? word * 64 + (size_t)__builtin_ctzll(zeros) : count;
    return end < count ? end : count;
}

#define KIND(name) SCAN_ROW(masks->kind[__builtin_ctz(SCAN_##name)])
#define ANY(name) (masks->any[__builtin_ctz(SCAN_##name)] != 0)

/* Marks with cased rules: letters, but swallowed by a run of symbols if the symbol before them is not the first of a
 * piece (then it would be the prefix of letters that begin with the mark). */
static void swallow_marks(struct work *w, const struct scan_masks *masks)
{
    const uint64_t *mark = KIND(EXTRA);
    uint64_t symbol_before = 0;
    for (size_t i = 0; i < w->words; i++) {
        const uint64_t symbol = ~(KIND(UPPER)[i] | KIND(LOWER)[i] | KIND(LETTER)[i] | KIND(NUMBER)[i] | KIND(SPACE)[i] |
                                  mark[i]);
        uint64_t found = mark[i] & SCAN_ROW(masks->start)[i] & (symbol << 1 | symbol_before >> 63);
        symbol_before = symbol;
        for (; found; found &= found - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(found);
            const size_t symbol_at = character_start(masks, at - 1);
            if (bit(SCAN_ROW(w->swallowed), at))
                continue;
            /* A slash may be the tail of a symbol before. */
            if (w->text[symbol_at] == '/' || (symbol_at && w->text[symbol_at - 1] == '/')) {
                w->odd = true;
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

/* Whether a byte of `found` is a slash: these are asked for so rarely that they have no mask. */
static inline bool has_slash(const struct work *w, size_t word, uint64_t found)
{
    for (; found; found &= found - 1)
        if (w->text[64 * word + (size_t)__builtin_ctzll(found)] == '/')
            return true;
    return false;
}

/* Tails of symbols, then what is left as symbols and spaces. */
static inline void split_word(struct work *w, const struct scan_masks *masks, size_t i, uint64_t valid,
                              struct carries *carries)
{
    const struct split_rules *rules = &w->scanner->rules;
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
            const uint64_t entered = carries->tail;
            tail = along(newlines, from, &carries->tail);
            if (rules->tail == TAIL_NEWLINES_SLASH && has_slash(w, i, (tail << 1 | entered) & symbols)) {
                uint64_t run = newlines;
                for (uint64_t rest = symbols; rest; rest &= rest - 1)
                    if (has_slash(w, i, rest & -rest))
                        run |= rest & -rest;
                carries->tail = entered;
                tail = along(run, from, &carries->tail);
            }
            symbols &= ~tail;
            spaces &= ~tail;
        }
    }
    SCAN_ROW(w->letters)[i] = letters;
    SCAN_ROW(w->symbols)[i] = symbols;
    SCAN_ROW(w->spaces)[i] = spaces;
    SCAN_ROW(w->tail)[i] = tail;
}

/* Characters behind the first character of each run of symbols that has `from` as first bytes. */
static inline uint64_t behind_first(uint64_t from, uint64_t start, struct carries *carries)
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

/* Starts of groups of 2 or 3 numbers inside longer runs, all numbers being single bytes. */
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

static inline uint64_t cased_starts(struct work *w, const struct scan_masks *masks, size_t i, struct carries *carries)
{
    const uint64_t *upper = KIND(UPPER) + i, *lower = KIND(LOWER) + i;
    const uint64_t first = upper[0] & previous(lower);
    const uint64_t both = (KIND(LETTER)[i] | KIND(EXTRA)[i]) & SCAN_ROW(w->letters)[i];
    const uint64_t both_before = i ? (KIND(LETTER)[i - 1] | KIND(EXTRA)[i - 1]) & SCAN_ROW(w->letters)[i - 1] : 0;
    const uint64_t had = carries->cased;
    uint64_t low_part = 0;
    if ((both & previous(lower)) | (had & both))
        low_part = along(both, both & previous(lower), &carries->cased);
    else
        carries->cased = 0;
    /* Letters without case that a lower one has gone before end the piece at the next upper one; else it depends. */
    const uint64_t behind = upper[0] & (both << 1 | both_before >> 63);
    const uint64_t low_behind = upper[0] & (low_part << 1 | had);
    SCAN_ROW(w->uncertain)[i] = behind & ~low_behind;
    return first | low_behind;
}

static inline void start_word(struct work *w, const struct scan_masks *masks, size_t i, uint64_t valid,
                              struct carries *carries)
{
    const struct split_rules *rules = &w->scanner->rules;
    const uint64_t *letters = SCAN_ROW(w->letters) + i, *symbols = SCAN_ROW(w->symbols) + i;
    const uint64_t *spaces = SCAN_ROW(w->spaces) + i;
    const uint64_t *numbers = KIND(NUMBER) + i, *blank = SCAN_ROW(masks->blank) + i, *newline = KIND(NEWLINE) + i;
    const uint64_t start = SCAN_ROW(masks->start)[i];
    const uint64_t letter_starts = letters[0] & ~previous(letters);
    const uint64_t symbol_starts = symbols[0] & ~previous(symbols);
    const uint64_t number_starts = numbers[0] & ~previous(numbers);
    uint64_t starts = letter_starts | symbol_starts | (spaces[0] & ~previous(spaces));

    /* The last of several spaces is a piece of its own or a prefix, unless a cut or the end follows. */
    uint64_t solid = ~next(spaces) & ~next(SCAN_ROW(w->tail) + i);
    if (rules->deepseek)
        solid &= ~next(numbers) & ~next(KIND(UPPER) + i);
    const uint64_t valid_next = i + 1 < w->words ? ~(uint64_t)0 : valid >> 1;
    uint64_t ends = spaces[0] & solid & valid_next;
    if (rules->newlines)
        ends &= ~newline[0];
    starts |= ends & start;
    SCAN_ROW(w->ends)[i] = ends;

    const uint64_t behind_ends = ends << 1 | (SCAN_ROW(w->ends) + i)[-1] >> 63;
    const uint64_t blank_ends = ends & blank[0];
    const uint64_t behind_blank = blank_ends << 1 | ((SCAN_ROW(w->ends) + i)[-1] & blank[-1]) >> 63;
    uint64_t joined = symbols[0] & behind_blank;
    if (rules->prefix == PREFIX_SPACE) {
        joined |= (letters[0] | numbers[0]) & behind_blank;
    } else {
        joined |= letters[0] & behind_ends;
        if (!rules->deepseek)
            joined |= letters[0] & behind_first(symbol_starts & ~behind_blank, start, carries);
    }
    if (rules->newlines) {
        /* A piece of spaces ends behind its last newline: taken to be each of them, put right by join_lines. */
        const uint64_t newlines = newline[0] & spaces[0];
        const uint64_t before = i ? newline[-1] & spaces[-1] : 0;
        const uint64_t after = spaces[0] & ~newline[0] & (newlines << 1 | before >> 63);
        SCAN_ROW(w->after_line)[i] = after;
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

/* ---- what is done bit by bit ---- */

/* A start behind a newline is none where another newline ends the same run of spaces. */
static void join_lines(struct work *w, const struct scan_masks *masks)
{
    const uint64_t *newline = KIND(NEWLINE);
    uint64_t carry = 0;
    for (size_t i = 0; i < w->words; i++) {
        const uint64_t plain = SCAN_ROW(w->spaces)[i] & ~newline[i], from = SCAN_ROW(w->after_line)[i];
        if (!(from | carry))
            continue;
        const uint64_t ends = add(plain, from, &carry) & ~plain & newline[i] & SCAN_ROW(w->spaces)[i];
        for (uint64_t rest = ends; rest; rest &= rest - 1) {
            size_t at = 64 * i + (size_t)__builtin_ctzll(rest) - 1;
            while (!bit(SCAN_ROW(w->after_line), at))
                at--;
            clear_bit(w->starts, at);
        }
    }
}

/* The last space of several where it has more than one byte: the start is its first. */
static void start_wide_ends(struct work *w, const struct scan_masks *masks)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = SCAN_ROW(w->ends)[i] & ~SCAN_ROW(masks->start)[i]; rest; rest &= rest - 1)
            set_bit(w->starts, character_start(masks, 64 * i + (size_t)__builtin_ctzll(rest)));
}

/* Numbers of more than one byte: groups counted character by character. */
static void group_wide_numbers(struct work *w, const struct scan_masks *masks)
{
    const uint64_t *numbers = KIND(NUMBER);
    uint32_t in_group = 0;
    size_t expected = SIZE_MAX;
    for (size_t i = 0; i < w->words; i++) {
        w->starts[i] &= ~numbers[i];
        for (uint64_t rest = numbers[i] & SCAN_ROW(masks->start)[i]; rest; rest &= rest - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
            if (at != expected || in_group == w->scanner->rules.numbers)
                in_group = 0;
            if (!in_group++)
                set_bit(w->starts, at);
            expected = at + character_bytes(w->text[at]);
        }
    }
}

/* An upper-case letter behind letters without case starts a piece if letters that are only upper-case end the word. */
static void settle_uncertain(struct work *w, const struct scan_masks *masks)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = SCAN_ROW(w->uncertain)[i]; rest; rest &= rest - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
            const size_t end = run_end(KIND(UPPER), at, w->count);
            if (end >= w->count || !bit(SCAN_ROW(w->letters), end))
                set_bit(w->starts, at);
        }
}

/* Bytes of a contraction's letters at `at`, 0 if there are none. */
static size_t contraction_letters(const struct work *w, size_t at, size_t readable)
{
    const bool folded = w->scanner->rules.contraction != CONTRACTION_EXACT;
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

static void contract(struct work *w, const struct scan_masks *masks, size_t readable)
{
    const bool suffix = w->scanner->rules.contraction == CONTRACTION_SUFFIX;
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < w->words; i++) {
        const uint64_t letters_before = previous(SCAN_ROW(w->letters) + i);
        const uint64_t blank_before = previous(SCAN_ROW(masks->blank) + i) & previous(SCAN_ROW(w->spaces) + i);
        uint64_t found = SCAN_ROW(masks->quote)[i] & next(SCAN_ROW(w->letters) + i) & SCAN_ROW(w->symbols)[i];
        found &= suffix ? letters_before : ~previous(SCAN_ROW(w->symbols) + i) & ~blank_before;
        for (; found; found &= found - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(found);
            const size_t bytes = contraction_letters(w, at + 1, readable);
            if (!bytes)
                continue;
            const size_t end = at + 1 + bytes;
            if (suffix && at == last) { /* behind a contraction it is a prefix */
                w->odd = true;
                return;
            }
            for (size_t k = at + 1; k < end && k < w->count; k++)
                clear_bit(w->starts, k);
            if (suffix)
                clear_bit(w->starts, at);
            if (end < w->count) {
                /* Letters without case would look back to those of the contraction. */
                if (suffix && (bit(KIND(LETTER), end) || bit(KIND(EXTRA), end))) {
                    w->odd = true;
                    return;
                }
                set_bit(w->starts, end);
            }
            last = end;
        }
    }
}

/* What no alternative of DeepSeek's covers. */
static inline uint64_t uncovered_word(const struct work *w, const struct scan_masks *masks, size_t i)
{
    return ~(SCAN_ROW(w->letters)[i] | SCAN_ROW(w->symbols)[i] | SCAN_ROW(w->tail)[i] | KIND(NUMBER)[i] |
             KIND(SPACE)[i] | KIND(UPPER)[i]);
}

/* Characters of no kind among those that are set apart: letters behind them would take them for a prefix. */
static bool has_unassigned(const struct work *w, const struct scan_masks *masks, size_t count)
{
    for (size_t i = 0; i < w->words; i++)
        for (uint64_t rest = KIND(LOWER)[i] & SCAN_ROW(masks->start)[i]; rest; rest &= rest - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
            if (count - at < 3 || (character_class(w->text + at) & CLASS_KIND) == CLASS_OTHER)
                return true;
        }
    return false;
}

/* DeepSeek: one ASCII symbol with ASCII letters; and the last uncovered character as a prefix of letters. */
static void deepseek_words(struct work *w, const struct scan_masks *masks, uint64_t valid_last)
{
    for (size_t i = 0; i < w->words; i++) {
        const uint64_t *letters = SCAN_ROW(w->letters) + i, *symbols = SCAN_ROW(w->symbols) + i;
        const uint64_t valid = i + 1 < w->words ? ~(uint64_t)0 : valid_last;
        const uint64_t uncovered = uncovered_word(w, masks, i) & valid;
        if (uncovered) {
            const uint64_t before = i ? uncovered_word(w, masks, i - 1) : 0;
            w->starts[i] |= uncovered & ~(uncovered << 1 | before >> 63);
            for (uint64_t rest = uncovered & next(letters); rest; rest &= rest - 1) {
                const size_t at = 64 * i + (size_t)__builtin_ctzll(rest);
                set_bit(w->starts, character_start(masks, at));
                clear_bit(w->starts, at + 1);
            }
        }
        const uint64_t blank_before = previous(SCAN_ROW(masks->blank) + i);
        uint64_t first = symbols[0] & ~previous(symbols) & ~blank_before & next(letters);
        if (!bit(masks->wide_words, i) && !bit(masks->wide_words, i + 1) && ~letters[1]) {
            w->starts[i] &= ~(first << 1); /* all ASCII up to the ends of these words */
            if (first >> 63)
                w->starts[i + 1] &= ~(uint64_t)1;
            continue;
        }
        for (; first; first &= first - 1) {
            const size_t at = 64 * i + (size_t)__builtin_ctzll(first);
            size_t end = at + 1;
            while (w->text[at] < 0x80 && end < w->count && (uint8_t)((w->text[end] | 0x20) - 'a') < 26)
                end++;
            if (end == at + 1)
                continue;
            clear_bit(w->starts, at + 1);
            if (end < w->count && bit(SCAN_ROW(w->letters), end))
                set_bit(w->starts, end);
        }
    }
}

/* The chunk by scan_piece. */
static size_t scan_slowly(const struct work *w, size_t count)
{
    memset(w->starts, 0, (SCAN_WORDS + 1) * sizeof *w->starts);
    for (size_t at = 0;;) {
        const size_t end = scan_piece(&w->scanner->rules, w->text, at, count);
        if (end > w->count && at)
            return at;
        set_bit(w->starts, at);
        if (end >= w->count)
            return end;
        at = end;
    }
}

/* The last start below `at`; 0 if there is none. */
static size_t last_start(const uint64_t *starts, size_t at)
{
    size_t word = at / 64;
    uint64_t found = starts[word] & (((uint64_t)1 << (at % 64)) - 1);
    while (!found && word)
        found = starts[--word];
    return found ? 64 * word + 63 - (size_t)__builtin_clzll(found) : 0;
}

/* How far starts do not depend on what follows the chunk. Runs that reach the chunk's end are all that look further than
 * a few bytes: of spaces (so what counts ends before the last byte that is none), or of upper-case letters, inside which
 * nothing starts (so the last start there may be wrong, the one before is right). 0: nowhere. */
static size_t certain_end(const struct work *w, const struct scan_masks *masks)
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

static void start_rarely(struct work *w, const struct scan_masks *masks, size_t count, uint64_t valid)
{
    const struct split_rules *rules = &w->scanner->rules;
    uint64_t wide_spaces = 0, wide_numbers = 0;
    for (size_t i = 0; i < w->words; i++) {
        wide_spaces |= KIND(SPACE)[i] & ~SCAN_ROW(masks->start)[i];
        wide_numbers |= KIND(NUMBER)[i] & ~SCAN_ROW(masks->start)[i];
    }
    if (rules->newlines && ANY(NEWLINE))
        join_lines(w, masks);
    if (wide_spaces)
        start_wide_ends(w, masks);
    if (wide_numbers && rules->numbers > 1)
        group_wide_numbers(w, masks);
    if (rules->letters == LETTERS_CASED && (ANY(LETTER) || ANY(EXTRA)))
        settle_uncertain(w, masks);
    if (rules->contraction != CONTRACTION_NONE && masks->any_quote)
        contract(w, masks, count);
    if (rules->deepseek) {
        deepseek_words(w, masks, valid);
        w->odd |= ANY(LOWER) && has_unassigned(w, masks, count);
    }
}

static void clear_ends(struct scan_row *row, size_t words)
{
    row->padded[0] = 0;
    SCAN_ROW(*row)[words] = 0;
}

static void prepare(struct work *w, struct scan_masks *masks, size_t count)
{
    memset(masks->wide_words, 0, sizeof masks->wide_words);
    memset(masks->any, 0, sizeof masks->any);
    masks->any_quote = 0;
    for (int kind = 0; kind < SCAN_KINDS; kind++)
        clear_ends(&masks->kind[kind], w->words);
    clear_ends(&masks->start, w->words);
    clear_ends(&masks->blank, w->words);
    clear_ends(&masks->quote, w->words);
    clear_ends(&masks->tall, w->words);
    struct scan_row *own[] = {&w->letters, &w->symbols, &w->spaces, &w->tail, &w->ends, &w->after_line};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        clear_ends(own[i], w->words);
    w->scanner->classify(masks, &w->scanner->tables, w->text, w->count, count);
}

size_t scan_chunk(const struct scanner *scanner, struct scan_chunk *chunk, const uint8_t *text, size_t count)
{
    struct work w;
    struct scan_masks *masks = &chunk->masks;
    assert(count);
    w.scanner = scanner;
    w.text = text;
    w.count = count < SCAN_BYTES ? count : SCAN_BYTES;
    w.words = (w.count + 63) / 64;
    w.odd = false;
    w.starts = chunk->starts;
    w.starts[w.words] = 0;
    prepare(&w, masks, count);
    if (scanner->rules.letters == LETTERS_CASED && ANY(EXTRA)) {
        memset(&w.swallowed, 0, sizeof w.swallowed);
        swallow_marks(&w, masks);
    }
    const uint64_t valid = ~(uint64_t)0 >> (64 * w.words - w.count);
    struct carries carries = {0};
    for (size_t i = 0; i < w.words; i++)
        split_word(&w, masks, i, i + 1 < w.words ? ~(uint64_t)0 : valid, &carries);
    for (size_t i = 0; i < w.words; i++)
        start_word(&w, masks, i, i + 1 < w.words ? ~(uint64_t)0 : valid, &carries);
    start_rarely(&w, masks, count, valid);
    if (w.odd)
        return scan_slowly(&w, count);
    w.starts[w.words - 1] &= valid;
    if (w.count == count)
        return count;
    const size_t end = certain_end(&w, masks);
    if (!end)
        return scan_slowly(&w, count);
    w.starts[end / 64] &= ((uint64_t)1 << (end % 64)) - 1;
    memset(w.starts + end / 64 + 1, 0, (w.words - end / 64) * sizeof *w.starts);
    return end;
}
