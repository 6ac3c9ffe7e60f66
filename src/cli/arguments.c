/* SPDX-License-Identifier: MIT */
/*
 * arguments.c - options as GNU programs take them: --name VALUE, --name=VALUE, -x VALUE, -xVALUE, flags together as
 * -abc, operands between options, and "--" before operands that begin with a dash.
 */
#include "arguments.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "complete.h"
#include "messages.h"
#include "numbers.h"
#include "platform/os.h"
#include "text/edit_distance.h"

const char *cli_nearest(const char *typed, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t least = strlen(typed) < 4 ? 2 : 3;
    for (size_t i = 0; i < count; i++) {
        const size_t distance = edit_distance(typed, words[i]);
        /* If every byte of a short word has to change, the words have nothing in common. */
        if (distance < least && distance < strlen(words[i])) {
            least = distance;
            nearest = words[i];
        }
    }
    if (nearest || strlen(typed) < 2)
        return nearest;
    for (size_t i = 0; i < count; i++)
        if (strncmp(words[i], typed, strlen(typed)) == 0)
            return words[i];
    return NULL;
}

int cli_misused(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cli_say_list(command->program, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "Try '%s --help'.\n", command->program);
    return CLI_MISUSED;
}

static const struct cli_option *option_by_name(const struct cli_command *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (length && strlen(command->options[i].name) == length && memcmp(command->options[i].name, name, length) == 0)
            return &command->options[i];
    return NULL;
}

/* ---- options of other projects ---- */

struct foreign_option {
    const char *names;  /* "workers num-workers": how other projects spell it, with dashes for underscores */
    const char *option; /* the command's name for it, without "--"; the row is about commands that have this option */
    const char *advice; /* advice, or NULL: the option, with the same value */
};

/* The names that other projects give to options, for "did you mean": from Megatron's preprocess_data, nanotron, litgpt,
 * litdata, and the scripts of transformers; and former ones of `tokmap audit`. The first row whose option the command
 * has counts. */
static const struct foreign_option foreign_options[] = {
    {"workers num-workers num-proc nproc jobs preprocessing-num-workers", "threads", NULL},
    {"text-field text-key text-column text-column-name json-key json-keys key column", "field", NULL},
    {"input input-file input-dir data data-path data-dir dataset train-file", "input-format",
     "inputs have no option: write their names at the end"},
    {"parquet jsonl csv tsv warc format", "input-format",
     "the format is found by name and content; otherwise name it with --input-format"},
    {"output-prefix output-dir output-path output-file out", "output", NULL},
    {"tokenizer-type", "tokenizer", "the type is found in the tokenizer's file, which --tokenizer names"},
    {"tokenizer-model tokenizer-name tokenizer-path tokenizer-file tokenizer-name-or-path model model-name-or-path "
     "vocab vocab-file merge-file",
     "tokenizer", "name the tokenizer's file, or the folder that holds it, with --tokenizer"},
    {"append-eod append-eos add-eos eos eos-token eos-token-id", "eod", NULL},
    {"add-bos bos-token bos-token-id", "bos", NULL},
    {"shard-size chunk-size chunk-bytes max-shard-size max-tokens-per-file partitions", "shard-tokens",
     "give the size of a shard in tokens with --shard-tokens, such as 1G"},
    {"random-seed data-seed", "seed", NULL},
    {"seed random-seed data-seed", "shuffle",
     "--shuffle SEED puts the documents in a random order, and --split-seed chooses the sets of --split"},
    {"val-split val-size val-split-fraction validation-split validation-split-percentage test-size", "split",
     "name the sets and their shares: --split train=0.99,val=0.01"},
    {"world-size", "ranks", NULL},
    {"seq-length sequence-length max-seq-length max-seq-len max-length block-size", "seq-len", NULL},
    {"seq-len seq-length sequence-length max-seq-length max-seq-len max-length block-size", "input-format",
     "documents stay whole; a run file says with seq_len how long the rows of training are"},
    {"batch-size global-batch-size", "batch", NULL},
    {"overwrite", "force", NULL},
    {"messages messages-key messages-column conversations", "messages-field", NULL},
    {"cache block horizon step-time price-request price-gib", "sample-steps",
     "what a cache of each node reads is simulated by `tokmap-bench cost RUN --gpus R --step-ms MS --cache SIZE "
     "--nodes N`"},
};

/* Returns whether a list of words has the word, which may have underscores for dashes. */
static bool list_has(const char *list, const char *word)
{
    for (const char *at = list;; at++) {
        size_t i = 0;
        while (word[i] && (at[i] == word[i] || (at[i] == '-' && word[i] == '_')))
            i++;
        if (!word[i] && (!at[i] || at[i] == ' '))
            return true;
        at += strcspn(at, " ");
        if (!*at)
            return false;
    }
}

