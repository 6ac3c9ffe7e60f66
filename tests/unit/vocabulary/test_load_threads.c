/* SPDX-License-Identifier: MIT */
/* ci: tsan */
/*
 * test_load_threads.c - long vocabulary files are read by several threads, and the result is what one thread would
 * find: every merge and every line is there, in order; what is wrong is reported with its number and its reason, the
 * first fault first; and texts that look like the end of an element, where a thread might begin, mislead nobody.
 *
 * What is expected is computed here, without the reader. On a machine with one processor the same must hold.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe/bpe_build.h"
#include "bpe/bpe_merge.h"
#include "vocabulary/hf/hf_model.h"
#include "vocabulary/rank_file.h"

struct text {
    char *bytes;
    size_t count, room;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    if (text->room - text->count < 4096) {
        text->room = 2 * text->room + 65536;
        text->bytes = realloc(text->bytes, text->room);
        assert_non_null(text->bytes);
    }
    va_start(arguments, format);
    text->count += (size_t)vsnprintf(text->bytes + text->count, 4096, format, arguments);
    va_end(arguments);
}

/* ---- merges of a tokenizer.json ---- */

#define LETTERS 120u /* tokens of one character: some that JSON escapes or that look like structure, then CJK */
#define MERGES (LETTERS * LETTERS)
#define TIMES 2u /* the same list twice */

static const char *const odd[] = {"\\\"", "\\\\", ",", "[", "]", "{", "}", ":", "\\u0041", "b"};
#define ODD (sizeof odd / sizeof odd[0])

/* The character of a token as JSON spells it. */
static const char *letter(uint32_t number)
{
    static char spelled[2][8];
    static unsigned turn;
    if (number < ODD)
        return odd[number];
    const uint32_t code = 0x4E00 + number;
    char *into = spelled[turn++ % 2];
    into[0] = (char)(0xE0 | code >> 12);
    into[1] = (char)(0x80 | (code >> 6 & 63));
    into[2] = (char)(0x80 | (code & 63));
    into[3] = '\0';
    return into;
}

enum style { STRINGS, STRINGS_LINES, PAIRS, PAIRS_LINES, STYLES };

static void say_merge(struct text *text, enum style style, const char *left, const char *right, bool last)
{
    const char *const end = last ? "" : ",";
    switch (style) {
    case STRINGS:
        say(text, "\"%s %s\"%s", left, right, end);
        break;
    case STRINGS_LINES:
        say(text, "      \"%s %s\"%s\n", left, right, end);
        break;
    case PAIRS:
        say(text, "[\"%s\",\"%s\"]%s", left, right, end);
        break;
    case PAIRS_LINES:
    case STYLES:
    default:
        say(text, "      [\n        \"%s\",\n        \"%s\"\n      ]%s\n", left, right, end);
    }
}

/* Writes the vocabulary: letters, then all pairs of letters. */
static void say_vocabulary(struct text *text)
{
    text->count = 0;
    say(text, "{\"type\":\"BPE\",\"vocab\":{");
    for (uint32_t i = 0; i < LETTERS; i++)
        say(text, "\"%s\":%u,", letter(i), i);
    for (uint32_t i = 0; i < MERGES; i++) {
        say(text, "\"%s", letter(i / LETTERS));
        say(text, "%s\":%u%s", letter(i % LETTERS), LETTERS + i, i + 1 < MERGES ? "," : "},");
    }
}

/* Merge number i of the list, which has MERGES * TIMES of them. */
static struct bpe_merge merge_of(uint32_t i)
{
    const uint32_t pair = i * 7919u % MERGES;
    return (struct bpe_merge){pair / LETTERS, pair % LETTERS, LETTERS + pair};
}

/* Writes the list, with other text in place of merge `wrong` and in place of `again`. */
static void say_merges(struct text *text, enum style style, uint32_t wrong, const char *instead, uint32_t again,
                       const char *second)
{
    say(text, "\"merges\":[");
    for (uint32_t i = 0; i < MERGES * TIMES; i++) {
        const bool last = i + 1 == MERGES * TIMES;
        const struct bpe_merge merge = merge_of(i);
        if (i == wrong || i == again)
            say(text, "%s%s", i == wrong ? instead : second, last ? "" : ",");
        else
            say_merge(text, style, letter(merge.left), letter(merge.right), last);
    }
    say(text, "]");
}

