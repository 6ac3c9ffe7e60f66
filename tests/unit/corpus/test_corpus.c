/* SPDX-License-Identifier: MIT */
/* ci: nonroot tsan */
/* test_corpus.c - reading files and making documents. The documents do not depend on the size of a batch, and the
 * accounts contain each byte of the streams exactly once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#ifdef HAVE_BZIP2
#include <bzlib.h>
#endif
#ifdef HAVE_XZ
#include <lzma.h>
#endif
#ifdef HAVE_LZ4
#include <lz4frame.h>
#endif

#include "corpus/corpus.h"
#include "corpus/corpus_issue.h"
#include "corpus/inputs.h"
#include "corpus/records.h"
#include "support/awkward_text.h"
#include "support/scratch.h"
#include "text/utf8.h"

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

/* ---- everything that a corpus delivers ---- */

#define ITEMS 8192
struct collected {
    struct {
        char path[64];
        uint64_t record, bytes, capacity;
        char *text;
    } documents[ITEMS];
    struct tokmap_error issues[ITEMS];
    size_t documents_count, issues_count;
    struct corpus_counts counts;
    bool open, fatal;
    uint64_t largest_batch;
};

static struct collected all;

static void collected_free(void)
{
    for (size_t i = 0; i < all.documents_count; i++)
        free(all.documents[i].text);
    memset(&all, 0, sizeof all);
}

static void document_collect(const struct corpus_batch *batch, const struct corpus_document *document)
{
    assert_int_equal(document->resumed, all.open);
    if (!document->resumed) {
        assert_true(all.documents_count < ITEMS);
        (void)snprintf(all.documents[all.documents_count].path, sizeof all.documents[0].path, "%s",
                       batch->parts[document->part].path);
        all.documents[all.documents_count++].record = document->record;
    }
    const size_t last = all.documents_count - 1;
    const uint64_t bytes = all.documents[last].bytes + document->bytes;
    if (bytes + 1 > all.documents[last].capacity) {
        all.documents[last].capacity = 2 * bytes + 1;
        all.documents[last].text = realloc(all.documents[last].text, all.documents[last].capacity);
        assert_non_null(all.documents[last].text);
    }
    if (document->bytes)
        memcpy(all.documents[last].text + all.documents[last].bytes, document->text, document->bytes);
    all.documents[last].text[bytes] = '\0';
    all.documents[last].bytes = bytes;
    all.open = document->unfinished;
}

static struct corpus_options usual(void)
{
    struct corpus_options options = {
        .field = "text", .cut_anywhere = true, .batch_bytes = 8192, .record_limit = 1 << 20, .document_limit = 1 << 20};
    return options;
}

static enum tokmap_status collect(const struct corpus_options *options, const char *const *operands, size_t count)
{
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error = {0};
    collected_free();
    assert_int_equal(corpus_open(&corpus, operands, count, options, &error), TOKMAP_OK);
    enum tokmap_status status;
    while (!(status = corpus_next(corpus, &batch, &error)) && !all.fatal) {
        assert_int_equal(records_to_documents(options, &batch, &error), TOKMAP_OK);
        for (uint64_t i = 0; i < batch.document_count; i++) {
            assert_true(!batch.documents[i].resumed || i == 0);
            assert_true(!batch.documents[i].unfinished || i + 1 == batch.document_count);
            document_collect(&batch, &batch.documents[i]);
        }
        for (uint64_t i = 0; i < batch.issue_count; i++) {
            assert_true(all.issues_count < ITEMS);
            (void)corpus_issue_to_error(&batch.issues[i], options, &all.issues[all.issues_count++]);
            all.fatal |= batch.issues[i].fatal;
        }
        corpus_counts_add(&all.counts, &batch.counts);
        all.largest_batch = batch.capacity > all.largest_batch ? batch.capacity : all.largest_batch;
        if (all.issues_count && !options->skip && options->invalid != CORPUS_INVALID_SKIP)
            break;
    }
    corpus_batch_free(&batch);
    corpus_close(corpus);
    if (status == TOKMAP_END) {
        assert_false(all.open);
        assert_int_equal(all.counts.documents, all.documents_count);
        assert_int_equal(all.counts.stream_bytes,
                         all.counts.document_bytes + all.counts.structure_bytes + all.counts.skipped_bytes);
        struct corpus_left_out sum = {0};
        for (int i = 0; i < CORPUS_REASONS; i++) {
            sum.files += all.counts.left_out[i].files;
            sum.records += all.counts.left_out[i].records;
            sum.bytes += all.counts.left_out[i].bytes;
        }
        assert_int_equal(sum.files, all.counts.files_skipped);
        assert_int_equal(sum.records, all.counts.records_skipped);
        assert_int_equal(sum.bytes, all.counts.skipped_bytes);
        assert_int_equal(sum.files + sum.records, all.issues_count);
    }
    return status;
}

static enum tokmap_status collect_one(const struct corpus_options *options, const char *name)
{
    return collect(options, &name, 1);
}

static void document_is(size_t number, const char *path, uint64_t record, const void *text, size_t bytes)
{
    assert_true(number < all.documents_count);
    assert_string_equal(all.documents[number].path, path);
    assert_int_equal(all.documents[number].record, record);
    assert_int_equal(all.documents[number].bytes, bytes);
    if (bytes)
        assert_memory_equal(all.documents[number].text, text, bytes);
}

static void text_is(size_t number, const char *path, uint64_t record, const char *text)
{
    document_is(number, path, record, text, strlen(text));
}

/* ---- text ---- */

static void test_text(void **state)
{
    static const char odd[] = "\xef\xbb\xbf"
                              "a\r\nb\0c";
    struct corpus_options options = usual();
    options.format = CORPUS_TEXT;
    file_write("odd", odd, sizeof odd - 1);
    file_write_text("empty", "");
    file_write_text("three", "no newline");
    const char *const operands[] = {"three", "odd", "empty", "three"};
    assert_int_equal(collect(&options, operands, 4), TOKMAP_END);
    assert_int_equal(all.documents_count, 4);
    text_is(0, "three", 0, "no newline");
    document_is(1, "odd", 0, odd, sizeof odd - 1);
    text_is(2, "empty", 0, "");
    text_is(3, "three", 0, "no newline");
    assert_int_equal(all.counts.files, 4);
    assert_int_equal(all.counts.empty_documents, 1);
    assert_int_equal(all.counts.stored_bytes, 29);
}