/* Returns the row for an unknown option --TYPED of the command, or NULL. */
static const struct foreign_option *foreign_option_of(const struct cli_command *command, const char *typed)
{
    for (size_t row = 0; row < sizeof foreign_options / sizeof foreign_options[0]; row++)
        for (size_t i = 0; i < command->option_count && list_has(foreign_options[row].names, typed); i++)
            if (!strcmp(command->options[i].name, foreign_options[row].option))
                return &foreign_options[row];
    return NULL;
}

/* ---- help ---- */

#define HELP_INDENT 26

/* Prints a text that begins at column `at`, wrapped before column `columns`; further lines begin at column `indent`. A
 * newline in the text begins a new line. */
static void help_wrap(const char *text, size_t at, size_t indent, size_t columns)
{
    for (;;) {
        const size_t word = strcspn(text, " \n");
        printf("%.*s", (int)word, text);
        at += word;
        text += word;
        if (!*text)
            break;
        const bool newline = *text == '\n';
        text += newline ? 1 : strspn(text, " ");
        if (newline || at + 1 + strcspn(text, " \n") > columns) {
            printf("\n%*s", *text ? (int)indent : 0, "");
            at = indent;
        } else {
            putchar(' ');
            at++;
        }
    }
    putchar('\n');
}

static void help_option(const struct cli_option *option, size_t columns)
{
    char left[128];
    char letter[5] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    const bool maybe = option->kind == CLI_MAYBE;
    int length =
        snprintf(left, sizeof left, "  %s--%s%s%s%s%s", letter, option->name, option->value ? (maybe ? "[=" : " ") : "",
                 option->value ? option->value : "", option->value && maybe ? "]" : "", "");
    length = length < (int)sizeof left ? length : (int)sizeof left - 1;
    printf("%s", left);
    if (length + 2 > HELP_INDENT)
        printf("\n%*s", HELP_INDENT, "");
    else
        printf("%*s", HELP_INDENT - length, "");
    help_wrap(option->help, HELP_INDENT, HELP_INDENT, columns);
}

static const char last_heading[] = "General"; /* of --help and --version */

/* Returns the bytes of the argument of a shell command that begins at `at` and ends before a blank outside quotes. */
static size_t example_argument(const char *at, const char *end)
{
    char quote = 0;
    size_t length = 0;
    for (; at + length < end && (quote || at[length] != ' '); length++)
        if (quote ? at[length] == quote : at[length] == '\'' || at[length] == '"')
            quote = quote ? 0 : at[length];
    return length;
}

/* Prints an example, which is one shell command. A long one continues after a backslash, so that it can be copied from
 * the terminal. An option stays on the line of the argument after it, which may be its value. */
static void help_example(const char *line, size_t length, size_t columns)
{
    static const char more[] = " \\\n    ";
    const char *end = line + length;
    size_t column = strspn(line, " ");
    printf("%*s", (int)column, "");
    bool first = true;
    for (const char *at = line + column; at < end;) {
        size_t unit = example_argument(at, end);
        if (*at == '-' && at + unit < end && at[unit + 1] != '-')
            unit += 1 + example_argument(at + unit + 1, end);
        const bool last = at + unit >= end;
        if (!first && column + 1 + unit + (last ? 0 : 2) > columns) {
            printf("%s%.*s", more, (int)unit, at);
            column = sizeof more - 4 + unit;
        } else {
            printf("%s%.*s", first ? "" : " ", (int)unit, at);
            column += unit + !first;
        }
        first = false;
        at += unit + !last;
    }
    putchar('\n');
}

/* Prints the options that are often used. */
static void help_often(const struct cli_command *command, size_t columns)
{
    for (size_t i = 0; i < command->often_count; i++) {
        const struct cli_often *often = &command->often[i];
        const struct cli_option *found = option_by_name(command, often->name, strlen(often->name));
        assert(found);
        struct cli_option option = *found;
        option.help = often->help ? often->help : option.help;
        help_option(&option, columns);
    }
}

/* Prints the options, each under its heading. Where the command has a list of those that are often used, the others,
 * and the headings, are printed only if `all` is set. */
