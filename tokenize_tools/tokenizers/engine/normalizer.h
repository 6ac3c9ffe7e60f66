/* SPDX-License-Identifier: MIT */
/*
 * normalizer.h - changes text before it is split into pieces, as the "normalizer" of a tokenizer.json or the
 * normalizer_spec of a SentencePiece model describes: a sequence of steps.
 */
#ifndef TOKMAP_ENGINE_NORMALIZER_H
#define TOKMAP_ENGINE_NORMALIZER_H

#include "common/bytes_buffer.h"
#include "match_table.h"
#include "pretokenize/regex_match.h"
#include "unicode/charsmap.h"
#include "unicode/nfc.h"

#define NORMALIZER_STEPS_MOST 16

/* What a step does; the names in comments are the types of tokenizer.json. Fingerprints depend on these numbers. */
enum normalizer_kind {
    NORMALIZE_NFC,
    NORMALIZE_PREPEND, /* puts `content` before a text that is not empty (Prepend) */
    NORMALIZE_REPLACE, /* replaces `pattern` or the matches of `regex` by `content` (Replace) */
    NORMALIZE_NFD,
    NORMALIZE_NFKC,
    NORMALIZE_NFKD,
    NORMALIZE_LOWER,       /* CHAR_MAP_LOWER (Lowercase) */
    NORMALIZE_MARKS,       /* CHAR_MAP_MARKS (StripAccents) */
    NORMALIZE_NMT,         /* CHAR_MAP_NMT (Nmt) */
    NORMALIZE_STRIP,       /* takes off the white space at the ends (Strip) */
    NORMALIZE_BYTES,       /* replaces each byte by the character that represents it (ByteLevel) */
    NORMALIZE_CHARSMAP,    /* replaces the keys of `map` as SentencePiece does */
    NORMALIZE_PRECOMPILED, /* replaces grapheme clusters by `map` (Precompiled) */
    NORMALIZE_BERT_CLEAN,  /* CHAR_MAP_BERT_CLEAN; this one and those below are steps of BertNormalizer */
    NORMALIZE_BERT_CHINESE,
    NORMALIZE_BERT_MARKS,
};

struct normalizer_step {
    enum normalizer_kind kind;
    uint8_t *pattern; /* NORMALIZE_REPLACE: the text to replace or, with `regex`, its source; owned */
    size_t pattern_bytes;
    struct regex *regex; /* NORMALIZE_REPLACE: the pattern to replace, or NULL; owned */
    uint8_t *content;    /* the text to put before the text or in the place of matches; owned */
    size_t content_bytes;
    bool strip_left, strip_right; /* NORMALIZE_STRIP */
    struct charsmap *map;         /* NORMALIZE_CHARSMAP, NORMALIZE_PRECOMPILED; owned */
    /* NORMALIZE_CHARSMAP: texts that stay as they are: what begins with one of them is not looked at; NULL: none. Owned
     * by the caller, together with its texts; they outlive the step. */
    const struct match_table *symbols;
    /* NORMALIZE_CHARSMAP: a text of which something is taken out, and only spaces are left, becomes U+2581. To
     * SentencePiece it is not a text of spaces alone. */
    bool marks_blank;
};

/* Initialize with zeros: text stays as it is. Immutable while states use it. */
struct normalizer {
    struct normalizer_step steps[NORMALIZER_STEPS_MOST];
    uint32_t count;
};
/* Frees what the steps own and removes them. */
void normalizer_free(struct normalizer *normalizer);
/* Returns the largest factor by which a text can grow, in bytes; UINT64_MAX if it is 2^32 or more. */
uint64_t normalizer_growth(const struct normalizer *normalizer);

/*
 * Where the bytes of a changed text come from: the list of parts that differ. All other bytes are those of the old
 * text, shifted.
 *
 * Example: NFC makes "Caf" + "e" + U+0301 + "!" (7 bytes, since U+0301 has two) into "Caf" + U+00E9 + "!" (6 bytes).
 * The only edit is new [3,5) from old [3,6). A token that ends at byte 5 of the new text ends at byte 6 of the old one,
 * and so does a token that ends at byte 4, inside the edit.
 */
struct text_edit {
    uint64_t from, to;         /* of the new text; equal: the old part was taken out */
    uint64_t old_from, old_to; /* of the old text; equal: the new part was put in */
};
/* Initialize with zeros. */
struct text_edits {
    struct text_edit *edits; /* ascending, without overlaps */
    uint64_t count, capacity;
    uint64_t cursor; /* the edit that the last call of text_edits_map found */
};
void text_edits_free(struct text_edits *edits);
/* Replaces a part of the new text by the part of the old text that it was made of. A part that begins or ends inside an
 * edit gets all of the edit. An empty part elsewhere stays empty. *begin must not be smaller than in the last call
 * since text_edits_clear, which makes the calls for all tokens of a text linear. */
void text_edits_map(struct text_edits *edits, uint64_t *begin, uint64_t *end);

/* The state of one thread. */
struct normalizer_state {
    const struct normalizer *normalizer;
    struct nfc_scratch forms[NORMAL_FORMS];
    struct code_search maps[CHAR_MAPS];
    struct bytes_buffer made[2]; /* a step reads one buffer and writes the other */
    struct regex_state *regexes[NORMALIZER_STEPS_MOST];
    uint64_t room;  /* set by the caller: bytes that all calls together may still make; UINT64_MAX, the default: any
                       number */
    bool continues; /* set by the caller: the text continues another one, so NORMALIZE_PREPEND puts nothing before it */
    struct text_edits *trace; /* set by the caller: NORMALIZER_STEPS_MOST lists, into which normalizer_run writes what
                                 each step changed; NULL: it does not, which is the default */
};
/* Prepares a state for a normalizer, which must outlive it. The caller calls normalizer_state_free in the end, also
 * after a failure. Statuses: OK, ERROR_MEMORY. */
enum tokmap_status normalizer_state_init(struct normalizer_state *state, const struct normalizer *normalizer,
                                         struct tokmap_error *error);
void normalizer_state_free(struct normalizer_state *state);
/* To be called between documents: frees memory that an unusually long document needed. */
void normalizer_trim(struct normalizer_state *state);

/* Normalizes `count` bytes of valid UTF-8. *made is a part of the text, mostly all of it, if no step changes it;
 * otherwise it is valid until the next call with this state. Statuses: OK, ERROR_LIMIT (a pattern needs too many steps
 * or too much memory for this text, or the steps would make more bytes than state->room), ERROR_MEMORY. */
enum tokmap_status normalizer_run(struct normalizer_state *state, const uint8_t *text, size_t count,
                                  const uint8_t **made, size_t *made_count, struct tokmap_error *error);

#endif
