/* SPDX-License-Identifier: MIT */
/*
 * shard_views.h - the shards of one dataset as the files of this room use them again and again: descriptor, mapping,
 * and bounds, looked up once per shard; and the cutting of a window into stretches, each of which is in one shard.
 *
 * One thread at a time may use the views of a dataset.
 */
#ifndef TOKMAP_BATCH_SHARD_VIEWS_H
#define TOKMAP_BATCH_SHARD_VIEWS_H

#include <stdbool.h>

#include "common/bytes.h"
#include "dataset/dataset.h"
#include "platform/os.h"

/* What the kernel maps at once where it keeps a file in huge pages. Ranges of that size begin at multiples of it in the
 * file and, in files that have one, in the mapping. */
#define RANGE_BYTES ((uint64_t)2 << 20)

/* One shard. All members are zero until the shard is used for the first time. */
struct shard_view {
    bool known;
    bool hashed;                /* the index has the hashes of the file's pages, and rows are compared with them */
    bool in_memory;             /* the file system keeps its files in memory, so the file is always in the page cache */
    struct shard_tokens file;   /* as of the last look at it */
    struct os_fetched *fetched; /* the file is fetched as it is read; NULL: all of it is there */
    uint32_t element_shift;     /* a token has 1 << element_shift bytes in the file */
    const uint8_t *tokens;      /* the mapping of the file, from its byte 0; NULL unless the reading is mapped */
    uint64_t end_token;
    uint64_t first_page;     /* number of page 0 of the file, counted over all shards; modulo 2^64 */
    uint64_t page, end_page; /* the pages of the file that hold tokens of the shard: [page, end_page) */
    uint64_t shard;          /* its number in the dataset */
    uint64_t first_range;    /* number of the file's range of RANGE_BYTES that is 0, likewise counted over all shards */
    uint32_t pins;           /* that hold the shard, of views that share some */
    uint64_t first_hash; /* number of the file's page of TOKEN_PAGE_BYTES that is 0, likewise counted over all shards */
    bool index_looked;   /* its index was opened for a pool that reads hashes, */
    int index_fd;        /* unless this is -1 */
    uint64_t hashes_at;  /* of page 0, in that file */
    uint64_t changed_ns; /* when the file was changed last, as of the last look at it */
    uint64_t change_look; /* residency's number of that look */
    uint64_t asked_look;  /* the number of the look that a pool was asked for; 0: none */
    uint32_t unlooked;    /* stretches that were read since the last such look */
    uint64_t look;        /* residency's number of the look in which the size of the file was last compared */
};

/* The shards that the views of one residency hold, of datasets whose shards are opened when they are needed: those that
 * were selected last. A view of any other shard may be stale until it is selected again. */
struct shard_pins {
    uint32_t most, next; /* `of` is a ring of so many */
    struct shard_pin {
        struct shard_views *views; /* NULL: holds none */
        uint64_t shard;
    } of[64];
};

struct shard_views {
    const struct tokmap_dataset *dataset;
    struct shard_pins *pins; /* NULL: all shards of the dataset stay open */
    /* Called when a shard was opened since its view was filled: its descriptor is a new one. again: the view had one
     * before. changed: the file has changed since. */
    void (*opened)(void *user, struct shard_view *view, bool again, bool changed);
    void *user;
    struct shard_view *views; /* one for each shard, and one that no token is in; NULL for a synthetic dataset */
    uint64_t views_bytes;
    uint64_t tokens;      /* in the dataset */
    uint64_t pages;       /* page numbers of all shards are below it */
    uint64_t ranges;      /* the same for ranges of RANGE_BYTES */
    uint64_t hashes;      /* the same for pages of TOKEN_PAGE_BYTES */
    uint64_t current;     /* the shard used last, which is held; or */
    uint64_t none;        /* the number of the view that no token is in */
    uint32_t width_shift; /* a token has 1 << width_shift bytes */
    uint32_t page_shift;  /* a page has 1 << page_shift bytes */
    bool mapped;
    bool indexes_open; /* some view has an index_fd */
    bool compared;     /* rows are compared with the hashes of pages, where there are some */
};

