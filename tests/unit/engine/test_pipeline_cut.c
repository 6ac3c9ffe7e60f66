/* SPDX-License-Identifier: MIT */
/* test_pipeline_cut.c - documents that are cut where tokenizer_cut allows it have the same ids as the whole documents.
 * Covers every rule set of the scanner with a vocabulary that merges across any border, and files with NFC, added
 * tokens, and character pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "pretokenize/pretokenizer.h"
#include "pretokenize/split_rules.h"
#include "support/awkward_text.h"
#include "text/code_point.h"
#include "text/utf8.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/vocabulary.h"

#define TEXT_MOST 4000
#define TOKENS 1500

static char path[600];
static struct tokenizer *tokenizer;
static struct tokenizer_state *encoder;
static struct tokenizer_info info;

static void write_file(const char *text, size_t bytes)
{
    int fd;
    (void)os_unlink(path);
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_write(fd, text, bytes), 0);
    os_close(fd);
}

static void open_tokenizer(const struct tokmap_tokenizer_options *options)
{
    struct tokmap_error error;
    if (vocabulary_open(&tokenizer, path, options, &error))
        fail_msg("%s", error.message);
    info = info_of_tokenizer(tokenizer);
    assert_int_equal(tokenizer_state_new(&encoder, tokenizer, &error), TOKMAP_OK);
}

static void close_tokenizer(void)
{
    tokenizer_state_free(encoder);
    tokenizer_close(tokenizer);
}

/* Encodes a part and returns the number of ids. */
static uint64_t encode(const uint8_t *text, size_t count, bool resumed, bool unfinished, uint8_t *ids, uint64_t room)
{
    struct tokmap_error error;
    uint64_t end;
    const struct tokmap_text document = {(const char *)text, count};
    const struct tokenizer_batch batch = {&document, 1, resumed, unfinished};
    struct tokenizer_out out = {.tokens = ids,
                                .capacity = room,
                                .ends = &end,
                                .has_prefix = true,
                                .has_suffix = true,
                                .prefix = 1,
                                .suffix = 2};
    if (tokenizer_encode(encoder, &batch, &out, &error))
        fail_msg("%s", error.message);
    return out.count;
}

/* Encodes a text as a whole and in parts, where each cut is chosen among the next `known` bytes, and compares the ids.
 * Returns the number of cuts. */
static size_t compare(const uint8_t *text, size_t count, size_t known)
{
    const uint64_t room = (uint64_t)count * info.ids_per_byte_most + 64;
    uint8_t *whole = malloc(room * info.width), *parts = malloc(2 * room * info.width);
    assert_true(whole && parts);
    const uint64_t wanted = encode(text, count, false, false, whole, room);
    uint64_t made = 0;
    size_t at = 0, cuts = 0;
    while (at < count) {
        const size_t seen = count - at < known ? count - at : known;
        size_t part = (size_t)tokenizer_cut(tokenizer, (const char *)text + at, seen);
        assert_true(part < seen || !part);
        part = part ? part : count - at;
        cuts += at + part < count;
        made += encode(text + at, part, at != 0, at + part < count, parts + made * info.width, 2 * room - made);
        at += part;
    }
    if (made != wanted || memcmp(whole, parts, wanted * info.width) != 0)
        fail_msg("%s: in parts of at most %zu bytes the text has %llu ids that are not the %llu of the whole: %.*s",
                 info.scanner, known, (unsigned long long)made, (unsigned long long)wanted, (int)count,
                 (const char *)text);
    free(whole);
    free(parts);
    return cuts;
}

