/* SPDX-License-Identifier: MIT */
#include "printer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codec/file_type.h"
#include "commands/data/block_compare.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/dataset_about.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "text/decimal.h"
#include "text/path.h"
#include "text/utf8.h"

#define VALUE_SHOWN 400 /* bytes of a column's value that are printed for people */

/* ---- tokens ---- */

enum tokmap_status printer_open(struct printer *printer, const struct tokmap_dataset *dataset,
                                const struct tokenizer_arguments *asked, bool specials, bool marked,
                                struct tokmap_error *error)
{
    memset(printer, 0, sizeof *printer);
    printer->dataset = dataset;
    printer->to_terminal = os_is_terminal(1);
    printer->info = info_of_dataset(dataset);
    printer->chunk = malloc(PRINTER_CHUNK * printer->info.width);
    if (!printer->chunk)
        return error_set_memory(error, "tokens", PRINTER_CHUNK * printer->info.width);
    printer->marked = marked && printer->info.masked;
    if (printer->info.masked && !(printer->mask = malloc(PRINTER_CHUNK / 8)))
        return error_set_memory(error, "the mask", PRINTER_CHUNK / 8);
    enum tokmap_status status = block_compare_open(&printer->compare, dataset, error);
    if (asked && !status)
        status = dataset_tokenizer_open(&printer->tokenizer, dataset, asked, &printer->assumed, error);
    if (asked && !status)
        status = tokenizer_decoder_new(&printer->decoder, printer->tokenizer, specials, error);
    return status;
}

void printer_close(struct printer *printer)
{
    tokenizer_decoder_free(printer->decoder);
    if (printer->tokenizer)
        tokenizer_close(printer->tokenizer);
    free(printer->text.bytes);
    block_compare_close(printer->compare);
    free(printer->room);
    free(printer->chunk);
    free(printer->mask);
    memset(printer, 0, sizeof *printer);
}

/* Takes the longest run of tokens from *first on that does not pass the end of the dataset and fits the chunk. Sets
 * *start to its first token, moves *first and *count past it, and returns its length. */
static uint64_t span_next(const struct printer *printer, uint64_t *first, uint64_t *count, uint64_t *start)
{
    *start = *first % printer->info.tokens;
    const uint64_t span = min64(min64(*count, printer->info.tokens - *start), PRINTER_CHUNK);
    *first = *start + span;
    *count -= span;
    return span;
}

/* Copies the next tokens of a range, and their mask. */
static enum tokmap_status chunk_read(struct printer *printer, uint64_t *first, uint64_t *count, uint64_t *span,
                                     struct tokmap_error *error)
{
    *span = span_next(printer, first, count, &printer->chunk_first);
    const uint64_t from = printer->chunk_first;
    enum tokmap_status status = block_compare_range(printer->compare, from, *span, &printer->room, error);
    if (!status)
        status = tokmap_dataset_copy(printer->dataset, from, *span, printer->chunk, error);
    return status || !printer->mask ? status : tokmap_dataset_mask(printer->dataset, from, *span, printer->mask, error);
}

static bool counts_at(const struct printer *printer, uint64_t i)
{
    return !printer->mask || (printer->mask[i / 8] >> (i % 8) & 1);
}

/* Puts the place of a token before the message that says what is wrong with it. */
static void place_name(const struct printer *printer, uint64_t token, struct tokmap_error *error)
{
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_document document;
    struct tokmap_error unused;
    char message[sizeof error->message];
    memcpy(message, error->message, sizeof message);
    if (!printer->info.documents || tokmap_dataset_document_at(printer->dataset, token, &document, &unused) ||
        tokmap_dataset_shard(printer->dataset, document.shard, &shard, &unused))
        (void)error_set(error, error->status, NULL, TOKMAP_NO_OFFSET, "token %" PRIu64 " of the dataset: %.600s", token,
                        message);
    else
        (void)error_set(error, error->status, shard.tokens_path, TOKMAP_NO_OFFSET,
                        "document %" PRIu64 ", token %" PRIu64 ": %.600s", document.number,
                        token - document.first_token, message);
}

