/* SPDX-License-Identifier: MIT */
/*
 * synthetic.h - a dataset that is computed instead of read from files. It lets a training loop run with the same shapes
 * but without data, which separates data problems from model problems. Its name determines it completely:
 * synthetic:vocab=50257[,tokens=N][,document=N][,width=2|4][,seed=N]. RUN.md defines the words and the computation of
 * tokens and documents.
 */
#ifndef TOKMAP_DATASET_SYNTHETIC_H
#define TOKMAP_DATASET_SYNTHETIC_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct synthetic {
    uint64_t vocabulary;
    uint64_t tokens;
    uint64_t document; /* average tokens per document */
    uint64_t documents;
    uint64_t seed;
    uint32_t width;
    void *tile; /* tokens from which all others are computed; see synthetic.c */
};

/* Returns true if a name refers to a synthetic dataset. Opening it does not touch the file system. */
bool synthetic_names(const char *name);

/* Opens the synthetic dataset of that name. Statuses: OK, ERROR_ARGUMENT (the message names the wrong word),
 * ERROR_MEMORY. */
enum tokmap_status synthetic_open(struct synthetic **synthetic, const char *name, struct tokmap_error *error);
void synthetic_close(struct synthetic *synthetic); /* NULL is ignored */

/* Computes the content id, which depends on the words of the name only. */
void synthetic_content(const struct synthetic *synthetic, uint8_t content[16]);

/* Writes tokens [first, first + count) to `out`; first + count <= tokens. */
void synthetic_copy(const struct synthetic *synthetic, uint64_t first, uint64_t count, void *out);

/* Return the document that holds a token (< tokens), and the first token and the end of a document (< documents). */
uint64_t synthetic_document_at(const struct synthetic *synthetic, uint64_t token);
uint64_t synthetic_start(const struct synthetic *synthetic, uint64_t document);
uint64_t synthetic_end(const struct synthetic *synthetic, uint64_t document);

#endif
