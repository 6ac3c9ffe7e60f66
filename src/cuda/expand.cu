/*
 * expand.cu - what expand.c does, on a GPU: one launch a batch writes every output that is asked for.
 *
 * The unit of work is a piece: 16 bytes of an output row, 4 elements of 4 bytes or 2 of 8, at an address that 16 divides.
 * Thread t takes the pieces t, t + threads, t + 2 threads .. of all rows, so the lanes of a warp write 16 consecutive
 * bytes each, to every output, and read the 4 to 16 bytes of tokens that belong to them. A row whose output does not begin
 * at a multiple of 16 has a shorter first and last piece, written element by element; so is all of an output that lies
 * otherwise to multiples of 16 than the first one. Reading follows the slot, whose rows do begin there: where the pieces
 * lie otherwise, tokens are read one by one, from the cache.
 *
 * Positions, documents and masks are found from one word of marks, the same for the 16 or 32 lanes beside each other.
 *
 * The file is C as well as CUDA. As C it runs on the host, thread after thread: that is what the tests compare, and what
 * an emulated driver launches. `make ptx` makes expand.ptx of it, which is what the library holds.
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

/* A piece of a row: elements [from, from + count) of it, whole if that are as many as a piece has. */
struct piece {
    uint64_t row;
    uint32_t from;
    uint32_t count;
    uint32_t whole;
};

/* How rows are cut into pieces: those of the fields, or those of the rows as they are. */
struct cut {
    uint64_t row_elements;
    uint32_t elements;   /* of a piece */
    uint32_t phase;      /* elements that the output's address is past a multiple of 16 */
    uint32_t row_phase;  /* those that each row adds */
    uint32_t row_pieces;
};

INLINE struct cut cut_of(uint64_t output, uint64_t row_elements, uint32_t bytes)
{
    struct cut cut;
    cut.row_elements = row_elements;
    cut.elements = 16 / bytes;
    cut.phase = (uint32_t)(output % 16) / bytes;
    cut.row_phase = (uint32_t)(row_elements % cut.elements);
    cut.row_pieces = (uint32_t)(cut.phase | cut.row_phase ? expand_row_pieces(row_elements, bytes)
                                                          : row_elements / cut.elements);
    return cut;
}

/* Where a thread is: it goes on by `threads` pieces, over the rows' ends, without a division. */
struct place {
    uint64_t row;
    uint32_t number; /* of the piece in the row */
    uint32_t rows_on, pieces_on;
};

INLINE struct place place_of(const struct cut *cut, uint32_t thread, uint32_t threads)
{
    struct place place = {thread / cut->row_pieces, thread % cut->row_pieces, threads / cut->row_pieces,
                          threads % cut->row_pieces};
    return place;
}

INLINE void move_on(struct place *place, const struct cut *cut)
{
    place->row += place->rows_on;
    place->number += place->pieces_on;
    if (place->number >= cut->row_pieces) {
        place->number -= cut->row_pieces;
        place->row++;
    }
}

/* The piece there; its count is 0 where the row has no such piece. */
INLINE struct piece piece_of(const struct cut *cut, const struct place *place)
{
    struct piece piece;
    uint32_t skew = (cut->phase + (uint32_t)place->row * cut->row_phase) % cut->elements;
    uint64_t from = (uint64_t)place->number * cut->elements, to = from + cut->elements - skew;
    from = from > skew ? from - skew : 0;
    to = to < cut->row_elements ? to : cut->row_elements;
    piece.row = place->row;
    piece.from = (uint32_t)from;
    piece.count = from < to ? (uint32_t)(to - from) : 0;
    piece.whole = piece.count == cut->elements;
    return piece;
}

