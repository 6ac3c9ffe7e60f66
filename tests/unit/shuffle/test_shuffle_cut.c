/* SPDX-License-Identifier: MIT */
/* test_shuffle_cut.c - the cut of sorted units into shards against a sort of all documents, for random units, sets, and
 * sizes of chunks and shards; more files than may be open; and files that are damaged, or of other units. A cut that
 * ends early is continued: nothing there depends on time, since with checkpoint_ns 1 each look makes a part. */
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
#include "common/hash.h"
#include "pack/unit_record.h"
#include "shuffle/shuffle_cut.h"
#include "support/scratch_folder.h"

#define KEY UINT64_C(0x1234567890abcdef)
#define FILES_MANY 300
#define INPUTS_EACH 3 /* of a unit */

/* A document, as the model has it. */
struct model {
    struct shuffle_place place;
    uint32_t set;
    uint64_t tokens, bytes; /* bytes: of its record */
};

static struct model documents[20000];
static uint64_t document_count;
static struct unit list[FILES_MANY];
static struct work_units inputs = {.list = list};
static struct split split;
static struct pack_shuffle shuffled;
static struct pack_options pack = {.shuffle = &shuffled};
static struct tokmap_error error;

static int cut_setup(void **state)
{
    return setup(state) || chdir(folder);
}

static int cut_teardown(void **state)
{
    return chdir("/") || teardown(state);
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
    struct unit_result result = {.pack = {.tokens = 0}};
    struct histogram lengths;
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
        result.pack.sets[sorted.chunks[i].set].documents += sorted.chunks[i].keys;
        result.pack.sets[sorted.chunks[i].set].tokens += sorted.chunks[i].tokens;
    }
    const struct stage_id id = unit_record_id(".", KEY, number);
    assert_true(histogram_new(&lengths));
    assert_int_equal(unit_record_write(&id, &result, &lengths, &sorted, NULL, false, &error), TOKMAP_OK);
    histogram_free(&lengths);
    shuffle_free(shuffle);
}

