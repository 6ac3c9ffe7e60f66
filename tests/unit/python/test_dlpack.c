/* The deleters of DLPack tensors: each finds manager_ctx where dlpack.h has it, tells there, and touches nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tokmap/tokmap.h"

/* As dlpack.h, version 1.0, lays them out on 64-bit machines. */
enum { CONTEXT = 48, MANAGED = 64, VERSIONED_CONTEXT = 8, VERSIONED = 80 };

static void check(void (*deleted)(void *), size_t size, size_t context)
{
    _Alignas(8) unsigned char tensor[96], before[96];
    uint32_t told[3] = {0x55555555, 0, 0x55555555}, *place = &told[1];
    memset(tensor, 0xa5, sizeof tensor);
    memcpy(tensor + context, &place, sizeof place);
    memcpy(before, tensor, sizeof before);
    assert_true(size <= sizeof tensor);
    deleted(tensor);
    assert_memory_equal(tensor, before, sizeof before);
    assert_int_equal(told[0], 0x55555555);
    assert_int_equal(told[1], 1);
    assert_int_equal(told[2], 0x55555555);
    deleted(NULL);
}

static void the_owner_is_told(void **unused)
{
    (void)unused;
    check(tokmap_dlpack_deleted, MANAGED, CONTEXT);
    check(tokmap_dlpack_deleted_versioned, VERSIONED, VERSIONED_CONTEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_owner_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
