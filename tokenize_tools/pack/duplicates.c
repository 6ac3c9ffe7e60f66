/*
 * duplicates.c - see duplicates.h.
 *
 * Example: the documents a b a c b, at the places 0 to 4, and room for one key in the table. At b the table is full.
 * The inputs are read from the beginning, and their keys are written to partitions; say that a and c are in the first
 * one, a0 a2 c3, and b in the second one, b1 b4. The first pass over the first partition puts a into the table, finds
 * that 2 is a duplicate of 0, and has no room for c, which it writes to a list of its own; the second pass finds no
 * duplicate in that. The other partition gives 4, a duplicate of 1. Each pass has found its duplicates in the order of
 * the input, so that they are merged like sorted runs: 2, 4. The work continues with document 1, and drops 2 and 4.
 *
 * A pass takes as many keys as fit, so it always ends, whatever the keys are; a key that is once refused by a full
 * table is refused to the end of the pass (key_table.h), so all of its documents are in the same pass.
 */
#include "duplicates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "block_chain.h"
#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "ordered_workers.h"
#include "platform/os.h"

#define MEMORY_LEAST ((uint64_t)1 << 20)
#define MERGE_MEMORY ((uint64_t)32 << 20)
#define READ_LEAST ((uint64_t)4 << 10)
#define PARTITIONS 256

/* What the file has of a document: its key and its place. */
struct key_record {
    uint64_t low, high;
    uint64_t record;
    uint32_t input;
    uint32_t zero;
};
_Static_assert(sizeof(struct key_record) == 32, "the bytes a document that the manual states");

struct duplicate {
    uint64_t record, kept_record;
    uint32_t input, kept_input;
};

/* The duplicates that one pass has found, in the order of the input. */
struct run {
    struct block_chain chain;
    struct chain_reader reader;
    const struct duplicate *head; /* the next one; NULL: none is left */
};

struct duplicates {
    struct duplicates_options options;
    struct key_table table;
    bool reads_again; /* the table lacks keys of earlier documents */
    bool listed;      /* the inputs were read a second time, and `runs` has the answers */
    struct block_file file;
    struct place_counter second; /* of the second reading */
    struct table_key key;        /* of the partitions */
    struct run *runs;
    uint64_t run_count, run_capacity;
    uint64_t *heap; /* numbers of the runs that are not at their end; heap[0] has the first duplicate */
    uint64_t heap_count;
    uint64_t file_blocks; /* the most */
};

/* The second reading. */
struct scan {
    struct duplicates *duplicates;
    struct bytes_buffer *keys; /* of each item: struct hash128 of each document */
    struct block_chain partitions[PARTITIONS];
};

/* ---- reading the inputs again ---- */

static enum tokmap_status scan_process(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct scan *scan = self;
    struct bytes_buffer *keys = &scan->keys[item->index];
    keys->count = 0;
    for (uint64_t i = 0; i < item->batch.document_count; i++) {
        const struct hash128 key = document_key(&item->batch.documents[i]);
        assert(!item->batch.documents[i].resumed && !item->batch.documents[i].unfinished);
        if (!bytes_append(keys, &key, sizeof key))
            return error_set_memory(error, "the keys of a batch", item->batch.document_count * sizeof key);
    }
    return TOKMAP_OK;
}

static enum tokmap_status scan_commit(void *self, struct work_item *item, struct tokmap_error *error)
{
    struct scan *scan = self;
    struct duplicates *duplicates = scan->duplicates;
    const struct corpus_batch *batch = &item->batch;
    const uint32_t partitions = duplicates->options.partitions;
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < batch->document_count && !status; i++) {
        const struct corpus_document *document = &batch->documents[i];
        struct hash128 key;
        struct document_place place;
        bool is_new;
        memcpy(&key, scan->keys[item->index].bytes + i * sizeof key, sizeof key);
        status = place_counter_next(&duplicates->second, &batch->parts[document->part], document->record, key, &place,
                                    &is_new, error);
        const struct key_record record = {
            .low = key.low, .high = key.high, .record = place.record, .input = place.input};
        const uint32_t partition = key_partition(duplicates->key, key) * partitions / PARTITIONS;
        if (!status)
            status = block_chain_add(&duplicates->file, &scan->partitions[partition], &record, error);
    }
    return status;
}

