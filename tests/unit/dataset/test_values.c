/* SPDX-License-Identifier: MIT */
/*
 * test_values.c - writers of values against a model: random and overlapping puts by several writers, some of which are
 * killed, then finished, and every byte and bit compared; and what is refused, with its place.
 *
 * TOKMAP_VALUES_KILLS is the least number of kills (default 25). TOKMAP_VALUES_SEED chooses others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "dataset/values_finish.h"
#include "dataset/values_writer.h"
#include "format/values_file.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

#define ARRAYS "ids:u16[3] t:f16[2,4] w:f32"
enum { ARRAY_COUNT = 3, SHARDS = 3 };
static const char *const names[ARRAY_COUNT] = {"ids", "t", "w"};
static const uint32_t sizes[ARRAY_COUNT] = {6, 16, 4};
static const uint64_t shard_tokens[SHARDS] = {1000, 77, 140000};
static const uint64_t all_tokens = 1000 + 77 + 140000;

static struct tokmap_dataset *dataset;
static struct tokmap_values_writer *writer;

/* Makes the dataset FOLDER/NAME of shards a, b, c, and opens it. */
static void dataset_make(const char *name)
{
    char path[700];
    uint64_t first = 0;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(os_make_folder(path), 0);
    for (int s = 0; s < SHARDS; s++) {
        (void)snprintf(path, sizeof path, "%s/%s/%c", folder, name, 'a' + s);
        shard_make(path, 2, first, &shard_tokens[s], 1);
        first += shard_tokens[s];
    }
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, name), NULL, &error));
}

static void writer_open(void)
{
    MUST(tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error));
}

static void writer_close(void)
{
    MUST(tokmap_values_close(writer, &error));
}

/* Returns the file of an array of shard `s`, which the caller frees. */
static uint8_t *values_of(const char *name, int s, uint32_t array, size_t *bytes)
{
    char path[700];
    (void)snprintf(path, sizeof path, "%s/%s/%c.%s.values", folder, name, 'a' + s, names[array]);
    return file_exists(path) ? file_read(path, bytes) : NULL;
}

/* Makes the values of a token: no element of them is NaN, and none of them is all zeros. */
static void value_make(uint64_t token, uint32_t array, uint8_t *into)
{
    for (uint32_t i = 0; i < sizes[array]; i++)
        into[i] = (uint8_t)(1 + (token * 31 + i * 7 + array * 5 + (token >> 8)) % 0x3b);
}

static enum tokmap_status try_put(uint64_t token, uint64_t count)
{
    const void *arrays[ARRAY_COUNT];
    uint8_t *made[ARRAY_COUNT];
    for (uint32_t k = 0; k < ARRAY_COUNT; k++) {
        arrays[k] = made[k] = malloc((size_t)count * sizes[k] + 1);
        assert_non_null(made[k]);
        for (uint64_t i = 0; i < count; i++)
            value_make(token + i, k, made[k] + i * sizes[k]);
    }
    const enum tokmap_status status = tokmap_values_put_at(writer, token, count, arrays, &error);
    for (uint32_t k = 0; k < ARRAY_COUNT; k++)
        free(made[k]);
    return status;
}

static void put(uint64_t token, uint64_t count)
{
    MUST(try_put(token, count));
}

/* Compares every byte of a file of values with the tokens that must have values, must not, or may (2). */
static void file_check(const uint8_t *file, size_t bytes, uint64_t first, uint64_t tokens, uint32_t array,
                       const uint8_t *expected)
{
    struct values_header header;
    uint8_t value[16];
    static const uint8_t zeros[16];
    uint64_t present = 0;
    const uint64_t end = VALUES_AT + tokens * sizes[array];
    memcpy(&header, file, sizeof header);
    assert_int_equal(header.header_hash, hash64(&header, offsetof(struct values_header, header_hash)));
    assert_int_equal(header.bitmap_at, round_up(end, 4096));
    const uint64_t hashed = header.bitmap_at + div_ceil(tokens, 8), hashes = round_up(hashed, 8);
    for (uint64_t i = 0; i < tokens; i++) {
        const bool has = file[header.bitmap_at + i / 8] >> i % 8 & 1;
        value_make(first + i, array, value);
        if (expected[first + i] < 2 && has != expected[first + i])
            fail_msg("token %llu has %d", (unsigned long long)(first + i), has);
        if (memcmp(file + VALUES_AT + i * sizes[array], has ? value : zeros, sizes[array]) != 0)
            fail_msg("token %llu has other values", (unsigned long long)(first + i));
        present += has;
    }
    assert_int_equal(header.present, present);
    for (uint64_t at = end; at < header.bitmap_at; at++)
        assert_int_equal(file[at], 0);
    if (tokens % 8)
        assert_int_equal(file[hashed - 1] >> tokens % 8, 0);
    for (uint64_t at = hashed; at < hashes; at++)
        assert_int_equal(file[at], 0);
    const uint64_t count = div_ceil(hashed - VALUES_AT, 1 << 20);
    assert_int_equal(bytes, hashes + 8 * count);
    assert_int_equal(header.file_bytes, bytes);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(load64(file + hashes + 8 * i),
                         hash64(file + VALUES_AT + (i << 20), min64(1 << 20, hashed - VALUES_AT - (i << 20))));
    assert_int_equal(header.table_hash, hash64(file + hashes, 8 * count));
}

