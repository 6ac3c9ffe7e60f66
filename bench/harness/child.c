/* child.c - see child.h. */
#include "child.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "platform/os.h"

#define ARGUMENTS_MAX 30

int child_run(struct bench *bench, const char *path, const char *const *arguments, char *output, size_t capacity,
              uint64_t *started_ns)
{
    const char *all[ARGUMENTS_MAX + 2] = {path};
    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
        all[i + 1] = arguments[i];
    struct os_child child;
    uint64_t clock = 0;
    uint64_t *const started = started_ns ? started_ns : &clock;
    *started = os_clock_ns();
    int system = os_child_start(&child, path, all, output != NULL);
    if (system)
        return bench_failed_system(bench, system, path,
                                   "This program could not be started; is it installed beside "
                                   "tokmap-bench?");
    size_t kept = 0;
    while (output) {
        char rest[512];
        size_t got = 0;
        bool full = kept + 1 >= capacity;
        int failed = os_read(child.output, full ? rest : output + kept, full ? sizeof rest : capacity - 1 - kept, &got);
        if (!failed && !got)
            break;
        if (failed && failed != EINTR) /* after a signal child_wait() stops it */
            os_child_stop(&child);
        if (failed)
            break;
        kept += full ? 0 : got;
    }
    if (output)
        output[kept] = '\0';
    int status = 0;
    system = child_wait(&child, &status);
    if (system)
        return bench_failed_system(bench, system, path, "This program was started and cannot be waited for.");
    if (status && !bench_stopped())
        cli_say(bench->program, "%s failed with status %d", path, status);
    return status ? CLI_FAILED : CLI_DONE;
}

int child_wait(struct os_child *child, int *exit_status)
{
    int system;
    while ((system = os_child_wait(child, exit_status)) == EINTR)
        os_child_stop(child);
    return system;
}

double child_number(const char *output, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = output; (at = strstr(at, name)) != NULL; at += length)
        if ((at == output || at[-1] == ' ' || at[-1] == '\n') && at[length] == '=')
            return strtod(at + length + 1, NULL);
    return (double)NAN;
}
