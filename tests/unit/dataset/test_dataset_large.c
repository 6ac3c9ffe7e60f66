/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_dataset_large.c - sizes past 2^32 tokens and 2^40 bytes. The dataset is a manifest that names one sparse shard
 * of 4 TiB ten times. The shard has marks between its holes, and documents that end before, at, and after multiples of
 * 2^32.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "format/index_reader.h"
#include "format/index_verify.h"
#include "platform/os.h"
#include "support/shard_help.h"

#define POWER32 ((uint64_t)1 << 32)
#define SHARD_TOKENS ((uint64_t)1 << 40) /* of 4 bytes each */
enum { COPIES = 10, DOCUMENTS_MAX = 2000 };

static char folder[512];
static uint64_t ends[DOCUMENTS_MAX]; /* of the shard's documents */
static uint64_t documents;
static bool made;

/* Returns token i (0, 1, or 2) of the mark at the start of a document, which identifies the document. */
static uint32_t mark(uint64_t document, uint32_t i)
{
    return (uint32_t)document * 4 + 0x10000 + i;
}

static void add_document(struct shard_writer *writer, uint64_t tokens)
{
    uint32_t marks[3];
    uint64_t start = documents ? ends[documents - 1] : 0, marked = min64(tokens, 3), largest = 0;
    for (uint32_t i = 0; i < 3; i++)
        largest = marks[i] = mark(documents, i);
    assert_true(documents < DOCUMENTS_MAX);
    if (tokens > 3) {
        /* The mark begins the document. Zeros fill the rest, and their end is the end of the document. */
        MUST(shard_writer_add(writer, marks, 3, NULL, 0, largest, &error));
        MUST(shard_writer_add_zeros(writer, tokens - 3, &error));
    } else {
        MUST(shard_writer_add(writer, marks, marked, &marked, 1, marked ? largest : 0, &error));
    }
    ends[documents++] = start + tokens;
}

static void make_shard(void)
{
    struct shard_writer_options options = plain_options(4);
    struct shard_writer *writer;
    uint64_t state = 1;
    MUST(shard_writer_open(&writer, in_folder(folder, "huge"), &options, &error));
    add_document(writer, POWER32 - 1);
    add_document(writer, 0);
    add_document(writer, 1); /* ends at 2^32 */
    add_document(writer, 0);
    add_document(writer, POWER32);     /* from one multiple of 2^32 to the next */
    add_document(writer, 5 * POWER32); /* across several multiples */
    add_document(writer, POWER32 / 2);
    add_document(writer, POWER32 / 2 + 1); /* ends after a multiple */
    for (int i = 0; i < 1500; i++)
        add_document(writer, i % 10 ? random_below(&state, 1 << 20) : random_below(&state, 1ull << 30));
    add_document(writer, SHARD_TOKENS - ends[documents - 1] - 2);
    add_document(writer, 2);
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
}

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    int fd, system;
    assert_int_equal(os_open(in_folder(folder, "probe"), OS_WRITE_NEW, &fd), 0);
    system = os_truncate(fd, SHARD_TOKENS * 4);
    os_close(fd);
    (void)os_unlink(in_folder(folder, "probe"));
    if (system) {
        printf("the file system of %s does not support sparse files of 4 TiB\n", folder);
        return 0;
    }
    make_shard();
    char text[400] = "tokmap-shards 1\n";
    for (int i = 0; i < COPIES; i++)
        strcat(text, "huge\n");
    file_write(in_folder(folder, "list"), text, strlen(text));
    made = true;
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

static struct tokmap_dataset *open_list(void)
{
    if (!made) {
        print_message("the file system does not support sparse files of this size\n");
        skip();
    }
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "list"), NULL, &error));
    return dataset;
}

static void counts_exceed_ten_trillion_tokens(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset = open_list();
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_true(info.tokens == COPIES * SHARD_TOKENS && info.tokens > 10000000000000);
    assert_int_equal(info.documents, COPIES * documents);
    assert_int_equal(info.reading, TOKMAP_READ_PREAD); /* because it is larger than any memory */
    for (uint64_t s = 0; s < COPIES; s++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        MUST(tokmap_dataset_shard(dataset, s, &shard, &error));
        assert_true(shard.first_token == s * SHARD_TOKENS && shard.tokens == SHARD_TOKENS);
        assert_true(shard.blocks == SHARD_TOKENS * 4 >> 20);
    }
    tokmap_dataset_close(dataset);
}

static void documents_are_found_by_number_and_token(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset = open_list();
    for (uint64_t copy = 0; copy < COPIES; copy += 3) {
        for (uint64_t d = 0; d < documents; d++) {
            uint64_t start = copy * SHARD_TOKENS + (d ? ends[d - 1] : 0), end = copy * SHARD_TOKENS + ends[d];
            struct tokmap_document document;
            MUST(tokmap_dataset_document(dataset, copy * documents + d, &document, &error));
            assert_true(document.first_token == start && document.tokens == end - start && document.shard == copy);
            if (start == end)
                continue;
            uint64_t places[] = {start, end - 1, start + (end - start) / 2};
            for (int i = 0; i < 3; i++) {
                MUST(tokmap_dataset_document_at(dataset, places[i], &document, &error));
                assert_true(document.number == copy * documents + d && document.first_token == start);
            }
        }
    }
    tokmap_dataset_close(dataset);
}

