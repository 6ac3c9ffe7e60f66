/*
 * expand_arguments.h - what is told to whoever expands a batch, the host (expand.c) or the kernel on a GPU (expand.cu):
 * where the slot lies, what is where in it, and where the outputs go. The kernel gets the struct by value, so its
 * layout is fixed: 64-bit words first, no padding. Plain C that a CUDA compiler takes too.
 *
 * A slot holds, each part at a multiple of 64 bytes:
 *
 *     rows     `count` of them and room for more, row_stride bytes from one to the next
 *     marks    row_marks for each row: see common/mark.h; the host needs their bits alone. Only where a field needs
 *              them
 *     cu       int32, cu_elements of them, all of them valid. Only where cu_seqlens is asked for
 */
#ifndef TOKMAP_STAGING_EXPAND_ARGUMENTS_H
#define TOKMAP_STAGING_EXPAND_ARGUMENTS_H

#include <stdint.h>

struct expand_arguments {
    /* Addresses on the device that expands. The backend sets `slot`: the slot's memory there, a multiple of 64. */
    uint64_t slot;
    /* The outputs, at multiples of their elements' sizes on a GPU, at any address on the host; 0: not asked for. */
    uint64_t inputs;
    uint64_t targets;       /* row_tokens > seq_len then */
    uint64_t position_ids;
    uint64_t document_ids;
    uint64_t loss_mask;     /* row_tokens > seq_len then */
    uint64_t rows;          /* the rows as they are, without gaps */
    uint64_t cu_seqlens;
    /* In the slot, in bytes. */
    uint64_t row_stride;
    uint64_t marks_at;
    uint64_t cu_at;
    uint64_t cu_elements;
    uint64_t row_marks;     /* those of seq_len tokens, and of one more where row_tokens > seq_len */
    uint64_t count;         /* rows */
    uint64_t seq_len;       /* 1 .. 2^31 */
    uint64_t row_tokens;    /* seq_len .. 2^32 */
    uint32_t width;         /* bytes of a token in the slot: 2 or 4 */
    uint32_t element;       /* bytes of an element of the outputs, rows and cu_seqlens left out: 4 or 8 */
    uint32_t mask_targets;  /* 1: targets that lie in another document than their token are TOKMAP_IGNORE */
    uint32_t reserved;      /* 0 */
};

/* Threads of a block, and the blocks that a multiprocessor of any kind holds at once: 64 registers a thread are there then,
 * and the kernel needs at most 56. All blocks of a launch run at once, so none is left over to run alone at its end. */
#define EXPAND_BLOCK 256
#define EXPAND_BLOCKS_HELD 4

/* The most pieces of 16 bytes that a row of so many elements of so many bytes touches, wherever it begins. */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline uint64_t expand_row_pieces(uint64_t elements, uint32_t bytes)
{
    uint32_t in_a_piece = 16 / bytes;
    return (elements + in_a_piece - 2) / in_a_piece + 1;
}

/* rows * pieces, or `most` if that is less. */
static inline uint64_t expand_at_most(uint64_t rows, uint64_t pieces, uint64_t most)
{
    return rows < most / pieces ? rows * pieces : most;
}

/* The number of blocks of EXPAND_BLOCK threads that expand this batch best on a device of `processors` multiprocessors.
 * Any other number >= 1 gives the same outputs: each thread takes every n-th piece. */
static inline uint32_t expand_blocks(const struct expand_arguments *work, uint32_t processors)
{
    uint64_t blocks = (processors ? processors : 1) * (uint64_t)EXPAND_BLOCKS_HELD, most = blocks * EXPAND_BLOCK;
    uint64_t pieces = expand_at_most(work->count, expand_row_pieces(work->seq_len, work->element), most);
    uint64_t raw =
        work->rows ? expand_at_most(work->count, expand_row_pieces(work->row_tokens, work->width), most) : 0;
    uint64_t cu = work->cu_seqlens ? work->cu_elements / 4 : 0;
    pieces = raw > pieces ? raw : pieces;
    pieces = cu > pieces ? cu : pieces;
    return (uint32_t)(pieces < most ? pieces / EXPAND_BLOCK + 1 : blocks);
}

#endif
