/* SPDX-License-Identifier: MIT */
/*
 * exclusion.h - the tokens that a run does not show from a step on: those of the documents that the lists of its lines
 * `exclude FILE from STEP` name. In a row of that step or a later one, such a token is the pad id, and a target does
 * not count if it, or the token before it, is one.
 *
 * The lists are kept as ranges of tokens of each source, sorted, each with the step from which it is excluded. Two
 * lists, or two orders of a list, that exclude the same tokens from the same steps on are the same.
 */
#ifndef TOKMAP_RUN_EXCLUSION_H
#define TOKMAP_RUN_EXCLUSION_H

#include "common/hash.h"
#include "run_sources.h"

/* The first word of a comment that has the content id of a source's dataset: "# content-id NAME ID". */
#define EXCLUSION_CONTENT "content-id"

/* A document of a list, which a run excludes or `tokmap show --exposures` asks about. RUN.md defines the file. It is
 * read in parts of a fixed size, so its length needs no memory. */
struct exclusion_item {
    uint64_t source; /* its number */
    struct tokmap_document document;
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

#define EXCLUSION_RANGES_MOST ((uint64_t)1 << 24) /* of a run, with room to grow: 400 MB */

/* Tokens first <= token < end of a source's dataset are excluded from step `from` on. */
struct exclusion_range {
    uint64_t first, end;
    uint64_t from;
};

/* Sorted ranges, of which none overlaps another. */
struct exclusion_ranges {
    struct exclusion_range *of;
    uint64_t count;
};

/* One line of the run. */
struct exclusion_list {
    char *path; /* with which the list was opened */
    uint64_t step, line;
    uint64_t documents, tokens; /* of the list; one that is listed twice counts twice */
};

/* From step `step` on, more tokens are excluded than before it. */
struct exclusion_event {
    uint64_t step;
    struct hash128 hash; /* of these tokens: see past.c */
};

struct exclusions {
    const struct run_sources *sources;
    struct exclusion_ranges *of;  /* by source; NULL: the run has no list */
    struct exclusion_list *lists; /* in the order of the text */
    uint64_t list_count;
    struct exclusion_event *events; /* by step */
    uint64_t event_count;
};

/* Reads the lists of a run, whose sources are open and outlive *exclusions. Relative names start from `folder`; NULL:
 * the current folder. path and from_text are for errors, as in phases_make(). Free *exclusions with exclusions_free(),
 * after a failure too. Statuses: those of exclusion_list_read(). */
enum tokmap_status exclusions_open(struct exclusions *exclusions, const struct run_sources *sources,
                                   const struct run_spec *spec, const char *folder, const char *path, bool from_text,
                                   struct tokmap_error *error);
void exclusions_free(struct exclusions *exclusions);

/* Returns whether some list excludes a token from some step on. */
static inline bool exclusions_any(const struct exclusions *exclusions)
{
    return exclusions->event_count != 0;
}

/* Returns the step from which a token of a source is excluded; TOKMAP_FOREVER: it never is. O(log ranges). */
uint64_t exclusion_step(const struct exclusions *exclusions, uint64_t source, uint64_t token);

/* A walk over the excluded parts of a row. */
struct exclusion_walk {
    const struct exclusion_ranges *ranges;
    const struct tokmap_extent *extents; /* of the row */
    uint64_t count, tokens;              /* of the extents; tokens of the dataset */
    uint64_t step;
    uint64_t extent, done; /* the extent at hand, and how many of its tokens are behind the walk */
    uint64_t row;          /* the token of the row with which that extent begins */
    uint64_t range;        /* the range at hand; UINT64_MAX: it is to be looked for */
};

/* Begins a walk over the row of a place that has these extents, which outlive the walk. */
void exclusion_walk_begin(struct exclusion_walk *walk, const struct exclusions *exclusions,
                          const struct tokmap_place *place, const struct tokmap_extent *extents, uint64_t count);

/* Finds the next excluded tokens of the row: [*first, *first + *count), counted from the row's first token. Returns
 * false after the last ones. O(log ranges) for each extent. */
bool exclusion_walk_next(struct exclusion_walk *walk, uint64_t *first, uint64_t *count);

#endif
