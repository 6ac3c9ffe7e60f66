/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * Teams of loaders, the ranks of one run, move together, again and again, between any two calls: to another number of
 * ranks, where some leave and others join, to an edited run, back to where they were opened, and to a cursor. What they
 * read is drawn from all that there is: local and remote data, plain, sealed, masked, and planned; excluded documents;
 * rows that are balanced, shared among nodes, and cut into slices; with and without a producer and threads that read.
 *
 * Each batch is compared with that of a second loader, opened where the first one is, which reads the files themselves.
 * All rows of a step come to a team once. The number of nodes that those who join are opened with is asked of a loader
 * that was there; the loaders for comparison are opened with the number that follows from the rule.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "format/shard_seal.h"
#include "support/awkward_text.h"
#include "support/file_server.h"
#include "support/made.h"
#include "support/made_plan.h"
#include "support/run_help.h"
#include "support/scratch.h"
#include "tokmap/tokmap.h"

#define CELLS ((uint64_t)1 << 12) /* elements of an output */
#define RANKS 6
#define STEPS 16
#define ROWS 24 /* of a step, at most */
#define TEAMS 90
#define MOVES 10
#define EDITS 4 /* of a run */

static char folder[512];
static struct file_server server;
static bool remote = true; /* object storage can be read */
static struct made wide, narrow, masked, sealed;
static const struct made *const data[] = {&wide, &narrow, &masked, &sealed};
static const char *const names[] = {"wide", "narrow", "masked", "sealed"};

static int setup(void **unused)
{
    (void)unused;
    static const uint64_t one[] = {9001}, many[] = {700, 3, 1, 2900, 512}, some[] = {1500, 800, 1100};
    const struct shard_seal_options seal = {.level = 1, .threads = 1};
    struct shard_seal_result result;
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    scratch_make(folder);
    file_server_start(&server, folder);
    made_new(&wide, folder, "wide", 4, 90001, one, 1);
    made_new(&narrow, folder, "narrow", 2, 50257, many, 5);
    made_new_masked(&masked, folder, "masked", 2, 300, some, 3);
    made_new(&sealed, folder, "sealed", 2, 50257, some, 3);
    for (size_t i = 0; i < 4; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "%s.plan", names[i]);
        made_plan(data[i], 16, in_folder(folder, name));
    }
    for (unsigned shard = 0; shard < 3; shard++) {
        char name[40];
        (void)snprintf(name, sizeof name, "sealed-%u.tmx", shard);
        assert_int_equal(shard_seal(in_folder(folder, name), &seal, &result, NULL), TOKMAP_OK);
    }
    file_write_text(in_folder(folder, "list"), "a 1\na 2\na 5\na 3\na 11\n");
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    file_server_end(&server);
    for (size_t i = 0; i < 4; i++)
        made_free((struct made *)(uintptr_t)data[i]);
    scratch_remove(folder);
    return 0;
}

/* ---- runs ---- */

/* What the runs of a team have in common. */
struct kind {
    size_t data;
    bool remote, plan, excludes, part;
    unsigned order; /* of the words below */
};
static const char *const orders[] = {"shuffle", "sequential", "blocks 3 4", "even 4 4"};

