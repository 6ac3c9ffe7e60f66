/* cached_tokenizer.c - see cached_tokenizer.h. */
#include "cached_tokenizer.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "vocabulary/vocabulary.h"

struct tokenizer *open_cached(const char *path, const char *folder, struct tokenizer_options options,
                              enum tokenizer_cached wanted)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    enum tokenizer_cached cached = TOKENIZER_NOT_CACHED;
    options.cache = folder;
    options.cached = &cached;
    if (vocabulary_open(&tokenizer, path, &options, &error))
        fail_msg("%s: %s", path, error.message);
    if (cached != wanted)
        fail_msg("%s: the cache did %d instead of %d", path, (int)cached, (int)wanted);
    return tokenizer;
}

/* The ids of a text, as the tokenizer writes them. */
static void *encode(const struct tokenizer *tokenizer, struct tokenizer_state *state, const char *text, size_t bytes,
                    uint64_t *count)
{
    struct tokenizer_info info;
    struct tokmap_error error;
    const struct tokenizer_text document = {text, bytes};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    uint64_t end;
    tokenizer_info(tokenizer, &info);
    struct tokenizer_out out = {.capacity = (uint64_t)bytes * info.ids_per_byte_most + 64, .ends = &end};
    out.tokens = malloc((size_t)out.capacity * info.width);
    assert_non_null(out.tokens);
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
    *count = out.count;
    return out.tokens;
}

uint32_t *ids_of(const struct tokenizer *tokenizer, const char *text, size_t bytes, uint64_t *count)
{
    struct tokenizer_info info;
    struct tokenizer_state *state;
    struct tokmap_error error;
    tokenizer_info(tokenizer, &info);
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    void *tokens = encode(tokenizer, state, text, bytes, count);
    uint32_t *ids = malloc((size_t)*count * sizeof *ids + 1);
    assert_non_null(ids);
    for (uint64_t i = 0; i < *count; i++) {
        ids[i] = info.width == 4 ? ((uint32_t *)tokens)[i] : ((uint16_t *)tokens)[i];
        assert_true(ids[i] < info.vocabulary);
    }
    free(tokens);
    tokenizer_state_free(state);
    return ids;
}

static void same_text(const char *one, const char *other)
{
    assert_int_equal(!one, !other);
    if (one)
        assert_string_equal(one, other);
}

static void same_info(const struct tokenizer *one, const struct tokenizer *other)
{
    struct tokenizer_info a, b;
    tokenizer_info(one, &a);
    tokenizer_info(other, &b);
    same_text(a.name, b.name);
    same_text(a.form, b.form);
    same_text(a.scanner, b.scanner);
    same_text(a.note, b.note);
    assert_true(a.vocabulary == b.vocabulary && a.width == b.width && a.eod_id == b.eod_id && a.bos_id == b.bos_id);
    assert_true(a.ids_per_byte_most == b.ids_per_byte_most && a.added == b.added && a.specials == b.specials);
    assert_true(a.cuts == b.cuts && a.cut_anywhere == b.cut_anywhere);
    assert_memory_equal(a.fingerprint, b.fingerprint, sizeof a.fingerprint);
    for (uint64_t id = 0; id < a.vocabulary; id++) {
        const uint8_t *x = NULL, *y = NULL;
        uint32_t count = 0, counted = 0;
        assert_int_equal(tokenizer_token(one, id, &x, &count), tokenizer_token(other, id, &y, &counted));
        assert_true(count == counted && (!count || !memcmp(x, y, count)));
    }
    for (uint64_t i = 0; i < a.added; i++) {
        struct tokenizer_added x, y;
        tokenizer_added_at(one, i, &x);
        tokenizer_added_at(other, i, &y);
        assert_true(x.id == y.id && x.special == y.special && x.bytes == y.bytes && !memcmp(x.text, y.text, x.bytes));
    }
}

/* Compares what decoding gives, or with which status it is refused. */
static void same_decoded(const struct tokenizer *one, const struct tokenizer *other, const void *ids, uint64_t count,
                         bool specials)
{
    struct text_buffer a = {NULL, 0, 0}, b = {NULL, 0, 0};
    struct tokmap_error error;
    const enum tokmap_status status = tokenizer_decode(one, ids, count, specials, false, &a, &error);
    assert_int_equal(tokenizer_decode(other, ids, count, specials, false, &b, &error), status);
    assert_true(a.count == b.count && (!a.count || !memcmp(a.bytes, b.bytes, a.count)));
    free(a.bytes);
    free(b.bytes);
}

void same_tokenizer(const struct tokenizer *one, const struct tokenizer *other, const char *text, size_t bytes)
{
    const struct tokenizer *both[2] = {one, other};
    struct tokenizer_state *states[2];
    void *ids[2];
    uint64_t counts[2], *places[2][2];
    struct tokenizer_info info;
    struct tokmap_error error;
    const struct tokenizer_text document = {text, bytes};
    same_info(one, other);
    tokenizer_info(one, &info);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tokenizer_state_new(&states[i], both[i], &error), TOKMAP_OK);
        ids[i] = encode(both[i], states[i], text, bytes, &counts[i]);
        for (int k = 0; k < 2; k++)
            assert_non_null(places[i][k] = calloc((size_t)counts[i] + 1, sizeof(uint64_t)));
        assert_int_equal(tokenizer_offsets(states[i], &document, TOKENIZER_STARTS, ids[i], counts[i], places[i][0],
                                           places[i][1], &error),
                         TOKMAP_OK);
        tokenizer_state_free(states[i]);
    }
    assert_int_equal(counts[0], counts[1]);
    assert_memory_equal(ids[0], ids[1], (size_t)counts[0] * info.width);
    for (int k = 0; k < 2; k++)
        assert_memory_equal(places[0][k], places[1][k], (size_t)counts[0] * sizeof(uint64_t));
    for (int specials = 0; specials < 2; specials++)
        same_decoded(one, other, ids[0], counts[0], specials);
    for (int i = 0; i < 2; i++) {
        free(ids[i]);
        free(places[i][0]);
        free(places[i][1]);
    }
}
