/* SPDX-License-Identifier: MIT */
/*
 * test_foreign_writer.c - the parts of other projects' files that the command-line tests cannot reach: documents longer
 * than Megatron's lengths can say, gzip files of several blocks, and fields of a .csv that need quotes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/convert/foreign_writer.h"
#include "common/bytes.h"
#include "format/foreign/foreign_index.h"
#include "platform/os.h"
#include "support/scratch_folder.h"

static const char *const endings[] = {".a", ".b"};

static void group_open(struct output_group *group, const char *prefix)
{
    *group = (struct output_group){.count = 2, .replace = true};
    struct tokmap_error error = {0};
    assert_int_equal(output_group_open(group, prefix, endings, &error), TOKMAP_OK);
}

/* Commits the group and returns the bytes of its second file, which the caller frees. */
static uint8_t *group_read(struct output_group *group, const char *prefix, size_t *bytes)
{
    char path[640];
    struct os_stat found;
    struct tokmap_error error = {0};
    int fd;
    (void)snprintf(path, sizeof path, "%s.b", prefix);
    assert_int_equal(output_group_commit(group, &error), TOKMAP_OK);
    output_group_free(group);
    assert_int_equal(os_open(path, OS_READ, &fd), 0);
    assert_int_equal(os_fstat(fd, &found), 0);
    uint8_t *read = malloc(found.bytes + 1);
    assert_non_null(read);
    assert_int_equal(os_pread(fd, read, found.bytes, 0, bytes), 0);
    assert_int_equal(*bytes, found.bytes);
    os_close(fd);
    return read;
}

/* Writes a group of which the second file has 300,000 bytes, as a process does that continues the work of a killed one.
 */
static enum tokmap_status equal_write(const char *prefix, const char *absent, struct tokmap_error *error)
{
    static const uint8_t zeros[300000];
    struct output_group group = {.count = 2, .absent = absent, .replace = true, .equal = true};
    enum tokmap_status status = output_group_open(&group, prefix, endings, error);
    for (uint32_t i = 0; i < 2 && !status; i++)
        status = output_group_add(&group, i, zeros, i ? sizeof zeros : 5, error);
    if (!status)
        status = output_group_commit(&group, error);
    output_group_free(&group);
    return status;
}

/* A file with other bytes is not replaced, and neither are the others then. */
static void test_equal(void **unused)
{
    (void)unused;
    char prefix[600], a[640], b[640];
    struct tokmap_error error = {0};
    const uint64_t places[] = {0, 150000, 299999, 300000};
    (void)snprintf(prefix, sizeof prefix, "%s/x", folder);
    (void)snprintf(a, sizeof a, "%s.a", prefix);
    (void)snprintf(b, sizeof b, "%s.b", prefix);
    assert_int_equal(equal_write(prefix, NULL, &error), TOKMAP_OK);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct os_stat before, after;
        assert_int_equal(equal_write(prefix, NULL, &error), TOKMAP_OK); /* over equal ones */
        int fd;
        assert_int_equal(os_open(b, OS_WRITE_OLD, &fd), 0);
        assert_int_equal(os_pwrite(fd, "u", 1, places[i]), 0);
        os_close(fd);
        assert_int_equal(os_stat(a, &before), 0);
        assert_int_equal(equal_write(prefix, NULL, &error), TOKMAP_ERROR_EXISTS);
        assert_string_equal(error.path, b);
        assert_non_null(strstr(error.message, "may be yours"));
        assert_true(!os_stat(a, &after) && after.inode == before.inode);
        assert_int_equal(os_unlink(b), 0);
    }
    assert_int_equal(symlink(a, b), 0); /* never ours */
    assert_int_equal(equal_write(prefix, NULL, &error), TOKMAP_ERROR_EXISTS);
    assert_int_equal(os_unlink(b), 0);
    assert_int_equal(equal_write(prefix, a, &error), TOKMAP_ERROR_EXISTS);
    assert_string_equal(error.path, a);
}

