/* SPDX-License-Identifier: MIT */
/* test_finish.c - the end of a shuffle by tasks whose stages are all complete: nothing but the names is missing. It is
 * run twice, killed at each step, and interrupted at each step by another process; and each file that it needs is
 * missing once, where what the message says to do must help.
 *
 * A step is a call that changes files: open, pwrite, rename, unlink, rmdir. This file has those functions, and at a
 * step of its choice does what another process could do just then. So nothing here depends on time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pack/pack_finish.h"
#include "pack/pack_tasks.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"

#define ALL UINT64_MAX /* in place of the number of a task: --finish */

static const char *const operands[] = {"a.jsonl", "b.jsonl"};
static const struct split split = {.seed = 1, .count = 2, .sets = {{"a", "0.75", 0}, {"b", "0.25", (uint64_t)3 << 62}}};
static struct pack_shuffle shuffle = {.seed = 5, .memory = 65536};
static struct drop_options drop = {.duplicates = true};
static struct tokenizer *tokenizer;
static struct work_units units;
static struct tokmap_error error;
static struct pack_tasks_outcome outcome;
static bool replaces;
static enum kind {
    UNITS,
    SHUFFLED,
    DROPPED
} kind; /* DROPPED: shuffled, without duplicates, of which there is a list */

/* ---- steps ---- */

static int64_t steps; /* until `at_step` is called; below 0: steps are only counted */
static void (*at_step)(void);

static void step(void)
{
    void (*now)(void) = at_step;
    steps--;
    if (steps || !now)
        return;
    at_step = NULL;
    now();
}

/* <fcntl.h> gives open() the name open64() on systems that have both. */
enum { AT_WORKING_FOLDER = -100, CREATE = 0100 };
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

static int open_here(const char *path, int flags, int mode)
{
    if (flags & CREATE)
        step();
    return (int)syscall(SYS_openat, AT_WORKING_FOLDER, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int fd = open_here(path, flags, flags & CREATE ? va_arg(list, int) : 0);
    va_end(list);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int fd = open_here(path, flags, flags & CREATE ? va_arg(list, int) : 0);
    va_end(list);
    return fd;
}

int rename(const char *from, const char *into)
{
    step();
    return (int)syscall(SYS_renameat2, AT_WORKING_FOLDER, from, AT_WORKING_FOLDER, into, 0);
}

static bool ends_before_journal; /* a process that is killed when all is named, and the journal is still there */

int unlink(const char *path)
{
    const size_t bytes = strlen(path), journal = strlen("/journal");
    step();
    if (ends_before_journal && bytes > journal && !strcmp(path + bytes - journal, "/journal"))
        (void)kill(getpid(), SIGKILL);
    return (int)syscall(SYS_unlinkat, AT_WORKING_FOLDER, path, 0);
}

/* A process that waits for another one, which is this one, is stopped. */
static bool beside, waits;

int nanosleep(const struct timespec *time, struct timespec *left)
{
    waits = waits || beside;
    return beside ? 0 : (int)syscall(SYS_nanosleep, time, left);
}

static bool stop(void *unused)
{
    (void)unused;
    step();
    return waits;
}

/* ---- work ---- */

static void input_make(const char *name, int documents, int first)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    for (int i = first; i < first + documents; i++)
        (void)fprintf(file, "{\"text\":\"document %d of %d\"}\n", i % 50, i * 7 % 50);
    assert_int_equal(fclose(file), 0);
}

static enum tokmap_status run(uint64_t task, uint64_t tasks)
{
    struct pack_options pack = {.prefix = "d/out",
                                .threads = 1,
                                .tokenizer = tokenizer,
                                .eod_id = 256,
                                .bos_id = TOKMAP_NO_ID,
                                .shard_tokens = 300,
                                .unit_bytes = 700,
                                .split = &split,
                                .shuffle = kind == UNITS ? NULL : &shuffle,
                                .drop = kind == DROPPED ? &drop : NULL,
                                .replace = replaces,
                                .stop = stop};
    pack.corpus.field = "text";
    pack.corpus.record_limit = pack.corpus.document_limit = 1 << 20;
    const struct pack_tasks_options options = {
        .pack = &pack,
        .operands = operands,
        .operand_count = 2,
        .units = &units,
        .share = {
            .task = task == ALL ? 0 : task, .tasks = task == ALL ? 1 : tasks, .finish = task == ALL, .at_once = true}};
    struct pack_result *result = malloc(sizeof *result);
    assert_non_null(result);
    memset(&error, 0, sizeof error);
    const enum tokmap_status status = pack_tasks_run(&options, result, &outcome, &error);
    free(result);
    return status;
}

