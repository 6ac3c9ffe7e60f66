/* plan_check.h - reads a whole plan, and compares it with the documents of its dataset. */
#ifndef TOKMAP_COMMANDS_PLAN_CHECK_H
#define TOKMAP_COMMANDS_PLAN_CHECK_H

#include "format/plan_file.h"

/* Opens a plan and checks all of it. dataset: if not NULL, also that each segment is a whole document, or, of a
 * document longer than a row, a full row or the rest. *header receives the plan's header, or zeros if it cannot be
 * opened. progress: may be NULL; a result other than 0 ends the work. Statuses: those of plan_open() and plan_verify(),
 * ERROR_MISMATCH (the dataset has other documents). */
enum tokmap_status plan_check(const char *path, const struct tokmap_dataset *dataset,
                              int (*progress)(void *user, uint64_t done, uint64_t total), void *user,
                              struct plan_header *header, struct tokmap_error *error);

#endif
