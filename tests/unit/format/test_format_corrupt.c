/* SPDX-License-Identifier: MIT */
/*
 * test_format_corrupt.c - damaged and hostile indexes, with one fault each. Damage is found by the checksums. Where the
 * test makes the checksums valid again over hostile content, the reader must refuse the content or answer without
 * reading outside the file.
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

#include "format/index_verify.h"
#include "fuzz/index_exercise.h"
#include "platform/os.h"
#include "support/awkward_text.h"
#include "support/shard_help.h"

static char folder[512];
static uint8_t *base; /* a sound index */
static size_t base_bytes;
static char prefix[600];

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    (void)snprintf(prefix, sizeof prefix, "%s/x", folder);
    uint64_t ends[] = {3, 3, 8, 20, 21, 400, 700};
    shard_make_columns(prefix, 2, 0, ends, 7);
    base = file_read(in_folder(folder, "x.tmx"), &base_bytes);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    free(base);
    scratch_remove(folder);
    return 0;
}

static uint8_t *copy_of_base(void)
{
    uint8_t *bytes = malloc(base_bytes + 4096);
    assert_non_null(bytes);
    memcpy(bytes, base, base_bytes);
    memset(bytes + base_bytes, 0, 4096);
    return bytes;
}

/* Opens a shard with these bytes as its index. If that succeeds, calls every function of a dataset. Returns the status
 * of opening, or else that of verify. */
static enum tokmap_status outcome(const uint8_t *bytes, size_t count)
{
    /* A new file is faster, because ext4 flushes a truncated file when it is closed. */
    (void)os_unlink(in_folder(folder, "x.tmx"));
    file_write(in_folder(folder, "x.tmx"), bytes, count);
    struct tokmap_dataset *dataset;
    memset(&error, 0, sizeof error);
    enum tokmap_status status = tokmap_dataset_open(&dataset, prefix, NULL, &error);
    if (status) {
        assert_int_equal(error.status, status);
        assert_true(strlen(error.message) > 20);
        assert_non_null(strstr(error.path, "/x."));
        return status;
    }
    status = exercise_dataset(dataset);
    tokmap_dataset_close(dataset);
    return status;
}

static struct index_header header_of(const uint8_t *bytes)
{
    struct index_header header;
    memcpy(&header, bytes, sizeof header);
    return header;
}

/* Returns the offset of a section's entry in the base. */
static size_t entry_at(uint32_t type)
{
    struct index_header header = header_of(base);
    for (uint32_t i = 0; i < header.sections; i++) {
        size_t at = (size_t)header.table_offset + i * sizeof(struct index_entry);
        if (load32(base + at) == type)
            return at;
    }
    fail();
    return 0;
}

/* Returns the offset of a section's content in the base. */
static size_t section_at(uint32_t type)
{
    return (size_t)load64(base + entry_at(type) + offsetof(struct index_entry, offset));
}

static void the_base_is_sound(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_OK);
    /* Other tests rely on index_rehash(), which must change nothing here. */
    index_rehash(bytes, base_bytes);
    assert_memory_equal(bytes, base, base_bytes);
    free(bytes);
}

/* From one place of the index to the next that is changed: 1, or 9 under an emulator. Odd, so that each byte of a word
 * has its turn. */
static size_t places_step(void)
{
    return awkward_share() > 3 ? 9 : 1;
}

static void every_flipped_bit_is_noticed(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    for (size_t at = 0; at < base_bytes; at += places_step()) {
        uint8_t bit = (uint8_t)(1u << at % 8);
        bytes[at] ^= bit;
        enum tokmap_status status = outcome(bytes, base_bytes);
        if (status == TOKMAP_OK)
            fail_msg("a flipped bit in byte %zu was not noticed", at);
        bytes[at] ^= bit;
    }
    free(bytes);
}

static void every_truncation_is_noticed(void **unused)
{
    (void)unused;
    for (size_t count = 0; count < base_bytes; count += places_step()) {
        enum tokmap_status status = outcome(base, count);
        if (status != TOKMAP_ERROR_TRUNCATED)
            fail_msg("an index truncated to %zu bytes results in %s", count, tokmap_status_name(status));
    }
}

