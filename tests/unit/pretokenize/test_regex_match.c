/* SPDX-License-Identifier: MIT */
/* test_regex_match.c - known patterns, matched by PCRE2, give the pieces of the reference scanner; patterns that the
 * rewriter refuses; translation to kinds of characters. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pretokenize/pcre2_library.h"
#include "pretokenize/pretokenizer.h"
#include "pretokenize/regex_match.h"
#include "pretokenize/scanner_piece.h"
#include "support/awkward_text.h"
#include "text/code_point.h"

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *name, *pattern;
} patterns[] = {
    {"gpt2", CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
    {"cl100k_base",
     "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES},
    {"qwen2", "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES},
    {"o200k_base",
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:" CONTRACTIONS ")?|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:" CONTRACTIONS ")?|"
     "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES},
    {"tekken", "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
               "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
               "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES},
};

/* Compares all pieces of a text. */
static void check(const char *name, struct regex_state *state, const struct split_rules *rules, const uint8_t *text,
                  size_t count)
{
    size_t from, to, at = 0;
    assert_true(regex_begin(state, text, count, false));
    while (regex_next(state, &from, &to) == REGEX_MATCH) {
        const size_t end = scan_piece(rules, text, at, count);
        if (from != at || to != end)
            fail_msg("%s: '%.*s': %zu..%zu, not %zu..%zu", name, (int)(count < 200 ? count : 200), (const char *)text,
                     at, end, from, to);
        at = end;
    }
    assert_int_equal(at, count);
}

static void scanners(void **state)
{
    awkward_seed(11);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        for (int dialect = REGEX_ONIGURUMA; dialect <= REGEX_RUST; dialect++) {
            struct regex *regex;
            struct regex_state *own;
            struct tokmap_error error;
            if (regex_new(&regex, patterns[i].pattern, strlen(patterns[i].pattern), (enum regex_dialect)dialect, NULL,
                          "pattern", &error)) {
                if (error.status == TOKMAP_ERROR_UNSUPPORTED && strstr(error.message, "no PCRE2"))
                    skip();
                fail_msg("%s: %s", patterns[i].name, error.message);
            }
            assert_int_equal(regex_state_new(&own, regex, &error), TOKMAP_OK);
            for (int round = 0; round < 400; round++) {
                const size_t count = 1 + awkward_below(200);
                uint8_t *text = malloc(count);
                assert_non_null(text);
                awkward_text(text, count);
                check(patterns[i].name, own, split_rules_named(patterns[i].name), text, count);
                free(text);
            }
            regex_state_free(own);
            regex_free(regex);
        }
}

/* ---- DeepSeek's three expressions as steps of a pre-tokenizer, against the reference scanner ---- */

static struct pretokenizer deepseek;
static struct pretokenizer_state deepseek_state;
static const uint8_t *cut_text;
static size_t cut_at, cut_count;

static bool compare_piece(void *user, const uint8_t *bytes, size_t count)
{
    const size_t end = scan_piece(split_rules_named("deepseek_v3"), cut_text, cut_at, cut_count);
    assert_ptr_equal(bytes, cut_text + cut_at);
    if (end != cut_at + count)
        fail_msg("'%.*s': %zu..%zu, not %zu..%zu", (int)(cut_count < 200 ? cut_count : 200), (const char *)cut_text,
                 cut_at, end, cut_at, cut_at + count);
    cut_at = end;
    return true;
}

static void compare_deepseek(const uint8_t *text, size_t count)
{
    cut_text = text;
    cut_at = 0;
    cut_count = count;
    assert_true(pretokenizer_run(&deepseek_state, text, count));
    assert_int_equal(cut_at, count);
}

