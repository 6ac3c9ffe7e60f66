/* SPDX-License-Identifier: MIT */
/*
 * token_counts.c - see token_counts.h.
 *
 * Adding 1 to a counter in memory takes about 5 cycles when the same counter was changed just before, because the load
 * waits for the store. Text repeats ids at short distances (a space, a comma, zeros of padding), so an id has LANES
 * counters side by side, of which token i of a chunk uses counter i mod LANES. For the tokens 7 7 7 9 the row of id 7
 * becomes 1 1 1 0, and that of id 9 becomes 0 0 0 1. Repeated ids then add to different counters, and rows that
 * occur often share cache lines with nothing else. Each thread has a table of its own. Its counters have 32 bits, so it
 * is added to the sums before 2^31 tokens have been counted.
 *
 * A table has a power of two of rows: 65,536 for tokens of 2 bytes, for which no id can be outside. Of 4 tokens of 4
 * bytes, the bits above that power are tested together. What is in the table but not below the vocabulary is found when
 * a lot has been counted. Such a lot is searched again for the first token that is wrong.
 *
 * A table has at most FLAT_IDS rows. No tokenizer has more ids, but files of other projects may not say how many there
 * are, and an index may claim any number. From the first id on that is beyond the table, a chunk is added to the sums
 * themselves. These are pages, which are made when one of their ids occurs, so that memory follows the tokens and not
 * what an index claims.
 */
#include "token_counts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/data/block_compare.h"
#include "commands/data/range_share.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

enum { LANES = 4 };
#define FLAT_IDS ((uint64_t)1 << 20)
#define PAGE_IDS ((uint64_t)4096)
#define PAGE_BYTES (PAGE_IDS * sizeof(uint64_t))
#define LOT ((uint64_t)1 << 22)      /* tokens that a thread takes at a time */
#define CHUNK ((uint64_t)1 << 16)    /* tokens that are read and then counted, so that they are in the cache */
#define FLUSH_AT ((uint64_t)1 << 31) /* tokens after which a table is added to the sums */

struct counter {
    uint32_t *table;       /* rows of LANES */
    uint8_t *chunk, *room; /* room: of block_compare_range() */
    uint64_t counted;      /* tokens since the table was added to the sums */
};

struct counting {
    const struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info;
    struct token_counts *counts;
    struct block_compare *compare;
    struct counter *counters;        /* one for each thread */
    uint64_t rows;                   /* of a table: a power of two */
    uint64_t page_limit, pages_made; /* pages_made is accessed atomically */
    struct os_mutex *mutex;          /* is held while a table is added to the sums */
};

/* ---- sums ---- */

/* Returns the page of an id, and makes it if it is missing; NULL without memory or above the limit. */
static uint64_t *page_of(struct counting *counting, uint64_t id)
{
    uint64_t **place = &counting->counts->pages[id / PAGE_IDS];
    uint64_t *page = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (page)
        return page;
    if (__atomic_fetch_add(&counting->pages_made, 1, __ATOMIC_RELAXED) >= counting->page_limit)
        return NULL;
    uint64_t *made = calloc(1, PAGE_BYTES);
    if (!made)
        return NULL;
    if (__atomic_compare_exchange_n(place, &page, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    free(made); /* another thread has made it */
    __atomic_fetch_sub(&counting->pages_made, 1, __ATOMIC_RELAXED);
    return page;
}

static enum tokmap_status pages_exceed(const struct counting *counting, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                     "the vocabulary has %" PRIu64 " ids, of which so many occur that their counters do not fit in "
                     "memory; leave the ids out with --no-ids",
                     counting->info.vocabulary);
}

/* Adds the table of a thread to the sums, and clears it. */
static enum tokmap_status table_flush(struct counting *counting, struct counter *counter, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    os_mutex_lock(counting->mutex);
    for (uint64_t id = 0; id < counting->info.vocabulary && id < counting->rows && !status; id++) {
        uint32_t *row = counter->table + id * LANES;
        const uint64_t sum = (uint64_t)row[0] + row[1] + row[2] + row[3];
        if (!sum)
            continue;
        uint64_t *page = page_of(counting, id);
        if (!page)
            status = pages_exceed(counting, error);
        else
            __atomic_fetch_add(&page[id % PAGE_IDS], sum, __ATOMIC_RELAXED);
        memset(row, 0, LANES * sizeof *row);
    }
    os_mutex_unlock(counting->mutex);
    counter->counted = 0;
    return status;
}
_Static_assert(LANES == 4, "table_flush adds 4 counters");

/* ---- counting ---- */

static void count16(uint32_t *table, const uint8_t *tokens, uint64_t count)
{
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const uint64_t four = load64(tokens + 2 * i);
        table[(four & 0xffff) * LANES]++;
        table[(four >> 16 & 0xffff) * LANES + 1]++;
        table[(four >> 32 & 0xffff) * LANES + 2]++;
        table[(four >> 48) * LANES + 3]++;
    }
    for (; i < count; i++)
        table[load16(tokens + 2 * i) * (uint64_t)LANES]++;
}

