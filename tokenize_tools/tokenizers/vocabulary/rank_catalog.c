/* SPDX-License-Identifier: MIT */
/*
 * rank_catalog.c - the fingerprints are those of the files exactly as they were published.
 *
 * Kimi's models share one rank file, and each names its special tokens in its own tokenizer_config.json. Without that
 * file they have the names that the code of the models gives to tokens without one.
 */
#include "rank_catalog.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "pretokenize/split_rules.h"

/* clang-format off */
#define SPECIAL(text, id) {text, sizeof(text) - 1, id}

static const struct rank_catalog_token gpt2_specials[] = {SPECIAL("<|endoftext|>", 50256)};
static const struct rank_catalog_token cl100k_specials[] = {
    SPECIAL("<|endoftext|>", 100257),  SPECIAL("<|fim_prefix|>", 100258),  SPECIAL("<|fim_middle|>", 100259),
    SPECIAL("<|fim_suffix|>", 100260), SPECIAL("<|endofprompt|>", 100276),
};
static const struct rank_catalog_token o200k_specials[] = {
    SPECIAL("<|endoftext|>", 199999),
    SPECIAL("<|endofprompt|>", 200018),
};
static const struct rank_catalog_token llama3_specials[] = {
    SPECIAL("<|begin_of_text|>", 128000),
    SPECIAL("<|end_of_text|>", 128001),
    SPECIAL("<|reserved_special_token_0|>", 128002),
    SPECIAL("<|reserved_special_token_1|>", 128003),
    SPECIAL("<|finetune_right_pad_id|>", 128004),
    SPECIAL("<|step_id|>", 128005),
    SPECIAL("<|start_header_id|>", 128006),
    SPECIAL("<|end_header_id|>", 128007),
    SPECIAL("<|eom_id|>", 128008),
    SPECIAL("<|eot_id|>", 128009),
    SPECIAL("<|python_tag|>", 128010),
    SPECIAL("<|image|>", 128011),
};
static const struct rank_catalog_token qwen_specials[] = {
    SPECIAL("<|endoftext|>", 151643), SPECIAL("<|im_start|>", 151644), SPECIAL("<|im_end|>", 151645),
};
static const struct rank_catalog_token kimi_specials[] = {SPECIAL("[BOS]", 163584), SPECIAL("[EOS]", 163585)};

#define LISTED(specials) specials, sizeof specials / sizeof specials[0]
/* clang-format on */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define KIMI                                                                                                           \
    "[\\p{Han}]+|"                                                                                                     \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"                                         \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+" CONTRACTIONS "|"                                                     \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"                                         \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*" CONTRACTIONS "|"                                                     \
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    uint8_t fingerprint[16];
    struct rank_catalog_entry entry;
} catalog[] = {
    {{0xaa, 0x5e, 0xf6, 0x9a, 0x71, 0x6d, 0x8a, 0x56, 0x3c, 0xb2, 0xfb, 0xe9, 0x59, 0x39, 0xbd, 0x2d},
     {"r50k_base", "r50k_base", NULL, LISTED(gpt2_specials), .eod = "<|endoftext|>"}},
    {{0x1b, 0xfe, 0x2e, 0xad, 0xd4, 0x9e, 0x96, 0x88, 0xf2, 0xd3, 0xfa, 0x62, 0x56, 0x5e, 0x6e, 0x17},
     {"p50k_base", "p50k_base", NULL, LISTED(gpt2_specials), .eod = "<|endoftext|>"}},
    {{0x7c, 0xdb, 0x78, 0x1b, 0xb5, 0xd5, 0x96, 0x57, 0xaa, 0x5d, 0x7b, 0xf3, 0x89, 0x00, 0x64, 0x1a},
     {"cl100k_base", "cl100k_base", NULL, LISTED(cl100k_specials), .eod = "<|endoftext|>"}},
    {{0xde, 0xe5, 0xd4, 0xce, 0xd0, 0x9a, 0x2d, 0xb6, 0x72, 0xa0, 0x95, 0xe8, 0x2c, 0xa1, 0x09, 0xd6},
     {"o200k_base", "o200k_base", NULL, LISTED(o200k_specials), .eod = "<|endoftext|>"}},
    {{0x22, 0xe6, 0xee, 0x98, 0x36, 0x4f, 0x2a, 0x1f, 0xe7, 0x33, 0x97, 0x03, 0xbb, 0x9e, 0x9d, 0x7b},
     {"llama3",
      "llama3",
      NULL,
      LISTED(llama3_specials),
      {"<|reserved_special_token_", "|>", 2, 128012, 244},
      "<|end_of_text|>",
      "<|begin_of_text|>",
      .cut = "llama3"}},
    {{0xd6, 0x81, 0x62, 0xfb, 0xd6, 0xd3, 0xac, 0xb3, 0x9f, 0x28, 0x8e, 0xfc, 0xb5, 0x36, 0x8a, 0xab},
     {"qwen1",
      "qwen2",
      NULL,
      LISTED(qwen_specials),
      {"<|extra_", "|>", 0, 151646, 205},
      "<|endoftext|>",
      .note = "text is encoded as it is, as tiktoken does; the code of Qwen's first models converts it to Unicode's "
              "form NFC before"}},
    {{0x19, 0x56, 0xca, 0xab, 0xfb, 0x94, 0x4a, 0xa3, 0xbd, 0x05, 0xf8, 0x8d, 0x5a, 0x28, 0x38, 0xb8},
     {"kimi",
      NULL,
      KIMI,
      LISTED(kimi_specials),
      {"<|reserved_token_", "|>", 163586, 163586, 254},
      "[EOS]",
      "[BOS]",
      "kimi",
      NULL}},
};