/* Writes a model without merges whose vocabulary has, instead of member `at`, what `instead` says, and of member `late`
 * what `second` says. pretty: with spaces and newlines. Sets *end to the offset after the first of both. */
static void say_members(struct text *text, bool pretty, uint32_t at, const char *instead, uint32_t late,
                        const char *second, uint64_t *end)
{
    text->count = 0;
    say(text, "{\"type\":\"BPE\",\"vocab\":{");
    for (uint32_t i = 0; i < MERGES; i++) {
        say(text, "%s", pretty ? "\n      " : "");
        if (i == at || i == late)
            say(text, "%s", i == at ? instead : second);
        else {
            say(text, "\"%s", letter(i / LETTERS));
            say(text, "%s\":%s%u", letter(i % LETTERS), pretty ? " " : "", i);
        }
        if (i == at)
            *end = text->count;
        say(text, "%s", i + 1 < MERGES ? "," : pretty ? "\n    }" : "}");
    }
    say(text, ",\"merges\":[]}");
}

static bool parse(const struct text *text, struct json_file *file, struct hf_model *model, struct tokmap_error *error)
{
    memset(model, 0, sizeof *model);
    memset(error, 0, sizeof *error);
    /* A copy of exactly these bytes, so that a sanitizer sees a read after them. */
    char *copy = malloc(text->count);
    assert_non_null(copy);
    memcpy(copy, text->bytes, text->count);
    const bool good =
        json_file_begin(file, "test", copy, text->count, error) && hf_model_parse(file, model) && json_end(&file->scan);
    (void)json_file_status(file);
    free(copy);
    return good;
}

static void expect_merges(const struct hf_model *model, uint32_t count)
{
    assert_int_equal(model->merge_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct bpe_merge merge = merge_of(i);
        assert_memory_equal(&model->merges[i], &merge, sizeof merge);
    }
}

static void merges_are_complete(void **unused)
{
    (void)unused;
    struct text text = {NULL, 0, 0};
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    for (enum style style = STRINGS; style < STYLES; style++) {
        say_vocabulary(&text);
        say_merges(&text, style, UINT32_MAX, NULL, UINT32_MAX, NULL);
        say(&text, ",\"fuse_unk\":true}");
        assert_true(parse(&text, &file, &model, &error));
        expect_merges(&model, MERGES * TIMES);
        assert_true(model.fuse_unk); /* what follows the list is read, too */
        hf_model_free(&model);
        json_file_end(&file);
    }
    free(text.bytes);
}

/* The list is short, and what follows it looks like more of it. */
static void lists_end_where_they_end(void **unused)
{
    (void)unused;
    struct text text = {NULL, 0, 0};
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    for (enum style style = STRINGS; style < STYLES; style++) {
        say_vocabulary(&text);
        say(&text, "\"merges\":[");
        for (uint32_t i = 0; i < 3; i++)
            say_merge(&text, style, letter(merge_of(i).left), letter(merge_of(i).right), i == 2);
        say(&text, "],\"other\":[");
        for (uint32_t i = 0; i < MERGES * TIMES; i++)
            say_merge(&text, style, letter(i % LETTERS), letter(i % 7), i + 1 == MERGES * TIMES);
        say(&text, "]}");
        assert_true(parse(&text, &file, &model, &error));
        expect_merges(&model, 3);
        hf_model_free(&model);
        json_file_end(&file);
    }
    free(text.bytes);
}

/* All merges consist of characters that look like the end of an element and the beginning of another, wherever the
 * second thread begins. Its guess is often wrong then. */
