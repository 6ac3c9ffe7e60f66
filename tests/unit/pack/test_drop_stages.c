/* SPDX-License-Identifier: MIT */
/* test_drop_stages.c - the stages of packing in one piece: equal documents, and clusters, with room for so few bands
 * that they need many passes, and any number of threads, against a plain list; what ends early is continued. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus/inputs.h"
#include "dedup/dedup_stages.h"
#include "pack/pack_stages.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

#define DOCUMENTS 20000
#define TEXTS 16000

static char inputs[2][600];
static const char *operands[] = {inputs[0], inputs[1]};
static uint32_t numbers[DOCUMENTS]; /* the text of each document; TEXTS: a short one */

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
        (void)fprintf(file, "{\"text\":\"%s\"}\n", text);
    }
    assert_int_equal(fclose(file), 0);
}

static struct drop_options drop;
static struct pack_options pack;

static void options_set(bool exact, uint64_t memory, uint32_t threads)
{
    static const struct minhash_form form = {.words = 3, .bands = 8, .rows = 2};
    drop = (struct drop_options){.duplicates = exact, .minhash = exact ? NULL : &form, .memory = memory};
    pack = (struct pack_options){.prefix = "new", .threads = threads, .vocabulary = 256, .drop = &drop};
    pack.corpus.field = "text";
    pack.corpus.record_limit = pack.corpus.document_limit = 1 << 20;
}

/* The stages, and what they have found. */
struct drop_stages {
    struct dedup_stages work;
    struct drop_source source;
};

static enum tokmap_status stages_do(struct drop_stages *stages)
{
    static const struct scan_inputs all = {.operands = operands, .count = 2};
    static const struct work_units one = {.count = 1};
    *stages = (struct drop_stages){.work = {.scanning = pack_scan_options(&pack),
                                            .units = &one,
                                            .whole = &all,
                                            .folder = folder,
                                            .key = 7,
                                            .share = {.tasks = 1}}};
    const enum tokmap_status status = dedup_stages_run(&stages->work, &error);
    if (!status)
        stages->source = dedup_stages_source(&stages->work, 0);
    return status;
}

static void files_remove(const struct drop_stages *stages)
{
    const struct stage_id scan = scan_file_id(folder, stages->source.key, 0);
    const struct stage_id drops = drops_file_id(folder, stages->source.key, 0, 1);
    stage_remove(&scan);
    stage_remove(&drops);
}

/* Asks about all documents, and compares with a plain list. */
static void all_ask(const struct drop_stages *stages)
{
    static uint32_t firsts[TEXTS + 1]; /* 1 + the first document with the text */
    const uint32_t second = DOCUMENTS / 4 * 3;
    struct drop_list *list;
    uint64_t found = 0;
    memset(firsts, 0, sizeof firsts);
    assert_int_equal(stages->source.places->documents, DOCUMENTS);
    MUST(drop_list_open(&list, &stages->source, &error));
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        const struct document_place place = {.record = i >= second ? i - second : i, .input = i >= second};
        struct stage_record kept;
        bool is_dropped;
        MUST(drop_list_find(list, &place, &is_dropped, &kept, &error));
        /* Short texts are no near-duplicates. */
        if (is_dropped != ((drop.duplicates || numbers[i] < TEXTS) && firsts[numbers[i]]))
            fail_msg("document %u: %d", (unsigned)i, is_dropped);
        if (!is_dropped) {
            firsts[numbers[i]] = i + 1;
            continue;
        }
        const uint32_t first = firsts[numbers[i]] - 1;
        assert_int_equal(kept.second, first >= second);
        assert_int_equal(kept.first, first >= second ? first - second : first);
        found++;
    }
    MUST(drop_list_end(list, &error));
    assert_true(found > DOCUMENTS / 4);
    drop_list_free(list);
}

static void test_same_answers(void **unused)
{
    (void)unused;
    static const struct {
        bool exact;
        uint64_t memory;
        uint32_t threads;
    } ways[] = {{false, UINT64_MAX, 1}, {false, UINT64_MAX, 4}, {false, 0, 2}, {true, UINT64_MAX, 1}, {true, 0, 3}};
    inputs_make(1);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct drop_stages stages;
        options_set(ways[i].exact, ways[i].memory, ways[i].threads);
        MUST(stages_do(&stages));
        all_ask(&stages);
        files_remove(&stages);
        dedup_stages_free(&stages.work);
    }
}