static void added_bytes_are_noticed(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    static const size_t added[] = {1, 24, 40, 64, 4096};
    for (int i = 0; i < 5; i++)
        assert_int_equal(outcome(bytes, base_bytes + added[i]), TOKMAP_ERROR_TRUNCATED);
    free(bytes);
}

static void a_wrong_length_of_the_tokens_is_noticed(void **unused)
{
    (void)unused;
    static const long lengths[] = {0, 1, 1398, 1399, 1401, 1402, 5000};
    size_t bytes;
    uint8_t *tokens = file_read(in_folder(folder, "x.bin"), &bytes);
    assert_int_equal(bytes, 1400);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(truncate(in_folder(folder, "x.bin"), lengths[i]), 0);
        assert_int_equal(outcome(base, base_bytes), TOKMAP_ERROR_TRUNCATED);
        assert_non_null(strstr(error.path, "x.bin"));
    }
    file_write(in_folder(folder, "x.bin"), tokens, bytes);
    assert_int_equal(outcome(base, base_bytes), TOKMAP_OK);
    free(tokens);
}

static void other_files_are_refused(void **unused)
{
    (void)unused;
    char text[2000];
    memset(text, 'a', sizeof text);
    assert_int_equal(outcome((uint8_t *)text, sizeof text), TOKMAP_ERROR_FORMAT);
    assert_int_equal(outcome((uint8_t *)text, 3), TOKMAP_ERROR_FORMAT);
    memset(text, 0, sizeof text);
    assert_int_equal(outcome((uint8_t *)text, sizeof text), TOKMAP_ERROR_FORMAT);
}

static void only_unknown_major_versions_are_refused(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    store16(bytes + 8, 2);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_ERROR_VERSION);
    index_rehash(bytes, base_bytes);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_ERROR_VERSION);
    store16(bytes + 8, 0);
    index_rehash(bytes, base_bytes);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_ERROR_CORRUPT);
    store16(bytes + 8, 1);
    store16(bytes + 10, 7); /* a file of an unknown minor version is read */
    index_rehash(bytes, base_bytes);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_OK);
    free(bytes);
}

/* The base has columns (since 2) and hashes of pages (since 3). */
static void the_minor_version_is_the_lowest_one_with_all_sections(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    assert_int_equal(load16(base + 10), 3);
    for (uint16_t minor = 0; minor <= INDEX_MINOR; minor++) {
        store16(bytes + 10, minor);
        index_rehash(bytes, base_bytes);
        assert_int_equal(outcome(bytes, base_bytes), minor == 3 ? TOKMAP_OK : TOKMAP_ERROR_CORRUPT);
    }
    free(bytes);
}

/* Writes a shard with this text about it, and verifies it. */
static enum tokmap_status about_verified(const char *about, uint64_t bytes, uint64_t *offset)
{
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    struct tokmap_dataset *dataset;
    uint8_t content[16];
    options.replace = true;
    MUST(shard_writer_open(&writer, in_folder(folder, "about"), &options, &error));
    MUST(shard_writer_commit(writer, about, bytes, content, &error));
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "about"), NULL, &error));
    const enum tokmap_status status = tokmap_dataset_verify(dataset, NULL, NULL, &error);
    *offset = error.offset;
    tokmap_dataset_close(dataset);
    return status;
}

static void the_about_section_is_json_in_utf8(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        enum tokmap_status status;
    } texts[] = {
        {"{\"tool\":\"\xc3\xa4\"}", TOKMAP_OK},
        {" [1, {}] ", TOKMAP_OK},
        {"{\"tool\":\"\xc3\"}", TOKMAP_ERROR_CORRUPT},
        {"{\"tool\":", TOKMAP_ERROR_CORRUPT},
        {"{} x", TOKMAP_ERROR_CORRUPT},
        {"tool", TOKMAP_ERROR_CORRUPT},
        {" ", TOKMAP_ERROR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t offset;
        const enum tokmap_status status = about_verified(texts[i].text, strlen(texts[i].text), &offset);
        if (status != texts[i].status)
            fail_msg("%s: %s", texts[i].text, error.message);
    }
}

