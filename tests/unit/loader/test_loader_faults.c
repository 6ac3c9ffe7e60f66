/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * tokmap_loader_*: a fault is reported as a status at the batch where it happened, with what to do. After the fault is
 * removed, the same rows are delivered. Also: no allocation in steady state, and no hang in a child after fork().
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "format/layout.h"
#include "format/shard_mask.h"
#include "platform/os.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

static char folder[512];
static struct made made;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t sizes[] = {20000, 12000};
    scratch_make(folder);
    made_new(&made, folder, "data", 2, 50257, sizes, 2);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    made_free(&made);
    scratch_remove(folder);
    return 0;
}

static struct tokmap_run *make_run(const char *data, enum tokmap_reading reading, uint64_t lookahead)
{
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_run *run;
    struct tokmap_error error;
    char said[1000];
    options.data = data;
    options.seq_len = 100;
    options.lookahead = lookahead;
    options.batch = 4;
    options.seed = 11;
    options.passes = 4;
    options.reading = reading;
    if (simple_run_open(&run, &options, &error))
        fail_msg("%s", tokmap_error_print(&error, said, sizeof said));
    return run;
}

/* ---- arguments ---- */

static void refused(const struct tokmap_run *run, const struct tokmap_loader_options *options,
                    enum tokmap_status status, const char *word)
{
    struct tokmap_loader *loader = (struct tokmap_loader *)&made;
    struct tokmap_error error = {.status = TOKMAP_OK};
    assert_int_equal(tokmap_loader_open(&loader, run, options, &error), status);
    assert_int_equal(error.status, status);
    assert_null(loader);
    if (!strstr(error.message, word))
        fail_msg("\"%s\" lacks \"%s\"", error.message, word);
}

static void wrong_options_are_refused(void **unused)
{
    (void)unused;
    struct tokmap_run *run = make_run(made.name, TOKMAP_READ_AUTO, 0);
    const struct tokmap_loader_options good = {.size = sizeof good, .world = 1, .fields = TOKMAP_INPUTS};
    struct tokmap_loader_options options = good;
    struct tokmap_loader *loader;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    tokmap_loader_close(loader);
    options.rank = 1;
    refused(run, &options, TOKMAP_ERROR_RANGE, "rank is 1; it must be below world, 1");
    options = good;
    options.world = 0;
    refused(run, &options, TOKMAP_ERROR_RANGE, "rank is 0; it must be below world, 0");
    options.world = 5;
    refused(run, &options, TOKMAP_ERROR_RANGE, "there are 5 ranks");
    options = good;
    options.fields = TOKMAP_TARGETS;
    refused(run, &options, TOKMAP_ERROR_RANGE, "lookahead 1");
    options.fields = 1 << 11;
    refused(run, &options, TOKMAP_ERROR_ARGUMENT, "0x800");
    options = good;
    options.threads = 2;
    refused(run, &options, TOKMAP_ERROR_ARGUMENT, "threads is 2");
    options = good;
    options.ring_bytes = 100;
    refused(run, &options, TOKMAP_ERROR_LIMIT, "ring_bytes is 100");
    options = good;
    options.read_ahead = 1u << 20;
    refused(run, &options, TOKMAP_ERROR_ARGUMENT, "read_ahead");
    options = good;
    options.size = sizeof options + 8;
    refused(run, &options, TOKMAP_ERROR_ARGUMENT, "size");
    options = good;
    options.resume = "tokmap1 nonsense";
    refused(run, &options, TOKMAP_ERROR_CURSOR, "");
    refused(NULL, &good, TOKMAP_ERROR_ARGUMENT, "run");
    refused(run, NULL, TOKMAP_ERROR_RANGE, "lookahead"); /* the default fields include targets */
    assert_int_equal(tokmap_loader_open(NULL, run, &good, NULL), TOKMAP_ERROR_ARGUMENT);
    tokmap_run_close(run);
}

