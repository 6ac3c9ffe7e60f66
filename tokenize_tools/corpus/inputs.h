/*
 * inputs.h - lists the files that the operands of a command name, one at a time.
 *
 * Operands keep their order. A folder represents all regular files in it and in its subfolders, in byte order of path;
 * symbolic links in it are not followed. An operand that contains * ? or [ and does not exist as a file is a pattern,
 * as in the shell, and represents its matches in byte order; names that begin with a dot match only if the pattern has
 * that dot. Memory grows with the folders on the current path, not with the number of files.
 */
#ifndef TOKMAP_CORPUS_INPUTS_H
#define TOKMAP_CORPUS_INPUTS_H

#include <stddef.h>

#include "tokmap/tokmap.h"

struct inputs;

/* Creates a list. The operands are not copied: they must stay valid until inputs_free(). One thread at a time.
 * Statuses: OK, ERROR_MEMORY. */
enum tokmap_status inputs_new(struct inputs **inputs, const char *const *operands, size_t count,
                              struct tokmap_error *error);
void inputs_free(struct inputs *inputs); /* accepts NULL */

/* Sets *path to the next path, "-" for standard input; it is valid until the next call. After an error, the next call
 * continues with the input that follows. A file that does not exist is not an error here: the caller learns it when it
 * opens the file. Statuses: OK, END, ERROR_NOT_FOUND (a pattern without matches, a folder without files, an empty
 * name), ERROR_IO (a folder cannot be read), ERROR_MEMORY. */
enum tokmap_status inputs_next(struct inputs *inputs, const char **path, struct tokmap_error *error);

#endif