/* Opens a run, whose edits are the same up to step 7. */
static struct tokmap_run *run_open(const struct kind *kind, int edit, bool from_afar)
{
    static const char *const later[EDITS] = {"", "phase 8 batch 12\n", "phase 7 batch 18\nskip 9..10\n",
                                             "phase 8 batch 16 seq_len 8\n"};
    const char *part = kind->part ? "#tokens=5000..9001" : "";
    char text[3000], place[1400], plan[600] = "", said[1500];
    struct tokmap_run *run;
    struct tokmap_error error;
    (void)snprintf(place, sizeof place, "%s%s", data[kind->data]->name, part);
    if (from_afar)
        (void)snprintf(place, sizeof place, "http://127.0.0.1:%u/%s.list?cache=%s/cache%s", server.port,
                       names[kind->data], folder, part);
    if (kind->plan)
        (void)snprintf(plan, sizeof plan, " plan \"%s/%s.plan\"", folder, names[kind->data]);
    (void)snprintf(
        text, sizeof text,
        "seq_len 16\nlookahead 2\nbatch %d\nseed 5\norder %s\nsource a \"%s\"%s\nphase 0 a 1\n%s%ssteps %d\n", ROWS,
        orders[kind->order], place, plan, kind->excludes ? "exclude list from 3\n" : "",
        later[kind->plan && edit == 3 ? 1 : edit], STEPS);
    const enum tokmap_status status = run_parse_in(&run, text, folder, &error);
    if (status == TOKMAP_ERROR_UNSUPPORTED && from_afar) { /* no libcurl, or a file system without holes */
        remote = false;
        return run_open(kind, edit, false);
    }
    if (status)
        fail_msg("%s: %s", text, tokmap_error_print(&error, said, sizeof said));
    return run;
}

/* ---- loaders ---- */

/* A loader with its outputs. */
struct reader {
    struct tokmap_loader *loader;
    struct tokmap_out out;
    struct tokmap_batch batch;
};

static void outputs_make(struct reader *reader)
{
    reader->out = (struct tokmap_out)TOKMAP_OUT_INIT;
    reader->batch = (struct tokmap_batch)TOKMAP_BATCH_INIT;
    void **const outputs[] = {&reader->out.inputs, &reader->out.targets, &reader->out.position_ids,
                              &reader->out.loss_mask};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        assert_non_null(*outputs[i] = calloc(CELLS, 4));
    assert_non_null(reader->out.cu_seqlens = calloc(CELLS, 4));
}

static void outputs_free(struct reader *reader)
{
    free(reader->out.inputs);
    free(reader->out.targets);
    free(reader->out.position_ids);
    free(reader->out.loss_mask);
    free(reader->out.cu_seqlens);
}

struct team {
    struct kind kind;
    struct tokmap_loader_options options; /* of all ranks; its nodes are what the rule says */
    struct tokmap_run *run, *other;       /* the other one reads the files themselves */
    uint64_t state;                       /* of random numbers */
    struct reader readers[RANKS], fresh[RANKS];
    char start[TOKMAP_CURSOR_TEXT], at[TOKMAP_CURSOR_TEXT]; /* "": the start of the run */
    uint8_t seen[ROWS];                                     /* rows of the step at hand */
    bool traced;                                            /* each loader writes a trace */
};

static uint64_t below(struct team *team, uint64_t limit)
{
    return random_below(&team->state, limit);
}

static void open_one(const struct team *team, struct reader *reader, const struct tokmap_run *run,
                     struct tokmap_loader_options options)
{
    struct tokmap_error error;
    char said[1500];
    options.resume = team->at[0] ? team->at : NULL;
    if (tokmap_loader_open(&reader->loader, run, &options, &error))
        fail_msg("%s", tokmap_error_print(&error, said, sizeof said));
    assert_true(tokmap_loader_elements(reader->loader) * 2 <= CELLS);
    assert_int_equal(tokmap_loader_nodes(reader->loader), options.nodes);
}

/* Opens the loader of a rank where the team is: with the number of nodes that a loader of the team says. */
static void join(struct team *team, uint64_t rank, uint64_t nodes)
{
    struct tokmap_loader_options options = team->options;
    char trace[40];
    static unsigned traces;
    (void)snprintf(trace, sizeof trace, "%u.trace", traces++);
    options.rank = rank;
    options.nodes = nodes;
    options.trace = team->traced ? in_folder(folder, trace) : NULL;
    open_one(team, &team->readers[rank], team->run, options);
}

