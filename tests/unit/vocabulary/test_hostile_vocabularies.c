/* SPDX-License-Identifier: MIT */
/*
 * test_hostile_vocabularies.c - vocabularies that somebody made to harm: scores that are no numbers, pieces that make a
 * lattice quadratic, tries of any depth, precompiled maps that point outside themselves, lead to themselves, or make a
 * text grow. Each is refused, with a message, or it is opened and then encodes and decodes texts of 300,000 bytes in
 * time and in bounded memory, with ids below the size of the vocabulary.
 *
 * An algorithm that is quadratic in the text needs 10^11 steps, and exceeds SECONDS_MOST. With TEST_SHOW=1 the test
 * prints what became of each vocabulary. test_fuzz has files of the same kinds as seeds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "support/awkward_text.h"
#include "support/decode_once.h"
#include "support/model_made.h"
#include "support/sanitized.h"
#include "vocabulary/vocabulary.h"

#define MEMORY_MOST ((long)1 << 20) /* KiB that a vocabulary of a few megabytes, with a text, may take */
#define SECONDS_MOST 20             /* of processor time, with all texts */

static size_t text_bytes(void)
{
#ifdef SANITIZED
    return 40000;
#else
    return (size_t)awkward_rounds(300000);
#endif
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Encodes a text that repeats `atom`. Statuses other than OK: the limit of a pattern or of growth, or a character
 * without a token. */
static void encode(const struct tokenizer *tokenizer, const char *name, const char *atom)
{
    struct tokmap_error error = {0};
    struct tokenizer_state *state;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    /* A vocabulary that makes texts grow says so, and the memory for ids is the caller's. */
    const size_t bytes = strlen(atom), growth = info.ids_per_byte_most / 16 + 1;
    const size_t count = text_bytes() / growth / bytes + 1;
    char *text = malloc(count * bytes + 1);
    uint64_t end;
    struct tokenizer_out out = {.capacity = ((uint64_t)count * bytes + 64) * info.ids_per_byte_most, .ends = &end};
    out.tokens = malloc(out.capacity * info.width);
    assert_true(text && out.tokens);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * bytes, atom, bytes);
    const struct tokmap_text document = {text, count * bytes};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    const enum tokmap_status status = tokenizer_encode(state, &batch, &out, &error);
    if (status != TOKMAP_OK && status != TOKMAP_ERROR_LIMIT && status != TOKMAP_ERROR_INPUT &&
        status != TOKMAP_ERROR_TOKEN && status != TOKMAP_ERROR_UNSUPPORTED)
        fail_msg("%s: encoding '%.20s': %d %s", name, atom, (int)status, error.message);
    if (!status) {
        struct text_buffer back = {0};
        assert_true(out.count <= out.capacity && end == out.count);
        for (uint64_t i = 0; i < out.count; i++)
            if ((info.width == 4 ? ((uint32_t *)out.tokens)[i] : ((uint16_t *)out.tokens)[i]) >= info.vocabulary)
                fail_msg("%s: an id is not below the size of the vocabulary", name);
        const enum tokmap_status decoded =
            tokenizer_decode(tokenizer, out.tokens, out.count, true, false, &back, &error);
        assert_true(decoded == TOKMAP_OK || decoded == TOKMAP_ERROR_UNSUPPORTED || decoded == TOKMAP_ERROR_LIMIT);
        free(back.bytes);
    }
    tokenizer_state_free(state);
    free(out.tokens);
    free(text);
}

static const char *const atoms[] = {"a", "ab", "aab", "a ", "b", "\xe2\x96\x81", "\xf0\x9f\x98\x80", "A1"};

/* Opens a vocabulary, and uses it if it is not refused. Frees the bytes. Returns whether it was opened. */
static bool try(const char *name, struct made_bytes *made)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    char path[64];
    const int fd = memfd_create("vocabulary", 0);
    assert_true(fd >= 0);
    for (size_t at = 0; at < made->count;) {
        const ssize_t written = write(fd, made->bytes + at, made->count - at);
        assert_true(written > 0);
        at += (size_t)written;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    free(made->bytes);
    *made = (struct made_bytes){0};
    const double start = seconds();
    const enum tokmap_status status = vocabulary_open(&tokenizer, path, NULL, &error);
    if (status) {
        assert_null(tokenizer);
        if (status != TOKMAP_ERROR_FORMAT && status != TOKMAP_ERROR_UNSUPPORTED && status != TOKMAP_ERROR_LIMIT &&
            status != TOKMAP_ERROR_ARGUMENT && status != TOKMAP_ERROR_NOT_FOUND && status != TOKMAP_ERROR_TRUNCATED)
            fail_msg("%s: status %d: %s", name, (int)status, error.message);
        assert_true(error.message[0]);
    }
    for (size_t i = 0; !status && i < sizeof atoms / sizeof atoms[0]; i++)
        encode(tokenizer, name, atoms[i]);
    tokenizer_close(tokenizer);
    close(fd);
    if (getenv("TEST_SHOW"))
        print_message("%s: %s (%.2f s)\n", name, status ? error.message : "encoded", seconds() - start);
#ifndef SANITIZED
    if (seconds() - start > SECONDS_MOST)
        fail_msg("%s: %.0f s", name, seconds() - start);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > MEMORY_MOST)
        fail_msg("%s: %ld MiB of memory", name, usage.ru_maxrss >> 10);
