/* SPDX-License-Identifier: MIT */
/*
 * case_order.c - the cases `order` and `plan`: what is decided before a token is read.
 *
 * `order` is the cost of the order: draw to window.
 */
#include "cases.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "harness/storage.h"
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
#define BURST 4096 /* draws for each look at the clock */

/* Returns nanoseconds per draw. A loader draws windows one after the other, so the processor overlaps several draws. */
static double draws_repeat(const struct tokmap_order *order, uint64_t windows, double seconds)
{
    const uint64_t length = (uint64_t)(seconds * 1e9), started = os_clock_ns();
    uint64_t draw = windows / 3, draws = 0, now = started;
    do {
        uint64_t sum = 0;
        for (int i = 0; i < BURST; i++) {
            sum += tokmap_order_window(order, draw);
            draw = draw + 1 < windows ? draw + 1 : 0;
        }
        keep_value(sum);
        draws += BURST;
        now = os_clock_ns();
    } while (now - started < length);
    return (double)(now - started) / (double)draws;
}

static int order_run(struct bench *bench)
{
    static struct series found[SIZES];
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 11), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < SIZES; i++) {
            struct tokmap_order order;
            if (tokmap_order_init(&order, sizes[i].windows, 1234, "data", repeats.number)) {
                cli_say(bench->program, "the library refused an order of %s windows", sizes[i].label);
                return CLI_FAILED;
            }
            repeats_add(&repeats, &found[i], draws_repeat(&order, sizes[i].windows, bench_seconds(bench, 0.02)));
        }
    bench_result(bench, "draw_ns", "ns", series_worst(found, SIZES), NULL);
    for (size_t i = 0; i < SIZES; i++) {
        char metric[64];
        (void)snprintf(metric, sizeof metric, "draw_ns_n%s", sizes[i].label);
        bench_result(bench, metric, "ns", &found[i], NULL);
    }
    return CLI_DONE;
}

const struct bench_case case_order = {"order", "draw to window, for 2 to 2^63 windows", .run = order_run};

/* ==== the case `plan` ==== */

/*
 * The rate at which a loader delivers the rows of a plan, beside windows of the same dataset. A row of a plan is
 * gathered from several places, and the ends of its pieces are no multiples of a cache line; that is what the ratio
 * costs.
 */

/* Makes a run of the dataset, with the plan or, if it is NULL, with windows. */
static struct tokmap_run *run_parse(struct bench *bench, const char *dataset, const char *plan)
{
    static char text[3 * BENCH_PATH];
    struct tokmap_run *run = NULL;
    (void)snprintf(text, sizeof text,
                   "seq_len %" PRIu64 "\nlookahead %" PRIu64 "\nbatch %" PRIu64 "\nsource data \"%s\"%s%s%s\n",
                   bench->options.seq_len, bench->options.lookahead, bench->options.batch, dataset,
                   plan ? " plan \"" : "", plan ? plan : "", plan ? "\"" : "");
    bench_check(bench, tokmap_run_parse(&run, text, NULL, &bench->error));
    return run;
}

static void plan_make(struct bench *bench, const char *dataset, const char *plan)
{
    char length[32];
    const char *const arguments[] = {"plan", "--quiet", "--force", "--seq-len", length, "-o", plan, dataset, NULL};
    (void)snprintf(length, sizeof length, "%" PRIu64, bench->options.seq_len);
    child_run_tokmap(bench, arguments, NULL);
}

static int plan_run(struct bench *bench)
{
    static struct series rates[2]; /* of windows, of the rows of a plan */
    char plan[BENCH_PATH];
    struct reader readers[2] = {{.loader = NULL}, {.loader = NULL}};
    const char *name = dataset_name(bench);
    made_file(bench, "data.plan", plan);
    plan_make(bench, name, plan);
    struct tokmap_run *const runs[2] = {run_parse(bench, name, NULL), run_parse(bench, name, plan)};
    for (size_t i = 0; i < 2; i++) {
        const struct tokmap_loader_options options = reader_options(bench, 0, READER_BOTH);
        const struct tokmap_source_info source = run_get_data(bench, runs[i]).source;
        page_cache_warm(bench, source.dataset);
        reader_open(bench, &readers[i], runs[i], &options);
        (void)reader_first_pass(bench, &readers[i], source.windows);
    }
    readers_compare(bench, (struct reader *const[2]){&readers[0], &readers[1]},
                    repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT), bench_seconds(bench, 0.4), rates);
    for (size_t i = 0; i < 2; i++) {
        reader_close(&readers[i]);
        tokmap_run_close(runs[i]);
    }
    bench_result(bench, "tokens_per_s", "tokens/s", &rates[1], &rates[0]);
    bench->name = "loader";
    bench_derived(bench, "plan_ratio", "x", series_median(&rates[1]) / series_median(&rates[0]), &rates[1]);
    return CLI_DONE;
}

const struct bench_case case_plan = {"plan", "a loader of the rows of a plan, beside windows", .run = plan_run};