/* The tokens of a piece and, for targets, the one behind it. */
INLINE void load_tokens(const struct expand_arguments *work, const struct piece *piece, uint32_t width, uint32_t elements,
                        uint64_t tokens[5])
{
    uint64_t at = work->slot + piece->row * work->row_stride + (uint64_t)piece->from * width;
    uint32_t done = 0, wanted = piece->count + (work->targets != 0);
    if (piece->whole && piece->from % elements == 0) {
        if (width * elements == 16) {
            struct four read = *AT(const struct four, at);
            tokens[0] = read.x, tokens[1] = read.y, tokens[2] = read.z, tokens[3] = read.w;
        } else if (width == 4) {
            struct two read = *AT(const struct two, at);
            tokens[0] = read.x, tokens[1] = read.y;
        } else if (elements == 4) {
            struct two read = *AT(const struct two, at);
            tokens[0] = read.x & 0xffff, tokens[1] = read.x >> 16;
            tokens[2] = read.y & 0xffff, tokens[3] = read.y >> 16;
        } else {
            uint32_t read = *AT(const uint32_t, at);
            tokens[0] = read & 0xffff, tokens[1] = read >> 16;
        }
        done = elements;
    }
    for (uint32_t k = 0; k <= elements; k++)
        if (k >= done && k < wanted)
            tokens[k] = width == 4 ? *AT(const uint32_t, at + k * 4) : *AT(const uint16_t, at + k * 2);
}

/* Writes a piece's elements to the output that begins at address `base`. */
INLINE void store(uint64_t base, const struct expand_arguments *work, const struct piece *piece, uint32_t element,
                  const uint64_t values[4])
{
    uint64_t at = base + (piece->row * work->seq_len + piece->from) * element;
    if (piece->whole && at % 16 == 0) {
        struct four write;
        write.x = (uint32_t)values[0];
        write.y = (uint32_t)(element == 8 ? values[0] >> 32 : values[1]);
        write.z = (uint32_t)(element == 8 ? values[1] : values[2]);
        write.w = (uint32_t)(element == 8 ? values[1] >> 32 : values[3]);
        *AT(struct four, at) = write;
        return;
    }
    for (uint32_t k = 0; k < 16 / element; k++)
        if (k < piece->count && element == 8)
            *AT(uint64_t, at + k * 8) = values[k];
        else if (k < piece->count)
            *AT(uint32_t, at + k * 4) = (uint32_t)values[k];
}

INLINE struct mark load_mark(const struct expand_arguments *work, const struct piece *piece, uint32_t word)
{
    struct four read = *AT(const struct four, work->slot + work->marks_at + (piece->row * work->row_marks + word) * 16);
    struct mark mark = {(uint64_t)read.y << 32 | read.x, read.z, read.w};
    return mark;
}

/* What the marks say of each element of a piece. ahead: whether the next token is of interest, and has a mark. */
INLINE void look_up(const struct expand_arguments *work, const struct piece *piece, uint32_t elements, uint32_t ahead,
                    uint64_t positions[4], uint64_t documents[4], uint64_t within[4])
{
    struct mark mark = {0, 0, 0};
    for (uint32_t k = 0; k < elements; k++) {
        uint32_t j = piece->from + k, bit = j % 64;
        if (k >= piece->count)
            continue;
        if (k == 0 || bit == 0)
            mark = load_mark(work, piece, j / 64);
        uint64_t starts = mark.starts & ~(uint64_t)0 >> (63 - bit);
        positions[k] = j - (starts ? j - bit + highest_bit(starts) : mark.last);
        documents[k] = mark.before + count_bits(starts) - 1;
        if (ahead)
            within[k] = 1 ^ (bit < 63 ? mark.starts >> (bit + 1) & 1 : load_mark(work, piece, j / 64 + 1).starts & 1);
    }
}

/* What the fields that are asked for are made of. */
struct needs {
    uint32_t tokens;
    uint32_t marks;
    uint32_t ahead; /* the mark of the next token, too */
};

INLINE struct needs needs_of(const struct expand_arguments *work)
{
    struct needs needs;
    needs.tokens = work->inputs || work->targets;
    needs.ahead = work->loss_mask || (work->targets && work->mask_targets);
    needs.marks = work->position_ids || work->document_ids || needs.ahead;
    return needs;
}

