/* SPDX-License-Identifier: MIT */
/*
 * harness.h - what the cases of tokmap-bench share: options, repeats, results, messages.
 *
 * How a case measures. Figures of one machine drift from minute to minute by more than the things that a case compares
 * differ from each other. A case therefore repeats each measurement and interleaves the repeats of everything that it
 * compares (A B A B ...) within one run. Each repeat adds one value to a `series`. A result is the median of its
 * series, printed with the smallest value, the largest value and their number, beside the limit that bounds it (the
 * median of another series of the same run) and the ratio of the two. Percentiles come from exact samples, one for each
 * call, and each repeat contributes one value of each percentile.
 *
 * How a case fails. A failure ends the program: bench_failed() and its siblings print the message and what was measured
 * until then, remove the files that were created, and exit with CLI_FAILED. So does bench_stop_check() if the user
 * asked to stop. A function of the harness or of a case therefore has done its work when it returns, and its caller
 * needs no check:
 *
 *     bench_check(bench, tokmap_run_open(&run, path, NULL, &bench->error));
 *     repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
 *
 * Everything here is for the command's first thread.
 */
#ifndef TOKMAP_BENCH_HARNESS_HARNESS_H
#define TOKMAP_BENCH_HARNESS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"
#include "common/bytes_buffer.h"
#include "series.h"
#include "tokmap/tokmap.h"

#define BENCH_PATH 4096 /* bytes of a path, including the zero */

enum bench_wait { BENCH_SPIN, BENCH_SLEEP };
enum bench_require { BENCH_REQUIRE_TIGHT, BENCH_REQUIRE_OK, BENCH_REQUIRE_HELD };

/* The command line. The name of a case before a field says that only this case uses it. */
struct bench_options {
    const char *folder; /* folder in which datasets and texts are created */
    uint64_t tokens;    /* size of the dataset that is created */
    uint64_t width;     /* bytes per token in that dataset: 2 or 4 */
    bool keep;          /* do not remove created files */
    bool json;
    bool cold;          /* loader, train: drop the tokens from the page cache first */
    const char *values; /* loader: the bytes of the values that it makes, or the name of values; NULL: none */
    uint64_t repeats;   /* 0: each case has its own default */
    double seconds;     /* length of one repeat; 0: each case has its own default */
    bool quick;         /* fewer and shorter repeats, and smaller data */
    bool tokens_given;
    const char *text;   /* all: the text of tokenize and pack */
    const char *before; /* pack: another command tokmap */
    /* Data that is read. With a run file, operand_resolve() takes these values from it. */
    uint64_t seq_len;
    uint64_t batch; /* rows of a global batch; 0 until operand_resolve(), unless --batch is given */
    uint64_t rows;  /* rows of one call of next() */
    uint64_t seed, lookahead;
    int order;             /* enum tokmap_order_kind */
    uint64_t ranks, world; /* loaders on this machine, and ranks of the run; cases with one loader measure rank 0 */
    bool seq_len_given, batch_given, rows_given, ranks_given, world_given;
    uint64_t threads;                                 /* pack, verify */
    double step_ms;                                   /* train, check */
    bool step_ms_given;                               /* check, gpu */
    uint64_t batch_tokens;                            /* train */
    bool batch_tokens_given;                          /* train */
    int wait;                                         /* train, check: enum bench_wait */
    bool wait_given;                                  /* check */
    int require;                                      /* check, gpu: enum bench_require */
    bool require_given;                               /* check, gpu */
    uint64_t device;                                  /* number of the GPU */
    bool device_given;                                /* loader, train: deliver to a GPU */
    uint64_t batches;                                 /* race */
    uint64_t copy_bytes;                              /* h2d, expand: the largest copy */
    uint64_t text_bytes;                              /* pack */
    bool text_bytes_given;                            /* pack */
    bool memory;                                      /* pack: measure memory, not time */
    uint64_t tiny_documents;                          /* pack, for memory */
    const char *tokenizer, *pattern, *special_tokens; /* tokenize: as in the command tokmap */
    const char *against;                              /* tokenize: other tokenizers */
    const char *venv;                                 /* tokenize, compare: the Python environment of other systems */
    const char *peers_folder;                         /* tokenize, compare: where the scripts are that run them */
    const char *peers;                                /* compare: the systems, with commas between them */
    const char *field;                                /* compare pack: the field of the text */
    const char *table;                                /* compare: what the command line names, or NULL */
    bool offline;                                     /* compare: install nothing */
    double patience;                                  /* compare: seconds that a script may be silent */
    bool documents;       /* tokenize: measure documents only, not the whole text in one call */
    bool worst;           /* tokenize: measure texts that are slow to encode, beside the text that is named */
    const char *faults;   /* faults: the faults, with commas between them */
    double stall;         /* faults: seconds that a stalled read takes */
    uint64_t gpus;        /* cost */
    uint64_t nodes;       /* cost: machines that train */
    uint64_t cache;       /* cost: bytes of the cache of each node; 0: no cache is simulated */
    uint64_t block;       /* cost: bytes of a request to object storage */
    const char *figures;  /* cost: rows of compare that were printed with --json; NULL: bench/results */
    const char *child;    /* task of a copy of this program for its parent; NULL in the parent */
    const char *plot;     /* folder for pictures of the results, or NULL */
    const char *save;     /* folder for the results, or NULL */
    const char *dataset;  /* the operand, or the dataset of the run file that is the operand; NULL: there is no operand.
                             For tokenize it is a text file */
    const char *run_file; /* the operand if it is a run file, else NULL */
};

