/* SPDX-License-Identifier: MIT */
/*
 * The tokens are read by blocks of a shard. For each block, `ends_next` lists the documents that end in it, at most
 * ENDS_AT_ONCE at a time; the tokens up to the last of these go to the output with them, and then the next ones, so
 * that any number of empty documents needs no memory.
 */
#include "dataset_convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/data/block_compare.h"
#include "commands/data/olmo_documents.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/dataset_about.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "dataset/block_scan.h"
#include "foreign_writer.h"
#include "format/foreign/foreign_name.h"
#include "format/index_verify.h"
#include "format/layout.h"
#include "format/shard_file.h"
#include "format/shard_writer.h"
#include "platform/process.h"

/* ---- conversion ---- */

enum { ENDS_AT_ONCE = 4096 };
enum { VALUES_AT_ONCE = 256 }; /* documents whose values are looked up at once */

/* Ways to find the ends of documents. */
enum ends_by { BY_INDEX, BY_CSV, BY_SEARCH };

struct converting {
    const struct tokmap_dataset *dataset;
    const struct convert_options *options;
    struct tokmap_dataset_info info;
    char tokenizer[ABOUT_NAME];     /* the foreign writer refers to it until it commits */
    struct foreign_writer *foreign; /* or NULL */
    struct shard_writer *shard;     /* or NULL; its members are below */
    enum ends_by by;
    uint64_t document; /* BY_INDEX: the next one to end */
    uint64_t next_end; /* BY_INDEX: where it ends; with peeked */
    bool peeked;
    uint64_t last_end; /* of the documents that are written */
    uint64_t seen;     /* BY_SEARCH: the next token to look at */
    struct olmo_documents csv;
    uint64_t csv_ends[ENDS_AT_ONCE], csv_used, csv_at;
    bool csv_open; /* the ends of the current shard are being read */
    bool origins;  /* the documents have them */
    uint64_t ends[ENDS_AT_ONCE];
    struct tokmap_origin places[ENDS_AT_ONCE];
    uint8_t *tokens, *bits;
    struct block_scan *scan;
    /* Of a shard: tokens of the same or another width, documents, mask, origins, and columns. */
    uint32_t width;
    const char *names[COLUMNS_MAX];
    size_t columns;             /* 0 where documents are not those that the dataset numbers */
    struct shard_value *values; /* of VALUES_AT_ONCE documents */
    uint64_t ended;             /* documents of the shard */
    bool open;                  /* a document has begun */
    uint8_t *converted;         /* BLOCK_BYTES * 2 */
};

static bool is_stated(const struct converting *converting)
{
    return converting->options->tokenizer && converting->options->tokenizer->vocabulary;
}

/* ---- writing a shard ---- */

/* Statuses: those of shard_writer_open(), and of reading the dataset. */
static enum tokmap_status new_shard_open(struct converting *converting, bool masked, struct tokmap_error *error)
{
    const struct convert_options *options = converting->options;
    const struct tokmap_dataset_info *info = &converting->info;
    enum tokmap_status status = TOKMAP_OK;
    if (converting->by == BY_INDEX)
        status =
            tokmap_dataset_columns(converting->dataset, converting->names, COLUMNS_MAX, &converting->columns, error);
    converting->converted = malloc(2 * BLOCK_BYTES);
    converting->values =
        converting->columns ? calloc(VALUES_AT_ONCE * converting->columns, sizeof *converting->values) : NULL;
    if (!status && (!converting->converted || (converting->columns && !converting->values)))
        status = error_set_memory(error, "the shard", 2 * BLOCK_BYTES);
    const uint64_t most = converting->width == 2 ? (uint64_t)1 << 16 : (uint64_t)1 << 32;
    struct shard_writer_options writer = {.width = converting->width,
                                          .vocabulary = min64(info->vocabulary, most),
                                          .eod_id = info->eod_id,
                                          .bos_id = info->bos_id,
                                          .replace = options->replace,
                                          .mask = masked,
                                          .sync = options->sync,
                                          .columns = converting->names,
                                          .column_count = (uint32_t)converting->columns};
    memcpy(writer.tokenizer, info->tokenizer, sizeof writer.tokenizer);
    return status ? status : shard_writer_open(&converting->shard, options->prefix, &writer, error);
}

