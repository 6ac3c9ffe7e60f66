/* arguments.h - a command's options and operands: their description, parsing, and help. */
#ifndef TOKMAP_CLI_ARGUMENTS_H
#define TOKMAP_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

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
    CLI_TITLE   /* no option: a heading of the help; see CLI_HEADING */
};

struct cli_option {
    char letter;      /* 'o' for -o, 0 if the option has no letter */
    const char *name; /* "output" for --output */
    enum cli_kind kind;
    void *into;  /* where the value is stored; unchanged if the option is absent, so set the default before parsing */
    bool *given; /* set to true if the option is present; may be NULL */
    const char *value;   /* how the help names the value: "PREFIX"; NULL for flags */
    const char *help;    /* the help wraps it */
    const char *choices; /* of CLI_CHOICE, else NULL */
};

/* A row of a table of options that is not an option: in the help, the options after it appear under this heading, up to
 * the next one. Options before the first heading appear under "Options". A heading "General" comes last and also has
 * --help and --version; the help adds it where the table lacks it. The text has no colon: CLI_HEADING("Inputs"). */
#define CLI_HEADING(text)                                                                                              \
    {                                                                                                                  \
        0, "", CLI_TITLE, NULL, NULL, NULL, text, NULL                                                                 \
    }

struct cli_command {
    const char *program; /* "tokmap pack": every message begins with it */
    const char *usage;   /* "-o PREFIX [OPTION]... INPUT..." */
    const char *summary; /* one sentence */
    const char *details; /* paragraphs and examples that the help prints after the options, or NULL; a line that begins
                          * with a blank is an example, one shell command, which the help continues with backslashes */
    const struct cli_option *options;
    size_t option_count;
};

/* Parses argv[1 .. argc): stores the values of options and puts the operands, in the order of argv, into operands[],
 * which has room for argc of them. "--" ends the options; "-" is an operand. If an option is repeated, the last one
 * counts. --help prints the help on standard output, --version the version. Refuses to go on if the environment
 * variable TOKMAP_CPU has a value that cpu.h does not list. Returns -1 if the command is to go on; otherwise its exit
 * status, after a message where one is due. */
int cli_parse(const struct cli_command *command, int argc, char **argv, const char **operands, size_t *operand_count);

/* The main function of a command. Parses argv as cli_parse() does and, if the command is to go on, calls body() and
 * returns its result, which is the exit status. operands[] has room for one entry more than `count`, so that a body
 * whose operands default to "-" can store it there. */
int cli_run(const struct cli_command *command, int argc, char **argv,
            int (*body)(const struct cli_command *command, const char **operands, size_t count, void *user),
            void *user);

/* Prints "PROGRAM: " and the message on standard error, then "Try 'PROGRAM --help'."; returns CLI_MISUSED. */
int cli_misused(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the bytes of the part of CLI_CHOICE's list that messages and completion show. */
size_t cli_choices_listed(const char *choices);

/* For "did you mean": the word that is nearest to the one that was typed, or NULL if none of them is near. Words are
 * near if they differ in up to 2 bytes (1 if the typed word has fewer than 4), or if a word begins with the typed one.
 */
const char *cli_nearest(const char *typed, const char *const *words, size_t count);

#endif
