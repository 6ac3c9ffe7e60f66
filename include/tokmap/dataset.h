/* SPDX-License-Identifier: MIT */
/*
 * dataset.h - datasets of token ids: open, look up, read, verify, and index; tokmap.h has the rules for all functions
 */
#ifndef TOKMAP_DATASET_H
#define TOKMAP_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open dataset. It is immutable. What its functions report through pointers is valid until it is closed.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_dataset *dataset = NULL;
 *     if (tokmap_dataset_open(&dataset, "data/web", NULL, &e))
 *         fatal(&e);
 *     struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
 *     struct tokmap_document document;
 *     if (tokmap_dataset_info(dataset, &info) || tokmap_dataset_document(dataset, 17, &document, &e))
 *         fatal(&e);
 *     struct tokmap_span spans[2];                    // 2, in case the range continues in the next shard
 *     size_t used;
 *     if (tokmap_dataset_view(dataset, document.first_token, document.tokens, spans, 2, &used, &e))
 *         fatal(&e);
 *     for (size_t i = 0; i < used; i++)
 *         for (uint64_t k = 0; k < spans[i].count; k++)
 *             printf("%" PRIu32 "\n", info.width == 2 ? ((const uint16_t *)spans[i].tokens)[k]
 *                                                     : ((const uint32_t *)spans[i].tokens)[k]);
 *     tokmap_dataset_close(dataset);                  // the spans end here
 * @endcode
 */
struct tokmap_dataset;

/* How loaders read tokens. */
enum tokmap_reading {
    TOKMAP_READ_AUTO = 0,   /* mapped if all files are on local file systems and the tokens fit in half of the memory
                               that this process may use (of the machine and of its control group); otherwise pread */
    TOKMAP_READ_MAPPED = 1, /* from a shared mapping, where the kernel has made the page present; otherwise by pread */
    TOKMAP_READ_PREAD = 2   /* by pread: memory does not grow with the dataset, and every failure is a status */
};

struct tokmap_dataset_options {
    size_t size;
    enum tokmap_reading reading; /* default: TOKMAP_READ_AUTO */
};
#define TOKMAP_DATASET_OPTIONS_INIT TOKMAP_SIZED(struct tokmap_dataset_options)

/* Opens a dataset.
 *   dataset  receives the handle; close it with tokmap_dataset_close()
 *   options  NULL: the defaults
 *   name     a prefix ("data/web" for data/web.bin and .tmx), a folder, a manifest, the same in object storage
 *            ("s3://bucket/data/web"; see below), files of another project ("[KIND:]PATH[,WORD=VALUE]..."), or
 *            "synthetic:vocab=N..."; each may end with a part, such as "#docs=0..99.5%" or "#tokens=0..4096". tokmap(7)
 *            describes them
 * A dataset that a manifest names whose lines state the sizes of shards is opened from the manifest alone. A shard is
 * opened when it is first needed, by any function below, and fails then if it is missing (ERROR_NOT_FOUND) or does not
 * match its line (ERROR_MISMATCH). It may be closed again, unless a view, a value, or an origin of it was returned.
 * Otherwise opening reads a few KiB per shard, and of other projects' files without indexes at most 1 MiB in all. It
 * checks the magic, the version, the hashes of the header, the section table, and the shard section, all bounds, and
 * the sizes of all files. tokmap_dataset_verify() checks the rest.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_MISMATCH
 * (shards differ in width or tokenizer, a folder has tokens without their index, or a folder or pattern has several
 * sets of one split), ERROR_BUSY (a shard is replaced again and again while it is being opened), ERROR_LIMIT,
 * ERROR_UNSUPPORTED.
 *
 * Object storage: "s3://BUCKET/KEY", "gs://BUCKET/KEY", or "https://HOST/PATH", with "?cache=FOLDER&block=4M&size=2T&
 * connections=32" or some of these words before the part. tokmap-remote(7) describes the names, the credentials, which
 * the environment or ~/.aws has, and the cache folder: the word cache, else the variable TOKMAP_CACHE, else
 * $XDG_CACHE_HOME/tokmap, else ~/.cache/tokmap. Opening brings the manifest and whole indexes into the folder. Every
 * function that reads brings the bytes that it needs, in blocks that are compared with the index's hashes, and waits
 * for them, as long as requests are repeated: some minutes if the storage does not answer. Reading is
 * TOKMAP_READ_PREAD, and there are no views. The dataset starts threads of its own, up to `connections` for each
 * folder, when bytes are first fetched ahead; they end when the last dataset with this folder is closed. A child after
 * fork() has its own.
 * Statuses of opening and of all functions that read: also ERROR_NOT_FOUND (HTTP status 404), ERROR_IO (403, 429 and
 * 5xx after repeated requests, no answer, or the disk of the folder), ERROR_MISMATCH (412 and 416: an object was
 * replaced or is shorter than its index says), ERROR_CORRUPT (bytes do not match their hash, also when they are fetched
 * again), ERROR_ARGUMENT (a word, or half a key), ERROR_LIMIT (256 processes use the folder), ERROR_UNSUPPORTED (the
 * folder's file system, no libcurl, or tokens of another project's file). A call that failed may be made again. */
