/* SPDX-License-Identifier: MIT */
/*
 * inputs.h - lists the files that a command reads, one at a time: those that its operands name, and then those that
 * lists of paths name.
 *
 * Operands keep their order. A folder represents all regular files in it and in its subfolders, in byte order of path;
 * symbolic links in it are not followed, and hidden names are left out unless options.hidden is set: those that begin
 * with a dot, and in a folder of tables those that begin with _. A file of a table of Delta Lake,
 * Hudi, or Iceberg is an error unless options.table_files is set, whatever names it. An operand that contains * ? or [
 * and does not exist as a file is a pattern, as in the shell, and represents its matches in byte order; names that
 * begin with a dot match only if the pattern has that dot or options.hidden is set. A component of a pattern that is
 * two stars matches any number of folders, also none, and follows symbolic links except into a folder that contains
 * them; it is an error if they lead to one folder on more than a few paths. Such a pattern matches only files, because
 * a folder and the files in it would both match. Paths in lists are names of files, not patterns.
 *
 * URLs (remote_url.h) are inputs, too, also in lists. An operand that names several objects of a bucket (remote_list.h)
 * represents them, like a folder its files, and hidden names below its prefix are left out. The paths of files of the
 * Hugging Face Hub have the commit in place of the revision that was named (remote_hub.h).
 *
 * Files may be excluded by globs (path_glob.h), which are compared with the path below the folder that an operand
 * names, with the path after the fixed folders of a pattern, or else with the path as it was named.
 *
 * Memory grows with the folders on the current path and with the matches of a pattern, not with the number of files.
 */
#ifndef TOKMAP_CORPUS_INPUTS_H
#define TOKMAP_CORPUS_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "remote/remote_stream.h"

/* Selection of files, beside the operands. Begins as zeros: all files that are not hidden. */
struct inputs_selection {
    const char *const *include, *const *exclude; /* globs; if there are no include globs, all files are included */
    size_t include_count, exclude_count;
    const char *const *lists; /* files that contain a path per line; "-" is standard input */
    size_t list_count;
    bool null;   /* the paths in lists end with a zero byte instead of a newline */
    bool hidden; /* hidden names are not left out */
    bool table_files;

    /* Called, from any thread, for the first file that inputs_next() returns of an operand that names several (a
     * folder, a pattern, a list of objects) once both kinds of files are known among them: those that have the name of
     * a text, and those that have the name of records (name_kind.h). Such a folder is often a data set with its README,
     * which would be a document. NULL: not called. */
    void (*mixed)(void *user, const char *operand, const char *text, const char *records);

    /* Called, from any thread, for the first path that inputs_next() has returned before (known_paths.h): the patterns
     * and folders of several operands may overlap. NULL: not called. */
    void (*repeated)(void *user, const char *path);
    void *user;                /* of both */
    struct remote_watch watch; /* of all URLs; called from any thread */
};

/* Reads exactly the operands, and makes the same calls about URLs. */
static inline struct inputs_selection inputs_selection_watching(const struct inputs_selection *all)
{
    return (struct inputs_selection){.hidden = true, .table_files = true, .watch = all->watch};
}

/* Counts of what was left out without being opened. */
struct inputs_counts {
    uint64_t files_hidden, folders_hidden;     /* a folder counts once, whatever it contains */
    uint64_t files_excluded, folders_excluded; /* by the globs */
    uint64_t links;                            /* symbolic links in folders */
    uint64_t specials;                         /* pipes, sockets, and devices in folders */
};

struct inputs;

/* Creates a list. Neither the operands nor what the selection points to is copied: both must stay valid until
 * inputs_free(). stop(user) ends a wait for a list that comes from a pipe, and the search for the matches of a pattern;
 * it may be NULL. One thread at a time. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status inputs_new(struct inputs **inputs, const char *const *operands, size_t count,
                              const struct inputs_selection *selection, bool (*stop)(void *user), void *user,
                              struct tokmap_error *error);
void inputs_free(struct inputs *inputs); /* accepts NULL */

/* Sets *path to the next path, "-" for standard input; it is valid until the next call. After an error, the next call
 * continues with the input that follows. A file that does not exist is not an error here: the caller learns it when it
 * opens the file. Statuses: OK, END, ERROR_NOT_FOUND (a pattern without matches, a folder without files, an empty
 * name, a list without paths, no file that the globs choose), ERROR_ARGUMENT (a folder in a list), ERROR_IO (a folder,
 * also one in which a pattern looks for matches, or a list cannot be read), ERROR_LIMIT (a path in a list is too
 * long; a pattern follows too many links), ERROR_FORMAT (a file of a table; ends the work), those of
 * remote_list_next(), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status inputs_next(struct inputs *inputs, const char **path, struct tokmap_error *error);

/* Returns the size of the last path, where a list of objects said it; otherwise UINT64_MAX. */
uint64_t inputs_bytes(const struct inputs *inputs);
/* Returns the hash of its ETag, where a list of objects said it; otherwise 0. */
uint64_t inputs_tag(const struct inputs *inputs);

/* Returns what has been left out so far. */
const struct inputs_counts *inputs_counts(const struct inputs *inputs);

/* Returns the total size of the files of a corpus as they are stored, in bytes, for a progress display. Returns 0 if
 * one of them is a pipe or a device, or if a list of paths is not a regular file, since it can be read only once.
 * Standard input and files that cannot be examined are not counted. stop(user) ends the search for the files, and the
 * result is then 0; it may be NULL. */
uint64_t corpus_size(const char *const *operands, size_t count, const struct inputs_selection *select,
                     bool (*stop)(void *user), void *user);

#endif
