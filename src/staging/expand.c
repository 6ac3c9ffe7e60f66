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
 *     rows            11   12   13   24   25   26   37      the row as it is, in its own width
 *
 * cu_seqlens is complete in the slot (the producer computes it from the document index) and is copied. Outputs have no
 * gaps: row i begins at element i * seq_len.
 *
 * Rows have thousands of tokens and only a few starts. So the loops here run once per row and once per start, and leave
 * the work per token to the kernels, which widen, count, and fill whole vectors: positions and document numbers are
 * written document by document; targets and masks are written as if the row were one document and then corrected at the
 * token before each start. The obvious way, a decision per token, would spend nearly all its time on finding that
 * nothing starts. (A GPU thread has only a few tokens and cannot share work along a row, so expand.cu does decide per
 * token.)
 */
#include "expand.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "batch/mark.h"
#include "common/bytes.h"
#include "common/cpu.h"
#include "expand_kernels.h"

#define EXPAND_PLAIN(name, from, to)                                                                                   \
    static void one_##name(const void *in, uint64_t count, void *out)                                                  \
    {                                                                                                                  \
        for (uint64_t j = 0; j < count; j++) {                                                                         \
            to value = (to)load_##from((const from *)in + j);                                                          \
            memcpy((char *)out + j * sizeof value, &value, sizeof value);                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void pair_##name(const void *in, uint64_t count, void *inputs, void *targets)                               \
    {                                                                                                                  \
        one_##name(in, count, inputs);                                                                                 \
        one_##name((const from *)in + 1, count, targets);                                                              \
    }

#define load_uint16_t load16
#define load_uint32_t load32
EXPAND_PLAIN(16_32, uint16_t, int32_t)
EXPAND_PLAIN(16_64, uint16_t, int64_t)
EXPAND_PLAIN(32_64, uint32_t, int64_t)

static void one_32_32(const void *in, uint64_t count, void *out)
{
    memcpy(out, in, count * 4);
}

static void pair_32_32(const void *in, uint64_t count, void *inputs, void *targets)
{
    memcpy(inputs, in, count * 4);
    memcpy(targets, (const uint32_t *)in + 1, count * 4);
}

static void count_32(uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store32((char *)out + j * 4, (uint32_t)j);
}

static void count_64(uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store64((char *)out + j * 8, j);
}

static void fill_32(uint32_t value, uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store32((char *)out + j * 4, value);
}

static void fill_64(uint32_t value, uint64_t count, void *out)
{
    for (uint64_t j = 0; j < count; j++)
        store64((char *)out + j * 8, value);
}

static const struct expand_kernels plain = {
    "plain",
    {{one_16_32, one_16_64}, {one_32_32, one_32_64}},
    {{pair_16_32, pair_16_64}, {pair_32_32, pair_32_64}},
    {count_32, count_64},
    {fill_32, fill_64},
};

#if defined(__x86_64__)
const struct expand_kernels *expand_variant(unsigned number)
{
    const struct expand_kernels *usable[3];
    unsigned count = 0;
    if (cpu_has(CPU_AVX512))
        usable[count++] = &expand_avx512;
    if (cpu_has(CPU_AVX2))
        usable[count++] = &expand_avx2;
    usable[count++] = &plain;
    return number < count ? usable[number] : NULL;
}
#else
const struct expand_kernels *expand_variant(unsigned number)
{
    return number ? NULL : &plain;
}
#endif

/* What is the same for all rows of a batch. */
struct batch {
    const struct expand_kernels *kernels;
    const struct expand_arguments *work;
    unsigned type;      /* enum tokmap_type of the outputs */
    uint64_t row_bytes; /* of one row in an output */
};

/* Returns where a row begins in an output, or NULL if the output is not requested. */
static char *output_row(const struct batch *batch, uint64_t output, uint64_t row)
{
    return output ? (char *)(uintptr_t)output + row * batch->row_bytes : NULL;
}

/* Writes the positions and document numbers of one document, which has the tokens [from, to) of a row. */
static void expand_document(const struct batch *batch, uint64_t from, uint64_t to, uint32_t number, char *positions,
                            char *documents)
{
    uint64_t at = from * batch->work->element;
    if (positions)
        batch->kernels->count[batch->type](to - from, positions + at);
    if (documents)
        batch->kernels->fill[batch->type](number, to - from, documents + at);
}

/* Writes the positions and document numbers of a row. */
static void expand_documents(const struct batch *batch, const struct mark *marks, char *positions, char *documents)
{
    uint64_t seq_len = batch->work->seq_len, from = 0;
    uint32_t number = 0;
    for (uint64_t word = 0; word * 64 < seq_len; word++) {
        for (uint64_t bits = marks[word].starts; bits; bits &= bits - 1) {
            uint64_t start = word * 64 + (uint64_t)__builtin_ctzll(bits);
            if (start >= seq_len)
                break;
            if (start == 0)
                continue;
            expand_document(batch, from, start, number++, positions, documents);
            from = start;
        }
    }
    expand_document(batch, from, seq_len, number, positions, documents);
}

/* Corrects targets and writes the loss mask at the token before each start: it is the last token of its document, and
 * its target is in the next document. A start at token seq_len, the lookahead, concerns the last token of the row. */
static void expand_edges(const struct batch *batch, const struct mark *marks, char *targets, char *mask)
{
    uint64_t seq_len = batch->work->seq_len, element = batch->work->element;
    /* The machine is little-endian, so the first 4 bytes of these are the 32-bit numbers. */
    const int64_t ignore = TOKMAP_IGNORE, zero = 0;
    if (mask)
        batch->kernels->fill[batch->type](1, seq_len, mask);
    for (uint64_t word = 0; word * 64 <= seq_len; word++) {
        for (uint64_t bits = marks[word].starts; bits; bits &= bits - 1) {
            uint64_t start = word * 64 + (uint64_t)__builtin_ctzll(bits);
            if (start > seq_len)
                break;
            if (start && targets)
                memcpy(targets + (start - 1) * element, &ignore, element);
            if (start && mask)
                memcpy(mask + (start - 1) * element, &zero, element);
        }
    }
}

static void expand_row(const struct batch *batch, uint64_t i)
{
    const struct expand_arguments *work = batch->work;
    const struct expand_kernels *kernels = batch->kernels;
    const char *slot = (const char *)(uintptr_t)work->slot, *row = slot + i * work->row_stride;
    const struct mark *marks = (const struct mark *)(const void *)(slot + work->marks_at) + i * work->row_marks;
    char *inputs = output_row(batch, work->inputs, i), *targets = output_row(batch, work->targets, i);
    char *positions = output_row(batch, work->position_ids, i), *documents = output_row(batch, work->document_ids, i);
    char *mask = output_row(batch, work->loss_mask, i);
    unsigned width = work->width == 4;
    if (inputs && targets)
        kernels->pair[width][batch->type](row, work->seq_len, inputs, targets);
    else if (inputs)
        kernels->one[width][batch->type](row, work->seq_len, inputs);
    else if (targets)
        kernels->one[width][batch->type](row + work->width, work->seq_len, targets);
    if (positions || documents)
        expand_documents(batch, marks, positions, documents);
    if (mask || (targets && work->mask_targets))
        expand_edges(batch, marks, work->mask_targets ? targets : NULL, mask);
    if (work->rows) {
        uint64_t bytes = work->row_tokens * work->width;
        memcpy((char *)(uintptr_t)work->rows + i * bytes, row, bytes);
    }
}

void expand_batch(const struct expand_kernels *kernels, const struct expand_arguments *work)
{
    assert(kernels && work->slot % 64 == 0 && work->seq_len >= 1 && work->row_tokens >= work->seq_len);
    assert((work->width == 2 || work->width == 4) && (work->element == 4 || work->element == 8));
    assert(!(work->targets || work->loss_mask) || work->row_tokens > work->seq_len);
    assert(work->row_stride >= work->row_tokens * work->width || work->count <= 1);
    struct batch batch = {kernels, work, work->element == 8, work->seq_len * work->element};
    for (uint64_t i = 0; i < work->count; i++)
        expand_row(&batch, i);
    if (work->cu_seqlens)
        memcpy((void *)(uintptr_t)work->cu_seqlens, (const char *)(uintptr_t)work->slot + work->cu_at,
               work->cu_elements * sizeof(int32_t));
}
