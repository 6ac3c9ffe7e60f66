/*
 * software.h - what the files of the emulated driver share.
 *
 * One lock, `big`, guards everything but the bytes that operations move: a stream's thread takes it to fetch an
 * operation and to say that it is done, not while it does it. The order of operations is decided at the call, by
 * clocks: each stream has a place in them, and numbers its operations there. clock[p] of a stream is the number of the
 * last operation of place p that is certain to be over when the stream's next operation begins. An event carries the
 * clock of the stream as it was when it was recorded; a wait joins it into the waiting stream's; what the host has seen
 * to be over is in host_clock, and so before everything that is called later.
 */
#ifndef TESTS_CUDA_SOFTWARE_SOFTWARE_H
#define TESTS_CUDA_SOFTWARE_SOFTWARE_H

#include <pthread.h>
#include <stdbool.h>

#include "cuda_software.h"

#define PLACES 64       /* streams at a time, over all devices */
#define DEVICES_MOST 8
#define FAULTS_MOST 8
#define RANGES_MOST 12  /* of memory that one operation reads or writes */
#define ARGUMENTS_MOST 256 /* bytes of a kernel's */

/* ---- configuration ---- */

struct fault {
    enum cuda_entry entry;
    uint64_t call; /* the number of the call that fails */
    bool onwards;  /* and all after it */
    bool late;     /* when the stream comes to it */
    CUresult code;
};

struct configuration {
    uint64_t delay_us;
    uint64_t seed;
    int devices;
    uint64_t memory, pinned;
    int version, capability, numa;
    bool stub, lenient, quiet, lazy;
    struct fault faults[FAULTS_MOST];
    unsigned fault_count;
    bool missing[CUDA_ENTRY_COUNT];
};
extern struct configuration configuration;
extern const char *const entry_names[CUDA_ENTRY_COUNT];

/* What the nth call since the configuration was read meets: 0, or a fault's code. */
CUresult fault_of(enum cuda_entry entry, bool late);
/* A pseudo-random number from a state that it moves on. */
uint64_t random_next(uint64_t *state);

/* ---- state ---- */

struct CUctx_st {
    int device;
    uint64_t retained;
    CUresult failed; /* what every call answers since an operation failed; 0 while all is well */
    CUstream legacy, per_thread;
    uint64_t used_bytes;
};

struct operation;

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    bool own;       /* of the driver: legacy and per-thread streams, which nobody destroys */
    bool destroyed;
    bool held;
    bool capturing; /* what is enqueued goes into a graph, and is not carried out */
    bool started;   /* it has a thread */
    bool asleep;    /* the thread naps, since there is nothing to do */
    bool busy;      /* it is at an operation */
    unsigned place;
    uint64_t issued, completed; /* numbers of operations in its place */
    uint64_t wanted; /* the last that something waits for; read where the configuration is `lazy` */
    uint64_t clock[PLACES];
    uint64_t random;
    unsigned pace;  /* pauses are delay_us * pace / 4 at most */
    struct operation *first, *last;
    pthread_cond_t wake;
    struct CUstream_st *next; /* of all that ever were */
};

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    bool destroyed;
    bool captured;   /* its last record is a graph's */
    CUstream stream; /* of the last record; NULL before the first */
    uint64_t number;
    uint64_t clock[PLACES];
    double time_ms;   /* when the stream came there */
    unsigned pending; /* records that a stream has not come to */
    struct CUevent_st *next;
};

extern pthread_mutex_t big;
extern pthread_cond_t progress;
extern struct cuda_software_counts counted;
extern struct CUctx_st contexts[DEVICES_MOST];
extern bool all_held;
extern __thread CUcontext current_context;
extern CUstream all_streams;
extern uint64_t host_clock[PLACES];
extern unsigned places_used; /* the places in clocks that ever had a stream are below it */
extern uint64_t pinned_bytes;

void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory ---- */

