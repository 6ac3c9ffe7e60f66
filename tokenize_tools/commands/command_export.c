/* SPDX-License-Identifier: MIT */
/*
 * command_export.c - tokmap export: turns the documents of a dataset back into text, in parallel, and writes them in
 * order.
 *
 * Documents are taken in batches of about a MiB of tokens. A worker copies the tokens of a batch, leaves out the tokens
 * that pack put around each document (EOD and BOS, as the shard's index says), decodes the rest, and formats it. Then
 * it waits until the batches before have been written, and writes. So the output does not depend on the number of
 * threads, and neither does the error: it is the first one in the order of the documents.
 *
 * Is the text right? pack encodes only valid UTF-8, so the tokens of a document that pack made decode to a text whose
 * encoding is these tokens. Tokens of another writer may begin or end inside a character. Their text would contain
 * U+FFFD where bytes were not UTF-8, which a document may also contain by itself. So a text that contains U+FFFD is
 * encoded again: if it does not give the same tokens, the document is not valid UTF-8. With --check, every text is
 * encoded again.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "codec/file_type.h"
#include "commands/commands.h"
#include "commands/data/block_compare.h"
#include "commands/data/output_file.h"
#include "commands/data/token_decode.h"
#include "commands/options/target.h"
#include "commands/options/tokenizer_arguments.h"
#include "commands/report/dataset_about.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/visible.h"
#include "corpus/name_kind.h"
#include "engine/tokenizer.h"
#include "platform/os.h"
#include "platform/process.h"
#include "text/code_point.h"
#include "text/decimal.h"
#include "text/utf8.h"

static const char program[] = "tokmap export";

#define THREADS_MOST 256

/* Treatment of a document that is not valid UTF-8. */
enum invalid_utf8 { INVALID_ERROR, INVALID_REPLACE, INVALID_SKIP };

struct exporting {
    const struct cli_command *command;
    struct tokenizer_arguments asked;
    const char *output; /* "-": standard output */
    struct cli_range documents;
    bool jsonl, text, origin, check, force, json, quiet;
    int invalid; /* enum invalid_utf8 */
    int progress_mode;
    uint64_t threads;
    struct cli_progress progress;
    const struct tokmap_dataset *dataset; /* with shards */
    struct tokenizer *tokenizer;          /* the one that made the dataset; ids of any width */
    uint64_t first, end;                  /* documents, first <= end <= those of the dataset */
    int fd;                               /* destination of the output */
};

static bool to_stdout(const struct exporting *exporting)
{
    return strcmp(exporting->output, "-") == 0;
}

struct export_result {
    uint64_t documents; /* written */
    uint64_t replaced;  /* of them, documents that were not valid UTF-8 */
    uint64_t skipped;   /* documents left out because they were not */
    uint64_t tokens;    /* of the documents written, with EOD and BOS */
    uint64_t text_bytes, output_bytes;
};

#define BATCH_TOKENS ((uint64_t)1 << 18)
#define BATCH_DOCUMENTS 8192u

struct export
{
    struct exporting *options;
    struct tokmap_dataset_info info;
    struct block_compare *compare;
    struct os_mutex *mutex;
    struct os_condition *changed;
    /* guarded by the mutex: */
    uint64_t next;        /* the first document of the next batch */
    uint64_t batches;     /* taken so far; the number of the next batch */
    uint64_t turn;        /* the batch that may be written now */
    uint64_t tokens_done; /* read and written */
    enum tokmap_status failed;
    struct tokmap_error error; /* of `failed` */
    struct export_result result;
};

/* A worker and the batch that it works on. */
struct worker {
    struct export *export;
    struct tokenizer_decoder *decoder;
    uint64_t replaced; /* by the decoder, in documents that have been checked */
    struct tokenizer_state *state;
    uint64_t number;     /* of the batch */
    uint64_t first, end; /* its documents */
    uint64_t shard;      /* the number of the shard that is described below, plus 1; 0: none */
    struct tokmap_shard_info described;
    struct text_buffer tokens, ids; /* tokens of the batch; those that a text gives when it is encoded again */
    struct text_buffer text, out;   /* of a document; of the batch */
    struct export_result result;
    uint8_t *room;        /* of block_compare_range() */
    struct fim_marks fim; /* of the shard */
    struct fim_reader reader;
};

