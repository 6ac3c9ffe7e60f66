/* SPDX-License-Identifier: MIT */
#include "pack_facts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/hash.h"

/* Writes a byte of a value, with control characters and the backslash as the escapes of --separator. So a value has no
 * zero byte, and different bytes stay different. Returns the end. */
static char *byte_write(char *at, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef", plain[] = "\n\t\r\\", letters[] = "ntr\\";
    const char *letter = byte ? strchr(plain, byte) : NULL;
    if (byte >= 0x20 && byte != 0x7f && byte != '\\') {
        *at++ = (char)byte;
    } else {
        *at++ = '\\';
        *at++ = letter ? letters[letter - plain] : 'x';
        if (!letter) {
            *at++ = hex[byte >> 4];
            *at++ = hex[byte & 15];
        }
    }
    return at;
}

/* Adds a fact whose value has these bytes. */
static void bytes_fact(struct pack_facts *facts, const char *name, const char *bytes, size_t count)
{
    char *value = count < SIZE_MAX / 4 ? malloc(4 * count + 1) : NULL, *at = value;
    assert(facts->count < PACK_FACTS_MOST);
    facts->lost = facts->lost || !value;
    if (!value)
        return;
    for (size_t i = 0; i < count; i++)
        at = byte_write(at, (uint8_t)bytes[i]);
    *at = '\0';
    facts->list[facts->count++] = (struct work_fact){name, value};
}

static void text_fact(struct pack_facts *facts, const char *name, const char *text)
{
    bytes_fact(facts, name, text, text ? strlen(text) : 0);
}

/* Adds a fact whose value is a number. none: the number that means that the option is not used. */
static void number_fact(struct pack_facts *facts, const char *name, uint64_t number, uint64_t none)
{
    char text[24] = "";
    if (number != none)
        (void)snprintf(text, sizeof text, "%" PRIu64, number);
    text_fact(facts, name, text);
}

static void choice_fact(struct pack_facts *facts, const char *name, const char *const *words, size_t choice)
{
    text_fact(facts, name, words[choice]);
}

static void list_fact(struct pack_facts *facts, const char *name, const char *const *list, size_t count)
{
    struct bytes_buffer text = {0};
    for (size_t i = 0; i < count; i++)
        facts->lost =
            !(bytes_append(&text, ",", i != 0) && bytes_append(&text, list[i], strlen(list[i]))) || facts->lost;
    bytes_fact(facts, name, (const char *)text.bytes, text.count);
    bytes_free(&text);
}

static void split_facts(struct pack_facts *facts, const struct split *split)
{
    struct bytes_buffer text = {0};
    for (uint32_t i = 0; split && i < split->count; i++) {
        char set[SPLIT_NAME_MOST + SHARE_TEXT_MOST + 4];
        const int bytes = snprintf(set, sizeof set, "%s%s=%s", i ? "," : "", split->sets[i].name, split->sets[i].share);
        facts->lost = !bytes_append(&text, set, (size_t)bytes) || facts->lost;
    }
    bytes_fact(facts, "--split", (const char *)text.bytes, text.count);
    bytes_free(&text);
    number_fact(facts, "--split-seed", split ? split->seed : 0, split ? UINT64_MAX : 0);
}

static void fim_facts(struct pack_facts *facts, const struct fim *fim)
{
    char text[2 * SHARE_TEXT_MOST + 8] = "", tokens[96] = "";
    if (fim) {
        (void)snprintf(text, sizeof text, "%s,spm=%s", fim->rate_text, fim->spm_text);
        (void)snprintf(tokens, sizeof tokens, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, fim->prefix_id, fim->middle_id,
                       fim->suffix_id);
    }
    text_fact(facts, "--fim", text);
    number_fact(facts, "--fim-seed", fim ? fim->seed : 0, fim ? UINT64_MAX : 0);
    number_fact(facts, "--fim-unit", fim ? fim->unit : 0, 0);
    text_fact(facts, "--fim-tokens", tokens);
    number_fact(facts, "--fim-tokens (end)", fim && fim->end_always ? fim->end_id : TOKMAP_NO_ID, TOKMAP_NO_ID);
}

static void tokenizer_facts(struct pack_facts *facts, const struct pack_options *options)
{
    static const struct tokmap_tokenizer_options defaults;
    const struct tokmap_tokenizer_options *given = options->tokenizer_options ? options->tokenizer_options : &defaults;
    struct tokenizer_info info;
    char hex[33] = "";
    if (options->tokenizer) {
        info = info_of_tokenizer(options->tokenizer);
        hash128_hex(info.fingerprint, hex);
    }
    text_fact(facts, "--tokenizer", options->tokenizer_path);
    text_fact(facts, "tokenizer (fingerprint)", hex);
    number_fact(facts, "--special", (uint64_t)given->special, UINT64_MAX);
    text_fact(facts, "--pattern", given->pattern);
    text_fact(facts, "--pattern-regex", given->pattern_regex);
    text_fact(facts, "--special-tokens", given->special_tokens);
    text_fact(facts, "--cut-as", given->cut_as);
    number_fact(facts, "--vocab-size", options->tokenizer ? 0 : options->vocabulary, 0);
    number_fact(facts, "--eod", options->eod_id, TOKMAP_NO_ID);
    number_fact(facts, "--bos", options->bos_id, TOKMAP_NO_ID);
    text_fact(facts, "--chat-template", options->chat ? chat_template_name(options->chat) : NULL);
    char learned[CHAT_LEARN_TEXT] = "";
    if (options->chat)
        chat_learn_print(chat_template_learned(options->chat), learned);
    text_fact(facts, "--learn", learned);
    list_fact(facts, "--ignore-fields", options->ignored, options->ignored_count);
}

