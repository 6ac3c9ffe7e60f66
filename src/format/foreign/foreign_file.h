/* SPDX-License-Identifier: MIT */
/*
 * foreign_file.h - one token file of another project, open, with its document index if it has one.
 *
 * Opening reads the first bytes and the small files beside it, compares every count with the sizes of the files, and
 * reads a document index once to compare each of its numbers with its neighbors. The tokens are not read. Megatron's
 * index has 20 bytes a document and datatrove's 8, so that takes 3 to 4 ms of a processor for each million documents of
 * Megatron, and the time to load the index if it is not in memory. A .tmx of `tokmap index` saves it.
 */
#ifndef TOKMAP_FORMAT_FOREIGN_FOREIGN_FILE_H
#define TOKMAP_FORMAT_FOREIGN_FOREIGN_FILE_H

#include "foreign_index.h"
#include "foreign_name.h"

struct foreign_file {
    enum foreign_kind kind; /* never FOREIGN_UNNAMED */
    char *path;             /* of the tokens */
    char *documents_path;   /* of the document index, or NULL */
    char *loss_path;        /* of datatrove's .loss, or NULL */
    char *index_path;       /* the .tmx that `tokmap index` writes for this file */
    int fd;                 /* of the tokens */
    int documents_fd;       /* of the document index, or -1 */
    uint64_t device, inode; /* of the tokens */
    struct foreign_layout layout;
    struct foreign_words words; /* as given */
    uint64_t eod_id, bos_id;    /* the words, else what the format prescribes */
    uint64_t vocabulary;        /* the word, else what the elements can hold, at most 2^31 */
    struct foreign_index documents;
};

/* Returns the kind of the file at `path`, by its magic; FOREIGN_UNNAMED if it has none. A prefix of a .bin and an .idx,
 * and each of both files, are Megatron's. Reads at most 16 bytes. */
enum foreign_kind foreign_kind_of(const char *path);

/* Returns FOREIGN_RAW, and sets the words that are not given, if `path` is a PREFIX.bin beside which PREFIX.meta.json
 * of `tokmap convert --to nanogpt` agrees with those that are; else FOREIGN_UNNAMED. */
enum foreign_kind foreign_note_read(const char *path, struct foreign_words *words);

/* Returns the path of the tokens that `path` names ("PREFIX", "PREFIX.bin", and "PREFIX.idx" are PREFIX.bin for
 * Megatron), or NULL without memory. The caller frees it. */
char *foreign_tokens_path(enum foreign_kind kind, const char *path);

/* Returns the path of the .tmx that belongs to the file with tokens: NAME.tmx for NAME.bin, otherwise ".tmx" is added.
 * NULL without memory. */
char *foreign_index_path(const char *tokens_path);

/* Opens the file that `path` names, of a kind that is not FOREIGN_UNNAMED. Its document index is read with pread until
 * foreign_bytes_map() maps it. On failure *file needs no foreign_close(). Statuses: OK, ERROR_NOT_FOUND, ERROR_IO,
 * ERROR_FORMAT, ERROR_VERSION, ERROR_CORRUPT, ERROR_TRUNCATED, ERROR_UNSUPPORTED, ERROR_ARGUMENT, ERROR_MEMORY. */
enum tokmap_status foreign_open(struct foreign_file *file, enum foreign_kind kind, const char *path,
                                const struct foreign_words *words, struct tokmap_error *error);
void foreign_close(struct foreign_file *file);

/* A file of a dataset, for its identity. */
struct foreign_part {
    int fd;
    const char *path;
    uint64_t start; /* in the string of all files; foreign_sample() computes it */
    uint64_t bytes; /* of the file */
};

/* Computes the sampled identity of a dataset: the XXH3-128 of "sample 1"; the kind and the words width, offset, eod,
 * bos, vocab of its first file as given (0, or 2^64 - 1 for ids, where they were not), and the number of files, as u64;
 * the sizes of the files, as u64; and of all files, taken as one string of z bytes, the 256 probes of up to 4 KiB at
 * 4096 * floor(i * (ceil(z / 4096) - 1) / 255). Document indexes come first, then tokens, then masks.
 * Statuses: OK, ERROR_IO, ERROR_TRUNCATED, ERROR_MEMORY. */
enum tokmap_status foreign_sample(const struct foreign_file *file, struct foreign_part *parts, uint64_t count,
                                  uint8_t id[16], struct tokmap_error *error);

#endif
