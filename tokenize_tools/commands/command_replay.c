/* SPDX-License-Identifier: MIT */
/*
 * command_replay.c - tokmap replay: recomputes from the data what loaders delivered, and compares it with their traces.
 *
 * The sections of all traces are walked together, step by step. The sections that have a record of a step say which
 * slices of the global batch were delivered: which positions, and how rows were assigned to positions. Every row at
 * those positions is read once and hashed; the sum over a slice is compared with its record. Slices with the same rows
 * (a step that was delivered again after a resume, or the same step on another number of ranks) share their hashes.
 *
 * A section of a rank that delivered slices of its rows has the sum over the chunks of its columns (run/columns.h).
 *
 * A step between the first and the last one is missing if its records do not cover the whole global batch: all rows,
 * and with slices all ranks that share each.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/trace_file.h"
#include "platform/os.h"
#include "platform/process.h"
#include "run/assignment.h"
#include "run/columns.h"
#include "run/exclusion.h"
#include "run/locate.h"
#include "run/run.h"

static const char program[] = "tokmap replay";

#define RECORDS_AT_ONCE 256 /* of a section, in memory */
#define READ_BYTES ((uint64_t)4 << 20)
#define ROWS_AT_ONCE 1024

/* What a row is needed for: its hash with tokens of 2 or of 4 bytes, and those of chunks of it. COVERED is for
 * has_rows(). */
enum { WIDTH_2 = 1, WIDTH_4 = 2, SLICE = 4, COVERED = 8 };

struct replay_arguments {
    struct cli_list traces;
    const char **paths; /* of all traces */
    size_t path_count;
    struct cli_range steps;
    bool steps_given, json, quiet;
    int progress; /* enum cli_progress_mode */
};

/* A section of a trace, and the records of it that come next. */
struct section {
    const char *path;
    struct trace_section found;
    struct trace_record *records; /* RECORDS_AT_ONCE; NULL until the section is begun, and after its end */
    uint64_t read, at, held;      /* records read so far; of the held ones, the next */
    uint64_t first, rows;         /* the positions of its slice of the step at hand */
    uint64_t sum;                 /* of the hashes of its chunks, if its rows are cut */
    size_t assignment;            /* the number of that in replay.assignments */
};

struct replay {
    const struct replay_arguments *given;
    struct tokmap_run *run;
    struct tokmap_run_info info;
    struct tokmap_loader *loader; /* reads rows by name */
    uint32_t width;               /* of the run's rows */
    struct section *sections;     /* in order of their first steps */
    size_t count, capacity;
    size_t ended;            /* sections below this number have no step any more */
    size_t begun;            /* sections below this number have first steps up to the step at hand */
    struct section **active; /* those that have a record of the step at hand */
    size_t active_count;
    struct tokmap_extent *extents;    /* of a row */
    uint64_t excluded, excluded_rows; /* tokens that are the pad id because of that, and their rows */
    struct assignment *assignments; /* of all that the sections begun so far have; the first one leaves rows in order */
    uint64_t assignment_count, assignment_capacity;
    const char *path;       /* of the trace that is scanned */
    uint64_t first, end;    /* steps that are compared */
    uint64_t *steps, *rows; /* arguments of a read */
    uint8_t *narrow;        /* a row in another width */
    uint8_t *wanted;        /* by row of the step at hand: for what its tokens are needed, as below */
    uint64_t *hashes[2];    /* by row: its hash with tokens of 2 and of 4 bytes */
    struct chunk *chunks;   /* of a row that a section has */
    uint64_t torn, steps_done, rows_done, bytes_done, records_done;
    struct cli_progress progress;
    bool differs;
    char kind[16]; /* "differs", "missing", or "past" */
    char said[400];
    uint64_t bad_step, bad_rank;
    const char *bad_path;
};

/* ---- what is found ---- */

static void found_fault(struct replay *replay, const char *kind, uint64_t step, uint64_t rank, const char *path,
                        const char *format, ...) __attribute__((format(printf, 6, 7)));
