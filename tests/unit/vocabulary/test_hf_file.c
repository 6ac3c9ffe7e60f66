/* SPDX-License-Identifier: MIT */
/* test_hf_file.c - tokenizer.json files: each field that is wrong or unsupported is refused by name, damaged files
 * do no harm, and small files encode as expected, under each policy for special tokens. The files are written here. */
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
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/vocabulary.h"

static char folder[512];
static char path[640];

static void write_file(const char *name, const char *text, size_t bytes)
{
    int fd;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)os_unlink(path);
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_write(fd, text, bytes), 0);
    os_close(fd);
}

/* ---- a small tokenizer: all bytes, then "ab", "abc", " a". Tests replace parts of its file ---- */

struct parts {
    const char *before, *added, *normalizer, *pre_tokenizer, *post_processor, *model, *vocabulary, *merges, *after;
    const char *truncation, *padding; /* NULL: null */
};
#define SOUND                                                                                                          \
    {                                                                                                                  \
        "", "", "null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}", "null", "", "",   \
            "[\"a b\",\"ab c\",\"\xC4\xA0 a\"]", "", NULL, NULL                                                        \
    }

static size_t make(char *into, size_t room, const struct parts *parts)
{
    int used =
        snprintf(into, room,
                 "{\"version\":\"1.0\",%s\"truncation\":%s,\"padding\":%s,\"added_tokens\":[%s],"
                 "\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":%s,\"decoder\":null,"
                 "\"model\":{%s%s\"vocab\":{",
                 parts->before, parts->truncation ? parts->truncation : "null",
                 parts->padding ? parts->padding : "null", parts->added, parts->normalizer, parts->pre_tokenizer,
                 parts->post_processor, strncmp(parts->model, "\"type\"", 6) ? "\"type\":\"BPE\"," : "", parts->model);
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[5] = {0};
        const size_t bytes = code_point_put(text, byte_character((uint8_t)byte));
        text[bytes] = 0;
        used += snprintf(into + used, room - (size_t)used, "\"%s%s\":%u,", *text == '"' || *text == '\\' ? "\\" : "",
                         (char *)text, byte);
    }
    used += snprintf(into + used, room - (size_t)used,
                     "%s\"ab\":256,\"abc\":257,\"\xC4\xA0"
                     "a\":258},\"merges\":%s}%s}",
                     parts->vocabulary, parts->merges, parts->after);
    assert_true((size_t)used < room);
    return (size_t)used;
}

static enum tokmap_status open_parts(struct tokenizer **tokenizer, const struct parts *parts,
                                     enum tokmap_special special, struct tokmap_error *error)
{
    static char text[65536];
    const struct tokmap_tokenizer_options options = {.special = special};
    write_file("tokenizer.json", text, make(text, sizeof text, parts));
    return vocabulary_open(tokenizer, path, &options, error);
}

static void refused(struct parts parts, enum tokmap_status status, const char *word)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    const enum tokmap_status got = open_parts(&tokenizer, &parts, TOKMAP_SPECIAL_TEXT, &error);
    if (got != status || !strstr(error.message, word))
        fail_msg("expected %d and '%s', got %d: %s", (int)status, word, (int)got, error.message);
    assert_null(tokenizer);
}
#define REFUSED(field, value, status, word)                                                                            \
    do {                                                                                                               \
        struct parts parts_ = SOUND;                                                                                   \
        parts_.field = value;                                                                                          \
        refused(parts_, status, word);                                                                                 \
    } while (0)

