/* SPDX-License-Identifier: MIT */
/* ci: nonroot tsan */
/*
 * test_dataset.c - every way to name a dataset, and every answer of the dataset functions compared with plain arrays.
 * The value of token i is computed from i, so a view or a copy of the wrong tokens is noticed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

/* ---- a generated dataset and its description in plain arrays ---- */

enum { DOCUMENTS_MAX = 4000 };

struct made {
    uint32_t width;
    uint64_t tokens, documents, shards;
    uint64_t first[DOCUMENTS_MAX], end[DOCUMENTS_MAX]; /* of each document, as token numbers of the dataset */
    uint64_t shard[DOCUMENTS_MAX], in_shard[DOCUMENTS_MAX];
    uint64_t shard_end[64];
};

/* Writes shards of very different sizes: empty, of one token, shorter than most windows, and of several blocks. */
static void make_dataset(struct made *made, const char *name, uint32_t width, uint64_t shards, uint64_t seed)
{
    memset(made, 0, sizeof *made);
    made->width = width;
    made->shards = shards;
    assert_int_equal(os_make_folder(in_folder(folder, name)), 0);
    uint64_t state = seed;
    for (uint64_t s = 0; s < shards; s++) {
        static const uint64_t sizes[] = {0, 1, 50, 3000, 700000};
        uint64_t tokens = random_below(&state, sizes[random_below(&state, 5)] + 1), count = 0, at = 0;
        uint64_t ends[600], mean = tokens / (1 + random_below(&state, 300)) + 1;
        while (at < tokens && count < 598) {
            if (random_below(&state, 4) == 0)
                ends[count++] = at; /* an empty document */
            at += min64(tokens - at, random_below(&state, 2 * mean) + 1);
            ends[count++] = at;
        }
        if (at < tokens)
            ends[count++] = at = tokens;
        if (random_below(&state, 3) == 0)
            ends[count++] = at;
        for (uint64_t d = 0; d < count; d++) {
            assert_true(made->documents < DOCUMENTS_MAX);
            made->first[made->documents] = made->tokens + (d ? ends[d - 1] : 0);
            made->end[made->documents] = made->tokens + ends[d];
            made->shard[made->documents] = s;
            made->in_shard[made->documents++] = d;
        }
        char shard[80];
        (void)snprintf(shard, sizeof shard, "%s/%03d", name, (int)s);
        shard_make(in_folder(folder, shard), width, made->tokens, ends, count);
        made->tokens += at;
        made->shard_end[s] = made->tokens;
    }
}

static void check_tokens(const void *tokens, uint64_t first, uint64_t count, uint32_t width)
{
    const uint8_t *bytes = tokens;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t found = width == 2 ? load16(bytes + 2 * i) : load32(bytes + 4 * i);
        if (found != token_value(first + i, width))
            fail_msg("token %llu has the wrong value", (unsigned long long)(first + i));
    }
}

static void check_range(const struct tokmap_dataset *dataset, const struct made *made, uint64_t first, uint64_t count)
{
    struct tokmap_span spans[64];
    size_t used;
    MUST(tokmap_dataset_view(dataset, first, count, spans, 64, &used, &error));
    uint64_t at = first;
    size_t expected = 0;
    for (uint64_t s = 0; s < made->shards; s++) {
        uint64_t begin = s ? made->shard_end[s - 1] : 0;
        expected += max64(begin, first) < min64(made->shard_end[s], first + count);
    }
    assert_int_equal(used, expected);
    for (size_t i = 0; i < used; i++) {
        check_tokens(spans[i].tokens, at, spans[i].count, made->width);
        at += spans[i].count;
    }
    assert_int_equal(at, first + count);
    uint8_t *copy = malloc(count * made->width + 1);
    assert_non_null(copy);
    copy[count * made->width] = 0xa5;
    MUST(tokmap_dataset_copy(dataset, first, count, copy, &error));
    check_tokens(copy, first, count, made->width);
    assert_int_equal(copy[count * made->width], 0xa5);
    free(copy);
    if (used > 1) {
        size_t needed = 0;
        assert_int_equal(tokmap_dataset_view(dataset, first, count, spans, used - 1, &needed, &error),
                         TOKMAP_ERROR_LIMIT);
        assert_int_equal(needed, expected);
    }
}

