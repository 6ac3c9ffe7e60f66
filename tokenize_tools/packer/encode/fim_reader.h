/* SPDX-License-Identifier: MIT */
/*
 * fim_reader.h - the order of the text in documents whose parts fim.h has rearranged, found by their special tokens.
 *
 * Which order the parts have does not matter: the text is what is before the suffix token, the end, and the suffix.
 */
#ifndef TOKMAP_ENCODE_FIM_READER_H
#define TOKMAP_ENCODE_FIM_READER_H

#include <stdbool.h>

#include "tokmap/run.h"

/* The tokens, as struct fim has them. */
struct fim_marks {
    bool used;   /* some documents are rearranged; else the other fields are nothing */
    bool pieces; /* so are pieces of documents, anywhere in them */
    uint64_t prefix, middle, suffix, end;
};

/* Begins as zero bytes. */
struct fim_reader {
    struct fim_marks marks;
    int state;
    uint64_t at;                   /* tokens so far */
    uint64_t place[4];             /* begins of the parts at hand, as fim_reader.c names them */
    struct tokmap_extent *extents; /* of the document's tokens, in the order of the text */
    uint64_t count, capacity;      /* of them */
    uint64_t psm, spm;             /* pieces that were rearranged, by order */
    bool wrong;                    /* the tokens are not where fim.h writes them, so nothing was rearranged */
};

/* Begins a document. */
void fim_reader_begin(struct fim_reader *reader, const struct fim_marks *marks);
/* Adds the document's next tokens, `count` of `width` bytes. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status fim_reader_add(struct fim_reader *reader, const void *tokens, uint32_t width, uint64_t count,
                                  struct tokmap_error *error);
/* Ends the document. If nothing was rearranged, psm and spm are 0, and the only extent is all of it. Statuses: OK,
 * ERROR_MEMORY. */
enum tokmap_status fim_reader_end(struct fim_reader *reader, struct tokmap_error *error);
void fim_reader_free(struct fim_reader *reader);

#endif
