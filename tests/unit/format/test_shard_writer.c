/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_shard_writer.c - a shard holds exactly what was added, whatever the sizes of the calls, and its files appear
 * under their names either complete or not at all.
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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "format/layout.h"
#include "format/shard_save.h"
#include "format/write_behind.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static uint64_t files_in_folder;

static int count_file(void *user, const char *name)
{
    (void)user;
    (void)name;
    files_in_folder++;
    return 0;
}

static uint64_t count_files(const char *path)
{
    files_in_folder = 0;
    assert_int_equal(os_folder_list(path, count_file, NULL), 0);
    return files_in_folder;
}

static struct shard_writer *open_threaded(const char *name, uint32_t width, bool replace, bool own_thread)
{
    struct shard_writer_options options = plain_options(width);
    options.replace = replace;
    options.own_thread = own_thread;
    struct shard_writer *writer;
    MUST(shard_writer_open(&writer, in_folder(folder, name), &options, &error));
    return writer;
}

static struct shard_writer *open_plain(const char *name, uint32_t width, bool replace)
{
    return open_threaded(name, width, replace, false);
}

/* Adds the same tokens in calls of one token to several blocks, with documents in parts and several documents in a
 * call, by a writer with and without a thread of its own. The files are the same bytes each time, and verify finds no
 * fault. */
static void sizes_of_calls_do_not_matter(void **unused)
{
    (void)unused;
    enum { TOKENS = 3500000 };
    uint16_t *tokens = malloc(TOKENS * sizeof *tokens);
    assert_non_null(tokens);
    for (uint64_t i = 0; i < TOKENS; i++)
        tokens[i] = (uint16_t)token_value(i, 2);
    static uint64_t cuts[100000]; /* where documents end */
    uint64_t documents = 0, state = 5;
    for (uint64_t at = 0; at < TOKENS;) {
        at += min64(TOKENS - at, random_below(&state, documents % 500 ? 60 : 900000));
        cuts[documents++] = at;
    }
    uint8_t *expected[2] = {NULL, NULL};
    size_t expected_bytes[2] = {0, 0};
    for (int round = 0; round < 11; round++) {
        static const uint64_t largest_call[] = {TOKENS,  40,    5000,  70000,   600000, 1 << 17,
                                                1 << 19, 16385, 70000, 1 << 19, 1 << 20};
        struct shard_writer *writer = open_threaded("calls", 2, true, round > 7);
        uint64_t at = 0, document = 0;
        while (at < TOKENS) {
            uint64_t count = min64(TOKENS - at, 1 + random_below(&state, largest_call[round]));
            uint64_t ends[20000], used = 0;
            if (round == 0)
                count = TOKENS;
            while (document < documents && cuts[document] <= at + count && used < 20000)
                ends[used++] = cuts[document++] - at;
            if (document < documents && cuts[document] <= at + count)
                count = ends[used - 1]; /* ends[] is full: the rest follows in the next call */
            MUST(shard_writer_add(writer, tokens + at, count, ends, used, 65535, &error));
            at += count;
        }
        assert_int_equal(shard_writer_tokens(writer), TOKENS);
        assert_int_equal(shard_writer_documents(writer), documents);
        MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
        for (int i = 0; i < 2; i++) {
            size_t bytes;
            uint8_t *found = file_read(in_folder(folder, i ? "calls.tmx" : "calls.bin"), &bytes);
            if (!expected[i]) {
                expected[i] = found;
                expected_bytes[i] = bytes;
                continue;
            }
            assert_int_equal(bytes, expected_bytes[i]);
            assert_true(!memcmp(found, expected[i], bytes));
            free(found);
        }
    }
    assert_int_equal(expected_bytes[0], TOKENS * 2);
    assert_true(!memcmp(expected[0], tokens, TOKENS * 2));
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "calls"), NULL, &error));
    enum tokmap_status status = tokmap_dataset_verify(dataset, NULL, NULL, &error);
    if (status) /* the recorded largest id is 65535; if no token happens to have it, verify must say so */
        assert_non_null(strstr(error.message, "largest"));
    for (uint64_t d = 0; d < documents; d += 7) {
        struct tokmap_document document;
        MUST(tokmap_dataset_document(dataset, d, &document, &error));
        assert_int_equal(document.first_token, d ? cuts[d - 1] : 0);
        assert_int_equal(document.first_token + document.tokens, cuts[d]);
    }
    tokmap_dataset_close(dataset);
    free(expected[0]);
    free(expected[1]);
    free(tokens);
}

