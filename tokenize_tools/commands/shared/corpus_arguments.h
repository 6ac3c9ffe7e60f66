/* corpus_arguments.h - the options that say how inputs are read, for all who take them. */
#ifndef TOKMAP_COMMANDS_SHARED_CORPUS_ARGUMENTS_H
#define TOKMAP_COMMANDS_SHARED_CORPUS_ARGUMENTS_H

#include "corpus/corpus.h"
#include "cli/cli.h"

struct corpus_arguments {
    int format, on_error, invalid; /* enum corpus_format; 0 or 1: skip; enum corpus_invalid */
    const char *field;
    uint64_t max_record, max_document;
};
#define CORPUS_ARGUMENTS_INIT                                                                                          \
    {                                                                                                                  \
        .field = "text", .max_record = (uint64_t)64 << 20, .max_document = (uint64_t)64 << 20                          \
    }

/* clang-format off */
/* Rows for a table of options: what the inputs are, .. */
#define CORPUS_OPTIONS_INPUT(corpus)                                                                                   \
    {0, "input-format", CLI_CHOICE, &(corpus).format, NULL, "FORMAT",                                                  \
     "text, jsonl, or auto (default): by name and content", "auto|text|jsonl"},                                        \
    {0, "field", CLI_TEXT, &(corpus).field, NULL, "NAME",                                                              \
     "the field of a JSONL record that holds the text (text)", NULL}
/* .. what becomes of wrong ones, .. */
#define CORPUS_OPTION_ON_ERROR(corpus)                                                                                 \
    {0, "on-error", CLI_CHOICE, &(corpus).on_error, NULL, "WHAT",                                                      \
     "at a wrong file or record: stop (default), or skip: leave it out, list and count it", "stop|skip"}
/* .. and of texts that are not UTF-8, or too long. */
#define CORPUS_OPTIONS_TEXTS(corpus)                                                                                   \
    {0, "invalid-utf8", CLI_CHOICE, &(corpus).invalid, NULL, "WHAT",                                                   \
     "at text that is not UTF-8: error (default), replace (U+FFFD for each wrong sequence), or skip (leave the "       \
     "document out)", "error|replace|skip"},                                                                           \
    {0, "max-record", CLI_SIZE, &(corpus).max_record, NULL, "SIZE", "longest line of JSONL (64Mi)", NULL},             \
    {0, "max-document", CLI_SIZE, &(corpus).max_document, NULL, "SIZE",                                                \
     "largest text that has to be held whole (64Mi)", NULL}
/* clang-format on */

/* What the command line cannot mean. Without operands standard input is meant, and put there, unless that is no place where
 * text comes from. 0, or the exit status after a message. */
int corpus_arguments_check(const struct cli_command *command, const struct corpus_arguments *arguments,
                           const char **operands, size_t *operand_count);
/* As the corpus takes them; what is not among them is left. */
void corpus_arguments_put(const struct corpus_arguments *arguments, struct corpus_options *options);

#endif
