/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_unigram_train.c - the steps of training a Unigram vocabulary have the same results as their definitions:
 * expected numbers of pieces, the best way to write a text, seeds, and known vocabularies of tiny texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scratch.h"
#include "train/train_math.h"
#include "train/train_unigram.h"
#include "train/train_words.h"
#include "train/unigram_lattice.h"
#include "train/unigram_seeds.h"

static uint64_t random_state;

static struct train_budget budget = {(uint64_t)1 << 30, 0};

/* ---- words of a text ---- */

struct text_words {
    struct train_characters characters;
    struct unigram_words words;
};

static struct train_pieces *pieces_of(const char *text, const struct train_word_rules *rules)
{
    struct train_pieces *pieces;
    struct train_counter *counter;
    struct train_cutter *cutter;
    assert_int_equal(train_pieces_new(&pieces, &budget, NULL), TOKMAP_OK);
    assert_int_equal(train_counter_new(&counter, pieces, NULL, NULL), TOKMAP_OK);
    assert_int_equal(train_cutter_new(&cutter, rules, &budget, NULL), TOKMAP_OK);
    assert_int_equal(train_words_count(cutter, counter, (const uint8_t *)text, strlen(text), NULL), TOKMAP_OK);
    assert_int_equal(train_counter_finish(counter, NULL), TOKMAP_OK);
    train_counter_free(counter);
    train_cutter_free(cutter, &budget);
    return pieces;
}

static void words_make(struct text_words *w, const char *text, double coverage)
{
    static const struct train_word_rules rules = {true, true, false, true};
    struct train_pieces *pieces = pieces_of(text, &rules);
    assert_int_equal(train_characters_choose(&w->characters, pieces, coverage, NULL, 0, &budget, NULL), TOKMAP_OK);
    assert_int_equal(unigram_words_make(&w->words, pieces, &w->characters, &budget, NULL), TOKMAP_OK);
    train_pieces_free(pieces);
}

static void words_free(struct text_words *w)
{
    unigram_words_free(&w->words, &budget);
    train_characters_free(&w->characters, &budget);
    assert_int_equal(budget.used, 0);
}

struct listed {
    char text[400];
};

static void word_list(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    struct listed *list = user;
    char line[80];
    (void)snprintf(line, sizeof line, "[%.*s]%u", (int)count, (const char *)bytes, (unsigned)times);
    assert_true(strlen(list->text) + strlen(line) < sizeof list->text);
    assert_null(strstr(list->text, line));
    strcat(list->text, line);
}

static void is_cut(const char *text, struct train_word_rules rules, const char *const *wanted)
{
    struct listed list = {""};
    size_t bytes = 0;
    struct train_pieces *pieces = pieces_of(text, &rules);
    train_pieces_each(pieces, word_list, &list);
    train_pieces_free(pieces);
    for (; *wanted; wanted++) {
        if (!strstr(list.text, *wanted))
            fail_msg("'%s' has no %s, but %s", text, *wanted, list.text);
        bytes += strlen(*wanted);
    }
    assert_int_equal(bytes, strlen(list.text));
}

