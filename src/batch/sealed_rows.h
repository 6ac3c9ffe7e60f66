/* SPDX-License-Identifier: MIT */
/*
 * sealed_rows.h - what a loader needs to deliver rows from sealed shards: the memory in which frames are unpacked, the
 * frames that were unpacked last, and the places of frames in their files.
 *
 * Rows that follow each other in a dataset share frames, so the last SEALED_ROWS_FRAMES frames are kept. All sources of
 * a loader share them. One thread at a time may use it; it allocates memory only when it is opened.
 */
#ifndef TOKMAP_BATCH_SEALED_ROWS_H
#define TOKMAP_BATCH_SEALED_ROWS_H

#include "format/sealed.h"
#include "page_check.h"

#define SEALED_ROWS_FRAMES 8

struct sealed_rows {
    struct sealed_reader *reader;
    uint8_t *stored; /* FRAME_STORED_MOST bytes, for a frame as it is in the file */
    uint8_t *bytes;  /* FRAME_BYTES for each of the frames below */
    struct {
        const struct shard_view *view; /* NULL: none */
        uint64_t number;
    } frames[SEALED_ROWS_FRAMES];
    uint32_t next; /* the frame that is replaced next */
};

struct sealed_rows *sealed_rows_new(void);       /* NULL without memory */
void sealed_rows_free(struct sealed_rows *rows); /* accepts NULL */

/* Returns the tokens of a frame that is kept, or NULL. They stay until the next call of sealed_rows_unpack(). */
const uint8_t *sealed_rows_kept(const struct sealed_rows *rows, const struct shard_view *view, uint64_t number);

/* Unpacks a frame from rows->stored, and keeps it. Statuses: OK, ERROR_CORRUPT. */
enum tokmap_status sealed_rows_unpack(struct sealed_rows *rows, const struct shard_view *view,
                                      const struct sealed_frame *frame, const uint8_t **bytes,
                                      struct tokmap_error *error);

/* Finds a frame of a sealed shard by its index, which is read with the deadline of the pool if there is one. check: of
 * the source. Statuses: OK, ERROR_CORRUPT, ERROR_IO, ERROR_TRUNCATED, ERROR_TIMEOUT. */
enum tokmap_status sealed_rows_find(const struct page_check *check, struct shard_view *view, uint64_t number,
                                    struct sealed_frame *frame, struct tokmap_error *error);

/* Finds the bytes of its file, [*from, *to), that hold a stretch of any shard. Returns false if the index of a sealed
 * one does not say it; the row that needs them reports that. */
bool sealed_rows_place(const struct page_check *check, const struct stretch *stretch, uint64_t *from, uint64_t *to);

#endif
