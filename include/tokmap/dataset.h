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

/* An open dataset. It is immutable: any number of threads may use it at the same time, and so may a child after fork().
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_dataset *dataset = NULL;
 *     if (tokmap_dataset_open(&dataset, "data/web", NULL, &e))
 *         fatal(&e);
 *     struct tokmap_dataset_info info = {.size = sizeof info};
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
    TOKMAP_READ_MAPPED = 1, /* from a shared mapping, page by page after the kernel has made the page present; by pread
                               until then, and where a page is not in the page cache */
    TOKMAP_READ_PREAD = 2   /* by pread: the memory of the process does not grow with the dataset, and every failure is
                               a status */
};

struct tokmap_dataset_options {
    size_t size;                 /* sizeof(struct tokmap_dataset_options) */
    enum tokmap_reading reading; /* default: TOKMAP_READ_AUTO */
};
#define TOKMAP_DATASET_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(struct tokmap_dataset_options), TOKMAP_READ_AUTO                                                        \
    }

/* The beginning of the name of a synthetic dataset: see tokmap_dataset_open(). */
#define TOKMAP_SYNTHETIC "synthetic:"

struct tokmap_dataset_info {
    size_t size; /* set by the caller: sizeof(struct tokmap_dataset_info) */
    uint64_t tokens;
    uint64_t documents;          /* 0 if there are tokens, but nothing says where documents are: other projects' files
                                    without a document index, until `tokmap index` */
    uint64_t shards;             /* 0 for a synthetic dataset */
    uint32_t width;              /* bytes of a token: 2 or 4 */
    enum tokmap_reading reading; /* how loaders read it: TOKMAP_READ_MAPPED or TOKMAP_READ_PREAD */
    uint64_t vocabulary;         /* number of ids of the tokenizer, special tokens included; every id is below it */
    uint64_t largest_id;         /* the largest id in the dataset; 0 if it has no tokens */
    uint64_t eod_id;             /* the id that ends a document, or TOKMAP_NO_ID if there is none or shards differ */
    uint64_t bos_id;             /* the id that begins a document, or TOKMAP_NO_ID, as for eod_id */
    uint8_t content[16];         /* content id of the dataset: see "Identity" in src/format/FORMAT.md */
    uint8_t tokenizer[16];       /* fingerprint of the tokenizer; all zero if it is unknown */
    const char *warning;         /* a text that the user should read, valid until the dataset is closed; NULL: none. The
                                    shards differ in the id that ends or begins documents, the tokenizer of some is not
                                    recorded, or the name of the shard is that of a folder, too. The data is read as it
                                    is. The library prints nothing, so a program passes the text on */
    const char *kind;            /* "shards" (also files of other projects that have an index), "synthetic", or the kind
                                    of other projects' files: "megatron", "llmc", "npy", "datatrove", "olmo", "raw".
                                    Valid as long as the library is loaded */
    uint32_t identity;           /* what `content` covers: TOKMAP_IDENTITY_FULL or TOKMAP_IDENTITY_SAMPLED */
    uint32_t masked;             /* 1: some shard has a mask: see tokmap_dataset_mask() */
    uint32_t page_hashes;        /* 1: loaders compare what they read with hashes of its pages (4 KiB), or of
                                    the frames of a sealed shard. 0: some shard
                                    has none, because it has holes, belongs to another project, or was packed before
                                    format 1.3; only tokmap_dataset_verify() finds out whether it is damaged */
};

/* What a content id covers. The id of shards covers every token. That of other projects' files without an index covers
 * their names' words, their sizes, and 256 samples of 4 KiB, so it finds out most changes, but not all; `tokmap index`
 * makes it full. */
#define TOKMAP_IDENTITY_FULL 1
#define TOKMAP_IDENTITY_SAMPLED 2

/* One shard of a dataset. Its pointers are valid until the dataset is closed. */
struct tokmap_shard_info {
    size_t size; /* set by the caller: sizeof(struct tokmap_shard_info) */
    const char *index_path;
    const char *tokens_path;
    uint64_t first_token; /* address of the shard's first token in the dataset */
    uint64_t tokens;
    uint64_t first_document; /* number of the shard's first document in the dataset */
    uint64_t documents;
    uint64_t index_bytes; /* size of the index file */
    uint64_t blocks;      /* hashed blocks of 1 MiB of tokens; the last block may be shorter */
    uint8_t content[16];  /* content id of the shard */
    const char *about;    /* JSON of `about_bytes` bytes, not terminated; its hash has been checked */
    uint64_t about_bytes;
    uint64_t eod_id; /* the id that ends each document of this shard, or TOKMAP_NO_ID */
    uint64_t bos_id; /* the id that begins each document of this shard, or TOKMAP_NO_ID */
};

