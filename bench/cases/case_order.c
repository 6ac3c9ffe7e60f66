/* SPDX-License-Identifier: MIT */
/*
 * case_order.c - the cases `order` and `plan`: what is decided before a token is read.
 *
 * `order` is the cost of the order: draw to window, its inverse, and the set-up of an epoch.
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

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/bytes.h"
#include "format/plan_file.h"
#include "format/shard_writer.h"
#include "harness/bench_data.h"
#include "harness/child.h"
#include "harness/loops.h"
#include "harness/storage.h"
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

/* Opens a run with weights that fall from 1 to 1/1000, as in real mixtures. */
static void mixed_open(struct bench *bench, struct mixed *mixed, uint64_t sources)
{
    uint64_t weights[1000];
    mixed->at = (uint64_t)1 << 40;
    mixed->orders = bench_new(bench, sources, sizeof *mixed->orders);
    for (uint64_t i = 0; i < sources; i++) {
        weights[i] = (uint64_t)(1e9 * pow(1e-3, (double)(i * 7 % sources) / (double)sources));
        permutation_init(&mixed->orders[i], order_key(KEY_WINDOWS, 1234, "data", 4, i), MIXED_WINDOWS);
    }
    bench_check(bench, mixture_new(&mixed->mixture, weights, sources, &bench->error));
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

static void mixtures_run(struct bench *bench, double seconds)
{
    static struct series draws[MIXED_SIZES], inverses[MIXED_SIZES];
    static struct mixed mixed[MIXED_SIZES];
    for (size_t i = 0; i < MIXED_SIZES; i++)
        mixed_open(bench, &mixed[i], mixed_sizes[i].sources);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 11), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < MIXED_SIZES; i++) {
            repeats_add(&repeats, &draws[i], mixed_repeat(&mixed[i], false, seconds));
            repeats_add(&repeats, &inverses[i], mixed_repeat(&mixed[i], true, seconds));
        }
    for (size_t i = 0; i < MIXED_SIZES; i++) {
        mixed_close(&mixed[i]);
        bench_result(bench, mixed_sizes[i].draw, "ns", &draws[i], NULL);
        bench_result(bench, mixed_sizes[i].inverse, "ns", &inverses[i], NULL);
    }
}

static int order_run(struct bench *bench)
{
    static struct series found[KINDS][SIZES];
    const double seconds = bench_seconds(bench, 0.02);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 11), REPEATS_WARM_FIRST);
    while (repeats_next(&repeats))
        for (size_t i = 0; i < SIZES; i++) {
            struct tokmap_order order;
            if (tokmap_order_init(&order, sizes[i].windows, 1234, "data", repeats.number)) {
                cli_say(bench->program, "the library refused an order of %s windows", sizes[i].label);
                return CLI_FAILED;
            }
            for (size_t kind = 0; kind < KINDS; kind++) {
                const double ns = burst_repeat(kinds[kind].body, &order, sizes[i].windows, kind == INIT ? 0 : seconds);
                repeats_add(&repeats, &found[kind][i], ns);
            }
        }
    for (size_t kind = 0; kind < KINDS; kind++)
        bench_result(bench, kinds[kind].metric, "ns", series_worst(found[kind], SIZES), NULL);
    for (size_t i = 0; i < SIZES; i++) {
        char metric[64];
        (void)snprintf(metric, sizeof metric, "draw_ns_n%s", sizes[i].label);
        bench_result(bench, metric, "ns", &found[DRAW][i], NULL);
    }
    mixtures_run(bench, seconds);
    return CLI_DONE;
}

const struct bench_case case_order = {
    "order",
    "draw to window, its inverse, and the set-up of an epoch, for 2 to 2^63 windows; mixtures of 8 and 1,000 sources",
    order_run};

/* ==== the case `plan` ==== */

/*
 * Plans: the command `tokmap plan` on documents of web-like lengths, as a process, and the rate at which a loader
 * delivers the rows of a plan, beside windows of the same dataset.
 *
 * The first dataset is sparse: only its index is read. A hundredth of --tokens is the number of its documents, whose
 * lengths are lognormal, as those of web pages are, with a median of 400 tokens and a mean of 700. The second one is
 * that of the case loader. A row of a plan is gathered from several places, and the ends of its pieces are no
 * multiples of a cache line; that is what the ratio costs.
 */

#define PLANNED_SEQ_LEN 8192

struct planning {
    struct series seconds, rate, peak; /* of the command: s, documents/s, MiB */
    struct series rates[2];            /* tokens/s of the loaders: of windows, of the rows of a plan */
};

/* ---- the command ---- */