static void a_cursor_of_another_past_is_refused(void **unused)
{
    (void)unused;
    struct tokmap_run *run = make_run(made.name, TOKMAP_READ_AUTO, 1),
                      *other = make_run(made.name, TOKMAP_READ_AUTO, 2);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_cursor cursor;
    char text[TOKMAP_CURSOR_TEXT];
    assert_int_equal(tokmap_run_cursor(run, 5, &cursor, NULL), TOKMAP_OK);
    tokmap_cursor_print(&cursor, text);
    options.resume = text;
    refused(other, &options, TOKMAP_ERROR_PAST, "geometry");
    tokmap_run_close(other);
    tokmap_run_close(run);
}

static void wrong_outputs_are_refused_and_lose_nothing(void **unused)
{
    (void)unused;
    struct tokmap_run *run = make_run(made.name, TOKMAP_READ_AUTO, 1);
    static int32_t inputs[400], targets[400];
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error;
        options.threads = threads;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        struct tokmap_out out = TOKMAP_OUT_INIT;
        out.inputs = inputs;
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "targets"));
        out.targets = targets;
        out.type = (enum tokmap_id_type)7;
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
        out.type = TOKMAP_ID_I32;
        assert_int_equal(tokmap_loader_next(loader, &out, &out, &batch, &error), TOKMAP_ERROR_ARGUMENT);
        out.size = 1000;
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
        out.size = sizeof out;
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, NULL, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(tokmap_loader_next(NULL, &out, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_OK);
        assert_int_equal(batch.step, 0);
        assert_int_equal(inputs[0], made_token(&made, batch.places[0].first_token));
        tokmap_loader_close(loader);
    }
    assert_int_equal(tokmap_loader_rows(NULL), 0);
    assert_int_equal(tokmap_loader_calls_per_step(NULL), 0);
    tokmap_run_close(run);
}

static void ids_that_do_not_fit_32_bits_are_refused(void **unused)
{
    (void)unused;
    const uint64_t size[] = {5000};
    struct made huge;
    made_new(&huge, folder, "huge", 4, ((uint64_t)1 << 31) + 1, size, 1);
    struct tokmap_run *run = make_run(huge.name, TOKMAP_READ_AUTO, 1);
    const struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    static int64_t inputs[400], targets[400];
    struct tokmap_out out = {.size = sizeof out, .type = TOKMAP_ID_I32, .inputs = inputs, .targets = targets};
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "set it to int64"));
    assert_string_equal(error.field, "type");
    out.type = TOKMAP_ID_I64;
    assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, NULL), TOKMAP_OK);
    assert_int_equal(inputs[7], batch.places[0].first_token + 7);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
    made_free(&huge);
}

/* ---- faults of files ---- */

