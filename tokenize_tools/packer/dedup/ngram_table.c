/* SPDX-License-Identifier: MIT */
/*
 * ngram_table.c - see ngram_table.h.
 *
 * The sum of an n-gram is h1 M^(N-1) + h2 M^(N-2) + ... + hN modulo 2^64, where h1 to hN are the hashes of its words
 * and M is odd. One more word w moves it: sum * M + hw - h1 M^N. Example with N = 2: after "a b" the sum is a M + b,
 * and after "a b c" it is (a M + b) M + c - a M^2 = b M + c.
 *
 * A sum is looked up in a filter first, of which 16 to 32 bits belong to each n-gram: it says of most sums at the cost
 * of one access to memory that no n-gram has them. Then in a table with open addressing, whose slots have numbers of
 * n-grams.
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

#define CHUNK ((uint64_t)16 << 10)    /* bytes of text that are normalized at once */
#define WORDS_KEPT ((size_t)64 << 10) /* more bytes of words than these are moved to the front of their buffer */
#define NO_NGRAM UINT32_MAX

/* Classes of bytes in the normalization. Other values are the byte that it becomes. */
enum { BYTE_DELETED = 1, BYTE_SPACE = 2, BYTE_MAYBE_SPACE = 3 };

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
    uint64_t multiplier, power; /* M, and M^N */
    uint8_t bytes[256];         /* class of each byte */
    struct bytes_buffer words;  /* of all texts */
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

