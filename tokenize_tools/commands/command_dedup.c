/* SPDX-License-Identifier: MIT */
/* command_dedup.c - tokmap dedup: writes the list of the documents that `pack` would leave out, for `pack --drop`: the
 * command line of dedup/dedup_tasks.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands.h"
#include "commands/data/output_file.h"
#include "commands/options/corpus_arguments.h"
#include "commands/pack/pack_arguments.h"
#include "commands/pack/task_pack.h"
#include "common/error.h"
#include "corpus/excluded_files.h"
#include "dedup/dedup_tasks.h"
#include "pack/pack.h"
#include "pack/pack_facts.h"
#include "pack/pack_stages.h"
#include "pack/unit_record.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

static const char program[] = "tokmap dedup";

#define CHECKPOINT_NS ((uint64_t)4 * 1000000000)
#define IDS_MOST ((uint64_t)UINT32_MAX + 1)

struct deduping {
    const char *output;
    char *name; /* of the list, without its ending */
    struct corpus_arguments corpus;
    struct content_arguments content;
    struct drop_arguments drop;
    struct task_arguments asked;
    uint64_t threads;
    bool force, start_over, json, quiet;
    int shown; /* enum cli_progress_mode */
    struct cli_progress progress;
    struct input_size size;
    struct dedup_outcome outcome;
};

static void progress_report(void *user, uint64_t stored_bytes)
{
    struct deduping *deduping = user;
    deduping->progress.total = input_size_update(&deduping->size);
    cli_progress_update(&deduping->progress, stored_bytes);
}

/* ---- arguments ---- */

static int arguments_check(const struct cli_command *command, struct deduping *deduping, const char **operands,
                           size_t *operand_count)
{
    static const char *const endings[] = {"dropped", NULL};
    struct drop_arguments *drop = &deduping->drop;
    const struct tokenizer_arguments none = TOKENIZER_ARGUMENTS_INIT;
    if (!deduping->output)
        return cli_misused(command, "no output given; name the list with -o LIST");
    if (!drop->dedup_given && !drop->ngrams.count) /* equal documents are what most ask for */
        drop->dedup_given = true;
    deduping->content.vocabulary_given = deduping->content.ids_field != NULL; /* every id is compared */
    deduping->content.vocabulary = deduping->content.vocabulary_given ? IDS_MOST : 0;
    int status = drop_arguments_check(command, drop, &deduping->content, false);
    if (!status)
        status = content_arguments_check(command, &deduping->content, &deduping->corpus, &none);
    if (!status)
        status = task_arguments_check(command, &deduping->asked);
    if (!status && deduping->asked.task_text && (deduping->force || deduping->start_over))
        return cli_misused(command,
                           "--task does not go with --force and --no-resume, which would remove what other "
                           "tasks make: remove the list, or its folder LIST.work, before the first task starts");
    if (!status && (!deduping->threads || deduping->threads > PACK_THREADS_MOST))
        return cli_misused(command, "--threads must be between 1 and %d", PACK_THREADS_MOST);
    if (!status)
        status = corpus_arguments_check(command, &deduping->corpus, operands, operand_count);
    return status ? status : output_prefix_make(command, deduping->output, endings, &deduping->name);
}

/* ---- the work ---- */

/* Makes the list, or a share of it, of the units. */
static enum tokmap_status list_make(struct deduping *deduping, const struct pack_options *options,
                                    const struct work_units *units, const char **operands, size_t operand_count,
                                    struct tokmap_error *error)
{
    const struct task_arguments *asked = &deduping->asked;
    struct pack_facts facts;
    struct dedup_tasks_options work = {.name = deduping->name,
                                       .scanning = pack_scan_options(options),
                                       .operands = operands,
                                       .operand_count = operand_count,
                                       .units = units,
                                       .share = {.task = asked->task,
                                                 .tasks = asked->tasks,
                                                 .wait_ns = asked->wait_seconds * 1000000000,
                                                 .at_once = asked->wait_given && !asked->wait_seconds},
                                       .repeats = asked->task_text != NULL,
                                       .replace = deduping->force,
                                       .start_over = deduping->start_over};
    char *reading = pack_reading(&options->corpus, options->drop);
    const bool made = pack_facts_make(&facts, options, unit_record_layout());
    enum tokmap_status status = made && reading && unit_record_key(options, &work.key)
                                    ? TOKMAP_OK
                                    : error_set_memory(error, "the list of dropped documents", 0);
    work.facts = facts.list;
    work.fact_count = facts.count;
    work.reading = reading;
    if (!status)
        status = dedup_tasks_run(&work, &deduping->outcome, error);
    pack_facts_free(&facts);
    free(reading);
    return status;
}

