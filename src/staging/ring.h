/* SPDX-License-Identifier: MIT */
/*
 * ring.h - a fixed set of slots, each for one batch, that one producer fills and one consumer empties, in order.
 *
 * The two sides may be two threads, or one thread that makes the calls of both sides alternately. A failure occupies a
 * slot of its own, so the consumer meets it at the batch where it happened. A side makes no system call as long as it
 * finds work.
 */
#ifndef TOKMAP_STAGING_RING_H
#define TOKMAP_STAGING_RING_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#include "backend.h"
#include "batch/mark.h"
#include "expand_arguments.h"

/* Room in one slot. A run has phases with different batches and lengths, so a slot can be given another shape
 * (ring_slot_arrange()) that needs no more memory than the one that the ring was made with. */
struct ring_shape {
    uint64_t rows;         /* most rows of a batch; may be 0 */
    uint64_t row_bytes;    /* bytes of one row; rows begin at multiples of 64 */
    uint64_t row_marks;    /* marks of one row; 0 if no field needs marks */
    uint64_t row_bits;     /* words of one row's bits of uncounted targets; 0 if no source has a mask, or no field needs
                              it */
    bool bounds;           /* rows have bounds: some rows have padding, or count only their last targets */
    bool sources;          /* rows have numbers of their sources, for source_ids */
    uint64_t cu_elements;  /* elements of cu_seqlens; 0 if that field is not requested */
    uint64_t values_bytes; /* of the values of all rows */
    uint64_t row_chunks;   /* most chunks of a row, see expand_arguments.h; 0 if a row is one, or chunks are rows */
    uint64_t rows_most;    /* the most rows of any shape that a slot gets later; 0: `rows` */
    uint64_t bytes_least;  /* the most memory of any such shape: ring_layout.bytes; 0: that of this one */
};

/* Offsets of the parts of a slot in its memory: bytes, all of them multiples of 64. expand_arguments.h describes the
 * parts. The first bytes are those that every batch needs, so one copy from the start of the memory sends a batch to
 * the device. */
struct ring_layout {
    uint64_t row_stride; /* from one row to the next */
    uint64_t marks_at;
    uint64_t bits_at;
    uint64_t bounds_at;
    uint64_t sources_at;
    uint64_t cu_at;
    uint64_t chunks_at;
    uint64_t values_at;
    uint64_t bytes; /* of the whole memory, at least 64 */
};

/* Computes the layout; bytes_least does not count. Returns false if a size overflows. */
bool ring_layout_of(const struct ring_shape *shape, struct ring_layout *layout);

/* One batch. The producer owns it between ring_vacant() and ring_publish(), the consumer between ring_filled() and
 * ring_release(). number, places, memory, and what ring_slot_arrange() sets stay as they are; the producer fills what
 * the pointers point to. */
struct slot {
    uint32_t number;           /* 0 .. slots - 1 */
    enum tokmap_status status; /* of filling; if it is not OK, only this and ring_error() are valid */
    uint64_t step;
    uint64_t first_row;
    uint64_t count;                    /* rows that the batch has */
    uint64_t valid;                    /* of them, rows that are not padding */
    uint64_t excluded, excluded_rows;  /* inputs of excluded documents, and rows without any other token */
    uint64_t counted, counted_in_step; /* targets that count, with options.counts */
    uint64_t seq_len;                  /* of its rows */
    uint64_t columns, row_tokens;      /* of what is a row to the backend, see struct form */
    uint64_t trace;                    /* the sum of the hashes of its rows; 0 without a trace */
    bool last_in_step;
    bool direct;         /* its outputs were written while it was filled, and its rows were not */
    bool values_written; /* so were its values */
    struct tokmap_cursor cursor;
    struct tokmap_place *places; /* one per row */
    const void **rows;           /* one per row, into memory */
    struct mark *marks;          /* into memory; those of row i begin at i * row_marks. NULL without marks */
    uint64_t *uncounted;         /* into memory; those of row i begin at i * row_bits. NULL if row_bits is 0 */
    struct row_bounds *bounds;   /* into memory; one per row. NULL without bounds */
    int32_t *sources;            /* into memory; one per row. NULL if source_ids is not requested */
    int32_t *cu;                 /* into memory; NULL if cu_seqlens is not requested */
    struct expand_chunk *chunks; /* into memory; those of row i begin at i * row_chunks. NULL if row_chunks is 0 */
    uint64_t documents;          /* in cu */
    uint64_t max_seqlen;         /* tokens of the longest document in cu */
    uint64_t max_seqlen_slice;   /* and of the longest one in the part of cu that is of the slice */
    uint8_t *memory;             /* of the backend; a multiple of 64 */
    uint64_t memory_bytes, rows_most;
    struct ring_shape shape; /* set by ring_slot_arrange(), with the layout and the pointers into the memory */
    struct ring_layout layout;
};