static enum tokmap_status units_read(struct sorted_units *units)
{
    const struct stage_id first = unit_record_id(".", KEY, 0);
    return sorted_units_read(units, &inputs, shuffled.seed, pack.split ? split.count : 1, &first, &error);
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
    assert_int_equal(units_read(&units), TOKMAP_OK);
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
    struct unit_result record;
    enum tokmap_status status = units_read(&units);
    for (uint64_t i = 0; i < inputs.count && !status; i++) {
        const struct stage_id id = unit_record_id(".", KEY, i);
        struct histogram lengths;
        assert_true(histogram_new(&lengths));
        status = unit_record_read(&id, &record, &lengths, NULL, &error);
        histogram_free(&lengths);
    }
    if (!status) {
        const struct stage_id id = shuffle_cut_id(&units, KEY);
        if (cut)
            stage_remove(&id); /* a file that is there is not made again */
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
    file_harm("packed-000001", 0, 3, false);
    file_harm("cuts-000000", 0, 11, false);
    assert_int_equal(units_read(&units), TOKMAP_OK);
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

/* ---- a cut that ends early ---- */

#define CUTS "cuts-000000"
#define HEADER 64 /* bytes, as stage_file.c says */
#define ENTRY 32
#define LOOK 1024 /* documents */

static struct sorted_units sorted;
static struct shuffle_cut_options cutting;
static uint64_t looks, looks_most = UINT64_MAX; /* questions whether to stop */
static uint64_t first_done, last_done;          /* documents, as the cut says */
static uint8_t *wanted;                         /* the undisturbed file */
static size_t wanted_bytes;

static bool stop(void *unused)
{
    (void)unused;
    return ++looks >= looks_most;
}

static void progress(void *unused, uint64_t done, uint64_t all)
{
    (void)unused;
    assert_true(done <= all && all == document_count);
    first_done = min64(first_done, done);
    last_done = done;
}

static struct stage_id cuts_id(void)
{
    return shuffle_cut_id(&sorted, KEY);
}

/* Cuts, and ends at a question whether to stop. */
static enum tokmap_status cut_run(uint64_t most)
{
    const struct stage_id id = cuts_id();
    looks = last_done = 0;
    first_done = UINT64_MAX;
    looks_most = most;
    memset(&error, 0, sizeof error);
    const enum tokmap_status status = shuffle_cut_run(&cutting, &id, &error);
    looks_most = UINT64_MAX;
    return status;
}

static uint64_t parts_count(void)
{
    char part[64];
    uint64_t count = 0;
    do
        (void)snprintf(part, sizeof part, CUTS ".part-%06d", (int)count);
    while (file_exists(part) && ++count);
    return count;
}

/* Reads the file, without the number that is another one each time, and its hashes. */
static uint8_t *cuts_read(size_t *bytes)
{
    uint8_t *file = file_read(CUTS, bytes);
    memset(file + *bytes - 8, 0, 8);
    memset(file + HEADER + CUTS_TOTALS * ENTRY + 16, 0, 16);
    return file;
}

/* Whether the file is the undisturbed one. */
static bool cuts_equal(void)
{
    size_t bytes;
    uint8_t *file = cuts_read(&bytes);
    const bool equal = bytes == wanted_bytes && !memcmp(file, wanted, bytes);
    free(file);
    return equal;
}

/* The same. The file is removed, and all else is gone. */
static bool cuts_same(void)
{
    const bool equal = cuts_equal();
    assert_int_equal(unlink(CUTS), 0);
    assert_false(file_exists(CUTS ".partial") || file_exists(CUTS ".part-000000") || file_exists(CUTS ".part-000001") ||
                 file_exists(CUTS ".part-000002"));
    return equal;
}

/* Makes units of documents, and the undisturbed cut. */
static void sorted_make(uint64_t count, uint64_t each, uint32_t sets, uint64_t shard_tokens, uint64_t chunk_bytes)
{
    uint64_t random = count + each;
    document_count = 0;
    shuffled.seed = each;
    split.count = sets;
    pack.split = sets > 1 ? &split : NULL;
    inputs.count = count;
    for (uint64_t i = 0; i < count; i++) {
        list[i] = (struct unit){.first = i * INPUTS_EACH, .count = INPUTS_EACH};
        unit_make(i, each, chunk_bytes, &random);
    }
    assert_int_equal(units_read(&sorted), TOKMAP_OK);
    cutting = (struct shuffle_cut_options){
        .units = &sorted, .shard_tokens = shard_tokens, .memory = 4096, .stop = stop, .progress = progress};
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    wanted = cuts_read(&wanted_bytes);
    assert_true(cuts_same());
    cutting.checkpoint_ns = 1;
}

static void sorted_free(void)
{
    free(wanted);
    sorted_units_free(&sorted);
}

static void byte_invert(const char *name, size_t at)
{
    size_t bytes;
    uint8_t *file = file_read(name, &bytes);
    assert_true(at < bytes);
    file[at] ^= 0xff;
    file_write(name, file, bytes);
    free(file);
}

/* Each attempt cuts some more documents, and none again; then each copies some more parts. */
static void ends_check(uint64_t most)
{
    uint64_t ends = 0, copies = 0, last = 0, still = 0;
    enum tokmap_status status;
    while ((status = cut_run(most)) == TOKMAP_ERROR_INTERRUPTED) {
        assert_false(file_exists(CUTS));
        if (first_done == UINT64_MAX) { /* all were cut before */
            copies++;
            assert_true(file_exists(CUTS ".partial") && copies < 200);
            continue;
        }
        assert_int_equal(first_done, last);
        assert_true(last_done >= last);
        still += last_done == last; /* once, when the last documents are cut, and the second question is of the copy */
        last = last_done;
        ends++;
    }
    if (status)
        fail_msg("status %d after %d ends: %s", (int)status, (int)ends, error.message);
    assert_true(ends >= document_count / LOOK / (most - 1) && copies > 0 && still <= 1);
    assert_int_equal(parts_count(), 0);
    assert_true(cuts_same());
}

static void test_ends(void **state)
{
    sorted_make(5, 2500, 1, 700, 4096); /* hundreds of chunks */
    ends_check(2);
    ends_check(4);
    sorted_free();
    sorted_make(4, 2300, 3, 90000, 1 << 20);
    ends_check(2);
    sorted_free();
}

/* What was cut before the last part is not read again. */
static void test_not_again(void **state)
{
    uint64_t chunk = 0;
    sorted_make(4, 2000, 1, 700, 1 << 20);
    while (chunk < sorted.chunk_count - 1 && (sorted.chunks[chunk].file || sorted.chunks[chunk].keys < 500))
        chunk++;
    const char *const name = "unit-000000.work/chunks-0";
    assert_true(!sorted.chunks[chunk].file && sorted.chunks[chunk].keys >= 500);
    assert_int_equal(cut_run(7), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(parts_count(), 6);
    byte_invert(name, sorted.chunks[chunk].end + 40); /* the second key */
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(first_done, 6 * LOOK);
    assert_true(cuts_same());

    /* It is found by those who read it, and by those who begin again because of another error. */
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_ERROR_CORRUPT);
    assert_int_equal(parts_count(), 0);
    byte_invert(name, sorted.chunks[chunk].end + 40);
    assert_int_equal(cut_run(7), TOKMAP_ERROR_INTERRUPTED);
    byte_invert(name, sorted.chunks[chunk].end + 40);
    byte_invert(name, sorted.chunks[chunk].end + sorted.chunks[chunk].keys * sizeof(struct shuffle_key) - 1);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_ERROR_CORRUPT);
    assert_non_null(strstr(error.path, name));
    assert_int_equal(first_done, 0);
    assert_int_equal(parts_count(), 0);
    byte_invert(name, sorted.chunks[chunk].end + 40);
    byte_invert(name, sorted.chunks[chunk].end + sorted.chunks[chunk].keys * sizeof(struct shuffle_key) - 1);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_true(cuts_same());
    sorted_free();
}

/* Without checkpoints, only the size of rows makes parts, which bound the memory. */
static void test_sizes(void **state)
{
    sorted_make(3, 3000, 2, 1, 4096);
    cutting.checkpoint_ns = 0;
    assert_true(wanted_bytes > (size_t)10 << 20);
    assert_int_equal(cut_run(3), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(parts_count(), 0);
    assert_int_equal(cut_run(9), TOKMAP_ERROR_INTERRUPTED);
    assert_true(parts_count() > 0);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_true(first_done > 0);
    assert_true(cuts_same());
    sorted_free();
}

/* Only one process cuts. */
static void test_busy(void **state)
{
    struct stage_writer *other;
    sorted_make(2, 1500, 1, 700, 4096);
    const struct stage_id id = cuts_id();
    assert_int_equal(cut_run(3), TOKMAP_ERROR_INTERRUPTED);
    const uint64_t parts = parts_count();
    assert_int_equal(stage_writer_reopen(&other, &id, &error), TOKMAP_OK);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_ERROR_BUSY);
    assert_int_equal(first_done, UINT64_MAX);
    assert_true(parts == 2 && parts_count() == parts);
    stage_writer_free(other);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(first_done, parts * LOOK);
    struct stat made, now; /* One that has seen no file before cuts no document when it is there by now. */
    assert_int_equal(stat(CUTS, &made), 0);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(first_done, UINT64_MAX);
    assert_int_equal(stat(CUTS, &now), 0);
    assert_true(now.st_ino == made.st_ino);
    assert_true(cuts_same());
    sorted_free();
}

/* ---- parts that are useless ---- */

/* The work after three parts. */
static void begun_make(void)
{
    assert_int_equal(cut_run(4), TOKMAP_ERROR_INTERRUPTED);
    assert_int_equal(parts_count(), 3);
    scratch_remove("begun");
    assert_int_equal(mkdir("begun", 0777), 0);
    for (int i = 0; i < 3; i++) {
        char part[64], to[80];
        (void)snprintf(part, sizeof part, CUTS ".part-%06d", i);
        (void)snprintf(to, sizeof to, "begun/%s", part);
        file_copy(part, to);
    }
}

static void begun_take(void)
{
    for (int i = 0; i < 3; i++) {
        char part[64], from[80];
        (void)snprintf(part, sizeof part, CUTS ".part-%06d", i);
        (void)snprintf(from, sizeof from, "begun/%s", part);
        (void)unlink(part);
        file_copy(from, part);
    }
}

/* The cut begins again. */
static void again_check(const char *what, size_t at)
{
    const enum tokmap_status status = cut_run(UINT64_MAX);
    if (status || first_done)
        fail_msg("%s, byte %d: status %d, first %d: %s", what, (int)at, (int)status, (int)first_done, error.message);
    if (!cuts_same())
        fail_msg("%s, byte %d: other cuts", what, (int)at);
}

static void test_useless_parts(void **state)
{
    sorted_make(3, 1500, 2, 700, 4096);
    begun_make();
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(first_done, 3 * LOOK);
    assert_true(cuts_same());
    for (int i = 0; i < 3; i++) {
        char part[64];
        struct stat found;
        (void)snprintf(part, sizeof part, CUTS ".part-%06d", i);
        begun_take();
        assert_int_equal(stat(part, &found), 0);
        const size_t bytes = (size_t)found.st_size;
        for (size_t at = i; at < bytes; at += bytes / 12) {
            begun_take();
            byte_invert(part, at);
            /* Rows are read when they are copied. */
            const bool late = at >= HEADER + (SPLIT_SETS_MOST + 2) * ENTRY;
            const enum tokmap_status status = late ? cut_run(UINT64_MAX) : TOKMAP_OK;
            if (status)
                fail_msg("%s, byte %d: status %d: %s", part, (int)at, (int)status, error.message);
            if (late && !cuts_same())
                fail_msg("%s, byte %d: other cuts", part, (int)at);
            if (!late)
                again_check(part, at);
        }
        begun_take();
        assert_int_equal(truncate(part, (off_t)bytes / 2), 0);
        again_check(part, 0);
        begun_take();
        assert_int_equal(unlink(part), 0);
        assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK); /* from the part before */
        assert_int_equal(first_done, i * LOOK);
        assert_true(cuts_same());
    }
    /* A part of other work, or of other units. */
    begun_take();
    const struct stage_id id = shuffle_cut_id(&sorted, KEY + 1);
    first_done = UINT64_MAX;
    assert_int_equal(shuffle_cut_run(&cutting, &id, &error), TOKMAP_OK);
    assert_int_equal(first_done, 0);
    assert_int_equal(unlink(CUTS), 0);
    assert_int_equal(parts_count(), 0);
    sorted_free();
    begun_take();
    uint64_t random = 3;
    document_count -= 1500;
    unit_make(2, 1500, 1 << 20, &random);
    assert_int_equal(units_read(&sorted), TOKMAP_OK);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(first_done, 0);
    assert_int_equal(unlink(CUTS), 0);
    assert_int_equal(parts_count(), 0);
    sorted_units_free(&sorted);
}

