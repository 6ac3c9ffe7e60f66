/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* ring.h: the consumer gets every batch whole and in order, whatever the delays of the two sides; stopping; failures.
 * */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "staging/backend_host.h"
#include "staging/ring.h"

struct run {
    struct backend *backend;
    struct ring *ring;
    uint64_t batches;
    uint64_t fail_every; /* 0: never */
    uint64_t seed;
    uint32_t slots;
    bool slow_producer, slow_consumer;
    uint64_t produced;
};

static void make_ring(struct run *run, uint64_t rows)
{
    struct ring_shape shape = {.rows = rows, .row_bytes = 100, .row_marks = 2, .cu_elements = 3};
    assert_int_equal(backend_host_open(&run->backend, NULL), TOKMAP_OK);
    assert_int_equal(ring_new(&run->ring, run->backend, &shape, run->slots, NULL), TOKMAP_OK);
}

static void free_ring(struct run *run)
{
    ring_free(run->ring);
    run->backend->calls->close(run->backend, false);
}

/* Waits between 0 and about 10 us, rarely longer: some delays are shorter and some longer than the other side spins. */
static void delay(uint64_t *seed, bool slow)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t draw = *seed >> 40 & 0xffff;
    if (slow && draw < 200)
        os_sleep_ns(20000);
    else if (slow || draw < 20000)
        for (uint64_t turn = draw & 0xff; turn; turn--)
            os_relax();
}

static void fill(struct slot *slot, uint64_t number)
{
    slot->status = TOKMAP_OK;
    slot->step = number;
    slot->count = number % 5;
    for (uint64_t i = 0; i < slot->count; i++) {
        memset((void *)(uintptr_t)slot->rows[i], (int)(number + i), 100);
        slot->places[i].draw = number * 10 + i;
        slot->marks[i * 2].starts = number ^ i;
        slot->marks[i * 2 + 1].starts = ~number;
    }
}

static bool is_filled(const struct slot *slot, uint64_t number)
{
    bool fine = slot->step == number && slot->count == number % 5;
    for (uint64_t i = 0; i < slot->count; i++) {
        const unsigned char *row = slot->rows[i];
        fine = fine && (uintptr_t)row % 64 == 0 && row[0] == (unsigned char)(number + i) &&
               row[99] == (unsigned char)(number + i) && slot->places[i].draw == number * 10 + i &&
               slot->marks[i * 2].starts == (number ^ i) && slot->marks[i * 2 + 1].starts == ~number;
    }
    return fine;
}

static void produce(void *user)
{
    struct run *run = user;
    uint64_t seed = run->seed;
    bool failed_before = false;
    for (uint64_t number = 0; number < run->batches;) {
        struct slot *slot = ring_vacant(run->ring);
        if (!slot)
            return;
        delay(&seed, run->slow_producer);
        bool fail = run->fail_every && number % run->fail_every == 3 && !failed_before;
        fill(slot, number);
        if (fail) {
            slot->status = TOKMAP_ERROR_IO;
            ring_error(run->ring)->offset = number;
        }
        ring_publish(run->ring);
        failed_before = fail;
        if (fail && !ring_await_empty(run->ring))
            return;
        if (!fail)
            number++;
        run->produced = number;
    }
}

static void consume(struct run *run)
{
    uint64_t seed = run->seed + 1, failures = 0;
    for (uint64_t number = 0; number < run->batches;) {
        uint64_t waited;
        assert_true(ring_ready(run->ring) <= run->slots);
        struct slot *slot = ring_filled(run->ring, &waited);
        assert_non_null(slot);
        delay(&seed, run->slow_consumer);
        if (slot->status) {
            assert_int_equal(slot->status, TOKMAP_ERROR_IO);
            assert_int_equal(ring_error(run->ring)->offset, number);
            failures++;
        } else {
            assert_true(is_filled(slot, number));
            number++;
        }
        ring_release(run->ring);
    }
    if (run->fail_every)
        assert_int_equal(failures, (run->batches + run->fail_every - 4) / run->fail_every);
}

static void two_threads_with_any_delays(void **unused)
{
    (void)unused;
    for (unsigned kind = 0; kind < 36; kind++) {
        static const uint32_t slots[] = {1, 2, 3, 4, 8, 33};
        struct run run = {.batches = 6000,
                          .seed = kind,
                          .slots = slots[kind % 6],
                          .slow_producer = kind / 6 % 3 == 1,
                          .slow_consumer = kind / 6 % 3 == 2,
                          .fail_every = kind >= 18 ? 500 : 0};
        struct os_thread *producer;
        make_ring(&run, 5);
        assert_int_equal(os_thread_start(&producer, "producer", produce, &run), 0);
        consume(&run);
        os_thread_join(producer);
        assert_int_equal(ring_ready(run.ring), 0);
        free_ring(&run);
    }
}

