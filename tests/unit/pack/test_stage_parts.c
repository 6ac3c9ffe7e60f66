/* SPDX-License-Identifier: MIT */
/* test_stage_parts.c - work of stages that ends early is continued: what is damaged after it was read the first time is
 * not read again, and the files are those of undisturbed work. Nothing here depends on time: with checkpoint_ns 1, each
 * batch and each pass ends a part. */
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

#include "common/bytes.h"
#include "common/hash.h"
#include "dedup/drop_resolve.h"
#include "dedup/ngram_table.h"
#include "dedup/unit_scan.h"
#include "pack/pack_stages.h"
#include "support/scratch_folder.h"
#include "work/stage_parts.h"

#define KEY UINT64_C(0x1234567890abcdef)
#define UNITS 2
#define LINES 14000
#define HEADER 64 /* bytes, as stage_file.c says */
#define ENTRY 32
#define JOINED 200 /* a partition */

static const struct minhash_form form = {.words = 2, .bands = 3, .rows = 3};
static const char *const inputs[UNITS][2] = {{"a.jsonl", "b.jsonl"}, {"c.jsonl"}};
static const uint64_t input_counts[UNITS] = {2, 1};
static struct ngram_table *ngrams;
static struct drop_options drop;
static struct pack_options pack;
static uint64_t batches, batches_most;
static uint64_t stops, stops_most = UINT64_MAX; /* questions whether to stop */
static struct unit_scan_options scanning;
static uint64_t cut_at; /* after so many batches a part ends */

/* ---- help ---- */

static struct stage_id scan_id(uint64_t unit)
{
    return scan_file_id(".", KEY, unit);
}

static void batch_count(void *unused, uint64_t stored_bytes)
{
    (void)unused;
    (void)stored_bytes;
    if (++batches == cut_at)
        scanning.stage.checkpoint_ns = 1;
}

static bool batches_stop(void *unused)
{
    (void)unused;
    return batches >= batches_most || ++stops >= stops_most;
}

static void options_set(bool near, uint64_t checkpoint_ns)
{
    drop = (struct drop_options){.duplicates = !near, .minhash = near ? &form : NULL, .ngrams = ngrams};
    pack = (struct pack_options){.prefix = "new", .threads = 1, .vocabulary = 256, .drop = &drop};
    pack.corpus.field = "text";
    pack.corpus.record_limit = pack.corpus.document_limit = 1 << 20;
    pack.compared = batch_count;
    pack.stop = batches_stop;
    pack.checkpoint_ns = checkpoint_ns;
}

/* Scans a unit, and stops after so many batches. */
static enum tokmap_status scan(uint64_t unit, uint64_t most, uint64_t *before, struct tokmap_error *error)
{
    const struct stage_id id = scan_id(unit);
    batches = 0;
    batches_most = most;
    const struct scan_inputs of = {.operands = inputs[unit], .count = input_counts[unit]};
    scanning = pack_scan_options(&pack);
    const enum tokmap_status status = unit_scan_run(&scanning, &of, &id, before, error);
    batches_most = UINT64_MAX;
    return status;
}

static void all_scan(void)
{
    struct tokmap_error error;
    uint64_t before;
    for (uint64_t i = 0; i < UNITS; i++)
        assert_int_equal(scan(i, UINT64_MAX, &before, &error), TOKMAP_OK);
}

static bool exists(const char *name)
{
    struct stat found;
    return !stat(name, &found);
}

/* The parts that a file has. */
static uint64_t parts_count(const char *name)
{
    char part[64];
    uint64_t count = 0;
    do
        (void)snprintf(part, sizeof part, "%s.part-%06d", name, (int)count);
    while (exists(part) && ++count);
    return count;
}

/* Inverts a byte of a file, from its beginning, or, of the section of a stage file, from that of the section. */
static void byte_invert(const char *name, uint64_t section, uint64_t at)
{
    size_t bytes;
    uint8_t *file = file_read(name, &bytes);
    if (section != UINT64_MAX) {
        assert_true(load64(file + HEADER + section * ENTRY + 8) > at);
        at += load64(file + HEADER + section * ENTRY);
    }
    assert_true(at < bytes);
    file[at] ^= 0xff;
    file_write(name, file, bytes);
    free(file);
}

static void same(const char *name, const uint8_t *wanted, size_t wanted_bytes)
{
    size_t bytes;
    uint8_t *file = file_read(name, &bytes);
    assert_int_equal(bytes, wanted_bytes);
    assert_memory_equal(file, wanted, bytes);
    free(file);
}

