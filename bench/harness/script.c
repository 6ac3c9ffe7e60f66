/* SPDX-License-Identifier: MIT */
/* script.c - see script.h. */
#include "script.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "made_files.h"
#include "platform/os.h"
#include "platform/process.h"

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

struct reading {
    char *text;
    size_t used;
};

/* Hands over each complete line. Returns CLI_FAILED if one of them is refused. */
static int lines_take(const struct script *script, struct reading *reading)
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
                                 struct reading *reading)
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
    struct reading reading = {malloc(SCRIPT_LINE), 0};
    const char *wrong = reading.text ? output_follow(bench, script, child, &reading) : "";
    const uint64_t grace = (uint64_t)(1e9 * (script->silence > 0 && script->silence < GRACE ? script->silence : GRACE));
    int status = 0, system;
    if (!reading.text)
        (void)bench_no_memory(bench);
    free(reading.text);
    if (wrong)
        os_child_end(child, grace);
    while ((system = os_child_wait(child, &status)) == EINTR) /* once: a signal has come */
        os_child_end(child, grace);
    if (bench_stopped())
        return CLI_FAILED;
    if (system)
        return bench_failed_system(bench, system, script->path, "Waiting for the end of this program failed.");
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

int script_run(struct bench *bench, const struct script *script)
{
    char path[BENCH_PATH];
    int errors = -1;
    struct os_child child;
    assert(script->line);
    int result = made_file(bench, "stderr", path);
    if (result)
        return result;
    int system = os_open(path, OS_WRITE_NEW, &errors);
    if (system)
        return bench_failed_system(bench, system, path, "The file for messages of a script cannot be created.");
    system = os_child_start_logged(&child, script->path, script->arguments, errors);
    result = system ? bench_failed_system(bench, system, script->path, "This program cannot be started.")
                    : script_follow(bench, script, &child, errors);
    os_close(errors);
    made_file_remove(bench, path);
    return result;
}
