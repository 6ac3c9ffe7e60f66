/* SPDX-License-Identifier: MIT */
/* pattern_expand.h - lists the files and folders that a pattern matches; inputs.h describes patterns. */
#ifndef TOKMAP_CORPUS_PATTERN_EXPAND_H
#define TOKMAP_CORPUS_PATTERN_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing list of names or paths. Begins as zeros. The names belong to the list. */
struct names {
    char **names;
    uint64_t count, capacity;
};

void names_clear(struct names *names); /* frees everything */

/* Appends the first bytes of `first` and then `second`, which is terminated. There is room for one more byte after the
 * name. Returns 0 or ENOMEM. */
int names_add(struct names *names, const char *first, size_t first_bytes, const char *second);

/* Sorts the names by their bytes. */
void names_sort(struct names *names);

#define PATTERN_LINKED_MOST 16 /* paths through symbolic links on which two stars may lead to one folder */

struct pattern_matches {
    struct names paths;      /* sorted and distinct */
    struct names unreadable; /* folders in which matches may be missing, because they cannot be listed */
    int system;              /* the errno value of the last one of them */
    uint64_t folders;        /* matches of a pattern with two stars that were removed because they are folders */
};

/* Finds the paths that match. *matches is empty, and belongs to the caller even after a failure. hidden: wildcards
 * match names that begin with a dot. A pattern with a component of two stars matches no folders. stop(user) ends the
 * search; it may be NULL. Returns 0, ENOMEM, EINTR if it was stopped, or ELOOP if two stars lead through symbolic links
 * to a folder on more than PATTERN_LINKED_MOST paths; matches->paths is then one such path. */
int pattern_expand(const char *pattern, bool hidden, bool (*stop)(void *user), void *user,
                   struct pattern_matches *matches);

void pattern_matches_clear(struct pattern_matches *matches);

#endif
