/* visible_write.h - writes text that comes in parts, with its control characters made visible (see common/visible.h).
 */
#ifndef TOKMAP_CLI_VISIBLE_WRITE_H
#define TOKMAP_CLI_VISIBLE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

#endif
