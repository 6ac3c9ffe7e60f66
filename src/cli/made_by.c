/* SPDX-License-Identifier: MIT */
#include "made_by.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/visible.h"
#include "numbers.h"
#include "platform/os.h"

/* Appends bytes, as far as there is room for them and a zero byte. */
static size_t put(char *text, size_t capacity, size_t used, const char *from, size_t count)
{
    const size_t room = capacity - 1 - used, fits = count < room ? count : room;
    memcpy(text + used, from, fits);
    text[used + fits] = '\0';
    return used + fits;
}

const char *cli_command_line(const char *program, int argc, char *const *argv, char *text, size_t capacity)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
    size_t used = put(text, capacity, 0, program, strlen(program));
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        const size_t count = strlen(word);
        const bool plain = count && strspn(word, safe) == count;
        used = put(text, capacity, used, plain ? " " : " '", plain ? 1 : 2);
        for (size_t at = 0, step; at < count; at += step) {
            char shown[4 * VISIBLE_MOST + 1];
            bool is_plain;
            step = visible_step(word + at, count - at, &is_plain);
            if (word[at] == '\'')
                used = put(text, capacity, used, "'\\''", 4);
            else
                used = put(text, capacity, used, shown, visible_copy(shown, sizeof shown, word + at, step, ""));
        }
        used = put(text, capacity, used, "'", plain ? 0 : 1);
    }
    return text;
}

/* Reads the value after "NAME :" in a small file of the kernel, or all of its first line if there is no name; "" if
 * there is none. */
static void field_read(const char *path, const char *name, char *value, size_t capacity)
{
    char text[4096];
    size_t used = 0, got = 0;
    int fd;
    value[0] = '\0';
    if (os_open(path, OS_READ, &fd))
        return;
    while (used + 1 < sizeof text && !os_read(fd, text + used, sizeof text - 1 - used, &got) && got)
        used += got;
    os_close(fd);
    text[used] = '\0';
    const char *at = name ? strstr(text, name) : text;
    if (!at)
        return;
    at += name ? strlen(name) : 0;
    at += strspn(at, name ? " \t:" : "");
    (void)visible_copy(value, capacity, at, strcspn(at, "\n"), "");
}

const char *cli_machine(char *text, size_t capacity)
{
    char model[128], kernel[128], memory[32];
    field_read("/proc/cpuinfo", "model name", model, sizeof model);
    field_read("/proc/sys/kernel/osrelease", NULL, kernel, sizeof kernel);
    (void)snprintf(text, capacity, "%s%s%" PRIu32 " processors, %s memory%s%s", model, model[0] ? ", " : "",
                   os_processors(), cli_bytes(os_memory_limit(), memory), kernel[0] ? ", Linux " : "", kernel);
    return text;
}

const char *cli_date(char text[CLI_DATE])
{
    const time_t now = (time_t)os_wall_seconds();
    struct tm parts;
    if (!gmtime_r(&now, &parts) || !strftime(text, CLI_DATE, "%Y-%m-%dT%H:%M:%SZ", &parts))
        (void)snprintf(text, CLI_DATE, "unknown");
    return text;
}