static void must(uint64_t task, uint64_t tasks)
{
    const enum tokmap_status status = run(task, tasks);
    if (status)
        fail_msg("status %d: %s: %s", (int)status, error.path, error.message);
}

/* ---- folders ---- */

enum state { EMPTY, REF, COMPLETE, COMPLETE_OLD };

/* Where a state of the folder d is kept: nothing; the output; all but its names; the same with an old output. */
static const char *kept(enum state state)
{
    static char name[20];
    static const char *const names[] = {"empty", "ref", "complete", "complete_old"};
    (void)snprintf(name, sizeof name, "%s%d", names[state], (int)kind);
    return name;
}

static int name_compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Calls each() with the path of every file below a folder, in order of names. */
static void files_each(const char *path, void (*each)(const char *path, bool is_folder))
{
    struct dirent **list = NULL;
    const int count = scandir(path, &list, is_entry, name_compare);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        char below[600];
        struct stat found;
        (void)snprintf(below, sizeof below, "%s/%s", path, list[i]->d_name);
        free(list[i]);
        assert_int_equal(lstat(below, &found), 0);
        each(below, S_ISDIR(found.st_mode));
        if (S_ISDIR(found.st_mode))
            files_each(below, each);
    }
    free(list);
}

static char listing[2][8192];

static void entry_list(const char *path, bool is_folder)
{
    const size_t used = strlen(listing[0]);
    assert_true(used + strlen(path) + 2 < sizeof listing[0]);
    (void)sprintf(listing[0] + used, "%s\n", strchr(path, '/') + 1);
    if (!is_folder && !strncmp(path, "d/", 2)) {
        char known[700];
        size_t a_bytes, b_bytes;
        (void)snprintf(known, sizeof known, "%s%s", kept(REF), path + 1);
        if (!file_exists(known))
            return;
        void *a = file_read(path, &a_bytes), *b = file_read(known, &b_bytes);
        if (a_bytes != b_bytes || memcmp(a, b, a_bytes) != 0)
            fail_msg("%s differs", path);
        free(a);
        free(b);
    }
}

/* Whether d has the names and bytes of the output, and nothing else. */
static bool is_whole(void)
{
    listing[0][0] = '\0';
    files_each(kept(REF), entry_list);
    memcpy(listing[1], listing[0], sizeof listing[0]);
    listing[0][0] = '\0';
    files_each("d", entry_list);
    return !strcmp(listing[0], listing[1]);
}

static void whole(const char *what, int64_t number)
{
    if (!is_whole())
        fail_msg("%s %d leaves:\n%s", what, (int)number, listing[0]);
}

static void state_keep(enum state state)
{
    scratch_double("d", kept(state), ".status");
}

static void state_take(enum state state)
{
    at_step = NULL;
    scratch_double(kept(state), "d", ".status");
}

/* Runs all tasks where the lock cannot be taken at the end. */
static void complete_make(void)
{
    assert_int_equal(mkdir("d/out.partial", 0777), 0);
    assert_int_not_equal(run(0, 1), TOKMAP_OK);
    assert_int_equal(rmdir("d/out.partial"), 0);
}

static int finish_setup(void **state)
{
    const struct corpus_options corpus = {.field = "text", .record_limit = 1 << 20, .document_limit = 1 << 20};
    const struct work_units_options list = {
        .operands = operands, .operand_count = 2, .corpus = &corpus, .unit_bytes = 700};
    if (setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL))
        return -1;
    input_make("a.jsonl", 40, 0);
    input_make("b.jsonl", 15, 30);
    if (work_units_list(&units, &list, &error))
        return -1;
    for (kind = UNITS; kind <= DROPPED; kind++) {
        scratch_remove("d");
        assert_int_equal(mkdir("d", 0777), 0);
        state_keep(EMPTY);
        must(0, 1);
        state_keep(REF);
        state_take(EMPTY);
        complete_make();
        state_keep(COMPLETE);
        state_take(REF);
        replaces = true;
        complete_make();
        state_keep(COMPLETE_OLD);
        replaces = false;
    }
    return 0;
}

