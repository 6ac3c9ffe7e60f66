/*
 * sp_snapshot.c - puts and gets SentencePiece models. bpe_snapshot.c says what is checked, and why.
 *
 * The table of characters has an entry for each code point, and most of its pages are zeros. The snapshot holds only
 * the pages that are not, after a list of their numbers.
 */
#include "sp_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_snapshot.h"
#include "common/bytes.h"
#include "platform/os.h"
#include "sp_merge.h"

#define PAGE 1024u /* code points: 4 KiB of the table */
#define PAGES (SP_CODES / PAGE)

/* ---- characters ---- */

static bool page_is_empty(const uint32_t *page)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < PAGE; i++)
        any |= page[i];
    return !any;
}

static void atoms_put(const struct sp_model *model, struct snapshot_writer *writer)
{
    uint16_t numbers[PAGES];
    uint32_t count = 0;
    for (uint32_t page = 0; page < PAGES; page++)
        if (!page_is_empty(model->atoms + (size_t)page * PAGE))
            numbers[count++] = (uint16_t)page;
    snapshot_put(writer, count);
    snapshot_put_text(writer, numbers, count * sizeof *numbers);
    uint32_t *pages = snapshot_put_room(writer, (uint64_t)count * PAGE * sizeof *pages);
    for (uint32_t i = 0; i < count && pages; i++)
        memcpy(pages + (size_t)i * PAGE, model->atoms + (size_t)numbers[i] * PAGE, PAGE * sizeof *pages);
}

static void atoms_get(struct sp_model *model, struct snapshot_reader *reader)
{
    uint16_t numbers[PAGES];
    void *atoms = NULL;
    const uint32_t count = (uint32_t)snapshot_get(reader, PAGES);
    snapshot_get_exactly(reader, numbers, count * sizeof *numbers);
    const uint32_t *pages = snapshot_get_array(reader, (uint64_t)count * PAGE, sizeof *pages);
    uint32_t largest = 0;
    for (uint64_t i = 0; !reader->failed && i < (uint64_t)count * PAGE; i++)
        largest = pages[i] > largest ? pages[i] : largest;
    for (uint32_t i = 0; !reader->failed && i < count; i++)
        (void)snapshot_require(reader, numbers[i] < PAGES);
    if (reader->failed || !snapshot_require(reader, largest <= model->symbols) ||
        !snapshot_require(reader, !os_memory_new(SP_CODES * sizeof *model->atoms, false, &atoms)))
        return;
    model->atoms = atoms;
    for (uint32_t i = 0; i < count; i++)
        memcpy(model->atoms + (size_t)numbers[i] * PAGE, pages + (size_t)i * PAGE, PAGE * sizeof *pages);
}

/* ---- user-defined pieces ---- */

static void defined_put(const struct sp_model *model, struct snapshot_writer *writer)
{
    const uint32_t count = model->defined_count, bytes = count ? model->defined_offsets[count] : 0;
    snapshot_put(writer, count);
    snapshot_put(writer, bytes);
    if (!count)
        return;
    snapshot_put_array(writer, model->defined_bytes, bytes);
    snapshot_put_array(writer, model->defined_offsets, ((uint64_t)count + 1) * sizeof *model->defined_offsets);
    snapshot_put_array(writer, model->defined_ids, count * sizeof *model->defined_ids);
}

/* Returns whether piece i is not empty and comes after the one before it. The search for pieces relies on the order to
 * stay inside of the texts. */
static bool defined_rises(const struct sp_model *model, uint32_t i)
{
    const uint32_t *offsets = model->defined_offsets, id = model->defined_ids[i];
    const uint32_t own = offsets[i + 1] - offsets[i], before = i ? offsets[i] - offsets[i - 1] : 0;
    if (!own || id >= model->head.vocabulary || id >= model->symbols || model->ids[id] == BPE_NONE)
        return false;
    const int order =
        i ? memcmp(model->defined_bytes + offsets[i - 1], model->defined_bytes + offsets[i], min64(own, before)) : -1;
    return order < 0 || (!order && before < own);
}

