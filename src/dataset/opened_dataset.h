/* SPDX-License-Identifier: MIT */
/* opened_dataset.h - the structs that the files of this room share. */
#ifndef TOKMAP_DATASET_OPENED_DATASET_H
#define TOKMAP_DATASET_OPENED_DATASET_H

#include "format/index_reader.h"
#include "format/manifest.h"
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

/* The part of a shard that the dataset holds, and its place there. */
struct shard_place {
    uint64_t skipped_tokens, tokens; /* tokens of the file before the part, and in it */
    uint64_t skipped_documents, documents;
    uint64_t first_token; /* number in the dataset */
    uint64_t first_document;
    bool cut; /* the part's last token is not the last one of its document */
};

/* A shard that is open. */
struct shard {
    struct index index; /* without an index of ours, only index.shard, which says what one would say; bytes is NULL */
    char *index_path;   /* index.path points to it; without an index, the file that describes the tokens */
    struct store store; /* of the whole file */
    struct mask_file mask;            /* of the whole file; fd is -1 without a mask */
    struct foreign_documents foreign; /* end is NULL if the shard has an index of ours, or if its documents are unknown:
                                         it then has tokens but 0 documents */
    struct shard_place place;
    uint64_t number; /* of its opening, counted over all shards of the process: another one after it was closed */
};

/* A shard of a dataset, open or not. open_shards.h has the functions that open and hold it. */
struct shard_slot {
    struct shard_place place;
    struct shard *open;      /* NULL: it is not open */
    struct shard_told *told; /* texts that tokmap_dataset_shard() has returned; NULL: none yet */
    struct index *index;     /* for shard_index_keep(); NULL: it was not asked for. Accessed atomically */
    uint32_t holders;        /* 0: it is not open; 1 + n: it is open, and n hold it; accessed atomically */
    uint32_t line;           /* number in the manifest, from 0 on */
    bool used;               /* since the last search for a shard to close; accessed atomically */
    bool kept;               /* somebody holds it until the dataset is closed; accessed atomically */
};

/* A list of the names of columns that callers have. It only grows, at its end; `next` is accessed atomically. */
struct column_name {
    struct column_name *next;
    char text[];
};

struct tokmap_dataset {
    char *name; /* the name by which the dataset was opened, for messages */
    struct shard_slot *slots;
    uint64_t shard_count;
    struct cache *cache;                        /* of a dataset in object storage; otherwise NULL */
    struct manifest manifest;                   /* that names the shards; zeroed without a manifest */
    struct synthetic *synthetic;                /* NULL, or the synthetic dataset; shard_count is then 0 */
    uint64_t skipped_tokens, skipped_documents; /* of a synthetic dataset, before the part; otherwise 0 */
    uint64_t tokens;
    uint64_t documents;
    uint32_t width;
    uint32_t unit;               /* of values: the bytes, which are its tokens, of one token's; 0: it has tokens */
    enum tokmap_reading reading; /* never TOKMAP_READ_AUTO */
    bool documents_unknown;      /* some shard with tokens does not say where its documents are */
    uint64_t vocabulary, largest_id, eod_id, bos_id;
    uint8_t content[16];
    uint8_t whole[16]; /* the content id of the dataset of which this is a part; that of the dataset, if it is whole */
    uint64_t part_first; /* the part's first token in it */
    uint8_t tokenizer[16];
    const char *kind;                 /* as in struct tokmap_dataset_info */
    uint32_t identity;                /* likewise */
    bool sparing;                     /* shards open when they are needed, also those that no manifest states */
    bool sealed;                      /* some shard is sealed */
    bool masked;                      /* some shard has a mask */
    bool page_hashes;                 /* all shards with tokens have hashes of pages */
    struct column_name *column_names; /* begins with an empty one */
    char *warning;                    /* differences between the shards, for users; NULL if they agree */
};

/* Returns the place of a shard's first token in its file, in bytes. */
static inline uint64_t shard_offset(const struct shard *shard)
{
    return shard->store.offset + (shard->place.skipped_tokens << element_shift(shard->store.element));
}

#endif