static void found_fault(struct replay *replay, const char *kind, uint64_t step, uint64_t rank, const char *path,
                        const char *format, ...)
{
    va_list values;
    replay->differs = true;
    (void)snprintf(replay->kind, sizeof replay->kind, "%s", kind);
    replay->bad_step = step;
    replay->bad_rank = rank;
    replay->bad_path = path;
    va_start(values, format);
    (void)vsnprintf(replay->said, sizeof replay->said, format, values);
    va_end(values);
}

/* ---- the sections ---- */

static int add_section(void *user, const struct trace_section *found)
{
    struct replay *replay = user;
    if (!found->records)
        return 0; /* the loader was closed before it had delivered a step */
    if (!list_room(&replay->sections, replay->count, &replay->capacity, sizeof *replay->sections))
        return 1;
    replay->sections[replay->count++] = (struct section){.path = replay->path, .found = *found};
    return 0;
}

static int by_first_step(const void *a, const void *b)
{
    const struct trace_header *one = &((const struct section *)a)->found.header;
    const struct trace_header *other = &((const struct section *)b)->found.header;
    if (one->first_step != other->first_step)
        return one->first_step < other->first_step ? -1 : 1;
    return one->rank < other->rank ? -1 : one->rank > other->rank;
}

static enum tokmap_status scan_traces(struct replay *replay, struct tokmap_error *error)
{
    for (size_t i = 0; i < replay->given->path_count; i++) {
        uint64_t torn;
        replay->path = replay->given->paths[i];
        enum tokmap_status status = trace_file_scan(replay->path, add_section, replay, &torn, error);
        if (status == TOKMAP_ERROR_INTERRUPTED)
            return error_set_memory(error, "the sections of the traces", replay->count * sizeof *replay->sections);
        if (status)
            return status;
        if (torn)
            cli_say(program,
                    "%s: the last %" PRIu64 " bytes are incomplete, because the program was killed; they are "
                    "ignored",
                    replay->path, torn);
        replay->torn += torn;
    }
    qsort(replay->sections, replay->count, sizeof *replay->sections, by_first_step);
    replay->active = calloc(replay->count + 1, sizeof *replay->active);
    return replay->active ? TOKMAP_OK : error_set_memory(error, "the sections of the traces", replay->count * 8);
}

/* Moves a section on to its first record of a step >= `step`. */
static enum tokmap_status section_seek(struct section *section, uint64_t step, struct tokmap_error *error)
{
    for (;;) {
        for (; section->at < section->held; section->at++)
            if (section->records[section->at].step >= step)
                return TOKMAP_OK;
        const uint64_t left = section->found.records - section->read;
        if (!left) {
            free(section->records);
            section->records = NULL;
            section->at = section->held = 0;
            return TOKMAP_OK;
        }
        if (!section->records && !(section->records = malloc(RECORDS_AT_ONCE * sizeof *section->records)))
            return error_set_memory(error, "the records of a trace", RECORDS_AT_ONCE * sizeof *section->records);
        const uint64_t count = min64(left, RECORDS_AT_ONCE);
        enum tokmap_status status = trace_file_read(
            section->path, section->found.offset + section->read * TRACE_RECORD_BYTES, count, section->records, error);
        if (status)
            return status;
        section->read += count;
        section->at = 0;
        section->held = count;
    }
}

/* Returns whether the run had the past, before the section's first step, that the loader's run had. */
static enum tokmap_status check_past(struct replay *replay, const struct section *section, struct tokmap_error *error)
{
    const struct trace_header *header = &section->found.header;
    struct tokmap_cursor cursor;
    if (header->first_step > replay->info.steps) {
        found_fault(replay, "past", header->first_step, header->rank, section->path,
                    "begins at step %" PRIu64 ", but the run ends before", header->first_step);
        return TOKMAP_OK;
    }
    enum tokmap_status status = tokmap_run_cursor(replay->run, header->first_step, &cursor, error);
    if (!status && (cursor.past[0] != header->past[0] || cursor.past[1] != header->past[1]))
        found_fault(replay, "past", header->first_step, header->rank, section->path,
                    "was written by a run with another past before step %" PRIu64 ": its text or its data was "
                    "changed since, or the trace belongs to another run",
                    header->first_step);
    return status;
}