static void defined_get(struct sp_model *model, struct snapshot_reader *reader)
{
    const uint32_t count = (uint32_t)snapshot_get(reader, BPE_IDS);
    const uint32_t bytes = (uint32_t)snapshot_get(reader, UINT32_MAX);
    if (reader->failed || !count)
        return;
    model->defined_bytes = snapshot_get_array(reader, bytes, 1);
    model->defined_offsets = snapshot_get_array(reader, (uint64_t)count + 1, sizeof *model->defined_offsets);
    model->defined_ids = snapshot_get_array(reader, count, sizeof *model->defined_ids);
    if (reader->failed || !snapshot_require(reader, snapshot_offsets_rise(model->defined_offsets, count, bytes)))
        return;
    for (uint32_t i = 0; i < count && !reader->failed; i++)
        if (snapshot_require(reader, defined_rises(model, i))) {
            const uint8_t first = model->defined_bytes[model->defined_offsets[i]];
            model->defined_firsts[first / 64] |= (uint64_t)1 << (first % 64);
        }
    model->defined_count = count;
}

/* ---- all ---- */

void sp_model_put(const struct sp_model *model, struct snapshot_writer *writer)
{
    const uint32_t ranks = model->priorities ? bpe_model_ranks(&model->head) : 0;
    snapshot_put(writer, model->symbols);
    bpe_model_put(&model->head, writer);
    snapshot_put(writer, ranks);
    snapshot_put(writer, model->tied);
    snapshot_put(writer, model->unk);
    snapshot_put(writer, model->byte_fallback);
    snapshot_put(writer, model->fuse_unk);
    snapshot_put(writer, model->escape);
    snapshot_put(writer, model->remove_spaces);
    snapshot_put(writer, model->front);
    snapshot_put(writer, model->prefix);
    snapshot_put(writer, model->cuts.tall);
    snapshot_put(writer, model->cuts.marks);
    snapshot_put_text(writer, model->cuts.left, sizeof model->cuts.left);
    snapshot_put_text(writer, model->cuts.right, sizeof model->cuts.right);
    snapshot_put(writer, model->whole_count);
    snapshot_put(writer, model->whole_longest);
    snapshot_put(writer, model->whole_bytes);
    snapshot_put(writer, model->priorities != NULL);
    snapshot_put_array(writer, model->ids, model->symbols * sizeof *model->ids);
    snapshot_put_array(writer, model->priorities, ranks * sizeof *model->priorities);
    snapshot_put_array(writer, model->wholes, model->whole_count * sizeof *model->wholes);
    atoms_put(model, writer);
    defined_put(model, writer);
}

static void tables_get(struct sp_model *model, struct snapshot_reader *reader, uint32_t ranks, bool has_priorities)
{
    const uint32_t vocabulary = model->head.vocabulary;
    model->ids = snapshot_get_array(reader, model->symbols, sizeof *model->ids);
    uint32_t *priorities = snapshot_get_array(reader, ranks, sizeof *priorities);
    model->priorities = has_priorities ? priorities : NULL;
    model->wholes = snapshot_get_array(reader, model->whole_count, sizeof *model->wholes);
    uint32_t wrong = 0;
    for (uint32_t i = 0; !reader->failed && i < model->symbols; i++)
        wrong |= (model->ids[i] != BPE_NONE) & (model->ids[i] >= vocabulary);
    for (uint32_t i = 0; !reader->failed && i < ranks; i++)
        wrong |= priorities[i] >= BPE_MERGES;
    for (uint32_t i = 0; !reader->failed && i < model->whole_count; i++)
        wrong |= model->wholes[i] >= vocabulary;
    (void)snapshot_require(reader, !wrong);
}

/* ---- checks ---- */

/* With byte_fallback, a character that no token holds becomes the tokens of its bytes. So these must be there for all
 * bytes of UTF-8, except for those of ASCII whose character always becomes a token (check_unknown() in sp_texts.c). */
static bool fallback_fits(const struct sp_model *model)
{
    for (uint32_t byte = 0; byte < 0xF5 && model->byte_fallback; byte++) {
        if (model->head.byte_ids[byte] != BPE_NONE || byte == 0xC0 || byte == 0xC1)
            continue;
        const uint32_t atom = byte < 0x80 ? model->atoms[byte] : 0;
        if (!atom || model->ids[atom - 1] == BPE_NONE)
            return false;
    }
    return true;
}

/* What a merge makes has a token. It would become one for each of its bytes otherwise, so that what windows write of
 * the same text (sp_merge_long) could be more ids than it has bytes. */
