/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/visible.h"
#include "platform/os.h"
#include "platform/process.h"

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

/* ---- text that comes in parts ---- */

static void held_escape(struct visible *visible)
{
    char form[VISIBLE_MOST + 1];
    for (unsigned i = 0; i < visible->held_count; i++)
        (void)fwrite(form, 1, visible_form(form, visible->held[i]), visible->file);
    visible->held_count = 0;
    visible->wanted = 0;
}

static void ascii_write(struct visible *visible, unsigned char byte)
{
    char form[VISIBLE_MOST + 1];
    if ((byte >= 0x20 && byte < 0x7f) || (!visible->line && (byte == '\n' || byte == '\t')))
        (void)fputc(byte, visible->file);
    else
        (void)fwrite(form, 1, visible_form(form, byte), visible->file);
}

void visible_write(struct visible *visible, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (visible->wanted && (byte & 0xc0) != 0x80)
            held_escape(visible);
        if (byte < 0x80) {
            ascii_write(visible, byte);
            continue;
        }
        if (!visible->wanted)
            visible->wanted = byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
        /* Not a first byte: a continuation byte, or the 0xc0 and 0xc1 of overlong forms. */
        if (!visible->held_count && byte < 0xc2)
            visible->wanted = 0;
        visible->held[visible->held_count++] = byte;
        bool plain = false;
        if (!visible->wanted) {
            held_escape(visible);
        } else if (visible->held_count == visible->wanted) {
            if (visible_step((const char *)visible->held, visible->held_count, &plain) != visible->held_count || !plain)
                held_escape(visible);
            else
                (void)fwrite(visible->held, 1, visible->held_count, visible->file);
            visible->held_count = 0;
            visible->wanted = 0;
        }
    }
}

void visible_end(struct visible *visible)
{
    held_escape(visible);
}

void visible_name(FILE *file, const char *name, size_t bytes)
{
    struct visible visible = {.file = file, .line = true};
    visible_write(&visible, name, bytes);
    visible_end(&visible);
}

/* ---- words for a command line ---- */

static char *word_append(char *to, const char *text)
{
    const size_t count = strlen(text);
    memcpy(to, text, count);
    return to + count;
}

char *cli_shell_quote(const char *path)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
    const size_t count = strlen(path);
    const bool plain = count && strspn(path, safe) == count;
    if (!visible_all(path, count))
        return NULL;
    char *text = malloc(4 * count + 5); /* a quote becomes '\'' */
    if (!text) {
        cli_output_lost();
        return NULL;
    }
    char *to = text;
    if (!plain)
        *to++ = '\'';
    if (path[0] == '-')
        to = word_append(to, "./");
    for (size_t i = 0; i < count; i++) {
        if (path[i] == '\'')
            to = word_append(to, "'\\''");
        else
            *to++ = path[i];
    }
    if (!plain)
        *to++ = '\'';
    *to = '\0';
    return text;
}

/* ---- signals ---- */

/* Caught signals do not interrupt system calls (process_linux.c explains why): a wait ends with a signal only if it
 * goes through os.h. stdio writes to standard output with write(), and if that is a full pipe whose reader has stopped,
 * the write waits for the reader whatever signals come. So standard output is replaced by a stream whose writes go
 * through os_write_stream(). */
static ssize_t stdout_write(void *unused, const char *bytes, size_t count)
{
    (void)unused;
    const int system = os_write_stream(1, bytes, count);
    errno = system;
    return system ? 0 : (ssize_t)count;
}

/* Replaces standard output, unless it is a regular file, which needs no replacement: its writes do not wait for a
 * reader. Without memory standard output stays as it is. */
static void stdout_replace(void)
{
    static const cookie_io_functions_t functions = {.write = stdout_write};
    struct os_stat found;
    if (os_fstat(1, &found) || found.kind == OS_KIND_FILE)
        return;
    (void)fflush(stdout);
    FILE *made = fopencookie(NULL, "w", functions);
    if (!made)
        return;
    (void)setvbuf(made, NULL, os_is_terminal(1) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = made;
}

void cli_signals_catch(void)
{
    os_signals_catch();
    stdout_replace();
}

void cli_signals_end(const char *program, const char *message)
{
    if (!os_signals_release())
        return;
    (void)fflush(stdout);
    if (message)
        cli_say(program, "%s", message);
    os_signal_die(os_signal_caught());
}
