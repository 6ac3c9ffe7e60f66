/* SPDX-License-Identifier: MIT */
/*
 * verdict.h - what the figures of the case `check` mean: is data loading the bottleneck, what binds, what to do.
 *
 * It is arithmetic over measured figures, without a machine, so that a test can go through all its answers.
 *
 * A rate alone does not decide, because the ring of a loader hides a storage that is too slow until the ring is empty,
 * which a short measurement may not reach. Waits alone do not decide either, for the same reason. So both are asked:
 *
 *     bottleneck   the loaders deliver less than the ranks need, or steps wait 5% of the time or more
 *     tight        they deliver less than twice of that, or steps wait 1% or more
 *     ok           otherwise
 *
 * Of the rates the smaller one counts, which is nearly always the cold one.
 */
#ifndef TOKMAP_BENCH_HARNESS_VERDICT_H
#define TOKMAP_BENCH_HARNESS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* From best to worst. VERDICT_NONE: the step time is unknown, so only the fastest step is reported. */
enum verdict { VERDICT_OK, VERDICT_TIGHT, VERDICT_BOTTLENECK, VERDICT_NONE };

/* Limits of the loaders: the storage; the processors, all of which they use; or the one producer thread and the one
 * consumer that each loader has, while processors are idle. */
enum verdict_binds { BINDS_NOTHING, BINDS_STORAGE, BINDS_PROCESSORS, BINDS_THREADS };

struct verdict_figures {
    uint64_t ranks;              /* loaders at once, at least 1 */
    double step_ms;              /* 0: unknown */
    double step_bytes;           /* bytes of tokens that these ranks need in each step, more than 0 */
    double cold, warm;           /* bytes of tokens per second of all loaders together; NAN: not measured */
    double wait_cold, wait_warm; /* share of the time (0 to 1) in which a step waits; NAN: not measured */
    double busy;                 /* share of the processors that the loaders use at the rate `warm`, 0 to 1 */
    double others;               /* share that other programs and the hypervisor use meanwhile, 0 to 1 */
    uint64_t processors;
    uint64_t dataset_bytes;  /* 0: it has no files */
    bool fits;               /* the dataset fits in the memory of this machine */
    const char *cold_reason; /* reason why `cold` is NAN: a sentence without its period, in lower case */
};

struct verdict_answer {
    enum verdict verdict;
    enum verdict_binds binds; /* BINDS_NOTHING if the verdict is ok or none */
    char sentence[1024];
};

void verdict_find(const struct verdict_figures *figures, struct verdict_answer *answer);

/* Return "ok", "tight", "bottleneck", or "none"; "nothing", "storage", "processors", or "threads". */
const char *verdict_name(enum verdict verdict);
const char *verdict_binds_name(enum verdict_binds binds);

#endif
