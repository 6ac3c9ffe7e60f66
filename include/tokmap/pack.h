/* SPDX-License-Identifier: MIT */
/*
 * pack.h - writes shards from a program: for those who have token ids already, from a tokenizer of their own
 *
 * A *writer* makes one shard, NAME.bin and NAME.tmx, out of documents of ids. The files are those that `tokmap pack`
 * makes: the same format, the same content id for the same documents, and the same promise that a reader finds the old
 * shard, no shard, or the complete new one, whatever happens to the program.
 *
 * A program opens a writer, adds its documents, and commits:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_writer *writer = NULL;
 *     struct tokmap_writer_options o = TOKMAP_WRITER_OPTIONS_INIT;
 *     o.vocabulary = 50257;                           // every id is below it
 *     o.eod_id = 50256;                               // added to the end of each document
 *     if (tokmap_writer_open(&writer, "data/mine", &o, &e))
 *         fatal(&e);
 *     const int32_t ids[] = {464, 3290, 318, 845, 922};
 *     struct tokmap_documents documents = TOKMAP_DOCUMENTS_INIT; // one document
 *     documents.ids = ids;
 *     documents.type = TOKMAP_ID_I32;
 *     documents.id_count = 5;
 *     if (tokmap_writer_add(writer, &documents, &e))
 *         fatal(&e);
 *     if (tokmap_writer_commit(writer, NULL, &e))     // now data/mine exists
 *         fatal(&e);
 * @endcode
 *
 * Several documents are added at once, which is faster for short ones, with their ends in one array of ids:
 *
 * @code
 *     struct tokmap_error e = {0};
 *     struct tokmap_writer *writer = NULL;
 *     struct tokmap_writer_options o = TOKMAP_WRITER_OPTIONS_INIT;
 *     const char *const columns[] = {"url"};
 *     o.vocabulary = 100;
 *     o.mask = 1;
 *     o.columns = columns;
 *     o.column_count = 1;
 *     if (tokmap_writer_open(&writer, "data/pairs", &o, &e))
 *         fatal(&e);
 *     const uint16_t ids[] = {1, 2, 3, 4, 5};
 *     const uint8_t counted[] = {0, 0, 1, 0, 1};      // a model learns to predict 3 and 5
 *     const uint64_t ends[] = {3, 5};                 // documents 1 2 3 and 4 5
 *     const struct tokmap_value urls[] = {{"\"https://example.org\"", 21}, {NULL, 0}};
 *     struct tokmap_documents documents = TOKMAP_DOCUMENTS_INIT;
 *     documents.ids = ids;
 *     documents.type = TOKMAP_ID_U16;
 *     documents.id_count = 5;
 *     documents.ends = ends;
 *     documents.document_count = 2;
 *     documents.counted = counted;
 *     documents.values = urls;
 *     if (tokmap_writer_add(writer, &documents, &e) || tokmap_writer_commit(writer, NULL, &e))
 *         fatal(&e);
 * @endcode
 *
 * Rules for functions, structs, and errors are those of tokmap.h. One thread at a time may use a writer; several
 * writers, of different shards, may be used at the same time. A child after fork() must not use its parent's writers.
 * The memory of a writer does not grow with what is added: it takes about 2 MiB, and up to 18 MiB for each column.
 *
 * While a shard is being written, its files are NAME.bin.partial, NAME.tmx.partial, and with a mask NAME.mask.partial,
 * which no reader opens. A lock on the second one keeps another writer from the same name. If the program is killed,
 * these files remain, and the next writer of that name removes them. A shard that is replaced can be opened at every
 * moment: it is the old one until the new one is complete, also if the program is killed while it commits.
 */
#ifndef TOKMAP_PACK_H
#define TOKMAP_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A shard that is being written. One thread at a time. */
struct tokmap_writer;

struct tokmap_writer_options {
    size_t size;
    uint64_t vocabulary;   /* number of ids of the tokenizer, special tokens included, 1 to 2^32; required */
    uint32_t width;        /* bytes of a stored token: 2 or 4. Default 0: 2 if the vocabulary is at most 65,536, else
                              4 */
    int sync;              /* 1 (default): a committed shard survives a power failure. 0: faster, for files that need
                              not */
    int replace;           /* 1: the commit replaces a shard of this name. 0 (default): opening is ERROR_EXISTS if
                              there is one */
    int mask;              /* 1: the shard has a mask, which says for each token whether it counts as a target */
    uint64_t eod_id;       /* the id that ends each document, or TOKMAP_NO_ID (default). The writer appends it */
    uint64_t bos_id;       /* the id that begins each document, or TOKMAP_NO_ID (default). The writer prepends it */
    int delimited;         /* 1: the documents have their EOD and BOS already; the writer adds none, and refuses a
                              document that lacks one. Default: 0 */
    uint32_t column_count; /* number of columns, at most 64; default: 0 */
    const char *const *columns; /* their names, each 1 to 1,024 bytes of UTF-8, all different; copied */
    uint8_t tokenizer[16];      /* fingerprint of the tokenizer, as in struct tokmap_tokenizer_info. All zero (default):
                                   unknown. Datasets whose shards have different ones are refused */
    const char *about; /* a JSON object in UTF-8, terminated, that the index keeps, such as the tokenizer's name
                          and the program's options; copied. At most 64 arrays and objects are inside one
                          another. NULL (default): the name and version of this library */
};
#define TOKMAP_WRITER_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct tokmap_writer_options), 0, 0, 1, 0, 0, TOKMAP_NO_ID, TOKMAP_NO_ID, 0, 0, NULL, {0}, NULL         \
    }