/* Decodes `count` tokens of the chunk, from `at` on. */
static enum tokmap_status chunk_decode(struct printer *printer, uint64_t at, uint64_t count, struct tokmap_error *error)
{
    const uint32_t width = printer->info.width;
    const struct token_list list = {(const uint8_t *)printer->chunk + at * width, width, count};
    uint64_t unknown = 0;
    const enum tokmap_status status =
        token_decode(printer->decoder, printer->tokenizer, &list, &printer->text, &unknown, error);
    if (status == TOKMAP_ERROR_TOKEN)
        place_name(printer, printer->chunk_first + at + unknown, error);
    return status;
}

/* Returns the end of the longest stretch of tokens of the chunk, from `at` on, that count alike. */
static uint64_t alike_end(const struct printer *printer, uint64_t at, uint64_t span)
{
    const bool counts = counts_at(printer, at);
    if (!printer->mask)
        return span;
    while (at < span && counts_at(printer, at) == counts)
        at++;
    return at;
}

static void text_write(struct printer *printer, struct visible *visible)
{
    if (!printer->text.count)
        return;
    if (printer->to_terminal)
        visible_write(visible, printer->text.bytes, (size_t)printer->text.count);
    else
        (void)fwrite(printer->text.bytes, 1, (size_t)printer->text.count, stdout);
    printer->last = printer->text.bytes[printer->text.count - 1];
}

/* Begins or ends a mark, if text of the other kind follows. */
static void mark_set(struct printer *printer, bool marking)
{
    if (!printer->marked || printer->marking == marking)
        return;
    printer->marking = marking;
    if (printer->to_terminal)
        (void)fputs(marking ? "\033[2m" : "\033[22m", stdout);
    else
        (void)fputs(marking ? "\xe2\x9f\xa6" : "\xe2\x9f\xa7", stdout);
}

/* Prints the text of an extent as far as it is certain. */
static enum tokmap_status extent_text(struct printer *printer, struct tokmap_extent extent, struct visible *visible,
                                      struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    uint64_t span = 0;
    assert(!extent.tokens || extent.first_token < printer->info.tokens);
    while (extent.tokens && !status && !ferror(stdout)) {
        status = chunk_read(printer, &extent.first_token, &extent.tokens, &span, error);
        for (uint64_t at = 0, end; at < span && !status; at = end) {
            end = alike_end(printer, at, span);
            printer->text.count = 0;
            mark_set(printer, !counts_at(printer, at));
            status = chunk_decode(printer, at, end - at, error);
            if (!status)
                text_write(printer, visible);
        }
    }
    return status;
}

enum tokmap_status printer_text(struct printer *printer, const struct tokmap_extent *extents, uint64_t extent_count,
                                bool start, struct tokmap_error *error)
{
    struct visible visible = {.file = stdout};
    enum tokmap_status status = TOKMAP_OK;
    assert(printer->tokenizer);
    tokenizer_decoder_begin(printer->decoder, !start);
    for (uint64_t i = 0; i < extent_count && !status; i++)
        status = extent_text(printer, extents[i], &visible, error);
    printer->text.count = 0;
    if (!status)
        status = tokenizer_decoder_end(printer->decoder, &printer->text, error);
    if (!status)
        text_write(printer, &visible);
    visible_end(&visible);
    mark_set(printer, false);
    return status;
}

enum tokmap_status printer_ids(struct printer *printer, uint64_t first, uint64_t count, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    bool any = false, marking = false;
    uint64_t span = 0;
    assert(!count || first < printer->info.tokens);
    while (count && !status && !ferror(stdout)) {
        status = chunk_read(printer, &first, &count, &span, error);
        for (uint64_t i = 0; i < span && !status; i++) {
            const bool mark = printer->marked && !counts_at(printer, i);
            char text[24];
            size_t used = 0;
            if (marking && !mark)
                text[used++] = ')';
            if (any)
                text[used++] = ' ';
            if (mark && !marking)
                text[used++] = '(';
            used += decimal_write(id_load(printer->chunk, printer->info.width, i), text + used);
            (void)fwrite(text, 1, used, stdout);
            marking = mark;
            any = true;
        }
    }
    if (marking)
        (void)fputc(')', stdout);
    return status;
}

/* Ranges of tokens that do not count, while they are collected. */
struct ranges {
    struct tokmap_extent *list;
    uint64_t count, capacity;
};

