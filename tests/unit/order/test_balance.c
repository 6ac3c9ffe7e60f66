/* SPDX-License-Identifier: MIT */
/*
 * test_balance.c - rows assigned to cells by their costs: frozen values, a search of all cells in place of the heap,
 * the best assignment of small steps, which is found by trying all of them, and steps of rows with lengths as documents
 * have them. If the frozen values fail, the code would give the rows of running jobs to other ranks than it did when
 * they were traced: correct the code, and never change the values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/balance.h"

#define ROWS_MOST 4096
#define CELLS_MOST 1024

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t mixed = (*state ^ *state >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint64_t)((unsigned __int128)(mixed ^ mixed >> 32) * limit >> 64);
}

static struct balance_row rows[ROWS_MOST];
static struct balance_cell cells[CELLS_MOST];
static balance_cost costs[ROWS_MOST], sums[CELLS_MOST];
static uint64_t cell_of[ROWS_MOST], rooms[CELLS_MOST];

/* Returns a cost that the largest sum of any assignment to `cell_count` cells of at least `least` rows has at least:
 * the mean; and of the k * cells + 1 rows that cost most, some cell has k + 1, and the rest of it is cheap. The rows
 * are by falling cost. */
static balance_cost balance_bound(uint64_t count, uint64_t cell_count, uint64_t least)
{
    balance_cost sum = 0, cheap = 0, bound;
    for (uint64_t i = 0; i < count; i++)
        sum += rows[i].cost;
    bound = sum / cell_count;
    for (uint64_t k = least; k-- > 0;) {
        const balance_cost some = rows[k * cell_count].cost * (k + 1) + cheap;
        bound = some > bound ? some : bound;
        cheap += rows[count - (least - k)].cost; /* the cell's least - k cheapest rows */
    }
    return bound;
}

/* Assigns rows with costs[] to cells with rooms[], and sets cell_of[] and sums[]. */
static void assign(uint64_t count, uint64_t cell_count)
{
    uint64_t held[CELLS_MOST] = {0};
    for (uint64_t i = 0; i < count; i++)
        rows[i] = (struct balance_row){.cost = costs[i], .row = i, .cell = UINT64_MAX};
    for (uint64_t i = 0; i < cell_count; i++)
        cells[i] = (struct balance_cell){.number = i, .room = rooms[i]};
    balance_rows(rows, count, cells, cell_count);
    memset(sums, 0, sizeof sums);
    memset(cell_of, 0xff, sizeof cell_of);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(rows[i].cell < cell_count && rows[i].row < count);
        assert_int_equal(cell_of[rows[i].row], UINT64_MAX);
        cell_of[rows[i].row] = rows[i].cell;
        sums[rows[i].cell] += costs[rows[i].row];
        held[rows[i].cell]++;
    }
    for (uint64_t i = 0; i < cell_count; i++)
        assert_int_equal(held[i], rooms[i]);
}

static balance_cost largest(uint64_t cell_count)
{
    balance_cost most = 0;
    for (uint64_t i = 0; i < cell_count; i++)
        most = sums[i] > most ? sums[i] : most;
    return most;
}

/* ---- frozen values ---- */

