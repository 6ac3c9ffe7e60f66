/* SPDX-License-Identifier: MIT */
/* ci: nonroot tsan */
/*
 * test_manifest.c - manifests that state the sizes of shards. A dataset that is opened through one must be the dataset
 * that is opened through the names alone; no shard is opened before it is needed; and what is opened must match.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/gather.h"
#include "common/bytes.h"
#include "dataset/documents.h"
#include "format/manifest.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"
#include "tokmap/tokmap.h"

enum { MANY = 1000, FEW_FILES = 64, ROW = 24 };

/* ---- two manifests of the same shards ---- */

/* Writes the manifest `path` again, as `into`, with the sizes of its shards, but for every `unstated`-th one. */
static void state(const char *path, const char *into, uint64_t unstated)
{
    struct manifest manifest;
    struct manifest_text made = {.about = 0};
    size_t bytes;
    char *text = file_read(path, &bytes);
    MUST(manifest_parse(&manifest, path, text, bytes, &error));
    for (uint64_t i = 0; i < manifest.count; i++) {
        char *index_path = manifest_index_path(&manifest, &manifest.shards[i]);
        struct index index;
        MUST(index_open(&index, index_path, &error));
        const bool named = unstated && i % unstated == unstated - 1;
        assert_true(manifest_text_add(&made, manifest_name(&manifest, &manifest.shards[i]), named ? NULL : &index));
        index_close(&index);
        free(index_path);
    }
    file_write(into, made.text.bytes, made.text.count);
    manifest_text_free(&made);
    manifest_free(&manifest);
    free(text);
}

static struct tokmap_dataset *open_as(const char *name, enum tokmap_reading reading)
{
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    struct tokmap_dataset *dataset;
    options.reading = reading;
    MUST(tokmap_dataset_open(&dataset, name, &options, &error));
    return dataset;
}

/* Returns how many files this process has open. */
static int files_open(void)
{
    int count = -3; /* ".", "..", and the one of the list */
    DIR *list = opendir("/proc/self/fd");
    assert_non_null(list);
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

static struct tokmap_dataset_info info_of(const struct tokmap_dataset *dataset)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    return info;
}

static void check_same_info(const struct tokmap_dataset *one, const struct tokmap_dataset *other)
{
    struct tokmap_dataset_info a = info_of(one), b = info_of(other);
    assert_int_equal(a.warning == NULL, b.warning == NULL);
    if (a.warning)
        assert_string_equal(a.warning, b.warning);
    a.warning = b.warning = NULL;
    assert_memory_equal(&a, &b, sizeof a);
}

static void check_same_range(const struct tokmap_dataset *one, const struct tokmap_dataset *other, uint64_t first,
                             uint64_t count, uint32_t width)
{
    static uint8_t tokens[2][1 << 16], bits[2][1 << 13];
    static uint64_t ends[2][1 << 14];
    uint64_t used[2], start[2];
    const struct tokmap_dataset *both[] = {one, other};
    assert_true(count * width <= sizeof tokens[0]);
    for (int i = 0; i < 2; i++) {
        MUST(tokmap_dataset_copy(both[i], first, count, tokens[i], &error));
        MUST(tokmap_dataset_mask(both[i], first, count, bits[i], &error));
        MUST(dataset_ends(both[i], first, count, ends[i], 1 << 14, &used[i], &start[i], &error));
    }
    assert_memory_equal(tokens[0], tokens[1], count * width);
    assert_memory_equal(bits[0], bits[1], (count + 7) / 8);
    assert_int_equal(used[0], used[1]);
    assert_true(start[0] == start[1]);
    assert_memory_equal(ends[0], ends[1], used[0] * sizeof ends[0][0]);
}

static void check_same_document(const struct tokmap_dataset *one, const struct tokmap_dataset *other, uint64_t number)
{
    struct tokmap_document a = {0}, b = {0}, at = {0};
    MUST(tokmap_dataset_document(one, number, &a, &error));
    MUST(tokmap_dataset_document(other, number, &b, &error));
    assert_memory_equal(&a, &b, sizeof a);
    if (a.tokens) {
        MUST(tokmap_dataset_document_at(other, a.first_token + a.tokens - 1, &at, &error));
        assert_memory_equal(&a, &at, sizeof a);
    }
}

