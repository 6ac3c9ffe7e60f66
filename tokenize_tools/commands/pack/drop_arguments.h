/*
 * drop_arguments.h - the options of `tokmap pack` that leave documents out because of what other texts say: --dedup and
 * --exclude-ngrams.
 */
#ifndef TOKMAP_COMMANDS_PACK_DROP_ARGUMENTS_H
#define TOKMAP_COMMANDS_PACK_DROP_ARGUMENTS_H

#include "cli/cli.h"
#include "content_arguments.h"
#include "pack/drop_filter.h"

struct drop_arguments {
    int dedup; /* enum drop_method; without dedup_given, duplicates are kept */
    bool dedup_given;
    uint64_t ngram, bands, rows; /* of MinHash */
    bool ngram_given, bands_given, rows_given;
    struct minhash_form form;
    uint64_t memory;
    bool memory_given;
    struct cli_list ngrams; /* files */
    uint64_t words;
    bool words_given;
    const char *field;
    struct ngram_set *set; /* made by drop_arguments_open() */
    struct drop_options options;
};

enum drop_method { DROP_EXACT, DROP_MINHASH }; /* in the order of the choices of --dedup */

#define DROP_WORDS 13 /* as in the GPT-3 paper and lm-evaluation-harness */
#define DROP_ARGUMENTS_INIT                                                                                            \
    {                                                                                                                  \
        .words = DROP_WORDS, .ngram = 5, .bands = 14, .rows = 8                                                        \
    }

/* clang-format off */
#define DROP_OPTIONS(drop)                                                                                             \
    {0, "dedup", CLI_CHOICE, &(drop).dedup, &(drop).dedup_given, "METHOD",                                             \
     "exact: leave out every document whose text an earlier one has, in all inputs; minhash: or most of whose words "  \
     "an earlier one has, as datatrove finds them; the inputs are then read twice", "exact|minhash"},                  \
    {0, "dedup-memory", CLI_SIZE, &(drop).memory, &(drop).memory_given, "SIZE",                                        \
     "memory for the keys of documents (default: a quarter of the machine's); more of them go to a file, and the "     \
     "inputs are read twice; the output is the same", NULL},                                                           \
    {0, "minhash-ngram", CLI_NUMBER, &(drop).ngram, &(drop).ngram_given, "N",                                          \
     "minhash compares N words in a row (default: 5)", NULL},                                                          \
    {0, "minhash-bands", CLI_NUMBER, &(drop).bands, &(drop).bands_given, "N",                                          \
     "the bands of a signature, of which two near-duplicates have one in common (default: 14)", NULL},                 \
    {0, "minhash-rows", CLI_NUMBER, &(drop).rows, &(drop).rows_given, "N",                                             \
     "the hashes of a band (default: 8); more of them find fewer near-duplicates, and more bands find more", NULL},    \
    {0, "exclude-ngrams", CLI_LIST, &(drop).ngrams, NULL, "FILE",                                                      \
     "leave out every document with words of an evaluation set: with an n-gram of a line or record of FILE (text, "    \
     "JSONL, JSON, Parquet); may be repeated", NULL},                                                                  \
    {0, "exclude-words", CLI_NUMBER, &(drop).words, &(drop).words_given, "N",                                          \
     "the words of such an n-gram (default: 13)", NULL},                                                               \
    {0, "exclude-field", CLI_TEXT, &(drop).field, NULL, "NAME",                                                        \
     "the field of the records of these files that holds the text (default: text)", NULL}
/* clang-format on */

/* Refuses arguments that are wrong or do not fit the content of the documents or a dry run. Returns 0, or prints a
 * message and returns the exit status. */
int drop_arguments_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content, bool dry_run);

/* Reads the files, warns about texts that are too short, and sets *options, or NULL if nothing is to be dropped.
 * drop_arguments_free() frees what it has made, also after a failure. Returns 0, or prints a message and returns the
 * exit status. */
int drop_arguments_open(const struct cli_command *command, struct drop_arguments *drop, bool (*stop)(void *user),
                        void *user, const struct drop_options **options);
void drop_arguments_free(struct drop_arguments *drop);

/* Print what was dropped, for the closing report: as lines for people, and as the member "dropped" of JSON. name: of
 * the list; NULL for a dry run. */
void drop_report_print(const struct drop_counts *counts, const char *name);
void drop_report_json(const struct drop_counts *counts, struct cli_json *json);

#endif
