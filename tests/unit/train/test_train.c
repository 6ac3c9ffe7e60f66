/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_train.c - training has the same result as a naive trainer that follows the definition, for all kinds of text,
 * numbers of threads, and sizes. A trained vocabulary encodes to the same ids by ranks and by merges. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_merge.h"
#include "platform/table_key.h"
#include "pretokenize/pretokenizer.h"
#include "pretokenize/scanner_piece.h"
#include "support/awkward_text.h"
#include "support/made.h"
#include "support/scratch.h"
#include "train/train_corpus.h"
#include "unicode/byte_alphabet.h"

#define TEXT_MOST 24000
#define WORDS_MOST 12000
#define MERGES_MOST 160

/* ---- the naive trainer: counts all pairs again before each merge ---- */

struct word {
    uint32_t *symbols;
    uint32_t count;
    uint64_t times;
};

struct naive {
    struct word words[WORDS_MOST];
    uint32_t word_count;
    struct bpe_merge merges[MERGES_MOST];
    uint32_t merge_count;
    uint8_t tokens[256 + MERGES_MOST][TEXT_MOST];
    uint32_t lengths[256 + MERGES_MOST];
    uint64_t pairs[256 + MERGES_MOST][256 + MERGES_MOST];
    uint64_t pieces;
};

static void naive_add(struct naive *n, const uint8_t *bytes, size_t count)
{
    uint32_t *symbols = malloc(count * sizeof *symbols);
    assert_non_null(symbols);
    for (size_t i = 0; i < count; i++)
        symbols[i] = train_id_of(bytes[i]);
    n->pieces++;
    for (uint32_t w = 0; w < n->word_count; w++)
        if (n->words[w].count == count && !memcmp(n->words[w].symbols, symbols, count * sizeof *symbols)) {
            n->words[w].times++;
            free(symbols);
            return;
        }
    assert_true(n->word_count < WORDS_MOST);
    n->words[n->word_count++] = (struct word){symbols, (uint32_t)count, 1};
}

static void naive_text(struct naive *n, const struct split_rules *rules, const uint8_t *text, size_t count)
{
    for (size_t at = 0; at < count;) {
        const size_t end = scan_piece(rules, text, at, count);
        naive_add(n, text + at, end - at);
        at = end;
    }
}

static bool naive_forbidden(const struct naive *n, const struct train_options *options, uint32_t left, uint32_t right)
{
    for (uint32_t i = 0; i < options->forbidden_count; i++) {
        const struct train_text *forbidden = &options->forbidden[i];
        if (forbidden->count == n->lengths[left] + (uint64_t)n->lengths[right] &&
            !memcmp(forbidden->bytes, n->tokens[left], n->lengths[left]) &&
            !memcmp(forbidden->bytes + n->lengths[left], n->tokens[right], n->lengths[right]))
            return true;
    }
    return false;
}

static void word_merge(struct word *word, const struct bpe_merge *merge)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < word->count; kept++) {
        const bool is = word->symbols[i] == merge->left && i + 1 < word->count && word->symbols[i + 1] == merge->right;
        word->symbols[kept] = is ? merge->result : word->symbols[i];
        i += is ? 2 : 1;
    }
    word->count = kept;
}

static void naive_train(struct naive *n, const struct train_options *options)
{
    for (uint32_t id = 0; id < 256; id++) {
        n->tokens[id][0] = train_byte_of(id);
        n->lengths[id] = 1;
    }
    for (uint32_t made = 256; made < options->tokens; made++) {
        uint64_t most = 0;
        struct bpe_merge merge = {0, 0, made};
        for (uint32_t left = 0; left < made; left++)
            memset(n->pairs[left], 0, made * sizeof n->pairs[left][0]);
        for (uint32_t w = 0; w < n->word_count; w++)
            for (uint32_t i = 0; i + 1 < n->words[w].count; i++)
                n->pairs[n->words[w].symbols[i]][n->words[w].symbols[i + 1]] += n->words[w].times;
        for (uint32_t left = 0; left < made; left++)
            for (uint32_t right = 0; right < made; right++)
                if (n->pairs[left][right] > most && !naive_forbidden(n, options, left, right)) {
                    most = n->pairs[left][right];
                    merge.left = left;
                    merge.right = right;
                }
        if (!most || most < options->min_frequency)
            return;
        n->merges[n->merge_count++] = merge;
        memcpy(n->tokens[made], n->tokens[merge.left], n->lengths[merge.left]);
        memcpy(n->tokens[made] + n->lengths[merge.left], n->tokens[merge.right], n->lengths[merge.right]);
        n->lengths[made] = n->lengths[merge.left] + n->lengths[merge.right];
        for (uint32_t w = 0; w < n->word_count; w++)
            word_merge(&n->words[w], &merge);
    }
}

