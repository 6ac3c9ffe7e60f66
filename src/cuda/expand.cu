/* SPDX-License-Identifier: MIT */
/*
 * expand.cu - does on a GPU what expand.c does on the host: one launch per batch writes every requested output. See
 * expand.c for an example of what is computed, and expand_arguments.h for the layout of the slot.
 *
 * The unit of work is a *strip*: the elements of one output row that share 16 bytes of memory at an address that is a
 * multiple of 16, that is 4 elements of 4 bytes or 2 of 8. A thread reads the 4 to 16 bytes of tokens that belong to
 * its strip and writes 16 bytes to each output. Thread t of n takes strips t, t + n, t + 2n, and so on through all
 * rows. So the lanes of a warp access consecutive memory, which is what the GPU needs for full bandwidth.
 *
 * A row whose output does not begin at a multiple of 16 has a shorter first strip, and a row can have a shorter last
 * one. Shorter strips are written element by element. Every row gets the same number of strips, as many as any row can
 * need, so some are empty. An example with elements of 4 bytes and seq_len 10, in an output that begins at a multiple
 * of 16:
 *
 *     row 0, at byte 0      [0, 4)  [4, 8)  [8, 10)  empty
 *     row 1, at byte 40     [0, 2)  [2, 6)  [6, 10)  empty
 *
 * The division follows the first output that is requested. An output that has another remainder modulo 16 is written
 * element by element. Rows of the slot always begin at a multiple of 64, so the tokens of a strip can be loaded at once
 * only where the strip begins at a multiple of its size in the row; elsewhere they are loaded one by one, and come from
 * the cache.
 *
 * Positions, document numbers, and masks are computed from one mark (64 tokens), which 16 or 32 neighboring lanes
 * share. A mark contains sums over the marks before it, so no thread depends on another. The obvious way, a scan along
 * the row by all threads together, would need synchronization between them.
 *
 * targets_ahead is written element by element: consecutive elements are overlapping tokens, so nothing can be loaded
 * at once, and what is loaded again comes from the cache. So are labels, which are targets one token later: as strips,
 * beside all other outputs, they would take more registers than some GPUs have.
 *
 * The file is C as well as CUDA. Compiled as C it runs on the host, one thread after another: that is how the tests
 * compare it, and what the emulated driver launches. `make ptx` compiles it to expand.ptx, which the library contains.
 */
#include "batch/mark.h"
#include "staging/expand_arguments.h"

#ifdef __CUDACC__
#define INLINE static __device__ __forceinline__
#define count_bits(bits) ((uint32_t)__popcll(bits))
#define highest_bit(bits) (63 - (uint32_t)__clzll((long long)(bits)))
#define AT(type, address) ((type *)__cvta_global_to_generic(address))
#else
#define INLINE static inline __attribute__((always_inline))
#define count_bits(bits) ((uint32_t)__builtin_popcountll(bits))
#define highest_bit(bits) (63 - (uint32_t)__builtin_clzll(bits))
#define AT(type, address) ((type *)(uintptr_t)(address))
#endif

#define IGNORE (-100) /* TOKMAP_IGNORE */

/* What one load or store moves at once. */
struct four {
    uint32_t x, y, z, w;
} __attribute__((aligned(16)));
struct two {
    uint32_t x, y;
} __attribute__((aligned(8)));

/* The elements [from, from + count) of a row. */
struct strip {
    uint64_t row;
    uint32_t from;
    uint32_t count; /* 0: the strip is empty */
    uint32_t whole; /* 1: it has all elements that a strip can have */
};

/* How the rows of an output are divided into strips. */
struct division {
    uint64_t row_elements;
    uint32_t elements;   /* that a strip can have */
    uint32_t phase;      /* distance of the output's address from a multiple of 16, in elements */
    uint32_t row_phase;  /* what each row adds to that distance */
    uint32_t row_strips; /* strips of each row, including empty ones */
};

INLINE struct division divide(uint64_t output, uint64_t row_elements, uint32_t bytes)
{
    struct division division;
    division.row_elements = row_elements;
    division.elements = 16 / bytes;
    division.phase = (uint32_t)(output % 16) / bytes;
    division.row_phase = (uint32_t)(row_elements % division.elements);
    division.row_strips = (uint32_t)(division.phase | division.row_phase ? expand_row_strips(row_elements, bytes)
                                                                         : row_elements / division.elements);
    return division;
}

