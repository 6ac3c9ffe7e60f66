/* SPDX-License-Identifier: MIT */
/*
 * listed_documents.c - see listed_documents.h.
 *
 * An entry is a key of 128 bits and the offset of its line: the XXH3-128 of a text, or that of a path and a record. So
 * both kinds of lists are one sorted array, in which a search needs log2(n) steps, whatever the length of the paths.
 *
 * Example: the list
 *
 *     tokmap-drop records
 *     a.jsonl<tab>7
 *
 * has one entry, the XXH3-128 of "a.jsonl" and the 8 bytes of 7, with the offset 20. Record 7 of a.jsonl is removed
 * from its batch, and bit 0 of the pass is set. If the file has only 5 records, the bit is not set in the end, and the
 * message names offset 20 of the list.
 */
#include "listed_documents.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "corpus/stream.h"
#include "document_key.h"
#include "text/decimal.h"
#include "work/dropped_file.h"

#define SLAB ((size_t)256 << 10)
#define LINE_MOST (DROPPED_TEXT_MOST + 32)
#define TEXT_DIGITS 32
#define KIND_RECORDS "tokmap-drop records"
#define KIND_TEXTS "tokmap-drop texts"

struct entry {
    uint64_t high, low; /* the key */
    uint64_t offset;    /* of the line, or of the entry of NAME.dropped */
};

struct list {
    const char *path;
    bool by_text;
    uint64_t documents; /* that the list is about; UINT64_MAX: it does not say */
    struct entry *entries;
    uint64_t count, capacity;
    uint64_t first; /* number of its first entry among those of all lists */
};

struct listed_documents {
    struct list lists[LISTED_MOST];
    size_t count;
    uint64_t entries;
};

/* State of one work item. */
struct item {
    struct bytes_buffer found; /* u32: the entries that the documents of the batch have */
    struct listed_counts counts;
};

struct listed_search {
    const struct listed_documents *listed;
    struct listed_counts *counts;
    struct item *items;
    uint32_t item_count;
    bool saves;
    uint64_t *found;           /* a bit for each entry */
    struct bytes_buffer fresh; /* u32: entries that were found and not passed on yet */
};

static const char lacking[] = "a list of --drop"; /* in messages about memory */

/* ---- reading ---- */

static enum tokmap_status entry_add(struct list *list, struct hash128 key, uint64_t offset, struct tokmap_error *error)
{
    if (!list_room(&list->entries, list->count, &list->capacity, sizeof *list->entries))
        return error_set_memory(error, lacking, list->capacity * sizeof *list->entries);
    list->entries[list->count++] = (struct entry){key.high, key.low, offset};
    return TOKMAP_OK;
}

static struct hash128 record_key(const char *path, size_t bytes, uint64_t record)
{
    uint8_t number[8];
    store64(number, record);
    const struct hash_part parts[] = {{path, bytes}, {number, sizeof number}};
    return hash128_parts(parts, 2);
}

/* Reads the digits of a hash. Returns false if they are not. */
static bool digits_read(const char *text, size_t count, struct hash128 *key)
{
    uint64_t halves[2] = {0, 0};
    if (count != TEXT_DIGITS)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *digits = "0123456789abcdef", c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit)
            return false;
        halves[i / 16] = halves[i / 16] << 4 | (uint64_t)(digit - digits);
    }
    *key = (struct hash128){.high = halves[0], .low = halves[1]};
    return true;
}

/* Takes a line, without its end. */
static enum tokmap_status line_take(struct list *list, const char *text, size_t count, uint64_t line, uint64_t offset,
                                    struct tokmap_error *error)
{
    struct hash128 key;
    uint64_t record;
    count -= count && text[count - 1] == '\r';
    const bool is_records = count == sizeof KIND_RECORDS - 1 && !memcmp(text, KIND_RECORDS, count);
    list->by_text = line == 1 ? !is_records : list->by_text;
    if (line == 1 && (is_records || (count == sizeof KIND_TEXTS - 1 && !memcmp(text, KIND_TEXTS, count))))
        return TOKMAP_OK;
    if (line == 1)
        return error_set_line(error, TOKMAP_ERROR_FORMAT, list->path, line,
                              "this is not a list of documents: it is no NAME.dropped, and its first line is neither "
                              "'" KIND_RECORDS "' nor '" KIND_TEXTS "'");
    if (list->by_text && digits_read(text, count, &key))
        return entry_add(list, key, offset, error);
    if (list->by_text)
        return error_set_line(error, TOKMAP_ERROR_INPUT, list->path, line,
                              "a line of this list is the XXH3-128 of a text as %d hexadecimal digits, and this one is "
                              "not",
                              TEXT_DIGITS);
    const char *tab = memrchr(text, '\t', count);
    const size_t path_bytes = tab ? (size_t)(tab - text) : 0;
    if (!path_bytes || !decimal_parse(tab + 1, count - path_bytes - 1, &record))
        return error_set_line(error, TOKMAP_ERROR_INPUT, list->path, line,
                              "a line of this list is the path of an input, a tab, and the number of a record below "
                              "2^64, and this one is not");
    return entry_add(list, record_key(text, path_bytes, record), offset, error);
}

