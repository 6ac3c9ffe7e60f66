/* SPDX-License-Identifier: MIT */
/*
 * test_sp.c - SentencePiece-style BPE gives the ids that its definition gives, read literally: merges, cuts, windows,
 * and text that has to be copied.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "sentencepiece/sp_encode.h"
#include "sentencepiece/sp_engine.h"

static uint64_t seed = 1;
static uint32_t random_below(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % most);
}

/* ---- vocabularies ---- */

#define PIECES 1024
struct made {
    struct sp_source source;
    char *texts[PIECES];
    uint32_t count;
    uint8_t kinds[PIECES];
    float scores[PIECES];
    uint32_t offsets[PIECES + 1];
    uint8_t bytes[PIECES * 64];
};

static void piece(struct made *made, const char *text, enum sp_kind kind, float score)
{
    for (uint32_t i = 0; i < made->count; i++)
        if (!strcmp(made->texts[i], text))
            return;
    assert_true(made->count < PIECES && strlen(text) < 64);
    made->texts[made->count] = strdup(text);
    made->kinds[made->count] = (uint8_t)kind;
    made->scores[made->count++] = score;
}

static void finish(struct made *made)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < made->count; i++) {
        made->offsets[i] = at;
        memcpy(made->bytes + at, made->texts[i], strlen(made->texts[i]));
        at += (uint32_t)strlen(made->texts[i]);
    }
    made->offsets[made->count] = at;
    made->source.vocabulary = made->count;
    made->source.bytes = made->bytes;
    made->source.offsets = made->offsets;
    made->source.scores = made->scores;
    made->source.kinds = made->kinds;
    made->source.path = "made";
}

static struct made *start(bool fallback)
{
    struct made *made = calloc(1, sizeof *made);
    assert_non_null(made);
    made->source.escape = made->source.fuse_unk = true;
    made->source.byte_fallback = fallback;
    piece(made, "<unk>", SP_UNKNOWN, 0);
    for (uint32_t byte = 0; fallback && byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        piece(made, name, SP_BYTE, 0);
    }
    piece(made, SP_MARK, SP_NORMAL, -1);
    return made;
}

static void made_free(struct made *made)
{
    for (uint32_t i = 0; i < made->count; i++)
        free(made->texts[i]);
    free(made);
}

static const char *const alphabet[] = {"a", "b", "c", "d",  ".",  "(",  "1", "\n", " ", " ",
                                       "é", "ж", "а", "中", "文", "か", "ก", "😀",  "z"};
#define LETTERS (sizeof alphabet / sizeof alphabet[0])

#define TIED UINT32_MAX

/* scores: how many different ones; 0: each piece has its own; TIED: the last pieces share one. */
static float random_score(const struct made *made, uint32_t scores)
{
    if (scores == TIED)
        return -(float)(made->count < 290 ? made->count : 290);
    return -(float)(scores ? random_below(scores) : made->count);
}

/* Most letters, and concatenations of pieces. */
static struct made *random_vocabulary(uint32_t size, uint32_t scores, bool fallback, bool defined)
{
    struct made *made = start(fallback);
    const uint32_t letters = made->count;
    for (uint32_t i = 0; i < LETTERS - 1; i++)
        if (*alphabet[i] != ' ' && random_below(8))
            piece(made, alphabet[i], SP_NORMAL, random_score(made, scores));
    for (uint32_t tries = 0; made->count < size && tries < 20 * size; tries++) {
        char text[128] = "";
        for (int half = 0; half < 2; half++) {
            const char *part = made->texts[letters - 1 + random_below(made->count - letters + 1)];
            if (random_below(10) == 0)
                part = random_below(2) ? alphabet[random_below(LETTERS)] : SP_MARK;
            strcat(text, *part == ' ' ? SP_MARK : part);
        }
        if (strlen(text) < 40 && strncmp(text, "<0x", 3) != 0)
            piece(made, text, SP_NORMAL, random_score(made, scores));
    }
    if (defined) {
        piece(made, "aab", SP_USER_DEFINED, 0);
        piece(made, "bc.", SP_USER_DEFINED, 0);
        piece(made, "中文中", SP_USER_DEFINED, 0);
        piece(made, SP_MARK SP_MARK SP_MARK, SP_USER_DEFINED, 0);
    }
    finish(made);
    return made;
}