static void words_are_cut_where_no_piece_crosses(void **state)
{
    (void)state;
    const struct train_word_rules usual = {true, true, false, true};
    is_cut("ab ab", usual, (const char *const[]){"[ ab]2", NULL});
    is_cut("ab, c1", usual, (const char *const[]){"[ ab]1", "[,]1", "[ c]1", "[1]1", NULL});
    is_cut("  a", usual, (const char *const[]){"[ ]2", "[ a]1", NULL});
    is_cut("a\n\nb", usual, (const char *const[]){"[ a]1", "[\n\n]1", "[b]1", NULL});
    is_cut("e\xcc\x81z\xd0\xb6", usual, (const char *const[]){"[ e\xcc\x81z]1", "[\xd0\xb6]1", NULL});
    is_cut("\xe3\x81\x82\xe4\xb8\xad\xe3\x83\xbc", usual, /* Hiragana, Han, and U+30FC are one script */
           (const char *const[]){"[ \xe3\x81\x82\xe4\xb8\xad\xe3\x83\xbc]1", NULL});
    is_cut("a12,b", (struct train_word_rules){true, false, false, false},
           (const char *const[]){"[a12,]1", "[b]1", NULL});
    is_cut("a12", (struct train_word_rules){true, true, true, false},
           (const char *const[]){"[a]1", "[1]1", "[2]1", NULL});
    is_cut("a1,\xd0\xb6", (struct train_word_rules){false, true, false, false},
           (const char *const[]){"[a1,\xd0\xb6]1", NULL});
    is_cut("x\xe2\x96\x81y", (struct train_word_rules){true, true, false, false},
           (const char *const[]){"[x]1", "[\xe2\x96\x81y]1", NULL});
    is_cut("a1b", (struct train_word_rules){false, true, true, false}, /* whatever is beside a digit */
           (const char *const[]){"[a]1", "[1]1", "[b]1", NULL});
    is_cut("a\n\xcc\x81", usual, (const char *const[]){"[ a]1", "[\n]1", "[\xcc\x81]1", NULL});
    is_cut("", usual, (const char *const[]){NULL});
    assert_int_equal(budget.used, 0);
}

/* ---- mathematics ---- */

static void logarithms_are_those_of_the_library(void **state)
{
    (void)state;
    random_state = 3;
    for (int i = 0; i < 20000; i++) {
        const double x = ldexp(1 + (double)random_below(&random_state, 1000000) / 1000000,
                               (int)random_below(&random_state, 600) - 300);
        assert_true(fabs(train_ln(x) - log(x)) <= 4e-15 * fmax(1, fabs(log(x))));
        const double y = ((double)random_below(&random_state, 1400001) - 700000) / 1000;
        assert_true(fabs(train_exp(y) / exp(y) - 1) < 1e-13);
    }
    assert_true(fabs(train_digamma(1) + 0.57721566490153286) < 1e-6);
    assert_true(fabs(train_digamma(0.5) + 1.9635100260214235) < 1e-6);
    assert_true(fabs(train_digamma(1e9) - log(1e9)) < 1e-8);
}

/* ---- lattices ---- */

#define PIECES_MOST 60
#define LETTERS 3

struct made_model {
    uint32_t codes[PIECES_MOST][4];
    struct unigram_piece pieces[PIECES_MOST];
    uint32_t count;
    struct unigram_trie trie;
};

