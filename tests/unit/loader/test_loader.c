/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * tokmap_loader_*: all ranks together deliver the run, row by row and in order, with any number of ranks, rows per
 * call, and threads, and in both readings. A run continues from a cursor on any number of ranks.
 *
 * The value of a token shows its place (support/made.h), and tokmap_run_locate() defines what each row must be.
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

static char folder[512];
static struct made wide, narrow;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t one[] = {9001}, many[] = {700, 3, 1, 2900, 512};
    scratch_make(folder);
    made_new(&wide, folder, "wide", 4, 9001, one, 1);
    made_new(&narrow, folder, "narrow", 2, 50257, many, 5);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    made_free(&wide);
    made_free(&narrow);
    scratch_remove(folder);
    return 0;
}

static struct tokmap_run *parse(const char *text)
{
    struct tokmap_run *run;
    struct tokmap_error error;
    char said[1000];
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s: %s", text, tokmap_error_print(&error, said, sizeof said));
    return run;
}

/* ---- the calls of one rank ---- */

struct outputs {
    char *inputs, *targets, *positions, *rows;
    struct tokmap_out out;
};

static void outputs_new(struct outputs *outputs, uint64_t rows, const struct tokmap_run_info *info, uint32_t width,
                        enum tokmap_id_type type)
{
    uint64_t cells = rows * info->seq_len + 1, size = type == TOKMAP_ID_I64 ? 8 : 4;
    outputs->inputs = malloc(cells * size);
    outputs->targets = malloc(cells * size);
    outputs->positions = malloc(cells * size);
    outputs->rows = malloc(rows * (info->seq_len + info->lookahead) * width + 1);
    outputs->out = (struct tokmap_out){.size = sizeof(struct tokmap_out),
                                       .type = type,
                                       .inputs = outputs->inputs,
                                       .targets = outputs->targets,
                                       .position_ids = outputs->positions,
                                       .rows = outputs->rows};
}

static void outputs_free(struct outputs *outputs)
{
    free(outputs->inputs);
    free(outputs->targets);
    free(outputs->positions);
    free(outputs->rows);
}

static uint64_t cell(const char *cells, uint64_t i, enum tokmap_id_type type)
{
    return type == TOKMAP_ID_I64 ? load64(cells + i * 8) : load32(cells + i * 4);
}

/* Compares row i of a batch with the definitions: its place, its tokens, and every field that was asked for. */
static bool row_is_right(const struct made *made, const struct tokmap_run_info *info, const struct tokmap_batch *batch,
                         uint64_t i, const struct outputs *outputs, uint32_t fields, const struct tokmap_place *place)
{
    uint64_t seq = info->seq_len, row_tokens = seq + info->lookahead;
    enum tokmap_id_type type = outputs->out.type;
    const struct tokmap_place *found = &batch->places[i];
    bool fine = !memcmp(found, place, sizeof *place);
    if (fields == TOKMAP_INPUTS || fields == (TOKMAP_INPUTS | TOKMAP_TARGETS))
        fine = fine && !batch->rows;
    else
        fine = fine && (uintptr_t)batch->rows[i] % 16 == 0 &&
               made_row_is(made, batch->rows[i], place->first_token, row_tokens);
    if (fields & TOKMAP_ROWS)
        fine = fine && made_row_is(made, outputs->rows + i * row_tokens * made->width, place->first_token, row_tokens);
    uint64_t position = 0;
    for (uint64_t j = 0; j < seq && fine; j++, position++) {
        uint64_t token = (place->first_token + j) % made->tokens;
        if (j == 0 || made->starts[token])
            position = 0;
        if (fields & TOKMAP_INPUTS)
            fine = cell(outputs->inputs, i * seq + j, type) == made_token(made, token);
        if (fields & TOKMAP_TARGETS)
            fine = fine && cell(outputs->targets, i * seq + j, type) == made_token(made, (token + 1) % made->tokens);
        if (fields & TOKMAP_POSITION_IDS)
            fine = fine && cell(outputs->positions, i * seq + j, type) == position;
    }
    return fine;
}

struct cover {
    const struct made *made;
    const struct tokmap_run *run;
    struct tokmap_run_info info;
    unsigned char *seen; /* at s * batch + r: how often row r of step s was delivered */
    uint64_t steps;
};

