/* SPDX-License-Identifier: MIT */
/* split_sets.c - see split_sets.h. */
#include "split_sets.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "format/about_facts.h"
#include "format/foreign/foreign_file.h"
#include "format/shard_file.h"
#include "open_shards.h"
#include "text/path.h"

enum { SPLITS_KEPT = 64, NUMBER_BYTES = 6 }; /* splits; bytes of the -00000 in a shard's name */

struct found {
    struct about_facts sets[SPLITS_KEPT]; /* the first set of each split */
    size_t count;
    bool several;
    char list[256]; /* "web.train, web.val" */
    size_t bytes;
    char last[128]; /* the last name in it */
};

/* Adds the name of a shard's set to the list, such as web.train for web.train-00000.tmx. A few names are enough. */
static void list_add(struct found *found, const char *index_path, const char *set)
{
    char name[sizeof found->last];
    const char *file = path_name(index_path);
    size_t length = strlen(file) - strlen(shard_file_ending(SHARD_INDEX, SHARD_FINAL));
    const size_t digits = NUMBER_BYTES - 1;
    if (length > NUMBER_BYTES && file[length - NUMBER_BYTES] == '-' &&
        strspn(file + length - digits, "0123456789") >= digits)
        length -= NUMBER_BYTES;
    const size_t own = strlen(set);
    const bool says = length > own && strncmp(file + length - own, set, own) == 0 && file[length - own - 1] == '.';
    (void)snprintf(name, sizeof name, "%.*s%s%.60s%s", (int)(length < 60 ? length : 60), file, says ? "" : " (set ",
                   says ? "" : set, says ? "" : ")");
    if (strcmp(name, found->last) == 0 || found->bytes + strlen(name) + 3 > sizeof found->list)
        return;
    memcpy(found->last, name, sizeof name);
    found->bytes += (size_t)snprintf(found->list + found->bytes, sizeof found->list - found->bytes, "%s%s",
                                     found->bytes ? ", " : "", name);
}

static void take(struct found *found, const struct about_facts *facts, const char *path)
{
    if (!facts->set[0])
        return;
    size_t split = 0;
    while (split < found->count && found->sets[split].sets != facts->sets)
        split++;
    if (split < found->count)
        found->several = found->several || strcmp(found->sets[split].set, facts->set) != 0;
    else if (split < SPLITS_KEPT)
        found->sets[found->count++] = *facts;
    list_add(found, path, facts->set);
}

static void take_index(struct found *found, const struct index *index, const char *path)
{
    struct about_facts facts;
    about_facts_read(index, &facts);
    take(found, &facts, path);
}

/* Notes a shard of which the manifest states the set. */
static void take_line(struct found *found, const struct manifest *manifest, const struct manifest_shard *line)
{
    const struct manifest_group *group = &manifest->groups[line->group];
    struct about_facts facts = {.sets = group->sets};
    char *path = group->sets ? manifest_index_path(manifest, line) : NULL;
    memcpy(facts.set, group->set, sizeof facts.set);
    if (path)
        take(found, &facts, path);
    free(path);
}

/* Notes the index beside a file of another project: `tokmap pack --also` has made a shard of it, too. */
static void take_beside(struct found *found, const struct shard *shard)
{
    struct index index;
    char *path = foreign_index_path(shard->store.path);
    if (path && !index_open_as(&index, path, TOKMAP_READ_PREAD, NULL)) {
        take_index(found, &index, path);
        index_close(&index);
    }
    free(path);
}

enum tokmap_status split_sets_check(const struct tokmap_dataset *dataset, enum shard_origin origin, const char *name,
                                    char warning[SPLIT_SETS_WARNING], struct tokmap_error *error)
{
    struct found found = {.count = 0};
    *warning = '\0';
    const struct shard *before = NULL; /* the shards of a set have the same about section, and the same group */
    for (uint64_t i = 0; i < dataset->shard_count && dataset->shard_count > 1; i = shard_next_unlike(dataset, i)) {
        const struct manifest_shard *line = shard_line(dataset, i);
        const struct shard *shard = line ? NULL : shard_held(dataset, i);
        const bool has_index = shard && (shard->index.bytes || shard->index.pages);
        if (line)
            take_line(&found, &dataset->manifest, line);
        else if (shard && !has_index)
            take_beside(&found, shard);
        else if (shard && (!before || shard->index.about.hash != before->index.about.hash))
            take_index(&found, &shard->index, shard->index_path);
        before = shard;
    }
    if (!found.several)
        return TOKMAP_OK;
    if (origin != SHARDS_NAMED)
        return error_set(
            error, TOKMAP_ERROR_MISMATCH, name, TOKMAP_NO_OFFSET,
            "the %s has several sets of one split, %s, so a dataset of it would mix what the split keeps "
            "apart; name one of them, or, to mix them on purpose, name them in a manifest (`tokmap merge`)",
            origin == SHARDS_OF_FOLDER ? "folder" : "pattern", found.list);
    (void)snprintf(warning, SPLIT_SETS_WARNING,
                   "this dataset mixes sets of one split, %s, so whoever trains on it trains on what the split holds "
                   "out",
                   found.list);
    return TOKMAP_OK;
}
