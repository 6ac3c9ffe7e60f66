/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Runs with mixtures and phases through the loader: every rank's rows are those that tokmap_run_locate() names, with
 * the batch, the length, and the padding of each phase; repartition and reload continue at a step boundary without
 * losing or repeating a row; statistics count each source; a trace has the sum of each step.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/trace_file.h"
#include "loader/loader_state.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define CELLS ((uint64_t)1 << 16)

static char folder[512];
static struct made wide, narrow;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t one[] = {9001}, many[] = {700, 3, 1, 2900, 512};
    scratch_make(folder);
    made_new(&wide, folder, "wide", 4, 90001, one, 1);
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

/* The text of a run of both datasets: the batch and the length change, separately and together. */
static void mixture_text(char text[2000], const char *more)
{
    (void)snprintf(text, 2000,
                   "seq_len 32\nbatch 6\nseed 7\nsource a \"%s\"\nsource b \"%s\"\n"
                   "phase 0 a 0.7 b 0.3\nphase 5 batch 10\nphase 9 a 1 b 3 seq_len 64\nphase 14 batch 4 seq_len 16\n"
                   "skip 3..4\nsteps 20\n%s",
                   wide.name, narrow.name, more);
}

static struct tokmap_run *parse(const char *text)
{
    struct tokmap_run *run;
    struct tokmap_error error;
    char said[1500];
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s: %s", text, tokmap_error_print(&error, said, sizeof said));
    return run;
}

/* One rank: its loader, its outputs, and where it is. */
struct rank {
    struct tokmap_loader *loader;
    struct tokmap_out out;
    struct tokmap_batch batch;
    uint64_t number, world;
};

static void rank_open(struct rank *rank, const struct tokmap_run *run, uint64_t number, uint64_t world,
                      struct tokmap_loader_options options)
{
    struct tokmap_error error;
    char said[1500];
    *rank = (struct rank){.out = TOKMAP_OUT_INIT, .batch = TOKMAP_BATCH_INIT, .number = number, .world = world};
    options.rank = number;
    options.world = world;
    if (tokmap_loader_open(&rank->loader, run, &options, &error))
        fail_msg("%s", tokmap_error_print(&error, said, sizeof said));
    rank->out.inputs = malloc(CELLS * 4);
    rank->out.targets = malloc(CELLS * 4);
    assert_true(tokmap_loader_elements(rank->loader) <= CELLS);
}

static void rank_close(struct rank *rank)
{
    tokmap_loader_close(rank->loader);
    free(rank->out.inputs);
    free(rank->out.targets);
}

/* Compares the batch at hand with the run: places, tokens, widths. Counts its rows in seen[step * 16 + row]. */
static void check_batch(const struct rank *rank, const struct tokmap_run *run, unsigned char *seen)
{
    const struct tokmap_batch *batch = &rank->batch;
    const int32_t *inputs = rank->out.inputs, *targets = rank->out.targets;
    assert_int_equal(batch->width, 4);
    assert_int_equal(batch->real_rows, batch->count);
    assert_int_equal(batch->tokens, batch->count * batch->seq_len);
    assert_int_equal(batch->row_tokens, batch->seq_len + 1);
    for (uint64_t i = 0; i < batch->count; i++) {
        struct tokmap_place place;
        assert_int_equal(tokmap_run_locate(run, batch->step, batch->first_row + i, &place, NULL), TOKMAP_OK);
        assert_memory_equal(&place, &batch->places[i], sizeof place);
        assert_int_equal(place.tokens, batch->row_tokens);
        const struct made *made = place.source ? &narrow : &wide;
        for (uint64_t j = 0; j < batch->seq_len; j++) {
            const uint64_t at = place.first_token + j;
            assert_int_equal(inputs[i * batch->seq_len + j], made_token(made, at % made->tokens));
            assert_int_equal(targets[i * batch->seq_len + j], made_token(made, (at + 1) % made->tokens));
        }
        seen[batch->step * 16 + batch->first_row + i]++;
    }
}

