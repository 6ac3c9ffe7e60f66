/* SPDX-License-Identifier: MIT */
/*
 * sp_pairs.c - the pairs that merge: from a list or from scores, reduced to those that can come up.
 *
 * The sources. Hugging Face files list the pairs, in the order in which they merge. SentencePiece files give each piece
 * a score, and any two neighbors merge that together are a piece, the best score first. So a piece has as many pairs as
 * it has borders with a symbol on both sides. For scores, the rank of a pair is the place of its piece in the order of
 * scores; pieces of equal score have the same priority, and merge from left to right.
 *
 * The reduction. Most of these pairs never come up: as bpe_build.c explains, only the two parts that a token's own
 * bytes merge to can ever merge to it. So each token is merged once, by length, in the table built so far, and only its
 * last pair goes into the final table. Where that is the same as in the list, bpe_splits.h finds it without merging.
 *     Example: the pieces are a, b, c, ab (score -1), bc (-2), and abc (-3). Scores make four pairs: a+b, b+c, and, for
 *     abc, ab+c and a+bc. The text "abc" merges to "ab" "c", since -1 is better than -2, and then to "abc". So ab+c is
 *     kept, and a+bc never comes up.
 * This makes the table smaller, and it says where text can be cut: a merge can only cross the borders inside the pairs
 * that are kept. (User-defined pieces do not make the reduction wrong: text that becomes a token has no such piece that
 * begins in it, and neither has the token's own text. Still, where there are any, all pairs are kept.)
 *
 * At last symbols are numbered again, so that the rank of a pair is the symbol that it makes: symbols that no merge
 * makes first, then the others in the order of their ranks. A merge then needs no table of results.
 */
#include "sp_pairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_splits.h"
#include "bpe/text_places.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "platform/os.h"
#include "sp_merge.h"

struct pairing {
    struct sp_builder *builder;
    struct text_places places; /* with scores: the pieces that can merge, by text */
    uint32_t ranks;            /* ranks are below it */
    bool twice;                /* a pair is in the list twice */
    uint32_t kept;             /* pairs that can come up */
};

static enum tokmap_status too_many(const struct sp_builder *builder, uint64_t pairs)
{
    return error_set(builder->error, TOKMAP_ERROR_LIMIT, builder->source->path, TOKMAP_NO_OFFSET,
                     "the vocabulary has %" PRIu64 " merges or more, but at most %u are supported", pairs, BPE_MERGES);
}

/* The pairs that a new table begins with. */
struct pair_list {
    const struct bpe_merge *merges;
    uint32_t count;
    bool by_result; /* the rank of a pair is its result, else its place in the list */
    bool twice;     /* table_new() found a pair twice */
};

/* Makes a table for `pairs` pairs. list: NULL, or those that it begins with. */
static enum tokmap_status table_new(struct sp_builder *builder, uint64_t pairs, struct pair_list *list)
{
    struct bpe_model *head = &builder->model->head;
    free(head->byte_pairs);
    head->byte_pairs = NULL;
    if (pairs > BPE_MERGES)
        return too_many(builder, pairs);
    const uint64_t slots = pairs + pairs / 2 + 1;
    head->byte_pairs = malloc(65536 * sizeof *head->byte_pairs);
    if (!head->byte_pairs ||
        !(list ? bpe_pairs_new_list(head, slots, list->merges, list->count, list->by_result, &list->twice)
               : bpe_pairs_new(head, slots)))
        return sp_no_memory(builder);
    memset(head->byte_pairs, 0xFF, 65536 * sizeof *head->byte_pairs);
    return TOKMAP_OK;
}

/* ---- pairs of a list ---- */

