/* SPDX-License-Identifier: MIT */
/*
 * synthetic.c - computes the tokens and documents of a synthetic dataset.
 *
 * Computing a token must not cost more than copying it from the page cache; otherwise a run on synthetic data would be
 * slower than the run that it is compared with. Therefore 65536 ids are drawn once: the tile. Token x is tile[x mod
 * 65536] plus a number that depends on its block x / 65536, modulo the vocabulary. That takes one addition and one
 * subtraction for 8 or 4 tokens per instruction.
 *
 * Documents have the average length D. Document k ends at a keyed position in the stretch (k D, (k + 1) D], and the
 * last document ends at the last token. Lengths therefore vary from 1 to 2 D - 1, and finding the document of a token,
 * or the tokens of a document, takes O(1) time.
 */
#include "synthetic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "text/decimal.h"

#define TILE_SHIFT 16
#define TILE ((uint64_t)1 << TILE_SHIFT)
#define TOKENS ((uint64_t)1 << 40)
#define TOKENS_MOST ((uint64_t)1 << 62)
#define DOCUMENT 1000

enum { OF_TILE = 1, OF_BLOCKS, OF_DOCUMENTS };

/* ---- numbers ---- */

/* Returns number `index` of a stream of numbers below `below`: the finalizer of splitmix64 applied to a counter. The
 * numbers are uniform up to the resolution of 64 bits. */
static uint64_t number_below(uint64_t seed, unsigned stream, uint64_t index, uint64_t below)
{
    uint64_t x = (seed ^ (uint64_t)stream << 56) + (index + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint64_t)((unsigned __int128)(x ^ x >> 31) * below >> 64);
}

/* ---- the name ---- */

bool synthetic_names(const char *name)
{
    return strncmp(name, TOKMAP_SYNTHETIC, sizeof TOKMAP_SYNTHETIC - 1) == 0;
}

static bool read_number(const char **at, uint64_t *number)
{
    return decimal_read(at, NULL, number) && (**at == ',' || **at == '\0');
}

#define wrong(error, name, ...) error_set((error), TOKMAP_ERROR_ARGUMENT, (name), TOKMAP_NO_OFFSET, __VA_ARGS__)
#define FORM TOKMAP_SYNTHETIC "vocab=N[,tokens=N][,document=N][,width=2|4][,seed=N]"

static enum tokmap_status read_name(struct synthetic *into, const char *name, struct tokmap_error *error)
{
    uint64_t width = 0;
    const struct word {
        const char *name;
        uint64_t *into, least, most;
    } words[] = {
        {"vocab", &into->vocabulary, 1, (uint64_t)1 << 32},
        {"tokens", &into->tokens, 1, TOKENS_MOST},
        {"document", &into->document, 1, TOKENS_MOST},
        {"width", &width, 2, 4},
        {"seed", &into->seed, 0, UINT64_MAX},
    };
    enum { WORDS = sizeof words / sizeof words[0] };
    bool given[WORDS] = {false};
    const char *at = name + sizeof TOKMAP_SYNTHETIC - 1;
    for (bool more = *at != '\0'; more; at += more) {
        size_t which = 0, length = strcspn(at, "=,");
        while (which < WORDS && (strlen(words[which].name) != length || strncmp(words[which].name, at, length) != 0))
            which++;
        if (which == WORDS || at[length] != '=' || given[which])
            return wrong(error, name, "the word '%.*s' is %s; the name of a synthetic dataset is " FORM,
                         (int)min64(length, 40), at,
                         which < WORDS && given[which] ? "given twice"
                         : which < WORDS               ? "given without a value"
                                                       : "unknown");
        given[which] = true;
        at += length + 1;
        if (!read_number(&at, words[which].into) || *words[which].into < words[which].least ||
            *words[which].into > words[which].most)
            return wrong(error, name,
                         "the value of %s must be a number from %" PRIu64 " to %" PRIu64 " in decimal digits",
                         words[which].name, words[which].least, words[which].most);
        more = *at == ',';
    }
    if (!given[0])
        return wrong(error, name, "the vocabulary is missing; the name of a synthetic dataset is " FORM);
    const uint32_t needed = into->vocabulary <= (uint64_t)UINT16_MAX + 1 ? 2 : 4;
    if (width == 3 || (width && width < needed))
        return wrong(error, name, "the width must be 2 or 4 bytes, and a vocabulary of %" PRIu64 " ids needs %u",
                     into->vocabulary, needed);
    into->width = width ? (uint32_t)width : needed;
    return TOKMAP_OK;
}

/* ---- opening ---- */

