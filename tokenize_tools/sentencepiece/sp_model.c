/*
 * sp_model.c - builds a model: atoms, the pairs that merge, what stands side by side in tokens, seeds of the caches.
 *
 * Hugging Face says which pairs merge. With SentencePiece any two neighbours merge that together are a piece, so a piece
 * has as many pairs as there are borders in it with a piece (or a character) on both sides.
 *
 * Most of these pairs never come up: as bpe_model.c says, only the two parts that a token's own bytes come to ever merge to
 * it. (User defined pieces do not change that: text that becomes the token has none that begins in it, and so has the
 * token alone. But where there are some all pairs are kept.)
 *
 * A border that some text's merges cross is the border inside some pair: so pairs, and user defined pieces, are all that
 * has to be asked for what stands side by side.
 */
#include "sp_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_splits.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "platform/os.h"

#define AHEAD 16 /* merges whose memory is asked for before they are looked at */

struct builder {
    const struct sp_source *source;
    struct sp_model *model;
    struct tokmap_error *error;
    /* What text must be to become an id by characters and merges, in the bytes of inside; empty: no text does. */
    uint8_t *bytes;
    uint32_t *offsets;
    uint64_t *places;  /* scores: pieces by the hash of their text: hash's high 32 bits, id + 1 */
    uint32_t place_bits;
    bool defined;      /* there are user defined pieces */
    bool twice;        /* a merge stands in the list twice */
    uint32_t ranks;    /* are below it */
    uint32_t kept;     /* pairs that come up */
    uint8_t *reached;  /* by ids: whether merges make it of its text; NULL: not known */
    struct sp_relation relation;
};

static uint64_t pairs_bytes(const struct sp_model *model)
{
    return ((uint64_t)1 << model->head.pair_bits) * sizeof *model->head.pairs;
}

static enum tokmap_status no_memory(const struct builder *builder)
{
    return error_set_memory(builder->error, "a vocabulary", (uint64_t)builder->source->vocabulary * 64);
}

static uint32_t text_bytes(const struct builder *builder, uint32_t id)
{
    return builder->offsets[id + 1] - builder->offsets[id];
}

static enum sp_kind kind_of(const struct sp_source *source, uint32_t id)
{
    return source->kinds ? (enum sp_kind)source->kinds[id] : SP_NORMAL;
}

/* ---- texts ---- */

static int hexadecimal(uint8_t digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* "<0x0A>" is 10; -1: no such text. */
static int byte_of(const uint8_t *text, uint32_t count)
{
    if (count != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    const int high = hexadecimal(text[3]), low = hexadecimal(text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

static uint32_t without_marks(const uint8_t *text, uint32_t count, uint8_t *into)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < count;) {
        const bool mark = count - i >= 3 && !memcmp(text + i, SP_MARK, 3);
        into[made++] = mark ? ' ' : text[i];
        i += mark ? 3 : 1;
    }
    return made;
}

/* What ids are decoded to, what text must be to become them, and the tokens of bytes. */
static enum tokmap_status read_texts(struct builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    const uint32_t total = source->offsets[source->vocabulary];
    model->head.bytes = malloc((size_t)total + 16);
    model->head.offsets = malloc(((size_t)source->vocabulary + 1) * sizeof *model->head.offsets);
    builder->bytes = malloc((size_t)total + 16);
    builder->offsets = malloc(((size_t)source->vocabulary + 1) * sizeof *builder->offsets);
    if (!model->head.bytes || !model->head.offsets || !builder->bytes || !builder->offsets)
        return no_memory(builder);
    memset(model->head.byte_ids, 0xFF, sizeof model->head.byte_ids);
    uint32_t decoded = 0, matched = 0, bytes_found = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint8_t *text = source->bytes + source->offsets[id];
        const uint32_t count = source->offsets[id + 1] - source->offsets[id];
        const enum sp_kind kind = kind_of(source, id);
        const int byte = source->byte_fallback && (source->merges || kind == SP_BYTE) ? byte_of(text, count) : -1;
        if (kind == SP_BYTE && byte < 0)
            return error_set(builder->error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "pieces: number %" PRIu32 " is of the type BYTE, but %s", id,
                             source->byte_fallback ? "no byte's name" : "trainer_spec.byte_fallback is false");
        model->head.offsets[id] = decoded;
        builder->offsets[id] = matched;
        if (byte >= 0) {
            bytes_found += model->head.byte_ids[byte] == BPE_NONE;
            model->head.byte_ids[byte] = id;
            model->head.bytes[decoded++] = (uint8_t)byte;
            continue;
        }
        if (kind == SP_CONTROL || kind == SP_UNKNOWN || (source->unk == id && !source->merges))
            continue;
        decoded += without_marks(text, count, model->head.bytes + decoded);
        if (!source->escape) {
            memcpy(builder->bytes + matched, text, count);
            matched += count;
        } else if (!memchr(text, ' ', count)) { /* no text has a space then */
            matched += without_marks(text, count, builder->bytes + matched);
        }
    }
    model->head.offsets[source->vocabulary] = decoded;
    builder->offsets[source->vocabulary] = matched;
    memset(model->head.bytes + decoded, 0, 16);
    memset(builder->bytes + matched, 0, 16);
    model->byte_fallback = bytes_found != 0;
    if (bytes_found < 256 && source->scores && source->byte_fallback)
        return error_set(builder->error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                         "trainer_spec.byte_fallback is true, but only %" PRIu32 " of the 256 pieces of bytes are there",
                         bytes_found);
    return TOKMAP_OK;
}

/* ---- symbols ---- */

static bool is_character(const uint8_t *text, uint32_t count)
{
    uint32_t length;
    (void)sp_character(text, count, &length);
    return length == count;
}

/* What has no token must become something, whatever stands beside it. A byte may lack its token if no character that is
 * unknown has it: bytes of ASCII whose character is a token (Gemma has "\t", not <0x09>), and those of no character. */
static enum tokmap_status check_unknown(const struct builder *builder)
{
    const struct sp_model *model = builder->model;
    for (uint32_t byte = 0; byte < 0xF5 && model->byte_fallback; byte++)
        if (model->head.byte_ids[byte] == BPE_NONE && (byte < 0x80 ? !model->atoms[byte] : byte != 0xC0 && byte != 0xC1))
            return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, builder->source->path, TOKMAP_NO_OFFSET,
                             "byte_fallback: the token <0x%02X> is not there, others are; what characters with this byte "
                             "become would depend on their neighbours", byte);
    if (!model->byte_fallback && model->unk >= builder->source->vocabulary)
        return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, builder->source->path, TOKMAP_NO_OFFSET,
                         "unk_token: the vocabulary has neither tokens for bytes nor an unknown token, so characters "
                         "without a token would be lost");
    return TOKMAP_OK;
}