/* More documents, runs, and files than any buffer of the writer holds. */
static void sections_larger_than_the_buffers_are_complete(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 60000 };
    struct shard_writer *writer = open_plain("spill", 4, false);
    for (uint32_t d = 0; d < DOCUMENTS; d++) {
        char path[40];
        int bytes = snprintf(path, sizeof path, "folder/file-%u", d / 2);
        uint64_t end = d % 3 == 0;
        MUST(shard_writer_origin(writer, path, (uint64_t)bytes, d % 2 ? 10 : 5, &error));
        MUST(shard_writer_add(writer, &d, end, &end, 1, d, &error));
    }
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "spill"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    for (uint64_t d = 0; d < DOCUMENTS; d += 13) {
        char path[40];
        struct tokmap_origin origin;
        MUST(tokmap_dataset_origin(dataset, d, &origin, &error));
        (void)snprintf(path, sizeof path, "folder/file-%llu", (unsigned long long)d / 2);
        assert_int_equal(origin.path_bytes, strlen(path));
        assert_memory_equal(origin.path, path, strlen(path));
        assert_int_equal(origin.record, d % 2 ? 10 : 5);
    }
    tokmap_dataset_close(dataset);
}

/* With options.mixed, documents of many files alternate, and the index names each file once, in the order of their
 * first documents. */
static void mixed_files_are_named_once(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 20000, FILES = 3000 };
    struct shard_writer_options options = {
        .width = 2, .vocabulary = 65536, .eod_id = TOKMAP_NO_ID, .bos_id = TOKMAP_NO_ID, .mixed = true};
    struct shard_writer *writer;
    uint64_t sizes[2];
    for (int mixed = 0; mixed < 2; mixed++) {
        const char *name = mixed ? "mixed" : "unmixed";
        options.mixed = mixed;
        MUST(shard_writer_open(&writer, in_folder(folder, name), &options, &error));
        for (uint32_t d = 0; d < DOCUMENTS; d++) {
            char path[40];
            /* File 0 has the empty path. */
            const int bytes = d % FILES ? snprintf(path, sizeof path, "file-%u", d * 7 % FILES) : 0;
            const uint64_t end = 0;
            MUST(shard_writer_origin(writer, path, (uint64_t)bytes, d / 2, &error));
            MUST(shard_writer_add(writer, "", 0, &end, 1, 0, &error));
        }
        MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, name), NULL, &error));
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        for (uint64_t d = 0; d < DOCUMENTS; d += 3) {
            char path[40] = "";
            struct tokmap_origin origin;
            MUST(tokmap_dataset_origin(dataset, d, &origin, &error));
            if (d % FILES)
                (void)snprintf(path, sizeof path, "file-%llu", (unsigned long long)d * 7 % FILES);
            assert_int_equal(origin.path_bytes, strlen(path));
            assert_memory_equal(origin.path, path, strlen(path));
            assert_int_equal(origin.record, d / 2);
        }
        tokmap_dataset_close(dataset);
        free(file_read(in_folder(folder, mixed ? "mixed.tmx" : "unmixed.tmx"), &sizes[mixed]));
    }
    /* The same but for the files that are named again: 8 bytes and a path of 6 to 9 bytes each. */
    assert_in_range(sizes[0] - sizes[1], (DOCUMENTS - FILES) * 14, (DOCUMENTS - FILES) * 17);
}

static void empty_shards_can_be_written_and_opened(void **unused)
{
    (void)unused;
    struct shard_writer *writer = open_plain("nothing", 2, false);
    MUST(shard_writer_origin(writer, "unread", 6, 0, &error));
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    writer = open_plain("blank", 2, false);
    uint64_t ends[] = {0, 0};
    MUST(shard_writer_add(writer, NULL, 0, ends, 2, 0, &error));
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    static const char *const names[] = {"nothing", "blank"};
    for (int i = 0; i < 2; i++) {
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, names[i]), NULL, &error));
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
        assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
        assert_int_equal(info.tokens, 0);
        assert_int_equal(info.documents, i ? 2 : 0);
        struct tokmap_document document;
        assert_int_equal(tokmap_dataset_document_at(dataset, 0, &document, &error), TOKMAP_ERROR_RANGE);
        size_t used;
        MUST(tokmap_dataset_view(dataset, 0, 0, NULL, 0, &used, &error));
        tokmap_dataset_close(dataset);
    }
}