static bool merge_fits(const struct sp_builder *builder, const struct bpe_merge *merge)
{
    const struct sp_source *source = builder->source;
    if (merge->left >= source->vocabulary || merge->right >= source->vocabulary ||
        merge->result >= source->vocabulary || merge->left == source->unk || merge->right == source->unk ||
        merge->result == source->unk)
        return false;
    const uint32_t left = sp_text_bytes(builder, merge->left), right = sp_text_bytes(builder, merge->right);
    const uint8_t *result = sp_text(builder, merge->result);
    return left && right && left + right == sp_text_bytes(builder, merge->result) &&
           (source->merges_checked || (!memcmp(result, sp_text(builder, merge->left), left) &&
                                       !memcmp(result + left, sp_text(builder, merge->right), right)));
}

static enum tokmap_status add_listed(struct pairing *pairing)
{
    struct sp_builder *builder = pairing->builder;
    const struct sp_source *source = builder->source;
    struct bpe_model *head = &builder->model->head;
    struct pair_list list = {.merges = source->merges, .count = source->merge_count};
    pairing->ranks = source->merge_count;
    if (source->merge_count > BPE_MERGES)
        return too_many(builder, source->merge_count);
    head->results = os_memory_large(((size_t)source->merge_count + 1) * sizeof *head->results);
    if (!head->results)
        return sp_no_memory(builder);
    for (uint32_t i = 0; i < source->merge_count; i++) {
        if (!merge_fits(builder, &source->merges[i]))
            return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
                             "merges: merge %" PRIu32 " (from 0) joins tokens that are not text, such as <0x0A> or the "
                             "unknown token, or its two texts together are not the text of its result; check the file",
                             i);
        head->results[i] = source->merges[i].result;
    }
    const enum tokmap_status status = table_new(builder, source->merge_count, &list);
    pairing->twice = list.twice;
    return status;
}

/* ---- pairs by scores ---- */

static bool can_merge(const struct sp_builder *builder, uint32_t id)
{
    const enum sp_kind kind = sp_kind_of(builder->source, id);
    return (kind == SP_NORMAL || kind == SP_UNUSED || kind == SP_USER_DEFINED) && sp_text_bytes(builder, id);
}

static bool places_new(struct pairing *pairing)
{
    const struct sp_builder *builder = pairing->builder;
    if (!text_places_new(&pairing->places, builder->source->vocabulary))
        return false;
    for (uint32_t id = 0; id < builder->source->vocabulary; id++)
        if (can_merge(builder, id))
            (void)text_places_add(&pairing->places, builder->bytes, builder->offsets, id);
    return true;
}

/* Returns the symbol of a part of a piece's text, if it is a piece or a character; else BPE_NONE. */
static uint32_t symbol_of(const struct pairing *pairing, const uint8_t *text, uint32_t count)
{
    const struct sp_builder *builder = pairing->builder;
    uint32_t length;
    if (count <= 4 && sp_is_character(text, count))
        return builder->model->atoms[sp_character(text, count, &length)] - 1;
    return text_places_find(&pairing->places, builder->bytes, builder->offsets, text, count);
}

/* context: the scores. It is an argument, not a variable of the file, because several threads may build models at once.
 */
