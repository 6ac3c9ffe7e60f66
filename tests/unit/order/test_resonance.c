/* SPDX-License-Identifier: MIT */
/*
 * test_resonance.c - mixtures do not resonate with ranks. A mixture is periodic: with weights 5 : 3 : 2 and 1,000 ranks
 * of one row, draw p and draw p + 1,000 belong to the same source, so without further measures each rank would receive
 * one source only, and forever. The rows of each step are therefore permuted. This test counts, for 50 random sets of
 * weights and batch sizes, what each rank receives of each source in 1,000 steps, and demands that it is within 4
 * standard deviations of what it would be if every row chose its source by lot. The same test without the permutation
 * of rows must fail, or else it detects nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "order/mixture.h"
#include "order/permutation.h"

#define SETS 50
#define STEPS 1000
#define SOURCES_MOST 8
#define RANKS_MOST 16
#define SIGMAS 4.0 /* by chance, one of 16,000 shares is off by more; about 3,000 are judged */

struct trial {
    uint64_t weights[SOURCES_MOST], sources, sum;
    uint64_t ranks, rows_a_rank, seed;
    uint32_t received[RANKS_MOST][SOURCES_MOST];
};

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t mixed = (*state ^ *state >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint64_t)((unsigned __int128)(mixed ^ mixed >> 32) * limit >> 64);
}

static void trial_pick(struct trial *trial, uint64_t number)
{
    uint64_t state = number * 77 + 5;
    memset(trial, 0, sizeof *trial);
    trial->seed = number;
    trial->sources = 2 + random_below(&state, SOURCES_MOST - 1);
    trial->rows_a_rank = 1 + number % 8;
    trial->ranks = 2 + random_below(&state, RANKS_MOST - 1);
    /* Every second set has weights whose sum divides the batch or is a multiple of it, where resonance is worst. */
    for (uint64_t i = 0; i < trial->sources; i++)
        trial->weights[i] = 1 + random_below(&state, 10);
    if (number % 2)
        trial->ranks = 2 * trial->sources;
    for (uint64_t i = 0; i < trial->sources; i++)
        trial->weights[i] = number % 2 && i ? 1 + i % 2 : trial->weights[i];
    for (uint64_t i = 0; i < trial->sources; i++)
        trial->sum += trial->weights[i];
}

/* Rank r owns rows [r * rows_a_rank, (r + 1) * rows_a_rank) of each step. */
static void trial_run(struct trial *trial, bool permuted)
{
    const uint64_t batch = trial->ranks * trial->rows_a_rank;
    struct mixture *mixture = NULL;
    assert_int_equal(mixture_new(&mixture, trial->weights, trial->sources, NULL), TOKMAP_OK);
    memset(trial->received, 0, sizeof trial->received);
    for (uint64_t step = 0; step < STEPS; step++) {
        struct tokmap_order rows;
        permutation_init(&rows, order_key(KEY_ROWS, trial->seed, "", 0, step), batch);
        for (uint64_t j = 0; j < batch; j++) {
            uint64_t k;
            const uint64_t draw = step * batch + (permuted ? permutation_forward(&rows, j) : j);
            trial->received[j / trial->rows_a_rank][mixture_draw(mixture, draw, &k)]++;
        }
    }
    mixture_free(mixture);
}

/* Returns the largest deviation of any rank and source, in standard deviations, and adds up their squares. */
static double deviation_most(const struct trial *trial, double *squares, uint64_t *count)
{
    const double rows = (double)(STEPS * trial->rows_a_rank);
    double most = 0;
    for (uint64_t rank = 0; rank < trial->ranks; rank++)
        for (uint64_t i = 0; i < trial->sources; i++) {
            const double share = (double)trial->weights[i] / (double)trial->sum;
            const double z = (trial->received[rank][i] - rows * share) / sqrt(rows * share * (1 - share));
            most = fmax(most, fabs(z));
            *squares += z * z;
            ++*count;
        }
    return most;
}

static void every_rank_receives_every_share(void **state)
{
    double squares = 0;
    uint64_t count = 0;
    for (uint64_t number = 0; number < SETS; number++) {
        struct trial trial;
        trial_pick(&trial, number);
        trial_run(&trial, true);
        const double most = deviation_most(&trial, &squares, &count);
        if (most > SIGMAS)
            fail_msg("set %llu: %llu sources, %llu ranks of %llu rows: a rank's share of a source is off by %.2f sigma",
                     (unsigned long long)number, (unsigned long long)trial.sources, (unsigned long long)trial.ranks,
                     (unsigned long long)trial.rows_a_rank, most);
    }
    /* Rows without replacement vary a little less than by lot, and by no means more. */
    printf("%llu shares: mean square of the deviation %.3f sigma^2\n", (unsigned long long)count,
           squares / (double)count);
    assert_true(squares / (double)count > 0.85 && squares / (double)count < 1.03);
}

static void without_permuted_rows_the_test_fails(void **state)
{
    uint64_t failed = 0, count = 0;
    double squares = 0;
    for (uint64_t number = 0; number < SETS; number++) {
        struct trial trial;
        trial_pick(&trial, number);
        trial_run(&trial, false);
        failed += deviation_most(&trial, &squares, &count) > SIGMAS;
    }
    printf("without permuted rows, %llu of %d sets fail\n", (unsigned long long)failed, SETS);
    assert_true(failed > SETS / 4);
}

/* The example of the head: with 1,000 rows a step, the 5 : 3 : 2 of each step is exact, and the ranks share it. */
static void a_thousand_ranks_share_5_3_2(void **state)
{
    static const uint64_t weights[] = {5, 3, 2};
    static uint32_t received[1000][3];
    struct mixture *mixture = NULL;
    assert_int_equal(mixture_new(&mixture, weights, 3, NULL), TOKMAP_OK);
    for (uint64_t step = 0; step < STEPS; step++) {
        struct tokmap_order rows;
        uint64_t in_step[3] = {0}, k;
        permutation_init(&rows, order_key(KEY_ROWS, 1234, "", 0, step), 1000);
        for (uint64_t j = 0; j < 1000; j++) {
            const uint64_t leaf = mixture_draw(mixture, step * 1000 + permutation_forward(&rows, j), &k);
            received[j][leaf]++;
            in_step[leaf]++;
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(in_step[i], weights[i] * 100);
    }
    for (int rank = 0; rank < 1000; rank++)
        for (int i = 0; i < 3; i++) {
            const double share = (double)weights[i] / 10;
            assert_true(fabs(received[rank][i] - STEPS * share) < 5 * sqrt(STEPS * share * (1 - share)));
        }
    mixture_free(mixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_receives_every_share),
        cmocka_unit_test(without_permuted_rows_the_test_fails),
        cmocka_unit_test(a_thousand_ranks_share_5_3_2),
    };
    return cmocka_run_group_tests_name("resonance", tests, NULL, NULL);
}