static uint64_t naive_tokens(const struct naive *n)
{
    uint64_t tokens = 0;
    for (uint32_t w = 0; w < n->word_count; w++)
        tokens += n->words[w].count * n->words[w].times;
    return tokens;
}

static void naive_clear(struct naive *n)
{
    for (uint32_t w = 0; w < n->word_count; w++)
        free(n->words[w].symbols);
    n->word_count = n->merge_count = 0;
    n->pieces = 0;
}

static struct naive naive;

/* ---- helpers ---- */

static uint8_t text[TEXT_MOST];

/* Makes text of one of several kinds: arbitrary text; three letters without a space, which is one piece; runs of one
 * letter; or words of a few letters, with many equally frequent pairs. */
static size_t text_make(void)
{
    size_t count = 1 + awkward_below(awkward_below(4) ? 600 : 6000);
    const uint32_t kind = awkward_below(8);
    awkward_text(text, count);
    if (kind < 3)
        for (size_t i = 0; i < count; i++)
            text[i] = kind == 0               ? (uint8_t)('a' + awkward_below(3))
                      : kind == 1             ? (awkward_below(40) ? 'a' : 'b')
                      : awkward_below(4) == 0 ? ' '
                                              : (uint8_t)('a' + awkward_below(5));
    return count;
}

static const struct split_rules *rules_any(void)
{
    uint32_t count = 0;
    while (split_rules_names()[count])
        count++;
    return split_rules_named(split_rules_names()[awkward_below(count)]);
}

static void count_text(struct train_counter *counter, const uint8_t *bytes, size_t count)
{
    struct tokmap_error error;
    assert_int_equal(train_counter_text(counter, bytes, count, &error), TOKMAP_OK);
}

/* Checks that the merges, tokens and totals are the same. */
static void compare(const struct naive *n, const struct train_vocabulary *v)
{
    assert_int_equal(v->count, 256 + n->merge_count);
    for (uint32_t i = 0; i < n->merge_count; i++) {
        assert_int_equal(v->merges[i].left, n->merges[i].left);
        assert_int_equal(v->merges[i].right, n->merges[i].right);
        assert_int_equal(v->merges[i].result, n->merges[i].result);
    }
    for (uint32_t id = 0; id < v->count; id++) {
        assert_int_equal(v->tokens[id].count, n->lengths[id]);
        assert_memory_equal(v->tokens[id].bytes, n->tokens[id], n->lengths[id]);
    }
    assert_int_equal(v->trained_tokens, naive_tokens(n));
}

/* ---- tests ---- */

static void alphabet_is_the_usual_one(void **state)
{
    uint8_t bytes[8];
    uint64_t count;
    for (uint32_t id = 0; id < 256; id++)
        assert_int_equal(train_id_of(train_byte_of(id)), id);
    assert_int_equal(train_id_of('!'), 0);
    assert_int_equal(train_id_of('~'), 93);
    assert_int_equal(train_id_of(0xA1), 94);
    assert_int_equal(train_id_of(0xFF), 187);
    assert_int_equal(train_id_of(0), 188);
    assert_int_equal(train_id_of('\n'), 198);
    assert_int_equal(train_id_of(' '), 220);
    assert_int_equal(train_id_of(0xAD), 255);
    for (uint32_t id = 1; id < 256; id++)
        assert_true(byte_character(train_byte_of(id - 1)) < byte_character(train_byte_of(id)));
    const struct train_text spelt = {(const uint8_t *)"\xC4\xA0to", 4}, not_spelt = {(const uint8_t *)" to", 3};
    assert_true(train_decode_spelling(&spelt, bytes, &count));
    assert_int_equal(count, 3);
    assert_memory_equal(bytes, " to", 3);
    assert_false(train_decode_spelling(&not_spelt, bytes, &count));
}

