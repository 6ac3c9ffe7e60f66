/* SPDX-License-Identifier: MIT */
/* ci: nonroot */
/*
 * test_replaced.c - a shard that is replaced while others read it, and writers that are killed: a reader finds the old
 * shard or the new one at every moment, alone and in a folder, and the next writer cleans up.
 *
 * All versions of the shard have the same number of tokens, so no size gives a mixture away. Every token of version v
 * is v + 1, odd versions have a mask, in which bit i is set if i % (v + 2) is 0.
 *
 *     REPLACED_SECONDS  how long the readers run at least (default: 1 per way of writing)
 *     REPLACED_KILLS    how many writers are killed (default: 60)
 *     TEST_SEED         chooses when they are killed
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/index_reader.h"
#include "format/shard_commit.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

enum { TOKENS = 3000, VERSIONS = 7 };

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Writes one version. Returns a status instead of failing, for child processes. */
static enum tokmap_status version_write(const char *prefix, uint64_t version, bool replace, bool sync)
{
    uint16_t tokens[TOKENS];
    uint8_t bits[TOKENS / 8] = {0};
    uint64_t end = TOKENS;
    struct shard_writer *writer;
    struct shard_writer_options options = plain_options(2);
    options.replace = replace;
    options.sync = sync;
    options.mask = version % 2;
    for (uint64_t i = 0; i < TOKENS; i++) {
        tokens[i] = (uint16_t)(version + 1);
        bits[i / 8] |= (uint8_t)((i % (version + 2) == 0) << i % 8);
    }
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, &error);
    if (!status)
        status = shard_writer_add(writer, tokens, TOKENS, &end, 1, version + 1, &error);
    if (!status && options.mask)
        status = shard_writer_mask(writer, bits, 0, TOKENS, &error);
    if (!status)
        status = shard_writer_commit(writer, "{}", 2, NULL, &error);
    return status;
}

/* Opens a dataset whose last shard is the replaced one, and returns its version. */
static uint64_t version_read(const char *name, uint64_t shards)
{
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    uint16_t tokens[TOKENS];
    uint8_t bits[TOKENS / 8];
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    assert_int_equal(info.shards, shards);
    const uint64_t first = info.tokens - TOKENS;
    MUST(tokmap_dataset_copy(dataset, first, TOKENS, tokens, &error));
    MUST(tokmap_dataset_mask(dataset, first, TOKENS, bits, &error));
    const uint64_t version = info.largest_id - 1;
    assert_true(version < VERSIONS);
    assert_int_equal(info.masked, version % 2);
    for (uint64_t i = 0; i < TOKENS; i++) {
        assert_int_equal(tokens[i], version + 1);
        assert_int_equal(bits[i / 8] >> i % 8 & 1, !info.masked || i % (version + 2) == 0);
    }
    tokmap_dataset_close(dataset);
    return version;
}

static void write_for_ever(const char *prefix, uint64_t version, bool sync)
{
    for (;; version++) {
        const enum tokmap_status status = version_write(prefix, version % VERSIONS, true, sync);
        if (status) {
            char text[1500];
            (void)fprintf(stderr, "the writer failed: %s\n", tokmap_error_print(&error, text, sizeof text));
            _exit(1);
        }
    }
}

static pid_t writer_start(const char *prefix, uint64_t version, bool sync)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        write_for_ever(prefix, version, sync);
    return child;
}

static void writer_kill(pid_t child)
{
    int result;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
}

/* A folder with a shard that stays, of version-like content, and the replaced one, which sorts last. */
static void folder_make(const char *name, char prefix[600], char whole[600])
{
    (void)snprintf(whole, 600, "%s/%s", folder, name);
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(os_make_folder(path), 0);
    (void)snprintf(path, sizeof path, "%s/%s/fixed", folder, name);
    const uint64_t end = 1;
    struct shard_writer *writer;
    struct shard_writer_options options = plain_options(2);
    const uint16_t token = 0;
    MUST(shard_writer_open(&writer, path, &options, &error));
    MUST(shard_writer_add(writer, &token, 1, &end, 1, 0, &error));
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
    (void)snprintf(prefix, 600, "%s/%s/replaced", folder, name);
    MUST(version_write(prefix, 0, false, false));
}

