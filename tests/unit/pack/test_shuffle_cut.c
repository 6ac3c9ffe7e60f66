/* test_shuffle_cut.c - the cut of sorted units into shards against a sort of all documents, for random units, sets, and
 * sizes of chunks and shards; more files than may be open; and files that are damaged, or of other units. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "pack/shuffle_cut.h"
#include "support/scratch.h"

#define KEY UINT64_C(0x1234567890abcdef)
#define FILES_MANY 300
#define INPUTS_EACH 3 /* of a unit */

/* A document, as the model has it. */
struct model {
    struct shuffle_place place;
    uint32_t set;
    uint64_t tokens, bytes; /* bytes: of its record */
};

static char folder[512];
static struct model documents[20000];
static uint64_t document_count;
static struct unit list[FILES_MANY];
static struct pack_units inputs = {.list = list};
static struct split split;
static struct pack_shuffle shuffled;
static struct pack_options pack = {.shuffle = &shuffled};
static struct tokmap_error error;

static int setup(void **state)
{
    scratch_make(folder);
    return chdir(folder);
}

static int teardown(void **state)
{
    scratch_remove(folder);
    return chdir("/");
}

static enum tokmap_status place(void *owner, const char **into, struct tokmap_error *unused)
{
    *into = owner;
    return TOKMAP_OK;
}