static void guesses_may_be_wrong(void **unused)
{
    (void)unused;
    enum { COUNT = 40000 };
    struct text text = {NULL, 0, 0};
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    for (uint32_t shift = 0; shift < 40; shift++) {
        text.count = 0;
        say(&text, "{\"vocab\":{\",\":0,\"]\":1,\"[\":2,\"],[\":3,\",,\":4,\"],\":5,\"[,\":6,\"\\\"\":7,\"\\\",\":8,"
                   "\"x\":9,\"],[,\":10},\"merges\":[");
        for (uint32_t i = 0; i < COUNT; i++)
            say(&text, "%s%s",
                i % 3 == 0   ? "[\"],[\",\",\"]"
                : i % 3 == 1 ? "[\",\",\",\"]"
                             : "[\"]\",\",\"]",
                i + 1 < COUNT ? "," : "");
        say(&text, "],\"other\":\"%*s\"}", (int)shift, "");
        assert_true(parse(&text, &file, &model, &error));
        assert_int_equal(model.merge_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(model.merges[i].result, i % 3 == 0 ? 10 : i % 3 == 1 ? 4 : 5);
        hf_model_free(&model);
        json_file_end(&file);
    }
    free(text.bytes);
}

/* A list that reads well from inside its strings, too: what is between two strings is a merge then, and what is in them
 * a comma; and a bracket in a string after the list ends it. Only the place shows that the guess was wrong. */
static void wrong_guesses_may_read_well(void **unused)
{
    (void)unused;
    enum { COUNT = 40000 };
    struct text text = {NULL, 0, 0};
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    for (uint32_t shift = 0; shift < 12; shift++) {
        text.count = 0;
        say(&text, "{\"vocab\":{\"\":0,\",\":1,\"]\":2,\"],\":3,\":\":4},%*s\"merges\":[", (int)shift, "");
        for (uint32_t i = 0; i < COUNT; i++)
            say(&text, "\" ,\"%s", i + 1 < COUNT ? ", " : "");
        say(&text, "] ,\",\": \"]\"%*s}", (int)(shift / 2 * 3), "");
        assert_true(parse(&text, &file, &model, &error));
        assert_int_equal(model.merge_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_true(model.merges[i].left == 0 && model.merges[i].right == 1 && model.merges[i].result == 1);
        hf_model_free(&model);
        json_file_end(&file);
    }
    free(text.bytes);
}

static void expect_fault_at(const struct text *text, const char *says, uint64_t at)
{
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    assert_false(parse(text, &file, &model, &error));
    if (!strstr(error.message, says))
        fail_msg("'%s' does not say '%s'", error.message, says);
    assert_int_equal(error.offset, at);
    hf_model_free(&model);
    json_file_end(&file);
}

/* Decodes what letter() has spelled. */
static size_t letter_bytes(char *into, uint32_t number)
{
    const char *spelled = letter(number);
    const size_t count = strlen(spelled);
    if (*spelled == '\\') {
        *into = count > 2 ? 'A' : spelled[1];
        return 1;
    }
    memcpy(into, spelled, count);
    return count;
}

static void vocabularies_are_complete(void **unused)
{
    (void)unused;
    struct text text = {NULL, 0, 0};
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    for (int pretty = 0; pretty < 2; pretty++) {
        uint64_t end;
        say_members(&text, pretty, UINT32_MAX, NULL, UINT32_MAX, NULL, &end);
        char *copy = malloc(text.count); /* the table has pointers into the text */
        assert_non_null(copy);
        memcpy(copy, text.bytes, text.count);
        memset(&model, 0, sizeof model);
        assert_true(json_file_begin(&file, "test", copy, text.count, &error) && hf_model_parse(&file, &model));
        assert_int_equal(model.vocabulary.count, MERGES);
        for (uint32_t i = 0; i < MERGES; i++) {
            char token[16];
            size_t count = letter_bytes(token, i / LETTERS);
            count += letter_bytes(token + count, i % LETTERS);
            assert_int_equal(text_table_find(&model.vocabulary, (const uint8_t *)token, (uint32_t)count), i);
            assert_int_equal(model.vocabulary.entries[i].id, i); /* in the order of the file */
        }
        hf_model_free(&model);
        json_file_end(&file);
        free(copy);
    }
    free(text.bytes);
}

static void faults_of_vocabularies(void **unused)
{
    (void)unused;
    static const uint32_t places[] = {1, 16, MERGES / 4, MERGES / 2 + 5, MERGES - 40};
    struct text text = {NULL, 0, 0};
    uint64_t end = 0;
    for (size_t i = 0; i < 2 * (sizeof places / sizeof places[0]); i++) {
        const bool pretty = i % 2;
        const uint32_t at = places[i / 2];
        say_members(&text, pretty, at, "\"\\\"\\\"\":9", MERGES - 1, "\"x\":[]", &end);
        expect_fault_at(&text, "twice", end);
        say_members(&text, pretty, at, "\"zz\":2097152", MERGES - 1, "\"\\\"\\\"\":9", &end);
        expect_fault_at(&text, "has the id 2097152", end);
        say_members(&text, pretty, at, "\"zz\":true", MERGES - 1, "\"\\\"\\\"\":9", &end);
        expect_fault_at(&text, "a number is expected", end - 4);
        say_members(&text, pretty, at, "\"zz\":0", MERGES - 1, "\"yy\":9", &end);
        struct json_file file;
        struct hf_model model;
        struct tokmap_error error;
        assert_false(parse(&text, &file, &model, &error));
        assert_non_null(strstr(error.message, "two tokens have the id 0"));
        hf_model_free(&model);
        json_file_end(&file);
    }
    free(text.bytes);
}

/* The first of two faults that are side by side is reported, wherever the groups begin in which tokens are added. */
static void first_of_two_faults(void **unused)
{
    (void)unused;
    struct text text = {NULL, 0, 0};
    uint64_t end = 0;
    for (uint32_t at = MERGES / 2; at < MERGES / 2 + 16; at++) {
        const bool fits = at % 2;
        say_members(&text, false, at, "\"\\\"\\\"\":9", at + 1, fits ? "\"zz\":2097152" : "\"zz\":[]", &end);
        expect_fault_at(&text, "twice", end);
    }
    free(text.bytes);
}

static void expect_fault(const struct text *text, const char *says)
{
    struct json_file file;
    struct hf_model model;
    struct tokmap_error error;
    assert_false(parse(text, &file, &model, &error));
    if (!strstr(error.message, says))
        fail_msg("'%s' does not say '%s'", error.message, says);
    hf_model_free(&model);
    json_file_end(&file);
}

static void faults_have_their_numbers(void **unused)
{
    (void)unused;
    static const uint32_t places[] = {0, 1, 31, MERGES, 3 * MERGES / 2, MERGES * TIMES - 1};
    struct text text = {NULL, 0, 0};
    char says[96];
    for (enum style style = STRINGS; style < STYLES; style += 3)
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            const uint32_t late = MERGES * TIMES - 1;
            const char *absent = style == STRINGS ? "\"b zz\"" : "[\"b\",\"zz\"]";
            say_vocabulary(&text);
            say_merges(&text, style, places[i], absent, late, absent);
            say(&text, "}");
            snprintf(says, sizeof says, "merge %u (counted from 0) needs the token", places[i]);
            expect_fault(&text, says);
            say_vocabulary(&text); /* what follows is not JSON */
            say_merges(&text, style, places[i], absent, places[i] + 1, "\"b b\\x\"");
            say(&text, "}");
            expect_fault(&text, says);
            if (!places[i])
                continue;
            say_vocabulary(&text); /* the other kind of merge */
            say_merges(&text, style, places[i], style == STRINGS ? "[\"b\",\"b\"]" : "\"b b\"", late, absent);
            say(&text, "}");
            expect_fault(&text, "both strings and arrays");
            say_vocabulary(&text); /* not JSON */
            say_merges(&text, style, places[i], "\"b b\\x\"", late, absent);
            say(&text, "}");
            expect_fault(&text, style == STRINGS ? "escape" : "both strings and arrays");
            say_vocabulary(&text); /* the list does not end */
            say_merges(&text, style, places[i], "\"b b", UINT32_MAX, NULL);
            text.count -= places[i] == late ? 2 : 0;
            struct json_file file;
            struct hf_model model;
            struct tokmap_error error;
            assert_false(parse(&text, &file, &model, &error));
            assert_int_equal(error.status, TOKMAP_ERROR_FORMAT);
            hf_model_free(&model);
            json_file_end(&file);
        }
    free(text.bytes);
}

/* ---- rank files ---- */

#define RANKS 80000u /* a third of them are tokens */

/* The text of a token: 0 to 255 are bytes, the others have three to five letters. */
static uint32_t token_of(uint32_t rank, uint8_t into[8])
{
    if (rank < 256) {
        into[0] = (uint8_t)rank;
        return 1;
    }
    const uint32_t count = 3 + rank % 3;
    for (uint32_t i = 0; i < count; i++)
        into[i] = (uint8_t)('a' + (rank >> 4 * i & 15));
    into[count - 1] = (uint8_t)(into[count - 1] + 16 * (rank >> 16 & 1));
    return count;
}

static void say_rank(struct text *text, uint32_t token, uint32_t rank, const char *end)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[8];
    const uint32_t count = token_of(token, bytes);
    for (uint32_t i = 0; i < count; i += 3) {
        const uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (i + 2 < count ? bytes[i + 2] : 0);
        say(text, "%c%c%c%c", digits[three >> 18], digits[three >> 12 & 63],
            i + 1 < count ? digits[three >> 6 & 63] : '=', i + 2 < count ? digits[three & 63] : '=');
    }
    say(text, " %u%s", rank, end);
}

