/* SPDX-License-Identifier: MIT */
#include "parquet_open.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format_choice.h"
#include "remote/remote_url.h"

#define RUN_ROWS 8192
#define PAGE_LEAST ((uint64_t)256 << 20) /* memory that a page may take in any case */
#define PAGE_RECORDS 4                   /* or as much as so many of the longest records */
#define PARTS_MOST ((uint64_t)1 << 20)   /* that are planned; what follows is fetched when it is read */
#define GAP_SHARE 32                     /* a piece has at most this part of its bytes between its columns */

void parquet_shared_free(struct parquet_shared *shared)
{
    parquet_pool_release(shared->pool);
    remote_ahead_free(shared->ahead);
    *shared = (struct parquet_shared){NULL, NULL};
}

/* ---- files of URLs ---- */

struct plan {
    struct ahead_part *parts;
    uint64_t count, capacity, pieces;
};

static bool part_add(struct plan *plan, uint64_t offset, uint64_t bytes, uint64_t piece)
{
    if (!bytes || plan->count == PARTS_MOST ||
        !list_room(&plan->parts, plan->count, &plan->capacity, sizeof *plan->parts))
        return !bytes;
    plan->parts[plan->count++] = (struct ahead_part){.offset = offset, .bytes = bytes, .piece = (uint32_t)piece};
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const struct ahead_part *one = a, *other = b;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

/* Adds the columns of a row group, which are in the order of the file. Each round adds the piece whose column has been
 * planned least. */
static bool group_add(struct plan *plan, const struct ahead_part *columns, uint64_t count)
{
    uint64_t done[PARQUET_LEAVES_MOST] = {0}, left = 0;
    for (uint64_t i = 0; i < count; i++)
        left += columns[i].bytes;
    while (left) {
        uint64_t next = 0;
        for (uint64_t i = 1; i < count; i++)
            if ((double)done[i] / (double)columns[i].bytes < (double)done[next] / (double)columns[next].bytes)
                next = i;
        const uint64_t some = min64(columns[next].bytes - done[next], AHEAD_PIECE), piece = plan->pieces++;
        if (!part_add(plan, columns[next].offset + done[next], some, piece))
            return false;
        uint64_t together = some, end = columns[next].offset + some;
        done[next] += some;
        left -= some;
        /* Whole columns that follow closely come in the same answer. */
        for (uint64_t i = next + 1; i < count && some == columns[next].bytes && !done[i]; i++) {
            const uint64_t gap = columns[i].offset - end;
            if (gap * GAP_SHARE > together || columns[i].offset + columns[i].bytes - columns[next].offset > AHEAD_PIECE)
                break;
            if (!part_add(plan, columns[i].offset, columns[i].bytes, piece))
                return false;
            done[i] = columns[i].bytes;
            together += columns[i].bytes;
            end = columns[i].offset + columns[i].bytes;
            left -= columns[i].bytes;
        }
    }
    return true;
}

static void fetched_plan(void *user, const struct parquet_footer *footer, uint64_t first, uint64_t end)
{
    struct plan plan = {.parts = NULL};
    bool room = true;
    for (uint64_t group = first; group < end && room; group++) {
        const struct parquet_chunk *chunks = &footer->chunks[group * footer->column_count];
        struct ahead_part columns[PARQUET_LEAVES_MOST];
        uint64_t count = 0;
        for (uint32_t c = 0; c < footer->column_count; c++)
            if (chunks[c].values && chunks[c].bytes)
                columns[count++] = (struct ahead_part){.offset = chunks[c].offset, .bytes = chunks[c].bytes};
        qsort(columns, count, sizeof *columns, by_offset);
        room = group_add(&plan, columns, count);
    }
    if (plan.count)
        qsort(plan.parts, plan.count, sizeof *plan.parts, by_offset);
    ahead_file_plan(user, plan.parts, plan.count, (uint32_t)plan.pieces);
}

static enum tokmap_status fetched_read(void *user, void *into, uint64_t offset, uint64_t count,
                                       struct tokmap_error *error)
{
    return ahead_file_read(user, into, offset, (size_t)count, error);
}

static void fetched_close(void *user)
{
    ahead_file_close(user);
}

static enum tokmap_status fetched_open(struct parquet_input *input, const char *path,
                                       const struct corpus_footers *footers, struct remote_ahead *ahead,
                                       struct tokmap_error *error)
{
    struct ahead_file *file;
    struct bytes_buffer kept = {0};
    if (footers)
        footers->keep(footers->name, path, &kept);
    const enum tokmap_status status = ahead_file_open(&file, ahead, path, footers ? &kept : NULL, error);
    bytes_free(&kept);
    *input = (struct parquet_input){
        .user = file, .asked = true, .read = fetched_read, .plan = fetched_plan, .close = fetched_close};
    if (!status)
        ahead_file_about(file, &input->bytes, &input->version);
    return status;
}

static void fetched_keep(struct ahead_file *file, const char *path, const struct corpus_footers *footers)
{
    struct bytes_buffer kept = {0};
    if (ahead_file_keep(file, &kept))
        footers->keep(footers->name, path, &kept);
    bytes_free(&kept);
}

/* ---- any file ---- */

/* Sets the columns that the options need, in the order of record_fields(), and returns how many. */
static size_t wanted_fields(const struct corpus_options *options, struct parquet_wanted *wanted)
{
    const char *names[RECORD_FIELDS_MOST];
    const size_t count = record_fields(options, names), content = 1 + (size_t)(options->second_field != NULL);
    for (size_t i = 0; i < count; i++) {
        const enum parquet_use use = i < count - options->beside_count ? PARQUET_USE_VALUE : PARQUET_USE_BESIDE;
        wanted[i] = (struct parquet_wanted){names[i], use, field_option(options, names[i])};
        if (i < content)
            wanted[i].use = options->content == CORPUS_CONTENT_IDS        ? PARQUET_USE_NUMBERS
                            : options->content == CORPUS_CONTENT_MESSAGES ? PARQUET_USE_MESSAGES
                                                                          : PARQUET_USE_TEXT;
    }
    return count;
}

static uint64_t page_most(uint64_t record_limit)
{
    return max64(PAGE_LEAST, min64(record_limit, UINT64_MAX / PAGE_RECORDS) * PAGE_RECORDS);
}

enum tokmap_status parquet_open(struct parquet_source **source, const char *path, const struct corpus_options *options,
                                const struct corpus_range *part, struct parquet_shared *shared,
                                struct tokmap_error *error)
{
    struct parquet_wanted wanted[RECORD_FIELDS_MOST];
    struct parquet_input input = {.user = NULL};
    const bool remote = remote_kind(path) != REMOTE_NONE;
    const struct parquet_source_options made = {.first_group = part ? part->begin : 0,
                                                .end_group = part ? part->end : 0,
                                                .groups_hash = part ? part->groups : 0,
                                                .wanted = wanted,
                                                .wanted_count = wanted_fields(options, wanted),
                                                .run_bytes = CORPUS_PARQUET_BATCH * options->batch_bytes,
                                                .rows_most = RUN_ROWS,
                                                .page_most = page_most(options->record_limit),
                                                .before_large = options->before_large,
                                                .user = options->user};
    *source = NULL;
    char *shown = remote_shown(path);
    enum tokmap_status status = shown ? TOKMAP_OK : error_set_memory(error, "the name of an input", 0);
    if (!status && !shared->pool)
        status = parquet_pool_new(&shared->pool, error);
    if (!status && remote && !shared->ahead)
        status = remote_ahead_new(&shared->ahead, options->stop, options->user, &options->select.watch, error);
    if (!status && remote)
        status = fetched_open(&input, path, options->footers, shared->ahead, error);
    if (!status)
        status = parquet_source_open(source, shown, &input, &made, shared->pool, error);
    if (!status && remote && part && options->footers)
        fetched_keep(input.user, path, options->footers);
    free(shown);
    return status;
}
