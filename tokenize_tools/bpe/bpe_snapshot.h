/* bpe_snapshot.h - a bpe_model as a part of a snapshot (tokenizer/snapshot.h). */
#ifndef TOKMAP_BPE_BPE_SNAPSHOT_H
#define TOKMAP_BPE_BPE_SNAPSHOT_H

#include "bpe_model.h"
#include "tokenizer/snapshot.h"

/* Puts a model, whose tables must not change before the snapshot is written. */
void bpe_model_put(const struct bpe_model *model, struct snapshot_writer *writer);

/* Gets a model into a struct of zeros. Its tables are those of the snapshot, which must outlive it; bpe_model_clear()
 * frees the rest, also after a failure. `merge` and `scanner` are the caller's to set.
 *   symbols  the ids of pairs and of what merges make are below it; 0: the ids of tokens are. Then the texts of merged
 *            tokens are as long as those of their parts together
 *   ranks    receives a number above all ranks of pairs */
void bpe_model_get(struct bpe_model *model, struct snapshot_reader *reader, uint32_t symbols, uint32_t *ranks);

/* Returns a number above all ranks of a model's pairs. */
uint32_t bpe_model_ranks(const struct bpe_model *model);

#endif