/* Copies the values of the columns for the next documents. */
static enum tokmap_status values_copy(struct converting *converting, uint64_t documents, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; done < documents && converting->columns && !status;) {
        const uint64_t some = min64(documents - done, VALUES_AT_ONCE);
        for (uint64_t i = 0; i < some * converting->columns && !status; i++) {
            struct tokmap_value value = {NULL, 0};
            status = tokmap_dataset_value(converting->dataset, converting->ended + done + i / converting->columns,
                                          converting->names[i % converting->columns], &value, error);
            converting->values[i] = (struct shard_value){value.json, value.bytes};
        }
        if (!status)
            status = shard_writer_values(converting->shard, converting->values, some, error);
        done += some;
    }
    return status;
}

/* Converts to the width of the shard. Returns NULL if an id does not fit. */
static const uint8_t *converted(struct converting *converting, const uint8_t *tokens, uint64_t count, uint64_t largest)
{
    if (converting->width == converting->info.width)
        return tokens;
    if (converting->width == 2 && largest > UINT16_MAX)
        return NULL;
    ids_convert(converting->converted, converting->width, tokens, count);
    return converting->converted;
}

/* Returns whether two documents are records of the same input that follow each other. */
static bool follows(const struct tokmap_origin *first, const struct tokmap_origin *second)
{
    return second->record == first->record + 1 && second->path_bytes == first->path_bytes &&
           !memcmp(second->path, first->path, (size_t)first->path_bytes);
}

/* Adds documents with their origins: one call of the writer for each row of records that follow each other. */
static enum tokmap_status origins_add(struct converting *converting, const uint8_t *tokens, uint64_t count,
                                      const uint64_t *ends, uint64_t documents, uint64_t largest,
                                      struct tokmap_error *error)
{
    const struct tokmap_dataset *dataset = converting->dataset;
    const uint32_t width = converting->width;
    uint64_t at = 0, rebased[VALUES_AT_ONCE];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; (i < documents || at < count) && !status;) {
        struct tokmap_origin origin, next;
        uint64_t used = 0;
        if (!converting->open) {
            status = tokmap_dataset_origin(dataset, converting->ended + i, &origin, error);
            if (!status)
                status = shard_writer_origin(converting->shard, origin.path, origin.path_bytes, origin.record, error);
            if (status)
                return status;
        }
        for (bool more = i < documents; more;) {
            rebased[used++] = ends[i++] - at;
            more = !converting->open && i < documents && used < VALUES_AT_ONCE;
            if (more && (status = tokmap_dataset_origin(dataset, converting->ended + i, &next, error)))
                return status;
            more = more && follows(&origin, &next);
            if (more)
                origin = next;
        }
        const uint64_t stop = used ? ends[i - 1] : count;
        status = shard_writer_add(converting->shard, tokens + at * width, stop - at, rebased, used, largest, error);
        converting->open = !used;
        at = stop;
    }
    return status;
}

/* Appends tokens of the dataset's width, as foreign_writer_add() does; the documents are those of the dataset, in
 * order. largest: the largest id of the tokens. Statuses: those of shard_writer_add(). */
static enum tokmap_status shard_add(struct converting *converting, const uint8_t *tokens, uint64_t count,
                                    const uint64_t *ends, uint64_t documents, uint64_t largest,
                                    struct tokmap_error *error)
{
    const uint8_t *stored = converted(converting, tokens, count, largest);
    if (!stored)
        return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                         "the dataset has the id %" PRIu64 ", but tokens of 2 bytes hold ids below 65,536; use "
                         "--width of 4",
                         largest);
    enum tokmap_status status =
        converting->origins ? origins_add(converting, stored, count, ends, documents, largest, error)
                            : shard_writer_add(converting->shard, stored, count, ends, documents, largest, error);
    if (!status)
        status = values_copy(converting, documents, error);
    converting->ended += documents;
    return status;
}

