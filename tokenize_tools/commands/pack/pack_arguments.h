/* SPDX-License-Identifier: MIT */
/*
 * pack_arguments.h - options of `tokmap pack` alone: what a record contains other than a text, which documents are left
 * out, tasks, and sealing. command_pack.c has the table that shows them.
 */
#ifndef TOKMAP_COMMANDS_PACK_PACK_ARGUMENTS_H
#define TOKMAP_COMMANDS_PACK_PACK_ARGUMENTS_H

#include "chat/chat_learn.h"
#include "cli/cli.h"
#include "commands/options/corpus_arguments.h"
#include "commands/options/tokenizer_arguments.h"
#include "corpus/record_values.h"
#include "dedup/drop_filter.h"
#include "dedup/listed_documents.h"
#include "format/shard_writer.h"
#include "pack/pack_tasks.h"

/* ---- records ---- */

/* Content of a record other than a text (ids, a prompt with its completion, a conversation), which of its fields are
 * kept, and which documents are left out by their length. */
struct content_arguments {
    const char *ids_field, *mask_field, *labels_field, *prompt_field, *completion_field, *messages_field,
        *chat_template;
    const char *learn_text; /* words with commas between them; NULL: not given */
    uint64_t vocabulary;
    bool vocabulary_given;
    struct cli_list columns, ignore; /* as typed: names with commas between them */
    uint64_t min_tokens, max_tokens; /* 0: no limit */
    bool min_given, max_given;

    /* Results of content_arguments_check(). */
    enum corpus_content content;
    struct chat_learn learn;
    char *column_text;
    const char *column_names[RECORD_COLUMNS_MOST];
    size_t column_count;
    char *ignore_text;
    const char *ignore_names[RECORD_BESIDE_MOST]; /* keys that count for nothing */
    size_t ignore_count;
    char *beside_text;
    const char *beside_names[RECORD_BESIDE_MOST]; /* fields beside the messages that say something */
    size_t beside_count;
};

/* Refuses arguments that contradict each other, and sets the results; content_arguments_free() frees them, also after a
 * failure. Returns 0, or prints a message and returns the exit status. */
int content_arguments_check(const struct cli_command *command, struct content_arguments *arguments,
                            const struct corpus_arguments *corpus, const struct tokenizer_arguments *tokenizer);
void content_arguments_free(struct content_arguments *arguments);

/* Copies the arguments into the fields of *options that they set. The options point to the arguments. */
void content_arguments_apply(const struct content_arguments *arguments, struct corpus_options *options);

/* Finds the ids that end and begin each document where no tokenizer is named, TOKMAP_NO_ID for no token. Returns 0, or
 * prints a message and returns the exit status. */
int content_arguments_eod_bos(const struct cli_command *command, const struct content_arguments *arguments,
                              const struct tokenizer_arguments *tokenizer, uint64_t *eod, uint64_t *bos);

/* ---- fill in the middle ---- */

struct fim_arguments {
    const char *text; /* of --fim; NULL: not given */
    const char *unit, *tokens;
    bool seed_given;
    struct fim fim; /* their meaning; its seed is read with the options */
};

#define FIM_ARGUMENTS_INIT                                                                                             \
    {                                                                                                                  \
        .fim = {.seed = 1 }                                                                                            \
    }

/* Reads the arguments as far as no tokenizer is needed, and refuses what they cannot be used with. Returns 0, or prints
 * a message and returns the exit status. */
int fim_arguments_check(const struct cli_command *command, struct fim_arguments *arguments,
                        const struct content_arguments *content);
/* Finds the special tokens, and sets *fim, or NULL without --fim. Returns 0, or prints a message and returns the exit
 * status. */
int fim_arguments_open(const struct cli_command *command, struct fim_arguments *arguments,
                       const struct tokenizer *tokenizer, uint64_t eod_id, const struct fim **fim);

/* ---- the work of many processes ---- */

/*
 * The options that divide the work among processes: --task, --finish, --unit-bytes, and --status.
 *
 * `--task auto` takes the number of the process, and of how many, from the environment of a scheduler. Only that word
 * does, because a command that is started as a step of something else must not leave out work silently. More than one
 * scheduler can have left variables; where they do not agree, the command refuses to choose.
 */

struct task_arguments {
    const char *task_text; /* NULL: not given */
    bool finish;
    uint64_t unit_bytes;
    bool unit_given;
    const char *status; /* the output of --status, or NULL */
    uint64_t wait_seconds;
    bool wait_given;
    /* Set by task_arguments_check(): */
    bool given; /* --task or --finish */
    uint64_t task, tasks;
    const char *variables; /* from which they come; NULL: from --task */
    bool stays;            /* as in pack_tasks.h */
};

#define TASK_ARGUMENTS_INIT                                                                                            \
    {                                                                                                                  \
        .unit_bytes = PACK_UNIT_BYTES, .tasks = 1                                                                      \
    }

/* Reads --task, and checks the options among themselves. Returns 0, or prints a message and returns the exit status. */
int task_arguments_check(const struct cli_command *command, struct task_arguments *arguments);

/* ---- documents that other texts drop ---- */