static uint64_t web_length(uint64_t *state)
{
    const double u = ((double)(random_next(state) >> 12) + 0.5) / 0x1p52;
    const double v = (double)(random_next(state) >> 12) / 0x1p52;
    const double length = 400 * exp(1.06 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    return 1 + (uint64_t)length;
}

static void lengths_make(struct bench *bench, const char *prefix, uint64_t documents)
{
    struct shard_writer_options options = {
        .width = 2, .vocabulary = 50257, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .sync = false};
    struct shard_writer *writer = NULL;
    uint64_t state = 5;
    char count[32];
    bench_say(bench, "creating an index of %s documents in %s", cli_count(documents, count), bench->options.folder);
    bench_check(bench, shard_writer_open(&writer, prefix, &options, &bench->error));
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < documents && !status && !bench_stopped(); i++)
        status = shard_writer_add_zeros(writer, web_length(&state), &bench->error);
    if (!status && !bench_stopped())
        status = shard_writer_commit(writer, "{}", 2, NULL, &bench->error);
    else
        shard_writer_abort(writer); /* so that it leaves no partial files */
    bench_stop_check(bench);
    bench_check(bench, status);
}

/* Runs `tokmap plan`. Returns what its file says, and what it used unless the pointer is NULL. */
static struct plan_header plan_make(struct bench *bench, const char *dataset, const char *plan, uint64_t seq_len,
                                    struct child_usage *usage)
{
    char length[32];
    struct plan opened;
    const char *const arguments[] = {"plan", "--quiet", "--force", "--seq-len", length, "-o", plan, dataset, NULL};
    (void)snprintf(length, sizeof length, "%" PRIu64, seq_len);
    child_run_tokmap(bench, arguments, usage);
    bench_check(bench, plan_open(&opened, plan, &bench->error));
    const struct plan_header header = opened.header;
    plan_close(&opened);
    return header;
}

static double command_measure(struct bench *bench, struct planning *planning)
{
    char dataset[BENCH_PATH], plan[BENCH_PATH];
    struct plan_header header = {.seq_len = 1, .rows = 1};
    struct child_usage usage = {.seconds = 0};
    const uint64_t documents = max64(bench->options.tokens / 100, 1);
    made_shard(bench, "lengths", dataset);
    made_file(bench, "lengths.plan", plan);
    lengths_make(bench, dataset, documents);
    struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 3), REPEATS_ALL_COUNT);
    while (repeats_next(&repeats)) {
        header = plan_make(bench, dataset, plan, PLANNED_SEQ_LEN, &usage);
        series_add(&planning->seconds, usage.seconds);
        series_add(&planning->rate, (double)documents / usage.seconds);
        series_add(&planning->peak, usage.peak_mib);
    }
    made_file_remove(bench, plan);
    return 100 * (double)header.tokens / ((double)header.rows * (double)header.seq_len);
}

/* ---- the loader ---- */

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

static void loader_measure(struct bench *bench, struct planning *planning)
{
    char plan[BENCH_PATH];
    struct reader readers[2] = {{.loader = NULL}, {.loader = NULL}};
    const char *name = dataset_name(bench);
    made_file(bench, "data.plan", plan);
    (void)plan_make(bench, name, plan, bench->options.seq_len, NULL);
    struct tokmap_run *const runs[2] = {run_parse(bench, name, NULL), run_parse(bench, name, plan)};
    for (size_t i = 0; i < 2; i++) {
        const struct tokmap_loader_options options = reader_options(bench, 0, READER_BOTH);
        const struct tokmap_source_info source = run_get_data(bench, runs[i]).source;
        page_cache_warm(bench, source.dataset);
        reader_open(bench, &readers[i], runs[i], &options);
        (void)reader_first_pass(bench, &readers[i], source.windows);
    }
    readers_compare(bench, (struct reader *const[2]){&readers[0], &readers[1]},
                    repeats_begin(bench, bench_repeats(bench, 7), REPEATS_ALL_COUNT), bench_seconds(bench, 0.4),
                    planning->rates);
    for (size_t i = 0; i < 2; i++) {
        reader_close(&readers[i]);
        tokmap_run_close(runs[i]);
    }
}

static int plan_run(struct bench *bench)
{
    static struct planning planning;
    const struct series *windows = &planning.rates[0], *rows = &planning.rates[1];
    const double fill = command_measure(bench, &planning);
    loader_measure(bench, &planning);
    bench_result(bench, "seconds", "s", &planning.seconds, NULL);
    bench_result(bench, "documents_per_s", "documents/s", &planning.rate, NULL);
    bench_result(bench, "peak_rss_mib", "MiB", &planning.peak, NULL);
    bench_value(bench, "fill_percent", "%", fill, (double)NAN);
    bench_result(bench, "tokens_per_s", "tokens/s", rows, windows);
    bench->name = "loader";
    bench_derived(bench, "plan_ratio", "x", series_median(rows) / series_median(windows), rows);
    return CLI_DONE;
}

const struct bench_case case_plan = {
    "plan", "tokmap plan on web-like documents, and a loader of its rows beside windows", plan_run};
