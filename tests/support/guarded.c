/* SPDX-License-Identifier: MIT */
/* guarded.c - see guarded.h. */
#include "guarded.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/os.h"

struct guarded guarded_new(size_t bytes)
{
    size_t page = os_page_bytes(), usable = (bytes + page - 1) / page * page;
    struct guarded memory = {NULL, NULL, usable + page};
    memory.base = mmap(NULL, memory.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory.base == MAP_FAILED || mprotect((char *)memory.base + usable, page, PROT_NONE))
        abort();
    memory.at = (char *)memory.base + usable - bytes;
    return memory;
}

void guarded_free(struct guarded memory)
{
    (void)munmap(memory.base, memory.length);
}

bool memory_is_wiped_on_fork(void)
{
    const size_t bytes = os_page_bytes();
    int status = -1;
    char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    *page = 1;
    if (!madvise(page, bytes, MADV_WIPEONFORK)) {
        const pid_t child = fork();
        if (!child)
            _exit(*(volatile char *)page);
        if (child < 0 || waitpid(child, &status, 0) != child)
            abort();
    }
    (void)munmap(page, bytes);
    return !status;
}
