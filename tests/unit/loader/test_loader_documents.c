/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * The fields of a loader that depend on documents: document ids, masks, masked targets, cu_seqlens, and the capacity of
 * cu_seqlens. support/made.h knows at which tokens documents start, and so what every element must be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/index_reader.h"
#include "format/shard_mask.h"
#include "support/made.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

enum { ALL = 0x17f, AHEAD = TOKMAP_TARGETS | TOKMAP_LOSS_MASK, OUTPUTS = 7, MARGIN = 8 };

static char folder[512];
static struct made wide, narrow, tiny, ones;

static int setup(void **unused)
{
    (void)unused;
    const uint64_t one[] = {9001}, many[] = {700, 3, 1, 2900, 512}, few[] = {3},
                   singles[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    scratch_make(folder);
    made_new(&wide, folder, "wide", 4, 9001, one, 1);
    made_new(&narrow, folder, "narrow", 2, 50257, many, 5);
    made_new(&tiny, folder, "tiny", 2, 100, few, 1);
    made_new(&ones, folder, "ones", 2, 100, singles, 10); /* shards of one document each */
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    made_free(&wide);
    made_free(&narrow);
    made_free(&tiny);
    made_free(&ones);
    scratch_remove(folder);
    return 0;
}

static struct tokmap_run *make_run(const struct made *made, uint64_t seq_len, uint64_t lookahead, uint64_t batch,
                                   uint64_t steps)
{
    struct simple_run options = SIMPLE_RUN_INIT;
    struct tokmap_run *run;
    options.data = made->name;
    options.seq_len = seq_len;
    options.lookahead = lookahead;
    options.batch = batch;
    options.steps = steps;
    options.seed = seq_len * 31 + batch;
    assert_int_equal(simple_run_open(&run, &options, NULL), TOKMAP_OK);
    return run;
}

/* Returns the largest number of documents in any window, by counting in all windows. */
static uint64_t most_documents(const struct made *made, uint64_t seq_len)
{
    uint64_t most = 0;
    for (uint64_t first = 0; first < made->tokens; first++) {
        uint64_t shown = 1;
        for (uint64_t j = 1; j < seq_len; j++)
            shown += made->starts[(first + j) % made->tokens];
        most = max64(most, shown);
    }
    return most;
}

struct checked {
    const struct made *made;
    struct tokmap_loader *loader;
    struct tokmap_out out;
    uint64_t seq_len, rows, cu_elements;
    uint32_t fields, mask_targets;
    char *memory[OUTPUTS];
};

static uint64_t cell_bytes(const struct checked *checked)
{
    return checked->out.type == TOKMAP_ID_I64 ? 8 : 4;
}

/* Outputs that begin at an odd address and are filled with 0x77, with more bytes past the end that the loader may
 * write. */
static void outputs_new(struct checked *checked, enum tokmap_id_type type)
{
    checked->out = (struct tokmap_out)TOKMAP_OUT_INIT;
    checked->out.type = type;
    uint64_t bytes = checked->rows * checked->seq_len * cell_bytes(checked);
    for (unsigned k = 0; k < OUTPUTS; k++) {
        uint64_t size = k == 5 ? checked->cu_elements * 4 : bytes;
        checked->memory[k] = malloc(size + 1 + MARGIN);
        memset(checked->memory[k], 0x77, size + 1 + MARGIN);
    }
    checked->out.inputs = checked->memory[0] + 1;
    checked->out.targets = checked->memory[1] + 1;
    checked->out.position_ids = checked->memory[2] + 1;
    checked->out.document_ids = checked->memory[3] + 1;
    checked->out.loss_mask = checked->memory[4] + 1;
    checked->out.cu_seqlens = (int32_t *)(void *)(checked->memory[5] + (checked->cu_elements ? 0 : 1));
    checked->out.labels = checked->memory[6] + 1;
}

static int64_t cell(const struct checked *checked, const void *cells, uint64_t i)
{
    const char *at = cells;
    return checked->out.type == TOKMAP_ID_I64 ? (int64_t)load64(at + i * 8) : (int32_t)load32(at + i * 4);
}

/* Checks that element `at` of an output is `value` if the field was asked for, and unchanged if not. */
static void check_cell(const struct checked *checked, uint32_t field, const void *cells, uint64_t at, int64_t value)
{
    int64_t untouched = checked->out.type == TOKMAP_ID_I64 ? 0x7777777777777777 : 0x77777777;
    int64_t expected = checked->fields & field ? value : untouched;
    if (cell(checked, cells, at) != expected)
        fail_msg("field 0x%x, element %llu: %lld, expected %lld", field, (unsigned long long)at,
                 (long long)cell(checked, cells, at), (long long)expected);
}

/* Checks row i, whose window begins at `first`. Appends the ends of its documents to cu[*documents ..]. */
static void check_row(const struct checked *checked, uint64_t i, uint64_t first, int32_t *cu, uint64_t *documents,
                      uint64_t *longest)
{
    const struct made *made = checked->made;
    uint64_t start = 0, number = 0, seq_len = checked->seq_len;
    for (uint64_t j = 0; j < seq_len; j++) {
        uint64_t token = (first + j) % made->tokens, next = (token + 1) % made->tokens, at = i * seq_len + j;
        bool edge = made->starts[next];
        if (j && made->starts[token]) {
            start = j;
            number++;
        }
        check_cell(checked, TOKMAP_INPUTS, checked->out.inputs, at, made_token(made, token));
        check_cell(checked, TOKMAP_TARGETS, checked->out.targets, at,
                   edge && checked->mask_targets ? -100 : (int64_t)made_token(made, next));
        check_cell(checked, TOKMAP_POSITION_IDS, checked->out.position_ids, at, (int64_t)(j - start));
        check_cell(checked, TOKMAP_DOCUMENT_IDS, checked->out.document_ids, at, (int64_t)number);
        check_cell(checked, TOKMAP_LOSS_MASK, checked->out.loss_mask, at, !edge);
        check_cell(checked, TOKMAP_LABELS, checked->out.labels, at,
                   j && !made->starts[token] ? (int64_t)made_token(made, token) : -100);
        if (!edge && j + 1 < seq_len)
            continue;
        cu[++*documents] = (int32_t)(at + 1);
        *longest = max64(*longest, j + 1 - start);
    }
}

static void check_batch(const struct checked *checked, const struct tokmap_batch *batch)
{
    int32_t *cu = calloc(checked->rows * checked->seq_len + 1, sizeof *cu);
    uint64_t documents = 0, longest = 0;
    for (uint64_t i = 0; i < batch->count; i++)
        check_row(checked, i, batch->places[i].first_token, cu, &documents, &longest);
    if (checked->fields & TOKMAP_CU_SEQLENS) {
        assert_int_equal(batch->documents, documents);
        assert_int_equal(batch->max_seqlen, longest);
        assert_true(documents < checked->cu_elements);
        for (uint64_t i = 0; i < checked->cu_elements; i++)
            assert_int_equal(checked->out.cu_seqlens[i], i <= documents ? cu[i] : (int32_t)batch->tokens);
    }
    for (unsigned k = 0; k < OUTPUTS; k++) { /* nothing was written past the end */
        uint64_t size = k == 5 ? checked->cu_elements * 4 : checked->rows * checked->seq_len * cell_bytes(checked) + 1;
        for (unsigned b = 0; b < MARGIN; b++)
            assert_int_equal(checked->memory[k][size + b], 0x77);
    }
    free(cu);
}

static void check_loader(const struct made *made, struct tokmap_run *run, const struct tokmap_loader_options *options,
                         uint64_t most)
{
    struct tokmap_run_info info = TOKMAP_RUN_INFO_INIT;
    struct checked checked = {.made = made, .fields = options->fields, .mask_targets = options->mask_targets};
    struct tokmap_error error;
    enum tokmap_status status;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    assert_int_equal(tokmap_run_info(run, &info), TOKMAP_OK);
    if (tokmap_loader_open(&checked.loader, run, options, &error))
        fail_msg("%s", error.message);
    checked.seq_len = info.seq_len;
    checked.rows = tokmap_loader_rows(checked.loader);
    checked.cu_elements = tokmap_loader_cu_seqlens(checked.loader);
    assert_int_equal(checked.cu_elements, options->fields & TOKMAP_CU_SEQLENS ? checked.rows * most + 1 : 0);
    outputs_new(&checked, info.seq_len % 2 ? TOKMAP_ID_I64 : TOKMAP_ID_I32);
    while (!(status = tokmap_loader_next(checked.loader, &checked.out, NULL, &batch, &error))) {
        check_batch(&checked, &batch);
        for (unsigned k = 0; k < OUTPUTS; k++)
            if (k != 5)
                memset(checked.memory[k] + 1, 0x77, checked.rows * checked.seq_len * cell_bytes(&checked));
    }
    assert_int_equal(status, TOKMAP_END);
    for (unsigned k = 0; k < OUTPUTS; k++)
        free(checked.memory[k]);
    tokmap_loader_close(checked.loader);
}

/* There are 256 sets of these fields. Tested are each field alone, all fields, and all fields but one. */
static uint32_t field_set(unsigned number)
{
    const unsigned bit = number % 8 == 7 ? 8 : number % 8; /* that of TOKMAP_TARGETS_AHEAD is left out */
    return number < 8 ? 1u << bit : number < 16 ? ALL & ~(1u << bit) : ALL;
}

static void every_field_is_its_definition(void **unused)
{
    (void)unused;
    const struct made *const sets[] = {&wide, &narrow, &tiny, &ones};
    static const uint64_t sizes[] = {1, 2, 3, 9, 31, 63, 64, 65, 127, 128, 129, 300, 700};
    unsigned turn = 0;
    for (unsigned set = 0; set < 4; set++)
        for (unsigned size = 0; size < sizeof sizes / sizeof sizes[0] && sizes[size] < sets[set]->tokens; size++) {
            uint64_t most = most_documents(sets[set], sizes[size]);
            for (uint64_t lookahead = 0; lookahead < 4; lookahead += 1 + lookahead / 2 * 2) {
                if (sizes[size] + lookahead > sets[set]->tokens)
                    continue;
                /* Several epochs, so that windows begin at many places and cross the seam. */
                struct tokmap_run *run = make_run(sets[set], sizes[size], lookahead, 7, sizes[size] < 9 ? 150 : 40);
                for (uint64_t world = 1; world <= 7; world += 3) {
                    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
                    options.rank = turn % world;
                    options.world = world;
                    options.rows = turn % 4;
                    options.threads = turn % 2;
                    options.fields =
                        (field_set(turn % 17) & ~(uint32_t)TOKMAP_ROWS) | (world == 1 ? ALL - TOKMAP_ROWS : 0);
                    options.fields &= lookahead ? ALL : ALL & ~(uint32_t)AHEAD;
                    options.mask_targets = options.fields & TOKMAP_TARGETS && turn % 3;
                    check_loader(sets[set], run, &options, most);
                    turn++;
                }
                tokmap_run_close(run);
            }
        }
}

/* ---- refused options ---- */

static enum tokmap_status open_with(struct tokmap_run *run, uint32_t fields, uint32_t mask_targets, uint64_t ring_bytes,
                                    struct tokmap_error *error)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    options.fields = fields;
    options.mask_targets = mask_targets;
    options.ring_bytes = ring_bytes;
    enum tokmap_status status = tokmap_loader_open(&loader, run, &options, error);
    assert_true(!status == !!loader);
    tokmap_loader_close(loader);
    return status;
}