/* ---- buffers ---- */

static enum tokmap_status buffer_reserve(struct text_buffer *buffer, uint64_t more, struct tokmap_error *error)
{
    uint64_t needed;
    if (add_overflows(buffer->count, more, &needed))
        return error_set_memory(error, "text", SIZE_MAX);
    if (needed <= buffer->capacity)
        return TOKMAP_OK;
    const uint64_t capacity = max64(needed, buffer->capacity + buffer->capacity / 2);
    char *grown = realloc(buffer->bytes, (size_t)capacity);
    if (!grown)
        return error_set_memory(error, "text", (size_t)capacity);
    buffer->bytes = grown;
    buffer->capacity = capacity;
    return TOKMAP_OK;
}

/* Appends bytes, for which there must be room. */
static void buffer_put(struct text_buffer *buffer, const char *bytes, uint64_t count)
{
    if (count)
        memcpy(buffer->bytes + buffer->count, bytes, (size_t)count);
    buffer->count += count;
}

/* Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, and what is not plain becomes an escape. */
static enum tokmap_status string_put(struct text_buffer *out, const char *text, uint64_t count,
                                     struct tokmap_error *error)
{
    enum tokmap_status status = buffer_reserve(out, count + count / 8 + 64, error);
    uint64_t room = status ? 0 : out->capacity - out->count - 1;
    if (!status)
        buffer_put(out, "\"", 1);
    for (uint64_t at = 0; !status && at < count;) {
        if (room < 16) {
            status = buffer_reserve(out, (count - at) + (count - at) / 2 + 64, error);
            if (status)
                break;
            room = out->capacity - out->count;
        }
        /* A run of bytes that stand for themselves. */
        uint64_t run = 0;
        const uint64_t longest = min64(count - at, room - 8);
        while (run < longest && (unsigned char)text[at + run] >= 0x20 && (unsigned char)text[at + run] < 0x7f &&
               text[at + run] != '"' && text[at + run] != '\\')
            run++;
        if (run) {
            buffer_put(out, text + at, run);
            at += run;
            room -= run;
            continue;
        }
        char escape[8];
        const unsigned char byte = (unsigned char)text[at];
        bool valid = true;
        size_t taken = 1, length;
        if (byte >= 0x80) {
            bool plain = false;
            size_t code_bytes;
            taken = utf8_step(text + at, (size_t)(count - at), &valid);
            length = valid ? taken : UTF8_REPLACEMENT_BYTES;
            if (valid)
                (void)visible_step(text + at, (size_t)taken, &plain);
            if (valid && !plain)
                length = (size_t)snprintf(escape, sizeof escape, "\\u%04x",
                                          (unsigned)code_point_get((const uint8_t *)text + at, &code_bytes));
            else
                memcpy(escape, valid ? text + at : UTF8_REPLACEMENT, length);
        } else if (byte == '"' || byte == '\\' || byte == '\n' || byte == '\t' || byte == '\r') {
            escape[0] = '\\';
            escape[1] = byte == '\n' ? 'n' : byte == '\t' ? 't' : byte == '\r' ? 'r' : (char)byte;
            length = 2;
        } else {
            length = (size_t)snprintf(escape, sizeof escape, "\\u%04x", byte);
        }
        buffer_put(out, escape, length);
        at += taken;
        room -= length;
    }
    if (!status)
        status = buffer_reserve(out, 1, error);
    if (!status)
        buffer_put(out, "\"", 1);
    return status;
}

static enum tokmap_status text_put(struct text_buffer *out, const char *text, struct tokmap_error *error)
{
    const enum tokmap_status status = buffer_reserve(out, strlen(text), error);
    if (!status)
        buffer_put(out, text, strlen(text));
    return status;
}

/* ---- one document ---- */

/* Puts the document before the message of an error that a lower room has set. token: its place in the document, which
 * ERROR_TOKEN has. */
