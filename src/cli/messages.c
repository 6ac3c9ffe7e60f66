#include "messages.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

/* Whether the character of `bytes` bytes at `at` is a control character: one of ASCII, U+0080 to U+009F, or a byte that
 * is not UTF-8 and that a terminal of 8-bit characters would take for one of these. */
static bool is_control(const unsigned char *at, size_t bytes, bool valid)
{
    if (!valid)
        return *at < 0xa0;
    return bytes == 1 ? *at < 0x20 || *at == 0x7f : bytes == 2 && at[0] == 0xc2 && at[1] < 0xa0;
}

void cli_clean(char *text, const char *kept)
{
    const char *const end = text + strlen(text);
    char *out = text;
    for (const char *at = text; at < end;) {
        bool valid;
        size_t bytes = utf8_step(at, (size_t)(end - at), &valid);
        if (!valid)
            bytes = 1;
        if (is_control((const unsigned char *)at, bytes, valid) && !strchr(kept, *at)) {
            *out++ = '?';
        } else {
            memmove(out, at, bytes);
            out += bytes;
        }
        at += bytes;
    }
    *out = '\0';
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
    cli_clean(text, "\n\t");
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

void cli_print(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (text)
        cli_clean(text, "\n\t");
    else
        cli_output_lost();
    (void)fputs(text ? text : "(there is no memory for this line)\n", stdout);
    free(text);
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
