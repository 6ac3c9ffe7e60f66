/* SPDX-License-Identifier: MIT */
#include "pack_stages.h"

#include "common/error.h"
#include "pack_output.h"
#include "shard_about.h"
#include "unit_record.h"

/* ---- files ---- */

static struct stage_id unit_file(void *self, uint64_t number)
{
    const struct pack_stages *stages = self;
    return unit_record_id(stages->folder, stages->found.key, number);
}

static struct stage_id cuts_file(void *self, uint64_t number)
{
    const struct pack_found *found = &((const struct pack_stages *)self)->found;
    (void)number;
    return shuffle_cut_id(&found->units, found->key);
}

static struct stage_id merged_file(void *self, uint64_t number)
{
    const struct pack_stages *stages = self;
    return merged_shard_id(stages->folder, stages->found.key, number);
}

/* ---- documents left out ---- */

struct unit_scan_options pack_scan_options(const struct pack_options *options)
{
    const struct tokenizer_info info = pack_tokenizer(options->tokenizer, options->vocabulary);
    struct unit_scan_options scanning = {.stage = {.drop = options->drop,
                                                   .in_units = options->unit_bytes != 0,
                                                   .sync = options->sync,
                                                   .checkpoint_ns = options->checkpoint_ns,
                                                   .stop = options->stop,
                                                   .user = options->user},
                                         .corpus = options->corpus,
                                         .other_output = options->other_output,
                                         .listed = options->listed,
                                         .threads = options->threads,
                                         .compared = options->compared};
    scanning.corpus.vocabulary = info.vocabulary;
    return scanning;
}

/* ---- units ---- */

static enum tokmap_status units_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    (void)error;
    *count = ((const struct pack_stages *)self)->inputs->count;
    return TOKMAP_OK;
}

static enum tokmap_status unit_make(void *self, const struct stage_id *id, struct tokmap_error *error)
{
    const struct pack_stages *stages = self;
    return stages->unit(stages->user, id->number, id, error);
}

/* ---- shuffle ---- */

static enum tokmap_status cuts_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    struct pack_stages *stages = self;
    const struct stage_id record = unit_file(stages, 0);
    *count = 1;
    return sorted_units_read(&stages->found.units, stages->inputs, stages->pack->shuffle->seed,
                             pack_output_sets(stages->pack), &record, error);
}

static enum tokmap_status cuts_make(void *self, const struct stage_id *id, struct tokmap_error *error)
{
    struct pack_stages *stages = self;
    const struct pack_options *pack = stages->pack;
    const struct shuffle_cut_options cut = {.units = &stages->found.units,
                                            .shard_tokens = pack->shard_tokens,
                                            .memory =
                                                pack->shuffle->memory ? pack->shuffle->memory : SHUFFLE_CHUNK_BYTES,
                                            .sync = pack->sync,
                                            .checkpoint_ns = pack->checkpoint_ns,
                                            .stop = pack->stop,
                                            .stop_user = pack->user,
                                            .progress = stages->progress,
                                            .user = stages->user};
    return shuffle_cut_run(&cut, id, error);
}

static enum tokmap_status shards_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    struct pack_stages *stages = self;
    const struct stage_id cut = cuts_file(stages, 0);
    const enum tokmap_status status = shuffle_cuts_read(&stages->found.cuts, &stages->found.units, &cut, error);
    *count = shard_merge_count(&stages->found.cuts);
    return status;
}

static char *merged_about(const void *options, uint32_t set, const struct shard_totals *shard, uint64_t *bytes)
{
    static const struct pack_result nothing; /* a shard of a set has its own totals */
    return shard_about_text(options, &nothing, set, shard, bytes);
}

static enum tokmap_status merged_make(void *self, const struct stage_id *id, struct tokmap_error *error)
{
    struct pack_stages *stages = self;
    const struct pack_options *pack = stages->pack;
    const struct shard_merge_options merge = {.units = &stages->found.units,
                                              .cuts = &stages->found.cuts,
                                              .cut = cuts_file(self, 0),
                                              .shard = pack_output_shard(pack),
                                              .shard_tokens = pack->shard_tokens,
                                              .record_limit = pack->corpus.record_limit,
                                              .memory = pack->shuffle->memory,
                                              .checkpoint_ns = pack->checkpoint_ns,
                                              .about = merged_about,
                                              .owner = pack,
                                              .stop = pack->stop,
                                              .stop_user = pack->user,
                                              .progress = stages->progress,
                                              .user = stages->user};
    return shard_merge_run(&merge, id, error);
}

/* ---- the table ---- */

static const struct stage packing[] = {{TASK_PACKS, false, units_count, unit_file, unit_make}};
static const struct stage shuffling[] = {{TASK_SORTS, false, units_count, unit_file, unit_make},
                                         {TASK_CUTS, true, cuts_count, cuts_file, cuts_make},
                                         {TASK_MERGES, false, shards_count, merged_file, merged_make}};

const struct stage *pack_stages_list(const struct pack_options *options, size_t *count)
{
    *count = options->shuffle ? sizeof shuffling / sizeof *shuffling : 1;
    return options->shuffle ? shuffling : packing;
}

enum tokmap_status pack_stages_begin(struct pack_stages *stages, struct tokmap_error *error)
{
    return unit_record_key(stages->pack, &stages->found.key) ? TOKMAP_OK : error_set_memory(error, "the stages", 0);
}

void pack_stages_free(struct pack_stages *stages)
{
    sorted_units_free(&stages->found.units);
}
