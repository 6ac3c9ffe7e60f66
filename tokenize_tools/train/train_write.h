/*
 * train_write.h - a trained vocabulary as files that other libraries read: PREFIX.tiktoken, a rank file; PREFIX.json, a
 * tokenizer.json of Hugging Face; and where there are special tokens, which a rank file does not name,
 * PREFIX.specials.json, an object of their texts and ids.
 *
 * While they are made the files are called NAME.partial; each appears whole or not at all, PREFIX.json last. Of two
 * that write to one prefix, the second is refused.
 */
#ifndef TOKMAP_TRAIN_TRAIN_WRITE_H
#define TOKMAP_TRAIN_TRAIN_WRITE_H

#include "train_merges.h"

/* What a vocabulary is but its tokens. Special tokens have the ids behind them, in this order. */
struct train_settings {
    const char *pattern;               /* a name of split_rules_names() */
    const struct train_text *specials; /* UTF-8 */
    uint32_t special_count;
};

struct train_files;
/* Makes the partial files. Statuses: OK, ERROR_EXISTS (unless `replace`), ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status train_files_open(struct train_files **files, const char *prefix, bool specials, bool replace,
                                    struct tokmap_error *error);
/* Writes, synchronises and renames; the files are closed after success and failure.
 * Statuses: OK, ERROR_EXISTS, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status train_files_commit(struct train_files *files, const struct train_vocabulary *vocabulary,
                                      const struct train_settings *settings, struct tokmap_error *error);
void train_files_abort(struct train_files *files); /* removes the partial files; accepts NULL */
/* The name of one of the files, as `i` counts from 0; NULL behind the last. */
const char *train_files_name(const struct train_files *files, uint32_t i);
/* A special token that a token of the vocabulary would be mistaken for, in the files' spelling, as the bytes of that
 * token; true if there are such bytes. `into` has room for the text's count. */
bool train_decode_spelling(const struct train_text *special, uint8_t *into, uint64_t *count);

#endif
