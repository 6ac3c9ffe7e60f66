/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_pack_also.c - the files of other projects beside shards: where a killed process was is continued, and a forged
 * or damaged record of that cannot leave files out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pack/pack_also.h"
#include "pack/unit_record.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"
#include "work/stage_file.h"

#define WORK "out.work"

static struct tokenizer *tokenizer;
static struct tokmap_error error;
static uint32_t written;  /* files */
static uint32_t replaced; /* of these, if those that were there are equal */

static enum tokmap_status file_take(void *user, uint32_t format, const char *prefix, enum also_replace replace,
                                    struct also_written *sums, struct tokmap_error *why)
{
    (void)user;
    (void)format;
    (void)prefix;
    (void)why;
    written++;
    assert_int_not_equal(replace, ALSO_REPLACE_ALL);
    replaced += replace == ALSO_REPLACE_EQUAL;
    sums->tokens = 1;
    return TOKMAP_OK;
}

static const struct pack_also also = {.formats = "megatron,olmo", .count = 2, .write = file_take};

static struct pack_options options_of(void)
{
    return (struct pack_options){.prefix = "out",
                                 .threads = 1,
                                 .tokenizer = tokenizer,
                                 .eod_id = 256,
                                 .bos_id = TOKMAP_NO_ID,
                                 .shard_tokens = 100,
                                 .also = &also};
}

static int also_setup(void **state)
{
    return setup(state) || chdir(folder) || mkdir(WORK, 0777) || vocabulary_open(&tokenizer, "bytes", NULL, NULL);
}

static int also_teardown(void **state)
{
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

/* Writes the files of 3 shards after a process that recorded `next` as the number of the next file, and whether it
 * replaced all. */
static enum tokmap_status continued(uint64_t next, uint64_t replaces, uint64_t bytes)
{
    const struct pack_options options = options_of();
    struct pack_result *result = calloc(1, sizeof *result);
    uint64_t key, record[3 + sizeof(struct also_written) / 8 * PACK_ALSO_MOST] = {next, 0, replaces};
    struct stage_writer *writer;
    assert_non_null(result);
    result->sets[0] = (struct shard_set_result){.shards = 3, .tokens = 250};
    assert_int_equal(pack_also_begin(&options, WORK, result, &error), TOKMAP_OK);
    assert_true(unit_record_key(&options, &key));
    const struct stage_id id = {.folder = WORK, .key = key, .kind = STAGE_ALSO, .number = 1, .sections = 1};
    assert_int_equal(stage_writer_open(&writer, &id, &error), TOKMAP_OK);
    assert_int_equal(stage_writer_add(writer, record, bytes, &error), TOKMAP_OK);
    assert_int_equal(stage_writer_commit(writer, false, &error), TOKMAP_OK);
    stage_writer_free(writer);
    written = replaced = 0;
    const enum tokmap_status status = pack_also_write(&options, WORK, true, result, &error);
    free(result);
    return status;
}

#define WHOLE ((3 + sizeof(struct also_written) / 8 * PACK_ALSO_MOST) * 8)

static void test_continued(void **unused)
{
    (void)unused;
    for (uint64_t next = 0; next <= 6; next++) {
        assert_int_equal(continued(next, 0, WHOLE), TOKMAP_OK);
        assert_int_equal(written, 6 - next);
        assert_int_equal(replaced, next < 6); /* only the one that the killed process may have begun */
        assert_int_equal(continued(next, 1, WHOLE), TOKMAP_OK);
        assert_int_equal(written, 6 - next);
        assert_int_equal(replaced, 6 - next); /* a process before that one may have written the others */
    }
}

static void test_forged(void **unused)
{
    (void)unused;
    static const uint64_t numbers[] = {7, 8, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_int_equal(continued(numbers[i], 0, WHOLE), TOKMAP_ERROR_CORRUPT);
        assert_non_null(strstr(error.path, "also-000001"));
    }
    /* Of another size it says nothing, so all files are written again. */
    assert_int_equal(continued(6, 0, 8), TOKMAP_OK);
    assert_int_equal(written, 6);
    assert_int_equal(replaced, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_continued), cmocka_unit_test(test_forged)};
    return cmocka_run_group_tests(tests, also_setup, also_teardown);
}
