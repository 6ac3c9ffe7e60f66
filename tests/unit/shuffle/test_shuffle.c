/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_shuffle.c - the shuffle: places against values that another program computed, the order against a sort of all
 * places, chunks of all sizes, documents longer than a chunk, positions that are uniform, and unnamed files that a disk
 * returns wrong, cut, or twice. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "pack/pack.h"
#include "platform/os.h"
#include "shuffle/shuffle_chunks.h"
#include "shuffle/shuffle_merge.h"
#include "support/memory_peak.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "vocabulary/vocabulary.h"

static char folder[512];
static struct tokenizer *tokenizer;

static int setup(void **state)
{
    scratch_make(folder);
    return chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL) ? -1 : 0;
}

static int teardown(void **state)
{
    scratch_remove(folder);
    tokenizer_close(tokenizer);
    return chdir("/");
}

/* Computed by tests/cli/shuffle_reference.py. */
static void test_golden_places(void **state)
{
    static const struct {
        uint64_t seed, input, position, high, low;
    } golden[] = {
        {7, 0, 0, 0xb093a357bb48f791, 0x169195ca20e3b065},
        {7, 0, 14, 0xc7f331e8e05fc406, 0x69cec9fd7d84aeee},
        {7, 1, 0, 0x2519694c15b059ff, 0x55fed661bf78134f},
        {7, 2, UINT64_MAX, 0x5c3d1177306e2364, 0x29851c2c6e21d320},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const struct shuffle_place place = shuffle_place_of(golden[i].seed, golden[i].input, golden[i].position);
        assert_int_equal(place.high, golden[i].high);
        assert_int_equal(place.low, golden[i].low);
    }
    const struct shuffle_place a = {1, 2, 3, 4}, later[] = {{2, 0, 0, 0}, {1, 3, 0, 0}, {1, 2, 4, 0}, {1, 2, 3, 5}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(shuffle_precedes(&a, &later[i]));
        assert_false(shuffle_precedes(&later[i], &a));
    }
    assert_false(shuffle_precedes(&a, &a));
}

/* ---- chunks and merge ---- */

/* Adds a record with a payload of `bytes` bytes, which follow from the position. */
static void record_add(struct shuffle_chunks *chunks, uint64_t input, uint64_t position, uint32_t bytes)
{
    struct tokmap_error error;
    struct shuffle_head head = {.bytes = (uint32_t)sizeof head + bytes, .input = input, .position = position};
    uint8_t *record = shuffle_chunks_room(chunks, head.bytes, &error);
    assert_non_null(record);
    memcpy(record, &head, sizeof head);
    memset(record + sizeof head, (int)(position % 251), bytes);
    shuffle_chunks_add(chunks, record);
}

static int place_compare(const void *a, const void *b)
{
    return shuffle_precedes(a, b) ? -1 : shuffle_precedes(b, a);
}

/* `count` records of random sizes from several inputs, in chunks of `chunk_bytes`, or half of that with a thread that
 * writes them. Returns the number of chunks. */
static uint64_t order_check_threaded(uint64_t chunk_bytes, uint64_t count, uint64_t seed, bool own_thread)
{
    struct shuffle_chunks chunks;
    struct shuffle_merge *merge;
    struct tokmap_error error;
    struct shuffle_head head;
    const uint8_t *record;
    uint64_t random = seed;
    struct shuffle_place *places = malloc((count + 1) * sizeof *places);
    assert_non_null(places);
    assert_int_equal(shuffle_chunks_init(&chunks, seed, chunk_bytes, ".", &error), TOKMAP_OK);
    chunks.own_thread = own_thread;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t most =
            random_below(&random, 50) || chunk_bytes > 1 << 20 ? 64 : chunks.record_most - sizeof head;
        const uint32_t bytes = (uint32_t)random_below(&random, most / 8 + 1) * 8;
        places[i] = shuffle_place_of(seed, i % 3, i * 17);
        record_add(&chunks, i % 3, i * 17, bytes);
    }
    qsort(places, count, sizeof *places, place_compare);
    assert_int_equal(shuffle_chunks_end(&chunks, &error), TOKMAP_OK);
    const uint64_t chunk_count = chunks.chunk_count;
    assert_int_equal(shuffle_merge_open(&merge, &chunks, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(shuffle_merge_next(merge, &head, &record, &error), TOKMAP_OK);
        assert_int_equal(head.input, places[i].input);
        assert_int_equal(head.position, places[i].position);
        for (uint32_t k = (uint32_t)sizeof head; k < head.bytes; k++)
            if (record[k] != head.position % 251)
                fail_msg("byte %u of record %" PRIu64 " is wrong", k, i);
    }
    assert_int_equal(shuffle_merge_next(merge, &head, &record, &error), TOKMAP_END);
    assert_int_equal(shuffle_merge_next(merge, &head, &record, &error), TOKMAP_END);
    shuffle_merge_close(merge);
    shuffle_chunks_free(&chunks);
    free(places);
    return chunk_count;
}