/* The part of a window that is in one shard. */
struct stretch {
    struct shard_view *view;
    uint64_t offset; /* of its first byte in the file */
    uint64_t count;  /* tokens, at least 1 */
};

/* Fills *views. mapped: shards are mapped when they are used for the first time. compared: rows are compared with the
 * hashes of pages. Synthetic datasets are never mapped.
 * The dataset must outlive the views. Free them with shard_views_free(), also after a failure. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status shard_views_init(struct shard_views *views, const struct tokmap_dataset *dataset, bool mapped,
                                    bool compared, struct tokmap_error *error);
void shard_views_free(struct shard_views *views);

/* From now on, the views share `pins`, zeroed at first, if shards are opened when they are needed. To be called before
 * they are used. */
void shard_views_share(struct shard_views *views, struct shard_pins *pins,
                       void (*opened)(void *user, struct shard_view *view, bool again, bool changed), void *user);

/* Returns whether the shard of a view is open, so that its descriptor and its mapping are those of the view. */
static inline bool shard_views_holds(const struct shard_views *views, const struct shard_view *view)
{
    return view->known && (!views->pins || view->pins);
}

/* Makes the shard that holds `token` (below views->tokens) the current one, holds it, and looks it up if it is new.
 * Statuses: OK, ERROR_IO, ERROR_MEMORY (both from mapping the shard), and those of opening a shard. */
enum tokmap_status shard_views_select(struct shard_views *views, uint64_t token, struct tokmap_error *error);

/* Fills *stretch with the first stretch of the `left` tokens (at least 1) from `token`. token is at most one lap
 * through the dataset past its end: after the seam, the dataset begins again. Statuses: as shard_views_select(). */
static inline enum tokmap_status shard_views_stretch(struct shard_views *views, uint64_t token, uint64_t left,
                                                     struct stretch *stretch, struct tokmap_error *error)
{
    if (token >= views->tokens)
        token -= views->tokens;
    struct shard_view *view = &views->views[views->current];
    if (__builtin_expect(!view->known || token < view->file.first_token || token >= view->end_token, 0)) {
        enum tokmap_status status = shard_views_select(views, token, error);
        if (status)
            return status;
        view = &views->views[views->current];
    }
    stretch->view = view;
    stretch->offset = view->file.offset + ((token - view->file.first_token) << view->element_shift);
    stretch->count = min64(left, view->end_token - token);
    return TOKMAP_OK;
}

/* Reports the pages of a stretch in its file: [*first, *end). */
static inline void stretch_pages(const struct shard_views *views, const struct stretch *stretch, uint64_t *first,
                                 uint64_t *end)
{
    *first = stretch->offset >> views->page_shift;
    *end = ((stretch->offset + (stretch->count << stretch->view->element_shift) - 1) >> views->page_shift) + 1;
}

/* Returns whether a file has bytes, so that they may be loaded from its mapping. They were those of the file if
 * stretch_kept() returns true afterwards. */
static inline bool file_present(const struct shard_view *view, uint64_t offset, uint64_t bytes, uint64_t *state)
{
    return !view->fetched || !view->fetched->need(view->fetched, offset, bytes, false, state);
}
static inline bool stretch_present(const struct stretch *stretch, uint64_t *state)
{
    return file_present(stretch->view, stretch->offset, stretch->count << stretch->view->element_shift, state);
}
static inline bool stretch_kept(const struct stretch *stretch, uint64_t state)
{
    struct os_fetched *file = stretch->view->fetched;
    return !file || file->kept(file, stretch->offset, stretch->count << stretch->view->element_shift, state);
}

/* Reports the ranges of RANGE_BYTES of a stretch in the same way. */
static inline void stretch_ranges(const struct stretch *stretch, uint64_t *first, uint64_t *end)
{
    *first = stretch->offset / RANGE_BYTES;
    *end = (stretch->offset + (stretch->count << stretch->view->element_shift) - 1) / RANGE_BYTES + 1;
}

#endif
