/* input_warnings.c - see input_warnings.h. */
#include "input_warnings.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/name_kind.h"
#include "platform/os.h"
#include "text/path.h"

/* A glob, ready for the shell, that chooses the files with the ending of this one, or with its name if it has none. */
static char *glob_of(const char *path)
{
    const char *ending = name_ending(path), *name = path_name(path);
    char glob[256];
    const int count = snprintf(glob, sizeof glob, "%s%s", *ending ? "*" : "", *ending ? ending : name);
    return cli_shell_quote(count > 0 && (size_t)count < sizeof glob ? glob : name);
}

/* Keeps a message, if it is the first one: the inputs are listed more than once. */
static void message_keep(_Atomic(char *) *into, char *message)
{
    char *none = NULL;
    if (message && !atomic_compare_exchange_strong(into, &none, message))
        free(message);
}

/* Called by the reader of the inputs, from any thread. A warning that memory is missing for is not worth an error. */
static void mixed_found(void *user, const char *operand, const char *text, const char *records)
{
    static const char form[] = "'%s' has files of records and of text; '%s' is read as text, one document per file: "
                               "leave such files out with --exclude %s, or choose the files with --include %s";
    struct input_warnings *warnings = user;
    char *message = NULL, *texts = glob_of(text), *others = glob_of(records);
    if (texts && others) {
        const size_t room = sizeof form + strlen(operand) + strlen(text) + strlen(texts) + strlen(others);
        message = malloc(room);
        if (message)
            (void)snprintf(message, room, form, operand, text, texts, others);
    }
    free(texts);
    free(others);
    message_keep(&warnings->mixed, message);
}

static void repeated_found(void *user, const char *path)
{
    static const char form[] = "some inputs are named more than once, and are read each time; the first is '%s'";
    struct input_warnings *warnings = user;
    const size_t room = sizeof form + strlen(path);
    char *message = malloc(room);
    if (message)
        (void)snprintf(message, room, form, path);
    message_keep(&warnings->repeated, message);
}

/* Writes a separator as --separator reads it, ready for the shell. */
static char *separator_typed(const char *separator, uint64_t bytes)
{
    char typed[4 * 2 * RECORD_SEPARATOR_MOST + 1];
    size_t at = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)separator[i];
        const char *named = byte ? strchr("\nn\tt\rr\\\\", byte) : NULL;
        if (named) {
            typed[at++] = '\\';
            typed[at++] = named[1];
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
    static const char none[] = "the separator does not occur in '%s', which is one document; check --separator";
    static const char ends[] = "the separator does not occur in '%s', which has %s line ends; it is one document; use "
                               "--separator %s for such files";
    struct input_warnings *warnings = user;
    char *typed = other ? separator_typed(other, other_bytes) : NULL;
    const size_t room = sizeof none + sizeof ends + strlen(path) + (typed ? strlen(typed) : 0) + 8;
    char *message = malloc(room);
    if (message && typed)
        (void)snprintf(message, room, ends, path, memchr(other, '\r', other_bytes) ? "CRLF" : "LF", typed);
    else if (message)
        (void)snprintf(message, room, none, path);
    message_keep(typed ? &warnings->line_ends : &warnings->undivided, message);
    free(typed);
}

static void unversioned_found(void *user, const char *path)
{
    static const char form[] = "%s: the server names no version of this file (an ETag that is not weak, or an older "
                               "Last-Modified): after an interruption the file is read from its beginning again";
    struct input_warnings *warnings = user;
    const size_t room = sizeof form + strlen(path);
    char *message = malloc(room);
    if (message)
        (void)snprintf(message, room, form, path);
    message_keep(&warnings->unversioned, message);
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

static void tell(const struct input_warnings *warnings, const _Atomic(char *) *from, bool *told,
                 struct cli_progress *progress)
{
    const char *message = *told ? NULL : atomic_load(from);
    if (!message)
        return;
    *told = true;
    cli_progress_clear(progress);
    cli_warn(warnings->program, "%s", message);
}

void input_warnings_tell(struct input_warnings *warnings, struct cli_progress *progress)
{
    tell(warnings, &warnings->mixed, &warnings->mixed_told, progress);
    tell(warnings, &warnings->repeated, &warnings->repeated_told, progress);
    tell(warnings, &warnings->undivided, &warnings->undivided_told, progress);
    tell(warnings, &warnings->line_ends, &warnings->line_ends_told, progress);
    tell(warnings, &warnings->unversioned, &warnings->unversioned_told, progress);
}

void input_warnings_free(struct input_warnings *warnings)
{
    free(atomic_exchange(&warnings->mixed, NULL));
    free(atomic_exchange(&warnings->repeated, NULL));
    free(atomic_exchange(&warnings->undivided, NULL));
    free(atomic_exchange(&warnings->line_ends, NULL));
    free(atomic_exchange(&warnings->unversioned, NULL));
}