static void merges_are_the_definition(void **state)
{
    for (uint32_t round = 0; round < (uint32_t)awkward_rounds(400); round++) {
        struct train_budget budget = {UINT64_MAX, 0};
        struct train_pieces *pieces;
        struct train_counter *counters[3];
        struct train_vocabulary vocabulary;
        struct train_totals totals;
        struct tokmap_error error;
        uint64_t bytes = 0;
        const struct split_rules *rules = rules_any();
        awkward_seed(round + 1000);
        assert_int_equal(train_pieces_new(&pieces, &budget, &error), TOKMAP_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(train_counter_new(&counters[i], pieces, rules, &error), TOKMAP_OK);
        for (uint32_t document = awkward_below(4) + 1; document; document--) {
            const size_t count = text_make();
            naive_text(&naive, rules, text, count);
            count_text(counters[awkward_below(3)], text, count);
            bytes += count;
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(train_counter_finish(counters[i], &error), TOKMAP_OK);
            train_counter_free(counters[i]);
        }
        train_pieces_totals(pieces, &totals);
        assert_int_equal(totals.pieces, naive.pieces);
        assert_int_equal(totals.text, bytes);
        static const uint8_t bars[] = "aabab tthe";
        struct train_text forbidden[3];
        struct train_options options = {.tokens = 256 + awkward_below(MERGES_MOST + 1),
                                        .min_frequency = awkward_below(3) ? awkward_below(2) : awkward_below(20),
                                        .forbidden = forbidden,
                                        .forbidden_count = awkward_below(2) ? 0 : awkward_below(4)};
        for (uint32_t i = 0; i < 3; i++)
            forbidden[i] = (struct train_text){bars + awkward_below(7), 2 + awkward_below(2)};
        naive_train(&naive, &options);
        assert_int_equal(train_merges(&vocabulary, pieces, &budget, &options, &error), TOKMAP_OK);
        compare(&naive, &vocabulary);
        train_vocabulary_free(&vocabulary);
        train_pieces_free(pieces);
        assert_int_equal(budget.used, 0);
        naive_clear(&naive);
    }
}

/* More distinct short and long pieces than a thread's table has slots for, so that it is flushed several times. */
static uint64_t seen[200000];
static void each_piece(void *user, const uint8_t *bytes, uint64_t count, uint64_t times)
{
    uint32_t number = 0;
    const uint64_t from = count > 15 ? count - 5 : 1;
    assert_int_equal(count, count > 15 ? 30 : 6);
    assert_int_equal(bytes[0], ' ');
    for (uint64_t i = from; i < count; i++)
        number = number * 26 + (bytes[i] - 'a');
    assert_true(number < 200000);
    seen[number] += times;
    ++*(uint64_t *)user;
}

static void tables_are_flushed_and_grow(void **state)
{
    struct train_budget budget = {UINT64_MAX, 0};
    struct train_pieces *pieces;
    struct train_counter *counters[2];
    struct tokmap_error error;
    uint64_t different = 0;
    const struct split_rules *rules = split_rules_named("gpt2");
    memset(seen, 0, sizeof seen);
    assert_int_equal(train_pieces_new(&pieces, &budget, &error), TOKMAP_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(train_counter_new(&counters[i], pieces, rules, &error), TOKMAP_OK);
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t i = 0; i < 200000; i++) {
            char word[32] = " ";
            const uint32_t bytes = i % 5 ? 6 : 30;
            memset(word + 1, 'z', sizeof word - 1);
            for (uint32_t k = 0, rest = i; k < 5; k++, rest /= 26)
                word[bytes - 1 - k] = (char)('a' + rest % 26);
            if (pass <= i % 3)
                count_text(counters[(i + pass) % 2], (const uint8_t *)word, bytes);
        }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(train_counter_finish(counters[i], &error), TOKMAP_OK);
        train_counter_free(counters[i]);
    }
    train_pieces_drain(pieces, each_piece, &different);
    assert_int_equal(different, 200000);
    for (uint32_t i = 0; i < 200000; i++)
        assert_int_equal(seen[i], i % 3 + 1);
    train_pieces_free(pieces);
    assert_int_equal(budget.used, 0);
}