static void check_documents(const struct tokmap_dataset *dataset, const struct made *made)
{
    for (uint64_t d = 0; d < made->documents; d++) {
        struct tokmap_document document;
        MUST(tokmap_dataset_document(dataset, d, &document, &error));
        assert_int_equal(document.number, d);
        assert_int_equal(document.first_token, made->first[d]);
        assert_int_equal(document.tokens, made->end[d] - made->first[d]);
        assert_int_equal(document.shard, made->shard[d]);
        struct tokmap_origin origin;
        MUST(tokmap_dataset_origin(dataset, d, &origin, &error));
        char path[40];
        (void)snprintf(path, sizeof path, "input-%llu", (unsigned long long)(made->in_shard[d] / 3));
        assert_int_equal(origin.path_bytes, strlen(path));
        assert_memory_equal(origin.path, path, strlen(path));
        assert_int_equal(origin.record, made->in_shard[d] % 3);
        uint64_t places[] = {made->first[d], made->end[d] - 1, made->first[d] + (made->end[d] - made->first[d]) / 2};
        for (int i = 0; i < 3 && made->first[d] < made->end[d]; i++) {
            MUST(tokmap_dataset_document_at(dataset, places[i], &document, &error));
            assert_int_equal(document.number, d);
            assert_int_equal(document.first_token, made->first[d]);
        }
    }
    struct tokmap_document document;
    struct tokmap_origin origin;
    assert_int_equal(tokmap_dataset_document(dataset, made->documents, &document, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_document(dataset, UINT64_MAX, &document, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_document_at(dataset, made->tokens, &document, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_origin(dataset, made->documents, &origin, &error), TOKMAP_ERROR_RANGE);
}

static void check_ends(const struct tokmap_dataset *dataset, const struct made *made, uint64_t first, uint64_t count)
{
    static uint64_t expected[DOCUMENTS_MAX], ends[DOCUMENTS_MAX];
    uint64_t distances = 0, start = 0, used, found_start;
    for (uint64_t d = 0; d < made->documents; d++) {
        if (made->first[d] <= first && first < made->end[d])
            start = made->first[d];
        if (made->end[d] > first && made->end[d] <= first + count &&
            (!distances || expected[distances - 1] != made->end[d] - first))
            expected[distances++] = made->end[d] - first;
    }
    if (first == made->tokens)
        start = first;
    MUST(dataset_ends(dataset, first, count, ends, DOCUMENTS_MAX, &used, &found_start, &error));
    assert_int_equal(used, distances);
    assert_int_equal(found_start, start);
    assert_true(!used || !memcmp(ends, expected, used * sizeof *ends));
    if (distances) {
        ends[distances - 1] = 77;
        assert_int_equal(dataset_ends(dataset, first, count, ends, distances - 1, &used, &found_start, &error),
                         TOKMAP_ERROR_LIMIT);
        assert_true(used >= distances);
        assert_int_equal(ends[distances - 1], 77);
    }
}

static void answers_equal_those_of_plain_arrays(void **unused)
{
    (void)unused;
    static struct made made;
    for (uint64_t round = 0; round < 12; round++) {
        uint64_t state = 100 + round;
        uint32_t width = round % 2 ? 4 : 2;
        char name[40];
        (void)snprintf(name, sizeof name, "made%d", (int)round);
        make_dataset(&made, name, width, 1 + random_below(&state, 14), round);
        struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
        options.reading = round % 3 ? TOKMAP_READ_MAPPED : TOKMAP_READ_PREAD;
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, name), &options, &error));
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
        assert_int_equal(info.tokens, made.tokens);
        assert_int_equal(info.documents, made.documents);
        assert_int_equal(info.shards, made.shards);
        assert_int_equal(info.width, width);
        assert_int_equal(info.reading, options.reading);
        assert_int_equal(dataset_reading(dataset), options.reading);
        check_documents(dataset, &made);
        check_range(dataset, &made, 0, made.tokens);
        for (int i = 0; i < 300; i++) {
            uint64_t first = random_below(&state, made.tokens + 1);
            uint64_t count =
                random_below(&state, i % 3 ? min64(made.tokens - first, 5000) + 1 : made.tokens - first + 1);
            check_range(dataset, &made, first, count);
            check_ends(dataset, &made, first, count);
            if (first < made.tokens) {
                uint64_t hint = random_below(&state, made.shards + 2), shard = dataset_shard_of(dataset, first, hint);
                assert_true(first < made.shard_end[shard] && (!shard || first >= made.shard_end[shard - 1]));
            }
        }
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        tokmap_dataset_close(dataset);
    }
}