static void help_options(const struct cli_command *command, bool all, size_t columns)
{
    static const struct cli_option help = {'h', "help", CLI_FLAG, NULL, NULL, NULL, "print this help", NULL};
    static const struct cli_option more = {0, "help-all", CLI_FLAG, NULL, NULL, NULL, "print all options", NULL};
    static const struct cli_option version = {'V', "version", CLI_FLAG, NULL, NULL, NULL, "print the version", NULL};
    const bool some = command->often_count && !all;
    const char *heading = last_heading;
    if (some || !command->option_count || command->options[0].kind != CLI_TITLE)
        printf("\nOptions:\n");
    if (some)
        help_often(command, columns);
    for (size_t i = 0; i < command->option_count && !some; i++)
        if (command->options[i].kind == CLI_TITLE)
            printf("\n%s:\n", heading = command->options[i].help);
        else if (!cli_is_internal(&command->options[i]))
            help_option(&command->options[i], columns);
    if (heading != last_heading && strcmp(heading, last_heading) != 0)
        printf("\n%s:\n", last_heading);
    help_option(&help, columns);
    if (command->often_count)
        help_option(&more, columns);
    help_option(&version, columns);
}

static void help_print(const struct cli_command *command, bool all)
{
    const size_t columns = os_is_terminal(1) ? max64(60, min64(os_terminal_columns(1), 100)) : 80;
    printf("Usage: %s %s\n\n", command->program, command->usage);
    help_wrap(command->summary, 0, 0, columns - 1);
    help_options(command, all, columns - 1);
    if (!command->details)
        return;
    putchar('\n');
    for (const char *line = command->details; *line;) {
        char text[4096];
        const size_t length = strcspn(line, "\n");
        assert(length < sizeof text);
        snprintf(text, sizeof text, "%.*s", (int)length, line);
        if (length < columns)
            puts(text);
        else if (line[0] == ' ')
            help_example(line, length, columns - 1);
        else
            help_wrap(text, 0, 0, columns - 1);
        line += length + (line[length] == '\n');
    }
}

static int help(const struct cli_command *command, bool all)
{
    help_print(command, all);
    return cli_finish(command->program, CLI_DONE);
}

static int version_print(const struct cli_command *command)
{
    const size_t word = strcspn(command->program, " ");
    printf("%.*s %s\n", (int)word, command->program, tokmap_version());
    return cli_finish(command->program, CLI_DONE);
}

/* ---- parsing ---- */

static bool choice_parse(const char *choices, const char *text, int *index)
{
    const size_t length = strlen(text);
    for (int i = 0;; i++) {
        const size_t word = strcspn(choices, "|");
        if (word == length && memcmp(choices, text, length) == 0) {
            *index = i;
            return true;
        }
        if (!choices[word])
            return false;
        choices += word + strspn(choices + word, "|");
    }
}

static bool real_parse(const char *text, double *number)
{
    char *end;
    if (strspn(text, "0123456789.eE+-") != strlen(text) || !*text)
        return false;
    errno = 0;
    const double value = strtod(text, &end);
    if (*end || errno || !isfinite(value))
        return false;
    *number = value;
    return true;
}

/* Stores a value. Returns -1, or the exit status after a message. */
static int option_store(const struct cli_command *command, const struct cli_option *option, const char *text)
{
    bool good = true;
    const char *wanted = "";
    int wanted_length = -1; /* all of it */
    switch (option->kind) {
    case CLI_TITLE: /* never found by its name, which is empty */
        assert(option->kind != CLI_TITLE);
        break;
    case CLI_FLAG:
        *(bool *)option->into = true;
        break;
    case CLI_TEXT:
    case CLI_MAYBE:
        *(const char **)option->into = text;
        break;
    case CLI_LIST: {
        struct cli_list *list = option->into;
        if (list->count == CLI_LIST_MOST)
            return cli_misused(command, "--%s may be given at most %d times", option->name, CLI_LIST_MOST);
        list->values[list->count++] = text;
        break;
    }
    case CLI_NUMBER:
        good = cli_parse_number(text, option->into);
        wanted = option->value && !strcmp(option->value, "SEED") ? "a seed, such as 7 (a decimal number below 2^64)"
                                                                 : "a decimal number below 2^64";
        break;
    case CLI_SIZE:
        good = cli_parse_size(text, option->into);
        wanted = "a number below 2^64, optionally with k, m, g, t (powers of 1000) or Ki, Mi, Gi, Ti (powers of 1024)";
        break;
    case CLI_REAL:
        good = real_parse(text, option->into);
        wanted = "a number";
        break;
    case CLI_CHOICE:
        assert(option->choices);
        good = choice_parse(option->choices, text, option->into);
        wanted = option->choices;
        wanted_length = (int)cli_choices_listed(option->choices);
        break;
    case CLI_RANGE:
        good = cli_parse_range(text, option->into);
        wanted = "a range A..B, which includes A and excludes B, with A not above B";
        break;
    }
    if (!good)
        return cli_misused(command, "--%s takes %s%.*s, not '%s'", option->name,
                           option->kind == CLI_CHOICE ? "one of " : "", wanted_length, wanted, text);
    if (option->given)
        *option->given = true;
    return -1;
}

