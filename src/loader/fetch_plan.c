/* SPDX-License-Identifier: MIT */
/*
 * fetch_plan.c - see fetch_plan.h.
 *
 * The plan walks the run ahead of the loader, in a queue of rows of its own, and keeps the cells that rows use in a
 * ring: up to USES_MOST uses. Of each cell it knows the last use in the ring, and each use knows the next one of its
 * cell. So when a row has been read, the next use of its cell is at hand, and the cache learns it: that is what
 * Belady's rule needs (cache_evict.c).
 *
 * Uses are asked for in their order, as long as the threads of the cache take more and at most cache_ahead()
 * cells are asked for that no row has used yet.
 *
 * The cache learns nothing of a shard that is not open yet, and all at once when it is.
 *
 * Example: rows 0 to 4 use cells A B A C B. Use 0 says that A is needed again at row 2, use 1 that B is at row 4.
 * After row 0, the cache hears "A: row 2"; after row 2, "A: unknown", so A goes before all others.
 */
#include "fetch_plan.h"

#include <stdlib.h>
#include <string.h>

#include "cache/cache_attach.h"
#include "cache/cache_evict.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset.h"
#include "dataset/dataset_fetch.h"
#include "platform/os.h"

#define USES_MOST ((uint64_t)1 << 18) /* a power of two */
#define STEP_USES 64                  /* that are added at a row */
#define FIRST_USES 4096               /* that are known before the first row is read */

struct use {
    uint64_t token; /* in the cell */
    uint64_t next;  /* number of the next use of the cell; 0: it is not in the ring, because use 0 is the first */
    uint32_t row;   /* modulo 2^32 */
    uint32_t source, shard;
    uint32_t cell;
};

struct source_cells {
    uint64_t cells;  /* number of its cell 0 in the tables */
    uint64_t shards; /* number of its shard 0 in `told` */
    uint64_t shard;  /* used last */
};

struct fetch_plan {
    struct row_queue far;
    struct fetch_reads reads;      /* extents is NULL for tokens */
    struct gather *const *gathers; /* of the residency */
    const struct residency *residency;
    struct source_cells *of;    /* each source */
    struct use *uses;           /* use n is at n % USES_MOST */
    uint64_t first, asked, end; /* uses that rows have not read begin at `first`; those before `asked` are asked for */
    uint64_t rows;              /* that are in the ring, or were */
    uint64_t cells;
    uint64_t *last;    /* 1 + the last use of each cell, in the ring; 0: none */
    uint64_t *uses_of; /* 1 + the first use of each cell, in the ring; 0: none */
    uint64_t *told;    /* the opening of each shard whose uses the cache knows */
    uint32_t *passed;  /* the pass in which each cell was there or was asked for */
    uint32_t pass;
    uint8_t *ordered;    /* each cell: it is asked for, and no row has used it since */
    uint64_t ahead;      /* the number of these */
    uint64_t changes;    /* of cache_reach(), as of the last row */
    uint64_t ahead_rows; /* between the row at hand and the last that was asked for */
    uint64_t memory_bytes;
    bool complete; /* the run has no more rows */
};

static const struct tokmap_dataset *dataset_of(const struct fetch_plan *plan, uint64_t source)
{
    return plan->residency->sources[source].views.dataset;
}

