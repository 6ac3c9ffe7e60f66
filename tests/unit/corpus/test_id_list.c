/* SPDX-License-Identifier: MIT */
/* test_id_list.c - lists of ids and masks against a reader that looks at one byte at a time, and the finder of fields.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/id_list.h"
#include "corpus/json_field.h"
#include "support/guarded.h"

#define TEXT_MOST 4096
#define IDS_MOST 512

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % n;
}

/* Writes a list of random ids, most of them with few digits, and returns how many there are. */
static uint64_t list_write(char *text, uint64_t *ids, bool is_mask)
{
    static const char *const commas[] = {",", ", ", " ,", ",\n", " , ", ",  "};
    const uint64_t count = random_below(40);
    const char *comma = commas[random_below(6)];
    size_t at = 0;
    at += (size_t)sprintf(text + at, "[%s", random_below(4) ? "" : " ");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t limit = 10;
        for (uint64_t digits = random_below(10); digits; digits--)
            limit *= 10;
        ids[i] = is_mask ? random_below(2)
                         : random_below(limit < UINT64_C(4294967296) ? limit : 2147483647) * (1 + random_below(2));
        if (is_mask && !random_below(3))
            at += (size_t)sprintf(text + at, "%s%s", i ? comma : "", ids[i] ? "true" : "false");
        else
            at += (size_t)sprintf(text + at, "%s%" PRIu64, i ? comma : "", ids[i]);
    }
    sprintf(text + at, "%s]", random_below(4) ? "" : "\t");
    return count;
}

static void test_lists_are_read(void **state)
{
    static char text[TEXT_MOST];
    uint64_t ids[IDS_MOST];
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const bool is_mask = round % 2;
        const uint64_t count = list_write(text, ids, is_mask);
        const size_t bytes = strlen(text);
        /* Nothing is read or written outside: both memories end where they must. */
        const struct guarded guarded = guarded_new(bytes);
        memcpy(guarded.at, text, bytes);
        size_t length = 0;
        const uint64_t room = id_list_room(guarded.at, bytes, &length);
        uint64_t found = 0, largest_wanted = 0;
        assert_int_equal(length, bytes);
        assert_true(room >= count && room <= count + 1);
        if (is_mask) {
            struct guarded kept = guarded_new(room);
            uint8_t *values = (uint8_t *)kept.at;
            assert_true(mask_list_read(guarded.at, bytes, values, &found));
            assert_int_equal(found, count);
            for (uint64_t i = 0; i < count; i++)
                assert_int_equal(values[i], ids[i]);
            guarded_free(kept);
        } else {
            struct guarded kept = guarded_new(room * sizeof(uint32_t));
            uint32_t *values = (uint32_t *)(void *)kept.at, largest = 1;
            assert_true(id_list_read(guarded.at, bytes, values, &found, &largest));
            assert_int_equal(found, count);
            for (uint64_t i = 0; i < count; i++) {
                assert_int_equal(values[i], ids[i]);
                largest_wanted = ids[i] > largest_wanted ? ids[i] : largest_wanted;
            }
            assert_int_equal(largest, largest_wanted);
            guarded_free(kept);
        }
        guarded_free(guarded);
    }
}

/* Whether a text is a list in JSON of ids (or of values of a mask), found with the general scanner. */
static bool is_list(const char *text, size_t bytes, bool is_mask)
{
    struct list_fault fault;
    if (!json_is_valid(text, bytes, JSON_DEPTH))
        return false;
    fault = is_mask ? mask_list_fault(text, bytes) : id_list_fault(text, bytes, UINT64_C(4294967296));
    return !fault.reason;
}