/* ---- hostile content under valid checksums ---- */

struct change {
    uint32_t section; /* 0: the change is in the header; otherwise in this section's content or entry */
    bool entry;
    size_t offset;
    uint32_t width;
    uint64_t value;
    enum tokmap_status expected;
};

#define IN_HEADER(field, value, expected)                                                                              \
    {                                                                                                                  \
        0, false, offsetof(struct index_header, field), sizeof(((struct index_header *)0)->field), value, expected     \
    }
#define IN_ENTRY(type, field, value, expected)                                                                         \
    {                                                                                                                  \
        type, true, offsetof(struct index_entry, field), sizeof(((struct index_entry *)0)->field), value, expected     \
    }
#define IN_SHARD(field, value, expected)                                                                               \
    {                                                                                                                  \
        SECTION_SHARD, false, offsetof(struct section_shard, field), sizeof(((struct section_shard *)0)->field),       \
            value, expected                                                                                            \
    }
#define IN_SECTION(type, at, width, value)                                                                             \
    {                                                                                                                  \
        type, false, at, width, value, TOKMAP_ERROR_CORRUPT                                                            \
    }

#define BAD TOKMAP_ERROR_CORRUPT
#define HUGE_NUMBER UINT64_MAX

/* clang-format off */
static const struct change changes[] = {
    IN_HEADER(header_bytes, 63, BAD),
    IN_HEADER(header_bytes, 128, BAD),
    IN_HEADER(entry_bytes, 0, BAD),
    IN_HEADER(entry_bytes, 48, BAD),
    IN_HEADER(sections, 0, BAD),
    IN_HEADER(sections, 6, BAD),
    IN_HEADER(sections, 8, BAD),
    IN_HEADER(sections, 65, BAD),
    IN_HEADER(sections, UINT32_MAX, BAD),
    IN_HEADER(table_offset, 0, BAD),
    IN_HEADER(table_offset, 63, BAD),
    IN_HEADER(table_offset, 64, BAD),
    IN_HEADER(table_offset, HUGE_NUMBER, BAD),
    IN_HEADER(table_offset, HUGE_NUMBER - 63, BAD),
    IN_HEADER(file_bytes, 0, TOKMAP_ERROR_TRUNCATED),
    IN_HEADER(file_bytes, HUGE_NUMBER, TOKMAP_ERROR_TRUNCATED),
    IN_HEADER(reserved, 1, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, type, 0, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, type, SECTION_BLOCKS, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, type, 99, BAD),
    IN_ENTRY(SECTION_BLOCKS, type, 99, BAD),
    IN_ENTRY(SECTION_SHARD, type, 99, BAD),
    IN_ENTRY(SECTION_ORIGIN, type, 99, TOKMAP_OK),
    IN_ENTRY(SECTION_ORIGIN, type, UINT32_MAX, TOKMAP_OK),
    IN_ENTRY(SECTION_ABOUT, type, SECTION_STREAMS, BAD), /* known since 1.1, and then it has to be required */
    IN_ENTRY(SECTION_ABOUT, type, SECTION_FRAMES, BAD),  /* the same since 1.4 */
    IN_ENTRY(SECTION_ABOUT, type, SECTION_ORIGIN, BAD),
    IN_ENTRY(SECTION_ORIGIN, flags, 1, BAD),
    IN_ENTRY(SECTION_ORIGIN, flags, 2, BAD),
    IN_ENTRY(SECTION_ORIGIN, flags, 1u << 31, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, offset, 0, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, offset, 65, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, offset, 128, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, offset, HUGE_NUMBER, BAD),
    IN_ENTRY(SECTION_BLOCKS, offset, 64, BAD),
    IN_ENTRY(SECTION_BLOCKS, offset, HUGE_NUMBER - 63, BAD),
    IN_ENTRY(SECTION_SHARD, offset, 0, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, bytes, 0, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, bytes, 24, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, bytes, 40, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, bytes, HUGE_NUMBER, BAD),
    IN_ENTRY(SECTION_DOCUMENTS, bytes, HUGE_NUMBER - 63, BAD),
    IN_ENTRY(SECTION_BLOCKS, bytes, 0, BAD),
    IN_ENTRY(SECTION_BLOCKS, bytes, 16, BAD),
    IN_ENTRY(SECTION_SHARD, bytes, 119, BAD),
    IN_ENTRY(SECTION_SHARD, bytes, 128, BAD),
    IN_ENTRY(SECTION_SHARD, bytes, HUGE_NUMBER, BAD),
    IN_ENTRY(SECTION_ORIGIN, bytes, 0, BAD),
    IN_ENTRY(SECTION_ORIGIN, bytes, 31, BAD),
    IN_ENTRY(SECTION_ORIGIN, reserved, 1, BAD),
    IN_SHARD(tokens, 0, BAD),
    IN_SHARD(tokens, 699, TOKMAP_ERROR_TRUNCATED),
    IN_SHARD(tokens, (uint64_t)1 << 32, BAD),
    IN_SHARD(tokens, (uint64_t)1 << 62, BAD),
    IN_SHARD(tokens, (uint64_t)1 << 63, BAD),
    IN_SHARD(tokens, HUGE_NUMBER, BAD),
    IN_SHARD(documents, 0, BAD),
    IN_SHARD(documents, 6, BAD),
    IN_SHARD(documents, 8, BAD), /* the padding becomes an end below the one before */
    IN_SHARD(documents, 9, BAD),
    IN_SHARD(documents, (uint64_t)1 << 62, BAD),
    IN_SHARD(documents, HUGE_NUMBER, BAD),
    IN_SHARD(width, 0, BAD),
    IN_SHARD(width, 1, BAD),
    IN_SHARD(width, 3, BAD),
    IN_SHARD(width, 4, TOKMAP_ERROR_TRUNCATED),
    IN_SHARD(width, 8, BAD),
    IN_SHARD(width, UINT32_MAX, BAD),
    IN_SHARD(block_bytes, 0, BAD),
    IN_SHARD(block_bytes, 1, BAD),
    IN_SHARD(block_bytes, 1 << 21, BAD),
    IN_SHARD(vocabulary, 0, BAD),
    IN_SHARD(vocabulary, 65537, BAD),
    IN_SHARD(vocabulary, HUGE_NUMBER, BAD),
    IN_SHARD(largest_id, 65536, BAD),
    IN_SHARD(largest_id, HUGE_NUMBER, BAD),
    IN_SHARD(largest_id, 1, BAD),     /* verify notices that a token exceeds it */
    IN_SHARD(largest_id, 65535, BAD), /* verify notices that no token has it */
    IN_SHARD(eod_id, 65536, BAD),
    IN_SHARD(bos_id, HUGE_NUMBER - 1, BAD),
    IN_SHARD(reserved[0], 1, BAD),
    IN_SHARD(reserved[3], HUGE_NUMBER, BAD),
    IN_SECTION(SECTION_DOCUMENTS, 0, 4, 4),           /* the next end is lower */
    IN_SECTION(SECTION_DOCUMENTS, 4, 4, 2),           /* lower than the end before */
    IN_SECTION(SECTION_DOCUMENTS, 16, 4, UINT32_MAX), /* past the tokens */
    IN_SECTION(SECTION_DOCUMENTS, 24, 4, 699),        /* the last end is not the number of tokens */
    IN_SECTION(SECTION_DOCUMENTS, 24, 4, 701),
    IN_SECTION(SECTION_DOCUMENTS, 28, 4, 1), /* padding */
    IN_SECTION(SECTION_BLOCKS, 0, 8, 0),     /* a wrong hash of a block */
    IN_SECTION(SECTION_ORIGIN, 0, 8, 0),     /* runs */
    IN_SECTION(SECTION_ORIGIN, 0, 8, 1),
    IN_SECTION(SECTION_ORIGIN, 0, 8, HUGE_NUMBER / 24 + 1), /* their size in bytes overflows */
    IN_SECTION(SECTION_ORIGIN, 8, 8, 4),                    /* files */
    IN_SECTION(SECTION_ORIGIN, 8, 8, HUGE_NUMBER / 8 + 1),
    IN_SECTION(SECTION_ORIGIN, 16, 8, 0), /* path bytes */
    IN_SECTION(SECTION_ORIGIN, 16, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_ORIGIN, 24, 8, 1),           /* reserved */
    IN_SECTION(SECTION_ORIGIN, 32, 8, 1),           /* the first run's document */
    IN_SECTION(SECTION_ORIGIN, 40, 8, HUGE_NUMBER), /* its record */
    IN_SECTION(SECTION_ORIGIN, 48, 8, 3),           /* its file */
    IN_SECTION(SECTION_ORIGIN, 48, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_ORIGIN, 56, 8, 0), /* the second run's document */
    IN_SECTION(SECTION_ORIGIN, 56, 8, 7),
    IN_SECTION(SECTION_ORIGIN, 56, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_ORIGIN, 104, 8, 99), /* the first path's end */
    IN_SECTION(SECTION_ORIGIN, 112, 8, 1),
    IN_SECTION(SECTION_ORIGIN, 120, 8, HUGE_NUMBER),
    /* Columns: the heads of "url" and "meta.score" are at 8 and 48. Of "url", the name is at 88, the 7 codes at 96, the
     * 7 ends at 104, and the values at 136; of "meta.score", they are at 304, 320, 328, and 336. */
    IN_ENTRY(SECTION_PAGES, type, 99, TOKMAP_OK),
    IN_ENTRY(SECTION_PAGES, flags, 1, BAD),
    IN_ENTRY(SECTION_PAGES, bytes, 0, BAD),
    IN_ENTRY(SECTION_PAGES, bytes, 8, BAD),
    IN_SECTION(SECTION_PAGES, 0, 4, 1), /* a hash that its page does not have */
    IN_ENTRY(SECTION_COLUMNS, type, 99, TOKMAP_OK),
    IN_ENTRY(SECTION_COLUMNS, flags, 1, BAD),
    IN_ENTRY(SECTION_COLUMNS, bytes, 0, BAD),
    IN_ENTRY(SECTION_COLUMNS, bytes, 7, BAD),
    IN_ENTRY(SECTION_COLUMNS, bytes, 87, BAD),
    IN_ENTRY(SECTION_COLUMNS, bytes, 343, BAD),
    IN_SECTION(SECTION_COLUMNS, 0, 8, 0), /* count */
    IN_SECTION(SECTION_COLUMNS, 0, 8, 1),
    IN_SECTION(SECTION_COLUMNS, 0, 8, 3),
    IN_SECTION(SECTION_COLUMNS, 0, 8, 65),
    IN_SECTION(SECTION_COLUMNS, 0, 8, HUGE_NUMBER / 40 + 1),
    IN_SECTION(SECTION_COLUMNS, 8, 8, 0), /* code bytes: plain needs a value per document, and has 7 */
    IN_SECTION(SECTION_COLUMNS, 48, 8, 0),
    IN_SECTION(SECTION_COLUMNS, 8, 8, 2), /* so few values have codes of 1 byte */
    IN_SECTION(SECTION_COLUMNS, 8, 8, 3),
    IN_SECTION(SECTION_COLUMNS, 8, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_COLUMNS, 16, 8, 0), /* bytes of the name */
    IN_SECTION(SECTION_COLUMNS, 16, 8, 2),
    IN_SECTION(SECTION_COLUMNS, 16, 8, 4),
    IN_SECTION(SECTION_COLUMNS, 16, 8, 1025),
    IN_SECTION(SECTION_COLUMNS, 16, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_COLUMNS, 24, 8, 0), /* values */
    IN_SECTION(SECTION_COLUMNS, 24, 8, 6),
    IN_SECTION(SECTION_COLUMNS, 24, 8, 8),
    IN_SECTION(SECTION_COLUMNS, 24, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_COLUMNS, 32, 8, 160), /* bytes of all values */
    IN_SECTION(SECTION_COLUMNS, 32, 8, 162),
    IN_SECTION(SECTION_COLUMNS, 32, 8, (uint64_t)1 << 32),
    IN_SECTION(SECTION_COLUMNS, 32, 8, HUGE_NUMBER - 6),
    IN_SECTION(SECTION_COLUMNS, 40, 8, 80), /* offset of the data */
    IN_SECTION(SECTION_COLUMNS, 40, 8, 96),
    IN_SECTION(SECTION_COLUMNS, 80, 8, 88),
    IN_SECTION(SECTION_COLUMNS, 80, 8, HUGE_NUMBER),
    IN_SECTION(SECTION_COLUMNS, 88, 1, 0),    /* the name is empty, */
    IN_SECTION(SECTION_COLUMNS, 90, 1, 0),    /* too short, */
    IN_SECTION(SECTION_COLUMNS, 88, 1, 0xff), /* not UTF-8, */
    IN_SECTION(SECTION_COLUMNS, 91, 1, 'x'),  /* or not terminated */
    IN_SECTION(SECTION_COLUMNS, 96, 1, 1),    /* the first document does not have the first value, */
    IN_SECTION(SECTION_COLUMNS, 98, 1, 3),    /* the third one has a value before it is the next one, */
    IN_SECTION(SECTION_COLUMNS, 102, 1, 5),   /* and no document has the last value */
    IN_SECTION(SECTION_COLUMNS, 95, 1, 1),    /* padding of the name, */
    IN_SECTION(SECTION_COLUMNS, 103, 1, 1),   /* of the codes, */
    IN_SECTION(SECTION_COLUMNS, 132, 1, 1),   /* of the ends, */
    IN_SECTION(SECTION_COLUMNS, 297, 1, 1),   /* and of the values */
    IN_SECTION(SECTION_COLUMNS, 96, 1, 7),    /* codes */
    IN_SECTION(SECTION_COLUMNS, 102, 1, 255),
    IN_SECTION(SECTION_COLUMNS, 320, 1, 2),
    IN_SECTION(SECTION_COLUMNS, 104, 4, 47), /* ends: the next one is lower, */
    IN_SECTION(SECTION_COLUMNS, 104, 4, 22), /* in the middle of a value, */
    IN_SECTION(SECTION_COLUMNS, 104, 4, UINT32_MAX),
    IN_SECTION(SECTION_COLUMNS, 128, 4, 160),  /* not the last byte, */
    IN_SECTION(SECTION_COLUMNS, 128, 4, 162),  /* after the last byte */
    IN_SECTION(SECTION_COLUMNS, 136, 1, ' '),  /* values that are not JSON, */
    IN_SECTION(SECTION_COLUMNS, 137, 1, 0xff), /* not UTF-8, */
    IN_SECTION(SECTION_COLUMNS, 137, 1, '"'),  /* or more than one */
    IN_SECTION(SECTION_COLUMNS, 336, 1, ' '),
    IN_SECTION(SECTION_COLUMNS, 180, 1, '0'), /* value 1 is value 0, too */
};
/* clang-format on */

