/* SPDX-License-Identifier: MIT */
/*
 * bpe_encode.h - from text to ids with a bpe_model, for one thread, whose state bpe_state.h has.
 *
 * bpe_encode.c explains the method. A state belongs to one thread at a time; any number of states share a model, which
 * must outlive them. All memory is allocated when the state is made, except for what merging a long piece may need.
 */
#ifndef TOKMAP_BPE_BPE_ENCODE_H
#define TOKMAP_BPE_BPE_ENCODE_H

#include "bpe_state.h"

/* Makes a state; free it with bpe_state_free(). *state is NULL on failure. variant: cpu_variant_best(); tests pass
 * lower ones. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status bpe_state_new(struct bpe_state **state, const struct bpe_model *model, enum cpu_variant variant,
                                 struct tokmap_error *error);
/* Frees a state; NULL is ignored. */
void bpe_state_free(struct bpe_state *state);

/* Writes the ids of a text to `tokens`: 16 bits each, or 32 if model->wide. The text is cut into pieces on its own;
 * nothing carries over from one call to the next. room: in tokens, at least `count`. *written is the number of ids,
 * and state->largest is raised to the largest id. After ERROR_MEMORY the tokens are not meaningful, and the state
 * can be used again. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status bpe_encode(struct bpe_state *state, const uint8_t *text, uint64_t count, void *tokens, uint64_t room,
                              uint64_t *written, struct tokmap_error *error);

/* Does the same for a piece of at least one byte that the caller has cut. `tokens` has room for `count`. */
enum tokmap_status bpe_encode_piece(struct bpe_state *state, const uint8_t *piece, uint64_t count, void *tokens,
                                    uint64_t *written, struct tokmap_error *error);

/* Returns the status that encoding ends with: OK, ERROR_INTERRUPTED if state->scratch was stopped, or ERROR_MEMORY if a
 * piece of text, of about this many bytes, could not be merged. */
enum tokmap_status bpe_state_check(struct bpe_state *state, uint64_t bytes, struct tokmap_error *error);

/* Writes the ids of a chunk of 1 to SCAN_BYTES bytes whose pieces begin at the bits of state->chunk.starts: bit 0 is
 * set, and the bits from `count` up to the end of their word are 0. The caller has set state->text_end. room: in
 * tokens, at least `count`. Returns the number of ids; raises state->largest; sets state->lacks_memory if memory ran
 * out. */
size_t bpe_encode_starts(struct bpe_state *state, const uint8_t *text, size_t count, void *tokens, uint64_t room);

/* ---- between bpe_encode.c and its CPU variants ---- */

/* Returns the bucket of piece i of the batch. Its place is kept in bytes, which saves a shift in loops that only read
 * it. */
static inline struct bpe_bucket *bpe_batch_bucket(const struct bpe_state *state, uint32_t i)
{
    return (struct bpe_bucket *)(void *)((uint8_t *)state->buckets + state->batch_places[i]);
}

/* Writes the ids of text[from, to), which was not in its first place in the first cache. Returns how many, at most
 * to - from; 0 if memory ran out. */
size_t bpe_miss(struct bpe_state *state, const uint8_t *text, size_t from, size_t to, void *tokens);

/* Does the same for piece i of the batch. `tokens` is where the batch's ids begin, and `into` where this piece's do. A
 * piece that has to be merged may become pending; then the result is the room that is left for its ids. */
size_t bpe_miss_batch(struct bpe_state *state, const uint8_t *text, const uint16_t *positions, uint32_t i, void *into,
                      const void *tokens);

bpe_pieces_function bpe_pieces_scalar;
bpe_hash_function bpe_hash_scalar;
#if defined(__x86_64__)
bpe_hash_function bpe_hash_aes; /* only if cpu_has(CPU_AVX2) */
bpe_pieces_function bpe_pieces_avx2;
bpe_pieces_function bpe_pieces_vbmi;
#endif

/* Stores the hash of piece i of the batch, of more than 15 bytes, in its key, and i in batch_longs. Returns its line of
 * the second cache. */
const struct bpe_long *bpe_long_line(struct bpe_state *state, uint32_t i, const uint8_t *bytes, uint32_t count);

#endif
