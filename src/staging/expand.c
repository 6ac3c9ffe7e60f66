/* SPDX-License-Identifier: MIT */
/*
 * expand.c - writes the outputs of a batch on the host.
 *
 * A slot has, for each row, its tokens as they are on disk and marks: one bit per token, set where a document starts
 * (see batch/mark.h). Every output follows from these two. A row of 7 tokens (seq_len 6, lookahead 1) in which
 * documents start at tokens 0, 3, and 6:
 *
 *     row             11   12   13 | 24   25   26 | 37      marks: bits 0, 3, 6
 *     inputs          11   12   13   24   25   26           tokens 0 .. 5
 *     targets         12   13   24   25   26   37           tokens 1 .. 6
 *       with mask_targets:
 *                     12   13 -100   25   26 -100           a target in another document does not count
 *     position_ids     0    1    2    0    1    2           distance from the start of the document
 *     document_ids     0    0    0    1    1    1           number of the document in the row
 *     loss_mask        1    1    0    1    1    0           1 where the target is in the same document
 *     labels        -100   12   13 -100   25   26           the input itself, where it counts as a target
 *     rows            11   12   13   24   25   26   37      the row as it is, in its own width
 *
 * Two more parts of a slot may say that a target does not count (batch/mark.h). Bits, one per target, come from the
 * dataset's mask: where a bit is 1, loss_mask is 0, and with mask_targets the target is -100. The bounds say from where
 * on the row is padding, and which inputs an earlier window has scored. Padding has no targets, so they are -100 there
 * even without mask_targets. The row above with the bounds {2, 4}, so that three tokens are padding, which starts like
 * a document, and the first two inputs have been scored:
 *
 *     row             11   12   13 | 24 |  0    0    0      marks: bits 0, 3, 4
 *     targets         12   13   24 -100 -100 -100           with mask_targets: all -100, as loss_mask is all 0
 *     position_ids     0    1    2    0    0    1
 *
 * labels is what libraries take that shift targets themselves: where loss_mask is 1 for an input, the label of the next
 * input is that token; elsewhere, and at the start of a row, it is -100. Labels never depend on mask_targets.
 *
 * targets_ahead has the next `lookahead` tokens of each input, so each element is a target of its own: with lookahead
 * 3, the targets of input 2 (token 13) are 24, 25, and 26. With mask_targets, one that is in another document than the
 * input is -100, and so is one that does not count.
 *
 * cu_seqlens is complete in the slot (the producer computes it from the document index) and is copied. Outputs have no
 * gaps: row i begins at element i * seq_len (of targets_ahead at i * seq_len * lookahead).
 *
 * Rows have thousands of tokens and only a few starts. So the loops here run once per row, per word of 64 tokens, and
 * per start, and leave the work per token to the kernels, which widen, count, and fill whole vectors: positions and
 * document numbers are written document by document. The obvious way, a decision per token, would spend nearly all its
 * time on finding that nothing starts. (A GPU thread has only a few tokens and cannot share work along a row, so
 * expand.cu does decide per token.)
 *
 * Why a target does not count makes no difference to its outputs. So all reasons are first brought to one bit per
 * target: starts moved down by one, the bits of the mask, and the ranges of the bounds. The kernels then write every
 * target and every element of the loss mask once. In the first row above, starts 0, 3, and 6 become bits 2 and 5.
 * Writing all targets first, and then those again that do not count, took a third longer where a mask has many of them.
 */
#include "expand.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "batch/mark.h"
#include "common/bit_copy.h"
#include "common/bytes.h"
#include "common/cpu.h"

#define PART_TARGETS 4096 /* whose bits are made at once; a multiple of 64 */