static void ranges_outside_the_dataset_are_refused(void **unused)
{
    (void)unused;
    uint64_t ends[] = {10, 100};
    shard_make(in_folder(folder, "range"), 2, 0, ends, 2);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "range"), NULL, &error));
    struct tokmap_span span;
    size_t used;
    uint64_t used_ends, start;
    uint8_t out[4];
    static const uint64_t wrong[][2] = {{0, 101}, {100, 1}, {101, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {99, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tokmap_dataset_view(dataset, wrong[i][0], wrong[i][1], &span, 1, &used, &error),
                         TOKMAP_ERROR_RANGE);
        assert_int_equal(used, 0);
        assert_int_equal(tokmap_dataset_copy(dataset, wrong[i][0], wrong[i][1], out, &error), TOKMAP_ERROR_RANGE);
        assert_int_equal(dataset_ends(dataset, wrong[i][0], wrong[i][1], ends, 2, &used_ends, &start, &error),
                         TOKMAP_ERROR_RANGE);
    }
    MUST(tokmap_dataset_view(dataset, 100, 0, NULL, 0, &used, &error));
    MUST(tokmap_dataset_copy(dataset, 100, 0, NULL, &error));
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    assert_int_equal(tokmap_dataset_shard(dataset, 1, &shard, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_view(NULL, 0, 0, NULL, 0, &used, NULL), TOKMAP_ERROR_ARGUMENT);
    tokmap_dataset_close(dataset);
    tokmap_dataset_close(NULL);
}

/* ---- names ---- */

static void expect_open(const char *name, enum tokmap_status expected, const char *path_end, uint32_t line)
{
    struct tokmap_dataset *dataset = (void *)folder;
    memset(&error, 0, sizeof error);
    enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, &error);
    if (status != expected)
        fail_msg("opening %s returned %s: %s", name, tokmap_status_name(status), status ? error.message : "");
    if (!status) {
        tokmap_dataset_close(dataset);
        return;
    }
    assert_null(dataset);
    assert_int_equal(error.status, expected);
    assert_int_equal(error.line, line);
    assert_true(strlen(error.message) > 10);
    size_t path = strlen(error.path), end = strlen(path_end);
    if (path < end || strcmp(error.path + path - end, path_end))
        fail_msg("opening %s: the error names the path %s", name, error.path);
}

static void check_shard_order(const struct tokmap_dataset *dataset, const char *expected)
{
    char names[400] = "";
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    for (uint64_t s = 0; s < info.shards; s++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        MUST(tokmap_dataset_shard(dataset, s, &shard, &error));
        assert_int_equal(shard.about_bytes, 21);
        assert_memory_equal(shard.about, "{\"made\": \"by a test\"}", 21);
        strcat(names, shard.index_path + strlen(folder) + 1);
        strcat(names, " ");
    }
    assert_string_equal(names, expected);
}