static enum tokmap_status read_atoms(struct builder *builder)
{
    struct sp_model *model = builder->model;
    const uint32_t vocabulary = builder->source->vocabulary;
    void *atoms = NULL;
    uint32_t length;
    if (os_memory_new(SP_CODES * sizeof *model->atoms, false, &atoms))
        return no_memory(builder);
    model->atoms = atoms;
    model->symbols = vocabulary;
    for (uint32_t id = 0; id < vocabulary; id++) {
        const uint8_t *text = builder->bytes + builder->offsets[id];
        const uint32_t count = text_bytes(builder, id);
        if (count && count <= 4 && is_character(text, count))
            model->atoms[sp_character(text, count, &length)] = id + 1;
    }
    if (builder->source->escape && !model->atoms[' '])
        return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, builder->source->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has no token for the space ('\xE2\x96\x81')");
    const enum tokmap_status status = check_unknown(builder);
    if (status || builder->source->merges)
        return status;
    /* Characters that are no piece take part in merges all the same. */
    for (uint32_t id = 0; id < vocabulary; id++)
        for (uint32_t at = builder->offsets[id]; at < builder->offsets[id + 1]; at += length) {
            const uint32_t code = sp_character(builder->bytes + at, builder->offsets[id + 1] - at, &length);
            if (!model->atoms[code]) {
                if (model->symbols + 2 >= BPE_IDS)
                    return error_set(builder->error, TOKMAP_ERROR_LIMIT, builder->source->path, TOKMAP_NO_OFFSET,
                                     "the vocabulary has more than %u symbols", BPE_IDS);
                model->atoms[code] = ++model->symbols;
            }
        }
    return TOKMAP_OK;
}

/* ---- pairs ---- */

/* The first byte of the character that ends before `at`. */
static uint32_t character_before(const uint8_t *text, uint32_t at)
{
    do
        at--;
    while (at && (text[at] & 0xC0) == 0x80);
    return at;
}

static void note_border(struct builder *builder, const uint8_t *text, uint32_t at, uint32_t count)
{
    struct sp_model *model = builder->model;
    const uint32_t before = character_before(text, at);
    const uint8_t left = text[before], right = text[at];
    if (builder->source->split && right == ' ')
        return;
    builder->relation.bits[left][right / 64] |= (uint64_t)1 << (right % 64);
    if (left < 0xE0 || at - before != 3 || right < 0xE0 || count - at < 3)
        return;
    uint64_t six = 0;
    memcpy(&six, text + before, 6);
    const uint32_t bit = bpe_join_hash(six);
    model->head.joins[bit / 64] |= (uint64_t)1 << (bit % 64);
    model->pretokenizer.tall = true;
}