static void three_steps(void **state)
{
    struct tokmap_error error;
    for (size_t i = 0; i < SPLIT_STEPS; i++) {
        struct pretokenizer_step *step = &deepseek.steps[deepseek.count++];
        step->kind = STEP_REGEX;
        step->behavior = SPLIT_ISOLATED;
        if (regex_new(&step->regex, split_deepseek_steps[i], strlen(split_deepseek_steps[i]), REGEX_ONIGURUMA, NULL,
                      "pattern", &error)) {
            if (strstr(error.message, "no PCRE2"))
                skip();
            fail_msg("%s", error.message);
        }
    }
    assert_int_equal(pretokenizer_state_init(&deepseek_state, &deepseek, &error), TOKMAP_OK);
    deepseek_state.emit = compare_piece;
    deepseek_state.error = &error;
    awkward_seed(12);
    for (int round = 0; round < 2000; round++) {
        const size_t count = 1 + awkward_below(200);
        uint8_t *text = malloc(count);
        assert_non_null(text);
        awkward_text(text, count);
        compare_deepseek(text, count);
        free(text);
    }
    /* Each character of CLASS_CJK, and characters around these ranges, next to characters inside and outside of
     * them. */
    static const char *const beside[] = {
        "",        "a", " ", "\n", "1", "!", "\xE3\x83\x95", "\xE3\x83\xBB", "\xE3\x82\x97", "\xCC\x81", "\xE3\x80\x82",
        "\xC2\xAD"};
    const size_t others = sizeof beside / sizeof beside[0];
    for (uint32_t code = 0x3000; code < 0x9FC0; code += code == 0x3110 ? 0x4DE0 - 0x3110 : code == 0x4E10 ? 0x5180 : 1)
        for (size_t i = 0; i < others * others; i++) {
            uint8_t text[16];
            const char *before = beside[i / others], *behind = beside[i % others];
            size_t count = strlen(before);
            memcpy(text, before, count);
            count += code_point_put(text + count, code);
            memcpy(text + count, behind, strlen(behind));
            compare_deepseek(text, count + strlen(behind));
        }
    pretokenizer_state_free(&deepseek_state);
    pretokenizer_free(&deepseek);
}

static void refused(void **state)
{
    static const char *const wrong[] = {"(",
                                        ")",
                                        "[a",
                                        "a**",
                                        "*a",
                                        "\\p{Greek",
                                        "\\p{Nonsense}",
                                        "\\",
                                        "\\1",
                                        "(?<n>a)",
                                        "\\X",
                                        "a{2}?",
                                        "a{1,2}+",
                                        "[[:alpha:]]",
                                        "\\b",
                                        "\\h",
                                        "[a&&]",
                                        "[&&a]",
                                        "[a[]]",
                                        "[a&&&b]",
                                        "(?i:[a&&b])",
                                        "(?i:[a[b]])",
                                        "[a[b]",
                                        "[[[[[[[[[[a]]]]]]]]]]",
                                        "(?i:ss)",
                                        "(?i:\xC3\xA9)",
                                        "[b-a]",
                                        "[\\d-z]",
                                        "\\x{110000}",
                                        "\\x{d800}",
                                        "(?m:a)",
                                        "(?i:\\p{Lu})",
                                        "a{3}{2}",
                                        "\\k<n>"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bytes_buffer into = {NULL, 0, 0};
        struct regex_sets sets = {.count = 0};
        struct regex_fault fault;
        if (regex_rewrite(&into, &sets, wrong[i], strlen(wrong[i]), REGEX_ONIGURUMA, &fault))
            fail_msg("'%s' is accepted", wrong[i]);
        assert_non_null(fault.reason);
        assert_true(fault.offset <= strlen(wrong[i]));
        bytes_free(&into);
        regex_sets_free(&sets);
    }
}

/* Writes the matches of a pattern in a text, each as "from-to", or the error message. */
static void matches(char *into, size_t room, const char *pattern, enum regex_dialect dialect, const char *text,
                    bool mapped)
{
    struct regex *regex;
    struct regex_state *own;
    struct tokmap_error error;
    size_t from, to, used = 0;
    if (regex_new(&regex, pattern, strlen(pattern), dialect, NULL, "pattern", &error)) {
        snprintf(into, room, "%.900s", error.message);
        return;
    }
    into[0] = 0;
    assert_int_equal(regex_state_new(&own, regex, &error), TOKMAP_OK);
    assert_true(regex_begin(own, (const uint8_t *)text, strlen(text), mapped));
    while (regex_next(own, &from, &to) == REGEX_MATCH && used < room)
        used += (size_t)snprintf(into + used, room - used, "%zu-%zu ", from, to);
    regex_state_free(own);
    regex_free(regex);
}