static char *make_text(size_t bytes, size_t *count)
{
    char *text = malloc(bytes + 4);
    assert_non_null(text);
    *count = 0;
    while (*count < bytes) {
        const uint32_t kind = awkward_below(6);
        uint32_t code = kind < 3    ? 'a' + awkward_below(26)
                        : kind == 3 ? awkward_below(0x800)
                        : kind == 4 ? awkward_below(0x10000)
                                    : awkward_below(0x110000);
        if ((code >= 0xd800 && code < 0xe000) || !code)
            code = '\n';
        *count += utf8_put(text + *count, code);
    }
    return text;
}

static void test_long_text(void **state)
{
    size_t count;
    char *text = make_text(300000, &count);
    file_write("long", text, count);
    const char *const operands[] = {"long", "empty", "long"};
    for (uint64_t batch = 8192; batch < 400000; batch = batch * 2 + 13)
        for (int whole = 0; whole < 2; whole++) {
            struct corpus_options options = usual();
            options.batch_bytes = batch;
            options.cut_anywhere = !whole;
            assert_int_equal(collect(&options, operands, 3), TOKMAP_END);
            assert_int_equal(all.documents_count, 3);
            document_is(0, "long", 0, text, count);
            document_is(1, "empty", 0, "", 0);
            document_is(2, "long", 0, text, count);
            if (!whole)
                assert_int_equal(all.largest_batch, batch);
        }
    free(text);
}

static void test_document_limit(void **state)
{
    struct corpus_options options = usual();
    options.cut_anywhere = false;
    options.skip = true;
    options.document_limit = 299999;
    const char *const operands[] = {"long", "three"};
    assert_int_equal(collect(&options, operands, 2), TOKMAP_END);
    assert_int_equal(all.documents_count, 1);
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_LIMIT);
    assert_true(all.counts.skipped_bytes >= 300000);
}

static void test_invalid_text(void **state)
{
    size_t count;
    char *text = make_text(100000, &count);
    size_t cut = utf8_cut(text, 70000);
    memcpy(text + cut, "\xff", 1);
    file_write("wrong", text, cut + 1);
    const char *const operands[] = {"three", "wrong", "three"};
    struct corpus_options options = usual();
    for (options.batch_bytes = 8192; options.batch_bytes < 200000; options.batch_bytes *= 2) {
        options.invalid = CORPUS_INVALID_ERROR;
        (void)collect(&options, operands, 3);
        assert_int_equal(all.issues_count, 1);
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_ENCODING);
        assert_int_equal(all.issues[0].offset, cut);
        assert_string_equal(all.issues[0].path, "wrong");
        options.invalid = CORPUS_INVALID_REPLACE;
        assert_int_equal(collect(&options, operands, 3), TOKMAP_END);
        assert_int_equal(all.documents_count, 3);
        assert_int_equal(all.documents[1].bytes, cut + 3);
        assert_memory_equal(all.documents[1].text + cut, "\xef\xbf\xbd", 3);
        assert_int_equal(all.counts.replaced, 1);
        options.invalid = CORPUS_INVALID_SKIP;
        assert_int_equal(collect(&options, operands, 3), TOKMAP_END);
        assert_int_equal(all.documents_count, 2);
        assert_int_equal(all.issues_count, 1);
        assert_int_equal(all.issues[0].offset, cut);
        assert_int_equal(all.counts.skipped_bytes, cut + 1);
        /* A text is a file: what was left out was one file and no record. */
        assert_int_equal(all.counts.files, 2);
        assert_int_equal(all.counts.left_out[CORPUS_REASON_ENCODING].files, 1);
        assert_int_equal(all.counts.left_out[CORPUS_REASON_ENCODING].records, 0);
    }
    free(text);
}

/* ---- JSONL ---- */

static void test_lines(void **state)
{
    static const char lines[] = "\xef\xbb\xbf{\"text\": \"one\"}\r\n\n  \t\r\n{\"n\": 1, \"text\": \"t\\u0077o\"}\n"
                                "{\"text\": \"\"}\n{\"text\": \"\\ud83d\\ude00\"}";
    const struct corpus_options options = usual();
    file_write("lines.jsonl", lines, sizeof lines - 1);
    assert_int_equal(collect_one(&options, "lines.jsonl"), TOKMAP_END);
    assert_int_equal(all.documents_count, 4);
    text_is(0, "lines.jsonl", 0, "one");
    text_is(1, "lines.jsonl", 3, "two");
    text_is(2, "lines.jsonl", 4, "");
    text_is(3, "lines.jsonl", 5, "\U0001F600");
    assert_int_equal(all.counts.blank_lines, 2);
    assert_int_equal(all.counts.stream_bytes, sizeof lines - 1);
    assert_int_equal(all.counts.text_bytes, 3 + 3 + 4);
}

static void test_byte_order_mark(void **state)
{
    const struct corpus_options options = usual();
    file_write_text("mark.jsonl", "\xef\xbb\xbf{\"text\":\"a\"}\n{\"text\":1}\n");
    (void)collect_one(&options, "mark.jsonl");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].offset, 3 + 13 + 8);
    assert_int_equal(all.issues[0].line, 2);
    /* A mark before another line is not JSON. */
    file_write_text("mark.jsonl", "{\"text\":\"a\"}\n\xef\xbb\xbf{\"text\":\"b\"}\n");
    (void)collect_one(&options, "mark.jsonl");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].line, 2);
}

