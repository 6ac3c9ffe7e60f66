/* SPDX-License-Identifier: MIT */
/* ci: asan */
/*
 * test_token_doubts.c - tokens of other projects that are read with a wrong width, offset, or byte order are warned of
 * when the dataset is opened, before and after they are indexed. Tokens that are read rightly never are.
 *
 * The ids are those of a made-up text: word k of it occurs as often as 1 / (k + 1) says, as in texts of people.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

enum { IDS = 5000, VOCABULARY = 50257 };

static char folder[512];
static uint64_t ids[IDS];

static int setup(void **unused)
{
    (void)unused;
    scratch_make(folder);
    uint64_t state = 1;
    for (unsigned i = 0; i < IDS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double share = (double)(state >> 33) / 2147483648.0; /* the integral of 1 / (k + 1) is a logarithm */
        double word = 1;
        for (unsigned k = 0; k < 157; k++) /* 1.0714^157 is about VOCABULARY */
            word *= share * 157 > k ? 1.0714 : 1;
        ids[i] = (uint64_t)word + (state >> 20) % 7;
        ids[i] = i % 100 == 99 ? 50256 : ids[i];
    }
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    scratch_remove(folder);
    return 0;
}

/* Writes ids of `width` bytes, in the other byte order if `swapped`, after `before` bytes of 0. */
static void tokens_write(const uint64_t *from, unsigned count, unsigned width, bool swapped, unsigned before)
{
    static uint8_t bytes[8 * IDS + 16];
    char path[600];
    int fd;
    memset(bytes, 0, sizeof bytes);
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < width; k++)
            bytes[before + i * width + (swapped ? width - 1 - k : k)] = (uint8_t)(from[i] >> 8 * k);
    (void)snprintf(path, sizeof path, "%s/t.bin", folder);
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_truncate(fd, 0), 0);
    assert_int_equal(os_pwrite(fd, bytes, (count * width + before + 7) / 8 * 8, 0), 0);
    os_close(fd);
}

/* Compares the warning of the file, opened with these words, with a part of it; NULL: there is none. */
static void warned(const char *words, const char *part)
{
    char name[700];
    struct tokmap_error error = {0};
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    (void)snprintf(name, sizeof name, "raw:%s/t.bin,%s%s", folder, words, strstr(words, "eod=") ? "" : ",eod=1");
    if (tokmap_dataset_open(&dataset, name, NULL, &error))
        fail_msg("%s: %s", words, error.message);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    if (part ? !info.warning || !strstr(info.warning, part) : info.warning != NULL)
        fail_msg("%s: %s", words, info.warning ? info.warning : "no warning");
    tokmap_dataset_close(dataset);
}

static const char *const words[9] = {NULL, "width=1", "width=2", NULL, "width=4", NULL, NULL, NULL, "width=8"};

static void right_tokens_are_not_warned_of(void **unused)
{
    (void)unused;
    static uint64_t other[IDS];
    for (unsigned count = 4; count <= IDS; count = count == 4096 ? IDS : 2 * count)
        for (unsigned width = 2; width <= 8; width *= 2) {
            tokens_write(ids, count, width, false, 0);
            warned(words[width], NULL);
            for (unsigned i = 0; i < count; i++) /* of a large vocabulary */
                other[i] = ids[i] + (ids[i] * 2654435761u % 4 ? 0 : 200000);
            if (width > 2)
                tokens_write(other, count, width, false, 0);
            warned(words[width], NULL);
            for (unsigned i = 0; i < count; i++) /* characters, and a vocabulary that nobody has stated */
                other[i] = ids[i] % 65;
            tokens_write(other, count, width, false, 0);
            warned(words[width], NULL);
            for (unsigned i = 0; i < count; i++) /* few ids, and the EOD of another vocabulary */
                other[i] = i == 1001 || i == 2003 ? 50256 : ids[i] % 5;
            tokens_write(other, count, width, false, 0);
            warned(words[width], NULL);
            for (unsigned i = 0; i < count; i++) /* whatever the ids, no text */
                other[i] = 13 * i % VOCABULARY;
            tokens_write(other, count, width, false, 0);
            warned(words[width], NULL);
        }
    for (unsigned i = 0; i < IDS; i++)
        other[i] = (uint8_t) "A text of bytes, such as this. \xc3\xa9\n"[ids[i] % 33];
    tokens_write(other, IDS, 1, false, 0);
    warned("width=1", NULL);
    tokens_write(other, IDS, 2, false, 0);
    warned("width=2,vocab=257", NULL);
}