struct ring;

/* Returns the bytes that one slot needs, in the backend and outside, or UINT64_MAX if a size overflows. */
uint64_t ring_slot_bytes(const struct ring_shape *shape);

/* Makes a ring of `slots` slots, at least 1, whose memory it gets from the backend. The backend must outlive the ring.
 * Statuses: OK, ERROR_MEMORY, ERROR_DEVICE. */
enum tokmap_status ring_new(struct ring **ring, struct backend *backend, const struct ring_shape *shape, uint32_t slots,
                            struct tokmap_error *error);

/* Gives a slot that the producer owns another shape, with its layout. It must fit what the ring was made with. */
void ring_slot_arrange(struct slot *slot, const struct ring_shape *shape, const struct ring_layout *layout);

/* Frees the ring, but not the backend. Neither side may be in a call. Accepts NULL. */
void ring_free(struct ring *ring);

/* ---- the producer's side ---- */

/* Returns the next slot to fill, and waits while all slots are filled. Returns NULL once the ring is stopped. Without a
 * ring_publish() in between, another call returns the same slot. */
struct slot *ring_vacant(struct ring *ring);

/* Hands the slot of the last ring_vacant() to the consumer. */
void ring_publish(struct ring *ring);

/* Waits until the consumer has released every slot. Returns false once the ring is stopped. */
bool ring_await_empty(struct ring *ring);

/* Returns where the producer writes the error that belongs to a status other than OK. The consumer may read it while it
 * has that slot, so the producer must not write it between ring_publish() and the return of ring_await_empty(). */
struct tokmap_error *ring_error(struct ring *ring);

/* ---- the consumer's side ---- */

/* Returns the next filled slot, and waits until there is one. Returns NULL if the ring is stopped and no slot is
 * filled. The consumer must have released the previous slot.
 *   waited_ns   receives the ns that the call waited; 0 if the slot was filled already */
struct slot *ring_filled(struct ring *ring, uint64_t *waited_ns);

/* Waits up to `ns` ns, and returns whether ring_filled() would return at once. The consumer must have released the
 * previous slot. *waited_ns is set as by ring_filled(). */
bool ring_wait(struct ring *ring, uint64_t ns, uint64_t *waited_ns);

/* Returns the slot of the last ring_filled() to the producer. */
void ring_release(struct ring *ring);

/* ---- any thread ---- */

/* Stops the ring: until ring_continue() or ring_restart() no call waits, and calls that are waiting return. */
void ring_stop(struct ring *ring);

/* Ends the effect of ring_stop(), and changes nothing else. No other thread may be in a call. */
void ring_continue(struct ring *ring);

/* Empties the ring: both sides lose the slots that they own or have filled, and the effect of ring_stop() ends. Neither
 * side may be in a call. The slots are used in turn as before, so the slot whose copy to a device began last is the
 * last one that is filled again. */
void ring_restart(struct ring *ring);

/* Returns the number of slots. */
uint32_t ring_slots(const struct ring *ring);

/* Returns the number of slots that are filled and that the consumer has not taken. */
uint32_t ring_ready(const struct ring *ring);

/* Returns whether the producer has found all slots filled since the ring was made or restarted. */
bool ring_was_full(const struct ring *ring);

#endif