static void added_zeros_are_tokens(void **unused)
{
    (void)unused;
    struct shard_writer *writer = open_plain("zeros", 2, false);
    uint16_t some[] = {1, 2, 3};
    uint64_t end = 3, tokens = 0;
    static const uint64_t counts[] = {5, 600000, 0, 1 << 20, (1 << 19) - 3, 1, 3000000, 524285};
    for (int i = 0; i < 8; i++) {
        MUST(shard_writer_add(writer, some, 3, &end, 1, 3, &error));
        MUST(shard_writer_add_zeros(writer, counts[i], &error));
        tokens += 3 + counts[i];
        assert_int_equal(shard_writer_tokens(writer), tokens);
    }
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "zeros"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    tokens = 0;
    for (uint64_t i = 0; i < 8; i++) {
        uint16_t found[4] = {9, 9, 9, 9};
        MUST(tokmap_dataset_copy(dataset, tokens, counts[i] ? 4 : 3, found, &error));
        assert_memory_equal(found, some, sizeof some);
        assert_int_equal(found[3], counts[i] ? 0 : 9);
        tokens += 3 + counts[i];
    }
    tokmap_dataset_close(dataset);
}

/* ---- names ---- */

static void nothing_is_visible_before_the_commit(void **unused)
{
    (void)unused;
    struct shard_writer *writer = open_plain("hidden", 2, false);
    uint16_t token = 1;
    uint64_t end = 1;
    MUST(shard_writer_add(writer, &token, 1, &end, 1, 1, &error));
    assert_false(file_exists(in_folder(folder, "hidden.bin")));
    assert_false(file_exists(in_folder(folder, "hidden.tmx")));
    assert_true(file_exists(in_folder(folder, "hidden.bin.partial")));
    assert_true(file_exists(in_folder(folder, "hidden.tmx.partial")));
    uint8_t content[16] = {0}, zero[16] = {0};
    MUST(shard_writer_commit(writer, NULL, 0, content, &error));
    assert_memory_not_equal(content, zero, 16);
    assert_true(file_exists(in_folder(folder, "hidden.bin")));
    assert_true(file_exists(in_folder(folder, "hidden.tmx")));
    assert_false(file_exists(in_folder(folder, "hidden.bin.partial")));
    assert_false(file_exists(in_folder(folder, "hidden.tmx.partial")));
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "hidden"), NULL, &error));
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_memory_equal(info.content, content, 16);
    tokmap_dataset_close(dataset);
}

static void an_aborted_writer_leaves_no_files(void **unused)
{
    (void)unused;
    uint64_t before = count_files(folder), ends[] = {3};
    struct shard_writer *writer = open_plain("given-up", 2, false);
    shard_writer_abort(writer);
    shard_writer_abort(NULL);
    assert_int_equal(count_files(folder), before);
    shard_make(in_folder(folder, "kept"), 2, 0, ends, 1);
    size_t bytes, bytes_after;
    uint8_t *index = file_read(in_folder(folder, "kept.tmx"), &bytes);
    writer = open_plain("kept", 2, true);
    shard_writer_abort(writer);
    uint8_t *after = file_read(in_folder(folder, "kept.tmx"), &bytes_after);
    assert_int_equal(bytes, bytes_after);
    assert_memory_equal(index, after, bytes);
    assert_int_equal(count_files(folder), before + 2);
    free(index);
    free(after);
}

