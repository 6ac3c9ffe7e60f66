/* SPDX-License-Identifier: MIT */
#include "parquet.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "parquet_input.h"
#include "parquet_thrift.h"

#define WINDOW_BYTES ((uint64_t)64 << 10)
#define HEADER_MOST ((uint64_t)64 << 20) /* statistics in a header can hold whole texts */
#define RATIO_MOST 4096                  /* largest ratio of compression of a page that is believed */
#define LARGE_BYTES ((uint64_t)32 << 20)

/* A page of which some fragments are in no run yet. */
struct queued_page {
    struct parquet_page *page;
    uint64_t taken; /* fragments */
};

/* The pages of one column in the current row group. */
struct feed {
    uint32_t column;
    struct parquet_chunk chunk;
    uint64_t at, end; /* place of the next page, and the end of the pages: nothing behind it is read */
    uint64_t entries; /* of the pages that were read */
    struct parquet_page *dictionary;
    struct queued_page *queue; /* [queue_first, queue_end) */
    uint64_t queue_first, queue_end, queue_capacity;
    uint64_t weight;                   /* memory that the pages in the queue take */
    uint64_t starts;                   /* rows that begin in the queue and are in no run yet */
    uint64_t list_weight, list_stored; /* memory and bytes of the pages that the last row is in */
    bool ended;                        /* all pages of the chunk were read */
    bool may_continue; /* the last row that begins in the queue may continue in a page that was not read */
    uint8_t *window;   /* bytes of the file from window_at on */
    uint64_t window_at, window_bytes, window_capacity;
};

struct parquet_source {
    struct parquet_source_options options;
    struct parquet_file *file;
    struct parquet_input input;
    struct parquet_part part;
    uint64_t group;     /* the current row group */
    bool group_open;    /* its feeds have begun */
    uint64_t group_row; /* the next row, from its first one */
    uint64_t at;
    enum tokmap_status failed; /* status after the rows that are ready */
    struct tokmap_error failure;
    struct feed feeds[PARQUET_LEAVES_MOST];
};

void parquet_rows_free(struct parquet_rows *rows)
{
    if (!rows)
        return;
    for (uint64_t i = 0; i < rows->slice_count; i++)
        parquet_page_release(rows->slices[i].page);
    free(rows->slices);
    parquet_file_release(rows->file);
    free(rows);
}

uint64_t parquet_fragment_bytes(const struct parquet_page *page, uint64_t fragment)
{
    const uint64_t stored = page->header.stored, fragments = page->fragment_count;
    assert(fragment < fragments);
    return (fragment + 1) * stored / fragments - fragment * stored / fragments;
}

/* ---- the pages of a column ---- */

static enum tokmap_status feed_fault(const struct parquet_source *source, const struct feed *feed, uint64_t offset,
                                     const char *reason, struct tokmap_error *error)
{
    return parquet_page_fault(source->file, source->group, feed->column, offset, TOKMAP_ERROR_CORRUPT, reason, error);
}

/* Reads the bytes from feed->at on into the window, `wanted` of them if the chunk has as many. */
static enum tokmap_status window_read(const struct parquet_source *source, struct feed *feed, uint64_t wanted,
                                      struct tokmap_error *error)
{
    const uint64_t count = min64(wanted, feed->end - feed->at);
    if (count > feed->window_capacity) {
        uint8_t *grown = realloc(feed->window, count);
        if (!grown)
            return error_set_memory(error, "the header of a Parquet page", count);
        feed->window = grown;
        feed->window_capacity = count;
    }
    feed->window_at = feed->at;
    feed->window_bytes = 0;
    const enum tokmap_status status =
        parquet_input_read(&source->input, source->file->path, feed->window, feed->at, count, error);
    if (!status)
        feed->window_bytes = count;
    return status;
}

