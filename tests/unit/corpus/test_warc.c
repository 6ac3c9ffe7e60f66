/* SPDX-License-Identifier: MIT */
/* test_warc.c - records of WARC files: which become documents, one fault each, and the same result for any batches. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus/corpus.h"
#include "corpus/corpus_issue.h"
#include "corpus/records.h"
#include "support/scratch.h"

static char folder[512];

static int folder_make(void **state)
{
    scratch_make(folder);
    return chdir(folder);
}

static int folder_remove(void **state)
{
    scratch_remove(folder);
    return chdir("/");
}

/* ---- what a file delivers ---- */

#define SEEN_BYTES (1 << 21)
struct seen {
    char documents[SEEN_BYTES], issues[SEEN_BYTES]; /* "record:text(value)(value)\n" and "line:message\n" */
    size_t document_bytes, issue_bytes;
    struct corpus_counts counts;
    uint64_t documents_count, issues_count;
};
static struct seen seen[2];

static struct corpus_options usual(void)
{
    return (struct corpus_options){.field = "text",
                                   .cut_anywhere = true,
                                   .skip = true,
                                   .batch_bytes = 8192,
                                   .record_limit = 1 << 20,
                                   .document_limit = 1 << 20};
}

static void text_add(char *into, size_t *count, const char *text, uint64_t bytes)
{
    assert_true(*count + bytes + 1 < SEEN_BYTES);
    if (bytes)
        memcpy(into + *count, text, bytes);
    *count += bytes;
    into[*count] = '\0';
}

static void batch_see(struct seen *all, const struct corpus_options *options, const struct corpus_batch *batch)
{
    char text[2048];
    for (uint64_t i = 0; i < batch->document_count; i++) {
        const struct corpus_document *document = &batch->documents[i];
        const int count = snprintf(text, sizeof text, "%d:", (int)document->record);
        text_add(all->documents, &all->document_bytes, text, (uint64_t)count);
        text_add(all->documents, &all->document_bytes, document->text, document->bytes);
        for (size_t k = 0; k < options->column_count; k++) {
            text_add(all->documents, &all->document_bytes, "(", 1);
            text_add(all->documents, &all->document_bytes, document->values[k].json, document->values[k].bytes);
            text_add(all->documents, &all->document_bytes, ")", 1);
        }
        text_add(all->documents, &all->document_bytes, "\n", 1);
    }
    for (uint64_t i = 0; i < batch->issue_count; i++) {
        struct tokmap_error error;
        (void)corpus_issue_to_error(&batch->issues[i], options, &error);
        const int count = snprintf(text, sizeof text, "%u:%s@%d+%d\n", error.line, error.message, (int)error.offset,
                                   (int)batch->issues[i].bytes);
        text_add(all->issues, &all->issue_bytes, text, (uint64_t)count);
    }
    all->documents_count += batch->document_count;
    all->issues_count += batch->issue_count;
    corpus_counts_add(&all->counts, &batch->counts);
}

static void read_into(struct seen *all, const struct corpus_options *options, const char *path)
{
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error = {0};
    memset(&all->counts, 0, sizeof all->counts);
    all->document_bytes = all->issue_bytes = all->documents_count = all->issues_count = 0;
    all->documents[0] = all->issues[0] = '\0';
    assert_int_equal(corpus_open(&corpus, &path, 1, options, &error), TOKMAP_OK);
    enum tokmap_status status;
    while (!(status = corpus_next(corpus, &batch, &error))) {
        assert_int_equal(records_to_documents(options, &batch, &error), TOKMAP_OK);
        batch_see(all, options, &batch);
    }
    assert_int_equal(status, TOKMAP_END);
    corpus_close(corpus);
    corpus_batch_free(&batch);
    const struct corpus_counts *counts = &all->counts;
    assert_int_equal(counts->stream_bytes, counts->document_bytes + counts->structure_bytes + counts->skipped_bytes);
    assert_int_equal(counts->files + counts->files_skipped, 1);
    uint64_t records = 0, bytes = 0;
    for (int i = 0; i < CORPUS_REASONS; i++) {
        records += counts->left_out[i].records;
        bytes += counts->left_out[i].bytes;
    }
    assert_int_equal(records, counts->records_skipped);
    assert_int_equal(bytes, counts->skipped_bytes);
    assert_int_equal(counts->records_skipped + counts->files_skipped,
                     all->issues_count + counts->left_out[CORPUS_REASON_NOT_TEXT].records);
}

