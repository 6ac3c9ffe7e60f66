/* SPDX-License-Identifier: MIT */
/* test_path_glob.c - the globs that choose among files, and the judgment of a file's first bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/format_choice.h"
#include "support/scratch.h"
#include "text/path_glob.h"

static void test_files(void **state)
{
    static const struct {
        const char *glob, *path;
        bool matches;
    } cases[] = {
        {"*.txt", "a.txt", true},
        {"*.txt", "x/y/a.txt", true},
        {"*.txt", "a.txt/b", false},
        {"*", ".hidden", true},
        {"a", "a/b", false},
        {"/*.txt", "a.txt", true},
        {"/*.txt", "x/a.txt", false},
        {"x/*.txt", "x/a.txt", true},
        {"x/*.txt", "x/y/a.txt", false},
        {"x/*.txt", "w/x/a.txt", false},
        {"x/**/*.txt", "x/a.txt", true},
        {"x/**/*.txt", "x/y/z/a.txt", true},
        {"**/a.txt", "a.txt", true},
        {"**/a.txt", "x/a.txt", true},
        {"**/y/**/a", "x/y/z/a", true},
        {"**/y/**/a", "x/z/a", false},
        {"x/**", "x/y/a", true},
        {"x/**", "w/x/a", false},
        {"**/a/b/c", "a/b/a/b/c", true},
        {"**/a/b/c", "a/b/b/c", false},
        {"x/y", "/x//y", true},
        {"x/[ab]?", "x/bz", true},
        {"x/y/z", "x/y", false},
        {"x/y", "x/y/z", false},
        {"/", "x", false},
        {"*.txt", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (path_glob_file(cases[i].glob, cases[i].path) != cases[i].matches)
            fail_msg("%s and %s", cases[i].glob, cases[i].path);
    (void)state;
}

static void test_trees(void **state)
{
    assert_true(path_glob_tree("a", "a/b/c"));
    assert_true(path_glob_tree("b", "a/b/c"));
    assert_true(path_glob_tree("c", "a/b/c"));
    assert_true(path_glob_tree("a/b", "a/b/c"));
    assert_true(path_glob_tree("**/b", "a/b/c"));
    assert_true(path_glob_tree("/a", "a/b/c"));
    assert_false(path_glob_tree("/b", "a/b/c"));
    assert_false(path_glob_tree("b/c", "a/b/c"));
    assert_false(path_glob_tree("d", "a/b/c"));
    (void)state;
}

/* The plain definition: tries every number of components for two stars. */
static bool plainly(const char *const *glob, size_t globs, const char *const *path, size_t paths)
{
    if (!globs)
        return !paths;
    if (!strcmp(glob[0], "**")) {
        for (size_t i = 0; i <= paths; i++)
            if (plainly(glob + 1, globs - 1, path + i, paths - i))
                return true;
        return false;
    }
    return paths && (!strcmp(glob[0], "*") || !strcmp(glob[0], path[0])) &&
           plainly(glob + 1, globs - 1, path + 1, paths - 1);
}

static void test_random(void **state)
{
    static const char *const parts[] = {"a", "b", "*", "**"};
    uint64_t seed = 5;
    for (int round = 0; round < 20000; round++) {
        const char *glob[6], *path[8];
        char glob_text[64] = "", path_text[64] = "";
        const size_t globs = 2 + random_below(&seed, 4), paths = 1 + random_below(&seed, 7);
        for (size_t i = 0; i < globs; i++) {
            glob[i] = parts[random_below(&seed, 4)];
            (void)snprintf(glob_text + strlen(glob_text), 8, "%s%s", i ? "/" : "", glob[i]);
        }
        for (size_t i = 0; i < paths; i++) {
            path[i] = parts[random_below(&seed, 2)];
            (void)snprintf(path_text + strlen(path_text), 8, "%s%s", i ? "/" : "", path[i]);
        }
        if (path_glob_file(glob_text, path_text) != plainly(glob, globs, path, paths))
            fail_msg("%s and %s", glob_text, path_text);
    }
    (void)state;
}

