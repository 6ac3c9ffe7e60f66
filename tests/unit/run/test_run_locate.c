/* SPDX-License-Identifier: MIT */
/*
 * The place of a row, compared with a simple model; every epoch shows every window once; and for every range of tokens,
 * tokmap_run_find() reports exactly the rows whose windows, according to tokmap_run_locate(), contain any of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/permutation.h"
#include "run/locate.h"
#include "run/run.h"
#include "run/run_state.h"
#include "support/made_dataset.h"
#include "support/run_help.h"
#include "tokmap/tokmap.h"

static const uint64_t sizes[] = {8, 9, 13, 14, 31, 64};
enum { SIZES = sizeof sizes / sizeof sizes[0] };
static struct made_dataset made[SIZES];

static int make_datasets(void **state)
{
    for (int i = 0; i < SIZES; i++)
        made_dataset_new(&made[i], sizes[i], 0);
    return 0;
}

static int remove_datasets(void **state)
{
    for (int i = 0; i < SIZES; i++)
        made_dataset_remove(&made[i]);
    return 0;
}

/* The definition in RUN.md, without any shortcut. */
static struct tokmap_place model(uint64_t tokens, uint64_t seq_len, uint64_t lookahead, uint64_t batch, uint64_t seed,
                                 bool shuffle, uint64_t step, uint64_t row)
{
    struct tokmap_place place = {.step = step, .row = row, .tokens = seq_len + lookahead};
    uint64_t n = (tokens - lookahead) / seq_len, shift = 0;
    uint64_t in_step = row;
    if (shuffle) {
        struct tokmap_order order;
        permutation_init(&order, order_key("rows", seed, "", 0, step), batch);
        in_step = permutation_forward(&order, row);
    }
    place.draw = step * batch + in_step;
    place.epoch = place.draw / n;
    place.window = place.draw % n;
    if (shuffle) {
        struct tokmap_order order;
        assert_int_equal(tokmap_order_init(&order, n, seed, "web", place.epoch), TOKMAP_OK);
        place.window = tokmap_order_window(&order, place.window);
        if (place.epoch > 0)
            shift = order_key_below(order_key("shift", seed, "web", 3, place.epoch), seq_len);
    }
    place.first_token = (shift + place.window * seq_len) % tokens;
    return place;
}

static struct tokmap_run *run_of(int size, uint64_t seq_len, uint64_t lookahead, uint64_t batch, uint64_t seed,
                                 bool shuffle, const char *more)
{
    char text[1000];
    (void)snprintf(text, sizeof text, "seq_len %llu\nlookahead %llu\nbatch %llu\nseed %llu\norder %s\nsource web d\n%s",
                   (unsigned long long)seq_len, (unsigned long long)lookahead, (unsigned long long)batch,
                   (unsigned long long)seed, shuffle ? "shuffle" : "sequential", more);
    struct tokmap_run *run = NULL;
    struct tokmap_error error = {0};
    if (run_parse_in(&run, text, made[size].folder, &error))
        fail_msg("%s: %s", text, error.message);
    return run;
}

static void same_place(const struct tokmap_place *a, const struct tokmap_place *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

static void as_the_model_says(void **state)
{
    static const uint64_t batches[] = {1, 2, 3, 7, 64, 65, 200};
    for (int size = 0; size < SIZES; size++)
        for (uint64_t seq_len = 1; seq_len <= 8; seq_len++)
            for (uint64_t lookahead = 0; lookahead <= 5; lookahead++)
                for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
                    if (seq_len + lookahead > sizes[size])
                        continue;
                    bool shuffle = (seq_len + lookahead + b) % 4 != 0;
                    struct tokmap_run *run = run_of(size, seq_len, lookahead, batches[b], seq_len, shuffle, "");
                    struct run_walk walk;
                    run_walk_init(&walk, run);
                    for (uint64_t step = 0; step < 12; step++)
                        for (uint64_t row = 0; row < batches[b]; row++) {
                            struct tokmap_place one, two, expected;
                            expected = model(sizes[size], seq_len, lookahead, batches[b], seq_len, shuffle, step, row);
                            assert_int_equal(tokmap_run_locate(run, step, row, &one, NULL), TOKMAP_OK);
                            run_walk_place(&walk, step, row, &two);
                            same_place(&one, &expected);
                            same_place(&two, &expected);
                        }
                    tokmap_run_close(run);
                }
}