static void all_check(const char *name, const uint8_t *expected)
{
    uint64_t first = 0;
    for (int s = 0; s < SHARDS; first += shard_tokens[s], s++)
        for (uint32_t k = 0; k < ARRAY_COUNT; k++) {
            size_t bytes;
            uint8_t *file = values_of(name, s, k, &bytes);
            assert_non_null(file);
            file_check(file, bytes, first, shard_tokens[s], k, expected);
            free(file);
        }
}

/* Returns the names in a folder that have a part, except indexes and tokens. */
static int files_with(const char *name, const char *part)
{
    int count = 0;
    DIR *listed = opendir(in_folder(folder, name));
    for (struct dirent *entry; listed && (entry = readdir(listed));)
        count += strstr(entry->d_name, part) != NULL;
    if (listed)
        closedir(listed);
    return count;
}

static void random_puts_are_finished(void **unused)
{
    (void)unused;
    uint64_t state = 17, put_tokens = 0, held = 0;
    uint8_t *expected = calloc(1, all_tokens);
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    assert_non_null(expected);
    dataset_make("random");
    for (int round = 0; round < 6; round++) {
        writer_open();
        for (int i = 0; i < 60; i++) {
            const uint64_t token = random_below(&state, all_tokens);
            const uint64_t count = min64(random_below(&state, 700), all_tokens - token);
            put(token, count);
            memset(expected + token, 1, count);
            put_tokens += count;
        }
        if (round == 5)
            put(0, 1), expected[0] = 1, put_tokens++;
        if (round < 5)
            writer_close();
    }
    for (uint64_t i = 0; i < all_tokens; i++)
        held += expected[i];
    assert_int_equal(values_finish(writer, &options, 1 << 20, &result, &error), TOKMAP_ERROR_INPUT);
    char said[100];
    uint64_t hole = 0, end;
    while (expected[hole])
        hole++;
    for (end = hole; !expected[end]; end++)
        ;
    (void)snprintf(said, sizeof said, "%llu of %llu tokens have no values, the first ones are tokens %llu..%llu of ",
                   (unsigned long long)(all_tokens - held), (unsigned long long)all_tokens, (unsigned long long)hole,
                   (unsigned long long)min64(end, 1000) - 1);
    assert_non_null(strstr(error.message, said));
    assert_int_equal(files_with("random", ".values.partial"), 9);
    options.holes = 1;
    MUST(values_finish(writer, &options, 64, &result, &error));
    assert_int_equal(result.tokens, all_tokens);
    assert_int_equal(result.missing, all_tokens - held);
    assert_int_equal(result.repeated, put_tokens - held);
    assert_int_equal(result.files, 9);
    writer_close();
    all_check("random", expected);
    assert_int_equal(files_with("random", ".partial"), 0);
    assert_int_equal(files_with("random", "notes"), 0);
    assert_int_equal(tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error), TOKMAP_ERROR_EXISTS);
    assert_int_equal(files_with("random", "notes"), 0);
    /* They are replaced when the new ones are finished. */
    options = (struct tokmap_values_options)TOKMAP_VALUES_OPTIONS_INIT;
    options.replace = 1;
    MUST(tokmap_values_open(&writer, dataset, ARRAYS, &options, &error));
    put(0, all_tokens);
    all_check("random", expected);
    MUST(tokmap_values_finish(writer, NULL, &result, &error));
    writer_close();
    memset(expected, 1, all_tokens);
    all_check("random", expected);
    tokmap_dataset_close(dataset);
    free(expected);
}

