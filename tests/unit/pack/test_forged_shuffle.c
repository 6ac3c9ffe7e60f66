/* SPDX-License-Identifier: MIT */
/* test_forged_shuffle.c - files of the stages that sort, cut, and merge a shuffle, with contents that are wrong and
 * hashes that are right: whoever forges a file can make them so. Each stage that follows must end with a status and a
 * message, or with shards, and must not read past what there is, loop without end, or allocate what a file claims.
 *
 * The work has two kinds of documents: texts with values of a field, and ids with masks. Some are too long for a
 * record. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "pack/pack_finish.h"
#include "pack/pack_tasks.h"
#include "pack/unit_record.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"

#define HEADER 64 /* bytes, as stage_file.c says */
#define ENTRY 32
#define LIMIT_BYTES ((rlim_t)1 << 30)
#define WORK "w/out.work"
#define CHUNKS WORK "/unit-000000.work/chunks-0"
#define LONG WORK "/unit-000000.work/long-0"
#define SORTED WORK "/packed-000000"
#define CUTS WORK "/cuts-000000"
#define RECORD WORK "/packed-000001"
#define MERGED WORK "/merged-000001"
#define ALL UINT64_MAX /* in place of the number of a task: --finish */

static const char *const columns[] = {"n"};
static const struct split split = {.seed = 1, .count = 2, .sets = {{"a", "0.75", 0}, {"b", "0.25", (uint64_t)3 << 62}}};
static struct pack_shuffle shuffle = {.seed = 5, .memory = 4096}; /* records of at most 512 bytes */
static struct tokenizer *tokenizer;
static struct work_units units;
static struct pack_options pack;
static struct tokmap_error error;
static uint64_t looks;

/* ---- the work ---- */

/* No work of this size asks so often whether it is to stop: it would never end. */
static bool stop(void *unused)
{
    (void)unused;
    if (++looks > 100000)
        fail_msg("the work does not end");
    return false;
}

static enum tokmap_status run(uint64_t task)
{
    static struct pack_result result;
    static const char *const operand[] = {"a.jsonl"};
    struct pack_tasks_outcome outcome;
    const struct pack_tasks_options options = {.pack = &pack,
                                               .operands = operand,
                                               .operand_count = 1,
                                               .units = &units,
                                               .share = {.tasks = 1, .finish = task == ALL, .at_once = true}};
    memset(&error, 0, sizeof error);
    looks = 0;
    return pack_tasks_run(&options, &result, &outcome, &error);
}