/* Counts words of a space and 7 letters. Returns the slots that were passed over. colliding: only words whose hash
 * would begin with eight zero bits if its key were the constants below, or, with fixed_key, the key that the tables
 * have. They are all looked for from the first 256 slots of a thread's table on. */
static uint64_t passed_over(uint32_t words, bool colliding, bool fixed_key)
{
    struct train_budget budget = {UINT64_MAX, 0};
    struct train_pieces *pieces;
    struct train_counter *counter;
    struct train_totals totals;
    struct tokmap_error error;
    const struct table_key constants = {0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u};
    uint64_t state = 1;
    table_key_fix(fixed_key ? 5 : 0);
    const struct table_key key = table_key_new();
    table_key_fix(fixed_key ? 5 : 0);
    assert_int_equal(train_pieces_new(&pieces, &budget, &error), TOKMAP_OK);
    assert_int_equal(train_counter_new(&counter, pieces, split_rules_named("gpt2"), &error), TOKMAP_OK);
    for (uint32_t made = 0; made < words;) {
        char word[9] = " ";
        uint64_t low;
        state = state * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t i = 1, rest = state >> 16; i < 8; i++, rest /= 26)
            word[i] = (char)('a' + rest % 26);
        memcpy(&low, word, 8);
        if (colliding && table_mix(fixed_key ? key : constants, low, (uint64_t)8 << 56) >> 56)
            continue;
        count_text(counter, (const uint8_t *)word, 8);
        made++;
    }
    assert_int_equal(train_counter_finish(counter, &error), TOKMAP_OK);
    train_counter_free(counter);
    train_pieces_totals(pieces, &totals);
    assert_in_range(totals.distinct, words - 100, words);
    train_pieces_free(pieces);
    table_key_fix(0);
    return totals.passed;
}

/* Who does not know the key cannot choose words that collide. The test counts steps and measures no time. */
static void colliding_words_cost_no_more(void **state)
{
    const uint32_t words = 20000;
    const uint64_t ordinary = passed_over(words, false, false);
    (void)state;
    assert_in_range(ordinary, 0, 100 * words);
    assert_in_range(passed_over(words, true, false), 0, 4 * ordinary);
    assert_in_range(passed_over(words, true, true), words * (uint64_t)words / 4, UINT64_MAX); /* who knows it can */
}

