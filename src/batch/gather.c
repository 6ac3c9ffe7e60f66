/*
 * gather.c - see gather.h.
 *
 * Mapped reading. A load from a page that the file no longer has is a signal in the caller's program, so a page is
 * touched only after os_map_populate() has made it present, and that answers with a status. One bit a page remembers it;
 * the bits lie in memory that costs nothing until it is written. Populating takes microseconds, so it goes on beside the
 * work: a window whose pages are not all populated is read by pread, and afterwards, while all is warm, a few
 * neighbourhoods a batch are populated. Mapped reading thus begins as fast as pread, without a stall, and ends faster;
 * what is not in the page cache is read by pread only, which does not let a fault read a page at a time with the device's
 * own readahead around it. Populated pages can leave the page cache when memory is short, and a load would then wait for
 * such a fault: the loader looks now and then, and has all of them forgotten. A file that is cut shorter loses its pages:
 * its size is compared once a batch.
 *
 * pread. The descriptor is advised to random access, so that the kernel reads the pages of a window and no more.
 *
 * The pages of shard s have the bits from floor(first_token * width / page) + s on: at least as many as it has pages,
 * for no sum over the shards before it.
 */
#include "gather.h"

#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/error.h"
#include "copy.h"
#include "dataset/dataset.h"
#include "platform/os.h"

#define NEIGHBOURHOOD ((uint64_t)64 << 10) /* populated at once: what the kernel maps for one fault */
#define WINDOWS_A_NEIGHBOURHOOD 8          /* of a batch, one neighbourhood is populated for so many */
#define ASK_AT_ONCE ((uint64_t)128 << 10)  /* the kernel may cut a longer request short */
#define PREFETCH_AT_MOST ((uint64_t)32 << 10)
#define LINE 64

/* What is asked of one shard again and again. All zero until it is touched. */
struct shard_view {
    bool known;
    bool in_memory;         /* the file lives there: it is always in the page cache */
    int fd;
    const char *path;
    const uint8_t *tokens;  /* the mapping, for mapped reading */
    uint64_t first_token, end_token;
    uint64_t bytes;
    uint64_t first_bit;     /* of its pages in `populated` */
    uint64_t size_compared; /* number of the batch in which that was last done */
};

struct gather {
    const struct tokmap_dataset *dataset;
    const struct copy_kernels *kernels;
    uint64_t tokens, row_tokens;
    uint64_t vocabulary; /* ids must be below it; UINT64_MAX: not checked */
    uint64_t page, page_shift;
    uint32_t width, width_shift;
    bool mapped, warm, drop_behind, in_order;
    bool synthetic;   /* tokens are made where they are wanted: no shard, no file, no page */
    bool cannot_tell; /* what is in the page cache */
    bool cannot_populate;
    uint64_t batch;    /* number of the one at hand */
    uint64_t populate; /* neighbourhoods that may still be populated in it */
    uint64_t current;  /* shard that was used last */
    struct shard_view *views;
    uint64_t views_bytes;
    uint64_t *populated;
    uint64_t populated_bytes;
    int ask_fd; /* the request that is not out yet */
    uint64_t ask_from, ask_to;
    uint64_t bytes;
};

/* A stretch of a window inside one shard. */
struct piece {
    struct shard_view *view;
    uint64_t offset, count; /* bytes in the .bin; tokens */
};

/* ---- opening ---- */

