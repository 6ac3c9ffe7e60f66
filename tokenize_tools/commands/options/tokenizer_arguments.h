/* SPDX-License-Identifier: MIT */
/* tokenizer_arguments.h - the options that choose a tokenizer and the tokens around documents, for every command
 * that opens a tokenizer; and the tokenizer that made a dataset. */
#ifndef TOKMAP_COMMANDS_OPTIONS_TOKENIZER_ARGUMENTS_H
#define TOKMAP_COMMANDS_OPTIONS_TOKENIZER_ARGUMENTS_H

#include "cli/cli.h"
#include "commands/report/dataset_about.h"
#include "engine/cut_tokenizer.h"
#include "engine/tokenizer.h"
#include "pretokenize/split_rules.h"

struct folder;

struct tokenizer_arguments {
    const char *spec; /* a file, a folder, "bytes", or hf://OWNER/NAME, which gets its commit when it is opened */
    const char *path; /* its place on this machine, once it is open */
    struct tokmap_tokenizer_options options;
    int special;           /* index in TOKENIZER_SPECIAL_CHOICES */
    const char *eod, *bos; /* name or id; "": the token that the tokenizer names */
    bool spec_given, eod_given, no_eod, bos_given;
    struct folder *folder; /* (vocabulary/folder.h) what of a folder was used; NULL: only warnings are printed */
    bool no_cache;         /* --no-cache was given, which has no effect: every run builds its tables from the file */
};
#define TOKENIZER_ARGUMENTS_INIT                                                                                       \
    {                                                                                                                  \
        .spec = "bytes", .eod = "", .bos = ""                                                                          \
    }

/* The values of enum tokmap_special in order, and the old spelling of the second one, which scripts contain. */
#define TOKENIZER_SPECIAL_CHOICES "text|recognize|error||recognise" /* kept spelling */
#define TOKENIZER_SPECIAL_OLD 3

/* clang-format off */
/* Rows for a table of options: the three that describe a rank file, how texts are cut, and one without effect, ... */
#define TOKENIZER_OPTIONS_RANK_FILE(tokenizer)                                                                         \
    {0, "pattern", CLI_TEXT, &(tokenizer).options.pattern, NULL, "NAME",                                               \
     "how an unrecognized rank file splits text: cl100k_base, o200k_base, gpt2, ...", SPLIT_RULES_NAMES},              \
    {0, "pattern-regex", CLI_TEXT, &(tokenizer).options.pattern_regex, NULL, "REGEX",                                  \
     "the same, as a regular expression in tiktoken's syntax", NULL},                                                  \
    {0, "special-tokens", CLI_TEXT, &(tokenizer).options.special_tokens, NULL, "FILE",                                 \
     "the special tokens of a rank file: a JSON object that maps each text to its id", NULL},                          \
    {0, "cut-as", CLI_TEXT, &(tokenizer).options.cut_as, NULL, "NAME",                                                 \
     "cut long texts before they are encoded, as the code of this model does: kimi, llama3, or llama4 (default: each "  \
     "text is encoded as a whole)", text_cuts_names()},                                                                \
    {0, "lower-case", CLI_TEXT, &(tokenizer).options.lower_case, NULL, "YES|NO",                                       \
     "whether text is made lower case and loses its accents; for a vocab.txt without a tokenizer_config.json", "yes, no"},   \
    {0, "no-cache", CLI_FLAG, &(tokenizer).no_cache, NULL, NULL,                                                       \
     "has no effect, because no tables are kept from run to run; accepted for scripts that pass it", NULL}
/* ... the tokenizer with these five, ... */
#define TOKENIZER_OPTIONS(tokenizer)                                                                                   \
    {'t', "tokenizer", CLI_TEXT, &(tokenizer).spec, &(tokenizer).spec_given, "FILE",                                   \
     "the tokenizer file (tokenizer.json, a .tiktoken rank file, tekken.json, vocab.bpe, vocab.txt, "                  \
     "tokenizer.model), a folder that holds one, hf://OWNER/NAME, or 'bytes' (default): one token per byte", NULL},    \
    TOKENIZER_OPTIONS_RANK_FILE(tokenizer)
