/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * gather.h and copy.h: every window of every dataset has the tokens of the dataset, in either reading, and faults are
 * statuses.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/copy.h"
#include "batch/gather.h"
#include "common/bytes.h"
#include "dataset/dataset.h"
#include "platform/os.h"
#include "support/guarded.h"
#include "support/made.h"
#include "support/scratch_folder.h"

/* ---- copying ---- */

static void check_copy(const struct copy_kernels *kernels, unsigned width, uint64_t count, uint64_t top_at)
{
    size_t bytes = (size_t)count * width;
    unsigned skew = width * (unsigned)(count % 7);
    struct guarded from = guarded_new(bytes), into = guarded_new(bytes + skew);
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)(i * 2654435761u >> 8) % (width == 2 ? 60000 : 4000000000u);
        if (i == top_at)
            id = width == 2 ? UINT16_MAX : UINT32_MAX;
        largest = id > largest ? id : largest;
        if (width == 2)
            store16(from.at + i * 2, (uint16_t)id);
        else
            store32(from.at + i * 4, id);
    }
    memset(into.at + bytes, 0x5a, skew);
    uint32_t found = (width == 2 ? kernels->copy16 : kernels->copy32)(into.at, from.at, count);
    assert_int_equal(found, largest);
    assert_int_equal((width == 2 ? kernels->largest16 : kernels->largest32)(from.at, count), largest);
    assert_memory_equal(into.at, from.at, bytes);
    for (unsigned k = 0; k < skew; k++)
        assert_int_equal(into.at[bytes + k], 0x5a);
    guarded_free(from);
    guarded_free(into);
}

static void copying_finds_the_largest_anywhere(void **unused)
{
    (void)unused;
    const struct copy_kernels *kernels;
    for (unsigned variant = 0; (kernels = copy_variant(variant)); variant++)
        for (unsigned width = 2; width <= 4; width += 2) {
            for (uint64_t count = 0; count <= 300; count++)
                check_copy(kernels, width, count, UINT64_MAX);
            for (uint64_t at = 0; at < 200; at++)
                check_copy(kernels, width, 200, at);
        }
}

/* ---- windows ---- */

/* A residency of one source with its gather. */
struct reader {
    struct tokmap_dataset *dataset;
    struct residency *residency;
    struct gather *gather;
    uint64_t row_tokens;
};

static enum tokmap_status gather_window(const struct reader *reader, uint64_t first, void *row, bool *cold,
                                        struct tokmap_error *error)
{
    const struct tokmap_extent extent = {first, reader->row_tokens};
    return gather_row(reader->gather, &extent, 1, reader->row_tokens, row, cold, error);
}

static void prefetch(const struct reader *reader, uint64_t first)
{
    const struct tokmap_extent extent = {first, reader->row_tokens};
    gather_prefetch(reader->gather, &extent);
}

static void set_warm(const struct reader *reader, bool warm)
{
    reader->residency->shared.warm = warm;
}

static struct reader open_with(const char *name, enum tokmap_reading reading, uint64_t row_tokens,
                               const struct residency_options *residency, const struct gather_options *gather)
{
    struct reader reader = {.row_tokens = row_tokens};
    struct tokmap_dataset_options how = TOKMAP_DATASET_OPTIONS_INIT;
    struct residency_options options = *residency;
    how.reading = reading;
    assert_int_equal(tokmap_dataset_open(&reader.dataset, name, &how, NULL), TOKMAP_OK);
    const struct tokmap_dataset *datasets[1] = {reader.dataset};
    options.datasets = datasets;
    options.sources = 1;
    options.window = 8;
    assert_int_equal(residency_open(&reader.residency, &options, NULL), TOKMAP_OK);
    assert_int_equal(gather_open(&reader.gather, &reader.residency->sources[0], gather, NULL), TOKMAP_OK);
    return reader;
}

static struct reader open_reader(const char *name, enum tokmap_reading reading, uint64_t row_tokens)
{
    const struct residency_options residency = {.drop_behind = false};
    const struct gather_options gather = {.trust_files = false};
    return open_with(name, reading, row_tokens, &residency, &gather);
}

