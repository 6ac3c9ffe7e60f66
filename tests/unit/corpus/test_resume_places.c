/* SPDX-License-Identifier: MIT */
/*
 * test_resume_places.c - reading continues at every place that a batch names, whatever the format is: the documents and
 * the counts are those of a process that read the files from their beginning. Some batches have nothing but the header
 * of a table, or end where nothing of an open file was taken, because the first record needs a batch of its own; and
 * some places are among the bytes that the last read of a file returns.
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
#include <unistd.h>

#include "common/bytes_buffer.h"
#include "corpus/corpus.h"
#include "corpus/corpus_range.h"
#include "corpus/records.h"
#include "support/scratch_folder.h"

#define PLACES 128
#define BATCH 8192
#define LARGE 100000
#define RECORDS 400

struct form {
    enum corpus_format format;
    const char *name, *head, *before, *after, *last;
};

static const struct form forms[] = {
    {CORPUS_AUTO, "array.json", "[", "{\"text\": \"", "\"},", "{\"text\": \"\"}]"},
    {CORPUS_JSON, "marked.json", "\xef\xbb\xbf\n", "{\"text\": \"", "\"}\n", ""},
    {CORPUS_JSONL, "lines.jsonl", "", "{\"text\": \"", "\"}\n", ""},
    {CORPUS_CSV, "table.csv", "\n\ntext,n\n", "\"", "\",1\n", ""},
    {CORPUS_CSV, "marked.csv", "\xef\xbb\xbftext\n", "", "\n", ""},
    {CORPUS_TSV, "table.tsv", "n\ttext\n", "1\t", "\n", ""},
    {CORPUS_WARC, "file.warc", "", NULL, "\r\n\r\n", ""},
    {CORPUS_TEXT, "separated.txt", "", "", "==", ""},
    {CORPUS_TEXT, "whole.txt", "", "", " ", ""},
};

/* Appends one file: `count` records, of which number `large` is a large one. */
static void file_make(const struct form *form, const char *path, int count, int large)
{
    char *text = malloc(LARGE + 1);
    FILE *file = fopen(path, "wb");
    assert_true(file && text);
    assert_true(fputs(form->head, file) >= 0);
    for (int i = 0; i < count; i++) {
        const size_t bytes = i == large ? LARGE : (size_t)(20 + i * 37 % 400);
        memset(text, 'a' + i % 26, bytes);
        text[bytes] = '\0';
        if (form->before)
            assert_true(fputs(form->before, file) >= 0);
        else
            assert_true(fprintf(file,
                                "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\n"
                                "Content-Length: %zu\r\n\r\n",
                                bytes) > 0);
        assert_true(fprintf(file, "%s%s", text, form->after) > 0);
    }
    assert_true(fputs(form->last, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(text);
}

struct read {
    struct bytes_buffer out; /* documents with their inputs and numbers */
    struct corpus_counts counts;
    uint64_t batches;
    struct corpus_place places[PLACES];
    struct corpus_counts at[PLACES]; /* the counts, ... */
    size_t ends[PLACES];             /* ... and the end of the output, at that place */
};

static void batch_note(struct read *read, const struct corpus_batch *batch)
{
    char row[64];
    assert_int_equal(batch->issue_count, 0);
    for (uint64_t i = 0; i < batch->document_count; i++) {
        const struct corpus_document *document = &batch->documents[i];
        (void)snprintf(row, sizeof row, "%" PRIu64 ".%" PRIu64 ":", (uint64_t)batch->parts[document->part].input,
                       document->record);
        assert_true(document->resumed || bytes_append(&read->out, row, strlen(row)));
        assert_true(bytes_append(&read->out, document->text, document->bytes));
        assert_true(document->unfinished || bytes_append(&read->out, ".", 1));
    }
}

static void read_files(struct read *read, const struct corpus_options *options, const char *const *names, size_t count,
                       const struct corpus_place *from)
{
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error;
    uint64_t carried = 0;
    assert_int_equal(corpus_open(&corpus, names, count, options, &error), TOKMAP_OK);
    enum tokmap_status status = from ? corpus_resume(corpus, from, &carried, &error) : TOKMAP_OK;
    if (from)
        read->counts.stream_bytes += carried - from->carried;
    while (!status && !(status = corpus_next(corpus, &batch, &error))) {
        assert_int_equal(records_to_documents(options, &batch, &error), TOKMAP_OK);
        batch_note(read, &batch);
        corpus_counts_add(&read->counts, &batch.counts);
        assert_true(read->batches < PLACES);
        read->ends[read->batches] = read->out.count;
        read->at[read->batches] = read->counts;
        read->places[read->batches++] = batch.place;
    }
    if (status != TOKMAP_END)
        fail_msg("%s: %s", names[0], error.message);
    corpus_batch_free(&batch);
    corpus_close(corpus);
}

/* large: which record of each of three files is the large one. */
static void check_form(const struct form *form, int large)
{
    char names[3][40];
    const char *paths[3];
    struct corpus_options options = {.format = form->format,
                                     .field = "text",
                                     .cut_anywhere = true,
                                     .batch_bytes = BATCH,
                                     .record_limit = 1 << 20,
                                     .document_limit = 1 << 20};
    if (!strcmp(form->after, "==")) {
        options.separator = "==";
        options.separator_bytes = 2;
    }
    for (int i = 0; i < 3; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d-%s", i, form->name);
        file_make(form, names[i], i ? RECORDS : 9, i ? large : -1); /* the second one begins in the middle of a batch */
        paths[i] = names[i];
    }
    struct read *whole = calloc(1, sizeof *whole), *rest = calloc(1, sizeof *rest);
    assert_true(whole && rest);
    read_files(whole, &options, paths, 3, NULL);
    assert_int_equal(whole->counts.files, 3);
    uint64_t tried = 0;
    for (uint64_t i = 0; i + 1 < whole->batches; i++) {
        const struct corpus_place *place = &whole->places[i];
        if (place->unfit)
            continue;
        tried++;
        rest->batches = 0;
        rest->out.count = 0;
        rest->counts = whole->at[i];
        read_files(rest, &options, paths, 3, place);
        assert_int_equal(rest->out.count, whole->out.count - whole->ends[i]);
        assert_memory_equal(rest->out.bytes, whole->out.bytes + whole->ends[i], rest->out.count);
        assert_memory_equal(&rest->counts, &whole->counts, sizeof whole->counts);
    }
    assert_true(tried > 3);
    bytes_free(&whole->out);
    bytes_free(&rest->out);
    free(whole);
    free(rest);
}

static void test_places(void **unused)
{
    (void)unused;
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        check_form(&forms[i], 0);
        check_form(&forms[i], RECORDS / 2);
        check_form(&forms[i], RECORDS - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
