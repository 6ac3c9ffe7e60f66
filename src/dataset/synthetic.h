/*
 * synthetic.h - a dataset that is arithmetic instead of files: the same shapes and the same loop without data, to tell a
 * data problem from a compute problem. Its name says all of it: synthetic:vocab=50257[,tokens=N][,document=N][,width=2|4]
 * [,seed=N]. RUN.md says what each word means and how its tokens and documents are computed.
 */
#ifndef TOKMAP_DATASET_SYNTHETIC_H
#define TOKMAP_DATASET_SYNTHETIC_H

#include <stdbool.h>

#include "tokmap/tokmap.h"

struct synthetic {
    uint64_t vocabulary;
    uint64_t tokens;
    uint64_t document; /* tokens of a document, on average */
    uint64_t documents;
    uint64_t seed;
    uint32_t width;
    void *tile;
};

/* Whether a dataset's name is that of a synthetic one. Such a name never touches the file system. */
bool synthetic_names(const char *name);

/* Statuses: OK, ERROR_ARGUMENT (which word of the name is wrong), ERROR_MEMORY. */
enum tokmap_status synthetic_open(struct synthetic **synthetic, const char *name, struct tokmap_error *error);
void synthetic_close(struct synthetic *synthetic); /* accepts NULL */

/* Follows from all that the name says and from nothing else. */
void synthetic_content(const struct synthetic *synthetic, uint8_t content[16]);

/* Tokens [first, first + count), which it has, to out. */
void synthetic_copy(const struct synthetic *synthetic, uint64_t first, uint64_t count, void *out);

/* The document that holds a token (< tokens); where a document (< documents) starts, and where it ends. */
uint64_t synthetic_document_at(const struct synthetic *synthetic, uint64_t token);
uint64_t synthetic_start(const struct synthetic *synthetic, uint64_t document);
uint64_t synthetic_end(const struct synthetic *synthetic, uint64_t document);

#endif