static void kinds(void **state)
{
    static const struct {
        const char *pattern, *text, *wanted;
        bool mapped;
    } cases[] = {
        {"[a-d&&[^b]&&[^c]]+", "abcda", "0-1 3-5 ", false},
        {"[^a-d&&[b]]+", "abcde", "0-1 2-5 ", false},
        {"[\\p{L}&&[^\\p{Han}]]+|\\p{Han}",
         "a\xC3\xA9\xE4\xB8\xAD\xE6\x96\x87"
         "b",
         "0-3 3-6 6-9 9-10 ", false},
        {"[a[b-c]x]+", "abcdx", "0-3 4-5 ", false},
        {"[^\\s\\S]|b", "ab", "1-2 ", false},
        {"(?=\xC3\xA9)",
         "a\xC3\xA9"
         "b\xC3\xA9",
         "1-1 4-4 ", false},
        {"(?<=\xF0\x9F\x98\x80)b$",
         "b\xF0\x9F\x98\x80"
         "b",
         "5-6 ", false},
        {"\xC3\x83|\xC2\xA9", "a\xC3\xA9", "1-2 2-3 ", true}, /* bytes as characters */
        {"\xC4\xA0", "a b", "1-2 ", true},
    };
    char got[1024];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int dialect = REGEX_ONIGURUMA; dialect <= REGEX_RUST; dialect++) {
            matches(got, sizeof got, cases[i].pattern, (enum regex_dialect)dialect, cases[i].text, cases[i].mapped);
            if (strstr(got, "no PCRE2"))
                skip();
            assert_string_equal(got, cases[i].wanted);
        }
    matches(got, sizeof got, "[!--]+", REGEX_ONIGURUMA, "!,-.", false);
    assert_string_equal(got, "0-3 ");
    matches(got, sizeof got, "[!--]+", REGEX_RUST, "!,-.", false);
    assert_non_null(strstr(got, "--"));
    char many[300 * 4 + 1];
    for (size_t i = 0; i < 300; i++) /* 300 characters, each of a kind of its own */
        snprintf(many + 4 * i, 5, "%c%c%c|", 0xE4, 0xB8 + (int)(i / 64), 0x80 + (int)(i % 64));
    matches(got, sizeof got, many, REGEX_RUST, "a", false);
    assert_non_null(strstr(got, "256 kinds"));
}

/* ---- limits ---- */

static struct regex *limited;
static struct regex_state *limited_state;

static void limited_open(const char *pattern)
{
    struct tokmap_error error;
    if (regex_new(&limited, pattern, strlen(pattern), REGEX_ONIGURUMA, NULL, "pattern", &error)) {
        if (strstr(error.message, "no PCRE2"))
            skip();
        fail_msg("%s: %s", pattern, error.message);
    }
    assert_int_equal(regex_state_new(&limited_state, limited, &error), TOKMAP_OK);
}

static void limited_close(void)
{
    regex_state_free(limited_state);
    regex_free(limited);
}

/* Matches `count` bytes of repeated text and one more byte. Returns what the search ended with; *matches: how many. */
static enum regex_found search(const char *unit, size_t count, char last, size_t *matches, size_t *at)
{
    const size_t bytes = strlen(unit);
    char *text = malloc(count + 1);
    enum regex_found found;
    size_t to;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        text[i] = unit[i % bytes];
    text[count] = last;
    regex_document(limited_state);
    assert_true(regex_begin(limited_state, (const uint8_t *)text, count + 1, false));
    for (*matches = 0; (found = regex_next(limited_state, at, &to)) == REGEX_MATCH;)
        ++*matches;
    free(text);
    return found;
}

