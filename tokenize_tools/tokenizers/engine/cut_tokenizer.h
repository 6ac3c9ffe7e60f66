/* SPDX-License-Identifier: MIT */
/*
 * cut_tokenizer.h - a tokenizer that cuts long texts as the code of some models does, and encodes each part with
 * another tokenizer.
 *
 * The code of Llama 3 and of Kimi, in Python, first cuts a text every 400,000 characters, and then each part where a
 * run of white space, or of other characters, has more than 25,000: between the last of them and the next one. Each
 * part is encoded as a text of its own. White space is what Python's str.isspace() says, which includes U+001C to
 * U+001F.
 */
#ifndef TOKMAP_ENGINE_CUT_TOKENIZER_H
#define TOKMAP_ENGINE_CUT_TOKENIZER_H

#include "tokenizer.h"

struct text_cuts {
    const char *name;
    uint32_t characters; /* of a block, the first cut */
    uint32_t run;        /* the most characters of a run */
};

/* Returns the cuts with this name, or NULL. They are static. */
const struct text_cuts *text_cuts_named(const char *name);
/* Returns all names, with spaces between them. */
const char *text_cuts_names(void);

/* Makes *tokenizer, which is open, a tokenizer that cuts texts; the new one owns the old one. name: of the cuts. On
 * failure *tokenizer stays as it is. Statuses: OK, ERROR_ARGUMENT (there are no cuts of this name), ERROR_MEMORY. */
enum tokmap_status cut_tokenizer_make(struct tokenizer **tokenizer, const char *name, struct tokmap_error *error);

#endif
