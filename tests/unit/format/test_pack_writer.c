/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_pack_writer.c - the functions of tokmap/pack.h: whatever the type of ids, the number of documents in a call, and
 * the options are, the shard has the documents, and a refused call leaves no trace.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "platform/os.h"
#include "support/scratch_folder.h"
#include "support/shard_help.h"
#include "tokmap/pack.h"

static const struct {
    enum tokmap_id_type type;
    uint32_t bytes;
    uint64_t limit;
} kinds[] = {
    {TOKMAP_ID_U8, 1, 200},           {TOKMAP_ID_I8, 1, 128},           {TOKMAP_ID_U16, 2, 60000},
    {TOKMAP_ID_I16, 2, 32768},        {TOKMAP_ID_U32, 4, 0xfffffff0},   {TOKMAP_ID_I32, 4, 0x7ffffff0},
    {TOKMAP_ID_U64, 8, (1ull << 32)}, {TOKMAP_ID_I64, 8, (1ull << 32)},
};

struct documents {
    uint64_t count, tokens;
    uint64_t *ends;
    uint64_t *ids;
    uint8_t *counted;
};

static struct documents make(uint64_t seed, uint64_t documents, uint64_t longest, uint64_t below)
{
    struct documents made = {documents, 0, calloc(documents + 1, 8), NULL, NULL};
    uint64_t state = seed;
    for (uint64_t d = 0; d < documents; d++)
        made.ends[d] = made.tokens += random_below(&state, longest + 1);
    made.ids = calloc(made.tokens + 1, 8);
    made.counted = calloc(made.tokens + 1, 1);
    assert_true(made.ends && made.ids && made.counted);
    for (uint64_t i = 0; i < made.tokens; i++) {
        made.ids[i] = random_below(&state, below);
        made.counted[i] = (uint8_t)random_below(&state, 2);
    }
    return made;
}

static void documents_free(struct documents *documents)
{
    free(documents->ends);
    free(documents->ids);
    free(documents->counted);
}

/* Adds the documents with ids of a type, `at_once` of them in a call, from memory that is not aligned. */
static void add_all(struct tokmap_writer *writer, const struct documents *from, int kind, uint64_t at_once, bool mask)
{
    for (uint64_t d = 0; d < from->count; d += at_once) {
        const uint64_t part = min64(at_once, from->count - d), begin = d ? from->ends[d - 1] : 0;
        const uint64_t count = from->ends[d + part - 1] - begin;
        uint8_t *memory = malloc(count * kinds[kind].bytes + 1);
        uint64_t *ends = malloc(part * 8);
        assert_true(memory && ends);
        for (uint64_t i = 0; i < count; i++)
            memcpy(memory + 1 + i * kinds[kind].bytes, &from->ids[begin + i], kinds[kind].bytes);
        for (uint64_t i = 0; i < part; i++)
            ends[i] = from->ends[d + i] - begin;
        struct tokmap_documents documents = TOKMAP_DOCUMENTS_INIT;
        documents.ids = memory + 1;
        documents.type = kinds[kind].type;
        documents.id_count = count;
        if (part > 1) {
            documents.ends = ends;
            documents.document_count = part;
        }
        documents.counted = mask && d % 3 != 1 ? from->counted + begin : NULL;
        MUST(tokmap_writer_add(writer, &documents, &error));
        free(memory);
        free(ends);
    }
}