struct bench {
    const char *program; /* "tokmap-bench loader"; begins each message */
    const char *name;    /* the value of "case" in the results; a case may set another one */
    struct bench_options options;
    char self[BENCH_PATH];         /* path of this program */
    char made_dataset[BENCH_PATH]; /* the dataset that dataset_name() created, or "" */
    struct made_files *made;       /* files to remove at the end */
    struct report *report;         /* the table; NULL with --json and in child processes */
    char sentence[1024];           /* the answer of a case that has one, printed below the table; "" if it has none */
    char command[2048], machine[512]; /* in each line of JSON: the command line, and the machine */
    char date[32];                    /* when the case began */
    struct bytes_buffer lines;        /* the lines of JSON so far, with --plot and --save */
    FILE *line;                       /* a line that has begun: its stream, */
    char *line_text;                  /* and its bytes once the stream is closed */
    size_t line_bytes;
    int argc; /* the command line, for copies of this program */
    char **argv;
    uint64_t rank;             /* in a copy of this program: the rank whose loader reader_open() opens */
    uint64_t ring_bytes;       /* the ring of that loader; 0: the default */
    struct tokmap_error error; /* of the call that bench_check() looks at */
    /* Prints what the case has measured and removes what it has created. Returns the exit status. */
    int (*finish)(struct bench *bench, int result);
};

struct bench_case {
    const char *name;
    const char *summary;             /* for --list */
    int (*run)(struct bench *bench); /* CLI_DONE, or CLI_FAILED or CLI_MISUSED after a message */
    bool reads_files;                /* and so cannot take a synthetic dataset */
    bool needs_gpu;
};

/* ---- repeats ---- */

/* The repeats of one measurement:
 *
 *     struct repeats repeats = repeats_begin(bench, bench_repeats(bench, 7), REPEATS_WARM_FIRST);
 *     while (repeats_next(&repeats)) {
 *         repeats_add(&repeats, &series, measure(bench));
 */
struct repeats {
    struct bench *bench;
    uint64_t number; /* of the current repeat, from 0 */
    bool counts;     /* false in the repeat that only warms caches */
    uint64_t begun, count;
    bool warm_first;
};

enum repeats_kind {
    REPEATS_ALL_COUNT,
    REPEATS_WARM_FIRST /* one additional repeat comes first, whose values are not used */
};

struct repeats repeats_begin(struct bench *bench, uint64_t count, enum repeats_kind kind);

/* Starts the next repeat. Returns false after the last one. Does what bench_stop_check() does. */
bool repeats_next(struct repeats *repeats);
/* Adds a value of the current repeat, if it counts. */
static inline void repeats_add(const struct repeats *repeats, struct series *series, double value)
{
    if (repeats->counts)
        series_add(series, value);
}

/* Return what the user asked for with --repeats and --seconds, or the case's own default. */
uint64_t bench_repeats(const struct bench *bench, uint64_t usual);
double bench_seconds(const struct bench *bench, double usual);

/* ---- results ---- */

/* Writes one result: the median of `values` beside the median of `limit`, which may be NULL. Writes nothing if `values`
 * is empty. With --json the line is printed at once; otherwise it becomes a row of the table. Whether more or less of
 * it is better follows from the unit, or from the metric where the unit does not decide: a new metric whose unit does
 * not decide belongs in the list in harness.c. */
void bench_result(struct bench *bench, const char *metric, const char *unit, const struct series *values,
                  const struct series *limit);
/* Writes a result that is a single number. limit: NAN if it has no limit. */
void bench_value(struct bench *bench, const char *metric, const char *unit, double value, double limit);
/* Writes a value that was computed from several series; min, max and n come from `repeats`. Writes nothing if that
 * series is empty. */
void bench_derived(struct bench *bench, const char *metric, const char *unit, double value,
                   const struct series *repeats);
/* Writes four results: PREFIX_p50_UNIT, PREFIX_p99_UNIT, PREFIX_p999_UNIT, PREFIX_max_UNIT. If the prefix ends in "=",
 * the first one is named PREFIX_UNIT (without the "="). limit may be NULL. */
