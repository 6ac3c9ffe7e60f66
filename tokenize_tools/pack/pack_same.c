/* SPDX-License-Identifier: MIT */
/* pack_same.c - see pack_same.h. */
#include "pack_same.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "encode/document_encode.h"
#include "format/index_documents.h"
#include "format/shard_ranges.h"
#include "pack_finish.h"
#include "pack_output.h"
#include "platform/os.h"
#include "remote/remote_url.h"
#include "text/path.h"
#include "work/set_commit.h"

/* An input. `found` is set if a shard has a document of it. */
struct input {
    char *shown; /* its name, as shards have it */
    bool found;
};

struct inputs_found {
    struct input *list; /* sorted by name */
    size_t count;
};

struct name {
    const char *bytes;
    size_t count;
};

static int input_compare(const void *a, const void *b)
{
    return strcmp(((const struct input *)a)->shown, ((const struct input *)b)->shown);
}

static int name_compare(const void *key, const void *element)
{
    const struct name *name = key;
    const char *shown = ((const struct input *)element)->shown;
    const int order = strncmp(name->bytes, shown, name->count);
    return order ? order : -(shown[name->count] != '\0');
}

/* Takes the names of the inputs, none of which may have changed since the output got its name. */
static bool inputs_take(struct inputs_found *found, const struct work_units *units, uint64_t named_ns)
{
    struct os_stat stat;
    found->list = calloc((size_t)units->file_count + 1, sizeof *found->list);
    bool good = found->list != NULL;
    for (; found->count < units->file_count && good; found->count++) {
        const char *path = units->paths[found->count];
        char *shown = remote_shown(path);
        good = shown && (remote_kind(path) || (!os_stat(path, &stat) && stat.modified_ns <= named_ns &&
                                               stat.changed_ns <= named_ns)); /* an older file may replace it */
        found->list[found->count].shown = shown;
    }
    if (!good)
        return false;
    qsort(found->list, found->count, sizeof *found->list, input_compare);
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++) /* an input may be named twice */
        if (kept && !strcmp(found->list[kept - 1].shown, found->list[i].shown))
            free(found->list[i].shown);
        else
            found->list[kept++] = found->list[i];
    found->count = kept;
    return true;
}

/* Notes the inputs of a shard. Returns false if one is not among them. */
static bool origins_note(struct inputs_found *found, const struct index *index)
{
    struct origin_layout layout;
    const uint8_t *section = index->bytes + index->origin.offset;
    if (!index->origin.offset || !origin_layout_of(index, &layout))
        return false;
    for (uint64_t i = 0, begin = 0; i < layout.files; i++) {
        const uint64_t end = load64(section + layout.files_at + 8 * i);
        if (begin > end || end > layout.path_bytes)
            return false;
        const struct name name = {(const char *)section + layout.paths_at + begin, (size_t)(end - begin)};
        struct input *input = bsearch(&name, found->list, found->count, sizeof *found->list, name_compare);
        if (!input)
            return false;
        input->found = true;
        begin = end;
    }
    return true;
}

/* Returns true if a shard of set `set` was made with these options: its about section is that of such a shard, up to
 * the totals, which are its last member. */
static bool about_is_same(const struct pack_options *options, uint32_t set, const struct index *index)
{
    static const struct pack_result no_result;
    static const struct shard_totals no_totals;
    const char *there;
    uint64_t there_bytes, bytes;
    char *own = pack_output_about(options, &no_result, set, &no_totals, &bytes);
    const char *totals = own;
    for (const char *next = own; next && (next = strstr(next, "\"totals\""));)
        totals = next++;
    const size_t same = own ? (size_t)(totals - own) : 0;
    const bool good = same && !index_about(index, &there, &there_bytes, NULL) && there_bytes > same &&
                      !memcmp(there, own, same) && (options->seal != NULL) == (index->sealed_bytes != 0);
    free(own);
    return good;
}

/* Returns true if a file exists, and its size. Frees the path. */
static bool exists(char *path, uint64_t *bytes)
{
    struct os_stat found = {0};
    const bool there = path && !os_stat(path, &found);
    *bytes = found.bytes;
    free(path);
    return there;
}

/* Returns true if the tokens and the mask of a shard are there, whole. */
static bool tokens_are_there(const char *path, const struct index *index)
{
    uint64_t bytes;
    for (enum shard_file file = 0; file < SHARD_FILES; file++)
        if (shard_has_file(index, file) &&
            !(exists(shard_file_beside(path, file, SHARD_FINAL), &bytes) && bytes == shard_file_size(index, file)))
            return false;
    return true;
}

/* Returns true if the first shard of a set has the files of other projects. */
static bool also_is_there(const struct pack_options *options, const char *name)
{
    const struct pack_also *also = options->also;
    size_t there = 0;
    uint64_t bytes;
    for (size_t i = 0; also && i < also->ending_count; i++) {
        char *shard = path_ended(name, "-00000");
        there += shard && exists(path_ended(shard, also->endings[i]), &bytes);
        free(shard);
    }
    return !also || there == also->ending_count - (document_is_masked(&options->corpus) ? 0 : also->mask_endings);
}

static bool set_is_same(const struct pack_options *options, uint32_t set, const char *name, struct inputs_found *found)
{
    uint64_t shards;
    bool good = !set_shards_count(name, &shards, NULL);
    for (uint64_t i = 0; good && i < shards; i++) {
        struct index index;
        char *path = shard_file_numbered(name, i, SHARD_INDEX, SHARD_FINAL);
        good = path && !index_open(&index, path, NULL);
        if (good) {
            good = (i || about_is_same(options, set, &index)) && origins_note(found, &index) &&
                   tokens_are_there(path, &index);
            index_close(&index);
        }
        free(path);
    }
    return good && also_is_there(options, name);
}

bool pack_output_is_same(const struct pack_options *options, const struct work_units *units)
{
    struct inputs_found found = {.count = 0};
    struct os_stat manifest;
    bool good = true;
    for (uint32_t set = 0; set < pack_output_sets(options) && good; set++) {
        char *name = pack_set_name(options, set);
        good = name && !os_lstat(name, &manifest) && manifest.kind == OS_KIND_FILE &&
               (set || inputs_take(&found, units, manifest.modified_ns)) && set_is_same(options, set, name, &found);
        free(name);
    }
    for (size_t i = 0; i < found.count; i++) {
        good = good && found.list[i].found;
        free(found.list[i].shown);
    }
    free(found.list);
    return good;
}
