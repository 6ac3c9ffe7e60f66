/* SPDX-License-Identifier: MIT */
/* test_parquet.c - reading Parquet files that support/parquet_made.h writes: each encoding, page version, and shape of
 * levels, and files with one fault each. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <inttypes.h>

#include "codec/codec_libraries.h"
#include "common/bytes.h"
#include "corpus/corpus.h"
#include "corpus/corpus_issue.h"
#include "corpus/records.h"
#include "parquet/parquet_codec.h"
#include "parquet/parquet_page.h"
#include "parquet/parquet_values.h"
#include "support/parquet_made.h"
#include "support/scratch.h"

enum { BOOLEAN = 0, INT32 = 1, INT64 = 2, DOUBLE = 5, TEXT = 6, FIXED = 7 };
enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };

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

/* ---- everything that a file delivers, as one text ---- */

struct read {
    struct bytes_buffer out; /* "row:text|" or "row:[ids/mask]|", with " {values}" before the bar */
    struct tokmap_error issues[64];
    uint64_t issue_count;
    struct corpus_counts counts;
    enum tokmap_status status;
};

static struct read all;

static void out_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void out_format(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert_true(bytes_append(&all.out, text, strlen(text)));
}

static void document_write(const struct corpus_options *options, const struct corpus_document *document)
{
    out_format("%" PRIu64 ":", document->record);
    if (options->content == CORPUS_CONTENT_IDS) {
        out_format("[");
        for (uint64_t i = 0; i < document->id_count; i++)
            out_format("%s%u%s", i ? " " : "", document->ids[i],
                       !document->counted     ? ""
                       : document->counted[i] ? "+"
                                              : "-");
        out_format("]");
    } else {
        out_format("%.*s", (int)document->bytes, document->text);
    }
    if (document->second)
        out_format(" -> %.*s", (int)document->second_bytes, document->second);
    for (size_t i = 0; i < options->column_count; i++)
        out_format(" {%.*s}", (int)document->values[i].bytes,
                   document->values[i].bytes ? document->values[i].json : "");
    out_format("|");
}

/* Reads a file and returns what it delivers. Checks the accounts. */
static const char *read_with(const struct corpus_options *options, const char *path)
{
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error;
    bytes_free(&all.out);
    memset(&all, 0, sizeof all);
    assert_int_equal(corpus_open(&corpus, &path, 1, options, &error), TOKMAP_OK);
    while (!(all.status = corpus_next(corpus, &batch, &error))) {
        assert_int_equal(records_to_documents(options, &batch, &error), TOKMAP_OK);
        for (uint64_t i = 0; i < batch.document_count; i++)
            document_write(options, &batch.documents[i]);
        for (uint64_t i = 0; i < batch.issue_count && all.issue_count < 64; i++)
            (void)corpus_issue_to_error(&batch.issues[i], options, &all.issues[all.issue_count++]);
        corpus_counts_add(&all.counts, &batch.counts);
        if (all.issue_count && !options->skip)
            break;
    }
    if (all.status == TOKMAP_END) {
        const struct corpus_counts *counts = &all.counts;
        uint64_t records = 0, files = 0, bytes = 0;
        for (int i = 0; i < CORPUS_REASONS; i++) {
            records += counts->left_out[i].records;
            files += counts->left_out[i].files;
            bytes += counts->left_out[i].bytes;
        }
        assert_int_equal(counts->stream_bytes,
                         counts->document_bytes + counts->structure_bytes + counts->skipped_bytes);
        assert_int_equal(counts->stream_bytes, counts->stored_bytes);
        assert_int_equal(records, counts->records_skipped);
        assert_int_equal(files, counts->files_skipped);
        assert_int_equal(bytes, counts->skipped_bytes);
    }
    corpus_batch_free(&batch);
    corpus_close(corpus);
    assert_true(bytes_append(&all.out, "", 1));
    return (const char *)all.out.bytes;
}

static struct corpus_options usual(void)
{
    struct corpus_options options = {
        .field = "text", .cut_anywhere = true, .batch_bytes = 8192, .record_limit = 1 << 20, .document_limit = 1 << 20};
    return options;
}

static const char *read_text(void)
{
    const struct corpus_options options = usual();
    return read_with(&options, "t.parquet");
}

static struct corpus_options ids_options(const char *mask)
{
    struct corpus_options options = usual();
    options.content = CORPUS_CONTENT_IDS;
    options.field = "ids";
    options.second_field = mask;
    return options;
}

/* Expects one issue with this status and these words. */
static void issue_is(enum tokmap_status status, const char *words)
{
    if (all.issue_count != 1 || all.issues[0].status != status || !strstr(all.issues[0].message, words))
        print_error("%" PRIu64 " issues; status %d, message: %s\n  expected: %d, %s\n", all.issue_count,
                    all.issues[0].status, all.issues[0].message, status, words);
    assert_int_equal(all.issue_count, 1);
    assert_int_equal(all.issues[0].status, status);
    assert_non_null(strstr(all.issues[0].message, words));
}

/* ---- pages of text ---- */

static const char *const words[] = {"one", "", "three", "th", "three and four"};
#define WORDS 5
#define ALL_WORDS "0:one|1:|2:three|3:th|4:three and four|"

static struct bytes_buffer plain_words(void)
{
    struct bytes_buffer values = {NULL, 0, 0};
    for (int i = 0; i < WORDS; i++)
        made_plain_text(&values, words[i], (uint32_t)strlen(words[i]));
    return values;
}

static struct made_page word_page(int version, int codec)
{
    return (struct made_page){
        .version = version, .entries = WORDS, .rows = WORDS, .codec = codec, .values = plain_words()};
}

static void lengths_put(struct bytes_buffer *into, bool shared)
{
    static const int64_t lengths[] = {3, 0, 5, 2, 14}, prefixes[] = {0, 0, 0, 2, 2}, rests[] = {3, 0, 5, 0, 12};
    if (shared)
        made_delta(into, prefixes, WORDS);
    made_delta(into, shared ? rests : lengths, WORDS);
    for (int i = 0; i < WORDS; i++) {
        const size_t from = shared ? (size_t)prefixes[i] : 0;
        assert_true(bytes_append(into, words[i] + from, strlen(words[i]) - from));
    }
}

static void test_encodings_of_text(void **state)
{
    for (int version = 1; version <= 2; version++)
        for (int codec = 0; codec <= 6; codec += 6)
            for (int encoding = 0; encoding < 4; encoding++) {
                struct made_file file;
                struct made_page page = word_page(version, codec);
                page.crc = encoding % 2;
                page.plain_values = version == 2 && encoding == 1;
                made_begin(&file);
                made_element(&file, "text", TEXT, REQUIRED, 0);
                if (encoding == 1) { /* indexes; the dictionary has the words in another order */
                    static const uint32_t indexes[] = {4, 3, 2, 1, 0};
                    struct bytes_buffer dictionary = {NULL, 0, 0};
                    for (int i = WORDS - 1; i >= 0; i--)
                        made_plain_text(&dictionary, words[i], (uint32_t)strlen(words[i]));
                    made_dictionary(&file, 0, &dictionary, WORDS, codec);
                    page.values.count = 0;
                    assert_true(bytes_append(&page.values, "\3", 1));
                    made_hybrid(&page.values, indexes, WORDS, 3, codec);
                    page.encoding = version == 1 ? PARQUET_PLAIN_DICTIONARY : PARQUET_RLE_DICTIONARY;
                } else if (encoding) {
                    page.values.count = 0;
                    lengths_put(&page.values, encoding == 3);
                    page.encoding = encoding == 3 ? PARQUET_DELTA_BYTE_ARRAY : PARQUET_DELTA_LENGTH_BYTE_ARRAY;
                }
                made_index_page(&file, 0);
                made_data(&file, 0, &page);
                made_group_end(&file, WORDS);
                made_file_end(&file, "t.parquet");
                assert_string_equal(read_text(), ALL_WORDS);
                assert_int_equal(all.issue_count, 0);
                assert_int_equal(all.counts.text_bytes, 24);
                assert_int_equal(all.counts.empty_documents, 1);
            }
}

static void test_names_and_content(void **state)
{
    struct made_file file;
    struct made_page page = word_page(1, 0);
    struct corpus_options options = usual();
    made_begin(&file);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    made_data(&file, 0, &page);
    made_group_end(&file, WORDS);
    made_file_end(&file, "t.parquet");
    file_copy("t.parquet", "other");
    assert_string_equal(read_with(&options, "other"), ALL_WORDS);
    options.format = CORPUS_PARQUET;
    assert_string_equal(read_with(&options, "other"), ALL_WORDS);
    options.format = CORPUS_TEXT;
    (void)read_with(&options, "other");
    issue_is(TOKMAP_ERROR_UNSUPPORTED, "Parquet");
    options.format = CORPUS_AUTO;
    options.field = "body";
    (void)read_with(&options, "t.parquet");
    issue_is(TOKMAP_ERROR_INPUT, "no column 'body'; it has: text");
}

/* A nested text, with null structs and null texts, next to one whose own name has the dot. */
static void test_nested_and_null(void **state)
{
    static const uint8_t definitions[] = {2, 0, 2, 1, 2, 2, 2};
    for (int version = 1; version <= 2; version++) {
        struct made_file file;
        struct made_page page = word_page(version, 6);
        struct corpus_options options = usual();
        page.entries = page.rows = 7;
        page.definitions = definitions;
        page.definition_most = 2;
        made_begin(&file);
        made_element(&file, "meta", -1, OPTIONAL, 1);
        made_element(&file, "body", TEXT, OPTIONAL, 0);
        made_data(&file, 0, &page);
        made_group_end(&file, 7);
        made_file_end(&file, "t.parquet");
        options.field = "meta.body";
        (void)read_with(&options, "t.parquet");
        issue_is(TOKMAP_ERROR_INPUT, "row 1 (in row group 0) has no value in the column 'meta.body'");
        options.skip = true;
        assert_string_equal(read_with(&options, "t.parquet"), "0:one|2:|4:three|5:th|6:three and four|");
        assert_int_equal(all.counts.records_skipped, 2);
        assert_int_equal(all.counts.left_out[CORPUS_REASON_FIELD].records, 2);
        options.field = "meta";
        (void)read_with(&options, "t.parquet");
        issue_is(TOKMAP_ERROR_INPUT, "group of columns: meta.body");
    }
}

