#include "messages.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A message may quote a file or a name, whose control characters could change the state of the terminal. They become
 * '?'. */
static void message_clean(char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t') || *text == 0x7f)
            *text = '?';
}

static int flush_failed; /* errno of the first cli_flush() that failed */

bool cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0)
        return ferror(stdout) == 0;
    flush_failed = flush_failed ? flush_failed : errno;
    return false;
}

void cli_say_list(const char *program, const char *format, va_list arguments)
{
    char text[4096];
    assert(program && format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    message_clean(text);
    (void)cli_flush();
    (void)fprintf(stderr, "%s: %s\n", program, text);
}

void cli_say(const char *program, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cli_say_list(program, format, arguments);
    va_end(arguments);
}

void cli_warn(const char *program, const char *format, ...)
{
    char label[256];
    va_list arguments;
    (void)snprintf(label, sizeof label, "%s: warning", program);
    va_start(arguments, format);
    cli_say_list(label, format, arguments);
    va_end(arguments);
}

int cli_failed(const char *program, const struct tokmap_error *error)
{
    char text[sizeof error->path + sizeof error->message + 256];
    cli_say(program, "%s", tokmap_error_print(error, text, sizeof text));
    return CLI_FAILED;
}

int cli_finish(const char *program, int status)
{
    /* stdio may have written its buffer, and failed, when the buffer was full. The errno of that write is lost, but the
     * flush repeats the write and fails with the same errno. */
    const bool failed_before = ferror(stdout) != 0;
    if (cli_flush() && !failed_before)
        return status;
    const int system = flush_failed;
    if (system)
        cli_say(program, "standard output could not be written: %s", strerror(system));
    else
        cli_say(program, "standard output could not be written");
    return status == CLI_DONE ? CLI_FAILED : status;
}