static size_t compare_texts(int rounds)
{
    static uint8_t text[TEXT_MOST];
    size_t cuts = 0;
    for (int round = 0; round < rounds; round++) {
        const size_t count = 1 + awkward_below(awkward_below(4) ? 60 : TEXT_MOST);
        awkward_text(text, count);
        /* Words and spaces, so that there are places for cuts. */
        for (size_t i = 0; i + 8 < count && round % 2; i += 1 + awkward_below(40)) {
            static const char *const common[] = {"e x",  "s\nt",       "A  b",  "\xE4\xB8\xAD\xE3\x80\x82",
                                                 "d \n", "\xD0\xB6 a", "x the."};
            const char *put = common[awkward_below(7)];
            if ((text[i] & 0xC0) != 0x80 && (text[i + strlen(put)] & 0xC0) != 0x80)
                memcpy(text + i, put, strlen(put));
        }
        if (utf8_valid_prefix((const char *)text, count) == count)
            cuts += compare(text, count, 1 + awkward_below((uint32_t)count));
    }
    return cuts;
}

/* ---- rank files ---- */

static size_t base64(char *into, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t made = 0;
    for (size_t i = 0; i < count; i += 3) {
        const uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (i + 2 < count ? bytes[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            into[made++] = (size_t)k <= count - i ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
    return made;
}

/* Writes a rank file: all bytes, then parts of awkward texts together with all their beginnings, so that merges can
 * make them. */
static void ranks_write(void)
{
    static uint8_t tokens[TOKENS][8], text[512];
    static uint8_t lengths[TOKENS];
    static char file[TOKENS * 24];
    size_t count = 0, used = 0;
    for (; count < 256; count++) {
        tokens[count][0] = (uint8_t)count;
        lengths[count] = 1;
    }
    while (count < TOKENS) {
        awkward_text(text, sizeof text);
        const size_t from = awkward_below(sizeof text - 8), bytes = 2 + awkward_below(6);
        for (size_t length = 2; length <= bytes && count < TOKENS; length++) {
            bool there = false;
            for (size_t i = 0; i < count && !there; i++)
                there = lengths[i] == length && !memcmp(tokens[i], text + from, length);
            if (there)
                continue;
            memcpy(tokens[count], text + from, length);
            lengths[count++] = (uint8_t)length;
        }
    }
    for (size_t i = 0; i < count; i++) {
        used += base64(file + used, tokens[i], lengths[i]);
        used += (size_t)snprintf(file + used, 16, " %zu\n", i);
    }
    write_file(file, used);
}

static void rules(void **state)
{
    awkward_seed(21);
    for (const char *const *name = split_rules_names(); *name; name++) {
        const struct tokmap_tokenizer_options options = {.pattern = *name};
        ranks_write();
        open_tokenizer(&options);
        assert_true(info.cuts);
        assert_true(compare_texts(awkward_rounds(600)) > 0);
        close_tokenizer();
    }
}

/* ---- tokenizer.json ---- */

/* Writes a tokenizer.json with these parts and some merges. Its vocabulary has all bytes or, with `characters`, ASCII,
 * U+2581, and tokens for bytes. */
static void json_write(const char *normalizer, const char *pre_tokenizer, const char *added, bool characters,
                       const char *model)
{
    static char file[60000];
    size_t used =
        (size_t)snprintf(file, sizeof file,
                         "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,"
                         "\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":null,"
                         "\"decoder\":null,\"model\":{\"type\":\"BPE\",%s\"vocab\":{",
                         added, normalizer, pre_tokenizer, model);
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[5] = {0};
        text[code_point_put(text, byte_character((uint8_t)byte))] = 0;
        used += characters ? (size_t)snprintf(file + used, sizeof file - used, "\"<0x%02X>\":%u,", byte, byte)
                           : (size_t)snprintf(file + used, sizeof file - used, "\"%s%s\":%u,",
                                              *text == '"' || *text == '\\' ? "\\" : "", (char *)text, byte);
    }
    for (unsigned c = 33; c < 127 && characters; c++)
        used += (size_t)snprintf(file + used, sizeof file - used, "\"%s%c\":%u,", c == '"' || c == '\\' ? "\\" : "",
                                 (char)c, 223 + c);
    const char *space = characters ? "\xE2\x96\x81" : "\xC4\xA0";
    if (characters)
        used += (size_t)snprintf(file + used, sizeof file - used, "\"%s\":399,", space);
    used += (size_t)snprintf(
        file + used, sizeof file - used,
        "\"th\":400,\"the\":401,\"%sthe\":402,\"%s%s\":403,\"re\":404,\"ab\":405,\"%sab\":406,\"%s.\":407},"
        "\"merges\":[\"t h\",\"th e\",\"%s the\",\"%s %s\",\"r e\",\"a b\",\"%s ab\",\"%s .\"]}}",
        space, space, space, space, space, space, space, space, space, space);
    assert_true(used < sizeof file);
    write_file(file, used);
}

#define TOKEN(text, single, left, right, normal)                                                                       \
    "{\"id\":0,\"content\":\"" text "\",\"single_word\":" #single ",\"lstrip\":" #left ",\"rstrip\":" #right           \
    ",\"normalized\":" #normal ",\"special\":false}"

static void parts(void **state)
{
    static const char none[] = "null", nfc[] = "{\"type\":\"NFC\"}",
                      gpt2[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    static const char llama[] =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]}";
    static const char metaspace[] =
        "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\"}";
    static const char first[] =
        "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"first\"}";
    /* clang-format off */
    static const struct {
        const char *normalizer, *pre_tokenizer, *added, *model;
        bool characters, cuts;
    } cases[] = {
        {nfc, gpt2, "", "", false, true},
        {nfc, gpt2, TOKEN("the ", false, false, false, true), "", false, true},            /* cuts before newlines remain */
        {none, gpt2, TOKEN("  ", false, false, false, false) "," TOKEN("\\n\\n", false, true, true, true), "", false, true},
        {none, gpt2, TOKEN(" the", true, false, false, false) "," TOKEN("ab", true, true, false, true), "", false, true},
        {none, gpt2, TOKEN("ab", false, false, true, false), "", false, false},
        {nfc, gpt2, TOKEN("<s>", false, true, true, false) "," TOKEN("a\\nb", false, false, false, true), "", false, true},
        {none, "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", "", false, false},
        {"{\"type\":\"Prepend\",\"prepend\":\"x\"}", gpt2, "", "", false, false},
        {llama, none, "", "\"byte_fallback\":true,", true, true},
        {llama, none, TOKEN("<s>", false, false, false, false) "," TOKEN("  ", false, false, false, false),
         "\"byte_fallback\":true,", true, true},
        {llama, none, TOKEN("ab", false, false, false, false), "\"byte_fallback\":true,", true, false},
        {llama, none, TOKEN("<s>", false, false, false, true), "\"byte_fallback\":true,", true, false},
        {llama, none, "", "\"byte_fallback\":true,\"ignore_merges\":true,", true, false},
        {none, metaspace, "", "\"byte_fallback\":true,", true, true},
        {none, first, TOKEN("ab", false, false, false, false), "\"byte_fallback\":true,", true, false},
    };
    /* clang-format on */
    awkward_seed(22);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_write(cases[i].normalizer, cases[i].pre_tokenizer, cases[i].added, cases[i].characters, cases[i].model);
        open_tokenizer(NULL);
        assert_int_equal(info.cuts, cases[i].cuts);
        const size_t cuts = compare_texts(awkward_rounds(800));
        assert_true(cases[i].cuts ? cuts > 0 : !cuts);
        /* The added tokens of the cases above, before and after possible cuts. */
        static const char around[] = "the ab ab the abab ab.\nab  ab\n\nab the <s>the ab <s> a\nb ab";
        for (size_t known = 1; known <= sizeof around - 1; known++)
            (void)compare((const uint8_t *)around, sizeof around - 1, known);
        close_tokenizer();
    }
}

