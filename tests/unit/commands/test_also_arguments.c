/* SPDX-License-Identifier: MIT */
/* test_also_arguments.c - --also: which files of other projects belong to plain and to sealed shards, and so are
 * refused or removed, and which are left alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/pack/also_arguments.h"
#include "support/scratch_folder.h"
#include "text/path.h"

static const struct cli_command command = {.program = "tokmap pack"};
static struct tokmap_error error;

static int also_setup(void **state)
{
    return setup(state) || chdir(folder);
}

static int also_teardown(void **state)
{
    return chdir("/") || teardown(state);
}

static struct also_arguments also_of(const char *typed, bool sealed)
{
    struct also_arguments also = {.typed = typed, .sealed = sealed};
    assert_int_equal(also_parse(&command, &also), 0);
    return also;
}

static void touch(const char *name)
{
    const int fd = open(name, O_CREAT | O_WRONLY | O_EXCL, 0666);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

/* Files of all formats and names, for a shard or, with a number, one of a set. */
static const char *const of_formats[] = {
    ".idx", ".meta.json", ".llmc.bin",     ".ds",           ".ds.index",    ".ds.metadata",      ".ds.loss",
    ".npy", ".csv.gz",    ".megatron.bin", ".megatron.idx", ".nanogpt.bin", ".nanogpt.meta.json"};
/* Files that are the shard's, or nobody's. */
static const char *const others[] = {".bin",      ".bin.zst",      ".tmx",      ".mask",
                                     ".megatron", ".megatron.tms", ".olmo.npy", ".bin.idx"};
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void name_make(char name[64], const char *stem, const char *ending)
{
    strcat(strcpy(name, stem), ending);
}

static void all_touch(const char *stem)
{
    char name[64];
    for (size_t i = 0; i < COUNT(of_formats); i++) {
        name_make(name, stem, of_formats[i]);
        touch(name);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        name_make(name, stem, others[i]);
        touch(name);
    }
}

/* Removes all files. Checks that those of formats were there if `formats`, and the others. */
static void all_remove(const char *stem, bool formats)
{
    char name[64];
    for (size_t i = 0; i < COUNT(of_formats); i++) {
        name_make(name, stem, of_formats[i]);
        assert_int_equal(unlink(name), formats ? 0 : -1);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        name_make(name, stem, others[i]);
        assert_int_equal(unlink(name), 0);
    }
}