/* Delivers one step to a rank, or nothing at the end. Returns whether there was a step. */
static bool take_step(struct rank *rank, const struct tokmap_run *run, unsigned char *seen)
{
    const uint64_t calls = tokmap_loader_calls_per_step(rank->loader);
    for (uint64_t call = 0; call < calls; call++) {
        enum tokmap_status status = tokmap_loader_next(rank->loader, &rank->out, NULL, &rank->batch, NULL);
        if (status == TOKMAP_END && !call)
            return false;
        assert_int_equal(status, TOKMAP_OK);
        assert_int_equal(rank->batch.last_in_step, call + 1 == calls);
        check_batch(rank, run, seen);
    }
    return true;
}

static void all_seen_once(const struct tokmap_run *run, const unsigned char *seen)
{
    for (uint64_t step = 0; step < 20; step++)
        for (uint64_t row = 0; row < 16; row++)
            assert_int_equal(seen[step * 16 + row],
                             tokmap_run_delivers(run, step) && row < tokmap_run_rows(run, step) ? 1 : 0);
}

/* Every row of every phase reaches one rank, once, for any number of ranks and rows of a call. */
static void phases_are_delivered(void **unused)
{
    (void)unused;
    char text[2000];
    mixture_text(text, "");
    struct tokmap_run *run = parse(text);
    for (uint64_t world = 1; world <= 4; world++)
        for (uint64_t rows = 0; rows <= 3; rows++)
            for (uint32_t threads = 0; threads <= 1; threads++) {
                unsigned char seen[20 * 16] = {0};
                struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
                options.rows = rows;
                options.threads = threads;
                for (uint64_t number = 0; number < world; number++) {
                    struct rank rank;
                    rank_open(&rank, run, number, world, options);
                    while (take_step(&rank, run, seen))
                        ;
                    rank_close(&rank);
                }
                all_seen_once(run, seen);
            }
    tokmap_run_close(run);
}

/* More ranks than rows in a phase are refused with the phase's line, unless the phase is over. */
static void a_phase_with_too_few_rows_is_refused(void **unused)
{
    (void)unused;
    char text[2000], cursor_text[TOKMAP_CURSOR_TEXT];
    mixture_text(text, "");
    struct tokmap_run *run = parse(text);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct tokmap_error error;
    struct tokmap_cursor cursor;
    options.world = 5;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(error.line, 9);
    assert_non_null(strstr(error.message, "step 14"));
    tokmap_run_close(run);
    (void)snprintf(text, sizeof text, "seq_len 32\nbatch 2\nsource a \"%s\"\nphase 0 a 1\nphase 5 batch 10\nsteps 9\n",
                   wide.name);
    run = parse(text);
    assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_cursor(run, 5, &cursor, NULL), TOKMAP_OK);
    tokmap_cursor_print(&cursor, cursor_text);
    options.resume = cursor_text;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_OK);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* Ranks change their number after some steps, and the run is replaced by an edited one. */
static void moves_lose_and_repeat_nothing(void **unused)
{
    (void)unused;
    char text[2000];
    mixture_text(text, "");
    struct tokmap_run *first = parse(text);
    mixture_text(text, "skip 18..19\n");
    struct tokmap_run *run = parse(text);
    for (uint32_t threads = 0; threads <= 1; threads++) {
        unsigned char seen[20 * 16] = {0};
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct rank ranks[4];
        struct tokmap_stats stats = TOKMAP_STATS_INIT;
        options.threads = threads;
        options.rows = 2;
        for (uint64_t i = 0; i < 2; i++)
            rank_open(&ranks[i], first, i, 2, options);
        for (int step = 0; step < 6; step++) /* steps 0 to 6, of which step 3 is skipped */
            for (uint64_t i = 0; i < 2; i++)
                assert_true(take_step(&ranks[i], first, seen));
        for (uint64_t i = 0; i < 2; i++)
            assert_int_equal(tokmap_loader_repartition(ranks[i].loader, i, 4, NULL), TOKMAP_OK);
        char said[TOKMAP_CURSOR_TEXT];
        tokmap_cursor_print(&ranks[0].batch.cursor, said);
        options.resume = said;
        for (uint64_t i = 2; i < 4; i++)
            rank_open(&ranks[i], first, i, 4, options);
        for (int step = 0; step < 4; step++)
            for (uint64_t i = 0; i < 4; i++)
                assert_true(take_step(&ranks[i], first, seen));
        for (uint64_t i = 0; i < 4; i++)
            assert_int_equal(tokmap_loader_reload(ranks[i].loader, run, NULL), TOKMAP_OK);
        for (uint64_t i = 0; i < 4; i++)
            while (take_step(&ranks[i], run, seen))
                ;
        all_seen_once(run, seen);
        assert_int_equal(tokmap_loader_stats(ranks[0].loader, &stats), TOKMAP_OK);
        assert_int_equal(stats.epoch > 0, 1);
        struct tokmap_source_stats a = TOKMAP_SOURCE_STATS_INIT, b = {.size = sizeof b};
        assert_int_equal(tokmap_loader_source_stats(ranks[0].loader, 0, &a), TOKMAP_OK);
        assert_int_equal(tokmap_loader_source_stats(ranks[0].loader, 1, &b), TOKMAP_OK);
        assert_int_equal(tokmap_loader_source_stats(ranks[0].loader, 2, &b), TOKMAP_ERROR_RANGE);
        assert_string_equal(a.name, "a");
        assert_int_equal(a.rows + b.rows, stats.rows);
        assert_int_equal(a.tokens + b.tokens, stats.tokens);
        assert_int_equal(a.bytes + b.bytes, stats.bytes);
        uint64_t draws;
        assert_int_equal(tokmap_run_drawn(run, 0, 20, &draws), TOKMAP_OK);
        assert_int_equal(a.draws, draws);
        for (uint64_t i = 0; i < 4; i++)
            rank_close(&ranks[i]);
    }
    tokmap_run_close(run);
    tokmap_run_close(first);
}

