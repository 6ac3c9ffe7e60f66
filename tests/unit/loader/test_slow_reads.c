/* SPDX-License-Identifier: MIT */
/*
 * Storage that hangs or is slow: the pool of threads that read, and the probe by which a loader decides whether to use
 * them. This program has a pread() of its own that waits as the tests ask; tests/python/test_slow_storage.py has the
 * same with a real file system. (A name of libc in the program comes before that in libc, for the library in it, too.)
 */
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/read_pool.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define MS ((uint64_t)1000000)
#define BYTES 4096

static uint32_t hanging, delayed; /* pread() hangs until this is 0 again; pread() takes 3 ms. Accessed atomically */
static uint32_t hung;             /* calls that hang at the moment. Accessed atomically */
static ino_t hanging_file;        /* if not 0, only reads of this file hang. Accessed atomically */

static bool hangs(int file)
{
    struct stat found;
    const ino_t only = __atomic_load_n(&hanging_file, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&hanging, __ATOMIC_SEQ_CST) && (!only || (!fstat(file, &found) && found.st_ino == only));
}

ssize_t pread(int fd, void *into, size_t count, off_t offset)
{
    __atomic_add_fetch(&hung, 1, __ATOMIC_SEQ_CST);
    while (hangs(fd))
        os_sleep_ns(MS);
    __atomic_sub_fetch(&hung, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&delayed, __ATOMIC_SEQ_CST))
        os_sleep_ns(3 * MS);
    return (ssize_t)syscall(SYS_pread64, fd, into, count, offset);
}

/* Nothing is in the page cache while reads hang. */
ssize_t preadv2(int fd, const struct iovec *into, int count, off_t offset, int flags)
{
    if (!hangs(fd))
        return syscall(SYS_preadv2, fd, into, (long)count, (long)offset, 0L, (long)flags);
    errno = EAGAIN;
    return -1;
}

/* Asking for a file that hangs may wait, too, so the thread that has a deadline must not do it. */
static uint32_t asked_here;

ssize_t readahead(int file, off64_t offset, size_t count)
{
    if (hangs(file) && (pid_t)syscall(SYS_gettid) == getpid())
        asked_here++;
    return syscall(SYS_readahead, file, offset, count);
}

static char folder[512], path[600];
static uint8_t expected[64 * BYTES];
static struct made made;
static int fd;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {9000, 4000};
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 50257, sizes, 2);
    for (size_t i = 0; i < sizeof expected; i++)
        expected[i] = (uint8_t)(i * 131 + i / 251);
    (void)snprintf(path, sizeof path, "%s/file", folder);
    file_write(path, expected, sizeof expected);
    return os_open(path, OS_READ, &fd);
}

