/* SPDX-License-Identifier: MIT */
/* test_dropped_file.c - lists of dropped documents: what was written is read, each changed byte is found, and entries
 * with one fault each under right hashes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"
#include "work/dropped_file.h"
#include "work/dropped_writer.h"

static char name[600], path[620];

/* Where the entries of the list of list_make() begin. */
enum { INPUT_A = 80, NGRAM = 96, INPUT_B = 136, DUPLICATE = 152, EXCLUDED = 184, ALL = 208 };

static void list_make(void)
{
    struct dropped_writer *writer;
    (void)snprintf(name, sizeof name, "%s/list", folder);
    (void)snprintf(path, sizeof path, "%s.dropped", name);
    MUST(dropped_writer_open(&writer, name, &error));
    MUST(dropped_writer_input(writer, "a.jsonl", &error));
    MUST(dropped_writer_ngram(writer, "x y z", 5, "evals.txt", 3, &error));
    MUST(dropped_writer_input(writer, "bc.txt", &error));
    MUST(dropped_writer_duplicate(writer, false, 1, 7, 0, 5, &error));
    MUST(dropped_writer_excluded(writer, 1, 9, 0, &error));
    MUST(dropped_writer_finish(writer, 20, true, &error));
    MUST(dropped_writer_commit(writer, &error));
    dropped_writer_free(writer);
}

/* Reads the list to its end, and returns the status that ends it. */
static enum tokmap_status list_read(uint64_t *documents)
{
    struct dropped_file *file;
    struct dropped_document document;
    enum tokmap_status status = dropped_open(&file, path, NULL, NULL, &error);
    *documents = 0;
    if (status)
        return status;
    while (!(status = dropped_next(file, &document, &error)))
        ++*documents;
    dropped_close(file);
    return status;
}

static void test_round_trip(void **unused)
{
    (void)unused;
    struct dropped_file *file;
    struct dropped_document document;
    list_make();
    MUST(dropped_open(&file, path, NULL, NULL, &error));
    assert_int_equal(dropped_header(file)->documents, 20);
    assert_int_equal(dropped_header(file)->minor, 0);
    assert_int_equal(dropped_header(file)->file_bytes, ALL);
    MUST(dropped_next(file, &document, &error));
    assert_int_equal(document.type, DROPPED_DUPLICATE);
    assert_int_equal(document.path_bytes, 6);
    assert_memory_equal(document.path, "bc.txt", 6);
    assert_int_equal(document.record, 7);
    assert_memory_equal(document.other_path, "a.jsonl", 7);
    assert_int_equal(document.other_record, 5);
    MUST(dropped_next(file, &document, &error));
    assert_int_equal(document.type, DROPPED_EXCLUDED);
    assert_int_equal(document.record, 9);
    assert_int_equal(document.ngram_bytes, 5);
    assert_memory_equal(document.ngram, "x y z", 5);
    assert_memory_equal(document.other_path, "evals.txt", 9);
    assert_int_equal(document.other_record, 3);
    assert_int_equal(dropped_next(file, &document, &error), TOKMAP_END);
    dropped_close(file);
}

/* Every byte that changes, and every length, is found. */
static void test_changed_bytes(void **unused)
{
    (void)unused;
    size_t bytes;
    uint64_t documents;
    list_make();
    uint8_t *list = file_read(path, &bytes);
    assert_int_equal(bytes, ALL);
    for (size_t i = 0; i < bytes; i++) {
        list[i] ^= 0x11;
        file_write(path, list, bytes);
        const enum tokmap_status status = list_read(&documents);
        assert_true(status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_FORMAT || status == TOKMAP_ERROR_VERSION);
        assert_non_null(strstr(error.path, "list.dropped"));
        list[i] ^= 0x11;
        file_write(path, list, i);
        const enum tokmap_status cut = list_read(&documents);
        assert_true(cut == TOKMAP_ERROR_TRUNCATED || (i == 0 && cut == TOKMAP_ERROR_FORMAT));
    }
    free(list);
}

/* Writes the list with `bytes` bytes at `at` replaced, and with right hashes. */
static void list_change(const uint8_t *from, uint64_t at, uint64_t value, size_t bytes)
{
    uint8_t list[ALL];
    memcpy(list, from, ALL);
    memcpy(list + at, &value, bytes);
    store64(list + 64, hash64(list + 80, ALL - 80));
    store64(list + 72, hash64(list, 72));
    file_write(path, list, ALL);
}