/* Opens the loaders to compare with where the team is. */
static void fresh_open(struct team *team)
{
    struct tokmap_loader_options options = team->options;
    options.threads = 0;
    options.io_threads = 0;
    options.deadline_ns = 0;
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        tokmap_loader_close(team->fresh[rank].loader);
        team->fresh[rank].loader = NULL;
        options.rank = rank;
        if (rank < options.world)
            open_one(team, &team->fresh[rank], team->other, options);
    }
    memset(team->seen, 0, sizeof team->seen);
}

/* Draws what a team reads, and how. */
static void team_open(struct team *team, uint64_t number)
{
    *team = (struct team){.state = 1000 + number, .options = TOKMAP_LOADER_OPTIONS_INIT};
    struct tokmap_loader_options *options = &team->options;
    struct kind *kind = &team->kind;
    const uint64_t ranks[] = {1, 2, 3, 4, 6}, assigns = number % 3; /* 1: balance, 2: nodes */
    *kind = (struct kind){.data = below(team, 4),
                          .remote = number % 2 && remote,
                          .plan = !below(team, 3),
                          .excludes = !below(team, 3),
                          .order = (unsigned)below(team, 4)};
    kind->part = !kind->data && !kind->plan && below(team, 2);
    options->world = ranks[below(team, 5)];
    options->rows = below(team, 4);
    options->threads = number / 6 % 2;
    options->balance = assigns == 1 ? 0.01 : 0;
    if (assigns == 2) {
        kind->order = 2 + kind->order % 2;
        options->nodes = options->world % 2 || below(team, 2) ? 1 : 2;
        if (options->world == 6 && below(team, 2))
            options->nodes = 3;
    }
    const bool plain = kind->data < 2 && !kind->plan && !kind->excludes;
    options->fields = TOKMAP_INPUTS | TOKMAP_TARGETS;
    if (!plain || below(team, 2))
        options->fields |= TOKMAP_POSITION_IDS | TOKMAP_LOSS_MASK | TOKMAP_CU_SEQLENS;
    options->mask_targets = !plain && below(team, 2);
    options->context_world = 1 + below(team, 2);
    options->context_rank = below(team, options->context_world);
    options->context_layout = below(team, 2) ? TOKMAP_CONTEXT_ZIGZAG : TOKMAP_CONTEXT_CONTIGUOUS;
    options->io_threads = below(team, 4) ? 0 : 2;
    options->deadline_ns = below(team, 4) ? 0 : 60000000000u;
    options->drop_behind = !below(team, 4);
    team->traced = !below(team, 4);
    team->run = run_open(kind, 0, kind->remote);
    team->other = run_open(kind, 0, false);
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        outputs_make(&team->readers[rank]);
        outputs_make(&team->fresh[rank]);
        if (rank < options->world)
            join(team, rank, options->nodes);
    }
    fresh_open(team);
}

static void team_close(struct team *team)
{
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        tokmap_loader_close(team->readers[rank].loader);
        tokmap_loader_close(team->fresh[rank].loader);
        outputs_free(&team->readers[rank]);
        outputs_free(&team->fresh[rank]);
    }
    tokmap_run_close(team->run);
    tokmap_run_close(team->other);
}

/* ---- batches ---- */

static void same_values(void *one, void *other, uint64_t elements)
{
    assert_memory_equal(one, other, elements * 4);
    memset(one, 0x5a, elements * 4);
    memset(other, 0xa5, elements * 4);
}

static void same_batch(struct reader *one, struct reader *other, uint32_t fields)
{
    const struct tokmap_batch *a = &one->batch, *b = &other->batch;
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->first_row, b->first_row);
    assert_int_equal(a->real_rows, b->real_rows);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->last_in_step, b->last_in_step);
    assert_int_equal(a->documents, b->documents);
    assert_int_equal(a->columns, b->columns);
    assert_memory_equal(&a->cursor, &b->cursor, sizeof a->cursor);
    assert_memory_equal(a->places, b->places, a->count * sizeof *a->places);
    same_values(one->out.inputs, other->out.inputs, a->tokens);
    same_values(one->out.targets, other->out.targets, a->tokens);
    if (!(fields & TOKMAP_LOSS_MASK))
        return;
    same_values(one->out.position_ids, other->out.position_ids, a->tokens);
    same_values(one->out.loss_mask, other->out.loss_mask, a->tokens);
    same_values(one->out.cu_seqlens, other->out.cu_seqlens, a->documents + 1);
}

