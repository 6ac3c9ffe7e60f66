/* SPDX-License-Identifier: MIT */
/*
 * count_instructions.c - a plugin of qemu-user that counts the instructions of a program and writes their number to a
 * file. aarch64_count.sh builds it for this machine and loads it: qemu-aarch64 -plugin ./count.so,into=COUNT PROGRAM
 *
 * Debian has no package with qemu's header for plugins, so the few declarations are repeated here, from qemu's
 * documentation (https://www.qemu.org/docs/master/devel/tcg-plugins.html). They have been the same since qemu 4.2. A
 * plugin names the version of the interface for which it was made, which is COUNT_API here, and every qemu loads only
 * some versions.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb; /* a block of instructions that qemu translates at once */

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin,
                                                  void (*translated)(uint64_t plugin, struct qemu_plugin_tb *block));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                                 void (*executed)(unsigned cpu, void *user), int flags, void *user);
extern void qemu_plugin_register_atexit_cb(uint64_t plugin, void (*ended)(uint64_t plugin, void *user), void *user);

/* What qemu looks for. */
extern int qemu_plugin_version;
int qemu_plugin_install(uint64_t plugin, const void *about, int argc, char **argv);

int qemu_plugin_version = COUNT_API;

static uint64_t instructions; /* atomic: a thread of the program is a thread of qemu */
static char path[4096];

static void block_executed(unsigned cpu, void *user)
{
    (void)cpu;
    (void)__atomic_fetch_add(&instructions, (uint64_t)(uintptr_t)user, __ATOMIC_RELAXED);
}

static void block_translated(uint64_t plugin, struct qemu_plugin_tb *block)
{
    (void)plugin;
    qemu_plugin_register_vcpu_tb_exec_cb(block, block_executed, 0, (void *)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void program_ended(uint64_t plugin, void *user)
{
    (void)plugin;
    (void)user;
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%" PRIu64 "\n", instructions) < 0 || fclose(file))
        abort();
}

int qemu_plugin_install(uint64_t plugin, const void *about, int argc, char **argv)
{
    (void)about;
    if (argc != 1 || strncmp(argv[0], "into=", 5) || strlen(argv[0] + 5) >= sizeof path)
        return 1;
    (void)snprintf(path, sizeof path, "%s", argv[0] + 5);
    qemu_plugin_register_vcpu_tb_trans_cb(plugin, block_translated);
    qemu_plugin_register_atexit_cb(plugin, program_ended, NULL);
    return 0;
}