static enum tokmap_status pairs_new(struct builder *builder, uint64_t count)
{
    struct bpe_model *head = &builder->model->head;
    void *pairs = NULL;
    free(head->byte_pairs);
    head->byte_pairs = NULL;
    if (count > BPE_MERGES)
        return error_set(builder->error, TOKMAP_ERROR_LIMIT, builder->source->path, TOKMAP_NO_OFFSET,
                         "the vocabulary has more than %u merges", BPE_MERGES);
    head->pair_bits = 4;
    while ((uint64_t)1 << head->pair_bits < count + count / 2)
        head->pair_bits++;
    head->byte_pairs = malloc(65536 * sizeof *head->byte_pairs);
    head->pair_filter = calloc(((size_t)4 << head->pair_bits) / 64, sizeof *head->pair_filter);
    if (os_memory_new(pairs_bytes(builder->model), true, &pairs) || !head->byte_pairs || !head->pair_filter) {
        os_memory_free(pairs, pairs ? pairs_bytes(builder->model) : 0);
        return no_memory(builder);
    }
    head->pairs = pairs;
    memset(pairs, 0xFF, pairs_bytes(builder->model));
    memset(head->byte_pairs, 0xFF, 65536 * sizeof *head->byte_pairs);
    return TOKMAP_OK;
}

static enum tokmap_status add_merges(struct builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    const enum tokmap_status status = pairs_new(builder, source->merge_count);
    builder->ranks = source->merge_count;
    if (status)
        return status;
    model->head.results = malloc(((size_t)source->merge_count + 1) * sizeof *model->head.results);
    if (!model->head.results)
        return no_memory(builder);
    for (uint32_t i = 0; i < source->merge_count; i++) {
        const struct bpe_merge *merge = &source->merges[i];
        if (source->merge_count - i > AHEAD)
            bpe_pair_expect(&model->head, merge[AHEAD].left, merge[AHEAD].right);
        bool fits = merge->left < source->vocabulary && merge->right < source->vocabulary &&
                    merge->result < source->vocabulary && merge->left != source->unk && merge->right != source->unk &&
                    merge->result != source->unk;
        if (fits) {
            const uint32_t left = text_bytes(builder, merge->left), right = text_bytes(builder, merge->right);
            const uint8_t *result = builder->bytes + builder->offsets[merge->result];
            fits = left && right && left + right == text_bytes(builder, merge->result) &&
                   (source->fits || (!memcmp(result, builder->bytes + builder->offsets[merge->left], left) &&
                                     !memcmp(result + left, builder->bytes + builder->offsets[merge->right], right)));
        }
        if (!fits)
            return error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
                             "merges: number %" PRIu32 " (from 0) is of tokens that are not text, such as <0x0A> or the "
                             "unknown token, or whose texts do not make that of its result",
                             i);
        builder->twice |= !bpe_pair_add(&model->head, merge->left, merge->right, i);
        model->head.results[i] = merge->result;
    }
    return TOKMAP_OK;
}

/* ---- pairs by scores ---- */

static bool can_merge(const struct builder *builder, uint32_t id)
{
    const enum sp_kind kind = kind_of(builder->source, id);
    return (kind == SP_NORMAL || kind == SP_UNUSED || kind == SP_USER_DEFINED) && text_bytes(builder, id);
}

static bool places_new(struct builder *builder)
{
    builder->place_bits = 4;
    while ((uint64_t)1 << builder->place_bits < 2 * (uint64_t)builder->source->vocabulary)
        builder->place_bits++;
    builder->places = calloc((size_t)1 << builder->place_bits, sizeof *builder->places);
    const uint64_t mask = ((uint64_t)1 << builder->place_bits) - 1;
    for (uint32_t id = 0; builder->places && id < builder->source->vocabulary; id++) {
        if (!can_merge(builder, id))
            continue;
        const uint64_t hash = hash64(builder->bytes + builder->offsets[id], text_bytes(builder, id));
        uint64_t at = hash & mask;
        while (builder->places[at])
            at = (at + 1) & mask;
        builder->places[at] = (hash & 0xFFFFFFFF00000000u) | (id + 1);
    }
    return builder->places != NULL;
}

/* The symbol of a text of a piece's: a piece or a character; BPE_NONE: neither. */
static uint32_t symbol_of(const struct builder *builder, const uint8_t *text, uint32_t count)
{
    uint32_t length;
    if (count <= 4 && is_character(text, count))
        return builder->model->atoms[sp_character(text, count, &length)] - 1;
    const uint64_t hash = hash64(text, count), mask = ((uint64_t)1 << builder->place_bits) - 1;
    for (uint64_t at = hash & mask; builder->places[at]; at = (at + 1) & mask) {
        const uint32_t id = (uint32_t)builder->places[at] - 1;
        if (builder->places[at] >> 32 == hash >> 32 && text_bytes(builder, id) == count &&
            !memcmp(builder->bytes + builder->offsets[id], text, count))
            return id;
    }
    return BPE_NONE;
}