static void store_sized(uint8_t *at, uint32_t width, uint64_t value)
{
    memcpy(at, &value, width);
}

static void one_hostile_field_is_refused(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const struct change *change = &changes[i];
        uint8_t *bytes = copy_of_base();
        size_t at = change->offset;
        if (change->section)
            at += change->entry ? entry_at(change->section) : section_at(change->section);
        store_sized(bytes + at, change->width, change->value);
        index_rehash(bytes, base_bytes);
        enum tokmap_status status = outcome(bytes, base_bytes);
        if (status != change->expected)
            fail_msg("change %zu (byte %zu set to %llu) results in %s", i, at, (unsigned long long)change->value,
                     tokmap_status_name(status));
        free(bytes);
    }
}

/* This holds for unknown types, too: a later version could not say which of two sections counts. */
static void section_types_must_be_unique(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    store32(bytes + entry_at(SECTION_ORIGIN), 99);
    store32(bytes + entry_at(SECTION_ABOUT), 98);
    index_rehash(bytes, base_bytes);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_OK);
    store32(bytes + entry_at(SECTION_ABOUT), 99);
    index_rehash(bytes, base_bytes);
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_ERROR_CORRUPT);
    free(bytes);
}

/* The bytes between sections must be zero. No hash covers them, so verify reads them. */
static void padding_must_be_zero(void **unused)
{
    (void)unused;
    struct index_header header = header_of(base);
    int found = 0;
    for (uint32_t i = 0; i < header.sections; i++) {
        struct index_entry entry;
        memcpy(&entry, base + header.table_offset + i * sizeof entry, sizeof entry);
        for (uint64_t at = entry.offset + entry.bytes; at < round_up(entry.offset + entry.bytes, 64); at++) {
            uint8_t *bytes = copy_of_base();
            bytes[at] = 1;
            assert_int_equal(outcome(bytes, base_bytes), TOKMAP_ERROR_CORRUPT);
            assert_int_equal(bytes[at], 1);
            free(bytes);
            found++;
        }
    }
    assert_true(found > 60);
}

