/* run_print.c - see run_print.h. */
#include "run_print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes_buffer.h"

enum { NAME_COLUMN_MOST = 16 }; /* longer names are not aligned */

struct printer {
    struct bytes_buffer text;
    bool failed; /* there is no memory, or a word cannot be written */
};

static void put(struct printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct printer *printer, const char *format, ...)
{
    char piece[2 * RUN_NAME_MOST + 64];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof piece || !bytes_append(&printer->text, piece, (size_t)length))
        printer->failed = true;
}

/* Writes a word, in quotes if it would otherwise be read as something else. */
static void put_word(struct printer *printer, const char *word)
{
    const bool quoted = word[0] == '\0' || word[0] == '"' || word[0] == '#' || strpbrk(word, " \t");
    if (quoted)
        put(printer, "\"");
    for (const char *at = word; *at; at++) {
        if ((unsigned char)*at < 0x20 && *at != '\t')
            printer->failed = true;
        if (quoted && (*at == '"' || *at == '\\'))
            put(printer, "\\");
        if (!bytes_append(&printer->text, at, 1))
            printer->failed = true;
    }
    if (quoted)
        put(printer, "\"");
}

/* Writes amount / 10^decimals without zeros after the point that do not count. */
static void put_share(struct printer *printer, uint64_t amount, uint32_t decimals)
{
    for (; decimals > 0 && amount % 10 == 0; decimals--)
        amount /= 10;
    uint64_t one = 1;
    for (uint32_t i = 0; i < decimals; i++)
        one *= 10;
    put(printer, "%" PRIu64, amount / one);
    if (decimals > 0)
        put(printer, ".%0*" PRIu64, (int)decimals, amount % one);
}

static void put_tokens(struct printer *printer, uint64_t tokens)
{
    static const struct {
        uint64_t unit;
        char suffix;
    } units[] = {{1000000000000, 'T'}, {1000000000, 'B'}, {1000000, 'M'}, {1000, 'K'}};
    put(printer, "tokens=");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (tokens > 0 && tokens % units[i].unit == 0) {
            put(printer, "%" PRIu64 "%c", tokens / units[i].unit, units[i].suffix);
            return;
        }
    put(printer, "%" PRIu64, tokens);
}

static void put_source(struct printer *printer, const char *directive, const struct source_line *source, int column)
{
    put(printer, "%-8s %-*s ", directive, column, source->name);
    put_word(printer, source->data);
    if (source->plan) {
        put(printer, " plan ");
        put_word(printer, source->plan);
    }
    if (source->epochs_most)
        put(printer, " epochs<=%" PRIu64, source->epochs_most);
    put(printer, "\n");
}

static void put_phase(struct printer *printer, const struct run_spec *spec, const struct phase_line *phase)
{
    put(printer, "phase    %" PRIu64, phase->step);
    if (phase->kind == WEIGHTS_NATURAL && phase->weight_count == 0)
        put(printer, " natural");
    for (size_t k = 0; k < phase->weight_count; k++) {
        const struct phase_weight *weight = &phase->weights[k];
        put(printer, " %s ", spec->sources[weight->source].name);
        if (phase->kind == WEIGHTS_NATURAL)
            put(printer, "natural");
        else if (phase->kind == WEIGHTS_TOKENS)
            put_tokens(printer, weight->amount);
        else
            put_share(printer, weight->amount, phase->decimals);
    }
    if (phase->batch)
        put(printer, " batch %" PRIu64, phase->batch);
    if (phase->seq_len)
        put(printer, " seq_len %" PRIu64, phase->seq_len);
    put(printer, "\n");
}

static void put_numbers(struct printer *printer, const struct run_spec *spec)
{
    put(printer, "seq_len  %" PRIu64 "\n", spec->seq_len);
    if (spec->lookahead != 1)
        put(printer, "lookahead %" PRIu64 "\n", spec->lookahead);
    put(printer, "batch    %" PRIu64 "\n", spec->batch);
    put(printer, "seed     %" PRIu64 "\n", spec->seed);
    if (spec->ordering == TOKMAP_BLOCKS)
        put(printer, "order    blocks %" PRIu64 " %" PRIu64 "\n", spec->blocks, spec->span);
    else if (spec->ordering == TOKMAP_SEQUENTIAL)
        put(printer, "order    sequential\n");
    if (spec->stride)
        put(printer, "stride   %" PRIu64 "\n", spec->stride);
    if (spec->tail_pad)
        put(printer, "tail     pad\n");
    if (spec->pad_id != TOKMAP_NO_ID)
        put(printer, "pad      %" PRIu64 "\n", spec->pad_id);
}

char *run_spec_print(const struct run_spec *spec)
{
    struct printer printer = {.failed = false};
    size_t column = 0;
    for (size_t i = 0; i < spec->source_count; i++) {
        const size_t length = strlen(spec->sources[i].name);
        if (length > column && length <= NAME_COLUMN_MOST)
            column = length;
    }
    put_numbers(&printer, spec);
    for (size_t i = 0; i < spec->source_count; i++)
        put_source(&printer, "source", &spec->sources[i], (int)column);
    for (size_t i = 0; i < spec->validation_count; i++)
        put_source(&printer, "validation", &spec->validations[i], 0);
    for (size_t i = 0; i < spec->phase_count; i++)
        put_phase(&printer, spec, &spec->phases[i]);
    for (size_t i = 0; i < spec->skip_count; i++)
        put(&printer, "skip     %" PRIu64 "..%" PRIu64 "\n", spec->skips[i].first, spec->skips[i].end);
    if (spec->steps != TOKMAP_FOREVER)
        put(&printer, "steps    %" PRIu64 "\n", spec->steps);
    if (spec->passes != TOKMAP_FOREVER && spec->passes_of < spec->source_count)
        put(&printer, "passes   %" PRIu64 " of %s\n", spec->passes, spec->sources[spec->passes_of].name);
    else if (spec->passes != TOKMAP_FOREVER)
        put(&printer, "passes   %" PRIu64 "\n", spec->passes);
    if (!bytes_append(&printer.text, "", 1))
        printer.failed = true;
    if (printer.failed)
        bytes_free(&printer.text);
    return (char *)printer.text.bytes;
}