static void input_make(bool ids)
{
    FILE *file = fopen("a.jsonl", "w");
    assert_non_null(file);
    for (int i = 0; i < 50; i++) {
        const int count = i % 17 == 3 ? 600 : 3 + i % 11;
        (void)fprintf(file, ids ? "{\"ids\":[%d" : "{\"text\":\"%d", i);
        for (int k = 1; k < count; k++)
            (void)fprintf(file, ids ? ",%d" : " %d", (i * k) % 90);
        (void)fprintf(file, ids ? "],\"m\":[0" : "\",\"n\":\"value %d\"}\n", i);
        for (int k = 1; ids && k < count; k++)
            (void)fputs(k % 3 ? ",1" : ",0", file);
        if (ids)
            (void)fputs("]}\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static int is_numbered(const struct dirent *entry)
{
    return !strncmp(entry->d_name, "merged-", 7) || !strncmp(entry->d_name, "shard-", 6);
}

/* The stages from which the work is done again. */
enum from { CUT, MERGE, FINISH };

static void work_take(enum from from)
{
    struct dirent **list = NULL;
    scratch_remove("w");
    assert_int_equal(mkdir("w", 0777), 0);
    scratch_double("kept", WORK, ".status");
    const int count = from == FINISH ? 0 : scandir(WORK, &list, is_numbered, NULL);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        scratch_remove(in_folder(WORK, list[i]->d_name));
        free(list[i]);
    }
    free(list);
    if (from == CUT)
        assert_int_equal(unlink(CUTS), 0);
}

static void parts_find(void);

/* Makes the work of three units that are sorted, cut, and merged, and have no names. */
static void work_make(bool ids)
{
    pack = (struct pack_options){.prefix = "w/out",
                                 .threads = 1,
                                 .tokenizer = ids ? NULL : tokenizer,
                                 .vocabulary = ids ? 100 : 0,
                                 .eod_id = ids ? TOKMAP_NO_ID : 256,
                                 .bos_id = TOKMAP_NO_ID,
                                 .shard_tokens = 700,
                                 .unit_bytes = 2500,
                                 .split = &split,
                                 .shuffle = &shuffle,
                                 .stop = stop};
    pack.corpus.field = ids ? "ids" : "text";
    pack.corpus.content = ids ? CORPUS_CONTENT_IDS : CORPUS_CONTENT_TEXT;
    pack.corpus.second_field = ids ? "m" : NULL;
    pack.corpus.columns = columns;
    pack.corpus.column_count = !ids;
    pack.corpus.record_limit = pack.corpus.document_limit = 1 << 20;
    static const char *const operand[] = {"a.jsonl"};
    const struct work_units_options list = {
        .operands = operand, .operand_count = 1, .corpus = &pack.corpus, .unit_bytes = 2500};
    scratch_remove("w");
    assert_int_equal(mkdir("w", 0777), 0);
    input_make(ids);
    assert_int_equal(work_units_list(&units, &list, &error), TOKMAP_OK);
    assert_true(units.count > 2);
    assert_int_equal(mkdir("w/out.partial", 0777), 0);
    const enum tokmap_status status = run(0);
    if (status != TOKMAP_ERROR_IO)
        fail_msg("status %d: %s", (int)status, error.message);
    assert_int_equal(rmdir("w/out.partial"), 0);
    assert_true(file_exists(LONG) && file_exists(MERGED) && file_exists(WORK "/shard-000002.work"));
    scratch_double(WORK, "kept", ".status");
    parts_find();
}

/* ---- forge ---- */

static uint64_t row_bytes[2]; /* of the rows of CUTS */

static uint64_t key_of(const uint8_t *file)
{
    return load64(file + 16);
}

static uint8_t *entry_of(uint8_t *file, uint64_t section)
{
    return file + HEADER + section * ENTRY;
}

static uint8_t *section_of(uint8_t *file, uint64_t section)
{
    return file + load64(entry_of(file, section));
}

static bool section_fits(uint8_t *file, size_t bytes, uint64_t section)
{
    const uint64_t offset = load64(entry_of(file, section)), count = load64(entry_of(file, section) + 8);
    return offset <= bytes && count <= bytes - offset;
}

/* Finds the length of the rows of each set. */
static void parts_find(void)
{
    size_t bytes;
    uint8_t *file = file_read("kept/cuts-000000", &bytes);
    struct shuffle_cuts cuts;
    memcpy(&cuts, section_of(file, CUTS_TOTALS), sizeof cuts);
    for (uint64_t set = 0; set < 2; set++) {
        assert_true(cuts.sets[set].shards > 1);
        row_bytes[set] = load64(entry_of(file, set) + 8) / (cuts.sets[set].shards + 1);
    }
    free(file);
}

/* Makes all hashes of a file of a stage right. */
static void hashes_make(uint8_t *file, size_t bytes, bool is_cuts)
{
    const uint64_t sections = is_cuts ? CUTS_SECTIONS : load64(file + 32);
    for (uint64_t i = 0; i < sections && HEADER + (i + 1) * ENTRY <= bytes; i++) {
        uint8_t *entry = entry_of(file, i);
        if (section_fits(file, bytes, i)) {
            uint8_t *at = section_of(file, i);
            const uint64_t count = load64(entry + 8);
            for (uint64_t row = 0; is_cuts && i < 2 && (row + 1) * row_bytes[i] <= count; row++)
                store64(at + (row + 1) * row_bytes[i] - 8,
                        hash64_seeded(at + row * row_bytes[i], row_bytes[i] - 8, row));
            store64(entry + 16, hash64(at, (size_t)count));
        }
        store64(entry + 24, hash64_seeded(entry, 24, key_of(file) + i));
    }
    store64(file + 56, hash64(file, 56));
}

/* Replaces a file that has another name, which keeps what it had. */
static void file_replace(const char *path, const void *bytes, size_t count)
{
    (void)unlink(path);
    file_write(path, bytes, count);
}

static uint64_t hostile(uint64_t *random)
{
    static const uint64_t numbers[] = {0,          1,          255,       UINT32_MAX - 2,  UINT32_MAX - 1,
                                       UINT32_MAX, 1ULL << 32, INT64_MAX, UINT64_MAX - 31, UINT64_MAX,
                                       1ULL << 62, 100000,     100001,    (1ULL << 62) - 8};
    const uint64_t which = random_below(random, 19);
    return which < 14 ? numbers[which] : which < 18 ? random_below(random, 300) : random_next(random);
}

/* The status of a work with a forged file: no other one is right. */
static void status_check(const char *name, int round, enum tokmap_status status, uint64_t *errors)
{
    const bool value = status == TOKMAP_ERROR_INPUT && strstr(error.message, "the value of column 'n'");
    if (status != TOKMAP_OK && status != TOKMAP_ERROR_CORRUPT && status != TOKMAP_ERROR_LIMIT && !value)
        fail_msg("%s, round %d: status %d: %s: %s", name, round, (int)status, error.path, error.message);
    assert_true(!status || *error.message);
    *errors += status != TOKMAP_OK;
}

/* Changes one to three numbers, entries, or records of a file of a stage. */
static void stage_forge(uint8_t *file, size_t bytes, bool is_cuts, uint64_t *random)
{
    for (uint64_t times = 1 + random_below(random, 3); times > 0; times--) {
        const uint64_t number = hostile(random), sections = is_cuts ? 3 : load64(file + 32);
        uint64_t section = random_below(random, sections);
        section = is_cuts && section == 2 ? CUTS_TOTALS : section;
        uint8_t *entry = entry_of(file, section);
        const uint64_t count = load64(entry + 8);
        if (!section_fits(file, bytes, section) || count < 16)
            continue;
        uint8_t *at = section_of(file, section) + random_below(random, count / 8) * 8;
        const uint64_t record = is_cuts ? row_bytes[section & 1] : sizeof(struct shuffle_chunk);
        uint8_t *into = section_of(file, section), *from = into;
        switch (random_below(random, 9)) {
        case 0:
            store64(entry + 8 * random_below(random, 2), number);
            break;
        case 1:
            store64(entry + 8, count - min64(count, record * random_below(random, 3)));
            break;
        case 2: /* another order, or an overlap */
            if (section == CUTS_TOTALS || count < 2 * record)
                break;
            into += random_below(random, count / record) * record;
            from += random_below(random, count / record) * record;
            memmove(into, from, (size_t)record);
            break;
        case 3:
        case 4:
            store64(at, load64(at) + (random_below(random, 2) ? 8 : (uint64_t)-8));
            break;
        default:
            store64(at, number);
        }
    }
    hashes_make(file, bytes, is_cuts);
}

static void stage_rounds(const char *name, enum from from, int rounds, uint64_t *errors)
{
    uint64_t random = 7;
    size_t bytes;
    const bool is_cuts = !strcmp(name, CUTS);
    work_take(FINISH);
    uint8_t *whole = file_read(name, &bytes), *forged = malloc(bytes);
    assert_non_null(forged);
    for (int i = 0; i < rounds; i++) {
        work_take(from);
        memcpy(forged, whole, bytes);
        stage_forge(forged, bytes, is_cuts, &random);
        file_replace(name, forged, bytes);
        status_check(name, i, run(from == FINISH ? ALL : 0), errors);
    }
    free(whole);
    free(forged);
}

static void test_stages(void **unused)
{
    (void)unused;
    uint64_t errors = 0;
    work_make(false);
    stage_rounds(SORTED, CUT, 45, &errors);
    stage_rounds(CUTS, MERGE, 45, &errors);
    stage_rounds(MERGED, FINISH, 20, &errors);
    assert_true(errors > 60);
    work_units_free(&units);
}

/* ---- sorted documents ---- */

/* Changes numbers of one document of the first chunk of unit 0: of its record, and with `agrees` also of its key, and
 * of the chunk, so that the cut finds nothing. */
static void document_forge(uint8_t *chunks, size_t bytes, uint8_t *sorted, size_t sorted_bytes, bool agrees,
                           uint64_t *random)
{
    struct shuffle_chunk chunk;
    struct shuffle_head head;
    struct shuffle_key key;
    memcpy(&chunk, section_of(sorted, SORTED_CHUNKS), sizeof chunk);
    const uint64_t number = random_below(random, chunk.keys);
    uint64_t at = chunk.begin;
    for (uint64_t i = 0; i < number; i++)
        at += load32(chunks + at + 8);
    memcpy(&head, chunks + at, sizeof head);
    const uint64_t old_bytes = head.bytes, old_tokens = head.tokens, value = hostile(random);
    switch (random_below(random, 9)) {
    case 0:
        head.bytes = (uint32_t)(random_below(random, 2) ? value : head.bytes + 8);
        break;
    case 1:
        head.set = (uint32_t)(random_below(random, 2) ? value : head.set ^ SHUFFLE_LONG);
        break;
    case 2:
        head.input = value;
        break;
    case 3:
        head.position = value;
        break;
    case 4:
        head.record = head.text_bytes = value;
        break;
    case 5:
    case 6:
        head.tokens = random_below(random, 2) ? value : head.tokens + 1 - 2 * random_below(random, 2);
        break;
    default: /* of the payload, or where that is */
        store64(chunks + at + sizeof head + random_below(random, (old_bytes - sizeof head) / 8) * 8, value);
    }
    head.hash = 0;
    memcpy(chunks + at, &head, sizeof head);
    const uint64_t hashed = head.bytes >= 8 && head.bytes <= bytes - at ? head.bytes : old_bytes;
    store64(chunks + at, hash64(chunks + at + 8, (size_t)hashed - 8));
    uint8_t *keys = chunks + chunk.end;
    memcpy(&key, keys + number * sizeof key, sizeof key);
    key.bytes = agrees ? head.bytes : key.bytes;
    key.tokens = agrees ? head.tokens : key.tokens;
    key.input = (uint32_t)head.input;
    key.position = head.position;
    key.high = shuffle_place_of(shuffle.seed, key.input, key.position).high;
    memcpy(keys + number * sizeof key, &key, sizeof key);
    chunk.keys_hash = 0;
    for (uint64_t i = 0; i < chunk.keys; i++)
        chunk.keys_hash = hash64_seeded(keys + i * sizeof key, sizeof key, chunk.keys_hash);
    chunk.tokens += key.tokens - old_tokens;
    memcpy(section_of(sorted, SORTED_CHUNKS), &chunk, sizeof chunk);
    uint8_t *totals = section_of(sorted, SORTED_TOTALS) + offsetof(struct sorted_totals, sets) + chunk.set * 16;
    store64(totals + 8, load64(totals + 8) + key.tokens - old_tokens);
    hashes_make(sorted, sorted_bytes, false);
}

static void documents_rounds(int rounds, uint64_t *errors)
{
    uint64_t random = 3;
    size_t bytes, sorted_bytes;
    work_take(CUT);
    uint8_t *whole = file_read(CHUNKS, &bytes), *forged = malloc(bytes);
    uint8_t *whole_sorted = file_read(SORTED, &sorted_bytes), *sorted = malloc(sorted_bytes);
    assert_true(forged && sorted);
    for (int i = 0; i < rounds; i++) {
        work_take(CUT);
        memcpy(forged, whole, bytes);
        memcpy(sorted, whole_sorted, sorted_bytes);
        document_forge(forged, bytes, sorted, sorted_bytes, i % 2, &random);
        file_replace(CHUNKS, forged, bytes);
        file_replace(SORTED, sorted, sorted_bytes);
        status_check(CHUNKS, i, run(0), errors);
    }
    free(whole);
    free(forged);
    free(whole_sorted);
    free(sorted);
}

static void test_documents(void **unused)
{
    (void)unused;
    for (int ids = 0; ids < 2; ids++) {
        uint64_t errors = 0;
        work_make(ids);
        documents_rounds(50, &errors);
        assert_true(errors > 12);
        work_units_free(&units);
    }
}

/* ---- single numbers ---- */

/* Adds to a number of a file of a stage. The work must end with an error that names a file and helps. */
static void number_forge(const char *name, enum from from, uint64_t section, uint64_t at, uint64_t added)
{
    size_t bytes;
    const bool is_cuts = !strcmp(name, CUTS);
    work_take(from);
    uint8_t *file = file_read(name, &bytes), *number = section_of(file, section) + at;
    store64(number, load64(number) + added);
    hashes_make(file, bytes, is_cuts);
    file_replace(name, file, bytes);
    free(file);
    const enum tokmap_status status = run(from == FINISH ? ALL : 0);
    if (status != TOKMAP_ERROR_CORRUPT || !strstr(error.message, "run all tasks again"))
        fail_msg("%s, number %d + %lld: status %d: %s", name, (int)at, (long long)added, (int)status, error.message);
    assert_false(file_exists("w/out.a"));
}

static void test_numbers(void **unused)
{
    (void)unused;
    static const uint64_t added[] = {1, UINT64_MAX, (uint64_t)-8, 1ULL << 61};
    static const size_t of_chunk[] = {offsetof(struct shuffle_chunk, file),     offsetof(struct shuffle_chunk, begin),
                                      offsetof(struct shuffle_chunk, end),      offsetof(struct shuffle_chunk, set),
                                      offsetof(struct shuffle_chunk, keys),     offsetof(struct shuffle_chunk, tokens),
                                      offsetof(struct shuffle_chunk, keys_hash)};
    work_make(false);
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++) {
        for (size_t k = 0; k < sizeof of_chunk / sizeof of_chunk[0]; k++)
            number_forge(SORTED, CUT, SORTED_CHUNKS, of_chunk[k], added[i]);
        number_forge(SORTED, CUT, SORTED_TOTALS, offsetof(struct sorted_totals, chunks), added[i]);
        number_forge(SORTED, CUT, SORTED_TOTALS, offsetof(struct sorted_totals, files), added[i]);
        number_forge(SORTED, CUT, SORTED_TOTALS, offsetof(struct sorted_totals, sets), added[i]);
        number_forge(CUTS, MERGE, CUTS_TOTALS, 0, added[i]); /* shards; documents; tokens */
        number_forge(CUTS, MERGE, CUTS_TOTALS, 8, added[i]);
        number_forge(CUTS, MERGE, CUTS_TOTALS, 16, added[i]);
        number_forge(CUTS, MERGE, 0, 0, added[i]); /* where the first shard begins in the first chunk; the second one */
        number_forge(CUTS, MERGE, 0, row_bytes[0], added[i]);
        number_forge(CUTS, MERGE, 0, 2 * row_bytes[0] - 24, added[i]); /* documents of the first shard; tokens */
        number_forge(CUTS, MERGE, 0, 2 * row_bytes[0] - 16, added[i]);
        number_forge(MERGED, FINISH, 0, offsetof(struct merged_shard, set), added[i]);
        number_forge(MERGED, FINISH, 0, offsetof(struct merged_shard, shard), added[i]);
        number_forge(MERGED, FINISH, 0, offsetof(struct merged_shard, documents), added[i]);
        number_forge(MERGED, FINISH, 0, offsetof(struct merged_shard, tokens), added[i]);
        number_forge(MERGED, FINISH, 0, offsetof(struct merged_shard, content), added[i]);
    }
    work_units_free(&units);
}

/* ---- holes ---- */

/* A list of 2^24 chunks that takes no space, since its file has a hole. Each unit may claim as much. */
static void test_sparse_list(void **unused)
{
    (void)unused;
    const uint64_t chunks = 1 << 24, hole = chunks * sizeof(struct shuffle_chunk);
    size_t bytes;
    work_make(false);
    work_take(CUT);
    for (unsigned unit = 0; unit < units.count; unit++) {
        char name[60];
        (void)snprintf(name, sizeof name, WORK "/packed-%06u", unit);
        uint8_t *file = file_read(name, &bytes);
        store64(entry_of(file, SORTED_CHUNKS), bytes);
        store64(entry_of(file, SORTED_CHUNKS) + 8, hole);
        store64(section_of(file, SORTED_TOTALS) + offsetof(struct sorted_totals, chunks), chunks);
        store64(file + 40, bytes + hole);
        hashes_make(file, bytes, false);
        file_replace(name, file, bytes);
        assert_int_equal(truncate(name, (off_t)(bytes + hole)), 0);
        free(file);
    }
    assert_int_equal(run(0), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "packed-000000"));
    work_units_free(&units);
}

