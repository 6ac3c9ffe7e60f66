/* tokenizer_arguments.h - the options that choose a tokenizer and the tokens around documents, for all who take them.
 */
#ifndef TOKMAP_COMMANDS_SHARED_TOKENIZER_ARGUMENTS_H
#define TOKMAP_COMMANDS_SHARED_TOKENIZER_ARGUMENTS_H

#include "tokenizer/tokenizer.h"
#include "cli/cli.h"

struct tokenizer_arguments {
    const char *spec;
    struct tokenizer_options options;
    int special; /* enum tokenizer_special */
    const char *eod, *bos;
    bool spec_given, special_given, eod_given, no_eod, bos_given;
};
#define TOKENIZER_ARGUMENTS_INIT                                                                                       \
    {                                                                                                                  \
        .spec = "bytes", .eod = "", .bos = ""                                                                          \
    }

/* Rows for a table of options: which tokenizer, .. */
#define TOKENIZER_OPTIONS(tokenizer)                                                                                   \
    {'t',                                                                                                              \
     "tokenizer",                                                                                                      \
     CLI_TEXT,                                                                                                         \
     &(tokenizer).spec,                                                                                                \
     &(tokenizer).spec_given,                                                                                          \
     "FILE",                                                                                                           \
     "the tokenizer's file (tokenizer.json, a .tiktoken rank file, tekken.json, vocab.bpe, tokenizer.model), the "     \
     "folder that holds it, or 'bytes' (default): a token for each byte",                                              \
     NULL},                                                                                                            \
        {0,                                                                                                            \
         "pattern",                                                                                                    \
         CLI_TEXT,                                                                                                     \
         &(tokenizer).options.pattern,                                                                                 \
         NULL,                                                                                                         \
         "NAME",                                                                                                       \
         "how a rank file that is not known splits text: cl100k_base, o200k_base, gpt2, ..",                           \
         NULL},                                                                                                        \
        {0,                                                                                                            \
         "pattern-regex",                                                                                              \
         CLI_TEXT,                                                                                                     \
         &(tokenizer).options.pattern_regex,                                                                           \
         NULL,                                                                                                         \
         "REGEX",                                                                                                      \
         "the same, as a regular expression",                                                                          \
         NULL},                                                                                                        \
    {                                                                                                                  \
        0, "special-tokens", CLI_TEXT, &(tokenizer).options.special_tokens, NULL, "FILE",                              \
            "special tokens of a rank file: a JSON object, text to id", NULL                                           \
    }
/* .. what becomes of text that reads like a special token, .. */
#define TOKENIZER_OPTION_SPECIAL(tokenizer)                                                                            \
    {                                                                                                                  \
        0, "special", CLI_CHOICE, &(tokenizer).special, &(tokenizer).special_given, "WHAT",                            \
            "text that reads like a special token is text (default), is recognised as that token, or is an error",     \
            "text|recognise|error"                                                                                     \
    }
/* .. and the tokens around documents. */
#define TOKENIZER_OPTIONS_AROUND(tokenizer, eod_help, no_eod_help)                                                     \
    {0, "eod", CLI_MAYBE, &(tokenizer).eod, &(tokenizer).eod_given, "NAME|ID", eod_help, NULL},                        \
        {0, "no-eod", CLI_FLAG, &(tokenizer).no_eod, NULL, NULL, no_eod_help, NULL},                                   \
    {                                                                                                                  \
        0, "bos", CLI_MAYBE, &(tokenizer).bos, &(tokenizer).bos_given, "NAME|ID",                                      \
            "begin each document with this token", NULL                                                                \
    }

/* What the command line cannot mean, known without the file. 0, or the exit status after a message. */
int tokenizer_arguments_check(const struct cli_command *command, const struct tokenizer_arguments *arguments);
/* Opens it, and prints the note of its file, if any, on stderr. 0, or the exit status after a message. */
int tokenizer_arguments_open(const struct cli_command *command, struct tokenizer_arguments *arguments,
                             struct tokenizer **tokenizer);
/* The ids that end and begin a document, TOKMAP_NO_ID for none. needed: where the tokenizer names a token that ends a
 * document that is added, else it must be said whether one is; otherwise none is added unless asked for. 0, or the exit
 * status after a message. */
int tokenizer_arguments_around(const struct cli_command *command, const struct tokenizer_arguments *arguments,
                               const struct tokenizer *tokenizer, bool needed, uint64_t *eod, uint64_t *bos);

#endif
