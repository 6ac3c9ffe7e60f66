/* SPDX-License-Identifier: MIT */
/* mix_parts.c - see mix_parts.h. */
#include "mix_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/decimal.h"
#include "text/path.h"

#define SCALE 1000000u /* 10^MIX_DECIMALS */
#define HUNDRED_PERCENT ((uint64_t)100 * SCALE)
#define TOKENS_MOST (((uint64_t)1 << 63) - 1)
#define FORMS "rest, 20%, epochs=3, or tokens=300B"

static bool wrong(struct mix_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(struct mix_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool memory_lacks(struct mix_error *error)
{
    error->memory = true;
    return wrong(error, "out of memory; free memory and run the command again");
}

/* ---- one argument ---- */

static bool name_is_good(const char *name, size_t length)
{
    if (length == 0 || length > MIX_NAME_MOST)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char c = name[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        const bool other = decimal_is_digit(c) || c == '-' || c == '.';
        if (!letter && !(other && i > 0))
            return false;
    }
    return true;
}

static bool parse_scaled(const char *text, size_t length, uint64_t *amount)
{
    uint32_t decimals;
    if (!decimal_parse_point(text, length, MIX_DECIMALS, amount, &decimals) || *amount == 0)
        return false;
    for (; decimals < MIX_DECIMALS; decimals++)
        if (__builtin_mul_overflow(*amount, 10, amount))
            return false;
    return true;
}

/* Reads how much of a source is wanted. */
static bool parse_what(struct mix_part *part, const char *text)
{
    const size_t length = strlen(text);
    if (strcmp(text, "rest") == 0) {
        part->kind = MIX_REST;
        return true;
    }
    if (strncmp(text, "epochs=", 7) == 0) {
        part->kind = MIX_EPOCHS;
        return parse_scaled(text + 7, length - 7, &part->amount);
    }
    if (strncmp(text, "tokens=", 7) == 0) {
        part->kind = MIX_TOKENS;
        return decimal_parse_tokens(text + 7, &part->amount) && part->amount > 0 && part->amount <= TOKENS_MOST;
    }
    part->kind = MIX_PERCENT;
    return length > 1 && text[length - 1] == '%' && parse_scaled(text, length - 1, &part->amount) &&
           part->amount <= HUNDRED_PERCENT;
}

/* Writes the percentage that a number without a percent sign means: 80 of web:80 is 80%, and 0.5 of web:0.5 is half,
 * 50%. Returns false for any other text. */
static bool lacks_percent(const char *text, char percent[32])
{
    uint64_t amount;
    if (!*text || !parse_scaled(text, strlen(text), &amount) || amount > HUNDRED_PERCENT)
        return false;
    if (amount < SCALE)
        (void)snprintf(percent, 32, "%.10g%%", 100.0 * (double)amount / SCALE);
    else
        (void)snprintf(percent, 32, "%.20s%%", text);
    return true;
}

/* Names a source after its dataset, without folders, a slash at its end, and a part. */
static bool name_of_data(struct mix_part *part)
{
    size_t end = strcspn(part->data, "#");
    while (end > 0 && part->data[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && part->data[begin - 1] != '/')
        begin--;
    if (!name_is_good(part->data + begin, end - begin))
        return false;
    memcpy(part->name, part->data + begin, end - begin);
    return true;
}

/* Begins a part with the name of NAME=..., if the argument has one. Returns what is after it. */
static const char *name_take(struct mix_part *part, const char *text)
{
    const char *equals = strchr(text, '=');
    *part = (struct mix_part){.kind = MIX_REST};
    if (!equals || !name_is_good(text, (size_t)(equals - text)))
        return text;
    memcpy(part->name, text, (size_t)(equals - text));
    return equals + 1;
}

bool mix_part_parse(struct mix_part *part, const char *text, struct mix_error *error)
{
    const char *rest = name_take(part, text);
    if (part->name[0] && parse_what(part, rest)) {
        if ((part->data = strdup(part->name)))
            return true;
        return memory_lacks(error);
    }
    const char *colon = strrchr(rest, ':');
    if (!colon || !parse_what(part, colon + 1)) {
        char percent[32] = "rest";
        const bool share = colon && colon > rest && lacks_percent(colon + 1, percent);
        const char *sample = share ? text : part->name[0] || !*rest ? "code" : rest;
        const size_t length = share ? (size_t)(colon - text) : strlen(sample);
        return wrong(error,
                     "'%.200s' does not say how much of the source is wanted; end it with a colon and one of %s, such "
                     "as '%.*s:%s'",
                     text, FORMS, (int)(length < 64 ? length : 64), sample, percent);
    }
    if (colon == rest)
        return wrong(error, "'%.200s' names no dataset; write NAME:HOW_MUCH or NAME=DATASET:HOW_MUCH", text);
    part->data = strndup(rest, (size_t)(colon - rest));
    if (!part->data)
        return memory_lacks(error);
    if (part->name[0] || name_of_data(part))
        return true;
    wrong(
        error,
        "'%.200s' cannot be the name of a source; put a name of letters, digits, '_', '-', and '.' before it, such as "
        "'a=%.200s'",
        part->data, text);
    mix_part_free(part);
    return false;
}

bool mix_validation_parse(struct mix_part *part, const char *text, struct mix_error *error)
{
    const char *data = name_take(part, text);
    part->data = strdup(data);
    if (!part->data)
        return memory_lacks(error);
    if (*data && (part->name[0] || name_of_data(part)))
        return true;
    mix_part_free(part);
    return wrong(error,
                 "--validation %.200s names no dataset with a good name; write NAME=DATASET, such as --validation "
                 "val=data/web.val",
                 text);
}

void mix_part_free(struct mix_part *part)
{
    free(part->data);
    part->data = NULL;
}

/* ---- all arguments ---- */

static bool fixed_tokens(struct mix_part *part, unsigned __int128 *sum, struct mix_error *error)
{
    unsigned __int128 tokens = part->amount;
    if (part->kind == MIX_EPOCHS)
        tokens = (unsigned __int128)part->epoch_tokens * part->amount / SCALE;
    if (tokens == 0 || tokens > TOKENS_MOST)
        return wrong(error, "source '%s' would have %s; correct its epochs", part->name,
                     tokens ? "2^63 tokens or more" : "no token");
    part->tokens = (uint64_t)tokens;
    *sum += tokens;
    return true;
}

/* Divides what is left between the sources that have the rest, in proportion to their tokens. */
static void divide(struct mix_part *parts, size_t count, uint64_t left)
{
    unsigned __int128 weights = 0;
    struct mix_part *first = NULL;
    uint64_t given = 0;
    for (size_t i = 0; i < count; i++)
        if (parts[i].kind == MIX_REST)
            weights += parts[i].epoch_tokens;
    for (size_t i = 0; i < count; i++)
        if (parts[i].kind == MIX_REST) {
            /* left and epoch_tokens are below 2^63 and 2^64. */
            parts[i].tokens = (uint64_t)((unsigned __int128)left * parts[i].epoch_tokens / weights);
            given += parts[i].tokens;
            first = first ? first : &parts[i];
        }
    first->tokens += left - given;
}

static bool no_source_is_empty(const struct mix_part *parts, size_t count, struct mix_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].tokens == 0)
            return wrong(error, "source '%s' would have no token; give it more, or leave it out", parts[i].name);
    return true;
}

bool mix_solve(struct mix_part *parts, size_t count, uint64_t *total, struct mix_error *error)
{
    unsigned __int128 fixed = 0, percent = 0;
    size_t rests = 0;
    struct mix_part *share = NULL; /* the first that has a percentage */
    for (size_t i = 0; i < count; i++) {
        if (parts[i].kind == MIX_REST) {
            rests++;
        } else if (parts[i].kind == MIX_PERCENT) {
            percent += parts[i].amount;
            share = share ? share : &parts[i];
        } else if (!fixed_tokens(&parts[i], &fixed, error)) {
            return false;
        }
    }
    if (percent > HUNDRED_PERCENT)
        return wrong(error, "the percentages sum to %g%%, more than 100%%; lower some", (double)percent / SCALE);
    if (*total == 0) {
        if (rests)
            return wrong(error,
                         "'rest' needs the length of the run; give it with --tokens, such as --tokens 1T, or with "
                         "--steps");
        if (fixed == 0 || percent == HUNDRED_PERCENT)
            return wrong(error, "percentages alone do not say how much is read; give the length of the run with "
                                "--tokens, such as --tokens 1T, or with --steps");
        const unsigned __int128 all = fixed * HUNDRED_PERCENT / (HUNDRED_PERCENT - (uint64_t)percent);
        if (fixed > TOKENS_MOST || all > TOKENS_MOST)
            return wrong(error, "the sources have 2^63 tokens or more together; lower their epochs or tokens");
        *total = (uint64_t)all;
    }
    if (*total > TOKENS_MOST)
        return wrong(error, "a run has fewer than 2^63 tokens; lower --tokens");
    unsigned __int128 used = fixed;
    for (size_t i = 0; i < count; i++)
        if (parts[i].kind == MIX_PERCENT) {
            parts[i].tokens = (uint64_t)((unsigned __int128)*total * parts[i].amount / HUNDRED_PERCENT);
            used += parts[i].tokens;
        }
    if (used > *total)
        return wrong(error,
                     "the sources need %.4g tokens (%.4g in epochs and tokens, %g%% of the run), but the run has "
                     "%" PRIu64 "; raise --tokens or --steps, or lower some",
                     (double)used, (double)fixed, (double)percent / SCALE, *total);
    const uint64_t left = *total - (uint64_t)used;
    if (rests && left == 0)
        return wrong(error,
                     "the other sources take all %" PRIu64 " tokens, so nothing is left for 'rest'; raise "
                     "--tokens or --steps, or lower some",
                     *total);
    if (rests)
        divide(parts, count, left);
    else if (share && left <= count) /* rounding: each percentage was rounded down */
        share->tokens += left;
    else if (left)
        return wrong(error,
                     "the sources sum to %" PRIu64 " of %" PRIu64 " tokens, and nothing fills the rest; end one of "
                     "them with ':rest', or %s",
                     (uint64_t)used, *total,
                     fixed ? "leave out --tokens and --steps" : "raise the percentages to 100% together");
    return no_source_is_empty(parts, count, error);
}

bool mix_are_shares(struct mix_part *parts, size_t count)
{
    uint64_t left = HUNDRED_PERCENT;
    size_t rests = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].kind == MIX_PERCENT)
            left -= parts[i].amount;
        else if (parts[i].kind != MIX_REST)
            return false;
        rests += parts[i].kind == MIX_REST;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t share = parts[i].kind == MIX_REST ? left : parts[i].amount;
        /* Several sources share the rest by their sizes, so the shares of all are their tokens. */
        if (rests > 1)
            (void)snprintf(parts[i].share, sizeof parts[i].share, "%" PRIu64, parts[i].tokens);
        else
            (void)snprintf(parts[i].share, sizeof parts[i].share, "%.9g", (double)share / SCALE); /* exact: 9 digits */
    }
    return true;
}
