/* SPDX-License-Identifier: MIT */
/*
 * scanner_piece.c - the reference scanner: one character at a time, alternative after alternative, like the regular
 * expression, with its backtracking written out.
 */
#include "scanner_piece.h"

#include <assert.h>
#include <stdbool.h>

#include "unicode/classes.h"

struct reader {
    const struct split_rules *rules;
    const uint8_t *text;
    size_t count;
    bool cjk; /* DeepSeek: the piece is part of a run of CLASS_CJK; otherwise of the text between two of these runs */
};

#define END 0xFF /* the class after the last character that the expression can see */

static uint32_t bytes_at(const struct reader *r, size_t at)
{
    const uint32_t wanted = character_bytes(r->text[at]);
    return at + wanted <= r->count ? wanted : (uint32_t)(r->count - at);
}

static uint8_t full_class(const struct reader *r, size_t at)
{
    if (at >= r->count)
        return END;
    if (bytes_at(r, at) < character_bytes(r->text[at]))
        return CLASS_OTHER; /* the end cuts the character off, so it is not UTF-8 */
    return character_class(r->text + at);
}

static bool is_cjk(uint8_t full)
{
    return full != END && (full & CLASS_CJK);
}

/* Returns the kind of the character at `at`; END where an earlier expression of DeepSeek's has cut the text. */
static uint8_t class_at(const struct reader *r, size_t at)
{
    const uint8_t full = full_class(r, at);
    if (full == END)
        return END;
    if (r->rules->deepseek && (is_cjk(full) != r->cjk || (full & CLASS_KIND) == CLASS_NUMBER))
        return END;
    return full & CLASS_KIND;
}

static bool is_letter(const struct reader *r, uint8_t class)
{
    return (class >= CLASS_UPPER && class <= CLASS_LETTER) ||
           (class == CLASS_MARK && r->rules->letters != LETTERS_PLAIN);
}

static bool is_upper(uint8_t class) /* U of LETTERS_CASED */
{
    return class == CLASS_UPPER || class == CLASS_TITLE || class == CLASS_MODIFIER || class == CLASS_LETTER ||
           class == CLASS_MARK;
}

static bool is_lower(uint8_t class) /* L of LETTERS_CASED */
{
    return class == CLASS_LOWER || class == CLASS_MODIFIER || class == CLASS_LETTER || class == CLASS_MARK;
}

static bool is_space(uint8_t class)
{
    return class == CLASS_SPACE || class == CLASS_NEWLINE;
}

/* [^\s\p{L}\p{N}] and its variants */
static bool is_symbol(const struct reader *r, uint8_t class)
{
    if (r->rules->deepseek)
        return class == CLASS_PUNCTUATION || class == CLASS_SYMBOL;
    return class == CLASS_OTHER || class == CLASS_PUNCTUATION || class == CLASS_SYMBOL ||
           (class == CLASS_MARK && r->rules->letters != LETTERS_MARKS);
}

/* [^\r\n\p{L}\p{N}] and its variants */
static bool is_prefix(const struct reader *r, uint8_t class)
{
    if (class == END || class == CLASS_NEWLINE || class == CLASS_NUMBER ||
        (class >= CLASS_UPPER && class <= CLASS_LETTER))
        return false;
    return !r->rules->deepseek || (class != CLASS_PUNCTUATION && class != CLASS_SYMBOL);
}