static bool is_text_new(uint32_t rank)
{
    /* token_of() looks at all bits of the rank only where the text has 5 letters. */
    return rank < 256 || rank % 3 == 2;
}

/* Writes the file; every token has a text of its own. step: lines are in the order of i * step modulo their number. */
static uint32_t say_ranks(struct text *text, uint32_t step, const char *end)
{
    static uint32_t tokens[RANKS];
    uint32_t count = 0;
    text->count = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (is_text_new(rank))
            tokens[count++] = rank;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)((uint64_t)i * step % count);
        say_rank(text, tokens[at], at, end);
    }
    return count;
}

static enum tokmap_status ranks_read(struct rank_file *file, const char *path, const char *text, uint64_t count,
                                     struct tokmap_error *error)
{
    const enum tokmap_status status = rank_file_parse(file, path, text, count, error);
    return status ? status : rank_file_check(file, text, count, error);
}

static enum tokmap_status read_ranks(const struct text *text, struct rank_file *file, struct tokmap_error *error)
{
    memset(error, 0, sizeof *error);
    char *copy = malloc(text->count);
    assert_non_null(copy);
    memcpy(copy, text->bytes, text->count);
    const enum tokmap_status status = ranks_read(file, "test", copy, text->count, error);
    free(copy);
    return status;
}