/* Where the record of a long document is. */
static uint64_t long_find(const uint8_t *chunks, uint8_t *sorted)
{
    const uint64_t count = load64(entry_of(sorted, SORTED_CHUNKS) + 8) / sizeof(struct shuffle_chunk);
    for (uint64_t i = 0; i < count; i++) {
        struct shuffle_chunk chunk;
        memcpy(&chunk, section_of(sorted, SORTED_CHUNKS) + i * sizeof chunk, sizeof chunk);
        for (uint64_t at = chunk.begin; at < chunk.end; at += load32(chunks + at + 8))
            if (load32(chunks + at + 12) & SHUFFLE_LONG)
                return at;
    }
    fail_msg("no document is long");
    return 0;
}

/* A document of few tokens whose payload is a hole of 5 GiB. */
static void test_sparse_document(void **unused)
{
    (void)unused;
    const uint64_t hole = (uint64_t)5 << 30;
    for (int ids = 0; ids < 2; ids++) {
        size_t bytes, sorted_bytes, long_bytes;
        work_make(ids);
        work_take(CUT);
        uint8_t *chunks = file_read(CHUNKS, &bytes), *sorted = file_read(SORTED, &sorted_bytes);
        uint8_t *payload = file_read(LONG, &long_bytes);
        const uint64_t at = long_find(chunks, sorted);
        store64(chunks + at + sizeof(struct shuffle_head) + 8, hole); /* shuffle_long.bytes */
        store64(chunks + at + sizeof(struct shuffle_head), 0);
        shuffle_record_seal(chunks + at);
        store64(section_of(sorted, SORTED_TOTALS) + offsetof(struct sorted_totals, long_bytes), hole);
        hashes_make(sorted, sorted_bytes, false);
        file_replace(CHUNKS, chunks, bytes);
        file_replace(SORTED, sorted, sorted_bytes);
        file_replace(LONG, payload, long_bytes);
        assert_int_equal(truncate(LONG, (off_t)hole), 0);
        const enum tokmap_status status = run(0);
        if (status != TOKMAP_ERROR_CORRUPT)
            fail_msg("status %d: %s", (int)status, error.message);
        free(chunks);
        free(sorted);
        free(payload);
        work_units_free(&units);
    }
}

