/* SPDX-License-Identifier: MIT */
#include "pack_arguments.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat_messages.h"
#include "cli/messages.h"
#include "common/bytes.h"
#include "common/error.h"
#include "dedup/shingles.h"
#include "format/sealed.h"
#include "format/shard_file.h"
#include "format/shard_seal.h"
#include "pack/pack_facts.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/decimal.h"
#include "text/utf8.h"
#include "work/task_status.h"

#define COLUMN_BYTES_MOST 1024 /* of a name, in the index */

/* Splits the names of an option at their commas: at most `most`. *text is their memory. */
static int names_split(const struct cli_command *command, const char *option, const struct cli_list *typed, char **text,
                       const char **names, size_t most, size_t *count)
{
    size_t bytes = 1, filled = 0;
    for (size_t i = 0; i < typed->count; i++)
        bytes += strlen(typed->values[i]) + 1;
    *text = malloc(bytes);
    if (!*text) {
        struct tokmap_error error;
        (void)error_set_memory(&error, "the names of fields", bytes);
        return cli_failed(command->program, &error);
    }
    for (size_t i = 0; i < typed->count; i++) {
        const char *at = typed->values[i];
        for (bool more = true; more;) {
            const size_t length = strcspn(at, ",");
            char *name = *text + filled;
            memcpy(name, at, length);
            name[length] = '\0';
            filled += length + 1;
            more = at[length] == ',';
            at += length + more;
            if (!length || length > COLUMN_BYTES_MOST || utf8_valid_prefix(name, length) < length)
                return cli_misused(command,
                                   "--%s %s: the name of a field has 1 to %d bytes of UTF-8, and commas are between "
                                   "names, as in url,meta.score",
                                   option, typed->values[i], COLUMN_BYTES_MOST);
            for (size_t k = 0; k < *count; k++)
                if (!strcmp(names[k], name))
                    return cli_misused(command, "--%s names the field '%s' twice", option, name);
            if (*count == most)
                return cli_misused(command, "--%s names more than %zu fields", option, most);
            names[(*count)++] = name;
        }
    }
    return 0;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Sets the fields that say something beside the messages: in the object that has these, and in the record. What is kept
 * as a column is not lost, unless a template could write it. */
static int beside_list(const struct cli_command *command, struct content_arguments *arguments)
{
    const char *field = arguments->messages_field, *dot = strrchr(field, '.');
    const size_t path = dot ? (size_t)(dot - field) + 1 : 0;
    size_t bytes = 1;
    for (const char *const *key = chat_beside_keys(); *key; key++)
        bytes += path + strlen(*key) + 1;
    char *at = arguments->beside_text = malloc(bytes);
    if (!at) {
        struct tokmap_error error;
        (void)error_set_memory(&error, "the names of fields", bytes);
        return cli_failed(command->program, &error);
    }
    for (const char *const *key = chat_beside_keys(); *key; key++) {
        const char *const names[] = {*key, at};
        memcpy(at, field, path);
        memcpy(at + path, *key, strlen(*key) + 1);
        at += path + strlen(*key) + 1;
        for (size_t i = 0; i < (path ? 2 : 1); i++) {
            const bool kept = is_among(names[i], arguments->column_names, arguments->column_count);
            if (is_among(*key, arguments->ignore_names, arguments->ignore_count) ||
                is_among(names[i], arguments->ignore_names, arguments->ignore_count) || !strcmp(names[i], field) ||
                (kept && !chat_beside_written(*key)))
                continue;
            assert(arguments->beside_count < RECORD_BESIDE_MOST);
            arguments->beside_names[arguments->beside_count++] = names[i];
        }
    }
    return 0;
}

/* Refuses options that need another one, or exclude each other. Returns NULL, or what is wrong. */
static const char *conflict(const struct content_arguments *arguments, const struct corpus_arguments *corpus,
                            const struct tokenizer_arguments *tokenizer)
{
    const bool ids = arguments->ids_field, prompt = arguments->prompt_field, messages = arguments->messages_field;
    if (arguments->mask_field && !ids)
        return "--mask-field is the mask of token ids: name their field with --ids-field";
    if (arguments->labels_field && !ids)
        return "--labels-field has the labels of token ids: name their field with --ids-field";
    if (arguments->labels_field && arguments->mask_field)
        return "--mask-field and --labels-field exclude each other: both say which ids count";
    if (prompt != (arguments->completion_field != NULL))
        return "--prompt-field and --completion-field belong together: name both fields";
    if (ids + prompt + messages > 1)
        return "--ids-field, --prompt-field, and --messages-field exclude each other: a record is one document";
    if (arguments->chat_template && !messages)
        return "--chat-template writes conversations: name their field with --messages-field";
    if (arguments->learn_text && !messages)
        return "--learn is about conversations: name their field with --messages-field";
    if (arguments->ignore.count && !messages)
        return "--ignore-fields is about conversations: name their field with --messages-field";
    if ((ids || prompt || messages) && strcmp(corpus->field, "text") != 0)
        return "--field names the field of a text; leave it out with --ids-field, --prompt-field, and --messages-field";
    if (arguments->vocabulary_given && !ids)
        return "--vocab-size is about ready-made ids: name their field with --ids-field";
    if (arguments->vocabulary_given && tokenizer->spec_given)
        return "--vocab-size and -t exclude each other: the ids are checked against the tokenizer";
    if (ids && !arguments->vocabulary_given && !tokenizer->spec_given)
        return "the ids of --ids-field are checked: name their tokenizer with -t FILE, or only the size of its "
               "vocabulary with --vocab-size N";
    if (arguments->vocabulary_given && (!arguments->vocabulary || arguments->vocabulary > (uint64_t)UINT32_MAX + 1))
        return "--vocab-size must be between 1 and 4294967296";
    if (ids && tokenizer->special)
        return "--special is about text, and --ids-field names token ids";
    if (messages && !strcmp(tokenizer->spec, "bytes"))
        return "a conversation needs a tokenizer with the special tokens of its chat template: name one with -t FILE";
    if ((ids || prompt || messages || arguments->columns.count) && corpus->format == CORPUS_TEXT)
        return "text files have no fields: leave --input-format text out, or name the format of the records";
    if (arguments->max_given && !arguments->max_tokens)
        return "--max-tokens must be at least 1";
    if (arguments->max_given && arguments->min_tokens > arguments->max_tokens)
        return "--min-tokens is more than --max-tokens: no document would be left";
    return NULL;
}

/* Reads the words of --learn. Without a role among them, they are about the assistant. */
static int learn_read(const struct cli_command *command, struct content_arguments *arguments)
{
    static const char *const words[] = {"assistant", "tool", "system", "user", "-thinking", "-calls", "last"};
    const char *at = arguments->learn_text;
    struct chat_learn *learn = &arguments->learn;
    for (bool more = at != NULL; more;) {
        const size_t length = strcspn(at, ",");
        char word[16] = "";
        more = at[length] == ',';
        (void)snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (length >= sizeof word || !chat_learn_add(learn, word)) {
            const char *nearest = cli_nearest(word, words, sizeof words / sizeof *words);
            const bool twice = length < sizeof word && nearest && !strcmp(nearest, word);
            nearest = twice ? NULL : nearest;
            return cli_misused(command, "--learn %s: '%.*s' is %s%s%s%s", arguments->learn_text, (int)length, at,
                               twice ? "there twice" : "not one of " CHAT_LEARN_WORDS,
                               nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
        }
        at += length + more;
    }
    if (learn->given && !learn->roles)
        (void)chat_learn_add(learn, "assistant");
    return 0;
}

/* Refuses the same field for two purposes, which is a slip. */
static const char *same_field(const struct content_arguments *arguments)
{
    if (arguments->mask_field && !strcmp(arguments->ids_field, arguments->mask_field))
        return "--ids-field and --mask-field name the same field";
    if (arguments->labels_field && !strcmp(arguments->ids_field, arguments->labels_field))
        return "--ids-field and --labels-field name the same field";
    if (arguments->prompt_field && !strcmp(arguments->prompt_field, arguments->completion_field))
        return "--prompt-field and --completion-field name the same field";
    return NULL;
}

int content_arguments_check(const struct cli_command *command, struct content_arguments *arguments,
                            const struct corpus_arguments *corpus, const struct tokenizer_arguments *tokenizer)
{
    const char *wrong = conflict(arguments, corpus, tokenizer);
    if (!wrong)
        wrong = same_field(arguments);
    if (wrong)
        return cli_misused(command, "%s", wrong);
    arguments->content = arguments->ids_field        ? CORPUS_CONTENT_IDS
                         : arguments->prompt_field   ? CORPUS_CONTENT_PROMPT
                         : arguments->messages_field ? CORPUS_CONTENT_MESSAGES
                                                     : CORPUS_CONTENT_TEXT;
    int status = learn_read(command, arguments);
    if (!status)
        status = names_split(command, "columns", &arguments->columns, &arguments->column_text, arguments->column_names,
                             RECORD_COLUMNS_MOST, &arguments->column_count);
    if (!status)
        status = names_split(command, "ignore-fields", &arguments->ignore, &arguments->ignore_text,
                             arguments->ignore_names, RECORD_BESIDE_MOST, &arguments->ignore_count);
    return status || !arguments->messages_field ? status : beside_list(command, arguments);
}

void content_arguments_free(struct content_arguments *arguments)
{
    free(arguments->column_text);
    free(arguments->ignore_text);
    free(arguments->beside_text);
    arguments->column_text = arguments->ignore_text = arguments->beside_text = NULL;
}

void content_arguments_apply(const struct content_arguments *arguments, struct corpus_options *options)
{
    options->content = arguments->content;
    if (arguments->ids_field) {
        options->field = arguments->ids_field;
        options->second_field = arguments->labels_field ? arguments->labels_field : arguments->mask_field;
        options->labels = arguments->labels_field;
    } else if (arguments->prompt_field) {
        options->field = arguments->prompt_field;
        options->second_field = arguments->completion_field;
    } else if (arguments->messages_field) {
        options->field = arguments->messages_field;
    }
    options->columns = arguments->column_names;
    options->column_count = arguments->column_count;
    options->beside = arguments->beside_names;
    options->beside_count = arguments->beside_count;
}

/* Reads the id of --eod or --bos (`option`). */
static int id_read(const struct cli_command *command, const struct content_arguments *arguments, const char *option,
                   const char *value, uint64_t *id)
{
    if (!*value || !cli_parse_number(value, id))
        return cli_misused(command, "--%s needs an id where no tokenizer is named: --%s=ID, or name one with -t FILE",
                           option, option);
    if (*id >= arguments->vocabulary)
        return cli_misused(command, "--%s=%s: the ids of --vocab-size end at %" PRIu64, option, value,
                           arguments->vocabulary - 1);
    return 0;
}

int content_arguments_eod_bos(const struct cli_command *command, const struct content_arguments *arguments,
                              const struct tokenizer_arguments *tokenizer, uint64_t *eod, uint64_t *bos)
{
    *eod = *bos = TOKMAP_NO_ID;
    const int status = tokenizer->eod_given ? id_read(command, arguments, "eod", tokenizer->eod, eod) : 0;
    return status || !tokenizer->bos_given ? status : id_read(command, arguments, "bos", tokenizer->bos, bos);
}

/* ---- fill in the middle ---- */

int fim_arguments_check(const struct cli_command *command, struct fim_arguments *arguments,
                        const struct content_arguments *content)
{
    struct fim *fim = &arguments->fim;
    const char *other = arguments->unit ? "unit" : arguments->tokens ? "tokens" : arguments->seed_given ? "seed" : NULL;
    if (!arguments->text)
        return other
                   ? cli_misused(command, "--fim-%s is about --fim: give the share of documents with --fim 0.5", other)
                   : 0;
    const char *wrong = fim_parse(arguments->text, fim);
    if (wrong)
        return cli_misused(command, "--fim %s: %s", arguments->text, wrong);
    if (content->ids_field || content->prompt_field || content->messages_field)
        return cli_misused(command, "--fim rearranges texts: leave it out with --ids-field, --prompt-field, and "
                                    "--messages-field");
    if (arguments->unit && strcmp(arguments->unit, "document") != 0 &&
        (!cli_parse_size(arguments->unit, &fim->unit) || !fim->unit))
        return cli_misused(command,
                           "--fim-unit is the number of characters in a piece, such as 4k, or document; got '%s'",
                           arguments->unit);
    return 0;
}

/* Finds the tokens that --fim-tokens names. */
static int fim_tokens_read(const struct cli_command *command, const struct tokenizer *tokenizer, const char *text,
                           uint64_t eod_id, struct fim *fim)
{
    uint64_t ids[4] = {TOKMAP_NO_ID, TOKMAP_NO_ID, TOKMAP_NO_ID, TOKMAP_NO_ID};
    size_t count = 0;
    for (const char *at = text; at; count++) {
        char name[256];
        const size_t bytes = strcspn(at, ",");
        if (count == 4 || !bytes || bytes >= sizeof name) {
            count = 0;
            break;
        }
        memcpy(name, at, bytes);
        name[bytes] = '\0';
        const int status = tokenizer_arguments_id(command, tokenizer, "fim-tokens", name, &ids[count]);
        if (status)
            return status;
        for (size_t i = 0; i < count; i++)
            if (ids[i] == ids[count])
                return cli_misused(command, "--fim-tokens %s: the token '%s' has two roles", text, name);
        if (ids[count] == eod_id)
            return cli_misused(command, "--fim-tokens %s: the token '%s' ends documents, and can have no other role",
                               text, name);
        at = at[bytes] ? at + bytes + 1 : NULL;
    }
    if (count < 3)
        return cli_misused(command,
                           "--fim-tokens %s: name the tokens before prefix, middle, and suffix with commas between "
                           "them, and perhaps one that ends a middle",
                           text);
    fim->prefix_id = ids[0];
    fim->middle_id = ids[1];
    fim->suffix_id = ids[2];
    fim->end_id = ids[3];
    return 0;
}

int fim_arguments_open(const struct cli_command *command, struct fim_arguments *arguments,
                       const struct tokenizer *tokenizer, uint64_t eod_id, const struct fim **out)
{
    struct fim *fim = &arguments->fim;
    *out = NULL;
    if (!arguments->text)
        return 0;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    const int status = arguments->tokens ? fim_tokens_read(command, tokenizer, arguments->tokens, eod_id, fim) : 0;
    if (status)
        return status;
    if (!arguments->tokens && !fim_tokens_find(fim, tokenizer))
        return cli_misused(command,
                           "--fim: the vocabulary of '%s' has no known tokens to fill in the middle; name them with "
                           "--fim-tokens PREFIX,MIDDLE,SUFFIX, or use a tokenizer that has them",
                           info.name);
    fim->end_always = fim->end_id != TOKMAP_NO_ID;
    if (fim->unit && !fim->end_always)
        fim->end_id = eod_id;
    if (fim->unit && fim->end_id == TOKMAP_NO_ID)
        return cli_misused(command,
                           "--fim-unit %s: a token has to end a piece inside a document: leave out --no-eod, "
                           "or name one as the fourth of --fim-tokens",
                           arguments->unit);
    *out = fim;
    return 0;
}

/* ---- the work of many processes ---- */

#define TASKS_VARIABLE "TOKMAP_TASKS"
#define WAIT_MOST ((uint64_t)365 * 86400)
#define WAIT_TOGETHER 600 /* seconds: what starts all processes at once also ends them */
#define WAIT_APART 60

enum scheduler { SLURM_ARRAY, SLURM_STEP, OPEN_MPI, PMI, PMIX, KUBERNETES, AWS_ARRAY, AWS_NODES, TORCH, SCHEDULERS };

static const struct {
    const char *number, *count; /* count NULL: TOKMAP_TASKS */
    const char *both;           /* for reports */
    bool apart;                 /* some processes may begin when others have ended */
} variables[SCHEDULERS] = {
    [SLURM_ARRAY] = {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_ID and _COUNT", true},
    [SLURM_STEP] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID and SLURM_STEP_NUM_TASKS", false},
    [OPEN_MPI] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK and _SIZE", false},
    [PMI] = {"PMI_RANK", "PMI_SIZE", "PMI_RANK and PMI_SIZE", false},
    [PMIX] = {"PMIX_RANK", NULL, "PMIX_RANK and " TASKS_VARIABLE, false},
    [KUBERNETES] = {"JOB_COMPLETION_INDEX", NULL, "JOB_COMPLETION_INDEX and " TASKS_VARIABLE, true},
    [AWS_ARRAY] = {"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", "AWS_BATCH_JOB_ARRAY_INDEX and _SIZE",
                   true},
    [AWS_NODES] = {"AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES",
                   "AWS_BATCH_JOB_NODE_INDEX and AWS_BATCH_JOB_NUM_NODES", false},
    [TORCH] = {"RANK", "WORLD_SIZE", "RANK and WORLD_SIZE", false},
};

struct found {
    bool there;
    uint64_t task, tasks;
};

/* Returns a variable of the environment; NULL if it is not set, or empty. */
static const char *variable(const char *name)
{
    const char *text = name ? secure_getenv(name) : NULL;
    return text && *text ? text : NULL;
}

/* Reads a variable that is set. Returns 0, or the exit status after a message. */
static int number_read(const struct cli_command *command, const char *name, uint64_t *number)
{
    const char *text = variable(name);
    if (text && decimal_parse(text, strlen(text), number))
        return 0;
    return cli_misused(command, "--task auto: the variable %s is %s%s%s, and should be a number; use --task I/N", name,
                       text ? "'" : "", text ? text : "not set", text ? "'" : "");
}

/* Reads a task of an array of Slurm, which may begin at any number, and have steps: 5, 7, 9 are tasks 0, 1, 2 of 3. */
static int array_read(const struct cli_command *command, struct found *found)
{
    uint64_t least, most, step = 1, id;
    int status = number_read(command, "SLURM_ARRAY_TASK_ID", &id);
    if (!status)
        status = number_read(command, "SLURM_ARRAY_TASK_COUNT", &found->tasks);
    if (!status)
        status = number_read(command, "SLURM_ARRAY_TASK_MIN", &least);
    if (!status)
        status = number_read(command, "SLURM_ARRAY_TASK_MAX", &most);
    if (!status && variable("SLURM_ARRAY_TASK_STEP"))
        status = number_read(command, "SLURM_ARRAY_TASK_STEP", &step);
    if (status)
        return status;
    if (!step || !found->tasks || id < least || id > most || (id - least) % step || (most - least) % step ||
        (most - least) / step != found->tasks - 1)
        return cli_misused(command,
                           "--task auto: this array job has a list of numbers (SLURM_ARRAY_TASK_MIN %" PRIu64
                           ", _MAX %" PRIu64 ", _COUNT %" PRIu64 "), and Slurm does not say which place in it a task "
                           "has; use --array=0-%" PRIu64 ", or --task I/N",
                           least, most, found->tasks, found->tasks - (found->tasks != 0));
    found->task = (id - least) / step;
    return 0;
}

static int scheduler_read(const struct cli_command *command, enum scheduler scheduler, struct found *found)
{
    const char *count = variables[scheduler].count ? variables[scheduler].count : TASKS_VARIABLE;
    found->there = variable(variables[scheduler].number) != NULL;
    /* The script of a job has SLURM_PROCID, too, and is no step. */
    if (scheduler == SLURM_STEP || scheduler == TORCH)
        found->there = found->there && variable(count);
    if (!found->there)
        return 0;
    if (scheduler == SLURM_ARRAY)
        return array_read(command, found);
    const int status = number_read(command, variables[scheduler].number, &found->task);
    return status ? status : number_read(command, count, &found->tasks);
}

/* Returns how many processes of torchrun together have numbered the processes of this world; 0 if it is not torchrun
 * that did, or an old one, which does not say. */
static uint64_t torchrun_groups(void)
{
    const char *text = variable("TORCHELASTIC_RUN_ID") ? variable("GROUP_WORLD_SIZE") : NULL;
    uint64_t groups;
    return text && decimal_parse(text, strlen(text), &groups) ? groups : 0;
}

/* Leaves out what says nothing beside other variables. */
static void found_reduce(struct found found[SCHEDULERS])
{
    size_t several = 0;
    if (found[OPEN_MPI].there || found[PMI].there)
        found[SLURM_STEP].there = found[AWS_NODES].there = false;
    const uint64_t groups = found[TORCH].there ? torchrun_groups() : 0;
    for (int i = 0; i < TORCH && groups; i++)
        if (i != SLURM_ARRAY && i != AWS_ARRAY && found[i].tasks == groups)
            found[i].there = false;
    for (int i = 0; i < SCHEDULERS; i++)
        several += found[i].there && found[i].tasks > 1;
    for (int i = 0; i < SCHEDULERS && several; i++)
        found[i].there = found[i].there && found[i].tasks > 1;
}

/* Returns true if this is the main node of a job of AWS Batch, which ends all other nodes when this one ends. */
static bool is_main_node(void)
{
    const char *own = variable(variables[AWS_NODES].number), *main_node = variable("AWS_BATCH_JOB_MAIN_NODE_INDEX");
    return own && main_node && !strcmp(own, main_node);
}

static int environment_read(const struct cli_command *command, struct task_arguments *arguments)
{
    struct found found[SCHEDULERS] = {{false, 0, 0}};
    int chosen = -1, other = -1;
    for (int i = 0; i < SCHEDULERS; i++) {
        /* PMIx does not say how many there are; whoever starts processes with it has other variables, too. */
        const bool needless = i == PMIX && (found[SLURM_STEP].there || found[OPEN_MPI].there || found[PMI].there);
        const int status = needless ? 0 : scheduler_read(command, (enum scheduler)i, &found[i]);
        if (status)
            return status;
    }
    found_reduce(found);
    for (int i = SCHEDULERS - 1; i >= 0; i--) {
        if (found[i].there && chosen >= 0 &&
            (found[i].task != found[chosen].task || found[i].tasks != found[chosen].tasks))
            other = chosen;
        chosen = found[i].there ? i : chosen;
    }
    if (chosen < 0)
        return cli_misused(
            command, "--task auto: no variable has a number for this process (SLURM_ARRAY_TASK_ID, SLURM_PROCID in a "
                     "step of srun, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK, JOB_COMPLETION_INDEX, "
                     "AWS_BATCH_JOB_ARRAY_INDEX, AWS_BATCH_JOB_NODE_INDEX, RANK with WORLD_SIZE); use --task I/N");
    if (other >= 0)
        return cli_misused(command,
                           "--task auto: variables disagree: %s say task %" PRIu64 " of %" PRIu64
                           ", and %s say task %" PRIu64 " of %" PRIu64 "; use --task I/N",
                           variables[chosen].both, found[chosen].task, found[chosen].tasks, variables[other].both,
                           found[other].task, found[other].tasks);
    arguments->task = found[chosen].task;
    arguments->tasks = found[chosen].tasks;
    arguments->variables = variables[chosen].both;
    arguments->stays = is_main_node();
    if (!arguments->wait_given)
        arguments->wait_seconds = variables[chosen].apart ? WAIT_APART : WAIT_TOGETHER;
    return 0;
}

int task_arguments_check(const struct cli_command *command, struct task_arguments *arguments)
{
    const char *text = arguments->task_text;
    if (arguments->unit_given && !arguments->unit_bytes)
        return cli_misused(command, "--unit-bytes must be at least 1");
    if (arguments->wait_given && !text)
        return cli_misused(command, "--wait is for one of several tasks: give its number with --task I/N");
    if (arguments->wait_seconds > WAIT_MOST)
        return cli_misused(command, "--wait must be at most %" PRIu64 " seconds; got %" PRIu64, WAIT_MOST,
                           arguments->wait_seconds);
    arguments->given = text || arguments->finish;
    if (!text)
        return 0;
    if (arguments->finish)
        return cli_misused(command, "--finish is for the end of all tasks: leave out --task");
    const char *slash = strchr(text, '/');
    if (!strcmp(text, "auto")) {
        const int status = environment_read(command, arguments);
        if (status)
            return status;
    } else if (!slash || !decimal_parse(text, (size_t)(slash - text), &arguments->task) ||
               !decimal_parse(slash + 1, strlen(slash + 1), &arguments->tasks)) {
        return cli_misused(command, "--task must be I/N, such as 0/8, or auto; got '%s'", text);
    }
    if (!arguments->tasks || arguments->tasks > TASKS_MOST)
        return cli_misused(command, "--task: there can be 1 to %" PRIu64 " tasks; got %" PRIu64, TASKS_MOST,
                           arguments->tasks);
    if (arguments->task >= arguments->tasks)
        return cli_misused(command, "--task: %" PRIu64 " tasks are numbered from 0 to %" PRIu64 "; got %" PRIu64,
                           arguments->tasks, arguments->tasks - 1, arguments->task);
    return 0;
}

/* ---- documents that other texts drop ---- */

static bool is_minhash(const struct drop_arguments *drop)
{
    return drop->dedup_given && drop->dedup == DROP_MINHASH;
}

/* Checks the options of --dedup minhash, and what it cannot be used with. */
static int minhash_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content, bool dry_run)
{
    if (!is_minhash(drop))
        return drop->ngram_given || drop->bands_given || drop->rows_given
                   ? cli_misused(command,
                                 "--minhash-ngram, --minhash-bands, and --minhash-rows are about --dedup minhash")
                   : 0;
    if (!drop->ngram || drop->ngram > SHINGLE_WORDS_MOST)
        return cli_misused(command, "--minhash-ngram must be between 1 and %d", SHINGLE_WORDS_MOST);
    if (!drop->bands || !drop->rows || drop->bands > MINHASH_BANDS_MOST || drop->rows > MINHASH_HASHES_MOST ||
        drop->bands * drop->rows > MINHASH_HASHES_MOST)
        return cli_misused(
            command,
            "--minhash-bands must be between 1 and %d, --minhash-rows at least 1, and their product, the "
            "hashes of a signature, at most %d",
            MINHASH_BANDS_MOST, MINHASH_HASHES_MOST);
    if (dry_run)
        return cli_misused(command, "--dedup minhash keeps the bands of the documents beside the output, and cannot be "
                                    "used with --dry-run; pack into a folder that you remove");
    if (content->ids_field)
        return cli_misused(command,
                           "--dedup minhash compares words, and ready-made ids have none: pack the texts, or use "
                           "--dedup exact");
    if (content->messages_field)
        return cli_misused(command,
                           "--dedup minhash cannot be used with --messages-field: the words of a conversation are "
                           "divided among its messages; use --dedup exact");
    return 0;
}

int drop_arguments_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content, bool dry_run)
{
    if (drop->memory_given && !drop->dedup_given)
        return cli_misused(command, "--dedup-memory is about --dedup exact and --dedup minhash");
    if (drop->lists.count > LISTED_MOST)
        return cli_misused(command, "--drop can name at most %d lists", LISTED_MOST);
    const int wrong = minhash_check(command, drop, content, dry_run);
    if (wrong)
        return wrong;
    if (!drop->ngrams.count && (drop->words_given || drop->field))
        return cli_misused(command, "--exclude-words and --exclude-field are about the files of --exclude-ngrams FILE");
    if (!drop->words || drop->words > NGRAM_WORDS_MOST)
        return cli_misused(command, "--exclude-words must be between 1 and %d", NGRAM_WORDS_MOST);
    if (drop->ngrams.count && content->ids_field)
        return cli_misused(command, "--exclude-ngrams compares words, and ready-made ids have none: pack the texts, or "
                                    "exclude documents where the ids are made");
    if (drop->ngrams.count && content->messages_field)
        return cli_misused(command,
                           "--exclude-ngrams cannot be used with --messages-field: the words of a conversation "
                           "are divided among its messages");
    return 0;
}

int drop_arguments_own(const struct cli_command *command, const struct drop_arguments *drop, const char *prefix)
{
    struct os_stat own, list;
    char *path = shard_file_path(prefix, SHARD_DROPPED, SHARD_FINAL);
    const bool there = path && !os_stat(path, &own);
    free(path);
    for (size_t i = 0; there && i < drop->lists.count; i++)
        if (!os_stat(drop->lists.values[i], &list) && list.inode == own.inode && list.device == own.device)
            return cli_misused(command,
                               "--drop %s has the name of the list that belongs to this output, which packing removes "
                               "or replaces; choose another name for the output, or for the list",
                               drop->lists.values[i]);
    return 0;
}

/* Prints an error about the files, whose options have other names than those of the inputs. */
static int list_failed(const struct cli_command *command, struct tokmap_error *error)
{
    static const char field[] = "--field";
    char *at = strstr(error->message, field);
    char rest[sizeof error->message];
    if (at) {
        (void)snprintf(rest, sizeof rest, "%s", at + sizeof field - 1);
        (void)snprintf(at, sizeof error->message - (size_t)(at - error->message), "--exclude-field%s", rest);
    }
    cli_say(command->program, "a file of --exclude-ngrams cannot be used; it has a text in each line, or in the field "
                              "of each record if its name ends in .jsonl, .json, or .parquet");
    return command_failed(command, error);
}

/* Reads the lists of --drop. */
static enum tokmap_status lists_read(struct drop_arguments *drop, const struct corpus_options *corpus,
                                     bool (*stop)(void *user), void *user, struct tokmap_error *error)
{
    if (!drop->lists.count)
        return TOKMAP_OK;
    drop->reading = pack_reading(corpus, NULL);
    return drop->reading ? listed_documents_open(&drop->listed, drop->lists.values, drop->lists.count, drop->reading,
                                                 stop, user, error)
                         : error_set_memory(error, "the lists of --drop", 0);
}

int drop_arguments_open(const struct cli_command *command, struct drop_arguments *drop,
                        const struct corpus_options *corpus, bool (*stop)(void *user), void *user,
                        const struct drop_options **options)
{
    struct tokmap_error error;
    struct ngram_counts counts;
    *options = NULL;
    drop->form = (struct minhash_form){(uint32_t)drop->ngram, (uint32_t)drop->bands, (uint32_t)drop->rows};
    drop->options = (struct drop_options){.duplicates = drop->dedup_given && !is_minhash(drop),
                                          .minhash = is_minhash(drop) ? &drop->form : NULL,
                                          .memory = drop->memory};
    if (!drop->memory_given)
        drop->options.memory = os_memory_limit() / 4;
    if (drop->dedup_given || drop->ngrams.count)
        *options = &drop->options;
    enum tokmap_status status = lists_read(drop, corpus, stop, user, &error);
    if (status || !drop->ngrams.count)
        return status ? command_failed(command, &error) : 0;
    status = ngram_table_new(&drop->excluded, (uint32_t)drop->words, &error);
    if (status)
        return command_failed(command, &error);
    status = ngram_table_load(drop->excluded, drop->ngrams.values, drop->ngrams.count,
                              drop->field ? drop->field : "text", stop, user, &error);
    if (status)
        return list_failed(command, &error);
    status = ngram_table_finish(drop->excluded, &error);
    if (status)
        return command_failed(command, &error);
    ngram_table_counts(drop->excluded, &counts);
    if (counts.short_texts)
        cli_warn(command->program,
                 "%" PRIu64 " of %" PRIu64 " texts of --exclude-ngrams have fewer than %" PRIu64
                 " words, so they exclude nothing; --exclude-words N sets another number",
                 counts.short_texts, counts.texts, drop->words);
    drop->options.ngrams = drop->excluded;
    return 0;
}

void drop_arguments_free(struct drop_arguments *drop)
{
    ngram_table_free(drop->excluded);
    drop->excluded = NULL;
    listed_documents_close(drop->listed);
    drop->listed = NULL;
    free(drop->reading);
}

void drop_report_to(const struct drop_counts *counts, const char *name, struct cli_report *report)
{
    const uint64_t duplicates = counts->duplicates + counts->near_duplicates;
    if (!counts->documents)
        return;
    if (!report->as_json)
        cli_print("\ndropped: %s of %s documents%s%s%s\n", CLI_COUNT(duplicates + counts->excluded),
                  CLI_COUNT(counts->documents), name ? " (tokmap show --dropped " : "", name ? name : "",
                  name ? ")" : "");
    cli_report_object(report, "dropped");
    cli_numbers(report, "documents_read|duplicates|near_duplicates", counts->documents, counts->duplicates,
                counts->near_duplicates);
    cli_line(report, NULL, counts->by_minhash ? "near-duplicates" : "duplicates", duplicates, "");
    cli_line(report, "excluded", "excluded", counts->excluded, "");
    cli_member(report, "key_file_bytes", cli_number(counts->file_bytes));
    cli_report_close(report);
    if (!report->as_json && counts->read_twice)
        cli_print("  the inputs were read twice, and the keys of the documents needed %s in a file\n",
                  CLI_BYTES(counts->file_bytes));
}

void listed_report_to(const struct listed_documents *listed, const struct listed_counts *counts,
                      struct cli_report *report)
{
    if (!listed)
        return;
    if (!report->as_json)
        cli_print("\n");
    cli_report_array(report, "listed");
    for (size_t i = 0; i < listed_documents_count(listed); i++) {
        const struct listed_list list = listed_documents_list(listed, i);
        cli_report_object(report, NULL);
        cli_member(report, "list", cli_text(list.path));
        cli_numbers(report, "entries|documents|missing", list.entries, counts->dropped[i], counts->missing[i]);
        cli_report_close(report);
        if (report->as_json)
            continue;
        cli_print("--drop %s: %s of %s documents\n", list.path, CLI_COUNT(counts->dropped[i]),
                  CLI_COUNT(counts->documents));
        if (counts->missing[i])
            cli_print("  %s of its entries are in no input\n", CLI_COUNT(counts->missing[i]));
    }
    cli_report_close(report);
}

/* ---- sealing ---- */

#define SEAL_THREADS_MOST 16 /* so that their memory stays below 150 MiB */

int pack_seal_check(const struct cli_command *command, struct pack_seal *sealed)
{
    uint64_t level = SEAL_LEVEL;
    if (!sealed->given)
        return 0;
    if (*sealed->text &&
        (!decimal_parse(sealed->text, strlen(sealed->text), &level) || !level || level > SEAL_LEVEL_MOST))
        return cli_misused(command, "--seal=LEVEL must be a level of zstd, 1 to %d; got '%s'", SEAL_LEVEL_MOST,
                           sealed->text);
    sealed->seal.level = (int)level;
    struct tokmap_error error = {0};
    return sealed_load(NULL, &error) ? cli_failed(command->program, &error) : 0;
}

static int sealed_report(void *user, uint64_t done, uint64_t total)
{
    struct pack_seal *sealed = user;
    if (sealed->alone && !sealed->begun) {
        cli_progress_end(sealed->progress);
        cli_progress_start(sealed->progress, "sealing", NULL, total, sealed->shown);
        sealed->begun = true;
    }
    if (sealed->alone)
        cli_progress_update(sealed->progress, done);
    return os_signal_caught() != 0;
}

const struct shard_writer_seal *pack_seal_start(struct pack_seal *sealed, uint64_t threads, bool alone,
                                                struct cli_progress *progress, int shown)
{
    if (!sealed->given)
        return NULL;
    sealed->seal.threads = (uint32_t)min64(threads, SEAL_THREADS_MOST);
    sealed->seal.progress = sealed_report;
    sealed->seal.user = sealed;
    sealed->alone = alone;
    sealed->progress = progress;
    sealed->shown = shown;
    return &sealed->seal;
}
