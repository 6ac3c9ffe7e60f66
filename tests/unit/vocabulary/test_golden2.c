/* SPDX-License-Identifier: MIT */
/*
 * test_golden2.c - real vocabularies of every family, as golden2/index.tsv of the reference data lists them: ids equal
 * the stored ids of the reference, with special tokens as text and recognized. The ids are those of whole texts and of
 * texts in parts; their offsets are found; decoding them in parts gives the text of decoding them at once.
 *
 * GOLDEN2='t5_* bert_base_cased.json' tests these rows only (shell patterns). Every row with a difference is named,
 * with the number of texts that differ and the first of them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/awkward_text.h"
#include "support/decode_once.h"
#include "support/reference_data.h"
#include "vocabulary/vocabulary.h"

/* Rows whose vocabulary is opened otherwise than by the path in index.tsv. */
static const struct {
    const char *golden, *path;
    struct tokmap_tokenizer_options options;
} opened[] = {
    {"opus_mt_en_mg.marian", "vocab2/opus_mt_en_mg", {0}},
    {"bert_base_uncased", "vocab2/bert_base_uncased/vocab.txt", {.lower_case = "yes"}},
    {"bert_base_cased.vocab", "vocab2/bert_base_cased/vocab.txt", {.lower_case = "no"}},
    {"bert_multi_cased", "vocab2/bert_multi_cased/vocab.txt", {.lower_case = "no"}},
    {"tftext_wordpiece", "vocab2/tftext_wordpiece/vocab.txt", {.lower_case = "yes"}},
};

static struct row {
    char *golden, *path;             /* fields of index.tsv; golden without its suffix */
    char *lines;                     /* content of the golden file */
    bool specials;                   /* the reference has special tokens: lines may have ids_special */
    struct tokenizer *tokenizers[2]; /* special tokens as text, and recognized; NULL: refused */
    struct tokenizer_state *states[2];
} rows[100];
static size_t row_count;
static const char *data;
static int failures; /* of the test that runs */

/* Cuts a line at its tabs. Returns the number of fields. */
static int fields(char *line, char **into, int most)
{
    int count = 0;
    for (char *at = line; at && count < most; count++) {
        into[count] = at;
        if ((at = strchr(at, '\t')) != NULL)
            *at++ = 0;
    }
    return count;
}

/* Ends the line at *at, sets *at to the next one, and returns the line; NULL at the end. */
static char *next_line(char **at)
{
    char *line = *at;
    if (!line || !*line)
        return NULL;
    if ((*at = strchr(line, '\n')) != NULL)
        *(*at)++ = 0;
    return line;
}

static bool wanted(const char *golden)
{
    char patterns[1024];
    const char *chosen = getenv("GOLDEN2");
    if (!chosen || !*chosen)
        return true;
    snprintf(patterns, sizeof patterns, "%s", chosen);
    for (char *pattern = strtok(patterns, " "); pattern; pattern = strtok(NULL, " "))
        if (!fnmatch(pattern, golden, 0))
            return true;
    return false;
}

static void open_row(struct row *row)
{
    struct tokmap_tokenizer_options options = {0};
    struct tokmap_error error = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", data, row->path);
    for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++)
        if (!strcmp(row->golden, opened[i].golden)) {
            options = opened[i].options;
            snprintf(path, sizeof path, "%s/%s", data, opened[i].path);
        }
    for (int special = 0; special < 2; special++) {
        options.special = special ? TOKMAP_SPECIAL_RECOGNIZE : TOKMAP_SPECIAL_TEXT;
        if (vocabulary_open(&row->tokenizers[special], path, &options, &error) ||
            tokenizer_state_new(&row->states[special], row->tokenizers[special], &error)) {
            assert_null(row->tokenizers[special]);
            print_message("%s is not read: %s\n", row->golden, error.message);
            failures++;
            return;
        }
    }
}

/* Opens the vocabularies of all rows. */
static void open_all(void **state)
{
    failures = 0;
    for (size_t i = 0; i < row_count; i++)
        open_row(&rows[i]);
    assert_int_equal(failures, 0);
}

