/* SPDX-License-Identifier: MIT */
/* Fill in the middle: cuts against a plain count of characters, their uniformity, and texts that come back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "encode/fim.h"

#define TEXT_MOST 400
enum { PREFIX = 1000, MIDDLE, SUFFIX, END };

static uint64_t seed = 88172645463325252u;

static uint64_t some(uint64_t below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (seed >> 8) % below;
}

static uint64_t text_make(char *text)
{
    static const char *const characters[] = {"a", "\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "b c"};
    uint64_t bytes = 0;
    for (uint64_t i = some(90); i; i--) {
        const char *character = characters[some(6)];
        memcpy(text + bytes, character, strlen(character));
        bytes += strlen(character);
    }
    return bytes;
}

/* Where character `number` of a text begins, found the slow way. */
static uint64_t place_of(const char *text, uint64_t bytes, uint64_t number)
{
    uint64_t at = 0;
    while (at < bytes && number--)
        for (at++; at < bytes && ((unsigned char)text[at] & 0xC0) == 0x80;)
            at++;
    return at;
}

static uint64_t drawn(uint64_t hash, uint64_t piece, uint64_t number)
{
    uint8_t key[16];
    store64(key, piece);
    store64(key + 8, number);
    return hash64_seeded(key, sizeof key, hash);
}

static struct fim fim_of(const char *text, uint64_t unit)
{
    struct fim fim = {.seed = 7, .unit = unit, .prefix_id = PREFIX, .middle_id = MIDDLE, .suffix_id = SUFFIX};
    assert_null(fim_parse(text, &fim));
    fim.end_id = unit ? END : TOKMAP_NO_ID;
    return fim;
}

/* The stretches are those that the formulas of fim.h say. */
static void test_stretches(void **state)
{
    (void)state;
    static const uint64_t units[] = {0, 1, 2, 7, 30, 1000};
    char text[TEXT_MOST];
    for (uint64_t round = 0; round < 20000; round++) {
        const struct fim fim = fim_of("0.5,spm=0.25", units[round % 6]);
        const uint64_t bytes = text_make(text), hash = hash64_seeded(text, bytes, 7);
        struct fim_walk walk;
        struct fim_stretch stretch;
        uint64_t at = 0, piece = 0, plain = 0;
        fim_begin(&walk, &fim, text, bytes);
        while (fim_next(&walk, &stretch)) {
            const uint64_t *place = stretch.place;
            assert_int_equal(place[0], at);
            assert_true(place[3] > at);
            while (at < place[3]) {
                const uint64_t length = fim.unit ? place_of(text + at, bytes - at, fim.unit) : bytes - at;
                const bool rearranged = drawn(hash, piece, 0) < (uint64_t)1 << 63;
                assert_int_equal(rearranged, strcmp(stretch.form, "w") != 0);
                if (rearranged) {
                    uint64_t count = 0;
                    while (place_of(text + at, length, count) < length)
                        count++;
                    uint64_t one = (uint64_t)((unsigned __int128)drawn(hash, piece, 2) * (count + 1) >> 64);
                    uint64_t two = (uint64_t)((unsigned __int128)drawn(hash, piece, 3) * (count + 1) >> 64);
                    assert_int_equal(place[1], at + place_of(text + at, length, min64(one, two)));
                    assert_int_equal(place[2], at + place_of(text + at, length, max64(one, two)));
                    assert_int_equal(place[3], at + length);
                    assert_string_equal(stretch.form, drawn(hash, piece, 1) < (uint64_t)1 << 62 ? "PSsMpm" : "PpSsMm");
                }
                at += length;
                piece++;
            }
            plain = strcmp(stretch.form, "w") ? 0 : plain + 1;
            assert_true(plain < 2); /* neighbors are one stretch */
        }
        assert_int_equal(at, bytes);
    }
}

/* Over many texts, the two cuts together are uniform over the places, and so is how far they are apart: chi-squared
 * below what one in a million of uniform ones exceeds, for 100 degrees of freedom and 20. */
static void test_uniform(void **state)
{
    (void)state;
    enum { CHARACTERS = 100, TEXTS = 200000 };
    static uint64_t places[CHARACTERS + 1], pairs[21];
    const struct fim fim = fim_of("1,spm=0.3", 0);
    char text[CHARACTERS + 1];
    uint64_t spm = 0;
    for (uint64_t i = 0; i < TEXTS; i++) {
        struct fim_walk walk;
        struct fim_stretch stretch;
        (void)snprintf(text, sizeof text, "%0*llu", CHARACTERS, (unsigned long long)i);
        fim_begin(&walk, &fim, text, CHARACTERS);
        assert_true(fim_next(&walk, &stretch));
        places[stretch.place[1]]++;
        places[stretch.place[2]]++;
        /* Of two uniform cuts, this is uniform over 0 to 20 but for rounding of the places. */
        const double apart = (double)(stretch.place[2] - stretch.place[1]) / CHARACTERS;
        pairs[(uint64_t)(20 * (1 - (1 - apart) * (1 - apart)))]++;
        spm += !strcmp(stretch.form, "PSsMpm");
    }
    double chi = 0;
    const double expected = 2.0 * TEXTS / (CHARACTERS + 1);
    for (uint64_t i = 0; i <= CHARACTERS; i++)
        chi += ((double)places[i] - expected) * ((double)places[i] - expected) / expected;
    assert_true(chi > 40 && chi < 180);
    assert_true(spm > TEXTS * 0.3 - 1000 && spm < TEXTS * 0.3 + 1000); /* 5 standard deviations */
    for (uint64_t i = 0; i < 20; i++)
        assert_true(pairs[i] > TEXTS / 20 / 2 && pairs[i] < TEXTS / 20 * 2);
}

