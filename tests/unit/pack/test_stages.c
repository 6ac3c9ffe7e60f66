/* SPDX-License-Identifier: MIT */
/* test_stages.c - files of stages that are damaged or forged. Those who forge one can make its hashes right, so any
 * number in it may be hostile: the next stage must end with an error or with a list, and must not read or allocate more
 * than the file has. And files that another task makes at the same time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "corpus/corpus_range.h"
#include "dedup/drop_finish.h"
#include "dedup/drop_list.h"
#include "dedup/drop_resolve.h"
#include "dedup/ngram_table.h"
#include "pack/pack_stages.h"
#include "pack/unit_record.h"
#include "support/scratch_folder.h"

#define KEY UINT64_C(0x1234567890abcdef)
#define UNITS 4
#define HEADER 64 /* bytes, as stage_file.c says */
#define ENTRY 32
#define LIMIT_BYTES ((rlim_t)4 << 30)

static const struct minhash_form form = {.words = 2, .bands = 2, .rows = 4};
static struct drop_options drop;
static struct pack_options pack;
static struct work_units units;
static struct ngram_table *ngrams;

/* ---- make ---- */

static struct stage_id scan_id(uint64_t unit)
{
    return scan_file_id(".", KEY, unit);
}

/* Makes the units and scans them. */
static void all_scan(bool near)
{
    static const char *const operands[] = {"a.jsonl", "b.jsonl", "c.jsonl"};
    struct tokmap_error error;
    drop = (struct drop_options){.duplicates = !near, .minhash = near ? &form : NULL, .ngrams = ngrams};
    pack = (struct pack_options){.prefix = "new", .threads = 1, .vocabulary = 256, .drop = &drop};
    pack.corpus.field = "text";
    pack.corpus.record_limit = pack.corpus.document_limit = 1 << 20;
    const struct work_units_options options = {
        .operands = operands, .operand_count = 3, .corpus = &pack.corpus, .unit_bytes = 1000};
    assert_int_equal(work_units_list(&units, &options, &error), TOKMAP_OK);
    assert_int_equal(units.count, UNITS);
    for (uint64_t i = 0; i < UNITS; i++) {
        const struct unit *unit = &units.list[i];
        const struct stage_id id = scan_id(i);
        struct pack_options own = pack;
        uint64_t before;
        if (unit->end) {
            const char *path = units.paths[unit->first];
            assert_int_equal(corpus_range_border(path, unit->begin, NULL, NULL, &own.corpus.range.begin, &error), 0);
            assert_int_equal(corpus_range_border(path, unit->end, NULL, NULL, &own.corpus.range.end, &error), 0);
        }
        const struct scan_inputs inputs = {.operands = (const char *const *)(units.paths + unit->first),
                                           .count = unit->count};
        const struct unit_scan_options scanning = pack_scan_options(&own);
        assert_int_equal(unit_scan_run(&scanning, &inputs, &id, &before, &error), TOKMAP_OK);
    }
}

static enum tokmap_status compare(const struct all_scans *scans, struct tokmap_error *error)
{
    const struct drop_stage stage = pack_scan_options(&pack).stage;
    return drop.minhash ? near_resolve_run(scans, &stage, error) : drop_portion_run(scans, &stage, 0, error);
}

static enum tokmap_status list_write(const struct all_scans *scans, struct tokmap_error *error)
{
    struct dropped_writer *list = NULL;
    const struct drop_stage stage = pack_scan_options(&pack).stage;
    const enum tokmap_status status = drop_finish(&list, pack.prefix, NULL, &stage, &units, scans, error);
    dropped_writer_free(list);
    return status;
}

/* All that packing asks of a unit that has the documents 0, 3, 6, ... of its first two inputs. */
static enum tokmap_status unit_ask(const struct all_scans *scans, uint64_t unit, struct tokmap_error *error)
{
    const struct drop_source source = {".", KEY, unit, UNITS, scans->portions, &scans->list[unit].places, false};
    struct drop_list *list;
    struct stage_record record;
    bool is_dropped;
    enum tokmap_status status = drop_list_open(&list, &source, error);
    for (uint64_t i = 0; i < 30 && !status; i++) {
        const struct document_place place = {.record = i % 15 * 3, .input = (uint32_t)(i / 15)};
        status = drop_list_find(list, &place, &is_dropped, &record, error);
    }
    if (!status)
        status = drop_list_end(list, error);
    drop_list_free(list);
    return status;
}

