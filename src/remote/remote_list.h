/* SPDX-License-Identifier: MIT */
/*
 * remote_list.h - the objects that a name with a prefix or a pattern stands for, in byte order of their keys.
 *
 *     s3://BUCKET/PREFIX/          the objects whose keys begin with PREFIX/
 *     s3://BUCKET/PREFIX*.jsonl    those whose keys match: a wildcard does not match a slash, two stars match folders
 *     hf://datasets/OWNER/NAME@COMMIT/FOLDER/    the files of a repository of the Hugging Face Hub, or hf://OWNER/NAME
 *
 * Lists come in pages of at most 1,000 keys (ListObjectsV2), and one page is in memory. What a server sends is checked:
 * a list that is not sorted, that repeats itself, or that has other keys than those that were asked for is an error,
 * because objects would be read twice or be missing.
 *
 * Thread rule: one thread at a time per list.
 */
#ifndef TOKMAP_REMOTE_REMOTE_LIST_H
#define TOKMAP_REMOTE_REMOTE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "remote_client.h"

struct remote_list;

/* Returns true if a name stands for several objects: s3://, gs://, or hf://, with a wildcard, a slash at the end, or a
 * bucket or repository alone. */
bool remote_is_list(const char *name);

/* Opens a list. `name` must stay valid until remote_list_close(). patterns: * ? and [ in it are wildcards; otherwise
 * they belong to the keys. stop and user as for stream_new(). Statuses: OK, ERROR_ARGUMENT, ERROR_MEMORY. */
enum tokmap_status remote_list_open(struct remote_list **list, const char *name, bool patterns,
                                    bool (*stop)(void *user), void *user, const struct remote_watch *watch,
                                    struct tokmap_error *error);
void remote_list_close(struct remote_list *list); /* accepts NULL */

/* Sets *path to the name of the next object, which is valid until the next call, *bytes to its size, and *tag to the
 * hash of its ETag, or 0 if the list does not say it. Keys that end with a slash, which programs make to show folders,
 * are passed over. Statuses: OK, END, those of remote_client_fetch(), ERROR_CORRUPT (the list is damaged, or not
 * sorted), ERROR_LIMIT (a key that a pattern cannot be compared with). */
enum tokmap_status remote_list_next(struct remote_list *list, const char **path, uint64_t *bytes, uint64_t *tag,
                                    struct tokmap_error *error);

/* Returns how many bytes of each path belong to the name of the list: up to the last slash before a wildcard or the
 * end. */
size_t remote_list_base(const struct remote_list *list);

#endif
