/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Loaders that move again and again: to other ranks, to edited runs with other widths, vocabularies, lengths,
 * lookaheads, sources, plans, and masks, in the middle of a step and at the end of a run. Each batch is compared with
 * that of a second loader, opened with the cursor of the place where the first one is. A move succeeds exactly
 * where opening does, with the same status, and one that fails changes nothing.
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

#include "support/awkward_text.h"
#include "support/made.h"
#include "support/made_plan.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define CELLS ((uint64_t)1 << 14) /* elements of an output */
#define RUNS 16
#define MOVES 400

static char folder[512], plan[600];
static struct made wide, narrow, masked;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t one[] = {9001}, many[] = {700, 3, 1, 2900, 512}, some[] = {1500, 800};
    scratch_make(folder);
    made_new(&wide, folder, "wide", 4, 90001, one, 1);
    made_new(&narrow, folder, "narrow", 2, 50257, many, 5);
    made_new_masked(&masked, folder, "masked", 2, 300, some, 2);
    (void)snprintf(plan, sizeof plan, "%s/narrow.plan", folder);
    made_plan(&narrow, 64, plan);
    file_write_text(in_folder(folder, "list"), "a 1\na 2\na 5\na 3\n");
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    made_free(&wide);
    made_free(&narrow);
    made_free(&masked);
    scratch_remove(folder);
    return 0;
}

/* The texts of runs. All that begin with the same letter have the same past up to step 8, except where noted. */
static void run_text(char text[2000], int number)
{
    const char *n = narrow.name, *w = wide.name, *m = masked.name;
    char head[1200];
    (void)snprintf(head, sizeof head, "seq_len 32\nbatch 6\nseed 7\nsource a \"%s\"\n", n);
#define TEXT(...) (void)snprintf(text, 2000, __VA_ARGS__)
    switch (number) {
    case 0:
        TEXT("%sphase 0 a 1\nsteps 20\n", head);
        break;
    case 1:
        TEXT("%ssource b \"%s\"\nphase 0 a 1\nphase 8 a 1 b 1\nsteps 20\n", head, w);
        break;
    case 2:
        TEXT("%ssource b \"%s\"\nphase 0 a 1\nphase 8 b 1 seq_len 64 batch 9\nsteps 20\n", head, w);
        break;
    case 3:
        TEXT("%ssource Z \"%s\"\nphase 0 a 1\nphase 8 Z 3 a 2\nphase 11 batch 12\nskip 9..11\nsteps 15\n", head, w);
        break;
    case 4:
        TEXT("%ssource m \"%s\"\nphase 0 a 1\nphase 10 a 1 m 1 seq_len 16\nsteps 20\n", head, m);
        break;
    case 5:
        TEXT("%sphase 0 a 1\nphase 8 seq_len 8 batch 4\nsteps 12\n", head);
        break;
    case 6:
        TEXT("%sphase 0 a 1\nsteps 9\n", head);
        break;
    case 7:
        TEXT("%ssource b \"%s\"\nphase 0 a 1\nphase 8 batch 2 b 1\nsteps 20\n", head, w);
        break; /* few rows */
    case 8:
        TEXT("seq_len 32\nbatch 6\nseed 8\nsource a \"%s\"\nphase 0 a 1\nsteps 20\n", n);
        break; /* another seed */
    case 9:
        TEXT("seq_len 32\nbatch 6\nlookahead 3\nseed 7\nsource a \"%s\"\nsteps 20\n", n);
        break;
    case 10:
        TEXT("seq_len 32\nbatch 6\nlookahead 0\nseed 7\nsource a \"%s\"\nsteps 20\n", n);
        break;
    case 11:
        TEXT("seq_len 32\nbatch 6\norder sequential\ntail pad\npad 3\nstride 16\nsource a \"%s\"\npasses 1\n", m);
        break;
    case 12:
        TEXT("seq_len 48\nbatch 5\nseed 7\nsource a \"%s\"\nsource c \"%s\"\nphase 0 a 1 c 5\nsteps 20\n", w, m);
        break;
    case 13:
        TEXT("%sphase 0 a 1\nexclude list from 8\nsteps 20\n", head);
        break;
    case 14:
        TEXT("%ssource m \"%s\"\nphase 0 a 1\nexclude list from 10\nphase 9 m 1 a 2\nsteps 20\n", head, m);
        break;
    default:
        TEXT("seq_len 64\nbatch 6\nseed 7\nsource a \"%s\" plan \"%s\"\nsteps 20\n", n, plan);
        break;
    }
#undef TEXT
}

