/* SPDX-License-Identifier: MIT */
/*
 * hf_join.c - decides which steps of a pre-tokenizer a scanner performs, and makes pretokenizer steps of the
 * others; and makes the fingerprint.
 *
 * If ByteLevel is the last step, a scanner can perform it together with the step before it: ByteLevel's own regular
 * expression, the last Split before it if the scanner knows its pattern, or DeepSeek's three Splits. This is the case
 * for nearly all models. Any steps before these cut the text first, and the scanner then works on each of their pieces.
 * "Mapped" steps come after ByteLevel, so they work on the characters that stand for bytes.
 */
#include "hf_join.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "common/error.h"
#include "common/hash.h"
#include "text/code_point.h"

static bool is_pattern(const struct hf_split *step, const char *pattern)
{
    return step->kind == HF_SPLIT && step->is_regex && step->behavior == SPLIT_ISOLATED &&
           step->pattern_bytes == strlen(pattern) && !memcmp(step->pattern, pattern, step->pattern_bytes);
}

/* Returns the rules for the pattern of a Split, or NULL if no scanner knows it. */
static const struct split_rules *known_rules(const struct hf_split *step)
{
    return step->kind == HF_SPLIT && step->is_regex ? split_rules_of_regex(step->pattern, step->pattern_bytes) : NULL;
}

/* Returns whether every match becomes a piece. The patterns that scanners know cover the whole text, so nothing else is
 * left. */
static bool keeps_matches(const struct hf_split *step)
{
    return step->behavior == SPLIT_ISOLATED || (step->behavior == SPLIT_REMOVED && step->invert);
}

static bool literal_copy(struct json_file *file, struct pretokenizer_step *into, const struct hf_split *step)
{
    into->literal = malloc(step->pattern_bytes + 1);
    if (!into->literal)
        return json_file_memory(file, "a pre-tokenizer", step->pattern_bytes);
    memcpy(into->literal, step->pattern, step->pattern_bytes);
    into->literal_bytes = step->pattern_bytes;
    return true;
}

static bool split_step(struct json_file *file, struct pretokenizer_step *into, const struct hf_split *step)
{
    const struct split_rules *known = known_rules(step);
    if (known && !into->mapped) {
        into->kind = STEP_RULES;
        into->rules = *known;
        return true;
    }
    if (step->is_regex) {
        into->kind = STEP_REGEX;
        file->status = regex_new(&into->regex, (const char *)step->pattern, step->pattern_bytes, REGEX_ONIGURUMA,
                                 file->path, "pre_tokenizer.Split.pattern", file->error);
        return !file->status;
    }
    into->kind = STEP_LITERAL;
    if (into->mapped)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "pre_tokenizer: tokmap cannot read a file with a Split at a string after ByteLevel");
    return literal_copy(file, into, step);
}

/* Returns whether a step of the normalizer never changes where the reference sees the first character of its result:
 * at the beginning of the document, if it was there before. */
static bool keeps_front(const struct normalizer_step *step, bool last, uint32_t replacement)
{
    static const enum normalizer_kind safe[] = {NORMALIZE_NFC,         NORMALIZE_NFD,    NORMALIZE_NFKC,
                                                NORMALIZE_NFKD,        NORMALIZE_LOWER,  NORMALIZE_BYTES,
                                                NORMALIZE_PRECOMPILED, NORMALIZE_PREPEND};
    if (step->kind == NORMALIZE_STRIP)
        return !step->strip_left;
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++)
        if (step->kind == safe[i])
            return true;
    if (step->kind != NORMALIZE_REPLACE)
        return false; /* it can remove characters */
    if (!step->content_bytes)
        return false;
    size_t bytes;
    const uint32_t code = code_point_get(step->content, &bytes);
    if (last && (code == ' ' || code == replacement)) /* where the text begins with it, nothing is put before it */
        return true;
    return !step->regex && (code_point_get(step->pattern, &bytes), bytes == step->pattern_bytes);
}

/* Returns whether the texts that the reference calls first are those that begin a document: those that come from its
 * first byte. This is so without a normalizer if the steps before do not change the text. With a normalizer, a cut
 * after it may be inside of what the first character becomes, so there is none. */