/* Levels in the deprecated encoding BIT_PACKED are refused. */
static void test_packed_levels(void **state)
{
    static const uint8_t definitions[] = {1, 1, 0, 1, 1, 1};
    struct made_file file;
    struct made_page page = word_page(1, 0);
    const struct corpus_options options = usual();
    page.entries = 6;
    page.definitions = definitions;
    page.definition_most = 1;
    page.level_encoding = 4;
    made_begin(&file);
    made_element(&file, "text", TEXT, OPTIONAL, 0);
    made_data(&file, 0, &page);
    made_group_end(&file, 6);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"), "");
    issue_is(TOKMAP_ERROR_CORRUPT, "the encoding of its levels is not RLE");
}

static void test_dotted_name_wins(void **state)
{
    struct made_file file;
    struct made_page page = word_page(1, 0), other = word_page(1, 0);
    struct corpus_options options = usual();
    options.field = "a.b";
    other.values.bytes[4] = 'X';
    made_begin(&file);
    made_element(&file, "a", -1, REQUIRED, 1);
    made_element(&file, "b", TEXT, REQUIRED, 0);
    made_element(&file, "a.b", TEXT, REQUIRED, 0);
    made_data(&file, 0, &other);
    made_data(&file, 1, &page);
    made_group_end(&file, WORDS);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"), ALL_WORDS);
}

/* Rows are divided among pages and row groups in any way, differently in each column. */
static void test_many_pages(void **state)
{
    uint64_t random = 7;
    for (int round = 0; round < 30; round++) {
        struct made_file file;
        struct bytes_buffer expected = {NULL, 0, 0};
        struct corpus_options options = usual();
        static const char *const columns[] = {"n", "absent"};
        options.columns = columns;
        options.column_count = 2;
        made_begin(&file);
        made_element(&file, "n", INT64, REQUIRED, 0);
        made_element(&file, "text", TEXT, REQUIRED, 0);
        int64_t row = 0;
        for (int group = 0; group < 3; group++) {
            const int64_t rows = (int64_t)random_below(&random, 40);
            for (uint32_t c = 0; c < 2; c++)
                for (int64_t done = 0; done < rows;) {
                    struct made_page page = {.version = 1 + (int)random_below(&random, 2), .codec = round % 2 ? 6 : 0};
                    page.entries = page.rows = 1 + (int64_t)random_below(&random, (uint64_t)(rows - done));
                    for (int64_t i = 0; i < page.entries; i++) {
                        char text[32];
                        const int64_t n = (row + done + i) * 5 - 60;
                        (void)snprintf(text, sizeof text, "row %d", (int)(row + done + i));
                        if (c)
                            made_plain_text(&page.values, text, (uint32_t)strlen(text));
                        else
                            assert_true(bytes_append(&page.values, &n, 8));
                    }
                    done += page.entries;
                    made_data(&file, c, &page);
                }
            made_group_end(&file, rows);
            row += rows;
        }
        made_file_end(&file, "t.parquet");
        for (int64_t i = 0; i < row; i++) {
            char text[80];
            (void)snprintf(text, sizeof text, "%d:row %d {%d} {}|", (int)i, (int)i, (int)i * 5 - 60);
            assert_true(bytes_append(&expected, text, strlen(text)));
        }
        assert_true(bytes_append(&expected, "", 1));
        assert_string_equal(read_with(&options, "t.parquet"), (const char *)expected.bytes);
        bytes_free(&expected);
    }
}

/* ---- lists ---- */

static void numbers_put(struct bytes_buffer *into, int type, const int64_t *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        assert_true(bytes_append(into, &values[i], type == INT64 ? 8 : 4));
}

/* Ways to write a list, with the definition levels of a null list (or -1), an empty list, a null element (or -1) and an
 * element. */
static const struct shape {
    struct {
        const char *name;
        int repetition, children;
    } path[4];
    int depth, null, empty, null_element, element;
} shapes[] = {
    {{{"ids", OPTIONAL, 1}, {"list", REPEATED, 1}, {"element", OPTIONAL, 0}}, 3, 0, 1, 2, 3},
    {{{"ids", REQUIRED, 1}, {"bag", REPEATED, 1}, {"array_element", OPTIONAL, 0}}, 3, -1, 0, 1, 2},
    {{{"ids", OPTIONAL, 1}, {"list", REPEATED, 1}, {"element", REQUIRED, 0}}, 3, 0, 1, -1, 2},
    {{{"ids", OPTIONAL, 1}, {"array", REPEATED, 0}}, 2, 0, 1, -1, 2},
    {{{"ids", REPEATED, 0}}, 1, -1, 0, -1, 1},
};

static void shape_begin(struct made_file *file, const struct shape *shape, int type)
{
    made_begin(file);
    for (int i = 0; i < shape->depth; i++)
        made_element(file, shape->path[i].name, i + 1 == shape->depth ? type : -1, shape->path[i].repetition,
                     shape->path[i].children);
}

static void test_shapes_of_lists(void **state)
{
    static const int64_t numbers[] = {1, 2, 3, 4, 70000, 6};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int version = 1; version <= 2; version++)
            for (int delta = 0; delta < 2; delta++) {
                const struct shape *shape = &shapes[s];
                const uint8_t empty = (uint8_t)shape->empty, element = (uint8_t)shape->element;
                /* rows: [1 2 3] [] [4] [70000 6] */
                const uint8_t definitions[] = {element, element, element, empty, element, element, element};
                static const uint8_t repetitions[] = {0, 1, 1, 0, 0, 0, 1};
                const int type = s % 2 ? INT64 : INT32;
                struct corpus_options options = ids_options(NULL);
                struct made_file file;
                shape_begin(&file, shape, type);
                struct made_page page = {.version = version,
                                         .entries = 7,
                                         .rows = 4,
                                         .definitions = definitions,
                                         .definition_most = shape->element,
                                         .repetitions = repetitions,
                                         .repetition_most = 1,
                                         .codec = 6};
                if (delta) {
                    page.encoding = PARQUET_DELTA_BINARY_PACKED;
                    made_delta(&page.values, numbers, 6);
                } else {
                    numbers_put(&page.values, type, numbers, 6);
                }
                made_data(&file, 0, &page);
                made_group_end(&file, 4);
                made_file_end(&file, "t.parquet");
                assert_string_equal(read_with(&options, "t.parquet"), "0:[1 2 3]|1:[]|2:[4]|3:[70000 6]|");
                assert_int_equal(all.issue_count, 0);
                options.vocabulary = 70000;
                options.skip = true;
                assert_string_equal(read_with(&options, "t.parquet"), "0:[1 2 3]|1:[]|2:[4]|");
                issue_is(TOKMAP_ERROR_INPUT, "number 1 of the list, 70000, is not below the vocabulary's 70000");
            }
}

/* A null list, a null element, and negative or large ids are issues of their rows alone. */
static void test_lists_refused(void **state)
{
    static const uint8_t definitions[] = {3, 0, 3, 2, 3, 3}, repetitions[] = {0, 0, 0, 1, 0, 0};
    static const int64_t numbers[] = {7, 8, -5, (int64_t)1 << 32};
    struct corpus_options options = ids_options(NULL);
    struct made_file file;
    options.skip = true;
    shape_begin(&file, &shapes[0], INT64);
    struct made_page page = {.version = 2,
                             .entries = 6,
                             .rows = 5,
                             .definitions = definitions,
                             .definition_most = 3,
                             .repetitions = repetitions,
                             .repetition_most = 1};
    numbers_put(&page.values, INT64, numbers, 4);
    made_data(&file, 0, &page);
    made_group_end(&file, 5);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"), "0:[7]|");
    assert_int_equal(all.issue_count, 4);
    assert_non_null(strstr(all.issues[0].message, "row 1 (in row group 0) has no value"));
    assert_non_null(strstr(all.issues[1].message, "number 2 of the list is null"));
    assert_non_null(strstr(all.issues[2].message, "-5, is negative"));
    assert_non_null(strstr(all.issues[3].message, "4294967296, is not below 2^32"));
}

/* Lists as texts of JSON, as fastparquet writes them: ids, a mask, and labels; each fault is one of its row alone. */
static void test_lists_as_json(void **state)
{
    static const char *const columns[3][6] = {
        {"[1, 2,3]", " []\n", "[4]", "[5, -1]", "nothing", "[6]"},
        {"[0,1, true]", "[]", "[1]", "[1,1]", "[1]", "[7]"},
        {"[-100,2,3]", "[]", "[-100]", "[5,6]", "[1]", "[7]"},
    };
    static const char *const names[] = {"ids", "mask", "labels"};
    struct made_file file;
    made_begin(&file);
    for (uint32_t c = 0; c < 3; c++)
        made_element(&file, names[c], TEXT, REQUIRED, 0);
    for (uint32_t c = 0; c < 3; c++) {
        struct made_page page = {.version = 1, .entries = 6, .rows = 6};
        for (int i = 0; i < 6; i++)
            made_plain_text(&page.values, columns[c][i], (uint32_t)strlen(columns[c][i]));
        made_data(&file, c, &page);
    }
    made_group_end(&file, 6);
    made_file_end(&file, "t.parquet");
    struct corpus_options options = ids_options(NULL);
    options.skip = true;
    assert_string_equal(read_with(&options, "t.parquet"), "0:[1 2 3]|1:[]|2:[4]|5:[6]|");
    assert_int_equal(all.issue_count, 2);
    assert_non_null(strstr(all.issues[0].message, "number 2 of the list, -1, is negative"));
    assert_non_null(strstr(all.issues[1].message, "the field 'ids' of row 4 (in row group 0) is not a list"));
    options.second_field = "mask";
    assert_string_equal(read_with(&options, "t.parquet"), "0:[1- 2+ 3+]|1:[]|2:[4+]|");
    options.second_field = "labels";
    options.labels = true;
    assert_string_equal(read_with(&options, "t.parquet"), "0:[1- 2+ 3+]|1:[]|2:[4-]|");
    assert_int_equal(all.issue_count, 3);
    assert_non_null(strstr(all.issues[2].message, "is neither -100 nor the id in its place"));
}

