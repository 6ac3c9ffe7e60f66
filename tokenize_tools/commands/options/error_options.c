/* SPDX-License-Identifier: MIT */
/* error_options.c - see error_options.h. */
#include "error_options.h"

#include <assert.h>
#include <string.h>

static const char clause[] = ", or ", replacing[] = "replace it", forcing[] = "use --force";
static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

bool command_has_option(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return true;
    return false;
}

/* If a clause ", or ..." begins at `at` and names an option that the command lacks, returns its bytes, else 0. The
 * clause ends before the next ", or", before a semicolon or a period, or with the message. Options in a clause with a
 * command in `backquotes` are those of that command. */
static size_t clause_without_option(const struct cli_command *command, const char *at)
{
    bool lacking = false, quoted = false;
    size_t i;
    if (strncmp(at, clause, sizeof clause - 1) != 0)
        return 0;
    for (i = sizeof clause - 1; at[i] && at[i] != ';' && strncmp(at + i, clause, sizeof clause - 1) != 0; i++) {
        char name[32] = "";
        if (at[i] == '.' && (at[i + 1] == ' ' || !at[i + 1]))
            break;
        const size_t length = strncmp(at + i, " --", 3) == 0 ? strspn(at + i + 3, name_bytes) : 0;
        if (length && length < sizeof name) {
            memcpy(name, at + i + 3, length);
            lacking = lacking || !command_has_option(command, name);
        }
        quoted = quoted || at[i] == '`';
    }
    return lacking && !quoted ? i : 0;
}

/* Writes "--NAME" if the message begins with the name of a field and the command has an option of that name. Returns
 * the bytes of the name in the message, or 0. */
static size_t field_name(const struct cli_command *command, const struct tokmap_error *error, char *named, size_t room)
{
    const size_t length = strlen(error->field);
    char option[sizeof error->field];
    if (!length || strncmp(error->message, error->field, length) != 0)
        return 0;
    for (size_t i = 0; i <= length; i++)
        option[i] = error->field[i] == '_' ? '-' : error->field[i];
    if (!command_has_option(command, option))
        return 0;
    (void)snprintf(named, room, "--%s", option);
    return length;
}

void error_name_options(const struct cli_command *command, struct tokmap_error *error)
{
    char named[sizeof error->message] = "";
    const size_t room = sizeof named - 1, end = sizeof replacing - 1;
    assert(memchr(error->message, '\0', sizeof error->message));
    const char *at = error->message + field_name(command, error, named, sizeof named);
    size_t used = strlen(named);
    while (*at && used < room) {
        const size_t left_out = clause_without_option(command, at);
        if (left_out)
            at += left_out;
        else
            named[used++] = *at++;
    }
    named[used] = '\0';
    if (error->status == TOKMAP_ERROR_EXISTS && used >= end && strcmp(named + used - end, replacing) == 0 &&
        command_has_option(command, "force"))
        (void)snprintf(named + used - end, sizeof named - (used - end), "%s", forcing);
    memcpy(error->message, named, sizeof named);
}

int command_failed(const struct cli_command *command, const struct tokmap_error *error)
{
    struct tokmap_error named = *error;
    error_name_options(command, &named);
    return cli_failed(command->program, &named);
}

void command_skipped(const struct cli_command *command, const struct tokmap_error *why)
{
    struct tokmap_error named = *why;
    char text[sizeof named.path + sizeof named.message + 256];
    error_name_options(command, &named);
    cli_say(command->program, "skipped: %s", tokmap_error_print(&named, text, sizeof text));
}