/* Reads the bytes as a file, with batches of two sizes. */
static const struct seen *read_bytes(const struct corpus_options *options, const char *bytes, size_t count)
{
    struct corpus_options large = *options;
    large.batch_bytes = 1 << 20;
    file_write("in.warc", bytes, count);
    read_into(&seen[0], options, "in.warc");
    read_into(&seen[1], &large, "in.warc");
    assert_string_equal(seen[0].documents, seen[1].documents);
    assert_string_equal(seen[0].issues, seen[1].issues);
    assert_memory_equal(&seen[0].counts, &seen[1].counts, sizeof seen[0].counts);
    return &seen[0];
}

static const struct seen *read_text(const struct corpus_options *options, const char *text)
{
    return read_bytes(options, text, strlen(text));
}

/* ---- records ---- */

#define INFO                                                                                                           \
    "WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\nContent-Length: 8\r\n\r\n"            \
    "a: b\r\n\r\n\r\n\r\n"
#define TEXT(count, text)                                                                                              \
    "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a/?\"b\"\r\nContent-Type: text/plain\r\n"            \
    "Content-Length: " count "\r\n\r\n" text "\r\n\r\n"
#define PAGE "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 10\r\n\r\n<p>\r\n\r\nWAR\r\n\r\n"

static void test_records(void **state)
{
    const struct corpus_options options = usual();
    const struct seen *all =
        read_text(&options, INFO TEXT("5", "Hello") PAGE TEXT("0", "") TEXT("6", "\xc3\xa9\r\n\r\n"));
    assert_string_equal(all->documents, "1:Hello\n3:\n4:\xc3\xa9\r\n\r\n\n");
    assert_string_equal(all->issues, "");
    assert_int_equal(all->counts.about_records, 1);
    assert_int_equal(all->counts.document_bytes, 11);
    assert_int_equal(all->counts.empty_documents, 1);
    assert_int_equal(all->counts.left_out[CORPUS_REASON_NOT_TEXT].records, 1);
    assert_int_equal(all->counts.left_out[CORPUS_REASON_NOT_TEXT].bytes, sizeof PAGE - 1 - 4);
    assert_int_equal(all->counts.files, 1);
}

/* Headers that are read as warcio reads them. */
static void test_headers(void **state)
{
    struct corpus_options options = usual();
    static const char *const columns[] = {"warc-target-uri", "X-Long", "Absent", "WARC-DATE"};
    options.columns = columns;
    options.column_count = 4;
    const struct seen *all = read_text(&options, TEXT("1", "a"));
    assert_string_equal(all->documents, "0:a(\"http://a/?\\\"b\\\"\")()()()\n");
    all =
        read_text(&options, "WARC/1.1\nWARC-Type : conversion\nno colon\ncontent-LENGTH:2\nx-long: 1 \n 2\r\n\t3\n"
                            "content-type: TEXT/Plain ; charset=utf-8\nWARC-Date: first\nwarc-date: second\n\nhi\n\n");
    assert_string_equal(all->documents, "0:hi()(\"1 2\\t3\")()(\"first\")\n");
    assert_string_equal(all->issues, "");
    all = read_text(
        &options,
        "WARC/1.0\nWARC-Type: conversion\nContent-Length: 3\nContent-Type: image/png\n\npng\n\n" TEXT("1", "b"));
    assert_string_equal(all->documents, "1:b(\"http://a/?\\\"b\\\"\")()()()\n");
    assert_int_equal(all->counts.left_out[CORPUS_REASON_NOT_TEXT].records, 1);
    /* A value that is not UTF-8 is an issue, and can be replaced. */
    const char *const latin = "WARC/1.0\nWARC-Type: conversion\nWARC-Date: \xe9\nContent-Length: 1\n\na\n\n";
    all = read_text(&options, latin);
    assert_string_equal(all->documents, "");
    assert_int_equal(all->counts.left_out[CORPUS_REASON_ENCODING].records, 1);
    options.invalid = CORPUS_INVALID_REPLACE;
    assert_string_equal(read_text(&options, latin)->documents, "0:a()()()(\"\xef\xbf\xbd\")\n");
}