static struct tokmap_run *run_of(int number)
{
    char text[2000], said[1500];
    struct tokmap_run *run;
    struct tokmap_error error;
    run_text(text, number);
    if (run_parse_in(&run, text, folder, &error))
        fail_msg("%s: %s", text, tokmap_error_print(&error, said, sizeof said));
    return run;
}

/* A loader, its outputs, and where it is. */
struct reader {
    struct tokmap_loader *loader;
    struct tokmap_out out;
    struct tokmap_batch batch;
    struct tokmap_loader_options options; /* those that it was opened with */
    struct tokmap_run *run;
    int number; /* of the run */
    char start[TOKMAP_CURSOR_TEXT], at[TOKMAP_CURSOR_TEXT];
};

static void reader_outputs(struct reader *reader)
{
    reader->out = (struct tokmap_out)TOKMAP_OUT_INIT;
    reader->batch = (struct tokmap_batch)TOKMAP_BATCH_INIT;
    void **const outputs[] = {&reader->out.inputs,        &reader->out.targets,      &reader->out.position_ids,
                              &reader->out.rows,          &reader->out.document_ids, &reader->out.loss_mask,
                              &reader->out.targets_ahead, &reader->out.labels,       &reader->out.source_ids};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        assert_non_null(*outputs[i] = calloc(CELLS, 4));
    assert_non_null(reader->out.cu_seqlens = calloc(CELLS, 4));
}

static void outputs_free(struct tokmap_out *out)
{
    free(out->inputs);
    free(out->targets);
    free(out->position_ids);
    free(out->rows);
    free(out->document_ids);
    free(out->loss_mask);
    free(out->targets_ahead);
    free(out->labels);
    free(out->source_ids);
    free(out->cu_seqlens);
}

/* Compares one output of both loaders, and fills it for the next time with something that is not a value. */
static void same_output(void *one, void *other, uint64_t elements, const char *what)
{
    assert_true(elements <= CELLS);
    if (memcmp(one, other, elements * 4) != 0)
        fail_msg("%s of the two loaders differ", what);
    memset(one, 0x5a, elements * 4);
    memset(other, 0xa5, elements * 4);
}