/* Begins a shard: creates the partial files and locks them.
 *   writer   receives the handle; end it with tokmap_writer_commit() or tokmap_writer_abandon()
 *   prefix   the name of the shard without .bin or .tmx; its folder must exist
 *   options  they must last only during the call
 * Any thread may call it. Statuses: OK, ERROR_EXISTS, ERROR_BUSY (another process writes this shard), ERROR_NOT_FOUND
 * (the folder does not exist), ERROR_IO, ERROR_LIMIT (too many columns), ERROR_ARGUMENT (the message names the option),
 * ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_writer_open(struct tokmap_writer **writer, const char *prefix,
                                                                   const struct tokmap_writer_options *options,
                                                                   struct tokmap_error *error);

/* One or more documents. All pointers must last only during the call, and may have any alignment. */
struct tokmap_documents {
    size_t size;
    const void *ids;          /* ids of all documents, one document after another; NULL only without ids */
    enum tokmap_id_type type; /* of `ids`; default: TOKMAP_ID_U32 */
    uint64_t id_count;
    const uint64_t *ends;    /* of each document in turn, the number of ids up to its end. Ends never decrease, and the
                                last one is id_count. NULL: there is one document of all ids */
    uint64_t document_count; /* default: 1. 0 adds nothing */
    const uint8_t *counted;  /* with options.mask, a byte for each id: 1 if it counts as a target, 0 if not. An EOD that
                                the writer appends counts as the id before it does (after no id, it does not), and a BOS
                                that it prepends does not. NULL (default): all tokens of these documents count */
    const char *origin;      /* the name of the file or source that the documents are from, `origin_bytes` bytes, as
                                tokmap_dataset_origin() returns it. NULL (default): the same as before, from the next
                                record on; or no document of the shard has an origin */
    uint64_t origin_bytes;
    uint64_t record; /* number of the first document's record in the origin, from 0, counting up from there */
    const struct tokmap_value *values; /* the values of the columns: values[d * column_count + c] is that of column c
                                for document d of this call. NULL (default): the documents have no values */
};
#define TOKMAP_DOCUMENTS_INIT {sizeof(struct tokmap_documents), NULL, TOKMAP_ID_U32, 0, NULL, 1, NULL, NULL, 0, 0, NULL}

/* Adds documents, which may be empty, to the end of the shard. Everything is checked before anything is stored: if the
 * documents are refused, none of them is added, and the writer can continue.
 * Statuses: OK; ERROR_TOKEN (an id is negative or not in the vocabulary; the message has its position), ERROR_INPUT (a
 * byte of `counted` is neither 0 nor 1, a document lacks its EOD or BOS with options.delimited, or a value is not JSON
 * text in UTF-8), ERROR_ARGUMENT, after all of which the writer is as it was; ERROR_IO (a file cannot be written, for
 * example on a full disk), ERROR_LIMIT (more than a file can hold), ERROR_MEMORY, after which only
 * tokmap_writer_abandon() is of use. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status
tokmap_writer_add(struct tokmap_writer *writer, const struct tokmap_documents *documents, struct tokmap_error *error);

/* What has been added so far. */
struct tokmap_writer_info {
    size_t size;
    uint64_t tokens; /* with the EODs and BOSs that the writer added */
    uint64_t documents;
    uint32_t width; /* bytes of a stored token: 2 or 4 */
};
#define TOKMAP_WRITER_INFO_INIT TOKMAP_SIZED(struct tokmap_writer_info)

/* Fills *info. Statuses: OK, ERROR_ARGUMENT (an argument is NULL, or info->size is not set). */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_writer_info(const struct tokmap_writer *writer,
                                                                   struct tokmap_writer_info *info);

/* Replaces options.about, for what is known only in the end, such as totals. With the bytes of text and the tokens of
 * the shard, as in {"totals": {"text_bytes": 5000, "tokens": 1200}}, `tokmap info` shows the bytes a token.
 *   about  as options.about; copied
 * Statuses: OK, ERROR_ARGUMENT (the text is not a JSON object, or an argument is NULL), ERROR_MEMORY. With every status
 * but OK the text from before remains. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_writer_about(struct tokmap_writer *writer, const char *about,
                                                                    struct tokmap_error *error);

/* Finishes the shard: writes the index, syncs the files, and gives them their names, the index last. The writer is
 * freed with every status. On failure the partial files are removed, and a shard that was to be replaced remains,
 * unless the message says otherwise. A shard without documents is valid.
 *   content  receives the content id of the shard, 16 bytes; NULL: not wanted
 * Statuses: OK, ERROR_EXISTS (another process made a shard of this name meanwhile), ERROR_IO, ERROR_ARGUMENT,
 * ERROR_MEMORY. */
TOKMAP_API TOKMAP_MUST_CHECK enum tokmap_status tokmap_writer_commit(struct tokmap_writer *writer, uint8_t *content,
                                                                     struct tokmap_error *error);

/* Gives the shard up: removes the partial files and frees the writer. A shard of that name from before remains. Accepts
 * NULL. Cannot fail. */
TOKMAP_API void tokmap_writer_abandon(struct tokmap_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