/* Ends a child. Values that an interrupted finish has named already are not written again. */
static void child_check(enum tokmap_status status)
{
    char text[1500];
    if (!status)
        return;
    if (status != TOKMAP_ERROR_EXISTS)
        fprintf(stderr, "ERROR: %s\n", tokmap_error_print(&error, text, sizeof text));
    _exit(status == TOKMAP_ERROR_EXISTS ? 0 : 9);
}

/* Opens a writer, and finishes or puts random ranges until it is killed. Tokens that were put before a sync that
 * returned must have values, and others of its may. */
static void child_run(bool finishes, uint64_t state, uint8_t *expected)
{
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    options.holes = 1;
    child_check(tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error));
    while (!finishes) {
        uint64_t ranges[8][2];
        for (int i = 0; i < 8; i++) {
            ranges[i][0] = random_below(&state, all_tokens);
            ranges[i][1] = min64(random_below(&state, 900), all_tokens - ranges[i][0]);
            for (uint64_t t = 0; t < ranges[i][1]; t++)
                if (!expected[ranges[i][0] + t])
                    expected[ranges[i][0] + t] = 2;
            child_check(try_put(ranges[i][0], ranges[i][1]));
        }
        child_check(tokmap_values_sync(writer, &error));
        for (int i = 0; i < 8; i++)
            memset(expected + ranges[i][0], 1, ranges[i][1]);
    }
    child_check(tokmap_values_finish(writer, &options, NULL, &error));
    _exit(0);
}

static void killed_writers_lose_nothing_that_was_synced(void **unused)
{
    (void)unused;
    const char *const text = getenv("TOKMAP_VALUES_KILLS"), *const seed = getenv("TOKMAP_VALUES_SEED");
    const int kills = text ? atoi(text) : 25;
    uint64_t state = seed ? strtoull(seed, NULL, 10) : 4;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    options.holes = 1;
    int datasets = 0, done = 0;
    for (; done < kills || !datasets; datasets++) {
        char name[24];
        (void)snprintf(name, sizeof name, "killed%d", datasets);
        dataset_make(name);
        uint8_t *expected = mmap(NULL, all_tokens, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(expected != MAP_FAILED);
        for (uint64_t round = 0, rounds = 2 + random_below(&state, 12); round < rounds; round++) {
            pid_t children[3];
            int status;
            const int count = 1 + (int)random_below(&state, 3);
            const bool finishes = count == 1 && round + 3 >= rounds;
            for (int c = 0; c < count; c++) {
                const uint64_t own = random_next(&state);
                children[c] = fork();
                if (!children[c])
                    child_run(finishes, own, expected);
            }
            usleep((useconds_t)random_below(&state, finishes ? 30000 : 60000));
            for (int c = 0; c < count; c++) {
                (void)kill(children[c], SIGKILL);
                assert_int_equal(waitpid(children[c], &status, 0), children[c]);
                if (WIFEXITED(status) && WEXITSTATUS(status))
                    fail_msg("a writer ended with %d", WEXITSTATUS(status));
                done += WIFSIGNALED(status);
            }
        }
        const enum tokmap_status status = tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error);
        if (!status) {
            MUST(tokmap_values_finish(writer, &options, NULL, &error));
            writer_close();
        } else {
            assert_int_equal(status, TOKMAP_ERROR_EXISTS);
        }
        all_check(name, expected);
        assert_int_equal(munmap(expected, all_tokens), 0);
        tokmap_dataset_close(dataset);
        scratch_remove(in_folder(folder, name));
    }
    printf("%d datasets, %d kills\n", datasets, done);
}

/* Returns the path of the only note in a folder. */
static const char *note_path(const char *notes)
{
    static char path[1200];
    DIR *listed = opendir(in_folder(folder, notes));
    assert_non_null(listed);
    path[0] = '\0';
    for (struct dirent *entry; (entry = readdir(listed));)
        if (strchr(entry->d_name, '-'))
            (void)snprintf(path, sizeof path, "%s/%s/%s", folder, notes, entry->d_name);
    closedir(listed);
    return path;
}

