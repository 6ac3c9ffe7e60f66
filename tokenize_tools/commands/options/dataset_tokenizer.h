/* SPDX-License-Identifier: MIT */
/*
 * dataset_tokenizer.h - opens the tokenizer that made a dataset, for commands that turn its tokens back into text.
 *
 * The fingerprint in the index identifies the tokenizer. Where its file is, the user says with --tokenizer. Without
 * that, the built-in tokenizer is tried, and then the paths that `tokmap pack` recorded in the indexes as they were
 * typed. A path that does not begin with "/" was relative to a folder that is not recorded, so it is looked for
 *   - in the current folder,
 *   - then in the folder of the index that records it, in the folder above that one, and so on up to the root. A
 *     project that was moved, or is used from another folder, is found in this way.
 * The first file that has the fingerprint is the tokenizer. Files with another fingerprint are passed over, so a wrong
 * guess cannot give wrong text.
 *
 * Files of other projects, and ids that another program made, come without a fingerprint. Only the user can know their
 * tokenizer, so the file of --tokenizer is then used without a comparison, and the commands say so.
 */
#ifndef TOKMAP_COMMANDS_OPTIONS_DATASET_TOKENIZER_H
#define TOKMAP_COMMANDS_OPTIONS_DATASET_TOKENIZER_H

#include "commands/report/dataset_about.h"
#include "tokenizer_arguments.h"

/* Opens the tokenizer of a dataset; tokenizer_close() frees it. On failure *tokenizer is NULL.
 *   asked    the options of the command line
 *   assumed  receives whether the dataset records no fingerprint, so that the file that the user named was not compared
 * The width of the dataset's tokens may differ from that of the tokenizer's ids: see token_decode.h.
 * Messages name --tokenizer and --ids. Statuses: OK, ERROR_MISMATCH (the file that the user
 * named is another tokenizer), ERROR_UNSUPPORTED (the dataset is synthetic, or no tokenizer was named and none was
 * found), ERROR_MEMORY; if the user named a file, those of vocabulary_open(). */
enum tokmap_status dataset_tokenizer_open(struct tokenizer **tokenizer, const struct tokmap_dataset *dataset,
                                          const struct tokenizer_arguments *asked, bool *assumed,
                                          struct tokmap_error *error);

/* Prints what of the tokenizer's file is ignored, because it may matter to the reader of the text. tokenizer may be
 * NULL. */
void dataset_tokenizer_note(const char *program, const struct tokenizer *tokenizer);

/* Prints what a command says once if the tokenizer was assumed; tokenizer: the file that the user named. */
void dataset_tokenizer_assumed(const char *program, const char *tokenizer);

/* ---- a tokenizer that the user states ---- */

/* The tokenizer that a user states for ids that another program made (--tokenizer of `tokmap index` and `tokmap
 * convert`): what the index of their shard then records, as `tokmap pack` does. A zeroed struct states no tokenizer. */
struct stated_tokenizer {
    uint8_t fingerprint[16];
    uint64_t vocabulary; /* number of its ids; 0: no tokenizer is stated */
    char name[ABOUT_NAME];
    char *about; /* a JSON object: what an about section says of it */
};

/* Opens the tokenizer of the command line, and notes what is to be recorded; stated_tokenizer_free() frees it. Without
 * --tokenizer, none is stated. recorded: the fingerprint that the dataset has, which the tokenizer must have, too;
 * NULL, or zeros: it has none. Statuses: OK, ERROR_MISMATCH, ERROR_MEMORY, and those of vocabulary_open(). */
enum tokmap_status stated_tokenizer_open(struct stated_tokenizer *stated, const struct tokenizer_arguments *asked,
                                         const uint8_t *recorded, struct tokmap_error *error);
void stated_tokenizer_free(struct stated_tokenizer *stated);

#endif