/* A list of labels is compared with ids that are numbers. Beside ids that are JSON, no label could be called wrong. */
static void test_labels_beside_json(void **state)
{
    struct corpus_options options = ids_options("labels");
    struct made_file file;
    struct made_page page = {.version = 1, .entries = 1, .rows = 1};
    made_begin(&file);
    made_element(&file, "ids", TEXT, REQUIRED, 0);
    made_element(&file, "labels", INT64, REPEATED, 0);
    made_plain_text(&page.values, "[1]", 3);
    made_data(&file, 0, &page);
    static const uint8_t definitions[] = {1}, repetitions[] = {0};
    static const int64_t numbers[] = {2};
    page = (struct made_page){.version = 2,
                              .entries = 1,
                              .rows = 1,
                              .definitions = definitions,
                              .definition_most = 1,
                              .repetitions = repetitions,
                              .repetition_most = 1};
    numbers_put(&page.values, INT64, numbers, 1);
    made_data(&file, 1, &page);
    made_group_end(&file, 1);
    made_file_end(&file, "t.parquet");
    options.labels = true;
    (void)read_with(&options, "t.parquet");
    issue_is(TOKMAP_ERROR_INPUT, "it is a list and the ids are JSON; write both alike");
    /* A mask needs no ids to be right. */
    options.labels = false;
    (void)read_with(&options, "t.parquet");
    issue_is(TOKMAP_ERROR_INPUT, "number 1 of the list, 2, is neither 0 nor 1");
}

/* Adds a page of version 2 with ids from `first` on, whose header says that it has `rows` rows. */
static void list_page(struct made_file *file, const uint8_t *repetitions, int64_t entries, int64_t rows, int64_t first,
                      int64_t encoding)
{
    static const uint8_t definitions[] = {3, 3, 3, 3, 3, 3};
    struct made_page page = {.version = 2,
                             .entries = entries,
                             .rows = rows,
                             .definitions = definitions,
                             .definition_most = 3,
                             .repetitions = repetitions,
                             .repetition_most = 1,
                             .encoding = encoding};
    for (int64_t i = 0; i < entries; i++) {
        const int64_t number = first + i;
        numbers_put(&page.values, INT64, &number, 1);
    }
    made_data(file, 0, &page);
}

/* In a page of version 2, only the levels tell how many rows it has: Arrow before 12 wrote the number of entries into
 * its header. */
static void test_rows_of_a_page(void **state)
{
    static const uint8_t begins[] = {0, 0, 1, 0}, continues[] = {1, 0, 0, 0};
    for (int64_t rows = 0; rows < 5; rows++) {
        const struct corpus_options options = ids_options(NULL);
        struct made_file file;
        shape_begin(&file, &shapes[0], INT64);
        list_page(&file, begins, 4, rows, 1, 0);
        made_group_end(&file, 3);
        made_file_end(&file, "t.parquet");
        assert_string_equal(read_with(&options, "t.parquet"), "0:[1]|1:[2 3]|2:[4]|");
        shape_begin(&file, &shapes[0], INT64);
        list_page(&file, continues, 4, rows, 1, 0);
        made_group_end(&file, 4);
        made_file_end(&file, "t.parquet");
        assert_string_equal(read_with(&options, "t.parquet"), "");
        issue_is(TOKMAP_ERROR_CORRUPT, "it continues a row that did not begin");
        assert_int_equal(all.counts.records_skipped, 0);
    }
}

/* A row that continues in a page that is left out is left out whole, whether it begins or ends in it. Rows: [1 2 3]
 * over all three pages, [4], [5 6] over two; [1], [2 3 4 5] over three, [6]; [1 2 3], [4 5 6]. */
