/* hf_parts.h - normalizer, pre-tokenizer and post-processor of a tokenizer.json, as a list of steps. */
#ifndef TOKMAP_VOCABULARY_HF_PARTS_H
#define TOKMAP_VOCABULARY_HF_PARTS_H

#include "pretokenize/pretokenizer.h"
#include "json_file.h"
#include "tokenizer/normalizer.h"

/* Takes the value of "normalizer". What is not reproduced exactly is refused by name. */
bool hf_normalizer_parse(struct json_file *file, struct normalizer *normalizer);

enum hf_split_kind { HF_BYTE_LEVEL, HF_SPLIT, HF_DIGITS, HF_PUNCTUATION, HF_WHITESPACE, HF_WHITESPACE_SPLIT, HF_METASPACE };
enum hf_prepend { HF_PREPEND_NEVER, HF_PREPEND_FIRST, HF_PREPEND_ALWAYS };

struct hf_split {
    enum hf_split_kind kind;
    enum split_behavior behavior;
    bool invert, is_regex;
    const uint8_t *pattern; /* of HF_SPLIT */
    size_t pattern_bytes;
    bool prefix_space, use_regex; /* of HF_BYTE_LEVEL */
    uint32_t replacement;         /* of HF_METASPACE */
    enum hf_prepend prepend;
    bool split;
};

struct hf_splits {
    struct hf_split steps[PRETOKENIZER_STEPS_MOST];
    uint32_t count;
};
/* Takes the value of "pre_tokenizer": its steps in their order. */
bool hf_splits_parse(struct json_file *file, struct hf_splits *splits);

/* The tokens that a post-processor puts before and behind a text; UINT32_MAX: none. */
struct hf_frame {
    uint32_t before, behind;
};
bool hf_frame_parse(struct json_file *file, struct hf_frame *frame);

#endif
