/* SPDX-License-Identifier: MIT */
/*
 * uncounted.c - see uncounted.h.
 *
 * Bits of the stream say which tokens count, and bits of the row which targets do not, so they are copied with one
 * token's offset and inverted. Example: a row of two extents, tokens 100 to 104 and 7 to 9 of the dataset, in which the
 * stream says that tokens 102, 103, and 8 count. Target t is token t + 1 of the row, so the first token of the row is
 * no target at all:
 *
 *     row           100  101  102  103  104 |  7    8    9
 *     stream              0    1    1    0     0    1    0
 *     target              0    1    2    3     4    5    6       bits 0, 3, 4, and 6 are set
 *
 * The bits are read as gather.c reads tokens, and for the same reasons: from a mapping where the pages are known to be
 * present, and otherwise with pread, after which the pages are populated. A row has few bytes of mask (256 for 2048
 * tokens), so that a system call for each would take longer than everything else that is done for the row. Pages are
 * populated at once in neighborhoods, as far as those are in the page cache. They are used only in the warm state. When
 * that state ends, and when a look (at one use in LOOK_EVERY) finds a page gone, all of a mask's pages may have left
 * the page cache: they are read with pread again, which reports failing storage as a status and has a deadline.
 *
 * The guarantee is that of tokens: before a batch uses a mapping, the size of the file is compared, so a mask that was
 * cut is a status. A mask that was replaced by another file of its name stays open and is used until the dataset
 * closes.
 */
#include "uncounted.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bit_copy.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "mark.h"
#include "platform/os.h"

#define AT_ONCE 8192 /* bits that are read with pread at once; a multiple of 64 */
#define LINE 64
#define LOOK_EVERY 64
#define MAPPED_SHARDS_MOST 1024 /* shards of a dataset whose masks are mapped, if others of its shards are closed */
#define NEIGHBORHOOD ((uint64_t)64 << 10) /* bytes populated at once; a power of two */

/* The mask of one shard. All members are zero until the shard is used for the first time. */
struct mask_view {
    bool known;
    struct dataset_mask mask;        /* only its numbers, if the shard was opened again since: */
    uint64_t opening;                /* number of that */
    uint64_t first_token, end_token; /* of the shard in the dataset */
    const uint8_t *map;              /* NULL: not mapped */
    uint8_t *populated;              /* one byte per neighborhood: 1 if all its pages were populated */
    uint64_t look;                   /* residency's number of the look in which the size was last compared */
    uint64_t forgotten;              /* residency's count when the table of neighborhoods was last cleared */
};

struct uncounted {
    struct residency_source *source;
    const struct tokmap_dataset *dataset;
    uint64_t unit;   /* tokens of the dataset that share a bit: see dataset_values.h. Tokens below are counted in it */
    uint64_t tokens; /* in the dataset */
    uint64_t shards;
    uint64_t current; /* the shard used last */
    bool used;        /* bits have been asked for */
    uint32_t until_look;
    struct mask_view *views;
    uint64_t views_bytes;
};

enum tokmap_status uncounted_open(struct uncounted **made, struct residency_source *source, struct tokmap_error *error)
{
    void *table;
    *made = NULL;
    if (!dataset_has_mask(source->views.dataset))
        return TOKMAP_OK;
    const struct tokmap_dataset_info info = info_of_dataset(source->views.dataset);
    struct uncounted *uncounted = calloc(1, sizeof *uncounted);
    if (!uncounted)
        return error_set_memory(error, "a loader", sizeof *uncounted);
    uncounted->source = source;
    uncounted->dataset = source->views.dataset;
    uncounted->unit = dataset_unit(uncounted->dataset);
    uncounted->tokens = info.tokens / uncounted->unit;
    uncounted->shards = info.shards;
    uncounted->views_bytes = info.shards * sizeof *uncounted->views;
    if (os_memory_new(uncounted->views_bytes, false, &table)) {
        free(uncounted);
        return error_set_memory(error, "the table of masks", info.shards * sizeof *uncounted->views);
    }
    uncounted->views = table;
    *made = uncounted;
    return TOKMAP_OK;
}

/* Returns the bytes of a view's table of neighborhoods. */
static uint64_t neighborhoods(const struct mask_view *view)
{
    return div_ceil(view->mask.bytes, NEIGHBORHOOD);
}

void uncounted_close(struct uncounted *uncounted)
{
    if (!uncounted)
        return;
    for (uint64_t i = 0; i < uncounted->shards; i++) {
        const struct mask_view *view = &uncounted->views[i];
        if (!view->map)
            continue;
        os_unmap(view->map, view->mask.bytes);
        os_memory_free(view->populated, neighborhoods(view));
    }
    os_memory_free(uncounted->views, uncounted->views_bytes);
    free(uncounted);
}