/* Writes the tokens of a text, of which each byte is one. Returns their number. */
static uint64_t tokens_make(const struct fim *fim, const char *text, uint64_t bytes, uint32_t *tokens)
{
    struct fim_walk walk;
    struct fim_stretch stretch;
    uint64_t count = 0;
    fim_begin(&walk, fim, text, bytes);
    while (fim_next(&walk, &stretch)) {
        for (const char *at = stretch.form; *at; at++) {
            uint64_t from = 0, to = 0;
            switch (*at) {
            case 'P':
                tokens[count++] = PREFIX;
                break;
            case 'M':
                tokens[count++] = MIDDLE;
                break;
            case 'S':
                tokens[count++] = SUFFIX;
                break;
            case 'p':
                from = stretch.place[0], to = stretch.place[1];
                break;
            case 'm':
                from = stretch.place[1], to = stretch.place[2];
                break;
            case 's':
                from = stretch.place[2], to = stretch.place[3];
                break;
            default:
                from = stretch.place[0], to = stretch.place[3];
            }
            while (from < to)
                tokens[count++] = (unsigned char)text[from++];
        }
        if (strcmp(stretch.form, "w") && fim->end_id != TOKMAP_NO_ID && (fim->end_always || stretch.place[3] < bytes))
            tokens[count++] = END;
    }
    return count;
}

static void test_texts_come_back(void **state)
{
    (void)state;
    static const uint64_t units[] = {0, 1, 3, 20};
    static uint32_t tokens[8 * TEXT_MOST];
    char text[TEXT_MOST];
    struct fim_reader reader = {.count = 0};
    uint64_t rearranged = 0;
    for (uint64_t round = 0; round < 20000; round++) {
        struct fim fim = fim_of("0.7", units[round % 4]);
        struct tokmap_error error;
        fim.spm_form = round % 3 ? "PSsMpm" : "SsPpm";
        fim.end_always = round % 5 == 0;
        fim.end_id = fim.end_always ? END : fim.end_id;
        const uint64_t bytes = text_make(text), count = tokens_make(&fim, text, bytes, tokens);
        const struct fim_marks marks = {true, fim.unit != 0, PREFIX, MIDDLE, SUFFIX, fim.end_id};
        const uint64_t some_first = count ? some(count) : 0;
        fim_reader_begin(&reader, &marks);
        assert_int_equal(fim_reader_add(&reader, tokens, 4, some_first, &error), TOKMAP_OK);
        assert_int_equal(fim_reader_add(&reader, tokens + some_first, 4, count - some_first, &error), TOKMAP_OK);
        assert_int_equal(fim_reader_end(&reader, &error), TOKMAP_OK);
        assert_false(reader.wrong);
        uint64_t at = 0;
        for (uint64_t i = 0; i < reader.count; i++)
            for (uint64_t k = 0; k < reader.extents[i].tokens; k++, at++)
                assert_true(at < bytes && tokens[reader.extents[i].first_token + k] == (unsigned char)text[at]);
        assert_int_equal(at, bytes);
        rearranged += reader.psm + reader.spm;
    }
    assert_true(rearranged > 10000);
    fim_reader_free(&reader);
}

/* Whatever the tokens are, the extents are inside of them and do not overlap. */
static void test_any_tokens(void **state)
{
    (void)state;
    struct fim_reader reader = {.count = 0};
    for (uint64_t round = 0; round < 200000; round++) {
        uint16_t tokens[24];
        uint8_t seen[24] = {0};
        struct tokmap_error error;
        const uint64_t count = some(24);
        const struct fim_marks marks = {true, round % 2, PREFIX, MIDDLE, round % 7 ? SUFFIX : PREFIX, END};
        for (uint64_t i = 0; i < count; i++)
            tokens[i] = (uint16_t)(some(2) ? PREFIX + some(4) : 1);
        fim_reader_begin(&reader, &marks);
        assert_int_equal(fim_reader_add(&reader, tokens, 2, count, &error), TOKMAP_OK);
        assert_int_equal(fim_reader_end(&reader, &error), TOKMAP_OK);
        for (uint64_t i = 0; i < reader.count; i++)
            for (uint64_t k = 0; k < reader.extents[i].tokens; k++) {
                assert_true(reader.extents[i].first_token + k < count);
                assert_int_equal(seen[reader.extents[i].first_token + k]++, 0);
            }
        for (uint64_t i = 0; i < count && reader.wrong; i++)
            assert_int_equal(seen[i], 1);
    }
    fim_reader_free(&reader);
}

static void test_parse(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",           "0",          "1.1",         "x",
                                        "0.5,",       "0.5,spm=",   "0.5,psm=1",   "0.5,spm=1.01",
                                        "0.5,spm=-1", "0.5 ,spm=1", "0.5,spm=1,x", "101%"};
    struct fim fim;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_non_null(fim_parse(wrong[i], &fim));
    assert_null(fim_parse("50%,spm=0", &fim));
    assert_string_equal(fim.rate_text, "0.5");
    assert_int_equal(fim.rate, SHARE_ONE / 2);
    assert_int_equal(fim.spm, 0);
    assert_false(share_has(0, 0));
    assert_true(share_has(SHARE_ONE, UINT64_MAX));
    assert_true(share_has(SHARE_ONE / 2, ((uint64_t)1 << 63) - 1));
    assert_false(share_has(SHARE_ONE / 2, (uint64_t)1 << 63));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),           cmocka_unit_test(test_stretches),  cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_texts_come_back), cmocka_unit_test(test_any_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
