/* names.c - see names.h. */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void names_clear(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    memset(names, 0, sizeof *names);
}

int names_add(struct names *names, const char *first, size_t first_bytes, const char *second)
{
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity ? 2 * names->capacity : 64;
        char **grown = realloc(names->names, capacity * sizeof *grown);
        if (!grown)
            return ENOMEM;
        names->names = grown;
        names->capacity = capacity;
    }
    const size_t second_bytes = strlen(second);
    char *name = malloc(first_bytes + second_bytes + 2);
    if (!name)
        return ENOMEM;
    if (first_bytes)
        memcpy(name, first, first_bytes);
    memcpy(name + first_bytes, second, second_bytes + 1);
    names->names[names->count++] = name;
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void names_sort(struct names *names)
{
    if (names->count)
        qsort(names->names, names->count, sizeof *names->names, compare);
}

void names_unique(struct names *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (kept && !strcmp(names->names[kept - 1], names->names[i]))
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    }
    names->count = kept;
}