static uint64_t order_check(uint64_t chunk_bytes, uint64_t count, uint64_t seed)
{
    return order_check_threaded(chunk_bytes, count, seed, false);
}

static void test_order(void **state)
{
    assert_int_equal(order_check(4096, 0, 1), 0);
    assert_int_equal(order_check(4096, 1, 1), 0);
    assert_int_equal(order_check((uint64_t)64 << 20, 3000, 2), 0);
    assert_true(order_check(4096, 3000, 3) > 50);
    assert_true(order_check(40000, 3000, 4) > 5);
    assert_true(order_check(1 << 20, 30000, 5) > 2);
    for (uint64_t chunk_bytes = 4096; chunk_bytes < 8192; chunk_bytes += 88)
        (void)order_check(chunk_bytes, 300, chunk_bytes);
    /* A chunk of many entries is sorted in buckets; many chunks have buffers that are smaller than a chunk. */
    assert_true(order_check((uint64_t)16 << 20, 300000, 6) > 1);
    assert_true(order_check((uint64_t)256 << 10, 200000, 7) > 60);
}

/* The same with a thread that writes chunks: of memory that is never full, full once, and often. */
static void test_order_threaded(void **state)
{
    assert_int_equal(order_check_threaded(1 << 20, 0, 1, true), 0);
    assert_int_equal(order_check_threaded(1 << 20, 300, 2, true), 0);
    assert_true(order_check_threaded(1 << 20, 2000, 3, true) >= 2);
    const uint64_t alone = order_check(1 << 20, 50000, 4), both = order_check_threaded(1 << 20, 50000, 4, true);
    assert_true(alone > 4 && both > alone + alone / 2 && both < 3 * alone);
    for (uint64_t chunk_bytes = 65536; chunk_bytes < 70000; chunk_bytes += 344)
        assert_true(order_check_threaded(chunk_bytes, 4000, chunk_bytes, true) > 6);
    assert_true(order_check_threaded(40000, 3000, 4, true) > 5); /* too small for a thread */
}

/* Adds records until a limit on the size of files imitates a full file system. Returns 0 if that is reported. */
static int full_check(void)
{
    const struct rlimit limit = {300000, 300000};
    struct shuffle_chunks chunks;
    struct tokmap_error error;
    uint8_t *record;
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails, not the process */
    int bad = setrlimit(RLIMIT_FSIZE, &limit) || shuffle_chunks_init(&chunks, 1, 1 << 18, ".", &error);
    chunks.own_thread = true;
    for (uint64_t i = 0; !bad && (record = shuffle_chunks_room(&chunks, 1024, &error)); i++) {
        const struct shuffle_head head = {.bytes = 1024, .position = i};
        memset(record, 0, 1024);
        memcpy(record, &head, sizeof head);
        shuffle_chunks_add(&chunks, record);
        bad = i > 2000;
    }
    bad = bad || error.status != TOKMAP_ERROR_IO || error.system != EFBIG ||
          !strstr(error.message, "cannot be written to a temporary file");
    shuffle_chunks_free(&chunks);
    /* While a chunk is being written, the memory can be freed. */
    bad = bad || shuffle_chunks_init(&chunks, 1, 1 << 17, ".", &error);
    chunks.own_thread = true;
    for (uint64_t i = 0; i < 140 && !bad; i++)
        record_add(&chunks, 0, i, 960);
    bad = bad || !chunks.writing.count;
    shuffle_chunks_free(&chunks);
    return bad;
}

