/* SPDX-License-Identifier: MIT */
/*
 * split_rules.h - the rules by which a tokenizer splits text into pieces, as the parts of its pattern.
 *
 * The patterns of the known tokenizers have one shape, with parts that differ:
 *
 *     contraction | prefix? letters suffix? | ' '? numbers | ' '? symbols tail | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * The scanners implement the parts, so they also serve a new pattern that combines known parts.
 */
#ifndef TOKMAP_PRETOKENIZE_SPLIT_RULES_H
#define TOKMAP_PRETOKENIZE_SPLIT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum split_letters {
    LETTERS_PLAIN, /* \p{L}+ */
    LETTERS_MARKS, /* [\p{L}\p{M}]+; marks are then not symbols */
    LETTERS_CASED  /* U*L+ or else U+L*, where U = Lu Lt Lm Lo M and L = Ll Lm Lo M */
};

enum split_contraction {
    CONTRACTION_NONE,
    CONTRACTION_EXACT,  /* 's|'t|'re|'ve|'m|'ll|'d, as the first alternative */
    CONTRACTION_FOLDED, /* the same in upper or lower case, and with U+017F as s */
    CONTRACTION_SUFFIX  /* like CONTRACTION_FOLDED, but as an optional end of letters */
};

enum split_prefix {
    PREFIX_SPACE, /* ' '? before letters and before numbers */
    PREFIX_ANY    /* [^\r\n\p{L}\p{N}]? before letters only */
};

/* Characters that may follow symbols. */
enum split_tail {
    TAIL_NONE,
    TAIL_NEWLINES,      /* [\r\n]* */
    TAIL_NEWLINES_SLASH /* [\r\n/]* */
};

struct split_rules {
    enum split_letters letters;
    enum split_contraction contraction;
    enum split_prefix prefix;
    enum split_tail tail;
    uint8_t numbers; /* the most characters of a piece of numbers: 1, 2, 3, or 0 for no limit */
    bool newlines;   /* the pattern contains \s*[\r\n]+ */
    /* DeepSeek's sequence of three expressions (split_deepseek_steps): first numbers are isolated, then runs of
     * CLASS_CJK. Inside of these runs and between them, the third expression matches letters with marks, [ASCII
     * punctuation][A-Za-z]+, a prefix that is not a newline, letter, punctuation, or symbol, and '
     * '?[\p{P}\p{S}]+[\r\n]*; (?!\S) is satisfied at the ends of the part. Text that no alternative matches is a piece
     * of its own. Requires LETTERS_MARKS, CONTRACTION_NONE, PREFIX_ANY, TAIL_NEWLINES, and `newlines`. */
    bool deepseek;
};

/* All returned pointers are to static, immutable data. */

/* Returns the rules of the pattern with this name ("gpt2", "cl100k_base", ...), or NULL if the name is unknown. */
const struct split_rules *split_rules_named(const char *name);
/* Returns the rules of a regular expression that is written exactly as in the file of a known tokenizer, or NULL. */
const struct split_rules *split_rules_of_regex(const void *regex, size_t bytes);
/* Returns a regular expression for rules that one of the functions above returned, or NULL if they need several
 * (DeepSeek). */
const char *split_rules_regex(const struct split_rules *rules);
/* DeepSeek's regular expressions. Each is applied to the pieces of the previous one. */
#define SPLIT_STEPS 3
extern const char *const split_deepseek_steps[SPLIT_STEPS];
/* Returns all names; NULL ends the list. The text has the same. */
#define SPLIT_RULES_NAMES                                                                                              \
    "gpt2, r50k_base, p50k_base, p50k_edit, cl100k_base, llama3, qwen2, qwen3_5, o200k_base, o200k_harmony, llama4, "  \
    "tekken, nanochat, deepseek_v3"
const char *const *split_rules_names(void);

#endif
