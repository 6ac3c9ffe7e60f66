/*
 * pipeline_cut.c - where a long document may be cut without a change of its ids: behind a letter and before a space,
 * a newline or one of three marks of Chinese and Japanese text. Call the letter l, the other character r.
 *
 * Pieces. All rules that a scanner has (split_rules.h) look at text from where the last piece ended, never behind it.
 * No alternative of theirs holds l r: what stands behind a letter in a match is a letter, a mark or an apostrophe. So a
 * piece ends behind l and one begins with r, in the whole text and in the parts. What an alternative looks ahead for,
 * (?!\S), it looks for from a space on: of a match that ends before l that is no further than l. So pieces of the first
 * part are those of the whole; and those of the second, which begins where one does. With an engine that does not cut
 * by rules but where no token joins two characters, it is asked whether one joins l r.
 *
 * Normal form. r composes with nothing before it, nor is reordered: what NFC makes of a text up to r, it makes
 * without regard to what follows. l is one of those that NFC leaves alone whatever precedes, so it still stands
 * before r.
 *
 * Added tokens. They are found from left to right. One that holds l r at any place forbids the cut, so none crosses
 * it, and what is found before is found in the first part. What is looked at beside a token: for single_word the
 * character before it and behind. Behind one that ends with l: r, or the end of the part: neither is of a word.
 * Before one that begins with r: l, of a word, which in the second part is not there: such tokens forbid r. Spaces
 * that a token with lstrip takes end at l. Those that one with rstrip takes go over the cut if it ends with l: such
 * tokens forbid all r.
 */
#include "pipeline_cut.h"

#include <assert.h>
#include <string.h>

#include "text/utf8.h"
#include "unicode/classes.h"

#define WINDOW ((size_t)64 << 10) /* how far back a place is looked for */

static const struct {
    uint8_t bytes[3], count;
} rights[CUT_RIGHTS] = {{" ", 1}, {"\n", 1}, {{0xE3, 0x80, 0x81}, 3}, {{0xE3, 0x80, 0x82}, 3}, {{0xEF, 0xBC, 0x8C}, 3}};

/* The number of the character at text[at] among `rights`, CUT_RIGHTS if it is none of them. */
static uint32_t right_at(const uint8_t *text, size_t at, size_t count)
{
    uint32_t right = 0;
    while (right < CUT_RIGHTS &&
           (count - at < rights[right].count || memcmp(text + at, rights[right].bytes, rights[right].count) != 0))
        right++;
    return right;
}

/* Where the letter begins that ends before `at`; `at` if there is none. Text may be anything. */
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

/* Letters of ASCII, Cyrillic from U+0410 to U+044F, Han, Hangul syllables: NFC changes none, and none composes with
 * what is before it. */
static bool is_stable(const uint8_t *letter, size_t bytes)
{
    const uint32_t code = bytes == 1 ? letter[0] : bytes == 2 ? (letter[0] & 31u) << 6 | (letter[1] & 63u)
                        : bytes == 3 ? (letter[0] & 15u) << 12 | (letter[1] & 63u) << 6 | (letter[2] & 63u) : 0x110000;
    return code < 0x80 || (code >= 0x410 && code < 0x450) ||
           (code >= 0x4E00 && code < 0xA000) || (code >= 0xAC00 && code < 0xD7A4);
}

static void token_forbids(struct pipeline_cuts *cuts, const struct added_token *token)
{
    const uint8_t *match = token->match;
    const size_t count = token->match_bytes;
    for (size_t at = 0; at < count; at++) {
        const uint32_t right = right_at(match, at, count);
        if (right < CUT_RIGHTS && (at ? letter_before(match, at) < at : token->single_word))
            cuts->rights[right] = false;
    }
    /* Behind rstrip the space belongs to the token; where engines put something before texts behind a token (a space
     * that SentencePiece adds), a part must not begin there, since it would be taken for the text's inside. */
    const bool begins = token->rstrip || (!token->normalized && cuts->engine->kind->front);
    if (begins && count && letter_before(match, count) < count)
        memset(cuts->rights, 0, sizeof cuts->rights);
}

bool pipeline_cuts_find(struct pipeline_cuts *cuts, const struct pipeline_parts *parts, bool specials)
{
    memset(cuts, 0, sizeof *cuts);
    cuts->engine = parts->engine;
    if (parts->pretokenizer.count || !parts->engine_cuts || !parts->engine->kind->border)
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
            some = parts->engine->kind->border(parts->engine, (uint8_t)left, rights[right].bytes[0]);
    return some;
}

size_t pipeline_cut(const struct pipeline_cuts *cuts, const uint8_t *text, size_t count)
{
    const size_t last = count > WINDOW ? count - WINDOW : 1;
    for (size_t at = count; at-- > last;) {
        const uint32_t right = text[at] == ' ' || text[at] == '\n' || text[at] >= 0xE3 ? right_at(text, at, count)
                                                                                      : CUT_RIGHTS;
        if (right == CUT_RIGHTS || !cuts->rights[right])
            continue;
        const size_t from = letter_before(text, at);
        if (from < at && (!cuts->composes || is_stable(text + from, at - from)) &&
            cuts->engine->kind->border(cuts->engine, text[from], text[at]))
            return at;
    }
    return 0;
}