/* Compares the shard with the documents. */
static void compare(const char *name, const struct documents *expected, uint64_t bos, uint64_t eod, uint64_t at_once,
                    bool mask)
{
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    const bool has_bos = bos != TOKMAP_NO_ID, has_eod = eod != TOKMAP_NO_ID;
    MUST(tokmap_dataset_open(&dataset, name, NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    assert_int_equal(info.documents, expected->count);
    assert_int_equal(info.tokens, expected->tokens + expected->count * ((uint64_t)has_bos + has_eod));
    assert_true(info.eod_id == eod && info.bos_id == bos && info.masked == mask);
    for (uint64_t d = 0; d < expected->count; d++) {
        const uint64_t begin = d ? expected->ends[d - 1] : 0, count = expected->ends[d] - begin;
        const bool all = d / at_once * at_once % 3 == 1;
        struct tokmap_document document;
        MUST(tokmap_dataset_document(dataset, d, &document, &error));
        assert_int_equal(document.tokens, count + has_bos + has_eod);
        uint8_t *tokens = malloc(document.tokens * info.width + 1), *bits = malloc(document.tokens / 8 + 1);
        assert_true(tokens && bits);
        MUST(tokmap_dataset_copy(dataset, document.first_token, document.tokens, tokens, &error));
        MUST(tokmap_dataset_mask(dataset, document.first_token, document.tokens, bits, &error));
        for (uint64_t i = 0; i < document.tokens; i++) {
            const uint64_t id = info.width == 2 ? load16(tokens + 2 * i) : load32(tokens + 4 * i);
            const bool first = has_bos && !i, last = has_eod && i + 1 == document.tokens;
            const uint64_t at = begin + i - has_bos;
            assert_int_equal(id, first ? bos : last ? eod : expected->ids[at]);
            const int counts = !mask || all ? 1
                               : first      ? 0
                               : last       ? count && expected->counted[at - 1]
                                            : expected->counted[at];
            assert_int_equal(bits[i / 8] >> i % 8 & 1, counts);
        }
        free(tokens);
        free(bits);
    }
    tokmap_dataset_close(dataset);
}

static void ids_of_every_type_are_stored(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 8; kind++) {
        for (uint32_t width = 2; width <= 4; width += 2) {
            for (int form = 0; form < 8; form++) {
                static const uint64_t at_once[] = {1, 7, 1000};
                const uint64_t vocabulary = width == 2 ? 1 << 16 : 1ull << 32, once = at_once[(form + kind) % 3];
                struct documents made =
                    make((uint64_t)(kind * 100 + form), 60, 40, min64(kinds[kind].limit, vocabulary));
                struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
                struct tokmap_writer *writer;
                options.vocabulary = vocabulary;
                options.width = width;
                options.sync = 0;
                options.replace = 1;
                options.mask = form & 1;
                options.eod_id = form & 2 ? vocabulary - 1 : TOKMAP_NO_ID;
                options.bos_id = form & 4 ? 5 : TOKMAP_NO_ID;
                MUST(tokmap_writer_open(&writer, in_folder(folder, "kinds"), &options, &error));
                add_all(writer, &made, kind, once, form & 1);
                struct tokmap_writer_info info = TOKMAP_WRITER_INFO_INIT;
                MUST(tokmap_writer_info(writer, &info));
                assert_true(info.documents == 60 && info.width == width);
                MUST(tokmap_writer_commit(writer, NULL, &error));
                compare(in_folder(folder, "kinds"), &made, options.bos_id, options.eod_id, once, form & 1);
                documents_free(&made);
            }
        }
    }
}

/* Documents that are longer than a chunk, more documents than a chunk has ends, and the same bytes for any calls. */
static void the_bytes_do_not_depend_on_the_calls(void **unused)
{
    (void)unused;
    struct documents shapes[] = {make(1, 5, 300000, 50000), make(2, 30000, 5, 50000)};
    for (int s = 0; s < 2; s++) {
        uint8_t content[3][16];
        for (int way = 0; way < 3; way++) {
            static const int kind_of[] = {2, 5, 7};
            struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
            struct tokmap_writer *writer;
            options.vocabulary = 50257;
            options.sync = 0;
            options.replace = 1;
            options.eod_id = 50256;
            MUST(tokmap_writer_open(&writer, in_folder(folder, "calls"), &options, &error));
            add_all(writer, &shapes[s], kind_of[way], way == 2 ? 100000 : (uint64_t)way * 8191 + 1, false);
            MUST(tokmap_writer_commit(writer, content[way], &error));
            compare(in_folder(folder, "calls"), &shapes[s], TOKMAP_NO_ID, 50256, 1, false);
            assert_memory_equal(content[way], content[0], 16);
        }
        documents_free(&shapes[s]);
    }
}

static struct tokmap_writer *open_plain(const char *name, uint64_t vocabulary)
{
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_writer *writer;
    options.vocabulary = vocabulary;
    options.sync = 0;
    MUST(tokmap_writer_open(&writer, in_folder(folder, name), &options, &error));
    return writer;
}

static struct tokmap_documents one(const uint32_t *ids, uint64_t count)
{
    struct tokmap_documents documents = TOKMAP_DOCUMENTS_INIT;
    documents.ids = ids;
    documents.id_count = count;
    return documents;
}

static void refuse(struct tokmap_writer *writer, const struct tokmap_documents *documents, enum tokmap_status status,
                   const char *words)
{
    struct tokmap_writer_info before = TOKMAP_WRITER_INFO_INIT, after = {.size = sizeof after};
    MUST(tokmap_writer_info(writer, &before));
    const enum tokmap_status found = tokmap_writer_add(writer, documents, &error);
    if (found != status || !strstr(error.message, words))
        fail_msg("%s: %s", tokmap_status_name(found), error.message);
    MUST(tokmap_writer_info(writer, &after));
    assert_true(before.tokens == after.tokens && before.documents == after.documents);
}

static void a_refused_call_leaves_no_trace(void **unused)
{
    (void)unused;
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_writer *writer;
    const uint32_t ids[] = {1, 2, 100, 3};
    const int32_t negative[] = {1, -100, 2};
    const uint8_t mask[] = {0, 1, 2, 1};
    const struct tokmap_value values[] = {{"1", 1}, {"nul", 3}};
    const uint64_t ends[] = {2, 4}, down[] = {3, 2}, beyond[] = {2, 5};
    options.vocabulary = 100;
    options.mask = 1;
    options.columns = (const char *const[]){"v"};
    options.column_count = 1;
    options.sync = 0;
    MUST(tokmap_writer_open(&writer, in_folder(folder, "refused"), &options, &error));
    struct tokmap_documents documents = one(ids, 4);
    documents.ends = ends;
    documents.document_count = 2;
    refuse(writer, &documents, TOKMAP_ERROR_TOKEN,
           "id 0 of document 1 of this call is 100, which is not in the vocabulary");
    documents.id_count = 2;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "ends at id 4, but there are 2 ids");
    documents.id_count = 4;
    documents.ends = down;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "ends must not decrease");
    documents.ends = beyond;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "ends at id 5");
    documents.ends = NULL;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "their ends are NULL");
    documents = one(NULL, 3);
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "from NULL");
    documents.ids = negative;
    documents.type = TOKMAP_ID_I32;
    refuse(writer, &documents, TOKMAP_ERROR_TOKEN,
           "id 1 of document 0 of this call is -100, but an id is never negative");
    documents.type = (enum tokmap_id_type)8;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "the ids have type 8");
    documents = one(ids, 2);
    documents.counted = mask;
    documents.values = &values[1];
    refuse(writer, &documents, TOKMAP_ERROR_INPUT, "value of column 0 for document 0");
    documents.values = values;
    MUST(tokmap_writer_add(writer, &documents, &error));
    documents = one(ids + 3, 1);
    documents.counted = mask + 2;
    refuse(writer, &documents, TOKMAP_ERROR_INPUT, "mask of id 0 of document 0 of this call is 2");
    documents.origin = "late";
    documents.origin_bytes = 4;
    documents.counted = NULL;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "earlier documents have no origin");
    documents.origin = NULL;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "the origin is NULL");
    documents.origin_bytes = 0;
    documents.size = 0;
    refuse(writer, &documents, TOKMAP_ERROR_ARGUMENT, "tokmap_documents");
    documents = one(ids, 1);
    MUST(tokmap_writer_add(writer, &documents, &error));
    MUST(tokmap_writer_commit(writer, NULL, &error));
    struct documents expected = {2, 3, (uint64_t[]){2, 3}, (uint64_t[]){1, 2, 1}, (uint8_t[]){0, 1, 1}};
    compare(in_folder(folder, "refused"), &expected, TOKMAP_NO_ID, TOKMAP_NO_ID, 100, true);
}