static void fields(void **state)
{
    const enum tokmap_status no = TOKMAP_ERROR_UNSUPPORTED, bad = TOKMAP_ERROR_FORMAT;
    REFUSED(normalizer, "{\"type\":\"Odd\"}", no, "normalizer.type is 'Odd'");
    REFUSED(normalizer, "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Odd\"}]}", no, "Odd");
    REFUSED(normalizer, "{\"type\":\"Strip\",\"strip_left\":true}", bad, "strip_right");
    REFUSED(normalizer, "{\"type\":\"Strip\",\"strip_right\":true}", bad, "strip_left");
    REFUSED(normalizer, "{\"type\":\"Strip\",\"strip_left\":1,\"strip_right\":true}", bad, "");
    REFUSED(normalizer, "{\"type\":\"Precompiled\"}", bad, "precompiled_charsmap is missing");
    REFUSED(normalizer, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"?\"}", bad, "not base64");
    REFUSED(normalizer, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}", bad, "trie of a wrong size");
    REFUSED(normalizer, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":null}", bad, "");
    REFUSED(normalizer, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}", bad, "content");
#ifdef HAVE_PCRE2
    REFUSED(normalizer, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"a\"}", no, "pattern");
    REFUSED(normalizer, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*\"},\"content\":\"a\"}", no, "pattern");
    REFUSED(normalizer, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"a\"}", no, "pattern");
#endif
    REFUSED(normalizer, "{}", no, "type");
    REFUSED(post_processor, "{\"type\":\"BertProcessing\",\"sep\":[]}", bad, "a token and its id");
    REFUSED(post_processor, "{\"type\":\"BertProcessing\",\"cls\":[\"a\"]}", bad, "a token and its id");
    REFUSED(post_processor, "{\"type\":\"BertProcessing\",\"cls\":[\"a\",1,2]}", bad, "a token and its id");
    REFUSED(normalizer, " \n 7", bad, "an object is expected here, as the value of \"normalizer\"");
    REFUSED(pre_tokenizer, "{\"type\":\"ByteLevel\"}", bad, "add_prefix_space");
    REFUSED(pre_tokenizer, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Odd\",\"invert\":false}",
            bad, "behavior");
    REFUSED(pre_tokenizer,
            "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
            "{\"type\":\"Metaspace\",\"replacement\":\"_\"}]}",
            no, "Metaspace");
    REFUSED(pre_tokenizer,
            "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\",\"replacement\":\"_\"},"
            "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"}]}",
            no, "prepend_scheme");
    REFUSED(pre_tokenizer, "{\"type\":\"FixedLength\",\"length\":0}", bad, "at least 1");
    REFUSED(pre_tokenizer, "{\"type\":\"FixedLength\",\"length\":-1}", bad, "");
    REFUSED(model, "\"dropout\":0.1,", no, "dropout");
    REFUSED(model, "\"continuing_subword_prefix\":\"##\",", no, "continuing_subword_prefix");
    REFUSED(model, "\"end_of_word_suffix\":\"</w>\",\"unk_token\":\"absent\",", no, "model.unk_token is 'absent'");
    REFUSED(model, "\"end_of_word_suffix\":7,", bad, "");
    REFUSED(model, "\"end_of_word_suffix\":\"</w>\",\"byte_fallback\":true,", no, "byte_fallback");
    char nested[1024] = "";
    for (int i = 0; i < 10; i++)
        strcat(nested, "{\"type\":\"Sequence\",\"processors\":[");
    for (int i = 0; i < 10; i++)
        strcat(nested, "]}");
    REFUSED(post_processor, nested, no, "more than 8 sequences are nested");
    REFUSED(model, "\"type\":\"Odd\",", no, "model.type is 'Odd'");
    REFUSED(model, "\"type\":7,", bad, "");
    REFUSED(model, "\"type\":\"WordPiece\",", bad, "model.unk_token is missing");
    REFUSED(model, "\"vocab\":{},", bad, "twice");
    REFUSED(before, "\"truncation\":null,", bad, "truncation twice");
    REFUSED(truncation, "7", bad, "truncation must be null or an object");
    REFUSED(truncation, "{", bad, "");
    REFUSED(padding, "\"BatchLongest\"", bad, "padding must be null or an object");
    REFUSED(padding, "[]", bad, "padding must be null or an object");
    REFUSED(before, "\"version\":\"2.0\",", bad, "twice");
    REFUSED(vocabulary, "\"a\":300,", bad, "twice");
    REFUSED(vocabulary, "\"x!\":97,", bad, "two tokens have the id 97");
    REFUSED(vocabulary, "\"x!\":-1,", bad, "whole number from 0");
    REFUSED(vocabulary, "\"x!\":1.5,", bad, "whole");
    REFUSED(vocabulary, "\"x!\":4000000,", TOKMAP_ERROR_LIMIT, "id");
    REFUSED(vocabulary, "\"\\ud83d\":300,", bad, "surrogate");
    REFUSED(vocabulary, "\"x!\":\"a\",", bad, "number");
    REFUSED(merges, "[\"a b\",\"b x\"]", bad, "bx");
    REFUSED(merges, "[\"a b\",\"zz b\"]", bad, "zz");
    REFUSED(merges, "[\"ab\"]", bad, "one space");
    REFUSED(merges, "[\"a b c\"]", bad, "one space");
    REFUSED(merges, "[[\"a\",\"b\"],\"ab c\"]", bad, "both strings and arrays");
    REFUSED(merges, "[[\"a\"]]", bad, "must be an array of two tokens");
    REFUSED(merges, "[[\"a\",\"b\",\"c\"]]", bad, "but has more");
    REFUSED(merges, "7", bad, "an array is expected here, as the value of \"merges\"");
    REFUSED(added, "{\"id\":259,\"content\":\"<s>\"}", bad, "lacks");
    REFUSED(after, ",\"model\":{}", bad, "twice");
}

