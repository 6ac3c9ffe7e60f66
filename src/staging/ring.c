/* SPDX-License-Identifier: MIT */
/*
 * ring.c - see ring.h.
 *
 * The ring has two counters, and each side writes one of them: `filled` counts the slots that were published,
 * `released` those that the consumer has returned. The two sides need to agree on nothing but the difference, so a
 * store with release order and a load with acquire order carry the contents of a slot from one side to the other. The
 * counters wrap at 2^32; only their difference is used, and it is at most the number of slots.
 *
 *     4 slots   filled 9, released 6: slots 2, 3 and 0 (batches 6, 7, 8) are filled, slot 1 is vacant
 *               the producer publishes batch 9 in slot 1: filled 10, the ring is full
 *               the consumer returns batch 6: released 7, so slot 2 is vacant for batch 10
 *
 * A side that finds no work spins for a moment and then sleeps on its own bell, a futex word. Before it sleeps it
 * writes in `goal` the value of the other side's counter at which it wants to be woken, sets `asleep`, and checks the
 * counter once more. The other side advances its counter first and then checks `asleep`. All four accesses are
 * sequentially consistent, so at least one of the two sides sees what the other wrote. Therefore no wake-up is lost,
 * and no side makes a system call while nobody sleeps.
 *
 * Waking a thread costs the waker about 5 to 20 us. A consumer should not pay that for being slower than its producer,
 * which is the normal case. So a producer that finds the ring full wakes up by itself: it sleeps for about the time in
 * which the consumer empties a quarter of the slots, a time that it learns from its earlier naps. Only if the consumer
 * has become faster and empties half of the slots before that does the consumer wake it.
 */
#include "ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "platform/os.h"

#define LINE 64 /* bytes of a cache line; the words of each side have lines of their own */
/* Numbers of spins of each side, about 20 ns each. The consumer spins longer: it has nothing else to do, and it would
 * cost the producer several us to wake it. A producer that finds no vacant slot is ahead and can sleep. */
#define CONSUMER_SPINS 1500
#define PRODUCER_SPINS 200
#define NAP_LEAST ((uint64_t)20000) /* ns */
#define NAP_MOST ((uint64_t)10000000)
/* After this many naps during which no slot became vacant, the consumer is regarded as idle. The producer then sleeps
 * until the consumer wakes it. */
#define NAPS_IN_VAIN 100

/* The word that one side sleeps on. */
struct sleeper {
    uint32_t asleep; /* 1 while it sleeps or is about to */
    uint32_t goal;   /* value of the other side's counter at which it is to be woken */
    uint32_t bell;   /* the futex word, incremented by whoever wakes it */
};

struct ring {
    struct slot *slots;
    uint32_t count;
    bool spin; /* true if there is another processor, which may do what this one waits for */
    struct tokmap_error error;
    void *tables; /* places and row pointers of all slots */
    uint64_t tables_bytes;

    _Alignas(LINE) uint32_t filled; /* written by the producer */
    uint32_t was_full;
    uint32_t next_vacant;    /* used by the producer alone */
    uint64_t nap_ns;         /* used by the producer alone: how long it sleeps while the ring is full */
    struct sleeper consumer; /* here because the producer reads it when it advances `filled` */

    _Alignas(LINE) uint32_t released; /* written by the consumer */
    uint32_t taken;                   /* written by the consumer: 1 while it has a slot */
    uint32_t next_filled;             /* used by the consumer alone */
    struct sleeper producer;          /* here because the consumer reads it when it advances `released` */

    _Alignas(LINE) uint32_t stopped;
};

bool ring_layout_of(const struct ring_shape *shape, struct ring_layout *layout)
{
    uint64_t marks, bits, chunks, at;
    if (shape->row_bytes > UINT64_MAX / 4)
        return false;
    layout->row_stride = round_up(shape->row_bytes, LINE);
    if (mul_overflows(layout->row_stride, shape->rows, &layout->marks_at) ||
        mul_overflows(shape->rows, shape->row_marks, &marks) || mul_overflows(marks, sizeof(struct mark), &marks) ||
        mul_overflows(shape->rows, shape->row_bits, &bits) || mul_overflows(bits, sizeof(uint64_t), &bits) ||
        add_overflows(layout->marks_at, marks, &at) || at > UINT64_MAX / 8 || bits > UINT64_MAX / 8 ||
        shape->rows > UINT64_MAX / 8 / sizeof(struct row_bounds) || shape->cu_elements > UINT64_MAX / 32 ||
        mul_overflows(shape->rows, shape->row_chunks, &chunks) || chunks > UINT64_MAX / 8 / sizeof(struct expand_chunk))
        return false;
    layout->bits_at = round_up(at, LINE);
    layout->bounds_at = round_up(layout->bits_at + bits, LINE);
    layout->sources_at =
        round_up(layout->bounds_at + (shape->bounds ? shape->rows * sizeof(struct row_bounds) : 0), LINE);
    layout->cu_at = round_up(layout->sources_at + (shape->sources ? shape->rows * sizeof(int32_t) : 0), LINE);
    layout->chunks_at = layout->cu_at + round_up(shape->cu_elements * sizeof(int32_t), LINE);
    layout->values_at = layout->chunks_at + round_up(chunks * sizeof(struct expand_chunk), LINE);
    if (shape->values_bytes > UINT64_MAX / 4 || layout->values_at > UINT64_MAX / 4)
        return false;
    layout->bytes = layout->values_at + round_up(shape->values_bytes, LINE);
    layout->bytes = max64(layout->bytes, LINE);
    return true;
}

