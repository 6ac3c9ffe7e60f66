/* SPDX-License-Identifier: MIT */
/* fim_reader.c - see fim_reader.h. */
#include "fim_reader.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"

/* What the token at hand belongs to: text in its order, or a part of a piece. */
enum { PLAIN, PREFIX, SUFFIX, SUFFIX_FIRST, MIDDLE };
/* place[]: where the plain text or the prefix begins, where the prefix ends, where the suffix and the middle begin. The
 * suffix ends where the token before the middle is. */
enum { FIRST, PREFIX_END, SUFFIX_BEGIN, MIDDLE_BEGIN };

void fim_reader_begin(struct fim_reader *reader, const struct fim_marks *marks)
{
    struct tokmap_extent *extents = reader->extents;
    const uint64_t capacity = reader->capacity;
    *reader = (struct fim_reader){.marks = *marks, .extents = extents, .capacity = capacity};
}

void fim_reader_free(struct fim_reader *reader)
{
    free(reader->extents);
    *reader = (struct fim_reader){.extents = NULL};
}

/* Adds tokens [from, to) to the text. */
static enum tokmap_status extent_add(struct fim_reader *reader, uint64_t from, uint64_t to, struct tokmap_error *error)
{
    if (from == to)
        return TOKMAP_OK;
    if (!list_room(&reader->extents, reader->count, &reader->capacity, sizeof *reader->extents))
        return error_set_memory(error, "the parts of a document", reader->capacity * sizeof *reader->extents);
    reader->extents[reader->count++] = (struct tokmap_extent){from, to - from};
    return TOKMAP_OK;
}

/* Adds a piece whose middle ends at `at`. */
static enum tokmap_status piece_add(struct fim_reader *reader, uint64_t at, struct tokmap_error *error)
{
    const uint64_t *place = reader->place;
    enum tokmap_status status = extent_add(reader, place[FIRST], place[PREFIX_END], error);
    if (!status)
        status = extent_add(reader, place[MIDDLE_BEGIN], at, error);
    return status ? status : extent_add(reader, place[SUFFIX_BEGIN], place[MIDDLE_BEGIN] - 1, error);
}

/* Begins a piece at the token `at`, unless none can be there: only a BOS may be before one that is a document. */
static enum tokmap_status piece_begin(struct fim_reader *reader, int state, struct tokmap_error *error)
{
    const uint64_t from = reader->place[FIRST], at = reader->at;
    reader->wrong = !reader->marks.pieces && (at > 1 || reader->psm || reader->spm);
    reader->state = state;
    reader->place[FIRST] = reader->place[PREFIX_END] = reader->place[SUFFIX_BEGIN] = at + 1;
    return extent_add(reader, from, at, error);
}

static enum tokmap_status token_take(struct fim_reader *reader, uint64_t id, struct tokmap_error *error)
{
    const struct fim_marks *marks = &reader->marks;
    const uint64_t at = reader->at;
    const bool is_prefix = id == marks->prefix, is_suffix = id == marks->suffix, is_middle = id == marks->middle;
    if (reader->state == PLAIN && is_prefix)
        return piece_begin(reader, PREFIX, error);
    if (reader->state == PLAIN && is_suffix)
        return piece_begin(reader, SUFFIX_FIRST, error);
    if (reader->state == PREFIX && is_suffix) {
        reader->place[PREFIX_END] = at;
        reader->place[SUFFIX_BEGIN] = at + 1;
        reader->state = SUFFIX;
    } else if ((reader->state == SUFFIX && is_middle) || (reader->state == SUFFIX_FIRST && is_prefix)) {
        const bool suffix_first = reader->place[FIRST] == reader->place[PREFIX_END];
        reader->spm += suffix_first;
        reader->psm += !suffix_first;
        reader->place[MIDDLE_BEGIN] = at + 1;
        reader->state = MIDDLE;
    } else if (reader->state == MIDDLE && id == marks->end) {
        reader->state = PLAIN;
        const enum tokmap_status status = piece_add(reader, at, error);
        reader->place[FIRST] = at + 1;
        return status;
    } else {
        reader->wrong = is_prefix || is_suffix || is_middle;
    }
    return TOKMAP_OK;
}

enum tokmap_status fim_reader_add(struct fim_reader *reader, const void *tokens, uint32_t width, uint64_t count,
                                  struct tokmap_error *error)
{
    const uint64_t end = reader->at + count;
    const uint8_t *token = tokens;
    enum tokmap_status status = TOKMAP_OK;
    for (; reader->at < end && reader->marks.used && !reader->wrong && !status; reader->at++, token += width)
        status = token_take(reader, width == 2 ? load16(token) : load32(token), error);
    reader->at = end;
    return status;
}

enum tokmap_status fim_reader_end(struct fim_reader *reader, struct tokmap_error *error)
{
    if (reader->state == MIDDLE && !reader->wrong)
        return piece_add(reader, reader->at, error);
    if (reader->state != PLAIN || reader->wrong) {
        reader->count = reader->psm = reader->spm = reader->place[FIRST] = 0;
        reader->wrong = true;
    }
    return extent_add(reader, reader->place[FIRST], reader->at, error);
}