static bool cursors_equal(const struct tokmap_cursor *one, const struct tokmap_cursor *other)
{
    return !memcmp(one, other, sizeof *one);
}

static uint64_t next_delivered(const struct tokmap_run *run, uint64_t step, uint64_t steps)
{
    while (step < steps && !tokmap_run_delivers(run, step))
        step++;
    return step;
}

/* Makes calls until the end of the run, or `limit` calls, checks each, and counts the rows. Returns the last cursor. */
static struct tokmap_cursor take(struct cover *cover, struct tokmap_loader *loader, struct outputs *outputs,
                                 uint32_t fields, uint64_t from_step, uint64_t limit, uint64_t rank, uint64_t world)
{
    uint64_t batch_rows = cover->info.batch, first = rank * batch_rows / world, end = (rank + 1) * batch_rows / world;
    uint64_t step = next_delivered(cover->run, from_step, cover->steps), row = first, call = 0;
    struct tokmap_cursor cursor;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    assert_int_equal(tokmap_run_cursor(cover->run, from_step, &cursor, NULL), TOKMAP_OK);
    for (uint64_t calls = 0; calls < limit; calls++) {
        enum tokmap_status status = tokmap_loader_next(loader, &outputs->out, NULL, &batch, NULL);
        if (status == TOKMAP_END) {
            assert_int_equal(step, cover->steps);
            assert_int_equal(tokmap_loader_next(loader, &outputs->out, NULL, &batch, NULL), TOKMAP_END);
            assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_END);
            return cursor;
        }
        assert_int_equal(status, TOKMAP_OK);
        assert_int_equal(batch.step, step);
        assert_int_equal(batch.first_row, row);
        assert_true(batch.count <= tokmap_loader_rows(loader));
        assert_int_equal(batch.tokens, batch.count * cover->info.seq_len);
        assert_int_equal(batch.width, cover->made->width);
        for (uint64_t i = 0; i < batch.count; i++, row++) {
            struct tokmap_place place;
            assert_int_equal(tokmap_run_locate(cover->run, step, row, &place, NULL), TOKMAP_OK);
            assert_true(row_is_right(cover->made, &cover->info, &batch, i, outputs, fields, &place));
            cover->seen[step * batch_rows + row]++;
        }
        assert_int_equal(batch.last_in_step, ++call == tokmap_loader_calls_per_step(loader));
        if (batch.last_in_step) {
            assert_int_equal(row, end);
            step = next_delivered(cover->run, step + 1, cover->steps);
            row = first;
            call = 0;
        }
        assert_int_equal(tokmap_run_cursor(cover->run, step, &cursor, NULL), TOKMAP_OK);
        assert_true(cursors_equal(&cursor, &batch.cursor));
    }
    return cursor;
}

static struct tokmap_loader *open_loader(const struct tokmap_run *run, const struct tokmap_loader_options *options)
{
    struct tokmap_loader *loader;
    struct tokmap_error error;
    char said[1000];
    if (tokmap_loader_open(&loader, run, options, &error))
        fail_msg("%s", tokmap_error_print(&error, said, sizeof said));
    return loader;
}

/* Runs all ranks from `from` (the text of a cursor, or NULL) to the end of the run, or for `limit` calls. */
static struct tokmap_cursor take_all(struct cover *cover, const char *from, uint64_t from_step, uint64_t world,
                                     uint64_t rows, uint32_t threads, uint32_t fields, uint64_t limit)
{
    struct tokmap_cursor cursor = {0};
    for (uint64_t rank = 0; rank < world; rank++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct outputs outputs;
        options.rank = rank;
        options.world = world;
        options.rows = rows;
        options.threads = threads;
        options.fields = fields;
        options.resume = from;
        options.read_ahead = (uint32_t)(rows + 3);
        struct tokmap_loader *loader = open_loader(cover->run, &options);
        uint64_t widest = div_ceil(cover->info.batch, world);
        assert_int_equal(tokmap_loader_calls_per_step(loader), rows ? div_ceil(widest, rows) : 1);
        assert_true(tokmap_loader_rows(loader) <= (rows ? rows : widest));
        outputs_new(&outputs, tokmap_loader_rows(loader), &cover->info, cover->made->width,
                    (rank + rows) % 2 ? TOKMAP_ID_I64 : TOKMAP_ID_I32);
        cursor = take(cover, loader, &outputs, fields, from_step, limit, rank, world);
        outputs_free(&outputs);
        tokmap_loader_close(loader);
    }
    return cursor;
}