/* Does all that follows the scans. compares: the files drops-* are made, too. */
static enum tokmap_status stages_do(bool compares, struct tokmap_error *error)
{
    struct all_scans scans;
    const struct drop_stage stage = pack_scan_options(&pack).stage;
    enum tokmap_status status = all_scans_read(&scans, &stage, ".", KEY, UNITS, error);
    if (!status && compares)
        status = compare(&scans, error);
    for (uint64_t i = 0; i < UNITS && !status; i++)
        (void)unit_ask(&scans, i, error);
    if (!status)
        status = list_write(&scans, error);
    all_scans_free(&scans);
    return status;
}

/* ---- forge ---- */

static uint8_t *entry_of(uint8_t *file, uint64_t section)
{
    return file + HEADER + section * ENTRY;
}

/* Makes all hashes right. */
static void hashes_make(uint8_t *file, size_t bytes)
{
    const uint64_t sections = load64(file + 32);
    for (uint64_t i = 0; i < sections && HEADER + (i + 1) * ENTRY <= bytes; i++) {
        uint8_t *entry = entry_of(file, i);
        const uint64_t offset = load64(entry), count = load64(entry + 8);
        if (offset <= bytes && count <= bytes - offset)
            store64(entry + 16, hash64(file + offset, (size_t)count));
        store64(entry + 24, hash64_seeded(entry, 24, KEY + i));
    }
    store64(file + 56, hash64(file, 56));
}

static uint64_t hostile(uint64_t *random)
{
    static const uint64_t numbers[] = {0,          1,          255,       UINT32_MAX - 2,  UINT32_MAX - 1,
                                       UINT32_MAX, 1ULL << 32, INT64_MAX, UINT64_MAX - 31, UINT64_MAX};
    const uint64_t which = random_below(random, 14);
    return which < 10 ? numbers[which] : which < 13 ? random_below(random, 300) : random_next(random);
}

/* Changes one to three numbers, bytes, or entries of a file. */
static void forge(uint8_t *file, size_t bytes, uint64_t *random)
{
    const uint64_t sections = load64(file + 32);
    for (uint64_t times = 1 + random_below(random, 3); times > 0; times--) {
        const uint64_t number = hostile(random);
        const uint64_t section = random_below(random, sections < 6 || random_below(random, 4) == 0 ? sections : 6);
        uint8_t *entry = entry_of(file, section);
        const uint64_t offset = load64(entry), count = load64(entry + 8);
        const uint64_t size = 1ULL << random_below(random, 4);
        const bool inside = offset <= bytes && count <= bytes - offset && count >= size;
        switch (random_below(random, 8)) {
        case 0:
            store64(entry + 8 * random_below(random, 2), number);
            break;
        case 1: /* a section of another, or a part of it */
            store64(entry + 8, count - min64(count, size * random_below(random, 9)));
            break;
        default: {
            uint8_t little[8];
            store64(little, number);
            if (inside) /* places of records are multiples of 4 */
                memcpy(file + offset + random_below(random, count / size) * size, little, size);
        }
        }
    }
    hashes_make(file, bytes);
}

static void files_forge(const char *name, bool compares, uint64_t rounds, uint64_t *errors)
{
    uint64_t random = 7;
    size_t bytes;
    uint8_t *whole = file_read(name, &bytes), *forged = malloc(bytes);
    assert_non_null(forged);
    for (uint64_t i = 0; i < rounds; i++) {
        struct tokmap_error error = {0};
        memcpy(forged, whole, bytes);
        forge(forged, bytes, &random);
        file_write(name, forged, bytes);
        const enum tokmap_status status = stages_do(compares, &error);
        const bool missing = status == TOKMAP_ERROR_NOT_FOUND && !compares; /* of so many documents, more files */
        if (status && status != TOKMAP_ERROR_CORRUPT && status != TOKMAP_ERROR_LIMIT && !missing)
            fail_msg("%s, round %d: status %d: %s", name, (int)i, (int)status, error.message);
        *errors += status != TOKMAP_OK;
    }
    file_write(name, whole, bytes);
    free(whole);
    free(forged);
}

