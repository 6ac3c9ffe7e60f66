/*
 * cli.h - what the two commands share: arguments, size suffixes, messages, progress, tables, JSON. Not in the library.
 *
 * Manners: results on stdout, talk on stderr, progress only on a terminal; exit 0 done, 1 failed, 2 misused.
 */
#ifndef TOKMAP_CLI_CLI_H
#define TOKMAP_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tokmap/tokmap.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSED = 2 };

/* Of `count` words the one nearest to what was typed, or NULL if none is near. For "did you mean". */
const char *cli_nearest(const char *typed, const char *const *words, size_t count);

/* ---- options ---- */

enum cli_kind {
    CLI_FLAG,   /* bool: --name */
    CLI_TEXT,   /* const char *: --name VALUE, --name=VALUE */
    CLI_MAYBE,  /* const char *: --name (value "") or --name=VALUE; never takes the next word */
    CLI_NUMBER, /* uint64_t: decimal */
    CLI_SIZE,   /* uint64_t: decimal with k m g t (1000s) or Ki Mi Gi Ti (1024s), optional B */
    CLI_REAL,   /* double */
    CLI_CHOICE, /* int: index in `choices`, a "a|b|c" list */
    CLI_RANGE   /* struct cli_range: A..B, holds A and not B */
};

struct cli_range {
    uint64_t first, end;
    bool given;
};

struct cli_option {
    char letter;      /* 'o' for -o, 0 for none */
    const char *name; /* "output" for --output */
    enum cli_kind kind;
    void *into;          /* keeps its value if the option is not given: set the default before */
    bool *given;         /* may be NULL */
    const char *value;   /* "PREFIX" in help, NULL for flags */
    const char *help;    /* one line or more, wrapped by help */
    const char *choices; /* for CLI_CHOICE */
};

struct cli_command {
    const char *program; /* "tokmap pack": begins every message */
    const char *usage;   /* "-o PREFIX [OPTION]... INPUT..." */
    const char *summary; /* one sentence */
    const char *details; /* paragraphs and examples after the options, or NULL */
    const struct cli_option *options;
    size_t option_count;
};

/* Parses argv[1 .. argc): sets options, leaves operands in argv order in operands[] (room for argc). "--" ends options,
 * "-" is an operand. --help prints help to stdout, --version the version. Refuses to go on if the environment variable TOKMAP_CPU
 * has a value that cpu.h does not list. Returns -1 to go on, else the exit status. */
int cli_parse(const struct cli_command *command, int argc, char **argv, const char **operands, size_t *operand_count);

/* The main function of a command. Parses argv as cli_parse() does and, if there is work to do, calls body() with the operands and
 * returns its result, which is the exit status. operands[] has room for one more entry, where a body whose operands default to
 * "-" can store it. */
int cli_run(const struct cli_command *command, int argc, char **argv,
            int (*body)(const struct cli_command *command, const char **operands, size_t count, void *user), void *user);

/* A message on stderr, "PROGRAM: ...", and the line "Try 'PROGRAM --help'."; returns CLI_MISUSED. */
int cli_misused(const struct cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "PROGRAM: " and the error on stderr; returns CLI_FAILED. */
int cli_failed(const char *program, const struct tokmap_error *error);
/* "PROGRAM: ..." on stderr. */
void cli_say(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Numbers as users type them. False if the text is no such number or does not fit. */
bool cli_parse_number(const char *text, uint64_t *number);
bool cli_parse_size(const char *text, uint64_t *size);
bool cli_parse_range(const char *text, struct cli_range *range);

/* os_signals_catch() for a command, before it uses stdout: a signal also ends a wait for what reads stdout; the write fails
 * then. */
void cli_signals_catch(void);
/* Flushes stdout in between; false if it takes no more, and cli_finish() says why. */
bool cli_flush(void);
/* Flushes and checks stdout at the end of a command: a full disk or a closed pipe behind it is a failure (a message,
 * CLI_FAILED). Returns `status` if all went well. */
int cli_finish(const char *program, int status);

/* ---- numbers for people; each writes into text[32] and returns it ---- */
const char *cli_bytes(uint64_t bytes, char text[32]);   /* "1.23 GB" */
const char *cli_count(uint64_t count, char text[32]);   /* "1,234,567" */
const char *cli_seconds(double seconds, char text[32]); /* "1.23 ms", "4 min 05 s" */
/* The same with what is counted: "1 row", "2,000 rows", "2 batches"; noun: in the singular. */
const char *cli_counted(uint64_t count, const char *noun, char text[64]);

/* ---- progress, on a terminal only ---- */

struct cli_progress {
    const char *what; /* "packing" */
    const char *unit; /* NULL: bytes, else "windows"; set it after the start */
    uint64_t total;   /* of the unit, 0 if unknown */
    bool shown;
    uint64_t started_ns, drawn_ns;
};
void cli_progress_start(struct cli_progress *progress, const char *what, uint64_t total, bool quiet);
/* Redraws at most 6 times a second: what, share, rate, time left. Any one thread. */
void cli_progress_update(struct cli_progress *progress, uint64_t done);
void cli_progress_end(struct cli_progress *progress); /* clears the line */

/* ---- JSON output: a writer to a FILE that keeps commas and escapes right ---- */

struct cli_json {
    FILE *file;
    uint32_t depth;
    uint64_t has_items; /* bit d: the container at depth d has an item */
    uint64_t is_array;  /* bit d: it is an array */
};
void cli_json_begin(struct cli_json *json, FILE *file);
void cli_json_object(struct cli_json *json, const char *key); /* key NULL: at the top or in an array */
void cli_json_array(struct cli_json *json, const char *key);
void cli_json_end(struct cli_json *json); /* closes the innermost; at the top writes a newline */
void cli_json_text(struct cli_json *json, const char *key, const char *text);
/* Bytes that may be no UTF-8: invalid sequences become U+FFFD. */
void cli_json_bytes(struct cli_json *json, const char *key, const char *text, size_t bytes);
void cli_json_number(struct cli_json *json, const char *key, uint64_t number);
void cli_json_real(struct cli_json *json, const char *key, double number); /* null if not finite */
void cli_json_bool(struct cli_json *json, const char *key, bool value);
void cli_json_null(struct cli_json *json, const char *key);
#define CLI_JSON_RAW_DEPTH 64
/* Writes a value that is JSON already, with its line ends replaced by spaces. Writes null if the bytes are not one valid JSON
 * value, or if more than CLI_JSON_RAW_DEPTH objects and arrays contain one another. */
void cli_json_raw(struct cli_json *json, const char *key, const char *text, size_t bytes);

/* ---- tables: rows of cells, columns aligned when printed ---- */

struct cli_table;
struct cli_table *cli_table_new(size_t columns);
/* Cells are copied; a NULL cell is empty. */
void cli_table_row(struct cli_table *table, const char *const *cells);
/* right[c]: align column c right (numbers); right NULL: none. */
void cli_table_print(struct cli_table *table, const bool *right, FILE *file);
void cli_table_free(struct cli_table *table);

#endif