static int finish_teardown(void **state)
{
    work_units_free(&units);
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

/* ---- tests ---- */

static void test_twice(void **unused)
{
    (void)unused;
    kind = DROPPED;
    state_take(COMPLETE);
    must(ALL, 0);
    assert_true(outcome.finished && !outcome.by_other);
    whole("finish", 0);
    assert_int_equal(run(ALL, 0), TOKMAP_ERROR_EXISTS);
    assert_non_null(strstr(error.message, "the output already exists"));
    whole("finish", 1);
    replaces = true;
    assert_int_equal(run(ALL, 0), TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "there is no unfinished work of this output; run its tasks first"));
    whole("finish", 2);
    replaces = false;
}

static void die(void)
{
    (void)kill(getpid(), SIGKILL);
}

/* Runs --finish in a process that is killed at a step; false if it has fewer. */
static bool killed(int64_t number)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        steps = number;
        at_step = die;
        _exit(run(ALL, 0) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || !WEXITSTATUS(status));
    return WIFSIGNALED(status);
}

/* Each kill is followed by --finish. */
static void all_killed(enum kind which, enum state from, int64_t stride)
{
    int64_t number = 1;
    uint64_t ended = 0;
    kind = which;
    replaces = from == COMPLETE_OLD;
    state_take(from);
    for (; killed(number); number += stride) {
        /* Where an old output is replaced, nothing says whose work there was as soon as its journal is removed. */
        const enum tokmap_status over = replaces ? TOKMAP_ERROR_NOT_FOUND : TOKMAP_ERROR_EXISTS;
        const enum tokmap_status status = run(ALL, 0);
        if (status && (status != over || strstr(error.message, "missing")))
            fail_msg("step %d: status %d: %s: %s", (int)number, (int)status, error.path, error.message);
        ended += !status;
        whole("a kill at step", number);
        state_take(from);
    }
    assert_true(number > 40 && ended && (int64_t)ended < number / stride);
    replaces = false;
}

static void test_killed(void **unused)
{
    (void)unused;
    all_killed(SHUFFLED, COMPLETE, 1);
    all_killed(SHUFFLED, COMPLETE_OLD, 1);
    all_killed(UNITS, COMPLETE_OLD, 1);
    all_killed(DROPPED, COMPLETE, 7);
}

static enum tokmap_status other_status;
static struct pack_tasks_outcome other_outcome;
static uint64_t other_task;
static bool other_replaces;

static void other_run(void)
{
    const struct tokmap_error own = error;
    const struct pack_tasks_outcome kept = outcome;
    const bool replacing = replaces;
    replaces = other_replaces;
    beside = true;
    other_status = run(other_task, 1);
    beside = waits = false;
    other_outcome = outcome;
    if (other_status != TOKMAP_OK && other_status != TOKMAP_ERROR_EXISTS && other_status != TOKMAP_ERROR_NOT_FOUND &&
        other_status != TOKMAP_ERROR_BUSY && other_status != TOKMAP_ERROR_INTERRUPTED)
        fail_msg("the other one ends with %d: %s: %s", (int)other_status, error.path, error.message);
    replaces = replacing;
    error = own;
    outcome = kept;
}

/* Runs a task, or --finish, from `from` on as often as it has steps, each time with another one at the next step.
 * wanted: the other one ends well, at least once. */
static void interleave(enum state from, uint64_t task, uint64_t other, int64_t stride, bool wanted)
{
    uint64_t finished = 0;
    for (int64_t number = 1;; number += stride) {
        state_take(from);
        other_task = other;
        other_status = TOKMAP_END;
        steps = number;
        at_step = other_run;
        const enum tokmap_status status = run(task, 1);
        if (at_step)
            break;
        const bool both_finish = task == ALL && other_status == TOKMAP_ERROR_BUSY;
        if (status && !both_finish)
            fail_msg("step %d: status %d: %s: %s", (int)number, (int)status, error.path, error.message);
        assert_true(outcome.finished || other_outcome.finished);
        finished += !other_status;
        whole("step", number);
    }
    assert_true(finished || !wanted);
}

