/* SPDX-License-Identifier: MIT */
#include "software_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "platform/process.h"

static void find(void *library, const char *name, void *entry)
{
    void *symbol = dlsym(library, name);
    if (!symbol) {
        (void)fprintf(stderr, "software_driver.c: the driver does not have the function %s\n", name);
        abort();
    }
    memcpy(entry, &symbol, sizeof symbol);
}

const struct software_driver *software_driver(void)
{
    static struct software_driver driver;
    char path[900];
    if (driver.counts)
        return &driver;
    if (os_program_path(path, sizeof path))
        abort();
    *strrchr(path, '/') = 0;
    (void)snprintf(driver.path, sizeof driver.path, "%s/cuda_software/libcuda.so.1", path);
    void *library = dlopen(driver.path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)fprintf(stderr, "software_driver.c: %s\n", dlerror());
        abort();
    }
#define FIND_ENTRY(name, symbol, arguments) find(library, #symbol, (void *)&driver.name);
    CUDA_ENTRIES(FIND_ENTRY)
#undef FIND_ENTRY
    find(library, "cuGetProcAddress", (void *)&driver.cuGetProcAddress);
    find(library, "cuGetProcAddress_v2", (void *)&driver.cuGetProcAddress_v2);
    find(library, "cuda_software_configure", (void *)&driver.configure);
    find(library, "cuda_software_count", (void *)&driver.count);
    find(library, "cuda_software_violation", (void *)&driver.violation);
    find(library, "cuda_software_reset", (void *)&driver.reset);
    find(library, "cuda_software_hold", (void *)&driver.hold);
    find(library, "cuda_software_hold_stream", (void *)&driver.hold_stream);
    find(library, "cuda_software_counts", (void *)&driver.counts);
    return &driver;
}

void software_driver_is_content(void)
{
    const struct software_driver *driver = software_driver();
    struct cuda_software_counts counts;
    driver->counts(&counts);
    for (unsigned i = 0; driver->violation(i); i++)
        print_error("violation: %s\n", driver->violation(i));
    driver->reset();
    assert_int_equal(counts.violations, 0);
}

void software_driver_complains(const char *words)
{
    const struct software_driver *driver = software_driver();
    bool found = false;
    for (unsigned i = 0; driver->violation(i); i++)
        found |= strstr(driver->violation(i), words) != NULL;
    if (!found)
        fail_msg("no violation contains \"%s\"; the first one is: %s", words,
                 driver->violation(0) ? driver->violation(0) : "none");
    driver->reset();
}

void software_driver_is_empty(void)
{
    software_driver_is_empty_but(0);
}

void software_driver_is_empty_but(unsigned contexts)
{
    struct cuda_software_counts now;
    software_driver()->counts(&now);
    if (now.streams)
        fail_msg("still alive: %llu streams", (unsigned long long)now.streams);
    if (now.events)
        fail_msg("still alive: %llu events", (unsigned long long)now.events);
    if (now.modules)
        fail_msg("still alive: %llu modules", (unsigned long long)now.modules);
    if (now.device_allocations)
        fail_msg("still alive: %llu device_allocations", (unsigned long long)now.device_allocations);
    if (now.device_bytes)
        fail_msg("still alive: %llu device_bytes", (unsigned long long)now.device_bytes);
    if (now.host_allocations)
        fail_msg("still alive: %llu host_allocations", (unsigned long long)now.host_allocations);
    if (now.host_registrations)
        fail_msg("still alive: %llu host_registrations", (unsigned long long)now.host_registrations);
    if (now.host_bytes)
        fail_msg("still alive: %llu host_bytes", (unsigned long long)now.host_bytes);
    if (now.contexts != contexts)
        fail_msg("still alive: %llu contexts, of %u", (unsigned long long)now.contexts, contexts);
}
