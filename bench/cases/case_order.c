/*
 * case_order.c - the cost of the order: draw to window, its inverse, and the set-up of an epoch.
 *
 * Two kinds of draws are timed. A loader draws windows one after the other, so the processor overlaps several draws;
 * that is draw_ns. If each draw waits for the result of the one before, the time is that of a single draw:
 * draw_alone_ns.
 */
#include "cases.h"

#include <stdio.h>

#include "cli/cli.h"
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

enum { DRAW, CHAIN, INVERSE, INIT, KINDS };
static const struct order_kind {
    const char *metric;
    burst *body;
} kinds[KINDS] = {
    {"draw_ns", draw_burst}, {"draw_alone_ns", chain_burst}, {"inverse_ns", inverse_burst}, {"epoch_ns", init_burst}};

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
    return CLI_DONE;
}

const struct bench_case case_order = {
    "order", "draw to window, its inverse, and the set-up of an epoch, for 2 to 2^63 windows", run};