static void known_patterns_stay_below_the_limits(void **state)
{
    static const char *const units[] = {
        " ",      "a",    "A", "1", "!", "\n", "\t ", " \n", "aB", "'s", "a ", "\xE2\x80\x83", "\xE4\xB8\xAD",
        "1 a!\n", "/\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        limited_open(patterns[i].pattern);
        for (size_t k = 0; k < sizeof units / sizeof units[0]; k++) {
            const size_t count = 60000 - 60000 % strlen(units[k]);
            size_t matches, at;
            if (search(units[k], count, 'x', &matches, &at) != REGEX_END)
                fail_msg("%s: '%s': at %zu", patterns[i].name, units[k], at);
            assert_true(matches > 0);
            assert_true(regex_charged(limited_state) <= 64 * count); /* of the 10^9 and 64 a byte that are allowed */
        }
        limited_close();
    }
}

/* Skips a test that spends whole limits of steps, where a processor is emulated or a sanitizer slows it down
 * (TEST_SHARE): a limit is a number of steps, which is the same everywhere. */
static void needs_a_fast_processor(void)
{
    if (getenv("TEST_SHARE")) {
        print_message("limits of steps take long under emulation and with sanitizers\n");
        skip();
    }
}

static void patterns_that_backtrack_end(void **state)
{
    size_t matches, at;
    (void)state;
    needs_a_fast_processor();
    limited_open("(?:a+)+b|a"); /* exponential: 2^n steps for n letters */
    assert_int_equal(search("a", 12, '!', &matches, &at), REGEX_END);
    assert_int_equal(matches, 12);
    assert_int_equal(search("a", 30, '!', &matches, &at), REGEX_FAILED);
    assert_int_equal(matches, 0);
    assert_int_equal(at, 0);
    assert_int_equal(search("x", 20000, 'a', &matches, &at), REGEX_END); /* a search is done in several parts */
    assert_int_equal(matches, 1);
    limited_close();
    limited_open("\\d{1,3}(?=(?:\\d{3})*(?!\\d))"); /* quadratic */
    assert_int_equal(search("1", 20000, '1', &matches, &at), REGEX_END);
    assert_int_equal(matches, 6667);
    assert_true(regex_charged(limited_state) < 100000000);
    assert_int_equal(search("1", 2000000, '1', &matches, &at), REGEX_FAILED);
    assert_int_equal(at, 3 * matches); /* 2,000,001 digits are groups of three */
    assert_true(matches > 0 && regex_charged(limited_state) < 2000000000);
    limited_close();
}

/* A step may read a run of the text, and a place may need few of them. */
static void runs_of_characters_are_counted(void **state)
{
    size_t matches, at;
    (void)state;
    needs_a_fast_processor();
    limited_open("a*b|."); /* each place reads all letters after it */
    assert_int_equal(search("a", 20000, '!', &matches, &at), REGEX_END);
    assert_int_equal(matches, 20001);
    assert_true(regex_charged(limited_state) > 20000 / 2 * 19000 / 8);
    assert_int_equal(search("a", 2000000, '!', &matches, &at), REGEX_FAILED);
    assert_int_equal(matches, at);
    assert_true(regex_charged(limited_state) < 2000000000);
    limited_close();
    limited_open("(?:a*b|.)*"); /* so does one match, in each of its steps */
    assert_int_equal(search("a", 20000, '!', &matches, &at), REGEX_END);
    assert_int_equal(search("a", 2000000, '!', &matches, &at), REGEX_FAILED);
    assert_int_equal(matches, 0);
    limited_close();
}

/* Texts of one document have one limit, which grows with their bytes. */
static void documents_have_one_limit(void **state)
{
    static char text[40001];
    size_t from, to, texts = 0;
    enum regex_found found = REGEX_END;
    (void)state;
    needs_a_fast_processor();
    memset(text, '1', sizeof text);
    limited_open("\\d{1,3}(?=(?:\\d{3})*(?!\\d))"); /* quadratic */
    for (; texts < 1000 && found == REGEX_END; texts++) {
        assert_true(regex_begin(limited_state, (const uint8_t *)text, sizeof text, false));
        while ((found = regex_next(limited_state, &from, &to)) == REGEX_MATCH)
            continue;
    }
    assert_int_equal(found, REGEX_FAILED);
    assert_true(texts > 1 && regex_charged(limited_state) < 2000000000);
    regex_document(limited_state); /* the next one has its own */
    assert_int_equal(regex_charged(limited_state), 0);
    assert_true(regex_begin(limited_state, (const uint8_t *)text, sizeof text, false));
    while ((found = regex_next(limited_state, &from, &to)) == REGEX_MATCH)
        continue;
    assert_int_equal(found, REGEX_END);
    limited_close();
}