/* Consecutive tokens in the mapping of one shard, as little-endian uint16_t or uint32_t according to the dataset's
 * width. The pointer is aligned to the width and not more. It is valid until the dataset is closed. The memory is
 * read-only. */
struct tokmap_span {
    const void *tokens;
    uint64_t count;
};

struct tokmap_document {
    uint64_t number;      /* in the dataset, from 0 */
    uint64_t first_token; /* address in the dataset */
    uint64_t tokens;      /* may be 0 */
    uint64_t shard;       /* number of the shard that contains it, from 0 */
};

/* Where a document came from. The pointer is valid until the dataset is closed. */
struct tokmap_origin {
    const char *path;    /* the input file as `tokmap pack` was given it, or "-" for standard input; not terminated */
    uint64_t path_bytes; /* the length of path */
    uint64_t record;     /* number of the record in that file, from 0. For JSONL it is the line, which messages and
                            editors count from 1: line record + 1. For a text file that is one document it is 0 */
};

/* Opens a dataset.
 *   dataset  receives the handle; close it with tokmap_dataset_close()
 *   name     one of:
 *              a prefix: "data/web" for data/web.bin and data/web.tmx; the full name of either file works too
 *              a folder: all .tmx files below it, in byte order of their paths. A NAME.bin whose NAME.tmx is missing
 *                is ERROR_MISMATCH, unless it begins like a file of Megatron or llm.c, because the dataset would be
 *                smaller without a word. So are several sets of one split, such as web.train and web.val, because a
 *                run of the folder would train on what the split holds out. A shard that is being written for the first
 *                time is not in the folder yet
 *              a manifest: a text file whose first line is "tokmap-shards 1", followed by one prefix per line, relative
 *                to the manifest's folder. Several sets of one split in it are a warning
 *              files of another project, in place: "[KIND:]PATH[,WORD=VALUE]...", such as "data/my_text_document" of
 *                Megatron, or "raw:train.bin,width=2,eod=50256". See src/format/FORMAT.md
 *              a synthetic dataset, which has no files: "synthetic:vocab=50257", optionally followed by ",tokens=N",
 *                ",document=N" (average tokens of a document), ",width=2" or ",width=4", and ",seed=N". Its tokens are
 *                computed: see src/run/RUN.md. It has no shards, origins, or views
 *            Any of these names may end with a part, which is then all that the dataset has: "data/web#docs=0..99.5%",
 *            the first 99.5 of 100 documents; "data/web#docs=100..200", documents 100 to 199;
 *            "data/web#tokens=0..4096", tokens 0 to 4095. Parts that begin where others end have no document in common
 *   options  NULL: the defaults
 * Opening reads a few KiB per shard, whatever its size, and of other projects' files without indexes a sample of at
 * most 1 MiB in all. It checks the magic, the version, the hashes of the header, the section table, and the shard
 * section, all bounds, and the sizes of all files. tokmap_dataset_verify() checks the rest. Any thread may call it.
 * Statuses: OK, ERROR_NOT_FOUND, ERROR_IO, ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_MISMATCH
 * (shards differ in width or tokenizer, a folder has tokens without their index, or a folder or pattern has several
 * sets of one split), ERROR_BUSY (a shard is replaced again and again while it is being opened), ERROR_LIMIT,
 * ERROR_UNSUPPORTED, ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_open(struct tokmap_dataset **dataset, const char *name,
                                                                    const struct tokmap_dataset_options *options,
                                                                    struct tokmap_error *error);

/* Closes a dataset. All pointers into it become invalid. Accepts NULL. No other thread may be using the dataset. Do not
 * close a dataset that tokmap_run_source() returned: it belongs to its run. Cannot fail. */
TOKMAP_API void tokmap_dataset_close(struct tokmap_dataset *dataset);