static enum tokmap_status tokenizer_add(const struct converting *converting, struct cli_report *report,
                                        struct tokmap_error *error)
{
    static const uint8_t unknown[16];
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct about_facts facts = {0};
    if (is_stated(converting)) {
        const char *about = converting->options->tokenizer->about;
        cli_member(report, "tokenizer", cli_raw(about, strlen(about)));
        return TOKMAP_OK;
    }
    if (!memcmp(converting->info.tokenizer, unknown, 16) || !converting->info.shards)
        return TOKMAP_OK;
    enum tokmap_status status = tokmap_dataset_shard(converting->dataset, 0, &shard, error);
    if (!status)
        status = about_read(&shard, &facts, error);
    if (!status) {
        cli_report_object(report, "tokenizer");
        cli_member(report, "name", cli_text(facts.name));
        cli_member(report, "fingerprint", cli_text(HASH128_HEX(converting->info.tokenizer)));
        cli_member(report, "special", cli_text(facts.recognizes ? "recognise" : "text")); /* kept spelling */
        cli_member_text_if(report, "pattern", facts.pattern);
        cli_member_text_if(report, "pattern_regex", facts.pattern_regex);
        cli_member_text_if(report, "special_tokens", facts.special_tokens);
        cli_member_text_if(report, "cut_as", facts.cut_as);
        cli_member_text_if(report, "path", facts.path);
        cli_report_close(report);
    }
    about_free(&facts);
    return status;
}

/* Makes the text of the about section: the tool, the kind of the source, and the tokenizer if the source recorded
 * it. */
static enum tokmap_status about_text(const struct converting *converting, char **text, size_t *bytes,
                                     struct tokmap_error *error)
{
    struct cli_report report;
    cli_report_begin_text(&report, true);
    cli_member(&report, "tool", cli_text("tokmap convert"));
    cli_member(&report, "version", cli_text(tokmap_version()));
    cli_member(&report, "kind", cli_text(converting->info.kind));
    const enum tokmap_status status = tokenizer_add(converting, &report, error);
    *text = cli_report_end_text(&report, bytes);
    return status || *text ? status : error_set_memory(error, "the about section", 0);
}

/* Finishes the shard. content: its id. Statuses: those of shard_writer_commit(). */
static enum tokmap_status new_shard_commit(struct converting *converting, struct foreign_written *written,
                                           uint8_t content[16], struct tokmap_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    enum tokmap_status status = about_text(converting, &text, &bytes, error);
    *written = (struct foreign_written){.tokens = shard_writer_tokens(converting->shard),
                                        .documents = shard_writer_documents(converting->shard)};
    written->written_bytes = written->tokens * converting->width;
    if (!status) {
        status = shard_writer_commit(converting->shard, text, bytes, content, error);
        converting->shard = NULL;
    }
    free(text);
    return status;
}

/* A shard that is being read; a synthetic dataset is one. */
struct reading {
    struct tokmap_shard_info shard;
    struct index index;
    bool hashed; /* the index is open, and its blocks are those that are read */
};

/* ---- documents ---- */

static enum tokmap_status index_peek(struct converting *converting, struct tokmap_error *error)
{
    struct tokmap_document document;
    const enum tokmap_status status =
        tokmap_dataset_document(converting->dataset, converting->document, &document, error);
    if (status)
        return status;
    converting->next_end = document.first_token + document.tokens;
    if (document.first_token != converting->last_end)
        return error_set(error, TOKMAP_ERROR_CORRUPT, converting->options->name, TOKMAP_NO_OFFSET,
                         "document %" PRIu64 " begins at token %" PRIu64
                         ", but the one before it ends at token %" PRIu64 "; run `tokmap verify` on the dataset",
                         converting->document, document.first_token, converting->last_end);
    converting->peeked = true;
    return TOKMAP_OK;
}