/* Maps a mask of bits, if tokens are read from mappings too. A failure is no error: the mask is read with pread. */
static void map_mask(const struct uncounted *uncounted, struct mask_view *view)
{
    const void *map;
    void *populated;
    if (view->mask.fd < 0 || view->mask.wide || !view->mask.bytes || os_fetched_of(view->mask.fd) ||
        !uncounted->source->views.mapped || (uncounted->source->views.pins && uncounted->shards > MAPPED_SHARDS_MOST) ||
        os_memory_new(neighborhoods(view), false, &populated))
        return;
    if (os_map_file(view->mask.fd, view->mask.bytes, &map)) {
        os_memory_free(populated, neighborhoods(view));
        return;
    }
    /* A child has none of the populated pages of its parent. */
    (void)os_memory_zero_on_fork(populated, neighborhoods(view));
    view->populated = populated;
    view->map = map;
}

/* Finds the view of the shard that has a token. If the shard may be closed, it is held as that of the tokens is. */
static enum tokmap_status view_find(struct uncounted *uncounted, uint64_t token, struct mask_view **found,
                                    struct tokmap_error *error)
{
    struct mask_view *view = *found = &uncounted->views[uncounted->current];
    struct shard_views *views = &uncounted->source->views;
    struct stretch stretch = {.view = NULL};
    if (views->pins) {
        const enum tokmap_status status = shard_views_stretch(views, token * uncounted->unit, 1, &stretch, error);
        if (status)
            return status;
    }
    if (view->known && token >= view->first_token && token < view->end_token &&
        (!views->pins || view->opening == stretch.view->file.opening))
        return TOKMAP_OK;
    uncounted->current = dataset_shard_of(uncounted->dataset, token * uncounted->unit, uncounted->current);
    view = *found = &uncounted->views[uncounted->current];
    if (view->known && !views->pins)
        return TOKMAP_OK;
    struct shard_tokens tokens;
    dataset_shard_tokens(uncounted->dataset, uncounted->current, &tokens);
    dataset_shard_mask(uncounted->dataset, uncounted->current, &view->mask);
    view->first_token = tokens.first_token / uncounted->unit;
    view->end_token = view->first_token + tokens.tokens / uncounted->unit;
    view->opening = tokens.opening;
    if (!view->known)
        map_mask(uncounted, view);
    view->known = true;
    return TOKMAP_OK;
}

/* Returns 64 bits of a mask from bit `first` on; those past its last byte are 0. */
static uint64_t load_bits(const uint8_t *bits, uint64_t bytes, uint64_t first)
{
    const uint64_t at = first / 8, shift = first % 8;
    uint64_t word = 0;
    if (at + 9 <= bytes)
        return load64(bits + at) >> shift | (shift ? (uint64_t)bits[at + 8] << (64 - shift) : 0);
    memcpy(&word, bits + at, (size_t)min64(bytes - at, 8));
    return word >> shift | (shift && at + 8 < bytes ? (uint64_t)bits[at + 8] << (64 - shift) : 0);
}

/* Sets the row's bits [at, at + count) that are 0 in the mask from its bit `first` on. They are in one word. */
static void put_zeros_word(uint64_t *words, uint64_t at, const uint8_t *bits, uint64_t bytes, uint64_t first,
                           uint64_t count)
{
    assert(count && at % 64 + count <= 64);
    words[at / 64] |= (~load_bits(bits, bytes, first) & ~(uint64_t)0 >> (64 - count)) << at % 64;
}

/* Does the same for bits in any number of words. Words of which all bits are in the range are written without a look at
 * what they were, since they are 0. */
static void put_zeros(uint64_t *words, uint64_t at, const uint8_t *bits, uint64_t bytes, uint64_t first, uint64_t count)
{
    const uint64_t head = min64(count, (64 - at % 64) % 64);
    if (head)
        put_zeros_word(words, at, bits, bytes, first, head);
    at += head, first += head, count -= head;
    const uint64_t inside = bytes - first / 8 < 9 ? 0 : (bytes - first / 8 - 1) / 8; /* words, and a byte after each */
    const uint64_t whole = min64(count / 64, inside), shift = first % 8;
    const uint8_t *from = bits + first / 8;
    for (uint64_t i = 0; i < whole; i++) /* moved in two steps, since 64 bits cannot be moved at once */
        words[at / 64 + i] = ~(load64(from + i * 8) >> shift | (uint64_t)from[i * 8 + 8] << 1 << (63 - shift));
    for (uint64_t done = whole * 64, part; done < count; done += part) {
        part = min64(count - done, 64);
        put_zeros_word(words, at + done, bits, bytes, first + done, part);
    }
}

/* Treats no page of a mask as populated any more. */
static void forget(struct mask_view *view, uint64_t forgotten)
{
    memset(view->populated, 0, neighborhoods(view));
    view->forgotten = forgotten;
}

/* Returns whether bytes [from, end) of a mask are populated and the file still has them. */
static bool is_present(struct uncounted *uncounted, struct mask_view *view, uint64_t from, uint64_t end)
{
    const struct residency_shared *shared = uncounted->source->shared;
    uint64_t bytes;
    if (!view->map || !shared->warm)
        return false;
    if (view->forgotten != shared->forgotten)
        forget(view, shared->forgotten);
    for (uint64_t i = from / NEIGHBORHOOD; i <= (end - 1) / NEIGHBORHOOD; i++)
        if (!view->populated[i])
            return false;
    if (!uncounted->until_look--) {
        uncounted->until_look = LOOK_EVERY;
        if (!os_map_resident(view->map + from, 1)) {
            forget(view, shared->forgotten);
            return false;
        }
    }
    if (view->look != shared->look) {
        if (os_file_bytes(view->mask.fd, &bytes) || bytes < view->mask.bytes)
            return false; /* reading it reports what is wrong */
        view->look = shared->look;
    }
    return true;
}

