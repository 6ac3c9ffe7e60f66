/* SPDX-License-Identifier: MIT */
/* command_pack.c - tokmap pack: the command line of pack/pack.h, its progress, and its closing report. */
#include <stdlib.h>
#include <string.h>

#include "also_arguments.h"
#include "chat/chat_templates.h"
#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/data/output_file.h"
#include "commands/options/corpus_arguments.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/skip_report.h"
#include "encode/document_encode.h"
#include "pack/pack.h"
#include "pack/pack_finish.h"
#include "pack/pack_output.h"
#include "pack_arguments.h"
#include "pack_report.h"
#include "pack_upload.h"
#include "platform/os.h"
#include "platform/process.h"
#include "task_pack.h"
#include "text/decimal.h"
#include "text/path.h"
#include "work/work_folder.h"

static const char program[] = "tokmap pack";

#define CHECKPOINT_NS ((uint64_t)4 * 1000000000)
#define SPACE_FIRST ((uint64_t)16 << 20) /* stored bytes after which the size of the output is estimated */

struct packing {
    const struct cli_command *command;
    const char *output;      /* as it was typed */
    const char *work_folder; /* --work-folder */
    char *prefix;
    struct tokenizer_arguments asked;
    struct corpus_arguments corpus;
    struct content_arguments content;
    struct skip_report skips;
    struct skipped_taker taker; /* of skips */
    struct also_arguments also;
    struct pack_also also_work;
    struct pack_upload upload;
    struct pack_also upload_work;
    uint64_t also_tokens; /* of the files of other projects that this process has written */
    struct drop_arguments drop;
    struct task_pack tasks;
    struct pack_seal sealed;
    bool force, dry_run, json, quiet, start_over;
    int shown; /* enum cli_progress_mode */
    uint64_t threads;
    const char *checkpoint_text; /* NULL: the default */
    uint64_t checkpoint_ns;
    uint64_t shard_tokens;
    const char *split_text; /* NULL: none */
    struct split split;
    struct fim_arguments fim;
    bool seed_given;
    struct pack_shuffle shuffle;
    bool shuffled; /* --shuffle was given */
    bool shuffle_memory_given;
    bool merging;                /* the progress is that of the second pass */
    bool comparing;              /* the progress is that of the search for near-duplicates */
    bool shard_given, sets;      /* sets: the output is one or several shard sets */
    struct tokenizer *tokenizer; /* NULL if only the size of the vocabulary is known */
    struct chat_template *chat;
    struct pack_result result;
    struct cli_progress progress;
    struct input_size size;
    struct input_warnings warnings;
    uint64_t next_space; /* the free space is checked when so many stored bytes are packed */
};

/* ---- progress ---- */

static void skipped_report(void *user, const struct corpus_issue *issue, const struct tokmap_error *why)
{
    struct packing *packing = user;
    packing->skips.later = packing->tasks.in_units;
    skip_report_add(&packing->skips, issue, why);
}

/* Warns once if the output will not fit on its disk, should the rest of the input give as many tokens a byte as what is
 * packed so far. The first estimate follows after some MiB, so that it comes while not much time is lost. */
static void space_check(struct packing *packing, uint64_t stored_bytes)
{
    const struct tokenizer_info info = pack_tokenizer(packing->tokenizer, packing->content.vocabulary);
    uint64_t free_bytes;
    char a[32], b[32];
    /* The size of sealed tokens is not known yet; copies for other projects are plain. */
    const bool unknown = packing->sealed.given && packing->sets;
    const uint32_t copies = also_copies(&packing->also);
    if ((unknown && !copies) || packing->dry_run || stored_bytes < packing->next_space ||
        stored_bytes >= packing->size.bytes)
        return;
    packing->next_space = 2 * stored_bytes;
    const double written = unknown ? 0 : (double)packing->result.tokens * info.width;
    const double tokens =
        (double)packing->result.tokens * info.width / (double)stored_bytes * (double)packing->size.bytes;
    /* With a shuffle, unnamed files have the tokens, too, until the end. Sealed shards have lost their plain tokens
     * when the copies are made. */
    const uint32_t times = unknown ? 0 : packing->shuffled ? 2 : 1;
    const double all = tokens * (packing->sealed.given ? (times > copies ? times : copies) : times + copies);
    char *folder = path_folder(packing->prefix);
    if (folder && all < 9e18 && !os_disk_free(folder, &free_bytes) && all - written > (double)free_bytes) {
        char more[96] = "";
        cli_progress_clear(&packing->progress);
        if (copies)
            (void)snprintf(more, sizeof more, ", the copies for other projects need %s",
                           cli_bytes((uint64_t)(tokens * copies), a));
        cli_warn(program,
                 "the output will probably not fit: %s.bin is growing to about %s%s%s, and its disk has %s left",
                 packing->prefix, cli_bytes((uint64_t)tokens, a),
                 packing->shuffled ? ", the shuffle needs as much again" : "", more, cli_bytes(free_bytes, b));
        packing->next_space = UINT64_MAX;
    }
    free(folder);
}