static void test_failed_thread(void **state)
{
    const pid_t child = fork();
    int result;
    assert_true(child >= 0);
    if (!child)
        _exit(full_check());
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

/* Of few documents, each is equally often at each place, whatever the seed: 16 documents, 4,000 seeds, 225 degrees of
 * freedom. Also of neighbors: which of two documents comes first. */
static void test_uniform(void **state)
{
    enum { COUNT = 16, SEEDS = 4000 };
    uint32_t at[COUNT][COUNT] = {{0}}, before[COUNT] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct shuffle_place places[COUNT];
        uint64_t ranks[COUNT];
        for (uint64_t i = 0; i < COUNT; i++)
            places[i] = shuffle_place_of(seed, i / 8, i % 8 * 14);
        for (uint64_t i = 0; i < COUNT; i++) {
            ranks[i] = 0;
            for (uint64_t k = 0; k < COUNT; k++)
                ranks[i] += shuffle_precedes(&places[k], &places[i]);
            at[i][ranks[i]]++;
        }
        for (uint64_t i = 0; i + 1 < COUNT; i++)
            before[i] += ranks[i] < ranks[i + 1];
    }
    double chi = 0;
    const double each = (double)SEEDS / COUNT;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++)
            chi += ((double)at[i][k] - each) * ((double)at[i][k] - each) / each;
    assert_true(chi > 140 && chi < 330); /* 225 +- 5 standard deviations of 21.2 */
    for (int i = 0; i + 1 < COUNT; i++)
        assert_in_range(before[i], SEEDS / 2 - 160, SEEDS / 2 + 160); /* 5 standard deviations of 31.6 */
}

/* ---- files that are not what was written ---- */

/* Reads all records; returns the status. */
static enum tokmap_status merge_all(const struct shuffle_chunks *chunks, uint64_t *records, struct tokmap_error *error)
{
    struct shuffle_merge *merge;
    struct shuffle_head head;
    const uint8_t *record;
    enum tokmap_status status = shuffle_merge_open(&merge, chunks, error);
    *records = 0;
    while (!status && !(status = shuffle_merge_next(merge, &head, &record, error)))
        ++*records;
    shuffle_merge_close(merge);
    return status;
}

static void test_damaged_chunks(void **state)
{
    struct shuffle_chunks chunks;
    struct tokmap_error error;
    uint64_t records;
    assert_int_equal(shuffle_chunks_init(&chunks, 9, 4096, ".", &error), TOKMAP_OK);
    for (uint64_t i = 0; i < 100; i++)
        record_add(&chunks, 0, i, 8 * (uint32_t)(i % 5));
    assert_int_equal(shuffle_chunks_end(&chunks, &error), TOKMAP_OK);
    assert_true(chunks.chunk_count > 1);
    assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_END);
    assert_int_equal(records, 100);
    const uint64_t bytes = chunks.file_bytes;
    uint8_t *saved = malloc(bytes);
    size_t got;
    assert_non_null(saved);
    assert_int_equal(os_pread(chunks.fd, saved, bytes, 0, &got), 0);
    assert_int_equal(got, bytes);
    for (uint64_t at = 0; at < bytes; at++) { /* each byte, one bit */
        const uint8_t wrong = saved[at] ^ (uint8_t)(1 << at % 8);
        assert_int_equal(os_pwrite(chunks.fd, &wrong, 1, at), 0);
        assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_ERROR_CORRUPT);
        assert_int_equal(os_pwrite(chunks.fd, &saved[at], 1, at), 0);
    }
    assert_non_null(strstr(error.message, "is not what was written"));
    /* The first record twice, in place of the one behind it, which has the same length. */
    for (uint64_t at = 0; at < chunks.chunks[0].end;) {
        const uint32_t length = load32(saved + at + 8);
        if (at + length < chunks.chunks[0].end && load32(saved + at + length + 8) == length) {
            assert_int_equal(os_pwrite(chunks.fd, saved + at, length, at + length), 0);
            assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_ERROR_CORRUPT);
            /* Both exchanged. */
            assert_int_equal(os_pwrite(chunks.fd, saved + at + length, length, at), 0);
            assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_ERROR_CORRUPT);
            assert_int_equal(os_pwrite(chunks.fd, saved, bytes, 0), 0);
        }
        at += length;
    }
    for (uint64_t end = 0; end < bytes; end += 7) { /* the file is cut */
        assert_int_equal(os_truncate(chunks.fd, end), 0);
        assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_ERROR_CORRUPT);
    }
    assert_int_equal(os_pwrite(chunks.fd, saved, bytes, 0), 0);
    assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_END);
    shuffle_chunks_free(&chunks);
    free(saved);
}

