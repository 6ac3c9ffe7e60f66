/* SPDX-License-Identifier: MIT */
/*
 * hf_frame.h - parses the post-processor of a tokenizer.json: which tokens it puts before and after a text.
 *
 * TemplateProcessing, BertProcessing, and RobertaProcessing put tokens around a text; in a Sequence, each around what
 * the one before it has made. ByteLevel changes offsets only, as do trim_offsets and add_prefix_space. The template for
 * pairs of texts is not used: a document is one text.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_FRAME_H
#define TOKMAP_VOCABULARY_HF_HF_FRAME_H

#include "vocabulary/json_file.h"

#define HF_FRAME_MOST 8

struct hf_frame_token {
    const uint8_t *text; /* in the json_file */
    size_t bytes;
};

struct hf_frame {
    uint32_t before, after; /* ids that begin and end a document; UINT32_MAX: none */
    /* All tokens on each side, in the order in which they come. More than HF_FRAME_MOST are not kept. */
    struct hf_frame_token fronts[HF_FRAME_MOST], backs[HF_FRAME_MOST];
    uint32_t front_count, back_count;
};

/* Parses "post_processor", which may be null. Ids of *frame for which the file has none keep their value. Returns false
 * if the value is refused; json_file_status(file) is then the reason. */
bool hf_frame_parse(struct json_file *file, struct hf_frame *frame);

/* Describes a frame for people, "<s> before and </s> after", with a zero at the end; "" if there are no tokens. */
void hf_frame_describe(const struct hf_frame *frame, char *into, size_t room);

#endif
