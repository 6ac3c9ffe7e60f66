/* SPDX-License-Identifier: MIT */
/*
 * ngram_table.c - see ngram_table.h.
 *
 * The sum of an n-gram is h1 M^(N-1) + h2 M^(N-2) + ... + hN modulo 2^64, where h1 to hN are the hashes of its words
 * and M is odd. One more word w moves it: (sum - h1 M^(N-1)) M + hw. Example with N = 2: after "a b" the sum is a M +
 * b, and after "a b c" it is (a M + b - a M) M + c = b M + c.
 *
 * A sum is looked up in a filter first, of which 16 to 32 bits belong to each n-gram, and an n-gram sets FILTER_BITS of
 * one word of it. It says of all but one in some hundred sums at the cost of one access to memory that no n-gram has
 * them. The accesses of a block do not wait for each other. Then a sum is looked up in a table with open addressing,
 * whose slots have numbers of n-grams.
 */
#include "ngram_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "encode/ordered_workers.h"
#include "platform/table_key.h"

#define FILTER_BITS 2
#define NO_NGRAM UINT32_MAX

struct ngram {
    uint64_t sum;
    uint64_t begin; /* of its words in table->words */
    uint32_t bytes;
    uint32_t text; /* number of the text that lists it */
};

struct listed_text {
    uint64_t record;
    uint32_t file;
};

/* Lists of n-grams, texts, and files, and a hash table of the n-grams with a filter before it. */
struct ngram_table {
    uint32_t words_each; /* N */
    struct table_key key;
    uint64_t multiplier, first_power; /* M, and M^(N-1) */
    uint8_t map[256];                 /* bytes of words, as in word_grams.h */
    struct bytes_buffer words;        /* of all texts */
    struct ngram *ngrams;
    uint64_t count, capacity;
    struct listed_text *texts;
    uint64_t text_count, text_capacity;
    char **files;
    uint64_t file_count, file_capacity;
    struct ngram_counts counts;
    struct ngram_search search; /* while texts are added */
    uint32_t *slots;
    uint64_t slot_mask;
    uint64_t *filter;
    int filter_shift;
};

/* ---- words ---- */