/* ---- the definition ---- */

struct symbol {
    const char *text;
    size_t bytes;
    bool frozen;
};

static int find_piece(const struct made *made, const char *text, size_t bytes, bool merged)
{
    for (uint32_t id = 0; id < made->count; id++)
        if (strlen(made->texts[id]) == bytes && !memcmp(made->texts[id], text, bytes) &&
            (!merged || made->kinds[id] == SP_NORMAL || made->kinds[id] == SP_USER_DEFINED))
            return (int)id;
    return -1;
}

static size_t length_at(const char *text)
{
    const uint8_t first = (uint8_t)*text;
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Encodes a normalized text by the definition, one merge at a time. Returns the number of ids. */
static size_t encode_plainly(const struct made *made, const char *text, uint32_t *ids)
{
    const size_t bytes = strlen(text);
    struct symbol *symbols = malloc((bytes + 1) * sizeof *symbols);
    double *scores = malloc((bytes + 1) * sizeof *scores);
    size_t count = 0, out = 0;
    for (size_t at = 0; at < bytes; at += symbols[count++].bytes) {
        symbols[count] = (struct symbol){text + at, length_at(text + at), false};
        for (uint32_t id = 0; id < made->count; id++) {
            const size_t length = strlen(made->texts[id]);
            if (made->kinds[id] == SP_USER_DEFINED && !strncmp(text + at, made->texts[id], length) &&
                (!symbols[count].frozen || length > symbols[count].bytes))
                symbols[count] = (struct symbol){text + at, length, true};
        }
    }
    for (size_t changed = SIZE_MAX;;) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i + 1 < count; i++) {
            if (changed == SIZE_MAX || i == changed || i + 1 == changed) {
                const int id = symbols[i].frozen || symbols[i + 1].frozen
                                   ? -1
                                   : find_piece(made, symbols[i].text, symbols[i].bytes + symbols[i + 1].bytes, true);
                scores[i] = id < 0 ? -1e30 : (double)made->scores[id];
            }
            if (scores[i] > -1e30 && (best == SIZE_MAX || scores[i] > scores[best]))
                best = i;
        }
        if (best == SIZE_MAX)
            break;
        symbols[best].bytes += symbols[best + 1].bytes;
        count--;
        memmove(symbols + best + 1, symbols + best + 2, (count - best - 1) * sizeof *symbols);
        memmove(scores + best, scores + best + 1, (count - best) * sizeof *scores);
        changed = best;
    }
    bool unknown = false;
    for (size_t i = 0; i < count; i++) {
        const int id = find_piece(made, symbols[i].text, symbols[i].bytes, true);
        if (id >= 0) {
            ids[out++] = (uint32_t)id;
            unknown = false;
        } else if (made->source.byte_fallback) {
            for (size_t k = 0; k < symbols[i].bytes; k++)
                ids[out++] = 1 + (uint8_t)symbols[i].text[k];
        } else {
            if (!unknown)
                ids[out++] = 0;
            unknown = true;
        }
    }
    free(symbols);
    free(scores);
    return out;
}

/* Returns the text with marks for spaces, and one in front if `prefix`. The caller frees it. */
static char *normalized(const char *text, bool prefix)
{
    char *made = malloc(3 * strlen(text) + 4), *to = made;
    if (prefix)
        to += sprintf(to, SP_MARK);
    for (; *text; text++) {
        if (*text == ' ')
            to += sprintf(to, SP_MARK);
        else
            *to++ = *text;
    }
    *to = 0;
    return made;
}

static char *random_text(size_t letters, uint32_t kinds)
{
    char *text = malloc(4 * letters + 1), *to = text;
    const uint32_t from = random_below(LETTERS);
    for (size_t i = 0; i < letters; i++) {
        const char *letter = alphabet[(from + random_below(kinds)) % LETTERS];
        if (kinds == LETTERS && random_below(40) == 0)
            letter = SP_MARK;
        for (uint32_t again = random_below(12) == 0 ? 1 + random_below(9) : 1; again && i < letters; again--, i++)
            to += sprintf(to, "%s", letter);
    }
    *to = 0;
    return text;
}

