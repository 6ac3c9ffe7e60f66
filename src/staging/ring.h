/*
 * ring.h - a fixed set of slots, each holding one batch, that one producer fills and one consumer empties, in order.
 *
 * The producer's and the consumer's calls may be made by two threads, one for each side, or by one thread in turn. A
 * failure takes a slot of its own and so is delivered where it happened. Neither side makes a system call while there is
 * something for it to do.
 */
#ifndef TOKMAP_STAGING_RING_H
#define TOKMAP_STAGING_RING_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

#include "backend.h"
#include "batch/mark.h"

/* What the slots of a ring have room for. */
struct ring_shape {
    uint64_t rows;        /* of a batch, at most; may be 0 */
    uint64_t row_bytes;   /* of one row: it is put at a multiple of 64 */
    uint64_t row_marks;   /* marks of a row; 0 if no field needs them */
    uint64_t cu_elements; /* of cu_seqlens; 0 if they are not asked for */
};

/* Where the parts of a slot lie in its memory, in bytes, all multiples of 64: see expand_arguments.h. What a batch needs
 * lies before what it does not, so a device is sent one piece from the memory's start. */
struct ring_layout {
    uint64_t row_stride;
    uint64_t marks_at;
    uint64_t cu_at;
    uint64_t bytes; /* of the memory, at least 64 */
};

/* False if it is no number. */
bool ring_layout_of(const struct ring_shape *shape, struct ring_layout *layout);

/* One batch. The producer owns it between ring_vacant() and ring_publish(), the consumer between ring_filled() and
 * ring_release(). memory, rows, marks and cu stay as ring_new() made them. */
struct slot {
    uint32_t number;
    enum tokmap_status status; /* what the producer came to; if not OK, only this and ring_error() say anything */
    uint64_t step;
    uint64_t first_row;
    uint64_t count;
    bool last_in_step;
    struct tokmap_cursor cursor;
    struct tokmap_place *places;
    const void **rows;   /* into memory */
    struct mark *marks;  /* likewise, of row i from i * row_marks on; NULL if there are none */
    int32_t *cu;         /* likewise; NULL if there are none */
    uint64_t documents;  /* in cu */
    uint64_t max_seqlen; /* of them */
    uint8_t *memory;
};

struct ring;

/* Memory of one slot and of what belongs to it; UINT64_MAX if that is no number. */
uint64_t ring_slot_bytes(const struct ring_shape *shape);

/* Makes the slots in memory of the backend, which must outlive the ring. slots >= 1.
 * Statuses: OK, ERROR_MEMORY, and the backend's. */
enum tokmap_status ring_new(struct ring **ring, struct backend *backend, const struct ring_shape *shape, uint32_t slots,
                            struct tokmap_error *error);
/* No side may be in a call. Accepts NULL. */
void ring_free(struct ring *ring);

/* ---- the producer's side ---- */

/* The next slot to fill; waits while all are filled. NULL once the ring is stopped. */
struct slot *ring_vacant(struct ring *ring);
/* Hands the slot of the last ring_vacant() over. */
void ring_publish(struct ring *ring);
/* Waits until the consumer has released every slot. False once the ring is stopped. */
bool ring_await_empty(struct ring *ring);
/* Where the producer writes the error that goes with a status other than OK. The consumer may read it while it has
 * that slot; the producer must not touch it from ring_publish() until ring_await_empty(). */
struct tokmap_error *ring_error(struct ring *ring);

/* ---- the consumer's side ---- */

/* The next filled slot; waits for one. *waited_ns: 0 if it was there. NULL once the ring is stopped. */
struct slot *ring_filled(struct ring *ring, uint64_t *waited_ns);
/* Waits for ns at most; whether ring_filled() would return at once. *waited_ns as there. No slot may be taken. */
bool ring_wait(struct ring *ring, uint64_t ns, uint64_t *waited_ns);
/* Gives the slot of the last ring_filled() back. */
void ring_release(struct ring *ring);

/* ---- any thread ---- */

/* From now on no call waits; those that wait return. For good. */
void ring_stop(struct ring *ring);
uint32_t ring_slots(const struct ring *ring);
/* Slots that are filled and not taken yet. */
uint32_t ring_ready(const struct ring *ring);
/* Whether the producer has ever found all slots filled. */
bool ring_was_full(const struct ring *ring);

#endif
