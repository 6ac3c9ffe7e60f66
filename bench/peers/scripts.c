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
    struct bench *bench;
    const char *table;
    script_line_fn *line;
    struct cli_progress progress;
    char what[128]; /* of the progress */
    char *text;     /* SCRIPT_LINE bytes, of which `used` are read */
    size_t used;
};

#define SCRIPT_LINE ((size_t)1 << 20)

#define PROGRAM "/usr/bin/env"
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

/* The words with which lines begin, and how many fields follow. */
static const struct {
    const char *word;
    size_t fields;
} words[] = {{"row", 6},  {"absent", 3},   {"equal", 4},  {"about", 2}, {"cell", 4},
             {"note", 1}, {"progress", 3}, {"answer", 1}, {"say", 1}};

static void progress_show(struct script *script, const struct script_line *line)
{
    uint64_t done = 0, total = 0;
    (void)cli_parse_number(line->fields[1], &done);
    (void)cli_parse_number(line->fields[2], &total);
    (void)snprintf(script->what, sizeof script->what, "%s", line->fields[3]);
    script->progress.total = total;
    cli_progress_update(&script->progress, done);
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

static int line_take(struct script *script, char *text)
{
    struct script_line line;
    char first[80];
    (void)snprintf(first, sizeof first, "%s", text);
    if (!line_cut(text, &line)) {
        cli_progress_clear(&script->progress);
        cli_say(script->bench->program, "the script of the table %s printed a line that is not a result: %s",
                script->table, first);
        return CLI_FAILED;
    }
    if (!strcmp(line.fields[0], "progress")) {
        progress_show(script, &line);
        return CLI_DONE;
    }
    if (!strcmp(line.fields[0], "say")) {
        cli_progress_clear(&script->progress);
        cli_say(script->bench->program, "%s", line.fields[1]);
        return CLI_DONE;
    }
    return script->line(script->bench, &line);
}

/* Takes each complete line. Returns CLI_FAILED if one of them is refused. */
static int lines_take(struct script *script)
{
    char *at = script->text, *end;
    int result = CLI_DONE;
    while (!result && (end = memchr(at, '\n', script->used - (size_t)(at - script->text))) != NULL) {
        *end = '\0';
        result = line_take(script, at);
        at = end + 1;
    }
    script->used -= (size_t)(at - script->text);
    memmove(script->text, at, script->used);
    return result;
}

/* Reads the output to its end. Returns NULL, or why the script must be ended; "" if the reason has been printed or is
 * the user. */
static const char *output_follow(struct script *script, const struct os_child *child)
{
    const uint64_t silence = (uint64_t)(script->bench->options.patience * 1e9);
    for (;;) {
        size_t got = 0;
        int system = os_wait_readable(child->output, silence);
        if (!system)
            system = os_read(child->output, script->text + script->used, SCRIPT_LINE - script->used, &got);
        if (bench_stopped())
            return "";
        if (system == ETIMEDOUT)
            return "printed nothing for too long and was ended";
        if (system && system != EINTR)
            return "cannot be read";
        if (!system && !got)
            return script->used ? "ended in the middle of a line" : NULL;
        script->used += got;
        if (lines_take(script))
            return "";
        if (script->used == SCRIPT_LINE)
            return "printed a line that is too long and was ended";
    }
}

static int script_follow(struct script *script, struct os_child *child, int errors)
{
    static const char name[] = "the script of the table";
    struct bench *bench = script->bench;
    const char *wrong = output_follow(script, child);
    const double patience = bench->options.patience;
    const uint64_t grace = (uint64_t)(1e9 * (patience < GRACE ? patience : GRACE));
    int status = 0, system;
    if (wrong)
        os_child_end(child, grace);
    while ((system = os_child_wait(child, &status)) == EINTR) /* once: a signal has come */
        os_child_end(child, grace);
    if (bench_stopped())
        return CLI_FAILED;
    bench_check_system(bench, system, PROGRAM, "Waiting for the end of this program failed.");
    if (!wrong && !status)
        return CLI_DONE;
    if (wrong && *wrong)
        cli_say(bench->program, "%s %.32s %s", name, script->table, wrong);
    else if (!wrong && status > 128)
        cli_say(bench->program, "%s %.32s was ended by signal %d", name, script->table, status - 128);
    else if (!wrong)
        cli_say(bench->program, "%s %.32s ended with exit status %d", name, script->table, status);
    tail_say(bench, errors);
    return CLI_FAILED;
}

/* Runs the script to its end. Returns CLI_DONE if its exit status is 0, or CLI_FAILED after a message with its last
 * lines of standard error: it cannot be started, it ended otherwise, it was silent for too long, a line has more than
 * SCRIPT_LINE bytes, or `line` failed. If the user asked to stop (bench_stopped()), the script is asked to end and has
 * ten seconds for it; CLI_FAILED is then returned without a message. */
static int script_run(struct script *script, const char *const *arguments)
{
    struct bench *bench = script->bench;
    char path[BENCH_PATH];
    int errors = -1;
    struct os_child child;
    made_file(bench, "stderr", path);
    bench_check_system(bench, os_open(path, OS_WRITE_NEW, &errors), path,
                       "The file for messages of a script cannot be created.");
    bench_check_system(bench, os_child_start_logged(&child, PROGRAM, arguments, errors), PROGRAM,
                       "This program cannot be started.");
    script->text = bench_new(bench, SCRIPT_LINE, 1);
    const int result = script_follow(script, &child, errors);
    free(script->text);
    os_close(errors);
    made_file_remove(bench, path);
    return result;
}

/* ==== the scripts ==== */

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

bool scripts_read_text(const struct bench *bench)
{
    const char *table = bench->options.table;
    return table &&
           (!strcmp(table, "pack") || !strcmp(table, "prepare") || !strcmp(table, "parts") || !strcmp(table, "lake"));
}

/* ---- arguments ---- */

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

static void common_arguments(const struct bench *bench, const struct places *places, struct child_arguments *all)
{
    const struct bench_options *o = &bench->options;
    arguments_text(all, "--work", places->work);
    arguments_text(all, "--tokmap", places->tokmap);
    arguments_text(all, "--package", places->package);
    arguments_number(all, "--seq-len", o->seq_len);
    arguments_number(all, "--rows", o->rows);
    arguments_number(all, "--repeats", o->quick ? bench_repeats(bench, 1) : o->repeats);
    arguments_real(all, "--seconds", o->quick ? bench_seconds(bench, scripts_read_text(bench) ? 6 : 1) : o->seconds);
    arguments_text(all, "--peers", o->peers);
    arguments_text(all, "--venv", o->venv);
    if (o->offline)
        arguments_add(all, "--offline");
}

int scripts_run(struct bench *bench, const char *table, const struct child_arguments *arguments, script_line_fn *line)
{
    struct places places;
    places_find(bench, &places);
    /* -B: nothing is written into the folder of the scripts, which may have been installed */
    struct child_arguments all = {.list = {"env", "python3", "-B", places.compare, table}, .count = 5};
    for (size_t i = 0; i < arguments->count; i++)
        arguments_add(&all, arguments->list[i]);
    common_arguments(bench, &places, &all);
    struct script script = {.bench = bench, .table = table, .line = line};
    cli_progress_start(&script.progress, script.what, "steps", 0, bench->options.json);
    const int result = script_run(&script, all.list);
    cli_progress_end(&script.progress);
    return result;
}
