/* SPDX-License-Identifier: MIT */
/*
 * test_folder.c - a model's folder: which file is the vocabulary, what the files beside it say, what contradicts what,
 * and files that are not what they should be, one fault each.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch_folder.h"
#include "vocabulary/folder.h"
#include "vocabulary/hf/hf_frame.h"
#include "vocabulary/vocabulary.h"

/* Six tokens; the post-processor puts [A] before and [B] after a text. */
#define TOKENIZER(frame)                                                                                               \
    "{\"version\": \"1.0\", \"added_tokens\": [" ADDED(3, "[A]") ", " ADDED(4, "[B]") ", " ADDED(                      \
        5, "<end>") "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "     \
                    "false}, "                                                                                         \
                    "\"post_processor\": " frame                                                                       \
                    ", \"decoder\": null, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, "                       \
                    "\"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}"
#define ADDED(id, text)                                                                                                \
    "{\"id\": " #id ", \"content\": \"" text "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "      \
    "\"normalized\": false, \"special\": true}"
#define SPECIAL(text) "{\"SpecialToken\": {\"id\": \"" text "\", \"type_id\": 0}}"
#define TEXT "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"
#define IDS(text, id) "\"" text "\": {\"id\": \"" text "\", \"ids\": [" #id "], \"tokens\": [\"" text "\"]}"
#define TEMPLATE                                                                                                       \
    "{\"type\": \"TemplateProcessing\", \"single\": [" SPECIAL("[A]") ", " TEXT ", " SPECIAL(                          \
        "[B]") "], "                                                                                                   \
               "\"pair\": [], \"special_tokens\": {" IDS("[A]", 3) ", " IDS("[B]", 4) "}}"

static char inside[600];
static struct folder *found;
static struct tokenizer *tokenizer;
static struct tokenizer_info info;
static struct tokmap_error error;

static int begin(void **state)
{
    snprintf(inside, sizeof inside, "%s/model", folder);
    assert_int_equal(mkdir(inside, 0777), 0);
    found = calloc(1, sizeof *found);
    assert_non_null(found);
    return 0;
}

static void close_all(void)
{
    tokenizer_close(tokenizer);
    folder_free(found);
    memset(found, 0, sizeof *found);
    tokenizer = NULL;
}

static int end(void **state)
{
    close_all();
    free(found);
    scratch_remove(inside);
    return 0;
}

static void put(const char *name, const char *text)
{
    file_write_text(in_folder(inside, name), text);
}

static enum tokmap_status open_path(const char *path)
{
    close_all();
    const enum tokmap_status status = vocabulary_open_reported(&tokenizer, path, NULL, found, &error);
    if (!status)
        info = info_of_tokenizer(tokenizer);
    return status;
}

static void open_inside(void)
{
    if (open_path(inside))
        fail_msg("%s: %s", error.path, error.message);
}

static const struct folder_file *file_of(const char *name)
{
    for (uint32_t i = 0; i < found->file_count; i++)
        if (!strcmp(found->files[i].name, name))
            return &found->files[i];
    fail_msg("%s is not listed", name);
    return NULL;
}

static void says(const char *name, bool used, const char *what)
{
    const struct folder_file *file = file_of(name);
    assert_int_equal(file->used, used);
    if (!strstr(file->what, what))
        fail_msg("%s: %s", name, file->what);
}

static void warns(const char *text)
{
    for (uint32_t i = 0; i < found->warning_count; i++)
        if (strstr(found->warnings[i], text))
            return;
    fail_msg("no warning has '%s'; the first is '%s'", text, found->warning_count ? found->warnings[0] : "");
}

static void refused(enum tokmap_status status, const char *message)
{
    assert_int_equal(open_path(inside), status);
    assert_null(tokenizer);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
}

/* ---- which files ---- */

static void alone(void **state)
{
    put("tokenizer.json", TOKENIZER("null"));
    open_inside();
    assert_int_equal(info.eod_id, TOKMAP_NO_ID);
    assert_int_equal(found->file_count, 1);
    assert_int_equal(found->warning_count, 0);
    says("tokenizer.json", true, "the vocabulary");
    assert_int_equal(open_path(in_folder(inside, "tokenizer.json")), TOKMAP_OK);
    assert_null(found->path);
}