/* Opening compares the content id with the numbers and hashes from which it is computed. */
static void a_wrong_content_id_is_refused(void **unused)
{
    (void)unused;
    uint8_t *bytes = copy_of_base();
    size_t shard = section_at(SECTION_SHARD), entry = entry_at(SECTION_SHARD);
    bytes[shard + offsetof(struct section_shard, content)] ^= 1;
    store64(bytes + entry + offsetof(struct index_entry, hash), hash64(bytes + shard, sizeof(struct section_shard)));
    struct index_header header = header_of(bytes);
    store64(bytes + offsetof(struct index_header, table_hash),
            hash64(bytes + header.table_offset, header.sections * sizeof(struct index_entry)));
    store64(bytes + offsetof(struct index_header, header_hash), hash64(bytes, 56));
    assert_int_equal(outcome(bytes, base_bytes), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "content id"));
    free(bytes);
}

/* A section type of a later version is skipped unless its flags say that it is required. */
static void unknown_sections_are_skipped_unless_required(void **unused)
{
    (void)unused;
    struct index_header header = header_of(base);
    for (uint32_t flags = 0; flags < 3; flags++) {
        uint8_t *bytes = copy_of_base();
        uint64_t at = header.table_offset, table_bytes = header.sections * sizeof(struct index_entry);
        memmove(bytes + at + 64, base + at, table_bytes);
        memset(bytes + at, 'n', 50);
        memset(bytes + at + 50, 0, 14);
        struct index_entry entry = {1000, flags, at, 50, 0, 0};
        memcpy(bytes + at + 64 + table_bytes, &entry, sizeof entry);
        struct index_header changed = header;
        changed.sections++;
        changed.minor = INDEX_MINOR + 1;
        changed.table_offset += 64;
        changed.file_bytes += 64 + sizeof entry;
        memcpy(bytes, &changed, sizeof changed);
        index_rehash(bytes, (size_t)changed.file_bytes);
        static const enum tokmap_status expected[] = {TOKMAP_OK, TOKMAP_ERROR_UNSUPPORTED, TOKMAP_ERROR_CORRUPT};
        assert_int_equal(outcome(bytes, (size_t)changed.file_bytes), expected[flags]);
        free(bytes);
    }
}