/* Refuses an input that is the list, or that belongs to its work. Both paths are compared as text. */
static enum tokmap_status input_check(const void *output, const char *path, bool *skips, struct tokmap_error *error)
{
    static const char ending[] = ".dropped";
    const char *name = output, *at = path;
    *skips = false;
    while (!strncmp(at, "./", 2))
        at += 2;
    while (!strncmp(name, "./", 2))
        name += 2;
    const size_t bytes = strlen(name), own = strlen(ending);
    if (strncmp(at, name, bytes) || strncmp(at + bytes, ending, own) || (at[bytes + own] && at[bytes + own] != '.'))
        return TOKMAP_OK;
    return excluded_kind_error(EXCLUDED_OUTPUT, path, error);
}

static enum tokmap_status inputs_dedup(struct deduping *deduping, const struct pack_options *options,
                                       const char **operands, size_t operand_count, struct tokmap_error *error)
{
    struct work_units units;
    char *list_name = path_ended(deduping->name, ".dropped");
    if (!list_name)
        return error_set_memory(error, "a path", 0);
    const struct corpus_footers footers = {work_units_keep_footer, list_name};
    struct pack_options known = *options;
    known.corpus.footers = deduping->start_over ? NULL : &footers;
    const struct work_units_options list = {.operands = operands,
                                            .operand_count = operand_count,
                                            .corpus = &known.corpus,
                                            .unit_bytes = options->unit_bytes,
                                            .examine = input_check,
                                            .output = deduping->name,
                                            .stop = options->stop,
                                            .user = options->user};
    if (!deduping->start_over)
        work_folder_pins_take(list_name);
    enum tokmap_status status = work_units_list(&units, &list, error);
    known.corpus.footers = &footers;
    if (!status && units.indivisible)
        status = error_set(error, TOKMAP_ERROR_UNSUPPORTED, units.indivisible_path, TOKMAP_NO_OFFSET,
                           "a list of documents needs inputs with names that can be read again: %s", units.indivisible);
    else if (!status && !units.count)
        status = error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                           "the inputs contain no documents; name inputs that contain text");
    input_size_start(&deduping->size, operands, operand_count, &options->corpus.select, deduping->shown);
    cli_progress_start(&deduping->progress, "comparing", NULL, deduping->size.bytes,
                       deduping->quiet ? CLI_PROGRESS_NONE : deduping->shown);
    if (!status)
        status = list_make(deduping, &known, &units, operands, operand_count, error);
    cli_progress_end(&deduping->progress);
    work_units_free(&units);
    free(list_name);
    return status;
}

/* ---- the report ---- */

static void part_report(const struct deduping *deduping)
{
    static const char *const what[] = {"scans of units", "portions of the comparison"};
    const struct schedule_left *left = &deduping->outcome.left;
    const char *name = deduping->name;
    if (!left->missing)
        cli_print("%s.dropped: another task %s the list\n", name,
                  deduping->outcome.finished ? "has written" : "writes");
    else
        cli_print("%s.dropped: the share of this task is done, and %" PRIu64 " of %" PRIu64 " %s, of other tasks, are "
                  "missing; run this command again when the other tasks have ended (exit status %d)\n",
                  name, left->missing, left->count, what[left->stage == TASK_COMPARES], CLI_AGAIN);
}