static void an_existing_output_is_kept_without_replace(void **unused)
{
    (void)unused;
    uint64_t ends[] = {3};
    shard_make(in_folder(folder, "there"), 2, 0, ends, 1);
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer = (void *)folder;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "there"), &options, &error), TOKMAP_ERROR_EXISTS);
    assert_null(writer);
    assert_int_equal(os_unlink(in_folder(folder, "there.tmx")), 0);
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "there"), &options, &error), TOKMAP_ERROR_EXISTS);
    assert_false(file_exists(in_folder(folder, "there.tmx.partial")));
    /* A file that appears while a shard is written, made by a program that does not use the lock. */
    writer = open_plain("sudden", 2, false);
    file_write(in_folder(folder, "sudden.bin"), "mine", 4);
    assert_int_equal(shard_writer_commit(writer, NULL, 0, NULL, &error), TOKMAP_ERROR_EXISTS);
    assert_false(file_exists(in_folder(folder, "sudden.tmx")));
    assert_false(file_exists(in_folder(folder, "sudden.tmx.partial")));
    assert_false(file_exists(in_folder(folder, "sudden.bin.partial")));
    size_t bytes;
    free(file_read(in_folder(folder, "sudden.bin"), &bytes));
    assert_int_equal(bytes, 4);
}

static void a_second_writer_is_refused(void **unused)
{
    (void)unused;
    struct shard_writer *writer = open_plain("busy", 2, true), *second;
    struct shard_writer_options options = plain_options(2);
    options.replace = true;
    assert_int_equal(shard_writer_open(&second, in_folder(folder, "busy"), &options, &error), TOKMAP_ERROR_BUSY);
    uint16_t token = 1;
    uint64_t end = 1;
    MUST(shard_writer_add(writer, &token, 1, &end, 1, 1, &error));
    MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
    second = open_plain("busy", 2, true);
    shard_writer_abort(second);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "busy"), NULL, &error));
    tokmap_dataset_close(dataset);
}

static void files_of_a_killed_writer_are_overwritten(void **unused)
{
    (void)unused;
    file_write(in_folder(folder, "left.bin.partial"), "old tokens, longer than the new ones", 36);
    file_write(in_folder(folder, "left.tmx.partial"), "an old index", 12);
    uint64_t ends[] = {2};
    shard_make(in_folder(folder, "left"), 2, 0, ends, 1);
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "left"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    tokmap_dataset_close(dataset);
    /* But the writer does not write through a symbolic link that has the name of its file. */
    file_write(in_folder(folder, "precious"), "precious", 8);
    assert_int_equal(symlink("precious", in_folder(folder, "trap.tmx.partial")), 0);
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "trap"), &options, &error), TOKMAP_ERROR_IO);
    size_t bytes;
    free(file_read(in_folder(folder, "precious"), &bytes));
    assert_int_equal(bytes, 8);
}

/* Several processes write the same name again and again. Each gets the lock or is refused, and a reader finds a
 * complete shard of one of them at any time and at the end. */
