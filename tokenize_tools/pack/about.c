#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/hash.h"
#include "pack.h"

static void id_write(struct cli_json *json, const char *key, uint64_t id)
{
    if (id == TOKMAP_NO_ID)
        cli_json_null(json, key);
    else
        cli_json_number(json, key, id);
}

static void text_write(struct cli_json *json, const char *key, const char *text)
{
    if (text)
        cli_json_bytes(json, key, text, strlen(text));
    else
        cli_json_null(json, key);
}

/* How the tokenizer was asked for, but not by which name: its fingerprint says which it is. */
static void asked_write(struct cli_json *json, const struct tokenizer_options *asked)
{
    static const char *const specials[] = {"text", "recognise", "error"}; /* kept spelling: indexes contain it */
    static const struct tokenizer_options defaults = {0};
    asked = asked ? asked : &defaults;
    cli_json_text(json, "special", specials[asked->special]);
    text_write(json, "pattern", asked->pattern);
    text_write(json, "pattern_regex", asked->pattern_regex);
}

static void options_write(struct cli_json *json, const struct pack_options *options)
{
    static const char *const formats[] = {"auto", "text", "jsonl"};
    static const char *const invalids[] = {"error", "replace", "skip"};
    const struct corpus_options *corpus = &options->corpus;
    cli_json_object(json, "options");
    cli_json_text(json, "input_format", formats[corpus->format]);
    cli_json_bytes(json, "field", corpus->field, strlen(corpus->field));
    cli_json_text(json, "invalid_utf8", invalids[corpus->invalid]);
    cli_json_text(json, "on_error", corpus->skip ? "skip" : "stop");
    cli_json_number(json, "max_record", corpus->record_limit);
    cli_json_number(json, "max_document", corpus->document_limit);
    id_write(json, "eod", options->eod_id);
    id_write(json, "bos", options->bos_id);
    cli_json_end(json);
}

static void totals_write(struct cli_json *json, const struct pack_result *result)
{
    const struct corpus_counts *counts = &result->counts;
    cli_json_object(json, "totals");
    cli_json_number(json, "files", counts->files);
    cli_json_number(json, "files_skipped", counts->files_skipped);
    cli_json_number(json, "documents", counts->documents);
    cli_json_number(json, "records_skipped", counts->records_skipped);
    cli_json_number(json, "sequences_replaced", counts->replaced);
    cli_json_number(json, "input_bytes", counts->stream_bytes);
    cli_json_number(json, "text_bytes", counts->text_bytes);
    cli_json_number(json, "tokens", result->tokens);
    cli_json_end(json);
}

char *pack_about(const struct pack_options *options, const struct pack_result *result, uint64_t *bytes)
{
    struct tokenizer_info info;
    struct cli_json json;
    char *text = NULL, hex[33];
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return NULL;
    tokenizer_info(options->tokenizer, &info);
    hash128_hex(info.fingerprint, hex);
    cli_json_begin(&json, file);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "tool", "tokmap");
    cli_json_text(&json, "version", tokmap_version());
    cli_json_object(&json, "tokenizer");
    cli_json_text(&json, "name", info.name);
    cli_json_text(&json, "fingerprint", hex);
    asked_write(&json, options->tokenizer_options);
    cli_json_end(&json);
    options_write(&json, options);
    totals_write(&json, result);
    cli_json_end(&json);
    const bool failed = ferror(file) != 0;
    if (fclose(file) || failed) {
        free(text);
        return NULL;
    }
    *bytes = length;
    return text;
}