/* Each text has one fault, between records that are good. Damage costs the record and what follows it up to the next
 * one. */
static void test_faults(void **state)
{
    static const struct {
        const char *record, *message;
    } faults[] = {
        {"WARC/1.0\r\nWARC-Type: conversion\r\n\r\nHello\r\n\r\n", "no Content-Length"},
        {"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n",
         "two Content-Lengths"},
        {TEXT("9223372036854775808", "Hello"), "whole number below 2^63"},
        {TEXT("-5", "Hello"), "whole number below 2^63"},
        {TEXT("5x", "Hello"), "whole number below 2^63"},
        {TEXT("", "Hello"), "whole number below 2^63"},
        {TEXT("1\r\n 2", "Hello"), "whole number below 2^63"},
        {TEXT("4", "Hello"), "not followed by a line end"},
        {"WARC/1.2\r\nWARC-Type: conversion\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n", "version"},
        {"WARC/1.0x\r\nWARC-Type: conversion\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n", "version"},
        {"WARC/1.0\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n", "no WARC-Type"},
        {"WARC/1.0\r\nWARC-Type: response\r\nWARC-type: conversion\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n",
         "two WARC-Types"},
        {"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Segment-Number: 1\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n",
         "one segment of a longer record"},
        {"garbage\r\nWARC/1.0 is a version\r\n\r\nWARC/2\r\n\r\n", "does not begin with WARC/1."},
        {"W\n\n", "does not begin with WARC/1."},
        {"WARC/0.18\r\n\r\n", "does not begin with WARC/1."},
    };
    static char text[4096];
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct corpus_options options = usual();
        (void)snprintf(text, sizeof text, INFO TEXT("3", "one") "%s" TEXT("3", "two"), faults[i].record);
        const struct seen *all = read_text(&options, text);
        if (!strstr(all->issues, faults[i].message))
            fail_msg("fault %zu: %s", i, all->issues);
        assert_int_equal(all->issues_count, 1);
        assert_int_equal(strncmp(all->documents, "1:one\n", 6), 0);
        assert_non_null(strstr(all->documents, ":two\n"));
        assert_int_equal(all->documents_count, 2);
        assert_int_equal(all->counts.left_out[CORPUS_REASON_SYNTAX].records, 1);
        const uint64_t skipped = all->counts.skipped_bytes;
        assert_true(skipped <= strlen(faults[i].record) && skipped + 4 >= strlen(faults[i].record));
        options.skip = false; /* and it ends the work unless it is skipped */
        file_write("in.warc", text, strlen(text));
        struct corpus *corpus;
        struct corpus_batch batch = {0};
        const char *path = "in.warc";
        assert_int_equal(corpus_open(&corpus, &path, 1, &options, NULL), TOKMAP_OK);
        assert_int_equal(corpus_next(corpus, &batch, NULL), TOKMAP_OK);
        assert_int_equal(records_to_documents(&options, &batch, NULL), TOKMAP_OK);
        assert_int_equal(batch.issue_count, 1);
        assert_int_equal(batch.document_count, 1);
        corpus_close(corpus);
        corpus_batch_free(&batch);
    }
}