/* A good file that is cut off, or has some bytes changed, is refused or read, but never causes a crash. */
static void damaged(void **state)
{
    static char text[65536], wrong[65536];
    struct parts parts = SOUND;
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    parts.added = "{\"id\":259,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                  "\"normalized\":false,\"special\":true}";
    parts.normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Prepend\","
                       "\"prepend\":\"x\"}]}";
    const size_t bytes = make(text, sizeof text, &parts);
    for (size_t count = 1; count < bytes; count += 1 + count / 40) {
        write_file("cut.json", text, count);
        assert_int_not_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_OK);
        assert_null(tokenizer);
    }
    uint64_t random = 1;
    for (int round = 0; round < 400; round++) {
        memcpy(wrong, text, bytes);
        for (int changes = 0; changes < 1 + round % 3; changes++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            wrong[(random >> 20) % bytes] = (char)(random >> 56);
        }
        write_file("wrong.json", wrong, bytes);
        (void)vocabulary_open(&tokenizer, path, NULL, &error);
        tokenizer_close(tokenizer);
    }
}

/* 10^6 nested brackets do not overflow the stack. */
static void deep(void **state)
{
    const size_t count = 1000000;
    char *text = malloc(count + 16);
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    assert_non_null(text);
    memcpy(text, "{\"model\":", 9);
    memset(text + 9, '[', count);
    write_file("deep.json", text, count + 9);
    assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_FORMAT);
    memcpy(text, "{\"extra\":", 9);
    write_file("deep.json", text, count + 9);
    assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "1024 deep"));
    free(text);
}

/* ---- encoding ---- */

static size_t encode(const struct tokenizer *tokenizer, const char *text, uint32_t *ids, enum tokmap_status expected)
{
    struct tokenizer_state *own;
    struct tokmap_error error;
    uint64_t end;
    const struct tokmap_text document = {text, strlen(text)};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    struct tokenizer_out out = {.capacity = document.count * info.ids_per_byte_most, .ends = &end};
    out.tokens = malloc(out.capacity * info.width + 1);
    assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(own, &batch, &out, &error), expected);
    for (uint64_t i = 0; i < out.count && !expected; i++)
        ids[i] = ((uint16_t *)out.tokens)[i];
    tokenizer_state_free(own);
    free(out.tokens);
    return expected ? 0 : (size_t)out.count;
}