#define EXPAND_PLAIN(name, from, to)                                                                                   \
    static uint32_t one_##name(const void *in, uint64_t count, void *out)                                              \
    {                                                                                                                  \
        from top = 0;                                                                                                  \
        for (uint64_t j = 0; j < count; j++) {                                                                         \
            const from id = load_##from((const from *)in + j);                                                         \
            const to value = (to)id;                                                                                   \
            memcpy((char *)out + j * sizeof value, &value, sizeof value);                                              \
            top = id > top ? id : top;                                                                                 \
        }                                                                                                              \
        return top;                                                                                                    \
    }                                                                                                                  \
    static uint32_t pair_##name(const void *in, uint64_t count, const void *after, void *inputs, void *targets)        \
    {                                                                                                                  \
        const uint32_t top = one_##name(in, count, inputs);                                                            \
        return (uint32_t)max64(top, one_##name((const from *)in + 1, count, targets));                                 \
    }

#define load_uint16_t load16
#define load_uint32_t load32
EXPAND_PLAIN(16_32, uint16_t, int32_t)
EXPAND_PLAIN(16_64, uint16_t, int64_t)
EXPAND_PLAIN(32_32, uint32_t, int32_t)
EXPAND_PLAIN(32_64, uint32_t, int64_t)

static void count_32(uint64_t first, uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store32((char *)out + j * 4, (uint32_t)(first + j));
}

static void count_64(uint64_t first, uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store64((char *)out + j * 8, first + j);
}

static void fill_32(int64_t value, uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store32((char *)out + j * 4, (uint32_t)value);
}

static void fill_64(int64_t value, uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store64((char *)out + j * 8, (uint64_t)value);
}

/* Finds the next run of bits that are 1: [*from, *to), at or after *from. Returns false if there is none below
 * `count`. */
static bool next_run(const uint64_t *bits, uint64_t count, uint64_t *from, uint64_t *to)
{
    uint64_t at = *from;
    while (at < count && !(bits[at / 64] >> (at % 64)))
        at = (at / 64 + 1) * 64;
    if (at >= count)
        return false;
    at += (uint64_t)__builtin_ctzll(bits[at / 64] >> (at % 64));
    if (at >= count)
        return false;
    *from = at;
    while (at < count && !(~bits[at / 64] >> (at % 64)))
        at = (at / 64 + 1) * 64;
    if (at < count)
        at += (uint64_t)__builtin_ctzll(~bits[at / 64] >> (at % 64));
    *to = min64(at, count);
    return true;
}

#define PUT_PLAIN(size)                                                                                                \
    static void put_##size(const uint64_t *bits, int64_t value, uint64_t count, void *out)                             \
    {                                                                                                                  \
        for (uint64_t from = 0, to = 0; next_run(bits, count, &from, &to); from = to)                                  \
            fill_##size(value, to - from, (char *)out + from * (size / 8));                                            \
    }
PUT_PLAIN(32)
PUT_PLAIN(64)

#define EXCEPT_PLAIN(name, size)                                                                                       \
    static void pair_except_##name(const void *in, const uint64_t *bits, uint64_t count, void *inputs, void *targets)  \
    {                                                                                                                  \
        pair_##name(in, count, NULL, inputs, targets);                                                                 \
        put_##size(bits, TOKMAP_IGNORE, count, targets);                                                               \
    }
EXCEPT_PLAIN(16_32, 32)
EXCEPT_PLAIN(16_64, 64)
EXCEPT_PLAIN(32_32, 32)
EXCEPT_PLAIN(32_64, 64)

#define ZEROS_PLAIN(size)                                                                                              \
    static void zeros_##size(const uint64_t *bits, uint64_t count, void *out)                                          \
    {                                                                                                                  \
        fill_##size(1, count, out);                                                                                    \
        put_##size(bits, 0, count, out);                                                                               \
    }
ZEROS_PLAIN(32)
ZEROS_PLAIN(64)

#define AHEAD_PLAIN(name, from, to)                                                                                    \
    static void ahead_##name(const void *in, uint64_t count, uint64_t ahead, void *out)                                \
    {                                                                                                                  \
        char *into = out;                                                                                              \
        for (uint64_t j = 0; j < count; j++)                                                                           \
            for (uint64_t k = 0; k < ahead; k++, into += sizeof(to)) {                                                 \
                to value = (to)load_##from((const from *)in + j + 1 + k);                                              \
                memcpy(into, &value, sizeof value);                                                                    \
            }                                                                                                          \
    }
AHEAD_PLAIN(16_32, uint16_t, int32_t)
AHEAD_PLAIN(16_64, uint16_t, int64_t)
AHEAD_PLAIN(32_32, uint32_t, int32_t)
AHEAD_PLAIN(32_64, uint32_t, int64_t)

const struct expand_kernels expand_plain = {
    "plain",
    {{one_16_32, one_16_64}, {one_32_32, one_32_64}},
    {{pair_16_32, pair_16_64}, {pair_32_32, pair_32_64}},
    {{pair_except_16_32, pair_except_16_64}, {pair_except_32_32, pair_except_32_64}},
    {zeros_32, zeros_64},
    {count_32, count_64},
    {fill_32, fill_64},
    {put_32, put_64},
    {{ahead_16_32, ahead_16_64}, {ahead_32_32, ahead_32_64}},
};

const struct expand_kernels *expand_variant(unsigned number)
{
    return CPU_KERNELS(number, &expand_avx512, &expand_avx2, &expand_plain);
}

/* Facts that are the same for all rows of a batch. */
struct batch {
    const struct expand_kernels *kernels;
    const struct expand_arguments *work;
    unsigned type;      /* of the elements of outputs: 0 for int32_t, 1 for int64_t */
    uint64_t row_bytes; /* of one row in an output */
};

/* Returns where a row begins in an output, or NULL if the output is not requested. */
static char *output_row(const struct batch *batch, uint64_t output, uint64_t row)
{
    return output ? (char *)(uintptr_t)output + row * batch->row_bytes : NULL;
}

/* Writes the positions and document numbers of one document, which has the tokens [from, to) of a row, and `before`
 * tokens before the row. */
static void expand_document(const struct batch *batch, uint64_t from, uint64_t to, uint32_t before, uint32_t number,
                            char *positions, char *documents)
{
    uint64_t at = from * batch->work->element;
    if (positions)
        batch->kernels->count[batch->type](before, to - from, positions + at);
    if (documents)
        batch->kernels->fill[batch->type](number, to - from, documents + at);
}

/* Writes the positions and document numbers of a row. */
static void expand_documents(const struct batch *batch, const struct mark *marks, char *positions, char *documents)
{
    uint64_t seq_len = batch->work->seq_len, from = 0;
    /* The first document of a chunk may have begun before it. */
    const uint32_t begun = !(marks->starts & 1);
    uint32_t number = marks->before - begun, before = begun ? 0 - marks->last : 0;
    for (uint64_t word = 0; word * 64 < seq_len; word++) {
        for (uint64_t bits = marks[word].starts; bits; bits &= bits - 1) {
            uint64_t start = word * 64 + (uint64_t)__builtin_ctzll(bits);
            if (start >= seq_len)
                break;
            if (start == 0)
                continue;
            expand_document(batch, from, start, before, number++, positions, documents);
            from = start;
            before = 0;
        }
    }
    expand_document(batch, from, seq_len, before, number, positions, documents);
}

/* Facts about the targets of one row. Pointers are NULL where the slot has no such part. */
struct row_targets {
    const struct mark *marks;
    const uint64_t *bits;
    struct row_bounds bounds; /* without bounds: everything counts */
};

static struct row_targets targets_of_row(const struct expand_arguments *work, uint64_t i)
{
    const char *slot = (const char *)(uintptr_t)work->slot;
    struct row_targets row = {.bounds = {0, work->row_tokens}};
    row.marks = (const struct mark *)(const void *)(slot + work->marks_at) + i * work->row_marks;
    if (work->row_bits)
        row.bits = (const uint64_t *)(const void *)(slot + work->bits_at) + i * work->row_bits;
    if (work->bounds)
        row.bounds = ((const struct row_bounds *)(const void *)(slot + work->bounds_at))[i];
    return row;
}

/* Sets those of the bits [from, to) of a row that are among the `count` bits of `words`, which begin with bit `first`
 * of the row. */
static void exclude(uint64_t *words, uint64_t first, uint64_t count, uint64_t from, uint64_t to)
{
    const uint64_t low = max64(from, first), high = min64(to, first + count);
    if (low < high)
        bit_fill((uint8_t *)words, low - first, high - low);
}

/* Sets the bits of the targets [first, first + count) that do not count. A target is in the next document if that
 * starts one token later than the target's input, so starts are moved down by one. `first` is a multiple of 64. */
static void excluded_targets(const struct expand_arguments *work, const struct row_targets *row, uint64_t first,
                             uint64_t count, uint64_t *words)
{
    const uint64_t at = first / 64, many = mark_words(count);
    const struct mark *marks = row->marks + at;
    for (uint64_t i = 0; i + 1 < many; i++)
        words[i] = marks[i].starts >> 1 | marks[i + 1].starts << 63;
    words[many - 1] = marks[many - 1].starts >> 1;
    if (count % 64 == 0) /* the last target is token first + count, which is in the next word */
        words[many - 1] |= marks[many].starts << 63;
    if (row->bits)
        for (uint64_t i = 0; i < many; i++)
            words[i] |= row->bits[at + i];
    exclude(words, first, count, 0, row->bounds.scored_from);
    exclude(words, first, count, row->bounds.tokens ? row->bounds.tokens - 1 : 0, work->seq_len);
}

/* Writes the inputs and targets of a row. `bits` are those of the targets that are not written; NULL: all are. Inputs
 * or targets may be NULL. */
static void expand_tokens(const struct batch *batch, const char *row, const uint64_t *bits, uint64_t count,
                          char *inputs, char *targets)
{
    const struct expand_kernels *kernels = batch->kernels;
    const unsigned width = batch->work->width == 4, type = batch->type;
    if (inputs && targets && bits) {
        kernels->pair_except[width][type](row, bits, count, inputs, targets);
    } else if (inputs && targets) {
        kernels->pair[width][type](row, count, NULL, inputs, targets);
    } else if (inputs) {
        kernels->one[width][type](row, count, inputs);
    } else if (targets) {
        kernels->one[width][type](row + batch->work->width, count, targets);
        if (bits)
            kernels->put[type](bits, TOKMAP_IGNORE, count, targets);
    }
}

/* Writes the inputs, the targets, and the loss mask of a row, parts of which follow from the same bits: the bits of a
 * part are made first, and then every element is written once. */
static void expand_excluded(const struct batch *batch, const char *row, const struct row_targets *known, char *inputs,
                            char *targets, char *mask)
{
    const struct expand_arguments *work = batch->work;
    uint64_t words[PART_TARGETS / 64];
    for (uint64_t first = 0, count; first < work->seq_len; first += count) {
        const uint64_t at = first * work->element;
        count = min64(work->seq_len - first, PART_TARGETS);
        excluded_targets(work, known, first, count, words);
        expand_tokens(batch, row + first * work->width, work->mask_targets ? words : NULL, count,
                      inputs ? inputs + at : NULL, targets ? targets + at : NULL);
        if (mask)
            batch->kernels->zeros[batch->type](words, count, mask + at);
    }
}

/* Writes the labels of a row: target j is label j + 1. Label 0 is the target of a token before the row, which only a
 * chunk has. */
static void expand_labels(const struct batch *batch, const char *row, const struct row_targets *known, char *labels)
{
    const struct expand_arguments *work = batch->work;
    const uint64_t targets = work->seq_len - 1;
    uint64_t words[PART_TARGETS / 64];
    const uint64_t first_bit = work->row_tokens - 1;
    if (work->first_labels && !(known->bits[first_bit / 64] >> first_bit % 64 & 1))
        (void)batch->kernels->one[work->width == 4][batch->type](row, 1, labels);
    else
        batch->kernels->fill[batch->type](TOKMAP_IGNORE, 1, labels);
    for (uint64_t first = 0, count; first < targets; first += count) {
        count = min64(targets - first, PART_TARGETS);
        excluded_targets(work, known, first, count, words);
        expand_tokens(batch, row + first * work->width, words, count, NULL, labels + (first + 1) * work->element);
    }
}

/* Writes TOKMAP_IGNORE to the targets that are padding, which have no value even where masks are not asked for. */
static void exclude_padding(const struct batch *batch, const struct row_bounds *bounds, char *targets)
{
    const uint64_t from = bounds->tokens ? bounds->tokens - 1 : 0;
    if (from < batch->work->seq_len)
        batch->kernels->fill[batch->type](TOKMAP_IGNORE, batch->work->seq_len - from,
                                          targets + from * batch->work->element);
}

/* ---- targets_ahead ---- */

/* Writes TOKMAP_IGNORE to elements [from, to) of input j. */
static void ignore_ahead(const struct batch *batch, char *ahead, uint64_t j, uint64_t from, uint64_t to)
{
    const int64_t ignore = TOKMAP_IGNORE;
    uint64_t element = batch->work->element, many = batch->work->row_tokens - batch->work->seq_len;
    for (uint64_t k = from; k < to; k++)
        memcpy(ahead + (j * many + k) * element, &ignore, element);
}

/* Writes TOKMAP_IGNORE wherever one of the row's targets [from, to) is an element: target t is token t + 1, so it is
 * element t - j of input j. The inputs that have only these targets are filled at once. */
static void exclude_ahead(const struct batch *batch, char *ahead, uint64_t from, uint64_t to)
{
    const struct expand_arguments *work = batch->work;
    const uint64_t many = work->row_tokens - work->seq_len, end = min64(to, work->seq_len);
    uint64_t j = from >= many ? from - many + 1 : 0;
    for (; j < end; j++) {
        if (j >= from && j + many <= to) {
            const uint64_t whole = min64(to - many + 1, work->seq_len);
            batch->kernels->fill[batch->type](TOKMAP_IGNORE, (whole - j) * many, ahead + j * many * work->element);
            j = whole - 1;
            continue;
        }
        ignore_ahead(batch, ahead, j, from > j ? from - j : 0, min64(many, to - j));
    }
}

/* Writes TOKMAP_IGNORE to every element that a start separates from its input: a start at token s concerns the inputs
 * before s, from their element s - 1 - j on. */
static void separate_ahead(const struct batch *batch, const struct mark *marks, char *ahead)
{
    const struct expand_arguments *work = batch->work;
    const uint64_t many = work->row_tokens - work->seq_len;
    for (uint64_t word = 0; word * 64 < work->row_tokens; word++) {
        for (uint64_t bits = marks[word].starts; bits; bits &= bits - 1) {
            uint64_t start = word * 64 + (uint64_t)__builtin_ctzll(bits);
            if (start >= work->row_tokens)
                break;
            for (uint64_t j = start > many ? start - many : 0; j < min64(start, work->seq_len); j++)
                ignore_ahead(batch, ahead, j, start - 1 - j, many);
        }
    }
}

static void expand_targets_ahead(const struct batch *batch, const char *row, const struct row_targets *known,
                                 char *ahead)
{
    const struct expand_arguments *work = batch->work;
    const uint64_t many = work->row_tokens - work->seq_len, targets = work->row_tokens - 1;
    batch->kernels->ahead[work->width == 4][batch->type](row, work->seq_len, many, ahead);
    if (work->mask_targets) {
        separate_ahead(batch, known->marks, ahead);
        for (uint64_t from = 0, to = 0; known->bits && next_run(known->bits, targets, &from, &to); from = to)
            exclude_ahead(batch, ahead, from, to);
        batch->kernels->fill[batch->type](TOKMAP_IGNORE, min64(known->bounds.scored_from, work->seq_len) * many, ahead);
    }
    if (known->bounds.tokens <= targets)
        exclude_ahead(batch, ahead, known->bounds.tokens ? known->bounds.tokens - 1 : 0, targets);
}

static void expand_row(const struct batch *batch, uint64_t i)
{
    const struct expand_arguments *work = batch->work;
    const char *row = (const char *)(uintptr_t)work->slot + i * work->row_stride;
    char *inputs = output_row(batch, work->inputs, i), *targets = output_row(batch, work->targets, i);
    char *positions = output_row(batch, work->position_ids, i), *documents = output_row(batch, work->document_ids, i);
    char *mask = output_row(batch, work->loss_mask, i);
    const struct row_targets known = targets_of_row(work, i);
    if (mask || (targets && work->mask_targets))
        expand_excluded(batch, row, &known, inputs, targets, mask);
    else
        expand_tokens(batch, row, NULL, work->seq_len, inputs, targets);
    if (targets && !work->mask_targets)
        exclude_padding(batch, &known.bounds, targets);
    if (work->labels)
        expand_labels(batch, row, &known, output_row(batch, work->labels, i));
    if (positions || documents)
        expand_documents(batch, known.marks, positions, documents);
    if (work->targets_ahead)
        expand_targets_ahead(batch, row, &known,
                             (char *)(uintptr_t)work->targets_ahead +
                                 i * batch->row_bytes * (work->row_tokens - work->seq_len));
    if (work->rows) {
        uint64_t bytes = work->row_tokens * work->width;
        memcpy((char *)(uintptr_t)work->rows + i * bytes, row, bytes);
    }
}

/* Moves an output of a chunk to where the chunk's first column is. */
static void move(uint64_t *output, uint64_t bytes)
{
    *output += *output ? bytes : 0;
}

/* Expands a chunk of row i, as the only row of a batch whose slot begins with its tokens. */
static void expand_chunk(const struct batch *batch, uint64_t i, const struct expand_chunk *chunk)
{
    struct expand_arguments one = *batch->work;
    const uint64_t ahead = one.row_tokens - one.seq_len, moved = (i * one.seq_len + chunk->first) * one.element;
    const struct batch of_one = {batch->kernels, &one, batch->type, chunk->count * one.element};
    move(&one.inputs, moved);
    move(&one.targets, moved);
    move(&one.labels, moved);
    move(&one.position_ids, moved);
    move(&one.document_ids, moved);
    move(&one.loss_mask, moved);
    move(&one.targets_ahead, moved * ahead);
    one.slot += chunk->tokens_at;
    one.marks_at = chunk->marks_at - chunk->tokens_at;
    one.bits_at = chunk->bits_at - chunk->tokens_at;
    one.bounds_at = (uintptr_t)&chunk->scored_from - one.slot;
    one.seq_len = chunk->count;
    one.row_tokens = chunk->count + ahead;
    expand_row(&of_one, 0);
}

static void expand_chunks(const struct batch *batch)
{
    const struct expand_arguments *work = batch->work;
    const struct expand_chunk *chunks = (const struct expand_chunk *)(uintptr_t)(work->slot + work->chunks_at);
    assert(!work->rows);
    for (uint64_t i = 0; i < work->count; i++, chunks += work->row_chunks)
        for (uint64_t k = 0; k < work->row_chunks && chunks[k].count; k++)
            expand_chunk(batch, i, &chunks[k]);
}

static void expand_sources(const struct expand_arguments *work)
{
    const int32_t *sources = (const int32_t *)(uintptr_t)(work->slot + work->sources_at);
    for (uint64_t i = 0; i < work->sources; i++)
        if (work->element == 8)
            store64((uint8_t *)(uintptr_t)work->source_ids + i * 8, (uint64_t)sources[i]);
        else
            store32((uint8_t *)(uintptr_t)work->source_ids + i * 4, (uint32_t)sources[i]);
}

void expand_batch(const struct expand_kernels *kernels, const struct expand_arguments *work)
{
    assert(kernels && work->slot % 64 == 0 && work->seq_len >= 1 && work->row_tokens >= work->seq_len);
    assert((work->width == 2 || work->width == 4) && (work->element == 4 || work->element == 8));
    assert(!(work->targets || work->loss_mask || work->targets_ahead) || work->row_tokens > work->seq_len);
    assert(work->row_stride >= work->row_tokens * work->width || work->count <= 1);
    struct batch batch = {kernels, work, work->element == 8, work->seq_len * work->element};
    if (work->row_chunks)
        expand_chunks(&batch);
    for (uint64_t i = 0; i < work->count && !work->row_chunks; i++)
        expand_row(&batch, i);
    if (work->source_ids)
        expand_sources(work);
    if (work->cu_seqlens)
        memcpy((void *)(uintptr_t)work->cu_seqlens, (const char *)(uintptr_t)work->slot + work->cu_at,
               work->cu_elements * sizeof(int32_t));
    if (work->cu_seqlens_slice)
        memcpy((void *)(uintptr_t)work->cu_seqlens_slice, (const char *)(uintptr_t)work->slot + work->cu_slice_at,
               work->cu_elements * sizeof(int32_t));
}
