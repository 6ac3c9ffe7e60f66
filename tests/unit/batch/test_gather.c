/* gather.h and copy.h: any window of any dataset, by either reading, is what the dataset holds; faults are statuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/guarded.h"
#include "support/made.h"
#include "support/scratch.h"
#include "batch/copy.h"
#include "batch/gather.h"
#include "common/bytes.h"
#include "platform/os.h"

static char folder[512];

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

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

static struct gather *open_gather(const struct tokmap_dataset *dataset, uint64_t row_tokens, enum tokmap_reading reading)
{
    struct gather *gather;
    struct gather_options options = {.row_tokens = row_tokens, .reading = reading};
    assert_int_equal(gather_open(&gather, dataset, &options, NULL), TOKMAP_OK);
    return gather;
}

static struct tokmap_dataset *open_made(const struct made *made)
{
    struct tokmap_dataset *dataset;
    assert_int_equal(tokmap_dataset_open(&dataset, made->name, NULL, NULL), TOKMAP_OK);
    return dataset;
}

/* Every first token with few row lengths, or few first tokens with every row length. */
static void check_windows(const struct made *made, uint64_t row_tokens, uint64_t every, enum tokmap_reading reading,
                          bool warm)
{
    struct tokmap_dataset *dataset = open_made(made);
    struct gather *gather = open_gather(dataset, row_tokens, reading);
    struct guarded row = guarded_new((size_t)row_tokens * made->width);
    gather_expect_warm(gather, warm);
    uint64_t windows = 0;
    for (uint64_t first = 0; first < made->tokens; first += every, windows++) {
        bool cold = false;
        if (windows % 3 == 0)
            gather_begin(gather, 3);
        gather_ask(gather, first);
        gather_prefetch(gather, (first * 7 + 1) % made->tokens);
        if (windows % 5 == 0)
            gather_flush(gather);
        memset(row.at, 0xa5, (size_t)row_tokens * made->width);
        assert_int_equal(gather_window(gather, first, row.at, &cold, NULL), TOKMAP_OK);
        assert_true(made_row_is(made, row.at, first, row_tokens));
        (void)gather_is_warm(gather, first);
        if (windows % 701 == 700)
            gather_forget(gather);
    }
    gather_flush(gather);
    assert_int_equal(gather_bytes(gather), windows * row_tokens * made->width);
    guarded_free(row);
    gather_close(gather);
    tokmap_dataset_close(dataset);
}

static void every_window_is_what_the_dataset_holds(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {1, 2500, 7, 1, 4096, 2047, 300};
    for (uint32_t width = 2; width <= 4; width += 2) {
        struct made made;
        made_new(&made, folder, width == 2 ? "narrow" : "wide", width, width == 2 ? 50257 : 1u << 20, sizes, 7);
        for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
            for (int warm = 0; warm < 2; warm++) {
                check_windows(&made, 33, 1, (enum tokmap_reading)reading, warm);
                check_windows(&made, 2049, 11, (enum tokmap_reading)reading, warm);
                for (uint64_t row = 1; row < 70; row++)
                    check_windows(&made, row, 97, (enum tokmap_reading)reading, warm);
                check_windows(&made, made.tokens, 501, (enum tokmap_reading)reading, warm);
            }
        made_free(&made);
    }
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
            overwrite(made.bin[1], (uint64_t)1234 * width, &bad, width);
            struct tokmap_dataset *dataset = open_made(&made);
            struct gather *gather = open_gather(dataset, 1500, (enum tokmap_reading)reading);
            gather_expect_warm(gather, true);
            struct tokmap_error error = {.status = TOKMAP_OK};
            char *row = malloc((size_t)1500 * width);
            for (int turn = 0; turn < 3; turn++) { /* by pread first, from the mapping then */
                bool cold = false;
                gather_begin(gather, 1);
                assert_int_equal(gather_window(gather, 4999, row, &cold, &error), TOKMAP_ERROR_TOKEN);
                assert_int_equal(error.status, TOKMAP_ERROR_TOKEN);
                assert_string_equal(error.path, made.bin[1]);
                assert_int_equal(error.offset, 1234 * width);
                assert_non_null(strstr(error.message, "20000"));
                assert_int_equal(gather_window(gather, 3, row, &cold, &error), TOKMAP_OK);
            }
            free(row);
            gather_close(gather);
            tokmap_dataset_close(dataset);
            made_free(&made);
        }
}

static void unchecked_delivers_any_id(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {3000};
    struct made made;
    made_new(&made, folder, "unchecked", 2, 20000, sizes, 1);
    uint16_t bad = 65535, row[100];
    overwrite(made.bin[0], 40, &bad, 2);
    struct tokmap_dataset *dataset = open_made(&made);
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++) {
        struct gather *gather;
        struct gather_options options = {.row_tokens = 100, .reading = (enum tokmap_reading)reading, .unchecked = true};
        assert_int_equal(gather_open(&gather, dataset, &options, NULL), TOKMAP_OK);
        gather_expect_warm(gather, true);
        for (int turn = 0; turn < 2; turn++) {
            bool cold = false;
            gather_begin(gather, 1);
            assert_int_equal(gather_window(gather, 0, row, &cold, NULL), TOKMAP_OK);
            assert_int_equal(row[20], 65535);
        }
        gather_close(gather);
    }
    tokmap_dataset_close(dataset);
    made_free(&made);
}

