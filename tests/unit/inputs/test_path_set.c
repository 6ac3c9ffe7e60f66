/* SPDX-License-Identifier: MIT */
/* test_path_set.c - which paths a set knows, also while it grows, and at its limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "inputs/path_set.h"

static void test_forms(void **state)
{
    static const struct {
        const char *path;
        enum path_set_result result;
    } paths[] = {
        {"a/b", PATH_NEW},
        {"a/b", PATH_KNOWN},
        {"./a/b", PATH_KNOWN},
        {"a//b", PATH_KNOWN},
        {"a/./b", PATH_KNOWN},
        {"././a/.//./b", PATH_KNOWN},
        {".//a///b", PATH_KNOWN},
        {"/a/b", PATH_NEW},
        {"//a/./b", PATH_KNOWN},
        {"a/.b", PATH_NEW},
        {"a./b", PATH_NEW},
        {"a/../b", PATH_NEW},
        {"../a/b", PATH_NEW},
        {".a/b", PATH_NEW},
        {"./../a/b", PATH_KNOWN},
        {"a", PATH_NEW},
        {"", PATH_NEW},
        {"", PATH_KNOWN},
        {"https://host/a", PATH_NEW},
        {"https://host/b", PATH_NEW},
        {"https://host/a", PATH_KNOWN},
    };
    struct path_set set = {0};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (path_set_add(&set, paths[i].path, false) != paths[i].result)
            fail_msg("'%s' (number %zu) is %s", paths[i].path, i, paths[i].result == PATH_NEW ? "known" : "new");
    path_set_free(&set);
    assert_int_equal(path_set_add(&set, "s3://bucket/a//b", true), PATH_NEW);
    assert_int_equal(path_set_add(&set, "s3://bucket/a/b", true), PATH_NEW);
    assert_int_equal(path_set_add(&set, "s3://bucket/a//b", true), PATH_KNOWN);
    path_set_free(&set);
    assert_int_equal(path_set_add(&set, "a/b", false), PATH_NEW);
    path_set_free(&set);
}

static void test_many(void **state)
{
    struct path_set set = {0};
    char path[32];
    for (size_t i = 0; i < PATH_SET_MOST + 2; i++) {
        (void)snprintf(path, sizeof path, "part-%zu.jsonl", i);
        if (path_set_add(&set, path, false) != PATH_NEW)
            fail_msg("%s is known", path);
    }
    assert_int_equal(set.count, PATH_SET_MOST);
    assert_int_equal(path_set_add(&set, "part-0.jsonl", false), PATH_KNOWN);
    (void)snprintf(path, sizeof path, "part-%zu.jsonl", PATH_SET_MOST - 1);
    assert_int_equal(path_set_add(&set, path, false), PATH_KNOWN);
    assert_int_equal(path_set_add(&set, "another", false), PATH_NEW);
    assert_int_equal(path_set_add(&set, "another", false), PATH_NEW); /* it is not kept */
    path_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