static void readers_find_old_or_new(void **unused)
{
    (void)unused;
    char prefix[600], whole[600];
    folder_make("readers", prefix, whole);
    for (int sync = 0; sync < 2; sync++) {
        const pid_t child = writer_start(prefix, 1, sync);
        const uint64_t until = os_clock_ns() + number_of("REPLACED_SECONDS", 1) * 1000000000u;
        const uint64_t latest = until + 120 * (uint64_t)1000000000; /* on a busy machine, the writer may have to wait */
        uint64_t reads = 0, changes = 0, before = VERSIONS;
        for (uint64_t now = 0; now < (changes > 3 ? until : latest); now = os_clock_ns(), reads++) {
            const uint64_t version = reads % 2 ? version_read(whole, 2) : version_read(prefix, 1);
            changes += version != before;
            before = version;
        }
        writer_kill(child);
        assert_true(changes > 3);
        print_message("%s: %llu reads, %llu changes\n", sync ? "synced" : "not synced", (unsigned long long)reads,
                      (unsigned long long)changes);
    }
}

static uint64_t files_in_folder;

static int count_file(void *user, const char *name)
{
    (void)user;
    (void)name;
    files_in_folder++;
    return 0;
}

static void a_killed_writer_leaves_old_or_new(void **unused)
{
    (void)unused;
    char prefix[600], whole[600];
    folder_make("killed", prefix, whole);
    uint64_t state = number_of("TEST_SEED", 5), seen = 0, pending = 0;
    const uint64_t kills = number_of("REPLACED_KILLS", 60);
    char tokens[610];
    (void)snprintf(tokens, sizeof tokens, "%s.bin", prefix);
    for (uint64_t i = 0; i < kills; i++) {
        const pid_t child = writer_start(prefix, i % VERSIONS, i % 4 == 0);
        os_sleep_ns(random_below(&state, 4000000));
        writer_kill(child);
        pending += !file_exists(tokens);
        const uint64_t version = version_read(prefix, 1);
        assert_int_equal(version_read(whole, 2), version);
        seen |= (uint64_t)1 << version;
        if (i % 10 == 9) { /* the next writer takes everything over */
            MUST(version_write(prefix, i % VERSIONS, true, false));
            assert_int_equal(version_read(whole, 2), i % VERSIONS);
            files_in_folder = 0;
            assert_int_equal(os_folder_list(whole, count_file, NULL), 0);
            assert_in_range(files_in_folder, 4, 5); /* an old mask may stay beside an index that has none */
        }
    }
    assert_true(seen & (seen - 1));
    print_message("%llu kills, %llu of them between the renames\n", (unsigned long long)kills,
                  (unsigned long long)pending);
}

/* ---- leftovers of a first writer ---- */

static void a_first_writer_killed_between_its_renames_is_taken_over(void **unused)
{
    (void)unused;
    for (uint64_t version = 0; version < 2; version++) {
        char prefix[600], index[610], partial[620];
        (void)snprintf(prefix, sizeof prefix, "%s/first%d", folder, (int)version);
        (void)snprintf(index, sizeof index, "%s.tmx", prefix);
        (void)snprintf(partial, sizeof partial, "%s.tmx.partial", prefix);
        MUST(version_write(prefix, version, false, false));
        assert_int_equal(os_rename(index, partial), 0); /* the state after the rename of the tokens */
        MUST(version_write(prefix, version, false, false));
        assert_int_equal(version_read(prefix, 1), version);
        /* A NAME.bin that is not what the leftover says is somebody's own. */
        assert_int_equal(os_rename(index, partial), 0);
        char tokens[610];
        (void)snprintf(tokens, sizeof tokens, "%s.bin", prefix);
        file_write_text(tokens, "precious");
        assert_int_equal(version_write(prefix, version, false, false), TOKMAP_ERROR_EXISTS);
        size_t bytes;
        free(file_read(tokens, &bytes));
        assert_int_equal(bytes, 8);
        /* So is one that only begins like the leftover's. */
        assert_int_equal(remove(tokens), 0);
        MUST(version_write(prefix, version, false, false));
        char *content = file_read(tokens, &bytes);
        content = realloc(content, bytes + 1);
        assert_non_null(content);
        content[bytes] = 1;
        file_write(tokens, content, bytes + 1);
        free(content);
        assert_int_equal(os_rename(index, partial), 0);
        assert_int_equal(version_write(prefix, version, false, false), TOKMAP_ERROR_EXISTS);
        size_t now;
        free(file_read(tokens, &now));
        assert_int_equal(now, bytes + 1);
    }
}

