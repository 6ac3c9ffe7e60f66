/* SPDX-License-Identifier: MIT */
/*
 * run_continue.c - a run with another future. Its text is that of the run it continues, with one more phase line; a
 * line for the same step is replaced. Example: of the text
 *
 *     ...
 *     phase 0 prose 0.8 code 0.2
 *     phase 900 batch 16
 *
 * the change "prose 0.6 code 0.4" from step 500 on is the line `phase 500 prose 0.6 code 0.4` between the two.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "cursor.h"
#include "run.h"
#include "run_state.h"
#include "run_text.h"

/* Returns the step of a phase line of a canonical text; TOKMAP_FOREVER if the line is another one. */
static uint64_t phase_step(const char *line)
{
    static const char begin[] = "phase ";
    return strncmp(line, begin, sizeof begin - 1) ? TOKMAP_FOREVER : strtoull(line + sizeof begin - 1, NULL, 10);
}

/* Returns a text with a phase line from `step` on. Free it with free(). NULL: there is no memory. */
static char *text_with(const char *text, uint64_t step, const char *change)
{
    const size_t room = strlen(text) + strlen(change) + 64;
    const char *line = text, *end;
    char *made = malloc(room);
    if (!made)
        return NULL;
    /* Up to the first line of a phase that begins there or later. */
    while (*line && (phase_step(line) == TOKMAP_FOREVER || phase_step(line) < step) && (end = strchr(line, '\n')))
        line = end + 1;
    const char *rest = line;
    if (phase_step(line) == step)
        rest = (end = strchr(line, '\n')) ? end + 1 : line + strlen(line);
    (void)snprintf(made, room, "%.*sphase %" PRIu64 " %s\n%s", (int)(line - text), text, step, change, rest);
    return made;
}

enum tokmap_status tokmap_run_continue(struct tokmap_run **continued, const struct tokmap_run *run, uint64_t step,
                                       const char *change, struct tokmap_error *error)
{
    struct tokmap_cursor cursor;
    struct run_spec spec;
    if (continued)
        *continued = NULL;
    if (!continued || !run || !change)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "continued, run, or change is NULL; pass all three");
    if (strpbrk(change, "\n\r#") || !change[strspn(change, " \t")])
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET,
                         "change is '%.80s'; write what follows the step of a phase line, such as "
                         "\"prose 0.6 code 0.4 batch 128\"",
                         change);
    if (step > run->phases.steps_most)
        return run_past_the_end(run, step, error);
    run_cursor(run, step, &cursor); /* after skipped steps: what they drew is past, too */
    char *text = run->text ? text_with(run->text, cursor.step, change) : NULL;
    if (!text)
        return error_set_memory(error, "the text of a run", 0);
    enum tokmap_status status = run_text_read(&spec, text, strlen(text), NULL, error);
    free(text);
    if (status)
        return status;
    spec.reading = run->spec.reading;
    status = run_new(continued, &spec, NULL, NULL, true, error);
    if (!status && (status = run_check_cursor(*continued, &cursor, error))) {
        tokmap_run_close(*continued);
        *continued = NULL;
    }
    return status;
}
