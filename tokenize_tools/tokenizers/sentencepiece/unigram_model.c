/* SPDX-License-Identifier: MIT */
/* unigram_model.c - freeing; see unigram_model.h. */
#include "unigram_model.h"

#include <stdlib.h>

void unigram_model_free(struct unigram_model *model)
{
    if (!model)
        return;
    byte_trie_free(&model->trie);
    byte_trie_free(&model->names);
    free(model->lengths);
    free(model->floats);
    free(model->doubles);
    sp_model_free(&model->sp); /* and the struct itself */
}