static const struct cli_option *option_by_letter(const struct cli_command *command, char letter)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (letter && command->options[i].letter == letter)
            return &command->options[i];
    return NULL;
}

#define OPTIONS_MOST 128 /* rows of a table, with its headings */

static int unknown_option(const struct cli_command *command, const char *name, size_t length)
{
    char typed[64];
    const char *names[OPTIONS_MOST + 2];
    size_t count = 0;
    snprintf(typed, sizeof typed, "%.*s", (int)min64(length, 63), name);
    const struct foreign_option *foreign = foreign_option_of(command, typed);
    if (foreign && foreign->advice)
        return cli_misused(command, "unknown option '--%s'; %s", typed, foreign->advice);
    assert(command->option_count <= OPTIONS_MOST);
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].kind != CLI_TITLE)
            names[count++] = command->options[i].name;
    names[count++] = "help";
    names[count++] = "version";
    const char *nearest = foreign ? foreign->option : cli_nearest(typed, names, count);
    if (nearest)
        return cli_misused(command, "unknown option '--%s'; did you mean '--%s'?", typed, nearest);
    return cli_misused(command, "unknown option '--%s'", typed);
}

static bool takes_value(const struct cli_option *option)
{
    return option->kind != CLI_FLAG && option->kind != CLI_MAYBE;
}

/* argv[*i] begins with "--" and is longer. */
static int parse_long(const struct cli_command *command, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2;
    const size_t length = strcspn(name, "=");
    const char *value = name[length] ? name + length + 1 : NULL;
    const struct cli_option *option = option_by_name(command, name, length);
    if (!option && length == 4 && memcmp(name, "help", 4) == 0)
        return help(command, false);
    if (!option && length == 8 && memcmp(name, "help-all", 8) == 0)
        return help(command, true);
    if (!option && length == 7 && memcmp(name, "version", 7) == 0)
        return version_print(command);
    if (!option)
        return unknown_option(command, name, length);
    if (option->kind == CLI_FLAG && value)
        return cli_misused(command, "--%s takes no value", option->name);
    if (takes_value(option) && !value) {
        if (*i + 1 >= argc)
            return cli_misused(command, "--%s needs a value: %s", option->name, option->value);
        value = argv[++*i];
    }
    return option_store(command, option, value ? value : "");
}

/* argv[*i] begins with one dash and is longer. */
static int parse_short(const struct cli_command *command, int argc, char **argv, int *i)
{
    const char *word = argv[*i] + 1;
    const struct cli_option *named = option_by_name(command, word, strcspn(word, "="));
    if (named && word[1])
        return cli_misused(command, "unknown option '-%s'; did you mean '--%s'?", named->name, named->name);
    for (const char *at = word; *at; at++) {
        const struct cli_option *option = option_by_letter(command, *at);
        if (!option && *at == 'h')
            return help(command, false);
        if (!option && *at == 'V')
            return version_print(command);
        if (!option)
            return cli_misused(command, "unknown option '-%c'", *at);
        const char *value = "";
        const bool valued = takes_value(option);
        if (valued && at[1]) {
            value = at + 1;
        } else if (valued) {
            if (*i + 1 >= argc)
                return cli_misused(command, "-%c needs a value: %s", *at, option->value);
            value = argv[++*i];
        }
        const int status = option_store(command, option, value);
        if (status >= 0 || valued)
            return status;
    }
    return -1;
}

static int environment_check(const struct cli_command *command)
{
    if (cpu_environment_is_valid())
        return -1;
    cli_say(command->program, "TOKMAP_CPU is '%s'; set it to %s, or unset it", secure_getenv("TOKMAP_CPU"),
            cpu_environment_values());
    return CLI_MISUSED;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, const char **operands, size_t *operand_count)
{
    bool options_end = false;
    assert(command && command->program && argc >= 1 && operands && operand_count);
    assert(command->options || !command->option_count);
    *operand_count = 0;
    if (argc > 2 && strcmp(argv[1], CLI_COMPLETE) == 0) {
        cli_complete(command, argc - 2, argv + 2);
        return cli_finish(command->program, CLI_DONE);
    }
    for (int i = 1; i < argc; i++) {
        int status = -1;
        if (options_end || argv[i][0] != '-' || argv[i][1] == '\0')
            operands[(*operand_count)++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (argv[i][1] == '-')
            status = parse_long(command, argc, argv, &i);
        else
            status = parse_short(command, argc, argv, &i);
        if (status >= 0)
            return status;
    }
    return environment_check(command);
}

void cli_maybe_hint(const struct cli_command *command, const char *operand)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        const bool present = option->kind == CLI_MAYBE && option->given && *option->given;
        if (present && !**(const char *const *)option->into)
            cli_say(command->program, "if '%.100s' is the value of --%s, write --%s=%.100s", operand, option->name,
                    option->name, operand);
    }
}

