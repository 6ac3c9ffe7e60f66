/* SPDX-License-Identifier: MIT */
/* test_bpe_files.c - GPT-2's two files: each is read once, whichever of them is named, and a success leaves the
 * caller's error unchanged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "platform/os.h"
#include "text/code_point.h"
#include "unicode/byte_alphabet.h"
#include "vocabulary/bpe_files.h"
#include "vocabulary/vocabulary.h"

static char folder[512], merges_path[640], ids_path[640];
static char ids_text[16384];
static const char merges_text[] = "#version: 0.2\na b\nab c\n";

static void write_file(const char *path, const char *text)
{
    int fd;
    (void)os_unlink(path);
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_write(fd, text, strlen(text)), 0);
    os_close(fd);
}

static int write_files(void **state)
{
    size_t used = 0;
    snprintf(merges_path, sizeof merges_path, "%s/vocab.bpe", folder);
    snprintf(ids_path, sizeof ids_path, "%s/encoder.json", folder);
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t text[5] = {0};
        text[code_point_put(text, byte_character((uint8_t)byte))] = 0;
        used += (size_t)snprintf(ids_text + used, sizeof ids_text - used, "%s\"%s%s\": %u", byte ? ", " : "{",
                                 *text == '"' || *text == '\\' ? "\\" : "", (char *)text, byte);
    }
    used += (size_t)snprintf(ids_text + used, sizeof ids_text - used,
                             ", \"ab\": 256, \"abc\": 257, \"<|endoftext|>\": 258}");
    assert_true(used < sizeof ids_text);
    write_file(merges_path, merges_text);
    write_file(ids_path, ids_text);
    return 0;
}

static void check_and_close(struct tokenizer *tokenizer)
{
    struct tokenizer_state *own;
    struct tokmap_error error;
    const struct tokmap_text document = {"abcab", 5};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    uint16_t ids[8];
    uint64_t end;
    struct tokenizer_out out = {.tokens = ids, .capacity = 8, .ends = &end};
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.vocabulary, 259);
    assert_int_equal(info.eod_id, 258);
    assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(own, &batch, &out, &error), TOKMAP_OK);
    assert_int_equal(out.count, 2);
    assert_true(ids[0] == 257 && ids[1] == 256);
    tokenizer_state_free(own);
    tokenizer_close(tokenizer);
}

/* Counts how often a file was opened since the watch began. Closing is watched, too, because the kernel reports
 * equal events in a row as one. */
static unsigned opens_count(int watch)
{
    static _Alignas(struct inotify_event) char events[4096];
    unsigned opens = 0;
    const ssize_t got = read(watch, events, sizeof events);
    for (ssize_t at = 0; at < got;) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
        opens += (event->mask & IN_OPEN) != 0;
        at += (ssize_t)(sizeof *event + event->len);
    }
    return opens;
}

static void each_file_is_read_once(void **state)
{
    const char *const named[] = {merges_path, ids_path}, *const other[] = {ids_path, merges_path};
    for (int i = 0; i < 2; i++) {
        struct tokenizer *tokenizer;
        struct tokmap_error error;
        const int watches[2] = {inotify_init1(IN_NONBLOCK), inotify_init1(IN_NONBLOCK)};
        if (watches[0] < 0 || watches[1] < 0)
            skip(); /* the limit of this user's watches is reached */
        assert_true(inotify_add_watch(watches[0], named[i], IN_OPEN | IN_CLOSE) >= 0);
        assert_true(inotify_add_watch(watches[1], other[i], IN_OPEN | IN_CLOSE) >= 0);
        assert_int_equal(vocabulary_open(&tokenizer, named[i], NULL, &error), TOKMAP_OK);
        assert_int_equal(opens_count(watches[0]), 1);
        assert_int_equal(opens_count(watches[1]), 1);
        check_and_close(tokenizer);
        close(watches[0]);
        close(watches[1]);
    }
}

/* The file that the caller has read is not read again: it may have been removed or replaced. */
static void given_text_is_used(void **state)
{
    const struct tokmap_tokenizer_options options = {.pattern = NULL};
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    write_file(merges_path, "#version: 0.2\nx y\n");
    assert_int_equal(bpe_files_open(&tokenizer, merges_path, merges_text, strlen(merges_text), &options, &error), 0);
    check_and_close(tokenizer);
    write_file(merges_path, merges_text);
    assert_int_equal(os_unlink(ids_path), 0);
    assert_int_equal(bpe_files_open(&tokenizer, ids_path, ids_text, strlen(ids_text), &options, &error), TOKMAP_OK);
    check_and_close(tokenizer);
    write_file(ids_path, ids_text);
}