/* Finds the sections that have a record of the next step >= *step, and that step. Returns with no active section at the
 * end. */
static enum tokmap_status next_step(struct replay *replay, uint64_t *step, struct tokmap_error *error)
{
    uint64_t nearest = TOKMAP_FOREVER;
    enum tokmap_status status = TOKMAP_OK;
    replay->active_count = 0;
    for (size_t i = replay->ended; i < replay->count && !status && !replay->differs; i++) {
        struct section *section = &replay->sections[i];
        if (section->found.end_step <= *step) {
            free(section->records);
            section->records = NULL;
            section->at = section->held = 0;
            replay->ended += replay->ended == i;
            continue;
        }
        if (section->found.header.first_step > nearest)
            break;
        if (i >= replay->begun) {
            replay->begun = i + 1;
            status = check_past(replay, section, error);
        }
        if (!status)
            status = section_seek(section, *step, error);
        if (status || section->at == section->held)
            continue;
        const uint64_t at = section->records[section->at].step;
        if (at < nearest)
            replay->active_count = 0;
        if (at <= nearest) {
            nearest = at;
            replay->active[replay->active_count++] = section;
        }
    }
    *step = nearest;
    return status;
}

/* ---- rows ---- */

static int by_first_row(const void *a, const void *b)
{
    const struct section *one = *(struct section *const *)a, *other = *(struct section *const *)b;
    if (one->first != other->first)
        return one->first < other->first ? -1 : 1;
    return one->rows < other->rows ? -1 : one->rows > other->rows;
}

/* Finds how the rows of a section are assigned to positions, and adds it to those that are known. */
static enum tokmap_status find_assignment(struct replay *replay, struct section *section, struct tokmap_error *error)
{
    const struct trace_header *header = &section->found.header;
    const bool moved = header->balance || header->nodes;
    const struct assignment_rule rule = {moved ? header->world : 1, header->rows, header->balance, header->nodes};
    for (section->assignment = 0; section->assignment < replay->assignment_count; section->assignment++) {
        const struct assignment_rule *known = &replay->assignments[section->assignment].rule;
        if (known->world == rule.world && known->rows == rule.rows && known->scale == rule.scale &&
            known->nodes == rule.nodes)
            return TOKMAP_OK;
    }
    if (!list_room(&replay->assignments, replay->assignment_count, &replay->assignment_capacity,
                   sizeof *replay->assignments))
        return error_set_memory(error, "the assignments of rows", replay->assignment_count * sizeof(struct assignment));
    return assignment_init(&replay->assignments[replay->assignment_count++], replay->run, &rule, error);
}

static uint64_t row_of(const struct replay *replay, const struct section *section, uint64_t i)
{
    return assignment_row(&replay->assignments[section->assignment], section->first + i);
}

/* Returns the hash of a row as it was in a slot with tokens of `width` bytes. A row of the run that is wider has narrow
 * tokens only, if the loader delivered it: then it is the same row. */
static uint64_t hash_row(const struct replay *replay, const void *row, uint64_t tokens, uint32_t width, uint64_t number)
{
    if (width == replay->width)
        return trace_hash(row, tokens * width, number);
    ids_convert(replay->narrow, width, row, tokens);
    return trace_hash(replay->narrow, tokens * width, number);
}

/* Counts the tokens of excluded documents in a row, in which the loader put the pad id. */
static enum tokmap_status count_excluded(struct replay *replay, const struct tokmap_place *place,
                                         struct tokmap_error *error)
{
    struct exclusion_walk walk;
    uint64_t count, first, tokens, all = 0;
    const enum tokmap_status status =
        run_row_extents(replay->run, place, replay->extents, run_extents_most(replay->run), &count, error);
    if (status || place->source == TOKMAP_NO_SOURCE)
        return status;
    exclusion_walk_begin(&walk, run_exclusions(replay->run), place, replay->extents, count);
    while (exclusion_walk_next(&walk, &first, &tokens))
        all += tokens;
    replay->excluded += all;
    replay->excluded_rows += all != 0;
    return TOKMAP_OK;
}

