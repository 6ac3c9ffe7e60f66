/* SPDX-License-Identifier: MIT */
/*
 * test_piece_rules.c - folders whose SentencePiece model has other ids than the trained model: the ids of each rule, as
 * the class of transformers gives them, and models and settings that do not fit a rule.
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

#include "sentencepiece/sp_model.h"
#include "support/decode_once.h"
#include "support/scratch_folder.h"
#include "vocabulary/vocabulary.h"

#define MARK "\xE2\x96\x81"
#define HEART "\xE2\x99\xA5"
#define FAIRSEQ_IDS "\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"" MARK "\": 4, \"b\": 5"
#define MARIAN_IDS                                                                                                     \
    "{\"</s>\": 0, \"<unk>\": 1, \"" MARK "ab\": 2, \"b\": 3, \"" HEART HEART "\": 4, \"" MARK                         \
    "\": 5, \">>fr<<\": 6, \"zz\": 8, \"<pad>\": 7}"

static char inside[600];
static struct tokmap_error error;

static int begin(void **state)
{
    snprintf(inside, sizeof inside, "%s/model", folder);
    return mkdir(inside, 0777);
}

static int end(void **state)
{
    scratch_remove(inside);
    return 0;
}

/* ---- a model ---- */

struct piece {
    const char *text;
    float score;
    int kind; /* 0: normal */
};

/* The pieces after the first three have the ids 3 (the space), 4, 5, 6, and 7. */
#define REST                                                                                                           \
    {MARK, -2, 0}, {"a", -3, 0}, {"b", -3, 0}, {"ab", -4, 0},                                                          \
    {                                                                                                                  \
        MARK "ab", -4, 0                                                                                               \
    }
static const struct piece usual[] = {{"<unk>", 0, SP_UNKNOWN}, {"<s>", 0, SP_CONTROL}, {"</s>", 0, SP_CONTROL}, REST};
static const struct piece pegasus[] = {
    {"<pad>", 0, SP_CONTROL}, {"</s>", 0, SP_CONTROL}, {"<unk>", 0, SP_UNKNOWN}, REST};

/* Writes a model whose messages have less than 128 bytes. more: one more piece, or NULL. */
static void put_model(const char *name, const struct piece *pieces, const struct piece *more, bool bpe)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", inside, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < 8 + (more != NULL); i++) {
        const struct piece *piece = i < 8 ? &pieces[i] : more;
        const size_t bytes = strlen(piece->text);
        fprintf(file, "\x0A%c\x0A%c%s\x15", (int)(bytes + 9), (int)bytes, piece->text);
        assert_int_equal(fwrite(&piece->score, 4, 1, file), 1);
        fprintf(file, "\x18%c", piece->kind ? piece->kind : SP_NORMAL);
    }
    fprintf(file, "\x12\x02\x18%c", bpe ? 2 : 1);
    assert_int_equal(fclose(file), 0);
}

static void put(const char *name, const char *text)
{
    file_write_text(in_folder(inside, name), text);
}

static void put_class(const char *class_name, const char *more)
{
    char text[256];
    snprintf(text, sizeof text, "{\"tokenizer_class\": \"%s\"%s}", class_name, more);
    put("tokenizer_config.json", text);
}

/* ---- ids ---- */