static void document_name(const struct worker *worker, uint64_t number, uint64_t token, struct tokmap_error *error)
{
    char message[sizeof error->message], place[40] = "";
    memcpy(message, error->message, sizeof message);
    if (error->status == TOKMAP_ERROR_TOKEN)
        (void)snprintf(place, sizeof place, ", token %" PRIu64, token);
    (void)error_set(error, error->status, worker->described.tokens_path, TOKMAP_NO_OFFSET,
                    "document %" PRIu64 "%s: %.600s", number, place, message);
}

/* Encodes the worker's text, and stores whether its tokens are these. */
static enum tokmap_status encodes_to(struct worker *worker, const struct token_list *tokens, bool *same,
                                     struct tokmap_error *error)
{
    uint64_t capacity, bytes, end = 0;
    enum tokmap_status status = TOKMAP_OK;
    *same = false;
    const struct tokenizer_info info = info_of_tokenizer(worker->export->options->tokenizer);
    if (!worker->state)
        status = tokenizer_state_new(&worker->state, worker->export->options->tokenizer, error);
    if (mul_overflows(worker->text.count, info.ids_per_byte_most, &capacity) || add_overflows(capacity, 8, &capacity) ||
        mul_overflows(capacity, info.width, &bytes))
        return error_set_memory(error, "the tokens of a text", SIZE_MAX);
    worker->ids.count = 0;
    if (!status)
        status = buffer_reserve(&worker->ids, bytes, error);
    if (status)
        return status;
    const struct tokmap_text document = {worker->text.count ? worker->text.bytes : "", worker->text.count};
    const struct tokenizer_batch batch = {.documents = &document, .count = 1};
    struct tokenizer_out out = {.tokens = worker->ids.bytes, .capacity = capacity, .ends = &end};
    status = tokenizer_encode(worker->state, &batch, &out, error);
    const struct token_list made = {worker->ids.bytes, info.width, out.count};
    *same = !status && token_lists_equal(&made, tokens);
    return status;
}

/* Checks the worker's text. Sets *keep to false if the document is to be left out. */
static enum tokmap_status text_check(struct worker *worker, uint64_t number, const struct token_list *tokens,
                                     bool *keep, struct tokmap_error *error)
{
    const struct exporting *options = worker->export->options;
    const char *text = worker->text.count ? worker->text.bytes : "";
    const uint64_t replaced = tokenizer_decoder_replaced(worker->decoder) - worker->replaced;
    worker->replaced += replaced;
    *keep = true;
    if (!replaced && utf8_valid_prefix(text, (size_t)worker->text.count) == worker->text.count) {
        bool same = true;
        const enum tokmap_status status = options->check ? encodes_to(worker, tokens, &same, error) : TOKMAP_OK;
        if (status || same)
            return status;
        return error_set(error, TOKMAP_ERROR_MISMATCH, worker->described.tokens_path, TOKMAP_NO_OFFSET,
                         "document %" PRIu64 " does not have the tokens that its text has when it is encoded again, so "
                         "packing the text would not give this dataset; export without the check if the text is all "
                         "that matters",
                         number);
    }
    if (options->invalid == INVALID_ERROR)
        return error_set(error, TOKMAP_ERROR_ENCODING, worker->described.tokens_path, TOKMAP_NO_OFFSET,
                         "document %" PRIu64 " is not valid UTF-8, so its tokens are not the encoding of a text; set "
                         "--invalid-utf8 to write U+FFFD for the invalid bytes (replace) or to leave the document "
                         "out (skip)",
                         number);
    *keep = options->invalid == INVALID_REPLACE;
    worker->result.replaced += *keep;
    worker->result.skipped += !*keep;
    return TOKMAP_OK;
}

