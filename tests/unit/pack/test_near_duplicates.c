/* test_near_duplicates.c - clusters: bands in few and many partitions, with room for so few keys that they need many
 * passes, and any number of threads, against a plain list; inputs that change between the readings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/inputs.h"
#include "pack/near_duplicates.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

#define DOCUMENTS 20000
#define TEXTS 16000

static char inputs[2][600];
static const char *operands[] = {inputs[0], inputs[1]};
static uint32_t numbers[DOCUMENTS]; /* the text of each document; TEXTS: a short one */
static struct hash128 keys[DOCUMENTS];

/* Writes the text of a number: three words of its own, since digits would be removed. */
static int text_write(uint32_t number, char text[64])
{
    char word[8] = {0};
    for (int i = 0; i < 4; i++, number /= 26)
        word[i] = (char)('a' + number % 26);
    return snprintf(text, 64, "%s x%s y%s", word, word, word);
}

/* Writes two files, the second one with the last quarter of the documents. */
static void inputs_make(uint64_t seed)
{
    FILE *file = NULL;
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        char text[64] = "two words";
        if (i == 0 || i == DOCUMENTS / 4 * 3) {
            if (file)
                assert_int_equal(fclose(file), 0);
            (void)snprintf(inputs[i != 0], sizeof inputs[0], "%s/%d.jsonl", folder, i != 0);
            file = fopen(inputs[i != 0], "w");
            assert_non_null(file);
        }
        numbers[i] = (uint32_t)random_below(&seed, TEXTS + TEXTS / 50);
        if (numbers[i] < TEXTS)
            (void)text_write(numbers[i], text);
        else
            numbers[i] = TEXTS;
        keys[i] = hash128(text, strlen(text));
        (void)fprintf(file, "{\"text\":\"%s\"}\n", text);
    }
    assert_int_equal(fclose(file), 0);
}

static struct near_options options_of(const struct minhash_form *form, uint64_t memory, uint32_t partitions,
                                      uint32_t threads)
{
    return (struct near_options){
        .form = form,
        .inputs = {
            .memory = memory,
            .folder = folder,
            .partitions = partitions,
            .threads = threads,
            .corpus = {.field = "text", .batch_bytes = 65536, .record_limit = 1 << 20, .document_limit = 1 << 20},
            .operands = operands,
            .operand_count = 2}};
}

/* Asks about all documents, and compares with a plain list. */
static void all_ask(uint64_t memory, uint32_t partitions, uint32_t threads)
{
    static uint32_t firsts[TEXTS + 1]; /* 1 + the first document with the text */
    const struct minhash_form form = {.words = 3, .bands = 8, .rows = 2};
    const struct near_options options = options_of(&form, memory, partitions, threads);
    const struct corpus_part parts[2] = {{.path = inputs[0], .input = 0}, {.path = inputs[1], .input = 1}};
    struct near_duplicates *near;
    struct place_counter counter = {0};
    uint64_t file_bytes, found = 0;
    memset(firsts, 0, sizeof firsts);
    MUST(near_duplicates_new(&near, &options, &error));
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        const uint32_t second = DOCUMENTS / 4 * 3;
        struct document_place place, kept;
        bool is_new, is_duplicate;
        MUST(place_counter_next(&counter, &parts[i >= second], i >= second ? i - second : i, keys[i], &place, &is_new,
                                &error));
        MUST(near_duplicates_find(near, i, &is_duplicate, &kept, &error));
        if (is_duplicate != (numbers[i] < TEXTS && firsts[numbers[i]]))
            fail_msg("document %u: %d", (unsigned)i, is_duplicate);
        if (!is_duplicate) {
            firsts[numbers[i]] = i + 1;
            continue;
        }
        const uint32_t first = firsts[numbers[i]] - 1;
        assert_int_equal(kept.input, first >= second);
        assert_int_equal(kept.record, first >= second ? first - second : first);
        found++;
    }
    assert_true(found > DOCUMENTS / 4);
    MUST(near_duplicates_finish(near, &counter, &file_bytes, &error));
    assert_true(file_bytes >= (8 * 16 + 8) * (uint64_t)DOCUMENTS * 48 / 50);
    near_duplicates_free(near);
}

static void test_same_answers(void **unused)
{
    (void)unused;
    inputs_make(1);
    all_ask(UINT64_MAX, 0, 1);
    all_ask(UINT64_MAX, 0, 4);
    all_ask(0, 0, 2);
    /* 1 MiB has room for fewer than 37,000 of the 160,000 bands. */
    all_ask(0, 1, 2);
    all_ask((uint64_t)1 << 20, 3, 3);
}

static void test_changed_input(void **unused)
{
    (void)unused;
    const struct minhash_form form = {.words = 3, .bands = 8, .rows = 2};
    const struct near_options options = options_of(&form, UINT64_MAX, 0, 1);
    struct near_duplicates *near;
    struct place_counter counter = {0};
    const struct corpus_part part = {.path = inputs[0]};
    struct document_place place, kept;
    uint64_t file_bytes;
    bool is_new, is_duplicate;
    inputs_make(2);
    MUST(near_duplicates_new(&near, &options, &error));
    /* Fewer documents, and documents that were not there. */
    assert_int_equal(near_duplicates_finish(near, &counter, &file_bytes, &error), TOKMAP_ERROR_MISMATCH);
    for (uint32_t i = 0; i < DOCUMENTS + 5; i++) {
        MUST(place_counter_next(&counter, &part, i, keys[i % DOCUMENTS], &place, &is_new, &error));
        MUST(near_duplicates_find(near, i, &is_duplicate, &kept, &error));
        assert_true(i < DOCUMENTS || !is_duplicate);
    }
    assert_int_equal(near_duplicates_finish(near, &counter, &file_bytes, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "the inputs have changed"));
    near_duplicates_free(near);
}

static bool stop_now(void *user)
{
    return true;
}

static void test_refused(void **unused)
{
    (void)unused;
    static const char *const standard[] = {"-"};
    const struct minhash_form form = {.words = 5, .bands = 14, .rows = 8};
    struct near_options options = options_of(&form, 0, 0, 2);
    struct near_duplicates *near;
    inputs_make(3);
    options.inputs.stop = stop_now;
    assert_int_equal(near_duplicates_new(&near, &options, &error), TOKMAP_ERROR_INTERRUPTED);
    near_duplicates_free(near);
    options.inputs.operands = standard;
    options.inputs.operand_count = 1;
    assert_int_equal(near_duplicates_new(&near, &options, &error), TOKMAP_ERROR_ARGUMENT);
    near_duplicates_free(near);
    near_duplicates_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_changed_input),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