static void lines_are_complete(void **unused)
{
    (void)unused;
    static const char *const ends[] = {"\n", "\r\n", "\n\n\n"};
    static const uint32_t steps[] = {1, 7919};
    struct text text = {NULL, 0, 0};
    for (int i = 0; i < 6; i++) {
        struct rank_file file;
        struct tokmap_error error;
        const uint32_t count = say_ranks(&text, steps[i % 2], ends[i / 2]);
        text.count -= i == 1;                  /* the last line needs no newline */
        assert_true(text.count > (260 << 10)); /* long enough for two threads */
        assert_int_equal(read_ranks(&text, &file, &error), TOKMAP_OK);
        assert_int_equal(file.source.vocabulary, count);
        for (uint32_t rank = 0, id = 0; rank < RANKS; rank++) {
            uint8_t bytes[8];
            if (!is_text_new(rank))
                continue;
            const uint32_t length = token_of(rank, bytes);
            assert_int_equal(file.source.offsets[id + 1] - file.source.offsets[id], length);
            assert_memory_equal(file.source.bytes + file.source.offsets[id], bytes, length);
            id++;
        }
        rank_file_free(&file);
    }
    free(text.bytes);
}

/* Reads the file with another line in place of some, alone and as a tokenizer. */
static void expect_line(const char *first, uint32_t first_at, const char *second, uint32_t second_at, uint64_t line,
                        const char *says)
{
    struct text text = {NULL, 0, 0}, made = {NULL, 0, 0};
    struct rank_file file;
    struct tokmap_error error;
    struct tokenizer *tokenizer;
    uint32_t number = 0;
    const uint32_t count = say_ranks(&text, 1, "\n");
    assert_true(count > 20000); /* enough for a thread of its own that looks for equal texts */
    for (char *at = text.bytes, *end = text.bytes + text.count; at < end; number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        if (number == first_at || number == second_at)
            say(&made, "%s\n", number == first_at ? first : second);
        else
            say(&made, "%.*s\n\n", (int)(newline - at), at); /* each line is followed by an empty one */
        at = newline + 1;
    }
    assert_int_equal(read_ranks(&made, &file, &error), TOKMAP_ERROR_FORMAT);
    assert_int_equal(error.line, line);
    if (!strstr(error.message, says))
        fail_msg("'%s' does not say '%s'", error.message, says);
    rank_file_free(&file);
    static const char *const patterns[] = {"gpt2",
                                           NULL}; /* without a pattern, what is wrong with the file comes first */
    for (int i = 0; i < 2; i++) {
        const struct tokmap_tokenizer_options options = {.pattern = patterns[i]};
        memset(&error, 0, sizeof error);
        assert_int_equal(rank_tokenizer_new(&tokenizer, "test", made.bytes, made.count, &options, NULL, &error),
                         TOKMAP_ERROR_FORMAT);
        assert_null(tokenizer);
        assert_int_equal(error.line, line);
        assert_non_null(strstr(error.message, says));
    }
    const struct tokmap_tokenizer_options options = {.pattern = "gpt2"};
    assert_int_equal(rank_tokenizer_new(&tokenizer, "test", text.bytes, text.count, &options, NULL, &error), TOKMAP_OK);
    tokenizer_close(tokenizer);
    free(text.bytes);
    free(made.bytes);
}