static void same_batch(struct reader *one, struct reader *other)
{
    const struct tokmap_batch *a = &one->batch, *b = &other->batch;
    const uint32_t fields = one->options.fields;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->first_row, b->first_row);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->real_rows, b->real_rows);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->last_in_step, b->last_in_step);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->row_tokens, b->row_tokens);
    assert_int_equal(a->seq_len, b->seq_len);
    assert_int_equal(a->documents, b->documents);
    assert_int_equal(a->max_seqlen, b->max_seqlen);
    assert_memory_equal(&a->cursor, &b->cursor, sizeof a->cursor);
    for (uint64_t i = 0; i < a->count; i++) {
        assert_memory_equal(&a->places[i], &b->places[i], sizeof a->places[i]);
        assert_int_equal(!a->rows, !b->rows);
        if (a->rows)
            assert_memory_equal(a->rows[i], b->rows[i], a->row_tokens * a->width);
    }
    assert_int_equal(tokmap_run_info(one->run, &info), TOKMAP_OK);
    if (fields & TOKMAP_INPUTS)
        same_output(one->out.inputs, other->out.inputs, a->tokens, "inputs");
    if (fields & TOKMAP_TARGETS)
        same_output(one->out.targets, other->out.targets, a->tokens, "targets");
    if (fields & TOKMAP_POSITION_IDS)
        same_output(one->out.position_ids, other->out.position_ids, a->tokens, "position_ids");
    if (fields & TOKMAP_DOCUMENT_IDS)
        same_output(one->out.document_ids, other->out.document_ids, a->tokens, "document_ids");
    if (fields & TOKMAP_LOSS_MASK)
        same_output(one->out.loss_mask, other->out.loss_mask, a->tokens, "loss_mask");
    if (fields & TOKMAP_TARGETS_AHEAD)
        same_output(one->out.targets_ahead, other->out.targets_ahead, a->tokens * info.lookahead, "targets_ahead");
    if (fields & TOKMAP_LABELS)
        same_output(one->out.labels, other->out.labels, a->tokens, "labels");
    if (fields & TOKMAP_SOURCE_IDS) {
        for (uint64_t i = 0; i < a->count; i++)
            assert_int_equal(((const int32_t *)one->out.source_ids)[i],
                             a->places[i].source == TOKMAP_NO_SOURCE ? -100 : (int64_t)a->places[i].source);
        same_output(one->out.source_ids, other->out.source_ids, a->count, "source_ids");
    }
    if (fields & TOKMAP_ROWS)
        same_output(one->out.rows, other->out.rows, a->count * a->row_tokens * a->width / 4, "rows");
    if (fields & TOKMAP_CU_SEQLENS)
        same_output(one->out.cu_seqlens, other->out.cu_seqlens, tokmap_loader_cu_seqlens(one->loader), "cu_seqlens");
}

/* Opens another loader where `reader` is: at the start of the step that is not delivered completely. */
static struct tokmap_loader *opened(const struct reader *reader, const struct tokmap_run *run, uint64_t rank,
                                    uint64_t world, enum tokmap_status *status)
{
    struct tokmap_loader *loader;
    struct tokmap_loader_options options = reader->options;
    options.rank = rank;
    options.world = world;
    options.resume = reader->at[0] ? reader->at : NULL;
    *status = tokmap_loader_open(&loader, run, &options, NULL);
    return loader;
}

/* Both loaders must have the same sizes. */
static void same_sizes(const struct tokmap_loader *one, const struct tokmap_loader *other)
{
    assert_int_equal(tokmap_loader_rows(one), tokmap_loader_rows(other));
    assert_int_equal(tokmap_loader_elements(one), tokmap_loader_elements(other));
    assert_int_equal(tokmap_loader_cu_seqlens(one), tokmap_loader_cu_seqlens(other));
    assert_int_equal(tokmap_loader_calls_per_step(one), tokmap_loader_calls_per_step(other));
}

/* Delivers one batch of both loaders, and compares. Returns false at the end of the run. */
static bool take_both(struct reader *reader, struct reader *fresh)
{
    enum tokmap_status status = tokmap_loader_next(reader->loader, &reader->out, NULL, &reader->batch, NULL);
    assert_int_equal(tokmap_loader_next(fresh->loader, &fresh->out, NULL, &fresh->batch, NULL), status);
    if (status == TOKMAP_END)
        return false;
    assert_int_equal(status, TOKMAP_OK);
    same_batch(reader, fresh);
    tokmap_cursor_print(&reader->batch.cursor, reader->at);
    return true;
}

/* No source has more than the loader, and draws are those before the step at hand, after moves back, too. The producer
 * thread counts bytes meanwhile, so the sources come first. */
