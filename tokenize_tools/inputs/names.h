/* names.h - a growing list of names or paths. */
#ifndef TOKMAP_INPUTS_NAMES_H
#define TOKMAP_INPUTS_NAMES_H

#include <stddef.h>

/* Begins as zeros. The names belong to the list. */
struct names {
    char **names;
    size_t count, capacity;
};

void names_clear(struct names *names); /* frees everything */

/* Appends the first bytes of `first` and then `second`, which is terminated. There is room for one more byte after the
 * name. Returns 0 or ENOMEM. */
int names_add(struct names *names, const char *first, size_t first_bytes, const char *second);

/* Sorts the names by their bytes. */
void names_sort(struct names *names);

/* Removes names that are equal to the one before them. */
void names_unique(struct names *names);

#endif