static enum tokmap_status line_put(struct worker *worker, uint64_t number, struct tokmap_error *error)
{
    const struct exporting *options = worker->export->options;
    struct text_buffer *out = &worker->out;
    const char *text = worker->text.count ? worker->text.bytes : "";
    enum tokmap_status status;
    if (options->text) {
        size_t replaced;
        const size_t bytes = utf8_replaced_bytes(text, (size_t)worker->text.count, &replaced);
        status = buffer_reserve(out, (uint64_t)bytes + 1, error);
        if (status)
            return status;
        utf8_replace(out->bytes + out->count, text, (size_t)worker->text.count);
        out->count += bytes;
        buffer_put(out, "\n", 1);
        return TOKMAP_OK;
    }
    status = text_put(out, "{\"text\": ", error);
    if (!status)
        status = string_put(out, text, worker->text.count, error);
    if (!status && options->origin) {
        struct tokmap_origin origin;
        struct tokmap_error unknown;
        char digits[20];
        status = tokmap_dataset_origin(options->dataset, number, &origin, &unknown);
        if (status == TOKMAP_ERROR_NOT_FOUND) {
            status = text_put(out, ", \"path\": null, \"record\": null", error);
        } else if (status) {
            *error = unknown;
        } else {
            if (!(status = text_put(out, ", \"path\": ", error)) &&
                !(status = string_put(out, origin.path, origin.path_bytes, error)) &&
                !(status = text_put(out, ", \"record\": ", error)) && !(status = buffer_reserve(out, 24, error)))
                buffer_put(out, digits, decimal_write(origin.record, digits));
        }
    }
    return status ? status : text_put(out, "}\n", error);
}

/* tokens: those of the document. */
static enum tokmap_status document_export(struct worker *worker, const struct tokmap_document *document,
                                          const char *tokens, struct tokmap_error *error)
{
    const uint32_t width = worker->export->info.width;
    uint64_t count = document->tokens, begins = 0, unknown = 0;
    bool keep;
    if (worker->shard != document->shard + 1) {
        worker->described = (struct tokmap_shard_info){.size = sizeof worker->described};
        struct about_facts about = {.path = NULL};
        enum tokmap_status described =
            tokmap_dataset_shard(worker->export->options->dataset, document->shard, &worker->described, error);
        if (!described)
            described = about_read(&worker->described, &about, error);
        worker->fim = about.fim;
        about_free(&about);
        if (described)
            return described;
        worker->shard = document->shard + 1;
    }
    if (count && id_load(tokens, width, 0) == worker->described.bos_id) {
        tokens += width;
        count--;
        begins = 1;
    }
    if (count && id_load(tokens, width, count - 1) == worker->described.eod_id)
        count--;
    const struct token_list list = {tokens, width, count};
    worker->text.count = 0;
    enum tokmap_status status = token_decode_document(worker->decoder, worker->export->options->tokenizer, &worker->fim,
                                                      &worker->reader, &list, &worker->text, &unknown, error);
    if (status) {
        document_name(worker, document->number, begins + unknown, error);
        return status;
    }
    status = text_check(worker, document->number, &list, &keep, error);
    if (status || !keep)
        return status;
    worker->result.documents++;
    worker->result.tokens += document->tokens;
    worker->result.text_bytes += worker->text.count;
    return line_put(worker, document->number, error);
}

/* ---- batches ---- */

/* Takes the next batch. Returns false if none is left, or after a failure. */
static bool batch_take(struct worker *worker)
{
    struct export *export = worker->export;
    struct exporting *options = export->options;
    uint64_t tokens = 0;
    os_mutex_lock(export->mutex);
    const bool any = !export->failed && export->next < options->end;
    if (any) {
        struct tokmap_document document;
        struct tokmap_error unused;
        worker->number = export->batches++;
        worker->first = worker->end = export->next;
        do {
            /* If the index contradicts itself, the batch ends here, and its worker reports it. */
            if (tokmap_dataset_document(options->dataset, worker->end, &document, &unused))
                document.tokens = BATCH_TOKENS;
            tokens += document.tokens;
            worker->end++;
        } while (worker->end < options->end && tokens < BATCH_TOKENS && worker->end - worker->first < BATCH_DOCUMENTS);
        export->next = worker->end;
    }
    os_mutex_unlock(export->mutex);
    return any;
}

