/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * tokmap_loader_read(): rows that are read by name, in any order, are the rows that next() delivers, and reading them
 * does not move the loader. tokmap_loader_wait(): reports whether next() would wait, waits no longer than asked, and
 * loses no batch.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/loader_state.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define SEQ 33
#define BATCH 6
#define STEPS 40

static char folder[512];
static struct made made;
static struct tokmap_run *run;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {700, 3, 1, 2900, 512};
    struct tokmap_error error;
    scratch_make(folder);
    made_new(&made, folder, "narrow", 2, 50257, sizes, 5);
    return run_parse_in(&run, "seq_len 33\nbatch 6\nseed 9\nsource data narrow.list\nskip 3..5\nsteps 40\n", folder,
                        &error);
}

static int teardown(void **unused)
{
    (void)unused;
    tokmap_run_close(run);
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

struct cells {
    int64_t inputs[BATCH][SEQ], targets[BATCH][SEQ], positions[BATCH][SEQ];
};

static struct tokmap_loader *open_loader(uint32_t threads, uint64_t rank, uint64_t world)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct tokmap_error error;
    options.fields |= TOKMAP_POSITION_IDS;
    options.threads = threads;
    options.rank = rank;
    options.world = world;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_OK);
    return loader;
}

static struct tokmap_out out_of(struct cells *cells)
{
    return (struct tokmap_out){.size = sizeof(struct tokmap_out),
                               .type = TOKMAP_ID_I64,
                               .inputs = cells->inputs,
                               .targets = cells->targets,
                               .position_ids = cells->positions};
}

static struct cells whole[STEPS]; /* what next() delivers in each step */

static void take_all(void)
{
    struct tokmap_loader *loader = open_loader(0, 0, 1);
    struct tokmap_error error;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct cells cells;
    struct tokmap_out out = out_of(&cells);
    uint64_t steps = 0;
    while (tokmap_loader_next(loader, &out, NULL, &batch, &error) == TOKMAP_OK) {
        whole[batch.step] = cells;
        steps++;
    }
    assert_int_equal(steps, STEPS - 2);
    tokmap_loader_close(loader);
}

static bool row_equals(const struct cells *cells, uint64_t i, uint64_t step, uint64_t row)
{
    return !memcmp(cells->inputs[i], whole[step].inputs[row], sizeof cells->inputs[i]) &&
           !memcmp(cells->targets[i], whole[step].targets[row], sizeof cells->targets[i]) &&
           !memcmp(cells->positions[i], whole[step].positions[row], sizeof cells->positions[i]);
}

static void test_read_any_order(void **unused)
{
    (void)unused;
    take_all();
    struct tokmap_loader *loader = open_loader(0, 0, 1);
    struct tokmap_error error;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT, next = TOKMAP_BATCH_INIT;
    struct cells cells;
    struct tokmap_out out = out_of(&cells);
    uint64_t made_up = 12345, delivered = 0;
    for (int turn = 0; turn < 500; turn++) {
        uint64_t steps[BATCH], rows[BATCH], count = (uint64_t)turn % (BATCH + 1);
        for (uint64_t i = 0; i < count; i++) {
            made_up = made_up * 6364136223846793005u + 1442695040888963407u;
            steps[i] = (made_up >> 33) % STEPS;
            rows[i] = (made_up >> 50) % BATCH;
            if (!tokmap_run_delivers(run, steps[i]))
                steps[i] = 0;
        }
        assert_int_equal(tokmap_loader_read(loader, steps, rows, count, &out, &batch, &error), TOKMAP_OK);
        assert_int_equal(batch.count, count);
        for (uint64_t i = 0; i < count; i++) {
            assert_true(row_equals(&cells, i, steps[i], rows[i]));
            assert_int_equal(batch.places[i].step, steps[i]);
            assert_int_equal(batch.places[i].row, rows[i]);
            assert_true(made_row_is(&made, batch.rows[i], batch.places[i].first_token, batch.row_tokens));
        }
        /* The loader continues where it was. */
        if (turn % 25 == 0) {
            assert_int_equal(tokmap_loader_next(loader, &out, NULL, &next, &error), TOKMAP_OK);
            assert_int_equal(next.step, delivered < 3 ? delivered : delivered + 2);
            assert_true(row_equals(&cells, 5, next.step, 5));
            delivered++;
        }
    }
    tokmap_loader_close(loader);
}

