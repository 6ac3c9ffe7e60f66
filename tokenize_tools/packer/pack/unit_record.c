/* SPDX-License-Identifier: MIT */
#include "unit_record.h"

#include <assert.h>
#include <string.h>

#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"
#include "pack_facts.h"

#define LENGTHS_MOST ((uint64_t)16 << 20)
#define FOUND_MOST ((uint64_t)4 << 32)

struct stage_id unit_record_id(const char *folder, uint64_t key, uint64_t unit)
{
    return (struct stage_id){
        .folder = folder, .key = key, .kind = STAGE_PACKED, .number = unit, .sections = UNIT_SECTIONS};
}

/* Returns whether an id is one of unit_record_id(). */
static bool is_record_id(const struct stage_id *id)
{
    return id->kind == STAGE_PACKED && id->sections == UNIT_SECTIONS && !id->part;
}

uint64_t unit_record_layout(void)
{
    const uint64_t sizes[] = {10, sizeof(struct unit_result), sizeof(struct corpus_counts),
                              sizeof(struct corpus_place)};
    return hash64(sizes, sizeof sizes);
}

bool unit_record_key(const struct pack_options *options, uint64_t *key)
{
    struct pack_facts facts;
    struct hash_state *state = hash_state_new();
    const bool made = pack_facts_make(&facts, options, unit_record_layout()) && state;
    for (size_t i = 0; i < facts.count && made; i++) {
        hash_state_add(state, facts.list[i].name, strlen(facts.list[i].name) + 1);
        hash_state_add(state, facts.list[i].value, strlen(facts.list[i].value) + 1);
    }
    *key = made ? hash_state_64(state) : 0;
    hash_state_free(state);
    pack_facts_free(&facts);
    return made;
}

enum tokmap_status unit_record_write(const struct stage_id *id, const struct unit_result *result,
                                     const struct histogram *lengths, const struct shuffle_sorted *sorted,
                                     const struct listed_search *listed, bool sync, struct tokmap_error *error)
{
    struct stage_writer *writer;
    struct bytes_buffer pairs = {0}, found = {0};
    assert(is_record_id(id));
    enum tokmap_status status = stage_writer_open(&writer, id, error);
    if (!status && !histogram_save(lengths, &pairs))
        status = error_set_memory(error, "the record of a unit", 0);
    if (!status)
        status = stage_writer_add(writer, result, sizeof *result, error);
    if (!status)
        status = stage_writer_next(writer, error);
    if (!status)
        status = stage_writer_add(writer, pairs.bytes, pairs.count, error);
    if (!status)
        status = stage_writer_next(writer, error);
    if (!status)
        status = sorted_unit_add(writer, sorted, result->pack.sets, result->pack.counts.lines, error);
    if (!status)
        status = stage_writer_next(writer, error);
    if (!status && listed)
        status = listed_search_found(listed, &found, error);
    if (!status)
        status = stage_writer_add(writer, found.bytes, found.count, error);
    if (!status)
        status = stage_writer_commit(writer, sync, error);
    stage_writer_free(writer);
    bytes_free(&pairs);
    bytes_free(&found);
    return status;
}

/* Returns true if a byte of a record can be read as a bool. */
static bool is_bool(const bool *value)
{
    uint8_t byte;
    memcpy(&byte, value, sizeof byte);
    return byte <= 1;
}

/* Returns true if a result with the right hash is plausible for a unit: the numbers that bound loops, and the bytes
 * that are not numbers. */
static bool result_is_good(const struct pack_result *result)
{
    bool good = is_bool(&result->has_mask) && is_bool(&result->kept) && is_bool(&result->dropped.by_minhash) &&
                is_bool(&result->dropped.read_twice);
    for (uint32_t set = 0; set < SPLIT_SETS_MOST; set++)
        good = good && result->sets[set].shards <= SET_SHARDS_MOST;
    return good;
}

/* Adds the lengths that a record has. Returns false if they are not those of a histogram. */
static bool lengths_take(struct histogram *lengths, const struct bytes_buffer *bytes)
{
    struct histogram own = {0};
    const bool good = histogram_new(&own) && histogram_load(&own, bytes->bytes, bytes->count);
    if (good)
        histogram_merge(lengths, &own);
    histogram_free(&own);
    return good;
}

enum tokmap_status unit_record_read(const struct stage_id *id, struct unit_result *result, struct histogram *lengths,
                                    struct listed_search *listed, struct tokmap_error *error)
{
    assert(is_record_id(id));
    struct bytes_buffer bytes = {0};
    enum tokmap_status status = stage_section_read(id, UNIT_RESULT, result, sizeof *result, error);
    if (!status && !result_is_good(&result->pack))
        status = stage_corrupt(id, error);
    if (!status && lengths)
        status = stage_section_load(&bytes, id, UNIT_LENGTHS, LENGTHS_MOST, error);
    if (!status && lengths && !lengths_take(lengths, &bytes))
        status = stage_corrupt(id, error);
    if (!status && (lengths || listed))
        status = stage_section_load(&bytes, id, UNIT_FOUND, FOUND_MOST, error);
    if (!status && listed)
        status = listed_search_load(listed, bytes.bytes, bytes.count, error);
    bytes_free(&bytes);
    return status;
}
