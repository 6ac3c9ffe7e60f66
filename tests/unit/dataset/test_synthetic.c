/* SPDX-License-Identifier: MIT */
/* ci: nonroot tsan */
/* test_synthetic.c - synthetic datasets: every function reports the tokens and documents that RUN.md defines. Also
 * their names, and runs and loaders over them. */
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
#include "support/run_help.h"
#include "tokmap/tokmap.h"

/* ---- the definition in RUN.md, implemented again, for one token and one document at a time ---- */

static uint64_t number(uint64_t seed, uint64_t stream, uint64_t index, uint64_t below)
{
    uint64_t x = (seed ^ (stream << 56)) + (index + 1) * UINT64_C(11400714819323198485);
    x ^= x >> 30;
    x *= UINT64_C(13787848793156543929);
    x ^= x >> 27;
    x *= UINT64_C(10723151780598845931);
    x ^= x >> 31;
    const uint64_t low = (x & UINT32_MAX) * below, high = (x >> 32) * below; /* below is at most 2^32 */
    return (high + (low >> 32)) >> 32;
}

static uint64_t naive_token(uint64_t seed, uint64_t vocabulary, uint64_t token)
{
    return (number(seed, 1, token % 65536, vocabulary) + number(seed, 2, token / 65536, vocabulary)) % vocabulary;
}

static uint64_t naive_end(uint64_t seed, uint64_t length, uint64_t tokens, uint64_t document)
{
    const uint64_t end = document * length + 1 + number(seed, 3, document, length);
    return (document + 1) * length >= tokens ? tokens : end;
}

static struct tokmap_dataset *opened(const char *name)
{
    struct tokmap_dataset *dataset;
    struct tokmap_error error = {0};
    if (tokmap_dataset_open(&dataset, name, NULL, &error))
        fail_msg("%s: %s", name, error.message);
    return dataset;
}

/* ---- tokens ---- */

static void check_tokens(uint64_t vocabulary, uint32_t width, uint64_t seed)
{
    char name[128];
    (void)snprintf(name, sizeof name, "synthetic:vocab=%llu,width=%u,seed=%llu", (unsigned long long)vocabulary, width,
                   (unsigned long long)seed);
    struct tokmap_dataset *dataset = opened(name);
    static const uint64_t firsts[] = {0, 1, 65530, 65536, 131071, ((uint64_t)1 << 40) - 3000, 123456789012};
    static const uint64_t counts[] = {0, 1, 7, 8, 9, 2049, 3000};
    uint8_t *got = malloc(3000 * 4 + 1);
    for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            got[counts[c] * width] = 0x5a;
            assert_int_equal(tokmap_dataset_copy(dataset, firsts[f], counts[c], got, NULL), TOKMAP_OK);
            for (uint64_t i = 0; i < counts[c]; i++)
                assert_int_equal(width == 2 ? load16(got + 2 * i) : load32(got + 4 * i),
                                 naive_token(seed, vocabulary, firsts[f] + i));
            assert_int_equal(got[counts[c] * width], 0x5a);
        }
    free(got);
    tokmap_dataset_close(dataset);
}

static void tokens_equal_their_definition(void **unused)
{
    (void)unused;
    check_tokens(50257, 2, 0);
    check_tokens(50257, 4, 7);
    check_tokens(1, 2, 0);
    check_tokens(65536, 2, UINT64_MAX);
    check_tokens(128256, 4, 1234);
    check_tokens((uint64_t)1 << 32, 4, 5);
}

static void a_dataset_has_the_documented_properties(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset = opened("synthetic:vocab=50257");
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_int_equal(info.tokens, (uint64_t)1 << 40);
    assert_int_equal(info.width, 2);
    assert_int_equal(info.vocabulary, 50257);
    assert_int_equal(info.largest_id, 50256);
    assert_int_equal(info.shards, 0);
    assert_int_equal(info.documents, div_ceil((uint64_t)1 << 40, 1000));
    struct tokmap_span span;
    size_t used;
    uint16_t token;
    struct tokmap_origin origin;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    assert_int_equal(tokmap_dataset_view(dataset, 0, 1, &span, 1, &used, NULL), TOKMAP_ERROR_UNSUPPORTED);
    assert_int_equal(tokmap_dataset_copy(dataset, info.tokens, 1, &token, NULL), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_origin(dataset, 0, &origin, NULL), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(tokmap_dataset_shard(dataset, 0, &shard, NULL), TOKMAP_ERROR_RANGE);
    struct tokmap_verify_result result = TOKMAP_VERIFY_RESULT_INIT;
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, &result, NULL), TOKMAP_OK);
    assert_int_equal(result.bytes, 0);
    tokmap_dataset_close(dataset);
}

/* ---- documents ---- */

