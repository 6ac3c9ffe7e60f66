/* SPDX-License-Identifier: MIT */
/*
 * fetch_plan.c - see fetch_plan.h.
 *
 * The plan walks the run ahead of the loader, in a queue of rows of its own, and keeps the blocks that rows use in a
 * ring: up to USES_MOST uses. Of each block it knows the last use in the ring, and each use knows the next one of its
 * block. So when a row has been read, the next use of its block is at hand, and the cache is told: that is what
 * Belady's rule needs (cache_evict.c).
 *
 * Uses are asked for in their order, as long as the threads of the cache take more and at most AHEAD_BLOCKS blocks are
 * asked for that no row has used yet.
 *
 * Example: rows 0 to 4 use blocks A B A C B. Use 0 says that A is needed again at row 2, use 1 that B is at row 4.
 * After row 0, the cache hears "A: row 2"; after row 2, "A: unknown", so A goes before all others.
 */
#include "fetch_plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "dataset/dataset_fetch.h"
#include "platform/os.h"

#define USES_MOST ((uint64_t)1 << 18) /* a power of two */
#define AHEAD_BLOCKS 512
#define STEP_USES 64    /* that are added at a row */
#define FIRST_USES 4096 /* that are known before the first row is read */

struct use {
    uint64_t token; /* in the block */
    uint32_t row;   /* modulo 2^32 */
    uint32_t source;
    uint64_t next; /* number of the next use of the block; 0: it is not in the ring, because use 0 is the first */
};

struct fetch_plan {
    struct row_queue far;
    const struct residency *residency;
    struct {
        uint64_t blocks;        /* number of its block 0 in the tables */
        uint64_t shard;         /* used last */
    } * of;                     /* each source */
    struct use *uses;           /* use n is at n % USES_MOST */
    uint64_t first, asked, end; /* uses that rows have not read begin at `first`; those before `asked` are asked for */
    uint64_t rows;              /* that are in the ring, or were */
    uint64_t blocks;
    uint64_t *last;   /* 1 + the last use of each block, in the ring; 0: none */
    uint8_t *ordered; /* each block: it is asked for, and no row has used it since */
    uint64_t ahead;   /* how many are */
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
                                  struct tokmap_error *error)
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
    plan->residency = residency;
    for (uint64_t i = 0; i < residency->count; i++) {
        plan->of[i].blocks = plan->blocks;
        plan->blocks += residency->sources[i].remote ? dataset_fetch_blocks(dataset_of(plan, i)) : 0;
    }
    /* Pages of it that are not touched take no memory. */
    plan->memory_bytes = plan->blocks * (sizeof *plan->last + 1) + USES_MOST * sizeof *plan->uses;
    void *memory = NULL;
    if (os_memory_new(plan->memory_bytes, false, &memory))
        return error_set_memory(error, "the plan of what is fetched", plan->memory_bytes);
    plan->uses = memory;
    plan->last = (uint64_t *)(void *)(plan->uses + USES_MOST);
    plan->ordered = (uint8_t *)(plan->last + plan->blocks);
    const enum tokmap_status status = row_queue_init(&plan->far, schedule, rule, 1, 1, context, error);
    plan->far.gathers = gathers;
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
    memset(plan->last, 0, plan->blocks * (sizeof *plan->last + 1));
    plan->first = plan->asked = plan->end = plan->rows = plan->ahead = 0;
    plan->complete = false;
}

static uint64_t block_of(struct fetch_plan *plan, const struct use *use, uint64_t *end)
{
    return plan->of[use->source].blocks +
           dataset_fetch_block(dataset_of(plan, use->source), use->token, &plan->of[use->source].shard, end);
}

static void tell(const struct fetch_plan *plan, const struct use *use, uint64_t when)
{
    dataset_fetch_plan(dataset_of(plan, use->source), plan->of[use->source].shard, use->token, when);
}

/* Adds the uses of a row. Each is at most a block long. Returns false, and adds none, if the ring has no room. */
static bool row_add(struct fetch_plan *plan, const struct row_extents *row)
{
    const uint64_t before = plan->end;
    if (!row->count || !plan->residency->sources[row->source].remote)
        return true;
    const uint64_t tokens = gather_tokens(plan->far.gathers[row->source]);
    for (uint64_t i = 0; i < row->count; i++) {
        uint64_t token = row->extents[i].first_token % tokens, left = row->extents[i].tokens;
        for (uint64_t end, count; left; left -= count, token = (token + count) % tokens) {
            if (plan->end - plan->first == USES_MOST) {
                plan->end = before;
                return false;
            }
            struct use use = {token, (uint32_t)plan->rows, (uint32_t)row->source, 0};
            (void)block_of(plan, &use, &end);
            count = min64(left, end - token);
            *use_of(plan, plan->end++) = use;
        }
    }
    for (uint64_t number = before; number < plan->end; number++) {
        uint64_t end;
        const struct use *use = use_of(plan, number);
        const uint64_t block = block_of(plan, use, &end);
        if (plan->last[block])
            use_of(plan, plan->last[block] - 1)->next = number;
        else
            tell(plan, use, plan->rows);
        plan->last[block] = number + 1;
    }
    return true;
}

/* Walks ahead, until the ring has `most` uses more. */
static void extend(struct fetch_plan *plan, uint64_t most)
{
    const uint64_t goal = plan->end + most;
    while (!plan->complete && plan->end < goal && plan->end - plan->first < USES_MOST) {
        struct row_extents row;
        if (!row_queue_window(&plan->far, plan->rows, &row)) {
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
        uint64_t end;
        const uint64_t block = block_of(plan, use, &end);
        plan->ahead -= plan->ordered[block];
        plan->ordered[block] = 0;
        tell(plan, use, use->next ? use_of(plan, use->next)->row : UINT64_MAX);
        if (!use->next)
            plan->last[block] = 0;
    }
}

static void ask(struct fetch_plan *plan)
{
    for (plan->asked = max64(plan->asked, plan->first); plan->asked < plan->end && plan->ahead < AHEAD_BLOCKS;
         plan->asked++) {
        const struct use *use = use_of(plan, plan->asked);
        uint64_t end;
        const uint64_t block = block_of(plan, use, &end);
        if (plan->ordered[block])
            continue;
        const enum fetch_asked asked =
            dataset_fetch_ask(dataset_of(plan, use->source), plan->of[use->source].shard, use->token, use->row);
        if (asked == FETCH_BUSY)
            return;
        plan->ordered[block] = asked == FETCH_ASKED;
        plan->ahead += plan->ordered[block];
    }
}

void fetch_plan_next(struct fetch_plan *plan, uint64_t number)
{
    retire(plan, number);
    for (uint64_t i = 0; i < plan->residency->count; i++)
        if (plan->residency->sources[i].remote)
            dataset_fetch_now(dataset_of(plan, i), number);
    extend(plan, plan->rows ? STEP_USES : FIRST_USES);
    ask(plan);
}
