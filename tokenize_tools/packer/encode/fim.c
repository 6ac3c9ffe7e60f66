/* SPDX-License-Identifier: MIT */
#include "fim.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/bytes_buffer.h"
#include "common/error.h"
#include "common/hash.h"

static const char form_whole[] = "w", form_psm[] = "PpSsMm", form_spm[] = "PSsMpm", form_codestral[] = "SsPpm";

/* ---- options ---- */

void fim_counts_add(struct fim_counts *sum, const struct fim_counts *more)
{
    sum->psm += more->psm;
    sum->spm += more->spm;
    sum->left += more->left;
    sum->tokens += more->tokens;
}

const char *fim_parse(const char *text, struct fim *fim)
{
    static const char spm[] = ",spm=";
    const size_t bytes = strcspn(text, ",");
    const char *rest = text + bytes;
    fim->spm_form = form_spm;
    if (!share_read(text, bytes, fim->rate_text, &fim->rate) || !fim->rate || fim->rate > SHARE_ONE)
        return "the share of documents is a decimal number above 0 and up to 1, such as 0.5, or a percentage, such as "
               "50%";
    if (*rest && strncmp(rest, spm, sizeof spm - 1) != 0)
        return "only the share of suffix-prefix-middle can follow, as in 0.5,spm=0.5";
    rest = *rest ? rest + sizeof spm - 1 : "0.5";
    if (!share_read(rest, strlen(rest), fim->spm_text, &fim->spm) || fim->spm > SHARE_ONE)
        return "the share of suffix-prefix-middle is a decimal number from 0 to 1, as in 0.5,spm=0.5, or a percentage";
    return NULL;
}

/* Names of the tokens. Each model was trained with them in these roles. */
static const struct {
    const char *prefix, *middle, *suffix;
    const char *end; /* the token that ends a middle, if it is not the EOD */
    const char *spm_form;
} known[] = {
    /* StarCoder, StarCoder2 */
    {"<fim_prefix>", "<fim_middle>", "<fim_suffix>", NULL, form_spm},
    /* Qwen, CodeGemma, cl100k_base */
    {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", NULL, form_spm},
    /* DeepSeek-Coder: the text before the hole, the hole, the text after it, the end of what is known */
    {"<｜fim▁begin｜>", "<｜fim▁end｜>", "<｜fim▁hole｜>", NULL, form_spm},
    /* Code Llama */
    {"▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>", form_spm},
    /* Codestral */
    {"[PREFIX]", "[MIDDLE]", "[SUFFIX]", NULL, form_codestral},
};

/* Returns the id of a token, or TOKMAP_NO_ID. In a SentencePiece model it may be a piece like others, whose text has a
 * space where its name has U+2581. */
static uint64_t mark_find(const struct tokenizer *tokenizer, const char *name)
{
    static const char mark[] = "▁";
    const uint8_t *bytes;
    uint32_t count;
    uint64_t id = tokenizer_special(tokenizer, name);
    if (id != TOKMAP_NO_ID || strncmp(name, mark, sizeof mark - 1) != 0)
        return id;
    name += sizeof mark - 1;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    for (id = 0; id < info.vocabulary; id++)
        if (tokenizer_token(tokenizer, id, &bytes, &count) && count == strlen(name) + 1 && bytes[0] == ' ' &&
            !memcmp(bytes + 1, name, count - 1))
            return id;
    return TOKMAP_NO_ID;
}

bool fim_tokens_find(struct fim *fim, const struct tokenizer *tokenizer)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        fim->prefix_id = mark_find(tokenizer, known[i].prefix);
        fim->middle_id = mark_find(tokenizer, known[i].middle);
        fim->suffix_id = mark_find(tokenizer, known[i].suffix);
        if (fim->prefix_id == TOKMAP_NO_ID || fim->middle_id == TOKMAP_NO_ID || fim->suffix_id == TOKMAP_NO_ID)
            continue;
        fim->end_id = known[i].end ? mark_find(tokenizer, known[i].end) : TOKMAP_NO_ID;
        fim->spm_form = known[i].spm_form;
        return true;
    }
    return false;
}

/* ---- characters ---- */

#define EACH_BYTE 0x0101010101010101U