enum tokmap_status gather_open(struct gather **made, const struct tokmap_dataset *dataset,
                               const struct gather_options *options, struct tokmap_error *error)
{
    struct tokmap_dataset_info info;
    *made = NULL;
    dataset_describe(dataset, &info);
    struct gather *gather = calloc(1, sizeof *gather);
    if (!gather)
        return error_set_memory(error, "a loader", sizeof *gather);
    gather->dataset = dataset;
    gather->kernels = copy_variant(0);
    gather->tokens = info.tokens;
    gather->row_tokens = options->row_tokens;
    gather->width = info.width;
    gather->width_shift = info.width == 4 ? 2 : 1;
    gather->vocabulary = options->unchecked || info.vocabulary > (info.width == 4 ? UINT32_MAX : UINT16_MAX)
                             ? UINT64_MAX
                             : info.vocabulary;
    gather->page = os_page_bytes();
    gather->page_shift = (uint64_t)__builtin_ctzll(gather->page);
    gather->synthetic = dataset_is_synthetic(dataset);
    gather->mapped = options->reading == TOKMAP_READ_MAPPED && !gather->synthetic;
    gather->drop_behind = options->drop_behind && !gather->mapped;
    gather->in_order = options->in_order;
    gather->current = 0;
    gather->ask_fd = -1;
    gather->views_bytes = info.shards * sizeof *gather->views;
    gather->populated_bytes = ((info.tokens << gather->width_shift) / gather->page + info.shards + 128) / 64 * 8;
    void *views = NULL, *populated = NULL;
    int system = gather->synthetic ? 0 : os_memory_new(gather->views_bytes, false, &views);
    if (!system && gather->mapped)
        system = os_memory_new(gather->populated_bytes, false, &populated);
    gather->views = views;
    gather->populated = populated;
    if (system) {
        gather_close(gather);
        return error_set_memory(error, "the table of shards", info.shards * sizeof *gather->views);
    }
    if (populated) /* a child has none of the pages that its parent populated */
        os_memory_zero_on_fork(populated, gather->populated_bytes);
    *made = gather;
    return TOKMAP_OK;
}

void gather_close(struct gather *gather)
{
    if (!gather)
        return;
    os_memory_free(gather->views, gather->views_bytes);
    os_memory_free(gather->populated, gather->populated_bytes);
    free(gather);
}

void gather_begin(struct gather *gather, uint64_t windows)
{
    gather->batch++;
    gather->populate = div_ceil(windows, WINDOWS_A_NEIGHBOURHOOD);
}

void gather_expect_warm(struct gather *gather, bool warm)
{
    gather->warm = warm;
}

uint64_t gather_bytes(const struct gather *gather)
{
    return __atomic_load_n(&gather->bytes, __ATOMIC_RELAXED);
}

/* ---- windows and their pieces ---- */

static enum tokmap_status view_fill(struct gather *gather, uint64_t shard, struct tokmap_error *error)
{
    struct shard_view *view = &gather->views[shard];
    struct shard_tokens found;
    dataset_shard_tokens(gather->dataset, shard, &found);
    if (gather->mapped) {
        enum tokmap_status status = dataset_shard_map(gather->dataset, shard, &view->tokens, error);
        if (status)
            return status;
    }
    view->fd = found.fd;
    view->path = found.path;
    view->first_token = found.first_token;
    view->end_token = found.first_token + found.tokens;
    view->bytes = found.bytes;
    view->first_bit = (found.first_token << gather->width_shift) / gather->page + shard;
    view->known = true;
    view->in_memory = os_file_is_memory(view->fd);
    os_advise_random(view->fd);
    return TOKMAP_OK;
}

/* The first piece of the `left` tokens from `token`, which may be the dataset's end: the seam. */
static enum tokmap_status piece_at(struct gather *gather, uint64_t token, uint64_t left, struct piece *piece,
                                   struct tokmap_error *error)
{
    if (token >= gather->tokens)
        token -= gather->tokens;
    struct shard_view *view = &gather->views[gather->current];
    if (__builtin_expect(!view->known || token < view->first_token || token >= view->end_token, 0)) {
        gather->current = dataset_shard_of(gather->dataset, token, gather->current);
        view = &gather->views[gather->current];
        if (!view->known) {
            enum tokmap_status status = view_fill(gather, gather->current, error);
            if (status)
                return status;
        }
    }
    piece->view = view;
    piece->offset = (token - view->first_token) << gather->width_shift;
    piece->count = min64(left, view->end_token - token);
    return TOKMAP_OK;
}

/* ---- faults ---- */

static enum tokmap_status fault_cut(const struct shard_view *view, uint64_t size, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_TRUNCATED, view->path, size,
                     "the file ends here, its index says %" PRIu64 " bytes: it was cut while it was open; restore it, "
                     "or pack it again under another name",
                     view->bytes);
}

