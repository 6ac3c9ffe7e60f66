/* SPDX-License-Identifier: MIT */
/*
 * byte_level.c - some vocabularies contain tokens with characters that do not stand for a byte. No text can become such
 * a token: it is kept for decoding only, and merges that need it are left out.
 */
#include "byte_level.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_engine.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"

struct building {
    struct pipeline_parts *parts;
    struct hf_model *model;
    uint8_t *bytes;
    uint32_t *offsets;
    struct bpe_merge *merges;
    uint32_t merge_count;
    bool has[256]; /* true if the byte alone is a token */
    const char *path;
    struct tokmap_error *error;
};

/* Writes the bytes that a token stands for and returns their number, or 0 if one of its characters does not stand
 * for a byte. */
static uint32_t token_bytes(const struct text_entry *entry, uint8_t *into)
{
    uint32_t made = 0;
    for (size_t at = 0, bytes; at < entry->bytes; at += bytes) {
        if (entry->text[at] > 0x20 && entry->text[at] < 0x7F) { /* stands for itself */
            into[made++] = entry->text[at];
            bytes = 1;
            continue;
        }
        const int byte = character_byte(code_point_get(entry->text + at, &bytes));
        if (byte < 0)
            return 0;
        into[made++] = (uint8_t)byte;
    }
    return made;
}

/* ---- texts ----
 *
 * The ids are divided into parts, and several threads fill them. Where the bytes of a part begin is known only when the
 * parts before it are filled. So each is filled where it would begin if all characters before it took as many bytes as
 * in the file, which is later, and is moved then. */

#define PARTS_MOST 4u
#define PART_LEAST 16384u /* ids that make a thread worth its start */

struct texts_part {
    uint32_t from, to;   /* ids */
    size_t begin;        /* destination of its bytes */
    uint32_t used;       /* bytes; until the parts are joined, offsets count from 0 in each */
    size_t others;       /* tokens that do not stand for bytes, */
    size_t others_bytes; /* and their bytes */
    bool has[256];
};

struct texts_parts {
    struct building *building;
    uint32_t count, next; /* next: the first part that no thread has taken */
    struct texts_part parts[PARTS_MOST];
};

static void part_fill(const struct building *building, struct texts_part *shared)
{
    const struct text_table *vocabulary = &building->model->vocabulary;
    struct texts_part part = *shared; /* a copy, because another thread writes to the cache line beside it */
    uint8_t *bytes = building->bytes + part.begin;
    for (uint32_t id = part.from; id < part.to; id++) {
        const struct text_entry *entry = text_table_by_id(vocabulary, id);
        const uint32_t count = entry ? token_bytes(entry, bytes + part.used) : 0;
        building->offsets[id] = part.used;
        if (count == 1)
            part.has[bytes[part.used]] = true;
        part.used += count;
        if (entry && !count) {
            part.others++;
            part.others_bytes += entry->bytes;
        }
    }
    *shared = part;
}

static void parts_run(void *user, uint32_t number)
{
    struct texts_parts *all = user;
    uint32_t part;
    while ((part = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED)) < all->count)
        part_fill(all->building, &all->parts[part]);
}

/* Divides the ids, and says where the bytes of each part may begin. Returns the bytes of all. */
static size_t parts_divide(struct texts_parts *all, const struct text_table *vocabulary, uint32_t ids)
{
    size_t total = 0, bytes[PARTS_MOST] = {0};
    all->count = (uint32_t)min64(min64(os_processors(), PARTS_MOST), 1 + ids / PART_LEAST);
    const uint32_t each = ids / all->count + 1;
    for (uint32_t i = 0; i < vocabulary->count; i++)
        bytes[vocabulary->entries[i].id / each] += vocabulary->entries[i].bytes;
    for (uint32_t i = 0; i < all->count; i++) {
        all->parts[i].from = (uint32_t)min64(i * (uint64_t)each, ids);
        all->parts[i].to = (uint32_t)min64((i + 1) * (uint64_t)each, ids);
        all->parts[i].begin = total;
        total += bytes[i];
    }
    return total;
}

/* Makes the parts follow each other. */
static void parts_join(struct texts_parts *all)
{
    struct building *building = all->building;
    uint32_t used = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct texts_part *part = &all->parts[i];
        memmove(building->bytes + used, building->bytes + part->begin, part->used);
        for (uint32_t id = part->from; used && id < part->to; id++)
            building->offsets[id] += used;
        for (uint32_t byte = 0; byte < 256; byte++)
            building->has[byte] |= part->has[byte];
        used += part->used;
    }
    building->offsets[building->parts->vocabulary] = used;
}