/* Records of all lengths up to several batches, so that cuts fall at every kind of position. */
static void test_many_lines(void **state)
{
    FILE *file = fopen("many.jsonl", "wb");
    assert_non_null(file);
    uint64_t lengths[500];
    for (int i = 0; i < 500; i++) {
        lengths[i] = awkward_below(10) ? awkward_below(300) : awkward_below(40000);
        (void)fprintf(file, "{\"text\":\"");
        for (uint64_t k = 0; k < lengths[i]; k++)
            (void)putc('a' + (i + (int)k) % 26, file);
        (void)fprintf(file, "\"}%s", i == 499 ? "" : i % 7 ? "\n" : "\n\n");
    }
    assert_int_equal(fclose(file), 0);
    for (uint64_t batch = 8192; batch < 200000; batch = batch * 2 + 1) {
        struct corpus_options options = usual();
        options.batch_bytes = batch;
        assert_int_equal(collect_one(&options, "many.jsonl"), TOKMAP_END);
        assert_int_equal(all.documents_count, 500);
        for (uint64_t i = 0, record = 0; i < 500; i++) {
            assert_int_equal(all.documents[i].bytes, lengths[i]);
            assert_int_equal(all.documents[i].record, record);
            for (uint64_t k = 0; k < lengths[i]; k++)
                assert_int_equal(all.documents[i].text[k], 'a' + (int)((i + k) % 26));
            record += i % 7 ? 1 : 2;
        }
        assert_int_equal(all.counts.blank_lines, 72 - (499 % 7 == 0));
    }
}

static void test_wrong_lines(void **state)
{
    static const char lines[] = "{\"text\":\"a\"}\n"
                                "{\"text\":1}\n"
                                "not json\n"
                                "{\"other\":\"x\"}\n"
                                "{\"text\":\"b\\ud800\"}\n"
                                "{\"text\":\"b\xff\"}\n"
                                "{\"text\":\"b\",\"other\":\"\xff\"}\n";
    static const uint64_t offsets[] = {13 + 8, 13 + 11, 13 + 11 + 9, 13 + 11 + 9 + 14 + 10, 13 + 11 + 9 + 14 + 19 + 10};
    static const enum tokmap_status statuses[] = {TOKMAP_ERROR_INPUT, TOKMAP_ERROR_INPUT, TOKMAP_ERROR_INPUT,
                                                  TOKMAP_ERROR_ENCODING, TOKMAP_ERROR_ENCODING};
    struct corpus_options options = usual();
    file_write("wrong.jsonl", lines, sizeof lines - 1);
    (void)collect_one(&options, "wrong.jsonl");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].line, 2);
    options.skip = true;
    assert_int_equal(collect_one(&options, "wrong.jsonl"), TOKMAP_END);
    assert_int_equal(all.documents_count, 2);
    text_is(1, "wrong.jsonl", 6, "b");
    assert_int_equal(all.issues_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(all.issues[i].status, statuses[i]);
        assert_int_equal(all.issues[i].line, i + 2);
        assert_int_equal(all.issues[i].offset, offsets[i]);
    }
    assert_int_equal(all.counts.records_skipped, 5);
    options.invalid = CORPUS_INVALID_REPLACE;
    assert_int_equal(collect_one(&options, "wrong.jsonl"), TOKMAP_END);
    assert_int_equal(all.documents_count, 4);
    text_is(1, "wrong.jsonl", 4, "b\xef\xbf\xbd");
    text_is(2, "wrong.jsonl", 5, "b\xef\xbf\xbd");
    assert_int_equal(all.counts.replaced, 2);
}

static void test_record_limit(void **state)
{
    FILE *file = fopen("limit.jsonl", "wb");
    assert_non_null(file);
    static const int lengths[] = {10, 3000, 100, 60000, 100, 200000, 5, 300000};
    for (size_t i = 0; i < 8; i++)
        (void)fprintf(file, "{\"text\":\"%0*d\"}%s", lengths[i], (int)i, i == 7 ? "" : "\n");
    assert_int_equal(fclose(file), 0);
    struct corpus_options options = usual();
    options.skip = true;
    for (options.batch_bytes = 8192; options.batch_bytes < 600000; options.batch_bytes = options.batch_bytes * 3 / 2) {
        options.record_limit = 2999;
        assert_int_equal(collect_one(&options, "limit.jsonl"), TOKMAP_END);
        assert_int_equal(all.documents_count, 4);
        assert_int_equal(all.documents[3].record, 6);
        assert_int_equal(all.issues_count, 4);
        assert_int_equal(all.issues[3].line, 8);
        options.record_limit = 3011;
        assert_int_equal(collect_one(&options, "limit.jsonl"), TOKMAP_END);
        assert_int_equal(all.documents_count, 5);
        options.record_limit = 200011;
        assert_int_equal(collect_one(&options, "limit.jsonl"), TOKMAP_END);
        assert_int_equal(all.documents_count, 7);
    }
}