enum tokmap_status fetch_plan_new(struct fetch_plan **made, const struct residency *residency,
                                  const struct schedule *schedule, const struct assignment_rule *rule,
                                  const struct context *context, struct gather *const *gathers,
                                  const struct fetch_reads *reads, struct tokmap_error *error)
{
    bool any = false;
    *made = NULL;
    for (uint64_t i = 0; i < residency->count; i++)
        any = any || residency->sources[i].remote;
    if (!any)
        return TOKMAP_OK;
    struct fetch_plan *plan = *made = calloc(1, sizeof *plan);
    if (plan)
        plan->of = calloc(residency->count, sizeof *plan->of);
    if (!plan || !plan->of)
        return error_set_memory(error, "the plan of what is fetched", sizeof *plan);
    uint64_t shards = 0;
    plan->residency = residency;
    for (uint64_t i = 0; i < residency->count; i++) {
        const struct tokmap_dataset_info info = info_of_dataset(dataset_of(plan, i));
        plan->of[i].cells = plan->cells;
        plan->of[i].shards = shards;
        shards += residency->sources[i].remote ? info.shards : 0;
        plan->cells += residency->sources[i].remote ? dataset_fetch_cells(dataset_of(plan, i), CACHE_CELL) : 0;
    }
    /* Pages of it that are not touched take no memory. */
    plan->memory_bytes = plan->cells * (2 * sizeof *plan->last + sizeof *plan->passed + 1) +
                         shards * sizeof *plan->told + USES_MOST * sizeof *plan->uses;
    void *memory = NULL;
    if (os_memory_new(plan->memory_bytes, false, &memory))
        return error_set_memory(error, "the plan of what is fetched", plan->memory_bytes);
    plan->uses = memory;
    plan->last = (uint64_t *)(void *)(plan->uses + USES_MOST);
    plan->uses_of = plan->last + plan->cells;
    plan->told = plan->uses_of + plan->cells;
    plan->passed = (uint32_t *)(plan->told + shards);
    plan->ordered = (uint8_t *)(plan->passed + plan->cells);
    plan->pass = 1;
    if (reads)
        plan->reads = *reads;
    plan->gathers = gathers;
    const enum tokmap_status status = row_queue_init(&plan->far, schedule, rule, 1, 1, context, error);
    plan->far.gathers = gathers; /* of values, it does not use them */
    return status;
}

void fetch_plan_free(struct fetch_plan *plan)
{
    if (!plan)
        return;
    row_queue_free(&plan->far);
    os_memory_free(plan->uses, plan->memory_bytes);
    free(plan->of);
    free(plan);
}

static struct use *use_of(const struct fetch_plan *plan, uint64_t number)
{
    return &plan->uses[number & (USES_MOST - 1)];
}

void fetch_plan_restart(struct fetch_plan *plan)
{
    if (!plan)
        return;
    row_queue_restart(&plan->far);
    memset(plan->last, 0, plan->memory_bytes - USES_MOST * sizeof *plan->uses);
    plan->first = plan->asked = plan->end = plan->rows = plan->ahead = 0;
    plan->complete = false;
}

/* Returns the number of the cell with a token of a source, in the tables. *end: the first token after it. */
static uint64_t cell_of(struct fetch_plan *plan, uint64_t source, uint64_t token, uint64_t *end)
{
    struct source_cells *of = &plan->of[source];
    const struct fetch_cell cell = dataset_fetch_cell(dataset_of(plan, source), CACHE_CELL, token, &of->shard);
    *end = cell.end;
    return of->cells + cell.number;
}

/* Tells the cache all that is known of a shard that was just opened. */
static void tell_all(struct fetch_plan *plan, uint64_t source, uint64_t shard)
{
    uint64_t token, end, behind;
    dataset_fetch_shard(dataset_of(plan, source), shard, &token, &end);
    for (; token < end; token = behind) {
        const uint64_t first = plan->uses_of[cell_of(plan, source, token, &behind)];
        if (first)
            (void)dataset_fetch_plan(dataset_of(plan, source), shard, token, use_of(plan, first - 1)->row);
    }
}

/* Tells the cache when the cell of a use is needed. */
static void tell(struct fetch_plan *plan, const struct use *use, uint64_t when)
{
    uint64_t *told = &plan->told[plan->of[use->source].shards + use->shard];
    const uint64_t opening = dataset_fetch_plan(dataset_of(plan, use->source), use->shard, use->token, when);
    if (opening == *told)
        return;
    *told = opening;
    if (opening)
        tell_all(plan, use->source, use->shard);
}

/* Adds the uses of a row. Each is at most a cell long. Returns false, and adds none, if the ring has no room. */
static bool row_add(struct fetch_plan *plan, const struct row_extents *row)
{
    const uint64_t before = plan->end;
    if (!row->count || !plan->residency->sources[row->source].remote)
        return true;
    const uint64_t tokens = gather_tokens(plan->gathers[row->source]);
    for (uint64_t i = 0; i < row->count; i++) {
        uint64_t token = row->extents[i].first_token % tokens, left = row->extents[i].tokens;
        for (uint64_t end, count; left; left -= count, token = (token + count) % tokens) {
            if (plan->end - plan->first == USES_MOST) {
                plan->end = before;
                return false;
            }
            const uint64_t cell = cell_of(plan, row->source, token, &end);
            count = min64(left, end - token);
            *use_of(plan, plan->end++) = (struct use){.token = token,
                                                      .row = (uint32_t)plan->rows,
                                                      .source = (uint32_t)row->source,
                                                      .shard = (uint32_t)plan->of[row->source].shard,
                                                      .cell = (uint32_t)cell};
        }
    }
    for (uint64_t number = before; number < plan->end; number++) {
        const struct use *use = use_of(plan, number);
        const uint64_t cell = use->cell;
        if (plan->last[cell])
            use_of(plan, plan->last[cell] - 1)->next = number;
        else
            plan->uses_of[cell] = number + 1;
        if (!plan->last[cell])
            tell(plan, use, plan->rows);
        plan->last[cell] = number + 1;
    }
    return true;
}