static void racing_writers_leave_complete_shards(void **unused)
{
    (void)unused;
    enum { WRITERS = 6, ROUNDS = 3000 };
    const uint64_t until = os_clock_ns() + 2000000000u;
    const char *prefix = in_folder(folder, "race");
    for (int w = 0; w < WRITERS; w++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child)
            continue;
        int bad = 0;
        for (int i = 0; i < ROUNDS && os_clock_ns() < until; i++) {
            struct shard_writer_options options = plain_options(2);
            options.replace = true;
            struct shard_writer *writer;
            enum tokmap_status status = shard_writer_open(&writer, prefix, &options, &error);
            if (status == TOKMAP_ERROR_BUSY)
                continue;
            bad |= status != TOKMAP_OK;
            if (status)
                break;
            uint16_t tokens[300];
            for (int t = 0; t < 300; t++)
                tokens[t] = (uint16_t)(w + 1);
            uint64_t end = (uint64_t)(w + 1) * 10;
            bad |= shard_writer_add(writer, tokens, end, &end, 1, (uint64_t)w + 1, &error) != TOKMAP_OK;
            bad |= shard_writer_commit(writer, NULL, 0, NULL, &error) != TOKMAP_OK;
        }
        _exit(bad);
    }
    uint64_t opened = 0;
    for (int running = WRITERS; running;) {
        int result;
        if (waitpid(-1, &result, WNOHANG) > 0) {
            assert_int_equal(result, 0);
            running--;
        }
        struct tokmap_dataset *dataset;
        enum tokmap_status status = tokmap_dataset_open(&dataset, prefix, NULL, &error);
        if (status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_BUSY)
            continue;
        must_succeed(status, &error, __FILE__, __LINE__);
        if (opened++ % 32 == 0)
            MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        tokmap_dataset_close(dataset);
    }
    struct tokmap_dataset *dataset;
    MUST(tokmap_dataset_open(&dataset, prefix, NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    tokmap_dataset_close(dataset);
    assert_false(file_exists(in_folder(folder, "race.bin.partial")));
    assert_false(file_exists(in_folder(folder, "race.tmx.partial")));
}

/* ---- wrong arguments and failed writes ---- */

static void bad_arguments_are_refused(void **unused)
{
    (void)unused;
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    uint64_t before = count_files(folder);
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, ""), &options, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(shard_writer_open(&writer, "", &options, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "no/such"), &options, &error),
                     TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "the folder of the output does not exist; create it with 'mkdir -p'"));
    options.width = 3;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "x"), &options, &error), TOKMAP_ERROR_ARGUMENT);
    options.width = 2;
    options.vocabulary = 65537;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "x"), &options, &error), TOKMAP_ERROR_ARGUMENT);
    options.vocabulary = 100;
    options.eod_id = 100;
    assert_int_equal(shard_writer_open(&writer, in_folder(folder, "x"), &options, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(count_files(folder), before);
    options.eod_id = 99;
    MUST(shard_writer_open(&writer, in_folder(folder, "x"), &options, &error));
    uint16_t tokens[] = {1, 2, 3, 4};
    uint64_t falling[] = {3, 2}, behind[] = {5}, end = 4;
    assert_int_equal(shard_writer_add(writer, tokens, 4, falling, 2, 4, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(shard_writer_add(writer, tokens, 4, behind, 1, 4, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(shard_writer_add(writer, tokens, 4, &end, 1, 100, &error), TOKMAP_ERROR_TOKEN);
    assert_int_equal(shard_writer_add_zeros(writer, UINT64_MAX / 2, &error), TOKMAP_ERROR_LIMIT);
    /* A refused call does not change the writer. */
    MUST(shard_writer_add(writer, tokens, 4, &end, 1, 4, &error));
    assert_int_equal(shard_writer_origin(writer, "late", 4, 0, &error), TOKMAP_ERROR_ARGUMENT);
    MUST(shard_writer_add(writer, tokens, 2, NULL, 0, 4, &error));
    assert_int_equal(shard_writer_commit(writer, NULL, 0, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(count_files(folder), before);
}

/* A limit on the size of files imitates a full file system. The thread of the writer tells the next call that the
 * write of an earlier one failed, also if that is the commit. Returns 0 if all of this holds. */
static int full_check(bool own_thread)
{
    static uint32_t tokens[1 << 18]; /* 1 MiB */
    const struct rlimit limit = {3 << 20, 3 << 20};
    const uint64_t end = 1 << 18;
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails, not the process */
    int bad = setrlimit(RLIMIT_FSIZE, &limit);
    struct shard_writer *writer = open_threaded("full", 4, false, own_thread);
    enum tokmap_status status = TOKMAP_OK;
    for (int i = 0; i < 10 && !status; i++)
        status = shard_writer_add(writer, tokens, end, &end, 1, 0, &error);
    bad |= status != TOKMAP_ERROR_IO || error.system != EFBIG || !strstr(error.path, "full.bin.partial");
    bad |= shard_writer_add(writer, tokens, 1, NULL, 0, 0, &error) != TOKMAP_ERROR_ARGUMENT;
    bad |= shard_writer_commit(writer, NULL, 0, NULL, &error) != TOKMAP_ERROR_ARGUMENT;
    writer = open_threaded("full", 4, false, own_thread);
    for (int i = 0; i < 3 && !bad; i++)
        bad |= shard_writer_add(writer, tokens, end, &end, 1, 0, &error) != TOKMAP_OK;
    const uint64_t last = own_thread ? 1 << 16 : 100; /* a whole piece, or what only the commit writes */
    bad |= shard_writer_add(writer, tokens, last, &last, 1, 0, &error) != TOKMAP_OK;
    bad |= shard_writer_commit(writer, NULL, 0, NULL, &error) != TOKMAP_ERROR_IO || error.system != EFBIG ||
           !strstr(error.path, "full.bin.partial");
    return bad;
}

static void a_failed_write_ends_the_writer(void **unused)
{
    (void)unused;
    for (int own_thread = 0; own_thread < 2; own_thread++) {
        int result;
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child)
            _exit(full_check(own_thread));
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
        assert_false(file_exists(in_folder(folder, "full.bin.partial")));
        assert_false(file_exists(in_folder(folder, "full.tmx.partial")));
        assert_false(file_exists(in_folder(folder, "full.bin")));
    }
}

/* Pieces that the thread of a writer still has are given up with it. */
static void a_writer_with_a_thread_can_be_given_up(void **unused)
{
    (void)unused;
    static uint32_t tokens[1 << 18];
    const uint64_t before = count_files(folder), end = 1 << 18;
    for (uint64_t pieces = 1; pieces < 12; pieces++) {
        struct shard_writer *writer = open_threaded("given-up", 4, false, true);
        for (uint64_t i = 0; i < pieces; i++)
            MUST(shard_writer_add(writer, tokens, end / 4, NULL, 0, 0, &error));
        shard_writer_abort(writer);
        assert_int_equal(count_files(folder), before);
    }
}

/* A writer is given up while a thread stores its file. That thread has ended before the file is closed. */
static void a_large_shard_can_be_given_up(void **unused)
{
    (void)unused;
    static uint32_t tokens[1 << 18]; /* 1 MiB */
    const uint64_t before = count_files(folder), end = 1 << 18;
    for (int own_thread = 0; own_thread < 2; own_thread++) {
        struct shard_writer_options options = plain_options(4);
        struct shard_writer *writer;
        options.sync = true;
        options.own_thread = own_thread;
        MUST(shard_writer_open(&writer, in_folder(folder, "given-up"), &options, &error));
        for (uint64_t bytes = 0; bytes <= WRITE_BEHIND_FLUSH; bytes += sizeof tokens)
            MUST(shard_writer_add(writer, tokens, end, &end, 1, 0, &error));
        shard_writer_abort(writer);
        assert_int_equal(count_files(folder), before);
    }
}

/* Zeros that are holes follow tokens that the thread of the writer has. */
static void zeros_wait_for_the_thread(void **unused)
{
    (void)unused;
    static uint32_t tokens[1 << 18];
    const uint64_t end = (1 << 18) - 5;
    uint8_t content[2][16];
    for (int own_thread = 0; own_thread < 2; own_thread++) {
        struct shard_writer *writer = open_threaded("holes", 4, true, own_thread);
        for (int i = 0; i < 5; i++) {
            memset(tokens, i, sizeof tokens);
            MUST(shard_writer_add(writer, tokens, end, &end, 1, 0x04040404, &error));
            MUST(shard_writer_add_zeros(writer, 5 + (uint64_t)i * 1000000, &error));
        }
        MUST(shard_writer_commit(writer, NULL, 0, content[own_thread], &error));
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, "holes"), NULL, &error));
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        tokmap_dataset_close(dataset);
    }
    assert_memory_equal(content[0], content[1], sizeof content[0]);
}

/* The pieces of a saved state. */
struct kept {
    uint32_t kind;
    uint8_t *bytes;
    size_t count;
};
static struct kept kept[64];
static size_t kept_count;

static int keep(void *user, uint32_t kind, const void *bytes, size_t count)
{
    (void)user;
    assert_true(kept_count < 64);
    uint8_t *copy = malloc(count + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    kept[kept_count++] = (struct kept){kind, copy, count};
    return 0;
}

/* A writer is saved while its thread has pieces, and then left. The one that continues has all tokens. */
static void saving_waits_for_the_thread(void **unused)
{
    (void)unused;
    enum { ROUNDS = 10, PARTS = 6, TOKENS = (1 << 18) - 5 };
    static uint32_t tokens[TOKENS];
    struct state_sink sink = {.put = keep};
    const uint64_t end = TOKENS;
    uint8_t content[2][16];
    for (int round = 0; round <= ROUNDS; round++) { /* the first one is not saved */
        struct shard_writer *writer = open_threaded("saved", 4, true, round != 0);
        for (uint32_t part = 0; part < PARTS; part++) {
            for (uint64_t i = 0; i < TOKENS; i++)
                tokens[i] = part * TOKENS + (uint32_t)i;
            MUST(shard_writer_add(writer, tokens, end, &end, 1, PARTS * TOKENS - 1, &error));
        }
        if (round) {
            struct shard_writer_options options = plain_options(4);
            options.replace = options.resume = true;
            kept_count = 0;
            MUST(shard_writer_save(writer, &sink, &error));
            shard_writer_leave(writer);
            MUST(shard_writer_open(&writer, in_folder(folder, "saved"), &options, &error));
            for (size_t i = 0; i < kept_count; i++) {
                MUST(shard_writer_load(writer, kept[i].kind, kept[i].bytes, kept[i].count, &error));
                free(kept[i].bytes);
            }
            MUST(shard_writer_restored(writer, &error));
        }
        MUST(shard_writer_commit(writer, NULL, 0, content[round != 0], &error));
        assert_memory_equal(content[round != 0], content[0], sizeof content[0]);
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, "saved"), NULL, &error));
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        tokmap_dataset_close(dataset);
    }
}

/* A shard of many MiB is stored, and leaves the page cache, while it is written, and the tokens are the same. What is
 * kept is its end. A small one stays as a whole. A large page of the page cache at the border of both stays, too. */
static void a_large_shard_leaves_the_page_cache(void **unused)
{
    (void)unused;
    enum { MIB = 1 << 20, CALL = 3 * MIB / 4, LARGE = 40, SMALL = 6, BORDER = 2 * MIB };
    static const struct {
        uint64_t mib;
        bool own_thread, seal;
    } cases[] = {{LARGE, false, false}, {LARGE, true, false}, {LARGE, true, true}, {SMALL, false, false}};
    static const struct shard_writer_seal seal = {.level = 1, .threads = 2};
    static uint32_t tokens[CALL / 4];
    if (!file_pages_drop(folder))
        skip();
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct shard_writer_options options = plain_options(4);
        uint64_t state = 17, largest = 0, cached;
        options.replace = options.sync = true;
        options.own_thread = cases[c].own_thread;
        options.seal = cases[c].seal ? &seal : NULL;
        struct shard_writer *writer;
        MUST(shard_writer_open(&writer, in_folder(folder, "large"), &options, &error));
        for (uint64_t written = 0; written < cases[c].mib * MIB; written += CALL) {
            const uint64_t end = CALL / 4;
            for (uint32_t i = 0; i < CALL / 4; i++) {
                tokens[i] = (uint32_t)random_below(&state, UINT32_MAX);
                largest = max64(largest, tokens[i]);
            }
            MUST(shard_writer_add(writer, tokens, end, &end, 1, largest, &error));
        }
        MUST(shard_writer_commit(writer, NULL, 0, NULL, &error));
        cached = file_cached(in_folder(folder, cases[c].seal ? "large.bin.zst" : "large.bin"));
        if (cases[c].mib == LARGE)
            assert_in_range(cached, 1, WRITE_BEHIND_KEPT + BORDER);
        else
            assert_true(cached >= cases[c].mib * MIB);
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, in_folder(folder, "large"), NULL, &error));
        MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
        tokmap_dataset_close(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_calls_do_not_matter),
        cmocka_unit_test(sections_larger_than_the_buffers_are_complete),
        cmocka_unit_test(mixed_files_are_named_once),
        cmocka_unit_test(empty_shards_can_be_written_and_opened),
        cmocka_unit_test(added_zeros_are_tokens),
        cmocka_unit_test(nothing_is_visible_before_the_commit),
        cmocka_unit_test(an_aborted_writer_leaves_no_files),
        cmocka_unit_test(an_existing_output_is_kept_without_replace),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(files_of_a_killed_writer_are_overwritten),
        cmocka_unit_test(racing_writers_leave_complete_shards),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(a_failed_write_ends_the_writer),
        cmocka_unit_test(a_writer_with_a_thread_can_be_given_up),
        cmocka_unit_test(a_large_shard_can_be_given_up),
        cmocka_unit_test(zeros_wait_for_the_thread),
        cmocka_unit_test(saving_waits_for_the_thread),
        cmocka_unit_test(a_large_shard_leaves_the_page_cache),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
