/* SPDX-License-Identifier: MIT */
/* scripts.c - see scripts.h. */
#include "scripts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "harness/bench_data.h"
#include "harness/harness.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

/* ==== running a script ==== */

/*
 * Runs a program for minutes, reads its standard output line by line while it runs, and keeps the end of what it writes
 * to standard error for the message if it fails.
 */

struct script {
    const char *name;             /* for messages */
    const char *path;             /* of the program */
    const char *const *arguments; /* argv from argv[0] on, NULL last */
    /* Receives each line, without its end; may change it. Returns CLI_DONE; after CLI_FAILED, for which it has printed
     * a message, the program is ended. */
    int (*line)(void *user, char *line);
    void *user;
    double silence; /* seconds without a line after which the program is ended, and the most that it then has for its
                       end; 0: no limit */
};

#define SCRIPT_LINE ((size_t)1 << 20)

#define GRACE 10.0 /* seconds for a program that was asked to end */
#define TAIL 4096  /* bytes of standard error that a message shows lines of */
#define TAIL_LINES 8

/* Prints the last lines of the file of standard error. */
static void tail_say(const struct bench *bench, int errors)
{
    char text[TAIL + 1];
    struct os_stat stat;
    size_t size = 0;
    if (os_fstat(errors, &stat) || os_pread(errors, text, TAIL, stat.bytes > TAIL ? stat.bytes - TAIL : 0, &size))
        return;
    while (size && text[size - 1] == '\n')
        size--;
    text[size] = '\0';
    const char *begin = text + size;
    for (size_t lines = 0; begin > text; begin--) {
        lines += begin[-1] == '\n';
        if (lines == TAIL_LINES)
            break;
    }
    while (*begin) {
        const size_t length = strcspn(begin, "\n");
        cli_say(bench->program, "  %.*s", (int)length, begin);
        begin += length + (begin[length] == '\n');
    }
}

struct script_reading {
    char *text;
    size_t used;
};

/* Hands over each complete line. Returns CLI_FAILED if one of them is refused. */
static int lines_take(const struct script *script, struct script_reading *reading)
{
    char *at = reading->text, *end;
    int result = CLI_DONE;
    while (!result && (end = memchr(at, '\n', reading->used - (size_t)(at - reading->text))) != NULL) {
        *end = '\0';
        result = script->line(script->user, at);
        at = end + 1;
    }
    reading->used -= (size_t)(at - reading->text);
    memmove(reading->text, at, reading->used);
    return result;
}

/* Reads the output to its end. Returns NULL, or why the program must be ended; "" if the reason has been printed or is
 * the user. */
static const char *output_follow(struct bench *bench, const struct script *script, const struct os_child *child,
                                 struct script_reading *reading)
{
    const uint64_t silence = script->silence > 0 ? (uint64_t)(script->silence * 1e9) : UINT64_MAX;
    for (;;) {
        size_t got = 0;
        int system = os_wait_readable(child->output, silence);
        if (!system)
            system = os_read(child->output, reading->text + reading->used, SCRIPT_LINE - reading->used, &got);
        if (bench_stopped())
            return "";
        if (system == ETIMEDOUT)
            return "printed nothing for too long and was ended";
        if (system && system != EINTR)
            return "cannot be read";
        if (!system && !got)
            return reading->used ? "ended in the middle of a line" : NULL;
        reading->used += got;
        if (lines_take(script, reading))
            return "";
        if (reading->used == SCRIPT_LINE)
            return "printed a line that is too long and was ended";
    }
}

static int script_follow(struct bench *bench, const struct script *script, struct os_child *child, int errors)
{
    struct script_reading reading = {bench_new(bench, SCRIPT_LINE, 1), 0};
    const char *wrong = output_follow(bench, script, child, &reading);
    const uint64_t grace = (uint64_t)(1e9 * (script->silence > 0 && script->silence < GRACE ? script->silence : GRACE));
    int status = 0, system;
    free(reading.text);
    if (wrong)
        os_child_end(child, grace);
    while ((system = os_child_wait(child, &status)) == EINTR) /* once: a signal has come */
        os_child_end(child, grace);
    if (bench_stopped())
        return CLI_FAILED;
    if (system)
        bench_failed_system(bench, system, script->path, "Waiting for the end of this program failed.");
    if (!wrong && !status)
        return CLI_DONE;
    if (wrong && *wrong)
        cli_say(bench->program, "%s %s", script->name, wrong);
    else if (!wrong && status > 128)
        cli_say(bench->program, "%s was ended by signal %d", script->name, status - 128);
    else if (!wrong)
        cli_say(bench->program, "%s ended with exit status %d", script->name, status);
    tail_say(bench, errors);
    return CLI_FAILED;
}