static struct columns columns_of(const struct trace_header *header)
{
    return (struct columns){header->context_rank, header->context_world,
                            (enum tokmap_context_layout)header->context_layout};
}

/* Returns whether a loader could have delivered slices of the rows of seq_len tokens of this run. */
static bool is_divisible(const struct replay *replay, const struct columns *columns, uint64_t seq_len)
{
    const uint64_t divisor = columns_divisor(columns);
    bool divisible = seq_len % divisor == 0;
    for (uint64_t i = 0; i < replay->info.sources && !columns_are_fixed(columns); i++)
        divisible = divisible && run_source_pad(replay->run, i) % divisor == 0;
    return divisible;
}

/* Returns the sum of the hashes of a row's chunks. */
static enum tokmap_status hash_slice(struct replay *replay, const struct section *section, const void *row,
                                     const struct tokmap_place *place, uint64_t seq_len, uint64_t *sum,
                                     struct tokmap_error *error)
{
    const struct columns columns = columns_of(&section->found.header);
    uint64_t extents = 0, chunks;
    const enum tokmap_status status =
        run_row_extents(replay->run, place, replay->extents, run_extents_most(replay->run), &extents, error);
    if (status)
        return status;
    chunks = columns_of_row(&columns, seq_len, replay->extents, extents, replay->chunks);
    for (uint64_t k = 0; k < chunks; k++) {
        const struct chunk *chunk = &replay->chunks[k];
        *sum += hash_row(replay, (const uint8_t *)row + chunk->first * replay->width,
                         chunk->count + (replay->info.lookahead > 0), section->found.header.width,
                         trace_chunk_number(place->row, seq_len, chunk->first));
    }
    return TOKMAP_OK;
}

/* Adds the chunks of those of the rows [first, first + count), which were read, that a section has to its sum. */
static enum tokmap_status hash_slices(struct replay *replay, struct section *section, const struct tokmap_batch *batch,
                                      uint64_t first, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t k = 0; k < section->rows && !status; k++) {
        const uint64_t i = row_of(replay, section, k) - first; /* of a row before them it is large */
        if (i < batch->count)
            status =
                hash_slice(replay, section, batch->rows[i], &batch->places[i], batch->seq_len, &section->sum, error);
    }
    return status;
}

/* Reads rows [first, first + count) of a step, and sets the hashes that are needed. */
static enum tokmap_status hash_rows(struct replay *replay, uint64_t step, uint64_t first, uint64_t count,
                                    struct tokmap_error *error)
{
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    for (uint64_t i = 0; i < count; i++) {
        replay->steps[i] = step;
        replay->rows[i] = first + i;
    }
    enum tokmap_status status =
        tokmap_loader_read(replay->loader, replay->steps, replay->rows, count, NULL, &batch, error);
    for (uint64_t i = 0; i < count && !status && exclusions_any(run_exclusions(replay->run)); i++)
        status = count_excluded(replay, &batch.places[i], error);
    for (uint64_t i = 0; i < count && !status; i++)
        for (uint32_t w = 0; w < 2; w++)
            if (replay->wanted[first + i] & (WIDTH_2 << w))
                replay->hashes[w][first + i] = hash_row(replay, batch.rows[i], batch.row_tokens, 2u << w, first + i);
    for (size_t k = 0; k < replay->active_count && !status; k++)
        if (replay->active[k]->found.header.context_world > 1)
            status = hash_slices(replay, replay->active[k], &batch, first, error);
    replay->rows_done += count;
    replay->bytes_done += count * batch.row_tokens * replay->width;
    return status;
}