/* A call that succeeds does not change the error that an earlier call reported. The error may be NULL. */
static void error_of_the_caller(void **state)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error = {.status = TOKMAP_ERROR_IO, .message = "an earlier message"};
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_OK);
    assert_int_equal(error.status, TOKMAP_ERROR_IO);
    assert_string_equal(error.message, "an earlier message");
    check_and_close(tokenizer);
    assert_int_equal(vocabulary_open(&tokenizer, ids_path, NULL, NULL), TOKMAP_OK);
    check_and_close(tokenizer);
    assert_int_equal(os_unlink(ids_path), 0);
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, NULL), TOKMAP_ERROR_NOT_FOUND);
    assert_null(tokenizer);
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_ERROR_NOT_FOUND);
    assert_int_equal(error.status, TOKMAP_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "encoder.json"));
    assert_string_equal(error.path, merges_path);
    write_file(ids_path, ids_text);
}

static void faults(void **state)
{
    static const struct {
        const char *merges, *message;
    } wrong[] = {
        {"#version: 0.2\na b\nabc\n", "merge 1 (counted from 0) must be two tokens"},
        {"#version: 0.2\na b c\n", "merge 0 (counted from 0) must be two tokens"},
        {"#version: 0.2\na xy\n", "needs the token 'xy'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tokenizer *tokenizer;
        struct tokmap_error error;
        write_file(merges_path, wrong[i].merges);
        assert_int_equal(vocabulary_open(&tokenizer, ids_path, NULL, &error), TOKMAP_ERROR_FORMAT);
        assert_null(tokenizer);
        if (!strstr(error.message, wrong[i].message))
            fail_msg("case %zu: %s", i, error.message);
        assert_string_equal(error.path, merges_path);
    }
    write_file(merges_path, merges_text);
}

static void refused(const char *message, const char *path)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    const char *const named[] = {merges_path, ids_path, folder};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vocabulary_open(&tokenizer, named[i], NULL, &error), TOKMAP_ERROR_UNSUPPORTED);
        assert_null(tokenizer);
        if (!strstr(error.message, message))
            fail_msg("%s: %s", named[i], error.message);
        assert_string_equal(error.path, path);
    }
}

/* Two files that are not of GPT-2's kind are refused, because they would load and give other ids. */
static void other_kinds(void **state)
{
    static const struct {
        const char *merges, *message;
    } kinds[] = {
        {"#version: 0.2\na b\nab c</w>\n", "merge 1 (counted from 0) marks the end of a word with </w>"},
        {"#version: 0.2\nc </w> 1234\n", "merge 0 (counted from 0) marks the end of a word with </w>"},
        {"#version: 0.2\n\xe2\x96\x81 a\n", "merge 0 (counted from 0) has the character '\xe2\x96\x81'"},
        {"#version: 0.2\na \xe4\xb8\xad\n", "has the character '\xe4\xb8\xad', which stands for no byte"},
        {"#version: 0.2\n. a\n", "merge 0 (counted from 0) is '. a', but GPT-2's pattern"},
        {"#version: 0.2\na @@\n", "is 'a @@', but GPT-2's pattern"},
        {"#version: 0.2\na 1\n", "is 'a 1', but GPT-2's pattern"},
        {"#version: 0.2\n1 %\n", "is '1 %', but GPT-2's pattern"},
        {"#version: 0.2\na \xc4\xa0\n", "is 'a \xc4\xa0', but GPT-2's pattern"}, /* a space behind a letter */
        {"#version: 0.2\n; \xc4\x8a\n", "is '; \xc4\x8a', but GPT-2's pattern"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        write_file(merges_path, kinds[i].merges);
        refused(kinds[i].message, merges_path);
    }
    /* A space or an apostrophe before a letter is of GPT-2's kind; the merge lacks its token here. */
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    write_file(merges_path, "#version: 0.2\n\xc4\xa0 a\n");
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_ERROR_FORMAT);
    write_file(merges_path, "#version: 0.2\n' a\n");
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_ERROR_FORMAT);
    write_file(merges_path, merges_text);
    write_file(ids_path, "{\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, \"abc\": 4}");
    refused("the vocabulary has no token for the space", ids_path);
    write_file(ids_path, ids_text);
}

