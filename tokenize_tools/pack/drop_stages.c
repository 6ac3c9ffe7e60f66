/* drop_stages.c - see drop_stages.h. */
#include "drop_stages.h"

#include <assert.h>

#include "common/error.h"

struct stages_work {
    const struct pack_options *options;
    const struct scan_inputs *inputs;
};

static enum tokmap_status inputs_scan(void *self, uint64_t unit, const struct stage_id *id, struct tokmap_error *error)
{
    const struct stages_work *work = self;
    uint64_t before;
    (void)unit;
    return unit_scan_run(work->options, work->inputs, id, &before, error);
}

static enum tokmap_status stage_begins(void *self, enum pack_stage stage, uint64_t first, uint64_t end,
                                       const bool *there, struct tokmap_error *error)
{
    return TOKMAP_OK;
}

static void stage_made(void *self, uint64_t number)
{
}

static void stage_progress(void *self, uint64_t done, uint64_t all)
{
}

static void stage_waits(void *self, bool waits)
{
}

enum tokmap_status drop_stages_run(struct drop_stages *stages, const struct pack_options *options,
                                   const struct scan_inputs *inputs, const char *folder, struct tokmap_error *error)
{
    struct pack_options pack = *options;
    struct stages_work work = {.options = &pack, .inputs = inputs};
    const struct pack_units all = {.count = 1};
    struct pack_stage_left left;
    const struct pack_stages_options doing = {.pack = &pack,
                                              .inputs = &all,
                                              .folder = folder,
                                              .tasks = 1,
                                              .scan = inputs_scan,
                                              .begins = stage_begins,
                                              .made = stage_made,
                                              .progress = stage_progress,
                                              .waits = stage_waits,
                                              .self = &work};
    pack.shuffle = NULL; /* its stages are those of work in units */
    const enum tokmap_status status = pack_stages_run(&doing, &stages->found, &left, error);
    if (status)
        return status;
    assert(!left.missing);
    const struct all_scans *scans = &stages->found.scans;
    stages->source = (struct drop_source){.folder = folder,
                                          .key = scans->key,
                                          .units = scans->units,
                                          .portions = scans->portions,
                                          .places = &scans->list[0].places};
    return TOKMAP_OK;
}

void drop_stages_free(struct drop_stages *stages)
{
    pack_found_free(&stages->found);
}