TOKMAP_STATUS tokmap_dataset_open(struct tokmap_dataset **dataset, const char *name,
                                  const struct tokmap_dataset_options *options, struct tokmap_error *error);

/* The beginning of the name of a synthetic dataset. */
#define TOKMAP_SYNTHETIC "synthetic:"

/* Closes a dataset. Do not close one that tokmap_run_source() returned: it belongs to its run. Cannot fail. */
TOKMAP_API void tokmap_dataset_close(struct tokmap_dataset *dataset);

/* What a content id covers: every token, or, of other projects' files without an index, their names' words, their
 * sizes, and 256 samples of 4 KiB, which finds out most changes, but not all. */
#define TOKMAP_IDENTITY_FULL 1
#define TOKMAP_IDENTITY_SAMPLED 2

struct tokmap_dataset_info {
    size_t size;
    const char *kind; /* "shards" (also files of other projects with an index), "synthetic", "megatron", "llmc",
                         "npy", "datatrove", "olmo", or "raw"; static */
    uint64_t tokens;
    uint64_t documents;   /* 0 with tokens: nothing says where documents are, until `tokmap index` */
    uint64_t shards;      /* 0 for a synthetic dataset */
    uint64_t vocabulary;  /* number of ids of the tokenizer; every id is below it */
    uint64_t largest_id;  /* 0 without tokens */
    uint64_t eod_id;      /* the id that ends a document, or TOKMAP_NO_ID without one, or if shards differ */
    uint64_t bos_id;      /* the id that begins a document, or TOKMAP_NO_ID, too */
    uint32_t width;       /* bytes of a token: 2 or 4 */
    uint32_t masked;      /* 1: some shard has a mask */
    uint32_t page_hashes; /* 1: loaders compare what they read with hashes. 0: some shard has none (holes, another
                             project, a format before 1.3); only tokmap_dataset_verify() finds out about damage */
    enum tokmap_reading reading; /* by loaders: TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    uint8_t content[16];         /* content id: see "Identity" in src/format/FORMAT.md */
    uint32_t identity;           /* TOKMAP_IDENTITY_FULL or TOKMAP_IDENTITY_SAMPLED */
    uint8_t tokenizer[16];       /* fingerprint; all zero if it is unknown */
    const char *warning; /* a text for the user; NULL: none. Shards differ in the id that ends or begins documents, the
                            tokenizer of some is not recorded, the shard's name is also the name of a folder, a file of
                            datatrove is empty, or tokens of another project's file are such as no text has (every
                            second one is 0, ...), so they may be read with a wrong width or offset */
};
#define TOKMAP_DATASET_INFO_INIT TOKMAP_SIZED(struct tokmap_dataset_info)

/* Fills *info. Statuses: OK. */
TOKMAP_STATUS tokmap_dataset_info(const struct tokmap_dataset *dataset, struct tokmap_dataset_info *info);

