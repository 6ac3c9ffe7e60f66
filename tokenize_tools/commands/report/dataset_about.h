/* SPDX-License-Identifier: MIT */
/*
 * dataset_about.h - what the about section of a shard says about its tokenizer and its text.
 *
 * The section is JSON that `tokmap pack` wrote (FORMAT.md). A reader does not need it, and a damaged or foreign file
 * may contain anything in its place. So every fact may be missing, and nothing here fails because of the content.
 */
#ifndef TOKMAP_COMMANDS_REPORT_DATASET_ABOUT_H
#define TOKMAP_COMMANDS_REPORT_DATASET_ABOUT_H

#include <stdbool.h>

#include "cli/report.h"
#include "encode/fim.h"

#define ABOUT_NAME 96 /* bytes of a tokenizer's name, its zero included */

struct about_facts {
    char name[ABOUT_NAME]; /* of the tokenizer; "": unknown. It has no control characters */
    /* Options that opened the tokenizer, as they were typed; NULL: not recorded. */
    char *path, *special_tokens, *pattern, *pattern_regex, *cut_as;
    bool recognizes;     /* special tokens in text became those tokens */
    bool counted;        /* the two numbers below are recorded */
    uint64_t text_bytes; /* bytes of text that became the shard's tokens */
    uint64_t tokens;
    struct fim_marks fim; /* tokens by which the text of a rearranged document is found */
};

/* Reads the about section of a shard. about_free() must follow in any case. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status about_read(const struct tokmap_shard_info *shard, struct about_facts *facts,
                              struct tokmap_error *error);
void about_free(struct about_facts *facts);

/* Writes what people call the tokenizer, as far as it is recorded: its name and its path, "r50k_base
 * (vocabulary/r50k.tiktoken)". If the name is only that of a file, the path comes first: "gpt2 (tokenizer.json)".
 * Control characters become '?'. Returns `text`, which is "" if nothing is recorded. */
#define ABOUT_TITLE 320
const char *about_title(const struct about_facts *facts, char text[ABOUT_TITLE]);

/* Copies the name of the tokenizer that made the dataset from the index of its first shard. Returns false if that
 * index does not have the name, or has one that is too long or contains control characters. */
bool dataset_tokenizer_name(const struct tokmap_dataset *dataset, char name[ABOUT_NAME]);

/* ---- columns ---- */

/* Lists the names of a dataset's columns in an array that the caller frees; each name lives as long as the dataset.
 * For one thread, as the functions below. Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status column_names(const struct tokmap_dataset *dataset, const char ***names, size_t *count,
                                struct tokmap_error *error);

/* Adds the list of the columns: for people, a row for each. Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status columns_report(const struct tokmap_dataset *dataset, struct cli_report *report,
                                  struct tokmap_error *error);

/* Calls each() for every value that a document has. Statuses: OK, ERROR_CORRUPT, ERROR_MEMORY. */
enum tokmap_status document_values(const struct tokmap_dataset *dataset, uint64_t document,
                                   void (*each)(void *user, const char *name, const struct tokmap_value *value),
                                   void *user, struct tokmap_error *error);

#endif
