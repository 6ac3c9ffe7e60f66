/* SPDX-License-Identifier: MIT */
/*
 * path.h - the parts of a path, and paths put together, as text: nothing here asks the file system.
 *
 * A path is bytes between slashes. Functions that return char * return memory that the caller frees, or NULL if there
 * is no memory for it.
 */
#ifndef TOKMAP_TEXT_PATH_H
#define TOKMAP_TEXT_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of bytes of `path` up to and including its last slash; 0 if it has none. */
size_t path_folder_bytes(const char *path);
/* Returns the part of `path` after its last slash; all of it if it has none. */
const char *path_name(const char *path);
bool path_is_absolute(const char *path); /* or the name of something elsewhere, such as s3://bucket/key */

/* "FOLDER/NAME" followed by `ending`. The slash is added only if the folder is not empty and does not end with one. */
char *path_join(const char *folder, size_t folder_bytes, const char *name, size_t name_bytes, const char *ending);
/* "PATHENDING". */
char *path_ended(const char *path, const char *ending);
/* Returns the path of `name` in a folder. */
char *path_in(const char *folder, const char *name);
/* Returns the path of `name` in the folder that contains `file`. */
char *path_beside(const char *file, const char *name);
/* Returns the folder that contains `path`, without a slash at its end: "." if the path has no slash, "/" for
 * "/name". */
char *path_folder(const char *path);
/* Returns the folder in which a user keeps what can be fetched again, by TOKMAP_CACHE, XDG_CACHE_HOME, or HOME. NULL
 * also if none of them is set. */
char *path_user_cache(void);
/* Returns whether the first `bytes` bytes of a path end in `ending`, after something else. */
bool path_ends_in(const char *path, size_t bytes, const char *ending);
/* For qsort(): compares two pointers to paths. */
int path_compare(const void *a, const void *b);
/* Makes the path of `file` from the folder `from`, both absolute, compared part by part as text. Example: "../data/web"
 * is /a/data/web from /a/runs. False if no such path exists, because `from` has a part "..". *relative is NULL then,
 * and without memory. */
bool path_relative(const char *from, const char *file, char **relative);

/* Compares elements of an array of paths, for qsort(): a and b point to them. */
int path_compare(const void *a, const void *b);

#endif