/* The configuration in the same folder can say that the files are of another kind. */
static void configurations(void **state)
{
    char path[640];
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    static const char *const good[] = {
        "{\"tokenizer_class\": \"GPT2Tokenizer\", \"add_prefix_space\": false}",
        "{\"model_max_length\": 512, \"tokenizer_class\": \"RobertaTokenizerFast\"}",
        "{\"tokenizer_class\": null, \"x\": {\"tokenizer_class\": \"CLIPTokenizer\"}}",
        "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}",
        "{\"added_tokens_decoder\": {\"7\": {\"special\": true, \"content\": \"<s>\"}}}",
    };
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        write_file(path, good[i]);
        assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_OK);
        check_and_close(tokenizer);
    }
    write_file(path, "{\"tokenizer_class\": \"Qwen2Tokenizer\"}");
    refused("the tokenizer_class is 'Qwen2Tokenizer'", path);
    write_file(path, "{\"tokenizer_class\": \"Tokenizer\"}");
    refused("the tokenizer_class is 'Tokenizer'", path);
    write_file(path, "{\"add_prefix_space\": true, \"tokenizer_class\": \"GPT2Tokenizer\"}");
    refused("add_prefix_space is true", path);
    write_file(path, "{\"added_tokens_decoder\": {\"7\": {\"content\": \"<s>\", \"special\": true}, "
                     "\"8\": {\"content\": \"two  spaces\", \"lstrip\": false, \"special\": false}}}");
    refused("the added token 'two  spaces' is an ordinary one", path);
    write_file(path, "{\"added_tokens_decoder\": {\"7\": {\"content\": \"a\", \"special\": false}");
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_ERROR_FORMAT);
    write_file(path, "{\"tokenizer_class\": \"GPT2Tokenizer\"");
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_ERROR_FORMAT);
    assert_string_equal(error.path, path);
    assert_int_equal(os_unlink(path), 0);
}

/* Encodes a text and compares its ids. */
static void check_ids(const char *path, const char *text, const uint16_t *wanted, uint64_t count)
{
    struct tokenizer *tokenizer;
    struct tokenizer_state *own;
    struct tokmap_error error;
    const struct tokmap_text document = {text, strlen(text)};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    uint16_t ids[1024];
    uint64_t end;
    struct tokenizer_out out = {.tokens = ids, .capacity = 1024, .ends = &end};
    if (vocabulary_open(&tokenizer, path, NULL, &error))
        fail_msg("%s: %s", path, error.message);
    assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(own, &batch, &out, &error), TOKMAP_OK);
    assert_int_equal(out.count, count);
    assert_memory_equal(ids, wanted, count * sizeof *ids);
    tokenizer_state_free(own);
    tokenizer_close(tokenizer);
}

/* A vocabulary that marks the ends of words is CLIP's if it has all bytes, with a note unless the configuration names
 * the class; and the file of OpenAI's CLIP, from which the vocabulary follows, gives the same ids. */
static void clip(void **state)
{
    static char ids[32768];
    static const char merges[] = "#version: 0.2\na b\nab c</w>\n";
    static const uint16_t wanted[] = {513, 64, 512, 320};
    char path[640], config[640];
    size_t used = 0;
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    struct tokmap_error error;
    for (int ends = 0, id = 0; ends < 2; ends++)
        for (int others = 0; others < 2; others++)
            for (unsigned byte = 0; byte < 256; byte++) {
                uint8_t text[5] = {0};
                text[code_point_put(text, byte_character((uint8_t)byte))] = 0;
                if ((byte_character((uint8_t)byte) == byte) != others) {
                    used += (size_t)snprintf(ids + used, sizeof ids - used, "%s\"%s%s%s\": %d", id ? ", " : "{",
                                             *text == '"' || *text == '\\' ? "\\" : "", (char *)text,
                                             ends ? "</w>" : "", id);
                    id++;
                }
            }
    (void)snprintf(ids + used, sizeof ids - used,
                   ", \"ab\": 512, \"abc</w>\": 513, \"<|startoftext|>\": 514, \"<|endoftext|>\": 515}");
    write_file(ids_path, ids);
    write_file(merges_path, merges);
    check_ids(merges_path, "  ABC\n a aba", (const uint16_t[]){513, 320, 512, 320}, 4);
    check_ids(ids_path, "abc", wanted, 1);
    assert_int_equal(vocabulary_open(&tokenizer, ids_path, NULL, &error), TOKMAP_OK);
    info = info_of_tokenizer(tokenizer);
    assert_true(info.eod_id == 515 && info.bos_id == 514);
    assert_non_null(strstr(info.note, "as CLIP does"));
    tokenizer_close(tokenizer);
    snprintf(config, sizeof config, "%s/tokenizer_config.json", folder);
    for (int fast = 0; fast < 2; fast++) {
        write_file(config,
                   fast ? "{\"tokenizer_class\": \"CLIPTokenizerFast\"}" : "{\"tokenizer_class\": \"CLIPTokenizer\"}");
        assert_int_equal(vocabulary_open(&tokenizer, ids_path, NULL, &error), TOKMAP_OK);
        info = info_of_tokenizer(tokenizer);
        assert_null(info.note);
        tokenizer_close(tokenizer);
    }
    write_file(config, "{\"tokenizer_class\": \"GPT2Tokenizer\"}");
    refused("marks the end of a word with </w>", merges_path);
    assert_int_equal(os_unlink(config), 0);
    snprintf(path, sizeof path, "%s/bpe_simple_vocab_16e6.txt", folder);
    write_file(path, "\"bpe_simple_vocab_16e6.txt#version: 0.2\na b\nab c</w>\n");
    assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_OK);
    info = info_of_tokenizer(tokenizer);
    assert_non_null(strstr(info.note, "CLIP's own code first repairs text with ftfy"));
    tokenizer_close(tokenizer);
    check_ids(path, "  ABC\n a aba", (const uint16_t[]){513, 320, 512, 320}, 4);
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"\"bpe_simple_vocab_16e6.txt#version: 0.2\na b\nabc\n", "merge 1 (counted from 0) must be two tokens"},
        {"\"bpe_simple_vocab_16e6.txt#version: 0.2\na b c\n", "merge 0 (counted from 0) must be two tokens"},
        {"\"bpe_simple_vocab_16e6.txt#version: 0.2\na b\na b\n", "two merges make the same token"},
        {"\"bpe_simple_vocab_16e6.txt#version: 0.2\n b\n", "merge 0 (counted from 0) must be two tokens"},
        {"\"bpe_simple_vocab_16e6.txt#version: 0.2\na xy\n", "needs the token 'xy'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_file(path, wrong[i].text);
        assert_int_equal(vocabulary_open(&tokenizer, path, NULL, &error), TOKMAP_ERROR_FORMAT);
        if (!strstr(error.message, wrong[i].message))
            fail_msg("case %zu: %s", i, error.message);
    }
    assert_int_equal(os_unlink(path), 0);
    write_file(ids_path, ids_text);
    write_file(merges_path, merges_text);
}