static void precedence(void **state)
{
    put("tokenizer.json", TOKENIZER("null"));
    put("vocab.json", "{}");
    put("merges.txt", "#version: 0.2\n");
    put("tokenizer.model", "x");
    put("a.tiktoken", "x");
    put("b.tiktoken", "x");
    put("tokenization_x.py", "x = 1");
    put("readme.md", "x");
    open_inside();
    assert_int_equal(found->file_count, 7);
    says("merges.txt", false, "tokenizer.json is the vocabulary");
    says("vocab.json", false, "tokenizer.json is the vocabulary");
    says("tokenization_x.py", false, "no code");
    assert_int_equal(found->warning_count, 0);
}

static void several(void **state)
{
    put("a.tiktoken", "x");
    put("b.tiktoken", "x");
    refused(TOKMAP_ERROR_UNSUPPORTED, "several .tiktoken files");
    put("a.model", "x");
    put("b.model", "x");
    refused(TOKMAP_ERROR_UNSUPPORTED, "several .tiktoken files");
    put("tokenizer.model.v1", "x");
    put("tokenizer.model.v3", "x");
    refused(TOKMAP_ERROR_UNSUPPORTED, "several tokenizer.model.v* files");
}

static void nothing(void **state)
{
    put("config.json", "{}");
    assert_int_equal(mkdir(in_folder(inside, "tokenizer.json"), 0777), 0);
    refused(TOKMAP_ERROR_NOT_FOUND, "the folder contains no tokenizer");
}

static void links(void **state)
{
    char path[800];
    put("blob", TOKENIZER("null"));
    assert_int_equal(symlink("blob", in_folder(inside, "tokenizer.json")), 0);
    assert_int_equal(symlink("model", in_folder(folder, "link")), 0);
    assert_int_equal(open_path(in_folder(folder, "link")), TOKMAP_OK);
    snprintf(path, sizeof path, "%s/../model/", inside);
    assert_int_equal(open_path(path), TOKMAP_OK);
    assert_int_equal(unlink(in_folder(folder, "link")), 0);
    /* A link that leads nowhere does not make another file the vocabulary. */
    assert_int_equal(unlink(in_folder(inside, "blob")), 0);
    put("merges.txt", "#version: 0.2\n");
    put("vocab.json", "{}");
    refused(TOKMAP_ERROR_NOT_FOUND, "the file cannot be opened");
    assert_int_equal(symlink("nowhere", in_folder(inside, "tokenizer_config.json")), 0);
    assert_int_equal(unlink(in_folder(inside, "tokenizer.json")), 0);
    put("tokenizer.json", TOKENIZER("null"));
    open_inside();
    says("tokenizer_config.json", false, "cannot be opened");
    warns("tokenizer_config.json is not used: the file cannot be opened");
}

/* ---- the ends of documents ---- */

static void ends(void **state)
{
    put("tokenizer.json", TOKENIZER(TEMPLATE));
    open_inside();
    assert_int_equal(info.eod_id, 4);
    assert_int_equal(info.bos_id, 3);
    assert_string_equal(info.frame, "[A] before and [B] after");
    put("generation_config.json", "{\"eos_token_id\": [5, 4], \"bos_token_id\": 5}");
    open_inside();
    assert_int_equal(info.eod_id, 4); /* of several ids none is the one */
    assert_int_equal(info.bos_id, 5);
    put("config.json", "{\"eos_token_id\": 5, \"bos_token_id\": null, \"x\": NaN}");
    open_inside();
    assert_int_equal(info.eod_id, 5);
    assert_int_equal(info.bos_id, 5);
    put("special_tokens_map.json", "{\"eos_token\": {\"content\": \"[B]\", \"lstrip\": false}}");
    open_inside();
    assert_int_equal(info.eod_id, 4);
    says("config.json", false, "its eos_token_id, 5, is another one");
    assert_int_equal(found->warning_count, 0);
    put("tokenizer_config.json", "{\"eos_token\": \"<end>\", \"bos_token\": \"a\"}");
    open_inside();
    assert_int_equal(info.eod_id, 5);
    assert_int_equal(info.bos_id, 0); /* a token that is not an added one */
    says("tokenizer_config.json", true, "eos_token <end>, bos_token a");
    warns("special_tokens_map.json names the eos_token '[B]', but tokenizer_config.json names another one");
    warns("tokenizer_config.json names the eos_token '<end>', which counts, but the post-processor of tokenizer.json "
          "puts [A] before and [B] after");
    struct tokenizer *shared;
    assert_int_equal(tokenizer_share(&shared, tokenizer, TOKMAP_SPECIAL_RECOGNIZE, &error), TOKMAP_OK);
    const struct tokenizer_info of_shared = info_of_tokenizer(shared);
    assert_int_equal(of_shared.eod_id, 5);
    tokenizer_close(shared);
}