/* Sets every number of the file to every awkward value and makes the checksums valid. Nothing may crash, and every
 * status must come with a message. */
static void no_value_of_any_number_is_dangerous(void **unused)
{
    (void)unused;
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      63,
                                      64,
                                      255,
                                      0x7fffffff,
                                      0x80000000,
                                      1 << 20,
                                      UINT32_MAX,
                                      1ull << 32,
                                      1ull << 40,
                                      1ull << 61,
                                      1ull << 62,
                                      1ull << 63,
                                      UINT64_MAX - 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    for (size_t at = 0; at + 8 <= base_bytes; at += 4 * places_step()) {
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            uint8_t *bytes = copy_of_base();
            store_sized(bytes + at, v % 2 ? 8 : 4, values[v]);
            index_rehash(bytes, base_bytes);
            (void)outcome(bytes, base_bytes);
            free(bytes);
        }
    }
}

static int count_fault(void *user, const struct tokmap_error *fault)
{
    (void)fault;
    ++*(int *)user;
    return 0;
}

/* Checks the rules of FORMAT.md in the plainest way. Some values only move the end of a document and are valid. */
static bool carries_are_sound(const uint8_t *section, uint64_t documents, uint64_t carries, uint64_t tokens)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < documents; i++) {
        uint64_t high = 0;
        for (uint64_t k = 0; k < carries; k++) {
            uint64_t carry = load64(section + 4 * documents + 8 * k);
            if (carry >= documents || (k && carry < load64(section + 4 * documents + 8 * (k - 1))))
                return false;
            high += carry <= i;
        }
        uint64_t end = high << 32 | load32(section + 4 * i);
        if (end < before)
            return false;
        before = end;
    }
    return before == tokens;
}