static enum tokmap_status compare(struct tokmap_error *error)
{
    struct all_scans scans;
    const struct drop_stage stage = pack_scan_options(&pack).stage;
    enum tokmap_status status = all_scans_read(&scans, &stage, ".", KEY, UNITS, error);
    if (!status)
        status = near_resolve_run(&scans, &stage, error);
    all_scans_free(&scans);
    return status;
}

/* ---- scans ---- */

/* A scan continues after its last part: what it has read before may be anything then. */
static void test_scan(void **unused)
{
    (void)unused;
    for (int near = 0; near < 2; near++) {
        struct tokmap_error error;
        uint64_t before, last = 0;
        size_t bytes;
        options_set(near, 0);
        all_scan();
        assert_int_equal(parts_count("scan-000000"), 0);
        uint8_t *wanted = file_read("scan-000000", &bytes);
        assert_int_equal(unlink("scan-000000"), 0);
        options_set(near, 1);
        for (uint64_t i = 1; i < 5; i++) { /* each reads one more batch */
            assert_int_equal(scan(0, 1, &before, &error), TOKMAP_ERROR_INTERRUPTED);
            assert_int_equal(parts_count("scan-000000"), i);
            assert_true(i == 1 ? before == 0 : before > last);
            last = before;
            assert_false(exists("scan-000000"));
            assert_false(exists("scan-000000.partial"));
        }
        byte_invert("a.jsonl", UINT64_MAX, 20);
        assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_OK);
        byte_invert("a.jsonl", UINT64_MAX, 20);
        assert_true(before > last && batches < 5);
        assert_int_equal(parts_count("scan-000000"), 0);
        same("scan-000000", wanted, bytes);
        free(wanted);
    }
}

/* All is read, and the parts are joined: that continues, too. */
static void test_scan_end(void **unused)
{
    (void)unused;
    for (int near = 0; near < 2; near++) {
        struct tokmap_error error;
        uint64_t before;
        size_t bytes;
        options_set(near, 0);
        all_scan();
        uint8_t *wanted = file_read("scan-000000", &bytes);
        assert_int_equal(unlink("scan-000000"), 0);
        options_set(near, 1);
        assert_int_equal(scan(0, 1, &before, &error), TOKMAP_ERROR_INTERRUPTED);
        byte_invert("scan-000000.part-000000", SCAN_FIRST - 1 + 100, 0);
        assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_ERROR_CORRUPT);
        assert_non_null(strstr(error.path, "scan-000000.part-000000"));
        byte_invert("scan-000000.part-000000", SCAN_FIRST - 1 + 100, 0);
        assert_true(exists("scan-000000.partial") && parts_count("scan-000000") > 2);
        byte_invert("scan-000000.part-000000", SCAN_FIRST - 1 + 99, 0);
        byte_invert("a.jsonl", UINT64_MAX, 20);
        assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_OK);
        byte_invert("a.jsonl", UINT64_MAX, 20);
        assert_int_equal(batches, 0);
        assert_int_equal(parts_count("scan-000000"), 0);
        same("scan-000000", wanted, bytes);
        free(wanted);
    }
}

