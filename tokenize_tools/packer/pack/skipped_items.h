/* SPDX-License-Identifier: MIT */
/*
 * skipped_items.h - what was left out of one unit of work, in the file NAME.work/unit-000012.skipped, so that the
 * process that names the shards can list what all of them have left out (--skipped-list).
 *
 * The file is complete when the record of the unit exists (unit_record.h). Before that it grows with the unit, and a
 * process that continues a unit that was killed takes as many bytes of it as the journal of the unit says.
 */
#ifndef TOKMAP_PACK_SKIPPED_ITEMS_H
#define TOKMAP_PACK_SKIPPED_ITEMS_H

#include "format/index_writer.h"
#include "unit_record.h"

struct skipped_items; /* for one thread at a time */

/* Begins the file of a unit, or continues it after skipped_items_load(). key: of unit_record.h. Statuses: OK, ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status skipped_items_open(struct skipped_items **items, const char *folder, uint64_t key, uint64_t unit,
                                      struct tokmap_error *error);

/* Appends an item. skipped_items_end() reports a failure. */
void skipped_items_add(struct skipped_items *items, const struct corpus_issue *issue, const struct tokmap_error *why);

/* Save, after a sync, how much of the file there is, and restore it in another process: see struct pack_options.
 * Statuses of load: OK, ERROR_CORRUPT (the file is shorter, or the bytes say something else). */
void skipped_items_save(struct skipped_items *items, struct state_sink *sink);
enum tokmap_status skipped_items_load(struct skipped_items *items, uint32_t kind, const uint8_t *bytes, size_t count,
                                      struct tokmap_error *error);

/* Completes the file, syncs it and its name, and says what it has. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status skipped_items_end(struct skipped_items *items, bool sync, struct skipped_size *size,
                                     struct tokmap_error *error);
void skipped_items_free(struct skipped_items *items); /* leaves the file; accepts NULL */

/* Reads the file of a unit that is finished, which has this size. Statuses: OK, ERROR_CORRUPT (it is missing, or
 * damaged), ERROR_IO, ERROR_MEMORY, those of taker->item(). */
enum tokmap_status skipped_items_read(const char *folder, uint64_t key, uint64_t unit, const struct skipped_size *size,
                                      const struct skipped_taker *taker, struct tokmap_error *error);

#endif