static enum tokmap_status batch_export(struct worker *worker, uint64_t *tokens, struct tokmap_error *error)
{
    const struct exporting *options = worker->export->options;
    const uint32_t width = worker->export->info.width;
    struct tokmap_document first, document;
    worker->result = (struct export_result){0};
    worker->out.count = worker->tokens.count = 0;
    *tokens = 0;
    enum tokmap_status status = tokmap_dataset_document(options->dataset, worker->first, &first, error);
    if (!status)
        status = tokmap_dataset_document(options->dataset, worker->end - 1, &document, error);
    if (status)
        return status;
    /* Documents follow each other without gaps. */
    const uint64_t count = document.first_token + document.tokens - first.first_token;
    status = buffer_reserve(&worker->tokens, count * width, error);
    if (!status)
        status = block_compare_range(worker->export->compare, first.first_token, count, &worker->room, error);
    if (!status)
        status = tokmap_dataset_copy(options->dataset, first.first_token, count, worker->tokens.bytes, error);
    for (uint64_t number = worker->first; number < worker->end && !status; number++) {
        status = tokmap_dataset_document(options->dataset, number, &document, error);
        if (!status && (document.first_token < first.first_token || document.first_token - first.first_token > count ||
                        document.tokens > count - (document.first_token - first.first_token)))
            status = error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                               "the index contradicts itself at document %" PRIu64 "; run 'tokmap verify'", number);
        if (!status)
            status = document_export(worker, &document,
                                     worker->tokens.bytes + (document.first_token - first.first_token) * width, error);
    }
    *tokens = count;
    return status;
}

/* Waits for the worker's turn and writes its batch. status: of the batch. */
static void batch_write(struct worker *worker, uint64_t tokens, enum tokmap_status status, struct tokmap_error *error)
{
    struct export *export = worker->export;
    struct exporting *options = export->options;
    os_mutex_lock(export->mutex);
    while (export->turn != worker->number && !export->failed)
        os_condition_wait(export->changed, export->mutex);
    const bool failed = export->failed != TOKMAP_OK;
    os_mutex_unlock(export->mutex);
    if (failed) /* in an earlier batch */
        return;
    if (!status && os_signal_caught())
        status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted by a signal");
    if (!status) {
        const int system = to_stdout(options)
                               ? os_write_stream(options->fd, worker->out.bytes, (size_t)worker->out.count)
                               : os_write(options->fd, worker->out.bytes, (size_t)worker->out.count);
        if (system)
            status = error_set_system(error, system, NULL, TOKMAP_NO_OFFSET, "the output cannot be written");
    }
    if (!status) /* only the worker whose turn it is changes it */
        cli_progress_update(&options->progress, export->tokens_done + tokens);
    os_mutex_lock(export->mutex);
    if (status) {
        export->failed = status;
        export->error = *error;
    } else {
        export->tokens_done += tokens;
        export->result.documents += worker->result.documents;
        export->result.replaced += worker->result.replaced;
        export->result.skipped += worker->result.skipped;
        export->result.tokens += worker->result.tokens;
        export->result.text_bytes += worker->result.text_bytes;
        export->result.output_bytes += worker->out.count;
    }
    export->turn++;
    os_condition_broadcast(export->changed);
    os_mutex_unlock(export->mutex);
}

static void worker_run(void *user, uint32_t number)
{
    struct worker *worker = (struct worker *)user + number;
    struct tokmap_error error = {0};
    while (batch_take(worker)) {
        uint64_t tokens;
        const enum tokmap_status status = batch_export(worker, &tokens, &error);
        batch_write(worker, tokens, status, &error);
    }
}

static void worker_free(struct worker *worker)
{
    tokenizer_decoder_free(worker->decoder);
    tokenizer_state_free(worker->state);
    free(worker->tokens.bytes);
    free(worker->ids.bytes);
    free(worker->text.bytes);
    free(worker->out.bytes);
    free(worker->room);
    fim_reader_free(&worker->reader);
}

/* Exports the documents. Messages name --invalid-utf8, and of an id that the tokenizer does not have its
 * document and its place in it. Memory for each thread: the tokens, the text, and the output of
 * a batch, which has at least one document. Statuses: OK, ERROR_ENCODING (a document is not valid UTF-8),
 * ERROR_MISMATCH (with `check`: the text of a document gives other tokens), ERROR_TOKEN, ERROR_INTERRUPTED, ERROR_IO,
 * ERROR_CORRUPT, ERROR_MEMORY, ERROR_LIMIT, those of tokmap_dataset_copy(). */
