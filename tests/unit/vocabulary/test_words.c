/* SPDX-License-Identifier: MIT */
/*
 * test_words.c - WordPiece and WordLevel, as tokenizer.json and as vocab.txt: each field that is wrong or missing is
 * refused by name, both forms of one vocabulary are the same tokenizer, and ids, offsets, and decoded texts are right.
 * The files are written here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/os.h"
#include "vocabulary/vocabulary.h"

static char folder[512];
static char path[640];

static void remove_file(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)os_unlink(path);
}

static void write_file(const char *name, const char *text)
{
    int fd;
    remove_file(name);
    assert_int_equal(os_open(path, OS_WRITE_NEW, &fd), 0);
    assert_int_equal(os_write(fd, text, strlen(text)), 0);
    os_close(fd);
}

static const char *lower_case; /* the option */

/* Opens the file that was written last. */
static enum tokmap_status open_file(struct tokenizer **tokenizer, enum tokmap_special special,
                                    struct tokmap_error *error)
{
    const struct tokmap_tokenizer_options options = {.special = special, .lower_case = lower_case};
    return vocabulary_open(tokenizer, path, &options, error);
}

static void file_refused(enum tokmap_status status, const char *word)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    const enum tokmap_status got = open_file(&tokenizer, TOKMAP_SPECIAL_TEXT, &error);
    if (got != status || !strstr(error.message, word))
        fail_msg("expected %d and '%s', got %d: %s", (int)status, word, (int)got, error.message);
    assert_null(tokenizer);
}

/* ---- tokenizer.json ---- */

struct parts {
    const char *normalizer, *pre_tokenizer, *model;
};
#define BERT(fields) "{\"type\":\"BertNormalizer\"," fields "}"
#define VOCABULARY "\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"a\":4,\"##b\":5,\"##bc\":6,\",\":7}"
#define MODEL                                                                                                          \
    "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","                             \
    "\"max_input_chars_per_word\":100," VOCABULARY
static const struct parts sound = {
    BERT("\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true"),
    "{\"type\":\"BertPreTokenizer\"}", MODEL};

static void write_parts(const struct parts *parts)
{
    static char text[80000];
    snprintf(text, sizeof text,
             "{\"version\":\"1.0\",\"added_tokens\":["
             "{\"id\":0,\"content\":\"[PAD]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
             "\"normalized\":false,\"special\":true},"
             "{\"id\":1,\"content\":\"[UNK]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
             "\"normalized\":false,\"special\":true},"
             "{\"id\":2,\"content\":\"[CLS]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
             "\"normalized\":false,\"special\":true},"
             "{\"id\":3,\"content\":\"[SEP]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
             "\"normalized\":false,\"special\":true}],\"normalizer\":%s,\"pre_tokenizer\":%s,"
             "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]},"
             "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\"model\":{%s}}",
             parts->normalizer, parts->pre_tokenizer, parts->model);
    write_file("tokenizer.json", text);
}

#define REFUSED(field, value, status, word)                                                                            \
    do {                                                                                                               \
        struct parts parts_ = sound;                                                                                   \
        parts_.field = value;                                                                                          \
        write_parts(&parts_);                                                                                          \
        file_refused(status, word);                                                                                    \
    } while (0)

