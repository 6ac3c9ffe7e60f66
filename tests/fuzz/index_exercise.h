/* SPDX-License-Identifier: MIT */
/*
 * index_exercise.h - for fuzzing indexes: gives any bytes valid checksums, and calls all functions of a dataset.
 *
 * A mutation that breaks a checksum tests only the checksum. index_rehash() computes the content id and all hashes
 * again, at the positions in the table, so that the code behind the checks is reached. A function may return an error;
 * if it returns a result that is outside the dataset, the process aborts.
 */
#ifndef TOKMAP_TESTS_INDEX_EXERCISE_H
#define TOKMAP_TESTS_INDEX_EXERCISE_H

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "format/index_reader.h"

static __attribute__((unused)) void index_rehash(uint8_t *bytes, size_t count)
{
    struct index_header header;
    if (count < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    uint64_t table = header.table_offset;
    uint64_t entries = header.sections < INDEX_SECTIONS_MAX ? header.sections : INDEX_SECTIONS_MAX;
    if (table > count || entries * sizeof(struct index_entry) > count - table)
        entries = 0;
    uint64_t blocks_hash = 0, documents_hash = 0;
    /* Two passes, because the shard section contains the content id, which is computed from the hashes of other
     * sections. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < entries; i++) {
            struct index_entry entry;
            uint8_t *at = bytes + table + i * sizeof entry;
            memcpy(&entry, at, sizeof entry);
            if (entry.offset > count || entry.bytes > count - entry.offset)
                continue;
            if (pass && entry.type == SECTION_SHARD && entry.bytes >= sizeof(struct section_shard)) {
                struct section_shard shard;
                memcpy(&shard, bytes + entry.offset, sizeof shard);
                index_content_id(shard.width, shard.tokens, shard.documents, blocks_hash, documents_hash,
                                 shard.content);
                memcpy(bytes + entry.offset, &shard, sizeof shard);
            }
            entry.hash = hash64(bytes + entry.offset, (size_t)entry.bytes);
            if (entry.type == SECTION_BLOCKS)
                blocks_hash = entry.hash;
            if (entry.type == SECTION_DOCUMENTS)
                documents_hash = entry.hash;
            memcpy(at, &entry, sizeof entry);
        }
    }
    header.table_hash =
        hash64(bytes + (table <= count ? table : count), (size_t)(entries * sizeof(struct index_entry)));
    header.header_hash = hash64(&header, offsetof(struct index_header, header_hash));
    memcpy(bytes, &header, sizeof header);
}

static uint64_t exercise_sum; /* everything that is read is added to this, so that the compiler cannot remove a read */

static void exercise_holds(bool truth)
{
    if (!truth)
        abort();
}

static void exercise_document(const struct tokmap_dataset *dataset, uint64_t number, uint64_t tokens)
{
    struct tokmap_document document;
    struct tokmap_origin origin;
    struct tokmap_error error;
    if (!tokmap_dataset_document(dataset, number, &document, &error))
        exercise_holds(document.first_token <= tokens && document.tokens <= tokens - document.first_token);
    if (!tokmap_dataset_origin(dataset, number, &origin, &error))
        for (uint64_t i = 0; i < origin.path_bytes; i++)
            exercise_sum += (uint8_t)origin.path[i];
}

/* Reads the values of all columns of a document. */
static void exercise_columns(const struct tokmap_dataset *dataset, uint64_t number)
{
    const char *names[8];
    size_t count = 0;
    struct tokmap_error error;
    const enum tokmap_status status = tokmap_dataset_columns(dataset, names, 8, &count, &error);
    for (size_t c = 0; c < count && c < 8 && (!status || status == TOKMAP_ERROR_LIMIT); c++) {
        struct tokmap_value value;
        struct tokmap_column_info info = TOKMAP_COLUMN_INFO_INIT;
        exercise_holds(names[c][0] != 0);
        if (!tokmap_dataset_column(dataset, names[c], &info, &error))
            exercise_sum += info.bytes;
        if (!tokmap_dataset_value(dataset, number, names[c], &value, &error))
            for (uint64_t i = 0; i < value.bytes; i++)
                exercise_sum += (uint8_t)value.json[i];
    }
}

static void exercise_tokens(const struct tokmap_dataset *dataset, uint64_t first, uint64_t count)
{
    struct tokmap_document document;
    struct tokmap_error error;
    struct tokmap_span spans[2];
    uint64_t ends[40], used_ends, start;
    size_t used = 0;
    uint8_t out[400];
    if (!tokmap_dataset_document_at(dataset, first, &document, &error))
        exercise_holds(document.first_token <= first && first - document.first_token < document.tokens);
    if (!dataset_ends(dataset, first, count, ends, 40, &used_ends, &start, &error))
        for (uint64_t i = 0; i < used_ends; i++)
            exercise_holds(ends[i] > (i ? ends[i - 1] : 0) && ends[i] <= count && start <= first);
    if (!tokmap_dataset_view(dataset, first, count, spans, 2, &used, &error))
        for (size_t s = 0; s < used; s++)
            exercise_sum += *(const uint8_t *)spans[s].tokens;
    if (count <= 100 && !tokmap_dataset_mask(dataset, first, count, out, &error))
        exercise_sum += count ? out[(count - 1) / 8] : 0;
    if (count <= 100 && !tokmap_dataset_copy(dataset, first, count, out, &error))
        exercise_sum += count ? out[0] : 0;
}

/* Calls every function of a dataset except verify, at its edges and in between. */
static void exercise_functions(const struct tokmap_dataset *dataset)
{
    struct tokmap_dataset_info info = TOKMAP_DATASET_INFO_INIT;
    struct tokmap_shard_info shard = TOKMAP_SHARD_INFO_INIT;
    struct tokmap_error error;
    if (tokmap_dataset_info(dataset, &info))
        abort();
    for (uint64_t s = 0; s < info.shards; s++)
        if (!tokmap_dataset_shard(dataset, s, &shard, &error))
            for (uint64_t i = 0; i < shard.about_bytes; i++)
                exercise_sum += (uint8_t)shard.about[i];
    for (uint64_t i = 0; i < 4; i++) {
        exercise_columns(dataset, i);
        exercise_columns(dataset, info.documents - i);
    }
    for (uint64_t i = 0; i < 24; i++) {
        exercise_document(dataset, i, info.tokens);
        exercise_document(dataset, info.documents - i, info.tokens);
        exercise_document(dataset, info.documents / 24 * i, info.tokens);
        exercise_tokens(dataset, i, info.tokens - i);
        exercise_tokens(dataset, i, 7);
        exercise_tokens(dataset, info.tokens - i, i);
        exercise_tokens(dataset, info.tokens / 24 * i, 100);
        exercise_tokens(dataset, (i << 32) - 1, 2);
        exercise_tokens(dataset, (i << 32) + 5, 7);
    }
}

/* Calls these functions and verify, and returns the status of verify. */
static __attribute__((unused)) enum tokmap_status exercise_dataset(const struct tokmap_dataset *dataset)
{
    exercise_functions(dataset);
    struct tokmap_error error;
    struct tokmap_verify_options options = TOKMAP_VERIFY_OPTIONS_INIT;
    options.threads = 1;
    return tokmap_dataset_verify(dataset, &options, NULL, &error);
}

#endif