static enum tokmap_status scan_inputs(struct scan *scan, struct tokmap_error *error)
{
    const struct duplicates_options *options = &scan->duplicates->options;
    struct corpus_counts counts = {0};
    struct ordered_workers *workers = NULL;
    const struct ordered_workers_options reading = {.name = "tokmap-dedup",
                                                    .threads = options->threads,
                                                    .corpus = options->corpus,
                                                    .counts = &counts,
                                                    .other_output = options->other_output,
                                                    .process = scan_process,
                                                    .commit = scan_commit,
                                                    .self = scan,
                                                    .stop = options->stop,
                                                    .user = options->user};
    enum tokmap_status status =
        ordered_workers_new(&workers, &reading, options->operands, options->operand_count, error);
    const uint32_t items = workers ? ordered_workers_item_count(workers) : 0;
    if (!status && !(scan->keys = calloc(items, sizeof *scan->keys)))
        status = error_set_memory(error, "the keys of a batch", items * sizeof *scan->keys);
    if (!status && options->prepare)
        status = options->prepare(options->self, ordered_workers_corpus(workers), error);
    if (!status)
        status = ordered_workers_run(workers, error);
    for (uint32_t i = 0; scan->keys && i < items; i++)
        bytes_free(&scan->keys[i]);
    free(scan->keys);
    ordered_workers_free(workers);
    return status;
}

/* ---- the duplicates of a partition ---- */

static struct run *run_begin(struct duplicates *duplicates, struct tokmap_error *error)
{
    if (duplicates->run_count == duplicates->run_capacity) {
        const uint64_t more = 2 * duplicates->run_capacity + PARTITIONS;
        struct run *grown = realloc(duplicates->runs, (size_t)more * sizeof *grown);
        if (!grown) {
            (void)error_set_memory(error, "the lists of duplicates", more * sizeof *grown);
            return NULL;
        }
        duplicates->runs = grown;
        duplicates->run_capacity = more;
    }
    struct run *run = &duplicates->runs[duplicates->run_count++];
    *run = (struct run){.chain = {.record_bytes = sizeof(struct duplicate)}};
    return run;
}

/* One pass: adds the duplicates among the keys of *from to a run, and the keys that had no room to *rest. */
static enum tokmap_status pass_run(struct duplicates *duplicates, const struct block_chain *from, struct run *run,
                                   struct block_chain *rest, struct tokmap_error *error)
{
    const struct duplicates_options *options = &duplicates->options;
    struct chain_reader reader = {.chain = from, .buffer_bytes = CHAIN_BLOCK};
    enum tokmap_status status = TOKMAP_OK;
    for (uint64_t done = 0; !status; done++) {
        const void *next;
        struct key_record record;
        struct document_place kept;
        status = chain_reader_next(&duplicates->file, &reader, &next, error);
        if (status || !next)
            break;
        memcpy(&record, next, sizeof record);
        const struct hash128 key = {record.low, record.high};
        const struct document_place place = {.record = record.record, .input = record.input};
        switch (key_table_find(&duplicates->table, key, &place, &kept)) {
        case KEY_FOUND:
            status = block_chain_add(&duplicates->file, &run->chain,
                                     &(struct duplicate){place.record, kept.record, place.input, kept.input}, error);
            break;
        case KEY_ADDED:
            break;
        case KEY_NO_ROOM:
            status = block_chain_add(&duplicates->file, rest, &record, error);
            break;
        case KEY_NO_MEMORY:
            status = error_set_memory(error, "the keys of documents", duplicates->table.bytes);
        }
        if (!status && done % 65536 == 0 && options->stop && options->stop(options->user))
            status = error_set(error, TOKMAP_ERROR_INTERRUPTED, NULL, TOKMAP_NO_OFFSET, "interrupted");
    }
    chain_reader_free(&reader);
    if (!status)
        status = block_chain_end(&duplicates->file, rest, error);
    return status ? status : block_chain_end(&duplicates->file, &run->chain, error);
}

static enum tokmap_status partition_resolve(struct duplicates *duplicates, struct block_chain *keys,
                                            struct tokmap_error *error)
{
    enum tokmap_status status = block_chain_end(&duplicates->file, keys, error);
    while (!status && keys->records) {
        struct block_chain rest = {.record_bytes = sizeof(struct key_record)};
        struct run *run = run_begin(duplicates, error);
        if (!run)
            return TOKMAP_ERROR_MEMORY;
        status = pass_run(duplicates, keys, run, &rest, error);
        assert(status || rest.records < keys->records);
        key_table_free(&duplicates->table);
        block_chain_free(&duplicates->file, keys);
        *keys = rest;
    }
    block_chain_free(&duplicates->file, keys);
    return status;
}

/* ---- merging ---- */

static bool is_before(const struct duplicate *a, const struct duplicate *b)
{
    return a->input != b->input ? a->input < b->input : a->record < b->record;
}

