/* sp_snapshot.h - a sp_model as a part of a snapshot (tokenizer/snapshot.h). */
#ifndef TOKMAP_SENTENCEPIECE_SP_SNAPSHOT_H
#define TOKMAP_SENTENCEPIECE_SP_SNAPSHOT_H

#include "sp_model.h"
#include "tokenizer/snapshot.h"

/* Puts a model, whose tables must not change before the snapshot is written. */
void sp_model_put(const struct sp_model *model, struct snapshot_writer *writer);
/* Gets a model, for sp_model_free(). Its large tables are those of the snapshot, which must outlive it. NULL: a
 * failure. */
struct sp_model *sp_model_get(struct snapshot_reader *reader);

#endif