/* Whole epochs show every window once, windows are seq_len tokens apart, and consecutive epochs differ. */
static void epochs_cover(void **state)
{
    struct tokmap_run *run = run_of(5, 3, 1, 7, 9, true,
                                    "passes "
                                    "35\n"); /* 21 windows and 7 rows, so 3 steps per epoch */
    unsigned shown[35][21] = {{0}}, shifts = 0;
    for (uint64_t step = 0; step < 105; step++)
        for (uint64_t row = 0; row < 7; row++) {
            struct tokmap_place place;
            assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
            assert_true(place.epoch < 35 && place.window < 21);
            shown[place.epoch][place.window]++;
            uint64_t shift = (place.first_token + 64 - place.window * 3) % 64;
            assert_true(shift < 3);
            assert_true(place.epoch > 0 || shift == 0);
            shifts |= 1u << shift;
        }
    for (int epoch = 0; epoch < 35; epoch++)
        for (int window = 0; window < 21; window++)
            assert_int_equal(shown[epoch][window], 1);
    assert_int_equal(shifts, 7); /* all three shifts occurred */
    tokmap_run_close(run);
}

/* The rows of each step are permuted differently. */
static void rows_are_permuted(void **state)
{
    struct tokmap_run *run = run_of(5, 1, 0, 8, 1, true, "");
    uint64_t first[8];
    unsigned differ = 0;
    for (uint64_t step = 0; step < 8; step++) {
        unsigned seen = 0;
        for (uint64_t row = 0; row < 8; row++) {
            struct tokmap_place place;
            assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
            assert_int_equal(place.draw / 8, step);
            seen |= 1u << place.draw % 8;
            if (step == 0)
                first[row] = place.draw;
            differ += place.draw % 8 != first[row];
        }
        assert_int_equal(seen, 255);
    }
    assert_true(differ > 30);
    tokmap_run_close(run);
}

/* A walk that jumps between steps computes the same places as one that does not. */
static void walk_in_any_order(void **state)
{
    struct tokmap_run *run = run_of(5, 3, 1, 16, 4, true, "");
    struct run_walk walk;
    run_walk_init(&walk, run);
    uint64_t random = 5;
    for (int i = 0; i < 5000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t step = (random >> 33) % (i % 3 ? 5 : (uint64_t)1 << 50), row = (random >> 20) % 16;
        struct tokmap_place one, two;
        run_walk_place(&walk, step, row, &one);
        assert_int_equal(tokmap_run_locate(run, step, row, &two, NULL), TOKMAP_OK);
        same_place(&one, &two);
    }
    tokmap_run_close(run);
}

/* Steps of more rows than are permuted at once, in one epoch, across its end, and of several sources, of which one has
 * less than a row in a step. */
static void rows_at_once(void **state)
{
    static const char *const texts[] = {
        "source a synthetic:vocab=100,tokens=9000000\n",
        "source a synthetic:vocab=100,tokens=20000\n",
        ("source a synthetic:vocab=100,tokens=9000000\nsource b synthetic:vocab=100,tokens=800000\n"
         "source c synthetic:vocab=100,tokens=7000\nphase 0 a 0.7 b 0.2999 c 0.0001\nphase 9 a 1 b 5 c 3\n"),
        "order blocks 3 5\nsource a synthetic:vocab=100,tokens=90000\n",
        "order sequential\nsource a synthetic:vocab=100,tokens=900000\n",
    };
    enum { ROWS = 1500 };
    static uint64_t rows[ROWS];
    static struct tokmap_place places[ROWS];
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        char text[1000];
        struct tokmap_run *run = NULL;
        struct run_walk walk;
        (void)snprintf(text, sizeof text, "seq_len 8\nbatch %d\nseed 5\n%s", ROWS, texts[t]);
        assert_int_equal(tokmap_run_parse(&run, text, NULL, NULL), TOKMAP_OK);
        run_walk_init(&walk, run);
        assert_int_equal(run_walk_keep(&walk, NULL), TOKMAP_OK);
        for (uint64_t step = 0; step < 20; step++) {
            for (uint64_t i = 0; i < ROWS; i++)
                rows[i] = (i * 7 + step) % ROWS;
            run_walk_rows(&walk, step, rows, ROWS, places);
            for (uint64_t i = 0; i < ROWS; i++) {
                struct tokmap_place one;
                assert_int_equal(tokmap_run_locate(run, step, rows[i], &one, NULL), TOKMAP_OK);
                same_place(&places[i], &one);
            }
        }
        run_walk_free(&walk);
        tokmap_run_close(run);
    }
}