/* ---- continue ---- */

static uint64_t batches, batches_most;

static void batch_count(void *unused, uint64_t stored_bytes)
{
    (void)unused;
    (void)stored_bytes;
    batches++;
}

static bool batches_stop(void *unused)
{
    (void)unused;
    return batches >= batches_most;
}

/* With checkpoint_ns 1 each batch is saved: all attempts together read as many batches as one, but for the one that
 * each of them had read, and not saved, when it ended; and what is complete is not read at all. */
static void continued_check(bool exact)
{
    struct drop_stages stages;
    uint64_t whole, all = 0, attempts = 0;
    inputs_make(4);
    options_set(exact, UINT64_MAX, 1);
    pack.compared = batch_count;
    pack.stop = batches_stop;
    pack.checkpoint_ns = 1;
    batches = 0;
    batches_most = UINT64_MAX;
    MUST(stages_do(&stages));
    whole = batches;
    assert_true(whole >= 3);
    files_remove(&stages);
    dedup_stages_free(&stages.work);
    for (enum tokmap_status status = TOKMAP_ERROR_INTERRUPTED; status; attempts++) {
        assert_true(attempts <= whole);
        batches = 0;
        batches_most = 2;
        status = stages_do(&stages);
        if (status)
            assert_int_equal(status, TOKMAP_ERROR_INTERRUPTED);
        all += batches;
        if (status)
            dedup_stages_free(&stages.work);
    }
    assert_true(attempts > 1 && all <= whole + attempts);
    all_ask(&stages);
    dedup_stages_free(&stages.work);
    batches = 0;
    batches_most = 1;
    MUST(stages_do(&stages));
    assert_int_equal(batches, 0);
    all_ask(&stages);
    files_remove(&stages);
    dedup_stages_free(&stages.work);
}

static void test_continued(void **unused)
{
    (void)unused;
    continued_check(false);
    continued_check(true);
}

static void documents_make(uint64_t seed)
{
    inputs_make(seed);
    options_set(false, UINT64_MAX, 1);
}

/* A comparison of a scan that is gone is not taken for one of the next scan. */
static void test_stale_drops(void **unused)
{
    (void)unused;
    static const char *const left[] = {"drops-000000.partial", "drops-000000.part-000000"};
    struct drop_stages stages;
    char path[600];
    documents_make(5);
    MUST(stages_do(&stages));
    const struct stage_id scan = scan_file_id(folder, stages.source.key, 0);
    stage_remove(&scan);
    dedup_stages_free(&stages.work);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, left[i]);
        file_write_text(path, "of another scan");
    }
    documents_make(6);
    MUST(stages_do(&stages));
    all_ask(&stages);
    files_remove(&stages);
    dedup_stages_free(&stages.work);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, left[i]);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

/* Another process has the lock of the comparison. */
static void test_busy(void **unused)
{
    (void)unused;
    struct drop_stages stages;
    struct stage_writer *other;
    documents_make(7);
    MUST(stages_do(&stages));
    const struct stage_id drops = drops_file_id(folder, stages.source.key, 0, 1);
    stage_remove(&drops);
    dedup_stages_free(&stages.work);
    MUST(stage_writer_open(&other, &drops, &error));
    assert_int_equal(stages_do(&stages), TOKMAP_ERROR_BUSY);
    assert_non_null(strstr(error.path, "drops-000000.partial"));
    assert_non_null(strstr(error.message, "wait for it"));
    dedup_stages_free(&stages.work);
    stage_writer_free(other);
    MUST(stages_do(&stages));
    all_ask(&stages);
    files_remove(&stages);
    dedup_stages_free(&stages.work);
}

static void test_can_repeat(void **unused)
{
    (void)unused;
    static const char *const standard[] = {"a", "-"};
    const struct inputs_selection all = {0};
    const struct inputs_selection listed = {.lists = standard, .list_count = 2};
    assert_true(dedup_can_repeat(standard, 1, &all));
    assert_false(dedup_can_repeat(standard, 2, &all));
    assert_false(dedup_can_repeat(standard, 1, &listed));
    static const char *const device[] = {"/dev/null"};
    assert_false(dedup_can_repeat(device, 1, &all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers), cmocka_unit_test(test_continued),  cmocka_unit_test(test_stale_drops),
        cmocka_unit_test(test_busy),         cmocka_unit_test(test_can_repeat),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
