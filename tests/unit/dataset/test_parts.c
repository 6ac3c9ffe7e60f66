/* SPDX-License-Identifier: MIT */
/* ci: nonroot */
/*
 * test_parts.c - a part of a dataset answers as the whole does, shifted and cut. The whole is compared with plain
 * arrays in test_dataset.c, so here it is the reference; bounds of documents and masks are kept in arrays of this test.
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

#include "common/bytes.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

/* ---- a dataset of five shards, two of which have masks ---- */

enum { DOCUMENTS_MAX = 400, TOKENS_MAX = 40000, SHARDS = 5 };

struct whole {
    const char *name;
    struct tokmap_dataset *dataset;
    uint64_t tokens, documents;
    uint64_t first[DOCUMENTS_MAX], end[DOCUMENTS_MAX];
    bool counts[TOKENS_MAX];
};

static void write_shard(struct whole *made, uint64_t number, uint64_t *state, bool masked)
{
    char name[40];
    uint64_t ends[100], count = 0, at = 0, documents = number == 2 ? 0 : 5 + random_below(state, 60);
    static uint16_t tokens[TOKENS_MAX];
    uint8_t bits[TOKENS_MAX / 8 + 1] = {0};
    for (; count < documents; count++) {
        made->first[made->documents + count] = made->tokens + at;
        at += random_below(state, 4) ? random_below(state, 200) : 0;
        at += count + 1 == documents; /* the last one is not empty, so the shard has a token */
        made->end[made->documents + count] = made->tokens + at;
        ends[count] = at;
    }
    for (uint64_t i = 0; i < at; i++) {
        tokens[i] = (uint16_t)token_value(made->tokens + i, 2);
        made->counts[made->tokens + i] = !masked || random_below(state, 3);
        bits[i / 8] |= (uint8_t)(made->counts[made->tokens + i] << (i % 8));
    }
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    options.mask = masked;
    (void)snprintf(name, sizeof name, "set/%d", (int)number);
    MUST(shard_writer_open(&writer, in_folder(folder, name), &options, &error));
    for (uint64_t d = 0, from = 0; d < documents; from = ends[d], d++) {
        uint64_t length = ends[d] - from, largest = 0;
        char path[20];
        for (uint64_t i = from; i < ends[d]; i++)
            largest = max64(largest, tokens[i]);
        (void)snprintf(path, sizeof path, "input-%d", (int)(d / 3));
        MUST(shard_writer_origin(writer, path, strlen(path), d % 3, &error));
        MUST(shard_writer_add(writer, tokens + from, length, &length, 1, largest, &error));
        if (masked)
            MUST(shard_writer_mask(writer, bits, from, length, &error));
    }
    MUST(shard_writer_commit(writer, "", 0, NULL, &error));
    made->tokens += at;
    made->documents += documents;
}

static void make_whole(struct whole *made, uint64_t seed)
{
    static char name[600];
    uint64_t state = seed;
    memset(made, 0, sizeof *made);
    (void)os_make_folder(in_folder(folder, "set"));
    for (uint64_t s = 0; s < SHARDS; s++)
        write_shard(made, s, &state, s == 1 || s == 4);
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "set"));
    made->name = name;
    MUST(tokmap_dataset_open(&made->dataset, name, NULL, &error));
}

static void make_synthetic(struct whole *made)
{
    memset(made, 0, sizeof *made);
    made->name = "synthetic:vocab=500,tokens=9000,document=40,seed=3";
    MUST(tokmap_dataset_open(&made->dataset, made->name, NULL, &error));
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_info(made->dataset, &info));
    made->tokens = info.tokens;
    made->documents = info.documents;
    for (uint64_t d = 0; d < made->documents; d++) {
        struct tokmap_document document;
        MUST(tokmap_dataset_document(made->dataset, d, &document, &error));
        made->first[d] = document.first_token;
        made->end[d] = document.first_token + document.tokens;
    }
    memset(made->counts, true, sizeof made->counts);
}

/* ---- what a part must be ---- */

