/* SPDX-License-Identifier: MIT */
/* os.h: processors and memory near a device. These are hints, so the tests only check that nothing breaks on any
 * machine. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <string.h>

#include "platform/os.h"

static void a_device_that_is_not_there_has_no_node(void **unused)
{
    (void)unused;
    assert_int_equal(os_pci_node(0xffff, 0xff, 0x1f), -1);
    assert_true(os_pci_node(0, 0, 0) >= -1);
}

static void memory_near_a_node_is_memory(void **unused)
{
    (void)unused;
    static const int nodes[] = {0, -1, 900, 1023, 1024, 1 << 30};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        void *memory;
        assert_int_equal(os_memory_new(1 << 20, false, &memory), 0);
        os_memory_prefer_node(memory, 1 << 20, nodes[i]);
        memset(memory, 7, 1 << 20);
        assert_int_equal(((uint8_t *)memory)[(1 << 20) - 1], 7);
        os_memory_free(memory, 1 << 20);
    }
}

struct seen {
    int node;
    cpu_set_t before, after;
};

static void move(void *user)
{
    struct seen *seen = user;
    CPU_ZERO(&seen->before);
    CPU_ZERO(&seen->after);
    (void)sched_getaffinity(0, sizeof seen->before, &seen->before);
    os_thread_prefer_node(seen->node);
    (void)sched_getaffinity(0, sizeof seen->after, &seen->after);
}

/* The thread keeps some of its processors and gets no others; a node without processors changes nothing. */
static void a_thread_near_a_node_still_runs(void **unused)
{
    (void)unused;
    static const int nodes[] = {0, 1, -1, 900, 1 << 30};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        struct seen seen = {.node = nodes[i]};
        struct os_thread *thread;
        cpu_set_t both;
        assert_int_equal(os_thread_start(&thread, "test", move, &seen), 0);
        os_thread_join(thread);
        CPU_AND(&both, &seen.before, &seen.after);
        assert_true(CPU_EQUAL(&both, &seen.after));
        assert_true(CPU_COUNT(&seen.after) > 0 || !CPU_COUNT(&seen.before));
        if (nodes[i] < 0 || nodes[i] >= 900)
            assert_true(CPU_EQUAL(&seen.before, &seen.after));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_is_not_there_has_no_node),
        cmocka_unit_test(memory_near_a_node_is_memory),
        cmocka_unit_test(a_thread_near_a_node_still_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
