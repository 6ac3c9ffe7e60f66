/* SPDX-License-Identifier: MIT */
/*
 * hf_parts.h - parses the normalizer, the pre-tokenizer, and the decoder of a tokenizer.json.
 *
 * Each of the three functions parses the value of one field, which may be null. It returns false if it refuses the
 * value; json_file_status(file) is then the reason. What was parsed points into the json_file.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_PARTS_H
#define TOKMAP_VOCABULARY_HF_HF_PARTS_H

#include "engine/pipeline_parts.h"
#include "vocabulary/json_file.h"

/* Parses "normalizer" and appends its steps. The caller frees the normalizer, on failure too. */
bool hf_normalizer_parse(struct json_file *file, struct normalizer *normalizer);

enum hf_split_kind {
    HF_BYTE_LEVEL,
    HF_SPLIT, /* CharDelimiterSplit, too */
    HF_DIGITS,
    HF_PUNCTUATION,
    HF_WHITESPACE,
    HF_WHITESPACE_SPLIT,
    HF_METASPACE,
    HF_SCRIPTS,
    HF_FIXED
};
enum hf_prepend { HF_PREPEND_NEVER, HF_PREPEND_FIRST, HF_PREPEND_ALWAYS };

/* One step of a pre-tokenizer. The fields are those of the file; a kind that lacks a field has its default here. */
struct hf_split {
    enum hf_split_kind kind;
    enum split_behavior behavior;
    bool invert, is_regex;
    const uint8_t *pattern; /* HF_SPLIT: a regular expression if is_regex, else the text to split at */
    size_t pattern_bytes;
    bool prefix_space, use_regex; /* HF_BYTE_LEVEL */
    uint32_t replacement;         /* HF_METASPACE: the code point that replaces a space */
    enum hf_prepend prepend;      /* HF_METASPACE */
    bool split;                   /* HF_METASPACE */
    uint64_t length;              /* HF_FIXED: characters of a piece; at least 1 */
};

/* The steps of a pre-tokenizer; nested sequences are flattened. */
struct hf_splits {
    struct hf_split steps[PRETOKENIZER_STEPS_MOST];
    uint32_t count;
};
/* Parses "pre_tokenizer" and appends its steps in their order. */
bool hf_splits_parse(struct json_file *file, struct hf_splits *splits);

/* Parses "decoder" and sets parts->decoder and parts->decoder_given; null leaves both as they are. A decoder that
 * tokmap cannot reproduce does not prevent encoding: its reason is stored in parts->decoder.refused, and only decoding
 * fails. Returns false if the JSON is wrong; json_file_status(file) is then the reason. */
bool hf_decoder_parse(struct json_file *file, struct pipeline_parts *parts);
/* For a file whose engine decodes its tokens to bytes: adapts the decoder to that. */
void hf_decoder_of_bytes(struct pipeline_parts *parts);

#endif