static int by_codes(const void *one, const void *other)
{
    const struct unigram_piece *a = one, *b = other;
    for (uint32_t i = 0; i < a->count && i < b->count; i++)
        if (a->codes[i] != b->codes[i])
            return a->codes[i] < b->codes[i] ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

/* Makes distinct pieces of a few letters with random probabilities. Some letters are no pieces. */
static void model_make(struct made_model *m, double least)
{
    memset(m, 0, sizeof *m);
    for (uint32_t tries = 0; tries < PIECES_MOST; tries++) {
        struct unigram_piece *piece = &m->pieces[m->count];
        piece->codes = m->codes[m->count];
        piece->count = 1 + (uint32_t)random_below(&random_state, 4);
        for (uint32_t i = 0; i < piece->count; i++)
            m->codes[m->count][i] = 1 + (uint32_t)random_below(&random_state, LETTERS);
        bool is_new = true;
        for (uint32_t i = 0; i < m->count; i++)
            is_new &= by_codes(&m->pieces[i], piece) != 0;
        m->count += is_new;
    }
    qsort(m->pieces, m->count, sizeof *m->pieces, by_codes);
    assert_int_equal(unigram_trie_make(&m->trie, m->pieces, m->count, LETTERS, &budget, NULL), TOKMAP_OK);
    for (uint32_t p = 0; p < m->count; p++) {
        struct trie_node *node = &m->trie.nodes[m->trie.node_of[p]];
        assert_int_equal(node->piece, p);
        node->probability = (float)(least * (1 + (double)random_below(&random_state, 1000) / 10));
    }
}

/* Adds up, over all ways to write the codes, the probability, and that times how often each piece is in the way. */
static double ways_sum(const struct made_model *m, const uint32_t *codes, uint32_t count, double unknown, double before,
                       uint32_t *used, double *sums, double *best)
{
    double whole = 0;
    bool alone = false;
    if (!count) {
        for (uint32_t p = 0; p < m->count; p++)
            sums[p] += before * used[p];
        *best = before > *best ? before : *best;
        return before;
    }
    for (uint32_t p = 0; p < m->count; p++) {
        const struct unigram_piece *piece = &m->pieces[p];
        if (piece->count > count || memcmp(piece->codes, codes, piece->count * sizeof *codes) != 0)
            continue;
        alone |= piece->count == 1;
        used[p]++;
        whole += ways_sum(m, codes + piece->count, count - piece->count, unknown,
                          before * (double)m->trie.nodes[m->trie.node_of[p]].probability, used, sums, best);
        used[p]--;
    }
    return alone ? whole : whole + ways_sum(m, codes + 1, count - 1, unknown, before * unknown, used, sums, best);
}

static void expectations_are_the_definition(void **state)
{
    (void)state;
    struct unigram_lattice lattice;
    random_state = 11;
    assert_int_equal(unigram_lattice_make(&lattice, 4, &budget, NULL), TOKMAP_OK);
    for (int round = 0; round < 300; round++) {
        struct made_model m;
        uint32_t codes[10], used[PIECES_MOST] = {0}, found[10], found_count;
        uint64_t expected[PIECES_MOST] = {0};
        double sums[PIECES_MOST] = {0}, best = 0;
        const uint32_t count = 1 + (uint32_t)random_below(&random_state, 10);
        model_make(&m, round % 2 ? 1e-4 : 1e-35); /* small ones are scaled up on the way */
        for (uint32_t i = 0; i < count; i++)
            codes[i] = 1 + (uint32_t)random_below(&random_state, LETTERS);
        lattice.trie = &m.trie;
        lattice.unknown = round % 2 ? 1e-9 : 1e-38;
        const double unknown = (double)(float)lattice.unknown; /* as edges have it */
        lattice.unknown = unknown;
        const double whole = ways_sum(&m, codes, count, unknown, 1, used, sums, &best);
        unigram_lattice_expect(&lattice, codes, count, 1000, expected);
        for (uint32_t p = 0; p < m.count && whole > 0; p++)
            assert_true(fabs((double)expected[p] / LATTICE_UNIT - 1000 * sums[p] / whole) < 1e-4);
        const double way = unigram_lattice_best(&lattice, codes, count, TRIE_NO_PIECE, found, &found_count);
        if (best > 1e-270)
            assert_true(fabs(way / best - 1) < 1e-9);
        unigram_trie_free(&m.trie, &budget);
    }
    unigram_lattice_free(&lattice, &budget);
    assert_int_equal(budget.used, 0);
}

/* Of a run of n equal letters with the pieces a and aa, the expected numbers follow from a recurrence. */
static void long_runs_do_not_vanish(void **state)
{
    (void)state;
    static uint32_t codes[LATTICE_RUN];
    const uint32_t texts[2][2] = {{1, 0}, {1, 1}};
    const struct unigram_piece pieces[2] = {{texts[0], 1}, {texts[1], 2}};
    const double a = 1e-6, aa = 1e-11;
    struct unigram_trie trie;
    struct unigram_lattice lattice;
    uint64_t expected[2] = {0, 0};
    assert_int_equal(unigram_trie_make(&trie, pieces, 2, 1, &budget, NULL), TOKMAP_OK);
    assert_int_equal(unigram_lattice_make(&lattice, 16, &budget, NULL), TOKMAP_OK);
    trie.nodes[trie.node_of[0]].probability = (float)a;
    trie.nodes[trie.node_of[1]].probability = (float)aa;
    lattice.trie = &trie;
    lattice.unknown = 1e-30;
    for (uint32_t i = 0; i < LATTICE_RUN; i++)
        codes[i] = 1;
    unigram_lattice_expect(&lattice, codes, LATTICE_RUN, 5, expected);
    /* With x = aa / a^2 = 10, ways have the weight x^k for k pairs; the sum has the growth (1 + sqrt(1 + 4x)) / 2. */
    const double one = (double)expected[0] / LATTICE_UNIT / 5, two = (double)expected[1] / LATTICE_UNIT / 5;
    const double root = sqrt(41), growth = (1 + root) / 2;
    assert_true(fabs(one + 2 * two - LATTICE_RUN) < 1e-3);
    assert_true(fabs(two - LATTICE_RUN * 10 / root / growth) < 1); /* but for the ends */
    static uint32_t found[LATTICE_RUN];
    uint32_t found_count;
    (void)unigram_lattice_best(&lattice, codes, LATTICE_RUN, TRIE_NO_PIECE, found, &found_count);
    assert_int_equal(found_count, LATTICE_RUN / 2);
    for (uint32_t i = 0; i < found_count; i++)
        assert_int_equal(found[i], 1);
    unigram_lattice_free(&lattice, &budget);
    unigram_trie_free(&trie, &budget);
    assert_int_equal(budget.used, 0);
}

/* ---- seeds ---- */

static uint64_t times_of(const struct unigram_words *words, const uint32_t *codes, uint32_t count, uint32_t *nexts,
                         uint32_t *next_count)
{
    uint64_t times = 0;
    *next_count = 0;
    for (uint64_t w = 0; w < words->count; w++)
        for (uint64_t at = words->words[w].begin; at + count < words->words[w + 1].begin; at++) {
            if (memcmp(words->codes + at, codes, count * sizeof *codes) != 0)
                continue;
            const uint32_t next = words->codes[at + count];
            uint32_t known = 0;
            times += words->words[w].times;
            while (known < *next_count && nexts[known] != next)
                known++;
            if (known == *next_count)
                nexts[(*next_count)++] = next;
        }
    return times;
}

static void seeds_are_the_definition(void **state)
{
    (void)state;
    random_state = 5;
    for (int round = 0; round < 40; round++) {
        char text[400];
        struct text_words w;
        struct unigram_seeds seeds, fewer;
        const uint32_t longest = 1 + (uint32_t)random_below(&random_state, 6);
        uint64_t wanted = 0;
        for (size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = "ab c"[random_below(&random_state, 4)];
        text[sizeof text - 1] = 0;
        words_make(&w, text, 1);
        assert_int_equal(
            unigram_seeds_find(&seeds, &w.words, 100000, longest, 1 + (uint32_t)round % 3, NULL, NULL, &budget, NULL),
            TOKMAP_OK);
        for (uint64_t i = 0; i < seeds.count; i++) {
            uint32_t nexts[8], next_count;
            const struct unigram_seed *seed = &seeds.seeds[i];
            const uint64_t times = times_of(&w.words, w.words.codes + seed->at, seed->count, nexts, &next_count);
            assert_int_equal(seed->score, times * seed->count);
            assert_true(seed->count >= 2 && seed->count <= longest && times >= 2);
            assert_true(next_count >= 2 || nexts[0] == 0);
            assert_true(!i || seeds.seeds[i - 1].score >= seed->score);
        }
        for (uint64_t at = 0; at < w.words.code_count; at++) /* the first place of each text that is a seed */
            for (uint32_t count = 2; count <= longest && w.words.codes[at] && w.words.codes[at + count - 1]; count++) {
                uint32_t nexts[8], next_count;
                bool seen = false;
                if (times_of(&w.words, w.words.codes + at, count, nexts, &next_count) < 2)
                    continue;
                bool zero = false;
                for (uint32_t i = 0; i < next_count; i++)
                    zero |= !nexts[i];
                for (uint64_t before = 0; before < at && !seen; before++)
                    seen = !memcmp(w.words.codes + before, w.words.codes + at, count * sizeof(uint32_t));
                wanted += !seen && (next_count >= 2 || zero);
            }
        assert_int_equal(seeds.count, wanted);
        const uint64_t half = seeds.count / 2 + 1;
        assert_int_equal(unigram_seeds_find(&fewer, &w.words, half, longest, 2, NULL, NULL, &budget, NULL), TOKMAP_OK);
        assert_int_equal(fewer.count, half < seeds.count ? half : seeds.count);
        for (uint64_t i = 0; i < fewer.count; i++)
            assert_int_equal(fewer.seeds[i].score, seeds.seeds[i].score);
        unigram_seeds_free(&fewer, &budget);
        const uint64_t few = seeds.count / 9 + 1; /* so few that seeds are dropped on the way */
        assert_int_equal(unigram_seeds_find(&fewer, &w.words, few, longest, 1, NULL, NULL, &budget, NULL), TOKMAP_OK);
        assert_int_equal(fewer.count, few < seeds.count ? few : seeds.count);
        for (uint64_t i = 0; i < fewer.count; i++) {
            assert_int_equal(fewer.seeds[i].count, seeds.seeds[i].count);
            assert_memory_equal(w.words.codes + fewer.seeds[i].at, w.words.codes + seeds.seeds[i].at,
                                seeds.seeds[i].count * sizeof(uint32_t));
        }
        unigram_seeds_free(&fewer, &budget);
        unigram_seeds_free(&seeds, &budget);
        words_free(&w);
    }
}

/* ---- vocabularies ---- */

static void train(struct unigram_vocabulary *v, const struct text_words *w, uint32_t pieces, uint32_t threads)
{
    const struct unigram_options options = {.pieces = pieces, .longest = 16, .threads = threads};
    assert_int_equal(train_unigram(v, &w->words, &budget, &options, NULL), TOKMAP_OK);
}

/* The number of a piece in the vocabulary, or -1. */
static int place_of(const struct unigram_vocabulary *v, const char *piece)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (v->pieces[i].count == strlen(piece) && !memcmp(v->pieces[i].bytes, piece, strlen(piece)))
            return (int)i;
    return -1;
}

static void tiny_texts_have_known_vocabularies(void **state)
{
    (void)state;
    struct text_words w;
    struct unigram_vocabulary v;
    words_make(&w, "the cat the dog the cat the dog the cat", 1);
    train(&v, &w, 12, 1);
    assert_int_equal(v.count, 12); /* U+2581 t h e c a d o g, and the words */
    assert_true(place_of(&v, "\xe2\x96\x81the") == 0);
    assert_true(place_of(&v, "\xe2\x96\x81"
                             "cat") == 1);
    assert_true(place_of(&v, "\xe2\x96\x81"
                             "dog") == 11);
    assert_int_equal(v.tokens, 10);
    for (uint32_t i = 1; i < v.count; i++)
        assert_true(v.scores[i] <= v.scores[i - 1] && v.scores[i] < 0);
    /* The words occur 5, 3, and 2 times, so the scores are digamma(n) - digamma(10). Characters, which are in no best
     * way, have the lowest score and a little more. */
    assert_true(fabs((double)v.scores[0] - (train_digamma(5) - train_digamma(10))) < 0.02);
    assert_true(fabs((double)v.scores[11] - (train_digamma(2) - train_digamma(10))) < 0.02);
    unigram_vocabulary_free(&v);
    train(&v, &w, 9, 1); /* the characters only */
    assert_int_equal(v.count, 9);
    assert_int_equal(v.tokens, 40);
    unigram_vocabulary_free(&v);
    const struct train_text forbidden[] = {{(const uint8_t *)"\xe2\x96\x81the", 6}};
    const struct unigram_options without = {
        .pieces = 12, .longest = 16, .threads = 1, .forbidden = forbidden, .forbidden_count = 1};
    assert_int_equal(train_unigram(&v, &w.words, &budget, &without, NULL), TOKMAP_OK);
    assert_int_equal(place_of(&v, "\xe2\x96\x81the"), -1);
    unigram_vocabulary_free(&v);
    train(&v, &w, 1000, 1); /* more than there are */
    assert_true(v.count < 60 && v.count >= 12);
    unigram_vocabulary_free(&v);
    words_free(&w);
}

static bool stop_soon(void *user)
{
    return __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED) > 100000;
}

