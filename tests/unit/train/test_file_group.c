/* SPDX-License-Identifier: MIT */
/* test_file_group.c - a writer of a group of files is killed after each of its calls, and so is the next one before it
 * has done anything but create its partial file: the group that was complete stays. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"
#include "train/file_group.h"

#define FILES 3
#define CALLS (3 * FILES)

static char folder[512];
static char texts[3][FILES][600];
static char *paths[FILES], *partials[FILES], *replaced[FILES];
static const struct file_group group = {FILES, paths, partials, replaced};

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    for (int i = 0; i < FILES; i++) {
        paths[i] = texts[0][i];
        partials[i] = texts[1][i];
        replaced[i] = texts[2][i];
        (void)snprintf(paths[i], 600, "%s/v.%d", folder, i);
        (void)snprintf(partials[i], 600, "%s/v.%d.partial", folder, i);
        (void)snprintf(replaced[i], 600, "%s/v.%d.replaced", folder, i);
    }
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

static bool has(const char *path, const char *text)
{
    size_t bytes;
    if (access(path, F_OK))
        return false;
    char *content = file_read(path, &bytes);
    const bool same = bytes == strlen(text) && !memcmp(content, text, bytes);
    free(content);
    return same;
}

/* The files after the first calls of a writer that replaces old by new ones; the old group may lack the first file. */
static void files_after(uint64_t calls, bool first)
{
    for (int i = 0; i < FILES; i++) {
        (void)unlink(paths[i]);
        (void)unlink(partials[i]);
        (void)unlink(replaced[i]);
        if (i || first)
            file_write_text(paths[i], "old");
        file_write_text(partials[i], "new");
    }
    for (uint64_t call = 0; call < calls; call++) {
        const uint64_t file = call % FILES;
        if (call < FILES)
            (void)rename(paths[file], replaced[file]);
        else if (call < 2 * FILES)
            assert_int_equal(rename(partials[file], paths[file]), 0);
        else
            (void)unlink(replaced[file]);
    }
}

static void the_complete_set_stays(void **unused)
{
    (void)unused;
    for (uint64_t calls = 0; calls <= CALLS; calls++)
        for (int first = 0; first < 2; first++)
            for (int later = 0; later < 2; later++) {
                const bool complete = calls >= 2 * FILES;
                files_after(calls, first);
                if (later) /* a second writer, which was killed after it had created its file */
                    file_write_text(partials[FILES - 1], "");
                if (!access(partials[FILES - 1], F_OK)) /* as partial_file_open() does it */
                    assert_int_equal(file_group_take_back(&group), 0);
                assert_int_equal(file_group_finish(&group), 0);
                for (int i = 0; i < FILES; i++) {
                    const bool absent = !i && !first && !complete;
                    if (absent ? !access(paths[i], F_OK) : !has(paths[i], complete ? "new" : "old"))
                        fail_msg("file %d after %d calls, the old group %s, %s", i, (int)calls,
                                 first ? "whole" : "without the first file", later ? "and a second writer" : "alone");
                    assert_int_equal(access(replaced[i], F_OK), -1);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_complete_set_stays)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
