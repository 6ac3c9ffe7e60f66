/* SPDX-License-Identifier: MIT */
/* test_merge_journal.c - a merge of a shard that ends early is continued. What it has read is not read again, and the
 * shards are those of undisturbed work, whatever its journal says. Nothing here depends on time: with checkpoint_ns 1,
 * each question whether to stop is a checkpoint. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "pack/pack_tasks.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"

#define DOCUMENTS 9000
#define WORK "w/out.work"
#define CHUNKS WORK "/unit-000000.work/chunks-0"
#define SHARD WORK "/shard-000000.work"
#define JOURNAL SHARD "/journal"

enum { PIECE = 16, CHECKPOINT }; /* types of records */
#define PLACES UINT32_MAX        /* kind of the pieces that say where the merge is */

static const struct split split = {.seed = 1, .count = 2, .sets = {{"a", "0.75", 0}, {"b", "0.25", (uint64_t)3 << 62}}};
static const struct shard_writer_seal seal = {.level = 1, .threads = 1};
static struct pack_shuffle shuffle = {.seed = 5, .memory = 64 << 10};
static struct tokenizer *tokenizer;
static struct work_units units;
static struct pack_options pack;
static struct tokmap_error error;
static uint64_t tells, tells_most = UINT64_MAX; /* how often the merge has said where it is */

/* ---- the work ---- */

static bool stop(void *unused)
{
    (void)unused;
    return tells >= tells_most;
}

static void merged(void *unused, uint64_t tokens, uint64_t all)
{
    (void)unused;
    assert_true(tokens <= all);
    tells++;
}

/* Runs the task. A merge ends when it has said so often where it is. */
static enum tokmap_status run(uint64_t most)
{
    static struct pack_result result;
    static const char *const operand[] = {"a.jsonl"};
    struct pack_tasks_outcome outcome;
    const struct pack_tasks_options options = {.pack = &pack,
                                               .operands = operand,
                                               .operand_count = 1,
                                               .units = &units,
                                               .share = {.tasks = 1, .at_once = true}};
    memset(&error, 0, sizeof error);
    tells = 0;
    tells_most = most;
    const enum tokmap_status status = pack_tasks_run(&options, &result, &outcome, &error);
    tells_most = UINT64_MAX;
    return status;
}

/* The work of sorted units, with cuts and without shards. */
static void work_take(void)
{
    scratch_remove("w");
    assert_int_equal(mkdir("w", 0777), 0);
    scratch_double("kept", WORK, ".status");
}

/* longer: each document is longer than a record of a chunk. */
static void work_make(bool sealed, bool longer)
{
    static const char *const columns[] = {"n"};
    static const char *const operand[] = {"a.jsonl"};
    FILE *file = fopen("a.jsonl", "w");
    assert_non_null(file);
    for (int i = 0; i < (longer ? 60 : DOCUMENTS); i++)
        (void)fprintf(file, "{\"text\":\"document %*d\",\"n\":%d}\n", longer ? 9000 : 1, i * 7919 % 10007, i % 5);
    assert_int_equal(fclose(file), 0);
    pack = (struct pack_options){.prefix = "w/out",
                                 .threads = 1,
                                 .tokenizer = tokenizer,
                                 .eod_id = 256,
                                 .bos_id = TOKMAP_NO_ID,
                                 .shard_tokens = longer ? 300000 : 75000,
                                 .unit_bytes = 150000,
                                 .split = &split,
                                 .shuffle = &shuffle,
                                 .seal = sealed ? &seal : NULL,
                                 .checkpoint_ns = 1,
                                 .stop = stop,
                                 .shuffled = merged};
    pack.corpus.field = "text";
    pack.corpus.columns = columns;
    pack.corpus.column_count = 1;
    pack.corpus.record_limit = pack.corpus.document_limit = 1 << 20;
    const struct work_units_options list = {
        .operands = operand, .operand_count = 1, .corpus = &pack.corpus, .unit_bytes = 150000};
    scratch_remove("w");
    scratch_remove("kept");
    scratch_remove("ref");
    assert_int_equal(mkdir("w", 0777), 0);
    assert_int_equal(work_units_list(&units, &list, &error), TOKMAP_OK);
    assert_true(units.count > 1);
    assert_int_equal(run(1), TOKMAP_ERROR_INTERRUPTED); /* in the first shard */
    scratch_remove(SHARD);
    scratch_double(WORK, "kept", ".status");
    work_take();
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(rename("w", "ref"), 0);
    assert_true(file_exists("ref/out.a-00001.tmx") && file_exists("ref/out.b") && !file_exists("ref/out.work"));
}

static void file_same(const char *name)
{
    char path[64], wanted[64];
    size_t bytes, wanted_bytes;
    (void)snprintf(path, sizeof path, "w/%s", name);
    (void)snprintf(wanted, sizeof wanted, "ref/%s", name);
    uint8_t *file = file_read(path, &bytes), *reference = file_read(wanted, &wanted_bytes);
    assert_int_equal(bytes, wanted_bytes);
    assert_memory_equal(file, reference, bytes);
    free(file);
    free(reference);
}

