/*
 * rank_file.c - reads rank files. Published files list their tokens in the order of the ranks. Lines in any other order
 * are sorted.
 */
#include "rank_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "bpe/text_places.h"
#include "common/bytes.h"
#include "common/error.h"
#include "common/hash.h"
#include "text/decimal.h"

/* A line, without the characters that end it. */
struct line {
    const uint8_t *text;
    uint64_t bytes, number; /* number: counted from 1 */
};

struct token {
    uint32_t rank, offset, bytes; /* offset: of the text in the buffer of all texts */
    uint64_t line;
};

static bool next_line(const uint8_t **at, const uint8_t *end, struct line *line)
{
    if (*at == end)
        return false;
    const uint8_t *stop = memchr(*at, '\n', (size_t)(end - *at));
    const uint8_t *line_end = stop ? stop : end;
    line->text = *at;
    line->bytes = (uint64_t)(line_end - *at);
    line->number++;
    if (line->bytes && line_end[-1] == '\r')
        line->bytes--;
    *at = stop ? stop + 1 : end;
    return true;
}

/* Parses a line, and decodes its token to bytes + used. Returns NULL, or what is wrong with the line. */
static const char *read_token(const struct line *line, uint8_t *bytes, uint32_t used, struct token *token)
{
    const uint8_t *space = memchr(line->text, ' ', line->bytes);
    if (!space)
        return "lacks the space between token and rank";
    const char *at = (const char *)space + 1, *end = (const char *)line->text + line->bytes;
    uint64_t rank = 0;
    if (at == end)
        return "lacks a rank";
    const bool fits = decimal_read(&at, end, &rank);
    if (fits ? at != end : !decimal_is_digit(*at))
        return "has a rank that is not a number";
    if (!fits || rank >= BPE_IDS)
        return "has a rank above 2097151";
    token->rank = (uint32_t)rank;
    token->line = line->number;
    token->offset = used;
    token->bytes = base64_decode(bytes + used, line->text, (uint64_t)(space - line->text));
    return token->bytes ? NULL : "has a token that is not base64";
}

bool rank_file_is(const char *text, uint64_t count)
{
    const uint8_t *at = (const uint8_t *)text;
    struct line line = {at, 0, 0};
    struct token token;
    uint8_t bytes[256];
    return count && next_line(&at, at + min64(count, 300), &line) && line.bytes <= 256 &&
           !read_token(&line, bytes, 0, &token);
}