/* Returns how many characters begin in 8 bytes. */
static uint64_t begins_in(const char *text)
{
    const uint64_t bytes = load64(text);
    const uint64_t inside = bytes >> 7 & ~(bytes >> 6) & EACH_BYTE; /* 10xxxxxx */
    return 8 - (inside * EACH_BYTE >> 56);
}

static bool begins_at(const char *text)
{
    return (*text & 0xC0) != 0x80;
}

static uint64_t characters_count(const char *text, uint64_t bytes)
{
    uint64_t count = 0, at = 0;
    for (; bytes - at >= 8; at += 8)
        count += begins_in(text + at);
    for (; at < bytes; at++)
        count += begins_at(text + at);
    return count;
}

/* Returns where character number `count` begins, or `bytes` if there are no more. */
static uint64_t character_place(const char *text, uint64_t bytes, uint64_t count)
{
    uint64_t at = 0;
    for (uint64_t begins; bytes - at >= 8 && (begins = begins_in(text + at)) <= count; at += 8)
        count -= begins;
    for (; at < bytes; at++)
        if (begins_at(text + at) && !count--)
            break;
    return at;
}

/* ---- stretches ---- */

void fim_begin(struct fim_walk *walk, const struct fim *fim, const char *text, uint64_t bytes)
{
    *walk = (struct fim_walk){.fim = fim, .text = text, .bytes = bytes};
    if (bytes)
        walk->hash = hash64_seeded(text, (size_t)bytes, fim->seed);
}

static uint64_t drawn(const struct fim_walk *walk, uint64_t number)
{
    uint8_t key[16];
    store64(key, walk->piece);
    store64(key + 8, number);
    return hash64_seeded(key, sizeof key, walk->hash);
}

/* Cuts the piece that begins at `at` and ends at `end`. */
static void piece_cut(const struct fim_walk *walk, uint64_t end, struct fim_stretch *stretch)
{
    const char *text = walk->text + walk->at;
    const uint64_t bytes = end - walk->at, places = characters_count(text, bytes) + 1;
    const uint64_t one = (uint64_t)((unsigned __int128)drawn(walk, 2) * places >> 64);
    const uint64_t other = (uint64_t)((unsigned __int128)drawn(walk, 3) * places >> 64);
    const uint64_t first = character_place(text, bytes, min64(one, other));
    const uint64_t more = max64(one, other) - min64(one, other);
    stretch->form = share_has(walk->fim->spm, drawn(walk, 1)) ? walk->fim->spm_form : form_psm;
    stretch->place[0] = walk->at;
    stretch->place[1] = walk->at + first;
    stretch->place[2] = walk->at + first + character_place(text + first, bytes - first, more);
    stretch->place[3] = end;
}

bool fim_next(struct fim_walk *walk, struct fim_stretch *stretch)
{
    const uint64_t begin = walk->at, unit = walk->fim->unit;
    for (; walk->at < walk->bytes; walk->piece++) {
        const uint64_t left = walk->bytes - walk->at;
        const uint64_t end = walk->at + (unit ? character_place(walk->text + walk->at, left, unit) : left);
        const bool rearranged = share_has(walk->fim->rate, drawn(walk, 0));
        if (rearranged && walk->at > begin)
            break; /* what is before it comes first */
        if (rearranged) {
            piece_cut(walk, end, stretch);
            walk->at = end;
            walk->piece++;
            return true;
        }
        walk->at = end;
    }
    *stretch = (struct fim_stretch){form_whole, {begin, begin, walk->at, walk->at}};
    return walk->at > begin;
}

/* What the token at hand belongs to: text in its order, or a part of a piece. */
enum { PLAIN, PREFIX, SUFFIX, SUFFIX_FIRST, MIDDLE };
/* place[]: where the plain text or the prefix begins, where the prefix ends, where the suffix and the middle begin. The
 * suffix ends where the token before the middle is. */
enum { FIRST, PREFIX_END, SUFFIX_BEGIN, MIDDLE_BEGIN };

void fim_reader_begin(struct fim_reader *reader, const struct fim_marks *marks)
{
    struct tokmap_extent *extents = reader->extents;
    const uint64_t capacity = reader->capacity;
    *reader = (struct fim_reader){.marks = *marks, .extents = extents, .capacity = capacity};
}

