/* SPDX-License-Identifier: MIT */
/* machine.c - see machine.h. */
#include "machine.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "platform/os.h"

void machine_file(const char *path, char *text, size_t capacity)
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

/* Writes the numbers of the device that holds a path, "8:1", as the kernel's files have them: libc packs both into one.
 * Returns false if there is no such path. */
static bool device_of(const char *path, char *numbers, size_t capacity)
{
    struct os_stat stat;
    if (os_stat(path, &stat))
        return false;
    const uint64_t major = (stat.device >> 8 & 0xfff) | (stat.device >> 32 & 0xfffff000);
    const uint64_t minor = (stat.device & 0xff) | (stat.device >> 12 & 0xffffff00);
    (void)snprintf(numbers, capacity, "%" PRIu64 ":%" PRIu64, major, minor);
    return true;
}

double machine_readahead(const char *path)
{
    static const char *const places[] = {"queue", "../queue"}; /* a partition has that of the whole device */
    char numbers[48], file[128], text[32] = "";
    if (!device_of(path, numbers, sizeof numbers))
        return (double)NAN;
    for (size_t i = 0; i < 2 && !text[0]; i++) {
        (void)snprintf(file, sizeof file, "/sys/dev/block/%s/%s/read_ahead_kb", numbers, places[i]);
        machine_file(file, text, sizeof text);
    }
    return text[0] ? strtod(text, NULL) : (double)NAN;
}

double machine_own_mib(void)
{
    static char text[1 << 13];
    char anonymous[32], shared[32];
    machine_file("/proc/self/status", text, sizeof text);
    field_of(text, "RssAnon", anonymous, sizeof anonymous);
    field_of(text, "RssShmem", shared, sizeof shared);
    return *anonymous ? (strtod(anonymous, NULL) + strtod(shared, NULL)) / 1024 : (double)NAN;
}

/* Finds the type of the file system that holds a path ("ext4") through the mount of its device; "" if that is unknown.
 */
static void file_system_of(const char *path, char *type, size_t capacity)
{
    static char mounts[1 << 16];
    char numbers[48], device[64];
    type[0] = '\0';
    if (!device_of(path, numbers, sizeof numbers))
        return;
    machine_file("/proc/self/mountinfo", mounts, sizeof mounts);
    (void)snprintf(device, sizeof device, " %s ", numbers);
    const char *line = strstr(mounts, device);
    const char *end = line ? line + strcspn(line, "\n") : NULL;
    const char *mark = line ? strstr(line, " - ") : NULL;
    if (mark && mark < end)
        (void)snprintf(type, capacity, "%.*s", (int)strcspn(mark + 3, " \n"), mark + 3);
}

const char *machine_name(const char *folder, char *text, size_t capacity)
{
    static char cpu[1 << 15];
    char model[128], kernel[128], type[64], memory[32];
    machine_file("/proc/cpuinfo", cpu, sizeof cpu);
    field_of(cpu, "model name", model, sizeof model);
    machine_file("/proc/sys/kernel/osrelease", kernel, sizeof kernel);
    kernel[strcspn(kernel, "\n")] = '\0';
    file_system_of(folder, type, sizeof type);
    (void)snprintf(text, capacity, "%s%s%" PRIu32 " processors, %s memory%s%s%s%s", model, model[0] ? ", " : "",
                   os_processors(), cli_bytes(os_memory_limit(), memory), type[0] ? ", " : "", type,
                   kernel[0] ? ", Linux " : "", kernel);
    return text;
}

const char *machine_line(const char *folder, char *text, size_t capacity)
{
    char load[64];
    const size_t used = strlen(machine_name(folder, text, capacity));
    machine_file("/proc/loadavg", load, sizeof load);
    load[strcspn(load, " ")] = '\0';
    (void)snprintf(text + used, capacity - used, "%s%s", load[0] ? ", load average " : "", load);
    return text;
}

/* ---- how busy the machine is ---- */