/* A loader reads the rows of other ranks too, at most as many at once as it delivers in a call. */
/* Ranks that share rows read their columns of any rows, and then what next() delivers. */
static void test_read_of_slices(void **unused)
{
    (void)unused;
    enum { SLICES = 3, COLUMNS = SEQ / SLICES };
    int64_t inputs[BATCH][COLUMNS], targets[BATCH][COLUMNS], positions[BATCH][COLUMNS];
    uint64_t state = 3, steps[BATCH], rows[BATCH];
    take_all();
    for (uint64_t round = 0; round < 60; round++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_out out = TOKMAP_OUT_INIT;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_loader *loader;
        const uint64_t count = round % 2 ? BATCH : random_below(&state, BATCH + 1), slice = round % SLICES;
        options.threads = 0;
        options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS | (round % 4 < 2 ? TOKMAP_POSITION_IDS : 0);
        options.context_rank = slice;
        options.context_world = SLICES;
        out = (struct tokmap_out){
            .size = sizeof out, .type = TOKMAP_ID_I64, .inputs = inputs, .targets = targets, .position_ids = positions};
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        for (uint64_t i = 0; i < count; i++) {
            steps[i] = random_below(&state, STEPS);
            rows[i] = random_below(&state, BATCH);
            if (steps[i] >= 3 && steps[i] < 5) /* skipped, so never delivered */
                steps[i] = 5;
        }
        for (unsigned twice = 0; twice < 2; twice++) {
            assert_int_equal(twice ? tokmap_loader_next(loader, &out, NULL, &batch, NULL)
                                   : tokmap_loader_read(loader, steps, rows, count, &out, &batch, NULL),
                             TOKMAP_OK);
            assert_true(batch.columns == COLUMNS && !batch.rows && batch.tokens == batch.count * COLUMNS);
            for (uint64_t i = 0; i < batch.count; i++) {
                const struct cells *cells = &whole[twice ? 0 : steps[i]];
                const uint64_t row = twice ? i : rows[i];
                assert_memory_equal(inputs[i], &cells->inputs[row][slice * COLUMNS], sizeof inputs[i]);
                assert_memory_equal(targets[i], &cells->targets[row][slice * COLUMNS], sizeof targets[i]);
                if (options.fields & TOKMAP_POSITION_IDS)
                    assert_memory_equal(positions[i], &cells->positions[row][slice * COLUMNS], sizeof positions[i]);
            }
        }
        tokmap_loader_close(loader);
    }
}

static void test_read_of_one_rank(void **unused)
{
    (void)unused;
    struct tokmap_loader *loader = open_loader(0, 2, 3);
    struct tokmap_error error;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct cells cells;
    struct tokmap_out out = out_of(&cells);
    uint64_t steps[3] = {7, 7, 0}, rows[3] = {0, 5, 1};
    assert_int_equal(tokmap_loader_rows(loader), 2);
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 2, &out, &batch, &error), TOKMAP_OK);
    assert_true(row_equals(&cells, 0, 7, 0) && row_equals(&cells, 1, 7, 5));
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 3, &out, &batch, &error), TOKMAP_ERROR_LIMIT);
    steps[1] = STEPS;
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 2, &out, &batch, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(batch.count, 0);
    steps[1] = 7;
    rows[1] = BATCH;
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 2, &out, &batch, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_loader_read(loader, NULL, rows, 2, &out, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_loader_read(NULL, steps, rows, 2, &out, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    out.targets = NULL;
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 1, &out, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_loader_close(loader);
    loader = open_loader(1, 0, 1);
    out = out_of(&cells);
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 1, &out, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "threads 0"));
    tokmap_loader_close(loader);
}

/* Returns the number of read system calls that this process has made; 0 if the system does not count them. */
static uint64_t reads(void)
{
    char line[128];
    uint64_t count = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "syscr: %" SCNu64, &count) != 1)
        ;
    if (file)
        (void)fclose(file);
    return count;
}

/* Reads six rows of random steps by name. */
static enum tokmap_status read_some(struct tokmap_loader *loader, uint64_t *made_up)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    uint64_t steps[BATCH], rows[BATCH];
    for (uint64_t i = 0; i < BATCH; i++) {
        *made_up = *made_up * 6364136223846793005u + 1442695040888963407u;
        steps[i] = (*made_up >> 33) % STEPS;
        rows[i] = i;
    }
    return tokmap_loader_read(loader, steps, rows, BATCH, NULL, &batch, &error);
}

/* Rows in the page cache are soon read from the mapping, like by next(), without a system call for each row. A file
 * that is truncated then is still reported as a status. */
