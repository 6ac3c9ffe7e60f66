/* SPDX-License-Identifier: MIT */
/*
 * folder.h - a model's folder: which of its files is the vocabulary, and what the files beside it say.
 *
 * folder_read() chooses the vocabulary by the names in a table (folder.c); its format is recognized by its content, as
 * that of any file. folder_finish() compares the open vocabulary with the other files: they may name the tokens that
 * end and begin a document, and added tokens. Where files contradict each other, a warning says so.
 */
#ifndef TOKMAP_VOCABULARY_FOLDER_H
#define TOKMAP_VOCABULARY_FOLDER_H

#include "engine/tokenizer.h"
#include "folder_config.h"
#include "piece_rules.h"
#include "rank_file.h"

#define FOLDER_FILES_MOST 32
#define FOLDER_WARNINGS_MOST 12

/* A file of the folder that has to do with its tokenizer. */
struct folder_file {
    char name[80];
    bool used;
    char what[200]; /* a text that says what was used of it, or why it was not used; "": there is nothing to say */
};

/* Initialize with zeros. */
struct folder {
    char *path;       /* of the vocabulary; NULL: what was opened is not a folder */
    const char *name; /* of the vocabulary in the folder */
    struct folder_file files[FOLDER_FILES_MOST];
    uint32_t file_count;
    char warnings[FOLDER_WARNINGS_MOST][320];
    uint32_t warning_count;
    struct folder_config config;
    struct rank_beside beside;
    const struct piece_rule *rule; /* of the ids of a SentencePiece model, or NULL */
    const char *code;              /* the name of the file with beside.regex */
};

/* Returns true for the name of a file that is read, here or for a chat template, where a folder has it. */
bool folder_reads(const char *name);

/* Chooses the vocabulary, and reads the files beside it. Call folder_free after success and after failure. Statuses:
 * OK, ERROR_NOT_FOUND (there is no vocabulary), ERROR_UNSUPPORTED (there are several of a kind), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status folder_read(struct folder *folder, const char *path, struct tokmap_error *error);

/* Finds how the trained model numbers the pieces of the folder's SentencePiece model, and sets folder->rule. Statuses:
 * OK, ERROR_UNSUPPORTED (tokmap does not know it). */
enum tokmap_status folder_rule_find(struct folder *folder, struct tokmap_error *error);

/* Gives the tokenizer of the folder the tokens that its files name, and fills `files` and `warnings`. */
void folder_finish(struct folder *folder, struct tokenizer *tokenizer);

/* Warns if AutoTokenizer of transformers 5 gives a text other ids than the open tokenizer.json of a folder, since the
 * class that the folder names has steps of its own. It opens the vocabulary once more, unless the file is large;
 * if that fails, it does nothing. */
void folder_compare(struct folder *folder, const struct tokenizer *tokenizer);

void folder_free(struct folder *folder);

#endif
