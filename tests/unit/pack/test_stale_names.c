/* SPDX-License-Identifier: MIT */
/* test_stale_names.c - between the moment in which a process opens an unfinished file and that in which it locks it,
 * another process may rename the file, or remove it. Whoever has then locked a file that is a finished one by now, or
 * that has no name any more, must begin again or give up, and write nothing to it.
 *
 * This file has flock(), so it does what the other process does at exactly that moment, and nothing depends on time. A
 * lock belongs to an open file, not to a process, so one process can have the part of both. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/partial_file.h"
#include "support/scratch_folder.h"
#include "work/stage_file.h"
#include "work/work_folder.h"

#define NAME "name"
#define PARTIAL NAME ".partial"
#define NAMED "what the other process has written"
#define KEY UINT64_C(0x1234567890abcdef)

static struct tokmap_error error;
static void (*before_lock)(void);
static int64_t locks; /* of this process until before_lock() is called; below 0: it is called at each of them */
static int other_fd = -1;

int flock(int fd, int how)
{
    static bool inside;
    if (before_lock && !inside && (locks < 0 || (locks && !--locks))) {
        inside = true;
        before_lock();
        inside = false;
    }
    return (int)syscall(SYS_flock, fd, how);
}

/* ---- what the other process does ---- */

static void file_remove(void)
{
    assert_int_equal(unlink(PARTIAL), 0);
}

/* Finishes the file. */
static void file_name(void)
{
    file_write_text(PARTIAL, NAMED);
    assert_int_equal(rename(PARTIAL, NAME), 0);
}