static const float *sorted_scores;

static int by_score(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const float left_score = sorted_scores[left], right_score = sorted_scores[right];
    if (left_score != right_score)
        return left_score > right_score ? -1 : 1;
    return left < right ? -1 : left > right;
}

struct score_pair {
    uint32_t left, right, rank;
};

/* All borders of a piece with symbols on both sides. Returns the new count. */
static size_t pairs_of(struct builder *builder, uint32_t id, uint32_t rank, struct score_pair *pairs, size_t count)
{
    const uint8_t *text = builder->bytes + builder->offsets[id];
    const uint32_t bytes = text_bytes(builder, id);
    for (uint32_t at = 1; at < bytes; at++) {
        if ((text[at] & 0xC0) == 0x80)
            continue;
        const uint32_t left = symbol_of(builder, text, at);
        const uint32_t right = left == BPE_NONE ? BPE_NONE : symbol_of(builder, text + at, bytes - at);
        if (right == BPE_NONE)
            continue;
        if (builder->defined)
            note_border(builder, text, at, bytes);
        pairs[count++] = (struct score_pair){left, right, rank};
    }
    return count;
}

static enum tokmap_status add_scored(struct builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    const uint32_t *results;
    uint32_t merges = 0;
    size_t count = 0;
    uint32_t *order = malloc(((size_t)source->vocabulary + 1) * sizeof *order);
    struct score_pair *pairs = malloc(((size_t)builder->offsets[source->vocabulary] + 1) * sizeof *pairs);
    model->priorities = malloc(((size_t)source->vocabulary + 1) * sizeof *model->priorities);
    model->head.results = order;
    results = order;
    enum tokmap_status status = TOKMAP_OK;
    if (!order || !pairs || !model->priorities || !places_new(builder)) {
        free(pairs);
        return no_memory(builder);
    }
    for (uint32_t id = 0; id < source->vocabulary; id++)
        if (can_merge(builder, id) && kind_of(source, id) != SP_USER_DEFINED)
            order[merges++] = id;
    builder->ranks = merges;
    sorted_scores = source->scores;
    qsort(order, merges, sizeof *order, by_score);
    bool equals = false;
    for (uint32_t rank = 0; rank < merges && !status; rank++) {
        const bool equal = rank && source->scores[results[rank]] == source->scores[results[rank - 1]];
        const size_t before = count;
        model->priorities[rank] = equal ? model->priorities[rank - 1] : rank;
        count = pairs_of(builder, results[rank], rank, pairs, count);
        equals |= equal && count > before;
        if (count > before && kind_of(source, results[rank]) == SP_UNUSED)
            status = error_set(builder->error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
                               "pieces: number %" PRIu32 " is of the type UNUSED, and merges make it; what SentencePiece "
                               "does with such a piece depends on the whole text",
                               results[rank]);
    }
    if (!status)
        status = pairs_new(builder, count);
    for (size_t i = 0; i < count && !status; i++)
        (void)bpe_pair_add(&model->head, pairs[i].left, pairs[i].right, pairs[i].rank);
    if (!equals) {
        free(model->priorities);
        model->priorities = NULL;
    }
    free(pairs);
    return status;
}

/* The ranks of two characters of ASCII. */
static void fill_byte_pairs(struct sp_model *model)
{
    for (uint32_t left = 0; left < 128; left++)
        for (uint32_t right = 0; right < 128; right++)
            if (model->atoms[left] && model->atoms[right])
                model->head.byte_pairs[left << 8 | right] =
                    bpe_pair_rank(&model->head, model->atoms[left] - 1, model->atoms[right] - 1);
}

/* ---- the pairs that come up ---- */

/* Those that are not reached. */
static uint32_t *by_length(const struct builder *builder, uint32_t *count)
{
    const uint32_t vocabulary = builder->source->vocabulary;
    uint32_t longest = 0;
    for (uint32_t id = 0; id < vocabulary; id++)
        longest = (uint32_t)max64(longest, text_bytes(builder, id));
    uint32_t *places = calloc((size_t)longest + 2, sizeof *places);
    uint32_t *order = malloc(((size_t)vocabulary + 1) * sizeof *order);
    if (places && order) {
        for (uint32_t id = 0; id < vocabulary; id++)
            places[text_bytes(builder, id) + 1] += !builder->reached[id];
        for (uint32_t i = 1; i <= longest + 1; i++)
            places[i] += places[i - 1];
        *count = places[longest + 1];
        for (uint32_t id = 0; id < vocabulary; id++)
            if (!builder->reached[id])
                order[places[text_bytes(builder, id)]++] = id;
    } else {
        free(order);
        order = NULL;
    }
    free(places);
    return order;
}

