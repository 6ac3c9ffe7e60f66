/* SPDX-License-Identifier: MIT */
/*
 * piece_rules.h - tokenizers of transformers that give the pieces of a SentencePiece model other ids than the model
 * does. The text is divided by the model; only the numbers of what comes out are others.
 *
 * A rule puts special tokens before and after the pieces (XLM-R, CamemBERT, MBart, XGLM, Pegasus), or takes all ids
 * from the vocab.json beside the model (Marian, M2M100). Pieces are renumbered when the model is read, so encoding
 * costs nothing.
 */
#ifndef TOKMAP_VOCABULARY_PIECE_RULES_H
#define TOKMAP_VOCABULARY_PIECE_RULES_H

#include "folder_config.h"

struct piece_rule;

/* Finds the rule for a folder's SentencePiece model, by the class or the type of model that the files beside it name.
 * *rule is NULL if the ids are those of the model. path: of the model. ids_beside: a vocab.json is there. Statuses: OK,
 * ERROR_UNSUPPORTED (tokmap does not know the rule, or something that it needs is missing). */
enum tokmap_status piece_rule_find(const struct piece_rule **rule, const struct folder_config *config, const char *path,
                                   bool ids_beside, struct tokmap_error *error);
/* Returns whether the ids are those of the vocab.json beside the model. */
bool piece_rule_reads_ids(const struct piece_rule *rule);

/* Returns whether pieces keep their ids, so that the rule only adds special tokens, some of which have new ids. */
bool piece_rule_keeps_ids(const struct piece_rule *rule);

/* Returns whether a special token takes the spaces before it, and sets *right if it takes those after it. */
bool piece_rule_strips(const struct piece_rule *rule, const uint8_t *text, uint32_t bytes, bool *right);

/* The pieces of a model by id. The arrays belong to the struct's user. */
struct piece_set {
    uint8_t *bytes;
    uint32_t *offsets; /* one more than pieces */
    float *scores;
    uint8_t *kinds; /* enum sp_kind; after a rule, special tokens, the unknown one too, are SP_CONTROL, and texts that
                       nothing becomes SP_UNUSED */
    uint32_t count, unk;
    uint32_t known;     /* ids of the trained model are below it; pieces from it on become the unknown token */
    bool unknown_named; /* the ids of unknown characters are looked up by the text of all that are in a row */
};

/* Makes *numbered of a model's pieces: new arrays, which the caller frees after success and after failure. mergeable:
 * the model is BPE. path: of the model. Statuses: OK, ERROR_UNSUPPORTED (the pieces do not fit the rule), ERROR_LIMIT,
 * ERROR_MEMORY; for vocab.json also those of reading it. */
enum tokmap_status piece_rule_apply(const struct piece_rule *rule, struct piece_set *numbered,
                                    const struct piece_set *pieces, bool mergeable, const char *path,
                                    struct tokmap_error *error);

#endif