static void check(const struct parts *parts, enum tokmap_special special, const char *text, const uint32_t *expected,
                  size_t wanted)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    uint32_t ids[256];
    if (open_parts(&tokenizer, parts, special, &error))
        fail_msg("%s", error.message);
    const size_t count = encode(tokenizer, text, ids, TOKMAP_OK);
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], expected[i]);
    tokenizer_close(tokenizer);
}
#define CHECK(parts, special, text, ...)                                                                               \
    do {                                                                                                               \
        const uint32_t expected_[] = {__VA_ARGS__};                                                                    \
        check(parts, special, text, expected_, sizeof expected_ / sizeof expected_[0]);                                \
    } while (0)

static void specials(void **state)
{
    struct parts parts = SOUND;
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    parts.added = "{\"id\":7,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":true,"
                  "\"normalized\":false,\"special\":true},"
                  "{\"id\":8,\"content\":\"s>b\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                  "\"normalized\":false,\"special\":false}";
    /* The ids in the file are ignored: the tokens get the next two ids after the 259 of the model. */
    CHECK(&parts, TOKMAP_SPECIAL_RECOGNIZE, "ab<s>  ab", 256, 259, 256);
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "ab<s>ab", 256, '<', 's', '>', 256);
    /* A special token is skipped as a whole: "s>b" is not found inside it. */
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "<s>b", '<', 's', '>', 'b');
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "as>b", 'a', 260);
    assert_int_equal(open_parts(&tokenizer, &parts, TOKMAP_SPECIAL_ERROR, &error), TOKMAP_OK);
    uint32_t ids[16];
    encode(tokenizer, "ab <s>", ids, TOKMAP_ERROR_INPUT);
    assert_int_equal(encode(tokenizer, "as>b", ids, TOKMAP_OK), 2);
    assert_int_equal(tokenizer_special(tokenizer, "<s>"), 259);
    assert_int_equal(tokenizer_special(tokenizer, "s"), 259);
    assert_true(tokenizer_special(tokenizer, "<|endoftext|>") == TOKMAP_NO_ID);
    tokenizer_close(tokenizer);
}

/* Spaces that two tokens could strip belong to the first. A token that has no text left becomes no id. */
static void stripped(void **state)
{
    struct parts parts = SOUND;
    parts.added = "{\"id\":7,\"content\":\"\\n\",\"single_word\":false,\"lstrip\":true,\"rstrip\":true,"
                  "\"normalized\":false,\"special\":false},"
                  "{\"id\":8,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":true,\"rstrip\":true,"
                  "\"normalized\":false,\"special\":false}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "ab\n\n\n\nab\n", 256, 259, 256, 259);
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "<s> \n \n<s>", 260, 260);
}

/* Checks the ids of a text and where they are: "id:begin-end" for each. */
static void check_places(const struct parts *parts, const char *text, const char *wanted)
{
    struct tokenizer *tokenizer;
    struct tokenizer_state *own;
    struct tokmap_error error = {0};
    const struct tokmap_text document = {text, strlen(text)};
    uint32_t ids[64];
    uint16_t narrow[64];
    uint64_t begins[64], ends[64];
    char got[1024] = "";
    if (open_parts(&tokenizer, parts, TOKMAP_SPECIAL_TEXT, &error))
        fail_msg("%s", error.message);
    const size_t count = encode(tokenizer, text, ids, TOKMAP_OK);
    for (size_t i = 0; i < count; i++)
        narrow[i] = (uint16_t)ids[i];
    assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
    if (tokenizer_offsets(own, &document, TOKENIZER_STARTS, narrow, count, begins, ends, &error))
        fail_msg("%s", error.message);
    for (size_t i = 0, used = 0; i < count; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%u:%u-%u", i ? " " : "", ids[i], (unsigned)begins[i],
                                 (unsigned)ends[i]);
    assert_string_equal(got, wanted);
    tokenizer_state_free(own);
    tokenizer_close(tokenizer);
}