static void wrong_widths(void **unused)
{
    (void)unused;
    static uint64_t text[IDS];
    for (unsigned count = 300; count <= IDS; count *= 4) {
        tokens_write(ids, count, 4, false, 0);
        warned("width=2,eod=50256,vocab=50257",
               "every second token is below 16, as if the ids had twice as many bytes");
        tokens_write(ids, count, 8, false, 0);
        warned("width=2", "three of every four tokens are below 16, as if the ids had four times as many bytes");
        warned("width=4", "every second token is below 16, as if the ids had twice as many bytes; its tokens are read "
                          "with 4 bytes from byte 0 on: check the words width and offset");
        tokens_write(ids, count, 2, false, 0);
        warned("width=4", "many ids are above 16,777,215");
        for (unsigned i = 0; i < count; i++)
            text[i] = (uint8_t) "The text itself, in place of ids"[ids[i] % 32];
        tokens_write(text, count, 1, false, 0);
        warned("width=2", "nine of ten tokens are two letters of a text");
        warned("width=4", "many ids are above 16,777,215");
    }
    for (unsigned i = 0; i < IDS; i++) /* of two ids of characters each: no vocabulary has them, but they are small */
        text[i] = ids[i] % 65 + 1;
    tokens_write(text, IDS, 2, false, 0);
    warned("width=4", "many ids are two numbers below 256 with a byte of 0 between them");
    for (unsigned i = 0; i < IDS; i++) /* of a vocabulary of more than 65,536, whose rare half is others' */
        text[i] = ids[i] % 7 < 3 ? 65536 + ids[i] * 31 % 62000 : ids[i];
    tokens_write(text, IDS, 4, false, 0);
    warned("width=2,vocab=65536", "every second token is below 16");
}

/* Data that is strange, but true: few ids, ids beside flags, padding, vocabularies of bytes. */
static void strange_tokens_are_not_warned_of(void **unused)
{
    (void)unused;
    static uint64_t other[IDS];
    for (unsigned kind = 0; kind < 12; kind++)
        for (unsigned count = 64; count <= IDS; count = count == 4096 ? IDS : 2 * count)
            for (unsigned width = 2; width <= 4; width *= 2) {
                static const uint64_t alone[] = {0, 256, 8224, 50256};
                for (unsigned i = 0; i < count; i++) {
                    const uint64_t small[] = {ids[i] % 16, ids[i] % 4, ids[i] % 2, ids[i] * 7 % 10};
                    other[i] = kind < 4     ? alone[kind]
                               : kind < 8   ? i % 2 ? small[kind - 4] : ids[(i * 37 + 11) % IDS]
                                 : kind == 8 ? (i / 40 % 10 ? 0 : ids[i])
                               : kind == 9  ? ids[i] % 256
                               : kind == 10 ? i % 2 ? 3 : ids[i] % 300
                                            : ids[i] % 300;
                }
                tokens_write(other, count, width, false, 0);
                warned(width == 2 ? "width=2,vocab=50257" : "width=4,vocab=50257", NULL);
            }
}

static void wrong_orders_and_offsets(void **unused)
{
    (void)unused;
    static const char *const low = "the low bytes of ids differ less than the high ones";
    tokens_write(ids, IDS, 2, true, 0);
    warned("width=2", low);
    tokens_write(ids, IDS, 4, true, 0);
    warned("width=4", "many ids are above");
    tokens_write(ids, IDS, 2, false, 1);
    warned("width=2", low);
    warned("width=2,offset=2", low);
    for (unsigned shift = 1; shift < 4; shift++) {
        tokens_write(ids, IDS, 4, false, shift);
        warned("width=4", shift == 1 ? low : "many ids are above");
    }
    tokens_write(ids, IDS, 4, false, 2);
    warned("width=2", "every second token is below 16");

    /* With an index, too: whoever opens the file later has not seen the warning before. */
    char name[700];
    struct tokmap_index_result result = TOKMAP_INDEX_RESULT_INIT;
    struct tokmap_error error = {0};
    (void)snprintf(name, sizeof name, "raw:%s/t.bin,width=2,eod=1", folder);
    assert_int_equal(tokmap_dataset_index(name, NULL, &result, &error), TOKMAP_OK);
    warned("width=2", "every second token is below 16");
}

/* With shuffle_chunk_size=64 datatrove 0.10.1 writes such files for a task of 25 tokens. */
static void empty_files_of_datatrove(void **unused)
{
    (void)unused;
    struct tokmap_error error = {0};
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    const char *path = in_folder(folder, "f.ds");
    char name[700];
    file_write(path, "", 0);
    file_write(in_folder(folder, "f.ds.index"), "", 0);
    file_write_text(in_folder(folder, "f.ds.metadata"), "gpt2|2\n0\n0.00 T");
    (void)snprintf(name, sizeof name, "datatrove:%s", path);
    assert_int_equal(tokmap_dataset_open(&dataset, name, NULL, &error), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    assert_true(info.tokens == 0 && info.warning);
    assert_non_null(strstr(info.warning, "f.ds has no tokens: with shuffle_chunk_size, datatrove leaves out"));
    tokmap_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_tokens_are_not_warned_of),
        cmocka_unit_test(strange_tokens_are_not_warned_of),
        cmocka_unit_test(wrong_widths),
        cmocka_unit_test(wrong_orders_and_offsets),
        cmocka_unit_test(empty_files_of_datatrove),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