static void test_read_from_the_mapping(void **unused)
{
    (void)unused;
    const uint64_t size = 20000;
    struct made mapped;
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_loader_options how = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_run *whole_run;
    struct tokmap_loader *by_order, *by_name;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    uint64_t made_up = 77, before;
    made_new(&mapped, folder, "mapped", 2, 50257, &size, 1);
    options.data = mapped.name;
    options.seq_len = 100;
    options.batch = BATCH;
    options.reading = TOKMAP_READ_MAPPED;
    assert_int_equal(simple_run_open(&whole_run, &options, NULL), TOKMAP_OK);
    how.threads = how.fields = 0;
    assert_int_equal(tokmap_loader_open(&by_order, whole_run, &how, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_open(&by_name, whole_run, &how, NULL), TOKMAP_OK);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(tokmap_loader_next(by_order, NULL, NULL, &batch, NULL), TOKMAP_OK);
        assert_int_equal(read_some(by_name, &made_up), TOKMAP_OK);
    }
    before = reads();
    for (int i = 0; i < 200; i++)
        assert_int_equal(tokmap_loader_next(by_order, NULL, NULL, &batch, NULL), TOKMAP_OK);
    uint64_t next_took = reads() - before;
    before = reads();
    for (int i = 0; i < 200; i++)
        assert_int_equal(read_some(by_name, &made_up), TOKMAP_OK);
    /* If the kernel cannot populate a mapping, both loaders make a system call for each row. */
    assert_in_range(reads() - before, 0, next_took + 100);
    assert_int_equal(truncate(mapped.bin[0], 100), 0);
    os_sleep_ns(100000); /* batches that begin within 50 microseconds share a look at the sizes of files */
    assert_int_equal(read_some(by_name, &made_up), TOKMAP_ERROR_TRUNCATED);
    tokmap_loader_close(by_order);
    tokmap_loader_close(by_name);
    tokmap_run_close(whole_run);
    made_free(&mapped);
}

/* Inputs and targets are written while the rows are filled, and the sources of the rows after that. */
static void test_read_sources(void **unused)
{
    (void)unused;
    const uint64_t steps[] = {7, 0}, rows[] = {2, 5};
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_loader *loader;
    struct cells cells;
    struct tokmap_out out = out_of(&cells);
    int64_t sources[BATCH] = {-7, -7, -7};
    options.fields |= TOKMAP_SOURCE_IDS;
    options.threads = 0;
    out.source_ids = sources;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 2, &out, &batch, NULL), TOKMAP_OK);
    assert_int_equal(sources[0], 0);
    assert_int_equal(sources[1], 0);
    assert_int_equal(sources[2], -7);
    tokmap_loader_close(loader);
}

/* Rows of one step know its count, and rows of several only their own. */
static void test_read_counts(void **unused)
{
    (void)unused;
    const uint64_t steps[] = {7, 7, 8}, rows[] = {2, 5, 0};
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_loader *loader;
    uint64_t each[3];
    static int64_t mask[BATCH][SEQ];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    out.type = TOKMAP_ID_I64;
    out.loss_mask = mask;
    options.fields = TOKMAP_LOSS_MASK;
    options.threads = 0;
    options.counts = 1;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    for (int i = 0; i < 3; i++) {
        uint64_t count = 0;
        assert_int_equal(tokmap_loader_read(loader, &steps[i], &rows[i], 1, &out, &batch, NULL), TOKMAP_OK);
        for (int j = 0; j < SEQ; j++)
            count += mask[0][j] != 0;
        assert_int_equal(batch.counted, count);
        assert_true(batch.counted_in_step > count);
        each[i] = count;
    }
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 3, &out, &batch, NULL), TOKMAP_OK);
    assert_int_equal(batch.counted, each[0] + each[1] + each[2]);
    assert_int_equal(batch.counted_in_step, 0);
    assert_int_equal(tokmap_loader_read(loader, steps, rows, 0, &out, &batch, NULL), TOKMAP_OK);
    assert_int_equal(batch.counted + batch.counted_in_step, 0);
    const uint64_t whole_step[] = {0, 0, 0, 0, 0, 0}, all[] = {0, 1, 2, 3, 4, 5};
    assert_int_equal(tokmap_loader_read(loader, whole_step, all, BATCH, &out, &batch, NULL), TOKMAP_OK);
    assert_int_equal(batch.counted, batch.counted_in_step);
    options.counts = 2;
    struct tokmap_loader *none;
    assert_int_equal(tokmap_loader_open(&none, run, &options, NULL), TOKMAP_ERROR_ARGUMENT);
    tokmap_loader_close(loader);
}

/* A backend whose expand() fails `failures` times and then works. */
static const struct backend_calls *real_calls;
static int failures;