/* Moves the run at heap[at] down until it is before those below it. */
static void heap_sink(struct duplicates *duplicates, uint64_t at)
{
    uint64_t *heap = duplicates->heap;
    for (;;) {
        uint64_t first = at;
        for (uint64_t child = 2 * at + 1; child <= 2 * at + 2 && child < duplicates->heap_count; child++)
            if (is_before(duplicates->runs[heap[child]].head, duplicates->runs[heap[first]].head))
                first = child;
        if (first == at)
            return;
        const uint64_t moved = heap[at];
        heap[at] = heap[first];
        heap[first] = moved;
        at = first;
    }
}

static enum tokmap_status run_advance(struct duplicates *duplicates, struct run *run, struct tokmap_error *error)
{
    const void *next;
    const enum tokmap_status status = chain_reader_next(&duplicates->file, &run->reader, &next, error);
    run->head = next;
    if (!next)
        chain_reader_free(&run->reader);
    return status;
}

static enum tokmap_status merge_begin(struct duplicates *duplicates, struct tokmap_error *error)
{
    const uint64_t runs = duplicates->run_count;
    const uint64_t each = min64(CHAIN_BLOCK, max64(READ_LEAST, MERGE_MEMORY / max64(runs, 1)));
    enum tokmap_status status = TOKMAP_OK;
    duplicates->heap = malloc((size_t)max64(runs, 1) * sizeof *duplicates->heap);
    if (!duplicates->heap)
        return error_set_memory(error, "the lists of duplicates", runs * sizeof *duplicates->heap);
    for (uint64_t i = 0; i < runs && !status; i++) {
        struct run *run = &duplicates->runs[i];
        run->reader = (struct chain_reader){.chain = &run->chain, .buffer_bytes = (uint32_t)each};
        status = run_advance(duplicates, run, error);
        if (run->head)
            duplicates->heap[duplicates->heap_count++] = i;
    }
    for (uint64_t i = duplicates->heap_count / 2; i-- > 0;)
        heap_sink(duplicates, i);
    return status;
}

/* Removes the first duplicate of all. */
static enum tokmap_status merge_next(struct duplicates *duplicates, struct tokmap_error *error)
{
    struct run *run = &duplicates->runs[duplicates->heap[0]];
    const enum tokmap_status status = run_advance(duplicates, run, error);
    if (!run->head)
        duplicates->heap[0] = duplicates->heap[--duplicates->heap_count];
    heap_sink(duplicates, 0);
    return status;
}

/* Reads the inputs a second time, and lists all duplicates. */
static enum tokmap_status duplicates_list(struct duplicates *duplicates, struct tokmap_error *error)
{
    struct scan scan = {.duplicates = duplicates};
    key_table_free(&duplicates->table);
    duplicates->key = table_key_new();
    for (uint32_t i = 0; i < PARTITIONS; i++)
        scan.partitions[i].record_bytes = sizeof(struct key_record);
    enum tokmap_status status = scan_inputs(&scan, error);
    duplicates->table.bytes_most = max64(duplicates->options.memory, MEMORY_LEAST);
    for (uint32_t i = 0; i < PARTITIONS && !status; i++)
        status = partition_resolve(duplicates, &scan.partitions[i], error);
    duplicates->file_blocks = duplicates->file.blocks;
    for (uint32_t i = 0; i < PARTITIONS; i++)
        block_chain_free(&duplicates->file, &scan.partitions[i]);
    duplicates->listed = true;
    return status ? status : merge_begin(duplicates, error);
}

/* ---- questions ---- */

enum tokmap_status duplicates_new(struct duplicates **duplicates, const struct duplicates_options *options,
                                  struct tokmap_error *error)
{
    struct duplicates *made = *duplicates = calloc(1, sizeof *made);
    if (!made)
        return error_set_memory(error, "the keys of documents", sizeof *made);
    made->options = *options;
    if (!made->options.partitions)
        made->options.partitions = PARTITIONS;
    const bool limited =
        options->folder && duplicates_can_repeat(options->operands, options->operand_count, &options->corpus.select);
    key_table_init(&made->table, limited ? options->memory : UINT64_MAX);
    made->reads_again = options->continues;
    block_file_init(&made->file, options->folder);
    return TOKMAP_OK;
}

void duplicates_free(struct duplicates *duplicates)
{
    if (!duplicates)
        return;
    for (uint64_t i = 0; i < duplicates->run_count; i++) {
        chain_reader_free(&duplicates->runs[i].reader);
        block_chain_free(&duplicates->file, &duplicates->runs[i].chain);
    }
    free(duplicates->runs);
    free(duplicates->heap);
    block_file_free(&duplicates->file);
    key_table_free(&duplicates->table);
    free(duplicates);
}

