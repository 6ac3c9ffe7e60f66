/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/* test_pack_journal.c - torn, damaged, and hostile journals of an interrupted pack. A journal whose hashes are wrong
 * from some place on continues at an earlier checkpoint and ends with the bytes of an undisturbed pack. A record that
 * is wrong under a right hash never crashes the process, and starting over then works. TOKMAP_JOURNALS: how many
 * hostile journals each layout of the output gets (40). */
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

#include "common/bytes.h"
#include "common/hash.h"
#include "pack/pack.h"
#include "support/awkward_text.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"
#include "work/work_folder.h"

#define HEAD_BYTES 16 /* of a journal; see work_folder.h */
#define RECORDS_MOST 4096
#define LEAST_RECORD 16 /* bytes of a record without a payload */

static struct tokenizer *tokenizer;
static const char *const columns[] = {"url", "n"};
static const char *const operands[] = {"a.jsonl", "b.txt"};
static uint64_t seed = 7;
static uint32_t batches_left; /* until stop() interrupts the pack */

/* One shard without duplicates, whose journal has the keys of documents; one with them; several; several, shuffled,
 * with journals of the first pass; and of the second one. */
enum layout { DEDUPED, ONE, SETS, SHUFFLED, MERGED };
static const struct drop_options drop = {.duplicates = true, .memory = UINT64_MAX};
static struct pack_shuffle shuffle = {.seed = 5, .memory = 65536};

/* The outputs of a layout, in the folder out. */
static const char *const single[] = {"k.bin", "k.tmx", NULL};
static const char *const several[] = {"k-00000.bin", "k-00000.tmx", "k-00001.bin", "k-00001.tmx", "k", NULL};

static void make_inputs(void)
{
    FILE *file = fopen("a.jsonl", "wb");
    assert_non_null(file);
    for (int i = 0; i < 9000; i++)
        (void)fprintf(file, "{\"text\":\"document %d %.*s\",\"url\":\"u%d\",\"n\":%d}\n", i,
                      (int)random_below(&seed, 60), "with words of a text that is as long as the longest of them",
                      i % 700, i);
    assert_int_equal(fclose(file), 0);
    file = fopen("b.txt", "wb");
    assert_non_null(file);
    for (int i = 0; i < 30000; i++)
        (void)fprintf(file, "line %d\n", i);
    assert_int_equal(fclose(file), 0);
}

static int journal_setup(void **state)
{
    if (setup(state) || chdir(folder) || vocabulary_open(&tokenizer, "bytes", NULL, NULL))
        return -1;
    make_inputs();
    return 0;
}

static int journal_teardown(void **state)
{
    tokenizer_close(tokenizer);
    return chdir("/") || teardown(state);
}

static bool stop(void *user)
{
    (void)user;
    return !batches_left;
}

static void progress(void *user, uint64_t stored_bytes)
{
    const enum layout *layout = user;
    (void)stored_bytes;
    batches_left -= batches_left != 0 && *layout != MERGED;
}

static void shuffled(void *user, uint64_t tokens, uint64_t all)
{
    const enum layout *layout = user;
    (void)tokens;
    (void)all;
    batches_left -= batches_left != 0 && *layout == MERGED;
}

static struct pack_options usual(enum layout *layout)
{
    struct pack_options options = {.prefix = "out/k",
                                   .threads = 1,
                                   .tokenizer = tokenizer,
                                   .eod_id = 256,
                                   .bos_id = TOKMAP_NO_ID,
                                   .shard_tokens = *layout > ONE ? 450000 : 0,
                                   .checkpoint_ns = 1,
                                   .progress = progress,
                                   .drop = *layout == DEDUPED ? &drop : NULL,
                                   .shuffle = *layout >= SHUFFLED ? &shuffle : NULL,
                                   .shuffled = shuffled,
                                   .user = layout,
                                   .stop = stop};
    options.corpus.field = "text";
    options.corpus.columns = columns;
    options.corpus.column_count = 2;
    options.corpus.record_limit = options.corpus.document_limit = 64 << 20;
    return options;
}

