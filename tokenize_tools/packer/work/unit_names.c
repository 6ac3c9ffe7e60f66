/* SPDX-License-Identifier: MIT */
/* unit_names.c - see unit_names.h. */
#include "unit_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "set_commit.h"
#include "text/path.h"

#define NAME "unit-"
#define MERGED "shard-"
#define DIGITS 6

char *unit_path(const char *folder, uint64_t unit, const char *ending)
{
    char name[64];
    (void)snprintf(name, sizeof name, NAME "%0*" PRIu64, DIGITS, unit);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

char *unit_shard_path(const char *folder, uint64_t unit, const char *set_ending, uint64_t shard, const char *ending)
{
    char name[SET_ENDING_MOST + 128];
    (void)snprintf(name, sizeof name, NAME "%0*" PRIu64 ".work/" NAME "%0*" PRIu64 "%.*s-%05" PRIu64, DIGITS, unit,
                   DIGITS, unit, SET_ENDING_MOST, set_ending, shard);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

char *merged_path(const char *folder, uint64_t number, const char *ending)
{
    char name[64];
    (void)snprintf(name, sizeof name, MERGED "%0*" PRIu64, DIGITS, number);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

char *merged_shard_path(const char *folder, uint64_t number, const char *ending)
{
    char name[128];
    (void)snprintf(name, sizeof name, MERGED "%0*" PRIu64 ".work/" MERGED "%0*" PRIu64 "-00000", DIGITS, number, DIGITS,
                   number);
    return path_join(folder, strlen(folder), name, strlen(name), ending);
}

bool unit_is_name(const char *entry, bool *is_folder)
{
    static const char *const ends[] = {".work", ".partial", ".skipped"};
    const bool is_merged = !strncmp(entry, MERGED, strlen(MERGED));
    if (!is_merged && strncmp(entry, NAME, strlen(NAME)) != 0)
        return false;
    const char *rest = entry + strlen(is_merged ? MERGED : NAME);
    if (strspn(rest, "0123456789") < DIGITS)
        return false;
    rest += strspn(rest, "0123456789");
    *is_folder = !strcmp(rest, ends[0]);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (!strcmp(rest, ends[i]))
            return true;
    return false;
}