static enum tokmap_status ranges_add(struct ranges *ranges, uint64_t first, uint64_t tokens, struct tokmap_error *error)
{
    struct tokmap_extent *last = ranges->count ? &ranges->list[ranges->count - 1] : NULL;
    if (last && last->first_token + last->tokens == first) {
        last->tokens += tokens;
        return TOKMAP_OK;
    }
    if (!list_room(&ranges->list, ranges->count, &ranges->capacity, sizeof *ranges->list))
        return error_set_memory(error, "the ranges of a mask", ranges->count * sizeof *ranges->list);
    ranges->list[ranges->count++] = (struct tokmap_extent){first, tokens};
    return TOKMAP_OK;
}

/* Adds the member "uncounted". */
static void ranges_member(const struct ranges *ranges, struct cli_report *report)
{
    cli_report_array(report, "uncounted");
    for (uint64_t i = 0; i < ranges->count; i++) {
        const struct tokmap_extent *range = &ranges->list[i];
        cli_member_pair(report, NULL, range->first_token, range->first_token + range->tokens);
    }
    cli_report_close(report);
}

/* Takes an extent into JSON. done: tokens before it. */
static enum tokmap_status extent_json(struct printer *printer, struct tokmap_extent extent, uint64_t done,
                                      struct ranges *ranges, struct cli_report *report, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    assert(!extent.tokens || extent.first_token < printer->info.tokens);
    for (uint64_t span = 0; extent.tokens && !status; done += span) {
        status = chunk_read(printer, &extent.first_token, &extent.tokens, &span, error);
        if (!status && printer->tokenizer)
            status = chunk_decode(printer, 0, span, error);
        for (uint64_t i = 0; i < span && !status && !printer->tokenizer; i++)
            cli_member(report, NULL, cli_number(id_load(printer->chunk, printer->info.width, i)));
        for (uint64_t at = 0, end; at < span && !status && printer->mask; at = end) {
            end = alike_end(printer, at, span);
            if (!counts_at(printer, at))
                status = ranges_add(ranges, done + at, end - at, error);
        }
    }
    return status;
}

enum tokmap_status printer_json(struct printer *printer, const struct tokmap_extent *extents, uint64_t extent_count,
                                bool start, struct cli_report *report, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    struct ranges ranges = {0};
    uint64_t done = 0;
    printer->text.count = 0;
    if (printer->tokenizer)
        tokenizer_decoder_begin(printer->decoder, !start);
    else
        cli_report_array(report, "ids");
    for (uint64_t i = 0; i < extent_count && !status; done += extents[i++].tokens)
        status = extent_json(printer, extents[i], done, &ranges, report, error);
    if (!status && printer->tokenizer)
        status = tokenizer_decoder_end(printer->decoder, &printer->text, error);
    if (!printer->tokenizer)
        cli_report_close(report);
    else if (!status)
        cli_member(report, "text",
                   cli_bytes_text(printer->text.count ? printer->text.bytes : "", (size_t)printer->text.count));
    if (printer->mask && !status)
        ranges_member(&ranges, report);
    free(ranges.list);
    return status;
}

enum tokmap_status printer_order(struct printer *printer, const struct tokmap_document *document,
                                 struct fim_reader *reader, struct tokmap_error *error)
{
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct about_facts about = {.path = NULL};
    uint64_t first = document->first_token, count = document->tokens, span;
    enum tokmap_status status =
        printer->info.shards ? tokmap_dataset_shard(printer->dataset, document->shard, &shard, error) : TOKMAP_OK;
    if (!status && printer->info.shards)
        status = about_read(&shard, &about, error);
    fim_reader_begin(reader, &about.fim);
    about_free(&about);
    while (count && !status && reader->marks.used) {
        status = chunk_read(printer, &first, &count, &span, error);
        if (!status)
            status = fim_reader_add(reader, printer->chunk, printer->info.width, span, error);
    }
    if (!status)
        status = fim_reader_end(reader, error);
    for (uint64_t i = 0; i < reader->count; i++)
        reader->extents[i].first_token += document->first_token;
    return status;
}

void order_print(const struct fim_reader *order, FILE *file)
{
    (void)fputs(", stored rearranged to fill in the middle: ", file);
    if (!order->marks.pieces)
        (void)fprintf(file, "%s-middle", order->spm ? "suffix-prefix" : "prefix-suffix");
    else
        (void)fprintf(file, "%" PRIu64 " prefix-suffix-middle, %" PRIu64 " suffix-prefix-middle", order->psm,
                      order->spm);
    (void)fputs("; --specials prints it as it is stored", file);
}