/* Sets the ends of all documents in an index to 0, except the first. */
static void damage_documents(const struct made *of, uint64_t documents)
{
    char path[700];
    int fd;
    size_t got;
    struct index_header header;
    struct index_entry entry;
    (void)snprintf(path, sizeof path, "%.*s.tmx", (int)(strlen(of->bin[0]) - 4), of->bin[0]);
    assert_int_equal(os_open(path, OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pread(fd, &header, sizeof header, 0, &got), 0);
    for (uint32_t i = 0; i < header.sections; i++) {
        assert_int_equal(os_pread(fd, &entry, sizeof entry, header.table_offset + i * sizeof entry, &got), 0);
        for (uint64_t document = 1; entry.type == SECTION_DOCUMENTS && document < documents; document++)
            assert_int_equal(os_pwrite(fd, "\0\0\0", 4, entry.offset + document * 4), 0);
    }
    os_close(fd);
}

/* A damage that only concerns position ids is reported only to loaders that deliver them. */
static void a_damaged_index_is_a_status(void **unused)
{
    (void)unused;
    const uint64_t size[] = {5000};
    struct made damaged;
    struct tokmap_dataset *dataset;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    made_new(&damaged, folder, "damaged", 2, 50257, size, 1);
    assert_int_equal(tokmap_dataset_open(&dataset, damaged.name, NULL, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_dataset_info(dataset, &info), TOKMAP_OK);
    tokmap_dataset_close(dataset);
    damage_documents(&damaged, info.documents);
    struct tokmap_run *run = make_run(damaged.name, TOKMAP_READ_AUTO, 1);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    for (options.threads = 0; options.threads < 2; options.threads++)
        for (int positions = 0; positions < 2; positions++) {
            struct tokmap_loader *loader;
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            struct tokmap_error error = {.status = TOKMAP_OK};
            options.fields = positions ? TOKMAP_POSITION_IDS : TOKMAP_INPUTS;
            assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
            enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
            assert_int_equal(status, positions ? TOKMAP_ERROR_CORRUPT : TOKMAP_OK);
            assert_true(!positions || strstr(error.path, ".tmx"));
            tokmap_loader_close(loader);
        }
    tokmap_run_close(run);
    made_free(&damaged);
}

static void restore(const struct made *of, unsigned shard, uint64_t first, uint64_t count)
{
    int fd;
    uint16_t *tokens = malloc(count * 2);
    for (uint64_t i = 0; i < count; i++)
        tokens[i] = (uint16_t)made_token(of, first + i);
    assert_int_equal(os_open(of->bin[shard], OS_WRITE_OPEN, &fd), 0);
    assert_int_equal(os_pwrite(fd, tokens, count * 2, 0), 0);
    os_close(fd);
    free(tokens);
}

static void damage(const struct made *of, bool cut)
{
    int fd;
    uint16_t bad = 60000;
    os_sleep_ns(20000000); /* the clock of file systems, by which a change shows, ticks every few milliseconds */
    assert_int_equal(os_open(of->bin[1], OS_WRITE_OPEN, &fd), 0);
    if (cut)
        assert_int_equal(os_truncate(fd, 10000), 0);
    else
        for (uint64_t at = 10000; at < 24000; at += 100)
            assert_int_equal(os_pwrite(fd, &bad, 2, at), 0);
    os_close(fd);
    os_sleep_ns(2000000); /* batches that begin within a millisecond share a look at changes of files */
}

static bool batch_is_right(const struct tokmap_run *run, const struct tokmap_batch *batch, uint64_t step)
{
    bool fine = batch->step == step && batch->count == 4;
    for (uint64_t row = 0; row < batch->count; row++) {
        struct tokmap_place place;
        assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
        fine = fine && made_row_is(&made, batch->rows[row], place.first_token, 101);
    }
    return fine;
}

/* Returns whether a step shows a damaged token, which are those from `first` on. */
static bool shows(const struct tokmap_run *run, uint64_t step, uint64_t first)
{
    for (uint64_t row = 0; row < 4; row++) {
        struct tokmap_place place;
        assert_int_equal(tokmap_run_locate(run, step, row, &place, NULL), TOKMAP_OK);
        if (place.first_token + 101 > first)
            return true;
    }
    return false;
}

/* The second half of the second shard is damaged while a loader has delivered `before` steps. The loader must deliver
 * all batches before the first that shows the damage, then report the fault again and again, and after the repair
 * deliver the same rows and all that follow. */
static void check_fault(enum tokmap_reading reading, uint32_t threads, bool cut, uint64_t before)
{
    struct tokmap_run *run = make_run(made.name, reading, 1);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    struct tokmap_error error = {.status = TOKMAP_OK};
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    options.threads = threads;
    options.ring_bytes = 5000; /* few slots, so that the producer is never far ahead */
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    uint64_t step = 0, faults = 0;
    for (; step < before; step++)
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
    damage(&made, cut);
    enum tokmap_status expected = cut ? TOKMAP_ERROR_TRUNCATED : TOKMAP_ERROR_CORRUPT;
    for (;; step++) {
        enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        if (status) {
            assert_int_equal(status, expected);
            break;
        }
        assert_true(batch_is_right(run, &batch, step));
    }
    assert_true(shows(run, step, cut ? 20000 : 24900));
    for (; faults < 3; faults++) {
        assert_int_equal(error.status, expected);
        assert_string_equal(error.path, made.bin[1]);
        assert_true(error.offset >= 10000 && error.offset <= 24000);
        assert_int_equal(batch.count, 0);
        error.status = TOKMAP_OK;
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), expected);
    }
    restore(&made, 1, 20000, 12000);
    for (; step < info.steps; step++) {
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_OK);
        assert_true(batch_is_right(run, &batch, step));
    }
    assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, &error), TOKMAP_END);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

