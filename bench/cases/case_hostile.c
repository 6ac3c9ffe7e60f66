/* SPDX-License-Identifier: MIT */
/*
 * case_hostile.c - the work that hostile input costs for each of its bytes, counted and not timed, for an input and for
 * one of the same kind with four times as many bytes; or for an ordinary input and a hostile one of the same size.
 *
 * Work that is linear in the input has the ratio 1, work that is quadratic has the ratio 4. The case fails if a ratio
 * is more than RATIO_MOST. What is counted is the same on every machine, because keys of tables follow from a seed.
 *     Example: 4,096 texts of 16 bytes that all have one hash. In a table without a key, each is found after all texts
 *     before it: 2,048 slots for each text, so 128 for each byte; with 16,384 texts 512 for each byte, which is the
 *     ratio 4. With a key a text costs one or two slots, however many texts there are.
 */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_model.h"
#include "bpe/text_places.h"
#include "cli/cli.h"
#include "engine/added_tokens.h"
#include "platform/table_key.h"
#include "pretokenize/regex_match.h"
#include "train/train_pieces.h"
#include "vocabulary/text_table.h"

#define RATIO_MOST 2.0
#define TEXT_BYTES 16
#define KEY_SEED 1
#define WORD_BYTES 8 /* a space and 7 letters */
#define PAIR_BYTES 8 /* two ids, which take at least that in a file */
#define SIDE_MOST 256
#define IDS_FROM 300
#define IDS_TO (BPE_IDS / 4)

/* Costs of one input. */
struct cost {
    uint64_t work;  /* counted steps */
    uint64_t bytes; /* of the input; 0: this build cannot measure it */
};

/* ---- texts whose hashes collide ---- */

/* Writes `count` texts that differ in their first half. The hash of a text is a product of the second half and the rest
 * (table_hash()), so whoever knows the key chooses a second half with which one factor is 0, and then all texts have
 * the hash 0. One half of the texts is made for a key that another table has, the other half for a table without a key.
 */
static uint8_t *texts_make(struct bench *bench, size_t count)
{
    uint8_t *texts = bench_new(bench, count, TEXT_BYTES);
    table_key_fix(KEY_SEED);
    const struct table_key known = table_key_new();
    for (size_t i = 0; i < count; i++) {
        const uint64_t halves[2] = {(i + 1) * 0x2545F4914F6CDD1Du, i % 2 ? known.low : 0};
        memcpy(texts + i * TEXT_BYTES, halves, TEXT_BYTES);
    }
    return texts;
}

/* While a vocabulary's file is read. */
static struct cost text_table_cost(struct bench *bench, size_t size)
{
    struct text_table table = {.count = 0};
    uint8_t *texts = texts_make(bench, size);
    for (size_t i = 0; i < size; i++)
        if (text_table_add(&table, texts + i * TEXT_BYTES, TEXT_BYTES, (uint32_t)i) != TEXT_ADDED)
            bench_no_memory(bench);
    const struct cost cost = {table.passed + size, size * TEXT_BYTES};
    text_table_free(&table);
    free(texts);
    return cost;
}

/* While a model is built. */
static struct cost text_places_cost(struct bench *bench, size_t size)
{
    struct text_places table = {.places = NULL};
    uint8_t *texts = texts_make(bench, size);
    uint32_t *offsets = bench_new(bench, size + 1, sizeof *offsets);
    if (!text_places_new(&table, size))
        bench_no_memory(bench);
    for (size_t i = 0; i <= size; i++)
        offsets[i] = (uint32_t)(i * TEXT_BYTES);
    for (size_t i = 0; i < size; i++)
        (void)text_places_add(&table, texts, offsets, (uint32_t)i);
    const struct cost cost = {table.passed + size, size * TEXT_BYTES};
    text_places_free(&table);
    free(offsets);
    free(texts);
    return cost;
}

/* ---- words that collide ---- */

/* Makes the next word; if words collide, one whose hash would begin with eight zero bits if the table had the known
 * key. */
static void word_next(uint8_t word[WORD_BYTES], uint64_t *state, struct table_key known, bool collide)
{
    uint64_t low;
    do {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        word[0] = ' ';
        for (uint64_t i = 1, rest = *state >> 16; i < WORD_BYTES; i++, rest /= 26)
            word[i] = (uint8_t)('a' + rest % 26);
        memcpy(&low, word, sizeof low);
    } while (collide && table_mix(known, low, (uint64_t)WORD_BYTES << 56) >> 56);
}

static struct cost words_cost(struct bench *bench, size_t size, bool collide)
{
    struct train_budget budget = {UINT64_MAX, 0};
    struct train_pieces *pieces = NULL;
    struct train_counter *counter = NULL;
    struct train_totals totals = {.passed = 0};
    uint64_t state = 1;
    uint8_t word[WORD_BYTES];
    table_key_fix(KEY_SEED);
    const struct table_key known = table_key_new();
    bench_check(bench, train_pieces_new(&pieces, &budget, &bench->error));
    bench_check(bench, train_counter_new(&counter, pieces, split_rules_named("gpt2"), &bench->error));
    for (size_t i = 0; i < size; i++) {
        word_next(word, &state, known, collide);
        bench_check(bench, train_counter_text(counter, word, sizeof word, &bench->error));
    }
    bench_check(bench, train_counter_finish(counter, &bench->error));
    train_counter_free(counter);
    train_pieces_totals(pieces, &totals);
    train_pieces_free(pieces);
    return (struct cost){totals.passed + size, size * WORD_BYTES};
}

