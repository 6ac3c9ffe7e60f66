/* SPDX-License-Identifier: MIT */
#include "shard_about.h"

#include <assert.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "common/hash.h"
#include "encode/document_encode.h"

/* Adds the fields that the content came from. */
static void fields_add(struct cli_report *report, const struct corpus_options *corpus)
{
    static const char *const first[] = {"field", "ids_field", "prompt_field", "messages_field"};
    cli_member(report, first[corpus->content], cli_text(corpus->field));
    cli_member_text_if(report,
                       corpus->content != CORPUS_CONTENT_IDS ? "completion_field"
                       : corpus->labels                      ? "labels_field"
                                                             : "mask_field",
                       corpus->second_field);
}

/* Adds how the documents were split into sets, and which one this is. */
static void split_add(struct cli_report *report, const struct split *split, uint32_t set)
{
    if (!split)
        return;
    cli_report_object(report, "split");
    cli_member(report, "seed", cli_number(split->seed));
    cli_member(report, "set", cli_text(split->sets[set].name));
    cli_report_object(report, "shares");
    for (uint32_t i = 0; i < split->count; i++)
        cli_member(report, split->sets[i].name, cli_text(split->sets[i].share));
    cli_report_close(report);
    cli_report_close(report);
}

/* Adds which documents were dropped. */
static void drop_add(struct cli_report *report, const struct listed_documents *listed, const struct drop_options *drop)
{
    static const struct drop_options none;
    uint8_t identity[16];
    drop = drop ? drop : &none;
    cli_member_text_if(report, "dedup", drop->duplicates ? "exact" : drop->minhash ? "minhash" : NULL);
    if (drop->minhash) {
        cli_report_object(report, "minhash");
        cli_numbers(report, "ngram|bands|rows|seed", drop->minhash->words, drop->minhash->bands, drop->minhash->rows,
                    MINHASH_SEED);
        cli_report_close(report);
    }
    if (listed) {
        listed_documents_identity(listed, identity);
        cli_member(report, "drop", cli_text(HASH128_HEX(identity)));
    }
    if (!drop->ngrams)
        return;
    ngram_table_identity(drop->ngrams, identity);
    cli_report_object(report, "exclude_ngrams");
    cli_member(report, "words", cli_number(ngram_table_words(drop->ngrams)));
    cli_member(report, "ngrams", cli_text(HASH128_HEX(identity)));
    cli_report_close(report);
}

/* Adds which texts were rearranged, and the tokens by which a reader finds their parts. */
static void fim_add(struct cli_report *report, const struct fim *fim)
{
    if (!fim)
        return;
    cli_report_object(report, "fim");
    cli_member(report, "rate", cli_text(fim->rate_text));
    cli_member(report, "spm", cli_text(fim->spm_text));
    cli_member(report, "spm_form", cli_text(fim->spm_form));
    cli_member(report, "seed", cli_number(fim->seed));
    cli_member_number_if(report, "unit", fim->unit);
    cli_numbers(report, "prefix|middle|suffix", fim->prefix_id, fim->middle_id, fim->suffix_id);
    if (fim->end_id != TOKMAP_NO_ID)
        cli_member(report, "end", cli_number(fim->end_id));
    cli_report_close(report);
}

static void list_add(struct cli_report *report, const char *name, const char *const *list, size_t count)
{
    if (!count)
        return;
    cli_report_array(report, name);
    for (size_t i = 0; i < count; i++)
        cli_member(report, NULL, cli_text(list[i]));
    cli_report_close(report);
}

/* Adds options that are absent unless they were given, so that a new option does not change the bytes of shards
 * without it. */
static void later_options_add(struct cli_report *report, const struct pack_options *options, uint32_t set, bool of_set)
{
    const struct corpus_options *corpus = &options->corpus;
    const struct chat_learn *learned = options->chat ? chat_template_learned(options->chat) : NULL;
    char learn[CHAT_LEARN_TEXT];
    cli_member_text_if(report, "chat_template", options->chat ? chat_template_name(options->chat) : NULL);
    if (learned && learned->given) {
        chat_learn_print(learned, learn);
        cli_member(report, "learn", cli_text(learn));
    }
    list_add(report, "ignore_fields", options->ignored, options->ignored_count);
    cli_member_number_if(report, "min_tokens", options->min_tokens);
    cli_member_number_if(report, "max_tokens", options->max_tokens);
    drop_add(report, options->listed, options->drop);
    fim_add(report, options->fim);
    split_add(report, options->split, set);
    if (options->shuffle)
        cli_member(report, "shuffle", cli_number(options->shuffle->seed));
    cli_member_number_if(report, "shard_tokens", options->shard_tokens);
    if (!options->shuffle && options->unit_bytes != PACK_UNIT_BYTES) /* shuffled shards do not end where units end */
        cli_member_number_if(report, "unit_bytes", options->unit_bytes);
    if (corpus->separator)
        cli_member(report, "separator", cli_bytes_text(corpus->separator, corpus->separator_bytes));
    list_add(report, "columns", corpus->columns, corpus->column_count);
    cli_member_text_if(report, "inputs", of_set ? options->inputs_hash : NULL);
}