void bench_spread(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                  const struct spread *limit);

/* Does the same without a ratio. The limit is what the machine does to such a call if nothing is done in it, so it is
 * close to 0, and a ratio of the two would look like a disaster where both are too short to matter. */
void bench_spread_alone(struct bench *bench, const char *prefix, const char *unit, const struct spread *spread,
                        const struct spread *alone);

/* bench_value() without a ratio, for the same reason. */
void bench_value_alone(struct bench *bench, const char *metric, const char *unit, double value, double alone);

/* A figure that has a bar to reach. Whether more or less is better is found as for a result. */
struct bench_figure {
    const char *metric, *unit;
    double value;             /* NAN: it was not measured */
    double smallest, largest; /* of `count` repeats */
    size_t count;
    double bar; /* NAN: none */
};

enum bench_held { BENCH_HELD, BENCH_SHORT, BENCH_NOT_MEASURED, BENCH_NO_BAR };
/* Writes a figure with its bar as the limit. The table gets one more column, in which it says "held", "short", "not
 * measured", or nothing if there is no bar. With --json the member `verdict` says that, null without a bar. All rows of
 * a case that writes figures must be figures. */
enum bench_held bench_figure(struct bench *bench, const struct bench_figure *figure);

/* With --json prints a line with a text instead of a value. */
void bench_text(struct bench *bench, const char *metric, const char *text);

/* Write a case's own lines of JSON. bench_json_wanted() returns whether lines are printed (--json) or kept (--plot,
 * --save). bench_json_begin() opens an object with the member "case"; bench_json_end() adds what every line has
 * (command, machine, date), closes the object, and prints or keeps the line. */
bool bench_json_wanted(const struct bench *bench);
void bench_json_begin(struct bench *bench, struct cli_json *json);
void bench_json_end(struct bench *bench, struct cli_json *json);

/* Make the table of results. report_new() returns NULL without memory; the others accept NULL. */
struct report *report_new(void);
void report_print(struct report *report);
void report_free(struct report *report);

/* ---- messages and failures ---- */

/* Sets bench->sentence to a verdict and, with --json, prints a line for it: the result `verdict`, whose value is the
 * number of the verdict (0 is best), with the members verdict, binds, and sentence in addition. */
void bench_verdict(struct bench *bench, int number, const char *verdict, const char *binds, const char *sentence);
/* Sets bench->sentence, the answer of the case. */
void bench_answer(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints "PROGRAM: ..." on stderr; nothing with --json or in a child process. */
void bench_say(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns whether the user asked to stop (SIGINT, SIGTERM, SIGHUP). Long loops ask, and end early. */
bool bench_stopped(void);

/* Ends the program without a message if the user asked to stop. Every loop of repeats does this. */
void bench_stop_check(struct bench *bench);

/* Ends the program with the exit status that follows from `result` (CLI_DONE, CLI_FAILED, or CLI_MISUSED). */
void bench_end(struct bench *bench, int result) __attribute__((noreturn));

/* Print a message and end the program with CLI_FAILED: an error of the library, a failed system call (an errno; what: a
 * sentence; path may be NULL), lack of memory. */
void bench_failed(struct bench *bench, const struct tokmap_error *error) __attribute__((noreturn));
void bench_failed_system(struct bench *bench, int system, const char *path, const char *what) __attribute__((noreturn));
void bench_no_memory(struct bench *bench) __attribute__((noreturn));

/* Do the same only if the status is not OK, for a call that got &bench->error; or if the errno is not 0. */
void bench_check(struct bench *bench, enum tokmap_status status);
void bench_check_system(struct bench *bench, int system, const char *path, const char *what);

/* Allocates `count` elements of `size` bytes, which are all zeros; ends the program without memory. */
void *bench_new(struct bench *bench, uint64_t count, size_t size);

/* Does the same for samples, as samples_new() does it. */
void bench_samples_new(struct bench *bench, struct samples *samples, size_t capacity);

/* Appends to a text, which then has a zero after its bytes that is not counted. Ends the program without memory. */
void bench_append(struct bench *bench, struct bytes_buffer *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints a message and returns CLI_MISUSED, for a case to return. */
int bench_misused(struct bench *bench, const char *message);
/* ---- small helpers ---- */

/* Returns the next pseudo-random number. Any start value of *state is good. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a pseudo-random number below `limit`, or 0 if limit is 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)random_next(state) * limit >> 64);
}

/* Reads `count` decimal numbers from a text, in which anything but digits separates them. Returns the text after the
 * last one, or NULL if there are fewer, or if one of them is not below 2^64. */
const char *numbers_read(const char *text, uint64_t *numbers, size_t count);

/* Makes the compiler believe that the value is used, so that it does not remove the computation. */
static inline void keep_value(uint64_t value)
{
    __asm__ volatile("" : : "r"(value) : "memory");
}

#endif
