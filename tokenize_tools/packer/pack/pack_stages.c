/* SPDX-License-Identifier: MIT */
/* pack_stages.c - see pack_stages.h. */
#include "pack_stages.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "pack_output.h"
#include "shard_about.h"
#include "unit_record.h"

/* A stage whose items are files of one kind (stage_file.h). */
struct row {
    struct stage stage;
    enum stage_kind kind;
    enum tokmap_status (*make)(struct pack_stages *stages, const struct stage_id *id, struct tokmap_error *error);
};

/* ---- files ---- */

static struct stage_id id_of(const struct pack_stages *stages, enum stage_kind kind, uint64_t number)
{
    const struct pack_found *found = &stages->found;
    return kind == STAGE_PACKED ? unit_record_id(stages->folder, found->key, number)
           : kind == STAGE_CUTS ? shuffle_cut_id(&found->units, found->key)
                                : merged_shard_id(stages->folder, found->key, number);
}

static const struct row *row_of(const struct stage *stage)
{
    return (const struct row *)(const void *)stage;
}

static enum tokmap_status files_list(void *self, const struct stage *stage, uint64_t count, bool *there,
                                     struct tokmap_error *error)
{
    return stage_list(((const struct pack_stages *)self)->folder, row_of(stage)->kind, count, there, error);
}

static enum tokmap_status file_find(void *self, const struct stage *stage, uint64_t number, struct tokmap_error *error)
{
    const struct stage_id id = id_of(self, row_of(stage)->kind, number);
    return stage_find(&id, error);
}

static enum tokmap_status file_make(void *self, const struct stage *stage, uint64_t number, struct tokmap_error *error)
{
    const struct stage_id id = id_of(self, row_of(stage)->kind, number);
    return row_of(stage)->make(self, &id, error);
}

/* ---- documents left out ---- */

struct unit_scan_options pack_scan_options(const struct pack_options *options)
{
    struct tokenizer_info info;
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
    pack_output_tokenizer(options, &info);
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

static enum tokmap_status unit_make(struct pack_stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    return stages->unit(stages->user, id->number, id, error);
}

/* ---- shuffle ---- */

static enum tokmap_status cuts_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    struct pack_stages *stages = self;
    const struct stage_id record = id_of(stages, STAGE_PACKED, 0);
    *count = 1;
    return sorted_units_read(&stages->found.units, stages->inputs, stages->pack->shuffle->seed,
                             pack_output_sets(stages->pack), &record, error);
}

static enum tokmap_status cuts_make(struct pack_stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
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
    const struct stage_id cut = id_of(stages, STAGE_CUTS, 0);
    const enum tokmap_status status = shuffle_cuts_read(&stages->found.cuts, &stages->found.units, &cut, error);
    *count = shard_merge_count(&stages->found.cuts);
    return status;
}

static char *merged_about(const void *options, uint32_t set, const struct shard_totals *shard, uint64_t *bytes)
{
    static const struct pack_result nothing; /* a shard of a set has its own totals */
    return shard_about_text(options, &nothing, set, shard, bytes);
}

static enum tokmap_status merged_make(struct pack_stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    const struct pack_options *pack = stages->pack;
    const struct shard_merge_options merge = {.units = &stages->found.units,
                                              .cuts = &stages->found.cuts,
                                              .cut = id_of(stages, STAGE_CUTS, 0),
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

static const struct row packing = {
    {TASK_PACKS, false, units_count, files_list, file_find, file_make}, STAGE_PACKED, unit_make};
static const struct row sort = {
    {TASK_SORTS, false, units_count, files_list, file_find, file_make}, STAGE_PACKED, unit_make};
static const struct row cut = {{TASK_CUTS, true, cuts_count, files_list, file_find, file_make}, STAGE_CUTS, cuts_make};
static const struct row merge = {
    {TASK_MERGES, false, shards_count, files_list, file_find, file_make}, STAGE_MERGED, merged_make};

size_t pack_stages_list(const struct pack_options *options, const struct stage *list[PACK_STAGES_MOST])
{
    size_t count = 0;
    if (!options->shuffle) {
        list[count++] = &packing.stage;
        return count;
    }
    list[count++] = &sort.stage;
    list[count++] = &cut.stage;
    list[count++] = &merge.stage;
    return count;
}

enum tokmap_status pack_stages_begin(struct pack_stages *stages, struct tokmap_error *error)
{
    return unit_record_key(stages->pack, &stages->found.key) ? TOKMAP_OK : error_set_memory(error, "the stages", 0);
}

void pack_stages_free(struct pack_stages *stages)
{
    sorted_units_free(&stages->found.units);
}