static void map_make(uint8_t map[256])
{
    static const char punctuation[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    static const uint8_t spaces[] = {'\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f, ' '};
    static const uint8_t leads[] = {0xc2, 0xe1, 0xe2, 0xe3};
    for (int i = 0; i < 256; i++)
        map[i] = (uint8_t)(i >= 'A' && i <= 'Z' ? i + 32 : i);
    map[GRAM_DELETED] = GRAM_OTHER; /* these two are kept, which their values do not say: see character_take() */
    for (size_t i = 0; i < sizeof punctuation - 1; i++)
        map[(uint8_t)punctuation[i]] = GRAM_DELETED;
    for (size_t i = 0; i < sizeof spaces; i++)
        map[spaces[i]] = GRAM_BLANK;
    for (size_t i = 0; i < sizeof leads; i++)
        map[leads[i]] = GRAM_OTHER;
}

/* Returns how many bytes of white space outside ASCII begin at `at`, or 0. */
static uint64_t wide_space(const uint8_t *at, uint64_t left)
{
    if (left >= 2 && at[0] == 0xc2)
        return at[1] == 0x85 || at[1] == 0xa0 ? 2 : 0;
    if (left < 3)
        return 0;
    const uint32_t three = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    const bool is_space = three == 0xe19a80 || (three >= 0xe28080 && three <= 0xe2808a) || three == 0xe280a8 ||
                          three == 0xe280a9 || three == 0xe280af || three == 0xe2819f || three == 0xe38080;
    return is_space ? 3 : 0;
}

static bool search_begin(const struct ngram_table *table, struct ngram_search *search,
                         bool (*take)(void *user, const uint8_t *words, const uint64_t *begins, uint32_t count),
                         void *user)
{
    search->grams.each = table->words_each;
    search->grams.take = take;
    search->grams.user = user;
    if (!search->hashes)
        search->hashes = malloc((GRAM_BLOCK + (size_t)table->words_each) * sizeof *search->hashes);
    return search->hashes && word_grams_begin(&search->grams);
}

/* Returns the hash of a word, after which 16 bytes can be read. Most have at most 16 bytes; for these there is no
 * branch on their number, which is predicted wrong often. */
static uint64_t word_hash(struct table_key key, const uint8_t *word, uint64_t bytes)
{
    static const uint8_t masks[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    if (bytes > 16)
        return table_hash(key, word, bytes);
    const uint8_t *mask = masks + 16 - bytes;
    return table_mix(key, load64(word) & load64(mask), (load64(word + 8) & load64(mask + 8)) ^ bytes);
}

/* Replaces the hashes of words by the sums of the n-grams that begin with them. */
static void sums_find(const struct ngram_table *table, uint64_t *hashes, const uint8_t *words, const uint64_t *begins,
                      uint32_t count)
{
    const uint32_t each = table->words_each;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count + each - 1; i++) {
        const uint64_t hash = word_hash(table->key, words + begins[i], begins[i + 1] - 1 - begins[i]);
        sum = sum * table->multiplier + hash;
        hashes[i] = hash;
        if (i + 1 < each)
            continue;
        const uint64_t first = hashes[i + 1 - each];
        hashes[i + 1 - each] = sum;
        sum -= first * table->first_power;
    }
}

/* The words of a text. */
struct scan {
    const struct ngram_table *table;
    struct word_grams *grams;
};

static inline uint64_t character_take(void *user, uint8_t **to, const uint8_t *text, uint64_t count, uint64_t at)
{
    const struct scan *scan = user;
    const uint8_t one = text[at], byte = scan->table->map[one];
    const uint64_t space = byte == GRAM_BLANK ? 1 : byte == GRAM_OTHER ? wide_space(text + at, count - at) : 0;
    if (space)
        *to = gram_word_end(scan->grams, *to);
    else if (byte != GRAM_DELETED)
        *(*to)++ = byte == GRAM_OTHER ? one : byte;
    return at + (space ? space : 1);
}

/* Adds the words of a text: at most one byte and a blank for each of its bytes. */
static bool text_scan(const struct ngram_table *table, struct word_grams *grams, const char *text, uint64_t count)
{
    struct scan scan = {table, grams};
    return words_add(grams, table->map, (const uint8_t *)text, count, 2, character_take, &scan);
}

/* ---- making a table ---- */

enum tokmap_status ngram_table_new(struct ngram_table **table, uint32_t words, struct tokmap_error *error)
{
    struct ngram_table *made = *table = calloc(1, sizeof *made);
    assert(words && words <= NGRAM_WORDS_MOST);
    if (!made)
        return error_set_memory(error, "a list of n-grams", sizeof *made);
    made->words_each = words;
    made->key = table_key_new();
    made->multiplier = made->key.low | 1;
    made->first_power = 1;
    for (uint32_t i = 1; i < words; i++)
        made->first_power *= made->multiplier;
    map_make(made->map);
    return TOKMAP_OK;
}

void ngram_search_free(struct ngram_search *search)
{
    word_grams_free(&search->grams);
    free(search->hashes);
    *search = (struct ngram_search){0};
}

void ngram_table_free(struct ngram_table *table)
{
    if (!table)
        return;
    for (uint64_t i = 0; i < table->file_count; i++)
        free(table->files[i]);
    free(table->files);
    free(table->texts);
    free(table->ngrams);
    free(table->slots);
    free(table->filter);
    bytes_free(&table->words);
    ngram_search_free(&table->search);
    free(table);
}

struct adding {
    struct ngram_table *table;
    uint64_t ngrams; /* of the text */
    enum tokmap_status status;
    struct tokmap_error *error;
};

/* Adds an n-gram: its last word, or of the first one of a text all words, to the words of the table. */
static enum tokmap_status ngram_add(struct adding *adding, uint64_t sum, const uint8_t *text, uint64_t bytes,
                                    uint64_t last)
{
    struct ngram_table *table = adding->table;
    const bool room = list_room(&table->ngrams, table->count, &table->capacity, sizeof *table->ngrams);
    const bool blank = adding->ngrams && table->words.count;
    last = adding->ngrams ? last : 0;
    if (!room || bytes > UINT32_MAX || (blank && !bytes_append(&table->words, " ", 1)) ||
        !bytes_append(&table->words, text + last, (size_t)(bytes - last)))
        return error_set_memory(adding->error, "a list of n-grams", table->count * sizeof *table->ngrams);
    if (table->count == NO_NGRAM)
        return error_set(adding->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                         "the files of --exclude-ngrams have more than 2^32 n-grams; name fewer");
    table->ngrams[table->count++] = (struct ngram){
        .sum = sum, .begin = table->words.count - bytes, .bytes = (uint32_t)bytes, .text = (uint32_t)table->text_count};
    adding->ngrams++;
    return TOKMAP_OK;
}

static bool ngrams_add(void *user, const uint8_t *words, const uint64_t *begins, uint32_t count)
{
    struct adding *adding = user;
    const struct ngram_table *table = adding->table;
    const uint32_t each = table->words_each;
    sums_find(table, table->search.hashes, words, begins, count);
    for (uint32_t i = 0; i < count && !adding->status; i++)
        adding->status = ngram_add(adding, table->search.hashes[i], words + begins[i], begins[i + each] - 1 - begins[i],
                                   begins[i + each - 1] - begins[i]);
    return !adding->status;
}

static enum tokmap_status file_add(struct ngram_table *table, const char *path, struct tokmap_error *error)
{
    if (table->file_count && !strcmp(table->files[table->file_count - 1], path))
        return TOKMAP_OK;
    const bool room = list_room(&table->files, table->file_count, &table->file_capacity, sizeof *table->files);
    char *copy = room ? strdup(path) : NULL;
    if (!copy)
        return error_set_memory(error, "a list of n-grams", table->file_count * sizeof *table->files);
    table->files[table->file_count++] = copy;
    return TOKMAP_OK;
}

enum tokmap_status ngram_table_add(struct ngram_table *table, const char *text, uint64_t bytes, const char *path,
                                   uint64_t record, struct tokmap_error *error)
{
    struct adding adding = {.table = table, .error = error};
    struct word_grams *grams = &table->search.grams;
    assert(!table->slots);
    if (!list_room(&table->texts, table->text_count, &table->text_capacity, sizeof *table->texts) ||
        !search_begin(table, &table->search, ngrams_add, &adding))
        return error_set_memory(error, "a list of n-grams", table->text_count * sizeof *table->texts);
    const enum tokmap_status status = file_add(table, path, error);
    if (status)
        return status;
    table->texts[table->text_count] = (struct listed_text){record, (uint32_t)(table->file_count - 1)};
    if (!text_scan(table, grams, text, bytes))
        return error_set_memory(error, "the words of a text", bytes);
    word_grams_pass(grams);
    table->counts.texts += grams->gone + grams->count != 0;
    table->counts.short_texts += grams->count && !adding.ngrams;
    table->text_count += adding.ngrams != 0;
    return adding.status;
}

/* ---- files ---- */

static enum tokmap_status texts_add(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct ngram_table *table = self;
    const struct corpus_batch *batch = &item->batch;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        status = ngram_table_add(table, document->text, document->bytes, batch->parts[document->part].path,
                                 document->record, error);
    }
    return status;
}

enum tokmap_status ngram_table_load(struct ngram_table *table, const char *const *files, size_t count,
                                    const char *field, bool (*stop)(void *user), void *user, struct tokmap_error *error)
{
    struct corpus_counts counts = {0};
    struct ordered_workers *workers = NULL;
    const struct ordered_workers_options options = {.name = "tokmap-ngrams",
                                                    .threads = 1,
                                                    .corpus = {.select = {.table_files = true},
                                                               .field = field,
                                                               .separator = "\n",
                                                               .separator_bytes = 1,
                                                               .batch_bytes = (uint64_t)256 << 10,
                                                               .record_limit = (uint64_t)64 << 20,
                                                               .document_limit = (uint64_t)64 << 20},
                                                    .counts = &counts,
                                                    .process = texts_add,
                                                    .self = table,
                                                    .stop = stop,
                                                    .user = user};
    enum tokmap_status status = ordered_workers_new(&workers, &options, files, count, error);
    if (!status)
        status = ordered_workers_run(workers, error);
    ordered_workers_free(workers);
    table->counts.files += counts.files;
    return status;
}

/* ---- searching ---- */

static bool is_same(const struct ngram_table *table, const struct ngram *ngram, uint64_t sum, const uint8_t *text,
                    uint64_t bytes)
{
    return ngram->sum == sum && ngram->bytes == bytes &&
           !memcmp(table->words.bytes + ngram->begin, text, (size_t)bytes);
}

/* Returns the slot of an n-gram, or the free one where the search for it ends. */
static uint64_t slot_find(const struct ngram_table *table, uint64_t sum, const uint8_t *text, uint64_t bytes)
{
    uint64_t slot = table_mix(table->key, sum, 0) & table->slot_mask;
    while (table->slots[slot] != NO_NGRAM && !is_same(table, &table->ngrams[table->slots[slot]], sum, text, bytes))
        slot = (slot + 1) & table->slot_mask;
    return slot;
}

/* Returns the word of the filter where a sum belongs, and in *bits its bits. */
static uint64_t filter_place(const struct ngram_table *table, uint64_t sum, uint64_t *bits)
{
    const uint64_t mixed = sum * 0x9e3779b97f4a7c15U;
    *bits = 0;
    for (int i = 0; i < FILTER_BITS; i++)
        *bits |= (uint64_t)1 << (mixed >> 6 * i) % 64;
    return mixed >> table->filter_shift;
}

enum tokmap_status ngram_table_finish(struct ngram_table *table, struct tokmap_error *error)
{
    uint64_t slots = 64;
    if (!table->count)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the files of --exclude-ngrams have no line or record with %" PRIu32
                         " words, so they exclude nothing; name other files, or lower --exclude-words",
                         table->words_each);
    while (slots < 2 * table->count)
        slots *= 2;
    table->slots = malloc((size_t)slots * sizeof *table->slots);
    table->filter = calloc((size_t)slots / 8, sizeof *table->filter); /* 8 bits a slot */
    if (!table->slots || !table->filter)
        return error_set_memory(error, "a list of n-grams", slots * (sizeof *table->slots + 1));
    table->slot_mask = slots - 1;
    memset(table->slots, 0xff, (size_t)slots * sizeof *table->slots);
    table->filter_shift = 64 + 3 - __builtin_ctzll(slots);
    for (uint64_t i = 0; i < table->count; i++) {
        const struct ngram *ngram = &table->ngrams[i];
        const uint64_t slot = slot_find(table, ngram->sum, table->words.bytes + ngram->begin, ngram->bytes);
        if (table->slots[slot] != NO_NGRAM)
            continue;
        uint64_t bits;
        table->slots[slot] = (uint32_t)i;
        table->filter[filter_place(table, ngram->sum, &bits)] |= bits;
        table->counts.ngrams++;
    }
    ngram_search_free(&table->search);
    return TOKMAP_OK;
}