/* ... the same for a command that reads a dataset, whose index records the tokenizer, ... */
#define TOKENIZER_OPTIONS_RECORDED(tokenizer)                                                                          \
    {'t', "tokenizer", CLI_TEXT, &(tokenizer).spec, &(tokenizer).spec_given, "FILE",                                   \
     "the tokenizer that the dataset was made with: a file, or a folder that holds one (default: the one that 'tokmap "\
     "pack' was given, if it is still there)", NULL},                                                                  \
    TOKENIZER_OPTIONS_RANK_FILE(tokenizer)
/* ... the same for a command that records the tokenizer of ids that another program made, ... */
#define TOKENIZER_OPTIONS_STATED(tokenizer)                                                                            \
    {'t', "tokenizer", CLI_TEXT, &(tokenizer).spec, &(tokenizer).spec_given, "FILE",                                   \
     "the tokenizer that made the ids, to be recorded: a file, or a folder that holds one; ids that it does not have "  \
     "are an error", NULL},                                                                                            \
    TOKENIZER_OPTIONS_RANK_FILE(tokenizer)
/* ... what happens to text that reads like a special token, ... */
#define TOKENIZER_OPTION_SPECIAL(tokenizer)                                                                            \
    {0, "special", CLI_CHOICE, &(tokenizer).special, NULL, "ACTION",                                                   \
     "text that reads like a special token is ordinary text (text, the default), becomes that token (recognize), or "  \
     "is an error (error)", TOKENIZER_SPECIAL_CHOICES}
/* ... and the tokens around documents. */
#define TOKENIZER_OPTIONS_EOD_BOS(tokenizer, eod_help, no_eod_help)                                                    \
    {0, "eod", CLI_MAYBE, &(tokenizer).eod, &(tokenizer).eod_given, "NAME|ID", eod_help, NULL},                        \
    {0, "no-eod", CLI_FLAG, &(tokenizer).no_eod, NULL, NULL, no_eod_help, NULL},                                       \
    {0, "bos", CLI_MAYBE, &(tokenizer).bos, &(tokenizer).bos_given, "NAME|ID",                                         \
     "begin each document with this token", NULL}
/* clang-format on */

/* Refuses arguments that contradict each other, as far as the command line alone shows it. Returns 0, or prints a
 * message and returns the exit status. */
int tokenizer_arguments_check(const struct cli_command *command, const struct tokenizer_arguments *arguments);

/* Opens the tokenizer; tokenizer_close() frees it. print_note: if its file has parts that are ignored, a note on
 * stderr says so. Returns 0, or prints a message and returns the exit status. */
int tokenizer_arguments_open(const struct cli_command *command, struct tokenizer_arguments *arguments, bool print_note,
                             struct tokenizer **tokenizer);

/* Finds the ids that end and begin each document, TOKMAP_NO_ID for no token. With eod_needed, a token ends each
 * document unless --no-eod is given, and the user must choose one where the tokenizer does not name it; without,
 * only --eod adds one. Returns 0, or prints a message and returns the exit status. */
int tokenizer_arguments_eod_bos(const struct cli_command *command, const struct tokenizer_arguments *arguments,
                                const struct tokenizer *tokenizer, bool eod_needed, uint64_t *eod, uint64_t *bos);

/* Finds the id that the value of an option means: the name of a special token, or an id. value: not empty. Returns 0,
 * or prints a message and returns the exit status. */
int tokenizer_arguments_id(const struct cli_command *command, const struct tokenizer *tokenizer, const char *option,
                           const char *value, uint64_t *id);

/* ---- the tokenizer of a dataset ---- */

/*
 * Opens the tokenizer that made a dataset, for commands that turn its tokens back into text.
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
