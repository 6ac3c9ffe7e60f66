/* SPDX-License-Identifier: MIT */
/*
 * tokenizer_fetch.h - a tokenizer that is a model of the Hugging Face Hub: hf://OWNER/NAME or hf://OWNER/NAME@REVISION.
 *
 * Its files are fetched once into a folder of this machine. A commit never changes, so later commands that name the
 * commit send no request.
 *
 *     ~/.cache/tokmap/hub/models--OWNER--NAME/snapshots/COMMIT/    (TOKMAP_CACHE, or XDG_CACHE_HOME/tokmap)
 */
#ifndef TOKMAP_COMMANDS_OPTIONS_TOKENIZER_FETCH_H
#define TOKMAP_COMMANDS_OPTIONS_TOKENIZER_FETCH_H

#include "tokmap/tokmap.h"

/* Sets *pinned to the name with its commit, and *path to the folder, which are valid until the process ends. Other
 * names stay as they are. One thread at a time. Statuses: OK, ERROR_ARGUMENT, ERROR_NOT_FOUND, ERROR_CORRUPT, ERROR_IO
 * (also: the folder cannot be written), ERROR_LIMIT (a file is too large for one of a tokenizer), ERROR_INTERRUPTED,
 * ERROR_UNSUPPORTED (no libcurl), ERROR_MEMORY. */
enum tokmap_status tokenizer_fetch(const char *name, const char **pinned, const char **path,
                                   struct tokmap_error *error);

#endif
