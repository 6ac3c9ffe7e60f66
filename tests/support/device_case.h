/*
 * device_case.h - a loader that delivers to a GPU beside one that delivers to the host, compared batch by batch in
 * every byte of every output. The GPU is the driver in software, or with TOKMAP_TEST_GPU in the environment a real one.
 */
#ifndef TESTS_SUPPORT_DEVICE_CASE_H
#define TESTS_SUPPORT_DEVICE_CASE_H

#include <stdbool.h>

#include "made.h"
#include "tokmap/cuda.h"

/* Before anything else in a program. False, with the reason in `why`, where a real GPU is asked for and there is
 * none. */
bool device_begin(char why[800]);
/* True where the driver is a real one. */
bool device_is_real(void);
/* Words of TOKMAP_CUDA_SOFTWARE; nothing on a real GPU. */
void device_configure(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails the cmocka test if the driver in software has found a fault, or holds anything. */
void device_is_clean(void);

struct device_case {
    const struct tokmap_run *run;
    struct tokmap_loader_options options; /* of both; .device is the device's */
    enum tokmap_type type;
    uint64_t limit;   /* calls of next() at most */
    unsigned ahead;   /* batches that are enqueued before the first of them is looked at, at least 1 */
    unsigned streams; /* that take turns; 0: the default stream */
    bool one_output;  /* every batch goes to the same outputs, and is taken away on the device */
    uint64_t slots;   /* of the ring; 0: as many as it takes by itself */
    uint64_t seed;
    bool host_expands; /* the kernel is expected not to be used */
    /* out */
    uint64_t batches;
    struct tokmap_cursor cursor; /* after the last one */
    struct tokmap_stats stats;
    char failure[900]; /* "" if all was right */
};

/* Runs it to the run's end or `limit`. Any thread; says what it finds in .failure. */
void device_case_run(struct device_case *test);
/* A pseudo-random case over one of two datasets, which lie in `folder`, and the text of its run. */
void device_case_random(struct device_case *test, uint64_t seed, const char *narrow, const char *wide, char text[400]);

#endif
