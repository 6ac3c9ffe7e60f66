/* test_duplicates.c - duplicates: the table and the file of keys against a plain list, with room for so few keys that
 * partitions need many passes; inputs that change between the readings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/inputs.h"
#include "pack/duplicates.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

#define DOCUMENTS 150000
#define TEXTS 120000

static char input[600];
static const char *operands[] = {input};
static uint32_t numbers[DOCUMENTS]; /* the text of each document */
static uint32_t firsts[TEXTS];      /* 1 + the first document with the text, while they are looked at */

/* Writes a file with a number in each line. */
static void input_make(uint64_t seed)
{
    (void)snprintf(input, sizeof input, "%s/in.jsonl", folder);
    FILE *file = fopen(input, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        numbers[i] = (uint32_t)random_below(&seed, TEXTS);
        (void)fprintf(file, "{\"text\":\"%u\"}\n", (unsigned)numbers[i]);
    }
    assert_int_equal(fclose(file), 0);
}

static struct duplicates_options options_of(uint64_t memory, uint32_t partitions)
{
    return (struct duplicates_options){
        .memory = memory,
        .folder = folder,
        .partitions = partitions,
        .threads = 2,
        .corpus = {.field = "text", .batch_bytes = 65536, .record_limit = 1 << 20, .document_limit = 1 << 20},
        .operands = operands,
        .operand_count = 1};
}

static struct hash128 key_of(uint32_t number)
{
    char text[16];
    const int bytes = snprintf(text, sizeof text, "%u", (unsigned)number);
    return hash128(text, (size_t)bytes);
}

/* Asks about all documents, and compares with a plain list. Returns the status of the end. */
static enum tokmap_status all_ask(uint64_t memory, uint32_t partitions, bool *read_twice)
{
    const struct duplicates_options options = options_of(memory, partitions);
    struct duplicates *duplicates;
    struct place_counter counter = {0};
    const struct corpus_part part = {.path = input};
    uint64_t file_bytes;
    memset(firsts, 0, sizeof firsts);
    MUST(duplicates_new(&duplicates, &options, &error));
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        struct document_place place, kept;
        bool is_new, is_duplicate;
        const struct hash128 key = key_of(numbers[i]);
        MUST(place_counter_next(&counter, &part, i, key, &place, &is_new, &error));
        assert_int_equal(is_new, i == 0);
        duplicates_prefetch(duplicates, key);
        MUST(duplicates_find(duplicates, key, &place, &is_duplicate, &kept, &error));
        if (is_duplicate != (firsts[numbers[i]] != 0))
            fail_msg("document %u: %d", (unsigned)i, is_duplicate);
        if (is_duplicate)
            assert_int_equal(kept.record, firsts[numbers[i]] - 1);
        else
            firsts[numbers[i]] = i + 1;
    }
    const enum tokmap_status status = duplicates_finish(duplicates, &counter, &error);
    *read_twice = duplicates_read_twice(duplicates, &file_bytes);
    if (*read_twice)
        assert_true(file_bytes >= 32 * (uint64_t)DOCUMENTS && file_bytes < 40 * (uint64_t)DOCUMENTS + (17U << 20));
    duplicates_free(duplicates);
    return status;
}

static void test_same_answers(void **unused)
{
    (void)unused;
    bool read_twice;
    input_make(1);
    MUST(all_ask(UINT64_MAX, 0, &read_twice));
    assert_false(read_twice);
    /* 1 MiB has room for fewer than 37,000 of the keys. */
    static const uint32_t partitions[] = {1, 2, 3, 255, 256};
    for (size_t i = 0; i < sizeof partitions / sizeof partitions[0]; i++) {
        MUST(all_ask(0, partitions[i], &read_twice));
        assert_true(read_twice);
        MUST(all_ask((uint64_t)1 << 20, partitions[i], &read_twice));
        assert_true(read_twice);
    }
}

