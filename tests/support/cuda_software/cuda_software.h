/*
 * cuda_software.h - what a test can ask of, and tell, the emulated driver (libcuda.so.1 of this folder), beside the
 * driver's own entry points (driver_types.h). The functions are exported by the shared object and found by dlsym.
 *
 * The emulated driver has the semantics of the real one and none of its speed. A stream is a thread that works
 * through its queue late: with random pauses before each operation and inside copies, each stream at a pace of its own.
 * Device memory lies where the host cannot read it; a pointer of one kind used as the other ends the program at once.
 * What it holds against its caller is counted as a violation, with a sentence:
 *   - two accesses to the same bytes, one of them a write, that no stream, event, or synchronization orders. This
 *     follows from the calls alone (vector clocks) and does not depend on the pauses;
 *   - a copy's source in host memory that has changed between the call and the copy;
 *   - a read of device memory that nothing has written, an access past an allocation's end or after it was freed;
 *   - memory freed or unregistered while work that uses it is still under way;
 *   - a handle that is no handle, or was destroyed;
 *   - at the program's end, whatever is still alive.
 *
 * TOKMAP_CUDA_SOFTWARE holds words with commas between them, all optional:
 *   delay=US       longest pause in microseconds; 0 (the default): none
 *   seed=N         of the pauses
 *   lazy           a stream begins an operation only once something waits for it: the host, or a stream that is
 *                  itself waited for. So everything is as late as the calls allow, and what no call waits for has not
 *                  happened, whatever the pauses are. A program that only asks whether it has happened asks forever
 *   devices=N      1 by default; 0: as a driver without a device
 *   memory=BYTES   of each device: what is over it is out of memory
 *   pinned=BYTES   that may be registered or allocated on the host, together
 *   version=N      what cuDriverGetVersion says (12040)
 *   capability=N   10 * major + minor (90)
 *   numa=N         the node of the devices (-1: unknown)
 *   stub           every call says that this is a stub library
 *   fail=NAME:N[:CODE]   the Nth call of an entry point (from 1, from when this was read) returns CODE, else
 *                        CUDA_ERROR_UNKNOWN, and does nothing; N+ means each one from the Nth. At most 8 of these
 *   late=NAME:N[:CODE]   the Nth kernel launch or copy is accepted and fails when the stream comes to it; from then on
 *                        every call on the device returns CODE, else CUDA_ERROR_ILLEGAL_ADDRESS
 *   missing=NAME   cuGetProcAddress does not know that entry point
 *   lenient        at the program's end violations and leaks are printed only; else the exit status becomes 97
 *   quiet          they are not printed (and do not change the exit status)
 */
#ifndef TESTS_CUDA_SOFTWARE_CUDA_SOFTWARE_H
#define TESTS_CUDA_SOFTWARE_CUDA_SOFTWARE_H

#include "driver_types.h"

struct cuda_software_counts {
    /* alive now */
    uint64_t contexts; /* retained, each retain counting */
    uint64_t streams;  /* made by calls and not destroyed */
    uint64_t events;
    uint64_t modules;
    uint64_t device_allocations, device_bytes;
    uint64_t host_allocations, host_registrations, host_bytes;
    /* since the program's start, or cuda_software_reset() */
    uint64_t calls[CUDA_ENTRY_COUNT];
    uint64_t launches, copies, copied_bytes; /* that streams have carried out */
    uint64_t pageable_copies;                /* asynchronous copies from or to memory that is not pinned */
    uint64_t violations;
};

/* Reads such words as TOKMAP_CUDA_SOFTWARE holds; what they do not name gets its default again. What is alive stays.
 * False if a word is not understood. */
CUDA_SOFTWARE_API int cuda_software_configure(const char *text);
CUDA_SOFTWARE_API void cuda_software_counts(struct cuda_software_counts *counts);
/* Violation number i from 0, in words; NULL past the last one kept (32 are). The text lives until
 * cuda_software_reset(). */
CUDA_SOFTWARE_API const char *cuda_software_violation(unsigned i);
/* Forgets counts and violations. */
CUDA_SOFTWARE_API void cuda_software_reset(void);
/* While held, no stream begins an operation. Holds do not add up. */
CUDA_SOFTWARE_API void cuda_software_hold(int held);
/* The same for one stream. */
CUDA_SOFTWARE_API void cuda_software_hold_stream(CUstream stream, int held);

#endif