/* Begins the progress of the search for near-duplicates, or that of packing, unless it is the one that is shown. */
static void phase_begin(struct packing *packing, bool comparing)
{
    if (packing->comparing == comparing)
        return;
    packing->comparing = comparing;
    cli_progress_end(&packing->progress);
    cli_progress_start(&packing->progress, comparing ? "comparing" : "packing", NULL, packing->size.bytes,
                       packing->quiet ? CLI_PROGRESS_NONE : packing->shown);
}

static void progress_report(void *user, uint64_t stored_bytes)
{
    struct packing *packing = user;
    phase_begin(packing, false);
    input_warnings_tell(&packing->warnings, &packing->progress);
    packing->progress.total = packing->tasks.in_units ? packing->tasks.share_bytes : input_size_update(&packing->size);
    if (!packing->tasks.in_units)
        space_check(packing, stored_bytes);
    cli_progress_update(&packing->progress, stored_bytes);
}

/* Reports the progress of the search for near-duplicates. */
static void compare_report(void *user, uint64_t stored_bytes)
{
    struct packing *packing = user;
    phase_begin(packing, true);
    packing->progress.total = input_size_update(&packing->size);
    cli_progress_update(&packing->progress, stored_bytes);
}

/* Reports the progress of the second pass of a shuffle. */
static void shuffle_report(void *user, uint64_t tokens, uint64_t all)
{
    struct packing *packing = user;
    if (!packing->merging) {
        cli_progress_end(&packing->progress);
        cli_progress_start(&packing->progress, "shuffling", "tokens", all,
                           packing->quiet ? CLI_PROGRESS_NONE : packing->shown);
        packing->merging = true;
    }
    cli_progress_update(&packing->progress, tokens);
}

static void skips_save(void *user, struct state_sink *sink)
{
    struct packing *packing = user;
    skip_report_save(&packing->skips, sink);
}

static enum tokmap_status skips_load(void *user, uint32_t kind, const uint8_t *bytes, size_t count,
                                     struct tokmap_error *error)
{
    struct packing *packing = user;
    return skip_report_load(&packing->skips, kind, bytes, count, error);
}

/* ---- files of other projects ---- */

static struct also_output also_output(const struct packing *packing)
{
    return (struct also_output){.prefix = packing->prefix,
                                .split = packing->split_text ? &packing->split : NULL,
                                .numbered = packing->sets,
                                .replace = packing->force};
}

static enum tokmap_status before_commit(void *user, struct tokmap_error *error)
{
    struct packing *packing = user;
    const struct also_output output = also_output(packing);
    /* Work without a journal begins again if it is killed before the last rename, and then a list would bar it. */
    const enum tokmap_status status =
        work_folder_exists(packing->prefix) ? skip_report_name(&packing->skips, error) : TOKMAP_OK;
    return !status && packing->force && packing->also.count ? also_remove_old(&packing->also, &output, error) : status;
}

static void also_report(void *user, uint64_t tokens)
{
    struct packing *packing = user;
    cli_progress_update(&packing->progress, packing->also_tokens + tokens);
}

static enum tokmap_status also_one(void *user, uint32_t format, const char *prefix, enum also_replace replace,
                                   struct also_written *written, struct tokmap_error *error)
{
    struct packing *packing = user;
    const struct convert_options options = {.program = program,
                                            .name = prefix,
                                            .prefix = prefix,
                                            .replace = replace != ALSO_REPLACE_NONE,
                                            .equal = replace == ALSO_REPLACE_EQUAL,
                                            .sync = true,
                                            .progress = also_report,
                                            .user = packing};
    if (pack_upload_is(&packing->upload)) {
        cli_progress_end(&packing->progress);
        return pack_upload_send(&packing->upload, prefix, packing->sets, error);
    }
    if (!packing->also.begun) {
        cli_progress_end(&packing->progress);
        cli_progress_start(&packing->progress, "converting", "tokens", packing->also.count * packing->result.tokens,
                           packing->quiet ? CLI_PROGRESS_NONE : packing->shown);
    }
    const enum tokmap_status status = also_write(&packing->also, format, &options, written, error);
    packing->also_tokens += written->tokens;
    return status;
}

/* ---- arguments ---- */

/* Reads seconds, such as 0.5. */
static bool seconds_parse(const char *text, uint64_t *ns)
{
    uint64_t number;
    uint32_t decimals;
    if (!decimal_parse_point(text, strlen(text), 3, &number, &decimals) || number > (uint64_t)86400000)
        return false;
    for (*ns = number * 1000000; decimals < 3; decimals++)
        *ns *= 10;
    return *ns <= (uint64_t)86400 * 1000000000;
}

/* Returns true if the output has its names: that is the error of a task then, and not that the list exists, too. */
static bool output_exists(const struct packing *packing)
{
    const struct pack_options names = {.prefix = packing->prefix,
                                       .split = packing->split_text ? &packing->split : NULL};
    enum set_note note;
    return packing->prefix && pack_names_check(&names, &note, NULL) == TOKMAP_ERROR_EXISTS;
}