static int by_score(const void *a, const void *b, void *context)
{
    const float *scores = context;
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    if (scores[left] != scores[right])
        return scores[left] > scores[right] ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Fills `order` with the pieces that merges make, the best score first and equal scores by id. Returns how many. */
static uint32_t order_by_score(const struct sp_builder *builder, uint32_t *order)
{
    const struct sp_source *source = builder->source;
    uint32_t count = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        if (can_merge(builder, id) && sp_kind_of(source, id) != SP_USER_DEFINED)
            order[count++] = id;
    qsort_r(order, count, sizeof *order, by_score, (void *)(uintptr_t)source->scores);
    return count;
}

/* The pairs that have been found so far, each as left << 43 | right << 22 | rank, like a slot of the table. They take
 * memory as they are found: a file has few for each byte of text. */
struct score_pairs {
    uint64_t *pairs;
    uint64_t count, room;
};
_Static_assert(BPE_IDS == UINT32_C(1) << 21 && BPE_MERGES < UINT32_C(1) << 22, "a pair and its rank fit 64 bits");

static bool score_pair_add(struct score_pairs *all, uint32_t left, uint32_t right, uint32_t rank)
{
    if (!list_room(&all->pairs, all->count, &all->room, sizeof *all->pairs))
        return false;
    all->pairs[all->count++] = bpe_pair_key(left, right) << 22 | rank;
    return true;
}

/* Appends the pairs of all borders of a piece that have symbols on both sides. Statuses: OK, ERROR_LIMIT, ERROR_MEMORY.
 */
static enum tokmap_status pairs_of(const struct pairing *pairing, uint32_t id, uint32_t rank, struct score_pairs *pairs)
{
    struct sp_builder *builder = pairing->builder;
    const uint8_t *text = sp_text(builder, id);
    const uint32_t bytes = sp_text_bytes(builder, id);
    for (uint32_t at = 1; at < bytes; at++) {
        if ((text[at] & 0xC0) == 0x80)
            continue;
        const uint32_t left = symbol_of(pairing, text, at);
        const uint32_t right = left == BPE_NONE ? BPE_NONE : symbol_of(pairing, text + at, bytes - at);
        if (right == BPE_NONE)
            continue;
        if (builder->defined)
            sp_border_note(builder, text, at, bytes);
        if (pairs->count == BPE_MERGES)
            return too_many(builder, (uint64_t)BPE_MERGES + 1);
        if (!score_pair_add(pairs, left, right, rank))
            return sp_no_memory(builder);
    }
    return TOKMAP_OK;
}

/* Finds the pairs and priorities of all ranks. results: the piece of each rank. *equals: pairs of equal score exist. */
static enum tokmap_status scored_pairs(const struct pairing *pairing, const uint32_t *results,
                                       struct score_pairs *pairs, bool *equals)
{
    const struct sp_builder *builder = pairing->builder;
    const struct sp_source *source = builder->source;
    uint32_t *priorities = builder->model->priorities;
    *equals = false;
    for (uint32_t rank = 0; rank < pairing->ranks; rank++) {
        const bool equal = rank && source->scores[results[rank]] == source->scores[results[rank - 1]];
        const uint64_t before = pairs->count;
        priorities[rank] = equal ? priorities[rank - 1] : rank;
        const enum tokmap_status status = pairs_of(pairing, results[rank], rank, pairs);
        if (status)
            return status;
        *equals |= equal && pairs->count > before;
        if (pairs->count > before && sp_kind_of(source, results[rank]) == SP_UNUSED)
            return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
                             "pieces: piece %" PRIu32
                             " has the type UNUSED, but merges make it. What SentencePiece does "
                             "with it depends on the whole text, which is not supported",
                             results[rank]);
    }
    return TOKMAP_OK;
}

static enum tokmap_status add_scored(struct pairing *pairing)
{
    struct sp_builder *builder = pairing->builder;
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    bool equals = false;
    struct score_pairs all = {NULL, 0, 0};
    model->priorities = malloc(((size_t)source->vocabulary + 1) * sizeof *model->priorities);
    model->head.results = malloc(((size_t)source->vocabulary + 1) * sizeof *model->head.results);
    enum tokmap_status status = TOKMAP_OK;
    if (!model->priorities || !model->head.results || !places_new(pairing))
        status = sp_no_memory(builder);
    if (!status) {
        pairing->ranks = order_by_score(builder, model->head.results);
        status = scored_pairs(pairing, model->head.results, &all, &equals);
    }
    if (!status)
        status = table_new(builder, all.count, NULL);
    for (size_t i = 0; i < all.count && !status; i++)
        (void)bpe_pair_add(&model->head, (uint32_t)(all.pairs[i] >> 43), (uint32_t)(all.pairs[i] >> 22) & (BPE_IDS - 1),
                           (uint32_t)all.pairs[i] & BPE_MERGES);
    if (!equals) {
        free(model->priorities);
        model->priorities = NULL;
    }
    free(all.pairs);
    return status;
}

