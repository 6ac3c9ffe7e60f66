/*
 * software_driver.h - the driver in software (cuda_software/) for a test program: its entry points and what it tells,
 * found in the shared object beside the program.
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
    const char *(*violation)(unsigned i);
    void (*reset)(void);
    void (*hold)(int held);
    void (*hold_stream)(CUstream stream, int held);
};

/* Opens it once. Ends the program where it cannot: then no test means anything. */
const struct software_driver *software_driver(void);
/* Fails the cmocka test, with their sentences, if there are violations; then forgets them. */
void software_driver_is_content(void);
/* Fails the cmocka test unless there is a violation whose sentence has `words` in it; then forgets them. */
void software_driver_complains(const char *words);
/* Fails the cmocka test if anything is alive. */
void software_driver_is_empty(void);

#endif
