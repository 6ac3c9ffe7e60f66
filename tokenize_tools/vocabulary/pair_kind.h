/*
 * pair_kind.h - finds what contradicts that a tokenizer in two files (merges and ids) is byte-level BPE of GPT-2's
 * kind.
 *
 * Many tokenizers come in two such files, and the files do not say which: CLIP and GPT-1 mark the ends of words,
 * SentencePiece's mark spaces, and Qwen2 splits text by another pattern. Read as GPT-2's, each gives other ids than its
 * own. GPT-2's pattern splits a text between a letter, a digit, and a punctuation character (but the apostrophe), so a
 * merge that joins two of them was made for another one.
 */
#ifndef TOKMAP_VOCABULARY_PAIR_KIND_H
#define TOKMAP_VOCABULARY_PAIR_KIND_H

#include "json_file.h"
#include "text_table.h"

/* Checks a merge, whose line has `bytes` bytes without its end. file: of the merges, at the line. number: of the merge.
 * Returns false if the merge is of another kind, and reports that. A line of the wrong form is not a contradiction. */
bool pair_merge_check(struct json_file *file, const char *line, size_t bytes, uint64_t number);

/* Checks the vocabulary: it must have a token for the space. Returns false as above. */
bool pair_vocabulary_check(struct json_file *file, const struct text_table *vocabulary);

/* Checks the tokenizer_config.json beside `path`, if there is one: the class that it names must read two files as GPT-2
 * does, and no token may be added that is found in every text. Statuses: OK, ERROR_UNSUPPORTED, ERROR_MEMORY, and those
 * of reading a file. */
enum tokmap_status pair_folder_check(const char *path, struct tokmap_error *error);

#endif
