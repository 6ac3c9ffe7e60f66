/* SPDX-License-Identifier: MIT */
/* child.c - see child.h. */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/path.h"

void arguments_add(struct child_arguments *arguments, const char *word)
{
    assert(arguments->count < CHILD_ARGUMENTS_MAX);
    arguments->list[arguments->count++] = word;
}

void arguments_text(struct child_arguments *arguments, const char *option, const char *value)
{
    if (!value)
        return;
    arguments_add(arguments, option);
    arguments_add(arguments, value);
}

static void number_add(struct child_arguments *arguments, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void number_add(struct child_arguments *arguments, const char *option, const char *format, ...)
{
    assert(arguments->number_count < sizeof arguments->numbers / sizeof arguments->numbers[0]);
    char *text = arguments->numbers[arguments->number_count++];
    va_list value;
    va_start(value, format);
    (void)vsnprintf(text, sizeof arguments->numbers[0], format, value);
    va_end(value);
    arguments_text(arguments, option, text);
}

void arguments_number(struct child_arguments *arguments, const char *option, uint64_t value)
{
    number_add(arguments, option, "%" PRIu64, value);
}

void arguments_real(struct child_arguments *arguments, const char *option, double value)
{
    number_add(arguments, option, "%g", value);
}

void arguments_tokenizer(struct child_arguments *arguments, const struct bench *bench)
{
    arguments_text(arguments, "--tokenizer", bench->options.tokenizer);
    arguments_text(arguments, "--pattern", bench->options.pattern);
    arguments_text(arguments, "--special-tokens", bench->options.special_tokens);
}

/* Reads the child's standard output to its end and keeps what fits. Output beyond the capacity is read and dropped,
 * since a child whose pipe is full would wait forever. */
static void output_read(const struct os_child *child, char *output, size_t capacity)
{
    size_t kept = 0;
    for (;;) {
        char rest[512];
        size_t got = 0;
        const bool full = kept + 1 >= capacity;
        const int system =
            os_read(child->output, full ? rest : output + kept, full ? sizeof rest : capacity - 1 - kept, &got);
        if (system && system != EINTR) /* EINTR: a signal arrived, and child_wait() stops the child */
            os_child_stop(child);
        if (system || !got)
            break;
        kept += full ? 0 : got;
    }
    output[kept] = '\0';
}

static int child_wait(struct os_child *child, int *exit_status)
{
    int system;
    while ((system = os_child_wait(child, exit_status)) == EINTR)
        os_child_stop(child);
    return system;
}

/* child_try() with a descriptor for the child's standard input; -1: it has that of this process. */
static int run_reading(struct bench *bench, const char *path, const char *const *arguments, int input, char *output,
                       size_t capacity, struct child_usage *usage)
{
    const char *all[CHILD_ARGUMENTS_MAX + 2] = {path};
    assert(!output || capacity);
    size_t count = 0;
    for (; arguments[count]; count++) {
        assert(count < CHILD_ARGUMENTS_MAX);
        all[count + 1] = arguments[count];
    }
    struct os_child child;
    const uint64_t started = os_clock_ns();
    int system = input < 0 ? os_child_start(&child, path, all, output != NULL)
                           : os_child_start_reading(&child, path, all, output != NULL, input);
    bench_check_system(bench, system, path, "This program cannot be started.");
    if (output)
        output_read(&child, output, capacity);
    int status = 0;
    system = child_wait(&child, &status);
    if (usage)
        *usage = (struct child_usage){started, (double)(os_clock_ns() - started) / 1e9, (double)child.cpu_ns / 1e9,
                                      (double)child.peak_bytes / 1048576};
    bench_check_system(bench, system, path, "Waiting for the end of this program failed.");
    if (status && !bench_stopped())
        cli_say(bench->program, "%s ended with exit status %d", path, status);
    return status ? CLI_FAILED : CLI_DONE;
}

int child_try(struct bench *bench, const char *path, const char *const *arguments, char *output, size_t capacity,
              struct child_usage *usage)
{
    return run_reading(bench, path, arguments, -1, output, capacity, usage);
}

void child_run(struct bench *bench, const char *path, const char *const *arguments, char *output, size_t capacity,
               struct child_usage *usage)
{
    if (child_try(bench, path, arguments, output, capacity, usage))
        bench_end(bench, CLI_FAILED);
}

void child_run_copy(struct bench *bench, const char *what, const char *dataset, char *output, size_t capacity,
                    struct child_usage *usage)
{
    const struct bench_options *options = &bench->options;
    struct child_arguments arguments = {.list = {CHILD_MARK, what, bench->name}, .count = 3};
    arguments_text(&arguments, "--dir", options->folder);
    arguments_number(&arguments, "--seq-len", options->seq_len);
    arguments_number(&arguments, "--rows", options->rows);
    arguments_number(&arguments, "--tokens", options->tokens);
    if (options->seconds > 0)
        arguments_real(&arguments, "--seconds", options->seconds);
    arguments_tokenizer(&arguments, bench);
    arguments_add(&arguments, dataset);
    child_run(bench, bench->self, arguments.list, output, capacity, usage);
}

/* Starts a copy with this process's command line. Returns 0 or an errno; E2BIG if it has too many words. */
static int copy_start(const struct bench *bench, const char *what, struct os_child *child)
{
    const char *all[CHILD_ARGUMENTS_MAX + 4] = {bench->self, CHILD_MARK, what};
    size_t count = 3;
    for (int i = 1; i < bench->argc; i++) {
        if (count > CHILD_ARGUMENTS_MAX)
            return E2BIG;
        all[count++] = bench->argv[i];
    }
    if (bench->made_dataset[0])
        all[count++] = bench->made_dataset;
    return os_child_start(child, bench->self, all, true);
}

/* Waits for children, and reads what they print into the copies, if there are any. system: the errno of one that could
 * not be started. Unless all are done, ends the program. */
static void children_wait(struct bench *bench, const char *path, struct os_child *children, size_t started, int system,
                          struct child_copy *copies)
{
    char dropped[64];
    bool failed = false;
    for (size_t i = 0; i < started; i++) {
        int status = 0;
        if (system || failed) /* one has failed, so the others have nothing to measure */
            os_child_stop(&children[i]);
        output_read(&children[i], copies ? copies[i].output : dropped, copies ? copies[i].capacity : sizeof dropped);
        const int waiting = child_wait(&children[i], &status);
        if (status && !system && !failed && !bench_stopped())
            cli_say(bench->program, "%s ended with exit status %d", path, status);
        failed |= status || waiting;
    }
    bench_check_system(bench, system, path, "This program cannot be started several times.");
    if (failed)
        bench_end(bench, CLI_FAILED);
}

void child_run_copies(struct bench *bench, struct child_copy *copies, size_t count)
{
    struct os_child *children = bench_new(bench, count, sizeof *children);
    size_t started = 0;
    int system = 0;
    while (started < count && !(system = copy_start(bench, copies[started].what, &children[started])))
        started++;
    children_wait(bench, bench->self, children, started, system, copies);
    free(children);
}

void child_run_tasks(struct bench *bench, const char *path, const struct child_arguments *arguments, uint32_t tasks,
                     struct child_usage *usage)
{
    struct os_child children[CHILD_TASKS_MOST];
    const uint64_t begun = os_clock_ns();
    uint32_t started = 0;
    int system = 0;
    assert(tasks <= CHILD_TASKS_MOST && arguments->count + 3 <= CHILD_ARGUMENTS_MAX);
    for (; started < tasks && !system; started += !system) {
        const char *all[CHILD_ARGUMENTS_MAX + 2] = {path};
        char task[32];
        memcpy(all + 1, arguments->list, arguments->count * sizeof *all);
        all[1 + arguments->count] = "--task";
        all[2 + arguments->count] = task;
        (void)snprintf(task, sizeof task, "%" PRIu32 "/%" PRIu32, started, tasks);
        system = os_child_start(&children[started], path, all, true);
    }
    children_wait(bench, path, children, started, system, NULL);
    *usage = (struct child_usage){.started_ns = begun, .seconds = (double)(os_clock_ns() - begun) / 1e9};
    for (uint32_t i = 0; i < tasks; i++) {
        usage->cpu_seconds += (double)children[i].cpu_ns / 1e9;
        usage->peak_mib += (double)children[i].peak_bytes / 1048576;
    }
}

/* ---- load ---- */

#define LOAD_LOOK_NS 10000000 /* how often a copy looks for its parent */

void child_load_begin(struct bench *bench, struct child_load *load)
{
    const size_t count = os_processors();
    load->children = bench_new(bench, count, sizeof *load->children);
    for (load->count = 0; load->count < count; load->count++)
        bench_check_system(bench, copy_start(bench, CHILD_LOAD, &load->children[load->count]), bench->self,
                           "A copy of this program cannot be started.");
}

void child_load_end(struct child_load *load)
{
    int status;
    for (size_t i = 0; i < load->count; i++)
        os_child_stop(&load->children[i]);
    for (size_t i = 0; i < load->count; i++)
        (void)child_wait(&load->children[i], &status);
    free(load->children);
}

void child_load_run(void)
{
    uint64_t value = 0;
    /* Its standard output is a pipe, which is ready without having bytes once nobody can read it. */
    while (os_wait_readable(1, 0) == ETIMEDOUT)
        for (const uint64_t until = os_clock_ns() + LOAD_LOOK_NS; os_clock_ns() < until;)
            for (int i = 0; i < 1000; i++)
                keep_value(random_next(&value));
}

void child_program(struct bench *bench, char path[BENCH_PATH])
{
    const int length = snprintf(path, BENCH_PATH, "%.*stokmap", (int)path_folder_bytes(bench->self), bench->self);
    if (length < 0 || length >= BENCH_PATH)
        bench_failed_system(bench, ENAMETOOLONG, bench->self, "The path of the command tokmap is too long.");
}

/* input: a descriptor for its standard input; -1: it has that of this process. */
static int run_tokmap(struct bench *bench, const char *const *arguments, int input, struct child_usage *usage)
{
    char path[BENCH_PATH], said[256];
    child_program(bench, path);
    return run_reading(bench, path, arguments, input, said, sizeof said, usage);
}

void child_run_tokmap(struct bench *bench, const char *const *arguments, struct child_usage *usage)
{
    if (run_tokmap(bench, arguments, -1, usage))
        bench_end(bench, CLI_FAILED);
}

void child_run_tokmap_fed(struct bench *bench, const char *what, const char *const *arguments,
                          struct child_usage *usage)
{
    struct os_child writer;
    int status = 0;
    bench_check_system(bench, copy_start(bench, what, &writer), bench->self,
                       "A copy of this program cannot be started.");
    const int result = run_tokmap(bench, arguments, writer.output, usage);
    if (result) /* nothing reads what it writes */
        os_child_stop(&writer);
    bench_check_system(bench, child_wait(&writer, &status), bench->self, "Waiting for a copy of this program failed.");
    if (!result && status && !bench_stopped())
        cli_say(bench->program, "the copy of this program that writes the input ended with exit status %d", status);
    if (result || status)
        bench_end(bench, CLI_FAILED);
}

double child_number(const char *output, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = output; (at = strstr(at, name)) != NULL; at += length)
        if ((at == output || at[-1] == ' ' || at[-1] == '\n') && at[length] == '=')
            return strtod(at + length + 1, NULL);
    return (double)NAN;
}
