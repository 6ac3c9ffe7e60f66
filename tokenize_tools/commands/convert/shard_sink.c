/* shard_sink.c - see shard_sink.h. */
#include "shard_sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/options/stated_tokenizer.h"
#include "commands/report/dataset_about.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "format/layout.h"
#include "format/shard_writer.h"

enum { VALUES_AT_ONCE = 256 }; /* documents whose values are looked up at once */

struct shard_sink {
    struct shard_sink_options options;
    struct tokmap_dataset_info info;
    struct shard_writer *writer;
    const char *names[COLUMNS_MAX];
    size_t columns;
    struct shard_value *values; /* of VALUES_AT_ONCE documents */
    uint64_t documents;         /* that have ended */
    bool open;                  /* a document has begun */
    uint8_t *converted;         /* BLOCK_BYTES * 2 */
};

enum tokmap_status shard_sink_open(struct shard_sink **sink, const struct shard_sink_options *options,
                                   struct tokmap_error *error)
{
    struct shard_sink *made = calloc(1, sizeof *made);
    *sink = NULL;
    if (!made)
        return error_set_memory(error, "the shard", sizeof *made);
    made->options = *options;
    made->info.size = sizeof made->info;
    enum tokmap_status status = tokmap_dataset_info(options->dataset, &made->info);
    if (options->tokenizer) {
        made->info.vocabulary = options->tokenizer->vocabulary;
        memcpy(made->info.tokenizer, options->tokenizer->fingerprint, sizeof made->info.tokenizer);
    }
    if (!status && options->indexed)
        status = tokmap_dataset_columns(options->dataset, made->names, COLUMNS_MAX, &made->columns, error);
    made->converted = malloc(2 * BLOCK_BYTES);
    made->values = made->columns ? calloc(VALUES_AT_ONCE * made->columns, sizeof *made->values) : NULL;
    if (!status && (!made->converted || (made->columns && !made->values)))
        status = error_set_memory(error, "the shard", 2 * BLOCK_BYTES);
    const uint64_t most = options->width == 2 ? (uint64_t)1 << 16 : (uint64_t)1 << 32;
    struct shard_writer_options writer = {.width = options->width,
                                          .vocabulary = min64(made->info.vocabulary, most),
                                          .eod_id = made->info.eod_id,
                                          .bos_id = made->info.bos_id,
                                          .replace = options->replace,
                                          .mask = options->mask,
                                          .sync = options->sync,
                                          .columns = made->names,
                                          .column_count = (uint32_t)made->columns};
    memcpy(writer.tokenizer, made->info.tokenizer, sizeof writer.tokenizer);
    if (!status)
        status = shard_writer_open(&made->writer, options->prefix, &writer, error);
    if (status)
        shard_sink_abort(made);
    else
        *sink = made;
    return status;
}

/* ---- tokens and documents ---- */

/* Copies the values of the columns for the next documents. */
static enum tokmap_status values_copy(struct shard_sink *sink, uint64_t documents, struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; done < documents && sink->columns && !status;) {
        const uint64_t some = min64(documents - done, VALUES_AT_ONCE);
        for (uint64_t i = 0; i < some * sink->columns && !status; i++) {
            struct tokmap_value value = {NULL, 0};
            status = tokmap_dataset_value(sink->options.dataset, sink->documents + done + i / sink->columns,
                                          sink->names[i % sink->columns], &value, error);
            sink->values[i] = (struct shard_value){value.json, value.bytes};
        }
        if (!status)
            status = shard_writer_values(sink->writer, sink->values, some, error);
        done += some;
    }
    return status;
}

/* Converts to the width of the shard. Returns NULL if an id does not fit. */
static const uint8_t *converted(struct shard_sink *sink, const uint8_t *tokens, uint64_t count, uint64_t largest)
{
    if (sink->options.width == sink->info.width)
        return tokens;
    if (sink->options.width == 2 && largest > UINT16_MAX)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        if (sink->options.width == 2)
            store16(sink->converted + 2 * i, (uint16_t)load32(tokens + 4 * i));
        else
            store32(sink->converted + 4 * i, load16(tokens + 2 * i));
    return sink->converted;
}

/* Returns whether two documents are records of the same input that follow each other. */
static bool follows(const struct tokmap_origin *first, const struct tokmap_origin *second)
{
    return second->record == first->record + 1 && second->path_bytes == first->path_bytes &&
           !memcmp(second->path, first->path, (size_t)first->path_bytes);
}

/* Adds documents with their origins: one call of the writer for each row of records that follow each other. */
static enum tokmap_status origins_add(struct shard_sink *sink, const uint8_t *tokens, uint64_t count,
                                      const uint64_t *ends, uint64_t documents, uint64_t largest,
                                      struct tokmap_error *error)
{
    const struct tokmap_dataset *dataset = sink->options.dataset;
    const uint32_t width = sink->options.width;
    uint64_t at = 0, rebased[VALUES_AT_ONCE];
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; (i < documents || at < count) && !status;) {
        struct tokmap_origin origin, next;
        uint64_t used = 0;
        if (!sink->open) {
            status = tokmap_dataset_origin(dataset, sink->documents + i, &origin, error);
            if (!status)
                status = shard_writer_origin(sink->writer, origin.path, origin.path_bytes, origin.record, error);
            if (status)
                return status;
        }
        for (bool more = i < documents; more;) {
            rebased[used++] = ends[i++] - at;
            more = !sink->open && i < documents && used < VALUES_AT_ONCE;
            if (more && (status = tokmap_dataset_origin(dataset, sink->documents + i, &next, error)))
                return status;
            more = more && follows(&origin, &next);
            if (more)
                origin = next;
        }
        const uint64_t stop = used ? ends[i - 1] : count;
        status = shard_writer_add(sink->writer, tokens + at * width, stop - at, rebased, used, largest, error);
        sink->open = !used;
        at = stop;
    }
    return status;
}