static uint64_t table_bytes(const struct ring_shape *shape)
{
    uint64_t bytes;
    const uint64_t rows = max64(shape->rows, shape->rows_most);
    if (mul_overflows(rows, sizeof(struct tokmap_place) + sizeof(void *), &bytes) || bytes > UINT64_MAX / 2)
        return UINT64_MAX;
    return round_up(bytes, LINE);
}

uint64_t ring_slot_bytes(const struct ring_shape *shape)
{
    uint64_t table = table_bytes(shape), sum;
    struct ring_layout layout;
    if (!ring_layout_of(shape, &layout) || table == UINT64_MAX || add_overflows(layout.bytes, table, &sum) ||
        add_overflows(sum, sizeof(struct slot), &sum))
        return UINT64_MAX;
    const uint64_t more = shape->bytes_least > layout.bytes ? round_up(shape->bytes_least, LINE) - layout.bytes : 0;
    return add_overflows(sum, more, &sum) ? UINT64_MAX : sum;
}

void ring_slot_arrange(struct slot *slot, const struct ring_shape *shape, const struct ring_layout *layout)
{
    uint8_t *memory = slot->memory;
    assert(shape->rows <= slot->rows_most && layout->bytes <= slot->memory_bytes);
    slot->shape = *shape;
    slot->layout = *layout;
    slot->marks = shape->row_marks ? (struct mark *)(void *)(memory + layout->marks_at) : NULL;
    slot->uncounted = shape->row_bits ? (uint64_t *)(void *)(memory + layout->bits_at) : NULL;
    slot->bounds = shape->bounds ? (struct row_bounds *)(void *)(memory + layout->bounds_at) : NULL;
    slot->sources = shape->sources ? (int32_t *)(void *)(memory + layout->sources_at) : NULL;
    slot->cu = shape->cu_elements ? (int32_t *)(void *)(memory + layout->cu_at) : NULL;
    slot->chunks = shape->row_chunks ? (struct expand_chunk *)(void *)(memory + layout->chunks_at) : NULL;
    for (uint64_t i = 0; i < shape->rows; i++)
        slot->rows[i] = memory + i * layout->row_stride;
}

static void slot_init(struct slot *slot, uint32_t number, const struct ring_shape *shape,
                      const struct ring_layout *layout, uint8_t *memory, uint64_t memory_bytes, uint8_t *table)
{
    slot->number = number;
    slot->memory = memory;
    slot->memory_bytes = memory_bytes;
    slot->rows_most = max64(shape->rows, shape->rows_most);
    slot->places = (struct tokmap_place *)(void *)table;
    slot->rows = (const void **)(void *)(table + slot->rows_most * sizeof(struct tokmap_place));
    ring_slot_arrange(slot, shape, layout);
}

enum tokmap_status ring_new(struct ring **made, struct backend *backend, const struct ring_shape *shape, uint32_t slots,
                            struct tokmap_error *error)
{
    *made = NULL;
    assert(slots >= 1);
    uint64_t table = table_bytes(shape), tables;
    struct ring_layout layout;
    if (ring_slot_bytes(shape) == UINT64_MAX || !ring_layout_of(shape, &layout) || mul_overflows(table, slots, &tables))
        return error_set_memory(error, "the ring", UINT64_MAX);
    tables = max64(tables, 1); /* those of slots without rows have an address, too */
    struct ring *ring = aligned_alloc(LINE, sizeof *ring);
    if (!ring)
        return error_set_memory(error, "the ring", sizeof *ring);
    memset(ring, 0, sizeof *ring);
    ring->count = slots;
    ring->spin = os_processors() > 1;
    ring->nap_ns = NAP_LEAST;
    ring->slots = calloc(slots, sizeof *ring->slots);
    if (!ring->slots || os_memory_new(tables, false, &ring->tables)) {
        ring_free(ring);
        return error_set_memory(error, "the ring", tables + slots * sizeof(struct slot));
    }
    ring->tables_bytes = tables;
    void *base;
    const uint64_t bytes = round_up(max64(layout.bytes, shape->bytes_least), LINE);
    enum tokmap_status status = backend->calls->allocate(backend, slots, bytes, &base, error);
    if (status) {
        ring_free(ring);
        return status;
    }
    assert((uintptr_t)base % LINE == 0);
    for (uint32_t i = 0; i < slots; i++)
        slot_init(&ring->slots[i], i, shape, &layout, (uint8_t *)base + i * bytes, bytes,
                  (uint8_t *)ring->tables + i * table);
    *made = ring;
    return TOKMAP_OK;
}