struct part {
    uint64_t first, end, first_document, end_document;
};

static struct part of_documents(const struct whole *whole, uint64_t first, uint64_t end)
{
    return (struct part){whole->first[first], whole->end[end - 1], first, end};
}

static struct part of_tokens(const struct whole *whole, uint64_t first, uint64_t end)
{
    struct part part = {first, end, 0, 0};
    while (whole->end[part.first_document] <= first)
        part.first_document++;
    for (part.end_document = part.first_document; whole->end[part.end_document] < end;)
        part.end_document++;
    part.end_document++;
    return part;
}

static void check_tokens(const struct whole *whole, const struct tokmap_dataset *dataset, const struct part *part,
                         uint64_t at, uint64_t count)
{
    static uint16_t ours[TOKENS_MAX], theirs[TOKENS_MAX];
    uint8_t bits[TOKENS_MAX / 8];
    struct tokmap_span spans[SHARDS];
    size_t used;
    MUST(tokmap_dataset_copy(dataset, at, count, ours, &error));
    MUST(tokmap_dataset_copy(whole->dataset, part->first + at, count, theirs, &error));
    assert_memory_equal(ours, theirs, count * 2);
    MUST(tokmap_dataset_mask(dataset, at, count, bits, &error));
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(bits[i / 8] >> (i % 8) & 1, whole->counts[part->first + at + i]);
    for (uint64_t i = count; i < (count + 7) / 8 * 8; i++)
        assert_int_equal(bits[i / 8] >> (i % 8) & 1, 0);
    if (dataset_is_synthetic(dataset))
        return;
    MUST(tokmap_dataset_view(dataset, at, count, spans, SHARDS, &used, &error));
    uint64_t done = 0;
    for (size_t s = 0; s < used; s++) {
        assert_memory_equal(spans[s].tokens, theirs + done, spans[s].count * 2);
        done += spans[s].count;
    }
    assert_int_equal(done, count);
}

static void check_documents(const struct whole *whole, const struct tokmap_dataset *dataset, const struct part *part)
{
    for (uint64_t d = part->first_document; d < part->end_document; d++) {
        struct tokmap_document document, at;
        const uint64_t first = max64(whole->first[d], part->first) - part->first;
        const uint64_t end = min64(whole->end[d], part->end) - part->first;
        MUST(tokmap_dataset_document(dataset, d - part->first_document, &document, &error));
        assert_int_equal(document.number, d - part->first_document);
        assert_int_equal(document.first_token, first);
        assert_int_equal(document.tokens, end - first);
        for (uint64_t token = first; token<end; token += end - first> 1 && token + 1 < end ? end - 1 - token : 1) {
            MUST(tokmap_dataset_document_at(dataset, token, &at, &error));
            assert_memory_equal(&at, &document, sizeof at);
        }
        struct tokmap_origin ours, theirs;
        if (dataset_is_synthetic(dataset))
            continue;
        MUST(tokmap_dataset_origin(dataset, d - part->first_document, &ours, &error));
        MUST(tokmap_dataset_origin(whole->dataset, d, &theirs, &error));
        assert_int_equal(ours.record, theirs.record);
        assert_int_equal(ours.path_bytes, theirs.path_bytes);
        assert_memory_equal(ours.path, theirs.path, ours.path_bytes);
    }
}

/* Compares ends of documents in a range of the part with those found by looking at all documents. */
static void check_ends(const struct whole *whole, const struct tokmap_dataset *dataset, const struct part *part,
                       uint64_t at, uint64_t count)
{
    uint64_t ends[DOCUMENTS_MAX], used, start, expected = 0, last = at, begins = 0;
    MUST(dataset_ends(dataset, at, count, ends, DOCUMENTS_MAX, &used, &start, &error));
    for (uint64_t d = part->first_document; d < part->end_document; d++) {
        const uint64_t first = max64(whole->first[d], part->first) - part->first;
        const uint64_t end = min64(whole->end[d], part->end) - part->first;
        if (first <= at && at < end)
            begins = first;
        if (end <= at || end > at + count || end == last)
            continue;
        assert_true(expected < used);
        assert_int_equal(ends[expected++], end - at);
        last = end;
    }
    assert_int_equal(used, expected);
    assert_int_equal(start, begins);
}