static void fields(void **state)
{
    const enum tokmap_status no = TOKMAP_ERROR_UNSUPPORTED, bad = TOKMAP_ERROR_FORMAT;
    REFUSED(normalizer, BERT("\"handle_chinese_chars\":true,\"lowercase\":true"), bad, "clean_text");
    REFUSED(normalizer, BERT("\"clean_text\":true,\"lowercase\":true"), bad, "handle_chinese_chars");
    REFUSED(normalizer, BERT("\"clean_text\":true,\"handle_chinese_chars\":true"), bad, "lowercase");
    REFUSED(normalizer, BERT("\"clean_text\":null,\"handle_chinese_chars\":true,\"lowercase\":true"), bad, "");
    REFUSED(normalizer, BERT("\"clean_text\":true,\"handle_chinese_chars\":true,\"lowercase\":1"), bad, "");
    REFUSED(pre_tokenizer, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", no,
            "pre_tokenizer.type is 'ByteLevel'");
    REFUSED(model,
            "\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":1," VOCABULARY,
            bad, "model.unk_token is missing");
    REFUSED(model, "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"max_input_chars_per_word\":1," VOCABULARY, bad,
            "model.continuing_subword_prefix is missing");
    REFUSED(model, "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\"," VOCABULARY,
            bad, "model.max_input_chars_per_word is missing");
    REFUSED(model,
            "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
            "\"max_input_chars_per_word\":1",
            bad, "model.vocab is missing");
    REFUSED(model, "\"type\":\"WordLevel\"," VOCABULARY, bad, "model.unk_token is missing");
    REFUSED(model, "\"type\":\"WordLevel\",\"unk_token\":\"a\"", bad, "model.vocab is missing");
    REFUSED(model, "\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{}", bad, "model.vocab is empty");
    REFUSED(model, "\"type\":\"WordLevel\",\"unk_token\":null," VOCABULARY, bad, "");
    REFUSED(model, MODEL ",\"unk_token\":\"a\"", bad, "model.unk_token twice");
    REFUSED(model,
            "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
            "\"max_input_chars_per_word\":-1," VOCABULARY,
            bad, "model.max_input_chars_per_word");
    REFUSED(model,
            "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
            "\"max_input_chars_per_word\":2.5," VOCABULARY,
            bad, "model.max_input_chars_per_word");
}

#define PIECES "\"vocab\":[[\"[PAD]\",0],[\"[UNK]\",0],[\"[CLS]\",0],[\"[SEP]\",0],[\"a\",-1]"
#define UNIGRAM "\"type\":\"Unigram\",\"unk_id\":1," PIECES

static void unigram_fields(void **state)
{
    const enum tokmap_status no = TOKMAP_ERROR_UNSUPPORTED, bad = TOKMAP_ERROR_FORMAT;
    static char model[70000];
    REFUSED(model, "\"type\":\"Unigram\",\"unk_id\":5," PIECES "]", bad,
            "model.unk_id is 5, but the vocabulary has only 5");
    REFUSED(model, UNIGRAM "]," PIECES "]", bad, "model.vocab twice");
    REFUSED(model, UNIGRAM ",[\"b\",-1,2]]", bad, "entry 5 is not an array of a text and a score");
    REFUSED(model, UNIGRAM ",[\"b\"]]", bad, "entry 5 is not an array of a text and a score");
    REFUSED(model, UNIGRAM ",[\"b\",1e999]]", bad, "a score is out of range");
    REFUSED(model, UNIGRAM ",[\"b\",1e18446744073709551617]]", bad, "a score is out of range"); /* 2^64 + 1 */
    REFUSED(model, UNIGRAM ",[\"b\",-1e308]]", bad, "a score is out of range: it is -1e308");
    REFUSED(model, UNIGRAM ",[\"b\",1.1e288]]", bad, "a score is out of range");
    REFUSED(model, UNIGRAM "],\"alpha\":0.1", no, "model.alpha asks for sampling");
    REFUSED(model, UNIGRAM "],\"nbest_size\":3", no, "model.nbest_size asks for sampling");
    memset(model, 'b', 65536 + sizeof UNIGRAM + 3);
    memcpy(model, UNIGRAM ",[\"", sizeof UNIGRAM + 2);
    strcpy(model + sizeof UNIGRAM + 2 + 65536, "\",-1]]");
    REFUSED(model, model, TOKMAP_ERROR_LIMIT, "a token of 65536 bytes is too long");
    struct parts parts = sound;
    parts.model = UNIGRAM "]";
    parts.pre_tokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    write_parts(&parts);
    file_refused(no, "pre_tokenizer.type is 'ByteLevel', which tokmap can only read with a model of the type BPE");
}

