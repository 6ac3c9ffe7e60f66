/* SPDX-License-Identifier: MIT */
/*
 * test_bpe.c - caches and fast merges give the ids that the definition gives, read literally, for awkward vocabularies:
 * tokens that merging does not reach, tokens that begin or end inside a character, merges in any order.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_encode.h"
#include "common/cpu.h"
#include "pretokenize/scanner_piece.h"
#include "support/awkward_text.h"

#define MOST_TOKENS 3000
#define MOST_BYTES (MOST_TOKENS * 24)

struct vocabulary {
    struct bpe_source source;
    uint8_t bytes[MOST_BYTES + 64];
    uint32_t offsets[MOST_TOKENS + 70001];
    struct bpe_merge merges[MOST_TOKENS];
    uint32_t count;
};

static uint32_t find_token(const struct vocabulary *v, const uint8_t *bytes, size_t count)
{
    for (uint32_t id = 0; id < v->count; id++)
        if (v->offsets[id + 1] - v->offsets[id] == count && !memcmp(v->bytes + v->offsets[id], bytes, count))
            return id;
    return BPE_NONE;
}

static bool add_token(struct vocabulary *v, const uint8_t *bytes, size_t count)
{
    if (!count || count > 24 || find_token(v, bytes, count) != BPE_NONE)
        return false;
    memcpy(v->bytes + v->offsets[v->count], bytes, count);
    v->offsets[v->count + 1] = v->offsets[v->count] + (uint32_t)count;
    v->count++;
    return true;
}

/* The kinds of lists: 0: pairs may come twice; 1: they do not; 2: results do not come twice either, so they grow. */
static bool may_list(const struct vocabulary *v, uint32_t kind, uint32_t left, uint32_t right, uint32_t result)
{
    for (uint32_t i = 0; i < v->source.merge_count && kind; i++)
        if ((v->merges[i].left == left && v->merges[i].right == right) || (kind == 2 && v->merges[i].result == result))
            return false;
    return true;
}