/* Runs the script to its end. Returns CLI_DONE if its exit status is 0, or CLI_FAILED after a message with its last
 * lines of standard error: it cannot be started, it ended otherwise, it was silent for too long, a line has more than
 * SCRIPT_LINE bytes, or `line` failed. If the user asked to stop (bench_stopped()), the program is asked to end and has
 * ten seconds for it; CLI_FAILED is then returned without a message. */
static int script_run(struct bench *bench, const struct script *script)
{
    char path[BENCH_PATH];
    int errors = -1;
    struct os_child child;
    assert(script->line);
    made_file(bench, "stderr", path);
    bench_check_system(bench, os_open(path, OS_WRITE_NEW, &errors), path,
                       "The file for messages of a script cannot be created.");
    bench_check_system(bench, os_child_start_logged(&child, script->path, script->arguments, errors), script->path,
                       "This program cannot be started.");
    const int result = script_follow(bench, script, &child, errors);
    os_close(errors);
    made_file_remove(bench, path);
    return result;
}

/* ==== the scripts ==== */

/* The words with which lines begin, and how many fields follow. */
static const struct {
    const char *word;
    size_t fields;
} words[] = {{"row", 6},  {"absent", 3},   {"equal", 4},  {"about", 2}, {"cell", 4},
             {"note", 1}, {"progress", 3}, {"answer", 1}, {"say", 1}};

/* ---- where the scripts are ---- */

/* Writes FOLDER/NAME of a folder that is relative to that of this program. Returns whether it exists. */
static bool beside(const struct bench *bench, const char *relative, char path[BENCH_PATH])
{
    struct os_stat stat;
    const int length = snprintf(path, BENCH_PATH, "%.*s%s", (int)path_folder_bytes(bench->self), bench->self, relative);
    return length > 0 && length < BENCH_PATH && !os_stat(path, &stat);
}

void scripts_folder(struct bench *bench, char path[BENCH_PATH])
{
    const char *folder = bench->options.peers_folder;
    if (!folder && (beside(bench, "../../bench/peers", path) || beside(bench, "../share/tokmap/peers", path)))
        return;
    struct os_stat stat;
    const int length = folder ? snprintf(path, BENCH_PATH, "%s", folder) : 0;
    if (folder && length < BENCH_PATH && !os_stat(folder, &stat))
        return;
    if (folder)
        cli_say(bench->program, "--peers-folder: %s does not exist", folder);
    else
        cli_say(bench->program, "the scripts of other systems were not found beside this program; name their folder "
                                "(bench/peers of the source tree, or share/tokmap/peers) with --peers-folder");
    bench_end(bench, CLI_FAILED);
}

bool scripts_have_table(struct bench *bench, const char *word)
{
    char path[BENCH_PATH + 320];
    struct os_stat stat;
    const char *folder = bench->options.peers_folder;
    if (strspn(word, "abcdefghijklmnopqrstuvwxyz_") != strlen(word) || strlen(word) > 32)
        return false;
    if (folder)
        (void)snprintf(path, BENCH_PATH, "%s", folder);
    else if (!beside(bench, "../../bench/peers", path) && !beside(bench, "../share/tokmap/peers", path))
        return false;
    (void)snprintf(path + strlen(path), 320, "/compare/tables/%s.py", word);
    return !os_stat(path, &stat);
}

/* ---- arguments ---- */

static void argument_add(struct script_arguments *arguments, const char *word)
{
    assert(arguments->count < SCRIPT_ARGUMENTS_MAX);
    arguments->list[arguments->count++] = word;
}

void scripts_text(struct script_arguments *arguments, const char *option, const char *value)
{
    if (!value)
        return;
    argument_add(arguments, option);
    argument_add(arguments, value);
}

void scripts_number(struct script_arguments *arguments, const char *option, uint64_t value)
{
    assert(arguments->number_count < sizeof arguments->numbers / sizeof arguments->numbers[0]);
    char *text = arguments->numbers[arguments->number_count++];
    (void)snprintf(text, sizeof arguments->numbers[0], "%" PRIu64, value);
    scripts_text(arguments, option, text);
}

void scripts_real(struct script_arguments *arguments, const char *option, double value)
{
    assert(arguments->number_count < sizeof arguments->numbers / sizeof arguments->numbers[0]);
    char *text = arguments->numbers[arguments->number_count++];
    (void)snprintf(text, sizeof arguments->numbers[0], "%g", value);
    scripts_text(arguments, option, text);
}