/* A killed process had merged all of some chunks: only the others have records. */
static void test_merged_chunks(void **state)
{
    struct shuffle_chunks chunks;
    struct tokmap_error error;
    uint64_t records, all = 0;
    assert_int_equal(shuffle_chunks_init(&chunks, 9, 4096, ".", &error), TOKMAP_OK);
    for (uint64_t i = 0; i < 200; i++)
        record_add(&chunks, 0, i, 8);
    assert_int_equal(shuffle_chunks_end(&chunks, &error), TOKMAP_OK);
    assert_true(chunks.chunk_count > 3);
    for (uint64_t i = 0; i < chunks.chunk_count; i++) {
        if (i % 2)
            all += (chunks.chunks[i].end - chunks.chunks[i].begin) / (sizeof(struct shuffle_head) + 8);
        else
            chunks.chunks[i].begin = chunks.chunks[i].end;
    }
    assert_int_equal(merge_all(&chunks, &records, &error), TOKMAP_END);
    assert_int_equal(records, all);
    shuffle_chunks_free(&chunks);
}

/* ---- packing ---- */

static struct pack_options usual(const char *prefix, const struct pack_shuffle *shuffle)
{
    struct pack_options options = {.prefix = prefix,
                                   .threads = 1,
                                   .replace = true,
                                   .tokenizer = tokenizer,
                                   .shuffle = shuffle,
                                   .eod_id = 256,
                                   .bos_id = TOKMAP_NO_ID};
    options.corpus.field = "text";
    options.corpus.record_limit = options.corpus.document_limit = 64 << 20;
    return options;
}

static void inputs_make(void)
{
    FILE *file = fopen("docs.jsonl", "wb");
    assert_non_null(file);
    for (int i = 0; i < 600; i++) {
        (void)fprintf(file, "{\"text\": \"%d ", i);
        for (int k = 0; k < (i == 300 ? 20000 : i % 40); k++)
            (void)fputc('a' + (i + k) % 26, file);
        (void)fputs("\"}\n", file);
    }
    assert_int_equal(fclose(file), 0);
    file = fopen("long.txt", "wb");
    assert_non_null(file);
    for (int i = 0; i < 200000; i++)
        (void)fprintf(file, "line %d\n", i);
    assert_int_equal(fclose(file), 0);
}

/* Flips a bit of an unnamed file of this process, number `which` of them, at about a share of its bytes. Returns how
 * many there are. */
static int unnamed_flip(int which, double share)
{
    DIR *descriptors = opendir("/proc/self/fd");
    const struct dirent *entry;
    int found = 0;
    assert_non_null(descriptors);
    while ((entry = readdir(descriptors))) {
        char link[64], target[1024];
        struct os_stat stat;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%.20s", entry->d_name);
        const ssize_t count = readlink(link, target, sizeof target - 1);
        target[count > 0 ? count : 0] = '\0';
        const int fd = atoi(entry->d_name);
        if (strncmp(target, folder, strlen(folder)) != 0 || !strstr(target, "(deleted)") || os_fstat(fd, &stat))
            continue;
        if (found++ == which && stat.bytes) {
            const uint64_t at = (uint64_t)(share * (double)(stat.bytes - 1));
            uint8_t byte;
            size_t got;
            assert_int_equal(os_pread(fd, &byte, 1, at, &got), 0);
            byte ^= 16;
            assert_int_equal(os_pwrite(fd, &byte, 1, at), 0);
        }
    }
    (void)closedir(descriptors);
    return found;
}

struct damage {
    int which;
    double share;
    int files;
    bool interrupt;
    uint64_t calls;
};

static void damage_do(void *user, uint64_t tokens, uint64_t all)
{
    struct damage *damage = user;
    assert_true(tokens <= all);
    if (!damage->calls++ && !damage->interrupt)
        damage->files = unnamed_flip(damage->which, damage->share);
}

static bool damage_stop(void *user)
{
    const struct damage *damage = user;
    return damage->interrupt && damage->calls;
}

