/* SPDX-License-Identifier: MIT */
/* test_charsmap.c - precompiled maps: damaged ones are refused, one fault each; what both ways of reading find;
 * grapheme clusters. tests/reference/hf_variants.py compares with the references. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "unicode/charsmap.h"

#define ACUTE "\xCC\x81" /* U+0301 */

/* ---- a map that tests may change: each node has a block of 256 units of its own, node 0 is the root ---- */

#define NODES 64
static uint32_t units[256 * (NODES + 1)];
static uint8_t texts[8192];
static uint32_t nodes, texts_bytes, unit_count; /* unit_count: of the trie; usually all */

static uint32_t base_of(uint32_t node)
{
    return 256 * (node + 1);
}

static void map_begin(void)
{
    memset(units, 0, sizeof units);
    for (uint32_t i = 0; i < sizeof units / sizeof units[0]; i++)
        units[i] = UINT32_C(1) << 31;
    units[0] = base_of(0) << 10;
    nodes = 1;
    texts_bytes = 0;
    unit_count = sizeof units / sizeof units[0];
}

/* Makes the child of a node for a byte, or finds it. */
static uint32_t child(uint32_t node, uint8_t byte)
{
    const uint32_t at = base_of(node) ^ byte;
    if (units[at] == UINT32_C(1) << 31) {
        assert_true(nodes < NODES);
        units[at] = byte | (at ^ base_of(nodes)) << 10;
        nodes++;
    }
    return ((at ^ units[at] >> 10) >> 8) - 1;
}

static void key_add(const char *key, uint32_t value)
{
    uint32_t node = 0, last = 0;
    for (; *key; key++) {
        last = base_of(node) ^ (uint8_t)*key;
        node = child(node, (uint8_t)*key);
    }
    units[last] |= 256;
    units[base_of(node)] = UINT32_C(1) << 31 | value;
}

static void replace_by(const char *key, const char *made)
{
    key_add(key, texts_bytes);
    assert_true(texts_bytes + strlen(made) < sizeof texts);
    memcpy(texts + texts_bytes, made, strlen(made) + 1);
    texts_bytes += (uint32_t)strlen(made) + 1;
}

static enum tokmap_status map_make(struct charsmap **map, struct tokmap_error *error)
{
    static uint8_t bytes[4 + sizeof units + sizeof texts];
    const uint32_t trie = unit_count * (uint32_t)sizeof units[0];
    store32(bytes, trie);
    memcpy(bytes + 4, units, trie);
    memcpy(bytes + 4 + trie, texts, texts_bytes);
    return charsmap_new(map, bytes, 4 + trie + texts_bytes, "a file", "a field", error);
}

static struct charsmap *map_good(void)
{
    struct charsmap *map;
    struct tokmap_error error;
    assert_int_equal(map_make(&map, &error), TOKMAP_OK);
    return map;
}

static void refused(enum tokmap_status status, const char *word)
{
    struct charsmap *map;
    struct tokmap_error error = {0};
    const enum tokmap_status got = map_make(&map, &error);
    if (got != status || !strstr(error.message, word) || !strstr(error.message, "a field"))
        fail_msg("expected %d and '%s', got %d: %s", (int)status, word, (int)got, error.message);
    assert_null(map);
}

/* Checks what the longest keys (`longest`) and the clusters of a text become. */
static void check(const struct charsmap *map, const char *text, const char *longest, const char *clusters)
{
    const uint8_t *bytes = (const uint8_t *)text;
    const size_t count = strlen(text);
    for (int way = 0; way < 2; way++) {
        struct bytes_buffer made = {NULL, 0, 0};
        struct charsmap_part part;
        struct code_block block = CODE_BLOCK_NONE;
        struct charsmap_clusters place = CHARSMAP_CLUSTERS;
        size_t at = 0;
        while (way ? charsmap_find_cluster(map, bytes, count, &place, &part)
                   : charsmap_find(map, bytes, at, count, count, &block, &part)) {
            assert_true(bytes_append(&made, bytes + at, part.from - at));
            assert_true(bytes_append(&made, part.made, part.made_count));
            at = part.to;
        }
        assert_true(bytes_append(&made, bytes + at, count - at) && bytes_append(&made, "", 1));
        assert_string_equal((const char *)made.bytes, way ? clusters : longest);
        bytes_free(&made);
    }
}

