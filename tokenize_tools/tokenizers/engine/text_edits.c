/* SPDX-License-Identifier: MIT */
/* text_edits.c - a list of edits; see text_edits.h. */
#include "text_edits.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes_buffer.h"

void text_edits_clear(struct text_edits *edits)
{
    edits->count = 0;
    edits->cursor = 0;
}

void text_edits_free(struct text_edits *edits)
{
    free(edits->edits);
    *edits = (struct text_edits){NULL, 0, 0, 0};
}

bool text_edits_add(struct text_edits *edits, struct text_edit edit)
{
    assert(edit.from <= edit.to && edit.old_from <= edit.old_to);
    assert(!edits->count || edit.from >= edits->edits[edits->count - 1].to);
    if (!list_room(&edits->edits, edits->count, &edits->capacity, sizeof *edits->edits))
        return false;
    edits->edits[edits->count++] = edit;
    return true;
}

/* Returns the old offset of a border of the new text. edit: the last one that begins before it, or at it; NULL:
 * none. */
static uint64_t border(const struct text_edit *edit, uint64_t at, bool end)
{
    if (!edit)
        return at;
    if (end ? at > edit->from && at <= edit->to : at < edit->to)
        return end ? edit->old_to : edit->old_from;
    return edit->old_to + (at - edit->to);
}

void text_edits_map(struct text_edits *edits, uint64_t *begin, uint64_t *end)
{
    const struct text_edit *list = edits->edits;
    uint64_t at = edits->cursor;
    assert(*begin <= *end);
    if (!edits->count)
        return;
    while (at + 1 < edits->count && list[at + 1].from <= *begin)
        at++;
    edits->cursor = at;
    if (*begin == *end) {
        /* The border between two bytes: what was put in at it counts as before it. One inside an edit gets all of the
         * edit, as the parts beside it do. */
        const struct text_edit *edit = list[at].from <= *begin ? &list[at] : NULL;
        const bool inside = edit && *begin > edit->from && *begin < edit->to;
        *end = border(edit, *begin, !edit || *begin > edit->from || edit->from == edit->to);
        *begin = inside ? edit->old_from : *end;
        return;
    }
    *begin = border(list[at].from <= *begin ? &list[at] : NULL, *begin, false);
    while (at + 1 < edits->count && list[at + 1].from < *end)
        at++;
    *end = border(list[at].from < *end ? &list[at] : NULL, *end, true);
}