static void check_walk(const struct tokmap_dataset *dataset, uint64_t tokens, uint64_t capacity)
{
    uint64_t all[DOCUMENTS_MAX], count, start, ends[DOCUMENTS_MAX], used, seen = 0;
    struct dataset_walk walk = {0};
    if (dataset_is_synthetic(dataset))
        return;
    MUST(dataset_ends(dataset, 0, tokens, all, DOCUMENTS_MAX, &count, &start, &error));
    do {
        MUST(dataset_walk_ends(dataset, &walk, ends, capacity, &used, &error));
        for (uint64_t i = 0; i < used; i++)
            assert_int_equal(ends[i], all[seen++]);
    } while (used);
    assert_int_equal(seen, count);
    assert_int_equal(all[count - 1], tokens);
}

static void check_identity(const struct whole *whole, const struct tokmap_dataset_info *info, const struct part *part)
{
    struct tokmap_dataset_info all = TOKMAP_DATASET_INFO_INIT;
    uint8_t message[40] = "part 1", expected[16];
    MUST(tokmap_dataset_info(whole->dataset, &all));
    memcpy(message + 8, all.content, 16);
    store64(message + 24, part->first);
    store64(message + 32, part->end);
    hash128_store(hash128(message, sizeof message), expected);
    const bool is_all =
        part->end - part->first == whole->tokens && part->end_document - part->first_document == whole->documents;
    assert_memory_equal(info->content, is_all ? all.content : expected, 16);
}

static void check_part(const struct whole *whole, const char *suffix, const struct part *part, uint64_t *state)
{
    char name[700];
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    const uint64_t tokens = part->end - part->first;
    (void)snprintf(name, sizeof name, "%s#%s", whole->name, suffix);
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    assert_int_equal(info.tokens, tokens);
    assert_int_equal(info.documents, part->end_document - part->first_document);
    check_identity(whole, &info, part);
    check_documents(whole, dataset, part);
    check_tokens(whole, dataset, part, 0, tokens);
    check_ends(whole, dataset, part, 0, tokens);
    check_walk(dataset, tokens, 1);
    check_walk(dataset, tokens, 7);
    for (int i = 0; i < 20; i++) {
        const uint64_t at = random_below(state, tokens), count = random_below(state, tokens - at) + 1;
        check_tokens(whole, dataset, part, at, count);
        check_ends(whole, dataset, part, at, count);
    }
    uint64_t at_token = 0, at_document = 0;
    for (uint64_t s = 0; s < info.shards; s++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        MUST(tokmap_dataset_shard(dataset, s, &shard, &error));
        assert_int_equal(shard.first_token, at_token);
        assert_int_equal(shard.first_document, at_document);
        at_token += shard.tokens;
        at_document += shard.documents;
    }
    if (info.shards)
        assert_int_equal(at_token, tokens);
    uint8_t byte;
    assert_int_equal(tokmap_dataset_copy(dataset, tokens, 1, &byte, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_dataset_mask(dataset, tokens, 1, &byte, &error), TOKMAP_ERROR_RANGE);
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    tokmap_dataset_close(dataset);
}

static void check_random_parts(const struct whole *whole, uint64_t *state, int rounds)
{
    char suffix[100];
    for (int i = 0; i < rounds; i++) {
        uint64_t a = random_below(state, whole->documents), b = a + 1 + random_below(state, whole->documents - a);
        struct part part = of_documents(whole, a, b);
        (void)snprintf(suffix, sizeof suffix, "docs=%" PRIu64 "..%" PRIu64, a, b);
        if (part.first < part.end)
            check_part(whole, suffix, &part, state);
        a = random_below(state, whole->tokens), b = a + 1 + random_below(state, whole->tokens - a);
        part = of_tokens(whole, a, b);
        (void)snprintf(suffix, sizeof suffix, "tokens=%" PRIu64 "..%" PRIu64, a, b);
        check_part(whole, suffix, &part, state);
        /* hundredths of a percent */
        a = random_below(state, 10000), b = a + 1 + random_below(state, 10000 - a);
        const uint64_t from = whole->documents * a / 10000, to = whole->documents * b / 10000;
        (void)snprintf(suffix, sizeof suffix, "docs=%d.%02d..%d.%02d%%", (int)(a / 100), (int)(a % 100), (int)(b / 100),
                       (int)(b % 100));
        if (from < to && whole->first[from] < whole->end[to - 1]) {
            part = of_documents(whole, from, to);
            check_part(whole, suffix, &part, state);
        }
    }
}

static void parts_of_shards_are_the_whole_shifted_and_cut(void **unused)
{
    (void)unused;
    static struct whole whole;
    uint64_t state = 5;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        make_whole(&whole, seed);
        check_random_parts(&whole, &state, 15);
        const struct part all = {0, whole.tokens, 0, whole.documents};
        char suffix[60];
        check_part(&whole, "docs=0..100%", &all, &state);
        check_part(&whole, "docs=0.0..100.000%", &all, &state);
        (void)snprintf(suffix, sizeof suffix, "docs=0..%" PRIu64, whole.documents);
        check_part(&whole, suffix, &all, &state);
        (void)snprintf(suffix, sizeof suffix, "tokens=0..%" PRIu64, whole.tokens);
        check_part(&whole, suffix, &all, &state);
        tokmap_dataset_close(whole.dataset);
        scratch_remove(folder);
        scratch_make(folder);
    }
}