enum region_kind { REGION_DEVICE, REGION_HOST_ALLOCATED, REGION_HOST_REGISTERED };

struct access {
    uint64_t from, to; /* in the region */
    uint64_t number;
    unsigned place;
    bool write;
    const char *what;
};

struct region {
    enum region_kind kind;
    CUcontext context;
    uint64_t address, bytes;
    uint8_t *memory;  /* where the bytes are: for device memory not at `address`, where the host may not look */
    void *mapping;    /* what to unmap: the bytes, */
    uint64_t mapping_bytes;
    void *reserved;   /* and the addresses of device memory */
    bool freed;
    uint8_t *written; /* of device memory: 1 for each 16 bytes that something has written; */
    bool all_written; /* all of them are 1 */
    struct access *accesses;
    unsigned access_count, access_capacity;
};

/* A range of memory that an operation reads or writes. */
struct range {
    uint64_t address, bytes;
    bool write;
};

/* The region that holds all of a range, alive; NULL if there is none. */
struct region *region_of(uint64_t address, uint64_t bytes);
/* The same with a violation that says what is wrong. */
struct region *region_for(uint64_t address, uint64_t bytes, const char *what);
/* Notes an access by the operation that the stream issues next, and checks it against those before. */
void region_access(struct region *region, const struct range *range, CUstream stream, const char *what);
/* Where the bytes of a device or pinned address are. */
uint8_t *region_memory(const struct region *region, uint64_t address);
uint64_t range_sum(const uint8_t *bytes, uint64_t offset, uint64_t count);

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
    struct region *regions[RANGES_MOST]; /* that it uses: nothing is done if one was freed */
    unsigned region_count;
    /* copy, set */
    uint8_t *into;
    const uint8_t *from;
    uint64_t bytes;
    void *snapshot;   /* of a pageable source */
    uint8_t value;
    /* what a pinned source held at the call */
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
/* What destroying does: what was issued is still carried out. */
void stream_end(CUstream stream);
CUevent event_new(CUcontext context, unsigned flags);
void event_end(CUevent event);
/* The stream of a handle, NULL and the special ones in the current context; NULL and a violation if it is none. */
CUstream stream_of(CUstream handle, const char *what);
CUevent event_of(CUevent handle, const char *what);
/* What must come before the next operation of a stream by the rules of the legacy default stream; joins the host's
 * clock. */
void stream_begin(CUstream stream);
/* An operation to fill in; number and place in the queue are given by stream_issue(). */
struct operation *operation_new(enum operation_kind kind);
void stream_issue(CUstream stream, struct operation *operation);
void stream_wait_for(CUstream stream, CUstream on, uint64_t number, const uint64_t *clock);
bool is_over(CUstream stream, uint64_t number);
/* Waits (and lets go of the lock meanwhile) until the operation is over. */
void await_over(CUstream stream, uint64_t number);
void clock_join(uint64_t *into, const uint64_t *from);
void nudge(void);

/* ---- kernels ---- */

/* A kernel that this driver can run: found by its module's image and its name. */
struct kernel {
    const char *image;
    const char *name;
    size_t argument_bytes;
    /* Fills what a launch reads and writes. Returns how many ranges. */
    unsigned (*ranges)(const void *arguments, const unsigned grid[3], const unsigned block[3],
                       struct range ranges[RANGES_MOST]);
    /* Runs it: device addresses in the arguments have been made those of the bytes by translate(). */
    void (*run)(const void *arguments, const unsigned grid[3], const unsigned block[3]);
    void (*translate)(void *arguments, uint64_t (*memory_of)(uint64_t address));
};

/* Those of the benchmark (bench_launches.c). */
#define BENCH_KERNELS 3
extern const struct kernel bench_kernels[BENCH_KERNELS];

const struct kernel *kernel_of_image(const void *image);
const struct kernel *kernel_named(const struct kernel *first, const char *name);

#endif