/* Fills *info. Statuses: OK, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_info(const struct tokmap_dataset *dataset,
                                                                    struct tokmap_dataset_info *info);

/* Fills *info for shard number `shard`, from 0. It reads the shard's about section and checks its hash.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT, ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_shard(const struct tokmap_dataset *dataset,
                                                                     uint64_t shard, struct tokmap_shard_info *info,
                                                                     struct tokmap_error *error);

/* Returns tokens [first, first + count) without copying them: fills spans[0] to spans[*used - 1], in order, one span
 * for each shard that contains some of them.
 *   spans     of `capacity` elements. Inside one shard 1 element suffices; 2 suffice unless a shard is shorter than
 *             count
 *   used      receives the number of spans; with ERROR_LIMIT, the number that is needed; with any other failure 0
 * The first view of a shard maps its tokens; the mapping stays until the dataset is closed. Reading a span raises
 * SIGBUS if the file was truncated: see the caveats in tokmap.h. A synthetic dataset has no views; nor has a file of
 * another project whose elements have 1 or 8 bytes, or do not begin at a multiple of their size; nor a sealed shard.
 * Statuses: OK, ERROR_RANGE, ERROR_LIMIT (capacity is too small), ERROR_IO (mapping failed), ERROR_UNSUPPORTED (there
 * is no view of these tokens), ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_view(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count,
                                                                    struct tokmap_span *spans, size_t capacity,
                                                                    size_t *used, struct tokmap_error *error);

/* Copies tokens [first, first + count) to out, which holds count * width bytes and may have any alignment. It reads
 * with pread and never raises a signal. Of a sealed shard, each call unpacks the frames of 64 KiB that hold the tokens,
 * in about 300 KiB of memory. After a failure the content of out is undefined.
 * Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED, ERROR_TOKEN (in a file of another project: a number is negative
 * or has more than 32 bits), ERROR_CORRUPT and ERROR_MEMORY (of a sealed shard), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_copy(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count, void *out,
                                                                    struct tokmap_error *error);

/* Reports which of tokens [first, first + count) count as targets, that is, should be learned when they come next: bit
 * i mod 8 of bits[i / 8] is 1 if token first + i does. All do in shards without a mask. `bits` has room for (count + 7)
 * / 8 bytes; spare bits of the last one are 0. It reads with pread and never raises a signal. After a failure the
 * content of bits is undefined. Any thread may call it. Statuses: OK, ERROR_RANGE, ERROR_IO, ERROR_TRUNCATED,
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_mask(const struct tokmap_dataset *dataset,
                                                                    uint64_t first, uint64_t count, uint8_t *bits,
                                                                    struct tokmap_error *error);

/* Looks up document `number`, from 0. The time is logarithmic in the shard's documents.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT (the index contradicts itself there), ERROR_UNSUPPORTED (it is not recorded
 * where documents are: see tokmap_dataset_info.documents), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_document(const struct tokmap_dataset *dataset,
                                                                        uint64_t number,
                                                                        struct tokmap_document *document,
                                                                        struct tokmap_error *error);

/* Looks up the document that contains the token at address `token`; it is never an empty document. The time is
 * logarithmic in the shard's documents.
 * Statuses: OK, ERROR_RANGE, ERROR_CORRUPT (the index contradicts itself there), ERROR_UNSUPPORTED (it is not recorded
 * where documents are), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_document_at(const struct tokmap_dataset *dataset,
                                                                           uint64_t token,
                                                                           struct tokmap_document *document,
                                                                           struct tokmap_error *error);

/* Looks up where document `number`, from 0, came from.
 * Statuses: OK, ERROR_RANGE, ERROR_NOT_FOUND (the index records no origins), ERROR_CORRUPT, ERROR_UNSUPPORTED (it is
 * not recorded where documents are), ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_origin(const struct tokmap_dataset *dataset,
                                                                      uint64_t number, struct tokmap_origin *origin,
                                                                      struct tokmap_error *error);

/* ---- columns ----
 *
 * An index can keep chosen fields of the records that its documents came from, the columns: their addresses, scores,
 * languages. `tokmap pack --columns url,score` writes them, and so does pack.h.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_value value;
 *     if (tokmap_dataset_value(dataset, 17, "url", &value, &e))
 *         fatal(&e);
 *     printf("%.*s\n", (int)value.bytes, value.json);  // "https://example.org/"
 * @endcode
 */

