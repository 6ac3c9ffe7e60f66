/* SPDX-License-Identifier: MIT */
#include "work_units.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "corpus/corpus_range.h"
#include "corpus/stream.h"
#include "platform/os.h"
#include "remote/remote_list.h"
#include "remote/remote_url.h"
#include "set_commit.h"
#include "stage_file.h"
#include "text/path.h"
#include "work_folder.h"

static enum tokmap_status unit_add(struct work_units *units, const struct unit *unit, struct tokmap_error *error)
{
    if (units->count == UNITS_MOST)
        return error_set(error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs are more than %" PRIu64 " units of work; choose larger ones with --unit-bytes",
                         UNITS_MOST);
    if (!list_room(&units->list, units->count, &units->capacity, sizeof *units->list))
        return error_set_memory(error, "the list of inputs", 0);
    units->list[units->count++] = *unit;
    return TOKMAP_OK;
}

static enum tokmap_status path_add(struct work_units *units, const char *path, struct tokmap_error *error)
{
    uint64_t capacity = units->file_capacity;
    if (!list_room(&units->paths, units->file_count, &capacity, sizeof *units->paths) ||
        !list_room(&units->cuts, units->file_count, &units->file_capacity, sizeof *units->cuts))
        return error_set_memory(error, "the list of inputs", 0);
    units->cuts[units->file_count] = 0;
    units->paths[units->file_count] = strdup(path);
    return units->paths[units->file_count++] ? TOKMAP_OK : error_set_memory(error, "the list of inputs", 0);
}

static enum tokmap_status indivisible(struct work_units *units, const char *path, const char *why,
                                      struct tokmap_error *error)
{
    if (units->indivisible)
        return TOKMAP_OK;
    units->indivisible = why;
    units->indivisible_path = remote_shown(path);
    return units->indivisible_path ? TOKMAP_OK : error_set_memory(error, "the list of inputs", 0);
}

/* Finds the size of an input. */
static enum tokmap_status size_find(struct work_units *units, const struct inputs *inputs, const char *path,
                                    uint64_t *bytes, struct tokmap_error *error)
{
    struct os_stat found = {.kind = OS_KIND_FILE};
    *bytes = 0;
    if (!strcmp(path, "-"))
        return indivisible(units, path, "standard input can be read by one process only; name files", error);
    if (remote_kind(path)) {
        if (inputs_bytes(inputs) == UINT64_MAX || remote_is_list(path))
            return indivisible(units, path,
                               "its size is not known before it is read; name objects of a bucket by a prefix that "
                               "ends with a slash, or download it",
                               error);
        *bytes = inputs_bytes(inputs);
        return TOKMAP_OK;
    }
    const int system = os_stat(path, &found);
    if (system == ENOENT || system == ENOTDIR) /* opening it reports that, or leaves it out */
        return TOKMAP_OK;
    if (system)
        return error_set_system(error, system, path, TOKMAP_NO_OFFSET, "the input cannot be examined");
    if (found.kind != OS_KIND_FILE)
        return indivisible(units, path, "it is not a regular file, so only one process can read it; name files", error);
    *bytes = found.bytes;
    return TOKMAP_OK;
}

/* Adds the parts of a Parquet file, if there are several. *cut: there are. */
static enum tokmap_status groups_add(struct work_units *units, const struct work_units_options *options, bool *cut,
                                     struct tokmap_error *error)
{
    const uint64_t file = units->file_count - 1;
    struct parquet_cut parts;
    enum tokmap_status status =
        corpus_range_groups(units->paths[file], options->corpus, options->unit_bytes, &parts, error);
    *cut = parts.count != 0;
    units->cuts[file] = parts.count ? parts.hash : 0;
    for (uint64_t i = 0; i < parts.count && !status; i++) {
        const struct parquet_part *part = &parts.parts[i];
        const struct unit unit = {.first = file,
                                  .count = 1,
                                  .begin = part->first,
                                  .end = part->end,
                                  .bytes = part->bytes,
                                  .groups = parts.hash};
        status = unit_add(units, &unit, error);
    }
    parquet_cut_free(&parts);
    return status;
}

/* Adds a file that is larger than a unit. */
static enum tokmap_status large_add(struct work_units *units, const struct work_units_options *options, uint64_t bytes,
                                    struct tokmap_error *error)
{
    enum corpus_cut where;
    const uint64_t file = units->file_count - 1, size = options->unit_bytes;
    enum tokmap_status status = corpus_range_possible(units->paths[file], options->corpus, &where, error);
    bool cut = where == CORPUS_CUT_LINES && !options->whole_lines;
    if (!status && where == CORPUS_CUT_GROUPS && ((status = groups_add(units, options, &cut, error)) || cut))
        return status;
    for (uint64_t at = 0; at < bytes && cut && !status; at += min64(size, bytes - at)) {
        const struct unit unit = {.first = file,
                                  .count = 1,
                                  .begin = at,
                                  .end = at + min64(size, bytes - at),
                                  .bytes = min64(size, bytes - at)};
        status = unit_add(units, &unit, error);
    }
    const struct unit whole = {.first = file, .count = 1, .bytes = bytes};
    return status || cut ? status : unit_add(units, &whole, error);
}

