/* SPDX-License-Identifier: MIT */
/*
 * test_name_files.c - a group of files gets its names from whatever state a killed process has left, and a note that is
 * damaged, or names files elsewhere, changes nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/name_files.h"
#include "support/scratch_folder.h"

#define NAME "out/web"
#define WORK NAME ".work"

static struct tokmap_error error;
static struct name_files web = {.name = NAME};

/* The files of the group, in the order in which they get their names. */
static const struct {
    unsigned level;
    const char *from, *to;
} files[] = {{0, WORK "/web-00000.bin.ready", NAME "-00000.bin"},
             {1, WORK "/web-00000.tmx.ready", NAME "-00000.tmx"},
             {2, WORK "/web.ready", NAME}};
#define FILES (sizeof files / sizeof files[0])

static int files_setup(void **state)
{
    return setup(state) || chdir(folder);
}

static int files_teardown(void **state)
{
    return chdir("/") || teardown(state);
}

static void file_holds(const char *path, const char *text)
{
    size_t bytes;
    char *found = file_read(path, &bytes);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(found, text, bytes);
    free(found);
}

/* Makes an old set of two shards, a new one of one shard, and the note. */
static void begin(void)
{
    static const char *const old[] = {NAME, NAME "-00000.bin", NAME "-00000.tmx", NAME "-00001.bin", NAME "-00001.tmx"};
    struct name_files group = {.name = NAME};
    assert_int_equal(system("rm -rf out && mkdir -p " WORK), 0);
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        file_write_text(old[i], "old");
    for (size_t i = 0; i < FILES; i++) {
        file_write_text(files[i].from, "new");
        name_files_add(&group, files[i].level, strdup(files[i].from), strdup(files[i].to));
    }
    name_files_remove(&group, 0, strdup(NAME "-00001.bin"));
    name_files_remove(&group, 1, strdup(NAME "-00001.tmx"));
    assert_false(name_files_pending(&web));
    assert_int_equal(name_files_write(&group, true, NULL, NULL, &error), TOKMAP_OK);
    name_files_free(&group);
    assert_true(name_files_pending(&web));
}

static void check(void)
{
    for (size_t i = 0; i < FILES; i++) {
        file_holds(files[i].to, "new");
        assert_false(file_exists(files[i].from));
    }
    assert_false(file_exists(NAME "-00001.bin") || file_exists(NAME "-00001.tmx") || name_files_pending(&web));
}

/* A process was killed after so many removals of step 1, and after so many renames of step 2. */
static void completed(void **unused)
{
    (void)unused;
    for (int stays = 0; stays < 2; stays++)
        for (size_t removed = 0; removed <= 3; removed++)
            for (size_t renamed = 0; renamed <= (removed < 3 ? 0 : FILES); renamed++) {
                static const char *const order[] = {NAME, NAME "-00000.tmx", NAME "-00001.tmx"};
                bool found = false;
                begin();
                for (size_t i = 0; i < removed; i++)
                    assert_int_equal(unlink(order[i]), 0);
                for (size_t i = 0; i < renamed; i++)
                    assert_int_equal(rename(files[i].from, files[i].to), 0);
                assert_int_equal(name_files_complete(&web, true, stays, &found, &error), TOKMAP_OK);
                assert_true(found);
                check();
                assert_int_equal(file_exists(WORK "/" NAME_FILES_NAMED), stays);
                assert_int_equal(name_files_complete(&web, true, stays, &found, &error), TOKMAP_OK);
                assert_false(found);
            }
}