/* A value: JSON text in UTF-8 of `bytes` bytes, not terminated, as the record has it: a string with its quotes, a
 * number, true, false, null, an object, an array. bytes 0: the record has no such field. */
struct tokmap_value {
    const char *json;
    uint64_t bytes;
};

/* What a dataset has of one column. */
struct tokmap_column_info {
    size_t size;        /* set by the caller: sizeof(struct tokmap_column_info) */
    const char *name;   /* UTF-8; valid until the dataset is closed */
    uint64_t shards;    /* that have the column */
    uint64_t documents; /* of the dataset, in these shards */
    uint64_t values;    /* that are stored: in a shard whose documents have at most 65,536 different values of at most
                           16 MiB, these; in other shards one for each document */
    uint64_t bytes;     /* of the column in the indexes of these shards */
};

/* Lists the columns of a dataset, which are those of all its shards, in the order in which they first appear. A dataset
 * of other projects' files, or a synthetic one, has none.
 *   names  receives `capacity` names at most, each UTF-8 and valid until the dataset is closed. NULL with capacity 0:
 *          only *count is wanted
 *   count  receives the number of columns, also with ERROR_LIMIT
 * Any thread may call it. Statuses: OK, ERROR_LIMIT (capacity is too small), ERROR_CORRUPT (the columns of a shard
 * contradict each other), ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_columns(const struct tokmap_dataset *dataset,
                                                                       const char **names, size_t capacity,
                                                                       size_t *count, struct tokmap_error *error);

/* Fills *info for the column `name`. The time is proportional to the number of shards. Any thread may call it.
 * Statuses: OK, ERROR_NOT_FOUND (no shard has such a column), ERROR_CORRUPT, ERROR_ARGUMENT (an argument is NULL, or
 * info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_column(const struct tokmap_dataset *dataset,
                                                                      const char *name, struct tokmap_column_info *info,
                                                                      struct tokmap_error *error);

/* Looks up the value of the column `name` for document `number`, from 0. value->json points into the index and is
 * valid until the dataset is closed; value->bytes is 0 if the document's record has no such field, or if its shard
 * has no such column although another shard does. Its bounds are checked here. That it is JSON was checked when it was
 * written; tokmap_dataset_verify() checks it again. Any thread may call it.
 * Statuses: OK, ERROR_RANGE (no such document), ERROR_NOT_FOUND (no shard has such a column), ERROR_CORRUPT,
 * ERROR_ARGUMENT. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_value(const struct tokmap_dataset *dataset,
                                                                     uint64_t number, const char *name,
                                                                     struct tokmap_value *value,
                                                                     struct tokmap_error *error);

/* Options of tokmap_dataset_verify(). The callbacks may be called from threads of the library, one call at a time. They
 * return 0 to continue; any other value ends the verification with ERROR_INTERRUPTED. */
struct tokmap_verify_options {
    size_t size;      /* sizeof(struct tokmap_verify_options) */
    uint32_t threads; /* 0: one for each processor that this process may use */
    /* Called for each fault, in no particular order. The error has the file, the offset of the first byte of the faulty
     * block or section, and a message. NULL: not called. */
    int (*fault)(void *user, const struct tokmap_error *error);
    /* Called from time to time with the number of bytes read so far and in total. NULL: not called. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user; /* passed to both callbacks */
};
#define TOKMAP_VERIFY_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct tokmap_verify_options), 0, NULL, NULL, NULL                                                      \
    }

struct tokmap_verify_result {
    size_t size;     /* set by the caller: sizeof(struct tokmap_verify_result) */
    uint64_t bytes;  /* read and hashed */
    uint64_t blocks; /* blocks of tokens that were hashed */
    uint64_t faults;
};

