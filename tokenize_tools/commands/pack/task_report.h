/* task_report.h - what `tokmap pack --status` prints about the tasks of an output, and what a task prints at its end.
 */
#ifndef TOKMAP_COMMANDS_PACK_TASK_REPORT_H
#define TOKMAP_COMMANDS_PACK_TASK_REPORT_H

#include "task_arguments.h"

/* Prints how far all tasks of the output `prefix` are. Returns the exit status, after a message if it is not
 * CLI_DONE. */
int task_status_report(const struct cli_command *command, const char *prefix, bool json);

/* The end of a task whose output is not complete yet, or was completed by another process. */
struct task_end {
    const char *prefix;
    const struct task_arguments *arguments;
    const struct pack_tasks_outcome *outcome;
    uint64_t units;       /* of all tasks */
    bool drops, shuffles; /* documents are left out, or shuffled: there are more stages */
    double seconds;
};
void task_end_print(const struct task_end *end);
void task_end_json(const struct task_end *end);

#endif