static enum tokmap_status packed(enum layout layout, bool start_over, uint32_t batches, struct tokmap_error *error)
{
    struct pack_options options = usual(&layout);
    struct pack_result result;
    options.start_over = start_over;
    batches_left = batches;
    memset(error, 0, sizeof *error);
    return pack_run(&options, operands, 2, &result, error);
}

/* Whether the output has the bytes of the undisturbed one, in the folder wanted. */
static bool is_right(enum layout layout)
{
    bool right = true;
    for (const char *const *name = layout > ONE ? several : single; *name; name++) {
        char found_path[64], wanted_path[64];
        size_t found_count, wanted_count;
        (void)snprintf(found_path, sizeof found_path, "out/%s", *name);
        (void)snprintf(wanted_path, sizeof wanted_path, "wanted/%s", *name);
        if (!file_exists(found_path))
            return false;
        char *found = file_read(found_path, &found_count), *wanted = file_read(wanted_path, &wanted_count);
        right = right && found_count == wanted_count && !memcmp(found, wanted, wanted_count);
        free(found);
        free(wanted);
    }
    return right;
}

static void copy_folder(const char *from, const char *to)
{
    char command[128];
    scratch_remove(to);
    (void)snprintf(command, sizeof command, "cp -a %s %s", from, to);
    assert_int_equal(system(command), 0);
}

/* Makes the folder `wanted` with the right output, and the folder `left` with what an interrupted pack has left. */
static void interrupt_pack(enum layout layout)
{
    struct tokmap_error error;
    scratch_remove("out");
    assert_int_equal(mkdir("out", 0777), 0);
    if (packed(layout, false, UINT32_MAX, &error))
        fail_msg("%s", error.message);
    copy_folder("out", "wanted");
    scratch_remove("out");
    assert_int_equal(mkdir("out", 0777), 0);
    assert_int_equal(packed(layout, false,
                            layout == MERGED    ? 2
                            : layout == DEDUPED ? 3
                                                : 4,
                            &error),
                     TOKMAP_ERROR_INTERRUPTED);
    assert_true(file_exists("out/k.work/journal"));
    copy_folder("out", "left");
}

/* ---- journals ---- */

struct journal {
    uint8_t *bytes;
    size_t count;
    size_t offsets[RECORDS_MOST + 1]; /* of the records, and of the end */
    uint32_t records, facts;          /* the first records are facts */
};

static void journal_read(struct journal *journal)
{
    journal->bytes = file_read("left/k.work/journal", &journal->count);
    journal->records = journal->facts = 0;
    size_t at = HEAD_BYTES;
    while (at + LEAST_RECORD <= journal->count) {
        const uint32_t bytes = load32(journal->bytes + at + 4);
        assert_true(journal->records < RECORDS_MOST && at + LEAST_RECORD + bytes <= journal->count);
        assert_true(load64(journal->bytes + at + 8 + bytes) == hash64_seeded(journal->bytes + at, 8 + bytes, at));
        journal->facts += load32(journal->bytes + at) < WORK_TYPE_FIRST;
        journal->offsets[journal->records++] = at;
        at += LEAST_RECORD + bytes;
    }
    journal->offsets[journal->records] = at;
    assert_int_equal(at, journal->count);
    assert_true(journal->records > journal->facts + 10);
}

static void journal_begin(const void *bytes, size_t count)
{
    copy_folder("left", "out");
    file_write("out/k.work/journal", bytes, count);
}

/* A record that is being changed. */
struct record {
    uint8_t bytes[8 + (1 << 19)];
    uint32_t count; /* of the payload */
};

static uint64_t strange_number(uint64_t number)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       255,
                                       65535,
                                       (uint64_t)1 << 31,
                                       UINT32_MAX,
                                       (uint64_t)1 << 32,
                                       (uint64_t)1 << 47,
                                       (uint64_t)1 << 61,
                                       INT64_MAX,
                                       (uint64_t)1 << 63,
                                       UINT64_MAX - 7,
                                       UINT64_MAX};
    const uint64_t choice = random_below(&seed, sizeof numbers / sizeof numbers[0] + 3);
    return choice < sizeof numbers / sizeof numbers[0] ? numbers[choice] : number + choice % 3 - 1;
}

