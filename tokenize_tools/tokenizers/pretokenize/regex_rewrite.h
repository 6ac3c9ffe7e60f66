/* SPDX-License-Identifier: MIT */
/*
 * regex_rewrite.h - rewrites a pattern from a tokenizer file so that PCRE2 matches what the pattern matches in its own
 * engine.
 *
 * The engines agree on groups, alternatives, and quantifiers. They differ in Unicode versions, \w, ^ and $, case
 * folding, and possessive intervals. The rewritten pattern therefore contains every class and character as an explicit
 * set of code points. A construct without an exact equivalent is refused, with the reason.
 */
#ifndef TOKMAP_PRETOKENIZE_REGEX_REWRITE_H
#define TOKMAP_PRETOKENIZE_REGEX_REWRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes_buffer.h"
#include "regex_kinds.h"

/* The engine whose meaning the pattern has. */
enum regex_dialect {
    REGEX_ONIGURUMA, /* Hugging Face tokenizers */
    REGEX_RUST       /* tiktoken */
};

/* Reasons why a pattern is refused. */
struct regex_fault {
    size_t offset;      /* byte in the pattern */
    const char *reason; /* a static sentence; NULL if the function failed because it ran out of memory */
};

/* Appends the rewritten pattern to `into`. In place of sets it contains markers, which regex_kinds_make replaces; the
 * sets themselves are added to `sets`. The pattern has `bytes` bytes of valid UTF-8 and needs no zero at its end.
 * Returns false and fills *fault if the pattern is refused or memory is lacking. `into` and `sets` then hold a part of
 * the result; the caller frees them in any case. */
bool regex_rewrite(struct bytes_buffer *into, struct regex_sets *sets, const char *pattern, size_t bytes,
                   enum regex_dialect dialect, struct regex_fault *fault);

#endif