static void parts_of_synthetic_data_too(void **unused)
{
    (void)unused;
    static struct whole whole;
    uint64_t state = 6;
    make_synthetic(&whole);
    check_random_parts(&whole, &state, 60);
    tokmap_dataset_close(whole.dataset);
}

/* Percentages that cut 0..100 cut the documents, whatever their number: floor(D A / 100) with A exact. */
static void percentages_partition_the_documents(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t documents;
        const char *part;
        uint64_t expected;
    } cases[] = {
        {1000, "0..99%", 990},
        {1000, "99..100%", 10},
        {7, "0..50%", 3},
        {7, "50..100%", 4},
        {1000, "0..0.1%", 1},
        {1000, "0.1..100%", 999},
        {3, "0..33.333333333334%", 1},
        {1000000000, "0..0.000000001%", 0},
        {1000000000, "0..29.3%", 293000000},
        {1000000000, "29.3..100%", 707000000},
        {999999999999, "0..99.999999999999%", 999999999998},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[200];
        struct tokmap_dataset *dataset;
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        (void)snprintf(name, sizeof name, "synthetic:vocab=9,document=2,tokens=%" PRIu64 "#docs=%s",
                       2 * cases[i].documents, cases[i].part);
        const enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, &error);
        assert_int_equal(status, cases[i].expected ? TOKMAP_OK : TOKMAP_ERROR_RANGE);
        if (status)
            continue;
        MUST(tokmap_dataset_info(dataset, &info));
        assert_int_equal(info.documents, cases[i].expected);
        tokmap_dataset_close(dataset);
    }
}

