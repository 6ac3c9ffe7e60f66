/* drop_stages.c - see drop_stages.h. */
#include "drop_stages.h"

#include <string.h>

#include "common/error.h"
#include "platform/os.h"

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
    uint64_t before;
    (void)unit;
    const enum tokmap_status status = stage_kind_remove(id->folder, STAGE_DROPS, error);
    return status ? status : unit_scan_run(work->options, work->inputs, id, &before, error);
}

enum tokmap_status drop_stages_run(struct drop_stages *stages, const struct pack_options *options,
                                   const struct scan_inputs *inputs, const char *folder, struct tokmap_error *error)
{
    struct pack_options pack = *options;
    struct drop_options drop = *options->drop;
    struct stages_work work = {.options = &pack, .inputs = inputs};
    const struct pack_units all = {.count = 1};
    struct schedule_left left;
    const struct stage *list[PACK_STAGES_MOST];
    const struct schedule schedule = {
        .stages = list, .count = PACK_STAGES_DROP, .self = &stages->work, .folder = folder, .tasks = 1};
    if (!drop.minhash)   /* the packing looks for them, whether or not there are stages */
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
        const struct stage_id drops = stage_drops_id(folder, scans->key, left.list[0], all.count);
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
        return error_set(
            error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
            "options.dedup minhash reads the inputs twice, and standard input, a pipe, or a list of paths from "
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
