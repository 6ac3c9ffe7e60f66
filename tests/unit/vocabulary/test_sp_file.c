/* SPDX-License-Identifier: MIT */
/* test_sp_file.c - .model files: what is refused and with which message, and files that are damaged in any way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "sentencepiece/sp_model.h"
#include "vocabulary/sp_file.h"

static uint64_t seed = 1;
static uint32_t random_below(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % most);
}

struct file {
    uint8_t bytes[1 << 17];
    size_t count;
};

static void put_varint(struct file *file, uint64_t value)
{
    for (; value > 127; value >>= 7)
        file->bytes[file->count++] = (uint8_t)(value | 128);
    file->bytes[file->count++] = (uint8_t)value;
}

static void put_number(struct file *file, uint32_t number, uint64_t value)
{
    put_varint(file, (uint64_t)number << 3);
    put_varint(file, value);
}

static void put_bytes(struct file *file, uint32_t number, const void *bytes, size_t count)
{
    put_varint(file, (uint64_t)number << 3 | 2);
    put_varint(file, count);
    if (count)
        memcpy(file->bytes + file->count, bytes, count);
    file->count += count;
}

static void put_piece(struct file *file, const char *text, float score, uint64_t kind)
{
    struct file inner = {.count = 0};
    put_bytes(&inner, 1, text, strlen(text));
    put_varint(&inner, 2 << 3 | 5);
    memcpy(inner.bytes + inner.count, &score, 4);
    inner.count += 4;
    if (kind != SP_NORMAL)
        put_number(&inner, 3, kind);
    put_bytes(file, 1, inner.bytes, inner.count);
}

struct edit {
    const char *says; /* words of the message; NULL: the file is accepted */
    enum tokmap_status status;
    uint32_t message, number; /* a field of trainer_spec (2), normalizer_spec (3), denormalizer_spec (5) ... */
    uint64_t value;
    const char *text;  /* the field's content; NULL: `value` */
    const char *piece; /* or: a piece that is added */
    uint64_t kind;
};

