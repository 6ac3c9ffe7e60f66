/* SPDX-License-Identifier: MIT */
/* guarded.h - memory whose last byte is followed by an inaccessible page, so that reading or writing beyond it ends the
 * test; and whether a child finds memory of its parent wiped. */
#ifndef TESTS_SUPPORT_GUARDED_H
#define TESTS_SUPPORT_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

struct guarded {
    char *at;      /* the usable bytes, zeroed. They end at the page, so they may have any alignment */
    void *base;    /* of the mapping */
    size_t length; /* of the mapping, in bytes */
};

/* Allocates `bytes` bytes. Aborts the program if it cannot. */
struct guarded guarded_new(size_t bytes);
void guarded_free(struct guarded memory);

/* Returns false where MADV_WIPEONFORK succeeds without an effect, as it does under qemu-user. */
bool memory_is_wiped_on_fork(void);

#endif