void order_members(const struct fim_reader *order, struct cli_report *report)
{
    cli_report_object(report, "fim");
    cli_numbers(report, "psm|spm", order->psm, order->spm);
    cli_report_close(report);
}

/* ---- where tokens came from ---- */

/* Finds out whether the document is alone in its file. A text file has one document, so that the number of its record
 * says nothing. Records of a file are consecutive documents, so the next document tells whether record 0 is the only
 * one. */
static enum tokmap_status part_alone(const struct tokmap_dataset *dataset, uint64_t documents, struct part *part,
                                     struct tokmap_error *error)
{
    struct tokmap_origin next;
    part->alone = part->record == 0;
    if (!part->alone || part->document.number + 1 >= documents)
        return TOKMAP_OK;
    const enum tokmap_status status = tokmap_dataset_origin(dataset, part->document.number + 1, &next, error);
    if (!status)
        part->alone = next.record == 0 || next.path_bytes != part->path_bytes ||
                      memcmp(next.path, part->path, (size_t)part->path_bytes) != 0;
    return status == TOKMAP_ERROR_NOT_FOUND ? TOKMAP_OK : status;
}

static void value_ignore(void *user, const char *name, const struct tokmap_value *value)
{
    (void)user, (void)name, (void)value;
}

static enum tokmap_status part_origin(const struct tokmap_dataset *dataset, struct part *part,
                                      struct tokmap_error *error)
{
    struct tokmap_origin origin;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    part->dataset = dataset;
    if (!info.shards) { /* synthetic: no shard and no origin */
        part->tokens_path = NULL;
        part->path = NULL;
        return TOKMAP_OK;
    }
    enum tokmap_status status = tokmap_dataset_shard(dataset, part->document.shard, &shard, error);
    if (!status) /* that they can be read is known when they are printed */
        status = document_values(dataset, part->document.number, value_ignore, NULL, error);
    if (status)
        return status;
    part->tokens_path = shard.tokens_path;
    status = tokmap_dataset_origin(dataset, part->document.number, &origin, error);
    if (status == TOKMAP_ERROR_NOT_FOUND) {
        part->path = NULL;
        return TOKMAP_OK;
    }
    if (status)
        return status;
    part->path = origin.path;
    part->path_bytes = origin.path_bytes;
    part->record = origin.record;
    return part_alone(dataset, info.documents, part, error);
}

enum tokmap_status parts_walk(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count,
                              void (*each)(void *user, const struct part *part), void *user, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(dataset);
    enum tokmap_status status = TOKMAP_OK;
    if (!info.documents) /* other projects' files that do not say where documents are */
        return status;
    for (uint64_t offset = 0; offset < count && !status;) {
        struct part part = {.offset = offset};
        const uint64_t token = (first + offset) % info.tokens;
        status = tokmap_dataset_document_at(dataset, token, &part.document, error);
        if (status)
            break;
        /* Without this check an index that contradicts itself could make the loop endless. */
        if (token < part.document.first_token || token - part.document.first_token >= part.document.tokens)
            return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                             "the index assigns token %" PRIu64 " to document %" PRIu64 ", which does not contain it; "
                             "run 'tokmap verify'",
                             token, part.document.number);
        part.from = token - part.document.first_token;
        part.count = min64(part.document.tokens - part.from, count - offset);
        status = part_origin(dataset, &part, error);
        if (!status)
            each(user, &part);
        offset += part.count;
    }
    return status;
}

enum tokmap_status part_whole(const struct tokmap_dataset *dataset, uint64_t number, struct part *part,
                              struct tokmap_error *error)
{
    memset(part, 0, sizeof *part);
    const enum tokmap_status status = tokmap_dataset_document(dataset, number, &part->document, error);
    part->count = part->document.tokens;
    return status ? status : part_origin(dataset, part, error);
}

/* Returns whether the input file is JSONL by its name, so that record i is line i + 1. */
static bool part_is_line(const struct part *part)
{
    const uint64_t bytes = part->path_bytes - file_type_packed_ending(part->path, part->path_bytes);
    return path_ends_in(part->path, bytes, ".jsonl") || path_ends_in(part->path, bytes, ".ndjson");
}

