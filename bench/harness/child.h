/* SPDX-License-Identifier: MIT */
/*
 * child.h - child processes: copies of this program, the command tokmap, and programs of other projects.
 *
 * A case measures in a child process what it cannot measure in its own: the time from process start, and memory use
 * that must not include the case's own buffers.
 */
#ifndef TOKMAP_BENCH_HARNESS_CHILD_H
#define TOKMAP_BENCH_HARNESS_CHILD_H

#include "harness.h"

#define CHILD_ARGUMENTS_MAX 80

/* The arguments of a program: argv from argv[1] on. It begins as zeros, or with `count` words in the list. A copy of it
 * would have the numbers of the original. */
struct child_arguments {
    const char *list[CHILD_ARGUMENTS_MAX + 1];
    size_t count;
    char numbers[24][32]; /* the texts of numbers */
    size_t number_count;
};

void arguments_add(struct child_arguments *arguments, const char *word);
/* Append an option with its value. Nothing is appended if `value` is NULL. */
void arguments_text(struct child_arguments *arguments, const char *option, const char *value);
void arguments_number(struct child_arguments *arguments, const char *option, uint64_t value);
void arguments_real(struct child_arguments *arguments, const char *option, double value);
/* Appends the options that name the tokenizer (--tokenizer, --pattern, --special-tokens), as this process received
 * them. */
void arguments_tokenizer(struct child_arguments *arguments, const struct bench *bench);

/* Resources that a child process used. */
struct child_usage {
    uint64_t
        started_ns; /* os_clock_ns() immediately before the start; a copy of this program can compare its own clock */
    double seconds; /* from before the start to the end of the process */
    double cpu_seconds; /* of processor time */
    double peak_mib;    /* peak resident memory; never below what this process held when it started the child */
};

/* Runs the program at `path` to its end. arguments: argv from argv[1] on, at most CHILD_ARGUMENTS_MAX, NULL last.
 * output receives the first capacity - 1 bytes of its standard output and a zero; if output is NULL, the child shares
 * our standard output. usage may be NULL. A signal to this process ends the child as well. Returns CLI_DONE, or
 * CLI_FAILED after a message if its exit status is not 0; ends the program if it cannot be started. */
int child_try(struct bench *bench, const char *path, const char *const *arguments, char *output, size_t capacity,
              struct child_usage *usage);

/* Does the same, and ends the program if the exit status is not 0, as do all functions below. */
void child_run(struct bench *bench, const char *path, const char *const *arguments, char *output, size_t capacity,
               struct child_usage *usage);

/* Runs a copy of this program: the current case on `dataset`, with the options --dir, --seq-len, --rows, --seconds and
 * --tokenizer of this process. options.child is then `what`. Parameters as for child_run(). */
void child_run_copy(struct bench *bench, const char *what, const char *dataset, char *output, size_t capacity,
                    struct child_usage *usage);
/* The first argument of a copy of this program; options.child is the second one. It is not an option: it is removed
 * before the options are parsed. */
#define CHILD_MARK "--child"

/* One of several copies that run at the same time. */
struct child_copy {
    char what[256];  /* its options.child */
    char *output;    /* receives what it prints, cut to capacity - 1 bytes, and a zero */
    size_t capacity; /* at least 1 */
};

/* Starts `count` copies of this program with the command line of this process, waits for all of them, and reads what
 * they print. A dataset that this process created is added to their command line. If one of them fails, the others are
 * stopped. */
void child_run_copies(struct bench *bench, struct child_copy *copies, size_t count);

/* Runs the program as `tasks` processes at the same time, each with --task I/TASKS after the arguments. usage: from the
 * start of the first one to the end of the last one, and the sums of their processor times and peaks. */
#define CHILD_TASKS_MOST 8
void child_run_tasks(struct bench *bench, const char *path, const struct child_arguments *arguments, uint32_t tasks,
                     struct child_usage *usage);

/* Copies of this program that keep every processor busy from child_load_begin() to child_load_end(). They also end, at
 * most 10 ms later, when this process ends, whatever ended it. A case of which options.child is CHILD_LOAD runs
 * child_load_run(). */
#define CHILD_LOAD "load"
struct child_load {
    struct os_child *children;
    size_t count;
};
void child_load_begin(struct bench *bench, struct child_load *load);
void child_load_end(struct child_load *load);
void child_load_run(void);

/* Writes the path of the command tokmap, which is expected in this program's own folder. */
void child_program(struct bench *bench, char path[BENCH_PATH]);
/* Runs the command tokmap, which is expected in this program's own folder; what it prints is dropped. Parameters as for
 * child_run(). */
void child_run_tokmap(struct bench *bench, const char *const *arguments, struct child_usage *usage);
/* Does the same with a standard input that a copy of this program writes: it gets the command line of this process, and
 * its options.child is `what`. usage is that of tokmap alone. */
void child_run_tokmap_fed(struct bench *bench, const char *what, const char *const *arguments,
                          struct child_usage *usage);

/* Returns the number that follows "NAME=" in a child's output, or NAN if the output does not contain it. */
double child_number(const char *output, const char *name);

#endif