/* So many steps of BertNormalizers that there is no room for them. */
static void many_steps(void **state)
{
    static const char *const each[] = {
        BERT("\"clean_text\":true,\"handle_chinese_chars\":false,\"lowercase\":false"),
        BERT("\"clean_text\":false,\"handle_chinese_chars\":false,\"strip_accents\":true,\"lowercase\":false")};
    char normalizer[4096] = "{\"type\":\"Sequence\",\"normalizers\":[";
    strcat(normalizer, each[0]); /* one step, and then two each */
    for (int i = 0; i < 8; i++)
        strcat(strcat(normalizer, ","), each[1]);
    strcat(normalizer, "]}");
    REFUSED(normalizer, normalizer, TOKMAP_ERROR_LIMIT, "more than 16 steps");
}

/* ---- ids ---- */

static void encode(const struct tokenizer *tokenizer, const char *text, const uint16_t *wanted, uint64_t count,
                   enum tokmap_status status)
{
    struct tokmap_error error = {0};
    struct tokenizer_state *state;
    const struct tokmap_text document = {text, strlen(text)};
    const struct tokenizer_batch batch = {&document, 1, false, false};
    uint16_t ids[256];
    uint64_t end;
    struct tokenizer_out out = {.tokens = ids, .capacity = 256, .ends = &end};
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), status);
    if (!status) {
        assert_int_equal(out.count, count);
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(ids[i], wanted[i]);
    } else if (!strstr(error.message, "model.unk_token")) {
        fail_msg("the message does not name the field: %s", error.message);
    }
    tokenizer_state_free(state);
}
#define IDS(...) ((const uint16_t[]){__VA_ARGS__}), sizeof((uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t)

static struct tokenizer *opened(enum tokmap_special special)
{
    struct tokenizer *tokenizer;
    struct tokmap_error error = {0};
    if (open_file(&tokenizer, special, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

static void small(void **state)
{
    write_parts(&sound);
    struct tokenizer *tokenizer = opened(TOKMAP_SPECIAL_RECOGNIZE);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.eod_id, 3);
    assert_int_equal(info.bos_id, 2);
    assert_int_equal(info.ids_per_byte_most, 1);
    encode(tokenizer, "[CLS]ABC, \xc3\xa1 abx[SEP]", IDS(2, 4, 6, 7, 4, 1, 3), TOKMAP_OK);
    tokenizer_close(tokenizer);
    struct parts parts = sound;
    parts.model = "\"unk_token\":\"none\"," VOCABULARY; /* by its fields it is a WordLevel */
    write_parts(&parts);
    tokenizer = opened(TOKMAP_SPECIAL_TEXT);
    encode(tokenizer, "a,a", IDS(4, 7, 4), TOKMAP_OK);
    encode(tokenizer, "ab", NULL, 0, TOKMAP_ERROR_INPUT);
    encode(tokenizer, "a", IDS(4), TOKMAP_OK);
    tokenizer_close(tokenizer);
    parts.model = "\"unk_token\":\"none\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"z\":65535}";
    write_parts(&parts); /* no id of two bytes is left to stand for a word that is unknown */
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "model.unk_token is 'none', which model.vocab lacks");
    parts = sound; /* not the steps of a BertPreTokenizer, although they have the same types */
    parts.pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},"
                          "{\"type\":\"Punctuation\",\"behavior\":\"MergedWithPrevious\"}]}";
    write_parts(&parts);
    tokenizer = opened(TOKMAP_SPECIAL_TEXT);
    encode(tokenizer, "a,a", IDS(1, 4), TOKMAP_OK);
    tokenizer_close(tokenizer);
}

