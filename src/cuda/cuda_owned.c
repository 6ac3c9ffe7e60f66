/*
 * cuda_owned.c - see cuda_owned.h.
 *
 * The records are in lists by a part of the address, with the oldest first.
 */
#include "cuda_owned.h"

#include <stdlib.h>

#include "platform/os.h"
#include "process_lock.h"

#define LISTS 256u

struct owned {
    struct cuda_device device;
    uint64_t context; /* its number; 0: unknown */
    const void *made;
    uint32_t process;
    struct owned *next;
};

static struct owned *lists[LISTS]; /* with `lock` */
static uint32_t lock;

static struct owned **list_of(const void *made)
{
    const uintptr_t address = (uintptr_t)made; /* memory is aligned to 256 bytes or more, and a handle to 16 */
    return &lists[(address >> 4 ^ address >> 12 ^ address >> 20) % LISTS];
}

bool cuda_owned_add(const struct cuda_device *device, const void *made)
{
    struct owned *owned = calloc(1, sizeof *owned);
    if (!owned)
        return false;
    owned->device = *device;
    owned->context = cuda_context_number(device);
    owned->made = made;
    owned->process = os_process_id();
    process_lock(&lock);
    struct owned **last = list_of(made);
    while (*last)
        last = &(*last)->next;
    *last = owned;
    process_unlock(&lock);
    return true;
}

bool cuda_owned_remove(const void *made, struct cuda_device *device, bool *exists)
{
    const uint32_t own = os_process_id();
    process_lock(&lock);
    struct owned **at = list_of(made), *owned;
    while (*at && !((*at)->made == made && (*at)->process == own))
        at = &(*at)->next;
    owned = *at;
    if (owned)
        *at = owned->next;
    process_unlock(&lock);
    if (!owned)
        return false;
    *device = owned->device;
    *exists = cuda_context_exists(&owned->device, owned->context);
    free(owned);
    return true;
}
