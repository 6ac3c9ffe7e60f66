/* SPDX-License-Identifier: MIT */
/* test_parquet_cut.c - Parquet files that are cut at row groups: where, what each part delivers, and how a part is
 * continued. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "corpus/corpus_range.h"
#include "corpus/records.h"
#include "support/parquet_made.h"
#include "support/scratch_folder.h"

#define NONE UINT64_MAX

static struct parquet_row_group groups[64];
static struct parquet_chunk chunks[2 * 64]; /* of two columns, of which the first one counts */

/* A footer whose row groups begin at these bytes; NONE: one without values. */
static struct parquet_footer footer_of(const uint64_t *places, uint64_t count, uint64_t bytes)
{
    memset(chunks, 0, sizeof chunks);
    for (uint64_t i = 0; i < count; i++) {
        groups[i] = (struct parquet_row_group){places[i] == NONE ? 0 : 3, 3 * i};
        chunks[2 * i] = places[i] == NONE ? (struct parquet_chunk){0, 4, 0, 0, bytes}
                                          : (struct parquet_chunk){0, places[i], 2, 3, bytes};
        chunks[2 * i + 1] = (struct parquet_chunk){0, bytes - 50 + i, 1, 3, bytes};
    }
    return (struct parquet_footer){.file_bytes = bytes,
                                   .data_end = bytes,
                                   .column_count = 2,
                                   .groups = groups,
                                   .group_count = count,
                                   .chunks = chunks};
}

static struct parquet_cut cut_of(const uint64_t *places, uint64_t count, uint64_t bytes, uint64_t part_bytes)
{
    struct parquet_cut cut;
    const struct parquet_footer footer = footer_of(places, count, bytes);
    assert_int_equal(parquet_cut_make(&cut, &footer, part_bytes, NULL), TOKMAP_OK);
    assert_int_not_equal(cut.hash, 0);
    return cut;
}

/* The example of parquet.h. */
static void test_example(void **unused)
{
    (void)unused;
    static const uint64_t places[] = {4, 700, 1100, NONE, 1900, 5200};
    static const struct parquet_part wanted[] = {{0, 2, 0, 1100}, {2, 5, 1100, 4100}, {5, 6, 5200, 800}};
    struct parquet_cut cut = cut_of(places, 6, 6000, 1000);
    assert_int_equal(cut.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(cut.parts[i].first, wanted[i].first);
        assert_int_equal(cut.parts[i].end, wanted[i].end);
        assert_int_equal(cut.parts[i].begin, wanted[i].begin);
        assert_int_equal(cut.parts[i].bytes, wanted[i].bytes);
    }
    parquet_cut_free(&cut);
}

/* What is not cut: row groups that are near each other, one alone, none, and those in another order. */
static void test_not_cut(void **unused)
{
    (void)unused;
    static const uint64_t near[] = {4, 700, 999}, one[] = {4}, empty[] = {NONE, NONE}, back[] = {4, 5000, 3000, 7000},
                          last[] = {NONE, 9000, NONE};
    static const uint64_t *const lists[] = {near, one, empty, back, last};
    static const uint64_t counts[] = {3, 1, 2, 4, 3};
    for (size_t i = 0; i < 5; i++) {
        struct parquet_cut cut = cut_of(lists[i], counts[i], 10000, 1000);
        assert_int_equal(cut.count, 0);
        parquet_cut_free(&cut);
    }
    struct parquet_cut none = cut_of(one, 0, 10000, 1);
    assert_int_equal(none.count, 0);
    parquet_cut_free(&none);
}

/* Each row group is in exactly one part, and so is each byte; row groups of one multiple are never divided. */
static void test_every_size(void **unused)
{
    (void)unused;
    uint64_t places[64], seed = 7, at = 4;
    for (size_t i = 0; i < 64; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        places[i] = seed >> 60 == 3 ? NONE : at;
        at += 2 + (seed >> 55);
    }
    for (uint64_t part_bytes = 1; part_bytes < at + 100; part_bytes += part_bytes / 9 + 1) {
        struct parquet_cut cut = cut_of(places, 64, at + 100, part_bytes);
        uint64_t next = 0, bytes = 0;
        for (uint64_t i = 0; i < cut.count; i++) {
            uint64_t multiple = NONE;
            assert_int_equal(cut.parts[i].first, next);
            assert_int_equal(cut.parts[i].begin, bytes);
            assert_true(cut.parts[i].end > next);
            assert_true(i == 0 || places[next] != NONE);
            for (next = cut.parts[i].first; next < cut.parts[i].end; next++) {
                assert_true(places[next] == NONE || multiple == NONE || places[next] / part_bytes == multiple);
                multiple = places[next] == NONE ? multiple : places[next] / part_bytes;
            }
            bytes += cut.parts[i].bytes;
        }
        assert_true(cut.count != 1);
        assert_int_equal(bytes, cut.count ? at + 100 : 0);
        assert_int_equal(next, cut.count ? 64 : 0);
        parquet_cut_free(&cut);
    }
}