/* While a vocabulary is trained. The table of a thread has a fixed size, so how full it is decides about the work, and
 * colliding words are compared with as many ordinary ones. */
static struct cost train_words_cost(struct bench *bench, size_t size)
{
    return words_cost(bench, size, true);
}

static struct cost ordinary_words_cost(struct bench *bench, size_t size)
{
    return words_cost(bench, size, false);
}

/* ---- pairs that collide ---- */

struct choice {
    uint64_t product;
    uint32_t id;
};

static int by_product(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;
    return left->product < right->product ? -1 : left->product > right->product;
}

/* Chooses the ids whose product with the factor of a table's hash is smallest, so that they select neighboring slots,
 * and their sums do, too. shift: the place of the id in the key of a pair. */
static void ids_choose(struct bench *bench, uint32_t *ids, size_t count, uint32_t shift, uint64_t factor)
{
    struct choice *choices = bench_new(bench, IDS_TO - IDS_FROM, sizeof *choices);
    for (uint32_t id = IDS_FROM; id < IDS_TO; id++)
        choices[id - IDS_FROM] = (struct choice){((uint64_t)id << shift) * factor, id};
    qsort(choices, IDS_TO - IDS_FROM, sizeof *choices, by_product);
    for (size_t i = 0; i < count; i++)
        ids[i] = choices[i].id;
    free(choices);
}

/* Measures all pairs of `size` left and `size` right ids, made for the first key of the table that they are added
 * to. */
static struct cost pairs_cost(struct bench *bench, size_t size)
{
    struct bpe_model model = {.pairs = NULL};
    uint32_t left[SIDE_MOST], right[SIDE_MOST];
    const size_t pairs = size * size;
    table_key_fix(KEY_SEED);
    const uint64_t known = table_key_new().low | 1;
    table_key_fix(KEY_SEED);
    ids_choose(bench, left, size, 21, known);
    ids_choose(bench, right, size, 0, known);
    if (!bpe_pairs_new(&model, 2 * pairs))
        bench_no_memory(bench);
    uint64_t work = pairs, factor = model.pair_factor;
    for (uint32_t i = 0; i < pairs; i++) {
        uint64_t before = model.pair_passed;
        (void)bpe_pair_add(&model, left[i / size], right[i % size], i);
        if (factor != model.pair_factor) { /* another key was drawn, and all pairs were added again */
            factor = model.pair_factor;
            before = 0;
            work += model.pair_count;
        }
        work += model.pair_passed - before;
    }
    bpe_pairs_free(&model);
    return (struct cost){work, pairs * PAIR_BYTES};
}

/* ---- added tokens ---- */

static struct added_token token_of(const char *text, size_t bytes, uint32_t id)
{
    return (struct added_token){.text = (const uint8_t *)text,
                                .match = (const uint8_t *)text,
                                .bytes = (uint32_t)bytes,
                                .match_bytes = (uint32_t)bytes,
                                .id = id};
}

/* Splits a text at the tokens. */
static struct cost split_cost(struct bench *bench, const struct added_token *tokens, size_t count, const char *text,
                              size_t bytes)
{
    struct added_tokens *added;
    struct added_split split;
    struct added_part part;
    bench_check(bench, added_tokens_new(&added, tokens, count, NULL, &bench->error));
    added_split_begin(&split, added, ADDED_RAW, true, (const uint8_t *)text, bytes);
    while (added_split_next(&split, &part))
        continue;
    const struct cost cost = {split.search.steps, bytes};
    bench_check(bench, added_split_end(&split, &bench->error));
    added_tokens_free(added);
    return cost;
}

/* Measures a text of one letter, which at each place looks like a long token up to its last byte. both: the letter is a
 * token, too, so that the search starts again at each place. */
static struct cost letters_cost(struct bench *bench, size_t size, bool both)
{
    const size_t bytes = size / 4;
    char *text = bench_new(bench, size, 1), *token = bench_new(bench, bytes + 1, 1);
    memset(text, 'a', size);
    memset(token, 'a', bytes);
    token[bytes] = 'b';
    const struct added_token tokens[] = {token_of(token, bytes + 1, 0), token_of(token, 1, 1)};
    const struct cost cost = split_cost(bench, tokens, both ? 2 : 1, text, size);
    free(token);
    free(text);
    return cost;
}

static struct cost added_long_cost(struct bench *bench, size_t size)
{
    return letters_cost(bench, size, false);
}

static struct cost added_letters_cost(struct bench *bench, size_t size)
{
    return letters_cost(bench, size, true);
}

