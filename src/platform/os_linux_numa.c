/* SPDX-License-Identifier: MIT */
/* os_linux_numa.c - os.h for Linux: which processors and which memory are near a device. Two small files of the kernel
 * and two system calls are enough, so libnuma is not needed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLICY_PREFERRED 1 /* MPOL_PREFERRED of mbind(2) */
#define NODES_MOST 1024    /* the kernel's own limit */

/* Reads the start of a small text file; "" if it cannot be read. */
static void text_in(const char *path, char *text, size_t capacity)
{
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        do
            got = read(fd, text, capacity - 1);
        while (got < 0 && errno == EINTR);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
}

int os_pci_node(unsigned domain, unsigned bus, unsigned device)
{
    char path[96], text[32], *end;
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", domain, bus, device);
    text_in(path, text, sizeof text);
    long node = strtol(text, &end, 10);
    return end == text || node < 0 || node >= NODES_MOST ? -1 : (int)node;
}

void os_memory_prefer_node(void *address, uint64_t bytes, int node)
{
    enum { WORD = 8 * sizeof(unsigned long) };
    unsigned long nodes[NODES_MOST / WORD + 1] = {0};
    if (node < 0 || node >= NODES_MOST)
        return;
    nodes[(unsigned)node / WORD] = 1ul << ((unsigned)node % WORD);
    (void)syscall(SYS_mbind, address, (unsigned long)bytes, POLICY_PREFERRED, nodes, (unsigned long)NODES_MOST, 0);
}

/* Reads a list such as "0-3,8,10-11" and stores those processors that are also in `allowed`. Returns their number. */
static int processors_in(const char *list, const cpu_set_t *allowed, cpu_set_t *found)
{
    CPU_ZERO(found);
    for (char *end; *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, allowed))
                CPU_SET(i, found);
    }
    return CPU_COUNT(found);
}

void os_thread_prefer_node(int node)
{
    char path[64], list[4096];
    cpu_set_t allowed, near;
    if (node < 0)
        return;
    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    text_in(path, list, sizeof list);
    if (sched_getaffinity(0, sizeof allowed, &allowed) || !processors_in(list, &allowed, &near))
        return;
    (void)sched_setaffinity(0, sizeof near, &near);
}
