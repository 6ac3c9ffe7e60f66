/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * tokmap_loader_rewind(): a rewound loader delivers what a new one delivers, whenever it is rewound: before the first
 * batch, in the middle of a step, at the end, after a failure, while the producer waits or works, and between rows that
 * are read by name.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define SEQ 100
#define BATCH 5
#define CALLS_MOST 4000

static char folder[512];
static struct made made;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {7000, 5000};
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 50257, sizes, 2);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

static struct tokmap_run *make_run(enum tokmap_reading reading, enum tokmap_order_kind order)
{
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_run *run;
    struct tokmap_error error;
    options.data = made.name;
    options.seq_len = SEQ;
    options.batch = BATCH;
    options.seed = 7;
    options.passes = 2;
    options.order = order;
    options.reading = reading;
    if (simple_run_open(&run, &options, &error))
        fail_msg("%s", error.message);
    return run;
}

/* What one call delivered, without its outputs. */
struct delivered {
    uint64_t step, first_row, count;
    int last_in_step;
    struct tokmap_cursor cursor;
};

/* Calls next() once, and checks the rows and the outputs against the run. Returns whether there was a batch. */
static bool take(const struct tokmap_run *run, struct tokmap_loader *loader, struct delivered *into)
{
    static int32_t inputs[BATCH * SEQ], targets[BATCH * SEQ], positions[BATCH * SEQ];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    out.inputs = inputs;
    out.targets = targets;
    out.position_ids = positions;
    enum tokmap_status status = tokmap_loader_next(loader, &out, NULL, &batch, &error);
    if (status == TOKMAP_END)
        return false;
    if (status)
        fail_msg("%s", error.message);
    memset(into, 0, sizeof *into);
    into->step = batch.step;
    into->first_row = batch.first_row;
    into->count = batch.count;
    into->last_in_step = batch.last_in_step;
    into->cursor = batch.cursor;
    for (uint64_t i = 0; i < batch.count; i++) {
        struct tokmap_place place;
        assert_int_equal(tokmap_run_locate(run, batch.step, batch.first_row + i, &place, NULL), TOKMAP_OK);
        assert_memory_equal(&place, &batch.places[i], sizeof place);
        assert_true(made_row_is(&made, batch.rows[i], place.first_token, SEQ + 1));
        assert_int_equal(inputs[i * SEQ + 3], made_token(&made, place.first_token + 3));
        assert_int_equal(targets[i * SEQ + SEQ - 1], made_token(&made, place.first_token + SEQ));
        assert_int_equal(positions[i * SEQ], 0);
    }
    return true;
}

/* Opens a loader with these options and records all that it delivers. Returns the number of calls. */
static uint64_t record(const struct tokmap_run *run, const struct tokmap_loader_options *options,
                       struct delivered *expected)
{
    struct tokmap_loader *loader;
    uint64_t calls = 0;
    assert_int_equal(tokmap_loader_open(&loader, run, options, NULL), TOKMAP_OK);
    while (take(run, loader, &expected[calls]))
        assert_true(++calls < CALLS_MOST);
    tokmap_loader_close(loader);
    return calls;
}

/* Rewinds a loader again and again after `stop` calls, or after the end, and at last reads it to the end. */
static void check(const struct tokmap_run *run, const struct tokmap_loader_options *options,
                  const struct delivered *expected, uint64_t calls)
{
    struct tokmap_loader *loader;
    struct delivered found;
    const uint64_t stops[] = {0, 0, 1, 2, calls / 2, calls - 1, calls, calls + 1, calls + 2, 3, calls + 1};
    assert_int_equal(tokmap_loader_open(&loader, run, options, NULL), TOKMAP_OK);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        for (uint64_t call = 0; call < stops[i]; call++) {
            if (call % 3 == 1)
                (void)tokmap_loader_wait(loader, call % 2 ? UINT64_MAX >> 1 : 1);
            assert_int_equal(take(run, loader, &found), call < calls);
            if (call < calls)
                assert_memory_equal(&found, &expected[call], sizeof found);
        }
        if (i % 3 == 2)
            (void)tokmap_loader_wait(loader, 1000);
        assert_int_equal(tokmap_loader_rewind(loader, NULL), TOKMAP_OK);
    }
    tokmap_loader_close(loader);
}

static void it_begins_again_whenever_it_is_rewound(void **unused)
{
    (void)unused;
    static struct delivered expected[CALLS_MOST];
    char cursor[TOKMAP_CURSOR_TEXT];
    for (unsigned kind = 0; kind < 32; kind++) {
        struct tokmap_run *run =
            make_run(kind & 1 ? TOKMAP_READ_PREAD : TOKMAP_READ_MAPPED, kind & 16 ? TOKMAP_SEQUENTIAL : TOKMAP_SHUFFLE);
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_cursor from;
        options.fields |= TOKMAP_POSITION_IDS;
        options.threads = kind >> 1 & 1;
        options.rank = kind & 4 ? 1 : 0;
        options.world = kind & 4 ? 3 : 1;
        options.rows = kind & 4 ? 1 : 2;
        options.ring_bytes = kind & 1 ? 10000 : 0;
        options.drop_behind = kind == 3;
        assert_int_equal(tokmap_run_cursor(run, 9, &from, NULL), TOKMAP_OK);
        tokmap_cursor_print(&from, cursor);
        options.resume = kind & 8 ? cursor : NULL;
        uint64_t calls = record(run, &options, expected);
        assert_int_equal(expected[0].step, kind & 8 ? 9 : 0);
        check(run, &options, expected, calls);
        tokmap_run_close(run);
    }
}