static void record_change(struct record *record)
{
    uint8_t *payload = record->bytes + 8;
    const uint32_t words = record->count / 8;
    switch (random_below(&seed, 8)) {
    case 0:
        record->count = (uint32_t)random_below(&seed, record->count + 1);
        break;
    case 1:
        memset(payload + record->count, (int)random_below(&seed, 256), 32);
        record->count += (uint32_t)random_below(&seed, 33);
        break;
    case 2:
        store32(record->bytes, WORK_TYPE_FIRST + (uint32_t)random_below(&seed, 6));
        break;
    case 3:
        if (record->count)
            payload[random_below(&seed, record->count)] ^= (uint8_t)(1 << random_below(&seed, 8));
        break;
    default: /* the heads of pieces are numbers of 32 bits, most others have 64 */
        if (words) {
            uint8_t *at = payload + 8 * random_below(&seed, words);
            if (random_below(&seed, 4))
                store64(at, strange_number(load64(at)));
            else
                store32(at, (uint32_t)strange_number(load32(at)));
        }
    }
}

/* Appends a record with the right hash. Returns the end. */
static size_t record_append(uint8_t *bytes, size_t at, struct record *record)
{
    store32(record->bytes + 4, record->count);
    memcpy(bytes + at, record->bytes, 8 + record->count);
    store64(bytes + at + 8 + record->count, hash64_seeded(bytes + at, 8 + record->count, at));
    return at + LEAST_RECORD + record->count;
}

/* Makes a journal in which some records are changed, missing, or there twice. Returns its length. */
static size_t journal_forge(const struct journal *journal, uint8_t *into, struct record *record)
{
    const uint32_t first = journal->facts, count = journal->records - first;
    size_t end = journal->offsets[first];
    memcpy(into, journal->bytes, end);
    const uint32_t chosen = first + (uint32_t)random_below(&seed, count);
    /* The last checkpoint counts most, so half of the changes are there. */
    const uint32_t target = random_below(&seed, 2) ? journal->records - 1 : chosen;
    const uint64_t what = random_below(&seed, 10);
    for (uint32_t i = first; i < journal->records; i++) {
        const size_t at = journal->offsets[i];
        record->count = load32(journal->bytes + at + 4);
        assert_true(record->count + 64 < sizeof record->bytes);
        memcpy(record->bytes, journal->bytes + at, 8 + record->count);
        if (i == target && what == 0)
            continue;
        if (i == target && what == 1)
            end = record_append(into, end, record);
        if (i == target && what > 1)
            record_change(record);
        end = record_append(into, end, record);
    }
    return end;
}

/* ---- tests ---- */

static void torn(enum layout layout)
{
    struct journal journal;
    struct tokmap_error error;
    interrupt_pack(layout);
    journal_read(&journal);
    const size_t begin = journal.offsets[journal.facts], count = journal.count - begin;
    for (int round = 0; round < 6; round++) {
        const size_t at = begin + random_below(&seed, count);
        journal_begin(journal.bytes, at);
        if (packed(layout, false, UINT32_MAX, &error))
            fail_msg("a journal that was cut at byte %zu of %zu: %s", at, journal.count, error.message);
        assert_true(is_right(layout));
        journal.bytes[at] ^= (uint8_t)(1 << random_below(&seed, 8));
        journal_begin(journal.bytes, journal.count);
        if (packed(layout, false, UINT32_MAX, &error))
            fail_msg("byte %zu of %zu was changed: %s", at, journal.count, error.message);
        assert_true(is_right(layout));
        free(journal.bytes);
        journal_read(&journal);
    }
    free(journal.bytes);
}

/* Statuses that a wrong record may lead to. */
static bool is_expected(enum tokmap_status status)
{
    return status == TOKMAP_ERROR_CORRUPT || status == TOKMAP_ERROR_MISMATCH || status == TOKMAP_ERROR_UNSUPPORTED ||
           status == TOKMAP_ERROR_NOT_FOUND || status == TOKMAP_ERROR_LIMIT || status == TOKMAP_ERROR_TRUNCATED ||
           status == TOKMAP_ERROR_INPUT || /* it says that the inputs go on within a record */
           status == TOKMAP_ERROR_INTERNAL;
}

