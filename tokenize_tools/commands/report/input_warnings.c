/* SPDX-License-Identifier: MIT */
/* input_warnings.c - see input_warnings.h. */
#include "input_warnings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/name_kind.h"
#include "platform/os.h"
#include "text/path.h"

/* Returns a glob, ready for the shell, that chooses the files with the ending of this one, or with its name if it has
 * none. */
static char *glob_of(const char *path)
{
    const char *ending = name_ending(path), *name = path_name(path);
    char glob[256];
    const int count = snprintf(glob, sizeof glob, "%s%s", *ending ? "*" : "", *ending ? ending : name);
    return cli_shell_quote(count > 0 && (size_t)count < sizeof glob ? glob : name);
}

/* Keeps a message, if it is the first one of its kind: the inputs are listed more than once. From any thread. A warning
 * that memory is missing for is not worth an error. */
static void keep(struct input_warnings *warnings, enum input_warning kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void keep(struct input_warnings *warnings, enum input_warning kind, const char *format, ...)
{
    char *message, *none = NULL;
    va_list arguments;
    va_start(arguments, format);
    const bool made = vasprintf(&message, format, arguments) >= 0;
    va_end(arguments);
    if (made && !atomic_compare_exchange_strong(&warnings->messages[kind], &none, message))
        free(message);
}

static void mixed_found(void *user, const char *operand, const char *text, const char *records)
{
    char *texts = glob_of(text), *others = glob_of(records);
    if (texts && others)
        keep(user, INPUTS_MIXED,
             "'%s' has files of records and of text; '%s' is read as text, one document per file: leave such files out "
             "with --exclude %s, or choose the files with --include %s",
             operand, text, texts, others);
    free(texts);
    free(others);
}

static void repeated_found(void *user, const char *path)
{
    keep(user, INPUTS_REPEATED, "some inputs are named more than once, and are read each time; the first is '%s'",
         path);
}

/* Writes a separator as --separator reads it, ready for the shell. */
static char *separator_typed(const char *separator, uint64_t bytes)
{
    static const char bare[] = "\n\t\r\\", escaped[] = "ntr\\";
    char typed[4 * 2 * RECORD_SEPARATOR_MOST + 1];
    size_t at = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)separator[i];
        const char *named = byte ? strchr(bare, byte) : NULL;
        if (named) {
            typed[at++] = '\\';
            typed[at++] = escaped[named - bare];
        } else if (byte < 0x20 || byte == 0x7f) {
            at += (size_t)snprintf(typed + at, sizeof typed - at, "\\x%02x", byte);
        } else {
            typed[at++] = separator[i];
        }
    }
    typed[at] = '\0';
    return cli_shell_quote(typed);
}

static void undivided_found(void *user, const char *path, const char *other, uint64_t other_bytes)
{
    char *typed = other ? separator_typed(other, other_bytes) : NULL;
    if (typed)
        keep(user, INPUTS_OTHER_LINE_ENDS,
             "the separator does not occur in '%s', which has %s line ends; it is one document; use --separator %s for "
             "such files",
             path, memchr(other, '\r', other_bytes) ? "CRLF" : "LF", typed);
    else
        keep(user, INPUTS_UNDIVIDED, "the separator does not occur in '%s', which is one document; check --separator",
             path);
    free(typed);
}

static void unversioned_found(void *user, const char *path)
{
    keep(user, INPUTS_UNVERSIONED,
         "%s: the server names no version of this file (an ETag that is not weak, or an older Last-Modified): after an "
         "interruption the file is read from its beginning again",
         path);
}

/* Says at once what is waited for, from the thread that waits. Another one may draw the progress meanwhile, so the line
 * of a terminal is cleared without it. */
static void waits_told(void *user, const char *path, const char *reason, uint64_t seconds)
{
    const struct input_warnings *warnings = user;
    if (os_is_terminal(fileno(stderr)))
        (void)fputs("\r\033[K", stderr);
    cli_warn(warnings->program, "%s: %s; waiting %" PRIu64 " s", path, reason, seconds);
}

void input_warnings_watch(struct input_warnings *warnings, struct corpus_options *options)
{
    options->select.user = warnings;
    options->select.repeated = repeated_found;
    options->undivided = undivided_found;
    options->undivided_user = warnings;
    options->select.watch = (struct remote_watch){warnings->saved ? unversioned_found : NULL, waits_told, warnings};
    if (options->format == CORPUS_AUTO && options->content == CORPUS_CONTENT_TEXT && !options->select.include_count)
        options->select.mixed = mixed_found;
}

void input_warnings_tell(struct input_warnings *warnings, struct cli_progress *progress)
{
    for (int i = 0; i < INPUT_WARNINGS; i++) {
        const char *message = warnings->told[i] ? NULL : atomic_load(&warnings->messages[i]);
        if (!message)
            continue;
        warnings->told[i] = true;
        cli_progress_clear(progress);
        cli_warn(warnings->program, "%s", message);
    }
}

void input_warnings_free(struct input_warnings *warnings)
{
    for (int i = 0; i < INPUT_WARNINGS; i++)
        free(atomic_exchange(&warnings->messages[i], NULL));
}