/* A replacement is killed, and then somebody removes the old index. The new files belong to the partial index, so the
 * next writer removes them; the old ones, and what only has such a name, belong to nothing that it knows, and stay. */
static void a_replacement_without_its_old_index_is_taken_over(void **unused)
{
    (void)unused;
    static const char *const endings[] = {".mask", ".bin"};
    for (uint64_t version = 0; version < 2; version++) {
        char prefix[600], index_path[610], partial[620], name[610];
        char *saved[2], *old[2];
        struct index index;
        struct os_stat found;
        (void)snprintf(prefix, sizeof prefix, "%s/moved%d", folder, (int)version);
        (void)snprintf(index_path, sizeof index_path, "%s.tmx", prefix);
        (void)snprintf(partial, sizeof partial, "%s.tmx.partial", prefix);
        MUST(version_write(prefix, 1, false, false));
        MUST(index_open(&index, index_path, &error));
        for (int i = 0; i < 2; i++) {
            (void)snprintf(name, sizeof name, "%s%s", prefix, endings[i]);
            saved[i] = shard_file_replaced(name, index.id);
            old[i] = shard_file_replaced(name, index.id ^ 1);
            assert_true(saved[i] && old[i]);
            assert_int_equal(os_rename(name, saved[i]), 0);
            file_write_text(old[i], "old");
        }
        index_close(&index);
        assert_int_equal(os_rename(index_path, partial), 0);
        MUST(version_write(prefix, version, false, false));
        assert_int_equal(version_read(prefix, 1), version);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(os_stat(saved[i], &found), ENOENT);
            assert_int_equal(os_stat(old[i], &found), 0);
        }
        /* Other bytes under the saved name. */
        MUST(version_write(prefix, 1, true, false));
        file_write_text(saved[1], "precious");
        (void)snprintf(name, sizeof name, "%s.bin", prefix);
        assert_int_equal(os_unlink(name), 0);
        assert_int_equal(os_rename(index_path, partial), 0);
        MUST(version_write(prefix, version, false, false));
        assert_int_equal(version_read(prefix, 1), version);
        assert_int_equal(os_stat(saved[1], &found), 0);
        for (int i = 0; i < 2; i++) {
            free(saved[i]);
            free(old[i]);
        }
    }
}

/* ---- folders ---- */

static void check_refused(const char *name, const char *part)
{
    struct tokmap_dataset *dataset;
    assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.path, part));
    assert_non_null(strstr(error.message, "index (.tmx) is missing"));
}

static void a_folder_does_not_omit_tokens_without_an_index(void **unused)
{
    (void)unused;
    char prefix[600], whole[600];
    folder_make("orphans", prefix, whole);
    assert_int_equal(version_read(whole, 2), 0);
    /* Token files of other programs are no tokens of a shard: Megatron's two files, and llm.c's magic. */
    const uint32_t llmc[256] = {20240520, 1, 0};
    file_write_text(in_folder(folder, "orphans/other.bin"), "text");
    file_write(in_folder(folder, "orphans/other.idx"), "MMIDIDX\0\0", 9);
    file_write(in_folder(folder, "orphans/llmc.bin"), llmc, sizeof llmc);
    assert_int_equal(version_read(whole, 2), 0);
    /* A file of bytes without a magic may be. So may one in a folder below. */
    assert_int_equal(os_unlink(in_folder(folder, "orphans/other.idx")), 0);
    check_refused(whole, "orphans/other.bin");
    assert_int_equal(os_unlink(in_folder(folder, "orphans/other.bin")), 0);
    assert_int_equal(os_make_folder(in_folder(folder, "orphans/below")), 0);
    file_write_text(in_folder(folder, "orphans/below/x.bin"), "text");
    check_refused(whole, "orphans/below/x.bin");
    assert_int_equal(os_unlink(in_folder(folder, "orphans/below/x.bin")), 0);
    file_write_text(in_folder(folder, "orphans/new.tmx.partial"),
                    ""); /* a shard that is being written is not one yet */
    file_write_text(in_folder(folder, "orphans/new.bin.partial"), "");
    assert_int_equal(version_read(whole, 2), 0);
}

