/* SPDX-License-Identifier: MIT */
/* shard_about.c - see shard_about.h. */
#include "shard_about.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "common/hash.h"

static void text_write(struct cli_json *json, const char *key, const char *text)
{
    if (text)
        cli_json_bytes(json, key, text, strlen(text));
    else
        cli_json_null(json, key);
}

/* Writes how the tokenizer was opened: its options, and the paths of its files. The fingerprint identifies a tokenizer;
 * the paths only say where to look for it, so a tokenizer without a file has none. */
static void tokenizer_options_write(struct cli_json *json, const struct tokmap_tokenizer_options *options,
                                    const char *path)
{
    static const char *const specials[] = {"text", "recognise", "error"}; /* kept spelling: indexes contain it */
    static const struct tokmap_tokenizer_options defaults = {0};
    options = options ? options : &defaults;
    cli_json_text(json, "special", specials[options->special]);
    text_write(json, "pattern", options->pattern);
    text_write(json, "pattern_regex", options->pattern_regex);
    if (options->special_tokens)
        text_write(json, "special_tokens", options->special_tokens);
    if (options->cut_as)
        text_write(json, "cut_as", options->cut_as);
    if (path)
        text_write(json, "path", path);
}

/* Writes the fields that the content came from. */
static void fields_write(struct cli_json *json, const struct corpus_options *corpus)
{
    static const char *const first[] = {"field", "ids_field", "prompt_field", "messages_field"};
    text_write(json, first[corpus->content], corpus->field);
    if (corpus->second_field)
        text_write(json,
                   corpus->content != CORPUS_CONTENT_IDS ? "completion_field"
                   : corpus->labels                      ? "labels_field"
                                                         : "mask_field",
                   corpus->second_field);
}

/* Writes how the documents were split into sets, and which one this is. */
static void split_write(struct cli_json *json, const struct shard_about *about)
{
    const struct split *split = about->split;
    if (!split)
        return;
    cli_json_object(json, "split");
    cli_json_number(json, "seed", split->seed);
    cli_json_text(json, "set", split->sets[about->set].name);
    cli_json_object(json, "shares");
    for (uint32_t i = 0; i < split->count; i++)
        cli_json_text(json, split->sets[i].name, split->sets[i].share);
    cli_json_end(json);
    cli_json_end(json);
}

/* Writes which documents were dropped. */
static void drop_write(struct cli_json *json, const struct shard_about *about)
{
    uint8_t identity[16];
    char hex[33];
    if (about->dedup)
        cli_json_text(json, "dedup", "exact");
    if (about->minhash) {
        cli_json_text(json, "dedup", "minhash");
        cli_json_object(json, "minhash");
        cli_json_number(json, "ngram", about->minhash->words);
        cli_json_number(json, "bands", about->minhash->bands);
        cli_json_number(json, "rows", about->minhash->rows);
        cli_json_number(json, "seed", MINHASH_SEED);
        cli_json_end(json);
    }
    if (about->listed) {
        listed_documents_identity(about->listed, identity);
        hash128_hex(identity, hex);
        cli_json_text(json, "drop", hex);
    }
    if (!about->ngrams)
        return;
    ngram_table_identity(about->ngrams, identity);
    hash128_hex(identity, hex);
    cli_json_object(json, "exclude_ngrams");
    cli_json_number(json, "words", ngram_table_words(about->ngrams));
    cli_json_text(json, "ngrams", hex);
    cli_json_end(json);
}

/* Writes which texts were rearranged, and the tokens by which a reader finds their parts. */
static void fim_write(struct cli_json *json, const struct fim *fim)
{
    if (!fim)
        return;
    cli_json_object(json, "fim");
    cli_json_text(json, "rate", fim->rate_text);
    cli_json_text(json, "spm", fim->spm_text);
    cli_json_text(json, "spm_form", fim->spm_form);
    cli_json_number(json, "seed", fim->seed);
    if (fim->unit)
        cli_json_number(json, "unit", fim->unit);
    cli_json_number(json, "prefix", fim->prefix_id);
    cli_json_number(json, "middle", fim->middle_id);
    cli_json_number(json, "suffix", fim->suffix_id);
    if (fim->end_id != TOKMAP_NO_ID)
        cli_json_number(json, "end", fim->end_id);
    cli_json_end(json);
}

static void list_write(struct cli_json *json, const char *key, const char *const *list, size_t count)
{
    if (!count)
        return;
    cli_json_array(json, key);
    for (size_t i = 0; i < count; i++)
        text_write(json, NULL, list[i]);
    cli_json_end(json);
}

/* Writes options that are absent unless they were given, so that shards without them keep the bytes of earlier
 * versions. */
