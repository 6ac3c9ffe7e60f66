/* SPDX-License-Identifier: MIT */
/* schedule.c - see schedule.h. */
#include "schedule.h"

#include <assert.h>

#include "common/bytes.h"
#include "run/run.h"

void slice_of_step(struct slice *slice, const struct tokmap_run *run, uint64_t rank, uint64_t world, uint64_t rows,
                   uint64_t step)
{
    struct run_step phase;
    assert(rank < world);
    if (step >= slice->from && step < slice->end)
        return;
    run_phase_of(run, step, &phase);
    run_rank_rows(phase.batch, rank, world, &slice->first, &slice->rows);
    slice->calls = run_calls(phase.batch, world, rows);
    slice->most = div_ceil(slice->rows, slice->calls);
    slice->seq_len = phase.seq_len;
    slice->from = step;
    slice->end = phase.same_end;
}

static void slice_next(struct schedule *schedule)
{
    if (schedule->step != TOKMAP_FOREVER)
        slice_of_step(&schedule->slice, schedule->run, schedule->rank, schedule->world, schedule->rows, schedule->step);
}

void schedule_init(struct schedule *schedule, const struct tokmap_run *run, uint64_t rank, uint64_t world,
                   uint64_t rows, uint64_t first_step)
{
    *schedule = (struct schedule){.run = run, .rank = rank, .world = world, .rows = rows};
    /* If the run is over already, the slice is that of the step before. */
    slice_of_step(&schedule->slice, run, rank, world, rows, first_step ? first_step - 1 : 0);
    schedule->step = run_next_step(run, first_step);
    slice_next(schedule);
}

bool schedule_call(const struct schedule *schedule, struct call *call)
{
    const struct slice *slice = &schedule->slice;
    if (schedule->step == TOKMAP_FOREVER)
        return false;
    run_call_rows(slice->rows, schedule->call, slice->calls, &call->first, &call->count);
    call->step = schedule->step;
    call->first += slice->first;
    call->seq_len = slice->seq_len;
    call->last_in_step = schedule->call + 1 == slice->calls;
    return true;
}

void schedule_advance(struct schedule *schedule)
{
    assert(schedule->step != TOKMAP_FOREVER);
    if (++schedule->call < schedule->slice.calls)
        return;
    schedule->call = 0;
    schedule->step = run_next_step(schedule->run, schedule->step + 1);
    slice_next(schedule);
}
