/* SPDX-License-Identifier: MIT */
#include "drop_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/error.h"

#define READ_BYTES ((uint32_t)16 << 10)

struct drop_list {
    struct stage_merge *merge;
    const struct stage_record *head; /* the last one that was read, if `begun`; NULL: the end */
    struct drop_source source;
    bool begun;
    bool is_found; /* the head, by drop_list_find() */
    bool skips;    /* documents that are not asked about */
};

struct stage_id scan_file_id(const char *folder, uint64_t key, uint64_t unit)
{
    return (struct stage_id){
        .folder = folder, .key = key, .kind = STAGE_SCAN, .number = unit, .sections = SCAN_SECTIONS};
}

enum tokmap_status scan_file_read(struct unit_scan *scan, const struct stage_id *id, struct tokmap_error *error)
{
    return stage_section_read(id, SCAN_TOTALS, scan, sizeof *scan, error);
}

struct stage_id drops_file_id(const char *folder, uint64_t key, uint64_t portion, uint64_t units)
{
    return (struct stage_id){.folder = folder, .key = key, .kind = STAGE_DROPS, .number = portion, .sections = units};
}

enum tokmap_status drop_list_open(struct drop_list **list, const struct drop_source *source, struct tokmap_error *error)
{
    struct drop_list *made = *list = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the list of dropped documents", sizeof *made);
    made->source = *source;
    made->skips = source->continues;
    const struct stage_id scan = scan_file_id(source->folder, source->key, source->unit);
    enum tokmap_status status = stage_merge_new(&made->merge, source->portions + 1, READ_BYTES, error);
    if (!status)
        status = stage_merge_add(made->merge, &scan, SCAN_EXCLUDED, error);
    for (uint64_t i = 0; i < source->portions && !status; i++) {
        const struct stage_id drops = drops_file_id(source->folder, source->key, i, source->units);
        status = stage_merge_add(made->merge, &drops, source->unit, error);
    }
    if (!status)
        return TOKMAP_OK;
    drop_list_free(made);
    *list = NULL;
    return status;
}

void drop_list_free(struct drop_list *list)
{
    if (!list)
        return;
    stage_merge_free(list->merge);
    free(list);
}

enum tokmap_status drop_list_next(struct drop_list *list, const struct stage_record **record,
                                  struct tokmap_error *error)
{
    return stage_merge_next(list->merge, record, error);
}

/* Reads the next record. The one before must be that of a document. */
static enum tokmap_status head_next(struct drop_list *list, struct tokmap_error *error)
{
    if (list->begun && !list->is_found && !list->skips)
        return error_set(error, TOKMAP_ERROR_CORRUPT, list->source.folder, TOKMAP_NO_OFFSET,
                         "the dropped documents of unit %" PRIu64 " are damaged: the unit does not have record %" PRIu64
                         " of input %" PRIu32
                         ", or it is listed twice; remove this folder, and run all tasks again; without tasks, start "
                         "over with --no-resume",
                         list->source.unit, list->head->record, list->head->input);
    list->begun = true;
    list->is_found = false;
    return stage_merge_next(list->merge, &list->head, error);
}

enum tokmap_status drop_list_find(struct drop_list *list, const struct document_place *place, bool *is_dropped,
                                  struct stage_record *record, struct tokmap_error *error)
{
    const struct stage_record wanted = {.record = place->record, .input = place->input};
    enum tokmap_status status = TOKMAP_OK;
    *is_dropped = false;
    while (!status && (!list->begun || (list->head && stage_is_before(list->head, &wanted))))
        status = head_next(list, error);
    list->skips = false;
    if (status || !list->head || stage_is_before(&wanted, list->head))
        return status;
    *is_dropped = list->is_found = true;
    *record = *list->head;
    return TOKMAP_OK;
}

enum tokmap_status drop_list_end(struct drop_list *list, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    while (!status && (!list->begun || list->head))
        status = head_next(list, error);
    return status;
}
