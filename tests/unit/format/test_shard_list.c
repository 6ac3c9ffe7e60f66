/* SPDX-License-Identifier: MIT */
/* test_shard_list.c - a shard is replaced together with its list of dropped documents: also if the writer is killed
 * after each of its renames, the list is that of the shard that there is. Files of the user stay. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/index_reader.h"
#include "format/shard_file.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"

#define OLD SHARD_LIST_MAGIC "old"
#define NEW SHARD_LIST_MAGIC "new"

static char prefix[600];

static const char *beside(const char *ending)
{
    static char paths[8][900];
    static unsigned next;
    char *made = paths[next++ % 8];
    (void)snprintf(made, sizeof paths[0], "%s%s", prefix, ending);
    return made;
}

/* Fails unless the list has this text; NULL: there is none. */
static void list_is(const char *text)
{
    size_t bytes;
    assert_int_equal(file_exists(beside(".dropped")), text != NULL);
    if (!text)
        return;
    char *found = file_read(beside(".dropped"), &bytes);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(found, text, bytes);
    free(found);
}

/* Fails if a list has another name than its own, or than the one that the user gave it. */
static void no_saved_list(void)
{
    char command[1300];
    (void)snprintf(command, sizeof command, "ls '%s' | grep -q 'dropped[.][0-9a-f]\\{16\\}$'", folder);
    assert_int_not_equal(system(command), 0);
}

static enum tokmap_status writer_open(struct shard_writer **writer, enum shard_list list)
{
    struct shard_writer_options options = plain_options(2);
    options.replace = true;
    options.list = list;
    return shard_writer_open(writer, prefix, &options, &error);
}

/* Writes a shard of one document of so many tokens, whose list, if there is one, has this text. */
static void shard_write(uint64_t tokens, enum shard_list list, const char *text)
{
    static const uint16_t zeros[16];
    struct shard_writer *writer;
    MUST(writer_open(&writer, list));
    if (list == SHARD_LIST_NEW)
        file_write_text(beside(".dropped.partial"), text);
    MUST(shard_writer_add(writer, zeros, tokens, &tokens, 1, 0, &error));
    MUST(shard_writer_commit(writer, "{}", 2, NULL, &error));
}

static uint64_t index_id(void)
{
    struct index index;
    MUST(index_open(&index, beside(".tmx"), &error));
    const uint64_t id = index.id;
    index_close(&index);
    return id;
}

static void replaced_together(void **unused)
{
    (void)unused;
    static const char *const before[] = {NULL, OLD, "mine"};
    for (size_t old = 0; old < 3; old++)
        for (enum shard_list list = SHARD_LIST_STAYS; list <= SHARD_LIST_NEW; list++)
            for (uint64_t tokens = 3; tokens <= 4; tokens++) { /* equal to the old shard, or not */
                (void)snprintf(prefix, sizeof prefix, "%s/s%zu-%d-%d", folder, old, (int)list, (int)tokens);
                if (old != 2 && list != SHARD_LIST_NEW)
                    shard_write(3, SHARD_LIST_STAYS, NULL);
                if (before[old])
                    file_write_text(beside(".dropped"), before[old]);
                shard_write(tokens, list, NEW);
                list_is(list == SHARD_LIST_NEW ? NEW : list == SHARD_LIST_GOES && old == 1 ? NULL : before[old]);
                assert_false(file_exists(beside(".dropped.partial")));
                no_saved_list();
            }
}

static void a_link_is_replaced(void **unused)
{
    (void)unused;
    (void)snprintf(prefix, sizeof prefix, "%s/link", folder);
    shard_write(3, SHARD_LIST_STAYS, NULL);
    file_write_text(beside(".elsewhere"), OLD);
    assert_int_equal(symlink("link.elsewhere", beside(".dropped")), 0);
    shard_write(4, SHARD_LIST_GOES, NULL);
    list_is(NULL);
    assert_true(file_exists(beside(".elsewhere")));
}