static void test_formats(void **state)
{
    static const struct {
        const char *name, *content;
        size_t documents; /* 0 and an issue: the file is refused unless its format is named */
        const char *issue;
    } cases[] = {
        {"f.txt", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n", 0, "--input-format jsonl if it"},
        {"f.ndjson", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n", 2, NULL},
        {"f.json", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n", 2, NULL},
        {"g.json", "{\n\"text\":\"a\"}\n", 0, "--input-format json if it"},
        {"h.json", "[1]\n", 0, "--input-format json if it"},
        {"h.JSON", "text\n", 0, "--input-format json if it"},
        {"h.json5", "// a comment\n", 0, "--input-format json if it"},
        {"none.json", "", 0, NULL},
        {"none.csv", "", 0, NULL},
        {"none.WARC", "", 0, NULL},
        {"f.JSONL", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n", 2, NULL},
        {"blank.json", "\n \n{\"text\":\"a\"}\n", 1, NULL},
        {"nan.json", "[{\"text\":\"a\", \"x\": NaN}, {\"text\":\"b\", \"x\": [-Infinity]}]\n", 2, NULL},
        {"quotes.json", "{'text': 'a'}\n", 0, "strings have double quotes"},
        {"note.warc", "text\n", 0, "the name is that of a WARC file"},
        {"note.wet", "text\n", 0, "use --input-format text"},
        {"note.arrow", "text\n", 0, "the name is that of a binary file"},
        {"f.json-lines", "\n", 0, NULL},
        {"plain", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n", 0, "--input-format jsonl if it"},
        {"array", "[\n {\"text\":\"a\"}]\n", 0, "--input-format json if it"},
        {"array.json", "[\n {\"text\":\"a\"}, {\"text\":\"b\"}]\n", 2, NULL},
        {"note.csv", "no comma\n", 0, "--input-format csv if it"},
        {"note.tsv", "no tab\n", 0, "--input-format tsv if it"},
        {"note.TSV", "a,b\n1,2\n", 0, "--input-format tsv if it"},
        {"table", "id,text\n1,a\n", 0, "--input-format csv if it"},
        {"tabs", "id\ttext\n1\ta\n", 0, "--input-format tsv if it"},
        {"zero", "", 1, NULL},
        {"i.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}", 2, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct corpus_options options = usual();
        file_write_text(cases[i].name, cases[i].content);
        const enum tokmap_status status = collect_one(&options, cases[i].name);
        assert_int_equal(status, cases[i].issue ? TOKMAP_OK : TOKMAP_END);
        assert_int_equal(all.documents_count, cases[i].documents);
        assert_int_equal(all.issues_count, cases[i].issue != NULL);
        if (cases[i].issue) {
            assert_non_null(strstr(all.issues[0].message, cases[i].issue));
            options.skip = true;
            assert_int_equal(collect_one(&options, cases[i].name), TOKMAP_END);
            assert_int_equal(all.counts.left_out[CORPUS_REASON_AMBIGUOUS].files, 1);
            assert_int_equal(all.counts.files, 0);
            options.skip = false;
        }
        options.format = CORPUS_TEXT;
        assert_int_equal(collect_one(&options, cases[i].name), TOKMAP_END);
        text_is(0, cases[i].name, 0, cases[i].content);
    }
}

/* A first line that is longer than many batches is read whole before the format is decided. */
static void test_format_of_long_line(void **state)
{
    struct corpus_options options = usual();
    for (int closed = 0; closed < 2; closed++) {
        FILE *file = fopen("longline.json", "wb");
        assert_non_null(file);
        (void)fprintf(file, "{\"text\":\"%0200000d\"%s\n{\"text\":\"b\"}\n", 7, closed ? "}" : "");
        assert_int_equal(fclose(file), 0);
        const enum tokmap_status status = collect_one(&options, "longline.json");
        assert_int_equal(status, closed ? TOKMAP_END : TOKMAP_OK);
        assert_int_equal(all.documents_count, closed ? 2 : 0);
        if (closed)
            assert_int_equal(all.documents[0].bytes, 200000);
        else
            assert_non_null(strstr(all.issues[0].message, "--input-format jsonl if it"));
    }
}

/* ---- compression ---- */

static uint32_t crc32(const uint8_t *bytes, size_t count)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Writes a gzip member of stored (not compressed) blocks. Returns its size. */
static size_t gzip_member(uint8_t *into, const char *bytes, size_t count)
{
    size_t made = 10, done = 0;
    memcpy(into, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    do {
        const size_t part = count - done < 60000 ? count - done : 60000;
        into[made++] = done + part == count;
        into[made++] = (uint8_t)part;
        into[made++] = (uint8_t)(part >> 8);
        into[made++] = (uint8_t)~part;
        into[made++] = (uint8_t)(~part >> 8);
        memcpy(into + made, bytes + done, part);
        made += part;
        done += part;
    } while (done < count);
    const uint32_t crc = crc32((const uint8_t *)bytes, count);
    for (int i = 0; i < 4; i++) {
        into[made + (size_t)i] = (uint8_t)(crc >> 8 * i);
        into[made + 4 + (size_t)i] = (uint8_t)(count >> 8 * i);
    }
    return made + 8;
}

static size_t zstd_frame(uint8_t *into, const char *bytes, size_t count)
{
    const size_t made = ZSTD_compress(into, ZSTD_compressBound(count), bytes, count, 3);
    assert_false(ZSTD_isError(made));
    return made;
}

/* Several members or frames: complete, truncated at every byte, and followed by other data. The first `recognized`
 * bytes tell what the file is. */
static void compression_check(const char *name, size_t (*pack)(uint8_t *into, const char *bytes, size_t count),
                              size_t recognized)
{
    size_t count;
    char *text = make_text(150000, &count);
    uint8_t *packed = malloc(4 * count);
    assert_non_null(packed);
    struct corpus_options options = usual();
    size_t made = pack(packed, text, count / 2);
    made += pack(packed + made, "", 0);
    made += pack(packed + made, text + count / 2, count - count / 2);
    file_write(name, packed, made);
    for (options.batch_bytes = 8192; options.batch_bytes < 400000; options.batch_bytes *= 3) {
        assert_int_equal(collect_one(&options, name), TOKMAP_END);
        assert_int_equal(all.documents_count, 1);
        document_is(0, name, 0, text, count);
        assert_int_equal(all.counts.stored_bytes, made);
    }
    packed[made] = 'x';
    file_write(name, packed, made + 1);
    (void)collect_one(&options, name);
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);

    const size_t first = pack(packed, "some text, some text", 20);
    const size_t both = first + pack(packed + first, "and more of it", 14);
    for (size_t cut = 0; cut <= both; cut++) {
        file_write(name, packed, cut);
        (void)collect_one(&options, name);
        if (cut == both || cut == first || !cut) {
            assert_int_equal(all.issues_count, 0);
        } else if (cut < recognized) {
            /* Too short to be recognized as compressed, which the name says that it is. */
            assert_int_equal(all.issues_count, 1);
            assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
            assert_non_null(strstr(all.issues[0].message, "the input is not compressed"));
        } else {
            assert_int_equal(all.issues_count, 1);
            assert_int_equal(all.issues[0].status, TOKMAP_ERROR_TRUNCATED);
            options.skip = true;
            assert_int_equal(collect_one(&options, name), TOKMAP_END);
            assert_int_equal(all.documents_count, 0);
            options.skip = false;
        }
    }
    free(text);
    free(packed);
}

static void test_zstd(void **state)
{
    compression_check("packed.zst", zstd_frame, 4);
    /* Skippable frames before and between other frames. */
    uint8_t packed[400];
    memcpy(packed, "\x50\x2a\x4d\x18\x03\0\0\0xyz", 11);
    size_t made = 11 + zstd_frame(packed + 11, "one", 3);
    memcpy(packed + made, "\x5f\x2a\x4d\x18\x00\0\0\0", 8);
    made += 8;
    made += zstd_frame(packed + made, "two", 3);
    file_write("skippable", packed, made);
    const struct corpus_options options = usual();
    assert_int_equal(collect_one(&options, "skippable"), TOKMAP_END);
    text_is(0, "skippable", 0, "onetwo");
    /* Metadata in the frame that may have a dictionary; also a frame that is not one, since its end is missing. */
    packed[0] = 0x5d;
    file_write("skippable", packed, made);
    assert_int_equal(collect_one(&options, "skippable"), TOKMAP_END);
    text_is(0, "skippable", 0, "onetwo");
    file_write("skippable", "\x5d\x2a\x4d\x18\x09\0\0\0\x37\xa4\x30\xec", 12);
    (void)collect_one(&options, "skippable");
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_TRUNCATED);
    /* A header with the number of a dictionary, which the file does not have: what to do, and no advice to copy it. */
    file_write("dictionary.zst", "\x28\xb5\x2f\xfd\x23\x8f\x5f\x44\x15\x01\x01\0\0x", 14);
    (void)collect_one(&options, "dictionary.zst");
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(all.issues[0].message, "made with a dictionary (id 356802447) that is not in the file; pipe "
                                                  "the output of 'zstd -dc -D DICTIONARY' into tokmap"));
    assert_null(strstr(all.issues[0].message, "copy"));
}

static void test_gzip(void **state)
{
#ifdef HAVE_ISAL
    compression_check("packed.gz", gzip_member, 3);
    uint8_t packed[100];
    const size_t made = gzip_member(packed, "some text", 9);
    packed[made - 8] ^= 1;
    file_write("packed.gz", packed, made);
    const struct corpus_options options = usual();
    (void)collect_one(&options, "packed.gz");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
    /* Reserved flags (RFC 1952, 2.3.1.2), in the first member or in another one. */
    for (size_t member = 0; member < 2; member++)
        for (uint8_t flag = 0x20; flag; flag = (uint8_t)(flag << 1)) {
            const size_t one = gzip_member(packed, "some text", 9);
            memcpy(packed + one, packed, one);
            packed[member * one + 3] |= flag;
            file_write("packed.gz", packed, 2 * one);
            (void)collect_one(&options, "packed.gz");
            assert_int_equal(all.issues_count, 1);
            assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
            assert_non_null(strstr(all.issues[0].message, "has a reserved flag"));
        }
#else
    uint8_t packed[100];
    const struct corpus_options options = usual();
    file_write("packed.gz", packed, gzip_member(packed, "some text", 9));
    (void)collect_one(&options, "packed.gz");
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
#endif
}

#if !defined(HAVE_BZIP2) || !defined(HAVE_XZ) || !defined(HAVE_LZ4)
/* A build without the library names the package that it needs. */
static void left_out(const char *head, size_t count, const char *package)
{
    const struct corpus_options options = usual();
    file_write("left-out", head, count);
    (void)collect_one(&options, "left-out");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(all.issues[0].message, package));
}
#endif

#ifdef HAVE_BZIP2
static size_t bzip2_stream(uint8_t *into, const char *bytes, size_t count)
{
    unsigned made = (unsigned)(count + count / 100 + 600);
    assert_int_equal(BZ2_bzBuffToBuffCompress((char *)into, &made, (char *)(uintptr_t)bytes, (unsigned)count, 1, 0, 0),
                     BZ_OK);
    return made;
}
#endif

static void test_bzip2(void **state)
{
#ifdef HAVE_BZIP2
    compression_check("packed.bz2", bzip2_stream, 10);
    uint8_t packed[700];
    const size_t made = bzip2_stream(packed, "some text", 9);
    packed[12] ^= 1; /* the checksum of the block */
    file_write("packed.bz2", packed, made);
    const struct corpus_options options = usual();
    (void)collect_one(&options, "packed.bz2");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(all.issues[0].message, "the bzip2 data is damaged near byte"));
#else
    left_out("BZh91AY&SY..", 12, "libbz2-dev");
#endif
}

#ifdef HAVE_XZ
static size_t xz_stream(uint8_t *into, const char *bytes, size_t count)
{
    size_t made = 0;
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)bytes, count, into, &made,
                                             lzma_stream_buffer_bound(count)),
                     LZMA_OK);
    return made;
}