#define MOMENT_NS 200000000 /* less time has too few ticks */
#define TICKS 100.0         /* per second: the kernel's unit in /proc (USER_HZ), the same on all machines */

/* Reads the user and system time of this process and of its children from /proc/self/stat. After the name in
 * parentheses come a letter and numbers, of which the eleventh to the fourteenth are these times. */
static bool own_seconds(double *seconds)
{
    char text[1024];
    uint64_t numbers[14];
    machine_file("/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    if (!at || !numbers_read(at, numbers, 14))
        return false;
    *seconds = (double)(numbers[10] + numbers[11] + numbers[12] + numbers[13]) / TICKS;
    return true;
}

/* The first line of /proc/stat: times of all processors, as in proc(5). */
enum { STAT_USER, STAT_NICE, STAT_SYSTEM, STAT_IDLE, STAT_IO_WAIT, STAT_IRQ, STAT_SOFT_IRQ, STAT_STEAL, STAT_TIMES };

void machine_times(struct machine_times *times)
{
    static char text[1 << 15];
    uint64_t stat[STAT_TIMES], all = 0;
    machine_file("/proc/loadavg", text, sizeof text);
    *times = (struct machine_times){.load = strtod(text, NULL), .clock_ns = os_clock_ns()};
    machine_file("/proc/stat", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    if (!numbers_read(text, stat, STAT_TIMES) || !own_seconds(&times->own))
        return;
    for (int i = 0; i < STAT_TIMES; i++)
        all += stat[i];
    times->all = (double)all / TICKS;
    times->busy = (double)(stat[STAT_USER] + stat[STAT_NICE] + stat[STAT_SYSTEM]) / TICKS;
    times->steal = (double)stat[STAT_STEAL] / TICKS;
    times->known = true;
}

#define BUSY_PERCENT 10 /* of the processors, from which on others change the figures noticeably */
#define STEAL_PERCENT 2

/* Returns a part of the processors' time as a share of all of it. */
static double share_of(const struct machine_times *from, const struct machine_times *to, double part)
{
    const double all = to->all - from->all;
    if (!from->known || !to->known || to->clock_ns - from->clock_ns < MOMENT_NS || all <= 0)
        return (double)NAN;
    return fmin(1, fmax(0, part / all));
}

double machine_others(const struct machine_times *from, const struct machine_times *to)
{
    return share_of(from, to, to->busy - from->busy - (to->own - from->own));
}

double machine_steal(const struct machine_times *from, const struct machine_times *to)
{
    return share_of(from, to, to->steal - from->steal);
}

void machine_report(struct bench *bench, const struct machine_times *begin)
{
    struct machine_times now;
    char stolen[64] = "";
    machine_times(&now);
    const double others = 100 * machine_others(begin, &now), steal = 100 * machine_steal(begin, &now);
    if (!isfinite(others) || !isfinite(steal))
        return;
    if (bench_json_wanted(bench)) {
        struct report *table = bench->report; /* the table has a line of its own for it */
        bench->report = NULL;
        bench_value(bench, "others_percent", "%", others, (double)NAN);
        bench_value(bench, "steal_percent", "%", steal, (double)NAN);
        bench_value(bench, "load_average", "1", begin->load, (double)NAN);
        bench->report = table;
    }
    if (!bench->options.json) {
        (void)printf("during this run, other programs used %.0f%% of the processors, and a hypervisor took %.0f%%\n",
                     others, steal);
    }
    if (others < BUSY_PERCENT && steal < STEAL_PERCENT)
        return;
    if (steal >= STEAL_PERCENT)
        (void)snprintf(stolen, sizeof stolen, " and its hypervisor took %.0f%%", steal);
    cli_warn(bench->program,
             "other programs used %.0f%% of this machine's processors%s during this run (load average %.2f at its "
             "start); rates are lower and waits longer than on a quiet machine, and ratios suffer less: run it again "
             "when the machine is quiet",
             others, stolen, begin->load);
}