static void a_prefix_or_either_file_names_a_shard(void **unused)
{
    (void)unused;
    uint64_t ends[] = {5};
    shard_make(in_folder(folder, "one"), 2, 0, ends, 1);
    expect_open(in_folder(folder, "one"), TOKMAP_OK, "", 0);
    expect_open(in_folder(folder, "one.tmx"), TOKMAP_OK, "", 0);
    expect_open(in_folder(folder, "one.bin"), TOKMAP_OK, "", 0);
    assert_int_equal(chdir(folder), 0);
    expect_open("one", TOKMAP_OK, "", 0);
    expect_open("one.bin", TOKMAP_OK, "", 0);
    assert_int_equal(chdir("/"), 0);
    expect_open(in_folder(folder, "two"), TOKMAP_ERROR_NOT_FOUND, "/two", 0);
    expect_open(in_folder(folder, "two.bin"), TOKMAP_ERROR_NOT_FOUND, "/two.tmx", 0);
    expect_open(in_folder(folder, "one/x"), TOKMAP_ERROR_NOT_FOUND, "/one/x", 0);
    file_write(in_folder(folder, "bare.bin"), "abcd", 4);
    expect_open(in_folder(folder, "bare.bin"), TOKMAP_ERROR_NOT_FOUND, "/bare.tmx", 0);
    expect_open(in_folder(folder, "bare"), TOKMAP_ERROR_NOT_FOUND, "/bare", 0);
    file_write(in_folder(folder, "tokens.npy"), "abcd", 4);
    expect_open(in_folder(folder, "tokens.npy"), TOKMAP_ERROR_FORMAT, "/tokens.npy", 0);
    file_copy(in_folder(folder, "one.tmx"), in_folder(folder, "half.tmx"));
    expect_open(in_folder(folder, "half"), TOKMAP_ERROR_NOT_FOUND, "/half.bin", 0);
    file_copy(in_folder(folder, "one.tmx"), in_folder(folder, "part.tmx.partial"));
    expect_open(in_folder(folder, "part"), TOKMAP_ERROR_NOT_FOUND, "/part", 0);
    expect_open(in_folder(folder, "part.tmx.partial"), TOKMAP_ERROR_FORMAT, "/part.tmx.partial", 0);
    expect_open(in_folder(folder, "one#docs=0..98%"), TOKMAP_ERROR_RANGE, "/one#docs=0..98%", 0); /* of 1 document */
    expect_open("/dev/null", TOKMAP_ERROR_FORMAT, "/dev/null", 0);
    struct tokmap_dataset *dataset;
    assert_int_equal(tokmap_dataset_open(&dataset, "", NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_dataset_open(&dataset, NULL, NULL, NULL), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_dataset_open(NULL, "x", NULL, NULL), TOKMAP_ERROR_ARGUMENT);
}

static void a_folder_names_all_shards_below_it_in_byte_order(void **unused)
{
    (void)unused;
    static const char *const folders[] = {"d", "d/a", "d/a/deep", "d/Z", "d/empty", "elsewhere"};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(os_make_folder(in_folder(folder, folders[i])), 0);
    static const char *const names[] = {"d/b",   "d/a/2", "d/a/10",     "d/a/deep/x",
                                        "d/Z/z", "d/a-",  "d/\xc3\xa4", "elsewhere/e"};
    uint64_t ends[] = {3};
    for (size_t i = 0; i < 8; i++)
        shard_make(in_folder(folder, names[i]), 2, 0, ends, 1);
    file_write(in_folder(folder, "d/a/notes.txt"), "x", 1);
    file_write(in_folder(folder, "d/a/3.tmx.partial"), "x", 1);
    assert_int_equal(symlink(in_folder(folder, "elsewhere"), in_folder(folder, "d/link")), 0);
    assert_int_equal(symlink(in_folder(folder, "d"), in_folder(folder, "d/a/loop.tmx")), 0);
    struct tokmap_dataset *dataset;
    static const char *const spellings[] = {"d", "d/", "d//"};
    for (int i = 0; i < 3; i++) {
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, spellings[i]), NULL, &error));
        check_shard_order(dataset, i < 2 ? "d/Z/z.tmx d/a-.tmx d/a/10.tmx d/a/2.tmx d/a/deep/x.tmx d/b.tmx "
                                           "d/\xc3\xa4.tmx "
                                         : "d//Z/z.tmx d//a-.tmx d//a/10.tmx d//a/2.tmx d//a/deep/x.tmx d//b.tmx "
                                           "d//\xc3\xa4.tmx ");
        tokmap_dataset_close(dataset);
    }
    expect_open(in_folder(folder, "d/empty"), TOKMAP_ERROR_NOT_FOUND, "/d/empty", 0);
    file_write(in_folder(folder, "d/a/broken.tmx"), "x", 1);
    expect_open(in_folder(folder, "d"), TOKMAP_ERROR_FORMAT, "/d/a/broken.tmx", 0);
}