/* Zero bytes between streams and at the end, as 'xz' allows them: in fours. */
static void xz_padding_check(void)
{
    const struct corpus_options options = usual();
    uint8_t packed[1000] = {0};
    for (size_t padding = 0; padding < 9; padding++) {
        const size_t one = xz_stream(packed, "one", 3);
        memset(packed + one, 0, padding);
        const size_t two = one + padding + xz_stream(packed + one + padding, "two", 3);
        file_write("padded.xz", packed, two);
        const enum tokmap_status between = collect_one(&options, "padded.xz");
        if (padding % 4 == 0)
            text_is(0, "padded.xz", 0, "onetwo");
        else
            assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
        file_write("padded.xz", packed, one + padding);
        assert_int_equal(collect_one(&options, "padded.xz"), between);
        assert_int_equal(all.issues_count, padding % 4 != 0);
    }
}

/* A header that asks for a dictionary of 4 GiB is refused, and no memory is allocated for it. */
static void xz_memory_check(void)
{
    const struct corpus_options options = usual();
    uint8_t packed[1000];
    const size_t made = xz_stream(packed, "some text", 9);
    uint8_t *block = packed + 12;
    const size_t header = 4 * (size_t)(block[0] + 1);
    uint8_t *filter = memchr(block + 2, 0x21, header - 2);
    assert_non_null(filter);
    filter[2] = 40;
    const uint32_t crc = lzma_crc32(block, header - 4, 0);
    memcpy(block + header - 4, &crc, 4);
    file_write("large.xz", packed, made);
    (void)collect_one(&options, "large.xz");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_LIMIT);
    assert_non_null(strstr(all.issues[0].message, "MiB of memory, and the limit is 144 MiB"));
}
#endif

