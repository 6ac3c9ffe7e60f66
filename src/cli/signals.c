/*
 * signals.c - see signals.h.
 *
 * Caught signals do not interrupt system calls (process_linux.c explains why): a wait ends with a signal only if it
 * goes through os.h. stdio writes to standard output with write(), and if that is a full pipe whose reader has stopped,
 * the write waits for the reader whatever signals come. So standard output is replaced by a stream whose writes go
 * through os_write_stream().
 */
#include "signals.h"

#include <errno.h>
#include <stdio.h>

#include "platform/os.h"
#include "platform/process.h"

static ssize_t stdout_write(void *unused, const char *bytes, size_t count)
{
    (void)unused;
    const int system = os_write_stream(1, bytes, count);
    errno = system;
    return system ? 0 : (ssize_t)count;
}

/* A regular file needs no replacement: its writes do not wait for a reader. Without memory standard output stays as it
 * is. */
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
