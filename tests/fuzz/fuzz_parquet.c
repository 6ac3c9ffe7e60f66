/* SPDX-License-Identifier: MIT */
/*
 * fuzz_parquet.c - reading a hostile Parquet file. The first two bytes choose what is read and how, and the rest is the
 * file. For any content, the accounts add up, texts are valid UTF-8, ids are in range, records are in order, and small
 * batches result in the same documents as large ones.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "corpus/corpus.h"
#include "corpus/corpus_issue.h"
#include "corpus/records.h"
#include "fuzz_case.h"
#include "text/utf8.h"

#define DOCUMENTS_MOST 100000 /* a small file may say that it has 2^60 rows of an empty text */

struct seen {
    struct hash_state *hash;
    struct corpus_counts counts;
    uint64_t issues, documents, next;
    bool complete;
};

static void bytes_see(struct seen *seen, const void *bytes, uint64_t count)
{
    hash_state_add(seen->hash, &count, sizeof count);
    hash_state_add(seen->hash, bytes, (size_t)count);
}

static void document_see(struct seen *seen, const struct corpus_options *options,
                         const struct corpus_document *document)
{
    REQUIRE(document->record >= seen->next);
    seen->next = document->record + 1;
    REQUIRE(utf8_valid_prefix(document->text, document->bytes) == document->bytes);
    REQUIRE(utf8_valid_prefix(document->second, document->second_bytes) == document->second_bytes);
    REQUIRE(!document->resumed && !document->unfinished);
    for (uint64_t i = 0; i < document->id_count; i++) {
        REQUIRE(!options->vocabulary || document->ids[i] < options->vocabulary);
        REQUIRE(!document->counted || document->counted[i] <= 1);
    }
    bytes_see(seen, document->text, document->bytes);
    bytes_see(seen, document->second, document->second_bytes);
    bytes_see(seen, document->ids, document->id_count * sizeof *document->ids);
    bytes_see(seen, document->counted, document->counted ? document->id_count : 0);
    for (size_t i = 0; i < options->column_count; i++) {
        REQUIRE(utf8_valid_prefix(document->values[i].json, document->values[i].bytes) == document->values[i].bytes);
        bytes_see(seen, document->values[i].json, document->values[i].bytes);
    }
    seen->documents++;
}

static uint64_t read_all(const struct corpus_options *options, struct seen *seen)
{
    static struct corpus_batch batch;
    struct corpus *corpus;
    const char *operand = fuzz_path;
    enum tokmap_status status;
    memset(seen, 0, sizeof *seen);
    seen->hash = hash_state_new();
    REQUIRE(seen->hash);
    REQUIRE(corpus_open(&corpus, &operand, 1, options, NULL) == TOKMAP_OK);
    while ((status = corpus_next(corpus, &batch, NULL)) == TOKMAP_OK && seen->documents < DOCUMENTS_MOST) {
        REQUIRE(records_to_documents(options, &batch, NULL) == TOKMAP_OK);
        for (uint64_t i = 0; i < batch.document_count; i++)
            document_see(seen, options, &batch.documents[i]);
        for (uint64_t i = 0; i < batch.issue_count; i++) {
            struct tokmap_error error;
            char text[2048];
            REQUIRE(corpus_issue_to_error(&batch.issues[i], options, &error) != TOKMAP_OK);
            REQUIRE(tokmap_error_print(&error, text, sizeof text)[0]);
            seen->issues++;
        }
        corpus_counts_add(&seen->counts, &batch.counts);
        if (seen->issues && !options->skip)
            break;
    }
    corpus_close(corpus);
    seen->complete = status == TOKMAP_END;
    if (seen->complete) {
        const struct corpus_counts *counts = &seen->counts;
        REQUIRE(counts->stream_bytes == counts->document_bytes + counts->structure_bytes + counts->skipped_bytes);
        REQUIRE(counts->files + counts->files_skipped == 1);
        REQUIRE(counts->documents == seen->documents);
    }
    const uint64_t hash = hash_state_64(seen->hash);
    hash_state_free(seen->hash);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const columns[] = {"number", "flag", "score", "meta.url", "completion"};
    static const struct {
        enum corpus_content content;
        const char *field, *second;
    } ways[] = {
        {CORPUS_CONTENT_TEXT, "text", NULL},
        {CORPUS_CONTENT_TEXT, "meta.url", NULL},
        {CORPUS_CONTENT_IDS, "ids", NULL},
        {CORPUS_CONTENT_IDS, "ids", "mask"},
        {CORPUS_CONTENT_PROMPT, "text", "completion"},
        {CORPUS_CONTENT_MESSAGES, "messages", NULL},
    };
    if (size < 2)
        return 0;
    (void)fuzz_file("parquet");
    FILE *file = fopen(fuzz_path, "wb");
    REQUIRE(file && fwrite(data + 2, 1, size - 2, file) == size - 2);
    REQUIRE(!fclose(file));
    const unsigned way = data[0] % (sizeof ways / sizeof ways[0]);
    struct corpus_options options = {.format = CORPUS_PARQUET,
                                     .invalid = (enum corpus_invalid)(data[1] % 3),
                                     .content = ways[way].content,
                                     .field = ways[way].field,
                                     .second_field = ways[way].second,
                                     .columns = columns,
                                     .column_count = data[1] / 3 % 6,
                                     .vocabulary = data[1] & 64 ? 50000 : 0,
                                     .skip = true,
                                     .cut_anywhere = true,
                                     .record_limit = (uint64_t)1 << 20,
                                     .document_limit = 1 << 20};
    struct seen small, large;
    options.batch_bytes = 8192;
    const uint64_t first = read_all(&options, &small);
    options.batch_bytes = 1 << 20;
    const uint64_t second = read_all(&options, &large);
    REQUIRE(first == second || !small.complete || !large.complete);
    REQUIRE(small.documents == large.documents || !small.complete || !large.complete);
    options.skip = false;
    (void)read_all(&options, &small);
    return 0;
}