static void check_documents(uint64_t tokens, uint64_t length, uint64_t seed)
{
    char name[128];
    (void)snprintf(name, sizeof name, "synthetic:vocab=9,tokens=%llu,document=%llu,seed=%llu",
                   (unsigned long long)tokens, (unsigned long long)length, (unsigned long long)seed);
    struct tokmap_dataset *dataset = opened(name);
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_int_equal(info.documents, div_ceil(tokens, length));
    uint8_t *ends_at = calloc(tokens + 1, 1);
    uint64_t start = 0;
    for (uint64_t number_of = 0; number_of < info.documents; number_of++) {
        struct tokmap_document document, at;
        const uint64_t end = naive_end(seed, length, tokens, number_of);
        assert_int_equal(tokmap_dataset_document(dataset, number_of, &document, NULL), TOKMAP_OK);
        assert_int_equal(document.first_token, start);
        assert_int_equal(document.tokens, end - start);
        assert_true(end > start && (length >= tokens || end - start < 2 * length));
        /* Looks up the first and the last token of the document. */
        for (uint64_t token = start, last = end - 1; token <= last; token = token < last ? last : end) {
            assert_int_equal(tokmap_dataset_document_at(dataset, token, &at, NULL), TOKMAP_OK);
            assert_memory_equal(&at, &document, sizeof at);
        }
        ends_at[start = end] = 1;
    }
    assert_int_equal(start, tokens);
    uint64_t ends[512];
    for (uint64_t first = 0; first < tokens; first += 1 + tokens / 97)
        for (uint64_t count = 0; first + count <= tokens && count <= 300; count += 23) {
            uint64_t used, begin, seen = 0;
            assert_int_equal(dataset_ends(dataset, first, count, ends, 512, &used, &begin, NULL), TOKMAP_OK);
            for (uint64_t token = first + 1; token <= first + count; token++)
                if (ends_at[token])
                    assert_int_equal(ends[seen++], token - first);
            assert_int_equal(used, seen);
            assert_true(begin == first || (begin < first && !ends_at[first]));
            assert_true(begin == 0 || ends_at[begin]);
            assert_true(used + 1 <= dataset_synthetic_most_documents(dataset, count + 1));
            if (used > 1)
                assert_int_equal(dataset_ends(dataset, first, count, ends, 1, &used, &begin, NULL), TOKMAP_ERROR_LIMIT);
        }
    free(ends_at);
    tokmap_dataset_close(dataset);
}

static void documents_equal_their_definition(void **unused)
{
    (void)unused;
    check_documents(5000, 1000, 0);
    check_documents(4999, 7, 3);
    check_documents(300, 1, 1);
    check_documents(100, 1000, 1);
    check_documents(1, 1, 0);
}

/* ---- names ---- */

static void content_of(const char *name, uint8_t content[16])
{
    struct tokmap_dataset *dataset = opened(name);
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    memcpy(content, info.content, 16);
    tokmap_dataset_close(dataset);
}

static void identity_depends_on_values_alone(void **unused)
{
    (void)unused;
    static const char *const same[] = {"synthetic:vocab=100", "synthetic:seed=0,vocab=100",
                                       "synthetic:document=1000,width=2,vocab=100,tokens=1099511627776"};
    static const char *const others[] = {"synthetic:vocab=101", "synthetic:vocab=100,seed=1",
                                         "synthetic:vocab=100,document=999", "synthetic:vocab=100,width=4",
                                         "synthetic:vocab=100,tokens=1099511627775"};
    uint8_t first[16], found[16];
    content_of(same[0], first);
    for (size_t i = 1; i < sizeof same / sizeof same[0]; i++) {
        content_of(same[i], found);
        assert_memory_equal(found, first, 16);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        content_of(others[i], found);
        assert_memory_not_equal(found, first, 16);
    }
}

static void wrong_names_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *name, *says;
    } wrong[] = {
        {"synthetic:", "the vocabulary is missing"},
        {"synthetic:tokens=5", "the vocabulary is missing"},
        {"synthetic:vocab", "the word 'vocab' is given without a value"},
        {"synthetic:vocab=", "the value of vocab must be a number from 1 to 4294967296"},
        {"synthetic:vocab=0", "the value of vocab must be a number from 1 to 4294967296"},
        {"synthetic:vocab=4294967297", "the value of vocab must be a number from 1 to 4294967296"},
        {"synthetic:vocab=99999999999999999999", "the value of vocab must be a number from 1 to 4294967296"},
        {"synthetic:vocab=50k", "the value of vocab must be a number"},
        {"synthetic:vocab=5,", "the word '' is unknown"},
        {"synthetic:vocab=5,vocab=5", "the word 'vocab' is given twice"},
        {"synthetic:vocab=5,tokens=0", "the value of tokens must be a number from 1"},
        {"synthetic:vocab=5,document=0", "the value of document must be a number from 1"},
        {"synthetic:vocab=5,width=3", "the width must be 2 or 4 bytes"},
        {"synthetic:vocab=65537,width=2", "a vocabulary of 65537 ids needs 4"},
        {"synthetic:vocab=5,speed=9", "the word 'speed' is unknown"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tokmap_dataset *dataset = (struct tokmap_dataset *)(uintptr_t)1;
        struct tokmap_error error = {0};
        assert_int_equal(tokmap_dataset_open(&dataset, wrong[i].name, NULL, &error), TOKMAP_ERROR_ARGUMENT);
        assert_null(dataset);
        assert_string_equal(error.path, wrong[i].name);
        assert_non_null(strstr(error.message, wrong[i].says));
    }
}