static void close_reader(const struct reader *reader)
{
    gather_close(reader->gather);
    residency_close(reader->residency);
    tokmap_dataset_close(reader->dataset);
}

static void begin(const struct reader *reader, uint64_t windows)
{
    residency_begin(reader->residency, windows);
}

/* Checks the windows at every `every`-th first token. */
static void check_windows(const struct made *made, uint64_t row_tokens, uint64_t every, enum tokmap_reading reading,
                          bool warm)
{
    struct reader reader = open_reader(made->name, reading, row_tokens);
    struct guarded row = guarded_new((size_t)row_tokens * made->width);
    uint64_t windows = 0;
    set_warm(&reader, warm);
    for (uint64_t first = 0; first < made->tokens; first += every, windows++) {
        const struct tokmap_extent extent = {first, row_tokens};
        const struct row_extents window = {0, &extent, 1};
        bool cold = false;
        if (windows % 3 == 0)
            begin(&reader, 3);
        residency_ask(reader.residency, &window);
        prefetch(&reader, (first * 7 + 1) % made->tokens);
        if (windows % 5 == 0)
            residency_flush(reader.residency);
        memset(row.at, 0xa5, (size_t)row_tokens * made->width);
        assert_int_equal(gather_window(&reader, first, row.at, &cold, NULL), TOKMAP_OK);
        assert_true(made_row_is(made, row.at, first, row_tokens));
        (void)residency_is_cached(&reader.residency->sources[0], &extent);
        if (windows % 701 == 700)
            residency_forget(&reader.residency->sources[0]);
    }
    residency_flush(reader.residency);
    assert_int_equal(gather_bytes(reader.gather), windows * row_tokens * made->width);
    guarded_free(row);
    close_reader(&reader);
}

static void every_window_has_the_tokens_of_the_dataset(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {1, 2500, 7, 1, 4096, 2047, 300};
    for (uint32_t width = 2; width <= 4; width += 2) {
        struct made made;
        made_new(&made, folder, width == 2 ? "narrow" : "wide", width, width == 2 ? 50257 : 1u << 20, sizes, 7);
        for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
            for (int turn = 0; turn < 2; turn++) {
                const bool warm = turn;
                check_windows(&made, 33, 1, (enum tokmap_reading)reading, warm);
                check_windows(&made, 2049, 11, (enum tokmap_reading)reading, warm);
                for (uint64_t row = 1; row < 70; row++)
                    check_windows(&made, row, 97, (enum tokmap_reading)reading, warm);
                check_windows(&made, made.tokens, 501, (enum tokmap_reading)reading, warm);
            }
        made_free(&made);
    }
}

/* ---- rows that are widened from the mapping ---- */

static uint32_t pair16(const void *in, uint64_t count, const void *after, void *inputs, void *targets)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i <= count; i++) {
        const uint32_t id = load16((const uint8_t *)in + 2 * i);
        if (i < count)
            ((int32_t *)inputs)[i] = (int32_t)id;
        if (i)
            ((int32_t *)targets)[i - 1] = (int32_t)id;
        largest = id > largest ? id : largest;
    }
    return largest;
}

static uint32_t one16(const void *in, uint64_t count, void *inputs)
{
    for (uint64_t i = 0; i < count; i++)
        ((int32_t *)inputs)[i] = load16((const uint8_t *)in + 2 * i);
    return 0;
}