/* --dedup and --exclude-ngrams, which leave documents out because of what other texts say. */
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
    struct cli_list lists; /* of --drop */
    /* Made by drop_arguments_open(): */
    char *reading;
    struct listed_documents *listed;
    struct ngram_table *excluded;
    struct drop_options options;
};

enum drop_method { DROP_EXACT, DROP_MINHASH }; /* in the order of the choices of --dedup */

#define DROP_WORDS 13 /* as in the GPT-3 paper and lm-evaluation-harness */
#define DROP_ARGUMENTS_INIT                                                                                            \
    {                                                                                                                  \
        .words = DROP_WORDS, .ngram = 5, .bands = 14, .rows = 8                                                        \
    }

/* clang-format off */
/* Rows for a table of options. */
#define DROP_OPTIONS(drop)                                                                                             \
    {0, "dedup", CLI_CHOICE, &(drop).dedup, &(drop).dedup_given, "METHOD",                                             \
     "exact: leave out every document whose text an earlier one has, in all inputs; minhash: or most of whose "        \
     "words an earlier one has, as datatrove finds them; the inputs are then read twice",                              \
     "exact|minhash"},                                                                                                 \
    {0, "dedup-memory", CLI_SIZE, &(drop).memory, &(drop).memory_given, "SIZE",                                        \
     "memory for the keys of documents (default: a quarter of the machine's); more of them go to a file, and the "     \
     "inputs are read twice; the output is the same",                                                                  \
     NULL},                                                                                                            \
    {0, "minhash-ngram", CLI_NUMBER, &(drop).ngram, &(drop).ngram_given, "N",                                          \
     "minhash compares N words in a row (default: 5)", NULL},                                                          \
    {0, "minhash-bands", CLI_NUMBER, &(drop).bands, &(drop).bands_given, "N",                                          \
     "the bands of a signature, of which two near-duplicates have one in common (default: 14)", NULL},                 \
    {0, "minhash-rows", CLI_NUMBER, &(drop).rows, &(drop).rows_given, "N",                                             \
     "the hashes of a band (default: 8); more of them find fewer near-duplicates, and more bands find more", NULL},    \
    {0, "exclude-ngrams", CLI_LIST, &(drop).ngrams, NULL, "FILE",                                                      \
     "leave out every document with words of an evaluation set: with an n-gram of a line or record of FILE (text, "    \
     "JSONL, JSON, Parquet); may be repeated",                                                                         \
     NULL},                                                                                                            \
    {0, "exclude-words", CLI_NUMBER, &(drop).words, &(drop).words_given, "N",                                          \
     "the words of such an n-gram (default: 13)", NULL},                                                               \
    {0, "exclude-field", CLI_TEXT, &(drop).field, NULL, "NAME",                                                        \
     "the field of the records of these files that holds the text (default: text)", NULL}
/* clang-format on */

/* Refuses arguments that are wrong or do not fit the content of the documents or a dry run. Returns 0, or prints a
 * message and returns the exit status. */
int drop_arguments_check(const struct cli_command *command, const struct drop_arguments *drop,
                         const struct content_arguments *content, bool dry_run);

/* Refuses a list that belongs to the output itself, since packing removes or replaces it. Returns 0, or prints a
 * message and returns the exit status. */
int drop_arguments_own(const struct cli_command *command, const struct drop_arguments *drop, const char *prefix);

/* Reads the files, warns about texts that are too short, and sets *options, or NULL if nothing is to be dropped.
 * corpus: how the inputs are read. drop_arguments_free() frees what it has made, also after a failure. Returns 0, or
 * prints a message and returns the exit status. */
int drop_arguments_open(const struct cli_command *command, struct drop_arguments *drop,
                        const struct corpus_options *corpus, bool (*stop)(void *user), void *user,
                        const struct drop_options **options);
void drop_arguments_free(struct drop_arguments *drop);

/* Adds what was dropped to the closing report: lines for people, and the member "dropped". name: of the list; NULL for
 * a dry run. */
void drop_report_to(const struct drop_counts *counts, const char *name, struct cli_report *report);

/* Adds what the lists of --drop have named; in JSON, the member "listed" has one object for each list. listed: or NULL,
 * without --drop. */
void listed_report_to(const struct listed_documents *listed, const struct listed_counts *counts,
                      struct cli_report *report);

/* ---- sealing ---- */

/* --seal, and the progress of the sealing. */
struct pack_seal {
    const char *text; /* the level as it was typed, or "" */
    bool given;
    struct shard_writer_seal seal;
    struct cli_progress *progress; /* of the command */
    int shown;                     /* enum cli_progress_mode */
    bool alone, begun;             /* alone: one shard is sealed, in the end, and has a progress of its own */
};

/* Reads the level, and loads libzstd before any work is done. Returns 0, or prints a message and returns the exit
 * status. */
int pack_seal_check(const struct cli_command *command, struct pack_seal *sealed);

/* Returns what pack_options.seal takes: NULL if the option was not given. */
const struct shard_writer_seal *pack_seal_start(struct pack_seal *sealed, uint64_t threads, bool alone,
                                                struct cli_progress *progress, int shown);

#endif
