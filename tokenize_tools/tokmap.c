/* SPDX-License-Identifier: MIT */
/* tokmap.c - the main function of the command tokmap: finds the subcommand and calls it. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "codec/unpack.h"
#include "commands/commands.h"
#include "commands/options/corpus_arguments.h"
#include "common/cpu.h"
#include "common/hash.h"
#include "parquet/parquet.h"
#include "platform/os.h"
#include "platform/process.h"

#define PROGRAM "tokmap"

struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
};
#define SUBCOMMAND_ROW(suffix, name, text) {name, command_##suffix, text},
#define SUBCOMMAND_GROUP(heading) /* has no row */
static const struct subcommand subcommands[] = {COMMANDS(SUBCOMMAND_ROW, SUBCOMMAND_GROUP)};
#define SUBCOMMANDS (sizeof subcommands / sizeof subcommands[0])

/* Manual pages that are not those of commands: of section 7, and that of run files. */
static const char *const subjects[] = {"chat", "documents", "inputs", "remote", "run", "tasks"};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

/* The first screen for a user who typed only "tokmap". */
static const char start[] = "tokmap turns text into token ids and feeds them to training programs. To begin:\n"
                            "  tokmap pack -t tokenizer.json -o web texts/   tokenize files and folders\n"
                            "  tokmap info web                               describe the result\n"
                            "  tokmap show web --document 0                  print a document\n"
                            "'tokmap --help' lists the commands; 'tokmap COMMAND --help' describes one.\n";

static int help_print(void)
{
    printf("Usage: tokmap COMMAND [ARGUMENT]...\n"
           "       tokmap help COMMAND|SUBJECT\n\n"
           "Turns text into datasets of token ids that training programs read in place,\n"
           "in an order that can be computed, audited, and resumed exactly.\n");
#define HELP_ROW(suffix, name, text) printf("  %-15s %s\n", name, text);
#define HELP_GROUP(heading) printf("\n%s:\n", heading);
    COMMANDS(HELP_ROW, HELP_GROUP)
    printf("\nSubjects, which have manual pages: chat, documents, inputs, remote, run, tasks\n"
           "\nOptions:\n"
           "  -h, --help     print this help; 'tokmap COMMAND --help' prints that of a command\n"
           "  -V, --version  print the version, the CPU variant in use, and what this build\n"
           "                 can read; with --json as a JSON object\n\n"
           "A dataset is a name on a disk, or s3://bucket/name, gs://..., https://...: see\n"
           "tokmap-remote(7). Results go to standard output, messages to standard error.\n"
           "Exit status: 0 done, 1 failed, 2 misused. Manual: tokmap(1), tokmap-COMMAND(1).\n");
    return cli_finish(PROGRAM, CLI_DONE);
}

#ifdef HAVE_PCRE2
#define PATTERNS_TEXT "all (PCRE2)"
#define PATTERNS_ALL true
#else
#define PATTERNS_TEXT "only those with a scanner of their own (built without PCRE2)"
#define PATTERNS_ALL false
#endif

/* Compressed files; zstd is in every build. */
static const struct {
    enum file_type type;
    const char *ending, *member, *library;
} packed[] = {
    {FILE_TYPE_GZIP, ".gz", "reads_gz", "ISA-L"},
    {FILE_TYPE_BZIP2, ".bz2", "reads_bz2", "bzip2"},
    {FILE_TYPE_XZ, ".xz", "reads_xz", "xz"},
    {FILE_TYPE_LZ4, ".lz4", "reads_lz4", "LZ4"},
};
#define PACKED (sizeof packed / sizeof packed[0])

/* Adds a word of a list: an element of the array that is open, or, after `before`, on standard output. */
static void word_add(struct cli_report *report, const char *before, const char *word, size_t bytes)
{
    cli_member(report, NULL, cli_bytes_text(word, bytes));
    if (!report->as_json)
        printf("%s%.*s", before, (int)bytes, word);
}

/* Adds the codecs of Parquet files that this build reads. Two numbers of codecs stand for LZ4, so the older is left
 * out. */