/* A length that is too large costs the record that it reaches into, but not the one after that. */
static void test_length_too_large(void **state)
{
    const struct corpus_options options = usual();
    const struct seen *all = read_text(&options, TEXT("12", "Hello") TEXT("3", "two") TEXT("5", "three"));
    assert_string_equal(all->documents, "1:three\n");
    assert_non_null(strstr(all->issues, "its content is not followed by a line end"));
    assert_int_equal(all->issues_count, 1);
}

/* A header without an end, and one that just fits. */
static void test_long_header(void **state)
{
    const struct corpus_options options = usual();
    static char text[1 << 18];
    static const char end[] = "\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n" TEXT("3", "two");
    const size_t head = (size_t)snprintf(text, sizeof text, "WARC/1.0\r\nWARC-Type: conversion\r\nX: ");
    const size_t rest = strlen("\r\nContent-Length: 2\r\n\r\n");
    for (size_t more = 0; more < 2; more++) {
        const size_t fill = WARC_HEADER_MOST - head - rest + more;
        memset(text + head, 'x', fill);
        memcpy(text + head + fill, end, sizeof end);
        const struct seen *all = read_text(&options, text);
        assert_string_equal(all->documents, more ? "1:two\n" : "0:hi\n1:two\n");
        assert_int_equal(all->issues_count, more);
        if (more)
            assert_non_null(strstr(all->issues, "its header has no end within 65536 bytes"));
    }
}

/* A file that ends anywhere: what ended before is used, and nothing else. */
static void test_truncated(void **state)
{
    const struct corpus_options options = usual();
    static const char text[] = INFO TEXT("3", "one") PAGE TEXT("5", "Hello");
    const char *const hello = strstr(text, "Hello");
    for (size_t count = 9; count < sizeof text; count++) {
        const struct seen *all = read_bytes(&options, text, count);
        const size_t whole = (size_t)(hello - text) + 5, one = (size_t)(strstr(text, "one") - text) + 3;
        const uint64_t wanted = (uint64_t)(count >= one) + (uint64_t)(count >= whole);
        assert_int_equal(all->documents_count, wanted);
        assert_true(all->issues_count <= 1);
        const bool inside = count > one + 4 && count < whole; /* the pieces of PAGE may end between records */
        const size_t page = (size_t)(strstr(text, PAGE) - text), page_end = page + sizeof PAGE - 1;
        const bool between = count >= page_end - 4 && count <= page_end;
        if (inside && !between)
            assert_int_equal(all->issues_count, 1);
        if (count >= whole)
            assert_int_equal(all->issues_count, 0);
    }
}

/* A file without texts is an issue, unless it has nothing but a warcinfo. */
static void test_no_text(void **state)
{
    const struct corpus_options options = usual();
    const struct seen *all = read_text(&options, INFO PAGE PAGE);
    assert_int_equal(all->counts.files_skipped, 1);
    assert_int_equal(all->counts.left_out[CORPUS_REASON_FORMAT].files, 1);
    assert_non_null(strstr(all->issues, "none of the 2 records of the WARC file has extracted text"));
    all = read_text(&options, INFO);
    assert_int_equal(all->counts.files, 1);
    assert_int_equal(all->issues_count, 0);
    struct corpus_options ids = usual();
    ids.content = CORPUS_CONTENT_IDS;
    ids.field = "input_ids";
    all = read_text(&ids, INFO TEXT("1", "a"));
    assert_int_equal(all->counts.left_out[CORPUS_REASON_FIELD].files, 1);
}

/* A text above the limit is an issue. Other records have no limit, and need no memory. */
static void test_limit(void **state)
{
    struct corpus_options options = usual();
    options.record_limit = 20000;
    static char text[1 << 18], content[100001];
    memset(content, 'x', sizeof content - 1);
    (void)snprintf(text, sizeof text, INFO TEXT("100000", "%s") TEXT("3", "one"), content);
    const struct seen *all = read_text(&options, text);
    assert_string_equal(all->documents, "2:one\n");
    assert_int_equal(all->issues_count, 1);
    assert_int_equal(all->counts.left_out[CORPUS_REASON_TOO_LONG].records, 1);
    (void)snprintf(text, sizeof text,
                   "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 100000\r\n\r\n%s\r\n\r\n" TEXT("3", "one"),
                   content);
    all = read_text(&options, text);
    assert_string_equal(all->documents, "1:one\n");
    assert_int_equal(all->issues_count, 0);
    assert_int_equal(all->counts.left_out[CORPUS_REASON_NOT_TEXT].records, 1);
    /* A length that lies about the rest of the file. */
    (void)snprintf(text, sizeof text, TEXT("3", "one") TEXT("9223372036854775807", "%s"), content);
    all = read_text(&options, text);
    assert_string_equal(all->documents, "0:one\n");
    assert_int_equal(all->issues_count, 1);
}