/* The hash is about all that says which rows are where. */
static void test_hash(void **unused)
{
    (void)unused;
    static const uint64_t places[] = {4, 700, 1100};
    struct parquet_footer footer = footer_of(places, 3, 6000);
    const uint64_t hash = parquet_cut_hash(&footer);
    uint64_t *const numbers[] = {&groups[1].rows,   &chunks[2].offset, &chunks[2].bytes,
                                 &chunks[2].values, &footer.data_end,  &footer.file_bytes};
    assert_int_equal(parquet_cut_hash(&footer), hash);
    for (size_t i = 0; i < 6; i++) {
        ++*numbers[i];
        assert_int_not_equal(parquet_cut_hash(&footer), hash);
        --*numbers[i];
    }
    footer.group_count--;
    assert_int_not_equal(parquet_cut_hash(&footer), hash);
}

/* ---- files ---- */

#define ROWS 9 /* of a page */

/* Writes a file of 8 row groups, the one with number 3 without rows, of two pages each. */
static void file_make(const char *name, uint64_t changed)
{
    struct made_file file;
    uint64_t row = 0;
    made_begin(&file);
    made_element(&file, "text", 6, 0, 0);
    for (uint64_t group = 0; group < 8; group++) {
        for (int page = 0; page < 2 && group != 3; page++) {
            struct made_page made = {.version = 1, .entries = ROWS, .rows = ROWS};
            for (uint64_t i = 0; i < ROWS; i++, row++) {
                char text[64];
                const int bytes = snprintf(text, sizeof text, "text %" PRIu64 " in row group %" PRIu64, row, group);
                made_plain_text(&made.values, text, (uint32_t)bytes);
            }
            made_data(&file, 0, &made);
        }
        made_group_end(&file, group == 3 ? 0 : (int64_t)(2 * ROWS));
    }
    if (changed) {
        file.chunks[changed][0].bytes--;
        file.chunks[changed][0].data_page++;
    }
    made_file_end(&file, name);
}

static struct corpus_options usual(void)
{
    return (struct corpus_options){
        .field = "text", .batch_bytes = 8192, .record_limit = 1 << 20, .document_limit = 1 << 20};
}

struct read {
    struct bytes_buffer out;
    struct corpus_counts counts;
    struct corpus_place places[64];
    size_t ends[64]; /* of the output, at that place */
    uint64_t batches;
};

/* Reads the range, from a place on if there is one. */
static enum tokmap_status range_read(struct read *read, const char *path, const struct corpus_options *options,
                                     const struct corpus_place *from, struct tokmap_error *error)
{
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    uint64_t carried = 0;
    assert_int_equal(corpus_open(&corpus, &path, 1, options, error), TOKMAP_OK);
    enum tokmap_status status = from ? corpus_resume(corpus, from, &carried, error) : TOKMAP_OK;
    while (!status && !(status = corpus_next(corpus, &batch, error))) {
        assert_int_equal(records_to_documents(options, &batch, error), TOKMAP_OK);
        assert_int_equal(batch.issue_count, 0);
        for (uint64_t i = 0; i < batch.document_count; i++) {
            char row[32];
            const struct corpus_document *document = &batch.documents[i];
            (void)snprintf(row, sizeof row, "%" PRIu64 ":", document->record);
            assert_int_equal(document->position, document->record);
            assert_true(bytes_append(&read->out, row, strlen(row)) &&
                        bytes_append(&read->out, document->text, document->bytes));
        }
        corpus_counts_add(&read->counts, &batch.counts);
        assert_true(batch.progress <= read->counts.stored_bytes || batch.place.open);
        assert_true(read->batches < 64);
        read->ends[read->batches] = read->out.count;
        read->places[read->batches++] = batch.place;
    }
    corpus_batch_free(&batch);
    corpus_close(corpus);
    return status;
}

static struct corpus_range range_of(const struct parquet_cut *cut, uint64_t part)
{
    return (struct corpus_range){cut->parts[part].first, cut->parts[part].end, cut->hash};
}