static void make_file(struct file *file, const struct edit *edit)
{
    file->count = 0;
    put_piece(file, "<unk>", 0, SP_UNKNOWN);
    put_piece(file, "<s>", 0, SP_CONTROL);
    put_piece(file, "</s>", 0, SP_CONTROL);
    static const char *const texts[] = {SP_MARK, "a", "b", "ab", SP_MARK "ab", "é", "中文"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put_piece(file, texts[i], -(float)i, SP_NORMAL);
    if (edit && edit->piece)
        put_piece(file, edit->piece, 0, edit->kind);
    const uint32_t messages[] = {2, 3, 5};
    for (size_t i = 0; i < 3; i++) {
        struct file inner = {.count = 0};
        if (messages[i] == 2)
            put_number(&inner, 3, 2);
        if (messages[i] == 3)
            put_number(&inner, 4, 0);
        if (edit && edit->message == messages[i]) {
            if (edit->text)
                put_bytes(&inner, edit->number, edit->text, strlen(edit->text));
            else
                put_number(&inner, edit->number, edit->value);
        }
        if (inner.count)
            put_bytes(file, messages[i], inner.bytes, inner.count);
    }
}

static enum tokmap_status open_bytes(struct tokenizer **tokenizer, const uint8_t *bytes, size_t count,
                                     struct tokmap_error *error)
{
    static const struct tokmap_tokenizer_options options;
    /* A copy of the exact size, so that a sanitizer sees reads past the end. */
    uint8_t *copy = malloc(count + !count);
    memcpy(copy, bytes, count);
    const enum tokmap_status status = sp_file_open(tokenizer, "made.model", copy, count, NULL, &options, error);
    free(copy);
    return status;
}

/* Encodes a text and closes the tokenizer. Returns how many tokens there are. */
static uint64_t encode(struct tokenizer *tokenizer, const char *text, uint16_t tokens[64])
{
    struct tokenizer_state *state;
    struct tokmap_error error;
    const struct tokmap_text one = {text, strlen(text)};
    const struct tokenizer_batch batch = {.documents = &one, .count = 1};
    uint64_t end;
    struct tokenizer_out out = {.tokens = tokens, .capacity = 64, .ends = &end};
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
    return end;
}

static enum tokmap_status open_file(const uint8_t *bytes, size_t count, struct tokmap_error *error)
{
    struct tokenizer *tokenizer;
    uint16_t tokens[64];
    const enum tokmap_status status = open_bytes(&tokenizer, bytes, count, error);
    if (!status)
        (void)encode(tokenizer, "ab a\xE4\xB8\xAD\xE6\x96\x87 \xC3\xA9<s>", tokens);
    return status;
}

static void refused(void **unused)
{
    static const struct edit edits[] = {
        {NULL, TOKMAP_OK, 0, 0, 0, NULL, NULL, 0},
        {NULL, TOKMAP_OK, 3, 2, 0, "", NULL, 0},
        {NULL, TOKMAP_OK, 3, 3, 0, NULL, NULL, 0},
        {NULL, TOKMAP_OK, 3, 4, 1, NULL, NULL, 0},
        {NULL, TOKMAP_OK, 3, 5, 0, NULL, NULL, 0},
        {NULL, TOKMAP_OK, 3, 99, 0, "of a later version", NULL, 0},
        {NULL, TOKMAP_OK, 2, 3, 1, NULL, NULL, 0},
        {"WORD", TOKMAP_ERROR_UNSUPPORTED, 2, 3, 3, NULL, NULL, 0},
        {"CHAR and a piece of several characters", TOKMAP_ERROR_UNSUPPORTED, 2, 3, 4, NULL, NULL, 0},
        {"model_type", TOKMAP_ERROR_UNSUPPORTED, 2, 3, UINT64_MAX, NULL, NULL, 0},
        {NULL, TOKMAP_OK, 2, 24, 1, NULL, NULL, 0},
        {"byte_fallback", TOKMAP_ERROR_FORMAT, 2, 35, 1, NULL, NULL, 0},
        {"normalizer_spec.precompiled_charsmap", TOKMAP_ERROR_FORMAT, 3, 2, 0, "x", NULL, 0},
        {NULL, TOKMAP_OK, 5, 2, 0, "x", NULL, 0},
        {"twice|same text as an earlier piece", TOKMAP_ERROR_FORMAT, 0, 0, 0, NULL, "ab", SP_NORMAL},
        {"UNKNOWN", TOKMAP_ERROR_FORMAT, 0, 0, 0, NULL, "<x>", SP_UNKNOWN},
        {"UNUSED", TOKMAP_ERROR_UNSUPPORTED, 0, 0, 0, NULL, "ba", SP_UNUSED},
        {NULL, TOKMAP_OK, 0, 0, 0, NULL, "abba?", SP_UNUSED},
        {NULL, TOKMAP_OK, 0, 0, 0, NULL, "ba", SP_USER_DEFINED},
        {"a single character", TOKMAP_ERROR_UNSUPPORTED, 0, 0, 0, NULL, "x", SP_CONTROL},
        {"BYTE", TOKMAP_ERROR_FORMAT, 0, 0, 0, NULL, "<0x00>", SP_BYTE},
        {"not UTF-8", TOKMAP_ERROR_FORMAT, 0, 0, 0, NULL, "\xED\xA0\x80", SP_NORMAL},
        {"empty", TOKMAP_ERROR_FORMAT, 0, 0, 0, NULL, "", SP_NORMAL},
        {"type", TOKMAP_ERROR_UNSUPPORTED, 0, 0, 0, NULL, "x", 7},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        static struct file file;
        struct tokmap_error error = {0};
        make_file(&file, &edits[i]);
        assert_true(sp_file_is(file.bytes, file.count));
        const enum tokmap_status status = open_file(file.bytes, file.count, &error);
        if (status != edits[i].status)
            fail_msg("edit %zu: status %d: %s", i, (int)status, error.message);
        const char *other = edits[i].says ? strchr(edits[i].says, '|') : NULL;
        if (edits[i].says && !strstr(error.message, other ? other + 1 : edits[i].says))
            fail_msg("edit %zu: %s", i, error.message);
    }
}

/* Handling a piece that merges make costs the square of its length, so long ones are refused. */
static void pieces_too_long(void **unused)
{
    static char text[65537];
    static struct file file;
    struct tokmap_error error = {0};
    (void)unused;
    for (size_t more = 0; more < 4; more++) {
        const bool merged = more < 2;
        const size_t most = merged ? 2048 : 65535;
        memset(text, 0, sizeof text);
        const struct edit edit = {.piece = memset(text, 'a', most + more % 2),
                                  .kind = merged ? SP_NORMAL : SP_USER_DEFINED};
        make_file(&file, &edit);
        assert_int_equal(open_file(file.bytes, file.count, &error), more % 2 ? TOKMAP_ERROR_LIMIT : TOKMAP_OK);
        if (more % 2)
            assert_non_null(strstr(error.message, merged ? "2049 bytes" : "65536 bytes"));
    }
}

/* SentencePiece 0.2.3 gives the id of the unknown piece for a character whose piece is UNUSED. */
static void unused_characters_are_unknown(void **unused)
{
    static struct file file;
    static const uint64_t kinds[] = {SP_NORMAL, SP_UNUSED};
    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        struct tokmap_error error;
        struct tokenizer *tokenizer;
        uint16_t tokens[64];
        const struct edit edit = {.piece = "x", .kind = kinds[i]};
        make_file(&file, &edit);
        assert_int_equal(open_bytes(&tokenizer, file.bytes, file.count, &error), TOKMAP_OK);
        assert_int_equal(encode(tokenizer, "xb", tokens), 3);
        assert_int_equal(tokens[0], 3); /* the mark of a space */
        assert_int_equal(tokens[1], i ? 0 : 10);
        assert_int_equal(tokens[2], 5);
    }
}

/* Nothing is read past the end, whatever is missing or changed. Many of these files can be opened. */
static void damaged(void **unused)
{
    static struct file file, changed;
    struct tokmap_error error;
    make_file(&file, NULL);
    size_t opened = 0;
    for (size_t count = 0; count < file.count; count++) {
        opened += open_file(file.bytes, count, &error) == TOKMAP_OK;
        (void)sp_file_is(file.bytes, count);
    }
    static const uint8_t values[] = {0, 1, 2, 5, 10, 18, 127, 128, 255};
    for (size_t at = 0; at < file.count; at++)
        for (size_t i = 0; i < sizeof values; i++) {
            changed = file;
            changed.bytes[at] = values[i];
            opened += open_file(changed.bytes, changed.count, &error) == TOKMAP_OK;
        }
    assert_true(opened > 10);
    /* Lengths that are much too large, in varints of every size. */
    for (uint32_t shift = 0; shift < 64; shift++) {
        changed.count = 0;
        put_varint(&changed, 1 << 3 | 2);
        put_varint(&changed, (uint64_t)-1 << shift);
        assert_int_equal(open_file(changed.bytes, changed.count, &error), TOKMAP_ERROR_FORMAT);
    }
    for (uint32_t i = 0; i < 3000; i++) {
        changed.count = random_below(200);
        for (size_t at = 0; at < changed.count; at++)
            changed.bytes[at] = (uint8_t)(random_below(3) ? random_below(40) : random_below(256));
        (void)open_file(changed.bytes, changed.count, &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(pieces_too_long),
                                       cmocka_unit_test(unused_characters_are_unknown), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
