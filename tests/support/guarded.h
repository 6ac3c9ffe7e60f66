/* guarded.h - memory whose last byte is followed by a page that cannot be touched. */
#ifndef TESTS_SUPPORT_GUARDED_H
#define TESTS_SUPPORT_GUARDED_H

#include <stddef.h>

struct guarded {
    char *at; /* `bytes` of them, zeroed, at whatever alignment the end leaves */
    void *base;
    size_t length;
};

struct guarded guarded_new(size_t bytes);
void guarded_free(struct guarded memory);

#endif