/* Counts up to the first ids that are not all below `rows`, a power of two. Returns how many tokens were counted. */
static uint64_t count32(uint32_t *table, uint64_t rows, const uint8_t *tokens, uint64_t count)
{
    const uint64_t outside = ~((rows - 1) << 32 | (rows - 1));
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const uint64_t two = load64(tokens + 4 * i), more = load64(tokens + 4 * i + 8);
        if ((two | more) & outside)
            return i;
        table[(two & 0xffffffff) * LANES]++;
        table[(two >> 32) * LANES + 1]++;
        table[(more & 0xffffffff) * LANES + 2]++;
        table[(more >> 32) * LANES + 3]++;
    }
    for (; i < count; i++) {
        const uint64_t id = load32(tokens + 4 * i);
        if (id >= rows)
            return i;
        table[id * LANES]++;
    }
    return count;
}

/* Adds tokens of 4 bytes to the sums themselves, while other threads may do so, too. */
static enum tokmap_status count_sums(struct counting *counting, const uint8_t *tokens, uint64_t count, bool *outside,
                                     struct tokmap_error *error)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t id = load32(tokens + 4 * i);
        *outside = id >= counting->info.vocabulary;
        if (*outside)
            return TOKMAP_OK;
        uint64_t *page = page_of(counting, id);
        if (!page)
            return pages_exceed(counting, error);
        __atomic_fetch_add(&page[id % PAGE_IDS], 1, __ATOMIC_RELAXED);
    }
    return TOKMAP_OK;
}

/* Finds the first token of a range that is not below the vocabulary, and says where it is. */
static enum tokmap_status outside_find(struct counting *counting, uint8_t *chunk, uint64_t first, uint64_t end,
                                       struct tokmap_error *error)
{
    const uint32_t width = counting->info.width;
    for (uint64_t at = first, count; at < end; at += count) {
        count = min64(CHUNK, end - at);
        const enum tokmap_status status = tokmap_dataset_copy(counting->dataset, at, count, chunk, error);
        if (status)
            return status;
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t id = id_load(chunk, width, i);
            if (id < counting->info.vocabulary)
                continue;
            struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
            const char *path = NULL;
            for (uint64_t number = 0; number < counting->info.shards; number++)
                if (!tokmap_dataset_shard(counting->dataset, number, &shard, NULL) && at + i >= shard.first_token &&
                    at + i - shard.first_token < shard.tokens)
                    path = shard.tokens_path;
            return error_set(error, TOKMAP_ERROR_TOKEN, path, TOKMAP_NO_OFFSET,
                             "token %" PRIu64 " of the dataset is id %" PRIu64 ", but ids must be below %" PRIu64
                             "; `tokmap verify` names the block; restore the file from a good copy, or pack the shard "
                             "again",
                             at + i, id, counting->info.vocabulary);
        }
    }
    return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                     "tokens %" PRIu64 " to %" PRIu64 " changed while they were counted; count them again", first,
                     end - 1);
}

/* Returns whether a row between the vocabulary and the end of the table has been counted. */
static bool rows_outside(const struct counting *counting, const struct counter *counter)
{
    for (uint64_t at = counting->info.vocabulary * LANES; at < counting->rows * LANES; at++)
        if (counter->table[at])
            return true;
    return false;
}

