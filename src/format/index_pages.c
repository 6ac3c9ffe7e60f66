/* SPDX-License-Identifier: MIT */
/*
 * index_pages.c - see index_pages.h.
 *
 * Memory. One range of zeroed memory, which costs nothing until it is written, has three parts:
 *
 *     the file's bytes, at their offsets | one bit per page: it is present | the kept steps of searches
 *
 * Making a page present. A thread reads the page into a buffer, copies it to its place below the lock of the process,
 * and sets the page's bit. Two threads may read the same page at the same time. The second one finds the bit and copies
 * nothing, so a page never changes under a thread that has seen its bit. A child after fork() finds that lock unlocked
 * and each page whole.
 *
 * Steps. Value number n has the place floor(n * places / searched). The numbers that the first log2(places) steps of a
 * binary search meet are spread evenly, so each has a place of its own. Example: of 1,000,000 ends of documents, 7,812
 * places hold the ends that the first 12 steps look at; the search then has about 250 documents left. An entry is one
 * word, value << 32 | (number + 1), so a thread reads a whole entry or none, and no other number's.
 */
#include "index_pages.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"

#define PAGE_SHIFT 12
#define AT_ONCE ((uint64_t)16384) /* bytes that are read at once; a multiple of a page */
#define VALUES_PER_PLACE 128      /* of the values that are searched */
#define PLACES_MOST ((uint64_t)1 << 16)

struct index_pages {
    int fd;
    uint64_t bytes; /* of the file */
    uint64_t searched, places;
    uint64_t memory_bytes;
    uint8_t *memory;
    uint64_t *present; /* accessed atomically */
    uint64_t *steps;   /* accessed atomically */
};

int index_pages_open(struct index_pages **made, int fd, uint64_t bytes, uint64_t searched)
{
    *made = NULL;
    if (bytes > (uint64_t)1 << 56)
        return ENOMEM;
    struct index_pages *pages = calloc(1, sizeof *pages);
    if (!pages)
        return ENOMEM;
    const uint64_t file = round_up(bytes, AT_ONCE), bits = div_ceil(file >> PAGE_SHIFT, 64) * sizeof(uint64_t);
    void *memory;
    /* An entry has 32 bits for a number. More values than that are searched without a table. */
    pages->places = searched < UINT32_MAX ? min64(searched / VALUES_PER_PLACE, PLACES_MOST) : 0;
    pages->memory_bytes = file + bits + pages->places * sizeof(uint64_t);
    const int system = os_memory_new(pages->memory_bytes, false, &memory);
    if (system) {
        free(pages);
        return system;
    }
    pages->fd = fd;
    pages->bytes = bytes;
    pages->searched = searched;
    pages->memory = memory;
    pages->present = (uint64_t *)(void *)(pages->memory + file);
    pages->steps = pages->present + bits / sizeof(uint64_t);
    *made = pages;
    return 0;
}

void index_pages_close(struct index_pages *pages)
{
    if (!pages)
        return;
    os_close(pages->fd);
    os_memory_free(pages->memory, pages->memory_bytes);
    free(pages);
}

const uint8_t *index_pages_bytes(const struct index_pages *pages)
{
    return pages->memory;
}

int index_pages_read(const struct index_pages *pages, uint64_t at, void *into, size_t bytes)
{
    size_t got;
    assert(at <= pages->bytes && bytes <= pages->bytes - at);
    const int system = os_pread(pages->fd, into, bytes, at, &got);
    return system ? system : got < bytes ? ENODATA : 0;
}

void index_pages_ask(const struct index_pages *pages, uint64_t at, uint64_t bytes)
{
    os_read_ahead(pages->fd, at, bytes);
}

int index_pages_map(const struct index_pages *pages, const uint8_t **bytes)
{
    const void *mapped = NULL;
    const int system = os_map_file(pages->fd, pages->bytes, &mapped);
    *bytes = mapped;
    return system;
}

static bool is_present(const struct index_pages *pages, uint64_t page)
{
    return __atomic_load_n(&pages->present[page / 64], __ATOMIC_ACQUIRE) >> page % 64 & 1;
}

/* Reads the pages from byte `at` (a multiple of a page) to byte `end`, at most AT_ONCE bytes. */
static int read_pages(struct index_pages *pages, uint64_t at, uint64_t end)
{
    uint8_t buffer[AT_ONCE];
    const uint64_t stop = min64(end, pages->bytes);
    const int system = index_pages_read(pages, at, buffer, (size_t)(stop - at));
    if (system)
        return system;
    os_process_lock();
    for (uint64_t page = at >> PAGE_SHIFT; page << PAGE_SHIFT < stop; page++) {
        const uint64_t from = page << PAGE_SHIFT, bytes = min64(stop - from, (uint64_t)1 << PAGE_SHIFT);
        if (is_present(pages, page))
            continue;
        memcpy(pages->memory + from, buffer + (from - at), (size_t)bytes);
        (void)__atomic_fetch_or(&pages->present[page / 64], (uint64_t)1 << page % 64, __ATOMIC_RELEASE);
    }
    os_process_unlock();
    return 0;
}

int index_pages_need(struct index_pages *pages, uint64_t at, uint64_t bytes)
{
    assert(at <= pages->bytes && bytes <= pages->bytes - at);
    const uint64_t end = bytes ? (at + bytes - 1) >> PAGE_SHIFT : 0;
    for (uint64_t page = at >> PAGE_SHIFT; bytes && page <= end;) {
        uint64_t behind = page;
        while (behind <= end && behind - page < AT_ONCE >> PAGE_SHIFT && !is_present(pages, behind))
            behind++;
        const int system = behind > page ? read_pages(pages, page << PAGE_SHIFT, behind << PAGE_SHIFT) : 0;
        if (system)
            return system;
        page = behind > page ? behind : page + 1;
    }
    return 0;
}

bool index_pages_step(const struct index_pages *pages, uint64_t number, uint32_t *value)
{
    assert(number < pages->searched);
    if (!pages->places)
        return false;
    const uint64_t entry = __atomic_load_n(&pages->steps[number * pages->places / pages->searched], __ATOMIC_RELAXED);
    *value = (uint32_t)(entry >> 32);
    return (uint32_t)entry == number + 1;
}

void index_pages_keep(struct index_pages *pages, uint64_t number, uint32_t value)
{
    assert(number < pages->searched);
    if (pages->places)
        __atomic_store_n(&pages->steps[number * pages->places / pages->searched], (uint64_t)value << 32 | (number + 1),
                         __ATOMIC_RELAXED);
}
