/* dataset_internal.h - the structs that the files of this room share. */
#ifndef TOKMAP_DATASET_DATASET_INTERNAL_H
#define TOKMAP_DATASET_DATASET_INTERNAL_H

#include "dataset.h"
#include "format/index_reader.h"
#include "synthetic.h"

struct shard {
    struct index index;
    char *index_path;     /* index.path points to it */
    char *tokens_path;
    int tokens_fd;
    uint64_t first_token;
    uint64_t first_document;
    const uint8_t *map;   /* mapping of the tokens; accessed atomically, NULL until the first use */
};

struct tokmap_dataset {
    char *name;                  /* the name by which the dataset was opened, for messages */
    struct shard *shards;
    uint64_t shard_count;
    struct synthetic *synthetic; /* NULL, or the synthetic dataset; shard_count is then 0 */
    uint64_t tokens;
    uint64_t documents;
    uint32_t width;
    enum tokmap_reading reading; /* never TOKMAP_READ_AUTO */
    uint64_t vocabulary, largest_id, eod_id, bos_id;
    uint8_t content[16];
    uint8_t tokenizer[16];
    char *warning;               /* how the shards differ, for users; NULL if they do not */
};

/* Returns the number of the shard that holds a document (< documents). */
uint64_t dataset_shard_of_document(const struct tokmap_dataset *dataset, uint64_t document);

#endif