/* A move in the middle of a step goes back to its start; a run with another past is refused, and then nothing changes.
 */
static void a_move_begins_at_a_step(void **unused)
{
    (void)unused;
    char text[2000];
    unsigned char seen[20 * 16] = {0};
    mixture_text(text, "");
    struct tokmap_run *run = parse(text);
    (void)snprintf(text, sizeof text, "seq_len 32\nbatch 6\nseed 8\nsource a \"%s\"\nphase 0 a 1\nsteps 20\n",
                   wide.name);
    struct tokmap_run *other = parse(text);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_error error;
    struct rank rank;
    options.rows = 2;
    rank_open(&rank, run, 0, 1, options);
    assert_true(take_step(&rank, run, seen));
    assert_int_equal(tokmap_loader_next(rank.loader, &rank.out, NULL, &rank.batch, NULL), TOKMAP_OK);
    assert_int_equal(rank.batch.step, 1);
    assert_int_equal(rank.batch.last_in_step, 0);
    assert_int_equal(tokmap_loader_reload(rank.loader, other, &error), TOKMAP_ERROR_PAST);
    assert_int_equal(tokmap_loader_repartition(rank.loader, 3, 3, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_loader_repartition(rank.loader, 0, 99, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_loader_next(rank.loader, &rank.out, NULL, &rank.batch, NULL), TOKMAP_OK);
    assert_int_equal(rank.batch.first_row, 2);
    assert_int_equal(tokmap_loader_repartition(rank.loader, 1, 2, &error), TOKMAP_OK);
    assert_int_equal(tokmap_loader_next(rank.loader, &rank.out, NULL, &rank.batch, NULL), TOKMAP_OK);
    assert_int_equal(rank.batch.step, 1);
    assert_int_equal(rank.batch.first_row, 3);
    assert_int_equal(tokmap_loader_rewind(rank.loader, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_next(rank.loader, &rank.out, NULL, &rank.batch, NULL), TOKMAP_OK);
    assert_int_equal(rank.batch.step, 1);
    assert_int_equal(rank.batch.first_row, 3);
    rank_close(&rank);
    tokmap_run_close(other);
    tokmap_run_close(run);
}

/* ---- traces ---- */

struct found {
    struct trace_section sections[8];
    size_t count;
};

static int keep_section(void *user, const struct trace_section *section)
{
    struct found *found = user;
    found->sections[found->count++] = *section;
    return 0;
}

/* The sums of a trace are those of the rows' bytes, with their numbers as seeds; moves begin sections; a torn tail is
 * ignored and overwritten; a second writer is refused. */
static void a_trace_has_every_step(void **unused)
{
    (void)unused;
    char text[2000], path[700];
    unsigned char seen[20 * 16] = {0};
    mixture_text(text, "");
    struct tokmap_run *run = parse(text);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    for (uint32_t threads = 0; threads <= 1; threads++) {
        struct rank rank;
        struct tokmap_loader *second;
        struct found found = {.count = 0};
        uint64_t torn, sums[20] = {0};
        struct trace_record records[20];
        (void)snprintf(path, sizeof path, "%s/%" PRIu32 ".trace", folder, threads);
        options.threads = threads;
        options.rows = 2;
        options.trace = path;
        rank_open(&rank, run, 0, 1, options);
        assert_int_equal(tokmap_loader_open(&second, run, &options, NULL), TOKMAP_ERROR_BUSY);
        for (int i = 0; i < 4; i++)
            assert_true(take_step(&rank, run, seen));
        assert_int_equal(tokmap_loader_repartition(rank.loader, 1, 2, NULL), TOKMAP_OK);
        while (tokmap_loader_next(rank.loader, NULL, NULL, &rank.batch, NULL) == TOKMAP_OK)
            for (uint64_t i = 0; i < rank.batch.count; i++)
                sums[rank.batch.step] +=
                    trace_hash(rank.batch.rows[i], rank.batch.row_tokens * 4, rank.batch.first_row + i);
        rank_close(&rank);
        FILE *file = fopen(path, "ab");
        assert_non_null(file);
        assert_int_equal(fwrite("torn tail", 1, 9, file), 9);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(trace_file_scan(path, keep_section, &found, &torn, NULL), TOKMAP_OK);
        assert_int_equal(torn, 9);
        assert_int_equal(found.count, 2);
        assert_int_equal(found.sections[0].records, 4);
        assert_int_equal(found.sections[1].header.rank, 1);
        assert_int_equal(found.sections[1].header.first_step, 5);
        assert_int_equal(found.sections[1].records, 15);
        assert_int_equal(trace_file_read(path, found.sections[1].offset, 15, records, NULL), TOKMAP_OK);
        for (uint64_t i = 0; i < 15; i++) {
            assert_int_equal(records[i].step, 5 + i);
            assert_int_equal(records[i].sum, sums[5 + i]);
        }
        rank_open(&rank, run, 0, 1, options); /* continues the file */
        assert_true(take_step(&rank, run, seen));
        assert_int_equal(tokmap_loader_flush(rank.loader, NULL), TOKMAP_OK);
        found.count = 0;
        assert_int_equal(trace_file_scan(path, keep_section, &found, &torn, NULL), TOKMAP_OK);
        assert_int_equal(torn, 0);
        assert_int_equal(found.count, 3);
        assert_int_equal(found.sections[2].records, 1);
        rank_close(&rank);
    }
    tokmap_run_close(run);
}

/* What is not a trace, or was damaged, is refused with its place. */
static void damaged_traces_are_refused(void **unused)
{
    (void)unused;
    char path[700];
    struct trace_writer *writer;
    struct tokmap_error error;
    const struct trace_header header = {.width = 2, .rank = 0, .world = 3, .first_step = 4};
    const struct trace_record records[] = {{4, 1}, {5, 2}, {9, 3}};
    uint64_t torn;
    uint8_t bytes[TRACE_HEADER_BYTES + sizeof records];
    (void)snprintf(path, sizeof path, "%s/damaged.trace", folder);
    assert_int_equal(trace_writer_open(&writer, path, NULL), TOKMAP_OK);
    assert_int_equal(trace_writer_begin(writer, &header, NULL), TOKMAP_OK);
    assert_int_equal(trace_writer_add(writer, records, 3, NULL), TOKMAP_OK);
    trace_writer_close(writer);
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    (void)fclose(file);
    for (size_t at = 0; at < sizeof bytes; at++) { /* every byte of the header and of the steps matters */
        /* A sum may be any number, and the last step any larger one. */
        const bool free = at >= TRACE_HEADER_BYTES + 32 || (at >= TRACE_HEADER_BYTES && at % 16 >= 8);
        bytes[at] ^= 0xff;
        file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
        (void)fclose(file);
        enum tokmap_status status = trace_file_scan(path, NULL, NULL, &torn, &error);
        if (free)
            assert_true(!status || status == TOKMAP_ERROR_CORRUPT);
        else
            assert_int_not_equal(status, TOKMAP_OK);
        bytes[at] ^= 0xff;
    }
    for (size_t length = 0; length < sizeof bytes; length++) { /* cut anywhere, it is a trace with less */
        file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, length, file), length);
        (void)fclose(file);
        assert_int_equal(trace_file_scan(path, NULL, NULL, &torn, NULL), TOKMAP_OK);
        const uint64_t complete = length < TRACE_HEADER_BYTES ? 0 : length / 16 * 16;
        assert_int_equal(torn, length - complete);
    }
}

/* ---- alarms and ranges ---- */

struct watch {
    int alarms, depth, pushes;
    struct tokmap_stall last;
};

static void on_alarm(void *user, const struct tokmap_stall *stall)
{
    struct watch *watch = user;
    watch->alarms++;
    watch->last = *stall;
}

static void on_event(void *user, const char *name, int begin)
{
    struct watch *watch = user;
    assert_non_null(strstr(name, "tokmap "));
    watch->depth += begin ? 1 : -1;
    assert_true(watch->depth >= 0);
    watch->pushes += begin != 0;
}

/* With a ring of one slot, the consumer, which does nothing else, waits for most batches. */
static void watching_programs_are_called(void **unused)
{
    (void)unused;
    char text[2000];
    (void)snprintf(text, sizeof text, "seq_len 64\nbatch 8\nsource a \"%s\"\nsteps 400\n", wide.name);
    struct tokmap_run *run = parse(text);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct watch watch = {0};
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    options.fields = 0;
    options.threads = 0;
    options.event = on_event;
    options.event_user = &watch;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
    assert_int_equal(watch.depth, 0);
    assert_int_equal(watch.pushes, 30);
    tokmap_loader_close(loader);
    options.event = NULL;
    options.threads = 1;
    options.ring_bytes = 8000; /* one slot */
    options.alarm = on_alarm;
    options.alarm_user = &watch;
    options.alarm_calls = 50;
    options.alarm_percent = 1;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    while (tokmap_loader_next(loader, NULL, NULL, &batch, NULL) == TOKMAP_OK)
        ;
    assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.alarms, watch.alarms);
    assert_true(watch.alarms >= 1);
    assert_int_equal(watch.last.calls, 50);
    assert_true(watch.last.stalled >= 1 && watch.last.wait_ns > 0);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* The last step of a padded run: rows without data have no source, and everything in them is ignored. */
static void padding_is_delivered(void **unused)
{
    (void)unused;
    char text[2000];
    (void)snprintf(text, sizeof text,
                   "seq_len 64\nbatch 8\norder sequential\ntail pad\npad 3\nsource a \"%s\"\npasses 1\n", narrow.name);
    struct tokmap_run *run = parse(text);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    static int32_t inputs[8 * 64], targets[8 * 64], mask[8 * 64];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_stats stats = TOKMAP_STATS_INIT;
    uint64_t counted = 0, valid = 0;
    options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_LOSS_MASK;
    out.inputs = inputs;
    out.targets = targets;
    out.loss_mask = mask;
    struct tokmap_loader *loader;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    while (tokmap_loader_next(loader, &out, NULL, &batch, NULL) == TOKMAP_OK) {
        assert_int_equal(batch.count, 8);
        valid += batch.real_rows;
        for (uint64_t i = 0; i < 8; i++) {
            assert_int_equal(batch.places[i].source == TOKMAP_NO_SOURCE, i >= batch.real_rows);
            for (uint64_t j = 0; j < 64; j++) {
                counted += (uint64_t)mask[i * 64 + j];
                if (i < batch.real_rows)
                    continue;
                assert_int_equal(inputs[i * 64 + j], 3);
                assert_int_equal(targets[i * 64 + j], TOKMAP_IGNORE);
                assert_int_equal(mask[i * 64 + j], 0);
            }
        }
    }
    uint64_t expected = 0; /* every token but those that start a document, and token 0 */
    for (uint64_t i = 1; i < narrow.tokens; i++)
        expected += !narrow.starts[i];
    assert_int_equal(counted, expected);
    assert_int_equal(valid, (narrow.tokens - 1 + 63) / 64);
    assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.padding, stats.rows - valid);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_are_delivered),          cmocka_unit_test(a_phase_with_too_few_rows_is_refused),
        cmocka_unit_test(moves_lose_and_repeat_nothing), cmocka_unit_test(a_move_begins_at_a_step),
        cmocka_unit_test(a_trace_has_every_step),        cmocka_unit_test(damaged_traces_are_refused),
        cmocka_unit_test(watching_programs_are_called),  cmocka_unit_test(padding_is_delivered),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