/* Parts of different processes, and damaged ones. */
static void test_scan_parts(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct stage_writer *other;
    const struct stage_id id = scan_id(0);
    uint64_t before;
    size_t bytes, part_bytes;
    options_set(false, 0);
    all_scan();
    uint8_t *wanted = file_read("scan-000000", &bytes);
    options_set(false, 1);
    assert_int_equal(unlink("scan-000000"), 0);

    assert_int_equal(scan(0, 4, &before, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(parts_count("scan-000000"), 4);
    uint8_t *part = file_read("scan-000000.part-000002", &part_bytes);
    file_write("scan-000000.part-000002", part, part_bytes - 1); /* torn */
    assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "scan-000000.part-000002"));
    assert_non_null(strstr(error.message, "remove it, and run all tasks again"));

    /* The one that follows a part that was made again does not belong to it. */
    assert_int_equal(unlink("scan-000000.part-000002"), 0);
    pack.checkpoint_ns = UINT64_MAX;
    assert_int_equal(stage_writer_reopen(&other, &id, &error), TOKMAP_OK);
    assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_ERROR_BUSY);
    stage_writer_free(other);
    cut_at = 2; /* the part has two batches, in place of one */
    assert_int_equal(scan(0, 2, &before, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(parts_count("scan-000000"), 4);
    cut_at = 0;
    pack.checkpoint_ns = UINT64_MAX;
    assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_OK);
    same("scan-000000", wanted, bytes);
    assert_int_equal(parts_count("scan-000000"), 0);
    file_write("scan-000000.part-000003", part, part_bytes); /* nobody's */
    assert_true(stage_is_name("scan-000000.part-000003") && stage_is_name("scan-000000.part-000003.partial"));
    assert_false(stage_is_name("scan-000000.part-") || stage_is_name("scan-000000.part-12.partial"));
    assert_false(stage_is_name("scan-000000.part-000003.part-000001") || stage_is_name("scan-.part-000001"));

    /* A part of another place in the list is refused, whatever its contents are. */
    options_set(false, 1);
    assert_int_equal(unlink("scan-000000"), 0);
    file_write("scan-000000.part-000000", part, part_bytes);
    assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(unlink("scan-000000.part-000000"), 0);
    assert_int_equal(unlink("scan-000000.part-000003"), 0);
    assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_OK);
    same("scan-000000", wanted, bytes);
    free(part);
    free(wanted);
}

/* Makes all hashes of a stage file right. */
static void hashes_make(uint8_t *file)
{
    const uint64_t sections = load64(file + 32);
    for (uint64_t i = 0; i < sections; i++) {
        uint8_t *entry = file + HEADER + i * ENTRY;
        store64(entry + 16, hash64(file + load64(entry), (size_t)load64(entry + 8)));
        store64(entry + 24, hash64_seeded(entry, 24, KEY + i));
    }
    store64(file + 56, hash64(file, 56));
}

/* Hostile numbers in the state of the last part end with an error, or with a file. */
static void state_forge(const char *name, uint64_t state_section, enum tokmap_status (*again)(struct tokmap_error *))
{
    static const uint64_t numbers[] = {0, 3, 256, 1 << 21, INT64_MAX, UINT64_MAX};
    size_t bytes;
    uint64_t errors = 0;
    uint8_t *whole = file_read(name, &bytes), *forged = malloc(bytes);
    assert_non_null(forged);
    const uint64_t begin = load64(whole + HEADER + state_section * ENTRY);
    const uint64_t end = begin + load64(whole + HEADER + state_section * ENTRY + 8);
    for (uint64_t at = begin + 16; at < end; at += 8) /* after the head */
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            struct tokmap_error error = {0};
            memcpy(forged, whole, bytes);
            store64(forged + at, numbers[i]);
            hashes_make(forged);
            file_write(name, forged, bytes);
            const enum tokmap_status status = again(&error);
            if (status && status != TOKMAP_ERROR_CORRUPT && status != TOKMAP_ERROR_LIMIT &&
                status != TOKMAP_ERROR_MISMATCH && status != TOKMAP_ERROR_INPUT)
                fail_msg("number %d at %d: status %d: %s", (int)i, (int)at, (int)status, error.message);
            errors += status != TOKMAP_OK;
        }
    assert_true(errors > 5);
    file_write(name, whole, bytes);
    free(whole);
    free(forged);
}

/* Continues with the scan; what it makes is removed again. */
static enum tokmap_status scan_again(struct tokmap_error *error)
{
    uint64_t before;
    const enum tokmap_status status = scan(0, UINT64_MAX, &before, error);
    (void)unlink("scan-000000");
    (void)unlink("scan-000000.partial");
    for (int i = 1; i < 9; i++) {
        char part[64];
        (void)snprintf(part, sizeof part, "scan-000000.part-%06d", i);
        (void)unlink(part);
    }
    return status;
}