static void test_hostile(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    for (int near = 0; near < 2; near++) {
        uint64_t errors = 0;
        all_scan(near);
        assert_int_equal(stages_do(true, &error), TOKMAP_OK);
        files_forge("scan-000000", true, 60, &errors);
        files_forge("scan-000002", true, 60, &errors);
        assert_int_equal(stages_do(true, &error), TOKMAP_OK);
        files_forge("drops-000000", false, 200, &errors);
        files_forge("scan-000001", false, 100, &errors);
        assert_int_equal(stages_do(false, &error), TOKMAP_OK);
        assert_true(errors > 100);
        work_units_free(&units);
    }
}

/* ---- single numbers ---- */

/* The bytes of section `section` of a file that was read. */
static uint8_t *section_of(uint8_t *file, uint64_t section)
{
    return file + load64(entry_of(file, section));
}

/* Replaces a number of a file, and returns what follows. */
static enum tokmap_status number_forge(const char *name, uint64_t section, uint64_t at, uint64_t number,
                                       struct tokmap_error *error)
{
    size_t bytes;
    uint8_t *file = file_read(name, &bytes), *whole = file_read(name, &bytes);
    store64(section_of(file, section) + at, number);
    hashes_make(file, bytes);
    file_write(name, file, bytes);
    const enum tokmap_status status = stages_do(name[0] == 's', error);
    file_write(name, whole, bytes);
    free(file);
    free(whole);
    return status;
}