static enum tokmap_status text_export(struct exporting *options, struct export_result *result,
                                      struct tokmap_error *error)
{
    struct export export = {.options = options, .next = options->first, .info = info_of_dataset(options->dataset)};
    enum tokmap_status status = TOKMAP_OK;
    assert(export.info.shards && options->first <= options->end && options->end <= export.info.documents);
    assert(options->threads && options->threads <= THREADS_MOST);
    struct worker *workers = calloc(options->threads, sizeof *workers);
    if (!workers || os_mutex_new(&export.mutex) || os_condition_new(&export.changed))
        status = error_set_memory(error, "threads", options->threads * sizeof *workers);
    if (!status)
        status = block_compare_open(&export.compare, options->dataset, error);
    for (uint32_t i = 0; i < options->threads && !status; i++) {
        workers[i].export = &export;
        status = tokenizer_decoder_new(&workers[i].decoder, options->tokenizer, true, error);
    }
    if (!status) {
        os_threads_share("tokmap-export", options->threads, worker_run, workers);
        status = export.failed;
        if (status && error)
            *error = export.error;
    }
    *result = export.result;
    for (uint32_t i = 0; workers && i < options->threads; i++)
        worker_free(&workers[i]);
    free(workers);
    block_compare_close(export.compare);
    os_condition_free(export.changed);
    os_mutex_free(export.mutex);
    return status;
}

/* ---- report ---- */

static void export_report(const struct exporting *exporting, const char *name, const struct export_result *result,
                          double seconds)
{
    struct cli_report report;
    cli_report_begin(&report, exporting->json, NULL);
    cli_member(&report, "dataset", cli_text(name));
    cli_member(&report, "output", cli_text(exporting->output));
    cli_numbers(&report, "documents|documents_replaced|documents_skipped|tokens|text_bytes|output_bytes",
                result->documents, result->replaced, result->skipped, result->tokens, result->text_bytes,
                result->output_bytes);
    cli_member(&report, "seconds", cli_real(seconds));
    cli_report_end(&report);
    if (exporting->json || exporting->quiet)
        return;
    /* Standard output has the documents if they go there. */
    cli_say(program, "exported %s, %s of text, to %s in %s (%s/s)", CLI_COUNTED(result->documents, "document"),
            CLI_BYTES(result->text_bytes), to_stdout(exporting) ? "standard output" : exporting->output,
            CLI_SECONDS(seconds), CLI_BYTES(seconds > 0 ? (uint64_t)((double)result->text_bytes / seconds) : 0));
    if (result->replaced)
        cli_say(program, "%s of them not valid UTF-8: U+FFFD was written for the invalid bytes",
                CLI_COUNT(result->replaced));
    if (result->skipped)
        cli_say(program, "%s not valid UTF-8 and left out", CLI_COUNTED(result->skipped, "more document"));
}

/* ---- export ---- */

static enum tokmap_status range_set(struct exporting *options, const char *name, uint64_t *tokens,
                                    struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(options->dataset);
    struct tokmap_document first = {0}, last = {0};
    options->first = options->documents.given ? options->documents.first : 0;
    options->end = options->documents.given ? options->documents.end : info.documents;
    if (options->end > info.documents)
        return error_set(error, TOKMAP_ERROR_RANGE, name, TOKMAP_NO_OFFSET,
                         "documents %" PRIu64 "..%" PRIu64 " reach past the end; the dataset has %s, numbered from 0",
                         options->first, options->end, CLI_COUNTED(info.documents, "document"));
    *tokens = 0;
    if (info.tokens && !info.documents) /* says why, so that no text is left out without a word */
        return tokmap_dataset_document(options->dataset, 0, &first, error);
    if (options->first == options->end)
        return TOKMAP_OK;
    enum tokmap_status status = tokmap_dataset_document(options->dataset, options->first, &first, error);
    if (!status)
        status = tokmap_dataset_document(options->dataset, options->end - 1, &last, error);
    *tokens = last.first_token + last.tokens - first.first_token;
    return status;
}

