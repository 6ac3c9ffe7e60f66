/* document_lengths.c - see document_lengths.h. */
#include "document_lengths.h"

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

/* The documents of a synthetic dataset that are counted. It has very many, all of the same distribution. */
#define SYNTHETIC_DOCUMENTS ((uint64_t)1 << 20)

enum tokmap_status dataset_lengths(const struct tokmap_dataset *dataset, int mode, struct lengths *lengths,
                                   struct tokmap_error *error)
{
    struct tokmap_dataset_info info = {.size = sizeof info};
    struct histogram histogram;
    struct cli_progress progress;
    enum tokmap_status status = tokmap_dataset_info(dataset, &info);
    if (status)
        return error_set(error, status, NULL, TOKMAP_NO_OFFSET, "%s", tokmap_status_text(status));
    if (!histogram_new(&histogram))
        return error_set_memory(error, "the lengths of documents", 0);
    const uint64_t documents = info.shards ? info.documents : min64(info.documents, SYNTHETIC_DOCUMENTS);
    cli_progress_start(&progress, "measuring documents", documents, mode);
    progress.unit = "documents";
    for (uint64_t number = 0; number < documents && !status; number++) {
        struct tokmap_document document;
        status = tokmap_dataset_document(dataset, number, &document, error);
        if (!status)
            histogram_add(&histogram, document.tokens, 1);
        if (number % 65536 == 0)
            cli_progress_update(&progress, number);
    }
    cli_progress_end(&progress);
    lengths_of(&histogram, lengths);
    histogram_free(&histogram);
    return status;
}

const char *lengths_text(const struct lengths *lengths, char text[LENGTHS_TEXT])
{
    char a[32], b[32], c[32], d[32], e[32];
    if (!lengths->documents)
        return memcpy(text, "none", sizeof "none");
    /* The mean has one decimal. It is at most the largest length, which fits in 64 bits. */
    const uint64_t whole = (uint64_t)lengths->mean;
    const unsigned tenths = (unsigned)((lengths->mean - (double)whole) * 10 + 0.5); /* 10: rounded up to a whole */
    (void)snprintf(text, LENGTHS_TEXT, "p50 %s, p90 %s, p99 %s, max %s, mean %s.%u", cli_count(lengths->p50, a),
                   cli_count(lengths->p90, b), cli_count(lengths->p99, c), cli_count(lengths->largest, d),
                   cli_count(whole + tenths / 10, e), tenths % 10);
    return text;
}

void lengths_json(const struct lengths *lengths, struct cli_json *json)
{
    if (!lengths->documents) {
        cli_json_null(json, "document_tokens");
        return;
    }
    cli_json_object(json, "document_tokens");
    cli_json_number(json, "p50", lengths->p50);
    cli_json_number(json, "p90", lengths->p90);
    cli_json_number(json, "p99", lengths->p99);
    cli_json_number(json, "max", lengths->largest);
    cli_json_real(json, "mean", lengths->mean);
    cli_json_end(json);
}

const char *bytes_a_token_text(uint64_t text_bytes, uint64_t tokens, char text[64])
{
    if (tokens)
        (void)snprintf(text, 64, "%.2f bytes of text", (double)text_bytes / (double)tokens);
    else
        (void)snprintf(text, 64, "unknown");
    return text;
}
