/* SPDX-License-Identifier: MIT */
/* test_tasks.c - units of work, their records, and the status of tasks. */
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

#include "common/hash.h"
#include "corpus/corpus_range.h"
#include "pack/output_names.h"
#include "pack/pack_finish.h"
#include "pack/unit_record.h"
#include "support/scratch_folder.h"
#include "work/stage_schedule.h"
#include "work/work_units.h"

static struct corpus_options corpus;

static void list(struct work_units *units, const char *const *operands, size_t count, uint64_t unit_bytes,
                 enum tokmap_status wanted)
{
    struct tokmap_error error = {0};
    const struct output_names names = {.name = "./out", .numbered = true};
    const struct work_units_options options = {.operands = operands,
                                               .operand_count = count,
                                               .corpus = &corpus,
                                               .unit_bytes = unit_bytes,
                                               .examine = pack_input_check,
                                               .output = &names};
    const enum tokmap_status status = work_units_list(units, &options, &error);
    if (status != wanted)
        fail_msg("status %d: %s", (int)status, error.message);
}

static void file_make(const char *name, size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'x', bytes);
    for (size_t i = 9; i < bytes; i += 10)
        text[i] = '\n';
    text[bytes] = '\0';
    file_write_text(name, text);
    free(text);
}

/* The example of work_units.h. */
static void test_units(void **unused)
{
    (void)unused;
    static const char *const operands[] = {"a.txt", "b.txt", "c.txt", "d.jsonl", "e.jsonl", "f.txt", "none.jsonl"};
    static const size_t sizes[] = {40, 50, 30, 250, 10, 300};
    static const struct unit wanted[] = {{0, 2, 0, 0, 90, 0},      {2, 1, 0, 0, 30, 0},     {3, 1, 0, 100, 100, 0},
                                         {3, 1, 100, 200, 100, 0}, {3, 1, 200, 250, 50, 0}, {4, 1, 0, 0, 10, 0},
                                         {5, 1, 0, 0, 300, 0},     {6, 1, 0, 0, 0, 0}};
    struct work_units units;
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < 6; i++)
        file_make(operands[i], sizes[i]);
    list(&units, operands, 7, 100, TOKMAP_OK);
    assert_int_equal(units.count, 8);
    assert_int_equal(units.bytes, 680);
    assert_null(units.indivisible);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(units.list[i].first, wanted[i].first);
        assert_int_equal(units.list[i].count, wanted[i].count);
        assert_int_equal(units.list[i].begin, wanted[i].begin);
        assert_int_equal(units.list[i].end, wanted[i].end);
        assert_int_equal(units.list[i].bytes, wanted[i].bytes);
        assert_int_equal(units.list[i].groups, 0);
    }
    work_units_free(&units);
    list(&units, operands, 7, 1000, TOKMAP_OK);
    assert_int_equal(units.count, 1);
    work_units_free(&units);
    file_make("out.workx", 10);
    assert_true(mkdir("out.work", 0777) == 0);
    file_make("out.work/journal", 10);
    static const char *const outputs[] = {"out.workx", "./out.work/journal"};
    list(&units, outputs, 1, 100, TOKMAP_OK);
    work_units_free(&units);
    list(&units, outputs, 2, 100, TOKMAP_ERROR_ARGUMENT);
    work_units_free(&units);
    static const char *const input[] = {"-"};
    list(&units, input, 1, 100, TOKMAP_OK);
    assert_non_null(units.indivisible);
    work_units_free(&units);
}

/* Every unit belongs to exactly one task, which schedule_task_of() names. */
static void test_shares(void **unused)
{
    (void)unused;
    for (uint64_t count = 1; count < 40; count++)
        for (uint64_t tasks = 1; tasks < 50; tasks++) {
            uint64_t next = 0;
            for (uint64_t task = 0; task < tasks; task++) {
                uint64_t first, end;
                schedule_share(count, task, tasks, &first, &end);
                assert_int_equal(first, next);
                for (; next < end; next++)
                    assert_int_equal(schedule_task_of(count, next, tasks), task);
            }
            assert_int_equal(next, count);
        }
    uint64_t first, end;
    schedule_share(UNITS_MOST, TASKS_MOST - 1, TASKS_MOST, &first, &end);
    assert_int_equal(end, UNITS_MOST);
}