static int dedup_report(const struct deduping *deduping, double seconds)
{
    const struct dedup_outcome *outcome = &deduping->outcome;
    const struct drop_counts *counts = &outcome->counts;
    const bool part = !outcome->finished || outcome->by_other;
    const bool again = outcome->left.missing || (deduping->asked.stays && !outcome->finished);
    struct cli_report shown;
    if (deduping->json) {
        cli_report_begin(&shown, true, NULL);
        cli_member(&shown, "output", cli_text(deduping->name));
        cli_numbers(&shown, "task|tasks", deduping->asked.task, deduping->asked.tasks);
        cli_member(&shown, "complete", cli_bool(outcome->finished));
        cli_member(&shown, "inputs", cli_number_if(!part, outcome->inputs));
        cli_member(&shown, "documents_read", cli_number_if(!part, counts->documents));
        cli_member(&shown, "duplicates", cli_number_if(!part, counts->duplicates));
        cli_member(&shown, "near_duplicates", cli_number_if(!part, counts->near_duplicates));
        cli_member(&shown, "excluded", cli_number_if(!part, counts->excluded));
        cli_member(&shown, "seconds", cli_real(seconds));
        cli_report_end(&shown);
    } else if (part && !deduping->quiet) {
        part_report(deduping);
    } else if (!deduping->quiet) {
        cli_report_begin(&shown, false, NULL);
        drop_report_to(counts, deduping->name, &shown);
        cli_report_end(&shown);
        cli_print("\nnext:\n  tokmap pack --drop %s.dropped ...\n", deduping->name);
    }
    return cli_finish(program, again ? CLI_AGAIN : CLI_DONE);
}

/* Prints how far the tasks are. */
static int status_report(const struct cli_command *command, const struct deduping *deduping)
{
    static const char *const endings[] = {"dropped", "dropped.work", NULL};
    char *name = NULL;
    int result = output_prefix_make(command, deduping->asked.status, endings, &name);
    char *list = result ? NULL : path_ended(name, ".dropped");
    if (list)
        result = task_status_report(command, list, deduping->json);
    free(list);
    free(name);
    return result;
}

static int dedup(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct deduping *deduping = user;
    struct tokmap_error error;
    const uint64_t started = os_clock_ns();
    if (deduping->asked.status)
        return status_report(command, deduping);
    int result = arguments_check(command, deduping, operands, &operand_count);
    struct pack_options options = {.unit_bytes = deduping->asked.unit_bytes,
                                   .sync = true,
                                   .threads = (uint32_t)deduping->threads,
                                   .vocabulary = IDS_MOST,
                                   .eod_id = TOKMAP_NO_ID,
                                   .bos_id = TOKMAP_NO_ID,
                                   .checkpoint_ns = CHECKPOINT_NS,
                                   .compared = progress_report,
                                   .stop = os_is_stopped,
                                   .user = deduping};
    if (!result) {
        corpus_arguments_apply(&deduping->corpus, &options.corpus);
        content_arguments_apply(&deduping->content, &options.corpus);
        cli_signals_catch();
        result = drop_arguments_open(command, &deduping->drop, &options.corpus, os_is_stopped, deduping, &options.drop);
    }
    if (!result) {
        const enum tokmap_status status = inputs_dedup(deduping, &options, operands, operand_count, &error);
        const bool stopped = os_signals_release();
        if (status && deduping->outcome.kept)
            cli_say(program, "%sthe work so far is kept in %s.dropped.work: the same command continues it",
                    stopped ? "interrupted; " : "", deduping->name);
        if (stopped)
            os_signal_die(os_signal_caught());
        result =
            status ? command_failed(command, &error) : dedup_report(deduping, (double)(os_clock_ns() - started) * 1e-9);
    }
    drop_arguments_free(&deduping->drop);
    content_arguments_free(&deduping->content);
    free(deduping->name);
    return result;
}