enum tokmap_status synthetic_open(struct synthetic **synthetic, const char *name, struct tokmap_error *error)
{
    struct synthetic made = {.tokens = TOKENS, .document = DOCUMENT};
    *synthetic = NULL;
    enum tokmap_status status = read_name(&made, name, error);
    if (status)
        return status;
    made.documents = div_ceil(made.tokens, made.document);
    const uint64_t count = min64(TILE, made.tokens);
    made.tile = malloc((size_t)count * made.width);
    struct synthetic *kept = malloc(sizeof *kept);
    if (!made.tile || !kept) {
        free(made.tile);
        free(kept);
        return error_set_memory(error, "a synthetic dataset", count * made.width + sizeof *kept);
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t id = number_below(made.seed, OF_TILE, i, made.vocabulary);
        if (made.width == 2)
            store16((uint8_t *)made.tile + 2 * i, (uint16_t)id);
        else
            store32((uint8_t *)made.tile + 4 * i, (uint32_t)id);
    }
    *kept = made;
    *synthetic = kept;
    return TOKMAP_OK;
}

void synthetic_close(struct synthetic *synthetic)
{
    if (!synthetic)
        return;
    free(synthetic->tile);
    free(synthetic);
}

void synthetic_content(const struct synthetic *synthetic, uint8_t content[16])
{
    uint8_t message[8 + 5 * 8];
    memcpy(message, "synth 1\0", 8);
    store64(message + 8, synthetic->vocabulary);
    store64(message + 16, synthetic->tokens);
    store64(message + 24, synthetic->document);
    store64(message + 32, synthetic->width);
    store64(message + 40, synthetic->seed);
    hash128_store(hash128(message, sizeof message), content);
}

/* ---- tokens ---- */

/* Vector types of the compiler. Every processor that the library supports has instructions for 16 bytes. */
typedef uint16_t eight16 __attribute__((vector_size(16)));
typedef uint32_t four32 __attribute__((vector_size(16)));

/* Computes (a + by) mod vocabulary for a < vocabulary, where left = vocabulary - by: a - left if a >= left,
 * otherwise a + by. */
#define ROTATE(NAME, VECTOR, ELEMENT, WIDTH)                                                                           \
    static void NAME(uint8_t *out, const uint8_t *from, uint64_t count, ELEMENT by, ELEMENT left)                      \
    {                                                                                                                  \
        const VECTOR bys = (VECTOR){0} + by, lefts = (VECTOR){0} + left;                                               \
        uint64_t at = 0;                                                                                               \
        for (; at + 16 / (WIDTH) <= count; at += 16 / (WIDTH)) {                                                       \
            VECTOR a;                                                                                                  \
            memcpy(&a, from + at * (WIDTH), 16);                                                                       \
            const VECTOR over = (VECTOR)(a >= lefts);                                                                  \
            a = (over & (a - lefts)) | (~over & (a + bys));                                                            \
            memcpy(out + at * (WIDTH), &a, 16);                                                                        \
        }                                                                                                              \
        for (; at < count; at++) {                                                                                     \
            ELEMENT a;                                                                                                 \
            memcpy(&a, from + at * (WIDTH), (WIDTH));                                                                  \
            a = a >= left ? (ELEMENT)(a - left) : (ELEMENT)(a + by);                                                   \
            memcpy(out + at * (WIDTH), &a, (WIDTH));                                                                   \
        }                                                                                                              \
    }
ROTATE(rotate16, eight16, uint16_t, 2)
ROTATE(rotate32, four32, uint32_t, 4)

void synthetic_copy(const struct synthetic *synthetic, uint64_t first, uint64_t count, void *out)
{
    const uint32_t width = synthetic->width;
    uint8_t *into = out;
    assert(first <= synthetic->tokens && count <= synthetic->tokens - first);
    while (count) {
        const uint64_t at = first & (TILE - 1), part = min64(count, TILE - at);
        const uint8_t *from = (const uint8_t *)synthetic->tile + at * width;
        const uint64_t by = number_below(synthetic->seed, OF_BLOCKS, first >> TILE_SHIFT, synthetic->vocabulary);
        const uint64_t left = synthetic->vocabulary - by;
        if (!by) /* `left` would be the vocabulary, which may not fit in an element */
            memcpy(into, from, (size_t)(part * width));
        else if (width == 2)
            rotate16(into, from, part, (uint16_t)by, (uint16_t)left);
        else
            rotate32(into, from, part, (uint32_t)by, (uint32_t)left);
        into += part * width;
        first += part;
        count -= part;
    }
}

/* ---- documents ---- */

uint64_t synthetic_end(const struct synthetic *synthetic, uint64_t document)
{
    const uint64_t length = synthetic->document;
    assert(document < synthetic->documents);
    if (document + 1 == synthetic->documents)
        return synthetic->tokens;
    return document * length + 1 + number_below(synthetic->seed, OF_DOCUMENTS, document, length);
}

uint64_t synthetic_start(const struct synthetic *synthetic, uint64_t document)
{
    return document ? synthetic_end(synthetic, document - 1) : 0;
}

uint64_t synthetic_document_at(const struct synthetic *synthetic, uint64_t token)
{
    const uint64_t document = token / synthetic->document;
    return document + (token >= synthetic_end(synthetic, document));
}
