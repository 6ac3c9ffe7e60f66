/* SPDX-License-Identifier: MIT */
/*
 * device_case.h - compares a loader on a GPU with one on the host, batch by batch, in every byte of every output. The
 * GPU is the emulated driver, or a real GPU if TOKMAP_TEST_GPU is set in the environment.
 */
#ifndef TESTS_SUPPORT_DEVICE_CASE_H
#define TESTS_SUPPORT_DEVICE_CASE_H

#include <stdbool.h>

#include "made.h"
#include "tokmap/cuda.h"

/* Call it first in a program. Returns false, with the reason in `why`, if a real GPU is requested and cannot be used.
 * */
bool device_begin(char why[800]);
/* Returns whether the driver is a real one. */
bool device_is_real(void);
/* Configures the emulated driver with words of TOKMAP_CUDA_SOFTWARE. Does nothing on a real GPU. */
void device_configure(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails the cmocka test if the emulated driver has found a violation, if something in it was not freed, or if a context
 * was made: the program keeps that of device 0 until its end. */
void device_is_clean(void);
/* The current test makes so many contexts on other devices. */
void device_makes_contexts(unsigned count);

struct device_case {
    const struct tokmap_run *run;
    struct tokmap_loader_options options; /* of both loaders; .device is for the one on the GPU */
    enum tokmap_id_type type;
    uint64_t limit;   /* most calls of next() */
    unsigned ahead;   /* batches that are enqueued before the first of them is compared, 1 to 16 */
    unsigned streams; /* streams that are used alternately, at most 4; 0: the default stream */
    bool one_output;  /* every batch goes to the same outputs and is copied from there on the device */
    uint64_t slots;   /* of the ring; 0: the default */
    uint64_t seed;
    bool host_expands; /* the GPU must not use its kernel */
    unsigned rewinds;  /* how often both loaders are rewound: at random moments, and at the end of the run */
    /* results */
    uint64_t batches;
    struct tokmap_cursor cursor; /* after the last batch */
    struct tokmap_stats stats;
    char failure[900]; /* "" on success */
};

/* Runs a case until the run ends or `limit` is reached, and reports what it finds in test->failure. Any thread. */
void device_case_run(struct device_case *test);
/* Gives a dataset the values that some of them deliver: most of its tokens have DEVICE_CASE_VALUES bytes. */
#define DEVICE_CASE_VALUES 3
void device_case_give_values(const char *dataset);
/* Makes a pseudo-random case over one of two datasets, `narrow` (16-bit tokens) and `wide` (32-bit), and writes the
 * text of its run. */
void device_case_random(struct device_case *test, uint64_t seed, const char *narrow, const char *wide, char text[400]);
/* Makes such a case for another run, of which the loaders deliver whole rows. */
void device_case_whole(struct device_case *test, uint64_t seed);

#endif
