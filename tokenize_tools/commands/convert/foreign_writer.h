/* SPDX-License-Identifier: MIT */
/*
 * foreign_writer.h - writes a dataset as the files of another project, as a stream: memory does not grow with tokens or
 * documents, and the files appear complete or not at all (output_group.h).
 *
 *     megatron   PREFIX.bin and PREFIX.idx
 *     llmc       PREFIX.bin, with a header; no index of documents
 *     datatrove  PREFIX.ds, PREFIX.ds.index, PREFIX.ds.metadata, and with a mask PREFIX.ds.loss
 *     olmo       PREFIX.npy without a header, and PREFIX.csv.gz
 *     nanogpt    PREFIX.bin, and the note PREFIX.meta.json; no index of documents
 *
 * Where tokens have the bytes that a shard's .bin has already, they need not be written: with shared_tokens, .idx and
 * the note are for that .bin, which is then PREFIX.bin, and .ds and .npy become other names of it.
 *
 * A format without an index of documents has only the EOD or BOS between them. The writer counts the documents whose
 * boundaries cannot be found by these.
 */
#ifndef TOKMAP_COMMANDS_CONVERT_FOREIGN_WRITER_H
#define TOKMAP_COMMANDS_CONVERT_FOREIGN_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "format/element.h"
#include "format/foreign/foreign_formats.h"
#include "format/index_writer.h"
#include "output_group.h"

enum foreign_target { TARGET_MEGATRON, TARGET_LLMC, TARGET_DATATROVE, TARGET_OLMO, TARGET_NANOGPT, FOREIGN_TARGETS };

/* "megatron"; the list of all, as "megatron|llmc|datatrove|olmo|nanogpt". */
const char *foreign_target_name(enum foreign_target target);
#define FOREIGN_TARGET_NAMES "megatron|llmc|datatrove|olmo|nanogpt"

/* Return whether the files can have a mask; whether their tokens can be those of a shard's .bin of that width. */
bool foreign_target_has_mask(enum foreign_target target);
bool foreign_target_shares(enum foreign_target target, uint32_t width);

struct foreign_writer_options {
    enum foreign_target target;
    const char *prefix;
    uint32_t width;            /* bytes of an id that is added: 2 or 4 */
    uint32_t stored;           /* bytes of a token in the files: 2 or 4; 2 for nanogpt */
    uint64_t vocabulary;       /* for the note */
    uint64_t eod_id, bos_id;   /* of the documents, or TOKMAP_NO_ID */
    const char *tokenizer;     /* its name, or NULL; it must outlive the writer */
    bool mask;                 /* only where foreign_target_has_mask() */
    const char *shared_tokens; /* the .bin of a shard, with tokens of `width` bytes; NULL: tokens are written */
    bool replace, sync;
    bool equal; /* with `replace`: a file is replaced only if it has the same bytes as the new one */
};

struct foreign_writer; /* for one thread at a time */

/* Returns how many files a writer of these options makes. */
uint32_t foreign_writer_files(const struct foreign_writer_options *options);

/* Returns the path of the n-th of these files, the caller frees it; NULL after the last one, and without memory. */
char *foreign_writer_path(const struct foreign_writer_options *options, uint32_t n);

/* Refuses to begin where files must not be replaced: PREFIX.bin if it belongs to a shard, and without options.replace
 * all that exist. Creates the partial files. options: must last until the commit. Statuses: OK, ERROR_EXISTS,
 * ERROR_BUSY, ERROR_NOT_FOUND, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status foreign_writer_open(struct foreign_writer **writer, const struct foreign_writer_options *options,
                                       struct tokmap_error *error);

/* Appends `count` tokens and the documents that end among them.
 *   ends     of `documents` documents, each a number of tokens from the start of this call's; they never decrease.
 *            Tokens after the last end belong to a document that a later call ends
 *   origins  of these documents; NULL: unknown
 *   largest  no id is larger
 * Statuses: OK, ERROR_TOKEN (an id does not fit), ERROR_LIMIT (more tokens than the format can have), ERROR_IO,
 * ERROR_MEMORY. */
enum tokmap_status foreign_writer_add(struct foreign_writer *writer, const void *tokens, uint64_t count,
                                      const uint64_t *ends, uint64_t documents, const struct tokmap_origin *origins,
                                      uint64_t largest, struct tokmap_error *error);

/* States which of the next `count` tokens without bits count as targets: bit i mod 8 of byte i / 8. Only with
 * options.mask; in the end each token must have a bit. Statuses: OK, ERROR_IO. */
enum tokmap_status foreign_writer_mask(struct foreign_writer *writer, const uint8_t *bits, uint64_t count,
                                       struct tokmap_error *error);

struct foreign_written {
    uint64_t tokens, documents;
    uint64_t lost;          /* documents whose boundaries the files do not have */
    uint64_t written_bytes; /* of all files, links not included */
    uint64_t shared_bytes;  /* of tokens that were not written again */
};

