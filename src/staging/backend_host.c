/* SPDX-License-Identifier: MIT */
#include "backend_host.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

/* Rings of at least this many bytes get huge pages: below, the time to clear the pages exceeds what they save. */
#define HUGE_FROM ((uint64_t)16 << 20)

struct backend_host {
    struct backend head;
    const struct expand_kernels *kernels;
    void *memory;
    uint32_t slots;
    uint64_t bytes, slot_bytes;
};

static enum tokmap_status host_allocate(struct backend *backend, uint32_t slots, uint64_t slot_bytes, void **memory,
                                        struct tokmap_error *error)
{
    struct backend_host *host = (struct backend_host *)backend;
    uint64_t bytes;
    assert(!host->memory && slots && slot_bytes && slot_bytes % 64 == 0);
    if (mul_overflows(slots, slot_bytes, &bytes) || os_memory_new(bytes, bytes >= HUGE_FROM, &host->memory))
        return error_set_memory(error, "the ring", slot_bytes);
    host->slots = slots;
    host->bytes = bytes;
    host->slot_bytes = slot_bytes;
    *memory = host->memory;
    return TOKMAP_OK;
}

static void host_begin(struct backend *backend)
{
}

static enum tokmap_status host_await(struct backend *backend, uint32_t slot, struct tokmap_error *error)
{
    assert(slot < ((const struct backend_host *)backend)->slots);
    return TOKMAP_OK;
}

static enum tokmap_status host_copy(struct backend *backend, uint32_t slot, uint64_t bytes, struct tokmap_error *error)
{
    assert(bytes <= ((const struct backend_host *)backend)->slot_bytes);
    return TOKMAP_OK;
}

static enum tokmap_status host_expand(struct backend *backend, uint32_t slot, const struct expand_arguments *work,
                                      const struct backend_copy *copies, uint32_t count, void *stream,
                                      struct tokmap_error *error)
{
    const struct backend_host *host = (const struct backend_host *)backend;
    struct expand_arguments complete = *work;
    assert(slot < host->slots);
    complete.slot = (uintptr_t)host->memory + slot * host->slot_bytes;
    expand_batch(host->kernels, &complete);
    for (uint32_t i = 0; i < count; i++)
        memcpy((void *)(uintptr_t)copies[i].into, (const uint8_t *)(uintptr_t)complete.slot + copies[i].from,
               (size_t)copies[i].bytes);
    return TOKMAP_OK;
}

static void host_facts(const struct backend *backend, struct backend_facts *facts)
{
    *facts = (struct backend_facts){.device = -1, .numa_node = -1, .reason = ""};
}

static void host_close(struct backend *backend, bool forked)
{
    struct backend_host *host = (struct backend_host *)backend;
    os_memory_free(host->memory, host->bytes);
    free(host);
}

static const struct backend_calls host_calls = {
    "host", host_allocate, host_begin, host_await, host_copy, host_expand, host_facts, host_close,
};

enum tokmap_status backend_host_open(struct backend **backend, struct tokmap_error *error)
{
    struct backend_host *host = calloc(1, sizeof *host);
    *backend = NULL;
    if (!host)
        return error_set_memory(error, "a loader", sizeof *host);
    host->head.calls = &host_calls;
    host->kernels = expand_variant(0);
    *backend = &host->head;
    return TOKMAP_OK;
}
