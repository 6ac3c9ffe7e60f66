/* SPDX-License-Identifier: MIT */
#include "shard_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/path.h"

#define NUMBER_BYTES 24 /* of "-00000", also with more digits, and a zero byte */

#define PARTIAL ".partial"
#define READY ".ready"
#define STATES(ending)                                                                                                 \
    {                                                                                                                  \
        ending, ending PARTIAL, ending READY, ending READY PARTIAL                                                     \
    }

static const char *const endings[SHARD_FILE_KINDS][SHARD_NAMED_STATES] = {[SHARD_MASK] = STATES(".mask"),
                                                                          [SHARD_TOKENS] = STATES(".bin"),
                                                                          [SHARD_SEALED] = STATES(".bin.zst"),
                                                                          [SHARD_INDEX] = STATES(".tmx"),
                                                                          [SHARD_DROPPED] = STATES(".dropped")};

const char *shard_file_ending(enum shard_file file, enum shard_state state)
{
    assert(state < SHARD_NAMED_STATES);
    assert(file < SHARD_FILE_KINDS);
    return endings[file][state];
}

char *shard_file_path(const char *prefix, enum shard_file file, enum shard_state state)
{
    return path_ended(prefix, shard_file_ending(file, state));
}

char *shard_file_numbered(const char *prefix, uint64_t number, enum shard_file file, enum shard_state state)
{
    char ending[NUMBER_BYTES + sizeof ".dropped.ready.partial"];
    (void)snprintf(ending, sizeof ending, "-%05" PRIu64 "%s", number, shard_file_ending(file, state));
    return path_ended(prefix, ending);
}

char *shard_file_beside(const char *path, enum shard_file file, enum shard_state state)
{
    struct shard_name found;
    const size_t bytes = strlen(path);
    const bool is = shard_file_find(path, bytes, &found) && found.state == SHARD_FINAL;
    return path_join("", 0, path, is ? found.stem : bytes, shard_file_ending(file, state));
}

char *shard_file_replaced(const char *path, uint64_t id)
{
    char ending[SHARD_ID_DIGITS + 2];
    (void)snprintf(ending, sizeof ending, ".%016" PRIx64, id);
    return path_ended(path, ending);
}

/* Returns true if a name of `bytes` bytes has an ending, and something before it. */
bool shard_file_is(const char *name, enum shard_file file)
{
    return path_ends_in(name, strlen(name), endings[file][SHARD_FINAL]);
}

bool shard_file_waits(const char *name)
{
    return path_ends_in(name, strlen(name), READY) || path_ends_in(name, strlen(name), READY PARTIAL);
}

bool shard_file_is_main(const char *name)
{
    return shard_file_is(name, SHARD_INDEX) || shard_file_is(name, SHARD_TOKENS) || shard_file_is(name, SHARD_SEALED);
}

/* Finds a name that ends in ".", digits, and nothing else as that of a replaced file. */
static bool replaced_find(const char *name, size_t bytes, struct shard_name *found)
{
    const char *id = name + bytes - (bytes > SHARD_ID_DIGITS ? SHARD_ID_DIGITS : 0);
    if (id == name || id[-1] != '.' || strspn(id, "0123456789abcdef") < SHARD_ID_DIGITS)
        return false;
    if (!shard_file_find(name, (size_t)(id - 1 - name), found) || found->state != SHARD_FINAL)
        return false;
    found->state = SHARD_REPLACED;
    found->id = strtoull(id, NULL, 16);
    return true;
}

bool shard_file_find(const char *name, size_t bytes, struct shard_name *found)
{
    for (int file = 0; file < SHARD_FILE_KINDS; file++)
        for (int state = 0; state < SHARD_NAMED_STATES; state++)
            if (path_ends_in(name, bytes, endings[file][state])) {
                *found = (struct shard_name){(enum shard_file)file, (enum shard_state)state,
                                             bytes - strlen(endings[file][state]), 0};
                return true;
            }
    return replaced_find(name, bytes, found);
}

char *shard_file_index(const char *folder, size_t folder_bytes, const char *name, size_t name_bytes)
{
    struct shard_name found;
    const bool is = shard_file_find(name, name_bytes, &found) && found.state == SHARD_FINAL &&
                    found.file != SHARD_MASK && found.file != SHARD_DROPPED;
    return path_join(folder, folder_bytes, name, is ? found.stem : name_bytes,
                     shard_file_ending(SHARD_INDEX, SHARD_FINAL));
}

bool shard_manifest_begins(const char *head, size_t bytes)
{
    static const char *const heads[] = {"tokmap-shards ", "# tokmap manifest "};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (bytes >= strlen(heads[i]) && !memcmp(head, heads[i], strlen(heads[i])))
            return true;
    return false;
}