static void bytes_describe(uint8_t bytes[256])
{
    static const char punctuation[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    static const uint8_t spaces[] = {'\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f, ' '};
    static const uint8_t leads[] = {0xc2, 0xe1, 0xe2, 0xe3};
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)(i >= 'A' && i <= 'Z' ? i + 32 : i);
    /* The bytes 1 to 3 are kept, as what their values do not say: see text_scan(). */
    for (size_t i = 0; i < sizeof punctuation - 1; i++)
        bytes[(uint8_t)punctuation[i]] = BYTE_DELETED;
    for (size_t i = 0; i < sizeof spaces; i++)
        bytes[spaces[i]] = BYTE_SPACE;
    for (size_t i = 0; i < sizeof leads; i++)
        bytes[leads[i]] = BYTE_MAYBE_SPACE;
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

/* The words of one text, or of two, as they are found. */
struct scan {
    const struct ngram_table *table;
    struct ngram_search *search;
    uint64_t words; /* so far */
    uint64_t begin; /* of the current word in search->words */
    uint64_t sum;   /* of the last N words, once there are so many */
    /* Called with each n-gram, whose words are `bytes` bytes at `text`. False ends the search. */
    bool (*ngram)(void *user, uint64_t sum, const uint8_t *text, uint64_t bytes);
    void *user;
    bool ended;
};

static bool search_begin(const struct ngram_table *table, struct ngram_search *search)
{
    if (!search->begins) {
        search->begins = malloc(table->words_each * sizeof *search->begins);
        search->hashes = malloc(table->words_each * sizeof *search->hashes);
    }
    search->words.count = 0;
    return search->begins && search->hashes;
}

/* Moves the words that are still needed to the front, if they are less than half of all. */
static void words_shorten(struct scan *scan)
{
    struct ngram_search *search = scan->search;
    const uint32_t each = scan->table->words_each;
    const uint64_t first = scan->words < each ? search->begins[0] : search->begins[scan->words % each];
    if (search->words.count < WORDS_KEPT || first < search->words.count / 2)
        return;
    memmove(search->words.bytes, search->words.bytes + first, search->words.count - (size_t)first);
    search->words.count -= (size_t)first;
    scan->begin -= first;
    for (uint64_t i = 0; i < min64(each, scan->words); i++)
        search->begins[i] -= first;
}

/* Ends a word, if there is one since the last blank. */
static void word_end(struct scan *scan)
{
    struct ngram_search *search = scan->search;
    const struct ngram_table *table = scan->table;
    const uint64_t bytes = search->words.count - scan->begin, at = scan->words % table->words_each;
    if (!bytes)
        return;
    const uint64_t hash = table_hash(table->key, search->words.bytes + scan->begin, bytes);
    scan->sum = scan->sum * table->multiplier + hash;
    if (scan->words >= table->words_each)
        scan->sum -= search->hashes[at] * table->power;
    search->hashes[at] = hash;
    search->begins[at] = scan->begin;
    scan->words++;
    if (scan->words >= table->words_each) {
        const uint64_t first = search->begins[scan->words % table->words_each];
        scan->ended = !scan->ngram(scan->user, scan->sum, search->words.bytes + first, search->words.count - first);
    }
    search->words.bytes[search->words.count++] = ' ';
    scan->begin = search->words.count;
    words_shorten(scan);
}

/* Adds the words of a text. The buffer of words has room for a chunk of the text, and one blank for each of its bytes
 * and for its end. */
static bool text_scan(struct scan *scan, const char *text, uint64_t count)
{
    const uint8_t *bytes = (const uint8_t *)text;
    const uint8_t *describe = scan->table->bytes;
    struct bytes_buffer *words = &scan->search->words;
    for (uint64_t i = 0; i < count && !scan->ended;) {
        const uint64_t end = i + min64(CHUNK, count - i);
        if (!bytes_reserve(words, 2 * CHUNK + 16))
            return false;
        while (i < end && !scan->ended) {
            const uint8_t byte = describe[bytes[i]];
            if (byte > BYTE_MAYBE_SPACE || bytes[i] <= BYTE_MAYBE_SPACE) {
                words->bytes[words->count++] = bytes[i] <= BYTE_MAYBE_SPACE ? bytes[i] : byte;
                i++;
                continue;
            }
            uint64_t space = byte == BYTE_SPACE;
            if (byte == BYTE_MAYBE_SPACE && !(space = wide_space(bytes + i, count - i)))
                words->bytes[words->count++] = bytes[i];
            if (space)
                word_end(scan);
            i += space ? space : 1;
        }
    }
    if (!bytes_reserve(words, 16))
        return false;
    if (!scan->ended)
        word_end(scan);
    return true;
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
    made->power = 1;
    for (uint32_t i = 0; i < words; i++)
        made->power *= made->multiplier;
    bytes_describe(made->bytes);
    return TOKMAP_OK;
}

void ngram_search_free(struct ngram_search *search)
{
    bytes_free(&search->words);
    free(search->begins);
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
    uint64_t words_end; /* of the text's words in table->words, as far as they are copied */
    uint64_t ngrams;
    enum tokmap_status status;
    struct tokmap_error *error;
};

/* Adds an n-gram: its last word, or of the first one of a text all words, to the words of the table. */
static bool ngram_add(void *user, uint64_t sum, const uint8_t *text, uint64_t bytes)
{
    struct adding *adding = user;
    struct ngram_table *table = adding->table;
    const bool room = list_room(&table->ngrams, table->count, &table->capacity, sizeof *table->ngrams);
    uint64_t last = bytes;
    while (adding->ngrams && last && text[last - 1] != ' ')
        last--;
    last = adding->ngrams ? last : 0;
    const bool blank = adding->ngrams && table->words.count;
    if (!room || bytes > UINT32_MAX || (blank && !bytes_append(&table->words, " ", 1)) ||
        !bytes_append(&table->words, text + last, (size_t)(bytes - last))) {
        adding->status = error_set_memory(adding->error, "a list of n-grams", table->count * sizeof *table->ngrams);
        return false;
    }
    if (table->count == NO_NGRAM) {
        adding->status = error_set(adding->error, TOKMAP_ERROR_LIMIT, NULL, TOKMAP_NO_OFFSET,
                                   "the files of --exclude-ngrams have more than 2^32 n-grams; name fewer");
        return false;
    }
    table->ngrams[table->count++] = (struct ngram){
        .sum = sum, .begin = table->words.count - bytes, .bytes = (uint32_t)bytes, .text = (uint32_t)table->text_count};
    adding->ngrams++;
    return true;
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
    struct scan scan = {.table = table, .search = &table->search, .ngram = ngram_add, .user = &adding};
    assert(!table->slots);
    if (!list_room(&table->texts, table->text_count, &table->text_capacity, sizeof *table->texts) ||
        !search_begin(table, &table->search))
        return error_set_memory(error, "a list of n-grams", table->text_count * sizeof *table->texts);
    const enum tokmap_status status = file_add(table, path, error);
    if (status)
        return status;
    table->texts[table->text_count] = (struct listed_text){record, (uint32_t)(table->file_count - 1)};
    if (!text_scan(&scan, text, bytes))
        return error_set_memory(error, "the words of a text", bytes);
    table->counts.texts += scan.words != 0;
    table->counts.short_texts += scan.words && !adding.ngrams;
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
    table->filter_shift = 64 - 3 - __builtin_ctzll(slots);
    for (uint64_t i = 0; i < table->count; i++) {
        const struct ngram *ngram = &table->ngrams[i];
        const uint64_t slot = slot_find(table, ngram->sum, table->words.bytes + ngram->begin, ngram->bytes);
        if (table->slots[slot] != NO_NGRAM)
            continue;
        const uint64_t bit = ngram->sum * 0x9e3779b97f4a7c15U >> table->filter_shift;
        table->slots[slot] = (uint32_t)i;
        table->filter[bit / 64] |= (uint64_t)1 << bit % 64;
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
    uint64_t found;
};

static bool ngram_find(void *user, uint64_t sum, const uint8_t *text, uint64_t bytes)
{
    struct finding *finding = user;
    const struct ngram_table *table = finding->table;
    const uint64_t bit = sum * 0x9e3779b97f4a7c15U >> table->filter_shift;
    if (!(table->filter[bit / 64] >> bit % 64 & 1))
        return true;
    const uint32_t ngram = table->slots[slot_find(table, sum, text, bytes)];
    if (ngram == NO_NGRAM)
        return true;
    finding->found = ngram;
    return false;
}

enum tokmap_status ngram_table_find(const struct ngram_table *table, struct ngram_search *search, const char *text,
                                    uint64_t bytes, const char *second, uint64_t second_bytes, uint64_t *found,
                                    struct tokmap_error *error)
{
    struct finding finding = {table, NGRAM_NONE};
    struct scan scan = {.table = table, .search = search, .ngram = ngram_find, .user = &finding};
    assert(table->slots);
    if (!search_begin(table, search) || !text_scan(&scan, text, bytes) ||
        (second && !scan.ended && !text_scan(&scan, second, second_bytes)))
        return error_set_memory(error, "the words of a text", bytes + second_bytes);
    *found = finding.found;
    bytes_trim(&search->words);
    return TOKMAP_OK;
}