void ring_free(struct ring *ring)
{
    if (!ring)
        return;
    os_memory_free(ring->tables, ring->tables_bytes);
    free(ring->slots);
    free(ring);
}

static bool is_stopped(const struct ring *ring)
{
    return __atomic_load_n(&ring->stopped, __ATOMIC_ACQUIRE);
}

/* Returns whether *counter has reached goal. */
static bool reached(const uint32_t *counter, uint32_t goal)
{
    return (int32_t)(__atomic_load_n(counter, __ATOMIC_SEQ_CST) - goal) >= 0;
}

/* Advances this side's counter, and wakes the other side if it sleeps until this value. */
static void advance(uint32_t *counter, struct sleeper *other)
{
    uint32_t value = __atomic_load_n(counter, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(counter, value, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&other->asleep, __ATOMIC_SEQ_CST))
        return;
    if ((int32_t)(value - __atomic_load_n(&other->goal, __ATOMIC_RELAXED)) < 0)
        return;
    __atomic_store_n(&other->asleep, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&other->bell, 1, __ATOMIC_SEQ_CST);
    os_word_wake(&other->bell);
}

/* Spins until *counter, which the other side writes, reaches goal. Returns false if it has not after `spins` checks. */
static bool spin(const struct ring *ring, const uint32_t *counter, uint32_t goal, uint32_t spins)
{
    for (uint32_t left = ring->spin ? spins : 0; left && !is_stopped(ring); left--) {
        if (reached(counter, goal))
            return true;
        os_relax();
    }
    return reached(counter, goal);
}

/* Sleeps until *counter, which the other side writes, reaches goal, the ring is stopped, or `ns` ns have passed (0: no
 * limit). */
static void sleep_until(struct ring *ring, const uint32_t *counter, uint32_t goal, struct sleeper *own, uint64_t ns)
{
    bool done;
    do {
        uint32_t bell = __atomic_load_n(&own->bell, __ATOMIC_SEQ_CST);
        __atomic_store_n(&own->goal, goal, __ATOMIC_RELAXED);
        __atomic_store_n(&own->asleep, 1, __ATOMIC_SEQ_CST);
        done = reached(counter, goal) || __atomic_load_n(&ring->stopped, __ATOMIC_SEQ_CST);
        if (!done && ns)
            os_word_wait_for(&own->bell, bell, ns);
        else if (!done)
            os_word_wait(&own->bell, bell);
    } while (!done && !ns);
    __atomic_store_n(&own->asleep, 0, __ATOMIC_RELAXED);
}

/* Sleeps in naps until `released` reaches goal, which is when a slot is vacant. A nap after which fewer than a quarter
 * of the slots are vacant was too short, so the next one is longer by half; after one with more vacant slots, the next
 * is half as long. */
static void nap(struct ring *ring, uint32_t goal)
{
    uint32_t quarter = ring->count / 4, half = ring->count / 2, in_vain = 0;
    while (!reached(&ring->released, goal) && !is_stopped(ring)) {
        bool idle = in_vain == NAPS_IN_VAIN;
        uint32_t wake_at = idle || !half ? goal : goal + half - 1;
        sleep_until(ring, &ring->released, wake_at, &ring->producer, idle ? 0 : ring->nap_ns);
        int32_t vacant = (int32_t)(__atomic_load_n(&ring->released, __ATOMIC_RELAXED) - goal) + 1;
        in_vain += vacant <= 0 && !idle;
        if (vacant <= 0 || (uint32_t)vacant < quarter)
            ring->nap_ns = min64(ring->nap_ns + ring->nap_ns / 2, NAP_MOST);
        else if ((uint32_t)vacant > quarter)
            ring->nap_ns = max64(ring->nap_ns / 2, NAP_LEAST);
    }
}

struct slot *ring_vacant(struct ring *ring)
{
    uint32_t filled = __atomic_load_n(&ring->filled, __ATOMIC_RELAXED);
    uint32_t goal = filled - ring->count + 1; /* a slot is vacant once `released` has reached this value */
    if (!reached(&ring->released, goal)) {
        __atomic_store_n(&ring->was_full, 1, __ATOMIC_RELAXED);
        if (!spin(ring, &ring->released, goal, PRODUCER_SPINS))
            nap(ring, goal);
    }
    return is_stopped(ring) ? NULL : &ring->slots[ring->next_vacant];
}

