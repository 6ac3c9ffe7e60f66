/* SPDX-License-Identifier: MIT */
/*
 * folder_list.h - lists the datasets of a folder that is not one dataset.
 *
 * A folder is a dataset if its shards agree in width and tokenizer (FORMAT.md). People also keep datasets of several
 * tokenizers in one folder, and want to see which. Listed is what can be named in it: each shard that is directly in
 * the folder, each manifest, and each subfolder with shards.
 */
#ifndef TOKMAP_COMMANDS_INFO_FOLDER_LIST_H
#define TOKMAP_COMMANDS_INFO_FOLDER_LIST_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

/* Returns whether `name` is a folder whose shards cannot be one dataset, because they differ in width or tokenizer. */
bool folder_is_several(const char *name);

/* Prints the datasets of a folder, as a table or as a JSON object. A dataset that cannot be opened has a row with the
 * reason; the first of these failures is then returned, after the list. Statuses: OK, ERROR_IO, ERROR_MEMORY, those of
 * tokmap_dataset_open(). */
enum tokmap_status folder_list(const char *folder, bool as_json, struct tokmap_error *error);

#endif