enum tokmap_status shard_sink_add(struct shard_sink *sink, const uint8_t *tokens, uint64_t count, const uint64_t *ends,
                                  uint64_t documents, uint64_t largest, struct tokmap_error *error)
{
    const uint8_t *stored = converted(sink, tokens, count, largest);
    if (!stored)
        return error_set(error, TOKMAP_ERROR_TOKEN, NULL, TOKMAP_NO_OFFSET,
                         "the dataset has the id %" PRIu64 ", but tokens of 2 bytes hold ids below 65,536; use "
                         "options.width of 4",
                         largest);
    enum tokmap_status status = sink->options.origins
                                    ? origins_add(sink, stored, count, ends, documents, largest, error)
                                    : shard_writer_add(sink->writer, stored, count, ends, documents, largest, error);
    if (!status)
        status = values_copy(sink, documents, error);
    sink->documents += documents;
    return status;
}

enum tokmap_status shard_sink_mask(struct shard_sink *sink, const uint8_t *bits, uint64_t count,
                                   struct tokmap_error *error)
{
    return shard_writer_mask(sink->writer, bits, 0, count, error);
}

/* ---- commit ---- */

static void text_write(struct cli_json *json, const char *key, const char *text)
{
    if (text)
        cli_json_bytes(json, key, text, strlen(text));
}

static enum tokmap_status tokenizer_write(const struct shard_sink *sink, struct cli_json *json,
                                          struct tokmap_error *error)
{
    static const uint8_t unknown[16];
    struct tokmap_shard_info shard = {.size = sizeof shard};
    struct about_facts facts = {0};
    char hex[33];
    if (sink->options.tokenizer) {
        cli_json_raw(json, "tokenizer", sink->options.tokenizer->about, strlen(sink->options.tokenizer->about));
        return TOKMAP_OK;
    }
    if (!memcmp(sink->info.tokenizer, unknown, 16) || !sink->info.shards)
        return TOKMAP_OK;
    enum tokmap_status status = tokmap_dataset_shard(sink->options.dataset, 0, &shard, error);
    if (!status)
        status = about_read(&shard, &facts, error);
    if (!status) {
        hash128_hex(sink->info.tokenizer, hex);
        cli_json_object(json, "tokenizer");
        cli_json_text(json, "name", facts.name);
        cli_json_text(json, "fingerprint", hex);
        cli_json_text(json, "special", facts.recognizes ? "recognise" : "text"); /* kept spelling */
        text_write(json, "pattern", facts.pattern);
        text_write(json, "pattern_regex", facts.pattern_regex);
        text_write(json, "special_tokens", facts.special_tokens);
        text_write(json, "path", facts.path);
        cli_json_end(json);
    }
    about_free(&facts);
    return status;
}

/* What the about section says: the tool, the kind of the source, and the tokenizer if the source recorded it. */
static enum tokmap_status about_text(const struct shard_sink *sink, char **text, size_t *bytes,
                                     struct tokmap_error *error)
{
    struct cli_json json;
    FILE *file = open_memstream(text, bytes);
    if (!file)
        return error_set_memory(error, "the about section", 0);
    cli_json_begin(&json, file);
    json.as_given = true;
    cli_json_object(&json, NULL);
    cli_json_text(&json, "tool", "tokmap convert");
    cli_json_text(&json, "version", tokmap_version());
    cli_json_text(&json, "kind", sink->info.kind);
    enum tokmap_status status = tokenizer_write(sink, &json, error);
    cli_json_end(&json);
    if (ferror(file) && !status)
        status = error_set_memory(error, "the about section", 0);
    if (fclose(file) && !status)
        status = error_set_memory(error, "the about section", 0);
    return status;
}

enum tokmap_status shard_sink_commit(struct shard_sink *sink, struct foreign_written *written, uint8_t content[16],
                                     struct tokmap_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    enum tokmap_status status = about_text(sink, &text, &bytes, error);
    *written = (struct foreign_written){.tokens = shard_writer_tokens(sink->writer),
                                        .documents = shard_writer_documents(sink->writer)};
    written->written_bytes = written->tokens * sink->options.width;
    if (!status) {
        status = shard_writer_commit(sink->writer, text, bytes, content, error);
        sink->writer = NULL;
    }
    free(text);
    shard_sink_abort(sink);
    return status;
}

void shard_sink_abort(struct shard_sink *sink)
{
    if (!sink)
        return;
    shard_writer_abort(sink->writer);
    free(sink->values);
    free(sink->converted);
    free(sink);
}
