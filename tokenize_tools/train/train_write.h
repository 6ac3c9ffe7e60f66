/* SPDX-License-Identifier: MIT */
/*
 * train_write.h - writes a trained vocabulary to files that other libraries read:
 *
 *     PREFIX.specials.json   an object with the texts and ids of the special tokens; only if there are any
 *     PREFIX.tiktoken        a rank file, which has no special tokens
 *     PREFIX.json            a tokenizer.json of Hugging Face
 *
 * While a file is being written, its name ends in .partial. Each file appears complete or not at all, in the order of
 * this list, and an old group is replaced as file_group.h describes: never is a file of the old group beside one of the
 * new group, and an old PREFIX.specials.json goes if the new group has none. If two processes write to the same prefix,
 * the second one fails with ERROR_BUSY.
 */
#ifndef TOKMAP_TRAIN_TRAIN_WRITE_H
#define TOKMAP_TRAIN_TRAIN_WRITE_H

#include "train_merges.h"

/* Everything in a tokenizer file that is not learned. Special tokens have the ids after the vocabulary, in order. */
struct train_settings {
    const char *pattern;               /* one of split_rules_names() */
    const struct train_text *specials; /* UTF-8 */
    uint32_t special_count;
};

struct train_files;

/* Creates the partial files and locks them. specials: whether PREFIX.specials.json will be written. replace: existing
 * files are replaced. Statuses: OK, ERROR_ARGUMENT (the prefix has no name), ERROR_EXISTS, ERROR_BUSY, ERROR_NOT_FOUND,
 * ERROR_IO, ERROR_MEMORY. */
enum tokmap_status train_files_open(struct train_files **files, const char *prefix, bool specials, bool replace,
                                    struct tokmap_error *error);

/* Writes the files, synchronizes them with the disk, and renames them. *files is freed in any case. If writing fails,
 * the partial files are removed. Statuses: OK, ERROR_EXISTS, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status train_files_commit(struct train_files *files, const struct train_vocabulary *vocabulary,
                                      const struct train_settings *settings, struct tokmap_error *error);
void train_files_abort(struct train_files *files); /* removes the partial files and frees *files; accepts NULL */

/* Returns the path of output number i, from 0, including the partial files; NULL if there are no more. Valid as long as
 * `files`. */
const char *train_files_name(const struct train_files *files, uint32_t i);

/* Decodes a special token that is spelled entirely in the byte alphabet (unicode/byte_alphabet.h), as the tokens of a
 * tokenizer.json are. A learned token with the decoded bytes would have the same spelling in the file. Returns true and
 * writes *count bytes, or returns false if the text has another character or is empty. `into` has room for
 * special->count bytes. */
bool train_decode_spelling(const struct train_text *special, uint8_t *into, uint64_t *count);

#endif