/* ---- the pairs that can come up ---- */

/* Returns whether a token is not reached yet. */
static bool is_unreached(const void *user, uint32_t id)
{
    const uint8_t *reached = user;
    return !reached[id];
}

/* Notes the pair that makes a token. border: the bytes of its left part. */
static void note_pair(struct pairing *pairing, uint32_t rank, uint32_t id, uint32_t border)
{
    struct sp_builder *builder = pairing->builder;
    const uint8_t *text = sp_text(builder, id);
    pairing->kept++;
    if (sp_text_bytes(builder, id) == 2 && border == 1)
        builder->model->head.byte_pairs[(uint32_t)text[0] << 8 | text[1]] = rank;
    sp_border_note(builder, text, border, sp_text_bytes(builder, id));
}

/* Returns the characters that are tokens, as the splits that bpe_splits_find() begins with. NULL: memory ran out. */
static struct bpe_split *splits_new(const struct sp_builder *builder)
{
    const uint32_t vocabulary = builder->source->vocabulary;
    struct bpe_split *splits = os_memory_large_zeros((size_t)vocabulary + 1, sizeof *splits);
    for (uint32_t id = 0; splits && id < vocabulary; id++) {
        const uint8_t *text = sp_text(builder, id);
        const uint32_t count = sp_text_bytes(builder, id);
        uint32_t length;
        if (count && count <= 4 && sp_is_character(text, count) &&
            builder->model->atoms[sp_character(text, count, &length)] == id + 1)
            splits[id].made = BPE_ATOM;
    }
    return splits;
}

/* Makes the table with the pairs that bpe_splits_find() finds without merging, nearly all of a list. */
static enum tokmap_status keep_splits(struct pairing *pairing, const struct bpe_model *listed)
{
    struct sp_builder *builder = pairing->builder;
    const struct sp_source *source = builder->source;
    const struct bpe_merge *merges = source->merges;
    if (!merges || pairing->twice)
        return table_new(builder, source->vocabulary, NULL);
    struct bpe_split *splits = splits_new(builder);
    const uint32_t known =
        splits ? bpe_splits_find(listed, merges, source->merge_count, false, os_processors(), splits) : 0;
    struct bpe_merge *kept = splits ? os_memory_large(((size_t)known + 1) * sizeof *kept) : NULL;
    struct pair_list list = {.merges = kept, .by_result = true};
    for (uint32_t i = 0; kept && i < source->merge_count; i++)
        if (splits[merges[i].result].made == i + BPE_BY_RANK)
            kept[list.count++] = (struct bpe_merge){merges[i].left, merges[i].right, i};
    assert(!kept || list.count == known);
    const enum tokmap_status status = kept ? table_new(builder, source->vocabulary, &list) : sp_no_memory(builder);
    for (uint32_t i = 0; !status && i < known; i++) {
        const uint32_t rank = kept[i].result, id = merges[rank].result;
        note_pair(pairing, rank, id, sp_text_bytes(builder, kept[i].left));
        builder->reached[id] = true;
    }
    free(kept);
    free(splits);
    return status;
}

/* Merges a token's text. If two parts are left that are a pair of `listed`, keeps the pair. Returns false if memory ran
 * out. */
static bool merge_token(struct pairing *pairing, const struct bpe_model *listed, struct bpe_scratch *scratch,
                        uint32_t id)
{
    struct sp_builder *builder = pairing->builder;
    uint32_t parts[2] = {0, 0}, border;
    const size_t left =
        sp_merge_symbols(builder->model, scratch, sp_text(builder, id), sp_text_bytes(builder, id), parts, &border);
    if (left == 1)
        builder->reached[id] = parts[0] == id;
    const uint32_t rank = left == 2 ? bpe_pair_rank(listed, parts[0], parts[1]) : BPE_NONE;
    if (rank == BPE_NONE)
        return left != 0;
    builder->reached[id] = builder->model->head.results[rank] == id;
    (void)bpe_pair_add(&builder->model->head, parts[0], parts[1], rank);
    note_pair(pairing, rank, id, border);
    return true;
}