/* Copies the tokens that do not stand for bytes. */
static enum tokmap_status others_build(const struct building *building, const struct texts_parts *all)
{
    struct pipeline_parts *parts = building->parts;
    size_t others = 0, bytes = 1;
    for (uint32_t i = 0; i < all->count; i++) {
        others += all->parts[i].others;
        bytes += all->parts[i].others_bytes;
    }
    parts->texts = malloc((others + 1) * sizeof *parts->texts);
    parts->text_bytes = malloc(bytes);
    if (!parts->texts || !parts->text_bytes)
        return error_set_memory(building->error, "a vocabulary", bytes);
    uint8_t *place = parts->text_bytes;
    for (uint32_t id = 0; id < parts->vocabulary && others; id++) {
        const struct text_entry *entry = text_table_by_id(&building->model->vocabulary, id);
        if (!entry || building->offsets[id] != building->offsets[id + 1])
            continue;
        memcpy(place, entry->text, entry->bytes);
        parts->texts[parts->text_count++] = (struct pipeline_text){entry->id, entry->bytes, place};
        place += entry->bytes;
    }
    return TOKMAP_OK;
}

/* Fills bytes and offsets with the tokens that stand for bytes, and parts->texts with the others. */
static enum tokmap_status texts_build(struct building *building)
{
    struct texts_parts all = {.building = building};
    const uint32_t ids = building->parts->vocabulary;
    const size_t total = 1 + parts_divide(&all, &building->model->vocabulary, ids);
    if (total > UINT32_MAX)
        return error_set(
            building->error, TOKMAP_ERROR_LIMIT, building->path, TOKMAP_NO_OFFSET,
            "the tokens of the vocabulary have %zu bytes, but tokmap can read at most 4 GiB; use a smaller vocabulary",
            total - 1);
    building->bytes = os_memory_large(total + 16);
    building->offsets = os_memory_large(((size_t)ids + 1) * sizeof *building->offsets);
    if (!building->bytes || !building->offsets)
        return error_set_memory(building->error, "a vocabulary", total);
    os_threads_share("tokmap-texts", all.count, parts_run, &all);
    parts_join(&all);
    return others_build(building, &all);
}

enum tokmap_status byte_level_texts(struct pipeline_parts *parts, struct hf_model *model, const char *path,
                                    uint8_t **bytes, uint32_t **offsets, struct tokmap_error *error)
{
    struct building building = {.parts = parts, .model = model, .path = path, .error = error};
    const enum tokmap_status status = texts_build(&building);
    *bytes = building.bytes;
    *offsets = building.offsets;
    return status;
}

/* Copies the merges whose two parts stand for bytes, or takes over the list if all do. */
static enum tokmap_status merges_build(struct building *building)
{
    struct hf_model *model = building->model;
    const uint32_t *offsets = building->offsets;
    if (!building->parts->text_count && model->merges) {
        building->merges = model->merges;
        building->merge_count = model->merge_count;
        model->merges = NULL;
        return TOKMAP_OK;
    }
    building->merges = os_memory_large(((size_t)model->merge_count + 1) * sizeof *building->merges);
    if (!building->merges)
        return error_set_memory(building->error, "a vocabulary", model->merge_count * sizeof *building->merges);
    for (uint32_t i = 0; i < model->merge_count; i++) {
        const struct bpe_merge *merge = &model->merges[i];
        if (offsets[merge->left] < offsets[merge->left + 1] && offsets[merge->right] < offsets[merge->right + 1])
            building->merges[building->merge_count++] = *merge;
    }
    return TOKMAP_OK;
}

/* Sets *lacks if some byte is not a token. The reference drops such a byte, and so can the engine; with byte_fallback
 * the reference does something else. */
static enum tokmap_status bytes_check(const struct building *building, bool *lacks)
{
    *lacks = false;
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (building->has[byte])
            continue;
        *lacks = true;
        if (building->model->byte_fallback)
            return error_set(building->error, TOKMAP_ERROR_UNSUPPORTED, building->path, TOKMAP_NO_OFFSET,
                             BYTE_LEVEL_FALLBACK, byte);
    }
    return TOKMAP_OK;
}

/* Returns the merges of a model that merges by rank, in the order of their results; the caller frees them. Each
 * token is the result of at most one pair, so the results name the merges. */
