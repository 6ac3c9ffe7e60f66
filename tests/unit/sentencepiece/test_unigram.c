/* SPDX-License-Identifier: MIT */
/*
 * test_unigram.c - Unigram gives the ids that the references' definitions give, read literally: one search over the
 * whole text, with sums that are rounded at each token. Ties, sums that are set to 0 or are infinite, caches that are
 * warm, all CPU variants.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sentencepiece/unigram_build.h"
#include "sentencepiece/unigram_encode.h"

static uint64_t seed = 1;
static uint32_t random_below(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % most);
}

/* ---- vocabularies ---- */

#define PIECES 400
#define TEXT 12000

static const char *const characters[] = {
    " ", "a", "b", "c", "d", "e", "\xC3\xA9", "\xE4\xB8\xAD", "\xE6\x96\x87", "\xF0\x9F\x98\x80"};
#define CHARACTERS (sizeof characters / sizeof characters[0])

struct made {
    struct unigram_source source;
    uint32_t count;
    uint8_t kinds[PIECES];
    float floats[PIECES];
    double scores[PIECES];
    uint32_t offsets[PIECES + 1];
    uint8_t bytes[PIECES * 64];
};

static const uint8_t *text_of(const struct made *made, uint32_t id, uint32_t *count)
{
    *count = made->offsets[id + 1] - made->offsets[id];
    return made->bytes + made->offsets[id];
}

static uint32_t find(const struct made *made, const uint8_t *text, size_t count)
{
    for (uint32_t id = 0; id < made->count; id++) {
        uint32_t bytes;
        const uint8_t *own = text_of(made, id, &bytes);
        if (bytes == count && !memcmp(own, text, count))
            return id;
    }
    return BPE_NONE;
}

static void add(struct made *made, const char *text, enum sp_kind kind, double score)
{
    const size_t count = strlen(text);
    if (made->count == PIECES || find(made, (const uint8_t *)text, count) != BPE_NONE)
        return;
    memcpy(made->bytes + made->offsets[made->count], text, count);
    made->offsets[made->count + 1] = made->offsets[made->count] + (uint32_t)count;
    made->kinds[made->count] = (uint8_t)kind;
    made->scores[made->count++] = score;
}

enum scores { USUAL, COARSE, NEAR, CLOSE, SAME, LARGE, STEEP, RISING, ENDLESS, SCORES };

static double score(enum scores scores)
{
    const double unit = random_below(1u << 24) / (double)(1u << 24);
    switch (scores) {
    case USUAL:
        return -2 - 14 * unit;
    case COARSE:
        return -2 - (double)random_below(24) / 2;
    case NEAR: /* rounding decides */
        return -8 - random_below(2000) / 1000.0;
    case CLOSE: /* so it does more often */
        return -8 - random_below(20) / 1000.0;
    case LARGE:
        return -100 - 3000 * unit;
    case STEEP:
        return -exp(20 * unit - 5);
    case RISING:
        return 300 * unit;
    case ENDLESS: /* sums are infinite, or not a number */
        return random_below(9) ? -DBL_MAX * unit : DBL_MAX * unit;
    case SAME:
    case SCORES:
    default:
        return -7.1;
    }
}

/* Makes a vocabulary. floats: a model of SentencePiece, else one of tokenizers. */
static void vocabulary(struct made *made, enum scores scores, bool floats)
{
    static const struct bpe_merge no_merges[1];
    const bool mixed = random_below(4) == 0;
    memset(made, 0, sizeof *made);
    add(made, "<unk>", SP_UNKNOWN, 0);
    for (size_t i = 0; i < CHARACTERS; i++)
        if (random_below(8))
            add(made, characters[i], SP_NORMAL, score(scores));
    for (uint32_t i = 0; i < 300; i++) {
        char text[64] = "";
        /* In most vocabularies a space only begins a token, and Chinese is apart, so text is cut into words. */
        const uint32_t from = mixed ? 0 : random_below(4) ? 1 : 7, below = mixed ? CHARACTERS : from == 1 ? 7 : 9;
        if (from == 1 && random_below(2))
            strcat(text, " ");
        for (uint32_t k = 2 + random_below(random_below(4) ? 4 : 12); k; k--)
            strcat(text, characters[from + random_below(below - from)]);
        const uint32_t kind = random_below(40);
        add(made, text, !floats || kind > 1 ? SP_NORMAL : kind ? SP_UNUSED : SP_USER_DEFINED, score(scores));
    }
    for (uint32_t id = 0; id < made->count && floats; id++)
        made->scores[id] =
            (double)(made->floats[id] = (float)fmax(fmin(made->scores[id], (double)FLT_MAX), -(double)FLT_MAX));
    made->source = (struct unigram_source){
        .texts = {.path = "test", .vocabulary = made->count, .bytes = made->bytes, .offsets = made->offsets, .unk = 0},
        .scores = made->scores};
    if (floats) {
        made->source.texts.scores = made->floats;
        made->source.texts.kinds = made->kinds;
    } else {
        made->source.texts.merges = no_merges;
    }
}

/* ---- the definition ---- */

