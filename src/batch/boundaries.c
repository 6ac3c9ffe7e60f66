/* SPDX-License-Identifier: MIT */
#include "boundaries.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "dataset/documents.h"

/* Document ends fetched at once: more than most windows contain. */
#define ENDS 256

static void mark(struct mark *marks, uint64_t token)
{
    marks[token / 64].starts |= (uint64_t)1 << (token % 64);
}

/* Marks the ends of documents in the `length` tokens from `first`, which do not wrap. The first of them is token `at`
 * of the window. An end is the start of the next document. */
static enum tokmap_status mark_range(const struct tokmap_dataset *dataset, uint64_t first, uint64_t length, uint64_t at,
                                     uint64_t count, struct mark *marks, struct tokmap_error *error)
{
    uint64_t ends[ENDS], used, most = length;
    for (uint64_t done = 0; done < length;) {
        uint64_t part = min64(length - done, most);
        enum tokmap_status status = dataset_first_ends(dataset, first + done, &part, ends, ENDS, &used, error);
        if (status)
            return status;
        for (uint64_t i = 0; i < used; i++)
            if (at + done + ends[i] < count)
                mark(marks, at + done + ends[i]);
        most = 2 * part; /* keeps small the number of ends beyond ENDS, which dataset_ends() counts, too */
        done += part;
    }
    return TOKMAP_OK;
}

/* Marks where documents start inside an extent whose first token is token `at` of the row, which has `marked` tokens of
 * interest. */
static enum tokmap_status mark_extent(const struct boundaries_row *row, const struct tokmap_extent *extent, uint64_t at,
                                      uint64_t marked, struct mark *marks, struct tokmap_error *error)
{
    uint64_t count = min64(extent->tokens, marked - at),
             before_seam = min64(count, row->dataset_tokens - extent->first_token);
    enum tokmap_status status = mark_range(row->dataset, extent->first_token, before_seam, at, marked, marks, error);
    if (!status && before_seam < count) {
        mark(marks, at + before_seam);
        status = mark_range(row->dataset, 0, count - before_seam, at + before_seam, marked, marks, error);
    }
    return status;
}

enum tokmap_status boundaries_mark_extents(const struct boundaries_row *row, uint64_t marked, struct mark *marks,
                                           struct tokmap_error *error)
{
    uint64_t at = 0;
    assert(marked);
    memset(marks, 0, mark_words(marked) * sizeof *marks);
    mark(marks, 0);
    for (uint64_t i = 0; i < row->count && at < marked; at += row->extents[i++].tokens) {
        if (!extent_is_padding(&row->extents[i]))
            mark(marks, at);
        if (row->segments)
            continue;
        enum tokmap_status status = mark_extent(row, &row->extents[i], at, marked, marks, error);
        if (status)
            return status;
    }
    if (at < marked)
        mark(marks, at);
    return TOKMAP_OK;
}

void boundaries_sum(struct mark *marks, uint64_t words)
{
    uint32_t last = marks->last, before = marks->before;
    for (uint64_t word = 0; word < words; word++) {
        uint64_t starts = marks[word].starts;
        marks[word].last = last;
        marks[word].before = before;
        if (!starts)
            continue;
        last = (uint32_t)(word * 64 + 63 - (uint64_t)__builtin_clzll(starts));
        before += (uint32_t)__builtin_popcountll(starts);
    }
}

void boundaries_cut(const struct mark *row, uint64_t first, uint64_t marked, struct mark *marks)
{
    const uint64_t words = mark_words(marked), shift = first % 64;
    row += first / 64;
    for (uint64_t i = 0; i < words; i++) {
        marks[i] = (struct mark){.starts = row[i].starts >> shift};
        if (shift && i * 64 + 64 - shift < marked)
            marks[i].starts |= row[i + 1].starts << (64 - shift);
    }
    if (marked % 64)
        marks[words - 1].starts &= ~(uint64_t)0 >> (64 - marked % 64);
    const uint64_t earlier = shift ? row->starts & ~(uint64_t)0 >> (64 - shift) : 0;
    marks->before = row->before + (uint32_t)__builtin_popcountll(earlier);
    if (first && !(marks->starts & 1)) {
        const uint64_t start = first - shift + 63 - (uint64_t)__builtin_clzll(earlier | 1);
        marks->last = (uint32_t)((earlier ? start : row->last) - first);
    }
}

/* ---- cu_seqlens ---- */

void boundaries_cu_begin(struct boundaries_cu *cu, int32_t *ends, uint64_t elements)
{
    assert(elements);
    *cu = (struct boundaries_cu){.ends = ends, .elements = elements};
    ends[0] = 0;
}

bool boundaries_cu_row(struct boundaries_cu *cu, const struct mark *marks, uint64_t seq_len)
{
    uint64_t number = cu->documents, from = 0;
    for (uint64_t word = 0; word * 64 < seq_len; word++) {
        for (uint64_t bits = marks[word].starts; bits; bits &= bits - 1) {
            uint64_t start = word * 64 + (uint64_t)__builtin_ctzll(bits);
            if (start >= seq_len)
                break;
            if (!start)
                continue;
            if (number + 1 >= cu->elements)
                return false;
            cu->ends[++number] = (int32_t)(cu->tokens + start);
            cu->longest = max64(cu->longest, start - from);
            from = start;
        }
    }
    if (number + 1 >= cu->elements)
        return false;
    cu->tokens += seq_len;
    cu->ends[++number] = (int32_t)cu->tokens;
    cu->longest = max64(cu->longest, seq_len - from);
    cu->documents = number;
    return true;
}

void boundaries_cu_end(struct boundaries_cu *cu)
{
    for (uint64_t i = cu->documents + 1; i < cu->elements; i++)
        cu->ends[i] = (int32_t)cu->tokens;
}