/* Returns the difference of the counters, for assertions, so it is unused with NDEBUG. The side that calls knows its
 * own counter exactly, and the other one moves only in the direction that keeps the assertion true. */
static __attribute__((unused)) uint32_t difference(const struct ring *ring)
{
    return __atomic_load_n(&ring->filled, __ATOMIC_RELAXED) - __atomic_load_n(&ring->released, __ATOMIC_RELAXED);
}

void ring_publish(struct ring *ring)
{
    assert(difference(ring) < ring->count);
    ring->next_vacant = ring->next_vacant + 1 == ring->count ? 0 : ring->next_vacant + 1;
    advance(&ring->filled, &ring->consumer);
}

bool ring_await_empty(struct ring *ring)
{
    uint32_t filled = __atomic_load_n(&ring->filled, __ATOMIC_RELAXED);
    if (!reached(&ring->released, filled))
        sleep_until(ring, &ring->released, filled, &ring->producer, 0);
    return !is_stopped(ring);
}

struct tokmap_error *ring_error(struct ring *ring)
{
    return &ring->error;
}

struct slot *ring_filled(struct ring *ring, uint64_t *waited_ns)
{
    uint32_t goal = __atomic_load_n(&ring->released, __ATOMIC_RELAXED) + 1;
    assert(!__atomic_load_n(&ring->taken, __ATOMIC_RELAXED));
    *waited_ns = 0;
    if (!reached(&ring->filled, goal)) {
        uint64_t from = os_clock_ns();
        if (!spin(ring, &ring->filled, goal, CONSUMER_SPINS))
            sleep_until(ring, &ring->filled, goal, &ring->consumer, 0);
        *waited_ns = os_clock_ns() - from;
        if (!reached(&ring->filled, goal))
            return NULL;
    }
    __atomic_store_n(&ring->taken, 1, __ATOMIC_RELAXED);
    return &ring->slots[ring->next_filled];
}

bool ring_wait(struct ring *ring, uint64_t ns, uint64_t *waited_ns)
{
    uint32_t goal = __atomic_load_n(&ring->released, __ATOMIC_RELAXED) + 1;
    assert(!__atomic_load_n(&ring->taken, __ATOMIC_RELAXED));
    *waited_ns = 0;
    if (!reached(&ring->filled, goal)) {
        uint64_t from = os_clock_ns();
        if (!spin(ring, &ring->filled, goal, CONSUMER_SPINS) && ns)
            sleep_until(ring, &ring->filled, goal, &ring->consumer, ns);
        *waited_ns = os_clock_ns() - from;
    }
    return reached(&ring->filled, goal) || is_stopped(ring);
}

void ring_release(struct ring *ring)
{
    assert(__atomic_load_n(&ring->taken, __ATOMIC_RELAXED) && difference(ring) >= 1);
    ring->next_filled = ring->next_filled + 1 == ring->count ? 0 : ring->next_filled + 1;
    __atomic_store_n(&ring->taken, 0, __ATOMIC_RELAXED);
    advance(&ring->released, &ring->producer);
}

void ring_stop(struct ring *ring)
{
    __atomic_store_n(&ring->stopped, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&ring->producer.bell, 1, __ATOMIC_SEQ_CST);
    os_word_wake(&ring->producer.bell);
    __atomic_add_fetch(&ring->consumer.bell, 1, __ATOMIC_SEQ_CST);
    os_word_wake(&ring->consumer.bell);
}

void ring_continue(struct ring *ring)
{
    __atomic_store_n(&ring->stopped, 0, __ATOMIC_SEQ_CST);
}

void ring_restart(struct ring *ring)
{
    /* Other threads may be in ring_ready(), so the words that it reads are stored atomically. */
    __atomic_store_n(&ring->taken, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->released, __atomic_load_n(&ring->filled, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
    ring->next_filled = ring->next_vacant;
    __atomic_store_n(&ring->was_full, 0, __ATOMIC_RELAXED);
    ring_continue(ring);
}

uint32_t ring_slots(const struct ring *ring)
{
    return ring->count;
}

uint32_t ring_ready(const struct ring *ring)
{
    /* A third thread may read the counters at two different moments, so their difference may exceed the slots. */
    uint32_t released = __atomic_load_n(&ring->released, __ATOMIC_ACQUIRE);
    uint32_t taken = __atomic_load_n(&ring->taken, __ATOMIC_RELAXED);
    uint32_t ready = __atomic_load_n(&ring->filled, __ATOMIC_ACQUIRE) - released;
    if (ready > ring->count)
        ready = ring->count;
    return ready >= taken ? ready - taken : 0;
}

bool ring_was_full(const struct ring *ring)
{
    return __atomic_load_n(&ring->was_full, __ATOMIC_RELAXED);
}