/* ---- numbers of symbols ---- */

/* Fills model->ids, symbols having the numbers that they begin with. */
static enum tokmap_status assign_ids(struct sp_builder *builder)
{
    struct sp_model *model = builder->model;
    model->ids = os_memory_large((size_t)model->symbols * sizeof *model->ids);
    if (!model->ids)
        return sp_no_memory(builder);
    for (uint32_t symbol = 0; symbol < model->symbols; symbol++)
        model->ids[symbol] = symbol < builder->source->vocabulary ? symbol : BPE_NONE;
    return TOKMAP_OK;
}

/* Returns the new number of each symbol: first those that no merge makes, then the others in the order of their ranks.
 * Returns NULL if memory ran out. */
static uint32_t *new_numbers(const struct pairing *pairing)
{
    const struct sp_model *model = pairing->builder->model;
    const struct bpe_model *head = &model->head;
    uint32_t *numbers = os_memory_large(((size_t)model->symbols + 1) * sizeof *numbers);
    uint32_t *made = os_memory_large(((size_t)pairing->ranks + 1) * sizeof *made); /* by rank */
    if (numbers && made) {
        uint32_t next = 0;
        memset(numbers, 0, ((size_t)model->symbols + 1) * sizeof *numbers);
        memset(made, 0xFF, ((size_t)pairing->ranks + 1) * sizeof *made);
        for (uint64_t at = 0; at < (uint64_t)1 << head->pair_bits; at++)
            if (head->pairs[at] != UINT64_MAX) {
                const uint32_t rank = (uint32_t)head->pairs[at] & BPE_MERGES;
                made[rank] = head->results[rank];
                numbers[made[rank]] = BPE_NONE;
            }
        for (uint32_t symbol = 0; symbol < model->symbols; symbol++)
            if (!numbers[symbol])
                numbers[symbol] = next++;
        for (uint32_t rank = 0; rank < pairing->ranks; rank++)
            if (made[rank] != BPE_NONE)
                numbers[made[rank]] = next++;
    } else {
        free(numbers);
        numbers = NULL;
    }
    free(made);
    return numbers;
}

/* Makes the model's new table with the pairs of the old one, in new numbers. */
static enum tokmap_status renumber_pairs(struct pairing *pairing, const struct bpe_model *old, const uint32_t *numbers)
{
    const uint64_t slots = (uint64_t)1 << old->pair_bits;
    struct bpe_merge *pairs = os_memory_large(((size_t)pairing->kept + 1) * sizeof *pairs);
    struct pair_list list = {.merges = pairs, .by_result = true};
    for (uint64_t at = 0; pairs && at < slots; at++) {
        const uint64_t pair = old->pairs[at];
        if (pair != UINT64_MAX)
            pairs[list.count++] = (struct bpe_merge){numbers[pair >> 43], numbers[pair >> 22 & (BPE_IDS - 1)],
                                                     numbers[old->results[pair & BPE_MERGES]]};
    }
    assert(!pairs || list.count <= pairing->kept);
    const enum tokmap_status status =
        pairs ? table_new(pairing->builder, pairing->kept, &list) : sp_no_memory(pairing->builder);
    free(pairs);
    return status;
}

