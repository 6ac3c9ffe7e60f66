/* origin_shares.h - how many documents and tokens came from each input file. */
#ifndef TOKMAP_COMMANDS_REPORT_ORIGIN_SHARES_H
#define TOKMAP_COMMANDS_REPORT_ORIGIN_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/table_key.h"

struct origin_share {
    const char *path; /* not zero-terminated; it belongs to whoever added it, usually the dataset */
    uint64_t path_bytes;
    uint64_t documents, tokens;
};

/* Begins as zeros. */
struct origin_shares {
    struct origin_share *files; /* in no order before origin_shares_sort() */
    uint64_t count, capacity;
    uint64_t *slots;      /* a hash table: 0, or the number of a file plus 1 */
    struct table_key key; /* of its hashes, because paths are a dataset's to choose */
    uint64_t slot_count;
    uint64_t last; /* the file that was added last: most documents come from that of the document before */
};

/* Adds documents and tokens to a file. Files are equal if their paths have the same bytes. Returns false without
 * memory.
 */
bool origin_shares_add(struct origin_shares *shares, const struct origin_share *more);
/* Sorts by tokens, then by documents, both descending, then by path. Nothing can be added afterward. */
void origin_shares_sort(struct origin_shares *shares);
void origin_shares_free(struct origin_shares *shares); /* accepts zeros */

#endif
