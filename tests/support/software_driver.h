/* SPDX-License-Identifier: MIT */
/*
 * software_driver.h - the emulated driver (cuda_software/) for a test program: its functions and its reports, found in
 * the shared object beside the program.
 */
#ifndef TESTS_SUPPORT_SOFTWARE_DRIVER_H
#define TESTS_SUPPORT_SOFTWARE_DRIVER_H

#include "support/cuda_software/cuda_software.h"

struct software_driver {
    char path[1024];
#define SOFTWARE_DRIVER_ENTRY(name, symbol, arguments) CUresult(*name) arguments;
    CUDA_ENTRIES(SOFTWARE_DRIVER_ENTRY)
#undef SOFTWARE_DRIVER_ENTRY
    CUresult (*cuGetProcAddress)(const char *name, void **entry, int version, uint64_t flags);
    CUresult (*cuGetProcAddress_v2)(const char *name, void **entry, int version, uint64_t flags, int *found);
    int (*configure)(const char *text);
    void (*counts)(struct cuda_software_counts *counts);
    uint64_t (*count)(const char *name);
    const char *(*violation)(unsigned i);
    void (*reset)(void);
    void (*hold)(int held);
    void (*hold_stream)(CUstream stream, int held);
};

/* Opens the driver, once. Ends the program on failure, because no test would mean anything. */
const struct software_driver *software_driver(void);
/* Fails the cmocka test if there are violations, and prints them. Forgets them. */
void software_driver_is_content(void);
/* Fails the cmocka test unless the message of a violation contains `words`. Forgets the violations. */
void software_driver_complains(const char *words);
/* Fails the cmocka test if anything in the driver has not been freed. */
void software_driver_is_empty(void);
/* The same, but the program itself retains primary contexts, so many times. */
void software_driver_is_empty_but(unsigned contexts);

#endif