/* Cut under an open gather, before and after its pages were populated; then whole again. */
static void a_cut_file_is_a_status_and_can_be_mended(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {40000, 9000};
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (int populated = 0; populated < 2; populated++) {
            struct made made;
            char name[20] = {'c', (char)('0' + reading), (char)('0' + populated)};
            made_new(&made, folder, name, 2, 65536, sizes, 2);
            struct tokmap_dataset *dataset = open_made(&made);
            struct gather *gather = open_gather(dataset, 1000, (enum tokmap_reading)reading);
            struct tokmap_error error = {.status = TOKMAP_OK};
            uint16_t row[1000];
            bool cold = false;
            gather_expect_warm(gather, true);
            for (uint64_t first = 0; populated && first < made.tokens; first += 500) {
                gather_begin(gather, 1);
                assert_int_equal(gather_window(gather, first, row, &cold, NULL), TOKMAP_OK);
            }
            resize(made.bin[0], 50000);
            gather_begin(gather, 1);
            assert_int_equal(gather_window(gather, 30000, row, &cold, &error), TOKMAP_ERROR_TRUNCATED);
            assert_string_equal(error.path, made.bin[0]);
            assert_true(error.offset == 50000 || error.offset == 60000);
            assert_int_equal(gather_window(gather, 41000, row, &cold, &error), TOKMAP_OK);
            uint16_t whole[40000];
            for (uint64_t i = 0; i < 40000; i++)
                whole[i] = (uint16_t)made_token(&made, i);
            overwrite(made.bin[0], 0, whole, sizeof whole);
            gather_begin(gather, 1);
            assert_int_equal(gather_window(gather, 30000, row, &cold, &error), TOKMAP_OK);
            assert_true(made_row_is(&made, row, 30000, 1000));
            gather_close(gather);
            tokmap_dataset_close(dataset);
            made_free(&made);
        }
}

static void dropping_behind_changes_no_token(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {30000, 10};
    struct made made;
    made_new(&made, folder, "dropped", 4, 1u << 20, sizes, 2);
    struct tokmap_dataset *dataset = open_made(&made);
    for (int in_order = 0; in_order < 2; in_order++) {
        struct gather *gather;
        struct gather_options options = {
            .row_tokens = 700, .reading = TOKMAP_READ_PREAD, .drop_behind = true, .in_order = in_order};
        assert_int_equal(gather_open(&gather, dataset, &options, NULL), TOKMAP_OK);
        uint32_t row[700];
        for (uint64_t first = 0; first < made.tokens; first += 333) {
            bool cold = false;
            assert_int_equal(gather_window(gather, first, row, &cold, NULL), TOKMAP_OK);
            assert_true(made_row_is(&made, row, first, 700));
        }
        gather_close(gather);
    }
    tokmap_dataset_close(dataset);
    made_free(&made);
}

/* What has no shards has no views of them either: looking ahead does nothing, arithmetic on no pointer included (which
 * clang's undefined behaviour sanitizer would report). */
static void a_synthetic_window_needs_no_views(void **unused)
{
    (void)unused;
    struct tokmap_dataset *dataset;
    struct gather *gather;
    const struct gather_options options = {.row_tokens = 700, .reading = TOKMAP_READ_MAPPED};
    assert_int_equal(tokmap_dataset_open(&dataset, "synthetic:vocab=1000,tokens=100000", NULL, NULL), TOKMAP_OK);
    assert_int_equal(gather_open(&gather, dataset, &options, NULL), TOKMAP_OK);
    for (uint64_t first = 0; first < 90000; first += 30000) {
        uint16_t row[700], expected[700];
        bool cold = false;
        gather_prefetch(gather, first);
        assert_true(gather_is_warm(gather, first));
        assert_int_equal(gather_window(gather, first, row, &cold, NULL), TOKMAP_OK);
        assert_false(cold);
        assert_int_equal(tokmap_dataset_copy(dataset, first, 700, expected, NULL), TOKMAP_OK);
        assert_memory_equal(row, expected, sizeof row);
    }
    gather_close(gather);
    tokmap_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copying_finds_the_largest_anywhere),
        cmocka_unit_test(every_window_is_what_the_dataset_holds),
        cmocka_unit_test(an_id_outside_the_vocabulary_is_named),
        cmocka_unit_test(unchecked_delivers_any_id),
        cmocka_unit_test(a_cut_file_is_a_status_and_can_be_mended),
        cmocka_unit_test(dropping_behind_changes_no_token),
        cmocka_unit_test(a_synthetic_window_needs_no_views),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
