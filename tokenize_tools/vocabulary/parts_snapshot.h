/* parts_snapshot.h - the parts of a pipeline in a snapshot (tokenizer/snapshot.h). */
#ifndef TOKMAP_VOCABULARY_PARTS_SNAPSHOT_H
#define TOKMAP_VOCABULARY_PARTS_SNAPSHOT_H

#include "tokenizer/pipeline_parts.h"
#include "tokenizer/snapshot.h"

/* Puts the parts, which must not change before the snapshot is written. writer->failed also says that these parts are
 * of a kind that is not put: patterns that PCRE2 matches would have to be compiled again, which takes longer than
 * reading most vocabularies that have them. */
void parts_put(const struct pipeline_parts *parts, struct snapshot_writer *writer);

/* Gets parts into a struct of zeros and takes over the memory of the reader, also after a failure, which
 * reader->failed says. path: of the vocabulary, from which its name is made where the file does not give it. */
void parts_get(struct pipeline_parts *parts, struct snapshot_reader *reader, const char *path);

#endif