/* With --force, a wrong name could replace the dataset by its own text. */
static enum tokmap_status output_check(const struct exporting *exporting, const char *name, struct tokmap_error *error)
{
    const struct tokmap_dataset_info info = info_of_dataset(exporting->dataset);
    struct os_stat output;
    if (os_stat(exporting->output, &output))
        return TOKMAP_OK;
    bool own = output_is_file(name, &output);
    for (uint64_t number = 0; number < info.shards && !own; number++) {
        struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
        const enum tokmap_status status = tokmap_dataset_shard(exporting->dataset, number, &shard, error);
        if (status)
            return status;
        own = output_is_file(shard.index_path, &output) || output_is_file(shard.tokens_path, &output);
    }
    if (!own)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_ARGUMENT, exporting->output, TOKMAP_NO_OFFSET,
                     "this output is a file of the dataset that is exported; choose another name");
}

static enum tokmap_status documents_export(struct exporting *exporting, const char *name, struct export_result *result,
                                           struct tokmap_error *error)
{
    struct output_file file = {.fd = -1};
    uint64_t tokens = 0;
    enum tokmap_status status = range_set(exporting, name, &tokens, error);
    if (!status && !to_stdout(exporting))
        status = output_check(exporting, name, error);
    if (!status && !to_stdout(exporting)) {
        status = output_file_open(&file, exporting->output, exporting->force, error);
        exporting->fd = file.fd;
    }
    if (status)
        return status;
    cli_progress_start(&exporting->progress, "exporting", "tokens", tokens,
                       exporting->quiet ? CLI_PROGRESS_NONE : exporting->progress_mode);
    status = text_export(exporting, result, error);
    cli_progress_end(&exporting->progress);
    if (status && to_stdout(exporting) && error->system == EPIPE)
        os_pipe_broken();
    if (status && error->status == TOKMAP_ERROR_IO && !error->path[0])
        (void)error_set_system(error, error->system, to_stdout(exporting) ? NULL : file.partial, TOKMAP_NO_OFFSET,
                               to_stdout(exporting) ? "standard output cannot be written"
                                                    : "the output cannot be written");
    if (!status && !to_stdout(exporting))
        return output_file_commit(&file, error);
    output_file_abort(&file);
    return status;
}

static int export_name(struct exporting *exporting, const char *name)
{
    const struct run_arguments none = RUN_ARGUMENTS_INIT;
    struct target target = {0};
    struct export_result result = {0};
    struct tokmap_error error = {0};
    bool assumed;
    if (cli_names_run(name))
        return cli_misused(exporting->command,
                           "'%s' is a run file; name the dataset that its line 'source' names, or print the rows of a "
                           "step with 'tokmap show'",
                           name);
    int exit_status = target_open(&target, exporting->command, name, &none, false);
    if (exit_status >= 0)
        return exit_status;
    const uint64_t started = os_clock_ns();
    enum tokmap_status status =
        dataset_tokenizer_open(&exporting->tokenizer, target.dataset, &exporting->asked, &assumed, &error);
    if (!status) {
        if (!exporting->quiet)
            dataset_tokenizer_note(program, exporting->tokenizer);
        if (assumed && !exporting->quiet)
            dataset_tokenizer_assumed(program, exporting->asked.spec);
        cli_signals_catch();
        exporting->dataset = target.dataset;
        status = documents_export(exporting, name, &result, &error);
    }
    const double seconds = (double)(os_clock_ns() - started) * 1e-9;
    tokenizer_close(exporting->tokenizer);
    target_close(&target);
    cli_signals_end(program, !status                ? NULL
                             : to_stdout(exporting) ? "interrupted"
                                                    : "interrupted; the unfinished output has been removed");
    if (status)
        return command_failed(exporting->command, &error);
    export_report(exporting, name, &result, seconds);
    return cli_finish(program, CLI_DONE);
}