/* A document of 2^32 + 7 tokens is three sequences, between a document of 3 tokens and an empty one. */
static void test_megatron_lengths(void **unused)
{
    (void)unused;
    char prefix[600];
    struct output_group group;
    struct megatron_writer writer;
    struct megatron_index index;
    struct tokmap_error error = {0};
    size_t bytes = 0;
    (void)snprintf(prefix, sizeof prefix, "%s/x", folder);
    group_open(&group, prefix);
    megatron_writer_init(&writer, folder);
    const uint64_t large = ((uint64_t)1 << 32) + 7;
    assert_int_equal(megatron_writer_add(&writer, 3), 0);
    assert_int_equal(megatron_writer_add(&writer, large), 0);
    assert_int_equal(megatron_writer_add(&writer, 0), 0);
    assert_int_equal(megatron_writer_finish(&writer, ELEMENT_U16, &group, 1, &error), TOKMAP_OK);
    megatron_writer_free(&writer);
    uint8_t *read = group_read(&group, prefix, &bytes);
    assert_int_equal(megatron_parse(&index, "x", read, bytes, bytes, &error), TOKMAP_OK);
    const struct foreign_bytes in_memory = {"x", read, bytes, -1};
    assert_int_equal(megatron_check(&index, &in_memory, &error), TOKMAP_OK);
    assert_true(index.sequences == 5 && index.documents == 3 && index.element == ELEMENT_U16);
    const uint64_t lengths[] = {3, INT32_MAX, INT32_MAX, 9, 0}, firsts[] = {0, 1, 4, 5};
    uint64_t at = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(load32(read + index.lengths_at + 4 * i), lengths[i]);
        assert_true(load64(read + index.pointers_at + 8 * i) == at);
        at += 2 * lengths[i];
    }
    for (int i = 0; i < 4; i++)
        assert_true(load64(read + index.documents_at + 8 * i) == firsts[i]);
    assert_true(at == 2 * (large + 3));
    free(read);
}

/* Blocks that are full, and one that is exactly full at the end; the CRC is that of zlib for this text. */
static void test_gzip(void **unused)
{
    (void)unused;
    char prefix[600];
    struct output_group group;
    struct gzip_stored gzip;
    struct tokmap_error error = {0};
    uint8_t block[GZIP_BLOCK], text[1070];
    size_t bytes = 0;
    (void)snprintf(prefix, sizeof prefix, "%s/x", folder);
    group_open(&group, prefix);
    memcpy(text, "123456789", 9);
    assert_int_equal(gzip_stored_begin(&gzip, block, &group, 1, &error), TOKMAP_OK);
    assert_int_equal(gzip_stored_add(&gzip, text, 9, &group, 1, &error), TOKMAP_OK);
    assert_int_equal(gzip_stored_end(&gzip, &group, 1, &error), TOKMAP_OK);
    uint8_t *read = group_read(&group, prefix, &bytes);
    assert_int_equal(bytes, 10 + 5 + 9 + 8);
    assert_true(load32(read + bytes - 8) == 0xCBF43926u && load32(read + bytes - 4) == 9);
    assert_true(read[10] == 1 && load16(read + 11) == 9 && load16(read + 13) == (uint16_t)~9);
    free(read);
    group_open(&group, prefix);
    memset(text, 'x', sizeof text);
    assert_int_equal(gzip_stored_begin(&gzip, block, &group, 1, &error), TOKMAP_OK);
    for (int i = 0; i < 131; i++)
        assert_int_equal(gzip_stored_add(&gzip, text, i < 130 ? 1000 : 1070, &group, 1, &error), TOKMAP_OK);
    assert_int_equal(gzip_stored_end(&gzip, &group, 1, &error), TOKMAP_OK);
    read = group_read(&group, prefix, &bytes);
    assert_int_equal(bytes, 10 + 3 * 5 + 131070 + 8); /* two full blocks, and an empty one */
    assert_true(read[10] == 0 && load16(read + 11) == GZIP_BLOCK && read[bytes - 13] == 1);
    free(read);
}