static void compare(const struct made *made, struct sp_state *state, const char *text, bool prefix)
{
    const size_t bytes = strlen(text), room = bytes + prefix;
    char *plain = normalized(text, prefix);
    uint32_t *wanted = malloc((strlen(plain) + 1) * sizeof *wanted);
    uint16_t *ids = malloc(room * sizeof *ids + 1);
    uint64_t written;
    struct tokmap_error error;
    const size_t count = bytes ? encode_plainly(made, plain, wanted) : 0;
    assert_int_equal(sp_encode(state, (const uint8_t *)text, bytes, prefix, ids, room, &written, &error), TOKMAP_OK);
    uint64_t largest = 0;
    for (size_t i = 0; i < written; i++) {
        if (i >= count || ids[i] != wanted[i])
            fail_msg("id %zu of %zu is %u, not %u: %.300s", i, count, ids[i], i < count ? wanted[i] : 0, text);
        largest = ids[i] > largest ? ids[i] : largest;
    }
    assert_int_equal(written, count);
    assert_true(state->pieces->largest >= largest); /* it counts ids that were fused, too */
    free(plain);
    free(wanted);
    free(ids);
}

static void run_variants(const struct made *made, const struct sp_model *model, int texts, size_t letters)
{
    for (int variant = 0; variant <= (int)cpu_variant_best(); variant++) {
        struct sp_state *state;
        struct tokmap_error error;
        assert_int_equal(sp_state_new(&state, model, (enum cpu_variant)variant, &error), TOKMAP_OK);
        for (int i = 0; i < texts; i++) {
            char *text = random_text(random_below((uint32_t)letters), random_below(2) ? LETTERS : 1 + random_below(6));
            compare(made, state, text, random_below(2));
            free(text);
        }
        sp_state_free(state);
    }
}

/* The table has at most one pair for each token, and ranks are the symbols that they make; except with user-defined
 * pieces or equal scores. */
static void check_pairs(const struct made *made, const struct sp_model *model, bool defined)
{
    uint32_t pairs = 0;
    for (uint64_t at = 0; at < (uint64_t)1 << model->head.pair_bits; at++)
        pairs += model->head.pairs[at] != UINT64_MAX;
    assert_true(defined || pairs < made->count);
    assert_true(defined || model->priorities || !model->head.results);
}

static void definition(void **unused)
{
    for (uint32_t round = 0; round < 24; round++) {
        static const uint32_t sizes[] = {300, 330, 700, 40}, scores[] = {1, 4, 10000, 0, TIED, 0};
        const bool fallback = sizes[round % 4] > 256;
        struct made *made = random_vocabulary(sizes[round % 4], scores[round % 6], fallback, round % 5 == 4);
        struct sp_model *model;
        struct tokmap_error error;
        assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_OK);
        check_pairs(made, model, round % 5 == 4);
        /* Most vocabularies must allow that several pieces are merged at once. */
        assert_true((scores[round % 6] && scores[round % 6] != TIED) || model->tied != BPE_NONE);
        run_variants(made, model, 60, 120);
        run_variants(made, model, 2, 2500);
        sp_model_free(model);
        made_free(made);
    }
}

/* Texts and pieces that are longer than chunks and blocks. */
static void long_texts(void **unused)
{
    struct made *made = random_vocabulary(700, 100, true, false);
    struct sp_model *model;
    struct sp_state *state;
    struct tokmap_error error;
    assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_OK);
    assert_int_equal(sp_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
    for (uint32_t kinds = 1; kinds <= 3; kinds++)
        for (uint32_t round = 0; round < 4; round++) {
            char *text = random_text(9000, kinds);
            compare(made, state, text, round & 1);
            free(text);
        }
    char *text = random_text(14000, LETTERS);
    compare(made, state, text, true);
    free(text);
    sp_state_free(state);
    sp_model_free(model);
    made_free(made);
}

/* A row of characters whose pairs merge the sooner the later they come. What the first character becomes depends on how
 * many follow, so accepted parts must be taken back. */
