/* SPDX-License-Identifier: MIT */
/*
 * cut_tokenizer.h - a tokenizer that cuts long texts as the code of a model does (text_cuts.h), and encodes each part
 * with another tokenizer.
 */
#ifndef TOKMAP_ENGINE_CUT_TOKENIZER_H
#define TOKMAP_ENGINE_CUT_TOKENIZER_H

#include "tokenizer.h"

/* Makes *tokenizer, which is open, a tokenizer that cuts texts; the new one owns the old one. name: of the cuts. On
 * failure *tokenizer stays as it is. Statuses: OK, ERROR_ARGUMENT (there are no cuts of this name), ERROR_MEMORY. */
enum tokmap_status cut_tokenizer_make(struct tokenizer **tokenizer, const char *name, struct tokmap_error *error);

#endif
