/* document_batch.h - the lists of a corpus_batch grow here; they keep their memory from one filling to the next. */
#ifndef TOKMAP_CORPUS_DOCUMENT_BATCH_H
#define TOKMAP_CORPUS_DOCUMENT_BATCH_H

#include "corpus.h"

/* Empty, keeping its memory, but what was taken for one unusual batch: that above `usual` bytes is given back. */
void batch_clear(struct corpus_batch *batch, uint64_t usual);

/* Each returns NULL (false) without memory. */
bool batch_reserve(struct corpus_batch *batch, uint64_t capacity);
struct corpus_part *batch_part(struct corpus_batch *batch);
struct corpus_document *batch_document(struct corpus_batch *batch);
struct corpus_issue *batch_issue(struct corpus_batch *batch);
char *batch_text(struct corpus_batch *batch, uint64_t bytes); /* lives as long as the batch is not cleared */
const char *batch_path(struct corpus_batch *batch, const char *path);

#endif
