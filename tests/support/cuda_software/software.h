/* SPDX-License-Identifier: MIT */
/*
 * software.h - declarations shared by the files of the emulated driver.
 *
 * One lock, `big`, protects everything but the bytes that operations move. The thread of a stream holds it while it
 * takes an operation from its queue and while it marks the operation as finished, but not while it executes it.
 *
 * Whether two operations are ordered is decided when they are enqueued, by vector clocks. Each stream has a column in
 * the clocks and numbers its operations. clock[c] of a stream is the number of the last operation of column c that has
 * certainly finished when the next operation of the stream begins. Recording an event copies the clock of the stream;
 * waiting for the event joins that copy into the clock of the waiting stream. host_clock has the operations that the
 * host has waited for, which precede everything that is enqueued later.
 */
#ifndef TESTS_CUDA_SOFTWARE_SOFTWARE_H
#define TESTS_CUDA_SOFTWARE_SOFTWARE_H

#include <pthread.h>
#include <stdbool.h>

#include "cuda_software.h"

#define COLUMNS 64 /* most streams at the same time, over all devices */
#define DEVICES_MOST 8
#define FAULTS_MOST 8
#define RANGES_MOST 20     /* most ranges of memory that one operation uses */
#define ARGUMENTS_MOST 256 /* most bytes of a kernel's arguments */

/* ---- configuration ---- */

struct fault {
    enum cuda_entry entry;
    uint64_t call; /* number of the call that fails */
    bool onwards;  /* all later calls fail, too */
    bool late;     /* the operation fails when the stream reaches it */
    CUresult code;
};

struct configuration {
    uint64_t delay_us;
    uint64_t seed;
    int devices;
    uint64_t memory, pinned;
    int version, capability, numa;
    unsigned registers;
    bool stub, lenient, quiet, lazy, reuse, pageable, host_tables;
    char report[512]; /* path of the report; empty: none */
    struct fault faults[FAULTS_MOST];
    unsigned fault_count;
    bool missing[CUDA_ENTRY_COUNT];
};
extern struct configuration configuration;
extern const char *const entry_names[CUDA_ENTRY_COUNT];

/* Counts a call of a function and returns the code of the fault that is configured for it, or 0. */
CUresult fault_of(enum cuda_entry entry, bool late);
/* Returns the next pseudo-random number. */
uint64_t random_next(uint64_t *state);

/* ---- state ---- */

/* A primary context; or, with `green`, the handle by which a green context is used as a context. */
struct CUctx_st {
    int device;
    CUcontext primary; /* itself, or the primary context of a green one */
    CUgreenCtx green;
    unsigned long long id; /* 0: it was reset, or has ended. A context that is made again after a reset has another */
    uint64_t retained;
    CUresult failed; /* the result of every call after an operation has failed; 0: no failure */
    CUstream legacy;
    uint64_t used_bytes;
    struct CUctx_st *next;
};

struct CUgreenCtx_st {
    struct CUctx_st handle;
    bool destroyed;
    struct CUgreenCtx_st *next;
};

/* A capture in progress. */
struct capture {
    uint64_t id;
    CUstream stream;
    int mode;
    const void *thread; /* the thread that began it, as the address of a thread-local variable */
    bool broken;
    struct capture *next;
};

