/*
 * split_rules.h - how a tokenizer cuts text into pieces, said by the parts of its pattern.
 *
 * The patterns of the known tokenizers are one shape, with parts that differ:
 *
 *     contraction | prefix? letters suffix? | ' '? numbers | ' '? symbols tail | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * so a family that has not been seen, but whose parts have, is served by the same scanners.
 */
#ifndef TOKMAP_PRETOKENIZE_SPLIT_RULES_H
#define TOKMAP_PRETOKENIZE_SPLIT_RULES_H

#include <stdbool.h>
#include <stdint.h>

enum split_letters {
    LETTERS_PLAIN, /* \p{L}+ */
    LETTERS_MARKS, /* [\p{L}\p{M}]+, marks then being no symbols */
    LETTERS_CASED  /* U*L+ or else U+L*, with U = Lu Lt Lm Lo M and L = Ll Lm Lo M */
};

enum split_contraction {
    CONTRACTION_NONE,
    CONTRACTION_EXACT,  /* 's|'t|'re|'ve|'m|'ll|'d, before all else */
    CONTRACTION_FOLDED, /* the same in either case, and with U+017F as s */
    CONTRACTION_SUFFIX  /* the same, as an end of letters */
};

enum split_prefix {
    PREFIX_SPACE, /* ' '? before letters and before numbers */
    PREFIX_ANY    /* [^\r\n\p{L}\p{N}]? before letters only */
};

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
    uint8_t numbers;   /* most characters of a number piece: 1, 2, 3, or 0 for no limit */
    bool newlines;     /* \s*[\r\n]+ is there */
    /* DeepSeek's sequence of splits: first numbers, then runs of CLASS_CJK, each set apart, and in these and between
     * them (where a look ahead ends at the cut) letters with marks, [ASCII punctuation][A-Za-z]+, a prefix that is
     * neither newline, letter, punctuation nor symbol, ' '?[\p{P}\p{S}]+[\r\n]*, and what nothing covers as it is. It
     * needs LETTERS_MARKS, CONTRACTION_NONE, PREFIX_ANY, TAIL_NEWLINES, newlines. */
    bool deepseek;
};

/* The rules of a pattern by its name ("gpt2", "cl100k_base" ...), NULL if the name is not known. */
const struct split_rules *split_rules_named(const char *name);
/* The rules of a regular expression, written as its tokenizer's file has it; NULL if it is none of those known. */
const struct split_rules *split_rules_of_regex(const char *regex);
/* The regular expression that such rules are known by; NULL for those that take more than one (DeepSeek's). */
const char *split_rules_regex(const struct split_rules *rules);
/* DeepSeek's regular expressions, one applied to what the one before left. */
#define SPLIT_STEPS 3
extern const char *const split_deepseek_steps[SPLIT_STEPS];
/* All names, in a list that ends with NULL. */
const char *const *split_rules_names(void);

#endif