static struct tokenizer *open_inside(bool recognize)
{
    struct tokenizer *tokenizer;
    const struct tokmap_tokenizer_options options = {.special =
                                                         recognize ? TOKMAP_SPECIAL_RECOGNIZE : TOKMAP_SPECIAL_TEXT};
    if (vocabulary_open(&tokenizer, inside, &options, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

/* Checks the ids of a text, which end with -1, and that their offsets are found. */
static void gives(bool recognize, const char *text, const int *expected)
{
    struct tokenizer *tokenizer = open_inside(recognize);
    struct tokenizer_state *state;
    const struct tokmap_text one = {text, strlen(text)};
    const struct tokenizer_batch batch = {.documents = &one, .count = 1};
    uint16_t ids[256];
    uint64_t ends, from[256], to[256];
    struct tokenizer_out out = {.tokens = ids, .capacity = 256, .ends = &ends};
    assert_int_equal(tokenizer_state_new(&state, tokenizer, &error), TOKMAP_OK);
    assert_int_equal(tokenizer_encode(state, &batch, &out, &error), TOKMAP_OK);
    for (uint64_t i = 0; i <= out.count; i++)
        if ((i < out.count ? ids[i] : -1) != expected[i])
            fail_msg("%s: id %d is %d instead of %d", text, (int)i, i < out.count ? ids[i] : -1, expected[i]);
    if (tokenizer_offsets(state, &one, TOKENIZER_STARTS, ids, out.count, from, to, &error))
        fail_msg("%s: %s", text, error.message);
    assert_true(!out.count || to[out.count - 1] == strlen(text));
    tokenizer_state_free(state);
    tokenizer_close(tokenizer);
}
#define IDS(...) ((const int[]){__VA_ARGS__, -1})

static void fairseq(void **state)
{
    put_model("sentencepiece.bpe.model", usual, NULL, false);
    put_class("XLMRobertaTokenizerFast", "");
    gives(false, "ab b", IDS(8, 4, 6));
    gives(false, HEART HEART "a" HEART, IDS(4, 3, 5, 3)); /* unknown characters in a row are one token */
    gives(true, "a  <mask>b</s><unk><pad><s>", IDS(4, 5, 9, 4, 6, 2, 3, 1, 0));
    put_class("MBartTokenizer", "");
    gives(true, "ab<mask>en_XX zh_CN", IDS(8, 34, 12, 33));
    put_class("MBart50Tokenizer", "");
    gives(true, "ab<mask>af_ZAsl_SI", IDS(8, 61, 34, 60));
    put_class("XGLMTokenizer", "");
    gives(true, "ab<madeupword0><madeupword6>", IDS(8, 9, 15));
    put_class("CamembertTokenizer", "");
    gives(true, "ab <mask><s></s><unk>NOTUSED<s>NOTUSED<pad></s>NOTUSED<unk>" HEART,
          IDS(11, 12, 5, 6, 4, 0, 1, 2, 3, 7, 3));
}

/* A folder that names no class has the type of its model. */
static void typed(void **state)
{
    put_model("sentencepiece.bpe.model", usual, NULL, true);
    put("config.json", "{\"model_type\": \"xlm-roberta\"}");
    gives(false, "ab b", IDS(8, 4, 6));
    put_class("LlamaTokenizer", ""); /* whose ids are those of the model */
    gives(false, "ab b", IDS(7, 3, 5));
}

static void offset(void **state)
{
    for (int bpe = 0; bpe < 2; bpe++) {
        put_model("spiece.model", pegasus, NULL, bpe);
        put_class("PegasusTokenizer", ", \"offset\": 103");
        gives(true, "ab b" HEART "<mask_1><mask_2><unk_2><unk_102></s>", IDS(110, 106, 108, 105, 2, 3, 4, 104, 1));
    }
}

static void ids_beside(void **state)
{
    put_model("source.spm", usual, NULL, false);
    put("vocab.json", MARIAN_IDS);
    gives(false, "ab b", IDS(2, 5, 3));
    gives(false, "a a" HEART, IDS(5, 1, 5, 1, 1));            /* "a" has no id */
    gives(false, "b" HEART HEART "b", IDS(5, 3, 4, 3));       /* a piece of the other language */
    gives(false, "b" HEART HEART HEART "b", IDS(5, 3, 1, 3)); /* not that piece and one more */
    gives(true, ">>fr<<b</s><pad><unk>", IDS(6, 5, 3, 0, 7, 1));
    struct text_buffer text = {0};
    struct tokenizer *tokenizer = open_inside(false);
    assert_int_equal(tokenizer_decode(tokenizer, (const uint16_t[]){2, 8}, 2, true, false, &text, &error), TOKMAP_OK);
    assert_int_equal(text.count, 4);
    assert_memory_equal(text.bytes, "abzz", 4);
    free(text.bytes);
    tokenizer_close(tokenizer);
}

static void ids_beside_m2m(void **state)
{
    put_class("M2M100Tokenizer", ", \"language_codes\": \"m2m100\"");
    put_model("sentencepiece.bpe.model", usual, NULL, false);
    put("vocab.json", "{" FAIRSEQ_IDS "}");
    gives(true, "ab b" HEART "__af____zu__", IDS(3, 4, 5, 3, 6, 105));
    put_model("sentencepiece.bpe.model", usual, NULL, true);
    put("vocab.json", "{" FAIRSEQ_IDS ", \"" MARK "ab\": 6, \"ab\": 7, \"a\": 8}");
    gives(true, "ab a" HEART "__af__", IDS(6, 4, 8, 3, 9));
}

/* ---- what does not fit ---- */

static void refused(const char *message)
{
    struct tokenizer *tokenizer;
    assert_int_equal(vocabulary_open(&tokenizer, inside, NULL, &error), TOKMAP_ERROR_UNSUPPORTED);
    assert_null(tokenizer);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
}

static void unfit(void **state)
{
    static const char *const unknown[] = {"AlbertTokenizer",        "BarthezTokenizer",     "NllbTokenizerFast",
                                          "Speech2TextTokenizer",   "PLBartTokenizer",      "XLNetTokenizer",
                                          "GPTSw3Tokenizer",        "SeamlessM4TTokenizer", "FNetTokenizer",
                                          "PreTrainedTokenizerFast"};
    static const char *const names[] = {"sentencepiece.bpe.model", "spiece.model",       "tokenizer.model", "spm.model",
                                        "sentencepiece.model",     "tokenizer.model.v3", "x.model",         "x.spm"};
    const struct piece pad = {"<pad>", 0, SP_USER_DEFINED}, mask = {"<mask>", 0, SP_CONTROL};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        put_model(names[n], usual, NULL, false);
        for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
            put_class(unknown[i], "");
            refused(unknown[i]);
            refused("save this tokenizer as a tokenizer.json with transformers (AutoTokenizer.from_pretrained(DIR)");
        }
        scratch_remove(in_folder(inside, names[n]));
    }
    put_model("x.model", usual, NULL, false);
    put_class("MarianTokenizer", "");
    refused("takes the ids of the pieces from vocab.json, which is not in this folder");
    put_class("PegasusTokenizer", ", \"offset\": 0");
    refused("sets the offset 0");
    put_class("PegasusTokenizer", "");
    refused("'<unk>' is among the first pieces");
    put_model("x.model", usual, &pad, false);
    put_class("XLMRobertaTokenizer", "");
    refused("'<pad>' would have two ids");
    put_model("x.model", usual, &mask, false);
    refused("'<mask>' would have two ids");
}

static void unfit_ids(void **state)
{
    const struct piece pad = {"<pad>", 0, SP_USER_DEFINED}, byte = {"<0x41>", 0, SP_BYTE};
    put_class("M2M100Tokenizer", "");
    put_model("x.model", usual, NULL, false);
    put("vocab.json", "{" FAIRSEQ_IDS ", \"x\": 7}");
    refused("'__af__' comes after ids with gaps");
    put("vocab.json", "{" FAIRSEQ_IDS ", \"__zu__\": 6}");
    refused("'__zu__' would have two ids");
    put("vocab.json", "{\"a\": 0}");
    refused("'<unk>' has no id");
    put("vocab.json", "{" FAIRSEQ_IDS "}");
    put_model("x.model", usual, &byte, false);
    refused("'<0x41>' has no id");
    put_model("x.model", usual, &pad, false);
    refused("'<pad>' is an ordinary piece");
    put_model("x.model", usual, NULL, true);
    refused("'a' has no id"); /* merges go through it */
    put("vocab.json", "{" FAIRSEQ_IDS ", \"" MARK "ab\": 6, \"ab\": 7, \"a\": 8, \"" HEART "\": 9}");
    refused("'" HEART "' is not a piece");
    put_class("M2M100Tokenizer", ", \"language_codes\": \"wmt21\"");
    refused("sets language_codes to 'wmt21'");
}

/* Settings with which a class that is known gives other ids, and classes that other files name. */
static void settings(void **state)
{
    static const struct {
        const char *class_name, *setting, *name; /* NULL: it changes nothing */
    } cases[] = {
        {"DebertaV2Tokenizer", "\"do_lower_case\": true", "do_lower_case"},
        {"DebertaV2Tokenizer", "\"split_by_punct\": true", "split_by_punct"},
        {"DebertaV2Tokenizer", "\"split_by_punct\": false, \"do_lower_case\": null", NULL},
        {"XLMRobertaTokenizer", "\"do_lower_case\": true, \"auto_map\": {}", NULL},
        {"XLMRobertaTokenizer", "\"sp_model_kwargs\": {}", NULL},
        {"XLMRobertaTokenizer", "\"sp_model_kwargs\": {\"enable_sampling\": true}", "sp_model_kwargs"},
        {"LlamaTokenizer", "\"split_special_tokens\": true", "split_special_tokens"},
        {"LlamaTokenizer", "\"auto_map\": {\"AutoTokenizer\": [\"x.Y\", null]}", "auto_map"},
        {"LlamaTokenizer", "\"auto_map\": [\"x.Y\", null]", "auto_map"},
        {"LlamaTokenizer", "\"add_prefix_space\": false", "add_prefix_space"},
        {"LlamaTokenizer", "\"legacy\": false", "legacy"},
        {"LlamaTokenizer", "\"legacy\": true", NULL},
        {"RemBertTokenizer", "\"do_lower_case\": true", "do_lower_case"},
        {"T5Tokenizer", "\"legacy\": false", "legacy"},
        {"T5Tokenizer", "\"extra_ids\": 7", "sets extra_ids to 7"},
        {"T5Tokenizer", "\"extra_ids\": 100, \"legacy\": true", NULL},
    };
    put_model("x.model", usual, NULL, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char more[128];
        snprintf(more, sizeof more, ", %s", cases[i].setting);
        put_class(cases[i].class_name, more);
        if (cases[i].name)
            refused(cases[i].name);
        else
            tokenizer_close(open_inside(true));
    }
    put("tokenizer_config.json", "{}");
    put("config.json", "{\"model_type\": \"albert\"}");
    refused("the model_type 'albert' beside x.model");
    put("config.json", "{\"model_type\": \"llama\", \"tokenizer_class\": \"AlbertTokenizer\"}");
    refused("the tokenizer_class 'AlbertTokenizer' beside x.model");
    put("config.json", "{\"model_type\": \"albert\", \"tokenizer_class\": \"LlamaTokenizer\"}");
    gives(true, "ab b<unk></s>", IDS(7, 3, 5, 0, 2));
    put("config.json", "{}"); /* nothing names a class, so the ids are those of SentencePiece */
    gives(true, "ab b</s>", IDS(7, 3, 5, 2));
}

static void fingerprint_of(bool recognize, uint8_t into[16], uint64_t *count)
{
    struct tokenizer *tokenizer = open_inside(recognize);
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    memcpy(into, info.fingerprint, 16);
    *count = info.vocabulary;
    tokenizer_close(tokenizer);
}

/* Classes that let the pieces keep their ids: they find <unk>, and names that are not pieces get the next ids. What
 * they find in text is not part of the fingerprint where special tokens are text. */
static void kept(void **state)
{
    uint8_t alone[2][16], with[2][16];
    uint64_t count;
    put_model("spiece.model", pegasus, NULL, false);
    fingerprint_of(false, alone[0], &count);
    fingerprint_of(true, alone[1], &count);
    assert_int_equal(count, 8);
    put_class("T5Tokenizer", "");
    gives(true, "ab <extra_id_0> b  <extra_id_99>b<unk><pad></s>" HEART,
          IDS(7, 107, 3, 5, 8, 3, 5, 2, 0, 1, 3, 2)); /* the spaces around these belong to them */
    gives(false, "b<extra_id_0>", IDS(3, 5, 2, 4, 2));
    fingerprint_of(false, with[0], &count);
    fingerprint_of(true, with[1], &count);
    assert_int_equal(count, 108);
    assert_memory_equal(alone[0], with[0], 16);
    assert_memory_not_equal(alone[1], with[1], 16);
    put_class("T5Tokenizer", ", \"extra_ids\": 0");
    gives(true, "b<extra_id_0></s>", IDS(3, 5, 2, 4, 2, 1));
    put_class("MT5TokenizerFast", "");
    gives(true, "b<extra_id_1>", IDS(3, 5, 106));
    put_class("BigBirdTokenizer", ""); /* <s>, [SEP], [CLS], and [MASK] are not pieces; [MASK] takes spaces before it */
    gives(true, "b [MASK]b<s>[CLS][SEP]", IDS(3, 5, 11, 3, 5, 8, 10, 9));
    put_class("DebertaV2Tokenizer", "");
    gives(true, "b [MASK][UNK]<unk>", IDS(3, 5, 12, 10, 3, 2));
}

/* A vocab.json whose ids are enormous is refused before they take memory, and so is a piece that is there twice. */
static void hostile(void **state)
{
    static const struct {
        const char *id, *message;
        enum tokmap_status status;
    } ids[] = {
        {"2097151", "ids for more than the 2097150 tokens", TOKMAP_ERROR_LIMIT},
        {"2097152", "'b' has the id 2097152; the largest id that tokmap can read is 2097151", TOKMAP_ERROR_LIMIT},
        {"4294967296", "'b' has the id 4294967296", TOKMAP_ERROR_LIMIT},
        {"18446744073709551616", "a whole number from 0", TOKMAP_ERROR_FORMAT},
        {"-1", "a whole number from 0", TOKMAP_ERROR_FORMAT},
    };
    const struct piece again = {"ab", -9, 0};
    struct tokenizer *tokenizer;
    put_class("MarianTokenizer", "");
    put_model("x.model", usual, NULL, false);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"</s>\": 0, \"<unk>\": 1, \"<pad>\": 2, \"b\": %s}", ids[i].id);
        put("vocab.json", text);
        const enum tokmap_status status = vocabulary_open(&tokenizer, inside, NULL, &error);
        if (status != ids[i].status || !strstr(error.message, ids[i].message))
            fail_msg("%s: %d, %s", ids[i].id, status, error.message);
    }
    put("vocab.json", MARIAN_IDS);
    put_model("x.model", usual, &again, false);
    assert_int_equal(vocabulary_open(&tokenizer, inside, NULL, &error), TOKMAP_ERROR_FORMAT);
    assert_string_equal(error.message, "piece 8 has the same text as an earlier piece; the file is damaged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fairseq, begin, end),
        cmocka_unit_test_setup_teardown(typed, begin, end),
        cmocka_unit_test_setup_teardown(offset, begin, end),
        cmocka_unit_test_setup_teardown(ids_beside, begin, end),
        cmocka_unit_test_setup_teardown(ids_beside_m2m, begin, end),
        cmocka_unit_test_setup_teardown(unfit, begin, end),
        cmocka_unit_test_setup_teardown(unfit_ids, begin, end),
        cmocka_unit_test_setup_teardown(settings, begin, end),
        cmocka_unit_test_setup_teardown(kept, begin, end),
        cmocka_unit_test_setup_teardown(hostile, begin, end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