void ngram_table_counts(const struct ngram_table *table, struct ngram_counts *counts)
{
    *counts = table->counts;
    counts->listed = table->count;
}

uint32_t ngram_table_words(const struct ngram_table *table)
{
    return table->words_each;
}

void ngram_table_identity(const struct ngram_table *table, uint8_t identity[16])
{
    uint64_t fields[2] = {table->words_each};
    struct hash128 sum = hash128(fields, sizeof fields);
    for (uint64_t i = 0; i < table->count; i++) {
        const struct ngram *ngram = &table->ngrams[i];
        const uint8_t *text = table->words.bytes + ngram->begin;
        if (table->slots[slot_find(table, ngram->sum, text, ngram->bytes)] != i)
            continue; /* it was listed before */
        const struct hash128 hash = hash128(text, ngram->bytes);
        const uint64_t both[] = {sum.low, sum.high, hash.low, hash.high};
        sum = hash128(both, sizeof both);
    }
    hash128_store(sum, identity);
}

void ngram_table_origin(const struct ngram_table *table, uint64_t ngram, struct ngram_origin *origin)
{
    const struct ngram *found = &table->ngrams[ngram];
    const struct listed_text *text = &table->texts[found->text];
    *origin = (struct ngram_origin){.path = table->files[text->file],
                                    .record = text->record,
                                    .text = (const char *)table->words.bytes + found->begin,
                                    .bytes = found->bytes};
}

