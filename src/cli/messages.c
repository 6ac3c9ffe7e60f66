#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* A message may quote what a file or a name holds: control characters would reach the terminal. They become '?'. */
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

static void message_print(const char *program, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
static void message_print(const char *program, const char *format, va_list arguments)
{
    char text[4096];
    (void)vsnprintf(text, sizeof text, format, arguments);
    message_clean(text);
    /* What was printed before stands before the message where both go to one place. */
    (void)cli_flush();
    (void)fprintf(stderr, "%s: %s\n", program, text);
}

void cli_say(const char *program, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message_print(program, format, arguments);
    va_end(arguments);
}

int cli_misused(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message_print(command->program, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "Try '%s --help'.\n", command->program);
    return CLI_MISUSED;
}

int cli_failed(const char *program, const struct tokmap_error *error)
{
    char text[sizeof error->path + sizeof error->message + 256];
    cli_say(program, "%s", tokmap_error_print(error, text, sizeof text));
    return CLI_FAILED;
}

int cli_finish(const char *program, int status)
{
    /* The buffer may have been written, and failed, while it filled: its errno is lost, the second try brings it back. */
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