static bool first_known(const struct pipeline_parts *parts, const struct hf_split *step)
{
    const struct pretokenizer *pretokenizer = &parts->pretokenizer; /* its last step is the one in question */
    const struct normalizer *normalizer = &parts->normalizer;
    for (uint32_t i = 0; i + 1 < pretokenizer->count; i++)
        if (normalizer->count || pretokenizer->steps[i].prefix_space || pretokenizer->steps[i].kind == STEP_METASPACE)
            return false;
    if (normalizer->count && added_tokens_any(parts->added, ADDED_NORMALIZED, true))
        return false;
    for (uint32_t i = 0; i < normalizer->count; i++)
        if (!keeps_front(&normalizer->steps[i], i + 1 == normalizer->count, step->replacement))
            return false;
    return true;
}

static bool metaspace_step(struct json_file *file, struct pretokenizer_step *into, const struct hf_split *step,
                           bool mapped, const struct pipeline_parts *parts)
{
    static const enum step_prepend prepends[] = {
        [HF_PREPEND_NEVER] = PREPEND_NEVER, [HF_PREPEND_FIRST] = PREPEND_FIRST, [HF_PREPEND_ALWAYS] = PREPEND_ALWAYS};
    if (mapped)
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "pre_tokenizer: tokmap cannot read a file with Metaspace after ByteLevel");
    if (step->prepend == HF_PREPEND_FIRST && !first_known(parts, step))
        return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                "pre_tokenizer.Metaspace.prepend_scheme is 'first', and which text comes first depends "
                                "on the normalizer or on another pre-tokenizer; tokmap cannot read such a file");
    into->kind = STEP_METASPACE;
    into->behavior = SPLIT_MERGED_NEXT;
    into->splits = step->split;
    into->prepend = prepends[step->prepend];
    into->literal = malloc(4);
    if (!into->literal)
        return json_file_memory(file, "a pre-tokenizer", 4);
    into->literal_bytes = code_point_put(into->literal, step->replacement);
    return true;
}

static bool step_add(struct json_file *file, struct pipeline_parts *parts, const struct hf_split *step, bool mapped)
{
    static const enum step_kind kinds[] = {
        [HF_DIGITS] = STEP_NUMERIC,         [HF_PUNCTUATION] = STEP_PUNCTUATION, [HF_WHITESPACE] = STEP_WORDS,
        [HF_WHITESPACE_SPLIT] = STEP_SPACE, [HF_SCRIPTS] = STEP_SCRIPTS,         [HF_FIXED] = STEP_FIXED};
    struct pretokenizer *pretokenizer = &parts->pretokenizer;
    struct pretokenizer_step *into = &pretokenizer->steps[pretokenizer->count];
    if (pretokenizer->count == PRETOKENIZER_STEPS_MOST)
        return json_file_refuse(file, TOKMAP_ERROR_LIMIT,
                                "pre_tokenizer has more than %d steps, which is the most that tokmap can read",
                                PRETOKENIZER_STEPS_MOST);
    memset(into, 0, sizeof *into);
    pretokenizer->count++;
    into->behavior = step->behavior;
    into->invert = step->invert;
    into->mapped = mapped;
    if (step->kind == HF_SPLIT)
        return split_step(file, into, step);
    if (step->kind == HF_METASPACE)
        return metaspace_step(file, into, step, mapped, parts);
    into->kind = kinds[step->kind];
    if (step->kind == HF_BYTE_LEVEL) {
        into->kind = step->use_regex ? STEP_RULES : STEP_NOTHING;
        into->behavior = SPLIT_ISOLATED;
        into->prefix_space = step->prefix_space;
        into->rules = *split_rules_named("gpt2");
    }
    into->length = (size_t)step->length;
    return true;
}

/* Returns how many of the steps just before ByteLevel, which is step `level`, the scanner performs, and stores its
 * rules. *scans: whether a scanner is used at all. */
static uint32_t scanned_steps(const struct hf_splits *splits, uint32_t level, struct split_rules *rules, bool *scans)
{
    const struct hf_split *byte_level = &splits->steps[level];
    *scans = level + 1 == splits->count;
    if (!*scans)
        return 0;
    if (byte_level->use_regex) {
        *rules = *split_rules_named("gpt2");
        return 0;
    }
    if (!byte_level->prefix_space && level >= SPLIT_STEPS &&
        is_pattern(&splits->steps[level - 3], split_deepseek_steps[0]) &&
        is_pattern(&splits->steps[level - 2], split_deepseek_steps[1]) &&
        is_pattern(&splits->steps[level - 1], split_deepseek_steps[2])) {
        *rules = *split_rules_named("deepseek_v3");
        return SPLIT_STEPS;
    }
    const struct split_rules *known = level ? known_rules(&splits->steps[level - 1]) : NULL;
    if (!byte_level->prefix_space && known && keeps_matches(&splits->steps[level - 1])) {
        *rules = *known;
        return 1;
    }
    *scans = false;
    return 0;
}