static void what_cannot_be_is_refused(void **unused)
{
    (void)unused;
    struct tokmap_error error;
    struct tokmap_run *run = make_run(&narrow, 64, 0, 4, 10);
    assert_int_equal(open_with(run, TOKMAP_LOSS_MASK, 0, 0, &error), TOKMAP_ERROR_RANGE);
    assert_non_null(strstr(error.message, "remove \"loss_mask\" from fields"));
    assert_int_equal(open_with(run, TOKMAP_POSITION_IDS, 1, 0, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "mask_targets"));
    assert_int_equal(open_with(run, TOKMAP_INPUTS, 1, 0, &error), TOKMAP_OK);
    assert_int_equal(open_with(run, TOKMAP_LABELS, 0, 0, &error), TOKMAP_OK);
    assert_int_equal(open_with(run, 1u << 11, 0, 0, &error), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "0x800"));
    tokmap_run_close(run);
    run = make_run(&narrow, 64, 1, 4, 10);
    assert_int_equal(open_with(run, TOKMAP_TARGETS, 2, 0, &error), TOKMAP_ERROR_ARGUMENT);
    assert_int_equal(open_with(run, TOKMAP_CU_SEQLENS, 0, 1000, &error), TOKMAP_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "for cu_seqlens"));
    assert_int_equal(open_with(run, TOKMAP_CU_SEQLENS, 0, 0, &error), TOKMAP_OK);
    tokmap_run_close(run);
    run = make_run(&wide, 9000, 1, 300000, 1); /* 2.7 * 10^9 tokens in a batch */
    assert_int_equal(open_with(run, TOKMAP_CU_SEQLENS, 0, 0, &error), TOKMAP_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "2^31"));
    tokmap_run_close(run);
}