/* What was put is noted within seconds, without a call. */
static void the_thread_notes_what_was_put(void **unused)
{
    (void)unused;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    struct os_stat found = {.bytes = 0};
    int status;
    dataset_make("thread");
    const pid_t child = fork();
    if (!child) {
        child_check(tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error));
        child_check(try_put(0, all_tokens));
        (void)pause();
    }
    for (int wait = 0; wait < 600 && found.bytes <= 8 + SHARDS * 40; wait++) { /* more than shards that were opened */
        usleep(50000);
        if (file_exists(in_folder(folder, "thread/ids.values.notes")))
            (void)os_stat(note_path("thread/ids.values.notes"), &found);
    }
    usleep(500000);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    writer_open();
    MUST(tokmap_values_finish(writer, NULL, &result, &error));
    assert_int_equal(result.missing, 0);
    writer_close();
    tokmap_dataset_close(dataset);
}

static void several_writers_and_a_busy_finish(void **unused)
{
    (void)unused;
    struct tokmap_values_writer *other;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    dataset_make("busy");
    writer_open();
    put(0, 1200);
    MUST(tokmap_values_open(&other, dataset, ARRAYS, NULL, &error));
    assert_int_equal(tokmap_values_finish(other, NULL, &result, &error), TOKMAP_ERROR_BUSY);
    assert_non_null(strstr(error.path, "/ids.values.notes/"));
    writer_close();
    writer = other;
    put(1200, all_tokens - 1200);
    MUST(tokmap_values_finish(writer, &options, &result, &error));
    assert_int_equal(result.missing, 0);
    assert_int_equal(result.repeated, 0);
    writer_close();
    tokmap_dataset_close(dataset);
}

static void what_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    struct tokmap_values_writer *other;
    dataset_make("wrong");
    writer_open();
    const void *const arrays[] = {"", "", ""};
    assert_int_equal(tokmap_values_put_at(writer, all_tokens, 1, arrays, &error), TOKMAP_ERROR_RANGE);
    assert_int_equal(tokmap_values_put_at(writer, 1, UINT64_MAX, arrays, &error), TOKMAP_ERROR_RANGE);
    const void *const lacking[] = {"", NULL, ""};
    assert_int_equal(tokmap_values_put_at(writer, 0, 1, lacking, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "'t'"));
    assert_int_equal(tokmap_values_put_at(writer, 0, 1, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_values_open(&other, dataset, "ids:u16[4] t:f16[2,4] w:f32", NULL, &error),
                     TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.message, "are u16[3], but u16[4] is asked for"));
    assert_int_equal(tokmap_values_open(&other, dataset, "mask:u8", NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_null(other);
    put(0, all_tokens);
    writer_close();
    /* The shard is packed again: the unfinished values are of other tokens. */
    const char *index = in_folder(folder, "wrong/a.tmx");
    shard_make(in_folder(folder, "wrong/new"), 2, 5, &shard_tokens[0], 1);
    tokmap_dataset_close(dataset);
    assert_int_equal(os_rename(in_folder(folder, "wrong/new.tmx"), index), 0);
    assert_int_equal(os_rename(in_folder(folder, "wrong/new.bin"), in_folder(folder, "wrong/a.bin")), 0);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "wrong"), NULL, &error));
    assert_int_equal(tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error), TOKMAP_ERROR_MISMATCH);
    assert_non_null(strstr(error.path, "wrong/a.ids.values.partial"));
    assert_non_null(strstr(error.message, "packed again"));
    tokmap_dataset_close(dataset);
    MUST(tokmap_dataset_open(&dataset, "synthetic:vocab=100,tokens=1000", NULL, &error));
    assert_int_equal(tokmap_values_open(&writer, dataset, ARRAYS, NULL, &error), TOKMAP_ERROR_UNSUPPORTED);
    tokmap_dataset_close(dataset);
}

