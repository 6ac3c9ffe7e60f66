/* SPDX-License-Identifier: MIT */
/*
 * test_wp.c - words become the ids that the definition gives, read literally, for random vocabularies; a text becomes
 * the same words in whichever stretches and by whichever CPU variant it is read; and no vocabulary makes a long word
 * slow.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpu.h"
#include "text/code_point.h"
#include "words/wp_encode.h"

static uint64_t seed = 1;
static uint32_t random_below(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % most);
}

/* ---- vocabularies ---- */

#define TOKENS 512
struct made {
    struct wp_source source;
    char *texts[TOKENS];
    uint32_t count;
    uint32_t *offsets;
    uint8_t *bytes;
    char prefix[8];
};

static uint32_t find(const struct made *made, const char *text, size_t count)
{
    for (uint32_t i = 0; i < made->count; i++)
        if (strlen(made->texts[i]) == count && !memcmp(made->texts[i], text, count))
            return i;
    return BPE_NONE;
}

static void token(struct made *made, const char *text)
{
    if (!*text || find(made, text, strlen(text)) != BPE_NONE)
        return;
    assert_true(made->count < TOKENS);
    made->texts[made->count++] = strdup(text);
}

static struct wp_model *finish(struct made *made, const char *prefix, uint64_t most, uint32_t unknown)
{
    struct tokmap_error error;
    struct wp_model *model;
    size_t bytes = 1;
    uint32_t at = 0;
    for (uint32_t i = 0; i < made->count; i++)
        bytes += strlen(made->texts[i]);
    made->offsets = malloc((made->count + 1) * sizeof *made->offsets);
    made->bytes = malloc(bytes);
    for (uint32_t i = 0; i < made->count; i++) {
        made->offsets[i] = at;
        memcpy(made->bytes + at, made->texts[i], strlen(made->texts[i]));
        at += (uint32_t)strlen(made->texts[i]);
    }
    made->offsets[made->count] = at;
    if (prefix)
        (void)snprintf(made->prefix, sizeof made->prefix, "%s", prefix);
    made->source = (struct wp_source){.path = "made",
                                      .vocabulary = made->count,
                                      .bytes = made->bytes,
                                      .offsets = made->offsets,
                                      .prefix = prefix ? (const uint8_t *)made->prefix : NULL,
                                      .prefix_bytes = prefix ? strlen(prefix) : 0,
                                      .characters_most = most,
                                      .unknown = unknown};
    assert_int_equal(wp_model_new(&model, &made->source, &error), TOKMAP_OK);
    return model;
}

static void unmake(struct made *made)
{
    for (uint32_t i = 0; i < made->count; i++)
        free(made->texts[i]);
    free(made->offsets);
    free(made->bytes);
    memset(made, 0, sizeof *made);
}

static const char *const letters[] = {"a", "b", "#", "c", "\xc3\xa9", "\xe4\xb8\xad"};

static void random_text(char *into, uint32_t most, uint32_t kinds)
{
    *into = '\0';
    for (uint32_t i = 1 + random_below(most); i; i--)
        strcat(into, letters[random_below(kinds)]);
}

static void random_vocabulary(struct made *made, const char *prefix)
{
    char text[128], rest[128];
    token(made, "[UNK]");
    for (uint32_t count = 1 + random_below(40), kinds = 1 + random_below(6); count; count--) {
        random_text(text, 1 + random_below(7), kinds);
        (void)snprintf(rest, sizeof rest, "%s%s", prefix, text);
        token(made, random_below(3) ? rest : text);
        if (random_below(3) == 0)
            token(made, text);
    }
}

/* ---- the definition ---- */

/* Writes the ids of a word as the reference finds them: the longest text that is a token, then a shorter one. */
static size_t define(const struct made *made, const uint8_t *word, size_t count, uint32_t *ids)
{
    const struct wp_source *source = &made->source;
    uint64_t characters = 0;
    size_t made_ids = 0, start = 0;
    char text[256];
    for (size_t i = 0; i < count; i++)
        characters += (word[i] & 0xC0) != 0x80;
    while (start < count && characters <= source->characters_most) {
        size_t end = count;
        uint32_t id = BPE_NONE;
        for (; end > start && id == BPE_NONE; end -= id == BPE_NONE) {
            const size_t prefix = start ? source->prefix_bytes : 0;
            memcpy(text, made->prefix, prefix);
            memcpy(text + prefix, word + start, end - start);
            id = start && !source->prefix ? BPE_NONE : find(made, text, prefix + end - start);
        }
        if (id == BPE_NONE)
            break;
        ids[made_ids++] = id;
        start = end;
    }
    if (start == count && characters <= source->characters_most)
        return made_ids;
    ids[0] = source->unknown == BPE_NONE ? source->vocabulary : source->unknown;
    return 1;
}