/* Returns the number of bytes of the contraction ('s, 't, 're, ...) at `at`; 0 if there is none. */
static size_t contraction_bytes(const struct reader *r, size_t at)
{
    if (r->count - at < 2 || r->text[at] != '\'')
        return 0;
    const bool folded = r->rules->contraction != CONTRACTION_EXACT;
    const uint8_t fold = folded ? 0x20 : 0;
    const uint8_t one = r->text[at + 1] | fold, two = r->count - at > 2 ? r->text[at + 2] | fold : 0;
    if (one == 's' || one == 't' || one == 'm' || one == 'd')
        return 2;
    if ((one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l'))
        return 3;
    if (folded && r->count - at > 2 && r->text[at + 1] == 0xC5 && r->text[at + 2] == 0xBF) /* U+017F folds to s */
        return 3;
    return 0;
}

static size_t letters_end(const struct reader *r, size_t at)
{
    while (is_letter(r, class_at(r, at)))
        at += bytes_at(r, at);
    return at;
}

/* Returns the end of a match of U*L+ at `at`; `at` if there is none. U* backtracks until a character is left for L+. */
static size_t cased_first(const struct reader *r, size_t at)
{
    size_t end = at, last = at; /* last: the end of the last character of U* that is also in L */
    bool found = false;
    uint8_t class;
    while (class = class_at(r, end), is_upper(class)) {
        end += bytes_at(r, end);
        if (is_lower(class)) {
            last = end;
            found = true;
        }
    }
    if (!is_lower(class))
        return found ? last : at;
    while (class = class_at(r, end), is_lower(class))
        end += bytes_at(r, end);
    return end;
}

/* Returns the end of a match of U+L* at `at`; `at` if there is none. */
static size_t cased_second(const struct reader *r, size_t at)
{
    size_t end = at;
    while (is_upper(class_at(r, end)))
        end += bytes_at(r, end);
    if (end == at)
        return at;
    while (is_lower(class_at(r, end)))
        end += bytes_at(r, end);
    return end;
}

static size_t cased_piece(const struct reader *r, size_t at)
{
    const size_t after_prefix = is_prefix(r, class_at(r, at)) ? at + bytes_at(r, at) : at;
    for (int alternative = 0; alternative < 2; alternative++)
        for (int with_prefix = after_prefix > at; with_prefix >= 0; with_prefix--) {
            const size_t from = with_prefix ? after_prefix : at;
            const size_t end = alternative ? cased_second(r, from) : cased_first(r, from);
            if (end > from)
                return end + (r->rules->contraction == CONTRACTION_SUFFIX ? contraction_bytes(r, end) : 0);
        }
    return at;
}

static size_t letters_piece(const struct reader *r, size_t at)
{
    if (r->rules->letters == LETTERS_CASED)
        return cased_piece(r, at);
    size_t from = at;
    if (r->rules->prefix == PREFIX_SPACE ? r->text[at] == ' ' : is_prefix(r, class_at(r, at)))
        from += bytes_at(r, at);
    const size_t end = letters_end(r, from);
    return end > from ? end : letters_end(r, at); /* a mark can be a prefix or a letter */
}

static size_t numbers_piece(const struct reader *r, size_t at)
{
    size_t end = at + (r->rules->prefix == PREFIX_SPACE && r->text[at] == ' ');
    const size_t from = end;
    for (uint32_t n = 0; !r->rules->numbers || n < r->rules->numbers; n++) {
        if ((full_class(r, end) & CLASS_KIND) != CLASS_NUMBER || end >= r->count)
            break;
        end += bytes_at(r, end);
    }
    return end > from ? end : at;
}

static size_t symbols_piece(const struct reader *r, size_t at)
{
    size_t end = at + (r->text[at] == ' ');
    const size_t from = end;
    while (is_symbol(r, class_at(r, end)))
        end += bytes_at(r, end);
    if (end == from)
        return at;
    if (r->rules->tail != TAIL_NONE && !r->cjk)
        while (end < r->count && (r->text[end] == '\r' || r->text[end] == '\n' ||
                                  (r->text[end] == '/' && r->rules->tail == TAIL_NEWLINES_SLASH)))
            end++;
    return end;
}

static size_t spaces_piece(const struct reader *r, size_t at)
{
    size_t end = at, last = at, newline = at;
    uint8_t class;
    while (class = class_at(r, end), is_space(class)) {
        last = end;
        end += bytes_at(r, end);
        if (class == CLASS_NEWLINE)
            newline = end;
    }
    if (r->rules->newlines && newline > at)
        return newline;
    return class == END || last == at ? end : last;
}

static bool is_ascii_letter(uint8_t byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

/* r->cjk must be right for `at`. Returns `at` if no alternative matches there. */
static size_t deepseek_piece(const struct reader *r, size_t at)
{
    size_t end = at;
    if ((full_class(r, at) & CLASS_KIND) == CLASS_NUMBER)
        return numbers_piece(r, at);
    if (r->text[at] < 0x80 && is_symbol(r, class_at(r, at))) {
        for (end = at + 1; end < r->count && is_ascii_letter(r->text[end]);)
            end++;
        if (end > at + 1)
            return end;
    }
    end = letters_piece(r, at);
    if (end == at)
        end = symbols_piece(r, at);
    if (end == at)
        end = spaces_piece(r, at);
    return end;
}

size_t scan_piece(const struct split_rules *rules, const uint8_t *text, size_t at, size_t count)
{
    struct reader r = {rules, text, count, false};
    size_t end;
    assert(at < count);
    if (rules->deepseek) {
        r.cjk = is_cjk(full_class(&r, at));
        /* Characters that no alternative matches are one piece, which ends where an alternative matches or a run of
         * CLASS_CJK begins or ends. */
        for (end = at; end < count && is_cjk(full_class(&r, end)) == r.cjk && deepseek_piece(&r, end) == end;)
            end += bytes_at(&r, end);
        return end > at ? end : deepseek_piece(&r, at);
    }
    if (rules->contraction == CONTRACTION_EXACT || rules->contraction == CONTRACTION_FOLDED) {
        const size_t bytes = contraction_bytes(&r, at);
        if (bytes)
            return at + bytes;
    }
    if ((end = letters_piece(&r, at)) > at || (end = numbers_piece(&r, at)) > at ||
        (end = symbols_piece(&r, at)) > at || (end = spaces_piece(&r, at)) > at)
        return end;
    return at + bytes_at(&r, at); /* not reached: all rules except DeepSeek's match every character */
}