#endif
    return status == TOKMAP_OK;
}

/* ---- SentencePiece models ---- */

static void piece(struct made_bytes *model, const char *text, float score)
{
    made_piece(model, text, strlen(text), score, MADE_NORMAL);
}

/* Begins a model with its control pieces and some letters. */
static struct made_bytes begin(void)
{
    struct made_bytes model = {0};
    static const char *const letters[] = {"a", "b", "\xe2\x96\x81", "A", "1"};
    made_piece(&model, "<unk>", 5, 0, MADE_UNKNOWN);
    made_piece(&model, "<s>", 3, 0, MADE_CONTROL);
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        piece(&model, letters[i], -1 - (float)i);
    return model;
}

/* Tries a model as each type. */
static void try_types(const char *name, struct made_bytes *model)
{
    char whole[100];
    for (enum made_type type = MADE_UNIGRAM; type <= MADE_CHAR; type++) {
        struct made_bytes copy = {0};
        made_put(&copy, model->bytes, model->count);
        made_specs(&copy, type, NULL);
        (void)snprintf(whole, sizeof whole, "%s, type %d", name, (int)type);
        try(whole, &copy);
    }
    free(model->bytes);
    *model = (struct made_bytes){0};
}

/* Scores that are no numbers, infinite, or whose sums overflow. */
static void scores(void **state)
{
    static const float strange[] = {NAN, -NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0, 1e-45f};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        struct made_bytes model = begin();
        char name[64];
        piece(&model, "aa", strange[i]);
        piece(&model, "ab", -2);
        piece(&model, "aab", strange[i]);
        piece(&model, "aaaa", -strange[i]);
        (void)snprintf(name, sizeof name, "scores of %g", (double)strange[i]);
        try_types(name, &model);
    }
    struct made_bytes model = {0};
    made_piece(&model, "<unk>", 5, NAN, MADE_UNKNOWN);
    piece(&model, "a", NAN);
    piece(&model, "aa", NAN);
    try_types("every score NaN", &model);
}

/* Overlapping pieces: each place of a text of equal letters begins and ends as many of them as there are. */
static void overlapping(void **state)
{
    static char text[3000];
    memset(text, 'a', sizeof text);
    struct made_bytes model = begin();
    for (size_t i = 2; i <= 1000; i++)
        made_piece(&model, text, i, -1.5f * (float)i, MADE_NORMAL);
    try_types("pieces of 1 to 1000 equal letters", &model);
    model = begin();
    for (size_t i = 2; i <= 300; i++)
        made_piece(&model, text, i, 0, MADE_USER_DEFINED);
    try_types("user-defined pieces of 1 to 300 equal letters", &model);
    model = begin();
    for (size_t i = 1; i < 1500; i++) { /* a..ab, so that no place but the last ends a piece */
        text[i] = 'b';
        made_piece(&model, text, i + 1, -(float)i, MADE_NORMAL);
        text[i] = 'a';
    }
    try_types("pieces a..ab", &model);
}

/* One piece of a million letters, of which a text has all but the last: every place begins a match that fails late. */
static void deep(void **state)
{
    const size_t bytes = 1000000;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, 'a', bytes);
    text[bytes - 1] = 'z';
    struct made_bytes model = begin();
    made_piece(&model, text, bytes, -1, MADE_NORMAL);
    try_types("a piece of 10^6 letters", &model);
    model = begin();
    made_piece(&model, text, bytes, -1, MADE_USER_DEFINED);
    try_types("a user-defined piece of 10^6 letters", &model);
    model = begin();
    for (size_t i = 1; i < bytes; i *= 2)
        made_piece(&model, text, i + 1, -1, MADE_NORMAL);
    try_types("pieces of 2 to 10^6 letters", &model);
    free(text);
}