/* Without a note, a group appears whole or not at all, and its note may be beside it. */
static void without_a_note(void **unused)
{
    (void)unused;
    for (int fails = 0; fails < 2; fails++) {
        struct name_files web_group = {.name = NAME};
        assert_int_equal(system("rm -rf out && mkdir out"), 0);
        if (fails) /* no file can get this name */
            assert_int_equal(mkdir(NAME ".ds", 0755), 0);
        file_write_text(NAME ".idx", "old");
        file_write_text(NAME ".loss", "old");
        file_write_text(NAME ".bin.partial", "new");
        file_write_text(NAME ".ds.partial", "new");
        file_write_text(NAME ".idx.partial", "new");
        name_files_add(&web_group, 0, strdup(NAME ".bin.partial"), strdup(NAME ".bin"));
        name_files_add(&web_group, 0, strdup(NAME ".ds.partial"), strdup(NAME ".ds"));
        name_files_add(&web_group, 1, strdup(NAME ".idx.partial"), strdup(NAME ".idx"));
        name_files_remove(&web_group, 1, strdup(NAME ".loss"));
        assert_int_equal(name_files_now(&web_group, true, &error), fails ? TOKMAP_ERROR_IO : TOKMAP_OK);
        assert_int_equal(file_exists(NAME ".bin"), !fails);
        assert_int_equal(file_exists(NAME ".idx.partial"), fails);
        assert_false(file_exists(NAME ".loss") || file_exists(NAME ".bin.partial"));
        if (fails)
            assert_non_null(strstr(error.message, "the old output has already been removed"));
        else
            file_holds(NAME ".idx", "new");
        name_files_free(&web_group);
    }
    struct name_files group = {.name = NAME, .beside = true};
    bool found = false;
    file_write_text(NAME ".json.partial", "new");
    name_files_add(&group, 1, strdup(NAME ".json.partial"), strdup(NAME ".json"));
    assert_int_equal(name_files_write(&group, true, NULL, NULL, &error), TOKMAP_OK);
    assert_true(file_exists(NAME ".naming") && name_files_pending(&group));
    assert_int_equal(name_files_complete(&group, true, false, &found, &error), TOKMAP_OK);
    file_holds(NAME ".json", "new");
    assert_true(found && !file_exists(NAME ".naming"));
    name_files_free(&group);
}

/* A file that is neither here nor there is lost, and the message names it. */
static void lost(void **unused)
{
    bool found;
    (void)unused;
    begin();
    assert_int_equal(unlink(files[1].from), 0);
    assert_int_equal(unlink(files[1].to), 0);
    assert_int_equal(name_files_complete(&web, true, false, &found, &error), TOKMAP_ERROR_CORRUPT);
    assert_string_equal(error.path, files[1].to);
    assert_true(name_files_pending(&web));
}

/* When the first file gets its name, nothing speaks for it any more: the old manifest and the old indexes are gone.
 * What failed then can be completed. */
static void in_order(void **unused)
{
    bool found;
    (void)unused;
    begin();
    assert_int_equal(unlink(files[0].to), 0);
    assert_int_equal(mkdir(files[0].to, 0755), 0); /* no file can get this name */
    assert_int_equal(name_files_complete(&web, true, false, &found, &error), TOKMAP_ERROR_IO);
    assert_true(name_files_pending(&web));
    for (size_t i = 0; i < FILES; i++) {
        assert_true(file_exists(files[i].from));
        assert_true(i == 0 || !file_exists(files[i].to));
    }
    assert_false(file_exists(NAME "-00001.tmx"));
    assert_int_equal(rmdir(files[0].to), 0);
    assert_int_equal(name_files_complete(&web, true, false, &found, &error), TOKMAP_OK);
    check();
}

static void damaged(void **unused)
{
    static const char *const notes[] = {"",
                                        "tokmap-naming 1\nmask 0\nset 1 0 \nend\n",
                                        NAME_FILES_HEAD,
                                        NAME_FILES_HEAD "end\n",
                                        NAME_FILES_HEAD "2\nweb.work/web.ready\nweb\n",
                                        NAME_FILES_HEAD "2\nweb.work/web.ready\nend\n",
                                        NAME_FILES_HEAD "3\nweb.work/web.ready\nweb\nend\n",
                                        NAME_FILES_HEAD "2\nweb.work/web.ready\n../web\nend\n",
                                        NAME_FILES_HEAD "2\nweb.work/../../web.ready\nweb\nend\n",
                                        NAME_FILES_HEAD "2\n\n/etc/web\nend\n",
                                        NAME_FILES_HEAD "1\n\nother.bin\nend\n",
                                        NAME_FILES_HEAD "0\nother.bin\nweb-00000.bin\nend\n",
                                        NAME_FILES_HEAD "2\nweb.work/web.ready\nweb\nend\nmore"};
    bool found;
    (void)unused;
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        begin();
        file_write_text("out/other.bin", "of the user");
        file_write_text(WORK "/naming", notes[i]);
        assert_int_equal(name_files_complete(&web, true, false, &found, &error), TOKMAP_ERROR_CORRUPT);
        assert_true(found && file_exists(files[0].from));
        file_holds(NAME, "old");
        file_holds("out/other.bin", "of the user");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(completed), cmocka_unit_test(lost), cmocka_unit_test(in_order),
                                       cmocka_unit_test(damaged), cmocka_unit_test(without_a_note)};
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