static void a_manifest_names_one_shard_per_line(void **unused)
{
    (void)unused;
    uint64_t ends[] = {3};
    assert_int_equal(os_make_folder(in_folder(folder, "m")), 0);
    assert_int_equal(os_make_folder(in_folder(folder, "m/s p")), 0);
    shard_make(in_folder(folder, "m/s p/a b"), 2, 0, ends, 1);
    shard_make(in_folder(folder, "m/c"), 2, 0, ends, 1);
    char text[1500];
    (void)snprintf(text, sizeof text, "tokmap-shards 1\n# a comment\n\nc\n  s p/a b.tmx \t\r\nc.bin\n  # more\n%s/m/c",
                   folder);
    file_write_text(in_folder(folder, "m/list"), text);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "m/list"), NULL, &error));
    char expected[200];
    (void)snprintf(expected, sizeof expected, "m/c.tmx m/s p/a b.tmx m/c.tmx m/c.tmx ");
    check_shard_order(dataset, expected);
    tokmap_dataset_close(dataset);
    assert_int_equal(chdir(in_folder(folder, "m")), 0);
    expect_open("list", TOKMAP_OK, "", 0);
    assert_int_equal(chdir("/"), 0);
    file_write_text(in_folder(folder, "m/missing"), "tokmap-shards 1\r\nc\n\nnothing\n");
    expect_open(in_folder(folder, "m/missing"), TOKMAP_ERROR_NOT_FOUND, "/m/missing", 4);
    file_write_text(in_folder(folder, "m/newer"), "tokmap-shards 2\nc\n");
    expect_open(in_folder(folder, "m/newer"), TOKMAP_ERROR_VERSION, "/m/newer", 1);
    file_write_text(in_folder(folder, "m/other"), "tokmap-shard 1\nc\n");
    expect_open(in_folder(folder, "m/other"), TOKMAP_ERROR_FORMAT, "/m/other", 0);
    file_write_text(in_folder(folder, "m/none"), "tokmap-shards 1\n# c\n");
    expect_open(in_folder(folder, "m/none"), TOKMAP_ERROR_NOT_FOUND, "/m/none", 2);
    file_write_text(in_folder(folder, "m/empty"), "");
    expect_open(in_folder(folder, "m/empty"), TOKMAP_ERROR_FORMAT, "/m/empty", 0);
    file_write(in_folder(folder, "m/zero"), "tokmap-shards 1\nc\nc\0d\n", 22);
    expect_open(in_folder(folder, "m/zero"), TOKMAP_ERROR_FORMAT, "/m/zero", 3);
}

/* ---- agreement of shards, identity ---- */

static void make_with_tokenizer(const char *name, uint32_t width, uint8_t tokenizer, uint64_t eod)
{
    struct shard_writer_options options = plain_options(width);
    memset(options.tokenizer, tokenizer, 16);
    options.eod_id = eod;
    options.vocabulary = 1000 + tokenizer;
    struct shard_writer *writer;
    uint8_t tokens[8] = {7, 0, 0, 0, 9};
    uint64_t end = 8 / width;
    MUST(shard_writer_open(&writer, in_folder(folder, name), &options, &error));
    MUST(shard_writer_add(writer, tokens, end, &end, 1, 9, &error));
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
}

