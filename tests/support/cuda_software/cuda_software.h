/* SPDX-License-Identifier: MIT */
/*
 * cuda_software.h - the controls and reports of the emulated driver, which is libcuda.so.1 in this folder. The shared
 * object exports these functions in addition to the functions of the driver (driver_types.h); tests find them by dlsym.
 *
 * The emulated driver has the semantics of the real one, but not its speed. A stream is a thread that works through its
 * queue late, with random pauses before each operation and inside copies, and each stream has its own pace. The host
 * cannot access device memory: a device pointer that is used as a host pointer ends the program at once. Faults of the
 * caller are counted as violations, each with a message:
 *   - two accesses to the same bytes, one of them a write, that no stream, event, or synchronization orders. This
 *     follows from the calls alone (vector clocks) and does not depend on the pauses;
 *   - a source of a copy in host memory that has changed between the call and the copy;
 *   - a read of device memory that nothing has written, an access past the end of an allocation or after it was freed;
 *   - freeing or unregistering memory while work that uses it is under way;
 *   - an invalid handle, or one that was destroyed;
 *   - at the end of the program, everything that was not freed.
 *
 * The environment variable TOKMAP_CUDA_SOFTWARE contains words separated by commas, all of them optional:
 *   delay=US       longest pause in microseconds; default 0: no pauses
 *   seed=N         seed of the random pauses
 *   lazy           a stream begins an operation only once something waits for it: the host, or a stream that is
 *                  itself waited for. So everything is as late as the calls allow, and work that no call waits for has
 *                  not happened, whatever the pauses are. A program that only polls polls forever
 *   reuse          an allocation of device memory gets the address of a freed one of its size, as on a real driver.
 *                  Without this word a use after the end is found
 *   devices=N      number of devices; default 1; 0: as a driver without a device
 *   memory=BYTES   memory of each device
 *   pinned=BYTES   host memory that can be registered or allocated in total
 *   version=N      the result of cuDriverGetVersion; default 12040. cuGetProcAddress does not find functions that are
 *                  newer. Before 12020 a kernel is loaded with its module, from then on at its first launch or by
 *                  cuFuncLoad. Variables of a real driver: CUDA_MODULE_LOADING, EAGER or LAZY, changes that; with
 *                  CUDA_FORCE_PTX_JIT=1 it compiles PTX and refuses machine code, with CUDA_DISABLE_PTX_JIT=1 it
 *                  compiles nothing
 *   capability=N   compute capability, 10 * major + minor; default 90
 *   numa=N         NUMA node of the devices; -1: unknown; default 0
 *   registers=N    of a thread of each kernel, for the occupancy; default 48
 *   pageable       the device can access memory that is not pinned; host_tables: by the page tables of the host
 *   stub           every call reports that this is a stub library
 *   fail=NAME:N[:CODE]   the Nth call of a function, counted from 1 since the configuration was read, returns CODE
 *                        (default CUDA_ERROR_UNKNOWN) and does nothing; N+ means every call from the Nth on. At most 8
 *   late=NAME:N[:CODE]   the Nth kernel launch or copy is accepted and fails when the stream reaches it. From then on
 *                        every call on the device returns CODE (default CUDA_ERROR_ILLEGAL_ADDRESS)
 *   report=PATH    at the end of the program, the counts that are not 0 are appended to that file, one "NAME COUNT" per
 *                  line: those of cuda_software_count(). The path has no comma
 *   missing=NAME   cuGetProcAddress does not find that function
 *   lenient        violations and leaks are printed at the end of the program, but do not change its exit status, which
 *                  they otherwise change to 97
 *   quiet          they are not printed and do not change the exit status
 */
#ifndef TESTS_CUDA_SOFTWARE_CUDA_SOFTWARE_H
#define TESTS_CUDA_SOFTWARE_CUDA_SOFTWARE_H

#include "driver_types.h"

/* What takes long on a real driver, or makes the host wait, since the start of the program or the last
 * cuda_software_reset():
 *   contexts_made        primary contexts that a retain had to make: 0.1 to 0.4 s each
 *   modules_loaded       by any of the calls that load a module
 *   modules_compiled     of these, from PTX: 0.1 s and more with a cold cache
 *   functions_loaded     kernels that were brought onto the device
 *   late_loads           of these, at the kernel's first launch, which then waits for the whole device
 *   events_created, streams_created
 *   device_allocations_made, device_frees    each free waits for the whole device
 *   host_registrations_made, host_allocations_made
 *   synchronizations     calls that wait on the host for a stream, an event, or the device, and frees */
#define CUDA_SOFTWARE_COSTS(XX)                                                                                        \
    XX(contexts_made)                                                                                                  \
    XX(modules_loaded)                                                                                                 \
    XX(modules_compiled)                                                                                               \
    XX(functions_loaded)                                                                                               \
    XX(late_loads)                                                                                                     \
    XX(streams_created)                                                                                                \
    XX(events_created)                                                                                                 \
    XX(device_allocations_made)                                                                                        \
    XX(device_frees)                                                                                                   \
    XX(host_registrations_made)                                                                                        \
    XX(host_allocations_made)                                                                                          \
    XX(synchronizations)

struct cuda_software_counts {
    /* objects that exist now */
    uint64_t contexts; /* uses of primary contexts: each retain counts */
    uint64_t streams;  /* created by calls */
    uint64_t events;
    uint64_t blocking_events; /* of them, those with CU_EVENT_BLOCKING_SYNC: each record may interrupt the host */
    uint64_t modules;
    uint64_t device_allocations, device_bytes;
    uint64_t host_allocations, host_registrations, host_bytes;
    /* events since the start of the program or the last cuda_software_reset() */
    uint64_t calls[CUDA_ENTRY_COUNT];
    uint64_t launches, copies, copied_bytes; /* that streams have executed */
    uint64_t pageable_copies;                /* asynchronous copies from or to memory that is not pinned */
    uint64_t violations;
#define CUDA_SOFTWARE_COST(name) uint64_t name;
    CUDA_SOFTWARE_COSTS(CUDA_SOFTWARE_COST)
#undef CUDA_SOFTWARE_COST
};

/* Replaces the configuration by one with these words; everything that they do not name gets its default. Existing
 * objects stay. Returns 0 if a word is not valid, else 1. */
CUDA_SOFTWARE_API int cuda_software_configure(const char *text);
CUDA_SOFTWARE_API void cuda_software_counts(struct cuda_software_counts *counts);
/* Returns one count: of one of the costs, by its name; of the calls of one driver function, as in "cuMemFree"; of the
 * calls of all functions, as "calls"; of "launches", "copies", "violations", or "blocking_events" (that exist now).
 * UINT64_MAX: there is no such count. */
CUDA_SOFTWARE_API uint64_t cuda_software_count(const char *name);
/* Returns the message of violation i, counted from 0. NULL: no violation has this number, or it was not kept (the
 * first 32 are). Valid until cuda_software_reset(). */
CUDA_SOFTWARE_API const char *cuda_software_violation(unsigned i);
/* Sets the counts of events to 0 and forgets the violations. */
CUDA_SOFTWARE_API void cuda_software_reset(void);
/* While held is not 0, no stream begins an operation. Calls do not nest. */
CUDA_SOFTWARE_API void cuda_software_hold(int held);
/* The same for one stream. */
CUDA_SOFTWARE_API void cuda_software_hold_stream(CUstream stream, int held);

#endif