struct operation;

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    CUgreenCtx green;
    bool own; /* a legacy or per-thread default stream, which no call destroys */
    bool destroyed;
    unsigned long long lost; /* the number of its context, which was reset; 0: it was not */
    bool held;
    struct capture *capture; /* not NULL: enqueued work becomes part of a graph and is not executed */
    bool started;            /* the stream has a thread */
    bool asleep;             /* the thread sleeps, because the queue is empty */
    bool busy;               /* the thread executes an operation */
    unsigned column;
    uint64_t issued, completed; /* numbers of operations */
    uint64_t wanted;            /* the last operation that something waits for; used if the configuration is `lazy` */
    uint64_t clock[COLUMNS];
    uint64_t random;
    unsigned pace; /* the longest pause is delay_us * pace / 4 */
    struct operation *first, *last;
    pthread_cond_t wake;
    struct CUstream_st *next; /* in all_streams, or among those that have ended */
};

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    bool destroyed;
    unsigned long long lost; /* the number of its context, whose reset has destroyed it; 0: none has */
    uint64_t captured;       /* not 0: its last record is part of a graph, that of the capture with this number */
    CUstream stream;         /* of the last record; NULL before the first */
    uint64_t number;
    uint64_t clock[COLUMNS];
    double time_ms;   /* when the stream reached the last record */
    unsigned pending; /* records that a stream has not reached yet */
    struct CUevent_st *next;
};

extern pthread_mutex_t big;
extern pthread_cond_t progress;
extern struct cuda_software_counts counted;
extern bool all_held, forked;
/* The primary context of the context that is current, and that itself: the same, or the handle of a green context. */
extern __thread CUcontext current_context, current_handle;
extern CUstream all_streams;
extern uint64_t host_clock[COLUMNS];
extern unsigned columns_used; /* columns from here on have never had a stream */
extern uint64_t pinned_bytes;

void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory ---- */

enum region_kind { REGION_DEVICE, REGION_HOST_ALLOCATED, REGION_HOST_REGISTERED };

struct access {
    uint64_t from, to; /* offsets in the region */
    uint64_t number;
    unsigned column;
    bool write;
    const char *what;
};

struct region {
    enum region_kind kind;
    CUcontext context;
    uint64_t address, bytes;
    uint8_t *memory; /* the bytes; those of device memory are not at `address`, which the host cannot access */
    void *mapping;   /* the mapping of the bytes */
    uint64_t mapping_bytes;
    void *reserved; /* the inaccessible addresses of device memory */
    bool freed;
    uint8_t *written; /* of device memory: 1 for each 16 bytes that have been written */
    bool all_written; /* all elements of `written` are 1 */
    struct access *accesses;
    unsigned access_count, access_capacity;
};

/* A range of memory that an operation reads or writes. */
struct range {
    uint64_t address, bytes;
    bool write;
};

/* Returns the region that contains the whole range and is not freed, or NULL. */
struct region *region_of(uint64_t address, uint64_t bytes);
/* The same, but reports a violation instead of NULL alone. */
struct region *region_for(uint64_t address, uint64_t bytes, const char *what);
/* Records an access by the next operation of the stream, and checks it against the earlier ones. */
void region_access(struct region *region, const struct range *range, CUstream stream, const char *what);
/* Returns where the bytes of a device or pinned address are. */
uint8_t *region_memory(const struct region *region, uint64_t address);
uint64_t range_sum(const uint8_t *bytes, uint64_t offset, uint64_t count);

/* Frees all memory of a context that is being reset. */
void memory_lost(CUcontext context);
CUresult device_allocate(CUcontext context, uint64_t bytes, CUdeviceptr *address);
CUresult device_free(CUdeviceptr address);
CUresult host_pin(CUcontext context, void *address, uint64_t bytes, void **allocated);
CUresult host_unpin(void *address, enum region_kind kind);

/* ---- streams ---- */

enum operation_kind { OPERATION_COPY, OPERATION_SET, OPERATION_LAUNCH, OPERATION_RECORD, OPERATION_WAIT };

struct kernel;

struct operation {
    enum operation_kind kind;
    uint64_t number;
    CUresult fails;
    struct region *regions[RANGES_MOST]; /* that it uses; it is not executed if one of them was freed */
    unsigned region_count;
    /* copy, set */
    uint8_t *into;
    const uint8_t *from;
    uint64_t bytes;
    void *snapshot; /* copy of a source that is not pinned */
    uint8_t value;
    /* a pinned source, and its checksum at the time of the call */
    const uint8_t *checked;
    uint64_t checked_bytes, checked_sum;
    /* launch */
    const struct kernel *kernel;
    CUmodule module;
    uint64_t arguments[ARGUMENTS_MOST / 8];
    unsigned grid[3], block[3];
    /* record */
    CUevent event;
    /* wait */
    CUstream on;
    uint64_t on_number;
    struct operation *next;
};