/* ---- records of units ---- */

/* Where a number of the result is in the record of a unit. */
#define RESULT_AT(field) (HEADER + UNIT_SECTIONS * ENTRY + offsetof(struct unit_result, pack.field))

static enum tokmap_status record_forge(const uint8_t *whole, size_t bytes, uint64_t at, const void *value, size_t size)
{
    uint8_t *forged = malloc(bytes);
    assert_true(forged && at + size <= bytes);
    memcpy(forged, whole, bytes);
    memcpy(forged + at, value, size);
    hashes_make(forged, bytes, false);
    work_take(FINISH);
    file_replace(RECORD, forged, bytes);
    free(forged);
    return run(ALL);
}

static void test_records(void **unused)
{
    (void)unused;
    uint64_t random = 5, errors = 0;
    const uint64_t shards = UINT64_MAX;
    const uint8_t two = 2;
    size_t bytes;
    work_make(false);
    uint8_t *whole = file_read(RECORD, &bytes);
    assert_true(load64(whole + RESULT_AT(tokens)) > 20 && load64(whole + RESULT_AT(tokens)) < 3000);
    assert_int_equal(record_forge(whole, bytes, RESULT_AT(sets[1].shards), &shards, 8), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "packed-000001"));
    assert_int_equal(record_forge(whole, bytes, RESULT_AT(has_mask), &two, 1), TOKMAP_ERROR_CORRUPT);
    for (int i = 0; i < 40; i++) {
        const uint64_t size = 1ULL << random_below(&random, 4), number = hostile(&random);
        const uint64_t begin = RESULT_AT(counts), end = load64(entry_of(whole, SORTED_TOTALS));
        const uint64_t at = begin + random_below(&random, (end - begin) / size) * size;
        status_check(RECORD, i, record_forge(whole, bytes, at, &number, (size_t)size), &errors);
    }
    free(whole);
    work_units_free(&units);
}

static int forged_setup(void **state)
{
    if (setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL))
        return -1;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadows need more */
    const struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
    return 0;
}

static int forged_teardown(void **state)
{
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),      cmocka_unit_test(test_documents),       cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_sparse_list), cmocka_unit_test(test_sparse_document), cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, forged_setup, forged_teardown);
}
