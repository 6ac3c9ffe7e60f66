/* SPDX-License-Identifier: MIT */
/*
 * shuffle_cut.h - where the shards of a shuffle begin: the second stage of a shuffle by tasks.
 *
 * The keys of all documents (shuffle_chunks.h) are merged, so each set's documents pass in their order with their
 * numbers of tokens, and are cut as shard_set.h cuts them. For each shard, a row is written to cuts-000000: of each
 * chunk, where its first record of this shard or a later one begins. So the maker of a shard reads exactly its
 * records, and one process is enough for the cut: it reads 32 bytes a document.
 *
 *     section s           a row for each shard of set s, and one for the end
 *     section CUTS_TOTALS struct shuffle_cuts
 *
 * A row has u64 of each chunk of the set, in the order of struct sorted_units; then documents and tokens of the shard
 * before, which are 0 in the first row; and XXH3-64 of all these, with the number of the row as the seed.
 *
 * Example, with shard_tokens 10: two chunks have documents of 4, 2 and of 5, 12 tokens, whose order is 4, 5, 2, 12.
 * The shards have 4 + 5, 2, and 12. If each record has 64 bytes, the rows are 0 0, 64 64, 128 64, and 128 128.
 *
 * A cut of many documents takes minutes, so it has parts (stage_parts.h), from which another process continues. A
 * part has the rows since the last part, the place in each chunk of the set that is cut, and as its state what was
 * found so far with the documents and tokens of the open shard. A place has the number of the next key, where its
 * record begins, and the tokens and the hash of the keys before (shuffle_keys_hash()); so no key is read again but
 * the last one before, which the next one must follow in the order. When all sets are cut, the file is made of all
 * parts, and is kept after a part from time to time, so that this continues, too.
 *
 *     section s       the rows of set s since the part before
 *     section 16      the places; none if all sets are cut
 *     section 17      the state
 *
 * Example: the process above makes a part after 3 documents, and is killed. The part has the rows 0 0 and 64 64, the
 * places (2, 128, 6) and (1, 64, 5), and 1 document with 2 tokens in the open shard. The next process reads the keys
 * of 2 and of 5 tokens again. After them, the first chunk has no other, so it continues with that of 12 tokens in the
 * second one.
 *
 * Parts that are damaged, of other work, or do not agree with each other and with the chunks, are removed, and the cut
 * begins again. So it does if what follows is not as the list of chunks says, since a part may be the reason.
 */
#ifndef TOKMAP_SHUFFLE_SHUFFLE_CUT_H
#define TOKMAP_SHUFFLE_SHUFFLE_CUT_H

#include "sorted_units.h"

#define CUTS_TOTALS SPLIT_SETS_MOST /* the sections before it are of the sets */
#define CUTS_SECTIONS (CUTS_TOTALS + 1)

/* Result of the cut. */
struct shuffle_cuts {
    struct {
        uint64_t shards, documents, tokens, oversized;
    } sets[SPLIT_SETS_MOST];
    uint64_t nonce; /* another one whenever the file is made: what a merge has saved belongs to one of them */
};

struct shuffle_cut_options {
    struct sorted_units *units;
    uint64_t shard_tokens;
    uint64_t memory; /* for the keys that are read */
    bool sync;
    uint64_t checkpoint_ns; /* between two parts; 0: only rows that need much memory make parts */
    /* Either may be NULL: true ends the cut with ERROR_INTERRUPTED; and how many of all documents are cut. */
    bool (*stop)(void *user);
    void *stop_user;
    void (*progress)(void *user, uint64_t done, uint64_t all);
    void *user;
};

/* Returns which file has the cuts of these units. */
struct stage_id shuffle_cut_id(const struct sorted_units *units, uint64_t key);

/* Continues what a killed process has left. Does nothing if the file is there. Statuses: OK, ERROR_CORRUPT (a file is
 * not what was written), ERROR_LIMIT (too many shards), ERROR_INTERRUPTED, those of stage_writer_reopen() and
 * stage_writer_commit(), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status shuffle_cut_run(const struct shuffle_cut_options *options, const struct stage_id *id,
                                   struct tokmap_error *error);

/* Reads what the cut has found. Statuses: those of stage_section_load(). */
enum tokmap_status shuffle_cuts_read(struct shuffle_cuts *cuts, const struct sorted_units *units,
                                     const struct stage_id *id, struct tokmap_error *error);

/* Reads where a shard is in the chunks of its set: `begins` and `ends` have room for all of them. Statuses: those of
 * stage_record_read(). */
struct shard_cut {
    uint64_t *begins, *ends; /* in the file of each chunk; the caller frees both */
    uint64_t documents, tokens;
};
enum tokmap_status shuffle_cut_read(struct shard_cut *cut, const struct sorted_units *units, const struct stage_id *id,
                                    uint32_t set, uint64_t shard, struct tokmap_error *error);

#endif
