/*
 * backend.h - where the slots of a ring live, and how a filled slot reaches what the trainer reads. The ring and the
 * loader know a device only through these calls; the host is one device, a GPU another.
 *
 * A slot goes round: the producer waits until it is vacant (await), fills its memory, and hands it over (copy); the
 * consumer asks for its outputs (expand), after which the next copy of the same slot may follow. With two events a slot:
 *
 *     await    the host may write the slot:    waits for `copied` of the slot's last copy
 *     copy     enqueues host -> device twin, after `expanded` of the slot's last use;   records `copied`
 *     expand   enqueues device twin -> outputs on the consumer's stream, after `copied`; records `expanded`
 *
 * On the host the slot is its own twin: await and copy have nothing to do, and expand writes the outputs at once.
 */
#ifndef TOKMAP_STAGING_BACKEND_H
#define TOKMAP_STAGING_BACKEND_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#include "expand.h"

struct backend;

struct backend_facts {
    int device;             /* -1: the host */
    int numa_node;          /* of the slots and the producer; -1: any */
    bool kernel;            /* a device expands by itself */
    const char *reason;     /* why not; "" if it does. Lives as long as the backend */
    uint64_t pinned_bytes;
    uint64_t device_bytes;
    uint64_t host_expanded; /* batches that the host expanded for the device */
    uint64_t late_copies;   /* batches that were still on their way when they were asked for */
};

struct backend_calls {
    const char *name;
    /* Memory for `slots` slots of `slot_bytes` each (a multiple of 64), one after another, zeroed, page-aligned; with
     * their twins and events. Once in a backend's life. */
    enum tokmap_status (*allocate)(struct backend *backend, uint32_t slots, uint64_t slot_bytes, void **memory,
                                   struct tokmap_error *error);
    /* The first thing on a producer's thread, if there is one: puts it near the device. */
    void (*begin)(struct backend *backend);
    /* Producer's thread, or the consumer's where it does that work itself. */
    enum tokmap_status (*await)(struct backend *backend, uint32_t slot, struct tokmap_error *error);
    enum tokmap_status (*copy)(struct backend *backend, uint32_t slot, uint64_t bytes, struct tokmap_error *error);
    /* Consumer's thread. work: all but `slot`, which only the backend knows. stream: the consumer's, as given to
     * tokmap_loader_next(). */
    enum tokmap_status (*expand)(struct backend *backend, uint32_t slot, const struct expand_arguments *work,
                                 void *stream, struct tokmap_error *error);
    /* Any thread. */
    void (*facts)(const struct backend *backend, struct backend_facts *facts);
    /* No thread uses the backend any more. Waits for what is enqueued and frees the backend with its memory. forked: this
     * is a child of the process that opened it, which may not touch the device. */
    void (*close)(struct backend *backend, bool forked);
};

/* The head of every backend; each has its own fields behind it. */
struct backend {
    const struct backend_calls *calls;
};

/* Statuses: OK, ERROR_MEMORY. */
enum tokmap_status backend_host_open(struct backend **backend, struct tokmap_error *error);
/* device: as struct tokmap_loader_options has it. output_bytes: backend_cuda_output_bytes() of the largest batch.
 * Statuses: OK, ERROR_ARGUMENT, ERROR_NO_DEVICE, ERROR_DEVICE, ERROR_MEMORY. */
enum tokmap_status backend_cuda_open(struct backend **backend, const char *device, uint64_t output_bytes,
                                     struct tokmap_error *error);
/* Memory for all outputs of such a batch, as the host makes them for a GPU; the addresses only say which there are. */
uint64_t backend_cuda_output_bytes(const struct expand_arguments *work);

#endif