static void bad_parts_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *part;
        enum tokmap_status status;
        const char *says;
    } cases[] = {
        {"docs=5..5", TOKMAP_ERROR_ARGUMENT, "is empty"},
        {"docs=5..5%", TOKMAP_ERROR_ARGUMENT, "is empty"},
        {"docs=5.0..5%", TOKMAP_ERROR_ARGUMENT, "is empty"},
        {"docs=9..5", TOKMAP_ERROR_ARGUMENT, "ends before it begins"},
        {"docs=0..100.1%", TOKMAP_ERROR_ARGUMENT, "above 100%"},
        {"docs=0..101", TOKMAP_ERROR_RANGE, "has 100 documents"},
        {"docs=0..0.5%", TOKMAP_ERROR_RANGE, "has no documents"},
        {"tokens=0..201", TOKMAP_ERROR_RANGE, "has 200 tokens"},
        {"tokens=0..50%", TOKMAP_ERROR_ARGUMENT, "two numbers A..B of tokens"},
        {"tokens=0.5..1", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=0.5..1", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=5", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=..5", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=5..", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=1...5", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=1.5%", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=1%..5%", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=-1..5", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=0..5 ", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=0..18446744073709551616", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=0..18446744073709551615", TOKMAP_ERROR_RANGE, "has 100 documents"},
        {"docs=0..1.0000000000001%", TOKMAP_ERROR_ARGUMENT, "two numbers"},
        {"docs=0.000000000001..99999999999%", TOKMAP_ERROR_ARGUMENT, "too many digits"},
        {"docs=0..50%#docs=0..50%", TOKMAP_ERROR_ARGUMENT, "two parts"},
        {"tokens=0..50#docs=0..50%", TOKMAP_ERROR_ARGUMENT, "two parts"},
    };
    struct tokmap_dataset *dataset;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[200];
        (void)snprintf(name, sizeof name, "synthetic:vocab=9,document=2,tokens=200#%s", cases[i].part);
        assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), cases[i].status);
        if (!strstr(error.message, cases[i].says) || strcmp(error.path, name))
            fail_msg("%s: %s: %s", cases[i].part, error.path, error.message);
    }
    assert_int_equal(tokmap_dataset_open(&dataset, "#docs=0..1", NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_dataset_open(&dataset, "/no/such#docs=0..1", NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_string_equal(error.path, "/no/such");
    /* a part of empty documents only, and files whose names look like parts */
    uint64_t ends[] = {0, 0, 4, 4};
    shard_make(in_folder(folder, "x#docs=0..1"), 2, 0, ends, 4);
    char name[700];
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "x#docs=0..1.tmx"));
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    tokmap_dataset_close(dataset);
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "x#docs=0..1.bin#docs=0..2"));
    assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    shard_make(in_folder(folder, "y"), 2, 0, ends, 4);
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "y#docs=0..2"));
    assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), TOKMAP_ERROR_RANGE);
    assert_non_null(strstr(error.message, "all of them are empty"));
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "y.bin#docs=0..3"));
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    tokmap_dataset_close(dataset);
}

/* Verify of a part reads the index and the blocks that hold tokens of the part, and no others. */
static void verify_reads_the_blocks_of_a_part(void **unused)
{
    (void)unused;
    uint64_t ends[] = {600000, 2000000};
    struct tokmap_dataset *dataset;
    struct tokmap_verify_result result = TOKMAP_VERIFY_RESULT_INIT;
    char name[700];
    shard_make(in_folder(folder, "large"), 2, 0, ends, 2); /* 4 blocks of 524288 tokens */
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "large#tokens=524287..524289"));
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, &result, &error));
    assert_int_equal(result.blocks, 2);
    tokmap_dataset_close(dataset);
    (void)snprintf(name, sizeof name, "%s", in_folder(folder, "large#tokens=1600000..2000000"));
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, &result, &error));
    assert_int_equal(result.blocks, 1);
    int fd;
    assert_int_equal(os_open(in_folder(folder, "large.bin"), OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pwrite(fd, "xx", 2, 1000), 0); /* not in the part */
    MUST(tokmap_dataset_verify(dataset, NULL, &result, &error));
    assert_int_equal(os_pwrite(fd, "xx", 2, 3999990), 0);
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, &result, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(error.offset, 3 << 20);
    os_close(fd);
    tokmap_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_shards_are_the_whole_shifted_and_cut),
        cmocka_unit_test(parts_of_synthetic_data_too),
        cmocka_unit_test(percentages_partition_the_documents),
        cmocka_unit_test(bad_parts_are_refused),
        cmocka_unit_test(verify_reads_the_blocks_of_a_part),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
