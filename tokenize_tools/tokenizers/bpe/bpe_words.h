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
#include "engine/text_engine.h"

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

#endif