static void a_fault_is_reported_where_it_happened_until_it_is_repaired(void **unused)
{
    (void)unused;
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t threads = 0; threads < 2; threads++)
            for (int cut = 0; cut < 2; cut++)
                for (uint64_t before = 0; before < 300; before += 149) /* with no page populated, some, and all */
                    check_fault((enum tokmap_reading)reading, threads, cut, before);
}

static void closing_after_a_fault(void **unused)
{
    (void)unused;
    struct tokmap_run *run = make_run(made.name, TOKMAP_READ_PREAD, 1);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    damage(&made, true);
    for (unsigned turn = 0; turn < 20; turn++) {
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        if (turn % 2)
            while (!tokmap_loader_next(loader, NULL, NULL, &batch, NULL))
                continue;
        tokmap_loader_close(loader);
    }
    restore(&made, 1, 20000, 12000);
    tokmap_run_close(run);
}

/* ---- fork ---- */

static int child_of(struct tokmap_loader *loader, bool usable, uint64_t step, const struct tokmap_run *run)
{
    pid_t child = fork();
    if (!child) {
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_error error;
        enum tokmap_status status = tokmap_loader_next(loader, NULL, NULL, &batch, &error);
        bool fine = usable ? !status && batch_is_right(run, &batch, step)
                           : status == TOKMAP_ERROR_ARGUMENT && strstr(error.message, "fork");
        status = tokmap_loader_rewind(loader, &error);
        fine = fine && (usable ? !status && !tokmap_loader_next(loader, NULL, NULL, &batch, NULL) &&
                                     batch_is_right(run, &batch, 0)
                               : status == TOKMAP_ERROR_ARGUMENT && strstr(error.message, "fork"));
        tokmap_loader_close(loader);
        _exit(fine ? 0 : 1);
    }
    int result = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    return result;
}

static void a_child_never_hangs(void **unused)
{
    (void)unused;
#ifdef __SANITIZE_THREAD__
    print_message("the thread sanitizer does not follow a fork of a program with threads\n");
    skip();
#endif
    struct tokmap_run *run = make_run(made.name, TOKMAP_READ_MAPPED, 1);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    for (options.threads = 0; options.threads < 2; options.threads++) {
        struct tokmap_loader *loader;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        for (uint64_t step = 0; step < 100; step++)
            assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
        assert_int_equal(child_of(loader, !options.threads, 100, run), 0);
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &batch, NULL), TOKMAP_OK);
        assert_true(batch_is_right(run, &batch, 100));
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

/* ---- allocations ---- */

#ifndef SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *old, size_t bytes);

static uint64_t allocations;

static void count_one(void)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
    count_one();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_one();
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    count_one();
    return __libc_realloc(old, bytes);
}
#endif

static void steady_state_allocates_nothing(void **unused)
{
    (void)unused;
#ifdef SANITIZED
    print_message("a sanitizer allocates for itself\n");
    skip();
#else
    static int64_t inputs[400], targets[400], positions[400];
    static char rows[4 * 101 * 2];
    uint64_t before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
    void *volatile some = malloc(10);
    free(some);
    assert_true(__atomic_load_n(&allocations, __ATOMIC_RELAXED) > before); /* the counter works */
    for (int reading = TOKMAP_READ_MAPPED; reading <= TOKMAP_READ_PREAD; reading++)
        for (uint32_t threads = 0; threads < 2; threads++) {
            struct tokmap_run *run = make_run(made.name, (enum tokmap_reading)reading, 1);
            struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
            struct tokmap_out out = {.size = sizeof out,
                                     .type = TOKMAP_ID_I64,
                                     .inputs = inputs,
                                     .targets = targets,
                                     .position_ids = positions,
                                     .rows = rows};
            struct tokmap_loader *loader;
            struct tokmap_batch batch = TOKMAP_BATCH_INIT;
            options.threads = threads;
            options.rows = 3;
            options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_POSITION_IDS | TOKMAP_ROWS;
            assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
            uint64_t calls = 0;
            for (; calls < 10; calls++)
                assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, NULL), TOKMAP_OK);
            before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
            while (!tokmap_loader_next(loader, &out, NULL, &batch, NULL))
                calls++;
            assert_true(calls > 500);
            assert_int_equal(tokmap_loader_rewind(loader, NULL), TOKMAP_OK);
            for (; calls; calls--)
                assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, NULL), TOKMAP_OK);
            assert_int_equal(__atomic_load_n(&allocations, __ATOMIC_RELAXED), before);
            tokmap_loader_close(loader);
            tokmap_run_close(run);
        }