/* Of pieces with equal losses as many stay as are wanted, and a word of any length is one. */
static void equal_pieces_are_dropped(void **state)
{
    (void)state;
    static char text[16000];
    size_t used = 0;
    int calls = 0;
    struct text_words w;
    struct unigram_vocabulary v;
    for (int again = 0; again < 3; again++)
        for (unsigned i = 0; i < 200; i++) /* words of two characters of Chinese that no other word has */
            used += (size_t)sprintf(text + used, " \xe4\xb8%c\xe4\xb8%c\xe4\xb9%c", 0x80 + i / 64, 0x80 + i % 64,
                                    0x80 + (i * 7) % 64);
    words_make(&w, text, 1);
    for (uint32_t more = 1; more < 150; more += 37) {
        const uint32_t pieces = w.characters.count + more;
        const struct unigram_options options = {
            .pieces = pieces, .longest = 16, .threads = 2, .stop = stop_soon, .user = &calls};
        assert_int_equal(train_unigram(&v, &w.words, &budget, &options, NULL), TOKMAP_OK);
        assert_int_equal(v.count, pieces);
        unigram_vocabulary_free(&v);
    }
    words_free(&w);
    memset(text, 'a', 2 * LATTICE_RUN + 100); /* a word of more than two runs */
    text[2 * LATTICE_RUN + 100] = '\0';
    words_make(&w, text, 1);
    train(&v, &w, 2, 2);
    assert_int_equal(v.tokens, 2 * LATTICE_RUN + 101);
    unigram_vocabulary_free(&v);
    words_free(&w);
}

