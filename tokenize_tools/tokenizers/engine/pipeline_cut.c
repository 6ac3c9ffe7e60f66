/* SPDX-License-Identifier: MIT */
/*
 * pipeline_cut.c - where a long document may be cut without a change of its ids: after a letter and before a space, a
 * newline, or one of three punctuation marks of Chinese and Japanese. Below, l is the letter and r the character after
 * it.
 *
 * The obvious way, a cut at any newline or between any two words, is wrong for some tokenizer: BPE may merge across the
 * cut, a pattern may match across it, an added token may contain it, and normalization may compose across it. The
 * following is the proof that none of this happens at l r under the conditions that this file checks. Example: the text
 * "the cat\n sat" may be cut at the bars in "the| cat|\n sat", but not between the newline and the space, which one
 * piece may contain.
 *
 * Pieces. All rules of the scanner (split_rules.h) read text from the end of the last piece on, never before it, and
 * none of their alternatives matches l r: in a match, a letter is followed only by letters, marks, or an apostrophe. So
 * a piece ends after l, and one begins with r, in the whole text and in the parts. The look-ahead (?!\S) is only taken
 * from a space on, so in a match that ends before l it does not read past l. Therefore the pieces of the first part are
 * pieces of the whole, and so are those of the second part, which begins where a piece begins. An engine that does not
 * split by rules, but has no token that joins certain characters, decides itself whether a token joins l r (`may_cut`).
 *
 * Normal form. r does not compose with the character before it and is not reordered, so NFC of the text up to r does
 * not depend on what follows. If text is normalized, l is one of the letters that NFC never changes, so l r is still
 * there afterwards.
 *
 * Added tokens are found from left to right. A token that contains l r anywhere forbids the cut, so no token crosses
 * it, and the tokens before it are found in the first part, too. A token also depends on the text beside it:
 *
 * - single_word reads one character before the token and one after it. After a token that ends with l, this is r or the
 *   end of the part; neither is a word character. Before a token that begins with r it is l, a word character, which
 *   the second part does not have: such tokens forbid r.
 * - lstrip takes the spaces before the token, at most up to l.
 * - rstrip takes the spaces after the token, and these cross the cut if the token ends with l: such tokens forbid every
 *   r.
 */
#include "pipeline_cut.h"

#include <assert.h>
#include <string.h>

#include "text/utf8.h"
#include "unicode/classes.h"

#define WINDOW ((size_t)64 << 10) /* distance from the end within which pipeline_cut searches */

static const struct {
    uint8_t bytes[3], count;
} rights[CUT_RIGHTS] = {{" ", 1}, {"\n", 1}, {{0xE3, 0x80, 0x81}, 3}, {{0xE3, 0x80, 0x82}, 3}, {{0xEF, 0xBC, 0x8C}, 3}};

/* Returns the number of the character at text[at] in `rights`, or CUT_RIGHTS. */
static uint32_t right_at(const uint8_t *text, size_t at, size_t count)
{
    uint32_t right = 0;
    while (right < CUT_RIGHTS &&
           (count - at < rights[right].count || memcmp(text + at, rights[right].bytes, rights[right].count) != 0))
        right++;
    return right;
}

/* Returns the offset of the letter that ends at `at` > 0, or `at` if there is no letter. The text may be invalid
 * UTF-8. */
static size_t letter_before(const uint8_t *text, size_t at)
{
    size_t from = at;
    do
        from--;
    while (from && at - from < 4 && (text[from] & 0xC0) == 0x80);
    if (utf8_valid_prefix((const char *)text + from, at - from) != at - from)
        return at;
    const uint8_t class = character_class(text + from) & CLASS_KIND;
    return class >= CLASS_UPPER && class <= CLASS_LETTER ? from : at;
}

/* Returns whether NFC never changes this letter: ASCII, Cyrillic from U+0410 to U+044F, Han, and Hangul syllables.
 * None of them composes with a character before it. */
static bool is_stable(const uint8_t *letter, size_t bytes)
{
    const uint32_t code = bytes == 1   ? letter[0]
                          : bytes == 2 ? (letter[0] & 31u) << 6 | (letter[1] & 63u)
                          : bytes == 3 ? (letter[0] & 15u) << 12 | (letter[1] & 63u) << 6 | (letter[2] & 63u)
                                       : 0x110000;
    return code < 0x80 || (code >= 0x410 && code < 0x450) || (code >= 0x4E00 && code < 0xA000) ||
           (code >= 0xAC00 && code < 0xD7A4);
}

/* Removes the right characters that this added token forbids. */
static void token_forbids(struct pipeline_cuts *cuts, const struct added_token *token)
{
    const uint8_t *match = token->match;
    const size_t count = token->match_bytes;
    for (size_t at = 0; at < count; at++) {
        const uint32_t right = right_at(match, at, count);
        if (right < CUT_RIGHTS && (at ? letter_before(match, at) < at : token->single_word))
            cuts->rights[right] = false;
    }
    /* With rstrip, the spaces after l belong to the token. An engine that puts a space before the text after a
     * token (SentencePiece) would not put one before a part that begins there. */
    const bool begins = token->rstrip || (!token->normalized && cuts->engine->kind->puts_space);
    if (begins && count && letter_before(match, count) < count)
        memset(cuts->rights, 0, sizeof cuts->rights);
}

bool pipeline_cuts_find(struct pipeline_cuts *cuts, const struct pipeline_parts *parts, bool specials)
{
    assert(parts->engine);
    memset(cuts, 0, sizeof *cuts);
    cuts->engine = parts->engine;
    if (parts->pretokenizer.count || !parts->engine_cuts || !parts->engine->kind->may_cut)
        return false;
    for (uint32_t i = 0; i < parts->normalizer.count; i++)
        if (parts->normalizer.steps[i].kind != NORMALIZE_NFC)
            return false;
    cuts->composes = parts->normalizer.count != 0;
    for (uint32_t right = 0; right < CUT_RIGHTS; right++)
        cuts->rights[right] = true;
    const bool any = added_tokens_any(parts->added, ADDED_RAW, specials) ||
                     added_tokens_any(parts->added, ADDED_NORMALIZED, specials);
    for (size_t i = 0; any && i < added_tokens_count(parts->added); i++)
        token_forbids(cuts, added_tokens_at(parts->added, i));
    bool some = false;
    for (uint32_t right = 0; right < CUT_RIGHTS; right++)
        for (uint32_t left = 0; left < 256 && cuts->rights[right] && !some; left++)
            some = parts->engine->kind->may_cut(parts->engine, (uint8_t)left, rights[right].bytes[0]);
    return some;
}

size_t pipeline_cut(const struct pipeline_cuts *cuts, const uint8_t *text, size_t count)
{
    assert(cuts->engine);
    const size_t last = count > WINDOW ? count - WINDOW : 1;
    for (size_t at = count; at-- > last;) {
        const uint32_t right =
            text[at] == ' ' || text[at] == '\n' || text[at] >= 0xE3 ? right_at(text, at, count) : CUT_RIGHTS;
        if (right == CUT_RIGHTS || !cuts->rights[right])
            continue;
        const size_t from = letter_before(text, at);
        if (from < at && (!cuts->composes || is_stable(text + from, at - from)) &&
            cuts->engine->kind->may_cut(cuts->engine, text[from], text[at]))
            return at;
    }
    return 0;
}