static void test_golden(void **state)
{
    static const struct {
        uint64_t count, cells, costs[10], rooms[4], cell_of[10];
    } golden[] = {
        {6, 3, {9, 7, 6, 5, 4, 1}, {2, 2, 2}, {0, 1, 2, 2, 1, 0}},
        {6, 3, {1, 1, 1, 1, 1, 1}, {2, 2, 2}, {0, 1, 2, 0, 1, 2}},
        {5, 2, {1, 5, 5, 2, 5}, {2, 3}, {1, 0, 1, 1, 0}},
        {7, 3, {8, 8, 8, 8, 1, 1, 1}, {3, 0, 4}, {0, 2, 0, 2, 0, 2, 2}},
        {4, 4, {3, 1, 2, 9}, {1, 1, 1, 1}, {1, 3, 2, 0}},
        {3, 1, {7, 7, 7}, {3}, {0, 0, 0}},
        {10, 2, {100, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 5}, {0, 1, 1, 1, 1, 1, 0, 0, 0, 0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        for (uint64_t k = 0; k < golden[i].count; k++)
            costs[k] = golden[i].costs[k];
        memcpy(rooms, golden[i].rooms, sizeof golden[i].rooms);
        assign(golden[i].count, golden[i].cells);
        for (uint64_t k = 0; k < golden[i].count; k++)
            if (cell_of[k] != golden[i].cell_of[k])
                fail_msg("case %zu: row %d is in cell %d, not %d", i, (int)k, (int)cell_of[k],
                         (int)golden[i].cell_of[k]);
    }
}

/* Costs beyond 64 bits are compared whole. */
static void test_wide(void **state)
{
    (void)state;
    costs[0] = (balance_cost)1 << 100;
    costs[1] = ((balance_cost)1 << 100) + 1;
    costs[2] = 5;
    rooms[0] = 1, rooms[1] = 2;
    assign(3, 2);
    assert_true(cell_of[1] == 0 && cell_of[0] == 1 && cell_of[2] == 1);
}

/* ---- by search ---- */

static void pick(uint64_t *state, uint64_t count, uint64_t cell_count, uint64_t limit)
{
    for (uint64_t i = 0; i < count; i++)
        costs[i] = random_below(state, limit);
    memset(rooms, 0, sizeof rooms);
    for (uint64_t i = 0; i < count; i++)
        rooms[random_below(state, 4) ? i % cell_count : random_below(state, cell_count)]++;
}

static void test_as_defined(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        const uint64_t count = 1 + random_below(&random, round % 50 ? 40 : ROWS_MOST);
        const uint64_t cell_count = 1 + random_below(&random, round % 50 ? 12 : CELLS_MOST);
        static uint64_t wanted[ROWS_MOST], held[CELLS_MOST];
        static balance_cost have[CELLS_MOST];
        static char taken[ROWS_MOST];
        pick(&random, count, cell_count, round % 3 ? 6 : (uint64_t)1 << 50); /* with many ties, or with none */
        memset(held, 0, sizeof held), memset(have, 0, sizeof have), memset(taken, 0, sizeof taken);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t row = UINT64_MAX, cell = UINT64_MAX;
            for (uint64_t k = 0; k < count; k++)
                if (!taken[k] && (row == UINT64_MAX || costs[k] > costs[row]))
                    row = k;
            for (uint64_t k = 0; k < cell_count; k++)
                if (held[k] < rooms[k] && (cell == UINT64_MAX || have[k] < have[cell]))
                    cell = k;
            taken[row] = 1;
            wanted[row] = cell;
            held[cell]++;
            have[cell] += costs[row];
        }
        assign(count, cell_count);
        assert_memory_equal(cell_of, wanted, count * sizeof wanted[0]);
    }
}

/* ---- the best assignment ---- */

struct search {
    uint64_t count, cells, held[4];
    balance_cost sums[4], best;
};

static void try_all(struct search *search, uint64_t row, balance_cost most)
{
    if (most >= search->best)
        return;
    if (row == search->count) {
        search->best = most;
        return;
    }
    for (uint64_t i = 0; i < search->cells; i++) {
        if (search->held[i] == rooms[i])
            continue;
        search->held[i]++;
        search->sums[i] += costs[row];
        try_all(search, row + 1, search->sums[i] > most ? search->sums[i] : most);
        search->held[i]--;
        search->sums[i] -= costs[row];
    }
}

/* Of random small steps, the largest sum is that of the best assignment most of the time, and never far from it. Rows
 * of a step have the same tokens, so the ones that cost most cost a few times as much as the others at most. */