struct finding {
    const struct ngram_table *table;
    struct ngram_search *search;
    uint64_t found;
};

static bool ngrams_find(void *user, const uint8_t *words, const uint64_t *begins, uint32_t count)
{
    struct finding *finding = user;
    const struct ngram_table *table = finding->table;
    uint64_t *sums = finding->search->hashes;
    sums_find(table, sums, words, begins, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits;
        if (~table->filter[filter_place(table, sums[i], &bits)] & bits)
            continue;
        const uint64_t bytes = begins[i + table->words_each] - 1 - begins[i];
        const uint32_t ngram = table->slots[slot_find(table, sums[i], words + begins[i], bytes)];
        if (ngram != NO_NGRAM) {
            finding->found = ngram;
            return false;
        }
    }
    return true;
}

enum tokmap_status ngram_table_find(const struct ngram_table *table, struct ngram_search *search, const char *text,
                                    uint64_t bytes, const char *second, uint64_t second_bytes, uint64_t *found,
                                    struct tokmap_error *error)
{
    struct finding finding = {table, search, NGRAM_NONE};
    struct word_grams *grams = &search->grams;
    assert(table->slots);
    if (!search_begin(table, search, ngrams_find, &finding) || !text_scan(table, grams, text, bytes) ||
        (second && !grams->ended && !text_scan(table, grams, second, second_bytes)))
        return error_set_memory(error, "the words of a text", bytes + second_bytes);
    if (!grams->ended)
        word_grams_pass(grams);
    *found = finding.found;
    return TOKMAP_OK;
}