/* A pair comes up: the one that makes a token. */
static void put_pair(struct builder *builder, uint32_t left, uint32_t right, uint32_t rank, uint32_t id, uint32_t border)
{
    struct bpe_model *head = &builder->model->head;
    const uint8_t *text = builder->bytes + builder->offsets[id];
    (void)bpe_pair_add(head, left, right, rank);
    builder->kept++;
    if (text_bytes(builder, id) == 2 && border == 1)
        head->byte_pairs[(uint32_t)text[0] << 8 | text[1]] = rank;
    note_border(builder, text, border, text_bytes(builder, id));
}

/* The pairs that can be told without merging, which are nearly all of a list. False: no memory. */
static bool put_known(struct builder *builder, const struct bpe_model *listed)
{
    const struct sp_source *source = builder->source;
    const struct bpe_merge *merges = source->merges;
    uint32_t length;
    if (!merges || builder->twice)
        return true;
    struct bpe_split *splits = calloc((size_t)source->vocabulary + 1, sizeof *splits);
    if (!splits)
        return false;
    for (uint32_t id = 0; id < source->vocabulary; id++) {
        const uint8_t *text = builder->bytes + builder->offsets[id];
        const uint32_t count = text_bytes(builder, id);
        if (count && count <= 4 && is_character(text, count) &&
            builder->model->atoms[sp_character(text, count, &length)] == id + 1)
            splits[id].made = BPE_ATOM;
    }
    (void)bpe_splits_find(listed, merges, source->merge_count, false, splits);
    for (uint32_t i = 0; i < source->merge_count; i++) {
        const uint32_t id = merges[i].result;
        if (source->merge_count - i > AHEAD && splits[merges[i + AHEAD].result].made == i + AHEAD + BPE_BY_RANK)
            bpe_pair_expect(&builder->model->head, merges[i + AHEAD].left, merges[i + AHEAD].right);
        if (splits[id].made != i + BPE_BY_RANK)
            continue;
        put_pair(builder, merges[i].left, merges[i].right, i, id, text_bytes(builder, merges[i].left));
        builder->reached[id] = true;
    }
    free(splits);
    return true;
}

/* If merges leave two parts of a token and these are a pair, it goes from the list into the table. False: no memory. */
static bool keep_pair(struct builder *builder, const struct bpe_model *listed, struct bpe_scratch *scratch, uint32_t id)
{
    struct bpe_model *head = &builder->model->head;
    const uint8_t *text = builder->bytes + builder->offsets[id];
    const uint32_t bytes = text_bytes(builder, id);
    uint32_t parts[2] = {0, 0}, border;
    const size_t made = sp_merge_symbols(builder->model, scratch, text, bytes, parts, &border);
    if (made == 1)
        builder->reached[id] = parts[0] == id;
    const uint32_t rank = made == 2 ? bpe_pair_rank(listed, parts[0], parts[1]) : BPE_NONE;
    if (rank == BPE_NONE)
        return made != 0;
    builder->reached[id] = head->results[rank] == id;
    put_pair(builder, parts[0], parts[1], rank, id, border);
    return true;
}

/* What symbols become in the end, with their numbers as they are. */
static enum tokmap_status give_ids(struct builder *builder)
{
    struct sp_model *model = builder->model;
    model->ids = malloc((size_t)model->symbols * sizeof *model->ids);
    if (!model->ids)
        return no_memory(builder);
    for (uint32_t symbol = 0; symbol < model->symbols; symbol++)
        model->ids[symbol] = symbol < builder->source->vocabulary ? symbol : BPE_NONE;
    return TOKMAP_OK;
}

/* The new number of each symbol: those that no merge makes, then the others in the order of their ranks. NULL: no memory. */
static uint32_t *new_numbers(const struct builder *builder)
{
    const struct sp_model *model = builder->model;
    const struct bpe_model *head = &model->head;
    uint32_t *numbers = malloc(((size_t)model->symbols + 1) * sizeof *numbers);
    uint32_t *made = malloc(((size_t)builder->ranks + 1) * sizeof *made); /* by rank */
    if (numbers && made) {
        uint32_t next = 0;
        memset(numbers, 0, ((size_t)model->symbols + 1) * sizeof *numbers);
        memset(made, 0xFF, ((size_t)builder->ranks + 1) * sizeof *made);
        for (uint64_t at = 0; at < (uint64_t)1 << head->pair_bits; at++)
            if (head->pairs[at] != UINT64_MAX) {
                const uint32_t rank = (uint32_t)head->pairs[at] & BPE_MERGES;
                made[rank] = head->results[rank];
                numbers[made[rank]] = BPE_NONE;
            }
        for (uint32_t symbol = 0; symbol < model->symbols; symbol++)
            if (!numbers[symbol])
                numbers[symbol] = next++;
        for (uint32_t rank = 0; rank < builder->ranks; rank++)
            if (made[rank] != BPE_NONE)
                numbers[made[rank]] = next++;
    } else {
        free(numbers);
        numbers = NULL;
    }
    free(made);
    return numbers;
}