static enum tokmap_status index_next(struct converting *converting, uint64_t last, uint64_t *used,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    while (*used < ENDS_AT_ONCE && converting->document < converting->info.documents) {
        if (!converting->peeked && (status = index_peek(converting, error)))
            return status;
        if (converting->next_end > last)
            break;
        if (converting->origins)
            status =
                tokmap_dataset_origin(converting->dataset, converting->document, &converting->places[*used], error);
        if (status)
            return status;
        converting->ends[(*used)++] = converting->last_end = converting->next_end;
        converting->document++;
        converting->peeked = false;
    }
    return TOKMAP_OK;
}

/* Adds an end that a search finds; one that is there already is left out. */
static void end_found(struct converting *converting, uint64_t end, uint64_t *used)
{
    if (end != converting->last_end)
        converting->ends[(*used)++] = converting->last_end = end;
}

/* first: the number of the first token of the block, which ends at `last`. */
static void search_next(struct converting *converting, uint64_t first, uint64_t last, uint64_t *used)
{
    const struct tokmap_dataset_info *info = &converting->info;
    for (; converting->seen < last && *used + 2 <= ENDS_AT_ONCE; converting->seen++) {
        const uint64_t id = id_load(converting->tokens, info->width, converting->seen - first);
        if (id == info->bos_id)
            end_found(converting, converting->seen, used);
        if (id == info->eod_id)
            end_found(converting, converting->seen + 1, used);
    }
}

/* Takes the ends of the .csv.gz of the current shard, the last of which is the end of its tokens. */
static enum tokmap_status csv_next(struct converting *converting, const struct tokmap_shard_info *shard, uint64_t last,
                                   uint64_t *used, struct tokmap_error *error)
{
    while (converting->csv_open && *used < ENDS_AT_ONCE) {
        if (converting->csv_at == converting->csv_used) {
            const enum tokmap_status status =
                olmo_documents_read(&converting->csv, converting->options->program, shard->tokens_path, shard->tokens,
                                    converting->csv_ends, ENDS_AT_ONCE, &converting->csv_used, error);
            converting->csv_at = 0;
            if (status)
                return status;
            converting->csv_open = converting->csv_used != 0;
            continue;
        }
        const uint64_t end = shard->first_token + converting->csv_ends[converting->csv_at];
        if (end > last)
            break;
        converting->ends[(*used)++] = converting->last_end = end;
        converting->csv_at++;
    }
    return TOKMAP_OK;
}

/* Decides how the ends of a shard's documents are found. */
static enum tokmap_status documents_begin(struct converting *converting, const struct tokmap_shard_info *shard,
                                          struct tokmap_error *error)
{
    struct foreign_name name;
    if (converting->by == BY_INDEX || strcmp(converting->info.kind, "olmo") != 0)
        return TOKMAP_OK;
    if (foreign_name_parse(&name, converting->options->name, NULL) || !name.words.width)
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, converting->options->name, TOKMAP_NO_OFFSET,
                         "this is a part of files without indexes, so the documents that their .csv.gz lists cannot be "
                         "assigned to it; run `tokmap index` on the files first");
    converting->csv_at = converting->csv_used = 0;
    const enum tokmap_status status =
        olmo_documents_read(&converting->csv, converting->options->program, shard->tokens_path, shard->tokens,
                            converting->csv_ends, ENDS_AT_ONCE, &converting->csv_used, error);
    converting->csv_open = !status && converting->csv_used;
    converting->by = status == TOKMAP_ERROR_NOT_FOUND ? BY_SEARCH : BY_CSV;
    return converting->by == BY_SEARCH ? TOKMAP_OK : status;
}

/* Lists the next documents that end in the block [first, last) of a shard, in converting->ends. */
static enum tokmap_status ends_next(struct converting *converting, const struct tokmap_shard_info *shard,
                                    uint64_t first, uint64_t last, uint64_t *used, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    *used = 0;
    if (converting->by == BY_INDEX)
        return index_next(converting, last, used, error);
    if (converting->by == BY_CSV)
        status = csv_next(converting, shard, last, used, error);
    else
        search_next(converting, first, last, used);
    /* A file ends its last document. */
    const bool listed = *used < ENDS_AT_ONCE && (converting->by == BY_CSV || converting->seen == last);
    if (!status && listed && last == shard->first_token + shard->tokens)
        end_found(converting, last, used);
    return status;
}