/* Reads the header of the page at feed->at. */
static enum tokmap_status page_header_read(const struct parquet_source *source, struct feed *feed,
                                           struct parquet_page_header *header, struct tokmap_error *error)
{
    uint64_t wanted = WINDOW_BYTES;
    for (;;) {
        const uint64_t from = feed->at - feed->window_at;
        const bool inside = feed->at >= feed->window_at && from < feed->window_bytes;
        const char *fault = THRIFT_FAULT_SHORT;
        if (inside)
            fault = parquet_page_header_read(header, feed->window + from, feed->window_bytes - from);
        if (!fault)
            return TOKMAP_OK;
        const bool whole = inside && feed->window_at + feed->window_bytes == feed->end;
        if (strcmp(fault, THRIFT_FAULT_SHORT) != 0)
            return feed_fault(source, feed, feed->at, fault, error);
        if (whole || wanted > HEADER_MOST)
            return feed_fault(source, feed, feed->at, "its header does not end", error);
        if (inside && !from)
            wanted *= 8;
        const enum tokmap_status status = window_read(source, feed, wanted, error);
        if (status)
            return status;
    }
}

/* Reads the bytes of a page, which follow its header. Those that the window has are copied. */
static enum tokmap_status stored_read(const struct parquet_source *source, const struct feed *feed, uint64_t offset,
                                      uint64_t count, struct bytes_buffer *stored, struct tokmap_error *error)
{
    *stored = parquet_pool_buffer(source->file->pool, count + PARQUET_CODEC_SLACK);
    if (!bytes_reserve(stored, (size_t)count + PARQUET_CODEC_SLACK))
        return error_set_memory(error, "a page of a Parquet file", count);
    const uint64_t window_end = feed->window_at + feed->window_bytes;
    uint64_t have = 0;
    if (offset >= feed->window_at && offset < window_end) {
        have = min64(count, window_end - offset);
        memcpy(stored->bytes, feed->window + (offset - feed->window_at), have);
    }
    stored->count = (size_t)count;
    return parquet_input_read(&source->input, source->file->path, stored->bytes + have, offset + have, count - have,
                              error);
}

static uint64_t page_weight(const struct parquet_page *page)
{
    return parquet_page_weight(page->file, page->group, page->column, &page->header);
}

/* Appends a data page to the queue, which takes its reference. */
static enum tokmap_status queue_add(struct feed *feed, struct parquet_page *page, struct tokmap_error *error)
{
    if (feed->queue_end == feed->queue_capacity) {
        const uint64_t count = feed->queue_end - feed->queue_first;
        if (feed->queue_first <= feed->queue_capacity / 2 &&
            !list_room(&feed->queue, feed->queue_end, &feed->queue_capacity, sizeof *feed->queue))
            return error_set_memory(error, "the pages of a Parquet file", count * sizeof *feed->queue);
        memmove(feed->queue, feed->queue + feed->queue_first, count * sizeof *feed->queue);
        feed->queue_first = 0;
        feed->queue_end = count;
    }
    feed->queue[feed->queue_end++] = (struct queued_page){page, 0};
    feed->weight += page_weight(page);
    return TOKMAP_OK;
}

/* Checks the memory that `stored` bytes of pages take, before they take it: few bytes can claim any number. */
static enum tokmap_status weight_check(const struct parquet_source *source, const struct feed *feed, uint64_t offset,
                                       uint64_t weight, uint64_t stored, struct tokmap_error *error)
{
    char reason[200];
    const uint64_t most = source->options.page_most;
    if (!most || weight <= max64(most, stored * PARQUET_USUAL_RATIO))
        return TOKMAP_OK;
    (void)snprintf(reason, sizeof reason,
                   "it, or the list that it continues, takes %" PRIu64 " bytes of memory, and the limit is %" PRIu64
                   "; raise --max-record, or write the file with smaller pages",
                   weight, most);
    return parquet_page_fault(source->file, source->group, feed->column, offset, TOKMAP_ERROR_LIMIT, reason, error);
}

/* Notes that the last row is also in this page, which has the begins of `fragments` rows. */
static enum tokmap_status list_check(const struct parquet_source *source, struct feed *feed,
                                     const struct parquet_page *page, uint64_t fragments, struct tokmap_error *error)
{
    feed->list_weight = page_weight(page) + (fragments ? 0 : feed->list_weight);
    feed->list_stored = page->header.stored + (fragments ? 0 : feed->list_stored);
    return weight_check(source, feed, page->offset, feed->list_weight, feed->list_stored, error);
}