static void searches(void **state)
{
    map_begin();
    replace_by("\t", " ");
    replace_by("e" ACUTE, "\xC3\xA9");
    replace_by("a", "A");
    replace_by("ab", "AB");
    replace_by("abc", "X");
    replace_by("\xEF\xAC\x81", "fi"); /* U+FB01 */
    replace_by("\xF0\x9D\x90\x80", "M");
    replace_by("\xE1\x84\x80\xE1\x85\xA1", "G"); /* U+1100 U+1161, 6 bytes */
    replace_by("\xC2\xAD", "");
    struct charsmap *map = map_good();
    assert_int_equal(charsmap_growth(map), 1);
    assert_false(charsmap_makes_spaces(map));
    check(map, "", "", "");
    check(map, "xyz", "xyz", "xyz");
    check(map, "x\ty", "x y", "x y");
    check(map, "cafe" ACUTE "!", "cAf\xC3\xA9!", "cAf\xC3\xA9!");
    check(map, "abcabxa", "XABxA", "AbcAbxA"); /* no cluster has two of these letters */
    check(map, "a" ACUTE, "A" ACUTE, "A");     /* the shortest key replaces the whole cluster */
    check(map, "e" ACUTE ACUTE, "\xC3\xA9" ACUTE, "\xC3\xA9");
    check(map, "e" ACUTE ACUTE ACUTE, "\xC3\xA9" ACUTE ACUTE, "e" ACUTE ACUTE ACUTE); /* 7 bytes */
    check(map, "\xEF\xAC\x81\xEF\xAC\x81", "fifi", "fifi");
    check(map, "\xF0\x9D\x90\x80\xF0\x9D\x90\x81", "M\xF0\x9D\x90\x81", "M\xF0\x9D\x90\x81");
    check(map, "\xE1\x84\x80\xE1\x85\xA1", "G", "\xE1\x84\x80\xE1\x85\xA1");
    check(map,
          "so\xC2\xAD"
          "ft",
          "soft", "soft");
    charsmap_free(map);
}

/* Keys that end at a limit are found, and those that begin there are not. */
static void limits(void **state)
{
    struct charsmap_part part;
    struct code_block block = CODE_BLOCK_NONE;
    map_begin();
    replace_by("ab", "  ");
    struct charsmap *map = map_good();
    const uint8_t text[] = "xxabab";
    assert_true(charsmap_makes_spaces(map));
    assert_int_equal(charsmap_growth(map), 1);
    assert_true(charsmap_find(map, text, 0, 3, 6, &block, &part));
    assert_int_equal(part.from, 2);
    assert_int_equal(part.to, 4);
    assert_false(charsmap_find(map, text, 4, 4, 6, &block, &part));
    assert_true(charsmap_find(map, text, 4, 5, 6, &block, &part));
    charsmap_free(map);
    replace_by("cd", "xyz"); /* a part of a byte more for each byte counts as a byte */
    map = map_good();
    assert_int_equal(charsmap_growth(map), 2);
    charsmap_free(map);
}

static void damaged(void **state)
{
    struct charsmap *map;
    struct tokmap_error error;
    const enum tokmap_status bad = TOKMAP_ERROR_FORMAT;
    static const uint8_t nothing[4 + 1024];
    for (size_t count = 0; count < sizeof nothing; count += 3)
        assert_int_equal(charsmap_new(&map, nothing, count, NULL, "a field", &error), bad);
    static uint8_t short_of_four[4 + 1028]; /* the trie ends four bytes after the map */
    store32(short_of_four, 1028);
    assert_int_equal(charsmap_new(&map, short_of_four, 4 + 1024, NULL, "a field", &error), bad);
    assert_non_null(strstr(error.message, "wrong size"));

    map_begin();
    units[0] = UINT32_C(0x1FFFFF) << 10;
    refused(bad, "node outside");
    map_begin();
    replace_by("ab", "x");
    units[base_of(0) ^ 'a'] = 'a' | UINT32_C(0x1FFFFF) << 10;
    refused(bad, "node outside");
    map_begin();
    replace_by("ab", "x");
    units[base_of(0) ^ 'a'] = 'a' | 512 | UINT32_C(0x1000) << 10; /* the offset has 8 more bits */
    refused(bad, "node outside");
    map_begin();
    unit_count = base_of(0) + 16; /* children of the root would be outside */
    refused(bad, "node outside");
    map_begin();
    replace_by("a", "x");
    unit_count = base_of(1) + 16; /* so would those of the node of a */
    refused(bad, "node outside");
    map_begin();
    key_add("a", 1);
    refused(bad, "replacement outside");
    map_begin();
    replace_by("a", "\xC3\xA9");
    key_add("b", 1);
    refused(bad, "replacement that is not UTF-8");
    map_begin();
    replace_by("\xC3", "x");
    refused(bad, "key that is not UTF-8");
    map_begin();
    replace_by("ab", "x");
    units[base_of(0) ^ 'a'] = 'a' | ((base_of(0) ^ 'a' ^ base_of(0)) << 10); /* the root is its own child */
    refused(TOKMAP_ERROR_LIMIT, "circle");
    map_begin();
    key_add("\xE0\x80\x80", 9); /* no text has it, so what it becomes does not matter */
    charsmap_free(map_good());
    map_begin();
    texts_bytes = 5000;
    memset(texts, 'x', texts_bytes);
    key_add("a", 10);
    refused(TOKMAP_ERROR_LIMIT, "4096");
    key_add("a", 904); /* its end is the end of the map */
    map = map_good();
    assert_int_equal(charsmap_growth(map), 4096);
    charsmap_free(map);
}