/* Lists with one byte changed are accepted exactly if they still are what they must be. */
static void test_changed_lists_are_judged(void **state)
{
    static const char bytes_tried[] = "0129-+.eE,[]{}\": tfn\n\t\\a\x80";
    static char text[TEXT_MOST];
    uint64_t ids[IDS_MOST], accepted = 0, refused = 0;
    (void)state;
    for (int round = 0; round < 60000; round++) {
        const bool is_mask = round % 2;
        (void)list_write(text, ids, is_mask);
        size_t bytes = strlen(text), length = 0;
        const size_t at = 1 + random_below(bytes - 1);
        if (random_below(4))
            text[at] = bytes_tried[random_below(sizeof bytes_tried - 1)];
        else
            bytes = at; /* cut short */
        const struct guarded guarded = guarded_new(bytes);
        memcpy(guarded.at, text, bytes);
        const uint64_t room = id_list_room(guarded.at, bytes, &length);
        uint64_t found;
        uint32_t largest;
        bool got = room && length == bytes;
        void *values = malloc(room * sizeof(uint32_t) + 1);
        if (got)
            got = is_mask ? mask_list_read(guarded.at, bytes, values, &found)
                          : id_list_read(guarded.at, bytes, values, &found, &largest);
        if (got != is_list(text, bytes, is_mask))
            print_error("list: %.*s\n", (int)bytes, text);
        assert_int_equal(got, is_list(text, bytes, is_mask));
        *(got ? &accepted : &refused) += 1;
        free(values);
        guarded_free(guarded);
    }
    assert_true(accepted > 5000 && refused > 5000);
}

/* Lists of labels with one byte changed are accepted exactly if each is -100 or the id of its place. */
static void test_labels_are_judged(void **state)
{
    static const char bytes_tried[] = "0129-+.eE,[]{}\": tfn\n\t\\a\x80";
    static char text[TEXT_MOST];
    uint64_t accepted = 0, refused = 0;
    (void)state;
    for (int round = 0; round < 60000; round++) {
        const uint64_t count = random_below(20), id_count = count - (count && !random_below(8));
        uint32_t ids[20];
        size_t at = (size_t)sprintf(text, "["), length = 0;
        for (uint64_t i = 0; i < count; i++) {
            ids[i] = (uint32_t)random_below(random_below(2) ? 200 : 4294967296);
            at += (size_t)sprintf(text + at, "%s%s", i ? "," : "", random_below(3) ? "" : " ");
            at += random_below(2) ? (size_t)sprintf(text + at, "-100") : (size_t)sprintf(text + at, "%" PRIu32, ids[i]);
        }
        size_t bytes = at + (size_t)sprintf(text + at, "%s]", random_below(4) ? "" : "\t");
        const uint64_t change = random_below(4);
        if (change == 1)
            bytes = 1 + random_below(bytes - 1);
        else if (change)
            text[1 + random_below(bytes - 1)] = bytes_tried[random_below(sizeof bytes_tried - 1)];
        const struct guarded guarded = guarded_new(bytes);
        memcpy(guarded.at, text, bytes);
        const uint64_t room = id_list_room(guarded.at, bytes, &length);
        uint64_t found = 0;
        struct guarded values = guarded_new(room + !room);
        const bool got =
            room && length == bytes && label_list_read(guarded.at, bytes, ids, id_count, (uint8_t *)values.at, &found);
        const bool wanted =
            json_is_valid(text, bytes, JSON_DEPTH) && !label_list_fault(text, bytes, ids, id_count).reason;
        if (got != wanted)
            print_error("list: %.*s\n", (int)bytes, text);
        assert_int_equal(got, wanted);
        assert_true(!got || found <= room);
        *(got ? &accepted : &refused) += 1;
        guarded_free(values);
        guarded_free(guarded);
    }
    assert_true(accepted > 5000 && refused > 5000);
}