/* Carries exist only past 2^32 tokens. This test sets both carries of a sparse shard to every awkward value. */
static void hostile_carries_are_refused(void **unused)
{
    (void)unused;
    struct shard_writer_options options = plain_options(2);
    struct shard_writer *writer;
    static const uint64_t sizes[] = {5, 0, (1ull << 32) - 5, 100, 1ull << 32, 7};
    enum { DOCUMENTS = 6 };
    char name[600];
    (void)snprintf(name, sizeof name, "%s/carry", folder);
    MUST(shard_writer_open(&writer, name, &options, &error));
    for (int i = 0; i < DOCUMENTS; i++)
        MUST(shard_writer_add_zeros(writer, sizes[i], &error));
    if (shard_writer_commit(writer, NULL, 0, NULL, &error)) {
        printf("the file system does not support a sparse file of 16 GiB: %s\n", error.message);
        skip();
    }
    size_t count;
    uint8_t *bytes = file_read(in_folder(folder, "carry.tmx"), &count);
    /* The documents section comes first: six ends at byte 64, two carries at byte 88. */
    assert_int_equal(load64(bytes + 88), 2);
    assert_int_equal(load64(bytes + 96), 4);
    static const uint64_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 1ull << 32, 1ull << 62, UINT64_MAX};
    int valid_values = 0;
    for (size_t v = 0; v < 2 * sizeof values / sizeof values[0]; v++) {
        size_t at = v % 2 ? 88 : 96;
        uint64_t kept = load64(bytes + at), value = values[v / 2];
        store64(bytes + at, value);
        index_rehash(bytes, count);
        (void)os_unlink(in_folder(folder, "carry.tmx"));
        file_write(in_folder(folder, "carry.tmx"), bytes, count);
        struct tokmap_dataset *dataset;
        MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
        exercise_functions(dataset);
        tokmap_dataset_close(dataset);
        struct index index;
        int faults = 0;
        MUST(index_open(&index, in_folder(folder, "carry.tmx"), &error));
        assert_int_equal(index_verify(&index, count_fault, &faults), 0);
        index_close(&index);
        bool sound = carries_are_sound(bytes + 64, DOCUMENTS, 2, (2ull << 32) + 107);
        assert_int_equal(faults, !sound);
        valid_values += sound;
        store64(bytes + at, kept);
    }
    assert_in_range(valid_values, 2, 5);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_is_sound),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(every_truncation_is_noticed),
        cmocka_unit_test(added_bytes_are_noticed),
        cmocka_unit_test(a_wrong_length_of_the_tokens_is_noticed),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(only_unknown_major_versions_are_refused),
        cmocka_unit_test(the_minor_version_is_the_lowest_one_with_all_sections),
        cmocka_unit_test(the_about_section_is_json_in_utf8),
        cmocka_unit_test(one_hostile_field_is_refused),
        cmocka_unit_test(section_types_must_be_unique),
        cmocka_unit_test(padding_must_be_zero),
        cmocka_unit_test(a_wrong_content_id_is_refused),
        cmocka_unit_test(unknown_sections_are_skipped_unless_required),
        cmocka_unit_test(no_value_of_any_number_is_dangerous),
        cmocka_unit_test(hostile_carries_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