int command_dedup(int argc, char **argv)
{
    static const struct cli_often often[] = {
        {"output", "the list to write: NAME.dropped"},
        {"dedup", "what is a duplicate: exact (default) or minhash"},
        {"exclude-ngrams", "list documents with words of an evaluation set"},
        {"field", "the field that holds the text (default: text)"},
        {"separator", "what separates documents of a text file: '\\n\\n'"},
        {"task", "be one of several processes"},
        {"force", NULL},
        {"threads", "number of threads (default: one per processor)"},
    };
    struct deduping deduping = {
        .corpus = CORPUS_ARGUMENTS_INIT, .drop = DROP_ARGUMENTS_INIT, .asked = TASK_ARGUMENTS_INIT};
    deduping.threads = os_processors() < PACK_THREADS_MOST ? os_processors() : PACK_THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("Output"),
        {'o', "output", CLI_TEXT, &deduping.output, NULL, "LIST", "write NAME.dropped, which is LIST or LIST.dropped",
         NULL},
        {0, "force", CLI_FLAG, &deduping.force, NULL, NULL, "replace the list if it exists", NULL},
        {0, "no-resume", CLI_FLAG, &deduping.start_over, NULL, NULL,
         "start over instead of continuing the work that a killed command has left in NAME.dropped.work", NULL},
        CLI_HEADING("Duplicates and excluded texts"),
        DROP_OPTIONS(deduping.drop),
        CLI_HEADING("Many machines"),
        {0, "task", CLI_TEXT, &deduping.asked.task_text, NULL, "I/N|auto",
         "be one of N processes, numbered from 0, that make the list together; auto: take the numbers from the "
         "environment of Slurm, MPI, Kubernetes (with TOKMAP_TASKS), AWS Batch, or torchrun",
         "auto"},
        {0, "wait", CLI_NUMBER, &deduping.asked.wait_seconds, &deduping.asked.wait_given, "SECONDS",
         "how long a task waits for others that have not begun, or have ended, before it exits with 3, to be run again "
         "(default: 0; with --task auto 60, or 600 where all tasks start together); 0: it does not wait for those that "
         "work, either",
         NULL},
        {0, "unit-bytes", CLI_SIZE, &deduping.asked.unit_bytes, &deduping.asked.unit_given, "SIZE",
         "cut the inputs into units of work of SIZE (default: 16 GiB); the list is the same for every SIZE", NULL},
        {0, "status", CLI_TEXT, &deduping.asked.status, NULL, "LIST",
         "do nothing but print how far the tasks of NAME.dropped are", NULL},
        CLI_HEADING("Inputs"),
        CORPUS_OPTIONS_INPUT(deduping.corpus),
        CORPUS_OPTIONS_FILES(deduping.corpus),
        CORPUS_OPTION_ON_ERROR(deduping.corpus),
        CORPUS_OPTIONS_TEXTS(deduping.corpus),
        {0, "ids-field", CLI_TEXT, &deduping.content.ids_field, NULL, "NAME",
         "records contain ready-made token ids, which are compared: the field that holds the list of them", NULL},
        {0, "mask-field", CLI_TEXT, &deduping.content.mask_field, NULL, "NAME",
         "with --ids-field: the field of the mask, which is compared, too", NULL},
        {0, "labels-field", CLI_TEXT, &deduping.content.labels_field, NULL, "NAME",
         "in place of --mask-field: the field of the labels", NULL},
        {0, "prompt-field", CLI_TEXT, &deduping.content.prompt_field, NULL, "NAME",
         "records contain a prompt and a completion, which are compared: the field of the prompt", NULL},
        {0, "completion-field", CLI_TEXT, &deduping.content.completion_field, NULL, "NAME",
         "the field of the completion", NULL},
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &deduping.threads, NULL, "N",
         "number of threads (default: one per processor); the list is the same for every N", NULL},
        {0, "json", CLI_FLAG, &deduping.json, NULL, NULL, "print the closing report as JSON", NULL},
        CLI_OPTION_PROGRESS(deduping.shown),
        {'q', "quiet", CLI_FLAG, &deduping.quiet, NULL, NULL, "print no progress and no closing report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "-o LIST [OPTION]... [INPUT]...",
        .summary = "Lists duplicates, near-duplicates, and excluded documents, for tokmap pack --drop.",
        .often = often,
        .often_count = sizeof often / sizeof often[0],
        .details = "An INPUT is as for tokmap pack, and must be a file that can be read again.\n\n"
                   "Example:\n"
                   "  tokmap dedup -o web.dropped --dedup minhash 'crawl/*.jsonl.zst'\n"
                   "  tokmap pack -o data/clean --drop web.dropped 'crawl/*.jsonl.zst'\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, dedup, &deduping);
}