#define FRAME(front, ids)                                                                                              \
    "{\"type\": \"TemplateProcessing\", \"single\": [" front TEXT "], \"pair\": [], \"special_tokens\": {\"[A]\": "    \
    "{\"id\": \"[A]\", \"ids\": [" ids "], \"tokens\": [\"[A]\"]}}}"
#define A SPECIAL("[A]") ", "

/* A frame of more tokens than are kept, tokens of several ids, and a description that has no room. */
static void frames(void **state)
{
    put("tokenizer.json", TOKENIZER(FRAME(A A A A A A A A A A, "3")));
    open_inside();
    assert_int_equal(info.bos_id, 3);
    assert_string_equal(info.frame, "[A] [A] [A] [A] [A] [A] [A] [A] before");
    put("tokenizer.json", TOKENIZER(FRAME(A, "3, 4")));
    open_inside();
    assert_int_equal(info.bos_id, TOKMAP_NO_ID);
    const struct hf_frame frame = {.fronts = {{(const uint8_t *)"[CLS]", 5}}, .front_count = 1};
    for (size_t room = 1; room < 16; room++) {
        char into[32];
        memset(into, 'x', sizeof into);
        hf_frame_describe(&frame, into, room);
        assert_true(strlen(into) < room && !strncmp("[CLS] before", into, strlen(into)));
        for (size_t i = room; i < sizeof into; i++)
            assert_int_equal(into[i], 'x');
    }
}

static void not_a_token(void **state)
{
    put("tokenizer.json", TOKENIZER(TEMPLATE));
    put("tokenizer_config.json", "{\"eos_token\": \"<\\u001bno>\"}");
    put("config.json", "{\"eos_token_id\": 6}");
    open_inside();
    assert_int_equal(info.eod_id, 4);
    warns("tokenizer_config.json names the eos_token '<^[no>', which tokenizer.json does not have");
    warns("config.json names the eos_token_id 6, but the ids of tokenizer.json end at 5");
    says("config.json", false, "its eos_token is not in the vocabulary");
}

static void fingerprint(void **state)
{
    uint8_t before[16];
    put("tokenizer.json", TOKENIZER("null"));
    open_inside();
    memcpy(before, info.fingerprint, 16);
    put("tokenizer_config.json",
        "{\"eos_token\": \"<end>\", \"added_tokens_decoder\": {\"5\": {\"content\": \"<end>\", \"special\": true}}}");
    open_inside();
    assert_int_equal(info.eod_id, 5);
    assert_memory_equal(info.fingerprint, before, 16);
    assert_int_equal(found->warning_count, 0);
    says("tokenizer_config.json", true, "1 added token");
}

static void more_tokens(void **state)
{
    put("tokenizer.json", TOKENIZER("null"));
    put("added_tokens.json", "{\"<end>\": 5, \"<x>\": 6, \"<y>\": 4}");
    open_inside();
    warns("2 added tokens of added_tokens.json are not in tokenizer.json, such as '<y>' with the id 4");
    says("added_tokens.json", false, "not all of its 3 added tokens");
    put("added_tokens.json", "{\"<end>\": 5, \"<x>\": 6}");
    open_inside();
    warns("1 added token of added_tokens.json is not in tokenizer.json, such as '<x>' with the id 6");
}