static void options_add(struct cli_report *report, const struct pack_options *options, uint32_t set, bool of_set)
{
    static const char *const formats[] = {"auto", "text", "jsonl", "json", "csv", "tsv", "parquet", "warc"};
    static const char *const invalids[] = {"error", "replace", "skip"};
    const struct corpus_options *corpus = &options->corpus;
    assert(corpus->format < sizeof formats / sizeof formats[0]); /* an option is never CORPUS_SEPARATED */
    cli_report_object(report, "options");
    cli_member(report, "input_format", cli_text(formats[corpus->format]));
    fields_add(report, corpus);
    cli_member(report, "invalid_utf8", cli_text(invalids[corpus->invalid]));
    cli_member(report, "on_error", cli_text(corpus->skip ? "skip" : "stop"));
    cli_numbers(report, "max_record|max_document", corpus->record_limit, corpus->document_limit);
    cli_member(report, "eod", cli_id(options->eod_id));
    cli_member(report, "bos", cli_id(options->bos_id));
    later_options_add(report, options, set, of_set);
    cli_report_close(report);
}

/* Adds the totals: of a shard of a set its own, because those of all inputs are known only when the other shards are
 * written. */
static void totals_add(struct cli_report *report, const struct corpus_options *corpus, const struct pack_result *result,
                       const struct shard_totals *shard)
{
    const struct corpus_counts *counts = &result->counts;
    const struct shard_totals all = {.documents = counts->documents,
                                     .text_bytes = counts->text_bytes,
                                     .tokens = result->tokens,
                                     .counted_tokens = result->counted_tokens};
    const struct shard_totals *totals = shard ? shard : &all;
    cli_report_object(report, "totals");
    if (!shard)
        cli_numbers(report, "files|files_skipped", counts->files, counts->files_skipped);
    cli_member(report, "documents", cli_number(totals->documents));
    if (!shard)
        cli_numbers(report, "records_skipped|sequences_replaced|input_bytes", counts->records_skipped, counts->replaced,
                    counts->stream_bytes);
    if (corpus->content != CORPUS_CONTENT_IDS)
        cli_member(report, "text_bytes", cli_number(totals->text_bytes));
    cli_member(report, "tokens", cli_number(totals->tokens));
    if (document_is_masked(corpus))
        cli_member(report, "counted_tokens", cli_number(totals->counted_tokens));
    cli_report_close(report);
}

void shard_about_tokenizer(struct cli_report *report, const struct tokenizer *tokenizer,
                           const struct tokmap_tokenizer_options *options, const char *path)
{
    static const char *const specials[] = {"text", "recognise", "error"}; /* kept spelling: indexes contain it */
    static const struct tokmap_tokenizer_options defaults = {0};
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    options = options ? options : &defaults;
    cli_member(report, "name", cli_text(info.name));
    cli_member(report, "fingerprint", cli_text(HASH128_HEX(info.fingerprint)));
    cli_member(report, "special", cli_text(specials[options->special]));
    cli_member(report, "pattern", cli_text(options->pattern));
    cli_member(report, "pattern_regex", cli_text(options->pattern_regex));
    cli_member_text_if(report, "special_tokens", options->special_tokens);
    cli_member_text_if(report, "cut_as", options->cut_as);
    cli_member_text_if(report, "path", path);
}

char *shard_about_text(const struct pack_options *options, const struct pack_result *result, uint32_t set,
                       const struct shard_totals *shard, uint64_t *bytes)
{
    struct cli_report report;
    assert(options->corpus.field);
    cli_report_begin_text(&report, true);
    cli_member(&report, "tool", cli_text("tokmap"));
    cli_member(&report, "version", cli_text(tokmap_version()));
    if (options->tokenizer) {
        cli_report_object(&report, "tokenizer");
        shard_about_tokenizer(&report, options->tokenizer, options->tokenizer_options, options->tokenizer_path);
        cli_report_close(&report);
    } else {
        cli_member(&report, "tokenizer", cli_null());
    }
    options_add(&report, options, set, shard != NULL);
    totals_add(&report, &options->corpus, result, shard);
    return cli_report_end_text(&report, bytes);
}
