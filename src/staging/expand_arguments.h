/* SPDX-License-Identifier: MIT */
/*
 * expand_arguments.h - what the function or the kernel that expands a batch needs: where the slot is, what is where in
 * it, and where the outputs go. The host (expand.c) and the kernel on a GPU (expand.cu) take the same struct. A kernel
 * gets it by value, so its layout is fixed: 64-bit numbers first, no padding. This header is plain C that a CUDA
 * compiler accepts, too.
 *
 * A slot has these parts; each begins at a multiple of 64 bytes:
 *
 *     rows     `count` rows, with room for more; each begins row_stride bytes after the one before
 *     marks    row_marks marks per row, see batch/mark.h. Present only if a field needs them. The host reads only
 *              their bits
 *     bits     row_bits words per row: which targets the mask of the dataset excludes, see batch/mark.h. Present only
 *              if row_bits is not 0
 *     bounds  a struct row_bounds per row. Present only if `bounds` is 1
 *     sources  an int32 per row of the run: the number of its source, or -100. Present only if source_ids is requested
 *     cu       cu_elements values of type int32, all of them valid. Present only if cu_seqlens is requested. The same
 *              for cu_seqlens_slice
 *     chunks   row_chunks chunks per row. Present only if row_chunks is not 0
 *
 * A rank that shares its rows with others has chunks of each, runs of columns. If all chunks have one size, each is a
 * row to this struct, whose marks say how far before it its first document began. If they differ, as chunks of
 * documents do, a row has a list of them, and parts of its own for each. Only the host expands these.
 */
#ifndef TOKMAP_STAGING_EXPAND_ARGUMENTS_H
#define TOKMAP_STAGING_EXPAND_ARGUMENTS_H

#include <stdint.h>

/* Columns [first, first + count) of an output's row, and where in the slot, in bytes from its start, their parts are.
 * tokens_at is a multiple of 64. The first chunk of a list without columns ends it. */
struct expand_chunk {
    uint64_t first, count;
    uint64_t tokens_at, marks_at, bits_at;
    uint64_t scored_from, tokens; /* the bounds of the chunk, see batch/mark.h */
};

struct expand_arguments {
    /* All addresses are on the device that expands. `slot`, a multiple of 64, is set by the backend. */
    uint64_t slot;
    /* The outputs; 0: not requested. On a GPU they are multiples of the size of their elements; on the host they may
     * have any alignment. */
    uint64_t inputs;
    uint64_t targets; /* needs row_tokens > seq_len */
    uint64_t position_ids;
    uint64_t document_ids;
    uint64_t loss_mask; /* needs row_tokens > seq_len */
    uint64_t rows;      /* the rows in their own width, without gaps */
    uint64_t cu_seqlens;
    uint64_t targets_ahead; /* needs row_tokens > seq_len, and seq_len * (row_tokens - seq_len) < 2^31 */
    uint64_t labels;
    uint64_t source_ids; /* `sources` elements */
    uint64_t cu_seqlens_slice;
    /* The slot's layout, in bytes from its start. */
    uint64_t row_stride;
    uint64_t marks_at;
    uint64_t bits_at;
    uint64_t bounds_at;
    uint64_t sources_at;
    uint64_t sources; /* rows of the run in the batch, each of which may be several rows here */
    uint64_t cu_at;
    uint64_t cu_slice_at;
    uint64_t cu_elements; /* of cu_seqlens, and of cu_seqlens_slice */
    uint64_t row_marks;   /* at least mark_words(seq_len); mark_words(seq_len + 1) for targets and masks, and
                             mark_words(row_tokens) for targets_ahead */
    uint64_t row_bits;    /* 0, or at least mark_words(seq_len); mark_words(row_tokens - 1) for targets_ahead */
    uint64_t count;       /* rows of the batch */
    uint64_t seq_len;     /* 1 .. 2^31 */
    uint64_t row_tokens;  /* seq_len .. 2^32 */
    uint64_t chunks_at;
    uint64_t row_chunks;   /* if not 0, row_tokens - seq_len tokens follow each chunk, and row_stride, row_marks,
                              row_bits,   and bounds_at are not used */
    uint32_t width;        /* bytes of a token in the slot: 2 or 4 */
    uint32_t element;      /* bytes of an element of the outputs except rows and cu_seqlens: 4 or 8 */
    uint32_t mask_targets; /* 1: a target that does not count is TOKMAP_IGNORE; 0: only one in padding is */
    uint32_t bounds;       /* 1: the slot has bounds */
    uint32_t first_labels; /* 1: label 0 counts where bit row_tokens - 1 of a row's bits is 0; 0: it never does */
    uint32_t unused;
};

/* The threads of a block, and how many blocks every kind of multiprocessor can hold at once: that many leave 64
 * registers for each thread, which is what the kernel is compiled for. Some hold more; the driver knows. */
#define EXPAND_BLOCK 256
#define EXPAND_BLOCKS_HELD 4

/* Returns the largest number of 16-byte strips that a row of `elements` elements of `bytes` bytes touches, wherever it
 * begins. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint64_t
    expand_row_strips(uint64_t elements, uint32_t bytes)
{
    uint32_t per_strip = 16 / bytes;
    return (elements + per_strip - 2) / per_strip + 1;
}

/* Returns the smaller of rows * strips and `most`. */
static inline uint64_t expand_at_most(uint64_t rows, uint64_t strips, uint64_t most)
{
    return rows < most / strips ? rows * strips : most;
}

/* Returns the number of blocks of EXPAND_BLOCK threads with which a device expands this batch fastest.
 *   held   how many of these blocks the device holds at once, on all its multiprocessors together; at least 1. With
 *          no more than that, all blocks of the launch run at the same time, and none is left to run alone at the end
 * Any number from 1 on produces the same outputs: of n threads each takes every n-th strip. */
static inline uint32_t expand_blocks(const struct expand_arguments *work, uint32_t held)
{
    uint64_t blocks = held ? held : 1, most = blocks * EXPAND_BLOCK;
    uint64_t strips = expand_at_most(work->count, expand_row_strips(work->seq_len, work->element), most);
    uint64_t raw = work->rows ? expand_at_most(work->count, expand_row_strips(work->row_tokens, work->width), most) : 0;
    uint64_t ahead = work->targets_ahead ? work->seq_len * (work->row_tokens - work->seq_len)
                     : work->labels      ? work->seq_len
                                         : 0;
    ahead = ahead ? expand_at_most(work->count, ahead, most) : 0;
    uint64_t cu = work->cu_seqlens || work->cu_seqlens_slice ? work->cu_elements / 4 : 0;
    strips = raw > strips ? raw : strips;
    strips = ahead > strips ? ahead : strips;
    strips = cu > strips ? cu : strips;
    return (uint32_t)(strips < most ? strips / EXPAND_BLOCK + 1 : blocks);
}

#endif