/* The strip at which a thread is. To advance by `threads` strips, across the ends of rows, takes additions and no
 * arithmetic division. */
struct iterator {
    uint64_t row;
    uint32_t number;       /* of the strip in the row */
    uint32_t rows, strips; /* `threads` strips are this many rows and strips */
};

INLINE struct iterator iterator_begin(const struct division *division, uint32_t thread, uint32_t threads)
{
    struct iterator iterator = {thread / division->row_strips, thread % division->row_strips,
                                threads / division->row_strips, threads % division->row_strips};
    return iterator;
}

INLINE void iterator_next(struct iterator *iterator, const struct division *division)
{
    iterator->row += iterator->rows;
    iterator->number += iterator->strips;
    if (iterator->number >= division->row_strips) {
        iterator->number -= division->row_strips;
        iterator->row++;
    }
}

/* Returns the strip at which the thread is. */
INLINE struct strip strip_of(const struct division *division, const struct iterator *iterator)
{
    struct strip strip;
    uint32_t skew = (division->phase + (uint32_t)iterator->row * division->row_phase) % division->elements;
    uint64_t from = (uint64_t)iterator->number * division->elements, to = from + division->elements - skew;
    from = from > skew ? from - skew : 0;
    to = to < division->row_elements ? to : division->row_elements;
    strip.row = iterator->row;
    strip.from = (uint32_t)from;
    strip.count = from < to ? (uint32_t)(to - from) : 0;
    strip.whole = strip.count == division->elements;
    return strip;
}

/* Loads one token. */
INLINE uint32_t load_token(uint64_t at, uint32_t width)
{
    return width == 4 ? *AT(const uint32_t, at) : *AT(const uint16_t, at);
}

/* Loads the tokens of a strip and, if targets are requested, the token after it. A GPU waits at the first use of what
 * it loads, so both loads are issued before either is used: the strip then waits for memory once, not twice. */
INLINE void load_tokens(const struct expand_arguments *work, const struct strip *strip, uint32_t width,
                        uint32_t elements, uint64_t tokens[5])
{
    const uint64_t at = work->slot + strip->row * work->row_stride + (uint64_t)strip->from * width;
    const uint32_t ahead = work->targets != 0;
    if (!strip->whole || strip->from % elements) {
        for (uint32_t k = 0; k <= elements; k++)
            if (k < strip->count + ahead)
                tokens[k] = load_token(at + k * width, width);
        return;
    }
    struct four read = {0, 0, 0, 0};
    uint32_t after = 0;
    if (width * elements == 16) {
        read = *AT(const struct four, at);
    } else if (width * elements == 8) {
        const struct two half = *AT(const struct two, at);
        read.x = half.x, read.y = half.y;
    } else {
        read.x = *AT(const uint32_t, at);
    }
    if (ahead)
        after = load_token(at + width * elements, width);
    if (width == 4) {
        tokens[0] = read.x, tokens[1] = read.y;
        if (elements == 4)
            tokens[2] = read.z, tokens[3] = read.w;
    } else {
        tokens[0] = read.x & 0xffff, tokens[1] = read.x >> 16;
        if (elements == 4)
            tokens[2] = read.y & 0xffff, tokens[3] = read.y >> 16;
    }
    tokens[elements] = after;
}

/* Writes the elements of a strip to the output that begins at address `base`. */
INLINE void store(uint64_t base, const struct expand_arguments *work, const struct strip *strip, uint32_t element,
                  const uint64_t values[4])
{
    uint64_t at = base + (strip->row * work->seq_len + strip->from) * element;
    if (strip->whole && at % 16 == 0) {
        struct four write;
        write.x = (uint32_t)values[0];
        write.y = (uint32_t)(element == 8 ? values[0] >> 32 : values[1]);
        write.z = (uint32_t)(element == 8 ? values[1] : values[2]);
        write.w = (uint32_t)(element == 8 ? values[1] >> 32 : values[3]);
        *AT(struct four, at) = write;
        return;
    }
    for (uint32_t k = 0; k < 16 / element; k++)
        if (k < strip->count && element == 8)
            *AT(uint64_t, at + k * 8) = values[k];
        else if (k < strip->count)
            *AT(uint32_t, at + k * 4) = (uint32_t)values[k];
}

INLINE struct mark load_mark(const struct expand_arguments *work, const struct strip *strip, uint32_t word)
{
    struct four read = *AT(const struct four, work->slot + work->marks_at + (strip->row * work->row_marks + word) * 16);
    struct mark mark = {(uint64_t)read.y << 32 | read.x, read.z, read.w};
    return mark;
}

