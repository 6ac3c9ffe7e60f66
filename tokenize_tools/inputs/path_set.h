/* SPDX-License-Identifier: MIT */
/*
 * path_set.h - which paths were there before, to notice an input that is named twice.
 *
 * A path is known by 64 bits of XXH3 of its text, that of a file without "./" and repeated slashes, so two of 10^5
 * different paths are taken for one with a chance below 10^-9. Other names of one file (links, an absolute path beside
 * a relative one) are different paths.
 */
#ifndef TOKMAP_INPUTS_PATH_SET_H
#define TOKMAP_INPUTS_PATH_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_SET_MOST ((size_t)1 << 20) /* paths that are kept: 16 MiB; later ones are only compared with them */

/* Begins as zeros. */
struct path_set {
    uint64_t *slots; /* 0: empty */
    size_t count, capacity;
};

enum path_set_result { PATH_NEW, PATH_KNOWN, PATH_MEMORY };
/* exact: every byte of the name counts, as in those of objects and web pages. */
enum path_set_result path_set_add(struct path_set *set, const char *path, bool exact);
void path_set_free(struct path_set *set);

#endif