/* The bytes in random order, then parts of awkward texts and concatenations of tokens. */
static void make_vocabulary(struct vocabulary *v, uint32_t tokens, bool merges, bool wide)
{
    uint8_t text[48];
    uint8_t order[256];
    memset(v, 0, offsetof(struct vocabulary, bytes));
    v->count = 0;
    v->offsets[0] = 0;
    const uint32_t kind = merges ? awkward_below(3) : 0;
    for (uint32_t i = 0; i < 256; i++)
        order[i] = (uint8_t)i;
    for (uint32_t i = 255; i; i--) {
        const uint32_t k = awkward_below(i + 1);
        const uint8_t was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
    for (uint32_t i = 0; i < 256; i++)
        add_token(v, &order[i], 1);
    for (uint32_t tries = 0; v->count < tokens && tries < 20 * tokens; tries++) {
        if (awkward_below(8) || merges) {
            /* Pairs that are likely to come up: those of a text. */
            awkward_text(text, sizeof text);
            const uint32_t from = awkward_below(24), bytes = 2 + awkward_below(awkward_below(3) ? 4 : 20);
            if (!merges) {
                add_token(v, text + from, bytes);
                continue;
            }
            for (uint32_t cut = 1; cut < bytes; cut++) {
                const uint32_t left = find_token(v, text + from, cut);
                const uint32_t right = find_token(v, text + from + cut, bytes - cut);
                if (left == BPE_NONE || right == BPE_NONE || v->source.merge_count == MOST_TOKENS)
                    continue;
                add_token(v, text + from, bytes);
                const uint32_t result = find_token(v, text + from, bytes);
                if (result != BPE_NONE && may_list(v, kind, left, right, result))
                    v->merges[v->source.merge_count++] = (struct bpe_merge){left, right, result};
                break;
            }
        } else {
            const uint32_t a = awkward_below(v->count), b = awkward_below(v->count);
            const uint32_t one = v->offsets[a + 1] - v->offsets[a], two = v->offsets[b + 1] - v->offsets[b];
            memcpy(text, v->bytes + v->offsets[a], one);
            memcpy(text + one, v->bytes + v->offsets[b], two);
            add_token(v, text, one + two);
        }
    }
    v->source.path = "test";
    v->source.bytes = v->bytes;
    v->source.offsets = v->offsets;
    v->source.vocabulary = v->count;
    v->source.whole = !merges || awkward_below(2);
    if (merges)
        v->source.merges = v->merges;
    for (; wide && v->source.vocabulary < 66000; v->source.vocabulary++)
        v->offsets[v->source.vocabulary + 1] = v->offsets[v->count];
}

static uint32_t naive_rank(const struct vocabulary *v, const uint8_t *text, const uint32_t *from, size_t at,
                           const uint32_t *ids, uint32_t *result)
{
    if (!v->source.merges)
        return *result = find_token(v, text + from[at], from[at + 2] - from[at]);
    uint32_t found = BPE_NONE;
    for (uint32_t i = 0; i < v->source.merge_count; i++) /* of equal pairs the last counts */
        if (v->merges[i].left == ids[at] && v->merges[i].right == ids[at + 1]) {
            found = i;
            *result = v->merges[i].result;
        }
    return found;
}

/* The definition: while any neighbors merge, the pair of lowest rank does, of equals the leftmost. */
static size_t naive_merge(const struct vocabulary *v, const uint8_t *text, size_t count, uint32_t *ids)
{
    uint32_t *from = malloc((count + 1) * sizeof *from);
    size_t parts = count;
    assert_non_null(from);
    for (size_t i = 0; i <= count; i++)
        from[i] = (uint32_t)i;
    for (size_t i = 0; i < count; i++)
        ids[i] = find_token(v, text + i, 1);
    for (;;) {
        uint32_t best = BPE_NONE, best_result = 0, result;
        size_t where = 0;
        for (size_t i = 0; i + 1 < parts; i++) {
            const uint32_t rank = naive_rank(v, text, from, i, ids, &result);
            if (rank < best) {
                best = rank;
                best_result = result;
                where = i;
            }
        }
        if (best == BPE_NONE)
            break;
        ids[where] = best_result;
        memmove(ids + where + 1, ids + where + 2, (parts - where - 2) * sizeof *ids);
        memmove(from + where + 1, from + where + 2, (parts - where - 1) * sizeof *from);
        parts--;
    }
    free(from);
    return parts;
}

static size_t naive_encode(const struct vocabulary *v, const uint8_t *text, size_t count, uint32_t *ids)
{
    size_t made = 0;
    for (size_t at = 0; at < count;) {
        const size_t end = scan_piece(&v->source.rules, text, at, count);
        const uint32_t whole = v->source.whole ? find_token(v, text + at, end - at) : BPE_NONE;
        if (whole != BPE_NONE)
            ids[made++] = whole;
        else
            made += naive_merge(v, text + at, end - at, ids + made);
        at = end;
    }
    return made;
}

static void check_encode(struct bpe_state *state, const struct vocabulary *v, const uint8_t *text, size_t count)
{
    uint32_t *expected = malloc((count + 1) * sizeof *expected);
    uint8_t *tokens = malloc(count * 4 + 4); /* no more room than the interface asks for */
    struct tokmap_error error;
    uint64_t written, largest = 0;
    assert_non_null(expected);
    assert_non_null(tokens);
    const size_t made = naive_encode(v, text, count, expected);
    for (int again = 0; again < 2; again++) {
        state->largest = 0;
        assert_int_equal(bpe_encode(state, text, count, tokens, count, &written, &error), TOKMAP_OK);
        for (size_t i = 0; i < made && i < written; i++) {
            const uint32_t id = state->model->wide ? ((uint32_t *)(void *)tokens)[i] : ((uint16_t *)(void *)tokens)[i];
            largest = id > largest ? id : largest;
            if (id != expected[i])
                fail_msg("id %zu is %u, not %u", i, id, expected[i]);
        }
        assert_int_equal(written, made);
        assert_int_equal(state->largest, largest);
    }
    free(expected);
    free(tokens);
}

static void any_vocabulary(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    const char *const *names = split_rules_names();
    int patterns = 0;
    while (names[patterns])
        patterns++;
    awkward_seed(3);
    for (int round = 0; round < awkward_rounds(60); round++) {
        struct bpe_model *model;
        struct bpe_state *state;
        const enum cpu_variant variant = (enum cpu_variant)(round / 2 % ((int)cpu_variant_best() + 1));
        make_vocabulary(&v, 256 + awkward_below(1200), round % 2, round % 3 == 0);
        v.source.rules = *split_rules_named(names[awkward_below((uint32_t)patterns)]);
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        scanner_init(&model->scanner, &v.source.rules, variant);
        assert_int_equal(bpe_state_new(&state, model, variant, &error), TOKMAP_OK);
        for (int text = 0; text < 25; text++) {
            const size_t count = 1 + awkward_below(text % 10 ? 120 : 1500);
            uint8_t *bytes = malloc(count);
            assert_non_null(bytes);
            awkward_text(bytes, count);
            check_encode(state, &v, bytes, count);
            free(bytes);
        }
        bpe_state_free(state);
        bpe_model_free(model);
    }
}

static bool results_grow(const struct vocabulary *v)
{
    for (uint32_t i = 1; i < v->source.merge_count; i++)
        if (v->merges[i].result <= v->merges[i - 1].result)
            return false;
    return true;
}

/* Lists whose ids do not grow. A model does without places in the list if the ids of the pairs that it needs grow.
 * Where a pair that it finds later does not fit between them, it puts the places back. That is so where a merge has
 * moved to before those that make its parts. Where there are few rounds, as with an emulator, more follow until there
 * has been a model of each kind. */
static void any_order(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    int by_place = 0, by_id = 0;
    awkward_seed(17);
    for (int round = 0; round < awkward_rounds(60) || (round < 60 && !(by_place && by_id)); round++) {
        struct bpe_model *model;
        struct bpe_state *state;
        const enum cpu_variant variant = (enum cpu_variant)(round % ((int)cpu_variant_best() + 1));
        make_vocabulary(&v, 256 + awkward_below(1200), true, round % 4 == 0);
        for (uint32_t moves = awkward_below(round % 3 ? 3 : 200); moves && v.source.merge_count; moves--) {
            const uint32_t from = awkward_below(v.source.merge_count), to = awkward_below(from + 1);
            const struct bpe_merge moved = v.merges[from];
            memmove(v.merges + to + 1, v.merges + to, (from - to) * sizeof moved);
            v.merges[to] = moved;
        }
        v.source.rules = *split_rules_named("gpt2");
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        by_place += model->results != NULL;
        by_id += !model->results && !results_grow(&v);
        assert_int_equal(bpe_state_new(&state, model, variant, &error), TOKMAP_OK);
        for (int text = 0; text < 25; text++) {
            uint8_t bytes[400];
            const size_t count = 1 + awkward_below(sizeof bytes);
            awkward_text(bytes, count);
            check_encode(state, &v, bytes, count);
        }
        bpe_state_free(state);
        bpe_model_free(model);
    }
    assert_true(by_place && by_id);
}

/* A border of two characters is found wherever it is in a token: tokens are searched eight bytes at a time. */
static void joins_at_any_place(void **unused)
{
    enum { MOST = 16 };
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    uint8_t text[24] = "abcdefghijklmnop";
    uint32_t found = 0;
    memset(&v, 0, sizeof v);
    for (unsigned i = 0; i < 256; i++)
        assert_true(add_token(&v, &(uint8_t){(uint8_t)i}, 1));
    for (uint32_t before = 0; before <= MOST; before++) { /* letters before the two characters */
        const uint8_t two[6] = {0xE4, 0xB8, (uint8_t)(0x80 + before), 0xE5, 0xB9, 0x81};
        memcpy(text + before, two, sizeof two);
        assert_true(add_token(&v, text, before + sizeof two));
        text[before] = (uint8_t)('A' + before);
    }
    v.source = (struct bpe_source){.path = "test",
                                   .vocabulary = v.count,
                                   .bytes = v.bytes,
                                   .offsets = v.offsets,
                                   .whole = true,
                                   .rules = *split_rules_named("gpt2")};
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    for (uint32_t last = 0; last < 64; last++) {
        const uint8_t two[8] = {0xE4, 0xB8, (uint8_t)(0x80 + last), 0xE5, 0xB9, 0x81};
        found += bpe_may_join(model, load64(two));
        assert_true(last > MOST || bpe_may_join(model, load64(two)));
    }
    assert_in_range(found, MOST + 1, 40); /* the filter is not simply full */
    bpe_model_free(model);
}

/* What merges the windows of long pieces: alone, or several at once, if this processor can. */
static bpe_merge_many_function *many_of(size_t number)
{
#if defined(__x86_64__)
    if (number % 3 == 1 && cpu_has(CPU_AVX2))
        return bpe_merge_many_avx2;
    if (number % 3 == 2 && cpu_has(CPU_VBMI))
        return bpe_merge_many_vbmi;
#endif
    return NULL;
}

/* Rows, rounds, and windows give what the definition gives: pieces around the limits, and runs, in which long tokens
 * and the parity of the bytes before them decide. */
static void long_merges(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    awkward_seed(4);
    for (int round = 0; round < awkward_rounds(30); round++) {
        struct bpe_model *model;
        struct bpe_scratch scratch = {.memory = NULL};
        make_vocabulary(&v, 500, round % 2, false);
        v.source.rules = *split_rules_named("gpt2");
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        for (int text = 0; text < 20; text++) {
            const size_t count = text % 2 ? BPE_SHORT - 3 + awkward_below(6) : 1 + awkward_below(700);
            uint8_t bytes[700];
            uint32_t ids[700], expected[700], largest = 0, most = 0;
            uint16_t narrow[700];
            awkward_text(bytes, count);
            scratch.many = many_of((size_t)text / 2);
            const size_t period = 1 + awkward_below(9);
            for (size_t i = period; i < count && text % 3 == 0; i++)
                bytes[i] = bytes[i - period];
            const size_t made = bpe_merge(model, &scratch, bytes, count, ids);
            assert_int_equal(made, naive_merge(&v, bytes, count, expected));
            assert_memory_equal(ids, expected, made * sizeof *ids);
            if (count <= BPE_SHORT)
                continue;
            assert_int_equal(bpe_merge_long(model, &scratch, bytes, count, narrow, false, &largest), made);
            for (size_t i = 0; i < made; i++) {
                assert_int_equal(narrow[i], expected[i]);
                most = expected[i] > most ? expected[i] : most;
            }
            assert_int_equal(largest, most);
        }
        free(scratch.memory);
        bpe_model_free(model);
    }
}

/* A merge can make a pair that has a lower rank than its own. That pair is merged first, before the other pairs of the
 * rank at hand. The text alternates between a and b at random, and a chain of symbols, each of which merges with the
 * next one, the later pairs first: how it merges depends on its end, so the windows grow until they merge in rounds. */
static void a_merge_makes_a_pair_of_lower_rank(void **unused)
{
    enum { CHAIN = 99, RANDOM = 40, FIRST = 0x80 };
    static const char *const others[][2] = {{"ab", "a"}, {"b", "ab"}, {"a", "b"}, {"b", "b"}};
    const uint32_t count_others = sizeof others / sizeof others[0];
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    struct bpe_scratch scratch = {.memory = NULL};
    memset(&v, 0, sizeof v);
    for (unsigned i = 0; i < 256; i++)
        assert_true(add_token(&v, &(uint8_t){(uint8_t)i}, 1));
    for (uint32_t i = 0; i < count_others; i++) {
        const size_t left = strlen(others[i][0]), right = strlen(others[i][1]);
        uint8_t text[4];
        memcpy(text, others[i][0], left);
        memcpy(text + left, others[i][1], right);
        assert_true(add_token(&v, text, left + right));
    }
    for (uint32_t i = 0; i < count_others; i++)
        v.merges[i] = (struct bpe_merge){find_token(&v, (const uint8_t *)others[i][0], strlen(others[i][0])),
                                         find_token(&v, (const uint8_t *)others[i][1], strlen(others[i][1])), 256 + i};
    for (uint32_t i = 0; i + 1 < CHAIN; i++) {
        const uint32_t left = FIRST + CHAIN - 2 - i;
        v.merges[count_others + i] = (struct bpe_merge){left, left + 1, v.count};
        assert_true(add_token(&v, (const uint8_t[]){(uint8_t)left, (uint8_t)(left + 1)}, 2));
    }
    v.source = (struct bpe_source){.path = "test",
                                   .vocabulary = v.count,
                                   .bytes = v.bytes,
                                   .offsets = v.offsets,
                                   .merges = v.merges,
                                   .merge_count = count_others + CHAIN - 1,
                                   .rules = *split_rules_named("gpt2")};
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    awkward_seed(11);
    for (size_t count = 1; count < 700; count += 1 + count / 8) {
        uint8_t bytes[700];
        uint32_t ids[700], expected[700];
        for (size_t i = 0; i < count; i++) {
            const size_t at = i % (CHAIN + RANDOM);
            bytes[i] = (uint8_t)(at < CHAIN ? FIRST + at : 'a' + awkward_below(2));
        }
        const size_t wanted = naive_merge(&v, bytes, count, expected);
        for (size_t number = 0; number < 3; number++) {
            scratch.many = many_of(number);
            assert_int_equal(bpe_merge(model, &scratch, bytes, count, ids), wanted);
            assert_memory_equal(ids, expected, wanted * sizeof *ids);
        }
    }
    free(scratch.memory);
    bpe_model_free(model);
}

/* Builds a model of symbols of two bytes: symbol k is the byte `first` + k / seconds, then the byte `second` + k %
 * seconds. Each symbol merges with the next one, and the later pairs do so first. The bytes of symbol k are at
 * bytes[256 + 2 * k]. bytes, offsets, merges: memory for the vocabulary, for as long as the model. */
static struct bpe_model *symbols_model(uint32_t symbols, uint32_t first, uint32_t second, uint32_t seconds,
                                       uint8_t *bytes, uint32_t *offsets, struct bpe_merge *merges)
{
    struct bpe_source source = {.path = "test", .bytes = bytes, .offsets = offsets, .merges = merges};
    struct bpe_model *model;
    struct tokmap_error error;
    uint32_t at = 0;
    for (; source.vocabulary < 256; source.vocabulary++) {
        bytes[at++] = (uint8_t)source.vocabulary;
        offsets[source.vocabulary + 1] = at;
    }
    for (uint32_t symbol = 0; symbol < symbols; symbol++) {
        const uint32_t left = first + symbol / seconds, right = second + symbol % seconds;
        bytes[at++] = (uint8_t)left;
        bytes[at++] = (uint8_t)right;
        merges[symbol] = (struct bpe_merge){left, right, 256 + symbol};
        offsets[++source.vocabulary] = at;
    }
    source.merge_count = symbols;
    for (uint32_t symbol = symbols - 1; symbol--;) {
        memcpy(bytes + at, bytes + 256 + 2 * symbol, 4);
        at += 4;
        merges[source.merge_count++] = (struct bpe_merge){256 + symbol, 257 + symbol, source.vocabulary};
        offsets[++source.vocabulary] = at;
    }
    source.rules = *split_rules_named("gpt2");
    assert_int_equal(bpe_model_build(&model, &source, &error), TOKMAP_OK);
    return model;
}

/* Chinese text is cut between all characters that no token joins, wherever in a chunk it begins: here only the first
 * character belongs to the piece before. Without these cuts the ids would be the same, and take longer to find. */
static void cuts_anywhere_in_a_chunk(void **unused)
{
    enum { CHARACTERS = 100 };
    static uint8_t bytes[256 + 6 * 4], text[SCAN_BYTES];
    static uint32_t offsets[256 + 2 * 4 + 1];
    static uint16_t ids[SCAN_BYTES];
    static struct bpe_merge merges[2 * 4];
    static const size_t begins[] = {0, 64, 4032, 4096, 4160, SCAN_BYTES - 3 * CHARACTERS};
    struct bpe_model *model = symbols_model(4, 'p', 'p', 4, bytes, offsets, merges);
    for (int variant = 0; variant <= (int)cpu_variant_best(); variant++)
        for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
            struct bpe_state *state;
            struct tokmap_error error;
            uint64_t written;
            const size_t words = begins[i] / 2, count = 2 * words + 3 * CHARACTERS;
            for (size_t at = 0; at < 2 * words; at++)
                text[at] = at % 2 ? 'a' : ' ';
            for (size_t at = 2 * words; at < count; at += 3)
                memcpy(text + at, "\xE4\xB8\xAD", 3);
            assert_int_equal(bpe_state_new(&state, model, (enum cpu_variant)variant, &error), TOKMAP_OK);
            assert_int_equal(bpe_encode(state, text, count, ids, count, &written, &error), TOKMAP_OK);
            assert_int_equal(state->counts.pieces, words + CHARACTERS - (words != 0));
            assert_int_equal(written, count);
            bpe_state_free(state);
        }
    bpe_model_free(model);
}