/* Numbers symbols such that a rank is the symbol that it gives: merging need not look that up. */
static enum tokmap_status number_symbols(struct builder *builder)
{
    struct sp_model *model = builder->model;
    struct bpe_model *head = &model->head;
    const struct bpe_model old = *head;
    const uint64_t old_bytes = pairs_bytes(model);
    uint32_t *numbers = new_numbers(builder);
    head->pairs = head->pair_filter = NULL;
    enum tokmap_status status = numbers ? pairs_new(builder, builder->kept) : no_memory(builder);
    struct bpe_merge pairs[AHEAD];
    const uint64_t places = (uint64_t)1 << old.pair_bits;
    uint32_t waiting = 0;
    for (uint64_t at = 0; at < places && !status; at++) {
        const uint64_t pair = old.pairs[at];
        if (pair != UINT64_MAX) {
            const struct bpe_merge new = {numbers[pair >> 43], numbers[pair >> 22 & (BPE_IDS - 1)],
                                          numbers[old.results[pair & BPE_MERGES]]};
            bpe_pair_expect(head, new.left, new.right);
            pairs[waiting++] = new;
        }
        if (waiting == AHEAD || at + 1 == places)
            while (waiting) {
                waiting--;
                (void)bpe_pair_add(head, pairs[waiting].left, pairs[waiting].right, pairs[waiting].result);
            }
    }
    for (uint32_t code = 0; code < SP_CODES && !status; code++)
        if (model->atoms[code])
            model->atoms[code] = numbers[model->atoms[code] - 1] + 1;
    for (uint32_t symbol = 0; symbol < model->symbols && !status; symbol++)
        model->ids[numbers[symbol]] = symbol < builder->source->vocabulary ? symbol : BPE_NONE;
    if (!status) {
        free(head->results);
        head->results = NULL;
    }
    os_memory_free(old.pairs, old_bytes);
    free(old.pair_filter);
    free(numbers);
    return status;
}

/* SentencePiece gives runs of spaces one score, the lowest. */
static uint32_t find_tied(const struct builder *builder)
{
    const uint32_t *priorities = builder->model->priorities;
    uint32_t tied = 0;
    if (!priorities)
        return BPE_MERGES;
    if (builder->ranks)
        tied = priorities[builder->ranks - 1];
    for (uint32_t rank = 0; rank < tied; rank++)
        if (priorities[rank] != rank)
            return BPE_NONE;
    return tied;
}

/* Of all pairs those that come up. Taking tokens by length, all that can come up inside one is known. */
static enum tokmap_status keep_pairs(struct builder *builder)
{
    struct bpe_model *head = &builder->model->head;
    const uint32_t vocabulary = builder->source->vocabulary;
    const struct bpe_model listed = {.pairs = head->pairs, .pair_bits = head->pair_bits, .pair_filter = head->pair_filter};
    const uint64_t listed_bytes = pairs_bytes(builder->model);
    struct bpe_scratch scratch = {NULL, 0};
    head->pairs = head->pair_filter = NULL;
    uint32_t *order = NULL, count = 0;
    builder->reached = calloc((size_t)vocabulary + 1, sizeof *builder->reached);
    enum tokmap_status status = builder->reached ? pairs_new(builder, vocabulary) : no_memory(builder);
    if (!status && (!put_known(builder, &listed) || !(order = by_length(builder, &count))))
        status = no_memory(builder);
    for (uint32_t i = 0; i < count && !status; i++)
        if (text_bytes(builder, order[i]) && !keep_pair(builder, &listed, &scratch, order[i]))
            status = no_memory(builder);
    os_memory_free(listed.pairs, listed_bytes);
    free(listed.pair_filter);
    free(scratch.memory);
    free(order);
    return status || builder->model->priorities ? status : number_symbols(builder);
}

/* ---- user defined pieces ---- */

struct text_of {
    const uint8_t *bytes;
    uint32_t count, id;
};

static int by_text(const void *a, const void *b)
{
    const struct text_of *left = a, *right = b;
    const int order = memcmp(left->bytes, right->bytes, min64(left->count, right->count));
    return order ? order : left->count < right->count ? -1 : left->count > right->count;
}