#define DECODER(special, lstrip)                                                                                       \
    "{\"added_tokens_decoder\": {\"3\": {\"content\": \"[A]\", \"special\": true}, \"4\": {\"content\": \"[B]\", "     \
    "\"normalized\": false, \"lstrip\": " lstrip ", \"special\": " special "}}}"

/* Special tokens without an id, which transformers adds: the id is that of the text, or the next one. */
static void named(void **state)
{
    static const struct {
        const char *file, *text, *warning; /* NULL: none */
    } cases[] = {
        {"tokenizer_config.json", "{\"extra_special_tokens\": [\"[A]\", \"<x>\", \"<y>\"]}",
         "'<x>' is named as a special "
         "token, but not among the added tokens of tokenizer.json: transformers 5 finds it in "
         "texts, with the id 6,"},
        {"tokenizer_config.json", "{\"extra_special_tokens\": {\"image_token\": \"<x>\"}}", "'<x>' is named"},
        {"tokenizer_config.json", "{\"additional_special_tokens\": [{\"content\": \"<x>\"}]}", "'<x>' is named"},
        {"tokenizer_config.json", "{\"bos_token\": \"ab\"}",
         "'ab' is named as a special token, but not among the added "
         "tokens of tokenizer.json: transformers 5 finds it in texts, with the id 2,"},
        {"tokenizer_config.json", "{\"pad_token\": \"[B]\", \"add_bos_token\": true, \"unk_token\": null}", NULL},
        {"special_tokens_map.json", "{\"additional_special_tokens\": [\"<x>\"]}", "'<x>' is named"},
        {"special_tokens_map.json", "{\"mask_token\": {\"content\": \"<x>\", \"lstrip\": true}}", "'<x>' is named"},
        {"special_tokens_map.json", "{\"additional_special_tokens\": [\"<x>\"", "is not used"},
        {"config.json", "{\"pad_token\": \"<x>\"}", NULL},
        {"tokenizer_config.json", DECODER("true", "false"), NULL},
        {"tokenizer_config.json", DECODER("true", "true"),
         "gives '[B]' other flags (lstrip, rstrip, single_word, "
         "special) than tokenizer.json"},
        {"tokenizer_config.json", DECODER("false", "false"), "gives '[B]' other flags"},
    };
    put("tokenizer.json", TOKENIZER("null"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put(cases[i].file, cases[i].text);
        open_inside();
        assert_int_equal(found->warning_count, cases[i].warning != NULL);
        if (cases[i].warning)
            warns(cases[i].warning);
        assert_int_equal(unlink(in_folder(inside, cases[i].file)), 0);
    }
}

#define BERT(lower)                                                                                                    \
    "\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "            \
    "\"strip_accents\": null, \"lowercase\": " lower "}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, "
#define WORDS                                                                                                          \
    "{\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\", "                      \
    "\"max_input_chars_per_word\": 100, \"vocab\": {\"[UNK]\": 0, \"Hello\": 1, \"hello\": 2}}"
#define LOWER_BYTES                                                                                                    \
    "\"normalizer\": {\"type\": \"Lowercase\"}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "                         \
    "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, "
#define MERGES "{\"type\": \"BPE\", \"vocab\": {\"H\": 0, \"h\": 1, \"\xC4\xA0\": 2}, \"merges\": []}"
#define WORDS_APART                                                                                                    \
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, {\"type\": "     \
    "\"Metaspace\", \"replacement\": \"\xE2\x96\x81\", \"prepend_scheme\": \"always\", \"split\": true}]}, "
#define PIECES                                                                                                         \
    "{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"Hello\", -1], [\"\xE2\x96\x81\", -2]]}"

/* Steps that the class of transformers 5.24 takes in place of those of the file, where a text shows it. */
static void steps(void **state)
{
    static const struct {
        const char *steps, *model;
        const char *config, *type; /* NULL: no file */
        const char *warning;       /* NULL: none */
    } cases[] = {
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"BertTokenizer\"}", NULL, "BertTokenizer,"},
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"BertTokenizerFast\"}", "bert", "BertTokenizer,"},
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"ElectraTokenizerFast\"}", "xyz", "ElectraTokenizer,"},
        {BERT("false"), WORDS, "{}", "bert", "BertTokenizer,"},
        {BERT("false"), WORDS, NULL, "bert", "BertTokenizer,"},
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"BertTokenizer\", \"do_lower_case\": false}", "bert", NULL},
        {BERT("true"), WORDS, "{\"tokenizer_class\": \"BertTokenizer\", \"do_lower_case\": false}", "bert",
         "BertTokenizer,"},
        {BERT("true"), WORDS, "{\"tokenizer_class\": \"BertTokenizer\", \"do_lower_case\": 0}", "bert", NULL},
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"BertTokenizer\"}", "modernbert", NULL}, /* the file as it is */
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}", "bert", NULL},
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"BertTokenizer\", \"auto_map\": {\"AutoTokenizer\": [null]}}",
         NULL, NULL},
        {BERT("false"), WORDS, "{\"tokenizer_class\": \"GPTNeoXTokenizer\"}", NULL, NULL}, /* another kind of model */
        {BERT("false"), WORDS, NULL, NULL, NULL},
        {LOWER_BYTES, MERGES, "{\"tokenizer_class\": \"GPT2Tokenizer\"}", "llama", "GPT2Tokenizer,"},
        {LOWER_BYTES, MERGES, "{\"tokenizer_class\": \"LlamaTokenizer\"}", "llama", NULL},
        {LOWER_BYTES, MERGES, NULL, "llama", NULL},
        {LOWER_BYTES, MERGES, "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}", "qwen2", "Qwen2Tokenizer,"},
        {LOWER_BYTES, MERGES, "{\"tokenizer_class\": \"GPT2Tokenizer\"}", "mistral", NULL},
        {WORDS_APART, PIECES, "{\"tokenizer_class\": \"T5Tokenizer\"}", NULL, NULL},
        {WORDS_APART, PIECES, "{\"tokenizer_class\": \"XLMRobertaTokenizer\", \"add_prefix_space\": true}", NULL, NULL},
        {WORDS_APART, PIECES, "{\"tokenizer_class\": \"XLMRobertaTokenizer\", \"add_prefix_space\": false}", NULL,
         "XLMRobertaTokenizer,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        (void)unlink(in_folder(inside, "tokenizer_config.json"));
        (void)unlink(in_folder(inside, "config.json"));
        snprintf(text, sizeof text, "{\"version\": \"1.0\", \"added_tokens\": [], %s\"model\": %s}", cases[i].steps,
                 cases[i].model);
        put("tokenizer.json", text);
        if (cases[i].config)
            put("tokenizer_config.json", cases[i].config);
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", cases[i].type ? cases[i].type : "");
        if (cases[i].type)
            put("config.json", text);
        open_inside();
        folder_compare(found, tokenizer);
        if (found->warning_count != (cases[i].warning != NULL))
            fail_msg("case %zu: %u warnings", i, found->warning_count);
        if (!cases[i].warning)
            continue;
        snprintf(text, sizeof text, "by those of %s so it gives other ids than the file and tokmap, such as for '%s'",
                 cases[i].warning, "Hello World");
        warns(text);
    }
}

