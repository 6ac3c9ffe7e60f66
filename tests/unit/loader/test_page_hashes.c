/* SPDX-License-Identifier: MIT */
/*
 * Rows are compared with the hashes of their pages: one damaged byte, wherever it is, is a status at the first row that
 * has a token of its page, in every way of reading, and the rows before it are right. The same for a file that changes
 * under a loader, and for one that was exchanged. TEST_SEED chooses the bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/layout.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"
#include "tokmap/tokmap.h"

#define SEQ 100
#define BATCH 4

static uint64_t random_state;

/* How a loader reads. */
static const struct way {
    enum tokmap_reading reading;
    uint32_t threads, drop_behind;
    uint64_t deadline_ns;
} ways[] = {
    {TOKMAP_READ_MAPPED, 0, 0, 0}, {TOKMAP_READ_MAPPED, 1, 0, 0}, {TOKMAP_READ_PREAD, 0, 0, 0},
    {TOKMAP_READ_PREAD, 1, 0, 0},  {TOKMAP_READ_AUTO, 1, 1, 0},   {TOKMAP_READ_AUTO, 0, 0, 60000000000u},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static struct tokmap_run *make_run(const char *data, enum tokmap_reading reading, uint64_t seq_len, uint64_t passes)
{
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_run *run;
    options.data = data;
    options.seq_len = seq_len;
    options.batch = BATCH;
    options.order = TOKMAP_SEQUENTIAL;
    options.passes = passes;
    options.reading = reading;
    MUST(simple_run_open(&run, &options, &error));
    return run;
}

static struct tokmap_loader *open_loader(const struct tokmap_run *run, const struct way *way)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    options.threads = way->threads;
    options.drop_behind = way->drop_behind;
    options.deadline_ns = way->deadline_ns;
    options.fields = 0;
    MUST(tokmap_loader_open(&loader, run, &options, &error));
    return loader;
}

/* Changes one byte of a file to another value. The second call with the same arguments changes it back. */
static void flip(const char *path, uint64_t at)
{
    uint8_t byte;
    size_t got;
    int fd;
    os_sleep_ns(20000000); /* the clock of file systems ticks every few milliseconds */
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pread(fd, &byte, 1, at, &got), 0);
    byte ^= 1;
    assert_int_equal(os_pwrite(fd, &byte, 1, at), 0);
    os_close(fd);
    os_sleep_ns(2000000); /* batches that begin within a millisecond share a look at the files */
}

static bool batch_is_right(const struct made *made, uint64_t seq_len, const struct tokmap_batch *batch)
{
    for (uint64_t i = 0; i < batch->count; i++)
        if (!made_row_is(made, batch->rows[i], batch->places[i].first_token, seq_len + 1))
            return false;
    return true;
}

/* Returns whether a batch of the sequential order has a token of bytes [from, end) of the dataset's tokens, counted as
 * if the shards followed each other. */
static bool touches(uint64_t batch, uint64_t seq_len, uint64_t windows, uint32_t width, uint64_t from, uint64_t end)
{
    for (uint64_t row = batch * BATCH; row < (batch + 1) * BATCH; row++) {
        const uint64_t first = row % windows * seq_len;
        if (first * width < end && (first + seq_len + 1) * width > from)
            return true;
    }
    return false;
}

/* Reads a dataset with one damaged byte, which is repaired after the fault was reported twice. shard_from: the shard's
 * first byte, counted as above. */
static void check_damage(const struct made *made, const struct way *way, const char *path, uint64_t shard_from,
                         uint64_t shard_bytes, uint64_t at)
{
    const uint64_t page = at / TOKEN_PAGE_BYTES * TOKEN_PAGE_BYTES, windows = (made->tokens - 1) / SEQ;
    const uint64_t from = shard_from + page, end = shard_from + min64(page + TOKEN_PAGE_BYTES, shard_bytes);
    struct tokmap_run *run = make_run(made->name, way->reading, SEQ, 1);
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    flip(path, at);
    struct tokmap_loader *loader = open_loader(run, way);
    enum tokmap_status status = TOKMAP_OK;
    bool damaged = true;
    for (uint64_t step = 0; status != TOKMAP_END; step += !status) {
        status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        if (status == TOKMAP_END)
            break;
        if (damaged && touches(step, SEQ, windows, made->width, from, end)) {
            for (int again = 0; again < 2; again++) {
                assert_int_equal(status, TOKMAP_ERROR_CORRUPT);
                assert_string_equal(error.path, path);
                assert_int_equal(error.offset, page);
                if (!again)
                    status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
            }
            flip(path, at);
            damaged = false;
            continue;
        }
        MUST(status);
        assert_int_equal(batch.step, step);
        assert_true(batch_is_right(made, SEQ, &batch));
    }
    tokmap_loader_close(loader);
    tokmap_run_close(run);
    if (damaged) /* only the tokens after the last window have it */
        flip(path, at);
}

