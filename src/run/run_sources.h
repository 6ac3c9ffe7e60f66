/* SPDX-License-Identifier: MIT */
/*
 * run_sources.h - the sources and validation sets of a run: their datasets and plans, open, and what they must agree
 * in.
 */
#ifndef TOKMAP_RUN_RUN_SOURCES_H
#define TOKMAP_RUN_RUN_SOURCES_H

#include <stdbool.h>

#include "format/plan_file.h"
#include "run_spec.h"

struct run_source {
    const char *name; /* of the line */
    uint64_t name_bytes;
    char *data;      /* the name with which the dataset was opened */
    char *plan_path; /* the name with which the plan was opened; NULL: no plan */
    struct tokmap_dataset *dataset;
    struct plan plan;       /* if there is a plan_path */
    uint64_t tokens;        /* in the dataset */
    uint32_t identity_kind; /* 1 full, 2 sampled */
    uint8_t identity[16];   /* of the dataset, or of the plan over it */
};

struct run_sources {
    struct run_source *of; /* of spec.sources, in that order, and then of spec.validations */
    uint64_t count;        /* sources */
    uint64_t opened;       /* and validation sets */
    uint64_t vocabulary;   /* the largest of all */
    uint32_t width;        /* the largest of the sources */
    uint64_t pad_id;
    uint64_t segments_most, extents_most; /* of any row; 1 without plans */
    char *warning;                        /* NULL: none */
};

/* Opens the datasets and plans of all sources, several at a time. Relative names start from `folder`; NULL: the current
 * folder. path and from_text are for errors, as in phases_make(). spec must outlive *sources. Free *sources with
 * run_sources_close(), after a failure too.
 * Statuses: those of tokmap_dataset_open() and plan_open(), ERROR_MISMATCH (tokenizers differ; the plan is of another
 * dataset), ERROR_RANGE (the pad id does not fit in a token). */
enum tokmap_status run_sources_open(struct run_sources *sources, const struct run_spec *spec, const char *folder,
                                    const char *path, bool from_text, struct tokmap_error *error);
void run_sources_close(struct run_sources *sources);

#endif