static enum tokmap_status read_defined(struct builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    uint32_t count = 0, bytes = 0;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        if (kind_of(source, id) == SP_USER_DEFINED && text_bytes(builder, id)) {
            count++;
            bytes += text_bytes(builder, id);
        }
    if (!count)
        return TOKMAP_OK;
    struct text_of *texts = malloc(count * sizeof *texts);
    model->defined_bytes = malloc(bytes);
    model->defined_offsets = malloc(((size_t)count + 1) * sizeof *model->defined_offsets);
    model->defined_ids = malloc(count * sizeof *model->defined_ids);
    if (!texts || !model->defined_bytes || !model->defined_offsets || !model->defined_ids) {
        free(texts);
        return no_memory(builder);
    }
    for (uint32_t id = 0, i = 0; id < source->vocabulary; id++)
        if (kind_of(source, id) == SP_USER_DEFINED && text_bytes(builder, id))
            texts[i++] = (struct text_of){builder->bytes + builder->offsets[id], text_bytes(builder, id), id};
    qsort(texts, count, sizeof *texts, by_text);
    bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct text_of *text = &texts[i];
        memcpy(model->defined_bytes + bytes, text->bytes, text->count);
        model->defined_offsets[i] = bytes;
        model->defined_ids[i] = text->id;
        bytes += text->count;
        model->defined_firsts[text->bytes[0] / 64] |= (uint64_t)1 << (text->bytes[0] % 64);
        for (uint32_t at = 1; at < text->count; at++)
            if ((text->bytes[at] & 0xC0) != 0x80)
                note_border(builder, text->bytes, at, text->count);
    }
    model->defined_offsets[count] = bytes;
    model->defined_count = count;
    free(texts);
    return TOKMAP_OK;
}

/* ---- seeds, and tokens that merges do not reach ---- */

static enum tokmap_status merge_tokens(struct builder *builder)
{
    const struct sp_source *source = builder->source;
    struct sp_model *model = builder->model;
    struct bpe_scratch scratch = {NULL, 0};
    const uint32_t most = bpe_inline_ids(model->head.wide);
    uint32_t longest = 1;
    for (uint32_t id = 0; id < source->vocabulary; id++)
        longest = (uint32_t)max64(longest, text_bytes(builder, id));
    uint32_t *ids = malloc(((size_t)longest + 1) * sizeof *ids);
    model->head.seeds = malloc(((size_t)source->vocabulary + 1) * sizeof *model->head.seeds);
    model->wholes = malloc(((size_t)source->vocabulary + 1) * sizeof *model->wholes);
    bool good = ids && model->head.seeds && model->wholes;
    model->whole_bytes = source->ignore_merges && model->byte_fallback;
    model->whole_longest = model->whole_bytes ? 6 : 0;
    for (uint32_t id = 0; good && id < source->vocabulary; id++) {
        const uint8_t *text = builder->bytes + builder->offsets[id];
        const uint32_t count = text_bytes(builder, id);
        if (!count || (count > 15 && !source->ignore_merges))
            continue;
        const bool reached = builder->reached && builder->reached[id];
        const size_t made = reached ? 1 : sp_merge(&model->head, &scratch, text, count, ids);
        good = made != 0;
        if (reached)
            ids[0] = id;
        if (source->ignore_merges && (made != 1 || ids[0] != id)) {
            model->wholes[model->whole_count++] = id;
            model->whole_longest = (uint32_t)max64(model->whole_longest, count);
        }
        if (!good || made > most || count > 15)
            continue;
        struct bpe_entry *seed = &model->head.seeds[model->head.seed_count++];
        seed->key = bpe_key_of(text, count);
        bpe_value_make(seed->value, model->head.wide, ids, (uint32_t)made);
    }
    free(ids);
    free(scratch.memory);
    return good ? TOKMAP_OK : no_memory(builder);
}

/* Decoded, such a token is its text, since it is none of bytes or of control. */
static int compare_whole(const struct sp_model *model, uint32_t id, const uint8_t *bytes, size_t count)
{
    const size_t own = model->head.offsets[id + 1] - model->head.offsets[id];
    const int order = memcmp(model->head.bytes + model->head.offsets[id], bytes, min64(own, count));
    return order ? order : own < count ? -1 : own > count;
}

static enum tokmap_status sort_wholes(struct builder *builder)
{
    struct sp_model *model = builder->model;
    struct text_of *texts = malloc(((size_t)model->whole_count + 1) * sizeof *texts);
    if (!texts)
        return no_memory(builder);
    for (uint32_t i = 0; i < model->whole_count; i++) {
        const uint32_t id = model->wholes[i];
        texts[i] = (struct text_of){builder->bytes + builder->offsets[id], text_bytes(builder, id), id};
    }
    qsort(texts, model->whole_count, sizeof *texts, by_text);
    for (uint32_t i = 0; i < model->whole_count; i++)
        model->wholes[i] = texts[i].id;
    free(texts);
    return TOKMAP_OK;
}

