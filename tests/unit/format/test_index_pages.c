/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Pages of an index that several threads read at once: each thread finds the file's bytes, and under the thread
 * sanitizer (`make tsan`) none of them writes what another one reads.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "format/index_pages.h"
#include "platform/os.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"

enum { THREADS = 4, ROUNDS = 300, WORDS = 20000 };
#define BYTES (WORDS * sizeof(uint64_t) - 3) /* the last page and the last word are not whole */

static uint64_t word_at(uint64_t number)
{
    return number % 7 ? number * 0x9e3779b97f4a7c15u : 0;
}

static int make_words(void **state)
{
    uint64_t *words = malloc(WORDS * sizeof *words);
    assert_non_null(words);
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = word_at(i);
    setup(state);
    file_write(in_folder(folder, "words"), words, BYTES);
    free(words);
    return 0;
}

static struct index_pages *pages_new(void)
{
    struct index_pages *pages;
    int fd;
    assert_int_equal(os_open(in_folder(folder, "words"), OS_READ, &fd), 0);
    assert_int_equal(index_pages_open(&pages, fd, BYTES, 0), 0);
    return pages;
}

/* Returns how many of the whole words are wrong, of which it reads one after the other from `first` on, and then those
 * before it. */
static uint64_t wrong_words(struct index_pages *pages, uint64_t first)
{
    const uint64_t whole = WORDS - 1;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < whole; i++) {
        const uint64_t word = (first + i) % whole, at = word * sizeof word;
        wrong += index_pages_need(pages, at, sizeof word) || load64(index_pages_bytes(pages) + at) != word_at(word);
    }
    return wrong;
}

struct shared {
    struct index_pages *pages;
    uint64_t wrong; /* accessed atomically */
};

static void read_all(void *user, uint32_t number)
{
    struct shared *shared = user;
    const uint64_t wrong = wrong_words(shared->pages, number / 2 * (WORDS / 3)); /* two threads begin at each place */
    (void)__atomic_fetch_add(&shared->wrong, wrong, __ATOMIC_RELAXED);
}

static void threads_find_the_bytes(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct shared shared = {.pages = pages_new()};
        os_threads_share("test-pages", THREADS, read_all, &shared);
        assert_int_equal(shared.wrong, 0);
        index_pages_close(shared.pages);
    }
}

/* One thread reads while the other one forks. The thread sanitizer reports the threads that a child lacks. */
static void read_or_fork(void *user, uint32_t number)
{
    struct shared *shared = user;
    if (number) {
        read_all(user, 0);
        return;
    }
    const pid_t child = fork();
    if (!child)
        _exit(wrong_words(shared->pages, 0) != 0);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        (void)__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED);
}

static void a_child_finds_the_bytes(void **unused)
{
    (void)unused;
#ifdef SANITIZED
    skip();
#endif
    for (int round = 0; round < ROUNDS; round++) {
        struct shared shared = {.pages = pages_new()};
        os_threads_share("test-pages", 2, read_or_fork, &shared);
        assert_int_equal(shared.wrong, 0);
        index_pages_close(shared.pages);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_find_the_bytes),
        cmocka_unit_test(a_child_finds_the_bytes),
    };
    return cmocka_run_group_tests(tests, make_words, teardown);
}
