/* SPDX-License-Identifier: MIT */
/* split_rules.c - the known patterns, by name and by regular expression. */
#include "split_rules.h"

#include <string.h>

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define GPT2 CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* Newer releases of tiktoken write the same pattern with possessive quantifiers. They give the same ids. */
#define GPT2_POSSESSIVE "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s"
#define BEFORE_NUMBERS "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define AFTER_NUMBERS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CL100K BEFORE_NUMBERS "\\p{N}{1,3}" AFTER_NUMBERS
#define TWO_DIGITS BEFORE_NUMBERS "\\p{N}{1,2}" AFTER_NUMBERS
#define QWEN2 BEFORE_NUMBERS "\\p{N}" AFTER_NUMBERS
#define QWEN3_5                                                                                                        \
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"         \
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED_FIRST "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
#define CASED_SECOND "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
#define AFTER_CASED "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define O200K CASED_FIRST "(?i:" CONTRACTIONS ")?|" CASED_SECOND "(?i:" CONTRACTIONS ")?|\\p{N}{1,3}" AFTER_CASED
#define TEKKEN CASED_FIRST "|" CASED_SECOND "|\\p{N}" AFTER_CASED

#define DEEPSEEK_REST                                                                                                  \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "                \
    "?[\\p{P}\\p{S}]+"                                                                                                 \
    "[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
const char *const split_deepseek_steps[SPLIT_STEPS] = {
    "\\p{N}{1,3}", "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+", DEEPSEEK_REST};

static const struct split_rules gpt2 = {LETTERS_PLAIN, CONTRACTION_EXACT, PREFIX_SPACE, TAIL_NONE, 0, false, false};
static const struct split_rules cl100k = {LETTERS_PLAIN, CONTRACTION_FOLDED, PREFIX_ANY, TAIL_NEWLINES, 3, true, false};
static const struct split_rules two_digits = {LETTERS_PLAIN, CONTRACTION_FOLDED, PREFIX_ANY, TAIL_NEWLINES, 2, true,
                                              false};
static const struct split_rules qwen2 = {LETTERS_PLAIN, CONTRACTION_FOLDED, PREFIX_ANY, TAIL_NEWLINES, 1, true, false};
static const struct split_rules qwen3_5 = {LETTERS_MARKS, CONTRACTION_FOLDED, PREFIX_ANY, TAIL_NEWLINES, 1, true,
                                           false};
static const struct split_rules o200k = {LETTERS_CASED, CONTRACTION_SUFFIX, PREFIX_ANY, TAIL_NEWLINES_SLASH, 3, true,
                                         false};
static const struct split_rules tekken = {LETTERS_CASED, CONTRACTION_NONE, PREFIX_ANY, TAIL_NEWLINES_SLASH, 1, true,
                                          false};
static const struct split_rules deepseek_v3 = {LETTERS_MARKS, CONTRACTION_NONE, PREFIX_ANY, TAIL_NEWLINES, 3, true,
                                               true};

static const struct {
    const char *name;
    const struct split_rules *rules;
} named[] = {
    {"gpt2", &gpt2},           {"r50k_base", &gpt2},          {"p50k_base", &gpt2}, {"p50k_edit", &gpt2},
    {"cl100k_base", &cl100k},  {"llama3", &cl100k},           {"qwen2", &qwen2},    {"qwen3_5", &qwen3_5},
    {"o200k_base", &o200k},    {"o200k_harmony", &o200k},     {"llama4", &o200k},   {"tekken", &tekken},
    {"nanochat", &two_digits}, {"deepseek_v3", &deepseek_v3},
};
#define NAMED (sizeof named / sizeof named[0])

static const struct {
    const char *regex;
    const struct split_rules *rules;
} written[] = {
    {GPT2, &gpt2},   {GPT2_POSSESSIVE, &gpt2}, {CL100K, &cl100k}, {TWO_DIGITS, &two_digits},
    {QWEN2, &qwen2}, {QWEN3_5, &qwen3_5},      {O200K, &o200k},   {TEKKEN, &tekken},
};

const struct split_rules *split_rules_named(const char *name)
{
    for (size_t i = 0; i < NAMED; i++)
        if (!strcmp(name, named[i].name))
            return named[i].rules;
    return NULL;
}

const struct split_rules *split_rules_of_regex(const void *regex, size_t bytes)
{
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        if (bytes == strlen(written[i].regex) && !memcmp(regex, written[i].regex, bytes))
            return written[i].rules;
    return NULL;
}

const char *split_rules_regex(const struct split_rules *rules)
{
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        if (written[i].rules == rules)
            return written[i].regex;
    return NULL;
}

const char *const *split_rules_names(void)
{
    static const char *const names[] = {"gpt2",   "r50k_base", "p50k_base", "p50k_edit",   "cl100k_base",
                                        "llama3", "qwen2",     "qwen3_5",   "o200k_base",  "o200k_harmony",
                                        "llama4", "tekken",    "nanochat",  "deepseek_v3", NULL};
    return names;
}