/* Computes, for each element of a strip, its position, the number of its document, and, if `ahead` is set, whether the
 * next token is in the same document (within). The next token needs a mark then. */
INLINE void evaluate_marks(const struct expand_arguments *work, const struct strip *strip, uint32_t elements,
                           uint32_t ahead, uint64_t positions[4], uint64_t documents[4], uint64_t within[4])
{
    struct mark mark = {0, 0, 0};
    for (uint32_t k = 0; k < elements; k++) {
        uint32_t j = strip->from + k, bit = j % 64;
        if (k >= strip->count)
            continue;
        if (k == 0 || bit == 0)
            mark = load_mark(work, strip, j / 64);
        uint64_t starts = mark.starts & ~(uint64_t)0 >> (63 - bit);
        positions[k] = j - (starts ? j - bit + highest_bit(starts) : mark.last);
        documents[k] = mark.before + count_bits(starts) - 1;
        if (ahead)
            within[k] = 1 ^ (bit < 63 ? mark.starts >> (bit + 1) & 1 : load_mark(work, strip, j / 64 + 1).starts & 1);
    }
}

/* Returns the bounds of a row; without bounds, that of a row that counts from start to end. */
INLINE struct row_bounds load_bounds(const struct expand_arguments *work, uint64_t row)
{
    struct row_bounds bounds = {0, work->row_tokens};
    if (work->bounds) {
        struct four read = *AT(const struct four, work->slot + work->bounds_at + row * 16);
        bounds.scored_from = (uint64_t)read.y << 32 | read.x;
        bounds.tokens = (uint64_t)read.w << 32 | read.z;
    }
    return bounds;
}

/* Returns whether the dataset's mask excludes a target of a row. */
INLINE uint32_t is_uncounted(const struct expand_arguments *work, uint64_t row, uint64_t target)
{
    uint64_t at = work->slot + work->bits_at + (row * work->row_bits + target / 64) * 8;
    return work->row_bits ? (uint32_t)(*AT(const uint64_t, at) >> target % 64) & 1 : 0;
}

/* Clears `within` for each element of a strip whose target does not count, and reports whether it is in padding. */
INLINE void evaluate_counts(const struct expand_arguments *work, const struct strip *strip, uint32_t elements,
                            uint64_t within[4], uint32_t padding[4])
{
    const struct row_bounds bounds = load_bounds(work, strip->row);
    for (uint32_t k = 0; k < elements; k++) {
        uint64_t j = (uint64_t)strip->from + k;
        padding[k] = j + 1 >= bounds.tokens;
        if (k < strip->count && (padding[k] || j < bounds.scored_from || is_uncounted(work, strip->row, j)))
            within[k] = 0;
    }
}

/* What the requested outputs are computed from. */
struct needs {
    uint32_t tokens;
    uint32_t marks;
    uint32_t ahead;  /* also the mark of the token after the strip */
    uint32_t counts; /* whether targets count: their bits and their row's bounds */
};

INLINE struct needs needs_of(const struct expand_arguments *work)
{
    struct needs needs;
    needs.tokens = work->inputs || work->targets;
    needs.ahead = work->loss_mask || (work->targets && work->mask_targets);
    needs.marks = work->position_ids || work->document_ids || needs.ahead;
    needs.counts = (needs.ahead && work->row_bits) || ((needs.ahead || work->targets) && work->bounds);
    return needs;
}

INLINE void expand_strip(const struct expand_arguments *work, const struct needs *needs, const struct strip *strip,
                         uint32_t width, uint32_t element)
{
    uint64_t tokens[5] = {0}, positions[4] = {0}, documents[4] = {0}, within[4] = {0};
    uint32_t padding[4] = {0};
    if (needs->tokens)
        load_tokens(work, strip, width, 16 / element, tokens);
    if (needs->marks)
        evaluate_marks(work, strip, 16 / element, needs->ahead, positions, documents, within);
    if (needs->counts)
        evaluate_counts(work, strip, 16 / element, within, padding);
    if (work->inputs)
        store(work->inputs, work, strip, element, tokens);
    if (work->targets) {
        for (uint32_t k = 0; k < 16 / element; k++)
            tokens[k] = padding[k] || (work->mask_targets && !within[k]) ? (uint64_t)IGNORE : tokens[k + 1];
        store(work->targets, work, strip, element, tokens);
    }
    if (work->position_ids)
        store(work->position_ids, work, strip, element, positions);
    if (work->document_ids)
        store(work->document_ids, work, strip, element, documents);
    if (work->loss_mask)
        store(work->loss_mask, work, strip, element, within);
}