/* Delivers a batch to each rank, and compares. Returns false at the end of the run. */
static bool deliver(struct team *team)
{
    bool last = false;
    for (uint64_t rank = 0; rank < team->options.world; rank++) {
        struct reader *reader = &team->readers[rank], *fresh = &team->fresh[rank];
        if (!below(team, 4))
            (void)tokmap_loader_wait(reader->loader, below(team, 100000));
        struct tokmap_error error;
        char said[1500];
        const enum tokmap_status status =
            tokmap_loader_next(reader->loader, &reader->out, NULL, &reader->batch, &error);
        if (status && status != TOKMAP_END)
            fail_msg("%s", tokmap_error_print(&error, said, sizeof said));
        assert_int_equal(tokmap_loader_next(fresh->loader, &fresh->out, NULL, &fresh->batch, NULL), status);
        if (status)
            return false;
        same_batch(reader, fresh, team->options.fields);
        for (uint64_t i = 0; i < reader->batch.count; i++)
            team->seen[reader->batch.places[i].row]++;
        last = reader->batch.last_in_step;
    }
    const struct tokmap_batch *batch = &team->readers[0].batch;
    tokmap_cursor_print(&batch->cursor, team->at);
    for (uint64_t row = 0; last && row < ROWS; row++)
        assert_int_equal(team->seen[row], row < tokmap_run_rows(team->run, batch->step));
    if (last)
        memset(team->seen, 0, sizeof team->seen);
    return true;
}

/* Reads rows by name, which moves nothing. */
static void read_some(struct team *team)
{
    struct reader *reader = &team->readers[0], *fresh = &team->fresh[0];
    const uint64_t steps[] = {below(team, 7), below(team, 7)}, rows[] = {below(team, ROWS), below(team, ROWS)};
    const uint64_t count = min64(2, tokmap_loader_rows(reader->loader));
    if (team->options.threads)
        return;
    assert_int_equal(tokmap_loader_read(reader->loader, steps, rows, count, &reader->out, &reader->batch, NULL), 0);
    assert_int_equal(tokmap_loader_read(fresh->loader, steps, rows, count, &fresh->out, &fresh->batch, NULL), 0);
    same_batch(reader, fresh, team->options.fields);
}

/* ---- moves ---- */

/* These return whether the loaders have moved. */

/* Continues with other ranks: each one that stays takes another number. */
static bool repartition(struct team *team)
{
    struct tokmap_loader_options *options = &team->options;
    const uint64_t before = options->world, per_node = options->nodes ? before / options->nodes : 0;
    uint64_t world = 1 + below(team, RANKS);
    if (per_node && world > per_node)
        world -= world % per_node;
    const uint64_t shift = below(team, world), stay = min64(before, world);
    struct tokmap_loader *moved[RANKS] = {NULL};
    for (uint64_t rank = 0; rank < before; rank++) {
        struct tokmap_loader *loader = team->readers[rank].loader;
        team->readers[rank].loader = NULL;
        if (rank >= stay) {
            tokmap_loader_close(loader);
            continue;
        }
        moved[(rank + shift) % world] = loader;
        if (below(team, 4) == 0) /* what is refused changes nothing */
            assert_int_equal(tokmap_loader_repartition(loader, world, world, NULL), TOKMAP_ERROR_RANGE);
        assert_int_equal(tokmap_loader_repartition(loader, (rank + shift) % world, world, NULL), TOKMAP_OK);
    }
    options->world = world;
    options->nodes = per_node ? max64(world / per_node, 1) : 0;
    const uint64_t nodes = tokmap_loader_nodes(moved[shift]);
    assert_int_equal(nodes, options->nodes);
    for (uint64_t rank = 0; rank < world; rank++)
        if ((team->readers[rank].loader = moved[rank]) == NULL)
            join(team, rank, nodes);
    memcpy(team->start, team->at, sizeof team->start);
    return true;
}