/* Takes the whole lines of a text, of which the first byte is at *offset; `end`: the last one may lack its newline. */
static enum tokmap_status lines_take(struct list *list, struct bytes_buffer *text, bool end, uint64_t *line,
                                     uint64_t *offset, struct tokmap_error *error)
{
    const char *at = (const char *)text->bytes, *stop = at + text->count;
    enum tokmap_status status = TOKMAP_OK;
    while (at < stop && !status) {
        const char *newline = memchr(at, '\n', (size_t)(stop - at));
        if (!newline && !end)
            break;
        const size_t count = (size_t)((newline ? newline : stop) - at);
        status = line_take(list, at, count, ++*line, *offset, error);
        *offset += count + 1;
        at += count + (newline != NULL);
    }
    const size_t rest = (size_t)(stop - at);
    if (!status && rest > LINE_MOST)
        return error_set_line(error, TOKMAP_ERROR_INPUT, list->path, *line + 1,
                              "the line has more than %" PRIu32 " bytes", LINE_MOST);
    if (rest)
        memmove(text->bytes, at, rest);
    text->count = rest;
    return status;
}

static enum tokmap_status text_read(struct list *list, bool (*stop)(void *user), void *user, struct tokmap_error *error)
{
    struct bytes_buffer text = {0};
    struct stream *stream;
    uint64_t line = 0, offset = 0;
    bool end = false;
    enum tokmap_status status = stream_new(&stream, stop, user, error);
    if (!status)
        status = stream_open(stream, list->path, error);
    while (!status && !end) {
        size_t got = 0;
        if (stop && stop(user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
        else if (!bytes_reserve(&text, SLAB))
            status = error_set_memory(error, lacking, SLAB);
        if (!status)
            status = stream_read(stream, (char *)text.bytes + text.count, SLAB, &got, &end, error);
        text.count += got;
        if (!status && end && !text.count && !line)
            status = line_take(list, "", 0, 1, 0, error);
        if (!status)
            status = lines_take(list, &text, end, &line, &offset, error);
    }
    stream_free(stream);
    bytes_free(&text);
    return status;
}

static enum tokmap_status dropped_read(struct list *list, const char *reading, bool (*stop)(void *user), void *user,
                                       struct tokmap_error *error)
{
    struct dropped_file *file;
    struct dropped_document document;
    enum tokmap_status status = dropped_open(&file, list->path, stop, user, error);
    if (status)
        return status;
    const char *own = dropped_reading(file);
    list->documents = dropped_header(file)->documents;
    const size_t bytes = strlen(reading); /* what was looked for follows there, after a semicolon */
    if (*own && (strncmp(own, reading, bytes) != 0 || (own[bytes] && own[bytes] != ';')))
        status =
            error_set(error, TOKMAP_ERROR_MISMATCH, list->path, TOKMAP_NO_OFFSET,
                      "this list is about inputs that were read otherwise, so its records are others: %.400s; this "
                      "command: %.400s; use the same options, or make the list again",
                      own, reading);
    while (!status) {
        status = dropped_next(file, &document, error);
        if (!status)
            status = entry_add(list, record_key(document.path, document.path_bytes, document.record), document.offset,
                               error);
    }
    const char *twice = status == TOKMAP_END ? dropped_twice(file) : NULL;
    if (twice)
        status =
            error_set(error, TOKMAP_ERROR_UNSUPPORTED, list->path, TOKMAP_NO_OFFSET,
                      "this list is about inputs of which two have the path '%.200s', so it does not say which one "
                      "has a record; make it again, and name each input once",
                      twice);
    dropped_close(file);
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

static int entries_compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    if (left->high != right->high)
        return left->high < right->high ? -1 : 1;
    if (left->low != right->low)
        return left->low < right->low ? -1 : 1;
    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Sorts the entries, of which equal ones become one. */
static void entries_sort(struct list *list)
{
    uint64_t count = 0;
    if (list->count)
        qsort(list->entries, (size_t)list->count, sizeof *list->entries, entries_compare);
    for (uint64_t i = 0; i < list->count; i++)
        if (!count || list->entries[i].high != list->entries[count - 1].high ||
            list->entries[i].low != list->entries[count - 1].low)
            list->entries[count++] = list->entries[i];
    list->count = count;
    struct entry *fitted = count ? realloc(list->entries, (size_t)count * sizeof *fitted) : NULL;
    list->entries = fitted ? fitted : list->entries;
}

enum tokmap_status listed_documents_open(struct listed_documents **listed, const char *const *paths, size_t count,
                                         const char *reading, bool (*stop)(void *user), void *user,
                                         struct tokmap_error *error)
{
    struct listed_documents *made = *listed = calloc(1, sizeof *made);
    enum tokmap_status status = made ? TOKMAP_OK : error_set_memory(error, lacking, sizeof *made);
    assert(count <= LISTED_MOST);
    for (size_t i = 0; i < count && !status; i++) {
        struct list *list = &made->lists[made->count++];
        *list = (struct list){.path = paths[i], .documents = UINT64_MAX, .first = made->entries};
        status = dropped_is_file(paths[i]) ? dropped_read(list, reading, stop, user, error)
                                           : text_read(list, stop, user, error);
        entries_sort(list);
        made->entries += list->count;
        if (!status && made->entries > UINT32_MAX)
            status = error_set(error, TOKMAP_ERROR_LIMIT, list->path, TOKMAP_NO_OFFSET,
                               "the lists of --drop have more than 2^32 entries; pack fewer inputs at once");
    }
    if (!status)
        return TOKMAP_OK;
    listed_documents_close(made);
    *listed = NULL;
    return status;
}

void listed_documents_close(struct listed_documents *listed)
{
    for (size_t i = 0; listed && i < listed->count; i++)
        free(listed->lists[i].entries);
    free(listed);
}

size_t listed_documents_count(const struct listed_documents *listed)
{
    return listed->count;
}

struct listed_list listed_documents_list(const struct listed_documents *listed, size_t number)
{
    return (struct listed_list){listed->lists[number].path, listed->lists[number].count};
}

bool listed_documents_by_record(const struct listed_documents *listed)
{
    for (size_t i = 0; i < listed->count; i++)
        if (!listed->lists[i].by_text)
            return true;
    return false;
}

void listed_documents_identity(const struct listed_documents *listed, uint8_t identity[16])
{
    struct hash128 sum = {.low = listed->count};
    for (size_t i = 0; i < listed->count; i++) {
        const struct list *list = &listed->lists[i];
        for (uint64_t k = 0; k < list->count; k++) {
            const uint64_t entry[] = {sum.low, sum.high, list->by_text, list->entries[k].low, list->entries[k].high};
            sum = hash128(entry, sizeof entry);
        }
    }
    hash128_store(sum, identity);
}

/* ---- searching ---- */

static bool entry_find(const struct list *list, struct hash128 key, uint64_t *number)
{
    uint64_t low = 0, high = list->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const struct entry *entry = &list->entries[middle];
        if (entry->high < key.high || (entry->high == key.high && entry->low < key.low))
            low = middle + 1;
        else
            high = middle;
    }
    *number = list->first + low;
    return low < list->count && list->entries[low].high == key.high && list->entries[low].low == key.low;
}

/* Removes the listed documents from a batch. item: what is found of them; NULL: it does not matter. */
static bool batch_search(const struct listed_documents *listed, struct corpus_batch *batch, struct item *item)
{
    uint64_t kept = 0;
    bool good = true;
    for (uint64_t i = 0; i < batch->document_count; i++) {
        const struct corpus_document document = batch->documents[i];
        const char *path = batch->parts[document.part].path;
        size_t by = LISTED_MOST;
        assert(!document.resumed && !document.unfinished);
        for (size_t k = 0; k < listed->count; k++) {
            uint64_t number;
            const struct list *list = &listed->lists[k];
            const struct hash128 key =
                list->by_text ? document_key(&document) : record_key(path, strlen(path), document.record);
            if (!entry_find(list, key, &number))
                continue;
            const uint32_t found = (uint32_t)number;
            by = by < k ? by : k;
            good = good && (!item || bytes_append(&item->found, &found, sizeof found));
        }
        if (by == LISTED_MOST) {
            batch->documents[kept++] = document;
            continue;
        }
        corpus_batch_leave_out(batch, &document, CORPUS_REASON_LISTED);
        if (item)
            item->counts.dropped[by]++;
    }
    if (item)
        item->counts.documents = batch->document_count;
    batch->document_count = kept;
    return good;
}

void listed_documents_remove(const struct listed_documents *listed, struct corpus_batch *batch)
{
    (void)batch_search(listed, batch, NULL);
}

enum tokmap_status listed_search_new(struct listed_search **search, const struct listed_documents *listed,
                                     uint32_t items, struct listed_counts *counts, bool saves,
                                     struct tokmap_error *error)
{
    struct listed_search *made = *search = calloc(1, sizeof *made);
    const uint64_t words = listed->entries / 64 + 1;
    if (!made)
        return error_set_memory(error, lacking, sizeof *made);
    *made = (struct listed_search){.listed = listed, .counts = counts, .item_count = items, .saves = saves};
    made->items = calloc((size_t)items + 1, sizeof *made->items);
    made->found = calloc((size_t)words, sizeof *made->found);
    return made->items && made->found ? TOKMAP_OK : error_set_memory(error, lacking, words * sizeof *made->found);
}

void listed_search_free(struct listed_search *search)
{
    if (!search)
        return;
    for (uint32_t i = 0; search->items && i < search->item_count; i++)
        bytes_free(&search->items[i].found);
    bytes_free(&search->fresh);
    free(search->items);
    free(search->found);
    free(search);
}

enum tokmap_status listed_search_batch(struct listed_search *search, struct work_item *item, struct tokmap_error *error)
{
    struct item *of = &search->items[item->index];
    of->found.count = 0;
    of->counts = (struct listed_counts){.documents = 0};
    return batch_search(search->listed, &item->batch, of) ? TOKMAP_OK
                                                          : error_set_memory(error, lacking, of->found.count);
}

/* Notes that an entry is in an input. */
static bool found_set(struct listed_search *search, uint32_t number)
{
    const uint64_t bit = (uint64_t)1 << number % 64;
    if (search->found[number / 64] & bit)
        return true;
    search->found[number / 64] |= bit;
    return !search->saves || bytes_append(&search->fresh, &number, sizeof number);
}

enum tokmap_status listed_search_committed(struct listed_search *search, const struct work_item *item,
                                           struct tokmap_error *error)
{
    const struct item *of = &search->items[item->index];
    bool good = true;
    search->counts->documents += of->counts.documents;
    for (size_t i = 0; i < LISTED_MOST; i++)
        search->counts->dropped[i] += of->counts.dropped[i];
    for (size_t at = 0; at < of->found.count; at += sizeof(uint32_t))
        good = found_set(search, load32(of->found.bytes + at)) && good;
    return good ? TOKMAP_OK : error_set_memory(error, lacking, search->fresh.count);
}

/* ---- the journal ---- */

void listed_search_save(struct listed_search *search, struct state_sink *sink)
{
    if (search->fresh.count)
        state_put(sink, 0, search->fresh.bytes, search->fresh.count);
    search->fresh.count = 0;
}

enum tokmap_status listed_search_found(const struct listed_search *search, struct bytes_buffer *found,
                                       struct tokmap_error *error)
{
    for (uint64_t i = 0; i < search->listed->entries; i++) {
        const uint32_t number = (uint32_t)i;
        if (search->found[i / 64] >> i % 64 & 1 && !bytes_append(found, &number, sizeof number))
            return error_set_memory(error, lacking, found->count);
    }
    return TOKMAP_OK;
}

enum tokmap_status listed_search_load(struct listed_search *search, const uint8_t *bytes, size_t count,
                                      struct tokmap_error *error)
{
    bool good = count % sizeof(uint32_t) == 0;
    for (size_t at = 0; at < count && good; at += sizeof(uint32_t)) {
        const uint32_t number = load32(bytes + at);
        good = number < search->listed->entries;
        if (good)
            search->found[number / 64] |= (uint64_t)1 << number % 64;
    }
    return good ? TOKMAP_OK
                : error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                            "what was found of --drop is damaged; start over with --no-resume");
}

/* ---- the end ---- */

enum tokmap_status listed_search_check(struct listed_search *search, bool skips, struct tokmap_error *error)
{
    const struct listed_documents *listed = search->listed;
    struct listed_counts *counts = search->counts;
    for (size_t i = 0; i < listed->count; i++) {
        const struct list *list = &listed->lists[i];
        uint64_t offset = UINT64_MAX;
        counts->missing[i] = 0;
        for (uint64_t k = 0; k < list->count; k++) {
            const uint64_t number = list->first + k;
            if (search->found[number / 64] >> number % 64 & 1)
                continue;
            counts->missing[i]++;
            offset = min64(offset, list->entries[k].offset);
        }
        if (counts->missing[i] && !skips)
            return error_set(error, TOKMAP_ERROR_INPUT, list->path, offset,
                             "%" PRIu64 " of the %" PRIu64 " %s that this list names are in no input, and this is the "
                             "first of them; name the inputs that the list is about, or go on without them with "
                             "--on-error skip",
                             counts->missing[i], list->count, list->by_text ? "texts" : "records");
        if (!skips && list->documents != UINT64_MAX && list->documents != counts->documents)
            return error_set(error, TOKMAP_ERROR_MISMATCH, list->path, TOKMAP_NO_OFFSET,
                             "this list is about %" PRIu64 " documents, and the inputs have %" PRIu64
                             "; name the inputs that the list is about, or use it anyway with --on-error skip",
                             list->documents, counts->documents);
    }
    return TOKMAP_OK;
}
