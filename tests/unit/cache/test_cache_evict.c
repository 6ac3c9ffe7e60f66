/* SPDX-License-Identifier: MIT */
/* What a full cache gives up (the cells that are needed last, and none that is needed sooner than what comes), and the
 * claims of processes that were killed. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/cache_evict.h"
#include "cache/cache_folder.h"
#include "cache/cache_state.h"
#include "platform/os.h"
#include "support/scratch.h"

#define CELLS 80
#define MIB ((uint64_t)1 << 20)

struct fixture {
    char folder[512];
    struct cache *cache;
    struct cache_state state;
    int fd;
    uint64_t needed[CELLS]; /* in so many rows; UINT64_MAX: not known */
};

/* Opens a cache of `size` bytes with a shard of CELLS cells, all of which are present. */
static void fixture_open(struct fixture *fixture, const char *size)
{
    static const uint8_t byte = 1;
    struct cache_cell cells[CELLS];
    char *name = NULL, *path = NULL;
    scratch_make(fixture->folder);
    assert_true(asprintf(&name, "s3://bucket/data?cache=%s&size=%s", fixture->folder, size) > 0);
    char *rest;
    assert_int_equal(cache_open(&fixture->cache, &rest, name, NULL), TOKMAP_OK);
    assert_string_equal(rest, "s3://bucket/data");
    for (uint64_t i = 0; i < CELLS; i++)
        cells[i] = (struct cache_cell){.word = CELL_PRESENT + CELL_TIMES, .from = i * MIB, .bytes = MIB};
    assert_true(asprintf(&path, "%s/0-0.bin", fixture->folder) > 0);
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fixture->fd), 0);
    free(path);
    const int fds[2] = {fixture->fd, -1};
    assert_true(asprintf(&path, "%s/0-0.state", fixture->folder) > 0);
    assert_int_equal(cache_state_make(path, cells, CELLS, cache_files(fds), NULL), TOKMAP_OK);
    assert_int_equal(cache_state_open(&fixture->state, path, NULL), TOKMAP_OK);
    uint8_t *bytes = malloc(MIB);
    assert_non_null(bytes);
    memset(bytes, byte, MIB);
    for (uint64_t i = 0; i < CELLS; i++)
        assert_int_equal(os_pwrite(fixture->fd, bytes, MIB, i * MIB), 0);
    __atomic_store_n(&fixture->cache->processes.table->used, CELLS * MIB, __ATOMIC_RELAXED);
    free(bytes);
    free(path);
    free(rest);
    free(name);
}

static void fixture_close(struct fixture *fixture)
{
    os_close(fixture->fd);
    cache_state_close(&fixture->state);
    cache_close(fixture->cache);
    scratch_remove(fixture->folder);
}

/* Says when this process needs a cell. */
static void need(struct fixture *fixture, uint64_t cell, uint64_t rows)
{
    const struct cache_processes *processes = &fixture->cache->processes;
    fixture->needed[cell] = rows;
    fixture->state.rows[processes->number / 64] |= (uint64_t)1 << processes->number % 64;
    fixture->state.next[processes->number * CELLS + cell] =
        rows == UINT64_MAX ? 0 : processes->table->of[processes->number].now + (uint32_t)rows + 1;
}

static bool is_there(const struct fixture *fixture, uint64_t cell)
{
    uint8_t byte;
    size_t got;
    const bool present = cell_word(&fixture->state.cells[cell]) & CELL_PRESENT;
    assert_int_equal(os_pread(fixture->fd, &byte, 1, cell * MIB, &got), 0);
    assert_int_equal(byte, present); /* what is given up has no storage */
    return present;
}

static void test_the_farthest_goes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, "80M");
    fixture.cache->processes.table->of[fixture.cache->processes.number].now = UINT32_MAX - 20; /* rows wrap around */
    uint64_t chance = 7;
    for (uint64_t i = 0; i < CELLS; i++)
        need(&fixture, i, random_below(&chance, 1000) + 10);
    for (int round = 0; round < 8; round++) {
        uint64_t kept = 0, nearest = UINT64_MAX;
        bool before[CELLS];
        for (uint64_t i = 0; i < CELLS; i++)
            before[i] = is_there(&fixture, i);
        assert_true(cache_room(fixture.cache, 3 * MIB, 5));
        for (uint64_t i = 0; i < CELLS; i++) {
            if (!before[i])
                continue;
            if (is_there(&fixture, i))
                kept = kept > fixture.needed[i] ? kept : fixture.needed[i];
            else
                nearest = nearest < fixture.needed[i] ? nearest : fixture.needed[i];
        }
        assert_true(nearest < UINT64_MAX ? kept <= nearest : true);
    }
    uint64_t changes;
    assert_true(cache_reach(fixture.cache, &changes) < 1010);
    fixture_close(&fixture);
}

static void test_what_is_needed_sooner_stays(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t before, after;
    fixture_open(&fixture, "80M");
    for (uint64_t i = 0; i < CELLS; i++)
        need(&fixture, i, 1000 + 10 * i);
    (void)cache_reach(fixture.cache, &before);
    assert_false(cache_room(fixture.cache, MIB, 1600)); /* nothing is needed 1/8 later */
    assert_int_equal(cache_reach(fixture.cache, &after), 1600);
    assert_true(after != before);
    for (uint64_t i = 0; i < CELLS; i++)
        assert_true(is_there(&fixture, i));
    os_sleep_ns(30000000);                                  /* a look that found nothing is not repeated at once */
    assert_false(cache_room(fixture.cache, 8 * MIB, 1565)); /* only three are, and stay, because they are too few */
    for (uint64_t i = 0; i < CELLS; i++)
        assert_true(is_there(&fixture, i));
    os_sleep_ns(30000000);
    assert_true(cache_room(fixture.cache, 2 * MIB, 1565));
    assert_true(is_there(&fixture, 76) && !is_there(&fixture, 78) && !is_there(&fixture, 79));
    assert_true(cache_room(fixture.cache, MIB, 0)); /* a row waits for it */
    fixture_close(&fixture);
}