static enum tokmap_status number_symbols(struct pairing *pairing)
{
    struct sp_builder *builder = pairing->builder;
    struct sp_model *model = builder->model;
    struct bpe_model *head = &model->head;
    struct bpe_model old = {.pairs = head->pairs,
                            .pair_bits = head->pair_bits,
                            .pair_factor = head->pair_factor,
                            .pair_filter = head->pair_filter,
                            .results = head->results};
    uint32_t *numbers = new_numbers(pairing);
    head->pairs = head->pair_filter = NULL;
    const enum tokmap_status status = numbers ? renumber_pairs(pairing, &old, numbers) : sp_no_memory(builder);
    if (!status) {
        for (uint32_t code = 0; code < SP_CODES; code++) {
            const uint32_t block = code / SP_ATOM_BLOCK;
            if (!(builder->atom_blocks[block / 64] >> (block % 64) & 1))
                code += SP_ATOM_BLOCK - 1;
            else if (model->atoms[code])
                model->atoms[code] = numbers[model->atoms[code] - 1] + 1;
        }
        for (uint32_t symbol = 0; symbol < model->symbols; symbol++)
            model->ids[numbers[symbol]] = symbol < builder->source->vocabulary ? symbol : BPE_NONE;
        free(head->results);
        head->results = NULL;
    }
    bpe_pairs_free(&old);
    free(numbers);
    return status;
}

static enum tokmap_status keep_pairs(struct pairing *pairing)
{
    struct sp_builder *builder = pairing->builder;
    struct bpe_model *head = &builder->model->head;
    const uint32_t vocabulary = builder->source->vocabulary;
    struct bpe_model listed = {.pairs = head->pairs,
                               .pair_bits = head->pair_bits,
                               .pair_factor = head->pair_factor,
                               .pair_filter = head->pair_filter};
    struct bpe_scratch scratch = {.memory = NULL};
    head->pairs = head->pair_filter = NULL;
    uint32_t *order = NULL, count = 0;
    builder->reached = calloc((size_t)vocabulary + 1, sizeof *builder->reached);
    enum tokmap_status status = builder->reached ? keep_splits(pairing, &listed) : sp_no_memory(builder);
    if (!status && !(order = bpe_by_length(builder->offsets, vocabulary, 1, is_unreached, builder->reached, &count)))
        status = sp_no_memory(builder);
    for (uint32_t i = 0; i < count && !status; i++)
        if (!merge_token(pairing, &listed, &scratch, order[i]))
            status = sp_no_memory(builder);
    bpe_pairs_free(&listed);
    free(scratch.memory);
    free(order);
    return status || builder->model->priorities ? status : number_symbols(pairing);
}

/* ---- all of it ---- */

/* SentencePiece gives runs of spaces one score, the lowest; other pieces seldom have equal scores. */
static uint32_t find_tied(const struct pairing *pairing)
{
    const uint32_t *priorities = pairing->builder->model->priorities;
    uint32_t tied = 0;
    if (!priorities)
        return BPE_MERGES;
    if (pairing->ranks)
        tied = priorities[pairing->ranks - 1];
    for (uint32_t rank = 0; rank < tied; rank++)
        if (priorities[rank] != rank)
            return BPE_NONE;
    return tied;
}

/* Fills the ranks of pairs of ASCII characters. */
static void fill_byte_pairs(struct sp_model *model)
{
    for (uint32_t left = 0; left < 128; left++)
        for (uint32_t right = 0; right < 128; right++)
            if (model->atoms[left] && model->atoms[right])
                model->head.byte_pairs[left << 8 | right] =
                    bpe_pair_rank(&model->head, model->atoms[left] - 1, model->atoms[right] - 1);
}

enum tokmap_status sp_pairs_build(struct sp_builder *builder)
{
    assert(builder->model->atoms && builder->offsets && !builder->model->head.pairs);
    struct pairing pairing = {.builder = builder};
    enum tokmap_status status = builder->source->merges ? add_listed(&pairing) : add_scored(&pairing);
    if (!status) {
        builder->model->tied = find_tied(&pairing);
        status = assign_ids(builder);
    }
    if (!status && !builder->defined)
        status = keep_pairs(&pairing);
    if (!status)
        fill_byte_pairs(builder->model);
    text_places_free(&pairing.places);
    return status;
}