static void test_rows_of_a_failed_page(void **state)
{
    static const struct {
        uint8_t repetitions[6];
        const char *whole, *without[3]; /* the page */
        uint64_t rows, skipped[3];
    } cases[] = {
        {{0, 1, 1, 0, 0, 1},
         "0:[1 2 3]|1:[4]|2:[5 6]|",
         {"1:[4]|2:[5 6]|", "2:[5 6]|", "0:[1 2 3]|1:[4]|"},
         3,
         {1, 2, 1}},
        {{0, 0, 1, 1, 1, 0}, "0:[1]|1:[2 3 4 5]|2:[6]|", {"2:[6]|", "0:[1]|2:[6]|", "0:[1]|"}, 3, {2, 1, 2}},
        {{0, 1, 1, 0, 1, 1}, "0:[1 2 3]|1:[4 5 6]|", {"1:[4 5 6]|", "", "0:[1 2 3]|"}, 2, {1, 2, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int failed = -1; failed < 3; failed++) {
            struct corpus_options options = ids_options(NULL);
            struct made_file file;
            options.skip = true;
            shape_begin(&file, &shapes[0], INT64);
            for (int page = 0; page < 3; page++)
                list_page(&file, cases[i].repetitions + 2 * page, 2, 2, 1 + 2 * page, page == failed ? 77 : 0);
            made_group_end(&file, (int64_t)cases[i].rows);
            made_file_end(&file, "t.parquet");
            assert_string_equal(read_with(&options, "t.parquet"),
                                failed < 0 ? cases[i].whole : cases[i].without[failed]);
            if (failed >= 0)
                issue_is(TOKMAP_ERROR_UNSUPPORTED,
                         "its encoding is not known to this tokmap; write the file again with");
            assert_int_equal(all.counts.records_skipped, failed < 0 ? 0 : cases[i].skipped[failed]);
        }
}

/* A footer that counts fewer values than the pages have does not cut the last list. */
static void test_values_not_counted(void **state)
{
    static const uint8_t repetitions[] = {0, 0, 1, 1};
    struct corpus_options options = ids_options(NULL);
    struct made_file file;
    options.skip = true;
    shape_begin(&file, &shapes[0], INT64);
    list_page(&file, repetitions, 3, 2, 1, 0);
    list_page(&file, repetitions + 3, 1, 0, 4, 0);
    file.chunks[0][0].values = 3;
    made_group_end(&file, 2);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"), "0:[1]|");
    issue_is(TOKMAP_ERROR_CORRUPT, "the pages of the column have more values than the footer says");
}

/* Arrow before 3 compressed pages of version 2 and said that it did not. */
static void test_compressed_anyway(void **state)
{
    static const struct {
        const char *created_by;
        bool compressed;
    } cases[] = {
        {"parquet-cpp version 1.5.1-SNAPSHOT", true},
        {"parquet-cpp version 1.3.2 (build 1)", true},
        {"parquet-cpp", true},
        {"parquet-cpp version 2.0.0", false},
        {"parquet-cpp-arrow version 1.0.0", false},
        {"parquet-cpp-arrow version 3.0.0", false},
        {"parquet-mr version 1.5.0", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int compressed = 0; compressed < 2; compressed++) {
            const struct corpus_options options = usual();
            struct made_file file;
            struct made_page page = word_page(2, 6);
            page.says_plain = true;
            page.plain_values = !compressed;
            made_begin(&file);
            made_element(&file, "text", TEXT, REQUIRED, 0);
            file.created_by = cases[i].created_by;
            made_data(&file, 0, &page);
            made_group_end(&file, WORDS);
            made_file_end(&file, "t.parquet");
            const bool right = cases[i].compressed == compressed;
            assert_string_equal(read_with(&options, "t.parquet"), right ? ALL_WORDS : "");
            assert_int_equal(all.issue_count, !right);
        }
}

/* Lists may continue in the next page. The mask has other pages than the ids. */
static void test_rows_across_pages(void **state)
{
    uint64_t random = 3;
    for (int round = 0; round < 40; round++) {
        enum { ENTRIES = 60 };
        uint8_t repetitions[ENTRIES], ones[ENTRIES], mask[ENTRIES];
        struct bytes_buffer expected = {NULL, 0, 0};
        struct corpus_options options = ids_options("mask");
        struct made_file file;
        int64_t rows = 0;
        shape_begin(&file, &shapes[4], INT32);
        made_element(&file, "mask", round % 2 ? INT32 : BOOLEAN, REPEATED, 0);
        for (int i = 0; i < ENTRIES; i++) {
            char text[32];
            repetitions[i] = i && random_below(&random, 5) > 0;
            ones[i] = 1;
            mask[i] = (uint8_t)random_below(&random, 2);
            if (!repetitions[i])
                (void)snprintf(text, sizeof text, "%s%d:[%d%s", i ? "]|" : "", (int)rows++, i, mask[i] ? "+" : "-");
            else
                (void)snprintf(text, sizeof text, " %d%s", i, mask[i] ? "+" : "-");
            assert_true(bytes_append(&expected, text, strlen(text)));
        }
        assert_true(bytes_append(&expected, "]|", 3));
        for (uint32_t c = 0; c < 2; c++)
            for (int64_t done = 0; done < ENTRIES;) {
                struct made_page page = {.version = 1 + round / 2 % 2, .definition_most = 1, .repetition_most = 1};
                page.entries = 1 + (int64_t)random_below(&random, min64((uint64_t)(ENTRIES - done), 9));
                page.definitions = ones;
                page.repetitions = repetitions + done;
                uint8_t bits[2] = {0, 0};
                for (int64_t i = 0; i < page.entries; i++) {
                    const int64_t value = c ? mask[done + i] : done + i;
                    bits[i / 8] |= (uint8_t)(mask[done + i] << i % 8);
                    if (!c || round % 2)
                        numbers_put(&page.values, INT32, &value, 1);
                }
                if (c && round % 2 == 0)
                    assert_true(bytes_append(&page.values, bits, (size_t)(page.entries + 7) / 8));
                done += page.entries;
                made_data(&file, c, &page);
            }
        made_group_end(&file, rows);
        made_file_end(&file, "t.parquet");
        assert_string_equal(read_with(&options, "t.parquet"), (const char *)expected.bytes);
        bytes_free(&expected);
    }
}

/* Writes three rows, of which the second has these definition levels and is in two pages: `split` of its entries are in
 * the first one. The content is a column of ids, or messages with two fields. */
static void file_with_holes(bool messages, int version, const uint8_t *levels, int count, int split)
{
    uint8_t definitions[8] = {3}, repetitions[8] = {0};
    const int64_t ends[] = {1 + split, 2 + count};
    struct made_file file;
    for (int i = 0; i < count; i++) {
        definitions[1 + i] = levels[i];
        repetitions[1 + i] = i > 0;
    }
    definitions[1 + count] = 3;
    if (messages) {
        made_begin(&file);
        made_element(&file, "messages", -1, OPTIONAL, 1);
        made_element(&file, "list", -1, REPEATED, 2);
        made_element(&file, "role", TEXT, OPTIONAL, 0);
        made_element(&file, "content", TEXT, OPTIONAL, 0);
    } else {
        shape_begin(&file, &shapes[0], INT64);
    }
    for (uint32_t c = 0; c <= messages; c++)
        for (int64_t page_number = 0, at = 0; page_number < 2; at = ends[page_number++]) {
            struct made_page page = {.version = version,
                                     .entries = ends[page_number] - at,
                                     .rows = ends[page_number] - at,
                                     .definitions = definitions + at,
                                     .definition_most = 3,
                                     .repetitions = repetitions + at,
                                     .repetition_most = 1};
            for (int64_t i = at; i < ends[page_number]; i++)
                if (definitions[i] == 3 && messages)
                    made_plain_text(&page.values, "a", 1);
                else if (definitions[i] == 3)
                    numbers_put(&page.values, INT64, &i, 1);
            made_data(&file, c, &page);
        }
    made_group_end(&file, 3);
    made_file_end(&file, "t.parquet");
}

/* A list that is null (level 0) or empty (level 1) has one entry, which says so. With other entries beside it, the list
 * is damaged, in whichever pages they are. */
static void test_holes_in_lists(void **state)
{
    static const struct {
        int count;
        uint8_t levels[4];
    } cases[] = {{2, {0, 3}},    {2, {1, 3}},       {2, {3, 0}},       {2, {3, 1}},       {2, {0, 0}},      {2, {1, 1}},
                 {3, {0, 0, 3}}, {4, {1, 1, 1, 3}}, {4, {3, 3, 0, 3}}, {4, {3, 1, 3, 3}}, {4, {1, 2, 3, 3}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int split = 0; split <= cases[i].count; split++)
            for (int version = 1; version <= 2; version++) {
                char expected[64];
                struct corpus_options options = ids_options(NULL);
                options.skip = true;
                file_with_holes(false, version, cases[i].levels, cases[i].count, split);
                (void)snprintf(expected, sizeof expected, "0:[0]|2:[%d]|", 1 + cases[i].count);
                assert_string_equal(read_with(&options, "t.parquet"), expected);
                issue_is(TOKMAP_ERROR_INPUT, "its list is null or empty and has elements");
                assert_int_equal(all.counts.left_out[CORPUS_REASON_DAMAGED].records, 1);
                options.content = CORPUS_CONTENT_MESSAGES;
                options.field = "messages";
                file_with_holes(true, version, cases[i].levels, cases[i].count, split);
                assert_string_equal(read_with(&options, "t.parquet"),
                                    "0:[{\"role\":\"a\",\"content\":\"a\"}]|2:[{\"role\":\"a\",\"content\":\"a\"}]|");
                issue_is(TOKMAP_ERROR_INPUT, "its list is null or empty and has elements");
                assert_int_equal(all.counts.left_out[CORPUS_REASON_DAMAGED].records, 1);
            }
}

/* A mask is a list, too: one that is empty and has an element, in one page (split 0) or in two. */
static void test_holes_in_masks(void **state)
{
    static const uint8_t ones[] = {1, 1, 1, 1}, holes[][4] = {{1, 0, 1, 1}, {0, 1, 1, 1}}, lists[] = {0, 1, 0, 1};
    static const int64_t numbers[] = {1, 0, 1, 1}, all_counted[] = {1, 1, 1};
    for (size_t i = 0; i < 2; i++)
        for (uint64_t split = 0; split <= 1; split++) {
            struct corpus_options options = ids_options("mask");
            struct made_file file;
            shape_begin(&file, &shapes[4], INT32);
            made_element(&file, "mask", INT32, REPEATED, 0);
            struct made_page page = {
                .version = 1, .entries = 4, .definitions = ones, .definition_most = 1, .repetition_most = 1};
            page.repetitions = lists;
            numbers_put(&page.values, INT32, numbers, 4);
            made_data(&file, 0, &page);
            uint64_t values = 0;
            for (uint64_t from = 0; from < 4; from += (uint64_t)page.entries) {
                page.entries = split && !from ? 1 : 4 - (int64_t)from;
                page.definitions = holes[i] + from;
                page.repetitions = lists + from;
                uint64_t count = 0;
                for (int64_t entry = 0; entry < page.entries; entry++)
                    count += page.definitions[entry];
                numbers_put(&page.values, INT32, all_counted, count);
                values += count;
                made_data(&file, 1, &page);
            }
            assert_int_equal(values, 3);
            made_group_end(&file, 2);
            made_file_end(&file, "t.parquet");
            options.skip = true;
            assert_string_equal(read_with(&options, "t.parquet"), "1:[1+ 1+]|");
            issue_is(TOKMAP_ERROR_INPUT, "its list is null or empty and has elements");
            assert_int_equal(all.counts.left_out[CORPUS_REASON_DAMAGED].records, 1);
        }
}

static void test_mask_of_other_length(void **state)
{
    static const uint8_t ones[] = {1, 1, 1, 1}, ids[] = {0, 1, 0, 1}, mask[] = {0, 1, 0, 0};
    static const int64_t numbers[] = {1, 0, 1, 1};
    for (int64_t entries = 3; entries <= 4; entries++) {
        struct corpus_options options = ids_options("mask");
        struct made_file file;
        shape_begin(&file, &shapes[4], INT32);
        made_element(&file, "mask", INT32, REPEATED, 0);
        struct made_page page = {
            .version = 1, .entries = 4, .definitions = ones, .definition_most = 1, .repetition_most = 1};
        page.repetitions = ids;
        numbers_put(&page.values, INT32, numbers, 4);
        made_data(&file, 0, &page);
        page.entries = entries;
        page.repetitions = mask;
        numbers_put(&page.values, INT32, numbers, (uint64_t)entries);
        made_data(&file, 1, &page);
        made_group_end(&file, 2);
        made_file_end(&file, "t.parquet");
        options.skip = true;
        assert_string_equal(read_with(&options, "t.parquet"), "0:[1+ 0-]|");
        assert_int_equal(all.issue_count, entries == 3 ? 1 : 2);
        assert_non_null(strstr(all.issues[0].message, "it has 1 values for 2 ids"));
        if (entries == 4) /* the mask has a third row */
            assert_non_null(strstr(all.issues[1].message, "a column has more rows than its row group"));
    }
}

/* A conversation: a list of structs, whose fields are columns. */
static void test_messages(void **state)
{
    static const uint8_t definitions[] = {3, 3, 1, 3}, repetitions[] = {0, 1, 0, 0}, contents[] = {3, 2, 1, 3};
    struct corpus_options options = usual();
    struct made_file file;
    options.content = CORPUS_CONTENT_MESSAGES;
    options.field = "messages";
    made_begin(&file);
    made_element(&file, "messages", -1, OPTIONAL, 1);
    made_element(&file, "list", -1, REPEATED, 2);
    made_element(&file, "role", TEXT, OPTIONAL, 0);
    made_element(&file, "content", TEXT, OPTIONAL, 0);
    struct made_page page = {.version = 2,
                             .entries = 4,
                             .rows = 3,
                             .definitions = definitions,
                             .definition_most = 3,
                             .repetitions = repetitions,
                             .repetition_most = 1};
    made_plain_text(&page.values, "user", 4);
    made_plain_text(&page.values, "assistant", 9);
    made_plain_text(&page.values, "user", 4);
    made_data(&file, 0, &page);
    page.definitions = contents;
    made_plain_text(&page.values, "say \"hi\"\n", 9);
    made_plain_text(&page.values, "hello", 5);
    made_data(&file, 1, &page);
    made_group_end(&file, 3);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"),
                        "0:[{\"role\":\"user\",\"content\":\"say \\\"hi\\\"\\n\"},{\"role\":\"assistant\"}]|1:[]|"
                        "2:[{\"role\":\"user\",\"content\":\"hello\"}]|");
}

/* A struct in a message is an object in it: its fields are not those of the message, though they have their names. The
 * names of columns may differ only where messages cut them. */
static void test_nested_messages(void **state)
{
    static const struct {
        const char *name;
        int type, repetition;
        int children;
        const char *const texts[2]; /* of the messages; NULL: null */
        uint8_t most;
    } elements[] = {{"meta", -1, OPTIONAL, 2, {NULL}, 0},
                    {"role", TEXT, OPTIONAL, 0, {"system", NULL}, 3},
                    {"content", TEXT, OPTIONAL, 0, {NULL, "x"}, 3},
                    {"role", TEXT, OPTIONAL, 0, {"user", "assistant"}, 2},
                    {"content", TEXT, OPTIONAL, 0, {"a", NULL}, 2},
                    {"a struct whose name is so long that it is cut", -1, OPTIONAL, 2, {NULL}, 0},
                    {"name", TEXT, OPTIONAL, 0, {NULL, "f"}, 3},
                    {"arguments", TEXT, OPTIONAL, 0, {NULL, "{}"}, 3}};
    static const uint8_t repetitions[] = {0, 1};
    const size_t count = sizeof elements / sizeof elements[0];
    struct corpus_options options = usual();
    struct made_file file;
    options.content = CORPUS_CONTENT_MESSAGES;
    options.field = "messages";
    made_begin(&file);
    made_element(&file, "messages", -1, REPEATED, 4);
    for (size_t i = 0; i < count; i++)
        made_element(&file, elements[i].name, elements[i].type, elements[i].repetition, elements[i].children);
    int leaf = 0;
    for (size_t i = 0; i < count; i++) {
        if (elements[i].children)
            continue;
        uint8_t definitions[2];
        struct made_page page = {.version = 2,
                                 .entries = 2,
                                 .rows = 1,
                                 .definitions = definitions,
                                 .definition_most = elements[i].most,
                                 .repetitions = repetitions,
                                 .repetition_most = 1};
        for (int k = 0; k < 2; k++) {
            const char *value = elements[i].texts[k];
            definitions[k] = (uint8_t)(value ? elements[i].most : elements[i].most - 1);
            if (value)
                made_plain_text(&page.values, value, (uint32_t)strlen(value));
        }
        made_data(&file, leaf++, &page);
    }
    made_group_end(&file, 1);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"),
                        "0:[{\"meta\":{\"role\":\"system\"},\"role\":\"user\",\"content\":\"a\"},"
                        "{\"meta\":{\"content\":\"x\"},\"role\":\"assistant\","
                        "\"a struct whose name is so long that it is cut\":{\"name\":\"f\",\"arguments\":\"{}\"}}]|");
    made_begin(&file);
    made_element(&file, "messages", -1, REPEATED, 2);
    made_element(&file, "role", TEXT, OPTIONAL, 0);
    made_element(&file, "call", -1, OPTIONAL, 1);
    made_element(&file, "function", -1, OPTIONAL, 1);
    made_element(&file, "name", TEXT, OPTIONAL, 0);
    made_file_end(&file, "t.parquet");
    (void)read_with(&options, "t.parquet");
    issue_is(TOKMAP_ERROR_INPUT, "'messages.call.function.name' of the Parquet file is in a struct in a struct");
}

/* Rows that are larger than a run of rows, with lists of a text from a dictionary. One that is longer than a record may
 * be is refused before there is memory for it. */
static void test_long_messages(void **state)
{
    enum { ENTRIES = 4096, BYTES = 1 << 16 };
    static uint8_t repetitions[ENTRIES], definitions[ENTRIES];
    static uint32_t indexes[ENTRIES];
    static char text[BYTES];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < ENTRIES; i++) {
        repetitions[i] = i > 1; /* [x] and [x, x, ...] */
        definitions[i] = 1;
    }
    for (int version = 1; version <= 2; version++)
        for (int64_t entries = 2; entries <= ENTRIES; entries += ENTRIES - 2) {
            struct corpus_options options = usual();
            struct made_file file;
            struct bytes_buffer dictionary = {NULL, 0, 0};
            options.content = CORPUS_CONTENT_MESSAGES;
            options.field = "messages";
            options.skip = true;
            made_begin(&file);
            made_element(&file, "messages", -1, REPEATED, 1);
            made_element(&file, "content", TEXT, REQUIRED, 0);
            made_plain_text(&dictionary, text, BYTES);
            made_dictionary(&file, 0, &dictionary, 1, 6);
            struct made_page page = {.version = version,
                                     .entries = entries,
                                     .rows = 2,
                                     .definitions = definitions,
                                     .definition_most = 1,
                                     .repetitions = repetitions,
                                     .repetition_most = 1,
                                     .encoding = PARQUET_RLE_DICTIONARY,
                                     .codec = 6};
            assert_true(bytes_append(&page.values, "\1", 1));
            made_hybrid(&page.values, indexes, (uint64_t)entries, 1, false);
            made_data(&file, 0, &page);
            made_group_end(&file, 2);
            made_file_end(&file, "t.parquet");
            (void)read_with(&options, "t.parquet");
            const bool whole = entries == 2;
            assert_in_range(all.counts.text_bytes, (whole ? 2 : 1) * BYTES, (whole ? 2 : 1) * BYTES + 99);
            assert_int_equal(all.counts.records_skipped, !whole);
            if (!whole)
                issue_is(TOKMAP_ERROR_LIMIT, "row 1 (in row group 0) is longer than the limit of 1048576 bytes");
        }
}

static void test_values_of_columns(void **state)
{
    static const char *const columns[] = {"flag", "score", "url", "count"};
    static const uint8_t definitions[] = {1, 0, 1};
    static const double scores[] = {0.1, 1e300};
    static const int64_t counts[] = {-1, 5};
    struct corpus_options options = usual();
    struct made_file file;
    options.columns = columns;
    options.column_count = 4;
    made_begin(&file);
    made_element(&file, "count", INT32, OPTIONAL, 0);
    made_element(&file, "flag", BOOLEAN, OPTIONAL, 0);
    made_element(&file, "score", DOUBLE, OPTIONAL, 0);
    made_element(&file, "url", TEXT, OPTIONAL, 0);
    made_element(&file, "text", FIXED, REQUIRED, 0);
    file.elements[4].type_bytes = 2;
    file.elements[4].converted = 0;  /* UTF8 */
    file.elements[0].converted = 13; /* UINT_32 */
    struct made_page page = {.version = 1, .entries = 3, .definitions = definitions, .definition_most = 1};
    numbers_put(&page.values, INT32, counts, 2);
    made_data(&file, 0, &page);
    page.encoding = PARQUET_RLE;
    assert_true(bytes_append(&page.values, "\2\0\0\0\x04\1", 6));
    made_data(&file, 1, &page);
    page.encoding = PARQUET_BYTE_STREAM_SPLIT;
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 2; i++)
            assert_true(bytes_append(&page.values, (const char *)&scores[i] + k, 1));
    made_data(&file, 2, &page);
    page.encoding = PARQUET_PLAIN;
    made_plain_text(&page.values, "a\tb", 3);
    made_plain_text(&page.values, "", 0);
    made_data(&file, 3, &page);
    page.definitions = NULL;
    assert_true(bytes_append(&page.values, "aabbcc", 6));
    made_data(&file, 4, &page);
    made_group_end(&file, 3);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"),
                        "0:aa {true} {0.1} {\"a\\tb\"} {4294967295}|1:bb {} {} {} {}|2:cc {true} {1e+300} {\"\"} {5}|");
}

