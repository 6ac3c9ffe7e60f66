/* SPDX-License-Identifier: MIT */
/* pack_stages.c - see pack_stages.h. */
#include "pack_stages.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "dedup/near_resolve.h"
#include "pack_output.h"
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
    return kind == STAGE_SCAN     ? scan_file_id(stages->folder, found->key, number)
           : kind == STAGE_DROPS  ? drops_file_id(stages->folder, found->key, number, stages->inputs->count)
           : kind == STAGE_PACKED ? unit_record_id(stages->folder, found->key, number)
           : kind == STAGE_CUTS   ? shuffle_cut_id(&found->units, found->key)
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

static enum tokmap_status units_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    (void)error;
    *count = ((const struct pack_stages *)self)->inputs->count;
    return TOKMAP_OK;
}

struct drop_stage pack_drop_stage(const struct pack_options *options)
{
    return (struct drop_stage){.drop = options->drop,
                               .in_units = options->unit_bytes != 0,
                               .sync = options->sync,
                               .checkpoint_ns = options->checkpoint_ns,
                               .stop = options->stop,
                               .user = options->user};
}

struct unit_scan_options pack_scan_options(const struct pack_options *options)
{
    struct tokenizer_info info;
    struct unit_scan_options scanning = {.stage = pack_drop_stage(options),
                                         .corpus = options->corpus,
                                         .other_output = options->other_output,
                                         .listed = options->listed,
                                         .threads = options->threads,
                                         .compared = options->compared};
    pack_output_tokenizer(options, &info);
    scanning.corpus.vocabulary = info.vocabulary;
    return scanning;
}

static enum tokmap_status scan_make(struct pack_stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    return stages->scan(stages->user, id->number, id, error);
}

static enum tokmap_status portions_count(void *self, uint64_t *count, struct tokmap_error *error)
{
    struct pack_stages *stages = self;
    struct all_scans *scans = &stages->found.scans;
    const struct drop_stage stage = pack_drop_stage(stages->pack);
    const enum tokmap_status status =
        all_scans_read(scans, &stage, stages->folder, stages->found.key, stages->inputs->count, error);
    scans->progress = stages->progress;
    scans->user = stages->user;
    *count = scans->portions;
    return status;
}

static enum tokmap_status drops_make(struct pack_stages *stages, const struct stage_id *id, struct tokmap_error *error)
{
    const struct drop_stage stage = pack_drop_stage(stages->pack);
    return stage.drop->minhash ? near_resolve_run(&stages->found.scans, &stage, error)
                               : drop_portion_run(&stages->found.scans, &stage, id->number, error);
}

/* ---- units ---- */

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
    return pack_output_about(options, &nothing, set, shard, bytes);
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

static const struct row scan = {
    {TASK_SCANS, false, units_count, files_list, file_find, file_make}, STAGE_SCAN, scan_make};
static const struct row compare = {
    {TASK_COMPARES, true, portions_count, files_list, file_find, file_make}, STAGE_DROPS, drops_make};
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
    if (options->drop) {
        list[count++] = &scan.stage;
        list[count++] = &compare.stage;
    }
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
    all_scans_free(&stages->found.scans);
    sorted_units_free(&stages->found.units);
}

/* ---- work without units ---- */

struct stages_work {
    const struct pack_options *options;
    const struct scan_inputs *inputs;
};

/* Scans the inputs. There is no scan: what a comparison has left is of another one, whose documents may have been
 * others. Example: a process that removes its files is killed after the scan and before drops-000000, and then an input
 * changes in its middle. */
static enum tokmap_status inputs_scan(void *user, uint64_t unit, const struct stage_id *id, struct tokmap_error *error)
{
    const struct stages_work *work = user;
    const struct unit_scan_options scanning = pack_scan_options(work->options);
    uint64_t before;
    (void)unit;
    const enum tokmap_status status = stage_kind_remove(id->folder, STAGE_DROPS, error);
    return status ? status : unit_scan_run(&scanning, work->inputs, id, &before, error);
}

enum tokmap_status drop_stages_run(struct drop_stages *stages, const struct pack_options *options,
                                   const struct scan_inputs *inputs, const char *folder, struct tokmap_error *error)
{
    struct pack_options pack = *options;
    struct drop_options drop = *options->drop;
    struct stages_work work = {.options = &pack, .inputs = inputs};
    const struct work_units all = {.count = 1};
    struct schedule_left left;
    const struct stage *list[PACK_STAGES_MOST];
    const struct schedule schedule = {
        .stages = list, .count = PACK_STAGES_DROP, .self = &stages->work, .folder = folder, .tasks = 1};
    if (!drop.minhash) /* the packing looks for them, whether or not there are stages */
        drop.ngrams = NULL;
    pack.drop = &drop;
    (void)pack_stages_list(&pack, list);
    stages->work =
        (struct pack_stages){.pack = &pack, .inputs = &all, .folder = folder, .scan = inputs_scan, .user = &work};
    enum tokmap_status status = pack_stages_begin(&stages->work, error);
    if (!status)
        status = schedule_run(&schedule, &left, error);
    stages->work.pack = NULL; /* as all that was made here for the stages alone */
    if (status)
        return status;
    const struct all_scans *scans = &stages->work.found.scans;
    if (left.missing) { /* work in units waits for the process that compares */
        const struct stage_id drops = drops_file_id(folder, scans->key, left.list[0], all.count);
        return stage_busy(&drops, error);
    }
    stages->source = (struct drop_source){.folder = folder,
                                          .key = scans->key,
                                          .units = scans->units,
                                          .portions = scans->portions,
                                          .places = &scans->list[0].places};
    return TOKMAP_OK;
}

bool drop_stages_precede(const struct pack_options *options)
{
    return options->drop && options->drop->minhash && !options->unit && !options->dry_run;
}

bool drop_stages_follow(const struct pack_options *options, const struct scan_inputs *inputs)
{
    return options->drop && options->drop->duplicates && !options->unit && !options->dry_run &&
           drop_stages_can_repeat(inputs->operands, inputs->count, &options->corpus.select);
}

bool drop_stages_may_come(const struct pack_options *options, const struct scan_inputs *inputs)
{
    return drop_stages_precede(options) || drop_stages_follow(options, inputs);
}

static bool is_regular(const char *path)
{
    struct os_stat stat;
    return strcmp(path, "-") != 0 && (os_stat(path, &stat) || stat.kind == OS_KIND_FILE || stat.kind == OS_KIND_FOLDER);
}

bool drop_stages_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select)
{
    for (size_t i = 0; i < count; i++)
        if (!is_regular(operands[i]))
            return false;
    for (size_t i = 0; i < select->list_count; i++)
        if (!is_regular(select->lists[i]))
            return false;
    return true;
}

enum tokmap_status drop_stages_do(struct drop_stages *stages, const struct pack_options *options,
                                  const struct scan_inputs *inputs, struct pack_journal *journal, struct corpus *corpus,
                                  struct tokmap_error *error)
{
    const char *folder;
    if (!drop_stages_can_repeat(inputs->operands, inputs->count, &options->corpus.select))
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "--dedup minhash reads the inputs twice, and standard input, a pipe, or a list of paths from "
                         "one of them can be read only once; save it in a file first");
    enum tokmap_status status = pack_journal_stages(journal, &folder, error);
    if (!status && corpus)
        status = corpus_exclude(corpus, folder, error);
    if (!status)
        status = drop_stages_run(stages, options, inputs, folder, error);
    pack_journal_staged(journal);
    return status;
}

void drop_stages_free(struct drop_stages *stages)
{
    pack_stages_free(&stages->work);
}