static int teardown(void **unused)
{
    (void)unused;
    os_close(fd);
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

static void hang(bool whether)
{
    __atomic_store_n(&hanging, whether, __ATOMIC_SEQ_CST);
}

/* Waits until this many calls hang. */
static void await_hung(uint32_t count)
{
    for (int i = 0; i < 10000 && __atomic_load_n(&hung, __ATOMIC_SEQ_CST) != count; i++)
        os_sleep_ns(MS);
    assert_int_equal(__atomic_load_n(&hung, __ATOMIC_SEQ_CST), count);
}

static struct read_pool *pool_open(uint32_t threads, uint32_t buffers, uint64_t deadline_ns)
{
    const struct read_pool_options options = {threads, buffers, BYTES, deadline_ns};
    struct read_pool *pool;
    assert_int_equal(read_pool_open(&pool, &options, NULL), TOKMAP_OK);
    return pool;
}

/* A read that hangs misses its deadline, and so does the next one, which finds every thread and buffer taken. When the
 * storage recovers, the same pool reads again, and no late read writes over what a later one has delivered. */
static void a_read_that_hangs_misses_its_deadline(void **unused)
{
    (void)unused;
    static uint8_t into[3 * BYTES];
    size_t got;
    struct read_pool_counts counts;
    struct read_pool *pool = pool_open(2, 3, 20 * MS);
    assert_int_equal(read_pool_read(pool, fd, into, sizeof into, 100, &got), 0);
    assert_int_equal(got, sizeof into);
    assert_memory_equal(into, expected + 100, sizeof into);
    hang(true);
    for (int i = 0; i < 5; i++) {
        const uint64_t from = os_clock_ns();
        assert_int_equal(read_pool_read(pool, fd, into, sizeof into, 0, &got), ETIMEDOUT);
        assert_int_equal(got, 0);
        assert_true(os_clock_ns() - from >= 20 * MS);
    }
    await_hung(2); /* both threads; the other reads were never begun */
    read_pool_ask(pool, fd, 8 * BYTES, BYTES);
    read_pool_hint(pool, fd, 0, BYTES);
    read_pool_forget(pool);
    read_pool_counts(pool, &counts);
    assert_int_equal(counts.timeouts, 5);
    assert_memory_equal(into, expected + 100, sizeof into); /* nobody writes into the memory of a call that has ended */
    hang(false);
    for (int i = 0;; i++) { /* a slow machine may miss the short deadline again */
        const int system = read_pool_read(pool, fd, into, sizeof into, 5 * BYTES, &got);
        if (!system)
            break;
        assert_int_equal(system, ETIMEDOUT);
        assert_true(i < 1000);
    }
    assert_int_equal(got, sizeof into);
    assert_memory_equal(into, expected + 5 * BYTES, sizeof into);
    read_pool_close(pool);
    await_hung(0);
}

/* Closing waits for no read, and a thread that returns later finds its memory, which the last one frees. */
static void closing_does_not_wait(void **unused)
{
    (void)unused;
    uint8_t into[BYTES];
    size_t got;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        int other;
        struct read_pool *pool = pool_open(threads, 2 * threads, 5 * MS);
        assert_int_equal(os_open(path, OS_READ, &other), 0);
        hang(true);
        for (uint32_t i = 0; i < 2 * threads; i++)
            read_pool_ask(pool, other, i * BYTES, BYTES);
        await_hung(threads);
        int system;
        assert_true(read_pool_take(pool, other, into, BYTES, 0, &got, &system));
        assert_int_equal(system, ETIMEDOUT);
        const uint64_t from = os_clock_ns();
        read_pool_close(pool);
        assert_true(os_clock_ns() - from < 2000 * MS);
        os_close(other);
        assert_int_equal(__atomic_load_n(&hung, __ATOMIC_SEQ_CST), threads);
        hang(false);
        await_hung(0);
    }
}

/* A file that is fetched: need() hangs as pread() does, and the memory must be there when it returns. */
struct fetched_file {
    struct os_fetched fetched;
    uint32_t closed; /* accessed atomically */
};