static void check_same_shard(const struct tokmap_dataset *one, const struct tokmap_dataset *other, uint64_t number)
{
    struct tokmap_shard_info a = TOKMAP_SHARD_INFO_INIT, b = TOKMAP_SHARD_INFO_INIT;
    MUST(tokmap_dataset_shard(one, number, &a, &error));
    MUST(tokmap_dataset_shard(other, number, &b, &error));
    assert_string_equal(a.index_path, b.index_path);
    assert_string_equal(a.tokens_path, b.tokens_path);
    assert_int_equal(a.about_bytes, b.about_bytes);
    assert_memory_equal(a.about, b.about, a.about_bytes);
    assert_true(a.first_token == b.first_token && a.tokens == b.tokens && a.first_document == b.first_document &&
                a.documents == b.documents && a.blocks == b.blocks && a.index_bytes == b.index_bytes);
    assert_memory_equal(a.content, b.content, sizeof a.content);
}

static void check_same(const struct tokmap_dataset *one, const struct tokmap_dataset *other, uint64_t *random)
{
    const struct tokmap_dataset_info info = info_of(one);
    check_same_info(one, other);
    for (uint64_t first = 0; first < info.tokens; first += 8192)
        check_same_range(one, other, first, min64(8192, info.tokens - first), info.width);
    for (int i = 0; i < 200; i++) {
        const uint64_t first = random_below(random, info.tokens);
        check_same_range(one, other, first, random_below(random, min64(info.tokens - first, 4000) + 1), info.width);
        check_same_document(one, other, random_below(random, info.documents));
        check_same_shard(one, other, random_below(random, info.shards));
    }
}

static void sizes_make(uint64_t *sizes, uint64_t count, uint64_t *random)
{
    for (uint64_t i = 0; i < count; i++)
        sizes[i] = i % 7 == 3 ? 0 : 1 + random_below(random, i % 5 ? 300 : 9000);
}

static void a_stated_dataset_is_that_of_the_names(void **unused)
{
    (void)unused;
    uint64_t sizes[40], random = 7;
    for (int round = 0; round < 6; round++) {
        struct made made;
        char name[24], stated[600], part[700], other[700];
        sizes_make(sizes, 40, &random);
        (void)snprintf(name, sizeof name, "round-%d", round);
        (round % 2 ? made_new_masked : made_new)(&made, folder, name, round < 3 ? 2 : 4, 60000, sizes, 40);
        (void)snprintf(stated, sizeof stated, "%s/stated-%d", folder, round);
        state(made.name, stated, round == 2 || round == 5 ? 3 : 0);
        for (int reading = 0; reading < 3; reading++) {
            struct tokmap_dataset *one = open_as(made.name, (enum tokmap_reading)reading);
            struct tokmap_dataset *two = open_as(stated, (enum tokmap_reading)reading);
            check_same(one, two, &random);
            struct tokmap_error fault = {0}; /* the indexes say another largest id than the tokens have */
            assert_int_equal(tokmap_dataset_verify(one, NULL, NULL, &fault),
                             tokmap_dataset_verify(two, NULL, NULL, &error));
            assert_string_equal(fault.message, error.message);
            assert_string_equal(fault.path, error.path);
            const struct tokmap_dataset_info info = info_of(one);
            tokmap_dataset_close(one);
            tokmap_dataset_close(two);
            for (int i = 0; i < 6; i++) {
                const uint64_t from = random_below(&random, info.tokens - 200),
                               to = from + 1 + random_below(&random, 199);
                char end[80];
                if (i % 2)
                    (void)snprintf(end, sizeof end, "#docs=10..%d%%", 11 + (int)random_below(&random, 89));
                else
                    (void)snprintf(end, sizeof end, "#tokens=%" PRIu64 "..%" PRIu64, from, to);
                (void)snprintf(part, sizeof part, "%s%s", made.name, end);
                (void)snprintf(other, sizeof other, "%s%s", stated, end);
                one = open_as(part, (enum tokmap_reading)reading);
                two = open_as(other, (enum tokmap_reading)reading);
                check_same(one, two, &random);
                tokmap_dataset_close(one);
                tokmap_dataset_close(two);
            }
        }
        made_free(&made);
    }
}

/* ---- no shard is opened before it is needed, and then it must match ---- */

static void expect_line(const struct tokmap_dataset *dataset, uint64_t token, enum tokmap_status status, uint32_t line,
                        const char *message)
{
    uint16_t copied;
    memset(&error, 0, sizeof error);
    assert_int_equal(tokmap_dataset_copy(dataset, token, 1, &copied, &error), status);
    assert_int_equal(error.line, line);
    if (!strstr(error.message, message))
        fail_msg("the error is: %s", error.message);
}