static void test_hostile_scan(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    uint64_t before;
    options_set(false, 1);
    (void)unlink("scan-000000");
    assert_int_equal(scan(0, 1, &before, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(parts_count("scan-000000"), 1);
    state_forge("scan-000000.part-000000", SCAN_SECTIONS - 1, scan_again);
    assert_int_equal(scan(0, UINT64_MAX, &before, &error), TOKMAP_OK);
}

/* ---- the comparison of near-duplicates ---- */

static void test_near(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    size_t bytes, found_bytes;
    options_set(true, 0);
    batches_most = UINT64_MAX;
    all_scan();
    stops = 0;
    assert_int_equal(compare(&error), TOKMAP_OK);
    const uint64_t all = stops;
    uint8_t *wanted = file_read("drops-000000", &bytes);
    assert_int_equal(unlink("drops-000000"), 0);
    assert_true(bytes > HEADER + UNITS * ENTRY + 1000 * 32);

    /* It ends in a partition, and the next process does not read those before. */
    pack.checkpoint_ns = 1;
    byte_invert("scan-000001", SCAN_FIRST + JOINED, 0);
    assert_int_equal(compare(&error), TOKMAP_ERROR_CORRUPT);
    byte_invert("scan-000001", SCAN_FIRST + JOINED, 0);
    assert_int_equal(parts_count("drops-000000"), JOINED);
    byte_invert("scan-000001", SCAN_FIRST + JOINED - 1, 0);
    byte_invert("scan-000000", SCAN_FIRST, 0);
    assert_int_equal(compare(&error), TOKMAP_OK);
    assert_int_equal(parts_count("drops-000000"), 0);
    same("drops-000000", wanted, bytes);
    assert_int_equal(unlink("drops-000000"), 0);
    byte_invert("scan-000001", SCAN_FIRST + JOINED - 1, 0);
    byte_invert("scan-000000", SCAN_FIRST, 0);

    /* It ends while the documents of unit 1 are listed. What is there of unit 0, and of the beginning of unit 1, is not
     * written again: here it is wrong, and stays so. */
    stops = 0;
    stops_most = all - 1;
    assert_int_equal(compare(&error), TOKMAP_ERROR_INTERRUPTED);
    stops_most = UINT64_MAX;
    assert_int_equal(parts_count("drops-000000"), SCAN_PARTITIONS);
    byte_invert("drops-000000.partial", 0, 5);
    byte_invert("scan-000001", SCAN_FIRST + SCAN_PARTITIONS - 1, 0);
    assert_int_equal(compare(&error), TOKMAP_OK);
    assert_int_equal(parts_count("drops-000000"), 0);
    byte_invert("drops-000000", 0, 5);
    same("drops-000000", wanted, bytes);

    /* What was not kept, or is damaged since then, is written again. */
    byte_invert("scan-000001", SCAN_FIRST + SCAN_PARTITIONS - 1, 0);
    assert_int_equal(unlink("drops-000000"), 0);
    stops = 0;
    stops_most = all - 1;
    assert_int_equal(compare(&error), TOKMAP_ERROR_INTERRUPTED);
    stops_most = UINT64_MAX;
    byte_invert("drops-000000.partial", 1, 5);
    assert_int_equal(compare(&error), TOKMAP_OK);
    same("drops-000000", wanted, bytes);
    assert_int_equal(unlink("drops-000000"), 0);
    stops = 0;
    stops_most = all - 1;
    assert_int_equal(compare(&error), TOKMAP_ERROR_INTERRUPTED);
    stops_most = UINT64_MAX;
    uint8_t *partial = file_read("drops-000000.partial", &found_bytes);
    file_write("drops-000000.partial", partial, found_bytes / 2); /* torn */
    free(partial);
    assert_int_equal(compare(&error), TOKMAP_OK);
    same("drops-000000", wanted, bytes);
    free(wanted);
    for (uint64_t i = 0; i < UNITS; i++)
        (void)unlink(i ? "scan-000001" : "scan-000000");
}

static enum tokmap_status compare_again(struct tokmap_error *error)
{
    const enum tokmap_status status = compare(error);
    (void)unlink("drops-000000");
    (void)unlink("drops-000000.partial");
    for (int i = 1; i < SCAN_PARTITIONS; i++) {
        char part[64];
        (void)snprintf(part, sizeof part, "drops-000000.part-%06d", i);
        (void)unlink(part);
    }
    return status;
}

/* Only files of stages are ours, whatever the names of others are. */
static void test_is_ours(void **unused)
{
    (void)unused;
    static const char *const others[] = {"scan-000007", "scan-000007.part-000001", "scan-000007.partial", "journal"};
    struct tokmap_error error;
    struct stage_writer *writer;
    const struct stage_id id = {.folder = ".", .key = KEY, .kind = STAGE_MERGED, .number = 7, .sections = 1};
    for (size_t i = 0; i < 4; i++) {
        file_write_text(others[i], "the user's");
        assert_false(stage_is_ours(".", others[i], false) || stage_is_ours(".", others[i], true));
        file_write_text(others[i], "");
        assert_int_equal(stage_is_ours(".", others[i], false), i == 2);
        assert_int_equal(stage_is_ours(".", others[i], true), i < 3);
        assert_int_equal(unlink(others[i]), 0);
        assert_false(stage_is_ours(".", others[i], true));
    }
    assert_int_equal(stage_writer_open(&writer, &id, &error), TOKMAP_OK);
    assert_int_equal(stage_writer_add(writer, "bytes", 5, &error), TOKMAP_OK);
    assert_int_equal(stage_writer_keep(writer, 1, false, &error), TOKMAP_OK);
    assert_true(stage_is_ours(".", "merged-000007.partial", false));
    assert_int_equal(stage_writer_commit(writer, false, &error), TOKMAP_OK);
    stage_writer_free(writer);
    assert_true(stage_is_ours(".", "merged-000007", false));
    stage_remove(&id);
}

static void test_hostile_near(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct stage_writer *other;
    const struct stage_id id = drops_file_id(".", KEY, 0, UNITS);
    options_set(true, 0);
    all_scan();
    pack.checkpoint_ns = 1;
    byte_invert("scan-000001", SCAN_FIRST + 1, 0);
    assert_int_equal(compare(&error), TOKMAP_ERROR_CORRUPT);
    byte_invert("scan-000001", SCAN_FIRST + 1, 0);
    assert_int_equal(parts_count("drops-000000"), 1);
    pack.checkpoint_ns = UINT64_MAX;
    assert_int_equal(stage_writer_reopen(&other, &id, &error), TOKMAP_OK);
    assert_int_equal(compare(&error), TOKMAP_ERROR_BUSY);
    stage_writer_free(other);
    state_forge("drops-000000.part-000000", 1, compare_again);

    /* A join of a document that does not exist. */
    size_t bytes;
    uint8_t *part = file_read("drops-000000.part-000000", &bytes);
    assert_true(load64(part + HEADER + 8) >= 8);
    store32(part + load64(part + HEADER), 2 * LINES + 3000);
    hashes_make(part);
    file_write("drops-000000.part-000000", part, bytes);
    free(part);
    assert_int_equal(compare(&error), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "drops-000000.part-000000"));
    assert_int_equal(unlink("drops-000000.part-000000"), 0);
    assert_int_equal(compare(&error), TOKMAP_OK);
}

/* ---- inputs ---- */

/* A word of letters, since numbers are all the same to the search for near-duplicates. */
static const char *word_of(uint64_t number, char word[8])
{
    for (int i = 0; i < 4; i++, number /= 26)
        word[i] = (char)('a' + number % 26);
    word[4] = '\0';
    return word;
}

static void input_make(const char *name, uint64_t lines, uint64_t different)
{
    FILE *file = fopen(name, "w");
    char words[4][8];
    assert_non_null(file);
    for (uint64_t i = 0; i < lines; i++) {
        const uint64_t number = i % different;
        (void)fprintf(file, "{\"text\": \"%s of %s with %s and %s is %s\", \"number\": \"%06u\"}\n",
                      word_of(number, words[0]), word_of(number * 7 % 9001, words[1]),
                      word_of(number * 31 % 9001, words[2]), word_of(number * 77 % 9001, words[3]),
                      i % 700 == 5 ? "not to be packed" : "here", (unsigned)i);
    }
    assert_int_equal(fclose(file), 0);
}

static int inputs_setup(void **state)
{
    struct tokmap_error error;
    const char *excluded = "not to be packed";
    (void)setup(state);
    assert_int_equal(chdir(folder), 0);
    input_make("a.jsonl", LINES, LINES * 2 / 3);
    input_make("b.jsonl", 3000, 2000);
    input_make("c.jsonl", LINES, LINES);
    assert_int_equal(ngram_table_new(&ngrams, 3, &error), TOKMAP_OK);
    assert_int_equal(ngram_table_add(ngrams, excluded, strlen(excluded), "excluded.txt", 0, &error), TOKMAP_OK);
    return ngram_table_finish(ngrams, &error);
}

static int inputs_teardown(void **state)
{
    ngram_table_free(ngrams);
    return teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan),         cmocka_unit_test(test_scan_end), cmocka_unit_test(test_scan_parts),
        cmocka_unit_test(test_hostile_scan), cmocka_unit_test(test_near),     cmocka_unit_test(test_hostile_near),
        cmocka_unit_test(test_is_ours),
    };
    return cmocka_run_group_tests(tests, inputs_setup, inputs_teardown);
}
