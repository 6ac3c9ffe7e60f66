/* SPDX-License-Identifier: MIT */
/* tokenizer_library.h - what the functions of tokmap/tokenizer.h share: the handle, and the working memory of calls. */
#ifndef TOKMAP_VOCABULARY_TOKENIZER_LIBRARY_H
#define TOKMAP_VOCABULARY_TOKENIZER_LIBRARY_H

#include <stdatomic.h>

#include "engine/tokenizer.h"
#include "tokmap/tokenizer.h"

#define LIBRARY_SLOTS 64
#define LIBRARY_DECODED 1024 /* the most ids that library_ids_decode takes */

/* The working memory of one call. */
struct library_worker {
    struct tokenizer_state *state;
    void *ids;
    uint64_t capacity; /* in ids */
};

struct tokmap_tokenizer {
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    char *note;                      /* info.note and the warnings about a folder, which this handle owns; or NULL */
    bool cuts;                       /* long texts are encoded in parts */
    struct tokmap_tokenizer *shares; /* the handle that owns the vocabulary; NULL: this one does */
    atomic_uint users;               /* of the vocabulary: handles that are open, this one among them */
    _Atomic(struct library_worker *) slots[LIBRARY_SLOTS];
};

/* Returns ERROR_ARGUMENT with the message that `name` is NULL. */
enum tokmap_status library_missing(struct tokmap_error *error, const char *name);

/* Takes working memory, to be put back. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status library_worker_take(const struct tokmap_tokenizer *tokenizer, struct library_worker **worker,
                                       struct tokmap_error *error);
void library_worker_put(const struct tokmap_tokenizer *tokenizer, struct library_worker *worker);

/* Encodes a text, or a part of one, into the memory of the worker; *count is the number of ids. Statuses: those of
 * tokenizer_encode. */
enum tokmap_status library_part_encode(const struct tokmap_tokenizer *tokenizer, struct library_worker *worker,
                                       const struct tokmap_text *part, bool resumed, bool unfinished, uint64_t *count,
                                       struct tokmap_error *error);

/* Returns how much of a text to encode next: about `wanted` bytes of the `left` that remain, or all of them if there is
 * no place to cut them. */
uint64_t library_part_bytes(const struct tokmap_tokenizer *tokenizer, const char *text, uint64_t left, uint64_t wanted);

/* Checks that ids up to `largest` fit in a type. Statuses: OK, ERROR_ARGUMENT. */
enum tokmap_status library_type_check(enum tokmap_id_type type, uint64_t largest, struct tokmap_error *error);

/* Decodes ids[first..first + count), count <= LIBRARY_DECODED, and appends their text. Statuses: those of
 * tokmap_tokenizer_decode. */
enum tokmap_status library_ids_decode(const struct tokmap_tokenizer *tokenizer, struct tokenizer_decoder *decoder,
                                      const void *ids, enum tokmap_id_type type, uint64_t count, uint64_t first,
                                      struct text_buffer *text, struct tokmap_error *error);

#endif