static int note_mismatch(void *user, const struct tokmap_error *fault)
{
    if (fault->status == TOKMAP_ERROR_MISMATCH)
        *(uint32_t *)user = fault->line;
    return 0;
}

static void shards_open_when_they_are_needed(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {100, 200, 300}, one_end = 90;
    struct made made;
    char path[700], aside[720];
    uint16_t copied[3];
    made_new(&made, folder, "late", 2, 60000, sizes, 3);
    state(made.name, in_folder(folder, "late"), 0);
    (void)snprintf(path, sizeof path, "%s/late-1.tmx", folder);
    (void)snprintf(aside, sizeof aside, "%s/late-1.aside", folder);
    assert_int_equal(rename(path, aside), 0);
    const int before = files_open();
    struct tokmap_dataset *dataset = open_as(in_folder(folder, "late"), TOKMAP_READ_PREAD);
    assert_int_equal(files_open(), before);
    assert_int_equal(info_of(dataset).tokens, 600);
    MUST(tokmap_dataset_copy(dataset, 97, 3, copied, &error));
    assert_int_equal(copied[2], made_token(&made, 99));
    expect_line(dataset, 100, TOKMAP_ERROR_NOT_FOUND, 4, "correct the line or restore the files");
    assert_int_equal(rename(aside, path), 0); /* a failure is not remembered */
    MUST(tokmap_dataset_copy(dataset, 100, 1, copied, &error));
    assert_int_equal(copied[0], made_token(&made, 100));
    assert_true(files_open() > before);
    tokmap_dataset_close(dataset);
    assert_int_equal(files_open(), before);
    /* A shard that was replaced since by another one. */
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    static uint16_t zeros[90];
    options.replace = true;
    (void)snprintf(path, sizeof path, "%s/late-2", folder);
    dataset = open_as(in_folder(folder, "late"), TOKMAP_READ_AUTO);
    MUST(shard_writer_open(&writer, path, &options, &error));
    MUST(shard_writer_add(writer, zeros, 90, &one_end, 1, 0, &error));
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
    expect_line(dataset, 300, TOKMAP_ERROR_MISMATCH, 5, "number of tokens (300, not 90)");
    assert_non_null(strstr(error.message, "tokmap index"));
    struct tokmap_verify_options verify = TOKMAP_VERIFY_OPTIONS_INIT;
    uint32_t line = 0;
    verify.fault = note_mismatch;
    verify.user = &line;
    assert_int_not_equal(tokmap_dataset_verify(dataset, &verify, NULL, &error), TOKMAP_OK);
    assert_int_equal(line, 5);
    tokmap_dataset_close(dataset);
    made_free(&made);
}

