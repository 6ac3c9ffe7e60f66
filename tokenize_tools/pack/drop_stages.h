/*
 * drop_stages.h - the stages of packing in one piece, where the documents of all inputs are compared with each other:
 * all inputs are scanned as one unit, and then compared (pack_stages.h). What is found is in files of the folder
 * NAME.work, so a process that continues does not begin again. Near-duplicates are compared before the first document
 * is packed; equal documents only when the table of their keys is full (drop_filter.h), in the middle of packing.
 */
#ifndef TOKMAP_PACK_DROP_STAGES_H
#define TOKMAP_PACK_DROP_STAGES_H

#include "pack_journal.h"
#include "pack_stages.h"

/* Whether documents are compared before the first one is packed. */
bool drop_stages_precede(const struct pack_options *options);
/* Whether they are compared when the table of keys is full. If not, the table has no limit. */
bool drop_stages_follow(const struct pack_options *options, const struct scan_inputs *inputs);
/* One of both. */
bool drop_stages_may_come(const struct pack_options *options, const struct scan_inputs *inputs);

/* Whether every input can be read twice: the operands and lists name no standard input, pipe, or device. */
bool drop_stages_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select);

/* Begins as zero bytes. */
struct drop_stages {
    struct pack_stages work;
    struct drop_source source; /* for drop_filter_new(); valid as long as this, and as the folder's name */
};

/* Does what is missing of the stages in the folder of the journal, which `corpus` is not to read; NULL: it is being
 * read. Statuses: OK, ERROR_ARGUMENT (an input cannot be read twice), those of pack_journal_stages() and
 * schedule_run(). drop_stages_free() follows in any case. */
enum tokmap_status drop_stages_do(struct drop_stages *stages, const struct pack_options *options,
                                  const struct scan_inputs *inputs, struct pack_journal *journal, struct corpus *corpus,
                                  struct tokmap_error *error);

/* Does them in a folder. options->drop and what unit_scan.h says are used. With --dedup exact, nothing is found out
 * about excluded n-grams. Statuses: those of schedule_run(). */
enum tokmap_status drop_stages_run(struct drop_stages *stages, const struct pack_options *options,
                                   const struct scan_inputs *inputs, const char *folder, struct tokmap_error *error);
void drop_stages_free(struct drop_stages *stages); /* accepts zeros */

#endif