static enum tokmap_status fault_read(const struct shard_view *view, int system, uint64_t offset,
                                     struct tokmap_error *error)
{
    return error_set_system(error, system, view->path, offset,
                            "cannot read tokens; check the storage that holds the file, then go on from the last cursor");
}

static __attribute__((cold, noinline)) enum tokmap_status fault_token(const struct gather *gather, const struct piece *piece,
                                                                      const uint8_t *copied, struct tokmap_error *error)
{
    for (uint64_t i = 0; i < piece->count; i++) {
        uint32_t id = gather->width == 4 ? load32(copied + i * 4) : load16(copied + i * 2);
        if (id >= gather->vocabulary)
            return error_set(error, TOKMAP_ERROR_TOKEN, piece->view->path, piece->offset + i * gather->width,
                             "id %" PRIu32 " is not in the vocabulary of %" PRIu64 " ids: the file was damaged or changed; "
                             "`tokmap verify` names the block",
                             id, gather->vocabulary);
    }
    return TOKMAP_OK;
}

/* ---- mapped reading ---- */

static bool bits_all(const uint64_t *bits, uint64_t first, uint64_t end)
{
    for (uint64_t word = first / 64; word <= (end - 1) / 64; word++) {
        uint64_t mask = ~(uint64_t)0;
        if (word == first / 64)
            mask &= ~(uint64_t)0 << (first % 64);
        if (word == (end - 1) / 64)
            mask &= ~(uint64_t)0 >> (63 - (end - 1) % 64);
        if ((bits[word] & mask) != mask)
            return false;
    }
    return true;
}

static void bits_set(uint64_t *bits, uint64_t first, uint64_t end)
{
    for (uint64_t word = first / 64; word <= (end - 1) / 64; word++) {
        uint64_t mask = ~(uint64_t)0;
        if (word == first / 64)
            mask &= ~(uint64_t)0 << (first % 64);
        if (word == (end - 1) / 64)
            mask &= ~(uint64_t)0 >> (63 - (end - 1) % 64);
        bits[word] |= mask;
    }
}

/* The piece's pages in its file: *first up to, not including, *end. */
static void pages_of(const struct gather *gather, const struct piece *piece, uint64_t *first, uint64_t *end)
{
    *first = piece->offset >> gather->page_shift;
    *end = ((piece->offset + (piece->count << gather->width_shift) - 1) >> gather->page_shift) + 1;
}

static bool is_populated(const struct gather *gather, const struct piece *piece)
{
    uint64_t first, end;
    pages_of(gather, piece, &first, &end);
    return bits_all(gather->populated, piece->view->first_bit + first, piece->view->first_bit + end);
}

/* Whether one page is in the page cache: 1, 0, or -1 if the kernel cannot tell. */
static int page_cached(struct gather *gather, const struct shard_view *view, uint64_t page)
{
    uint8_t byte;
    size_t got;
    if (view->in_memory)
        return 1;
    if (!gather->cannot_tell) {
        int system = os_pread_cached(view->fd, &byte, 1, page << gather->page_shift, &got);
        if (system != ENOTSUP)
            return system != EAGAIN; /* other failures are met, and told, by the read itself */
        gather->cannot_tell = true;
    }
    return gather->mapped ? os_map_resident(view->tokens + (page << gather->page_shift), gather->page) : -1;
}

static int pages_cached(struct gather *gather, const struct shard_view *view, uint64_t first, uint64_t end)
{
    int cached = page_cached(gather, view, first);
    return cached == 1 && end - first > 1 ? page_cached(gather, view, end - 1) : cached;
}

/* The pages of a piece that has just been read, and those around it if they seem to be in the page cache too. What does
 * not succeed is tried again another time, and has harmed nothing. */
static __attribute__((noinline)) void populate(struct gather *gather, const struct piece *piece)
{
    struct shard_view *view = piece->view;
    uint64_t first, end, pages = round_up(view->bytes, gather->page) >> gather->page_shift;
    pages_of(gather, piece, &first, &end);
    uint64_t around = NEIGHBOURHOOD >> gather->page_shift;
    if (around > 1) {
        uint64_t low = round_down(first, around), high = min64(round_up(end, around), pages);
        if (pages_cached(gather, view, low, high) == 1) {
            first = low;
            end = high;
        }
    }
    int system = os_map_populate(view->tokens + (first << gather->page_shift), (end - first) << gather->page_shift);
    gather->cannot_populate = system == ENOTSUP;
    if (!system)
        bits_set(gather->populated, view->first_bit + first, view->first_bit + end);
}

