#include "messages.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/visible.h"

static int flush_failed; /* errno of the first cli_flush() that failed */

bool cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0)
        return ferror(stdout) == 0;
    flush_failed = flush_failed ? flush_failed : errno;
    return false;
}

static size_t newlines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Formats a text whose arguments may come from anyone. The newlines of the format stay. If an argument has more of
 * them, only those at the start and at the end of the format stay, because it is unknown which the others are. Returns
 * memory that the caller frees, or NULL. */
__attribute__((format(printf, 1, 0))) static char *visible_format(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        return NULL;
    const size_t own = newlines(format), length = strlen(text);
    const bool forged = newlines(text) != own;
    const size_t begin = forged ? strspn(format, "\n") : 0, all = strlen(format);
    const size_t end = forged && begin < all && format[all - 1] == '\n';
    char *made = malloc(length * VISIBLE_MOST + 1);
    if (made) {
        memcpy(made, text, begin);
        const size_t bytes = visible_copy(made + begin, length * VISIBLE_MOST + 1 - begin, text + begin,
                                          length - begin - end, forged ? "\t" : "\n\t");
        if (end)
            memcpy(made + begin + bytes, "\n", 2);
    }
    free(text);
    return made;
}

__attribute__((format(printf, 2, 0))) static void print_list(FILE *file, const char *format, va_list arguments)
{
    char *text = visible_format(format, arguments);
    if (!text)
        cli_output_lost();
    (void)fputs(text ? text : "(there is no memory for this line)\n", file);
    free(text);
}

void cli_say_list(const char *program, const char *format, va_list arguments)
{
    char short_text[1024], shown[sizeof short_text * VISIBLE_MOST];
    va_list again;
    assert(program && format);
    va_copy(again, arguments);
    char *text = visible_format(format, arguments);
    if (!text) { /* the message may be that there is no memory */
        (void)vsnprintf(short_text, sizeof short_text, format, again);
        (void)visible_copy(shown, sizeof shown, short_text, strlen(short_text), "\t");
    }
    va_end(again);
    (void)cli_flush();
    (void)fprintf(stderr, "%s: %s\n", program, text ? text : shown);
    free(text);
}

void cli_say(const char *program, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cli_say_list(program, format, arguments);
    va_end(arguments);
}

void cli_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(stdout, format, arguments);
    va_end(arguments);
}

void cli_print_to(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_list(file, format, arguments);
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

static uint32_t output_lost; /* accessed atomically */

void cli_output_lost(void)
{
    __atomic_store_n(&output_lost, 1, __ATOMIC_RELAXED);
}

int cli_finish(const char *program, int status)
{
    if (__atomic_load_n(&output_lost, __ATOMIC_RELAXED)) {
        cli_say(program, "there is no memory for a part of the output, which is therefore incomplete; free memory and "
                         "run the command again");
        status = status == CLI_DONE ? CLI_FAILED : status;
    }
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
