/* SPDX-License-Identifier: MIT */
/*
 * memory.c - the memory of the emulated driver: device memory that the host cannot access, pinned host memory, and a
 * record of which operations read and write which bytes of them, in which order.
 *
 * Device memory has two mappings. One consists of inaccessible addresses, which the caller gets. The other one has the
 * bytes, which only streams use. An allocation ends at the end of its mapping, so a write past it faults. Addresses are
 * not reused for a long time, so a use after free is recognized.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "software.h"

#define ALIGNMENT 256 /* of device memory, as cuMemAlloc guarantees */
#define POISON 0xa5
#define GRANULE 16
#define GRAVES 256 /* freed regions that are kept */

static struct region **regions; /* those that are not freed, unordered */
static unsigned region_count, region_capacity;
static struct region *graves[GRAVES]; /* a ring of freed regions, which are kept for a while */
static unsigned next_grave;
uint64_t host_clock[COLUMNS];
uint64_t pinned_bytes;

static uint64_t up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static struct region *region_new(enum region_kind kind, CUcontext context, uint64_t address, uint64_t bytes)
{
    if (region_count == region_capacity) {
        region_capacity = region_capacity ? 2 * region_capacity : 64;
        regions = realloc(regions, region_capacity * sizeof(struct region *));
    }
    struct region *region = calloc(1, sizeof *region);
    if (!regions || !region)
        abort();
    *region = (struct region){.kind = kind, .context = context, .address = address, .bytes = bytes};
    regions[region_count++] = region;
    return region;
}

static void bury(struct region *region)
{
    region->freed = true;
    free(region->written);
    free(region->accesses);
    region->written = NULL;
    region->accesses = NULL;
    region->access_count = region->access_capacity = 0;
    for (unsigned i = 0; i < region_count; i++)
        if (regions[i] == region)
            regions[i--] = regions[--region_count];
    struct region *oldest = graves[next_grave];
    graves[next_grave] = region;
    next_grave = (next_grave + 1) % GRAVES;
    if (oldest && oldest->reserved)
        (void)munmap(oldest->reserved, oldest->mapping_bytes);
    free(oldest);
}

static bool holds(const struct region *region, uint64_t address)
{
    return region && address >= region->address && address - region->address < region->bytes;
}

static struct region *find(uint64_t address)
{
    for (unsigned i = 0; i < region_count; i++)
        if (holds(regions[i], address))
            return regions[i];
    return NULL;
}

static bool was_freed(uint64_t address)
{
    for (unsigned i = 0; i < GRAVES; i++)
        if (holds(graves[i], address))
            return true;
    return false;
}

struct region *region_of(uint64_t address, uint64_t bytes)
{
    struct region *region = find(address);
    return region && bytes <= region->bytes - (address - region->address) ? region : NULL;
}

struct region *region_for(uint64_t address, uint64_t bytes, const char *what)
{
    struct region *region = region_of(address, bytes);
    if (region)
        return region;
    region = find(address);
    if (region)
        violation("%s uses %llu bytes from %llu of an allocation of %llu", what, (unsigned long long)bytes,
                  (unsigned long long)(address - region->address), (unsigned long long)region->bytes);
    else if (was_freed(address))
        violation("%s uses memory that was freed", what);
    else
        violation("%s uses memory at %#llx that was never allocated", what, (unsigned long long)address);
    return NULL;
}

uint8_t *region_memory(const struct region *region, uint64_t address)
{
    return region->memory + (address - region->address);
}

/* Returns a checksum. The sums of the parts of a range add up to the sum of the whole, in any order.
 *   offset   of the bytes in the range */
uint64_t range_sum(const uint8_t *bytes, uint64_t offset, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count;) {
        uint64_t word = 0, take = 8 - (offset + i) % 8;
        take = take < count - i ? take : count - i;
        memcpy((uint8_t *)&word + (offset + i) % 8, bytes + i, take);
        uint64_t index = (offset + i) / 8;
        /* linear in the word, so the sums of two parts of a word add up */
        sum += word * ((index * 0x9e3779b97f4a7c15u) | 1);
        i += take;
    }
    return sum;
}

/* ---- order ---- */

static bool conflicts(const struct access *one, const struct access *other)
{
    return (one->write || other->write) && one->from < other->to && other->from < one->to;
}