static void test_xz(void **state)
{
#ifdef HAVE_XZ
    compression_check("packed.xz", xz_stream, 6);
    xz_padding_check();
    xz_memory_check();
    uint8_t packed[700];
    const size_t made = xz_stream(packed, "some text", 9);
    packed[made - 30] ^= 1;
    file_write("packed.xz", packed, made);
    const struct corpus_options options = usual();
    (void)collect_one(&options, "packed.xz");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
#else
    left_out("\xfd"
             "7zXZ\0...",
             9, "liblzma-dev");
#endif
}

#ifdef HAVE_LZ4
static size_t lz4_frame(uint8_t *into, const char *bytes, size_t count)
{
    const LZ4F_preferences_t options = {.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled};
    const size_t made = LZ4F_compressFrame(into, LZ4F_compressFrameBound(count, &options), bytes, count, &options);
    assert_false(LZ4F_isError(made));
    return made;
}
#endif

static void test_lz4(void **state)
{
#ifdef HAVE_LZ4
    compression_check("packed.lz4", lz4_frame, 4);
    uint8_t packed[700];
    size_t made = lz4_frame(packed, "some text", 9);
    packed[made - 1] ^= 1;
    file_write("packed.lz4", packed, made);
    const struct corpus_options options = usual();
    (void)collect_one(&options, "packed.lz4");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_CORRUPT);
    /* Skippable frames, which may also begin a zstd file. */
    memcpy(packed, "\x50\x2a\x4d\x18\x03\0\0\0xyz", 11);
    made = 11 + lz4_frame(packed + 11, "one", 3);
    memcpy(packed + made, "\x5f\x2a\x4d\x18\x00\0\0\0", 8);
    made += 8;
    made += lz4_frame(packed + made, "two", 3);
    file_write("skippable.lz4", packed, made);
    assert_int_equal(collect_one(&options, "skippable.lz4"), TOKMAP_END);
    text_is(0, "skippable.lz4", 0, "onetwo");
#else
    left_out("\x04\x22\x4d\x18....", 8, "liblz4-dev");
#endif
}

/* The lines before the damage become documents, and the rest is accounted for. The number of these lines does not
 * depend on the size of batches. */
static void damage_check(const char *name, const uint8_t *packed, size_t count, enum tokmap_status wanted)
{
    struct corpus_options options = usual();
    const char *const operands[] = {name, "lines.jsonl"};
    struct corpus_counts first = {0};
    file_write(name, packed, count);
    options.skip = true;
    for (options.batch_bytes = 8192; options.batch_bytes < 2000000; options.batch_bytes = options.batch_bytes * 5 / 3) {
        assert_int_equal(collect(&options, operands, 2), TOKMAP_END);
        assert_int_equal(all.issues_count, 1);
        assert_int_equal(all.issues[0].status, wanted);
        assert_int_equal(all.counts.files_skipped, 1);
        assert_int_equal(all.counts.files, 1);
        assert_true(all.documents_count > 4);
        for (size_t i = 0; i + 4 < all.documents_count; i++)
            assert_int_equal(all.documents[i].record, i);
        if (options.batch_bytes == 8192)
            first = all.counts;
        assert_memory_equal(&first, &all.counts, sizeof first);
    }
    /* A bad line before the damage is the first issue, for every size of a batch. */
    for (options.batch_bytes = 8192; options.batch_bytes < 2000000; options.batch_bytes *= 4) {
        options.skip = false;
        options.field = "other";
        (void)collect(&options, operands, 2);
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_INPUT);
        assert_int_equal(all.issues[0].line, 1);
    }
}

static void test_damaged_lines(void **state)
{
    const size_t capacity = 600000;
    char *lines = malloc(capacity);
    uint8_t *packed = malloc(2 * capacity);
    size_t count = 0, made;
    assert_non_null(lines);
    assert_non_null(packed);
    while (count < capacity - 400)
        count += (size_t)sprintf(lines + count, "{\"text\":\"%u %0300u\"}\n", awkward_below(1000000000),
                                 awkward_below(1000000));
    made = zstd_frame(packed, lines, count);
    damage_check("damaged.jsonl.zst", packed, made - 5, TOKMAP_ERROR_TRUNCATED);
    damage_check("damaged.jsonl.zst", packed, made / 2, TOKMAP_ERROR_TRUNCATED);
    memset(packed + made * 3 / 4, 0xff, 40);
    damage_check("damaged.jsonl.zst", packed, made, TOKMAP_ERROR_CORRUPT);
#ifdef HAVE_ISAL
    made = gzip_member(packed, lines, count);
    damage_check("damaged.jsonl.gz", packed, made / 2, TOKMAP_ERROR_TRUNCATED);
    packed[made - 6] ^= 1;
    damage_check("damaged.jsonl.gz", packed, made, TOKMAP_ERROR_CORRUPT);
#endif
#ifdef HAVE_BZIP2
    /* bzip2 shortens runs first, so all of these lines fit in one block, which is damaged as a whole: two streams. */
    made = bzip2_stream(packed, lines, count / 2);
    made += bzip2_stream(packed + made, lines + count / 2, count - count / 2);
    damage_check("damaged.jsonl.bz2", packed, made - 5, TOKMAP_ERROR_TRUNCATED);
    damage_check("damaged.jsonl.bz2", packed, made * 3 / 4, TOKMAP_ERROR_TRUNCATED);
    memset(packed + made * 3 / 4, 0xff, 40);
    damage_check("damaged.jsonl.bz2", packed, made, TOKMAP_ERROR_CORRUPT);
#endif
#ifdef HAVE_XZ
    made = xz_stream(packed, lines, count);
    damage_check("damaged.jsonl.xz", packed, made / 2, TOKMAP_ERROR_TRUNCATED);
    memset(packed + made * 3 / 4, 0xff, 40);
    damage_check("damaged.jsonl.xz", packed, made, TOKMAP_ERROR_CORRUPT);
#endif
#ifdef HAVE_LZ4
    made = lz4_frame(packed, lines, count);
    damage_check("damaged.jsonl.lz4", packed, made - 1, TOKMAP_ERROR_TRUNCATED);
    packed[made - 1] ^= 1;
    damage_check("damaged.jsonl.lz4", packed, made, TOKMAP_ERROR_CORRUPT);
#endif
    file_write_text("refused", "\x7f"
                               "ELF and a long tail to be read with it, or not");
    for (uint64_t batch = 8192; batch < 100000; batch *= 2) {
        struct corpus_options options = usual();
        options.skip = true;
        options.batch_bytes = batch;
        assert_int_equal(collect_one(&options, "refused"), TOKMAP_END);
        assert_int_equal(all.counts.stream_bytes + all.counts.stored_bytes, 0);
    }
    free(lines);
    free(packed);
}