static void faults_have_their_lines(void **unused)
{
    (void)unused;
    expect_line("nonsense", 5, "YQ==", 9000, 11, "lacks the space");
    expect_line("nonsense", 9000, "YQ== 7 7", 9500, 18001, "lacks the space");
    expect_line("YQ== 7 7", 20000, "", UINT32_MAX, 40001, "not a number");
    expect_line("YQ== 9000", 9000, "", UINT32_MAX, 18001, "has a lower rank, too"); /* the text of a line far before */
    expect_line("YQ== 20000", 20000, "", UINT32_MAX, 40001, "has a lower rank, too");
    expect_line("QUJDREVG 300", 9000, "", UINT32_MAX, 18001, "two lines have the rank 300");
    expect_line("QUJDREVG 300", 20000, "", UINT32_MAX, 40001, "two lines have the rank 300");
}

/* ---- merges by ranks ---- */

#define SIDE 60u /* letters; all pairs, and many triples, are tokens: enough of one length for several threads */

/* Merges text by the definition: the lowest rank first, and of equal ones the first. */
static uint32_t merge_plainly(const struct bpe_source *source, const uint8_t *text, uint32_t count, uint32_t *ids)
{
    uint32_t starts[32];
    for (uint32_t i = 0; i <= count; i++)
        starts[i] = i;
    for (;;) {
        uint32_t best = BPE_NONE, at = 0;
        for (uint32_t i = 0; i + 2 <= count; i++) {
            const uint32_t bytes = starts[i + 2] - starts[i];
            for (uint32_t id = 0; id < source->vocabulary && id < best; id++)
                if (source->offsets[id + 1] - source->offsets[id] == bytes &&
                    !memcmp(source->bytes + source->offsets[id], text + starts[i], bytes)) {
                    best = id;
                    at = i;
                }
        }
        if (best == BPE_NONE)
            break;
        memmove(starts + at + 1, starts + at + 2, (count - at - 1) * sizeof *starts);
        count--;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t id = 0; id < source->vocabulary; id++)
            if (source->offsets[id + 1] - source->offsets[id] == starts[i + 1] - starts[i] &&
                !memcmp(source->bytes + source->offsets[id], text + starts[i], starts[i + 1] - starts[i]))
                ids[i] = id;
    return count;
}

