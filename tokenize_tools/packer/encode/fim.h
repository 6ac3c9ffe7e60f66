/* SPDX-License-Identifier: MIT */
/*
 * fim.h - fill in the middle: which documents are rearranged before they are encoded, and how (Bavarian et al. 2022,
 * "Efficient Training of Language Models to Fill in the Middle").
 *
 * A text is cut at two places into prefix, middle, and suffix, and written in one of two orders with special tokens
 * before the parts, so that a model learns to write a middle between what it has seen. Below, capitals are the tokens
 * and small letters the parts:
 *   PpSsMm  prefix-suffix-middle (PSM)
 *   PSsMpm  suffix-prefix-middle (SPM), the second variant of the paper's appendix, as StarCoder's and Megatron's
 *           code writes it: no token is between prefix and middle
 *   SsPpm   the same of Codestral, whose own code writes it so
 * Each part is encoded by itself, as at inference, where the middle is not known. A prefix that begins a document is
 * encoded as a text is. The others continue a text, so a tokenizer that puts a space before a text puts none there.
 * Metaspace with prepend_scheme "always" is different: it also puts one before a part that begins inside a word, as the
 * reference does after an added token.
 *
 * Hashes decide, so threads, tasks, and kills change nothing, and equal texts become equal tokens. With v =
 * XXH3-64(text, seed) and u(k, j) = XXH3-64(k and j as 8 bytes each, little-endian, seed v), piece k of a document
 *   is rearranged         if u(k, 0) / 2^64 < rate
 *   becomes SPM, not PSM  if u(k, 1) / 2^64 < spm
 *   is cut                before the characters floor(u(k, 2) (n + 1) / 2^64) and floor(u(k, 3) (n + 1) / 2^64)
 * where n is the number of its characters (Unicode code points). So both cuts are uniform over the n + 1 places between
 * and beside the characters, and each part may be empty. A piece is the document (k = 0), or `unit` characters of it,
 * the last one fewer. An empty document has no piece.
 */
#ifndef TOKMAP_ENCODE_FIM_H
#define TOKMAP_ENCODE_FIM_H

#include <stdbool.h>

#include "engine/tokenizer.h"
#include "split.h"
#include "tokmap/run.h"

struct fim {
    char rate_text[SHARE_TEXT_MOST + 1], spm_text[SHARE_TEXT_MOST + 1]; /* the shares as they were given */
    uint64_t rate, spm;                                                 /* of pieces; of those (split.h) */
    uint64_t seed;
    uint64_t unit; /* characters of a piece; 0: a piece is a document */
    uint64_t prefix_id, middle_id, suffix_id;
    /* The token after a piece that was rearranged, or TOKMAP_NO_ID. Unless end_always, it is the EOD, and the last
     * piece of a document has only that of the document. */
    uint64_t end_id;
    bool end_always;
    const char *spm_form; /* the SPM order, as above; static */
};

/* What was done. */
struct fim_counts {
    uint64_t psm, spm; /* pieces that became one or the other */
    uint64_t left;     /* documents that would have been rearranged, but whose text has one of the tokens already */
    uint64_t tokens;   /* special tokens that were written */
};
void fim_counts_add(struct fim_counts *sum, const struct fim_counts *more);

/* Reads "0.5" or "0.5,spm=0.5"; without spm it is 0.5. Returns NULL, or what is wrong. */
const char *fim_parse(const char *text, struct fim *fim);

/* Sets the tokens to those that the vocabulary has under a known name (fim.c lists them). Returns false if it has
 * none. */
bool fim_tokens_find(struct fim *fim, const struct tokenizer *tokenizer);

/* One stretch of a document after the other, in the order of the text. */
struct fim_walk {
    const struct fim *fim;
    const char *text;
    uint64_t bytes, at;
    uint64_t hash, piece; /* v, and the number of the piece that begins at `at` */
};
struct fim_stretch {
    const char *form;  /* one of the orders above, or "w": the whole stretch as it is */
    uint64_t place[4]; /* bytes of the text: where the stretch begins, its two cuts, its end */
};
void fim_begin(struct fim_walk *walk, const struct fim *fim, const char *text, uint64_t bytes);
/* Returns false after the last stretch. Pieces that are not rearranged are one stretch with their neighbors, so that no
 * token is cut for nothing. */
bool fim_next(struct fim_walk *walk, struct fim_stretch *stretch);

/* The reader finds the order of the text in documents whose parts were rearranged, by their special tokens. Which order
 * the parts have does not matter: the text is what is before the suffix token, the end, and the suffix. */

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
    uint64_t place[4];             /* begins of the parts at hand, as fim.c names them */
    struct tokmap_extent *extents; /* of the document's tokens, in the order of the text */
    uint64_t count, capacity;      /* of them */
    uint64_t psm, spm;             /* pieces that were rearranged, by order */
    bool wrong;                    /* the tokens are not where fim_next() writes them, so nothing was rearranged */
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