/* Refuses options that do not go with work in units, or among processes. */
static int tasks_check(const struct cli_command *command, struct packing *packing)
{
    struct task_arguments *asked = &packing->tasks.asked;
    const int status = task_arguments_check(command, asked);
    const char *option = asked->finish ? "--finish" : asked->task_text ? "--task" : "--unit-bytes";
    if (status || (!asked->given && !asked->unit_given))
        return status;
    if (!packing->shard_given)
        return cli_misused(command, "%s is about shard sets: give the size of shards with --shard-tokens", option);
    if (asked->given && packing->dry_run)
        return cli_misused(command, "%s writes files and cannot be used with --dry-run", option);
    if (asked->given && packing->start_over)
        return cli_misused(command,
                           "%s does not go with --no-resume, which would remove the work of other tasks: "
                           "remove the folder PREFIX.work before the first task starts",
                           option);
    return 0;
}

/* Refuses arguments that are missing or wrong. Returns 0, or prints a message and returns the exit status. */
static int arguments_check(const struct cli_command *command, struct packing *packing, const char **operands,
                           size_t *operand_count)
{
    if (!packing->output && !packing->dry_run)
        return cli_misused(command, "no output given; name it with -o PREFIX, or only check the inputs with --dry-run");
    if (packing->also.typed && packing->dry_run)
        return cli_misused(command, "--also writes files and cannot be used with --dry-run");
    packing->also.sealed = packing->sealed.given;
    int status = also_parse(command, &packing->also);
    if (status)
        return status;
    if (tokenizer_arguments_check(command, &packing->asked))
        return CLI_MISUSED;
    status = pack_seal_check(command, &packing->sealed);
    if (status)
        return status;
    if (drop_arguments_check(command, &packing->drop, &packing->content, packing->dry_run))
        return CLI_MISUSED;
    status = content_arguments_check(command, &packing->content, &packing->corpus, &packing->asked);
    if (status)
        return status;
    status = fim_arguments_check(command, &packing->fim, &packing->content);
    if (status)
        return status;
    if (packing->checkpoint_text && !seconds_parse(packing->checkpoint_text, &packing->checkpoint_ns))
        return cli_misused(command,
                           "--checkpoint-seconds must be a number from 0 (never) to 86400 with at most 3 "
                           "decimals; got '%s'",
                           packing->checkpoint_text);
    if (packing->shard_given && !packing->shard_tokens)
        return cli_misused(command, "--shard-tokens must be at least 1");
    const char *wrong = packing->split_text ? split_parse(packing->split_text, &packing->split) : NULL;
    if (wrong)
        return cli_misused(command, "--split %s: %s", packing->split_text, wrong);
    if (packing->seed_given && !packing->split_text)
        return cli_misused(command, "--split-seed is about --split: name the sets with --split train=0.99,val=0.01");
    if (packing->shuffle_memory_given && !packing->shuffled)
        return cli_misused(command, "--shuffle-memory is about --shuffle: give the seed with --shuffle 7");
    if (packing->shuffle_memory_given &&
        (packing->shuffle.memory < PACK_SHUFFLE_LEAST || packing->shuffle.memory > PACK_SHUFFLE_MOST))
        return cli_misused(command, "--shuffle-memory must be between 4096 bytes and 1 TiB");
    packing->sets = packing->shard_given || packing->split_text;
    if (!packing->threads || packing->threads > PACK_THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %d", PACK_THREADS_MOST);
    if (tasks_check(command, packing))
        return CLI_MISUSED;
    return corpus_arguments_check(command, &packing->corpus, operands, operand_count);
}

/* ---- packing ---- */

/* Checks whether the files of --also can be written. */
static enum tokmap_status also_first(const struct packing *packing, const struct pack_options *options,
                                     struct tokmap_error *error)
{
    const struct also_output output = also_output(packing);
    const struct tokenizer_info info = pack_tokenizer(options->tokenizer, options->vocabulary);
    /* Either the error is that of the shards, or they are those of a command that was killed, and so may the files be.
     */
    if (!packing->force && (packing->sets || work_folder_exists(packing->prefix)) && output_exists(packing))
        return TOKMAP_OK;
    return also_check(&packing->also, &output, info.width, document_is_masked(&options->corpus), error);
}

static enum tokmap_status inputs_pack(struct packing *packing, const struct pack_options *options,
                                      const char **operands, size_t operand_count, struct tokmap_error *error)
{
    const int shown = packing->quiet ? CLI_PROGRESS_NONE : packing->shown;
    enum tokmap_status status =
        options->dry_run ? TOKMAP_OK : output_place_check(options->prefix, packing->sets, error);
    if (!status && !options->dry_run)
        status = also_first(packing, options, error);
    if (!status && pack_upload_is(&packing->upload))
        status = pack_upload_check(&packing->upload, work_folder_exists(packing->prefix), options->split, error);
    if (status)
        return status;
    input_size_start(&packing->size, operands, operand_count, &options->corpus.select, shown);
    packing->next_space = SPACE_FIRST;
    cli_progress_start(&packing->progress, options->dry_run ? "reading" : "packing", NULL, packing->size.bytes, shown);
    status = task_pack_run(&packing->tasks, options, operands, operand_count, &packing->result, error);
    cli_progress_end(&packing->progress);
    input_warnings_tell(&packing->warnings, &packing->progress);
    return status;
}

/* Warns about fields that no record has, since their names are probably slips. */
static void columns_check(const struct packing *packing)
{
    for (size_t i = 0; i < packing->content.column_count; i++)
        if (!packing->result.with_value[i])
            cli_warn(program, "no record has the field '%s' of --columns: its column is empty",
                     packing->content.column_names[i]);
}

/* Warns if nothing would be learned: a role or a mask is probably not what it was taken for. */
static void targets_check(const struct packing *packing)
{
    const struct pack_result *result = &packing->result;
    const struct chat_learn *learn = &packing->content.learn;
    for (unsigned role = 0; role < CHAT_ROLES; role++)
        if (learn->roles & 1U << role && !result->roles[role].messages && !chat_template_is_rendered(packing->chat))
            cli_warn(program, "no message has the role '%s' of --learn", chat_role_name((enum chat_role)role));
    if (result->has_mask && result->tokens && !result->counted_tokens)
        cli_warn(program, "no token counts as a target, so training would learn nothing from the output; %s",
                 packing->chat ? "only messages with the role 'assistant' count" : "check the mask");
    else if (result->untaught && learn->given)
        cli_warn(program, "in %" PRIu64 " of %" PRIu64 " conversations no token is learned with the given --learn",
                 result->untaught, result->counts.documents);
    else if (result->untaught)
        cli_warn(program,
                 "in %" PRIu64 " of %" PRIu64 " conversations no token counts as a target: no message has the role "
                 "'assistant', or each has the weight 0",
                 result->untaught, result->counts.documents);
}

/* Warns of sets without a document, since their shares are probably too small for these inputs. */
static void sets_check(const struct packing *packing, const struct split *split)
{
    for (uint32_t i = 0; split && !packing->dry_run && i < split->count; i++)
        if (!packing->result.sets[i].documents)
            cli_warn(program,
                     "set '%s' got no document; give it a larger share with --split, or choose another seed with "
                     "--split-seed",
                     split->sets[i].name);
}

static int inputs_pack_and_report(struct packing *packing, const struct pack_options *options, const char **operands,
                                  size_t operand_count)
{
    struct tokmap_error error;
    const uint64_t started = os_clock_ns();
    const struct also_output output = also_output(packing);
    const enum tokmap_status status = inputs_pack(packing, options, operands, operand_count, &error);
    if (status)
        also_advise(&packing->also, &output, packing->result.kept, program);
    if (os_signals_release()) {
        if (status && packing->result.kept)
            cli_say(program, "interrupted; the same command continues (its work so far is in %s.work)",
                    packing->prefix);
        else if (status && !packing->also.begun)
            cli_say(program, "interrupted; the unfinished output has been removed");
        packing->skips.abandoned = status != TOKMAP_OK && !packing->result.kept;
        skip_report_close(&packing->skips, packing->skips.abandoned);
        os_signal_die(os_signal_caught());
    }
    const bool listed = skip_report_finish(&packing->skips, status != TOKMAP_OK);
    if (status && packing->upload.failed)
        cli_say(program, "the output is whole in '%s'; `tokmap copy` sends it, too", packing->prefix);
    if (status) {
        skip_report_advise(&packing->skips, &packing->result.counts);
        const int failed = command_failed(packing->command, &error);
        skip_report_hint(&packing->skips, &packing->result.counts, operands, operand_count, &error);
        for (size_t i = 0; i < operand_count; i++)
            if (error.status == TOKMAP_ERROR_NOT_FOUND && !strcmp(error.path, operands[i]))
                cli_maybe_hint(packing->command, operands[i]);
        if (packing->result.kept && packing->tasks.asked.given)
            cli_say(program, "the work so far is kept in %s.work", packing->prefix);
        else if (packing->result.kept)
            cli_say(program,
                    "the work so far is kept in %s.work: the same command continues it, and --no-resume starts "
                    "over",
                    packing->prefix);
        return failed;
    }
    const double seconds = (double)(os_clock_ns() - started) * 1e-9;
    if (task_pack_is_part(&packing->tasks)) {
        const struct schedule_left *left = &packing->tasks.outcome.left;
        if (packing->json)
            task_end_json(&packing->tasks, options, seconds);
        else if (!packing->quiet)
            task_end_print(&packing->tasks, options, seconds);
        const bool left_alone = packing->tasks.asked.stays && !packing->tasks.outcome.finished;
        const bool again = left_alone || (left->missing && !task_stage_is_last(left->stage));
        if (packing->tasks.outcome.finished && pack_upload_is(&packing->upload) &&
            pack_upload_end(&packing->upload, options->split, &error))
            return command_failed(packing->command, &error);
        return cli_finish(program, !listed ? CLI_FAILED : again ? CLI_AGAIN : CLI_DONE);
    }
    const struct pack_report report = {.options = options,
                                       .shown = pack_upload_is(&packing->upload) ? packing->upload.to : packing->prefix,
                                       .sets = packing->sets,
                                       .tokenizer_given = packing->asked.spec_given,
                                       .result = &packing->result,
                                       .skips = &packing->skips,
                                       .also = &packing->also,
                                       .seconds = seconds};
    skip_report_advise(&packing->skips, &packing->result.counts);
    columns_check(packing);
    targets_check(packing);
    sets_check(packing, options->split);
    if (packing->json || !packing->quiet)
        pack_report(&report, packing->json);
    if (pack_upload_is(&packing->upload) && pack_upload_end(&packing->upload, options->split, &error))
        return command_failed(packing->command, &error);
    return cli_finish(program, listed ? CLI_DONE : CLI_FAILED);
}

/* Opens the tokenizer, unless only the size of a vocabulary is given, and the chat template. */
static int tokenizer_open(struct packing *packing)
{
    struct tokmap_error error;
    const struct content_arguments *content = &packing->content;
    if (content->vocabulary_given)
        return 0;
    const int status = tokenizer_arguments_open(packing->command, &packing->asked, true, &packing->tokenizer);
    if (status || content->content != CORPUS_CONTENT_MESSAGES)
        return status;
    if (chat_template_open(&packing->chat, content->chat_template, packing->asked.path, packing->tokenizer, &error))
        return command_failed(packing->command, &error);
    chat_template_ignore(packing->chat, content->ignore_names, content->ignore_count);
    chat_template_learn(packing->chat, &content->learn);
    return 0;
}

static int tokenizer_pack(struct packing *packing, const char **operands, size_t operand_count)
{
    const bool is_bytes = !strcmp(packing->asked.spec, "bytes"); /* the built-in tokenizer, which has no file */
    const struct task_arguments *tasks = &packing->tasks.asked;
    /* Into units of work. One process alone shuffles without them, in fewer steps. */
    const bool is_cut = packing->shard_given && (!packing->shuffled || tasks->given || tasks->unit_given);
    const bool names_last = packing->skips.partial || (packing->also.count && packing->force);
    packing->also_work = (struct pack_also){packing->also.formats,     (uint32_t)packing->also.count, also_one,
                                            packing->also.ending_list, packing->also.ending_count,    0};
    packing->upload_work = (struct pack_also){.formats = "objects", .count = 1, .write = also_one};
    packing->taker = skip_report_taker(&packing->skips);
    packing->also_work.mask_endings = also_mask_endings(&packing->also);
    struct pack_options options = {.prefix = packing->prefix,
                                   .dry_run = packing->dry_run,
                                   .shard_tokens = packing->shard_tokens,
                                   .unit_bytes = is_cut ? tasks->unit_bytes : 0,
                                   .split = packing->split_text ? &packing->split : NULL,
                                   .shuffle = packing->shuffled ? &packing->shuffle : NULL,
                                   .shuffled = shuffle_report,
                                   .seal = pack_seal_start(&packing->sealed, packing->threads, !packing->sets,
                                                           &packing->progress,
                                                           packing->quiet ? CLI_PROGRESS_NONE : packing->shown),
                                   .replace = packing->force,
                                   .sync = true,
                                   .threads = (uint32_t)packing->threads,
                                   .tokenizer = packing->tokenizer,
                                   .vocabulary = packing->content.vocabulary,
                                   .chat = packing->chat,
                                   .ignored = packing->content.ignore_names,
                                   .ignored_count = packing->content.ignore_count,
                                   .min_tokens = packing->content.min_tokens,
                                   .max_tokens = packing->content.max_tokens,
                                   .tokenizer_options = &packing->asked.options,
                                   .tokenizer_path = is_bytes ? NULL : packing->asked.spec,
                                   .skip_limit = packing->skips.limit,
                                   .other_output = skip_report_file(&packing->skips),
                                   .skipped_taker = packing->skips.list_path ? &packing->taker : NULL,
                                   .skipped = skipped_report,
                                   .progress = progress_report,
                                   .compared = compare_report,
                                   .stop = os_is_stopped,
                                   .before_commit = names_last ? before_commit : NULL,
                                   .also = packing->also.count                ? &packing->also_work
                                           : pack_upload_is(&packing->upload) ? &packing->upload_work
                                                                              : NULL,
                                   .state_save = skips_save,
                                   .state_load = skips_load,
                                   .checkpoint_ns = packing->checkpoint_ns,
                                   .start_over = packing->start_over,
                                   .user = packing};
    corpus_arguments_apply(&packing->corpus, &options.corpus);
    content_arguments_apply(&packing->content, &options.corpus);
    options.corpus.empty = packing->chat ? chat_template_empty(packing->chat) : NULL;
    packing->warnings.program = program;
    packing->warnings.saved = packing->checkpoint_ns && !packing->dry_run;
    input_warnings_watch(&packing->warnings, &options.corpus);
    int status = packing->tokenizer ? tokenizer_arguments_eod_bos(packing->command, &packing->asked, packing->tokenizer,
                                                                  true, &options.eod_id, &options.bos_id)
                                    : content_arguments_eod_bos(packing->command, &packing->content, &packing->asked,
                                                                &options.eod_id, &options.bos_id);
    if (!status)
        status = fim_arguments_open(packing->command, &packing->fim, packing->tokenizer, options.eod_id, &options.fim);
    if (status)
        return status;
    cli_signals_catch();
    const int opened =
        drop_arguments_open(packing->command, &packing->drop, &options.corpus, os_is_stopped, packing, &options.drop);
    if (opened)
        return opened;
    options.listed = packing->drop.listed;
    return inputs_pack_and_report(packing, &options, operands, operand_count);
}

static int pack(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    static const char *const endings[] = {"bin", "tmx", NULL};
    struct packing *packing = user;
    packing->command = command;
    packing->skips.list = -1;
    if (packing->tasks.asked.status)
        return task_status_report(command, packing->tasks.asked.status, packing->json);
    int status = arguments_check(command, packing, operands, &operand_count);
    const char *local = packing->output;
    packing->upload = (struct pack_upload){
        .folder = packing->work_folder, .force = packing->force, .quiet = packing->quiet, .shown = packing->shown};
    if (!status && packing->output)
        status = pack_upload_begin(&packing->upload, command, packing->output, &local);
    if (!status && pack_upload_is(&packing->upload) && packing->also.typed)
        status = cli_misused(command, "--also writes files beside an output on this machine; send the output with "
                                      "`tokmap copy`");
    if (!status && packing->output)
        status = output_prefix_make(command, local, endings, &packing->prefix);
    if (!status && packing->prefix)
        status = drop_arguments_own(command, &packing->drop, packing->prefix);
    struct tokmap_error error;
    if (!status && pack_upload_is(&packing->upload) && pack_upload_prefix(&packing->upload, packing->prefix, &error))
        status = command_failed(command, &error);
    if (!status && packing->prefix && !packing->start_over)
        work_folder_pins_take(packing->prefix);
    if (!status)
        status = tokenizer_open(packing);
    packing->skips.resume = !packing->start_over && packing->prefix && work_folder_exists(packing->prefix);
    packing->skips.shared = packing->tasks.asked.given;
    packing->skips.resume |= packing->skips.shared && output_exists(packing);
    packing->skips.may_choose = packing->content.min_tokens || packing->content.max_tokens;
    if (!status)
        status = skip_report_open(&packing->skips, command, &packing->corpus, &packing->progress, packing->json,
                                  packing->force);
    if (!status)
        status = tokenizer_pack(packing, operands, operand_count);
    skip_report_close(&packing->skips, status != CLI_DONE && !packing->result.kept);
    input_warnings_free(&packing->warnings);
    drop_arguments_free(&packing->drop);
    chat_template_close(packing->chat);
    tokenizer_close(packing->tokenizer);
    content_arguments_free(&packing->content);
    pack_upload_free(&packing->upload);
    free(packing->prefix);
    return status;
}

static const struct cli_often often[] = {
    {"output", "write PREFIX.bin and .tmx, here or to s3://"},
    {"tokenizer", "the tokenizer's file or folder (default: bytes)"},
    {"field", "the field that holds the text (default: text)"},
    {"input-format", "text, jsonl, csv, parquet, ... (default: auto)"},
    {"include", "read only the files of folders that match GLOB"},
    {"separator", "what separates documents of a text file: '\\n\\n'"},
    {"messages-field", "the field of a record that holds a conversation"},
    {"chat-template", "how it is written (default: the tokenizer's)"},
    {"learn", "what is learned, such as assistant,-thinking"},
    {"columns", "fields of records whose values are kept in the index"},
    {"split", "sets by a hash of the text, such as train=99%,val=1%"},
    {"shuffle", "put the documents in a random order"},
    {"dedup", "leave duplicates out: exact or minhash"},
    {"shard-tokens", "write shards of at most N tokens, such as 1G"},
    {"on-error", "at a bad file or record: stop (default) or skip"},
    {"force", NULL},
    {"threads", "number of threads (default: one per processor)"},
};

int command_pack(int argc, char **argv)
{
    struct packing packing = {.asked = TOKENIZER_ARGUMENTS_INIT,
                              .corpus = CORPUS_ARGUMENTS_INIT,
                              .drop = DROP_ARGUMENTS_INIT,
                              .fim = FIM_ARGUMENTS_INIT,
                              .tasks = {.asked = TASK_ARGUMENTS_INIT}};
    packing.split.seed = 1;
    packing.checkpoint_ns = CHECKPOINT_NS;
    packing.threads = os_processors() < PACK_THREADS_MOST ? os_processors() : PACK_THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("Output"),
        {'o', "output", CLI_TEXT, &packing.output, NULL, "PREFIX",
         "write PREFIX.bin and PREFIX.tmx; with s3://BUCKET/PREFIX or gs://BUCKET/PREFIX they are made here, sent, and "
         "removed here",
         NULL},
        {0, "work-folder", CLI_TEXT, &packing.work_folder, NULL, "FOLDER",
         "folder in which an output for object storage is made, with space for all of it (default: NAME.upload in this "
         "one)",
         NULL},
        {0, "also", CLI_TEXT, &packing.also.typed, NULL, "FORMAT,...",
         "also write the files of other projects for each shard, which share the tokens where they can: a list such as "
         "megatron,olmo of megatron, llmc, datatrove, olmo, nanogpt. With --seal each has a copy of the tokens",
         FOREIGN_TARGET_NAMES},
        {0, "shard-tokens", CLI_SIZE, &packing.shard_tokens, &packing.shard_given, "N",
         "write shards of at most N tokens (1G: 10^9), cut at ends of documents: PREFIX-00000.bin and so on, and "
         "PREFIX, a manifest that makes them one dataset",
         NULL},
        {0, "split", CLI_TEXT, &packing.split_text, NULL, "NAME=SHARE,...",
         "split the documents by a hash of their texts into sets PREFIX.NAME, such as train=0.99,val=0.01", NULL},
        {0, "split-seed", CLI_NUMBER, &packing.split.seed, &packing.seed_given, "SEED",
         "seed of that hash (default: 1); another one gives other sets", NULL},
        {0, "shuffle", CLI_NUMBER, &packing.shuffle.seed, &packing.shuffled, "SEED",
         "put the documents in a random order that depends on SEED and on their places in the inputs alone; until the "
         "end the work takes twice the space of the tokens",
         NULL},
        {0, "shuffle-memory", CLI_SIZE, &packing.shuffle.memory, &packing.shuffle_memory_given, "SIZE",
         "memory for --shuffle (default: 96 MiB); more makes the reads of very large shuffles longer, and no choice "
         "changes the output",
         NULL},
        {0, "seal", CLI_MAYBE, &packing.sealed.text, &packing.sealed.given, "LEVEL",
         "compress the tokens of each shard as `tokmap seal` does, at this level of zstd (1 to 19, default: 6): "
         "PREFIX.bin.zst takes the place of PREFIX.bin. While a shard is sealed, its tokens are on disk, too",
         NULL},
        {0, "force", CLI_FLAG, &packing.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "dry-run", CLI_FLAG, &packing.dry_run, NULL, NULL, "read, check, and count everything, but write nothing",
         NULL},
        {0, "no-resume", CLI_FLAG, &packing.start_over, NULL, NULL,
         "start over instead of continuing the work that a killed command has left in PREFIX.work", NULL},
        {0, "checkpoint-seconds", CLI_TEXT, &packing.checkpoint_text, NULL, "N",
         "save the work every N seconds, so that the same command continues it after an interrupt or a kill (default: "
         "4; 0: never). With an input that cannot be read twice (standard input, a pipe), nothing is saved, and the "
         "command starts over",
         NULL},
        CLI_HEADING("Many machines"),
        {0, "task", CLI_TEXT, &packing.tasks.asked.task_text, NULL, "I/N|auto",
         "with --shard-tokens: be one of N processes, numbered from 0, that make the output together; auto: take the "
         "numbers from the environment of Slurm, MPI, Kubernetes (with TOKMAP_TASKS), AWS Batch, or torchrun",
         "auto"},
        {0, "finish", CLI_FLAG, &packing.tasks.asked.finish, NULL, NULL,
         "only give the shards of all tasks their names, which otherwise the last task does; fails and names what is "
         "missing",
         NULL},
        {0, "wait", CLI_NUMBER, &packing.tasks.asked.wait_seconds, &packing.tasks.asked.wait_given, "SECONDS",
         "with --dedup, --exclude-ngrams, or --shuffle: how long a task waits for others that have not begun, or have "
         "ended, before it exits with 3, to be run again (default: 0; with --task auto 60, or 600 where all tasks "
         "start together); 0: it does not wait for those that work, either",
         NULL},
        {0, "unit-bytes", CLI_SIZE, &packing.tasks.asked.unit_bytes, &packing.tasks.asked.unit_given, "SIZE",
         "with --shard-tokens: cut the inputs into units of work of SIZE (default: 16 GiB); without --shuffle the last "
         "shard of a unit is short, so another SIZE gives other shards",
         NULL},
        {0, "status", CLI_TEXT, &packing.tasks.asked.status, NULL, "PREFIX",
         "do nothing but print how far the tasks of this output are", NULL},
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTIONS(packing.asked),
        TOKENIZER_OPTION_SPECIAL(packing.asked),
        TOKENIZER_OPTIONS_EOD_BOS(packing.asked,
                                  "end each document with this token (default if the tokenizer names one)",
                                  "end no document with a token"),
        CLI_HEADING("Inputs"),
        CORPUS_OPTIONS_INPUT(packing.corpus),
        CORPUS_OPTIONS_FILES(packing.corpus),
        CORPUS_OPTION_ON_ERROR(packing.corpus),
        SKIP_OPTIONS(packing.skips),
        CORPUS_OPTIONS_TEXTS(packing.corpus),
        CORPUS_OPTION_FEEDER(packing.corpus),
        CLI_HEADING("Records"),
        {0, "ids-field", CLI_TEXT, &packing.content.ids_field, NULL, "NAME",
         "records contain ready-made token ids: the field that holds the list of them; they are checked against the "
         "tokenizer, or against --vocab-size",
         NULL},
        {0, "mask-field", CLI_TEXT, &packing.content.mask_field, NULL, "NAME",
         "with --ids-field: the field that holds a list with 1 or true for each id that counts as a target, else 0 or "
         "false",
         NULL},
        {0, "labels-field", CLI_TEXT, &packing.content.labels_field, NULL, "NAME",
         "in place of --mask-field: the field that holds the ids again, with -100 for each that does not count as a "
         "target, as transformers has labels (not shifted)",
         NULL},
        {0, "vocab-size", CLI_NUMBER, &packing.content.vocabulary, &packing.content.vocabulary_given, "N",
         "with --ids-field and without -t: each id must be below N", NULL},
        {0, "prompt-field", CLI_TEXT, &packing.content.prompt_field, NULL, "NAME",
         "records contain a prompt and a completion: the field of the prompt, whose tokens do not count as targets",
         NULL},
        {0, "completion-field", CLI_TEXT, &packing.content.completion_field, NULL, "NAME",
         "the field of the completion, whose tokens count, with the EOD", NULL},
        {0, "messages-field", CLI_TEXT, &packing.content.messages_field, NULL, "NAME",
         "records contain conversations: the field that holds the list of messages; only what the assistant says "
         "counts, or what --learn names",
         NULL},
        {0, "chat-template", CLI_TEXT, &packing.content.chat_template, NULL, "NAME|FILE",
         "how a conversation is written: a built-in template (chatml, llama3, ...), or a file or folder that holds one "
         "(default: the tokenizer's own)",
         chat_known_list()},
        {0, "learn", CLI_TEXT, &packing.content.learn_text, NULL, "WORD,...",
         "which tokens of a conversation count: those of roles (assistant, tool, system, user; default: assistant), "
         "and "
         "the token that ends the turn; -thinking: not what is between thinking tags; -calls: not calls of tools; "
         "last: "
         "only the answers to the last question. A message with a weight of 0 or 1 decides for itself",
         CHAT_LEARN_WORDS},
        {0, "ignore-fields", CLI_LIST, &packing.content.ignore, NULL, "NAME,...",
         "with --messages-field: keys beside the messages, or in them, that count for nothing though they say "
         "something, such as tools; may be repeated",
         NULL},
        {0, "columns", CLI_LIST, &packing.content.columns, NULL, "NAME,...",
         "keep the values of these fields of each record in the index; may be repeated", NULL},
        CLI_HEADING("Fill in the middle"),
        {0, "fim", CLI_TEXT, &packing.fim.text, NULL, "SHARE[,spm=SHARE]",
         "rearrange this share of the texts, such as 0.5, so that a model learns to fill in the middle: prefix, "
         "suffix, and middle, cut at random characters, each after a special token; spm: of these, the share in which "
         "the suffix comes first (default: 0.5)",
         NULL},
        {0, "fim-unit", CLI_TEXT, &packing.fim.unit, NULL, "LENGTH|document",
         "what is rearranged: a document (default), or each piece of LENGTH characters of it", "document"},
        {0, "fim-tokens", CLI_TEXT, &packing.fim.tokens, NULL, "P,M,S[,E]",
         "special tokens before prefix, middle, and suffix, and perhaps one that ends a middle, by name or id "
         "(default: those of StarCoder, Code Llama, DeepSeek-Coder, Qwen, Codestral, or Gemma)",
         NULL},
        {0, "fim-seed", CLI_NUMBER, &packing.fim.fim.seed, &packing.fim.seed_given, "SEED",
         "seed of the hash of a text that decides (default: 1)", NULL},
        CLI_HEADING("Lengths"),
        {0, "min-tokens", CLI_NUMBER, &packing.content.min_tokens, &packing.content.min_given, "N",
         "leave out documents with fewer tokens, BOS and EOD not counted", NULL},
        {0, "max-tokens", CLI_NUMBER, &packing.content.max_tokens, &packing.content.max_given, "N",
         "leave out documents with more tokens, BOS and EOD not counted", NULL},
        CLI_HEADING("Duplicates and excluded texts"),
        DROP_OPTIONS(packing.drop),
        {0, "drop", CLI_LIST, &packing.drop.lists, NULL, "LIST",
         "leave out the documents that LIST names: a NAME.dropped, or a text of lines with an input and a record, or "
         "with the hash of a text; may be repeated",
         NULL},
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &packing.threads, NULL, "N",
         "number of threads (default: one per processor); the output is the same for every N", NULL},
        {0, "json", CLI_FLAG, &packing.json, NULL, NULL, "print the closing report as JSON", NULL},
        CLI_OPTION_PROGRESS(packing.shown),
        {'q', "quiet", CLI_FLAG, &packing.quiet, NULL, NULL, "print no progress and no closing report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "-o PREFIX [OPTION]... [INPUT]...",
        .summary = "Turns text into a shard of token ids: PREFIX.bin and its index PREFIX.tmx.",
        .often = often,
        .often_count = sizeof often / sizeof often[0],
        .details =
            "An INPUT is a file, a folder (all regular files below it that are not hidden), a pattern (** matches any "
            "number of folders), a URL (https://, s3://, gs://, or hf://datasets/), or '-' for standard "
            "input. It contains text, one document per file, or records, one document each: JSONL, a JSON array, CSV, "
            "TSV, Parquet, or WARC. All but Parquet may be gzip, zstd, bzip2, xz, or LZ4.\n\n"
            "More is in tokmap-inputs(7), tokmap-documents(7), tokmap-chat(7), and tokmap-tasks(7).\n\n"
            "Examples:\n"
            "  tokmap pack -o data/books books/\n"
            "  tokmap pack -o data/web -t gpt2/tokenizer.json 'crawl/*.jsonl.zst'\n"
            "  zcat mail.gz | tokmap pack -o data/mail --invalid-utf8 replace -\n"
            "  tokmap pack -o data/sft --ids-field input_ids --mask-field loss_mask --vocab-size 32000 sft.jsonl\n",
        CLI_OPTIONS(options),
        .operands = CLI_FILES,
    };
    return cli_run(&command, argc, argv, pack, &packing);
}