static void cover_new(struct cover *cover, const struct made *made, const struct tokmap_run *run)
{
    *cover = (struct cover){.made = made, .run = run};
    cover->info.size = sizeof cover->info;
    assert_int_equal(tokmap_run_info(run, &cover->info), TOKMAP_OK);
    cover->steps = cover->info.steps;
    cover->seen = calloc(cover->steps * cover->info.batch + 1, 1);
}

/* Checks that every row of every delivered step was delivered `times` times, and no row of a skipped step. */
static void cover_check(struct cover *cover, unsigned times)
{
    for (uint64_t step = 0; step < cover->steps; step++)
        for (uint64_t row = 0; row < cover->info.batch; row++)
            assert_int_equal(cover->seen[step * cover->info.batch + row],
                             tokmap_run_delivers(cover->run, step) ? times : 0);
    memset(cover->seen, 0, cover->steps * cover->info.batch);
}

/* ---- the tests ---- */

static void all_ranks_together_deliver_the_run(void **unused)
{
    (void)unused;
    static const char *const runs[] = {
        "seq_len 64\nbatch 8\nseed 1\npasses 2\n",
        "seq_len 100\nbatch 7\nseed 99\nsteps 40\nlookahead 3\nskip 3..6\nskip 11..12\n",
        "seq_len 1\nbatch 13\nseed 5\nsteps 30\n",
        "seq_len 333\nbatch 5\norder sequential\npasses 3\nlookahead 0\n",
        "seq_len 2049\nbatch 3\nseed 18446744073709551615\nsteps 9\nskip 0..2\n",
    };
    for (unsigned kind = 0; kind < 2 * sizeof runs / sizeof *runs; kind++) {
        const struct made *made = kind % 2 ? &narrow : &wide;
        char text[300];
        const char *leaf = strrchr(made->name, '/') + 1;
        (void)snprintf(text, sizeof text, "%ssource data %s\n", runs[kind / 2], leaf);
        struct tokmap_run *run = parse(text);
        struct cover cover;
        cover_new(&cover, made, run);
        uint32_t all = TOKMAP_INPUTS | TOKMAP_POSITION_IDS | TOKMAP_ROWS | (cover.info.lookahead ? TOKMAP_TARGETS : 0);
        static const uint32_t some[] = {0, TOKMAP_INPUTS, TOKMAP_ROWS, TOKMAP_POSITION_IDS};
        unsigned turn = 0;
        for (uint64_t world = 1; world <= cover.info.batch; world += world < 3 ? 1 : 2)
            for (uint64_t rows = 0; rows <= cover.info.batch; rows += 1 + rows)
                for (uint32_t threads = 0; threads < 2; threads++) {
                    (void)take_all(&cover, NULL, 0, world, rows, threads, ++turn % 3 ? all : some[turn % 4],
                                   UINT64_MAX);
                    cover_check(&cover, 1);
                }
        free(cover.seen);
        tokmap_run_close(run);
    }
}

