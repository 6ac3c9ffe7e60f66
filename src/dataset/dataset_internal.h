/* dataset_internal.h - the structs that the files of this room share. */
#ifndef TOKMAP_DATASET_DATASET_INTERNAL_H
#define TOKMAP_DATASET_DATASET_INTERNAL_H

#include "dataset.h"
#include "format/index.h"
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
};

/* The shards that the name of a dataset refers to, in order. */
struct shard_names {
    char **index_paths;
    uint32_t *lines;       /* the line of the manifest that names each shard; 0 without a manifest */
    uint64_t count, capacity;
    char *manifest;        /* its path, or NULL */
};

/* Fills a zeroed *names. The caller frees it with every status. A name that is the prefix of a shard costs one stat().
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status shard_names_find(struct shard_names *names, const char *name, struct tokmap_error *error);
void shard_names_free(struct shard_names *names);

/* Returns the number of the shard that holds a document (< documents). */
uint64_t dataset_shard_of_document(const struct tokmap_dataset *dataset, uint64_t document);

#endif
