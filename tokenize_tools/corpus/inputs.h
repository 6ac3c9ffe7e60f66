/*
 * inputs.h - from the operands of a command to the files that they mean, one after the other.
 *
 * Operands stand in the order given. A folder means all regular files below it, in byte order of path, symbolic links
 * left out. An operand that names nothing but holds * ? or [ is a pattern, as the shell's, and means what it matches,
 * in byte order; a name that begins with a dot is matched only by a dot. Memory grows with the largest folders on the
 * way down, not with the number of files.
 */
#ifndef TOKMAP_CORPUS_INPUTS_H
#define TOKMAP_CORPUS_INPUTS_H

#include <stddef.h>

#include "tokmap/tokmap.h"

struct inputs;

/* operands are not copied. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status inputs_new(struct inputs **inputs, const char *const *operands, size_t count,
                              struct tokmap_error *error);
void inputs_free(struct inputs *inputs); /* accepts NULL */

/* The next path, "-" for standard input; it lives until the next call. After a failure the next call goes on behind it.
 * Statuses: OK, END, ERROR_NOT_FOUND (no such file, nothing matched, a folder without files), ERROR_IO, ERROR_MEMORY.
 */
enum tokmap_status inputs_next(struct inputs *inputs, const char **path, struct tokmap_error *error);

#endif