static void stats_agree(const struct reader *reader)
{
    struct tokmap_stats all = TOKMAP_STATS_INIT;
    struct tokmap_source_stats source = TOKMAP_SOURCE_STATS_INIT;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    uint64_t rows = 0, tokens = 0, bytes = 0, draws;
    struct tokmap_cursor cursor = {0};
    if (reader->at[0])
        assert_int_equal(tokmap_cursor_parse(&cursor, reader->at, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_run_info(reader->run, &info), TOKMAP_OK);
    for (uint64_t i = 0; i < info.sources; i++) {
        assert_int_equal(tokmap_loader_source_stats(reader->loader, i, &source), TOKMAP_OK);
        assert_int_equal(tokmap_run_drawn(reader->run, i, cursor.step, &draws), TOKMAP_OK);
        assert_int_equal(source.draws, draws);
        rows += source.rows;
        tokens += source.tokens;
        bytes += source.bytes;
    }
    assert_int_equal(tokmap_loader_source_stats(reader->loader, info.sources, &source), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_loader_stats(reader->loader, &all), TOKMAP_OK);
    assert_true(rows <= all.rows - all.padding && tokens <= all.tokens && bytes <= all.bytes);
}

/* Moves the loader, and checks that the outcome is that of opening one there. Returns whether it has moved. The newly
 * opened loader replaces the one in `fresh`; after a failure, that one is still where the moved loader must be. */
static bool move_both(struct reader *reader, struct reader *fresh, int number, uint64_t rank, uint64_t world,
                      unsigned *failures)
{
    const bool reload = number != reader->number;
    struct tokmap_run *run = reload ? run_of(number) : reader->run;
    struct tokmap_error error = {0};
    enum tokmap_status wanted, got;
    struct tokmap_loader *other = opened(reader, run, rank, world, &wanted);
    got = reload ? tokmap_loader_reload(reader->loader, run, &error)
                 : tokmap_loader_repartition(reader->loader, rank, world, &error);
    char said[1500], text[2000];
    run_text(text, number);
    if (got != wanted)
        fail_msg("moved to\n%sat %s: status %d, but opening gives %d; %s", text, reader->at, got, wanted,
                 tokmap_error_print(&error, said, sizeof said));
    if (got) {
        assert_int_equal(error.status, got);
        assert_true(error.message[0]);
        ++*failures;
        if (reload)
            tokmap_run_close(run);
        return false;
    }
    tokmap_loader_close(fresh->loader);
    fresh->loader = other;
    if (reload)
        tokmap_run_close(reader->run);
    reader->run = run;
    reader->number = number;
    reader->options.rank = rank;
    reader->options.world = world;
    (void)snprintf(reader->start, sizeof reader->start, "%s", reader->at);
    same_sizes(reader->loader, fresh->loader);
    return true;
}

/* Returns both loaders to where the first one was opened or moved last, and both deliver from there. */
static void rewind_both(struct reader *reader, struct reader *fresh)
{
    enum tokmap_status status;
    assert_int_equal(tokmap_loader_rewind(reader->loader, NULL), TOKMAP_OK);
    memcpy(reader->at, reader->start, sizeof reader->at);
    tokmap_loader_close(fresh->loader);
    fresh->loader = opened(reader, reader->run, reader->options.rank, reader->options.world, &status);
    assert_int_equal(status, TOKMAP_OK);
}

static void reader_open(struct reader *reader, struct reader *fresh, int number, struct tokmap_loader_options options)
{
    enum tokmap_status status;
    memset(reader, 0, sizeof *reader);
    reader_outputs(reader);
    reader_outputs(fresh);
    reader->options = options;
    reader->number = number;
    reader->run = run_of(number);
    reader->loader = opened(reader, reader->run, options.rank, options.world, &status);
    assert_int_equal(status, TOKMAP_OK);
    fresh->loader = opened(reader, reader->run, options.rank, options.world, &status);
    assert_int_equal(status, TOKMAP_OK);
}

static void reader_close(struct reader *reader, struct reader *fresh)
{
    tokmap_loader_close(reader->loader);
    tokmap_loader_close(fresh->loader);
    tokmap_run_close(reader->run);
    outputs_free(&reader->out);
    outputs_free(&fresh->out);
}

/* A long walk of random moves and deliveries. */
static void wander(struct tokmap_loader_options options, uint64_t seed)
{
    struct reader reader, fresh = {0};
    uint64_t state = seed;
    unsigned moved = 0, failures = 0;
    reader_open(&reader, &fresh, 0, options);
    for (int i = 0; i < MOVES; i++) {
        const uint64_t what = random_below(&state, 10), world = 1 + random_below(&state, 5);
        const uint64_t rank = random_below(&state, world + 1); /* sometimes wrong */
        if (what < 3)
            moved += move_both(&reader, &fresh, (int)random_below(&state, RUNS), reader.options.rank,
                               reader.options.world, &failures);
        else if (what < 5)
            moved += move_both(&reader, &fresh, reader.number, rank, world, &failures);
        else if (what == 5)
            rewind_both(&reader, &fresh);
        for (uint64_t calls = random_below(&state, 12); calls; calls--)
            if (!take_both(&reader, &fresh)) {
                /* A run that has ended may be replaced by a longer one. Else the walk begins again. */
                moved += move_both(&reader, &fresh, (int)random_below(&state, RUNS), reader.options.rank,
                                   reader.options.world, &failures);
                if (random_below(&state, 2))
                    break;
                stats_agree(&reader);
                reader_close(&reader, &fresh);
                reader_open(&reader, &fresh, 0, options);
            }
        stats_agree(&reader);
    }
    assert_true(moved > 20 && failures > 20);
    reader_close(&reader, &fresh);
}

#define ALL_FIELDS                                                                                                     \
    (TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_POSITION_IDS | TOKMAP_ROWS | TOKMAP_DOCUMENT_IDS | TOKMAP_LOSS_MASK |     \
     TOKMAP_CU_SEQLENS | TOKMAP_TARGETS_AHEAD | TOKMAP_LABELS | TOKMAP_SOURCE_IDS)

static void moves_equal_opening(void **unused)
{
    (void)unused;
    static const uint32_t fields[] = {TOKMAP_INPUTS | TOKMAP_TARGETS, ALL_FIELDS, TOKMAP_ROWS, 0,
                                      TOKMAP_TARGETS | TOKMAP_CU_SEQLENS};
    for (uint64_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (uint32_t threads = 0; threads <= 1; threads++) {
            struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
            options.fields = fields[i];
            options.threads = threads;
            options.rows = i % 3;
            options.mask_targets = i == 4;
            options.ring_bytes = i == 2 ? 4000 : 0; /* too little for some of the runs */
            options.deadline_ns = i == 3 ? 60000000000u : 0;
            options.io_threads = i == 4 ? 2 : 0;
            options.drop_behind = i == 1;
            wander(options, 77 + 2 * i + threads);
        }
}

/* Every pair of runs, at every step of the first one, in the middle of the step and at its start. With TEST_SHARE=N it
 * takes every Nth of these places, others for each pair. */
static void every_run_after_every_other(void **unused)
{
    (void)unused;
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    unsigned moved = 0, failures = 0;
    const int share = awkward_share();
    int place = 0;
    options.fields = ALL_FIELDS;
    options.rows = 2;
    for (int first = 0; first < RUNS; first++) {
        for (int second = 0; second < RUNS; second++) {
            struct reader reader, fresh = {0};
            options.threads = (uint32_t)(first + second) & 1;
            if (first == 10)
                options.fields = TOKMAP_INPUTS | TOKMAP_ROWS; /* lookahead 0 has no targets */
            else
                options.fields = ALL_FIELDS;
            for (int calls = 0; calls < 40; calls += 1 + calls / 8) {
                if (place++ % share)
                    continue;
                reader_open(&reader, &fresh, first, options);
                bool more = true;
                for (int i = 0; i < calls && more; i++)
                    more = take_both(&reader, &fresh);
                moved += move_both(&reader, &fresh, second, 0, 1, &failures);
                for (int i = 0; i < 5; i++)
                    (void)take_both(&reader, &fresh);
                reader_close(&reader, &fresh);
            }
        }
    }
    const unsigned least = (unsigned)awkward_rounds(500);
    assert_true(moved > least && failures > least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_equal_opening),
        cmocka_unit_test(every_run_after_every_other),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