/* Targets that must not be trained on, or would be scored twice, are not delivered to a program that cannot know. */
static void targets_without_their_mask_are_refused(void **unused)
{
    (void)unused;
    struct made masked;
    struct shard_mask_result result;
    struct tokmap_error error;
    struct tokmap_run *run;
    const uint64_t size = 900;
    char bytes[900], index[700];
    for (int i = 0; i < 900; i++)
        bytes[i] = i % 3 != 0;
    made_new(&masked, folder, "masked", 2, 50257, &size, 1);
    file_write(in_folder(folder, "mask bytes"), bytes, sizeof bytes);
    snprintf(index, sizeof index, "%s/masked-0.tmx", folder);
    assert_int_equal(shard_mask_add(index, in_folder(folder, "mask bytes"), false, &result, &error), TOKMAP_OK);
    assert_int_equal(result.counted, 600);
    run = make_run(&masked, 64, 1, 4, 1);
    for (int overlap = 0; overlap < 2; overlap++) {
        assert_int_equal(open_with(run, TOKMAP_INPUTS | TOKMAP_TARGETS, 0, 0, &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, overlap ? "stride 16" : "source 'data' has a mask"));
        assert_int_equal(open_with(run, TOKMAP_TARGETS_AHEAD, 0, 0, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(open_with(run, TOKMAP_INPUTS | TOKMAP_TARGETS, 1, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, TOKMAP_TARGETS | TOKMAP_LOSS_MASK, 0, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, TOKMAP_TARGETS | TOKMAP_LABELS, 0, 0, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(open_with(run, TOKMAP_INPUTS, 0, 0, &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, overlap ? "stride 16" : "source 'data' has a mask"));
        assert_non_null(strstr(error.message, "add \"labels\" or \"loss_mask\" to fields"));
        assert_int_equal(open_with(run, TOKMAP_INPUTS | TOKMAP_POSITION_IDS, 0, 0, &error), TOKMAP_ERROR_ARGUMENT);
        assert_int_equal(open_with(run, TOKMAP_INPUTS, 1, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, TOKMAP_INPUTS | TOKMAP_LABELS, 0, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, TOKMAP_INPUTS | TOKMAP_LOSS_MASK, 0, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, TOKMAP_LABELS, 0, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, TOKMAP_ROWS, 0, 0, &error), TOKMAP_OK);
        assert_int_equal(open_with(run, 0, 0, 0, &error), TOKMAP_OK);
        tokmap_run_close(run);
        run = NULL;
        if (!overlap)
            assert_int_equal(tokmap_run_parse(&run,
                                              "seq_len 64\nstride 16\nbatch 2\npasses 1\n"
                                              "source data synthetic:vocab=99,tokens=4000\n",
                                              NULL, &error),
                             TOKMAP_OK);
    }
    made_free(&masked);
}

static void a_missing_output_is_named(void **unused)
{
    (void)unused;
    static const char *const names[] = {"inputs",       "targets",    "position_ids",    "rows",
                                        "document_ids", "loss_mask",  "cu_seqlens",      "targets_ahead",
                                        "labels",       "source_ids", "cu_seqlens_slice"};
    static int64_t room[200000];
    struct tokmap_run *run = make_run(&narrow, 64, 1, 4, 10);
    for (unsigned k = 0; k < 11; k++) {
        struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
        struct tokmap_out out = {
            sizeof out, TOKMAP_ID_I32,   room,   room,  room, room, room, room, room, room, (int32_t *)room,
            room,       (int32_t *)room, {NULL}, {NULL}};
        struct tokmap_loader *loader;
        struct tokmap_error error;
        struct tokmap_batch batch = TOKMAP_BATCH_INIT;
        void **pointers[] = {&out.inputs, &out.targets,      &out.position_ids,
                             &out.rows,   &out.document_ids, &out.loss_mask};
        options.fields = ALL | TOKMAP_TARGETS_AHEAD | TOKMAP_SOURCE_IDS | TOKMAP_CU_SEQLENS_SLICE;
        assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
        if (k == 10)
            out.cu_seqlens_slice = NULL;
        else if (k == 9)
            out.source_ids = NULL;
        else if (k == 8)
            out.labels = NULL;
        else if (k == 7)
            out.targets_ahead = NULL;
        else if (k < 6)
            *pointers[k] = NULL;
        else
            out.cu_seqlens = NULL;
        assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, names[k]));
        tokmap_loader_close(loader);
    }
    tokmap_run_close(run);
}

/* ---- callers of other versions ---- */

/* Options, outputs, and statistics of an older caller end before the newest members. Nothing past their ends is read
 * or written. */
static void smaller_structs_are_served(void **unused)
{
    (void)unused;
    static char inputs[4 * 64 * 4];
    static int32_t targets[4 * 64];
    struct tokmap_run *run = make_run(&narrow, 64, 1, 4, 5);
    struct tokmap_loader_options options;
    struct tokmap_out out = {.type = TOKMAP_ID_I32, .inputs = inputs, .targets = targets};
    struct tokmap_stats stats;
    struct tokmap_loader *loader;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    memset(&options, 0xff, sizeof options);
    options.size = offsetof(struct tokmap_loader_options, mask_targets);
    options.rank = options.rows = options.ring_bytes = 0;
    options.world = 1;
    options.fields = TOKMAP_INPUTS | TOKMAP_TARGETS;
    options.threads = options.read_ahead = options.trust_files = options.drop_behind = 0;
    options.resume = options.device = NULL;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    out.size = offsetof(struct tokmap_out, document_ids);
    assert_int_equal(tokmap_loader_next(loader, &out, NULL, &batch, NULL), TOKMAP_OK);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        assert_int_not_equal(targets[i], TOKMAP_IGNORE);
    memset(&stats, 0x55, sizeof stats);
    stats.size = offsetof(struct tokmap_stats, host_expanded);
    assert_int_equal(tokmap_loader_stats(loader, &stats), TOKMAP_OK);
    assert_int_equal(stats.batches, 1);
    assert_int_equal(stats.host_expanded, 0x5555555555555555);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* A batch whose size is not set, or is not a size that the struct ever had, is refused and left unchanged. */
static void the_size_of_a_batch_is_checked(void **unused)
{
    (void)unused;
    const size_t first = offsetof(struct tokmap_batch, columns); /* of the struct's first version */
    const size_t wrong[] = {0, sizeof(size_t), first - 1, sizeof(struct tokmap_batch) + 1, SIZE_MAX};
    const uint64_t zero = 0;
    struct tokmap_run *run = make_run(&narrow, 64, 1, 4, 5);
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_loader *loader;
    struct {
        struct tokmap_batch batch;
        char behind[64];
    } room, untouched;
    struct tokmap_error error;
    options.fields = options.threads = 0;
    assert_int_equal(tokmap_loader_open(&loader, run, &options, NULL), TOKMAP_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memset(&room, 0x55, sizeof room);
        room.batch.size = wrong[i];
        untouched = room;
        assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &room.batch, &error), TOKMAP_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "with its macro"));
        assert_int_equal(tokmap_loader_read(loader, &zero, &zero, 1, NULL, &room.batch, &error), TOKMAP_ERROR_ARGUMENT);
        assert_memory_equal(&room, &untouched, sizeof room);
    }
    room.batch.size = first;
    assert_int_equal(tokmap_loader_read(loader, &zero, &zero, 1, NULL, &room.batch, NULL), TOKMAP_OK);
    assert_int_equal(room.batch.count, 1);
    room.batch.size = sizeof room.batch;
    assert_int_equal(tokmap_loader_next(loader, NULL, NULL, &room.batch, NULL), TOKMAP_OK);
    assert_int_equal(room.batch.size, sizeof room.batch);
    assert_int_equal(room.batch.seq_len, 64);
    assert_int_equal(room.batch.real_rows, room.batch.count);
    assert_int_equal(room.batch.step, 0); /* the refused calls consumed no rows */
    assert_int_equal(room.batch.count, 4);
    assert_int_equal(room.batch.documents, 0);
    assert_int_equal(room.batch.max_seqlen, 0);
    assert_memory_equal(room.behind, untouched.behind, sizeof room.behind);
    tokmap_loader_close(loader);
    tokmap_run_close(run);
}