static enum tokmap_status failing_expand(struct backend *backend, uint32_t slot, const struct expand_arguments *work,
                                         const struct backend_copy *copies, uint32_t count, void *stream,
                                         struct tokmap_error *error)
{
    return failures-- > 0 ? TOKMAP_ERROR_DEVICE : real_calls->expand(backend, slot, work, copies, count, stream, error);
}

/* If writing the outputs fails, the next call of next() delivers the rows, exactly once, even if rows are read by name
 * in between, and even if that call passes no outputs. */
static void test_read_after_a_failed_next(void **unused)
{
    (void)unused;
    for (int read_between = 0; read_between < 2; read_between++) {
        struct tokmap_loader *loader = open_loader(0, 0, 1);
        struct tokmap_error error;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct cells cells;
        struct tokmap_out out = out_of(&cells);
        struct backend_calls calls = *loader->backend->calls;
        const uint64_t step = 7, row = 2;
        real_calls = loader->backend->calls;
        calls.expand = failing_expand;
        loader->backend->calls = &calls;
        for (uint64_t delivered = 0; delivered < 20; delivered++) {
            const uint64_t expected = delivered < 3 ? delivered : delivered + 2;
            failures = 1;
            assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_ERROR_DEVICE);
            if (read_between) {
                failures = 0;
                assert_int_equal(tokmap_loader_read(loader, &step, &row, 1, &out, &batch, &error), TOKMAP_OK);
                assert_true(row_equals(&cells, 0, step, row));
                assert_int_equal(batch.cursor.step, expected);
            }
            failures = 0;
            assert_int_equal(tokmap_loader_next(loader, delivered % 2 ? NULL : &out, NULL, &batch, &error), TOKMAP_OK);
            assert_int_equal(batch.step, expected);
            assert_true(delivered % 2 || row_equals(&cells, 3, batch.step, 3));
            assert_true(made_row_is(&made, batch.rows[5], batch.places[5].first_token, batch.row_tokens));
        }
        loader->backend->calls = real_calls;
        tokmap_loader_close(loader);
    }
}

static void test_wait(void **unused)
{
    (void)unused;
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader *loader = open_loader(threads, 0, 1);
        struct tokmap_error error;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct cells cells;
        struct tokmap_out out = out_of(&cells);
        uint64_t taken = 0;
        for (;;) {
            while (!tokmap_loader_wait(loader, taken % 3 ? 1000000 : 0))
                ;
            if (taken % 4 == 0)
                assert_int_equal(tokmap_loader_wait(loader, 1000), 1); /* a second call reports the same */
            enum tokmap_status status = tokmap_loader_next(loader, &out, NULL, &batch, &error);
            if (status == TOKMAP_END)
                break;
            assert_int_equal(status, TOKMAP_OK);
            assert_true(row_equals(&cells, 4, batch.step, 4));
            taken++;
        }
        assert_int_equal(taken, STEPS - 2);
        assert_int_equal(tokmap_loader_wait(loader, UINT64_MAX / 2), 1); /* at the end it does not wait */
        struct tokmap_stats stats = TOKMAP_STATS_INIT;
        assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
        assert_int_equal(stats.batches, taken);
        tokmap_loader_close(loader);
    }
    assert_int_equal(tokmap_loader_wait(NULL, 0), 1);
}

/* Waits in short turns, as a caller does that must look at something else in between. */
static void wait_in_turns(struct tokmap_loader *loader, uint64_t *in_vain)
{
    while (!tokmap_loader_wait(loader, 100000))
        ++*in_vain;
}

static void test_wait_counts(void **unused)
{
    (void)unused;
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct tokmap_error error;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    uint64_t in_vain = 0;
    options.fields = 0;
    options.ring_bytes = 4096; /* one or two slots, so next() must release one before another can be filled */
    assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_OK);
    for (uint64_t taken = 0; taken < STEPS - 2; taken++) {
        wait_in_turns(loader, &in_vain);
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_OK);
        assert_true(made_row_is(&made, batch.rows[0], batch.places[0].first_token, batch.row_tokens));
    }
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    uint64_t counted = 0;
    for (int i = 0; i < TOKMAP_WAIT_BUCKETS; i++)
        counted += stats.wait_histogram[i];
    assert_int_equal(counted, STEPS - 2); /* one for each batch, however often it waited */
    assert_true(!in_vain || stats.waits);
    tokmap_loader_close(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_any_order),
        cmocka_unit_test(test_read_of_slices),
        cmocka_unit_test(test_read_of_one_rank),
        cmocka_unit_test(test_read_sources),
        cmocka_unit_test(test_read_counts),
        cmocka_unit_test(test_read_from_the_mapping),
        cmocka_unit_test(test_read_after_a_failed_next),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_wait_counts),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