/* What was copied, and damaged since then, is copied again. */
static void test_copied(void **state)
{
    size_t bytes;
    sorted_make(3, 1500, 2, 700, 4096);
    const uint64_t all = document_count / LOOK + 1; /* looks */
    assert_int_equal(cut_run(all + 3), TOKMAP_ERROR_INTERRUPTED);
    assert_true(file_exists(CUTS ".partial"));
    uint8_t *partial = file_read(CUTS ".partial", &bytes);
    assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
    assert_int_equal(first_done, UINT64_MAX);
    assert_true(cuts_same());
    for (size_t at = HEADER; at < bytes; at += bytes / 20) {
        assert_int_equal(cut_run(all + 3), TOKMAP_ERROR_INTERRUPTED);
        byte_invert(CUTS ".partial", at);
        assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
        assert_true(cuts_same());
        assert_int_equal(cut_run(all + 3), TOKMAP_ERROR_INTERRUPTED);
        assert_int_equal(truncate(CUTS ".partial", (off_t)at), 0);
        assert_int_equal(cut_run(UINT64_MAX), TOKMAP_OK);
        assert_true(cuts_same());
    }
    free(partial);
    sorted_free();
}

/* Writes a number into the last section but `back` of the last part, and makes all hashes right. */
static bool part_forge(uint64_t back, size_t at, uint64_t number)
{
    const char *const name = CUTS ".part-000002";
    size_t bytes;
    uint8_t *file = file_read(name, &bytes);
    const uint64_t sections = load64(file + 32), key = load64(file + 16);
    uint8_t *entry = file + HEADER + (sections - 1 - back) * ENTRY;
    const bool fits = at + 8 <= load64(entry + 8);
    if (fits) {
        store64(file + load64(entry) + at, number);
        store64(entry + 16, hash64(file + load64(entry), (size_t)load64(entry + 8)));
        store64(entry + 24, hash64_seeded(entry, 24, key + sections - 1 - back));
        file_write(name, file, bytes);
    }
    free(file);
    return fits;
}