/* ---- one block ---- */

/* Reports the first id of a block that is not in the vocabulary. There is one. */
static enum tokmap_status id_too_large(const struct converting *converting, const struct tokmap_shard_info *shard,
                                       uint64_t first, struct tokmap_error *error)
{
    const struct tokmap_dataset_info *info = &converting->info;
    uint64_t i = 0, id;
    while ((id = id_load(converting->tokens, info->width, i)) < info->vocabulary)
        i++;
    return error_set(error, TOKMAP_ERROR_TOKEN, shard->tokens_path, TOKMAP_NO_OFFSET,
                     "token %" PRIu64 " of the dataset has the id %" PRIu64 ", but ids must be below %" PRIu64
                     "; restore the file, or correct %s",
                     first + i, id, info->vocabulary,
                     is_stated(converting) ? "the tokenizer: another one made the ids" : "vocab=V in the name");
}

/* Reads the block, and compares it with its hash and the vocabulary. */
static enum tokmap_status block_read(const struct converting *converting, const struct reading *reading, uint64_t first,
                                     uint64_t count, uint64_t *largest, struct tokmap_error *error)
{
    const uint32_t width = converting->info.width;
    const uint64_t at = (first - reading->shard.first_token) * width;
    const size_t bytes = (size_t)count * width, part = bytes == BLOCK_BYTES ? SCAN_PART_BYTES : bytes;
    uint64_t hash;
    enum tokmap_status status = tokmap_dataset_copy(converting->dataset, first, count, converting->tokens, error);
    if (status)
        return status;
    for (size_t done = 0; done < bytes; done += part)
        block_scan_part(converting->scan, converting->tokens + done, part, width, done + part == bytes, NULL);
    block_scan_result(converting->scan, &hash, largest);
    if (reading->hashed && hash != index_block_hash(&reading->index, at / BLOCK_BYTES))
        return block_compare_wrong(reading->shard.tokens_path, at / BLOCK_BYTES, error);
    return *largest < converting->info.vocabulary ? TOKMAP_OK : id_too_large(converting, &reading->shard, first, error);
}

static enum tokmap_status mask_write(struct converting *converting, uint64_t first, uint64_t count,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = tokmap_dataset_mask(converting->dataset, first, count, converting->bits, error);
    if (status)
        return status;
    return converting->shard ? shard_writer_mask(converting->shard, converting->bits, 0, count, error)
                             : foreign_writer_mask(converting->foreign, converting->bits, count, error);
}

static enum tokmap_status block_convert(struct converting *converting, const struct reading *reading, uint64_t first,
                                        uint64_t count, bool masked, struct tokmap_error *error)
{
    const uint64_t last = first + count;
    uint64_t largest = 0, used = ENDS_AT_ONCE, at = first;
    enum tokmap_status status = block_read(converting, reading, first, count, &largest, error);
    converting->seen = first;
    while (!status && used) {
        status = ends_next(converting, &reading->shard, first, last, &used, error);
        const uint64_t stop = used ? converting->ends[used - 1] : last;
        const uint8_t *tokens = converting->tokens + (at - first) * converting->info.width;
        for (uint64_t i = 0; i < used; i++)
            converting->ends[i] -= at;
        if (!status && converting->shard)
            status = shard_add(converting, tokens, stop - at, converting->ends, used, largest, error);
        else if (!status)
            status = foreign_writer_add(converting->foreign, tokens, stop - at, converting->ends, used,
                                        converting->origins ? converting->places : NULL, largest, error);
        at = stop;
    }
    return status || !masked ? status : mask_write(converting, first, count, error);
}

/* ---- shards ---- */