static void check_written(struct region *region, const struct access *access)
{
    if (!region->written || region->all_written)
        return;
    uint64_t from = access->from / GRANULE, to = (access->to + GRANULE - 1) / GRANULE;
    if (access->write) {
        memset(region->written + from, 1, to - from);
        region->all_written = !access->from && access->to == region->bytes;
        return;
    }
    const uint8_t *unwritten = to > from ? memchr(region->written + from, 0, to - from) : NULL;
    if (unwritten)
        violation("%s reads byte %llu of an allocation, which nothing has written", access->what,
                  (unsigned long long)(unwritten - region->written) * GRANULE);
}

void region_access(struct region *region, const struct range *range, CUstream stream, const char *what)
{
    struct access access = {.from = range->address - region->address,
                            .number = stream->issued + 1,
                            .column = stream->column,
                            .write = range->write,
                            .what = what};
    access.to = access.from + range->bytes;
    if (!range->bytes)
        return;
    check_written(region, &access);
    unsigned kept = 0;
    bool reported = false;
    for (unsigned i = 0; i < region->access_count; i++) {
        struct access *before = &region->accesses[i];
        bool ordered = stream->clock[before->column] >= before->number;
        if (!ordered && !reported && conflicts(before, &access)) {
            violation("%s %s bytes %llu to %llu of an allocation, in no order with a %s that %s bytes %llu to %llu",
                      what, access.write ? "writes" : "reads", (unsigned long long)access.from,
                      (unsigned long long)access.to, before->what, before->write ? "writes" : "reads",
                      (unsigned long long)before->from, (unsigned long long)before->to);
            reported = true;
        }
        /* An operation that is ordered after this access is ordered after that one, too. */
        bool covered =
            ordered && before->from >= access.from && before->to <= access.to && (access.write || !before->write);
        if (!covered && host_clock[before->column] < before->number)
            region->accesses[kept++] = *before;
    }
    region->access_count = kept;
    if (region->access_count == region->access_capacity) {
        region->access_capacity = region->access_capacity ? 2 * region->access_capacity : 8;
        region->accesses = realloc(region->accesses, region->access_capacity * sizeof access);
        if (!region->accesses)
            abort();
    }
    region->accesses[region->access_count++] = access;
}

/* Returns whether a stream has not finished an operation that uses the region, and which. */
static bool in_use(const struct region *region, CUstream *stream, uint64_t *number, const char **what)
{
    for (unsigned i = 0; i < region->access_count; i++) {
        const struct access *access = &region->accesses[i];
        for (CUstream at = all_streams; at; at = at->next) {
            if (at->column == access->column && at->issued >= access->number && at->completed < access->number) {
                *stream = at;
                *number = access->number;
                *what = access->what;
                return true;
            }
        }
    }
    return false;
}

static void await_unused(struct region *region, const char *call)
{
    CUstream stream;
    uint64_t number;
    const char *what;
    bool reported = false;
    while (in_use(region, &stream, &number, &what)) {
        if (!reported)
            violation("%s of memory that a %s still uses", call, what);
        reported = true;
        if ((stream->held || all_held) && !stream->busy)
            break; /* waiting would never end; the stream will find that the region is freed */
        await_over(stream, number);
    }
}

/* Frees or unregisters a region. */
static void release(struct region *region)
{
    if (region->kind == REGION_DEVICE) {
        region->context->used_bytes -= region->bytes;
        counted.device_allocations--;
        counted.device_bytes -= region->bytes;
        (void)munmap(region->mapping, region->mapping_bytes);
    } else {
        counted.host_registrations -= region->kind == REGION_HOST_REGISTERED;
        counted.host_allocations -= region->kind == REGION_HOST_ALLOCATED;
        counted.host_bytes -= region->bytes;
        pinned_bytes -= region->bytes;
        if (region->kind == REGION_HOST_ALLOCATED)
            (void)munmap((void *)(uintptr_t)region->address, region->bytes);
    }
    bury(region);
}

void memory_lost(CUcontext context)
{
    for (unsigned i = 0; i < region_count;) {
        if (regions[i]->context == context)
            release(regions[i]); /* another one takes its place */
        else
            i++;
    }
}

/* ---- device memory ---- */

/* Returns addresses that the host cannot access, of this many bytes: of memory that was freed, if that is configured,
 * or new ones. */