INLINE void expand_fields(const struct expand_arguments *work, const struct needs *needs, uint32_t thread,
                          uint32_t threads, uint32_t width, uint32_t element)
{
    uint64_t first = work->inputs         ? work->inputs
                     : work->targets      ? work->targets
                     : work->position_ids ? work->position_ids
                     : work->document_ids ? work->document_ids
                                          : work->loss_mask;
    const struct division division = divide(first, work->seq_len, element);
    struct iterator iterator = iterator_begin(&division, thread, threads);
    for (; iterator.row < work->count; iterator_next(&iterator, &division)) {
        struct strip strip = strip_of(&division, &iterator);
        if (strip.count)
            expand_strip(work, needs, &strip, width, element);
    }
}

/* Copies the rows as they are. */
INLINE void copy_rows(const struct expand_arguments *work, uint32_t thread, uint32_t threads, uint32_t width)
{
    const struct division division = divide(work->rows, work->row_tokens, width);
    struct iterator iterator = iterator_begin(&division, thread, threads);
    for (; iterator.row < work->count; iterator_next(&iterator, &division)) {
        struct strip strip = strip_of(&division, &iterator);
        uint64_t from = work->slot + strip.row * work->row_stride + (uint64_t)strip.from * width;
        uint64_t to = work->rows + (strip.row * work->row_tokens + strip.from) * width;
        if (strip.whole && (from | to) % 16 == 0) {
            *AT(struct four, to) = *AT(const struct four, from);
            continue;
        }
        for (uint32_t k = 0; k < strip.count; k++)
            if (width == 4)
                *AT(uint32_t, to + k * 4) = *AT(const uint32_t, from + k * 4);
            else
                *AT(uint16_t, to + k * 2) = *AT(const uint16_t, from + k * 2);
    }
}

/* Returns whether a document starts at any of the tokens [from, to] of a row. */
INLINE uint32_t starts_between(const struct expand_arguments *work, uint64_t row, uint64_t from, uint64_t to)
{
    for (uint64_t word = from / 64; word <= to / 64; word++) {
        uint64_t at = work->slot + work->marks_at + (row * work->row_marks + word) * 16;
        uint64_t starts = *AT(const uint64_t, at);
        if (word == from / 64)
            starts &= ~(uint64_t)0 << from % 64;
        if (word == to / 64)
            starts &= ~(uint64_t)0 >> (63 - to % 64);
        if (starts)
            return 1;
    }
    return 0;
}

INLINE uint64_t token_of(const struct expand_arguments *work, uint64_t row, uint64_t token)
{
    const uint64_t at = work->slot + row * work->row_stride + token * work->width;
    return work->width == 4 ? *AT(const uint32_t, at) : *AT(const uint16_t, at);
}

/* Returns element k of input j: token j + 1 + k, or IGNORE where that does not count and `masked` is set. */
INLINE uint64_t target_ahead(const struct expand_arguments *work, const struct row_bounds *bounds, uint64_t row,
                             uint64_t j, uint32_t k, uint32_t masked)
{
    uint64_t token = j + 1 + k;
    if (token >= bounds->tokens)
        return (uint64_t)IGNORE;
    if (masked &&
        (j < bounds->scored_from || is_uncounted(work, row, token - 1) || starts_between(work, row, j + 1, token)))
        return (uint64_t)IGNORE;
    return token_of(work, row, token);
}

/* Writes element `at` of the output that begins at address `base`. */
INLINE void store_element(uint64_t base, const struct expand_arguments *work, uint64_t at, uint64_t value)
{
    if (work->element == 8)
        *AT(uint64_t, base + at * 8) = value;
    else
        *AT(uint32_t, base + at * 4) = (uint32_t)value;
}

/* Expands elements, of which each thread writes one at a time: lanes of a warp write consecutive elements, whatever
 * their alignment, and the code is small, because it is the same for all sizes. */
