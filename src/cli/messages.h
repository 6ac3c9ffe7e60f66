/* SPDX-License-Identifier: MIT */
/* messages.h - what a command prints on standard error, names and words made safe to print, and how it ends. */
#ifndef TOKMAP_CLI_MESSAGES_H
#define TOKMAP_CLI_MESSAGES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tokmap/tokmap.h"

/* Exit statuses. AGAIN: the share of a task is done, and the same command continues the work later. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSED = 2, CLI_AGAIN = 3 };

/* Prints a report for people on standard output, or on `file`, like printf(), with what is not plain in an argument in
 * its visible form (common/visible.h), newlines of an argument included. To be used wherever a report contains a name,
 * which may come from anyone. */
void cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_print_to(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "PROGRAM: " and the message on standard error. The message, which may quote a file or a name, is made visible
 * as by cli_print(). Standard output is flushed before, so that both streams appear in order where they go to one
 * place. */
void cli_say(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_say_list(const char *program, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

/* Prints "PROGRAM: warning: " and the message, as cli_say() does: for input that is accepted but is probably not what
 * the user meant. The exit status of the command does not change. */
void cli_warn(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "PROGRAM: " and the error on standard error; returns CLI_FAILED. */
int cli_failed(const char *program, const struct tokmap_error *error);

/* Flushes standard output in the middle of a command. Returns false if it cannot be written; cli_finish() reports why.
 */
bool cli_flush(void);

/* Notes that a part of the output is missing because there was no memory for it: cli_finish() fails. Any thread. */
void cli_output_lost(void);

/* Flushes standard output at the end of a command and checks it: a full disk or a closed pipe is a failure, even if
 * earlier writes seemed to succeed, and so is cli_output_lost(). Returns `status` if all output was written; otherwise
 * prints a message and returns CLI_FAILED, or `status` if that is a failure already. */
int cli_finish(const char *program, int status);

/* Writes text to a terminal with what is not plain in its visible form, so that the text cannot act on the terminal.
 * Newlines and tabs stay, or, with `line`, are made visible as well: a name has one line. A character may be split
 * between two calls. Initialize with {.file = ...}. */
struct visible {
    unsigned char held[4];       /* the bytes of a character that has begun */
    unsigned held_count, wanted; /* their number, and the length of that character */
    bool line;
    FILE *file;
};
void visible_write(struct visible *visible, const char *text, size_t bytes);
/* Writes the bytes of a last character that is incomplete. */
void visible_end(struct visible *visible);

/* Writes a name or a path: all of it, on one line. */
void visible_name(FILE *file, const char *name, size_t bytes);

/* Returns the word as a POSIX shell reads it back: unchanged if that is safe, otherwise between single quotes. A word
 * that begins with '-' gets "./" before it, since it is a path and not an option. The caller frees the result. Returns
 * NULL if the word has characters that a terminal does not show, and, after cli_output_lost(), if there is not enough
 * memory. */
char *cli_shell_quote(const char *path);

/* Catches signals as os_signals_catch() (process.h) does. A signal then also ends a wait for whatever reads standard
 * output, and the write fails. A command calls this before it prints anything. */
void cli_signals_catch(void);

/* Ends that. If a signal was caught, says why the work is not done, unless the message is NULL, and ends the process by
 * the signal. */
void cli_signals_end(const char *program, const char *message);

#endif