/* Symbols of two bytes, each of which merges with the next symbol, and the later pairs first. How a text of consecutive
 * symbols divides is decided at its end, however far that is. So windows fail, become longer, and at last reach the
 * end. */
static void far_context(void **unused)
{
    enum { SYMBOLS = 3000 };
    static uint8_t bytes[256 + 6 * SYMBOLS], text[2 * SYMBOLS];
    static uint32_t offsets[256 + 2 * SYMBOLS + 1], ids[2 * SYMBOLS];
    static struct bpe_merge merges[2 * SYMBOLS];
    struct bpe_scratch scratch = {.memory = NULL};
    struct bpe_model *model = symbols_model(SYMBOLS, 0, 100, 100, bytes, offsets, merges);
    awkward_seed(8);
    for (int round = 0; round < awkward_rounds(40); round++) {
        const uint32_t first = awkward_below(SYMBOLS - 40), symbols = 40 + awkward_below(SYMBOLS - first - 39);
        memcpy(text, bytes + 256 + 2 * first, 2 * symbols);
        scratch.many = many_of((size_t)round);
        const size_t made = bpe_merge(model, &scratch, text, 2 * symbols, ids);
        assert_int_equal(made, (symbols + 1) / 2);
        for (uint32_t i = 0; i < made; i++) {
            const uint32_t symbol = first + 2 * i - (symbols % 2 && i);
            assert_int_equal(ids[i], symbols % 2 && !i ? 256 + first : 256 + SYMBOLS + (SYMBOLS - 2 - symbol));
        }
    }
    free(scratch.memory);
    bpe_model_free(model);
}

