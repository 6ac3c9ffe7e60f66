/* SPDX-License-Identifier: MIT */
/*
 * shard_views.c - see shard_views.h.
 *
 * The table has an entry for each shard, but its memory costs nothing until a shard is used, so a dataset of a million
 * shards opens at once.
 *
 * Page numbers. Residency keeps one bit per page, so the pages of all shards need distinct numbers. The first page that
 * holds tokens of shard s has the number floor(first_token * width / page) + 2 s. The term 2 s leaves room for the
 * partial pages at the start and at the end of each shard before it: tokens of b bytes touch at most floor(b / page) +
 * 2 pages. Two shards therefore never share a number, and the number needs no sum over the sizes of the shards before.
 * (Shards whose tokens are converted are never mapped and have no hashes of pages, so they need no numbers.) Pages of
 * TOKEN_PAGE_BYTES, which have hashes, and ranges of RANGE_BYTES are numbered in the same way.
 */
#include "shard_views.h"

#include <assert.h>

#include "cache/cache_attach.h"
#include "common/error.h"
#include "dataset/documents.h"
#include "format/layout.h"

enum tokmap_status shard_views_init(struct shard_views *views, const struct tokmap_dataset *dataset, bool mapped,
                                    bool compared, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    assert(info.width == 1 || info.width == 2 || info.width == 4);
    const uint64_t page = os_page_bytes();
    *views = (struct shard_views){
        .dataset = dataset,
        .tokens = info.tokens,
        .width_shift = info.width / 2,
        .page_shift = (uint32_t)__builtin_ctzll(page),
    };
    if (dataset_is_synthetic(dataset))
        return TOKMAP_OK;
    void *table = NULL;
    views->mapped = mapped;
    views->compared = compared;
    views->pages = (info.tokens << views->width_shift) / page + 2 * info.shards + 1;
    views->ranges = (info.tokens << views->width_shift) / RANGE_BYTES + 2 * info.shards + 1;
    views->hashes = (info.tokens << views->width_shift) / TOKEN_PAGE_BYTES + 2 * info.shards + 1;
    views->none = info.shards;
    views->views_bytes = (info.shards + 1) * sizeof *views->views;
    if (os_memory_new(views->views_bytes, false, &table))
        return error_set_memory(error, "the table of shards", views->views_bytes);
    views->views = table;
    return TOKMAP_OK;
}

void shard_views_share(struct shard_views *views, struct shard_pins *pins,
                       void (*opened)(void *user, struct shard_view *view, bool again, bool changed), void *user)
{
    const uint32_t most = dataset_held_most(views->dataset);
    if (!most || !views->views)
        return;
    pins->most = most < sizeof pins->of / sizeof pins->of[0] ? most : sizeof pins->of / sizeof pins->of[0];
    views->pins = pins;
    views->opened = opened;
    views->user = user;
    views->current = views->none;
}

static void hashes_close(struct shard_view *view)
{
    if (view->index_looked)
        os_close(view->index_fd);
    view->index_looked = false;
}

static void unpin(struct shard_pin *pin)
{
    struct shard_views *views = pin->views;
    if (!views)
        return;
    if (views->current == pin->shard)
        views->current = views->none;
    hashes_close(&views->views[pin->shard]);
    views->views[pin->shard].pins--;
    dataset_shard_release(views->dataset, pin->shard);
    pin->views = NULL;
}

void shard_views_free(struct shard_views *views)
{
    const uint64_t count = views->indexes_open ? views->views_bytes / sizeof *views->views : 0;
    for (uint32_t i = 0; views->pins && i < views->pins->most; i++)
        if (views->pins->of[i].views == views)
            unpin(&views->pins->of[i]);
    for (uint64_t i = 0; i < count; i++)
        hashes_close(&views->views[i]);
    os_memory_free(views->views, views->views_bytes);
    views->views = NULL;
}

/* Holds a shard, and lets the one go that was selected the longest time ago. */
static enum tokmap_status pin(struct shard_views *views, uint64_t shard, struct tokmap_error *error)
{
    struct shard_pins *pins = views->pins;
    struct shard_pin *oldest = &pins->of[pins->next];
    views->current = views->none;
    unpin(oldest);
    const enum tokmap_status status = dataset_shard_hold(views->dataset, shard, error);
    if (status)
        return status;
    *oldest = (struct shard_pin){views, shard};
    views->views[shard].pins++;
    pins->next = (pins->next + 1) % pins->most;
    return TOKMAP_OK;
}

/* Fills the view of a shard that is held. */
static enum tokmap_status fill(const struct shard_views *views, struct shard_view *view, uint64_t shard,
                               struct tokmap_error *error)
{
    const struct shard_tokens *found = &view->file;
    if (views->mapped) {
        enum tokmap_status status = dataset_shard_map_any(views->dataset, shard, &view->tokens, error);
        if (status)
            return status;
    }
    view->end_token = found->first_token + found->tokens;
    view->element_shift = element_shift(found->element);
    view->page = found->offset >> views->page_shift;
    view->end_page = ((found->offset + (found->tokens << view->element_shift) - 1) >> views->page_shift) + 1;
    view->first_page = ((found->first_token << views->width_shift) >> views->page_shift) + 2 * shard - view->page;
    view->shard = shard;
    view->hashed = views->compared && found->page_hashes;
    view->first_hash =
        (found->first_token << views->width_shift) / TOKEN_PAGE_BYTES + 2 * shard - found->offset / TOKEN_PAGE_BYTES;
    view->first_range =
        (found->first_token << views->width_shift) / RANGE_BYTES + 2 * shard - found->offset / RANGE_BYTES;
    view->fetched = os_fetched_of(view->file.fd);
    view->in_memory = !view->fetched && os_file_is_memory(view->file.fd);
    view->known = true;
    if (view->file.sealed || view->hashed)
        (void)cache_compared_later(view->file.fd);
    if (view->file.sealed)
        index_frames_ask(view->file.sealed);
    os_advise_random(view->file.fd); /* so that the kernel reads the pages of a window and no more */
    return TOKMAP_OK;
}

/* Reports that the shard of a view was opened. */
static void note_opened(const struct shard_views *views, struct shard_view *view, bool again)
{
    struct os_stat found;
    const bool stat = !os_fstat(view->file.fd, &found);
    const bool changed = !view->fetched && (!stat || view->changed_ns != found.changed_ns);
    view->changed_ns = stat ? found.changed_ns : 0;
    view->look = view->change_look = view->asked_look = 0;
    views->opened(views->user, view, again, again && changed);
}

enum tokmap_status shard_views_select(struct shard_views *views, uint64_t token, struct tokmap_error *error)
{
    assert(views->views && token < views->tokens);
    const uint64_t shard = dataset_shard_of(views->dataset, token, views->current);
    struct shard_view *view = &views->views[shard];
    if (views->pins) {
        const enum tokmap_status status = pin(views, shard, error);
        if (status)
            return status;
    }
    views->current = shard;
    if (view->known && !views->pins)
        return TOKMAP_OK;
    const bool again = view->known;
    const uint64_t opening = view->file.opening;
    dataset_shard_tokens(views->dataset, shard, &view->file);
    if (again && view->file.opening == opening)
        return TOKMAP_OK;
    view->known = false;
    const enum tokmap_status status = fill(views, view, shard, error);
    if (!status && views->pins)
        note_opened(views, view, again);
    return status;
}