/* More documents than there are places: their clusters would need 16 GB. */
static void test_documents(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    all_scan(true);
    assert_int_equal(stages_do(true, &error), TOKMAP_OK);
    const uint64_t at = offsetof(struct unit_scan, places.documents);
    assert_int_equal(number_forge("scan-000001", SCAN_TOTALS, at, UINT32_MAX - 1000, &error), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "scan-000001"));
    assert_int_equal(number_forge("scan-000001", SCAN_TOTALS, at, UINT64_MAX, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(number_forge("scan-000001", SCAN_TOTALS, at, 1, &error), TOKMAP_ERROR_CORRUPT);
    work_units_free(&units);
}

static void test_paths(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    all_scan(false);
    assert_int_equal(number_forge("scan-000003", SCAN_PATHS, 0, 7, &error), TOKMAP_ERROR_CORRUPT); /* zeros */
    assert_int_equal(number_forge("scan-000003", SCAN_PATHS, 0, UINT64_MAX, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(
        number_forge("scan-000003", SCAN_TOTALS, offsetof(struct unit_scan, places.inputs), UINT32_MAX - 9, &error),
        TOKMAP_ERROR_CORRUPT);
    work_units_free(&units);
}

/* A section of nearly 4 GiB that takes no space, as its file has a hole: what is read is bounded by the names of the
 * inputs, not by what the file says. */
static void test_sparse(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    const uint64_t hole = UINT32_MAX - 4096;
    size_t bytes;
    all_scan(false);
    assert_int_equal(stages_do(true, &error), TOKMAP_OK);
    uint8_t *file = file_read("scan-000003", &bytes), *whole = file_read("scan-000003", &bytes);
    store64(entry_of(file, SCAN_PATHS), bytes);
    store64(entry_of(file, SCAN_PATHS) + 8, hole);
    store64(file + 40, bytes + hole); /* bytes of the file */
    hashes_make(file, bytes);
    file_write("scan-000003", file, bytes);
    assert_int_equal(truncate("scan-000003", (off_t)(bytes + hole)), 0);
    assert_int_equal(stages_do(false, &error), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "scan-000003"));
    file_write("scan-000003", whole, bytes);
    free(file);
    free(whole);
    work_units_free(&units);
}

/* The same of the places of documents: the memory for clusters is bounded by the places that are there, which are in
 * order, and those of a hole are not. */
static void test_sparse_places(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    const uint64_t places = 1 << 21, hole = places * sizeof(struct scan_place);
    size_t bytes;
    all_scan(true);
    assert_int_equal(stages_do(true, &error), TOKMAP_OK);
    uint8_t *whole = file_read("scan-000003", &bytes);
    uint8_t *file = calloc(1, bytes + hole);
    assert_non_null(file);
    memcpy(file, whole, bytes);
    store64(entry_of(file, SCAN_PLACES), bytes);
    store64(entry_of(file, SCAN_PLACES) + 8, hole);
    store64(file + 40, bytes + hole);
    store64(section_of(file, SCAN_TOTALS) + offsetof(struct unit_scan, places.documents), places);
    hashes_make(file, bytes + hole);
    file_write("scan-000003", file, bytes);
    assert_int_equal(truncate("scan-000003", (off_t)(bytes + hole)), 0);
    assert_int_equal(stages_do(true, &error), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, "scan-000003"));
    file_write("scan-000003", whole, bytes);
    free(file);
    free(whole);
    work_units_free(&units);
}

/* A list of the dropped documents of a unit has a document that the unit does not have. */
static void test_drops(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct all_scans scans;
    struct drop_list *list;
    struct stage_record record;
    bool is_dropped;
    all_scan(false);
    assert_int_equal(stages_do(true, &error), TOKMAP_OK);
    const struct drop_stage stage = pack_scan_options(&pack).stage;
    assert_int_equal(all_scans_read(&scans, &stage, ".", KEY, UNITS, &error), TOKMAP_OK);
    /* Documents 0 to 39, without the one at `skip`, after a killed process that has packed those before `begin`. */
    static const struct {
        uint64_t begin, skip;
        enum tokmap_status wanted;
    } cases[] = {{0, 99, TOKMAP_OK},
                 {0, 10, TOKMAP_ERROR_CORRUPT},
                 {8, 99, TOKMAP_OK},
                 {8, 10, TOKMAP_ERROR_CORRUPT},
                 {99, 99, TOKMAP_OK}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const struct drop_source source = {
            ".", KEY, 3, UNITS, scans.portions, &scans.list[3].places, cases[k].begin > 0};
        uint64_t found = 0;
        enum tokmap_status status = drop_list_open(&list, &source, &error);
        assert_int_equal(status, TOKMAP_OK);
        for (uint64_t i = cases[k].begin; i < 40 && !status; i++) {
            const struct document_place place = {.record = i, .input = 0};
            if (i == cases[k].skip)
                continue;
            status = drop_list_find(list, &place, &is_dropped, &record, &error);
            found += !status && is_dropped;
        }
        if (!status)
            status = drop_list_end(list, &error);
        assert_int_equal(status, cases[k].wanted);
        assert_true(status || cases[k].begin || found > 10);
        drop_list_free(list);
    }
    all_scans_free(&scans);
    /* The document that is kept must be before the one that is dropped. */
    const uint64_t first = offsetof(struct stage_record, first), second = offsetof(struct stage_record, second);
    assert_int_equal(number_forge("drops-000000", 3, second, 3, &error), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(number_forge("drops-000000", 3, second, STAGE_EXCLUDED, &error), TOKMAP_OK);
    assert_int_equal(number_forge("drops-000000", 0, first, 1000, &error), TOKMAP_ERROR_CORRUPT);
    work_units_free(&units);
}

/* ---- another task ---- */

/* What a task does that sorts the units for a shuffle, and what another one does meanwhile. */
struct sorting {
    uint64_t key;
    uint64_t sorted[UNITS], sorts; /* the units that this task has sorted */
    uint64_t made;                 /* files that are there in the end */
};

static enum tokmap_status sorted_write(const struct stage_id *id, struct tokmap_error *error)
{
    struct stage_writer *writer;
    enum tokmap_status status = stage_writer_open(&writer, id, error);
    if (!status)
        status = stage_writer_add(writer, "a sorted unit", 13, error);
    for (uint64_t i = 1; i < id->sections && !status; i++)
        status = stage_writer_next(writer, error);
    if (!status)
        status = stage_writer_commit(writer, false, error);
    stage_writer_free(writer);
    return status;
}

static void sort_begun(void *self)
{
    struct tokmap_error error;
    const struct sorting *sorting = ((struct pack_stages *)self)->user;
    assert_int_equal(sorting->made, 0);
    const struct stage_id id = unit_record_id(".", sorting->key, 1);
    assert_int_equal(sorted_write(&id, &error), TOKMAP_OK);
}

static enum tokmap_status sort_one(void *user, uint64_t unit, const struct stage_id *id, struct tokmap_error *error)
{
    struct sorting *sorting = user;
    sorting->sorted[sorting->sorts++] = unit;
    enum tokmap_status status = sorted_write(id, error);
    if (!status && !unit) { /* it takes a while, in which another task sorts the last unit */
        const struct stage_id last = unit_record_id(".", sorting->key, UNITS - 1);
        status = sorted_write(&last, error);
    }
    return status;
}

static enum tokmap_status sort_made(void *self, uint64_t item, struct tokmap_error *error)
{
    struct sorting *sorting = ((struct pack_stages *)self)->user;
    (void)item;
    (void)error;
    sorting->made++;
    return TOKMAP_OK;
}

/* A file that another task has made since this one has looked is not made again: that could take hours. */
static void test_made_by_another(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct sorting sorting = {.made = 0};
    struct schedule_left left;
    size_t count;
    const struct pack_shuffle shuffle = {.seed = 1};
    all_scan(false);
    pack.drop = NULL;
    pack.shuffle = &shuffle;
    struct pack_stages stages = {.pack = &pack, .inputs = &units, .folder = ".", .unit = sort_one, .user = &sorting};
    const struct stage *list = pack_stages_list(&pack, &count);
    const struct schedule schedule = {.stages = list,
                                      .count = count,
                                      .self = &stages,
                                      .folder = ".",
                                      .share = {.tasks = 1, .at_once = true},
                                      .begun = sort_begun,
                                      .made = sort_made};
    assert_int_equal(pack_stages_begin(&stages, &error), TOKMAP_OK);
    sorting.key = stages.found.key;
    /* The files have no units, which the next stage says. */
    assert_int_equal(schedule_run(&schedule, &left, &error), TOKMAP_ERROR_CORRUPT);
    pack_stages_free(&stages);
    assert_int_equal(sorting.made, UNITS);
    assert_int_equal(sorting.sorts, 2);
    assert_int_equal(sorting.sorted[0], 0);
    assert_int_equal(sorting.sorted[1], 2);
    work_units_free(&units);
}

/* Three files: a is cut into two units; of c, most are duplicates of a and b. */
static void inputs_make(void)
{
    static const struct {
        const char *name;
        uint64_t lines, different;
    } inputs[] = {{"a.jsonl", 38, 20}, {"b.jsonl", 9, 9}, {"c.jsonl", 20, 12}};
    for (size_t i = 0; i < 3; i++) {
        char text[4096] = "";
        size_t used = 0;
        for (uint64_t k = 0; k < inputs[i].lines; k++)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "{\"text\": \"document %02d of seven words %c\"}\n",
                                 (int)(k % inputs[i].different), i == 1 ? 'b' : 'a');
        file_write_text(inputs[i].name, text);
    }
}

static int inputs_setup(void **state)
{
    struct tokmap_error error;
    const char *excluded = "document 03 of";
    (void)setup(state);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadows need more */
    const struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
    assert_int_equal(chdir(folder), 0);
    inputs_make();
    assert_int_equal(ngram_table_new(&ngrams, 3, &error), TOKMAP_OK);
    assert_int_equal(ngram_table_add(ngrams, excluded, strlen(excluded), "excluded.txt", 0, &error), TOKMAP_OK);
    return ngram_table_finish(ngrams, &error);
}

static int inputs_teardown(void **state)
{
    ngram_table_free(ngrams);
    return teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile),         cmocka_unit_test(test_documents),     cmocka_unit_test(test_paths),
        cmocka_unit_test(test_sparse),          cmocka_unit_test(test_sparse_places), cmocka_unit_test(test_drops),
        cmocka_unit_test(test_made_by_another),
    };
    return cmocka_run_group_tests(tests, inputs_setup, inputs_teardown);
}