/* The example of corpus_range.h. */
static void test_borders(void **unused)
{
    (void)unused;
    static const uint64_t wanted[] = {0, 5000, 5000, 5000, 5000, 5000, 5100, 5100};
    char *text = malloc(5101);
    uint64_t border, lines;
    assert_non_null(text);
    memset(text, 'x', 5100);
    text[699] = text[4999] = '\n';
    text[5100] = '\0';
    assert_int_equal(chdir(folder), 0);
    file_write_text("lines.jsonl", text);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(corpus_range_border("lines.jsonl", i * 1000, NULL, NULL, &border, NULL), TOKMAP_OK);
        assert_int_equal(border, wanted[i]);
    }
    for (uint64_t at = 1; at < 703; at++) {
        assert_int_equal(corpus_range_border("lines.jsonl", at, NULL, NULL, &border, NULL), TOKMAP_OK);
        assert_int_equal(border, at <= 700 ? 700 : 5000);
    }
    assert_int_equal(corpus_range_lines("lines.jsonl", 5100, NULL, NULL, &lines, NULL), TOKMAP_OK);
    assert_int_equal(lines, 2);
    assert_int_equal(corpus_range_lines("lines.jsonl", 699, NULL, NULL, &lines, NULL), TOKMAP_OK);
    assert_int_equal(lines, 0);
    assert_int_equal(corpus_range_border("no such file", 5, NULL, NULL, &border, NULL), TOKMAP_ERROR_NOT_FOUND);
    free(text);
}

/* Corrects the last line of a status text. */
static void hash_correct(char *text, size_t used)
{
    char line[32];
    const size_t bytes = strlen("hash 0123456789abcdef\n");
    (void)snprintf(line, sizeof line, "hash %016llx\n", (unsigned long long)hash64(text, used - bytes));
    memcpy(text + used - bytes, line, bytes);
}

static void test_status_text(void **unused)
{
    (void)unused;
    char text[TASK_STATUS_BYTES], damaged[TASK_STATUS_BYTES];
    const uint64_t most = UINT64_MAX;
    struct task_status status = {.task = 2,
                                 .tasks = 7,
                                 .counter = most,
                                 .process = most,
                                 .nonce = most,
                                 .state = TASK_FAILED,
                                 .work = {TASK_COMPARES, most, 5, most, most, most, most, most, 12, 3, most},
                                 .milliseconds = most};
    struct task_status read;
    memset(status.host, 'h', sizeof status.host - 1);
    task_status_write(&status, text);
    assert_true(task_status_read(&read, text, sizeof text));
    assert_memory_equal(&read.work, &status.work, sizeof read.work);
    assert_string_equal(read.host, status.host);
    assert_int_equal(read.task, 2);
    assert_int_equal(read.tasks, 7);
    assert_int_equal(read.state, TASK_FAILED);
    size_t used = sizeof text;
    while (text[used - 1] == ' ')
        used--;
    for (size_t i = 0; i < used; i++) {
        memcpy(damaged, text, sizeof damaged);
        damaged[i] ^= 1;
        assert_false(task_status_read(&read, damaged, sizeof damaged));
        assert_false(task_status_read(&read, text, i));
    }
    assert_non_null(memmem(text, used, "\nout 12 3\n", strlen("\nout 12 3\n")));
    /* A file of another version is not read, whatever its lines are. */
    memcpy(damaged, text, sizeof damaged);
    for (char version = '0'; version <= '9'; version++) {
        damaged[strlen("tokmap-task ")] = version;
        hash_correct(damaged, used);
        assert_int_equal(task_status_read(&read, damaged, sizeof damaged), version == '4');
    }
    status.work.dropped = status.work.skipped = most; /* the longest text there can be */
    task_status_write(&status, text);
    assert_true(task_status_read(&read, text, sizeof text));
    assert_memory_equal(&read.work, &status.work, sizeof read.work);
    status.task = 7; /* not below 7 */
    task_status_write(&status, text);
    assert_false(task_status_read(&read, text, sizeof text));
    assert_true(task_status_is_name("task-2-of-7.status"));
    assert_false(task_status_is_name("task-7-of-7.status"));
    assert_false(task_status_is_name("task-2-of-7.status~"));
    assert_false(task_status_is_name("task-2-of-.status"));
}

