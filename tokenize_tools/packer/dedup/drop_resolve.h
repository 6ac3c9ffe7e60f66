/* SPDX-License-Identifier: MIT */
/*
 * drop_resolve.h - the second stage of packing in units with duplicates left out: compares the keys that the scans of
 * all units have found (unit_scan.h), and writes which documents are dropped to NAME.work/drops-000003 (stage_file.h).
 *
 * Keys are compared in portions, each of those whose first bits are its number, so that several processes compare them
 * at a time, and the memory for one is bounded. How many portions there are depends on the number of documents alone.
 *
 * A portion has one section for each unit: struct stage_record of each document of it that is dropped, in the order of
 * the input. The input of the kept document is counted over the inputs with documents of all units.
 */
#ifndef TOKMAP_DEDUP_DROP_RESOLVE_H
#define TOKMAP_DEDUP_DROP_RESOLVE_H

#include "drop_list.h"
#include "ngram_table.h"

/* All units, after their scans. */
struct all_scans {
    const char *folder;
    uint64_t key, units;
    struct unit_scan *list;
    uint64_t *inputs; /* of each unit: the inputs with documents of the units before; one more has all of them */
    uint64_t documents;
    uint64_t portions; /* 0: nothing is compared */
    /* Called while a portion is compared: `done` of `all` equal parts of that are done. May be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t all);
    void *user;
};

/* Reads the totals of all scans, which are complete. all_scans_free() frees them, also after a failure. Statuses: those
 * of scan_file_read(), ERROR_LIMIT (2^32 inputs). */
enum tokmap_status all_scans_read(struct all_scans *scans, const struct drop_stage *stage, const char *folder,
                                  uint64_t key, uint64_t units, struct tokmap_error *error);
void all_scans_free(struct all_scans *scans); /* accepts zeros */

/* Returns the last unit that begins with a number or before it. begins: where each unit begins. */
uint64_t all_scans_unit(const struct all_scans *scans, const uint64_t *begins, uint64_t number);

/* About how many bytes of keys a portion has. */
uint64_t all_scans_portion_bytes(const struct all_scans *scans, const struct drop_stage *stage);

/* Compares the keys of a portion. Statuses: those of stage files, ERROR_LIMIT (the keys do not fit in the memory),
 * ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status drop_portion_run(const struct all_scans *scans, const struct drop_stage *stage, uint64_t portion,
                                    struct tokmap_error *error);

/* Does the same for near-duplicates: joins documents that have a band in common to clusters, and writes those that are
 * not the first of their cluster to NAME.work/drops-000000. One process does this, because a cluster may have documents
 * of any unit and bands of any partition. It needs 4 bytes of memory for each document, and a table for the bands of a
 * partition. If it is killed, the next process continues where it was some seconds before. Statuses: those of stage
 * files, ERROR_LIMIT (2^32 - 1 documents), ERROR_INTERRUPTED, ERROR_MEMORY. */
enum tokmap_status near_resolve_run(const struct all_scans *scans, const struct drop_stage *stage,
                                    struct tokmap_error *error);

#endif