static void test_file_types(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *name;
    } cases[] = {
        {"\x02\x21\x4c\x18....", 8, "lz4 -l"},
        {"]\0\0\x80\0........", 13, "an LZMA file (.lzma), which tokmap cannot read; pipe the output of 'xz -dc'"},
        {"LZIP\x01....", 9, "lzip"},
        {"PK\3\4....", 8, "zip"},
        {"PARE\x16\x02\0\0..", 10, "encrypted Parquet"},
        {"\x7f"
         "ELF....",
         8, "ELF"},
        {"%PDF-1.4\n", 9, "PDF"},
        {"\xff\xfe"
         "a\0",
         4, "UTF-16"},
        {"\x93NUMPY..", 8, "NumPy"},
        {"\x89TMX\r\n\x1a\n", 8, "tokmap"},
    };
    struct corpus_options options = usual();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file_write("typed", cases[i].bytes, cases[i].count);
        (void)collect_one(&options, "typed");
        assert_int_equal(all.issues_count, 1);
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
        assert_non_null(strstr(all.issues[0].message, cases[i].name));
        uint8_t packed[200];
        file_write("typed", packed, zstd_frame(packed, cases[i].bytes, cases[i].count));
        (void)collect_one(&options, "typed");
        assert_int_equal(all.issues_count, 1);
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
    }
    uint8_t packed[200];
    file_write("typed", packed, zstd_frame(packed, "%PDF-1.4\n", 9));
    (void)collect_one(&options, "typed"); /* unpacking would not help */
    assert_non_null(strstr(all.issues[0].message, "convert it to text"));
    static const char *const packed_again[] = {"BZh91AY&SY..", "\x04\x22\x4d\x18........", "\x1f\x8b\x08.........."};
    for (size_t i = 0; i < 3; i++) {
        file_write("typed", packed, zstd_frame(packed, packed_again[i], 12));
        (void)collect_one(&options, "typed"); /* compressed twice */
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
        assert_non_null(strstr(all.issues[0].message, "unpack it first"));
    }
    file_write_text("typed", "BZh is not bzip2, PK is not an archive, PAR1 is not a table");
    assert_int_equal(collect_one(&options, "typed"), TOKMAP_END);
    assert_int_equal(all.documents_count, 1);
}

/* ---- pipes ---- */

static enum tokmap_status collect_pipe(const struct corpus_options *options, const char *command)
{
    FILE *pipe = popen(command, "r");
    char path[64];
    assert_non_null(pipe);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", fileno(pipe));
    const enum tokmap_status status = collect_one(options, path);
    (void)pclose(pipe);
    return status;
}

static void test_pipe(void **state)
{
    struct corpus_options options = usual();
    assert_int_equal(collect_pipe(&options, "cat long"), TOKMAP_END);
    assert_int_equal(all.documents_count, 1);
    assert_true(all.documents[0].bytes >= 300000);
    assert_int_equal(all.largest_batch, 8192);
    assert_int_equal(collect_pipe(&options, "for i in 1 2 3; do printf '{\"text\":'; printf '\"x\"}\\n'; done"),
                     TOKMAP_END);
    assert_int_equal(all.documents_count, 3);
    /* A document that arrives in pieces: its end is detected after its last byte, perhaps in the same batch. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(collect_pipe(&options, i % 2 ? "printf a; sleep 0.01; printf b" : "printf ab"), TOKMAP_END);
        assert_int_equal(all.documents_count, 1);
        assert_int_equal(all.documents[0].bytes, 2);
    }
    /* A document that may have to be skipped is held whole. */
    options.invalid = CORPUS_INVALID_SKIP;
    assert_int_equal(collect_pipe(&options, "cat wrong"), TOKMAP_END);
    assert_int_equal(all.documents_count, 0);
    assert_int_equal(all.issues_count, 1);
    options.document_limit = 1000;
    options.skip = true;
    assert_int_equal(collect_pipe(&options, "cat long"), TOKMAP_END);
    assert_int_equal(all.documents_count, 0);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_LIMIT);
#ifdef HAVE_ISAL
    uint8_t packed[100];
    const size_t made = gzip_member(packed, "some text", 9);
    packed[3] = 0x80; /* the last test of gzip, with bytes that come one by one */
    file_write("slow.gz", packed, made);
    (void)collect_pipe(&options, "for i in 1 2 3 4 5 6; do head -c 1; sleep 0.002; done <slow.gz; tail -c +7 slow.gz");
    assert_int_equal(all.issues_count, 1);
    assert_int_equal(all.issues[0].status, TOKMAP_ERROR_UNSUPPORTED);
#endif
}

/* ---- inputs ---- */

