/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * A loader with a producer thread whose consumer returns at once fills its batches itself, and the producer continues
 * when the consumer has other work. Whoever fills a batch, it has the same rows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "loader/loader_state.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define SEQ 100
#define BATCH 64 /* filling so many rows takes longer than taking them, so a consumer that returns at once waits */
#define TRIES 2000000

static char folder[512];
static struct made made;
static struct tokmap_run *run;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {70000, 50000};
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_error error;
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 50257, sizes, 2);
    options.data = made.name;
    options.seq_len = SEQ;
    options.batch = BATCH;
    options.passes = 200000; /* longer than TRIES take */
    if (simple_run_open(&run, &options, &error))
        fail_msg("%s", error.message);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    tokmap_run_close(run);
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

struct reader {
    struct tokmap_loader *loader;
    struct tokmap_batch batch;
    uint64_t step; /* of the next batch */
    uint64_t alone, together;
    bool hurried; /* one token of a batch is compared: comparing all takes longer than PACE_NS */
};

static void reader_open(struct reader *reader, const char *resume)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.threads = 1;
    options.resume = resume;
    *reader = (struct reader){.batch = TOKMAP_BATCH_INIT};
    assert_int_equal(tokmap_loader_open(&reader->loader, run, &options, NULL), TOKMAP_OK);
}

/* Takes a batch, and compares every token of it, or of one row. rows: through pointers to rows, without outputs. */
static void take(struct reader *reader, bool rows)
{
    static int32_t inputs[BATCH * SEQ], targets[BATCH * SEQ];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct tokmap_batch *batch = &reader->batch;
    struct tokmap_error error;
    out.inputs = inputs;
    out.targets = targets;
    if (!reader->hurried) {
        memset(inputs, 0xff, sizeof inputs);
        memset(targets, 0xff, sizeof targets);
    }
    if (tokmap_loader_next(reader->loader, rows ? NULL : &out, NULL, batch, &error))
        fail_msg("%s", error.message);
    assert_int_equal(batch->step, reader->step++);
    assert_int_equal(batch->count, BATCH);
    assert_int_equal(batch->cursor.step, reader->step);
    const bool hurried = reader->hurried;
    const uint64_t only = batch->step % BATCH, stride = hurried ? SEQ : 1;
    for (uint64_t i = hurried ? only : 0; i < (hurried ? only + 1 : BATCH); i++) {
        const uint64_t first = batch->places[i].first_token;
        assert_true(batch->places[i].row == i);
        assert_true(!rows || made_row_is(&made, batch->rows[i], first, SEQ + 1));
        for (uint64_t j = 0; j < SEQ && !rows; j += stride) {
            assert_int_equal(inputs[i * SEQ + j], made_token(&made, (first + j) % made.tokens));
            assert_int_equal(targets[i * SEQ + j], made_token(&made, (first + j + 1) % made.tokens));
        }
    }
    *(reader->loader->next.pace.alone ? &reader->alone : &reader->together) += 1;
}

/* Takes batches until the producer is paused. */
static void take_until_alone(struct reader *reader)
{
    reader->hurried = true;
    for (uint64_t i = 0; i < TRIES && !reader->loader->next.pace.alone; i++) {
        reader->loader->next.pace.returns = 0; /* other programs may interrupt this one often */
        take(reader, false);
    }
    reader->hurried = false;
    assert_true(reader->loader->next.pace.alone);
}

static void a_consumer_that_returns_at_once_is_alone(void **unused)
{
    (void)unused;
    struct reader reader;
    reader_open(&reader, NULL);
    for (int round = 0; round < 6; round++) {
        take_until_alone(&reader);
        for (int i = 0; i < 100; i++) {
            if (reader.loader->next.pace.alone && i % 7 == 3)
                assert_int_equal(tokmap_loader_wait(reader.loader, 0), 1);
            take(&reader, i % 11 == 5);
        }
        for (int i = 0; i < 2; i++) {
            os_sleep_ns(2000000);
            take(&reader, false);
        }
        assert_false(reader.loader->next.pace.alone);
        for (int i = 0; i < 20; i++) {
            os_sleep_ns(100000);
            take(&reader, i % 11 == 5);
            assert_false(reader.loader->next.pace.alone);
        }
    }
    assert_true(reader.alone > 0 && reader.together > 0);
    tokmap_loader_close(reader.loader);
}

static void it_moves_and_ends_alone(void **unused)
{
    (void)unused;
    struct reader reader;
    struct tokmap_cursor cursor;
    char text[TOKMAP_CURSOR_TEXT];
    reader_open(&reader, NULL);
    take_until_alone(&reader);
    assert_int_equal(tokmap_loader_rewind(reader.loader, NULL), TOKMAP_OK);
    assert_false(reader.loader->next.pace.alone);
    reader.step = 0;
    take_until_alone(&reader);
    assert_int_equal(tokmap_loader_repartition(reader.loader, 0, 1, NULL), TOKMAP_OK);
    assert_false(reader.loader->next.pace.alone);
    take_until_alone(&reader);
    cursor = reader.batch.cursor;
    tokmap_loader_close(reader.loader);
    tokmap_cursor_print(&cursor, text);
    const uint64_t step = reader.step;
    reader_open(&reader, text);
    reader.step = step;
    take_until_alone(&reader);
    tokmap_loader_close(reader.loader);
}

/* A batch that cannot be read is a status, alone, too, and the same rows come once the file is whole again. */
static void a_fault_is_reported_alone(void **unused)
{
    (void)unused;
    struct reader reader;
    struct tokmap_error error;
    int fd;
    reader_open(&reader, NULL);
    take_until_alone(&reader);
    assert_int_equal(os_open(made.bin[0], OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_truncate(fd, 4096), 0);
    os_sleep_ns(2000000);
    int32_t inputs[BATCH * SEQ], targets[BATCH * SEQ];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    out.inputs = inputs;
    out.targets = targets;
    enum tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < 1000 && !status; i++, reader.step += !status)
        status = tokmap_loader_next(reader.loader, &out, NULL, &reader.batch, &error);
    assert_int_equal(status, TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(tokmap_loader_next(reader.loader, &out, NULL, &reader.batch, &error), TOKMAP_ERROR_TRUNCATED);
    for (uint64_t i = 0; i < 70000; i++) {
        const uint16_t id = (uint16_t)made_token(&made, i);
        assert_int_equal(os_pwrite(fd, &id, sizeof id, i * sizeof id), 0);
    }
    os_close(fd);
    os_sleep_ns(2000000);
    take(&reader, false);
    take_until_alone(&reader);
    tokmap_loader_close(reader.loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_consumer_that_returns_at_once_is_alone),
        cmocka_unit_test(it_moves_and_ends_alone),
        cmocka_unit_test(a_fault_is_reported_alone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
