/* SPDX-License-Identifier: MIT */
/* test_pack_left.c - what another process has left, and inputs that change: a pack in one piece never takes the work of
 * other options for its own, never removes it unasked, and never commits what it has found in two different readings.
 * Nothing here depends on time: with checkpoint_ns 1, each batch ends with a checkpoint. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "pack/pack.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"
#include "work/work_folder.h"

#define DOCUMENTS 20000
#define CHANGED 8700 /* a document that becomes another one, between the pieces that are compared (work_folder.h) */
#define CHECKPOINT_TYPE (WORK_TYPE_FIRST + 2)

enum kind { PLAIN, EXACT, NEAR, NEAR_SHUFFLED };

static const char *const operands[] = {"a.jsonl", "b.jsonl", "a.jsonl", "c.jsonl"};
static const struct minhash_form form = {.words = 2, .bands = 3, .rows = 3};
static struct pack_shuffle shuffle = {.seed = 5, .memory = 65536};
static struct tokenizer *tokenizer;
static struct drop_options drop;
static struct pack_result result;
static struct tokmap_error error;
static uint64_t seen, compared_seen, seen_most, compared_most; /* of batches, and after how many the pack is stopped */
static bool changes, dies, plants; /* at the first batch, c.jsonl changes; after the last one, the process dies */

static int document_write(char *text, int document)
{
    return sprintf(text, "{\"text\":\"document %06d of many, and the rest is %06d\"}\n", document, document * 7 % 9999);
}

static void input_make(const char *name, int first)
{
    char text[100];
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    for (int i = 0; i < DOCUMENTS; i++) {
        const int bytes = document_write(text, first + i);
        assert_int_equal(fwrite(text, 1, (size_t)bytes, file), bytes);
    }
    assert_int_equal(fclose(file), 0);
}

/* Document CHANGED of c.jsonl becomes a duplicate of the one before it, or again what it was. */
static void input_change(bool back)
{
    char text[100];
    const int fd = open("c.jsonl", O_WRONLY), bytes = document_write(text, 5 * DOCUMENTS + CHANGED);
    assert_true(fd >= 0);
    assert_int_equal(document_write(text, 5 * DOCUMENTS + CHANGED - !back), bytes);
    assert_int_equal(pwrite(fd, text, (size_t)bytes, (off_t)bytes * CHANGED), bytes);
    assert_int_equal(close(fd), 0);
}

static int left_setup(void **state)
{
    if (setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL))
        return -1;
    input_make("a.jsonl", 0);
    input_make("b.jsonl", 2 * DOCUMENTS);
    input_make("c.jsonl", 5 * DOCUMENTS);
    return 0;
}

static int left_teardown(void **state)
{
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

static bool stop(void *unused)
{
    (void)unused;
    if (plants && file_exists("out/k.bin.partial")) {
        plants = false;
        assert_int_equal(rename("left", "out/k.work"), 0);
    }
    return seen >= seen_most || compared_seen >= compared_most;
}

static void progress(void *unused, uint64_t bytes)
{
    (void)unused;
    (void)bytes;
    if (!seen++ && changes)
        input_change(false);
    if (dies && seen == seen_most)
        _exit(9);
}

static void compared(void *unused, uint64_t bytes)
{
    (void)unused;
    (void)bytes;
    compared_seen++;
}

static enum tokmap_status packed(enum kind kind, uint64_t memory, uint64_t checkpoint_ns)
{
    struct pack_options options = {.prefix = "out/k",
                                   .threads = 1,
                                   .tokenizer = tokenizer,
                                   .eod_id = 256,
                                   .bos_id = TOKMAP_NO_ID,
                                   .checkpoint_ns = checkpoint_ns,
                                   .drop = kind == PLAIN ? NULL : &drop,
                                   .shuffle = kind == NEAR_SHUFFLED ? &shuffle : NULL,
                                   .progress = progress,
                                   .compared = compared,
                                   .stop = stop};
    drop = (struct drop_options){.duplicates = kind == EXACT, .minhash = kind >= NEAR ? &form : NULL, .memory = memory};
    options.corpus.field = "text";
    options.corpus.record_limit = options.corpus.document_limit = 64 << 20;
    seen = compared_seen = 0;
    memset(&error, 0, sizeof error);
    return pack_run(&options, operands, 4, &result, &error);
}

static void must(enum kind kind, uint64_t memory, uint64_t checkpoint_ns)
{
    seen_most = compared_most = UINT64_MAX;
    if (packed(kind, memory, checkpoint_ns))
        fail_msg("%s", error.message);
    assert_false(file_exists("out/k.work"));
}

static void interrupted(enum kind kind, uint64_t most, uint64_t scanned_most)
{
    seen_most = most;
    compared_most = scanned_most;
    assert_int_equal(packed(kind, UINT64_MAX, 1), TOKMAP_ERROR_INTERRUPTED);
    assert_true(result.kept && file_exists("out/k.work/journal"));
    seen_most = compared_most = UINT64_MAX;
}

static void output_clear(void)
{
    scratch_remove("out");
    assert_int_equal(mkdir("out", 0777), 0);
}

/* Packs undisturbed, into the folder `wanted`. Returns the number of batches. */
static uint64_t wanted_make(enum kind kind)
{
    output_clear();
    must(kind, UINT64_MAX, 0);
    scratch_remove("wanted");
    assert_int_equal(rename("out", "wanted"), 0);
    output_clear();
    return seen;
}

static void same(void)
{
    size_t made_bytes, known_bytes;
    char *made = file_read("out/k.bin", &made_bytes), *known = file_read("wanted/k.bin", &known_bytes);
    assert_int_equal(made_bytes, known_bytes);
    assert_memory_equal(made, known, made_bytes);
    free(made);
    free(known);
}

/* The second reading, for which the table has no room, is compared with the first one before anything says that all is
 * packed: what was found is dropped, and the next command begins again. */
static void test_changed_inputs(void **unused)
{
    (void)unused;
    output_clear();
    changes = true;
    seen_most = compared_most = UINT64_MAX;
    assert_int_equal(packed(EXACT, 0, 1), TOKMAP_ERROR_MISMATCH);
    changes = false;
    assert_non_null(strstr(error.message, "the inputs have changed while they were read"));
    assert_false(result.kept || file_exists("out/k.work") || file_exists("out/k.bin.partial"));
    (void)wanted_make(EXACT);
    must(EXACT, 0, 1);
    same();
    input_change(true);
}

/* The same if the process is killed after its last checkpoint, so that the next one has no document to ask about. */
static void test_changed_and_killed(void **unused)
{
    (void)unused;
    int status;
    const uint64_t batches = wanted_make(EXACT);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        changes = dies = true;
        seen_most = batches;
        compared_most = UINT64_MAX;
        _exit((int)packed(EXACT, 0, 1));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    seen_most = UINT64_MAX;
    assert_int_equal(packed(EXACT, 0, 1), TOKMAP_ERROR_MISMATCH);
    assert_false(result.kept || file_exists("out/k.work"));
    (void)wanted_make(EXACT);
    must(EXACT, 0, 1);
    same();
    input_change(true);
}

/* A pack that saves nothing, and has a folder for its stages, leaves the work of others alone. */
static void test_work_of_others(void **unused)
{
    (void)unused;
    const uint64_t batches = wanted_make(EXACT);
    interrupted(EXACT, 3, UINT64_MAX);
    assert_int_equal(packed(NEAR, UINT64_MAX, 0), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "another --dedup"));
    must(EXACT, UINT64_MAX, 1);
    same();
    assert_true(seen < batches);
}

