/* SPDX-License-Identifier: MIT */
/*
 * dump_documents.c - reads files as `tokmap pack` does, and prints every document and issue, for tests that compare
 * them with what another program reads from the same files.
 *
 * Each line of standard input is a file and how to read it, in fields that tabs separate:
 *
 *     PATH CONTENT FIELD SECOND BATCH_BYTES [COLUMN]...
 *
 * CONTENT is text, ids, or prompt; SECOND is the second field (corpus.h), or empty; each COLUMN is a field to keep.
 * Standard output has records for each line of the input, with little-endian numbers:
 *
 *     D, record, text, second, ids, mask, values   a document; all but the record are u64 sizes, then their bytes
 *     I, record, message                           an issue, and what would be printed
 *     E, status, sound                             the end: the status, and 1 if the accounts add up
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/corpus.h"
#include "corpus/corpus_issue.h"
#include "corpus/records.h"

#define FIELDS 64

static void put(uint64_t number)
{
    (void)fwrite(&number, 1, sizeof number, stdout);
}

static void put_bytes(const void *bytes, uint64_t count)
{
    put(count);
    if (count)
        (void)fwrite(bytes, 1, (size_t)count, stdout);
}

static void document_print(const struct corpus_options *options, const struct corpus_document *document)
{
    (void)putchar('D');
    put(document->record);
    put_bytes(document->text, document->bytes);
    put_bytes(document->second, document->second_bytes);
    put_bytes(document->ids, document->id_count * sizeof *document->ids);
    put_bytes(document->counted, document->counted ? document->id_count : 0);
    for (size_t i = 0; i < options->column_count; i++)
        put_bytes(document->values[i].json, document->values[i].bytes);
}

static void issue_print(const struct corpus_options *options, const struct corpus_issue *issue)
{
    struct tokmap_error error;
    char text[4096];
    (void)corpus_issue_to_error(issue, options, &error);
    const char *message = tokmap_error_print(&error, text, sizeof text);
    (void)putchar('I');
    put(issue->record);
    put_bytes(message, strlen(message));
}

static void file_print(const struct corpus_options *options, const char *path)
{
    static struct corpus_batch batch;
    struct corpus_counts sum = {0};
    struct tokmap_error error = {0};
    struct corpus *corpus;
    enum tokmap_status status = corpus_open(&corpus, &path, 1, options, &error);
    if (!status) {
        while (!(status = corpus_next(corpus, &batch, &error)) &&
               !(status = records_to_documents(options, &batch, &error))) {
            uint64_t issue = 0;
            for (uint64_t i = 0; i < batch.document_count; i++)
                document_print(options, &batch.documents[i]);
            for (; issue < batch.issue_count; issue++)
                issue_print(options, &batch.issues[issue]);
            corpus_counts_add(&sum, &batch.counts);
        }
        corpus_close(corpus);
    }
    (void)putchar('E');
    put(status);
    put(sum.stream_bytes == sum.document_bytes + sum.structure_bytes + sum.skipped_bytes);
    (void)fflush(stdout);
}

int main(void)
{
    char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        char *fields[FIELDS], *rest = line;
        size_t count = 0;
        line[strcspn(line, "\n")] = '\0';
        while (rest && count < FIELDS)
            fields[count++] = strsep(&rest, "\t");
        if (count < 5 || rest) {
            (void)fprintf(stderr, "dump_documents: a line has %zu fields\n", count);
            return 2;
        }
        const struct corpus_options options = {
            .content = !strcmp(fields[1], "ids")      ? CORPUS_CONTENT_IDS
                       : !strcmp(fields[1], "prompt") ? CORPUS_CONTENT_PROMPT
                                                      : CORPUS_CONTENT_TEXT,
            .field = fields[2],
            .second_field = *fields[3] ? fields[3] : NULL,
            .batch_bytes = strtoull(fields[4], NULL, 10),
            .columns = (const char *const *)(fields + 5),
            .column_count = count - 5,
            .skip = true,
            .record_limit = (uint64_t)1 << 30,
            .document_limit = (uint64_t)1 << 30,
        };
        file_print(&options, fields[0]);
    }
    return 0;
}