static void pieces(void **state)
{
    struct made_bytes model = {0};
    made_specs(&model, MADE_UNIGRAM, NULL);
    try("a model without pieces", &model);
    piece(&model, "a", -1);
    try_types("a model without an unknown piece", &model);
    model = begin();
    made_piece(&model, "<unk2>", 6, 0, MADE_UNKNOWN);
    try_types("two unknown pieces", &model);
    model = begin();
    made_piece(&model, "", 0, -1, MADE_NORMAL);
    try_types("an empty piece", &model);
    model = begin();
    piece(&model, "a", -9);
    try_types("a piece twice", &model);
    model = begin();
    piece(&model, "\xff\xfe", -1);
    try_types("a piece that is not UTF-8", &model);
    model = begin();
    made_piece(&model, "a\0b", 3, -1, MADE_NORMAL);
    try_types("a piece with a zero", &model);
    model = begin();
    made_piece(&model, "aa", 2, -1, (enum made_kind)77);
    try_types("a piece of an unknown type", &model);
    model = begin();
    made_piece(&model, "<0xZZ>", 6, -1, MADE_BYTE);
    try_types("a piece of a byte without its number", &model);
}

/* ---- precompiled maps ---- */

/* Tries a map in models of two types, and in a tokenizer.json of each kind of model. */
static void try_map(const char *name, const struct made_map *map, uint32_t size, const void *texts, size_t bytes)
{
    static const char *const models[] = {
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1],[\"ab\",-2],[\"b\",-3]]}}",
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":100,\"vocab\":{\"u\":0,\"a\":1,\"##a\":2,\"##b\":3}}}",
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"ab\":3},"
        "\"merges\":[\"a b\"]}}",
    };
    struct made_bytes charsmap = {0};
    char whole[100];
    made_charsmap(&charsmap, map, size, texts, bytes);
    for (enum made_type type = MADE_UNIGRAM; type <= MADE_BPE; type++) {
        struct made_bytes model = begin();
        made_specs(&model, type, &charsmap);
        (void)snprintf(whole, sizeof whole, "%s, .model of type %d", name, (int)type);
        try(whole, &model);
    }
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct made_bytes json = {0};
        made_text(&json, "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":null,\"post_processor\":null,"
                         "\"decoder\":null,\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
        made_base64(&json, &charsmap);
        made_text(&json, "\"},");
        made_text(&json, models[i]);
        (void)snprintf(whole, sizeof whole, "%s, tokenizer.json %zu", name, i);
        try(whole, &json);
    }
    free(charsmap.bytes);
}

static void maps(void **state)
{
    struct made_map map;
    const size_t large = 1 << 20;
    char *texts = malloc(large);
    assert_non_null(texts);
    memset(texts, 'b', large);
    texts[1] = 0;
    texts[large - 1] = 0;
    made_map_letter(&map, 'a', 0);
    try_map("a good map", &map, UINT32_MAX, texts, 2);
    try_map("a map without texts", &map, UINT32_MAX, texts, 0);
    try_map("a map whose last text does not end", &map, UINT32_MAX, texts, 1);
    try_map("a map of no units", &map, 0, texts, 2);
    try_map("a map of half a unit", &map, 2, texts, 2);
    try_map("a map of one unit", &map, 4, texts, 2);
    try_map("a map that ends in its units", &map, 1 << 20, texts, 2);
    try_map("a map of 2^32 bytes", &map, UINT32_MAX - 3, texts, 2);
    made_map_letter(&map, 'a', 2);
    try_map("a letter that grows 10^6 times", &map, UINT32_MAX, texts, large);
    made_map_letter(&map, 'a', (uint32_t)large);
    try_map("a text behind all texts", &map, UINT32_MAX, texts, large);
    made_map_letter(&map, 'a', 0x7fffffff);
    try_map("a text far outside", &map, UINT32_MAX, texts, large);
    made_map_letter(&map, 'a', 0);
    map.units[0] = made_unit(0, (1 << 21) - 1, 0);
    try_map("children outside", &map, UINT32_MAX, texts, 2);
    map.units[0] = 0x7fffffff & (UINT32_MAX << 9 | 1 << 8);
    try_map("children far outside", &map, UINT32_MAX, texts, 2);
    made_map_letter(&map, 'a', 0);
    map.units[256 ^ 'a'] = made_unit('a', 'a', 0);
    try_map("a unit that leads to itself", &map, UINT32_MAX, texts, 2);
    map.units[256 ^ 'a'] = made_unit('a', 'a', 1);
    try_map("a unit that leads to itself and ends", &map, UINT32_MAX, texts, 2);
    made_map_letter(&map, 'a', 0);
    map.units[0] = made_unit(0, 256, 1);
    try_map("an empty key", &map, UINT32_MAX, texts, 2);
    texts[0] = (char)0xff;
    made_map_letter(&map, 'a', 0);
    try_map("a text that is not UTF-8", &map, UINT32_MAX, texts, 2);
    texts[0] = 'a'; /* a letter that becomes itself */
    try_map("a letter that becomes itself", &map, UINT32_MAX, texts, 2);
    free(texts);
}