void fim_reader_free(struct fim_reader *reader)
{
    free(reader->extents);
    *reader = (struct fim_reader){.extents = NULL};
}

/* Adds tokens [from, to) to the text. */
static enum tokmap_status extent_add(struct fim_reader *reader, uint64_t from, uint64_t to, struct tokmap_error *error)
{
    if (from == to)
        return TOKMAP_OK;
    if (!list_room(&reader->extents, reader->count, &reader->capacity, sizeof *reader->extents))
        return error_set_memory(error, "the parts of a document", reader->capacity * sizeof *reader->extents);
    reader->extents[reader->count++] = (struct tokmap_extent){from, to - from};
    return TOKMAP_OK;
}

/* Adds a piece whose middle ends at `at`. */
static enum tokmap_status piece_add(struct fim_reader *reader, uint64_t at, struct tokmap_error *error)
{
    const uint64_t *place = reader->place;
    enum tokmap_status status = extent_add(reader, place[FIRST], place[PREFIX_END], error);
    if (!status)
        status = extent_add(reader, place[MIDDLE_BEGIN], at, error);
    return status ? status : extent_add(reader, place[SUFFIX_BEGIN], place[MIDDLE_BEGIN] - 1, error);
}

/* Begins a piece at the token `at`, unless none can be there: only a BOS may be before one that is a document. */
static enum tokmap_status piece_begin(struct fim_reader *reader, int state, struct tokmap_error *error)
{
    const uint64_t from = reader->place[FIRST], at = reader->at;
    reader->wrong = !reader->marks.pieces && (at > 1 || reader->psm || reader->spm);
    reader->state = state;
    reader->place[FIRST] = reader->place[PREFIX_END] = reader->place[SUFFIX_BEGIN] = at + 1;
    return extent_add(reader, from, at, error);
}

static enum tokmap_status token_take(struct fim_reader *reader, uint64_t id, struct tokmap_error *error)
{
    const struct fim_marks *marks = &reader->marks;
    const uint64_t at = reader->at;
    const bool is_prefix = id == marks->prefix, is_suffix = id == marks->suffix, is_middle = id == marks->middle;
    if (reader->state == PLAIN && is_prefix)
        return piece_begin(reader, PREFIX, error);
    if (reader->state == PLAIN && is_suffix)
        return piece_begin(reader, SUFFIX_FIRST, error);
    if (reader->state == PREFIX && is_suffix) {
        reader->place[PREFIX_END] = at;
        reader->place[SUFFIX_BEGIN] = at + 1;
        reader->state = SUFFIX;
    } else if ((reader->state == SUFFIX && is_middle) || (reader->state == SUFFIX_FIRST && is_prefix)) {
        const bool suffix_first = reader->place[FIRST] == reader->place[PREFIX_END];
        reader->spm += suffix_first;
        reader->psm += !suffix_first;
        reader->place[MIDDLE_BEGIN] = at + 1;
        reader->state = MIDDLE;
    } else if (reader->state == MIDDLE && id == marks->end) {
        reader->state = PLAIN;
        const enum tokmap_status status = piece_add(reader, at, error);
        reader->place[FIRST] = at + 1;
        return status;
    } else {
        reader->wrong = is_prefix || is_suffix || is_middle;
    }
    return TOKMAP_OK;
}

enum tokmap_status fim_reader_add(struct fim_reader *reader, const void *tokens, uint32_t width, uint64_t count,
                                  struct tokmap_error *error)
{
    const uint64_t end = reader->at + count;
    const uint8_t *token = tokens;
    enum tokmap_status status = TOKMAP_OK;
    for (; reader->at < end && reader->marks.used && !reader->wrong && !status; reader->at++, token += width)
        status = token_take(reader, width == 2 ? load16(token) : load32(token), error);
    reader->at = end;
    return status;
}

enum tokmap_status fim_reader_end(struct fim_reader *reader, struct tokmap_error *error)
{
    if (reader->state == MIDDLE && !reader->wrong)
        return piece_add(reader, reader->at, error);
    if (reader->state != PLAIN || reader->wrong) {
        reader->count = reader->psm = reader->spm = reader->place[FIRST] = 0;
        reader->wrong = true;
    }
    return extent_add(reader, reader->place[FIRST], reader->at, error);
}