/* Makes a new one, and is killed. */
static void file_leave(void)
{
    const int fd = open(PARTIAL, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(fd >= 0 && write(fd, "left", 4) == 4);
    assert_int_equal(close(fd), 0);
}

/* Makes a new one, and fills it. */
static void file_hold(void)
{
    file_leave();
    other_fd = open(PARTIAL, O_WRONLY);
    assert_true(other_fd >= 0);
    assert_int_equal(flock(other_fd, LOCK_EX | LOCK_NB), 0);
}

static void remove_leave(void)
{
    file_remove();
    file_leave();
}

static void remove_hold(void)
{
    file_remove();
    file_hold();
}

static void name_leave(void)
{
    file_name();
    file_leave();
}

static void name_hold(void)
{
    file_name();
    file_hold();
}

static const struct {
    void (*act)(void);
    bool names, leaves, holds; /* there is then a finished file; an unfinished one; and it is locked */
} acts[] = {{file_remove, false, false, false}, {file_name, true, false, false}, {remove_leave, false, true, false},
            {remove_hold, false, true, true},   {name_leave, true, true, false}, {name_hold, true, true, true}};
#define ACTS (sizeof acts / sizeof acts[0])

/* ---- the process that is late ---- */

static uint64_t leftovers; /* calls of leftover() */

static int leftover(void *unused)
{
    (void)unused;
    leftovers++;
    return 0;
}

static void begin(bool left)
{
    (void)unlink(NAME);
    (void)unlink(PARTIAL);
    if (left)
        file_leave();
    leftovers = 0;
}

/* How many descriptors are open, if the lowest ones are. */
static int lowest_free(void)
{
    const int fd = open(".", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    return fd;
}

static bool is_named(int fd)
{
    struct stat own, named;
    assert_int_equal(fstat(fd, &own), 0);
    return !lstat(PARTIAL, &named) && own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

static void text_check(const char *path, const char *wanted)
{
    size_t bytes;
    char *text = file_read(path, &bytes);
    assert_int_equal(bytes, strlen(wanted));
    assert_memory_equal(text, wanted, bytes);
    free(text);
}

/* After the call: a file that it has opened is the unfinished one and is locked; all others are untouched. */
static void end_check(size_t act, int system, int fd, int free_before)
{
    assert_int_equal(fd >= 0, !system);
    if (!system) {
        const int second = open(PARTIAL, O_WRONLY);
        assert_true(second >= 0 && is_named(fd));
        assert_int_equal(flock(second, LOCK_EX | LOCK_NB), -1);
        assert_int_equal(close(second), 0);
        assert_int_equal(pwrite(fd, "all of this is of the late process", 30, 0), 30);
        assert_int_equal(close(fd), 0);
    }
    if (acts[act].names)
        text_check(NAME, NAMED);
    else
        assert_false(file_exists(NAME));
    if (acts[act].holds) {
        assert_int_equal(system, EWOULDBLOCK);
        assert_true(is_named(other_fd));
        text_check(PARTIAL, "left");
        assert_int_equal(close(other_fd), 0);
        other_fd = -1;
    }
    assert_int_equal(lowest_free(), free_before);
}

/* Creates a file, beside none, or beside one that a killed process has left. */
static void test_open(void **unused)
{
    (void)unused;
    const int free_before = lowest_free();
    for (int left = 0; left < 2; left++)
        for (size_t act = 0; act < ACTS; act++) {
            int fd;
            begin(left);
            before_lock = acts[act].act;
            locks = 1;
            const int system = partial_file_open(PARTIAL, leftover, NULL, &fd);
            before_lock = NULL;
            assert_int_equal(system, acts[act].holds ? EWOULDBLOCK : 0);
            /* The file that the other process has left is one, and a file that it has named is not. */
            assert_int_equal(leftovers, acts[act].leaves && !acts[act].holds);
            end_check(act, system, fd, free_before);
        }
}

/* Continues a file. */
static void test_take(void **unused)
{
    (void)unused;
    const int free_before = lowest_free();
    for (size_t act = 0; act < ACTS; act++) {
        int fd;
        begin(true);
        before_lock = acts[act].act;
        locks = 1;
        const int system = partial_file_take(PARTIAL, &fd);
        before_lock = NULL;
        assert_int_equal(system, acts[act].holds ? EWOULDBLOCK : acts[act].leaves ? 0 : ENOENT);
        end_check(act, system, fd, free_before);
    }
}

/* Another one is faster each time: the late process gives up, and has no file open. */
static void test_gives_up(void **unused)
{
    (void)unused;
    const int free_before = lowest_free();
    int fd;
    begin(false);
    before_lock = name_leave;
    locks = -1;
    assert_int_equal(partial_file_open(PARTIAL, leftover, NULL, &fd), EWOULDBLOCK);
    assert_int_equal(fd, -1);
    assert_int_equal(partial_file_take(PARTIAL, &fd), EWOULDBLOCK);
    assert_int_equal(fd, -1);
    before_lock = NULL;
    assert_int_equal(leftovers, 0);
    text_check(NAME, NAMED);
    text_check(PARTIAL, "left");
    assert_int_equal(lowest_free(), free_before);
}

/* ---- a file of a stage that a killed process has left ---- */

static const uint64_t numbers[2] = {11, 22};

/* Continues the file, and finishes it. Returns how many bytes it has found. */
static uint64_t stage_make(bool killed)
{
    const struct stage_id id = {.folder = ".", .key = KEY, .kind = STAGE_MERGED, .number = 0, .sections = 1};
    struct stage_writer *writer;
    uint64_t section, bytes;
    assert_int_equal(stage_writer_reopen(&writer, &id, &error), TOKMAP_OK);
    assert_int_equal(stage_writer_resume(writer, 1, &section, &bytes, &error), TOKMAP_OK);
    assert_true(!section && bytes <= sizeof numbers);
    assert_int_equal(stage_writer_add(writer, (const char *)numbers + bytes, (killed ? 8 : 16) - bytes, &error),
                     TOKMAP_OK);
    assert_int_equal(killed ? stage_writer_keep(writer, 1, false, &error) : stage_writer_commit(writer, false, &error),
                     TOKMAP_OK);
    stage_writer_free(writer);
    return bytes;
}

static void stage_finish(void)
{
    assert_int_equal(stage_make(false), 8);
}

static void test_stage(void **unused)
{
    (void)unused;
    const struct stage_id id = {.folder = ".", .key = KEY, .kind = STAGE_MERGED, .number = 0, .sections = 1};
    struct stage_writer *writer;
    struct stat before, after;
    (void)stage_make(true);
    before_lock = stage_finish;
    locks = 1;
    assert_int_equal(stage_writer_reopen(&writer, &id, &error), TOKMAP_OK);
    before_lock = NULL;
    uint64_t section, bytes, record[2];
    size_t count;
    char *finished = file_read("merged-000000", &count);
    assert_int_equal(stat("merged-000000", &before), 0);
    assert_int_equal(stage_writer_resume(writer, 1, &section, &bytes, &error), TOKMAP_OK);
    assert_int_equal(bytes, 0);
    for (int i = 0; i < 100000; i++) /* more than its buffer */
        assert_int_equal(stage_writer_add(writer, "12345678", 8, &error), TOKMAP_OK);
    assert_int_equal(stage_writer_keep(writer, 1, false, &error), TOKMAP_OK);
    assert_int_equal(stat("merged-000000", &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
    size_t same;
    char *still = file_read("merged-000000", &same);
    assert_int_equal(same, count);
    assert_memory_equal(still, finished, count);
    assert_int_equal(stage_record_read(&id, 0, 0, record, sizeof record, &error), TOKMAP_OK);
    assert_memory_equal(record, numbers, sizeof numbers);
    stage_writer_free(writer);
    free(finished);
    free(still);
}

/* ---- the journal that another process begins ---- */

/* Names its journal, and ends; and a third process begins one. */
static void journal_begin(void)
{
    assert_int_equal(rename("out.work/journal.new", "out.work/elsewhere"), 0);
    other_fd = open("out.work/journal.new", O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(other_fd >= 0);
    assert_int_equal(flock(other_fd, LOCK_EX | LOCK_NB), 0);
}

static void test_settle(void **unused)
{
    (void)unused;
    assert_int_equal(mkdir("out.work", 0777), 0);
    file_write_text("out.work/journal.new", "left");
    before_lock = journal_begin;
    locks = 1;
    work_folder_settle("out");
    before_lock = NULL;
    assert_true(file_exists("out.work/journal.new"));
    assert_int_equal(close(other_fd), 0);
    assert_int_equal(unlink("out.work/elsewhere"), 0);
    work_folder_settle("out"); /* now it was left */
    assert_false(file_exists("out.work"));
}

static int names_setup(void **state)
{
    return setup(state) || chdir(folder);
}

static int names_teardown(void **state)
{
    return chdir("/") || teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),  cmocka_unit_test(test_take),   cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_stage), cmocka_unit_test(test_settle),
    };
    return cmocka_run_group_tests(tests, names_setup, names_teardown);
}
