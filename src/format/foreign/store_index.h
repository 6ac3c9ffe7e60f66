/* SPDX-License-Identifier: MIT */
/*
 * store_index.h - writes the .tmx of another project's file as a stream: its documents, the hashes of its blocks, its
 * mask, and where the tokens are. The file with the tokens does not change.
 *
 * The index is NAME.tmx.partial until the commit renames it, so it appears complete or not at all. A lock on the
 * partial file keeps a second writer away. The memory of a writer does not grow. For one thread at a time.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_STORE_INDEX_H
#define TOKMAP_FORMAT_FOREIGN_STORE_INDEX_H

#include <stdbool.h>

#include "foreign_name.h"
#include "format/layout.h"

struct store_index;

/* Creates the partial files. index_path: of the .tmx. mask: a mask is written, too, as the file of that name with .mask
 * instead of .tmx. replace: an index of such a file that exists is replaced; the index of a packed shard never is.
 * Statuses: OK, ERROR_EXISTS, ERROR_BUSY, ERROR_IO, ERROR_NOT_FOUND, ERROR_MEMORY. */
enum tokmap_status store_index_open(struct store_index **writer, const char *index_path, bool mask, bool replace,
                                    struct tokmap_error *error);

/* Append the ends of documents, in tokens, which never decrease; the hash of the next block; and bits of the mask. All
 * ends and bits must come before the commit; the three may alternate. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status store_index_ends(struct store_index *writer, const uint64_t *ends, uint64_t count,
                                    struct tokmap_error *error);
enum tokmap_status store_index_block(struct store_index *writer, uint64_t hash, struct tokmap_error *error);
enum tokmap_status store_index_mask(struct store_index *writer, const uint8_t *bits, uint64_t count,
                                    struct tokmap_error *error);

/* Returns the documents so far, and the end of the last one. */
uint64_t store_index_documents(const struct store_index *writer);
uint64_t store_index_last_end(const struct store_index *writer);

/* Writes the remaining sections, syncs, and renames. Frees the writer with every status. head: tokens, width,
 * vocabulary, largest_id, eod_id, and bos_id are given; the rest is filled in, the content id among it. tokens_path: as
 * it is to be stored. about: JSON text. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status store_index_commit(struct store_index *writer, struct section_shard *head,
                                      const struct foreign_layout *layout, const char *tokens_path, const char *about,
                                      struct tokmap_error *error);
void store_index_abort(struct store_index *writer); /* removes the partial files; NULL is ignored */

#endif