/* What a step of a pre-tokenizer puts in is empty, also where the step before it has put something in. */
static void put_twice(void **state)
{
    struct parts parts = SOUND;
    parts.model = "\"unk_token\":\"x\",";
    parts.vocabulary = "\"\xE2\x96\x81\":300,\"\xE2\x96\x81"
                       "a\":301,";
    parts.merges = "[[\"a\",\"b\"],[\"\xE2\x96\x81\",\"a\"]]";
    parts.pre_tokenizer =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","
        "\"prepend_scheme\":\"always\"},{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
        "\"always\"}]}";
    check_places(&parts, "ab a", "95:0-0 300:0-0 256:0-2 95:2-2 301:2-4");
    parts.pre_tokenizer =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
        "\"always\",\"split\":false},{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Metaspace\","
        "\"replacement\":\"-\",\"prepend_scheme\":\"always\",\"split\":false},{\"type\":\"Metaspace\",\"replacement\":"
        "\"+\",\"prepend_scheme\":\"always\",\"split\":false}]}";
    check_places(&parts, "ab 1 a",
                 "43:0-0 45:0-0 95:0-0 256:0-2 95:2-3 43:3-3 45:3-3 49:3-4 43:4-4 45:4-4 95:4-5 97:5-6");
    /* The second step changes only some pieces of the first. */
    parts.pre_tokenizer =
        "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\","
        "\"replacement\":\"_\",\"prepend_scheme\":\"always\"},{\"type\":\"Metaspace\",\"replacement\":\"-\","
        "\"prepend_scheme\":\"always\"}]}";
    check_places(&parts, "a _b -", "45:0-0 95:0-0 97:0-1 45:2-2 95:2-3 98:3-4 45:5-5 95:5-5 45:5-6");
}

/* A token that is found in the spaces that the one before it took leaves that one those before it. */
static void spaces_shared(void **state)
{
    struct parts parts = SOUND;
    parts.added = "{\"id\":7,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":true,"
                  "\"normalized\":false,\"special\":false},"
                  "{\"id\":8,\"content\":\"  \",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                  "\"normalized\":false,\"special\":false},"
                  "{\"id\":9,\"content\":\"\\t\",\"single_word\":false,\"lstrip\":true,\"rstrip\":false,"
                  "\"normalized\":false,\"special\":false}";
    check_places(&parts, "a<s>     b", "97:0-1 259:1-4 260:4-6 260:6-8 32:8-9 98:9-10");
    check_places(&parts, "<s> b", "259:0-4 98:4-5");
    /* The reference fails on a token whose spaces, and more, another one has taken. */
    check_places(&parts, "<s> \t  b", "259:0-5 260:5-7 98:7-8");
    parts.normalizer = "{\"type\":\"NFC\"}";
    static char normalized[1024];
    (void)snprintf(normalized, sizeof normalized, "%s", parts.added);
    for (char *at = normalized; (at = strstr(at, "\"normalized\":false"));)
        memcpy(at, "\"normalized\":true ", 18);
    parts.added = normalized;
    check_places(&parts, "e\xCC\x81<s>     b", "195:0-3 169:0-3 259:3-6 260:6-8 260:8-10 32:10-11 98:11-12");
}

/* Files without ByteLevel whose parts are not plain (hf_engines.h). The ids of ASCII characters are their codes. */
static void characters(void **state)
{
    struct parts parts = SOUND;
    parts.model = "\"unk_token\":\"x\",";
    parts.vocabulary = "\"\xE2\x96\x81\":300,\"\xE2\x96\x81"
                       "a\":301,\" \":302,";
    parts.merges = "[[\"a\",\"b\"],[\"ab\",\"c\"],[\"\xE2\x96\x81\",\"a\"]]";
    parts.pre_tokenizer = "null";
    /* The mark that is prepended is not a space, although spaces are not replaced by marks. */
    parts.normalizer = "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "ab b", 300, 256, 302, 'b');
    parts.normalizer = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"z\"}"; /* between all */
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "d d", 'z', 'd', 'z', 302, 'z', 'd', 'z');
    parts.normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
                       "\"\xE2\x96\x81\"},\"content\":\" \"},{\"type\":\"NFC\"}]}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT,
          "a\xE2\x96\x81"
          "a a",
          'a', 302, 'a', 302, 'a');
    parts.normalizer = "null";
    parts.pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\",\"replacement\":"
                          "\"\xE2\x96\x81\",\"prepend_scheme\":\"first\"},{\"type\":\"Digits\",\"individual_digits\":"
                          "true}]}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "a abc 12", 301, 300, 257, 300, '1', '2');
    parts.pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},{\"type\":\"Metaspace\","
                          "\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":false}]}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "a  abc-", 301, 300, 257, 300, '-');
    /* The vocabulary has no token for the mark. */
    parts.vocabulary = "";
    parts.merges = "[[\"a\",\"b\"],[\"ab\",\"c\"]]";
    parts.pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\"}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "a abc", 'x', 'a', 'x', 257);
}