/* Too many added tokens, ids, and letters: the file is not used, and nothing of it counts. */
static void too_many(void **state)
{
    char *text = malloc(((size_t)1 << 16) * 24);
    size_t used = 1;
    assert_non_null(text);
    put("tokenizer.json", TOKENIZER("null"));
    for (unsigned more = 0; more < 2; more++) {
        strcpy(text, "{");
        used = 1;
        for (unsigned i = 0; i < (1u << 16) + more; i++)
            used += (size_t)sprintf(text + used, "%s\"%x\":%u", i ? "," : "", i, i);
        strcpy(text + used, "}");
        put("added_tokens.json", text);
        open_inside();
        if (more) {
            says("added_tokens.json", false, "it lists more than 65536 tokens");
            assert_int_equal(found->warning_count, 1);
        } else {
            warns("added tokens of added_tokens.json are not in");
        }
    }
    put("added_tokens.json", "{\"<end>\": 5, \"<x>\": 2097152}");
    open_inside();
    says("added_tokens.json", false, "an id above 2097151");
    assert_int_equal(found->warning_count, 1);
    assert_int_equal(unlink(in_folder(inside, "added_tokens.json")), 0);
    put("config.json", "{\"eos_token_id\": [5, 5]}");
    open_inside();
    assert_int_equal(info.eod_id, TOKMAP_NO_ID);
    put("tokenizer_config.json",
        "{\"tokenizer_class\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", \"eos_token\": "
        "\"<end>\"}");
    open_inside();
    assert_int_equal(found->config.class_name.bytes, 64);
    assert_int_equal(info.eod_id, 5);
    free(text);
}