static void shards_must_agree(void **unused)
{
    (void)unused;
    make_with_tokenizer("narrow", 2, 0, TOKMAP_NO_ID);
    make_with_tokenizer("wide", 4, 0, TOKMAP_NO_ID);
    make_with_tokenizer("first", 2, 1, 5);
    make_with_tokenizer("again", 2, 1, 5);
    make_with_tokenizer("second", 2, 2, 5);
    make_with_tokenizer("other", 2, 1, 6);
    static const struct {
        const char *text;
        enum tokmap_status status;
        const char *path, *named; /* named: in the message of the failure, or in the warning */
        const char *also;
    } cases[] = {
        {"tokmap-shards 1\nnarrow\nwide\n", TOKMAP_ERROR_MISMATCH, "/wide.tmx", "/narrow.tmx", ""},
        {"tokmap-shards 1\nnarrow\nfirst\nnarrow\nsecond", TOKMAP_ERROR_MISMATCH, "/second.tmx", "/first.tmx", ""},
        {"tokmap-shards 1\nfirst\nagain\nnarrow\n", TOKMAP_OK, "", "/narrow.tmx with no token; pack all shards",
         "the tokenizer of "},
        {"tokmap-shards 1\nfirst\nother\n", TOKMAP_OK, "", "/other.tmx with token 6;", "/first.tmx with token 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file_write_text(in_folder(folder, "pair"), cases[i].text);
        expect_open(in_folder(folder, "pair"), cases[i].status, cases[i].path, 0);
        struct tokmap_dataset *dataset;
        if (tokmap_dataset_open(&dataset, in_folder(folder, "pair"), NULL, &error)) {
            assert_non_null(strstr(error.message, cases[i].named));
            continue;
        }
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
        assert_int_equal(info.vocabulary, 1001);
        assert_int_equal(info.largest_id, 9);
        assert_true(info.eod_id == TOKMAP_NO_ID); /* because the shards disagree */
        assert_int_equal(info.tokenizer[0], 1);
        assert_non_null(info.warning);
        assert_non_null(strstr(info.warning, cases[i].named));
        assert_non_null(strstr(info.warning, cases[i].also));
        tokmap_dataset_close(dataset);
    }
    static const char *const agreeing[] = {"tokmap-shards 1\nfirst\nagain\nfirst\n",
                                           "tokmap-shards 1\nnarrow\nnarrow\n"};
    for (size_t i = 0; i < 2; i++) {
        struct tokmap_dataset *dataset;
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        file_write_text(in_folder(folder, "pair"), agreeing[i]);
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, "pair"), NULL, &error));
        assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
        assert_null(info.warning);
        tokmap_dataset_close(dataset);
    }
}

static void identity_depends_on_content_alone(void **unused)
{
    (void)unused;
    uint64_t ends[] = {3, 9}, cut[] = {4, 9};
    shard_make(in_folder(folder, "x"), 2, 0, ends, 2);
    shard_make(in_folder(folder, "x-again"), 2, 0, ends, 2);
    shard_make(in_folder(folder, "x-cut"), 2, 0, cut, 2);
    shard_make(in_folder(folder, "x-moved"), 2, 1, ends, 2);
    shard_make(in_folder(folder, "x-wide"), 4, 0, ends, 2);
    file_write_text(in_folder(folder, "xx"), "tokmap-shards 1\nx\nx-cut\n");
    file_write_text(in_folder(folder, "xy"), "tokmap-shards 1\nx-cut\nx\n");
    file_write_text(in_folder(folder, "xz"), "tokmap-shards 1\nx\n");
    static const char *const names[] = {"x", "x-again", "xz", "x-cut", "x-moved", "x-wide", "xx", "xy"};
    uint8_t ids[8][16];
    for (int i = 0; i < 8; i++) {
        struct tokmap_dataset *dataset;
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, names[i]), NULL, &error));
        assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
        memcpy(ids[i], info.content, 16);
        tokmap_dataset_close(dataset);
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < i; j++)
            assert_int_equal(!memcmp(ids[i], ids[j], 16), i < 3);
    uint8_t both[32], expected[16];
    memcpy(both, ids[0], 16);
    memcpy(both + 16, ids[3], 16);
    hash128_store(hash128(both, 32), expected);
    assert_memory_equal(ids[6], expected, 16);
}

/* ---- older callers, threads, files that change while a dataset is open ---- */