/* A second process with the number is refused, as long as the first one works; afterwards the counter continues. */
static void test_claim(void **unused)
{
    (void)unused;
    struct tokmap_error error = {0};
    struct task_claim *claim, *second;
    struct task_status *tasks;
    size_t count;
    const struct task_work work = {.units = 3, .bytes = 5};
    assert_int_equal(chdir(folder), 0);
    (void)mkdir("claims", 0777);
    assert_int_equal(task_claim_take(&claim, "claims", 1, 3, NULL, NULL, &error), TOKMAP_OK);
    assert_int_equal(task_claim_take(&second, "claims", 1, 3, NULL, NULL, &error), TOKMAP_ERROR_BUSY);
    assert_null(second);
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "process %ld on host", (long)getpid());
    assert_non_null(strstr(error.message, wanted));
    assert_int_equal(task_status_list("claims", true, &tasks, &count, NULL), TOKMAP_OK);
    assert_int_equal(count, 1);
    assert_true(tasks[0].moving);
    const uint64_t counter = tasks[0].counter;
    free(tasks);
    task_claim_report(claim, &work);
    assert_false(task_claim_lost(claim));
    task_claim_end(claim, TASK_DONE);
    assert_int_equal(task_claim_take(&second, "claims", 1, 3, NULL, NULL, &error), TOKMAP_OK);
    task_claim_end(second, TASK_DONE);
    /* The file of another version is not listed, and a task that has the number replaces it. */
    file_write_text("claims/task-2-of-3.status", "tokmap-task 3\ntask 2 3\n");
    assert_int_equal(task_status_list("claims", true, &tasks, &count, NULL), TOKMAP_OK);
    assert_int_equal(count, 1);
    free(tasks);
    assert_int_equal(task_claim_take(&second, "claims", 2, 3, NULL, NULL, &error), TOKMAP_OK);
    task_claim_end(second, TASK_DONE);
    assert_int_equal(task_status_list("claims", true, &tasks, &count, NULL), TOKMAP_OK);
    assert_int_equal(count, 2);
    assert_int_equal(tasks[1].task, 2);
    free(tasks);
    assert_int_equal(unlink("claims/task-2-of-3.status"), 0);
    assert_int_equal(task_status_list("claims", true, &tasks, &count, NULL), TOKMAP_OK);
    assert_int_equal(count, 1);
    assert_int_equal(tasks[0].state, TASK_DONE);
    assert_true(tasks[0].counter > counter + 1);
    free(tasks);
    assert_int_equal(task_status_list("nothing", true, &tasks, &count, NULL), TOKMAP_ERROR_NOT_FOUND);
}

/* Where another process writes the file, because no lock keeps it away, the first one learns it and leaves the file. */
static void test_claim_lost(void **unused)
{
    (void)unused;
    struct tokmap_error error = {0};
    struct task_claim *claim;
    struct task_status other = {.task = 0, .tasks = 1, .process = 4711, .nonce = 1, .host = "node17"}, *tasks;
    char text[TASK_STATUS_BYTES + 1] = "";
    size_t count;
    assert_int_equal(chdir(folder), 0);
    (void)mkdir("lost", 0777);
    assert_int_equal(task_claim_take(&claim, "lost", 0, 1, NULL, NULL, &error), TOKMAP_OK);
    task_status_write(&other, text);
    file_write_text("lost/task-0-of-1.status", text);
    for (int i = 0; i < 600 && !task_claim_lost(claim); i++)
        (void)usleep(20000);
    assert_true(task_claim_lost(claim));
    assert_int_equal(task_claim_lost_error(claim, &error), TOKMAP_ERROR_BUSY);
    assert_non_null(strstr(error.message, "process 4711 on host node17"));
    task_claim_end(claim, TASK_FAILED);
    assert_int_equal(task_status_list("lost", false, &tasks, &count, NULL), TOKMAP_OK);
    assert_int_equal(tasks[0].process, 4711);
    free(tasks);
}

/* What a process finds out about the others that share its work. */
static void test_watch(void **unused)
{
    (void)unused;
    struct task_claim *first, *last;
    struct task_watch watch = {.count = 0};
    struct tokmap_error error;
    const struct task_work compares = {.stage = TASK_COMPARES};
    assert_int_equal(chdir(folder), 0);
    (void)mkdir("watched", 0777);
    assert_int_equal(task_watch_look(&watch, "watched", 1, TASK_SCANS), TASK_OTHERS_NONE);
    assert_int_equal(task_claim_take(&first, "watched", 0, 3, NULL, NULL, &error), TOKMAP_OK);
    assert_int_equal(task_watch_look(&watch, "watched", 0, TASK_SCANS), TASK_OTHERS_NONE); /* itself */
    assert_int_equal(task_watch_look(&watch, "watched", 1, TASK_SCANS), TASK_OTHERS_WORK);
    assert_int_equal(watch.found.task, 0);
    task_claim_wait(first, true);
    assert_int_equal(task_watch_look(&watch, "watched", 1, TASK_SCANS), TASK_OTHERS_WAIT);
    assert_int_equal(task_watch_look(&watch, "watched", 1, TASK_COMPARES), TASK_OTHERS_WORK); /* it will wake up */
    assert_int_equal(task_claim_take(&last, "watched", 2, 3, NULL, NULL, &error), TOKMAP_OK);
    task_claim_report(last, &compares);
    task_claim_wait(last, true);
    assert_int_equal(task_watch_look(&watch, "watched", 1, TASK_SCANS), TASK_OTHERS_WORK);
    task_claim_end(first, TASK_DONE);
    assert_int_equal(task_watch_look(&watch, "watched", 1, TASK_COMPARES), TASK_OTHERS_NONE); /* 2 waits for 1 */
    assert_int_equal(task_watch_look(&watch, "watched", 3, TASK_COMPARES), TASK_OTHERS_WAIT);
    task_claim_end(last, TASK_DONE);
    assert_int_equal(task_watch_look(&watch, "watched", 3, TASK_COMPARES), TASK_OTHERS_NONE);
    task_watch_free(&watch);
}