static void each_damaged_byte_is_found(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {5001, 2048, 1, 7000};
    for (uint32_t width = 2; width <= 4; width += 2) {
        struct made made;
        made_new(&made, folder, width == 2 ? "narrow" : "wide", width, width == 2 ? 50257 : 1u << 20, sizes, 4);
        uint64_t from = 0;
        for (int shard = 0; shard < 4; from += sizes[shard++] * width) {
            const uint64_t bytes = sizes[shard] * width;
            const uint64_t edges[] = {0, 4095, 4096, bytes - 1};
            for (size_t i = 0; i < 4 + WAYS; i++) {
                const uint64_t at = i < 4 ? edges[i] : random_below(&random_state, bytes);
                if (at < bytes)
                    check_damage(&made, &ways[(i + (size_t)shard) % WAYS], made.bin[shard], from, bytes, at);
            }
        }
        made_free(&made);
    }
}

static void a_change_under_a_loader_is_found(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {30000};
    const uint64_t windows = 29999 / SEQ, steps = 40;
    struct made made;
    made_new(&made, folder, "change", 2, 50257, sizes, 1);
    for (size_t w = 0; w < WAYS; w++) {
        if (ways[w].threads)
            continue; /* what a producer has read ahead is from before the change */
        struct tokmap_run *run = make_run(made.name, ways[w].reading, SEQ, 100);
        struct tokmap_loader *loader = open_loader(run, &ways[w]);
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        uint64_t step = 0;
        for (; step < 20 * windows / BATCH; step++) /* until all pages are populated */
            MUST(tokmap_loader_next(loader, NULL, NULL, &batch, &error));
        const uint64_t at = random_below(&random_state, 60000), page = at / TOKEN_PAGE_BYTES * TOKEN_PAGE_BYTES;
        flip(made.bin[0], at);
        uint64_t faults = 0;
        for (uint64_t end = step + 2 * windows / BATCH + 2; step < end && !faults; step++) {
            const enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
            const bool wrong = touches(step, SEQ, windows, 2, page, min64(page + TOKEN_PAGE_BYTES, 60000));
            assert_int_equal(status, wrong ? TOKMAP_ERROR_CORRUPT : TOKMAP_OK);
            assert_true(status || batch_is_right(&made, SEQ, &batch));
            faults += wrong;
        }
        assert_int_equal(faults, 1);
        flip(made.bin[0], at);
        for (uint64_t i = 0; i < steps; i++) {
            MUST(tokmap_loader_next(loader, NULL, NULL, &batch, &error));
            assert_int_equal(batch.step, step - 1 + i);
            assert_true(batch_is_right(&made, SEQ, &batch));
        }
        tokmap_loader_close(loader);
        tokmap_run_close(run);
    }
    made_free(&made);
}

static void an_exchanged_file_is_found(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {3000, 3000};
    struct made made;
    made_new(&made, folder, "exchange", 2, 50257, sizes, 2);
    char other[650];
    (void)snprintf(other, sizeof other, "%s.other", made.bin[0]);
    assert_int_equal(os_rename(made.bin[0], other), 0);
    assert_int_equal(os_rename(made.bin[1], made.bin[0]), 0);
    assert_int_equal(os_rename(other, made.bin[1]), 0);
    for (size_t w = 0; w < WAYS; w++) {
        struct tokmap_run *run = make_run(made.name, ways[w].reading, SEQ, 1);
        struct tokmap_loader *loader = open_loader(run, &ways[w]);
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_ERROR_CORRUPT);
        assert_string_equal(error.path, made.bin[0]);
        assert_int_equal(error.offset, 0);
        tokmap_loader_close(loader);
        tokmap_run_close(run);
    }
    made_free(&made);
}

/* Without hashes, damage that leaves ids in the vocabulary is delivered, and the dataset says so. `trust_files` does
 * the same with them. */
static void without_hashes_nothing_is_compared(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {3000, 3000};
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_dataset *dataset;
    struct made made;
    made_new(&made, folder, "without", 2, 65536, sizes, 2);
    for (int dropped = 0; dropped < 2; dropped++) {
        if (dropped)
            made_drop_pages(&made, 0);
        MUST(tokmap_dataset_open(&dataset, made.name, NULL, &error));
        assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
        assert_int_equal(info.page_hashes, !dropped);
        tokmap_dataset_close(dataset);
        flip(made.bin[0], 10);
        struct tokmap_run *run = make_run(made.name, TOKMAP_READ_AUTO, SEQ, 1);
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        options.fields = 0;
        options.trust_files = !dropped;
        MUST(tokmap_loader_open(&loader, run, &options, &error));
        MUST(tokmap_loader_next(loader, NULL, NULL, &batch, &error));
        assert_false(batch_is_right(&made, SEQ, &batch));
        tokmap_loader_close(loader);
        tokmap_run_close(run);
        flip(made.bin[0], 10);
    }
    made_free(&made);
}