/* Finishes: writes what is known only now, syncs, and renames. Frees the writer with every status. Statuses: OK,
 * ERROR_EXISTS, ERROR_ARGUMENT (there are no tokens, or a document is open), ERROR_IO, ERROR_MEMORY. */
enum tokmap_status foreign_writer_commit(struct foreign_writer *writer, struct foreign_written *written,
                                         struct tokmap_error *error);
void foreign_writer_abort(struct foreign_writer *writer); /* removes the partial files; NULL is ignored */

/* ---- what tests look at ---- */

#define LLMC_TOKENS_MOST ((uint64_t)INT32_MAX)
#define DATATROVE_NAME_MOST 256 /* bytes of the tokenizer's name that are written */
#define DATATROVE_TEXT_MOST (DATATROVE_NAME_MOST + 96)

/* Makes the header of llm.c (foreign_formats.h) for `tokens` tokens, at most LLMC_TOKENS_MOST, of `width` bytes: 2
 * gives the kind of GPT-2, 4 that of Llama 3. */
void llmc_head(uint8_t head[LLMC_HEAD_BYTES], uint32_t width, uint64_t tokens);

/* Writes the three lines of a .ds.metadata (foreign_formats.h), as datatrove writes it, and returns their bytes.
 * tokenizer: its name; NULL: unknown. width: 2 or 4. */
size_t datatrove_metadata(char text[DATATROVE_TEXT_MOST], const char *tokenizer, uint32_t width, uint64_t tokens);

/* ---- megatron ---- */

/*
 * Writes the index of Megatron's token files, PREFIX.idx (megatron.h), which begins with arrays
 * that are complete only in the end. So the lengths of sequences are kept in an unnamed file, 4 bytes each, from which
 * all arrays are computed.
 *
 * A document is one sequence, unless it has more tokens than the 2^31 - 1 that a length can hold: then it has several.
 */

struct megatron_writer {
    struct spill lengths; /* u32 of each sequence; bit 31: the sequence continues the document of the one before it */
    uint64_t sequences, documents;
};

/* folder: see spill_init(). */
void megatron_writer_init(struct megatron_writer *writer, const char *folder);
void megatron_writer_free(struct megatron_writer *writer); /* a zeroed writer is allowed */

/* Adds a document of so many tokens. Returns 0 or an errno. */
int megatron_writer_add(struct megatron_writer *writer, uint64_t tokens);

/* Writes the index as a part of the group. To be called once. Statuses: OK, ERROR_IO, ERROR_MEMORY. */
enum tokmap_status megatron_writer_finish(struct megatron_writer *writer, enum element element,
                                          struct output_group *group, uint32_t part, struct tokmap_error *error);

/* ---- olmo ---- */

/* Writes the .csv.gz of Dolma and OLMo-core (olmo.h): a line "START,END,ID,SOURCE,LINE" per document. */

/* A gzip file whose data is stored as it is, not compressed: for readers that expect gzip, without a library that
 * compresses, so that the bytes are the same whatever a build was made with. */
enum { GZIP_BLOCK = 65535 }; /* most bytes of a stored block */

struct gzip_stored {
    uint32_t crc;
    uint64_t bytes; /* of the data so far */
    size_t used;
    uint8_t *block; /* GZIP_BLOCK bytes, of the caller */
};

/* Begins a file, which is a part of the group, to which nothing was added. block: memory of GZIP_BLOCK bytes, until the
 * end. Statuses of all three: OK, ERROR_IO. */
enum tokmap_status gzip_stored_begin(struct gzip_stored *gzip, uint8_t *block, struct output_group *group,
                                     uint32_t part, struct tokmap_error *error);
enum tokmap_status gzip_stored_add(struct gzip_stored *gzip, const void *bytes, size_t count,
                                   struct output_group *group, uint32_t part, struct tokmap_error *error);
enum tokmap_status gzip_stored_end(struct gzip_stored *gzip, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);

struct olmo_writer {
    struct gzip_stored gzip;
    uint64_t documents;
    uint8_t block[GZIP_BLOCK];
};

/* Begins the file, which is a part of the group. Statuses of all three: OK, ERROR_IO. */
enum tokmap_status olmo_writer_begin(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                     struct tokmap_error *error);
/* Adds a document of tokens [start, end). Its ID is its number, from 0. origin: gives SOURCE and LINE, which is its
 * record + 1; NULL: they are empty. */
enum tokmap_status olmo_writer_add(struct olmo_writer *writer, uint64_t start, uint64_t end,
                                   const struct tokmap_origin *origin, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);
enum tokmap_status olmo_writer_end(struct olmo_writer *writer, struct output_group *group, uint32_t part,
                                   struct tokmap_error *error);

#endif