/* A million bytes of each awkward character, alone and in pairs: encoding ends, and the ids spell the text. */
static void long_runs(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    struct bpe_state *state;
    const size_t count = 1000000;
    uint8_t *text = malloc(count);
    uint16_t *ids = malloc(count * sizeof *ids);
    awkward_seed(5);
    make_vocabulary(&v, 1500, false, false);
    v.source.rules = *split_rules_named("cl100k_base");
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
    for (size_t a = 0; a < awkward_atom_count; a += 3) {
        const char *one = awkward_atoms[a], *two = awkward_atoms[(a * 7 + 5) % awkward_atom_count];
        size_t at = 0;
        uint64_t written;
        while (at + 8 < count) {
            const char *next = at % 2 && a % 2 ? two : one;
            memcpy(text + at, next, strlen(next));
            at += strlen(next);
        }
        assert_int_equal(bpe_encode(state, text, at, ids, at, &written, &error), TOKMAP_OK);
        size_t back = 0;
        for (uint64_t i = 0; i < written; i++) {
            const uint32_t bytes = model->offsets[ids[i] + 1] - model->offsets[ids[i]];
            assert_true(back + bytes <= at && !memcmp(text + back, model->bytes + model->offsets[ids[i]], bytes));
            back += bytes;
        }
        assert_int_equal(back, at);
    }
    bpe_state_free(state);
    bpe_model_free(model);
    free(text);
    free(ids);
}

