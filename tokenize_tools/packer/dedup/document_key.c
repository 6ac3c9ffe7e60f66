/* SPDX-License-Identifier: MIT */
/* document_key.c - see document_key.h. */
#include "document_key.h"

#include "common/error.h"

static struct hash128 bytes_key(const void *bytes, uint64_t count)
{
    return hash128(count ? bytes : "", (size_t)count);
}

struct hash128 document_key(const struct corpus_document *document)
{
    const struct hash128 first = document->ids ? bytes_key(document->ids, document->id_count * sizeof *document->ids)
                                               : bytes_key(document->text, document->bytes);
    if (!document->second && !document->counted)
        return first;
    const struct hash128 second = document->second ? bytes_key(document->second, document->second_bytes)
                                                   : bytes_key(document->counted, document->id_count);
    const uint64_t both[] = {first.low, first.high, second.low, second.high};
    return hash128(both, sizeof both);
}

enum tokmap_status place_counter_next(struct place_counter *counter, const struct corpus_part *part, uint64_t record,
                                      struct hash128 key, struct document_place *place, bool *is_new,
                                      struct tokmap_error *error)
{
    *is_new = !counter->documents || counter->input != part->input;
    if (*is_new && counter->inputs == UINT32_MAX - 1)
        return error_set(error, TOKMAP_ERROR_LIMIT, part->path, TOKMAP_NO_OFFSET,
                         "there are more than 2^32 inputs; pack fewer at once");
    counter->inputs += *is_new;
    counter->input = part->input;
    counter->documents++;
    *place = (struct document_place){.record = record, .input = (uint32_t)(counter->inputs - 1)};
    uint64_t digest = (counter->digest + key.low) * 0x9e3779b97f4a7c15U;
    digest ^= digest >> 29;
    counter->digest = (digest + (key.high ^ record)) * 0xbf58476d1ce4e5b9U + place->input;
    return TOKMAP_OK;
}