static void test_faults_are_found(void **state)
{
    static const struct {
        const char *text, *reason;
        uint64_t index;
        size_t offset, count;
    } cases[] = {
        {"[1, -2]", "is negative", 1, 4, 2},
        {"[-0]", "is negative", 0, 1, 2},
        {"[1,2,10]", "is not below the size of the vocabulary", 2, 5, 2},
        {"[18446744073709551616]", "is not below the size of the vocabulary", 0, 1, 20},
        {"[1.0]", "is not written as a whole number", 0, 1, 3},
        {"[1e0]", "is not written as a whole number", 0, 1, 3},
        {"[-1.5]", "is not written as a whole number", 0, 1, 4},
        {"[ null]", "is not a number", 0, 2, 4},
        {"[1, [2, 3]]", "is not a number", 1, 4, 6},
        {"[9, 0]", NULL, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct list_fault fault = id_list_fault(cases[i].text, strlen(cases[i].text), 10);
        if (!cases[i].reason) {
            assert_null(fault.reason);
            continue;
        }
        assert_string_equal(fault.reason, cases[i].reason);
        assert_int_equal(fault.index, cases[i].index);
        assert_int_equal(fault.offset, cases[i].offset);
        assert_int_equal(fault.count, cases[i].count);
    }
}

/* Finds the field `name`; returns its text in the record, "" if it is missing, or NULL for a fault. */
static const char *find(const char *record, const char *name, bool numbers, bool fast, char text[256])
{
    struct json_wanted wanted = {.name = name, .name_bytes = strlen(name), .numbers = numbers};
    struct json_fault fault = {0, NULL};
    uint64_t not_finite;
    size_t twice = 7;
    if (!json_fields_find(record, strlen(record), &wanted, 1, fast, &not_finite, &fault, &twice)) {
        assert_non_null(fault.reason);
        assert_true(fault.offset <= strlen(record));
        assert_true(strcmp(fault.reason, JSON_FIELD_TWICE) != 0 || twice == 0);
        return NULL;
    }
    (void)snprintf(text, 256, "%.*s", wanted.kind == JSON_NOTHING ? 0 : (int)wanted.count,
                   wanted.kind == JSON_NOTHING ? "" : record + wanted.offset);
    return text;
}

static void test_names_reach_into_objects(void **state)
{
    static const struct {
        const char *record, *name, *value;
    } cases[] = {
        {"{\"a\": {\"b\": 1}}", "a.b", "1"},
        {"{\"a\": {\"b\": 1}, \"a.b\": \"x\"}", "a.b", "x"},
        {"{\"a.b\": [2], \"a\": {\"b\": 1}}", "a.b", "[2]"},
        {"{\"a\": {\"b\": {\"c\": null}}}", "a.b.c", "null"},
        {"{\"a\": {\"b.c\": 3, \"b\": {\"c\": 4}}}", "a.b.c", "3"},
        {"{\"a\": 5}", "a.b", ""},
        {"{\"a\": \"b\"}", "a.b", ""},
        {"{\"a\": [{\"b\": 1}]}", "a.b", ""},
        {"{\"a\": {\"b\": 1, \"b\": 2}}", "a.b", NULL},
        {"{\"a\": {\"b\": 1}, \"a\": {\"b\": 2}}", "a.b", NULL},
        {"{\"a\": {\"b\": 1}, \"a\": {\"b\": 2}, \"a.b\": 3}", "a.b", "3"},
        {"{\"a.b\": 1, \"a.b\": 3}", "a.b", NULL},
        {"{\"\\u0061\": {\"\\u0062\": \"\\u0063\"}}", "a.b", "\\u0063"},
        {"{\"\": {\"a\": 1}, \".a\": 2}", ".a", "2"},
        {"{\"a\": {\"\": 1}, \"a.\": 2}", "a.", "2"},
        {"{\"a\": {\"b\": 1}", "a.b", NULL},
        {"[1]", "a.b", NULL},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int fast = 0; fast < 2; fast++) {
            const char *value = find(cases[i].record, cases[i].name, false, fast, text);
            if (!cases[i].value)
                assert_null(value);
            else if (value)
                assert_string_equal(value, cases[i].value);
            else
                fail_msg("case %zu: a fault", i);
        }
}

/* What the fast way finds, where the list is one of numbers, is what the slow way finds. */
static void test_fast_is_slow(void **state)
{
    static const char *const lists[] = {"[1, 2]", "[]", "[ 3 ]", "5", "null", "\"]\""};
    char record[512], one[256], two[256];
    (void)state;
    for (int round = 0; round < 2000; round++) {
        (void)snprintf(record, sizeof record, "{\"x\": \"]\", %s\"ids\": %s%s, \"y\": [\"[\"]}",
                       random_below(2) ? "\"z\": {\"ids\": [\"]\"]}, " : "", lists[random_below(6)],
                       random_below(2) ? " , \"w\": [[1], []]" : "");
        assert_string_equal(find(record, "ids", true, true, one), find(record, "ids", true, false, two));
    }
    assert_null(find("{\"ids\": [\"]\", 1]}", "ids", true, true, one));
    assert_string_equal(find("{\"ids\": [\"]\", 1]}", "ids", true, false, one), "[\"]\", 1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_read),   cmocka_unit_test(test_changed_lists_are_judged),
        cmocka_unit_test(test_faults_are_found), cmocka_unit_test(test_names_reach_into_objects),
        cmocka_unit_test(test_fast_is_slow),     cmocka_unit_test(test_labels_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