static void structs_of_older_callers_are_accepted(void **unused)
{
    (void)unused;
    uint64_t ends[] = {3};
    shard_make(in_folder(folder, "old"), 2, 0, ends, 1);
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    options.size = sizeof(size_t);
    options.reading = (enum tokmap_reading)9; /* not read, because the struct ends before this field */
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "old"), &options, &error));
    struct tokmap_dataset_info info;
    memset(&info, 0xee, sizeof info);
    info.size = offsetof(struct tokmap_dataset_info, documents);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_int_equal(info.tokens, 3);
    assert_true(info.documents == 0xeeeeeeeeeeeeeeee);
    info.size = sizeof info + 1;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_ERROR_ARGUMENT);
    info.size = 0;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_ERROR_ARGUMENT);
    tokmap_dataset_close(dataset);
    options.size = sizeof options;
    options.reading = (enum tokmap_reading)(TOKMAP_READ_PREAD + 1);
    assert_int_equal(tokmap_dataset_open(&dataset, in_folder(folder, "old"), &options, NULL), TOKMAP_ERROR_ARGUMENT);
    options.reading = (enum tokmap_reading)9;
    assert_int_equal(tokmap_dataset_open(&dataset, in_folder(folder, "old"), &options, NULL), TOKMAP_ERROR_ARGUMENT);
    options.size++;
    assert_int_equal(tokmap_dataset_open(&dataset, in_folder(folder, "old"), &options, NULL), TOKMAP_ERROR_ARGUMENT);
}

struct viewer {
    const struct tokmap_dataset *dataset;
    uint64_t tokens, seed, wrong;
};

static void view_many(void *user)
{
    struct viewer *viewer = user;
    for (int i = 0; i < 2000; i++) {
        uint64_t first = random_below(&viewer->seed, viewer->tokens - 20), at = first;
        struct tokmap_span spans[20];
        size_t used = 0;
        if (tokmap_dataset_view(viewer->dataset, first, 20, spans, 20, &used, NULL))
            viewer->wrong++;
        for (size_t s = 0; s < used; s++)
            for (uint64_t t = 0; t < spans[s].count; t++)
                viewer->wrong += load16((const uint8_t *)spans[s].tokens + 2 * t) != token_value(at++, 2);
    }
}

static void threads_may_share_a_dataset(void **unused)
{
    (void)unused;
    uint64_t base = 0;
    assert_int_equal(os_make_folder(in_folder(folder, "t")), 0);
    for (int s = 0; s < 10; s++) {
        char name[20];
        uint64_t ends[] = {7, 90};
        (void)snprintf(name, sizeof name, "t/%d", s);
        shard_make(in_folder(folder, name), 2, base, ends, 2);
        base += 90;
    }
    for (int round = 0; round < 10; round++) {
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, "t"), NULL, &error));
        struct viewer viewers[4];
        struct os_thread *threads[4];
        for (int i = 0; i < 4; i++) {
            viewers[i] = (struct viewer){dataset, base, (uint64_t)(round * 4 + i), 0};
            assert_int_equal(os_thread_start(&threads[i], "viewer", view_many, &viewers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            os_thread_join(threads[i]);
            assert_int_equal(viewers[i].wrong, 0);
        }
        tokmap_dataset_close(dataset);
    }
}

static void copy_returns_a_status_for_a_truncated_file(void **unused)
{
    (void)unused;
    uint64_t ends[] = {10000};
    shard_make(in_folder(folder, "cut"), 2, 0, ends, 1);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "cut"), NULL, &error));
    assert_int_equal(truncate(in_folder(folder, "cut.bin"), 8001), 0);
    static uint8_t out[20000];
    MUST(tokmap_dataset_copy(dataset, 0, 4000, out, &error));
    assert_int_equal(tokmap_dataset_copy(dataset, 3999, 10, out, &error), TOKMAP_ERROR_TRUNCATED);
    assert_int_equal(error.offset, 8001);
    tokmap_dataset_close(dataset);
    expect_open(in_folder(folder, "cut"), TOKMAP_ERROR_TRUNCATED, "/cut.bin", 0);
}