static void later_options_write(struct cli_json *json, const struct shard_about *about)
{
    const struct corpus_options *corpus = about->corpus;
    if (about->chat_template)
        text_write(json, "chat_template", about->chat_template);
    if (about->learn && about->learn->given) {
        char words[CHAT_LEARN_TEXT];
        chat_learn_print(about->learn, words);
        cli_json_text(json, "learn", words);
    }
    list_write(json, "ignore_fields", about->ignored, about->ignored_count);
    if (about->min_tokens)
        cli_json_number(json, "min_tokens", about->min_tokens);
    if (about->max_tokens)
        cli_json_number(json, "max_tokens", about->max_tokens);
    drop_write(json, about);
    fim_write(json, about->fim);
    split_write(json, about);
    if (about->shuffle)
        cli_json_number(json, "shuffle", *about->shuffle);
    if (about->shard_tokens)
        cli_json_number(json, "shard_tokens", about->shard_tokens);
    if (about->unit_bytes && about->unit_bytes != PACK_UNIT_BYTES)
        cli_json_number(json, "unit_bytes", about->unit_bytes);
    if (corpus->separator)
        cli_json_bytes(json, "separator", corpus->separator, corpus->separator_bytes);
    list_write(json, "columns", corpus->columns, corpus->column_count);
    if (about->inputs)
        cli_json_text(json, "inputs", about->inputs);
}

static void options_write(struct cli_json *json, const struct shard_about *about)
{
    static const char *const formats[] = {"auto", "text", "jsonl", "json", "csv", "tsv", "parquet", "warc"};
    static const char *const invalids[] = {"error", "replace", "skip"};
    const struct corpus_options *corpus = about->corpus;
    cli_json_object(json, "options");
    cli_json_text(json, "input_format", formats[corpus->format]);
    fields_write(json, corpus);
    cli_json_text(json, "invalid_utf8", invalids[corpus->invalid]);
    cli_json_text(json, "on_error", corpus->skip ? "skip" : "stop");
    cli_json_number(json, "max_record", corpus->record_limit);
    cli_json_number(json, "max_document", corpus->document_limit);
    cli_json_id(json, "eod", about->eod_id);
    cli_json_id(json, "bos", about->bos_id);
    later_options_write(json, about);
    cli_json_end(json);
}

/* Writes the totals of one shard of a set. Those of all inputs are known only when the other shards are written. */
static void shard_totals_write(struct cli_json *json, const struct shard_about *about)
{
    const struct shard_totals *shard = about->shard;
    cli_json_object(json, "totals");
    cli_json_number(json, "documents", shard->documents);
    if (about->corpus->content != CORPUS_CONTENT_IDS)
        cli_json_number(json, "text_bytes", shard->text_bytes);
    cli_json_number(json, "tokens", shard->tokens);
    if (about->has_mask)
        cli_json_number(json, "counted_tokens", shard->counted_tokens);
    cli_json_end(json);
}

static void totals_write(struct cli_json *json, const struct shard_about *about)
{
    const struct corpus_counts *counts = about->counts;
    cli_json_object(json, "totals");
    cli_json_number(json, "files", counts->files);
    cli_json_number(json, "files_skipped", counts->files_skipped);
    cli_json_number(json, "documents", counts->documents);
    cli_json_number(json, "records_skipped", counts->records_skipped);
    cli_json_number(json, "sequences_replaced", counts->replaced);
    cli_json_number(json, "input_bytes", counts->stream_bytes);
    if (about->corpus->content != CORPUS_CONTENT_IDS)
        cli_json_number(json, "text_bytes", counts->text_bytes);
    cli_json_number(json, "tokens", about->tokens);
    if (about->has_mask)
        cli_json_number(json, "counted_tokens", about->counted_tokens);
    cli_json_end(json);
}

void shard_about_tokenizer(struct cli_json *json, const char *key, const struct tokenizer *tokenizer,
                           const struct tokmap_tokenizer_options *options, const char *path)
{
    struct tokenizer_info info;
    char hex[33];
    tokenizer_info(tokenizer, &info);
    hash128_hex(info.fingerprint, hex);
    cli_json_object(json, key);
    cli_json_text(json, "name", info.name);
    cli_json_text(json, "fingerprint", hex);
    tokenizer_options_write(json, options, path);
    cli_json_end(json);
}

char *shard_about_text(const struct shard_about *about, uint64_t *bytes)
{
    assert(about->corpus->field && about->counts);
    struct cli_json json;
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return NULL;
    cli_json_begin(&json, file);
    json.as_given = true;
    cli_json_object(&json, NULL);
    cli_json_text(&json, "tool", "tokmap");
    cli_json_text(&json, "version", tokmap_version());
    if (about->tokenizer)
        shard_about_tokenizer(&json, "tokenizer", about->tokenizer, about->tokenizer_options, about->tokenizer_path);
    else
        cli_json_null(&json, "tokenizer");
    options_write(&json, about);
    if (about->shard)
        shard_totals_write(&json, about);
    else
        totals_write(&json, about);
    cli_json_end(&json);
    const bool failed = ferror(file) != 0;
    if (fclose(file) || failed) {
        free(text);
        return NULL;
    }
    *bytes = length;
    return text;
}