/* Reports that rows from `row` on of a step are in no record: the rank that lacks it, as far as the others show. */
static void missing_row(struct replay *replay, uint64_t step, uint64_t row, uint64_t batch)
{
    const struct section *section = replay->active[0];
    const uint64_t world = section->found.header.world;
    uint64_t position = 0;
    while (assignment_row(&replay->assignments[section->assignment], position) != row)
        position++;
    uint64_t rank = mul_div(position, world, batch);
    while (rank + 1 < world && mul_div(rank + 1, batch, world) <= position)
        rank++;
    found_fault(replay, "missing", step, rank, NULL,
                "has no record in any trace, although rank %" PRIu64 " of %" PRIu64 " has one; name all traces, or set "
                "--steps to the steps that all ranks have finished",
                section->found.header.rank, world);
}

/* Returns whether the sections that cut rows like this one have all rows of a step, for context rank `rank`. */
static bool has_rows(const struct replay *replay, const struct trace_header *like, uint64_t rank, uint64_t batch)
{
    uint64_t rows = 0;
    for (uint64_t row = 0; row < batch; row++)
        replay->wanted[row] &= (uint8_t)~COVERED;
    for (size_t i = 0; i < replay->active_count; i++) {
        const struct section *section = replay->active[i];
        const struct trace_header *header = &section->found.header;
        if (header->context_world == like->context_world && header->context_layout == like->context_layout &&
            header->context_rank == rank)
            for (uint64_t k = 0; k < section->rows; k++)
                replay->wanted[row_of(replay, section, k)] |= COVERED;
    }
    while (rows < batch && (replay->wanted[rows] & COVERED))
        rows++;
    return rows == batch;
}

/* Reports the first slice of a row that no section has, if none of the ways to cut rows that the sections tell of has
 * all slices. */
static void check_slices(struct replay *replay, uint64_t step, uint64_t batch)
{
    uint64_t lacking = 0;
    for (size_t i = 0; i < replay->active_count; i++) {
        const struct trace_header *like = &replay->active[i]->found.header;
        uint64_t rank = 0;
        /* The first rank without a section ends the loop, so it is as long as there are sections. */
        while (rank < like->context_world && has_rows(replay, like, rank, batch))
            rank++;
        if (rank == like->context_world)
            return;
        lacking = i ? lacking : rank;
    }
    const struct trace_header *header = &replay->active[0]->found.header;
    found_fault(replay, "missing", step, header->rank, NULL,
                "has no record of rank %" PRIu64 " of the %" PRIu64 " that share rows in any trace, although rank "
                "%" PRIu64
                " of them has one; name all traces, or set --steps to the steps that all ranks have finished",
                lacking, header->context_world, header->context_rank);
}

/* Finds the rows of the active sections. Returns without setting replay->differs if the run has them. */
static enum tokmap_status find_slices(struct replay *replay, uint64_t step, uint64_t batch, struct tokmap_error *error)
{
    const struct tokmap_phase_info phase = info_of_phase(replay->run, tokmap_run_phase_at(replay->run, step));
    enum tokmap_status status = TOKMAP_OK;
    memset(replay->wanted, 0, batch);
    for (size_t i = 0; i < replay->active_count && !status; i++) {
        struct section *section = replay->active[i];
        const struct trace_header *header = &section->found.header;
        if (header->world > batch || !tokmap_run_delivers(replay->run, step)) {
            found_fault(replay, "differs", step, header->rank, section->path,
                        batch ? "was delivered to %" PRIu64 " ranks, but the run skips the step or has fewer rows"
                              : "was delivered to %" PRIu64 " ranks, but the run ends before",
                        header->world);
            return TOKMAP_OK;
        }
        const struct columns columns = columns_of(header);
        if (!is_divisible(replay, &columns, phase.seq_len)) {
            found_fault(replay, "differs", step, header->rank, section->path,
                        "was delivered in slices to %" PRIu64 " ranks, which rows of %" PRIu64
                        " tokens cannot be cut into",
                        header->context_world, phase.seq_len);
            return TOKMAP_OK;
        }
        section->sum = 0;
        section->first = mul_div(header->rank, batch, header->world);
        section->rows = mul_div(header->rank + 1, batch, header->world) - section->first;
        status = find_assignment(replay, section, error);
        if (!status)
            status = assignment_step(&replay->assignments[section->assignment], step, error);
        for (uint64_t k = 0; k < section->rows && !status; k++)
            replay->wanted[row_of(replay, section, k)] |= header->context_world > 1 ? SLICE
                                                          : header->width == 4      ? WIDTH_4
                                                                                    : WIDTH_2;
    }
    return status;
}