static void an_open_dataset_keeps_reading_a_replaced_shard(void **unused)
{
    (void)unused;
    uint64_t ends[] = {1000};
    shard_make(in_folder(folder, "swap"), 2, 0, ends, 1);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "swap"), NULL, &error));
    ends[0] = 10;
    shard_make(in_folder(folder, "swap"), 2, 5, ends, 1);
    static uint8_t out[2000];
    MUST(tokmap_dataset_copy(dataset, 0, 1000, out, &error));
    check_tokens(out, 0, 1000, 2);
    struct tokmap_span span;
    size_t used;
    MUST(tokmap_dataset_view(dataset, 900, 100, &span, 1, &used, &error));
    check_tokens(span.tokens, 900, 100, 2);
    struct tokmap_document document;
    MUST(tokmap_dataset_document(dataset, 0, &document, &error));
    assert_int_equal(document.tokens, 1000);
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    tokmap_dataset_close(dataset);
}

/* ---- a shard replaced while it is being opened ---- */

/* Returns true if the stopped child is about to open a file whose name ends in .bin. */
static bool opens_tokens(pid_t child)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info) <= 0)
        return false;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != SYS_openat)
        return false;
    char path[1024] = "";
    for (size_t at = 0; at + sizeof(long) < sizeof path && !memchr(path, 0, at); at += sizeof(long)) {
        long word = ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)(info.entry.args[1] + at), NULL);
        memcpy(path + at, &word, sizeof word);
    }
    size_t length = strnlen(path, sizeof path);
    return length > 4 && length < sizeof path && !strcmp(path + length - 4, ".bin");
}

/* Runs in the child, which its parent traces: opens the dataset and exits with its number of tokens, 0 after an error,
 * or 255 if a process cannot be traced. */
static void open_traced(const char *prefix)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(255);
    (void)raise(SIGSTOP);
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    if (tokmap_dataset_open(&dataset, prefix, NULL, &error) || tokmap_dataset_info(dataset, &info))
        _exit(0);
    _exit((int)info.tokens);
}

/* A writer replaces a shard after the reader has opened the index and before it opens the tokens. The reader must
 * notice that the two files do not belong together, begin again, and open the new pair. */
static void an_index_is_never_paired_with_newer_tokens(void **unused)
{
    (void)unused;
    uint64_t old = 100, new = 101;
    char prefix[600];
    (void)snprintf(prefix, sizeof prefix, "%s/pair", folder);
    shard_make(prefix, 2, 0, &old, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        open_traced(prefix);
    int result, replaced = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (WIFSTOPPED(result) && (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD) ||
                               ptrace(PTRACE_SYSCALL, child, NULL, NULL)))
        (void)kill(child, SIGKILL);
    while (WIFSTOPPED(result)) {
        assert_int_equal(waitpid(child, &result, 0), child);
        if (!WIFSTOPPED(result))
            break;
        if (!replaced && opens_tokens(child)) {
            shard_make(prefix, 2, 0, &new, 1);
            replaced = 1;
        }
        (void)ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    }
    if (!replaced) {
        printf("this system does not let a process trace its child\n");
        skip();
    }
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 101);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_those_of_plain_arrays),
        cmocka_unit_test(ranges_outside_the_dataset_are_refused),
        cmocka_unit_test(a_prefix_or_either_file_names_a_shard),
        cmocka_unit_test(a_folder_names_all_shards_below_it_in_byte_order),
        cmocka_unit_test(a_manifest_names_one_shard_per_line),
        cmocka_unit_test(shards_must_agree),
        cmocka_unit_test(identity_depends_on_content_alone),
        cmocka_unit_test(structs_of_older_callers_are_accepted),
        cmocka_unit_test(threads_may_share_a_dataset),
        cmocka_unit_test(copy_returns_a_status_for_a_truncated_file),
        cmocka_unit_test(an_open_dataset_keeps_reading_a_replaced_shard),
        cmocka_unit_test(an_index_is_never_paired_with_newer_tokens),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
