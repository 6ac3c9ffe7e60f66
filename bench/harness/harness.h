/*
 * harness.h - what the cases of tokmap-bench share: options, repeats and their spread, percentiles, results.
 *
 * How a case measures. What is compared is measured in turns (A B A B ..) in one run, because figures of one machine
 * move from minute to minute more than they differ from each other. Each turn is one value of a `series`; a result is
 * the median of its series, printed with the smallest, the largest and their number, beside the limit that bounds it
 * (the median of another series of the same run) and the ratio of the two. Percentiles come from exact samples, one for
 * each call, and are one value a turn.
 */
#ifndef TOKMAP_BENCH_HARNESS_HARNESS_H
#define TOKMAP_BENCH_HARNESS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokmap/tokmap.h"

#define BENCH_REPEATS_MAX 1000
#define BENCH_PATH 4096

enum bench_wait { BENCH_SPIN, BENCH_SLEEP };

struct bench_options {
    const char *folder; /* where datasets and texts are made */
    uint64_t tokens;    /* of the dataset that is made */
    uint64_t width;     /* its bytes a token */
    bool keep;          /* what was made stays */
    bool json;
    bool cold;        /* the tokens are dropped from the page cache first */
    uint64_t repeats; /* turns of each measurement; 0: the case's own */
    double seconds;   /* length of a turn; 0: the case's own */
    uint64_t seq_len, rows;
    uint64_t threads;      /* of pack and verify */
    double step_ms;        /* train */
    uint64_t batch_tokens; /* train */
    int wait;              /* train: enum bench_wait */
    uint64_t device;       /* number of the GPU to measure on */
    bool device_given;     /* loader, train: on a GPU at all */
    uint64_t batches;      /* race */
    uint64_t copy_bytes;   /* h2d: the largest copy */
    uint64_t text_bytes;   /* pack */
    const char *tokenizer, *pattern, *special_tokens; /* tokenize: as the commands take them */
    const char *against, *venv, *peers;               /* tokenize: other tokenizers */
    bool documents;        /* tokenize: documents alone, no whole text */
    const char *child;     /* what a copy of this program measures for its parent; NULL in the parent */
    const char *dataset;   /* as given, or NULL; tokenize: a text */
};

struct bench {
    const char *program; /* "tokmap-bench loader": begins messages */
    const char *name;    /* of the case: "case" of its results */
    struct bench_options options;
    char self[BENCH_PATH]; /* path of this program */
    struct made *made;     /* files to remove at the end */
    struct report *report;
};

struct bench_case {
    const char *name;
    const char *summary;
    int (*run)(struct bench *bench); /* CLI_DONE or CLI_FAILED, after a message */
};

extern const struct bench_case case_limits, case_order, case_slice, case_loader, case_open, case_train, case_pack,
    case_verify, case_tokenize, case_h2d, case_expand, case_race;

/* ---- series: one value a turn ---- */

struct series {
    double values[BENCH_REPEATS_MAX];
    size_t count;
};

void series_add(struct series *series, double value); /* beyond BENCH_REPEATS_MAX values are dropped */
double series_median(const struct series *series);    /* NAN if empty, as are the next */
double series_smallest(const struct series *series);
double series_largest(const struct series *series);

/* ---- samples: one value a call, in ns ---- */

struct samples {
    uint32_t *ns; /* 4.29 s and more are kept as UINT32_MAX */
    size_t count, capacity;
    bool sorted;
};

/* False without memory. */
bool samples_new(struct samples *samples, size_t capacity);
void samples_free(struct samples *samples);
void samples_clear(struct samples *samples);
static inline void samples_add(struct samples *samples, uint64_t ns)
{
    if (samples->count < samples->capacity)
        samples->ns[samples->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}
/* The smallest sample that at least `share` (0 .. 1) of all are not above; 0 without samples. */
double samples_at(struct samples *samples, double share);
double samples_largest(struct samples *samples);
uint64_t samples_above(const struct samples *samples, uint64_t ns);

/* p50, p99, p99.9 and the largest of each turn. */
struct spread {
    struct series p50, p99, p999, largest;
};
void spread_add(struct spread *spread, struct samples *samples, double unit_ns);

/* ---- results ---- */

/* One result: the median of `values`, and of `limit` if that is not NULL. In JSON it is printed at once. */
void bench_result(struct bench *bench, const char *metric, const char *unit, const struct series *values,
                  const struct series *limit);
/* A result that is one number. limit: NAN if none. */
void bench_value(struct bench *bench, const char *metric, const char *unit, double value, double limit);
/* A result that was made from several series; `turns` tells its spread. */
void bench_derived(struct bench *bench, const char *metric, const char *unit, double value, const struct series *turns);
/* PREFIX_p50_us and so on; a prefix that ends in "=" names the p50 alone "PREFIX_us". */
void bench_spread(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                  const struct spread *limit);
/* A line of talk on stderr, unless --json: "bench: making 2.00 GB ..". */
void bench_talk(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct report *report_new(void);
void report_print(struct report *report); /* the table */
void report_free(struct report *report);

/* ---- helpers ---- */

uint64_t bench_repeats(const struct bench *bench, uint64_t usual);
double bench_seconds(const struct bench *bench, double usual);
/* The user asked to stop. Every loop of turns asks; the case then returns CLI_FAILED without a message. */
bool bench_stopped(void);
/* Prints the error as this program's; returns CLI_FAILED. */
int bench_failed(struct bench *bench, const struct tokmap_error *error);
/* The same for a failed system call. */
int bench_failed_system(struct bench *bench, int system, const char *path, const char *what);
int bench_no_memory(struct bench *bench);

/* A generator of numbers for places and bytes that should not repeat; any start value. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number below `limit`. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)random_next(state) * limit >> 64);
}

/* The value is needed, as far as the compiler knows. */
static inline void keep_value(uint64_t value)
{
    __asm__ volatile("" : : "r"(value) : "memory");
}

#endif
