/* corpus_size.h - the size of the inputs of a command, before any of them is read. */
#ifndef TOKMAP_INPUTS_CORPUS_SIZE_H
#define TOKMAP_INPUTS_CORPUS_SIZE_H

#include "inputs.h"

/* Returns the total size of the files of a corpus as they are stored, in bytes, for a progress display. Returns 0 if
 * one of them is a pipe or a device, or if a list of paths is not a regular file, since it can be read only once.
 * Standard input and files that cannot be examined are not counted. stop(user) ends the search for the files, and the
 * result is then 0; it may be NULL. */
uint64_t corpus_size(const char *const *operands, size_t count, const struct inputs_selection *select,
                     bool (*stop)(void *user), void *user);

#endif