int cli_run(const struct cli_command *command, int argc, char **argv,
            int (*body)(const struct cli_command *command, const char **operands, size_t count, void *user), void *user)
{
    assert(argc >= 1 && body);
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    size_t count = 0;
    if (!operands) {
        cli_say(command->program, "out of memory: there is no room for %d arguments", argc);
        return CLI_FAILED;
    }
    int status = cli_parse(command, argc, argv, operands, &count);
    if (status < 0)
        status = body(command, operands, count, user);
    assert(status >= CLI_DONE);
    free(operands);
    return status;
}

/* ---- errors ---- */

static const char clause[] = ", or ", replacing[] = "replace it", forcing[] = "use --force";
static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

bool command_has_option(const struct cli_command *command, const char *name)
{
    return option_by_name(command, name, strlen(name)) != NULL;
}

/* If a clause ", or ..." begins at `at` and names an option that the command lacks, returns its bytes, else 0. The
 * clause ends before the next ", or", before a semicolon or a period, or with the message. Options in a clause with a
 * command in `backquotes` are those of that command. */
static size_t clause_without_option(const struct cli_command *command, const char *at)
{
    bool lacking = false, quoted = false;
    size_t i;
    if (strncmp(at, clause, sizeof clause - 1) != 0)
        return 0;
    for (i = sizeof clause - 1; at[i] && at[i] != ';' && strncmp(at + i, clause, sizeof clause - 1) != 0; i++) {
        char name[32] = "";
        if (at[i] == '.' && (at[i + 1] == ' ' || !at[i + 1]))
            break;
        const size_t length = strncmp(at + i, " --", 3) == 0 ? strspn(at + i + 3, name_bytes) : 0;
        if (length && length < sizeof name) {
            memcpy(name, at + i + 3, length);
            lacking = lacking || !command_has_option(command, name);
        }
        quoted = quoted || at[i] == '`';
    }
    return lacking && !quoted ? i : 0;
}

/* Writes "--NAME" if the message begins with the name of a field and the command has an option of that name. Returns
 * the bytes of the name in the message, or 0. */
static size_t field_name(const struct cli_command *command, const struct tokmap_error *error, char *named, size_t room)
{
    const size_t length = strlen(error->field);
    char option[sizeof error->field];
    if (!length || strncmp(error->message, error->field, length) != 0)
        return 0;
    for (size_t i = 0; i <= length; i++)
        option[i] = error->field[i] == '_' ? '-' : error->field[i];
    if (!command_has_option(command, option))
        return 0;
    (void)snprintf(named, room, "--%s", option);
    return length;
}

void error_name_options(const struct cli_command *command, struct tokmap_error *error)
{
    char named[sizeof error->message] = "";
    const size_t room = sizeof named - 1, end = sizeof replacing - 1;
    assert(memchr(error->message, '\0', sizeof error->message));
    const char *at = error->message + field_name(command, error, named, sizeof named);
    size_t used = strlen(named);
    while (*at && used < room) {
        const size_t left_out = clause_without_option(command, at);
        if (left_out)
            at += left_out;
        else
            named[used++] = *at++;
    }
    named[used] = '\0';
    if (error->status == TOKMAP_ERROR_EXISTS && used >= end && strcmp(named + used - end, replacing) == 0 &&
        command_has_option(command, "force"))
        (void)snprintf(named + used - end, sizeof named - (used - end), "%s", forcing);
    memcpy(error->message, named, sizeof named);
}

int command_failed(const struct cli_command *command, const struct tokmap_error *error)
{
    struct tokmap_error named = *error;
    error_name_options(command, &named);
    return cli_failed(command->program, &named);
}

void command_skipped(const struct cli_command *command, const struct tokmap_error *why)
{
    struct tokmap_error named = *why;
    char text[sizeof named.path + sizeof named.message + 256];
    error_name_options(command, &named);
    cli_say(command->program, "skipped: %s", tokmap_error_print(&named, text, sizeof text));
}