static void a_part_writes_places_of_whole_shards(void **unused)
{
    (void)unused;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    struct tokmap_dataset *part;
    const float weights[] = {1, 2, 3};
    const void *const arrays[] = {weights};
    size_t bytes;
    dataset_make("part");
    tokmap_dataset_close(dataset);
    char name[700];
    (void)snprintf(name, sizeof name, "%s/part#tokens=1070..1090", folder);
    MUST(tokmap_dataset_open(&part, name, NULL, &error));
    MUST(tokmap_values_open(&writer, part, "w:f32", NULL, &error));
    MUST(tokmap_values_put_at(writer, 5, 3, arrays, &error)); /* 1075 and 1076 of b, 0 of c */
    assert_int_equal(tokmap_values_finish(writer, &options, &result, &error), TOKMAP_ERROR_INPUT);
    options.holes = 1;
    MUST(tokmap_values_finish(writer, &options, &result, &error));
    writer_close();
    assert_int_equal(result.tokens, 77 + 140000);
    assert_int_equal(result.missing, 77 + 140000 - 3);
    uint8_t *file = values_of("part", 1, 2, &bytes);
    assert_memory_equal(file + VALUES_AT + 4 * 75, weights, 8);
    free(file);
    file = values_of("part", 2, 2, &bytes);
    assert_memory_equal(file + VALUES_AT, weights + 2, 4);
    free(file);
    assert_null(values_of("part", 0, 2, &bytes));
    tokmap_dataset_close(part);
}

static void nan_is_refused_with_its_place(void **unused)
{
    (void)unused;
    static const struct {
        const char *arrays;
        uint32_t bytes;
        uint32_t nan, infinity;
    } kinds[] = {
        {"x:f32[2]", 4, 0xffc00000, 0x7f800000}, {"x:f16[2]", 2, 0x7c01, 0xfc00}, {"x:bf16[2]", 2, 0xff81, 0x7f80}};
    uint8_t *values = calloc(all_tokens, 8);
    const void *const arrays[] = {values};
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    assert_non_null(values);
    dataset_make("nan");
    for (int k = 0; k < 3; k++) {
        MUST(tokmap_values_open(&writer, dataset, kinds[k].arrays, NULL, &error));
        memcpy(values + kinds[k].bytes, &kinds[k].infinity, kinds[k].bytes);
        MUST(tokmap_values_put_at(writer, 0, all_tokens, arrays, &error));
        memcpy(values + kinds[k].bytes, &kinds[k].nan, kinds[k].bytes);
        MUST(tokmap_values_put_at(writer, 1077 + 138000, 1, arrays, &error));
        options.nan = 0;
        assert_int_equal(tokmap_values_finish(writer, &options, NULL, &error), TOKMAP_ERROR_INPUT);
        assert_non_null(strstr(error.message, "token 138000 of the shard (139077 of the dataset) is NaN"));
        assert_non_null(strstr(error.path, "nan/c.x.values"));
        assert_int_equal(error.offset, 4096 + (2 * 138000 + 1) * kinds[k].bytes);
        options.nan = 1;
        MUST(tokmap_values_finish(writer, &options, NULL, &error));
        writer_close();
        for (int s = 0; s < SHARDS; s++) {
            char path[700];
            (void)snprintf(path, sizeof path, "%s/nan/%c.x.values", folder, 'a' + s);
            assert_int_equal(os_unlink(path), 0);
        }
        memset(values, 0, 8);
    }
    tokmap_dataset_close(dataset);
    free(values);
}