/* Reads all cuts, whatever they are. */
static enum tokmap_status cuts_look(void)
{
    struct shuffle_cuts cuts;
    const struct stage_id id = cuts_id();
    enum tokmap_status status = shuffle_cuts_read(&cuts, &sorted, &id, &error);
    for (uint32_t set = 0; set < split.count && !status; set++)
        for (uint64_t k = 0; k < cuts.sets[set].shards && !status; k++) {
            struct shard_cut one = {0};
            status = shuffle_cut_read(&one, &sorted, &id, set, k, &error);
            free(one.begins);
            free(one.ends);
        }
    return status;
}

/* Numbers of the last part that are wrong, with hashes that are right: the cut begins again. Nobody knows better how
 * much the open shard has, or how many documents are too long; then the shards are others, and the merge says it. */
static void test_forged_parts(void **state)
{
    static const uint64_t numbers[] = {0, 1, 3, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    uint64_t again = 0, others = 0, tries = 0;
    sorted_make(3, 1500, 2, 700, 4096);
    begun_make();
    for (uint64_t back = 0; back < 2; back++)
        for (size_t at = back ? 0 : 8;; at += back ? at > 200 ? 312 : 8 : at < 112 || at >= 528 ? 8 : 104) {
            begun_take();
            if (!part_forge(back, at, 5))
                break;
            for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i += back ? 3 : 1) {
                begun_take();
                assert_true(part_forge(back, at, numbers[i]));
                const enum tokmap_status status = cut_run(UINT64_MAX);
                if (status)
                    fail_msg("%d, %d: %d: %s", (int)back, (int)at, (int)status, error.message);
                tries++;
                again += !first_done;
                const bool equal = cuts_equal();
                assert_true(equal || (!back && cuts_look() == TOKMAP_OK));
                others += !equal;
                assert_int_equal(cuts_same(), equal);
            }
        }
    assert_true(tries > 150 && again > 100 && others < 40);
    sorted_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),        cmocka_unit_test(test_many_files),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_sorted_again), cmocka_unit_test(test_ends),         cmocka_unit_test(test_not_again),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_busy),         cmocka_unit_test(test_useless_parts),
        cmocka_unit_test(test_copied),       cmocka_unit_test(test_forged_parts),
    };
    return cmocka_run_group_tests(tests, cut_setup, cut_teardown);
}