/* Matches that need more of the text than a search sees at first are those of a search that sees all of it. */
static void windows_do_not_matter(void **state)
{
    static const char *const longs[] = {"a*b|.", "a+(?=b)|b|\\s+(?!\\S)|\\s+", "(?<=a)b+|a+$|\\s*[\\r\\n]+|\\S"};
    (void)state;
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++) {
        limited_open(longs[i]);
        for (size_t run = 100; run < 400; run++) {
            char text[1000];
            size_t from, to, done = 0;
            memset(text, 'a', run);
            memset(text + run, 'b', 200);
            memset(text + run + 200, ' ', run);
            text[2 * run + 200] = run & 1 ? '\n' : 'a';
            assert_true(regex_begin(limited_state, (const uint8_t *)text, 2 * run + 201, false));
            while (regex_next(limited_state, &from, &to) == REGEX_MATCH) {
                if (i == 0) /* the run with its first b, and single characters */
                    assert_true(to == (from ? from + 1 : run + 1));
                if (i == 1) /* the run, each b, and the spaces without the last before a letter */
                    assert_true(from == done && (from >= run || to == run) &&
                                (from < run + 200 || run & 1 || to >= 2 * run + 199));
                done = to;
            }
            assert_true(done == 2 * run + 201 - (run & 1) || i != 0); /* "." is no line feed */
        }
        limited_close();
    }
}

static bool stop_later(void *user)
{
    return !(*(size_t *)user)--;
}

static void searches_stop(void **state)
{
    size_t matches, at, looks = 100;
    (void)state;
    limited_open("a");
    regex_state_stop(limited_state, stop_later, &looks);
    assert_int_equal(search("a", 1000, 'a', &matches, &at), REGEX_STOPPED);
    assert_int_equal(matches, 100);
    looks = 10; /* no match is found in this text, so the search is interrupted inside of it */
    assert_int_equal(search("x", 1000000, 'x', &matches, &at), REGEX_STOPPED);
    assert_true(at > 0 && at < 1000000);
    limited_close();
    limited_open("(?:a*b|.)*");
    regex_state_stop(limited_state, stop_later, &looks);
    looks = 3; /* one look before the only match, and the others inside of it */
    assert_int_equal(search("a", 1000000, '!', &matches, &at), REGEX_STOPPED);
    assert_int_equal(matches, 0);
    limited_close();
}

/* PCRE2 cannot be loaded, and then can. */
static void a_missing_library_is_named(void **state)
{
#if defined(HAVE_PCRE2) && !defined(LIBRARIES_LINKED)
    const struct library kept = libpcre2_library;
    struct regex *regex = NULL;
    struct tokmap_error error;
    libpcre2_library.file = "libtokmap_of_nobody.so.7";
    libpcre2_library.state = LIBRARY_UNOPENED;
    assert_int_equal(regex_new(&regex, "a+", 2, REGEX_ONIGURUMA, "t.json", "pattern", &error),
                     TOKMAP_ERROR_UNSUPPORTED);
    assert_null(regex);
    assert_non_null(strstr(error.message, "libtokmap_of_nobody.so.7"));
    assert_non_null(strstr(error.message, "apt-get install libpcre2-8-0"));
    libpcre2_library.file = kept.file;
    assert_int_equal(regex_new(&regex, "a+", 2, REGEX_ONIGURUMA, "t.json", "pattern", &error), TOKMAP_OK);
    regex_free(regex);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scanners),
                                       cmocka_unit_test(three_steps),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(kinds),
                                       cmocka_unit_test(known_patterns_stay_below_the_limits),
                                       cmocka_unit_test(patterns_that_backtrack_end),
                                       cmocka_unit_test(runs_of_characters_are_counted),
                                       cmocka_unit_test(documents_have_one_limit),
                                       cmocka_unit_test(windows_do_not_matter),
                                       cmocka_unit_test(searches_stop),
                                       cmocka_unit_test(a_missing_library_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