/* One fault in each manifest. line: in which the error is found; 0 for a fault that only the shard shows. */
static void each_fault_is_found(void **unused)
{
    (void)unused;
#define GROUP "# shards: width=2 vocabulary=60000 eod=none bos=none tokenizer=none pages=yes sealed=no\n"
#define ID "00112233445566778899aabbccddeeff"
    static const struct {
        const char *text;
        enum tokmap_status status;
        uint32_t line;
    } cases[] = {
        {"# tokmap manifest 3\nx\n", TOKMAP_ERROR_VERSION, 1},
        {"# tokmap manifest 2\n# no shard\n", TOKMAP_ERROR_NOT_FOUND, 2},
        {"# tokmap manifest 2\nx\t1 1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 2}, /* no line "# shards:" */
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0 1328 " ID, TOKMAP_OK, 0},
        {"# tokmap manifest 2\r\n" GROUP "x \t1 1 0 1328 " ID "\r\n", TOKMAP_OK, 0},
        {"# tokmap manifest 2\n" GROUP " a b\tc \t1 1 0 1328 " ID " 00000000000000ff\n", TOKMAP_OK, 0},
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0 1328 " ID " 0000000000000000\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0 1328 " ID " 00ff\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0 1328 " ID " \n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0 1328 001122\n", TOKMAP_ERROR_FORMAT, 3}, /* the file was cut */
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0 1328 00112233445566778899AABBCCDDEEFF\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t1 1 0\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t1  1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t01 1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t-1 1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t18446744073709551617 1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t2305843009213693953 1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t2305843009213693952 1 0 1328 " ID "\ny\t2305843009213693952 1 0 1328 " ID
         "\n",
         TOKMAP_ERROR_LIMIT, 0}, /* the sum is too large */
        {"# tokmap manifest 2\n" GROUP "x\t1 0 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t1 1 60000 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "x\t0 1 5 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n" GROUP "\t1 1 0 1328 " ID "\n", TOKMAP_ERROR_FORMAT, 3},
        {"# tokmap manifest 2\n# shards: width=3 vocabulary=9\nx\n", TOKMAP_ERROR_FORMAT, 2},
        {"# tokmap manifest 2\n# shards: \nx\n", TOKMAP_ERROR_FORMAT, 2},
        {"# tokmap manifest 2\n# shards: width=2 vocabulary=65537 eod=none bos=none tokenizer=none pages=yes "
         "sealed=no\nx\n",
         TOKMAP_ERROR_FORMAT, 2},
        {"# tokmap manifest 2\n# shards: width=2 vocabulary=9 eod=9 bos=none tokenizer=none pages=yes sealed=no\nx\n",
         TOKMAP_ERROR_FORMAT, 2},
        {"# tokmap manifest 2\n# shards: width=2 vocabulary=9 eod=1 bos=none tokenizer=none pages=yes sealed=no x\nx\n",
         TOKMAP_ERROR_FORMAT, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokmap_dataset *dataset;
        file_write_text(in_folder(folder, "fault"), cases[i].text);
        memset(&error, 0, sizeof error);
        const enum tokmap_status status = tokmap_dataset_open(&dataset, in_folder(folder, "fault"), NULL, &error);
        if (status != cases[i].status || error.line != cases[i].line)
            fail_msg("case %zu: status %d, line %u: %s", i, status, error.line, error.message);
        tokmap_dataset_close(dataset);
    }
}

/* Changes one number of one line, and opens that shard. */
static void a_wrong_number_is_found_when_the_shard_opens(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {500};
    struct made made;
    struct manifest manifest;
    char *text;
    size_t bytes;
    made_new_masked(&made, folder, "number", 2, 60000, sizes, 1);
    state(made.name, in_folder(folder, "number"), 0);
    text = file_read(in_folder(folder, "number"), &bytes);
    MUST(manifest_parse(&manifest, "number", text, bytes, &error));
    const struct manifest_shard right = manifest.shards[0];
    assert_true(right.mask != 0);
    for (int fault = 0; fault < 7; fault++) {
        char line[1000];
        uint8_t content[16];
        char hex[33];
        memcpy(content, right.content, sizeof content);
        content[5] ^= fault == 4;
        for (int i = 0; i < 16; i++)
            (void)snprintf(hex + 2 * i, 3, "%02x", content[i]);
        (void)snprintf(
            line, sizeof line,
            "# tokmap manifest 2\n# shards: width=2 vocabulary=60000 eod=none bos=none tokenizer=none pages=%s "
            "sealed=no\nnumber-0\t%" PRIu64 " %" PRIu64 " %u %" PRIu64 " %s %016" PRIx64 "\n",
            fault == 6 ? "no" : "yes", right.tokens - (fault == 0), right.documents + (fault == 1),
            right.largest_id - (fault == 2), right.index_bytes + 8 * (fault == 3), hex, right.mask + (fault == 5));
        file_write_text(in_folder(folder, "wrong"), line);
        struct tokmap_dataset *dataset = open_as(in_folder(folder, "wrong"), TOKMAP_READ_AUTO);
        expect_line(dataset, 0, TOKMAP_ERROR_MISMATCH, 3, "the line states another ");
        tokmap_dataset_close(dataset);
    }
    manifest_free(&manifest);
    free(text);
    made_free(&made);
}

/* ---- few files ---- */

static struct rlimit files_limit(rlim_t most)
{
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    return before;
}

static struct made many;
static char many_stated[600];

static void many_make(void)
{
    uint64_t sizes[MANY], random = 3;
    if (many.tokens)
        return;
    const struct rlimit before = files_limit(3 * MANY);
    for (uint64_t i = 0; i < MANY; i++)
        sizes[i] = 30 + random_below(&random, 60);
    made_new_masked(&many, folder, "many", 2, 60000, sizes, MANY);
    (void)snprintf(many_stated, sizeof many_stated, "%s/many", folder);
    state(many.name, many_stated, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Delivers a whole epoch, and compares each row. cursor: receives the one after 100 steps. */
static void epoch(const char *name, enum tokmap_reading reading, uint32_t threads, uint32_t io_threads,
                  char cursor[TOKMAP_CURSOR_TEXT])
{
    struct tokmap_run *run;
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct simple_run values = SIMPLE_RUN_INIT;
    static int32_t inputs[8 * ROW], targets[8 * ROW];
    struct tokmap_out out = TOKMAP_OUT_INIT;
    uint64_t rows = 0;
    values.data = name;
    values.seq_len = ROW;
    values.batch = 8;
    values.passes = 1;
    values.reading = reading;
    options.threads = threads;
    options.io_threads = io_threads;
    options.mask_targets = 1;
    options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS;
    out.inputs = inputs;
    out.targets = targets;
    MUST(simple_run_open(&run, &values, &error));
    MUST(tokmap_loader_open(&loader, run, &options, &error));
    enum tokmap_status status;
    uint64_t steps = 0;
    while (!(status = tokmap_loader_next(loader, &out, NULL, &batch, &error))) {
        for (uint64_t i = 0; i < batch.count; i++) {
            const uint64_t first = batch.places[i].first_token;
            for (uint64_t t = 0; t < ROW; t++) {
                const uint64_t next = (first + t + 1) % many.tokens;
                const int32_t target = targets[i * ROW + t];
                assert_true(inputs[i * ROW + t] == (int32_t)made_token(&many, (first + t) % many.tokens));
                if (target == TOKMAP_IGNORE)
                    assert_true(!many.mask[next] || many.starts[next]);
                else
                    assert_true(many.mask[next] && target == (int32_t)made_token(&many, next));
            }
        }
        rows += batch.count;
        if (++steps == 100)
            tokmap_cursor_print(&batch.cursor, cursor);
    }
    if (status != TOKMAP_END)
        must_succeed(status, &error, __FILE__, __LINE__);
    assert_true(rows >= many.tokens / ROW - 8);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

static void an_epoch_needs_few_files(void **unused)
{
    (void)unused;
    char cursor[TOKMAP_CURSOR_TEXT], expected[TOKMAP_CURSOR_TEXT];
    many_make();
    const struct rlimit before = files_limit(3 * MANY); /* by names alone, all shards are open */
    epoch(many.name, TOKMAP_READ_AUTO, 0, 0, expected);
    (void)files_limit(FEW_FILES);
    const int open_before = files_open();
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t threads = 0; threads < 2; threads++) {
            epoch(many_stated, (enum tokmap_reading)reading, threads, 0, cursor);
            assert_string_equal(cursor, expected);
            epoch(many_stated, (enum tokmap_reading)reading, threads, 4, cursor);
            assert_string_equal(cursor, expected);
        }
    assert_int_equal(files_open(), open_before);
    struct tokmap_dataset *dataset = open_as(many_stated, TOKMAP_READ_AUTO);
    assert_int_equal(tokmap_dataset_verify(dataset, NULL, NULL, &error), TOKMAP_ERROR_CORRUPT); /* the largest ids */
    assert_non_null(strstr(error.message, "largest id"));
    assert_true(files_open() <= FEW_FILES / 2 + open_before);
    tokmap_dataset_close(dataset);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void views_stay_valid_while_others_close(void **unused)
{
    (void)unused;
    many_make();
    const struct rlimit before = files_limit(FEW_FILES);
    struct tokmap_dataset *dataset = open_as(many_stated, TOKMAP_READ_MAPPED);
    struct tokmap_span spans[5];
    size_t used;
    uint64_t random = 11;
    uint64_t places[5];
    for (int i = 0; i < 5; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        MUST(tokmap_dataset_shard(dataset, (uint64_t)i * MANY / 5, &shard, &error));
        places[i] = shard.first_token;
        MUST(tokmap_dataset_view(dataset, shard.first_token, shard.tokens, spans + i, 1, &used, &error));
    }
    for (int i = 0; i < 5000; i++) {
        uint16_t token;
        const uint64_t at = random_below(&random, many.tokens);
        MUST(tokmap_dataset_copy(dataset, at, 1, &token, &error));
        assert_int_equal(token, made_token(&many, at));
    }
    for (int i = 0; i < 5; i++)
        for (uint64_t t = 0; t < spans[i].count; t++)
            assert_int_equal(((const uint16_t *)spans[i].tokens)[t], made_token(&many, places[i] + t));
    tokmap_dataset_close(dataset);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A loader that has let a shard go neither names nor populates its pages, whose descriptor and addresses may belong to
 * another file meanwhile. */
static void a_shard_that_was_let_go_is_not_touched(void **unused)
{
    (void)unused;
    many_make();
    const struct rlimit before = files_limit(FEW_FILES);
    struct tokmap_dataset *dataset = open_as(many_stated, TOKMAP_READ_MAPPED);
    const struct tokmap_dataset *sources[] = {dataset};
    const struct residency_options residency_options = {.datasets = sources, .sources = 1, .window = 1};
    const struct gather_options gather_options = {.trust_files = false};
    struct residency *residency;
    struct gather *gather;
    MUST(residency_open(&residency, &residency_options, &error));
    MUST(gather_open(&gather, &residency->sources[0], &gather_options, &error));
    residency->shared.warm = true;
    uint64_t named = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        MUST(tokmap_dataset_shard(dataset, i, &shard, &error));
        const struct tokmap_extent here = {shard.first_token, shard.tokens}, first = {0, 1};
        uint16_t row[100];
        bool cold = false;
        assert_true(shard.tokens <= sizeof row / sizeof row[0]);
        residency_begin(residency, 8);
        for (int turn = 0; turn < 3 && shard.tokens; turn++)
            MUST(gather_row(gather, &here, 1, shard.tokens, row, &cold, &error));
        named += shard.tokens && gather_prefetch(gather, &here) != NULL;
        assert_true(i < 100 || !gather_prefetch(gather, &first));
    }
    assert_true(named > MANY / 2);
    gather_close(gather);
    residency_close(residency);
    tokmap_dataset_close(dataset);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- threads and processes ---- */

struct reader {
    const struct tokmap_dataset *dataset;
    uint64_t random;
    bool right;
};

static void *read_some(void *user)
{
    struct reader *reader = user;
    reader->right = true;
    for (int i = 0; i < 3000 && reader->right; i++) {
        uint16_t token;
        struct tokmap_document document;
        const uint64_t at = random_below(&reader->random, many.tokens);
        reader->right = !tokmap_dataset_copy(reader->dataset, at, 1, &token, NULL) && token == made_token(&many, at) &&
                        !tokmap_dataset_document_at(reader->dataset, at, &document, NULL) &&
                        at - document.first_token < document.tokens;
    }
    return NULL;
}

static void threads_share_the_files(void **unused)
{
    (void)unused;
    pthread_t threads[4];
    struct reader readers[4];
    many_make();
    const struct rlimit before = files_limit(FEW_FILES);
    struct tokmap_dataset *dataset = open_as(many_stated, TOKMAP_READ_AUTO);
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct reader){dataset, 17 + (uint64_t)i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, read_some, &readers[i]), 0);
    }
    /* The address sanitizer's allocator, unlike that of the C library, stays locked in a child that was forked while
     * another thread was allocating: the child's first allocation may then wait forever. So may its first open() in
     * QEMU, whose lock of paths stays locked if another thread was opening a file. */
    const char *sanitizer = getenv("SANITIZE");
    const int forks = getenv("QEMU_LD_PREFIX") || (sanitizer && strstr(sanitizer, "address")) ? 0 : 8;
    int status, children = 0;
    for (int i = 0; i < forks; i++) { /* children, forked while threads open and close shards */
        const pid_t child = fork();
        if (!child) {
            struct reader alone = {dataset, 90 + (uint64_t)i, false};
            (void)read_some(&alone);
            /* In _exit(), the thread sanitizer would report the threads that the child does not have. */
            (void)syscall(SYS_exit_group, alone.right ? 0 : 1);
        }
        children += child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].right);
    }
    assert_int_equal(children, forks);
    tokmap_dataset_close(dataset);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    made_free(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stated_dataset_is_that_of_the_names),
        cmocka_unit_test(shards_open_when_they_are_needed),
        cmocka_unit_test(each_fault_is_found),
        cmocka_unit_test(a_wrong_number_is_found_when_the_shard_opens),
        cmocka_unit_test(an_epoch_needs_few_files),
        cmocka_unit_test(views_stay_valid_while_others_close),
        cmocka_unit_test(a_shard_that_was_let_go_is_not_touched),
        cmocka_unit_test(threads_share_the_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