/* Every window is written by one of the two ways, with the same tokens; from the mapping unless it crosses a seam. */
static void a_direct_row_is_the_row(void **unused)
{
    enum { ROW = 301 };
    (void)unused;
    const uint64_t sizes[] = {2500, 7, 4096};
    struct made made;
    int32_t inputs[ROW], targets[ROW];
    uint16_t row[ROW];
    uint64_t directly = 0, windows = 0;
    made_new(&made, folder, "direct", 2, 50257, sizes, 3);
    struct reader reader = open_reader(made.name, TOKMAP_READ_MAPPED, ROW);
    set_warm(&reader, true);
    for (int turn = 0; turn < 40; turn++)
        for (uint64_t first = 0; first < made.tokens; first += 53, windows++) {
            const bool both = windows % 2;
            const struct gather_outputs outputs = {
                .pair = pair16, .one = one16, .seq_len = ROW - 1, .inputs = inputs, .targets = both ? targets : NULL};
            const struct tokmap_extent extents[] = {{first, ROW}, {0, ROW}}, shorter = {first, ROW - 1};
            bool done = false, cold = false;
            begin(&reader, 8);
            assert_int_equal(gather_direct(reader.gather, extents, 2, &outputs, &done, NULL), TOKMAP_OK);
            assert_false(done);
            if (both) { /* the last target would be no token of the row */
                assert_int_equal(gather_direct(reader.gather, &shorter, 1, &outputs, &done, NULL), TOKMAP_OK);
                assert_false(done);
            }
            assert_int_equal(gather_direct(reader.gather, extents, 1, &outputs, &done, NULL), TOKMAP_OK);
            if (!done) {
                assert_int_equal(gather_window(&reader, first, row, &cold, NULL), TOKMAP_OK);
                pair16(row, ROW - 1, NULL, inputs, targets);
            }
            for (uint64_t i = 0; i + 1 < ROW; i++) {
                assert_int_equal(inputs[i], made_token(&made, (first + i) % made.tokens));
                assert_true((done && !both) || targets[i] == (int32_t)made_token(&made, (first + i + 1) % made.tokens));
            }
            const bool seam = first + ROW > made.tokens || (first < 2500) != (first + ROW <= 2500) || first / 2507 == 0;
            assert_true(!done || !seam || first + ROW <= 2500);
            directly += done;
        }
    assert_true(directly > windows / 2);
    assert_int_equal(gather_bytes(reader.gather), windows * ROW * 2);
    close_reader(&reader);
    made_free(&made);
}

/* ---- faults ---- */

static void overwrite(const char *path, uint64_t offset, const void *bytes, size_t count)
{
    int fd;
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pwrite(fd, bytes, count, offset), 0);
    os_close(fd);
}

static void resize(const char *path, uint64_t bytes)
{
    int fd;
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_truncate(fd, bytes), 0);
    os_close(fd);
    os_sleep_ns(100000); /* batches that begin within 50 microseconds share a look at the sizes of files */
}

/* ---- files that are fetched ---- */

/* A file whose bytes are zeros from time to time, right after it was asked whether they are there. */
struct fetched_file {
    struct os_fetched fetched;
    const char *path;
    uint8_t *bytes;
    uint64_t count, asked, generation;
    bool gone;
};

static void fetched_write(const struct fetched_file *file, const void *bytes)
{
    overwrite(file->path, 0, bytes, file->count);
}

static int fetched_need(struct os_fetched *fetched, uint64_t offset, uint64_t bytes, bool wait, uint64_t *state)
{
    struct fetched_file *file = (struct fetched_file *)(void *)fetched;
    assert_true(offset + bytes <= file->count);
    if (file->gone && !wait)
        return EAGAIN;
    if (file->gone)
        fetched_write(file, file->bytes);
    file->gone = false;
    *state = file->generation;
    if (wait || ++file->asked % 3)
        return 0;
    void *zeros = calloc(1, file->count);
    fetched_write(file, zeros);
    free(zeros);
    file->gone = true;
    file->generation++;
    return 0;
}

static bool fetched_kept(struct os_fetched *fetched, uint64_t offset, uint64_t bytes, uint64_t state)
{
    const struct fetched_file *file = (const struct fetched_file *)(const void *)fetched;
    assert_true(offset + bytes <= file->count);
    return !file->gone && file->generation == state;
}

static void fetched_ask(struct os_fetched *file, uint64_t offset, uint64_t bytes)
{
    (void)file, (void)offset, (void)bytes;
}

static void fetched_close(struct os_fetched *file)
{
    (void)file;
}