/* During a long pause of the consumer the producer goes to sleep without a limit. The consumer wakes it afterwards. */
static void the_producer_wakes_after_a_long_pause(void **unused)
{
    (void)unused;
    struct run run = {.batches = 400, .slots = 5};
    struct os_thread *producer;
    uint64_t waited;
    make_ring(&run, 5);
    assert_int_equal(os_thread_start(&producer, "producer", produce, &run), 0);
    for (uint64_t number = 0; number < run.batches; number++) {
        if (number == 3)
            os_sleep_ns((uint64_t)1300000000);
        struct slot *slot = ring_filled(run.ring, &waited);
        assert_true(is_filled(slot, number));
        ring_release(run.ring);
    }
    os_thread_join(producer);
    free_ring(&run);
}

static void one_thread_makes_the_calls_of_both_sides(void **unused)
{
    (void)unused;
    struct run run = {.slots = 3};
    make_ring(&run, 5);
    for (uint64_t number = 0; number < 1000; number++) {
        uint64_t waited = 9;
        struct slot *slot = ring_vacant(run.ring);
        fill(slot, number);
        ring_publish(run.ring);
        assert_int_equal(ring_ready(run.ring), 1);
        slot = ring_filled(run.ring, &waited);
        assert_int_equal(waited, 0);
        assert_int_equal(ring_ready(run.ring), 0);
        assert_true(is_filled(slot, number));
        ring_release(run.ring);
    }
    assert_false(ring_was_full(run.ring));
    free_ring(&run);
}

static void stopping_ends_the_wait_of_the_producer(void **unused)
{
    (void)unused;
    for (unsigned turn = 0; turn < 50; turn++) {
        struct run run = {.batches = 1000, .seed = turn, .slots = 1 + turn % 5};
        struct os_thread *producer;
        make_ring(&run, 5);
        assert_int_equal(os_thread_start(&producer, "producer", produce, &run), 0);
        while (turn % 2 && !ring_was_full(run.ring))
            os_relax();
        if (turn % 4 == 3)
            os_sleep_ns(1000000); /* the producer sleeps now */
        ring_stop(run.ring);
        os_thread_join(producer);
        assert_true(run.produced <= run.slots);
        free_ring(&run);
    }
}

static void stop_later(void *user)
{
    os_sleep_ns(2000000);
    ring_stop(user);
}

static void stopping_ends_the_wait_of_the_consumer(void **unused)
{
    (void)unused;
    struct run run = {.slots = 2};
    struct os_thread *stopper;
    uint64_t waited;
    make_ring(&run, 1);
    assert_int_equal(os_thread_start(&stopper, "stopper", stop_later, run.ring), 0);
    assert_null(ring_filled(run.ring, &waited));
    assert_true(waited > 0);
    os_thread_join(stopper);
    assert_null(ring_vacant(run.ring));
    free_ring(&run);
}

/* A restarted ring is empty, whoever owned slots before, and it works as a new one. */
static void a_restarted_ring_begins_empty(void **unused)
{
    (void)unused;
    for (unsigned turn = 0; turn < 40; turn++) {
        struct run run = {.batches = 200, .seed = turn, .slots = 1 + turn % 5};
        struct os_thread *producer;
        uint64_t waited;
        make_ring(&run, 5);
        assert_int_equal(os_thread_start(&producer, "producer", produce, &run), 0);
        for (uint64_t number = 0; number < turn; number++) {
            assert_true(is_filled(ring_filled(run.ring, &waited), number));
            if (number + 1 < turn || turn % 2) /* else the consumer still owns a slot */
                ring_release(run.ring);
        }
        while (turn % 3 == 1 && !ring_was_full(run.ring))
            os_relax();
        ring_stop(run.ring);
        os_thread_join(producer);
        ring_restart(run.ring);
        assert_int_equal(ring_ready(run.ring), 0);
        assert_false(ring_was_full(run.ring));
        assert_false(ring_wait(run.ring, 0, &waited));
        assert_int_equal(os_thread_start(&producer, "producer", produce, &run), 0);
        consume(&run);
        os_thread_join(producer);
        free_ring(&run);
    }
}

static void a_shape_that_overflows_64_bits_is_refused(void **unused)
{
    (void)unused;
    struct ring_shape shape = {.rows = (uint64_t)1 << 31, .row_bytes = (uint64_t)1 << 34};
    assert_int_equal(ring_slot_bytes(&shape), UINT64_MAX);
    shape.rows = 0;
    assert_true(ring_slot_bytes(&shape) < 1000);
    shape.rows = 10;
    shape.row_marks = UINT64_MAX / 16;
    assert_int_equal(ring_slot_bytes(&shape), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_with_any_delays),
        cmocka_unit_test(the_producer_wakes_after_a_long_pause),
        cmocka_unit_test(one_thread_makes_the_calls_of_both_sides),
        cmocka_unit_test(stopping_ends_the_wait_of_the_producer),
        cmocka_unit_test(stopping_ends_the_wait_of_the_consumer),
        cmocka_unit_test(a_restarted_ring_begins_empty),
        cmocka_unit_test(a_shape_that_overflows_64_bits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
