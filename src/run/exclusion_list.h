/* SPDX-License-Identifier: MIT */
/*
 * exclusion_list.h - reads a list of documents, which a run excludes or `tokmap show --exposures` asks about. RUN.md
 * defines the file. It is read in parts of a fixed size, so its length needs no memory.
 */
#ifndef TOKMAP_RUN_EXCLUSION_LIST_H
#define TOKMAP_RUN_EXCLUSION_LIST_H

#include "run_sources.h"

/* The first word of a comment that has the content id of a source's dataset: "# content-id NAME ID". */
#define EXCLUSION_CONTENT "content-id"

/* A document of a list. */
struct exclusion_item {
    uint64_t source; /* its number */
    struct tokmap_document document;
    uint64_t line; /* of the list */
};

/* Calls each() for the documents of a list, in its order, until it returns another status than OK, which is returned.
 * The sources are open. Statuses: OK, those of each(), ERROR_NOT_FOUND and ERROR_IO (the list cannot be read),
 * ERROR_FORMAT (a line is wrong), ERROR_RANGE (a source has no such document), ERROR_MISMATCH (the list was made for
 * another dataset), ERROR_LIMIT (the list is too long), ERROR_UNSUPPORTED (nothing says where documents are),
 * ERROR_CORRUPT. Errors name the list and its line. */
enum tokmap_status exclusion_list_read(const char *path, const struct run_sources *sources,
                                       enum tokmap_status (*each)(void *user, const struct exclusion_item *item,
                                                                  struct tokmap_error *error),
                                       void *user, struct tokmap_error *error);

#endif