static void far_away(void **unused)
{
    enum { LINKS = 300 };
    char links[LINKS][4], pair[8];
    struct made *made = start(true);
    for (uint32_t i = 0; i < LINKS; i++) {
        const int tail = (int)(i % 4096);
        snprintf(links[i], sizeof links[i], "%c%c%c", 0xE4 + (int)(i / 4096), 0x80 + tail / 64, 0x80 + tail % 64);
        piece(made, links[i], SP_NORMAL, -2000);
    }
    for (uint32_t i = 0; i + 1 < LINKS; i++) {
        snprintf(pair, sizeof pair, "%.3s%.3s", links[i], links[i + 1]);
        piece(made, pair, SP_NORMAL, (float)i);
    }
    finish(made);
    struct sp_model *model;
    struct sp_state *state;
    struct tokmap_error error;
    assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_OK);
    assert_int_equal(sp_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
    for (uint32_t round = 0; round < 40; round++) {
        char text[3 * LINKS * 4 + 1], *to = text;
        for (uint32_t part = 0; part < 1 + round % 4; part++) {
            const uint32_t from = random_below(round % 3 ? LINKS : 2);
            const uint32_t end = LINKS - random_below(round % 2 ? LINKS - from : 3);
            for (uint32_t i = from; i < end; i++)
                to += sprintf(to, "%s", links[i]);
        }
        *to = 0;
        compare(made, state, text, false);
    }
    sp_state_free(state);
    sp_model_free(model);
    made_free(made);
}

/* No cut is made between two characters that a token holds side by side. All CPU variants make the same cuts, for any
 * length and place. */
static void cuts(void **unused)
{
    for (uint32_t round = 0; round < 10; round++) {
        struct made *made = random_vocabulary(350 + 40 * round, 5, true, round % 2);
        struct sp_model *model;
        struct tokmap_error error;
        assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_OK);
        for (int i = 0; i < 50; i++) {
            char *text = random_text(1 + random_below(400), LETTERS);
            const size_t bytes = strlen(text);
            uint64_t scalar[32] = {0}, other[32] = {0};
            const bool marked = sp_cut_scalar(&model->cuts, &model->head, (uint8_t *)text, bytes, bytes, scalar);
            assert_int_equal(marked, strstr(text, SP_MARK) != NULL);
            sp_cut_function *const best = sp_cut_variant(cpu_variant_best());
            assert_int_equal(marked, best(&model->cuts, &model->head, (uint8_t *)text, bytes, bytes, other));
            assert_memory_equal(scalar, other, sizeof scalar);
#if defined(__x86_64__)
            if (cpu_has(CPU_AVX2)) {
                assert_int_equal(marked, sp_cut_avx2(&model->cuts, &model->head, (uint8_t *)text, bytes, bytes, other));
                assert_memory_equal(scalar, other, sizeof scalar);
            }
#endif
            for (size_t at = 1; at < bytes && !marked; at++) {
                if (!(scalar[at / 64] >> (at % 64) & 1))
                    continue;
                assert_true(((uint8_t)text[at] & 0xC0) != 0x80);
                size_t before = at - 1;
                while (((uint8_t)text[before] & 0xC0) == 0x80)
                    before--;
                char two[9] = {0};
                memcpy(two, text + before, at + length_at(text + at) - before);
                char *pair = normalized(two, false);
                for (uint32_t id = 0; id < made->count; id++)
                    if (made->kinds[id] == SP_USER_DEFINED && strstr(made->texts[id], pair))
                        fail_msg("cut inside %s", made->texts[id]);
                free(pair);
            }
            free(text);
        }
        sp_model_free(model);
        made_free(made);
    }
}