static void documents_may_have_their_eod_already(void **unused)
{
    (void)unused;
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_writer *writer;
    const uint32_t ids[] = {7, 1, 2, 9, 7, 9, 7};
    const uint64_t ends[] = {4, 6};
    options.vocabulary = 10;
    options.eod_id = 9;
    options.bos_id = 7;
    options.delimited = 1;
    options.sync = 0;
    MUST(tokmap_writer_open(&writer, in_folder(folder, "delimited"), &options, &error));
    struct tokmap_documents documents = one(ids, 6);
    documents.ends = ends;
    documents.document_count = 2;
    MUST(tokmap_writer_add(writer, &documents, &error));
    documents = one(ids, 3);
    refuse(writer, &documents, TOKMAP_ERROR_INPUT, "document 0 of this call does not end with id 9");
    documents = one(ids + 1, 3);
    refuse(writer, &documents, TOKMAP_ERROR_INPUT, "does not begin with id 7");
    documents = one(ids, 0);
    refuse(writer, &documents, TOKMAP_ERROR_INPUT, "does not begin with id 7");
    MUST(tokmap_writer_commit(writer, NULL, &error));
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "delimited"), NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    assert_true(info.tokens == 6 && info.documents == 2 && info.eod_id == 9 && info.bos_id == 7);
    tokmap_dataset_close(dataset);
}