static void random_vocabularies(void **state)
{
    static const char *const prefixes[] = {"##", "##", "", "#", "a", "\xe4\xb8\xad"};
    uint32_t ids[256], wanted[256], unknown = 0, several = 0;
    char word[256];
    for (uint32_t round = 0; round < 3000; round++) {
        struct made made = {0};
        const char *prefix = prefixes[random_below(6)];
        random_vocabulary(&made, prefix);
        struct wp_model *model = finish(&made, random_below(8) ? prefix : NULL,
                                        random_below(4) ? UINT64_MAX : random_below(6), random_below(9) ? 0 : BPE_NONE);
        for (uint32_t i = 0; i < 40; i++) {
            random_text(word, 20, 1 + random_below(6));
            const size_t count = define(&made, (const uint8_t *)word, strlen(word), wanted);
            assert_int_equal(wp_merge(&model->head, NULL, (const uint8_t *)word, strlen(word), ids), count);
            assert_memory_equal(ids, wanted, count * sizeof *ids);
            unknown += count == 1 && wanted[0] == model->unknown;
            several += count > 1;
        }
        wp_model_free(model);
        unmake(&made);
    }
    assert_true(unknown > 1000 && several > 1000);
}

/* ---- texts ---- */

/* Splits a text by the table of characters, one at a time, and appends the ids of its words. */
static size_t split(const struct wp_model *model, const struct wp_characters *characters, const char *text,
                    size_t count, uint32_t *ids)
{
    uint8_t *word = malloc(4 * count + 16);
    size_t bytes, used = 0, made = 0;
    for (size_t at = 0; at <= count; at += bytes) {
        uint32_t code = ' ';
        bytes = 1;
        if (at < count)
            code = code_point_get((const uint8_t *)text + at, &bytes);
        const uint32_t entry = wp_character(characters, code), action = entry & ((1u << WP_ACTION_BITS) - 1);
        assert_in_range(action, WP_KEEP, WP_PUT_ALONE);
        const bool alone = action == WP_ALONE || action == WP_PUT_ALONE;
        const uint32_t left = action == WP_PUT || action == WP_PUT_ALONE ? entry >> WP_ACTION_BITS : code;
        if (action == WP_DROP)
            continue;
        if (used && (alone || action == WP_SPACE)) {
            made += wp_merge(&model->head, NULL, word, used, ids + made);
            used = 0;
        }
        if (action != WP_SPACE)
            used += code_point_put(word + used, left);
        if (alone) {
            made += wp_merge(&model->head, NULL, word, used, ids + made);
            used = 0;
        }
    }
    free(word);
    return made;
}

static const char *const parts[] = {"a",
                                    "b",
                                    "A",
                                    "c",
                                    "ab",
                                    " ",
                                    " ",
                                    "\n",
                                    ",",
                                    "'",
                                    "\x01",
                                    "\x7f",
                                    "\xc3\xa9",
                                    "\xe4\xb8\xad",
                                    "\xd0\x96",
                                    "\xcc\x81",
                                    "  ",
                                    "aaaaaaaaaaaaaaaaaaaa",
                                    "\xc2\xa0",
                                    "#",
                                    "\xe3\x80\x82",
                                    "\xf0\x9f\x98\x80",
                                    "bbbbbbb"};
#define PARTS (sizeof parts / sizeof parts[0])

/* Fills a text from a few kinds of parts. Returns its bytes. */
static size_t fill(char *text, size_t room)
{
    const char *drawn[6];
    size_t at = 0;
    for (uint32_t i = 0; i < 6; i++)
        drawn[i] = parts[random_below(PARTS)];
    const uint32_t kinds = 1 + random_below(6);
    while (at + 24 < room) {
        const char *one = drawn[random_below(kinds)];
        memcpy(text + at, one, strlen(one));
        at += strlen(one);
    }
    return at;
}