struct best {
    double sum;
    size_t from;
    uint32_t id;
};

static double rounded(double sum, bool floats)
{
    return floats ? (double)(float)sum : sum;
}

static double score_of(const struct made *made, uint32_t id, bool floats)
{
    uint32_t bytes;
    (void)text_of(made, id, &bytes);
    return floats && made->kinds[id] == SP_USER_DEFINED ? (double)(float)(0.1 * ((int)bytes - 1)) : made->scores[id];
}

static void offer(struct best *best, size_t from, size_t to, uint32_t id, double sum)
{
    if (best[to].id == BPE_NONE || sum > best[to].sum)
        best[to] = (struct best){sum, from, id};
}

/* Writes the ids of a text. Returns how many. */
static size_t definition(const struct made *made, bool floats, const uint8_t *text, size_t count, uint32_t *ids)
{
    static struct best best[TEXT + 1];
    double least = floats ? (double)FLT_MAX : HUGE_VAL;
    size_t furthest = 0, made_ids = 0, length;
    for (uint32_t id = 0; id < made->count; id++)
        if ((!floats || made->kinds[id] == SP_NORMAL) && made->scores[id] < least)
            least = made->scores[id];
    for (size_t i = 0; i <= count; i++)
        best[i].id = BPE_NONE;
    best[0].sum = 0;
    for (size_t at = 0; at < count; at += length) {
        bool single = false;
        length = unigram_character(text + at, count - at);
        double here = best[at].sum;
        if (floats && fabs(here) > 100000) {
            for (size_t i = at; i <= furthest; i++)
                best[i].sum = rounded(best[i].sum - here, true);
            here = 0;
        }
        uint32_t by_length[64], bytes;
        memset(by_length, 0xFF, sizeof by_length);
        for (uint32_t id = 0; id < made->count; id++) {
            const uint8_t *own = text_of(made, id, &bytes);
            if (*own == text[at] && bytes <= count - at && !memcmp(own, text + at, bytes))
                by_length[bytes] = id;
        }
        for (size_t to = at + 1; to <= count && to - at < 64; to++) {
            const uint32_t id = by_length[to - at];
            if (id == BPE_NONE || (floats && (made->kinds[id] == SP_UNUSED || made->kinds[id] == SP_UNKNOWN)))
                continue;
            offer(best, at, to, id, rounded(here + score_of(made, id, floats), floats));
            single |= to - at == length;
            furthest = to > furthest ? to : furthest;
        }
        if (!single) {
            offer(best, at, at + length, 0, rounded(here + rounded(least - 10, floats), floats));
            furthest = at + length > furthest ? at + length : furthest;
        }
    }
    for (size_t at = count; at; at = best[at].from) {
        const bool fused = made_ids && !best[at].id && !ids[made_ids - 1];
        if (!fused)
            ids[made_ids++] = best[at].id;
    }
    for (size_t i = 0; i < made_ids / 2; i++) {
        const uint32_t swap = ids[i];
        ids[i] = ids[made_ids - 1 - i];
        ids[made_ids - 1 - i] = swap;
    }
    return made_ids;
}

/* ---- tests ---- */

static size_t random_text(uint8_t *text, size_t most)
{
    size_t count = 0;
    while (count + 4 < most) {
        if (count > 40 && random_below(3) == 0) { /* words that came before */
            const size_t bytes = 1 + random_below(30), from = random_below((uint32_t)(count - 30));
            size_t at = from;
            while (at < count && text[at] != ' ')
                at++;
            if (bytes < most - 4 - count && at + bytes < count && (text[at + bytes] & 0xC0) != 0x80) {
                memmove(text + count, text + at, bytes);
                count += bytes;
                continue;
            }
        }
        const char *character = characters[random_below(random_below(3) ? CHARACTERS : 4)];
        for (uint32_t many = random_below(20) ? 1 : 1 + random_below(30); many && count + 4 < most; many--) {
            memcpy(text + count, character, strlen(character));
            count += strlen(character);
        }
    }
    return count;
}

static void compare(const struct made *made, bool floats, struct unigram_state *state, const uint8_t *text,
                    size_t count, const char *about)
{
    static uint32_t wanted[TEXT + 64], got[TEXT + 64];
    struct ids_out out = {.tokens = got, .room = TEXT + 64, .wide = true};
    const size_t ids = definition(made, floats, text, count, wanted);
    assert_int_equal(unigram_encode(state, text, count, false, &out, NULL), TOKMAP_OK);
    for (size_t i = 0; i < ids && i < out.count; i++)
        if (wanted[i] != got[i])
            fail_msg("%s: id %zu is %" PRIu32 ", not %" PRIu32, about, i, got[i], wanted[i]);
    if (out.count != ids)
        fail_msg("%s: %" PRIu64 " ids, not %zu", about, out.count, ids);
}