static void torn_notes_are_ignored_and_damaged_ones_are_not(void **unused)
{
    (void)unused;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    size_t bytes;
    dataset_make("notes");
    writer_open();
    put(0, 500);
    MUST(tokmap_values_sync(writer, &error));
    put(600, 400);
    writer_close();
    const char *path = note_path("notes/ids.values.notes");
    uint8_t *note = file_read(path, &bytes);
    assert_int_equal(bytes, 8 + 3 * (16 + 24)); /* opened, put, put */
    for (size_t cut = 0; cut <= bytes; cut++) {
        (void)os_unlink(path);
        file_write(path, note, cut);
        writer_open();
        assert_int_equal(tokmap_values_finish(writer, &options, &result, &error), TOKMAP_ERROR_INPUT);
        char said[64];
        (void)snprintf(said, sizeof said, "%llu of ",
                       (unsigned long long)(all_tokens - (cut >= 88 ? 500 : 0) - (cut >= 128 ? 400 : 0)));
        assert_non_null(strstr(error.message, said));
        writer_close();
    }
    /* Every changed byte of a chunk that is not the last one, and of the last one as if it was torn. */
    for (size_t at = 0; at < bytes; at++) {
        note[at] ^= 0x40;
        (void)os_unlink(path);
        file_write(path, note, bytes);
        note[at] ^= 0x40;
        writer_open();
        const enum tokmap_status status = tokmap_values_finish(writer, &options, &result, &error);
        writer_close();
        if (status != TOKMAP_ERROR_CORRUPT && status != TOKMAP_ERROR_INPUT)
            fail_msg("byte %zu: %s", at, tokmap_status_name(status));
        if (at < 8 || (at >= 16 && at < 48) || (at >= 56 && at < 88))
            assert_int_equal(status, TOKMAP_ERROR_CORRUPT);
    }
    /* A record beyond the end of its shard, under a right hash. */
    for (int which = 0; which < 2; which++) {
        uint8_t *hurt = malloc(bytes);
        assert_non_null(hurt);
        memcpy(hurt, note, bytes);
        store64(hurt + 48 + 16 + (which ? 16 : 8), which ? 1001 : UINT64_MAX);
        store64(hurt + 48 + 8, hash64_seeded(hurt + 48 + 16, 24, 1));
        (void)os_unlink(path);
        file_write(path, hurt, bytes);
        free(hurt);
        writer_open();
        assert_int_equal(tokmap_values_finish(writer, &options, &result, &error), TOKMAP_ERROR_CORRUPT);
        assert_non_null(strstr(error.message, "after the last one of the shard"));
        writer_close();
    }
    (void)os_unlink(path);
    free(note);
    tokmap_dataset_close(dataset);
}

/* Another list of arrays would make notes void, or write to files that the first writer finishes. */
static void other_arrays_are_refused(void **unused)
{
    (void)unused;
    static const char *const others[] = {"ids:u16[3]", "w:f32", "w:f32 ids:u16[3]", "ids:u16[3] new:u8",
                                         "new:u8 w:f32"};
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    struct tokmap_values_writer *other;
    dataset_make("others");
    writer_open();
    put(0, all_tokens);
    for (int opened = 1; opened >= 0; opened--) {
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            assert_int_equal(tokmap_values_open(&other, dataset, others[i], NULL, &error), TOKMAP_ERROR_MISMATCH);
            assert_non_null(strstr(error.message, "other arrays"));
        }
        if (opened)
            writer_close();
    }
    writer_open();
    MUST(tokmap_values_finish(writer, &options, &result, &error));
    assert_int_equal(result.missing, 0);
    writer_close();
    tokmap_dataset_close(dataset);
}

static void a_file_that_was_removed_voids_its_notes(void **unused)
{
    (void)unused;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    uint8_t *expected = calloc(1, all_tokens);
    assert_non_null(expected);
    dataset_make("removed");
    writer_open();
    put(0, all_tokens);
    writer_close();
    assert_int_equal(os_unlink(in_folder(folder, "removed/b.t.values.partial")), 0);
    writer_open();
    put(1000, 7);
    options.holes = 1;
    MUST(tokmap_values_finish(writer, &options, &result, &error));
    assert_int_equal(result.missing, 70);
    writer_close();
    memset(expected, 1, all_tokens);
    memset(expected + 1007, 0, 70);
    all_check("removed", expected);
    free(expected);
    tokmap_dataset_close(dataset);
}

/* A finish that was killed while it named files has left some of them; the rest is finished by the next one. With
 * replace, the old files are where the new ones have no name yet. */
static void finish_again(bool replace)
{
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    struct tokmap_values_options options = TOKMAP_VALUES_OPTIONS_INIT;
    options.replace = replace;
    for (int round = 0; round < 2; round++) {
        MUST(tokmap_values_open(&writer, dataset, ARRAYS, &options, &error));
        if (round) {
            MUST(tokmap_values_finish(writer, NULL, &result, &error));
            assert_int_equal(result.files, 9);
        } else {
            put(0, all_tokens);
        }
        writer_close();
        if (!round)
            file_copy(note_path("named/ids.values.notes"), in_folder(folder, "note"));
    }
    assert_int_equal(os_make_folder(in_folder(folder, "named/ids.values.notes")), 0);
    assert_int_equal(os_rename(in_folder(folder, "note"), in_folder(folder, "named/ids.values.notes/a-1-2")), 0);
    static const char *const back[] = {"b.t", "b.w", "c.ids", "c.t", "c.w"};
    for (int i = 0; i < 5; i++) {
        char from[700], to[700];
        (void)snprintf(from, sizeof from, "%s/named/%s.values", folder, back[i]);
        (void)snprintf(to, sizeof to, "%s/named/%s.values.partial", folder, back[i]);
        assert_int_equal(os_rename(from, to), 0);
        if (replace)
            file_write(from, "old", 3);
    }
    writer_open();
    const void *const arrays[] = {"123456", "1234567890123456", "1234"};
    assert_int_equal(tokmap_values_put_at(writer, 0, 1, arrays, &error), TOKMAP_ERROR_EXISTS);
    assert_int_equal(tokmap_values_put_at(writer, 1001, 1, arrays, &error), TOKMAP_ERROR_EXISTS);
    put(1077, 5);
    MUST(tokmap_values_finish(writer, NULL, &result, &error));
    assert_int_equal(result.files, 5);
    writer_close();
    assert_int_equal(files_with("named", "notes"), 0);
    assert_int_equal(files_with("named", "partial"), 0);
}

