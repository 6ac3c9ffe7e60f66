/*
 * content_arguments.h - the options that say what a record contains other than a text (ids, a prompt with its
 * completion, a conversation), which of its fields are kept, and which documents are left out by their length.
 */
#ifndef TOKMAP_COMMANDS_PACK_CONTENT_ARGUMENTS_H
#define TOKMAP_COMMANDS_PACK_CONTENT_ARGUMENTS_H

#include "cli/cli.h"
#include "commands/options/corpus_arguments.h"
#include "commands/options/tokenizer_arguments.h"
#include "inputs/record_values.h"

struct content_arguments {
    const char *ids_field, *mask_field, *prompt_field, *completion_field, *messages_field, *chat_template;
    uint64_t vocabulary;
    bool vocabulary_given;
    struct cli_list columns, ignore; /* as typed: names with commas between them */
    uint64_t min_tokens, max_tokens; /* 0: no limit */
    bool min_given, max_given;

    /* Results of content_arguments_check(). */
    enum corpus_content content;
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

/* clang-format off */
/* Rows for a table of options. These say what a record contains. */
#define CONTENT_OPTIONS(content)                                                                                       \
    {0, "ids-field", CLI_TEXT, &(content).ids_field, NULL, "NAME",                                                     \
     "records contain ready-made token ids: the field that holds the list of them; they are checked against the "      \
     "tokenizer, or against --vocab-size", NULL},                                                                      \
    {0, "mask-field", CLI_TEXT, &(content).mask_field, NULL, "NAME",                                                   \
     "with --ids-field: the field that holds a list with 1 or true for each id that counts as a target, else 0 or "    \
     "false", NULL},                                                                                                   \
    {0, "vocab-size", CLI_NUMBER, &(content).vocabulary, &(content).vocabulary_given, "N",                             \
     "with --ids-field and without -t: each id must be below N", NULL},                                                \
    {0, "prompt-field", CLI_TEXT, &(content).prompt_field, NULL, "NAME",                                               \
     "records contain a prompt and a completion: the field of the prompt, whose tokens do not count as targets", NULL},\
    {0, "completion-field", CLI_TEXT, &(content).completion_field, NULL, "NAME",                                       \
     "the field of the completion, whose tokens count, with the EOD", NULL},                                           \
    {0, "messages-field", CLI_TEXT, &(content).messages_field, NULL, "NAME",                                           \
     "records contain conversations: the field that holds the list of messages; only what the assistant says counts",  \
     NULL},                                                                                                            \
    {0, "chat-template", CLI_TEXT, &(content).chat_template, NULL, "NAME|FILE",                                        \
     "how a conversation is written: a built-in template (chatml, llama3, ...), or a file or folder that holds one "   \
     "(default: the tokenizer's own)", NULL},                                                                          \
    {0, "ignore-fields", CLI_LIST, &(content).ignore, NULL, "NAME,...",                                                \
     "with --messages-field: keys beside the messages, or in them, that count for nothing though they say something, " \
     "such as tools; may be repeated", NULL},                                                                          \
    {0, "columns", CLI_LIST, &(content).columns, NULL, "NAME,...",                                                     \
     "keep the values of these fields of each record in the index; may be repeated", NULL}
/* These leave documents out. */
#define CONTENT_OPTIONS_LENGTH(content)                                                                                \
    {0, "min-tokens", CLI_NUMBER, &(content).min_tokens, &(content).min_given, "N",                                    \
     "leave out documents with fewer tokens, BOS and EOD not counted", NULL},                                          \
    {0, "max-tokens", CLI_NUMBER, &(content).max_tokens, &(content).max_given, "N",                                    \
     "leave out documents with more tokens, BOS and EOD not counted", NULL}
/* clang-format on */

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

#endif