/* Reads every byte of every shard and checks everything that the index says about it: section hashes, block hashes, the
 * order and bounds of documents, origins, and columns, content ids, the largest id, and zero padding. It continues
 * after a fault, to find them all. A synthetic dataset has nothing to verify.
 *   options  NULL: the defaults
 *   result   NULL: not wanted
 * A dataset that loaders read through mappings is verified through them where that is faster; the caveat about SIGBUS
 * in tokmap.h applies. Memory use does not grow with the dataset.
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_verify_result result = {.size = sizeof result};
 *     if (tokmap_dataset_verify(dataset, NULL, &result, &e))
 *         fatal(&e);                                  // e is the first fault
 *     printf("%" PRIu64 " bytes are sound\n", result.bytes);
 * @endcode
 *
 * Statuses: OK (no faults); ERROR_CORRUPT, ERROR_IO, or ERROR_TRUNCATED (there are faults; error describes the first by
 * position); ERROR_INTERRUPTED (a callback did not return 0); ERROR_ARGUMENT, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_verify(const struct tokmap_dataset *dataset,
                                                                      const struct tokmap_verify_options *options,
                                                                      struct tokmap_verify_result *result,
                                                                      struct tokmap_error *error);

/* Options of tokmap_dataset_index(). The callbacks may be called from threads of the library, one call at a time. */
struct tokmap_index_options {
    size_t size;      /* sizeof(struct tokmap_index_options) */
    uint32_t threads; /* 0: one for each processor that this process may use */
    int replace;      /* 1: an index that exists is written again (the index of a packed shard never is); 0: it is an
                         error */
    /* Called from time to time with the number of bytes of tokens read so far and in total. A result other than 0 ends
     * the indexing with ERROR_INTERRUPTED. NULL: not called. */
    int (*progress)(void *user, uint64_t done, uint64_t total);
    /* Asked where the documents of a file end, if its format does not say so: for OLMo's .csv.gz, for example. Called
     * again and again for a file: it writes the next ends, in tokens, at most `capacity` of them, in order, and sets
     * *used; 0 is the end. ERROR_NOT_FOUND in the first call for a file: documents end and begin at the EOD and BOS of
     * the name. Every other status but OK fails the indexing; it fills *error. NULL: not called. */
    enum tokmap_status (*ends)(void *user, const char *tokens_path, uint64_t tokens, uint64_t *ends, uint64_t capacity,
                               uint64_t *used, struct tokmap_error *error);
    void *user; /* passed to both callbacks */
    /* The tokenizer that made the ids, which no other project's file states. The indexes record it, as those of packed
     * shards do, so that commands find it, and that datasets of different tokenizers are not combined. */
    const uint8_t *tokenizer;    /* its fingerprint, 16 bytes; NULL: it is not known */
    uint64_t vocabulary;         /* the number of its ids, as the word vocab of a name; 0: not known */
    const char *tokenizer_about; /* a JSON object in UTF-8 that describes it, for the about section, such as
                                    {"name":"gpt2"}; NULL: nothing more is known */
};
#define TOKMAP_INDEX_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(struct tokmap_index_options), 0, 0, NULL, NULL, NULL, NULL, 0, NULL                                     \
    }

struct tokmap_index_result {
    size_t size;    /* set by the caller: sizeof(struct tokmap_index_result) */
    uint64_t files; /* indexes that were written; those before a failure remain */
    uint64_t tokens;
    uint64_t documents;
    uint64_t bytes; /* of the files with tokens */
};

/* Indexes files of other projects (see tokmap_dataset_open()): reads each file once and writes its .tmx beside it, and
 * a .mask if datatrove's .loss exists. The files themselves do not change. With all of its indexes, a dataset has
 * numbered documents and a full identity: its content id is that of a packed copy. Its cursors differ from those
 * before, because the id is part of them.
 *   name     as for tokmap_dataset_open(), of files of another project
 *   options  NULL: the defaults
 *   result   NULL: not wanted; also filled on failure
 * An index appears complete or not at all. Memory use does not grow with the files.
 * Statuses: OK; ERROR_EXISTS (an index exists); ERROR_TOKEN (an id is not in the vocabulary; the error has its byte);
 * ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_FORMAT, ERROR_VERSION (a file is damaged); ERROR_BUSY (another process writes
 * an index, or a file changed meanwhile); ERROR_NOT_FOUND, ERROR_IO, ERROR_UNSUPPORTED, ERROR_ARGUMENT,
 * ERROR_INTERRUPTED, ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_dataset_index(const char *name,
                                                                     const struct tokmap_index_options *options,
                                                                     struct tokmap_index_result *result,
                                                                     struct tokmap_error *error);

#ifdef __cplusplus
}
#endif
#endif