/* A long document and a file of chunks, each with one wrong bit: a status, and no output. */
static void test_damaged_while_packing(void **state)
{
    const char *const operands[] = {"docs.jsonl", "long.txt"};
    const struct pack_shuffle shuffle = {.seed = 3, .memory = 8192};
    struct pack_result result;
    struct tokmap_error error;
    inputs_make();
    struct pack_options options = usual("good", &shuffle);
    struct damage damage = {.which = -1};
    options.shuffled = damage_do;
    options.stop = damage_stop;
    options.user = &damage;
    assert_int_equal(pack_run(&options, operands, 2, &result, &error), TOKMAP_OK);
    assert_true(damage.files >= 2);
    const int files = damage.files;
    int corrupt = 0;
    for (int which = 0; which < files; which++)
        for (double share = 0; share <= 1; share += 0.25) {
            damage = (struct damage){.which = which, .share = share};
            options.prefix = "bad";
            const enum tokmap_status status = pack_run(&options, operands, 2, &result, &error);
            if (status) { /* the spills of the index are unnamed, too, but nothing is in them yet */
                assert_int_equal(status, TOKMAP_ERROR_CORRUPT);
                corrupt++;
                assert_int_equal(access("bad.bin", F_OK), -1);
                assert_int_equal(access("bad.bin.partial", F_OK), -1);
            }
            (void)unlink("bad.bin");
            (void)unlink("bad.tmx");
        }
    assert_int_equal(corrupt, 10); /* of the chunks and of the long documents */
    damage = (struct damage){.interrupt = true};
    assert_int_equal(pack_run(&options, operands, 2, &result, &error), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(access("bad.bin.partial", F_OK), -1);
}

#ifdef SANITIZED
static void test_many_tiny(void **state)
{
    skip();
}
#else
/* 10^6 documents of two tokens: the memory that the shuffle adds does not grow with their number. */
static void test_many_tiny(void **state)
{
    static const char line[] = "{\"text\": \"a\"}\n";
    const char *operand = "tiny.jsonl";
    const struct pack_shuffle shuffle = {.seed = 5, .memory = 4 << 20};
    struct pack_result result;
    struct tokmap_error error;
    FILE *file = fopen(operand, "wb");
    assert_non_null(file);
    for (int i = 0; i < 1000000; i++)
        (void)fputs(line, file);
    assert_int_equal(fclose(file), 0);
    struct pack_options options = usual("tiny", NULL);
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
    const uint64_t before = memory_peak();
    options.shuffle = &shuffle;
    assert_int_equal(pack_run(&options, &operand, 1, &result, &error), TOKMAP_OK);
    assert_int_equal(result.counts.documents, 1000000);
    assert_int_equal(result.tokens, 2000000);
    assert_in_range(memory_peak() - before, 0, (4 + 4 + 8) << 20); /* two passes, sort, spills of the index */
}
#endif

/* The places of a merge that a journal says: as many as there are chunks, each inside its chunk. */
static void test_places(void **unused)
{
    (void)unused;
    struct shuffle_chunk list[2] = {{.begin = 0, .end = 100}, {.begin = 100, .end = 300}};
    struct shuffle_chunks chunks = {.chunks = list, .chunk_count = 2};
    struct bytes_buffer places = {0};
    const uint64_t first[] = {0, 8, 120}, again[] = {1, 300}, gap[] = {3, 1}, more[] = {2, 5}, outside[] = {1, 301};
    const uint8_t *bytes = (const uint8_t *)first;
    assert_int_equal(shuffle_places_load(&places, bytes, 8), EINVAL); /* a number of a chunk alone */
    assert_int_equal(shuffle_places_load(&places, bytes, 20), EINVAL);
    assert_false(shuffle_places_restore(&places, &chunks));
    assert_int_equal(shuffle_places_load(&places, bytes, 16), 0);
    assert_false(shuffle_places_restore(&places, &chunks)); /* of one chunk of two */
    assert_int_equal(shuffle_places_load(&places, bytes, sizeof first), 0);
    assert_int_equal(shuffle_places_load(&places, (const uint8_t *)gap, sizeof gap), EINVAL);
    assert_int_equal(shuffle_places_load(&places, (const uint8_t *)again, sizeof again), 0); /* later than the first */
    assert_true(shuffle_places_restore(&places, &chunks));
    assert_true(list[0].begin == 8 && list[1].begin == 300);
    list[1].begin = 100;
    assert_int_equal(shuffle_places_load(&places, (const uint8_t *)more, sizeof more), 0);
    assert_false(shuffle_places_restore(&places, &chunks)); /* of three chunks */
    places.count = 16;
    assert_int_equal(shuffle_places_load(&places, (const uint8_t *)outside, sizeof outside), 0);
    assert_false(shuffle_places_restore(&places, &chunks));
    bytes_free(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_golden_places),
        cmocka_unit_test(test_many_tiny),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_threaded),
        cmocka_unit_test(test_failed_thread),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_damaged_chunks),
        cmocka_unit_test(test_damaged_while_packing),
        cmocka_unit_test(test_merged_chunks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