static void what_was_given_up_is_not_in_a_row(void **unused)
{
    enum { ROW = 301, TOKENS = 20000 };
    (void)unused;
    const uint64_t sizes[] = {TOKENS};
    const struct residency_options residency = {.trust_files = true};
    const struct gather_options gather = {.trust_files = true};
    struct made made;
    made_new(&made, folder, "fetched", 2, 50257, sizes, 1);
    struct fetched_file file = {
        {fetched_need, fetched_kept, fetched_ask, fetched_close, 0}, made.bin[0], NULL, 0, 0, 0, 0};
    struct reader reader = open_with(made.name, TOKMAP_READ_MAPPED, ROW, &residency, &gather);
    struct shard_tokens tokens;
    size_t got;
    dataset_shard_tokens(reader.dataset, 0, &tokens);
    file.count = tokens.bytes;
    file.bytes = malloc(file.count);
    assert_int_equal(os_pread(tokens.fd, file.bytes, file.count, 0, &got), 0);
    assert_int_equal(os_fetched_set(tokens.fd, &file.fetched), 0);
    set_warm(&reader, true);
    uint64_t directly = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t first = i * 977 % (TOKENS - ROW);
        const struct tokmap_extent extent = {first, ROW};
        int32_t inputs[ROW], targets[ROW];
        uint16_t row[ROW];
        const struct gather_outputs outputs = {
            .pair = pair16, .seq_len = ROW - 1, .inputs = inputs, .targets = targets};
        bool done = false, cold = false;
        begin(&reader, 8);
        if (i % 2)
            assert_int_equal(gather_direct(reader.gather, &extent, 1, &outputs, &done, NULL), TOKMAP_OK);
        directly += done;
        for (uint64_t k = 0; k + 1 < ROW && done; k++)
            assert_int_equal(targets[k], made_token(&made, first + k + 1));
        assert_int_equal(gather_window(&reader, first, row, &cold, NULL), TOKMAP_OK);
        assert_true(made_row_is(&made, row, first, ROW));
    }
    assert_true(directly > 100 && file.generation > 100);
    close_reader(&reader);
    free(file.bytes);
    made_free(&made);
}

/* What gather_prefetch() has found serves the row that comes next, but not once pages are forgotten, in a child after
 * fork(), or when a look at the file is due, which finds it cut. */
static void what_was_prefetched_is_known_until_pages_are_forgotten(void **unused)
{
    enum { ROW = 301 };
    (void)unused;
    const uint64_t size = 9000;
    const struct tokmap_extent here = {600, ROW}, next = {5000, ROW};
    int32_t inputs[ROW], targets[ROW];
    const struct gather_outputs outputs = {.pair = pair16, .seq_len = ROW - 1, .inputs = inputs, .targets = targets};
    struct made made;
    uint16_t row[ROW];
    bool cold = false, done = false;
    made_new(&made, folder, "prefetched", 2, 50257, &size, 1);
    struct reader reader = open_reader(made.name, TOKMAP_READ_MAPPED, ROW);
    set_warm(&reader, true);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 40 && !(done && i); i++) {
            begin(&reader, 8);
            prefetch(&reader, here.first_token);
            prefetch(&reader, next.first_token);
            assert_int_equal(gather_direct(reader.gather, &here, 1, &outputs, &done, NULL), TOKMAP_OK);
            if (!done)
                assert_int_equal(gather_window(&reader, here.first_token, row, &cold, NULL), TOKMAP_OK);
        }
        assert_true(done);
        for (uint64_t i = 0; i + 1 < ROW; i++)
            assert_int_equal(targets[i], made_token(&made, here.first_token + i + 1));
        begin(&reader, 8);
        prefetch(&reader, here.first_token);
        prefetch(&reader, next.first_token);
        if (turn == 0)
            residency_forget(&reader.residency->sources[0]);
        const pid_t child = turn == 1 && memory_is_wiped_on_fork() ? fork() : -1;
        if (turn == 2) {
            reader.residency->shared.look++;
            assert_int_equal(truncate(made.bin[0], 1300), 0);
        }
        const enum tokmap_status status = gather_direct(reader.gather, &here, 1, &outputs, &done, NULL);
        if (child == 0)
            _exit(status || done);
        assert_int_equal(status, turn == 2 ? TOKMAP_ERROR_TRUNCATED : TOKMAP_OK);
        assert_true(status || done == (turn == 1));
        if (child > 0) {
            int how = -1;
            assert_int_equal(waitpid(child, &how, 0), child);
            assert_int_equal(how, 0);
        }
    }
    close_reader(&reader);
    made_free(&made);
}