static struct bpe_merge *merges_of_ranks(const struct bpe_model *model, uint32_t *count)
{
    struct bpe_merge *merges = os_memory_large_zeros((size_t)model->vocabulary + 1, sizeof *merges);
    *count = 0;
    if (!merges)
        return NULL;
    for (uint64_t at = 0; at < (uint64_t)1 << model->pair_bits; at++) {
        const uint64_t pair = model->pairs[at];
        if (pair == UINT64_MAX)
            continue;
        const uint32_t rank = (uint32_t)pair & BPE_MERGES;
        merges[rank] = (struct bpe_merge){(uint32_t)(pair >> 43), (uint32_t)(pair >> 22) & (BPE_IDS - 1), rank};
    }
    for (uint32_t id = 0; id < model->vocabulary; id++)
        if (merges[id].result || merges[id].left || merges[id].right)
            merges[(*count)++] = merges[id];
    return merges;
}

/* Computes the fingerprint of a model: the same for the same tokens, ids and merges, whichever format they were read
 * from. An id that is an added token counts as that token alone, not by its text in the model. merges: in their
 * order, or NULL if the model merges by rank, and merge_count is then ignored. whole: a piece that is a token
 * becomes that token, whatever the merges make of it. Statuses: OK, ERROR_MEMORY. */
static enum tokmap_status byte_level_fingerprint(uint8_t fingerprint[16], const struct bpe_model *model,
                                                 const struct bpe_merge *merges, uint32_t merge_count, bool whole,
                                                 const struct added_tokens *added, struct tokmap_error *error)
{
    static const char what[] = "tokmap byte-level bpe 1";
    struct bpe_merge *made = merges ? NULL : merges_of_ranks(model, &merge_count);
    struct hash_state *hash = hash_state_new();
    uint32_t *lengths = os_memory_large(((size_t)model->vocabulary + 1) * sizeof *lengths);
    enum tokmap_status status = TOKMAP_OK;
    if (!hash || !lengths || (!merges && !made)) {
        status = error_set_memory(error, "a fingerprint", (uint64_t)model->vocabulary * sizeof *lengths);
    } else {
        const uint8_t matters = whole && model->unreached_count;
        hash_state_add(hash, what, sizeof what);
        for (uint32_t id = 0; id < model->vocabulary; id++)
            lengths[id] = model->offsets[id + 1] - model->offsets[id];
        for (size_t i = 0; i < added_tokens_count(added); i++)
            if (added_tokens_at(added, i)->id < model->vocabulary)
                lengths[added_tokens_at(added, i)->id] = 0;
        hash_state_add(hash, lengths, (size_t)model->vocabulary * sizeof *lengths);
        for (uint32_t id = 0, from = 0; id <= model->vocabulary; id++) {
            const bool end = id == model->vocabulary;
            if (!end && (lengths[id] || model->offsets[id] == model->offsets[id + 1]))
                continue;
            hash_state_add(hash, model->bytes + from, model->offsets[id] - from);
            from = end ? 0 : model->offsets[id + 1];
        }
        hash_state_add(hash, &merge_count, sizeof merge_count);
        hash_state_add(hash, merges ? merges : made, (size_t)merge_count * sizeof *merges);
        hash_state_add(hash, &matters, 1);
        hash128_store(hash_state_128(hash), fingerprint);
    }
    hash_state_free(hash);
    free(lengths);
    free(made);
    return status;
}

enum tokmap_status byte_level_engine(struct pipeline_parts *parts, const struct bpe_source *source,
                                     struct tokmap_error *error)
{
    struct bpe_model *model;
    enum tokmap_status status = bpe_model_build(&model, source, error);
    if (!status)
        status = byte_level_fingerprint(parts->fingerprint, model, source->merges, source->merge_count, source->whole,
                                        parts->added, error);
    if (!status)
        return bpe_engine_new(&parts->engine, model, error);
    bpe_model_free(model);
    return status;
}

enum tokmap_status byte_level_build(struct pipeline_parts *parts, struct hf_model *model,
                                    const struct split_rules *rules, const char *path, struct tokmap_error *error)
{
    struct building building = {.parts = parts, .model = model, .path = path, .error = error};
    struct bpe_source source = {.path = path,
                                .vocabulary = parts->vocabulary,
                                .whole = model->ignore_merges,
                                .merges_checked = true,
                                .rules = *rules};
    assert(parts->vocabulary >= model->vocabulary.ids && !parts->engine);
    enum tokmap_status status = texts_build(&building);
    if (!status)
        status = merges_build(&building);
    if (!status)
        status = bytes_check(&building, &source.lacks_bytes);
    source.bytes = source.own_bytes = building.bytes;
    source.offsets = source.own_offsets = building.offsets;
    source.merges = building.merges;
    source.merge_count = building.merge_count;
    if (!status) {
        hf_model_shed(model);
        building.bytes = NULL;
        building.offsets = NULL;
        status = byte_level_engine(parts, &source, error);
    }
    parts->ids_per_byte_most = 1;
    free(building.bytes);
    free(building.offsets);
    free(building.merges);
    return status;
}