static int fetched_need(struct os_fetched *file, uint64_t offset, uint64_t bytes, bool wait, uint64_t *state)
{
    (void)file, (void)offset, (void)bytes;
    *state = 0;
    if (!wait)
        return EAGAIN;
    __atomic_add_fetch(&hung, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&hanging, __ATOMIC_SEQ_CST))
        os_sleep_ns(MS);
    __atomic_sub_fetch(&hung, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static bool fetched_kept(struct os_fetched *file, uint64_t offset, uint64_t bytes, uint64_t state)
{
    (void)file, (void)offset, (void)bytes, (void)state;
    return true;
}

static void fetched_ask(struct os_fetched *file, uint64_t offset, uint64_t bytes)
{
    (void)file, (void)offset, (void)bytes;
}

static void fetched_close(struct os_fetched *file)
{
    struct fetched_file *own = (struct fetched_file *)(void *)file;
    __atomic_add_fetch(&own->closed, 1, __ATOMIC_SEQ_CST);
}

static int recover(void **unused)
{
    (void)unused;
    hang(false); /* also after a failure, so that no other test hangs */
    return 0;
}

/* A file that is fetched may be closed while a read of it hangs: it stays until the read has ended. */
static void a_fetched_file_outlives_its_descriptor(void **unused)
{
    (void)unused;
    uint8_t into[BYTES];
    size_t got;
    for (int hint = 0; hint < 2; hint++) {
        static struct fetched_file file;
        file = (struct fetched_file){{fetched_need, fetched_kept, fetched_ask, fetched_close, 0}, 0};
        int other;
        struct read_pool *pool = pool_open(1, 2, 5 * MS);
        assert_int_equal(os_open(path, OS_READ, &other), 0);
        assert_int_equal(os_fetched_set(other, &file.fetched), 0);
        if (hint)
            read_pool_hint(pool, other, 0, BYTES);
        hang(true);
        for (int i = 0; i < 1000 && (!i || !__atomic_load_n(&hung, __ATOMIC_SEQ_CST)); i++) /* may not begin in time */
            assert_int_equal(read_pool_read(pool, other, into, BYTES, 0, &got), ETIMEDOUT);
        await_hung(1);
        read_pool_close(pool);
        os_close(other);
        assert_null(os_fetched_of(other));
        assert_int_equal(__atomic_load_n(&file.closed, __ATOMIC_SEQ_CST), 0);
        hang(false);
        await_hung(0);
        for (int i = 0; i < 10000 && !__atomic_load_n(&file.closed, __ATOMIC_SEQ_CST); i++)
            os_sleep_ns(MS);
        assert_int_equal(__atomic_load_n(&file.closed, __ATOMIC_SEQ_CST), 1);
    }
}

/* What holds a file beside the thread that closes it finds all of it or none: see fetched_free(). */
static void fetched_free(struct os_fetched *file)
{
    struct fetched_file *own = (struct fetched_file *)(void *)file;
    own->closed = 1;
    free(own);
}

static int closed_fd;
static uint32_t holding; /* accessed atomically */

static void hold_often(void *unused)
{
    (void)unused;
    while (__atomic_load_n(&holding, __ATOMIC_SEQ_CST)) {
        struct os_fetched *file = os_fetched_hold(closed_fd);
        assert_true(!file || !((struct fetched_file *)(void *)file)->closed);
        os_fetched_release(file);
    }
}

static void a_file_is_held_or_gone(void **unused)
{
    (void)unused;
    struct os_thread *thread;
    assert_int_equal(os_open(path, OS_READ, &closed_fd), 0);
    __atomic_store_n(&holding, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(os_thread_start(&thread, "hold", hold_often, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        struct fetched_file *file = calloc(1, sizeof *file);
        assert_non_null(file);
        file->fetched = (struct os_fetched){fetched_need, fetched_kept, fetched_ask, fetched_free, 0};
        assert_int_equal(os_fetched_set(closed_fd, &file->fetched), 0);
        os_close(closed_fd);
        int again;
        assert_int_equal(os_open(path, OS_READ, &again), 0);
        assert_int_equal(again, closed_fd);
    }
    __atomic_store_n(&holding, 0, __ATOMIC_SEQ_CST);
    os_thread_join(thread);
    os_close(closed_fd);
}

/* What was asked for is taken once, in any order; what was not asked for is not there; the end of the file is short. */
static void reads_ahead_are_taken(void **unused)
{
    (void)unused;
    uint8_t into[BYTES];
    size_t got;
    int system;
    struct read_pool_counts counts;
    struct read_pool *pool = pool_open(4, 16, 0);
    uint64_t taken = 0;
    for (int round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < 16; i++)
            read_pool_ask(pool, fd, i * BYTES, BYTES);
        read_pool_ask(pool, fd, 0, 2 * BYTES); /* larger than a buffer: not asked */
        assert_false(read_pool_take(pool, fd, into, 2 * BYTES, 0, &got, &system));
        for (uint64_t i = 16; i-- > 0;) {
            assert_true(read_pool_take(pool, fd, into, BYTES, i * BYTES, &got, &system));
            assert_int_equal(system, 0);
            assert_int_equal(got, BYTES);
            assert_memory_equal(into, expected + i * BYTES, BYTES);
            assert_false(read_pool_take(pool, fd, into, BYTES, i * BYTES, &got, &system));
            taken++;
        }
    }
    read_pool_ask(pool, fd, sizeof expected - 10, BYTES);
    assert_true(read_pool_take(pool, fd, into, BYTES, sizeof expected - 10, &got, &system));
    assert_int_equal(system, 0);
    assert_int_equal(got, 10);
    read_pool_ask(pool, -1, 0, BYTES);
    assert_true(read_pool_take(pool, -1, into, BYTES, 0, &got, &system));
    assert_int_equal(system, EBADF);
    read_pool_counts(pool, &counts);
    assert_int_equal(counts.ahead, taken + 2);
    assert_int_equal(counts.timeouts, 0);
    assert_int_equal(counts.threads, 4);
    read_pool_close(pool);
}

/* ---- the probe ---- */

/* A run of more steps than a ring holds, so that a producer has always something left to read. */
static struct tokmap_run *run_open(const char *data)
{
    char text[1000];
    struct tokmap_run *run;
    (void)snprintf(text, sizeof text, "seq_len 64\nbatch 8\nsource a \"%s\"\nsteps 300\n", data);
    assert_int_equal(run_parse_in(&run, text, folder, NULL), TOKMAP_OK);
    return run;
}

static struct tokmap_stats stats_of(const struct tokmap_loader *loader)
{
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    return stats;
}

/* The rows are those of the data. */
static void take_step(struct tokmap_loader *loader)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
    for (uint64_t i = 0; i < batch.count; i++)
        assert_true(made_row_is(&made, batch.rows[i], batch.places[i].first_token, batch.row_tokens));
}

/* Threads read where the probe at open takes 1 ms or more, and only there. A move probes again. Since a loader with
 * such threads cannot be used by a child after fork(), a child is refused from then on. */
static void the_probe_finds_slow_storage(void **unused)
{
    (void)unused;
    struct tokmap_run *run = run_open(made.name);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    options.fields = 0;
    options.threads = 0;
    options.drop_behind = 1; /* implies pread */
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    assert_int_equal(stats_of(loader).io_threads, 0);
    assert_int_equal(stats_of(loader).probe_ns, 0); /* without io_threads nobody probes */
    tokmap_loader_close(loader);
    options.io_threads = 3;
    __atomic_store_n(&delayed, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    assert_int_equal(stats_of(loader).io_threads, 3);
    assert_true(stats_of(loader).probe_ns >= 3 * MS);
    for (int i = 0; i < 5; i++)
        take_step(loader);
    assert_true(stats_of(loader).io_reads > 0);
    tokmap_loader_close(loader);
    __atomic_store_n(&delayed, 0, __ATOMIC_SEQ_CST);
    for (int i = 0;; i++) { /* a busy machine may be slow at first */
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        assert_true(stats_of(loader).probe_ns > 0);
        if (!stats_of(loader).io_threads)
            break;
        assert_true(i < 100 && stats_of(loader).probe_ns >= MS);
        tokmap_loader_close(loader);
    }
    take_step(loader);
    __atomic_store_n(&delayed, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(tokmap_loader_repartition(loader, 1, 2, NULL), TOKMAP_OK);
    assert_int_equal(stats_of(loader).io_threads, 3);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        const uint64_t zero = 0;
        (void)alarm(60); /* a read by threads that the child does not have would not end */
        const enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, NULL);
        const enum tokmap_status named = tokmap_loader_read(loader, &zero, &zero, 1, NULL, &batch, NULL);
        tokmap_loader_close(loader);
        _exit(status == TOKMAP_ERROR_ARGUMENT && named == TOKMAP_ERROR_ARGUMENT ? 0 : 1);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    take_step(loader);
    __atomic_store_n(&delayed, 0, __ATOMIC_SEQ_CST);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* Where threads read, a page is compared once, and again when its file has changed: one byte that is changed after some
 * passes is found in either reading, and named. */
static void a_change_of_slow_storage_is_found(void **unused)
{
    (void)unused;
    const enum tokmap_reading readings[] = {TOKMAP_READ_MAPPED, TOKMAP_READ_PREAD};
    const uint64_t at = 5000 * 2, page = 8192;
    for (int i = 0; i < 2; i++) {
        struct simple_run how = SIMPLE_RUN_INIT;
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error = {0};
        struct tokmap_loader *loader;
        struct tokmap_run *run;
        enum tokmap_status status = TOKMAP_OK;
        uint8_t byte;
        size_t got;
        int file;
        how.data = made.name;
        how.seq_len = 64;
        how.batch = 8;
        how.passes = 100;
        how.reading = readings[i];
        assert_int_equal(simple_run_open(&run, &how, &error), TOKMAP_OK);
        options.fields = 0;
        options.io_threads = 3;
        __atomic_store_n(&delayed, 1, __ATOMIC_SEQ_CST);
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        __atomic_store_n(&delayed, 0, __ATOMIC_SEQ_CST);
        assert_int_equal(stats_of(loader).io_threads, 3);
        for (int step = 0; step < 200; step++) /* eight passes */
            take_step(loader);
        os_sleep_ns(20 * MS); /* the clock of file systems ticks every few milliseconds */
        assert_int_equal(os_open(made.bin[0], OS_WRITE_OPEN, &file), 0);
        assert_int_equal(os_pread(file, &byte, 1, at, &got), 0);
        byte ^= 1;
        assert_int_equal(os_pwrite(file, &byte, 1, at), 0);
        os_sleep_ns(2 * MS); /* batches that begin within a millisecond share a look at the files */
        for (int step = 0; step < 50 && !status; step++)
            status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        assert_int_equal(status, TOKMAP_ERROR_CORRUPT);
        assert_string_equal(error.path, made.bin[0]);
        assert_int_equal(error.offset, page);
        byte ^= 1;
        assert_int_equal(os_pwrite(file, &byte, 1, at), 0);
        os_close(file);
        os_sleep_ns(2 * MS);
        for (int step = 0; step < 50; step++)
            take_step(loader);
        tokmap_loader_close(loader);
        tokmap_run_close(run);
    }
}

/* next() reports the file and what to do, and delivers the same rows when the storage has recovered. Closing a loader
 * whose reads hang does not wait. */
static void a_loader_survives_a_hang(void **unused)
{
    (void)unused;
    struct tokmap_run *run = run_open(made.name);
    for (uint32_t threads = 0; threads <= 1; threads++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error = {0};
        enum tokmap_status status;
        uint64_t next = 0;
        options.fields = 0;
        options.threads = threads;
        options.deadline_ns = 30 * MS;
        options.io_threads = threads ? 4 : 0;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        hang(true);
        while (!(status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)))
            assert_int_equal(batch.step, next++); /* that were in the ring */
        assert_int_equal(status, TOKMAP_ERROR_TIMEOUT);
        assert_non_null(strstr(error.path, "data-"));
        assert_true(stats_of(loader).timeouts >= 1);
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_ERROR_TIMEOUT);
        hang(false);
        for (int i = 0; (status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)) && i < 1000; i++)
            assert_int_equal(status, TOKMAP_ERROR_TIMEOUT);
        assert_int_equal(status, TOKMAP_OK);
        assert_int_equal(batch.step, next);
        for (uint64_t i = 0; i < batch.count; i++)
            assert_true(made_row_is(&made, batch.rows[i], batch.places[i].first_token, batch.row_tokens));
        hang(true);
        while (!(status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)))
            ;
        const uint64_t from = os_clock_ns();
        tokmap_loader_close(loader);
        assert_true(os_clock_ns() - from < 2000 * MS);
        hang(false);
        await_hung(0);
        assert_true(status == TOKMAP_ERROR_TIMEOUT || status == TOKMAP_END);
    }
    tokmap_run_close(run);
}