static bool stop_later(void *user)
{
    return !(*(size_t *)user)--;
}

/* Whoever asks to stop does not wait for the end of a text, nor of a piece. */
static void encoding_stops(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    struct bpe_state *state;
    const size_t count = 4000000;
    uint8_t *text = malloc(count);
    uint16_t *ids = malloc(count * sizeof *ids);
    uint64_t written;
    awkward_seed(5);
    make_vocabulary(&v, 1500, false, false);
    v.source.rules = *split_rules_named("cl100k_base");
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    for (int words = 0; words < 2; words++) {
        size_t looks = 10, all = SIZE_MAX;
        for (size_t i = 0; i < count; i++)
            text[i] = words && i % 5 == 0 ? ' ' : (uint8_t)('a' + (i * i / 7) % 13);
        assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
        state->scratch.stop = stop_later;
        state->scratch.user = &looks;
        assert_int_equal(bpe_encode(state, text, count, ids, count, &written, &error), TOKMAP_ERROR_INTERRUPTED);
        state->scratch.user = &all;
        assert_int_equal(bpe_encode(state, text, count, ids, count, &written, &error), TOKMAP_OK);
        assert_true(SIZE_MAX - all > 30); /* it would have looked at least so often */
        bpe_state_free(state);
    }
    bpe_model_free(model);
    free(text);
    free(ids);
}

/* Fills a text with words of random letters: three in four fit a key of the first cache. */
static void random_words(uint8_t *text, size_t count)
{
    for (size_t at = 0; at + 32 < count;) {
        const uint32_t bytes = awkward_below(4) ? 5 + awkward_below(6) : 16 + awkward_below(14);
        text[at++] = ' ';
        for (uint32_t i = 0; i < bytes; i++)
            text[at++] = (uint8_t)('a' + awkward_below(26));
        memset(text + at, ' ', at + 32 < count ? 32 : count - at);
    }
}

/* More different pieces than the caches hold: entries are lost, but the ids stay right. */
static void full_caches(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    struct bpe_state *state;
    static uint8_t text[1 << 20];
    static uint16_t ids[1 << 20];
    uint64_t again = 0; /* pieces that were merged although the caches have just got them */
    awkward_seed(6);
    make_vocabulary(&v, 600, false, false);
    v.source.rules = *split_rules_named("gpt2");
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
    for (uint32_t round = 0; round < (uint32_t)awkward_rounds(24); round++) {
        uint64_t written;
        random_words(text, sizeof text);
        for (int pass = 0; pass < 2; pass++) /* in the second the words are not strange any more, so they are kept */
            assert_int_equal(bpe_encode(state, text, sizeof text, ids, sizeof text, &written, &error), TOKMAP_OK);
        size_t back = 0;
        for (uint64_t i = 0; i < written; i++) {
            const uint32_t bytes = model->offsets[ids[i] + 1] - model->offsets[ids[i]];
            assert_true(back + bytes <= sizeof text &&
                        !memcmp(text + back, model->bytes + model->offsets[ids[i]], bytes));
            back += bytes;
        }
        assert_int_equal(back, sizeof text);
    }
    for (int i = 0; i < 50; i++) {
        const size_t at = awkward_below(sizeof text - 400);
        uint64_t written;
        check_encode(state, &v, text + at, 400);
        check_encode(state, &v, text + at, 400); /* kept now, even if they were strange */
        const uint64_t before = state->counts.merged;
        assert_int_equal(bpe_encode(state, text + at, 400, ids, 400, &written, &error), TOKMAP_OK);
        again += state->counts.merged - before;
    }
    assert_true(again < 50); /* of 13 pieces a time, most of which have too many ids for the first cache */
    bpe_state_free(state);
    bpe_model_free(model);
}

static bool is_seed_of(const struct bpe_bucket *bucket, uint32_t way, bool wide)
{
    const uint64_t *value = bucket->values[way];
    return wide ? value[0] >> 28 == (16 * (value[0] & 0x0FFFFFFF) | 1)
                : value[1] >> 48 == 1 && value[0] >> 16 == (value[0] & 0xFFFF);
}

/* Seeds of one id have it twice. */
static void check_seeds(const struct bpe_state *state)
{
    const bool wide = state->model->wide;
    uint32_t seeds = 0;
    for (uint32_t i = 0; i < 2 * (state->bucket_mask + 1); i++) {
        const struct bpe_bucket *bucket = &state->buckets[i / 2];
        const uint64_t *value = bucket->values[i % 2];
        const bool one = (wide ? value[0] >> 28 & 15 : value[1] >> 48) == 1;
        assert_true(!one || (bucket->keys[i % 2].high && is_seed_of(bucket, i % 2, wide)));
        seeds += one;
    }
    assert_true(seeds >= 256 && seeds <= state->model->seed_count);
}

