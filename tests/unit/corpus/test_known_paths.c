/* SPDX-License-Identifier: MIT */
/* test_known_paths.c - which paths a list knows, also while it grows, and at its limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "corpus/known_paths.h"

static void test_forms(void **state)
{
    static const struct {
        const char *path;
        enum known_paths_result result;
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
    struct known_paths known = {0};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (known_paths_add(&known, paths[i].path, false) != paths[i].result)
            fail_msg("'%s' (number %zu) is %s", paths[i].path, i, paths[i].result == PATH_NEW ? "known" : "new");
    known_paths_free(&known);
    assert_int_equal(known_paths_add(&known, "s3://bucket/a//b", true), PATH_NEW);
    assert_int_equal(known_paths_add(&known, "s3://bucket/a/b", true), PATH_NEW);
    assert_int_equal(known_paths_add(&known, "s3://bucket/a//b", true), PATH_KNOWN);
    known_paths_free(&known);
    assert_int_equal(known_paths_add(&known, "a/b", false), PATH_NEW);
    known_paths_free(&known);
}

static void test_many(void **state)
{
    struct known_paths known = {0};
    char path[32];
    for (size_t i = 0; i < KNOWN_PATHS_MOST + 2; i++) {
        (void)snprintf(path, sizeof path, "part-%zu.jsonl", i);
        if (known_paths_add(&known, path, false) != PATH_NEW)
            fail_msg("%s is known", path);
    }
    assert_int_equal(known.count, KNOWN_PATHS_MOST);
    assert_int_equal(known_paths_add(&known, "part-0.jsonl", false), PATH_KNOWN);
    (void)snprintf(path, sizeof path, "part-%zu.jsonl", KNOWN_PATHS_MOST - 1);
    assert_int_equal(known_paths_add(&known, path, false), PATH_KNOWN);
    assert_int_equal(known_paths_add(&known, "another", false), PATH_NEW);
    assert_int_equal(known_paths_add(&known, "another", false), PATH_NEW); /* it is not kept */
    known_paths_free(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
