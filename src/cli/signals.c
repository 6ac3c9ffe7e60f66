/* signals.c - a command that catches signals, and does not miss one while nobody reads what it prints. */
#include "cli.h"

#include <errno.h>

#include "platform/os.h"
#include "platform/process.h"

static ssize_t put(void *unused, const char *bytes, size_t count)
{
    (void)unused;
    const int system = os_write_stream(1, bytes, count);
    errno = system;
    return system ? 0 : (ssize_t)count;
}

/* A write of stdio's own to a full pipe would wait for its reader, whatever signals come. */
static void stdout_replace(void)
{
    static const cookie_io_functions_t functions = {.write = put};
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