static void rare_characters_are_not_covered(void **state)
{
    (void)state;
    struct text_words w;
    struct unigram_vocabulary v;
    words_make(&w, "aaaa aaaa aaaa aaaa aaaa aaxa", 0.95);
    assert_int_equal(w.characters.count, 2);
    assert_int_equal(w.characters.uncovered, 1);
    train(&v, &w, 5, 2);
    assert_int_equal(place_of(&v, "x"), -1);
    assert_true(place_of(&v, "\xe2\x96\x81"
                             "aaaa") >= 0);
    unigram_vocabulary_free(&v);
    words_free(&w);
    words_make(&w, "abc", 0.5); /* half of four characters are two of them */
    assert_int_equal(w.characters.count, 2);
    words_free(&w);
    struct train_characters characters;
    struct train_pieces *pieces = pieces_of("aaaaaaax", &(struct train_word_rules){true, true, false, false});
    assert_int_equal(train_characters_choose(&characters, pieces, 0.5, (const uint32_t[]){'x', 'q'}, 2, &budget, NULL),
                     TOKMAP_OK);
    assert_int_equal(characters.count, 3);
    assert_true(characters.number_of['x'] && characters.number_of['q'] && characters.number_of['a']);
    train_characters_free(&characters, &budget);
    train_pieces_free(pieces);
    words_make(&w, "\xe2\x96\x81", 1); /* a space, and a character that is written like one */
    assert_int_equal(w.characters.count, 1);
    train(&v, &w, 1, 1);
    assert_int_equal(v.tokens, 2);
    unigram_vocabulary_free(&v);
    words_free(&w);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    char *text = malloc(60001);
    struct text_words w;
    struct unigram_vocabulary one, other;
    random_state = 8;
    for (int i = 0; i < 60000; i++)
        text[i] = "aaabbcdefgh     ,.1"[random_below(&random_state, 19)];
    text[60000] = 0;
    words_make(&w, text, 1);
    for (uint32_t pieces = 60; pieces < 300; pieces += 30) {
        train(&one, &w, pieces, 2);
        assert_int_equal(one.count, pieces);
        unigram_vocabulary_free(&one);
    }
    train(&one, &w, 300, 1);
    words_free(&w);
    words_make(&w, text, 1); /* the words leave their table in another order */
    for (uint32_t threads = 2; threads < 6; threads++) {
        train(&other, &w, 300, threads);
        assert_int_equal(other.count, one.count);
        assert_memory_equal(other.scores, one.scores, one.count * sizeof *one.scores);
        for (uint32_t i = 0; i < one.count; i++) {
            assert_int_equal(other.pieces[i].count, one.pieces[i].count);
            assert_memory_equal(other.pieces[i].bytes, one.pieces[i].bytes, one.pieces[i].count);
        }
        unigram_vocabulary_free(&other);
    }
    unigram_vocabulary_free(&one);
    words_free(&w);
    free(text);
}