/* Sorts documents of random lengths as unit `number`. */
static void unit_make(uint64_t number, uint64_t count, uint64_t chunk_bytes, uint64_t *random)
{
    static const char text[20000];
    char into[64];
    struct shuffle *shuffle;
    struct shuffle_sorted sorted;
    struct pack_result result = {.tokens = 0};
    const uint64_t nothing = 0;
    (void)snprintf(into, sizeof into, "unit-%06u.work", (unsigned)number);
    (void)mkdir(into, 0700);
    const struct shuffle_options options = {.seed = shuffled.seed,
                                            .width = 2,
                                            .sets = split.count,
                                            .keyed = true,
                                            .own_thread = random_below(random, 2),
                                            .first_input = number * INPUTS_EACH,
                                            .folder = ".",
                                            .chunk_bytes = chunk_bytes,
                                            .place = place,
                                            .owner = into};
    assert_int_equal(shuffle_open(&shuffle, &options, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < count; i++) {
        const struct corpus_document from = {.position = i * 10, .record = i};
        uint64_t tokens = random_below(random, random_below(random, 20) ? 40 : 4000);
        struct model *made = &documents[document_count++];
        struct document_run run = {.path = "a",
                                   .input = i % INPUTS_EACH,
                                   .tokens = text,
                                   .count = tokens,
                                   .ends = &tokens,
                                   .documents = 1,
                                   .from = &from,
                                   .text_bytes = &nothing};
        *made = (struct model){.place = shuffle_place_of(shuffled.seed, number * INPUTS_EACH + run.input, i * 10),
                               .set = (uint32_t)random_below(random, split.count),
                               .tokens = tokens};
        assert_int_equal(shuffle_add(shuffle, made->set, &run, &error), TOKMAP_OK);
    }
    assert_int_equal(shuffle_sort(shuffle, false, &sorted, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < sorted.count; i++) {
        result.sets[sorted.chunks[i].set].documents += sorted.chunks[i].keys;
        result.sets[sorted.chunks[i].set].tokens += sorted.chunks[i].tokens;
    }
    const struct stage_id id = stage_sorted_id(".", KEY, number);
    assert_int_equal(sorted_unit_write(&id, &sorted, &result, false, &error), TOKMAP_OK);
    shuffle_free(shuffle);
}

static int model_compare(const void *a, const void *b)
{
    const struct model *first = a, *second = b;
    if (first->set != second->set)
        return first->set < second->set ? -1 : 1;
    return shuffle_precedes(&first->place, &second->place) ? -1 : shuffle_precedes(&second->place, &first->place);
}

/* Reads the cut of a shard, and counts the records that it has: in each chunk they follow each other. */
static void shard_check(struct sorted_units *units, const struct stage_id *id, uint32_t set, uint64_t shard,
                        uint64_t wanted_documents, uint64_t wanted_tokens)
{
    struct shard_cut cut = {0};
    uint64_t found = 0, tokens = 0;
    assert_int_equal(shuffle_cut_read(&cut, units, id, set, shard, &error), TOKMAP_OK);
    assert_int_equal(cut.documents, wanted_documents);
    assert_int_equal(cut.tokens, wanted_tokens);
    for (uint64_t i = 0; i < units->set_begins[set + 1] - units->set_begins[set]; i++) {
        int fd;
        uint64_t at = cut.begins[i];
        const struct shuffle_chunk *chunk = &units->chunks[units->set_begins[set] + i];
        assert_int_equal(sorted_units_open(units, chunk->file, &fd, &error), TOKMAP_OK);
        while (at < cut.ends[i]) {
            struct shuffle_head head;
            assert_int_equal(pread(fd, &head, sizeof head, (off_t)at), sizeof head);
            assert_int_equal(head.set & ~SHUFFLE_LONG, set);
            at += head.bytes;
            tokens += head.tokens;
            found++;
        }
        assert_int_equal(at, cut.ends[i]);
    }
    assert_int_equal(found, wanted_documents);
    assert_int_equal(tokens, wanted_tokens);
    free(cut.begins);
    free(cut.ends);
}

/* Makes `count` units, cuts them, and compares all shards with the model. */
static void cut_check(uint64_t count, uint64_t each, uint32_t sets, uint64_t shard_tokens, uint64_t memory,
                      uint64_t seed)
{
    struct sorted_units units;
    struct shuffle_cuts cuts;
    uint64_t random = seed;
    document_count = 0;
    shuffled.seed = seed;
    split.count = sets;
    pack.split = sets > 1 ? &split : NULL;
    inputs.count = count;
    for (uint64_t i = 0; i < count; i++) {
        list[i] = (struct unit){.first = i * INPUTS_EACH, .count = INPUTS_EACH};
        unit_make(i, random_below(&random, each + 1), memory, &random);
    }
    qsort(documents, document_count, sizeof *documents, model_compare);
    assert_int_equal(sorted_units_read(&units, &pack, &inputs, ".", KEY, &error), TOKMAP_OK);
    const struct stage_id id = shuffle_cut_id(&units, KEY);
    const struct shuffle_cut_options options = {.units = &units, .shard_tokens = shard_tokens, .memory = memory};
    assert_int_equal(shuffle_cut_run(&options, &id, &error), TOKMAP_OK);
    assert_int_equal(shuffle_cuts_read(&cuts, &units, &id, &error), TOKMAP_OK);
    uint64_t at = 0;
    for (uint32_t set = 0; set < sets; set++) {
        uint64_t shard = 0, held = 0, tokens = 0, all = 0, oversized = 0;
        for (; at < document_count && documents[at].set == set; at++) {
            const uint64_t own = documents[at].tokens;
            if (held && tokens + own > shard_tokens) {
                shard_check(&units, &id, set, shard++, held, tokens);
                held = tokens = 0;
            }
            held++;
            all++;
            tokens += own;
            oversized += own > shard_tokens;
        }
        shard_check(&units, &id, set, shard++, held, tokens);
        assert_int_equal(cuts.sets[set].shards, shard);
        assert_int_equal(cuts.sets[set].documents, all);
        assert_int_equal(cuts.sets[set].oversized, oversized);
        struct shard_cut none = {0};
        assert_int_equal(shuffle_cut_read(&none, &units, &id, set, shard, &error), TOKMAP_ERROR_CORRUPT);
        free(none.begins);
        free(none.ends);
    }
    assert_int_equal(at, document_count);
    sorted_units_free(&units);
}

static void test_model(void **state)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        uint64_t random = seed;
        const uint64_t units = 1 + random_below(&random, 6), each = random_below(&random, 2) ? 60 : 700;
        const uint32_t sets = 1 + (uint32_t)random_below(&random, 4);
        const uint64_t most = random_below(&random, 3) ? 1 + random_below(&random, 3000) : 1000000;
        cut_check(units, each, sets, most, random_below(&random, 2) ? 4096 : (uint64_t)1 << 20, seed);
    }
    cut_check(3, 0, 2, 10, 4096, 77); /* no document at all */
}