static enum tokmap_status compare_size(struct gather *gather, struct shard_view *view, struct tokmap_error *error)
{
    struct os_stat found;
    int system = os_fstat(view->fd, &found);
    if (system)
        return fault_read(view, system, TOKMAP_NO_OFFSET, error);
    if (found.bytes < view->bytes)
        return fault_cut(view, found.bytes, error);
    view->size_compared = gather->batch;
    return TOKMAP_OK;
}

/* ---- pread ---- */

static enum tokmap_status read_piece(struct gather *gather, const struct piece *piece, uint8_t *into, bool *cold,
                                     struct tokmap_error *error)
{
    const struct shard_view *view = piece->view;
    size_t bytes = (size_t)(piece->count << gather->width_shift), got = 0, more = 0;
    int system = 0;
    if (!gather->cannot_tell) {
        system = os_pread_cached(view->fd, into, bytes, piece->offset, &got);
        if (system == ENOTSUP)
            gather->cannot_tell = true;
        if (system != ENOTSUP && got < bytes)
            *cold = true;
    }
    if (got < bytes) {
        system = os_pread(view->fd, into + got, bytes - got, piece->offset + got, &more);
        if (system)
            return fault_read(view, system, piece->offset + got + more, error);
        if (got + more < bytes)
            return fault_cut(view, piece->offset + got + more, error);
    }
    if (gather->drop_behind) {
        uint64_t end = piece->offset + bytes;
        uint64_t from = round_down(piece->offset, gather->page);
        end = gather->in_order ? round_down(end, gather->page) : round_up(end, gather->page);
        if (end > from)
            os_advise_drop(view->fd, from, end - from);
    }
    return TOKMAP_OK;
}

/* ---- a window ---- */

static enum tokmap_status gather_piece(struct gather *gather, const struct piece *piece, uint8_t *into, bool *cold,
                                       struct tokmap_error *error)
{
    enum tokmap_status status;
    bool checked = gather->vocabulary != UINT64_MAX, wide = gather->width == 4;
    const struct copy_kernels *kernels = gather->kernels;
    uint32_t largest = 0;
    if (gather->mapped && is_populated(gather, piece)) {
        if (piece->view->size_compared != gather->batch) {
            status = compare_size(gather, piece->view, error);
            if (status)
                return status;
        }
        const uint8_t *from = piece->view->tokens + piece->offset;
        if (checked)
            largest = wide ? kernels->copy32(into, from, piece->count) : kernels->copy16(into, from, piece->count);
        else
            memcpy(into, from, (size_t)(piece->count << gather->width_shift));
    } else {
        status = read_piece(gather, piece, into, cold, error);
        if (status)
            return status;
        if (gather->mapped && gather->warm && !*cold && gather->populate && !gather->cannot_populate) {
            gather->populate--;
            populate(gather, piece);
        }
        if (checked)
            largest = wide ? kernels->largest32(into, piece->count) : kernels->largest16(into, piece->count);
    }
    if (__builtin_expect(largest >= gather->vocabulary, 0))
        return fault_token(gather, piece, into, error);
    return TOKMAP_OK;
}

static enum tokmap_status make_window(struct gather *gather, uint64_t first, uint8_t *into, struct tokmap_error *error)
{
    first -= first >= gather->tokens ? gather->tokens : 0;
    const uint64_t before_seam = min64(gather->row_tokens, gather->tokens - first);
    enum tokmap_status status = tokmap_dataset_copy(gather->dataset, first, before_seam, into, error);
    return status ? status
                  : tokmap_dataset_copy(gather->dataset, 0, gather->row_tokens - before_seam,
                                        into + (before_seam << gather->width_shift), error);
}