/* A page that says two values and has the bytes of three: it is unknown where the bytes of a value are. */
static void test_split_values_more(void **state)
{
    for (int more = 0; more < 2; more++) {
        struct made_file file;
        struct made_page page = {.version = 1, .entries = 2, .encoding = PARQUET_BYTE_STREAM_SPLIT};
        struct corpus_options options = usual();
        made_begin(&file);
        made_element(&file, "text", FIXED, REQUIRED, 0);
        file.elements[0].type_bytes = 2;
        file.elements[0].converted = 0; /* UTF8 */
        assert_true(bytes_append(&page.values, more ? "abcabc" : "abab", more ? 6 : 4));
        made_data(&file, 0, &page);
        made_group_end(&file, 2);
        made_file_end(&file, "t.parquet");
        const char *got = read_with(&options, "t.parquet");
        if (more)
            issue_is(TOKMAP_ERROR_CORRUPT, "it has the bytes of more values than it says");
        else
            assert_string_equal(got, "0:aa|1:bb|");
    }
}

/* A page may have no values. One that says so and has some has lost rows. */
static void test_empty_pages(void **state)
{
    static const uint8_t levels[] = {1, 1, 1, 1, 1};
    static const struct {
        int version, codec, optional;
        const char *bytes;
        size_t count;
        bool taken;
    } cases[] = {
        {1, 0, REQUIRED, "", 0, true},
        {1, 0, REQUIRED, "\3\0\0\0abc", 7, false},
        {1, 0, OPTIONAL, "\0\0\0\0", 4, true},
        {1, 0, OPTIONAL, "\0\0\0\0\3\0\0\0abc", 11, false},
        {1, 0, OPTIONAL, "\2\0\0\0\2\1", 6, false},
        {2, 0, REQUIRED, "", 0, true},
        {2, 6, OPTIONAL, "", 0, true},
        {2, 6, REQUIRED, "\3\0\0\0abc", 7, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made_file file;
        struct made_page page = word_page(cases[i].version, cases[i].codec),
                         empty = {.version = cases[i].version, .codec = cases[i].codec};
        struct corpus_options options = usual();
        made_begin(&file);
        made_element(&file, "text", TEXT, cases[i].optional, 0);
        page.definitions = cases[i].optional == OPTIONAL ? levels : NULL;
        page.definition_most = cases[i].optional == OPTIONAL;
        assert_true(bytes_append(&empty.values, cases[i].bytes, cases[i].count));
        made_data(&file, 0, &empty);
        made_data(&file, 0, &page);
        made_group_end(&file, WORDS);
        made_file_end(&file, "t.parquet");
        assert_string_equal(read_with(&options, "t.parquet"), cases[i].taken ? ALL_WORDS : "");
        if (!cases[i].taken)
            issue_is(TOKMAP_ERROR_CORRUPT, "it says that it has no values, and has some");
    }
}

/* Annotated columns are kept as what they are. Of two annotations that disagree, the newer one counts. */
static void test_annotated_values(void **state)
{
    static const char *const columns[] = {"price", "cents", "half", "id", "none", "score"};
    struct corpus_options options = usual();
    struct made_file file;
    options.columns = columns;
    options.column_count = 6;
    options.skip = true;
    made_begin(&file);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    made_element(&file, "price", TEXT, REQUIRED, 0);
    made_element(&file, "cents", INT32, REQUIRED, 0);
    made_element(&file, "half", FIXED, REQUIRED, 0);
    made_element(&file, "id", FIXED, REQUIRED, 0);
    made_element(&file, "none", INT32, REQUIRED, 0);
    made_element(&file, "score", FIXED, REQUIRED, 0);
    file.elements[1].logical = 5;
    file.elements[1].converted = 0;
    file.elements[2].converted = 5;
    file.elements[1].precision = file.elements[2].precision = file.elements[6].precision = 12;
    file.elements[1].scale = file.elements[2].scale = file.elements[6].scale = 2;
    file.elements[3].logical = 15;
    file.elements[4].logical = 14;
    file.elements[5].logical = 11;
    file.elements[6].logical = 99; /* one of the future beside an old one */
    file.elements[6].converted = 5;
    file.elements[3].type_bytes = 2;
    file.elements[4].type_bytes = 16;
    file.elements[6].type_bytes = 5;
    static const int64_t cents[] = {-5, 7, 8}, none[] = {1, 2, 3};
    struct made_page page = {.version = 1, .entries = 3};
    made_plain_text(&page.values, "a", 1);
    made_plain_text(&page.values, "b", 1);
    made_plain_text(&page.values, "c", 1);
    made_data(&file, 0, &page);
    made_plain_text(&page.values, "\x32", 1);
    made_plain_text(&page.values, "\xff\xff", 2);
    made_plain_text(&page.values, "", 0); /* damaged */
    made_data(&file, 1, &page);
    numbers_put(&page.values, INT32, cents, 3);
    made_data(&file, 2, &page);
    assert_true(bytes_append(&page.values, "\x66\x2e\0\x7c\0\0", 6));
    made_data(&file, 3, &page);
    for (int i = 0; i < 3; i++)
        assert_true(bytes_append(&page.values, "0123456789abcdef", 16));
    made_data(&file, 4, &page);
    numbers_put(&page.values, INT32, none, 3);
    made_data(&file, 5, &page);
    assert_true(bytes_append(&page.values, "\0\0\0\0\1\xff\xff\xff\xff\0\0\0\0\0\0", 15));
    made_data(&file, 6, &page);
    made_group_end(&file, 3);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_with(&options, "t.parquet"),
                        "0:a {0.50} {-0.05} {0.0999755859375} {\"30313233-3435-3637-3839-616263646566\"} {} {0.01}|"
                        "1:b {-0.01} {0.07} {null} {\"30313233-3435-3637-3839-616263646566\"} {} {-2.56}|");
    issue_is(TOKMAP_ERROR_INPUT, "the column 'price' of row 2 (in row group 0) cannot be used: a decimal has no bytes");
}