static void test_sniff(void **state)
{
    static const struct {
        const char *text;
        enum sniff_kind kind;
    } cases[] = {
        {"", SNIFF_TEXT},
        {"{\"a\": 1}\n", SNIFF_JSONL},
        {"\xef\xbb\xbf\n {\"a\": 1}\n{\"a\": tru", SNIFF_JSONL},
        {"{\"a\": 1} and more\n", SNIFF_JSONL},
        {"{\"a\": 1} {\"a\": 2}\n", SNIFF_OBJECT},
        {"{\n\"a\": 1}\n", SNIFF_OBJECT},
        {"{\"a\": 1,\n}", SNIFF_OBJECT},
        {"{\"a\": 1,}\n", SNIFF_JSONL},
        {"{\"a\": NaN}\n{\"a\": -Infinity}\n", SNIFF_JSONL},
        {"{'a': 1}\n", SNIFF_JSONL},
        {"{a: 'b'}\n", SNIFF_JSONL},
        {"{1: 2}\n", SNIFF_JSONL},
        {"{ // a comment\n \"a\": 1}\n", SNIFF_JSONL},
        {"{\n // a comment\n \"a\": 1}\n", SNIFF_OBJECT},
        {"{\"a\": 1\n{\"a\": 1}\n", SNIFF_JSONL},
        {"// a comment\n/* more */ # and more\n{\"a\": 1}\n", SNIFF_JSONL},
        {"\xef\xbb\xbf\xef\xbb\xbf\v\f\x1e{\"a\": 1}\n", SNIFF_JSONL},
        {"{}\n", SNIFF_JSONL},
        {"{\"a", SNIFF_JSONL},
        {"{", SNIFF_JSONL},
        {"{}\n{\"a\": 1}\n", SNIFF_JSONL},
        {"{\n}\nprogram\n", SNIFF_TEXT},
        {"{} is empty\n", SNIFF_TEXT},
        {"{name}: 1\n", SNIFF_TEXT},
        {"{note: this}\n", SNIFF_TEXT},
        {"{ \"not json\" }\n", SNIFF_TEXT},
        {"{ 'a', 'b' }\n", SNIFF_TEXT},
        {"{% block %}\n", SNIFF_TEXT},
        {"{{ name }}\n", SNIFF_TEXT},
        {"{# \"a\": 1 #}\n", SNIFF_TEXT},
        {"{\\bf text}\n", SNIFF_TEXT},
        {"{\n  int i;\n}\n", SNIFF_TEXT},
        {"{\"a\nb\": 1}\n", SNIFF_TEXT},
        {"# Title\n\nText\n", SNIFF_TEXT},
        {"/* all\n of it", SNIFF_TEXT},
        {"[\n {\"a\":1}]", SNIFF_ARRAY},
        {"[\n \"a\", \"b\"]\n", SNIFF_STRINGS},
        {"[\"a\", \"b\"] text", SNIFF_TEXT},
        {"[\"a\"\n", SNIFF_TEXT},
        {"[\"a\", \"b\"", SNIFF_STRINGS},
        {"[\"a\"]\n[\"b\"]\n", SNIFF_STRINGS},
        {"['a', 'b']\n", SNIFF_STRINGS},
        {"['a'] is a list\n", SNIFF_TEXT},
        {"[\"a\"](url)\n", SNIFF_TEXT},
        {"[\"a]\n", SNIFF_TEXT},
        {"[{\"a\n", SNIFF_ARRAY},
        {"{\"a\nb", SNIFF_TEXT},
        {"[1, 2]\n", SNIFF_TEXT},
        {"[{\"a\":1}] text", SNIFF_ARRAY},
        {"[{\"a\":1},{\"a\":2}", SNIFF_ARRAY},
        {"[[{\"a\":1}]]", SNIFF_ARRAY},
        {"[ {", SNIFF_ARRAY},
        {"[{}]", SNIFF_ARRAY},
        {"[]\n", SNIFF_ARRAY},
        {"[ ] to do\n", SNIFF_TEXT},
        {"[link](url)\n", SNIFF_TEXT},
        {"[[link]]\n", SNIFF_TEXT},
        {"[{% if %}]\n", SNIFF_TEXT},
        {"[1, {\"a\":1}]", SNIFF_TEXT},
        {"a,text\n1,2\n", SNIFF_CSV},
        {"a,text\n", SNIFF_TEXT},
        {"a,text\n1,2,3\n", SNIFF_TEXT},
        {"a,text\n1,2\n1,2,3\n", SNIFF_CSV},
        {",text\n0,a\n", SNIFF_CSV},
        {"text,a,text\n1,2,3\n", SNIFF_CSV},
        {"\r\n\na,text\n1,2\n", SNIFF_CSV},
        {"a,b,c\n1,2,3\n\"x\ny\",2,3\n1,2,3\n", SNIFF_CSV},
        {"a,b,c\n1,2,3\n1,2,3\n", SNIFF_TEXT},
        {"a, b, c\n1,2,3\n1,2,3\n1,2,3\n", SNIFF_TEXT},
        {"a,b,a\n1,2,3\n1,2,3\n1,2,3\n", SNIFF_TEXT},
        {"a\tb\n1\t2\n1\t2\n1\t2\n", SNIFF_TSV},
        {"\ta\n\tb\n\tc\n\td\n", SNIFF_TEXT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (sniff(cases[i].text, strlen(cases[i].text), true, "text") != cases[i].kind)
            fail_msg("case %zu: %s", i, cases[i].text);
    assert_int_equal(sniff("a\0b", 3, true, "text"), SNIFF_BINARY);
    /* A file that continues: what can be seen is enough, or it is a text. */
    assert_int_equal(sniff("{\"a\": [1, 2, fal", 16, false, "text"), SNIFF_JSONL);
    assert_int_equal(sniff("{\"a\": [1, 2, fal", 16, true, "text"), SNIFF_JSONL);
    assert_int_equal(sniff("id,text\n1,\"a long", 16, false, "text"), SNIFF_CSV);
    assert_int_equal(sniff("id,body\n1,\"a long", 16, false, "text"), SNIFF_TEXT);
    (void)state;
}

/* Blanks may be longer than what is judged; comments may not. */
static void test_sniff_far(void **state)
{
    static const char begin[] = "\n[\n{\"a\": 1", comment[] = "*/ {\"a\": 1}";
    char *text = malloc(3 * SNIFF_BYTES);
    assert_non_null(text);
    memset(text, ' ', 3 * SNIFF_BYTES);
    assert_true(sniff_needs_more(text, 3 * SNIFF_BYTES));
    assert_int_equal(sniff(text, 3 * SNIFF_BYTES, true, "text"), SNIFF_TEXT);
    memcpy(text + 3 * SNIFF_BYTES - sizeof begin, begin, sizeof begin - 1);
    text[SNIFF_BYTES] = '[';
    for (uint64_t count = 0; count <= 3 * SNIFF_BYTES; count += count < SNIFF_BYTES ? 511 : 1)
        assert_int_equal(sniff_needs_more(text, count), count <= 3 * SNIFF_BYTES - 4);
    assert_int_equal(sniff(text, 3 * SNIFF_BYTES, true, "text"), SNIFF_ARRAY);
    for (int near = 0; near < 2; near++) {
        memset(text, ' ', 3 * SNIFF_BYTES);
        memcpy(text + SNIFF_BYTES, "/*", 2);
        memcpy(text + 2 * SNIFF_BYTES - 4 * near, comment, sizeof comment - 1);
        assert_int_equal(sniff(text, 3 * SNIFF_BYTES, true, "text"), near ? SNIFF_JSONL : SNIFF_TEXT);
        assert_false(sniff_needs_more(text, 3 * SNIFF_BYTES));
    }
    free(text);
    assert_true(sniff_needs_more("{ /", 3)); /* perhaps a comment */
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sniff_far), cmocka_unit_test(test_files), cmocka_unit_test(test_trees),
        cmocka_unit_test(test_random),    cmocka_unit_test(test_sniff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
