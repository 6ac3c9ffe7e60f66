/* SPDX-License-Identifier: MIT */
/*
 * hf_decoder.h - parses the decoder of a tokenizer.json, which decides the text that ids become, but no ids.
 */
#ifndef TOKMAP_VOCABULARY_HF_HF_DECODER_H
#define TOKMAP_VOCABULARY_HF_HF_DECODER_H

#include "engine/pipeline_parts.h"
#include "vocabulary/json_file.h"

/* Parses "decoder" and sets parts->decoder and parts->decoder_given; null leaves both as they are. A decoder that
 * tokmap cannot reproduce does not prevent encoding: its reason is stored in parts->decoder.refused, and only decoding
 * fails. Returns false if the JSON is wrong; json_file_status(file) is then the reason. */
bool hf_decoder_parse(struct json_file *file, struct pipeline_parts *parts);

/* For a file whose engine decodes its tokens to bytes: adapts the decoder to that. */
void hf_decoder_of_bytes(struct pipeline_parts *parts);

#endif