static uint8_t *addresses_for(uint64_t bytes)
{
    for (unsigned i = 1; configuration.reuse && i <= GRAVES; i++) {
        struct region *grave = graves[(next_grave + GRAVES - i) % GRAVES]; /* the last one first */
        if (grave && grave->reserved && grave->mapping_bytes == bytes) {
            uint8_t *reserved = grave->reserved;
            grave->reserved = NULL;
            return reserved;
        }
    }
    return mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

CUresult device_allocate(CUcontext context, uint64_t bytes, CUdeviceptr *address)
{
    if (!bytes || !address)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > configuration.memory || context->used_bytes > configuration.memory - bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), held = up(bytes, ALIGNMENT), mapped = up(held, page);
    uint8_t *reserved = addresses_for(mapped + page);
    uint8_t *memory =
        mmap(NULL, mapped + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *written = calloc(held / GRANULE + 1, 1);
    if (reserved == MAP_FAILED || memory == MAP_FAILED || !written)
        return CUDA_ERROR_OUT_OF_MEMORY; /* the machine itself has no memory left, so cleaning up does not matter */
    (void)mprotect(memory + mapped, page, PROT_NONE);
    struct region *region = region_new(REGION_DEVICE, context, (uint64_t)(uintptr_t)(reserved + mapped - held), bytes);
    region->memory = memory + mapped - held;
    region->mapping = memory;
    region->mapping_bytes = mapped + page;
    region->reserved = reserved;
    region->written = written;
    memset(region->memory, POISON, held);
    context->used_bytes += bytes;
    counted.device_allocations++;
    counted.device_allocations_made++;
    counted.device_bytes += bytes;
    *address = region->address;
    return CUDA_SUCCESS;
}

CUresult device_free(CUdeviceptr address)
{
    struct region *region = address ? find(address) : NULL;
    if (!address)
        return CUDA_SUCCESS;
    if (!region || region->kind != REGION_DEVICE || region->address != address) {
        violation("cuMemFree of %#llx, which is not an allocation%s", address, was_freed(address) ? " any more" : "");
        return CUDA_ERROR_INVALID_VALUE;
    }
    await_unused(region, "cuMemFree");
    for (uint64_t i = region->bytes; i < up(region->bytes, ALIGNMENT); i++) {
        if (region->memory[i] != POISON) {
            violation("something wrote past the end of a device allocation of %llu bytes",
                      (unsigned long long)region->bytes);
            break;
        }
    }
    counted.device_frees++;
    counted.synchronizations++;
    release(region);
    return CUDA_SUCCESS;
}

/* ---- host memory ---- */

CUresult host_pin(CUcontext context, void *address, uint64_t bytes, void **allocated)
{
    if (!bytes || (!allocated && !address))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > configuration.pinned || pinned_bytes > configuration.pinned - bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < region_count && address; i++) {
        uint64_t from = (uint64_t)(uintptr_t)address;
        if (from < regions[i]->address + regions[i]->bytes && regions[i]->address < from + bytes)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    void *memory = address;
    if (!memory) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memset(memory, POISON, bytes);
        *allocated = memory;
    }
    struct region *region = region_new(address ? REGION_HOST_REGISTERED : REGION_HOST_ALLOCATED, context,
                                       (uint64_t)(uintptr_t)memory, bytes);
    region->memory = memory;
    region->mapping_bytes = bytes;
    counted.host_registrations += address != NULL;
    counted.host_allocations += !address;
    counted.host_registrations_made += address != NULL;
    counted.host_allocations_made += !address;
    counted.host_bytes += bytes;
    pinned_bytes += bytes;
    return CUDA_SUCCESS;
}

CUresult host_unpin(void *address, enum region_kind kind)
{
    struct region *region = find((uint64_t)(uintptr_t)address);
    const char *call = kind == REGION_HOST_REGISTERED ? "cuMemHostUnregister" : "cuMemFreeHost";
    if (!region || region->kind != kind || region->address != (uint64_t)(uintptr_t)address) {
        violation("%s of memory that is not %s", call, kind == REGION_HOST_REGISTERED ? "registered" : "its own");
        return kind == REGION_HOST_REGISTERED ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    }
    await_unused(region, call);
    release(region);
    return CUDA_SUCCESS;
}