/* Fills the first `buckets` of the first cache with seeds that no text has. */
static void fill_with_seeds(struct bpe_state *state, uint32_t buckets)
{
    const bool wide = state->model->wide;
    for (uint32_t i = 0; i < 2 * buckets; i++) {
        const uint64_t id = 1 + awkward_below(state->model->vocabulary - 1);
        struct bpe_bucket *bucket = &state->buckets[i / 2];
        bucket->keys[i % 2] = (struct bpe_key){i, (uint64_t)9 << 56 | 255};
        bucket->values[i % 2][0] = wide ? id << 32 | 1u << 28 | id : id << 16 | id;
        bucket->values[i % 2][1] = wide ? 0 : (uint64_t)1 << 48;
    }
}

/* Makes a text of words of which no bucket has more than two. Returns its bytes. */
static size_t scattered_words(const struct bpe_state *state, uint8_t *text, size_t room)
{
    uint8_t used[1 << 8] = {0};
    size_t count = 0;
    for (uint32_t i = awkward_below(9); i < 26 * 26 * 26 && count + 4 <= room; i += 1 + awkward_below(17)) {
        const uint8_t word[] = {' ', (uint8_t)('a' + i % 26), (uint8_t)('a' + i / 26 % 26), (uint8_t)('a' + i / 676)};
        const uint32_t bucket = bpe_bucket_of(state, bpe_key_of(word, sizeof word));
        if (used[bucket] == 2 || bpe_unreached(state->model, word, sizeof word) != BPE_NONE)
            continue;
        used[bucket]++;
        memcpy(text + count, word, sizeof word);
        count += sizeof word;
    }
    return count;
}

/* Exchanges one of two entries of a bucket with a seed of the neighboring one, wherever that is possible. Returns how
 * many. */
static uint32_t push_out(struct bpe_state *state)
{
    const bool wide = state->model->wide;
    uint32_t pushed = 0;
    for (uint32_t i = 0; i <= state->bucket_mask; i += 2) {
        struct bpe_bucket *home = &state->buckets[i], *beside = home + 1;
        const uint32_t seed = is_seed_of(beside, 1, wide), way = i / 2 & 1;
        if (is_seed_of(home, 0, wide) || is_seed_of(home, 1, wide) || !is_seed_of(beside, seed, wide))
            continue;
        const struct bpe_bucket was = *home;
        home->keys[way] = beside->keys[seed];
        memcpy(home->values[way], beside->values[seed], sizeof was.values[0]);
        beside->keys[seed] = was.keys[way];
        memcpy(beside->values[seed], was.values[way], sizeof was.values[0]);
        pushed++;
    }
    return pushed;
}

/* What a text brings takes the places of seeds: if no bucket has more than two of its pieces, each is found in its own
 * bucket from then on, and comes back there if it was in the neighboring one. */
static void seeds_give_way(void **unused)
{
    enum { BUCKETS = 256 };
    static struct vocabulary v;
    struct tokmap_error error;
    awkward_seed(19);
    table_key_fix(19); /* the words are similar, and some keys give many of them the same bucket */
    for (int round = 0; round < 8; round++) {
        struct bpe_model *model;
        struct bpe_state *state;
        uint8_t text[4 * 2 * BUCKETS];
        uint32_t ids[sizeof text];
        uint64_t written;
        make_vocabulary(&v, 600, round & 1, round & 2);
        v.source.rules = *split_rules_named("gpt2");
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        assert_int_equal(bpe_state_new(&state, model, round & 4 ? cpu_variant_best() : CPU_SCALAR, &error), TOKMAP_OK);
        check_seeds(state);
        state->bucket_mask = BUCKETS - 1;
        fill_with_seeds(state, BUCKETS);
        const size_t count = scattered_words(state, text, sizeof text / 2);
        assert_int_equal(count, sizeof text / 2);
        assert_int_equal(bpe_encode(state, text, count, ids, count, &written, &error), TOKMAP_OK);
        const struct bpe_counts before = state->counts;
        assert_int_equal(before.merged, count / 4);
        check_encode(state, &v, text, count);
        assert_int_equal(state->counts.merged, before.merged);
        assert_int_equal(state->counts.missed, before.missed);
        const uint32_t pushed = push_out(state);
        assert_true(pushed > 2);
        for (int pass = 0; pass < 2; pass++)
            check_encode(state, &v, text, count);
        assert_int_equal(state->counts.merged, before.merged);
        assert_int_equal(state->counts.missed, before.missed + pushed);
        bpe_state_free(state);
        bpe_model_free(model);
    }
    table_key_fix(0);
}

/* A seed that is found in the neighboring bucket is like other entries from then on, whether it is looked for at once
 * or, as where most pieces are new, when pieces that wait are merged. */