static void test_unknown_goes_first(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, "81M");
    for (uint64_t i = 0; i < CELLS; i++)
        need(&fixture, i, i % 10 ? 1000000 + i : UINT64_MAX);
    need(&fixture, 40, 3);
    assert_true(cache_room(fixture.cache, 3 * MIB, 1));
    uint64_t gone = 0;
    for (uint64_t i = 0; i < CELLS; i++) {
        gone += !is_there(&fixture, i);
        assert_true(is_there(&fixture, i) || (i % 10 == 0 && i != 40));
    }
    assert_true(gone >= 2);
    fixture_close(&fixture);
}

/* Of a table that was damaged, the bytes in use are found again. */
static void test_wild_table(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, "80M");
    struct cache_table *table = fixture.cache->processes.table;
    __atomic_store_n(&table->used, (uint64_t)1 << 62, __ATOMIC_RELAXED);
    (void)cache_room(fixture.cache, MIB, 0);
    assert_true(table->used <= (CELLS + 2) * MIB);
    fixture_close(&fixture);
}

static uint32_t hole_waits; /* accessed atomically */

/* In place of the C library's: the first hole takes a second. */
int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (__atomic_exchange_n(&hole_waits, 0, __ATOMIC_ACQ_REL))
        os_sleep_ns(1000000000);
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static void room_maker(void *user)
{
    struct cache *cache = user;
    (void)cache_room(cache, MIB, 0);
    cache_room_end(cache, MIB, false);
}

/* What others store while cells are given up counts: otherwise the files would outgrow the limit. */
static void test_stored_meanwhile(void **state)
{
    (void)state;
    static const uint8_t bytes[4 * MIB] = {1};
    struct fixture fixture;
    struct os_thread *thread;
    struct os_stat found;
    fixture_open(&fixture, "80M");
    __atomic_store_n(&hole_waits, 1, __ATOMIC_RELEASE);
    assert_int_equal(os_thread_start(&thread, "room", room_maker, fixture.cache), 0);
    while (__atomic_load_n(&hole_waits, __ATOMIC_ACQUIRE))
        os_sleep_ns(1000000);
    (void)cache_room(fixture.cache, sizeof bytes, 0);
    assert_int_equal(os_pwrite(fixture.fd, bytes, sizeof bytes, CELLS * MIB), 0);
    cache_room_end(fixture.cache, sizeof bytes, true);
    os_thread_join(thread);
    assert_int_equal(os_fstat(fixture.fd, &found), 0);
    assert_true(fixture.cache->processes.table->used >= found.allocated);
    fixture_close(&fixture);
}

/* A look at a state does not make memory of the rows that nobody has written: a full tmpfs has none, and whoever reads
 * from a hole in its mapping dies. */
static void test_rows_without_plan(void **state)
{
    (void)state;
    struct fixture fixture;
    struct os_stat before, after;
    uint64_t free_bytes;
    if (access("/dev/shm", W_OK) || os_disk_free("/dev/shm", &free_bytes) || free_bytes < 4 * CELLS * MIB ||
        setenv("TMPDIR", "/dev/shm", 1)) /* a tmpfs; those of containers may be small */
        skip();
    fixture_open(&fixture, "80M");
    assert_int_equal(os_fstat(fixture.state.fd, &before), 0);
    assert_true(cache_room(fixture.cache, 3 * MIB, 0));
    assert_int_equal(os_fstat(fixture.state.fd, &after), 0);
    assert_int_equal(after.allocated, before.allocated);
    fixture_close(&fixture);
}

/* A claimed cell is being fetched, and is not given up while who claims it lives. */
static void test_claims_of_the_dead(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, "80M");
    struct cache_processes *processes = &fixture.cache->processes;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const uint64_t mine = cache_claim(processes);
    const pid_t child = fork();
    if (!child) {
        const uint64_t claim = cache_claim(processes); /* of its own number */
        (void)!write(pipes[1], &claim, sizeof claim);
        pause();
        _exit(0);
    }
    uint64_t claim = 0;
    assert_int_equal(read(pipes[0], &claim, sizeof claim), sizeof claim);
    assert_true(claim && mine && claim != mine);
    assert_true(cache_claim_lives(processes, claim) && cache_claim_lives(processes, mine));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(cache_claim_lives(processes, claim));
    assert_true(cache_claim_lives(processes, mine));                        /* the child had the file open, too */
    assert_false(cache_claim_lives(processes, mine + ((uint64_t)1 << 18))); /* another process of that number */
    close(pipes[0]);
    close(pipes[1]);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_farthest_goes),  cmocka_unit_test(test_what_is_needed_sooner_stays),
        cmocka_unit_test(test_unknown_goes_first), cmocka_unit_test(test_claims_of_the_dead),
        cmocka_unit_test(test_stored_meanwhile),   cmocka_unit_test(test_rows_without_plan),
        cmocka_unit_test(test_wild_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