static void offsets(void **state)
{
    static const char text[] = "A\xcc\x81 [UNK]\xc3\xa4"
                               "bc\xe4\xb8\xad,xx";
    static const uint16_t ids[] = {4, 1, 4, 6, 1, 7, 1};
    static const uint64_t begins[] = {0, 4, 9, 11, 13, 16, 17}, ends[] = {1, 9, 11, 13, 16, 17, 19};
    const struct tokmap_text document = {text, sizeof text - 1};
    struct tokmap_error error;
    struct tokenizer_state *own;
    uint64_t from[7], to[7];
    write_parts(&sound);
    struct tokenizer *tokenizer = opened(TOKMAP_SPECIAL_RECOGNIZE);
    encode(tokenizer, text, ids, 7, TOKMAP_OK);
    assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_offsets(own, &document, TOKENIZER_STARTS, ids, 7, from, to, &error), TOKMAP_OK);
    for (size_t i = 0; i < 7; i++)
        if (from[i] != begins[i] || to[i] != ends[i])
            fail_msg("token %zu is [%d,%d), not [%d,%d)", i, (int)from[i], (int)to[i], (int)begins[i], (int)ends[i]);
    assert_int_equal(tokenizer_offsets(own, &document, TOKENIZER_STARTS, ids, 6, from, to, &error), TOKMAP_ERROR_TOKEN);
    tokenizer_state_free(own);
    tokenizer_close(tokenizer);
}