/* ---- tokenizer.json ---- */

#define JSON_START                                                                                                     \
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":%s,\"pre_tokenizer\":null,\"post_processor\":null,"       \
    "\"decoder\":null,\"model\":{"

static void try_model(const char *name, const char *normalizer, const char *model)
{
    struct made_bytes json = {0};
    char start[600];
    (void)snprintf(start, sizeof start, JSON_START, normalizer);
    made_text(&json, start);
    made_text(&json, model);
    made_text(&json, "}}");
    try(name, &json);
}

static void json_models(void **state)
{
    static const char *const models[] = {
        "\"type\":\"Unigram\",\"unk_id\":9,\"vocab\":[[\"<unk>\",0],[\"a\",-1]]",
        "\"type\":\"Unigram\",\"unk_id\":-1,\"vocab\":[[\"<unk>\",0],[\"a\",-1]]",
        "\"type\":\"Unigram\",\"unk_id\":18446744073709551615,\"vocab\":[[\"<unk>\",0],[\"a\",-1]]",
        "\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",-1]]",
        "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[]",
        "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",1e999],[\"a\",-1e999],[\"aa\",1e308],[\"ab\",-1e308]]",
        "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\"]]",
        "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1,2]]",
        "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\",-1],[\"a\",-1],[\"a\",-2]]",
        "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":{\"a\":1}",
        "\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],[\"<0x61>\",-1]]",
        "\"type\":\"WordPiece\",\"unk_token\":\"none\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":100,\"vocab\":{\"u\":0,\"a\":1}",
        "\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"\","
        "\"max_input_chars_per_word\":1000000000,\"vocab\":{\"u\":0,\"a\":1,\"aa\":2,\"aaaaaaaaaaaaaaaaaaaaaaaaab\":3}",
        "\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":18446744073709551615,\"vocab\":{\"u\":0,\"a\":1,\"##a\":2,\"##ab\":3}",
        "\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":0,\"vocab\":{\"u\":0,\"a\":1,\"##a\":2}",
        "\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":-1,\"vocab\":{\"u\":0,\"a\":1,\"##a\":2}",
        "\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\","
        "\"max_input_chars_per_word\":100,\"vocab\":{\"u\":0,\"##\":1,\"\":2,\"a\":1}",
        "\"type\":\"WordLevel\",\"unk_token\":\"none\",\"vocab\":{\"u\":0,\"a\":1}",
        "\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":4294967295,\"a\":1}",
        "\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{}",
        "\"type\":\"BPE\",\"unk_token\":\"u\",\"end_of_word_suffix\":\"</w>\",\"fuse_unk\":true,"
        "\"vocab\":{\"u\":0,\"a\":1,\"a</w>\":2,\"</w>\":3,\"aa</w>\":4},\"merges\":[\"a a</w>\"]",
        "\"type\":\"BPE\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"a\",\"end_of_word_suffix\":\"a\","
        "\"vocab\":{\"u\":0,\"a\":1,\"aa\":2,\"aaa\":3},\"merges\":[\"a aa\",\"aa aaa\"]",
    };
    static const char *const normalizers[] = {
        "null",
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKD\"},{\"type\":\"NFKC\"},{\"type\":\"Lowercase\"}]}",
        "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*\"},\"content\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
        "{\"type\":\"Prepend\",\"prepend\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        for (size_t j = 0; j < sizeof normalizers / sizeof normalizers[0]; j++) {
            char name[64];
            (void)snprintf(name, sizeof name, "tokenizer.json %zu, normalizer %zu", i, j);
            try_model(name, normalizers[j], models[i]);
        }
}

/* Each step makes a text 64 times as long. */
static void growing(void **state)
{
    static const int counts[] = {1, 2, 3, 5, 8, 15, 100};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct made_bytes json = {0};
        char name[64];
        made_text(&json,
                  "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
        for (int j = 0; j < counts[i]; j++)
            made_text(&json, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":"
                             "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"},");
        made_text(&json,
                  "{\"type\":\"NFC\"}]},\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":null,\"model\":{"
                  "\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,\"aa\":2},\"merges\":[\"a a\"]}}");
        (void)snprintf(name, sizeof name, "%d steps that make a text grow", counts[i]);
        try(name, &json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores), cmocka_unit_test(overlapping), cmocka_unit_test(deep),    cmocka_unit_test(pieces),
        cmocka_unit_test(maps),   cmocka_unit_test(json_models), cmocka_unit_test(growing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