/* The parts together are the file: rows with their numbers in it, and all of its bytes; and each can be continued. */
static void test_parts_of_a_file(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct corpus_options options = usual();
    struct read whole = {.batches = 0};
    struct stat found;
    assert_int_equal(chdir(folder), 0);
    file_make("t.parquet", 0);
    assert_int_equal(stat("t.parquet", &found), 0);
    assert_int_equal(range_read(&whole, "t.parquet", &options, NULL, &error), TOKMAP_END);
    for (uint64_t part_bytes = 100; part_bytes < 6000; part_bytes += 350) {
        struct parquet_cut cut;
        struct read all = {.batches = 0};
        assert_int_equal(corpus_range_groups("t.parquet", &options, part_bytes, &cut, &error), TOKMAP_OK);
        assert_true(cut.count ? part_bytes < (uint64_t)found.st_size : part_bytes > 3000);
        for (uint64_t i = 0; i < cut.count; i++) {
            struct read part = {.batches = 0};
            options.range = range_of(&cut, i);
            assert_int_equal(range_read(&part, "t.parquet", &options, NULL, &error), TOKMAP_END);
            assert_int_equal(part.counts.stored_bytes, cut.parts[i].bytes);
            assert_int_equal(part.counts.stream_bytes, cut.parts[i].bytes);
            assert_int_equal(part.counts.document_bytes + part.counts.structure_bytes, cut.parts[i].bytes);
            assert_true(bytes_append(&all.out, part.out.bytes, part.out.count));
            corpus_counts_add(&all.counts, &part.counts);
            for (uint64_t k = 0; k + 1 < part.batches; k++) {
                struct read rest = {.batches = 0};
                assert_int_equal(range_read(&rest, "t.parquet", &options, &part.places[k], &error), TOKMAP_END);
                assert_int_equal(rest.out.count, part.out.count - part.ends[k]);
                assert_memory_equal(rest.out.bytes, part.out.bytes + part.ends[k], rest.out.count);
                bytes_free(&rest.out);
            }
            bytes_free(&part.out);
        }
        options.range = (struct corpus_range){.end = 0};
        if (cut.count) {
            assert_int_equal(all.out.count, whole.out.count);
            assert_memory_equal(all.out.bytes, whole.out.bytes, whole.out.count);
            assert_int_equal(all.counts.stored_bytes, found.st_size);
            assert_int_equal(all.counts.documents, whole.counts.documents);
            assert_int_equal(all.counts.document_bytes, whole.counts.document_bytes);
        }
        bytes_free(&all.out);
        parquet_cut_free(&cut);
    }
    bytes_free(&whole.out);
}

/* A part of a file that is another one by now is refused, even if files may be left out. */
static void test_changed(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct corpus_options options = usual();
    struct parquet_cut cut;
    struct read read = {.batches = 0};
    assert_int_equal(chdir(folder), 0);
    file_make("t.parquet", 0);
    assert_int_equal(corpus_range_groups("t.parquet", &options, 1000, &cut, &error), TOKMAP_OK);
    assert_true(cut.count > 2);
    options.range = range_of(&cut, 1);
    options.skip = true;
    file_make("t.parquet", 5); /* a row group of another part */
    assert_int_equal(range_read(&read, "t.parquet", &options, NULL, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "the row groups of the Parquet file are not those"));
    file_write_text("t.parquet", "{\"text\": \"a line\"}\n");
    assert_int_equal(range_read(&read, "t.parquet", &options, NULL, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_int_equal(unlink("t.parquet"), 0);
    assert_int_equal(range_read(&read, "t.parquet", &options, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(read.counts.documents, 0);
    parquet_cut_free(&cut);
}

/* Files are cut by their names, or by their first and last bytes, but not if they lack the field or are damaged. */
static void test_which_files(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct corpus_options options = usual();
    struct parquet_cut parts;
    enum corpus_cut cut;
    assert_int_equal(chdir(folder), 0);
    file_make("t.parquet", 0);
    file_make("unnamed", 0);
    file_make("t.jsonl", 0);
    file_write_text("lines.jsonl", "{\"text\": \"a line\"}\n");
    file_write_text("text.txt", "a line\n");
    static const struct {
        const char *path;
        enum corpus_format format;
        enum corpus_cut cut;
    } cases[] = {
        {"t.parquet", CORPUS_AUTO, CORPUS_CUT_GROUPS},        {"unnamed", CORPUS_AUTO, CORPUS_CUT_GROUPS},
        {"t.jsonl", CORPUS_AUTO, CORPUS_CUT_GROUPS},          {"unnamed", CORPUS_PARQUET, CORPUS_CUT_GROUPS},
        {"lines.jsonl", CORPUS_AUTO, CORPUS_CUT_LINES},       {"text.txt", CORPUS_AUTO, CORPUS_CUT_NONE},
        {"text.txt", CORPUS_JSONL, CORPUS_CUT_LINES},         {"t.parquet", CORPUS_TEXT, CORPUS_CUT_NONE},
        {"s3://b/t.parquet", CORPUS_AUTO, CORPUS_CUT_GROUPS}, {"s3://b/t.jsonl", CORPUS_AUTO, CORPUS_CUT_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        options.format = cases[i].format;
        assert_int_equal(corpus_range_possible(cases[i].path, &options, &cut, &error), TOKMAP_OK);
        assert_int_equal(cut, cases[i].cut);
    }
    options.format = CORPUS_AUTO;
    options.field = "other";
    assert_int_equal(corpus_range_groups("t.parquet", &options, 1000, &parts, &error), TOKMAP_OK);
    assert_int_equal(parts.count, 0);
    options.field = "text";
    assert_int_equal(truncate("t.parquet", 3000), 0);
    assert_int_equal(corpus_range_groups("t.parquet", &options, 1000, &parts, &error), TOKMAP_OK);
    assert_int_equal(parts.count, 0);
    assert_int_equal(corpus_range_groups("no such file", &options, 1000, &parts, &error), TOKMAP_ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),         cmocka_unit_test(test_not_cut),
        cmocka_unit_test(test_every_size),      cmocka_unit_test(test_hash),
        cmocka_unit_test(test_changed),         cmocka_unit_test(test_which_files),
        cmocka_unit_test(test_parts_of_a_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