static void test_copies(void **unused)
{
    (void)unused;
    static const struct {
        const char *typed;
        uint32_t plain, sealed;
    } cases[] = {{"megatron", 0, 1}, {"llmc", 1, 1}, {"olmo,llmc,nanogpt", 1, 3}, {NULL, 0, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct also_arguments plain = also_of(cases[i].typed, false), sealed = also_of(cases[i].typed, true);
        assert_int_equal(also_copies(&plain), cases[i].plain);
        assert_int_equal(also_copies(&sealed), cases[i].sealed);
    }
}

/* Whatever the new shards are, the files of older ones go, and no others. */
static void test_older_are_removed(void **unused)
{
    (void)unused;
    for (int sealed = 0; sealed < 2; sealed++) {
        struct also_arguments also = also_of("nanogpt,olmo,megatron,datatrove,llmc", sealed);
        const struct also_output one = {.prefix = "web", .replace = true};
        const struct also_output set = {.prefix = "web", .numbered = true, .replace = true};
        const char *const stems[] = {"web", "web-00000", "web-123456", "web-0001", "web-00000x", "webs-00000"};
        for (size_t i = 0; i < COUNT(stems); i++)
            all_touch(stems[i]);
        assert_int_equal(also_remove_old(&also, &one, &error), TOKMAP_OK);
        all_remove("web", false);
        all_touch("web");
        assert_int_equal(also_remove_old(&also, &set, &error), TOKMAP_OK);
        for (size_t i = 0; i < COUNT(stems); i++)
            all_remove(stems[i], i != 1);
        assert_int_equal(also_remove_old(&also, &one, &error), TOKMAP_OK); /* there are none */
    }
}

static void test_other_formats_stay(void **unused)
{
    (void)unused;
    struct also_arguments also = also_of("megatron", true);
    const struct also_output one = {.prefix = "web", .replace = true};
    all_touch("web");
    assert_int_equal(also_remove_old(&also, &one, &error), TOKMAP_OK);
    assert_int_equal(access("web.idx", F_OK), -1);
    assert_int_equal(access("web.megatron.bin", F_OK), -1);
    assert_int_equal(access("web.megatron.idx", F_OK), -1);
    touch("web.idx");
    touch("web.megatron.bin");
    touch("web.megatron.idx");
    all_remove("web", true);
}

/* A shard may have the name of a copy: it stays, and where the copy would be written, that is refused first. */
static void test_shards_of_copies(void **unused)
{
    (void)unused;
    static const char *const copies[] = {"megatron", "llmc", "nanogpt"}, *const indexes[] = {".tmx", ".tmx.partial"};
    char tokens[64], index[64];
    for (size_t i = 0; i < COUNT(copies) * 8; i++) {
        const bool sealed = i / COUNT(copies) & 1, set = i / COUNT(copies) & 2;
        const char *copy = copies[i % COUNT(copies)];
        const struct also_output output = {.prefix = "web", .numbered = set, .replace = true};
        struct also_arguments also = also_of("megatron,llmc,nanogpt", sealed);
        (void)snprintf(tokens, sizeof tokens, "web%s.%s.bin", set ? "-00007" : "", copy);
        (void)snprintf(index, sizeof index, "web%s.%s%s", set ? "-00007" : "", copy, indexes[i / COUNT(copies) / 4]);
        touch(tokens);
        touch(index);
        const bool refused = sealed || !strcmp(copy, "llmc");
        assert_int_equal(also_check(&also, &output, 2, false, &error), refused ? TOKMAP_ERROR_EXISTS : TOKMAP_OK);
        assert_true(!refused || !strcmp(path_name(error.path), index));
        assert_int_equal(also_remove_old(&also, &output, &error), TOKMAP_OK);
        assert_false(also.removed);
        assert_int_equal(unlink(tokens), 0);
        assert_int_equal(unlink(index), 0);
    }
}

/* A copy goes before what says that it is one, or readers of the folder would take it for tokens without an index. */
static void test_copies_go_first(void **unused)
{
    (void)unused;
    static const char *const files[][2] = {{"web.nanogpt.bin", "web.nanogpt.meta.json"},
                                           {"web.megatron.bin", "web.megatron.idx"},
                                           {"web-00003.nanogpt.bin", "web-00003.nanogpt.meta.json"},
                                           {"web-00003.megatron.bin", "web-00003.megatron.idx"}};
    for (size_t i = 0; i < COUNT(files); i++) {
        const struct also_output output = {.prefix = "web", .numbered = i > 1, .replace = true};
        struct also_arguments also = also_of("megatron,nanogpt", true);
        assert_int_equal(mkdir(files[i][0], 0777), 0); /* so the first file cannot be removed */
        touch(files[i][1]);
        assert_int_equal(also_remove_old(&also, &output, &error), TOKMAP_ERROR_IO);
        assert_int_equal(also_check(&also, &output, 2, false, &error), TOKMAP_ERROR_EXISTS);
        assert_non_null(strstr(error.message, "this is not a file"));
        assert_int_equal(unlink(files[i][1]), 0);
        assert_int_equal(rmdir(files[i][0]), 0);
    }
}

/* Names that would be too long are refused first: those of copies are longer than those of shards. */
static void test_long_names(void **unused)
{
    (void)unused;
    static const struct split split = {.count = 2, .sets = {{.name = "a"}, {.name = "a-longer-name"}}};
    static const struct {
        bool numbered, split, sealed;
        size_t least; /* bytes of a name that is too long */
    } cases[] = {{false, false, false, 255 - 18 + 1},
                 {false, false, true, 255 - 26 + 1},
                 {true, false, true, 255 - 26 - 6 + 1},
                 {true, true, true, 255 - 26 - 6 - 14 + 1}};
    char prefix[256];
    if (pathconf(".", _PC_NAME_MAX) != 255)
        skip();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < 2; k++) {
            const size_t bytes = cases[i].least - k;
            memset(prefix, 'n', bytes);
            prefix[bytes] = '\0';
            const struct also_arguments also = also_of("nanogpt", cases[i].sealed);
            const struct also_output output = {
                .prefix = prefix, .numbered = cases[i].numbered, .split = cases[i].split ? &split : NULL};
            assert_int_equal(also_check(&also, &output, 2, false, &error), k ? TOKMAP_OK : TOKMAP_ERROR_IO);
        }
}

/* Without options.replace, the names that would be written must be free, and only these. */
static void test_existing(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        bool plain, sealed; /* it is in the way of plain, of sealed shards */
    } cases[] = {{"web.idx", true, false},         {"web.megatron.idx", false, true}, {"web.megatron.bin", false, true},
                 {"web.nanogpt.bin", false, true}, {"web.meta.json", true, false},    {"web.ds", true, true},
                 {"web.llmc.bin", true, true},     {"web.npy", true, true},           {"web.megatron", false, false},
                 {"web.olmo.npy", false, false}};
    const struct also_output one = {.prefix = "web"};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int sealed = 0; sealed < 2; sealed++) {
            struct also_arguments also = also_of("megatron,llmc,datatrove,olmo,nanogpt", sealed);
            touch(cases[i].name);
            const enum tokmap_status status = also_check(&also, &one, 2, false, &error);
            assert_int_equal(unlink(cases[i].name), 0);
            const bool refused = sealed ? cases[i].sealed : cases[i].plain;
            assert_int_equal(status, refused ? TOKMAP_ERROR_EXISTS : TOKMAP_OK);
            assert_true(!refused || !strcmp(error.path, cases[i].name));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_older_are_removed),
                                       cmocka_unit_test(test_other_formats_stay),
                                       cmocka_unit_test(test_shards_of_copies),
                                       cmocka_unit_test(test_existing),
                                       cmocka_unit_test(test_copies_go_first),
                                       cmocka_unit_test(test_long_names)};
    return cmocka_run_group_tests(tests, also_setup, also_teardown);
}