static void codecs_add(struct cli_report *report)
{
    const char *before = "Parquet codecs: ";
    cli_report_array(report, "parquet_codecs");
    for (int64_t codec = PARQUET_CODEC_SNAPPY; codec < PARQUET_CODEC_COUNT; codec++) {
        if (codec == PARQUET_CODEC_LZ4_OLD || !parquet_codec_is_built(codec))
            continue;
        word_add(report, before, parquet_codec_name(codec), strlen(parquet_codec_name(codec)));
        before = ", ";
    }
    cli_report_close(report);
}

/* Adds the values of --input-format after the first one, "auto". */
static void formats_add(struct cli_report *report)
{
    const char *before = "\ninput formats: ";
    const size_t end = cli_choices_listed(CORPUS_FORMAT_CHOICES);
    size_t length;
    cli_report_array(report, "input_formats");
    for (size_t at = strcspn(CORPUS_FORMAT_CHOICES, "|") + 1; at < end; at += length + 1) {
        length = strcspn(&CORPUS_FORMAT_CHOICES[at], "|");
        word_add(report, before, &CORPUS_FORMAT_CHOICES[at], length);
        before = ", ";
    }
    cli_report_close(report);
}

static int version_print(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    const bool json = *(const bool *)user;
    const char *cpu = cpu_variant_name(cpu_variant_best());
    struct cli_report report;
    if (operand_count)
        return cli_misused(command, "no operand is expected; got '%s'", operands[0]);
    cli_report_begin(&report, json, NULL);
    if (!json)
        printf(PROGRAM " %s", tokmap_version());
    cli_member(&report, "version", cli_text(tokmap_version()));
    cli_member(&report, "reads_zst", cli_bool(true));
    for (size_t i = 0; i < PACKED; i++)
        cli_member(&report, packed[i].member, cli_bool(unpack_is_built(packed[i].type)));
    cli_member(&report, "reads_jsonl", cli_bool(true));
    formats_add(&report);
    if (!json)
        printf("\nreads .zst: yes\n");
    for (size_t i = 0; i < PACKED && !json; i++)
        printf("reads %s: %s%s)\n", packed[i].ending, unpack_is_built(packed[i].type) ? "yes (" : "no (built without ",
               packed[i].library);
    codecs_add(&report);
    cli_member(&report, "pcre2", cli_bool(PATTERNS_ALL));
    cli_member(&report, "cpu", cli_text(cpu));
    cli_member(&report, "hash", cli_text(hash_variant()));
    cli_report_end(&report);
    if (!json)
        printf("\nsplit patterns: " PATTERNS_TEXT "\nCPU variant: %s\n", cpu);
    return cli_finish(PROGRAM, CLI_DONE);
}

/* argv[0] is "--version". */
static int version(int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {{0, "json", CLI_FLAG, &json, NULL, NULL, "print a JSON object", NULL}};
    const struct cli_command command = {
        .program = PROGRAM,
        .usage = "--version [--json]",
        .summary = "Prints the version, the CPU variant in use, and what this build can read.",
        CLI_OPTIONS(options),
    };
    return cli_run(&command, argc, argv, version_print, &json);
}

static const struct subcommand *subcommand_find(const char *name)
{
    if (strcmp(name, "cat") == 0) /* as the text of merge in the list says */
        name = "merge";
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(subcommands[i].name, name) == 0)
            return &subcommands[i];
    return NULL;
}

/* Prints the offers for a command line in a shell; complete.h describes the arguments. argv[0] is "--complete". */
static int complete(int argc, char **argv)
{
    const char *typed = argv[argc - 1];
    const bool is_help = argc == 3 && strcmp(argv[1], "help") == 0;
    if (argc == 2 || is_help) {
        for (size_t i = 0; i < SUBCOMMANDS; i++)
            cli_offer(typed, subcommands[i].name, subcommands[i].text);
        for (size_t i = 0; i < SUBJECTS && is_help; i++)
            cli_offer(typed, subjects[i], "open the manual page");
        if (!is_help) {
            cli_offer(typed, "help", "print the help of a command or open a manual page");
            cli_offer(typed, "--help", "list the commands");
            cli_offer(typed, "--version", "print the version and what this build can read");
        }
        return cli_finish(PROGRAM, CLI_DONE);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        cli_offer(typed, "--json", "print a JSON object");
        return cli_finish(PROGRAM, CLI_DONE);
    }
    const struct subcommand *command = subcommand_find(argv[1]);
    if (!command)
        return cli_finish(PROGRAM, CLI_DONE);
    /* The command sees its own name, then --complete, then its words. */
    char *name = argv[1];
    argv[1] = argv[0];
    argv[0] = name;
    return command->run(argc, argv);
}