/* A run without a step that is delivered: rewinding it changes nothing. */
static void an_empty_run(void **unused)
{
    (void)unused;
    struct tokmap_run *run;
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    assert_int_equal(run_parse_in(&run, "seq_len 100\nbatch 2\nsteps 3\nskip 0..3\nsource a data.list\n", folder, NULL),
                     TOKMAP_OK);
    for (options.threads = 0; options.threads < 2; options.threads++) {
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        for (unsigned turn = 0; turn < 3; turn++) {
            assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_END);
            assert_int_equal(tokmap_loader_rewind(loader, NULL), TOKMAP_OK);
        }
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

static void change_first_token(uint16_t value)
{
    int fd;
    assert_int_equal(os_open(made.bin[0], OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pwrite(fd, &value, sizeof value, 0), 0);
    os_close(fd);
}

/* The failure of a batch belongs to the rows that were read then. It ends with rewinding. */
static void after_a_failure(void **unused)
{
    (void)unused;
    struct tokmap_run *run = make_run(TOKMAP_READ_PREAD, TOKMAP_SEQUENTIAL);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.fields |= TOKMAP_POSITION_IDS;
    for (unsigned kind = 0; kind < 4; kind++) {
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error;
        struct delivered found;
        options.threads = kind & 1;
        change_first_token(60000);
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        if (kind & 2) {
            assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_ERROR_CORRUPT);
            assert_int_equal(tokmap_loader_rewind(loader, NULL), TOKMAP_OK);
            assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_ERROR_CORRUPT);
        } else {
            (void)tokmap_loader_wait(loader, UINT64_MAX >> 1);
        }
        change_first_token((uint16_t)made_token(&made, 0));
        assert_int_equal(tokmap_loader_rewind(loader, &error), TOKMAP_OK);
        for (uint64_t step = 0; step < 3; step++) {
            assert_true(take(run, loader, &found));
            assert_int_equal(found.step, step);
        }
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

/* Rows that are read by name use the slot of the next batch. */
static void between_rows_that_are_named(void **unused)
{
    (void)unused;
    static int32_t inputs[BATCH * SEQ];
    struct tokmap_run *run = make_run(TOKMAP_READ_AUTO, TOKMAP_SHUFFLE);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct delivered found;
    const uint64_t steps[] = {30, 2}, rows[] = {1, 4};
    options.threads = 0;
    options.fields |= TOKMAP_POSITION_IDS;
    out.inputs = out.targets = out.position_ids = inputs;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    for (uint64_t turn = 0; turn < 5; turn++) {
        for (uint64_t step = 0; step < turn; step++) {
            assert_true(take(run, loader, &found));
            assert_int_equal(found.step, step);
        }
        assert_int_equal(tokmap_loader_read(loader, steps, rows, 2, &out, &batch, NULL), TOKMAP_OK);
        assert_int_equal(batch.step, 30);
        assert_int_equal(tokmap_loader_rewind(loader, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_loader_read(loader, steps, rows, 2, &out, &batch, NULL), TOKMAP_OK);
        assert_int_equal(batch.cursor.step, 0);
    }
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

static void statistics_go_on(void **unused)
{
    (void)unused;
    struct tokmap_run *run = make_run(TOKMAP_READ_AUTO, TOKMAP_SHUFFLE);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    struct tokmap_loader *loader;
    struct delivered found;
    options.fields |= TOKMAP_POSITION_IDS;
    for (options.threads = 0; options.threads < 2; options.threads++) {
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        for (unsigned turn = 0; turn < 3; turn++) {
            for (unsigned call = 0; call < 4; call++)
                assert_true(take(run, loader, &found));
            assert_int_equal(tokmap_loader_rewind(loader, NULL), TOKMAP_OK);
        }
        assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
        assert_int_equal(stats.batches, 12);
        assert_int_equal(stats.rows, 12 * BATCH);
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

static void without_a_loader(void **unused)
{
    (void)unused;
    struct tokmap_error error = {.status = TOKMAP_OK};
    assert_int_equal(tokmap_loader_rewind(NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "loader is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_again_whenever_it_is_rewound),
        cmocka_unit_test(an_empty_run),
        cmocka_unit_test(after_a_failure),
        cmocka_unit_test(between_rows_that_are_named),
        cmocka_unit_test(statistics_go_on),
        cmocka_unit_test(without_a_loader),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