/* ---- ids ---- */

/* The token at 1234 of the second shard is 20000. */
static void name_the_id(const struct made *made, enum tokmap_reading reading)
{
    struct reader reader = open_reader(made->name, reading, 1500);
    struct tokmap_error error = {.status = TOKMAP_OK};
    char *row = malloc((size_t)1500 * made->width);
    int direct = 0;
    set_warm(&reader, true);
    for (int turn = 0; turn < 3; turn++) { /* with pread first, then from the mapping */
        int32_t inputs[1500], targets[1500];
        const struct gather_outputs outputs = {.pair = pair16, .seq_len = 1499, .inputs = inputs, .targets = targets};
        const struct tokmap_extent extent = {5000, 1500};
        bool cold = false, done = false;
        begin(&reader, 1);
        if (made->width == 2 && gather_direct(reader.gather, &extent, 1, &outputs, &done, &error)) {
            assert_true(done);
            assert_int_equal(error.status, TOKMAP_ERROR_TOKEN);
            assert_int_equal(error.offset, 1234 * 2);
            error.status = TOKMAP_OK;
            direct++;
        }
        assert_int_equal(gather_window(&reader, 4999, row, &cold, &error), TOKMAP_ERROR_TOKEN);
        assert_int_equal(error.status, TOKMAP_ERROR_TOKEN);
        assert_string_equal(error.path, made->bin[1]);
        assert_int_equal(error.offset, 1234 * made->width);
        assert_non_null(strstr(error.message, "20000"));
        assert_int_equal(gather_window(&reader, 3, row, &cold, &error), TOKMAP_OK);
    }
    assert_true(direct || made->width == 4 || reading == TOKMAP_READ_PREAD);
    free(row);
    close_reader(&reader);
}

static void an_id_outside_the_vocabulary_is_named(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {5000, 6000};
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t width = 2; width <= 4; width += 2) {
            struct made made;
            char name[20] = {'b', (char)('0' + reading), (char)('0' + (int)width)};
            made_new(&made, folder, name, width, 20000, sizes, 2);
            uint32_t bad = 20000;
            made_drop_pages(&made, 1);
            overwrite(made.bin[1], (uint64_t)1234 * width, &bad, width);
            name_the_id(&made, (enum tokmap_reading)reading);
            made_free(&made);
        }
}

static void unchecked_delivers_any_id(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {3000};
    struct made made;
    made_new(&made, folder, "trust_files", 2, 20000, sizes, 1);
    uint16_t bad = 65535, row[100];
    overwrite(made.bin[0], 40, &bad, 2);
    made_drop_pages(&made, 0);
    const struct residency_options residency = {.drop_behind = false};
    const struct gather_options gather = {.trust_files = true};
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++) {
        struct reader reader = open_with(made.name, (enum tokmap_reading)reading, 100, &residency, &gather);
        set_warm(&reader, true);
        for (int turn = 0; turn < 2; turn++) {
            bool cold = false;
            begin(&reader, 1);
            assert_int_equal(gather_window(&reader, 0, row, &cold, NULL), TOKMAP_OK);
            assert_int_equal(row[20], 65535);
        }
        close_reader(&reader);
    }
    made_free(&made);
}