static enum tokmap_status read_window(struct gather *gather, uint64_t first, uint8_t *into, bool *cold,
                                      struct tokmap_error *error)
{
    struct piece piece;
    for (uint64_t done = 0; done < gather->row_tokens; done += piece.count) {
        enum tokmap_status status = piece_at(gather, first + done, gather->row_tokens - done, &piece, error);
        if (!status)
            status = gather_piece(gather, &piece, into + (done << gather->width_shift), cold, error);
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

enum tokmap_status gather_window(struct gather *gather, uint64_t first, void *row, bool *cold, struct tokmap_error *error)
{
    enum tokmap_status status = gather->synthetic ? make_window(gather, first, row, error)
                                                  : read_window(gather, first, row, cold, error);
    if (status)
        return status;
    __atomic_store_n(&gather->bytes, gather->bytes + (gather->row_tokens << gather->width_shift), __ATOMIC_RELAXED);
    return TOKMAP_OK;
}

/* ---- looking ahead ---- */

void gather_prefetch(const struct gather *gather, uint64_t first)
{
    if (!gather->mapped)
        return; /* of a synthetic dataset there are no views either */
    const struct shard_view *view = &gather->views[gather->current];
    if (first < view->first_token || first >= view->end_token)
        view = &gather->views[dataset_shard_of(gather->dataset, first, gather->current)];
    if (!view->known || first + gather->row_tokens > view->end_token)
        return;
    struct piece piece = {NULL, (first - view->first_token) << gather->width_shift, gather->row_tokens};
    uint64_t begin, end;
    pages_of(gather, &piece, &begin, &end);
    if (!bits_all(gather->populated, view->first_bit + begin, view->first_bit + end))
        return; /* walking the page table for a page that is not there costs more than it brings */
    const uint8_t *from = view->tokens + round_down(piece.offset, LINE);
    const uint8_t *to = view->tokens + piece.offset + min64(gather->row_tokens << gather->width_shift, PREFETCH_AT_MOST);
    for (; from < to; from += LINE)
        __builtin_prefetch(from, 0, 3);
}

bool gather_is_warm(struct gather *gather, uint64_t first)
{
    struct piece piece;
    if (gather->synthetic)
        return true;
    for (uint64_t done = 0; done < gather->row_tokens; done += piece.count) {
        if (piece_at(gather, first + done, gather->row_tokens - done, &piece, NULL))
            return false;
        uint64_t begin, end;
        pages_of(gather, &piece, &begin, &end);
        if (pages_cached(gather, piece.view, begin, end) != 1)
            return false;
    }
    return true;
}

bool gather_is_mapped(const struct gather *gather)
{
    return gather->mapped;
}

void gather_forget(struct gather *gather)
{
    void *fresh;
    if (!gather->mapped || os_memory_new(gather->populated_bytes, false, &fresh))
        return;
    os_memory_zero_on_fork(fresh, gather->populated_bytes);
    os_memory_free(gather->populated, gather->populated_bytes);
    gather->populated = fresh;
}

void gather_flush(struct gather *gather)
{
    for (uint64_t from = gather->ask_from; gather->ask_fd >= 0 && from < gather->ask_to; from += ASK_AT_ONCE)
        os_read_ahead(gather->ask_fd, from, min64(gather->ask_to - from, ASK_AT_ONCE));
    gather->ask_fd = -1;
}

void gather_ask(struct gather *gather, uint64_t first)
{
    struct piece piece;
    if (gather->synthetic)
        return;
    for (uint64_t done = 0; done < gather->row_tokens; done += piece.count) {
        if (piece_at(gather, first + done, gather->row_tokens - done, &piece, NULL))
            return; /* the window itself will say it */
        if (gather->mapped && is_populated(gather, &piece))
            continue;
        uint64_t begin, end;
        pages_of(gather, &piece, &begin, &end);
        begin <<= gather->page_shift;
        end <<= gather->page_shift;
        if (gather->ask_fd == piece.view->fd && begin <= gather->ask_to && end >= gather->ask_from) {
            gather->ask_from = min64(gather->ask_from, begin);
            gather->ask_to = max64(gather->ask_to, end);
            continue;
        }
        gather_flush(gather);
        gather->ask_fd = piece.view->fd;
        gather->ask_from = begin;
        gather->ask_to = end;
    }
}