/* The paths that arguments point to. */
struct places {
    char scripts[BENCH_PATH], compare[BENCH_PATH + 16], work[BENCH_PATH], tokmap[BENCH_PATH], package[BENCH_PATH];
};

static void places_find(struct bench *bench, struct places *places)
{
    scripts_folder(bench, places->scripts);
    made_tree(bench, "work", places->work);
    (void)snprintf(places->compare, sizeof places->compare, "%s/compare", places->scripts);
    if (!beside(bench, "tokmap", places->tokmap)) {
        cli_say(bench->program, "the command tokmap is not in the folder of this program, where it is expected");
        bench_end(bench, CLI_FAILED);
    }
    if (!beside(bench, "../../src/python", places->package))
        places->package[0] = '\0';
}

static void common_arguments(const struct bench *bench, const struct places *places, struct script_arguments *all)
{
    const struct bench_options *o = &bench->options;
    scripts_text(all, "--work", places->work);
    scripts_text(all, "--tokmap", places->tokmap);
    scripts_text(all, "--package", places->package);
    scripts_number(all, "--seq-len", o->seq_len);
    scripts_number(all, "--rows", o->rows);
    scripts_number(all, "--repeats", o->repeats);
    scripts_real(all, "--seconds", o->seconds);
    scripts_text(all, "--peers", o->peers);
    scripts_text(all, "--venv", o->venv);
    if (o->offline)
        argument_add(all, "--offline");
}

/* ---- lines ---- */

struct reading {
    struct bench *bench;
    const char *table;
    script_line_fn *line;
    void *user;
    struct cli_progress progress;
    char what[128];
};

static void progress_show(struct reading *reading, const struct script_line *line)
{
    uint64_t done = 0, total = 0;
    (void)cli_parse_number(line->fields[1], &done);
    (void)cli_parse_number(line->fields[2], &total);
    (void)snprintf(reading->what, sizeof reading->what, "%s", line->fields[3]);
    reading->progress.total = total;
    cli_progress_update(&reading->progress, done);
}

/* Cuts a line at its tabs. Returns false if it is not one of the protocol. */
static bool line_cut(char *text, struct script_line *line)
{
    *line = (struct script_line){.fields = {text}, .count = 1};
    for (char *tab; (tab = strchr(text, '\t')) != NULL; text = tab + 1) {
        if (line->count > SCRIPT_FIELDS)
            return false;
        *tab = '\0';
        line->fields[line->count++] = tab + 1;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(line->fields[0], words[i].word))
            return line->count == words[i].fields + 1;
    return false;
}

static int line_take(void *user, char *text)
{
    struct reading *reading = user;
    struct script_line line;
    char first[80];
    (void)snprintf(first, sizeof first, "%s", text);
    if (!line_cut(text, &line)) {
        cli_progress_clear(&reading->progress);
        cli_say(reading->bench->program, "the script of the table %s printed a line that is not a result: %s",
                reading->table, first);
        return CLI_FAILED;
    }
    if (!strcmp(line.fields[0], "progress")) {
        progress_show(reading, &line);
        return CLI_DONE;
    }
    if (!strcmp(line.fields[0], "say")) {
        cli_progress_clear(&reading->progress);
        cli_say(reading->bench->program, "%s", line.fields[1]);
        return CLI_DONE;
    }
    return reading->line(reading->user, &line);
}

int scripts_run(struct bench *bench, const char *table, const struct script_arguments *arguments, script_line_fn *line,
                void *user)
{
    struct places places;
    places_find(bench, &places);
    /* -B: nothing is written into the folder of the scripts, which may have been installed */
    struct script_arguments all = {.list = {"env", "python3", "-B", places.compare, table}, .count = 5};
    for (size_t i = 0; i < arguments->count; i++)
        argument_add(&all, arguments->list[i]);
    common_arguments(bench, &places, &all);
    struct reading reading = {.bench = bench, .table = table, .line = line, .user = user};
    char name[64];
    (void)snprintf(name, sizeof name, "the script of the table %.32s", table);
    const struct script script = {.name = name,
                                  .path = "/usr/bin/env",
                                  .arguments = all.list,
                                  .line = line_take,
                                  .user = &reading,
                                  .silence = bench->options.patience};
    cli_progress_start(&reading.progress, reading.what, 0, bench->options.json);
    reading.progress.unit = "steps";
    const int result = script_run(bench, &script);
    cli_progress_end(&reading.progress);
    return result;
}
