/* SPDX-License-Identifier: MIT */
/*
 * manifest_file.h - writes the manifest of a dataset again when its shards have changed.
 *
 * A manifest that states the sizes of its shards is wrong once one of them is replaced. A command that replaces shards
 * therefore takes the sizes out of the manifest before the first one, and states the new ones after the last one. If it
 * is interrupted in between, the dataset is still one: its shards are opened with it.
 */
#ifndef TOKMAP_COMMANDS_DATA_MANIFEST_FILE_H
#define TOKMAP_COMMANDS_DATA_MANIFEST_FILE_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Writes the manifest at `path` again, with the same names and comments, and with what the indexes of its shards say.
 * Statuses: OK, ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY, those of opening a manifest and an index. */
enum tokmap_status manifest_file_state(const char *path, struct tokmap_error *error);

/* Writes it with the names alone, if it states more. *stated: it did. A path that is not that of a manifest is left
 * alone. Statuses: the same. */
enum tokmap_status manifest_file_clear(const char *path, bool *stated, struct tokmap_error *error);

#endif
