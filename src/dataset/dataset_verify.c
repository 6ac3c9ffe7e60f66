/* SPDX-License-Identifier: MIT */
/*
 * dataset_verify.c - reads every byte of a dataset, on several threads.
 *
 * The work is divided into units, numbered over all shards. The first unit of a shard is its index; the others are runs
 * of UNIT_BLOCKS blocks of its tokens, then of its mask, and then files of values. Each thread takes the next number
 * until all units are taken. Of a part of a dataset, the index is verified as a whole, and of the tokens and the mask
 * the blocks that hold some of the part.
 *
 * Tokens are read with pread in parts that fit in the cache, and each part is scanned right after its read. A fault of
 * storage is therefore a status, and memory does not grow with the dataset. If the dataset is read through mappings
 * anyway, threads also try the mapping (token_parts.c).
 *
 * The returned error is the first fault by position (shard, index before tokens, offset), regardless of which thread
 * found a fault first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/struct_copy.h"
#include "dataset.h"
#include "dataset_fetch.h"
#include "dataset_foreign.h"
#include "dataset_values.h"
#include "format/index_verify.h"
#include "open_shards.h"
#include "opened_dataset.h"
#include "platform/os.h"
#include "token_parts.h"
#include "values_names.h"

#define REMEDY "restore the file from a good copy, or pack the shard again"
#define VALUES_REMEDY "restore the file from a good copy, or remove it and make these values again"

enum { UNIT_BLOCKS = 16 };

#define NO_PAGE UINT64_MAX
#define BLOCK_PAGES (BLOCK_BYTES / TOKEN_PAGE_BYTES)

struct shard_progress {
    uint64_t first_unit;
    uint64_t first_block, end_block; /* of the tokens */
    uint64_t first_mask, end_mask;   /* blocks of the mask */
    char (*values)[VALUES_NAME_MOST + 1];
    uint64_t value_count, value_room;
    uint64_t largest_said; /* by the index */
    bool whole;            /* all tokens of the shard are in the dataset */
    uint64_t readable;     /* bytes of the .bin that exist */
    uint64_t largest;      /* the largest id so far; accessed atomically */
    bool index_lost;  /* the index is truncated: its own verification reports that, and the hashes of blocks are missing
                       */
    uint32_t damaged; /* a block is missing or wrong, so `largest` is meaningless; accessed atomically */
    uint32_t cut;     /* the .bin became shorter while it was read; accessed atomically */
};

struct verify {
    const struct tokmap_dataset *dataset;
    struct tokmap_verify_options options;
    struct shard_progress *shards;
    uint64_t units, next; /* next is accessed atomically */
    struct values_names names;
    uint64_t total, done; /* bytes; done is accessed atomically */
    uint64_t blocks;      /* accessed atomically */
    uint32_t stop;        /* accessed atomically */

    struct os_mutex *mutex; /* protects the fields below and is held during calls of the caller's functions */
    uint64_t faults;
    bool interrupted;
    uint64_t first_shard;
    bool first_in_tokens;
    struct tokmap_error first;
};

struct worker {
    struct verify *verify;
    struct token_parts *parts;
    uint64_t shard; /* the shard whose index is being verified */
    uint64_t page;  /* the first page of the block that does not match its hash; NO_PAGE: none */
};

static bool stopped(const struct verify *verify)
{
    return __atomic_load_n(&verify->stop, __ATOMIC_RELAXED);
}

static void stop(struct verify *verify)
{
    __atomic_store_n(&verify->stop, 1, __ATOMIC_RELAXED);
}

static bool comes_before(const struct verify *verify, uint64_t shard, bool in_tokens, uint64_t offset)
{
    if (!verify->faults)
        return true;
    if (shard != verify->first_shard)
        return shard < verify->first_shard;
    if (in_tokens != verify->first_in_tokens)
        return !in_tokens;
    return offset < verify->first.offset;
}

