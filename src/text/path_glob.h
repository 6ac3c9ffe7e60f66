/* SPDX-License-Identifier: MIT */
/*
 * path_glob.h - compares paths with globs, for the options that choose among the files that inputs name.
 *
 * A glob without a slash is compared with a name: "*.txt". A glob with a slash is compared with a whole path, component
 * by component: "docs/<star>.txt", where <star> does not match a slash; a component that is two stars matches any
 * number of components, also none: a/<two stars>/b matches a/b and a/x/y/b. A slash at the start is ignored, so
 * "/<star>.txt" chooses the files directly in the folder. Names that begin with a dot are names like any other here.
 */
#ifndef TOKMAP_TEXT_PATH_GLOB_H
#define TOKMAP_TEXT_PATH_GLOB_H

#include <stdbool.h>

/* Returns true if the glob chooses the file with this path: by its name, or by the whole path. Any thread. */
bool path_glob_file(const char *glob, const char *path);

/* Returns true if the glob chooses the file or folder with this path, or one of the folders that the path contains:
 * "a/b/c" is chosen with "a", with "b", and with "a/b". Any thread. */
bool path_glob_tree(const char *glob, const char *path);

#endif