static void every_reading_delivers_the_same(void **unused)
{
    (void)unused;
    for (int reading = TOKMAP_READ_AUTO; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t drop = 0; drop < 2; drop++) {
            struct simple_run made_run = SIMPLE_RUN_INIT;
            struct tokmap_run *run;
            made_run.data = narrow.name;
            made_run.seq_len = 50;
            made_run.batch = 6;
            made_run.passes = 3;
            made_run.reading = (enum tokmap_reading)reading;
            assert_int_equal(simple_run_open(&run, &made_run, NULL), TOKMAP_OK);
            struct cover cover;
            cover_new(&cover, &narrow, run);
            struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
            options.drop_behind = drop;
            options.rows = 4;
            for (options.threads = 0; options.threads < 2; options.threads++) {
                struct tokmap_loader *loader = open_loader(run, &options);
                struct outputs outputs;
                struct tokmap_stats stats = TOKMAP_STATS_INIT;
                outputs_new(&outputs, tokmap_loader_rows(loader), &cover.info, 2, TOKMAP_ID_I32);
                (void)take(&cover, loader, &outputs, options.fields, 0, UINT64_MAX, 0, 1);
                assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
                assert_int_equal(stats.reading, drop                          ? TOKMAP_READ_PREAD
                                                : reading == TOKMAP_READ_AUTO ? stats.reading
                                                                              : (enum tokmap_reading)reading);
                assert_int_equal(stats.rows, cover.steps * 6);
                assert_int_equal(stats.tokens, stats.rows * 50);
                assert_int_equal(stats.bytes, stats.rows * 51 * 2);
                assert_int_equal(stats.epoch, 2);
                assert_int_equal(stats.batches, cover.steps * 2);
                outputs_free(&outputs);
                tokmap_loader_close(loader);
                cover_check(&cover, 1);
            }
            free(cover.seen);
            tokmap_run_close(run);
        }
}

/* Stops after any number of calls on one number of ranks, and continues from the cursor on another. All rows of the
 * step that was begun are delivered again, and all other rows once. */
static void a_cursor_goes_on_at_any_call_on_any_ranks(void **unused)
{
    (void)unused;
    struct tokmap_run *run =
        parse("seq_len 40\nbatch 6\nseed 7\nsteps 14\nsource data narrow.list\nskip 2..4\nskip 9..10\nskip 13..14\n");
    struct cover cover;
    cover_new(&cover, &narrow, run);
    uint32_t fields = TOKMAP_INPUTS | TOKMAP_TARGETS;
    for (uint64_t world = 1; world <= 6; world++)
        for (uint64_t rows = 0; rows <= 2; rows++) {
            uint64_t calls = rows ? div_ceil(div_ceil(6, world), rows) : 1;
            for (uint64_t limit = 0; limit <= calls * 10; limit++) {
                char text[TOKMAP_CURSOR_TEXT];
                struct tokmap_cursor cursor = take_all(&cover, NULL, 0, world, rows, limit % 2, fields, limit);
                if (limit % calls) /* do not count the step that was begun */
                    for (uint64_t row = 0; row < 6; row++)
                        cover.seen[cursor.step * 6 + row] = 0;
                tokmap_cursor_print(&cursor, text);
                uint64_t other = 1 + (world + limit) % 6;
                (void)take_all(&cover, text, cursor.step, other, 0, limit / 2 % 2, fields, UINT64_MAX);
                cover_check(&cover, 1);
            }
        }
    free(cover.seen);
    tokmap_run_close(run);
}

/* Returns the number of pages of the file that are in the page cache. The bytes that this process read from storage
 * would be a worse measure: they include pages of the C library if another process empties the page cache during the
 * test. */
static uint64_t cached_pages(int fd, uint64_t bytes)
{
    uint64_t page = os_page_bytes(), pages = 0;
    const void *address;
    assert_int_equal(os_map_file(fd, bytes, &address), 0);
    for (uint64_t at = 0; at < bytes; at += page)
        pages += os_map_resident((const char *)address + at, 1);
    os_unmap(address, bytes);
    return pages;
}

/* If a run is read from storage, only the pages of its windows and of the windows asked for ahead are read, whatever
 * the readahead of the device is. The windows here are so far apart that the readahead of the device would read the
 * whole file. */