/* Columns of another type than text are refused by name. */
static void test_types_refused(void **state)
{
    static const char *const kept[] = {"value"};
    static const struct {
        int type, type_bytes, converted, logical;
        int64_t precision;
        const char *kind;
        bool is_kept; /* it can be a column */
    } cases[] = {
        {TEXT, 0, 5, 0, 4, "BYTE_ARRAY of the type DECIMAL(4, 0)", true},
        {TEXT, 0, 5, 0, 0, "BYTE_ARRAY of the type DECIMAL(0, 0)", false},
        {TEXT, 0, 20, 0, 0, "BYTE_ARRAY of the type BSON", false},
        {TEXT, 0, -1, 17, 0, "BYTE_ARRAY of the type GEOMETRY", false},
        {TEXT, 0, -1, 99, 0, "BYTE_ARRAY of a type that this tokmap does not know", false},
        {TEXT, 0, 0, 99, 0, NULL, true}, /* STRING, as the older annotation says */
        {FIXED, 4, -1, 0, 0, "FIXED_LEN_BYTE_ARRAY", false},
        {FIXED, 4, -1, 5, 9, "FIXED_LEN_BYTE_ARRAY of the type DECIMAL(9, 0)", true},
        {FIXED, 2, -1, 15, 0, "FIXED_LEN_BYTE_ARRAY of the type FLOAT16", true},
        {FIXED, 16, -1, 14, 0, "FIXED_LEN_BYTE_ARRAY of the type UUID", true},
        {FIXED, 12, 21, 0, 0, "FIXED_LEN_BYTE_ARRAY of the type INTERVAL", false},
        {INT64, 0, 9, 8, 0, "INT64 of the type TIMESTAMP", false},
        {INT32, 0, 6, 0, 0, "INT32 of the type DATE", false},
        {3, 0, -1, 0, 0, "INT96", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int use = 0; use < 2; use++) {
            struct corpus_options options = usual();
            struct made_file file;
            options.field = use ? "text" : "value";
            options.columns = kept;
            options.column_count = (size_t)use;
            made_begin(&file);
            made_element(&file, "text", TEXT, REQUIRED, 0);
            made_element(&file, "value", cases[i].type, REQUIRED, 0);
            file.elements[1].type_bytes = cases[i].type_bytes;
            file.elements[1].converted = cases[i].converted;
            file.elements[1].logical = cases[i].logical;
            file.elements[1].precision = cases[i].precision;
            made_file_end(&file, "t.parquet");
            (void)read_with(&options, "t.parquet");
            if (!cases[i].kind || (use && cases[i].is_kept)) {
                assert_int_equal(all.issue_count, 0);
                continue;
            }
            char message[200];
            (void)snprintf(message, sizeof message, "the column 'value' of the Parquet file has %s, and a column of %s",
                           cases[i].kind, use ? "text, numbers, or bools is needed" : "text is needed");
            issue_is(TOKMAP_ERROR_INPUT, message);
        }
}

/* The leaves of a VARIANT are binary. */
static void test_variant_refused(void **state)
{
    struct corpus_options options = usual();
    struct made_file file;
    options.field = "v.value";
    made_begin(&file);
    made_element(&file, "v", -1, OPTIONAL, 2);
    made_element(&file, "metadata", TEXT, REQUIRED, 0);
    made_element(&file, "value", TEXT, OPTIONAL, 0);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    file.elements[0].logical = 16;
    made_file_end(&file, "t.parquet");
    (void)read_with(&options, "t.parquet");
    issue_is(TOKMAP_ERROR_INPUT, "the column 'v.value' of the Parquet file has BYTE_ARRAY of the type VARIANT");
    (void)read_text();
    assert_int_equal(all.issue_count, 0);
}

/* A group with a type and a repetition is a group; some writers give the root both. */
static void test_typed_root(void **state)
{
    struct made_file file;
    struct made_page page = word_page(1, 0);
    made_begin(&file);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    file.root_typed = true;
    made_data(&file, 0, &page);
    made_group_end(&file, WORDS);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_text(), ALL_WORDS);
}

/* ---- faults ---- */

/* Writes a file with two row groups, of which `lie` changes the first. */
static void faulty(void (*lie)(struct made_file *file, struct made_page *page))
{
    struct made_file file;
    struct made_page page = word_page(1, 0), good = word_page(1, 0);
    page.crc = true;
    made_begin(&file);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    lie(&file, &page);
    made_data(&file, 0, &page);
    made_group_end(&file, WORDS);
    made_data(&file, 0, &good);
    made_group_end(&file, WORDS);
    lie(&file, NULL);
    made_file_end(&file, "t.parquet");
}

#define LIE(name, in_page, in_file)                                                                                    \
    static void name(struct made_file *file, struct made_page *page)                                                   \
    {                                                                                                                  \
        if (page) {                                                                                                    \
            in_page;                                                                                                   \
        } else {                                                                                                       \
            in_file;                                                                                                   \
        }                                                                                                              \
    }
/* The dictionary has WORDS values, and the last index is WORDS. */
static void lie_index(struct made_file *file, struct made_page *page)
{
    static const uint32_t indexes[WORDS] = {0, 1, 2, 3, WORDS};
    struct bytes_buffer dictionary = {NULL, 0, 0};
    if (!page)
        return;
    for (int i = 0; i < WORDS; i++)
        made_plain_text(&dictionary, words[i], (uint32_t)strlen(words[i]));
    made_dictionary(file, 0, &dictionary, WORDS, 0);
    page->values.count = 0;
    assert_true(bytes_append(&page->values, "\3", 1));
    made_hybrid(&page->values, indexes, WORDS, 3, 0);
    page->encoding = PARQUET_RLE_DICTIONARY;
}
LIE(lie_crc, page->crc_wrong = true, )
LIE(lie_text_length, page->values.bytes[0] = 200, )
LIE(lie_text_length_huge, page->values.bytes[3] = 0xff, )
LIE(lie_encoding, page->encoding = 77, )
LIE(lie_no_dictionary, page->encoding = PARQUET_RLE_DICTIONARY, )
LIE(lie_page_huge, page->bytes = INT32_MAX, )
LIE(lie_page_beyond, page->stored = INT32_MAX, )
LIE(lie_page_negative, page->stored = -5, )
LIE(lie_entries, page->entries = INT32_MAX, )
LIE(lie_entries_more, page->entries = 6, file->chunks[0][0].values = 5)
LIE(lie_values, , file->chunks[0][0].values = 6)
LIE(lie_rows, , file->rows[0] = 6)
LIE(lie_rows_both, , file->rows[0] = file->chunks[0][0].values = 6)
LIE(lie_rows_huge, , file->rows[0] = file->chunks[0][0].values = INT64_MAX)
LIE(lie_offset, , file->chunks[0][0].data_page = INT64_MAX)
LIE(lie_offset_negative, , file->chunks[0][0].data_page = -1)
LIE(lie_offset_inside, , (file->chunks[0][0].data_page += 7, file->chunks[0][0].bytes -= 7))
LIE(lie_overlap, , file->chunks[0][0].data_page += 1)
LIE(lie_same, , file->chunks[1][0] = file->chunks[0][0])
LIE(lie_rows_overflow, , file->rows[0] = file->chunks[0][0].values = INT64_MAX;
    file->rows[1] = file->chunks[1][0].values = INT64_MAX; file->groups = 3; file->rows[2] = INT64_MAX;
    file->chunks[2][0] = file->chunks[1][0])
LIE(lie_size, , file->chunks[0][0].bytes = (int64_t)1 << 60)
LIE(lie_size_negative, , file->chunks[0][0].bytes = -1)
LIE(lie_codec, , file->chunks[0][0].codec = 99)
LIE(lie_codec_zstd, , file->chunks[0][0].codec = 6)
LIE(lie_groups, , file->extra_groups = 1000000)
LIE(lie_children, , file->root_children = 1000000)
LIE(lie_elsewhere, , file->chunks[0][0].file_path = "part-1")
LIE(lie_encrypted, , file->chunks[0][0].encrypted = true)

/* The whole end of the message: it does not say that the file is damaged. */
#define UNKNOWN_ENCODING                                                                                               \
    "page at byte 4: its encoding is not known to this tokmap; write the file again with another encoding, such as "   \
    "PLAIN"