static bool stop_now(void *user)
{
    return *(int *)user == 0 || --*(int *)user == 0;
}

/* However little memory there is, and whenever the work is stopped, nothing stays reserved. */
static void failures_free_everything(void **state)
{
    (void)state;
    struct text_words w;
    struct unigram_vocabulary v;
    words_make(&w, "the cat and the dog and the cat of the dogs and cats", 1);
    const uint64_t used = budget.used;
    const struct unigram_options options = {.pieces = 30, .longest = 16, .threads = 2};
    for (uint64_t more = 0; more < 2000000; more = more * 5 / 4 + 300) {
        budget.limit = used + more;
        const enum tokmap_status status = train_unigram(&v, &w.words, &budget, &options, NULL);
        assert_true(status == TOKMAP_OK || status == TOKMAP_ERROR_LIMIT);
        if (!status)
            unigram_vocabulary_free(&v);
        assert_int_equal(budget.used, used);
    }
    budget.limit = (uint64_t)1 << 30;
    struct unigram_seeds seeds;
    int none = 0, calls = 0;
    assert_int_equal(unigram_seeds_find(&seeds, &w.words, 100, 4, 1, stop_now, &none, &budget, NULL),
                     TOKMAP_ERROR_INTERRUPTED);
    unigram_seeds_free(&seeds, &budget);
    struct unigram_options counted = options;
    counted.threads = 1;
    counted.stop = stop_soon;
    counted.user = &calls;
    assert_int_equal(train_unigram(&v, &w.words, &budget, &counted, NULL), TOKMAP_OK);
    unigram_vocabulary_free(&v);
    for (int after = 1; after < calls + 5; after++) {
        int left = after;
        struct unigram_options stopped = options;
        stopped.threads = 1;
        stopped.stop = stop_now;
        stopped.user = &left;
        const enum tokmap_status status = train_unigram(&v, &w.words, &budget, &stopped, NULL);
        assert_int_equal(status, after <= calls ? TOKMAP_ERROR_INTERRUPTED : TOKMAP_OK);
        if (!status)
            unigram_vocabulary_free(&v);
        assert_int_equal(budget.used, used);
    }
    words_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_where_no_piece_crosses),
        cmocka_unit_test(logarithms_are_those_of_the_library),
        cmocka_unit_test(expectations_are_the_definition),
        cmocka_unit_test(long_runs_do_not_vanish),
        cmocka_unit_test(seeds_are_the_definition),
        cmocka_unit_test(tiny_texts_have_known_vocabularies),
        cmocka_unit_test(equal_pieces_are_dropped),
        cmocka_unit_test(rare_characters_are_not_covered),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(failures_free_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