/* Takes a data page into the queue. */
static enum tokmap_status data_take(const struct parquet_source *source, struct feed *feed, struct parquet_page *page,
                                    struct tokmap_error *error)
{
    const bool list = source->file->footer.columns[feed->column].max_repetition > 0;
    const struct parquet_page_header *header = &page->header;
    uint64_t fragments = header->entries;
    if (header->entries > feed->chunk.values - feed->entries)
        return feed_fault(source, feed, page->offset, "the pages of the column have more values than the footer says",
                          error);
    if (!list && header->kind == PARQUET_PAGE_DATA_2 && header->rows != header->entries)
        return feed_fault(source, feed, page->offset, "it has an impossible number of rows", error);
    feed->entries += header->entries;
    feed->may_continue = list;
    if (!header->entries) {
        const enum tokmap_status status = parquet_page_decode(page, error);
        if (!status)
            parquet_page_release(page);
        return status;
    }
    if (list) {
        const enum tokmap_status status = parquet_page_divide(page, error);
        if (status)
            return status;
        fragments = page->fragment_count - page->continues;
        if (page->continues && feed->queue_first == feed->queue_end)
            return feed_fault(source, feed, page->offset, "it continues a row that did not begin", error);
    }
    enum tokmap_status status = list_check(source, feed, page, fragments, error);
    if (!status)
        status = queue_add(feed, page, error);
    if (!status)
        feed->starts += fragments;
    return status;
}

/* Reads the next page of the column, whatever it is. */
static enum tokmap_status page_read(struct parquet_source *source, struct feed *feed, struct tokmap_error *error)
{
    struct parquet_page_header header;
    struct bytes_buffer stored = {NULL, 0, 0};
    struct parquet_page *page;
    const uint64_t offset = feed->at;
    if (offset >= feed->end)
        return feed_fault(source, feed, offset, "the column ends before its last value", error);
    enum tokmap_status status = page_header_read(source, feed, &header, error);
    if (status)
        return status;
    if (header.stored > feed->end - feed->at || header.header_bytes > feed->end - feed->at - header.stored)
        return feed_fault(source, feed, offset, "it is longer than the rest of its column", error);
    feed->at += header.header_bytes + header.stored;
    const bool dictionary = header.kind == PARQUET_PAGE_DICTIONARY;
    if (header.kind == PARQUET_PAGE_INDEX)
        return TOKMAP_OK;
    if (dictionary && (feed->dictionary || feed->entries))
        return feed_fault(source, feed, offset, "its column has a second dictionary, or one after its values", error);
    /* Old writers left the header of the dictionary out of the chunk's size. */
    if (dictionary)
        feed->end = min64(feed->chunk.limit, feed->end + header.header_bytes);
    const uint64_t weight = parquet_page_weight(source->file, source->group, feed->column, &header);
    status = weight_check(source, feed, offset, weight, header.stored, error);
    if (status)
        return status;
    if (weight > LARGE_BYTES && source->options.before_large)
        source->options.before_large(source->options.user);
    status = stored_read(source, feed, offset + header.header_bytes, header.stored, &stored, error);
    if (!status)
        status = parquet_page_new(&page, source->file, source->group, feed->column, offset, &header, &stored,
                                  dictionary ? NULL : feed->dictionary, error);
    parquet_pool_buffer_back(source->file->pool, &stored);
    if (status)
        return status;
    if (dictionary) {
        feed->dictionary = page;
        return TOKMAP_OK;
    }
    status = data_take(source, feed, page, error);
    if (status)
        parquet_page_release(page);
    return status;
}

/* Ends a column, when all values that the footer counts were read. If another page has more, the footer is wrong, and
 * the last list may be cut there. */
static enum tokmap_status feed_end(const struct parquet_source *source, struct feed *feed, struct tokmap_error *error)
{
    struct parquet_page_header header;
    struct tokmap_error why;
    feed->ended = true;
    if (feed->at >= feed->chunk.offset + feed->chunk.bytes || page_header_read(source, feed, &header, &why) ||
        (header.kind != PARQUET_PAGE_DATA && header.kind != PARQUET_PAGE_DATA_2) || !header.entries)
        return TOKMAP_OK;
    feed->ended = false;
    return feed_fault(source, feed, feed->at, "the pages of the column have more values than the footer says", error);
}