static void tokens_are_at_their_places(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset = open_list();
    for (uint64_t copy = 0; copy < COPIES; copy += 9) {
        for (uint64_t d = 0; d < documents; d += d < 20 ? 1 : 17) {
            uint64_t start = d ? ends[d - 1] : 0, count = min64(ends[d] - start, 4);
            uint32_t found[4];
            MUST(tokmap_dataset_copy(dataset, copy * SHARD_TOKENS + start, count, found, &error));
            for (uint32_t i = 0; i < count; i++)
                assert_int_equal(found[i], i < 3 ? mark(d, i) : 0);
        }
    }
    /* Across the border of two shards, 36 TiB into the dataset: the last document's two tokens, then the first two of
     * the first document. */
    uint32_t found[4];
    uint64_t edge = 9 * SHARD_TOKENS;
    MUST(tokmap_dataset_copy(dataset, edge - 2, 4, found, &error));
    uint32_t expected[4] = {mark(documents - 1, 0), mark(documents - 1, 1), mark(0, 0), mark(0, 1)};
    assert_memory_equal(found, expected, sizeof expected);
    struct tokmap_span spans[2];
    size_t used;
    enum tokmap_status status = tokmap_dataset_view(dataset, edge - 2, 4, spans, 2, &used, &error);
    tokmap_dataset_close(dataset);
    if (status == TOKMAP_ERROR_IO || status == TOKMAP_ERROR_MEMORY) {
        printf("the address space has no room for two mappings of 4 TiB\n");
        skip();
    }
    must_succeed(status, &error, __FILE__, __LINE__);
    assert_int_equal(used, 2);
}

static void views_reach_past_a_terabyte(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset = open_list();
    struct tokmap_span span;
    size_t used;
    uint64_t d = documents - 1, start = ends[d - 1];
    enum tokmap_status status = tokmap_dataset_view(dataset, start, 2, &span, 1, &used, &error);
    if (status == TOKMAP_ERROR_IO || status == TOKMAP_ERROR_MEMORY) {
        tokmap_dataset_close(dataset);
        printf("the address space has no room for a mapping of 4 TiB\n");
        skip();
    }
    must_succeed(status, &error, __FILE__, __LINE__);
    assert_true(start * 4 > (uint64_t)1 << 40);
    assert_int_equal(load32(span.tokens), mark(d, 0));
    assert_int_equal(load32((const uint8_t *)span.tokens + 4), mark(d, 1));
    tokmap_dataset_close(dataset);
}

static void document_ends_are_found_in_any_range(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset = open_list();
    uint64_t state = 3, found[64], used, start;
    for (int i = 0; i < 3000; i++) {
        uint64_t copy = random_below(&state, COPIES - 1), d = random_below(&state, documents),
                 base = copy * SHARD_TOKENS;
        uint64_t first = base + ends[d] - min64(ends[d], random_below(&state, 1000)),
                 count = random_below(&state, 3000000);
        uint64_t expected[64], expected_used = 0, last = first + count;
        /* Looks at documents before, in, and after the range. The range may reach into the next copy of the shard. */
        for (uint64_t e = d > 30 ? d - 30 : 0; e < documents + 40 && expected_used < 64; e++) {
            uint64_t end = base + (e < documents ? ends[e] : SHARD_TOKENS + ends[e - documents]);
            if (end > first && end <= last && (!expected_used || expected[expected_used - 1] != end - first))
                expected[expected_used++] = end - first;
        }
        enum tokmap_status status = dataset_ends(dataset, first, count, found, 64, &used, &start, &error);
        if (status == TOKMAP_ERROR_LIMIT)
            continue;
        must_succeed(status, &error, __FILE__, __LINE__);
        assert_int_equal(used, expected_used);
        assert_true(!used || !memcmp(found, expected, used * sizeof *found));
        assert_true(start <= first);
    }
    tokmap_dataset_close(dataset);
}

static int no_fault(void *user, const struct tokmap_error *fault)
{
    (void)user;
    fail_msg("%s", fault->message);
    return 1;
}

static void the_index_is_sound(void **unused)
{
    (void)unused;
    if (!made) {
        print_message("the file system does not support sparse files of this size\n");
        skip();
    }
    struct index index;
    const char *path = in_folder(folder, "huge.tmx");
    MUST(index_open(&index, path, &error));
    assert_int_equal(index_verify(&index, no_fault, NULL), 0);
    index_close(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_exceed_ten_trillion_tokens),
        cmocka_unit_test(documents_are_found_by_number_and_token),
        cmocka_unit_test(tokens_are_at_their_places),
        cmocka_unit_test(views_reach_past_a_terabyte),
        cmocka_unit_test(document_ends_are_found_in_any_range),
        cmocka_unit_test(the_index_is_sound),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