/* The output is that of undisturbed work. */
static void same(void)
{
    static const char *const sets[] = {"a-00000", "a-00001", "b-00000"};
    static const char *const ends[] = {".tmx", ".bin", ".bin.zst"};
    file_same("out.a");
    file_same("out.b");
    for (size_t i = 0; i < 9; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "out.%s%s", sets[i / 3], ends[i % 3]);
        if (i % 3 == 0 || (i % 3 == 2) == (pack.seal != NULL))
            file_same(name);
    }
    assert_false(file_exists(WORK) || file_exists("w/out.partial"));
}

static void byte_invert(const char *name, size_t at)
{
    size_t bytes;
    uint8_t *file = file_read(name, &bytes);
    assert_true(at < bytes);
    file[at] ^= 0xff;
    file_write(name, file, bytes);
    free(file);
}

static size_t bytes_of(const char *name)
{
    struct stat found;
    return stat(name, &found) ? 0 : (size_t)found.st_size;
}

#define TOKENS SHARD "/shard-000000-00000.bin.ready.partial"

/* Makes a file that is changed in place one of its own: scratch_double() makes names. */
static void own_make(const char *name)
{
    size_t bytes;
    uint8_t *file = file_read(name, &bytes);
    assert_int_equal(unlink(name), 0);
    file_write(name, file, bytes);
    free(file);
}

/* Merges a part of the first shard, and keeps the work. */
static void begun_make(bool sealed, bool longer)
{
    work_make(sealed, longer);
    work_take();
    assert_int_equal(run(longer ? 4 : 2), TOKMAP_ERROR_INTERRUPTED);
    assert_true(bytes_of(JOURNAL) > 0 && bytes_of(TOKENS) > 0);
    scratch_remove("begun");
    scratch_double(WORK, "begun", ".status");
}

static void begun_take(void)
{
    scratch_remove("w");
    assert_int_equal(mkdir("w", 0777), 0);
    scratch_double("begun", WORK, ".status");
    own_make(JOURNAL);
    own_make(TOKENS);
    own_make(CHUNKS);
}

/* ---- tests ---- */

/* Every checkpoint is continued: each attempt makes two. */
static void test_ends(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        int ends = 0;
        work_make(sealed, false);
        work_take();
        enum tokmap_status status;
        while ((status = run(2)) == TOKMAP_ERROR_INTERRUPTED && ends < 100)
            ends++;
        if (status)
            fail_msg("status %d after %d ends: %s", (int)status, ends, error.message);
        assert_true(ends > 4);
        same();
        work_units_free(&units);
    }
}

/* What was merged before the last checkpoint is not read again; without the journal it is. */
static void test_continues(void **state)
{
    begun_make(false, false);
    begun_take();
    byte_invert(CHUNKS, 60);
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    same();

    begun_take();
    byte_invert(CHUNKS, 60);
    assert_int_equal(unlink(JOURNAL), 0);
    assert_int_equal(run(UINT64_MAX), TOKMAP_ERROR_CORRUPT);

    /* Without checkpoints, earlier work is removed. */
    begun_take();
    pack.checkpoint_ns = 0;
    assert_int_equal(run(2), TOKMAP_ERROR_INTERRUPTED);
    assert_false(file_exists(JOURNAL));
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    same();
    work_units_free(&units);
}

/* How many records of a type the journal has. */
static uint64_t records_count(uint32_t type)
{
    size_t bytes;
    uint64_t count = 0;
    uint8_t *file = file_read(JOURNAL, &bytes);
    for (size_t begin = 16; begin + 16 <= bytes; begin += 16 + load32(file + begin + 4))
        count += load32(file + begin) == type;
    free(file);
    return count;
}

/* The same with long documents, between which the work is saved, too. */
static void test_long_documents(void **state)
{
    begun_make(false, true);
    assert_true(records_count(CHECKPOINT) > 1); /* the first one is that of the beginning */
    begun_take();
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    same();
    work_units_free(&units);
}

/* A shard that is complete, and whose file cannot be written, is not merged again. */
static void test_unrecorded(void **state)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        begun_make(sealed, false);
        begun_take();
        assert_int_equal(mkdir(WORK "/merged-000000.partial", 0777), 0);
        assert_int_not_equal(run(UINT64_MAX), TOKMAP_OK);
        assert_int_equal(rmdir(WORK "/merged-000000.partial"), 0);
        byte_invert(CHUNKS, 60);
        const enum tokmap_status status = run(UINT64_MAX);
        if (status)
            fail_msg("status %d: %s", (int)status, error.message);
        same();
        work_units_free(&units);
    }
}

/* The texts of another cut may be others, even if all lengths are the same. */
static void test_another_cut(void **state)
{
    begun_make(false, false);
    begun_take();
    assert_int_equal(unlink(WORK "/cuts-000000"), 0);
    byte_invert(CHUNKS, 60);
    assert_int_equal(run(UINT64_MAX), TOKMAP_ERROR_CORRUPT);
    begun_take();
    assert_int_equal(unlink(WORK "/cuts-000000"), 0);
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    same();
    work_units_free(&units);
}