static void a_cold_file_is_read_exactly(void **unused)
{
    (void)unused;
    const uint64_t size[] = {(uint64_t)4 << 20};
    struct made made;
    made_new(&made, folder, "cold", 2, 50257, size, 1);
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t threads = 0; threads < 2; threads++) {
            struct simple_run options = SIMPLE_RUN_INIT;
            struct tokmap_loader_options how = TOKMAP_LOADER_OPTIONS_INIT;
            struct tokmap_run *run;
            struct tokmap_stats stats = TOKMAP_STATS_INIT;
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            int fd;
            options.data = made.name;
            options.seq_len = 2048;
            options.batch = 4;
            options.reading = (enum tokmap_reading)reading;
            how.threads = threads;
            how.read_ahead = 16;
            how.ring_bytes = 1 << 16;
            assert_int_equal(os_open(made.bin[0], OS_WRITE_OPEN, &fd), 0);
            assert_int_equal(os_sync(fd), 0);
            os_advise_drop(fd, 0, size[0] * 2);
            uint64_t before = cached_pages(fd, size[0] * 2); /* the whole file on tmpfs */
            assert_int_equal(simple_run_open(&run, &options, NULL), TOKMAP_OK);
            struct tokmap_loader *loader = open_loader(run, &how);
            for (uint64_t step = 0; step < 50; step++) {
                assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
                for (uint64_t row = 0; row < 4; row++)
                    assert_true(made_row_is(&made, batch.rows[row], batch.places[row].first_token, 2049));
            }
            assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
            tokmap_loader_close(loader);
            uint64_t after = cached_pages(fd, size[0] * 2), page = os_page_bytes();
            uint64_t windows = 200 + 16 + 4 * (stats.ring_slots + 1);
            assert_true(after <= before + windows * (round_up(4098, page) / page + 1));
            os_close(fd);
            tokmap_run_close(run);
        }
    made_free(&made);
}

static void a_run_without_end_goes_on(void **unused)
{
    (void)unused;
    struct tokmap_run *run = parse("seq_len 64\nbatch 4\nseed 3\nsource data wide.list\n");
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    for (options.threads = 0; options.threads < 2; options.threads++) {
        struct tokmap_loader *loader = open_loader(run, &options);
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        for (uint64_t step = 0; step < 2000; step++) {
            struct tokmap_place place;
            assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
            assert_int_equal(batch.step, step);
            assert_int_equal(tokmap_run_locate(run, step, 2, &place, NULL), TOKMAP_OK);
            assert_true(made_row_is(&wide, batch.rows[2], place.first_token, 65));
        }
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

/* Closes loaders while the producer is anywhere in its work. */
static void closing_at_any_moment(void **unused)
{
    (void)unused;
    struct tokmap_run *run = parse("seq_len 64\nbatch 4\nseed 3\nsteps 12\nsource data wide.list\n");
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    for (unsigned turn = 0; turn < 300; turn++) {
        struct tokmap_loader *loader = open_loader(run, &options);
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        for (unsigned calls = turn % 14; calls; calls--)
            (void)!tokmap_loader_next(loader, NULL, NULL, &batch, NULL);
        tokmap_loader_close(loader);
    }
    tokmap_loader_close(NULL);
    tokmap_run_close(run);
}

static void statistics_tell_the_ring(void **unused)
{
    (void)unused;
    struct tokmap_run *run = parse("seq_len 64\nbatch 4\nseed 3\nsteps 100\nsource data wide.list\n");
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader = open_loader(run, &options);
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    do /* wait until the producer has filled the ring */
        assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    while (stats.ring_ready < stats.ring_slots);
    assert_int_equal(stats.ring_slots, 32);
    assert_int_equal(stats.batches, 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.batches, 5);
    uint64_t calls = 0;
    for (unsigned bucket = 0; bucket < TOKMAP_WAIT_BUCKETS; bucket++)
        calls += stats.wait_histogram[bucket];
    assert_int_equal(calls, 5);
    assert_int_equal(stats.wait_histogram[0] + stats.waits, 5);
    assert_true(stats.ring_ready_lowest <= 32);
    struct tokmap_stats older = {.size = 32};
    older.bytes = 77;
    assert_int_equal(tokmap_loader_stats(loader, &older), TOKMAP_OK);
    assert_int_equal(older.batches, 5);
    assert_int_equal(older.bytes, 77);
    older.size = sizeof older + 8;
    assert_int_equal(tokmap_loader_stats(loader, &older), TOKMAP_ERROR_ARGUMENT);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_together_deliver_the_run),
        cmocka_unit_test(every_reading_delivers_the_same),
        cmocka_unit_test(a_cursor_goes_on_at_any_call_on_any_ranks),
        cmocka_unit_test(a_cold_file_is_read_exactly),
        cmocka_unit_test(a_run_without_end_goes_on),
        cmocka_unit_test(closing_at_any_moment),
        cmocka_unit_test(statistics_tell_the_ring),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