static void test_faults(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t at, value;
        size_t bytes;
        const char *text;
    } faults[] = {
        {8, 2, 2, "major version 2"},
        {12, 81, 4, "version or size"},
        {16, ALL + 1, 8, "but its header says"},
        {24, 1, 8, "more dropped documents than documents"},
        {48, UINT64_MAX, 8, "more dropped documents than documents"},
        {32, 1, 8, "more inputs than the header counts"},
        {32, 3, 8, "counts other entries"},
        {40, 0, 8, "more n-grams than the header counts"},
        {40, 2, 8, "counts other entries"},
        {48, 0, 8, "counts other entries"},
        {56, 2, 8, "counts other entries"},
        {INPUT_A, 0, 4, "unknown type 0"},
        {INPUT_A, 7, 4, "unknown type 7"},
        {INPUT_A, DROPPED_READING, 4, "refers to input 1, and 1 inputs precede it"},
        {NGRAM, DROPPED_READING, 4, "unknown type 6"},
        {INPUT_A, DROPPED_NEAR_DUPLICATE, 4, "and 0 inputs"},
        {INPUT_A + 4, 0, 4, "it must have 1 to"},
        {INPUT_A + 4, (1 << 20) + 1, 4, "it must have 1 to"},
        {INPUT_A + 4, 1 << 20, 4, "past the end"},
        {INPUT_A + 4, UINT32_MAX, 4, "it must have 1 to"},
        {INPUT_A + 15, 1, 1, "are not zero"},
        {NGRAM + 4, 0, 4, "it must have 1 to"},
        {NGRAM + 4, 1 << 20, 4, "past the end"},
        {NGRAM + 16, 1 << 20, 4, "past the end"},
        {NGRAM + 16, 0, 4, "it must have 1 to"},
        {NGRAM + 20, 1, 4, "reserved field"},
        {DUPLICATE, DROPPED_NEAR_DUPLICATE, 4, NULL},
        {DUPLICATE + 4, 2, 4, "refers to input 2, and 2 inputs"},
        {DUPLICATE + 24, 2, 4, "before the document that was kept"},
        {DUPLICATE + 24, 1, 4, NULL},
        {DUPLICATE + 16, UINT64_MAX, 8, NULL},
        {DUPLICATE + 28, 1, 4, "reserved field"},
        {DUPLICATE + 8, 9, 8, "order of the input"},
        {EXCLUDED + 4, 0, 4, "order of the input"},
        {EXCLUDED + 4, 7, 4, "refers to input 7"},
        {EXCLUDED + 8, 7, 8, "order of the input"},
        {EXCLUDED + 16, 1, 8, "refers to n-gram 1"},
        {EXCLUDED + 16, UINT64_MAX, 8, "refers to n-gram"},
        {EXCLUDED, DROPPED_DUPLICATE, 4, "past the end"},
    };
    size_t bytes;
    uint64_t documents;
    list_make();
    uint8_t *list = file_read(path, &bytes);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        list_change(list, faults[i].at, faults[i].value, faults[i].bytes);
        const enum tokmap_status status = list_read(&documents);
        if (!faults[i].text) {
            assert_int_equal(status, TOKMAP_END);
            continue;
        }
        assert_true(status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_TRUNCATED ||
                    status == TOKMAP_ERROR_VERSION);
        if (!strstr(error.message, faults[i].text))
            fail_msg("fault %zu: %s", i, error.message);
    }
    free(list);
}

static void test_writer(void **unused)
{
    (void)unused;
    struct dropped_writer *writer, *other;
    char text[5001];
    uint64_t documents;
    list_make();
    MUST(dropped_writer_open(&writer, name, &error));
    assert_int_equal(dropped_writer_open(&other, name, &error), TOKMAP_ERROR_BUSY);
    /* A list in the middle of which the buffer is full, and an n-gram that is cut before a character. */
    memset(text, 'w', sizeof text);
    memcpy(text + 4095, "\xc3\xa9", 2);
    MUST(dropped_writer_input(writer, "a", &error));
    MUST(dropped_writer_ngram(writer, text, sizeof text, "e", 0, &error));
    for (uint64_t i = 0; i < 20000; i++) {
        if (i % 2)
            MUST(dropped_writer_duplicate(writer, i % 4 == 1, 0, i + 1, 0, 0, &error));
        else
            MUST(dropped_writer_excluded(writer, 0, i + 1, 0, &error));
    }
    MUST(dropped_writer_finish(writer, 20001, false, &error));
    assert_int_equal(list_read(&documents), TOKMAP_END);
    assert_int_equal(documents, 2); /* the old list is there until the commit */
    MUST(dropped_writer_commit(writer, &error));
    dropped_writer_free(writer);
    assert_int_equal(list_read(&documents), TOKMAP_END);
    assert_int_equal(documents, 20000);
    struct dropped_file *file;
    struct dropped_document document;
    MUST(dropped_open(&file, path, NULL, NULL, &error));
    MUST(dropped_next(file, &document, &error));
    assert_int_equal(document.ngram_bytes, 4095);
    assert_int_equal(dropped_header(file)->minor, DROPPED_MINOR_NEAR);
    MUST(dropped_next(file, &document, &error));
    assert_int_equal(document.type, DROPPED_NEAR_DUPLICATE);
    assert_int_equal(document.record, 2);
    assert_int_equal(document.other_record, 0);
    MUST(dropped_next(file, &document, &error));
    MUST(dropped_next(file, &document, &error));
    assert_int_equal(document.type, DROPPED_DUPLICATE);
    dropped_close(file);
    file_write_text(path, "other");
    assert_int_equal(dropped_writer_open(&writer, name, &error), TOKMAP_ERROR_EXISTS);
    assert_int_equal(list_read(&documents), TOKMAP_ERROR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_writer),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