static void a_finish_continues_where_it_was_killed(void **unused)
{
    (void)unused;
    uint8_t *expected = malloc(all_tokens);
    assert_non_null(expected);
    memset(expected, 1, all_tokens);
    dataset_make("named");
    finish_again(false);
    all_check("named", expected);
    finish_again(true);
    all_check("named", expected);
    free(expected);
    tokmap_dataset_close(dataset);
}

/* More shards than a writer has files open, in a random order, and one that a manifest names twice. */
static void many_shards_are_written_with_few_files(void **unused)
{
    (void)unused;
    enum { MANY = 70, EACH = 10 };
    uint64_t state = 3;
    const uint64_t each = EACH;
    char manifest[MANY * 8 + 40] = "tokmap-shards 1\n", name[24], path[700];
    assert_int_equal(os_make_folder(in_folder(folder, "many")), 0);
    for (int s = 0; s < MANY; s++) {
        (void)snprintf(name, sizeof name, "%02d", s);
        (void)snprintf(path, sizeof path, "%s/many/%s", folder, name);
        shard_make(path, 2, (uint64_t)s * EACH, &each, 1);
        strcat(manifest, name);
        strcat(manifest, "\n");
    }
    strcat(manifest, "03\n");
    file_write_text(in_folder(folder, "many/all"), manifest);
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "many/all"), NULL, &error));
    MUST(tokmap_values_open(&writer, dataset, "x:u8 y:u8", NULL, &error));
    for (uint64_t i = 0; i < 3000; i++) {
        const uint64_t token =
            i < (MANY + 1) * EACH ? (i * 37) % ((MANY + 1) * EACH) : random_below(&state, MANY * EACH);
        const uint8_t value = (uint8_t)(token >= MANY * EACH ? 3 * EACH + token % EACH : token);
        const void *const arrays[] = {&value, &value};
        MUST(tokmap_values_put_at(writer, token, 1, arrays, &error));
    }
    struct tokmap_values_result result = TOKMAP_VALUES_RESULT_INIT;
    MUST(tokmap_values_finish(writer, NULL, &result, &error));
    writer_close();
    assert_int_equal(result.tokens, MANY * EACH);
    assert_int_equal(result.files, 2 * MANY);
    assert_int_equal(result.repeated, 3000 - MANY * EACH);
    for (int s = 0; s < MANY; s++) {
        size_t bytes;
        (void)snprintf(path, sizeof path, "%s/many/%02d.y.values", folder, s);
        uint8_t *file = file_read(path, &bytes);
        for (int i = 0; i < EACH; i++)
            assert_int_equal(file[VALUES_AT + i], (uint8_t)(s * EACH + i));
        free(file);
    }
    tokmap_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_puts_are_finished),
        cmocka_unit_test(killed_writers_lose_nothing_that_was_synced),
        cmocka_unit_test(the_thread_notes_what_was_put),
        cmocka_unit_test(several_writers_and_a_busy_finish),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_part_writes_places_of_whole_shards),
        cmocka_unit_test(nan_is_refused_with_its_place),
        cmocka_unit_test(torn_notes_are_ignored_and_damaged_ones_are_not),
        cmocka_unit_test(other_arrays_are_refused),
        cmocka_unit_test(a_file_that_was_removed_voids_its_notes),
        cmocka_unit_test(a_finish_continues_where_it_was_killed),
        cmocka_unit_test(many_shards_are_written_with_few_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