static void report(struct verify *verify, uint64_t shard, bool in_tokens, const struct tokmap_error *fault)
{
    os_mutex_lock(verify->mutex);
    if (comes_before(verify, shard, in_tokens, fault->offset)) {
        verify->first_shard = shard;
        verify->first_in_tokens = in_tokens;
        verify->first = *fault;
    }
    verify->faults++;
    if (verify->options.fault && !verify->interrupted && verify->options.fault(verify->options.user, fault)) {
        verify->interrupted = true;
        stop(verify);
    }
    os_mutex_unlock(verify->mutex);
}

static void advance(struct verify *verify, uint64_t bytes)
{
    uint64_t done = __atomic_add_fetch(&verify->done, bytes, __ATOMIC_RELAXED);
    if (!verify->options.progress)
        return;
    os_mutex_lock(verify->mutex);
    /* Load the sum again, including what other threads have added, so that the caller never sees it decrease. */
    done = __atomic_load_n(&verify->done, __ATOMIC_RELAXED);
    if (!verify->interrupted && verify->options.progress(verify->options.user, done, verify->total)) {
        verify->interrupted = true;
        stop(verify);
    }
    os_mutex_unlock(verify->mutex);
}

/* ---- index ---- */

static int index_fault(void *user, const struct tokmap_error *error)
{
    struct worker *worker = user;
    report(worker->verify, worker->shard, false, error);
    return stopped(worker->verify);
}

static void verify_index(struct worker *worker, uint64_t number)
{
    worker->shard = number;
    const struct shard *shard = shard_held(worker->verify->dataset, number);
    const struct foreign_file *file = foreign_of(shard);
    struct tokmap_error fault;
    if (!file)
        (void)index_verify(&shard->index, index_fault, worker);
    else if (foreign_index_check(&file->documents, &fault))
        report(worker->verify, number, false, &fault);
    if (shard->store.sealed && !worker->verify->shards[number].index_lost && !worker->verify->shards[number].cut &&
        sealed_table_check(shard->store.sealed, shard->store.path, shard->store.fd, &fault))
        report(worker->verify, number, true, &fault);
    advance(worker->verify, file ? file->documents.bytes.count : shard->index.file_bytes);
}

/* ---- tokens ---- */

/* Reports that the .bin of a shard is truncated: once per shard, not once per block. */
static void report_cut(struct verify *verify, uint64_t number, uint64_t at)
{
    struct shard_progress *progress = &verify->shards[number];
    const struct shard *shard = shard_held(verify->dataset, number);
    if (__atomic_exchange_n(&progress->cut, 1, __ATOMIC_RELAXED))
        return;
    struct tokmap_error fault;
    (void)error_set(&fault, TOKMAP_ERROR_TRUNCATED, shard->store.path, at,
                    "the file ends at this byte, but its index says %" PRIu64 " bytes; " REMEDY, shard->store.bytes);
    report(verify, number, true, &fault);
}

/* Reports a part of which only `got` bytes are tokens. */
static void report_part(struct worker *worker, uint64_t number, int system, uint64_t offset, uint64_t at, size_t bytes)
{
    struct verify *verify = worker->verify;
    const struct shard *shard = shard_held(verify->dataset, number);
    struct tokmap_error fault;
    if (system == TOKEN_PARTS_FAILED) {
        report(verify, number, true, &worker->parts->failure);
        return;
    }
    if (!system) {
        report_cut(verify, number, stream_place(shard, at));
        return;
    }
    if (system < 0)
        (void)error_set(
            &fault, TOKMAP_ERROR_TOKEN, shard->store.path, stream_place(shard, at),
            "the element at this byte is not a token id: it is negative or does not fit in 32 bits; " REMEDY);
    else
        (void)error_set_system(&fault, system, shard->store.path, stream_place(shard, offset),
                               "block %" PRIu64 " of the tokens (bytes %" PRIu64 "..%" PRIu64
                               ") cannot be read from storage; " REMEDY,
                               offset / BLOCK_BYTES, stream_place(shard, offset), stream_place(shard, offset + bytes));
    report(verify, number, true, &fault);
}

/* Compares the hashes of the pages of a part with those in the index. Hashes that cannot be read count as right here:
 * the verification of the index reports that. */