/* ---- an index that contradicts itself ---- */

static void spoil(const char *path, uint64_t offset, uint32_t value)
{
    char bytes[4];
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    store32(bytes, value);
    assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 4, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static void a_spoilt_index_is_a_status(void **unused)
{
    (void)unused;
    const uint64_t size[] = {5000};
    static const uint32_t values[] = {0, 5001, UINT32_MAX, 4999};
    for (unsigned i = 0; i < 4; i++)
        for (unsigned where = 1; where < 3; where++) {
            struct made made;
            struct index index;
            struct tokmap_error error = {0};
            char name[40], path[700];
            (void)snprintf(name, sizeof name, "spoilt%u%u", i, where);
            made_new(&made, folder, name, 2, 1000, size, 1);
            (void)snprintf(path, sizeof path, "%s/%s-0.tmx", folder, name);
            assert_int_equal(index_open(&index, path, NULL), TOKMAP_OK);
            uint64_t documents = index.shard.documents, offset = index.documents.offset;
            uint64_t document = where == 1 ? documents / 3 : documents - 1;
            index_close(&index);
            spoil(path, offset + 4 * document, values[i]);
            struct tokmap_run *run =
                make_run(&made, 1400, 1, 4, 5); /* rows longer than a run of documents of one token */
            assert_int_equal(open_with(run, TOKMAP_INPUTS, 0, 0, NULL),
                             TOKMAP_OK); /* the loader does not read the index then */
            assert_int_equal(open_with(run, TOKMAP_CU_SEQLENS, 0, 0, &error), TOKMAP_ERROR_CORRUPT);
            assert_true(error.message[0] && error.path[0]);
            tokmap_run_close(run);
            made_free(&made);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_its_definition),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(targets_without_their_mask_are_refused),
        cmocka_unit_test(a_missing_output_is_named),
        cmocka_unit_test(smaller_structs_are_served),
        cmocka_unit_test(the_size_of_a_batch_is_checked),
        cmocka_unit_test(a_spoilt_index_is_a_status),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