/* ---- faults ---- */

static void faults(void **state)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "the file is empty"},
        {"{\"eos_token\": \"<end>\"", "is missing"},
        {"[]", "object"},
        {"{} {}", "text after the value"},
        {"\xff{}", "UTF-8"},
        {"{\"added_tokens_decoder\": {\"x\": {}}, \"eos_token\": \"<end>\"}", "a key that is not an id"},
        {"{\"added_tokens_decoder\": {\"1\": 2}}", "a token that is not an object"},
        {"{\"eos_token\": \"<end>\", \"added_tokens_decoder\": {\"99999999\": {\"content\": \"x\"}}}", "an id above"},
        {"{\"added_tokens_decoder\": {\"99999999999999999999\": {\"content\": \"x\"}}}", "a key that is not an id"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "pointer of Git LFS"},
        {"<!DOCTYPE html>", ""},
    };
    put("tokenizer.json", TOKENIZER("null"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put("tokenizer_config.json", wrong[i].text);
        open_inside();
        assert_int_equal(info.eod_id, TOKMAP_NO_ID);
        const struct folder_file *file = file_of("tokenizer_config.json");
        assert_false(file->used);
        if (!strstr(file->what, wrong[i].message))
            fail_msg("case %zu: %s", i, file->what);
        warns("tokenizer_config.json is not used: ");
        assert_int_equal(found->warning_count, 1);
    }
}

static void huge(void **state)
{
    put("tokenizer.json", TOKENIZER("null"));
    put("config.json", "{}");
    assert_int_equal(truncate(in_folder(inside, "config.json"), (9 << 20)), 0);
    open_inside();
    says("config.json", false, "it has more than 8 MiB");
    assert_int_equal(unlink(in_folder(inside, "config.json")), 0);
    assert_int_equal(mkfifo(in_folder(inside, "config.json"), 0666), 0);
    open_inside(); /* a named pipe is not waited for */
}

static void many(void **state)
{
    char name[64];
    put("tokenizer.json", TOKENIZER("null"));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%02d.model", i);
        put(name, "x");
    }
    open_inside();
    assert_true(found->file_count <= FOLDER_FILES_MOST);
    char long_name[200];
    memset(long_name, 'x', sizeof long_name);
    strcpy(long_name + 150, ".model");
    put(long_name, "x");
    open_inside();
}

/* ---- rank files and models ---- */

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_ranks(const char *name)
{
    char text[8192];
    size_t used = 0;
    for (unsigned byte = 0; byte < 256; byte++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%c%c== %u\n", base64[byte >> 2],
                                 base64[(byte & 3) << 4], byte);
    snprintf(text + used, sizeof text - used, "YWI= 256\n"); /* ab */
    put(name, text);
}

static enum tokmap_status open_ranks(void)
{
    struct tokmap_tokenizer_options options = TOKMAP_TOKENIZER_OPTIONS_INIT;
    options.pattern = "gpt2";
    options.special = TOKMAP_SPECIAL_RECOGNIZE;
    close_all();
    const enum tokmap_status status = vocabulary_open_reported(&tokenizer, inside, &options, found, &error);
    if (!status)
        info = info_of_tokenizer(tokenizer);
    return status;
}

