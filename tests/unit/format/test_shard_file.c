/* SPDX-License-Identifier: MIT */
/*
 * test_shard_file.c - the name of each file of a shard says what it is, in each of its states; and a name that only
 * looks like one says nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "format/shard_file.h"

/* Checks what a name is, and frees it. */
static void check(char *name, const char *expected, enum shard_file file, enum shard_state state, uint64_t id)
{
    struct shard_name found;
    assert_string_equal(name, expected);
    assert_true(shard_file_find(name, strlen(name), &found));
    assert_int_equal(found.file, file);
    assert_int_equal(found.state, state);
    assert_int_equal(found.stem, strcspn(name, "."));
    assert_int_equal(found.id, id);
    assert_int_equal(shard_file_is(name, file), state == SHARD_FINAL);
    free(name);
}

static void names(void **state)
{
    (void)state;
    check(shard_file_path("a/web", SHARD_INDEX, SHARD_FINAL), "a/web.tmx", SHARD_INDEX, SHARD_FINAL, 0);
    check(shard_file_path("web", SHARD_SEALED, SHARD_READY_PARTIAL), "web.bin.zst.ready.partial", SHARD_SEALED,
          SHARD_READY_PARTIAL, 0);
    check(shard_file_numbered("web", 7, SHARD_TOKENS, SHARD_READY), "web-00007.bin.ready", SHARD_TOKENS, SHARD_READY,
          0);
    check(shard_file_beside("web.bin.zst", SHARD_MASK, SHARD_PARTIAL), "web.mask.partial", SHARD_MASK, SHARD_PARTIAL,
          0);
    check(shard_file_beside("web", SHARD_DROPPED, SHARD_FINAL), "web.dropped", SHARD_DROPPED, SHARD_FINAL, 0);
    check(shard_file_replaced("web.bin.zst", 0x1fe), "web.bin.zst.00000000000001fe", SHARD_SEALED, SHARD_REPLACED,
          0x1fe);
}

static void other_names(void **state)
{
    static const char *const others[] = {"",
                                         ".tmx",
                                         "web",
                                         "web.work",
                                         "web.bin.idx",
                                         "web.tmx.ready.partia",
                                         "web.bin.00000000000001f",
                                         "web.bin.00000000000001FE",
                                         "web.bin.ready.00000000000001fe",
                                         ".bin.00000000000001fe"};
    struct shard_name found;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(shard_file_find(others[i], strlen(others[i]), &found));
    assert_true(shard_file_find("web.bin.zst", 7, &found)); /* only so many bytes count */
    assert_int_equal(found.file, SHARD_TOKENS);
    assert_true(shard_file_is_main("web.bin.zst") && !shard_file_is_main("web.mask"));
    assert_true(shard_file_waits("web.ready") && shard_file_waits("web-00000.tmx.ready.partial"));
    assert_false(shard_file_waits("web.partial"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(other_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
