/* SPDX-License-Identifier: MIT */
/*
 * cursor.c - the exact resume state of a run, and its text. FROZEN: a change here makes every saved cursor useless.
 *
 * The text is one line with single spaces, decimal numbers, and lower-case hexadecimal digits:
 *
 *     tokmap1 step=179200 tokens=1748060078080 past=<32 hex> of=<8 hex>,<8 hex>,<8 hex>,<8 hex>,<8 hex>
 *
 * past is past[0] and then past[1], 16 digits each; of is geometry, order, batch, skips, data. past.c defines the
 * fingerprints. A reader accepts more spaces or tabs between the five words, and white space around them. It accepts no
 * other difference.
 */
#include "cursor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "past.h"
#include "run.h"
#include "run_state.h"
#include "run_text.h"
#include "text/decimal.h"

/* ---- of a run ---- */

/* Makes the cursor of exactly this step, whether or not it is skipped. */
static void cursor_at(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor)
{
    past_cursor(&run->past, step, run_tokens_before(run, step), cursor);
}

enum tokmap_status run_past_the_end(const struct tokmap_run *run, uint64_t step, struct tokmap_error *error)
{
    bool by_steps = run->spec.passes == TOKMAP_FOREVER;
    return error_set_line(error, TOKMAP_ERROR_RANGE, run->path,
                          run->from_text ? run->spec.lines[by_steps ? RUN_STEPS : RUN_PASSES] : 0,
                          "step %" PRIu64 " is past the end of the run, which is step %" PRIu64 "; raise '%s', or "
                          "name an earlier step; a cursor belongs to the run that it was saved from",
                          step, run->phases.steps_most, by_steps ? "steps" : "passes");
}

void run_cursor(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor)
{
    assert(step <= run->phases.steps_most);
    const uint64_t next = run_next_step(run, step);
    cursor_at(run, next == TOKMAP_FOREVER ? run->phases.steps_most : next, cursor);
}

enum tokmap_status tokmap_run_cursor(const struct tokmap_run *run, uint64_t step, struct tokmap_cursor *cursor,
                                     struct tokmap_error *error)
{
    if (!run || !cursor)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or cursor is NULL; pass both");
    if (step > run->phases.steps_most)
        return run_past_the_end(run, step, error);
    run_cursor(run, step, cursor);
    return TOKMAP_OK;
}

enum tokmap_status run_check_cursor(const struct tokmap_run *run, const struct tokmap_cursor *cursor,
                                    struct tokmap_error *error)
{
    struct tokmap_cursor own;
    if (cursor->step > run->phases.steps_most) {
        /* If the run differs in something besides its end, such as a smaller dataset, that is what to report: raising
         * the end would not help. Only the kinds are compared, because the tokens before the step may not exist. */
        past_cursor(&run->past, cursor->step, cursor->tokens, &own);
        memcpy(own.past, cursor->past, sizeof own.past);
        const enum tokmap_status status = past_compare(&run->past, &own, cursor, error);
        return status ? status : run_past_the_end(run, cursor->step, error);
    }
    cursor_at(run, cursor->step, &own);
    return past_compare(&run->past, &own, cursor, error);
}

enum tokmap_status tokmap_run_check_cursor(const struct tokmap_run *run, const struct tokmap_cursor *cursor,
                                           struct tokmap_error *error)
{
    if (!run || !cursor)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "run or cursor is NULL; pass both");
    return run_check_cursor(run, cursor, error);
}

/* ---- writing ---- */

void tokmap_cursor_print(const struct tokmap_cursor *cursor, char text[TOKMAP_CURSOR_TEXT])
{
    if (!text)
        return;
    text[0] = '\0';
    if (!cursor)
        return;
    (void)snprintf(text, TOKMAP_CURSOR_TEXT,
                   "tokmap1 step=%" PRIu64 " tokens=%" PRIu64 " past=%016" PRIx64 "%016" PRIx64 " of=%08" PRIx32
                   ",%08" PRIx32 ",%08" PRIx32 ",%08" PRIx32 ",%08" PRIx32,
                   cursor->step, cursor->tokens, cursor->past[0], cursor->past[1], cursor->of[0], cursor->of[1],
                   cursor->of[2], cursor->of[3], cursor->of[4]);
}