static void compare_sum(struct replay *replay, uint64_t step, const struct section *section)
{
    const uint64_t *hashes = replay->hashes[section->found.header.width == 4];
    const uint64_t given = section->records[section->at].sum;
    uint64_t sum = section->sum;
    for (uint64_t k = 0; k < section->rows && section->found.header.context_world == 1; k++)
        sum += hashes[row_of(replay, section, k)];
    replay->records_done++;
    if (sum == given)
        return;
    if (section->found.header.balance || section->found.header.nodes)
        found_fault(replay, "differs", step, section->found.header.rank, section->path,
                    "delivered %" PRIu64 " assigned rows with the sum %016" PRIx64 ", and the data gives %016" PRIx64,
                    section->rows, given, sum);
    else
        found_fault(replay, "differs", step, section->found.header.rank, section->path,
                    "delivered rows %" PRIu64 " to %" PRIu64 " with the sum %016" PRIx64 ", and the data gives "
                    "%016" PRIx64,
                    section->first, section->first + section->rows - 1, given, sum);
}

static enum tokmap_status replay_step(struct replay *replay, uint64_t step, struct tokmap_error *error)
{
    const uint64_t batch = tokmap_run_rows(replay->run, step);
    const uint64_t most = tokmap_loader_rows(replay->loader);
    enum tokmap_status status = find_slices(replay, step, batch, error);
    if (status || replay->differs)
        return status;
    const uint8_t *missing = memchr(replay->wanted, 0, batch);
    if (missing) {
        missing_row(replay, step, (uint64_t)(missing - replay->wanted), batch);
        return TOKMAP_OK;
    }
    check_slices(replay, step, batch);
    for (uint64_t done = 0, count; done < batch && !status && !replay->differs; done += count) {
        count = min64(batch - done, most);
        status = hash_rows(replay, step, done, count, error);
    }
    qsort(replay->active, replay->active_count, sizeof *replay->active, by_first_row);
    for (size_t i = 0; i < replay->active_count && !status && !replay->differs; i++)
        compare_sum(replay, step, replay->active[i]);
    replay->steps_done++;
    return status;
}

/* ---- the whole ---- */

static enum tokmap_status open_run(struct replay *replay, const char *name, struct tokmap_error *error)
{
    struct tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    struct tokmap_batch batch = TOKMAP_BATCH_INIT;
    enum tokmap_status status = tokmap_run_open(&replay->run, name, NULL, error);
    if (status)
        return status;
    run_warn(program, replay->run, name);
    sources_warn(program, replay->run, name);
    replay->info = info_of_run(replay->run);
    const uint64_t row_bytes = (replay->info.seq_len_most + replay->info.lookahead) * 4;
    options.fields = 0;
    options.threads = 0;
    options.rows = max64(1, min64(READ_BYTES / row_bytes, ROWS_AT_ONCE));
    options.trust_files = 1; /* a wrong id is a difference */
    status = tokmap_loader_open(&replay->loader, replay->run, &options, error);
    if (status)
        return status;
    status = tokmap_loader_read(replay->loader, NULL, NULL, 0, NULL, &batch, error);
    replay->width = batch.width;
    const uint64_t rows = tokmap_loader_rows(replay->loader);
    replay->steps = calloc(rows, sizeof *replay->steps);
    replay->rows = calloc(rows, sizeof *replay->rows);
    replay->narrow = malloc(row_bytes);
    replay->extents = calloc(run_extents_most(replay->run), sizeof *replay->extents);
    const struct columns documents = {0, 2, TOKMAP_CONTEXT_ZIGZAG_DOCUMENTS};
    replay->chunks = calloc(columns_chunks_most(&documents, run_extents_most(replay->run)), sizeof *replay->chunks);
    replay->wanted = calloc(replay->info.batch_most, 1);
    for (int w = 0; w < 2; w++)
        replay->hashes[w] = calloc(replay->info.batch_most, sizeof *replay->hashes[w]);
    if (!status && (!replay->steps || !replay->rows || !replay->narrow || !replay->extents || !replay->chunks ||
                    !replay->wanted || !replay->hashes[0] || !replay->hashes[1]))
        status = error_set_memory(error, "a batch", row_bytes + 17 * replay->info.batch_most);
    return status;
}