/* Adds the next input; `group` is the unit that is open, with count 0 if there is none. */
static enum tokmap_status file_take(struct work_units *units, const struct work_units_options *options,
                                    const struct inputs *inputs, const char *path, struct unit *group,
                                    struct tokmap_error *error)
{
    uint64_t bytes;
    bool skips = false;
    enum tokmap_status status = options->examine ? options->examine(options->output, path, &skips, error) : TOKMAP_OK;
    if (status || skips)
        return status;
    status = size_find(units, inputs, path, &bytes, error);
    if (!status)
        status = path_add(units, path, error);
    if (status)
        return status;
    units->bytes += bytes;
    if (group->count && (bytes > options->unit_bytes || group->bytes > options->unit_bytes - bytes)) {
        status = unit_add(units, group, error);
        group->count = 0;
    }
    if (status || bytes > options->unit_bytes)
        return status ? status : large_add(units, options, bytes, error);
    if (!group->count)
        *group = (struct unit){.first = units->file_count - 1};
    group->count++;
    group->bytes += bytes;
    return TOKMAP_OK;
}

/* Looks for lists of paths that come from a pipe, which can be read only once, so they are not read here. */
static enum tokmap_status lists_check(struct work_units *units, const struct inputs_selection *select,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < select->list_count && !status; i++) {
        struct os_stat found;
        const char *list = select->lists[i];
        if (!strcmp(list, "-") || (!os_stat(list, &found) && found.kind != OS_KIND_FILE))
            status =
                indivisible(units, stream_name(list),
                            "this list of inputs is not a regular file, so only one process can read it; write it to "
                            "a file",
                            error);
    }
    return status;
}

enum tokmap_status work_units_list(struct work_units *units, const struct work_units_options *options,
                                   struct tokmap_error *error)
{
    struct inputs *inputs;
    struct unit group = {.count = 0};
    const char *path;
    assert(options->unit_bytes);
    *units = (struct work_units){.count = 0};
    enum tokmap_status status = lists_check(units, &options->corpus->select, error);
    if (status || units->indivisible)
        return status;
    status = inputs_new(&inputs, options->operands, options->operand_count, &options->corpus->select, options->stop,
                        options->user, error);
    if (status)
        return status;
    while (!(status = inputs_next(inputs, &path, error))) {
        if (options->stop && options->stop(options->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else
            status = file_take(units, options, inputs, path, &group, error);
        if (status)
            break;
    }
    if (status == TOKMAP_END)
        status = group.count ? unit_add(units, &group, error) : TOKMAP_OK;
    units->not_read = *inputs_counts(inputs);
    inputs_free(inputs);
    return status;
}

void work_units_free(struct work_units *units)
{
    for (uint64_t i = 0; i < units->file_count; i++)
        free(units->paths[i]);
    free(units->paths);
    free(units->cuts);
    free(units->list);
    free(units->indivisible_path);
    *units = (struct work_units){.count = 0};
}

#define FOOTER_MOST ((uint64_t)64 << 20) /* a longer one is not kept */

void work_units_keep_footer(const char *name, const char *path, struct bytes_buffer *footer)
{
    char *folder = work_folder_exists(name) ? path_ended(name, ".work") : NULL;
    const struct stage_id id = {.folder = folder,
                                .key = hash64(TOKMAP_VERSION_STRING, strlen(TOKMAP_VERSION_STRING)),
                                .kind = STAGE_TAIL,
                                .number = hash64(path, strlen(path)) >> 8,
                                .sections = 1};
    if (folder && footer->count && footer->count <= FOOTER_MOST)
        (void)stage_write(&id, footer->bytes, footer->count, false, NULL);
    else if (folder && !footer->count && stage_section_load(footer, &id, 0, FOOTER_MOST, NULL))
        footer->count = 0;
    free(folder);
}

enum tokmap_status work_units_range(const struct work_units *units, uint64_t number, bool (*stop)(void *user),
                                    void *user, struct corpus_range *range, struct tokmap_error *error)
{
    const struct unit *unit = &units->list[number];
    assert(number < units->count);
    const char *path = units->paths[unit->first];
    *range = (struct corpus_range){unit->begin, unit->end, unit->groups};
    if (!unit->end || unit->groups)
        return TOKMAP_OK;
    const enum tokmap_status status = corpus_range_border(path, unit->begin, stop, user, &range->begin, error);
    return status ? status : corpus_range_border(path, unit->end, stop, user, &range->end, error);
}

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