static bool merges_fit(const struct sp_model *model)
{
    const struct bpe_model *head = &model->head;
    uint32_t wrong = 0;
    for (uint64_t at = 0; at < (uint64_t)1 << head->pair_bits; at++)
        if (head->pairs[at] != UINT64_MAX)
            wrong |= model->ids[bpe_result(head, (uint32_t)head->pairs[at] & BPE_MERGES)] == BPE_NONE;
    return !wrong;
}

/* The ranks of pairs of bytes are those of the table; see fill_byte_pairs() in sp_pairs.c. */
static bool byte_pairs_fit(const struct sp_model *model)
{
    uint32_t wrong = 0;
    for (uint32_t pair = 0; pair < 65536; pair++) {
        const uint32_t left = pair >> 8, right = pair & 255, stored = model->head.byte_pairs[pair];
        const bool both = left < 128 && right < 128 && model->atoms[left] && model->atoms[right];
        wrong |=
            stored ^ (both ? bpe_pair_rank(&model->head, model->atoms[left] - 1, model->atoms[right] - 1) : BPE_NONE);
    }
    return !wrong;
}

/* `tied` says of the priorities of `ranks` ranks what sp_model.h says. */
static bool tied_fits(const struct sp_model *model, uint32_t ranks)
{
    const uint32_t tied = model->tied;
    uint32_t wrong = 0;
    if (!model->priorities || tied == BPE_NONE)
        return (tied == BPE_MERGES) == !model->priorities;
    for (uint32_t rank = 0; rank < ranks; rank++)
        wrong |= model->priorities[rank] ^ (rank < tied ? rank : tied);
    return !wrong && tied < BPE_MERGES;
}

/* ---- getting ---- */

/* Gets the fields after the head's. */
static void rest_get(struct sp_model *model, struct snapshot_reader *reader, uint32_t head_ranks)
{
    const uint32_t vocabulary = model->head.vocabulary;
    const uint32_t ranks = (uint32_t)snapshot_get(reader, BPE_MERGES);
    model->tied = (uint32_t)snapshot_get(reader, UINT32_MAX);
    model->unk = (uint32_t)snapshot_get(reader, UINT32_MAX);
    model->byte_fallback = snapshot_get_flag(reader);
    model->fuse_unk = snapshot_get_flag(reader);
    model->escape = snapshot_get_flag(reader);
    model->remove_spaces = snapshot_get_flag(reader);
    model->front = snapshot_get_flag(reader);
    model->prefix = (enum sp_prefix)snapshot_get(reader, SP_PREFIX_FIRST);
    model->cuts.tall = snapshot_get_flag(reader);
    model->cuts.marks = snapshot_get_flag(reader);
    snapshot_get_exactly(reader, model->cuts.left, sizeof model->cuts.left);
    snapshot_get_exactly(reader, model->cuts.right, sizeof model->cuts.right);
    model->whole_count = (uint32_t)snapshot_get(reader, vocabulary);
    model->whole_longest = (uint32_t)snapshot_get(reader, UINT32_MAX);
    model->whole_bytes = snapshot_get_flag(reader);
    const bool has_priorities = snapshot_get_flag(reader);
    (void)snapshot_require(reader, (model->unk < vocabulary || (model->unk == BPE_NONE && model->byte_fallback)) &&
                                       (!has_priorities || ranks >= head_ranks));
    tables_get(model, reader, ranks, has_priorities);
    atoms_get(model, reader);
    defined_get(model, reader);
    if (!reader->failed)
        (void)snapshot_require(reader, fallback_fits(model) && merges_fit(model) && byte_pairs_fit(model) &&
                                           tied_fits(model, ranks));
}

struct sp_model *sp_model_get(struct snapshot_reader *reader)
{
    struct sp_model *model = calloc(1, sizeof *model);
    uint32_t ranks = 0;
    if (!snapshot_require(reader, model != NULL))
        return NULL;
    const uint32_t symbols = model->symbols = (uint32_t)snapshot_get(reader, SP_NO_SYMBOL);
    (void)snapshot_require(reader, symbols != 0);
    bpe_model_get(&model->head, reader, symbols, &ranks);
    model->head.merge = sp_merge;
    rest_get(model, reader, ranks);
    if (!reader->failed)
        return model;
    sp_model_free(model);
    return NULL;
}
