/* SPDX-License-Identifier: MIT */
/*
 * gpu_facts.c - see gpu_facts.h.
 *
 * The driver's functions do not report the link and the driver's own version; the kernel does, in /sys and /proc. The
 * clock of this moment is known to NVML only, which is a library of its own; the case `gpu` times a kernel instead.
 */
#include "gpu_facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "tokmap/cuda.h"

#define CLOCK_KHZ 13 /* an attribute of devices */

/* Returns the number at the beginning of a file about the GPU's link; NAN if there is no file or no number. */
static double link_number(const char *folder, const char *name)
{
    char path[192], text[64], *end;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    machine_file(path, text, sizeof text);
    const double number = strtod(text, &end);
    return end > text && number > 0 ? number : (double)NAN;
}

static void read_link(const struct gpu *gpu, struct gpu_facts *facts)
{
    const struct cuda_driver *driver = gpu->driver;
    int domain, bus, slot;
    char folder[128];
    facts->link_gt_s = facts->link_gt_s_most = facts->link_lanes = facts->link_lanes_most = (double)NAN;
    if (driver->device_get_attribute(&domain, CUDA_DEVICE_PCI_DOMAIN, gpu->device.handle) ||
        driver->device_get_attribute(&bus, CUDA_DEVICE_PCI_BUS, gpu->device.handle) ||
        driver->device_get_attribute(&slot, CUDA_DEVICE_PCI_DEVICE, gpu->device.handle))
        return;
    (void)snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%04x:%02x:%02x.0", (unsigned)domain, (unsigned)bus,
                   (unsigned)slot);
    facts->link_gt_s = link_number(folder, "current_link_speed");
    facts->link_gt_s_most = link_number(folder, "max_link_speed");
    facts->link_lanes = link_number(folder, "current_link_width");
    facts->link_lanes_most = link_number(folder, "max_link_width");
}

/* Reads the version of the driver. The file has a line such as "NVRM version: NVIDIA UNIX x86_64 Kernel Module
 * 580.65.06  Sun Jul 27 ...". The version is the first word that begins with a digit and contains a period. */
static void read_kernel_driver(char *version, size_t capacity)
{
    char text[512];
    version[0] = '\0';
    machine_file("/proc/driver/nvidia/version", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    for (char *rest = NULL, *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.')) {
            (void)snprintf(version, capacity, "%s", word);
            return;
        }
}

void gpu_facts_read(struct gpu *gpu, struct gpu_facts *facts)
{
    struct tokmap_cuda_device_info info = TOKMAP_CUDA_DEVICE_INFO_INIT;
    struct tokmap_error error = {0};
    int khz = 0;
    memset(facts, 0, sizeof *facts);
    facts->capability = facts->clock_mhz = (double)NAN;
    if (!tokmap_cuda_device(gpu->device.ordinal, &info, &error)) {
        (void)snprintf(facts->name, sizeof facts->name, "%s", info.name);
        facts->capability = info.capability_major + info.capability_minor / 10.0;
    }
    facts->cuda = gpu->driver->version / 1000 + gpu->driver->version % 1000 / 100.0;
    facts->coherent = cuda_device_reads_host(&gpu->device);
    if (!gpu->driver->device_get_attribute(&khz, CLOCK_KHZ, gpu->device.handle) && khz > 0)
        facts->clock_mhz = khz / 1000.0;
    read_link(gpu, facts);
    read_kernel_driver(facts->kernel_driver, sizeof facts->kernel_driver);
}

unsigned gpu_link_generation(double gt_s)
{
    static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
    for (unsigned i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (fabs(gt_s - speeds[i]) < 0.01)
            return i + 1;
    return 0;
}

const char *gpu_facts_line(const struct gpu_facts *facts, char *text, size_t capacity)
{
    char link[128] = "link unknown", driver[96] = "", clock[64] = "";
    if (isfinite(facts->link_gt_s) && isfinite(facts->link_lanes))
        (void)snprintf(link, sizeof link, "PCIe %u x%.0f (of at most %u x%.0f)", gpu_link_generation(facts->link_gt_s),
                       facts->link_lanes, gpu_link_generation(facts->link_gt_s_most), facts->link_lanes_most);
    if (facts->kernel_driver[0])
        (void)snprintf(driver, sizeof driver, "driver %s, ", facts->kernel_driver);
    if (isfinite(facts->clock_mhz))
        (void)snprintf(clock, sizeof clock, ", at most %.0f MHz", facts->clock_mhz);
    (void)snprintf(text, capacity, "%s%s, memory of the host %s%s", driver, link,
                   facts->coherent ? "coherent" : "not coherent", clock);
    return text;
}