static void ranges(void **state)
{
    struct tokmap_run *run = run_of(5, 3, 1, 4, 4, true, "steps 10\nskip 4..6\n");
    struct tokmap_place place;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_run_locate(run, 10, 0, &place, &error), TOKMAP_ERROR_RANGE);
    assert_non_null(strstr(error.message, "step 10"));
    assert_int_equal(tokmap_run_locate(run, 9, 4, &place, &error), TOKMAP_ERROR_RANGE);
    assert_non_null(strstr(error.message, "row 4"));
    assert_int_equal(tokmap_run_locate(run, 4, 0, &place, &error), TOKMAP_OK); /* a skipped step has places too */
    assert_int_equal(tokmap_run_locate(NULL, 0, 0, &place, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_locate(run, 0, 0, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_run_close(run);

    /* The last rows that a run can have. */
    run = run_of(5, 3, 1, 4, 4, true, "");
    uint64_t last = ((uint64_t)1 << 61) - 1;
    assert_int_equal(tokmap_run_locate(run, last, 3, &place, &error), TOKMAP_OK);
    assert_true(place.epoch == place.draw / 21 && place.first_token < 64);
    assert_int_equal(tokmap_run_locate(run, last + 1, 0, &place, &error), TOKMAP_ERROR_RANGE);
    tokmap_run_close(run);
}

/* ---- inverse ---- */

struct found {
    struct tokmap_place places[4096];
    size_t count, stop;
};

static int collect(void *user, const struct tokmap_place *place)
{
    struct found *found = user;
    assert_true(found->count < 4096);
    found->places[found->count++] = *place;
    return found->stop && found->count == found->stop;
}

static bool holds(const struct tokmap_place *place, uint64_t tokens, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < place->tokens; i++) {
        uint64_t token = (place->first_token + i) % tokens;
        if (token >= first && token < first + count)
            return true;
    }
    return false;
}

/* Compares the search for every range of tokens with all rows of the run. */
static void check_find(struct tokmap_run *run, uint64_t tokens, uint64_t batch, uint64_t first_step, uint64_t end_step)
{
    static struct tokmap_place all[4096];
    static struct found found;
    size_t rows = 0;
    for (uint64_t step = first_step; step < end_step; step++)
        for (uint64_t row = 0; row < batch && tokmap_run_delivers(run, step); row++)
            assert_int_equal(tokmap_run_locate(run, step, row, &all[rows++], NULL), TOKMAP_OK);
    for (uint64_t count = 0; count <= tokens; count += count < 4 || tokens < 20 ? 1 : count + 1 < tokens ? 9 : 1) {
        for (uint64_t first = 0; first + count <= tokens; first++) {
            found.count = found.stop = 0;
            assert_int_equal(tokmap_run_find(run, 0, first, count, first_step, end_step, collect, &found, NULL),
                             TOKMAP_OK);
            size_t expected = 0;
            for (size_t i = 0; i < rows; i++)
                expected += holds(&all[i], tokens, first, count);
            assert_int_equal(found.count, expected);
            for (size_t i = 0; i < found.count; i++) {
                const struct tokmap_place *place = &found.places[i];
                struct tokmap_place again;
                assert_true(holds(place, tokens, first, count));
                assert_true(tokmap_run_delivers(run, place->step));
                assert_int_equal(tokmap_run_locate(run, place->step, place->row, &again, NULL), TOKMAP_OK);
                same_place(place, &again);
                if (i > 0) /* in order, so no row comes twice */
                    assert_true(place->epoch > place[-1].epoch ||
                                (place->epoch == place[-1].epoch && place->window > place[-1].window));
            }
        }
    }
}

static void find_is_locate_backwards(void **state)
{
    static const uint64_t lookaheads[] = {0, 1, 5}, lengths[] = {1, 3, 4, 7, 8, 26, 59};
    for (int size = 0; size < SIZES; size++)
        for (size_t l = 0; l < 3; l++)
            for (size_t s = 0; s < sizeof lengths / sizeof lengths[0]; s++)
                for (int shuffle = 0; shuffle < 2; shuffle++) {
                    uint64_t lookahead = lookaheads[l], seq_len = lengths[s], batch = 1 + (s + l) % 5;
                    if (seq_len + lookahead > sizes[size])
                        continue;
                    uint64_t windows = (sizes[size] - lookahead) / seq_len;
                    uint64_t steps = 3 * windows / batch + 2; /* a little more than three epochs */
                    char more[100];
                    (void)snprintf(more, sizeof more, "steps %llu\nskip 2..3\nskip 5..7\n", (unsigned long long)steps);
                    struct tokmap_run *run = run_of(size, seq_len, lookahead, batch, s, shuffle, more);
                    check_find(run, sizes[size], batch, 0, steps);
                    check_find(run, sizes[size], batch, steps / 3, steps - 1);
                    tokmap_run_close(run);
                }
}

static void find_limits(void **state)
{
    static struct found found;
    struct tokmap_error error = {0};
    struct tokmap_run *run = run_of(5, 3, 1, 4, 4, true, "steps 20\n");
    found.stop = 3;
    found.count = 0;
    assert_int_equal(tokmap_run_find(run, 0, 0, 64, 0, TOKMAP_FOREVER, collect, &found, &error),
                     TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(found.count, 3);
    found.stop = found.count = 0;
    assert_int_equal(tokmap_run_find(run, 0, 0, 64, 0, TOKMAP_FOREVER, collect, &found, &error), TOKMAP_OK);
    assert_int_equal(found.count, 80);
    found.count = 0;
    assert_int_equal(tokmap_run_find(run, 0, 0, 64, 18, 1000, collect, &found, &error), TOKMAP_OK);
    assert_int_equal(found.count, 8);
    found.count = 0;
    assert_int_equal(tokmap_run_find(run, 0, 0, 64, 20, 1000, collect, &found, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_find(run, 0, 64, 0, 0, 20, collect, &found, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_find(run, 0, 5, 3, 7, 7, collect, &found, &error), TOKMAP_OK);
    assert_int_equal(found.count, 0);
    assert_int_equal(tokmap_run_find(run, 1, 0, 1, 0, 20, collect, &found, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_find(run, 0, 64, 1, 0, 20, collect, &found, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_find(run, 0, 60, 5, 0, 20, collect, &found, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_find(run, 0, 60, UINT64_MAX, 0, 20, collect, &found, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_find(run, 0, 0, 1, 8, 7, collect, &found, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_run_find(run, 0, 0, 1, 0, 7, NULL, &found, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_run_find(NULL, 0, 0, 1, 0, 7, collect, &found, &error), TOKMAP_ERROR_ARGUMENT);
    tokmap_run_close(run);

    /* If the run has no end, the search needs one. A search far from step 0 costs no more. */
    run = run_of(5, 3, 1, 4, 4, true, "");
    assert_int_equal(tokmap_run_find(run, 0, 0, 1, 0, TOKMAP_FOREVER, collect, &found, &error), TOKMAP_ERROR_RANGE);
    assert_non_null(strstr(error.message, "no end"));
    uint64_t last = (uint64_t)1 << 61;
    found.count = 0;
    assert_int_equal(tokmap_run_find(run, 0, 0, 64, last - 20, TOKMAP_FOREVER - 1, collect, &found, &error), TOKMAP_OK);
    assert_int_equal(found.count, 80);
    tokmap_run_close(run);
}

/* A dataset of 2^61 tokens, which exists only as a number in the run: places, and the search for them. */
static void beyond_32_bits(void **state)
{
    static struct found found;
    struct tokmap_run *run = run_of(5, 7, 1, 1000, 77, true, "");
    const uint64_t tokens = run->sources.of[0].tokens = ((uint64_t)1 << 61) + 12345;
    const uint64_t windows = run->phases.stretches[0].leaves[0].windows = (tokens - 1) / 7;
    uint64_t random = 11;
    for (int i = 0; i < 3000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t step = (random >> 8) % (RUN_DRAWS_MOST / 1000), row = (random >> 40) % 1000;
        struct tokmap_place place, expected = model(tokens, 7, 1, 1000, 77, true, step, row);
        assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
        same_place(&place, &expected);
        assert_true(place.window < windows && place.first_token < tokens);
        found.count = found.stop = 0;
        uint64_t token = (place.first_token + random % 8) % tokens;
        assert_int_equal(tokmap_run_find(run, 0, token, 1, step, step + 1, collect, &found, NULL), TOKMAP_OK);
        assert_int_equal(found.count, 1);
        same_place(&found.places[0], &place);
    }
    tokmap_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_model_says),        cmocka_unit_test(epochs_cover), cmocka_unit_test(rows_are_permuted),
        cmocka_unit_test(walk_in_any_order),        cmocka_unit_test(rows_at_once), cmocka_unit_test(ranges),
        cmocka_unit_test(find_is_locate_backwards), cmocka_unit_test(find_limits),  cmocka_unit_test(beyond_32_bits),
    };
    return cmocka_run_group_tests_name("run_locate", tests, make_datasets, remove_datasets);
}