static void test_two_at_a_time(void **unused)
{
    (void)unused;
    for (kind = UNITS; kind <= SHUFFLED; kind++) {
        interleave(COMPLETE, ALL, ALL, kind == SHUFFLED ? 1 : 3, true);
        interleave(COMPLETE, ALL, 0, 5, true);
        interleave(COMPLETE, 0, ALL, kind == SHUFFLED ? 1 : 2, true);
        interleave(EMPTY, 0, ALL, 83, false);
    }
}

static uint64_t others_killed;

static void other_is_killed(void)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        ends_before_journal = beside = true;
        (void)run(ALL, 1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    others_killed += WIFSIGNALED(status);
}

/* While a task is at a step, another process names everything, and is killed before it removes the journal. The task
 * ends well, and removes what is left. */
static void test_named_by_a_killed_one(void **unused)
{
    (void)unused;
    others_killed = 0;
    kind = UNITS;
    for (int64_t number = 1;; number++) {
        state_take(COMPLETE);
        steps = number;
        at_step = other_is_killed;
        const enum tokmap_status status = run(0, 1);
        if (at_step)
            break;
        if (status)
            fail_msg("step %d: status %d: %s: %s", (int)number, (int)status, error.path, error.message);
        assert_true(outcome.finished);
        whole("a killed one at step", number);
    }
    assert_true(others_killed > 3);
}

/* Work that replaces an output continues, whoever forgets to say that the output is to be replaced. */
static void test_replaced(void **unused)
{
    (void)unused;
    replaces = true;
    kind = SHUFFLED;
    interleave(REF, 0, ALL, 23, false);
    other_replaces = true;
    interleave(COMPLETE_OLD, ALL, ALL, 1, true);
    kind = DROPPED;
    other_replaces = false;
    interleave(REF, 0, ALL, 97, false);
    replaces = false;
}

static void part_remove(const char *name, unsigned number)
{
    char path[100];
    (void)snprintf(path, sizeof path, "d/out.work/%s-%06u", name, number);
    assert_int_equal(unlink(path), 0);
}

/* Does what the message says. */
static void advice_follow(unsigned number)
{
    char sorted[100];
    (void)snprintf(sorted, sizeof sorted, "remove sorted-%06u and cuts-000000", number);
    assert_non_null(strstr(error.message, "run "));
    if (strstr(error.message, "remove the file merged- with its number")) {
        part_remove("merged", number);
    } else if (strstr(error.message, sorted)) {
        part_remove("sorted", number);
        part_remove("cuts", 0);
    } else {
        assert_null(strstr(error.message, "remove"));
    }
    must(0, 1);
}

static void missing_try(const char *path, bool is_folder)
{
    char own[700], named[40];
    const char *dash = strrchr(path, '/') + strcspn(strrchr(path, '/'), "-");
    const unsigned number = *dash ? (unsigned)strtoul(dash + 1, NULL, 10) : 0;
    if (is_folder)
        return;
    state_take(COMPLETE);
    (void)snprintf(own, sizeof own, "d%s", strchr(path, '/'));
    assert_int_equal(remove(own), 0);
    const enum tokmap_status status = run(ALL, 0);
    if (status) {
        assert_false(file_exists("d/out.a") || file_exists("d/out.b"));
        (void)snprintf(named, sizeof named, "missing: %u (counted from 0)", number);
        if (!strstr(error.message, named) && !strstr(error.path, strrchr(path, '/')) &&
            !strstr(error.message, strrchr(path, '/') + 1) && !strstr(error.message, "there is no unfinished work"))
            fail_msg("without %s: %s: %s", path, error.path, error.message);
        advice_follow(number);
    } else if (!strstr(path, "chunks-")) {
        fail_msg("without %s", path);
    }
    whole("a missing file", number);
}

static void test_missing(void **unused)
{
    (void)unused;
    kind = DROPPED;
    files_each(kept(COMPLETE), missing_try);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twice),         cmocka_unit_test(test_killed),
        cmocka_unit_test(test_two_at_a_time), cmocka_unit_test(test_named_by_a_killed_one),
        cmocka_unit_test(test_replaced),      cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, finish_setup, finish_teardown);
}