static void test_csv(void **unused)
{
    (void)unused;
    char prefix[600];
    struct output_group group;
    struct olmo_writer *writer = malloc(sizeof *writer);
    struct tokmap_error error = {0};
    const char path[] = "a,\"b\"\n";
    const struct tokmap_origin origin = {path, sizeof path - 1, 6};
    static const char wanted[] = "0,5,0,\"a,\"\"b\"\"?\",7\n5,5,1,,\n";
    size_t bytes = 0;
    assert_non_null(writer);
    (void)snprintf(prefix, sizeof prefix, "%s/x", folder);
    group_open(&group, prefix);
    assert_int_equal(olmo_writer_begin(writer, &group, 1, &error), TOKMAP_OK);
    assert_int_equal(olmo_writer_add(writer, 0, 5, &origin, &group, 1, &error), TOKMAP_OK);
    assert_int_equal(olmo_writer_add(writer, 5, 5, NULL, &group, 1, &error), TOKMAP_OK);
    assert_int_equal(olmo_writer_end(writer, &group, 1, &error), TOKMAP_OK);
    uint8_t *read = group_read(&group, prefix, &bytes);
    assert_int_equal(bytes, 10 + 5 + sizeof wanted - 1 + 8);
    assert_memory_equal(read + 15, wanted, sizeof wanted - 1);
    free(read);
    free(writer);
}

static void test_heads(void **unused)
{
    (void)unused;
    uint8_t head[LLMC_HEAD_BYTES];
    struct foreign_layout layout;
    struct tokmap_error error = {0};
    char text[DATATROVE_TEXT_MOST], name[2 * DATATROVE_NAME_MOST];
    llmc_head(head, 4, LLMC_TOKENS_MOST);
    assert_int_equal(llmc_parse(&layout, "x", head, sizeof head, 1024 + 4 * LLMC_TOKENS_MOST, &error), TOKMAP_OK);
    assert_true(layout.tokens == LLMC_TOKENS_MOST && layout.element == ELEMENT_U32);
    size_t bytes = datatrove_metadata(text, NULL, 2, 999);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(text, "Unknown Tokenizer|2\n999\n999 T");
    (void)datatrove_metadata(text, "a\nb", 4, 7000000);
    assert_string_equal(text, "a?b|4\n7000000\n7.00 MT");
    (void)datatrove_metadata(text, "x", 4, 999999);
    assert_string_equal(text, "x|4\n999999\n1.00 MT");
    (void)datatrove_metadata(text, "x", 4, 14761);
    assert_string_equal(text, "x|4\n14761\n14.8 kT");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    bytes = datatrove_metadata(text, name, 2, UINT64_MAX);
    assert_int_equal(bytes, strlen(text));
    assert_true(strlen(text) < DATATROVE_TEXT_MOST);
}

/* A file of many MiB leaves the page cache while it is written, but for its end. */
static void test_large(void **unused)
{
    (void)unused;
    enum { MIB = 1 << 20, LARGE = 40 };
    static const uint8_t bytes[MIB] = {1};
    if (!file_pages_drop(folder))
        skip();
    struct tokmap_error error = {0};
    struct output_group group = {.count = 2, .sync = true};
    assert_int_equal(output_group_open(&group, in_folder(folder, "large"), endings, &error), TOKMAP_OK);
    for (int i = 0; i < LARGE; i++)
        assert_int_equal(output_group_add(&group, 1, bytes, sizeof bytes, &error), TOKMAP_OK);
    assert_int_equal(output_group_commit(&group, &error), TOKMAP_OK);
    output_group_free(&group);
    assert_in_range(file_cached(in_folder(folder, "large.b")), 1, WRITE_BEHIND_KEPT + 2 * MIB);
}

/* A group is given up while a thread stores a file. That thread has ended before the file is closed. */
static void test_given_up(void **unused)
{
    (void)unused;
    static const uint8_t bytes[1 << 20] = {1};
    struct tokmap_error error = {0};
    struct output_group group = {.count = 2, .sync = true};
    assert_int_equal(output_group_open(&group, in_folder(folder, "large"), endings, &error), TOKMAP_OK);
    while (!group.parts[1].behind.flush && group.parts[1].bytes < 2 * WRITE_BEHIND_FLUSH)
        assert_int_equal(output_group_add(&group, 1, bytes, sizeof bytes, &error), TOKMAP_OK);
    assert_in_range(group.parts[1].bytes, WRITE_BEHIND_FLUSH, WRITE_BEHIND_FLUSH + 2 * sizeof bytes);
    output_group_free(&group);
    assert_false(file_exists(in_folder(folder, "large.b.partial")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_equal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_megatron_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gzip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_csv, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_up, setup, teardown),
        cmocka_unit_test(test_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
