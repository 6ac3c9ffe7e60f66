/* SPDX-License-Identifier: MIT */
/*
 * bpe_windows.h - short pieces of a text that are merged several at once (bpe_merge_lanes.h), and a long text in
 * windows that overlap and are merged so.
 *
 * Windows could be merged one after the other, each from the last token that the one before it left. Then each waits
 * for the one before, and each merge for the memory that holds its pairs. Here the windows begin at places that do not
 * depend on any merge: each overlaps the one before by BPE_OVERLAP bytes or more. So they can be in work at the same
 * time. The ids of a window are wrong near its borders, since it does not know what is beside it, but they are joined
 * without error wherever two windows share a token, one with the same first and last byte.
 *
 * Why this is exact: by the first fact of bpe_merge.c, two neighbors in the ids of a window are the ids of their bytes
 * together. So a row of tokens that goes from window to window at shared tokens has only neighbors that are, each two
 * of them, the ids of their bytes. By the second fact, such a row is the ids of all its bytes.
 *
 * Example with windows of 8 bytes that overlap by 4, for the text "the cathedral": the windows "the cath" and
 * "cathedra" give "the" " cat" "h" and "cat" "hed" "ra". They share no token, since " cat" begins before the second
 * window. Had the second given "ca" "t" "h" "ed" "ra", both would have the token "h", and the row would be "the" " cat"
 * "h" "ed" "ra".
 *
 * Where two windows do not share a token, the caller continues from the last one that was joined.
 *
 * Overlaps of 8, 12, 20, and 24 bytes had 0.5 to 1.0 times the rate of 16.
 */
#ifndef TOKMAP_BPE_BPE_WINDOWS_H
#define TOKMAP_BPE_BPE_WINDOWS_H

#include "bpe_model.h"

#define BPE_LANE_BYTES 62 /* the longest piece that can be merged together with others */
#define BPE_SIZES 3       /* classes of such pieces: up to 16 bytes, up to 32, and longer ones */

/* A piece of 1 to BPE_LANE_BYTES bytes, and its ids. */
struct bpe_piece {
    const uint8_t *bytes;
    uint32_t count;
    uint32_t ids_count; /* filled in */
    uint32_t *ids;      /* filled in; has room for `count` and 16 more */
    uint64_t starts;    /* filled in for pieces of bytes: a bit for each byte with which a token begins */
};

/* Returns the class of a piece of `count` bytes. */
static inline uint32_t bpe_size_class(uint32_t count)
{
    return (count > 16) + (count > 32);
}

/* Merges `count` pieces of at most this size class; faster if the longest come first. Cannot fail. */
typedef void bpe_merge_many_function(const struct bpe_model *model, struct bpe_piece *const *pieces, uint32_t count,
                                     uint32_t size_class);

#define BPE_OVERLAP 16 /* bytes: some tokens, so that windows of text nearly always share one */
#define BPE_WINDOWS 24 /* windows that are merged together at most; all have BPE_LANE_BYTES bytes */

#define BPE_WINDOW_IDS (BPE_LANE_BYTES + 16) /* room for the ids of one */

struct bpe_windows {
    struct bpe_piece pieces[BPE_WINDOWS];
    uint32_t count;
    uint32_t ids[BPE_WINDOWS * BPE_WINDOW_IDS];
};

/* Some of the tokens of a window, [from, to). The token after them, if any, begins at `end`, a number of bytes. */
struct bpe_window_tokens {
    uint32_t from, to, end;
};

/* Returns the number of windows that a text of `count` bytes has, at least BPE_LANE_BYTES. */
static inline uint32_t bpe_windows_of(size_t count)
{
    const size_t step = BPE_LANE_BYTES - BPE_OVERLAP;
    return 1 + (uint32_t)((count - BPE_LANE_BYTES + step - 1) / step);
}

/* Cuts a text into its first windows, at most `most` (at least 1), which have no ids yet. ids: BPE_WINDOW_IDS for each.
 * count: bytes, at least BPE_LANE_BYTES. Returns how many there are. If all of the text fits, the last window ends with
 * it. */
uint32_t bpe_windows_cut(struct bpe_piece *windows, uint32_t *ids, const uint8_t *bytes, size_t count, uint32_t most);

/* Does the same for at most BPE_WINDOWS windows, which are also merged. */
void bpe_windows_merge(struct bpe_windows *windows, const struct bpe_model *model, bpe_merge_many_function *many,
                       const uint8_t *bytes, size_t count, uint32_t most);

/* Finds the tokens of a window that belong to the row, and stores in *next the first one of the window after it that
 * does. from: the first one of this window. Returns false if the windows share no token from there on. */
bool bpe_windows_join(const struct bpe_piece *left, uint32_t from, struct bpe_window_tokens *tokens, uint32_t *next);

/* Does the same for the last window: all tokens, or those that end before its last quarter, which the text after it is
 * likely to change. */
struct bpe_window_tokens bpe_windows_last(const struct bpe_piece *window, uint32_t from, bool all);

/* Returns the first byte of the last of these tokens, which are at least one, in the window. */
uint32_t bpe_windows_start(const struct bpe_piece *window, struct bpe_window_tokens tokens);

/* Joins all windows of a text. Returns the number of its ids, or 0 if two neighbors share no token. */
uint32_t bpe_windows_ids(const struct bpe_piece *windows, uint32_t count, uint32_t *ids);

#endif