/* ---- long documents, which the pipeline encodes in stretches ---- */

#define LONG_TEXT ((size_t)400 << 10)

/* Fills the text with awkward texts of various lengths and words between them. */
static void long_text(uint8_t *text, size_t count)
{
    static const char between[] = "e \xC3\xA9 e\xCC\x81 the <s> ";
    for (size_t at = 0; at < count;) {
        size_t bytes = 1 + awkward_below(TEXT_MOST);
        bytes = bytes < count - at ? bytes : count - at;
        awkward_text(text + at, bytes);
        at += bytes;
        for (size_t i = 0; i + 1 < sizeof between && count - at >= sizeof between; i++)
            text[at++] = (uint8_t)between[i];
    }
}

/* A long document has the same ids, however it is cut. */
static void stretches(void **state)
{
    static const char gpt2[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    static const char nfc[] = "{\"type\":\"NFC\"}";
    static const char llama[] =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]}";
    static uint8_t text[LONG_TEXT];
    awkward_seed(23);
    for (int kind = 0; kind < 3; kind++) {
        if (kind < 2)
            json_write(kind ? nfc : "null", gpt2, TOKEN("<s>", false, false, false, false), false, "");
        else
            json_write(llama, "null", TOKEN("<s>", false, false, false, false), true, "\"byte_fallback\":true,");
        open_tokenizer(NULL);
        assert_true(info.cuts);
        long_text(text, sizeof text);
        (void)compare(text, sizeof text, 3000);
        (void)compare(text, sizeof text, (size_t)200 << 10);
        memset(text, '1', sizeof text); /* cannot be cut anywhere */
        (void)compare(text, sizeof text, (size_t)200 << 10);
        close_tokenizer();
    }
}