size_t rank_catalog_name(const struct rank_catalog_series *series, uint32_t i, char *into, size_t room)
{
    const int bytes = snprintf(into, room, "%s%" PRIu32 "%s", series->front, series->number + i, series->back);
    return bytes < 0 ? 0 : (size_t)bytes;
}

const struct rank_catalog_entry *rank_catalog_find(const uint8_t fingerprint[16])
{
    for (size_t i = 0; i < sizeof catalog / sizeof catalog[0]; i++)
        if (!memcmp(catalog[i].fingerprint, fingerprint, 16))
            return &catalog[i].entry;
    return NULL;
}

/* ---- patterns in code ---- */

/* A string of a Python file, as it is written there, without its quotes. */
struct literal {
    const char *at;
    size_t bytes;
    bool raw; /* r"..." */
};

/* Takes the string that begins at the quote *at, and moves *at behind it. */
static struct literal literal_take(const char **at, const char *end, bool raw)
{
    const char quote = **at;
    const size_t quotes = end - *at >= 3 && (*at)[1] == quote && (*at)[2] == quote ? 3 : 1;
    const char *from = *at + quotes, *to = from;
    for (; to < end; to++) {
        if (*to == '\\' && to + 1 < end)
            to++;
        else if (*to == quote && (quotes == 1 || (end - to >= 3 && to[1] == quote && to[2] == quote)))
            break;
        else if (*to == '\n' && quotes == 1)
            break;
    }
    *at = end - to > (ptrdiff_t)quotes ? to + quotes : end;
    return (struct literal){from, (size_t)(to - from), raw};
}

/* Lists the strings of a Python file. Returns their number; *list is the caller's to free. */
static size_t literals_list(const char *code, size_t bytes, struct literal **list)
{
    const char *const end = code + bytes;
    size_t count = 0;
    uint64_t room = 0;
    *list = NULL;
    for (const char *at = code; at < end;) {
        if (*at == '#') {
            at = memchr(at, '\n', (size_t)(end - at));
            at = at ? at + 1 : end;
        } else if (*at != '"' && *at != '\'') {
            at++;
        } else {
            const bool raw = at > code && (at[-1] == 'r' || at[-1] == 'R');
            if (!list_room(list, count, &room, sizeof **list))
                return 0;
            (*list)[count++] = literal_take(&at, end, raw);
        }
    }
    return count;
}

/* Returns whether a pattern continues with what a string means, and moves *at behind it. */
static bool literal_is(const struct literal *literal, const char *pattern, size_t *at)
{
    for (size_t i = 0; i < literal->bytes; i++) {
        if (!literal->raw && literal->at[i] == '\\' && i + 1 < literal->bytes) {
            if (strchr("\\'\"", literal->at[i + 1]))
                i++; /* a letter after a backslash, such as p, leaves the backslash */
            else if (strchr("abfnrtvxuUN01234567\n", literal->at[i + 1]))
                return false;
        }
        if (pattern[*at] != literal->at[i] || !literal->at[i])
            return false;
        ++*at;
    }
    return literal->bytes > 0;
}

/* Returns whether the strings, from the first one on, make a pattern. bars: with a | between them. */
static bool literals_are(const struct literal *literals, size_t count, const char *pattern, bool bars)
{
    size_t at = 0;
    for (size_t i = 0; i < count && literal_is(&literals[i], pattern, &at); i++) {
        if (!pattern[at])
            return true;
        if (bars && pattern[at++] != '|')
            return false;
    }
    return false;
}

static bool literals_have(const struct literal *literals, size_t count, const char *pattern)
{
    for (size_t i = 0; i < count; i++)
        if (literals_are(literals + i, count - i, pattern, false) ||
            literals_are(literals + i, count - i, pattern, true))
            return true;
    return false;
}

const char *rank_catalog_pattern_in(const char *code, size_t bytes)
{
    struct literal *literals;
    const size_t count = literals_list(code, bytes, &literals);
    const char *found = literals_have(literals, count, KIMI) ? KIMI : NULL;
    bool several = false;
    for (const char *const *name = split_rules_names(); *name; name++) {
        const char *pattern = split_rules_regex(split_rules_named(*name));
        if (!pattern || !literals_have(literals, count, pattern))
            continue;
        several |= found && strcmp(found, pattern);
        found = pattern;
    }
    free(literals);
    return several ? NULL : found;
}