/* A mask that hangs misses the deadline, too, although all tokens can be read. */
static void a_mask_that_hangs_misses_the_deadline(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {13000};
    struct made masked;
    struct stat found;
    made_new_masked(&masked, folder, "masked", 2, 50257, sizes, 1);
    (void)snprintf(path, sizeof path, "%s/masked-0.mask", folder);
    assert_int_equal(stat(path, &found), 0);
    __atomic_store_n(&hanging_file, found.st_ino, __ATOMIC_SEQ_CST);
    struct tokmap_run *run = run_open(masked.name);
    for (uint32_t threads = 0; threads <= 1; threads++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error = {0};
        struct tokmap_out out = TOKMAP_OUT_INIT;
        int32_t loss_mask[8 * 64];
        enum tokmap_status status;
        uint64_t next = 0;
        out.loss_mask = loss_mask;
        options.fields = TOKMAP_LOSS_MASK;
        options.threads = threads;
        options.deadline_ns = 30 * MS;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        hang(true);
        while (!(status = tokmap_loader_next(loader, &out, NULL, &batch, &error)))
            assert_int_equal(batch.step, next++); /* that were in the ring */
        assert_int_equal(status, TOKMAP_ERROR_TIMEOUT);
        assert_non_null(strstr(error.path, "masked-0."));
        hang(false);
        for (int i = 0; (status = tokmap_loader_next(loader, &out, NULL, &batch, &error)) && i < 1000; i++)
            assert_int_equal(status, TOKMAP_ERROR_TIMEOUT);
        assert_int_equal(status, TOKMAP_OK);
        assert_int_equal(batch.step, next);
        for (uint64_t i = 0; i < sizeof loss_mask / sizeof *loss_mask; i++) {
            const uint64_t token = (batch.places[i / 64].first_token + i % 64 + 1) % masked.tokens;
            assert_int_equal(loss_mask[i], masked.mask[token] && !masked.starts[token]);
        }
        tokmap_loader_close(loader);
        await_hung(0);
    }
    __atomic_store_n(&hanging_file, 0, __ATOMIC_SEQ_CST);
    tokmap_run_close(run);
    made_free(&masked);
}

