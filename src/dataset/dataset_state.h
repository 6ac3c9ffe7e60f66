/* SPDX-License-Identifier: MIT */
/* dataset_state.h - the structs that the files of this room share. */
#ifndef TOKMAP_DATASET_DATASET_STATE_H
#define TOKMAP_DATASET_DATASET_STATE_H

#include "format/index_reader.h"
#include "format/store.h"
#include "mask_file.h"
#include "synthetic.h"

/* The documents of a shard that has no index of ours. */
struct foreign_documents {
    void *user;
    /* Finds the end of a document (below the shard's documents), in tokens of the file. The answer is compared with its
     * neighbors. Any thread. */
    enum tokmap_status (*end)(const void *user, uint64_t document, uint64_t *end, struct tokmap_error *error);
    void (*close)(void *user);
};

/* One shard, or the part of it that the dataset holds. */
struct shard {
    struct index index; /* without an index of ours, only index.shard, which says what one would say; bytes is NULL */
    char *index_path;   /* index.path points to it; without an index, the file that describes the tokens */
    struct store store; /* of the whole file */
    struct mask_file mask;            /* of the whole file; fd is -1 if there is none */
    struct foreign_documents foreign; /* end is NULL if the shard has an index of ours, or if its documents are unknown:
                                         it then has tokens but 0 documents */
    uint64_t skipped_tokens, tokens;  /* the part: tokens of the file before it, and in it */
    uint64_t skipped_documents, documents;
    bool cut;             /* the part's last token is not the last one of its document */
    uint64_t first_token; /* number in the dataset */
    uint64_t first_document;
};

struct tokmap_dataset {
    char *name; /* the name by which the dataset was opened, for messages */
    struct shard *shards;
    uint64_t shard_count;
    struct synthetic *synthetic;                /* NULL, or the synthetic dataset; shard_count is then 0 */
    uint64_t skipped_tokens, skipped_documents; /* of a synthetic dataset, before the part; otherwise 0 */
    uint64_t tokens;
    uint64_t documents;
    uint32_t width;
    enum tokmap_reading reading; /* never TOKMAP_READ_AUTO */
    bool documents_unknown;      /* some shard with tokens does not say where its documents are */
    uint64_t vocabulary, largest_id, eod_id, bos_id;
    uint8_t content[16];
    uint8_t whole[16]; /* the content id of the dataset of which this is a part; that of the dataset, if it is whole */
    uint64_t part_first; /* the part's first token in it */
    uint8_t tokenizer[16];
    const char *kind;  /* as in struct tokmap_dataset_info */
    uint32_t identity; /* likewise */
    bool sealed;       /* some shard is sealed */
    bool masked;       /* some shard has a mask */
    bool page_hashes;  /* all shards with tokens have hashes of pages */
    char *warning;     /* differences between the shards, for users; NULL if there are none */
};

/* Copies a shard to another place, where it is used from now on. */
static inline void dataset_shard_move(struct shard *to, const struct shard *from)
{
    *to = *from;
    if (to->store.sealed)
        to->store.sealed = &to->index;
}

/* Frees what an open shard, or one that could not be opened completely, has. */
void dataset_shard_close(struct shard *shard);

/* Returns the place of a shard's first token in its file, in bytes. */
static inline uint64_t shard_offset(const struct shard *shard)
{
    return shard->store.offset + (shard->skipped_tokens << element_shift(shard->store.element));
}

#endif