/* The error for a special token reports its offset in the document, not in the stretch. */
static void special_far(void **state)
{
    const struct tokmap_tokenizer_options options = {.special = TOKMAP_SPECIAL_ERROR};
    static char text[LONG_TEXT], ids[2 * LONG_TEXT];
    uint64_t end;
    struct tokmap_error error;
    const struct tokmap_text document = {text, sizeof text};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    struct tokenizer_out out = {.tokens = ids, .capacity = sizeof text, .ends = &end};
    json_write("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
               "{\"id\":0,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
               "\"normalized\":false,\"special\":true}",
               false, "");
    open_tokenizer(&options);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "ab "[i % 3];
    memcpy(text + 300000, "<s>", 3);
    assert_int_equal(info.width, 2);
    assert_int_equal(tokenizer_encode(encoder, &batch, &out, &error), TOKMAP_ERROR_INPUT);
    assert_non_null(strstr(error.message, "about byte 300000"));
    close_tokenizer();
}

/* A cut needs the characters on both sides of it, and no byte more. */
static void places(void **state)
{
    const struct tokmap_tokenizer_options options = {.pattern = "gpt2"};
    ranks_write();
    open_tokenizer(&options);
    assert_int_equal(tokenizer_cut(tokenizer, "ab cd", 5), 2);
    assert_int_equal(tokenizer_cut(tokenizer, "ab cd", 3), 2);
    assert_int_equal(tokenizer_cut(tokenizer, "ab cd", 2), 0);
    assert_int_equal(tokenizer_cut(tokenizer, "ab  \n", 5), 2);
    assert_int_equal(tokenizer_cut(tokenizer, "a\n\n", 3), 1);
    assert_int_equal(tokenizer_cut(tokenizer, "1 2", 3), 0);
    assert_int_equal(tokenizer_cut(tokenizer, " a", 2), 0);
    assert_int_equal(tokenizer_cut(tokenizer, "\x80\x80 a", 4), 0);
    assert_int_equal(tokenizer_cut(tokenizer, "\xE4\xB8\xAD\xE3\x80\x82", 6), 3);
    assert_int_equal(tokenizer_cut(tokenizer, "\xE4\xB8\xAD\xE3\x80\x82", 5), 0);
    assert_int_equal(tokenizer_cut(tokenizer, "", 0), 0);
    close_tokenizer();
}

int main(void)
{
    const char *scratch = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test_cut.%llu", scratch ? scratch : "/tmp", (unsigned long long)os_clock_ns());
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules), cmocka_unit_test(parts), cmocka_unit_test(places),
                                       cmocka_unit_test(stretches), cmocka_unit_test(special_far)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)os_unlink(path);
    return failed;
}
