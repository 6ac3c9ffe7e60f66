/* SPDX-License-Identifier: MIT */
/* gpu_facts.h: the link and the driver's version from files of the kernel, and what is said where there are none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "harness/gpu_facts.c" /* programs of tests are not linked with the objects of bench */

#define FOLDER "/sys/bus/pci/devices/0001:c7:00.0/"

static bool has_files;
static int coherent;

void machine_file(const char *path, char *text, size_t capacity)
{
    static const char *const files[][2] = {
        {FOLDER "current_link_speed", "32.0 GT/s PCIe\n"},
        {FOLDER "max_link_speed", "64.0 GT/s PCIe\n"},
        {FOLDER "current_link_width", "16\n"},
        {FOLDER "max_link_width", "16\n"},
        {"/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release "
                                        "Build\nGCC version:  gcc version 12.2.0\n"}};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof files / sizeof files[0] && has_files; i++)
        if (!strcmp(path, files[i][0]))
            (void)snprintf(text, capacity, "%s", files[i][1]);
}

static int get_attribute(int *value, int attribute, int device)
{
    assert_int_equal(device, 3);
    switch (attribute) {
    case CUDA_DEVICE_PCI_DOMAIN:
        *value = 1;
        return 0;
    case CUDA_DEVICE_PCI_BUS:
        *value = 0xc7;
        return 0;
    case CUDA_DEVICE_PCI_DEVICE:
        *value = 0;
        return 0;
    case CUDA_DEVICE_PAGEABLE_ACCESS:
    case CUDA_DEVICE_HOST_PAGE_TABLES:
        *value = coherent;
        return 0;
    case CLOCK_KHZ:
        *value = 1980000;
        return has_files ? 0 : CUDA_INVALID_VALUE;
    default:
        return CUDA_INVALID_VALUE;
    }
}

static void read_all(struct gpu_facts *facts, char *line, size_t capacity)
{
    static struct cuda_driver driver;
    driver.version = 13010;
    driver.device_get_attribute = get_attribute;
    struct gpu gpu = {.driver = &driver, .device = {.driver = &driver, .handle = 3}};
    gpu_facts_read(&gpu, facts);
    (void)gpu_facts_line(facts, line, capacity);
}

static void what_the_kernel_knows_is_reported(void **unused)
{
    (void)unused;
    struct gpu_facts facts;
    char line[256];
    has_files = true;
    coherent = 1;
    read_all(&facts, line, sizeof line);
    assert_string_equal(line, "driver 580.65.06, PCIe 5 x16 (of at most 6 x16), memory of the host coherent, at most "
                              "1980 MHz");
    assert_true(fabs(facts.cuda - 13.1) < 1e-9);
}

static void what_nobody_knows_is_left_out(void **unused)
{
    (void)unused;
    struct gpu_facts facts;
    char line[256];
    has_files = false;
    coherent = 0;
    read_all(&facts, line, sizeof line);
    assert_string_equal(line, "link unknown, memory of the host not coherent");
    assert_true(isnan(facts.link_gt_s) && isnan(facts.clock_mhz));
}

static void speeds_are_generations(void **unused)
{
    (void)unused;
    static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(gpu_link_generation(speeds[i]), i + 1);
    assert_int_equal(gpu_link_generation(10), 0);
    assert_int_equal(gpu_link_generation((double)NAN), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_kernel_knows_is_reported),
        cmocka_unit_test(what_nobody_knows_is_left_out),
        cmocka_unit_test(speeds_are_generations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