/* Prints a value on a line of its own. Line ends between the parts of an object or an array become spaces. */
static void value_print(void *user, const char *name, const struct tokmap_value *value)
{
    struct visible visible = {.file = user, .line = true};
    size_t bytes = utf8_cut(value->json, (size_t)min64(value->bytes, VALUE_SHOWN));
    (void)fputs("    ", user);
    visible_write(&visible, name, strlen(name));
    visible_write(&visible, ": ", 2);
    for (size_t i = 0; i < bytes; i++)
        visible_write(&visible, strchr("\r\n\t", value->json[i]) && value->json[i] ? " " : &value->json[i], 1);
    visible_end(&visible);
    if (bytes < value->bytes)
        (void)fprintf(user, "... (%" PRIu64 " bytes)", value->bytes);
    (void)fputc('\n', user);
}

static void part_line(const struct part *part, FILE *file)
{
    const bool whole = part->count == part->document.tokens;
    (void)fprintf(file, "document %" PRIu64, part->document.number);
    if (whole)
        (void)fprintf(file, ", whole (%" PRIu64 " token%s)", part->count, part->count == 1 ? "" : "s");
    else
        (void)fprintf(file, ", tokens %" PRIu64 "..%" PRIu64 " of %" PRIu64, part->from, part->from + part->count,
                      part->document.tokens);
    (void)fprintf(file, "%s, at token %" PRIu64 " of the dataset, ", part->excluded ? ", excluded" : "",
                  part->document.first_token + part->from);
    if (!part->tokens_path) {
        (void)fputs("synthetic\n", file);
        return;
    }
    visible_name(file, part->tokens_path, strlen(part->tokens_path));
    (void)fputs(", ", file);
    if (part->path) {
        const bool piped = part->path_bytes == 1 && part->path[0] == '-';
        visible_name(file, piped ? "standard input" : part->path,
                     piped ? strlen("standard input") : (size_t)part->path_bytes);
        /* Records are counted from 0, but messages and editors count lines from 1: a bare number would mislead. */
        if (part_is_line(part))
            (void)fprintf(file, " line %" PRIu64 " (record %" PRIu64 ")\n", part->record + 1, part->record);
        else if (part->alone)
            (void)fputc('\n', file);
        else
            (void)fprintf(file, " record %" PRIu64 " (counted from 0)\n", part->record);
    } else {
        (void)fputs("origin not recorded\n", file);
    }
}

void part_print(const struct part *part, FILE *file)
{
    part_line(part, file);
    const enum tokmap_status status = document_values(part->dataset, part->document.number, value_print, file, NULL);
    if (status == TOKMAP_ERROR_MEMORY)
        cli_output_lost();
    else if (status)
        (void)fputs("    its columns cannot be read; run `tokmap verify` on the dataset\n", file);
}

struct value_members {
    struct cli_report *report;
    bool begun;
};

static void value_member(void *user, const char *name, const struct tokmap_value *value)
{
    struct value_members *values = user;
    if (!values->begun)
        cli_report_object(values->report, "columns");
    values->begun = true;
    cli_member(values->report, name, cli_raw(value->json, (size_t)value->bytes));
}

void part_members(const struct part *part, struct cli_report *report)
{
    const bool is_line = part->path && part_is_line(part);
    cli_numbers(report, "document|first_token|tokens|from|count|offset", part->document.number,
                part->document.first_token, part->document.tokens, part->from, part->count, part->offset);
    if (part->excluded)
        cli_member(report, "excluded", cli_bool(true));
    cli_member(report, "shard", cli_text(part->tokens_path));
    cli_member(report, "path", part->path ? cli_bytes_text(part->path, (size_t)part->path_bytes) : cli_null());
    cli_member(report, "record", cli_number_if(part->path, part->record));
    cli_member(report, "line", cli_number_if(is_line, part->record + 1));
    struct value_members values = {report, false};
    const enum tokmap_status status =
        document_values(part->dataset, part->document.number, value_member, &values, NULL);
    if (status == TOKMAP_ERROR_MEMORY)
        cli_output_lost();
    if (status && !values.begun)
        cli_member(report, "columns", cli_null()); /* they could be read before */
    if (values.begun)
        cli_report_close(report);
}