static void a_seed_that_is_used_stays(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    awkward_seed(29);
    for (uint32_t round = 0; round < 4; round++) {
        const bool wide = round & 1, waits = round & 2;
        struct bpe_model *model;
        struct bpe_state *state;
        uint32_t ids[1];
        uint64_t written;
        make_vocabulary(&v, 600, false, wide);
        v.source.rules = *split_rules_named("gpt2");
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
        const uint8_t letter = model->byte_ids['x'] ? 'x' : 'y'; /* an entry of id 0 looks like a seed in any case */
        const struct bpe_key key = bpe_key_of(&letter, 1);
        const uint32_t at = bpe_bucket_of(state, key);
        struct bpe_bucket *home = &state->buckets[at], *beside = &state->buckets[at ^ 1];
        const uint32_t way = home->keys[1].low == key.low && home->keys[1].high == key.high;
        assert_true(home->keys[way].low == key.low && home->keys[way].high == key.high);
        assert_true(is_seed_of(home, way, wide));
        beside->keys[0] = key;
        memcpy(beside->values[0], home->values[way], sizeof beside->values[0]);
        for (uint32_t i = 0; i < 2; i++) { /* entries that the text does not have */
            home->keys[i] = (struct bpe_key){i, (uint64_t)9 << 56 | 255};
            home->values[i][0] = wide ? 1u << 28 | 5 : 5;
            home->values[i][1] = wide ? 0 : (uint64_t)1 << 48;
        }
        state->victim = 2; /* the entry is not swapped back */
        state->beside_new = waits ? 2 : 0;
        assert_int_equal(bpe_encode(state, &letter, 1, ids, 1, &written, &error), TOKMAP_OK);
        assert_int_equal(state->beside_found, state->merge_many != NULL);
        assert_int_equal(written, 1);
        assert_int_equal(wide ? ids[0] : *(uint16_t *)(void *)ids, model->byte_ids[letter]);
        assert_int_equal(state->counts.merged, 0);
        const bool found = beside->keys[0].low == key.low && beside->keys[0].high == key.high;
        assert_true(found && !is_seed_of(beside, 0, wide));
        bpe_state_free(state);
        bpe_model_free(model);
    }
}

/* Makes a text of long words of which the first `fours` groups of lines get as many as they have lines. */
static size_t crowded_words(const struct bpe_state *state, uint8_t *text, uint32_t fours)
{
    enum { WORD = 20 };
    uint8_t used[16] = {0};
    size_t count = 0;
    while (count < (size_t)WORD * BPE_LONG_WAYS * fours) {
        text[count] = ' ';
        for (uint32_t i = 1; i < WORD; i++)
            text[count + i] = (uint8_t)('a' + awkward_below(26));
        const uint64_t hash = bpe_long_hash(state->seed, text + count, WORD);
        const size_t four = (size_t)(bpe_long_at(state, bpe_long_tag(hash), 0) - state->longs) / BPE_LONG_WAYS;
        if (four < fours && used[four] < BPE_LONG_WAYS) {
            used[four]++;
            count += WORD;
        }
    }
    return count;
}

/* Long pieces are kept while their lines have room. */
static void long_pieces_share_lines(void **unused)
{
    enum { FOURS = 8 };
    static struct vocabulary v;
    struct tokmap_error error;
    awkward_seed(23);
    for (int round = 0; round < 4; round++) {
        struct bpe_model *model;
        struct bpe_state *state;
        uint8_t text[20 * BPE_LONG_WAYS * FOURS];
        uint32_t ids[sizeof text];
        uint64_t written;
        make_vocabulary(&v, 600, false, round & 1);
        v.source.rules = *split_rules_named("gpt2");
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        assert_int_equal(bpe_state_new(&state, model, round & 2 ? cpu_variant_best() : CPU_SCALAR, &error), TOKMAP_OK);
        const size_t count = crowded_words(state, text, FOURS);
        assert_int_equal(bpe_encode(state, text, count, ids, count, &written, &error), TOKMAP_OK);
        assert_int_equal(state->counts.merged, BPE_LONG_WAYS * FOURS);
        check_encode(state, &v, text, count);
        assert_int_equal(state->counts.merged, BPE_LONG_WAYS * FOURS);
        bpe_state_free(state);
        bpe_model_free(model);
    }
}

/* Pieces of a text without repetition are kept when they come up again, and not before. The ids are right each time:
 * merged, merged and kept, and found, some of them in the neighbor of their bucket. */
static void strange_pieces(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    struct bpe_state *state;
    static uint8_t text[1 << 17];
    static uint16_t first[1 << 17], ids[1 << 17];
    uint64_t counts[4] = {0}, written[2];
    awkward_seed(7);
    make_vocabulary(&v, 600, false, false);
    v.source.rules = *split_rules_named("gpt2");
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
    state->bucket_mask = 4095; /* a small cache, so that many entries are in neighbors */
    random_words(text, sizeof text);
    for (int pass = 0; pass < 4; pass++) {
        assert_int_equal(
            bpe_encode(state, text, sizeof text, pass ? ids : first, sizeof text, &written[pass != 0], &error),
            TOKMAP_OK);
        assert_int_equal(written[pass != 0], written[0]);
        assert_memory_equal(pass ? ids : first, first, written[0] * sizeof *ids);
        counts[pass] = state->counts.merged;
    }
    const uint64_t pieces = state->counts.pieces / 4;
    assert_true(pieces > 6000 && counts[0] > pieces * 9 / 10);
    if (state->merge_many) {
        assert_true(counts[1] - counts[0] > counts[0] / 2); /* hardly any was kept */
        assert_true(counts[3] - counts[2] < counts[0] / 2); /* now most of those are that the small cache holds */
    }
    for (size_t at = 0; at + 400 < sizeof text; at += 4000)
        check_encode(state, &v, text + at, 400);
    bpe_state_free(state);
    bpe_model_free(model);
}

/* Fills a text with words of 63 to 2100 letters, which do not fit a lane, with some shorter and some repeated ones. */
static void long_words(uint8_t *text, size_t count)
{
    size_t word = 0, bytes = 0;
    memset(text, ' ', count);
    for (size_t at = 1; at + 2200 < count; at += bytes + 1) {
        if (bytes && !awkward_below(4)) {
            memcpy(text + at, text + word, bytes);
            continue;
        }
        word = at;
        bytes = awkward_below(8) ? 20 + awkward_below(160) : 63 + awkward_below(2038);
        for (size_t i = 0; i < bytes; i++)
            text[at + i] = (uint8_t)('a' + awkward_below(awkward_below(3) ? 4 : 26));
    }
}

