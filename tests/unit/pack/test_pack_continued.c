/* SPDX-License-Identifier: MIT */
/* test_pack_continued.c - a pack in one piece that ends early is continued after its last checkpoint, and has the same
 * bytes and counts. What it has read before is damaged then, so whoever reads it again finds other documents. Only
 * where the keys of documents were in memory (--dedup exact), it must be read again. Nothing here depends on time:
 * with checkpoint_ns 1, each batch ends with a checkpoint. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pack/pack.h"
#include "pack/unit_record.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"

#define DOCUMENTS 20000
#define FAR 3000 /* some documents are those so far before them */
#define WORDS 12
#define DAMAGED (64 << 10) /* after the first piece of which the journal has a hash, and in the first batch */

/* Where the pack is stopped: after so many batches are scanned, or packed, or when so many tokens are merged. */
enum moment { SCANNING, PACKING, MERGING };

static const struct way {
    const char *name;
    bool shuffled, split, excluded, exact, near, full, rearranged;
} ways[] = {
    {.name = "plain"},
    {.name = "shuffle", .shuffled = true},
    {.name = "split", .split = true},
    {.name = "exclude", .excluded = true},
    {.name = "all of them", .shuffled = true, .split = true, .excluded = true},
    {.name = "exact", .exact = true},
    {.name = "fim", .rearranged = true},
    {.name = "fim, exact, shuffle", .rearranged = true, .exact = true, .shuffled = true},
    {.name = "exact, exclude, shuffle", .exact = true, .excluded = true, .shuffled = true},
    {.name = "exact, full table", .exact = true, .full = true},
    {.name = "all of them, full table", .exact = true, .full = true, .excluded = true, .shuffled = true, .split = true},
    {.name = "minhash", .near = true},
    {.name = "minhash, exclude, shuffle", .near = true, .excluded = true, .shuffled = true},
};

static const char *operands[] = {"a.jsonl"};
static const char *separator; /* NULL, or the one of texts */
static size_t separator_bytes;
static const struct minhash_form form = {.words = 2, .bands = 3, .rows = 3};
static struct pack_shuffle shuffle = {.seed = 5, .memory = 65536};
static struct tokenizer *tokenizer;
static struct ngram_table *ngrams;
static struct split split;
static struct fim fim = {.seed = 1, .unit = 20, .prefix_id = 1, .middle_id = 2, .suffix_id = 3, .end_id = 4};
static struct drop_options drop;
static enum moment moment;
static uint64_t seen, seen_most;
static struct drop_counts counted; /* of the last pack that was complete */

static void input_make(void)
{
    static uint64_t seeds[DOCUMENTS];
    uint64_t seed = 3, before = 0;
    FILE *file = fopen("a.jsonl", "wb");
    assert_non_null(file);
    for (int i = 0; i < DOCUMENTS; i++) {
        const uint64_t begin = seed;
        const bool is_far = i % 11 == 10 && i >= FAR;
        if (is_far || i % 5 == 4)
            seed = is_far ? seeds[i - FAR] : before;
        seeds[i] = seed;
        (void)fputs("{\"text\":\"", file);
        for (int k = 0; k < WORDS; k++) {
            uint64_t word = random_below(&seed, 4000);
            char letters[4] = {0};
            for (int c = 0; c < 3; c++, word /= 20)
                letters[c] = (char)('a' + word % 20);
            (void)fprintf(file, "%s ", letters);
        }
        (void)fputs("\"}\n", file);
        before = begin;
        if (is_far)
            seed = begin;
    }
    assert_int_equal(fclose(file), 0);
}

static int continued_setup(void **state)
{
    static const char excluded[] = "aaa bba";
    struct tokmap_error error;
    if (setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL) ||
        split_parse("train=0.9,val=0.1", &split) || fim_parse("0.5", &fim))
        return -1;
    split.seed = 1;
    input_make();
    if (ngram_table_new(&ngrams, 1, &error) ||
        ngram_table_add(ngrams, excluded, strlen(excluded), "excluded.txt", 0, &error))
        return -1;
    return ngram_table_finish(ngrams, &error) != TOKMAP_OK;
}