/* A token that ends with the mark does not make a vocabulary one that marks the ends of words. */
static void a_mark_alone(void **state)
{
    static char ids[sizeof ids_text + 32];
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    snprintf(ids, sizeof ids, "%.*s, \"a</w>\": 259}", (int)strlen(ids_text) - 1, ids_text);
    write_file(ids_path, ids);
    assert_int_equal(vocabulary_open(&tokenizer, ids_path, NULL, &error), TOKMAP_OK);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.vocabulary, 260);
    assert_true(!info.note || !strstr(info.note, "words as in BERT"));
    tokenizer_close(tokenizer);
    write_file(ids_path, ids_text);
}

/* OpenAI's file has more merges than the model uses. */
static void clip_uses_some_merges(void **state)
{
    static char text[400000] = "\"bpe_simple_vocab_16e6.txt#version: 0.2\n";
    size_t used = strlen(text);
    char path[640];
    struct tokenizer *tokenizer;
    struct tokenizer_info info;
    struct tokmap_error error;
    for (unsigned left = 0; left < 200; left++)
        for (unsigned right = 0; right < 256; right++) {
            used += code_point_put((uint8_t *)text + used, byte_character((uint8_t)left));
            text[used++] = ' ';
            used += code_point_put((uint8_t *)text + used, byte_character((uint8_t)right));
            text[used++] = '\n';
        }
    assert_true(used < sizeof text);
    snprintf(path, sizeof path, "%s/bpe_simple_vocab_16e6.txt", folder);
    write_file(path, text);
    if (vocabulary_open(&tokenizer, path, NULL, &error))
        fail_msg("%s", error.message);
    info = info_of_tokenizer(tokenizer);
    assert_true(info.vocabulary == 49408 && info.bos_id == 49406 && info.eod_id == 49407);
    tokenizer_close(tokenizer);
    assert_int_equal(os_unlink(path), 0);
}

/* A vocabulary without tokens is refused, also when there is no merge that would need one. */
static void empty_vocabulary(void **state)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error;
    write_file(ids_path, "{}");
    write_file(merges_path, "#version: 0.2\n");
    assert_int_equal(vocabulary_open(&tokenizer, merges_path, NULL, &error), TOKMAP_ERROR_FORMAT);
    assert_null(tokenizer);
    assert_string_equal(error.path, ids_path);
    assert_non_null(strstr(error.message, "the vocabulary is empty"));
}

int main(void)
{
    const char *scratch = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_bpe_files.%llu", scratch ? scratch : "/tmp",
             (unsigned long long)os_clock_ns());
    if (os_make_folder(folder)) {
        printf("%s cannot be made\n", folder);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_is_read_once),
        cmocka_unit_test(error_of_the_caller),
        cmocka_unit_test(given_text_is_used),
        cmocka_unit_test(faults),
        cmocka_unit_test(other_kinds),
        cmocka_unit_test(configurations),
        cmocka_unit_test(clip),
        cmocka_unit_test(a_mark_alone),
        cmocka_unit_test(clip_uses_some_merges),
        cmocka_unit_test(empty_vocabulary),
    };
    return cmocka_run_group_tests(tests, write_files, NULL);
}