INLINE void expand_piece(const struct expand_arguments *work, const struct needs *needs, const struct piece *piece,
                         uint32_t width, uint32_t element)
{
    uint64_t tokens[5] = {0}, positions[4] = {0}, documents[4] = {0}, within[4] = {0};
    if (needs->tokens)
        load_tokens(work, piece, width, 16 / element, tokens);
    if (needs->marks)
        look_up(work, piece, 16 / element, needs->ahead, positions, documents, within);
    if (work->inputs)
        store(work->inputs, work, piece, element, tokens);
    if (work->targets) {
        for (uint32_t k = 0; k < 16 / element; k++)
            tokens[k] = work->mask_targets && !within[k] ? (uint64_t)IGNORE : tokens[k + 1];
        store(work->targets, work, piece, element, tokens);
    }
    if (work->position_ids)
        store(work->position_ids, work, piece, element, positions);
    if (work->document_ids)
        store(work->document_ids, work, piece, element, documents);
    if (work->loss_mask)
        store(work->loss_mask, work, piece, element, within);
}

INLINE void expand_fields(const struct expand_arguments *work, const struct needs *needs, uint32_t thread,
                          uint32_t threads, uint32_t width, uint32_t element)
{
    uint64_t first = work->inputs         ? work->inputs
                     : work->targets      ? work->targets
                     : work->position_ids ? work->position_ids
                     : work->document_ids ? work->document_ids
                                          : work->loss_mask;
    const struct cut cut = cut_of(first, work->seq_len, element);
    for (struct place place = place_of(&cut, thread, threads); place.row < work->count; move_on(&place, &cut)) {
        struct piece piece = piece_of(&cut, &place);
        if (piece.count)
            expand_piece(work, needs, &piece, width, element);
    }
}

/* The rows as they are. */
INLINE void copy_rows(const struct expand_arguments *work, uint32_t thread, uint32_t threads, uint32_t width)
{
    const struct cut cut = cut_of(work->rows, work->row_tokens, width);
    for (struct place place = place_of(&cut, thread, threads); place.row < work->count; move_on(&place, &cut)) {
        struct piece piece = piece_of(&cut, &place);
        uint64_t from = work->slot + piece.row * work->row_stride + (uint64_t)piece.from * width;
        uint64_t to = work->rows + (piece.row * work->row_tokens + piece.from) * width;
        if (piece.whole && (from | to) % 16 == 0) {
            *AT(struct four, to) = *AT(const struct four, from);
            continue;
        }
        for (uint32_t k = 0; k < piece.count; k++)
            if (width == 4)
                *AT(uint32_t, to + k * 4) = *AT(const uint32_t, from + k * 4);
            else
                *AT(uint16_t, to + k * 2) = *AT(const uint16_t, from + k * 2);
    }
}

INLINE void copy_cu(const struct expand_arguments *work, uint64_t thread, uint64_t threads)
{
    uint64_t from = work->slot + work->cu_at, to = work->cu_seqlens, done = 0;
    if (to % 16 == 0) {
        done = work->cu_elements / 4 * 4;
        for (uint64_t i = thread * 4; i < done; i += threads * 4)
            *AT(struct four, to + i * 4) = *AT(const struct four, from + i * 4);
    }
    for (uint64_t i = done + thread; i < work->cu_elements; i += threads)
        *AT(uint32_t, to + i * 4) = *AT(const uint32_t, from + i * 4);
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
    if (work->rows && work->width == 2)
        copy_rows(work, thread, threads, 2);
    else if (work->rows)
        copy_rows(work, thread, threads, 4);
    if (work->cu_seqlens) /* from the last thread on: the first ones may have had a piece more */
        copy_cu(work, threads - 1 - thread, threads);
}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(EXPAND_BLOCK) tokmap_expand(struct expand_arguments work)
{
    expand_thread(&work, blockIdx.x * EXPAND_BLOCK + threadIdx.x, gridDim.x * EXPAND_BLOCK);
}
#endif