/* ---- runs and loaders ---- */

static const char run_text[] = "seq_len 100\nlookahead 1\nbatch 6\nseed 3\n"
                               "source x synthetic:vocab=50257,tokens=10007,document=30\npasses 3\n";

/* Every row has the tokens of its place, and position ids restart at each document. */
static void check_batch(const struct tokmap_dataset *dataset, const struct tokmap_batch *batch,
                        const int32_t *positions)
{
    for (uint64_t i = 0; i < batch->count; i++) {
        const struct tokmap_place *place = &batch->places[i];
        uint64_t position = 0;
        for (uint64_t j = 0; j < 101; j++) {
            const uint64_t token = (place->first_token + j) % 10007;
            assert_int_equal(load16((const uint8_t *)batch->rows[i] + 2 * j), naive_token(0, 50257, token));
            struct tokmap_document document;
            assert_int_equal(tokmap_dataset_document_at(dataset, token, &document, NULL), TOKMAP_OK);
            position = document.first_token == token ? 0 : position;
            if (j < 100)
                assert_int_equal(positions[i * 100 + j], position++);
        }
    }
}

static void runs_and_loaders_deliver_the_tokens(void **unused)
{
    (void)unused;
    struct tokmap_run *run;
    struct tokmap_error error = {0};
    /* The run's folder does not matter, because a synthetic dataset has no files. */
    assert_int_equal(run_parse_in(&run, run_text, "/there/is/no/such/folder", &error), TOKMAP_OK);
    struct tokmap_source_info source = TOKMAP_SOURCE_INFO_INIT;
    assert_int_equal(tokmap_run_source(run, 0, &source), TOKMAP_OK);
    assert_int_equal(source.windows, 100);
    for (uint32_t threads = 0; threads <= 1; threads++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        options.threads = threads;
        options.fields = TOKMAP_POSITION_IDS;
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        int32_t positions[600];
        struct tokmap_out out = TOKMAP_OUT_INIT;
        out.position_ids = positions;
        char saved[TOKMAP_CURSOR_TEXT] = "";
        assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_OK);
        uint64_t batches = 0;
        for (; tokmap_loader_next(loader, &out, NULL, &batch, &error) == TOKMAP_OK; batches++) {
            check_batch(source.dataset, &batch, positions);
            if (batches == 20)
                tokmap_cursor_print(&batch.cursor, saved);
        }
        assert_int_equal(batches, 50);
        struct tokmap_stats stats = TOKMAP_STATS_INIT;
        assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
        assert_int_equal(stats.cold_reads, 0);
        tokmap_loader_close(loader);
        options.resume = saved;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_OK);
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_OK);
        assert_int_equal(batch.step, 21);
        check_batch(source.dataset, &batch, positions);
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

/* A run with a different synthetic dataset has a different past. */
static void another_dataset_is_another_past(void **unused)
{
    (void)unused;
    struct tokmap_run *run, *other;
    struct tokmap_cursor cursor;
    struct tokmap_error error = {0};
    assert_int_equal(tokmap_run_parse(&run, run_text, NULL, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_parse(&other,
                                      "seq_len 100\nbatch 6\nseed 3\n"
                                      "source x synthetic:vocab=50257,tokens=10007,document=31\npasses 3\n",
                                      NULL, &error),
                     TOKMAP_OK);
    assert_int_equal(tokmap_run_cursor(run, 5, &cursor, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(run, &cursor, &error), TOKMAP_OK);
    assert_int_equal(tokmap_run_check_cursor(other, &cursor, &error), TOKMAP_ERROR_PAST);
    assert_non_null(strstr(error.message, "data ("));
    tokmap_run_close(run);
    tokmap_run_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_equal_their_definition),    cmocka_unit_test(a_dataset_has_the_documented_properties),
        cmocka_unit_test(documents_equal_their_definition), cmocka_unit_test(identity_depends_on_values_alone),
        cmocka_unit_test(wrong_names_are_refused),          cmocka_unit_test(runs_and_loaders_deliver_the_tokens),
        cmocka_unit_test(another_dataset_is_another_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