/* The ids of a text with the best variant of the CPU are those of the plainest one, the first time and again. */
static void check_variants(const struct bpe_model *model, const uint8_t *text, size_t count)
{
    uint32_t *ids[2] = {malloc(count * sizeof **ids), malloc(count * sizeof **ids)};
    const size_t width = model->wide ? 4 : 2;
    struct bpe_state *states[2];
    struct tokmap_error error;
    uint64_t written[2] = {0};
    assert_true(ids[0] && ids[1]);
    assert_int_equal(bpe_state_new(&states[0], model, CPU_SCALAR, &error), TOKMAP_OK);
    assert_int_equal(bpe_state_new(&states[1], model, cpu_variant_best(), &error), TOKMAP_OK);
    for (int i = 0; i < 4; i++) {
        const int best = i != 0;
        states[best]->largest = 0;
        assert_int_equal(bpe_encode(states[best], text, count, ids[best], count, &written[best], &error), TOKMAP_OK);
        assert_int_equal(written[best], written[0]);
        assert_memory_equal(ids[best], ids[0], written[0] * width);
        assert_int_equal(states[best]->largest, states[0]->largest);
    }
    if (states[1]->merge_many) /* else this would test nothing */
        assert_int_equal(states[1]->windows[0].count, BPE_LANE_BYTES);
    for (int i = 0; i < 2; i++) {
        bpe_state_free(states[i]);
        free(ids[i]);
    }
}

/* Pieces that are longer than a lane are cut into windows, which are merged together with shorter pieces. */
static void long_pieces(void **unused)
{
    static struct vocabulary v;
    static uint8_t text[1 << 16];
    struct tokmap_error error;
    struct bpe_model *model;
    struct bpe_state *state;
    awkward_seed(9);
    for (int round = 0; round < awkward_rounds(8); round++) {
        make_vocabulary(&v, 600, round & 1, round & 2);
        v.source.rules = *split_rules_named("gpt2");
        assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
        long_words(text, sizeof text);
        check_variants(model, text, sizeof text);
        assert_int_equal(bpe_state_new(&state, model, cpu_variant_best(), &error), TOKMAP_OK);
        for (size_t at = 0; at + 700 < sizeof text; at += 9000)
            check_encode(state, &v, text + at, 700);
        bpe_state_free(state);
        bpe_model_free(model);
    }
}

/* Symbols of two letters as in far_context(): how a word of consecutive symbols divides is decided at its end, so its
 * windows never share a token, and it is merged alone after all. */
static void windows_that_do_not_join(void **unused)
{
    enum { SYMBOLS = 26 * 26 };
    static uint8_t bytes[256 + 6 * SYMBOLS], text[1 << 15];
    static uint32_t offsets[256 + 2 * SYMBOLS + 1];
    static struct bpe_merge merges[2 * SYMBOLS];
    struct bpe_model *model = symbols_model(SYMBOLS, 'A', 'a', 26, bytes, offsets, merges);
    awkward_seed(10);
    memset(text, ' ', sizeof text);
    for (size_t place = 1; place + 2 * SYMBOLS < sizeof text;) {
        const uint32_t first = awkward_below(SYMBOLS - 40), symbols = 32 + awkward_below(SYMBOLS - first - 32);
        memcpy(text + place, bytes + 256 + 2 * first, 2 * symbols);
        place += 2 * symbols + 1;
    }
    check_variants(model, text, sizeof text);
    bpe_model_free(model);
}

/* Merges whose result has another text, missing bytes, and too many ids are refused. */
static void bad_sources(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    awkward_seed(7);
    make_vocabulary(&v, 400, true, false);
    v.source.rules = *split_rules_named("gpt2");
    v.merges[3].result = v.merges[3].left;
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_ERROR_FORMAT);
    assert_null(model);
    v.merges[3].result = v.count;
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_ERROR_FORMAT);
    make_vocabulary(&v, 400, false, false);
    v.bytes[v.offsets[100]] = v.bytes[v.offsets[101]];
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_ERROR_FORMAT);
    v.source.vocabulary = BPE_IDS + 1;
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_ERROR_LIMIT);
}

/* A model inside a larger struct, as SentencePiece has it: clearing it frees what it holds and leaves the struct. */
static void clear_inside_a_struct(void **unused)
{
    static struct vocabulary v;
    struct tokmap_error error;
    struct bpe_model *model;
    struct {
        uint64_t before;
        struct bpe_model head;
        uint64_t after;
    } holder = {.before = 1, .after = 2};
    awkward_seed(9);
    make_vocabulary(&v, 400, true, false);
    v.source.rules = *split_rules_named("gpt2");
    assert_int_equal(bpe_model_build(&model, &v.source, &error), TOKMAP_OK);
    holder.head = *model;
    free(model);
    bpe_model_clear(&holder.head);
    bpe_model_clear(&holder.head); /* nothing is left to free */
    assert_null(holder.head.pairs);
    assert_null(holder.head.bytes);
    assert_int_equal(holder.before + holder.after, 3);
    bpe_model_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_vocabulary),
        cmocka_unit_test(any_order),
        cmocka_unit_test(joins_at_any_place),
        cmocka_unit_test(long_merges),
        cmocka_unit_test(a_merge_makes_a_pair_of_lower_rank),
        cmocka_unit_test(cuts_anywhere_in_a_chunk),
        cmocka_unit_test(far_context),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(full_caches),
        cmocka_unit_test(seeds_give_way),
        cmocka_unit_test(a_seed_that_is_used_stays),
        cmocka_unit_test(long_pieces_share_lines),
        cmocka_unit_test(strange_pieces),
        cmocka_unit_test(long_pieces),
        cmocka_unit_test(windows_that_do_not_join),
        cmocka_unit_test(bad_sources),
        cmocka_unit_test(clear_inside_a_struct),
        cmocka_unit_test(encoding_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
