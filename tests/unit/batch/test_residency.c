/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* residency.h: when it asks the storage, when it stops asking, what ends the warm state, and which pages it treats as
 * populated. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/gather.h"
#include "batch/residency.h"
#include "common/bits.h"
#include "dataset/dataset.h"
#include "platform/os.h"
#include "support/guarded.h"
#include "support/made.h"
#include "support/made_dataset.h"
#include "support/scratch.h"

#define ROW_TOKENS 100
#define WINDOW 40 /* windows asked for ahead */
#define END 900   /* windows in the order */

static char folder[512];
static struct made made;
static struct tokmap_dataset *dataset;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {60000, 40000};
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    options.reading = TOKMAP_READ_MAPPED;
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 65536, sizes, 2);
    return tokmap_dataset_open(&dataset, made.name, &options, NULL);
}

static int teardown(void **unused)
{
    (void)unused;
    tokmap_dataset_close(dataset);
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

static uint64_t largest_number; /* of the windows that the residency asked about */

static bool order(void *user, uint64_t number, struct row_extents *row)
{
    (void)user;
    largest_number = number > largest_number ? number : largest_number;
    static struct tokmap_extent extent;
    extent = (struct tokmap_extent){number * 7919 % made.tokens, ROW_TOKENS};
    *row = (struct row_extents){0, &extent, 1};
    return number < END;
}

static struct residency *open_residency(void)
{
    struct residency *residency;
    const struct tokmap_dataset *datasets[] = {dataset};
    const struct residency_options options = {.datasets = datasets, .sources = 1, .window = WINDOW, .order = order};
    assert_int_equal(residency_open(&residency, &options, NULL), TOKMAP_OK);
    assert_int_equal(residency_reading(residency), TOKMAP_READ_MAPPED);
    largest_number = 0;
    return residency;
}

static void files_in_the_page_cache_need_no_asking(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    assert_false(residency->shared.warm);
    residency_next(residency, 0, 1);
    assert_false(residency->shared.warm); /* a single window in the page cache proves little */
    for (uint64_t number = 1; number < END; number++)
        residency_next(residency, number, number - number % 10 + 10);
    if (!residency_is_cached(&residency->sources[0], &(const struct tokmap_extent){0, ROW_TOKENS}))
        print_message("the kernel does not report what is in the page cache\n");
    else
        assert_true(residency->shared.warm && residency->asked < 100);
    residency_close(residency);
}

/* After a window that was not in the page cache, the storage is asked for the windows that follow it. */
static void a_cold_window_ends_the_warm_state(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    residency->shared.warm = true;
    residency->until_look = 1000; /* so that no look finds the files in the page cache */
    residency_next(residency, 500, 510);
    assert_int_equal(residency->until_look, 999);
    residency_was_cold(residency, 501);
    assert_false(residency->shared.warm);
    assert_int_equal(residency->asked, 501);
    residency->until_look = 1000;
    residency_next(residency, 501, 510);
    assert_int_equal(residency->asked, 510); /* first the rest of the batch at hand */
    for (uint64_t number = 502; number < 600; number++) {
        residency_next(residency, number, number - number % 10 + 10);
        assert_in_range(residency->asked, number + 1, number + 1 + WINDOW);
    }
    assert_in_range(residency->asked, 600 + WINDOW / 2, 600 + WINDOW); /* and then ahead of it */
    assert_in_range(largest_number, 600, 599 + WINDOW);
    residency_close(residency);
}

static void nothing_is_asked_for_past_the_end(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    for (uint64_t number = END - 20; number < END; number++) {
        residency->shared.warm = false;
        residency->until_look = 1000;
        residency_next(residency, number, END);
        assert_in_range(residency->asked, 0, END);
    }
    assert_int_equal(residency->asked, END);
    residency_close(residency);
}

/* A batch can have more windows than the storage is asked for ahead. */
static void a_large_batch_is_asked_for_in_parts(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    residency->until_look = 1000;
    residency_next(residency, 0, END);
    assert_int_equal(residency->asked, 1 + WINDOW);
    assert_int_equal(largest_number, WINDOW);
    residency_close(residency);
}

/* No page of a shard has the number of a page of another shard, and all numbers have a bit. */
static void pages_have_numbers_of_their_own(void **unused)
{
    (void)unused;
    struct shard_views views;
    uint64_t used = 0, ranges_used = 0;
    assert_int_equal(shard_views_init(&views, dataset, true, false, NULL), TOKMAP_OK);
    for (uint64_t token = 0; token < views.tokens; token = views.views[views.current].end_token) {
        assert_int_equal(shard_views_select(&views, token, NULL), TOKMAP_OK);
        const struct shard_view *view = &views.views[views.current];
        const struct stretch all = {.view = &views.views[views.current],
                                    .count = view->end_token - view->file.first_token};
        uint64_t first, end;
        stretch_pages(&views, &all, &first, &end);
        assert_int_equal(first, 0);
        assert_true(view->first_page >= used);
        used = view->first_page + end;
        stretch_ranges(&all, &first, &end);
        assert_true(view->first_range + first >= ranges_used && end > first);
        ranges_used = view->first_range + end;
    }
    assert_true(used > 0 && used <= views.pages);
    assert_true(ranges_used > 0 && ranges_used <= views.ranges);
    shard_views_free(&views);
}

static enum tokmap_status gather_extent(struct gather *gather, uint64_t first, void *row, bool *cold)
{
    const struct tokmap_extent extent = {first, ROW_TOKENS};
    return gather_row(gather, &extent, 1, ROW_TOKENS, row, cold, NULL);
}

/* The pages of windows that were read in the warm state are populated, also when a window that was not is cold. */
static void populated_pages_are_remembered(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    struct residency_source *source = &residency->sources[0];
    struct gather *gather;
    struct stretch stretch = {0};
    uint16_t row[ROW_TOKENS];
    bool cold = false;
    const struct gather_options options = {.trust_files = false};
    assert_int_equal(gather_open(&gather, source, &options, NULL), TOKMAP_OK);
    assert_int_equal(shard_views_stretch(&source->views, 61000, ROW_TOKENS, &stretch, NULL), TOKMAP_OK);
    assert_int_equal(stretch.offset, 2000);
    assert_int_equal(stretch.count, ROW_TOKENS);
    for (int warm = 0; warm < 2; warm++) {
        residency->shared.warm = warm;
        residency_begin(residency, 1);
        assert_int_equal(gather_extent(gather, 61000, row, &cold), TOKMAP_OK);
        if (!warm)
            assert_false(residency_is_populated(source, &stretch));
        else if (!cold && !source->cannot_populate)
            assert_true(residency_is_populated(source, &stretch));
    }
    if (residency_is_populated(source, &stretch)) {
        const struct tokmap_extent extents[2] = {{61000, ROW_TOKENS}, {1000, ROW_TOKENS}};
        const struct row_extents populated = {0, &extents[0], 1}, other = {0, &extents[1], 1};
        struct stretch late = {0};
        assert_int_equal(shard_views_stretch(&source->views, 1000, ROW_TOKENS, &late, NULL), TOKMAP_OK);
        assert_int_equal(gather_extent(gather, 1000, row, &cold), TOKMAP_OK);
        assert_false(residency_is_populated(source, &late)); /* a batch of one window populates one neighborhood */
        residency_ask(residency, &populated);
        assert_int_equal(source->ask_fd, -1);
        residency_ask(residency, &other);
        assert_int_equal(source->ask_fd, late.view->file.fd);
        residency_flush(residency);
        assert_int_equal(source->ask_fd, -1);
        /* A child has none of the populated pages of its parent. */
        if (memory_is_wiped_on_fork()) {
            int child_status = 1;
            const pid_t child = fork();
            assert_true(child >= 0);
            if (!child)
                _exit(residency_is_populated(source, &stretch));
            assert_int_equal(waitpid(child, &child_status, 0), child);
            assert_int_equal(child_status, 0);
        }
        assert_true(residency_is_populated(source, &stretch));
    }
    const bool populated = residency_is_populated(source, &stretch);
    residency_was_cold(residency, 1);
    assert_false(residency->shared.warm);
    assert_int_equal(residency_is_populated(source, &stretch), populated);
    residency_forget(source);
    assert_false(residency_is_populated(source, &stretch));
    gather_close(gather);
    residency_close(residency);
}

static struct stretch stretch_at(struct residency_source *source, uint64_t token)
{
    struct stretch stretch = {0};
    assert_int_equal(shard_views_stretch(&source->views, token, ROW_TOKENS, &stretch, NULL), TOKMAP_OK);
    return stretch;
}

/* A batch of one window populates one range ahead. Its windows are compared one by one, before their first use, and in
 * the mapping. The window at 90000 is damaged, and the file is then cut. */
static void a_range_is_populated_at_once_and_compared_by_windows(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    struct residency_source *source = &residency->sources[0];
    struct gather *gather;
    uint16_t row[ROW_TOKENS], good = (uint16_t)made_token(&made, 90010), bad = (uint16_t)(good ^ 1);
    bool cold = false;
    int fd;
    const struct gather_options options = {.trust_files = false};
    assert_int_equal(gather_open(&gather, source, &options, NULL), TOKMAP_OK);
    assert_int_equal(os_open(made.bin[1], OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(pwrite(fd, &bad, sizeof bad, 60020), sizeof bad);
    const struct stretch ahead = stretch_at(source, 61000), damaged = stretch_at(source, 90000);
    const struct stretch other = stretch_at(source, 1000);
    assert_true(ahead.view->hashed);
    residency_begin(residency, 1);
    residency_populate_ahead(source, &ahead);
    assert_false(residency_is_present(source, &ahead)); /* the state is not warm */
    residency->shared.warm = true;
    residency_populate_ahead(source, &ahead);
    const bool able = residency_is_present(source, &ahead);
    if (able) {
        residency_populate_ahead(source, &other);
        assert_false(residency_is_present(source, &other));
        assert_true(residency_is_present(source, &damaged) && !residency_is_populated(source, &ahead));
        assert_int_equal(gather_extent(gather, 61000, row, &cold), TOKMAP_OK);
        assert_true(made_row_is(&made, row, 61000, ROW_TOKENS));
        assert_true(residency_is_populated(source, &ahead) && !residency_is_populated(source, &damaged));
        assert_int_equal(gather_extent(gather, 90000, row, &cold), TOKMAP_ERROR_CORRUPT);
        assert_false(cold || residency_is_populated(source, &damaged));
        assert_true(residency_is_present(source, &damaged));
        residency_forget(source);
        assert_false(residency_is_present(source, &ahead));
        residency_begin(residency, 1);
        residency_populate_ahead(source, &ahead);
        assert_true(residency_is_present(source, &damaged));
        assert_int_equal(os_truncate(fd, 50000), 0);
        residency->shared.look++;
        assert_int_equal(gather_extent(gather, 90000, row, &cold), TOKMAP_ERROR_TRUNCATED);
        assert_int_equal(gather_extent(gather, 61000, row, &cold), TOKMAP_ERROR_TRUNCATED);
    }
    for (uint64_t token = 60000; token < made.tokens; token++) {
        const uint16_t value = (uint16_t)made_token(&made, token);
        assert_int_equal(pwrite(fd, &value, sizeof value, (off_t)(2 * (token - 60000))), sizeof value);
    }
    residency->shared.look++;
    residency->shared.change_look++;
    assert_int_equal(gather_extent(gather, 90000, row, &cold), TOKMAP_OK);
    assert_true(made_row_is(&made, row, 90000, ROW_TOKENS));
    os_close(fd);
    gather_close(gather);
    residency_close(residency);
    if (!able)
        skip(); /* the kernel cannot populate a mapping, or does not report what is in the page cache */
}

/* Looks at window 0, whose page is not in the page cache, in the warm or in the asking state. `marked` is the page that
 * is marked as populated. Returns whether it still is; *stays_warm says whether the source is still taken for warm.
 * The look is at the file, or else at the mapping, as if the kernel could not report what is cached of a file. Skips
 * where pages cannot be dropped. */
static bool look_once(bool warm, uint64_t marked, bool ask_the_mapping, bool *stays_warm)
{
    struct residency *residency = open_residency();
    struct residency_source *source = &residency->sources[0];
    source->cannot_tell |= ask_the_mapping;
    struct stretch stretch = {0};
    const struct tokmap_extent extent = {0, ROW_TOKENS};
    const struct row_extents row = {0, &extent, 1};
    assert_int_equal(shard_views_stretch(&source->views, 0, ROW_TOKENS, &stretch, NULL), TOKMAP_OK);
    os_advise_random(stretch.view->file.fd);
    assert_int_equal(os_sync(stretch.view->file.fd), 0);
    /* A page is not dropped while the kernel still reads it for an earlier look. */
    for (uint64_t i = 0; i < 20 && (!i || os_map_resident(stretch.view->tokens, 1)); i++) {
        os_sleep_ns(i * 1000000);
        os_advise_drop(stretch.view->file.fd, 0, 0);
    }
    if (os_map_resident(stretch.view->tokens, 1)) {
        residency_close(residency);
        skip(); /* the file system keeps its files in memory, or the kernel cannot report what is cached */
    }
    const uint64_t bit = stretch.view->first_page + marked;
    bits_set(source->populated, bit, bit + 1);
    residency->shared.warm = warm;
    residency->until_look = 0;
    if (warm)
        residency_named(residency, &row, 1);
    else
        residency_advance(residency, 0, 1); /* window 0 of the order begins at token 0 */
    *stays_warm = residency->shared.warm;
    const bool is_marked = bits_all(source->populated, bit, bit + 1);
    residency_close(residency);
    return is_marked;
}

/* The same up to 20 times, because on a busy machine the kernel may have the page again before the look. A look at a
 * file makes the kernel read the page, and some disks of virtual machines answer within the same call. Hence the last
 * looks are at the mapping, which reads nothing. */
static bool mark_after_look(bool warm, uint64_t marked)
{
    bool is_marked = false, stays_warm = true;
    for (int i = 0; i < 20 && (stays_warm || is_marked != (marked != 0)); i++)
        is_marked = look_once(warm, marked, i >= 10, &stays_warm);
    assert_false(stays_warm);
    return is_marked;
}

/* A populated page that has left the page cache ends what is known of the others. A page that was never populated says
 * nothing of those that were: one cold window in a thousand must not make all others slow. */
static void only_a_populated_page_that_left_makes_it_forget(void **unused)
{
    (void)unused;
    for (int warm = 0; warm < 2; warm++) {
        assert_false(mark_after_look(warm, 0));
        assert_true(mark_after_look(warm, 5));
    }
}

/* Pages 0 and 15 of a neighborhood are in the page cache, and those between them are not. Reading a window on page 0 in
 * the warm state populates that page, and does not bring the others into the cache. */
static void pages_that_are_not_cached_are_not_populated(void **unused)
{
    (void)unused;
    struct residency *residency = open_residency();
    struct residency_source *source = &residency->sources[0];
    struct gather *gather;
    struct stretch stretch = {0};
    uint16_t row[ROW_TOKENS];
    char page[4096];
    bool cold = false;
    size_t got;
    const struct gather_options options = {.trust_files = false};
    assert_int_equal(gather_open(&gather, source, &options, NULL), TOKMAP_OK);
    assert_int_equal(shard_views_stretch(&source->views, 0, ROW_TOKENS, &stretch, NULL), TOKMAP_OK);
    const int fd = stretch.view->file.fd;
    os_advise_random(fd); /* no readahead by the reads below */
    assert_int_equal(os_sync(fd), 0);
    os_advise_drop(fd, 0, 0);
    assert_int_equal(os_pread(fd, page, sizeof page, 0, &got), 0);
    assert_int_equal(os_pread(fd, page, sizeof page, 15 * sizeof page, &got), 0);
    /* A look by os_pread_cached() would itself make the kernel read the page. */
    const char *tokens = (const char *)stretch.view->tokens;
    const bool can_drop = os_page_bytes() == sizeof page && !os_map_resident(tokens + 7 * sizeof page, sizeof page);
    if (can_drop) {
        residency->shared.warm = true;
        residency_begin(residency, 1);
        assert_int_equal(gather_extent(gather, 0, row, &cold), TOKMAP_OK);
        assert_false(cold);
        assert_true(residency_is_populated(source, &stretch) || source->cannot_populate);
        assert_false(residency_is_present(source, &stretch));
        for (uint64_t i = 1; i < 15; i++)
            assert_false(os_map_resident(tokens + i * sizeof page, sizeof page));
    }
    gather_close(gather);
    residency_close(residency);
    if (!can_drop)
        skip(); /* the file system keeps its files in memory, or the kernel cannot report what is cached */
}

/* Returns how many of 64 reads asked the kernel what is in the page cache. */
static unsigned asking_reads(bool unmapped, bool warm)
{
    const struct tokmap_dataset *const datasets[] = {dataset};
    const struct residency_options options = {
        .datasets = datasets, .sources = 1, .window = WINDOW, .order = order, .unmapped = unmapped};
    struct residency *residency;
    struct stretch stretch = {0};
    uint16_t row[ROW_TOKENS];
    unsigned asked = 0;
    size_t got;
    assert_int_equal(residency_open(&residency, &options, NULL), TOKMAP_OK);
    struct residency_source *source = &residency->sources[0];
    assert_int_equal(shard_views_stretch(&source->views, 0, ROW_TOKENS, &stretch, NULL), TOKMAP_OK);
    residency->shared.warm = warm;
    for (int i = 0; i < 64; i++)
        asked += residency_read_cached(source, stretch.view->file.fd, stretch.offset, sizeof row, row, &got);
    if (source->cannot_tell)
        skip();
    residency_close(residency);
    return asked;
}

/* Asking slows a read by a tenth. A mapped source reads a page only once, and must not populate what is not cached. */
static void a_warm_source_without_mapping_rarely_asks(void **unused)
{
    (void)unused;
    assert_int_equal(asking_reads(true, true), 64 / 16);
    assert_int_equal(asking_reads(true, false), 64);
    assert_int_equal(asking_reads(false, true), 64);
}

/* Hashes are asked for in the ranges in which they are read, or else the first use of a range would wait for the part
 * of it that was not asked for. Here, pages 1024 to 2047 are such a range, and its hashes are on two pages of the
 * index. */
static void all_hashes_that_will_be_read_are_asked_for(void **unused)
{
    (void)unused;
    enum { PAGE = 4096, FIRST = 1030, HASHES_BYTES = 4096 };
    struct made_dataset large;
    struct tokmap_dataset *opened = NULL;
    struct tokmap_dataset_options options = TOKMAP_DATASET_OPTIONS_INIT;
    options.reading = TOKMAP_READ_PREAD; /* which does not map the index, so that it can be dropped */
    made_dataset_new(&large, (uint64_t)4096 * PAGE / 2, 0);
    assert_int_equal(tokmap_dataset_open(&opened, large.name, &options, NULL), TOKMAP_OK);
    struct residency *residency;
    const struct tokmap_dataset *const datasets[] = {opened};
    const struct residency_options residency_options = {
        .datasets = datasets, .sources = 1, .window = WINDOW, .order = order};
    assert_int_equal(residency_open(&residency, &residency_options, NULL), TOKMAP_OK);
    struct residency_source *source = &residency->sources[0];
    struct stretch stretch = {0};
    assert_int_equal(shard_views_stretch(&source->views, (uint64_t)FIRST * PAGE / 2, ROW_TOKENS, &stretch, NULL),
                     TOKMAP_OK);
    int fd;
    uint64_t at;
    const void *mapped = NULL;
    struct os_stat file;
    assert_true(stretch.view->hashed);
    assert_true(dataset_page_hashes_open(opened, 0, &fd, &at)); /* an index of 16 KiB would be kept in memory */
    at += HASHES_BYTES;
    assert_true(at % PAGE); /* so that there are two pages */
    assert_int_equal(os_fstat(fd, &file), 0);
    assert_int_equal(os_sync(fd), 0);
    os_advise_drop(fd, 0, 0);
    assert_int_equal(os_map_file(fd, file.bytes, &mapped), 0);
    const char *hashes = (const char *)mapped + at / PAGE * PAGE;
    const bool can_drop =
        os_page_bytes() == PAGE && !os_map_resident(hashes, PAGE) && !os_map_resident(hashes + PAGE, PAGE);
    page_check_ask(&source->check, &stretch);
    bool read = !can_drop;
    for (int i = 0; i < 2000 && !read; i++) {
        read = os_map_resident(hashes, (uint64_t)2 * PAGE);
        (void)usleep(5000);
    }
    os_unmap(mapped, file.bytes);
    os_close(fd);
    residency_close(residency);
    tokmap_dataset_close(opened);
    made_dataset_remove(&large);
    assert_true(read);
    if (!can_drop)
        skip();
}

/* A window that crosses the seam or a border of shards has two stretches. */
static void stretches_cover_a_window(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t first, counts[2];
    } windows[] = {{59950, {50, 50}}, {99999, {1, 99}}, {0, {100, 0}}, {99900, {100, 0}}, {60000, {100, 0}}};
    struct shard_views views;
    assert_int_equal(shard_views_init(&views, dataset, false, false, NULL), TOKMAP_OK);
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        uint64_t done = 0;
        for (int part = 0; part < 2 && done < ROW_TOKENS; part++) {
            struct stretch stretch = {0};
            uint64_t first = windows[i].first + done;
            assert_int_equal(shard_views_stretch(&views, first, ROW_TOKENS - done, &stretch, NULL), TOKMAP_OK);
            assert_int_equal(stretch.count, windows[i].counts[part]);
            assert_int_equal(stretch.offset / 2 + stretch.view->file.first_token, first % made.tokens);
            done += stretch.count;
        }
        assert_int_equal(done, ROW_TOKENS);
    }
    shard_views_free(&views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_in_the_page_cache_need_no_asking),
        cmocka_unit_test(a_cold_window_ends_the_warm_state),
        cmocka_unit_test(nothing_is_asked_for_past_the_end),
        cmocka_unit_test(a_large_batch_is_asked_for_in_parts),
        cmocka_unit_test(pages_have_numbers_of_their_own),
        cmocka_unit_test(populated_pages_are_remembered),
        cmocka_unit_test(a_range_is_populated_at_once_and_compared_by_windows),
        cmocka_unit_test(only_a_populated_page_that_left_makes_it_forget),
        cmocka_unit_test(pages_that_are_not_cached_are_not_populated),
        cmocka_unit_test(a_warm_source_without_mapping_rarely_asks),
        cmocka_unit_test(all_hashes_that_will_be_read_are_asked_for),
        cmocka_unit_test(stretches_cover_a_window),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
