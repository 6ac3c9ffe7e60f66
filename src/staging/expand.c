/*
 * expand.c - the plain C kernels, the choice among all, and the loop over the rows of a batch.
 */
#include "expand.h"

#include <stdbool.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cpu.h"
#include "batch/mark.h"

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
extern const struct expand_kernels expand_avx2, expand_avx512;

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
    unsigned type;
    uint64_t row_bytes; /* of an output */
};

static char *output(const struct batch *batch, uint64_t output, uint64_t row)
{
    return output ? (char *)(uintptr_t)output + row * batch->row_bytes : NULL;
}

/* One document's tokens [from, to) of a row. */
static void expand_document(const struct batch *batch, uint64_t from, uint64_t to, uint32_t number, char *positions,
                            char *documents)
{
    uint64_t at = from * batch->work->element;
    if (positions)
        batch->kernels->count[batch->type](to - from, positions + at);
    if (documents)
        batch->kernels->fill[batch->type](number, to - from, documents + at);
}

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

/* Overwrites what lies before each start: the last tokens of documents, whose targets are in the next. */
static void expand_edges(const struct batch *batch, const struct mark *marks, char *targets, char *mask)
{
    uint64_t seq_len = batch->work->seq_len, element = batch->work->element;
    const int64_t ignore = TOKMAP_IGNORE, zero = 0; /* little-endian: the first bytes are the narrower number */
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
    char *inputs = output(batch, work->inputs, i), *targets = output(batch, work->targets, i);
    char *positions = output(batch, work->position_ids, i), *documents = output(batch, work->document_ids, i);
    char *mask = output(batch, work->loss_mask, i);
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
    struct batch batch = {kernels, work, work->element == 8, work->seq_len * work->element};
    for (uint64_t i = 0; i < work->count; i++)
        expand_row(&batch, i);
    if (work->cu_seqlens)
        memcpy((void *)(uintptr_t)work->cu_seqlens, (const char *)(uintptr_t)work->slot + work->cu_at,
               work->cu_elements * sizeof(int32_t));
}