/* Populates the neighborhoods of bytes [from, end), as far as they are in the page cache. Failures do no harm. */
static void populate(const struct uncounted *uncounted, const struct mask_view *view, uint64_t from, uint64_t end)
{
    if (!view->map || !uncounted->source->shared->warm)
        return;
    for (uint64_t i = from / NEIGHBORHOOD; i <= (end - 1) / NEIGHBORHOOD; i++) {
        const uint64_t low = i * NEIGHBORHOOD, bytes = min64(NEIGHBORHOOD, view->mask.bytes - low);
        if (!view->populated[i] && os_map_resident(view->map + low, bytes))
            view->populated[i] = !os_map_populate(view->map + low, bytes);
    }
}

static int read_with_deadline(void *user, int fd, void *into, uint64_t bytes, uint64_t offset, size_t *got)
{
    return residency_read(user, fd, into, bytes, offset, got);
}

/* Fills the bits of targets [at, at + count), which are the tokens of the view's shard from `first` on. */
static enum tokmap_status fill_range(struct uncounted *uncounted, struct mask_view *view, uint64_t first, uint64_t at,
                                     uint64_t count, uint64_t *words, struct tokmap_error *error)
{
    const uint64_t bit = view->mask.first_bit + first - view->first_token;
    const uint64_t from = bit / 8, end = (bit + count - 1) / 8 + 1;
    if (is_present(uncounted, view, from, end)) {
        put_zeros(words, at, view->map, view->mask.bytes, bit, count);
        return TOKMAP_OK;
    }
    const struct mask_reader reader = {read_with_deadline, uncounted->source};
    uint8_t bits[AT_ONCE / 8];
    for (uint64_t done = 0, part; done < count; done += part) {
        part = min64(count - done, AT_ONCE);
        enum tokmap_status status = dataset_mask_read(uncounted->dataset, first + done, part, bits, &reader, error);
        if (status)
            return status;
        put_zeros(words, at + done, bits, (part + 7) / 8, 0, part);
    }
    populate(uncounted, view, from, end);
    return TOKMAP_OK;
}

enum tokmap_status uncounted_fill(struct uncounted *uncounted, const struct tokmap_extent *extents, uint64_t count,
                                  uint64_t targets, uint64_t *words, struct tokmap_error *error)
{
    uint64_t row = 0; /* the extent's first token in the row */
    memset(words, 0, mark_words(targets) * sizeof *words);
    if (uncounted)
        uncounted->used = true;
    for (uint64_t i = 0; i < count && row <= targets; row += extents[i++].tokens) {
        /* The row's first token is no target, and tokens beyond the last target do not matter. */
        const uint64_t skip = row ? 0 : 1, end = min64(extents[i].tokens, targets + 1 - row);
        if (extent_is_padding(&extents[i]) && skip < end)
            bit_fill((uint8_t *)words, row + skip - 1, end - skip);
        if (extent_is_padding(&extents[i]) || !uncounted)
            continue;
        assert(extents[i].first_token < uncounted->tokens && extents[i].tokens <= uncounted->tokens);
        for (uint64_t done = skip, part; done < end; done += part) {
            const uint64_t first = (extents[i].first_token + done) % uncounted->tokens;
            struct mask_view *view;
            enum tokmap_status status = view_find(uncounted, first, &view, error);
            if (status)
                return status;
            part = min64(end - done, view->end_token - first);
            if (view->mask.fd < 0)
                continue; /* all tokens of a shard without a mask count */
            status = fill_range(uncounted, view, first, row + done - 1, part, words, error);
            if (status)
                return status;
        }
    }
    return TOKMAP_OK;
}

void uncounted_prefetch(const struct uncounted *uncounted, const struct tokmap_extent *extent)
{
    if (!uncounted || !uncounted->used || !uncounted->source->shared->warm)
        return;
    const uint64_t shard =
        dataset_shard_of(uncounted->dataset, extent->first_token * uncounted->unit, uncounted->current);
    const struct mask_view *view = &uncounted->views[shard];
    if (!view->map)
        return;
    const uint64_t first = view->mask.first_bit + extent->first_token - view->first_token;
    const uint64_t end = min64((first + extent->tokens) / 8 + 1, view->mask.bytes);
    /* Walking the page table for a page that is not populated costs more than the prefetch saves. */
    if (view->populated[first / 8 / NEIGHBORHOOD] && view->populated[(end - 1) / NEIGHBORHOOD])
        for (uint64_t at = round_down(first / 8, LINE); at < end; at += LINE)
            __builtin_prefetch(view->map + at, 0, 3);
}
