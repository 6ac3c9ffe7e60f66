/* SPDX-License-Identifier: MIT */
/* test_work_busy.c - processes that meet at one output: none removes the work of another, begins beside one that packs
 * in one piece, or takes its lock for a sign that the work is complete. The locks of the others are taken here, so
 * nothing depends on time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/name_files.h"
#include "format/partial_file.h"
#include "pack/pack_tasks.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"
#include "work/set_commit.h"
#include "work/task_status.h"

#define DOCUMENTS 60
#define NAME "out/d"
#define WORK NAME ".work"

static const char *const operands[] = {"a.jsonl"};
static struct tokenizer *tokenizer;
static struct pack_result result;
static struct pack_tasks_outcome outcome;
static struct tokmap_error error;
static uint64_t units;
static int lock = -1;
/* What happens when a task has done its share and looks for the others' the second time: it waits for the lock. */
static enum { NOTHING, RELEASE, RECORD, STOP } then;
static unsigned looks; /* since it has done its share */

static void input_make(const char *name, int documents)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    for (int i = 0; i < documents; i++)
        (void)fprintf(file, "{\"text\":\"document %d of many, and the rest is %d\"}\n", i, i * 7 % 99);
    assert_int_equal(fclose(file), 0);
}

static int busy_setup(void **state)
{
    if (setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL))
        return -1;
    input_make("a.jsonl", DOCUMENTS);
    return 0;
}