static void test_near_the_best(void **state)
{
    uint64_t random = 7, equal = 0, tried = 0;
    double worst = 1, sum = 0;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        const uint64_t cell_count = 2 + random_below(&random, 3), each = 1 + random_below(&random, 10 / cell_count);
        const uint64_t base = 100, spread = 1 + random_below(&random, 300);
        struct search search = {.count = each * cell_count, .cells = cell_count, .best = UINT64_MAX};
        for (uint64_t i = 0; i < search.count; i++) {
            const uint64_t x = random_below(&random, 1000), y = random_below(&random, 1000);
            costs[i] = base + spread * x * y / 1000000; /* most rows are cheap */
        }
        for (uint64_t i = 0; i < cell_count; i++)
            rooms[i] = each;
        assign(search.count, cell_count);
        try_all(&search, 0, 0);
        const double ratio = (double)largest(cell_count) / (double)search.best;
        assert_true(ratio >= 1);
        assert_true(balance_bound(search.count, cell_count, each) <= search.best);
        worst = fmax(worst, ratio);
        sum += ratio;
        equal += ratio == 1;
        tried++;
    }
    print_message("%d steps: the best in %.0f%%, %.4f of the best on average, %.3f at worst\n", (int)tried,
                  100 * (double)equal / (double)tried, sum / (double)tried, worst);
    assert_true(worst <= 1.15 && sum / (double)tried <= 1.01 && equal * 2 > tried);
}

/* ---- lengths as documents have them ---- */

/* Fills a row of 8,192 tokens with documents whose lengths are log-normal, and returns the sum of their squares. */
static uint64_t fill_row(uint64_t *random, double median, double sigma)
{
    uint64_t left = 8192, squares = 0;
    while (left) {
        double normal = -6;
        for (int i = 0; i < 12; i++)
            normal += (double)random_below(random, 1u << 30) / (1u << 30);
        const double wanted = median * exp(sigma * normal);
        const uint64_t length = wanted < 1 ? 1 : wanted > (double)left ? left : (uint64_t)wanted;
        squares += length * length;
        left -= length;
    }
    return squares;
}

static void test_lengths(void **state)
{
    /* Rows of web pages, of code, of books, and half of them books: 64 ranks with 4 calls of 1, 2, and 4 rows. */
    static const struct {
        const char *name;
        double median, sigma, books;
    } kinds[] = {{"web", 600, 1.1, 0}, {"code", 1200, 1.5, 0}, {"books", 60000, 1, 0}, {"half books", 600, 1.1, 0.5}};
    const uint64_t scale = ((uint64_t)1 << 40) / (12 * 2048);
    uint64_t random = 3;
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (uint64_t each = 1; each <= 4; each *= 2) {
            const uint64_t cell_count = 256, count = each * cell_count;
            double before = 0, after = 0, bound = 0;
            for (int step = 0; step < 10; step++) {
                balance_cost all = 0, most = 0;
                for (uint64_t i = 0; i < count; i++) {
                    const bool book = (double)random_below(&random, 1000) < 1000 * kinds[kind].books;
                    const uint64_t squares = fill_row(&random, book ? 60000 : kinds[kind].median, kinds[kind].sigma);
                    costs[i] = ((balance_cost)8192 << 40) + (balance_cost)squares * scale;
                    all += costs[i];
                }
                for (uint64_t i = 0; i < cell_count; i++) {
                    balance_cost of_cell = 0;
                    rooms[i] = each;
                    for (uint64_t k = 0; k < each; k++)
                        of_cell += costs[i * each + k];
                    most = of_cell > most ? of_cell : most;
                }
                assign(count, cell_count);
                const double mean = (double)all / (double)cell_count;
                before = fmax(before, (double)most / mean);
                after = fmax(after, (double)largest(cell_count) / mean);
                bound = fmax(bound, (double)largest(cell_count) / (double)balance_bound(count, cell_count, each));
            }
            print_message("%-10s %d rows of a call: max / mean %.3f, balanced %.3f, %.4f of the least possible\n",
                          kinds[kind].name, (int)each, before, after, bound);
            assert_true(after <= before && bound <= 1.03);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_wide),    cmocka_unit_test(test_as_defined),
        cmocka_unit_test(test_near_the_best), cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