static void compare_pages(struct worker *worker, const struct shard *shard, const uint32_t *found, uint64_t offset,
                          size_t bytes)
{
    uint32_t hashes[BLOCK_PAGES];
    const uint64_t first = offset / TOKEN_PAGE_BYTES, count = div_ceil(bytes, TOKEN_PAGE_BYTES);
    if (worker->page != NO_PAGE || index_token_pages(&shard->index, first, count, hashes, NULL))
        return;
    for (uint64_t i = 0; i < count && worker->page == NO_PAGE; i++)
        if (found[i] != hashes[i])
            worker->page = first + i;
}

/* Reads and scans one block. Returns false if it cannot be read completely. */
static bool scan_block(struct worker *worker, uint64_t number, const uint8_t *mapping, uint64_t offset, size_t bytes,
                       uint64_t *hash, uint64_t *largest)
{
    struct verify *verify = worker->verify;
    const struct shard *shard = shard_held(verify->dataset, number);
    size_t step = bytes == BLOCK_BYTES ? SCAN_PART_BYTES : bytes;
    const bool paged = shard->index.bytes && index_has_token_pages(&shard->index);
    uint32_t pages[BLOCK_PAGES];
    for (size_t at = 0; at < bytes; at += step) {
        const uint8_t *part;
        size_t got = 0;
        int system = token_parts_read(worker->parts, shard, mapping, offset + at, step, &part, &got);
        if (!system && got == step) {
            block_scan_part(worker->parts->scan, part, step, verify->dataset->width, at + step == bytes,
                            paged ? pages : NULL);
            if (paged)
                compare_pages(worker, shard, pages, offset + at, step);
            continue;
        }
        if (at) /* ends the incomplete block, so that the scan can be used for another one */
            block_scan_part(worker->parts->scan, worker->parts->buffer, 0, verify->dataset->width, true, NULL);
        __atomic_store_n(&verify->shards[number].damaged, 1, __ATOMIC_RELAXED);
        report_part(worker, number, system, offset, offset + at + got, bytes);
        return false;
    }
    block_scan_result(worker->parts->scan, hash, largest);
    return true;
}