INLINE void expand_ahead(const struct expand_arguments *work, uint32_t thread, uint32_t threads)
{
    const uint32_t many = (uint32_t)(work->row_tokens - work->seq_len);
    const struct division division = {work->seq_len * many, 1, 0, 0, (uint32_t)work->seq_len * many};
    struct iterator iterator = iterator_begin(&division, thread, threads);
    for (; iterator.row < work->count; iterator_next(&iterator, &division)) {
        const struct row_bounds bounds = load_bounds(work, iterator.row);
        const uint64_t value = target_ahead(work, &bounds, iterator.row, iterator.number / many, iterator.number % many,
                                            work->mask_targets);
        store_element(work->targets_ahead, work, iterator.row * division.row_elements + iterator.number, value);
    }
}

/* Label j is target j - 1, if that counts. Label 0 of a chunk may count too, and its token is then the first one. */
INLINE void expand_labels(const struct expand_arguments *work, uint32_t thread, uint32_t threads)
{
    const struct division division = {work->seq_len, 1, 0, 0, (uint32_t)work->seq_len};
    struct iterator iterator = iterator_begin(&division, thread, threads);
    for (; iterator.row < work->count; iterator_next(&iterator, &division)) {
        const struct row_bounds bounds = load_bounds(work, iterator.row);
        uint64_t value = (uint64_t)IGNORE;
        if (iterator.number)
            value = target_ahead(work, &bounds, iterator.row, iterator.number - 1, 0, 1);
        else if (work->first_labels && !is_uncounted(work, iterator.row, work->row_tokens - 1))
            value = token_of(work, iterator.row, 0);
        store_element(work->labels, work, iterator.row * work->seq_len + iterator.number, value);
    }
}

/* Copies the part of the slot at `from` to the output at `to`: cu_seqlens, or that of the slice. */
INLINE void copy_cu(const struct expand_arguments *work, uint64_t from, uint64_t to, uint64_t thread, uint64_t threads)
{
    uint64_t done = 0;
    if (to % 16 == 0) {
        done = work->cu_elements / 4 * 4;
        for (uint64_t i = thread * 4; i < done; i += threads * 4)
            *AT(struct four, to + i * 4) = *AT(const struct four, from + i * 4);
    }
    for (uint64_t i = done + thread; i < work->cu_elements; i += threads)
        *AT(uint32_t, to + i * 4) = *AT(const uint32_t, from + i * 4);
}

INLINE void expand_sources(const struct expand_arguments *work, uint64_t thread, uint64_t threads)
{
    for (uint64_t i = thread; i < work->sources; i += threads)
        store_element(work->source_ids, work, i,
                      (uint64_t)(int64_t)*AT(const int32_t, work->slot + work->sources_at + i * 4));
}

INLINE void expand_thread(const struct expand_arguments *work, uint32_t thread, uint32_t threads)
{
    const struct needs needs = needs_of(work);
    if (needs.tokens || needs.marks) {
        if (work->width == 2 && work->element == 4)
            expand_fields(work, &needs, thread, threads, 2, 4);
        else if (work->width == 2)
            expand_fields(work, &needs, thread, threads, 2, 8);
        else if (work->element == 4)
            expand_fields(work, &needs, thread, threads, 4, 4);
        else
            expand_fields(work, &needs, thread, threads, 4, 8);
    }
    if (work->targets_ahead)
        expand_ahead(work, thread, threads);
    if (work->labels)
        expand_labels(work, thread, threads);
    if (work->rows && work->width == 2)
        copy_rows(work, thread, threads, 2);
    else if (work->rows)
        copy_rows(work, thread, threads, 4);
    if (work->source_ids)
        expand_sources(work, threads - 1 - thread, threads);
    if (work->cu_seqlens) /* in reverse order of threads, because the first threads may have had one more strip */
        copy_cu(work, work->slot + work->cu_at, work->cu_seqlens, threads - 1 - thread, threads);
    if (work->cu_seqlens_slice)
        copy_cu(work, work->slot + work->cu_slice_at, work->cu_seqlens_slice, threads - 1 - thread, threads);
}

#ifdef __CUDACC__
/* How many blocks a multiprocessor can hold follows from the registers that a thread uses. The compiler's own choice
 * spills registers on some GPUs. With these bounds it spills on none; tests/lint looks. */
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200
#define BLOCKS_HELD 5
#else
#define BLOCKS_HELD EXPAND_BLOCKS_HELD
#endif
extern "C" __global__ void __launch_bounds__(EXPAND_BLOCK, BLOCKS_HELD) tokmap_expand(struct expand_arguments work)
{
    expand_thread(&work, blockIdx.x * EXPAND_BLOCK + threadIdx.x, gridDim.x * EXPAND_BLOCK);
}
#endif
