/*
 * task_arguments.h - the options of `tokmap pack` that divide its work among processes: --task, --finish, --unit-bytes,
 * and --status.
 *
 * `--task auto` takes the number of the process, and of how many, from the environment of a scheduler. Only that word
 * does, because a command that is started as a step of something else must not leave out work silently. More than one
 * scheduler can have left variables; where they do not agree, the command refuses to choose.
 */
#ifndef TOKMAP_COMMANDS_PACK_TASK_ARGUMENTS_H
#define TOKMAP_COMMANDS_PACK_TASK_ARGUMENTS_H

#include "cli/cli.h"
#include "pack/pack_tasks.h"

struct task_arguments {
    const char *task_text; /* NULL: not given */
    bool finish;
    uint64_t unit_bytes;
    bool unit_given;
    const char *status; /* the output of --status, or NULL */
    uint64_t wait_seconds;
    bool wait_given;
    /* Set by task_arguments_check(): */
    bool given; /* --task or --finish */
    uint64_t task, tasks;
    const char *variables; /* from which they come; NULL: from --task */
    bool stays;            /* as in pack_tasks.h */
};

#define TASK_ARGUMENTS_INIT                                                                                            \
    {                                                                                                                  \
        .unit_bytes = PACK_UNIT_BYTES, .tasks = 1                                                                      \
    }

/* clang-format off */
#define TASK_OPTIONS(arguments)                                                                                        \
    {0, "task", CLI_TEXT, &(arguments).task_text, NULL, "I/N|auto",                                                    \
     "with --shard-tokens: be one of N processes, numbered from 0, that make the output together; auto: take the "     \
     "numbers from the environment of Slurm, MPI, Kubernetes (with TOKMAP_TASKS), AWS Batch, or torchrun", NULL},      \
    {0, "finish", CLI_FLAG, &(arguments).finish, NULL, NULL,                                                           \
     "only give the shards of all tasks their names, which otherwise the last task does; fails and names what is "     \
     "missing", NULL},                                                                                                 \
    {0, "wait", CLI_NUMBER, &(arguments).wait_seconds, &(arguments).wait_given, "SECONDS",                             \
     "with --dedup, --exclude-ngrams, or --shuffle: how long a task waits for others that have not begun, or have ended, before "  \
     "it exits with 3, to be run again (default: 0; with --task auto 60, or 600 where all tasks start together); 0: "  \
     "it does not wait for those that work, either", NULL},                                                            \
    {0, "unit-bytes", CLI_SIZE, &(arguments).unit_bytes, &(arguments).unit_given, "SIZE",                              \
     "with --shard-tokens: cut the inputs into units of work of SIZE (default: 16 GiB); without --shuffle the last "   \
     "shard of a unit is short, so another SIZE gives other shards", NULL},                                                               \
    {0, "status", CLI_TEXT, &(arguments).status, NULL, "PREFIX",                                                       \
     "do nothing but print how far the tasks of this output are", NULL}
/* clang-format on */

/* Reads --task, and checks the options among themselves. Returns 0, or prints a message and returns the exit status. */
int task_arguments_check(const struct cli_command *command, struct task_arguments *arguments);

#endif