static int continued_teardown(void **state)
{
    ngram_table_free(ngrams);
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

static bool stop(void *unused)
{
    (void)unused;
    return seen >= seen_most;
}

static void progress(void *unused, uint64_t bytes)
{
    (void)unused;
    (void)bytes;
    seen += moment == PACKING;
}

static void compared(void *unused, uint64_t bytes)
{
    (void)unused;
    (void)bytes;
    seen += moment == SCANNING;
}

static void shuffled(void *unused, uint64_t tokens, uint64_t all)
{
    (void)unused;
    (void)tokens;
    (void)all;
    seen += moment == MERGING;
}

/* A table of so many bytes is full in the third or fourth batch: it has a random key. */
#define TABLE_BYTES (448 << 10)
#define FULL_BATCHES 4

/* Packs into out/k, or continues there, until progress was reported so often. */
static enum tokmap_status packed(const struct way *way, uint64_t most, struct tokmap_error *error)
{
    struct pack_options options = {.prefix = "out/k",
                                   .threads = 1,
                                   .tokenizer = tokenizer,
                                   .eod_id = 256,
                                   .bos_id = TOKMAP_NO_ID,
                                   .checkpoint_ns = 1,
                                   .progress = progress,
                                   .compared = compared,
                                   .shuffled = shuffled,
                                   .shuffle = way->shuffled ? &shuffle : NULL,
                                   .split = way->split ? &split : NULL,
                                   .fim = way->rearranged ? &fim : NULL,
                                   .stop = stop};
    struct pack_result result;
    drop = (struct drop_options){.duplicates = way->exact,
                                 .minhash = way->near ? &form : NULL,
                                 .ngrams = way->excluded ? ngrams : NULL,
                                 .memory = way->full ? TABLE_BYTES : UINT64_MAX};
    options.drop = way->exact || way->near || way->excluded ? &drop : NULL;
    options.corpus.field = "text";
    options.corpus.format = strcmp(operands[0], "texts.txt") ? CORPUS_JSONL : CORPUS_TEXT;
    options.corpus.separator = separator;
    options.corpus.separator_bytes = separator_bytes;
    options.corpus.record_limit = options.corpus.document_limit = 64 << 20;
    seen = 0;
    seen_most = most;
    memset(error, 0, sizeof *error);
    const enum tokmap_status status = pack_run(&options, operands, 1, &result, error);
    if (status && status != TOKMAP_ERROR_MISMATCH && !result.kept)
        fail_msg("%s: nothing is kept after status %d, %s", way->name, (int)status, error->message);
    if (!status)
        counted = result.dropped;
    return status;
}

static void output_clear(void)
{
    scratch_remove("out");
    assert_int_equal(mkdir("out", 0777), 0);
}

static void same(const char *name, bool wanted)
{
    char left[64], right[64];
    size_t left_bytes, right_bytes;
    (void)snprintf(left, sizeof left, "out/%s", name);
    (void)snprintf(right, sizeof right, "wanted/%s", name);
    if (!file_exists(right)) {
        assert_false(wanted);
        return;
    }
    char *made = file_read(left, &left_bytes), *known = file_read(right, &right_bytes);
    assert_int_equal(left_bytes, right_bytes);
    assert_memory_equal(made, known, left_bytes);
    free(made);
    free(known);
}

static void interrupted(const struct way *way, enum moment at, uint64_t most)
{
    struct tokmap_error error;
    moment = at;
    const enum tokmap_status stopped = packed(way, most, &error);
    if (stopped != TOKMAP_ERROR_INTERRUPTED)
        fail_msg("%s: status %d, %s", way->name, (int)stopped, error.message);
}

/* Stops a pack, also before anything is packed, damages what it has read, unless keys were in memory, and lets another
 * process continue. */
static void way_check(const struct way *way, enum moment at, uint64_t most)
{
    const struct drop_counts whole = counted;
    const bool again = way->exact && !way->full; /* the inputs are read again, but not if all of them are packed */
    struct tokmap_error error;
    size_t count;
    output_clear();
    if (way->near)
        interrupted(way, SCANNING, 2);
    interrupted(way, at, most);
    char *text = file_read("a.jsonl", &count);
    assert_true(count > 17 * DAMAGED);
    const size_t step = (count - DAMAGED) / 15; /* where the next piece begins */
    char *letter = memchr(text + DAMAGED, 'a', step - DAMAGED);
    assert_non_null(letter);
    *letter = again ? 'a' : 'z';
    file_write("a.jsonl", text, count);
    const enum tokmap_status status = packed(way, UINT64_MAX, &error);
    *letter = 'a';
    file_write("a.jsonl", text, count);
    free(text);
    if (status)
        fail_msg("%s, continued: status %d, %s", way->name, (int)status, error.message);
    assert_int_equal(counted.documents, whole.documents);
    assert_int_equal(counted.duplicates, whole.duplicates);
    assert_int_equal(counted.near_duplicates, whole.near_duplicates);
    assert_int_equal(counted.excluded, whole.excluded);
    assert_int_equal(counted.read_twice, way->full || way->near || (again && at == PACKING));
    same("k.bin", !way->split);
    same("k.tmx", !way->split);
    same("k.train-00000.bin", way->split);
    same("k.train-00000.tmx", way->split);
    same("k.val-00000.bin", way->split);
    same("k.dropped", way->exact || way->near || way->excluded);
    assert_false(file_exists("out/k.work"));
}

static void test_all_ways(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct tokmap_error error;
        output_clear();
        if (packed(&ways[i], UINT64_MAX, &error))
            fail_msg("%s: %s", ways[i].name, error.message);
        assert_int_equal(counted.read_twice, ways[i].full || ways[i].near);
        scratch_remove("wanted");
        assert_int_equal(rename("out", "wanted"), 0);
        way_check(&ways[i], PACKING, ways[i].full ? FULL_BATCHES : 3);
        if (ways[i].full) /* with near-duplicates, nothing is packed yet */
            way_check(&ways[i], SCANNING, 3);
        if (ways[i].shuffled)
            way_check(&ways[i], MERGING, 2);
    }
}