/* Opens a dataset whose index is missing and appears after 30 ms. Returns the status. */
static enum tokmap_status open_before_its_index(const char *name, const char *partial, const char *index)
{
    struct tokmap_dataset *dataset = NULL;
    int result;
    assert_int_equal(os_rename(index, partial), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        os_sleep_ns(30000000);
        _exit(os_rename(partial, index) != 0);
    }
    const enum tokmap_status status = tokmap_dataset_open(&dataset, name, NULL, &error);
    if (!status)
        tokmap_dataset_close(dataset);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    return status;
}

static void an_index_that_appears_is_awaited(void **unused)
{
    (void)unused;
    char prefix[600], whole[600], index[610], partial[620];
    folder_make("awaited", prefix, whole);
    (void)snprintf(index, sizeof index, "%s.tmx", prefix);
    (void)snprintf(partial, sizeof partial, "%s.tmx.partial", prefix);
    for (int way = 0; way < 2; way++) {
        /* On a busy machine the child may be delayed for longer than an index is awaited, so one of some must do. */
        enum tokmap_status status = TOKMAP_ERROR_MISMATCH;
        for (int i = 0; i < 20 && status; i++)
            status = open_before_its_index(way ? whole : prefix, partial, index);
        MUST(status);
        assert_int_equal(way ? version_read(whole, 2) : version_read(prefix, 1), 0);
    }
    assert_int_equal(os_rename(index, partial), 0);
    check_refused(whole, "awaited/replaced.bin");
}

/* ---- folders that users share ---- */

static void a_partial_file_of_somebody_else_is_never_adopted(void **unused)
{
    (void)unused;
    enum { NOBODY = 65534 };
    const char *index = in_folder(folder, "shared.tmx"), *partial = in_folder(folder, "shared.tmx.partial");
    const mode_t mask = umask(027);
    struct stat found;
    if (!os_is_root()) {
        print_message("skipped: only root can make a file of another user\n");
    } else {
        file_write_text(partial, "planted");
        assert_int_equal(chown(partial, NOBODY, NOBODY), 0);
        assert_int_equal(chmod(partial, 0666), 0);
        MUST(version_write(in_folder(folder, "shared"), 0, false, false));
        assert_int_equal(stat(index, &found), 0);
        assert_int_equal(found.st_uid, 0);
        assert_int_equal(found.st_mode & 07777, 0640);
    }
    /* A second name, by which somebody could change the file later, and the mode of a leftover of one's own. */
    const char *other = in_folder(folder, "other-name");
    file_write_text(partial, "planted");
    assert_int_equal(chmod(partial, 0666), 0);
    assert_int_equal(link(partial, other), 0);
    MUST(version_write(in_folder(folder, "shared"), 0, true, false));
    assert_int_equal(stat(index, &found), 0);
    assert_int_equal(found.st_nlink, 1);
    assert_int_equal(found.st_mode & 07777, 0640);
    size_t bytes;
    free(file_read(other, &bytes));
    assert_int_equal(bytes, 7);
    (void)umask(mask);
}

static void new_files_have_the_mode_that_the_umask_leaves(void **unused)
{
    (void)unused;
    static const mode_t masks[] = {0, 002, 022, 077};
    static const char *const names[] = {"modes.tmx", "modes.bin", "modes.mask"};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        const mode_t mask = umask(masks[i]);
        MUST(version_write(in_folder(folder, "modes"), 1 + 2 * (i % 2), true, true));
        (void)umask(mask);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            struct stat found;
            assert_int_equal(stat(in_folder(folder, names[k]), &found), 0);
            assert_int_equal(found.st_mode & 07777, 0666 & ~masks[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_find_old_or_new),
        cmocka_unit_test(a_killed_writer_leaves_old_or_new),
        cmocka_unit_test(a_first_writer_killed_between_its_renames_is_taken_over),
        cmocka_unit_test(a_replacement_without_its_old_index_is_taken_over),
        cmocka_unit_test(a_folder_does_not_omit_tokens_without_an_index),
        cmocka_unit_test(an_index_that_appears_is_awaited),
        cmocka_unit_test(a_partial_file_of_somebody_else_is_never_adopted),
        cmocka_unit_test(new_files_have_the_mode_that_the_umask_leaves),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
