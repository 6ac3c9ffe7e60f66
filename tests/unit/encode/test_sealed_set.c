/* SPDX-License-Identifier: MIT */
/*
 * test_sealed_set.c - a set of sealed shards that a killed process has left: after the state was saved, shards were
 * sealed, and the next process continues from the state and ends with the bytes of an undisturbed one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "encode/shard_set.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

#define DOCUMENT 100000 /* tokens; two documents are in a shard */
#define DOCUMENTS 9     /* so there are 5 shards */

static uint64_t sealed_sum;
static long removals_left = -1; /* before the process ends, as if it were killed; -1: it does not */

/* In place of the C library's, for the whole program. */
int unlink(const char *path)
{
    if (removals_left >= 0 && removals_left-- == 0)
        _exit(9);
    return unlinkat(AT_FDCWD, path, 0);
}

static char *about(void *user, const struct shard_totals *shard, uint64_t *bytes)
{
    (void)user;
    (void)shard;
    *bytes = 2;
    return strdup("{}");
}

static const struct shard_writer_seal seal = {.level = 3, .threads = 2};

static struct set_work *work_opened(const char *name, bool keep)
{
    static const char *const endings[] = {""};
    const struct set_work_options options = {.endings = endings, .sets = 1, .sealed = true, .keep = keep};
    struct set_work *work = NULL;
    MUST(set_work_open(&work, name, &options, &error));
    return work;
}

static struct shard_set_options options_of(struct set_work *work)
{
    struct shard_set_options options = {
        .shard = plain_options(2), .work = work, .shard_tokens = 2 * DOCUMENT, .about = about};
    options.shard.seal = &seal;
    return options;
}

static void documents_add(struct shard_set *set, uint64_t first, uint64_t end)
{
    static uint16_t tokens[DOCUMENT];
    for (uint64_t d = first; d < end; d++) {
        const struct corpus_document from = {.record = d};
        const uint64_t text_bytes = 5;
        uint64_t ends[] = {DOCUMENT};
        for (uint64_t i = 0; i < DOCUMENT; i++)
            tokens[i] = (uint16_t)(token_value(d * DOCUMENT + i, 2) >> 6);
        const struct document_run run = {.path = "input",
                                         .tokens = (const char *)tokens,
                                         .count = DOCUMENT,
                                         .ends = ends,
                                         .documents = 1,
                                         .from = &from,
                                         .text_bytes = &text_bytes,
                                         .largest = 1023};
        MUST(shard_set_add(set, &run, &error));
    }
}

static void commit(struct shard_set *set, struct set_work *work)
{
    struct shard_set_result result;
    MUST(shard_set_commit(set, &result, &error));
    assert_int_equal(result.documents, DOCUMENTS);
    assert_int_equal(result.shards, 5);
    sealed_sum = result.sealed_bytes;
    bool ready;
    MUST(set_work_commit(work, &result.shards, false, &ready, &error));
}

/* ---- the state, as a journal has it ---- */

static FILE *pieces;

static int piece_put(void *user, uint32_t kind, const void *bytes, size_t count)
{
    (void)user;
    return fwrite(&kind, sizeof kind, 1, pieces) != 1 || fwrite(&count, sizeof count, 1, pieces) != 1 ||
           (count && fwrite(bytes, count, 1, pieces) != 1);
}

static void save(struct shard_set *set, struct shard_set_state *state)
{
    struct state_sink sink = {.put = piece_put};
    pieces = fopen("pieces", "w");
    assert_non_null(pieces);
    assert_true(shard_set_can_save(set));
    MUST(shard_set_save(set, state, &sink, &error));
    MUST(shard_set_sync(set, &error));
    assert_int_equal(fclose(pieces), 0);
}

static struct shard_set *restored(struct set_work *work, const struct shard_set_state *state)
{
    const struct shard_set_options options = options_of(work);
    struct shard_set *set = NULL;
    uint32_t kind;
    size_t count;
    MUST(shard_set_reopen(&set, &options, state, &error));
    pieces = fopen("pieces", "r");
    assert_non_null(pieces);
    while (fread(&kind, sizeof kind, 1, pieces) == 1) {
        uint8_t *bytes = malloc((size_t)1 << 20);
        assert_int_equal(fread(&count, sizeof count, 1, pieces), 1);
        assert_true(count < (size_t)1 << 20 && fread(bytes, 1, count, pieces) == count);
        MUST(shard_set_load(set, kind, bytes, count, &error));
        free(bytes);
    }
    fclose(pieces);
    MUST(shard_set_restored(set, &error));
    return set;
}

/* ---- tests ---- */