static void merges(void **state)
{
    struct parts parts = SOUND;
    parts.after = ",\"more\":{},\"still more\":[],\"more\":1"; /* unknown fields change nothing */
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "abc ab a", 257, ' ', 256, 258);
    parts.merges = "[[\"a\",\"b\"],[\"ab\",\"c\"]]";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "abc a", 257, ' ', 'a');
    /* A merge that is listed twice has the rank of its last place. */
    parts.merges = "[\"a b\",\"\xC4\xA0 a\",\"a b\"]";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, " ab", 258, 'b');
    parts.merges = "[\"#version: 0.2\",\"a b\"]";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "ab", 256);
    parts.merges = "[]";
    parts.model = "\"ignore_merges\":true,";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "abc abx", 257, ' ', 'a', 'b', 'x');
}

/* The post-processor names the tokens around a document; encode does not add them. */
static void frame(void **state)
{
    struct parts parts = SOUND;
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    parts.post_processor =
        "{\"type\":\"TemplateProcessing\",\"special_tokens\":{\"x\":{\"id\":\"x\",\"ids\":[5],\"tokens\":"
        "[\"x\"]},\"y\":{\"id\":\"y\",\"ids\":[6],\"tokens\":[\"y\"]}},\"single\":[{\"SpecialToken\":"
        "{\"id\":\"x\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":"
        "{\"id\":\"y\",\"type_id\":0}}]}";
    assert_int_equal(open_parts(&tokenizer, &parts, TOKMAP_SPECIAL_TEXT, &error), TOKMAP_OK);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.bos_id, 5);
    assert_int_equal(info.eod_id, 6);
    tokenizer_close(tokenizer);
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "ab", 256);
}

/* The objects that the reference writes for truncation and padding: ids, fingerprint, and vocabulary are as without
 * them, and a note names what is ignored. */
static void truncation_and_padding(void **state)
{
    static const char truncation[] = "{\"direction\":\"Right\",\"max_length\":2,\"strategy\":\"LongestFirst\","
                                     "\"stride\":0}";
    static const char fixed[] = "{\"strategy\":{\"Fixed\":9},\"direction\":\"Right\",\"pad_to_multiple_of\":null,"
                                "\"pad_id\":0,\"pad_type_id\":0,\"pad_token\":\"a\"}";
    static const char longest[] = "{\"strategy\":\"BatchLongest\",\"direction\":\"Left\",\"pad_to_multiple_of\":8,"
                                  "\"pad_id\":0,\"pad_type_id\":0,\"pad_token\":\"a\"}";
    static const struct {
        const char *truncation, *padding, *note;
    } cases[] = {{NULL, NULL, NULL},
                 {truncation, NULL, "truncation is ignored"},
                 {NULL, fixed, "padding is ignored"},
                 {NULL, longest, "padding is ignored"},
                 {truncation, longest, "truncation and padding are ignored"}};
    uint8_t fingerprint[16] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct parts parts = SOUND;
        struct tokenizer *tokenizer;
        struct tokmap_error error = {0};
        parts.truncation = cases[i].truncation;
        parts.padding = cases[i].padding;
        if (open_parts(&tokenizer, &parts, TOKMAP_SPECIAL_TEXT, &error))
            fail_msg("case %zu: %s", i, error.message);
        const struct tokenizer_info info = info_of_tokenizer(tokenizer);
        assert_int_equal(info.note != NULL, cases[i].note != NULL);
        if (info.note && !strstr(info.note, cases[i].note))
            fail_msg("case %zu: the note is '%s'", i, info.note);
        if (i)
            assert_memory_equal(info.fingerprint, fingerprint, 16);
        memcpy(fingerprint, info.fingerprint, 16);
        tokenizer_close(tokenizer);
        CHECK(&parts, TOKMAP_SPECIAL_TEXT, "abc ab a", 257, ' ', 256, 258);
    }
}

