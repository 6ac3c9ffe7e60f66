/* SPDX-License-Identifier: MIT */
/*
 * case_order.c - the cost of the order: draw to window, its inverse, and the set-up of an epoch.
 *
 * Two kinds of draws are timed. A loader draws windows one after the other, so the processor overlaps several draws;
 * that is draw_ns. If each draw waits for the result of the one before, the time is that of a single draw:
 * draw_alone_ns. An audit asks for many draws in one call, which computes them in vectors: draws_ns and inverses_ns.
 *
 * A draw of a mixture finds the source, which of the source's draws it is, and its window: the permutation of the
 * source is part of the time. Its inverse leads from the window back to the draw. The draws are consecutive, as those
 * of a loader are, and the epochs' permutations are kept, one for each source.
 */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "order/mixture.h"
#include "order/permutation.h"
#include "platform/os.h"

/* Small numbers of windows, large ones, and numbers next to powers of two, where the Feistel network of the permutation
 * needs the most and the fewest steps. */
static const struct order_size {
    const char *label;
    uint64_t windows;
} sizes[] = {
    {"2", 2},
    {"3", 3},
    {"1000", 1000},
    {"2p16plus1", ((uint64_t)1 << 16) + 1},
    {"488281", 488281},
    {"2p24plus1", ((uint64_t)1 << 24) + 1},
    {"2p31minus1", ((uint64_t)1 << 31) - 1},
    {"2p32plus1", ((uint64_t)1 << 32) + 1},
    {"2p40", (uint64_t)1 << 40},
    {"2p52plus1", ((uint64_t)1 << 52) + 1},
    {"2p62plus1", ((uint64_t)1 << 62) + 1},
    {"2p63", (uint64_t)1 << 63},
};
#define SIZES (sizeof sizes / sizeof sizes[0])
#define BURST 4096 /* operations for each look at the clock */

/* Makes BURST operations, beginning with number *at, which is then where the next burst begins. Returns a value that
 * depends on all of them, for keep_value(). */
typedef uint64_t burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at);

static uint64_t draw_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at)
{
    uint64_t sum = 0, draw = *at;
    for (int i = 0; i < BURST; i++) {
        sum += tokmap_order_window(order, draw);
        draw = draw + 1 < windows ? draw + 1 : 0;
    }
    *at = draw;
    return sum;
}

static uint64_t chain_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at)
{
    (void)windows;
    for (int i = 0; i < BURST; i++)
        *at = tokmap_order_window(order, *at);
    return *at;
}

static uint64_t inverse_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at)
{
    uint64_t sum = 0, window = *at;
    for (int i = 0; i < BURST; i++) {
        sum += tokmap_order_draw(order, window);
        window = window + 1 < windows ? window + 1 : 0;
    }
    *at = window;
    return sum;
}

static uint64_t many_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at, bool inverse)
{
    uint64_t numbers[BURST];
    for (int i = 0; i < BURST; i++) {
        numbers[i] = *at;
        *at = *at + 1 < windows ? *at + 1 : 0;
    }
    (inverse ? permutation_inverse_many : permutation_forward_many)(order, numbers, BURST, numbers);
    return numbers[0] + numbers[BURST - 1];
}

static uint64_t draws_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at)
{
    return many_burst(order, windows, at, false);
}

static uint64_t inverses_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at)
{
    return many_burst(order, windows, at, true);
}

static uint64_t init_burst(const struct tokmap_order *order, uint64_t windows, uint64_t *at)
{
    struct tokmap_order other;
    uint64_t sum = 0;
    (void)order;
    for (int i = 0; i < BURST; i++) {
        if (tokmap_order_init(&other, windows, 1234, "data", (*at)++))
            break;
        sum += other.state[0];
    }
    return sum;
}

/* Returns nanoseconds per operation. */
static double burst_repeat(burst *body, const struct tokmap_order *order, uint64_t windows, double seconds)
{
    const uint64_t length = (uint64_t)(seconds * 1e9), started = os_clock_ns();
    uint64_t at = windows / 3, operations = 0, now = started;
    do {
        keep_value(body(order, windows, &at));
        operations += BURST;
        now = os_clock_ns();
    } while (now - started < length);
    return (double)(now - started) / (double)operations;
}

enum { DRAW, CHAIN, INVERSE, DRAWS, INVERSES, INIT, KINDS };
static const struct order_kind {
    const char *metric;
    burst *body;
} kinds[KINDS] = {{"draw_ns", draw_burst},   {"draw_alone_ns", chain_burst},  {"inverse_ns", inverse_burst},
                  {"draws_ns", draws_burst}, {"inverses_ns", inverses_burst}, {"epoch_ns", init_burst}};

/* ---- mixtures ---- */

#define MIXED_WINDOWS 1000000007u /* of each source */

static const struct mixed_size {
    const char *draw, *inverse; /* names of the results */
    uint64_t sources;
} mixed_sizes[] = {{"mixture8_ns", "mixture8_inverse_ns", 8}, {"mixture1000_ns", "mixture1000_inverse_ns", 1000}};
#define MIXED_SIZES (sizeof mixed_sizes / sizeof mixed_sizes[0])

struct mixed {
    struct mixture *mixture;
    struct tokmap_order *orders; /* one for each source */
    uint64_t at;
    /* The windows of a burst, for the inverse. */
    uint64_t leaves[BURST], windows[BURST];
};

static void mixed_close(struct mixed *mixed)
{
    mixture_free(mixed->mixture);
    free(mixed->orders);
}

