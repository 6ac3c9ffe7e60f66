/* SPDX-License-Identifier: MIT */
/*
 * remote_hub.h - the Hugging Face Hub: which commit a name means, and which files a repository has.
 *
 * A branch moves, so a name is *pinned* before anything is read: its revision, or main, becomes the commit that it
 * means now, for as long as this process runs, and in a later process that is given the pins of this one.
 *
 *     hf://datasets/a/b/x/?.txt  ->  hf://datasets/a/b@2f0c...(40 digits)/x/?.txt  -> hf://datasets/a/b@2f0c.../x/1.txt
 *
 * Pins, and the lists of files of a commit, which cannot change, are kept until the process ends. Any thread.
 */
#ifndef TOKMAP_REMOTE_REMOTE_HUB_H
#define TOKMAP_REMOTE_REMOTE_HUB_H

#include "remote_client.h"

/* A pin, or the files of a folder. */
struct hub_fact {
    struct hub_fact *next;
    char *name;                  /* of a revision, such as hf://datasets/a/b@main; or of a folder, with a slash */
    bool known;                  /* the rest is; accessed atomically */
    bool whole;                  /* with the files of subfolders */
    char commit[HUB_COMMIT + 1]; /* of a pin; otherwise "" */
    struct hub_file {
        char *path; /* in the repository */
        uint64_t bytes;
        uint64_t tag; /* the hash of the object id that git has for it; 0: unknown */
    } * files;        /* in byte order of path */
    uint64_t count, capacity;
};

/* Puts the commit into an hf:// name: *name becomes *pinned, which the caller frees. Leaves other names alone. dataset:
 * the repository must be a dataset, otherwise a model. stop and user as for stream_new(). Statuses: OK, ERROR_ARGUMENT,
 * ERROR_NOT_FOUND, ERROR_CORRUPT (no answer of a Hub), and those of remote_client_fetch(). */
enum tokmap_status remote_hub_pin(const char **name, bool dataset, char **pinned, bool (*stop)(void *user), void *user,
                                  const struct remote_watch *watch, struct tokmap_error *error);

/* Returns the pin after one, or the first after NULL; NULL at the end. */
const struct hub_fact *remote_hub_pin_next(const struct hub_fact *pin);
/* Takes a pin of an earlier process, unless there is one. commit: HUB_COMMIT digits. */
void remote_hub_pin_take(const char *revision, const char *commit);

/* Finds the files of a folder of a commit, whose name ends with a slash; a folder that does not exist has none. whole:
 * those of subfolders, too. The list may be of a folder above it. Statuses: OK, ERROR_NOT_FOUND (no repository, or
 * commit), ERROR_CORRUPT (the list is damaged, or too long), and those of remote_client_fetch(). */
enum tokmap_status remote_hub_files(struct remote_client *client, const char *folder, bool whole,
                                    const struct hub_fact **files, struct tokmap_error *error);

#endif