/* Encodes a text, in parts of about `part` bytes if that is not 0. Returns NULL if the text cannot be encoded. */
static void *encode(const struct row *row, int special, const char *text, size_t bytes, size_t part, size_t *count)
{
    struct tokmap_error error;
    const struct tokenizer_info info = info_of_tokenizer(row->tokenizers[special]);
    uint64_t end, room = (bytes + 16) * info.ids_per_byte_most;
    char *ids = malloc(room * info.width);
    assert_non_null(ids);
    *count = 0;
    for (size_t at = 0, known = part, resumed = 0;;) {
        size_t length = bytes - at;
        if (part && known < length) {
            /* Bytes up to a place between characters are known. */
            while (known < length && ((unsigned char)text[at + known] & 0xC0) == 0x80)
                known++;
            length = known < length ? tokenizer_cut(row->tokenizers[special], text + at, known) : length;
            if (!length) {
                known += part;
                continue;
            }
        }
        const struct tokmap_text document = {text + at, length};
        const struct tokenizer_batch batch = {&document, 1, resumed, at + length < bytes};
        struct tokenizer_out out = {.tokens = ids + *count * info.width, .capacity = room - *count, .ends = &end};
        if (tokenizer_encode(row->states[special], &batch, &out, &error)) {
            free(ids);
            return NULL;
        }
        *count += out.count;
        at += length;
        known = part;
        resumed = 1;
        if (at == bytes)
            return ids;
    }
}

static uint32_t id_at(const struct tokenizer_info *info, const void *ids, size_t i)
{
    return info->width == 4 ? ((const uint32_t *)ids)[i] : ((const uint16_t *)ids)[i];
}

static void print_ids(const struct row *row, int special, const char *what, const void *ids, size_t count, bool stored)
{
    struct tokenizer_info info = info_of_tokenizer(row->tokenizers[special]);
    print_message("  %s", what);
    for (size_t i = 0; ids && i < count && i < 60; i++)
        print_message(" %u", stored ? ((const uint32_t *)ids)[i] : id_at(&info, ids, i));
    print_message("%s\n", !ids ? " an error" : count > 60 ? " ..." : "");
}

/* A text of a golden file with the ids of one policy. */
struct golden {
    const char *text;
    size_t bytes;
    const uint32_t *expected; /* NULL: the reference fails */
    size_t count;
    int special;
};
/* Checks one text; false: it differs. `show`: says how. */
typedef bool check_text(const struct row *row, const struct golden *golden, bool show);

static bool contains(const struct tokenizer *tokenizer, const char *text, size_t bytes)
{
    struct tokmap_added_token added;
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    for (uint64_t i = 0; i < info.added; i++) {
        tokenizer_added_at(tokenizer, i, &added);
        for (size_t at = 0; added.special && added.bytes && at + added.bytes <= bytes; at++)
            if (!memcmp(text + at, added.text, added.bytes))
                return true;
    }
    return false;
}

/* Passes a line to a check, with both policies. Returns the number of differences. */
static int check_line(const struct row *row, const char *line, check_text *check, int shown)
{
    struct golden golden = {0};
    char *text;
    uint32_t *ids, *recognized;
    size_t counts[2];
    int different = 0;
    assert_true(golden_text(line, &text, &golden.bytes));
    golden_ids(line, "ids", &ids, &counts[0]);
    const bool other = golden_ids(line, "ids_special", &recognized, &counts[1]);
    golden.text = text;
    for (int special = 0; special < 2; special++) {
        golden.special = special;
        golden.expected = special && other ? recognized : ids;
        golden.count = counts[special && other];
        /* Where the reference knows no special tokens, tokmap may: their texts are left out. */
        if (!special || row->specials || !contains(row->tokenizers[1], text, golden.bytes))
            different += !check(row, &golden, shown + different == 0);
    }
    free(text);
    free(ids);
    free(recognized);
    return different;
}

static void check_all(check_text *check, const char *what)
{
    int rows_checked = 0;
    size_t texts = 0;
    failures = 0;
    for (size_t i = 0; i < row_count; i++) {
        int different = 0, number = 0;
        char *content = strdup(rows[i].lines), *at = content;
        assert_non_null(content);
        for (char *line; rows[i].states[1] && (line = next_line(&at)) != NULL; number++)
            different += check_line(&rows[i], line, check, different);
        if (different)
            print_message("%s: %d differences in %s of %d texts\n", rows[i].golden, different, what, number);
        free(content);
        failures += different;
        texts += (size_t)number;
        rows_checked += number > 0;
    }
    print_message("%s: %zu texts of %d vocabularies\n", what, texts, rows_checked);
    assert_int_equal(failures, 0);
}