static enum tokmap_status compare(struct replay *replay, struct tokmap_error *error)
{
    const struct replay_arguments *given = replay->given;
    uint64_t step, expected = 0;
    enum tokmap_status status = TOKMAP_OK;
    bool any = false;
    replay->first = given->steps_given ? given->steps.first : 0;
    replay->end = given->steps_given ? given->steps.end : TOKMAP_FOREVER;
    for (step = replay->first; !status && !replay->differs && !os_signal_caught(); step++) {
        status = next_step(replay, &step, error);
        if (status || replay->differs)
            break;
        if (step >= replay->end)
            step = TOKMAP_FOREVER;
        if (!any && !given->steps_given)
            expected = step;
        else if (!any)
            expected = replay->first;
        any = true;
        while (expected < min64(step, min64(replay->end, replay->info.steps)) &&
               !tokmap_run_delivers(replay->run, expected))
            expected++;
        if (expected < step && (step != TOKMAP_FOREVER || given->steps_given) &&
            expected < min64(replay->end, replay->info.steps)) {
            found_fault(replay, "missing", expected, 0, NULL, "has no record in any trace; name all traces");
            break;
        }
        if (step == TOKMAP_FOREVER)
            break;
        status = replay_step(replay, step, error);
        expected = step + 1;
        cli_progress_update(&replay->progress, replay->steps_done);
    }
    return status;
}

static void report(const struct replay *replay, const char *name, double seconds)
{
    struct cli_report report;
    cli_report_begin(&report, replay->given->json, NULL);
    cli_member(&report, "run", cli_text(name));
    cli_member(&report, "same", cli_bool(!replay->differs));
    cli_numbers(&report, "steps|records|rows|bytes|excluded_tokens|excluded_rows|sections|torn_bytes",
                replay->steps_done, replay->records_done, replay->rows_done, replay->bytes_done, replay->excluded,
                replay->excluded_rows, replay->count, replay->torn);
    cli_member(&report, "seconds", cli_real(seconds));
    if (replay->differs) {
        cli_report_object(&report, "first");
        cli_member(&report, "kind", cli_text(replay->kind));
        cli_numbers(&report, "step|rank", replay->bad_step, replay->bad_rank);
        cli_member_text_if(&report, "path", replay->bad_path);
        cli_member(&report, "message", cli_text(replay->said));
        cli_report_close(&report);
    }
    cli_report_end(&report);
    if (replay->given->json)
        return;
    if (replay->differs)
        cli_print("%s: step %" PRIu64 ", rank %" PRIu64 ": %s%s%s\n", name, replay->bad_step, replay->bad_rank,
                  replay->bad_path ? replay->bad_path : "", replay->bad_path ? " " : "", replay->said);
    else
        cli_print("%s: the same: %s steps, %s rows\n", name, CLI_COUNT(replay->steps_done),
                  CLI_COUNT(replay->rows_done));
    if (!replay->differs && exclusions_any(run_exclusions(replay->run)))
        cli_print("%s: from step %" PRIu64 " on, the pad id replaced %s of excluded documents, in %s\n", name,
                  run_exclusions(replay->run)->events[0].step, CLI_COUNTED(replay->excluded, "token"),
                  CLI_COUNTED(replay->excluded_rows, "row"));
    if (replay->bytes_done && seconds > 0 && !replay->given->quiet)
        cli_say(program, "read %s in %s, %s/s", CLI_BYTES(replay->bytes_done), CLI_SECONDS(seconds),
                CLI_BYTES((uint64_t)((double)replay->bytes_done / seconds)));
}