/* Continues with an edited run. Where that is not allowed, all ranks stay where they are. */
static bool reload(struct team *team)
{
    const int edit = (int)below(team, EDITS);
    struct tokmap_run *run = run_open(&team->kind, edit, team->kind.remote);
    enum tokmap_status first = TOKMAP_OK;
    for (uint64_t rank = 0; rank < team->options.world; rank++) {
        const enum tokmap_status status = tokmap_loader_reload(team->readers[rank].loader, run, NULL);
        first = rank ? first : status;
        assert_int_equal(status, first);
    }
    if (first) {
        assert_int_equal(first, TOKMAP_ERROR_PAST);
        tokmap_run_close(run);
        return false;
    }
    tokmap_run_close(team->run);
    team->run = run;
    for (uint64_t rank = 0; rank < RANKS; rank++) {
        tokmap_loader_close(team->fresh[rank].loader);
        team->fresh[rank].loader = NULL;
    }
    tokmap_run_close(team->other);
    team->other = run_open(&team->kind, edit, false);
    memcpy(team->start, team->at, sizeof team->start);
    return true;
}

static bool rewind_all(struct team *team)
{
    for (uint64_t rank = 0; rank < team->options.world; rank++)
        assert_int_equal(tokmap_loader_rewind(team->readers[rank].loader, NULL), TOKMAP_OK);
    memcpy(team->at, team->start, sizeof team->at);
    return true;
}

/* Opens all loaders again at a cursor, with what they know of themselves. */
static bool to_cursor(struct team *team)
{
    struct tokmap_cursor cursor;
    assert_int_equal(tokmap_run_cursor(team->run, below(team, STEPS - 2), &cursor, NULL), TOKMAP_OK);
    tokmap_cursor_print(&cursor, team->at);
    for (uint64_t rank = 0; rank < team->options.world; rank++) {
        const uint64_t nodes = tokmap_loader_nodes(team->readers[rank].loader);
        tokmap_loader_close(team->readers[rank].loader);
        join(team, rank, nodes);
    }
    memcpy(team->start, team->at, sizeof team->start);
    return true;
}

/* At the end of a run there may be more ranks than a step has rows: the first of them then has none. */
static void beyond_the_end(struct team *team)
{
    struct reader *reader = &team->readers[0];
    if (team->options.nodes)
        return;
    assert_int_equal(tokmap_loader_repartition(reader->loader, 0, ROWS + 1, NULL), TOKMAP_OK);
    assert_int_equal(tokmap_loader_next(reader->loader, &reader->out, NULL, &reader->batch, NULL), TOKMAP_END);
}

static void teams_move(void **unused)
{
    (void)unused;
    static bool (*const moves[])(struct team *) = {repartition, repartition, reload, rewind_all, to_cursor};
    const uint64_t teams = (uint64_t)awkward_rounds(TEAMS);
    for (uint64_t number = 0; number < teams; number++) {
        static struct team team;
        team_open(&team, number);
        for (int i = 0; i < MOVES; i++) {
            bool more = true;
            for (uint64_t calls = below(&team, 7); calls && more; calls--)
                more = deliver(&team);
            if (!more)
                beyond_the_end(&team);
            if (more && !below(&team, 3))
                read_some(&team);
            if ((more ? moves[below(&team, 5)] : to_cursor)(&team))
                fresh_open(&team);
        }
        while (deliver(&team))
            ;
        team_close(&team);
    }
    if (!remote)
        print_message("# object storage cannot be read here\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(teams_move)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