CUstream stream_new(CUcontext context, unsigned flags, int priority, bool own);
/* Destroys a stream. Enqueued operations are still executed. */
void stream_end(CUstream stream);
CUevent event_new(CUcontext context, unsigned flags);
void event_end(CUevent event);
/* Destroys the streams and events of a context that is being reset, or, with `own`, its default streams. */
void streams_lost(CUcontext context, bool own);
/* The calling thread has found out that the context with this number exists (0: that it does not). A reset by another
 * thread can come at any time, so the question covers the thread's next calls, up to a record or a wait that succeeds:
 * they fail then, but are not violations. A thread that does not ask, or ignores the answer, uses handles that
 * dangle. */
void context_asked(unsigned long long id);
void modules_lost(CUcontext context);
/* Waits for everything that is enqueued on the streams of a context; the lock is released meanwhile. */
void await_all(CUcontext context);
/* Returns whether a stream of the context cannot begin its operations, so that to wait for it would never end. */
bool is_stuck(CUcontext context);
/* Returns the stream of a handle; NULL and the special handles are those of the current context. Returns NULL and
 * reports a violation if the handle is invalid. */
CUstream stream_of(CUstream handle, const char *what);
CUevent event_of(CUevent handle, const char *what);
/* Joins into the clock of a stream the operations that must precede its next one: those that the host has waited for,
 * and those required by the rules of the legacy default stream. */
void stream_begin(CUstream stream);
/* Returns an empty operation. stream_issue() numbers it and appends it to the queue. */
struct operation *operation_new(enum operation_kind kind);
void stream_issue(CUstream stream, struct operation *operation);
void stream_wait_for(CUstream stream, CUstream on, uint64_t number, const uint64_t *clock);
bool is_over(CUstream stream, uint64_t number);
/* Waits until the operation has finished; the lock is released meanwhile. */
void await_over(CUstream stream, uint64_t number);
void clock_join(uint64_t *into, const uint64_t *from);
void wake_sleepers(void);

/* ---- kernels ---- */

/* A kernel that this driver can run, identified by the image of its module and its name. */
struct kernel {
    const char *image;
    const char *name;
    size_t argument_bytes;
    /* Fills the ranges that a launch reads and writes, and returns their number. */
    unsigned (*ranges)(const void *arguments, const unsigned grid[3], const unsigned block[3],
                       struct range ranges[RANGES_MOST]);
    /* Runs the kernel, after translate() has replaced the device addresses in the arguments by those of the bytes. */
    void (*run)(const void *arguments, const unsigned grid[3], const unsigned block[3]);
    void (*translate)(void *arguments, uint64_t (*memory_of)(uint64_t address));
    /* NULL, or returns the fault that the last run() of this thread has met, or 0. */
    CUresult (*fault)(void);
};

/* The kernels of the benchmark (bench_launches.c). */
#define BENCH_KERNELS 3
extern const struct kernel bench_kernels[BENCH_KERNELS];

/* Finds the kernels of an image: PTX, or a fatbin with PTX and machine code (images.c).
 *   compiled   becomes true if the driver had to compile PTX */
CUresult image_open(const void *image, const struct kernel **first, bool *compiled);
/* Returns the first kernel of the image with this text, or NULL. */
const struct kernel *kernel_of_image(const char *image);
/* Returns the first kernel whose name is in machine code or the text of PTX, or NULL. */
const struct kernel *kernel_of_code(const uint8_t *code, uint64_t bytes, bool is_ptx);
const struct kernel *kernel_named(const struct kernel *first, const char *name);

#endif