static void ranks(void **state)
{
    put_ranks("tiktoken.model");
    put("tokenizer_config.json",
        "{\"eos_token\": \"[E]\", \"added_tokens_decoder\": {\"258\": {\"content\": \"[E]\", \"special\": true}, "
        "\"257\": {\"content\": \"[S]\"}, \"258\": {\"content\": \"[F]\"}, \"256\": {\"content\": \"ab\"}}}");
    assert_int_equal(open_ranks(), TOKMAP_OK);
    assert_int_equal(info.vocabulary, 259);
    assert_int_equal(info.eod_id, 258);
    assert_int_equal(info.added, 2);
    assert_int_equal(tokenizer_special(tokenizer, "[S]"), 257);
    put("tokenizer_config.json", "{\"added_tokens_decoder\": {\"256\": {\"content\": \"[E]\"}}}");
    assert_int_equal(open_ranks(), TOKMAP_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "gives '[E]' the id 256, which is a token of the file"));
}

/* The split pattern of a rank file that is not known is found in the code of its model. */
static void patterns(void **state)
{
    static const struct {
        const char *code;
        bool found;
    } codes[] = {
        {"PAT = r\"\"\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
         "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+\"\"\"\nx = 'y'\n",
         true},
        {"x = \"a\"\npat = \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
         "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"",
         true},
        {"'|'.join([r\"(?i:'s|'t|'re|'ve|'m|'ll|'d)\", r'[^\\r\\n\\p{L}\\p{N}]?\\p{L}+', # a comment's quote\n"
         "r'\\p{N}', r\"\"\" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*\"\"\", r'\\s*[\\r\\n]+', r'\\s+(?!\\S)', r'\\s+'])",
         true},
        {"# r\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
         "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+\"\nx = 'unfinished",
         false},
        {"PAT = r\"\\p{L}+|\\s+\"", false},
        {"'", false},
    };
    put_ranks("x.tiktoken");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        put("tokenization_x.py", codes[i].code);
        const enum tokmap_status status = open_path(inside);
        if (status != (codes[i].found ? TOKMAP_OK : TOKMAP_ERROR_ARGUMENT))
            fail_msg("case %zu: %s", i, status ? error.message : "found");
        if (codes[i].found)
            says("tokenization_x.py", true, "the split pattern");
    }
    put("tokenization_x.py", codes[0].code);
    put("tokenization_y.py", codes[1].code); /* another pattern */
    assert_int_equal(open_path(inside), TOKMAP_ERROR_ARGUMENT);
    char both[2048];
    assert_int_equal(unlink(in_folder(inside, "tokenization_y.py")), 0);
    snprintf(both, sizeof both, "%s\n%s", codes[0].code, codes[1].code);
    put("tokenization_x.py", both); /* nor does a file with two patterns say which one it is */
    assert_int_equal(open_path(inside), TOKMAP_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alone, begin, end),
        cmocka_unit_test_setup_teardown(precedence, begin, end),
        cmocka_unit_test_setup_teardown(several, begin, end),
        cmocka_unit_test_setup_teardown(nothing, begin, end),
        cmocka_unit_test_setup_teardown(links, begin, end),
        cmocka_unit_test_setup_teardown(ends, begin, end),
        cmocka_unit_test_setup_teardown(frames, begin, end),
        cmocka_unit_test_setup_teardown(not_a_token, begin, end),
        cmocka_unit_test_setup_teardown(fingerprint, begin, end),
        cmocka_unit_test_setup_teardown(more_tokens, begin, end),
        cmocka_unit_test_setup_teardown(named, begin, end),
        cmocka_unit_test_setup_teardown(steps, begin, end),
        cmocka_unit_test_setup_teardown(too_many, begin, end),
        cmocka_unit_test_setup_teardown(faults, begin, end),
        cmocka_unit_test_setup_teardown(huge, begin, end),
        cmocka_unit_test_setup_teardown(many, begin, end),
        cmocka_unit_test_setup_teardown(ranks, begin, end),
        cmocka_unit_test_setup_teardown(patterns, begin, end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