/* A rank file contains the tokens but not the merges. For a trained vocabulary, the tokens determine the merges. */
static void ranks_and_merges_give_the_same_ids(void **state)
{
    static uint32_t by_ranks[TEXT_MOST], by_merges[TEXT_MOST];
    for (uint32_t round = 0; round < (uint32_t)awkward_rounds(60); round++) {
        struct train_budget budget = {UINT64_MAX, 0};
        struct train_pieces *pieces;
        struct train_counter *counter;
        struct train_vocabulary v;
        struct tokmap_error error;
        struct bpe_model *ranks, *merges;
        struct bpe_scratch scratch = {.memory = NULL};
        awkward_seed(round + 9000);
        const struct split_rules *rules = rules_any();
        assert_int_equal(train_pieces_new(&pieces, &budget, &error), TOKMAP_OK);
        assert_int_equal(train_counter_new(&counter, pieces, rules, &error), TOKMAP_OK);
        for (int i = 0; i < 5; i++)
            count_text(counter, text, text_make());
        assert_int_equal(train_counter_finish(counter, &error), TOKMAP_OK);
        const struct train_options options = {.tokens = 256 + awkward_below(2000)};
        assert_int_equal(train_merges(&v, pieces, &budget, &options, &error), TOKMAP_OK);
        uint32_t *offsets = calloc(v.count + 1, sizeof *offsets);
        assert_non_null(offsets);
        for (uint32_t id = 0; id < v.count; id++)
            offsets[id + 1] = offsets[id] + (uint32_t)v.tokens[id].count;
        uint8_t *bytes = malloc(offsets[v.count]);
        assert_non_null(bytes);
        for (uint32_t id = 0; id < v.count; id++)
            memcpy(bytes + offsets[id], v.tokens[id].bytes, v.tokens[id].count);
        struct bpe_source source = {
            .path = "test", .vocabulary = v.count, .bytes = bytes, .offsets = offsets, .whole = true, .rules = *rules};
        assert_int_equal(bpe_model_build(&ranks, &source, &error), TOKMAP_OK);
        assert_int_equal(ranks->unreached_count, 0);
        source.merges = v.merges;
        source.merge_count = v.count - 256;
        source.whole = false;
        if (source.merge_count) {
            assert_int_equal(bpe_model_build(&merges, &source, &error), TOKMAP_OK);
            for (int i = 0; i < 20; i++) {
                const size_t count = text_make();
                const size_t a = bpe_merge(ranks, &scratch, text, count, by_ranks);
                assert_int_equal(bpe_merge(merges, &scratch, text, count, by_merges), a);
                assert_memory_equal(by_ranks, by_merges, a * sizeof *by_ranks);
            }
            bpe_model_free(merges);
        }
        bpe_model_free(ranks);
        free(scratch.memory);
        free(bytes);
        free(offsets);
        train_vocabulary_free(&v);
        train_counter_free(counter);
        train_pieces_free(pieces);
        assert_int_equal(budget.used, 0);
    }
}

/* A piece of a million equal letters, and one of a million random letters, take no longer than other text. The
 * result is known for the first: a token for every power of two. */
static void long_pieces_are_merged(void **state)
{
    const size_t count = 1000000;
    uint8_t *long_text = malloc(count);
    assert_non_null(long_text);
    for (int kind = 0; kind < 2; kind++) {
        struct train_budget budget = {UINT64_MAX, 0};
        struct train_pieces *pieces;
        struct train_counter *counter;
        struct train_vocabulary v;
        struct tokmap_error error;
        awkward_seed(5);
        for (size_t i = 0; i < count; i++)
            long_text[i] = kind ? (uint8_t)('a' + awkward_below(20)) : 'a';
        assert_int_equal(train_pieces_new(&pieces, &budget, &error), TOKMAP_OK);
        assert_int_equal(train_counter_new(&counter, pieces, split_rules_named("cl100k_base"), &error), TOKMAP_OK);
        count_text(counter, long_text, count);
        assert_int_equal(train_counter_finish(counter, &error), TOKMAP_OK);
        const struct train_options options = {.tokens = 8192};
        assert_int_equal(train_merges(&v, pieces, &budget, &options, &error), TOKMAP_OK);
        if (kind == 0) {
            for (uint32_t i = 0; i < 19; i++)
                assert_int_equal(v.tokens[256 + i].count, (uint64_t)2 << i);
            assert_int_equal(v.trained_tokens, 1); /* in the end the remaining tokens of the million merge, too */
        } else {
            assert_int_equal(v.count, 8192);
        }
        train_vocabulary_free(&v);
        train_counter_free(counter);
        train_pieces_free(pieces);
        assert_int_equal(budget.used, 0);
    }
    free(long_text);
}

/* ---- with files ---- */

