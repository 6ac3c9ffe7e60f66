/* SPDX-License-Identifier: MIT */
/*
 * option_table.h - the description of a command and its options, from which the parser and the help (arguments.h) and
 * the completion in shells (complete.h) are made.
 */
#ifndef TOKMAP_CLI_OPTION_TABLE_H
#define TOKMAP_CLI_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum cli_kind {
    CLI_FLAG,   /* bool: --name */
    CLI_TEXT,   /* const char *: --name VALUE, --name=VALUE */
    CLI_MAYBE,  /* const char *: --name (stores "") or --name=VALUE; the next word is never its value */
    CLI_NUMBER, /* uint64_t: decimal */
    CLI_SIZE,   /* uint64_t: decimal, then k m g t (powers of 1000) or Ki Mi Gi Ti (of 1024), and B, all optional */
    CLI_REAL,   /* double */
    CLI_CHOICE, /* int: the index of the value in `choices`, a list such as "a|b|c"; values after "||" are accepted but
                 * not listed, such as old spellings: in "a|b||c" the value c has index 2 */
    CLI_RANGE,  /* struct cli_range (numbers.h): A..B, which includes A and excludes B */
    CLI_LIST,   /* struct cli_list: --name VALUE, which adds a value each time */
    CLI_TITLE   /* no option: a heading of the help; see CLI_HEADING */
};

/* The values of an option that may be repeated, in the order of the command line. Begins as zeros. */
#define CLI_LIST_MOST 64
struct cli_list {
    const char *values[CLI_LIST_MOST];
    size_t count;
};

struct cli_option {
    char letter;      /* 'o' for -o, 0 if the option has no letter */
    const char *name; /* "output" for --output */
    enum cli_kind kind;
    void *into;  /* destination of the value; unchanged if the option is absent, so set the default before parsing */
    bool *given; /* set to true if the option is present; may be NULL */
    const char *value;   /* the value's name in the help: "PREFIX"; NULL for flags */
    const char *help;    /* the help wraps it; see cli_is_internal() */
    const char *choices; /* of CLI_CHOICE; else NULL, or words between | or , that completion offers, each time where
                          * `value` ends in ",...". For the value SOURCE, it offers the sources of the run. */
};

/* A row of a table of options that is not an option: in the help, the options after it appear under this heading, up to
 * the next one. Options before the first heading appear under "Options". A heading "General" comes last and also has
 * --help and --version; the help adds it where the table lacks it. The text has no colon: CLI_HEADING("Inputs"). */
#define CLI_HEADING(text)                                                                                              \
    {                                                                                                                  \
        0, "", CLI_TITLE, NULL, NULL, NULL, text, NULL                                                                 \
    }

enum cli_operands {
    CLI_FILES = 1,    /* files and folders */
    CLI_DATASETS = 2, /* prefixes of shards, folders, and manifests */
    CLI_RUNS = 4      /* run files: by their suffix .run, although other names are accepted, too */
};

/* An option that is often used, in the help of a command that has many. */
struct cli_often {
    const char *name; /* "output" */
    const char *help; /* a short text, or NULL: that of the option */
};

struct cli_command {
    const char *program; /* "tokmap pack": every message begins with it */
    const char *usage;   /* "-o PREFIX [OPTION]... INPUT..." */
    const char *summary; /* one sentence */
    const char *details; /* paragraphs and examples that the help prints after the options, or NULL; a line that begins
                          * with a blank is an example, one shell command, which the help continues with backslashes */
    const struct cli_often *often; /* the options that --help prints, while --help-all prints all of them; */
    size_t often_count;            /* 0: --help prints all */
    const struct cli_option *options;
    size_t option_count;
    unsigned operands;         /* completion of operands: the sum of values of enum cli_operands, or 0 */
    const char *first_operand; /* a list as for CLI_CHOICE that completion offers for the first operand, or NULL */
};

/* The members of struct cli_command for an array of options. */
#define CLI_OPTIONS(array) .options = (array), .option_count = sizeof(array) / sizeof((array)[0])

/* Returns true for an option that only programs of this project use: its help begins with "internal". The man page
 * describes it; --help and completion leave it out. */
static inline bool cli_is_internal(const struct cli_option *option)
{
    return option->kind != CLI_TITLE && strncmp(option->help, "internal", 8) == 0;
}

/* Returns the bytes of the part of CLI_CHOICE's list that messages and completion show. */
static inline size_t cli_choices_listed(const char *choices)
{
    const char *old = strstr(choices, "||");
    return old ? (size_t)(old - choices) : strlen(choices);
}

#endif