static void test_changed_input(void **unused)
{
    (void)unused;
    bool read_twice;
    struct duplicates *duplicates;
    struct duplicates_options options;
    struct place_counter counter = {0};
    struct document_place place = {0}, kept;
    bool is_new, is_duplicate;
    const struct corpus_part part = {.path = input};
    input_make(2);
    /* The first document is asked about, and the inputs are read; the others never come. */
    options = options_of(0, 0);
    MUST(duplicates_new(&duplicates, &options, &error));
    MUST(place_counter_next(&counter, &part, 0, key_of(numbers[0]), &place, &is_new, &error));
    MUST(duplicates_find(duplicates, key_of(numbers[0]), &place, &is_duplicate, &kept, &error));
    assert_false(is_duplicate);
    assert_int_equal(duplicates_finish(duplicates, &counter, &error), TOKMAP_ERROR_MISMATCH);
    duplicates_free(duplicates);
    /* As many documents, of which one has another text. */
    input_make(3);
    const uint32_t last = numbers[DOCUMENTS - 1];
    numbers[DOCUMENTS - 1] = (last + 1) % TEXTS;
    memset(&counter, 0, sizeof counter);
    MUST(duplicates_new(&duplicates, &options, &error));
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        MUST(place_counter_next(&counter, &part, i, key_of(numbers[i]), &place, &is_new, &error));
        MUST(duplicates_find(duplicates, key_of(numbers[i]), &place, &is_duplicate, &kept, &error));
    }
    assert_int_equal(duplicates_finish(duplicates, &counter, &error), TOKMAP_ERROR_MISMATCH);
    duplicates_free(duplicates);
    numbers[DOCUMENTS - 1] = last;
    MUST(all_ask(0, 0, &read_twice));
    /* They vanish. */
    assert_int_equal(remove(input), 0);
    MUST(duplicates_new(&duplicates, &options, &error));
    assert_int_equal(duplicates_find(duplicates, key_of(1), &place, &is_duplicate, &kept, &error),
                     TOKMAP_ERROR_NOT_FOUND);
    duplicates_free(duplicates);
}

/* The table of equal keys, of a limit, and its memory for each key. */
static void test_table(void **unused)
{
    (void)unused;
    struct key_table table;
    struct document_place place = {0}, kept;
    uint64_t seed = 5, refused = 0;
    key_table_init(&table, UINT64_MAX);
    for (uint64_t i = 0; i < 400000; i++) {
        const struct hash128 key = {random_next(&seed), i};
        place.record = i;
        assert_int_equal(key_table_find(&table, key, &place, &kept), KEY_ADDED);
        assert_int_equal(key_table_find(&table, key, &place, &kept), KEY_FOUND);
        assert_int_equal(kept.record, i);
    }
    assert_int_equal(table.count, 400000);
    assert_true(table.bytes <= 42 * table.count);
    key_table_free(&table);
    key_table_init(&table, (uint64_t)1 << 20);
    for (uint64_t i = 0; i < 100000; i++) {
        const struct hash128 key = {i, i << 32};
        const enum key_found found = key_table_find(&table, key, &place, &kept);
        assert_true(found == KEY_ADDED || found == KEY_NO_ROOM);
        assert_int_equal(key_table_find(&table, key, &place, &kept), found == KEY_ADDED ? KEY_FOUND : KEY_NO_ROOM);
        refused += found == KEY_NO_ROOM;
    }
    assert_true(refused && refused < 100000 && table.bytes <= (uint64_t)1 << 20);
    key_table_free(&table);
}

static void test_can_repeat(void **unused)
{
    (void)unused;
    static const char *const standard[] = {"a", "-"};
    const struct inputs_selection all = {0};
    const struct inputs_selection listed = {.lists = standard, .list_count = 2};
    assert_true(duplicates_can_repeat(standard, 1, &all));
    assert_false(duplicates_can_repeat(standard, 2, &all));
    assert_false(duplicates_can_repeat(standard, 1, &listed));
    static const char *const device[] = {"/dev/null"};
    assert_false(duplicates_can_repeat(device, 1, &all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_changed_input),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_can_repeat),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