/* A journal, or files of the shard, that are damaged, missing, or of another shard: the merge begins again. */
static void test_damage(void **state)
{
    static const char *const gone[] = {TOKENS, JOURNAL};
    begun_make(false, false);
    const size_t bytes = bytes_of(JOURNAL);
    for (size_t at = 0; at < bytes; at += at < 200 ? 9 : bytes / 20) {
        begun_take();
        byte_invert(JOURNAL, at);
        const enum tokmap_status status = run(UINT64_MAX);
        if (at < 14) { /* it may be a file of the user */
            assert_int_equal(status, TOKMAP_ERROR_CORRUPT);
            assert_int_equal(bytes_of(JOURNAL), bytes);
            continue;
        }
        if (status)
            fail_msg("byte %zu of the journal: status %d: %s", at, (int)status, error.message);
        same();
    }
    for (size_t at = 20; at < bytes; at += bytes / 5) {
        begun_take();
        assert_int_equal(truncate(JOURNAL, (off_t)at), 0);
        assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
        same();
    }
    for (size_t i = 0; i < 2; i++) {
        begun_take();
        assert_int_equal(unlink(gone[i]), 0);
        assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
        same();
    }
    begun_take();
    assert_int_equal(truncate(TOKENS, 100), 0);
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    same();
    begun_take(); /* the journal of another shard */
    assert_int_equal(mkdir(WORK "/shard-000001.work", 0777), 0);
    file_copy(JOURNAL, WORK "/shard-000001.work/journal");
    assert_int_equal(run(UINT64_MAX), TOKMAP_OK);
    same();
    work_units_free(&units);
}

/* Writes another number into a record of a type, and the right hash. Returns false if there are not so many of them, or
 * the record ends before. *places: it is a piece that says where the merge is. */
static bool record_forge(uint32_t type, size_t which, size_t at, uint64_t number, bool *places)
{
    size_t bytes, begin = 16, found = 0;
    uint8_t *file = file_read(JOURNAL, &bytes);
    for (; begin + 16 <= bytes; begin += 16 + load32(file + begin + 4))
        if (load32(file + begin) == type && !which--)
            found = begin;
    const uint32_t count = found ? load32(file + found + 4) : 0;
    *places = type == PIECE && at && count >= 8 && load64(file + found + 8) == PLACES;
    if (at + 8 <= count) {
        store64(file + found + 8 + at, number);
        store64(file + found + 8 + count, hash64_seeded(file + found, 8 + count, found));
        file_write(JOURNAL, file, bytes);
    }
    free(file);
    return at + 8 <= count;
}

/* Forges each number of a record, with the next attempt after each that fails, which makes the shard without the
 * journal. Returns how many numbers that were; *failures counts attempts that ended with a status. */
static uint64_t record_try(uint32_t type, size_t which, uint64_t number, uint64_t *failures)
{
    uint64_t tries = 0;
    bool places;
    /* The first numbers of a piece, and a third of the others. */
    for (size_t at = 0; at <= 160; at += type == PIECE && at >= 72 ? 24 : 8) {
        begun_take();
        if (!record_forge(type, which, at, number, &places))
            break;
        tries++;
        const enum tokmap_status status = run(UINT64_MAX);
        if (!status && places)
            same();
        if (!status)
            continue;
        assert_true(error.message[0]);
        assert_int_not_equal(status, TOKMAP_ERROR_LIMIT); /* a file would grow without end */
        ++*failures;
        if (run(UINT64_MAX))
            fail_msg("record %zu of type %u, byte %zu: after '%s'", which, type, at, error.message);
        same();
    }
    return tries;
}

/* Whoever forges a journal can make its hashes right. What is not of this shard ends with a status or is given up. */
static void test_forged(void **state)
{
    static const uint64_t numbers[] = {0, 1000, UINT64_MAX - 7};
    uint64_t tries = 0, failures = 0, more = 0;
    begun_make(false, false);
    for (uint32_t type = PIECE; type <= CHECKPOINT; type++)
        for (size_t i = 0; i < 3; i++)
            for (size_t which = 0; !which || more; which++, tries += more)
                more = record_try(type, which, numbers[i], &failures);
    assert_true(tries > 100 && failures > 5);
    work_units_free(&units);
}

/* No file here is large, whatever a forged journal says. */
static int merge_setup(void **state)
{
    const struct rlimit limit = {(rlim_t)64 << 20, (rlim_t)64 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return -1;
    return setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL) ? -1 : 0;
}

static int merge_teardown(void **state)
{
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends),           cmocka_unit_test(test_continues),
                                       cmocka_unit_test(test_long_documents), cmocka_unit_test(test_unrecorded),
                                       cmocka_unit_test(test_another_cut),    cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_forged)};
    return cmocka_run_group_tests(tests, merge_setup, merge_teardown);
}