/* The weights of the sources fall from 1 to 1/1000, as those of real mixtures do. */
static enum tokmap_status mixed_open(struct mixed *mixed, uint64_t sources, struct tokmap_error *error)
{
    uint64_t weights[1000];
    mixed->at = (uint64_t)1 << 40;
    mixed->orders = malloc(sources * sizeof *mixed->orders);
    for (uint64_t i = 0; mixed->orders && i < sources; i++) {
        weights[i] = (uint64_t)(1e9 * pow(1e-3, (double)(i * 7 % sources) / (double)sources));
        permutation_init(&mixed->orders[i], order_key(KEY_WINDOWS, 1234, "data", 4, i), MIXED_WINDOWS);
    }
    return mixed->orders ? mixture_new(&mixed->mixture, weights, sources, error) : TOKMAP_ERROR_MEMORY;
}

static uint64_t mixed_draws(struct mixed *mixed)
{
    uint64_t sum = 0;
    for (int i = 0; i < BURST; i++) {
        uint64_t k;
        const uint64_t leaf = mixture_draw(mixed->mixture, mixed->at++, &k);
        sum += permutation_forward(&mixed->orders[leaf], k % MIXED_WINDOWS);
    }
    return sum;
}

static void mixed_prepare(struct mixed *mixed)
{
    for (int i = 0; i < BURST; i++) {
        uint64_t k;
        mixed->leaves[i] = mixture_draw(mixed->mixture, mixed->at++, &k);
        mixed->windows[i] = permutation_forward(&mixed->orders[mixed->leaves[i]], k % MIXED_WINDOWS);
    }
}

static uint64_t mixed_inverses(struct mixed *mixed)
{
    uint64_t sum = 0;
    for (int i = 0; i < BURST; i++) {
        const uint64_t k = permutation_inverse(&mixed->orders[mixed->leaves[i]], mixed->windows[i]);
        sum += mixture_draw_of(mixed->mixture, mixed->leaves[i], k);
    }
    return sum;
}

/* Returns nanoseconds per draw, or per inverse. */
static double mixed_repeat(struct mixed *mixed, bool inverse, double seconds)
{
    const uint64_t length = (uint64_t)(seconds * 1e9), started = os_clock_ns();
    uint64_t operations = 0, now = started;
    if (inverse)
        mixed_prepare(mixed);
    const uint64_t first = os_clock_ns();
    do {
        keep_value(inverse ? mixed_inverses(mixed) : mixed_draws(mixed));
        operations += BURST;
        now = os_clock_ns();
    } while (now - started < length);
    return (double)(now - first) / (double)operations;
}

static int mixtures_run(struct bench *bench, double seconds)
{
    static struct series draws[MIXED_SIZES], inverses[MIXED_SIZES];
    static struct mixed mixed[MIXED_SIZES];
    struct tokmap_error error = {0};
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < MIXED_SIZES && !status; i++)
        status = mixed_open(&mixed[i], mixed_sizes[i].sources, &error);
    if (status)
        cli_say(bench->program, "a mixture could not be made: %s", error.message);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 11), REPEATS_WARM_FIRST);
    while (!status && repeats_next(&repeats, CLI_DONE))
        for (size_t i = 0; i < MIXED_SIZES; i++) {
            const double draw = mixed_repeat(&mixed[i], false, seconds);
            const double inverse = mixed_repeat(&mixed[i], true, seconds);
            if (repeats.counts) {
                series_add(&draws[i], draw);
                series_add(&inverses[i], inverse);
            }
        }
    for (size_t i = 0; i < MIXED_SIZES; i++)
        mixed_close(&mixed[i]);
    if (status || bench_stopped())
        return CLI_FAILED;
    for (size_t i = 0; i < MIXED_SIZES; i++) {
        bench_result(bench, mixed_sizes[i].draw, "ns", &draws[i], NULL);
        bench_result(bench, mixed_sizes[i].inverse, "ns", &inverses[i], NULL);
    }
    return CLI_DONE;
}

static int run(struct bench *bench)
{
    static struct series found[KINDS][SIZES];
    const double seconds = bench_seconds(bench, 0.02);
    struct repeats repeats = repeats_begin(bench_repeats(bench, 11), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats, CLI_DONE))
        for (size_t i = 0; i < SIZES; i++) {
            struct tokmap_order order;
            if (tokmap_order_init(&order, sizes[i].windows, 1234, "data", repeats.number)) {
                cli_say(bench->program, "the library refused an order of %s windows", sizes[i].label);
                return CLI_FAILED;
            }
            for (size_t kind = 0; kind < KINDS; kind++) {
                const double ns = burst_repeat(kinds[kind].body, &order, sizes[i].windows, kind == INIT ? 0 : seconds);
                if (repeats.counts)
                    series_add(&found[kind][i], ns);
            }
        }
    if (bench_stopped())
        return CLI_FAILED;
    for (size_t kind = 0; kind < KINDS; kind++)
        bench_result(bench, kinds[kind].metric, "ns", series_worst(found[kind], SIZES), NULL);
    for (size_t i = 0; i < SIZES; i++) {
        char metric[64];
        (void)snprintf(metric, sizeof metric, "draw_ns_n%s", sizes[i].label);
        bench_result(bench, metric, "ns", &found[DRAW][i], NULL);
    }
    return mixtures_run(bench, seconds);
}

const struct bench_case case_order = {
    "order",
    "draw to window, its inverse, and the set-up of an epoch, for 2 to 2^63 windows; mixtures of 8 and 1,000 sources",
    run};