/* A million equal letters, and other texts that could be slow. The right ids are known. */
static void runs(void **unused)
{
    struct made *made = start(true);
    const char *const texts[] = {"a", "aa", "aaaa", "b", "ab", "abab", "中", "中中", "é", SP_MARK SP_MARK, "ба"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        piece(made, texts[i], SP_NORMAL, -(float)i);
    finish(made);
    struct sp_model *model;
    struct sp_state *state;
    struct tokmap_error error;
    assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_OK);
    assert_int_equal(sp_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
    static const struct {
        const char *unit, *token;
        uint32_t units; /* of a token */
    } cases[] = {{"a", "aaaa", 4},
                 {"ab", "abab", 2},
                 {"中", "中中", 2},
                 {" ", SP_MARK SP_MARK, 2},
                 {SP_MARK, SP_MARK SP_MARK, 2},
                 {"é", "é", 1},
                 {"b", "b", 1}};
    const size_t units = 1000000;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t bytes = strlen(cases[i].unit) * units;
        char *text = malloc(bytes + 1);
        uint16_t *ids = malloc(bytes * sizeof *ids);
        uint64_t written;
        for (size_t k = 0; k < units; k++)
            memcpy(text + k * strlen(cases[i].unit), cases[i].unit, strlen(cases[i].unit));
        assert_int_equal(sp_encode(state, (uint8_t *)text, bytes, false, ids, bytes, &written, &error), TOKMAP_OK);
        assert_int_equal(written, units / cases[i].units);
        const int id = find_piece(made, cases[i].token, strlen(cases[i].token), false);
        for (size_t k = 0; k < written; k++)
            assert_int_equal(ids[k], id);
        free(text);
        free(ids);
    }
    sp_state_free(state);
    sp_model_free(model);
    made_free(made);
}

/* Lists of merges, as Hugging Face has them; texts that are tokens although merging gives something else; words that
 * begin with a mark. */
static void listed_merges(void **unused)
{
    struct made *made = start(true);
    const char *const texts[] = {"a", "b", "ab", "ba", "aba", "c", "abc", "a\xE2\x96\x81"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        piece(made, texts[i], SP_NORMAL, 0);
    finish(made);
    const uint32_t a = 258, b = 259, ab = 260, ba = 261, aba = 262, c = 263, abc = 264, a_mark = 265, mark = 257;
    const struct bpe_merge merges[] = {{b, a, ba}, {a, b, ab}, {ab, a, aba}, {a, mark, a_mark}, {b, a, ba}};
    made->source.scores = NULL;
    made->source.kinds = NULL;
    made->source.unk = 0;
    made->source.merges = merges;
    static const struct {
        const char *text;
        bool whole, split;
        uint32_t ids[8];
    } cases[] = {
        {"aba", false, false, {258, 261, 0}}, /* of two equal merges the last counts, so "ab" comes before "ba" */
        {"abab", false, false, {260, 260, 0}},
        {"abc", false, false, {260, 263, 0}},
        {"abc", true, false, {264, 0}},
        {"abcabc", true, false, {260, 263, 260, 263, 0}},
        {"a a", false, false, {265, 258, 0}},
        {"a a", false, true, {258, 257, 258, 0}},
        {"\xC3\xA9", false, false, {1 + 0xC3, 1 + 0xA9, 0}},
    };
    (void)aba, (void)abc, (void)c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sp_model *model;
        struct sp_state *state;
        struct tokmap_error error;
        uint16_t ids[16];
        uint64_t written;
        /* The first case has the second "b a" left out of the list. */
        made->source.merge_count = i == 0 ? 4 : 5;
        made->source.ignore_merges = cases[i].whole;
        made->source.split = cases[i].split;
        assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_OK);
        assert_int_equal(sp_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
        assert_int_equal(
            sp_encode(state, (const uint8_t *)cases[i].text, strlen(cases[i].text), false, ids, 16, &written, &error),
            TOKMAP_OK);
        for (uint32_t k = 0; cases[i].ids[k] || k < written; k++)
            if (k >= written || ids[k] != cases[i].ids[k])
                fail_msg("case %zu: id %" PRIu32 " of %d is %d", i, k, (int)written, ids[k]);
        sp_state_free(state);
        sp_model_free(model);
    }
    made->source.unk = a;
    struct sp_model *model;
    struct tokmap_error error;
    assert_int_equal(sp_model_build(&model, &made->source, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "merges"));
    made_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition), cmocka_unit_test(long_texts), cmocka_unit_test(far_away),
        cmocka_unit_test(cuts),       cmocka_unit_test(runs),       cmocka_unit_test(listed_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