static void replay_free(struct replay *replay)
{
    for (size_t i = 0; i < replay->count; i++)
        free(replay->sections[i].records);
    free(replay->sections);
    free(replay->active);
    free(replay->steps);
    free(replay->rows);
    free(replay->narrow);
    free(replay->extents);
    free(replay->wanted);
    free(replay->hashes[0]);
    free(replay->hashes[1]);
    for (size_t i = 0; i < replay->assignment_count; i++)
        assignment_free(&replay->assignments[i]);
    free(replay->assignments);
    free(replay->chunks);
    tokmap_loader_close(replay->loader);
    tokmap_run_close(replay->run);
}

static int replay_run(const struct cli_command *command, const struct replay_arguments *given, const char *name)
{
    struct tokmap_error error = {0};
    struct replay replay = {.given = given};
    cli_signals_catch();
    const uint64_t start = os_clock_ns();
    enum tokmap_status status = open_run(&replay, name, &error);
    if (!status)
        status = scan_traces(&replay, &error);
    cli_progress_start(&replay.progress, "replaying", "steps", 0, given->quiet ? CLI_PROGRESS_NONE : given->progress);
    if (!status && !replay.count)
        status = error_set(&error, TOKMAP_ERROR_NOT_FOUND, given->paths[0], TOKMAP_NO_OFFSET,
                           "the traces have no step; name traces of loaders that have delivered one");
    if (!status)
        status = compare(&replay, &error);
    cli_progress_end(&replay.progress);
    const double seconds = (double)(os_clock_ns() - start) * 1e-9;
    cli_signals_end(program, NULL);
    int result = replay.differs ? CLI_FAILED : CLI_DONE;
    if (status)
        result = command_failed(command, &error);
    else
        report(&replay, name, seconds);
    replay_free(&replay);
    return cli_finish(program, result);
}

static int replay_operands(const struct cli_command *command, const char **operands, size_t count, void *user)
{
    struct replay_arguments *given = user;
    if (!count)
        return cli_misused(command, "expected a run file");
    if (!given->traces.count)
        return cli_misused(command, "name the traces with --trace");
    /* The shell has expanded a pattern after --trace: its first file is the option's value, the others are operands. */
    given->paths = malloc((count - 1 + given->traces.count) * sizeof *given->paths);
    if (!given->paths) {
        cli_say(program, "out of memory");
        return CLI_FAILED;
    }
    for (size_t i = 0; i < given->traces.count; i++)
        given->paths[given->path_count++] = given->traces.values[i];
    for (size_t i = 1; i < count; i++)
        given->paths[given->path_count++] = operands[i];
    const int result = replay_run(command, given, operands[0]);
    free(given->paths);
    return result;
}

int command_replay(int argc, char **argv)
{
    struct replay_arguments given = {0};
    const struct cli_option options[] = {
        {0, "trace", CLI_LIST, &given.traces, NULL, "FILE", "a trace; give those of all ranks", NULL},
        {0, "steps", CLI_RANGE, &given.steps, &given.steps_given, "A..B", "compare only these steps, and all of them",
         NULL},
        {0, "json", CLI_FLAG, &given.json, NULL, NULL, "print a JSON object", NULL},
        CLI_OPTION_PROGRESS(given.progress),
        {'q', "quiet", CLI_FLAG, &given.quiet, NULL, NULL, "print only the result", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "RUN --trace FILE... [OPTION]...",
        .summary =
            "Recomputes from the data what the loaders of a run delivered, compares it with the traces that they "
            "wrote (option trace of a loader), and names the first step and rank that differ or are missing.",
        .details = "The exit status is 1 if something differs or is missing.\n\n"
                   "Examples:\n"
                   "  tokmap replay train.run --trace rank*.trace\n"
                   "  tokmap replay train.run --steps 0..1000 --trace rank0.trace rank1.trace\n",
        CLI_OPTIONS(options),
        .operands = CLI_RUNS | CLI_FILES,
    };
    return cli_run(&command, argc, argv, replay_operands, &given);
}
