/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jsonl.c - reading a hostile file of records: JSONL, JSON, CSV, TSV, or WARC, of texts, of lists of ids and
 * masks, of prompts and completions, or of messages. The first two bytes choose the options, and the rest is the file.
 * For any content, the accounts add up, documents are valid UTF-8, and small batches result in the same documents and
 * issues as large ones.
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

/* A summary of the result. Documents and issues are hashed separately, because how they alternate depends on the
 * batches. */
struct seen {
    struct hash_state *hash, *faults;
    struct corpus_counts counts;
    uint64_t issues;
};

static void batch_see(struct seen *seen, const struct corpus_options *options, const struct corpus_batch *batch)
{
    for (uint64_t i = 0; i < batch->document_count; i++) {
        const struct corpus_document *document = &batch->documents[i];
        REQUIRE(utf8_valid_prefix(document->text, document->bytes) == document->bytes);
        REQUIRE(utf8_valid_prefix(document->second, document->second_bytes) == document->second_bytes);
        REQUIRE(!document->resumed && !document->unfinished);
        for (uint64_t k = 0; k < document->id_count; k++) {
            REQUIRE(!options->vocabulary || document->ids[k] < options->vocabulary);
            REQUIRE(!document->counted || document->counted[k] <= 1);
        }
        hash_state_add(seen->hash, document->second, document->second_bytes);
        hash_state_add(seen->hash, document->ids, document->id_count * sizeof *document->ids);
        hash_state_add(seen->hash, document->counted, document->counted ? document->id_count : 0);
        hash_state_add(seen->hash, &document->id_count, sizeof document->id_count);
        hash_state_add(seen->hash, document->text, document->bytes);
        hash_state_add(seen->hash, &document->bytes, sizeof document->bytes);
        hash_state_add(seen->hash, &document->record, sizeof document->record);
    }
    for (uint64_t i = 0; i < batch->issue_count; i++) {
        struct tokmap_error error;
        char text[2048];
        REQUIRE(corpus_issue_to_error(&batch->issues[i], options, &error) != TOKMAP_OK);
        REQUIRE(tokmap_error_print(&error, text, sizeof text)[0]);
        REQUIRE(error.line || batch->issues[i].kind == CORPUS_ISSUE_FILE);
        hash_state_add(seen->faults, &error.line, sizeof error.line);
        hash_state_add(seen->faults, &error.offset, sizeof error.offset);
        hash_state_add(seen->faults, &batch->issues[i].bytes, sizeof batch->issues[i].bytes);
        seen->issues++;
    }
    corpus_counts_add(&seen->counts, &batch->counts);
}

static uint64_t read_all(const struct corpus_options *options, struct seen *seen)
{
    static struct corpus_batch batch;
    struct corpus *corpus;
    const char *operand = fuzz_path;
    enum tokmap_status status;
    memset(seen, 0, sizeof *seen);
    seen->hash = hash_state_new();
    seen->faults = hash_state_new();
    REQUIRE(seen->hash && seen->faults);
    REQUIRE(corpus_open(&corpus, &operand, 1, options, NULL) == TOKMAP_OK);
    while ((status = corpus_next(corpus, &batch, NULL)) == TOKMAP_OK) {
        REQUIRE(records_to_documents(options, &batch, NULL) == TOKMAP_OK);
        batch_see(seen, options, &batch);
        if (seen->issues && !options->skip)
            break;
    }
    corpus_close(corpus);
    if (status == TOKMAP_END) {
        const struct corpus_counts *counts = &seen->counts;
        REQUIRE(counts->stream_bytes == counts->document_bytes + counts->structure_bytes + counts->skipped_bytes);
        REQUIRE(counts->files + counts->files_skipped == 1);
        /* Records without text are left out without an issue. */
        const uint64_t quiet = counts->left_out[CORPUS_REASON_NOT_TEXT].records;
        REQUIRE(counts->records_skipped + counts->files_skipped == seen->issues + quiet);
    }
    const uint64_t hash = hash_state_64(seen->hash) * 31 + hash_state_64(seen->faults);
    hash_state_free(seen->hash);
    hash_state_free(seen->faults);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || (size > 4 && (data[2] == 0x1f || data[2] == 0x28 || (data[2] & 0xf0) == 0x50)))
        return 0; /* compressed files: the decompressors have fuzzers of their own */
    (void)fuzz_file("jsonl");
    FILE *file = fopen(fuzz_path, "wb");
    REQUIRE(file && fwrite(data + 2, 1, size - 2, file) == size - 2);
    REQUIRE(!fclose(file));
    static const enum corpus_format formats[] = {CORPUS_JSONL, CORPUS_JSON, CORPUS_CSV, CORPUS_TSV};
    struct corpus_options options = {.format = data[1] & 8 ? CORPUS_WARC : formats[data[1] >> 1 & 3],
                                     .invalid = (enum corpus_invalid)(data[0] % 3),
                                     .field = data[0] & 64 ? "te\"xt" : "text",
                                     .skip = true,
                                     .cut_anywhere = true,
                                     .record_limit = data[1] & 1 ? 50 : (uint64_t)1 << 20,
                                     .document_limit = 1 << 20};
    /* A WARC record is a text. */
    const unsigned content = options.format == CORPUS_WARC ? 0 : data[1] >> 4 & 3;
    if (content == 1) {
        options.content = CORPUS_CONTENT_IDS;
        options.field = "ids";
        options.second_field = data[0] & 128 ? "mask" : NULL;
        options.vocabulary = data[1] & 64 ? 50000 : 0;
    } else if (content == 2) {
        options.content = CORPUS_CONTENT_PROMPT;
        options.second_field = "completion";
    } else if (content == 3) {
        options.content = CORPUS_CONTENT_MESSAGES;
        options.field = "messages";
    }
    struct seen small, large;
    options.batch_bytes = 8192;
    const uint64_t first = read_all(&options, &small);
    options.batch_bytes = 1 << 20;
    const uint64_t second = read_all(&options, &large);
    REQUIRE(first == second);
    REQUIRE(!memcmp(&small.counts, &large.counts, sizeof small.counts));
    options.skip = false;
    (void)read_all(&options, &small);
    return 0;
}
