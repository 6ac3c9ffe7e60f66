/* SPDX-License-Identifier: MIT */
/*
 * known_paths.h - which paths were there before, to notice an input that is named twice.
 *
 * A path is known by 64 bits of XXH3 of its text, that of a file without "./" and repeated slashes, so two of 10^5
 * different paths are taken for one with a chance below 10^-9. Other names of one file (links, an absolute path beside
 * a relative one) are different paths.
 */
#ifndef TOKMAP_CORPUS_KNOWN_PATHS_H
#define TOKMAP_CORPUS_KNOWN_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KNOWN_PATHS_MOST ((size_t)1 << 20) /* paths that are kept: 16 MiB; later ones are only compared with them */

/* Begins as zeros. */
struct known_paths {
    uint64_t *slots; /* 0: empty */
    size_t count, capacity;
};

enum known_paths_result { PATH_NEW, PATH_KNOWN, PATH_MEMORY };
/* exact: every byte of the name counts, as in those of objects and web pages. */
enum known_paths_result known_paths_add(struct known_paths *known, const char *path, bool exact);
void known_paths_free(struct known_paths *known);

#endif
