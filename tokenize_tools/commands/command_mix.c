/* SPDX-License-Identifier: MIT */
/*
 * command_mix.c - tokmap mix: turns a mixture in percent, epochs, and tokens into the lines of a run file, and reports
 * how often each source is read. The tokens of each source follow from the mixture as a person thinks of it:
 *
 *     web=rest               source web, dataset web, all tokens that the others leave
 *     wiki:epochs=3          source wiki, dataset wiki, three times
 *     code=data/code:20%     source code, dataset data/code, a fifth of all tokens
 *     data/books:tokens=40B  source books, dataset data/books, 40 * 10^9 tokens
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/data/output_file.h"
#include "commands/options/target.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "format/foreign/foreign_name.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "text/path.h"

static const char program[] = "tokmap mix";

#define MIX_NAME_MOST 64
#define MIX_DECIMALS 6 /* digits after the point of a percentage and of a number of epochs */

enum mix_kind { MIX_REST, MIX_EPOCHS, MIX_PERCENT, MIX_TOKENS };

struct mix_part {
    char name[MIX_NAME_MOST + 1];
    char *data; /* the dataset; free it with mix_part_free() */
    enum mix_kind kind;
    uint64_t amount;       /* tokens; or percent or epochs, multiplied by 10^MIX_DECIMALS */
    uint64_t epoch_tokens; /* of one epoch, at least 1; set between mix_part_parse() and mix_solve() */
    uint64_t tokens;       /* the result */
    char share[24];        /* a share as a run file has it, such as 33.5; set by mix_are_shares() */
};

#define SCALE 1000000u /* 10^MIX_DECIMALS */
#define HUNDRED_PERCENT ((uint64_t)100 * SCALE)
#define TOKENS_MOST (((uint64_t)1 << 63) - 1)
#define FORMS "rest, 20%, epochs=3, or tokens=300B"

/* Says what is wrong with the arguments. */
__attribute__((format(printf, 2, 3))) static bool wrong(struct tokmap_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return false;
}

static bool memory_lacks(struct tokmap_error *error)
{
    return error_set_memory(error, "the name of a dataset", 0) == TOKMAP_OK;
}

/* ---- one argument ---- */

static void mix_part_free(struct mix_part *part)
{
    free(part->data);
    part->data = NULL;
}

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

/* Reads an argument as in the head of this file. Returns false after writing what is wrong. */
static bool mix_part_parse(struct mix_part *part, const char *text, struct tokmap_error *error)
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

/* Does the same for a validation set, NAME=DATASET or DATASET, of which a run has no amount. */
static bool mix_validation_parse(struct mix_part *part, const char *text, struct tokmap_error *error)
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

/* ---- all arguments ---- */

static bool fixed_tokens(struct mix_part *part, unsigned __int128 *sum, struct tokmap_error *error)
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

static bool no_source_is_empty(const struct mix_part *parts, size_t count, struct tokmap_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].tokens == 0)
            return wrong(error, "source '%s' would have no token; give it more, or leave it out", parts[i].name);
    return true;
}

/* Computes the tokens of each part. *total is the tokens of the run, or 0: then they follow from the parts, and are
 * stored. The parts sum to *total, which is below 2^63. Returns false after writing what is wrong. */
static bool mix_solve(struct mix_part *parts, size_t count, uint64_t *total, struct tokmap_error *error)
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

/* Sets the shares of parts that are solved, if they follow from percentages and the rest alone, and so hold for a run
 * of any length. Returns false, without shares, if a part is in epochs or tokens. */
static bool mix_are_shares(struct mix_part *parts, size_t count)
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

#define SEQ_LEN_MOST ((uint64_t)1 << 31)
#define BATCH_MOST ((uint64_t)1 << 31)

struct mixing {
    const char *tokens_text, *output;
    uint64_t seq_len, lookahead, batch, seed, steps, max_epochs;
    bool seq_len_given, lookahead_given, batch_given, seed_given, steps_given, max_epochs_given, force, json, quiet;
    struct mix_part *parts;
    size_t count;
    uint64_t total;              /* tokens of the run */
    struct cli_list validations; /* as they were typed */
    struct mix_part *held_out;   /* their parts */
    /* The real paths of the current folder and of the output's; NULL if they are the same. */
    char *here, *there;
};

/* ---- the text ---- */

struct text {
    struct bytes_buffer bytes;
    bool failed;
};

