/* machine.c - see machine.h. */
#include "machine.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "platform/os.h"

/* Reads a small file of the kernel; an unreadable file yields "". */
static void read_text(const char *path, char *text, size_t capacity)
{
    int fd;
    size_t all = 0, got = 0;
    text[0] = '\0';
    if (os_open(path, OS_READ, &fd))
        return;
    while (all + 1 < capacity && !os_read(fd, text + all, capacity - 1 - all, &got) && got)
        all += got;
    text[all] = '\0';
    os_close(fd);
}

/* Copies the rest of the line after "NAME:" and white space; "" if there is no such line. */
static void field_of(const char *text, const char *name, char *value, size_t capacity)
{
    const char *at = strstr(text, name);
    value[0] = '\0';
    if (!at)
        return;
    at += strlen(name);
    at += strspn(at, " \t:");
    (void)snprintf(value, capacity, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Finds the type of the file system that holds a path ("ext4") through the mount of its device; "" if that is unknown.
 */
static void file_system_of(const char *path, char *type, size_t capacity)
{
    static char mounts[1 << 16];
    struct os_stat stat;
    char device[64];
    type[0] = '\0';
    if (os_stat(path, &stat))
        return;
    read_text("/proc/self/mountinfo", mounts, sizeof mounts);
    /* mountinfo has the two device numbers that libc packs into one. */
    const uint64_t major = (stat.device >> 8 & 0xfff) | (stat.device >> 32 & 0xfffff000);
    const uint64_t minor = (stat.device & 0xff) | (stat.device >> 12 & 0xffffff00);
    (void)snprintf(device, sizeof device, " %" PRIu64 ":%" PRIu64 " ", major, minor);
    const char *line = strstr(mounts, device);
    const char *end = line ? line + strcspn(line, "\n") : NULL;
    const char *mark = line ? strstr(line, " - ") : NULL;
    if (mark && mark < end)
        (void)snprintf(type, capacity, "%.*s", (int)strcspn(mark + 3, " \n"), mark + 3);
}

const char *machine_line(const char *folder, char *text, size_t capacity)
{
    static char cpu[1 << 15];
    char model[128], kernel[128], type[64], memory[32];
    read_text("/proc/cpuinfo", cpu, sizeof cpu);
    field_of(cpu, "model name", model, sizeof model);
    read_text("/proc/sys/kernel/osrelease", kernel, sizeof kernel);
    kernel[strcspn(kernel, "\n")] = '\0';
    file_system_of(folder, type, sizeof type);
    (void)snprintf(text, capacity, "%s%s%" PRIu32 " processors, %s memory%s%s%s%s", model, model[0] ? ", " : "",
                   os_processors(), cli_bytes(os_memory_limit(), memory), type[0] ? ", " : "", type,
                   kernel[0] ? ", Linux " : "", kernel);
    return text;
}
