/* SPDX-License-Identifier: MIT */
/*
 * range_share.c - see range_share.h.
 *
 * Threads take lots in ascending order, and finish a lot that they have begun. So when lot 7 fails, the lots 0
 * to 6 have been taken, and will be finished: a failure among them is found, too, and replaces that of lot 7.
 */
#include "range_share.h"

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"
#include "platform/process.h"

struct sharing {
    const struct range_share *share;
    struct cli_progress progress;
    uint64_t next, done;    /* accessed atomically */
    uint32_t stop;          /* accessed atomically */
    struct os_mutex *mutex; /* protects the fields below */
    enum tokmap_status status;
    uint64_t failed; /* the first item of the lot that failed */
    struct tokmap_error error;
};

uint32_t range_threads(uint64_t asked, uint64_t total, uint64_t lot)
{
    const uint64_t threads = asked ? asked : os_processors();
    return (uint32_t)max64(1, min64(min64(threads, RANGE_THREADS_MOST), div_ceil(total, lot)));
}

static void lot_failed(struct sharing *sharing, uint64_t first, enum tokmap_status status,
                       const struct tokmap_error *error)
{
    os_mutex_lock(sharing->mutex);
    if (!sharing->status || first < sharing->failed) {
        sharing->status = status;
        sharing->failed = first;
        sharing->error = *error;
    }
    os_mutex_unlock(sharing->mutex);
    __atomic_store_n(&sharing->stop, 1, __ATOMIC_RELAXED);
}

static void share_body(void *user, uint32_t number)
{
    struct sharing *sharing = user;
    const struct range_share *share = sharing->share;
    while (!__atomic_load_n(&sharing->stop, __ATOMIC_RELAXED)) {
        const uint64_t first = __atomic_fetch_add(&sharing->next, share->lot, __ATOMIC_RELAXED);
        if (first >= share->total)
            break;
        const uint64_t count = min64(share->lot, share->total - first);
        struct tokmap_error error = {0};
        const enum tokmap_status status = os_signal_caught() ? error_set(&error, TOKMAP_ERROR_INTERRUPTED, NULL,
                                                                         TOKMAP_NO_OFFSET, "interrupted by a signal")
                                                             : share->work(share->user, number, first, count, &error);
        if (status)
            lot_failed(sharing, first, status, &error);
        const uint64_t done = __atomic_add_fetch(&sharing->done, count, __ATOMIC_RELAXED);
        if (!number) /* the main thread, which alone may draw */
            cli_progress_update(&sharing->progress, done);
    }
}

enum tokmap_status range_share_run(const struct range_share *share, struct tokmap_error *error)
{
    struct sharing sharing = {.share = share};
    if (!share->total)
        return TOKMAP_OK;
    if (os_mutex_new(&sharing.mutex))
        return error_set_memory(error, "the threads", 0);
    cli_progress_start(&sharing.progress, share->what, share->unit, share->total, share->progress);
    os_threads_share("tokmap-count", share->threads, share_body, &sharing);
    cli_progress_end(&sharing.progress);
    os_mutex_free(sharing.mutex);
    if (sharing.status && error)
        *error = sharing.error;
    return sharing.status;
}