/* Does the first calls of a writer that replaces the shard. */
static void calls_do(unsigned calls, uint64_t old, uint64_t new)
{
    char names[4][64];
    (void)snprintf(names[0], sizeof names[0], ".bin.%016llx", (unsigned long long)old);
    (void)snprintf(names[1], sizeof names[1], ".bin.%016llx", (unsigned long long)new);
    (void)snprintf(names[2], sizeof names[2], ".dropped.%016llx", (unsigned long long)old);
    (void)snprintf(names[3], sizeof names[3], ".dropped.%016llx", (unsigned long long)new);
    const char *const of[][2] = {{".bin.partial", names[1]}, {".dropped.partial", names[3]},
                                 {".dropped", names[2]},     {".bin", names[0]},
                                 {".tmx.partial", ".tmx"},   {names[0], NULL},
                                 {names[2], NULL},           {names[1], ".bin"},
                                 {names[3], ".dropped"}};
    assert_true(calls <= 9);
    for (unsigned i = 0; i < calls; i++)
        assert_int_equal(of[i][1] ? rename(beside(of[i][0]), beside(of[i][1])) : unlink(beside(of[i][0])), 0);
}

static void killed_after_each_rename(void **unused)
{
    (void)unused;
    for (unsigned calls = 0; calls <= 9; calls++)
        for (int again = 0; again < 2; again++) { /* the next writer ends early, or replaces the shard once more */
            struct shard_writer *writer;
            (void)snprintf(prefix, sizeof prefix, "%s/k%u-%d", folder, calls, again);
            shard_write(5, SHARD_LIST_NEW, NEW);
            const uint64_t new = index_id();
            static const char *const endings[] = {".bin", ".tmx", ".dropped"};
            static const char *const partials[] = {".bin.partial", ".tmx.partial", ".dropped.partial"};
            for (int i = 0; i < 3; i++)
                assert_int_equal(rename(beside(endings[i]), beside(partials[i])), 0);
            assert_int_equal(rename(beside(".tmx.partial"), beside(".kept")), 0); /* or the next writer removes it */
            assert_int_equal(rename(beside(".bin.partial"), beside(".kept2")), 0);
            assert_int_equal(rename(beside(".dropped.partial"), beside(".kept3")), 0);
            shard_write(4, SHARD_LIST_NEW, OLD);
            const uint64_t old = index_id();
            assert_int_equal(rename(beside(".kept"), beside(".tmx.partial")), 0);
            assert_int_equal(rename(beside(".kept2"), beside(".bin.partial")), 0);
            assert_int_equal(rename(beside(".kept3"), beside(".dropped.partial")), 0);
            calls_do(calls, old, new);
            if (again) {
                shard_write(6, SHARD_LIST_GOES, NULL);
                list_is(NULL);
            } else {
                MUST(writer_open(&writer, SHARD_LIST_STAYS));
                shard_writer_abort(writer);
                list_is(calls < 5 ? OLD : NEW);
                assert_true(index_id() == (calls < 5 ? old : new));
            }
            no_saved_list();
        }
}

/* A name whose list could not get its saved name is refused before anything is written. */
static void test_long_name(void **unused)
{
    (void)unused;
    struct shard_writer *writer;
    if (pathconf(folder, _PC_NAME_MAX) != 255)
        skip();
    const int used = snprintf(prefix, sizeof prefix, "%s/", folder);
    memset(prefix + used, 'n', 232); /* NAME.bin.ID has 253 bytes, and NAME.dropped.ID 257 */
    prefix[used + 232] = '\0';
    shard_write(3, SHARD_LIST_STAYS, NULL);
    MUST(writer_open(&writer, SHARD_LIST_GOES));
    shard_writer_abort(writer);
    assert_int_equal(writer_open(&writer, SHARD_LIST_NEW), TOKMAP_ERROR_IO);
    assert_non_null(strstr(error.message, "choose a shorter name"));
    file_write_text(beside(".dropped"), OLD);
    assert_int_equal(writer_open(&writer, SHARD_LIST_GOES), TOKMAP_ERROR_IO);
    list_is(OLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaced_together),
        cmocka_unit_test(a_link_is_replaced),
        cmocka_unit_test(killed_after_each_rename),
        cmocka_unit_test(test_long_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