static bool rules_equal(const struct split_rules *a, const struct split_rules *b)
{
    return a->letters == b->letters && a->contraction == b->contraction && a->prefix == b->prefix &&
           a->tail == b->tail && a->numbers == b->numbers && a->newlines == b->newlines && a->deepseek == b->deepseek;
}

size_t scanner_describe(char *into, size_t room, const char *rules)
{
    const int used = snprintf(into, room, "%s, %s", rules, cpu_variant_name(cpu_variant_best()));
    return used < 0 ? 0 : (size_t)used < room ? (size_t)used : room - 1;
}

bool hf_pretokenizer_build(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts,
                           struct split_rules *rules)
{
    uint32_t level = splits->count;
    for (uint32_t i = 0; i < splits->count; i++)
        if (splits->steps[i].kind == HF_BYTE_LEVEL) {
            if (level < splits->count)
                return json_file_refuse(file, TOKMAP_ERROR_UNSUPPORTED,
                                        "pre_tokenizer: tokmap cannot read a file with two ByteLevel steps");
            level = i;
        }
    assert(level < splits->count && !parts->pretokenizer.count);
    if (rules)
        *rules = *split_rules_named("gpt2");
    const uint32_t scanned = rules ? scanned_steps(splits, level, rules, &parts->engine_cuts) : 0;
    for (uint32_t i = 0; i < splits->count; i++) {
        if (i < level && i + scanned >= level)
            continue;
        struct hf_split step = splits->steps[i];
        if (i == level) {
            if (parts->engine_cuts)
                step.use_regex = false;
            if (!step.use_regex && !step.prefix_space)
                continue;
        }
        if (!step_add(file, parts, &step, i > level))
            return false;
    }
    const char *name = "rules without a name";
    for (const char *const *known = split_rules_names(); rules && *known; known++)
        if (rules_equal(split_rules_named(*known), rules)) {
            name = *known;
            break;
        }
    bool regex = false;
    for (uint32_t i = 0; i < parts->pretokenizer.count; i++)
        regex |= parts->pretokenizer.steps[i].regex != NULL;
    size_t used = 0;
    if (parts->engine_cuts)
        used = scanner_describe(parts->scanner, sizeof parts->scanner, name);
    if (parts->pretokenizer.count || !parts->engine_cuts)
        snprintf(parts->scanner + used, sizeof parts->scanner - used, "%sstep by step%s",
                 used ? ", after cuts made " : "", regex ? " with PCRE2" : "");
    return true;
}

bool hf_pretokenizer_steps(struct json_file *file, const struct hf_splits *splits, struct pipeline_parts *parts)
{
    for (uint32_t i = 0; i < splits->count; i++)
        if (!step_add(file, parts, &splits->steps[i], false))
            return false;
    return true;
}

enum tokmap_status hf_pattern_choose(struct pipeline_parts *parts, struct hf_splits *splits, struct split_rules *rules,
                                     const struct hf_pattern *pattern, struct tokmap_error *error)
{
    const struct split_rules *known = split_rules_of_regex(pattern->text, pattern->bytes);
    struct pretokenizer_step *step = &parts->pretokenizer.steps[0];
    *rules = known ? *known : *split_rules_named("gpt2");
    parts->engine_cuts = known != NULL;
    if (known)
        return TOKMAP_OK;
    splits->count = parts->pretokenizer.count = 1;
    splits->steps[0] = (struct hf_split){.kind = HF_SPLIT,
                                         .is_regex = true,
                                         .behavior = SPLIT_REMOVED,
                                         .invert = true,
                                         .pattern = (const uint8_t *)pattern->text,
                                         .pattern_bytes = pattern->bytes};
    *step = (struct pretokenizer_step){.kind = STEP_REGEX, .behavior = SPLIT_REMOVED, .invert = true};
    return regex_new(&step->regex, pattern->text, pattern->bytes, REGEX_RUST, pattern->path, pattern->field, error);
}

/*
 * ---- the fingerprint ----
 *
 * Everything that decides ids is hashed, in a form that does not depend on how a file writes it. What is hashed must
 * not change: datasets store fingerprints.
 */

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
