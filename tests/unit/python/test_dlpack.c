/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* The deleters of DLPack tensors: each finds manager_ctx at the offset that dlpack.h gives it, sets the flag to
 * which it points, and changes nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tokmap/tokmap.h"

/* Offsets and sizes in dlpack.h, version 1.0, on 64-bit machines. */
enum { CONTEXT = 48, MANAGED = 64, VERSIONED_CONTEXT = 8, VERSIONED = 80 };

static void check(void (*deleted)(void *), size_t size, size_t context)
{
    _Alignas(8) unsigned char tensor[96], before[96];
    uint32_t flags[3] = {0x55555555, 0, 0x55555555}, *owner = &flags[1];
    memset(tensor, 0xa5, sizeof tensor);
    memcpy(tensor + context, &owner, sizeof owner);
    memcpy(before, tensor, sizeof before);
    assert_true(size <= sizeof tensor);
    deleted(tensor);
    assert_memory_equal(tensor, before, sizeof before);
    assert_int_equal(flags[0], 0x55555555);
    assert_int_equal(flags[1], 1);
    assert_int_equal(flags[2], 0x55555555);
    deleted(NULL);
}

static void the_owner_s_flag_is_set(void **unused)
{
    (void)unused;
    check(tokmap_dlpack_deleter, MANAGED, CONTEXT);
    check(tokmap_dlpack_deleter_versioned, VERSIONED, VERSIONED_CONTEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_owner_s_flag_is_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
