/* case_order.c - what a draw costs: draw to window, its inverse, and the set-up of an epoch's order. */

#include <stdio.h>

#include "cli/cli.h"
#include "harness/harness.h"
#include "platform/os.h"

/* Small, large, and just above and below powers of two, where a Feistel network walks longest and shortest. */
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
#define BURST 4096

/* Draws in a row, as a loader makes them. */
static double draw_turn(const struct tokmap_order *order, uint64_t windows, double seconds)
{
    uint64_t length = (uint64_t)(seconds * 1e9), draws = 0, sum = 0, draw = windows / 3;
    uint64_t started = os_clock_ns(), now = started;
    while (now - started < length) {
        for (int i = 0; i < BURST; i++) {
            sum += tokmap_order_window(order, draw);
            draw = draw + 1 < windows ? draw + 1 : 0;
        }
        draws += BURST;
        now = os_clock_ns();
    }
    keep_value(sum);
    return (double)(now - started) / (double)draws;
}

/* Each draw waits for the one before: the time of one alone. */
static double chain_turn(const struct tokmap_order *order, uint64_t windows, double seconds)
{
    uint64_t length = (uint64_t)(seconds * 1e9), draws = 0, at = windows / 3;
    uint64_t started = os_clock_ns(), now = started;
    while (now - started < length) {
        for (int i = 0; i < BURST; i++)
            at = tokmap_order_window(order, at);
        draws += BURST;
        now = os_clock_ns();
    }
    keep_value(at);
    return (double)(now - started) / (double)draws;
}

static double inverse_turn(const struct tokmap_order *order, uint64_t windows, double seconds)
{
    uint64_t length = (uint64_t)(seconds * 1e9), draws = 0, sum = 0, window = windows / 3;
    uint64_t started = os_clock_ns(), now = started;
    while (now - started < length) {
        for (int i = 0; i < BURST; i++) {
            sum += tokmap_order_draw(order, window);
            window = window + 1 < windows ? window + 1 : 0;
        }
        draws += BURST;
        now = os_clock_ns();
    }
    keep_value(sum);
    return (double)(now - started) / (double)draws;
}

static double init_turn(uint64_t windows)
{
    struct tokmap_order order;
    uint64_t started = os_clock_ns();
    for (uint64_t epoch = 0; epoch < BURST; epoch++) {
        if (tokmap_order_init(&order, windows, 1234, "data", epoch))
            break;
        keep_value(order.state[0]);
    }
    return (double)(os_clock_ns() - started) / BURST;
}

enum { DRAW, CHAIN, INVERSE, INIT, KINDS };

/* The series whose median is worst. */
static const struct series *worst(const struct series *found)
{
    const struct series *result = &found[0];
    for (size_t i = 1; i < SIZES; i++)
        if (series_median(&found[i]) > series_median(result))
            result = &found[i];
    return result;
}

static int run(struct bench *bench)
{
    static const char *const metrics[KINDS] = {"draw_ns", "draw_alone_ns", "inverse_ns", "epoch_ns"};
    static struct series found[KINDS][SIZES];
    double seconds = bench_seconds(bench, 0.02);
    for (uint64_t turn = 0; turn <= bench_repeats(bench, 11) && !bench_stopped(); turn++)
        for (size_t i = 0; i < SIZES; i++) {
            struct tokmap_order order;
            uint64_t windows = sizes[i].windows;
            if (tokmap_order_init(&order, windows, 1234, "data", turn)) {
                cli_say(bench->program, "an order of %s windows was refused", sizes[i].label);
                return CLI_FAILED;
            }
            double values[KINDS] = {draw_turn(&order, windows, seconds), chain_turn(&order, windows, seconds),
                                    inverse_turn(&order, windows, seconds), init_turn(windows)};
            for (size_t kind = 0; turn && kind < KINDS; kind++) /* the first turn warms */
                series_add(&found[kind][i], values[kind]);
        }
    if (bench_stopped())
        return CLI_FAILED;
    for (size_t kind = 0; kind < KINDS; kind++)
        bench_result(bench, metrics[kind], "ns", worst(found[kind]), NULL);
    for (size_t i = 0; i < SIZES; i++) {
        char metric[64];
        (void)snprintf(metric, sizeof metric, "draw_ns_n%s", sizes[i].label);
        bench_result(bench, metric, "ns", &found[DRAW][i], NULL);
    }
    return CLI_DONE;
}

const struct bench_case case_order = {"order",
                                      "draw to window, its inverse, and an epoch's set-up, for n from 2 to 2^63", run};