static void texts_compare(struct made *made, const struct wp_model *model, struct wp_rules rules)
{
    enum { ROOM = 40000 };
    struct tokmap_error error;
    struct wp_characters *characters;
    char *text = malloc(ROOM);
    uint32_t *wanted = malloc(4 * ROOM * sizeof *wanted);
    uint16_t *ids = malloc(4 * ROOM * sizeof *ids);
    assert_int_equal(wp_characters_new(&characters, rules, &error), TOKMAP_OK);
    for (enum cpu_variant variant = CPU_SCALAR; variant <= cpu_variant_best(); variant++) {
        struct wp_state *state;
        assert_int_equal(wp_state_new(&state, model, characters, variant, &error), TOKMAP_OK);
        for (uint32_t round = 0; round < 60; round++) {
            const size_t count = fill(text, 30 + random_below(round % 4 ? 300 : ROOM - 100));
            const size_t found = split(model, characters, text, count, wanted);
            struct ids_out out = {.tokens = ids, .room = round % 2 ? count : (uint64_t)4 * ROOM};
            bool done;
            assert_int_equal(wp_encode_text(state, (const uint8_t *)text, count, &out, &done, &error), TOKMAP_OK);
            assert_true(done);
            assert_int_equal(out.count, found);
            for (size_t i = 0; i < found; i++)
                assert_int_equal(ids[i], wanted[i]);
        }
        wp_state_free(state);
    }
    wp_characters_free(characters);
    free(text);
    free(wanted);
    free(ids);
}

static void texts(void **state)
{
    for (uint32_t rules = 0; rules < 16; rules++) {
        struct made made = {0};
        random_vocabulary(&made, "##");
        for (uint32_t i = 0; i < PARTS; i++)
            if (random_below(2))
                token(&made, parts[i]);
        token(&made, "##a");
        token(&made, "##b");
        struct wp_model *model = finish(&made, "##", rules % 3 ? 100 : UINT64_MAX, 0);
        texts_compare(&made, model, (struct wp_rules){rules & 1, rules & 2, rules & 4, rules & 8});
        wp_model_free(model);
        unmake(&made);
    }
}

/* Two marks in the wrong order are noticed wherever the block ends: the text is given back to the normalizer. */
static void marks(void **state)
{
    static const char wrong[] = "x\xe3\x80\xae\xf0\x9d\x85\xa5", right[] = "x\xf0\x9d\x85\xa5\xe3\x80\xae";
    enum { ROOM = SCAN_BYTES + 300 };
    struct tokmap_error error;
    struct wp_characters *characters;
    struct wp_state *encoder;
    struct made made = {0};
    static char text[ROOM + 16];
    static uint16_t ids[ROOM + 16];
    token(&made, "[UNK]");
    struct wp_model *model = finish(&made, "##", UINT64_MAX, 0);
    assert_int_equal(wp_characters_new(&characters, (struct wp_rules){true, true, true, true}, &error), TOKMAP_OK);
    assert_int_equal(wp_state_new(&encoder, model, characters, cpu_variant_best(), &error), TOKMAP_OK);
    for (uint32_t spaced = 0; spaced < 2; spaced++)
        for (size_t at = SCAN_BYTES - 200; at < SCAN_BYTES + 20; at++)
            for (uint32_t good = 0; good < 2; good++) {
                const size_t front = spaced ? at + at / 64 : at; /* spaces are not in the block */
                memset(text, 'a', front);
                for (size_t i = 64; spaced && i < front; i += 65)
                    text[i] = ' ';
                memcpy(text + front, good ? right : wrong, sizeof wrong - 1);
                struct ids_out out = {.tokens = ids, .room = ROOM};
                bool done;
                assert_int_equal(
                    wp_encode_text(encoder, (const uint8_t *)text, front + sizeof wrong - 1, &out, &done, &error),
                    TOKMAP_OK);
                assert_int_equal(done, good);
            }
    wp_state_free(encoder);
    wp_characters_free(characters);
    wp_model_free(model);
    unmake(&made);
}

/* ---- long words ---- */

/* Encodes a word of a million letters with vocabularies in which one token seems to fit at each of them for 60,000
 * letters, and then does not. */
static void long_words(void **state)
{
    enum { COUNT = 1000000, LONG = 60000 };
    uint8_t *word = malloc(COUNT);
    uint32_t *ids = malloc(COUNT * sizeof *ids);
    char *far = malloc(LONG + 8);
    memset(word, 'a', COUNT);
    for (uint32_t round = 0; round < 3; round++) {
        struct made made = {0};
        memset(far, 'a', LONG + 3);
        memcpy(far, "##", 2);
        strcpy(far + LONG, "b");
        token(&made, "[UNK]");
        token(&made, "a");
        token(&made, "##a");
        token(&made, far);
        if (round == 1)
            token(&made, "##aa");
        struct wp_model *model = finish(&made, "##", UINT64_MAX, 0);
        word[COUNT - 1] = round == 2 ? 'x' : 'a';
        const size_t count = wp_merge(&model->head, NULL, word, COUNT, ids);
        assert_int_equal(count, round == 2 ? 1 : round == 1 ? 1 + COUNT / 2 : COUNT);
        wp_model_free(model);
        unmake(&made);
    }
    free(word);
    free(ids);
    free(far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_vocabularies), cmocka_unit_test(texts),
                                       cmocka_unit_test(marks), cmocka_unit_test(long_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
