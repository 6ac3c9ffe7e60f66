/* SPDX-License-Identifier: MIT */
/*
 * token_parts.c - see token_parts.h.
 *
 * Compared with pread, reading through a mapping after populating its pages is twice as slow if the page cache holds
 * the file in small folios and a third faster if it holds large ones. A process cannot ask which is the case. Each
 * thread therefore uses the method that was faster recently and tries the other one now and then. If a page cannot be
 * populated, the part is read with pread, whose errno tells the reason.
 */
#include "token_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

/* The size of a buffer: it holds a block, also one of elements of 8 bytes, and one huge page, into which the kernel
 * copies a quarter faster. */
#define PART_BUFFER ((uint64_t)2 << 20)

/* The first units alternate between the two methods, because the first unit of each method pays for memory that is
 * touched for the first time. */
enum { TRIAL_UNITS = 6, OTHER_WAY_EVERY = 256, THREADS_MAX = 256 };

struct sharing {
    struct token_parts *parts; /* of each thread */
    void (*work)(void *user, struct token_parts *parts);
    void *user;
};

static bool parts_init(struct token_parts *parts)
{
    parts->scan = block_scan_new();
    return parts->scan && !os_memory_new(PART_BUFFER, true, &parts->buffer);
}

/* Runs in each thread; the first one has its memory. */
static void share(void *user, uint32_t number)
{
    const struct sharing *sharing = user;
    if (!number || parts_init(&sharing->parts[number]))
        sharing->work(sharing->user, &sharing->parts[number]);
}

enum tokmap_status token_parts_share(const char *name, const char *what, uint64_t threads, uint64_t units,
                                     void (*work)(void *user, struct token_parts *parts), void *user,
                                     struct tokmap_error *error)
{
    const uint64_t wanted = min64(min64(threads ? threads : os_processors(), max64(units, 1)), THREADS_MAX);
    struct sharing sharing = {calloc(wanted, sizeof *sharing.parts), work, user};
    const bool good = sharing.parts && parts_init(&sharing.parts[0]);
    if (good)
        os_threads_share(name, (uint32_t)wanted, share, &sharing);
    for (uint64_t i = 0; sharing.parts && i < wanted; i++) {
        struct token_parts *parts = &sharing.parts[i];
        os_memory_free(parts->buffer, PART_BUFFER);
        os_memory_free(parts->raw, PART_BUFFER);
        sealed_reader_free(parts->sealed);
        block_scan_free(parts->scan);
    }
    free(sharing.parts);
    return good ? TOKMAP_OK : error_set_memory(error, what, 0);
}

/* Reads elements that have another size than tokens. */
static int read_converted(struct token_parts *parts, const struct shard *shard, uint64_t at, size_t count, size_t *got)
{
    const uint32_t width = shard->index.shard.width, shift = element_shift(shard->store.element);
    size_t bytes = 0;
    int system = parts->raw ? 0 : os_memory_new(PART_BUFFER, true, &parts->raw);
    assert(((uint64_t)count / width << shift) <= PART_BUFFER);
    if (!system)
        system = os_pread(shard->store.fd, parts->raw, count / width << shift, stream_place(shard, at), &bytes);
    if (system)
        return system;
    const uint64_t whole = bytes >> shift;
    const uint64_t good = element_convert(shard->store.element, parts->raw, whole, width, parts->buffer);
    *got = (size_t)(good * width);
    return good < whole ? TOKEN_PARTS_BAD : 0;
}

static int read_sealed(struct token_parts *parts, const struct shard *shard, uint64_t at, size_t count, size_t *got)
{
    const struct store *store = &shard->store;
    if (!parts->sealed && !(parts->sealed = sealed_reader_new()))
        return ENOMEM;
    if (sealed_read(parts->sealed, store->sealed, store->path, store->fd, at, count, parts->buffer, &parts->failure))
        return TOKEN_PARTS_FAILED;
    *got = count;
    return 0;
}

int token_parts_read(struct token_parts *parts, const struct shard *shard, const uint8_t *mapping, uint64_t at,
                     size_t count, const uint8_t **part, size_t *got)
{
    const uint32_t width = shard->index.shard.width;
    assert(count <= BLOCK_BYTES && at % width == 0 && count % width == 0);
    *part = parts->buffer;
    *got = 0;
    if (shard->store.sealed)
        return read_sealed(parts, shard, at, count, got);
    if (width != 1u << element_shift(shard->store.element))
        return read_converted(parts, shard, at, count, got);
    const uint64_t place = shard->store.offset + at;
    if (mapping && !os_map_populate(mapping + place, count)) {
        *part = mapping + place;
        *got = count;
        return 0;
    }
    int system = os_pread(shard->store.fd, parts->buffer, count, place, got);
    *got = (size_t)(*got / width * width);
    return system;
}

enum token_way token_parts_way(struct token_parts *parts, bool mapped)
{
    if (!mapped)
        return BY_PREAD;
    const uint64_t number = parts->units++;
    if (number < TRIAL_UNITS)
        return number & 1 ? BY_MAPPING : BY_PREAD;
    bool mapping = parts->cost[BY_MAPPING] < parts->cost[BY_PREAD];
    if (number % OTHER_WAY_EVERY == OTHER_WAY_EVERY - 1)
        mapping = !mapping;
    return mapping ? BY_MAPPING : BY_PREAD;
}

/* Other processes can only make a unit look slower, so a lower cost counts at once and a higher one gradually. */
void token_parts_note(struct token_parts *parts, enum token_way way, double cost)
{
    const double before = parts->cost[way];
    parts->cost[way] = before > 0 && cost > before ? before + (cost - before) / 8 : cost;
}
