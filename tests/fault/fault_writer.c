/* SPDX-License-Identifier: MIT */
/*
 * fault_writer.c - writes a shard through pack.h: three documents, one of them of several MB, with a mask, columns, and
 * an EOD. test_writer.sh runs it with calls that fail.
 *
 *     fault_writer PREFIX REPLACE(0|1)
 *
 * Exit status: 0 the shard is there, 1 a call failed with a message, 2 misused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokmap/pack.h"

#define LONG_IDS 1500000

static int fail(struct tokmap_writer *writer, const struct tokmap_error *error)
{
    char text[1500];
    tokmap_writer_abandon(writer);
    fprintf(stderr, "fault_writer: %s\n", tokmap_error_print(error, text, sizeof text));
    return error->message[0] && error->status ? 1 : 3;
}

static enum tokmap_status add_documents(struct tokmap_writer *writer, const int32_t *ids, const uint8_t *counted,
                                        struct tokmap_error *error)
{
    static char large[200000];
    const struct tokmap_value values[] = {{"\"a\"", 3}, {large, sizeof large}, {NULL, 0}};
    memset(large, 'x', sizeof large);
    large[0] = large[sizeof large - 1] = '"';
    struct tokmap_documents documents = TOKMAP_DOCUMENTS_INIT;
    documents.ids = ids;
    documents.type = TOKMAP_ID_I32;
    documents.id_count = LONG_IDS;
    documents.counted = counted;
    documents.values = values;
    documents.origin = "memory";
    documents.origin_bytes = 6;
    enum tokmap_status status = tokmap_writer_add(writer, &documents, error);
    const uint64_t ends[] = {0, 3};
    documents.id_count = 3;
    documents.ends = ends;
    documents.document_count = 2;
    documents.values = values + 1;
    documents.record = 1;
    return status ? status : tokmap_writer_add(writer, &documents, error);
}

int main(int argc, char **argv)
{
    struct tokmap_error error = {0};
    struct tokmap_writer *writer = NULL;
    const char *const columns[] = {"value"};
    struct tokmap_writer_options options = TOKMAP_WRITER_OPTIONS_INIT;
    if (argc != 3)
        return 2;
    int32_t *ids = malloc(LONG_IDS * sizeof *ids);
    uint8_t *counted = malloc(LONG_IDS);
    if (!ids || !counted) {
        fprintf(stderr, "fault_writer: there is no memory\n");
        free(ids);
        free(counted);
        return 1;
    }
    for (int32_t i = 0; i < LONG_IDS; i++) {
        ids[i] = (int32_t)((uint32_t)i * 2654435761u >> 17);
        counted[i] = i % 3 == 0;
    }
    options.vocabulary = 40000;
    options.eod_id = 39999;
    options.mask = 1;
    options.columns = columns;
    options.column_count = 1;
    options.replace = argv[2][0] == '1';
    int result = 0;
    if (tokmap_writer_open(&writer, argv[1], &options, &error) || add_documents(writer, ids, counted, &error))
        result = fail(writer, &error);
    else if (tokmap_writer_commit(writer, NULL, &error))
        result = fail(NULL, &error);
    free(ids);
    free(counted);
    return result;
}