/* 300 files, of which a process may open 60. */
static void test_many_files(void **state)
{
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 60;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    cut_check(FILES_MANY, 10, 2, 500, 4096, 5);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- damage ---- */

/* Reads units and cuts them again, or reads the cuts. Returns the first status. */
static enum tokmap_status stages_read(bool cut)
{
    struct sorted_units units;
    struct shuffle_cuts cuts;
    enum tokmap_status status = sorted_units_read(&units, &pack, &inputs, ".", KEY, &error);
    if (!status) {
        const struct stage_id id = shuffle_cut_id(&units, KEY);
        const struct shuffle_cut_options options = {.units = &units, .shard_tokens = 500, .memory = 4096};
        status = cut ? shuffle_cut_run(&options, &id, &error) : shuffle_cuts_read(&cuts, &units, &id, &error);
        for (uint32_t set = 0; set < split.count && !status && !cut; set++)
            for (uint64_t k = 0; k < cuts.sets[set].shards && !status; k++) {
                struct shard_cut one = {0};
                status = shuffle_cut_read(&one, &units, &id, set, k, &error);
                free(one.begins);
                free(one.ends);
            }
    }
    sorted_units_free(&units);
    return status;
}

/* Changes each byte of a file, or each `stride`-th one, and cuts the file at many places: all must be found. */
static void file_harm(const char *path, uint64_t from, uint64_t stride, bool cut)
{
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    uint8_t *bytes = malloc((size_t)found.st_size);
    FILE *file = fopen(path, "r+b");
    assert_true(file && bytes && fread(bytes, 1, (size_t)found.st_size, file) == (size_t)found.st_size);
    setbuf(file, NULL);
    for (uint64_t at = from; at < (uint64_t)found.st_size; at += stride) {
        assert_int_equal(pwrite(fileno(file), &(uint8_t){bytes[at] ^ 0x11}, 1, (off_t)at), 1);
        const enum tokmap_status status = stages_read(cut);
        if (status != TOKMAP_ERROR_CORRUPT)
            fail_msg("byte %u of %s: status %d", (unsigned)at, path, status);
        assert_non_null(strstr(error.message, "run all tasks again"));
        assert_int_equal(pwrite(fileno(file), bytes + at, 1, (off_t)at), 1);
    }
    for (uint64_t size = from; size < (uint64_t)found.st_size; size += 7 * stride) {
        assert_int_equal(ftruncate(fileno(file), (off_t)size), 0);
        assert_int_equal(stages_read(cut), TOKMAP_ERROR_CORRUPT);
        assert_int_equal(pwrite(fileno(file), bytes, (size_t)found.st_size, 0), found.st_size);
    }
    assert_int_equal(stages_read(cut), TOKMAP_OK);
    fclose(file);
    free(bytes);
}

static void test_damage(void **state)
{
    struct sorted_units units;
    struct shuffle_chunk last = {0};
    cut_check(3, 60, 2, 500, 4096, 9);
    assert_int_equal(stages_read(false), TOKMAP_OK);
    file_harm("sorted-000001", 0, 3, false);
    file_harm("cuts-000000", 0, 11, false);
    assert_int_equal(sorted_units_read(&units, &pack, &inputs, ".", KEY, &error), TOKMAP_OK);
    for (uint64_t i = 0; i < units.chunk_count; i++)
        if (sorted_units_of(&units, units.chunks[i].file) == 1 && units.chunks[i].end > last.end)
            last = units.chunks[i];
    sorted_units_free(&units);
    assert_true(last.keys);
    file_harm("unit-000001.work/chunks-0", last.end, 1, true);
}

/* A unit that was sorted again may have other chunks: the old cuts are refused, and another cut is the same. */
static void test_sorted_again(void **state)
{
    uint64_t random = 3;
    cut_check(2, 300, 1, 500, 4096, 11);
    assert_int_equal(stages_read(false), TOKMAP_OK);
    unit_make(1, 40, (uint64_t)1 << 20, &random);
    assert_int_equal(stages_read(false), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(stages_read(true), TOKMAP_OK);
    assert_int_equal(stages_read(false), TOKMAP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_sorted_again),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