static void test_one_fault(void **state)
{
    static const struct {
        void (*lie)(struct made_file *file, struct made_page *page);
        enum tokmap_status status;
        const char *words;
        bool whole_file; /* nothing of it is used */
    } cases[] = {
        {lie_crc, TOKMAP_ERROR_CORRUPT, "row group 0, column 'text', page at byte 4: its checksum", false},
        {lie_text_length, TOKMAP_ERROR_CORRUPT, "its bytes end before its last value", false},
        {lie_text_length_huge, TOKMAP_ERROR_CORRUPT, "its bytes end before its last value", false},
        {lie_encoding, TOKMAP_ERROR_UNSUPPORTED, UNKNOWN_ENCODING, false},
        {lie_index, TOKMAP_ERROR_CORRUPT, "an index is outside of the dictionary", false},
        {lie_no_dictionary, TOKMAP_ERROR_CORRUPT, "its column has none in this row group", false},
        {lie_page_huge, TOKMAP_ERROR_CORRUPT, "another size than its header says", false},
        {lie_page_beyond, TOKMAP_ERROR_CORRUPT, "longer than the rest of its column", true},
        {lie_page_negative, TOKMAP_ERROR_CORRUPT, "negative count or size", true},
        {lie_entries, TOKMAP_ERROR_CORRUPT, "not the number of rows", true},
        {lie_entries_more, TOKMAP_ERROR_CORRUPT, "more values than the footer says", true},
        {lie_values, TOKMAP_ERROR_CORRUPT, "its number of values is not the number of rows", true},
        {lie_rows, TOKMAP_ERROR_CORRUPT, "its number of values is not the number of rows", true},
        {lie_offset, TOKMAP_ERROR_CORRUPT, "it begins outside of the file", true},
        {lie_offset_negative, TOKMAP_ERROR_CORRUPT, "it begins outside of the file", true},
        {lie_offset_inside, TOKMAP_ERROR_CORRUPT, "row group 0, column 'text', page at byte 11", true},
        {lie_overlap, TOKMAP_ERROR_CORRUPT, "row groups 0 and 1 have the same bytes in column 'text'", true},
        {lie_same, TOKMAP_ERROR_CORRUPT, "row groups 0 and 1 have the same bytes in column 'text'", true},
        {lie_rows_overflow, TOKMAP_ERROR_CORRUPT, "a row group has no valid number of rows", true},
        {lie_size, TOKMAP_ERROR_CORRUPT, "it ends outside of the file", true},
        {lie_size_negative, TOKMAP_ERROR_CORRUPT, "negative number of values or bytes", true},
        {lie_codec, TOKMAP_ERROR_UNSUPPORTED, "row group 0, column 'text', page at byte 4", false},
        {lie_codec_zstd, TOKMAP_ERROR_CORRUPT, "row group 0, column 'text', page at byte 4", false},
        {lie_groups, TOKMAP_ERROR_CORRUPT, "the footer of the Parquet file is damaged", true},
        {lie_children, TOKMAP_ERROR_CORRUPT, "more fields than follow", true},
        {lie_elsewhere, TOKMAP_ERROR_UNSUPPORTED, "is in another file", true},
        {lie_encrypted, TOKMAP_ERROR_UNSUPPORTED, "is encrypted", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct corpus_options options = usual();
        faulty(cases[i].lie);
        (void)read_with(&options, "t.parquet");
        issue_is(cases[i].status, cases[i].words);
        options.skip = true;
        (void)read_with(&options, "t.parquet");
        issue_is(cases[i].status, cases[i].words);
        assert_string_equal((const char *)all.out.bytes,
                            cases[i].whole_file ? "" : "5:one|6:|7:three|8:th|9:three and four|");
        assert_int_equal(all.counts.files_skipped, cases[i].whole_file);
        assert_int_equal(all.counts.records_skipped, cases[i].whole_file ? 0 : WORDS);
    }
}

/* A page that takes much more memory than its bytes in the file is refused by its header: nothing is decompressed. */
static void test_large_claims(void **state)
{
    for (int64_t claim = 255; claim < 1100; claim += 256)
        for (int raised = 0; raised < 2; raised++) {
            struct corpus_options options = usual();
            struct made_file file;
            struct made_page page = word_page(1, 6), good = word_page(1, 6);
            options.skip = true;
            options.record_limit = (uint64_t)(raised ? 256 : 1) << 20;
            made_begin(&file);
            made_element(&file, "text", TEXT, REQUIRED, 0);
            made_data(&file, 0, &good);
            page.bytes = claim << 20;
            made_data(&file, 0, &page);
            made_group_end(&file, (int64_t)2 * WORDS);
            made_file_end(&file, "t.parquet");
            assert_string_equal(read_with(&options, "t.parquet"), ALL_WORDS);
            if (claim <= (raised ? 1024 : 256)) {
                assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
                assert_int_equal(all.counts.records_skipped, WORDS);
            } else {
                issue_is(TOKMAP_ERROR_LIMIT, "raise --max-record, or write the file with smaller pages");
                assert_int_equal(all.counts.left_out[CORPUS_REASON_TOO_LONG].files, 1);
            }
        }
}

/* The same of the pages of one list together. */
static void test_large_list(void **state)
{
    static const uint8_t definitions[] = {1, 1}, repetitions[] = {0, 1, 1, 1};
    for (int pages = 2; pages < 4; pages++) {
        struct corpus_options options = ids_options(NULL);
        struct made_file file;
        options.skip = true;
        shape_begin(&file, &shapes[4], INT64);
        for (int i = 0; i < pages; i++) {
            struct made_page page = {
                .version = 2, .entries = 2, .definition_most = 1, .repetition_most = 1, .codec = 6};
            const int64_t numbers[] = {1, 2};
            page.definitions = definitions;
            page.repetitions = repetitions + (i ? 2 : 0);
            page.bytes = 100 << 20;
            numbers_put(&page.values, INT64, numbers, 2);
            made_data(&file, 0, &page);
        }
        made_group_end(&file, 1);
        made_file_end(&file, "t.parquet");
        assert_string_equal(read_with(&options, "t.parquet"), "");
        if (pages == 2)
            issue_is(TOKMAP_ERROR_CORRUPT, "page at byte 4");
        else
            issue_is(TOKMAP_ERROR_LIMIT, "it, or the list that it continues, takes 3145");
    }
}

/* Texts that share their beginnings: few bytes of a page make many, which are counted before they take memory. */
static void test_shared_texts(void **state)
{
    enum { TEXTS = 5000, BYTES = 64 << 10 };
    static int64_t prefixes[TEXTS], rests[TEXTS] = {BYTES};
    static char text[BYTES];
    struct corpus_options options = usual();
    struct made_page page = {.version = 1, .entries = TEXTS, .rows = TEXTS, .encoding = PARQUET_DELTA_BYTE_ARRAY};
    struct made_file file;
    for (int i = 1; i < TEXTS; i++)
        prefixes[i] = BYTES;
    memset(text, 'x', sizeof text);
    made_delta(&page.values, prefixes, TEXTS);
    made_delta(&page.values, rests, TEXTS);
    assert_true(bytes_append(&page.values, text, sizeof text));
    made_begin(&file);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    made_data(&file, 0, &page);
    made_group_end(&file, TEXTS);
    made_file_end(&file, "t.parquet");
    options.skip = true;
    assert_string_equal(read_with(&options, "t.parquet"), "");
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(all.issues[0].message, "its texts take too much memory"));
}

/* ---- the bytes of a column ---- */

static struct made_page one_word(const char *text)
{
    struct made_page page = {.version = 1, .entries = 1, .rows = 1};
    made_plain_text(&page.values, text, (uint32_t)strlen(text));
    return page;
}

/* Two row groups of the columns text and email, with a page for each row: "mine 0" and "mine 1", then "other 0" .. */
static void two_columns(struct made_file *file, int64_t kind)
{
    made_begin(file);
    made_element(file, "text", TEXT, REQUIRED, 0);
    made_element(file, "email", TEXT, REQUIRED, 0);
    for (int group = 0; group < 2; group++) {
        for (uint32_t column = 0; column < 2; column++)
            for (int row = 0; row < 2; row++) {
                char text[32];
                (void)snprintf(text, sizeof text, "%s %d", column ? "other" : "mine", 2 * group + row);
                struct made_page page = one_word(text);
                if (!group && !column && row)
                    page.kind = kind;
                made_data(file, column, &page);
            }
        made_group_end(file, 2);
    }
}

/* A page whose kind is not known is not passed over, since another one would take its place: that of the next column,
 * or the next one of its own. */
static void test_unknown_kinds(void **state)
{
    static const int64_t kinds[] = {1, 2, 3, 4, 8, 100, INT32_MAX, -1, INT64_MAX};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int skip = 0; skip < 2; skip++) {
            struct corpus_options options = usual();
            struct made_file file;
            options.skip = skip;
            two_columns(&file, kinds[i]);
            made_file_end(&file, "t.parquet");
            assert_string_equal(read_with(&options, "t.parquet"), "0:mine 0|");
            if (kinds[i] < 4)
                issue_is(TOKMAP_ERROR_CORRUPT, "lacks the kind of the page or its description");
            else
                issue_is(TOKMAP_ERROR_UNSUPPORTED, "it is of a kind that is not known to this tokmap; write the file "
                                                   "again with pages of version 1 or 2");
        }
}

/* An index page is passed over. It does not make room for a page behind the chunk. */
static void test_index_page(void **state)
{
    struct made_file file;
    struct made_page page = one_word("mine"), other = one_word("other");
    made_begin(&file);
    made_element(&file, "text", TEXT, REQUIRED, 0);
    made_element(&file, "email", TEXT, REQUIRED, 0);
    made_index_page(&file, 0);
    made_data(&file, 0, &page);
    made_index_page(&file, 0);
    file.chunks[0][0].values = 2;
    made_data(&file, 1, &other);
    file.chunks[0][1].values = 2;
    made_group_end(&file, 2);
    made_file_end(&file, "t.parquet");
    assert_string_equal(read_text(), "0:mine|");
    issue_is(TOKMAP_ERROR_CORRUPT, "the column ends before its last value");
}

/* Nothing is read at or behind the begin of another chunk, whatever the footer says. */
static void test_shared_bytes(void **state)
{
    static const char shared[] = "has bytes of another column";
    for (int i = 0; i < 10; i++) {
        struct made_file file;
        two_columns(&file, 0);
        struct made_chunk *mine = &file.chunks[0][0], *other = &file.chunks[0][1], *last = &file.chunks[1][1];
        const char *message = shared;
        switch (i) {
        case 0: /* the pages of the other column */
            mine->data_page = other->data_page;
            break;
        case 1: /* the second one of them */
            mine->data_page = other->data_page + other->bytes / 2;
            mine->bytes = other->bytes / 2;
            break;
        case 2: /* too long by a byte */
            mine->bytes++;
            break;
        case 3: /* the other column, which is not read, is too long */
            other->bytes += file.chunks[1][0].bytes;
            break;
        case 4: /* as a dictionary */
            other->dictionary_page = mine->data_page + 1;
            break;
        case 5: /* of another row group */
            mine->data_page = last->data_page;
            break;
        case 6: /* all */
            mine->bytes = last->data_page + last->bytes - mine->data_page;
            break;
        case 7: /* the whole file */
            last->data_page = 4;
            last->bytes = (int64_t)file.bytes.count - 4;
            break;
        case 8: /* a column that begins inside and is said to have no bytes */
            other->data_page = mine->data_page + 1;
            other->bytes = 0;
            break;
        default: /* a column that is not read and not said to have values is no bound */
            other->values = 0;
            other->data_page = mine->data_page;
            message = NULL;
        }
        made_file_end(&file, "t.parquet");
        (void)read_text();
        if (message)
            issue_is(TOKMAP_ERROR_CORRUPT, message);
        assert_string_equal((const char *)all.out.bytes, message ? "" : "0:mine 0|1:mine 1|2:mine 2|3:mine 3|");
    }
}

/* Old writers did not count the header of the dictionary. The chunk may be longer than it is said to be by that much,
 * and not by more. */
static void test_uncounted_header(void **state)
{
    static const uint32_t indexes[] = {1, 0, 1};
    for (int64_t lacking = 0; lacking < 3; lacking++) {
        struct made_file file;
        struct bytes_buffer dictionary = {NULL, 0, 0};
        struct made_page page = {.version = 1, .entries = 3, .encoding = PARQUET_PLAIN_DICTIONARY};
        struct made_page other = {.version = 1, .entries = 3};
        made_begin(&file);
        made_element(&file, "text", TEXT, REQUIRED, 0);
        made_element(&file, "email", TEXT, REQUIRED, 0);
        made_plain_text(&dictionary, "b", 1);
        made_plain_text(&dictionary, "a", 1);
        const int64_t body = (int64_t)dictionary.count;
        made_dictionary(&file, 0, &dictionary, 2, 0);
        const int64_t header = file.chunks[0][0].bytes - body;
        assert_true(bytes_append(&page.values, "\1", 1));
        made_hybrid(&page.values, indexes, 3, 1, false);
        made_data(&file, 0, &page);
        for (int i = 0; i < 3; i++)
            made_plain_text(&other.values, "other", 5);
        made_data(&file, 1, &other);
        file.chunks[0][0].bytes -= lacking ? header + lacking - 1 : 0;
        made_group_end(&file, 3);
        made_file_end(&file, "t.parquet");
        assert_string_equal(read_text(), lacking < 2 ? "0:a|1:b|2:a|" : "");
        if (lacking == 2)
            issue_is(TOKMAP_ERROR_CORRUPT, "longer than the rest of its column");
    }
}