static void hostile(enum layout layout)
{
    const char *wanted = getenv("TOKMAP_JOURNALS");
    const int rounds = wanted ? atoi(wanted) : awkward_rounds(40);
    struct journal journal;
    struct tokmap_error error;
    interrupt_pack(layout);
    journal_read(&journal);
    uint8_t *forged = malloc(2 * journal.count + 4096);
    struct record *record = malloc(sizeof *record);
    assert_true(forged && record);
    int refused = 0, taken = 0, different = 0;
    /* Few rounds, as on slow machines, may meet no journal that is refused: more follow then, as many as usual. */
    for (int round = 0; round < rounds || (!refused && round < 40); round++) {
        const size_t count = journal_forge(&journal, forged, record);
        journal_begin(forged, count);
        const enum tokmap_status status = packed(layout, false, UINT32_MAX, &error);
        taken += !status;
        refused += status != TOKMAP_OK;
        different += !status && !is_right(layout);
        if (!status)
            continue;
        if (!is_expected(status) || !error.message[0])
            fail_msg("hostile journal %d: status %d, %s", round, (int)status, error.message);
        if (packed(layout, true, UINT32_MAX, &error))
            fail_msg("starting over after hostile journal %d: %s", round, error.message);
        assert_true(is_right(layout));
    }
    print_message("%d hostile journals refused, %d taken, of which %d change the output\n", refused, taken, different);
    assert_true(refused > 0);
    free(forged);
    free(record);
    free(journal.bytes);
}

static void torn_journals_continue_earlier(void **state)
{
    (void)state;
    torn(DEDUPED);
    torn(ONE);
    torn(SETS);
}

static void hostile_journals_of_a_shard(void **state)
{
    (void)state;
    hostile(DEDUPED);
    hostile(ONE);
}

static void hostile_journals_of_a_set(void **state)
{
    (void)state;
    hostile(SETS);
}

static void hostile_journals_of_a_shuffle(void **state)
{
    (void)state;
    torn(SHUFFLED);
    torn(MERGED);
    hostile(SHUFFLED);
    hostile(MERGED);
}

/* Unfinished work of a shuffle, in either pass, is not continued with another seed, without a shuffle, or with a
 * changed input. It stays as it is, and more memory may be used to continue it. */
static void a_changed_shuffle_is_refused(void **state)
{
    (void)state;
    for (enum layout layout = SHUFFLED; layout <= MERGED; layout++) {
        struct tokmap_error error;
        enum layout unshuffled = SETS;
        interrupt_pack(layout);
        shuffle.seed = 6;
        assert_int_equal(packed(layout, false, UINT32_MAX, &error), TOKMAP_ERROR_MISMATCH);
        assert_non_null(strstr(error.message, "another --shuffle: it had 5, and this one has 6"));
        shuffle.seed = 5;
        assert_int_equal(packed(unshuffled, false, UINT32_MAX, &error), TOKMAP_ERROR_MISMATCH);
        assert_non_null(strstr(error.message, "another --shuffle: it had 5, and this one has none"));
        size_t count;
        char *text = file_read("b.txt", &count);
        text[7] ^= 1;
        file_write("b.txt", text, count);
        assert_int_equal(packed(layout, false, UINT32_MAX, &error), TOKMAP_ERROR_MISMATCH);
        assert_string_equal(error.path, "b.txt");
        text[7] ^= 1;
        file_write("b.txt", text, count);
        free(text);
        shuffle.memory = 1 << 20;
        assert_int_equal(packed(layout, false, UINT32_MAX, &error), TOKMAP_OK);
        shuffle.memory = 65536;
        assert_true(is_right(layout));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_journals_continue_earlier), cmocka_unit_test(hostile_journals_of_a_shard),
        cmocka_unit_test(hostile_journals_of_a_set),      cmocka_unit_test(hostile_journals_of_a_shuffle),
        cmocka_unit_test(a_changed_shuffle_is_refused),
    };
    return cmocka_run_group_tests(tests, journal_setup, journal_teardown);
}