static bool ids_equal(const struct row *row, const struct golden *golden, bool show, size_t part)
{
    size_t count;
    void *ids = encode(row, golden->special, golden->text, golden->bytes, part, &count);
    bool equal = !ids == !golden->expected && (!ids || count == golden->count);
    struct tokenizer_info info = info_of_tokenizer(row->tokenizers[golden->special]);
    for (size_t i = 0; equal && ids && i < count; i++)
        equal = id_at(&info, ids, i) == golden->expected[i];
    if (!equal && show) {
        print_message("%s, special tokens %s%s: %.300s\n", row->golden, golden->special ? "recognized" : "as text",
                      part ? ", in parts" : "", golden->text);
        print_ids(row, golden->special, "expected", golden->expected, golden->count, true);
        print_ids(row, golden->special, "     got", ids, count, false);
    }
    free(ids);
    return equal;
}

static bool whole(const struct row *row, const struct golden *golden, bool show)
{
    return ids_equal(row, golden, show, 0);
}

static bool in_parts(const struct row *row, const struct golden *golden, bool show)
{
    const struct tokenizer_info info = info_of_tokenizer(row->tokenizers[golden->special]);
    return !info.cuts || !golden->expected || (ids_equal(row, golden, show, 1) && ids_equal(row, golden, show, 7));
}

static bool offsets(const struct row *row, const struct golden *golden, bool show)
{
    struct tokmap_error error = {0};
    size_t count;
    void *ids = encode(row, golden->special, golden->text, golden->bytes, 0, &count);
    if (!ids)
        return true; /* `whole` says so */
    uint64_t *begins = malloc((count + 1) * sizeof *begins), *ends = malloc((count + 1) * sizeof *ends);
    const struct tokmap_text text = {golden->text, golden->bytes};
    assert_true(begins && ends);
    bool good =
        !tokenizer_offsets(row->states[golden->special], &text, TOKENIZER_STARTS, ids, count, begins, ends, &error);
    for (size_t i = 0; good && i < count; i++)
        good = begins[i] <= ends[i] && ends[i] <= golden->bytes &&
               (!i || (begins[i - 1] <= begins[i] && ends[i - 1] <= ends[i]));
    if (!good && show)
        print_message("%s, special tokens %s: offsets of %.300s: %s\n", row->golden,
                      golden->special ? "recognized" : "as text", golden->text,
                      error.status ? error.message : "they do not ascend within the text");
    free(begins);
    free(ends);
    free(ids);
    return good;
}

static bool decoded(const struct row *row, const struct golden *golden, bool show)
{
    struct tokmap_error error = {0};
    bool good = true;
    size_t count;
    const struct tokenizer *tokenizer = row->tokenizers[golden->special];
    const struct tokenizer_info info = info_of_tokenizer(tokenizer);
    char *ids = encode(row, golden->special, golden->text, golden->bytes, 0, &count);
    for (int specials = 0; good && ids && specials < 2; specials++) {
        struct text_buffer once = {0}, parts = {0};
        struct tokenizer_decoder *decoder = NULL;
        const enum tokmap_status status = tokenizer_decode(tokenizer, ids, count, specials, false, &once, &error);
        if (status == TOKMAP_ERROR_UNSUPPORTED) /* a way to decode that is refused by name */
            break;
        good = !status && !tokenizer_decoder_new(&decoder, tokenizer, specials, &error);
        for (size_t i = 0; good && i < count; i++)
            good = !tokenizer_decoder_add(decoder, ids + i * info.width, 1, &parts, &error);
        good = good && !tokenizer_decoder_end(decoder, &parts, &error) && once.count == parts.count &&
               (!once.count || !memcmp(once.bytes, parts.bytes, once.count));
        if (!good && show)
            print_message("%s: decoding %.300s\n  at once  %.*s\n  in parts %.*s\n  %s\n", row->golden, golden->text,
                          (int)once.count, once.bytes, (int)parts.count, parts.bytes, error.message);
        tokenizer_decoder_free(decoder);
        free(once.bytes);
        free(parts.bytes);
    }
    free(ids);
    return good;
}

static void strings(void **state)
{
    check_all(whole, "ids");
}