static void origins_columns_and_about_are_kept(void **unused)
{
    (void)unused;
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_writer *writer;
    const uint32_t ids[] = {1, 2, 3};
    const uint64_t ends[] = {1, 2, 3};
    const struct tokmap_value values[] = {{"1", 1}, {"\"a\"", 3}, {"2", 1}, {NULL, 0}, {"3", 1}, {"[]", 2}};
    options.vocabulary = 70000;
    options.columns = (const char *const[]){"n", "s"};
    options.column_count = 2;
    options.about = "{\"tokenizer\": {\"name\": \"mine\"}}";
    options.tokenizer[3] = 77;
    options.sync = 0;
    MUST(tokmap_writer_open(&writer, in_folder(folder, "kept"), &options, &error));
    struct tokmap_documents documents = one(ids, 3);
    documents.ends = ends;
    documents.document_count = 3;
    documents.values = values;
    documents.origin = "part-1.jsonl";
    documents.origin_bytes = 12;
    documents.record = 10;
    MUST(tokmap_writer_add(writer, &documents, &error));
    documents = one(ids, 3);
    MUST(tokmap_writer_add(writer, &documents, &error)); /* record 13, without values */
    static const char last[] = "{\"totals\": {\"text_bytes\": 70, \"tokens\": 12}}";
    MUST(tokmap_writer_about(writer, last, &error));
    assert_int_equal(tokmap_writer_about(NULL, last, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_about(writer, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_about(writer, "[1]", &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_about(writer, "{\"\xff\": 1}", &error), TOKMAP_ERROR_ARGUMENT);
    MUST(tokmap_writer_commit(writer, NULL, &error));
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "kept"), NULL, &error));
    MUST(tokmap_dataset_verify(dataset, NULL, NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    assert_true(info.width == 4 && info.tokenizer[3] == 77);
    MUST(tokmap_dataset_shard(dataset, 0, &shard, &error));
    assert_int_equal(shard.about_bytes, strlen(last));
    assert_memory_equal(shard.about, last, shard.about_bytes);
    for (uint64_t d = 0; d < 4; d++) {
        struct tokmap_origin origin;
        struct tokmap_value value;
        MUST(tokmap_dataset_origin(dataset, d, &origin, &error));
        assert_true(origin.record == 10 + d && origin.path_bytes == 12);
        for (int c = 0; c < 2; c++) {
            MUST(tokmap_dataset_value(dataset, d, c ? "s" : "n", &value, &error));
            assert_int_equal(value.bytes, d < 3 ? values[2 * d + (uint64_t)c].bytes : 0);
            if (value.bytes)
                assert_memory_equal(value.json, values[2 * d + (uint64_t)c].json, value.bytes);
        }
    }
    tokmap_dataset_close(dataset);
}

static void options_are_checked(void **unused)
{
    (void)unused;
    static const struct tokmap_writer_options init = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_writer *writer;
    struct tokmap_writer_options wrong[9];
    static const char *const words[] = {"vocabulary is", "vocabulary is",  "width is",
                                        "wider tokens",  "EOD or BOS id",  "about is",
                                        "columns is",    "delimited says", "tokmap_writer_options"};
    for (int i = 0; i < 9; i++) {
        wrong[i] = init;
        wrong[i].vocabulary = 1000;
    }
    wrong[0].vocabulary = 0;
    wrong[1].vocabulary = (1ull << 32) + 1;
    wrong[2].width = 3;
    wrong[3].vocabulary = 65537;
    wrong[3].width = 2;
    wrong[4].eod_id = 1000;
    wrong[5].about = "[1]";
    wrong[6].column_count = 1;
    wrong[7].delimited = 1;
    wrong[8].size = 3;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(tokmap_writer_open(&writer, in_folder(folder, "never"), &wrong[i], &error),
                         TOKMAP_ERROR_ARGUMENT);
        if (!strstr(error.message, words[i]))
            fail_msg("%d: %s", i, error.message);
        assert_null(writer);
    }
    assert_int_equal(tokmap_writer_open(&writer, NULL, &init, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_open(NULL, "x", &init, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_open(&writer, "x", NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_add(NULL, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(tokmap_writer_commit(NULL, NULL, &error), TOKMAP_ERROR_ARGUMENT);
    struct tokmap_writer_info info = TOKMAP_WRITER_INFO_INIT;
    assert_int_equal(tokmap_writer_info(NULL, &info), TOKMAP_ERROR_ARGUMENT);
    tokmap_writer_abandon(NULL);
}

static bool exists(const char *name)
{
    return !access(in_folder(folder, name), F_OK);
}

static void a_shard_appears_complete_or_not_at_all(void **unused)
{
    (void)unused;
    const uint32_t ids[] = {1, 2, 3};
    struct tokmap_writer *writer = open_plain("whole", 100), *second;
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    struct tokmap_documents documents = one(ids, 3);
    options.vocabulary = 100;
    options.sync = 0;
    assert_true(exists("whole.bin.partial") && exists("whole.tmx.partial") && !exists("whole.bin"));
    assert_int_equal(tokmap_writer_open(&second, in_folder(folder, "whole"), &options, &error), TOKMAP_ERROR_BUSY);
    MUST(tokmap_writer_add(writer, &documents, &error));
    tokmap_writer_abandon(writer);
    assert_true(!exists("whole.bin.partial") && !exists("whole.tmx.partial") && !exists("whole.bin"));
    writer = open_plain("whole", 100);
    MUST(tokmap_writer_add(writer, &documents, &error));
    MUST(tokmap_writer_commit(writer, NULL, &error));
    assert_true(exists("whole.bin") && exists("whole.tmx") && !exists("whole.tmx.partial"));
    assert_int_equal(tokmap_writer_open(&second, in_folder(folder, "whole"), &options, &error), TOKMAP_ERROR_EXISTS);
    options.replace = 1;
    MUST(tokmap_writer_open(&second, in_folder(folder, "whole"), &options, &error));
    tokmap_writer_abandon(second);
    assert_true(exists("whole.bin") && exists("whole.tmx"));
    MUST(tokmap_writer_open(&second, in_folder(folder, "whole"), &options, &error));
    MUST(tokmap_writer_commit(second, NULL, &error)); /* a shard without documents */
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    MUST(tokmap_dataset_open(&dataset, in_folder(folder, "whole"), NULL, &error));
    MUST(tokmap_dataset_info(dataset, &info));
    assert_int_equal(info.tokens, 0);
    tokmap_dataset_close(dataset);
}

/* A process that is killed while it adds documents leaves partial files only, and the next writer succeeds. */
static void a_killed_program_leaves_only_partial_files(void **unused)
{
    (void)unused;
    for (int round = 0; round < 8; round++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        const pid_t child = fork();
        if (!child) {
            struct documents made = make(3, 1000, 1000, 60000);
            struct tokmap_writer *writer = open_plain("killed", 65536);
            for (char byte = 'x';;) {
                add_all(writer, &made, 5, 10, false);
                if (write(ready[1], &byte, 1) < 0)
                    _exit(1);
            }
        }
        char byte;
        assert_int_equal(close(ready[1]), 0);
        for (int i = 0; i < round; i++)
            assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(close(ready[0]), 0);
        assert_true(!exists("killed.bin") && !exists("killed.tmx"));
    }
    assert_true(exists("killed.bin.partial") && exists("killed.tmx.partial"));
    struct documents made = make(4, 10, 100, 60000);
    struct tokmap_writer *writer = open_plain("killed", 65536);
    add_all(writer, &made, 5, 3, false);
    MUST(tokmap_writer_commit(writer, NULL, &error));
    assert_true(!exists("killed.bin.partial") && !exists("killed.tmx.partial"));
    compare(in_folder(folder, "killed"), &made, TOKMAP_NO_ID, TOKMAP_NO_ID, 3, false);
    documents_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_every_type_are_stored),
        cmocka_unit_test(the_bytes_do_not_depend_on_the_calls),
        cmocka_unit_test(a_refused_call_leaves_no_trace),
        cmocka_unit_test(documents_may_have_their_eod_already),
        cmocka_unit_test(origins_columns_and_about_are_kept),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_shard_appears_complete_or_not_at_all),
        cmocka_unit_test(a_killed_program_leaves_only_partial_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