/* Documents that are as long as a record may be with much memory, and not with little: in either pass, a process with
 * less memory continues the work of one with more. */
static void test_less_memory(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    static const struct way *const shuffled_way = &ways[1];
    FILE *file = fopen("long.jsonl", "wb");
    assert_non_null(file);
    for (int i = 0; i < 240; i++)
        (void)fprintf(file, "{\"text\":\"%d %0*d\"}\n", i, i % 3 ? 20000 + i : 5, i);
    assert_int_equal(fclose(file), 0);
    operands[0] = "long.jsonl";
    const uint64_t little = shuffle.memory, much = (uint64_t)1 << 20;
    for (enum moment at = PACKING; at <= MERGING; at++) {
        output_clear();
        shuffle.memory = much;
        if (packed(shuffled_way, UINT64_MAX, &error))
            fail_msg("%s", error.message);
        scratch_remove("wanted");
        assert_int_equal(rename("out", "wanted"), 0);
        output_clear();
        interrupted(shuffled_way, at, 2);
        shuffle.memory = little;
        if (packed(shuffled_way, UINT64_MAX, &error))
            fail_msg("%s", error.message);
        same("k.bin", true);
        same("k.tmx", true);
    }
    operands[0] = "a.jsonl";
}

static uint64_t key_of_texts(void)
{
    uint64_t key;
    struct pack_options options = {.tokenizer = tokenizer};
    options.corpus.separator = separator;
    options.corpus.separator_bytes = separator_bytes;
    assert_true(unit_record_key(&options, &key));
    return key;
}

/* A separator may have zero bytes, which the journal and the records of units keep apart from the end of a text. */
static void test_zero_bytes(void **unused)
{
    (void)unused;
    static const char one[] = "\0", longer[] = "\0beta", spelled[] = "\\x00";
    struct tokmap_error error;
    FILE *file = fopen("texts.txt", "wb");
    assert_non_null(file);
    for (int i = 0; i < 100000; i++)
        (void)fprintf(file, "alpha beta %d%c", i, 0);
    assert_int_equal(fclose(file), 0);
    operands[0] = "texts.txt";
    output_clear();
    separator_bytes = 0;
    const uint64_t none = key_of_texts();
    separator = spelled;
    separator_bytes = strlen(spelled);
    const uint64_t of_spelled = key_of_texts();
    separator = longer;
    separator_bytes = sizeof longer - 1;
    const uint64_t of_longer = key_of_texts();
    separator = one;
    separator_bytes = 1;
    const uint64_t of_one = key_of_texts();
    assert_true(of_one != none && of_one != of_longer && of_one != of_spelled && of_longer != none);
    interrupted(&ways[0], PACKING, 3);
    separator = longer;
    separator_bytes = sizeof longer - 1;
    assert_int_equal(packed(&ways[0], UINT64_MAX, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "another separator of documents: it had \\x00, and this one has \\x00beta"));
    separator = NULL;
    separator_bytes = 0;
    assert_int_equal(packed(&ways[0], UINT64_MAX, &error), TOKMAP_ERROR_MISMATCH);
    separator = one;
    separator_bytes = 1;
    assert_int_equal(packed(&ways[0], UINT64_MAX, &error), TOKMAP_OK);
    separator = NULL;
    separator_bytes = 0;
    operands[0] = "a.jsonl";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_less_memory),
        cmocka_unit_test(test_zero_bytes),
        cmocka_unit_test(test_all_ways),
    };
    return cmocka_run_group_tests(tests, continued_setup, continued_teardown);
}