/* Opens the index of a shard, to compare its blocks. A part of a shard has blocks at other places. */
static enum tokmap_status reading_begin(struct reading *reading, struct tokmap_error *error)
{
    const char *path = reading->shard.index_path;
    reading->hashed = false;
    if (!path || !shard_file_is(path, SHARD_INDEX))
        return TOKMAP_OK;
    const enum tokmap_status status = index_open_as(&reading->index, path, TOKMAP_READ_PREAD, error);
    if (status)
        return status;
    reading->hashed = !memcmp(reading->index.shard.content, reading->shard.content, 16) &&
                      reading->index.shard.tokens == reading->shard.tokens;
    const enum tokmap_status checked =
        reading->hashed ? index_blocks_check(&reading->index, 0, index_blocks(&reading->index), error) : TOKMAP_OK;
    reading->hashed = reading->hashed && !checked;
    if (!reading->hashed)
        index_close(&reading->index);
    return checked;
}

static enum tokmap_status shard_convert(struct converting *converting, struct reading *reading, bool masked,
                                        struct tokmap_error *error)
{
    const struct convert_options *options = converting->options;
    const uint64_t first = reading->shard.first_token, last = first + reading->shard.tokens;
    const uint64_t step = BLOCK_BYTES / converting->info.width;
    enum tokmap_status status = documents_begin(converting, &reading->shard, error);
    for (uint64_t at = first; at < last && !status; at += step) {
        if (os_signal_caught())
            return error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        status = block_convert(converting, reading, at, min64(step, last - at), masked, error);
        if (!status)
            options->progress(options->user, min64(at + step, last));
    }
    return status;
}

static enum tokmap_status shards_convert(struct converting *converting, bool masked, struct tokmap_error *error)
{
    struct reading *reading = calloc(1, sizeof *reading);
    enum tokmap_status status = reading ? TOKMAP_OK : error_set_memory(error, "the dataset", sizeof *reading);
    for (uint64_t number = 0; number < max64(converting->info.shards, 1) && !status; number++) {
        reading->shard = (struct tokmap_shard_info){.size = sizeof reading->shard, .tokens = converting->info.tokens};
        reading->hashed = false;
        if (converting->info.shards)
            status = tokmap_dataset_shard(converting->dataset, number, &reading->shard, error);
        if (!status && converting->info.shards)
            status = reading_begin(reading, error);
        if (!status)
            status = shard_convert(converting, reading, masked, error);
        if (reading->hashed)
            index_close(&reading->index);
    }
    free(reading);
    return status;
}

/* ---- the whole ---- */

static enum tokmap_status index_writer_open(struct converting *converting, uint32_t stored, bool masked,
                                            struct tokmap_error *error)
{
    const struct convert_options *options = converting->options;
    const struct tokmap_dataset_info *info = &converting->info;
    if (is_stated(converting))
        memcpy(converting->tokenizer, options->tokenizer->name, sizeof converting->tokenizer);
    else
        (void)dataset_tokenizer_name(converting->dataset, converting->tokenizer);
    const struct foreign_writer_options writer = {.target = options->target,
                                                  .prefix = options->prefix,
                                                  .width = info->width,
                                                  .stored = stored,
                                                  .vocabulary = info->vocabulary,
                                                  .eod_id = info->eod_id,
                                                  .bos_id = info->bos_id,
                                                  .tokenizer = converting->tokenizer,
                                                  .mask = masked,
                                                  .shared_tokens = options->shared_tokens,
                                                  .replace = options->replace,
                                                  .equal = options->equal,
                                                  .sync = options->sync};
    return foreign_writer_open(&converting->foreign, &writer, error);
}

static enum tokmap_status output_open(struct converting *converting, bool masked, struct convert_result *result,
                                      struct tokmap_error *error)
{
    const struct convert_options *options = converting->options;
    const struct tokmap_dataset_info *info = &converting->info;
    const uint32_t stored = options->width                                            ? options->width
                            : !options->to_shard && options->target == TARGET_NANOGPT ? 2
                                                                                      : info->width;
    size_t columns = 0;
    if (!options->to_shard) {
        const enum tokmap_status status = tokmap_dataset_columns(converting->dataset, NULL, 0, &columns, error);
        result->columns = columns;
        return status && status != TOKMAP_ERROR_LIMIT ? status : index_writer_open(converting, stored, masked, error);
    }
    converting->width = stored;
    return new_shard_open(converting, masked, error);
}

