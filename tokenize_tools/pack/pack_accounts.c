/* pack_accounts.c - see pack_accounts.h. */
#include "pack_accounts.h"

#include <inttypes.h>

#include "common/error.h"

enum tokmap_status pack_documents_check(const struct pack_result *result, struct tokmap_error *error)
{
    const struct corpus_counts *counts = &result->counts;
    const struct corpus_left_out *by_length = &counts->left_out[CORPUS_REASON_LENGTH];
    if (!counts->documents && result->dropped.documents)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "all %" PRIu64 " documents contain words of the excluded texts, so nothing is packed",
                         result->dropped.documents);
    if (!counts->documents && by_length->files + by_length->records)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "no document is left to pack: %" PRIu64 " of the inputs' documents have fewer tokens than "
                         "options.min_tokens or more than options.max_tokens",
                         by_length->files + by_length->records);
    if (!counts->documents)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs contain no documents; name inputs that contain text");
    if (!counts->stream_bytes)
        return error_set(error, TOKMAP_ERROR_INPUT, NULL, TOKMAP_NO_OFFSET,
                         "the inputs are empty: no file has a byte; name inputs that contain text");
    return TOKMAP_OK;
}

enum tokmap_status pack_accounts_check(const struct pack_options *options, struct shard_set *const *sets,
                                       uint32_t set_count, const struct pack_result *result, struct tokmap_error *error)
{
    const struct corpus_counts *counts = &result->counts;
    const uint64_t accounted = counts->document_bytes + counts->structure_bytes + counts->skipped_bytes;
    if (accounted != counts->stream_bytes)
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " bytes were read and %" PRIu64
                         " are accounted for; this is a bug in tokmap, please report it",
                         counts->stream_bytes, accounted);
    struct shard_set_result written = {0};
    for (uint32_t i = 0; i < set_count; i++) {
        struct shard_set_result set;
        shard_set_result(sets[i], &set);
        written.tokens += set.tokens;
        written.documents += set.documents;
    }
    for (uint32_t i = 0; options->unit && options->shuffle && i < SPLIT_SETS_MOST; i++) { /* they are sorted */
        written.tokens += result->sets[i].tokens;
        written.documents += result->sets[i].documents;
    }
    if (options->dry_run)
        written = (struct shard_set_result){.tokens = result->tokens, .documents = counts->documents};
    if (written.tokens != result->tokens || written.documents != counts->documents)
        return error_set(error, TOKMAP_ERROR_INTERNAL, NULL, TOKMAP_NO_OFFSET,
                         "%" PRIu64 " documents were read and %" PRIu64
                         " were written; this is a bug in tokmap, please report it",
                         counts->documents, written.documents);
    return options->unit ? TOKMAP_OK : pack_documents_check(result, error); /* pack_finish.c looks at all units */
}

void pack_values_count(struct pack_result *result, size_t columns, const struct corpus_batch *batch)
{
    for (uint64_t i = 0; columns && i < batch->document_count; i++) {
        const struct corpus_document *document = &batch->documents[i];
        for (size_t c = 0; c < columns && !document->unfinished; c++) /* the values come with the last part */
            result->with_value[c] += document->values[c].bytes != 0;
    }
}