static int by_rank(const void *a, const void *b)
{
    const struct token *left = a, *right = b;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* Sorts tokens and their texts by rank, and fills file->offsets and file->source. */
static enum tokmap_status order_tokens(struct rank_file *file, struct token *tokens, uint32_t count, uint32_t bytes,
                                       struct tokmap_error *error)
{
    uint32_t used = 0;
    assert(count > 0);
    for (uint32_t i = 1; i < count; i++)
        if (tokens[i].rank <= tokens[i - 1].rank) {
            qsort(tokens, count, sizeof *tokens, by_rank);
            break;
        }
    const uint32_t vocabulary = tokens[count - 1].rank + 1;
    file->offsets = malloc(((size_t)vocabulary + 1) * sizeof *file->offsets);
    uint8_t *ordered = malloc((size_t)bytes + 64);
    if (!file->offsets || !ordered) {
        free(ordered);
        return error_set_memory(error, "a vocabulary", bytes + ((uint64_t)vocabulary + 1) * sizeof *file->offsets);
    }
    file->hole = BPE_NONE;
    for (uint32_t i = 0, id = 0; i < count; i++) {
        if (i && tokens[i].rank == tokens[i - 1].rank) {
            free(ordered);
            return error_set_line(error, TOKMAP_ERROR_FORMAT, file->source.path,
                                  max64(tokens[i].line, tokens[i - 1].line),
                                  "two lines have the rank %" PRIu32 "; the file is damaged", tokens[i].rank);
        }
        if (id < tokens[i].rank && file->hole == BPE_NONE)
            file->hole = id;
        for (; id <= tokens[i].rank; id++)
            file->offsets[id] = used;
        memcpy(ordered + used, file->bytes + tokens[i].offset, tokens[i].bytes);
        used += tokens[i].bytes;
    }
    file->offsets[vocabulary] = used;
    free(file->bytes);
    file->bytes = ordered;
    file->source.vocabulary = vocabulary;
    file->source.bytes = file->bytes;
    file->source.offsets = file->offsets;
    return TOKMAP_OK;
}

#define NO_MEMORY (BPE_NONE - 1)

/* Looks for two tokens with the same text. Returns the larger id, BPE_NONE if there are none, or NO_MEMORY. */
static uint32_t find_duplicate(const struct rank_file *file)
{
    struct text_places places;
    uint32_t duplicate = BPE_NONE;
    if (!text_places_new(&places, file->source.vocabulary))
        return NO_MEMORY;
    for (uint32_t id = 0; id < file->source.vocabulary && duplicate == BPE_NONE; id++)
        if (file->offsets[id + 1] > file->offsets[id] &&
            text_places_add(&places, file->bytes, file->offsets, id) != BPE_NONE)
            duplicate = id;
    text_places_free(&places);
    return duplicate;
}

enum tokmap_status rank_file_read(struct rank_file *file, const char *path, const char *text, uint64_t count,
                                  struct tokmap_error *error)
{
    const uint8_t *at = (const uint8_t *)text, *const end = at + count;
    struct line line = {at, 0, 0};
    uint32_t used = 0, made = 0;
    uint64_t lines = 1;
    memset(file, 0, sizeof *file);
    file->source.path = path;
    file->source.whole = true;
    if (count > (uint64_t)1 << 30)
        return error_set(error, TOKMAP_ERROR_LIMIT, path, TOKMAP_NO_OFFSET,
                         "the rank file has %" PRIu64 " bytes; tokmap can read at most 1 GiB", count);
    for (const uint8_t *p = at; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    struct token *tokens = malloc(lines * sizeof *tokens);
    file->bytes = malloc(count + 64);
    enum tokmap_status status = TOKMAP_OK;
    if (!tokens || !file->bytes)
        status = error_set_memory(error, "a vocabulary", count + lines * sizeof *tokens);
    while (!status && next_line(&at, end, &line)) {
        if (!line.bytes)
            continue;
        const char *fault = read_token(&line, file->bytes, used, &tokens[made]);
        if (fault)
            status = error_set_line(
                error, TOKMAP_ERROR_FORMAT, path, line.number,
                "the line %s; each line of a rank file must be a token in base64, a space, and a rank", fault);
        else
            used += tokens[made++].bytes;
    }
    if (!status && !made)
        status = error_set(error, TOKMAP_ERROR_FORMAT, path, TOKMAP_NO_OFFSET,
                           "the rank file has no tokens; it is incomplete");
    if (!status)
        status = order_tokens(file, tokens, made, used, error);
    const uint32_t duplicate = status ? BPE_NONE : find_duplicate(file);
    if (duplicate == NO_MEMORY)
        status = error_set_memory(error, "a vocabulary", count);
    else if (duplicate != BPE_NONE)
        for (uint32_t i = 0; i < made; i++)
            if (tokens[i].rank == duplicate)
                status = error_set_line(
                    error, TOKMAP_ERROR_FORMAT, path, tokens[i].line,
                    "the token with the rank %" PRIu32 " has a lower rank, too; the file is damaged", duplicate);
    free(tokens);
    if (!status) {
        hash128_store(hash128(text, count), file->fingerprint);
        file->known = rank_catalog_find(file->fingerprint);
    }
    return status;
}

void rank_file_free(struct rank_file *file)
{
    free(file->bytes);
    free(file->offsets);
    file->bytes = NULL;
    file->offsets = NULL;
}