static void paths_are(const char *const *paths, size_t count)
{
    assert_int_equal(all.documents_count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(all.documents[i].path, paths[i]);
}

static void test_inputs(void **state)
{
    static const char *const order[] = {"tree/.hidden", "tree/a-b", "tree/a/x", "tree/a/y/z", "tree/a0", "tree/b"};
    assert_int_equal(mkdir("tree", 0777) | mkdir("tree/a", 0777) | mkdir("tree/a/y", 0777) | mkdir("hollow", 0777) |
                         mkdir("hollow/inside", 0777),
                     0);
    for (size_t i = 0; i < 6; i++)
        file_write_text(order[i], order[i]);
    assert_int_equal(symlink("b", "tree/link") | symlink("../tree", "tree/loop") | symlink("tree", "named"), 0);
    file_write_text("tree/[b]", "odd");
    assert_int_equal(remove("tree/[b]"), 0);
    struct corpus_options options = usual();
    assert_int_equal(collect_one(&options, "tree"), TOKMAP_END);
    paths_are(order + 1, 5);
    assert_int_equal(all.counts.not_read.files_hidden, 1);
    assert_int_equal(all.counts.not_read.links, 2);
    options.select.hidden = true;
    assert_int_equal(collect_one(&options, "tree"), TOKMAP_END);
    paths_are(order, 6);
    assert_int_equal(all.counts.not_read.files_hidden, 0);
    assert_int_equal(collect_one(&options, "tree/"), TOKMAP_END);
    paths_are(order, 6);
    assert_int_equal(collect_one(&options, "tree/a*"), TOKMAP_END);
    /* A folder among the matches is walked at its place in their order. */
    static const char *const matches[] = {"tree/a/x", "tree/a/y/z", "tree/a-b", "tree/a0"};
    paths_are(matches, 4);
    assert_int_equal(collect_one(&options, "t?ee/*/[xy]"), TOKMAP_END);
    static const char *const deeper[] = {"tree/a/x", "tree/a/y/z"};
    assert_int_equal(all.documents_count >= 2, true);
    assert_string_equal(all.documents[0].path, deeper[0]);
    assert_string_equal(all.documents[1].path, deeper[1]);
    static const char *const links[] = {"named/.hidden", "named/a-b", "named/a/x",
                                        "named/a/y/z",   "named/a0",  "named/b"};
    assert_int_equal(collect_one(&options, "named"), TOKMAP_END);
    paths_are(links, 6);
}

static bool stop_at_once(void *user)
{
    (void)user;
    return true;
}

/* The search for the matches of a pattern can take long, so that it must end when the work is interrupted. */
static void test_pattern_stopped(void **state)
{
    static const char *const patterns[] = {"./**", "./*/*"};
    struct corpus_options options = usual();
    options.stop = stop_at_once;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        assert_int_equal(collect_one(&options, patterns[i]), TOKMAP_ERROR_INTERRUPTED);
        assert_int_equal(corpus_size(&patterns[i], 1, &options.select, stop_at_once, NULL), 0);
    }
}

static void test_missing_inputs(void **state)
{
    static const char *const wrong[] = {"nowhere", "hollow", "no*match", "tree/b/x", ""};
    struct corpus_options options = usual();
    for (size_t i = 0; i < 5; i++) {
        const char *const operands[] = {"three", wrong[i], "three"};
        options.skip = false;
        (void)collect(&options, operands, 3);
        assert_int_equal(all.issues_count, 1);
        assert_int_equal(all.issues[0].status, TOKMAP_ERROR_NOT_FOUND);
        assert_int_equal(all.documents_count, 1);
        options.skip = true;
        assert_int_equal(collect(&options, operands, 3), TOKMAP_END);
        assert_int_equal(all.documents_count, 2);
        assert_int_equal(all.counts.files_skipped, 1);
    }
}

/* If a file grows or is modified between two batches, that is reported as an issue. */
static void change_check(bool append)
{
    struct corpus_options options = usual();
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error;
    const char *operand = "changing.jsonl";
    FILE *file = fopen(operand, "wb");
    assert_non_null(file);
    for (int i = 0; i < 3000; i++)
        (void)fputs("{\"text\":\"x\"}\n", file);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(corpus_open(&corpus, &operand, 1, &options, &error), TOKMAP_OK);
    bool reported = false;
    for (int round = 0; !corpus_next(corpus, &batch, &error); round++) {
        if (!round && append)
            assert_true(fputs("{\"text\":\"y\"}\n", file) >= 0 && !fflush(file));
        else if (!round)
            assert_int_equal(futimens(fileno(file), (struct timespec[2]){{1, 0}, {1, 0}}), 0);
        for (uint64_t i = 0; i < batch.issue_count; i++)
            reported |= corpus_issue_to_error(&batch.issues[i], &options, &error) == TOKMAP_ERROR_MISMATCH;
    }
    assert_true(reported);
    assert_int_equal(fclose(file), 0);
    corpus_batch_free(&batch);
    corpus_close(corpus);
}

static void test_changed(void **state)
{
    change_check(true);
    change_check(false);
}

static void test_excluded(void **state)
{
    const struct corpus_options options = usual();
    struct corpus *corpus;
    struct corpus_batch batch = {0};
    struct tokmap_error error;
    const char *operand = "three";
    assert_int_equal(corpus_open(&corpus, &operand, 1, &options, &error), TOKMAP_OK);
    assert_int_equal(corpus_exclude(corpus, "./three", &error), TOKMAP_OK);
    assert_int_equal(corpus_exclude(corpus, "not there", &error), TOKMAP_OK);
    assert_int_equal(corpus_next(corpus, &batch, &error), TOKMAP_OK);
    assert_int_equal(batch.issue_count, 1);
    assert_int_equal(corpus_issue_to_error(&batch.issues[0], &options, &error), TOKMAP_ERROR_ARGUMENT);
    corpus_batch_free(&batch);
    corpus_close(corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_document_limit),
        cmocka_unit_test(test_invalid_text),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_record_limit),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_zstd),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_bzip2),
        cmocka_unit_test(test_xz),
        cmocka_unit_test(test_lz4),
        cmocka_unit_test(test_damaged_lines),
        cmocka_unit_test(test_file_types),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_missing_inputs),
        cmocka_unit_test(test_pattern_stopped),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_format_of_long_line),
        cmocka_unit_test(test_excluded),
    };
    const int failed = cmocka_run_group_tests_name("corpus", tests, folder_make, folder_remove);
    collected_free();
    return failed;
}