/* Measures a run of spaces, each of which is a token that takes the spaces after it. */
static struct cost added_spaces_cost(struct bench *bench, size_t size)
{
    struct added_token space = token_of(" ", 1, 0);
    char *text = bench_new(bench, size, 1);
    memset(text, ' ', size);
    space.rstrip = true;
    const struct cost cost = split_cost(bench, &space, 1, text, size);
    free(text);
    return cost;
}

/* ---- patterns ---- */

/* Matches a text of one byte, repeated. What the searches are charged for is limited for each document, so a pattern
 * that is too expensive ends with REGEX_FAILED. */
static struct cost regex_cost(struct bench *bench, const char *pattern, char byte, size_t size)
{
    struct regex *regex = NULL;
    struct regex_state *state = NULL;
    struct tokmap_error *error = &bench->error;
    size_t from, to, matches = 0;
    const enum tokmap_status status =
        regex_new(&regex, pattern, strlen(pattern), REGEX_ONIGURUMA, NULL, "pattern", error);
    if (status == TOKMAP_ERROR_UNSUPPORTED && strstr(error->message, "PCRE2"))
        return (struct cost){0, 0};
    bench_check(bench, status);
    bench_check(bench, regex_state_new(&state, regex, error));
    char *text = bench_new(bench, size, 1);
    memset(text, byte, size);
    if (!regex_begin(state, (const uint8_t *)text, size, false))
        bench_no_memory(bench);
    while (regex_next(state, &from, &to) == REGEX_MATCH)
        matches++;
    const struct cost cost = {regex_charged(state) + matches, size};
    regex_state_free(state);
    regex_free(regex);
    free(text);
    return cost;
}

/* Measures a pattern that vocabularies have, on text for which other ways of matching it are quadratic. */
static struct cost pattern_usual_cost(struct bench *bench, size_t size)
{
    return regex_cost(bench, "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", ' ', size);
}

/* Measures a quadratic pattern: for each group of digits it reads all digits after it. The limit of a document ends the
 * larger input, and does not yet end the smaller one. */
static struct cost pattern_quadratic_cost(struct bench *bench, size_t size)
{
    return regex_cost(bench, "\\d{1,3}(?=(?:\\d{3})*(?!\\d))", '1', size);
}

/* ---- the rows ---- */

static const struct {
    const char *metric;
    size_t size; /* of the smaller input */
    size_t more; /* the larger one has that many times the size, and so four times the bytes; 1: both have the size */
    /* Measure an input. size: its texts, the ids on each side of its pairs, or its bytes. `ordinary` measures the first
     * input if both have one size; otherwise it is NULL. */
    struct cost (*cost)(struct bench *bench, size_t size), (*ordinary)(struct bench *bench, size_t size);
} rows[] = {
    {"train_words_work_per_byte", 32768, 1, train_words_cost, ordinary_words_cost},
    {"text_table_work_per_byte", 4096, 4, text_table_cost, NULL},
    {"text_places_work_per_byte", 4096, 4, text_places_cost, NULL},
    {"pairs_work_per_byte", SIDE_MOST / 2, 2, pairs_cost, NULL},
    {"added_long_work_per_byte", 65536, 4, added_long_cost, NULL},
    {"added_letters_work_per_byte", 65536, 4, added_letters_cost, NULL},
    {"added_spaces_work_per_byte", 65536, 4, added_spaces_cost, NULL},
    {"pattern_usual_work_per_byte", 65536, 4, pattern_usual_cost, NULL},
    {"pattern_quadratic_work_per_byte", 65536, 4, pattern_quadratic_cost, NULL},
};

#define ROWS (sizeof rows / sizeof rows[0])

/* Measures both inputs of a row, and prints it. Returns whether the ratio is more than RATIO_MOST. */
static bool row_run(struct bench *bench, size_t row)
{
    double work[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        const size_t size = i ? rows[row].size * rows[row].more : rows[row].size;
        const struct cost cost =
            !i && rows[row].ordinary ? rows[row].ordinary(bench, size) : rows[row].cost(bench, size);
        if (!cost.bytes) {
            cli_say(bench->program, "%s is skipped, because this build has no PCRE2", rows[row].metric);
            return false;
        }
        work[i] = (double)cost.work / (double)cost.bytes;
    }
    bench_value(bench, rows[row].metric, "steps/byte", work[1], work[0]);
    if (work[1] <= RATIO_MOST * work[0])
        return false;
    cli_say(bench->program,
            "%s: %.4g steps for each byte, and %.4g %s; the work is not linear in the input. Find what has changed in "
            "the search or in the table",
            rows[row].metric, work[0], work[1],
            rows[row].ordinary ? "if the input is hostile" : "with four times the bytes");
    return true;
}

static int run(struct bench *bench)
{
    bool any = false;
    for (size_t row = 0; row < ROWS; row++) {
        bench_stop_check(bench);
        any |= row_run(bench, row);
    }
    table_key_fix(0);
    return any ? CLI_FAILED : CLI_DONE;
}

const struct bench_case case_hostile = {"hostile", "work per byte of hostile input, counted, at two sizes", .run = run};
