/* pack_accounts.h - counts documents, and checks at the end of pack_run() that what was read is what was written. */
#ifndef TOKMAP_PACK_PACK_ACCOUNTS_H
#define TOKMAP_PACK_PACK_ACCOUNTS_H

#include "packing_options.h"

/* Checks what must be true at the end, whatever the input was. sets: those that were written. Statuses: OK,
 * ERROR_INTERNAL (bytes or documents are not accounted for), ERROR_INPUT (there are no documents; not of a unit). */
enum tokmap_status pack_accounts_check(const struct pack_options *options, struct shard_set *const *sets,
                                       uint32_t set_count, const struct pack_result *result,
                                       struct tokmap_error *error);

/* Checks that there are documents, and that not all of them are empty. Statuses: OK, ERROR_INPUT. */
enum tokmap_status pack_documents_check(const struct pack_result *result, struct tokmap_error *error);

/* Counts the documents of a batch that have a value in each column. */
void pack_values_count(struct pack_result *result, size_t columns, const struct corpus_batch *batch);

#endif
