/* dataset_internal.h - what the files of this room share. */
#ifndef TOKMAP_DATASET_DATASET_INTERNAL_H
#define TOKMAP_DATASET_DATASET_INTERNAL_H

#include "dataset.h"
#include "format/index.h"
#include "synthetic.h"

struct shard {
    struct index index;
    char *index_path;     /* index.path is this */
    char *tokens_path;
    int tokens_fd;
    uint64_t first_token;
    uint64_t first_document;
    const uint8_t *map;   /* of the tokens; atomic access, NULL until the first use */
};

struct tokmap_dataset {
    char *name;                  /* that it was opened by, for messages */
    struct shard *shards;
    uint64_t shard_count;
    struct synthetic *synthetic; /* in place of shards, of which there are none then; else NULL */
    uint64_t tokens;
    uint64_t documents;
    uint32_t width;
    enum tokmap_reading reading; /* never AUTO */
    uint64_t vocabulary, largest_id, eod_id, bos_id;
    uint8_t content[16];
    uint8_t tokenizer[16];
};

/* The shards that a dataset's name stands for, in order. */
struct shard_names {
    char **index_paths;
    uint32_t *lines;       /* of the manifest that names them; 0 if none does */
    uint64_t count, capacity;
    char *manifest;        /* its path, or NULL */
};

/* Fills an empty (zeroed) *names; free it whatever the status. For a prefix no file is touched.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_LIMIT, ERROR_MEMORY. */
enum tokmap_status shard_names_find(struct shard_names *names, const char *name, struct tokmap_error *error);
void shard_names_free(struct shard_names *names);

/* The shard that holds a document (< documents). */
uint64_t dataset_shard_of_document(const struct tokmap_dataset *dataset, uint64_t document);

#endif