/* So do the hashes of pages, which are in the index, although all tokens can be read. */
static void hashes_that_hang_miss_the_deadline(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {200000};
    struct made hashed;
    struct stat found;
    made_new(&hashed, folder, "hashed", 2, 50257, sizes, 1);
    (void)snprintf(path, sizeof path, "%s/hashed-0.tmx", folder);
    assert_int_equal(stat(path, &found), 0);
    assert_true(found.st_size > 16384); /* a smaller index is kept in memory */
    __atomic_store_n(&hanging_file, found.st_ino, __ATOMIC_SEQ_CST);
    asked_here = 0;
    struct simple_run how = SIMPLE_RUN_INIT;
    struct tokmap_run *run;
    how.data = hashed.name;
    how.seq_len = 64;
    how.batch = 8;
    how.passes = 1;
    how.reading = TOKMAP_READ_PREAD; /* so that a hint would be a call with the descriptor of the index */
    assert_int_equal(simple_run_open(&run, &how, NULL), TOKMAP_OK);
    for (uint32_t threads = 0; threads <= 1; threads++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error = {0};
        enum tokmap_status status;
        uint64_t next = 0;
        options.fields = 0;
        options.threads = threads;
        options.deadline_ns = 30 * MS;
        hang(true); /* before a producer reads the hashes, which are kept */
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        while (!(status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)))
            assert_int_equal(batch.step, next++); /* that were in the ring */
        assert_int_equal(status, TOKMAP_ERROR_TIMEOUT);
        assert_non_null(strstr(error.message, "hashes"));
        hang(false);
        for (int i = 0; (status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)) && i < 1000; i++)
            assert_int_equal(status, TOKMAP_ERROR_TIMEOUT);
        assert_int_equal(status, TOKMAP_OK);
        assert_int_equal(batch.step, next);
        for (uint64_t i = 0; i < batch.count; i++)
            assert_true(made_row_is(&hashed, batch.rows[i], batch.places[i].first_token, batch.row_tokens));
        tokmap_loader_close(loader);
        await_hung(0);
    }
    assert_int_equal(asked_here, 0);
    __atomic_store_n(&hanging_file, 0, __ATOMIC_SEQ_CST);
    tokmap_run_close(run);
    made_free(&hashed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_that_hang_miss_the_deadline),
        cmocka_unit_test(a_read_that_hangs_misses_its_deadline),
        cmocka_unit_test(closing_does_not_wait),
        cmocka_unit_test_teardown(a_fetched_file_outlives_its_descriptor, recover),
        cmocka_unit_test(a_file_is_held_or_gone),
        cmocka_unit_test(reads_ahead_are_taken),
        cmocka_unit_test(the_probe_finds_slow_storage),
        cmocka_unit_test(a_change_of_slow_storage_is_found),
        cmocka_unit_test(a_loader_survives_a_hang),
        cmocka_unit_test(a_mask_that_hangs_misses_the_deadline),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