/* Walks ahead, until the ring has `most` uses more. */
static void extend(struct fetch_plan *plan, uint64_t most)
{
    const uint64_t goal = plan->end + most;
    while (!plan->complete && plan->end < goal && plan->end - plan->first < USES_MOST) {
        struct row_extents row;
        const struct tokmap_place *place = row_queue_ahead(&plan->far, plan->rows);
        if (place)
            row = plan->reads.extents ? plan->reads.extents(plan->reads.user, place)
                                      : row_queue_extents(&plan->far, place);
        if (!place) {
            plan->complete = true; /* or an assignment failed: the loader reports it when it is there */
            return;
        }
        if (!row_add(plan, &row))
            return;
        row_queue_take(&plan->far, 1);
        plan->rows++;
    }
}

/* Takes the uses of rows below `number` out of the ring. */
static void retire(struct fetch_plan *plan, uint64_t number)
{
    for (; plan->first < plan->end; plan->first++) {
        const struct use *use = use_of(plan, plan->first);
        if ((int32_t)(use->row - (uint32_t)number) >= 0)
            return;
        const uint64_t cell = use->cell;
        plan->ahead -= plan->ordered[cell];
        plan->ordered[cell] = 0;
        plan->passed[cell] = 0;
        plan->uses_of[cell] = use->next ? use->next + 1 : 0;
        if (!use->next)
            plan->last[cell] = 0;
        tell(plan, use, use->next ? use_of(plan, use->next)->row : UINT64_MAX);
    }
}

/* Begins to ask again with the row at hand, because something that was there, or was asked for, may be absent. */
static void ask_again(struct fetch_plan *plan)
{
    while (plan->asked > plan->first) {
        const uint64_t cell = use_of(plan, --plan->asked)->cell;
        plan->ahead -= plan->ordered[cell];
        plan->ordered[cell] = 0;
    }
    plan->pass++;
}

static void ask(struct fetch_plan *plan, uint64_t row)
{
    for (plan->asked = max64(plan->asked, plan->first); plan->asked < plan->end; plan->asked++) {
        const struct use *use = use_of(plan, plan->asked);
        const struct tokmap_dataset *dataset = dataset_of(plan, use->source);
        uint64_t changes;
        const uint64_t rows = (uint32_t)(use->row - (uint32_t)row);
        const uint64_t reach = cache_reach(dataset_cache(dataset), &changes);
        if (rows >= reach || plan->ahead >= cache_ahead(dataset_cache(dataset)))
            return;
        plan->ahead_rows = rows;
        const uint64_t cell = use->cell;
        if (plan->passed[cell] == plan->pass)
            continue;
        if (plan->uses_of[cell])
            tell(plan, use, use_of(plan, plan->uses_of[cell] - 1)->row);
        const enum fetch_asked asked = dataset_fetch_ask(dataset, use->shard, use->token, use->row);
        if (asked == FETCH_BUSY)
            return;
        plan->passed[cell] = plan->pass;
        plan->ordered[cell] = asked == FETCH_ASKED;
        plan->ahead += plan->ordered[cell];
    }
}

void fetch_plan_next(struct fetch_plan *plan, uint64_t number)
{
    retire(plan, number);
    uint64_t changes = 0, of_one;
    for (uint64_t i = 0; i < plan->residency->count; i++) {
        struct cache *cache = dataset_cache(dataset_of(plan, i));
        if (!cache)
            continue;
        cache_now(cache, number, plan->ahead_rows);
        (void)cache_reach(cache, &of_one);
        changes += of_one;
    }
    if (changes != plan->changes)
        ask_again(plan);
    plan->changes = changes;
    extend(plan, plan->rows ? STEP_USES : FIRST_USES);
    ask(plan, number);
}