static enum tokmap_status chunk_count(struct counting *counting, struct counter *counter, uint64_t count, bool *outside,
                                      struct tokmap_error *error)
{
    if (counting->info.width == 2) {
        count16(counter->table, counter->chunk, count);
        return TOKMAP_OK;
    }
    const uint64_t counted = count32(counter->table, counting->rows, counter->chunk, count);
    *outside = counted < count && counting->info.vocabulary <= counting->rows;
    return *outside ? TOKMAP_OK : count_sums(counting, counter->chunk + 4 * counted, count - counted, outside, error);
}

static enum tokmap_status lot_count(void *user, uint32_t thread, uint64_t first, uint64_t total,
                                    struct tokmap_error *error)
{
    struct counting *counting = user;
    struct counter *counter = &counting->counters[thread];
    bool outside = false;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t at = first, count; at < first + total && !outside && !status; at += count) {
        count = min64(CHUNK, first + total - at);
        status = block_compare_range(counting->compare, at, count, &counter->room, error);
        if (!status)
            status = tokmap_dataset_copy(counting->dataset, at, count, counter->chunk, error);
        if (!status)
            status = chunk_count(counting, counter, count, &outside, error);
    }
    counter->counted += total;
    if (!status && (outside || rows_outside(counting, counter)))
        return outside_find(counting, counter->chunk, first, first + total, error);
    return !status && counter->counted >= FLUSH_AT ? table_flush(counting, counter, error) : status;
}

/* ---- the whole ---- */

/* Makes what each thread needs. Returns the number of threads for which there is memory. */
static uint32_t counters_new(struct counting *counting, uint32_t wanted)
{
    counting->counters = calloc(wanted, sizeof *counting->counters);
    for (uint32_t i = 0; i < wanted && counting->counters; i++) {
        struct counter *counter = &counting->counters[i];
        counter->chunk = malloc(CHUNK * counting->info.width);
        counter->table = calloc(counting->rows * LANES, sizeof *counter->table);
        if (!counter->chunk || !counter->table) {
            free(counter->table);
            free(counter->chunk);
            *counter = (struct counter){.counted = 0};
            return i;
        }
    }
    return counting->counters ? wanted : 0;
}

static void counters_free(struct counting *counting, uint32_t count)
{
    for (uint32_t i = 0; i < count && counting->counters; i++) {
        free(counting->counters[i].table);
        free(counting->counters[i].chunk);
        free(counting->counters[i].room);
    }
    free(counting->counters);
    block_compare_close(counting->compare);
    os_mutex_free(counting->mutex);
}

static uint64_t table_rows(const struct tokmap_dataset_info *info)
{
    uint64_t rows = PAGE_IDS;
    if (info->width == 2)
        return 65536;
    while (rows < info->vocabulary && rows < FLAT_IDS)
        rows *= 2;
    return rows;
}

/* Counts the ids that occur, and compares the largest of them with the index. */
static enum tokmap_status counts_check(const struct counting *counting, struct tokmap_error *error)
{
    struct token_counts *counts = counting->counts;
    uint64_t largest = 0;
    for (uint64_t id = 0; (id = token_counts_next(counts, id)) < counts->vocabulary; id++) {
        counts->used++;
        largest = id;
    }
    if (!counts->used || counting->info.identity != TOKMAP_IDENTITY_FULL || largest <= counting->info.largest_id)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                     "id %" PRIu64 " occurs, but the largest id in the index is %" PRIu64
                     "; `tokmap verify` names the block; restore the file from a good copy, or pack the shard again",
                     largest, counting->info.largest_id);
}

