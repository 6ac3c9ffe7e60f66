/* schedule.c - see schedule.h. */
#include "schedule.h"

#include <assert.h>

#include "common/bytes.h"
#include "run/run.h"

void schedule_init(struct schedule *schedule, const struct tokmap_run *run, uint64_t batch, uint64_t rank,
                   uint64_t world, uint64_t rows, uint64_t first_step)
{
    assert(rank < world && world <= batch);
    uint64_t widest = div_ceil(batch, world); /* rows of the largest slice, so that all ranks make the same calls */
    schedule->run = run;
    run_rank_rows(batch, rank, world, &schedule->first, &schedule->rows);
    schedule->calls = rows ? div_ceil(widest, rows) : 1;
    schedule->step = run_next_step(run, first_step);
    schedule->call = 0;
}

bool schedule_call(const struct schedule *schedule, struct call *call)
{
    if (schedule->step == TOKMAP_FOREVER)
        return false;
    uint64_t from = mul_div(schedule->call, schedule->rows, schedule->calls);
    uint64_t to = mul_div(schedule->call + 1, schedule->rows, schedule->calls);
    call->step = schedule->step;
    call->first_row = schedule->first + from;
    call->count = to - from;
    call->last_in_step = schedule->call + 1 == schedule->calls;
    return true;
}

void schedule_advance(struct schedule *schedule)
{
    assert(schedule->step != TOKMAP_FOREVER);
    if (++schedule->call < schedule->calls)
        return;
    schedule->call = 0;
    schedule->step = run_next_step(schedule->run, schedule->step + 1);
}

uint64_t schedule_rows(const struct schedule *schedule)
{
    return div_ceil(schedule->rows, schedule->calls);
}