/* The file is truncated under an open gather, before or after its pages were populated, and then restored. */
static void a_truncated_file_is_a_status_and_can_be_restored(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {40000, 9000};
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (int populated = 0; populated < 2; populated++) {
            struct made made;
            char name[20] = {'c', (char)('0' + reading), (char)('0' + populated)};
            made_new(&made, folder, name, 2, 65536, sizes, 2);
            struct reader reader = open_reader(made.name, (enum tokmap_reading)reading, 1000);
            struct tokmap_error error = {.status = TOKMAP_OK};
            uint16_t row[1000];
            bool cold = false;
            set_warm(&reader, true);
            for (uint64_t first = 0; populated && first < made.tokens; first += 500) {
                begin(&reader, 1);
                assert_int_equal(gather_window(&reader, first, row, &cold, NULL), TOKMAP_OK);
            }
            resize(made.bin[0], 50000);
            begin(&reader, 1);
            assert_int_equal(gather_window(&reader, 30000, row, &cold, &error), TOKMAP_ERROR_TRUNCATED);
            assert_string_equal(error.path, made.bin[0]);
            assert_int_equal(error.offset, 50000);
            assert_int_equal(gather_window(&reader, 41000, row, &cold, &error), TOKMAP_OK);
            uint16_t whole[40000];
            for (uint64_t i = 0; i < 40000; i++)
                whole[i] = (uint16_t)made_token(&made, i);
            overwrite(made.bin[0], 0, whole, sizeof whole);
            begin(&reader, 1);
            assert_int_equal(gather_window(&reader, 30000, row, &cold, &error), TOKMAP_OK);
            assert_true(made_row_is(&made, row, 30000, 1000));
            close_reader(&reader);
            made_free(&made);
        }
}

static void dropping_behind_changes_no_token(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {30000, 10};
    struct made made;
    made_new(&made, folder, "dropped", 4, 1u << 20, sizes, 2);
    for (int in_order = 0; in_order < 2; in_order++) {
        const struct residency_options residency = {.drop_behind = true, .in_order = in_order};
        const struct gather_options gather = {.trust_files = false};
        struct reader reader = open_with(made.name, TOKMAP_READ_MAPPED, 700, &residency, &gather);
        assert_int_equal(residency_reading(reader.residency), TOKMAP_READ_PREAD);
        uint32_t row[700];
        for (uint64_t first = 0; first < made.tokens; first += 333) {
            bool cold = false;
            assert_int_equal(gather_window(&reader, first, row, &cold, NULL), TOKMAP_OK);
            assert_true(made_row_is(&made, row, first, 700));
        }
        close_reader(&reader);
    }
    made_free(&made);
}

/* Returns how many pages of a file are in the page cache. */
static uint64_t cached_pages(int fd, uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    unsigned char *in = malloc(pages);
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    uint64_t count = 0;
    assert_non_null(in);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mincore(at, bytes, in), 0);
    for (uint64_t i = 0; i < pages; i++)
        count += in[i] & 1;
    assert_int_equal(munmap(at, bytes), 0);
    free(in);
    return count;
}

/* Rows in order that leave gaps, as those of one rank and the segments of a plan do, leave at most the last row's last
 * page behind. */
static void dropping_behind_leaves_one_page(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {400000};
    const struct residency_options residency = {.drop_behind = true, .in_order = true};
    const struct gather_options gather = {.trust_files = false};
    struct made made;
    made_new(&made, folder, "gaps", 4, 1u << 20, sizes, 1);
    const int fd = open(made.bin[0], O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0); /* pages that are not written yet cannot be dropped */
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    if (cached_pages(fd, 1600000)) {
        (void)close(fd);
        made_free(&made);
        skip(); /* the file system is the page cache, or cannot tell */
    }
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
    struct reader reader = open_with(made.name, TOKMAP_READ_PREAD, 700, &residency, &gather);
    for (int backward = 0; backward < 2; backward++) {
        uint32_t row[700];
        for (uint64_t i = 0; i < 40; i++) {
            const uint64_t first = (backward ? 39 - i : i) * 9000 + 333;
            bool cold = false;
            assert_int_equal(gather_window(&reader, first, row, &cold, NULL), TOKMAP_OK);
            assert_true(made_row_is(&made, row, first, 700));
        }
        assert_true(cached_pages(fd, 1600000) <= 1);
    }
    close_reader(&reader);
    (void)close(fd);
    made_free(&made);
}