#endif
}

/* The same for a mixture of parts of which some have a mask, with changes of weights, batch, and sequence length. */
static void a_mixture_allocates_nothing(void **unused)
{
    (void)unused;
#ifdef SANITIZED
    print_message("a sanitizer allocates for itself\n");
    skip();
#else
    enum { CELLS = 16 * 60 };
    static int32_t inputs[CELLS], targets[CELLS], counts[CELLS], documents[CELLS], ahead[2 * CELLS], cu[CELLS + 1];
    struct shard_mask_result result;
    struct tokmap_error error;
    char index[700], text[2400];
    snprintf(index, sizeof index, "%.*s.tmx", (int)strlen(made.bin[0]) - 4, made.bin[0]);
    char *bits = calloc(made.tokens, 1);
    size_t length;
    free(file_read(made.bin[0], &length));
    file_write(in_folder(folder, "mask"), bits, length / made.width);
    free(bits);
    assert_int_equal(shard_mask_add(index, in_folder(folder, "mask"), false, &result, &error), TOKMAP_OK);
    snprintf(text, sizeof text,
             "seq_len 40\nlookahead 2\nbatch 12\nseed 2\nsource a \"%s#docs=0..60%%\"\nsource b \"%s\"\n"
             "source c synthetic:vocab=90,tokens=5000,width=4\nphase 0 a 3 b 1 c 1\nphase 60 seq_len 60 batch 16\n"
             "phase 120 a 1 c 2 seq_len 33\nsteps 200\n",
             made.name, made.name);
    for (uint32_t threads = 0; threads < 2; threads++) {
        struct tokmap_run *run;
        struct tokmap_loader *loader;
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        struct tokmap_out out = TOKMAP_OUT_INIT;
        out.inputs = inputs, out.targets = targets, out.loss_mask = counts, out.document_ids = documents;
        out.targets_ahead = ahead, out.cu_seqlens = cu;
        options.threads = threads;
        options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS | TOKMAP_LOSS_MASK | TOKMAP_DOCUMENT_IDS |
                         TOKMAP_TARGETS_AHEAD | TOKMAP_CU_SEQLENS;
        assert_int_equal(tokmap_run_parse(&run, text, NULL, &error), TOKMAP_OK);
        assert_int_equal(tokmap_loader_open(&loader, run, &options, &error), TOKMAP_OK);
        assert_true(tokmap_loader_elements(loader) <= CELLS && tokmap_loader_cu_seqlens(loader) <= CELLS + 1);
        for (int calls = 0; calls < 10; calls++)
            assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, NULL), TOKMAP_OK);
        const uint64_t before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
        while (!tokmap_loader_next(loader, &out, NULL, &batch, NULL))
            ;
        assert_int_equal(batch.step, 0); /* the end */
        assert_int_equal(__atomic_load_n(&allocations, __ATOMIC_RELAXED), before);
        tokmap_loader_close(loader);
        tokmap_run_close(run);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_cursor_of_another_past_is_refused),
        cmocka_unit_test(wrong_outputs_are_refused_and_lose_nothing),
        cmocka_unit_test(ids_that_do_not_fit_32_bits_are_refused),
        cmocka_unit_test(a_damaged_index_is_a_status),
        cmocka_unit_test(a_fault_is_reported_where_it_happened_until_it_is_repaired),
        cmocka_unit_test(closing_after_a_fault),
        cmocka_unit_test(a_child_never_hangs),
        cmocka_unit_test(steady_state_allocates_nothing),
        cmocka_unit_test(a_mixture_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