static int unknown(const char *what, const char *name)
{
    const char *names[SUBCOMMANDS + SUBJECTS + 3] = {"help", "--help", "--version"};
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        names[3 + i] = subcommands[i].name;
    const size_t count = SUBCOMMANDS + 3 + (strchr(what, ' ') ? SUBJECTS : 0);
    for (size_t i = SUBCOMMANDS + 3; i < count; i++)
        names[i] = subjects[i - SUBCOMMANDS - 3];
    /* Names of commands in other projects ("tokenize" would be near to "tokenizer"), and what pages are about. */
    static const char *const others[][2] = {
        {"tokenize", "pack"},       {"preprocess", "pack"},        {"prepare", "pack"},
        {"inspect", "info"},        {"describe", "info"},          {"validate", "verify"},
        {"check", "verify"},        {"bench", "tokmap-bench"},     {"fim", "help documents"},
        {"deduplicate", "dedup"},   {"shuffle", "help documents"}, {"split", "help documents"},
        {"parquet", "help inputs"}, {"s3", "help remote"},         {"slurm", "help tasks"},
        {"chat", "help chat"},      {"template", "help chat"}};
    const char *nearest = NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        nearest = strcmp(name, others[i][0]) == 0 ? others[i][1] : nearest;
    nearest = nearest ? nearest : cli_nearest(name, names, count);
    if (!nearest) { /* options without their dashes, or with one */
        char option[64];
        snprintf(option, sizeof option, "--%.60s", name + strspn(name, "-"));
        nearest = cli_nearest(option, names, 3);
    }
    if (nearest)
        cli_say(PROGRAM, "unknown %s '%s'; did you mean '%s'?", what, name, nearest);
    else
        cli_say(PROGRAM, "unknown %s '%s'", what, name);
    (void)fputs("Try '" PROGRAM " --help'.\n", stderr);
    return CLI_MISUSED;
}

/* Opens a manual page. In a tree that is built but not installed, man does not find it by its name. */
static int subject_open(const char *subject)
{
    const char *section = strcmp(subject, "run") == 0 ? "5" : "7";
    char page[4200] = "", name[32];
    struct os_stat found;
    snprintf(name, sizeof name, "tokmap-%s", subject);
    (void)os_program_path(page, sizeof page / 2);
    char *slash = strrchr(page, '/');
    if (slash)
        snprintf(slash, sizeof page / 2, "/../../tokenize_tools/man/%s.%s", name, section);
    const char *by_path[] = {"man", page, NULL}, *by_name[] = {"man", section, name, NULL};
    const int system = os_program_become(os_stat(page, &found) ? by_name : by_path);
    cli_say(PROGRAM, "the manual page %s(%s) needs the command man, which cannot be run: %s; install man-db", name,
            section, strerror(system));
    return CLI_FAILED;
}

static int help(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "help") == 0)
        return help_print();
    for (size_t i = 0; i < SUBJECTS; i++)
        if (strcmp(argv[1], subjects[i]) == 0)
            return subject_open(subjects[i]);
    const struct subcommand *command = subcommand_find(argv[1]);
    if (!command)
        return unknown("command or subject", argv[1]);
    char option[] = "--help";
    char *arguments[] = {argv[1], option, NULL};
    return command->run(2, arguments);
}

int main(int argc, char **argv)
{
    os_standard_files();
    os_file_limit_reported();
    os_files_raise();
    os_memory_returned();
    if (argc < 2) {
        (void)fputs(start, stderr);
        return CLI_MISUSED;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help_print();
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return version(argc - 1, argv + 1);
    if (strcmp(name, CLI_COMPLETE) == 0 && argc > 2)
        return complete(argc - 1, argv + 1);
    if (strcmp(name, "help") == 0)
        return help(argc - 1, argv + 1);
    const struct subcommand *command = subcommand_find(name);
    if (!command)
        return unknown(name[0] == '-' ? "option" : "command", name);
    return command->run(argc - 1, argv + 1);
}