/* Finds out what the dataset has. */
static enum tokmap_status source_examine(struct converting *converting, struct tokmap_error *error)
{
    struct tokmap_origin origin;
    converting->info = info_of_dataset(converting->dataset);
    /* Without an index, OLMo's files can have a list that the library has not read. */
    const bool listed = !strcmp(converting->info.kind, "olmo");
    converting->by = (converting->info.documents && !listed) || !converting->info.tokens ? BY_INDEX : BY_SEARCH;
    converting->origins = converting->by == BY_INDEX && converting->info.documents &&
                          !tokmap_dataset_origin(converting->dataset, 0, &origin, NULL);
    /* If some shards record origins and others do not, none are kept. */
    for (uint64_t i = 0; i < converting->info.shards && converting->origins; i++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        const enum tokmap_status status = tokmap_dataset_shard(converting->dataset, i, &shard, error);
        if (status)
            return status;
        if (shard.documents && tokmap_dataset_origin(converting->dataset, shard.first_document, &origin, NULL))
            converting->origins = false;
    }
    return TOKMAP_OK;
}

/* Takes the vocabulary of the tokenizer that is stated. */
static enum tokmap_status vocabulary_take(struct converting *converting, struct tokmap_error *error)
{
    struct tokmap_dataset_info *info = &converting->info;
    if (!is_stated(converting))
        return TOKMAP_OK;
    info->vocabulary = converting->options->tokenizer->vocabulary;
    memcpy(info->tokenizer, converting->options->tokenizer->fingerprint, sizeof info->tokenizer);
    const bool eod = info->eod_id != TOKMAP_NO_ID && info->eod_id >= info->vocabulary;
    if (!eod && (info->bos_id == TOKMAP_NO_ID || info->bos_id < info->vocabulary))
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_MISMATCH, converting->options->name, TOKMAP_NO_OFFSET,
                     "documents %s with token %" PRIu64 ", which the tokenizer with its %" PRIu64
                     " ids does not have; correct --tokenizer, or the words eod and bos of the name",
                     eod ? "end" : "begin", eod ? info->eod_id : info->bos_id, info->vocabulary);
}

enum tokmap_status dataset_convert(const struct tokmap_dataset *dataset, const struct convert_options *options,
                                   struct convert_result *result, struct tokmap_error *error)
{
    struct converting *converting = calloc(1, sizeof *converting);
    memset(result, 0, sizeof *result);
    if (!converting)
        return error_set_memory(error, "the conversion", sizeof *converting);
    *converting = (struct converting){.dataset = dataset, .options = options};
    enum tokmap_status status = source_examine(converting, error);
    if (!status)
        status = vocabulary_take(converting, error);
    result->masked = converting->info.masked && (options->to_shard || foreign_target_has_mask(options->target));
    result->mask_dropped = converting->info.masked && !result->masked;
    if (!status && result->mask_dropped && !options->drop_mask)
        status =
            error_set(error, TOKMAP_ERROR_UNSUPPORTED, options->name, TOKMAP_NO_OFFSET,
                      "the dataset has a mask, and the files of %s cannot have one; convert to datatrove, or leave "
                      "the mask out with --drop-mask",
                      foreign_target_name(options->target));
    converting->tokens = malloc(BLOCK_BYTES);
    converting->bits = malloc(BLOCK_BYTES / 16 + 1);
    converting->scan = block_scan_new();
    if (!status && (!converting->tokens || !converting->bits || !converting->scan))
        status = error_set_memory(error, "a block of tokens", BLOCK_BYTES);
    if (!status)
        status = output_open(converting, result->masked, result, error);
    if (!status)
        status = shards_convert(converting, result->masked, error);
    if (!status && converting->shard)
        status = new_shard_commit(converting, &result->written, result->content, error);
    else if (!status)
        status = foreign_writer_commit(converting->foreign, &result->written, error);
    else
        foreign_writer_abort(converting->foreign);
    shard_writer_abort(converting->shard);
    free(converting->values);
    free(converting->converted);
    olmo_documents_free(&converting->csv);
    free(converting->tokens);
    free(converting->bits);
    block_scan_free(converting->scan);
    free(converting);
    return status;
}