static void put(struct text *text, const char *word)
{
    if (!bytes_append(&text->bytes, word, strlen(word)))
        text->failed = true;
}

static void put_number(struct text *text, const char *before, uint64_t number, const char *after)
{
    char digits[DECIMAL_DIGITS_MOST + 1];
    digits[decimal_write(number, digits)] = '\0';
    put(text, before);
    put(text, digits);
    put(text, after);
}

/* Writes the name of a dataset, in quotes where the run file needs them. */
static void put_data(struct text *text, const char *data)
{
    const bool quoted = data[0] == '"' || data[0] == '#' || strpbrk(data, " \t");
    put(text, quoted ? "\"" : "");
    for (; *data; data++) {
        const char letter[2] = {*data, '\0'};
        put(text, quoted && (*data == '"' || *data == '\\') ? "\\" : "");
        put(text, letter);
    }
    put(text, quoted ? "\"\n" : "\n");
}

/* Writes the name of a dataset as the run file needs it: a relative one starts from the folder of the run file, and
 * the user's from the current one. */
static void put_source(struct text *text, const struct mixing *mixing, const char *data)
{
    const size_t kind = foreign_name_has_kind(data) ? strcspn(data, ":") + 1 : 0;
    if (!mixing->there || path_is_absolute(data + kind) ||
        strncmp(data, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0) {
        put_data(text, data);
        return;
    }
    const char *rest = data + kind;
    size_t here = strlen(mixing->here); /* of its bytes that `rest` starts from */
    for (; strncmp(rest, "../", 3) == 0 && here > 1; rest += 3)
        while (here > 1 && mixing->here[--here] != '/')
            continue;
    char *whole = path_join(mixing->here, here, rest, strlen(rest), "");
    char *relative = NULL;
    if (whole)
        (void)path_relative(mixing->there, whole, &relative); /* which exists: mixing->there is a real path */
    const bool hidden = relative && !kind && foreign_name_has_kind(relative); /* a file called raw:x is ./raw:x */
    const size_t room = kind + 2 + (relative ? strlen(relative) : 0) + 1;
    char *name = relative ? malloc(room) : NULL;
    if (name)
        (void)snprintf(name, room, "%.*s%s%s", (int)kind, data, hidden ? "./" : "", relative);
    put_data(text, name ? name : "");
    text->failed = text->failed || !name;
    free(whole);
    free(relative);
    free(name);
}

static void put_tokens(struct text *text, uint64_t tokens)
{
    static const struct {
        uint64_t unit;
        const char *suffix;
    } units[] = {{1000000000000, "T"}, {1000000000, "B"}, {1000000, "M"}, {1000, "K"}, {1, ""}};
    size_t i = 0;
    while (tokens % units[i].unit)
        i++;
    put_number(text, " tokens=", tokens / units[i].unit, units[i].suffix);
}

/* Prints the run's text: into a file or a pipe as it is, because it is a run file. */
static void text_print(const char *text)
{
    struct visible visible = {.file = stdout};
    if (!os_is_terminal(1)) {
        (void)fputs(text, stdout);
        return;
    }
    visible_write(&visible, text, strlen(text));
    visible_end(&visible);
}

/* Writes the run file, or without a sequence length and a batch the lines that do not depend on them. */
static char *run_text(const struct mixing *mixing)
{
    struct text text = {.failed = false};
    const bool shares = mix_are_shares(mixing->parts, mixing->count);
    const bool whole = mixing->seq_len_given && mixing->batch_given;
    size_t column = 0;
    for (size_t i = 0; i < mixing->count; i++) {
        const size_t length = strlen(mixing->parts[i].name);
        column = length > column ? length : column;
    }
    if (whole) {
        put_number(&text, "seq_len  ", mixing->seq_len, "\n");
        if (mixing->lookahead != 1)
            put_number(&text, "lookahead ", mixing->lookahead, "\n");
        put_number(&text, "batch    ", mixing->batch, "\n");
        put_number(&text, "seed     ", mixing->seed, "\n");
    }
    for (size_t i = 0; i < mixing->count; i++) {
        put(&text, "source   ");
        put(&text, mixing->parts[i].name);
        for (size_t k = strlen(mixing->parts[i].name); k <= column; k++)
            put(&text, " ");
        put_source(&text, mixing, mixing->parts[i].data);
    }
    for (size_t i = 0; i < mixing->validations.count; i++) {
        put(&text, "validation ");
        put(&text, mixing->held_out[i].name);
        put(&text, " ");
        put_source(&text, mixing, mixing->held_out[i].data);
    }
    put(&text, "phase    0");
    for (size_t i = 0; i < mixing->count; i++) {
        put(&text, " ");
        put(&text, mixing->parts[i].name);
        if (!shares) {
            put_tokens(&text, mixing->parts[i].tokens);
            continue;
        }
        put(&text, " ");
        put(&text, mixing->parts[i].share);
    }
    if (whole)
        put_number(&text, "\nsteps    ", mixing->total / (mixing->batch * mixing->seq_len), "\n");
    else
        put_number(&text, "\n# Add seq_len, batch, and steps, which is ", mixing->total, " / (batch * seq_len).\n");
    if (!bytes_append(&text.bytes, "", 1) || text.failed)
        bytes_free(&text.bytes);
    return (char *)text.bytes.bytes;
}

/* ---- the report ---- */

static uint64_t repeated(const struct mix_part *part)
{
    return part->tokens > part->epoch_tokens ? part->tokens - part->epoch_tokens : 0;
}

/* Reports the sources; in JSON, also the text. */
static void mix_report(const struct mixing *mixing, const char *text)
{
    const bool whole = mixing->seq_len_given && mixing->batch_given;
    struct cli_report report;
    uint64_t repeats = 0;
    cli_report_begin(&report, mixing->json, NULL);
    report.file = mixing->output ? stdout : stderr;
    cli_member(&report, "tokens", cli_number(mixing->total));
    cli_member(&report, "steps", whole ? cli_number(mixing->total / (mixing->batch * mixing->seq_len)) : cli_null());
    cli_report_list(&report, "sources", "source|>tokens|>share|>one epoch|>epochs|>repeated");
    for (size_t i = 0; i < mixing->count; i++) {
        const struct mix_part *part = &mixing->parts[i];
        const double tokens = (double)part->tokens, total = (double)mixing->total;
        const double epochs = tokens / (double)part->epoch_tokens;
        repeats += repeated(part);
        cli_report_item(&report);
        cli_fact_text(&report, "name", "source", part->name);
        cli_member(&report, "dataset", cli_text(part->data));
        cli_fact_number(&report, "tokens", "tokens", part->tokens);
        cli_fact(&report, "share", "share", cli_real(tokens / total), "%.2f%%", 100 * tokens / total);
        cli_fact_number(&report, "epoch_tokens", "one epoch", part->epoch_tokens);
        cli_fact(&report, "epochs", "epochs", cli_real(epochs), "%.3f", epochs);
        cli_fact_number(&report, "repeated_tokens", "repeated", repeated(part));
        cli_member(&report, "unread_tokens",
                   cli_number(part->tokens < part->epoch_tokens ? part->epoch_tokens - part->tokens : 0));
        cli_report_close(&report);
    }
    if (!mixing->json) {
        cli_report_item(&report);
        cli_row(&report, "source", "all");
        cli_row(&report, "tokens", "%s", CLI_COUNT(mixing->total));
        cli_row(&report, "share", "100.00%%");
        cli_row(&report, "repeated", "%s", CLI_COUNT(repeats));
        cli_report_close(&report);
        (void)fflush(stdout);
    }
    cli_report_close(&report);
    cli_member_text_if(&report, "output", mixing->output);
    cli_member(&report, "text", cli_text(text));
    cli_report_end(&report);
}

/* ---- the command ---- */

/* Opens a dataset, warns of what is odd about it, and counts its tokens. */
static enum tokmap_status tokens_count(const char *data, uint64_t *tokens, struct tokmap_error *error)
{
    struct tokmap_dataset *dataset = NULL;
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    enum tokmap_status status = tokmap_dataset_open(&dataset, data, NULL, error);
    if (!status) {
        dataset_warn(program, dataset, data);
        status = tokmap_dataset_info(dataset, &info);
        tokmap_dataset_close(dataset);
    }
    *tokens = info.tokens;
    return status;
}

/* Sets the tokens of an epoch of each source: those of its windows, or without a sequence length all of its dataset. */
static enum tokmap_status measure(struct mixing *mixing, struct tokmap_error *error)
{
    uint64_t tokens;
    for (size_t i = 0; i < mixing->count; i++) {
        struct mix_part *part = &mixing->parts[i];
        const enum tokmap_status status = tokens_count(part->data, &tokens, error);
        if (status)
            return status;
        part->epoch_tokens = tokens;
        if (mixing->seq_len_given)
            part->epoch_tokens =
                tokens < mixing->lookahead ? 0 : (tokens - mixing->lookahead) / mixing->seq_len * mixing->seq_len;
        if (part->epoch_tokens == 0)
            return error_set(error, TOKMAP_ERROR_RANGE, part->data, TOKMAP_NO_OFFSET,
                             "the dataset of source '%s' has %" PRIu64 " tokens, fewer than a row needs; leave it out, "
                             "or lower --seq-len",
                             part->name, tokens);
    }
    for (size_t i = 0; i < mixing->validations.count; i++) {
        const struct mix_part *part = &mixing->held_out[i];
        const enum tokmap_status status = tokens_count(part->data, &tokens, error);
        if (status)
            return status;
        if (tokens == 0)
            return error_set(error, TOKMAP_ERROR_RANGE, part->data, TOKMAP_NO_OFFSET,
                             "the dataset of validation set '%s' has no tokens to evaluate on; leave it out, or hold "
                             "out another one",
                             part->name);
    }
    return TOKMAP_OK;
}

/* Refuses sources that are read too often. */
static bool check_epochs(const struct mixing *mixing, struct tokmap_error *error)
{
    for (size_t i = 0; i < mixing->count && mixing->max_epochs_given; i++) {
        const struct mix_part *part = &mixing->parts[i];
        const unsigned __int128 most = (unsigned __int128)part->epoch_tokens * mixing->max_epochs;
        if (part->tokens > most)
            return wrong(error,
                         "source '%s' runs out: %" PRIu64 " tokens are %.4g epochs, but --max-epochs allows %" PRIu64
                         ", which are %" PRIu64 " tokens; give it less, or lower --tokens",
                         part->name, part->tokens, (double)part->tokens / (double)part->epoch_tokens,
                         mixing->max_epochs, (uint64_t)most);
    }
    return true;
}

/* Returns what is wrong with the options, or NULL. */
static const char *options_wrong(struct mixing *mixing)
{
    if (mixing->seq_len_given && (mixing->seq_len == 0 || mixing->seq_len > SEQ_LEN_MOST))
        return "--seq-len must be between 1 and 2^31";
    if (mixing->batch_given && (mixing->batch == 0 || mixing->batch > BATCH_MOST))
        return "--batch must be between 1 and 2^31";
    if (mixing->lookahead > SEQ_LEN_MOST)
        return "--lookahead must be at most 2^31";
    if (mixing->batch_given && !mixing->seq_len_given)
        return "--batch needs --seq-len, the tokens of a row";
    if ((mixing->seed_given || mixing->lookahead_given || mixing->steps_given) && !mixing->batch_given)
        return mixing->seq_len_given
                   ? "--seed, --lookahead, and --steps belong to a whole run file, which also needs --batch"
                   : "--seed, --lookahead, and --steps belong to a whole run file, which needs --seq-len and --batch";
    if (mixing->output && !mixing->batch_given)
        return mixing->seq_len_given ? "-o writes a whole run file, which also needs --batch, the rows of a step"
                                     : "-o writes a whole run file, which needs --seq-len and --batch";
    if (mixing->force && !mixing->output)
        return "--force is about the file that -o names; name one";
    if (mixing->max_epochs_given && mixing->max_epochs == 0)
        return "--max-epochs must be 1 or more";
    if (mixing->steps_given && mixing->tokens_text)
        return "--steps and --tokens both say how long the run is; give one of them";
    if (mixing->tokens_text && (!decimal_parse_tokens(mixing->tokens_text, &mixing->total) || mixing->total == 0))
        return "--tokens must be a whole number above 0, such as 4096, 300B, or 1.5T";
    if (mixing->steps_given && (mul_overflows(mixing->steps, mixing->batch * mixing->seq_len, &mixing->total) ||
                                mixing->total == 0 || mixing->total >> 63))
        return "--steps must be 1 or more, and the run must have fewer than 2^63 tokens";
    return NULL;
}

/* Returns whether none of the parts before part i has its name. */
static bool name_is_new(const struct mixing *mixing, size_t i, struct tokmap_error *error)
{
    const char *name = mixing->parts[i].name;
    for (size_t k = 0; k < i; k++)
        if (strcmp(mixing->parts[k].name, name) == 0) {
            return wrong(error, "two %s have the name '%s'; write NAME=DATASET%s, with another name, for one of them",
                         i < mixing->count ? "sources" : "datasets", name, i < mixing->count ? ":HOW_MUCH" : "");
        }
    return true;
}

static bool parse_operands(struct mixing *mixing, const char **operands, size_t count, struct tokmap_error *error)
{
    mixing->count = count;
    for (size_t i = 0; i < count; i++) {
        if (!mix_part_parse(&mixing->parts[i], operands[i], error) || !name_is_new(mixing, i, error))
            return false;
        const char *name = mixing->parts[i].name;
        if (!strcmp(name, "natural") || !strcmp(name, "batch") || !strcmp(name, "seq_len")) {
            return wrong(error,
                         "a source cannot have the name '%s', which means something else in a run file; write "
                         "NAME=DATASET:HOW_MUCH, with another name",
                         name);
        }
    }
    for (size_t i = 0; i < mixing->validations.count; i++)
        if (!mix_validation_parse(&mixing->held_out[i], mixing->validations.values[i], error) ||
            !name_is_new(mixing, count + i, error))
            return false;
    return true;
}

/* Finds out whether names start from another folder in the output than here. */
static enum tokmap_status places_find(struct mixing *mixing, struct tokmap_error *error)
{
    enum tokmap_status status = cli_output_folder(mixing->output, error);
    if (status)
        return status;
    char *folder = path_folder(mixing->output);
    int system = folder ? os_real_path(folder, &mixing->there) : 0;
    if (folder && !system)
        system = os_real_path(".", &mixing->here);
    if (!folder)
        status = error_set_memory(error, "a path", strlen(mixing->output) + 1);
    else if (system)
        status = error_set_system(error, system, folder, TOKMAP_NO_OFFSET, "the output folder cannot be found");
    if (!status && strcmp(mixing->here, mixing->there) == 0) {
        free(mixing->there);
        mixing->there = NULL;
    }
    free(folder);
    return status;
}

/* Opens the run of the text as a file in the output's place would be opened, and writes the file. */
static enum tokmap_status check_and_write(const struct mixing *mixing, const char *text, struct tokmap_error *error)
{
    struct tokmap_run *run = NULL;
    struct output_file file = {.fd = -1};
    struct tokmap_run_options options = TOKMAP_RUN_OPTIONS_INIT;
    enum tokmap_status status = TOKMAP_OK;
    options.folder = mixing->there;
    if (mixing->output)
        status = output_file_open(&file, mixing->output, mixing->force, error);
    if (!status && mixing->seq_len_given && mixing->batch_given)
        status = tokmap_run_parse(&run, text, &options, error);
    if (status && !error->path[0])
        error->line = 0; /* of a text that nobody has seen */
    tokmap_run_close(run);
    if (!status && mixing->output) {
        const int system = os_write(file.fd, text, strlen(text));
        if (system)
            status = error_set_system(error, system, mixing->output, TOKMAP_NO_OFFSET, "the run cannot be written");
    }
    if (status)
        output_file_abort(&file);
    else if (mixing->output)
        status = output_file_commit(&file, error);
    return status;
}

/* Everything after the options were checked. */
static int mix_print(struct mixing *mixing, const struct cli_command *command)
{
    struct tokmap_error error = {0};
    if (measure(mixing, &error))
        return command_failed(command, &error);
    if (!mix_solve(mixing->parts, mixing->count, &mixing->total, &error) || !check_epochs(mixing, &error)) {
        cli_say(program, "%s", error.message);
        return CLI_FAILED;
    }
    const bool whole = mixing->seq_len_given && mixing->batch_given;
    if (whole && mixing->total < mixing->batch * mixing->seq_len) {
        cli_say(program,
                "%" PRIu64 " tokens do not fill a step of %" PRIu64 " rows of %" PRIu64 "; raise --tokens, or "
                "lower --batch or --seq-len",
                mixing->total, mixing->batch, mixing->seq_len);
        return CLI_FAILED;
    }
    if (mixing->output && places_find(mixing, &error))
        return command_failed(command, &error);
    char *text = run_text(mixing);
    if (!text) {
        (void)error_set_memory(&error, "the run's text", UINT64_MAX);
        return command_failed(command, &error);
    }
    const enum tokmap_status status = check_and_write(mixing, text, &error);
    if (!status && mixing->json) {
        mix_report(mixing, text);
    } else if (!status) {
        if (!mixing->output)
            text_print(text);
        if (!mixing->quiet)
            mix_report(mixing, text);
    }
    free(text);
    return cli_finish(program, status ? command_failed(command, &error) : CLI_DONE);
}

static int mix(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct mixing *mixing = user;
    struct tokmap_error why = {0};
    const char *wrong = options_wrong(mixing);
    if (wrong)
        return cli_misused(command, "%s", wrong);
    if (operand_count == 0)
        return cli_misused(command, "no source is given; write each as NAME:HOW_MUCH, such as 'wiki:epochs=3'");
    mixing->parts = calloc(operand_count + mixing->validations.count, sizeof *mixing->parts);
    if (!mixing->parts) {
        cli_say(program, "out of memory for %zu sources", operand_count);
        return CLI_FAILED;
    }
    mixing->held_out = mixing->parts + operand_count;
    int status = CLI_FAILED;
    if (parse_operands(mixing, operands, operand_count, &why))
        status = mix_print(mixing, command);
    else if (why.status)
        status = command_failed(command, &why);
    else
        status = cli_misused(command, "%s", why.message);
    for (size_t i = 0; i < operand_count + mixing->validations.count; i++)
        mix_part_free(&mixing->parts[i]);
    free(mixing->parts);
    free(mixing->here);
    free(mixing->there);
    return status;
}

int command_mix(int argc, char **argv)
{
    struct mixing mixing = {.lookahead = 1};
    const struct cli_option options[] = {
        CLI_HEADING("The run"),
        {'n', "tokens", CLI_TEXT, &mixing.tokens_text, NULL, "T",
         "tokens of the run; K, M, B, and T are 10^3, 10^6, 10^9, and 10^12 (default: those of the sources, if none "
         "has the rest)",
         NULL},
        {0, "steps", CLI_NUMBER, &mixing.steps, &mixing.steps_given, "N", "steps of the run, in place of --tokens",
         NULL},
        {0, "validation", CLI_LIST, &mixing.validations, NULL, "NAME=DATASET",
         "a dataset that the run holds out for evaluation and never draws, such as val=data/web.val; may be repeated",
         NULL},
        {0, "max-epochs", CLI_NUMBER, &mixing.max_epochs, &mixing.max_epochs_given, "E",
         "fail if a source is read more than E times", NULL},
        CLI_HEADING("A whole run file"),
        {0, "seq-len", CLI_SIZE, &mixing.seq_len, &mixing.seq_len_given, "S", "tokens of a row", NULL},
        {0, "batch", CLI_NUMBER, &mixing.batch, &mixing.batch_given, "G", "rows of a global batch", NULL},
        {0, "lookahead", CLI_NUMBER, &mixing.lookahead, &mixing.lookahead_given, "L",
         "tokens of a window after those of the row, for targets (default: 1)", NULL},
        {0, "seed", CLI_NUMBER, &mixing.seed, &mixing.seed_given, "SEED", "seed of the order (default: 0)", NULL},
        {'o', "output", CLI_TEXT, &mixing.output, NULL, "FILE",
         "write the run to FILE, whose folder its names start from, and the table to standard output", NULL},
        {0, "force", CLI_FLAG, &mixing.force, NULL, NULL, "replace FILE if it exists", NULL},
        CLI_HEADING("General"),
        {0, "json", CLI_FLAG, &mixing.json, NULL, NULL, "print the text and the table as a JSON object", NULL},
        {'q', "quiet", CLI_FLAG, &mixing.quiet, NULL, NULL, "print no table", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[OPTION]... [NAME=]DATASET:HOW_MUCH...",
        .summary = "Prints the lines of a run file for a mixture of sources, and a table on standard error: how many "
                   "tokens of each source are read, how often, and how many of them are repeats.",
        .details =
            "HOW_MUCH of each source is rest (what the others leave; several share it by their size), a percentage of "
            "the run such as 20%, epochs=3, or tokens=300B. Without NAME the source has the name of its dataset, and "
            "NAME=HOW_MUCH means the dataset NAME. Percentages and the rest become shares, which also hold if the run "
            "gets longer; epochs and tokens become tokens. With --seq-len and --batch the output is a whole run file, "
            "which was opened to check it.\n\n"
            "Examples:\n"
            "  tokmap mix --tokens 1T web=rest wiki:epochs=3 code:20%\n"
            "  tokmap mix --seq-len 8192 --batch 1024 --tokens 1T --validation val=data/val -o mix.run data/web:rest "
            "data/wiki:epochs=3\n"
            "  tokmap mix --max-epochs 4 data/wiki:epochs=3 data/code:40%\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, mix, &mixing);
}