static void check_offsets(const struct parts *parts, const char *text, const uint16_t *ids, uint64_t count,
                          const uint64_t *begins, const uint64_t *ends)
{
    const struct tokmap_text document = {text, strlen(text)};
    struct tokmap_error error;
    struct tokenizer_state *own;
    uint64_t from[8], to[8];
    write_parts(parts);
    struct tokenizer *tokenizer = opened(TOKMAP_SPECIAL_TEXT);
    encode(tokenizer, text, ids, count, TOKMAP_OK);
    assert_int_equal(tokenizer_state_new(&own, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_offsets(own, &document, TOKENIZER_STARTS, ids, count, from, to, &error), TOKMAP_OK);
    assert_memory_equal(from, begins, count * sizeof *begins);
    assert_memory_equal(to, ends, count * sizeof *ends);
    tokenizer_state_free(own);
    tokenizer_close(tokenizer);
}
#define OFFSETS(...) ((const uint64_t[]){__VA_ARGS__})

/* Pieces that together are the text: each of them is a word of its own. */
static void offsets_of_pieces(void **state)
{
    struct parts parts = sound;
    parts.normalizer = "null";
    parts.pre_tokenizer = "{\"type\":\"Digits\",\"individual_digits\":false}";
    check_offsets(&parts, "12a34ab", IDS(1, 4, 1, 4, 5), OFFSETS(0, 2, 3, 5, 6), OFFSETS(2, 3, 5, 6, 7));
}

/* A Unigram model finds the name of its unknown token in the text, and other unknown text beside it is part of it. */
static void offsets_of_unknown(void **state)
{
    struct parts parts = sound;
    parts.normalizer = parts.pre_tokenizer = "null";
    parts.model = "\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"[PAD]\",0],[\"[UNK]\",0],[\"[CLS]\",0],"
                  "[\"[SEP]\",0],[\"a\",-1],[\"[\",-1]]";
    check_offsets(&parts, "\xc3\xa9[UNK][a", IDS(1, 5, 4), OFFSETS(0, 7, 8), OFFSETS(7, 8, 9));
    check_offsets(&parts, "[UNK]\xc3\xa9[UNK]", IDS(1), OFFSETS(0), OFFSETS(12));
    check_offsets(&parts, "a[UNK][UNK]a\xc3\xa9", IDS(4, 1, 4, 1), OFFSETS(0, 1, 11, 12), OFFSETS(1, 11, 12, 14));
    parts.pre_tokenizer = "{\"type\":\"WhitespaceSplit\"}"; /* the id after a piece may be the same token */
    check_offsets(&parts, "\xc3\xa9[UNK] [UNK]", IDS(1, 1), OFFSETS(0, 8), OFFSETS(7, 13));
    /* It takes other tokens for the name if these are more probable. */
    parts.model = "\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"[PAD]\",0],[\"[UNK]\",-9],[\"[CLS]\",0],"
                  "[\"[SEP]\",0],[\"UNK]\",-1],[\"[\",-1]]";
    check_offsets(&parts, "\xc3\xa9[UNK]", IDS(1, 5, 4), OFFSETS(0, 2, 3), OFFSETS(2, 3, 7));
    check_offsets(&parts, "\xc3\xa9[UNK][", IDS(1, 5, 4, 5), OFFSETS(0, 2, 3, 7), OFFSETS(2, 3, 7, 8));
}

/* ---- vocab.txt ---- */

static void vocab_txt(void **state)
{
    struct tokenizer_info text_info, json_info;
    remove_file("tokenizer_config.json");
    write_parts(&sound);
    struct tokenizer *json = opened(TOKMAP_SPECIAL_TEXT);
    json_info = info_of_tokenizer(json);
    lower_case = "yes";
    file_refused(TOKMAP_ERROR_ARGUMENT, "lower_case is for a vocab.txt only");
    write_file("vocab.txt", "[PAD]\n[UNK]\r\n[CLS]\n[SEP] \na\n##b\n##bc\n,");
    lower_case = NULL;
    file_refused(TOKMAP_ERROR_ARGUMENT, "lower_case must be 'yes' or 'no': the file does not say");
    lower_case = "true";
    file_refused(TOKMAP_ERROR_ARGUMENT, "lower_case must be 'yes' or 'no'");
    lower_case = "no";
    struct tokenizer *text = opened(TOKMAP_SPECIAL_TEXT);
    encode(text, "ABC, abx ab \xc3\xa1", IDS(1, 7, 1, 4, 5, 1), TOKMAP_OK);
    tokenizer_close(text);
    lower_case = "yes";
    text = opened(TOKMAP_SPECIAL_TEXT);
    text_info = info_of_tokenizer(text);
    assert_string_equal(text_info.form, "vocab.txt");
    assert_null(text_info.note);
    assert_memory_equal(text_info.fingerprint, json_info.fingerprint, 16);
    assert_int_equal(text_info.eod_id, 3);
    assert_int_equal(text_info.bos_id, 2);
    encode(text, "ABC, \xc3\xa1 abx", IDS(4, 6, 7, 4, 1), TOKMAP_OK);
    tokenizer_close(json);
    tokenizer_close(text);
    lower_case = NULL;
}

static void lines(void **state)
{
    remove_file("tokenizer_config.json");
    lower_case = "no";
    write_file("my-vocab.txt", "a\n\n[UNK]\nB\na\n"); /* an empty line is a token; of equal lines the last counts */
    struct tokenizer *tokenizer = opened(TOKMAP_SPECIAL_TEXT);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_int_equal(info.vocabulary, 5);
    encode(tokenizer, "a B b", IDS(4, 3, 2), TOKMAP_OK);
    tokenizer_close(tokenizer);
    write_file("words", "b\n[UNK]\n\\\n\"\n"); /* recognized by its line */
    tokenizer = opened(TOKMAP_SPECIAL_TEXT);
    encode(tokenizer, "b\\\"", IDS(0, 2, 3), TOKMAP_OK);
    tokenizer_close(tokenizer);
    lower_case = NULL;
    const size_t most = (size_t)1 << 20;
    char *text = malloc(most + 2);
    assert_non_null(text);
    memset(text, '\n', most + 1);
    text[most + 1] = '\0';
    write_file("vocab.txt", text);
    file_refused(TOKMAP_ERROR_LIMIT, "1048577 lines");
    memset(text, 'a', 65536);
    strcpy(text + 65536, "\n[UNK]\n");
    write_file("vocab.txt", text);
    file_refused(TOKMAP_ERROR_LIMIT, "line 1 has 65536 bytes");
    free(text);
}

static void config(void **state)
{
    static const char vocabulary[] = "<u>\n[CLS]\n[SEP]\na\nA\n\xc3\xa1\n[UNK]\n\xe4\xb8\xad\xe4\xb8\xad\n";
    write_file("tokenizer_config.json",
               "{\"tokenizer_class\":\"BertTokenizerFast\",\"do_lower_case\":false,"
               "\"tokenize_chinese_chars\":false,\"unk_token\":{\"content\":\"<u>\"},\"x\":[1]}");
    write_file("vocab.txt", vocabulary);
    struct tokenizer *tokenizer = opened(TOKMAP_SPECIAL_RECOGNIZE);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    assert_null(info.note);
    encode(tokenizer, "A a \xc3\xa1 b\xe4\xb8\xad\xe4\xb8\xad \xe4\xb8\xad\xe4\xb8\xad [SEP]", IDS(4, 3, 5, 0, 7, 2),
           TOKMAP_OK);
    tokenizer_close(tokenizer);
    write_file("tokenizer_config.json", "{\"strip_accents\":false}"); /* lower case is the default of transformers */
    write_file("vocab.txt", vocabulary);
    tokenizer = opened(TOKMAP_SPECIAL_TEXT);
    encode(tokenizer, "A \xc3\x81", IDS(3, 5), TOKMAP_OK);
    tokenizer_close(tokenizer);
    write_file("tokenizer_config.json", "{\"do_basic_tokenize\":false,\"do_lower_case\":true}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "do_basic_tokenize is false");
    lower_case = "no"; /* the file beside it decides, also where it has no such member */
    write_file("tokenizer_config.json", "{\"do_basic_tokenize\":true,\"strip_accents\":null}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_ARGUMENT, "lower_case is given, but the tokenizer_config.json beside the file decides");
    lower_case = NULL;
    write_file("config.json", "{\"model_type\":\"roformer\"}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "model_type is 'roformer'");
    write_file("config.json", "{\"model_type\":\"roformer\",\"tokenizer_class\":\"BertJapaneseTokenizer\"}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "tokenizer_class is 'BertJapaneseTokenizer'");
    remove_file("config.json");
    write_file("tokenizer_config.json", "{\"tokenizer_class\":\"BertJapaneseTokenizer\"}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "tokenizer_class is 'BertJapaneseTokenizer'");
    write_file("tokenizer_config.json", "{\"strip_accents\":null,\"do_lower_case\":\"no\"}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_FORMAT, "do_lower_case must be true, false, or null");
    write_file("tokenizer_config.json", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "pointer of Git LFS");
    write_file("tokenizer_config.json", "{\"unk_token\":\"<none>\"}");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "'<none>', which tokenizer_config.json beside the file names as unk_token");
    write_file("tokenizer_config.json", "{\"do_lower_case\":");
    write_file("vocab.txt", vocabulary);
    file_refused(TOKMAP_ERROR_FORMAT, "");
    remove_file("tokenizer_config.json");
    lower_case = "yes";
    write_file("vocab.txt", "a\nb\n");
    file_refused(TOKMAP_ERROR_UNSUPPORTED, "no line is the unknown token '[UNK]'");
    write_file("vocab.txt", "[UNK]\na\xff\n");
    file_refused(TOKMAP_ERROR_FORMAT, "not UTF-8");
}

int main(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_words.%llu", base ? base : "/tmp", (unsigned long long)os_clock_ns());
    if (os_make_folder(folder))
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields),
                                       cmocka_unit_test(unigram_fields),
                                       cmocka_unit_test(many_steps),
                                       cmocka_unit_test(small),
                                       cmocka_unit_test(offsets),
                                       cmocka_unit_test(offsets_of_pieces),
                                       cmocka_unit_test(offsets_of_unknown),
                                       cmocka_unit_test(vocab_txt),
                                       cmocka_unit_test(lines),
                                       cmocka_unit_test(config)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