struct tokmap_shard_info {
    size_t size;
    const char *index_path;  /* in object storage: of the copy in the cache folder */
    const char *tokens_path; /* in object storage: the name of the object */
    uint64_t first_token; /* its address in the dataset */
    uint64_t tokens;
    uint64_t first_document; /* its number in the dataset */
    uint64_t documents;
    uint64_t eod_id;      /* or TOKMAP_NO_ID */
    uint64_t bos_id;      /* or TOKMAP_NO_ID */
    uint8_t content[16];  /* content id */
    uint64_t blocks;      /* hashed blocks of 1 MiB of tokens; the last block may be shorter */
    uint64_t index_bytes; /* size of the index file */
    const char *about;    /* JSON of `about_bytes` bytes, not terminated; its hash has been checked */
    uint64_t about_bytes;
};
#define TOKMAP_SHARD_INFO_INIT TOKMAP_SIZED(struct tokmap_shard_info)

/* Fills *info for shard number `shard`. Reads its about section and checks the hash.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT. */
TOKMAP_STATUS tokmap_dataset_shard(const struct tokmap_dataset *dataset, uint64_t shard, struct tokmap_shard_info *info,
                                   struct tokmap_error *error);

/* Consecutive tokens in the mapping of one shard, as little-endian uint16_t or uint32_t according to the dataset's
 * width. The pointer is aligned to the width and not more. The memory is read-only. */
struct tokmap_span {
    const void *tokens;
    uint64_t count;
};

/* Returns tokens [first, first + count) without copying them: fills spans[0] to spans[*used - 1], in order, one span
 * for each shard that contains some of them.
 *   spans  of `capacity` elements. Inside one shard 1 element suffices; 2 suffice unless a shard is shorter than count
 *   used   receives the number of spans; with ERROR_LIMIT, the number that is needed; with any other failure 0
 * The first view of a shard maps its tokens until the dataset is closed. Reading a span raises SIGBUS if the file was
 * truncated. A synthetic dataset and a sealed shard have no views, nor has a file of another project whose elements
 * have 1 or 8 bytes, or do not begin at a multiple of their size.
 * Statuses: OK, ERROR_RANGE, ERROR_LIMIT (capacity is too small), ERROR_IO (mapping failed), ERROR_UNSUPPORTED (there
 * is no view of these tokens). */
TOKMAP_STATUS tokmap_dataset_view(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                                  struct tokmap_span *spans, size_t capacity, size_t *used, struct tokmap_error *error);

/* Copies tokens [first, first + count) to out, which holds count * width bytes and may have any alignment. It reads
 * with pread and never raises a signal. Each call unpacks the frames of a sealed shard (64 KiB) in about 300 KiB of
 * memory. After a failure the content of out is undefined.
 * Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED, ERROR_TOKEN (in a file of another project: a number is negative
 * or has more than 32 bits), ERROR_CORRUPT (of a sealed shard). */
TOKMAP_STATUS tokmap_dataset_copy(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, void *out,
                                  struct tokmap_error *error);

/* Reports which of tokens [first, first + count) count as targets: bit i mod 8 of bits[i / 8] is 1 if token first + i
 * does. All do in shards without a mask. `bits` has room for (count + 7) / 8 bytes; spare bits of the last one are 0.
 * It reads like tokmap_dataset_copy(). Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED. */
TOKMAP_STATUS tokmap_dataset_mask(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count, uint8_t *bits,
                                  struct tokmap_error *error);

/* ---- documents ---- */

struct tokmap_document {
    uint64_t number;
    uint64_t first_token; /* its address */
    uint64_t tokens;      /* may be 0 */
    uint64_t shard;       /* number of its shard */
};

/* Looks up document `number`, or the document that contains the token at address `token`, which is never an empty one.
 * The time is logarithmic in the shard's documents.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT (the index contradicts itself there), ERROR_UNSUPPORTED (it is not recorded
 * where documents are: see tokmap_dataset_info.documents). */
