/* SPDX-License-Identifier: MIT */
/*
 * class_steps.h - the normalizer and the pre-tokenizer that classes of transformers take in place of those of a
 * tokenizer.json, as members of its JSON.
 *
 * A setting of tokenizer_config.json is written @NAME@DEFAULT@FALSE@TRUE@: the texts that count where it is absent,
 * false, and true. "?" stands for what the table does not know. @charsmap@NONE@BEFORE@AFTER@ is NONE for a file without
 * a Precompiled normalizer, else BEFORE, the charsmap of the file, and AFTER. Example: with "add_prefix_space": true,
 * "add_prefix_space":@add_prefix_space@false@false@true@ becomes "add_prefix_space":true.
 */
#ifndef TOKMAP_VOCABULARY_CLASS_STEPS_H
#define TOKMAP_VOCABULARY_CLASS_STEPS_H

#include "vocabulary/hf/hf_model.h"

#define CLASS_STEPS 28

struct class_steps {
    enum hf_model_kind kind; /* of the model, which a file must have */
    const char *classes;     /* names, which blanks separate; without the ending "Fast" */
    const char *types;       /* values of model_type that mean these classes where no class is named */
    const char *steps;
};

extern const struct class_steps class_steps[CLASS_STEPS];
extern const char class_steps_none[];   /* types for which the file counts, whatever class is named */
extern const char class_steps_always[]; /* types whose class counts, whatever class is named */

#endif