static void check_block(struct worker *worker, uint64_t number, const uint8_t *mapping, uint64_t block, size_t bytes)
{
    struct verify *verify = worker->verify;
    struct shard_progress *progress = &verify->shards[number];
    const struct shard *shard = shard_held(verify->dataset, number);
    uint64_t offset = block * BLOCK_BYTES, hash, largest;
    struct tokmap_error fault;
    worker->page = NO_PAGE;
    if (!scan_block(worker, number, mapping, offset, bytes, &hash, &largest))
        return;
    __atomic_add_fetch(&verify->blocks, 1, __ATOMIC_RELAXED);
    const uint64_t from = stream_place(shard, offset), to = stream_place(shard, offset + bytes);
    if (shard->index.bytes && hash != index_block_hash(&shard->index, block)) {
        __atomic_store_n(&progress->damaged, 1, __ATOMIC_RELAXED);
        (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, shard->store.path, from,
                        "block %" PRIu64 " of the tokens (bytes %" PRIu64 "..%" PRIu64
                        ") does not match its hash in the index; " REMEDY,
                        block, from, to);
        report(verify, number, true, &fault);
        return;
    }
    if (worker->page != NO_PAGE) {
        const uint64_t page = worker->page * TOKEN_PAGE_BYTES;
        (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, shard->store.path, page,
                        "bytes %" PRIu64 "..%" PRIu64 " of the tokens do not match their hash in the pages section of "
                        "the index, although their block matches its hash: the index is wrong; pack the shard again",
                        page, min64(page + TOKEN_PAGE_BYTES, to));
        report(verify, number, true, &fault);
        return;
    }
    if (largest > shard->index.shard.largest_id) {
        if (shard->index.bytes)
            (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, shard->store.path, from,
                            "block %" PRIu64 " of the tokens (bytes %" PRIu64 "..%" PRIu64 ") contains id %" PRIu64
                            ", but the largest id in the index is %" PRIu64 "; " REMEDY,
                            block, from, to, largest, shard->index.shard.largest_id);
        else
            (void)error_set(&fault, TOKMAP_ERROR_TOKEN, shard->store.path, from,
                            "block %" PRIu64 " of the tokens (bytes %" PRIu64 "..%" PRIu64 ") contains id %" PRIu64
                            ", but ids must be below %" PRIu64 "; restore the file, or correct vocab=V in the name",
                            block, from, to, largest, shard->index.shard.vocabulary);
        report(verify, number, true, &fault);
    }
    uint64_t seen = __atomic_load_n(&progress->largest, __ATOMIC_RELAXED);
    while (seen < largest &&
           !__atomic_compare_exchange_n(&progress->largest, &seen, largest, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void verify_blocks(struct worker *worker, uint64_t number, uint64_t first)
{
    struct verify *verify = worker->verify;
    const struct shard *shard = shard_held(verify->dataset, number);
    const struct index *index = &shard->index;
    uint64_t last = min64(first + UNIT_BLOCKS, verify->shards[number].end_block), bytes_done = 0;
    bool lost = verify->shards[number].index_lost;
    struct tokmap_error fault;
    if (!lost && index->bytes && index_blocks_check(index, first, last, &fault)) {
        report(verify, number, false, &fault);
        lost = true;
    }
    const enum token_way way =
        token_parts_way(worker->parts, verify->dataset->reading == TOKMAP_READ_MAPPED &&
                                           store_has_views(&shard->store, verify->dataset->width));
    const uint8_t *mapping = NULL;
    if (way == BY_MAPPING)
        (void)dataset_shard_map(verify->dataset, number, &mapping, NULL);
    uint64_t started = os_clock_ns();
    for (uint64_t block = first; block < last && !stopped(verify); block++) {
        uint64_t bytes = min64(BLOCK_BYTES, index->token_bytes - block * BLOCK_BYTES);
        /* A block beyond the end of the file belongs to the fault that reports the truncation. */
        if (!lost && block * BLOCK_BYTES + bytes <= verify->shards[number].readable)
            check_block(worker, number, mapping, block, (size_t)bytes);
        else
            __atomic_store_n(&verify->shards[number].damaged, 1, __ATOMIC_RELAXED);
        bytes_done += bytes;
    }
    if (bytes_done)
        token_parts_note(worker->parts, way, (double)(os_clock_ns() - started) / (double)bytes_done);
    advance(verify, bytes_done);
}

/* ---- mask and values ---- */

/* A file of which each MiB from `first` on has a hash. */
struct hashed {
    int fd;
    const char *path, *name, *table; /* for messages: "mask"; where its hashes are */
    uint64_t first, end;
    uint64_t bits; /* of the bitmap that ends at `end` */
    const char *remedy;
};

/* Compares a block with its hash, and spare bits with 0. Returns its bytes. */
static uint64_t check_hashed(struct worker *worker, uint64_t number, const struct hashed *file, uint64_t block,
                             uint64_t hash)
{
    const uint64_t offset = file->first + block * BLOCK_BYTES, spare = file->bits % 8;
    const size_t bytes = (size_t)min64(BLOCK_BYTES, file->end - offset);
    const uint8_t *read = worker->parts->buffer;
    struct tokmap_error fault;
    size_t got = 0;
    int system = os_pread(file->fd, worker->parts->buffer, bytes, offset, &got);
    if (system)
        (void)error_set_system(&fault, system, file->path, offset,
                               "block %" PRIu64 " of the %s cannot be read from storage; %s", block, file->name,
                               file->remedy);
    else if (got < bytes)
        (void)error_set(&fault, TOKMAP_ERROR_TRUNCATED, file->path, offset + got,
                        "the %s ends at this byte, but its tokens need %" PRIu64 " bytes; %s", file->name, file->end,
                        file->remedy);
    else if (hash64(read, bytes) != hash)
        (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, file->path, offset,
                        "block %" PRIu64 " of the %s (bytes %" PRIu64 "..%" PRIu64
                        ") does not match its hash in the %s; %s",
                        block, file->name, offset, offset + bytes, file->table, file->remedy);
    else if (offset + bytes == file->end && spare && read[bytes - 1] >> spare)
        (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, file->path, file->end - 1,
                        "a bit of the %s that belongs to no token is not 0; %s", file->name, file->remedy);
    else
        return bytes;
    report(worker->verify, number, true, &fault);
    return bytes;
}

/* Verifies values of a shard: the header, the hash of the table, each MiB, and the zeros before the table. */
static void verify_values(struct worker *worker, uint64_t number, const char *what)
{
    struct verify *verify = worker->verify;
    struct values_file values;
    struct values_ranges *ranges;
    struct tokmap_error fault;
    if (dataset_values_file(&values, &ranges, verify->dataset, shard_held(verify->dataset, number), what, &fault)) {
        report(verify, number, true, &fault);
        return;
    }
    const struct hashed file = {values.fd, values.path, "values",      "table",
                                VALUES_AT, ranges->end, values.tokens, VALUES_REMEDY};
    for (uint64_t block = 0; block < ranges->count && ranges->end > VALUES_AT && !stopped(verify); block++)
        advance(verify, check_hashed(worker, number, &file, block, ranges->hashes[block]));
    uint64_t zeros = 0;
    size_t got = 0;
    if (!verify->dataset->cache && /* which has nothing between them */
        (os_pread(values.fd, &zeros, values.hashes_at - ranges->end, ranges->end, &got) || zeros)) {
        (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, values.path, ranges->end,
                        "the bytes before the hashes of the values are not zeros, or cannot be read; " VALUES_REMEDY);
        report(verify, number, true, &fault);
    }
    free(ranges);
    values_file_close(&values);
}

static void verify_mask(struct worker *worker, uint64_t number, uint64_t first)
{
    struct verify *verify = worker->verify;
    const struct shard *shard = shard_held(verify->dataset, number);
    const uint64_t last = min64(first + UNIT_BLOCKS, verify->shards[number].end_mask);
    const uint64_t hashes = shard->index.streams.offset + 8 + sizeof(struct stream_entry);
    uint64_t bytes_done = 0;
    struct tokmap_error fault;
    if (index_bytes_check(&shard->index, hashes + 8 * first, 8 * (last - first), &fault)) {
        report(verify, number, false, &fault);
        return;
    }
    const struct hashed file = {.fd = shard->mask.fd,
                                .path = shard->mask.path,
                                .name = "mask",
                                .table = "index",
                                .end = shard->mask.bytes,
                                .bits = shard->index.shard.tokens,
                                .remedy = REMEDY};
    for (uint64_t block = first; block < last && !stopped(verify); block++)
        bytes_done += check_hashed(worker, number, &file, block, index_mask_hash(&shard->index, block));
    advance(verify, bytes_done);
}

/* ---- threads ---- */

/* Verifies one unit of a shard, which is held. */
static void verify_unit(struct worker *worker, uint64_t number, uint64_t part)
{
    const struct shard_progress *shard = &worker->verify->shards[number];
    const uint64_t of_tokens = div_ceil(shard->end_block - shard->first_block, UNIT_BLOCKS);
    const uint64_t before_values = 1 + of_tokens + div_ceil(shard->end_mask - shard->first_mask, UNIT_BLOCKS);
    if (!part)
        verify_index(worker, number);
    else if (part <= of_tokens)
        verify_blocks(worker, number, shard->first_block + (part - 1) * UNIT_BLOCKS);
    else if (part >= before_values)
        verify_values(worker, number, shard->values[part - before_values]);
    else
        verify_mask(worker, number, shard->first_mask + (part - 1 - of_tokens) * UNIT_BLOCKS);
}

/* Runs in each thread. */
static void work(void *user, struct token_parts *parts)
{
    struct verify *verify = user;
    struct worker worker = {.verify = verify, .parts = parts};
    while (!stopped(verify)) {
        uint64_t unit = __atomic_fetch_add(&verify->next, 1, __ATOMIC_RELAXED);
        if (unit >= verify->units)
            break;
        const uint64_t first =
            last_at_most(&verify->shards->first_unit, sizeof *verify->shards, verify->dataset->shard_count, unit);
        const struct shard *shard;
        struct tokmap_error fault;
        if (shard_hold(verify->dataset, first, &shard, &fault)) {
            report(verify, first, false, &fault);
            continue;
        }
        verify_unit(&worker, first, unit - verify->shards[first].first_unit);
        shard_release(verify->dataset, first);
    }
}

/* ---- the whole ---- */

/* Finds the blocks that hold some of the part, and counts their bytes. */
static uint64_t choose_blocks(const struct shard *shard, struct shard_progress *progress)
{
    const uint64_t width = shard->index.shard.width, end = shard->place.skipped_tokens + shard->place.tokens;
    progress->whole = shard->place.tokens == shard->index.shard.tokens;
    progress->first_block = shard->place.skipped_tokens * width / BLOCK_BYTES;
    progress->end_block = shard->place.tokens ? div_ceil(end * width, BLOCK_BYTES) : progress->first_block;
    uint64_t bytes = min64(progress->end_block * BLOCK_BYTES, shard->index.token_bytes) -
                     min64(progress->first_block * BLOCK_BYTES, shard->index.token_bytes);
    if (shard->mask.fd >= 0 && shard->index.bytes && shard->place.tokens) {
        progress->first_mask = shard->place.skipped_tokens / (8 * BLOCK_BYTES);
        progress->end_mask = div_ceil(end, 8 * BLOCK_BYTES);
        bytes += min64(progress->end_mask * BLOCK_BYTES, shard->mask.bytes) - progress->first_mask * BLOCK_BYTES;
    }
    return bytes;
}

/* Finds the values of a shard, and counts their bytes. Those that cannot be opened are a fault, which their unit
 * reports. */
static void find_values(struct verify *verify, uint64_t number, const struct shard *shard)
{
    struct shard_progress *progress = &verify->shards[number];
    struct values_file values;
    struct values_ranges *ranges;
    struct tokmap_error fault;
    char what[VALUES_NAME_MOST + 1];
    if (!shard->index.bytes)
        return;
    if (values_names_begin(&verify->names, verify->dataset->cache ? shard->store.path : shard->index_path, &fault)) {
        report(verify, number, true, &fault);
        return;
    }
    while (values_names_next(&verify->names, what) &&
           list_room(&progress->values, progress->value_count, &progress->value_room, sizeof what)) {
        memcpy(progress->values[progress->value_count++], what, sizeof what);
        if (dataset_values_file(&values, &ranges, verify->dataset, shard, what, NULL))
            continue;
        verify->total += ranges->end - VALUES_AT;
        values_file_close(&values);
        free(ranges);
    }
    verify->units += progress->value_count;
}

/* Counts the work on a shard, and compares the lengths of its files with the index again. */
static void prepare_shard(struct verify *verify, uint64_t number, const struct shard *shard)
{
    struct shard_progress *progress = &verify->shards[number];
    progress->readable = shard->index.token_bytes;
    progress->largest_said = shard->index.bytes ? shard->index.shard.largest_id : 0;
    const struct foreign_file *file = foreign_of(shard);
    verify->total += (file ? file->documents.bytes.count : shard->index.file_bytes) + choose_blocks(shard, progress);
    verify->units += 1 + div_ceil(progress->end_block - progress->first_block, UNIT_BLOCKS) +
                     div_ceil(progress->end_mask - progress->first_mask, UNIT_BLOCKS);
    find_values(verify, number, shard);
    progress->index_lost = shard->index.bytes && index_was_cut(&shard->index);
    struct os_stat now;
    struct tokmap_error fault;
    int system = os_fstat(shard->store.fd, &now);
    if (system) {
        (void)error_set_system(&fault, system, shard->store.path, 0, "the tokens cannot be examined");
        report(verify, number, true, &fault);
    } else if (now.bytes < shard->store.bytes) {
        progress->readable = stream_bytes(shard, now.bytes);
        report_cut(verify, number, now.bytes);
    } else if (now.bytes > shard->store.bytes) {
        (void)error_set(&fault, TOKMAP_ERROR_TRUNCATED, shard->store.path, shard->store.bytes,
                        "the file is %" PRIu64 " bytes long, but its index says that it ends at this byte; " REMEDY,
                        now.bytes);
        report(verify, number, true, &fault);
    }
}

/* Counts the work. A shard that cannot be opened, or that does not match its line in the manifest, is a fault. */
static void prepare(struct verify *verify)
{
    for (uint64_t i = 0; i < verify->dataset->shard_count && !stopped(verify); i++) {
        const struct shard *shard;
        struct tokmap_error fault;
        verify->shards[i].first_unit = verify->units;
        dataset_fetch_shards(verify->dataset, i);
        if (shard_hold(verify->dataset, i, &shard, &fault)) {
            report(verify, i, false, &fault);
            continue;
        }
        prepare_shard(verify, i, shard);
        shard_release(verify->dataset, i);
    }
}

/* Checks the largest id of each shard, which is known only after all of its blocks have been read. */
static void check_largest(struct verify *verify)
{
    for (uint64_t i = 0; i < verify->dataset->shard_count; i++) {
        const struct shard_progress *progress = &verify->shards[i];
        const struct shard *shard;
        struct tokmap_error fault;
        if (progress->damaged || !progress->whole || progress->largest >= progress->largest_said ||
            shard_hold(verify->dataset, i, &shard, NULL))
            continue;
        (void)error_set(&fault, TOKMAP_ERROR_CORRUPT, shard->index.path, 0,
                        "the index says that the largest id is %" PRIu64
                        ", but the largest id of the tokens is %" PRIu64 "; pack the shard again",
                        progress->largest_said, progress->largest);
        report(verify, i, false, &fault);
        shard_release(verify->dataset, i);
    }
}

static enum tokmap_status conclude(struct verify *verify, struct tokmap_verify_result *result,
                                   struct tokmap_error *error)
{
    if (result) {
        const struct tokmap_verify_result made = {sizeof made, verify->done, verify->blocks, verify->faults};
        const enum tokmap_status status = struct_copy_out(result, &made, sizeof made, "tokmap_verify_result", error);
        if (status)
            return status;
    }
    if (verify->interrupted)
        return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET,
                         "the caller ended verify after %" PRIu64 " of %" PRIu64 " bytes and %" PRIu64 " faults",
                         verify->done, verify->total, verify->faults);
    if (!verify->faults)
        return TOKMAP_OK;
    if (error)
        *error = verify->first;
    return verify->first.status;
}

enum tokmap_status tokmap_dataset_verify(const struct tokmap_dataset *dataset,
                                         const struct tokmap_verify_options *options,
                                         struct tokmap_verify_result *result, struct tokmap_error *error)
{
    static const struct tokmap_verify_options defaults = TOKMAP_VERIFY_OPTIONS_INIT;
    struct verify verify;
    memset(&verify, 0, sizeof verify);
    verify.dataset = dataset;
    if (!dataset)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "the dataset is NULL");
    enum tokmap_status status =
        result ? struct_size_check(result, sizeof *result, "tokmap_verify_result", error) : TOKMAP_OK;
    if (status)
        return status;
    status = struct_copy_in(&verify.options, options, &defaults, sizeof verify.options, "tokmap_verify_options", error);
    if (status)
        return status;
    if (!dataset->shard_count) /* synthetic: nothing is stored, so nothing can be damaged */
        return conclude(&verify, result, error);
    verify.shards = calloc(dataset->shard_count, sizeof *verify.shards);
    if (!verify.shards || os_mutex_new(&verify.mutex)) {
        free(verify.shards);
        return error_set_memory(error, "the progress of verify", dataset->shard_count * sizeof *verify.shards);
    }
    prepare(&verify);
    status = token_parts_share("tokmap-verify", "the buffers of verify", verify.options.threads, verify.units, work,
                               &verify, error);
    if (!status) {
        if (!verify.interrupted)
            check_largest(&verify);
        status = conclude(&verify, result, error);
    }
    os_mutex_free(verify.mutex);
    for (uint64_t i = 0; i < dataset->shard_count; i++)
        free(verify.shards[i].values);
    values_names_free(&verify.names);
    free(verify.shards);
    return status;
}