/* 10^6 combining marks, which NFC sorts by class, and texts that NFC makes longer. */
static void normalized(void **state)
{
    struct parts parts = SOUND;
    parts.normalizer = "{\"type\":\"NFC\"}";
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "a\xCC\x81", 0xC3, 0xA1);
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "\xE0\xA5\x98", 0xE0, 0xA4, 0x95, 0xE0, 0xA4, 0xBC);
    CHECK(&parts, TOKMAP_SPECIAL_TEXT, "\xF0\x9D\x85\xA0", 0xF0, 0x9D, 0x85, 0x98, 0xF0, 0x9D, 0x85, 0xA5, 0xF0, 0x9D,
          0x85, 0xAE);
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    const size_t marks = 1000000;
    char *text = malloc(2 * marks + 2);
    uint32_t *ids = malloc((2 * marks + 2) * 3 * sizeof *ids);
    assert_true(text && ids);
    text[0] = 'a';
    for (size_t i = 0; i < marks; i++)
        memcpy(text + 1 + 2 * i, i % 2 ? "\xCC\xA3" : "\xCC\x88", 2); /* combining classes 230 and 220 */
    text[1 + 2 * marks] = 0;
    assert_int_equal(open_parts(&tokenizer, &parts, TOKMAP_SPECIAL_TEXT, &error), TOKMAP_OK);
    const size_t count = encode(tokenizer, text, ids, TOKMAP_OK);
    assert_int_equal(count, 2 * marks + 1); /* the dot below is composed with the letter: three bytes for three */
    assert_int_equal(ids[0], 0xE1);
    assert_int_equal(ids[3], 0xCC);
    assert_int_equal(ids[4], 0xA3);
    assert_int_equal(ids[count - 1], 0x88);
    tokenizer_close(tokenizer);
    free(text);
    free(ids);
}

static void folders(void **state)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    char text[65536], name[560];
    struct parts parts = SOUND;
    snprintf(name, sizeof name, "%s/model", folder);
    assert_int_equal(os_make_folder(name), 0);
    assert_int_equal(vocabulary_open(&tokenizer, name, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "contains no tokenizer"));
    write_file("model/tokenizer.json", text, make(text, sizeof text, &parts));
    assert_int_equal(vocabulary_open(&tokenizer, name, NULL, &error), TOKMAP_OK);
    tokenizer_close(tokenizer);
    /* One of two files, without the other. */
    write_file("merges.txt", "#version: 0.2\na b\n", 18);
    assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "encoder.json"));
    const struct tokmap_tokenizer_options options = {.pattern = "gpt2"};
    assert_int_equal(vocabulary_open(&tokenizer, name, &options, &error), TOKMAP_ERROR_ARGUMENT);
    write_file("empty.json", "", 0);
    assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_UNSUPPORTED);
    write_file("other", "hello", 5);
    assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_UNSUPPORTED);
}

int main(void)
{
    const char *scratch = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_hf_file.%llu", scratch ? scratch : "/tmp",
             (unsigned long long)os_clock_ns());
    if (os_make_folder(folder)) {
        printf("%s cannot be made\n", folder);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),
        cmocka_unit_test(damaged),
        cmocka_unit_test(deep),
        cmocka_unit_test(specials),
        cmocka_unit_test(merges),
        cmocka_unit_test(frame),
        cmocka_unit_test(normalized),
        cmocka_unit_test(folders),
        cmocka_unit_test(stripped),
        cmocka_unit_test(put_twice),
        cmocka_unit_test(spaces_shared),
        cmocka_unit_test(characters),
        cmocka_unit_test(truncation_and_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