/* ---- reading ---- */

/* Reads a literal. Each read function moves *at past what it accepts. On failure *at points to the first wrong byte,
 * which the error names. */
static bool read_literal(const char **at, const char *literal)
{
    for (; *literal; literal++, ++*at)
        if (**at != *literal)
            return false;
    return true;
}

static bool read_hex(const char **at, int digits, uint64_t *number)
{
    uint64_t value = 0;
    for (int i = 0; i < digits; i++, ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *number = value;
    return true;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Accepts one or more spaces or tabs. */
static bool read_gap(const char **at)
{
    const char *from = *at;
    while (**at == ' ' || **at == '\t')
        ++*at;
    return *at > from;
}

static bool read_of(const char **at, uint32_t of[5])
{
    for (int i = 0; i < 5; i++) {
        uint64_t value;
        if ((i > 0 && !read_literal(at, ",")) || !read_hex(at, 8, &value))
            return false;
        of[i] = (uint32_t)value;
    }
    return true;
}

static enum tokmap_status not_a_cursor(const char *text, const char *at, struct tokmap_error *error)
{
    return error_set(error, TOKMAP_ERROR_CURSOR, NULL, (uint64_t)(at - text),
                     "the text is not a cursor; pass the whole line that was saved, 'tokmap1 step=.. tokens=.. past=.. "
                     "of=..'");
}

enum tokmap_status cursor_parse(struct tokmap_cursor *cursor, const char *text, struct tokmap_error *error)
{
    struct tokmap_cursor read;
    memset(&read, 0, sizeof read);
    const char *at = text;
    uint64_t version;
    while (is_white(*at))
        at++;
    if (!read_literal(&at, "tokmap") || !decimal_read(&at, NULL, &version) || !read_gap(&at))
        return not_a_cursor(text, at, error);
    if (version != 1)
        return error_set(error, TOKMAP_ERROR_VERSION, NULL, TOKMAP_NO_OFFSET,
                         "the cursor has version %" PRIu64 ", but this tokmap reads only version 1; use a newer tokmap",
                         version);
    if (!read_literal(&at, "step=") || !decimal_read(&at, NULL, &read.step) || !read_gap(&at) ||
        !read_literal(&at, "tokens=") || !decimal_read(&at, NULL, &read.tokens) || !read_gap(&at) ||
        !read_literal(&at, "past=") || !read_hex(&at, 16, &read.past[0]) || !read_hex(&at, 16, &read.past[1]) ||
        !read_gap(&at) || !read_literal(&at, "of=") || !read_of(&at, read.of))
        return not_a_cursor(text, at, error);
    while (is_white(*at))
        at++;
    if (*at != '\0')
        return not_a_cursor(text, at, error);
    *cursor = read;
    return TOKMAP_OK;
}

enum tokmap_status tokmap_cursor_parse(struct tokmap_cursor *cursor, const char *text, struct tokmap_error *error)
{
    if (!cursor || !text)
        return error_set(error, TOKMAP_ERROR_ARGUMENT, NULL, TOKMAP_NO_OFFSET, "cursor or text is NULL; pass both");
    return cursor_parse(cursor, text, error);
}

/* ---- a run with another future ---- */

/*
 * Its text is that of the run it continues, with one more phase line; a
 * line for the same step is replaced. Example: of the text
 *
 *     ...
 *     phase 0 prose 0.8 code 0.2
 *     phase 900 batch 16
 *
 * the change "prose 0.6 code 0.4" from step 500 on is the line `phase 500 prose 0.6 code 0.4` between the two.
 */

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