static void strings_in_parts(void **state)
{
    check_all(in_parts, "ids of parts");
}

static void strings_offsets(void **state)
{
    check_all(offsets, "offsets");
}

static void strings_decoded(void **state)
{
    check_all(decoded, "decoded texts");
}

/* The fields of files.tsv: golden name, vocabulary, file, mode, special tokens, number of ids, and SHA-256 of the
 * ids as little-endian 32-bit integers. */
static void check_file(const struct row *row, char **field)
{
    char path[1024], hex[65];
    size_t bytes, count;
    snprintf(path, sizeof path, "%s/%s", data, field[2]);
    char *text = reference_read(path, &bytes);
    assert_non_null(text);
    struct tokenizer_info info = info_of_tokenizer(row->tokenizers[0]);
    for (size_t part = 0; part < 200000; part += 100000) {
        if (part && !info.cuts)
            continue;
        void *ids = encode(row, 0, text, bytes, part, &count);
        uint32_t *wide = malloc((count + 1) * sizeof *wide);
        assert_non_null(wide);
        for (size_t i = 0; ids && i < count; i++)
            wide[i] = id_at(&info, ids, i);
        sha256_hex(wide, count * sizeof *wide, hex);
        if (!ids || count != strtoul(field[5], NULL, 10) || strcmp(hex, field[6])) {
            print_message("%s %s%s: %zu ids; expected %s, with another SHA-256 or number\n", field[0], field[2],
                          part ? " in parts" : "", count, field[5]);
            failures++;
        }
        free(wide);
        free(ids);
    }
    free(text);
}

static void files(void **state)
{
    char path[1024], *field[7];
    size_t bytes;
    int number = 0, checked = 0;
    snprintf(path, sizeof path, "%s/golden2/files.tsv", data);
    char *content = reference_read(path, &bytes), *at = content;
    assert_non_null(content);
    failures = 0;
    for (char *line; (line = next_line(&at)) != NULL;) {
        if (fields(line, field, 7) < 7 || strcmp(field[3], "raw") || strcmp(field[4], "ordinary"))
            continue;
        for (size_t i = 0; i < row_count; i++)
            if (!strcmp(field[0], rows[i].golden) && rows[i].states[1] &&
                number++ % 8 < awkward_rounds(8)) { /* fewer files on slow machines */
                check_file(&rows[i], field);
                checked++;
            }
    }
    free(content);
    print_message("%d files\n", checked);
    assert_int_equal(failures, 0);
}

/* Reads index.tsv, whose fields are golden file, vocabulary, texts, tokens, null, ids_special, reference, options. */
static bool read_index(void)
{
    char path[1024], *field[8];
    size_t bytes;
    snprintf(path, sizeof path, "%s/golden2/index.tsv", data);
    char *content = reference_read(path, &bytes), *at = content;
    if (!content)
        return false;
    next_line(&at);
    for (char *line; row_count < sizeof rows / sizeof rows[0] && (line = next_line(&at)) != NULL;) {
        char *suffix = fields(line, field, 8) == 8 ? strstr(field[0], ".strings.jsonl") : NULL;
        assert_non_null(suffix);
        snprintf(path, sizeof path, "%s/golden2/%s", data, field[0]);
        *suffix = 0;
        if (!wanted(field[0]))
            continue;
        struct row *row = &rows[row_count++];
        row->golden = strdup(field[0]);
        row->path = strdup(field[1]);
        row->specials = strcmp(field[5], "0") != 0;
        row->lines = reference_read(path, &bytes);
        assert_true(row->golden && row->path && row->lines);
    }
    free(content);
    return true;
}

int main(void)
{
    data = reference_data();
    if (!data || !read_index()) {
        printf("1..0 # SKIP no golden2 in the reference data\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_all),        cmocka_unit_test(strings),         cmocka_unit_test(strings_in_parts),
        cmocka_unit_test(strings_offsets), cmocka_unit_test(strings_decoded), cmocka_unit_test(files),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < row_count; i++) {
        for (int special = 0; special < 2; special++) {
            tokenizer_state_free(rows[i].states[special]);
            tokenizer_close(rows[i].tokenizers[special]);
        }
        free(rows[i].golden);
        free(rows[i].path);
        free(rows[i].lines);
    }
    return failed;
}
