/* SPDX-License-Identifier: MIT */
/*
 * hf_fingerprint.c - hashes everything that decides ids, in a form that does not depend on how a file writes it. What
 * is hashed must not change: datasets store fingerprints.
 */
#include "hf_fingerprint.h"

#include <assert.h>

#include "common/error.h"
#include "common/hash.h"

static void add_bytes(struct hash_state *hash, const void *bytes, uint64_t count)
{
    hash_state_add(hash, &count, sizeof count);
    hash_state_add(hash, bytes, (size_t)count);
}

static void add_number(struct hash_state *hash, uint64_t number)
{
    hash_state_add(hash, &number, sizeof number);
}

/* Hashes a pre-tokenizer. One that a scanner performs entirely is hashed by the scanner's rules, so files may write it
 * differently. */
static void add_splits(struct hash_state *hash, const struct pipeline_parts *parts, const struct hf_splits *splits,
                       const struct split_rules *rules)
{
    if (parts->engine_cuts && !parts->pretokenizer.count) {
        const uint64_t fields[] = {rules->letters, rules->contraction, rules->prefix,  rules->tail,
                                   rules->numbers, rules->newlines,    rules->deepseek};
        hash_state_add(hash, fields, sizeof fields);
        return;
    }
    for (uint32_t i = 0; i < splits->count; i++) {
        const struct hf_split *step = &splits->steps[i];
        add_number(hash, 1 + (uint64_t)step->kind);
        add_number(hash, step->behavior);
        add_number(hash, (uint64_t)step->invert | (uint64_t)step->is_regex << 1 | (uint64_t)step->prefix_space << 2 |
                             (uint64_t)step->use_regex << 3 | (uint64_t)step->split << 4 |
                             (uint64_t)step->prepend << 5 | (uint64_t)step->replacement << 8);
        add_bytes(hash, step->pattern, step->pattern ? step->pattern_bytes : 0);
        if (step->kind == HF_FIXED)
            add_number(hash, step->length);
    }
}

static void add_tokens(struct hash_state *hash, const struct pipeline_parts *parts)
{
    const size_t count = added_tokens_count(parts->added);
    bool raw = false, normalized = false;
    for (size_t i = 0; i < count; i++) {
        raw |= !added_tokens_at(parts->added, i)->normalized;
        normalized |= added_tokens_at(parts->added, i)->normalized;
    }
    /* Raw tokens are found first, then normalized ones in what is left. The pass of a token matters only if both
     * kinds exist, or if a normalizer changes the text between the passes. */
    const bool passes = (raw && normalized) || (normalized && parts->normalizer.count);
    for (size_t i = 0; i < count; i++) {
        const struct added_token *token = added_tokens_at(parts->added, i);
        add_number(hash, token->id);
        add_number(hash, (uint64_t)token->single_word | (uint64_t)token->lstrip << 1 | (uint64_t)token->rstrip << 2 |
                             (uint64_t)(token->normalized && passes) << 3 | (uint64_t)token->special << 4);
        add_bytes(hash, token->text, token->bytes);
    }
}

enum tokmap_status hf_fingerprint(struct pipeline_parts *parts, const struct hf_splits *splits,
                                  const struct split_rules *rules, struct tokmap_error *error)
{
    static const struct split_rules no_rules;
    assert(parts->engine && splits->count <= PRETOKENIZER_STEPS_MOST);
    struct hash_state *hash = hash_state_new();
    if (!hash)
        return error_set_memory(error, "a fingerprint", 512);
    hash_state_add(hash, parts->fingerprint, sizeof parts->fingerprint);
    add_number(hash, parts->normalizer.count);
    for (uint32_t i = 0; i < parts->normalizer.count; i++) {
        const struct normalizer_step *step = &parts->normalizer.steps[i];
        add_number(hash, (uint64_t)step->kind | (uint64_t)(step->regex != NULL) << 8 | (uint64_t)step->strip_left << 9 |
                             (uint64_t)step->strip_right << 10);
        add_bytes(hash, step->pattern, step->pattern ? step->pattern_bytes : 0);
        add_bytes(hash, step->content, step->content ? step->content_bytes : 0);
        if (step->map) {
            size_t bytes;
            const uint8_t *map = charsmap_bytes(step->map, &bytes);
            add_bytes(hash, map, bytes);
        }
    }
    add_splits(hash, parts, splits, rules ? rules : &no_rules);
    add_tokens(hash, parts);
    hash128_store(hash_state_128(hash), parts->fingerprint);
    hash_state_free(hash);
    return TOKMAP_OK;
}