static int export_operands(const struct cli_command *command, const char **operands, size_t operand_count, void *user)
{
    struct exporting *exporting = user;
    exporting->command = command;
    if (operand_count != 1)
        return cli_misused(command, "expected one dataset");
    if (exporting->jsonl && exporting->text)
        return cli_misused(command, "--jsonl and --text exclude each other");
    if (exporting->origin && exporting->text)
        return cli_misused(command, "--origin is for JSONL and cannot be used with --text");
    if (file_type_packed_ending(exporting->output, strlen(exporting->output)) ||
        name_kind_of(exporting->output) == NAME_PARQUET)
        return cli_misused(command,
                           "-o %s has the name of another format than %s, which is written; to compress it, pipe "
                           "standard output into a program that does, such as zstd",
                           exporting->output, exporting->text ? "text" : "JSONL");
    if (exporting->json && to_stdout(exporting))
        return cli_misused(command, "--json prints the report on standard output, which has the documents; write them "
                                    "to a file with -o FILE");
    if (!exporting->threads || exporting->threads > THREADS_MOST)
        return cli_misused(command, "--threads must be between 1 and %d", THREADS_MOST);
    if (tokenizer_arguments_check(command, &exporting->asked))
        return CLI_MISUSED;
    return export_name(exporting, operands[0]);
}

int command_export(int argc, char **argv)
{
    struct exporting exporting = {.asked = TOKENIZER_ARGUMENTS_INIT, .output = "-", .fd = 1};
    exporting.threads = os_processors() < THREADS_MOST ? os_processors() : THREADS_MOST;
    const struct cli_option options[] = {
        CLI_HEADING("What is written"),
        {'o', "output", CLI_TEXT, &exporting.output, NULL, "FILE", "write to FILE; '-' (default): standard output",
         NULL},
        {0, "force", CLI_FLAG, &exporting.force, NULL, NULL, "replace the output if it exists", NULL},
        {0, "jsonl", CLI_FLAG, &exporting.jsonl, NULL, NULL, "a JSON object per document: {\"text\": ...} (default)",
         NULL},
        {0, "text", CLI_FLAG, &exporting.text, NULL, NULL, "the texts as they are, each followed by a newline", NULL},
        {0, "documents", CLI_RANGE, &exporting.documents, NULL, "A..B", "only documents A up to, not including, B",
         NULL},
        {0, "origin", CLI_FLAG, &exporting.origin, NULL, NULL,
         "add the members path and record: the input file of each document, and the record in it, from 0", NULL},
        {0, "invalid-utf8", CLI_CHOICE, &exporting.invalid, NULL, "ACTION",
         "a document that is not valid UTF-8 is an error (error, the default), is written with U+FFFD (replace), or is "
         "left out (skip)",
         "error|replace|skip"},
        {0, "check", CLI_FLAG, &exporting.check, NULL, NULL,
         "encode each text again, and stop if it does not give the same tokens", NULL},
        CLI_HEADING("Tokenizer"),
        TOKENIZER_OPTIONS_RECORDED(exporting.asked),
        CLI_HEADING("General"),
        {'j', "threads", CLI_NUMBER, &exporting.threads, NULL, "N",
         "number of threads (default: one per processor); the output is the same for every N", NULL},
        {0, "json", CLI_FLAG, &exporting.json, NULL, NULL, "print the report as a JSON object; needs -o FILE", NULL},
        CLI_OPTION_PROGRESS(exporting.progress_mode),
        {'q', "quiet", CLI_FLAG, &exporting.quiet, NULL, NULL, "print no progress and no report", NULL},
    };
    const struct cli_command command = {
        .program = program,
        .usage = "[-o FILE] [OPTION]... DATASET",
        .summary = "Turns a dataset back into text: one JSON object per document, without the tokens that end or begin "
                   "documents.",
        .details = "`tokmap pack` with the same tokenizer and options makes the same tokens of the result.\n\n"
                   "Examples:\n"
                   "  tokmap export --jsonl -o web.jsonl data/web\n"
                   "  tokmap export --documents 0..10 data/web\n"
                   "  tokmap export --origin data/web | zstd > web.jsonl.zst\n",
        CLI_OPTIONS(options),
        .operands = CLI_DATASETS,
    };
    return cli_run(&command, argc, argv, export_operands, &exporting);
}
