/* SPDX-License-Identifier: MIT */
/*
 * sealed_rows.c - see sealed_rows.h.
 *
 * The index has 16 bytes for each frame of 64 KiB. A shard's section frames is asked for as a whole when the shard is
 * used for the first time (shard_views.c), so finding a frame does not wait for storage a second time: a shard of 2 GB
 * has half a megabyte of them.
 */
#include "sealed_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "common/error.h"

struct sealed_rows *sealed_rows_new(void)
{
    struct sealed_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    rows->reader = sealed_reader_new();
    rows->stored = malloc(FRAME_STORED_MOST);
    rows->bytes = malloc(SEALED_ROWS_FRAMES * FRAME_BYTES);
    if (rows->reader && rows->stored && rows->bytes)
        return rows;
    sealed_rows_free(rows);
    return NULL;
}

void sealed_rows_free(struct sealed_rows *rows)
{
    if (!rows)
        return;
    sealed_reader_free(rows->reader);
    free(rows->stored);
    free(rows->bytes);
    free(rows);
}

const uint8_t *sealed_rows_kept(const struct sealed_rows *rows, const struct shard_view *view, uint64_t number)
{
    for (uint32_t i = 0; i < SEALED_ROWS_FRAMES; i++)
        if (rows->frames[i].view == view && rows->frames[i].number == number)
            return rows->bytes + i * FRAME_BYTES;
    return NULL;
}

enum tokmap_status sealed_rows_unpack(struct sealed_rows *rows, const struct shard_view *view,
                                      const struct sealed_frame *frame, const uint8_t **bytes,
                                      struct tokmap_error *error)
{
    const uint32_t slot = rows->next;
    uint8_t *into = rows->bytes + slot * FRAME_BYTES;
    *bytes = into;
    rows->frames[slot].view = NULL;
    const enum tokmap_status status = sealed_unpack(rows->reader, view->file.path, frame, rows->stored, into, error);
    if (status)
        return status;
    rows->frames[slot].view = view;
    rows->frames[slot].number = frame->number;
    rows->next = (slot + 1) % SEALED_ROWS_FRAMES;
    return TOKMAP_OK;
}

enum tokmap_status sealed_rows_find(const struct page_check *check, struct shard_view *view, uint64_t number,
                                    struct sealed_frame *frame, struct tokmap_error *error)
{
    struct frame_entry entries[2] = {{0, 0}};
    const uint64_t first = number - (number > 0), count = 1 + (number > 0);
    size_t got = 0;
    if (!check->pool || !page_check_index(check, view))
        return sealed_frame_find(view->file.sealed, number, frame, error);
    const uint64_t at = view->hashes_at + first * sizeof entries[0];
    const int system =
        read_pool_read(check->pool, view->index_fd, &entries[number == 0], count * sizeof entries[0], at, &got);
    if (system == ETIMEDOUT)
        return error_set(error, TOKMAP_ERROR_TIMEOUT, view->file.path, TOKMAP_NO_OFFSET,
                         "reading where frame %" PRIu64 " is from the index of this file took longer than "
                         "deadline_ns; check the storage that holds it, then call again or continue from the "
                         "last cursor",
                         number);
    if (system)
        return error_set_system(error, system, view->file.path, TOKMAP_NO_OFFSET,
                                "cannot read where frame %" PRIu64
                                " is from the index of this file; check the storage that holds it, then continue from "
                                "the last cursor",
                                number);
    if (got < count * sizeof entries[0])
        return error_set(error, TOKMAP_ERROR_TRUNCATED, view->file.path, TOKMAP_NO_OFFSET,
                         "the index of this file ends at byte %" PRIu64 ", before frame %" PRIu64
                         ": it was truncated while it was open; restore it",
                         at + got, number);
    return sealed_frame_check(view->file.sealed, number, entries[0].end, &entries[1], frame, error);
}

bool sealed_rows_place(const struct page_check *check, const struct stretch *stretch, uint64_t *from, uint64_t *to)
{
    struct shard_view *view = stretch->view;
    struct sealed_frame first, last;
    *from = stretch->offset;
    *to = *from + (stretch->count << view->element_shift);
    if (!view->file.sealed)
        return true;
    const uint64_t end = (*to - 1) / FRAME_BYTES;
    if (sealed_rows_find(check, view, *from / FRAME_BYTES, &first, NULL))
        return false;
    last = first;
    if (end != first.number && sealed_rows_find(check, view, end, &last, NULL))
        return false;
    *from = first.at;
    *to = last.at + last.stored;
    return *to > *from;
}