enum tokmap_status token_counts_make(struct token_counts *counts, const struct tokmap_dataset *dataset,
                                     uint64_t threads, int progress, struct tokmap_error *error)
{
    struct counting counting = {.dataset = dataset, .info = info_of_dataset(dataset), .counts = counts};
    enum tokmap_status status = TOKMAP_OK;
    memset(counts, 0, sizeof *counts);
    const struct tokmap_dataset_info *info = &counting.info;
    counting.info.vocabulary = counts->vocabulary = min64(info->vocabulary, (uint64_t)1 << 32); /* ids have 32 bits */
    counts->tokens = info->shards ? info->tokens : min64(info->tokens, SYNTHETIC_TOKENS);
    counts->page_count = div_ceil(counts->vocabulary, PAGE_IDS);
    counts->pages = calloc(max64(1, counts->page_count), sizeof *counts->pages);
    counting.rows = table_rows(info);
    counting.page_limit = max64(1024, os_memory_limit() / 2 / PAGE_BYTES);
    const uint32_t wanted = range_threads(threads, counts->tokens, LOT);
    const uint32_t made = counters_new(&counting, wanted);
    if (!counts->pages || !made || os_mutex_new(&counting.mutex)) {
        counters_free(&counting, made);
        return error_set_memory(error, "the counters of ids", counting.rows * LANES * sizeof(uint32_t));
    }
    const struct range_share share = {"counting ids", "tokens", counts->tokens, LOT,
                                      made,           progress, lot_count,      &counting};
    status = block_compare_open(&counting.compare, dataset, error);
    if (!status)
        status = range_share_run(&share, error);
    for (uint32_t i = 0; i < made && !status; i++)
        status = table_flush(&counting, &counting.counters[i], error);
    counters_free(&counting, made);
    return status ? status : counts_check(&counting, error);
}

void token_counts_free(struct token_counts *counts)
{
    for (uint64_t i = 0; i < counts->page_count && counts->pages; i++)
        free(counts->pages[i]);
    free(counts->pages);
    memset(counts, 0, sizeof *counts);
}

uint64_t token_counts_of(const struct token_counts *counts, uint64_t id)
{
    const uint64_t *page = id < counts->vocabulary ? counts->pages[id / PAGE_IDS] : NULL;
    return page ? page[id % PAGE_IDS] : 0;
}

uint64_t token_counts_next(const struct token_counts *counts, uint64_t id)
{
    while (id < counts->vocabulary) {
        const uint64_t *page = counts->pages[id / PAGE_IDS];
        if (!page)
            id = (id / PAGE_IDS + 1) * PAGE_IDS;
        else if (page[id % PAGE_IDS])
            return id;
        else
            id++;
    }
    return counts->vocabulary;
}

uint64_t token_counts_top(const struct token_counts *counts, uint64_t *ids, uint64_t room)
{
    uint64_t used = 0;
    for (uint64_t id = 0; room && (id = token_counts_next(counts, id)) < counts->vocabulary; id++) {
        const uint64_t count = token_counts_of(counts, id);
        if (used == room && token_counts_of(counts, ids[used - 1]) >= count)
            continue;
        uint64_t at = used < room ? used++ : room - 1;
        for (; at && token_counts_of(counts, ids[at - 1]) < count; at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
    return used;
}

/* ---- masks ---- */

struct targets {
    const struct tokmap_dataset *dataset;
    uint64_t counted; /* accessed atomically */
};

static enum tokmap_status targets_count(void *user, uint32_t thread, uint64_t first, uint64_t total,
                                        struct tokmap_error *error)
{
    struct targets *targets = user;
    uint8_t bits[CHUNK / 8];
    (void)thread;
    for (uint64_t at = first, count; at < first + total; at += count) {
        count = min64(CHUNK, first + total - at);
        const enum tokmap_status status = tokmap_dataset_mask(targets->dataset, at, count, bits, error);
        if (status)
            return status;
        uint64_t sum = 0;
        for (uint64_t i = 0; i < div_ceil(count, 8); i++)
            sum += (uint64_t)__builtin_popcount(bits[i]);
        __atomic_fetch_add(&targets->counted, sum, __ATOMIC_RELAXED);
    }
    return TOKMAP_OK;
}

enum tokmap_status dataset_targets(const struct tokmap_dataset *dataset, uint64_t threads, int progress,
                                   uint64_t *targets, struct tokmap_error *error)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct targets counting = {.dataset = dataset};
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
    *targets = info.tokens;
    if (!info.masked)
        return TOKMAP_OK;
    const struct range_share share = {
        "counting targets", "tokens",      info.tokens, LOT, range_threads(threads, info.tokens, LOT),
        progress,           targets_count, &counting};
    status = range_share_run(&share, error);
    *targets = counting.counted;
    return status;
}