uint32_t sp_whole(const struct sp_model *model, const uint8_t *bytes, size_t count)
{
    uint32_t low = 0, high = model->whole_count;
    if (count > model->whole_longest)
        return BPE_NONE;
    const int byte = model->whole_bytes ? byte_of(bytes, (uint32_t)count) : -1;
    if (byte >= 0)
        return model->head.byte_ids[byte];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare_whole(model, model->wholes[middle], bytes, count);
        if (!order)
            return model->wholes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return BPE_NONE;
}

/* ---- all of it ---- */

static enum tokmap_status check(const struct sp_source *source, struct tokmap_error *error)
{
    if (source->vocabulary > BPE_IDS - 2 || source->merge_count > BPE_MERGES)
        return error_set(error, TOKMAP_ERROR_LIMIT, source->path, TOKMAP_NO_OFFSET,
                         "a vocabulary of %" PRIu32 " ids and %" PRIu32 " merges is more than can be encoded with (%u and "
                         "%u)",
                         source->vocabulary, source->merge_count, BPE_IDS - 2, BPE_MERGES);
    if (source->ignore_merges && (source->split || !source->escape))
        return error_set(error, TOKMAP_ERROR_UNSUPPORTED, source->path, TOKMAP_NO_OFFSET,
                         "ignore_merges together with a Metaspace pre-tokenizer that splits, or with spaces that stay "
                         "spaces, is not supported");
    for (uint32_t id = 0; source->scores && id < source->vocabulary; id++)
        if (isnan(source->scores[id]))
            return error_set(error, TOKMAP_ERROR_FORMAT, source->path, TOKMAP_NO_OFFSET,
                             "pieces: the score of number %" PRIu32 " is no number", id);
    return TOKMAP_OK;
}

static enum tokmap_status build(struct builder *builder)
{
    builder->model->head.joins = calloc(((uint64_t)1 << BPE_JOIN_BITS) / 64, sizeof *builder->model->head.joins);
    enum tokmap_status status = builder->model->head.joins ? read_texts(builder) : no_memory(builder);
    for (uint32_t id = 0; id < builder->source->vocabulary && !builder->defined; id++)
        builder->defined = kind_of(builder->source, id) == SP_USER_DEFINED;
    if (!status)
        status = read_atoms(builder);
    if (!status)
        status = builder->source->merges ? add_merges(builder) : add_scored(builder);
    if (!status) {
        builder->model->tied = find_tied(builder);
        status = give_ids(builder);
    }
    if (!status)
        status = builder->defined ? read_defined(builder) : keep_pairs(builder);
    if (status)
        return status;
    fill_byte_pairs(builder->model);
    if (!sp_cutter_build(&builder->model->pretokenizer, &builder->relation))
        return no_memory(builder);
    status = merge_tokens(builder);
    return status ? status : sort_wholes(builder);
}

enum tokmap_status sp_model_build(struct sp_model **out, const struct sp_source *source, struct tokmap_error *error)
{
    *out = NULL;
    assert(!source->merges != !source->scores);
    enum tokmap_status status = check(source, error);
    if (status)
        return status;
    struct builder *builder = calloc(1, sizeof *builder);
    struct sp_model *model = calloc(1, sizeof *model);
    if (!builder || !model) {
        free(builder);
        free(model);
        return error_set_memory(error, "a vocabulary", sizeof *model);
    }
    model->head.merge = sp_merge;
    model->head.vocabulary = source->vocabulary;
    model->head.wide = source->vocabulary > 65536;
    model->unk = source->unk;
    model->fuse_unk = source->fuse_unk;
    model->escape = source->escape;
    model->remove_spaces = source->remove_spaces;
    model->prefix = source->prefix;
    model->front = source->front || source->prefix != SP_PREFIX_NEVER;
    model->pretokenizer.marks = source->escape;
    builder->source = source;
    builder->model = model;
    builder->error = error;
    status = build(builder);
    free(builder->bytes);
    free(builder->offsets);
    free(builder->places);
    free(builder->reached);
    free(builder);
    if (status)
        sp_model_free(model);
    else
        *out = model;
    return status;
}

void sp_model_free(struct sp_model *model)
{
    if (!model)
        return;
    os_memory_free(model->atoms, SP_CODES * sizeof *model->atoms);
    free(model->ids);
    free(model->priorities);
    free(model->defined_bytes);
    free(model->defined_offsets);
    free(model->defined_ids);
    free(model->wholes);
    bpe_model_free(&model->head); /* the model too: its head begins it */
}