/* Nor on the keys of hash tables. */
static void files_do_not_depend_on_threads(void **state)
{
    static const struct train_text special = {(const uint8_t *)"<|end|>", 7};
    char folder[512], inputs[12][640], prefix[700];
    const char *operands[12];
    struct train_corpus_result result;
    struct tokmap_error error;
    size_t first_bytes = 0;
    char *first = NULL;
    scratch_make(folder);
    awkward_seed(77);
    for (uint32_t i = 0; i < 12; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "in%02u.txt", i);
        file_write(in_folder(folder, name), text, text_make());
        (void)snprintf(inputs[i], sizeof inputs[i], "%s/%s", folder, name);
        operands[i] = inputs[i];
    }
    struct train_corpus_options options = {
        .prefix = prefix,
        .vocabulary = 600,
        .memory = (uint64_t)1 << 30,
        .settings = {"o200k_base", &special, 1},
        .corpus = {.format = CORPUS_TEXT, .field = "text", .record_limit = 1 << 20, .document_limit = 1 << 20}};
    for (uint32_t round = 1; round <= 12; round++) {
        const uint32_t threads = round % 4 * 2 + 1;
        size_t bytes;
        (void)snprintf(prefix, sizeof prefix, "%s/out%u", folder, threads);
        table_key_fix(round);
        options.threads = threads;
        options.replace = round > 4;
        assert_int_equal(train_corpus(&options, operands, 12, &result, &error), TOKMAP_OK);
        char name[32];
        (void)snprintf(name, sizeof name, "out%u.json", threads);
        char *content = file_read(in_folder(folder, name), &bytes);
        assert_non_null(content);
        if (first) {
            assert_int_equal(bytes, first_bytes);
            assert_memory_equal(content, first, bytes);
            free(content);
        } else {
            first = content;
            first_bytes = bytes;
        }
        assert_int_equal(result.counts.documents, 12);
    }
    table_key_fix(0);
    options.threads = 7;
    options.replace = false;
    (void)snprintf(prefix, sizeof prefix, "%s/out7", folder);
    /* Existing files are kept, or replaced with options.replace; an output that is an input is refused. */
    assert_int_equal(train_corpus(&options, operands, 12, &result, &error), TOKMAP_ERROR_EXISTS);
    options.replace = true;
    const char *all[] = {folder};
    assert_int_equal(train_corpus(&options, all, 1, &result, &error), TOKMAP_ERROR_ARGUMENT);
    options.settings.special_count = 0;
    assert_int_equal(train_corpus(&options, operands, 12, &result, &error), TOKMAP_OK);
    assert_false(file_exists(in_folder(folder, "out7.specials.json")));
    /* Any number of threads reports the first error in the order of the input, and leaves no file. */
    file_write(in_folder(folder, "in05.txt"), "a\xFF", 2);
    file_write(in_folder(folder, "in09.txt"), "a\xFE", 2);
    (void)snprintf(prefix, sizeof prefix, "%s/none", folder);
    for (options.threads = 1; options.threads <= 4; options.threads++) {
        assert_int_equal(train_corpus(&options, operands, 12, &result, &error), TOKMAP_ERROR_ENCODING);
        assert_non_null(strstr(error.path, "in05.txt"));
        assert_false(file_exists(in_folder(folder, "none.json")));
        assert_false(file_exists(in_folder(folder, "none.json.partial")));
        assert_false(file_exists(in_folder(folder, "none.tiktoken.partial")));
    }
    /* Too small a memory limit is an error that names the option. */
    options.memory = 1 << 20;
    options.corpus.skip = true;
    assert_int_equal(train_corpus(&options, operands, 12, &result, &error), TOKMAP_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "--max-memory"));
    assert_false(file_exists(in_folder(folder, "none.json.partial")));
    free(first);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alphabet_is_the_usual_one),      cmocka_unit_test(merges_are_the_definition),
        cmocka_unit_test(tables_are_flushed_and_grow),    cmocka_unit_test(ranks_and_merges_give_the_same_ids),
        cmocka_unit_test(colliding_words_cost_no_more),   cmocka_unit_test(long_pieces_are_merged),
        cmocka_unit_test(files_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
