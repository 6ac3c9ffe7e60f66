/* SPDX-License-Identifier: MIT */
/* task_pack.h - packs the inputs of `tokmap pack` whole, or in units: as a task, or all of them if they are many. Also
 * what `--status` prints about the tasks of an output, and what a task prints at its end. */
#ifndef TOKMAP_COMMANDS_PACK_TASK_PACK_H
#define TOKMAP_COMMANDS_PACK_TASK_PACK_H

#include "pack_arguments.h"

struct task_pack {
    struct task_arguments asked;
    bool in_units;        /* set before the first call of options->progress */
    uint64_t units;       /* of all tasks */
    uint64_t share_bytes; /* stored bytes of the inputs of this process */
    struct pack_tasks_outcome outcome;
};

/* Packs. options->unit_bytes is that of the arguments, or 0 if work of this kind is not cut. Statuses: those of
 * pack_run() and pack_tasks_run(), and ERROR_UNSUPPORTED (an input cannot be divided among tasks). */
enum tokmap_status task_pack_run(struct task_pack *tasks, const struct pack_options *options,
                                 const char *const *operands, size_t operand_count, struct pack_result *result,
                                 struct tokmap_error *error);

/* Returns true if the output is not complete at the end of this process, or not by it: then task_end_print()
 * reports. */
bool task_pack_is_part(const struct task_pack *tasks);

/* ---- reports ---- */

/* Prints how far all tasks of the output `prefix` are. Returns the exit status, after a message if it is not
 * CLI_DONE. */
int task_status_report(const struct cli_command *command, const char *prefix, bool json);

/* Report the end of a task whose output is not complete yet, or was completed by another process. */
void task_end_print(const struct task_pack *tasks, const struct pack_options *options, double seconds);
void task_end_json(const struct task_pack *tasks, const struct pack_options *options, double seconds);

#endif
