/* SPDX-License-Identifier: MIT */
/*
 * table_folders.h - what the names around a file say about it, in folders and in prefixes of object storage.
 *
 *     lake/_SUCCESS, lake/part-0.json         a folder of tables, where names that begin with _ are not data
 *     lake/_delta_log/0.json, lake/0.parquet  a table: its files also have rows that were deleted or replaced
 *
 * Thread rule: one thread at a time per search.
 */
#ifndef TOKMAP_CORPUS_TABLE_FOLDERS_H
#define TOKMAP_CORPUS_TABLE_FOLDERS_H

#include "known_paths.h"
#include "remote/remote_client.h"

/* Begins as zeros, with the members of the caller, as for remote_list_open(). */
struct table_search {
    bool (*stop)(void *user);
    void *user;
    const struct remote_watch *watch;
    struct known_paths looked; /* folders that are not tables */
    char *asked;               /* the last folder of table_folder(), which the caller frees, */
    bool has_tables;           /* and the answer */
};

/* Returns true for the name of what is beside the files of tables, such as _SUCCESS, and never data. */
bool table_mark(const char *name, size_t bytes);

/* Returns true if a folder, the first `bytes` bytes of the path, has such a name or a .parquet file. */
bool table_folder(struct table_search *search, const char *path, size_t bytes);

/* Looks for the table that a file is in. Returns NULL, or what it is and what reads its rows, and sets *folder, which
 * the caller frees. Folders that were looked at before are not looked at. */
const char *table_find(struct table_search *search, const char *path, char **folder);

#endif