static void test_record(void **unused)
{
    (void)unused;
    struct unit_result *result = calloc(1, sizeof *result), *read = calloc(1, sizeof *read);
    const struct shuffle_sorted none = {.count = 0};
    struct histogram lengths, sum;
    struct tokmap_error error = {0};
    struct pack_options made_by = {.vocabulary = 1000, .shard_tokens = 10, .unit_bytes = 100, .eod_id = 7};
    bool is_folder;
    made_by.corpus = (struct corpus_options){.content = CORPUS_CONTENT_IDS, .field = "ids"};
    assert_non_null(result);
    assert_non_null(read);
    assert_int_equal(chdir(folder), 0);
    assert_true(histogram_new(&lengths) && histogram_new(&sum));
    for (uint64_t i = 0; i < 10000; i++)
        histogram_add(&lengths, i * i, i);
    result->pack.tokens = 12345;
    result->pack.sets[0].documents = 3;
    result->skipped.items = 7;
    uint64_t key, other;
    assert_true(unit_record_key(&made_by, &key));
    made_by.shard_tokens = 11;
    assert_true(unit_record_key(&made_by, &other) && other != key);
    const struct stage_id id = unit_record_id(".", key, 12), wrong = unit_record_id(".", other, 12);
    assert_int_equal(unit_record_read(&id, read, &sum, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(unit_record_write(&id, result, &lengths, &none, NULL, false, &error), TOKMAP_OK);
    assert_true(file_exists("packed-000012"));
    for (int i = 0; i < 2; i++) /* the lengths are added */
        assert_int_equal(unit_record_read(&id, read, &sum, NULL, &error), TOKMAP_OK);
    assert_memory_equal(read, result, sizeof *read);
    assert_int_equal(sum.count, 2 * lengths.count);
    assert_int_equal(sum.largest, lengths.largest);
    assert_true(sum.sum == 2 * lengths.sum);
    assert_int_equal(histogram_percentile(&sum, 900), histogram_percentile(&lengths, 900));
    assert_int_equal(unit_record_read(&wrong, read, &sum, NULL, &error), TOKMAP_ERROR_CORRUPT); /* other work */
    const struct stage_id moved = unit_record_id(".", key, 13), cut = unit_record_id(".", key, 14);
    assert_int_equal(rename("packed-000012", "packed-000013"), 0); /* of another unit */
    assert_int_equal(unit_record_read(&moved, read, NULL, NULL, &error), TOKMAP_ERROR_CORRUPT);
    struct stat found;
    assert_int_equal(stat("packed-000013", &found), 0);
    for (off_t bytes = 0; bytes < found.st_size; bytes += found.st_size / 50 + 1) {
        assert_int_equal(unit_record_write(&cut, result, &lengths, &none, NULL, false, &error), TOKMAP_OK);
        assert_int_equal(truncate("packed-000014", bytes), 0);
        assert_int_equal(unit_record_read(&cut, read, &sum, NULL, &error), TOKMAP_ERROR_CORRUPT);
    }
    assert_true(unit_is_name("unit-000012.work", &is_folder) && is_folder);
    assert_true(unit_is_name("unit-1000012.skipped", &is_folder) && !is_folder);
    assert_false(unit_is_name("unit-12.skipped", &is_folder));
    assert_false(unit_is_name("unit-000012.bin", &is_folder));
    histogram_free(&lengths);
    histogram_free(&sum);
    free(result);
    free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),       cmocka_unit_test(test_shares), cmocka_unit_test(test_borders),
        cmocka_unit_test(test_status_text), cmocka_unit_test(test_claim),  cmocka_unit_test(test_claim_lost),
        cmocka_unit_test(test_record),      cmocka_unit_test(test_watch),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