void duplicates_prefetch(const struct duplicates *duplicates, struct hash128 key)
{
    if (!duplicates->listed)
        key_table_prefetch(&duplicates->table, key);
}

enum tokmap_status duplicates_find(struct duplicates *duplicates, struct hash128 key,
                                   const struct document_place *place, bool *is_duplicate, struct document_place *kept,
                                   struct tokmap_error *error)
{
    enum tokmap_status status = TOKMAP_OK;
    *is_duplicate = false;
    if (!duplicates->listed && duplicates->reads_again) {
        status = duplicates_list(duplicates, error);
    } else if (!duplicates->listed) {
        switch (key_table_find(&duplicates->table, key, place, kept)) {
        case KEY_FOUND:
            *is_duplicate = true;
            if (kept->input < place->input || (kept->input == place->input && kept->record < place->record))
                return TOKMAP_OK;
            return error_set(error, TOKMAP_ERROR_CORRUPT, NULL, TOKMAP_NO_OFFSET,
                             "the journal of the unfinished work is damaged; start over with options.start_over");
        case KEY_ADDED:
            return TOKMAP_OK;
        case KEY_NO_MEMORY:
            return error_set_memory(error, "the keys of documents", duplicates->table.bytes);
        case KEY_NO_ROOM:
            status = duplicates_list(duplicates, error);
        }
    }
    const struct duplicate wanted = {.record = place->record, .input = place->input};
    while (!status && duplicates->heap_count) {
        const struct duplicate head = *duplicates->runs[duplicates->heap[0]].head;
        if (is_before(&wanted, &head))
            break;
        status = merge_next(duplicates, error);
        if (is_before(&head, &wanted)) /* before the table was full, it has given the same answer */
            continue;
        *is_duplicate = true;
        *kept = (struct document_place){.record = head.kept_record, .input = head.kept_input};
        break;
    }
    return status;
}

bool duplicates_are_listed(const struct duplicates *duplicates)
{
    return duplicates->listed;
}

enum tokmap_status duplicates_restore(struct duplicates *duplicates, struct hash128 key,
                                      const struct document_place *place, struct tokmap_error *error)
{
    struct document_place kept;
    if (duplicates->reads_again)
        return TOKMAP_OK;
    const enum key_found found = key_table_find(&duplicates->table, key, place, &kept);
    duplicates->reads_again = found == KEY_NO_ROOM;
    return found == KEY_NO_MEMORY ? error_set_memory(error, "the keys of documents", duplicates->table.bytes)
                                  : TOKMAP_OK;
}

static bool is_changed(const struct place_counter *found, const struct place_counter *all)
{
    return found->documents != all->documents || found->digest != all->digest;
}

struct place_counter duplicates_listed(const struct duplicates *duplicates)
{
    struct place_counter all = duplicates->options.listed;
    if (!duplicates->listed)
        return all;
    if (!all.documents)
        return duplicates->second;
    if (is_changed(&duplicates->second, &all)) /* no packing can agree with both */
        all.digest = ~all.digest;
    return all;
}

enum tokmap_status duplicates_finish(const struct duplicates *duplicates, const struct place_counter *all,
                                     struct tokmap_error *error)
{
    const struct place_counter *earlier = &duplicates->options.listed, *second = &duplicates->second;
    const struct place_counter *other = earlier->documents && is_changed(earlier, all)  ? earlier
                                        : duplicates->listed && is_changed(second, all) ? second
                                                                                        : NULL;
    if (!other)
        return TOKMAP_OK;
    return error_set(error, TOKMAP_ERROR_MISMATCH, NULL, TOKMAP_NO_OFFSET,
                     "the inputs have changed while they were read: the search for duplicates found %" PRIu64
                     " documents, and the packing found %" PRIu64 " or others; pack inputs that do not change",
                     other->documents, all->documents);
}

static bool is_regular(const char *path)
{
    struct os_stat stat;
    return strcmp(path, "-") != 0 && (os_stat(path, &stat) || stat.kind == OS_KIND_FILE || stat.kind == OS_KIND_FOLDER);
}

bool duplicates_can_repeat(const char *const *operands, size_t count, const struct inputs_selection *select)
{
    for (size_t i = 0; i < count; i++)
        if (!is_regular(operands[i]))
            return false;
    for (size_t i = 0; i < select->list_count; i++)
        if (!is_regular(select->lists[i]))
            return false;
    return true;
}

bool duplicates_read_twice(const struct duplicates *duplicates, uint64_t *file_bytes)
{
    *file_bytes = duplicates->file_blocks * CHAIN_BLOCK;
    return duplicates->listed;
}