/* A synthetic dataset has no shards and so no views of them. Looking ahead does nothing, and in particular computes no
 * pointer from NULL (which the undefined behavior sanitizer of clang would report). */
static void a_synthetic_window_needs_no_views(void **unused)
{
    (void)unused;
    struct reader reader = open_reader("synthetic:vocab=1000,tokens=100000", TOKMAP_READ_MAPPED, 700);
    for (uint64_t first = 0; first < 100000; first += 33200) { /* the last one crosses the seam */
        uint16_t row[700], expected[700];
        uint64_t before_seam = min64(700, 100000 - first);
        bool cold = false;
        prefetch(&reader, first);
        assert_true(residency_is_cached(&reader.residency->sources[0], &(const struct tokmap_extent){first, 700}));
        assert_int_equal(gather_window(&reader, first, row, &cold, NULL), TOKMAP_OK);
        assert_false(cold);
        assert_int_equal(tokmap_dataset_copy(reader.dataset, first, before_seam, expected, NULL), TOKMAP_OK);
        assert_int_equal(tokmap_dataset_copy(reader.dataset, 0, 700 - before_seam, expected + before_seam, NULL),
                         TOKMAP_OK);
        assert_memory_equal(row, expected, sizeof row);
    }
    close_reader(&reader);
}

/* A copy kernel that meets an id outside the vocabulary, but leaves a row with good ids only. A kernel that loads a
 * token twice does that if the file is changed between the two loads. */
static uint32_t copy_and_meet(void *into, const void *from, uint64_t count)
{
    memcpy(into, from, count * 2);
    return 40000;
}

static uint32_t largest_and_meet(const void *from, uint64_t count)
{
    return 40000;
}

static void an_id_that_is_gone_at_the_second_look_is_a_status(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {3000};
    const struct copy_kernels kernels = {.name = "meet", .copy16 = copy_and_meet, .largest16 = largest_and_meet};
    const struct residency_options residency = {.drop_behind = false};
    struct made made;
    made_new(&made, folder, "gone", 2, 20000, sizes, 1);
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++) {
        const struct gather_options gather = {.kernels = &kernels};
        struct reader reader = open_with(made.name, (enum tokmap_reading)reading, 400, &residency, &gather);
        struct tokmap_error error = {.status = TOKMAP_OK};
        uint16_t row[400];
        set_warm(&reader, true);
        for (int turn = 0; turn < 2; turn++) { /* with pread first, then from the mapping */
            bool cold = false;
            begin(&reader, 1);
            assert_int_equal(gather_window(&reader, 500, row, &cold, &error), TOKMAP_ERROR_TOKEN);
            assert_string_equal(error.path, made.bin[0]);
            assert_int_equal(error.offset, 1000);
            assert_non_null(strstr(error.message, "40000"));
            assert_non_null(strstr(error.message, "being changed"));
        }
        close_reader(&reader);
    }
    made_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copying_finds_the_largest_anywhere),
        cmocka_unit_test(every_window_has_the_tokens_of_the_dataset),
        cmocka_unit_test(a_direct_row_is_the_row),
        cmocka_unit_test(what_was_given_up_is_not_in_a_row),
        cmocka_unit_test(what_was_prefetched_is_known_until_pages_are_forgotten),
        cmocka_unit_test(an_id_outside_the_vocabulary_is_named),
        cmocka_unit_test(unchecked_delivers_any_id),
        cmocka_unit_test(a_truncated_file_is_a_status_and_can_be_restored),
        cmocka_unit_test(dropping_behind_changes_no_token),
        cmocka_unit_test(dropping_behind_leaves_one_page),
        cmocka_unit_test(a_synthetic_window_needs_no_views),
        cmocka_unit_test(an_id_that_is_gone_at_the_second_look_is_a_status),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
