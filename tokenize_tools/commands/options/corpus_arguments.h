/* SPDX-License-Identifier: MIT */
/* corpus_arguments.h - the options that say how inputs are read, for every command that reads text. */
#ifndef TOKMAP_COMMANDS_OPTIONS_CORPUS_ARGUMENTS_H
#define TOKMAP_COMMANDS_OPTIONS_CORPUS_ARGUMENTS_H

#include "cli/cli.h"
#include "corpus/corpus.h"
#include "corpus/inputs.h"

struct corpus_arguments {
    int format;   /* enum corpus_format */
    int on_error; /* 0: stop, 1: skip */
    int invalid;  /* enum corpus_invalid */
    const char *field;
    const char *separator;                      /* as the user gave it, or NULL */
    char separator_text[RECORD_SEPARATOR_MOST]; /* without escapes: separator_bytes */
    uint64_t separator_bytes;
    uint64_t max_record, max_document; /* bytes */
    struct cli_list include, exclude, lists;
    bool null, hidden, table_files;
    uint64_t feeder; /* a process id, or 0; only commands that offer CORPUS_OPTION_FEEDER set it */
    bool feeder_given;
    uint64_t feed;
};
#define CORPUS_ARGUMENTS_INIT                                                                                          \
    {                                                                                                                  \
        .field = "text", .max_record = (uint64_t)64 << 20, .max_document = (uint64_t)64 << 20                          \
    }

/* The values of enum corpus_format in order. */
#define CORPUS_FORMAT_CHOICES "auto|text|jsonl|json|csv|tsv|parquet|warc"

/* clang-format off */
/* Rows for a table of options. These three say what the inputs are. */
#define CORPUS_OPTIONS_INPUT(corpus)                                                                                   \
    {0, "input-format", CLI_CHOICE, &(corpus).format, NULL, "FORMAT",                                                  \
     "text, jsonl, json (an array of objects, or objects), csv, tsv, parquet, warc, or auto (default): by name and content; " \
     "records that are not named as such are refused", CORPUS_FORMAT_CHOICES},                                         \
    {0, "field", CLI_TEXT, &(corpus).field, NULL, "NAME",                                                              \
     "the field or column of a record that holds the text (default: text)", NULL},                                     \
    {0, "separator", CLI_TEXT, &(corpus).separator, NULL, "TEXT",                                                      \
     "what separates the documents of a text file, such as '<|endoftext|>' or '\\n\\n'; \\n, \\t, \\r, \\\\, and "     \
     "\\xHH are escapes (default: a text file is one document)", NULL}
/* These six say which files are read. */
#define CORPUS_OPTIONS_FILES(corpus)                                                                                   \
    {0, "include", CLI_LIST, &(corpus).include, NULL, "GLOB",                                                          \
     "read only files whose name matches, or whose path below the folder matches if GLOB has a slash; may be repeated", \
     NULL},                                                                                                            \
    {0, "exclude", CLI_LIST, &(corpus).exclude, NULL, "GLOB",                                                          \
     "leave out files and folders whose name or path matches; may be repeated", NULL},                                 \
    {0, "hidden", CLI_FLAG, &(corpus).hidden, NULL, NULL,                                                              \
     "read also hidden files and folders, whose names begin with a dot, or with _ beside tables", NULL},               \
    {0, "table-files", CLI_FLAG, &(corpus).table_files, NULL, NULL,                                                    \
     "read all files of tables of Delta Lake, Iceberg, and Hudi, with rows that were deleted or replaced", NULL},      \
    {0, "files-from", CLI_LIST, &(corpus).lists, NULL, "FILE",                                                         \
     "read also the files that FILE lists, one path per line; - is standard input; may be repeated", NULL},            \
    {'0', "null", CLI_FLAG, &(corpus).null, NULL, NULL,                                                                \
     "the paths of --files-from end with a zero byte, as find -print0 writes them", NULL}
/* This one says what happens at a bad file or record. */
#define CORPUS_OPTION_ON_ERROR(corpus)                                                                                 \
    {0, "on-error", CLI_CHOICE, &(corpus).on_error, NULL, "ACTION",                                                    \
     "at a bad file or record: stop (default), or skip: leave it out, report it, and count it", "stop|skip"}
/* This one is for a program that starts the command (cli_is_internal()). */
#define CORPUS_OPTION_FEEDER(corpus)                                                                                   \
    {0, "feeder", CLI_NUMBER, &(corpus).feeder, &(corpus).feeder_given, "PID",                                         \
     "internal: standard input is a feed (byte_source.h) of the process PID, the parent of this one", NULL},                \
    {0, "feed-id", CLI_NUMBER, &(corpus).feed, NULL, "ID",                                                             \
     "internal: the number by which a feed is known that the parent can repeat", NULL}
/* These three say what happens to texts that are not valid UTF-8 or too long. */
#define CORPUS_OPTIONS_TEXTS(corpus)                                                                                   \
    {0, "invalid-utf8", CLI_CHOICE, &(corpus).invalid, NULL, "ACTION",                                                 \
     "at text that is not valid UTF-8: error (default), replace (U+FFFD for each invalid sequence), or skip (leave "   \
     "the document out)", "error|replace|skip"},                                                                       \
    {0, "max-record", CLI_SIZE, &(corpus).max_record, NULL, "SIZE",                                                    \
     "the longest accepted record (default: 64Mi)", NULL},                                                      \
    {0, "max-document", CLI_SIZE, &(corpus).max_document, NULL, "SIZE",                                                \
     "the largest accepted text that must be held in memory whole (default: 64Mi)", NULL}
/* clang-format on */

/* Decodes the separator. Refuses arguments that are wrong or contradict each other: the operands and lists name
 * standard input twice, or not alone although it is a feed, or the limits are 0. Returns 0, or prints a message and
 * returns the exit status. */
int corpus_arguments_check_named(const struct cli_command *command, struct corpus_arguments *arguments,
                                 const char *const *operands, size_t operand_count);

/* Like corpus_arguments_check_named(). If there are no operands and no lists, adds "-" (standard input), unless
 * standard input is a terminal or /dev/null; operands needs room for one more. Returns 0, or prints a message and
 * returns the exit status. */
int corpus_arguments_check(const struct cli_command *command, struct corpus_arguments *arguments, const char **operands,
                           size_t *operand_count);

/* Copies the arguments into the fields of *options that they set; the other fields keep their values. The options point
 * to the arguments. */
void corpus_arguments_apply(const struct corpus_arguments *arguments, struct corpus_options *options);

/* ---- the size of the inputs ---- */

/*
 * How many bytes the inputs have, for progress and for estimates.
 *
 * To add them up, every folder must be walked, which takes about as long as reading small files. Where a person waits
 * at a terminal, this is done at once. Elsewhere it is done at once only if every operand is a file; otherwise when the
 * work has taken half a minute, so that short work in scripts is not slowed down.
 */

struct input_size {
    const char *const *operands;
    size_t operand_count;
    const struct inputs_selection *select;
    uint64_t started_ns;
    bool measured;
    uint64_t bytes; /* 0 if not measured, or unknown because an input is a pipe */
};

/* Begins, and measures if that is to be done at once. The operands and the selection must stay valid. mode: enum
 * cli_progress_mode. */
void input_size_start(struct input_size *size, const char *const *operands, size_t operand_count,
                      const struct inputs_selection *select, int mode);
/* Measures if it is time. Returns the size, or 0. To be called from time to time, by one thread at a time. */
uint64_t input_size_update(struct input_size *size);

#endif