/* Without saving, it continues what was saved before. */
static void test_unsaved_continues(void **unused)
{
    (void)unused;
    for (enum kind kind = NEAR; kind <= NEAR_SHUFFLED; kind++) {
        const uint64_t batches = wanted_make(kind), scanned = compared_seen;
        assert_true(scanned > 3 && batches > 3);
        interrupted(kind, UINT64_MAX, 3);
        must(kind, UINT64_MAX, 0);
        assert_true(compared_seen < scanned);
        same();
        output_clear();
        interrupted(kind, 3, UINT64_MAX);
        seen_most = 2;
        assert_int_equal(packed(kind, UINT64_MAX, 0), TOKMAP_ERROR_INTERRUPTED);
        assert_true(result.kept);
        must(kind, UINT64_MAX, 0);
        assert_true(!compared_seen && seen < batches);
        same();
    }
}

/* Cuts the journal after the facts and so many pieces. */
static void journal_cut(uint32_t pieces)
{
    size_t count, at = 16;
    char *bytes = file_read("out/k.work/journal", &count);
    for (uint32_t found = 0;; at += 16 + load32(bytes + at + 4)) {
        assert_true(at + 16 <= count);
        const uint32_t type = load32(bytes + at);
        if (type >= WORK_TYPE_FIRST && found++ == pieces)
            break;
        assert_int_not_equal(type, CHECKPOINT_TYPE);
    }
    file_write("out/k.work/journal", bytes, at);
    free(bytes);
}

/* Facts and pieces without a checkpoint cannot be continued, so other commands are not refused because of them. */
static void test_facts_alone(void **unused)
{
    (void)unused;
    (void)wanted_make(PLAIN);
    for (uint32_t pieces = 0; pieces < 2; pieces++) {
        output_clear();
        interrupted(EXACT, 2, UINT64_MAX);
        assert_int_equal(packed(PLAIN, 0, 1), TOKMAP_ERROR_MISMATCH);
        journal_cut(pieces);
        must(PLAIN, 0, 1);
        same();
    }
    output_clear();
    interrupted(NEAR, UINT64_MAX, 3);
    assert_int_equal(packed(PLAIN, 0, 1), TOKMAP_ERROR_MISMATCH);
    must(NEAR, UINT64_MAX, 1);
}

/* Another process may leave a journal between the first look and the first record. What it has saved is of a file that
 * is no more, and this one's records do not go over the facts. */
static void test_left_in_between(void **unused)
{
    (void)unused;
    (void)wanted_make(EXACT);
    interrupted(EXACT, 4, UINT64_MAX);
    scratch_remove("left");
    assert_int_equal(rename("out/k.work", "left"), 0);
    output_clear();
    plants = true;
    interrupted(EXACT, 2, UINT64_MAX);
    assert_false(plants);
    must(EXACT, UINT64_MAX, 1);
    same();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_inputs), cmocka_unit_test(test_changed_and_killed),
        cmocka_unit_test(test_work_of_others), cmocka_unit_test(test_unsaved_continues),
        cmocka_unit_test(test_facts_alone),    cmocka_unit_test(test_left_in_between),
    };
    return cmocka_run_group_tests(tests, left_setup, left_teardown);
}