TOKMAP_STATUS tokmap_dataset_document(const struct tokmap_dataset *dataset, uint64_t number,
                                      struct tokmap_document *document, struct tokmap_error *error);
TOKMAP_STATUS tokmap_dataset_document_at(const struct tokmap_dataset *dataset, uint64_t token,
                                         struct tokmap_document *document, struct tokmap_error *error);

/* Where a document came from. */
struct tokmap_origin {
    const char *path; /* of the input as `tokmap pack` was given it, or "-" for standard input; not terminated */
    uint64_t path_bytes;
    uint64_t record; /* number of the record in it. For JSONL its line is record + 1; of a whole text file it is 0 */
};

/* Looks up where document `number` came from.
 * Statuses: OK, ERROR_RANGE, ERROR_NOT_FOUND (the index records no origins), ERROR_CORRUPT, ERROR_UNSUPPORTED (it is
 * not recorded where documents are). */
TOKMAP_STATUS tokmap_dataset_origin(const struct tokmap_dataset *dataset, uint64_t number, struct tokmap_origin *origin,
                                    struct tokmap_error *error);

/* ---- columns: fields of the records that documents came from, which `tokmap pack --columns` or pack.h stored ---- */

/* JSON text of `bytes` bytes, not terminated, as the record has it (a string with its quotes). bytes 0: no field. */
struct tokmap_value {
    const char *json;
    uint64_t bytes;
};

struct tokmap_column_info {
    size_t size;
    const char *name;   /* in UTF-8 */
    uint64_t shards;    /* that have the column */
    uint64_t documents; /* of the dataset, in these shards */
    uint64_t values;    /* that are stored: the different ones of a shard, if they are at most 65,536 and 16 MiB, or
                           one for each document */
    uint64_t bytes;     /* of the column in the indexes of these shards */
};
#define TOKMAP_COLUMN_INFO_INIT TOKMAP_SIZED(struct tokmap_column_info)

/* Lists the columns of all shards, in the order in which they first appear.
 *   names  receives `capacity` names at most, in UTF-8. NULL with capacity 0: only *count is wanted
 *   count  receives the number of columns, also with ERROR_LIMIT
 * Statuses: OK, ERROR_LIMIT (capacity is too small), ERROR_CORRUPT (the columns of a shard contradict each other). */
TOKMAP_STATUS tokmap_dataset_columns(const struct tokmap_dataset *dataset, const char **names, size_t capacity,
                                     size_t *count, struct tokmap_error *error);

/* Fills *info for the column `name`. The time is proportional to the number of shards.
 * Statuses: OK, ERROR_NOT_FOUND (no shard has such a column), ERROR_CORRUPT. */
TOKMAP_STATUS tokmap_dataset_column(const struct tokmap_dataset *dataset, const char *name,
                                    struct tokmap_column_info *info, struct tokmap_error *error);

/* Looks up the value of the column `name` for document `number`. value->bytes is 0 if the document's record has no such
 * field, or if its shard has no such column. The bounds of the value are checked here, not that it is JSON.
 * Statuses: OK, ERROR_RANGE (no such document), ERROR_NOT_FOUND (no shard has such a column), ERROR_CORRUPT. */
TOKMAP_STATUS tokmap_dataset_value(const struct tokmap_dataset *dataset, uint64_t number, const char *name,
                                   struct tokmap_value *value, struct tokmap_error *error);

/* ---- verify and index ---- */

/* Options of tokmap_dataset_verify(). The callbacks may be called from threads of the library, one call at a time. They
 * return 0 to continue; any other value ends the verification with ERROR_INTERRUPTED. NULL: not called. */
struct tokmap_verify_options {
    size_t size;
    uint32_t threads; /* 0: one for each processor that this process may use */
    /* Called for each fault, in no particular order. The error has the file, the offset of the first byte of the faulty
     * block or section, and a message. */
    int (*fault)(void *user, const struct tokmap_error *error);
    /* Called from time to time with the number of bytes read so far and in total. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user; /* passed to both callbacks */
};
#define TOKMAP_VERIFY_OPTIONS_INIT TOKMAP_SIZED(struct tokmap_verify_options)