static void files_equal(const char *a, const char *b)
{
    size_t a_bytes, b_bytes;
    uint8_t *one = file_read(a, &a_bytes), *other = file_read(b, &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(one, other, a_bytes);
    free(one);
    free(other);
}

static void reference_make(void)
{
    if (file_exists("ref"))
        return;
    struct set_work *work = work_opened("ref", false);
    const struct shard_set_options options = options_of(work);
    struct shard_set *set = NULL;
    MUST(shard_set_open(&set, &options, &error));
    documents_add(set, 0, DOCUMENTS);
    commit(set, work);
    assert_false(file_exists("ref-00000.bin"));
    assert_false(file_exists("ref.work"));
}

/* Adds documents up to `saved`, saves, adds those up to `killed`, and is killed. */
static struct shard_set_state killed_at(uint64_t saved, uint64_t killed)
{
    struct shard_set_state state;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        struct set_work *work = work_opened("out", false);
        const struct shard_set_options options = options_of(work);
        struct shard_set *set = NULL;
        MUST(shard_set_open(&set, &options, &error));
        documents_add(set, 0, saved);
        save(set, &state);
        shard_set_saved(set);
        file_write("state", &state, sizeof state);
        documents_add(set, saved, killed);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    size_t bytes;
    void *read = file_read("state", &bytes);
    assert_int_equal(bytes, sizeof state);
    memcpy(&state, read, sizeof state);
    free(read);
    return state;
}

/* Compares the set with the reference, and removes it. */
static void set_equal(void)
{
    char path[64], other[64];
    for (unsigned k = 0; k < 5; k++)
        for (int i = 0; i < 2; i++) {
            (void)snprintf(path, sizeof path, "out-%05u%s", k, i ? ".tmx" : ".bin.zst");
            (void)snprintf(other, sizeof other, "ref-%05u%s", k, i ? ".tmx" : ".bin.zst");
            files_equal(path, other);
            assert_int_equal(unlink(path), 0);
        }
    assert_false(file_exists("out.work"));
    assert_int_equal(unlink("out"), 0);
}

static void test_continued(void **unused)
{
    (void)unused;
    assert_int_equal(chdir(folder), 0);
    reference_make();
    const uint64_t whole = sealed_sum;
    /* Killed in the shard that was open, in the next one, and two later. */
    for (uint64_t saved = 1; saved < 6; saved++)
        for (uint64_t killed = saved; killed < DOCUMENTS; killed += 2) {
            const struct shard_set_state state = killed_at(saved, killed);
            char path[64];
            for (uint64_t k = 0; k <= (killed - 1) / 2; k++) {
                /* The plain tokens of the shard that the state has open are there, and those of no sealed one. */
                const bool plain = k == (saved - 1) / 2 || k == (killed - 1) / 2;
                (void)snprintf(path, sizeof path, "out.work/out-%05u.bin.ready.partial", (unsigned)k);
                assert_int_equal(file_exists(path), plain);
                (void)snprintf(path, sizeof path, "out.work/out-%05u.bin.zst.ready", (unsigned)k);
                assert_int_equal(file_exists(path), k < (killed - 1) / 2);
            }
            /* What a kill within the sealing leaves. */
            (void)snprintf(path, sizeof path, "out.work/out-%05u.bin.zst.ready.partial", (unsigned)((saved - 1) / 2));
            file_write_text(path, "half");
            struct set_work *work = work_opened("out", true);
            struct shard_set *set = restored(work, &state);
            documents_add(set, saved, 7);
            struct shard_set_state later;
            save(set, &later);
            shard_set_saved(set);
            assert_int_equal(later.shards, 3);
            for (unsigned k = 0; k < 3; k++) {
                (void)snprintf(path, sizeof path, "out.work/out-%05u.bin.ready.partial", k);
                assert_false(file_exists(path));
            }
            documents_add(set, 7, DOCUMENTS);
            commit(set, work);
            assert_int_equal(sealed_sum, whole);
            set_equal();
        }
}

/* A process that continues is killed, too, before each of the files that it removes. The next one must find them all.
 */
static void test_killed_again(void **unused)
{
    (void)unused;
    assert_int_equal(chdir(folder), 0);
    reference_make();
    int status = 9;
    for (long removals = 0; status; removals++) {
        const struct shard_set_state state = killed_at(1, DOCUMENTS); /* so shards 1 to 4 are later ones */
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            removals_left = removals;
            (void)restored(work_opened("out", true), &state);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_true(status || removals > 8);
        struct set_work *work = work_opened("out", true);
        struct shard_set *set = restored(work, &state);
        documents_add(set, 1, DOCUMENTS);
        commit(set, work);
        set_equal();
    }
}

/* The state is on storage, but the process was killed before it removed the tokens that only an older state needs. */
static void test_tokens_of_an_older_state(void **unused)
{
    (void)unused;
    assert_int_equal(chdir(folder), 0);
    const struct shard_set_state state = killed_at(5, 6);
    assert_int_equal(state.shards, 2);
    file_write_text("out.work/out-00000.bin.ready.partial", "old");
    file_write_text("out.work/out-00001.bin.ready.partial", "old");
    struct set_work *work = work_opened("out", true);
    struct shard_set *set = restored(work, &state);
    assert_false(file_exists("out.work/out-00000.bin.ready.partial"));
    assert_false(file_exists("out.work/out-00001.bin.ready.partial"));
    assert_true(file_exists("out.work/out-00002.bin.ready.partial"));
    shard_set_abandon(set);
    set_work_abandon(work);
    assert_false(file_exists("out.work"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_continued),
        cmocka_unit_test(test_killed_again),
        cmocka_unit_test(test_tokens_of_an_older_state),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
