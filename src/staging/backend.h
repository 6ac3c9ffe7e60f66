/* SPDX-License-Identifier: MIT */
/*
 * backend.h - where the slots of a ring live, and how a filled slot becomes the outputs that the trainer reads.
 *
 * A backend is a device as the ring and the loader see it: a table of calls. There are two, the host (backend_host.h)
 * and a GPU (src/cuda/backend_cuda.h).
 *
 * Each slot goes through the same cycle. The producer waits until it may write the slot (await), fills its memory, and
 * hands it to the backend (copy). The consumer has the backend write its outputs (expand), and then the slot may be
 * filled again. On a GPU each slot has a second copy in device memory, its *twin*, and two events:
 *
 *     await    waits on the host for `copied` of the slot's previous copy; then the host may write the slot
 *     copy     enqueues slot -> twin, after `expanded` of the slot's previous use, and records `copied`
 *     expand   enqueues twin -> outputs on the consumer's stream, after `copied`, and records `expanded`
 *
 * On the host the slot is its own twin: await and copy do nothing, and expand writes the outputs before it returns.
 */
#ifndef TOKMAP_STAGING_BACKEND_H
#define TOKMAP_STAGING_BACKEND_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#include "expand.h"

struct backend;

struct backend_facts {
    int device;             /* N of "cuda:N"; -1: the host */
    int numa_node;          /* node of the slots and of the producer; -1: any node */
    bool kernel;            /* true if a GPU expands the batches with its kernel */
    bool coherent;          /* true if the GPU can read the slots in place, coherently */
    const char *reason;     /* reason why a GPU does not use its kernel, else "". Valid until the backend is closed */
    uint64_t pinned_bytes;  /* page-locked host memory */
    uint64_t device_bytes;  /* device memory */
    uint64_t host_expanded; /* batches that the host expanded on behalf of a GPU */
    uint64_t late_copies;   /* batches whose copy was still under way when the consumer asked for them */
};

/* Bytes of a slot that are an output as they are. */
#define BACKEND_COPIES_MOST 16
struct backend_copy {
    const char *name; /* of the output, for messages */
    uint64_t into;    /* its address */
    uint64_t from;    /* in the slot */
    uint64_t bytes;
    uint32_t element; /* `into` is a multiple of it */
};

struct backend_calls {
    const char *name;

    /* Allocates the memory of `slots` slots with slot_bytes bytes each, one after another, zeroed and page-aligned, and
     * on a GPU their twins. Called once, before all other calls but close.
     *   slots        at least 1
     *   slot_bytes   a multiple of 64, at least 64
     * The memory belongs to the backend. Statuses: OK, ERROR_MEMORY, ERROR_DEVICE. */
    enum tokmap_status (*allocate)(struct backend *backend, uint32_t slots, uint64_t slot_bytes, void **memory,
                                   struct tokmap_error *error);

    /* The producer thread calls this first, if there is such a thread, and again before it works for another backend:
     * it moves the thread near the device, and lets the calls below save what they have to set on other threads. */
    void (*begin)(struct backend *backend);

    /* Waits until the host may write the slot. Called by the thread that fills slots: the producer, or the consumer
     * of a loader without a producer thread. Statuses: OK, ERROR_DEVICE, ERROR_MEMORY. */
    enum tokmap_status (*await)(struct backend *backend, uint32_t slot, struct tokmap_error *error);

    /* Enqueues the copy of the slot's first `bytes` bytes, at most slot_bytes. The thread that called await calls it.
     * On failure nothing of it is under way. Statuses: OK, ERROR_DEVICE, ERROR_MEMORY. */
    enum tokmap_status (*copy)(struct backend *backend, uint32_t slot, uint64_t bytes, struct tokmap_error *error);

    /* Writes, or enqueues the writing of, the outputs of the slot. Called by the consumer's thread, while it holds the
     * slot.
     *   work     everything but work->slot, which the backend fills in its own copy
     *   copies   `count` of them, which are outputs, too
     *   stream   as the caller passed it to tokmap_loader_next(); ignored on the host
     * Statuses: OK, ERROR_ARGUMENT (a stream or an output of the caller is wrong), ERROR_DEVICE, ERROR_MEMORY. */
    enum tokmap_status (*expand)(struct backend *backend, uint32_t slot, const struct expand_arguments *work,
                                 const struct backend_copy *copies, uint32_t count, void *stream,
                                 struct tokmap_error *error);

    /* Fills *facts. Any thread. */
    void (*facts)(const struct backend *backend, struct backend_facts *facts);

    /* Waits for everything that is enqueued and frees the backend with its memory. No other thread may use the backend.
     *   forked   true in a child of the process that opened the backend; the device is not touched then */
    void (*close)(struct backend *backend, bool forked);
};

/* The first member of every backend's struct. */
struct backend {
    const struct backend_calls *calls;
};

#endif