/* Adds what decides which documents the inputs have, and which numbers. */
static void reading_facts(struct pack_facts *facts, const struct corpus_options *corpus)
{
    static const char *const formats[] = {"auto", "text", "jsonl", "json", "csv", "tsv", "parquet", "warc", "text"};
    static const char *const contents[] = {"text", "ids", "prompts", "messages"};
    assert(corpus->format < CORPUS_FORMATS && corpus->content < sizeof contents / sizeof contents[0]);
    choice_fact(facts, "--input-format", formats, corpus->format);
    choice_fact(facts, "kind of content", contents, corpus->content);
    text_fact(facts, "--field", corpus->field);
    text_fact(facts, corpus->labels ? "--labels-field" : "second field", corpus->second_field);
    bytes_fact(facts, "separator of documents", corpus->separator,
               corpus->separator ? (size_t)corpus->separator_bytes : 0);
}

static void corpus_facts(struct pack_facts *facts, const struct corpus_options *corpus)
{
    static const char *const invalid[] = {"error", "replace", "skip"};
    reading_facts(facts, corpus);
    choice_fact(facts, "--invalid-utf8", invalid, corpus->invalid);
    text_fact(facts, "--on-error skip", corpus->skip ? "skip" : "");
    list_fact(facts, "--columns", corpus->columns, corpus->column_count);
    number_fact(facts, "--max-record", corpus->record_limit, UINT64_MAX);
    number_fact(facts, "--max-document", corpus->document_limit, UINT64_MAX);
}

static void shuffle_facts(struct pack_facts *facts, const struct pack_shuffle *shuffle)
{
    char seed[24] = ""; /* every number is a seed */
    if (shuffle)
        (void)snprintf(seed, sizeof seed, "%" PRIu64, shuffle->seed);
    text_fact(facts, "--shuffle", seed);
}

static void listed_fact(struct pack_facts *facts, const struct listed_documents *listed)
{
    uint8_t identity[16];
    char hex[33] = "";
    if (listed) {
        listed_documents_identity(listed, identity);
        hash128_hex(identity, hex);
    }
    text_fact(facts, "documents of --drop (hash)", hex);
}

static void drop_facts(struct pack_facts *facts, const struct drop_options *drop)
{
    const struct minhash_form *form = drop ? drop->minhash : NULL;
    char minhash[64] = "", hex[33] = "";
    if (form)
        (void)snprintf(minhash, sizeof minhash, "minhash of %" PRIu32 " words, %" PRIu32 " bands of %" PRIu32 " hashes",
                       form->words, form->bands, form->rows);
    if (drop && drop->ngrams) {
        uint8_t identity[16];
        ngram_table_identity(drop->ngrams, identity);
        hash128_hex(identity, hex);
    }
    text_fact(facts, "--dedup", drop && drop->duplicates ? "exact" : minhash);
    text_fact(facts, "excluded n-grams (hash)", hex);
}

bool pack_facts_make(struct pack_facts *facts, const struct pack_options *options, uint64_t layout)
{
    char version[64];
    *facts = (struct pack_facts){.count = 0};
    (void)snprintf(version, sizeof version, "%.32s, layout %016" PRIx64, tokmap_version(), layout);
    text_fact(facts, "version of tokmap", version);
    tokenizer_facts(facts, options);
    corpus_facts(facts, &options->corpus);
    number_fact(facts, "--min-tokens", options->min_tokens, 0);
    number_fact(facts, "--max-tokens", options->max_tokens, 0);
    number_fact(facts, "--shard-tokens", options->shard_tokens, 0);
    number_fact(facts, "--unit-bytes", options->unit_bytes, 0);
    number_fact(facts, "--seal", options->seal ? (uint64_t)options->seal->level : 0, 0);
    split_facts(facts, options->split);
    fim_facts(facts, options->fim);
    shuffle_facts(facts, options->shuffle);
    listed_fact(facts, options->listed);
    drop_facts(facts, options->drop);
    text_fact(facts, "--also", options->also ? options->also->formats : NULL);
    return !facts->lost;
}

char *pack_reading(const struct corpus_options *corpus, const struct drop_options *drop)
{
    struct pack_facts facts = {.count = 0};
    struct bytes_buffer text = {0};
    reading_facts(&facts, corpus);
    const size_t read = facts.count;
    if (drop)
        drop_facts(&facts, drop);
    bool good = !facts.lost;
    for (size_t i = 0; i < facts.count && good; i++) {
        const struct work_fact *fact = &facts.list[i];
        if (*fact->value)
            good = bytes_append(&text, i < read ? ", " : "; ", text.count ? 2 : 0) &&
                   bytes_append(&text, fact->name, strlen(fact->name)) && bytes_append(&text, " ", 1) &&
                   bytes_append(&text, fact->value, strlen(fact->value));
    }
    good = good && bytes_append(&text, "", 1);
    pack_facts_free(&facts);
    if (!good)
        bytes_free(&text);
    return (char *)text.bytes;
}

void pack_facts_free(struct pack_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++)
        free((char *)(uintptr_t)facts->list[i].value);
    facts->count = 0;
}