static void clusters(void **state)
{
    static const struct {
        const char *text;
        size_t end;
    } cases[] = {{"ab", 1},
                 {"a" ACUTE "b", 3},
                 {"\r\nx", 2},
                 {"\n\r", 1},
                 {"\n" ACUTE, 1},
                 {"\xD8\x80"
                  "ab",
                  3},                                                           /* Prepend */
                 {"\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8\xE1\x84\x80", 9},       /* L V T, L */
                 {"\xEA\xB0\x80\xE1\x86\xA8\xE1\x85\xA1", 6},                   /* LV T, V */
                 {"\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9x", 11},         /* emoji, joiner, emoji */
                 {"\xF0\x9F\x91\xA8\xE2\x80\x8Dx", 7},                          /* emoji, joiner */
                 {"\xE2\x9D\xA4\xEF\xB8\x8F\xE2\x80\x8D\xF0\x9F\x91\xA9x", 13}, /* heart, variation, joiner, emoji */
                 {"a\xE2\x80\x8D\xF0\x9F\x91\xA9", 4},                          /* a, joiner, emoji */
                 {"\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\x95x", 9},                  /* ka, virama, ka */
                 {"\xE0\xA4\x95\xE0\xA4\x95", 3},                               /* ka, ka */
                 {"\xE0\xA4\x95\xE0\xA4\xBC\xE0\xA5\x8D\xE2\x80\x8D\xE0\xA4\x95\xE0\xA4\x95", 15}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint8_t *text = (const uint8_t *)cases[i].text;
        const size_t count = strlen(cases[i].text);
        assert_int_equal(grapheme_end(text, 0, count), cases[i].end);
        for (size_t at = 0; at < cases[i].end; at++) /* whatever is inside of the cluster belongs to its beginning */
            if ((text[at] & 0xC0) != 0x80)
                assert_int_equal(grapheme_begin(text, 0, at), 0);
        if (cases[i].end < count) /* what two characters say is never inside of a cluster */
            assert_true(grapheme_begin(text, 0, cases[i].end) == cases[i].end ||
                        grapheme_begin(text, 0, cases[i].end) == 0);
    }
}

/* A text in which each cluster is looked for from far behind takes linear time. */
static void linear(void **state)
{
    const size_t marks = 2000000;
    uint8_t *text = malloc(1 + 2 * marks);
    struct charsmap_part part;
    struct charsmap_clusters place = CHARSMAP_CLUSTERS;
    size_t found = 0;
    assert_non_null(text);
    text[0] = 'a';
    for (size_t i = 0; i < marks; i++)
        memcpy(text + 1 + 2 * i, ACUTE, 2);
    map_begin();
    replace_by(ACUTE, "");
    struct charsmap *map = map_good();
    while (charsmap_find_cluster(map, text, 1 + 2 * marks, &place, &part))
        found++;
    assert_int_equal(found, marks);
    /* So does one in which a key is looked for before each of many places. */
    struct code_block block = CODE_BLOCK_NONE;
    memset(text, 'a', 1 + 2 * marks);
    for (size_t at = 0; at < 2 * marks; at++)
        assert_false(charsmap_find(map, text, at, at + 1, 1 + 2 * marks, &block, &part));
    charsmap_free(map);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(searches), cmocka_unit_test(limits), cmocka_unit_test(damaged),
                                       cmocka_unit_test(clusters), cmocka_unit_test(linear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
