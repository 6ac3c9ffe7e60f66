/* bpe_files.h - GPT-2's two files: merges, a line each (vocab.bpe, merges.txt), and ids by text (encoder.json,
 * vocab.json). */
#ifndef TOKMAP_VOCABULARY_BPE_FILES_H
#define TOKMAP_VOCABULARY_BPE_FILES_H

#include "tokenizer/tokenizer.h"

/* True if text begins as a file of merges does. */
bool bpe_files_is(const char *text, uint64_t count);
/* path: either of the two, beside which the other lies. Statuses: as vocabulary_open(). */
enum tokmap_status bpe_files_open(struct tokenizer **tokenizer, const char *path,
                                  const struct tokenizer_options *options, struct tokmap_error *error);

#endif
