/* SPDX-License-Identifier: MIT */
/* test_byte_trie.c - a trie finds the texts of its set, and nothing else: beside a search of all texts one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/byte_trie.h"

static uint64_t seed = 1;
static uint32_t random_below(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % most);
}

#define KEYS 3000
#define TEXT 24

struct set {
    uint8_t texts[KEYS][TEXT];
    struct byte_trie_key keys[KEYS];
    size_t count;
};

static void fill(uint8_t *text, uint32_t count, uint32_t alphabet)
{
    for (uint32_t i = 0; i < count; i++)
        text[i] = alphabet == 256 ? (uint8_t)random_below(256) : (uint8_t)(random_below(alphabet) + (i % 2 ? 0 : 'a'));
}

/* Returns the value of the text, or BYTE_TRIE_NONE. */
static uint32_t value_of(const struct set *set, const uint8_t *text, uint32_t count)
{
    uint32_t value = BYTE_TRIE_NONE;
    for (size_t i = 0; i < set->count; i++)
        if (set->keys[i].count == count && !memcmp(set->keys[i].bytes, text, count) &&
            (value == BYTE_TRIE_NONE || value < set->keys[i].value))
            value = set->keys[i].value;
    return value;
}

static void check(const struct set *set, const struct byte_trie *trie, const uint8_t *text, uint32_t count)
{
    uint32_t node = BYTE_TRIE_ROOT, longest = 0, found = 0, wanted = 0;
    for (uint32_t at = 0; at < count; at++) {
        const struct byte_trie_tail *tail = node == BYTE_TRIE_NONE ? NULL : byte_trie_tail(trie, node);
        uint32_t value = BYTE_TRIE_NONE;
        if (tail && byte_trie_ends(tail, text + at, count - at)) {
            for (uint32_t i = 1; i < tail->count; i++, at++)
                assert_int_equal(value_of(set, text, at + 1), BYTE_TRIE_NONE);
            value = tail->value;
        }
        node = tail || node == BYTE_TRIE_NONE ? BYTE_TRIE_NONE : byte_trie_step(trie, node, text[at]);
        value = node == BYTE_TRIE_NONE ? value : trie->nodes[node].value;
        assert_int_equal(value, value_of(set, text, at + 1));
        if (value != BYTE_TRIE_NONE) {
            longest = at + 1;
            wanted = value;
        }
    }
    assert_int_equal(byte_trie_longest(trie, text, count, &found), longest);
    if (longest)
        assert_int_equal(found, wanted);
}

static void random_sets(void **unused)
{
    static struct set set;
    (void)unused;
    static const uint32_t alphabets[] = {1, 2, 3, 16, 256};
    static const uint32_t sizes[] = {0, 1, 2, 30, 300, KEYS};
    for (size_t a = 0; a < 10; a++)
        for (size_t s = 0; s < 6; s++) {
            struct byte_trie trie;
            set.count = sizes[s];
            for (size_t i = 0; i < set.count; i++) {
                const uint32_t count = 1 + random_below(TEXT);
                fill(set.texts[i], count, alphabets[a / 2]);
                set.keys[i] = (struct byte_trie_key){set.texts[i], count, (uint32_t)i};
            }
            assert_int_equal(byte_trie_build(&trie, set.keys, set.count, a % 2), TOKMAP_OK);
            assert_true(trie.count <= 2048 + 2 * TEXT * set.count); /* free nodes are used */
            for (size_t i = 0; i < 200; i++) {
                uint8_t text[TEXT + 4];
                if (set.count && i % 2) {
                    memcpy(text, set.texts[random_below((uint32_t)set.count)], TEXT);
                    fill(text + TEXT, 4, alphabets[a / 2]);
                } else {
                    fill(text, sizeof text, alphabets[a / 2]);
                }
                check(&set, &trie, text, 1 + random_below(sizeof text));
            }
            byte_trie_free(&trie);
        }
}

/* A text of a million bytes makes as many nodes, and no recursion; the nodes are limited. */
static void deep(void **unused)
{
    enum { DEEP = 1000000 };
    struct byte_trie trie;
    uint32_t value;
    uint8_t *text = malloc(DEEP);
    (void)unused;
    assert_non_null(text);
    memset(text, 'a', DEEP);
    struct byte_trie_key keys[] = {{text, DEEP, 7}, {text, 3, 8}};
    assert_int_equal(byte_trie_build(&trie, keys, 2, false), TOKMAP_OK);
    assert_int_equal(byte_trie_longest(&trie, text, DEEP, &value), DEEP);
    assert_int_equal(value, 7);
    assert_int_equal(byte_trie_longest(&trie, text, DEEP - 1, &value), 3);
    assert_int_equal(value, 8);
    byte_trie_free(&trie);
    free(text);
    text = calloc(1, BYTE_TRIE_NODES_MOST);
    assert_non_null(text);
    assert_int_equal(byte_trie_build(&trie, &(struct byte_trie_key){text, BYTE_TRIE_NODES_MOST, 0}, 1, false),
                     TOKMAP_ERROR_LIMIT);
    byte_trie_free(&trie);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_sets), cmocka_unit_test(deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
