/* SPDX-License-Identifier: MIT */
/* bpe_words_merge.h - the model of words (bpe_words.h), the symbols that a word begins as, and their merges. */
#ifndef TOKMAP_BPE_BPE_WORDS_MERGE_H
#define TOKMAP_BPE_BPE_WORDS_MERGE_H

#include "bpe_model.h"

/* The places of a character in its word: bits of the number of a row's column. */
#define BPE_WORD_INNER 1u /* not the first */
#define BPE_WORD_LAST 2u

struct bpe_words {
    struct bpe_model head; /* must be first. Pairs are of ids; texts are those of words */
    uint8_t *names;        /* see bpe_words_source; the texts of head if they are the same */
    uint32_t *name_offsets;
    uint32_t *atoms;     /* by code point (or byte, if `mapped`): number of its row + 1; 0: no token has it */
    uint32_t (*rows)[4]; /* by place: the token of the character there, or BPE_NONE */
    uint64_t row_room;
    uint32_t row_count;
    uint8_t *affixes; /* the prefix, then the suffix */
    uint32_t prefix_bytes, suffix_bytes;
    uint32_t unk;
    uint32_t fallback_places; /* bit i: a character at place i may become the tokens of its bytes */
    bool fuse_unk, mapped, front;
};
_Static_assert(offsetof(struct bpe_words, head) == 0, "bpe_words_merge() casts the head to the model");

/* What merging begins with. */
struct bpe_word_symbol {
    uint32_t id;
    size_t begin, end; /* its bytes of the word */
};

/* A place in a word. Initialize bytes and count, and the rest with zeros. */
struct bpe_word_reader {
    const uint8_t *bytes;
    size_t count, at;
    size_t unknown_begin, unknown_end; /* characters that become the next unknown token; empty: none */
    size_t fallback_at, fallback_end;  /* bytes that become the next tokens */
};

/* Reads the next symbol. Returns false at the end of the word. */
bool bpe_word_next(const struct bpe_words *words, struct bpe_word_reader *reader, struct bpe_word_symbol *symbol);

/* A bpe_merge_function; `model` must be the head of a struct bpe_words, and the word must have a symbol. */
bpe_merge_function bpe_words_merge;

#endif