/* ---- any files ---- */

/* A file of good records and, if `damage` is set, of bytes that are wrong anywhere. */
static size_t random_file(uint64_t *random, char *text, bool damage)
{
    static const char *const types[] = {"conversion", "conversion", "response", "metadata", "request", "warcinfo"};
    size_t count = 0;
    for (uint64_t records = 1 + random_next(random) % 60; records; records--) {
        const size_t bytes = random_next(random) % 4 ? random_next(random) % 90 : random_next(random) % 6000;
        const char *end = random_next(random) % 3 ? "\r\n" : "\n";
        count += (size_t)sprintf(text + count, "WARC/1.0%sWARC-Type: %s%sContent-Length: %zu%s%s", end,
                                 types[random_next(random) % 6], end, bytes, end, end);
        for (size_t i = 0; i < bytes; i++)
            text[count++] = "WARC/1.0\r\n\r\nab"[random_next(random) % 14];
        count += (size_t)sprintf(text + count, "%s%s", end, end);
    }
    for (uint64_t faults = damage ? 1 + random_next(random) % 5 : 0; faults; faults--)
        text[10 + random_next(random) % (count - 10)] = "WARC/1.0\r\n\r\nab\xff"[random_next(random) % 15];
    return count;
}

static void test_random_files(void **state)
{
    static char text[1 << 20];
    uint64_t random = 11;
    for (int round = 0; round < 400; round++) {
        const struct corpus_options options = usual();
        const size_t count = random_file(&random, text, round % 2);
        const struct seen *all = read_bytes(&options, text, count);
        if (!(round % 2) && !all->counts.files_skipped)
            assert_int_equal(all->issues_count, 0);
    }
}

/* The scanner finds the same records in pieces of any size. */
static void test_random_pieces(void **state)
{
    static char text[1 << 20];
    static uint64_t ends[2][200];
    uint64_t random = 5;
    for (int round = 0; round < 400; round++) {
        const size_t bytes = random_file(&random, text, round % 2);
        size_t found[2] = {0, 0};
        struct warc_scan scans[2] = {{0}, {0}};
        for (int way = 0; way < 2; way++)
            for (size_t at = 0; at < bytes;) {
                size_t most = bytes - at;
                if (way && random_next(&random) % 8)
                    most = 1 + random_next(&random) % (most < 30 ? most : 30);
                enum warc_end end;
                at += warc_scan_take(&scans[way], text + at, most, &end);
                if (end == WARC_RECORD) {
                    assert_true(found[way] < 100);
                    ends[way][2 * found[way]] = at;
                    ends[way][2 * found[way]++ + 1] = (uint64_t)scans[way].class * 100 + scans[way].fault;
                }
            }
        assert_int_equal(found[0], found[1]);
        assert_memory_equal(ends[0], ends[1], found[0] * 16);
        assert_int_equal(scans[0].state, scans[1].state);
        assert_int_equal(scans[0].left, scans[1].left);
        assert_int_equal(scans[0].texts, scans[1].texts);
        assert_int_equal(scans[0].others, scans[1].others);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),       cmocka_unit_test(test_headers),
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_long_header),
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_no_text),
        cmocka_unit_test(test_limit),         cmocka_unit_test(test_random_files),
        cmocka_unit_test(test_random_pieces), cmocka_unit_test(test_length_too_large),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