static void add_token(struct bpe_source *source, uint8_t *bytes, uint32_t *offsets, const uint8_t *token,
                      uint32_t count)
{
    memcpy(bytes + offsets[source->vocabulary], token, count);
    offsets[source->vocabulary + 1] = offsets[source->vocabulary] + count;
    source->vocabulary++;
}

static void shared_merging_is_exact(void **unused)
{
    (void)unused;
    const uint32_t most = 256 + SIDE * SIDE + 2 * SIDE * SIDE;
    uint8_t *bytes = malloc(most * 4), token[4];
    uint32_t *offsets = calloc(most + 1, sizeof *offsets);
    struct bpe_source source = {.path = "test", .bytes = bytes, .offsets = offsets, .whole = true};
    struct bpe_model *model;
    struct bpe_scratch scratch = {.memory = NULL};
    struct tokmap_error error;
    assert_true(bytes && offsets);
    for (uint32_t i = 0; i < 256; i++) {
        token[0] = (uint8_t)i;
        add_token(&source, bytes, offsets, token, 1);
    }
    for (uint32_t i = 0; i < SIDE * SIDE; i++) { /* triples of lower rank than pairs are never reached */
        const uint32_t number = i * 37 % (SIDE * SIDE);
        const uint8_t triple[] = {(uint8_t)('0' + number % SIDE), (uint8_t)('0' + number / SIDE),
                                  (uint8_t)('0' + (number * 13 + i) % SIDE)};
        add_token(&source, bytes, offsets, triple, 3);
        const uint8_t pair[] = {(uint8_t)('0' + i % SIDE), (uint8_t)('0' + i / SIDE)};
        add_token(&source, bytes, offsets, pair, 2);
    }
    assert_int_equal(bpe_model_build(&model, &source, &error), TOKMAP_OK);
    uint32_t state = 1;
    for (uint32_t i = 0; i < 150; i++) {
        uint8_t text[12];
        uint32_t ids[32], plain[32];
        for (uint32_t k = 0; k < sizeof text; k++) {
            state = state * 1664525 + 1013904223;
            text[k] = (uint8_t)('0' + (state >> 16) % SIDE);
        }
        const uint32_t count = 3 + i % 10;
        const uint32_t wanted = merge_plainly(&source, text, count, plain);
        assert_int_equal(bpe_merge(model, &scratch, text, count, ids), wanted);
        assert_memory_equal(ids, plain, wanted * sizeof *ids);
    }
    /* Each token has its seed: its own text, merged. */
    uint32_t seeds = 0;
    for (uint32_t id = 0; id < source.vocabulary; id++) {
        uint32_t ids[32];
        const uint32_t count = offsets[id + 1] - offsets[id];
        const uint32_t made = (uint32_t)bpe_merge(model, &scratch, bytes + offsets[id], count, ids);
        seeds += made == 1 && ids[0] == id;
        if (made != 1 || ids[0] != id)
            assert_int_equal(bpe_unreached(model, bytes + offsets[id], count), id);
    }
    assert_int_equal(model->seed_count, seeds);
    assert_int_equal(model->unreached_count, source.vocabulary - seeds);
    free(scratch.memory);
    bpe_model_free(model);
    free(bytes);
    free(offsets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabularies_are_complete),   cmocka_unit_test(faults_of_vocabularies),
        cmocka_unit_test(first_of_two_faults),         cmocka_unit_test(merges_are_complete),
        cmocka_unit_test(lists_end_where_they_end),    cmocka_unit_test(guesses_may_be_wrong),
        cmocka_unit_test(wrong_guesses_may_read_well), cmocka_unit_test(faults_have_their_numbers),
        cmocka_unit_test(lines_are_complete),          cmocka_unit_test(faults_have_their_lines),
        cmocka_unit_test(shared_merging_is_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
