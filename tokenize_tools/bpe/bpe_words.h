/* SPDX-License-Identifier: MIT */
/*
 * bpe_words.h - BPE over whole words, exactly as the model of Hugging Face tokenizers defines it: an engine for the
 * vocabularies that the engines of this room and of sentencepiece/ do not serve.
 *
 * A word is what the pre-tokenizer leaves. Merging begins with one symbol for each character (or byte, with a ByteLevel
 * step). Which symbol it is depends on the place of the character in the word: those after the first have a prefix
 * (continuing_subword_prefix), and the last one has a suffix (end_of_word_suffix). Example, with the suffix "</w>":
 * "low" begins as  l o w</w>,  where w</w> is another token than w. A character without a token becomes the unknown
 * token, the tokens of its bytes, or nothing.
 *
 * A word is looked up in the caches of bpe_encode.h by its own bytes. So only words that no cache holds know of prefix,
 * suffix, and unknown characters.
 */
#ifndef TOKMAP_BPE_BPE_WORDS_H
#define TOKMAP_BPE_BPE_WORDS_H

#include "bpe_model.h"
#include "tokenizer/text_engine.h"

struct bpe_affix {
    const uint8_t *text;
    uint32_t bytes;
};

/* Input of bpe_words_new(), which the loader of a vocabulary file fills in. */
struct bpe_words_source {
    const char *path;    /* for errors */
    uint32_t vocabulary; /* ids are below it */
    /* The texts of all ids in the order of ids, without gaps, and where each begins (vocabulary + 1). `names` are those
     * of the file. `bytes`, with room for 16 more bytes, are those that words and decoded text have: others than the
     * names only if `mapped`. Both are from malloc(), and bpe_words_new() keeps or frees them. names and name_offsets
     * are NULL if the texts are the same. */
    uint8_t *bytes, *names;
    uint32_t *offsets, *name_offsets;
    const struct bpe_merge *merges; /* in order; in each, the loader has checked that the right part begins with the
                                       prefix and is longer, and that the result is left + right without the prefix */
    uint32_t merge_count;
    struct bpe_affix prefix, suffix; /* their text is copied */
    uint32_t unk;                    /* the unknown token, or BPE_NONE: a character without a token is left out */
    bool fuse_unk;                   /* several unknown characters in a row are one unknown token */
    bool byte_fallback;              /* a character without a token becomes the tokens of its bytes ("<0x..>") */
    bool whole;                      /* a word that equals a token becomes this token, whatever merging gives */
    bool mapped;                     /* names have characters that stand for bytes (byte_alphabet.h) */
    bool front;                      /* another stage puts a space before texts, so decoding takes it off */
};

/* Makes an engine. *engine is NULL on failure. Statuses: OK, ERROR_UNSUPPORTED (byte_fallback with a prefix or a suffix
 * that would become bytes), ERROR_LIMIT (too many ids or merges), ERROR_MEMORY. */
enum tokmap_status bpe_words_new(struct text_engine **engine, const struct bpe_words_source *source,
                                 struct tokmap_error *error);

/* ---- between bpe_words.c and bpe_words_merge.c ---- */

/* The places of a character in its word: bits of the number of a row's column. */
#define BPE_WORD_INNER 1u /* not the first */
#define BPE_WORD_LAST 2u

struct bpe_words {
    struct bpe_model head; /* must be first. Pairs are of ids; texts are those of words */
    uint8_t *names;        /* see bpe_words_source; the texts of head if they are the same */
    uint32_t *name_offsets;
    uint32_t *atoms;     /* by code point (or byte, if `mapped`): number of its row + 1; 0: no token has it */
    uint32_t (*rows)[4]; /* by place: the token of the character there, or BPE_NONE */
    uint32_t row_count, row_room;
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