/* Rows of several spans, over the end of a shard, and a part of a dataset that begins and ends within a page, and
 * within the hashes that are read at once. */
static void long_rows_and_parts_are_right(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {1500001, 90000, 77777}, seq_len = 70000, first = 1200001, last = 1600003;
    struct made made;
    char name[700];
    made_new(&made, folder, "long", 4, 1u << 21, sizes, 3);
    (void)snprintf(name, sizeof name, "%s#tokens=%llu..%llu", made.name, (unsigned long long)first,
                   (unsigned long long)last);
    for (int part = 0; part < 2; part++)
        for (size_t w = 0; w < WAYS; w++) {
            struct tokmap_run *run = make_run(part ? name : made.name, ways[w].reading, seq_len, 3);
            struct tokmap_loader *loader = open_loader(run, &ways[w]);
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            enum tokmap_status status;
            uint64_t rows = 0;
            for (; !(status = tokmap_loader_next(loader, NULL, NULL, &batch, &error)); rows += batch.count)
                for (uint64_t i = 0; i < batch.count; i++)
                    assert_true(made_row_is(&made, batch.rows[i], batch.places[i].first_token + (part ? first : 0),
                                            seq_len + 1));
            MUST(status == TOKMAP_END ? TOKMAP_OK : status);
            assert_true(rows >= 8);
            tokmap_loader_close(loader);
            tokmap_run_close(run);
        }
    flip(made.bin[0], (first - 1) * 4); /* in a page of the part, but before its first token */
    struct tokmap_run *run = make_run(name, TOKMAP_READ_AUTO, SEQ, 1);
    struct tokmap_loader *loader = open_loader(run, &ways[0]);
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_ERROR_CORRUPT);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
    made_free(&made);
}

/* Returns whether the kernel can populate a mapping, and reports that a page of it is gone. Kernels before 5.14 and
 * qemu-user do not, so a mapping that was cut raises a signal there. */
static bool kernel_reports_cuts(void)
{
    const char *path = in_folder(folder, "probe");
    const void *mapped;
    int fd;
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_truncate(fd, os_page_bytes()), 0);
    assert_int_equal(os_map_file(fd, os_page_bytes(), &mapped), 0);
    assert_int_equal(os_truncate(fd, 0), 0);
    const bool reports = os_map_populate(mapped, os_page_bytes()) == EFAULT;
    os_unmap(mapped, os_page_bytes());
    os_close(fd);
    return reports;
}

/* An index that is cut under a loader, which needs hashes from it, is a status. */
static void a_cut_index_is_a_status(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 8000 };
    static uint64_t ends[DOCUMENTS];
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        ends[i] = 10 * (i + 1);
    const bool signals = !kernel_reports_cuts();
    for (size_t w = 0; w < WAYS; w++) {
        if (signals && ways[w].reading != TOKMAP_READ_PREAD)
            continue;
        char prefix[600], index[620];
        (void)snprintf(prefix, sizeof prefix, "%s/cut%zu", folder, w);
        (void)snprintf(index, sizeof index, "%s.tmx", prefix);
        shard_make(prefix, 2, 0, ends, DOCUMENTS);
        struct tokmap_run *run = make_run(prefix, ways[w].reading, SEQ, 1);
        int fd;
        assert_int_equal(os_open(index, OS_WRITE_OPEN, &fd), 0);
        assert_int_equal(os_truncate(fd, 4096), 0);
        os_close(fd);
        struct tokmap_loader *loader = open_loader(run, &ways[w]);
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        const enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        assert_int_equal(status, TOKMAP_ERROR_TRUNCATED);
        assert_non_null(strstr(error.message, "index"));
        tokmap_loader_close(loader);
        tokmap_run_close(run);
    }
}

int main(void)
{
    const char *seed = getenv("TEST_SEED");
    random_state = seed ? strtoull(seed, NULL, 10) : 7;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_damaged_byte_is_found),    cmocka_unit_test(a_change_under_a_loader_is_found),
        cmocka_unit_test(an_exchanged_file_is_found),    cmocka_unit_test(without_hashes_nothing_is_compared),
        cmocka_unit_test(long_rows_and_parts_are_right), cmocka_unit_test(a_cut_index_is_a_status),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