static int busy_teardown(void **state)
{
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

static void out_make(void)
{
    assert_int_equal(system("rm -rf out"), 0);
    assert_int_equal(mkdir("out", 0777), 0);
}

static void take(const char *path)
{
    assert_int_equal(partial_file_open(path, NULL, NULL, &lock), 0);
}

static void release(const char *path)
{
    assert_int_equal(unlink(path), 0);
    os_close(lock);
    lock = -1;
}

/* Whether task 1 of 2 has done its share. */
static bool is_done(void)
{
    struct task_status *list;
    size_t count;
    bool done = false;
    if (task_status_list(WORK, false, &list, &count, NULL))
        return false;
    for (size_t i = 0; i < count; i++)
        done = done || (list[i].task == 1 && list[i].state == TASK_DONE);
    free(list);
    return done;
}

static bool stop(void *unused)
{
    (void)unused;
    if (then == NOTHING || !is_done() || ++looks <= units) /* it reads the record of each unit first */
        return false;
    if (then == RELEASE && lock >= 0)
        release(NAME ".partial");
    if (then == RECORD)
        file_write_text(WORK "/naming", "");
    return then == STOP;
}

static enum tokmap_status packed(uint64_t task, uint64_t tasks, bool start_over, bool replace)
{
    struct work_units list;
    struct pack_options options = {.prefix = NAME,
                                   .threads = 1,
                                   .tokenizer = tokenizer,
                                   .eod_id = 256,
                                   .bos_id = TOKMAP_NO_ID,
                                   .shard_tokens = 1000,
                                   .unit_bytes = 1000,
                                   .start_over = start_over,
                                   .replace = replace,
                                   .stop = stop};
    options.corpus.field = "text";
    options.corpus.record_limit = options.corpus.document_limit = 1 << 20;
    memset(&error, 0, sizeof error);
    looks = 0;
    const struct work_units_options listing = {
        .operands = operands, .operand_count = 1, .corpus = &options.corpus, .unit_bytes = options.unit_bytes};
    assert_int_equal(work_units_list(&list, &listing, &error), TOKMAP_OK);
    units = list.count;
    assert_true(units > 2);
    const struct pack_tasks_options work = {.pack = &options,
                                            .operands = operands,
                                            .operand_count = 1,
                                            .units = &list,
                                            .share = {.task = task, .tasks = tasks}};
    const enum tokmap_status status = pack_tasks_run(&work, &result, &outcome, &error);
    work_units_free(&list);
    return status;
}

static void must(uint64_t task, uint64_t tasks, bool start_over, bool replace)
{
    if (packed(task, tasks, start_over, replace))
        fail_msg("%s", error.message);
}

/* Packs all, and sees that nothing is left. */
static void complete(uint64_t task, uint64_t tasks, bool start_over, bool replace)
{
    must(task, tasks, start_over, replace);
    assert_true(outcome.finished && !outcome.by_other);
    assert_int_equal(result.counts.documents, DOCUMENTS);
    assert_true(file_exists(NAME));
    assert_false(file_exists(WORK));
    assert_false(file_exists(NAME ".partial"));
}

static void start_over_refused(const char *message)
{
    assert_int_equal(packed(0, 1, true, false), TOKMAP_ERROR_BUSY);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
    assert_false(result.kept); /* by this process */
    assert_true(file_exists(WORK "/journal"));
    assert_true(file_exists(WORK "/packed-000000"));
}

/* Whoever starts over does not remove what a process is at work on. */
static void test_start_over(void **unused)
{
    (void)unused;
    struct task_claim *claim;
    char process[64];
    out_make();
    must(0, 2, false, false);
    (void)snprintf(process, sizeof process, "process %ld on host", (long)getpid());
    assert_int_equal(task_claim_take(&claim, WORK, 1, 2, NULL, NULL, &error), TOKMAP_OK);
    start_over_refused(process);
    task_claim_end(claim, TASK_DONE);
    take(NAME ".partial"); /* it names the shards, or packs in one piece */
    start_over_refused("another process is writing this output");
    release(NAME ".partial");
    assert_int_equal(os_open(WORK "/journal", OS_READ_NOW, &lock), 0); /* it packs in one piece */
    assert_int_equal(flock(lock, LOCK_EX), 0);
    start_over_refused("another process is writing this output");
    os_close(lock);
    take(WORK "/journal.new");
    start_over_refused("another process is writing this output");
    release(WORK "/journal.new");
    assert_false(file_exists(NAME ".partial"));
    complete(0, 1, true, false);
}

/* No task begins beside a process that packs in one piece and has no journal yet. */
static void test_begin(void **unused)
{
    (void)unused;
    static const char *const locks[] = {NAME ".partial", NAME ".tmx.partial"};
    for (int i = 0; i < 2; i++) {
        out_make();
        take(locks[i]);
        assert_int_equal(packed(0, 2, false, false), TOKMAP_ERROR_BUSY);
        assert_non_null(strstr(error.message, "another process is writing this output"));
        assert_false(file_exists(WORK));
        release(locks[i]);
    }
    complete(0, 1, false, false);
}

/* A task that finds the lock taken when all units are finished leaves the rest to the other process only if that has
 * recorded that the set is complete. */
static void test_end(void **unused)
{
    (void)unused;
    for (then = RELEASE; then <= STOP; then++) {
        out_make();
        must(0, 2, false, false);
        take(NAME ".partial");
        const enum tokmap_status status = packed(1, 2, false, false);
        assert_true(looks > units);
        if (then == STOP)
            assert_int_equal(status, TOKMAP_ERROR_INTERRUPTED);
        else if (status)
            fail_msg("%s", error.message);
        if (then == RECORD)
            assert_true(outcome.by_other && !outcome.finished);
        else
            assert_false(outcome.by_other);
        assert_int_equal(outcome.finished, then == RELEASE);
        assert_int_equal(file_exists(NAME), then == RELEASE);
        if (lock >= 0)
            release(NAME ".partial");
    }
    then = NOTHING;
    complete(1, 2, false, false);
}

/* ---- what a killed process has left ---- */

static void unit_make(void)
{
    out_make();
    assert_int_equal(mkdir(WORK, 0777), 0);
    file_write_text(WORK "/d-00000.bin.ready", "tokens");
    file_write_text(WORK "/d-00000.tmx.ready", "index");
    file_write_text(WORK "/journal", "facts");
}

/* A process was killed while it removed what it no longer needed: the next one removes the rest, and packs nothing. */
static void test_killed_clearing(void **unused)
{
    (void)unused;
    for (int replace = 0; replace < 2; replace++) {
        out_make();
        must(0, 2, false, false);
        assert_int_equal(system("cp -rp " WORK " kept"), 0);
        complete(1, 2, false, false);
        assert_int_equal(rename("kept", WORK), 0);
        const uint64_t shards = result.shards;
        FILE *note = fopen(WORK "/naming", "wb");
        assert_non_null(note);
        (void)fputs(NAME_FILES_HEAD, note);
        for (uint64_t k = 0; k < shards; k++)
            (void)fprintf(note, "1\nd.work/d-%05llu.tmx.ready\nd-%05llu.tmx\n", (unsigned long long)k,
                          (unsigned long long)k);
        (void)fputs("2\nd.work/d.ready\nd\nend\n", note);
        assert_int_equal(fclose(note), 0);
        must(1, 2, false, replace);
        assert_true(outcome.finished && outcome.by_other);
        assert_int_equal(outcome.text_now, 0);
        assert_false(file_exists(WORK));
        assert_false(file_exists(NAME ".partial"));
        assert_true(file_exists(NAME));
    }
}

#define NOTE                                                                                                           \
    NAME_FILES_HEAD "0\nd.work/d-00000.bin.ready\nd-00000.bin\n1\nd.work/d-00000.tmx.ready\nd-00000.tmx\n"             \
                    "2\nd.work/d.ready\nd\nend\n"

/* A process that packed in one piece, without a journal, was killed while it named its shards: its set is completed,
 * and is not taken for that of the tasks. */
static void test_killed_naming(void **unused)
{
    (void)unused;
    unit_make();
    assert_int_equal(unlink(WORK "/journal"), 0);
    file_write_text(WORK "/d.ready", "tokmap-shards 1\nd-00000\n");
    file_write_text(WORK "/naming", NOTE);
    assert_int_equal(packed(0, 1, false, false), TOKMAP_ERROR_EXISTS);
    assert_true(file_exists(NAME) && file_exists(NAME "-00000.bin"));
    assert_false(file_exists(WORK));
    unit_make();
    assert_int_equal(unlink(WORK "/journal"), 0);
    file_write_text(WORK "/d.ready", "tokmap-shards 1\nd-00000\n");
    file_write_text(WORK "/naming", NOTE);
    complete(0, 1, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_over),      cmocka_unit_test(test_begin),         cmocka_unit_test(test_end),
        cmocka_unit_test(test_killed_clearing), cmocka_unit_test(test_killed_naming),
    };
    return cmocka_run_group_tests(tests, busy_setup, busy_teardown);
}