struct tokmap_verify_result {
    size_t size;
    uint64_t bytes;  /* read and hashed */
    uint64_t blocks; /* of tokens that were hashed */
    uint64_t faults;
};
#define TOKMAP_VERIFY_RESULT_INIT TOKMAP_SIZED(struct tokmap_verify_result)

/* Reads every byte of every shard and checks everything that the index says about it: section hashes, block hashes, the
 * order and bounds of documents, origins, and columns, content ids, the largest id, and zero padding. It continues
 * after a fault, to find them all. A synthetic dataset has nothing to verify. A dataset that loaders read through
 * mappings may be verified through them. Memory use does not grow with the dataset.
 *   options  NULL: the defaults
 *   result   NULL: not wanted
 * Statuses: OK (no faults); ERROR_CORRUPT, ERROR_IO, or ERROR_TRUNCATED (there are faults; error describes the first by
 * position); ERROR_INTERRUPTED. */
TOKMAP_STATUS tokmap_dataset_verify(const struct tokmap_dataset *dataset, const struct tokmap_verify_options *options,
                                    struct tokmap_verify_result *result, struct tokmap_error *error);

/* Options of tokmap_dataset_index(). The callbacks may be called from threads of the library, one call at a time. */
struct tokmap_index_options {
    size_t size;
    uint32_t threads; /* 0: one for each processor that this process may use */
    int replace;      /* 1: an index that exists is written again (the index of a packed shard never is) */
    /* Called from time to time with the number of bytes of tokens read so far and in total. A result other than 0 ends
     * the indexing with ERROR_INTERRUPTED. NULL: not called. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    /* Asked where the documents of a file end, if its format does not say so. It writes the next ends, in tokens, at
     * most `capacity` of them, in order, and sets *used; 0 is the end. ERROR_NOT_FOUND in the first call for a file:
     * documents end and begin at the EOD and BOS of the name. Every other status but OK fails the indexing; it fills
     * *error. NULL: not called. */
    enum tokmap_status (*ends)(void *user, const char *tokens_path, uint64_t tokens, uint64_t *ends, uint64_t capacity,
                               uint64_t *used, struct tokmap_error *error);
    void *user;                  /* passed to both callbacks */
    const uint8_t *tokenizer;    /* fingerprint of the tokenizer that made the ids, 16 bytes, to be recorded; NULL: not
                                    known */
    uint64_t vocabulary;         /* the number of its ids, as the word vocab of a name; 0: not known */
    const char *tokenizer_about; /* a JSON object for the about section, such as {"name":"gpt2"}; NULL: none */
};
#define TOKMAP_INDEX_OPTIONS_INIT TOKMAP_SIZED(struct tokmap_index_options)

struct tokmap_index_result {
    size_t size;
    uint64_t files; /* indexes that were written; those before a failure remain */
    uint64_t tokens;
    uint64_t documents;
    uint64_t bytes; /* of the files with tokens */
};
#define TOKMAP_INDEX_RESULT_INIT TOKMAP_SIZED(struct tokmap_index_result)

/* Indexes files of other projects: reads each file once and writes its .tmx beside it, and a .mask if datatrove's .loss
 * exists. With all indexes, a dataset has numbered documents and the content id of a packed copy, so cursors from
 * before do not fit. An index appears complete or not at all. Memory use does not grow with the files.
 *   name     as for tokmap_dataset_open(), of files of another project
 *   options  NULL: the defaults
 *   result   NULL: not wanted; also filled on failure
 * Statuses: OK; ERROR_EXISTS (an index exists); ERROR_TOKEN (an id is not in the vocabulary; the error has its byte);
 * ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_FORMAT, ERROR_VERSION (a file is damaged); ERROR_BUSY (another process writes
 * an index, or a file changed meanwhile); ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED, ERROR_INTERRUPTED. */
TOKMAP_STATUS tokmap_dataset_index(const char *name, const struct tokmap_index_options *options,
                                   struct tokmap_index_result *result, struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
