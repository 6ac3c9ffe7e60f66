/* SPDX-License-Identifier: MIT */
/*
 * vocabulary_name.h - the name of a vocabulary, for messages and indexes. A name tells people which tokenizer was used;
 * only the fingerprint identifies it.
 */
#ifndef TOKMAP_VOCABULARY_VOCABULARY_NAME_H
#define TOKMAP_VOCABULARY_VOCABULARY_NAME_H

#include "engine/pipeline.h"

/* Sets parts->name: the name that people know, if the fingerprint is that of a well-known vocabulary. Otherwise the
 * name of the file, or that of its folder if many models have a file with this name, such as tokenizer.json. Of a
 * snapshot in the cache of the Hugging Face Hub, the name of the repository. parts->fingerprint is already set. `path`
 * is taken as text, so the name depends on how the path was typed. */
void vocabulary_name(struct pipeline_parts *parts, const char *path);

/* Ends the opening of a vocabulary: if `status` is OK, makes a tokenizer of the parts, named as above unless they have
 * a name. Frees what the parts own. Statuses: `status`, and those of pipeline_new(). */
enum tokmap_status vocabulary_end(struct tokenizer **tokenizer, enum tokmap_status status, struct pipeline_parts *parts,
                                  const char *path, const struct tokmap_tokenizer_options *options,
                                  struct tokmap_error *error);

#endif