/* Rows that precede a fault in the pages of a file are used. */
static void test_rows_before_a_fault(void **state)
{
    static void (*const lies[])(struct made_file * file, struct made_page * page) = {lie_rows_both, lie_rows_huge};
    for (int i = 0; i < 2; i++) {
        struct corpus_options options = usual();
        options.skip = true;
        faulty(lies[i]);
        assert_string_equal(read_with(&options, "t.parquet"), ALL_WORDS);
        assert_int_equal(all.issue_count, 1);
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
        assert_int_equal(all.counts.files_skipped, 1);
    }
}

/* No shortened file and no changed byte makes the reader crash, loop, or lose count. */
static void test_cut_and_changed(void **state)
{
    uint64_t random = 11;
    struct corpus_options options = usual();
    size_t bytes;
    options.skip = true;
    faulty(lie_crc);
    uint8_t *whole = file_read("t.parquet", &bytes), *changed = malloc(bytes);
    assert_non_null(changed);
    for (size_t count = 0; count < bytes; count++) {
        file_write("c.parquet", whole, count);
        (void)read_with(&options, "c.parquet");
        assert_int_equal(all.status, TOKMAP_END);
        assert_int_equal(all.counts.files_skipped, 1);
    }
    for (int i = 0; i < 600; i++) {
        memcpy(changed, whole, bytes);
        for (uint64_t k = 1 + random_below(&random, 3); k; k--)
            changed[random_below(&random, bytes)] = (uint8_t)random_next(&random);
        file_write("c.parquet", changed, bytes);
        (void)read_with(&options, "c.parquet");
        assert_int_equal(all.status, TOKMAP_END);
    }
    free(whole);
    free(changed);
}

static void test_encrypted_and_foreign(void **state)
{
    const struct corpus_options options = usual();
    file_write("e.parquet", "PARE\x15\0\0\0\0\0\0\0PARE", 16);
    (void)read_with(&options, "e.parquet");
    issue_is(TOKMAP_ERROR_UNSUPPORTED, "is encrypted");
    /* The bytes say so, too, whether the columns are encrypted or only the footer. */
    static const char *const heads[] = {"PARE\x2d\0\0\0\xe4u\xb2{....", "PARE\x15\0\x15\x18\x15\x1c\x2c........"};
    for (size_t i = 0; i < 2; i++) {
        file_write("e", heads[i], 16);
        (void)read_with(&options, "e");
        issue_is(TOKMAP_ERROR_UNSUPPORTED, "an encrypted Parquet file");
    }
    file_write("e.parquet", "hello, this is a text", 21);
    (void)read_with(&options, "e.parquet");
    issue_is(TOKMAP_ERROR_UNSUPPORTED, "does not begin with PAR1");
    file_write("e.parquet", "PAR1\xff\xff\xff\x7fPAR1", 12);
    (void)read_with(&options, "e.parquet");
    issue_is(TOKMAP_ERROR_CORRUPT, "says that its footer has");
    file_write("e", "PAR1\x15\0..", 8);
    (void)read_with(&options, "e");
    issue_is(TOKMAP_ERROR_TRUNCATED, "does not end with PAR1");
}

/* Columns that a field cannot be are refused when the footer is read, with the option that named the field. */
static void test_columns_refused(void **state)
{
    static const char *const tags[] = {"tags"}, *const names[] = {"name"}, *const groups[] = {"meta"};
    const struct {
        struct corpus_options options;
        const char *const *columns;
        const char *message;
    } cases[] = {
        {usual(), tags,
         "the column 'tags.list.element' of the Parquet file has lists of BYTE_ARRAY, and a column of "
         "text, numbers, or bools is needed; name another with --columns"},
        {usual(), names, "two columns 'name'; rename one, or name another with --columns"},
        {usual(), groups,
         "'meta' of the Parquet file is a group of columns: meta.a, meta.b; name one with "
         "--columns"},
        {ids_options(NULL), NULL, "two columns 'ids.list.element'; rename one, or name another with --ids-field"},
        {{.field = "deep", .content = CORPUS_CONTENT_IDS},
         NULL,
         "has lists of lists of INT32, and a list of integers is needed; name another with --ids-field"},
        {{.field = "talk", .content = CORPUS_CONTENT_MESSAGES},
         NULL,
         "two columns 'talk.list.element.role'; rename one, or name another with --messages-field"},
        {{.field = "tags"}, NULL, "has lists of BYTE_ARRAY, and a column of text is needed; name another with --field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct corpus_options options = usual();
        struct made_file file;
        options.field = cases[i].options.field;
        options.content = cases[i].options.content;
        options.columns = cases[i].columns;
        options.column_count = cases[i].columns != NULL;
        made_begin(&file);
        made_element(&file, "text", TEXT, REQUIRED, 0);
        for (int twice = 0; twice < 2; twice++) {
            made_element(&file, "name", TEXT, REQUIRED, 0);
            for (int k = 0; k < shapes[0].depth; k++)
                made_element(&file, shapes[0].path[k].name, k < 2 ? -1 : INT32, shapes[0].path[k].repetition,
                             shapes[0].path[k].children);
        }
        for (int list = 0; list < 3; list++) {
            static const char *const lists[] = {"tags", "deep", "talk"};
            made_element(&file, lists[list], -1, OPTIONAL, 1);
            made_element(&file, "list", -1, REPEATED, 1);
            made_element(&file, "element", list ? -1 : TEXT, OPTIONAL, list);
            if (list == 1)
                made_element(&file, "array", INT32, REPEATED, 0);
            for (int k = 0; list == 2 && k < 2; k++)
                made_element(&file, "role", TEXT, OPTIONAL, 0);
        }
        made_element(&file, "meta", -1, OPTIONAL, 2);
        made_element(&file, "a", TEXT, OPTIONAL, 0);
        made_element(&file, "b", TEXT, OPTIONAL, 0);
        made_file_end(&file, "t.parquet");
        (void)read_with(&options, "t.parquet");
        issue_is(TOKMAP_ERROR_INPUT, cases[i].message);
    }
}

/* A buffer that is given back serves the pages that it fits best. */
static void test_pool_fits(void **state)
{
    static const size_t sizes[] = {10000, 100, 1000};
    static const struct {
        uint64_t wanted, capacity;
    } cases[] = {{500, 1000}, {1, 100}, {1000, 1000}, {1001, 10000}, {20000, 10000}};
    struct parquet_pool *pool;
    assert_int_equal(parquet_pool_new(&pool, NULL), TOKMAP_OK);
    struct bytes_buffer buffer = parquet_pool_buffer(pool, 10);
    assert_null(buffer.bytes);
    assert_int_equal(buffer.capacity, 0);
    for (int i = 0; i < 3; i++) {
        buffer = (struct bytes_buffer){malloc(sizes[i]), 7, sizes[i]};
        assert_non_null(buffer.bytes);
        parquet_pool_buffer_back(pool, &buffer);
        assert_null(buffer.bytes);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buffer = parquet_pool_buffer(pool, cases[i].wanted);
        assert_int_equal(buffer.capacity, cases[i].capacity);
        assert_int_equal(buffer.count, 0);
        parquet_pool_buffer_back(pool, &buffer);
    }
    parquet_pool_release(pool);
}

static void test_crc(void **state)
{
    assert_int_equal(parquet_crc("123456789", 9), 0xcbf43926);
    assert_int_equal(parquet_crc("", 0), 0);
}

/* A library that is missing is looked for once. (The last test, because that holds for the process.) */
static void test_crc_without_library(void **state)
{
#if defined(HAVE_ISAL) && !defined(LIBRARIES_LINKED)
    const struct library kept = libisal_library;
    libisal_library.file = "libtokmap_of_nobody.so.7";
    libisal_library.state = LIBRARY_UNOPENED;
    assert_int_equal(parquet_crc("123456789", 9), 0xcbf43926);
    libisal_library = kept;
    libisal_library.state = LIBRARY_UNOPENED;
    assert_int_equal(parquet_crc("123456789", 9), 0xcbf43926);
    assert_int_equal(libisal_library.state, LIBRARY_UNOPENED);
    libisal_library.state = kept.state;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodings_of_text),
        cmocka_unit_test(test_names_and_content),
        cmocka_unit_test(test_nested_and_null),
        cmocka_unit_test(test_packed_levels),
        cmocka_unit_test(test_dotted_name_wins),
        cmocka_unit_test(test_many_pages),
        cmocka_unit_test(test_shapes_of_lists),
        cmocka_unit_test(test_lists_refused),
        cmocka_unit_test(test_lists_as_json),
        cmocka_unit_test(test_labels_beside_json),
        cmocka_unit_test(test_rows_of_a_page),
        cmocka_unit_test(test_rows_of_a_failed_page),
        cmocka_unit_test(test_values_not_counted),
        cmocka_unit_test(test_compressed_anyway),
        cmocka_unit_test(test_rows_across_pages),
        cmocka_unit_test(test_holes_in_lists),
        cmocka_unit_test(test_holes_in_masks),
        cmocka_unit_test(test_mask_of_other_length),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_nested_messages),
        cmocka_unit_test(test_long_messages),
        cmocka_unit_test(test_values_of_columns),
        cmocka_unit_test(test_split_values_more),
        cmocka_unit_test(test_empty_pages),
        cmocka_unit_test(test_annotated_values),
        cmocka_unit_test(test_types_refused),
        cmocka_unit_test(test_variant_refused),
        cmocka_unit_test(test_typed_root),
        cmocka_unit_test(test_one_fault),
        cmocka_unit_test(test_large_claims),
        cmocka_unit_test(test_large_list),
        cmocka_unit_test(test_shared_texts),
        cmocka_unit_test(test_unknown_kinds),
        cmocka_unit_test(test_index_page),
        cmocka_unit_test(test_shared_bytes),
        cmocka_unit_test(test_uncounted_header),
        cmocka_unit_test(test_rows_before_a_fault),
        cmocka_unit_test(test_cut_and_changed),
        cmocka_unit_test(test_encrypted_and_foreign),
        cmocka_unit_test(test_columns_refused),
        cmocka_unit_test(test_pool_fits),
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_crc_without_library),
    };
    return cmocka_run_group_tests_name("parquet", tests, folder_make, folder_remove);
}