/* Returns the rows in the queue that are complete. */
static uint64_t feed_ready(const struct feed *feed)
{
    return feed->starts - (feed->starts && feed->may_continue && !feed->ended);
}

/* Reads pages until `rows` rows are complete, or the column ends, or some rows are complete and the pages are large. */
static enum tokmap_status feed_fill(struct parquet_source *source, struct feed *feed, uint64_t rows,
                                    struct tokmap_error *error)
{
    while (feed_ready(feed) < rows && !feed->ended && !(feed_ready(feed) && feed->weight > LARGE_BYTES)) {
        const bool all = feed->entries == feed->chunk.values;
        const enum tokmap_status status = all ? feed_end(source, feed, error) : page_read(source, feed, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

static void feed_clear(struct feed *feed)
{
    for (uint64_t i = feed->queue_first; i < feed->queue_end; i++)
        parquet_page_release(feed->queue[i].page);
    parquet_page_release(feed->dictionary);
    *feed = (struct feed){.queue = feed->queue,
                          .queue_capacity = feed->queue_capacity,
                          .window = feed->window,
                          .window_capacity = feed->window_capacity};
}

/* ---- runs ---- */

static struct parquet_slice *slice_add(struct parquet_rows *rows)
{
    const bool room = list_room(&rows->slices, rows->slice_count, &rows->slice_capacity, sizeof *rows->slices);
    return room ? &rows->slices[rows->slice_count++] : NULL;
}

/* Moves the fragments of the next `count` rows, which are complete, from the queue to the run. */
static enum tokmap_status feed_take(struct feed *feed, uint64_t count, struct parquet_rows *rows,
                                    struct tokmap_error *error)
{
    assert(count <= feed->starts);
    feed->starts -= count;
    for (uint64_t i = feed->queue_first; i < feed->queue_end; i++) {
        struct queued_page *queued = &feed->queue[i];
        struct parquet_page *page = queued->page;
        const uint64_t continued =
            !queued->taken && page->continues; /* fragments of a row that is in the run already */
        const uint64_t some = min64(page->fragment_count - queued->taken, count + continued);
        if (!some)
            break;
        struct parquet_slice *slice = slice_add(rows);
        if (!slice)
            return error_set_memory(error, "the rows of a Parquet file", 0);
        *slice = (struct parquet_slice){page, queued->taken, some};
        count -= some - continued;
        queued->taken += some;
        if (queued->taken < page->fragment_count) {
            parquet_page_hold(page);
            break;
        }
        feed->queue_first++; /* its reference passes to the run */
        feed->weight -= page_weight(page);
    }
    assert(!count);
    return TOKMAP_OK;
}

/* About how many bytes the values of a page have. A dictionary's texts count as often as they are used. */
static uint64_t page_bytes(const struct parquet_page *page)
{
    const struct parquet_footer *footer = &page->file->footer;
    const struct parquet_page_header *header = &page->header, *dictionary = &page->header;
    const bool compressed =
        footer->chunks[page->group * footer->column_count + page->column].codec != PARQUET_CODEC_NONE;
    const uint64_t ratio = compressed ? RATIO_MOST : 1;
    uint64_t bytes = min64(header->bytes, header->stored * ratio);
    if (page->dictionary && page->dictionary->header.entries) {
        dictionary = &page->dictionary->header;
        const uint64_t texts = min64(dictionary->bytes, dictionary->stored * ratio);
        bytes += mul_div(texts, header->entries, dictionary->entries);
    }
    return bytes;
}

/* Chooses how many rows the next run has: about run_bytes of the first column. */
static enum tokmap_status run_size(struct parquet_source *source, uint64_t *rows, struct tokmap_error *error)
{
    struct feed *feed = &source->feeds[0];
    uint64_t bytes = 0, chosen = 0;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = feed->queue_first; !status; i++) {
        if (i == feed->queue_end) {
            if (feed->ended || (chosen && (2 * bytes > source->options.run_bytes || feed->weight > LARGE_BYTES)))
                break;
            const uint64_t before = feed->queue_end - feed->queue_first;
            status = feed_fill(source, feed, feed_ready(feed) + 1, error);
            i = feed->queue_first + before;
            if (status || i == feed->queue_end)
                break;
        }
        const struct queued_page *queued = &feed->queue[i];
        const uint64_t fragments = queued->page->fragment_count, left = fragments - queued->taken;
        const uint64_t all = mul_div(page_bytes(queued->page), left, fragments);
        const uint64_t room = source->options.run_bytes - min64(bytes, source->options.run_bytes);
        uint64_t some = left;
        /* A page that is a little too large is not divided. */
        if (all > room + room / 2)
            some = all ? mul_div(left, room, all) : left;
        if (!some && chosen)
            break;
        chosen += max64(some, 1);
        bytes += all;
        if (some < left || chosen >= source->options.rows_most)
            break;
    }
    /* The only row at hand may continue in the next page, however large it is. */
    if (!status && !feed_ready(feed))
        status = feed_fill(source, feed, 1, error);
    *rows = min64(min64(chosen, source->options.rows_most), feed_ready(feed));
    return status;
}

static enum tokmap_status group_begin(struct parquet_source *source)
{
    const struct parquet_footer *footer = &source->file->footer;
    for (uint32_t c = 0; c < footer->column_count; c++) {
        struct feed *feed = &source->feeds[c];
        feed_clear(feed);
        feed->column = c;
        feed->chunk = footer->chunks[source->group * footer->column_count + c];
        feed->at = feed->chunk.offset;
        feed->end = feed->chunk.offset + feed->chunk.bytes;
    }
    source->group_open = true;
    source->group_row = 0;
    return TOKMAP_OK;
}

/* Ends a group whose rows are all in runs. Checks that no column has more. */
static enum tokmap_status group_end(struct parquet_source *source, struct tokmap_error *error)
{
    for (uint32_t c = 0; c < source->file->footer.column_count; c++) {
        struct feed *feed = &source->feeds[c];
        const enum tokmap_status status = feed_fill(source, feed, 1, error);
        if (status)
            return status;
        if (feed->starts)
            return feed_fault(source, feed, feed->at, "a column has more rows than its row group", error);
        feed_clear(feed);
    }
    source->group_open = false;
    source->group++;
    return TOKMAP_OK;
}

/* Makes a run of `count` rows, which all columns have. */
static enum tokmap_status rows_make(struct parquet_source *source, uint64_t count, struct parquet_rows **rows,
                                    struct tokmap_error *error)
{
    const struct parquet_footer *footer = &source->file->footer;
    struct parquet_rows *made = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the rows of a Parquet file", sizeof *made);
    parquet_file_hold(source->file);
    made->file = source->file;
    made->group = source->group;
    made->first = footer->groups[source->group].first_row + source->group_row;
    made->count = count;
    for (uint32_t c = 0; c < footer->column_count; c++) {
        made->begins[c] = made->slice_count;
        const uint64_t before = made->slice_count;
        const enum tokmap_status status = feed_take(&source->feeds[c], count, made, error);
        made->begins[c + 1] = made->slice_count;
        if (status) {
            parquet_rows_free(made);
            return status;
        }
        for (uint64_t i = before; i < made->slice_count && !c; i++)
            for (uint64_t k = 0; k < made->slices[i].count; k++)
                made->stored_bytes += parquet_fragment_bytes(made->slices[i].page, made->slices[i].first + k);
    }
    source->group_row += count;
    source->at = max64(source->at, source->feeds[0].at);
    *rows = made;
    return TOKMAP_OK;
}

/* Chooses the size of the next run and reads what it needs. *count is then the number of rows that all columns have,
 * also after an error. */
static enum tokmap_status run_prepare(struct parquet_source *source, uint64_t *count, struct tokmap_error *error)
{
    const struct parquet_footer *footer = &source->file->footer;
    const uint64_t rest = footer->groups[source->group].rows - source->group_row;
    enum tokmap_status status = run_size(source, count, error);
    *count = min64(*count, rest);
    for (uint32_t c = 1; c < footer->column_count; c++) {
        struct feed *feed = &source->feeds[c];
        struct tokmap_error why;
        const enum tokmap_status filled = feed_fill(source, feed, *count, &why);
        if (filled && !status) {
            status = filled;
            *error = why;
        }
        *count = min64(*count, feed_ready(feed));
    }
    if (!status && !*count)
        status = feed_fault(source, &source->feeds[0], source->feeds[0].at,
                            "a column has fewer rows than its row group", error);
    return status;
}

enum tokmap_status parquet_source_next(struct parquet_source *source, struct parquet_rows **rows,
                                       struct tokmap_error *error)
{
    const struct parquet_footer *footer = &source->file->footer;
    uint64_t count;
    *rows = NULL;
    while (!source->failed && source->group < source->part.end) {
        enum tokmap_status status = TOKMAP_OK;
        if (!source->group_open)
            status = group_begin(source);
        if (source->group_row == footer->groups[source->group].rows) {
            source->failed = status ? status : group_end(source, &source->failure);
            continue;
        }
        source->failed = run_prepare(source, &count, &source->failure);
        if (count)
            return rows_make(source, count, rows, error);
    }
    if (!source->failed)
        return source->input.check && source->input.check(source->input.user, error) ? TOKMAP_ERROR_MISMATCH
                                                                                     : TOKMAP_END;
    if (source->failed && error)
        *error = source->failure;
    return source->failed;
}

/* ---- open and close ---- */

/* Returns the pages of the first column in a row group. */
static const struct parquet_chunk *first_chunk(const struct parquet_footer *footer, uint64_t group)
{
    assert(group < footer->group_count && footer->column_count);
    return &footer->chunks[group * footer->column_count];
}

/* Returns the part that has the row groups [first, end) of a file that was cut there, or all of a file. */
static struct parquet_part parquet_cut_part(const struct parquet_footer *footer, uint64_t first, uint64_t end)
{
    struct parquet_part part = {.first = first, .end = end};
    part.begin = first ? first_chunk(footer, first)->offset : 0;
    part.bytes = (end < footer->group_count ? first_chunk(footer, end)->offset : footer->file_bytes) - part.begin;
    return part;
}

/* Chooses the row groups that are read. */
static enum tokmap_status part_choose(struct parquet_source *source, struct tokmap_error *error)
{
    const struct parquet_source_options *options = &source->options;
    const struct parquet_footer *footer = &source->file->footer;
    const uint64_t hash = options->groups_hash ? parquet_cut_hash(footer) : 0;
    if (options->groups_hash && !hash)
        return error_set_memory(error, "the parts of a Parquet file", 0);
    if (hash != options->groups_hash)
        return error_set(error, TOKMAP_ERROR_MISMATCH, source->file->path, footer->data_end,
                         "the row groups of the Parquet file are not those that it had when its parts were divided "
                         "among units of work; bring the old file back, or start over with --no-resume");
    source->part = hash ? parquet_cut_part(footer, options->first_group, options->end_group)
                        : (struct parquet_part){.first = 0, .end = footer->group_count, .bytes = footer->file_bytes};
    source->group = source->part.first;
    source->at = source->part.begin;
    return TOKMAP_OK;
}

enum tokmap_status parquet_source_open(struct parquet_source **source, const char *path,
                                       const struct parquet_input *input, const struct parquet_source_options *options,
                                       struct parquet_pool *pool, struct tokmap_error *error)
{
    struct parquet_source *made = *source = calloc(1, sizeof *made);
    struct parquet_file *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (!made || !file || !copy) {
        if (input->close)
            input->close(input->user);
        free(made);
        free(file);
        free(copy);
        *source = NULL;
        return error_set_memory(error, "the reader of a Parquet file", sizeof *made);
    }
    parquet_pool_hold(pool);
    *file = (struct parquet_file){.references = 1, .path = copy, .pool = pool, .page_most = options->page_most};
    made->file = file;
    made->options = *options;
    made->input = *input;
    enum tokmap_status status = input->read ? TOKMAP_OK : parquet_input_open(&made->input, copy, error);
    if (!status)
        status = parquet_footer_read(&file->footer, &made->input, copy, options->wanted, options->wanted_count, error);
    if (!status)
        status = part_choose(made, error);
    if (status) {
        parquet_source_close(made);
        *source = NULL;
    }
    return status;
}

bool parquet_source_begin(struct parquet_source *source, uint64_t group)
{
    if (group && (group < source->part.first || group >= source->part.end))
        return false;
    source->group = group ? group : source->part.first;
    if (source->input.plan)
        source->input.plan(source->input.user, &source->file->footer, source->group, source->part.end);
    return true;
}

void parquet_source_close(struct parquet_source *source)
{
    if (!source)
        return;
    for (uint32_t c = 0; c < PARQUET_LEAVES_MOST; c++) {
        feed_clear(&source->feeds[c]);
        free(source->feeds[c].queue);
        free(source->feeds[c].window);
    }
    if (source->input.close)
        source->input.close(source->input.user);
    parquet_file_release(source->file);
    free(source);
}

uint64_t parquet_source_version(const struct parquet_source *source)
{
    return source->input.version;
}

const struct parquet_footer *parquet_source_footer(const struct parquet_source *source)
{
    return &source->file->footer;
}

uint64_t parquet_source_bytes(const struct parquet_source *source)
{
    return source->part.bytes;
}

uint64_t parquet_source_at(const struct parquet_source *source)
{
    return source->at - source->part.begin;
}

/* ---- cuts ---- */

static enum tokmap_status part_add(struct parquet_cut *cut, uint64_t *capacity, const struct parquet_part *part,
                                   struct tokmap_error *error)
{
    if (!list_room(&cut->parts, cut->count, capacity, sizeof *cut->parts))
        return error_set_memory(error, "the parts of a Parquet file", sizeof *cut->parts);
    cut->parts[cut->count++] = *part;
    return TOKMAP_OK;
}

enum tokmap_status parquet_cut_make(struct parquet_cut *cut, const struct parquet_footer *footer, uint64_t part_bytes,
                                    struct tokmap_error *error)
{
    uint64_t capacity = 0, first = 0, before = UINT64_MAX, filled = 0;
    enum tokmap_status status = TOKMAP_OK;
    assert(part_bytes);
    *cut = (struct parquet_cut){.hash = parquet_cut_hash(footer)};
    if (!cut->hash)
        return error_set_memory(error, "the parts of a Parquet file", 0);
    for (uint64_t group = 0; group < footer->group_count && !status; group++) {
        const struct parquet_chunk *chunk = first_chunk(footer, group);
        if (!chunk->values)
            continue;
        if (chunk->offset < filled) { /* not in this order */
            cut->count = 0;
            return TOKMAP_OK;
        }
        filled = chunk->offset + chunk->bytes;
        const uint64_t multiple = chunk->offset / part_bytes;
        if (before != UINT64_MAX && multiple != before) {
            const struct parquet_part part = parquet_cut_part(footer, first, group);
            status = part_add(cut, &capacity, &part, error);
            first = group;
        }
        before = multiple;
    }
    if (status || !cut->count)
        return status;
    const struct parquet_part last = parquet_cut_part(footer, first, footer->group_count);
    return part_add(cut, &capacity, &last, error);
}

void parquet_cut_free(struct parquet_cut *cut)
{
    free(cut->parts);
    *cut = (struct parquet_cut){.count = 0};
}

uint64_t parquet_cut_hash(const struct parquet_footer *footer)
{
    struct hash_state *state = hash_state_new();
    const uint64_t file[] = {footer->file_bytes, footer->data_end, footer->group_count};
    if (!state)
        return 0;
    hash_state_add(state, file, sizeof file);
    for (uint64_t group = 0; group < footer->group_count; group++) {
        const struct parquet_chunk *chunk = first_chunk(footer, group);
        const uint64_t numbers[] = {footer->groups[group].rows, chunk->offset, chunk->bytes, chunk->values};
        hash_state_add(state, numbers, sizeof numbers);
    }
    const uint64_t hash = hash_state_64(state);
    hash_state_free(state);
    return max64(hash, 1);
}
