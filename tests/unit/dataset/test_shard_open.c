/* SPDX-License-Identifier: MIT */
/* ci: nonroot */
/*
 * test_shard_open.c - a shard that is replaced at chosen moments while it is opened: this program's own open() takes
 * the place of libc's, and changes the files before it opens the tokens.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

static char prefix[600], tokens[610], aside[620];
static unsigned replacements, absences; /* that are still to come, in this order */
static bool away, busy;

static enum tokmap_status write_version(uint16_t token, bool replace)
{
    const uint64_t end = 1;
    struct shard_writer *writer;
    struct shard_writer_options options = plain_options(2);
    options.replace = replace;
    enum tokmap_status status = shard_writer_open(&writer, prefix, &options, &error);
    if (!status)
        status = shard_writer_add(writer, &token, 1, &end, 1, token, &error);
    return status ? status : shard_writer_commit(writer, "{}", 2, NULL, &error);
}

/* Called before a file is opened. */
static void change_files(const char *path)
{
    if (busy || strcmp(path, tokens) != 0)
        return;
    busy = true;
    if (away)
        assert_int_equal(os_rename(aside, tokens), 0);
    away = false;
    if (replacements) {
        replacements--;
        MUST(write_version((uint16_t)(1 + replacements), true));
    } else if (absences) { /* as if each name were asked for while the file has the other one */
        absences--;
        assert_int_equal(os_rename(tokens, aside), 0);
        away = true;
    }
    busy = false;
}

/* <fcntl.h> gives open() the name open64() on systems that have both. */
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

static int open_here(const char *path, int flags)
{
    enum { AT_WORKING_FOLDER = -100 }; /* AT_FDCWD of <fcntl.h> */
    change_files(path);
    return (int)syscall(SYS_openat, AT_WORKING_FOLDER, path, flags, 0666);
}

int open(const char *path, int flags, ...)
{
    return open_here(path, flags);
}

int open64(const char *path, int flags, ...)
{
    return open_here(path, flags);
}

static enum tokmap_status open_while(unsigned first, unsigned then)
{
    struct tokmap_dataset *dataset;
    replacements = first;
    absences = then;
    const enum tokmap_status status = tokmap_dataset_open(&dataset, prefix, NULL, &error);
    if (!status)
        tokmap_dataset_close(dataset);
    assert_int_equal(replacements, 0);
    return status;
}

static void replacements_do_not_use_up_the_tries(void **unused)
{
    (void)unused;
    (void)snprintf(prefix, sizeof prefix, "%s/shard", folder);
    (void)snprintf(tokens, sizeof tokens, "%s.bin", prefix);
    (void)snprintf(aside, sizeof aside, "%s.aside", prefix);
    MUST(write_version(0, false));
    MUST(open_while(0, 0));
    MUST(open_while(9, 0));
    MUST(open_while(0, 2));
    MUST(open_while(9, 2));
    MUST(open_while(60, 2));
    /* Tokens that stay away are missing. */
    assert_int_equal(open_while(0, 1000), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(os_rename(aside, tokens), 0);
    away = false;
    assert_int_equal(open_while(101, 0), TOKMAP_ERROR_BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replacements_do_not_use_up_the_tries),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
