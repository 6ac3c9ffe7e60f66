/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* os.h: the properties on which the other rooms rely, tested with the real kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "platform/process.h"
#include "support/scratch.h"

static char folder[512];

static int make_file(const char *name, const void *bytes, size_t count)
{
    int fd;
    assert_int_equal(os_open(in_folder(folder, name), OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pwrite(fd, bytes, count, 0), 0);
    return fd;
}

static int folder_make(void **unused)
{
    (void)unused;
    scratch_make(folder);
    return 0;
}

static int folder_remove(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

static void reads_end_where_the_file_ends(void **unused)
{
    (void)unused;
    int fd = make_file("short", "0123456789", 10);
    char into[32];
    size_t got;
    assert_int_equal(os_pread(fd, into, 32, 4, &got), 0);
    assert_int_equal(got, 6);
    assert_memory_equal(into, "456789", 6);
    assert_int_equal(os_pread(fd, into, 32, 100, &got), 0);
    assert_int_equal(got, 0);
    os_close(fd);
}

static void opening_keeps_its_promises(void **unused)
{
    (void)unused;
    int fd;
    assert_int_equal(os_open(in_folder(folder, "missing"), OS_READ, &fd), ENOENT);
    assert_int_equal(os_open(in_folder(folder, "new"), OS_WRITE_NEW, &fd), 0);
    os_close(fd);
    assert_int_equal(os_open(in_folder(folder, "new"), OS_WRITE_NEW, &fd), EEXIST);
    struct os_stat before, after;
    assert_int_equal(os_stat(in_folder(folder, "new"), &before), 0);
    assert_int_equal(before.kind, OS_KIND_FILE);
    assert_int_equal(os_open(folder, OS_WRITE_UNNAMED, &fd), 0);
    assert_int_equal(os_write(fd, "abc", 3), 0);
    assert_int_equal(os_fstat(fd, &after), 0);
    assert_int_equal(after.bytes, 3);
    os_close(fd);
}

static void a_lock_excludes_another_opening(void **unused)
{
    (void)unused;
    int first, second;
    assert_int_equal(os_open(in_folder(folder, "lock"), OS_WRITE_OPEN, &first), 0);
    assert_int_equal(os_open(in_folder(folder, "lock"), OS_WRITE_OPEN, &second), 0);
    assert_int_equal(os_lock(first), 0);
    assert_int_equal(os_lock(second), EWOULDBLOCK);
    os_close(first);
    assert_int_equal(os_lock(second), 0);
    os_close(second);
}

static void ranges_are_copied_between_files(void **unused)
{
    (void)unused;
    char text[100000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    int from = make_file("from", text, sizeof text), into = make_file("into", "head", 4);
    assert_int_equal(os_copy_range(from, 1, into, 4, sizeof text - 1), 0);
    char *back = malloc(sizeof text + 3);
    size_t got;
    assert_int_equal(os_pread(into, back, sizeof text + 3, 0, &got), 0);
    assert_int_equal(got, sizeof text + 3);
    assert_memory_equal(back, "head", 4);
    assert_memory_equal(back + 4, text + 1, sizeof text - 1);
    assert_int_equal(os_copy_range(from, 0, into, 0, sizeof text + 1), ENODATA);
    free(back);
    os_close(from);
    os_close(into);
}

static void a_cut_mapping_is_a_status(void **unused)
{
    (void)unused;
    size_t page = os_page_bytes();
    char *text = calloc(4, page);
    int fd = make_file("cut", text, 4 * page);
    free(text);
    const void *map;
    assert_int_equal(os_map_file(fd, 4 * page, &map), 0);
    int populated = os_map_populate((const char *)map + 3 * page, page);
    if (populated == ENOTSUP) {
        os_unmap(map, 4 * page);
        os_close(fd);
        print_message("a kernel before 5.14: pages cannot be populated\n");
        skip();
    }
    assert_int_equal(populated, 0);
    assert_int_equal(os_truncate(fd, page), 0);
    assert_int_equal(os_map_populate(map, page), 0);
    assert_int_equal(os_map_populate((const char *)map + 2 * page + 5, 10), EFAULT);
    os_unmap(map, 4 * page);
    os_close(fd);
}

static void a_large_mapping_starts_at_a_huge_page(void **unused)
{
    (void)unused;
    int fd = make_file("large", "x", 1);
    uint64_t bytes = ((uint64_t)5 << 20) + 123;
    assert_int_equal(os_truncate(fd, bytes), 0);
    assert_int_equal(os_pwrite(fd, "end", 3, bytes - 3), 0);
    const void *map;
    assert_int_equal(os_map_file(fd, bytes, &map), 0);
    assert_int_equal((uintptr_t)map % ((uintptr_t)2 << 20), 0);
    assert_memory_equal((const char *)map + bytes - 3, "end", 3);
    os_unmap(map, bytes);
    os_close(fd);
}

static void cached_pages_of_a_file_are_counted(void **unused)
{
    (void)unused;
    const int fd = make_file("cached", "x", 1);
    const uint64_t page = os_page_bytes();
    uint64_t pages = 0;
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(os_pwrite(fd, "page", 4, i * page), 0);
    const int system = os_file_cached(fd, page, 2 * page, &pages);
    os_close(fd);
    if (system == ENOTSUP || (!system && !pages))
        skip(); /* an old kernel, or a stacked file system */
    assert_int_equal(system, 0);
    assert_int_equal(pages, 2);
}

static void memory_for_huge_pages_starts_at_one(void **unused)
{
    (void)unused;
    static const uint64_t sizes[] = {1, 5000, ((uint64_t)2 << 20) - 1, (uint64_t)2 << 20, ((uint64_t)5 << 20) + 123};
    enum { SIZES = sizeof sizes / sizeof sizes[0], TIMES = 3 };
    void *memory[TIMES][SIZES];
    for (size_t i = 0; i < TIMES; i++)
        for (size_t j = 0; j < SIZES; j++) {
            assert_int_equal(os_memory_new(sizes[j], true, &memory[i][j]), 0);
            assert_int_equal((uintptr_t)memory[i][j] % ((uintptr_t)2 << 20), 0);
            ((char *)memory[i][j])[0] = 1;
            ((char *)memory[i][j])[sizes[j] - 1] = 1;
        }
    for (size_t i = 0; i < TIMES; i++)
        for (size_t j = 0; j < SIZES; j++)
            os_memory_free(memory[i][j], sizes[j]);
    /* Small pages are a hint: the memory is as good as before, and still zero. */
    assert_int_equal(os_memory_new((uint64_t)4 << 20, false, &memory[0][0]), 0);
    os_memory_small_pages(memory[0][0], (uint64_t)4 << 20);
    assert_int_equal(((char *)memory[0][0])[((size_t)4 << 20) - 1], 0);
    os_memory_free(memory[0][0], (uint64_t)4 << 20);
}

/* OS_LARGE and 2 MiB decide what the pages are, so sizes on both sides of them are used. */
static void large_memory_is_that_of_malloc(void **unused)
{
    (void)unused;
    static const size_t huge = (size_t)2 << 20;
    const size_t sizes[] = {1,
                            63,
                            OS_LARGE - 1,
                            OS_LARGE,
                            OS_LARGE + 1,
                            huge,
                            huge + 1,
                            huge + OS_LARGE,
                            3 * huge - OS_LARGE,
                            5 * huge + 123};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    char *memory[SIZES];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            memory[i] = round == 1 ? os_memory_large_zeros(sizes[i], 1) : os_memory_large(sizes[i]);
            assert_non_null(memory[i]);
            assert_int_equal((uintptr_t)memory[i] % (sizes[i] < OS_LARGE ? 64 : huge), 0);
            for (size_t k = 0; k < sizes[i] && round == 1; k++)
                assert_true(!memory[i][k]);
            memset(memory[i], (int)i + 1, sizes[i]);
        }
        for (size_t i = 0; i < SIZES; i++) { /* realloc() keeps the bytes, as of any other memory */
            assert_true(memory[i][0] == (char)(i + 1) && memory[i][sizes[i] - 1] == (char)(i + 1));
            if (round == 2)
                memory[i] = realloc(memory[i], sizes[i] + huge);
            assert_non_null(memory[i]);
            assert_true(memory[i][0] == (char)(i + 1) && memory[i][sizes[i] - 1] == (char)(i + 1));
        }
        for (size_t i = 0; i < SIZES; i++)
            free(memory[i]);
    }
    assert_null(os_memory_large(SIZE_MAX));
    assert_null(os_memory_large(SIZE_MAX / 2));
    assert_null(os_memory_large_zeros(SIZE_MAX / 2, 4));
    assert_null(os_memory_large_zeros(4, SIZE_MAX / 2));
}

struct baton {
    struct os_mutex *mutex;
    struct os_condition *condition;
    uint32_t word;
    int turn;
};

static void pass_back(void *user)
{
    struct baton *baton = user;
    os_mutex_lock(baton->mutex);
    while (baton->turn != 1)
        os_condition_wait(baton->condition, baton->mutex);
    baton->turn = 2;
    os_condition_broadcast(baton->condition);
    os_mutex_unlock(baton->mutex);
    os_sleep_ns(1000000);
    __atomic_store_n(&baton->word, 1, __ATOMIC_RELEASE);
    os_word_wake(&baton->word);
}

static void threads_hand_over(void **unused)
{
    (void)unused;
    struct baton baton = {0};
    assert_int_equal(os_mutex_new(&baton.mutex), 0);
    assert_int_equal(os_condition_new(&baton.condition), 0);
    struct os_thread *thread;
    assert_int_equal(os_thread_start(&thread, "a-name-that-is-too-long", pass_back, &baton), 0);
    os_mutex_lock(baton.mutex);
    assert_false(os_condition_wait_for(baton.condition, baton.mutex, 1000));
    baton.turn = 1;
    os_condition_signal(baton.condition);
    while (baton.turn != 2)
        os_condition_wait(baton.condition, baton.mutex);
    os_mutex_unlock(baton.mutex);
    while (!__atomic_load_n(&baton.word, __ATOMIC_ACQUIRE))
        os_word_wait(&baton.word, 0);
    os_thread_join(thread);
    os_condition_free(baton.condition);
    os_mutex_free(baton.mutex);
}

/* Calls with numbers take the next piece of shared work. */
struct share {
    uint64_t next, calls[5], done[1000];
};

static void take_pieces(void *user, uint32_t number)
{
    struct share *share = user;
    __atomic_add_fetch(&share->calls[number], 1, __ATOMIC_RELAXED);
    for (uint64_t piece; (piece = __atomic_fetch_add(&share->next, 1, __ATOMIC_RELAXED)) < 1000;)
        share->done[piece]++; /* only one thread has this piece */
}

static void threads_share_work(void **unused)
{
    (void)unused;
    for (uint32_t count = 1; count <= 5; count++) {
        struct share share = {0};
        os_threads_share("share", count, take_pieces, &share);
        for (uint32_t i = 0; i < 5; i++)
            assert_int_equal(share.calls[i], i < count);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(share.done[i], 1);
    }
}

static int entry_count(void *user, const char *name)
{
    assert_true(strcmp(name, ".") && strcmp(name, ".."));
    ++*(int *)user;
    return *(int *)user == 3 ? 42 : 0;
}

static void a_folder_walk_ends_early(void **unused)
{
    (void)unused;
    const char *names[] = {"w1", "w2", "w3", "w4"};
    for (int i = 0; i < 4; i++)
        os_close(make_file(names[i], "", 0));
    int count = 0;
    assert_int_equal(os_folder_list(folder, entry_count, &count), 42);
    assert_int_equal(count, 3);
    assert_int_equal(os_folder_list(in_folder(folder, "missing"), entry_count, &count), ENOENT);
}

static void the_machine_is_described(void **unused)
{
    (void)unused;
    size_t page = os_page_bytes();
    assert_true(page >= 4096 && (page & (page - 1)) == 0);
    assert_true(os_processors() >= 1);
    assert_true(os_memory_limit() > (uint64_t)1 << 20);
    assert_true(os_memory_resident() > 0);
    uint64_t now = os_clock_ns(), started = os_process_start_ns();
    assert_true(started <= now + 20000000);
    assert_true(started > 0 && now - started < (uint64_t)3600 * 1000000000);
}

static void programs_are_started_and_waited_for(void **unused)
{
    (void)unused;
    static const char *const speak[] = {"sh", "-c", "printf spoken; exit 7", NULL};
    static const char *const die[] = {"sh", "-c", "kill -9 $$", NULL};
    struct os_child child;
    char text[64], path[512];
    size_t got = 0, all = 0;
    int status = -1;
    assert_int_equal(os_child_start(&child, "/bin/sh", speak, true), 0);
    while (!os_read(child.output, text + all, sizeof text - all, &got) && got)
        all += got;
    assert_int_equal(os_child_wait(&child, &status), 0);
    assert_int_equal(status, 7);
    assert_true(child.peak_bytes > 4096);
    assert_int_equal(all, 6);
    assert_memory_equal(text, "spoken", 6);
    assert_int_equal(os_child_start(&child, "/bin/sh", die, false), 0);
    assert_int_equal(os_child_wait(&child, &status), 0);
    assert_int_equal(status, 128 + 9);
    assert_int_equal(os_child_start(&child, in_folder(folder, "nothing"), speak, true), ENOENT);
    assert_int_equal(os_program_path(path, sizeof path), 0);
    assert_non_null(strstr(path, "test_os"));
    assert_int_equal(os_program_path(path, 3), ENAMETOOLONG);
    assert_true(os_wall_seconds() > 1700000000);
}

/* A child that reads what another one writes, which is more than a pipe holds. */
static void programs_read_programs(void **unused)
{
    (void)unused;
    static const char *const write[] = {"sh", "-c", "head -c 3000000 /dev/zero", NULL};
    static const char *const count[] = {"sh", "-c", "wc -c | tr -d ' \n'", NULL};
    struct os_child writer, reader;
    char text[64];
    size_t got = 0, at = 0;
    int status = -1;
    assert_int_equal(os_child_start(&writer, "/bin/sh", write, true), 0);
    assert_int_equal(os_child_start_reading(&reader, in_folder(folder, "nothing"), count, true, writer.output), ENOENT);
    assert_int_equal(os_child_start_reading(&reader, "/bin/sh", count, true, writer.output), 0);
    while (!os_read(reader.output, text + at, sizeof text - at, &got) && got)
        at += got;
    assert_int_equal(at, strlen("3000000"));
    assert_memory_equal(text, "3000000", at);
    assert_int_equal(os_child_wait(&reader, &status), 0);
    assert_int_equal(status, 0);
    assert_int_equal(os_child_wait(&writer, &status), 0);
    assert_int_equal(status, 0);
}

static void test_disk_free(void **state)
{
    uint64_t bytes = 0, zero = 1;
    assert_int_equal(os_disk_free("/", &bytes), 0);
    assert_int_equal(os_disk_free("/proc/self", &zero), 0); /* a file system without storage */
    assert_int_equal(zero, 0);
    assert_int_equal(os_disk_free("/no such file", &bytes), ENOENT);
    uint64_t whole = 0;
    assert_int_equal(os_disk_size("/", &whole), 0);
    assert_true(whole >= bytes && whole);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_end_where_the_file_ends),
        cmocka_unit_test(opening_keeps_its_promises),
        cmocka_unit_test(a_lock_excludes_another_opening),
        cmocka_unit_test(ranges_are_copied_between_files),
        cmocka_unit_test(a_cut_mapping_is_a_status),
        cmocka_unit_test(a_large_mapping_starts_at_a_huge_page),
        cmocka_unit_test(cached_pages_of_a_file_are_counted),
        cmocka_unit_test(memory_for_huge_pages_starts_at_one),
        cmocka_unit_test(large_memory_is_that_of_malloc),
        cmocka_unit_test(threads_hand_over),
        cmocka_unit_test(threads_share_work),
        cmocka_unit_test(a_folder_walk_ends_early),
        cmocka_unit_test(the_machine_is_described),
        cmocka_unit_test(programs_are_started_and_waited_for),
        cmocka_unit_test(programs_read_programs),
        cmocka_unit_test(test_disk_free),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