static void ids_of(bool floats)
{
    static struct made made;
    static uint8_t text[TEXT];
    for (uint32_t lap = 0; lap < 2 * SCORES; lap++) {
        struct unigram_model *model;
        struct tokmap_error error = {0};
        vocabulary(&made, (enum scores)(lap % SCORES), floats);
        if (unigram_model_build(&model, &made.source, &error))
            fail_msg("%s", error.message);
        for (uint32_t variant = 0; variant <= cpu_variant_best(); variant++) {
            struct unigram_state *state;
            assert_int_equal(unigram_state_new(&state, model, (enum cpu_variant)variant, NULL), TOKMAP_OK);
            for (uint32_t i = 0; i < 60; i++)
                compare(&made, floats, state, text, random_text(text, 5 + random_below(300)), "a short text");
            compare(&made, floats, state, text, random_text(text, TEXT), "a long text");
            memset(text, 'a', TEXT);
            compare(&made, floats, state, text, TEXT, "one word");
            unigram_state_free(state);
        }
        unigram_model_free(model);
    }
}

static void of_sentencepiece(void **unused)
{
    (void)unused;
    ids_of(true);
}

static void of_tokenizers(void **unused)
{
    (void)unused;
    ids_of(false);
}

/* A word of which nearly every part is a token has more matches than are kept when words are divided together. */
static void many_matches(void **unused)
{
    static struct made made;
    static uint8_t text[TEXT];
    (void)unused;
    for (int floats = 0; floats < 2; floats++) {
        struct unigram_model *model;
        char token[64] = " ";
        size_t count = 0;
        vocabulary(&made, NEAR, floats);
        made.count = 1;
        add(&made, token, SP_NORMAL, score(NEAR));
        for (size_t bytes = 1; bytes < sizeof token; bytes++) {
            memset(token, 'a', bytes);
            add(&made, token, SP_NORMAL, score(NEAR));
        }
        for (uint32_t id = 0; id < made.count && floats; id++)
            made.scores[id] = (double)(made.floats[id] = (float)made.scores[id]);
        made.source.texts.vocabulary = made.count;
        for (size_t bytes = 20; bytes <= UNIGRAM_WORD_MOST && count + bytes < TEXT; bytes += 5) {
            memset(text + count, 'a', bytes);
            text[count] = ' ';
            count += bytes;
        }
        assert_int_equal(unigram_model_build(&model, &made.source, NULL), TOKMAP_OK);
        for (uint32_t variant = 0; variant <= cpu_variant_best(); variant++) {
            struct unigram_state *state;
            assert_int_equal(unigram_state_new(&state, model, (enum cpu_variant)variant, NULL), TOKMAP_OK);
            compare(&made, floats, state, text, count, "many matches");
            unigram_state_free(state);
        }
        unigram_model_free(model);
    }
}

static void refused(void **unused)
{
    static struct made made;
    const double strange[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    struct unigram_model *model;
    struct tokmap_error error = {0};
    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        vocabulary(&made, USUAL, false);
        made.scores[5] = strange[i];
        assert_int_equal(unigram_model_build(&model, &made.source, &error), TOKMAP_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "score of piece 5"));
    }
    vocabulary(&made, USUAL, false);
    made.source.texts.vocabulary = BPE_IDS - 1;
    assert_int_equal(unigram_model_build(&model, &made.source, &error), TOKMAP_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "ids, but at most"));
    vocabulary(&made, USUAL, false);
    static uint8_t bytes[UNIGRAM_TOKEN_MOST + 16];
    static uint32_t offsets[] = {0, 5, 6, UNIGRAM_TOKEN_MOST + 7};
    memset(bytes, 'a', sizeof bytes);
    made.source.texts.bytes = bytes;
    made.source.texts.offsets = offsets;
    made.source.texts.vocabulary = 3;
    assert_int_equal(unigram_model_build(&model, &made.source, &error), TOKMAP_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "2049 bytes"));
}

/* Without an unknown token, a character that is not a token fails, and the state can be used again. */
static void no_unknown(void **unused)
{
    static struct made made;
    struct unigram_model *model;
    struct unigram_state *state;
    struct tokmap_error error = {0};
    uint32_t ids[8];
    (void)unused;
    vocabulary(&made, USUAL, false);
    add(&made, "z", SP_NORMAL, -3);
    made.source.texts.vocabulary = made.count;
    made.source.texts.unk = BPE_NONE;
    assert_int_equal(unigram_model_build(&model, &made.source, &error), TOKMAP_OK);
    assert_int_equal(unigram_state_new(&state, model, cpu_variant_best(), NULL), TOKMAP_OK);
    for (uint32_t i = 0; i < 3; i++) {
        struct ids_out out = {.tokens = ids, .room = 8, .wide = true};
        assert_int_equal(unigram_encode(state, (const uint8_t *)"zqz", 3, false, &out, &error), TOKMAP_ERROR_INPUT);
        assert_non_null(strstr(error.message, "unk_id"));
        out.count = 0;
        assert_int_equal(unigram_encode(state, (const uint8_t *)"zz", 2, false, &out, &error), TOKMAP_OK);
        assert_true(out.count >= 1);
    }
    unigram_state_free(state);
    unigram_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_sentencepiece), cmocka_unit_test(of_tokenizers),
                                       cmocka_unit_test(many_matches), cmocka_unit_test(refused),
                                       cmocka_unit_test(no_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
